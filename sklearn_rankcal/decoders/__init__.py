"""Decoders: surrogate predictions come in, a permutation of every query comes out.

The functions `decode_scores`, `decode_preferences` and `decode_average_precision` take arrays; the
classes do the same inside a ranker. `DECODERS` maps (space, name) to the classes. `KERNELS` tells
which inner loops run, ``"compiled"`` or ``"numpy"``: with the same results.
"""

from sklearn_rankcal.decoders._average_precision import decode_average_precision
from sklearn_rankcal.decoders._backend import KERNELS
from sklearn_rankcal.decoders._estimators import (
    AutoAveragePrecision,
    AutoPreferences,
    Borda,
    Copeland,
    DiagonalSort,
    ExactAveragePrecision,
    ExactPreferences,
    GreedyDAG,
    InsertionSort,
    LocalSearchAveragePrecision,
    LocalSearchPreferences,
)
from sklearn_rankcal.decoders._preferences import decode_preferences
from sklearn_rankcal.decoders._registry import DECODERS, get_decoder
from sklearn_rankcal.decoders._result import DecodeResult
from sklearn_rankcal.decoders._sort import Sort, decode_scores

__all__ = [
    "DECODERS",
    "KERNELS",
    "AutoAveragePrecision",
    "AutoPreferences",
    "Borda",
    "Copeland",
    "DecodeResult",
    "DiagonalSort",
    "ExactAveragePrecision",
    "ExactPreferences",
    "GreedyDAG",
    "InsertionSort",
    "LocalSearchAveragePrecision",
    "LocalSearchPreferences",
    "Sort",
    "decode_average_precision",
    "decode_preferences",
    "decode_scores",
    "get_decoder",
]
