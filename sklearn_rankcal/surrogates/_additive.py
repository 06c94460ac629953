"""Pointwise and pairwise surrogates: sums over documents, or over pairs weighted by utilities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.losses import Loss
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.surrogates._base import Evaluation, ListwiseSurrogate, Surrogate, gains
from sklearn_rankcal.surrogates._pair_sums import (
    FUNCTIONS,
    MARGINS,
    Function,
    Margin,
    capped_exp,
    function_of,
    pair_sums,
    straightened_exp,
)
from sklearn_rankcal.utils._messages import check_choice, check_number, warn
from sklearn_rankcal.utils._numbers import Floats, add_up, exceeds


class PointwiseSurrogate(Surrogate):
    """Base class of sums over documents. Subclasses implement `_terms`."""

    def _terms(self, v: Floats, s: Floats) -> tuple[Floats, Floats, Floats]:
        """Return value, first and second derivative of the term of each document."""
        raise NotImplementedError

    def _evaluate(
        self, v: Floats, s: Floats, queries: Queries, derivatives: int, n_jobs: int | None
    ) -> Evaluation:
        value, gradient, curvature = self._terms(v, s)
        return Evaluation(queries.reduce(np.add, value), gradient, curvature)


class PointwiseSquared(PointwiseSurrogate, ListwiseSurrogate):
    """Squared error: psi(v, s) = sum_i (v_i - s_i)^2. `CalibratedRanker` minimises it.

    Parameters
    ----------
    normalization : {"loss", "own"}, default="loss"
        "loss" uses the utilities of the loss. "own" uses its gains without any normalization, as
        regression did before Ravikumar et al. (2011).

    Examples
    --------
    >>> from sklearn_rankcal.queries import Queries
    >>> from sklearn_rankcal.surrogates import PointwiseSquared
    >>> PointwiseSquared().evaluate([1.0, 0.0], [0.5, 0.5], Queries.single(2)).value.tolist()
    [0.5]
    """

    takes_negative = True
    _theorem = (
        "order preserving (Calauzènes et al., 2013, section 3.1; Ramaswamy et al., 2013, theorem "
        "3): the expected value is least at E[v]"
    )

    def _terms(self, v: Floats, s: Floats) -> tuple[Floats, Floats, Floats]:
        error = s - v
        return np.square(error), 2 * error, np.full(len(s), 2.0)

    def _minimizer(self, expected: Floats, queries: Queries) -> Floats:
        return expected.copy()

    def constant(self, n_documents: int, largest: float, total: float | None = None) -> float:
        """Return sqrt(2) (Calauzènes et al., 2013, table 2)."""
        return float(np.sqrt(2.0))

    def _own_utilities(self, loss: Loss, labels: Floats, queries: Queries) -> Floats:
        return gains(loss, labels)


def _smooth_hinge_minimizer(u: Floats, eta: float, t: float) -> Floats:
    # The minimiser s lies between 0 and t. By symmetry, utilities u and eta - u have minimisers s
    # and t - s. For u <= eta / 2, the upper hinge has slope 1 if s <= t - 1; otherwise both hinges
    # are in their quadratic part.
    low = np.minimum(u, eta - u)
    linear = low / (eta - low)
    score = np.where(linear <= t - 1.0, linear, t * low / eta)
    if t > 2:  # for a utility of eta / 2, every score from 1 to t - 1 is a minimiser
        score = np.where(exceeds(eta, 2 * low, eta), score, t / 2)
    return np.where(exceeds(2 * u, eta, eta), t - score, score)


#: The minimising scores, as functions of the expected utilities, eta and t.
_MINIMIZERS: dict[str, Callable[[Floats, float, float], Floats]] = {
    "logistic": lambda u, eta, t: np.log(u) - np.log(eta - u),
    "exponential": lambda u, eta, t: (np.log(u) - np.log(eta - u)) / 2,
    "squared_hinge": lambda u, eta, t: t * u / eta,
    "smooth_hinge": _smooth_hinge_minimizer,
}
#: The constant of the regret bound, as a function of eta and t.
_CONSTANTS: dict[str, Callable[[float, float], Any]] = {
    "logistic": lambda eta, t: np.sqrt(eta),
    "exponential": lambda eta, t: np.sqrt(eta),
    "squared_hinge": lambda eta, t: np.sqrt(2 * eta) / t,
    "smooth_hinge": lambda eta, t: 2 * np.sqrt(eta) / min(t, 1.0),
}


class PointwiseMargin(PointwiseSurrogate):
    """Convex margins of documents, each relevant with weight v_i and irrelevant with eta - v_i.

    For logistic and exponential margins, it is sum_i v_i phi(s_i) + (eta - v_i) phi(-s_i). For
    hinges, it is sum_i v_i h(t - s_i) + (eta - v_i) h(s_i).

    Parameters
    ----------
    margin : {"logistic", "exponential", "squared_hinge", "smooth_hinge"}, default="logistic"
        phi(d) is log(1 + e^-d) or e^-d. h(x) is max(0, x)^2 or, for ``"smooth_hinge"``, 0 for
        x <= 0, x^2 / 2 up to x = 1, and x - 1/2 above.
    eta : float, default=None
        Upper bound on the utilities. It must be larger than every expected utility; otherwise the
        best score of logistic and exponential margins is infinite. None means twice the largest
        utility in the data.
    t : float, default=1.0
        For hinges, the score above which a relevant document has no loss. Must be positive.

    Notes
    -----
    ``CalibratedRanker(LogisticRegression(), loss="ndcg")`` minimises logistic margins.
    ``CalibratedRanker(LinearSVC(), loss="ndcg")`` minimises the squared hinge, with the decision
    function 2 s / t - 1. Both use the largest utility as eta (`models.DocumentModel`).

    The constants of the regret bound, in the order of `margin`, are sqrt(eta), sqrt(eta),
    sqrt(2 eta) / t and 2 sqrt(eta) / min(t, 1) (Calauzènes et al., 2013, table 2). The paper's
    smooth hinge of width a is a times the smooth hinge with t = 1 / a, evaluated at s / a. For
    a > 2, the regret can exceed the constant 4 sqrt(eta / a) stated there.

    Examples
    --------
    >>> from sklearn_rankcal.queries import Queries
    >>> from sklearn_rankcal.surrogates import PointwiseMargin
    >>> queries = Queries.single(2)
    >>> PointwiseMargin(eta=1.0).minimizer([0.5, 0.25], queries).round(3).tolist()
    [0.0, -1.099]
    >>> PointwiseMargin("squared_hinge", eta=2.0).minimizer([1.0, 0.5], queries).tolist()
    [0.5, 0.25]
    """

    theorem = (
        "order preserving (Calauzènes et al., 2013, table 2): the expected value is least at a "
        "strictly increasing function of E[v_i], as long as 0 < E[v_i] < eta"
    )

    def __init__(self, margin: str = "logistic", eta: float | None = None, t: float = 1.0) -> None:
        self.margin = margin
        self.eta = eta
        self.t = t

    def _check_parameters(self) -> None:
        check_choice(self.margin, "margin", _MINIMIZERS)
        check_number(self.t, "t")
        if self.eta is not None:
            check_number(self.eta, "eta")

    def check(self, targets: Any) -> None:
        """Check the parameters, and that 0 <= v <= eta."""
        super().check(targets)
        if self.eta is not None and targets.max() > self.eta:
            raise ValueError(
                f"{type(self).__name__} needs utilities of at most eta={self.eta!r}; got "
                f"{targets.max():g}. Pass a larger eta, or None, which follows the data."
            )

    def _with_defaults(self, targets: Any) -> Self:
        if self.eta is not None:
            return self
        # Twice the largest utility keeps the best scores finite.
        return clone(self).set_params(eta=2 * float(targets.max(initial=0.0)) or 1.0)

    @property
    def _eta(self) -> float:
        assert self.eta is not None  # `_with_defaults` has set it
        return float(self.eta)

    def _terms(self, v: Floats, s: Floats) -> tuple[Floats, Floats, Floats]:
        margin, rest = MARGINS[self.margin], self._eta - v
        value, slope, curvature = margin.f(self.t * margin.end - s)
        other_value, other_slope, other_curvature = margin.f(s)
        return (
            v * value + rest * other_value,
            rest * other_slope - v * slope,
            v * curvature + rest * other_curvature,
        )

    def _minimizer(self, expected: Floats, queries: Queries) -> Floats:
        return _MINIMIZERS[self.margin](expected, self._eta, self.t)

    def constant(self, n_documents: int, largest: float, total: float | None = None) -> float:
        """Return the constant stated in the Notes of the class."""
        eta = 2 * largest if self.eta is None else self.eta
        return float(_CONSTANTS[self.margin](eta, self.t))


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
    >>> PairwiseSquared().evaluate([1.0, 0.0], [5.0, 4.0], Queries.single(2)).value.tolist()
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
    >>> PairwiseMargin("hinge").evaluate([1.0, 0.0], [0.5, 0.0], Queries.single(2)).value.tolist()
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


_ADVICE = "WeightedComparisons() uses them, and counts a tie as half a win for each."


class WeightedComparisons(Surrogate):
    """Comparisons: sum over preferred pairs of h(y_ij) phi(s_i - s_j - m(y_ij)).

    If v holds a utility for each document, y_ij = v_i - v_j for the pairs with v_i > v_j. If v is
    `Preferences`, the y_ij are their weights.

    Parameters
    ----------
    margin : {"logistic", "exponential", "hinge", "squared_hinge", "smooth_hinge"}, \
            default="logistic"
        The function phi of the margin, as in `PairwiseMargin`.
    weight : {"difference", "binary"} or callable, default="difference"
        The function h of y_ij > 0: y_ij itself, the constant 1, or a function that maps an array of
        such numbers to weights >= 0.
    required : {"difference", "binary"} or callable, default=None
        The function m of y_ij > 0: the margin required of a pair. None means 0.

    Notes
    -----
    With weights, this is equation (12) of Duchi et al. (2013); with required margins, it is
    equation (13). Their theorems 2 and 3 show that neither is consistent.

    With binary weights, the surrogate is known as RankSVM (hinges; Joachims, 2002), RankNet
    (logistic; Burges et al., 2005) and RankBoost (exponential; Freund et al., 2003).

    With preferences, the time is linear in their number. With utilities, it is O(r^2) for a query
    of r documents, or O(r log r) in two cases: exponential margins with binary weights, and large
    queries with few distinct utilities.

    Examples
    --------
    >>> from sklearn_rankcal.queries import Queries
    >>> from sklearn_rankcal.surrogates import WeightedComparisons
    >>> surrogate = WeightedComparisons("hinge")
    >>> surrogate.evaluate([3.0, 1.0], [0.5, 0.0], Queries.single(2)).value.tolist()
    [1.0]
    """

    takes_negative = True
    takes_preferences = True
    shift_invariant = True
    order_preserving = False
    affine = False

    def __init__(
        self,
        margin: str = "logistic",
        weight: Function = "difference",
        required: Function | None = None,
    ) -> None:
        self.margin = margin
        self.weight = weight
        self.required = required

    @property
    def theorem(self) -> str:  # type: ignore[override]
        number = 2 if self.required is None else 3
        return (
            "not order preserving: with labels that contradict each other it can put documents in "
            "the wrong order even where preferences reinforce each other (Duchi et al., 2013, "
            f"theorem {number}; Calauzènes et al., 2013, remark 2)"
        )

    def _check_parameters(self) -> None:
        check_choice(self.margin, "margin", MARGINS)
        if not callable(self.weight):
            check_choice(self.weight, "weight", FUNCTIONS)
        if self.required is not None and not callable(self.required):
            check_choice(self.required, "required", FUNCTIONS)

    def warn_of_unused(self, preferences: Preferences) -> None:
        """Warn if all pairs count equally although the weights of the preferences differ."""
        weight = preferences.weight[preferences.weight > 0]
        counts_pairs = self.weight == "binary" and self.required is None
        if counts_pairs and len(weight) and (weight != weight[0]).any():
            warn(
                f"{self!r} counts each preferred pair once, but the weights of these preferences "
                f"differ. {_ADVICE}"
            )

    def _pairs(self, preferences: Preferences) -> Preferences:
        """Return the pairs in the sum."""
        return preferences

    def _evaluate(
        self, v: Any, s: Floats, queries: Queries, derivatives: int, n_jobs: int | None
    ) -> Evaluation:
        margin, weight, required = MARGINS[self.margin], self.weight, self.required
        if isinstance(v, Preferences):
            return _add_pairs(self._pairs(v), s, queries, margin, weight, required)
        if margin.name == "exponential" and weight == "binary" and required is None:
            return _rank_boost(v, s, queries)
        return Evaluation(
            *pair_sums(v, s, queries, margin, weight=weight, required=required, n_jobs=n_jobs)
        )


class DifferenceGraph(WeightedComparisons):
    """Margins weighted by net preferences: sum over pairs of (y_ij - y_ji)_+ phi(s_i - s_j).

    Parameters
    ----------
    margin : {"logistic", "exponential", "hinge", "squared_hinge", "smooth_hinge"}, \
            default="logistic"
        The function phi of the margin, as in `PairwiseMargin`.

    Notes
    -----
    This is equation (23) of Duchi et al. (2013). It is consistent for pairwise disagreement if the
    expected preferences are acyclic and y holds the expected preferences of the query. Therefore
    aggregate the judgements of a query first: the mean of the surrogate over single judgements is
    `WeightedComparisons`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.labels import Preferences
    >>> from sklearn_rankcal.queries import Queries
    >>> from sklearn_rankcal.surrogates import DifferenceGraph
    >>> queries = Queries.single(2)
    >>> both = Preferences.from_pairs(
    ...     np.array([0, 1]), np.array([1, 0]), np.array([3.0, 1.0]), queries
    ... )
    >>> DifferenceGraph("hinge").evaluate(both, [0.0, 0.0], queries).value.tolist()
    [2.0]
    """

    weight = "difference"
    required = None
    theorem = (
        "consistent for pairwise disagreement if the expected preferences are acyclic and all "
        "judgements of a query are aggregated first (Duchi et al., 2013, section 5.3, equation "
        "23); not order preserving if single judgements are averaged"
    )

    def __init__(self, margin: str = "logistic") -> None:
        self.margin = margin

    def warn_of_unused(self, preferences: Preferences) -> None:
        """Warn about pairs with the same weight in both directions."""
        low = np.minimum(preferences.winner, preferences.loser)
        high = np.maximum(preferences.winner, preferences.loser)
        n_pairs = len(np.unique(low * preferences.n_rows + high))
        net = self._pairs(preferences).weight
        if (lost := n_pairs - np.count_nonzero(net)) > 0:
            warn(
                f"{lost:,} of {n_pairs:,} compared pairs have the same weight in both directions, "
                f"and DifferenceGraph learns nothing from them. {_ADVICE}"
            )

    def _pairs(self, preferences: Preferences) -> Preferences:
        winner, loser, weight = preferences.winner, preferences.loser, preferences.weight
        n_rows = preferences.n_rows
        # The key of a pair is the same in both directions.
        low, high = np.minimum(winner, loser), np.maximum(winner, loser)
        pairs, number = np.unique(low * n_rows + high, return_inverse=True)
        net = np.bincount(number, np.where(winner == low, weight, -weight), len(pairs))
        # Treat sums of weights that differ only by rounding as equal.
        net[~exceeds(np.abs(net), 0.0, np.bincount(number, weight, len(pairs)))] = 0.0
        low, high = pairs // n_rows, pairs % n_rows
        forward = net > 0
        kept = net != 0
        return Preferences.from_pairs(
            np.where(forward, low, high)[kept],
            np.where(forward, high, low)[kept],
            np.abs(net)[kept],
            preferences.queries,
        )


def _add_pairs(
    preferences: Preferences,
    s: Floats,
    queries: Queries,
    margin: Margin,
    weight: Function,
    required: Function | None,
) -> Evaluation:
    """Sum the margins of given pairs, in time linear in the number of pairs."""
    positive = preferences.weight > 0
    winner, loser = preferences.winner[positive], preferences.loser[positive]
    y = preferences.weight[positive]
    of_weight, of_margin = function_of(weight), function_of(required)
    assert of_weight is not None
    d = s[winner] - s[loser]
    if of_margin is not None:
        d = d - of_margin(y)
    n = len(s)
    query = np.repeat(np.arange(queries.n_queries), queries.sizes)
    w = of_weight(y)
    value, slope, bend = (w * term for term in margin.at(d))
    return Evaluation(
        add_up(query[winner], value, queries.n_queries),
        add_up(winner, slope, n) - add_up(loser, slope, n),
        add_up(winner, bend, n) + add_up(loser, bend, n),
    )


def _rank_boost(v: Floats, s: Floats, queries: Queries) -> Evaluation:
    """Sum e^-(s_i - s_j) over the pairs with v_i > v_j, by sorting each query by v."""
    order = queries.sort(v)
    won, lost = np.full(len(s), -np.inf), np.full(len(s), -np.inf)
    for inside, valid in queries.buckets():
        rows = order[inside]
        levels = np.where(valid, v[rows], -np.inf)
        score = np.where(valid, s[rows], -np.inf)
        # Logarithms of the sums of e^s over all documents from a place on, and of e^-s up to it.
        below = np.logaddexp.accumulate(score[:, ::-1], axis=1)[:, ::-1]
        above = np.logaddexp.accumulate(np.where(valid, -s[rows], -np.inf), axis=1)
        place = np.broadcast_to(np.arange(levels.shape[1]), levels.shape)
        new = np.ones(levels.shape, dtype=bool)
        new[:, 1:] = levels[:, 1:] != levels[:, :-1]
        first = np.maximum.accumulate(np.where(new, place, 0), axis=1)  # of the same level
        ends = np.ones(levels.shape, dtype=bool)
        ends[:, :-1] = new[:, 1:]
        width = levels.shape[1]
        last = np.minimum.accumulate(np.where(ends, place, width)[:, ::-1], axis=1)[:, ::-1]
        nothing = np.full((len(levels), 1), -np.inf)
        after = np.take_along_axis(np.hstack([below, nothing]), last + 1, axis=1)
        before = np.take_along_axis(np.hstack([nothing, above]), first, axis=1)
        won[rows[valid]] = (after - s[rows])[valid]
        lost[rows[valid]] = (before + s[rows])[valid]
    fall, rise = capped_exp(won), capped_exp(lost)
    value = queries.reduce(np.add, straightened_exp(won))
    return Evaluation(value, rise - fall, rise + fall)
