"""Messages of estimators: warnings that point at the user's line, and progress."""

from __future__ import annotations

import re
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


def counted(n: float, noun: str) -> str:
    """Format a count with its noun: "1 query", "2,000 queries".

    Examples
    --------
    >>> from sklearn_rankcal.utils._messages import counted
    >>> counted(1, "query"), counted(2000, "query"), counted(0, "class"), counted(3, "vote")
    ('1 query', '2,000 queries', '0 classes', '3 votes')
    """
    if n != 1:
        noun = re.sub("y$", "ie", noun) + ("es" if noun.endswith("s") else "s")
    return f"{n:,.0f} {noun}"


def all_of(n: int, noun: str) -> str:
    """Format "all 3 queries" or "the only query".

    Examples
    --------
    >>> from sklearn_rankcal.utils._messages import all_of
    >>> all_of(3, "query"), all_of(1, "query")
    ('all 3 queries', 'the only query')
    """
    return f"the only {noun}" if n == 1 else f"all {counted(n, noun)}"


def percent(share: float) -> str:
    """Format a share in percent with two digits, or three if two would round to 100.

    Examples
    --------
    >>> from sklearn_rankcal.utils._messages import percent
    >>> percent(0.00123), percent(0.5), percent(0.997), percent(1.0)
    ('0.12 %', '50 %', '99.7 %', '100 %')
    """
    digits = 2 if share < 0.99 else 3
    return f"{float(f'{100 * share:.{digits}g}'):g} %"


def print_progress(estimator: Any, what: str, started: float | None = None) -> None:
    """Print a line if `verbose` is not 0, with the seconds since `started` if given."""
    if estimator.verbose:
        took = "" if started is None else f" ({time.perf_counter() - started:.2f} s)"
        print(f"[{type(estimator).__name__}] {what}{took}", flush=True)
