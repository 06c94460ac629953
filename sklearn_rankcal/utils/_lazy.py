"""Names of a module that live in another folder, which is imported when they are used (PEP 562)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any


def load_on_use(
    module: str, names: Iterable[str], folders: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a module of the package.

    `folders` has the folder of each name that is not imported by the module itself. `names` are all
    names for ``dir``.
    """

    def get(name: str) -> Any:
        if name in folders:
            return getattr(import_module(f"sklearn_rankcal.{folders[name]}"), name)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return get, lambda: sorted({*vars(import_module(module)), *names})
