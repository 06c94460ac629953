"""Scores of a structure, checked, and the ranks that follow from scores."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.aggregation._base import ComparisonStructure, Structure
from sklearn_rankcal.exceptions import DisconnectedComparisonsWarning
from sklearn_rankcal.labels import Judgements
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.queries._ranking import Ranking

Floats = NDArray[np.float64]


def compute_scores(structure: Structure, judgements: Judgements) -> Floats:
    """Compute the scores of all items, without a warning about disconnected comparisons."""
    if isinstance(structure, ComparisonStructure):
        scores = structure._scores(judgements.preferences(), judgements.per_query)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DisconnectedComparisonsWarning)
            scores = structure.scores(judgements)
    if np.shape(scores) != (judgements.queries.n_rows,):
        raise ValueError(
            f"{type(structure).__name__} returned scores of shape {np.shape(scores)} for "
            f"{judgements.queries.n_rows} items."
        )
    return np.asarray(scores, dtype=np.float64)


def shared_ranks(scores: Floats, queries: Queries) -> NDArray[np.int64]:
    """Return the position of each row, 1 = best; equal scores share the best of their positions.

    NaN is below all other scores.
    """
    ranking = Ranking.from_scores(np.where(np.isnan(scores), -np.inf, scores), queries)
    ranks = np.empty(queries.n_rows, dtype=np.int64)
    ranks[ranking.order] = (queries.place if ranking.start is None else ranking.start) + 1
    return ranks
