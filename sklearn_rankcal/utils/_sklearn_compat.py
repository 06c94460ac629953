"""Everything that touches scikit-learn's private parts, in one file."""

from __future__ import annotations

import sys
from typing import Any

from sklearn.base import _fit_context
from sklearn.utils._param_validation import HasMethods

__all__ = ["HasMethods", "_fit_context", "inside", "split_under_way"]


def inside(*modules: str) -> bool:
    """Whether the caller was called, at whatever depth, from a module whose name begins so.

    With metadata routing off, scikit-learn's cross-validation hands `groups` to the splitter and
    says nothing to the estimator; its scorers call `predict` and compare with y. The call stack is
    the one place where either can be told from a user's own call. Only the refusal to guess hangs
    on the answer, never a number. Drop when metadata routing is always on.
    """
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith(modules):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def split_under_way() -> tuple[Any, Any, Any, Any] | None:
    """Table, routed groups, training rows and test rows of the cross-validation around the caller.

    None outside scikit-learn's `_fit_and_score`, or where it holds them under other names. A
    splitter that cuts queries makes wrong numbers that nothing else shows; again only a refusal
    hangs on the answer.
    """
    frame = sys._getframe(1)
    while frame is not None:
        local = frame.f_locals
        named = all(name in local for name in ("X", "train", "test"))
        if frame.f_code.co_name == "_fit_and_score" and named:
            groups = (local.get("score_params") or {}).get("groups")
            return local["X"], groups, local["train"], local["test"]
        frame = frame.f_back  # type: ignore[assignment]
    return None
