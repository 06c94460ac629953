"""The metric functions: each checks its input and returns the mean of a measure over queries.

The parameters and defaults of a function are those of the measure, a class of `losses.MEASURES`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypedDict, TypeVar, Unpack

from numpy.typing import ArrayLike

from sklearn_rankcal.labels._rankings import PairWeight
from sklearn_rankcal.losses import MEASURES
from sklearn_rankcal.losses._cascade import Discount
from sklearn_rankcal.losses._gains import Gain
from sklearn_rankcal.losses._registry import parameters_of
from sklearn_rankcal.metrics._checks import (
    Ties,
    ZeroDivision,
    documented_metric,
    fill_undefined,
    read_ranking,
)
from sklearn_rankcal.queries import mean_over_queries

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Scores = ArrayLike | None


class _Options(TypedDict, total=False):
    """The keyword parameters that all metrics share; type checkers know them by this class."""

    ranks: ArrayLike | None
    groups: ArrayLike | None
    ties: Ties
    zero_division: ZeroDivision
    sample_weight: ArrayLike | None


class _Threshold(_Options, total=False):
    threshold: float | None


class _Binary(_Threshold, total=False):
    k: int | None


class _Gains(_Options, total=False):
    k: int | None
    gain: Gain


class _Utility(_Options, total=False):
    neutral: float
    half_life: float


class _Cascade(_Gains, total=False):
    max_relevance: float | None
    discount: Discount


class _Pairs(_Options, total=False):
    pair_weight: PairWeight


class _NormalizedPairs(_Pairs, total=False):
    normalize: bool


def _mean(
    name: str,
    y_true: Any,
    y_score: ArrayLike | None,
    *,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    ties: Ties = "average",
    zero_division: ZeroDivision = "skip",
    sample_weight: ArrayLike | None = None,
    **parameters: Any,
) -> float:
    """The mean over queries of the measure with a name and parameters."""
    measure = MEASURES[name](**parameters)
    data = read_ranking(y_true, y_score, ranks, groups, ties, sample_weight)
    values = fill_undefined(data.values(measure), zero_division)
    return mean_over_queries(values, data.ranking.queries, data.weight, name)


_SHARED = [each for each in inspect.signature(_mean).parameters.values() if each.kind == 3]


def _metric(name: str) -> Callable[[_Function], _Function]:
    """Spell out the options of a metric in its signature and docstring, from the measure `name`."""
    kind = MEASURES[name]
    of_kind = inspect.signature(kind).parameters
    own = [
        of_kind[each].replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters_of(kind)
    ]

    def decorate(function: _Function) -> _Function:
        signature = inspect.signature(function)
        y_true, y_score, _ = signature.parameters.values()
        signature = signature.replace(parameters=[y_true, y_score, *_SHARED, *own])
        function.__signature__ = signature  # type: ignore[attr-defined]
        return documented_metric(function)

    return decorate


@_metric("precision")
def precision_at_k_score(y_true: Any, y_score: _Scores = None, **options: Unpack[_Binary]) -> float:
    """Precision@k: the share of relevant documents among the first k.

    Parameters
    ----------
    {shared}
    k : int, default=10
        Number of places that count. The number of relevant documents is divided by k even if the
        query has fewer documents.
    {threshold}

    {returns}

    Examples
    --------
    >>> from sklearn_rankcal.metrics import precision_at_k_score
    >>> precision_at_k_score([[1, 0, 1]], [[0.9, 0.8, 0.1]], k=2)  # one query
    0.5
    """
    return _mean("precision", y_true, y_score, **options)


@_metric("recall")
def recall_at_k_score(y_true: Any, y_score: _Scores = None, **options: Unpack[_Binary]) -> float:
    """Recall@k: the share of the relevant documents that stand among the first k.

    Parameters
    ----------
    {shared}
    k : int, default=10
        Number of places that count.
    {threshold}

    {returns}

    Examples
    --------
    A query without a relevant document is skipped by default:

    >>> from sklearn_rankcal.metrics import recall_at_k_score
    >>> recall_at_k_score([1, 1, 0, 0], [3, 2, 1, 0], k=1, groups=[0, 0, 1, 1])
    0.5
    """
    return _mean("recall", y_true, y_score, **options)


@_metric("map")
def map_score(y_true: Any, y_score: _Scores = None, **options: Unpack[_Binary]) -> float:
    """Mean average precision: the mean of the precision at the places of the relevant documents.

    Parameters
    ----------
    {shared}
    k : int, default=None
        Number of places that count; a relevant document below place k counts as precision 0, as in
        trec_eval's map_cut. If None, every place counts.
    {threshold}

    {returns}

    Examples
    --------
    >>> from sklearn_rankcal.metrics import map_score
    >>> round(map_score([[1, 0, 1]], [[0.9, 0.8, 0.1]]), 3)  # one query
    0.833
    """
    return _mean("map", y_true, y_score, **options)


@_metric("mrr")
def mrr_score(y_true: Any, y_score: _Scores = None, **options: Unpack[_Binary]) -> float:
    """Mean reciprocal rank (MRR): 1 / position of the first relevant document of a query.

    Parameters
    ----------
    {shared}
    k : int, default=None
        Number of places that count; 0 if none of them is relevant. If None, every place counts.
    {threshold}

    {returns}

    Examples
    --------
    >>> from sklearn_rankcal.metrics import mrr_score
    >>> mrr_score([[0, 1, 1]], ranks=[[1, 2, 3]])  # one query
    0.5
    """
    return _mean("mrr", y_true, y_score, **options)


@_metric("auc")
def auc_score(y_true: Any, y_score: _Scores = None, **options: Unpack[_Threshold]) -> float:
    """Area under the ROC curve (AUC) of each query.

    It is the share of pairs of a relevant and an irrelevant document in which the relevant document
    stands above the other. A pair whose scores tie counts half.

    Parameters
    ----------
    {shared}
    {threshold}

    {returns}

    Examples
    --------
    >>> from sklearn_rankcal.metrics import auc_score
    >>> auc_score([[1, 0, 0]], [[0.5, 0.5, 0.1]])  # one query
    0.75
    """
    return _mean("auc", y_true, y_score, **options)


@_metric("dcg")
def dcg_score(y_true: Any, y_score: _Scores = None, **options: Unpack[_Gains]) -> float:
    """Discounted cumulative gain: DCG@k, the sum over the first k places j of gain / log2(1 + j).

    Parameters
    ----------
    {shared}
    {k}
    gain : {"exp2", "linear"} or callable, default="exp2"
        The gain of a document with relevance y: ``2**y - 1``, as in LightGBM and XGBoost; ``y``, as
        in scikit-learn and trec_eval; or a function from arrays of relevance to gains >= 0.

    {returns}

    Examples
    --------
    >>> from sklearn_rankcal.metrics import dcg_score
    >>> dcg_score([[0, 2]], [[0.1, 0.9]])  # one query
    3.0
    """
    return _mean("dcg", y_true, y_score, **options)


@_metric("ndcg")
def ndcg_score(y_true: Any, y_score: _Scores = None, **options: Unpack[_Gains]) -> float:
    """NDCG@k, by default with the gain 2^y - 1, where scikit-learn's `ndcg_score` has the gain y.

    It is DCG@k over the largest DCG@k that the labels allow. scikit-learn also counts a query
    without gain as 0: ``gain="linear", zero_division=0`` gives its value.

    Parameters
    ----------
    {shared}
    {k}
    gain : {"exp2", "linear"} or callable, default="exp2"
        The gain of a document, as in `dcg_score`.

    {returns}

    Examples
    --------
    If scores tie, the metric is averaged over all orders of the tied documents. The order of the
    rows does not matter:

    >>> from sklearn_rankcal.metrics import ndcg_score
    >>> round(ndcg_score([[2, 0, 1, 0]], [[1, 1, 1, 1]], gain="linear"), 3)
    0.73
    """
    return _mean("ndcg", y_true, y_score, **options)


@_metric("eru")
def eru_score(y_true: Any, y_score: _Scores = None, **options: Unpack[_Utility]) -> float:
    """Expected rank utility: sum_i max(y_i - neutral, 0) 2^((1 - position_i) / (half_life - 1)).

    Parameters
    ----------
    {shared}
    neutral : float, default=0
        Neutral relevance. A document adds to the metric only if its relevance is larger.
    half_life : float, default=5
        The place whose discount is one half. It must be larger than 1.

    {returns}

    Examples
    --------
    >>> from sklearn_rankcal.metrics import eru_score
    >>> eru_score([[0, 1]], ranks=[[1, 2]], half_life=2)  # one query
    0.5
    """
    return _mean("eru", y_true, y_score, **options)


@_metric("err")
def err_score(y_true: Any, y_score: _Scores = None, **options: Unpack[_Cascade]) -> float:
    """Expected reciprocal rank (ERR): sum_j (1 / F(j)) R_j prod_{l < j} (1 - R_l).

    R_j = G(y) is the probability that the document at place j, of relevance y, satisfies the user.

    Parameters
    ----------
    {shared}
    {k}
    max_relevance : float, default=None
        The highest relevance of the whole collection. If None, it is the largest label of
        `y_true`, which may lack the highest relevance. It must be None if `gain` is a function.
    gain : {"exp2", "linear"} or callable, default="exp2"
        G: ``(2**y - 1) / 2**max_relevance``, ``y / max_relevance``, or a function that maps an
        array of relevance to an array of probabilities, numbers in [0, 1].
    discount : callable, default=None
        F, a function that maps the array of places 1, 2, ... to numbers of at least 1 which do not
        decrease. None is the place itself.

    {returns}

    Examples
    --------
    >>> from sklearn_rankcal.metrics import err_score
    >>> err_score([[0, 1]], [[0.1, 0.9]])  # one query
    0.5
    """
    return _mean("err", y_true, y_score, **options)


@_metric("spearman")
def spearman_score(y_true: Any, y_score: _Scores = None, **options: Unpack[_Options]) -> float:
    """Spearman's rank correlation between the ranking and the order of the labels.

    Parameters
    ----------
    {shared}

    {returns}

    Examples
    --------
    If scores tie, the mean over all orders of the tied documents is smaller than Pearson's
    correlation of the midranks of both:

    >>> from sklearn_rankcal.metrics import spearman_score
    >>> round(spearman_score([[3, 2, 1]], [[1.0, 1.0, 0.0]]), 3)
    0.75
    """
    return _mean("spearman", y_true, y_score, **options)


@_metric("kendall_tau")
def kendall_tau_score(y_true: Any, y_score: _Scores = None, **options: Unpack[_Pairs]) -> float:
    """Kendall's tau: (concordant - discordant pairs) / pairs whose labels differ.

    A pair whose labels differ is discordant if the document with the larger label stands below the
    other. A pair whose scores tie is neither. If labels tie, the metric is Somers' D given the
    labels, so that the best ranking still reaches 1.

    Parameters
    ----------
    {shared}
    pair_weight : {"binary", "graded"} or callable, default="binary"
        Weight of a pair, as in `pairwise_disagreement_loss`.

    {returns}

    Examples
    --------
    One of the six pairs is discordant:

    >>> from sklearn_rankcal.metrics import kendall_tau_score
    >>> round(kendall_tau_score([[4, 3, 2, 1]], [[0.9, 0.8, 0.1, 0.2]]), 3)
    0.667
    """
    return _mean("kendall_tau", y_true, y_score, **options)


@_metric("pairwise_disagreement")
def pairwise_disagreement_loss(
    y_true: Any, y_score: _Scores = None, **options: Unpack[_NormalizedPairs]
) -> float:
    """Pairwise disagreement: the share of pairs that are ranked in the wrong order.

    The pairs are those of documents i and j of a query whose labels differ, y_i > y_j. The order is
    wrong if document j stands above document i.

    Parameters
    ----------
    {shared}
    pair_weight : {"binary", "graded"} or callable, default="binary"
        Weight of a pair with y_i > y_j: 1, y_i - y_j, or ``pair_weight(y_i - y_j)``.
    normalize : bool, default=True
        Whether to divide by the total weight of the pairs of the query.

    Returns
    -------
    loss : float
        The mean over queries, where smaller is better.

    Examples
    --------
    A pair whose scores tie counts half:

    >>> from sklearn_rankcal.metrics import pairwise_disagreement_loss
    >>> pairwise_disagreement_loss([[2, 1, 0]], [[0.5, 0.5, 0.9]], normalize=False)
    2.5
    """
    return _mean("pairwise_disagreement", y_true, y_score, **options)
