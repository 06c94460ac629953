"""Relevance labels: a relevance per row comes in, or carries its query; both come out, checked.

`y` is one relevance per row, or the structured array of `relevance_labels`, in which every row
carries its own query. The second survives every splitter of scikit-learn, so it is the way to
cross-validate where nobody routes `groups`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import column_or_1d

from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._numbers import check_no_mask, read_array, read_numbers

GROUPS_REMEDY = (
    "Pass groups=<query id of each row>, or carry the ids in y: relevance_labels(y, groups), "
    "which also reaches the ranker inside GridSearchCV and cross_validate, or name a data frame "
    "column: group_column='qid'. With sklearn.set_config(enable_metadata_routing=True) "
    "scikit-learn passes groups= on by itself."
)

RELEVANCE_DTYPE = np.dtype([("relevance", "f8"), ("query", "i8"), ("size", "i8")])


def relevance_labels(y: ArrayLike, groups: ArrayLike) -> NDArray[Any]:
    """Relevance labels that carry their query, for use as `y` anywhere in scikit-learn.

    With metadata routing off (scikit-learn's default) `GridSearchCV` and its relatives give
    `groups` to the splitter only, and a ranker never sees them. A structured `y` needs no
    routing: it is sliced with the rows, and its ``size`` field lets `fit` and the scorers refuse a
    query that a splitter has cut in two.

    Parameters
    ----------
    y : array-like of shape (n_documents,)
        Finite relevance of each row; larger is more relevant.
    groups : array-like of shape (n_documents,)
        Query id of each row: any type, any order, not necessarily contiguous.

    Returns
    -------
    labels : structured ndarray of shape (n_documents,)
        Fields ``relevance`` (float64), ``query`` (int64, numbered by first appearance) and
        ``size`` (int64, the number of rows of that query).

    Raises
    ------
    ValueError
        Lengths that differ, NaN or infinity in `y`, a missing group id.

    Examples
    --------
    >>> from sklearn_rankcal import relevance_labels
    >>> labels = relevance_labels([2, 0, 1], ["shoes", "hats", "shoes"])
    >>> labels["query"].tolist(), labels["size"].tolist()
    ([0, 1, 0], [2, 1, 2])
    """
    relevance = check_relevance(y)
    queries = Queries.from_groups(groups, len(relevance))
    labels = np.empty(len(relevance), dtype=RELEVANCE_DTYPE)
    labels["relevance"] = relevance
    labels["query"] = queries.codes
    labels["size"] = queries.broadcast(queries.sizes)
    return labels


def is_structured(y: Any) -> bool:
    """Whether `y` is a structured array (of any dtype)."""
    return isinstance(y, np.ndarray) and y.dtype.names is not None


def read_relevance(y: Any, n_rows: int | None = None) -> tuple[NDArray[np.float64], Queries | None]:
    """Relevance per row, and the queries where `y` carries them.

    Raises
    ------
    ValueError
        A wrong length, NaN or infinity, an unknown structured dtype, or a query cut by a splitter.
    """
    if not is_structured(y):
        return check_relevance(y, n_rows), None
    if y.dtype.names != RELEVANCE_DTYPE.names:
        raise ValueError(
            f"Structured labels have the fields {y.dtype.names}; those of relevance_labels(y, "
            f"groups) are {RELEVANCE_DTYPE.names}."
        )
    check_no_mask(y, "y")
    relevance = check_relevance(y["relevance"], n_rows)
    return relevance, whole_queries(y, "relevance_labels")


def put_together(what: str, function: str) -> ValueError:
    """The error of structured labels that are not those of one call."""
    return ValueError(
        f"Structured labels of several calls were put together, or rows repeated: {what}. "
        f"Call {function} once, on all rows."
    )


def whole_queries(labels: NDArray[Any], function: str) -> Queries:
    """The queries of structured labels that `function` made, refused where one is not whole.

    Raises
    ------
    ValueError
        A query with more rows than its labels say, or with fewer.
    """
    queries = Queries.from_groups(labels["query"], len(labels))
    low, high = queries.min(labels["size"]), queries.max(labels["size"])
    if (low != high).any() or (low < queries.sizes).any():
        raise put_together("a query has more rows than its labels say", function)
    cut = np.flatnonzero(high > queries.sizes)
    if len(cut):
        q = cut[0]
        raise ValueError(
            f"{len(cut)} of {queries.n_queries} queries are incomplete: query {queries.ids[q]} has "
            f"{queries.sizes[q]} of its {high[q]} documents here. A splitter has cut it. "
            "Split by query: cv=QueryKFold(), or GroupKFold() with groups=. (learning_curve and "
            "max_samples cut queries whatever the splitter.)"
        )
    return queries


def agreed_queries(given: Queries | None, of_labels: Queries | None) -> Queries | None:
    """The queries that groups and labels tell, whichever tells them.

    Raises
    ------
    ValueError
        Both tell them, and they differ.
    """
    if given is None or of_labels is None:
        return given or of_labels
    if not given.same_partition(of_labels):
        raise ValueError("groups and the structured labels put the rows in different queries.")
    return given


def groups_of_labels(y: Any) -> NDArray[np.int64] | None:
    """The query of each row where `y` is structured labels, else None."""
    return y["query"] if is_structured(y) and "query" in y.dtype.names else None


def bare_pairs(shape: tuple[int, ...], wanted: str) -> ValueError:
    """The error of a `y` that looks like pairs of row numbers."""
    return ValueError(
        f"y has shape {shape}. {wanted} Pairs of row numbers cannot survive cross-validation and "
        "are not accepted as y: carry them in preference_labels(pairs, groups)."
    )


def check_relevance(y: Any, n_rows: int | None = None) -> NDArray[np.float64]:
    """Relevance as a finite float64 vector."""
    if y is None:
        raise ValueError("This ranker requires y to be passed, but the target y is None.")
    values = read_array(y, "y")
    if values.ndim == 2 and values.shape[1] == 2 and values.dtype.kind in "iu":
        raise bare_pairs(values.shape, "One relevance per row is needed.")
    relevance = read_numbers(column_or_1d(values, warn=True), "y")
    if n_rows is not None and len(relevance) != n_rows:
        raise ValueError(f"y has {len(relevance)} entries, but X has {n_rows} rows.")
    if len(relevance) == 0:
        raise ValueError("y is empty: at least one row is needed.")
    if not np.isfinite(relevance).all():
        row = int(np.flatnonzero(~np.isfinite(relevance))[0])
        raise ValueError(
            f"Input y contains NaN or infinity (first at row {row}). Every document of a query "
            "needs a relevance; drop the rows that were not judged, or label them 0."
        )
    return relevance
