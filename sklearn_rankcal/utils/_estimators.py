"""Estimators of any library: pickles, links, seeds, copies, and the rankers inside wrappers.

This module does not import the rankers, because scorers and splitters use it without them. It
recognises the estimators of this package by three attributes of their classes:

- ``_predicts_positions``: `predict` takes `groups` and returns positions, 1 = top, as rankers do.
- ``_predicts_scores``: `predict` takes `groups` and returns scores, as `ScoreRegressor` does.
- ``_takes_ranking_labels``: `fit` takes the structured array of `relevance_labels`.

They are read from the class, because a wrapper such as `FrozenEstimator` forwards the attributes of
the object that it holds.
"""

from __future__ import annotations

import copy
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from typing import Any

import numpy as np
import sklearn
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.base import clone as _clone
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.feature_selection import RFE
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state, get_tags

from sklearn_rankcal._version import __version__
from sklearn_rankcal.utils._features import category_columns, in_container, is_dataframe


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


# -------------------------------------------------------------------- CatBoost

# scikit-learn's `clone` rejects a regressor with a list or a dict among its parameters, such as
# cat_features=[0], because CatBoost copies them. CatBoost must be told which columns of a frame are
# categories. It accepts no missing categories, and no array of floats with categories.

_MISSING = "missing value"  # the category that replaces missing values


def tags_of(estimator: Any) -> Any:
    """Return the tags of an inner estimator, or raise TypeError if it has none."""
    # scikit-learn 1.6 has tags for estimators of older libraries, which at least have parameters.
    if not (hasattr(estimator, "__sklearn_tags__") or hasattr(estimator, "get_params")):
        name = type(estimator).__name__
        raise TypeError(
            f"{name} is not an estimator of scikit-learn: it has no tags and no parameters. Derive "
            f"its class from the base classes, class {name}(RegressorMixin, BaseEstimator), which "
            "are in sklearn.base."
        )
    return get_tags(estimator)


def is_catboost(regressor: Any) -> bool:
    """Return whether an object is from CatBoost or from a subclass of a CatBoost class."""
    return "catboost" in {kind.__module__.partition(".")[0] for kind in type(regressor).__mro__}


def clone(estimator: Any) -> Any:
    """Clone an estimator as scikit-learn does, and copy an estimator of CatBoost."""
    if not hasattr(estimator, "get_params"):
        tags_of(estimator)  # raises an error
    if is_catboost(estimator):
        return type(estimator)(**copy.deepcopy(estimator.get_params()))
    return _clone(estimator)


def clone_with_catboost(self: Any) -> Any:
    """Clone an estimator with a parameter that can be a CatBoost regressor."""
    parameters = self.get_params(deep=False)
    held = {name: value for name, value in parameters.items() if is_catboost(value)}
    plain = copy.copy(self) if held else self
    for name in held:
        setattr(plain, name, None)
    cloned = BaseEstimator.__sklearn_clone__(plain)
    for name, value in held.items():
        setattr(cloned, name, clone(value))
    return cloned


def readable_table(regressor: Any, X: Any) -> Any:
    """Convert X to a table that a CatBoost regressor can read. Return X for other regressors."""
    if not is_catboost(regressor):
        return X
    if not is_dataframe(X):
        listed = regressor.get_params().get("cat_features")
        if listed is None or not isinstance(X, np.ndarray):
            return X
        import pandas as pd

        table = pd.DataFrame(X).infer_objects()
        floats = [place for place in listed if table[place].dtype.kind == "f"]
        whole = [k for k in floats if (table[k] == np.round(table[k])).all()]  # CatBoost checks
        return table.astype(dict.fromkeys(whole, np.int64))
    names = category_columns(X)
    if not names:
        return X
    if not hasattr(X, "iloc"):  # CatBoost crashes on polars categories
        X = in_container(X, "pandas").astype(dict.fromkeys(names, "category"))
    columns = {}
    for name in names:  # text categories, including one for missing values
        texts = X[name].cat.rename_categories([str(one) for one in X[name].cat.categories])
        columns[name] = texts.cat.add_categories(_MISSING).fillna(_MISSING)
    return X.assign(**columns)


def predicts_positions(estimator: Any) -> bool:
    """Return whether an estimator is a ranker of this package: its `predict` returns positions."""
    return getattr(type(estimator), "_predicts_positions", False)


def predicts_scores(estimator: Any) -> bool:
    """Return whether an estimator is a `ScoreRegressor`: its `predict` returns scores."""
    return getattr(type(estimator), "_predicts_scores", False)


def takes_ranking_labels(estimator: Any) -> bool:
    """Return whether an estimator, or one inside it, takes the structured labels of rankers."""
    return any(
        getattr(type(part), "_takes_ranking_labels", False)
        for part in (estimator, *_objects_inside(estimator))
    )


# -------------------------------------------------------------------- wrappers with a known inside


def _wrapped_estimator(estimator: Any) -> Any:
    """Return the estimator that receives the rows of a search, pipeline or selector, or None."""
    kind = type(estimator)
    if getattr(kind, "_predicts_positions", False) or getattr(kind, "_predicts_scores", False):
        return None
    if isinstance(estimator, Pipeline):
        return estimator.steps[-1][1]
    if isinstance(estimator, FrozenEstimator):
        return estimator.estimator
    if isinstance(estimator, RFE):  # and RFECV; other wrappers may store something else there
        return getattr(estimator, "estimator_", None)
    return getattr(estimator, "best_estimator_", None)  # a search


def innermost_estimator(estimator: Any) -> Any:
    """Return the last estimator inside pipelines, searches, frozen estimators and selectors."""
    while (wrapped := _wrapped_estimator(estimator)) is not None:
        estimator = wrapped
    return estimator


def call_with_groups(estimator: Any, method: str, X: Any, groups: Any, **options: Any) -> Any:
    """Call a method of the innermost estimator with groups.

    `X` is first transformed by the pipelines and selectors around the estimator.
    """
    wrapped = _wrapped_estimator(estimator)
    if wrapped is None:
        return getattr(estimator, method)(X, groups=groups, **options)
    if isinstance(estimator, Pipeline):
        # A pipeline always passes the keywords of `predict` to its last step, and the keywords of
        # `decision_function` if metadata routing is on. Only the last step receives them: it must
        # not be a wrapper itself.
        routed = get_config()["enable_metadata_routing"] and method == "decision_function"
        if _wrapped_estimator(wrapped) is None and (method == "predict" or routed):
            return getattr(estimator, method)(X, groups=groups, **options)
        X = estimator[:-1].transform(X) if len(estimator) > 1 else X
    elif isinstance(estimator, RFE):
        X = estimator.transform(X)
    return call_with_groups(wrapped, method, X, groups, **options)


# -------------------------------------------------------------------- other wrappers


def refuse_hidden_ranker(estimator: Any, who: str) -> None:
    """Raise an error if `predict` of an estimator may return the positions of a ranker inside it.

    The caller, called `who` in the message, would read these positions as scores.
    """
    for part in _objects_inside(estimator):
        tagged = hasattr(part, "__sklearn_tags__") and not isinstance(part, type)
        if predicts_positions(part) or (tagged and get_tags(part).estimator_type == "ranker"):
            name = type(innermost_estimator(part)).__name__
            raise ValueError(
                f"{who} reads the output of predict as scores, where larger is better. "
                f"{type(estimator).__name__} holds a ranker ({name}), and its predict returns "
                "positions, 1 = top: the order would be reversed. Put ScoreRegressor(ranker) there "
                "instead: its predict returns scores."
            )


def label_ranker_in(estimator: Any) -> Any:
    """Return a label ranker, or one inside an estimator, or None. It decides how to read `y`."""
    for part in (estimator, *_objects_inside(estimator)):
        if hasattr(part, "y_type") and not isinstance(part, type):
            return part
    return None


def _objects_inside(estimator: Any) -> Iterator[Any]:
    """Yield every object inside an estimator that may take part in its `predict`, except itself.

    The search follows attributes and parameters, lists, dicts and arrays of objects, through every
    object that has a `predict`. It stops at a `ScoreRegressor`, because this returns scores. In a
    `Pipeline`, it only follows the last step, because earlier steps do not predict.
    """
    seen: set[int] = {id(estimator)}
    waiting = list(_direct_parts(estimator))
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        waiting.extend(_direct_parts(part))


def _direct_parts(part: Any) -> Iterator[Any]:
    """Yield the objects in an object that may take part in its `predict`."""
    if predicts_scores(part):
        return
    if isinstance(part, dict):
        yield from part.values()
    elif isinstance(part, list | tuple | set):
        yield from part
    elif isinstance(part, np.ndarray):
        yield from part.ravel().tolist() if part.dtype == object else ()
    elif isinstance(part, Pipeline):
        yield part.steps[-1][1]
    elif hasattr(part, "predict") and not isinstance(part, type):
        yield from getattr(part, "__dict__", {}).values()
        if isinstance(part, BaseEstimator):
            yield from part.get_params(deep=False).values()
