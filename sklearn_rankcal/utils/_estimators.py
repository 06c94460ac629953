"""Shared parts of estimators: pickles, links in their HTML, nested parameters."""

from __future__ import annotations

import sys
import warnings
from functools import cache
from importlib import metadata
from typing import Any

import sklearn
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.utils import check_random_state

from sklearn_rankcal._version import __version__


def reduce_with_versions(self: Any) -> Any:
    """Pickle an estimator with the versions of scikit-learn and of this package."""
    # scikit-learn only does this for its own classes. The versions come first in the pickle: the
    # warning must appear before scikit-learn's own trees fail to load.
    return _rebuild, (type(self), sklearn.__version__, __version__), self.__getstate__()


def _rebuild(kind: Any, of_sklearn: str, of_package: str) -> Any:
    """Return an empty object of a class. Pickle sets its state afterwards."""
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


@cache
def documentation_site() -> str:
    """Return the address from ``project_urls`` of setup.cfg, or "" if there is none."""
    try:
        urls = metadata.metadata("sklearn_rankcal").get_all("Project-URL", [])
    except metadata.PackageNotFoundError:  # a source tree that is not installed
        return ""
    found = (url.partition(", ") for url in urls)
    return next((site.rstrip("/") for name, _, site in found if name == "Documentation"), "")


class SiteLink:
    """Link the HTML of an estimator to its page in the documentation, if that has an address."""

    @property
    def _doc_link_module(self) -> str:
        return "sklearn_rankcal" if documentation_site() else ""

    @property
    def _doc_link_template(self) -> str:
        kind, package = type(self), sys.modules["sklearn_rankcal"]
        module = kind.__module__.rpartition(".")[0]
        if getattr(package, kind.__name__, None) is kind:
            module = "sklearn_rankcal"
        return f"{documentation_site()}/generated/{module}.{{estimator_name}}.html"


def set_random_states(estimator: Any, random_state: Any) -> Any:
    """Set every ``random_state`` of an estimator and of the estimators inside it, and return it.

    The seeds come from `random_state`. If it is None, nothing changes.
    """
    if random_state is not None:
        seeds = check_random_state(random_state)
        for name in sorted(estimator.get_params()):
            if name.split("__")[-1] == "random_state":
                estimator.set_params(**{name: seeds.randint(2**31 - 1)})
    return estimator


def set_verbose(estimator: Any, verbose: int) -> None:
    """Set every ``verbose`` that is 0 or False, in an estimator and the estimators inside it.

    An estimator inside another estimator that reports its fits gets 1 less, because there are many
    such fits. Examples are members of a stack and the regressor of a search. A pipeline does not
    count, because its ``verbose`` is True or False. Values of 0 or less are not set.
    """
    values = {
        name.removesuffix("verbose"): value
        for name, value in estimator.get_params().items()
        if name.split("__")[-1] == "verbose" and isinstance(value, int)
    }
    for prefix, value in values.items():
        around = [
            outer
            for outer, of_outer in values.items()
            if prefix != outer and prefix.startswith(outer) and not isinstance(of_outer, bool)
        ]
        if value == 0 and verbose > len(around):
            estimator.set_params(**{f"{prefix}verbose": verbose - len(around)})
