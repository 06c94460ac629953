"""Convert X, y and groups of a user to a table, labels and queries.

As in `sklearn.utils.validation.validate_data`, the first argument is the estimator.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted, validate_data

from sklearn_rankcal.exceptions import CutQueriesWarning, MissingGroupsWarning
from sklearn_rankcal.labels._relevance import GROUPS_REMEDY, agreed_queries
from sklearn_rankcal.losses import get_loss
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.rankers._fitted_queries import FittedQueries
from sklearn_rankcal.utils._features import (
    cast_texts,
    category_columns,
    check_columns,
    check_features,
    check_no_text,
    column_values,
    container_of,
    in_container,
    is_dataframe,
    split_column,
    used_categories,
    warn_of_other_order,
)
from sklearn_rankcal.utils._messages import warn
from sklearn_rankcal.utils._names import plain_name
from sklearn_rankcal.utils._numbers import is_missing

_SEVERAL = 5  # unknown categories; a single query may have a few new ones


def read_table(
    ranker: Any, X: Any, groups: ArrayLike | None, reset: bool = False
) -> tuple[Any, Queries | None]:
    """Return the table without `group_column`, and the queries of `groups` or of that column."""
    table = check_features(X)
    warn_of_other_order(X=X, groups=groups)
    name = ranker.group_column
    if name is not None and groups is not None and not reset and name not in _columns(table):
        check_columns(_without_group_column(ranker), table)
        table = _as_in_fit(ranker, table)
        return ranker._check_table(table), Queries.from_groups(groups, table.shape[0])
    if reset:
        validate_data(ranker, X=table, skip_check_array=True)
    elif not _needs_no_check(ranker, table):
        check_columns(ranker, table)
        table = _as_in_fit(ranker, table)
    queries = None if groups is None else Queries.from_groups(groups, table.shape[0])
    if name is not None:
        whole = table
        table, column = split_column(table, name)
        if reset:
            ranker._group_place = list(whole.columns).index(name)
        of_column = Queries.from_groups(column, table.shape[0])
        if queries is not None and not queries.same_partition(of_column):
            raise ValueError(f"groups and the column {name!r} assign rows to different queries.")
        queries = of_column
    if reset:
        ranker._categories = used_categories(table)
        ranker._dtypes = {name: table[name].dtype for name in ranker._categories}
        ranker._container = container_of(table)
    return ranker._check_table(table), queries


def _as_in_fit(ranker: Any, table: Any) -> Any:
    """Return a table with the container of `fit`, and with its categories."""
    container, dtypes = ranker._container, ranker._dtypes
    if container is None and is_dataframe(table):  # scikit-learn warns
        check_no_text(table, type(ranker).__name__, has_ids=True)
        return column_values(table, list(table.columns))
    if not dtypes:
        return table
    names = list(dtypes)
    if not is_dataframe(table):
        raise TypeError(
            f"X must be a data frame, as in fit, because {names} have categories; got "
            f"{type(table).__name__}."
        )
    if container_of(table) != container:
        table = in_container(table, container)
    other = [name for name, dtype in dtypes.items() if table[name].dtype != dtype]
    if not other:
        return table
    for name in other:
        _warn_if_all_unknown(name, table[name], ranker._categories[name])
    table = cast_texts(table, dtypes)
    if lacking := [name for name in names if name not in category_columns(table)]:
        raise TypeError(
            f"{lacking} had categories in fit, but now {table[lacking[0]].dtype}. Convert to the "
            "dtype that the column had in fit."
        )
    return table


def _warn_if_all_unknown(name: Any, column: Any, known: set[Any]) -> None:
    """Warn about several values that `fit` saw only in other types or other cases, if at all."""
    values = set(column.unique().to_list() if hasattr(column, "to_physical") else column.unique())
    values = {value for value in values if not is_missing(value)}
    if len(values) < _SEVERAL or values & known:
        return
    plain, plain_known = ({plain_name(str(v)) for v in each} for each in (values, known))
    text, text_known = (any(isinstance(v, str) for v in each) for each in (values, known))
    if plain & plain_known or text != text_known:
        warn(
            f"fit saw none of the {len(values)} categories of {name!r}, such as "
            f"{min(values, key=str)!r}, and they count as missing. Those of fit are written like "
            f"{min(known, key=str, default=None)!r}."
        )


def _columns(table: Any) -> Any:
    return table.columns if is_dataframe(table) else ()


def _without_group_column(ranker: Any) -> Any:
    """Return a copy of the ranker for `validate_data` of a frame without `group_column`."""
    other = copy.copy(ranker)
    other.n_features_in_ = ranker.n_features_in_ - 1
    if hasattr(ranker, "feature_names_in_"):
        other.feature_names_in_ = np.delete(ranker.feature_names_in_, ranker._group_place)
    return other


def _needs_no_check(ranker: Any, table: Any) -> bool:
    """Whether `validate_data`, which is slow for a small query, would find nothing."""
    named = hasattr(ranker, "feature_names_in_")
    return type(table) is np.ndarray and not named and table.shape[1] == ranker.n_features_in_


def read_queries(
    ranker: Any, X: Any, groups: ArrayLike | None, required: bool | None = None
) -> tuple[Any, Queries]:
    """Read X and groups, for `predict` and other methods without y.

    Without groups, all rows are one query, or an error is raised if query ids are `required` (None:
    if `fit` received them).
    """
    if not hasattr(ranker, "model_"):  # faster than check_is_fitted
        check_is_fitted(ranker)
    X, queries = read_table(ranker, X, groups)
    if queries is None:
        if ranker.grouped_ if required is None else required:
            raise ValueError(
                "This ranker was fitted with query ids and needs them: pass groups=<query id "
                "of each row>, for one query groups=numpy.zeros(len(X)). cross_val_predict and "
                "the predict of a search cannot pass them: use group_column='qid' with data "
                "frames, or search.best_estimator_.predict(X, groups=...). Scorers of "
                "scikit-learn cannot either: pass scoring=get_ranking_scorer('ndcg@10')."
            )
        queries = Queries.single(X.shape[0])
    return X, queries


def read_ruled(
    ranker: Any, X: Any, groups: ArrayLike | None, rules: Any
) -> tuple[Any, Queries, Any]:
    """Read X, groups and rules. Columns that only the rules use are removed from X."""
    if rules is not None:
        if isinstance(rules, type) or not hasattr(rules, "take_columns"):
            raise TypeError(f"rules must be decoders.Rules(...); got {rules!r}.")
        check_is_fitted(ranker)
        X, rules = rules.take_columns(X, getattr(ranker, "feature_names_in_", ()))
    return *read_queries(ranker, X, groups), rules


def read_labelled(
    ranker: Any, X: Any, y: Any, groups: ArrayLike | None, reset: bool = False
) -> tuple[Any, Any, Queries]:
    """Read X, y and groups for `fit` (``reset=True``, which sets `grouped_`) and `score`.

    Return the table without `group_column`, the labels, and the queries.
    """
    warn_of_other_order(X=X, y=y)
    X, given = read_table(ranker, X, groups, reset)
    labels, of_labels = get_loss(ranker.loss).read(y, X.shape[0])
    queries = agreed_queries(given, of_labels)
    if not reset and queries is None and ranker.grouped_:
        raise ValueError(
            "This ranker was fitted with query ids and needs them. (With metadata routing off, "
            "the score method of a Pipeline drops groups= even if you pass them. "
            "get_ranking_scorer('ndcg@10')(pipe, X, y, groups=groups) passes them on.) "
            f"{GROUPS_REMEDY}"
        )
    # Structured labels have query numbers instead of ids. The numbers differ between parts of the
    # data, but the labels know the sizes of their queries.
    named = given or (Queries.single(X.shape[0]) if queries is None else None)
    cut = None
    if reset:
        ranker._fitted_queries = None if named is None else FittedQueries(named, X, labels)
        ranker.grouped_ = queries is not None
    elif named is not None and ranker._fitted_queries and ranker.grouped_ == (given is not None):
        cut = ranker._fitted_queries.describe_cut(named, X, labels)
    if queries is not None:
        if cut is not None:
            warn(cut, CutQueriesWarning)
        return X, labels, queries
    if cut is not None:
        raise ValueError(
            "Query ids did not reach the ranker: fit received none, and score would evaluate the "
            "ranking of all other rows as ONE query. Inside a cross-validation, scikit-learn "
            "passes groups= to the splitter only, unless metadata routing is on. "
            f"{GROUPS_REMEDY} If all rows are one query, pass groups=numpy.zeros(len(X))."
        )
    warn(
        f"No query ids: all {X.shape[0]} rows are ranked as ONE query. {GROUPS_REMEDY}",
        MissingGroupsWarning,
    )
    return X, labels, Queries.single(X.shape[0])
