"""Predictions of a fitted ranker: scores to sort by, or numbers for the pairs of each query."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.decoders import DecodeResult, Sort
from sklearn_rankcal.decoders._decoders import sorts_scores
from sklearn_rankcal.losses import get_loss
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.queries._ranking import equal_neighbours, tie_rounded
from sklearn_rankcal.utils._features import take_rows
from sklearn_rankcal.utils._messages import counted, print_progress
from sklearn_rankcal.utils._row_hashes import hash_rows

_PAIRS_AT_A_TIME = 1 << 21  # matrix entries per block, 16 MB in each array


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


def sufficient_scores(ranker: Any, X: Any, queries: Queries) -> NDArray[np.float64] | None:
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
    scores = sufficient_scores(ranker, X, queries)
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
