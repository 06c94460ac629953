"""Conformal risk control: the threshold that bounds the value that hidden documents would add.

The value that each document adds to the list of the documents above it is not negative, and the sum
over a query is at most 1. The loss of a query is the sum of the values above the threshold.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from sklearn_rankcal.losses import Measure, NormalizedPositionalLoss, get_measure
from sklearn_rankcal.losses._base import BinaryMeasure
from sklearn_rankcal.queries import Queries, Ranking
from sklearn_rankcal.utils._messages import did_you_mean
from sklearn_rankcal.utils._numbers import ROUNDING, Bools, Floats, exceeds, read_numbers

Risk = str | Measure | Callable[[Floats], ArrayLike]

_ALL_PLACES = 2**63 - 1


def controlled_threshold(
    levels: Floats, added: Floats, n_queries: int, alpha: float
) -> tuple[float, float]:
    """Return the smallest threshold with a risk of at most alpha, and its bound of the risk.

    The loss L_i(t) is the sum of `added` over the entries of query i with levels above t. The
    threshold is the smallest level t with (L_1(t) + ... + L_n(t) + 1) / (n + 1) <= alpha
    (Angelopoulos et al., 2024, theorem 1, with B = 1). It exists if 1 / (n + 1) <= alpha. `levels`
    and `added` are of shape (n_entries,). `added` is not negative, and its sum over a query is at
    most 1.
    """
    order = np.argsort(levels)
    levels, added = levels[order], added[order]
    # Step 1: add up the loss beyond each entry, starting from the end, where sums are small.
    lost = np.append(np.cumsum(added[:0:-1])[::-1], 0.0)
    # Step 2: find the first entry that is the last of its level and has a small enough loss.
    bound = (lost + 1.0) / (n_queries + 1)
    kept = ~exceeds(bound, alpha, alpha)
    with np.errstate(invalid="ignore"):  # the first levels can be -inf
        kept[:-1] &= exceeds(levels[1:], levels[:-1], _size(levels))
    first = int(np.flatnonzero(kept)[0])
    return float(levels[first]), float(bound[first])


def score_levels(scores: Floats, queries: Queries) -> tuple[Floats, Floats]:
    """Return the level of each document: the mean score of its query minus its score.

    The documents with the largest score get the level -inf, because each list shows at least one
    document. The second result, of shape (n_queries,), is their original level.
    """
    mean, top = queries.mean(scores), queries.max(scores)
    levels = queries.broadcast(mean) - scores
    levels[scores == queries.broadcast(top)] = -np.inf
    return levels, mean - top


def rounded_up(threshold: float, levels: Floats) -> float:
    """Return a threshold that allows for rounding differences between batches."""
    # the score of a row differs in the last bits between batches
    return threshold + ROUNDING * _size(levels)


def _size(levels: Floats) -> float:
    """Return the largest absolute value of the finite levels."""
    return float(np.abs(levels[np.isfinite(levels)]).max(initial=0.0))


# ---------------------------------------------------------------- added values


def added_values(risk: Risk, ranking: Ranking, relevance: Floats) -> tuple[Floats, Bools]:
    """Return the value that each document adds to the list above it, and where it is defined.

    The first result is in row layout, and 0 for queries with an undefined value. The second has
    shape (n_queries,). The ranking must not have ties.
    """
    if isinstance(risk, str):
        if risk == "best_relevance":
            by_place, defined = _added_by_best(ranking, relevance)
        else:
            by_place, defined = _added_by_measure(_named(risk), ranking, relevance)
    elif isinstance(risk, Measure):
        by_place, defined = _added_by_measure(risk, ranking, relevance)
    else:
        by_place, defined = _added_by_function(risk, ranking, relevance)
    added = np.empty(len(relevance))
    added[ranking.order] = np.where(ranking.queries.repeat(defined), by_place, 0.0)
    return added, defined


def _named(risk: str) -> Measure:
    """Return the measure with this name; recall without a cutoff counts all places."""
    try:
        return get_measure(risk, **({"k": _ALL_PLACES} if risk == "recall" else {}))
    except ValueError as error:
        known = ("recall", "best_relevance", "ndcg")
        raise ValueError(
            f"Unknown risk {risk!r}.{did_you_mean(risk, known)} Known: {', '.join(known)}, "
            "the same with a cutoff, such as 'ndcg@10', and functions."
        ) from error


def _added_by_measure(
    measure: Measure, ranking: Ranking, relevance: Floats
) -> tuple[Floats, Bools]:
    """Utility times discount. The sum is at most 1, because the measure is normalized."""
    queries = ranking.queries
    n_places = int(queries.sizes.max())
    if not isinstance(measure, NormalizedPositionalLoss) or measure.discounts(n_places)[-1] < 0:
        raise ValueError(
            f"The risk {measure!r} cannot be controlled, because its loss can grow with the "
            "list or exceed 1. Pass 'recall', 'best_relevance', 'ndcg', or a function that "
            "maps the relevance of a list to the values of its first 1, 2, ... documents."
        )
    binary = isinstance(measure, BinaryMeasure) and getattr(measure, "threshold", None) is None
    if binary and not np.isin(relevance, (0, 1)).all():
        raise ValueError(
            "This risk needs labels 0 and 1. Pass threshold=t to RiskControlledCutoff to "
            "count labels of at least t as relevant."
        )
    measure.check(relevance)
    by_place = (
        ranking.take(measure.utilities(relevance, queries))
        * measure.discounts(n_places)[queries.place]
    )
    return by_place, measure.defined(relevance, queries)


def _added_by_best(ranking: Ranking, relevance: Floats) -> tuple[Floats, Bools]:
    """The increase of the best relevance so far by each document, as a share of the largest."""
    if relevance.min() < 0:
        raise ValueError(f"risk='best_relevance' needs relevance >= 0; got {relevance.min():g}.")
    queries = ranking.queries
    ordered, best = ranking.take(relevance), np.empty(len(relevance))
    for inside, valid in queries.buckets():
        best[inside[valid]] = np.maximum.accumulate(ordered[inside], axis=1)[valid]
    largest = queries.max(relevance)
    return _steps(best, queries) / queries.repeat(np.where(largest > 0, largest, 1)), largest > 0


def _added_by_function(
    value: Callable[[Floats], ArrayLike], ranking: Ranking, relevance: Floats
) -> tuple[Floats, Bools]:
    """Differences of the values of a user's function, called once per query."""
    queries = ranking.queries
    ordered, values = ranking.take(relevance), np.empty(len(relevance))
    for q in range(queries.n_queries):
        part = slice(queries.offsets[q], queries.offsets[q + 1])
        of_query = read_numbers(value(ordered[part].copy()), "what risk returned")
        if of_query.shape != ordered[part].shape:
            raise ValueError(
                "The function risk must return one value per document, for the first 1, 2, "
                f"..., r documents: shape {ordered[part].shape}; got {of_query.shape}."
            )
        values[part] = of_query
    undefined = np.isnan(queries.reduce(np.add, values))
    steps = _steps(values, queries)
    defined = queries.repeat(~undefined)
    wrong = defined & (exceeds(0.0, steps, 1.0) | exceeds(values, 1.0, 1.0))
    if wrong.any():
        q = int(queries.repeat(np.arange(queries.n_queries))[wrong.argmax()])
        shown = values[queries.offsets[q] : queries.offsets[q + 1]][:6].round(3)
        raise ValueError(
            "The function risk must return nondecreasing values between 0 and 1; for query "
            f"{q} they begin {shown.tolist()}."
        )
    return np.maximum(steps, 0.0), ~undefined


def _steps(values: Floats, queries: Queries) -> Floats:
    """Differences between consecutive places of each query, from 0, in best-first layout."""
    steps = np.diff(values, prepend=0.0)
    steps[queries.offsets[:-1]] = values[queries.offsets[:-1]]
    return steps
