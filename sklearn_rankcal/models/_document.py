"""Models: targets come in, surrogate predictions come out. What the wrapped regressor sees.

`DocumentModel` shows it one row per document and predicts scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from inspect import Parameter, signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.utils.validation import has_fit_parameter

from sklearn_rankcal.models._context import add_context, check_context
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import SCORES
from sklearn_rankcal.utils._features import is_dataframe, numeric_columns, take_rows, text_columns
from sklearn_rankcal.utils._parameters import check_flag, check_methods
from sklearn_rankcal.utils._pickles import VersionedPickle
from sklearn_rankcal.utils._scales import below_one, check_weight_range, mean_one, target_exponent

_MAX_CLASSES = 100
_CHUNK = 1 << 17  # rows predicted at a time


def default_regressor(n_rows: int) -> HistGradientBoostingRegressor:
    """The regressor used when none is given: histogram gradient boosting set for ranking data.

    100 trees with learning rate 0.05 and ``l2_regularization=50``, of 7 leaves up to 10,000 rows,
    15 up to 100,000 and 31 above. `early_stopping` is off: its validation split cuts queries. How
    this was chosen is told in the user guide, "Defaults".

    Parameters
    ----------
    n_rows : int
        Number of training rows.

    Returns
    -------
    regressor : HistGradientBoostingRegressor

    Examples
    --------
    >>> from sklearn_rankcal.models import default_regressor
    >>> default_regressor(5000).max_leaf_nodes
    7
    """
    return HistGradientBoostingRegressor(
        learning_rate=0.05,
        max_iter=100,
        max_leaf_nodes=7 if n_rows <= 10_000 else 15 if n_rows <= 100_000 else 31,
        # scikit-learn's 20, but less where that would forbid every split
        min_samples_leaf=min(20, max(1, n_rows // 50)),
        l2_regularization=50.0,
        early_stopping=False,
    )


class DocumentModel(VersionedPickle, BaseEstimator):
    """One row per document; any regressor, or a classifier for graded labels; predicts scores.

    Parameters
    ----------
    regressor : estimator, default=None
        Regressor cloned and fitted on (row, target). A classifier is fitted on the distinct target
        values instead and predicts the expected target from `predict_proba`. None: see
        `default_regressor`.
    center : bool, default=True
        Subtract from every target the (weighted) mean of its query. No ranking changes, and the
        regressor spends nothing on differences between queries. Ignored for classifiers.
    context : None, "zscore", "difference", "rank" or a list of these, default=None
        Columns to add that say where a document stands in its query: (x - mean) / sd, x - mean,
        and the within-query rank.

    Attributes
    ----------
    regressor_ : estimator
        The fitted regressor.
    """

    space = SCORES

    def __init__(
        self,
        regressor: Any = None,
        *,
        center: bool = True,
        context: str | Sequence[str] | None = None,
    ) -> None:
        self.regressor = regressor
        self.center = center
        self.context = context

    def fit(
        self,
        X: Any,
        targets: NDArray[np.float64],
        queries: Queries,
        sample_weight: NDArray[np.float64] | None = None,
    ) -> DocumentModel:
        """Fit the regressor.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_documents, n_features)
        targets : ndarray of shape (n_documents,)
        queries : Queries
        sample_weight : ndarray of shape (n_documents,), default=None

        Returns
        -------
        self : DocumentModel

        Raises
        ------
        ValueError
            Context features of a table without numeric columns; more than 100 distinct targets
            for a classifier; weights for a regressor that takes none.
        """
        self._kinds = check_context(self.context)
        check_flag(self.center, "center")
        check_methods(self.regressor, "regressor", "a regressor", "fit", "predict")
        regressor = (
            default_regressor(X.shape[0]) if self.regressor is None else (clone(self.regressor))
        )
        weights = weight_argument(regressor, sample_weight, own=self.regressor is None)
        self._columns = numeric_columns(X)
        # histogram boosting turns every array into float64: make it that, instead of a copy more
        boosts = isinstance(
            regressor, (HistGradientBoostingRegressor, HistGradientBoostingClassifier)
        )
        self._dtype = np.float64 if boosts else None
        table, self._inverse_scale = self._table(X, queries)
        self._n_columns = X.shape[1]
        self._numeric = _positions(X)
        if is_classifier(regressor):
            if not hasattr(regressor, "predict_proba"):
                raise ValueError(
                    f"{type(regressor).__name__} has no predict_proba, which expected targets are "
                    "computed from. Use another classifier, or a regressor."
                )
            self.levels_, codes = np.unique(targets, return_inverse=True)
            if len(self.levels_) > _MAX_CLASSES:
                raise ValueError(
                    f"A classifier needs graded labels: at most {_MAX_CLASSES} distinct targets; "
                    f"got {len(self.levels_)}. Use a regressor."
                )
            self.regressor_ = _fit(regressor, table, codes, weights)
        else:
            # a power of two, so that a weighted mean cannot overflow, nor a tiny target vanish
            mass = None if sample_weight is None else below_one(sample_weight)
            goal = queries.center(targets, mass) if self.center else targets
            self._exponent = target_exponent(goal)
            goal = np.ldexp(goal, -self._exponent)
            self.regressor_ = _fit(regressor, table, goal, weights)
        return self

    def predict(self, X: Any, queries: Queries) -> NDArray[np.float64]:
        """Scores of the documents, a chunk of rows at a time.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_documents, n_features)
        queries : Queries

        Returns
        -------
        scores : ndarray of shape (n_documents,)
        """
        scores = np.empty(queries.n_rows)
        # without context a document's score does not depend on its query: any rows make a chunk
        parts = queries if self._kinds else Queries.uniform(queries.n_rows, 1)
        for rows, part in parts.chunks(_CHUNK):
            whole = isinstance(rows, slice) and part.n_rows == queries.n_rows
            table, _ = self._table(X if whole else take_rows(X, rows), part)
            scores[rows] = self._predict(table)
        return scores

    def _predict(self, table: Any) -> NDArray[np.float64]:
        if is_classifier(self.regressor_):
            chances = self.regressor_.predict_proba(table)
            return chances @ self.levels_[self.regressor_.classes_]
        scores = np.asarray(self.regressor_.predict(table), dtype=np.float64).reshape(-1)
        return np.ldexp(scores, self._exponent)

    def _table(self, X: Any, queries: Queries) -> tuple[Any, NDArray[np.float64] | None]:
        if not self._kinds:
            return X, None
        return add_context(X, queries, self._kinds, self._columns, self._dtype)

    def fold_importances(self, values: NDArray[Any]) -> NDArray[Any]:
        """Importances of the regressor's columns added up per input column."""
        return self._fold(values, dict.fromkeys(self._kinds, 1.0))

    def fold_coefficients(self, values: NDArray[Any]) -> NDArray[Any]:
        """Slopes inside a query: a "zscore" coefficient counts times the mean of 1 / sd."""
        if "rank" in self._kinds:
            raise AttributeError(
                "coef_ has no meaning per input column with context='rank'; see model_.regressor_."
            )
        slopes = self._fold(values, {"difference": 1.0, "zscore": self._inverse_scale})
        return slopes if is_classifier(self.regressor_) else np.ldexp(slopes, self._exponent)

    def _fold(self, values: NDArray[Any], factors: dict[str, Any]) -> NDArray[Any]:
        values = np.asarray(values)
        total = np.array(values[..., : self._n_columns], dtype=np.float64)
        if not self._kinds:
            return total
        added = values[..., self._n_columns :]
        width = len(self._numeric)
        if added.shape[-1] != width * len(self._kinds):
            raise AttributeError("The regressor's columns do not correspond to those of X.")
        for number, kind in enumerate(self._kinds):
            part = added[..., number * width : (number + 1) * width]
            total[..., self._numeric] += part * factors[kind]
        return total


def _fit(regressor: Any, table: Any, goal: NDArray[Any], weights: dict[str, Any]) -> Any:
    """The fitted regressor; its error about text gets a note of the columns that hold text."""
    try:
        return regressor.fit(table, goal, **weights)
    except (TypeError, ValueError) as error:
        if columns := [column for column, _ in text_columns(table)]:
            error.add_note(f"Columns of X with text or times: {columns}.")
        raise


def _positions(X: Any) -> NDArray[np.int64]:
    """Positions of the numeric columns."""
    columns = numeric_columns(X)
    if not is_dataframe(X):
        return np.array(columns, dtype=np.int64)
    place = {name: number for number, name in enumerate(X.columns)}
    return np.array([place[name] for name in columns], dtype=np.int64)


def weight_argument(
    regressor: Any, sample_weight: NDArray[np.float64] | None, own: bool = False
) -> dict[str, Any]:
    """sample_weight under the name by which `regressor.fit` takes it; nothing if trivial.

    Parameters
    ----------
    regressor : estimator
    sample_weight : ndarray of shape (n_rows,) or None
    own : bool, default=False
        Whether it is the package's default. That one gets weights of mean 1, so that its penalty
        does not depend on their scale, and none where all are equal. A regressor of the user gets
        them as they are, and none where all are 1.

    Raises
    ------
    ValueError
        It takes none; the largest weight is not between 1e-12 and 1e12, for one of the user.
    """
    if sample_weight is None or (sample_weight == 1).all():
        return {}
    if own:
        sample_weight = mean_one(sample_weight)
        if sample_weight is None:
            return {}
    last, prefix = regressor, ""
    while hasattr(last, "steps"):  # a Pipeline hands <step>__sample_weight on, unless it routes
        prefix += f"{last.steps[-1][0]}__"
        last = last.steps[-1][1]
    kinds = {parameter.kind for parameter in signature(last.fit).parameters.values()}
    if not has_fit_parameter(last, "sample_weight") and Parameter.VAR_KEYWORD not in kinds:
        raise ValueError(
            f"{type(last).__name__} does not take sample_weight; use a regressor that does, or "
            "fit without weights."
        )
    if not own and not getattr(last, "_scales_weights", False):
        check_weight_range(sample_weight, type(last).__name__)
    routed = get_config()["enable_metadata_routing"]
    return {"sample_weight" if routed else f"{prefix}sample_weight": sample_weight}
