"""The inner loops of decoders, context columns and surrogates: compiled, or their NumPy twins.

``kernels`` holds all of them by name. Either all kernels are compiled or none is. The environment
variable ``SKLEARN_RANKCAL_KERNELS``, read at import, forces ``numpy`` or ``compiled``. If the NumPy
kernels run although nobody asked for them, `warn_if_slow` warns once about their speed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sklearn_rankcal.exceptions import UncompiledKernelsWarning
from sklearn_rankcal.utils._messages import warn

_WANTED = os.environ.get("SKLEARN_RANKCAL_KERNELS", "")
if _WANTED not in ("", "numpy", "compiled"):
    raise ImportError(
        f"SKLEARN_RANKCAL_KERNELS must be 'numpy', 'compiled' or unset; it is {_WANTED!r}."
    )
#: Which kernels run: ``"compiled"`` or ``"numpy"``.
KERNELS = "numpy"
if _WANTED != "numpy" and not TYPE_CHECKING:  # the twins have annotations
    try:
        from sklearn_rankcal._kernels import _compiled as kernels

        KERNELS = "compiled"
    except ImportError as error:
        if _WANTED == "compiled":
            raise ImportError(
                "SKLEARN_RANKCAL_KERNELS is 'compiled', but the kernels were not built. Install "
                "the package with a C compiler (pip install --no-binary sklearn_rankcal "
                "sklearn_rankcal)."
            ) from error
if KERNELS == "numpy":
    from sklearn_rankcal._kernels import _numpy as kernels

#: Warn when all calls of a process together are expected to spend more seconds in NumPy's kernels.
WORTH_A_WARNING = 1.0
_expected = 0.0


def warn_if_slow(seconds: float) -> None:
    """Warn once in a process, when the calls announced so far would take NumPy's kernels long.

    Does not warn if the compiled kernels run, or if SKLEARN_RANKCAL_KERNELS=numpy asked for NumPy.
    """
    global _expected
    if KERNELS == "compiled" or _WANTED == "numpy" or _expected > WORTH_A_WARNING:
        return
    _expected += seconds
    if _expected > WORTH_A_WARNING:
        warn(
            "The decoders run without compiled kernels. Exact and greedy decoding therefore take "
            "5 to 40 times as long, and local search takes 50 to 300 times as long. "
            "Install the package with a C compiler (pip install --no-binary sklearn_rankcal "
            "sklearn_rankcal), or set the environment variable SKLEARN_RANKCAL_KERNELS=numpy to "
            "use the NumPy kernels without this warning.",
            UncompiledKernelsWarning,
        )
