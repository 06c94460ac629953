"""Everything that touches scikit-learn's private parts, in one file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from sklearn.base import _fit_context
from sklearn.utils._param_validation import HasMethods, Interval

__all__ = [
    "HasMethods",
    "Interval",
    "_fit_context",
    "argument_of",
    "calls_under_way",
    "inside",
    "split_under_way",
]


def _callers() -> Iterator[tuple[FrameType, str]]:
    """Each frame of the call stack, innermost first, with the name of its module."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame, frame.f_globals.get("__name__", "")
        frame = frame.f_back


def inside(*modules: str) -> bool:
    """Whether the caller was called, at whatever depth, from a module whose name begins so.

    With metadata routing off, scikit-learn's cross-validation hands `groups` to the splitter and
    says nothing to the estimator; its scorers call `predict` and compare with y. The call stack is
    the one place where either can be told from a user's own call. Only the refusal to guess hangs
    on the answer, never a number. Drop when metadata routing is always on.
    """
    return any(module.startswith(modules) for _, module in _callers())


def calls_under_way(*modules: str) -> frozenset[tuple[int, int, str]]:
    """An identity of each running call of a function whose module's name begins so.

    Two moments share an identity when one running call of scikit-learn contains both: `fit` and
    `predict` of one cross-validation do, a search and a later `predict` do not.
    """
    process = os.getpid()
    return frozenset(
        (process, id(frame), frame.f_code.co_name)
        for frame, module in _callers()
        if module.startswith(modules)
    )


def argument_of(function: str, modules: str, name: str, default: Any) -> Any:
    """An argument of the public scikit-learn function around the caller, else `default`.

    `function` is a function or a method, which `modules` (the beginning of a name) holds. Only
    documented arguments are read, so that nothing here depends on how scikit-learn works inside.
    """
    for frame, module in _callers():
        if frame.f_code.co_name == function and module.startswith(modules):
            return frame.f_locals.get(name, default)
    return default


def split_under_way() -> tuple[Any, Any, Any, Any] | None:
    """Table, routed groups, training rows and test rows of the cross-validation around the caller.

    None where no function of scikit-learn on the call stack has local variables of the names
    `X`, `train` and `test`. Four functions of scikit-learn 1.6 to 1.9 do: those that fit and then
    score or predict in `cross_validate` (and the searches), `cross_val_predict`,
    `permutation_test_score` and `RFECV`. This is the second line of defence: the ranker itself
    compares the queries of `predict` with those of `fit` (`_reading.py`). Only this one sees a
    test query whose other rows are in neither the training rows nor the test rows. Only a refusal
    depends on the answer, never a number.
    """
    for frame, module in _callers():
        if not module.startswith(("sklearn.model_selection.", "sklearn.feature_selection.")):
            continue
        local = frame.f_locals
        if all(name in local for name in ("X", "train", "test")):
            groups = (local.get("score_params") or {}).get("groups")
            return local["X"], groups, local["train"], local["test"]
    return None
