"""Errors about the columns of a table, with remedies: absent ones, text, times and categories."""

from __future__ import annotations

from typing import Any

from sklearn_rankcal.utils._features import as_number, category_columns, is_dataframe, read_text
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


def text_columns(X: Any, kept: Any = None) -> list[tuple[Any, Any]]:
    """Find columns that contain times or non-numeric text, each with an example value.

    Categories, and the columns in `kept` if it is not None, do not count.
    """
    found = []
    for column in read_text(X, category_columns(X) if kept is None else kept)[1]:
        values = X[column] if is_dataframe(X) else X[:, column]
        others = (value for value in values if not isinstance(as_number(value), float))
        found.append((column, next(others, None)))
    return found


def without_text(
    X: Any,
    who: str,
    kept: Any = None,
    *,
    takes_categories: bool = False,
    has_ids: bool = False,
    to_ranker: bool = True,
) -> Any:
    """Return X with numbers in the place of their texts; raise an error for other text and times.

    The error names the columns and remedies. `has_ids` says whether the query ids are known, and
    `to_ranker` whether a ranker got X. `kept` are columns that may have text or times; by default,
    those of categories.
    """
    kept = category_columns(X) if kept is None else kept
    table, lacking = read_text(X, kept)
    if not lacking:
        return table
    found = text_columns(X, kept)
    several, frame = len(found) > 1, is_dataframe(X)
    names = ", ".join(repr(column) if frame else f"number {column}" for column, _ in found)
    advice = ""
    if frame and not has_ids:
        which = "one of them" if several else "it"
        advice = f"If {which} contains query ids, pass group_column={found[0][0]!r}. "
    if not any(isinstance(example, str) for _, example in found):
        advice += "Convert times to numbers, for example to days since a date. "
    raise ValueError(
        f"{'Columns' if several else 'Column'} {names} of X {'contain' if several else 'contains'} "
        f"text or times (such as {found[0][1]!r}), but {who} needs "
        f"numbers{' or categories' if takes_categories else ''}. {advice}"
        + _remedies(X, found, "Make" if takes_categories else "", to_ranker)
    )


def note_columns(error: Exception, X: Any) -> None:
    """Add a note to a regressor's error, with the columns it cannot read and remedies.

    These are the columns of text or, if there are none, the categorical columns.
    """
    if "cardinality" in str(error):  # an error of histogram boosting
        error.add_note(
            "A column with this many categories is better encoded as a number: put sklearn's "
            "TargetEncoder into a pipeline with the regressor, or keep only the most frequent "
            "categories and merge the rest into one."
        )
    elif (categories := category_columns(X)) and "float" in str(error):
        error.add_note(
            f"Columns of X with categories: {categories}. The regressor needs numbers: {_ENCODE}."
        )
    if found := text_columns(X):
        remedies = _remedies(X, found, "If the regressor takes categories, make")
        error.add_note(
            f"Columns of X with text or times: {[column for column, _ in found]}. {remedies}"
        )


#: Encoders that also work if the labels carry the query ids: a `TargetEncoder` before the ranker
#: would receive these labels.
_ENCODE = (
    "encode them, for example with sklearn's OrdinalEncoder in a pipeline before the ranker, or "
    "with its TargetEncoder in a pipeline with the regressor"
)
_SHARE_OF_IDS, _FEWEST_IDS = 0.9, 20  # different texts per row, from which a column has ids


def _remedies(X: Any, found: list[tuple[Any, Any]], make: str, to_ranker: bool = True) -> str:
    """Return what to do about columns of text or times; `make` begins the advice on categories."""
    texts = [column for column, example in found if isinstance(example, str)]
    values = {name: X[name] if is_dataframe(X) else X[:, name] for name in texts}
    advice, most = "", max(_FEWEST_IDS, _SHARE_OF_IDS * X.shape[0])
    if ids := [name for name in texts if len(set(values[name])) >= most]:
        advice = (
            f"Nearly every row has another text in {ids}. Ids are no features, because new rows "
            "have new ones: drop them. "
        )
    texts = [name for name in texts if name not in ids]
    if make and texts and is_dataframe(X):
        code = f"X = X.astype({dict.fromkeys(texts, 'category')})"
        if hasattr(X, "with_columns"):
            code = f"X = X.with_columns(polars.col({texts}).cast(polars.Categorical))"
        advice += f"{make} text a category: {code}. "
    encode = _ENCODE if to_ranker else "encode them, for example with sklearn's OrdinalEncoder"
    return f"{advice}{'Otherwise drop' if advice else 'Drop'} the columns, or {encode}."
