"""Generators of data with a known best ranking, and readers of data."""

from sklearn_rankcal.datasets._arena import make_arena
from sklearn_rankcal.datasets._clicks import make_clicks
from sklearn_rankcal.datasets._label_ranking import label_ranking_from_classes, make_label_ranking
from sklearn_rankcal.datasets._letor import load_letor
from sklearn_rankcal.datasets._preferences import make_comparisons, make_preferences
from sklearn_rankcal.datasets._relevance import make_ranking

__all__ = [
    "label_ranking_from_classes",
    "load_letor",
    "make_arena",
    "make_clicks",
    "make_comparisons",
    "make_label_ranking",
    "make_preferences",
    "make_ranking",
]
