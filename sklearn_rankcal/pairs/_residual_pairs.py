"""Models that fit scores first, and then a model of pairs to the residuals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from sklearn_rankcal.models._column_parameters import SIGNS, refuse_parameters
from sklearn_rankcal.models._document import DocumentModel
from sklearn_rankcal.models._early_stopping import check_stops_early
from sklearn_rankcal.models._model import PairwiseModel
from sklearn_rankcal.models._training import Training, squared_error
from sklearn_rankcal.pairs._bilinear_pairs import BilinearPairs
from sklearn_rankcal.pairs._pairwise_ridge import score_differences
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import PAIRS, SCORES, SYMMETRIC_PAIRS, PairTargets
from sklearn_rankcal.targets._targets import Residuals
from sklearn_rankcal.utils._parameters import check_methods
from sklearn_rankcal.utils._typing import Bools, Floats, Ints

# penalty times the number of queries: ten times that of `BilinearPairs`, because products are
# noisier than differences
_PENALTY_TIMES_QUERIES = 3000.0


class _ResidualModel(PairwiseModel):
    """Fit scores, fit pairs to the residuals of the scores, and predict the sum of both."""

    stops_early = True

    def __init__(self, scores: Any = None, pairs: Any = None) -> None:
        self.scores = scores
        self.pairs = pairs

    def fit(self, training: Training) -> Self:
        """Fit `scores` to the targets, and then `pairs` to the residuals.

        Parameters
        ----------
        training : Training
            A table that both models support, and targets with the symmetry of the model. Validation
            queries choose the number of iterations of a boosted regressor in `scores`, by its
            rankings and the error of its targets. Labels are only needed if `scores` learns them.

        Returns
        -------
        self : model
            The fitted model.

        Raises
        ------
        ValueError
            If `pairs` has the wrong symmetry, or if `scores` does not predict scores.
        """
        X, targets, queries = training.X, training.targets, training.queries
        queries.check_pairs_fit()  # before the long fit of the scores
        for name, wanted in (("scores", "a DocumentModel"), ("pairs", "a model of pairs")):
            check_methods(getattr(self, name), name, f"{wanted} of sklearn_rankcal.models", "space")
        pairs = self._default_pairs(queries) if self.pairs is None else clone(self.pairs)
        if self.scores is not None and self.scores.space != SCORES:
            raise ValueError(f"scores must predict scores, not {self.scores.space}.")
        if pairs.space != self.space:
            raise ValueError(f"pairs must predict {self.space}, not {pairs.space}; got {pairs!r}.")
        model = DocumentModel() if self.scores is None else clone(self.scores)
        refuse_parameters(
            getattr(model, "regressor", None),
            "The predictions for pairs, which are added to the scores, keep no monotone "
            "constraint. Pass the regressor to a CalibratedRanker with a loss on scores, such as "
            "'pd_by_scores' or 'map_by_scores'.",
            SIGNS,
        )
        # Step 1: fit the scores.
        own = self._score_targets(targets, training.weight)
        validation = training.validation
        if validation is not None:
            check_stops_early(model)
            # targets for a stack and for the number of iterations
            held_out = validation.held_out
            aims = self._score_targets(held_out.targets, held_out.weight)
            validation.held_out = replace(held_out, targets=aims)
            validation.steady = squared_error(validation.held_out)
        self.scores_ = model.fit(replace(training, targets=own, graded_targets=False))
        # Step 2: fit the relation between the scores and the targets of pairs.
        scores = self.scores_.predict(X, queries)
        self._fit_relation(targets, scores, queries, training.weight)
        # Step 3: fit the model of pairs to the residuals.
        rest = Residuals(targets, self._implied_by_scores(scores, queries))
        self.pairs_ = pairs.fit(replace(training, targets=rest, validation=None))
        return self

    def predict(self, X: Any, queries: Queries) -> Floats:
        """Predict the targets of all pairs of each query."""
        u = self._implied_by_scores(self.scores_.predict(X, queries), queries).flat()
        u += self.pairs_.predict(X, queries)
        return u

    def _default_pairs(self, queries: Queries) -> Any:
        raise NotImplementedError

    def _score_targets(self, targets: PairTargets, sample_weight: Floats | None) -> Floats:
        """Compute the targets of the scores, one per document."""
        raise NotImplementedError

    def _fit_relation(
        self, targets: PairTargets, scores: Floats, queries: Queries, sample_weight: Floats | None
    ) -> None:
        """Fit the coefficients, if any, that convert scores to predictions for pairs."""

    def _implied_by_scores(self, scores: Floats, queries: Queries) -> PairTargets:
        """Return the predictions for pairs that scores imply."""
        raise NotImplementedError


class ResidualPairModel(_ResidualModel):
    """Model of preferences: differences of scores, plus a model of their residuals.

    It is the default model for ``loss="pd"``. The prediction for a pair is s_i - s_j + z_i' A z_j,
    where s_i is the score of document i and z_i are its features. The scores are fitted to net
    Borda targets, and the skew-symmetric form to the residuals. It can represent cycles, which
    scores cannot.

    Parameters
    ----------
    scores : DocumentModel, default=None
        Model of the scores. None means `DocumentModel()`.
    pairs : model of pairs, default=None
        Model of the residuals. None means `BilinearPairs()`.

    Attributes
    ----------
    scores_ : DocumentModel
        The fitted model of the scores.
    pairs_ : model of pairs
        The fitted model of the residuals.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn_rankcal import CalibratedRanker
    >>> from sklearn_rankcal.datasets import make_ranking
    >>> from sklearn_rankcal.models import DocumentModel, ResidualPairModel
    >>> data = make_ranking(n_queries=40, random_state=0)
    >>> ranker = CalibratedRanker(ResidualPairModel(DocumentModel(Ridge())), loss="pd")
    >>> ranker = ranker.fit(data.X, data.y, groups=data.groups)
    >>> len(ranker.predict_preferences(data.X, groups=data.groups))  # one matrix per query
    40
    """

    space = PAIRS

    def predict_scores(self, X: Any, queries: Queries) -> Floats | None:
        """Predict scores whose differences are the predictions, if `pairs` has such scores."""
        residual = self.pairs_.predict_scores(X, queries)
        return None if residual is None else self.scores_.predict(X, queries) + residual

    def _default_pairs(self, queries: Queries) -> Any:
        return BilinearPairs()

    def _score_targets(self, targets: PairTargets, sample_weight: Floats | None) -> Floats:
        queries = targets.queries
        mass = np.ones(queries.n_rows) if sample_weight is None else sample_weight
        total = queries.broadcast(queries.sum(mass))
        # With V = sum_i v_i, b_i = sum_j v_j t_ij and sum_i v_i s_i = 0,
        # sum_ij v_i v_j (s_i - s_j - t_ij)^2 = 2 V sum_i v_i (s_i - b_i / V)^2 + constant,
        # which b_i / V minimise.
        return targets.row_sums(sample_weight) / np.where(total > 0, total, 1.0)

    def _implied_by_scores(self, scores: Floats, queries: Queries) -> PairTargets:
        return score_differences(scores, queries)


class ResidualProductModel(_ResidualModel):
    """Model of joint relevance: products of scores, plus a model of their residuals.

    It is the default model for ``loss="map"``. The predictions are u_ii = s_i and
    u_ij = a + b (s_i + s_j) + c s_i s_j + z_i' A z_j, where s_i is the score of document i and z_i
    are its features. The scores are fitted to the diagonal of the targets, then a, b and c to all
    pairs by least squares, and then the symmetric form to the residuals. The form represents which
    documents tend to be relevant together, or never together.

    Parameters
    ----------
    scores : DocumentModel, default=None
        Model of the scores. None means `DocumentModel()`.
    pairs : symmetric model of pairs, default=None
        Model of the residuals. None means ``BilinearPairs(symmetric=True)`` with a penalty of 3000
        divided by the number of training queries.

    Attributes
    ----------
    scores_ : DocumentModel
        The fitted model of the scores.
    pairs_ : symmetric model of pairs
        The fitted model of the residuals.
    slopes_ : ndarray of shape (3,)
        The coefficients a, b and c.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn_rankcal import CalibratedRanker
    >>> from sklearn_rankcal.datasets import make_ranking
    >>> from sklearn_rankcal.models import DocumentModel, ResidualProductModel
    >>> data = make_ranking(n_queries=40, random_state=0)
    >>> ranker = CalibratedRanker(ResidualProductModel(DocumentModel(Ridge())), loss="map")
    >>> ranker = ranker.fit(data.X, (data.y > 1).astype(int), groups=data.groups)
    >>> ranker.model_.slopes_.shape
    (3,)
    """

    space = SYMMETRIC_PAIRS

    def _default_pairs(self, queries: Queries) -> Any:
        return BilinearPairs(symmetric=True, alpha=_PENALTY_TIMES_QUERIES / queries.n_queries)

    def _score_targets(self, targets: PairTargets, sample_weight: Floats | None) -> Floats:
        return targets.diagonal()

    def _fit_relation(
        self, targets: PairTargets, scores: Floats, queries: Queries, sample_weight: Floats | None
    ) -> None:
        self.slopes_ = _fit_slopes(targets, scores, queries, sample_weight)

    def _implied_by_scores(self, scores: Floats, queries: Queries) -> PairTargets:
        return _ScoreProducts(scores, self.slopes_, queries)


def _fit_slopes(
    targets: PairTargets, scores: Floats, queries: Queries, sample_weight: Floats | None
) -> Floats:
    """Fit t_ij = a + b (s_i + s_j) + c s_i s_j by least squares over pairs i != j.

    It takes O(sum of r^2) time for queries of r documents.
    """
    mass = np.ones(queries.n_rows) if sample_weight is None else sample_weight
    grouped, mass = queries.gather(scores), queries.gather(mass)
    scale = np.abs(grouped).max() or 1.0  # for well-scaled equations
    gram, moment = np.zeros((3, 3)), np.zeros(3)
    for inside, valid in queries.pair_blocks():
        s, weight = grouped[inside] / scale, mass[inside] * valid
        weights = weight[:, :, None] * weight[:, None, :]
        _diagonal(weights)[...] = 0.0  # leave out the pairs i = j
        target = targets.matrices(inside, valid)
        terms = [np.ones_like(target), s[:, :, None] + s[:, None, :], s[:, :, None] * s[:, None, :]]
        for k, term in enumerate(terms):
            weighted = term * weights
            moment[k] += np.vdot(weighted, target)
            gram[k] += [np.vdot(weighted, other) for other in terms]
    # keep gram regular if all scores are equal
    gram[np.diag_indices(3)] += 1e-10 * (gram[0, 0] or 1.0)
    return np.linalg.solve(gram, moment) / [1.0, scale, scale**2]


def _diagonal(matrices: Floats) -> Floats:
    """Return a writable view of the diagonals of a stack of matrices."""
    return np.einsum("qii->qi", matrices)


class _ScoreProducts(PairTargets):
    """Pairwise targets a + b (s_i + s_j) + c s_i s_j for i != j, and s_i for i = j."""

    space = SYMMETRIC_PAIRS

    def __init__(self, scores: Floats, slopes: Floats, queries: Queries) -> None:
        super().__init__(queries)
        self._grouped = queries.gather(scores)
        self._slopes = slopes

    def matrices(self, inside: Ints, valid: Bools) -> Floats:
        a, b, c = self._slopes
        s = self._grouped[inside]
        products = a + b * (s[:, :, None] + s[:, None, :]) + c * s[:, :, None] * s[:, None, :]
        _diagonal(products)[...] = s
        products *= valid[:, :, None] & valid[:, None, :]
        return products
