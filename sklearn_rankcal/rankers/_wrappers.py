"""Use rankers inside pipelines and searches, and as regressors.

Two functions, `predict_scores` and `predict_order`, pass `groups` to a ranker that is inside a
pipeline or a search. Two meta-estimators connect rankers and regressors. The `predict` of a ranker
returns positions, 1 = top, but ensembles and inspection tools expect that larger is better:
`ScoreRegressor` is a regressor whose `predict` returns the scores of a ranker. `RelevanceRegressor`
is a plain regressor that accepts the labels of rankers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import r2_score
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from sklearn_rankcal.labels import relevance_labels
from sklearn_rankcal.labels._relevance import is_structured, read_relevance
from sklearn_rankcal.rankers._base import QueryOrder
from sklearn_rankcal.utils._wrapped import (
    call_with_groups,
    innermost_estimator,
    predicts_positions,
    predicts_scores,
    refuse_hidden_ranker,
)

# -------------------------------------------------------------------- functions


def predict_scores(estimator: Any, X: Any, groups: ArrayLike | None = None) -> NDArray[np.float64]:
    """Compute the scores of a ranker that is alone, in a pipeline, in a search or frozen.

    ``pipe.decision_function(X, groups=groups)`` works only when metadata routing is on, and a
    search takes no groups. This function works in both settings.

    Parameters
    ----------
    estimator : estimator
        A fitted ranker with scores, or a pipeline, search, `RFE` or `FrozenEstimator` that ends in
        one. For any other estimator, such as a regressor or `LGBMRanker`, the result is what its
        `predict` returns.
    X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features)
        One row per query-document pair.
    groups : array-like of shape (n_documents,), default=None
        Query id of each row, where the ranker needs it.

    Returns
    -------
    scores : ndarray of shape (n_documents,)
        Larger is better; scores of different queries are not comparable.

    Raises
    ------
    TypeError
        The ranker has no scores, because its loss is on pairs of documents.
    ValueError
        A ranker is inside a wrapper that this function cannot look into.

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
    final = innermost_estimator(estimator)
    if predicts_positions(final):
        refuse_without_scores(final)
        return call_with_groups(estimator, "decision_function", X, groups)
    if predicts_scores(final):
        return call_with_groups(estimator, "predict", X, groups)
    refuse_hidden_ranker(final, "predict_scores")
    return np.asarray(estimator.predict(X))


def predict_order(
    estimator: Any, X: Any, groups: ArrayLike | None = None, k: int | None = None
) -> QueryOrder:
    """Compute the row indices of each query, best first, of a ranker in a pipeline or a search.

    Parameters
    ----------
    estimator : estimator
        A fitted ranker, or a pipeline, search, `RFE` or `FrozenEstimator` that ends in one.
    X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features)
        One row per query-document pair.
    groups : array-like of shape (n_documents,), default=None
        Query id of each row, where the ranker needs it.
    k : int, default=None
        List at most the first k rows of each query; None lists all.

    Returns
    -------
    order : QueryOrder
        ``rows``, ``offsets`` and ``queries``, as `CalibratedRanker.predict_order` returns them.

    Raises
    ------
    TypeError
        The estimator does not end in a ranker.

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
    ['query', 'position', 'row']
    """
    final = innermost_estimator(estimator)
    if not hasattr(final, "predict_order"):
        raise TypeError(
            "predict_order needs a fitted ranker, or a pipeline or search that ends in one; got "
            f"{type(estimator).__name__}, which ends in {type(final).__name__}."
        )
    return call_with_groups(estimator, "predict_order", X, groups, k=k)


def refuse_without_scores(ranker: Any) -> None:
    """Raise where a ranker has no `decision_function`."""
    if not hasattr(ranker, "decision_function"):
        raise TypeError(
            f"{type(ranker).__name__}(loss={getattr(ranker, 'loss', None)!r}) predicts a number "
            "for each pair of documents and has no scores. Choose a loss on scores, such as "
            "'ndcg', 'pd_by_scores' or 'map_by_scores'; or use its predict (positions) and "
            "predict_preferences (the numbers of the pairs)."
        )


# -------------------------------------------------------------------- regressors


class ScoreRegressor(MetaEstimatorMixin, RegressorMixin, BaseEstimator):
    """A ranker as a regressor whose `predict` returns scores, larger is better.

    Use it for tools that expect scores from `predict`, such as `partial_dependence`,
    `VotingRegressor`, `StackingRegressor` and toolkits of information retrieval. The ranker's own
    `predict` returns positions, 1 = top, which such tools would read as the reverse order.

    Parameters
    ----------
    ranker : estimator
        A ranker with scores, or a pipeline or search that ends in one. When it is fitted,
        `predict` works at once, without `fit`.

    Attributes
    ----------
    ranker_ : estimator
        The clone that `fit` fitted. Absent when only `ranker` is fitted.

    See Also
    --------
    predict_scores : A function that returns the same scores.
    RelevanceRegressor : A plain regressor that takes the labels of rankers.

    Notes
    -----
    Like every meta-estimator of scikit-learn, `fit` fits a clone and leaves `ranker` as it is, and
    `VotingRegressor` fits its members again. ``FrozenEstimator(ScoreRegressor(ranker))`` keeps the
    fitted ranker there. Tools that call ``predict(X)`` pass no groups: a ranker with
    ``context=None`` does not need them, and one with `group_column` finds them in a data frame.

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

    # see utils/_wrapped.py
    _predicts_scores = True
    _takes_ranking_labels = True
    # as for a ranker: groups are passed wherever scikit-learn routes metadata
    __metadata_request__fit = {"groups": True}
    __metadata_request__predict = {"groups": True}
    __metadata_request__score = {"groups": True, "sample_weight": True}

    def __init__(self, ranker: Any) -> None:
        self.ranker = ranker

    def fit(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> ScoreRegressor:
        """Fit a clone of the ranker.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features)
            One row per query-document pair.
        y : array-like of shape (n_documents,)
            Labels, as the ranker takes them.
        groups : array-like of shape (n_documents,), default=None
            Query id of each row.
        sample_weight : array-like of shape (n_documents,), default=None
            As in the ranker's `fit`.

        Returns
        -------
        self : ScoreRegressor

        Raises
        ------
        TypeError
            `ranker` is not a ranker, or it has no scores.
        """
        known = innermost_estimator(self.ranker)
        if predicts_positions(known):
            refuse_without_scores(known)
        weight = {} if sample_weight is None else {"sample_weight": sample_weight}
        if known is self.ranker:
            self.ranker_ = clone(self.ranker).fit(X, y, groups=groups, **weight)
        else:
            self.ranker_ = clone(self.ranker).fit(X, _carry(y, groups), **weight)
        self._scored()
        return self

    def predict(self, X: Any, groups: ArrayLike | None = None) -> NDArray[np.float64]:
        """Return the ranker's scores: its `decision_function`.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features)
            One row per query-document pair.
        groups : array-like of shape (n_documents,), default=None
            Query id of each row; needed only by a ranker with context columns.

        Returns
        -------
        scores : ndarray of shape (n_documents,)
            Larger is better; scores of different queries are not comparable.
        """
        return predict_scores(self._scored(), X, groups)

    def score(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the score of the ranker, the mean of its measure over queries (no R squared).

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features)
            One row per query-document pair.
        y : array-like of shape (n_documents,)
            Labels, as the ranker takes them.
        groups : array-like of shape (n_documents,), default=None
            Query id of each row.
        sample_weight : array-like of shape (n_documents,), default=None
            Weight of each row. The weight of a query is the mean of the weights of its rows.

        Returns
        -------
        score : float
            Higher is better.
        """
        weight = {} if sample_weight is None else {"sample_weight": sample_weight}
        return self._scored().score(X, _carry(y, groups), **weight)

    def _scored(self) -> Any:
        """The fitted ranker, checked to be one with scores."""
        ranker = getattr(self, "ranker_", self.ranker)
        final = innermost_estimator(ranker)
        if not predicts_positions(final):
            raise TypeError(
                "ScoreRegressor takes a ranker, or a pipeline or search that ends in one; got "
                f"{type(self.ranker).__name__}."
            )
        refuse_without_scores(final)
        check_is_fitted(final)
        return ranker

    def __sklearn_is_fitted__(self) -> bool:
        try:
            self._scored()
        except NotFittedError:
            return False
        return True

    @property
    def group_column(self) -> str | None:
        """The ranker's `group_column`."""
        return getattr(
            innermost_estimator(getattr(self, "ranker_", self.ranker)), "group_column", None
        )

    @property
    def n_features_in_(self) -> int:
        """Number of columns of X."""
        return self._scored().n_features_in_

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Column names of X, where it has them."""
        return self._scored().feature_names_in_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        of_ranker = get_tags(self.ranker)
        tags.input_tags, tags.target_tags = of_ranker.input_tags, of_ranker.target_tags
        return tags


def _carry(y: Any, groups: ArrayLike | None) -> Any:
    """Labels that contain their query ids, which every wrapper passes on with the labels."""
    return y if groups is None or is_structured(y) else relevance_labels(y, groups)


class RelevanceRegressor(MetaEstimatorMixin, RegressorMixin, BaseEstimator):
    """A plain regressor of relevance that takes the labels of rankers.

    A regressor refuses the structured array of `relevance_labels`. This one reads the relevance out
    of it, so that ranker and regressor share `y`, splitter and scorer in `cross_val_score`,
    searches and `StackingRegressor`.

    Parameters
    ----------
    regressor : estimator
        Any regressor of scikit-learn's kind, also a pipeline that ends in one.

    Attributes
    ----------
    regressor_ : estimator
        The fitted clone.

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

    _takes_ranking_labels = True  # see utils/_wrapped.py
    # As a ranker does, it requests groups, so that both can be members of one ensemble.
    __metadata_request__fit = {"groups": True}

    def __init__(self, regressor: Any) -> None:
        self.regressor = regressor

    def fit(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> RelevanceRegressor:
        """Fit a clone of the regressor on the relevance.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features)
            One row per query-document pair.
        y : array-like of shape (n_documents,)
            Relevance, or the structured array of `relevance_labels`.
        groups : array-like of shape (n_documents,), default=None
            Ignored; a ranker takes it.
        sample_weight : array-like of shape (n_documents,), default=None
            Passed to the regressor.

        Returns
        -------
        self : RelevanceRegressor

        Raises
        ------
        ValueError
            Labels made of preferences, NaN or infinity, a query cut by a splitter.
        """
        relevance, _ = read_relevance(y)
        weight = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.regressor_ = clone(self.regressor).fit(X, relevance, **weight)
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the predicted relevance, which orders the documents of a query.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features)

        Returns
        -------
        relevance : ndarray of shape (n_documents,)
        """
        check_is_fitted(self)
        return self.regressor_.predict(X)

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return R squared of the predicted relevance; rankings are judged by a scorer.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features)
        y : array-like of shape (n_documents,)
            Relevance, or the structured array of `relevance_labels`.
        sample_weight : array-like of shape (n_documents,), default=None

        Returns
        -------
        score : float
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
        """Column names of X, where it has them."""
        check_is_fitted(self)
        return self.regressor_.feature_names_in_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.regressor).input_tags
        return tags
