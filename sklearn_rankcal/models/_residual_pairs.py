"""Models that join scores of documents with a form for what scores cannot express: the defaults."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from sklearn_rankcal.models._bilinear_pairs import BilinearPairs
from sklearn_rankcal.models._document import DocumentModel
from sklearn_rankcal.models._pairwise_ridge import ScoreDifferences
from sklearn_rankcal.queries._queries import Queries
from sklearn_rankcal.targets._pairs import PairTargets, Residuals, square_chunks
from sklearn_rankcal.utils._parameters import check_methods
from sklearn_rankcal.utils._pickles import VersionedPickle
from sklearn_rankcal.utils._scales import below_one

Floats = NDArray[np.float64]
_PENALTY = 3000.0  # products are noisier than differences: ten times that of `BilinearPairs`


class _ResidualModel(VersionedPickle, BaseEstimator):
    """Fits scores, then pairs to what they leave; predicts the sum."""

    space: str

    def __init__(self, scores: Any = None, pairs: Any = None) -> None:
        self.scores = scores
        self.pairs = pairs

    def fit(
        self,
        X: Any,
        targets: PairTargets,
        queries: Queries,
        sample_weight: Floats | None = None,
    ) -> _ResidualModel:
        """Fit the scores, then the pairs on what they leave.

        Parameters
        ----------
        X : array-like of shape (n_documents, n_features)
        targets : PairTargets
            Of the symmetry of the model.
        queries : Queries
        sample_weight : ndarray of shape (n_documents,), default=None

        Returns
        -------
        self : model

        Raises
        ------
        ValueError
            `pairs` is a model of the other symmetry, or `scores` no model of scores.
        """
        for name, wanted in (("scores", "a DocumentModel"), ("pairs", "a model of pairs")):
            check_methods(getattr(self, name), name, f"{wanted} of sklearn_rankcal.models", "space")
        pairs = self._default_pairs(queries) if self.pairs is None else clone(self.pairs)
        if self.scores is not None and self.scores.space != "scores":
            raise ValueError(f"scores must predict scores, not {self.scores.space}.")
        if pairs.space != self.space:
            raise ValueError(f"pairs must predict {self.space}, not {pairs.space}; got {pairs!r}.")
        model = DocumentModel() if self.scores is None else clone(self.scores)
        mass = None if sample_weight is None else below_one(sample_weight)
        own = self._own_targets(targets, mass)
        self.scores_ = model.fit(X, own, queries, sample_weight)
        scores = self.scores_.predict(X, queries)
        self._relate(targets, scores, queries, mass)
        rest = Residuals(targets, self._implied(scores, queries))
        self.pairs_ = pairs.fit(X, rest, queries, sample_weight)
        return self

    def predict(self, X: Any, queries: Queries) -> Floats:
        """Of the pairs i < j, or i <= j, of every query, in the order of `PairTargets.flat`."""
        u = self._implied(self.scores_.predict(X, queries), queries).flat()
        u += self.pairs_.predict(X, queries)
        return u

    def _default_pairs(self, queries: Queries) -> Any:
        raise NotImplementedError

    def _own_targets(self, targets: PairTargets, sample_weight: Floats | None) -> Floats:
        """What the scores are fitted to."""
        raise NotImplementedError

    def _relate(
        self,
        targets: PairTargets,
        scores: Floats,
        queries: Queries,
        sample_weight: Floats | None,
    ) -> None:
        """Fit what relates scores to pairs, if anything does."""

    def _implied(self, scores: Floats, queries: Queries) -> PairTargets:
        """What scores say of pairs."""
        raise NotImplementedError


class ResidualPairModel(_ResidualModel):
    """A score for each document, and a skew-symmetric form for what scores cannot express.

    Predicts s_i - s_j + z_i' A z_j: `scores` is fitted to the net Borda targets, which is where
    least squares over all pairs of a query puts a score, and `pairs` to what it leaves.

    Parameters
    ----------
    scores : DocumentModel, default=None
        None: `DocumentModel()`, with the default regressor.
    pairs : model of pairs, default=None
        None: `BilinearPairs()`.

    Attributes
    ----------
    scores_ : DocumentModel
    pairs_ : model of pairs
    """

    space = "pairs"

    def _default_pairs(self, queries: Queries) -> Any:
        return BilinearPairs()

    def _own_targets(self, targets: PairTargets, sample_weight: Floats | None) -> Floats:
        queries = targets.queries
        mass = np.ones(queries.n_rows) if sample_weight is None else sample_weight
        total = queries.broadcast(queries.sum(mass))
        # sum_ij v_i v_j (s_i - s_j - t_ij)^2 = 2 V sum_i v_i (s_i - b_i / V)^2 + const, s centred
        return targets.row_sums(sample_weight) / np.where(total > 0, total, 1.0)

    def _implied(self, scores: Floats, queries: Queries) -> PairTargets:
        return ScoreDifferences(scores, queries)


class ResidualProductModel(_ResidualModel):
    """A score for each document, products of scores, and a symmetric form for what they leave.

    Predicts u_ii = s_i and u_ij = a + b (s_i + s_j) + c s_i s_j + z_i' A z_j. `scores` is fitted to
    the diagonal of the targets; a, b and c are least squares over all pairs, and `pairs` is fitted
    to what is left. Documents that are relevant independently of each other are ranked as by the
    scores; those relevant together, or never together, are what z_i' A z_j is for.

    Parameters
    ----------
    scores : DocumentModel, default=None
        None: `DocumentModel()`, with the default regressor.
    pairs : symmetric model of pairs, default=None
        None: ``BilinearPairs(symmetric=True)``, its penalty 3000 over the number of training
        queries.

    Attributes
    ----------
    scores_ : DocumentModel
    slopes_ : ndarray of shape (3,)
        a, b and c.
    pairs_ : symmetric model of pairs
    """

    space = "sym_pairs"

    def _default_pairs(self, queries: Queries) -> Any:
        return BilinearPairs(symmetric=True, alpha=_PENALTY / queries.n_queries)

    def _own_targets(self, targets: PairTargets, sample_weight: Floats | None) -> Floats:
        return targets.diagonal()

    def _relate(
        self,
        targets: PairTargets,
        scores: Floats,
        queries: Queries,
        sample_weight: Floats | None,
    ) -> None:
        self.slopes_ = _fit_slopes(targets, scores, queries, sample_weight)

    def _implied(self, scores: Floats, queries: Queries) -> PairTargets:
        return _ScoreProducts(scores, self.slopes_, queries)


def _fit_slopes(
    targets: PairTargets, scores: Floats, queries: Queries, sample_weight: Floats | None
) -> Floats:
    """Least squares of t_ij on 1, s_i + s_j and s_i s_j, over the pairs i != j. O(sum r^2)."""
    mass = np.ones(queries.n_rows) if sample_weight is None else sample_weight
    grouped, mass = queries.gather(scores), queries.gather(mass)
    scale = np.abs(grouped).max() or 1.0
    gram, moment = np.zeros((3, 3)), np.zeros(3)
    for inside, valid in square_chunks(queries):
        s, weight = grouped[inside] / scale, mass[inside] * valid
        weights = weight[:, :, None] * weight[:, None, :]
        _diagonal(weights)[...] = 0.0
        goal = targets.matrices(inside, valid)
        terms = [np.ones_like(goal), s[:, :, None] + s[:, None, :], s[:, :, None] * s[:, None, :]]
        for k, term in enumerate(terms):
            weighted = term * weights
            moment[k] += np.vdot(weighted, goal)
            gram[k] += [np.vdot(weighted, other) for other in terms]
    gram[np.diag_indices(3)] += 1e-10 * (gram[0, 0] or 1.0)  # scores may all be equal
    return np.linalg.solve(gram, moment) / [1.0, scale, scale**2]


def _diagonal(matrices: Floats) -> Floats:
    """Writable view of the diagonals of a stack of matrices."""
    return np.einsum("qii->qi", matrices)


class _ScoreProducts(PairTargets):
    """s_i on the diagonal, a + b (s_i + s_j) + c s_i s_j off it."""

    symmetric = True

    def __init__(self, scores: Floats, slopes: Floats, queries: Queries) -> None:
        super().__init__(queries)
        self._grouped = queries.gather(scores)
        self._slopes = slopes

    def matrices(self, inside: NDArray[np.int64], valid: NDArray[np.bool_]) -> Floats:
        a, b, c = self._slopes
        s = self._grouped[inside]
        products = a + b * (s[:, :, None] + s[:, None, :]) + c * s[:, :, None] * s[:, None, :]
        _diagonal(products)[...] = s
        products *= valid[:, :, None] & valid[:, None, :]
        return products
