"""Models of pairs of documents, for the losses of which one number for each document is too little.

Their names are in `models`, which loads them when they are used.
"""

from sklearn_rankcal.pairs._bilinear_pairs import BilinearPairs
from sklearn_rankcal.pairs._pair_model import PairModel
from sklearn_rankcal.pairs._pairwise_ridge import PairwiseRidge
from sklearn_rankcal.pairs._residual_pairs import ResidualPairModel, ResidualProductModel

__all__ = [
    "BilinearPairs",
    "PairModel",
    "PairwiseRidge",
    "ResidualPairModel",
    "ResidualProductModel",
]
