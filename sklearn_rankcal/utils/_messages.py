"""What estimators tell their users: warnings that point at the user's line, and progress."""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line outside this package and scikit-learn, usually the user's."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _is_library(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _is_library(module: str) -> bool:
    return module.partition(".")[0] in ("sklearn_rankcal", "sklearn")


def print_progress(estimator: Any, what: str, started: float | None = None) -> None:
    """Print a line if `verbose` is not 0, with the seconds since `started` if it is given."""
    if estimator.verbose:
        took = "" if started is None else f" ({time.perf_counter() - started:.2f} s)"
        print(f"[{type(estimator).__name__}] {what}{took}", flush=True)
