"""Which kernels run: the compiled ones where they were built, else their NumPy twins.

The environment variable ``SKLEARN_RANKCAL_KERNELS``, read at import, forces ``numpy`` or
``compiled``; the results are the same.
"""

from __future__ import annotations

import os

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

__all__ = ["KERNELS", "kernels"]
