"""Errors about the columns of a table, with remedies: absent ones, text, times and categories."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import numpy as np
from scipy import sparse

from sklearn_rankcal.utils._features import category_columns, is_dataframe
from sklearn_rankcal.utils._sklearn_compat import _check_feature_names, _check_n_features


def check_columns(estimator: Any, X: Any) -> None:
    """Compare the columns with those of `fit`, and say how to leave out additional ones."""
    try:
        _check_feature_names(estimator, X, reset=False)
        _check_n_features(estimator, X, reset=False)
    except ValueError as error:
        known = list(getattr(estimator, "feature_names_in_", ()))
        if known and is_dataframe(X) and {*known} < {*X.columns}:
            error.add_note("Pass the columns of fit alone: X[list(ranker.feature_names_in_)].")
        raise


def text_columns(X: Any) -> list[tuple[Any, Any]]:
    """Find columns that contain times or non-numeric text, each with an example value.

    Categories of pandas and polars are not text.
    """
    if sparse.issparse(X) or (not is_dataframe(X) and X.dtype.kind not in "OSU"):
        return []
    frame = is_dataframe(X)
    dtypes = list(X.dtypes) if frame else [X.dtype] * X.shape[1]
    is_plain = _is_plain_of_polars if hasattr(X, "with_columns") else _is_plain
    found = []
    for place in (place for place, dtype in enumerate(dtypes) if not is_plain(dtype)):
        column = X.columns[place] if frame else place
        values = X[column] if frame else X[:, column]
        if getattr(values, "ndim", 1) != 1:  # two columns of the same name: the regressor's error
            continue
        texts = (v for v in values if not _like_a_number(v))
        found += [(column, example) for example in [next(texts, None)] if example is not None]
    return found


def _is_plain(dtype: Any) -> bool:
    """Whether a dtype of NumPy or pandas has numbers or categories."""
    return getattr(dtype, "kind", "O") in "biufc" or hasattr(dtype, "categories")


def _is_plain_of_polars(dtype: Any) -> bool:
    return dtype.is_numeric() or str(dtype).startswith(("Bool", "Cat", "Enum"))


def _like_a_number(value: Any) -> bool:
    """Return whether a value is not a time, and not text that `float` cannot convert."""
    if not isinstance(value, str):
        return not isinstance(value, date | timedelta | np.datetime64 | np.timedelta64)
    try:
        float(value)
    except ValueError:
        return False
    return True


def check_no_text(
    X: Any,
    who: str,
    *,
    takes_categories: bool = False,
    has_ids: bool = False,
    to_ranker: bool = True,
) -> None:
    """Raise an error if columns contain text or times, with their names and remedies.

    `has_ids` says whether the query ids are known, and `to_ranker` whether a ranker got X.
    """
    if not (found := text_columns(X)):
        return
    several, frame = len(found) > 1, is_dataframe(X)
    names = ", ".join(repr(column) if frame else f"number {column}" for column, _ in found)
    them = "them" if several else "it"
    text = (
        f"{'Columns' if several else 'Column'} {names} of X {'contain' if several else 'contains'} "
        f"text or times (such as {found[0][1]!r}), but {who} needs "
        f"numbers{' or categories' if takes_categories else ''}. "
    )
    advice = ""
    if frame and not has_ids:
        which = "one of them" if several else "it"
        advice += f"If {which} contains query ids, pass group_column={found[0][0]!r}. "
    if takes_categories and (category := _as_category(X, found)):
        advice += f"Make text a category: {category}. "
    if not any(isinstance(example, str) for _, example in found):
        advice += "Convert times to numbers, for example to days since a date. "
    raise ValueError(
        f"{text}{advice}{'Otherwise drop' if advice else 'Drop'} {them}, or encode {them}, for "
        "example with sklearn's OrdinalEncoder or TargetEncoder"
        f"{', in a pipeline before the ranker' if to_ranker else ''}."
    )


def note_columns(error: Exception, X: Any) -> None:
    """Add a note to a regressor's error, with the columns it cannot read and remedies.

    These are the columns of text or, if there are none, the categorical columns.
    """
    if "cardinality" in str(error):  # an error of histogram boosting
        error.add_note(
            "A column with this many categories is better encoded as a number: put sklearn's "
            "TargetEncoder into a pipeline before the ranker, or keep only the most frequent "
            "categories and merge the rest into one."
        )
    elif (categories := category_columns(X)) and "float" in str(error):
        error.add_note(
            f"Columns of X with categories: {categories}. The regressor needs numbers: encode "
            "them, for example with sklearn's OneHotEncoder or TargetEncoder, in a pipeline before "
            "the ranker."
        )
    if not (found := text_columns(X)):
        return
    category = _as_category(X, found)
    error.add_note(
        f"Columns of X with text or times: {[column for column, _ in found]}. "
        + (
            f"If the regressor takes categories, make text a category: {category}. "
            if category
            else ""
        )
        + f"{'Otherwise' if category else 'Drop the columns, or'} encode them, for "
        "example with sklearn's OrdinalEncoder or TargetEncoder, in a pipeline before the ranker."
    )


def _as_category(X: Any, found: list[tuple[Any, Any]]) -> str:
    """Return code that converts the text columns of a data frame to categories, or ""."""
    text = [column for column, example in found if isinstance(example, str)]
    if not text or not is_dataframe(X):
        return ""
    if hasattr(X, "with_columns"):
        return f"X = X.with_columns(polars.col({text}).cast(polars.Categorical))"
    return f"X = X.astype({dict.fromkeys(text, 'category')})"
