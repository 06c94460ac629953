"""Versions of the package and what it stands on, for bug reports."""

from __future__ import annotations

import platform
import sys
from importlib import metadata

DEPENDENCIES = ("scikit-learn", "numpy", "scipy", "joblib")
OPTIONAL = ("pandas", "polars", "matplotlib", "lightgbm", "xgboost")


def show_versions() -> None:
    """Print the versions of Python, the package and its dependencies.

    Examples
    --------
    >>> from sklearn_rankcal import show_versions
    >>> show_versions()  # doctest: +ELLIPSIS
    System:
    ...
    """
    import sklearn_rankcal

    print("System:")
    print(f"    python: {sys.version.split()[0]}")
    print(f"   machine: {platform.platform()}")
    print("Packages:")
    print(f"{'sklearn_rankcal':>18}: {sklearn_rankcal.__version__}")
    for name in DEPENDENCIES + OPTIONAL:
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            version = "not installed"
        print(f"{name:>18}: {version}")
