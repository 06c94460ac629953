"""Metric functions, which return the mean of a measure over queries, and `evaluate_rankings`.

A function reads labels and a ranking, a measure of `losses` computes one value per query, and the
function returns their mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from sklearn_rankcal.labels._rankings import PairWeight
from sklearn_rankcal.losses import AUC, DCG, ERR, ERU, NDCG, Measure, Precision, Recall, Spearman
from sklearn_rankcal.losses._average_precision import AveragePrecision, ReciprocalRank
from sklearn_rankcal.losses._cascade import Discount
from sklearn_rankcal.losses._pairs import KendallTau, PairwiseDisagreement
from sklearn_rankcal.losses._positional import ChoiceLogLoss, Gain
from sklearn_rankcal.losses._registry import get_measures
from sklearn_rankcal.metrics._checks import (
    Ties,
    Unjudged,
    ZeroDivision,
    documented_metric,
    fill_undefined,
    read_ranking,
)
from sklearn_rankcal.metrics._intervals import mean_interval
from sklearn_rankcal.queries import mean_over_queries


@documented_metric
def precision_at_k_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    ties: Ties = "average",
    zero_division: ZeroDivision = "skip",
    sample_weight: ArrayLike | None = None,
    unjudged: Unjudged = "irrelevant",
    k: int = 10,
    threshold: float | None = None,
) -> float:
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
    data = read_ranking(y_true, y_score, ranks, groups, ties, sample_weight, unjudged)
    return data.mean("precision", Precision(k, threshold=threshold), zero_division)


@documented_metric
def recall_at_k_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    ties: Ties = "average",
    zero_division: ZeroDivision = "skip",
    sample_weight: ArrayLike | None = None,
    unjudged: Unjudged = "irrelevant",
    k: int = 10,
    threshold: float | None = None,
) -> float:
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
    data = read_ranking(y_true, y_score, ranks, groups, ties, sample_weight, unjudged)
    return data.mean("recall", Recall(k, threshold=threshold), zero_division)


@documented_metric
def choice_log_loss(
    y_true: Any,
    y_prob: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the log-loss of choice probabilities, smaller is better.

    Parameters
    ----------
    y_true : array-like of shape (n_documents,)
        1 for the chosen document of each query and 0 for the others, or numbers of choices.
    y_prob : array-like of shape (n_documents,)
        Probabilities, which sum to 1 in each query, as `choice_probabilities` of a ranker returns.
    groups : array-like of shape (n_documents,), default=None
        Query id of each row, as in `ndcg_score`.
    sample_weight : array-like of shape (n_documents,), default=None
        Weight of each row. The weight of a query is the mean weight of its rows.

    Returns
    -------
    loss : float
        The mean over queries of `losses.ChoiceLogLoss`. Equal probabilities of n documents have
        the loss log(n).

    Examples
    --------
    >>> from sklearn_rankcal.metrics import choice_log_loss
    >>> round(choice_log_loss([1, 0, 0, 1], [0.5, 0.5, 0.2, 0.8], groups=[0, 0, 1, 1]), 3)
    0.458
    """
    data = read_ranking(y_true, y_prob, None, groups, sample_weight=sample_weight)
    return data.mean("choice_log_loss", ChoiceLogLoss(), "skip")


@documented_metric
def map_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    ties: Ties = "average",
    zero_division: ZeroDivision = "skip",
    sample_weight: ArrayLike | None = None,
    unjudged: Unjudged = "irrelevant",
    k: int | None = None,
    threshold: float | None = None,
) -> float:
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
    data = read_ranking(y_true, y_score, ranks, groups, ties, sample_weight, unjudged)
    return data.mean("map", AveragePrecision(k, threshold=threshold), zero_division)


@documented_metric
def mrr_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    ties: Ties = "average",
    zero_division: ZeroDivision = "skip",
    sample_weight: ArrayLike | None = None,
    unjudged: Unjudged = "irrelevant",
    k: int | None = None,
    threshold: float | None = None,
) -> float:
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
    data = read_ranking(y_true, y_score, ranks, groups, ties, sample_weight, unjudged)
    return data.mean("mrr", ReciprocalRank(k, threshold=threshold), zero_division)


@documented_metric
def auc_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    ties: Ties = "average",
    zero_division: ZeroDivision = "skip",
    sample_weight: ArrayLike | None = None,
    unjudged: Unjudged = "irrelevant",
    threshold: float | None = None,
) -> float:
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
    data = read_ranking(y_true, y_score, ranks, groups, ties, sample_weight, unjudged)
    return data.mean("auc", AUC(threshold=threshold), zero_division)


@documented_metric
def dcg_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    ties: Ties = "average",
    zero_division: ZeroDivision = "skip",
    sample_weight: ArrayLike | None = None,
    unjudged: Unjudged = "irrelevant",
    k: int | None = None,
    gain: Gain = "exp2",
) -> float:
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
    data = read_ranking(y_true, y_score, ranks, groups, ties, sample_weight, unjudged)
    return data.mean("dcg", DCG(k, gain=gain), zero_division)


@documented_metric
def ndcg_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    ties: Ties = "average",
    zero_division: ZeroDivision = "skip",
    sample_weight: ArrayLike | None = None,
    unjudged: Unjudged = "irrelevant",
    k: int | None = None,
    gain: Gain = "exp2",
) -> float:
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
    data = read_ranking(y_true, y_score, ranks, groups, ties, sample_weight, unjudged)
    return data.mean("ndcg", NDCG(k, gain=gain), zero_division)


@documented_metric
def eru_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    ties: Ties = "average",
    zero_division: ZeroDivision = "skip",
    sample_weight: ArrayLike | None = None,
    unjudged: Unjudged = "irrelevant",
    neutral: float = 0.0,
    half_life: float = 5.0,
) -> float:
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
    data = read_ranking(y_true, y_score, ranks, groups, ties, sample_weight, unjudged)
    return data.mean("eru", ERU(neutral, half_life), zero_division)


@documented_metric
def err_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    ties: Ties = "average",
    zero_division: ZeroDivision = "skip",
    sample_weight: ArrayLike | None = None,
    unjudged: Unjudged = "irrelevant",
    k: int | None = None,
    max_relevance: float | None = None,
    gain: Gain = "exp2",
    discount: Discount = None,
) -> float:
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
    data = read_ranking(y_true, y_score, ranks, groups, ties, sample_weight, unjudged)
    measure = ERR(k, max_relevance=max_relevance, gain=gain, discount=discount)
    return data.mean("err", measure, zero_division)


@documented_metric
def spearman_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    ties: Ties = "average",
    zero_division: ZeroDivision = "skip",
    sample_weight: ArrayLike | None = None,
    unjudged: Unjudged = "irrelevant",
) -> float:
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
    data = read_ranking(y_true, y_score, ranks, groups, ties, sample_weight, unjudged)
    return data.mean("spearman", Spearman(), zero_division)


@documented_metric
def kendall_tau_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    ties: Ties = "average",
    zero_division: ZeroDivision = "skip",
    sample_weight: ArrayLike | None = None,
    unjudged: Unjudged = "irrelevant",
    pair_weight: PairWeight = "binary",
) -> float:
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
    data = read_ranking(y_true, y_score, ranks, groups, ties, sample_weight, unjudged)
    return data.mean("kendall_tau", KendallTau(pair_weight), zero_division)


@documented_metric
def pairwise_disagreement_loss(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    ties: Ties = "average",
    zero_division: ZeroDivision = "skip",
    sample_weight: ArrayLike | None = None,
    unjudged: Unjudged = "irrelevant",
    pair_weight: PairWeight = "binary",
    normalize: bool = True,
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

    Examples
    --------
    A pair with tied scores counts half:

    >>> from sklearn_rankcal.metrics import pairwise_disagreement_loss
    >>> pairwise_disagreement_loss([[2, 1, 0]], [[0.5, 0.5, 0.9]], normalize=False)
    2.5
    """
    data = read_ranking(y_true, y_score, ranks, groups, ties, sample_weight, unjudged)
    measure = PairwiseDisagreement(pair_weight, normalize=normalize)
    return data.mean("pairwise_disagreement", measure, zero_division)


@documented_metric
def evaluate_rankings(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    metrics: str | Measure | Sequence[str | Measure] = "ndcg@10",
    ties: Ties = "average",
    zero_division: ZeroDivision = "skip",
    sample_weight: ArrayLike | None = None,
    unjudged: Unjudged = "irrelevant",
    return_per_query: bool = False,
    confidence_level: float | None = None,
    **parameters: Any,
) -> dict[str, Any]:
    """Compute several metrics of one ranking.

    The ranking is sorted once for all metrics.

    Parameters
    ----------
    {shared}
    metrics : str, Measure or sequence of these, default="ndcg@10"
        Names of metrics with their cutoffs, for example ``"map"`` or ``"precision@5"``, or objects
        such as ``NDCG(k=10)`` of `sklearn_rankcal.losses`, also your own.
    return_per_query : bool, default=False
        Whether to return the value of each query instead of the mean. The queries are in order of
        first appearance. The value is NaN if the metric is undefined on the query, unless
        `zero_division` replaces it.
    confidence_level : float, default=None
        If given, return an interval for each mean with this confidence level, for example 0.95.
        The intervals (:ref:`intervals_of_means`) do not include the randomness of training. Not
        together with `return_per_query`.
    **parameters
        Parameters of the metrics, such as ``threshold``. Each is passed to the metrics that have
        it; objects have their own.

    Returns
    -------
    values : dict
        The mean over queries of each metric, by name, ``str(metric)`` for objects. With
        `confidence_level`, each entry is a `MeanInterval`. With `return_per_query`, each entry is
        an array with one value per query, and the entry ``"query"`` holds the query ids. Larger is
        better, except for ``"pairwise_disagreement"``.

    Examples
    --------
    >>> from sklearn_rankcal.metrics import evaluate_rankings
    >>> y, scores, groups = [1, 0, 0, 1], [0.2, 0.9, 0.1, 0.8], ["a", "a", "b", "b"]
    >>> values = evaluate_rankings(y, scores, groups=groups, metrics="mrr", return_per_query=True)
    >>> values["query"].tolist(), values["mrr"].tolist()
    (['a', 'b'], [0.5, 1.0])

    The interval of a mean over ten queries is wide:

    >>> y, scores, groups = y * 5, scores * 5, [f"{n}{q}" for n in range(5) for q in groups]
    >>> values = evaluate_rankings(y, scores, groups=groups, metrics="mrr", confidence_level=0.95)
    >>> print(values["mrr"])
    0.7500 [0.5078, 0.9432] (95 % interval, 10 queries)
    """
    if return_per_query and confidence_level is not None:
        raise ValueError("Pass either return_per_query=True or confidence_level=, not both.")
    measures = get_measures(metrics, parameters)
    data = read_ranking(y_true, y_score, ranks, groups, ties, sample_weight, unjudged)
    result: dict[str, Any] = {"query": data.ranking.queries.ids} if return_per_query else {}
    for name, measure in measures.items():
        values = fill_undefined(data.values(measure), zero_division)
        if return_per_query:
            result[name] = values
        elif confidence_level is None:
            result[name] = mean_over_queries(values, data.ranking.queries, data.weight, name)
        else:
            weight = data.query_weight()
            result[name] = mean_interval(values, weight, measure.bounds, confidence_level)
    return result
