"""Labels: what a user hands in as `y` comes in; relevance or preferences and queries come out."""

from sklearn_rankcal.labels._edges import read_edges
from sklearn_rankcal.labels._either import Labels, read_either, take_labels
from sklearn_rankcal.labels._preferences import (
    PREFERENCE_DTYPE,
    Preferences,
    preference_labels,
    read_preferences,
)
from sklearn_rankcal.labels._preflib import PrefLibOrders, read_preflib
from sklearn_rankcal.labels._rankings import (
    check_ranks,
    ranking_labels,
    rankings_to_preferences,
    relevance_preferences,
)
from sklearn_rankcal.labels._relevance import (
    GROUPS_REMEDY,
    RELEVANCE_DTYPE,
    agreed_queries,
    check_relevance,
    groups_of_labels,
    is_structured,
    read_labels,
    relevance_labels,
)

__all__ = [
    "GROUPS_REMEDY",
    "PREFERENCE_DTYPE",
    "RELEVANCE_DTYPE",
    "Labels",
    "PrefLibOrders",
    "Preferences",
    "agreed_queries",
    "check_ranks",
    "check_relevance",
    "groups_of_labels",
    "is_structured",
    "preference_labels",
    "ranking_labels",
    "rankings_to_preferences",
    "read_edges",
    "read_either",
    "read_labels",
    "read_preferences",
    "read_preflib",
    "relevance_labels",
    "relevance_preferences",
    "take_labels",
]
