"""The base class of rankers of queries: fit a model to targets, and decode its predictions."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from sklearn_rankcal.decoders import get_decoder
from sklearn_rankcal.losses import get_loss
from sklearn_rankcal.models._validation import Validation
from sklearn_rankcal.queries import Queries, check_weight, mean_over_queries
from sklearn_rankcal.rankers._base import QueryOrder, RankerMixin
from sklearn_rankcal.rankers._fitted_table import FittedTableMixin
from sklearn_rankcal.rankers._reports import ReportingRanker, predicts_scores
from sklearn_rankcal.rankers._training import (
    TrainingData,
    warn_if_labels_are_amounts,
    warn_if_rows_are_queries,
    warn_if_split_cuts_queries,
)
from sklearn_rankcal.utils._names import checks_keywords
from sklearn_rankcal.utils._nested import set_random_states, set_verbose
from sklearn_rankcal.utils._pickles import VersionedPickle
from sklearn_rankcal.utils._row_hashes import hash_rows


class QueryRanker(FittedTableMixin, ReportingRanker, RankerMixin, VersionedPickle, BaseEstimator):
    """Base class of rankers that fit a model to targets and decode its predictions.

    A subclass has the parameters `loss`, `group_column`, `random_state` and `verbose`. It
    implements `fit`, which calls `_fit`, and the methods `_make_model` and `_make_targets`.
    """

    random_state: Any
    decoder: Any = "auto"
    n_jobs: int | None = None
    regressor: Any = None
    _group_place: int
    # of `ValidatingRanker`; only rankers of this class pass validation data to `_fit`
    _read_validation: Callable[..., TrainingData | None]
    _hold_out: Callable[[TrainingData], tuple[TrainingData, TrainingData | None]]
    _make_validation: Callable[[Any, TrainingData], Validation]
    _keep_validation: Callable[[Validation | None], None]

    # ---------------------------------------------------------------- to be defined by a subclass

    def _make_model(self, data: TrainingData, stops_early: bool) -> Any:
        """Return the model to be fitted. `loss_` is set."""
        raise NotImplementedError

    def _make_targets(self, model: Any, data: TrainingData) -> Any:
        """Return the targets of the model, and set `calibrated_over_`."""
        raise NotImplementedError

    def _training_weight(self, data: TrainingData) -> NDArray[np.float64] | None:
        """Return the weights with which the model is fitted."""
        return data.weight

    def _needs_queries(self) -> bool:
        """Return whether the scores of documents depend on their queries."""
        return False

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

    # ---------------------------------------------------------------- fit

    def _table_and_queries(
        self, X: Any, groups: ArrayLike | None, reset: bool
    ) -> tuple[Any, Queries | None]:
        table, queries = super()._table_and_queries(X, groups, reset)
        if reset and self.group_column is not None:
            self._group_place = list(X.columns).index(self.group_column)
        return table, queries

    def _fit(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None,
        sample_weight: ArrayLike | None,
        validation_data: tuple[Any, ...] | None = None,
    ) -> Self:
        """Fit the model. `fit` of a subclass calls this method and returns what it returns.

        Parameters
        ----------
        validation_data : tuple or None
            The arguments `X_val`, `y_val`, `groups_val` and `sample_weight_val` of `fit`, all of
            which may be None; or None if the ranker has no validation queries.
        """
        started = time.perf_counter()
        loss = get_loss(self.loss)
        data = self._read_training_data(X, y, groups, sample_weight)
        held_out = None
        if validation_data is not None:
            known = groups is not None or self.group_column is not None
            held_out = self._read_validation(data.queries, *validation_data, ids_known=known)
        self.decoder_ = get_decoder(self.decoder, loss.space)
        self.n_queries_ = data.queries.n_queries
        warn_if_rows_are_queries(data.queries, stacklevel=6)
        warn_if_split_cuts_queries(self.regressor, data.queries, stacklevel=6)
        data = data.without_zero_weights()
        self.loss_ = loss.resolve(data.labels)
        warn_if_labels_are_amounts(self.loss_, data.labels, stacklevel=6)
        data = data.without_undefined_queries(self.loss_)
        self.n_queries_dropped_ = self.n_queries_ - data.queries.n_queries
        if validation_data is not None and held_out is None:
            data, held_out = self._hold_out(data)
        data = data.weighted_by(self.loss_).without_zero_weights()
        model = self._make_model(data, stops_early=held_out is not None)
        set_random_states(model, self.random_state)
        validation = None if held_out is None else self._make_validation(model, held_out)
        targets = self._make_targets(model, data)
        self._print_progress(
            f"{data.queries.n_rows} documents in {data.queries.n_queries} queries for "
            f"{self.loss_!r}; {self.n_queries_dropped_} queries left out"
            + ("" if validation is None else f"; {validation.queries.n_queries} for validation"),
            started,
        )
        self.model_ = self._fit_model(model, targets, data, validation)
        if validation_data is not None:
            self._keep_validation(validation)
        return self

    def _read_training_data(
        self, X: Any, y: Any, groups: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> TrainingData:
        X, labels, queries, self.grouped_ = self._read(X, y, groups, reset=True, stacklevel=7)
        return TrainingData(X, labels, queries, check_weight(sample_weight, queries.n_rows))

    def _fit_model(
        self, model: Any, targets: Any, data: TrainingData, validation: Validation | None
    ) -> Any:
        """Fit the model and print how long that takes."""
        started = time.perf_counter()
        weight = self._training_weight(data)
        set_verbose(model, self.verbose - 1)
        shown = getattr(model, "regressor", None)
        shown = model if shown is None else shown
        n_rows, n_columns = data.X.shape
        self._print_progress(
            f"fitting {type(shown).__name__} to {n_rows} rows, {n_columns} columns ..."
        )
        # Models have these parameters only if they use them.
        extra: dict[str, Any] = {} if validation is None else {"validation": validation}
        if has_fit_parameter(model, "labels"):
            extra["labels"] = data.labels
        if has_fit_parameter(model, "graded_targets"):
            extra["graded_targets"] = self.loss_.graded_targets
        model = model.fit(data.X, targets, data.queries, weight, **extra)
        fitted = getattr(model, "regressor_", model)
        kept = "" if validation is None else f" with {validation.n_iter} iterations"
        self._print_progress(f"fitted {type(fitted).__name__}{kept}", started)
        return model

    # ---------------------------------------------------------------- predict

    @checks_keywords
    def predict(self, X: Any, groups: ArrayLike | None = None) -> NDArray[np.int64]:
        """Return the position of each row in its query, 1 = top.

        `decision_function` returns scores.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features)
            One row per query-document pair.
        groups : array-like of shape (n_documents,), default=None
            Query id of each row. It is needed if the ranker was fitted with query ids, unless X has
            the column `group_column`. Otherwise None ranks all rows as one query.

        Returns
        -------
        ranks : ndarray of shape (n_documents,)
            Position of each row inside its query, as in `scipy.stats.rankdata`. Documents with
            equal scores are ordered by a hash of their features, so that the ranking depends
            neither on the order of the rows nor on other queries.
        """
        X, queries = self._read_queries(X, groups)
        return self._decode(X, queries)

    @checks_keywords
    def predict_order(
        self, X: Any, groups: ArrayLike | None = None, k: int | None = None
    ) -> QueryOrder:
        """Return the row indices of each query, best first.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features)
            One row per query-document pair.
        groups : array-like of shape (n_documents,), default=None
            Query id of each row, as in `predict`.
        k : int, default=None
            List at most the first k rows of each query; None lists all.

        Returns
        -------
        order : QueryOrder
            It has the attributes ``rows`` (indices into X), ``offsets`` (where the rows of each
            query begin and end) and ``queries`` (the group ids).
        """
        if k is not None and (isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1):
            raise ValueError(f"k must be a whole number >= 1 or None; got {k!r}.")
        X, queries = self._read_queries(X, groups)
        ranks = self._decode(X, queries)
        rows = np.empty(queries.n_rows, dtype=np.int64)
        rows[queries.broadcast(queries.offsets[:-1]) + ranks - 1] = np.arange(queries.n_rows)
        offsets = queries.offsets
        if k is not None:
            rows = rows[queries.place < k]
            offsets = np.append(0, np.cumsum(np.minimum(queries.sizes, k)))
        return QueryOrder(rows, offsets, queries.ids)

    @available_if(predicts_scores)
    @checks_keywords
    def decision_function(self, X: Any, groups: ArrayLike | None = None) -> NDArray[np.float64]:
        """Return the predicted scores, larger is better.

        Scores of different queries need not be comparable.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features)
            One row per query-document pair.
        groups : array-like of shape (n_documents,), default=None
            Query id of each row. A ranker with context columns, or with a stack, needs it unless X
            has the column `group_column`.

        Returns
        -------
        scores : ndarray of shape (n_documents,)
            For a `CalibratedRanker`, estimates of the expected targets, up to a shift per query.
            For rankers with another surrogate, scores that minimise its expected value.
        """
        X, queries = self._read_queries(X, groups, required=self._needs_queries())
        return self.model_.predict(X, queries)

    @checks_keywords
    def score(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the mean over queries of the loss's measure, higher is better.

        For `PD` and `PDByScores` without `equal_queries`, queries count by the weight of their
        preferences, as in `fit`. The score is then the share of the preference weight of all
        queries together that is not contradicted.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features)
            One row per query-document pair.
        y : array-like of shape (n_documents,)
            As in `fit`.
        groups : array-like of shape (n_documents,), default=None
            Query id of each row. Needed if neither `y` nor `group_column` gives it.
        sample_weight : array-like of shape (n_documents,), default=None
            Weight of each row. The weight of a query is the mean of the weights of its rows.

        Returns
        -------
        score : float
            Precision, DCG, NDCG, recall, AUC, ERR, average precision, ERU, Spearman's rho, or the
            share of preference weight that is not contradicted, for the rankings that `predict`
            returns. Queries on which the measure is undefined are left out. If it is undefined on
            all queries, the score is NaN.
        """
        check_is_fitted(self)
        X, labels, queries, _ = self._read(X, y, groups, reset=False)
        weight = check_weight(sample_weight, queries.n_rows)
        values = self.loss_.metric(labels, self._decode(X, queries), queries)
        name, factor = type(self.loss_).__name__, self.loss_.query_weight(labels, queries)
        return mean_over_queries(values, queries, weight, name, factor)

    def _decode(self, X: Any, queries: Queries) -> NDArray[np.int64]:
        if not self.loss_.space.is_pairwise:
            started = time.perf_counter()
            u = self.model_.predict(X, queries)
            ranks = self.decoder_.decode(u, queries, lambda rows: hash_rows(X, rows)).ranks
            self._print_progress(
                f"ranked {queries.n_rows} documents in {queries.n_queries} queries", started
            )
            return ranks
        ranks = np.empty(queries.n_rows, dtype=np.int64)
        for rows, part, u in self._predicted_pairs(X, queries):
            ranks[rows] = self.decoder_.decode(u, part, n_jobs=self.n_jobs).ranks
        return ranks
