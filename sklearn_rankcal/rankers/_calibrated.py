"""CalibratedRanker: labels -> targets -> model -> surrogate predictions -> decoder -> ranking."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from sklearn_rankcal.losses import Loss, get_loss
from sklearn_rankcal.models import (
    DocumentModel,
    StackedModel,
    default_regressor,
)
from sklearn_rankcal.models._context import check_context
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.rankers._arrays import PlainArraysMixin
from sklearn_rankcal.rankers._fitted_regressor import FittedRegressorMixin
from sklearn_rankcal.rankers._models import NAMES, make_model
from sklearn_rankcal.rankers._query_ranker import QueryRanker
from sklearn_rankcal.rankers._training import TrainingData
from sklearn_rankcal.rankers._validation import ValidatingRanker
from sklearn_rankcal.targets import PairTargets
from sklearn_rankcal.utils._features import check_no_text, dense_table
from sklearn_rankcal.utils._names import checks_keywords
from sklearn_rankcal.utils._scales import check_unit, mean_one
from sklearn_rankcal.utils._sklearn_compat import (
    HasMethods,
    Interval,
    StrOptions,
    _fit_context,
)

_NOT_LEARNED = (
    "no distributions: neither the model nor a member of it learns the targets of the loss"
)


class CalibratedRanker(PlainArraysMixin, FittedRegressorMixin, ValidatingRanker, QueryRanker):
    """Rank the documents of each query with any regressor, consistently for a chosen loss.

    The ranker computes targets from the labels, fits the regressor to the targets, and decodes its
    predictions into a ranking. The targets are calibrated for the loss: with enough data, the
    rankings become the best possible ones for the loss if the regressor can express the expected
    targets. This property is called surrogate consistency or calibration (definition 1 of [1]_). It
    is not the calibration of probabilities. The regressor sees a row and its query context, not the
    whole query; see the notes. `predict` returns positions, and `decision_function` returns scores.

    Parameters
    ----------
    regressor : estimator, "boosting", "stacked" or None, default=None
        It can be one of the following.

        - None: ``"stacked"`` from 5 training queries of several documents on, below 100,000 rows,
          if the query ids are known, labels are a relevance of every row and there are no
          validation queries. Otherwise ``"boosting"``.
        - ``"boosting"``: a `HistGradientBoostingRegressor` with settings for ranking data
          (`models.default_regressor`).
        - ``"stacked"``: a `StackedModel` of three boosted regressors and a forest that learn
          different targets, with weights learned on held-out queries (`models.default_members`).
          It ranks better, and its fit takes about 15 times as long as that of ``"boosting"``, or 8
          times above 20,000 rows, where it has 3 folds instead of 5. Each fold needs a query.

          These three need a dense table, so that a sparse X is converted, up to 4 GiB. For
          ``loss="pd"`` and ``"map"`` a `ResidualPairModel` or `ResidualProductModel` contains them.
        - A regressor of scikit-learn or with its interface. `Ridge` and LightGBM take a sparse X
          as it is. For ``loss="pd"`` and ``"map"`` it is fitted to pairs of documents
          (`PairModel`).
        - A classifier with `predict_proba`, or a linear one that is fitted by a squared loss, such
          as `LinearSVC`. Targets that depend on the label of the document alone (``"dcg"``,
          ``"precision"``, ``"wta"``, ``"eru"``, ``"err"``) are its classes, and the score is the
          expected target. Targets of other losses on scores become weights of two classes, which
          the classifier must take as ``sample_weight``. The rankings are calibrated over the same
          distributions as with a regressor; `models.DocumentModel` describes both ways.
        - A model of `sklearn_rankcal.models`, which is fitted as it is.
    loss : str or Loss, default="ndcg"
        The loss to minimise: ``"ndcg"``, ``"ndcg@10"``, ``"dcg@10"``, ``"precision@5"``,
        ``"recall@20"``, ``"wta"``, ``"eru"``, ``"auc"``, ``"spearman"``, ``"err"``,
        ``"map_by_scores"``, ``"map"``, ``"pd_by_scores"``, ``"pd"``, or an object such as
        ``NDCG(k=10, gain="linear")`` (`losses`).
    decoder : str or decoder, default="auto"
        How predictions become a ranking. ``"auto"`` is the default of the loss. For losses on
        scores it is ``"sort"``, which is exact. For ``"pd"`` and ``"map"`` it is exact as long as
        that is cheap; alternatives are ``"exact"`` and ``"local_search"``, for ``"pd"`` also
        ``"greedy_dag"`` and for ``"map"`` also ``"diagonal"``, or an object of `decoders`.
    context : "auto", None, str or list of str, default="auto"
        Columns that are added for the regressor and compare a document with its query:
        ``"zscore"``, which is (x - mean of the query) / standard deviation of the query;
        ``"difference"``, which is x - mean of the query; ``"rank"``, the rank in the query; or a
        list of these. ``"auto"`` adds the z-scores of those numeric columns of a dense X whose
        level or spread differs between the queries of `fit`, and none if `fit` does not know the
        queries. `models.DocumentModel` describes how this is decided, and ``model_.context_`` lists
        the columns. With None the regressor sees the columns of X only. For losses on pairs, only
        the default regressor gets context columns.
    center : bool, default=True
        Whether to subtract from each target the mean of its query. This changes no ranking of the
        targets. It is ignored for classifiers.
    group_column : str, default=None
        Name of the column of a data frame X that contains the query ids. The regressor does not
        see it. This is the only way to pass queries to `cross_val_predict` and
        ``search.predict(frame)``. No transformer before the ranker may change or drop the column.
    validation_queries : float, default=None
        Share of the queries, between 0 and 1, that `fit` holds out in order to choose the number of
        iterations of a boosted regressor. Training stops early when the rankings of these queries
        no longer improve, in the mean of the loss's measure. The regressor that is kept has the
        number of iterations with the best mean, and is not fitted to the queries held out. Queries
        can also be passed to `fit` (``X_val``). With validation queries the default regressor has
        at most 1,000 trees; another one has at most those that its own parameter says. Boosting of
        scikit-learn, LightGBM, XGBoost and CatBoost can stop early; other regressors, and
        regressors inside a pipeline, raise an error.
    n_iter_no_change : int, default=50
        With validation queries, training stops after this many iterations without a new best mean.
    random_state : int, RandomState instance or None, default=None
        Seed of every parameter ``random_state`` of the regressor, and of the draw of validation
        queries. None leaves the parameters as they are. The default regressor is random only for
        more than 200,000 rows, when it estimates its bins on a sample.
    n_jobs : int, default=None
        How many queries are decoded at the same time by joblib if the loss is on pairs. None means
        1, or the number of a `joblib.parallel_config`. A stack fits as many members at the same
        time; see `models.StackedModel` for None. The regressor has an `n_jobs` of its own.
    verbose : int, default=0
        With 1, `fit`, `predict` and the reports print what they do and how long each step takes.
        With validation queries, `fit` prints the progress and the longest time that can remain.
        If the loss is on pairs, a line is printed for each 2,000,000 predictions that are decoded.
        With 2 or more, every parameter ``verbose`` of the regressor that is 0 is also set to this
        number less 1, so that boosting prints its iterations, and a stack each fit of a member.
        With 3 or more, the regressors of the members print, too.

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
        The distributions of the labels over which the fitted model is calibrated for the loss. This
        is ``loss_.calibrated_over``, unless no member of a stack learns the targets of the loss.
    grouped_ : bool
        Whether `fit` knew the queries.
    n_queries_ : int
        Number of queries in X, including those that `validation_queries` holds out.
    n_queries_dropped_ : int
        Number of queries of X that are left out because the loss is undefined on them (for NDCG:
        they have no document with gain) or because all their weights are 0.
    n_iter_ : int
        Number of iterations of the fitted regressor. This attribute and the next two exist only if
        there were validation queries.
    validation_scores_ : ndarray of shape (n_iterations,)
        Mean of the loss's measure over the validation queries after each iteration, including those
        after the best one. For losses on scores, the largest is the `score` of the validation
        queries; for losses on pairs, the rankings are those by the scores of the documents, before
        the model of pairs is fitted. `plotting.plot_validation_scores` plots them.
    validation_queries_ : ndarray of shape (n_validation_queries,)
        Ids of the validation queries on which the loss is defined.
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
    Theorem 3 of [1]_ is about functions of the whole query. The regressor, however, receives a row
    and its context columns, which depend on the mean, standard deviation and rank of each column in
    the query. Documents that agree in these get the same score, whatever the other documents of
    their queries are. For example, take two queries with the single column {10, 11, 0, 4, 5} and
    {10, 11, 1, 2, 6}. The context columns of 10 and 11 agree in both. If the best order of 10 and
    11 differs between the queries, one of them is ranked wrong. If expected targets depend on the
    query in other ways, add columns that express this.

    In addition to the regressor, `fit` and `predict` take O(n log r) time and O(n) memory for n
    documents in queries of at most r documents. With context columns they also make a copy of X
    with up to twice the columns. `predict` makes this copy for one block of rows at a time.

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
        "regressor": [None, StrOptions(set(NAMES)), HasMethods(["fit", "predict"])],
        "loss": [str, Loss],
        "decoder": [str, HasMethods(["decode"])],
        "context": [None, str, list, tuple],
        "center": ["boolean"],
        "group_column": [None, str],
        "validation_queries": [None, Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
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
        validation_queries: float | None = None,
        n_iter_no_change: int = 50,
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
        self.validation_queries = validation_queries
        self.n_iter_no_change = n_iter_no_change
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
        *,
        X_val: Any = None,
        y_val: Any = None,
        groups_val: ArrayLike | None = None,
        sample_weight_val: ArrayLike | None = None,
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
        X_val : {array-like, sparse matrix, data frame} of shape (n_validation, n_features), \
                default=None
            Documents of validation queries, in the form of X. They determine the number of
            iterations of a boosted regressor, as the parameter `validation_queries` describes for
            queries of X. No validation query may be in X. A pipeline with transformers needs
            ``Pipeline(..., transform_input=["X_val"])``; nothing notices if it is missing.
        y_val : array-like of shape (n_validation,), default=None
            Labels of `X_val`.
        groups_val : array-like of shape (n_validation,), default=None
            Query id of each row of `X_val`. It is not needed if `y_val` or `group_column` gives the
            queries.
        sample_weight_val : array-like of shape (n_validation,), default=None
            Weight of each row of `X_val`. As in `score`, the weight of a query is the mean of the
            weights of its rows.

        Returns
        -------
        self : CalibratedRanker
            The fitted ranker.

        Raises
        ------
        ValueError
            If lengths differ, if y, groups or weights contain NaN, if labels are outside the range
            of the loss, if structured labels lack rows of a query, or if the loss is undefined on
            all queries. Also if validation queries leave no query to train on.
        TypeError
            If there are validation queries and the regressor cannot stop early, or if the regressor
            is a ranker, such as `LGBMRanker`.
        """
        return self._fit(X, y, groups, sample_weight, (X_val, y_val, groups_val, sample_weight_val))

    def _make_model(self, data: TrainingData, stops_early: bool) -> Any:
        return make_model(self, self.loss_, data, stops_early)

    def _make_targets(self, model: Any, data: TrainingData) -> Any:
        """Return the targets of the model, and set `calibrated_over_`."""
        targets = self.loss_.training_targets(data.labels, data.queries)
        # The members of a stack may all have other targets.
        learned = getattr(model, "learns_targets", True)
        self.calibrated_over_ = self.loss_.calibrated_over if learned else _NOT_LEARNED
        if isinstance(targets, PairTargets):
            check_unit(targets.largest())
        else:
            check_unit(float(np.abs(targets).max()))
        return targets

    def _training_weight(self, data: TrainingData) -> NDArray[np.float64] | None:
        if data.weight is None or not (self.regressor is None or isinstance(self.regressor, str)):
            return data.weight
        # The penalty of the default regressor has a fixed size. Weights of mean 1 let only the
        # ratios of weights count against it.
        return mean_one(data.weight)

    def _table_and_queries(
        self, X: Any, groups: ArrayLike | None, reset: bool
    ) -> tuple[Any, Queries | None]:
        table, queries = super()._table_and_queries(X, groups, reset)
        if self._needs_dense():
            given = self.regressor
            default = given is None or isinstance(given, str)
            who = "the default regressor" if default else type(given).__name__
            on_scores = get_loss(self.loss).space == "scores"  # models of pairs take numbers only
            check_no_text(table, who, takes_categories=default and on_scores)
            table = dense_table(table)
        return table, queries

    def _needs_dense(self) -> bool:
        """Whether the model is one of this package that takes only dense tables of numbers."""
        regressor = self.regressor
        if isinstance(regressor, DocumentModel):
            regressor = regressor.regressor
        if regressor is None or isinstance(regressor, str) or get_loss(self.loss).space != "scores":
            return getattr(regressor, "feature_map", None) is None
        return False

    def _needs_queries(self) -> bool:
        check_is_fitted(self)
        if isinstance(self.model_, StackedModel):
            return self.grouped_  # its scores are centred in each query
        context = getattr(self.model_, "context", None)
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
        if isinstance(regressor, StackedModel):
            return tags
        if regressor is None or isinstance(regressor, str):
            regressor = default_regressor(1)
        inner = get_tags(regressor).input_tags
        tags.input_tags.allow_nan = inner.allow_nan
        tags.input_tags.sparse = self._needs_dense() or (inner.sparse and context in (None, "auto"))
        tags.input_tags.categorical = inner.categorical
        return tags
