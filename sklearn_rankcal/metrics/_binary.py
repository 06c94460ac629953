"""Metrics of binary relevance: a document is relevant or not.

Each function checks its input, computes the measure of every query and returns the mean. The
formulas are in `sklearn_rankcal.measures`.
"""

from __future__ import annotations

from typing import Any, Literal, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal import measures
from sklearn_rankcal.metrics._checks import (
    RankingOptions,
    Ties,
    ZeroDivision,
    documented_metric,
    read_ranking,
)


@overload
def precision_at_k_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    k: int = 10,
    threshold: float | None = None,
    return_per_query: Literal[False] = False,
    **options: Unpack[RankingOptions],
) -> float: ...


@overload
def precision_at_k_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    k: int = 10,
    threshold: float | None = None,
    return_per_query: Literal[True],
    **options: Unpack[RankingOptions],
) -> NDArray[np.float64]: ...


@documented_metric
def precision_at_k_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    k: int = 10,
    threshold: float | None = None,
    ties: Ties = "average",
    zero_division: ZeroDivision = "skip",
    sample_weight: ArrayLike | None = None,
    return_per_query: bool = False,
) -> float | NDArray[np.float64]:
    """Precision@k: the share of relevant documents among the first k.

    Larger is better; the mean over queries is returned.

    Parameters
    ----------
    {shared}
    k : int, default=10
        Number of places that count. The number of relevant documents is divided by k even if the
        query has fewer documents.
    threshold : float, default=None
        A document is relevant if its label is at least `threshold`. If None, labels must be 0 or 1.

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
    data = read_ranking(y_true, y_score, ranks, groups, ties, sample_weight)
    return data.score(measure, "precision@k", zero_division, return_per_query)


@overload
def recall_at_k_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    k: int = 10,
    threshold: float | None = None,
    return_per_query: Literal[False] = False,
    **options: Unpack[RankingOptions],
) -> float: ...


@overload
def recall_at_k_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    k: int = 10,
    threshold: float | None = None,
    return_per_query: Literal[True],
    **options: Unpack[RankingOptions],
) -> NDArray[np.float64]: ...


@documented_metric
def recall_at_k_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    k: int = 10,
    threshold: float | None = None,
    ties: Ties = "average",
    zero_division: ZeroDivision = "skip",
    sample_weight: ArrayLike | None = None,
    return_per_query: bool = False,
) -> float | NDArray[np.float64]:
    """Recall@k: the share of the relevant documents that stand among the first k.

    Larger is better; the mean over queries is returned.

    Parameters
    ----------
    {shared}
    k : int, default=10
        Number of places that count.
    threshold : float, default=None
        A document is relevant if its label is at least `threshold`. If None, labels must be 0 or 1.

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
    data = read_ranking(y_true, y_score, ranks, groups, ties, sample_weight)
    return data.score(measure, "recall@k", zero_division, return_per_query)


@overload
def map_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    k: int | None = None,
    threshold: float | None = None,
    return_per_query: Literal[False] = False,
    **options: Unpack[RankingOptions],
) -> float: ...


@overload
def map_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    k: int | None = None,
    threshold: float | None = None,
    return_per_query: Literal[True],
    **options: Unpack[RankingOptions],
) -> NDArray[np.float64]: ...


@documented_metric
def map_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    k: int | None = None,
    threshold: float | None = None,
    ties: Ties = "average",
    zero_division: ZeroDivision = "skip",
    sample_weight: ArrayLike | None = None,
    return_per_query: bool = False,
) -> float | NDArray[np.float64]:
    """Mean average precision (MAP).

    The average precision of a query is the mean over its relevant documents of the precision at
    their places. Larger is better; the mean over queries is returned.

    Parameters
    ----------
    {shared}
    k : int, default=None
        Number of places that count. A relevant document below place k adds 0 to the sum, which is
        still divided by the number of all relevant documents of the query, as in trec_eval's
        map_cut. If None, every place counts.
    threshold : float, default=None
        A document is relevant if its label is at least `threshold`. If None, labels must be 0 or 1.

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
    data = read_ranking(y_true, y_score, ranks, groups, ties, sample_weight)
    return data.score(measure, "map", zero_division, return_per_query)


@overload
def mrr_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    k: int | None = None,
    threshold: float | None = None,
    return_per_query: Literal[False] = False,
    **options: Unpack[RankingOptions],
) -> float: ...


@overload
def mrr_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    k: int | None = None,
    threshold: float | None = None,
    return_per_query: Literal[True],
    **options: Unpack[RankingOptions],
) -> NDArray[np.float64]: ...


@documented_metric
def mrr_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    k: int | None = None,
    threshold: float | None = None,
    ties: Ties = "average",
    zero_division: ZeroDivision = "skip",
    sample_weight: ArrayLike | None = None,
    return_per_query: bool = False,
) -> float | NDArray[np.float64]:
    """Mean reciprocal rank (MRR).

    The reciprocal rank of a query is 1 / position of its first relevant document. Larger is better;
    the mean over queries is returned.

    Parameters
    ----------
    {shared}
    k : int, default=None
        Number of places that count. The reciprocal rank is 0 if no relevant document is among the
        first k. If None, every place counts.
    threshold : float, default=None
        A document is relevant if its label is at least `threshold`. If None, labels must be 0 or 1.

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
    data = read_ranking(y_true, y_score, ranks, groups, ties, sample_weight)
    return data.score(measure, "mrr", zero_division, return_per_query)


@overload
def auc_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    threshold: float | None = None,
    return_per_query: Literal[False] = False,
    **options: Unpack[RankingOptions],
) -> float: ...


@overload
def auc_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    threshold: float | None = None,
    return_per_query: Literal[True],
    **options: Unpack[RankingOptions],
) -> NDArray[np.float64]: ...


@documented_metric
def auc_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    threshold: float | None = None,
    ties: Ties = "average",
    zero_division: ZeroDivision = "skip",
    sample_weight: ArrayLike | None = None,
    return_per_query: bool = False,
) -> float | NDArray[np.float64]:
    """Area under the ROC curve (AUC) of each query.

    It is the share of pairs of a relevant and an irrelevant document in which the relevant document
    stands above the other. A pair whose scores tie counts half. Larger is better; the mean over
    queries is returned.

    Parameters
    ----------
    {shared}
    threshold : float, default=None
        A document is relevant if its label is at least `threshold`. If None, labels must be 0 or 1.

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
    data = read_ranking(y_true, y_score, ranks, groups, ties, sample_weight)
    return data.score(measure, "auc", zero_division, return_per_query)
