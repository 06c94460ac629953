"""Targets: the step of the line between the labels and the model. Targets are what a model learns.

labels -> **targets** -> model -> prediction -> decoder -> ranking -> measure -> metric

Labels come in, and numbers per document or per pair of documents come out. A `Space` says which of
the two, for targets and for predictions: `SCORES`, `PAIRS` or `SYMMETRIC_PAIRS`. `PairTargets` are
computed a few queries at a time, because the pairs of all queries seldom fit in memory.
"""

from sklearn_rankcal.targets._pairs import (
    PairTargets,
    PreferenceDifferences,
    RelevanceDifferences,
    RelevanceProducts,
    Residuals,
    flat_targets,
)
from sklearn_rankcal.targets._space import (
    PAIRS,
    SCORES,
    SPACES,
    SYMMETRIC_PAIRS,
    PairSpace,
    ScoreSpace,
    Space,
    get_space,
)

__all__ = [
    "PAIRS",
    "SCORES",
    "SPACES",
    "SYMMETRIC_PAIRS",
    "PairSpace",
    "PairTargets",
    "PreferenceDifferences",
    "RelevanceDifferences",
    "RelevanceProducts",
    "Residuals",
    "ScoreSpace",
    "Space",
    "flat_targets",
    "get_space",
]
