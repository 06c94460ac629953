"""Losses with a positional measure, a sum of utility times discount: sum_i u_i(y) phi(sigma(i)).

u_i(y) is the utility of document i given the labels y of its query, sigma(i) is the place of the
document, and phi(j) is the discount of place j. Sorting by expected utilities is optimal. The
targets are therefore the utilities.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.losses._base import (
    BinaryMeasure,
    Loss,
    Measure,
    NormalizedLoss,
    divide,
    inverse,
)
from sklearn_rankcal.queries import Queries, Ranking
from sklearn_rankcal.utils._messages import check_number
from sklearn_rankcal.utils._numbers import LARGEST, Floats, check_range, read_numbers

Discounts = Callable[[int], Floats]
#: A gain G by name, "exp2" or "linear", or a function of an array of labels.
Gain = str | Callable[[Floats], Floats]


#: How to choose the linear gain, for errors and warnings.
LINEAR_GAIN = (
    "Pass gain='linear' to the loss object, as in loss=NDCG(k=10, gain='linear') of "
    "sklearn_rankcal.losses. Pass it also to scorers and metrics, as in "
    "get_ranking_scorer('ndcg@10', gain='linear')."
)

# ---------------------------------------------------------------- sums over places


def positional(ranking: Ranking, utility: Floats, discount: Discounts) -> Floats:
    """Return the sum over documents i of utility_i phi(sigma(i)), one value per query.

    ``discount(n)`` returns phi(1) .. phi(n). Every row in a block of ties gets the mean discount of
    the block. The result is the mean over all orders of the block, because the sum is linear in the
    discounts.
    """
    phi = discount(int(ranking.queries.sizes.max()))
    if phi[-1] == 0:  # leave out the places after the last nonzero discount
        counted = np.flatnonzero(phi)
        ranking = ranking.head(int(counted[-1]) + 1 if len(counted) else 1)
    at = phi[ranking.queries.place]
    if ranking.start is not None:
        # Add up the discounts of each block separately. A difference of running sums would lose the
        # digits of small discounts.
        first = np.flatnonzero(ranking.queries.place == ranking.start)
        length = np.diff(np.append(first, len(at)))
        at = np.repeat(np.add.reduceat(at, first) / length, length)
    return ranking.sum(ranking.take(utility) * at)


def ideal(queries: Queries, utility: Floats, discount: Discounts) -> Floats:
    """Return the maximum of `positional` over rankings, by sorting by descending utility."""
    in_order = Ranking(queries, np.arange(queries.n_rows))
    return positional(in_order, queries.sort_values(utility), discount)


# ---------------------------------------------------------------- base classes


class PositionalLoss(Loss):
    """Base class of losses with a positional measure, sum_i u_i(y) phi(sigma(i)).

    u_i(y) is the utility of document i, and phi(sigma(i)) is the discount of its place. A subclass
    implements `utilities` and `discounts`. With tied scores, the value is the mean over all orders
    of the tied documents.

    Examples
    --------
    >>> from sklearn_rankcal.losses import DCG
    >>> DCG(k=2).discounts(3).round(3).tolist()
    [1.0, 0.631, 0.0]
    """

    def discounts(self, n_places: int) -> Floats:
        """Return the discounts phi(1) .. phi(n_places), which must not increase."""
        raise self._lacks("a method discounts(n_places), which returns a number per place")

    def utilities(self, relevance: Floats, queries: Queries) -> Floats:
        """Return the utility u(y) of every row."""
        raise self._lacks("a method utilities(relevance, queries), which returns a number per row")

    def per_query(self, ranking: Ranking, labels: Floats) -> Floats:
        queries = ranking.queries
        value = positional(ranking, self.utilities(labels, queries), self.discounts)
        return np.where(self.defined(labels, queries), value, np.nan)

    def encode(self, relevance: Floats, queries: Queries) -> Floats:
        """Compute the targets, which are the utilities."""
        return self.utilities(relevance, queries)

    @property
    def calibrated_over(self) -> str:
        return (
            "every distribution of the labels (Calauzènes et al., 2013, theorem 3.2; Ramaswamy et "
            "al., 2013, theorem 3): the measure is positional, so sorting by expected utility is "
            "optimal"
        )

    def discount_constant(self, n_documents: int, p: float = 2.0) -> float:
        """Return C_phi(p), where C_phi(p)^p = sum_{i <= r/2} (phi(i) - phi(r - i + 1))^p.

        phi are the discounts of places, scaled to match the targets as utilities. If p is infinite,
        C_phi(p) = phi(1) - phi(r). This is the constant of lemma 5.1 of Calauzènes et al. (2013).
        In the proof of the lemma, the exponent q of the discounts is a misprint of p.
        """
        phi = self.discounts(n_documents)
        half = n_documents // 2
        if half == 0:
            return 0.0
        return float(np.linalg.norm(phi[:half] - phi[::-1][:half], ord=p))

    def regret_constant(self, n_documents: int) -> float:
        """Return sqrt(2) C_phi(2), where C_phi(2)^2 = sum_{i <= r/2} (phi(i) - phi(r - i + 1))^2.

        This is the largest distance between the discount vectors of two rankings (Ramaswamy et al.,
        2013, theorem 3; Calauzènes et al., 2013, table 2).
        """
        return float(np.sqrt(2) * self.discount_constant(n_documents))


class GainLoss(PositionalLoss):
    """Base class of positional losses in which a utility depends only on the document's own label.

    A subclass implements `gains` and `discounts`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.estimator_checks import check_loss
    >>> from sklearn_rankcal.losses import GainLoss
    >>> class FirstTwo(GainLoss):
    ...     def gains(self, relevance):
    ...         return relevance
    ...
    ...     def discounts(self, n_places):
    ...         return (np.arange(n_places) < 2).astype(float)
    >>> check_loss(FirstTwo())
    """

    graded_targets = True

    def gains(self, relevance: Floats) -> Floats:
        """Return the gain of every row: the utility before any normalization."""
        raise self._lacks("a method gains(relevance), which returns a number per row")

    def utilities(self, relevance: Floats, queries: Queries) -> Floats:
        return self.gains(relevance)


class NormalizedPositionalLoss(NormalizedLoss, GainLoss):
    """Base class of positional losses in which gains are divided by a normalizer of the query.

    A subclass implements `gains`, `normalizer` and `discounts`. The measure is undefined for a
    query with the normalizer 0.
    """

    graded_targets = False

    @property
    def calibrated_over(self) -> str:
        return self._as_shrunken(super().calibrated_over)

    def utilities(self, relevance: Floats, queries: Queries) -> Floats:
        gains = self.gains(relevance)
        return gains * queries.broadcast(inverse(self.normalizer(gains, queries)))

    def defined(self, labels: Floats, queries: Queries) -> NDArray[np.bool_]:
        return self.normalizer(self.gains(labels), queries) > 0

    def per_query(self, ranking: Ranking, labels: Floats) -> Floats:
        gains = self.gains(labels)
        value = positional(ranking, gains, self.discounts)
        return divide(value, self.normalizer(gains, ranking.queries))


# ---------------------------------------------------------------- binary relevance


class Precision(BinaryMeasure, GainLoss):
    """Precision@k: the share of relevant documents among the first k documents.

    Parameters
    ----------
    k : int, default=10
        Cutoff: only the first k places count. The measure divides by k even if the query has fewer
        documents.
    threshold : float, default=None
        A label of at least `threshold` is relevant. If None, labels must be 0 or 1.

    Notes
    -----
    The targets are the labels, made binary by `threshold` (Ramaswamy et al., 2013, section 4).

    Examples
    --------
    >>> from sklearn_rankcal import CalibratedRanker
    >>> from sklearn_rankcal.losses import Precision
    >>> ranker = CalibratedRanker(loss=Precision(k=5, threshold=2))
    """

    needs_cutoff = True

    def __init__(self, k: int = 10, *, threshold: float | None = None) -> None:
        self.k = k
        self.threshold = threshold

    def discounts(self, n_places: int) -> Floats:
        return (np.arange(n_places) < self.k) / self.k


class Recall(BinaryMeasure, NormalizedPositionalLoss):
    """Recall@k: the share of the relevant documents that are among the first k documents.

    Parameters
    ----------
    k : int, default=10
        Cutoff: only the first k places count.
    threshold : float, default=None
        A label of at least `threshold` is relevant. If None, labels must be 0 or 1.
    shrinkage : "auto" or float in [0, 1], default="auto"
        As in `NDCG`.

    Notes
    -----
    The targets are y_i / sum(y). The measure is undefined for a query without a relevant document.

    Examples
    --------
    >>> from sklearn_rankcal import CalibratedRanker
    >>> from sklearn_rankcal.losses import Recall
    >>> ranker = CalibratedRanker(loss=Recall(k=20, threshold=2))
    """

    needs_cutoff = True
    _half = 1000

    def __init__(
        self, k: int = 10, *, threshold: float | None = None, shrinkage: str | float = "auto"
    ) -> None:
        self.k = k
        self.threshold = threshold
        self.shrinkage = shrinkage

    def normalizer(self, gains: Floats, queries: Queries) -> Floats:
        return queries.sum(gains)

    def discounts(self, n_places: int) -> Floats:
        return (np.arange(n_places) < self.k).astype(np.float64)


class Choice(PositionalLoss):
    """Share of the choices that fall on the first document.

    A query is a choice between its documents. The label of a document is 1 if it was chosen and
    otherwise 0, or it counts how often the document was chosen.

    Notes
    -----
    The targets y_i / sum(y) are the shares of the choices. Their expected values are the choice
    probabilities, which `CalibratedRanker.choice_probabilities` estimates (:ref:`choices`). The
    loss is undefined for a query without a chosen document, or with a single document.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.losses import Choice
    >>> from sklearn_rankcal.queries import Queries
    >>> Choice().encode(np.array([3.0, 1.0, 0.0]), Queries.single(3)).tolist()
    [0.75, 0.25, 0.0]
    """

    non_negative = True
    bounds = (0.0, 1.0)

    def utilities(self, relevance: Floats, queries: Queries) -> Floats:
        total = np.where(queries.sizes > 1, queries.sum(relevance), 0.0)
        return relevance * queries.broadcast(inverse(total))

    def defined(self, labels: Floats, queries: Queries) -> NDArray[np.bool_]:
        return (queries.sum(labels) > 0) & (queries.sizes > 1)

    def discounts(self, n_places: int) -> Floats:
        return (np.arange(n_places) < 1).astype(np.float64)


class ChoiceLogLoss(Measure):
    """Mean negative logarithm of the probability of the chosen document, smaller is better.

    The scores of the ranking must be probabilities, such as those of
    `CalibratedRanker.choice_probabilities`. The labels are those of `Choice`. If several documents
    of a query were chosen, the value is the mean over its choices.

    Notes
    -----
    Probabilities below 2.2e-16 count as 2.2e-16. The expected value is smallest for the choice
    probabilities of the data: it is a proper scoring rule.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.losses import ChoiceLogLoss
    >>> from sklearn_rankcal.queries import Queries, Ranking
    >>> ranking = Ranking.from_scores(np.array([0.5, 0.2, 0.3]), Queries.single(3))
    >>> ChoiceLogLoss().per_query(ranking, np.array([1.0, 0.0, 0.0])).round(3).tolist()
    [0.693]
    """

    greater_is_better = False
    non_negative = True
    bounds = (0.0, np.inf)

    def defined(self, labels: Floats, queries: Queries) -> NDArray[np.bool_]:
        return Choice().defined(labels, queries)

    def per_query(self, ranking: Ranking, labels: Floats) -> Floats:
        queries, given = ranking.queries, ranking.scores
        if given is None or given.min() < 0 or np.abs(queries.sum(given) - 1).max() > 1e-4:
            raise ValueError(
                "'choice_log_loss' needs probabilities, such as those of choice_probabilities, in "
                "the place of scores: they are not negative and sum to 1 (up to 1e-4) in each "
                "query. Pass the choices as groups, and do not skip unjudged rows."
            )
        logs = np.log(np.maximum(given, np.finfo(np.float64).eps))
        value = -queries.sum(Choice().utilities(labels, queries) * logs)
        return np.where(self.defined(labels, queries), value, np.nan)


class AUC(BinaryMeasure, NormalizedPositionalLoss):
    """Area under the ROC curve: the share of relevant-irrelevant pairs in the right order.

    Parameters
    ----------
    threshold, shrinkage
        As in `Recall`.

    Notes
    -----
    The targets are y_i / (n+ n-), where n+ and n- are the numbers of relevant and irrelevant
    documents of the query. The measure is undefined if n+ or n- is 0.

    Examples
    --------
    >>> from sklearn_rankcal import CalibratedRanker
    >>> from sklearn_rankcal.losses import AUC
    >>> ranker = CalibratedRanker(loss=AUC(threshold=2))
    """

    _half = 1000

    def __init__(self, *, threshold: float | None = None, shrinkage: str | float = "auto") -> None:
        self.threshold = threshold
        self.shrinkage = shrinkage

    def normalizer(self, gains: Floats, queries: Queries) -> Floats:
        positive = queries.sum(gains)
        return positive * (queries.sizes - positive)

    def discounts(self, n_places: int) -> Floats:
        return -np.arange(1.0, n_places + 1)

    def per_query(self, ranking: Ranking, labels: Floats) -> Floats:
        # A relevant row at position p has r - p rows below it. The sum over the n relevant rows is
        # n r - sum p. It contains n (n - 1) / 2 pairs of two relevant rows.
        gains, queries = self.gains(labels), ranking.queries
        positive = queries.sum(gains)
        below = positive * (queries.sizes - (positive - 1) / 2)
        value = positional(ranking, gains, self.discounts) + below
        return divide(value, self.normalizer(gains, queries))


# ---------------------------------------------------------------- graded relevance


def called_gains(relevance: Floats, gain: Callable[[Floats], Floats]) -> Floats:
    """Return what a gain function returns for labels, checked: one number from 0 to 1e50 each."""
    # pass a copy, because the function might write into its argument
    gains = read_numbers(gain(relevance.copy()), "what gain returned")
    if gains.shape != relevance.shape:
        raise ValueError(f"gain must keep the shape {relevance.shape}; got {gains.shape}.")
    if np.isnan(gains).any():
        undefined = relevance[np.isnan(gains)][0]
        raise ValueError(f"gain returned NaN for the relevance {undefined:g}.")
    check_range(gains, "what gain returned")
    if gains.size and gains.min() < 0:
        raise ValueError(f"Negative values in data passed to the gain: got {gains.min():g}.")
    return gains


def exp2_minus_1(relevance: Floats) -> Floats:
    """Return 2**y - 1, with full precision for small y."""
    with np.errstate(over="ignore"):  # the callers raise an error if this overflows
        large = np.exp2(relevance) - 1
        small = np.expm1(relevance * np.log(2))
    return np.where(np.abs(relevance) < 0.5, small, large)


class DCG(GainLoss):
    """Discounted cumulative gain: the sum over the first k places j of G(y_(j)) / log2(1 + j).

    y_(j) is the label of the document at place j.

    Parameters
    ----------
    k : int, default=None
        Cutoff: only the first k places count. If None, every place counts.
    gain : {"exp2", "linear"} or callable, default="exp2"
        The function G. ``"exp2"`` is ``2**y - 1``, and ``"linear"`` is ``y``. A function maps an
        array of labels to gains >= 0.

    Notes
    -----
    The targets are G(y_i).

    Examples
    --------
    >>> from sklearn_rankcal import CalibratedRanker
    >>> from sklearn_rankcal.losses import DCG
    >>> ranker = CalibratedRanker(loss=DCG(k=10, gain="linear"))
    """

    bounds = (0.0, np.inf)

    def __init__(self, k: int | None = None, *, gain: Gain = "exp2") -> None:
        self.k = k
        self.gain = gain

    @property
    def non_negative(self) -> bool:  # type: ignore[override]
        return not callable(self.gain)

    def check(self, labels: Floats) -> None:
        super().check(labels)
        # the named gains increase with y
        self.gains(labels if callable(self.gain) else labels.max(keepdims=True))

    def gains(self, relevance: Floats) -> Floats:
        """Return G(y) of every row, numbers from 0 to 1e50."""
        gain = self.gain
        if callable(gain):
            gains = called_gains(relevance, gain)
        elif isinstance(gain, str) and gain == "exp2":
            gains = exp2_minus_1(relevance)
        elif isinstance(gain, str) and gain == "linear":
            gains = relevance
        else:
            raise ValueError(f"gain must be 'exp2', 'linear' or a callable; got {gain!r}.")
        if gains.size and gains.max() > LARGEST**2:
            remedy = f"{LINEAR_GAIN} Or rescale" if gain == "exp2" else "Rescale"
            raise ValueError(
                f"gain={gain!r} exceeds {LARGEST**2:g}: the largest relevance is "
                f"{relevance.max():g}. {remedy} the labels."
            )
        return gains

    def discounts(self, n_places: int) -> Floats:
        """Return 1 / log2(1 + j) for the first k places j, and 0 for all other places."""
        phi = 1.0 / np.log2(np.arange(n_places) + 2.0)
        if self.k is not None:
            phi[self.k :] = 0.0
        return phi


class NDCG(DCG, NormalizedPositionalLoss):
    """Normalized DCG: DCG@k divided by the DCG@k of the best ranking.

    Parameters
    ----------
    k : int, default=None
        Cutoff: only the first k places count. If None, every place counts.
    gain : {"exp2", "linear"} or callable, default="exp2"
        As in `DCG`. If labels are amounts, such as money or numbers of clicks, use ``"linear"`` in
        the loss, in metrics and in scorers.
    shrinkage : "auto" or float in [0, 1], default="auto"
        How far `fit` shrinks the normalizer of each query towards the mean over queries, which
        lowers the variance of the targets. ``"auto"`` decreases with the number of queries. With a
        fixed number above 0, the loss is no longer calibrated. The measure is not affected. See
        `NormalizedLoss`.

    Notes
    -----
    The targets are G(y_i) / Z_k(y), where Z_k(y) is the DCG@k of the best ranking. Gains are
    normalized before expectations are taken, which makes regression consistent (Ravikumar, Tewari
    and Yang, 2011). The measure is undefined for a query in which every gain is 0.

    Examples
    --------
    >>> from sklearn_rankcal import CalibratedRanker
    >>> from sklearn_rankcal.losses import NDCG
    >>> ranker = CalibratedRanker(loss=NDCG(k=10, gain="linear"))
    """

    bounds = (0.0, 1.0)

    def __init__(
        self, k: int | None = None, *, gain: Gain = "exp2", shrinkage: str | float = "auto"
    ) -> None:
        self.k = k
        self.gain = gain
        self.shrinkage = shrinkage

    def normalizer(self, gains: Floats, queries: Queries) -> Floats:
        """Return the DCG@k of the best ranking of each query."""
        return ideal(queries, gains, self.discounts)


class ERU(GainLoss):
    """Expected rank utility: sum_i max(y_i - neutral, 0) 2^((1 - sigma(i)) / (half_life - 1)).

    sigma(i) is the place of document i in the ranking.

    Parameters
    ----------
    neutral : float, default=0
        Neutral relevance. A document counts only if its relevance is larger.
    half_life : float, default=5
        Viewing half-life: the place with the discount one half. It must be larger than 1.

    Notes
    -----
    The targets are max(y_i - neutral, 0) (Ramaswamy et al., 2013, section 5).

    Examples
    --------
    >>> from sklearn_rankcal import CalibratedRanker
    >>> from sklearn_rankcal.losses import ERU
    >>> ranker = CalibratedRanker(loss=ERU(neutral=2, half_life=10))
    """

    bounds = (0.0, np.inf)

    def __init__(self, neutral: float = 0.0, half_life: float = 5.0) -> None:
        self.neutral = neutral
        self.half_life = half_life

    def check(self, labels: Floats) -> None:
        check_number(self.half_life, "half_life", "(1, inf)")
        check_number(self.neutral, "neutral", "(-inf, inf)")
        check_range(np.array([self.neutral], dtype=np.float64), "neutral")

    def gains(self, relevance: Floats) -> Floats:
        return np.maximum(relevance - self.neutral, 0.0)

    def discounts(self, n_places: int) -> Floats:
        return np.exp2(-np.arange(n_places) / (self.half_life - 1))


# ---------------------------------------------------------------- the order of labels


def position_scale(sizes: Any) -> Any:
    """Return r times the standard deviation of the positions 1 .. r of a query.

    The result is 1 for r = 1, because Spearman's rho is undefined for a single document.
    """
    return np.where(np.asarray(sizes) > 1, sizes * np.sqrt((np.square(sizes) - 1) / 12), 1.0)


class Spearman(PositionalLoss):
    """Spearman's rank correlation between the ranking and the labels.

    Notes
    -----
    The measure is Pearson's correlation of positions with the midranks of the labels. The targets
    are (mean - midrank_i) / standard deviation. They equal the utilities up to a constant that
    depends on the size of the query. The measure is undefined if all labels of a query are equal.

    Examples
    --------
    >>> from sklearn_rankcal import CalibratedRanker
    >>> from sklearn_rankcal.losses import Spearman
    >>> ranker = CalibratedRanker(loss=Spearman())
    """

    bounds = (-1.0, 1.0)

    def encode(self, relevance: Floats, queries: Queries) -> Floats:
        """Compute (mean - midrank_i) / standard deviation."""
        return self.standardized_midranks(relevance, queries)

    def discount_constant(self, n_documents: int, p: float = 2.0) -> float:
        # The utilities are the targets divided by `position_scale`, so the constant is divided too.
        return super().discount_constant(n_documents, p) / float(position_scale(n_documents))

    def standardized_midranks(self, relevance: Floats, queries: Queries) -> Floats:
        """Return (mean - midrank_i) / standard deviation for every row i, within its query.

        The result is 0 in a query in which all labels are equal.
        """
        ranking = Ranking.from_scores(relevance, queries)
        middle = queries.repeat((queries.sizes - 1) / 2)
        if ranking.start is None or ranking.stop is None:
            above = middle - queries.place.astype(np.float64)
        else:
            above = middle - (ranking.start + ranking.stop - 1) / 2
        deviation = np.sqrt(ranking.sum(above**2) / queries.sizes)
        values = np.empty(queries.n_rows)
        values[ranking.order] = above / queries.repeat(np.where(deviation > 0, deviation, 1.0))
        return values

    def utilities(self, relevance: Floats, queries: Queries) -> Floats:
        midranks = self.standardized_midranks(relevance, queries)
        return midranks / queries.broadcast(position_scale(queries.sizes))

    def discounts(self, n_places: int) -> Floats:
        return -np.arange(1.0, n_places + 1)

    def defined(self, labels: Floats, queries: Queries) -> NDArray[np.bool_]:
        return queries.max(labels) > queries.min(labels)


# ---------------------------------------------------------------- utility and discount of the user


class Positional(PositionalLoss):
    """A positional loss with a utility and a discount given by the user.

    Parameters
    ----------
    utility : callable, default=None
        ``utility(relevance, queries)`` returns the utilities, an array of shape (n_documents,). The
        methods of `queries` (`queries.Queries`) compute sums, maxima and so on of each query. If
        None, the utility is the relevance.
    discount : callable or array-like, default=None
        The discount of each place, which must not increase. A function maps the array of places
        1, 2, ... to discounts. An array holds the discounts of the first places; all further
        discounts are 0. If None, the discount is 1 / log2(1 + place).

    Examples
    --------
    Only the first two places count, and the second counts half:

    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn_rankcal import CalibratedRanker
    >>> from sklearn_rankcal.losses import Positional
    >>> loss = Positional(lambda y, queries: np.sqrt(y), [1.0, 0.5])
    >>> X, y, groups = [[0.0], [1.0], [2.0]] * 2, [0, 4, 9] * 2, [0, 0, 0, 1, 1, 1]
    >>> ranker = CalibratedRanker(Ridge(), loss=loss).fit(X, y, groups=groups)
    >>> ranker.predict([[2.0], [0.0], [1.0]], groups=[0, 0, 0]).tolist()
    [1, 3, 2]
    """

    def __init__(
        self,
        utility: Callable[[Floats, Queries], ArrayLike] | None = None,
        discount: Callable[[Floats], ArrayLike] | ArrayLike | None = None,
    ) -> None:
        self.utility = utility
        self.discount = discount

    def check(self, labels: Floats) -> None:
        super().check(labels)
        self.discounts(1)

    def utilities(self, relevance: Floats, queries: Queries) -> Floats:
        if self.utility is None:
            return relevance
        # pass a copy, because the function might write into its argument
        try:
            made = self.utility(relevance.copy(), queries)
        except TypeError as error:
            raise TypeError(
                f"utility(relevance, queries) raised: {error}. It must take two arguments, as in "
                "utility=lambda relevance, queries: numpy.sqrt(relevance)."
            ) from error
        values = read_numbers(made, "what utility returned")
        if values.shape != relevance.shape or not np.isfinite(values).all():
            raise ValueError(
                f"utility must return one finite number per document, shape {relevance.shape}; "
                f"got shape {values.shape}"
                + ("." if values.shape != relevance.shape else ", with NaN or infinity.")
            )
        check_range(values, "what utility returned")
        return values

    def discounts(self, n_places: int) -> Floats:
        places = np.arange(1.0, n_places + 1)
        if self.discount is None:
            phi = 1 / np.log2(1 + places)
        elif callable(self.discount):
            phi = read_numbers(self.discount(places), "what discount returned")
        else:
            given = read_numbers(self.discount, "discount")
            phi = np.zeros(max(n_places, given.size))
            phi[: given.size] = given.ravel()
        if phi.ndim != 1 or len(phi) < n_places:
            raise ValueError(f"discount must give one value per place; got shape {phi.shape}.")
        if not (np.abs(phi) <= LARGEST).all() or (np.diff(phi) > 0).any():
            raise ValueError(
                f"discount must be finite, at most {LARGEST:g} in absolute value, and must not "
                f"increase; got {phi[:5].tolist()} for the first places. Sorting is only optimal "
                "for such discounts."
            )
        return phi[:n_places]
