"""A base class that warns if an estimator is unpickled with other versions of packages."""

from __future__ import annotations

import warnings
from typing import Any

import sklearn
from sklearn.exceptions import InconsistentVersionWarning

from sklearn_rankcal._version import __version__

_REMEDY = (
    "Fit it again, or store it in a way that does not depend on versions: to_arrays or ONNX "
    "(see 'Saving rankers' in the user guide)."
)


class VersionedPickle:
    """Store the versions of scikit-learn and of this package in pickles, and check them on loading.

    scikit-learn does this for its own classes only. The versions come first in the pickle, so that
    the warning appears before scikit-learn's own trees fail to load.
    """

    def __reduce__(self) -> Any:
        versions = sklearn.__version__, __version__
        return _rebuild, (type(self), *versions), self.__getstate__()


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
            f"{__version__}. It may fail or return other results. {_REMEDY}",
            UserWarning,
            stacklevel=2,
        )
    return kind.__new__(kind)
