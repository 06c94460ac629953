"""How a model is fitted to training data in partitions.

Each function returns the same model as on one machine: closed forms by adding sums, regressors
with `partial_fit` one partition after another, and regressors of dask by passing them a collection.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
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

from sklearn_rankcal.dask._documents import LABEL, WEIGHT
from sklearn_rankcal.dask._tasks import add_up, delayed_sum, for_each
from sklearn_rankcal.dask._training import Plan
from sklearn_rankcal.dask._workers import (
    is_from,
    n_threads,
    refuse_lost_workers,
    wait_for,
    wait_less_long,
)
from sklearn_rankcal.models import (
    BilinearPairs,
    DocumentModel,
    LinearModel,
    PairwiseRidge,
    is_model,
)
from sklearn_rankcal.models._document import weight_arguments
from sklearn_rankcal.models._folds import FIRST_COLUMNS, folds_of_keys, hash_queries
from sklearn_rankcal.models._sums import has_closed_form
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
    """Raise an error if no function of this module fits the regressor."""
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
    """Raise an error if a column contains text or times, unless a library of dask decides."""
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


# ---------------------------------------------------------------- closed forms


def fit_closed_form(plan: Plan, frames: list[Any], model: Any) -> Any:
    """Fit a model with the steps `sums` and `solve` by adding the sums of partitions."""
    parts = for_each(partial(_sums, plan=plan, model=model), frames)
    return model.solve(add_up(parts))


def _sums(frame: pd.DataFrame, plan: Plan, model: Any) -> Any:
    data = plan.data(frame)
    if data is None:
        return None
    return model.sums(data.X, plan.targets(data), data.queries, data.weight)


def fit_bilinear_pairs(
    plan: Plan, frames: list[Any], model: BilinearPairs, n_queries: int
) -> BilinearPairs:
    """Fit `BilinearPairs` in two passes: the features, and the sums over pairs of features."""
    n_folds = model.n_folds(n_queries)
    # Pass 1: the spread of the columns, and the keys that assign queries to folds.
    spread = for_each(partial(_spread, plan=plan, model=model), frames)
    keys = for_each(partial(_query_keys, plan=plan, n_columns=FIRST_COLUMNS), frames)
    total, keys = dask.compute(delayed_sum(spread), keys)
    model.set_features(total)
    if n_folds > 1 and len(np.unique(np.concatenate(keys))) < n_queries:
        of_all = partial(_query_keys, plan=plan, n_columns=None)
        keys = dask.compute(for_each(of_all, frames))[0]
    folds = folds_of_keys(np.concatenate(keys), n_folds)
    folds = np.split(folds, np.cumsum([len(part) for part in keys])[:-1])
    # Pass 2
    sums = for_each(partial(_fold_sums, plan=plan, model=model, n_folds=n_folds), frames, folds)
    return model.solve(add_up(sums))


def _spread(frame: pd.DataFrame, plan: Plan, model: BilinearPairs) -> Any:
    data = plan.data(frame)
    return None if data is None else model.spread(data.X, data.queries, data.weight)


def _query_keys(frame: pd.DataFrame, plan: Plan, n_columns: int | None) -> NDArray[np.uint64]:
    """Return the hash of the contents of each query, by its first columns or by all (None)."""
    data = plan.data(frame)
    if data is None:
        return np.empty(0, dtype=np.uint64)
    X, places = numeric_table(data.X), data.queries.gather(np.arange(data.queries.n_rows))
    return hash_queries(X[:, :n_columns], places, data.queries)[0]


def _fold_sums(
    frame: pd.DataFrame, folds: NDArray[Any], plan: Plan, model: BilinearPairs, n_folds: int
) -> Any:
    data = plan.data(frame)
    if data is None:
        return None
    targets = plan.targets(data)
    return model.sums(data.X, targets, data.queries, data.weight, folds, n_folds)


# ---------------------------------------------------------------- one partition after another


def fit_partially(
    plan: Plan, frames: list[Any], model: DocumentModel, n_passes: int, apart: bool
) -> DocumentModel:
    """Call `partial_fit` with one partition after another, `n_passes` times.

    `apart` is whether each frame can be computed without the others, see `_learn_in_turn`.
    """
    prepared = for_each(partial(_read, plan=plan, model=model), frames)
    first = (clone(model.regressor), None)
    return model.finish(*_learn_in_turn(prepared, first, _learn_rows, n_passes, apart))


def _read(frame: pd.DataFrame, plan: Plan, model: DocumentModel) -> Any:
    """Return what `DocumentModel.read` does, and the weights of the rows."""
    data = plan.data(frame)
    if data is None:
        return None
    return *model.read(data.X, plan.targets(data), data.queries, data.weight), data.weight


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

    All parts are learned `n_passes` times. If each part can be computed without the others
    (`apart`), the workers compute one batch of parts, one part for each thread, while the batch
    before it is learned, so that no more than two batches are in memory. If not, because rows are
    moved, a pass is one computation.
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


def _learn_rows(state: tuple[Any, Any], rows: Any) -> tuple[Any, Any]:
    if rows is None:
        return state
    table, targets, slopes, weight = rows
    # A task that runs twice, because a worker was lost, must not change what it was given.
    regressor, total = copy.deepcopy(state[0]), state[1]
    regressor.partial_fit(table, targets, **weight_arguments(regressor, weight))
    return regressor, slopes if total is None else total + slopes


def _learn_queries(model: LinearModel, frame: pd.DataFrame, *, plan: Plan) -> LinearModel:
    data = plan.data(frame)
    if data is None:
        return model
    model = copy.deepcopy(model)
    return model.partial_fit(data.X, plan.targets(data), data.queries, data.weight)


# ---------------------------------------------------------------- regressors of dask

_SLOPES = "sklearn_rankcal slopes"  # an attribute of the frames


def fit_collection(
    plan: Plan, frames: list[Any], model: DocumentModel, regressor: Any, meta: pd.DataFrame
) -> DocumentModel:
    """Fit a regressor of dask to the tables of all partitions, and keep one for one machine.

    The workers hold the tables while it is fitted. `meta` has some rows of any values, in the form
    of `frames`.
    """
    weighted = plan.weight_unit is not None
    some = model.read(plan.form.features(meta), np.zeros(len(meta)), Queries.single(len(meta)))
    meta = _one_frame(some[0], some[1], np.ones(len(meta)) if weighted else None).iloc[:0]
    parts = for_each(partial(_table_frame, plan=plan, model=model, meta=meta), frames)
    regressor = wait_less_long(clone(regressor))
    with refuse_lost_workers(regressor):
        frame = dd.from_delayed(parts, meta=meta, verify_meta=True).persist()
        parts = frame.to_delayed()
        lengths = dask.compute(for_each(len, parts))[0]
        if 0 in lengths:  # LightGBM fails on a worker without rows
            parts = [part for part, length in zip(parts, lengths, strict=True) if length]
            frame = dd.from_delayed(parts, meta=meta, verify_meta=True)
        slopes = add_up(for_each(_slopes_of_frame, parts))
        columns = [name for name in meta.columns if name not in (LABEL, WEIGHT)]
        collections = [frame[columns], frame[LABEL], *([frame[WEIGHT]] if weighted else [])]
        if plan.form.is_array or is_from(regressor, "dask_ml."):
            # dask_ml refuses data frames, and partitions of unknown length
            collections = [each.to_dask_array(lengths=True) for each in collections]
        table, targets, *weights = collections
        regressor.fit(table, targets, **({"sample_weight": weights[0]} if weights else {}))
    return model.finish(on_one_machine(regressor), slopes)


def _table_frame(
    frame: pd.DataFrame, plan: Plan, model: DocumentModel, meta: pd.DataFrame
) -> pd.DataFrame:
    """Return the table of a partition with its targets and weights in one frame."""
    rows = _read(frame, plan, model)
    if rows is None:
        return meta
    table, targets, slopes, weight = rows
    joined = _one_frame(table, targets, weight)
    joined.attrs[_SLOPES] = slopes
    return joined


def _one_frame(table: Any, targets: Floats, weight: Floats | None) -> pd.DataFrame:
    joined = pd.DataFrame(table) if isinstance(table, np.ndarray) else table
    joined = joined.rename(columns=str).reset_index(drop=True).assign(**{LABEL: targets})
    return joined if weight is None else joined.assign(**{WEIGHT: weight})


def _slopes_of_frame(frame: pd.DataFrame) -> Any:
    return frame.attrs.get(_SLOPES)


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
