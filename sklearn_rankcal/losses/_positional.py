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

from sklearn_rankcal.losses._base import Loss, NormalizedLoss
from sklearn_rankcal.losses._measure import (
    BinaryMeasure,
    divide,
    inverse,
)
from sklearn_rankcal.queries import Queries, Ranking
from sklearn_rankcal.utils._numbers import LARGEST, check_range, read_numbers
from sklearn_rankcal.utils._parameters import check_count, check_number
from sklearn_rankcal.utils._typing import Floats

Discounts = Callable[[int], Floats]

# ---------------------------------------------------------------- sums over places


def positional(ranking: Ranking, utility: Floats, discount: Discounts) -> Floats:
    """Return the sum over documents i of utility_i phi(sigma(i)), one value per query.

    ``discount(n)`` returns phi(1) .. phi(n). Every row in a block of ties gets the mean discount of
    the block. The result is the mean over all orders of the block, because the sum is linear in the
    discounts.
    """
    phi = discount(int(ranking.queries.sizes.max()))
    ranking = ranking.head(_depth(phi))
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
    phi = discount(int(queries.sizes.max()))
    best = Ranking(queries, np.arange(queries.n_rows)).head(_depth(phi))
    values = best.take(queries.sort_values(utility))
    return best.sum(values * phi[best.queries.place])


def _depth(phi: Floats) -> int:
    """Return the last place with a nonzero discount, at least 1."""
    return int(np.flatnonzero(phi)[-1]) + 1 if phi.any() else 1


def first_places(n_places: int, k: int | None) -> NDArray[np.bool_]:
    """Return whether each of the places 1 .. n_places is among the first k."""
    return np.arange(n_places) < (n_places if k is None else k)


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

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.losses import NDCG
    >>> from sklearn_rankcal.queries import Queries
    >>> NDCG(k=1, gain="linear").utilities(np.array([2.0, 1.0]), Queries.single(2)).tolist()
    [1.0, 0.5]
    """

    graded_targets = False

    @property
    def calibrated_over(self) -> str:
        return self._as_shrunken(super().calibrated_over)

    def offset(self, gains: Floats, queries: Queries) -> Floats | float:
        """Return the part of the measure that no ranking changes, times the normalizer."""
        return 0.0

    def utilities(self, relevance: Floats, queries: Queries) -> Floats:
        gains = self.gains(relevance)
        return gains * queries.broadcast(inverse(self.normalizer(gains, queries)))

    def defined(self, labels: Floats, queries: Queries) -> NDArray[np.bool_]:
        return self.normalizer(self.gains(labels), queries) > 0

    def per_query(self, ranking: Ranking, labels: Floats) -> Floats:
        gains = self.gains(labels)
        value = positional(ranking, gains, self.discounts) + self.offset(gains, ranking.queries)
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

    def __init__(self, k: int = 10, *, threshold: float | None = None) -> None:
        self.k = k
        self.threshold = threshold

    def check(self, labels: Floats) -> None:
        check_count(self.k, "k")
        super().check(labels)

    def discounts(self, n_places: int) -> Floats:
        return first_places(n_places, self.k) / self.k


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

    _half = 1000

    def __init__(
        self, k: int = 10, *, threshold: float | None = None, shrinkage: str | float = "auto"
    ) -> None:
        self.k = k
        self.threshold = threshold
        self.shrinkage = shrinkage

    def check(self, labels: Floats) -> None:
        check_count(self.k, "k")
        super().check(labels)

    def normalizer(self, gains: Floats, queries: Queries) -> Floats:
        return queries.sum(gains)

    def discounts(self, n_places: int) -> Floats:
        return first_places(n_places, self.k).astype(np.float64)


class AUC(BinaryMeasure, NormalizedPositionalLoss):
    """Area under the ROC curve: the share of relevant-irrelevant pairs in the right order.

    Parameters
    ----------
    threshold : float, default=None
        A label of at least `threshold` is relevant. If None, labels must be 0 or 1.
    shrinkage : "auto" or float in [0, 1], default="auto"
        As in `NDCG`.

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

    def offset(self, gains: Floats, queries: Queries) -> Floats:
        # A relevant row at position p has r - p rows below it. The sum over the n relevant rows is
        # n r - sum p. It contains n (n - 1) / 2 pairs of two relevant rows.
        positive = queries.sum(gains)
        return positive * (queries.sizes - (positive - 1) / 2)


# ---------------------------------------------------------------- graded relevance


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
