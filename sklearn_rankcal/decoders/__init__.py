"""Decoders convert the surrogate predictions of every query to a ranking.

The functions `decode_scores`, `decode_preferences` and `decode_average_precision` take arrays. The
classes do the same inside a ranker. The dictionary `DECODERS` maps (space, name) to what makes one.
`KERNELS` is ``"compiled"`` or ``"numpy"`` and says which inner loops run.
"""

from sklearn_rankcal._kernels import KERNELS
from sklearn_rankcal.decoders._decode_average_precision import decode_average_precision
from sklearn_rankcal.decoders._decode_preferences import decode_preferences
from sklearn_rankcal.decoders._decode_scores import Sort, decode_scores
from sklearn_rankcal.decoders._exposure import ExposurePolicy, exposure_policy
from sklearn_rankcal.decoders._pair_decoders import AveragePrecisionDecoder, PreferenceDecoder
from sklearn_rankcal.decoders._registry import DECODERS, get_decoder
from sklearn_rankcal.decoders._result import DecodeResult
from sklearn_rankcal.decoders._rules import Quota, Rules
from sklearn_rankcal.decoders._tiers import Tiers, decode_tiers

__all__ = [
    "DECODERS",
    "KERNELS",
    "AveragePrecisionDecoder",
    "DecodeResult",
    "ExposurePolicy",
    "PreferenceDecoder",
    "Quota",
    "Rules",
    "Sort",
    "Tiers",
    "decode_average_precision",
    "decode_preferences",
    "decode_scores",
    "decode_tiers",
    "exposure_policy",
    "get_decoder",
]
