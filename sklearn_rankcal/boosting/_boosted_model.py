"""A model that fits the trees of LightGBM or XGBoost to the gradients of a surrogate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import clone

from sklearn_rankcal.boosting._derivatives import Derivatives
from sklearn_rankcal.models import Training
from sklearn_rankcal.models._context import ContextTableModel
from sklearn_rankcal.models._early_stopping import check_stopping
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.surrogates import Surrogate, get_surrogate
from sklearn_rankcal.utils._numbers import Floats

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
    """Fit the trees of LightGBM or XGBoost to the gradients of a surrogate.

    Parameters
    ----------
    surrogate : str or Surrogate, default="softmax"
        A name in `surrogates.SURROGATES`, or an object.
    regressor : LGBMRegressor, XGBRegressor, "lightgbm", "xgboost" or None, default=None
        The regressor. It is cloned, and the surrogate replaces its objective. `BoostedRanker`
        describes None and the names of the libraries.
    context : None, str or list of str, default=None
        As in `DocumentModel`.

    Attributes
    ----------
    regressor_ : LGBMRegressor or XGBRegressor
        The fitted regressor.
    surrogate_ : Surrogate
        The surrogate, with data-dependent parameters filled in.
    start_ : float
        The constant score at which boosting starts. `predict` adds it to the prediction of the
        regressor.
    context_ : dict of str to list
        As in `DocumentModel`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.boosting import BoostedModel
    >>> from sklearn_rankcal.models import Training
    >>> from sklearn_rankcal.queries import Queries
    >>> X, targets, queries = np.arange(100.0)[:, None], np.arange(100.0), Queries.single(100)
    >>> model = BoostedModel("pairwise_squared")
    >>> model = model.fit(Training(X, targets, queries))  # doctest: +SKIP
    >>> scores = model.predict(X, queries)  # doctest: +SKIP
    """

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
        """Fit the regressor.

        Parameters
        ----------
        training : Training
            As in `DocumentModel.fit`. The targets are what `Surrogate.targets` returns, and only
            ratios of weights count.

        Returns
        -------
        self : BoostedModel
            The fitted model.

        Raises
        ------
        ValueError
            If the surrogate does not accept the targets, if the regressor has its own objective,
            or if `context` is given for a table without suitable columns.
        TypeError
            If the regressor is not one of LightGBM or XGBoost.
        ImportError
            If the library is not installed.
        """
        surrogate = get_surrogate(self.surrogate)
        X, targets, queries = training.X, training.targets, training.queries
        validation, regressor = training.validation, self.regressor
        if regressor is None or isinstance(regressor, str):
            stops_early = validation is not None
            regressor = boosted_regressor(regressor, X.shape[0], stops_early=stops_early)
        library = check_boosted_regressor(regressor)
        regressor = clone(regressor)
        check_stopping(regressor, validation is not None)
        self._choose_columns(X, queries)
        table, _ = self._table(X, queries)
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

    def _table(self, X: Any, queries: Queries) -> tuple[Any, Floats | None]:
        # LightGBM accepts sparse matrices, but not sparse arrays.
        return super()._table(sparse.csr_matrix(X) if sparse.issparse(X) else X, queries)


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
