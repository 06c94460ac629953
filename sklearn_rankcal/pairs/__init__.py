"""Models of pairs of documents, for losses that need more than one number per document.

`models` exports the same names, and imports them on first use.
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
