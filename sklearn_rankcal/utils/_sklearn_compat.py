"""Everything that touches scikit-learn's private parts, in one file."""

from __future__ import annotations

import sys

from sklearn.base import _fit_context
from sklearn.utils._param_validation import HasMethods

__all__ = ["HasMethods", "_fit_context", "inside_cross_validation"]

# Modules that fit clones of an estimator on parts of the data.
_SPLITTING = ("sklearn.model_selection.", "sklearn.feature_selection.")


def inside_cross_validation() -> bool:
    """Whether the caller runs inside scikit-learn's cross-validation or feature selection.

    With metadata routing off these hand `groups` to the splitter and say nothing to the
    estimator: the call stack is the one place where that can be told from a plain ``fit(X, y)``.
    Only the refusal to guess hangs on the answer, never a number. Drop when metadata routing is
    always on (scikit-learn 2.0?).
    """
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith(_SPLITTING):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
