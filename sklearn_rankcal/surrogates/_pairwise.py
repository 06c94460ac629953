"""Pairwise surrogates: sums over pairs of documents, weighted by utilities."""

from __future__ import annotations

import numpy as np

from sklearn_rankcal.queries import Queries
from sklearn_rankcal.surrogates._base import Evaluation, Surrogate
from sklearn_rankcal.surrogates._margins import MARGINS, capped_exp, straightened_exp
from sklearn_rankcal.surrogates._pair_sums import pair_sums
from sklearn_rankcal.utils._messages import check_choice
from sklearn_rankcal.utils._numbers import Floats

#: The minimiser is this factor times the logarithm of the expected utility.
_FACTORS = {"logistic": 1.0, "exponential": 0.5}


class PairwiseSquared(Surrogate):
    """Squared error of differences: sum_{i<j} (v_i - v_j - (s_i - s_j))^2.

    Notes
    -----
    For a query of r documents, this is r times the squared error between the scores and the
    utilities, both centred in the query. The minimiser is E[v]. The constant of the regret bound is
    sqrt(2 / r); Calauzènes et al. (2013), table 2, state 1.

    Examples
    --------
    >>> from sklearn_rankcal.queries import Queries
    >>> from sklearn_rankcal.surrogates import PairwiseSquared
    >>> PairwiseSquared().value([1.0, 0.0], [5.0, 4.0], Queries.single(2)).tolist()
    [0.0]
    """

    takes_negative = True
    shift_invariant = True
    theorem = (
        "order preserving (Calauzènes et al., 2013, section 3.1): the expected value is least at "
        "E[v], up to a shift"
    )

    def _evaluate(
        self, v: Floats, s: Floats, queries: Queries, derivatives: int, n_jobs: int | None
    ) -> Evaluation:
        error = queries.center(s - v)
        size = queries.repeat(queries.sizes.astype(np.float64))
        value = queries.reduce(np.add, size * np.square(error))
        return Evaluation(value, 2 * size * error, 2 * (size - 1))

    def _minimizer(self, expected: Floats, queries: Queries) -> Floats:
        return queries.center(expected)

    def constant(self, n_documents: int, largest: float, total: float | None = None) -> float:
        """Return sqrt(2 / r), which is attained."""
        return float(np.sqrt(2.0 / n_documents))


class PairwiseMargin(Surrogate):
    """Convex margins of all ordered pairs: sum_i v_i sum_{j != i} phi(s_i - s_j).

    Parameters
    ----------
    margin : {"logistic", "exponential", "hinge", "squared_hinge", "smooth_hinge"}, \
            default="squared_hinge"
        The function phi of the margin d = s_i - s_j: log(1 + e^-d), e^-d, max(0, 1 - d), its
        square, or a hinge with a rounded corner (half the square up to 1, then a line).

    Notes
    -----
    This is the template of Zhang (2004, theorem 5), used for NDCG and ERR by Duchi et al. (2013),
    section 3.3. It is order preserving if phi is decreasing, convex and differentiable, with
    phi'(0) < 0. Unlike in `WeightedComparisons`, every pair counts in both directions, each time
    weighted by the utility of one document.

    The minimiser is log E[v] for logistic margins, and half of it for exponential ones. The
    constant of the regret bound is 2 sqrt(max_i E[v_i]) for both (Calauzènes et al., 2013, table
    2).

    The time for a query of r documents is O(r^2), or O(r log r) for a large query. It is O(r) for
    exponential margins: their sum is (sum_i v_i e^-s_i) (sum_j e^s_j) - sum_i v_i.

    References
    ----------
    .. [1] T. Zhang (2004). Statistical analysis of some multi-category large margin classification
       methods. JMLR 5, 1225-1251.

    Examples
    --------
    >>> from sklearn_rankcal.queries import Queries
    >>> from sklearn_rankcal.surrogates import PairwiseMargin
    >>> PairwiseMargin("hinge").value([1.0, 0.0], [0.5, 0.0], Queries.single(2)).tolist()
    [0.5]
    """

    shift_invariant = True

    def __init__(self, margin: str = "squared_hinge") -> None:
        self.margin = margin

    def _check_parameters(self) -> None:
        check_choice(self.margin, "margin", MARGINS)

    @property
    def order_preserving(self) -> bool:  # type: ignore[override]
        self._check_parameters()
        return self.margin != "hinge"  # the only margin with a corner, where phi' jumps

    @property
    def theorem(self) -> str:  # type: ignore[override]
        if self.order_preserving:
            return (
                "order preserving (Zhang, 2004, theorem 5; Calauzènes et al., 2013, section 3.1), "
                "as long as E[v_i] > 0"
            )
        return (
            "not order preserving: with a corner in the margin, expected utilities that differ can "
            "have minimisers with equal scores"
        )

    def _evaluate(
        self, v: Floats, s: Floats, queries: Queries, derivatives: int, n_jobs: int | None
    ) -> Evaluation:
        if self.margin == "exponential":
            return _exponential(v, s, queries)
        return Evaluation(*pair_sums(v, s, queries, MARGINS[self.margin], n_jobs=n_jobs))

    def _minimizer(self, expected: Floats, queries: Queries) -> Floats | None:
        if self.margin not in _FACTORS:
            return None
        return _FACTORS[self.margin] * np.log(expected)

    def constant(
        self, n_documents: int, largest: float, total: float | None = None
    ) -> float | None:
        """Return 2 sqrt(largest) for logistic and exponential margins, None for others."""
        return float(2 * np.sqrt(largest)) if self.margin in _FACTORS else None


def _exponential(v: Floats, s: Floats, queries: Queries) -> Evaluation:
    """Evaluate exponential margins by log-sum-exp.

    The terms with i = k and with j = k cancel in the derivative by s_k.
    """
    with np.errstate(divide="ignore"):
        log_v = np.log(v)
    lost = queries.repeat(log_sum_exp(log_v - s, queries)) + s
    won = log_v - s + queries.repeat(log_sum_exp(s, queries))
    # Remove the pair of each document with itself, which adds v_k.
    rise, fall = capped_exp(lost), capped_exp(won)
    return Evaluation(
        np.maximum(queries.reduce(np.add, straightened_exp(won) - v), 0.0),
        rise - fall,
        np.maximum(rise + fall - 2 * v, 0.0),
    )


def log_sum_exp(x: Floats, queries: Queries) -> Floats:
    """Compute the logarithm of the sum of e^x over each query, of arrays in grouped layout."""
    high = queries.reduce(np.maximum, x)
    finite = np.where(np.isfinite(high), high, 0.0)
    with np.errstate(divide="ignore"):
        total: Floats = np.log(queries.reduce(np.add, np.exp(x - queries.repeat(finite))))
    return total + finite
