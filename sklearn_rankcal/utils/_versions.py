"""Versions of the package and of its dependencies, for bug reports."""

from __future__ import annotations

import platform
import sys
from importlib import metadata

DEPENDENCIES = ("scikit-learn", "numpy", "scipy", "joblib")
OPTIONAL = ("pandas", "polars", "matplotlib", "lightgbm", "xgboost")


def show_versions() -> None:
    """Print the versions of Python, of the package and of its dependencies, and the kernels in use.

    The kernels are ``compiled``. They are ``numpy`` if the package was built without a C compiler,
    or if the environment variable ``SKLEARN_RANKCAL_KERNELS`` is set to ``numpy``.

    Examples
    --------
    >>> from sklearn_rankcal import show_versions
    >>> show_versions()  # doctest: +ELLIPSIS
    System:
    ...
    """
    import sklearn_rankcal
    from sklearn_rankcal.decoders import KERNELS

    print("System:")
    print(f"    python: {sys.version.split()[0]}")
    print(f"   machine: {platform.platform()}")
    print(f"   kernels: {KERNELS}")
    print("Packages:")
    print(f"{'sklearn_rankcal':>18}: {sklearn_rankcal.__version__}")
    for name in DEPENDENCIES + OPTIONAL:
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            version = "not installed"
        print(f"{name:>18}: {version}")
