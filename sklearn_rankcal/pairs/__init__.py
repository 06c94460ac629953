"""Models of pairs of documents, for losses that need more than one number per document.

`models` exports the same names, and imports them on first use.
"""

from sklearn_rankcal.pairs._closed_forms import BilinearPairs, PairwiseRidge
from sklearn_rankcal.pairs._pair_models import PairModel, ResidualPairModel, ResidualProductModel

__all__ = [
    "BilinearPairs",
    "PairModel",
    "PairwiseRidge",
    "ResidualPairModel",
    "ResidualProductModel",
]
