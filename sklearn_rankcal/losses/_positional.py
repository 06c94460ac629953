"""Losses whose measure is positional, that is of the form sum_i u_i(y) phi(sigma(i))."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sklearn_rankcal.losses._base import Loss, NormalizedLoss
from sklearn_rankcal.measures import GainMeasure
from sklearn_rankcal.measures._positional import Gain, position_scale
from sklearn_rankcal.measures._positional import Positional as PositionalByUser
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._typing import Floats


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
        rankings (Ramaswamy et al., 2013, theorem 3; Calauzènes et al., 2013, table 2).
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
        A label of at least `threshold` is relevant. If None, labels must be 0 or 1.

    Notes
    -----
    The targets are the labels, made binary by `threshold` (Ramaswamy et al., 2013, section 4).
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
    The targets are max(y_i - neutral, 0) (Ramaswamy et al., 2013, section 5).
    """

    _measure = "eru"

    def __init__(self, neutral: float = 0.0, half_life: float = 5.0) -> None:
        self.neutral = neutral
        self.half_life = half_life


class DCG(PositionalLoss):
    """Discounted cumulative gain: the sum over the first k places j of G(y_(j)) / log2(1 + j).

    y_(j) is the label of the document at place j.

    Parameters
    ----------
    k : int, default=None
        Number of places that count. If None, every place counts.
    gain : {"exp2", "linear"} or callable, default="exp2"
        G: ``2**y - 1``, ``y``, or a function that maps an array of labels to gains >= 0.

    Notes
    -----
    The targets are G(y_i).
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
        and the same gain in metrics and scorers.
    shrinkage : "auto" or float in [0, 1], default="auto"
        How far `fit` moves the normalizer of each query towards the mean over queries, which lowers
        the variance of the targets. "auto" decreases with the number of queries, and a fixed number
        above 0 gives up calibration. The measure is not affected. See `NormalizedLoss`.

    Notes
    -----
    The targets are G(y_i) / Z_k(y), where Z_k(y) is the largest DCG@k that the labels allow. Gains
    are normalized before expectations are taken, which makes regression consistent (Ravikumar,
    Tewari and Yang, 2011). The measure is undefined for a query in which every gain is 0.
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
        A label of at least `threshold` is relevant. If None, labels must be 0 or 1.
    shrinkage : "auto" or float in [0, 1], default="auto"
        As in `NDCG`.

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
    """Area under the ROC curve: how often a relevant document is above an irrelevant one.

    Parameters
    ----------
    threshold : float, default=None
        A label of at least `threshold` is relevant. If None, labels must be 0 or 1.
    shrinkage : "auto" or float in [0, 1], default="auto"
        As in `NDCG`.

    Notes
    -----
    The targets are y_i / (n+ n-), with the numbers of relevant and of irrelevant documents of the
    query. The measure is undefined where one of them is 0.
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
    The measure is Pearson's correlation of positions with midranks, the means of the positions of
    equal labels. The targets are (mean - midrank_i) / standard deviation, the utilities up to a
    constant of the size of the query. It is undefined for a query in which all labels are equal.
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

    Parameters
    ----------
    utility : callable, default=None
        ``utility(relevance, queries)`` returns the utilities, an array of shape (n_documents,). The
        methods of `queries` compute sums, maxima and so on of each query. If None, the utility is
        the relevance itself.
    discount : callable or array-like, default=None
        The discount phi, which must not increase: a function of the array of places 1, 2, ..., or
        the discounts of the first places, after which all are 0. If None, the discount is
        1 / log2(1 + place).

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
