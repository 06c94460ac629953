"""Everything in this package that depends on private parts of scikit-learn."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from sklearn.base import _fit_context
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

__all__ = [
    "HasMethods",
    "Interval",
    "StrOptions",
    "_fit_context",
    "argument_of",
    "calls_under_way",
    "inside",
    "split_under_way",
]


def _callers() -> Iterator[tuple[FrameType, str]]:
    """Yield each frame of the call stack, innermost first, with the name of its module."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame, frame.f_globals.get("__name__", "")
        frame = frame.f_back


def inside(*modules: str) -> bool:
    """Whether a function of one of these modules is on the call stack.

    A name stands for all modules whose names begin with it.

    With metadata routing off, scikit-learn's cross-validation passes `groups` to the splitter and
    not to the estimator, and its scorers call `predict` and compare the result with y. Only the
    call stack distinguishes these calls from a user's own. The answer only determines whether an
    error is raised, never a number. Drop this when metadata routing is always on.
    """
    return any(module.startswith(modules) for _, module in _callers())


def calls_under_way(*modules: str) -> frozenset[tuple[int, int, str]]:
    """Identify the running calls of functions of modules whose names begin with one of `modules`.

    Two moments share an identity if one running call of scikit-learn contains both. This is true
    for `fit` and `predict` of one cross-validation, and false for a search and a later `predict`.
    """
    process = os.getpid()
    return frozenset(
        (process, id(frame), frame.f_code.co_name)
        for frame, module in _callers()
        if module.startswith(modules)
    )


def argument_of(function: str, modules: str, name: str, default: Any) -> Any:
    """Return an argument of a public scikit-learn function that is running, else `default`.

    `function` is the name of a function or method, in a module whose name begins with `modules`.
    Only documented arguments are read, so that the result does not depend on how scikit-learn
    works inside.
    """
    for frame, module in _callers():
        if frame.f_code.co_name == function and module.startswith(modules):
            return frame.f_locals.get(name, default)
    return default


def split_under_way() -> tuple[Any, Any, Any, Any] | None:
    """Return `X`, routed groups, training and test rows of the cross-validation that is running.

    The result is None if no function of scikit-learn on the call stack has local variables named
    `X`, `train` and `test`. Four functions of scikit-learn 1.6 to 1.9 have them: those that fit and
    then score or predict in `cross_validate` (and the searches), `cross_val_predict`,
    `permutation_test_score` and `RFECV`. This is the second line of defence. The first is the
    ranker itself, which compares the queries of `predict` with those of `fit`
    (`rankers/_cut_queries.py`). Only this function detects a test query whose other rows are
    neither in the training rows nor in the test rows. The answer only determines whether an error
    is raised, never a number.
    """
    for frame, module in _callers():
        if not module.startswith(("sklearn.model_selection.", "sklearn.feature_selection.")):
            continue
        local = frame.f_locals
        if all(name in local for name in ("X", "train", "test")):
            groups = (local.get("score_params") or {}).get("groups")
            return local["X"], groups, local["train"], local["test"]
    return None
