"""The training data of partitions, and the fits of models to them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
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

from sklearn_rankcal.dask._collections import (
    Collections,
    Rows,
    Table,
    add_up,
    delayed_sum,
    for_each,
    is_from,
    n_threads,
    refuse_lost_workers,
    wait_less_long,
)
from sklearn_rankcal.linear import LinearModel
from sklearn_rankcal.losses import LabelSums, Loss
from sklearn_rankcal.models import BilinearPairs, DocumentModel, Model, PairwiseRidge, Training
from sklearn_rankcal.models._context import (
    FEW_DOCUMENTS,
    SAMPLE_ROWS,
    columns_that_differ,
    sampled_queries,
    thinned_rows,
)
from sklearn_rankcal.models._document import weight_arguments
from sklearn_rankcal.models._held_out import FIRST_COLUMNS, folds_of_keys, hash_queries
from sklearn_rankcal.models._sums import has_closed_form
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import SCORES, PairTargets
from sklearn_rankcal.utils._features import hash_values, numeric_table, take_rows
from sklearn_rankcal.utils._numbers import Floats, Ints


def documents(rows: Rows, table: Table) -> Training:
    """Return the rows of a partition, without columns if X was not read."""
    n_rows = rows.queries.n_rows
    X = table.features(rows.given["X"]) if "X" in rows.given else np.empty((n_rows, 0))
    weight = rows.numbers.get("sample_weight")
    return Training(X, None, rows.queries, weight, rows.numbers["y"])


def of_positive_weight(data: Training | None) -> Training | None:
    """Return the rows of positive weight, or None if there are none."""
    if data is None or (data.weight is not None and not data.weight.any()):
        return None
    return data.without_zero_weights()


def extremes(data: Training | None, loss: Loss) -> Floats | None:
    """Check labels; return -min and max of the labels, and -min and max of the weights.

    Only rows of positive weight count; None means that the partition has none. Because all entries
    are maxima, the elementwise maximum of two partitions is correct for both together.
    """
    data = of_positive_weight(data)
    if data is None:
        return None
    labels, weight = data.labels, data.weight
    loss.check(labels)
    weight = np.ones(1) if weight is None else weight
    return np.array([-labels.min(), labels.max(), -weight.min(), weight.max()])


def learnable(data: Training | None, loss: Loss) -> Training | None:
    """Return the rows of positive weight in queries with a defined loss, or None if none exist."""
    data = of_positive_weight(data)
    if data is None:
        return None
    defined = loss.defined(data.labels, data.queries)
    if not defined.any():
        return None
    return data if defined.all() else data.take_queries(defined)


@dataclass(frozen=True)
class Counts:
    """Sums over the queries of the training data.

    The first two count all queries. The remaining fields count only rows of positive weight in
    queries with a defined loss. `sample` has the hashes of ids, the sizes and the ids of the
    queries chosen by `sampled_queries`.
    """

    n_queries: int
    n_documents: int
    n_kept: int
    n_rows: int
    sums: LabelSums
    weight: float
    sample: tuple[NDArray[np.uint64], Ints, NDArray[Any]]

    @classmethod
    def of(cls, every: Training | None, loss: Loss) -> Counts | None:
        """Return the sums of a partition."""
        if every is None:
            return None
        of_all = every.queries.n_queries, every.queries.n_rows
        data = learnable(every, loss)
        if data is None:
            nothing = np.empty(0, np.uint64), np.empty(0, np.int64), every.queries.ids[:0]
            return cls(*of_all, 0, 0, LabelSums(), 0.0, nothing)
        queries = data.queries
        weight = float(queries.n_rows if data.weight is None else data.weight.sum())
        sums = loss.label_sums(data.labels, queries)
        sample = _sample(hash_values(queries.ids), queries.sizes, queries.ids)
        return cls(*of_all, queries.n_queries, queries.n_rows, sums, weight, sample)

    def __add__(self, other: Counts) -> Counts:
        pairs = zip(self.sample, other.sample, strict=True)
        return Counts(
            self.n_queries + other.n_queries,
            self.n_documents + other.n_documents,
            self.n_kept + other.n_kept,
            self.n_rows + other.n_rows,
            self.sums.plus(other.sums),
            self.weight + other.weight,
            _sample(*(np.concatenate(pair) for pair in pairs)),
        )


def _sample(hashes: Any, sizes: Any, ids: Any) -> tuple[Any, Any, Any]:
    chosen = sampled_queries(hashes, sizes)
    return hashes[chosen], sizes[chosen], ids[chosen]


@dataclass(frozen=True)
class TrainingPlan:
    """The rules that turn the rows of a partition into training data, equal for all partitions.

    `loss` and `sums` come from all data. Weights are divided by `weight_unit`, or left out if it is
    None.
    """

    table: Table
    loss: Loss
    sums: LabelSums
    weight_unit: float | None

    def data(self, every: Training | None) -> Training | None:
        """Return the training data of a partition, or None if it has none."""
        data = learnable(every, self.loss)
        if data is None or data.weight is None:
            return data
        weight = None if self.weight_unit is None else data.weight / self.weight_unit
        return replace(data, weight=weight)

    def targets(self, data: Training) -> Any:
        """Return the targets of the rows, or of their pairs."""
        return self.loss.targets_of_part(data.labels, data.queries, self.sums)

    def map(
        self, function: Callable[..., Any], collections: Collections, *more: Any, empty: Any = None
    ) -> list[Any]:
        """Return delayed ``function(training, *more)`` for each partition.

        A partition without training data gives `empty`.
        """

        def call(rows: Rows, *more: Any) -> Any:
            data = self.data(documents(rows, self.table))
            if data is None:
                return empty
            return function(replace(data, targets=self.targets(data)), *more)

        return collections.map(call, *more, empty=empty)

    def largest(self, every: Training | None, center: bool) -> Floats | None:
        """Return the largest absolute target of a partition, and if `center` of centred targets."""
        data = self.data(every)
        if data is None:
            return None
        targets = self.targets(data)
        if isinstance(targets, PairTargets):
            return np.array([targets.largest(), 0.0])
        centred = data.queries.center(targets, data.weight) if center else targets
        return np.array([np.abs(targets).max(), np.abs(centred).max()])


def chosen_columns(columns: list[Any], data: Collections, counts: Counts) -> tuple[list[Any], bool]:
    """Return the columns that `CalibratedRanker` would choose, and whether queries are short."""
    _, sizes, ids = counts.sample
    step = int(sizes.sum()) // SAMPLE_ROWS if counts.n_rows > SAMPLE_ROWS else 1
    read = partial(_sample_of, ids=pd.Index(ids), table=data.table, columns=columns, step=step)
    parts = [part for part in dask.compute(data.map(read))[0] if part is not None]
    sample = pd.concat([part[0] for part in parts], ignore_index=True)
    queries = Queries.from_groups(np.concatenate([part[1] for part in parts]))
    table = sample.to_numpy() if data.table.is_array else sample
    return columns_that_differ(table, columns, queries), queries.sizes.mean() < FEW_DOCUMENTS


def _sample_of(
    rows: Rows, ids: pd.Index, table: Table, columns: list[Any], step: int
) -> tuple[pd.DataFrame, NDArray[Any]] | None:
    """Return columns and query ids of the rows of some queries, every `step`-th row if above 1."""
    data = of_positive_weight(documents(rows, table))
    if data is None:
        return None
    chosen = pd.Index(data.queries.ids).isin(ids)
    if not chosen.any():
        return None
    data = data.take_queries(chosen)
    X, groups = data.X, data.queries.ids[data.queries.codes]
    if step > 1:
        kept, _ = thinned_rows(X, data.queries, step)
        X, groups = take_rows(X, kept), groups[kept]
    return pd.DataFrame(X) if table.is_array else X[columns], groups


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
    if isinstance(regressor, Model) or not (fits or hasattr(regressor, "partial_fit")):
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


def fit_model(
    plan: TrainingPlan,
    data: Collections,
    model: Any,
    regressor: Any,
    n_queries: int,
    n_passes: int,
) -> Any:
    """Fit a model of pairs or a linear model, or the regressor of a model of documents."""
    if isinstance(model, BilinearPairs):
        return _fit_bilinear_pairs(plan, data, model, n_queries)
    if isinstance(model, LinearModel):
        parts = plan.map(lambda training: (training,), data)
        return _learn_in_turn(parts, clone(model), LinearModel.partial_fit, n_passes)
    if isinstance(model, PairwiseRidge):
        return _fit_closed_form(plan, data, model)
    if takes_collections(regressor):
        return _fit_collection(plan, data, model, regressor)
    if not has_closed_form(regressor):
        return _fit_partially(plan, data, model, n_passes)
    model = _fit_closed_form(plan, data, model)
    # set `feature_names_in_` like a `fit` on a data frame
    names = list(getattr(plan.table.features(plan.table.meta), "columns", []))
    if names and all(isinstance(name, str) for name in names):
        model.regressor_.feature_names_in_ = np.array(model.table_names(names), dtype=object)
    return model


# ---------------------------------------------------------------- closed forms


def _fit_closed_form(plan: TrainingPlan, data: Collections, model: Any) -> Any:
    """Fit a model that has `sums` and `solve` by adding up the sums of the partitions."""
    return model.solve(add_up(plan.map(model.sums, data)))


def _fit_bilinear_pairs(
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


def _fit_partially(
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


def _fit_collection(
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
