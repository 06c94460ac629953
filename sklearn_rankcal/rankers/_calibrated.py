"""CalibratedRanker: labels -> targets -> model -> surrogate predictions -> decoder -> ranking."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from sklearn_rankcal.losses import Loss, get_loss
from sklearn_rankcal.models import (
    DistilledModel,
    DocumentModel,
    StackedModel,
    default_regressor,
)
from sklearn_rankcal.models._context import check_context
from sklearn_rankcal.rankers._choose_model import NAMES, is_large, make_model
from sklearn_rankcal.rankers._fit import fit_model, read_training
from sklearn_rankcal.rankers._query_ranker import QueryRanker
from sklearn_rankcal.rankers._training import TrainingData
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


class CalibratedRanker(QueryRanker):
    """Rank the documents of each query with any regressor, consistently for a chosen loss.

    The ranker computes targets from the labels, fits the regressor to the targets, and decodes its
    predictions into a ranking. With enough data, the rankings become the best possible ones for the
    loss if the regressor can express the expected targets. By default, it minimises the loss of
    NDCG by boosted trees that have learned from a stack of several models.

    Parameters
    ----------
    regressor : estimator, "boosting", "distilled", "stacked" or None, default=None
        - ``"boosting"``: a `HistGradientBoostingRegressor` with settings for ranking data
          (`models.default_regressor`).
        - ``"stacked"``: a `StackedModel` of boosted regressors and a forest
          (`models.default_members`), which ranks better. `fit` takes 8 to 15 times as long, and
          `predict` about 18 times.
        - ``"distilled"``: one boosted regressor that has learned the scores of that stack
          (`models.DistilledModel`), nearly as good and as fast as ``"boosting"`` in `predict`.
        - None: ``"distilled"`` for 5 and more queries, below 100,000 rows, if query ids are known,
          labels are relevance, and there are no validation queries; otherwise ``"boosting"``. From
          100,000 rows and 70 queries on, one query of seven is held out for validation.
        - A regressor with scikit-learn's interface. For ``loss="pd"`` and ``"map"`` it is fitted to
          pairs of documents (`models.PairModel`).
        - A classifier, which learns the labels or weights of two classes (`models.DocumentModel`).
        - A model of `sklearn_rankcal.models`, which is fitted as it is.

        A sparse X is converted to a dense one for the first four, up to 4 GiB.
    loss : str or Loss, default="ndcg"
        The loss to minimise: ``"ndcg"``, ``"ndcg@10"``, ``"dcg@10"``, ``"precision@5"``,
        ``"recall@20"``, ``"wta"``, ``"eru"``, ``"auc"``, ``"spearman"``, ``"err"``,
        ``"map_by_scores"``, ``"map"``, ``"pd_by_scores"``, ``"pd"``, or an object such as
        ``NDCG(k=10, gain="linear")`` (`losses`).
    decoder : str or decoder, default="auto"
        How predictions become a ranking: ``"sort"`` for losses on scores, for which it is exact;
        ``"exact"`` and ``"local_search"`` for losses on pairs, also ``"greedy_dag"`` for ``"pd"``
        and ``"diagonal"`` for ``"map"``; or an object of `decoders`. ``"auto"`` is exact where
        that is cheap.
    context : "auto", None, str or list of str, default="auto"
        Columns added for the regressor that compare a document with its query: ``"zscore"``,
        ``"difference"`` (from the mean), ``"rank"``, or a list of these. ``"auto"`` adds z-scores
        of the numeric columns whose level or spread differs between queries (``model_.context_``).
        On pairs, only the default regressor gets them.
    center : bool, default=True
        Whether to subtract from each target the mean of its query, which changes no ranking of the
        targets. Ignored for classifiers.
    group_column : str, default=None
        Name of the column of a data frame X that contains the query ids, which the regressor does
        not see. Only so can `cross_val_predict` and ``search.predict(frame)`` get the queries.
    validation_queries : float, default=None
        Share of the queries, between 0 and 1, that `fit` holds out to choose the number of
        iterations of a boosted regressor (scikit-learn, LightGBM, XGBoost, CatBoost) by the loss's
        measure. Queries can also be passed to `fit` (``X_val``). The default regressor then has at
        most 1,000 trees.
    n_iter_no_change : int, default=50
        With validation queries, training stops after this many iterations without a new best mean.
    random_state : int, RandomState instance or None, default=None
        Seed of every parameter ``random_state`` of the regressor, and of the draw of validation
        queries. None leaves the parameters as they are.
    n_jobs : int, default=None
        How many queries are decoded at the same time by joblib for losses on pairs, and how many
        members of a stack are fitted. The regressor has an `n_jobs` of its own.
    verbose : int, default=0
        With 1, `fit`, `predict` and the reports print what they do and how long it takes. Larger
        numbers, less 1, are passed to every parameter ``verbose`` of the regressor.

    Attributes
    ----------
    model_ : model
        The fitted model; ``model_.regressor_`` is the fitted regressor of a `DocumentModel`,
        `DistilledModel` or `PairModel`.
    loss_, decoder_
        The loss, with parameters left to the data filled in, and the decoder.
    calibrated_over_ : str
        The distributions of the labels over which the fitted model is calibrated for the loss.
    grouped_ : bool
        Whether `fit` knew the queries.
    n_queries_, n_queries_dropped_ : int
        Numbers of queries in X, and of those left out because the loss is undefined on them (for
        NDCG: they have no document with gain) or because all their weights are 0.
    n_iter_, validation_scores_, validation_queries_
        If there were validation queries: the number of iterations that was chosen, the mean of the
        loss's measure after each iteration, and the ids of the queries on which the loss is
        defined.
    n_features_in_, feature_names_in_
        Number of columns of X, the group column included, and their names, where it has them.

    See Also
    --------
    sklearn_rankcal.metrics.get_ranking_scorer : Scorers for `GridSearchCV`.
    sklearn_rankcal.relevance_labels : Labels that carry their query through scikit-learn.

    Notes
    -----
    The theorems [1]_ [2]_ are about functions of the whole query. The regressor receives a row and
    its context columns; if expected targets depend on the query in other ways, add columns that
    express this. Besides the regressor, `fit` and `predict` take O(n log r) time and O(n) memory
    for n documents in queries of at most r.

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

    # Metadata routing passes these arguments to `fit` without a set_fit_request call.
    __metadata_request__fit = {"X_val": True, "y_val": True, "groups_val": True}
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
    ) -> Self:
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
            Non-negative weight of each row in the regression. For the default regressor and closed
            forms only ratios count. Another one gets them as they are, and the largest must be
            between 1e-12 and 1e12.
        X_val, y_val, groups_val, sample_weight_val
            Validation queries, none of which is in X, in the same form; their weights are those of
            `score`. A pipeline with transformers needs ``Pipeline(...,
            transform_input=["X_val"])``; nothing notices if it is missing.

        Returns
        -------
        self : CalibratedRanker
            The fitted ranker.

        Raises
        ------
        ValueError
            If data are not as described, or if the loss is undefined on all queries.
        TypeError
            If there are validation queries and the regressor cannot stop early, or if the regressor
            is a ranker, such as `LGBMRanker`.
        """
        validation = (X_val, y_val, groups_val, sample_weight_val)
        data, held_out = read_training(self, X, y, groups, sample_weight, validation)
        if self._has_default() and data.weight is not None:
            # Its penalty has a fixed size. Weights of mean 1 let only their ratios count.
            data = data._replace(weight=mean_one(data.weight))
        model = make_model(self, self.loss_, data, stops_early=held_out is not None)
        targets = self.loss_.training_targets(data.labels, data.queries)
        pairwise = isinstance(targets, PairTargets)
        check_unit(targets.largest() if pairwise else float(np.abs(targets).max()))
        # The members of a stack may all have other targets.
        learned = getattr(model, "learns_targets", True)
        self.calibrated_over_ = self.loss_.calibrated_over if learned else _NOT_LEARNED
        fit_model(self, model, targets, data, held_out)
        return self

    # ---------------------------------------------------------------- what the model can take

    def _check_table(self, table: Any) -> Any:
        if not self._needs_dense():
            return table
        default = self._has_default()
        who = "the default regressor" if default else type(self.regressor).__name__
        on_scores = get_loss(self.loss).space == "scores"  # models of pairs take numbers only
        check_no_text(table, who, takes_categories=default and on_scores)
        return dense_table(table)

    def _has_default(self) -> bool:
        """Whether the regressor is one of this package, given by its name or not at all."""
        return self.regressor is None or isinstance(self.regressor, str)

    def _needs_dense(self) -> bool:
        """Whether the model is one of this package that takes only dense tables of numbers."""
        regressor = self.regressor
        if isinstance(regressor, DistilledModel):
            regressor = regressor.teacher
        if isinstance(regressor, DocumentModel):
            regressor = regressor.regressor
        if regressor is None or isinstance(regressor, str) or get_loss(self.loss).space != "scores":
            return getattr(regressor, "feature_map", None) is None
        return False

    def _needs_held_out(self, data: TrainingData) -> bool:
        return self.regressor is None and is_large(self, data)

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
