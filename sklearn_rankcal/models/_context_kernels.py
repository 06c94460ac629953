"""The kernels of context columns: the compiled ones where they were built, otherwise NumPy's."""

from __future__ import annotations

import os

from sklearn_rankcal.decoders import KERNELS

N_TEMPORARIES = 1  # arrays of the size of a block that `describe` holds at the same time
try:
    if KERNELS != "compiled":
        raise ImportError("The kernels in NumPy run.")
    from sklearn_rankcal.models._compiled_context import describe, find_bins
except ImportError:
    if os.environ.get("SKLEARN_RANKCAL_KERNELS") == "compiled":
        raise
    from sklearn_rankcal.models._numpy_context import N_TEMPORARIES, describe, find_bins

__all__ = ["N_TEMPORARIES", "describe", "find_bins"]
