"""Measures of rankings, and losses. A loss is a measure with targets that a regressor can learn.

labels -> **targets** -> model -> prediction -> decoder -> ranking -> **measure** -> metric

A measure assigns a value to a `Ranking` of the documents of each query, given their labels.
`get_measure` makes a measure from a name such as ``"ndcg@10"``. Least squares on the targets of a
loss, followed by the decoder, converges to the best ranking for the measure, under the conditions
in `Loss.calibrated_over`. Convex functions of scores are in `surrogates`.
"""

from sklearn_rankcal.losses._average_precision import MAP, MAPByScores
from sklearn_rankcal.losses._base import LabelSums as LabelSums
from sklearn_rankcal.losses._base import Loss, Measure, NormalizedLoss
from sklearn_rankcal.losses._cascade import ERR
from sklearn_rankcal.losses._pairs import PD, PDByScores
from sklearn_rankcal.losses._positional import (
    AUC,
    DCG,
    ERU,
    NDCG,
    Choice,
    ChoiceLogLoss,
    GainLoss,
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
    "Choice",
    "ChoiceLogLoss",
    "GainLoss",
    "Loss",
    "MAPByScores",
    "Measure",
    "NormalizedLoss",
    "PDByScores",
    "Positional",
    "PositionalLoss",
    "Precision",
    "Recall",
    "Spearman",
    "get_loss",
    "get_measure",
]
