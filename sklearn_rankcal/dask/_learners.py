"""Functions that fit a model to training data in partitions."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from itertools import compress
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask import delayed
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.pipeline import Pipeline

from sklearn_rankcal.dask._collections import Collections
from sklearn_rankcal.dask._training import TrainingPlan
from sklearn_rankcal.dask._workers import (
    add_up,
    delayed_sum,
    for_each,
    is_from,
    n_threads,
    refuse_lost_workers,
    wait_less_long,
)
from sklearn_rankcal.linear import LinearModel
from sklearn_rankcal.models import (
    BilinearPairs,
    DocumentModel,
    PairwiseRidge,
    Training,
    is_model,
)
from sklearn_rankcal.models._document import weight_arguments
from sklearn_rankcal.models._folds import FIRST_COLUMNS, folds_of_keys, hash_queries
from sklearn_rankcal.models._sums import has_closed_form
from sklearn_rankcal.targets import SCORES
from sklearn_rankcal.utils._features import numeric_table

_TAKEN = (
    "Ridge or LinearRegression of scikit-learn, which are fitted in closed form; a regressor with "
    "partial_fit, such as SGDRegressor; lightgbm.DaskLGBMRegressor, "
    "xgboost.dask.DaskXGBRegressor, or a regressor of dask_ml or cuml.dask; or, for loss='pd' and "
    "'map', PairwiseRidge or BilinearPairs of sklearn_rankcal.models"
)


def takes_collections(regressor: Any) -> bool:
    """Return whether the `fit` method of the regressor accepts dask collections."""
    if isinstance(regressor, Pipeline):
        return all(takes_collections(step) for _, step in regressor.steps)
    return is_from(regressor, "lightgbm.dask", "xgboost.dask", "dask_ml.", "cuml.dask")


def check_regressor(regressor: Any, space: Any, loss: Any) -> None:
    """Raise an error if no function of this module can fit the regressor."""
    name = type(regressor).__name__
    predicted = getattr(regressor, "space", SCORES)
    if predicted != space:
        remedy = (
            " Pass PairwiseRidge() or BilinearPairs(), or use loss='pd_by_scores' or "
            "'map_by_scores', which need scores."
        )
        raise ValueError(
            f"{name} predicts {predicted}, but loss={loss!r} needs {space}."
            f"{remedy if space.is_pairwise else ''}"
        )
    if isinstance(regressor, PairwiseRidge | BilinearPairs):
        return
    if isinstance(regressor, LinearModel):
        if regressor.solver != "sgd":
            raise ValueError("LinearModel on partitions needs solver='sgd'.")
        return
    fits = has_closed_form(regressor) or takes_collections(regressor)
    if is_model(regressor) or not (fits or hasattr(regressor, "partial_fit")):
        reason = "cannot be fitted to partitions of a dask collection"
    elif is_classifier(regressor):
        reason = "is a classifier, which needs to know the targets of all partitions at once"
    else:
        reason = None
    if reason is not None:
        raise TypeError(f"{name} {reason}. Pass {_TAKEN}.")
    if has_closed_form(regressor):
        regressor._validate_params()


def check_columns(table: pd.DataFrame | NDArray[Any], regressor: Any) -> None:
    """Raise an error for columns of text or times, unless a dask library checks them itself."""
    if isinstance(table, np.ndarray) or takes_collections(regressor):
        return
    found = {name: dtype for name, dtype in table.dtypes.items() if _is_text_or_time(dtype)}
    if found:
        raise ValueError(
            f"{type(regressor).__name__} needs numbers, but columns of X contain text or times: "
            f"{', '.join(f'{name!r} ({dtype})' for name, dtype in found.items())}. If one of them "
            "contains query ids, name it as group_column. Otherwise drop or encode it."
        )


def _is_text_or_time(dtype: Any) -> bool:
    if isinstance(dtype, pd.CategoricalDtype):
        dtype = dtype.categories.dtype
    return isinstance(dtype, pd.StringDtype) or getattr(dtype, "kind", "O") in "mMSU"


# ---------------------------------------------------------------- closed forms


def fit_closed_form(plan: TrainingPlan, data: Collections, model: Any) -> Any:
    """Fit a model that has `sums` and `solve` by adding up the sums of the partitions."""
    return model.solve(add_up(plan.map(model.sums, data)))


def fit_bilinear_pairs(
    plan: TrainingPlan, data: Collections, model: BilinearPairs, n_queries: int
) -> BilinearPairs:
    """Fit `BilinearPairs` in two passes: first the features, then the sums over their pairs."""
    n_folds = model.n_folds(n_queries)
    # Pass 1: the spread of the columns, and the hashes that assign queries to folds.
    spread = plan.map(model.spread, data)
    total, keys = dask.compute(delayed_sum(spread), _query_keys(plan, data, FIRST_COLUMNS))
    model.set_features(total)
    if n_folds > 1 and len(np.unique(np.concatenate(keys))) < n_queries:
        keys = dask.compute(_query_keys(plan, data, None))[0]
    ends = np.cumsum([len(part) for part in keys])
    folds = np.split(folds_of_keys(np.concatenate(keys), n_folds), ends[:-1])
    # Pass 2: the sums over pairs of features.
    sums = partial(model.sums, n_folds=n_folds)
    return model.solve(add_up(plan.map(sums, data, folds)))


def _query_keys(plan: TrainingPlan, data: Collections, n_columns: int | None) -> list[Any]:
    """Hash the contents of each query, from its first `n_columns` columns or all (None)."""

    def hashes(training: Training) -> NDArray[np.uint64]:
        queries = training.queries
        places = queries.gather(np.arange(queries.n_rows))
        return hash_queries(numeric_table(training.X)[:, :n_columns], places, queries)[0]

    return plan.map(hashes, data, empty=np.empty(0, np.uint64))


# ---------------------------------------------------------------- one partition after another


def fit_partially(
    plan: TrainingPlan, data: Collections, model: DocumentModel, n_passes: int
) -> DocumentModel:
    """Call `partial_fit` on one partition after another, `n_passes` times."""

    def learn(state: tuple[Any, Any], table: Any, targets: Any, slopes: Any, weight: Any) -> Any:
        regressor, total = state
        regressor.partial_fit(table, targets, **weight_arguments(regressor, weight))
        return regressor, slopes if total is None else total + slopes

    parts = plan.map(partial(_read, model), data)
    first = clone(model.regressor), None
    return model.finish(*_learn_in_turn(parts, first, learn, n_passes))


def _read(model: DocumentModel, training: Training) -> Any:
    """Return the result of `DocumentModel.read` and the weights of the rows."""
    return *model.read(training), training.weight


def fit_linear_model(
    plan: TrainingPlan, data: Collections, model: LinearModel, n_passes: int
) -> LinearModel:
    """Fit `LinearModel` by the stochastic gradient method, one partition after another."""
    parts = plan.map(lambda training: (training,), data)
    return _learn_in_turn(parts, clone(model), LinearModel.partial_fit, n_passes)


def _learn_in_turn(parts: list[Any], first: Any, learn: Callable[..., Any], n_passes: int) -> Any:
    """Return ``learn(... learn(learn(first, *parts[0]), *parts[1]) ..., *parts[-1])``.

    All parts are learned `n_passes` times. A batch has one part per thread. The workers compute
    the next batch while the current one is learned, which keeps at most two batches in memory.
    """

    def learned(state: Any, part: Any) -> Any:
        # A task may run again after a worker is lost: it must not modify its arguments.
        return state if part is None else learn(copy.deepcopy(state), *part)

    size, call = n_threads(), delayed(learned, pure=False)
    batches = [parts[start : start + size] for start in range(0, len(parts), size)] * n_passes
    ready, state = dask.persist(*batches[0]), first
    for batch in [*batches[1:], []]:
        model = delayed(state)
        for part in ready:
            model = call(model, part)
        ready = dask.persist(*batch)  # with distributed, this does not wait for the result
        state = dask.compute(model)[0]
    return state


# ---------------------------------------------------------------- regressors of dask

_SLOPES = "sklearn_rankcal slopes"  # an attribute of the frames
#: Columns of the frames in addition to the columns of the table.
_TARGETS, _WEIGHTS = "sklearn_rankcal targets", "sklearn_rankcal weights"


def fit_collection(
    plan: TrainingPlan, data: Collections, model: DocumentModel, regressor: Any
) -> DocumentModel:
    """Fit a dask regressor to the tables of all partitions, and return it for one machine.

    The workers keep the tables in memory during the fit.
    """
    regressor = wait_less_long(clone(regressor))
    with refuse_lost_workers(regressor):
        parts = dask.persist(*plan.map(partial(_table_frame, model), data))
        # LightGBM fails on a worker without rows.
        has_rows = dask.compute(for_each(lambda part: part is not None, parts))[0]
        parts = list(compress(parts, has_rows))
        slopes = add_up(for_each(lambda part: part.attrs.get(_SLOPES), parts))
        # Partitions can have other dtypes than the first one, for example whole numbers.
        frame = dd.from_delayed(parts, verify_meta=False).persist()
        columns = [name for name in frame.columns if name not in (_TARGETS, _WEIGHTS)]
        weights = [] if plan.weight_unit is None else [frame[_WEIGHTS]]
        collections = [frame[columns], frame[_TARGETS], *weights]
        if plan.table.is_array or is_from(regressor, "dask_ml."):
            # dask_ml rejects data frames, and partitions of unknown length.
            collections = [each.to_dask_array(lengths=True) for each in collections]
        table, targets, *weights = collections
        regressor.fit(table, targets, **({"sample_weight": weights[0]} if weights else {}))
    return model.finish(on_one_machine(regressor), slopes)


def _table_frame(model: DocumentModel, training: Training) -> pd.DataFrame:
    """Return one frame with the table of a partition, its targets and its weights."""
    table, targets, slopes, weight = _read(model, training)
    joined = pd.DataFrame(table) if isinstance(table, np.ndarray) else table
    joined = joined.rename(columns=str).reset_index(drop=True).assign(**{_TARGETS: targets})
    if weight is not None:
        joined = joined.assign(**{_WEIGHTS: weight})
    joined.attrs[_SLOPES] = slopes
    return joined


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
    """Return the equivalent unfitted regressor for one machine, with the same parameters."""
    for root, name in {"lightgbm": "LGBMRegressor", "xgboost": "XGBRegressor"}.items():
        if is_from(regressor, f"{root}.dask"):
            parameters = regressor.get_params()
            for of_dask in ("client", "coll_cfg"):
                parameters.pop(of_dask, None)
            return getattr(__import__(root), name)(**parameters)
    return clone(regressor)
