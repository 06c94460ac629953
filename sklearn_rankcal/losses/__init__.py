"""Measures of rankings, and losses: measures with the targets that a regressor learns for them.

Convex functions of scores are in `surrogates`.

labels -> **targets** -> model -> prediction -> decoder -> ranking -> **measure** -> metric

A measure tells what a `Ranking` of the documents of each query is worth, given their labels;
`get_measure` makes one from a name such as ``"ndcg@10"``. Least squares on the targets of a loss,
followed by the decoder, leads to the best ranking for its measure under the distributions that
`Loss.calibrated_over` describes.
"""

from sklearn_rankcal.losses._average_precision import MAP, MAPByScores
from sklearn_rankcal.losses._base import LabelSums as LabelSums
from sklearn_rankcal.losses._base import Loss, NormalizedLoss
from sklearn_rankcal.losses._cascade import ERR
from sklearn_rankcal.losses._gains import DCG, NDCG
from sklearn_rankcal.losses._measure import BinaryMeasure, Measure
from sklearn_rankcal.losses._pairs import PD, PDByScores
from sklearn_rankcal.losses._positional import (
    AUC,
    ERU,
    GainLoss,
    NormalizedPositionalLoss,
    Positional,
    PositionalLoss,
    Precision,
    Recall,
    Spearman,
)
from sklearn_rankcal.losses._registry import LOSSES, MEASURES, get_loss, get_measure
from sklearn_rankcal.losses._registry import get_measures as get_measures

__all__ = [
    "AUC",
    "DCG",
    "ERR",
    "ERU",
    "LOSSES",
    "MAP",
    "MEASURES",
    "NDCG",
    "PD",
    "BinaryMeasure",
    "GainLoss",
    "Loss",
    "MAPByScores",
    "Measure",
    "NormalizedLoss",
    "NormalizedPositionalLoss",
    "PDByScores",
    "Positional",
    "PositionalLoss",
    "Precision",
    "Recall",
    "Spearman",
    "get_loss",
    "get_measure",
]
