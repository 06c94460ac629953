"""CalibratedRanker: labels -> targets -> model -> surrogate predictions -> decoder -> ranking."""

from __future__ import annotations

import time
import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from sklearn_rankcal._averages import check_weight, mean_over_queries
from sklearn_rankcal._context import check_context
from sklearn_rankcal._queries import Queries
from sklearn_rankcal._tables import (
    check_table,
    content_keys,
    numeric_columns,
    split_column,
    take_rows,
)
from sklearn_rankcal.decoders import get_decoder
from sklearn_rankcal.exceptions import MissingGroupsWarning
from sklearn_rankcal.labels import GROUPS_REMEDY, agreed_queries, read_labels
from sklearn_rankcal.losses import Loss, get_loss
from sklearn_rankcal.model_selection import splitter_cuts_queries
from sklearn_rankcal.models import DocumentModel, default_regressor
from sklearn_rankcal.utils._sklearn_compat import (
    HasMethods,
    _fit_context,
    inside,
)


class QueryOrder(NamedTuple):
    """Rows best first, query by query.

    Attributes
    ----------
    rows : ndarray of shape (n_listed,)
        Row indices into X, best first inside each query.
    offsets : ndarray of shape (n_queries + 1,)
        Query q owns ``rows[offsets[q]:offsets[q + 1]]``.
    queries : ndarray of shape (n_queries,)
        Group id of each query, in order of first appearance.
    """

    rows: NDArray[np.int64]
    offsets: NDArray[np.int64]
    queries: NDArray[Any]


class RankerMixin:
    """What every ranker of the package shares: its tags and `score`.

    A ranker's `predict(X, groups=None)` returns positions, 1 = top, not scores.
    """

    _estimator_type = "ranker"
    # groups are passed wherever scikit-learn routes metadata, with no set_*_request call
    __metadata_request__fit = {"groups": True}
    __metadata_request__predict = {"groups": True}
    __metadata_request__decision_function = {"groups": True}
    __metadata_request__score = {"groups": True, "sample_weight": True}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.estimator_type = "ranker"
        tags.target_tags.required = True
        return tags


def _predicts_scores(ranker: CalibratedRanker) -> bool:
    return get_loss(ranker.loss).space == "scores"


class CalibratedRanker(RankerMixin, BaseEstimator):
    """Rank the documents of queries with any regressor, consistently for a chosen measure.

    "Calibrated" means surrogate consistency (P1, definition 1), not probability calibration: the
    regressor's targets are chosen so that, with enough data and a rich enough regressor, the
    decoded rankings become the best possible for the loss. `predict` returns positions; scores
    are `decision_function`.

    Parameters
    ----------
    regressor : estimator, default=None
        Any scikit-learn regressor; or a classifier, when labels are graded: it predicts expected
        targets from `predict_proba`; or a `sklearn_rankcal.models.DocumentModel`, taken as it is.
        None is `HistGradientBoostingRegressor` set for ranking data (`models.default_regressor`).
    loss : str or Loss, default="ndcg"
        What to be optimal for: ``"ndcg"``, ``"ndcg@10"``, ``"dcg@10"``, ``"precision@5"``,
        ``"recall@20"``, ``"wta"``, ``"eru"``, ``"auc"``, ``"spearman"``, ``"err"``,
        ``"map_by_scores"``, or an object such as ``NDCG(k=10, gain="linear")`` (`losses`).
    decoder : str or decoder, default="auto"
        How surrogate predictions become a ranking; ``"auto"`` is the loss's exact decoder, for
        scores ``"sort"``.
    context : "auto", None, str or list of str, default="auto"
        Query-context columns added for the regressor: ``"zscore"``, (x - query mean) / query
        standard deviation; ``"difference"``; ``"rank"``; or a list. ``"auto"`` is ``"zscore"``
        when `fit` knows the queries and X is dense with numeric columns, else None. None shows the
        regressor the columns of X and nothing else.
    center : bool, default=True
        Subtract from each target the mean of its query. It changes no ranking of the targets.
    group_column : str, default=None
        Column of a data frame X that holds the query ids; it is dropped before the regressor. The
        one way in which queries also reach `cross_val_predict` and ``search.predict(frame)``.
        A transformer that scales or drops the column breaks it.
    random_state : int, RandomState instance or None, default=None
        Seeds every ``random_state`` of (a clone of) the regressor; None leaves them as they are.
        The default regressor is random only beyond 200,000 rows, where its bins are estimated on a
        sample.
    verbose : int, default=0
        Print what `fit` does and how long each step takes.

    Attributes
    ----------
    model_ : DocumentModel
        The fitted model; ``model_.regressor_`` is the fitted regressor.
    loss_ : Loss
        The loss, with parameters left to the data filled in.
    decoder_ : decoder
        The decoder.
    grouped_ : bool
        Whether `fit` knew the queries.
    n_queries_ : int
        Number of queries seen by `fit`.
    n_queries_dropped_ : int
        Queries left out of the regression because the loss is undefined there or all weights are
        0 (for NDCG: no document with gain).
    n_features_in_ : int
        Number of columns of X, the group column included.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Column names of X, where it has them.

    See Also
    --------
    sklearn_rankcal.metrics.get_ranking_scorer : Scorers for `GridSearchCV`.
    sklearn_rankcal.relevance_labels : Labels that carry their query through scikit-learn.

    Notes
    -----
    Beside the regressor: O(n log r) time for n documents in queries of at most r, and O(n)
    memory; with context columns a copy of X with twice the columns, in `predict` for 131,072 rows
    at a time.

    References
    ----------
    .. [1] H. G. Ramaswamy, S. Agarwal and A. Tewari (2013). Convex calibrated surrogates for
       low-rank loss matrices with applications to subset ranking losses. NIPS. Theorem 3.
    .. [2] C. Calauzènes, N. Usunier and P. Gallinari (2013). Calibration and regret bounds for
       order-preserving surrogate losses in learning to rank. Machine Learning. Theorem 3.2.

    Examples
    --------
    >>> from sklearn_rankcal import CalibratedRanker
    >>> from sklearn_rankcal.datasets import make_ranking
    >>> data = make_ranking(n_queries=60, random_state=0)
    >>> ranker = CalibratedRanker(loss="ndcg@10").fit(data.X, data.y, groups=data.groups)
    >>> ranks = ranker.predict(data.X, groups=data.groups)  # 1 = top of its query
    >>> rows, offsets, queries = ranker.predict_order(data.X, groups=data.groups, k=3)
    >>> ranks[rows[:3]].tolist()
    [1, 2, 3]
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "regressor": [None, HasMethods(["fit", "predict"])],
        "loss": [str, Loss],
        "decoder": [str, HasMethods(["decode"])],
        "context": [None, str, list, tuple],
        "center": ["boolean"],
        "group_column": [None, str],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        regressor: Any = None,
        *,
        loss: str | Loss = "ndcg",
        decoder: Any = "auto",
        context: Any = "auto",
        center: bool = True,
        group_column: str | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.regressor = regressor
        self.loss = loss
        self.decoder = decoder
        self.context = context
        self.center = center
        self.group_column = group_column
        self.random_state = random_state
        self.verbose = verbose

    # ---------------------------------------------------------------- fit

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> CalibratedRanker:
        """Fit the regressor on the loss's targets.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features)
            One row per query-document pair.
        y : array-like of shape (n_documents,)
            Relevance, larger is better; or the structured array of `relevance_labels`.
        groups : array-like of shape (n_documents,), default=None
            Query id of each row: any type, in any order, not necessarily contiguous. None with
            plain labels and no `group_column`: all rows are one query, with a warning.
        sample_weight : array-like of shape (n_documents,), default=None
            Non-negative weight of each row in the regression. A row of weight 0 is left out.

        Returns
        -------
        self : CalibratedRanker
            The fitted ranker.

        Raises
        ------
        ValueError
            Lengths that differ, NaN in y, groups or weights, labels out of the loss's range, a
            query cut by a splitter, no query on which the loss is defined; or no query ids inside
            scikit-learn's cross-validation, which did not hand them on.
        """
        loss = get_loss(self.loss)
        started = time.perf_counter()
        X, relevance, queries, grouped = self._read(X, y, groups, reset=True)
        weight = check_weight(sample_weight, len(relevance))
        self.grouped_ = grouped
        self.decoder_ = get_decoder(self.decoder, loss.space, loss.default_decoder)
        self.n_queries_ = queries.n_queries
        if weight is not None and (weight == 0).any():
            rows = np.flatnonzero(weight)
            queries = Queries.from_groups(queries.codes[rows])
            X, relevance, weight = take_rows(X, rows), relevance[rows], weight[rows]
        self.loss_ = loss.resolve(relevance)
        X, relevance, queries, weight = self._defined(X, relevance, queries, weight)
        model = self._make_model(X)
        targets = (
            self.loss_.encode_grades(relevance)
            if model.regressor is not None and is_classifier(model.regressor)
            else self.loss_.training_targets(relevance, queries)
        )
        self._say(
            f"{queries.n_rows} documents in {queries.n_queries} queries for "
            f"{self.loss_!r}; {self.n_queries_dropped_} queries left out",
            started,
        )
        started = time.perf_counter()
        self.model_ = model.fit(X, targets, queries, weight)
        self._say(f"fitted {type(self.model_.regressor_).__name__}", started)
        return self

    def _make_model(self, X: Any) -> Any:
        if isinstance(self.regressor, DocumentModel):
            return self._seeded(clone(self.regressor))
        context = self.context
        if isinstance(context, str) and context == "auto":
            context = "zscore" if self.grouped_ and numeric_columns(X) else None
        else:
            check_context(context)
        regressor = default_regressor(X.shape[0]) if self.regressor is None else (
            clone(self.regressor)
        )
        return self._seeded(DocumentModel(regressor, center=self.center, context=context))

    def _seeded(self, model: Any) -> Any:
        if self.random_state is not None:
            seeds = check_random_state(self.random_state)
            for name in sorted(model.get_params()):
                if name.split("__")[-1] == "random_state":
                    model.set_params(**{name: seeds.randint(2**31 - 1)})
        return model

    def _defined(
        self,
        X: Any,
        relevance: NDArray[np.float64],
        queries: Queries,
        weight: NDArray[np.float64] | None,
    ) -> tuple[Any, NDArray[np.float64], Queries, NDArray[np.float64] | None]:
        """Without the queries where the loss is undefined."""
        keep = self.loss_.defined(relevance, queries)
        if not keep.all():
            if not keep.any():
                raise ValueError(
                    f"{type(self.loss_).__name__} is undefined on all {len(keep)} queries "
                    f"(n_samples={len(relevance)}), so there is nothing to learn from: for most "
                    "losses a query needs a document of positive relevance, for 'auc' and "
                    "'spearman' two different labels."
                )
            rows, queries = queries.select(keep)
            X, relevance = take_rows(X, rows), relevance[rows]
            weight = None if weight is None else weight[rows]
        self.n_queries_dropped_ = self.n_queries_ - queries.n_queries
        return X, relevance, queries, weight

    # ---------------------------------------------------------------- predict

    def predict(self, X: Any, groups: ArrayLike | None = None) -> NDArray[np.int64]:
        """Return positions, 1 = top of its query; scores are `decision_function`.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features)
            One row per query-document pair.
        groups : array-like of shape (n_documents,), default=None
            Query id of each row. Needed when the ranker was fitted with query ids, unless X holds
            `group_column`; else None ranks all rows as one query.

        Returns
        -------
        ranks : ndarray of shape (n_documents,)
            Position of each row inside its query, the convention of `scipy.stats.rankdata`.
            Documents with equal scores are ordered by a hash of their features, so that neither
            the order of the rows nor other queries matter.
        """
        if groups is None and inside("sklearn.utils._response"):
            raise ValueError(
                "scikit-learn's own scorers compare predict with y, but predict returns positions. "
                "Pass scoring=get_ranking_scorer('ndcg@10') or another of its names."
            )
        X, queries = self._read_queries(X, groups)
        return self._decode(X, queries)

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
            ``rows`` (indices into X), ``offsets`` (where each query's rows begin and end) and
            ``queries`` (the group ids).
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

    @available_if(_predicts_scores)
    def decision_function(self, X: Any, groups: ArrayLike | None = None) -> NDArray[np.float64]:
        """Return the predicted scores, larger is better.

        Scores of different queries are not comparable when targets are centred (the default).

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features)
            One row per query-document pair.
        groups : array-like of shape (n_documents,), default=None
            Query id of each row; needed only by a ranker with context columns.

        Returns
        -------
        scores : ndarray of shape (n_documents,)
            Estimates of the expected targets, up to a shift per query.
        """
        X, queries = self._read_queries(X, groups, required=self._needs_queries())
        return self.model_.predict(X, queries)

    def score(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the mean over queries of the loss's measure, higher is better.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features)
            One row per query-document pair.
        y : array-like of shape (n_documents,)
            Relevance, or the structured array of `relevance_labels`.
        groups : array-like of shape (n_documents,), default=None
            Query id of each row, where neither `y` nor `group_column` tells it.
        sample_weight : array-like of shape (n_documents,), default=None
            A query's weight is the mean of its rows' weights.

        Returns
        -------
        score : float
            P@q, DCG, NDCG, recall, AUC, ERR, AP, ERU or Spearman's rho of the rankings that
            `predict` returns. Queries where it is undefined are left out; NaN when that is all.
        """
        check_is_fitted(self)
        X, relevance, queries, _ = self._read(X, y, groups, reset=False)
        weight = check_weight(sample_weight, len(relevance))
        values = self.loss_.metric(relevance, self._decode(X, queries), queries)
        return mean_over_queries(values, queries, weight, type(self.loss_).__name__)

    def _decode(self, X: Any, queries: Queries) -> NDArray[np.int64]:
        u = self.model_.predict(X, queries)
        return self.decoder_.decode(u, queries, lambda rows: content_keys(X, rows)).ranks

    def _needs_queries(self) -> bool:
        check_is_fitted(self)
        return self.grouped_ and bool(check_context(self.model_.context))

    # ---------------------------------------------------------------- reading the input

    def _read(
        self, X: Any, y: Any, groups: ArrayLike | None, reset: bool
    ) -> tuple[Any, NDArray[np.float64], Queries, bool]:
        """Checked table, relevance, queries, and whether anybody said what the queries are."""
        X, queries = self._table_and_queries(X, groups, reset)
        relevance, of_labels = read_labels(y, X.shape[0])
        queries = agreed_queries(queries, of_labels)
        if queries is not None:
            if reset and of_labels is None and splitter_cuts_queries(self.group_column):
                raise ValueError(
                    "The cross-validation under way tests on parts of queries, or trains on one "
                    "part and tests on another. Split by query: cv=QueryKFold(), or GroupKFold() "
                    "with groups=."
                )
            return X, relevance, queries, True
        if not reset and self.grouped_:
            raise ValueError(
                f"This ranker was fitted with query ids and needs them. {GROUPS_REMEDY}"
            )
        if inside("sklearn.model_selection.", "sklearn.feature_selection."):
            raise ValueError(
                "Query ids did not reach the ranker: scikit-learn passes groups= to the splitter "
                f"only, unless metadata routing is on. {GROUPS_REMEDY} (cross_val_predict with "
                "method='decision_function' takes y for classes and loses them in every way: use "
                "its default method with group_column.)"
            )
        warnings.warn(
            f"No query ids: all {len(relevance)} rows are ranked as ONE query. {GROUPS_REMEDY}",
            MissingGroupsWarning,
            stacklevel=3,
        )
        return X, relevance, Queries.single(len(relevance)), False

    def _read_queries(
        self, X: Any, groups: ArrayLike | None, required: bool | None = None
    ) -> tuple[Any, Queries]:
        """Checked table and queries, for `predict` and the like."""
        check_is_fitted(self)
        X, queries = self._table_and_queries(X, groups, reset=False)
        if queries is None:
            if self.grouped_ if required is None else required:
                raise ValueError(
                    "This ranker was fitted with query ids and needs them: pass groups=<query id "
                    "of each row>, for one query groups=numpy.zeros(len(X)). cross_val_predict and "
                    "the predict of a search cannot pass them: use group_column='qid' with data "
                    "frames, or search.best_estimator_.predict(X, groups=...)."
                )
            queries = Queries.single(X.shape[0])
        return X, queries

    def _table_and_queries(
        self, X: Any, groups: ArrayLike | None, reset: bool
    ) -> tuple[Any, Queries | None]:
        table = check_table(X)
        validate_data(self, X=table, reset=reset, skip_check_array=True)
        queries = None if groups is None else Queries.from_groups(groups, table.shape[0])
        if self.group_column is not None:
            table, column = split_column(table, self.group_column)
            of_column = Queries.from_groups(column, table.shape[0])
            if queries is not None and not queries.same_partition(of_column):
                raise ValueError(
                    f"groups and the column {self.group_column!r} put the rows in different "
                    "queries."
                )
            queries = of_column
        return table, queries

    # ---------------------------------------------------------------- the regressor's own

    @property
    def classes_(self) -> Any:
        """A ranker has none; cross_val_predict wants them for a method of scores."""
        raise AttributeError(
            "A ranker has no classes_. cross_val_predict(method='decision_function') takes every "
            "estimator for a classifier: use its default method with group_column='qid', or loop "
            "over QueryKFold().split(X, labels)."
        )

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """The regressor's importances per column of X, context columns folded in."""
        check_is_fitted(self)
        return self.model_.fold_importances(self.model_.regressor_.feature_importances_)

    @property
    def coef_(self) -> NDArray[np.float64]:
        """The regressor's coefficients per column of X: average slopes inside a query."""
        check_is_fitted(self)
        return self.model_.fold_coefficients(self.model_.regressor_.coef_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        regressor, context = self.regressor, self.context
        if isinstance(regressor, DocumentModel):
            regressor, context = regressor.regressor, regressor.context
        if regressor is None:
            regressor = default_regressor(1)
        inner = get_tags(regressor).input_tags
        tags.input_tags.allow_nan = inner.allow_nan
        tags.input_tags.sparse = inner.sparse and context in (None, "auto")
        tags.input_tags.categorical = inner.categorical
        try:
            tags.target_tags.positive_only = get_loss(self.loss).positive_only
        except (TypeError, ValueError):
            pass  # a bad loss is reported by fit; tags must not raise
        return tags

    def _say(self, what: str, started: float) -> None:
        if self.verbose:
            print(f"[CalibratedRanker] {what} ({time.perf_counter() - started:.2f} s)")
