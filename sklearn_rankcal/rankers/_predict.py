"""From a fitted ranker and a table to a ranking: predictions, then the decoder."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.decoders import DecodeResult, Sort
from sklearn_rankcal.decoders._batches import not_a_result
from sklearn_rankcal.decoders._registry import sorts_scores
from sklearn_rankcal.losses import get_loss
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.queries._ranking import equal_neighbours, tie_rounded
from sklearn_rankcal.utils._features import hash_rows, take_rows
from sklearn_rankcal.utils._messages import counted, print_progress

_PAIRS_AT_A_TIME = 1 << 21  # matrix entries per block, 16 MB in each array


class _Rows(NamedTuple):
    rows: NDArray[np.int64]
    offsets: NDArray[np.int64]
    queries: NDArray[Any]


class QueryOrder(_Rows):
    """The rows of each query, best first, as `predict_order` returns them.

    It is a tuple of `rows`, `offsets` and `queries`.

    Attributes
    ----------
    rows : ndarray of shape (n_listed,)
        Row indices into X, best first within each query.
    offsets : ndarray of shape (n_queries + 1,)
        The rows of query q are ``rows[offsets[q]:offsets[q + 1]]``.
    queries : ndarray of shape (n_queries,)
        Query ids, in order of first appearance.
    scores : ndarray of shape (n_listed,) or None
        The score of each listed row if the ranking sorts scores, otherwise None.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal import QueryOrder
    >>> order = QueryOrder(np.array([2, 0, 1]), np.array([0, 2, 3]), np.array(["a", "b"]))
    >>> order.rows[order.offsets[0] : order.offsets[1]].tolist()  # the rows of "a"
    [2, 0]
    >>> print(order.to_frame().to_string(index=False))
    query  position  row
        a         1    2
        a         2    0
        b         1    1
    """

    scores: NDArray[np.float64] | None = None

    def to_frame(self) -> Any:
        """Convert the rankings to a pandas data frame with one row per listed document.

        Returns
        -------
        frame : pandas.DataFrame of shape (n_listed, 3 or 4)
            Columns ``query`` (id), ``position`` (1 = top of the query), ``row`` (index into X) and,
            if the ranking sorts scores, ``score``.
        """
        import pandas as pd

        lengths = np.diff(self.offsets)
        first = np.repeat(self.offsets[:-1], lengths)
        columns = {
            "query": np.repeat(self.queries, lengths),
            "position": np.arange(len(self.rows)) - first + 1,
            "row": self.rows,
        }
        return pd.DataFrame(columns if self.scores is None else columns | {"score": self.scores})


def predict_ranks(
    ranker: Any, X: Any, queries: Queries
) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """Return the position of each row in its query, and the scores if they are sorted."""
    started = time.perf_counter()
    scores = scores_to_sort_by(ranker, X, queries)
    if scores is None:
        ranks = np.empty(queries.n_rows, dtype=np.int64)
        for rows, part, u in predicted_pairs(ranker, X, queries):
            found = ranker.decoder_.decode(u, part, n_jobs=ranker.n_jobs)
            if not hasattr(found, "ranks"):
                raise not_a_result(ranker.decoder_, found)
            ranks[rows] = found.ranks
            order_twins(ranks, rows, X, part)
        return ranks, None
    decoder = Sort() if ranker.loss_.space.is_pairwise else ranker.decoder_
    found = decoder.decode(scores, queries, lambda rows: hash_rows(X, rows))
    if not hasattr(found, "ranks"):
        raise not_a_result(decoder, found)
    if ranker.verbose:
        print_progress(
            ranker,
            f"ranked {counted(queries.n_rows, 'document')} in "
            f"{counted(queries.n_queries, 'query')}",
            started,
        )
    return found.ranks, scores if isinstance(decoder, Sort) else None


def predicts_choices(ranker: Any) -> bool:
    """Return True if scores are shares of choices or their logarithms, else raise an error."""
    if ranker._scores_are:
        return True
    raise AttributeError(
        "choice_probabilities needs CalibratedRanker(loss='choice'), or surrogate='softmax' of "
        f"LinearRanker or BoostedRanker; this is {ranker!r}."
    )


def predicts_pairs(ranker: Any) -> bool:
    """Return True if the loss is on pairs, else raise AttributeError, for `available_if`."""
    if get_loss(ranker.loss).space.is_pairwise:
        return True
    instead = (
        "decision_function returns the scores"
        if hasattr(ranker, "decision_function")
        else "predict sorts them"
    )
    raise AttributeError(
        f"loss={ranker.loss!r} predicts one score per document or label, and no number for "
        f"each pair; {instead}. Losses on pairs are 'pd' and 'map'."
    )


def predicts_scores(ranker: Any) -> bool:
    """Return True if the loss is on scores, else raise AttributeError, for `available_if`."""
    space = get_loss(ranker.loss).space
    if not space.is_pairwise:
        return True
    decode, by_scores = (
        ("decode_average_precision", "'map_by_scores'")
        if space.symmetric
        else ("decode_preferences", "'pd_by_scores'")
    )
    raise AttributeError(
        f"loss={ranker.loss!r} has no scores: one number per document does not determine the best "
        "ranking, so the ranker predicts a number for each pair of documents. "
        "predict and predict_order return the ranking, predict_preferences returns the numbers "
        f"of the pairs, and decoders.{decode} ranks by them. For scores, choose a loss on scores, "
        f"such as {by_scores} or 'ndcg'."
    )


def predicted_pairs(
    ranker: Any, X: Any, queries: Queries
) -> Iterator[tuple[NDArray[np.int64], Queries, NDArray[np.float64]]]:
    """Yield rows, queries and predictions for a block of queries at a time.

    The rows of a query are sorted by a hash of their contents, so neither predictions nor the order
    of tied documents depends on the order of the rows of X.
    """
    queries.check_pairs_fit()
    started, done = time.perf_counter(), 0
    for listed, part in queries.chunks(_PAIRS_AT_A_TIME, squared=True):
        rows = np.arange(queries.n_rows)[listed] if isinstance(listed, slice) else listed
        rows = rows[np.lexsort((hash_rows(X, rows), part.codes))]
        yield rows, part, ranker.model_.predict(take_rows(X, rows), part)
        done += part.n_queries  # the caller has decoded this block
        print_progress(
            ranker,
            f"{done} of {counted(queries.n_queries, 'query')} predicted and decoded",
            started,
        )


def scores_to_sort_by(ranker: Any, X: Any, queries: Queries) -> NDArray[np.float64] | None:
    """Return scores to sort by, or None if the decoder needs the predictions for pairs.

    Preferences that are differences of scores have no cycle, and every decoder of this package for
    preferences then returns the order of the scores.
    """
    if not ranker.loss_.space.is_pairwise:
        return tie_rounded(ranker.model_.predict(X, queries), queries)
    if sorts_scores(ranker.decoder_):
        scores = ranker.model_.predict_scores(X, queries)
        return None if scores is None else tie_rounded(scores, queries)
    return None


def decode_under_rules(ranker: Any, X: Any, queries: Queries, rules: Any) -> DecodeResult:
    """Return the best rankings that keep the rules, for the predictions of a fitted ranker."""
    decoder = ranker.decoder_
    scores = scores_to_sort_by(ranker, X, queries)
    if scores is not None and sorts_scores(decoder):
        # documents with equal scores keep their order without rules
        free = Sort().decode(scores, queries, lambda rows: hash_rows(X, rows)).ranks
        found: DecodeResult = rules.decode_for_loss(scores, queries, ranker.loss_, free)
        return found
    if not getattr(decoder, "takes_rules", False):
        raise TypeError(f"{type(decoder).__name__} does not support rules.")
    rules.check_pairs(queries)
    ranks, parts = np.empty(queries.n_rows, dtype=np.int64), []
    for rows, part, u in predicted_pairs(ranker, X, queries):
        parts.append(decoder.decode(u, part, n_jobs=ranker.n_jobs, rules=rules.take(rows)))
        ranks[rows] = parts[-1].ranks
    names = ("objective", "lower_bound", "optimal", "method", "n_iter", "violation")
    whole = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    return DecodeResult(ranks, **whole, broken=[texts for part in parts for texts in part.broken])


def order_twins(
    ranks: NDArray[np.int64], rows: NDArray[np.int64], X: Any, queries: Queries
) -> None:
    """Sort rows with equal features by their order in X, within their positions.

    Otherwise, rounding errors of their predictions for pairs would decide. Changes `ranks`, in row
    layout. `rows` come from `predicted_pairs`.
    """
    keys = hash_rows(X, rows)
    same = equal_neighbours(keys, queries)
    if not same.any():
        return
    run = np.cumsum(~same)
    places = ranks[rows]
    ranks[rows[np.lexsort((rows, run))]] = places[np.lexsort((places, run))]


def predict_preferences(ranker: Any, X: Any, queries: Queries) -> list[NDArray[np.float64]]:
    """Return the matrix of predictions of each query, in the order of the rows of X."""
    matrices: list[NDArray[np.float64]] = []
    place = queries.scatter(queries.place)
    space = ranker.loss_.space
    for rows, part, u in predicted_pairs(ranker, X, queries):
        starts = np.append(0, np.cumsum(space.n_entries(part.sizes)))
        for q, r in enumerate(part.sizes):
            places = place[rows[part.offsets[q] : part.offsets[q + 1]]]
            matrix = np.empty((r, r))
            entries = u[None, starts[q] : starts[q + 1]]
            matrix[np.ix_(places, places)] = space.matrices(entries, r)[0]
            matrices.append(matrix)
    return matrices
