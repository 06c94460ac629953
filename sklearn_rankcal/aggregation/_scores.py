"""Scores of a structure, checked, and the ranks that follow from scores."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.aggregation._base import ComparisonStructure, Structure
from sklearn_rankcal.exceptions import DisconnectedComparisonsWarning
from sklearn_rankcal.labels import Judgements, Preferences
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.queries._ranking import Ranking

Floats = NDArray[np.float64]


def compute_scores(structure: Structure, judgements: Judgements) -> Floats:
    """Compute the scores of all items, without a warning about disconnected comparisons."""
    if isinstance(structure, ComparisonStructure):
        return scores_of_sums(structure, judgements.preferences(), judgements.per_query)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DisconnectedComparisonsWarning)
        scores = structure.scores(judgements)
    return tie_scores(scores, structure, judgements.queries)


def scores_of_sums(
    structure: ComparisonStructure, preferences: Preferences, n_judgements: Floats
) -> Floats:
    """Compute the scores of all items from the sums of all comparisons."""
    scores = structure._scores(preferences, n_judgements)
    return tie_scores(scores, structure, preferences.queries)


def tie_scores(scores: Floats, structure: Structure, queries: Queries) -> Floats:
    """Make scores of a query equal that differ by less than the structure computes exactly.

    Of the scores in descending order, each is made equal to the one before it if they differ by at
    most the tolerance of the structure. NaN stays NaN.
    """
    if np.shape(scores) != (queries.n_rows,):
        raise ValueError(
            f"{type(structure).__name__} returned scores of shape {np.shape(scores)} for "
            f"{queries.n_rows} items."
        )
    scores = np.asarray(scores, dtype=np.float64)
    known = ~np.isnan(scores)
    largest = queries.max(np.abs(np.where(known, scores, 0.0)))
    tolerance = structure.tolerance * np.maximum(largest, 1.0)
    order = queries.sort(np.where(known, scores, -np.inf))
    ordered = scores[order]
    new = np.ones(len(ordered), dtype=bool)
    gap = ordered[:-1] - ordered[1:]
    new[1:] = ~(gap <= queries.repeat(tolerance)[1:])
    new[queries.offsets[:-1]] = True
    tied = np.empty_like(scores)
    tied[order] = ordered[np.flatnonzero(new)[np.cumsum(new) - 1]]
    return tied


def shared_ranks(scores: Floats, queries: Queries) -> NDArray[np.int64]:
    """Return the position of each row, 1 = best; equal scores share the best of their positions.

    NaN is below all other scores.
    """
    ranking = Ranking.from_scores(np.where(np.isnan(scores), -np.inf, scores), queries)
    ranks = np.empty(queries.n_rows, dtype=np.int64)
    ranks[ranking.order] = (queries.place if ranking.start is None else ranking.start) + 1
    return ranks
