"""Relevance labels: one relevance per row, with or without the query of the row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import column_or_1d

from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._features import is_dataframe, split_column, warn_of_other_order
from sklearn_rankcal.utils._messages import checks_keywords, counted
from sklearn_rankcal.utils._numbers import check_no_mask, check_range, read_numbers

GROUPS_REMEDY = (
    "Pass groups=<query id of each row>. Or pass y=relevance_labels(y, groups), which contains the "
    "ids and also works inside GridSearchCV and cross_validate. Or name a column of a data frame: "
    "group_column='qid'. With sklearn.set_config(enable_metadata_routing=True), scikit-learn "
    "passes groups= to the ranker."
)

RELEVANCE_DTYPE = np.dtype([("relevance", "f8"), ("query", "i8"), ("size", "i8")])


@checks_keywords
def relevance_labels(y: ArrayLike, groups: ArrayLike) -> NDArray[Any]:
    """Make relevance labels that contain the query of each row, to use as `y` in scikit-learn.

    By default, `GridSearchCV` and similar tools pass `groups` only to the splitter and not to the
    ranker, unless metadata routing is enabled. Labels that contain the queries reach the ranker,
    because they are split together with the rows. Queries must stay whole: `fit` and the scorers
    raise an error if a splitter has split a query.

    Transformers that use y, such as `TargetEncoder`, cannot read these labels. For them, pass plain
    labels, and the query ids by the `group_column` of the ranker.

    Parameters
    ----------
    y : array-like of shape (n_documents,)
        Relevance of each row, finite, larger is better.
    groups : array-like of shape (n_documents,)
        Query id of each row, of any type and in any order.

    Returns
    -------
    labels : structured ndarray of shape (n_documents,)
        One entry per row, with the fields ``relevance`` (float64), ``query`` (int64, numbered by
        first appearance) and ``size`` (int64, the number of rows of the query).

    Raises
    ------
    ValueError
        If `y` and `groups` have different lengths, if `y` contains NaN or infinity, or if a group
        id is missing.

    Examples
    --------
    >>> from sklearn_rankcal import relevance_labels
    >>> labels = relevance_labels([2, 0, 1], ["shoes", "hats", "shoes"])
    >>> labels["query"].tolist(), labels["size"].tolist()
    ([0, 1, 0], [2, 1, 2])
    """
    warn_of_other_order(y=y, groups=groups)
    relevance = check_relevance(y)
    queries = Queries.from_groups(groups, len(relevance))
    labels = np.empty(len(relevance), dtype=RELEVANCE_DTYPE)
    labels["relevance"] = relevance
    labels["query"] = queries.codes
    labels["size"] = queries.broadcast(queries.sizes)
    return labels


def is_structured(y: Any) -> bool:
    """Whether `y` is a structured array, with any fields."""
    return isinstance(y, np.ndarray) and y.dtype.names is not None


def read_relevance(y: Any, n_rows: int | None = None) -> tuple[NDArray[np.float64], Queries | None]:
    """Return the relevance of each row, and the queries if `y` is structured, otherwise None."""
    names = y.dtype.names if isinstance(y, np.ndarray) else None
    if names is None:
        return check_relevance(y, n_rows), None
    if names != RELEVANCE_DTYPE.names:
        raise ValueError(
            f"The structured labels have the fields {names}, but the labels of "
            f"relevance_labels(y, groups) have {RELEVANCE_DTYPE.names}."
        )
    check_no_mask(y, "y")
    relevance = check_relevance(y["relevance"], n_rows)
    return relevance, whole_queries(y, "relevance_labels")


def put_together(what: str, function: str) -> ValueError:
    """Return the error for structured labels that do not come from a single call."""
    return ValueError(
        f"Structured labels of several calls were concatenated, or rows were repeated: {what}. "
        f"Call {function} once, on all rows."
    )


def whole_queries(labels: NDArray[Any], function: str) -> Queries:
    """Return the queries of structured labels made by `function`, and check that they are whole."""
    queries = Queries.from_groups(labels["query"], len(labels))
    low, high = queries.min(labels["size"]), queries.max(labels["size"])
    if (low != high).any() or (low < queries.sizes).any():
        raise put_together("a query has more rows than its labels state", function)
    cut = np.flatnonzero(high > queries.sizes)
    if len(cut):
        q = cut[0]
        raise ValueError(
            f"{len(cut)} of {counted(queries.n_queries, 'query')} are incomplete: query "
            f"{queries.ids[q]} has {queries.sizes[q]} of its {counted(high[q], 'document')} here. "
            "A splitter has cut it. Split by query: cv=QueryKFold(), or GroupKFold() with groups=. "
            "(learning_curve and max_samples cut queries with every splitter.)"
        )
    return queries


def read_structure(
    y: Any, dtype: np.dtype[Any], kind: str, call: str, n_rows: int | None
) -> Queries:
    """Check that `y` is an array of structured labels or a part of it, and return its queries.

    `kind` and `call` describe the labels in error messages, for example ``"preferences"`` and
    ``"preference_labels(pairs, groups)"``.
    """
    wanted = f"Pass {kind} as {call}."
    if y is None:
        raise ValueError(f"This ranker requires y to be passed, but the target y is None. {wanted}")
    if not is_structured(y):
        shape = np.shape(y)
        if kind == "preferences" and len(shape) == 2 and shape[1] == 2:
            raise bare_pairs(shape, "Preference labels have one entry per row.")
        raise ValueError(f"y has shape {shape} and does not contain {kind}. {wanted}")
    if y.dtype.names != dtype.names:
        raise ValueError(
            f"The structured labels have the fields {y.dtype.names}, but the labels of {call} have "
            f"{dtype.names}."
        )
    check_no_mask(y, "y")
    if y.ndim != 1:
        raise ValueError(f"y must be a 1-D array with one entry per row; it has shape {y.shape}.")
    if n_rows is not None and len(y) != n_rows:
        raise ValueError(f"y has {counted(len(y), 'entry')}, but X has {counted(n_rows, 'row')}.")
    if len(y) == 0:
        raise ValueError("y is empty: at least one row is needed.")
    return whole_queries(y, call.partition("(")[0])


def agreed_queries(given: Queries | None, of_labels: Queries | None) -> Queries | None:
    """Return the queries of `groups` or of the labels, which must agree; None if both are None."""
    if given is None or of_labels is None:
        return given or of_labels
    if not given.same_partition(of_labels):
        raise ValueError("groups and the structured labels assign the rows to different queries.")
    return given


def groups_of_labels(y: Any) -> NDArray[np.int64] | None:
    """Return the query of each row if `y` is an array of structured labels, otherwise None."""
    return y["query"] if is_structured(y) and "query" in y.dtype.names else None


def bare_pairs(shape: tuple[int, ...], wanted: str) -> ValueError:
    """Return the error for a `y` that looks like pairs of row numbers."""
    return ValueError(
        f"y has shape {shape}. {wanted} Pairs of row numbers do not survive cross-validation "
        "and are not accepted as y. Pass y=preference_labels(pairs, groups)."
    )


def check_relevance(y: Any, n_rows: int | None = None) -> NDArray[np.float64]:
    """Check that relevance is one finite number per row, and return it as float64."""
    if y is None:
        raise ValueError("This ranker requires y to be passed, but the target y is None.")
    values = read_numbers(y, "y")
    if values.ndim == 2 and values.shape[1] == 2 and np.asarray(y).dtype.kind in "iu":
        raise bare_pairs(values.shape, "One relevance per row is expected.")
    relevance: NDArray[np.float64] = column_or_1d(values, warn=True)
    if n_rows is not None and len(relevance) != n_rows:
        raise ValueError(
            f"y has {counted(len(relevance), 'entry')}, but X has {counted(n_rows, 'row')}."
        )
    if len(relevance) == 0:
        raise ValueError("y is empty: at least one row is needed.")
    if not np.isfinite(relevance).all():
        row = int(np.flatnonzero(~np.isfinite(relevance))[0])
        raise ValueError(
            f"Input y contains NaN or infinity (first at row {row}). Every document of a query "
            "needs a relevance. Drop the rows that were not judged, or set their relevance to 0."
        )
    check_range(relevance, "y")
    return relevance


def queries_of_rows(
    final: Any,
    X: Any,
    groups: ArrayLike | None,
    of_labels: Queries | None,
    n_rows: int,
    who: str,
) -> tuple[Queries, Any]:
    """Return the queries of the rows, and the query ids to pass to `predict`."""
    if groups is not None:
        queries = Queries.from_groups(groups, n_rows)
        agreed_queries(queries, of_labels)
        return queries, groups
    if of_labels is not None:
        return of_labels, of_labels.codes
    column = getattr(final, "group_column", None)
    if column is not None and is_dataframe(X):
        ids = split_column(X, column)[1]
        return Queries.from_groups(ids, n_rows), ids
    raise ValueError(f"{who} cannot determine which rows belong to which query. {GROUPS_REMEDY}")
