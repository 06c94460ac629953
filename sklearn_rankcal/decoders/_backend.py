"""Which kernels run: the compiled ones where they were built, otherwise their NumPy twins.

A kernel is an inner loop of a decoder. Either all kernels are compiled or none is. The environment
variable ``SKLEARN_RANKCAL_KERNELS``, read at import, forces ``numpy`` or ``compiled``. If the NumPy
kernels run although nobody asked for them, `warn_if_slow` warns once about their speed.
"""

from __future__ import annotations

import warnings

from sklearn_rankcal.exceptions import UncompiledKernelsWarning
from sklearn_rankcal.utils._kernels import WANTED

#: Which kernels the decoders use: ``"compiled"`` or ``"numpy"``.
KERNELS = "numpy"
if WANTED != "numpy":
    try:
        from sklearn_rankcal.decoders import _kernels_compiled as kernels

        KERNELS = "compiled"
    except ImportError as error:
        if WANTED == "compiled":
            raise ImportError(
                "SKLEARN_RANKCAL_KERNELS is 'compiled', but the kernels were not built. Install "
                "the package with a C compiler (pip install --no-binary sklearn_rankcal "
                "sklearn_rankcal)."
            ) from error
if KERNELS == "numpy":
    from sklearn_rankcal.decoders import _kernels_numpy as kernels  # type: ignore[no-redef]

#: Warn when all calls of a process together are expected to spend more seconds in NumPy's kernels.
WORTH_A_WARNING = 1.0
_expected = 0.0


def warn_if_slow(seconds: float) -> None:
    """Announce a call that would take NumPy's kernels about this many seconds.

    Warns once in a process, when the calls announced so far exceed `WORTH_A_WARNING`. Does not
    warn if the compiled kernels run, or if SKLEARN_RANKCAL_KERNELS=numpy asked for NumPy.
    """
    global _expected
    if KERNELS == "compiled" or WANTED == "numpy" or _expected > WORTH_A_WARNING:
        return
    _expected += seconds
    if _expected > WORTH_A_WARNING:
        warnings.warn(
            "The decoders run without compiled kernels. Exact and greedy decoding therefore take "
            "5 to 40 times as long, and local search takes 50 to 300 times as long. "
            "Install the package with a C compiler (pip install --no-binary sklearn_rankcal "
            "sklearn_rankcal), or set the environment variable SKLEARN_RANKCAL_KERNELS=numpy to "
            "use the NumPy kernels without this warning.",
            UncompiledKernelsWarning,
            stacklevel=2,
        )


__all__ = ["KERNELS", "kernels", "warn_if_slow"]
