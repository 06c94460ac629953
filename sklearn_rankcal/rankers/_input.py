"""`Schema`: the table that `fit` saw. It reads the tables of later calls in the same form."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from sklearn_rankcal.exceptions import CutQueriesWarning, MissingGroupsWarning
from sklearn_rankcal.labels._labels import GROUPS_REMEDY, agreed_queries
from sklearn_rankcal.losses import get_loss
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils import _features
from sklearn_rankcal.utils._column_advice import check_columns, without_text
from sklearn_rankcal.utils._messages import warn
from sklearn_rankcal.utils._sklearn_compat import _get_feature_names

_SEVERAL = 5  # unknown categories; a single query may have a few new ones


class TableNeeds(NamedTuple):
    """A model, by its name for errors, that needs numbers instead of text and times in X."""

    model: str
    takes_categories: bool = False
    dense: bool = False


@dataclass(frozen=True, eq=False)
class Schema:
    """Container, columns and categories of the table of `fit`, and what its model needs."""

    n_columns: int
    names: list[Any] | None = None  # None for arrays, and for frames whose names are not text
    container: str | None = None  # "pandas", "polars", or None for an array
    dtypes: dict[Any, Any] = field(default_factory=dict)  # with the categories that occurred
    texts: list[Any] = field(default_factory=list)  # columns of text for the user's regressor
    group_column: str | None = None
    group_place: int = 0  # of `group_column`, if there is one
    needs: TableNeeds | None = None

    @classmethod
    def of(
        cls, X: Any, groups: ArrayLike | None, name: str | None, needs: TableNeeds | None = None
    ) -> tuple[Self, Any, Queries | None]:
        """Return the schema of the table of `fit`, this table for the model, and the queries.

        `name` is the name of the column with the query ids, if there is one.
        """
        table = _features.check_features(X, name)
        if type(table) is np.ndarray and table.dtype.kind in "biuf" and name is None:
            schema = cls(table.shape[1], needs=needs)
        else:
            names = _get_feature_names(table)
            features = table if name is None else _features.split_column(table, name)[0]
            dtypes = _features.used_categories(features)
            texts = [] if needs else _features.read_text(features, dtypes)[1]
            schema = cls(
                table.shape[1],
                None if names is None else list(names),
                _features.container_of(table),
                dtypes,
                texts,
                name,
                0 if name is None else list(table.columns).index(name),
                needs,
            )
        return schema, *schema._split(table, groups)

    def keep(self, ranker: Any) -> None:
        """Store the schema in a fitted ranker, with the attributes of scikit-learn."""
        ranker._schema, ranker.n_features_in_ = self, self.n_columns
        vars(ranker).pop("feature_names_in_", None)  # of an earlier fit
        if self.names is not None:
            ranker.feature_names_in_ = np.array(self.names, dtype=object)

    def read(self, ranker: Any, X: Any, groups: ArrayLike | None) -> tuple[Any, Queries | None]:
        """Return a later table in the form of `fit`, without `group_column`, and its queries."""
        table = _features.check_features(X, self.group_column)
        # the checks below would find nothing, and take as long as a small prediction
        names = [*getattr(table, "columns", ())]
        if names == (self.names or []) and table.shape[1] == self.n_columns:
            return self._split(table, groups)
        has_ids = self.group_column is None or self.group_column in getattr(table, "columns", ())
        if has_ids or groups is None:
            check_columns(ranker, table)
            return self._split(table, groups)
        others = copy.copy(ranker)
        others.n_features_in_ = self.n_columns - 1
        if self.names:
            others.feature_names_in_ = np.delete(ranker.feature_names_in_, self.group_place)
        check_columns(others, table)
        return self._as_in_fit(table), Queries.from_groups(groups, table.shape[0])

    def _split(self, table: Any, groups: ArrayLike | None) -> tuple[Any, Queries | None]:
        """Split `group_column` off a table, and make the rest what the model needs."""
        queries = None if groups is None else Queries.from_groups(groups, table.shape[0])
        if self.group_column is not None:
            table, column = _features.split_column(table, self.group_column)
            of_column = Queries.from_groups(column, table.shape[0])
            if queries is not None and not queries.same_partition(of_column):
                raise ValueError(
                    f"groups and the column {self.group_column!r} assign rows to different queries."
                )
            queries = of_column
        if type(table) is np.ndarray and table.dtype.kind in "biuf" and self.container is None:
            return table, queries
        return self._as_in_fit(table), queries

    def _as_in_fit(self, table: Any) -> Any:
        """Return features in the container of `fit`, with its categories, or raise an error."""
        frame = _features.is_dataframe(table)
        needs = self.needs or TableNeeds("the ranker", takes_categories=True)
        if self.dtypes:
            if not frame:
                raise TypeError(
                    f"X must be a data frame, as in fit, because {list(self.dtypes)} have "
                    f"categories; got {type(table).__name__}."
                )
            if self.container != _features.container_of(table):
                table = _features.in_container(table, self.container)
            other = {k: dtype for k, dtype in self.dtypes.items() if table[k].dtype != dtype}
            table, unknown = _features.as_categories(table, other) if other else (table, {})
            for name, values in unknown.items():
                known = sorted(self.dtypes[name].categories, key=str)
                other_kind = {isinstance(values[0], str)} != {isinstance(v, str) for v in known}
                if len(values) >= _SEVERAL or other_kind:
                    warn(
                        f"fit saw none of the {len(values)} categories of {name!r}, such as "
                        f"{min(values, key=str)!r}, and they count as missing. Those of fit are "
                        f"written like {[*known, None][0]!r}."
                    )
        elif self.names and self.container and type(table) is np.ndarray:
            names = [name for name in self.names if name != self.group_column]
            table = _features.in_container(table, self.container, names)
        kept = [*self.texts, *(self.dtypes if needs.takes_categories else ())]
        has_ids = self.group_column is not None
        table = without_text(
            table, needs.model, kept, takes_categories=needs.takes_categories, has_ids=has_ids
        )
        if self.container is None and frame:  # scikit-learn warns
            return _features.column_values(table, list(table.columns))
        return _features.dense_table(table, needs.takes_categories) if needs.dense else table


def read_queries(
    ranker: Any, X: Any, groups: ArrayLike | None, required: bool | None = None
) -> tuple[Any, Queries]:
    """Read X and groups, for `predict` and other methods without y.

    Without groups, all rows are one query, or an error is raised if query ids are `required` (None:
    if `fit` received them).
    """
    if not hasattr(ranker, "model_"):  # faster than check_is_fitted
        check_is_fitted(ranker)
    if hasattr(X, "iloc"):
        _features.warn_of_other_order(X=X, groups=groups)
    X, queries = ranker._schema.read(ranker, X, groups)
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
    if isinstance(rules, type) or not hasattr(rules, "take_columns"):
        raise TypeError(f"rules must be decoders.Rules(...); got {rules!r}.")
    check_is_fitted(ranker)
    X, rules = rules.take_columns(X, getattr(ranker, "feature_names_in_", ()))
    return *read_queries(ranker, X, groups), rules


def read_labelled(
    ranker: Any, X: Any, y: Any, groups: ArrayLike | None
) -> tuple[Any, Any, Queries]:
    """Read X, y and groups for `score`: the table without `group_column`, labels and queries."""
    _features.warn_of_other_order(X=X, y=y, groups=groups)
    X, of_ids = ranker._schema.read(ranker, X, groups)
    labels, of_labels = get_loss(ranker.loss).read(y, X.shape[0])
    queries = agreed_queries(of_ids, of_labels)
    if queries is None and ranker.grouped_:
        raise ValueError(
            "This ranker was fitted with query ids and needs them. (With metadata routing off, "
            "the score method of a Pipeline drops groups= even if you pass them. "
            "get_ranking_scorer('ndcg@10')(pipe, X, y, groups=groups) passes them on.) "
            f"{GROUPS_REMEDY}"
        )
    # Structured labels have query numbers instead of ids. The numbers differ between parts of the
    # data, but the labels know the sizes of their queries.
    named = of_ids or (Queries.single(X.shape[0]) if queries is None else None)
    cut = None
    if named is not None and ranker._fitted_queries and ranker.grouped_ == (of_ids is not None):
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
    warn_of_one_query(X.shape[0])
    return X, labels, Queries.single(X.shape[0])


def warn_of_one_query(n_rows: int) -> None:
    """Warn that there are no query ids."""
    warn(
        f"No query ids: all {n_rows} rows are ranked as ONE query. {GROUPS_REMEDY}",
        MissingGroupsWarning,
    )
