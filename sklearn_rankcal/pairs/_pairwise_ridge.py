"""Ridge regression on all pairs of every query in closed form, without forming the pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve

from sklearn_rankcal.models._model import PairwiseModel
from sklearn_rankcal.models._sums import Sums
from sklearn_rankcal.models._training import Training
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import PAIRS, PairTargets, RelevanceDifferences
from sklearn_rankcal.utils._features import numeric_table
from sklearn_rankcal.utils._memory import CACHE_BYTES, row_blocks, rows_per_block
from sklearn_rankcal.utils._parameters import check_number
from sklearn_rankcal.utils._typing import Floats


def solve_ridge(gram: Floats, moment: Floats, penalty: Any) -> Floats:
    """Minimise w'Gw - 2 w'm + sum_k penalty_k w_k^2 over w. The Gram matrix G is overwritten.

    The gradient is zero if (G + diag(penalty)) w = m. The constant 1e-12 keeps the matrix positive
    definite if the penalty is 0 and columns are linearly dependent.
    """
    gram[np.diag_indices_from(gram)] += penalty + 1e-12
    return solve(gram, moment, assume_a="pos")


@dataclass(frozen=True, eq=False)
class PairSums(Sums):
    """The normal equations of linear scores fitted to all pairs of every query.

    The sums are over all ordered pairs (i, j) of documents of a query. They include i = j, so a
    document of weight 2 is equivalent to two copies of it.
    """

    # sums of v_i over documents and of v_i v_j over pairs, where v_i is the weight of document i
    mass: float
    pair_mass: float
    gram: Floats  # sum of v_i v_j (x_i - x_j)(x_i - x_j)', of shape (n_features, n_features)
    moment: Floats  # sum of v_i v_j (x_i - x_j) t_ij, or 0 without targets
    total: Floats  # sum of v_i x_i over the documents
    largest: Floats  # largest absolute value in each column

    _maxima: ClassVar[tuple[str, ...]] = ("largest",)

    @classmethod
    def of(
        cls,
        X: NDArray[Any],
        targets: PairTargets | None,
        queries: Queries,
        weight: Floats | None = None,
    ) -> PairSums:
        """Sum over whole queries in O(n d^2) time, without forming the pairs."""
        d = X.shape[1]
        v_all = np.ones(queries.n_rows) if weight is None else weight
        # b_i = sum_j v_j t_ij
        sums = None if targets is None else targets.row_sums(weight)
        gram, moment = np.zeros((d, d)), np.zeros(d)
        total, largest = np.zeros(d), np.zeros(d)
        mass = pair_mass = 0.0
        for rows, part in queries.chunks(rows_per_block(8 * d, CACHE_BYTES)):
            block = X[rows].astype(np.float64)
            v = v_all[rows]
            # V = sum_i v_i and sum_i v_i x_i of each query
            query_mass = part.sum(v)
            sum_x = part.sum(block if weight is None else block * v[:, None])
            total += sum_x.sum(axis=0)
            np.maximum(largest, np.abs(block).max(axis=0), out=largest)
            mass += float(v.sum())
            pair_mass += float((query_mass**2).sum())
            # Subtract the weighted mean of the query, so that sum_i v_i x_i = 0. No difference
            # x_i - x_j changes, and the mixed terms of the sums below vanish.
            block -= part.repeat(sum_x / np.where(query_mass > 0, query_mass, 1.0)[:, None])
            # sum_ij v_i v_j (x_i - x_j) t_ij = 2 sum_i v_i x_i b_i, as t_ij = -t_ji
            if sums is not None:
                moment += 2.0 * (v * sums[rows]) @ block
            # sum_ij v_i v_j (x_i - x_j)(x_i - x_j)' = 2 V sum_i v_i x_i x_i'
            block *= np.sqrt(2.0 * v * part.repeat(query_mass))[:, None]
            gram += block.T @ block
        return cls(mass, pair_mass, gram, moment, total, largest)

    def scale(self) -> Floats:
        """Return the root mean square of the differences in each column; infinity if all are 0.

        Division by infinity makes the coefficient of such a column 0. The computed spread of a
        column that is constant within queries is a rounding error, and counts as 0.
        """
        spread = np.sqrt(np.diagonal(self.gram) / (self.pair_mass or 1.0))
        return np.where(spread > 1e-12 * self.largest, spread, np.inf)

    def scaled_gram(self, scale: Floats) -> Floats:
        """Return the mean products of the differences, each column divided by its scale."""
        return self.gram / (self.pair_mass or 1.0) / scale / scale[:, None]


class PairwiseRidge(PairwiseModel):
    """Ridge regression of pairwise targets on differences of features.

    The prediction for a pair is u_ij = s(x_i) - s(x_j), with linear scores s(x) = w'x. A difference
    of scores cannot represent a cycle of preferences.

    The slopes w minimise the mean of (w'(x_i - x_j) - t_ij)^2 over all ordered pairs (i, j),
    including i = j, plus ``alpha * sum_k (w_k sd_k)^2``, where sd_k is the root mean square of the
    differences in column k.

    Parameters
    ----------
    alpha : float, default=1e-3
        Strength of the penalty, relative to the mean squared error over pairs.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The slopes w.

    Notes
    -----
    Fitting does not form pairs. It takes O(n d^2) time for n rows of d columns, and O(d^2) memory
    plus a block of rows.

    Examples
    --------
    >>> from sklearn_rankcal import CalibratedRanker
    >>> from sklearn_rankcal.datasets import make_ranking
    >>> from sklearn_rankcal.models import PairwiseRidge
    >>> data = make_ranking(n_queries=40, random_state=0)
    >>> ranker = CalibratedRanker(PairwiseRidge(), loss="pd")
    >>> ranker = ranker.fit(data.X, data.y, groups=data.groups)
    >>> ranker.model_.coef_.shape == (data.X.shape[1],)
    True

    Two queries can be summed separately, for example on two machines:

    >>> import numpy as np
    >>> from sklearn_rankcal.models import Training
    >>> from sklearn_rankcal.queries import Queries
    >>> from sklearn_rankcal.targets import RelevanceDifferences
    >>> X, y = np.array([[0.0], [1.0], [2.0], [5.0]]), np.array([0.0, 1.0, 0.0, 3.0])
    >>> query, model = Queries.single(2), PairwiseRidge(alpha=0.0)
    >>> def sums(rows):
    ...     targets = RelevanceDifferences(y[rows], query, "graded", np.ones(1))
    ...     return model.sums(Training(X[rows], targets, query))
    >>> model.solve(sums(slice(0, 2)) + sums(slice(2, 4))).coef_.round(6)
    array([1.])
    """

    space = PAIRS

    def __init__(self, alpha: float = 1e-3) -> None:
        self.alpha = alpha

    def fit(self, training: Training) -> Self:
        """Fit the slopes.

        Parameters
        ----------
        training : Training
            X must be a dense table of finite numbers, and targets antisymmetric `PairTargets`. The
            weight of a pair is the product of the weights of its documents. Only ratios of weights
            matter.

        Returns
        -------
        self : PairwiseRidge
            The fitted model.

        Raises
        ------
        ValueError
            If `alpha` is not a finite number >= 0, or if X is not numeric and finite.
        """
        return self.solve(self.sums(training))

    def sums(self, training: Training) -> PairSums:
        """Compute the normal equations of some queries for `solve`. Add them with ``+``."""
        check_number(self.alpha, "alpha", "[0, inf)")
        table = numeric_table(training.X)
        return PairSums.of(table, training.targets, training.queries, training.weight)

    def solve(self, sums: PairSums) -> Self:
        """Fit the slopes from the sums of all queries."""
        scale = sums.scale()
        moment = sums.moment / (sums.pair_mass or 1.0) / scale
        self.coef_ = solve_ridge(sums.scaled_gram(scale), moment, self.alpha) / scale
        return self

    def own_coefficients(self) -> Floats:
        """Return the slopes."""
        return self.coef_

    def predict_scores(self, X: Any, queries: Queries) -> Floats:
        """Predict the score w'x of each document.

        Sorting by these scores decodes the predictions of all pairs, in O(n d + n log r) time for n
        documents in queries of r documents.
        """
        table = numeric_table(X)
        return np.concatenate([table[rows] @ self.coef_ for rows in row_blocks(*table.shape)])

    def predict(self, X: Any, queries: Queries) -> Floats:
        """Predict s(x_i) - s(x_j) for all pairs of each query."""
        return score_differences(self.predict_scores(X, queries), queries).flat()


def score_differences(scores: Floats, queries: Queries) -> PairTargets:
    """Return the pairwise targets s_i - s_j, given a score for each row."""
    return RelevanceDifferences(scores, queries, "graded", np.ones(queries.n_queries))
