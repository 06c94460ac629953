"""The inner loops of decoders, context columns and surrogates, compiled or in NumPy.

``kernels`` holds all of them by name. Either all kernels are compiled or none is. The environment
variable ``SKLEARN_RANKCAL_KERNELS``, read at import, forces ``numpy`` or ``compiled``.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

#: The kernels that the user asked for, or "".
WANTED = os.environ.get("SKLEARN_RANKCAL_KERNELS", "")
if WANTED not in ("", "numpy", "compiled"):
    raise ImportError(
        f"SKLEARN_RANKCAL_KERNELS must be 'numpy', 'compiled' or unset; it is {WANTED!r}."
    )
#: The kernels in use: ``"compiled"`` or ``"numpy"``.
KERNELS = "numpy"
if WANTED != "numpy" and not TYPE_CHECKING:  # only the NumPy versions have annotations
    try:
        from sklearn_rankcal._kernels import _compiled as kernels

        KERNELS = "compiled"
    except ImportError as error:
        if WANTED == "compiled":
            raise ImportError(
                "SKLEARN_RANKCAL_KERNELS is 'compiled', but the kernels were not built. Install "
                "the package with a C compiler (pip install --no-binary sklearn_rankcal "
                "sklearn_rankcal)."
            ) from error
if KERNELS == "numpy":
    from sklearn_rankcal._kernels import _numpy as kernels
