"""Base class of the rankers. It decodes the predictions of a fitted model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from sklearn_rankcal.losses import Choice, Loss, get_loss
from sklearn_rankcal.models import Model, Training
from sklearn_rankcal.models._model import squared_error
from sklearn_rankcal.queries import Ranking, check_weight, mean_over_queries
from sklearn_rankcal.queries._ranking import UNJUDGED, tie_rounded
from sklearn_rankcal.rankers import _diagnosis, _input, _predict
from sklearn_rankcal.rankers._diagnosis import Diagnosis
from sklearn_rankcal.rankers._predict import QueryOrder
from sklearn_rankcal.utils import _estimators, _features
from sklearn_rankcal.utils._messages import check_choice, check_count, check_nested, checks_keywords
from sklearn_rankcal.utils._sklearn_compat import available_if, shorten_requests

if TYPE_CHECKING:
    from sklearn_rankcal.rules import Rules


_OF_VALIDATION = r"eval_\w+|early_stopping_rounds|use_best_model|sample_weight_eval_set"
_OF_CLICKS = r"positions?|shown|click(s|ed)|propensit(y|ies)"
_CLICKS = (
    "Where documents were shown is a part of click labels: pass y=click_labels(shown, clicked, "
    "groups), and AggregatedLoss('dcg', InversePropensity(propensities)) as the loss of the ranker."
)
#: Keywords of the `fit` of other rankers, and what to write instead, for rankers with and without
#: validation queries.
FOREIGN = {
    _OF_VALIDATION: (
        "Pass the validation queries as X_val=, y_val= and groups_val=<query id of each row of "
        "X_val>. Or create the ranker with validation_queries=0.2, which holds out a share of the "
        "queries of X. The loss of the ranker is the metric."
    ),
    _OF_CLICKS: _CLICKS,
}
FOREIGN_WITHOUT_VALIDATION = {
    _OF_VALIDATION: (
        "This ranker takes no validation queries. get_ranking_scorer('ndcg@10') evaluates a fitted "
        "one."
    ),
    _OF_CLICKS: _CLICKS,
}


class RankerMixin(_estimators.SiteLink):
    """Mixin class for all rankers: scikit-learn tags and metadata requests.

    `predict(X, groups=None)` of a ranker must return positions, 1 = top, and not scores. With this
    mixin, meta-estimators pass `groups` to `fit`, `predict`, `decision_function` and `score` if
    metadata routing is enabled, and the functions and wrappers of this package accept the ranker.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.base import BaseEstimator
    >>> from sklearn_rankcal.decoders import decode_scores
    >>> from sklearn_rankcal.rankers import RankerMixin
    >>> class FirstColumn(RankerMixin, BaseEstimator):
    ...     def fit(self, X, y, groups=None):
    ...         return self
    ...
    ...     def predict(self, X, groups=None):
    ...         return decode_scores(X[:, 0], groups).ranks
    >>> FirstColumn().predict(np.array([[1.0], [2.0], [5.0]]), groups=[0, 0, 1]).tolist()
    [2, 1, 1]
    """

    _estimator_type = "ranker"
    # see utils/_estimators.py
    _predicts_positions = True
    _takes_ranking_labels = True
    # whether `fit` weights a query by the mean weight of its rows
    _weighs_queries = False
    # Metadata routing passes groups to all of these methods without a set_*_request call.
    __metadata_request__fit = {"groups": True}
    __metadata_request__predict = {"groups": True}
    __metadata_request__decision_function = {"groups": True}
    __metadata_request__score = {"groups": True, "sample_weight": True}

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Create the ``set_*_request`` methods of scikit-learn."""
        super().__init_subclass__(**keywords)
        shorten_requests(cls)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.estimator_type = "ranker"
        tags.target_tags.required = True
        return tags


class QueryRanker(RankerMixin, BaseEstimator):
    """Base class of rankers that fit a model to targets and decode its predictions.

    A subclass has the parameters `loss`, `group_column`, `random_state` and `verbose`. Its `fit`
    calls `rankers._fit.fit`, which asks the subclass for `_table_needs` and `_prepare`.
    """

    loss_: Loss
    model_: Model
    decoder_: Any
    grouped_: bool
    n_queries_: int
    n_queries_dropped_: int
    n_iter_: int
    validation_scores_: NDArray[np.float64]
    validation_queries_: NDArray[Any]
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    _schema: _input.Schema
    # parameters, or class attributes of subclasses without the parameter
    decoder: Any
    n_jobs: int | None
    regressor: Any
    validation_queries: float | None
    # whether the model predicts the expected targets of the loss
    _learns_targets = True
    __metadata_request__predict = {"groups": True, "rules": True}
    # code that creates the regressor that None or a name stands for
    _one_regressor = "sklearn_rankcal.models.default_regressor(len(X))"
    # of the last fit; never pickled
    _fitted_queries = None

    __reduce__ = _estimators.reduce_with_versions
    __sklearn_clone__ = _estimators.clone_with_catboost

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the ranker or of a nested object (``regressor__<parameter>``)."""
        check_nested(self, params, regressor=self._one_regressor)
        return super().set_params(**params)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __getstate__(self) -> Any:
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_fitted_queries"}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            tags.target_tags.positive_only = get_loss(self.loss).non_negative
        except (TypeError, ValueError):
            pass  # a bad loss is reported by fit; tags must not raise
        return tags

    def _table_needs(self, loss: Loss) -> _input.TableNeeds | None:
        """Return what the model needs of a table. None means that it takes any table."""
        return None

    def _prepare(
        self, loss: Loss, data: Training, held_out: Training | None, grouped: bool
    ) -> tuple[Model, Training]:
        """Return the model to fit, and the data with its targets. `grouped`: whether ids came."""
        raise NotImplementedError

    @property
    def _scores_are(self) -> str | None:
        """What scores are to `choice_probabilities`: "shares" of choices, "logarithms" or None."""
        usual = "shares" if isinstance(get_loss(self.loss), Choice) else None
        return getattr(getattr(self, "model_", None), "scores_are", usual)

    def _needs_queries(self) -> bool:
        """Return whether the scores of documents depend on their queries."""
        check_is_fitted(self)
        return self.grouped_ and self.model_.needs_queries

    def _steady_value(
        self, loss: Loss, data: Training, held_out: Training
    ) -> Callable[[Any], float]:
        """Return a function of scores, larger is better, that varies less than the measure.

        Early stopping uses both. `data` are the training queries with their targets.
        """
        return squared_error(held_out)

    # ---------------------------------------------------------------- predict

    @checks_keywords
    def predict(
        self, X: Any, groups: ArrayLike | None = None, rules: Rules | None = None
    ) -> NDArray[np.int64]:
        """Return the position of each document in its query, an array of shape (n_documents,).

        1 is the top of the query. Ties are broken by a hash of the features, and by the order of
        the rows if the features are equal. `X` and `groups` are as in `fit`, and `groups` is
        required if `fit` received query ids, unless X has the `group_column`. Otherwise, None means
        one query. `rules` is a `Rules` object that the rankings keep, with pinned places and
        quotas, for example (:ref:`rules`). Without rows, the result is empty.
        """
        if np.shape(X)[:1] == (0,) and hasattr(self, "model_"):  # no candidates
            return np.empty(0, dtype=np.int64)
        if rules is None:
            X, queries = _input.read_queries(self, X, groups)
            return _predict.predict_ranks(self, X, queries)[0]
        X, queries, rules = _input.read_ruled(self, X, groups, rules)
        return _predict.decode_under_rules(self, X, queries, rules).ranks

    @checks_keywords
    def predict_order(
        self,
        X: Any,
        groups: ArrayLike | None = None,
        k: int | None = None,
        rules: Rules | None = None,
    ) -> QueryOrder:
        """Return the rows of each query, best first.

        `X`, `groups` and `rules` are as in `predict`. `k` is the number of rows to return per
        query, and None returns all. Return a `QueryOrder` with the row indices of each query,
        without rows that `rules` block.
        """
        check_count(k, "k", or_none=True)
        scores = None
        if np.shape(X)[:1] == (0,) and hasattr(self, "model_"):  # no candidates
            order = QueryOrder(np.empty(0, np.int64), np.zeros(1, np.int64), np.empty(0, np.int64))
            order.scores = np.empty(0) if hasattr(self, "decision_function") else None
            return order
        if rules is None:
            X, queries = _input.read_queries(self, X, groups)
            ranks, scores = _predict.predict_ranks(self, X, queries)
        else:
            X, queries, rules = _input.read_ruled(self, X, groups, rules)
            ranks = _predict.decode_under_rules(self, X, queries, rules).ranks
        rows = queries.sort(-ranks)  # rows that share a position keep their order
        offsets = queries.offsets
        if k is not None or rules is not None:
            listed = queries.sizes if rules is None else rules.count_shown(queries)
            listed = listed if k is None else np.minimum(listed, k)
            rows = rows[queries.place < queries.repeat(listed)]
            offsets = np.append(0, np.cumsum(listed))
        order = QueryOrder(rows, offsets, queries.ids)
        order.scores = None if scores is None else scores[rows]
        return order

    @available_if(_predict.predicts_scores)
    @checks_keywords
    def decision_function(self, X: Any, groups: ArrayLike | None = None) -> NDArray[np.float64]:
        """Return the predicted score of each document, an array of shape (n_documents,).

        Larger is better. Compare scores only within a query: they estimate the expected targets up
        to a constant per query, or minimise the expected surrogate. Differences of at most 1e-9 of
        the largest score of a query are removed. `X` and `groups` are as in `predict`, but `groups`
        is required only if scores depend on the query, as with context columns.
        """
        needs_queries = self._needs_queries()
        if np.shape(X)[:1] == (0,):  # no candidates
            return np.empty(0)
        X, queries = _input.read_queries(self, X, groups, required=needs_queries)
        return tie_rounded(self.model_.predict(X, queries), queries)

    @available_if(_predict.predicts_choices)
    @checks_keywords
    def choice_probabilities(self, X: Any, groups: ArrayLike | None = None) -> NDArray[np.float64]:
        """Return the probability that each document is the chosen one of its query.

        The result has the shape (n_documents,) and sums to 1 in each query. `X` and `groups` are
        as in `predict`. If several documents are chosen, it has expected shares. Only for
        ``loss="choice"``, and for the surrogate ``"softmax"``, which other losses than ``"choice"``
        suit if labels are 0 and 1. Raise ValueError if the regressor predicts a negative share.
        """
        check_is_fitted(self)
        if np.shape(X)[:1] == (0,):  # no alternatives
            return np.empty(0)
        X, queries = _input.read_queries(self, X, groups)
        scores = self.model_.predict(X, queries)
        if self._scores_are == "logarithms":
            scores = np.exp(scores - queries.broadcast(queries.max(scores)))
        elif scores.min() < 0:
            raise ValueError(
                "The regressor predicts negative shares of choices. Use the default, a classifier "
                "with predict_proba, or a regressor that minimises the Poisson deviance, such as "
                "HistGradientBoostingRegressor(loss='poisson')."
            )
        scores = np.maximum(scores, np.finfo(np.float64).tiny)
        shares: NDArray[np.float64] = scores / queries.broadcast(queries.sum(scores))
        return shares

    @checks_keywords
    def score(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        unjudged: str = "irrelevant",
    ) -> float:
        """Return the mean of the loss's measure over queries, where larger is better.

        `X`, `y`, `groups` and `sample_weight` are as in `fit`. A query is weighted by the mean
        weight of its rows and, for pairwise disagreement, by its preferences. The score is NaN if
        the measure is undefined for all queries. `unjudged` is as in `metrics.evaluate_run`: rows
        whose label is NaN count as irrelevant, or are removed from the ranking with ``"skip"``.
        """
        check_is_fitted(self)
        check_choice(unjudged, "unjudged", UNJUDGED)
        _features.warn_of_other_order(X=X, sample_weight=sample_weight)
        X, labels, queries = _input.read_labelled(self, X, y, groups)
        weight = check_weight(sample_weight, queries.n_rows)
        ranks, _ = _predict.predict_ranks(self, X, queries)
        if isinstance(labels, np.ndarray) and np.isnan(labels).any():
            ranking, labels, rows = Ranking.from_ranks(ranks, queries).judged(labels, unjudged)
            queries, weight = ranking.queries, None if weight is None else weight[rows]
            ranks = queries.rank(ranking.order)
        values = self.loss_.metric(labels, ranks, queries)
        name, factor = type(self.loss_).__name__, self.loss_.query_weight(labels, queries)
        return mean_over_queries(values, queries, weight, name, factor)

    def _describe_cut(self, X: Any, groups: ArrayLike, labels: Any) -> str | None:
        """Return a warning text if queries to be scored were fitted with other rows, else None."""
        X, queries = self._schema.read(self, X, groups)
        if self._fitted_queries is None or queries is None or not self.grouped_:
            return None
        return self._fitted_queries.describe_cut(queries, X, labels)

    def _count_fitted(self, X: Any, groups: ArrayLike, labels: Any) -> int:
        """Return how many of the queries were in the data of the last `fit`."""
        X, queries = self._schema.read(self, X, groups)
        if self._fitted_queries is None or queries is None:
            return 0
        return self._fitted_queries.count_fitted(queries, X, labels)

    # ---------------------------------------------------------------- reports

    @available_if(_predict.predicts_pairs)
    @checks_keywords
    def predict_preferences(
        self, X: Any, groups: ArrayLike | None = None
    ) -> list[NDArray[np.float64]]:
        """Return a matrix of predictions for all pairs of each query. Only for losses on pairs.

        `X` and `groups` are as in `predict`. For ``"pd"``, entry [i, j] estimates E[y_ij - y_ji],
        where y_ij is the weight of the preference for i over j. For ``"map"``, it estimates
        E[y_i y_j / sum(y)], up to a constant on the diagonal.
        """
        X, queries = _input.read_queries(self, X, groups)
        return _predict.predict_preferences(self, X, queries)

    @available_if(_predict.predicts_pairs)
    @checks_keywords
    def decode_report(self, X: Any, groups: ArrayLike | None = None) -> dict[str, NDArray[Any]]:
        """Report how close each ranking is to the best one. Only for losses on pairs.

        `X` and `groups` are as in `predict`. Return a dict of arrays of shape (n_queries,):
        ``query``, ``n_documents``, ``objective`` of the ranking, a ``lower_bound`` for the best
        one, their ``gap``, ``optimal`` (whether proved), ``method`` and, for ``"pd"``, ``cyclic``.
        """
        X, queries = _input.read_queries(self, X, groups)
        return _diagnosis.decode_report(self, X, queries)

    @checks_keywords
    def rules_report(
        self, X: Any, groups: ArrayLike | None = None, *, rules: Rules
    ) -> dict[str, NDArray[Any]]:
        """Report what rules cost in each query, in the unit of the loss.

        `X`, `groups` and `rules` are as in `predict`. Return a dict of arrays of shape
        (n_queries,): ``query``, ``n_documents``, ``price`` (of all rules), ``optimal`` (whether
        proved), ``method``, ``violation`` and ``broken`` (of soft rules). For each parameter and
        quota, ``price of ...`` is the decrease of the expected loss without it.
        """
        X, queries, rules = _input.read_ruled(self, X, groups, rules)
        return _diagnosis.rules_report(self, X, queries, rules)

    @checks_keywords
    def diagnose(self, X: Any, groups: ArrayLike | None = None, y: Any = None) -> Diagnosis:
        """Report whether rankings are optimal and scores suffice, and bound the regret.

        `X` and `groups` are as in `predict`. `y` has the labels of held-out queries, for the
        bounds. Labels of several judges are columns or a list; with one judge, the bounds include
        the label noise. Return a `Diagnosis`, whose text is a summary (:ref:`diagnosis`).
        """
        check_is_fitted(self)
        return _diagnosis.diagnose(self, X, groups, y)

    # ---------------------------------------------------------------- the fitted regressor

    @checks_keywords
    def transform_table(self, X: Any, groups: ArrayLike | None = None) -> Any:
        """Return the table that ``model_.regressor_`` receives, for tools like SHAP.

        It is X with context columns and without `group_column` (:ref:`explain`). `X` and `groups`
        are as in `decision_function`. Stacks and models of pairs have none and raise TypeError.
        """
        model = self._model_of_table("transform_table")
        table, queries = _input.read_queries(self, X, groups, required=self._needs_queries())
        return model._table(table, queries)[0]

    def get_feature_names_out(self) -> NDArray[Any]:
        """Return the column names of `transform_table`, such as ``price__zscore``."""
        model = self._model_of_table("get_feature_names_out")
        default = [f"x{column}" for column in range(self.n_features_in_)]
        names = list(getattr(self, "feature_names_in_", default))
        if self._schema.group_column is not None:
            del names[self._schema.group_place]
        return np.array(model.table_names(names), dtype=object)

    def _model_of_table(self, method: str) -> Any:
        """Return the fitted model, or raise TypeError if it does not fit rows of documents."""
        check_is_fitted(self)
        model = self.model_
        if model.has_table:
            return model
        raise TypeError(
            f"{method} needs a ranker that fits one regressor to rows of documents. This ranker, "
            f"with loss={type(self.loss_).__name__}, {model.why_no_table()}. "
            "inspection.permutation_importance supports all rankers."
        )

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Importances of the regressor per column of X, including its context columns."""
        check_is_fitted(self)
        return self._with_group_column(self.model_.own_importances())

    @property
    def coef_(self) -> NDArray[np.float64]:
        """Coefficients of the regressor per column of X: average slopes within a query."""
        check_is_fitted(self)
        return self._with_group_column(self.model_.own_coefficients())

    @property
    def classes_(self) -> Any:
        # cross_val_predict reads it for method="decision_function"
        raise AttributeError(
            "A ranker has no classes_. cross_val_predict(method='decision_function') treats every "
            "estimator as a classifier. Use its default method with group_column='qid', or loop "
            "over QueryKFold().split(X, labels)."
        )

    def _with_group_column(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Insert a 0 for `group_column` into values per column of the model's table."""
        if self._schema.group_column is None:
            return values
        return np.insert(values, self._schema.group_place, 0.0, axis=-1)
