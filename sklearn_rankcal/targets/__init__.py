"""Targets are the numbers that a model learns. A loss computes them from the labels.

labels -> **targets** -> model -> prediction -> decoder -> ranking -> measure -> metric

There is one target per document, or one target per pair of documents. The space of the targets and
predictions is `SCORES`, `PAIRS` or `SYMMETRIC_PAIRS`. `PairTargets` are computed for a few queries
at a time, because the pairs of all queries seldom fit in memory.
"""

from sklearn_rankcal.targets._targets import (
    PAIRS,
    SCORES,
    SYMMETRIC_PAIRS,
    PairTargets,
    PreferenceDifferences,
    RelevanceDifferences,
    RelevanceProducts,
)

__all__ = [
    "PAIRS",
    "SCORES",
    "SYMMETRIC_PAIRS",
    "PairTargets",
    "PreferenceDifferences",
    "RelevanceDifferences",
    "RelevanceProducts",
]
