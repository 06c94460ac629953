"""Sort each query by score, the exact decoder for all losses on scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from sklearn_rankcal.decoders._batches import DecodeResult
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.queries._ranking import check_scores, equal_neighbours
from sklearn_rankcal.targets import SCORES
from sklearn_rankcal.utils._numbers import Floats, check_no_mask, read_numbers

TieBreakers = Callable[[NDArray[np.int64]], NDArray[Any]]


def decode_scores(
    scores: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    tie_breakers: ArrayLike | None = None,
    rules: Any = None,
    discounts: ArrayLike | None = None,
    time_limit: float | None = None,
) -> DecodeResult:
    """Sort each query by score, or find the best ranking that keeps rules.

    Sorting is optimal for every positional loss (Calauzènes et al., 2013, theorem 3.2). Under
    rules, the best ranking depends on the discounts of the loss.

    Parameters
    ----------
    scores : array-like of shape (n_documents,)
        Finite numbers; larger is better.
    groups : array-like of shape (n_documents,), default=None
        Query id of each row. With None, all rows are one query.
    tie_breakers : array-like of shape (n_documents,), default=None
        Secondary sort key of each row. Documents with equal scores are sorted by increasing key,
        then by row. None means by row.
    rules : Rules, default=None
        Rules that the rankings keep (:ref:`rules`). The scores must then be expected gains, up to a
        constant per query, such as `CalibratedRanker` predicts.
    discounts : array-like of shape (n_places,), default=None
        With rules, weight of each place: numbers that do not increase, at least as many as the
        largest query has documents. None means ``1 / log2(1 + place)``, as in DCG.
    time_limit : float, default=None
        Seconds per query, if the rules need an integer program. None means no limit.

    Returns
    -------
    result : DecodeResult
        The objective is minus the sum of scores times discounts with rules, and NaN without rules.

    Raises
    ------
    ContradictoryRulesError
        If no ranking of a query keeps the rules.

    Notes
    -----
    A sort takes O(n log r) time for n documents in queries of at most r documents. Rules that only
    bound how early documents may come take the same time. If they also bound how late, decoding
    takes O(r^3) per query. If a document is in several groups of quotas, or if there are pairs in
    ``before``, decoding needs an integer program, which can take long.

    Examples
    --------
    >>> from sklearn_rankcal.decoders import decode_scores
    >>> decode_scores([0.1, 0.9, 0.5, 0.5], groups=["a", "a", "b", "b"]).ranks.tolist()
    [2, 1, 1, 2]
    """
    values = check_scores(scores, None, "scores")
    queries = (
        Queries.single(len(values)) if groups is None else Queries.from_groups(groups, len(values))
    )
    keys = None
    if tie_breakers is not None:
        check_no_mask(tie_breakers, "tie_breakers")
        keys = np.asarray(tie_breakers)
        if keys.shape != values.shape:
            raise ValueError(
                f"tie_breakers has shape {keys.shape}, but scores has shape {values.shape}."
            )
    if rules is None:
        return Sort().decode(values, queries, None if keys is None else keys.__getitem__)
    phi = check_discounts(discounts, int(queries.sizes.max()))
    return rules.decode_scores(values, queries, lambda r: phi[:r], keys, time_limit)


def check_discounts(discounts: ArrayLike | None, r: int) -> Floats:
    """Return the discounts of at least r places. None means the discounts of DCG."""
    if discounts is None:
        return 1 / np.log2(np.arange(2, r + 2))
    values = read_numbers(discounts, "discounts")
    if values.ndim != 1 or len(values) < r:
        raise ValueError(
            f"discounts must have shape (n_places,) with at least {r} places; got {values.shape}."
        )
    if not np.isfinite(values).all() or (np.diff(values) > 0).any():
        raise ValueError("discounts must be finite numbers that do not increase.")
    return values


class Sort(BaseEstimator):
    """Decoder that sorts by score. It is exact for every loss on scores.

    `tie_breakers` order documents with equal scores. `CalibratedRanker` passes a hash of the
    features, so its rankings depend neither on the order of the rows nor on other queries. Rows
    with equal features keep their order.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.decoders import Sort
    >>> from sklearn_rankcal.queries import Queries
    >>> Sort().decode(np.array([0.1, 0.9, 0.5]), Queries.single(3)).ranks.tolist()
    [3, 1, 2]
    """

    space = SCORES

    def decode(
        self, u: NDArray[np.float64], queries: Queries, tie_breakers: TieBreakers | None = None
    ) -> DecodeResult:
        """Compute rankings from scores.

        Parameters
        ----------
        u : ndarray of shape (n_documents,)
            Finite scores.
        queries : Queries
            The rows of each query.
        tie_breakers : callable, default=None
            ``tie_breakers(rows)`` returns a secondary sort key for each of these rows. It is only
            called for rows with tied scores.

        Returns
        -------
        result : DecodeResult
            The rankings, in the order of the rows.
        """
        order = queries.sort(u)
        if tie_breakers is not None:
            equal = equal_neighbours(u[order], queries)
            # sort only runs of equal scores
            tied = equal.copy()
            tied[:-1] |= equal[1:]
            places = np.flatnonzero(tied)
            if len(places):
                block = np.cumsum(~equal)[places]
                rows = order[places]
                order[places] = rows[np.lexsort((tie_breakers(rows), block))]
        return DecodeResult(queries.rank(order), np.nan, np.nan, True, "sort")
