"""Which kernels run: the compiled ones where they were built, else their NumPy twins.

The environment variable ``SKLEARN_RANKCAL_KERNELS``, read at import, forces ``numpy`` or
``compiled``; the results are the same. Where nobody asked for NumPy, `expect` warns once of its
speed.
"""

from __future__ import annotations

import os
import warnings

from sklearn_rankcal.exceptions import UncompiledKernelsWarning

_wanted = os.environ.get("SKLEARN_RANKCAL_KERNELS", "")
if _wanted not in ("", "numpy", "compiled"):
    raise ImportError(
        f"SKLEARN_RANKCAL_KERNELS must be 'numpy', 'compiled' or unset; it is {_wanted!r}."
    )
KERNELS = "numpy"
if _wanted != "numpy":
    try:
        from sklearn_rankcal.decoders import _kernels as kernels

        KERNELS = "compiled"
    except ImportError as error:
        if _wanted == "compiled":
            raise ImportError(
                "SKLEARN_RANKCAL_KERNELS=compiled, but the kernels were not built: install with a "
                "C compiler (pip install --no-binary sklearn_rankcal sklearn_rankcal)."
            ) from error
if KERNELS == "numpy":
    from sklearn_rankcal.decoders import _kernels_numpy as kernels  # type: ignore[no-redef]

#: Seconds in NumPy's kernels, all calls of a process together, that are worth a warning.
WORTH_A_WARNING = 1.0
_expected = 0.0


def expect(seconds: float) -> None:
    """Tell that NumPy's kernels, if it is they that run, are about to take about so long.

    Warns once in a process, before the call with which they exceed `WORTH_A_WARNING`; not where
    SKLEARN_RANKCAL_KERNELS=numpy asked for them.
    """
    global _expected
    if KERNELS == "compiled" or _wanted == "numpy" or _expected > WORTH_A_WARNING:
        return
    _expected += seconds
    if _expected > WORTH_A_WARNING:
        warnings.warn(
            "The decoders run without compiled kernels: exact and greedy decoding take some 30 "
            "times longer, local search some hundreds of times. Install the package with a C "
            "compiler at hand (pip install --no-binary sklearn_rankcal sklearn_rankcal), or set "
            "SKLEARN_RANKCAL_KERNELS=numpy to keep it so without this warning.",
            UncompiledKernelsWarning,
            stacklevel=2,
        )


__all__ = ["KERNELS", "expect", "kernels"]
