"""Measures: how good the ranking of each query is, given the labels of its documents.

A measure is the step between the ranking and the metric:

labels -> targets -> model -> prediction -> decoder -> ranking -> **measure** -> metric

A `Ranking` and its labels come in, and one value per query comes out. Where scores tie, the value
is the mean over all orders that the ties allow, computed in closed form. Each measure is one small
class, and its formula is in the same file. `MEASURES` maps names to classes, and `get_measure`
makes a measure from a name such as ``"ndcg@10"``.
"""

from sklearn_rankcal.measures._average_precision import AveragePrecision
from sklearn_rankcal.measures._base import BinaryMeasure, Measure, inverse
from sklearn_rankcal.measures._cascade import ERR
from sklearn_rankcal.measures._pairs import KendallTau, PairwiseAgreement, PairwiseDisagreement
from sklearn_rankcal.measures._positional import (
    GainMeasure,
    NormalizedMeasure,
    Positional,
    PositionalMeasure,
)
from sklearn_rankcal.measures._positional_binary import AUC, Precision, Recall
from sklearn_rankcal.measures._positional_graded import DCG, ERU, NDCG, Gain
from sklearn_rankcal.measures._reciprocal_rank import ReciprocalRank
from sklearn_rankcal.measures._registry import (
    MEASURES,
    find_measure,
    get_measure,
    get_measures,
    parameters_of,
    split_cutoff,
)
from sklearn_rankcal.measures._spearman import Spearman, position_scale

__all__ = [
    "AUC",
    "DCG",
    "ERR",
    "ERU",
    "MEASURES",
    "NDCG",
    "AveragePrecision",
    "BinaryMeasure",
    "Gain",
    "GainMeasure",
    "KendallTau",
    "Measure",
    "NormalizedMeasure",
    "PairwiseAgreement",
    "PairwiseDisagreement",
    "Positional",
    "PositionalMeasure",
    "Precision",
    "Recall",
    "ReciprocalRank",
    "Spearman",
    "find_measure",
    "get_measure",
    "get_measures",
    "inverse",
    "parameters_of",
    "position_scale",
    "split_cutoff",
]
