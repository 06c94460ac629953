"""Ranking losses: a measure with the targets that a regressor learns for it, and their decoder.

Convex functions of scores are in `surrogates`.

labels -> **targets** -> model -> prediction -> **decoder** -> ranking -> **measure** -> metric

Least squares on the targets of a loss, followed by the decoder, leads to the best ranking for its
measure under the distributions that `Loss.calibrated_over` describes.
"""

from sklearn_rankcal.losses._average_precision import MAP, MAPByScores
from sklearn_rankcal.losses._base import LabelSums as LabelSums
from sklearn_rankcal.losses._base import Loss, NormalizedLoss
from sklearn_rankcal.losses._cascade import ERR
from sklearn_rankcal.losses._pairs import PD, PDByScores
from sklearn_rankcal.losses._positional import (
    AUC,
    DCG,
    ERU,
    NDCG,
    Positional,
    PositionalLoss,
    Precision,
    Recall,
    Spearman,
)
from sklearn_rankcal.losses._registry import LOSSES, get_loss

__all__ = [
    "AUC",
    "DCG",
    "ERR",
    "ERU",
    "LOSSES",
    "MAP",
    "NDCG",
    "PD",
    "Loss",
    "MAPByScores",
    "NormalizedLoss",
    "PDByScores",
    "Positional",
    "PositionalLoss",
    "Precision",
    "Recall",
    "Spearman",
    "get_loss",
]
