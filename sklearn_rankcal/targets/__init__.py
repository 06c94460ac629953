"""Targets are the numbers that a model learns. A loss computes them from the labels.

labels -> **targets** -> model -> prediction -> decoder -> ranking -> measure -> metric

There is one target per document or one per pair of documents. A `Space` describes which of the two
it is, for targets and for predictions: `SCORES`, `PAIRS` or `SYMMETRIC_PAIRS`. `PairTargets` are
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
from sklearn_rankcal.targets._redrawn import RedrawnTargets
from sklearn_rankcal.targets._space import (
    PAIRS,
    SCORES,
    SPACES,
    SYMMETRIC_PAIRS,
    PairSpace,  # noqa: F401
    Space,
    get_space,
)

__all__ = [
    "PAIRS",
    "SCORES",
    "SPACES",
    "SYMMETRIC_PAIRS",
    "PairTargets",
    "PreferenceDifferences",
    "RedrawnTargets",
    "RelevanceDifferences",
    "RelevanceProducts",
    "Residuals",
    "Space",
    "flat_targets",
    "get_space",
]
