"""Inspect fitted rankers: the importance of each column, and the columns that serving needs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import Bunch, check_random_state

from sklearn_rankcal.losses import Measure, get_measure
from sklearn_rankcal.metrics._ranking_scorer import predicted_ranking, rank_rows
from sklearn_rankcal.utils import _features
from sklearn_rankcal.utils._estimators import innermost_estimator
from sklearn_rankcal.utils._messages import all_of, check_count, checks_keywords, counted
from sklearn_rankcal.utils._numbers import Ints

__all__ = ["permutation_importance", "served_columns"]


@checks_keywords
def permutation_importance(
    ranker: Any,
    X: Any,
    y: Any,
    groups: ArrayLike | None = None,
    *,
    metric: str | Measure = "ndcg@10",
    threshold: float | None = None,
    n_repeats: int = 5,
    random_state: Any = None,
    sample_weight: ArrayLike | None = None,
) -> Bunch:
    """Compute permutation importance: how much worse the ranking gets if a column is shuffled.

    The values of a column are shuffled within each query, because a ranking only compares documents
    of the same query. If a column is constant within every query, such as the length of the query,
    its values are shuffled between queries instead, because such a column can interact with other
    columns. ``between_queries`` reports these columns.

    Columns with the same information share their importance. Use queries that the ranker was not
    fitted on.

    Parameters
    ----------
    ranker : estimator
        A fitted ranker such as `CalibratedRanker`, or any fitted regressor. The predictions of a
        regressor are used as scores.
    X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features)
        One row per query-document pair.
    y : array-like of shape (n_documents,)
        Relevance, or the structured array of `relevance_labels` or `preference_labels`.
    groups : array-like of shape (n_documents,), default=None
        Query id of each row. Required if neither `y` nor the ranker's `group_column` contains it.
    metric : str or Measure, default="ndcg@10"
        Name of a metric, a key of `losses.MEASURES`, optionally with a cutoff; or its object.
    threshold : float, default=None
        For metrics of binary relevance: a label of at least `threshold` is relevant.
    n_repeats : int, default=5
        Number of times each column is shuffled.
    random_state : int, RandomState instance or None, default=None
        Seed of the shuffles.
    sample_weight : array-like of shape (n_documents,), default=None
        Weight of each row. The weight of a query is the mean weight of its rows.

    Returns
    -------
    result : Bunch
        Dictionary-like object. Importances are differences of the metric, positive if shuffling
        makes the ranking worse. The `group_column` is not shuffled and has importance 0. The
        attributes are:

        - ``importances_mean`` and ``importances_std``, of shape (n_features,): mean and standard
          deviation over the repeats.
        - ``importances``, of shape (n_features, n_repeats): means over queries.
        - ``per_query``, of shape (n_features, n_queries): means over repeats, NaN for queries on
          which the metric is undefined.
        - ``queries``, of shape (n_queries,): the id of each query.
        - ``feature_names``, of shape (n_features,): the name or number of each column.
        - ``between_queries``, of shape (n_features,): whether the column is constant within every
          query, and was therefore shuffled between queries.
        - ``baseline``, a float: the metric without shuffling.

    Notes
    -----
    The function calls `predict` ``n_features * n_repeats`` times, each time with a copy of X.

    Examples
    --------
    >>> from sklearn_rankcal import CalibratedRanker
    >>> from sklearn_rankcal.datasets import make_ranking
    >>> from sklearn_rankcal.inspection import permutation_importance
    >>> data = make_ranking(n_queries=80, n_features=8, n_informative=2, random_state=0)
    >>> train, test = data.groups < 60, data.groups >= 60
    >>> ranker = CalibratedRanker().fit(data.X[train], data.y[train], data.groups[train])
    >>> result = permutation_importance(
    ...     ranker, data.X[test], data.y[test], data.groups[test], random_state=0
    ... )
    >>> result.importances_mean.shape, result.per_query.shape
    ((8,), (8, 20))
    """
    check_count(n_repeats, "n_repeats")
    X = _features.check_features(X)
    measure = get_measure(metric, **({} if threshold is None else {"threshold": threshold}))
    sign = 1.0 if measure.greater_is_better else -1.0
    who = "permutation_importance"

    read = groups, sample_weight, measure, who
    labels, ranking, queries, weight = predicted_ranking(ranker, X, y, *read)
    measure.check(labels)
    baseline = sign * measure.per_query(ranking, labels)

    def measured(table: Any) -> NDArray[np.float64]:
        if ranking.queries is queries:  # labels and query ids are read once
            again = rank_rows(ranker, table, queries.codes, queries, who)
        else:  # every row ranks labels, or some rows were not judged
            again = predicted_ranking(ranker, table, y, *read)[1]
        return sign * measure.per_query(again, labels)

    defined = ~np.isnan(baseline)
    if not defined.any():
        raise ValueError(
            f"{metric} is undefined on {all_of(len(baseline), 'query')}. Most metrics need a "
            "document with positive relevance in the query."
        )
    n_rows, codes = queries.n_rows, queries.codes
    group_column = getattr(innermost_estimator(ranker), "group_column", None)
    of_query = np.ones(len(baseline))
    if weight is not None:
        of_query = weight / (weight.max() or 1.0)
        if not of_query[defined].any():
            raise ValueError(f"sample_weight is 0 on every query where {metric} is defined.")
    columns = list(X.columns) if _features.is_dataframe(X) else list(range(X.shape[1]))
    random = check_random_state(random_state)
    lost = np.zeros((len(columns), n_repeats, len(baseline)))
    between = np.zeros(len(columns), dtype=bool)
    first = queries.offsets[:-1]  # a row of each query
    if queries.order is not None:
        first = queries.order[first]
    for number, column in enumerate(columns):
        if column == group_column:
            continue
        keys = _features.hash_values(_features.column_at(X, number))
        between[number] = (keys == keys[first][codes]).all() and queries.n_queries > 1
        for repeat in range(n_repeats):
            if between[number]:
                shuffled = first[random.permutation(queries.n_queries)][codes]
            else:  # match rows sorted by (query, row) with rows sorted by (query, random number)
                shuffled = np.empty(n_rows, dtype=np.int64)
                noise = random.random_sample(n_rows)
                shuffled[np.lexsort((np.arange(n_rows), codes))] = np.lexsort((noise, codes))
            lost[number, repeat] = baseline - measured(_with_column(X, column, shuffled))
    importances = np.average(lost[..., defined], axis=2, weights=of_query[defined])
    per_query = lost.mean(axis=1)
    per_query[:, ~defined] = np.nan
    return Bunch(
        importances_mean=importances.mean(axis=1),
        importances_std=importances.std(axis=1),
        importances=importances,
        per_query=per_query,
        queries=ranking.queries.ids,
        feature_names=np.array(columns, dtype=object),
        between_queries=between,
        baseline=sign * float(np.average(baseline[defined], weights=of_query[defined])),
    )


def served_columns(ranker: Any) -> list[str]:
    """Get the columns that a search engine must supply to score rows one by one.

    A search engine loads the regressor of a ranker and scores each candidate on its own. It does
    not know the other candidates, and therefore cannot compute context columns.

    Parameters
    ----------
    ranker : CalibratedRanker, BoostedRanker or LinearRanker
        A fitted ranker with one regressor.

    Returns
    -------
    columns : list of str
        The names of the columns in their order. They are ``x0``, ``x1``, ... if X had no names.

    Raises
    ------
    ValueError
        If the regressor needs context columns. The message names them.
    TypeError
        If the ranker is a stack, or ranks by pairs of documents.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn_rankcal import CalibratedRanker
    >>> from sklearn_rankcal.datasets import make_ranking
    >>> from sklearn_rankcal.inspection import served_columns
    >>> data = make_ranking(n_queries=40, n_features=3, n_informative=2, random_state=0)
    >>> ranker = CalibratedRanker(Ridge(), context=None)
    >>> served_columns(ranker.fit(data.X, data.y, groups=data.groups))
    ['x0', 'x1', 'x2']
    """
    names = [str(name) for name in ranker.get_feature_names_out()]
    n_context = sum(map(len, getattr(ranker.model_, "context_", {}).values()))
    if n_context:
        context = names[-n_context:]
        shown = ", ".join(context[:3]) + (", ..." if n_context > 3 else "")
        raise ValueError(
            f"The regressor needs {counted(n_context, 'column')} that compare a candidate with the "
            f"rest of its query ({shown}). An engine that scores rows one by one cannot compute "
            "them. Call distill(ranker, X, groups, context=None) to get a ranker without them, or "
            "transform_table to compute them if all candidates of a query are available."
        )
    return names


def _with_column(X: Any, column: Any, rows: Ints) -> Any:
    """Return a copy of `X` where row i of a column has the value of row ``rows[i]``."""
    if _features.is_dataframe(X):
        values = X[column].array[rows] if hasattr(X, "iloc") else X[column][rows]
        return _features.replace_columns(X, {column: values})
    table = X.tolil() if sparse.issparse(X) else X.copy()
    table[:, [column]] = X[:, [column]][rows]
    return table.tocsr() if sparse.issparse(X) else table
