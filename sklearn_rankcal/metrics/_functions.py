"""Metric functions: each checks its input and returns the mean of a measure over queries.

A function takes its parameters and defaults from the measure, a class of `losses.MEASURES`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypedDict, TypeVar, Unpack

from numpy.typing import ArrayLike

from sklearn_rankcal.labels._rankings import PairWeight
from sklearn_rankcal.losses import MEASURES
from sklearn_rankcal.losses._cascade import Discount
from sklearn_rankcal.losses._positional import Gain
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
    """The keyword parameters that all metrics share, for type checkers."""

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
    """Return the mean over queries of a measure, given its name and parameters."""
    measure = MEASURES[name](**parameters)
    data = read_ranking(y_true, y_score, ranks, groups, ties, sample_weight)
    values = fill_undefined(data.values(measure), zero_division)
    return mean_over_queries(values, data.ranking.queries, data.weight, name)


_SHARED = [each for each in inspect.signature(_mean).parameters.values() if each.kind == 3]


def _metric(name: str) -> Callable[[_Function], _Function]:
    """Write the options of the measure `name` into the signature and docstring of a metric."""
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
    """Compute precision@k: the share of relevant documents among the first k.

    Parameters
    ----------
    {shared}
    k : int, default=10
        Cutoff: only the first k places count. The number of relevant documents is divided by k even
        if the query has fewer documents.
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
    """Compute recall@k: the share of the relevant documents that are among the first k.

    Parameters
    ----------
    {shared}
    k : int, default=10
        Cutoff: only the first k places count.
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
    """Compute mean average precision (MAP).

    The average precision of a query is the mean of the precision at the places of its relevant
    documents.

    Parameters
    ----------
    {shared}
    k : int, default=None
        Cutoff: a relevant document below place k counts as precision 0, as in trec_eval's map_cut.
        If None, every place counts.
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
    """Compute mean reciprocal rank (MRR): 1 / position of the first relevant document of a query.

    Parameters
    ----------
    {shared}
    k : int, default=None
        Cutoff: the value is 0 if none of the first k documents is relevant. If None, every place
        counts.
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
    """Compute the area under the ROC curve (AUC) of each query.

    AUC is the share of pairs of a relevant and an irrelevant document that are ranked in the right
    order. A tied pair counts half.

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
    """Compute discounted cumulative gain (DCG): the sum over places j of gain / log2(1 + j).

    Parameters
    ----------
    {shared}
    {k}
    gain : {"exp2", "linear"} or callable, default="exp2"
        Gain of a document with relevance y. ``"exp2"`` is ``2**y - 1``, as in LightGBM and XGBoost.
        ``"linear"`` is ``y``, as in scikit-learn and trec_eval. A function maps an array of
        relevance to gains >= 0.

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
    """Compute normalised discounted cumulative gain (NDCG).

    NDCG@k is DCG@k divided by the DCG@k of the best ranking. The default differs from
    scikit-learn's `ndcg_score`, which uses the gain y instead of 2^y - 1 and counts a query without
    gain as 0. Pass ``gain="linear", zero_division=0`` to get the same value.

    Parameters
    ----------
    {shared}
    {k}
    gain : {"exp2", "linear"} or callable, default="exp2"
        Gain of a document, as in `dcg_score`.

    {returns}

    Examples
    --------
    With tied scores, the metric is averaged over all orders of the tied documents. The order of the
    rows does not matter:

    >>> from sklearn_rankcal.metrics import ndcg_score
    >>> round(ndcg_score([[2, 0, 1, 0]], [[1, 1, 1, 1]], gain="linear"), 3)
    0.73
    """
    return _mean("ndcg", y_true, y_score, **options)


@_metric("eru")
def eru_score(y_true: Any, y_score: _Scores = None, **options: Unpack[_Utility]) -> float:
    """Compute expected rank utility (ERU).

    ERU is sum_i max(y_i - neutral, 0) 2^((1 - position_i) / (half_life - 1)).

    Parameters
    ----------
    {shared}
    neutral : float, default=0
        Neutral relevance. A document counts only if its relevance is larger.
    half_life : float, default=5
        The place with the discount one half. It must be larger than 1.

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
    """Compute expected reciprocal rank (ERR): sum_j (1 / F(j)) R_j prod_{l < j} (1 - R_l).

    R_j = G(y) is the probability that the document at place j, with relevance y, satisfies the
    user.

    Parameters
    ----------
    {shared}
    {k}
    max_relevance : float, default=None
        The highest grade of the relevance scale. If None, the largest label of `y_true` is used;
        set it if `y_true` may lack the highest grade. It must be None if `gain` is a function.
    gain : {"exp2", "linear"} or callable, default="exp2"
        The function G. ``"exp2"`` is ``(2**y - 1) / 2**max_relevance``, and ``"linear"`` is
        ``y / max_relevance``. A function maps an array of relevance to probabilities in [0, 1].
    discount : callable, default=None
        The function F. It maps the array of places 1, 2, ... to non-decreasing numbers >= 1. If
        None, F(j) = j.

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
    """Compute Spearman's rank correlation between the ranking and the labels.

    Parameters
    ----------
    {shared}

    {returns}

    Examples
    --------
    With tied scores, the mean over all orders of the tied documents is smaller than Pearson's
    correlation of the midranks:

    >>> from sklearn_rankcal.metrics import spearman_score
    >>> round(spearman_score([[3, 2, 1]], [[1.0, 1.0, 0.0]]), 3)
    0.75
    """
    return _mean("spearman", y_true, y_score, **options)


@_metric("kendall_tau")
def kendall_tau_score(y_true: Any, y_score: _Scores = None, **options: Unpack[_Pairs]) -> float:
    """Compute Kendall's tau: (concordant - discordant pairs) / pairs with different labels.

    A pair is discordant if the document with the larger label is ranked lower. A pair with tied
    scores is neither concordant nor discordant. With tied labels, the metric is Somers' D given the
    labels, and the best ranking still reaches 1.

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
    """Compute pairwise disagreement: the share of pairs that are ranked in the wrong order.

    A pair consists of two documents i and j of a query with labels y_i > y_j. The order is wrong if
    document j is ranked above document i.

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
        The mean over queries, smaller is better. NaN, with a warning, if the loss is undefined on
        all queries.

    {raises}

    Examples
    --------
    A pair with tied scores counts half:

    >>> from sklearn_rankcal.metrics import pairwise_disagreement_loss
    >>> pairwise_disagreement_loss([[2, 1, 0]], [[0.5, 0.5, 0.9]], normalize=False)
    2.5
    """
    return _mean("pairwise_disagreement", y_true, y_score, **options)
