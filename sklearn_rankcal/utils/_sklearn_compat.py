"""Everything that touches scikit-learn's private parts, in one file."""

from __future__ import annotations

import sys

from sklearn.base import _fit_context
from sklearn.utils._param_validation import HasMethods

__all__ = ["HasMethods", "_fit_context", "inside"]


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
