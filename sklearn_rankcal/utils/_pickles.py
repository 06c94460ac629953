"""Pickles that warn if an estimator is loaded with other versions of packages."""

from __future__ import annotations

import warnings
from typing import Any

import sklearn
from sklearn.exceptions import InconsistentVersionWarning

from sklearn_rankcal._version import __version__


def reduce_with_versions(self: Any) -> Any:
    """Store the versions of scikit-learn and of this package."""
    # scikit-learn does this for its own classes only. The versions come first in the pickle, so
    # that the warning appears before scikit-learn's own trees fail to load.
    return _rebuild, (type(self), sklearn.__version__, __version__), self.__getstate__()


def _rebuild(kind: Any, of_sklearn: str, of_package: str) -> Any:
    """Return an empty object of a class, whose state pickle sets afterwards."""
    if of_sklearn != sklearn.__version__:
        warnings.warn(
            InconsistentVersionWarning(
                estimator_name=kind.__name__,
                current_sklearn_version=sklearn.__version__,
                original_sklearn_version=of_sklearn,
            ),
            stacklevel=2,
        )
    if of_package != __version__:
        warnings.warn(
            f"This {kind.__name__} was pickled by sklearn_rankcal {of_package}, and this is "
            f"{__version__}. It may fail or return other results. Fit it again, or store it in a "
            "way that does not depend on versions, such as ONNX (see 'Saving rankers' in the user "
            "guide).",
            UserWarning,
            stacklevel=2,
        )
    return kind.__new__(kind)
