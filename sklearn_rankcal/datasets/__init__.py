"""Generators of data with a known best ranking, and readers of data."""

from sklearn_rankcal.datasets._judgements import make_arena, make_comparisons, make_preferences
from sklearn_rankcal.datasets._labels import (
    label_ranking_from_classes,
    make_clicks,
    make_label_ranking,
    make_ranking,
)
from sklearn_rankcal.datasets._letor import load_letor

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
