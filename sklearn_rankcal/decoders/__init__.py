"""Decoders convert the predictions for each query to a ranking.

The functions `decode_scores`, `decode_preferences` and `decode_average_precision` work on arrays.
The classes do the same inside a ranker. `DECODERS` maps (space, name) to a function that creates a
decoder. `KERNELS` is ``"compiled"`` or ``"numpy"``: the implementation of the inner loops.
"""

from typing import TYPE_CHECKING

from sklearn_rankcal._kernels import KERNELS
from sklearn_rankcal.decoders._batches import DecodeResult
from sklearn_rankcal.decoders._decode_average_precision import (
    AveragePrecisionDecoder,
    decode_average_precision,
)
from sklearn_rankcal.decoders._decode_preferences import PreferenceDecoder, decode_preferences
from sklearn_rankcal.decoders._decode_scores import Sort, decode_scores
from sklearn_rankcal.decoders._registry import DECODERS
from sklearn_rankcal.utils import load_on_use

if TYPE_CHECKING:
    from sklearn_rankcal.rules import ExposurePolicy, Quota, Rules, exposure_policy
    from sklearn_rankcal.tiers import Tiers, decode_tiers

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
]

# imported on first use, because these modules import the decoders
_LAZY = {
    "ExposurePolicy": "rules",
    "Quota": "rules",
    "Rules": "rules",
    "Tiers": "tiers",
    "decode_tiers": "tiers",
    "exposure_policy": "rules",
}


__getattr__, __dir__ = load_on_use(__name__, __all__, _LAZY)
