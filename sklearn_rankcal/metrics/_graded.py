"""Metrics of graded relevance: a document is relevant to a degree.

Each function checks its input, computes the measure of every query and returns the mean. The
formulas are in `sklearn_rankcal.measures`.
"""

from __future__ import annotations

from typing import Any, Literal, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal import measures
from sklearn_rankcal.measures import Gain
from sklearn_rankcal.measures._cascade import Discount
from sklearn_rankcal.metrics._checks import (
    RankingOptions,
    Ties,
    ZeroDivision,
    documented_metric,
    read_ranking,
)


@overload
def dcg_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    k: int | None = None,
    gain: Gain = "exp2",
    return_per_query: Literal[False] = False,
    **options: Unpack[RankingOptions],
) -> float: ...


@overload
def dcg_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    k: int | None = None,
    gain: Gain = "exp2",
    return_per_query: Literal[True],
    **options: Unpack[RankingOptions],
) -> NDArray[np.float64]: ...


@documented_metric
def dcg_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    k: int | None = None,
    gain: Gain = "exp2",
    ties: Ties = "average",
    zero_division: ZeroDivision = "skip",
    sample_weight: ArrayLike | None = None,
    return_per_query: bool = False,
) -> float | NDArray[np.float64]:
    """Discounted cumulative gain: DCG@k, the sum over the first k places j of gain / log2(1 + j).

    Larger is better; the mean over queries is returned.

    Parameters
    ----------
    {shared}
    k : int, default=None
        Number of places that count. If None, every place counts.
    gain : {"exp2", "linear"} or callable, default="exp2"
        The gain of a document with relevance y. ``"exp2"`` is ``2**y - 1``, as in LightGBM and
        XGBoost. ``"linear"`` is ``y``, as in scikit-learn and trec_eval. A function maps an array
        of relevance to an array of non-negative gains.

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
    data = read_ranking(y_true, y_score, ranks, groups, ties, sample_weight)
    return data.score(measure, "dcg", zero_division, return_per_query)


@overload
def ndcg_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    k: int | None = None,
    gain: Gain = "exp2",
    return_per_query: Literal[False] = False,
    **options: Unpack[RankingOptions],
) -> float: ...


@overload
def ndcg_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    k: int | None = None,
    gain: Gain = "exp2",
    return_per_query: Literal[True],
    **options: Unpack[RankingOptions],
) -> NDArray[np.float64]: ...


@documented_metric
def ndcg_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    k: int | None = None,
    gain: Gain = "exp2",
    ties: Ties = "average",
    zero_division: ZeroDivision = "skip",
    sample_weight: ArrayLike | None = None,
    return_per_query: bool = False,
) -> float | NDArray[np.float64]:
    """Normalized DCG: NDCG@k, which is DCG@k over the largest DCG@k that the labels allow.

    Larger is better; the mean over queries is returned.

    Parameters
    ----------
    {shared}
    k : int, default=None
        Number of places that count. If None, every place counts.
    gain : {"exp2", "linear"} or callable, default="exp2"
        The gain of a document with relevance y. ``"exp2"`` is ``2**y - 1``, as in LightGBM and
        XGBoost. ``"linear"`` is ``y``, as in scikit-learn and trec_eval. A function maps an array
        of relevance to an array of non-negative gains.

    Returns
    -------
    score : float, or ndarray of shape (n_queries,)

    Examples
    --------
    If scores tie, the metric is averaged over all orders of the tied documents. The order of the
    rows does not matter:

    >>> from sklearn_rankcal.metrics import ndcg_score
    >>> round(ndcg_score([[2, 0, 1, 0]], [[1, 1, 1, 1]], gain="linear"), 3)
    0.73
    """
    measure = measures.NDCG(k=k, gain=gain)
    data = read_ranking(y_true, y_score, ranks, groups, ties, sample_weight)
    return data.score(measure, "ndcg", zero_division, return_per_query)


@overload
def eru_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    neutral: float = 0.0,
    half_life: float = 5.0,
    return_per_query: Literal[False] = False,
    **options: Unpack[RankingOptions],
) -> float: ...


@overload
def eru_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    neutral: float = 0.0,
    half_life: float = 5.0,
    return_per_query: Literal[True],
    **options: Unpack[RankingOptions],
) -> NDArray[np.float64]: ...


@documented_metric
def eru_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    neutral: float = 0.0,
    half_life: float = 5.0,
    ties: Ties = "average",
    zero_division: ZeroDivision = "skip",
    sample_weight: ArrayLike | None = None,
    return_per_query: bool = False,
) -> float | NDArray[np.float64]:
    """Expected rank utility: sum_i max(y_i - neutral, 0) 2^((1 - position_i) / (half_life - 1)).

    Larger is better; the mean over queries is returned.

    Parameters
    ----------
    {shared}
    neutral : float, default=0
        Neutral relevance. A document adds to the metric only if its relevance is larger.
    half_life : float, default=5
        The place whose discount is one half. It must be larger than 1.

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
    data = read_ranking(y_true, y_score, ranks, groups, ties, sample_weight)
    return data.score(measure, "eru", zero_division, return_per_query)


@overload
def err_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    k: int | None = None,
    max_relevance: float | None = None,
    gain: Gain = "exp2",
    discount: Discount = None,
    return_per_query: Literal[False] = False,
    **options: Unpack[RankingOptions],
) -> float: ...


@overload
def err_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    k: int | None = None,
    max_relevance: float | None = None,
    gain: Gain = "exp2",
    discount: Discount = None,
    return_per_query: Literal[True],
    **options: Unpack[RankingOptions],
) -> NDArray[np.float64]: ...


@documented_metric
def err_score(
    y_true: Any,
    y_score: ArrayLike | None = None,
    *,
    ranks: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    k: int | None = None,
    max_relevance: float | None = None,
    gain: Gain = "exp2",
    discount: Discount = None,
    ties: Ties = "average",
    zero_division: ZeroDivision = "skip",
    sample_weight: ArrayLike | None = None,
    return_per_query: bool = False,
) -> float | NDArray[np.float64]:
    """Expected reciprocal rank (ERR): sum_j (1 / F(j)) R_j prod_{l < j} (1 - R_l).

    R_j = G(y) is the probability that the document at place j, of relevance y, satisfies the user.
    By default G(y) = (2^y - 1) / 2^max_relevance, and F(j) = j. Larger is better; the mean over
    queries is returned.

    Parameters
    ----------
    {shared}
    k : int, default=None
        Number of places that count. If None, every place counts.
    max_relevance : float, default=None
        The highest relevance of the whole collection. If None, it is the largest label of
        `y_true`. Pass it if values on several data sets are compared, because one of them may lack
        the highest relevance. It must be None if `gain` is a function.
    gain : {"exp2", "linear"} or callable, default="exp2"
        G: ``(2**y - 1) / 2**max_relevance``, ``y / max_relevance``, or a function that maps an
        array of relevance to an array of probabilities, numbers in [0, 1].
    discount : callable, default=None
        F, a function that maps the array of places 1, 2, ... to numbers of at least 1 which do not
        decrease. None is the place itself.

    Returns
    -------
    score : float, or ndarray of shape (n_queries,)

    Examples
    --------
    >>> from sklearn_rankcal.metrics import err_score
    >>> err_score([[0, 1]], [[0.1, 0.9]])  # one query
    0.5
    """
    measure = measures.ERR(k=k, max_relevance=max_relevance, gain=gain, discount=discount)
    data = read_ranking(y_true, y_score, ranks, groups, ties, sample_weight)
    return data.score(measure, "err", zero_division, return_per_query)
