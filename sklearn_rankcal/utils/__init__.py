"""Helpers that are independent of ranking: input checks, files, memory, versions, scikit-learn."""

from __future__ import annotations

import platform
import sys
from importlib import metadata

from sklearn_rankcal._kernels import KERNELS
from sklearn_rankcal._version import __version__

__all__ = ["show_versions"]

DEPENDENCIES = ("scikit-learn", "numpy", "scipy", "joblib")
OPTIONAL = ("pandas", "polars", "matplotlib", "lightgbm", "xgboost", "catboost", "dask")


def show_versions() -> None:
    """Print the versions of Python, the package and its dependencies, and the kernels in use.

    The kernels are the inner loops of the decoders, and are ``compiled`` or ``numpy``. They are
    ``numpy`` if the package was built without a C compiler, or if the environment variable
    ``SKLEARN_RANKCAL_KERNELS`` is set to ``numpy``.

    Examples
    --------
    >>> from sklearn_rankcal import show_versions
    >>> show_versions()  # doctest: +ELLIPSIS
    System:
    ...
    """
    print("System:")
    print(f"    python: {sys.version.split()[0]}")
    print(f"   machine: {platform.platform()}")
    print(f"   kernels: {KERNELS}")
    print("Packages:")
    print(f"{'sklearn_rankcal':>18}: {__version__}")
    for name in DEPENDENCIES + OPTIONAL:
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            version = "not installed"
        print(f"{name:>18}: {version}")
