"""Metrics of the agreement between the ranking and the order of the labels.

Each function checks its input, computes the measure of every query and returns the mean. The
formulas are in `sklearn_rankcal.measures`.
"""

from __future__ import annotations

from typing import Any, Literal, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal import measures
from sklearn_rankcal.labels._rankings import PairWeight
from sklearn_rankcal.metrics._checks import (
    RankingOptions,
    Ties,
    ZeroDivision,
    documented_metric,
    read_ranking,
)


@overload
def spearman_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    return_per_query: Literal[False] = False,
    **options: Unpack[RankingOptions],
) -> float: ...


@overload
def spearman_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    return_per_query: Literal[True],
    **options: Unpack[RankingOptions],
) -> NDArray[np.float64]: ...


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
    return_per_query: bool = False,
) -> float | NDArray[np.float64]:
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
    Equal labels share the mean of their positions, which is called their midrank. If scores tie,
    the metric is the mean of the correlation over all orders of the tied documents. This is smaller
    than Pearson's correlation of the midranks of both:

    >>> from sklearn_rankcal.metrics import spearman_score
    >>> round(spearman_score([[3, 2, 1]], [[1.0, 1.0, 0.0]]), 3)
    0.75
    """
    measure = measures.Spearman()
    data = read_ranking(y_true, y_score, ranks, groups, ties, sample_weight)
    return data.score(measure, "spearman", zero_division, return_per_query)


@overload
def kendall_tau_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    return_per_query: Literal[False] = False,
    **options: Unpack[RankingOptions],
) -> float: ...


@overload
def kendall_tau_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    return_per_query: Literal[True],
    **options: Unpack[RankingOptions],
) -> NDArray[np.float64]: ...


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
    return_per_query: bool = False,
) -> float | NDArray[np.float64]:
    """Kendall's tau: (concordant - discordant pairs) / pairs whose labels differ.

    A pair of documents whose labels differ is concordant if the document with the larger label
    stands above the other, and discordant if it stands below. A pair whose scores tie is neither.
    If no labels tie, the metric is Kendall's tau-a. If labels tie, it is Somers' D given the
    labels, so that the best ranking still reaches 1. Larger is better; the mean over queries is
    returned.

    Parameters
    ----------
    {shared}

    Returns
    -------
    score : float, or ndarray of shape (n_queries,)

    Examples
    --------
    One of the six pairs is discordant:

    >>> from sklearn_rankcal.metrics import kendall_tau_score
    >>> round(kendall_tau_score([[4, 3, 2, 1]], [[0.9, 0.8, 0.1, 0.2]]), 3)
    0.667
    """
    measure = measures.KendallTau()
    data = read_ranking(y_true, y_score, ranks, groups, ties, sample_weight)
    return data.score(measure, "kendall_tau", zero_division, return_per_query)


@overload
def pairwise_disagreement_loss(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    pair_weight: PairWeight = "binary",
    normalize: bool = True,
    return_per_query: Literal[False] = False,
    **options: Unpack[RankingOptions],
) -> float: ...


@overload
def pairwise_disagreement_loss(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    pair_weight: PairWeight = "binary",
    normalize: bool = True,
    return_per_query: Literal[True],
    **options: Unpack[RankingOptions],
) -> NDArray[np.float64]: ...


@documented_metric
def pairwise_disagreement_loss(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    pair_weight: PairWeight = "binary",
    normalize: bool = True,
    ties: Ties = "average",
    zero_division: ZeroDivision = "skip",
    sample_weight: ArrayLike | None = None,
    return_per_query: bool = False,
) -> float | NDArray[np.float64]:
    """Pairwise disagreement: the share of pairs that are ranked in the wrong order.

    The pairs are those of documents i and j of a query whose labels differ, y_i > y_j. The order is
    wrong if document j stands above document i. Smaller is better; the mean over queries is
    returned.

    Parameters
    ----------
    {shared}
    pair_weight : {"binary", "graded"} or callable, default="binary"
        Weight of a pair with y_i > y_j: 1, y_i - y_j, or ``pair_weight(y_i - y_j)``.
    normalize : bool, default=True
        Whether to divide by the total weight of the pairs of the query. If False, the metric is
        the sum of the weights of the pairs in the wrong order, which is the loss of Ramaswamy et
        al. (2013).

    Returns
    -------
    loss : float, or ndarray of shape (n_queries,)

    Examples
    --------
    A pair whose scores tie counts half:

    >>> from sklearn_rankcal.metrics import pairwise_disagreement_loss
    >>> pairwise_disagreement_loss([[2, 1, 0]], [[0.5, 0.5, 0.9]], normalize=False)
    2.5
    """
    measure = measures.PairwiseDisagreement(pair_weight=pair_weight, normalize=normalize)
    data = read_ranking(y_true, y_score, ranks, groups, ties, sample_weight)
    return data.score(measure, "pairwise_disagreement", zero_division, return_per_query)
