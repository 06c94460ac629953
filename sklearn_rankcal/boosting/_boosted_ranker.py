"""BoostedRanker: labels -> utilities -> trees grown on a surrogate -> scores -> ranking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import clone

from sklearn_rankcal.boosting._derivatives import Derivatives
from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.losses import Loss
from sklearn_rankcal.models import Training
from sklearn_rankcal.models._context import ContextTableModel, check_context
from sklearn_rankcal.models._held_out import check_stopping
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.rankers._calibrated import chosen_context
from sklearn_rankcal.rankers._fit import ValidationArguments, fit
from sklearn_rankcal.rankers._query_ranker import FOREIGN, QueryRanker
from sklearn_rankcal.surrogates import Softmax, Surrogate, get_surrogate
from sklearn_rankcal.utils._messages import checks_keywords
from sklearn_rankcal.utils._numbers import Floats, check_unit
from sklearn_rankcal.utils._sklearn_compat import HasMethods, Interval, StrOptions, _fit_context

#: The libraries in order of preference, with the class of the regressor of each.
LIBRARIES = {"lightgbm": "LGBMRegressor", "xgboost": "XGBRegressor"}

_NO_COLUMNS = "(train_data->num_features()) > (0)"  # in an error of LightGBM


def boosted_regressor(
    library: str | None, n_rows: int, *, stops_early: bool = False
) -> Any:  # the type belongs to an optional library
    """Return the default regressor of `BoostedModel`; None means LightGBM if it is installed."""
    if library is None:
        library = next((name for name in LIBRARIES if find_spec(name) is not None), None)
    if library is None or find_spec(library) is None:
        needed = library if library is not None else "LightGBM or XGBoost"
        raise ImportError(
            f"Boosting with the gradients of a surrogate needs {needed}, which is not installed: "
            'pip install "sklearn_rankcal[boosting]"'
        )
    common: dict[str, Any] = {
        "n_estimators": 1000 if stops_early else 100,
        "learning_rate": 0.05,
        "reg_lambda": 10.0,
    }
    leaves = 7 if n_rows <= 10_000 else 15 if n_rows <= 100_000 else 31
    fewest = min(20, max(1, n_rows // 50))
    if library == "lightgbm":
        own: dict[str, Any] = {"num_leaves": leaves, "min_child_samples": fewest, "verbose": -1}
    else:
        own = {"max_leaves": leaves, "max_depth": 0, "grow_policy": "lossguide"}
        own |= {"min_child_weight": fewest, "enable_categorical": True}
    return getattr(import_module(library), LIBRARIES[library])(**common, **own)


class BoostedModel(ContextTableModel):
    """Model of scores: trees of LightGBM or XGBoost fitted to the gradients of a surrogate."""

    stops_early = True

    def __init__(
        self,
        surrogate: str | Surrogate = "softmax",
        regressor: Any = None,
        *,
        context: str | Sequence[str] | None = None,
    ) -> None:
        self.surrogate = surrogate
        self.regressor = regressor
        self.context = context

    def fit(self, training: Training) -> Self:
        """Fit the regressor to targets that `Surrogate.targets` returned."""
        surrogate = get_surrogate(self.surrogate)
        X, targets, queries = training.X, training.targets, training.queries
        validation, regressor = training.validation, self.regressor
        if regressor is None or isinstance(regressor, str):
            stops_early = validation is not None
            regressor = boosted_regressor(regressor, X.shape[0], stops_early=stops_early)
        library = check_boosted_regressor(regressor)
        regressor = clone(regressor)
        check_stopping(regressor, validation is not None)
        self._choose_columns(training)
        table, _ = self._table(X, queries, training.page)
        self.surrogate_ = surrogate.resolve(targets)
        per_query = None if training.weight is None else queries.mean(training.weight)
        derivatives = Derivatives(self.surrogate_, targets, queries, per_query)
        self.start_ = derivatives.start
        objective = _HeldDerivatives(derivatives)
        given = regressor.get_params()["objective"]
        if library == "xgboost" and regressor.get_params().get("base_score") is None:
            regressor.set_params(base_score=0.0)
        self.match_parameters(regressor, X)
        regressor.set_params(objective=objective)
        try:
            # The objective holds the targets. The library only needs the number of labels.
            labels = np.zeros(queries.n_rows)
            regressor = self._fit_to_table(
                regressor, table, labels, {}, validation, self._as_scores
            )
        except Exception as error:
            if _NO_COLUMNS not in str(error):
                raise
            # LightGBM drops columns that it cannot split. If no column is left, it only accepts an
            # objective by name, and predicts the same number for all rows.
            regressor = clone(regressor).set_params(objective=given)
            regressor.fit(table, np.zeros(queries.n_rows))
            if validation is not None:
                validation.record(np.zeros(validation.held_out.queries.n_rows))
        # A fitted regressor keeps its objective: remove the data from it.
        objective.derivatives = None
        self.regressor_ = regressor.set_params(objective=given)
        return self

    def predict(self, X: Any, queries: Queries) -> Floats:
        """Predict the score of each document, like `DocumentModel.predict`."""
        return self._predict_blocks(
            X, queries, lambda table: self._as_scores(self.regressor_.predict(table))
        )

    def _as_scores(self, predicted: Any) -> Floats:
        scores: Floats = np.asarray(predicted, dtype=np.float64).reshape(-1)
        return scores + self.start_

    def _table(self, X: Any, queries: Queries, page: Any = None) -> tuple[Any, Floats | None]:
        # LightGBM accepts sparse matrices, but not sparse arrays.
        return super()._table(sparse.csr_matrix(X) if sparse.issparse(X) else X, queries, page)


@dataclass
class _HeldDerivatives:
    """An objective for both libraries that can release its data."""

    derivatives: Derivatives | None

    def __call__(self, y_true: Any, y_pred: Any) -> tuple[Any, Any]:
        assert self.derivatives is not None
        return self.derivatives(y_pred)


def check_boosted_regressor(regressor: Any) -> str:
    """Return the library of a regressor, "lightgbm" or "xgboost".

    Raises TypeError for any other regressor, and ValueError if the regressor has its own objective,
    which the surrogate would replace.
    """
    library = ""
    for kind in type(regressor).__mro__:
        module = kind.__module__.partition(".")[0]
        if kind.__name__ == "XGBRFRegressor":
            break
        if LIBRARIES.get(module) == kind.__name__:
            library = module
            break
    if not library:
        raise TypeError(
            f"regressor must be an LGBMRegressor or an XGBRegressor, 'lightgbm', 'xgboost' or "
            f"None; got {regressor!r}. Other boosting does not take objectives."
        )
    objective = regressor.get_params().get("objective")
    default = signature(type(regressor).__init__).parameters.get("objective")
    if objective is not None and (default is None or objective != default.default):
        raise ValueError(
            f"The surrogate is the objective, but {type(regressor).__name__} has "
            f"objective={objective!r}. Leave it out."
        )
    return library


class BoostedRanker(QueryRanker):
    """Rank the documents of each query by trees of LightGBM or XGBoost that minimise a surrogate.

    The ranker computes utilities from the labels, grows trees on the gradients and curvatures of
    the surrogate, and sorts documents by their scores. If the surrogate is order preserving,
    minimising its expected value sorts documents by their expected utilities, which is the best
    ranking for the loss (theorem 3.2 of Calauzènes et al., 2013, in :doc:`/theory`). With squared
    error, `CalibratedRanker` does the same.

    Parameters
    ----------
    surrogate : str or Surrogate, default="softmax"
        What to minimise: a name in `surrogates.SURROGATES`, or an object such as
        ``PointwiseMargin(eta=2.0)``. :ref:`bench-boosted` compares them.
    loss : str or Loss, default="ndcg"
        The loss that defines the utilities. Must be a loss on scores, such as ``"ndcg@10"``,
        ``"dcg"``, ``"map_by_scores"``, ``"err"`` or ``"pd_by_scores"``. With validation queries,
        training stops when neither its measure nor the surrogate improves on them.
    regressor : LGBMRegressor, XGBRegressor, "lightgbm", "xgboost" or None, default=None
        The regressor; the surrogate replaces its objective. A name means 100 trees (at most 1,000
        with validation queries) with learning rate 0.05, ``reg_lambda=10``, and 7 leaves up to
        10,000 rows, 15 up to 100,000 and 31 above. None means LightGBM if installed, else XGBoost.
    context : "auto", None, str or list of str, default="auto"
        Columns that compare a document with its query, as in `CalibratedRanker`.
        :ref:`column-parameters` explains the effect of monotone constraints.
    group_column : str, default=None
        Name of the column of a data frame X with the query ids. It is not used as a feature.
    validation_queries : float, default=None
        Share of the queries to hold out for early stopping (:ref:`validation_queries`).
    n_iter_no_change : int, default=50
        With validation queries, training stops after this many trees without an improvement.
    random_state : int, RandomState instance or None, default=None
        Seed of the validation queries and of the regressor. If None, the regressor keeps its seed.
    verbose : int, default=0
        If 1, print each step with its time. The regressor gets ``verbose - 1``.

    Attributes
    ----------
    model_ : BoostedModel
        The fitted model; ``model_.regressor_`` is the fitted regressor.
    surrogate_ : Surrogate
        The surrogate, with data-dependent parameters filled in.
    calibrated_over_ : str
        The distributions of the labels for which the surrogate is calibrated for the loss. If the
        surrogate is not order preserving, the text says so and cites the theorem.
    loss_, decoder_, grouped_, n_queries_, n_queries_dropped_, n_features_in_, feature_names_in_
        As in `CalibratedRanker`.
    n_iter_, validation_scores_, validation_queries_
        As in `CalibratedRanker`. Only set if there were validation queries.

    See Also
    --------
    sklearn_rankcal.boosting.lightgbm_objective : The same surrogates inside `LGBMRanker`.
    CalibratedRanker : Squared error with any regressor.

    Notes
    -----
    The library handles missing values, pandas categories, monotone constraints and sampling. A
    sparse X stays sparse, and then gets no context columns. Gradients and curvatures are scaled to
    a mean curvature of 1 at the start: ``reg_lambda`` and ``min_child_weight`` count documents for
    every surrogate.

    Computing gradients for a query of r documents takes O(r) or O(r log r) time with pointwise
    surrogates, softmax, cosine, pairwise squared and pairwise exponential. The remaining surrogates
    take O(r^2), or O(r log r) for queries with thousands of documents and few grades.

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

    # Metadata routing passes these arguments to `fit` without a set_fit_request call.
    __metadata_request__fit = {"X_val": True, "y_val": True, "groups_val": True}

    _one_regressor = "lightgbm.LGBMRegressor()"
    _weighs_queries = True
    _learns_targets = False
    decoder = "auto"
    n_jobs = None
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
    @checks_keywords(foreign=FOREIGN)
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
        """Grow the trees on the labels.

        Parameters
        ----------
        X, y, groups, X_val, y_val, groups_val, sample_weight_val
            As in `CalibratedRanker.fit`.
        sample_weight : array-like of shape (n_documents,), default=None
            Non-negative weight of each row. The weight of a query is the mean weight of its rows.
            Only the ratios of weights matter. Rows of weight 0 are left out.

        Returns
        -------
        self : BoostedRanker
            The fitted ranker.
        """
        validation = ValidationArguments(X_val, y_val, groups_val, sample_weight_val)
        fit(self, X, y, groups, sample_weight, validation)
        self.surrogate_ = self.model_.surrogate_
        self.calibrated_over_ = (
            self.loss_.calibrated_over
            if self.surrogate_.order_preserving
            else f"no distributions in general, because the surrogate is {self.surrogate_.theorem}"
        )
        return self

    @property
    def _scores_are(self) -> str | None:
        return "logarithms" if isinstance(get_surrogate(self.surrogate), Softmax) else None

    def _prepare(
        self, loss: Loss, data: Training, held_out: Training | None, grouped: bool
    ) -> tuple[BoostedModel, Training]:
        check_context(None if self.context == "auto" else self.context)
        regressor = self.regressor
        if regressor is None or isinstance(regressor, str):
            early = held_out is not None
            regressor = boosted_regressor(regressor, data.X.shape[0], stops_early=early)
        context = chosen_context(self.context, grouped, data.X)
        surrogate = get_surrogate(self.surrogate)
        model = BoostedModel(clone(surrogate), clone(regressor), context=context)
        targets = surrogate.targets(loss, data.labels, data.queries)
        if not isinstance(targets, Preferences):
            check_unit(float(np.abs(targets).max()))
        return model, replace(data, targets=targets)

    def _steady_value(
        self, loss: Loss, data: Training, held_out: Training
    ) -> Callable[[Floats], float]:
        """Return minus the mean of the surrogate as a function of scores."""
        unresolved, queries = get_surrogate(self.surrogate), held_out.queries
        utilities = unresolved.targets(loss, held_out.labels, queries)
        # eta of the resolved surrogate follows the training labels, and can be below utilities here
        surrogate = unresolved.resolve(data.targets)
        eta = getattr(surrogate, "eta", None)
        if eta is not None:
            utilities = np.minimum(utilities, eta)
        surrogate.check(utilities)
        per_query = None if held_out.weight is None else queries.mean(held_out.weight)

        def value(scores: Floats) -> float:
            of_queries = surrogate.evaluate(utilities, scores, queries, derivatives=0).value
            return -float(np.average(of_queries, weights=per_query))

        return value

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = self.context in (None, "auto")
        return tags
