"""The base class of rankers of queries, which decodes the predictions of a fitted model."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from sklearn_rankcal.decoders import Sort
from sklearn_rankcal.decoders._result import check_result
from sklearn_rankcal.losses import Loss, get_loss
from sklearn_rankcal.models import Model, Training
from sklearn_rankcal.models._training import squared_error
from sklearn_rankcal.queries import Queries, check_weight, mean_over_queries
from sklearn_rankcal.queries._ranking import tie_rounded
from sklearn_rankcal.rankers import _reports
from sklearn_rankcal.rankers._diagnosis import Diagnosis
from sklearn_rankcal.rankers._input import read_labelled, read_queries, read_ruled, read_table
from sklearn_rankcal.rankers._order import QueryOrder
from sklearn_rankcal.utils._catboost import ClonesCatBoost
from sklearn_rankcal.utils._estimators import SiteLink, reduce_with_versions
from sklearn_rankcal.utils._messages import counted, print_progress
from sklearn_rankcal.utils._names import checks_keywords
from sklearn_rankcal.utils._parameters import check_count, check_nested
from sklearn_rankcal.utils._row_hashes import hash_rows
from sklearn_rankcal.utils._sklearn_compat import available_if, shorten_requests

if TYPE_CHECKING:
    from sklearn_rankcal.rules import Rules


class RankerMixin(SiteLink):
    """Tags and metadata requests that all rankers of queries share.

    The `predict(X, groups=None)` of a ranker returns positions, 1 = top, not scores.
    """

    _estimator_type = "ranker"
    # see utils/_wrapped.py
    _predicts_positions = True
    _takes_ranking_labels = True
    # whether the mean of the weights of its rows is the weight of a query in `fit`
    _weighs_queries = False
    # Metadata routing passes groups to all of these methods without a set_*_request call.
    __metadata_request__fit = {"groups": True}
    __metadata_request__predict = {"groups": True}
    __metadata_request__decision_function = {"groups": True}
    __metadata_request__score = {"groups": True, "sample_weight": True}

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Make scikit-learn's methods of metadata routing."""
        super().__init_subclass__(**keywords)
        shorten_requests(cls)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.estimator_type = "ranker"
        tags.target_tags.required = True
        return tags


class QueryRanker(RankerMixin, ClonesCatBoost):
    """Base class of rankers that fit a model to targets and decode its predictions.

    A subclass has the parameters `loss`, `group_column`, `random_state` and `verbose`. Its `fit`
    reads the data (`read_training`), makes a model and targets, and fits the model (`fit_model`).
    """

    loss_: Loss
    n_queries_: int
    n_queries_dropped_: int
    model_: Model
    decoder_: Any
    calibrated_over_: str
    grouped_: bool
    n_iter_: int
    validation_scores_: NDArray[np.float64]
    validation_queries_: NDArray[Any]
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    # parameters, or attributes of a class that does not have the parameter
    decoder: Any
    n_jobs: int | None
    regressor: Any
    validation_queries: float | None
    # whether the predictions of the model estimate the expected targets of the loss
    _learns_targets = True
    __metadata_request__predict = {"groups": True, "rules": True}
    # code that makes a regressor in the place of None or a name
    _one_regressor = "sklearn_rankcal.models.default_regressor(len(X))"
    # of the last fit; never pickled
    _fitted_queries: Any = None

    __reduce__ = reduce_with_versions

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the ranker, or of an object in it, as ``regressor__<parameter>``."""
        check_nested(self, params, regressor=self._one_regressor)
        return super().set_params(**params)

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

    def _check_table(self, table: Any) -> Any:
        """Refuse or convert a table that the model cannot take."""
        return table

    def _needs_held_out(self, data: Training) -> bool:
        """Return whether `fit` holds out queries although it was not told to."""
        return False

    def _needs_queries(self) -> bool:
        """Return whether the scores of documents depend on their queries."""
        check_is_fitted(self)
        return self.grouped_ and self.model_.needs_queries

    def _steady_value(self, held_out: Training) -> Callable[[Any], float]:
        """Return a function of scores that varies less over few queries than the measure.

        Validation queries stop training by both. Larger is better.
        """
        return squared_error(held_out)

    # ---------------------------------------------------------------- predict

    @checks_keywords
    def predict(
        self, X: Any, groups: ArrayLike | None = None, rules: Rules | None = None
    ) -> NDArray[np.int64]:
        """Return the position of each row in its query, 1 = top, of shape (n_documents,).

        `groups` has the query id of each row, unless X has `group_column`. None is one query, and
        an error if the ranker was fitted with ids. The rankings keep `rules`, such as pinned places
        and quotas (:ref:`rules`). A hash of the features orders documents with equal scores, and
        those with equal features keep the order of their rows.
        """
        X, queries, rules = read_ruled(self, X, groups, rules)
        return self._decode(X, queries, rules)

    @checks_keywords
    def predict_order(
        self,
        X: Any,
        groups: ArrayLike | None = None,
        k: int | None = None,
        rules: Rules | None = None,
    ) -> QueryOrder:
        """Return the rows of each query, best first, at most k of them (all if k is None).

        The result has ``rows`` (indices into X), ``offsets`` (where the rows of each query begin
        and end) and ``queries`` (the group ids). Rows that `rules` block are left out.
        """
        check_count(k, "k", or_none=True)
        X, queries, rules = read_ruled(self, X, groups, rules)
        ranks = self._decode(X, queries, rules)
        rows = queries.sort(-ranks)  # rows that share a position keep their order
        offsets = queries.offsets
        if k is not None or rules is not None:
            listed = queries.sizes if rules is None else rules.count_shown(queries)
            listed = listed if k is None else np.minimum(listed, k)
            rows = rows[queries.place < queries.repeat(listed)]
            offsets = np.append(0, np.cumsum(listed))
        return QueryOrder(rows, offsets, queries.ids)

    @available_if(_reports.predicts_scores)
    @checks_keywords
    def decision_function(self, X: Any, groups: ArrayLike | None = None) -> NDArray[np.float64]:
        """Return the predicted score of each row, larger is better, comparable inside a query.

        They estimate the expected targets, up to a shift per query, or minimise the expected
        surrogate. They need `groups` only if they depend on the query, as with context columns.
        Scores of a query that differ by at most 1e-9 of its largest are made equal.
        """
        X, queries = read_queries(self, X, groups, required=self._needs_queries())
        return tie_rounded(self.model_.predict(X, queries), queries)

    @checks_keywords
    def score(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the mean over queries of the loss's measure, higher is better.

        The weight of a query is the mean of the weights of its rows, and for pairwise disagreement
        that of its preferences. NaN means that the measure is undefined on all queries.
        """
        check_is_fitted(self)
        X, labels, queries = read_labelled(self, X, y, groups)
        weight = check_weight(sample_weight, queries.n_rows)
        values = self.loss_.metric(labels, self._decode(X, queries), queries)
        name, factor = type(self.loss_).__name__, self.loss_.query_weight(labels, queries)
        return mean_over_queries(values, queries, weight, name, factor)

    def _decode(self, X: Any, queries: Queries, rules: Rules | None = None) -> NDArray[np.int64]:
        if rules is not None:
            return rules.decode(self, X, queries).ranks
        started = time.perf_counter()
        scores = _reports.sufficient_scores(self, X, queries)
        if scores is not None:
            decoder = Sort() if self.loss_.space.is_pairwise else self.decoder_
            found = decoder.decode(scores, queries, lambda rows: hash_rows(X, rows))
            ranks: NDArray[np.int64] = check_result(found, decoder).ranks
            print_progress(
                self,
                f"ranked {counted(queries.n_rows, 'document')} in "
                f"{counted(queries.n_queries, 'query')}",
                started,
            )
            return ranks
        ranks = np.empty(queries.n_rows, dtype=np.int64)
        for rows, part, u in _reports.predicted_pairs(self, X, queries):
            found = self.decoder_.decode(u, part, n_jobs=self.n_jobs)
            ranks[rows] = check_result(found, self.decoder_).ranks
            _reports.order_twins(ranks, rows, X, part)
        return ranks

    def _describe_cut(self, X: Any, groups: ArrayLike, labels: Any) -> str | None:
        """Return what is wrong if a scorer scores queries that were fitted with other rows."""
        X, queries = read_table(self, X, groups)
        if self._fitted_queries is None or queries is None or not self.grouped_:
            return None
        return self._fitted_queries.describe_cut(queries, X, labels)

    def _count_fitted(self, X: Any, groups: ArrayLike, labels: Any) -> int:
        """Return how many queries the last `fit` has seen."""
        X, queries = read_table(self, X, groups)
        if self._fitted_queries is None or queries is None:
            return 0
        return self._fitted_queries.count_fitted(queries, X, labels)

    # ---------------------------------------------------------------- reports

    @available_if(_reports.predicts_pairs)
    @checks_keywords
    def predict_preferences(
        self, X: Any, groups: ArrayLike | None = None
    ) -> list[NDArray[np.float64]]:
        """Return a matrix of predictions for all pairs of documents for each query.

        Entry [i, j] estimates E[y_ij - y_ji] for ``"pd"``, where y_ij is the weight with which i is
        preferred to j, and E[y_i y_j / sum(y)] for ``"map"``, up to a constant on the diagonal.
        """
        X, queries = read_queries(self, X, groups)
        return _reports.predict_preferences(self, X, queries)

    @available_if(_reports.predicts_pairs)
    @checks_keywords
    def decode_report(self, X: Any, groups: ArrayLike | None = None) -> dict[str, NDArray[Any]]:
        """Report how far the ranking of each query can be from the best one for its predictions.

        Arrays of shape (n_queries,): ``query``, ``n_documents``, ``objective``, a ``lower_bound``
        of it, ``gap``, ``optimal`` (proved), ``method`` and, for ``"pd"``, ``cyclic``.
        """
        X, queries = read_queries(self, X, groups)
        return _reports.decode_report(self, X, queries)

    @checks_keywords
    def rules_report(
        self, X: Any, groups: ArrayLike | None = None, *, rules: Rules
    ) -> dict[str, NDArray[Any]]:
        """Report what `rules` cost in each query, in the unit of the loss.

        Arrays of shape (n_queries,): ``query``, ``n_documents``, ``price`` (of all rules),
        ``optimal`` (proved), ``method``, ``violation`` and ``broken`` (of soft rules), and ``price
        of ...`` each parameter and quota: how much smaller the expected loss is without it.
        """
        X, queries, rules = read_ruled(self, X, groups, rules)
        return rules.report(self, X, queries)

    @checks_keywords
    def diagnose(self, X: Any, groups: ArrayLike | None = None, y: Any = None) -> Diagnosis:
        """Report whether the rankings are optimal, whether scores suffice, and regret bounds.

        The bounds need labels `y` of held-out queries, several judges as columns or a list; with
        one, they contain the noise of the labels. :ref:`diagnosis` explains what it prints.
        """
        check_is_fitted(self)
        return _reports.diagnose(self, X, groups, y)

    # ---------------------------------------------------------------- the fitted regressor

    @checks_keywords
    def transform_table(self, X: Any, groups: ArrayLike | None = None) -> Any:
        """Return the table that ``model_.regressor_`` sees, for tools like SHAP (:ref:`explain`).

        It is X with context columns, without `group_column`. A stack or a model of pairs has none.
        """
        model = self._model_of_table("transform_table")
        table, queries = read_queries(self, X, groups, required=self._needs_queries())
        return model._table(table, queries)[0]

    def get_feature_names_out(self) -> NDArray[Any]:
        """Return the names of the columns of `transform_table`: ``<column>__<kind>`` is context."""
        model = self._model_of_table("get_feature_names_out")
        default = [f"x{column}" for column in range(self.n_features_in_)]
        names = list(getattr(self, "feature_names_in_", default))
        if self.group_column is not None:
            del names[self._group_place]
        return np.array(model.table_names(names), dtype=object)

    def _model_of_table(self, method: str) -> Any:
        """Return the fitted model, or raise an error if it has no table with a row per document."""
        check_is_fitted(self)
        model = self.model_
        if model.has_table:
            return model
        raise TypeError(
            f"{method} needs a ranker that fits one regressor to rows of documents, but this one, "
            f"with loss={type(self.loss_).__name__}, {model.why_no_table()}. "
            "inspection.permutation_importance takes all rankers."
        )

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """The regressor's importances per column of X, context columns folded in."""
        check_is_fitted(self)
        return self._with_group_column(self.model_.own_importances())

    @property
    def coef_(self) -> NDArray[np.float64]:
        """The regressor's coefficients per column of X: average slopes inside a query."""
        check_is_fitted(self)
        return self._with_group_column(self.model_.own_coefficients())

    @property
    def classes_(self) -> Any:
        """A ranker has none; cross_val_predict wants them for a method of scores."""
        raise AttributeError(
            "A ranker has no classes_. cross_val_predict(method='decision_function') takes every "
            "estimator for a classifier: use its default method with group_column='qid', or loop "
            "over QueryKFold().split(X, labels)."
        )

    def _with_group_column(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values per column that the model saw, with a 0 where `group_column` stands in X."""
        if self.group_column is None:
            return values
        return np.insert(values, self._group_place, 0.0, axis=-1)
