"""Measures: how good the ranking of each query is, given the labels of its documents.

labels -> targets -> model -> prediction -> decoder -> ranking -> **measure** -> metric

A `Ranking` and its labels come in, and one value per query comes out. The measure of a loss is its
attribute ``measure``, and `get_measure` makes a measure from a name such as ``"ndcg@10"``.
"""

from sklearn_rankcal.measures._base import BinaryMeasure, Measure
from sklearn_rankcal.measures._positional import GainMeasure, NormalizedMeasure, PositionalMeasure
from sklearn_rankcal.measures._registry import MEASURES, get_measure
from sklearn_rankcal.measures._registry import get_measures as get_measures

__all__ = [
    "MEASURES",
    "BinaryMeasure",
    "GainMeasure",
    "Measure",
    "NormalizedMeasure",
    "PositionalMeasure",
    "get_measure",
]
