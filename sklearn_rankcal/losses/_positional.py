"""Positional losses: sum_i u_i(y) phi(sigma(i)). Each class is a utility u and a discount phi.

Sorting by E[u(Y)] is optimal for every distribution of the labels when phi does not increase
(P2, theorem 3.2; P1, theorem 3), and least squares on u(y) estimates E[u(Y)]: that is the whole
method. P1 is Ramaswamy, Agarwal & Tewari (2013), P2 Calauzènes, Usunier & Gallinari (2013).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal import measures
from sklearn_rankcal.losses._base import Loss, NormalizedLoss
from sklearn_rankcal.measures import Gain
from sklearn_rankcal.queries import Queries


class PositionalLoss(Loss):
    """Base of the losses whose measure is a `measures.PositionalMeasure`."""

    @property
    def measure(self) -> measures.PositionalMeasure:
        raise NotImplementedError

    def encode(self, relevance: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
        """The targets are the utilities u(y) of the measure."""
        return self.measure.utilities(relevance, queries)

    def encode_documents(self, relevance: NDArray[np.float64]) -> NDArray[np.float64]:
        if not isinstance(self.measure, measures.GainMeasure):
            return super().encode_documents(relevance)
        return self.measure.gains(relevance)

    @property
    def calibrated_over(self) -> str:
        return (
            "every distribution of the labels (P2, theorem 3.2; P1, theorem 3): the measure is "
            "positional, so sorting by expected utility is optimal"
        )

    def regret_constant(self, n_documents: int) -> float:
        """sqrt(2) C_phi(2), C_phi(2)^2 = sum_{i <= r/2} (phi(i) - phi(r - i + 1))^2.

        It is the largest distance between phi read in two orders, hence the bound of the theorem 3
        argument; P2 has the same constant for the pointwise squared template (table 2).
        """
        phi = self.measure.discounts(n_documents)
        half = n_documents // 2
        return float(np.sqrt(2 * np.sum((phi[:half] - phi[::-1][:half]) ** 2)))


class NormalizedPositionalLoss(NormalizedLoss, PositionalLoss):
    """A positional loss whose utilities are a document's gain over a normaliser of the query."""

    @property
    def calibrated_over(self) -> str:
        return self._as_shrunken(super().calibrated_over)


class Precision(PositionalLoss):
    """Precision@k: the share of relevant documents among the first k.

    Parameters
    ----------
    k : int, default=10
        Number of places that count. The measure divides by q even where a query is smaller.
    threshold : float, default=None
        Relevance from which a document is relevant. None: labels must be 0 or 1.

    Notes
    -----
    Targets: y_i. ``loss="wta"`` (winner takes all) is k = 1. P1, section 4.
    """

    def __init__(self, k: int = 10, *, threshold: float | None = None) -> None:
        self.k = k
        self.threshold = threshold

    @property
    def measure(self) -> measures.Precision:
        return measures.Precision(k=self.k, threshold=self.threshold)


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

    @property
    def measure(self) -> measures.ERU:
        return measures.ERU(neutral=self.neutral, half_life=self.half_life)


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

    def __init__(self, k: int | None = None, *, gain: Gain = "exp2") -> None:
        self.k = k
        self.gain = gain

    @property
    def measure(self) -> measures.DCG:
        return measures.DCG(k=self.k, gain=self.gain)


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

    @property
    def measure(self) -> measures.NDCG:
        return measures.NDCG(k=self.k, gain=self.gain)


class Recall(NormalizedPositionalLoss):
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

    @property
    def measure(self) -> measures.Recall:
        return measures.Recall(k=self.k, threshold=self.threshold)


class AUC(NormalizedPositionalLoss):
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

    @property
    def measure(self) -> measures.AUC:
        return measures.AUC(threshold=self.threshold)


class Spearman(PositionalLoss):
    """Spearman's rank correlation between the ranking and the order of the labels.

    Notes
    -----
    Equal labels share the mean of their positions (Pearson's correlation of midranks with
    positions, as in `scipy.stats.spearmanr`). Targets: (mean - midrank_i) / sd, times a constant
    of the query's size. Undefined when all labels of a query are equal.
    """

    @property
    def measure(self) -> measures.Spearman:
        return measures.Spearman()

    def encode(self, relevance: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
        """(mean - midrank_i) / sd: unit variance in every query, whatever its size."""
        return self.measure.standardized_midranks(relevance, queries)

    def regret_constant(self, n_documents: int) -> float:
        # the utilities are the targets over a constant of the query's size
        return super().regret_constant(n_documents) / float(measures.position_scale(n_documents))


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

    @property
    def measure(self) -> measures.Positional:
        return measures.Positional(utility=self.utility, discount=self.discount)
