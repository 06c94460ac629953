"""CalibratedRanker: labels -> targets -> model -> surrogate predictions -> decoder -> ranking."""

from __future__ import annotations

import time
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sklearn_rankcal.decoders import get_decoder
from sklearn_rankcal.losses import Loss, NormalizedLoss, get_loss
from sklearn_rankcal.models import (
    DocumentModel,
    PairModel,
    default_model,
    default_regressor,
    is_model,
)
from sklearn_rankcal.models._context import check_context
from sklearn_rankcal.queries import Queries, check_weight, mean_over_queries
from sklearn_rankcal.rankers._arrays import PlainArraysMixin
from sklearn_rankcal.rankers._base import QueryOrder, RankerMixin
from sklearn_rankcal.rankers._fitted_regressor import FittedRegressorMixin
from sklearn_rankcal.rankers._reports import ReportingRanker
from sklearn_rankcal.rankers._training import (
    TrainingData,
    warn_if_normalizer_varies,
    warn_if_rows_are_queries,
)
from sklearn_rankcal.targets import PairTargets
from sklearn_rankcal.utils._features import check_no_text, dense_table, numeric_columns
from sklearn_rankcal.utils._names import checks_keywords
from sklearn_rankcal.utils._nested import set_random_states, set_verbose
from sklearn_rankcal.utils._pickles import VersionedPickle
from sklearn_rankcal.utils._row_hashes import hash_rows
from sklearn_rankcal.utils._scales import check_unit, mean_one
from sklearn_rankcal.utils._sklearn_compat import HasMethods, _fit_context, inside


def _predicts_scores(ranker: CalibratedRanker) -> bool:
    return not get_loss(ranker.loss).space.is_pairwise


class CalibratedRanker(
    PlainArraysMixin,
    FittedRegressorMixin,
    ReportingRanker,
    RankerMixin,
    VersionedPickle,
    BaseEstimator,
):
    """Rank the documents of each query with any regressor, consistently for a chosen loss.

    "Calibrated" means surrogate consistency (Ramaswamy et al., 2013, definition 1), not probability
    calibration. The targets of the regressor are chosen so that, with enough data, the decoded
    rankings become the best possible for the loss, if the regressor can express the expected
    targets. The regressor sees a row and its query context, not the whole query; see the notes.
    `predict` returns positions, `decision_function` returns scores.

    Parameters
    ----------
    regressor : estimator, default=None
        Any scikit-learn regressor; or a classifier, when labels are graded: it predicts expected
        targets from `predict_proba`, which is not calibrated for losses with a normaliser
        (``"ndcg"``, ``"recall"``, ``"auc"``, ``"map_by_scores"``; `fit` warns); or a model of
        `sklearn_rankcal.models`, taken as it is. None is `HistGradientBoostingRegressor` set for
        ranking data (`models.default_regressor`), for which a sparse X is made dense up to 4 GiB
        (`Ridge` or LightGBM take X sparse). For ``loss="pd"`` and ``"map"`` a regressor is wrapped
        in a `PairModel`, and None is `ResidualPairModel` or `ResidualProductModel`.
    loss : str or Loss, default="ndcg"
        The loss to minimise: ``"ndcg"``, ``"ndcg@10"``, ``"dcg@10"``, ``"precision@5"``,
        ``"recall@20"``, ``"wta"``, ``"eru"``, ``"auc"``, ``"spearman"``, ``"err"``,
        ``"map_by_scores"``, ``"map"``, ``"pd_by_scores"``, ``"pd"``, or an object such as
        ``NDCG(k=10, gain="linear")`` (`losses`).
    decoder : str or decoder, default="auto"
        How surrogate predictions become a ranking. ``"auto"`` is the loss's default: for scores
        ``"sort"``, which is exact; for ``"pd"`` and ``"map"`` exact while that is cheap. Others for
        these: ``"exact"``, ``"local_search"``, for ``"pd"`` ``"greedy_dag"``, for ``"map"``
        ``"diagonal"``, or an object of `decoders`.
    context : "auto", None, str or list of str, default="auto"
        Query-context columns added for the regressor: ``"zscore"``, (x - query mean) / query
        standard deviation; ``"difference"``; ``"rank"``; or a list. ``"auto"`` adds the z-scores of
        those numeric columns of a dense X whose level or spread differs between the queries of
        `fit` (`models.DocumentModel` says how this is decided, and ``model_.context_`` which they
        are), and none if `fit` does not know the queries. None shows the regressor the columns of
        X and nothing else. Of losses on pairs, only the default regressor has context columns.
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
    n_jobs : int, default=None
        Queries decoded at the same time, through joblib, where the loss is on pairs. None is 1
        unless in a `joblib.parallel_config`. The regressor has an `n_jobs` of its own.
    verbose : int, default=0
        1: print what `fit`, `predict` and the reports do, and how long each step takes; where the
        loss is on pairs, a line for each 2,000,000 predictions that are decoded. 2 and more: also
        set every parameter ``verbose`` of the regressor that is 0 to this number less 1, so that
        boosting prints its iterations.

    Attributes
    ----------
    model_ : model
        The fitted model; ``model_.regressor_`` is the fitted regressor of a `DocumentModel` or
        `PairModel`.
    loss_ : Loss
        The loss, with parameters left to the data filled in.
    decoder_ : decoder
        The decoder.
    calibrated_over_ : str
        The distributions of the labels over which the fitted model is calibrated for the loss. With
        a regressor this is ``loss_.calibrated_over``, with a classifier
        ``loss_.calibrated_over_with_classifier``.
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
    Theorem 3 of [1]_ is about functions of the whole query. The regressor receives a row and its
    context columns, which depend on the mean, standard deviation and rank of each column in the
    query. Documents that agree in these get the same score, whatever the other documents of their
    queries are. For example, take two queries with the single column {10, 11, 0, 4, 5} and
    {10, 11, 1, 2, 6}. The context columns of 10 and 11 agree in both. If the best order of 10 and
    11 differs between the queries, one of them is ranked wrong. If expected targets depend on the
    query in other ways, add columns that express this.

    Beside the regressor, fit and predict take O(n log r) time for n documents in queries of at most
    r, and O(n) memory. With context columns they also make a copy of X with up to twice the
    columns; `predict` makes it for some ten thousands of rows at a time.

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
        "n_jobs": [None, Integral],
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
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.regressor = regressor
        self.loss = loss
        self.decoder = decoder
        self.context = context
        self.center = center
        self.group_column = group_column
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # ---------------------------------------------------------------- fit

    @_fit_context(prefer_skip_nested_validation=True)
    @checks_keywords
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
            Relevance, larger is better; or the structured array of `relevance_labels`, or, for
            ``"pd"`` and ``"pd_by_scores"``, that of `preference_labels`.
        groups : array-like of shape (n_documents,), default=None
            Query id of each row: any type, in any order, not necessarily contiguous. None with
            plain labels and no `group_column`: all rows are one query, with a warning.
        sample_weight : array-like of shape (n_documents,), default=None
            Non-negative weight of each row in the regression. A row of weight 0 is left out. For
            the default regressor and for closed forms only ratios of weights count. A `regressor`
            that you pass gets the weights as they are, so that its penalty can depend on their
            scale; the largest must be between 1e-12 and 1e12.

        Returns
        -------
        self : CalibratedRanker
            The fitted ranker.

        Raises
        ------
        ValueError
            Lengths differ, y, groups or weights contain NaN, labels are outside the range of the
            loss, a splitter cuts a query, or the loss is undefined on all queries. Or the query
            ids did not reach the ranker inside a cross-validation of scikit-learn.
        """
        started = time.perf_counter()
        loss = get_loss(self.loss)
        data = self._read_training_data(X, y, groups, sample_weight)
        self.decoder_ = get_decoder(self.decoder, loss.space)
        self.n_queries_ = data.queries.n_queries
        warn_if_rows_are_queries(data.queries, stacklevel=5)
        data = data.without_zero_weights()
        self.loss_ = loss.resolve(data.labels)
        data = data.without_undefined_queries(self.loss_)
        self.n_queries_dropped_ = self.n_queries_ - data.queries.n_queries
        model = self._make_model(data.X)
        targets = self._make_targets(model, data)
        self._print_progress(
            f"{data.queries.n_rows} documents in {data.queries.n_queries} queries for "
            f"{self.loss_!r}; {self.n_queries_dropped_} queries left out",
            started,
        )
        self.model_ = self._fit_model(model, targets, data)
        return self

    def _read_training_data(
        self, X: Any, y: Any, groups: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> TrainingData:
        X, labels, queries, self.grouped_ = self._read(X, y, groups, reset=True, stacklevel=6)
        return TrainingData(X, labels, queries, check_weight(sample_weight, queries.n_rows))

    def _make_model(self, X: Any) -> Any:
        """The model to be fitted, with its seeds set."""
        space = self.loss_.space
        if is_model(self.regressor):
            if self.regressor.space != space:
                raise ValueError(
                    f"{type(self.regressor).__name__} predicts {self.regressor.space}, but "
                    f"loss={self.loss!r} needs {space}."
                )
            return set_random_states(clone(self.regressor), self.random_state)
        check_context(None if self.context == "auto" else self.context)
        if space.is_pairwise and self.regressor is not None:
            pairs = PairModel(clone(self.regressor), symmetric=space.symmetric)
            return set_random_states(pairs, self.random_state)
        context = self.context
        if isinstance(context, str) and context == "auto":
            context = "auto" if self.grouped_ and numeric_columns(X) else None
        regressor = (
            default_regressor(X.shape[0]) if self.regressor is None else clone(self.regressor)
        )
        documents = DocumentModel(regressor, center=self.center, context=context)
        return set_random_states(default_model(space, documents), self.random_state)

    def _make_targets(self, model: Any, data: TrainingData) -> Any:
        """The targets of the model, and over which distributions they are calibrated."""
        # Only a model of documents can have a classifier; its regressor may be None.
        inner = None if self.loss_.space.is_pairwise else model.regressor
        with_classifier = inner is not None and is_classifier(inner)
        if with_classifier:
            targets = self.loss_.encode_documents(data.labels)
            self.calibrated_over_ = self.loss_.calibrated_over_with_classifier
        else:
            targets = self.loss_.training_targets(data.labels, data.queries)
            self.calibrated_over_ = self.loss_.calibrated_over
        if isinstance(targets, PairTargets):
            check_unit(targets.largest())
        else:
            check_unit(float(np.abs(targets).max()))
        if with_classifier and isinstance(self.loss_, NormalizedLoss):
            normalizer = self.loss_.measure.normalizer(targets, data.queries)
            warn_if_normalizer_varies(inner, self.loss_, normalizer, stacklevel=6)
        return targets

    def _fit_model(self, model: Any, targets: Any, data: TrainingData) -> Any:
        """Fit the model and print how long that takes."""
        started = time.perf_counter()
        weight = data.weight
        if weight is not None and self.regressor is None:
            # The penalty of the default regressor has a fixed size. Weights of mean 1 let only
            # the ratios of weights count against it.
            weight = mean_one(weight)
        set_verbose(model, self.verbose - 1)
        shown = getattr(model, "regressor", None)
        shown = model if shown is None else shown
        n_rows, n_columns = data.X.shape
        self._print_progress(
            f"fitting {type(shown).__name__} to {n_rows} rows, {n_columns} columns ..."
        )
        model = model.fit(data.X, targets, data.queries, weight)
        fitted = getattr(model, "regressor_", model)
        self._print_progress(f"fitted {type(fitted).__name__}", started)
        return model

    def _table_and_queries(
        self, X: Any, groups: ArrayLike | None, reset: bool
    ) -> tuple[Any, Queries | None]:
        table, queries = super()._table_and_queries(X, groups, reset)
        if reset and self.group_column is not None:
            self._group_place: int = list(X.columns).index(self.group_column)
        if self._needs_dense():
            given = self.regressor
            who = "the default regressor" if given is None else type(given).__name__
            check_no_text(table, who)
            table = dense_table(table)
        return table, queries

    def _needs_dense(self) -> bool:
        """Whether the model is one of this package that takes only dense tables of numbers."""
        regressor = self.regressor
        if isinstance(regressor, DocumentModel):
            regressor = regressor.regressor
        if regressor is None or get_loss(self.loss).space != "scores":
            return getattr(regressor, "feature_map", None) is None
        return False

    # ---------------------------------------------------------------- predict

    @checks_keywords
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
    @checks_keywords
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

    @checks_keywords
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
            As in `fit`.
        groups : array-like of shape (n_documents,), default=None
            Query id of each row. Needed if neither `y` nor `group_column` gives it.
        sample_weight : array-like of shape (n_documents,), default=None
            Weight of each row. The weight of a query is the mean of the weights of its rows.

        Returns
        -------
        score : float
            P@q, DCG, NDCG, recall, AUC, ERR, AP, ERU, Spearman's rho, or the share of preference
            weight that is not contradicted, of the rankings that `predict` returns. Queries where
            it is undefined are left out; NaN when that is all.
        """
        check_is_fitted(self)
        X, labels, queries, _ = self._read(X, y, groups, reset=False)
        weight = check_weight(sample_weight, queries.n_rows)
        values = self.loss_.metric(labels, self._decode(X, queries), queries)
        return mean_over_queries(values, queries, weight, type(self.loss_).__name__)

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

    def _needs_queries(self) -> bool:
        check_is_fitted(self)
        context = self.model_.context
        return self.grouped_ and (context == "auto" or bool(check_context(context)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            loss = get_loss(self.loss)
        except (TypeError, ValueError):
            return tags  # a bad loss is reported by fit; tags must not raise
        tags.target_tags.positive_only = loss.measure.non_negative
        if loss.space.is_pairwise:  # models of pairs take finite numbers
            tags.input_tags.sparse = self._needs_dense()  # a sparse table is made dense
            return tags
        regressor, context = self.regressor, self.context
        if isinstance(regressor, DocumentModel):
            regressor, context = regressor.regressor, regressor.context
        if regressor is None:
            regressor = default_regressor(1)
        inner = get_tags(regressor).input_tags
        tags.input_tags.allow_nan = inner.allow_nan
        tags.input_tags.sparse = self._needs_dense() or (inner.sparse and context in (None, "auto"))
        tags.input_tags.categorical = inner.categorical
        return tags
