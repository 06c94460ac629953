"""Rankers inside other estimators: functions that pass query ids on, and meta-estimators.

scikit-learn's wrappers pass `groups` only to some methods of the ranker.
"""

from __future__ import annotations

from itertools import chain
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from sklearn_rankcal.labels import relevance_labels
from sklearn_rankcal.labels._labels import is_structured, read_relevance
from sklearn_rankcal.rankers._predict import QueryOrder
from sklearn_rankcal.utils import _estimators, _features
from sklearn_rankcal.utils._messages import checks_keywords, warn

_FEW_ROWS = 20  # with fewer rows, a column can be constant by chance


@checks_keywords
def predict_scores(estimator: Any, X: Any, groups: ArrayLike | None = None) -> NDArray[np.float64]:
    """Compute the scores of a ranker, or of a pipeline or search that ends in a ranker.

    It passes `groups` without metadata routing. ``pipe.decision_function(X, groups=groups)`` needs
    routing, and the ``decision_function`` of a search does not support groups.

    Parameters
    ----------
    estimator : estimator
        A fitted ranker with scores, or a pipeline, search, `RFE` or `FrozenEstimator` that ends in
        one. For other estimators, such as a regressor or `LGBMRanker`, the function calls
        `predict`.
    X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features)
        One row per query-document pair.
    groups : array-like of shape (n_documents,), default=None
        Query id of each row. Not needed if scores do not depend on the query, as with
        ``context=None``.

    Returns
    -------
    scores : ndarray of shape (n_documents,)
        Larger is better. Compare scores only within a query.

    Raises
    ------
    TypeError
        If the ranker has no scores because its loss is on pairs of documents.
    ValueError
        If a ranker is inside a wrapper that this function does not know.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn_rankcal import CalibratedRanker, predict_scores, relevance_labels
    >>> from sklearn_rankcal.datasets import make_ranking
    >>> data = make_ranking(n_queries=40, random_state=0)
    >>> pipe = make_pipeline(StandardScaler(), CalibratedRanker(Ridge()))
    >>> pipe = pipe.fit(data.X, relevance_labels(data.y, data.groups))
    >>> predict_scores(pipe, data.X, data.groups).shape == data.y.shape
    True
    """
    final = _estimators.innermost_estimator(estimator)
    if _estimators.predicts_positions(final):
        refuse_without_scores(final)
        if np.shape(X)[:1] == (0,):  # transformers refuse tables without rows
            estimator = final
        return _estimators.call_with_groups(estimator, "decision_function", X, groups)
    if _estimators.predicts_scores(final):
        return _estimators.call_with_groups(estimator, "predict", X, groups)
    _estimators.refuse_hidden_ranker(final, "predict_scores")
    return np.asarray(estimator.predict(X))


@checks_keywords
def predict_order(
    estimator: Any, X: Any, groups: ArrayLike | None = None, k: int | None = None
) -> QueryOrder:
    """Rank the rows of each query with a ranker, or a pipeline or search that ends in one.

    Parameters
    ----------
    estimator : estimator
        A fitted ranker with any loss, or a pipeline, search, `RFE` or `FrozenEstimator` that ends
        in one.
    X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features)
        One row per query-document pair.
    groups : array-like of shape (n_documents,), default=None
        Query id of each row. Required if `fit` received query ids, unless X has the `group_column`
        of the ranker.
    k : int, default=None
        Number of rows to return per query. None returns all.

    Returns
    -------
    order : QueryOrder
        The row indices of each query, best first.

    Raises
    ------
    TypeError
        If `estimator` does not end in a ranker.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn_rankcal import CalibratedRanker, predict_order, relevance_labels
    >>> from sklearn_rankcal.datasets import make_ranking
    >>> data = make_ranking(n_queries=40, random_state=0)
    >>> pipe = make_pipeline(StandardScaler(), CalibratedRanker(Ridge()))
    >>> pipe = pipe.fit(data.X, relevance_labels(data.y, data.groups))
    >>> predict_order(pipe, data.X, data.groups, k=3).to_frame().columns.tolist()
    ['query', 'position', 'row', 'score']
    """
    final = _estimators.innermost_estimator(estimator)
    if not hasattr(final, "predict_order"):
        raise TypeError(
            "predict_order needs a fitted ranker, or a pipeline or search that ends in one; got "
            f"{type(estimator).__name__} that ends in {type(final).__name__}."
        )
    if np.shape(X)[:1] == (0,):  # transformers refuse tables without rows
        estimator = final
    return _estimators.call_with_groups(estimator, "predict_order", X, groups, k=k)


def refuse_without_scores(ranker: Any) -> None:
    """Raise TypeError if a ranker has no `decision_function`."""
    if not hasattr(ranker, "decision_function"):
        raise TypeError(
            f"{type(ranker).__name__}(loss={getattr(ranker, 'loss', None)!r}) predicts a number "
            "for each pair of documents and has no scores. Choose a loss on scores, such as "
            "'ndcg', 'pd_by_scores' or 'map_by_scores'. Or call predict for positions, or "
            "predict_preferences for the numbers of the pairs."
        )


def group_column(ranker: Any) -> str | None:
    """Return the name of the column of X with the query ids, if the ranker has one."""
    return getattr(_estimators.innermost_estimator(ranker), "group_column", None)


class AroundRanker:
    """What an estimator with a ranker inside, as `ranker` or once fitted `ranker_`, says of it."""

    ranker: Any

    @property
    def _known(self) -> Any:
        """The fitted ranker, or the one to fit."""
        return getattr(self, "ranker_", self.ranker)

    @property
    def group_column(self) -> str | None:
        """The ranker's `group_column`."""
        return group_column(self._known)

    @property
    def n_features_in_(self) -> int:
        """Number of columns of X."""
        return self._known.n_features_in_

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Column names of X. Defined only if X has string column names."""
        return self._known.feature_names_in_

    @property
    def _fitted_queries(self) -> Any:
        return getattr(_estimators.innermost_estimator(self._known), "_fitted_queries", None)

    def _describe_cut(self, X: Any, groups: ArrayLike, labels: Any) -> str | None:
        """Return a warning if a scorer scores only a part of the rows of fitted queries."""
        return _estimators.call_with_groups(self._known, "_describe_cut", X, groups, labels=labels)


class ScoreRegressor(
    AroundRanker, _estimators.SiteLink, MetaEstimatorMixin, RegressorMixin, BaseEstimator
):
    """Regressor that predicts the scores of a ranker, where larger is better.

    Use it for tools that expect scores from `predict`, such as `partial_dependence`,
    `VotingRegressor` and `StackingRegressor`. The `predict` of a ranker returns positions, 1 = top.
    If these tools used positions as scores, they would reverse the ranking.

    Parameters
    ----------
    ranker : estimator
        A ranker with scores, or a pipeline or search that ends in one. If it is already fitted,
        `predict` works without `fit`.

    Attributes
    ----------
    ranker_ : estimator
        The fitted clone of `ranker`.
    n_features_in_, feature_names_in_
        Number of columns of X, and their names if they are strings.

    See Also
    --------
    predict_scores : Function that returns the same scores.
    RelevanceRegressor : Regressor that accepts the labels of rankers.

    Notes
    -----
    Tools that call ``predict(X)`` pass no groups. A ranker with ``context=None`` does not need
    groups, and a ranker with `group_column` reads them from a data frame.

    A meta-estimator fits its members again. To keep a fitted ranker, pass
    ``FrozenEstimator(ScoreRegressor(ranker))``. With structured labels, the final estimator of a
    `StackingRegressor` must support them, such as ``RelevanceRegressor(Ridge())``.

    Examples
    --------
    >>> from sklearn.inspection import partial_dependence
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn_rankcal import CalibratedRanker, ScoreRegressor
    >>> from sklearn_rankcal.datasets import make_ranking
    >>> data = make_ranking(n_queries=40, random_state=0)
    >>> ranker = CalibratedRanker(Ridge(), context=None).fit(data.X, data.y, groups=data.groups)
    >>> regressor = ScoreRegressor(ranker)
    >>> bool((regressor.predict(data.X) == ranker.decision_function(data.X)).all())
    True
    >>> partial_dependence(regressor, data.X, [0], grid_resolution=5)["average"].shape
    (1, 5)
    """

    # see utils/_estimators.py
    _predicts_scores = True
    _takes_ranking_labels = True
    # with metadata routing enabled, scikit-learn passes groups to these methods, as for a ranker
    __metadata_request__fit = {"groups": True}
    __metadata_request__predict = {"groups": True}
    __metadata_request__score = {"groups": True, "sample_weight": True}

    def __init__(self, ranker: Any) -> None:
        self.ranker = ranker

    @checks_keywords
    def fit(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit a clone of the ranker.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features)
            One row per query-document pair.
        y : array-like of shape (n_documents,)
            Labels, in any form that the ranker supports.
        groups : array-like of shape (n_documents,), default=None
            Query id of each row, in any order.
        sample_weight : array-like of shape (n_documents,), default=None
            Non-negative weight of each row.

        Returns
        -------
        self : ScoreRegressor
            The fitted regressor.
        """
        known = _estimators.innermost_estimator(self.ranker)
        if _estimators.predicts_positions(known):
            refuse_without_scores(known)
        weight = {} if sample_weight is None else {"sample_weight": sample_weight}
        if known is self.ranker:
            self.ranker_ = _estimators.clone(self.ranker).fit(X, y, groups=groups, **weight)
        else:
            self.ranker_ = _estimators.clone(self.ranker).fit(X, _carry(y, groups), **weight)
        self._scored()
        return self

    @checks_keywords
    def predict(self, X: Any, groups: ArrayLike | None = None) -> NDArray[np.float64]:
        """Return the `decision_function` of the ranker.

        Parameters
        ----------
        X, groups
            As in `fit`. `groups` is required only if scores depend on the query, as with context
            columns.

        Returns
        -------
        scores : ndarray of shape (n_documents,)
            Larger is better. Compare scores only within a query.

        Warns
        -----
        UserWarning
            If a column with context columns is constant, as `partial_dependence` makes it.
        """
        ranker = self._scored()
        _warn_of_constants(ranker, X)
        return predict_scores(ranker, X, groups)

    @checks_keywords
    def score(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the score of the ranker: the mean measure over queries, not R squared.

        Parameters
        ----------
        X, y, groups, sample_weight
            As in `fit`.

        Returns
        -------
        score : float
            Larger is better.
        """
        weight = {} if sample_weight is None else {"sample_weight": sample_weight}
        ranker = self._scored()
        if _estimators.predicts_positions(ranker):
            return ranker.score(X, y, groups=groups, **weight)
        return ranker.score(X, _carry(y, groups), **weight)

    def _scored(self) -> Any:
        """Return the ranker, or raise an error if it is not fitted or has no scores."""
        final = _estimators.innermost_estimator(self._known)
        if not _estimators.predicts_positions(final):
            raise TypeError(
                "ScoreRegressor needs a ranker, or a pipeline or search that ends in one; got "
                f"{type(self.ranker).__name__}."
            )
        refuse_without_scores(final)
        check_is_fitted(final)
        return self._known

    def __sklearn_is_fitted__(self) -> bool:
        try:
            self._scored()
        except NotFittedError:
            return False
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        of_ranker = _estimators.tags_of(self.ranker)
        tags.input_tags, tags.target_tags = of_ranker.input_tags, of_ranker.target_tags
        return tags


def _warn_of_constants(ranker: Any, X: Any) -> None:
    """Warn if a column that has context columns is constant."""
    model = getattr(ranker, "model_", None)
    members = chain.from_iterable(getattr(model, "members_", {}).values())
    described = {
        column
        for part in (model, *members)
        for columns in getattr(part, "context_", {}).values()
        for column in columns
    }
    X = _features.check_features(X) if described else X
    if not described or X.shape[0] < _FEW_ROWS or sparse.issparse(X):
        return
    names = list(X.columns) if _features.is_dataframe(X) else list(range(X.shape[1]))
    for column in sorted(described, key=str):
        values = _features.hash_values(_features.column_at(X, names.index(column)))
        if (values == values[0]).all():
            warn(
                f"Column {column!r} has the same value in all {len(values):,} rows, so its context "
                "columns do not depend on the value. partial_dependence therefore misses most of "
                "the effect of the column. It is right for a ranker with context=None, such as "
                "distill(ranker, X, groups, context=None)."
            )
            return


def _carry(y: Any, groups: ArrayLike | None) -> Any:
    """Return labels with the query ids inside, which every wrapper passes to the ranker."""
    return y if groups is None or is_structured(y) else relevance_labels(y, groups)


class RelevanceRegressor(_estimators.SiteLink, MetaEstimatorMixin, RegressorMixin, BaseEstimator):
    """Regressor that accepts the labels of rankers.

    Regressors of scikit-learn do not support the structured array of `relevance_labels`. This
    meta-estimator passes the relevance in it to any regressor. You can then compare a ranker and a
    regressor with the same `y`, splitter and scorer, or combine them in a `StackingRegressor`.

    Parameters
    ----------
    regressor : estimator
        A regressor, or a pipeline that ends in one.

    Attributes
    ----------
    regressor_ : estimator
        The fitted clone of `regressor`.
    n_features_in_, feature_names_in_
        Number of columns of X, and their names if they are strings.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn_rankcal import QueryKFold, RelevanceRegressor, relevance_labels
    >>> from sklearn_rankcal.datasets import make_ranking
    >>> from sklearn_rankcal.metrics import get_ranking_scorer
    >>> data = make_ranking(n_queries=40, random_state=0)
    >>> labels = relevance_labels(data.y, data.groups)
    >>> baseline = RelevanceRegressor(Ridge())
    >>> cross_val_score(
    ...     baseline, data.X, labels, cv=QueryKFold(4), scoring=get_ranking_scorer("ndcg@10")
    ... ).shape
    (4,)
    """

    __sklearn_clone__ = _estimators.clone_with_catboost
    _takes_ranking_labels = True  # see utils/_estimators.py
    # requests groups like a ranker, so that an ensemble can have both
    __metadata_request__fit = {"groups": True}

    def __init__(self, regressor: Any) -> None:
        self.regressor = regressor

    @checks_keywords
    def fit(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit a clone of the regressor to the relevance.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features)
            One row per query-document pair.
        y : array-like of shape (n_documents,)
            Relevance grades, or the labels that `relevance_labels` returns.
        groups : array-like of shape (n_documents,), default=None
            Ignored. Exists for compatibility with rankers.
        sample_weight : array-like of shape (n_documents,), default=None
            Weight of each row, passed to the regressor.

        Returns
        -------
        self : RelevanceRegressor
            The fitted regressor.
        """
        relevance, _ = read_relevance(y)
        weight = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.regressor_ = _estimators.clone(self.regressor).fit(X, relevance, **weight)
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the predicted relevance of each document.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features)
            As in `fit`.

        Returns
        -------
        relevance : ndarray of shape (n_documents,)
            Predicted relevance. It can be used as a score.
        """
        check_is_fitted(self)
        return self.regressor_.predict(X)

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return R squared of the predicted relevance.

        To evaluate the ranking, use a scorer of `metrics`.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        score : float
            R squared, at most 1.
        """
        relevance, _ = read_relevance(y)
        return float(r2_score(relevance, self.predict(X), sample_weight=sample_weight))

    @property
    def n_features_in_(self) -> int:
        """Number of columns of X."""
        check_is_fitted(self)
        return self.regressor_.n_features_in_

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Column names of X, if they are strings."""
        check_is_fitted(self)
        return self.regressor_.feature_names_in_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = _estimators.tags_of(self.regressor).input_tags
        return tags
