"""Helpers that are independent of ranking: input checks, files, memory, versions, scikit-learn."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module, metadata
from typing import Any

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


def load_on_use(
    module: str, names: Iterable[str], folders: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a module with names of other folders (PEP 562).

    `folders` has the folder of each name that is not imported by the module itself. `names` are all
    names for ``dir``.
    """

    def get(name: str) -> Any:
        if name in folders:
            return getattr(import_module(f"sklearn_rankcal.{folders[name]}"), name)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return get, lambda: sorted({*vars(import_module(module)), *names})
