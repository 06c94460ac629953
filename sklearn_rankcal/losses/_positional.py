"""Losses whose measure is positional, that is of the form sum_i u_i(y) phi(sigma(i)).

u_i(y) is the utility of document i under the labels y, sigma(i) is its place, and phi is a discount
of the places. Labels come in, and one target per document comes out: its utility. Sorting by
E[u(Y)] is optimal for every distribution of the labels, and least squares on u(y) estimates it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.losses._base import Loss, NormalizedLoss
from sklearn_rankcal.measures import GainMeasure
from sklearn_rankcal.measures._positional import Gain, position_scale
from sklearn_rankcal.measures._positional import Positional as PositionalByUser
from sklearn_rankcal.queries import Queries

Floats = NDArray[np.float64]


class PositionalLoss(Loss):
    """Base class of losses whose measure is a `measures.PositionalMeasure`."""

    def encode(self, relevance: Floats, queries: Queries) -> Floats:
        """Compute the targets, which are the utilities u(y) of the measure."""
        utilities: Floats = self.measure.utilities(relevance, queries)
        return utilities

    @property
    def graded_targets(self) -> bool:
        return isinstance(self.measure, GainMeasure)

    @property
    def calibrated_over(self) -> str:
        return (
            "every distribution of the labels (Calauzènes et al., 2013, theorem 3.2; Ramaswamy et "
            "al., 2013, theorem 3): the measure is positional, so sorting by expected utility is "
            "optimal"
        )

    def discount_constant(self, n_documents: int, p: float = 2.0) -> float:
        """Return C_phi(p), where C_phi(p)^p = sum_{i <= r/2} (phi(i) - phi(r - i + 1))^p.

        phi are the discounts of places, in the unit in which the utilities are the targets. If p is
        infinite, C_phi(p) = phi(1) - phi(r). This is the constant of lemma 5.1 of Calauzènes et al.
        (2013), in whose proof the exponent q of the discounts is a misprint of p.
        """
        phi = self.measure.discounts(n_documents)
        half = n_documents // 2
        if half == 0:
            return 0.0
        return float(np.linalg.norm(phi[:half] - phi[::-1][:half], ord=p))

    def regret_constant(self, n_documents: int) -> float:
        """Return sqrt(2) C_phi(2), where C_phi(2)^2 = sum_{i <= r/2} (phi(i) - phi(r - i + 1))^2.

        This is the largest distance between the vectors of the discounts of the documents under two
        rankings, as in theorem 3 of Ramaswamy et al. (2013) and table 2 of Calauzènes et al.
        (2013).
        """
        return float(np.sqrt(2) * self.discount_constant(n_documents))


class NormalizedPositionalLoss(NormalizedLoss, PositionalLoss):
    """Base class of positional losses whose utility is a gain divided by a normalizer."""

    @property
    def calibrated_over(self) -> str:
        return self._as_shrunken(super().calibrated_over)


class Precision(PositionalLoss):
    """Precision@k: the share of relevant documents among the first k documents.

    Parameters
    ----------
    k : int, default=10
        Number of places that count. The measure divides by k even if the query has fewer documents.
    threshold : float, default=None
        A document is relevant if its label is at least `threshold`. If None, labels must be 0 or 1.

    Notes
    -----
    The targets are the labels y_i, made binary by `threshold`. ``loss="wta"`` (winner takes all)
    stands for k = 1. See Ramaswamy et al. (2013), section 4.
    """

    _measure = "precision"

    def __init__(self, k: int = 10, *, threshold: float | None = None) -> None:
        self.k = k
        self.threshold = threshold


class ERU(PositionalLoss):
    """Expected rank utility: sum_i max(y_i - neutral, 0) 2^((1 - sigma(i)) / (half_life - 1)).

    sigma(i) is the place of document i in the ranking.

    Parameters
    ----------
    neutral : float, default=0
        Neutral relevance. A document adds to the measure only if its relevance is larger.
    half_life : float, default=5
        Viewing half-life: the place whose discount is one half. It must be larger than 1.

    Notes
    -----
    The targets are max(y_i - neutral, 0). See Ramaswamy et al. (2013), section 5.
    """

    _measure = "eru"

    def __init__(self, neutral: float = 0.0, half_life: float = 5.0) -> None:
        self.neutral = neutral
        self.half_life = half_life


class DCG(PositionalLoss):
    """Discounted cumulative gain: the sum over the first k places j of G(y_(j)) / log2(1 + j).

    y_(j) is the label of the document at place j, and G is the gain.

    Parameters
    ----------
    k : int, default=None
        Number of places that count. If None, every place counts.
    gain : {"exp2", "linear"} or callable, default="exp2"
        G: ``2**y - 1``, ``y``, or a function that maps an array of labels to an array of
        non-negative gains.

    Notes
    -----
    The targets are G(y_i). They are calibrated for every distribution of the labels (Ramaswamy et
    al., 2013, theorem 3; Calauzènes et al., 2013, theorem 3.2).
    """

    _measure = "dcg"

    def __init__(self, k: int | None = None, *, gain: Gain = "exp2") -> None:
        self.k = k
        self.gain = gain


class NDCG(NormalizedPositionalLoss, DCG):
    """Normalized DCG: DCG@k divided by the largest DCG@k that the labels of the query allow.

    Parameters
    ----------
    k : int, default=None
        Number of places that count. If None, every place counts.
    gain : {"exp2", "linear"} or callable, default="exp2"
        As in `DCG`. If labels are amounts, such as money or numbers of clicks, take ``"linear"``,
        and the same gain in metrics and scorers. With ``"exp2"`` and labels above 31, `fit` warns,
        because the largest labels of a query then count for everything.
    shrinkage : "auto" or float in [0, 1], default="auto"
        How far `fit` moves the normalizer of each query towards the mean over queries, which lowers
        the variance of the targets. "auto" decreases with the number of queries, and a fixed number
        above 0 gives up calibration. The measure is not affected. See `NormalizedLoss`.

    Notes
    -----
    The targets are G(y_i) / Z_k(y). The normalizer Z_k(y) is the largest DCG@k that the labels
    allow. Regression is consistent for NDCG because gains are normalized before expectations are
    taken (Ravikumar, Tewari and Yang, 2011). The measure is undefined for a query in which every
    gain is 0.

    A classifier learns the same targets, as weights of two classes (`models.DocumentModel`). The
    expected gains under its probabilities of the labels would be optimal for DCG, and for NDCG only
    if the normalizer is certain.
    """

    _measure = "ndcg"

    def __init__(
        self, k: int | None = None, *, gain: Gain = "exp2", shrinkage: str | float = "auto"
    ) -> None:
        super().__init__(k, gain=gain)
        self.shrinkage = shrinkage


class Recall(NormalizedPositionalLoss):
    """Recall@k: the share of the relevant documents that are among the first k documents.

    Parameters
    ----------
    k : int, default=10
        Number of places that count.
    threshold : float, default=None
        A document is relevant if its label is at least `threshold`. If None, labels must be 0 or 1.
    shrinkage : "auto" or float in [0, 1], default="auto"
        How far `fit` moves the normalizer of each query towards the mean over queries, as in
        `NDCG`.

    Notes
    -----
    The targets are y_i / sum(y). The measure is undefined for a query without a relevant document.
    """

    _half = 1000
    _measure = "recall"

    def __init__(
        self, k: int = 10, *, threshold: float | None = None, shrinkage: str | float = "auto"
    ) -> None:
        self.k = k
        self.threshold = threshold
        self.shrinkage = shrinkage


class AUC(NormalizedPositionalLoss):
    """Area under the ROC curve of each query.

    It is the share of pairs of a relevant and an irrelevant document in which the relevant document
    is ranked above the other.

    Parameters
    ----------
    threshold : float, default=None
        A document is relevant if its label is at least `threshold`. If None, labels must be 0 or 1.
    shrinkage : "auto" or float in [0, 1], default="auto"
        How far `fit` moves the normalizer of each query towards the mean over queries, as in
        `NDCG`.

    Notes
    -----
    The targets are y_i / (n+ n-), where n+ is the number of relevant documents of the query, and n-
    that of irrelevant ones. The measure is undefined for a query in which all documents are
    relevant or none is.
    """

    _half = 1000
    _measure = "auc"

    def __init__(self, *, threshold: float | None = None, shrinkage: str | float = "auto") -> None:
        self.threshold = threshold
        self.shrinkage = shrinkage


class Spearman(PositionalLoss):
    """Spearman's rank correlation between the ranking and the order of the labels.

    Notes
    -----
    Equal labels share the mean of their positions, which is called their midrank. The measure is
    Pearson's correlation of midranks with positions, as in `scipy.stats.spearmanr`. The targets are
    (mean - midrank_i) / standard deviation. They are the utilities of the measure up to a constant
    that depends only on the size of the query. The measure is undefined for a query in which all
    labels are equal.
    """

    _measure = "spearman"

    def encode(self, relevance: Floats, queries: Queries) -> Floats:
        """Compute (mean - midrank_i) / standard deviation, which has variance 1 in each query."""
        midranks: Floats = self.measure.standardized_midranks(relevance, queries)
        return midranks

    def discount_constant(self, n_documents: int, p: float = 2.0) -> float:
        # The utilities are the targets divided by `position_scale`, so the constant is divided too.
        return super().discount_constant(n_documents, p) / float(position_scale(n_documents))


class Positional(PositionalLoss):
    """A positional loss with a utility of documents and a discount of places given by the user.

    It covers every positional measure of Calauzènes et al. (2013).

    Parameters
    ----------
    utility : callable, default=None
        ``utility(relevance, queries)`` returns the utilities, an array of shape (n_documents,). If
        utilities depend on the whole query, the methods of `queries` (see `Queries`) compute sums,
        maxima and so on of each query. If None, the utility is the relevance itself.
    discount : callable or array-like, default=None
        The discount phi, which must not increase. A callable receives the array of places 1, 2, ...
        and returns their discounts. An array-like contains the discounts of the first places, and
        all other places have discount 0. If None, the discount is 1 / log2(1 + place).

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

    @property
    def measure(self) -> Any:
        return PositionalByUser(utility=self.utility, discount=self.discount)
