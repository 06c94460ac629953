"""BoostedRanker: labels -> utilities -> trees grown on a surrogate -> scores -> ranking."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.losses import Loss, get_loss
from sklearn_rankcal.models import BoostedModel
from sklearn_rankcal.models._boosted import LIBRARIES, boosted_regressor
from sklearn_rankcal.models._context import check_context
from sklearn_rankcal.rankers._fitted_regressor import FittedRegressorMixin
from sklearn_rankcal.rankers._models import chosen_context
from sklearn_rankcal.rankers._query_ranker import QueryRanker
from sklearn_rankcal.rankers._training import TrainingData
from sklearn_rankcal.rankers._validation import ValidatingRanker
from sklearn_rankcal.surrogates import Surrogate, get_surrogate
from sklearn_rankcal.utils._names import checks_keywords
from sklearn_rankcal.utils._scales import check_unit
from sklearn_rankcal.utils._sklearn_compat import (
    HasMethods,
    Interval,
    StrOptions,
    _fit_context,
)


class BoostedRanker(FittedRegressorMixin, ValidatingRanker, QueryRanker):
    """Rank the documents of each query by trees of LightGBM or XGBoost that minimise a surrogate.

    The ranker computes the utilities of the documents from the labels, grows trees on the gradients
    and curvatures of the surrogate, and sorts documents by the scores of the trees. If the
    surrogate is order preserving, the scores that minimise its expected value sort documents by
    their expected utilities, which is the best ranking for the loss. A `CalibratedRanker` with a
    boosted regressor does the same for the squared error.

    Parameters
    ----------
    surrogate : str or Surrogate, default="softmax"
        What is minimised: a key of `surrogates.SURROGATES` or an object, such as
        ``PointwiseLogistic(eta=2.0)``. :ref:`bench-boosted` compares them.
    loss : str or Loss, default="ndcg"
        The loss, whose utilities the surrogate is a function of, and whose measure chooses the
        number of trees on validation queries. It must be a loss on scores, as ``"ndcg@10"``,
        ``"dcg"``, ``"map_by_scores"``, ``"err"`` or ``"pd_by_scores"``.
    regressor : LGBMRegressor, XGBRegressor, "lightgbm", "xgboost" or None, default=None
        The regressor, not fitted, which is cloned. Its parameters are those of the library, for
        example ``LGBMRegressor(num_leaves=63, monotone_constraints=[1, 0, 0])``, and a search
        reaches them as ``regressor__num_leaves``. The surrogate takes the place of its objective.
        The names of libraries stand for 100 trees (with validation queries at most 1,000) of
        learning rate 0.05 with ``reg_lambda=10``, which have 7 leaves up to 10,000 rows, 15 up to
        100,000 and 31 above. None means LightGBM if it is installed, otherwise XGBoost. Both come
        with ``pip install "sklearn_rankcal[boosting]"``.
    context : "auto", None, str or list of str, default="auto"
        Columns that are added for the regressor and compare a document with its query, as in
        `CalibratedRanker`. Monotone constraints of a column also hold for its context columns.
    group_column : str, default=None
        Name of the column of a data frame X that contains the query ids. The regressor does not
        see it.
    validation_queries : float, default=None
        Share of the queries, between 0 and 1, that `fit` holds out in order to choose the number of
        trees, as in `CalibratedRanker`. Queries can also be passed to `fit` (``X_val``).
    n_iter_no_change : int, default=50
        With validation queries, training stops after this many iterations without a new best mean.
    random_state : int, RandomState instance or None, default=None
        Seed of the ``random_state`` of the regressor, and of the draw of validation queries. None
        leaves the parameter as it is.
    verbose : int, default=0
        With 1, `fit` and `predict` print what they do and how long each step takes.

    Attributes
    ----------
    model_ : BoostedModel
        The fitted model; ``model_.regressor_`` is the fitted regressor.
    surrogate_ : Surrogate
        The surrogate, with parameters left to the data filled in.
    loss_ : Loss
        The loss, with parameters left to the data filled in.
    decoder_ : decoder
        Sorts documents by their scores.
    calibrated_over_ : str
        The distributions of the labels over which the surrogate is calibrated for the loss. If the
        surrogate is not order preserving, it says so, with the theorem.
    grouped_ : bool
        Whether `fit` knew the queries.
    n_queries_ : int
        Number of queries in X, including those that `validation_queries` holds out.
    n_queries_dropped_ : int
        Number of queries of X that are left out because the loss is undefined on them or because
        all their weights are 0.
    n_iter_ : int
        Number of iterations of the fitted regressor. This attribute and the next two exist only if
        there were validation queries.
    validation_scores_ : ndarray of shape (n_iterations,)
        Mean of the loss's measure over the validation queries after each iteration.
    validation_queries_ : ndarray of shape (n_validation_queries,)
        Ids of the validation queries on which the loss is defined.
    n_features_in_ : int
        Number of columns of X, the group column included.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Column names of X, where it has them.

    See Also
    --------
    sklearn_rankcal.boosting.lightgbm_objective : The same surrogates inside `LGBMRanker`.
    CalibratedRanker : Squared error with any regressor.

    Notes
    -----
    Missing values, categories of pandas, monotone constraints and sampling are those of the
    library. A sparse X stays sparse, and then has no context columns; XGBoost reads the entries
    that it does not store as missing values.

    Gradients and curvatures are multiplied by a number for which the mean curvature is 1 at the
    start, so that ``reg_lambda`` and ``min_child_weight`` count documents for every surrogate and
    every scale of the labels and weights. Where the curvature of a surrogate is 0 or negative, it
    has a floor. `boosting.Derivatives` describes this.

    Gradients take O(r) or O(r log r) time for a query of r documents with pointwise surrogates,
    softmax, cosine, pairwise squared and pairwise exponential, and O(r^2) with the others. Those
    use as many threads as a `joblib.parallel_config` says, by default 1.

    Scores of softmax and of other surrogates with exponentials have no bound if a document's
    utility is 0 in every query; the penalty ``reg_lambda`` and the number of trees keep them small.

    References
    ----------
    .. [1] C. Calauzènes, N. Usunier and P. Gallinari (2013). Calibration and regret bounds for
       order-preserving surrogate losses in learning to rank. Machine Learning. Theorem 3.2.

    Examples
    --------
    >>> from sklearn_rankcal import BoostedRanker
    >>> from sklearn_rankcal.datasets import make_ranking
    >>> data = make_ranking(n_queries=60, random_state=0)
    >>> ranker = BoostedRanker("pairwise_logistic", loss="ndcg@10")
    >>> ranker.fit(data.X, data.y, groups=data.groups)  # doctest: +SKIP
    BoostedRanker(loss='ndcg@10', surrogate='pairwise_logistic')
    >>> ranks = ranker.predict(data.X, groups=data.groups)  # doctest: +SKIP
    """

    _weighs_queries = True
    _learns_targets = False
    _parameter_constraints: dict[str, list[Any]] = {
        "surrogate": [str, Surrogate],
        "loss": [str, Loss],
        "regressor": [None, StrOptions(set(LIBRARIES)), HasMethods(["fit", "predict"])],
        "context": [None, str, list, tuple],
        "group_column": [None, str],
        "validation_queries": [None, Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        surrogate: str | Surrogate = "softmax",
        *,
        loss: str | Loss = "ndcg",
        regressor: Any = None,
        context: Any = "auto",
        group_column: str | None = None,
        validation_queries: float | None = None,
        n_iter_no_change: int = 50,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.surrogate = surrogate
        self.loss = loss
        self.regressor = regressor
        self.context = context
        self.group_column = group_column
        self.validation_queries = validation_queries
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state
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
    ) -> BoostedRanker:
        """Grow the trees.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features)
            One row per query-document pair.
        y : array-like of shape (n_documents,)
            Relevance, larger is better; or the structured array of `relevance_labels`, or, for
            surrogates of preferences, that of `preference_labels`.
        groups : array-like of shape (n_documents,), default=None
            Query id of each row: any type, in any order, not necessarily contiguous. None with
            plain labels and no `group_column`: all rows are one query, with a warning.
        sample_weight : array-like of shape (n_documents,), default=None
            Non-negative weight of each row. The weight of a query is the mean of the weights of its
            rows, and only ratios of weights count. A row of weight 0 is left out.
        X_val : {array-like, sparse matrix, data frame} of shape (n_validation, n_features), \
                default=None
            Documents of validation queries, in the form of X, which determine the number of trees.
            No validation query may be in X.
        y_val : array-like of shape (n_validation,), default=None
            Labels of `X_val`.
        groups_val : array-like of shape (n_validation,), default=None
            Query id of each row of `X_val`. It is not needed if `y_val` or `group_column` gives the
            queries.
        sample_weight_val : array-like of shape (n_validation,), default=None
            Weight of each row of `X_val`, as in `score`.

        Returns
        -------
        self : BoostedRanker
            The fitted ranker.

        Raises
        ------
        ValueError
            If lengths differ, if y, groups or weights contain NaN, if the loss or the surrogate
            does not take the labels, if the loss learns pairs of documents, or if the regressor has
            an objective of its own. Also if validation queries leave no query to train on.
        TypeError
            If the regressor is not one of LightGBM or XGBoost.
        ImportError
            If `regressor` is None or a name, and the library is not installed.
        """
        return self._fit(X, y, groups, sample_weight, (X_val, y_val, groups_val, sample_weight_val))

    def _make_model(self, data: TrainingData, stops_early: bool) -> BoostedModel:
        check_context(None if self.context == "auto" else self.context)
        regressor = self.regressor
        if regressor is None or isinstance(regressor, str):
            regressor = boosted_regressor(regressor, data.X.shape[0], stops_early=stops_early)
        context = chosen_context(self.context, self.grouped_, data.X)
        surrogate = clone(get_surrogate(self.surrogate))
        return BoostedModel(surrogate, clone(regressor), context=context)

    def _make_targets(self, model: BoostedModel, data: TrainingData) -> Any:
        """Return the utilities, and set `surrogate_` and `calibrated_over_`."""
        surrogate = get_surrogate(self.surrogate)
        targets = surrogate.targets(self.loss_, data.labels, data.queries)
        if not isinstance(targets, Preferences):
            check_unit(float(np.abs(targets).max()))
        self.surrogate_ = surrogate.resolve(targets)
        self.calibrated_over_ = (
            self.loss_.calibrated_over
            if self.surrogate_.order_preserving
            else f"no distributions in general, because the surrogate is {self.surrogate_.theorem}"
        )
        return targets

    def _needs_queries(self) -> bool:
        check_is_fitted(self)
        context = self.model_.context
        return self.grouped_ and (context == "auto" or bool(check_context(context)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = self.context in (None, "auto")
        try:
            tags.target_tags.positive_only = get_loss(self.loss).measure.non_negative
        except (TypeError, ValueError):
            pass  # a bad loss is reported by fit; tags must not raise
        return tags
