"""Positional losses: sum_i u_i(y) phi(sigma(i)). Each class is a utility u and a discount phi.

Sorting by E[u(Y)] is optimal for every distribution of the labels when phi does not increase
(P2, theorem 3.2; P1, theorem 3), and least squares on u(y) estimates E[u(Y)]: that is the whole
method. P1 is Ramaswamy, Agarwal & Tewari (2013), P2 Calauzènes, Usunier & Gallinari (2013).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.losses._base import (
    BinaryLoss,
    Loss,
    NormalizedLoss,
    check_cutoff,
    check_real,
    exp2_minus_1,
)
from sklearn_rankcal.measures._formulas import Ranking, _divide, ideal, positional
from sklearn_rankcal.queries._queries import Queries
from sklearn_rankcal.utils._numbers import read_numbers

#: Sums of smaller utilities stay finite, over any query that fits into memory.
LARGEST_WORTH = 1e300
Gain = str | Callable[[NDArray[np.float64]], NDArray[np.float64]]


class PositionalLoss(Loss):
    """Base of the positional losses; a subclass writes `utilities` and `discounts`."""

    @property
    def calibrated_over(self) -> str:
        return (
            "every distribution of the labels (P2, theorem 3.2; P1, theorem 3): the measure is "
            "positional, so sorting by expected utility is optimal"
        )

    def discounts(self, n_places: int) -> NDArray[np.float64]:
        """phi(1) .. phi(n_places), non-increasing."""
        raise NotImplementedError

    def utilities(self, relevance: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
        """u(y) of every row: what a document is worth at a place of discount 1."""
        raise NotImplementedError

    def encode(self, relevance: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
        """The targets are the utilities."""
        return self.utilities(relevance, queries)

    def measure(self, ranked: Ranking, relevance: NDArray[np.float64]) -> NDArray[np.float64]:
        queries = ranked.queries
        value = positional(ranked, self.utilities(relevance, queries), self.discounts)
        return np.where(self.defined(relevance, queries), value, np.nan)

    def regret_constant(self, n_documents: int) -> float:
        """sqrt(2) C_phi(2), C_phi(2)^2 = sum_{i <= r/2} (phi(i) - phi(r - i + 1))^2.

        It is the largest distance between phi read in two orders, hence the bound of the theorem 3
        argument; P2 has the same constant for the pointwise squared template (table 2).
        """
        phi = self.discounts(n_documents)
        half = n_documents // 2
        return float(np.sqrt(2 * np.sum((phi[:half] - phi[::-1][:half]) ** 2)))


class NormalizedPositionalLoss(NormalizedLoss, PositionalLoss):
    """A positional loss whose utilities are a document's own worth over a normaliser."""

    @property
    def calibrated_over(self) -> str:
        return self._as_shrunken(super().calibrated_over)

    def utilities(self, relevance: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
        return self._targets(relevance, queries, 0.0)

    def offset(self, worth: NDArray[np.float64], queries: Queries) -> NDArray[np.float64] | float:
        """b(y) times the normaliser: the part of the measure that no ranking changes."""
        return 0.0

    def measure(self, ranked: Ranking, relevance: NDArray[np.float64]) -> NDArray[np.float64]:
        worth = self.encode_documents(relevance)
        value = positional(ranked, worth, self.discounts) + self.offset(worth, ranked.queries)
        return _divide(value, self.normalizer(worth, ranked.queries))


def _top(n_places: int, k: int | None) -> NDArray[np.bool_]:
    return np.arange(n_places) < (n_places if k is None else k)


class Precision(BinaryLoss, PositionalLoss):
    """Precision@q: the share of relevant documents among the first q.

    Parameters
    ----------
    q : int, default=10
        Number of places that count. The measure divides by q even where a query is smaller.
    threshold : float, default=None
        Relevance from which a document is relevant. None: labels must be 0 or 1.

    Notes
    -----
    Targets: y_i. ``loss="wta"`` (winner takes all) is q = 1. P1, section 4.
    """

    def __init__(self, q: int = 10, *, threshold: float | None = None) -> None:
        self.q = q
        self.threshold = threshold

    def check(self, relevance: NDArray[np.float64]) -> None:
        if self.q is None:
            raise ValueError("q must be a whole number >= 1; got None.")
        check_cutoff("q", self.q)
        super().check(relevance)

    def utilities(self, relevance: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
        return self.relevant(relevance).astype(np.float64)

    def discounts(self, n_places: int) -> NDArray[np.float64]:
        return _top(n_places, self.q) / self.q


class ERU(PositionalLoss):
    """Expected rank utility: sum_i max(y_i - neutral, 0) 2^((1 - sigma(i)) / (half_life - 1)).

    Parameters
    ----------
    neutral : float, default=0
        Neutral score v: only relevance above it is worth something.
    half_life : float, default=5
        Viewing half-life w > 1: the place whose discount is one half.

    Notes
    -----
    Targets: max(y_i - v, 0). P1, section 5.
    """

    def __init__(self, neutral: float = 0.0, half_life: float = 5.0) -> None:
        self.neutral = neutral
        self.half_life = half_life

    def check(self, relevance: NDArray[np.float64]) -> None:
        check_real("half_life", self.half_life)
        if not self.half_life > 1:
            raise ValueError(f"half_life must be finite and > 1; got {self.half_life!r}.")
        check_real("neutral", self.neutral)
        super().check(relevance)
        with np.errstate(over="ignore"):
            worth = relevance.max() - self.neutral
        if not worth < LARGEST_WORTH:
            raise ValueError(
                f"Relevance of {relevance.max():g} is too large for ERU, sums overflow: rescale "
                "the labels."
            )

    def utilities(self, relevance: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
        return self.encode_documents(relevance)

    def encode_documents(self, relevance: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.maximum(relevance - self.neutral, 0.0)

    def discounts(self, n_places: int) -> NDArray[np.float64]:
        return np.exp2(-np.arange(n_places) / (self.half_life - 1))


class DCG(PositionalLoss):
    """Discounted cumulative gain: sum over the first k places j of G(y) / log2(1 + j).

    Parameters
    ----------
    k : int, default=None
        Cutoff; None counts every place.
    gain : {"exp2", "linear"} or callable, default="exp2"
        G: ``2**y - 1``, ``y``, or a function of an array of labels, non-negative.

    Notes
    -----
    Targets: G(y_i). P1, theorem 3; P2, theorem 3.2.
    """

    positive_only = True

    def __init__(self, k: int | None = None, *, gain: Gain = "exp2") -> None:
        self.k = k
        self.gain = gain

    def check(self, relevance: NDArray[np.float64]) -> None:
        check_cutoff("k", self.k)
        if callable(self.gain):
            apply_gain(relevance, self.gain)
        else:
            super().check(relevance)
            apply_gain(relevance.max(keepdims=True), self.gain)  # the named gains increase

    def utilities(self, relevance: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
        return self.encode_documents(relevance)

    def encode_documents(self, relevance: NDArray[np.float64]) -> NDArray[np.float64]:
        return apply_gain(relevance, self.gain)

    def discounts(self, n_places: int) -> NDArray[np.float64]:
        return _top(n_places, self.k) / np.log2(np.arange(n_places) + 2.0)


class NDCG(NormalizedPositionalLoss, DCG):
    """Normalised DCG: DCG@k over the largest DCG@k that the query's labels allow.

    Parameters
    ----------
    k : int, default=None
        Cutoff; None counts every place.
    gain : {"exp2", "linear"} or callable, default="exp2"
        G: ``2**y - 1``, ``y``, or a function of an array of labels, non-negative.
    shrinkage : "auto" or float in [0, 1], default="auto"
        How far `fit` draws the normaliser to its mean over queries, to lower the targets'
        variance. "auto" is 300 / (300 + number of training queries), 0 the calibrated targets as
        such; a fixed number above 0 gives up calibration. The measure is not affected. See
        `NormalizedLoss`.

    Notes
    -----
    Targets: G(y_i) / Z_k(y). Normalising the labels BEFORE taking expectations is what makes
    regression NDCG consistent (Ravikumar, Tewari & Yang, 2011). Undefined for a query without
    gain. For a classifier the targets are those of DCG: the normaliser belongs to the whole query
    and no single document's class probabilities contain it. The rankings are then best for DCG, and
    for NDCG where the normaliser is certain; `fit` warns.
    """

    def __init__(
        self,
        k: int | None = None,
        *,
        gain: Gain = "exp2",
        shrinkage: str | float = "auto",
    ) -> None:
        super().__init__(k, gain=gain)
        self.shrinkage = shrinkage

    def normalizer(self, worth: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
        return ideal(queries, worth, self.discounts)


class Recall(NormalizedPositionalLoss, BinaryLoss):
    """Recall@k: the share of the relevant documents that stand among the first k.

    Parameters
    ----------
    k : int, default=10
        Number of places that count.
    threshold : float, default=None
        Relevance from which a document is relevant. None: labels must be 0 or 1.
    shrinkage : "auto" or float in [0, 1], default="auto"
        How far `fit` draws the normaliser to its mean over queries, to lower the targets'
        variance. "auto" is 1000 / (1000 + number of training queries), 0 the calibrated targets as
        such; a fixed number above 0 gives up calibration. The measure is not affected. See
        `NormalizedLoss`.

    Notes
    -----
    Targets: y_i / sum(y). Undefined for a query without a relevant document.
    """

    _half = 1000

    def __init__(
        self, k: int = 10, *, threshold: float | None = None, shrinkage: str | float = "auto"
    ) -> None:
        self.k = k
        self.threshold = threshold
        self.shrinkage = shrinkage

    def check(self, relevance: NDArray[np.float64]) -> None:
        if self.k is None:
            raise ValueError("k must be a whole number >= 1; got None.")
        check_cutoff("k", self.k)
        super().check(relevance)

    def normalizer(self, worth: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
        return queries.sum(worth)

    def discounts(self, n_places: int) -> NDArray[np.float64]:
        return _top(n_places, self.k).astype(np.float64)


class AUC(NormalizedPositionalLoss, BinaryLoss):
    """Area under the ROC curve inside each query: the share of (relevant, not) pairs in order.

    Parameters
    ----------
    threshold : float, default=None
        Relevance from which a document is relevant. None: labels must be 0 or 1.
    shrinkage : "auto" or float in [0, 1], default="auto"
        How far `fit` draws the normaliser to its mean over queries, to lower the targets'
        variance. "auto" is 1000 / (1000 + number of training queries), 0 the calibrated targets as
        such; a fixed number above 0 gives up calibration. The measure is not affected. See
        `NormalizedLoss`.

    Notes
    -----
    Targets: y_i / (n+ n-). Undefined for a query without a relevant, or without an irrelevant,
    document.
    """

    _half = 1000

    def __init__(self, *, threshold: float | None = None, shrinkage: str | float = "auto") -> None:
        self.threshold = threshold
        self.shrinkage = shrinkage

    def normalizer(self, worth: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
        positive = queries.sum(worth)
        return positive * (queries.sizes - positive)

    def discounts(self, n_places: int) -> NDArray[np.float64]:
        return -np.arange(1.0, n_places + 1)

    def offset(self, worth: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
        # of the r - position rows below a relevant one, the relevant ones make no pair
        positive = queries.sum(worth)
        return positive * (queries.sizes - (positive - 1) / 2)


class Spearman(PositionalLoss):
    """Spearman's rank correlation between the ranking and the order of the labels.

    Notes
    -----
    Equal labels share the mean of their positions (Pearson's correlation of midranks with
    positions, as in `scipy.stats.spearmanr`). Targets: (mean - midrank_i) / sd, times a constant
    of the query's size. Undefined when all labels of a query are equal.
    """

    def encode(self, relevance: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
        """(mean - midrank_i) / sd: unit variance in every query, whatever its size."""
        ranked = Ranking.from_scores(relevance, queries)
        middle = queries.repeat((queries.sizes - 1) / 2)
        if ranked.start is None or ranked.stop is None:
            above = middle - queries.place.astype(np.float64)
        else:
            above = middle - (ranked.start + ranked.stop - 1) / 2
        deviation = np.sqrt(ranked.sum(above**2) / queries.sizes)
        targets = np.empty(queries.n_rows)
        targets[ranked.order] = above / queries.repeat(np.where(deviation > 0, deviation, 1.0))
        return targets

    def utilities(self, relevance: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
        return self.encode(relevance, queries) / queries.broadcast(_position_scale(queries.sizes))

    def discounts(self, n_places: int) -> NDArray[np.float64]:
        return -np.arange(1.0, n_places + 1)

    def defined(self, relevance: NDArray[np.float64], queries: Queries) -> NDArray[np.bool_]:
        return queries.max(relevance) > queries.min(relevance)

    def regret_constant(self, n_documents: int) -> float:
        # the utilities are the targets over a constant of the query's size
        return super().regret_constant(n_documents) / float(_position_scale(n_documents))


def _position_scale(sizes: Any) -> Any:
    """r times the standard deviation of the positions 1 .. r (1 where rho is undefined, r = 1)."""
    return np.where(np.asarray(sizes) > 1, sizes * np.sqrt((np.square(sizes) - 1) / 12), 1.0)


class Positional(PositionalLoss):
    """Any positional measure of P2: your own utility of the labels and discount of the places.

    Parameters
    ----------
    utility : callable, default=None
        ``utility(relevance, queries) -> array of shape (n_documents,)``; None is the relevance
        itself. `queries` has per-query sums, maxima and so on, for utilities that depend on the
        whole query.
    discount : callable or array-like, default=None
        phi, non-increasing: a function of the array of places 1, 2, ..., or the first values (0
        beyond). None is 1 / log2(1 + place).

    Examples
    --------
    Reading only the first two places, the second counting half:

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
        utility: Callable[[NDArray[np.float64], Queries], ArrayLike] | None = None,
        discount: Callable[[NDArray[np.float64]], ArrayLike] | ArrayLike | None = None,
    ) -> None:
        self.utility = utility
        self.discount = discount

    def check(self, relevance: NDArray[np.float64]) -> None:
        super().check(relevance)
        self.discounts(1)

    def utilities(self, relevance: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
        if self.utility is None:
            return relevance
        # a copy: a function that writes into its argument must not change the labels
        values = read_numbers(self.utility(relevance.copy(), queries), "what utility returned")
        if values.shape != relevance.shape or not np.isfinite(values).all():
            raise ValueError(
                f"utility must return one finite number per document, shape {relevance.shape}; "
                f"got shape {values.shape}"
                + ("." if values.shape != relevance.shape else " with NaN or infinity.")
            )
        if not (np.abs(values) < LARGEST_WORTH).all():
            raise ValueError(
                f"utility returned {np.abs(values).max():g}, so that sums overflow: return smaller "
                "numbers."
            )
        return values

    def discounts(self, n_places: int) -> NDArray[np.float64]:
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
        if not np.isfinite(phi).all() or (np.diff(phi) > 0).any():
            raise ValueError(
                "discount must be finite and must not increase with the place: sorting is optimal "
                f"only then. It starts {phi[:5].tolist()}."
            )
        return phi[:n_places]


def apply_gain(relevance: NDArray[np.float64], gain: Gain) -> NDArray[np.float64]:
    """G(y) of an array of labels.

    Raises
    ------
    ValueError
        An unknown gain, a gain that overflows, is NaN or negative.
    """
    if callable(gain):
        # a copy: a function that writes into its argument must not change the labels
        gains = read_numbers(gain(relevance.copy()), "what gain returned")
        if gains.shape != relevance.shape:
            raise ValueError(f"gain must keep the shape {relevance.shape}; got {gains.shape}.")
    elif isinstance(gain, str) and gain == "exp2":
        gains = exp2_minus_1(relevance)
    elif isinstance(gain, str) and gain == "linear":
        gains = relevance
    else:
        raise ValueError(f"gain must be 'exp2', 'linear' or a callable; got {gain!r}.")
    if np.isnan(gains).any():
        row = int(np.flatnonzero(np.isnan(gains))[0])
        raise ValueError(f"gain returned NaN for the relevance {relevance[row]:g}.")
    # sums of gains must stay finite too, and products with discounts precise
    if not (np.abs(gains) < LARGEST_WORTH).all():
        remedy = (
            "Use gain='linear', or rescale the labels."
            if gain == "exp2"
            else ("Rescale the labels.")
        )
        raise ValueError(
            f"gain={gain!r} overflows: the largest relevance is {relevance.max():g}. {remedy}"
        )
    if gains.size and gains.min() < 0:
        raise ValueError(f"Negative values in data passed to the gain: got {gains.min():g}.")
    return gains
