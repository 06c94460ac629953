"""How a model is fitted to training data in partitions.

Each function returns the same model as on one machine: closed forms by adding moments, regressors
with `partial_fit` one partition after another, and regressors of dask by passing them a collection.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask import delayed
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.pipeline import Pipeline

from sklearn_rankcal.dask._documents import LABEL, WEIGHT, add_up, for_each
from sklearn_rankcal.dask._training import Plan, centred
from sklearn_rankcal.dask._workers import (
    is_from,
    n_threads,
    refuse_lost_workers,
    wait_for,
    wait_less_long,
)
from sklearn_rankcal.models import (
    BilinearMoments,
    BilinearPairs,
    DocumentModel,
    DocumentMoments,
    LinearModel,
    PairMoments,
    PairwiseRidge,
    is_model,
)
from sklearn_rankcal.models._document import weight_arguments
from sklearn_rankcal.models._document_moments import has_closed_form
from sklearn_rankcal.models._folds import FIRST_COLUMNS, folds_of_keys, hash_queries
from sklearn_rankcal.models._tables import numeric_table
from sklearn_rankcal.queries import Queries

Floats = NDArray[np.float64]

_TAKEN = (
    "Ridge or LinearRegression of scikit-learn, which are fitted in closed form; a regressor with "
    "partial_fit, such as SGDRegressor; lightgbm.DaskLGBMRegressor, "
    "xgboost.dask.DaskXGBRegressor, or a regressor of dask_ml or cuml.dask; and for loss='pd' and "
    "'map' PairwiseRidge or BilinearPairs of sklearn_rankcal.models"
)


def takes_collections(regressor: Any) -> bool:
    """Return whether the `fit` of the regressor takes dask collections."""
    if isinstance(regressor, Pipeline):
        return all(takes_collections(step) for _, step in regressor.steps)
    return is_from(regressor, "lightgbm.dask", "xgboost.dask", "dask_ml.", "cuml.dask")


def check_regressor(regressor: Any, space: Any, loss: Any) -> None:
    """Raise an error if no function of this module fits the regressor.

    Raises
    ------
    TypeError
        The error says which regressors are taken.
    ValueError
        If the regressor is a model of another space than the loss.
    """
    name = type(regressor).__name__
    if space.is_pairwise:
        if not isinstance(regressor, PairwiseRidge | BilinearPairs):
            raise TypeError(
                f"loss={loss!r} needs a closed form on partitions: regressor=PairwiseRidge() or "
                f"BilinearPairs() of sklearn_rankcal.models; got {name}. A loss on scores, such as "
                "'pd_by_scores' or 'map_by_scores', takes other regressors."
            )
        if regressor.space != space:
            raise ValueError(f"{name} predicts {regressor.space}, but loss={loss!r} needs {space}.")
        if isinstance(regressor, BilinearPairs) and regressor.feature_map is not None:
            raise TypeError(
                "BilinearPairs needs feature_map=None on partitions, because a feature map is "
                "fitted to all rows at once. Transform X before the ranker instead."
            )
        return
    if isinstance(regressor, PairwiseRidge | BilinearPairs):
        raise ValueError(f"{name} predicts pairs of documents, but loss={loss!r} needs scores.")
    if isinstance(regressor, LinearModel):
        if regressor.solver != "sgd":
            raise ValueError("LinearModel on partitions needs solver='sgd'.")
        return
    fits = has_closed_form(regressor) or takes_collections(regressor)
    if is_model(regressor) or not (fits or hasattr(regressor, "partial_fit")):
        raise TypeError(
            f"{name} cannot be fitted to partitions of a dask collection. Pass {_TAKEN}."
        )
    if is_classifier(regressor):
        raise TypeError(
            f"{name} is a classifier, which needs to know the targets of all partitions at once. "
            f"Pass {_TAKEN}."
        )
    if has_closed_form(regressor):
        regressor._validate_params()


def check_columns(table: pd.DataFrame | NDArray[Any], regressor: Any) -> None:
    """Raise an error if a column contains text or times, unless a library of dask decides.

    Parameters
    ----------
    table : data frame or array without rows
    regressor : estimator

    Raises
    ------
    ValueError
        The error names the columns.
    """
    if isinstance(table, np.ndarray) or takes_collections(regressor):
        return
    found = {name: dtype for name, dtype in table.dtypes.items() if _is_text_or_time(dtype)}
    if found:
        raise ValueError(
            f"{type(regressor).__name__} needs numbers, but columns of X contain text or times: "
            f"{', '.join(f'{name!r} ({dtype})' for name, dtype in found.items())}. If one of them "
            "contains query ids, name it as group_column. Otherwise drop or encode it, for example "
            "with X.categorize() and dask.dataframe.get_dummies."
        )


def _is_text_or_time(dtype: Any) -> bool:
    if isinstance(dtype, pd.CategoricalDtype):
        dtype = dtype.categories.dtype
    return isinstance(dtype, pd.StringDtype) or getattr(dtype, "kind", "O") in "mMSU"


@dataclass(frozen=True)
class Tables:
    """The rows that a regressor of documents is fitted to.

    Attributes
    ----------
    plan : Plan
    model : DocumentModel
        It knows the context columns, and centres and scales targets.
    """

    plan: Plan
    model: DocumentModel

    def rows(self, frame: pd.DataFrame) -> tuple[Any, Floats, Floats | None, Floats, int] | None:
        """Return the table, the targets and the weights of a partition.

        The last two entries are the mean slopes of z-scores and the number of queries.
        """
        data = self.plan.data(frame)
        if data is None:
            return None
        targets = self.plan.targets(data)
        targets = centred(targets, data) if self.model.center else targets
        table, slopes = self.model._table(data.X, data.queries)
        targets = np.ldexp(targets, -self.model._exponent)
        slopes = np.zeros(len(self.model._columns)) if slopes is None else slopes
        return table, targets, data.weight, slopes, data.queries.n_queries


@dataclass(frozen=True, eq=False)  # pandas compares the attributes of frames that it joins
class _Slopes:
    """The sum over queries of the slopes of z-scores."""

    total: Floats
    n_queries: int

    def plus(self, other: _Slopes) -> _Slopes:
        return _Slopes(self.total + other.total, self.n_queries + other.n_queries)


def _keep_slopes(model: DocumentModel, slopes: _Slopes) -> None:
    model._inverse_scale = slopes.total / slopes.n_queries if model._kinds else None


# ---------------------------------------------------------------- closed forms


def fit_closed_form(tables: Tables, frames: list[Any], regressor: Any) -> Any:
    """Fit `Ridge` or `LinearRegression` by adding the moments of partitions."""
    parts = for_each(partial(_document_moments, tables=tables), frames)
    summed = add_up(parts, _add_pairs)
    moments, slopes = dask.compute(summed)[0]
    _keep_slopes(tables.model, slopes)
    return moments.fit(regressor)


def _document_moments(frame: pd.DataFrame, tables: Tables) -> tuple[Any, _Slopes] | None:
    rows = tables.rows(frame)
    if rows is None:
        return None
    table, targets, weight, slopes, n_queries = rows
    moments = DocumentMoments.of(numeric_table(table), targets, weight)
    return moments, _Slopes(slopes * n_queries, n_queries)


def _add_pairs(one: tuple[Any, _Slopes], two: tuple[Any, _Slopes]) -> tuple[Any, _Slopes]:
    return one[0] + two[0], one[1].plus(two[1])


def fit_pairwise_ridge(plan: Plan, frames: list[Any], model: PairwiseRidge) -> PairwiseRidge:
    """Fit `PairwiseRidge` by adding the moments of partitions."""
    model = clone(model)
    model._check_parameters()
    parts = for_each(partial(_pair_moments, plan=plan), frames)
    moments = dask.compute(add_up(parts, _add))[0]
    model.coef_ = moments.solve(model.alpha)
    return model


def fit_bilinear_pairs(
    plan: Plan, frames: list[Any], model: BilinearPairs, n_queries: int
) -> BilinearPairs:
    """Fit `BilinearPairs` in two passes: the features, and the moments of pairs of features."""
    model = clone(model)
    model._check_parameters()
    n_folds = model._n_folds(n_queries)
    # Pass 1: the spread of the columns, and the keys that assign queries to folds.
    spread = for_each(partial(_pair_moments, plan=plan, targets=False), frames)
    keys = for_each(partial(_query_keys, plan=plan, n_columns=FIRST_COLUMNS), frames)
    moments, keys = dask.compute(add_up(spread, _add), keys)
    model._set_axes(moments)
    if n_folds > 1 and len(np.unique(np.concatenate(keys))) < n_queries:
        of_all = partial(_query_keys, plan=plan, n_columns=None)
        keys = dask.compute(for_each(of_all, frames))[0]
    folds = _split(folds_of_keys(np.concatenate(keys), n_folds), keys) if n_folds > 1 else keys
    # Pass 2
    moments_of = partial(_bilinear_moments, plan=plan, model=model, n_folds=n_folds)
    parts = for_each(moments_of, frames, folds)
    model._solve(dask.compute(add_up(parts, _add_lists))[0], n_queries)
    return model


def _add(one: Any, two: Any) -> Any:
    return one + two


def _add_lists(one: list[Any], two: list[Any]) -> list[Any]:
    return [first + second for first, second in zip(one, two, strict=True)]


def _pair_moments(frame: pd.DataFrame, plan: Plan, targets: bool = True) -> PairMoments | None:
    data = plan.data(frame)
    if data is None:
        return None
    of_pairs = plan.targets(data) if targets else None
    return PairMoments.of(numeric_table(data.X), of_pairs, data.queries, data.weight)


def _query_keys(frame: pd.DataFrame, plan: Plan, n_columns: int | None) -> NDArray[np.uint64]:
    """Return the hash of the contents of each query, by its first columns or by all (None)."""
    data = plan.data(frame)
    if data is None:
        return np.empty(0, dtype=np.uint64)
    X, places = numeric_table(data.X), data.queries.gather(np.arange(data.queries.n_rows))
    return hash_queries(X[:, :n_columns], places, data.queries)[0]


def _split(values: NDArray[Any], like: list[NDArray[Any]]) -> list[NDArray[Any]]:
    return np.split(values, np.cumsum([len(part) for part in like])[:-1])


def _bilinear_moments(
    frame: pd.DataFrame, fold_of: NDArray[Any], plan: Plan, model: BilinearPairs, n_folds: int
) -> list[BilinearMoments] | None:
    data = plan.data(frame)
    if data is None:
        return None
    if n_folds == 1:
        fold_of = np.zeros(data.queries.n_queries, dtype=np.int64)
    X = numeric_table(data.X)
    return model._moments_in_folds(
        X, plan.targets(data), data.queries, data.weight, fold_of, n_folds
    )


# ---------------------------------------------------------------- one partition after another


def fit_partially(
    tables: Tables, frames: list[Any], regressor: Any, n_passes: int, apart: bool
) -> Any:
    """Call `partial_fit` with one partition after another, `n_passes` times.

    `apart` is whether each frame can be computed without the others, see `_learn_in_turn`.
    """
    prepared = for_each(tables.rows, frames)
    first = (clone(regressor), None)
    fitted, slopes = _learn_in_turn(prepared, first, _learn_rows, n_passes, apart)
    _keep_slopes(tables.model, slopes)
    return fitted


def fit_linear_model(
    plan: Plan, frames: list[Any], model: LinearModel, n_passes: int, apart: bool
) -> LinearModel:
    """Fit `LinearModel` by the stochastic gradient method, one partition after another."""
    learn = partial(_learn_queries, plan=plan)
    return _learn_in_turn(frames, clone(model), learn, n_passes, apart)


def _learn_in_turn(
    parts: list[Any], first: Any, learn: Callable[[Any, Any], Any], n_passes: int, apart: bool
) -> Any:
    """Return ``learn(... learn(learn(first, parts[0]), parts[1]) ..., parts[-1])``.

    Parameters
    ----------
    parts : list of delayed
    first : object
    learn : callable
    n_passes : int
        How many times all parts are learned.
    apart : bool
        Whether each part can be computed without the others. If so, the workers compute one batch
        of parts, one part for each thread, while the batch before it is learned, so that no more
        than two batches are in memory. If not, because rows are moved, a pass is one computation.
    """
    size = n_threads() if apart else len(parts)
    batches = [parts[start : start + size] for start in range(0, len(parts), size)] * n_passes
    model, call = delayed(first), delayed(learn, pure=False)
    ready = dask.persist(*batches[0]) if apart else tuple(batches[0])
    for batch in [*batches[1:], []]:
        for part in ready:
            model = call(model, part)
        model, *ready = dask.persist(model, *(batch if apart else []))
        wait_for(model)  # of distributed, which does not wait in `persist`
        ready = ready if apart else batch
    return dask.compute(model)[0]


def _learn_rows(state: tuple[Any, _Slopes | None], rows: Any) -> tuple[Any, _Slopes | None]:
    if rows is None:
        return state
    table, targets, weight, slopes, n_queries = rows
    # A task that runs twice, because a worker was lost, must not change what it was given.
    regressor, total = copy.deepcopy(state[0]), state[1]
    regressor.partial_fit(table, targets, **weight_arguments(regressor, weight))
    part = _Slopes(slopes * n_queries, n_queries)
    return regressor, part if total is None else total.plus(part)


def _learn_queries(model: LinearModel, frame: pd.DataFrame, *, plan: Plan) -> LinearModel:
    data = plan.data(frame)
    if data is None:
        return model
    model = copy.deepcopy(model)
    return model.partial_fit(data.X, plan.targets(data), data.queries, data.weight)


# ---------------------------------------------------------------- regressors of dask

_SLOPES = "sklearn_rankcal slopes"  # an attribute of the frames


def fit_collection(
    tables: Tables, frames: list[Any], regressor: Any, weighted: bool, meta: pd.DataFrame
) -> Any:
    """Fit a regressor of dask to the tables of all partitions, and return one for one machine.

    The workers hold the tables while it is fitted.

    Parameters
    ----------
    tables : Tables
    frames : list of delayed frames
    regressor : estimator
    weighted : bool
        Whether the rows have weights.
    meta : pandas.DataFrame
        Some rows of any values, in the form of `frames`.
    """
    one = tables.model._table(tables.plan.form.features(meta), Queries.single(len(meta)))[0]
    meta = _one_frame(one, np.zeros(len(meta)), np.ones(len(meta)) if weighted else None).iloc[:0]
    parts = for_each(partial(_table_frame, tables=tables, meta=meta), frames)
    regressor = wait_less_long(clone(regressor))
    with refuse_lost_workers(regressor):
        frame = dd.from_delayed(parts, meta=meta, verify_meta=True).persist()
        parts = frame.to_delayed()
        lengths = dask.compute(for_each(len, parts))[0]
        if 0 in lengths:  # LightGBM fails on a worker without rows
            parts = [part for part, length in zip(parts, lengths, strict=True) if length]
            frame = dd.from_delayed(parts, meta=meta, verify_meta=True)
        slopes = for_each(_slopes_of_frame, parts)
        _keep_slopes(tables.model, dask.compute(add_up(slopes, _Slopes.plus))[0])
        columns = [name for name in meta.columns if name not in (LABEL, WEIGHT)]
        collections = [frame[columns], frame[LABEL], *([frame[WEIGHT]] if weighted else [])]
        if tables.plan.form.is_array or _wants_arrays(regressor):
            collections = [each.to_dask_array(lengths=True) for each in collections]
        table, targets, *weights = collections
        regressor.fit(table, targets, **({"sample_weight": weights[0]} if weights else {}))
    return on_one_machine(regressor)


def _table_frame(frame: pd.DataFrame, tables: Tables, meta: pd.DataFrame) -> pd.DataFrame:
    """Return the table of a partition with its targets and weights in one frame."""
    rows = tables.rows(frame)
    if rows is None:
        return meta
    table, targets, weight, slopes, n_queries = rows
    joined = _one_frame(table, targets, weight)
    joined.attrs[_SLOPES] = _Slopes(slopes * n_queries, n_queries)
    return joined


def _one_frame(table: Any, targets: Floats, weight: Floats | None) -> pd.DataFrame:
    joined = pd.DataFrame(table) if isinstance(table, np.ndarray) else table
    joined = joined.rename(columns=str).reset_index(drop=True).assign(**{LABEL: targets})
    return joined if weight is None else joined.assign(**{WEIGHT: weight})


def _slopes_of_frame(frame: pd.DataFrame) -> _Slopes | None:
    return frame.attrs.get(_SLOPES)


def _wants_arrays(regressor: Any) -> bool:
    """Whether the regressor refuses data frames, or partitions of unknown length."""
    return is_from(regressor, "dask_ml.")


def on_one_machine(regressor: Any) -> Any:
    """Return a fitted regressor that predicts arrays and pandas frames."""
    if hasattr(regressor, "to_local"):  # of LightGBM
        return regressor.to_local()
    if is_from(regressor, "xgboost.dask"):
        local = unfitted_on_one_machine(regressor)
        local.load_model(regressor.get_booster().save_raw())
        return local
    return regressor


def unfitted_on_one_machine(regressor: Any) -> Any:
    """Return the regressor for one machine with the same parameters."""
    names = {"lightgbm": "LGBMRegressor", "xgboost": "XGBRegressor"}
    for root, name in names.items():
        if is_from(regressor, f"{root}.dask"):
            parameters = {
                parameter: value
                for parameter, value in regressor.get_params().items()
                if parameter not in ("client", "coll_cfg")
            }
            return getattr(__import__(root), name)(**parameters)
    return clone(regressor)
