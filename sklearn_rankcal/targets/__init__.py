"""Targets: what a model learns. Labels come in; numbers per document, or per pair, come out.

`SCORES`, `PAIRS` and `SYMMETRIC_PAIRS` are the spaces that targets and predictions live in.
`PairTargets` are made a few queries at a time, because all pairs seldom fit in memory.
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
