"""Which kernels the user wants: the environment variable ``SKLEARN_RANKCAL_KERNELS``."""

from __future__ import annotations

import os

#: "numpy" for kernels in NumPy, "compiled" for compiled ones, which then must exist, or "" for
#: compiled kernels where they were built.
WANTED = os.environ.get("SKLEARN_RANKCAL_KERNELS", "")
if WANTED not in ("", "numpy", "compiled"):
    raise ImportError(
        f"SKLEARN_RANKCAL_KERNELS must be 'numpy', 'compiled' or unset; it is {WANTED!r}."
    )
