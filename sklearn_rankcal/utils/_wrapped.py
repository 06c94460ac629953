"""Find rankers inside pipelines, searches and other wrappers, and call them with groups.

This module does not import the rankers, because scorers and splitters use it without them. It
recognises the estimators of this package by three class attributes:

- ``_predicts_positions`` is true for a ranker: its `predict` takes `groups` and returns positions,
  1 = top.
- ``_predicts_scores`` is true for a regressor made from a ranker (`ScoreRegressor`): its `predict`
  takes `groups` and returns scores, larger is better.
- ``_takes_ranking_labels`` is true for every estimator with a `fit` that takes the structured array
  of `relevance_labels`.

The attributes are read from the class and not from the object, because a wrapper such as
`FrozenEstimator` forwards the attributes of the object that it holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.feature_selection import RFE
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags


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
    if predicts_positions(estimator) or predicts_scores(estimator):
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
        if predicts_positions(part) or _is_tagged_as_ranker(part):
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


def _is_tagged_as_ranker(part: Any) -> bool:
    if isinstance(part, type) or not hasattr(part, "__sklearn_tags__"):
        return False
    return get_tags(part).estimator_type == "ranker"


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
