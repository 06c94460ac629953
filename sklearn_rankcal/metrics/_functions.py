"""Ranking metrics: labels and scores or ranks come in, the mean over queries comes out.

Three layers: the formulas, one value per query, live in `_ranked` and in the losses; `MEASURES`
gives them names; the public functions check their input and average.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from sklearn_rankcal import measures
from sklearn_rankcal.labels._rankings import PairWeight
from sklearn_rankcal.measures import Gain, get_measures
from sklearn_rankcal.metrics._checks import _documented, _score, read_ranking


@_documented
def evaluate_rankings(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    metrics: str | Sequence[str] = ("ndcg@10", "mrr"),
    ties: str = "average",
    zero_division: str | float = "skip",
    sample_weight: ArrayLike | None = None,
    return_per_query: bool = False,
    **parameters: Any,
) -> dict[str, Any]:
    """Several metrics of one ranking, sorted once.

    Parameters
    ----------
    {shared}
    metrics : str or sequence of str, default=("ndcg@10", "mrr")
        Keys of `MEASURES`, with cutoffs: ``"map"``, ``"precision@5"``.
    **parameters
        Parameters of the metrics, such as ``threshold`` (relevance from which a document is
        relevant) and ``gain``. Each goes to those of `metrics` that have it.

    Returns
    -------
    values : dict
        Metric name to its mean. Losses keep their sign: smaller is better for
        ``"pairwise_disagreement"``. With `return_per_query`, ``"query"`` to the ids of the queries
        in order of first appearance, and each metric to its values per query, in that order: a
        table for ``pandas.DataFrame``.

    Raises
    ------
    ValueError
        As the single metrics raise, an unknown metric, a missing or a bad cutoff.
    TypeError
        A parameter that none of the metrics has.

    Notes
    -----
    O(n log r) for the one sort, r the size of the largest query, and O(n) per metric.

    Examples
    --------
    >>> from sklearn_rankcal.metrics import evaluate_rankings
    >>> y, scores, groups = [1, 0, 0, 1], [0.2, 0.9, 0.1, 0.8], ["a", "a", "b", "b"]
    >>> values = evaluate_rankings(y, scores, groups=groups, metrics=["mrr", "precision@1"])
    >>> {name: round(value, 3) for name, value in values.items()}
    {'mrr': 0.75, 'precision@1': 0.5}
    >>> values = evaluate_rankings(y, scores, groups=groups, metrics="mrr", return_per_query=True)
    >>> values["query"].tolist(), values["mrr"].tolist()
    (['a', 'b'], [0.5, 1.0])
    """
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    built = get_measures(names, parameters)
    data = read_ranking(y_true, y_score, ranks, groups, ties, sample_weight, stacklevel=4)
    values: dict[str, Any] = {"query": data.ranking.queries.ids} if return_per_query else {}
    for name, measure in zip(names, built, strict=True):
        values[name] = data.score(measure, name, zero_division, return_per_query)
    return values


@_documented
def precision_at_k_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    k: int = 10,
    threshold: float | None = None,
    ties: str = "average",
    zero_division: str | float = "skip",
    sample_weight: ArrayLike | None = None,
    return_per_query: bool = False,
) -> Any:
    """Precision@k: the share of relevant documents among the first k.

    Larger is better; the mean over queries is returned.

    Parameters
    ----------
    {shared}
    k : int, default=10
        Number of places that count; the measure divides by k even where a query is smaller.
    threshold : float, default=None
        Relevance from which a document is relevant. None: labels must be 0 or 1.

    Returns
    -------
    score : float, or ndarray of shape (n_queries,)

    Examples
    --------
    >>> from sklearn_rankcal.metrics import precision_at_k_score
    >>> precision_at_k_score([[1, 0, 1]], [[0.9, 0.8, 0.1]], k=2)  # one query
    0.5
    """
    measure = measures.Precision(k=k, threshold=threshold)
    return _score(
        measure,
        "precision@k",
        y_true,
        y_score,
        ranks,
        groups,
        ties,
        zero_division,
        sample_weight,
        return_per_query,
    )


@_documented
def recall_at_k_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    k: int = 10,
    threshold: float | None = None,
    ties: str = "average",
    zero_division: str | float = "skip",
    sample_weight: ArrayLike | None = None,
    return_per_query: bool = False,
) -> Any:
    """Recall@k: the share of a query's relevant documents that stand among the first k.

    Larger is better; the mean over queries is returned.

    Parameters
    ----------
    {shared}
    k : int, default=10
        Number of places that count.
    threshold : float, default=None
        Relevance from which a document is relevant. None: labels must be 0 or 1.

    Returns
    -------
    score : float, or ndarray of shape (n_queries,)

    Examples
    --------
    A query without a relevant document is skipped by default:

    >>> from sklearn_rankcal.metrics import recall_at_k_score
    >>> recall_at_k_score([1, 1, 0, 0], [3, 2, 1, 0], k=1, groups=[0, 0, 1, 1])
    0.5
    """
    measure = measures.Recall(k=k, threshold=threshold)
    return _score(
        measure,
        "recall@k",
        y_true,
        y_score,
        ranks,
        groups,
        ties,
        zero_division,
        sample_weight,
        return_per_query,
    )


@_documented
def dcg_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    k: int | None = None,
    gain: Gain = "exp2",
    ties: str = "average",
    zero_division: str | float = "skip",
    sample_weight: ArrayLike | None = None,
    return_per_query: bool = False,
) -> Any:
    """DCG@k: sum over the first k places j of gain / log2(1 + j).

    Larger is better; the mean over queries is returned.

    Parameters
    ----------
    {shared}
    k : int, default=None
        Cutoff; None counts every place.
    gain : {"exp2", "linear"} or callable, default="exp2"
        ``2**y - 1`` (LightGBM, XGBoost), ``y`` (scikit-learn, trec_eval), or a function.

    Returns
    -------
    score : float, or ndarray of shape (n_queries,)

    Examples
    --------
    >>> from sklearn_rankcal.metrics import dcg_score
    >>> dcg_score([[0, 2]], [[0.1, 0.9]])  # one query
    3.0
    """
    measure = measures.DCG(k=k, gain=gain)
    return _score(
        measure,
        "dcg",
        y_true,
        y_score,
        ranks,
        groups,
        ties,
        zero_division,
        sample_weight,
        return_per_query,
    )


@_documented
def ndcg_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    k: int | None = None,
    gain: Gain = "exp2",
    ties: str = "average",
    zero_division: str | float = "skip",
    sample_weight: ArrayLike | None = None,
    return_per_query: bool = False,
) -> Any:
    """NDCG@k: DCG@k over the largest DCG@k that the query's labels allow.

    Larger is better; the mean over queries is returned.

    Parameters
    ----------
    {shared}
    k : int, default=None
        Cutoff; None counts every place.
    gain : {"exp2", "linear"} or callable, default="exp2"
        ``2**y - 1`` (LightGBM, XGBoost), ``y`` (scikit-learn, trec_eval), or a function.

    Returns
    -------
    score : float, or ndarray of shape (n_queries,)

    Examples
    --------
    Equal scores are averaged over their orders, not read in the order of the rows:

    >>> from sklearn_rankcal.metrics import ndcg_score
    >>> round(ndcg_score([[2, 0, 1, 0]], [[1, 1, 1, 1]], gain="linear"), 3)
    0.73
    """
    measure = measures.NDCG(k=k, gain=gain)
    return _score(
        measure,
        "ndcg",
        y_true,
        y_score,
        ranks,
        groups,
        ties,
        zero_division,
        sample_weight,
        return_per_query,
    )


@_documented
def map_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    k: int | None = None,
    threshold: float | None = None,
    ties: str = "average",
    zero_division: str | float = "skip",
    sample_weight: ArrayLike | None = None,
    return_per_query: bool = False,
) -> Any:
    """Mean average precision: the mean over relevant documents of the precision at their places.

    Larger is better; the mean over queries is returned.

    Parameters
    ----------
    {shared}
    k : int, default=None
        Cutoff: relevant documents beyond place k count 0, and the sum is still divided by the
        number of relevant documents of the query (trec_eval's map_cut). None counts every place.
    threshold : float, default=None
        Relevance from which a document is relevant. None: labels must be 0 or 1.

    Returns
    -------
    score : float, or ndarray of shape (n_queries,)

    Examples
    --------
    >>> from sklearn_rankcal.metrics import map_score
    >>> round(map_score([[1, 0, 1]], [[0.9, 0.8, 0.1]]), 3)  # one query
    0.833
    """
    measure = measures.AveragePrecision(k=k, threshold=threshold)
    return _score(
        measure,
        "map",
        y_true,
        y_score,
        ranks,
        groups,
        ties,
        zero_division,
        sample_weight,
        return_per_query,
    )


@_documented
def eru_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    neutral: float = 0.0,
    half_life: float = 5.0,
    ties: str = "average",
    zero_division: str | float = "skip",
    sample_weight: ArrayLike | None = None,
    return_per_query: bool = False,
) -> Any:
    """Expected rank utility: sum_i max(y_i - neutral, 0) 2^((1 - position_i) / (half_life - 1)).

    Larger is better; the mean over queries is returned.

    Parameters
    ----------
    {shared}
    neutral : float, default=0
        Only relevance above it is worth something.
    half_life : float, default=5
        The place whose discount is one half, > 1.

    Returns
    -------
    score : float, or ndarray of shape (n_queries,)

    Examples
    --------
    >>> from sklearn_rankcal.metrics import eru_score
    >>> eru_score([[0, 1]], ranks=[[1, 2]], half_life=2)  # one query
    0.5
    """
    measure = measures.ERU(neutral=neutral, half_life=half_life)
    return _score(
        measure,
        "eru",
        y_true,
        y_score,
        ranks,
        groups,
        ties,
        zero_division,
        sample_weight,
        return_per_query,
    )


@_documented
def err_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    k: int | None = None,
    max_relevance: float | None = None,
    ties: str = "average",
    zero_division: str | float = "skip",
    sample_weight: ArrayLike | None = None,
    return_per_query: bool = False,
) -> Any:
    """Expected reciprocal rank: sum_j (1 / j) R_j prod_{l < j} (1 - R_l), R = (2^y - 1) / 2^max.

    Larger is better; the mean over queries is returned.

    Parameters
    ----------
    {shared}
    k : int, default=None
        Cutoff; None counts every place.
    max_relevance : float, default=None
        Top grade of the collection. None: the largest label of `y_true`; pass it when the values
        of several sets are compared, since one of them may lack the top grade.

    Returns
    -------
    score : float, or ndarray of shape (n_queries,)

    Examples
    --------
    >>> from sklearn_rankcal.metrics import err_score
    >>> err_score([[0, 1]], [[0.1, 0.9]])  # one query
    0.5
    """
    measure = measures.ERR(k=k, max_relevance=max_relevance)
    return _score(
        measure,
        "err",
        y_true,
        y_score,
        ranks,
        groups,
        ties,
        zero_division,
        sample_weight,
        return_per_query,
    )


@_documented
def mrr_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    k: int | None = None,
    threshold: float | None = None,
    ties: str = "average",
    zero_division: str | float = "skip",
    sample_weight: ArrayLike | None = None,
    return_per_query: bool = False,
) -> Any:
    """Mean reciprocal rank: 1 / position of the first relevant document.

    Larger is better; the mean over queries is returned.

    Parameters
    ----------
    {shared}
    k : int, default=None
        Cutoff: 0 where the first relevant document stands beyond place k. None: no cutoff.
    threshold : float, default=None
        Relevance from which a document is relevant. None: labels must be 0 or 1.

    Returns
    -------
    score : float, or ndarray of shape (n_queries,)

    Examples
    --------
    >>> from sklearn_rankcal.metrics import mrr_score
    >>> mrr_score([[0, 1, 1]], ranks=[[1, 2, 3]])  # one query
    0.5
    """
    measure = measures.ReciprocalRank(k=k, threshold=threshold)
    return _score(
        measure,
        "mrr",
        y_true,
        y_score,
        ranks,
        groups,
        ties,
        zero_division,
        sample_weight,
        return_per_query,
    )


@_documented
def auc_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    threshold: float | None = None,
    ties: str = "average",
    zero_division: str | float = "skip",
    sample_weight: ArrayLike | None = None,
    return_per_query: bool = False,
) -> Any:
    """Area under the ROC curve inside each query; a tied pair counts half.

    Larger is better; the mean over queries is returned.

    Parameters
    ----------
    {shared}
    threshold : float, default=None
        Relevance from which a document is relevant. None: labels must be 0 or 1.

    Returns
    -------
    score : float, or ndarray of shape (n_queries,)

    Examples
    --------
    >>> from sklearn_rankcal.metrics import auc_score
    >>> auc_score([[1, 0, 0]], [[0.5, 0.5, 0.1]])  # one query
    0.75
    """
    measure = measures.AUC(threshold=threshold)
    return _score(
        measure,
        "auc",
        y_true,
        y_score,
        ranks,
        groups,
        ties,
        zero_division,
        sample_weight,
        return_per_query,
    )


@_documented
def spearman_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    ties: str = "average",
    zero_division: str | float = "skip",
    sample_weight: ArrayLike | None = None,
    return_per_query: bool = False,
) -> Any:
    """Spearman's rank correlation between the ranking and the order of the labels.

    Larger is better; the mean over queries is returned.

    Parameters
    ----------
    {shared}

    Returns
    -------
    score : float, or ndarray of shape (n_queries,)

    Examples
    --------
    Equal labels share their mean position. Equal scores give the mean of rho over their orders,
    which is smaller than Pearson's correlation of midranks:

    >>> from sklearn_rankcal.metrics import spearman_score
    >>> round(spearman_score([[3, 2, 1]], [[1.0, 1.0, 0.0]]), 3)
    0.75
    """
    measure = measures.Spearman()
    return _score(
        measure,
        "spearman",
        y_true,
        y_score,
        ranks,
        groups,
        ties,
        zero_division,
        sample_weight,
        return_per_query,
    )


@_documented
def kendall_tau_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    ties: str = "average",
    zero_division: str | float = "skip",
    sample_weight: ArrayLike | None = None,
    return_per_query: bool = False,
) -> Any:
    """Kendall's tau: (concordant - discordant pairs) / pairs whose labels differ.

    Larger is better; the mean over queries is returned.

    Parameters
    ----------
    {shared}

    Returns
    -------
    score : float, or ndarray of shape (n_queries,)

    Examples
    --------
    With tied labels the best ranking still reaches 1 (this is then Somers' D given the labels);
    without, it is tau-a, and 1 - 2 PD / (r (r - 1) / 2):

    >>> from sklearn_rankcal.metrics import kendall_tau_score
    >>> round(kendall_tau_score([[4, 3, 2, 1]], [[0.9, 0.8, 0.1, 0.2]]), 3)
    0.667
    """
    measure = measures.KendallTau()
    return _score(
        measure,
        "kendall_tau",
        y_true,
        y_score,
        ranks,
        groups,
        ties,
        zero_division,
        sample_weight,
        return_per_query,
    )


@_documented
def pairwise_disagreement_loss(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    pair_weight: PairWeight = "binary",
    normalize: bool = True,
    ties: str = "average",
    zero_division: str | float = "skip",
    sample_weight: ArrayLike | None = None,
    return_per_query: bool = False,
) -> Any:
    """Pairwise disagreement: the share of pairs y_i > y_j that are ranked in the wrong order.

    Smaller is better; the mean over queries is returned.

    Parameters
    ----------
    {shared}
    pair_weight : {"binary", "graded"} or callable, default="binary"
        Weight of a pair with y_i > y_j: 1, y_i - y_j, or ``pair_weight(y_i - y_j)``.
    normalize : bool, default=True
        Divide by the total weight of the query's pairs; False: P1's loss itself, a sum.

    Returns
    -------
    loss : float, or ndarray of shape (n_queries,)

    Examples
    --------
    A tied pair costs half:

    >>> from sklearn_rankcal.metrics import pairwise_disagreement_loss
    >>> pairwise_disagreement_loss([[2, 1, 0]], [[0.5, 0.5, 0.9]], normalize=False)
    2.5
    """
    measure = measures.PairwiseDisagreement(pair_weight=pair_weight, normalize=normalize)
    return _score(
        measure,
        "pairwise_disagreement",
        y_true,
        y_score,
        ranks,
        groups,
        ties,
        zero_division,
        sample_weight,
        return_per_query,
    )
