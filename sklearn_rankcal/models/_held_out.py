"""Held-out queries: folds of whole queries, and the number of iterations that is best on them.

After each iteration of a boosted regressor, it predicts the validation rows, and a `Validation`
evaluates the predictions and their rankings. `_FITS` has a function for each library.
"""

from __future__ import annotations

import copy
import heapq
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import compress, islice
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils import check_random_state

from sklearn_rankcal.models._column_parameters import library_of
from sklearn_rankcal.models._model import Training, Validation
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._estimators import clone
from sklearn_rankcal.utils._features import (
    column_values,
    hash_rows,
    is_dataframe,
    numeric_columns,
    replace_columns,
    take_rows,
)
from sklearn_rankcal.utils._memory import allowed_threads
from sklearn_rankcal.utils._messages import counted
from sklearn_rankcal.utils._numbers import Floats, Ints
from sklearn_rankcal.utils._sklearn_compat import bins_once, cut_iterations

#: Number of columns that usually distinguish queries.
FIRST_COLUMNS = 8


def query_folds(X: Any, queries: Queries, n_folds: int, labels: Floats | None = None) -> Ints:
    """Assign each query to one of `n_folds` folds, at most the number of queries.

    The folds depend on hashes of the contents of the queries, not on the order of queries or rows.
    Queries with equal documents share a fold. Otherwise, a held-out query could have been seen in
    training. If more than ``n_queries // n_folds`` queries have equal documents, they do not fit in
    one fold and are distributed over the folds, in an order determined by `labels` of the rows. If
    no two queries have equal documents, the sizes of two folds differ by at most one query. No fold
    is empty.
    """
    n = queries.n_queries
    if n_folds == 1:
        return np.zeros(n, dtype=np.int64)
    places = queries.gather(np.arange(queries.n_rows))
    some = X.iloc[:, :FIRST_COLUMNS] if hasattr(X, "iloc") else X[:, :FIRST_COLUMNS]
    keys, rows = hash_queries(some, places, queries)
    order = np.argsort(keys, kind="stable")
    if (np.diff(keys[order]) > 0).all():
        return folds_of_keys(keys, n_folds)
    # use all columns, and break ties by documents with their labels
    if X.shape[1] > FIRST_COLUMNS:
        keys, rows = hash_queries(X, places, queries)
    ties = np.zeros(n, dtype=np.uint64)
    if labels is not None:
        # the upper 53 bits of a hash are exact in float64
        both = np.column_stack([rows >> np.uint64(11), labels[places]])
        ties, _ = hash_queries(both, np.arange(len(places)), queries)
    return folds_of_keys(keys, n_folds, ties)


@dataclass(eq=False)
class Fold:
    """Rows that are learned and held out, and the held-out queries."""

    rows: Any
    held: Any
    queries: Queries
    weight: Floats | None  # of the learned rows
    held_weight: Floats | None
    share: float = 1.0  # of the queries


# All folds together learn from this number of rows, and of relevant documents (those above the
# smallest target of their query): one purchase per page of offers is little information. Of a
# larger table, they learn from six sevenths of the queries. More than that helps little.
_ROWS_TO_LEARN, _RELEVANT_TO_LEARN = 40_000, 4_000
_MANY_FOLDS, _PARTS = 7, 10
# Beside each relevant document, more documents than this hardly reduce the variance of a model.
_OTHERS_TO_LEARN = 20


def divide_queries(model: Any, training: Training, *, all_rows: bool) -> tuple[Ints, list[Fold]]:
    """Return the fold that holds out each query, or -1, and the folds.

    There are `model.cv` folds. If fewer queries are enough to learn from, the queries are divided
    into seven. The first folds are used, and of the last one, the queries that are still needed. If
    few documents are relevant, the folds learn from all of these and from a share of the others,
    with larger weights. So the cost of a fit has no jump where the data grow a little.
    """
    queries, targets, weight = training.queries, training.targets, training.weight
    n_folds = model.cv
    if queries.n_queries < n_folds:
        raise ValueError(
            f"{type(model).__name__} divides the queries into cv={n_folds} folds, but there are "
            f"only {counted(queries.n_queries, 'query')} to learn from."
        )
    n_learned, share = n_folds - 1.0, 1.0  # n_learned in units of all queries
    relevant = targets > queries.broadcast(queries.min(targets))
    if queries.n_queries >= _MANY_FOLDS * _PARTS and not all_rows:
        n_relevant = max(1, int(relevant.sum()))
        n_others = max(_ROWS_TO_LEARN / 2 - n_relevant, _OTHERS_TO_LEARN * n_relevant)
        share = min(1.0, n_others / max(1, len(targets) - n_relevant))
        enough = max(_ROWS_TO_LEARN / len(targets), _RELEVANT_TO_LEARN / n_relevant)
        if enough < n_learned:
            n_folds, n_learned = _MANY_FOLDS, max(enough, 1 - 1 / _MANY_FOLDS)
    known = training.labels if isinstance(training.labels, np.ndarray) else targets
    number, part = (query_folds(training.X, queries, n, known) for n in (n_folds, _PARTS))
    if share < 1:
        # sort the others by contents: every k-th is then a share of any group of equal rows
        hashes, position = hash_rows(training.X, np.arange(len(targets))), np.zeros(len(targets))
        order = np.lexsort((queries.broadcast(queries.sum(hashes)), hashes))
        others = order[~relevant[order]]
        position[others] = share * np.arange(len(others))
        weight = np.where(relevant, 1.0, 1 / share) * (1.0 if weight is None else weight)
    fold_of_query, folds = np.full(queries.n_queries, -1), []
    for place in range(n_folds):
        n_parts = round(_PARTS * min(1.0, n_learned * n_folds / (n_folds - 1) - place))
        out, some = number == place, part < n_parts
        if not (out & some).any():
            continue
        fold_of_query[out & some] = place
        (rows, _), (held, held_out) = queries.select(some & ~out), queries.select(some & out)
        # A regressor with a penalty learns less from smaller weights. Scale them to the mean of all
        # weights. Otherwise, the scores of different folds could have different scales.
        scale = 1.0 if weight is None else weight.mean() / weight[rows].mean()
        if share < 1:  # each fold has other rows
            rows = rows[relevant[rows] | ((position[rows] + place / n_folds) % 1 < share)]
        learned = None if weight is None else weight[rows] * scale
        held_weight = None if training.weight is None else training.weight[held]
        folds.append(Fold(rows, held, held_out, learned, held_weight, n_parts / _PARTS))
    return fold_of_query, folds


def fits_at_once(n_jobs: int | None) -> int:
    """Return the number of threads for fits (see `n_jobs` of `BoostingCV`)."""
    if n_jobs is None and effective_n_jobs(None) == 1:
        return allowed_threads()
    return effective_n_jobs(n_jobs)


def folds_of_keys(
    keys: NDArray[np.uint64], n_folds: int, ties: NDArray[np.uint64] | None = None
) -> Ints:
    """Assign queries to folds by hashes of their contents, as `query_folds` does.

    `ties` determine the order in which queries with equal keys are distributed.
    """
    n = len(keys)
    folds = np.empty(n, dtype=np.int64)
    order = np.argsort(keys, kind="stable") if ties is None else np.lexsort((ties, keys))
    # Step 1: find runs of equal queries. Split runs that are longer than a fold.
    begins = np.append(True, np.diff(keys[order]) > 0)
    if begins.all():
        folds[order] = np.arange(n) % n_folds
        return folds
    sizes = np.diff(np.append(np.flatnonzero(begins), n))
    begins |= np.repeat(sizes > n // n_folds, sizes)
    starts = np.flatnonzero(begins)
    sizes = np.diff(np.append(starts, n))
    # Step 2: assign the longest runs first, each to the fold with the fewest queries.
    heap = [(0, fold) for fold in range(n_folds)]
    for run in np.argsort(-sizes, kind="stable").tolist():
        start, size = int(starts[run]), int(sizes[run])
        held, fold = heap[0]
        folds[order[start : start + size]] = fold
        heapq.heapreplace(heap, (held + size, fold))
    return folds


def hash_queries(
    X: Any, places: Ints, queries: Queries
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the hash of each query and of each row, the rows in grouped layout."""
    rows = hash_rows(X, places)
    return queries.reduce(np.add, rows), rows


#: Trees of scikit-learn read float32, and refuse infinity and numbers above 3e38. They also sum all
#: numbers of a table. 10^8 numbers up to this limit do not overflow.
LARGEST = 1e30


def suits_forests(values: Any) -> bool:
    """Whether all numbers of an array are between -1e30 and 1e30, or NaN."""
    if not isinstance(values, np.ndarray) or values.dtype.kind != "f":
        return True  # integers are far smaller
    return not (np.abs(values) > LARGEST).any()


def fill_empty_columns(part: Any) -> Any:
    """Return a table with 0 in columns of numbers that are entirely missing.

    Histogram boosting of scikit-learn does not support such columns. A constant column has no
    effect. Columns of categories may be empty.
    """
    frame, columns = is_dataframe(part), numeric_columns(part)
    if not columns or (not frame and part.dtype.kind != "f"):
        return part
    gaps = np.isnan(column_values(take_rows(part, slice(1)), columns)[0])
    candidates = list(compress(columns, gaps))
    if not candidates:
        return part
    values = np.isnan(column_values(part, candidates) if frame else part[:, candidates])
    empty = list(compress(candidates, values.all(axis=0)))
    if frame:
        return replace_columns(part, dict.fromkeys(empty, 0.0))
    return np.where(np.isin(columns, empty), 0.0, part)


@dataclass
class BoostingRun:
    """An unfitted regressor, its data, and the validation queries.

    `weights` are keyword arguments of `fit`. `as_scores` converts predictions of the regressor, or
    probabilities of a classifier, to scores of documents.
    """

    regressor: Any
    table: Any
    targets: NDArray[Any]
    weights: dict[str, Any]
    validation: Validation
    validation_table: Any
    as_scores: Callable[[Any], Floats]
    started: float = field(default_factory=time.perf_counter)

    def record(self, predicted: Any) -> None:
        """Evaluate the predictions for the validation rows after one more iteration."""
        self.validation.record(self.as_scores(predicted))

    def report(self, n_max: int) -> None:
        """Show the progress of at most `n_max` iterations."""
        self.validation.report(n_max, time.perf_counter() - self.started)

    def fit(self, regressor: Any, **arguments: Any) -> Any:
        """Fit a regressor to the data."""
        return regressor.fit(self.table, self.targets, **self.weights, **arguments)

    def evaluation_set(self) -> tuple[Any, NDArray[Any]]:
        """Return the validation rows, with dummy targets for libraries that need them."""
        n_rows = self.validation.held_out.queries.n_rows
        return self.validation_table, np.repeat(self.targets[:1], n_rows)


def _fit_by_warm_start(run: BoostingRun) -> Any:
    """Fit boosting of scikit-learn in steps, each half as long as all previous steps together.

    The first steps have twice `n_iter_no_change` iterations. Shorter steps would take several times
    as long, because each warm start predicts the training rows by all trees so far.

    For histogram boosting, remove the iterations after the best. Other regressors continue from a
    copy before the step with the best iteration. Both have exactly the trees that were evaluated,
    even if trees are random.
    """
    regressor, validation = run.regressor, run.validation
    size = "max_iter" if hasattr(regressor, "max_iter") else "n_estimators"
    given = regressor.get_params(deep=False)
    n_max, n_done = given[size], 0
    changed = {"warm_start": True}
    if "early_stopping" in given:
        changed["early_stopping"] = False
    if not isinstance(given["random_state"], int | np.integer):
        seeds = check_random_state(given["random_state"])
        changed["random_state"] = seeds.randint(2**31 - 1)
    regressor.set_params(**changed)
    before = copy.deepcopy(regressor)  # copy before the step with the best iteration
    with bins_once(regressor):
        while n_done < n_max and not validation.stops:
            earlier = copy.deepcopy(regressor)
            n_next = min(n_max, n_done + max(2 * validation.n_iter_no_change, n_done // 2))
            run.fit(regressor.set_params(**{size: n_next}))
            staged = getattr(
                regressor, "staged_predict_proba" if is_classifier(regressor) else "staged_predict"
            )
            for predicted in islice(staged(run.validation_table), n_done, None):
                run.record(predicted)
                if validation.stops:
                    break
            if validation.n_iter > n_done:
                before = earlier
            n_done = n_next
            run.report(n_max)
    if validation.n_iter < n_done and not cut_iterations(regressor, validation.n_iter):
        regressor = run.fit(before.set_params(**{size: validation.n_iter}))
    return regressor.set_params(**{name: given[name] for name in [size, *changed]})


def _fit_lightgbm(run: BoostingRun) -> Any:
    """Fit a regressor of LightGBM. It keeps all trees and predicts by those up to the best."""
    from lightgbm import EarlyStopException

    validation, best = run.validation, []

    def metric(_: Any, predicted: Floats) -> tuple[str, float, bool]:
        run.record(predicted)
        return "validation", validation.scores[-1], True

    def callback(env: Any) -> None:
        nonlocal best
        if validation.n_iter == len(validation.scores):
            best = env.evaluation_result_list
        run.report(env.end_iteration)
        if validation.stops or env.iteration == env.end_iteration - 1:
            raise EarlyStopException(validation.n_iter - 1, best)

    table, targets = run.evaluation_set()
    regressor = run.regressor.set_params(metric="None")  # no metric of LightGBM itself
    return run.fit(
        regressor, eval_X=table, eval_y=targets, eval_metric=metric, callbacks=[callback]
    )


def _fit_xgboost(run: BoostingRun) -> Any:
    """Fit a regressor of XGBoost, and remove the trees after the best number."""
    from xgboost.callback import TrainingCallback

    regressor, validation = run.regressor, run.validation
    n_max = regressor.get_num_boosting_rounds()

    def metric(_: Any, predicted: Floats) -> float:
        run.record(predicted)
        return validation.scores[-1]

    class StopAtBest(TrainingCallback):
        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            run.report(n_max)
            return validation.stops

        def after_training(self, model: Any) -> Any:
            return model[: validation.n_iter]

    given = {name: regressor.get_params()[name] for name in ("eval_metric", "callbacks")}
    callbacks = [*(given["callbacks"] or []), StopAtBest()]
    regressor.set_params(eval_metric=metric, callbacks=callbacks)
    run.fit(regressor, eval_set=[run.evaluation_set()], verbose=False)
    return regressor.set_params(**given)


class _LastPredictions:
    """A metric for CatBoost that keeps the predictions, and a callback that evaluates them.

    CatBoost calls the metric for the training rows, then for the validation rows, and then the
    callback.
    """

    def __init__(self, run: BoostingRun, n_max: int) -> None:
        self._run = run
        self._n_max = n_max
        self._predicted = np.zeros(0)

    def __deepcopy__(self, memo: Any) -> _LastPredictions:
        return self  # CatBoost copies its parameters

    def is_max_optimal(self) -> bool:
        return True

    def evaluate(self, approxes: Any, target: Any, weight: Any) -> tuple[float, float]:
        self._predicted = np.array(approxes[0])
        return 0.0, 1.0

    def get_final_error(self, error: float, weight: float) -> float:
        return error

    def after_iteration(self, info: Any) -> bool:
        self._run.record(self._predicted)
        self._run.report(self._n_max)
        return not self._run.validation.stops


def _fit_catboost(run: BoostingRun) -> Any:
    """Find the number of iterations with one regressor of CatBoost, and fit a second with it.

    A fitted regressor would keep the metric among its parameters. The second regressor gets the
    learning rate of the first, because its default depends on the number of iterations.
    """
    regressor = run.regressor
    given = regressor.get_params()
    size = next((name for name in _CATBOOST_SIZES if name in given), "iterations")
    n_max = given.get(size, 1000)
    metric = _LastPredictions(run, n_max)
    first = clone(regressor).set_params(eval_metric=metric, metric_period=1)
    with warnings.catch_warnings():
        # CatBoost tries to compile the metric with numba
        warnings.filterwarnings("ignore", "Failed to import numba|Can't opti")
        run.fit(first, eval_set=run.evaluation_set(), use_best_model=False, callbacks=[metric])
    rate = {name for name in ("learning_rate", "eta") if name in given}
    if not rate:
        regressor.set_params(learning_rate=first.learning_rate_)
    return run.fit(regressor.set_params(**{size: run.validation.n_iter}))


_CATBOOST_SIZES = ("iterations", "n_estimators", "num_boost_round", "num_trees")

#: Function that fits a class and its subclasses. None: it cannot stop early.
_FITS: dict[str, Callable[[BoostingRun], Any] | None] = {
    "sklearn.HistGradientBoostingRegressor": _fit_by_warm_start,
    "sklearn.HistGradientBoostingClassifier": _fit_by_warm_start,
    "sklearn.GradientBoostingRegressor": _fit_by_warm_start,
    "sklearn.GradientBoostingClassifier": _fit_by_warm_start,
    "lightgbm.LGBMRegressor": _fit_lightgbm,
    "lightgbm.LGBMClassifier": _fit_lightgbm,
    "xgboost.XGBRegressor": _fit_xgboost,
    "xgboost.XGBClassifier": _fit_xgboost,
    "xgboost.XGBRFRegressor": None,  # an XGBRegressor with a single iteration
    "xgboost.XGBRFClassifier": None,
    "catboost.CatBoostRegressor": _fit_catboost,
}

#: Parameters of early stopping by a library itself, and metrics that would replace ours.
_CONFLICTS = (
    "early_stopping",
    "early_stopping_round",
    "early_stopping_rounds",
    "n_iter_no_change",
    "od_type",
    "od_wait",
    "od_pval",
    "eval_metric",
    "metric",
    "custom_metric",
)

#: Boosting whose first iterations are not a model: it changes earlier trees, or has no trees.
_NOT_INCREMENTAL = {"boosting_type": ("dart", "rf"), "booster": ("dart", "gblinear")}


def _how_to_fit(regressor: Any) -> Callable[[BoostingRun], Any] | None:
    for kind in type(regressor).__mro__:
        name = f"{kind.__module__.partition('.')[0]}.{kind.__name__}"
        if name in _FITS:
            return _FITS[name]
    return None


def can_stop_early(regressor: Any) -> bool:
    """Return whether a regressor can stop early. None is the default regressor."""
    return regressor is None or _how_to_fit(regressor) is not None


def check_stops_early(model: Any) -> None:
    """Raise TypeError if validation queries cannot choose the number of iterations of a model."""
    if model.stops_early:
        return
    regressor = getattr(model, "regressor", None)
    part = model if can_stop_early(regressor) else regressor
    inside = (
        "Pass the boosted regressor itself to the ranker, and put the ranker at the end of the "
        "pipeline, with validation_queries=0.2. "
        if hasattr(part, "steps")
        else ""
    )
    known = ", ".join(one.partition(".")[2] for one, how in _FITS.items() if how is not None)
    raise TypeError(
        f"{type(part).__name__} cannot stop early on validation queries. {inside}These regressors "
        f"can: {known}; and None, the default regressor. With a loss on pairs, these models can: "
        "ResidualPairModel and ResidualProductModel, with DocumentModel(regressor) for their "
        "scores."
    )


#: Names of the patience in LightGBM and XGBoost.
_ROUNDS = ("early_stopping_rounds", "early_stopping_round", "early_stopping", "n_iter_no_change")


def check_stopping(regressor: Any, by_validation: bool) -> None:
    """Check that a regressor stops early only by validation queries.

    Raise ValueError if its parameters request other early stopping, or boosting that changes
    earlier trees.
    """
    if not by_validation:
        _refuse_own_stopping(regressor)
        return
    name = type(regressor).__name__
    parameters = regressor.get_params(deep=False)
    for parameter in _CONFLICTS:
        value = parameters.get(parameter)
        if parameter == "n_iter_no_change" and "early_stopping" in parameters:
            continue  # it has no effect while early_stopping is off
        if value is None or value is False or value in ("auto", "None"):
            continue
        raise ValueError(
            f"Validation queries determine when training stops, and by which metric. "
            f"{name} has {parameter}={value!r}, which would do this, too. Remove it."
        )
    for parameter, values in _NOT_INCREMENTAL.items():
        if parameters.get(parameter) in values:
            raise ValueError(
                f"{name} cannot stop early with {parameter}={parameters[parameter]!r}, because its "
                "first iterations are not a regressor."
            )


def _refuse_own_stopping(regressor: Any) -> None:
    """Raise ValueError if LightGBM or XGBoost needs validation rows for its early stopping.

    scikit-learn and CatBoost fit without them.
    """
    if library_of(regressor) not in ("lightgbm", "xgboost"):
        return
    parameters = regressor.get_params(deep=False)
    for name in _ROUNDS:
        if parameters.get(name):
            raise ValueError(
                f"{type(regressor).__name__} has {name}={parameters[name]!r}, but it gets no "
                "validation rows. Remove it, and create the ranker with validation_queries=0.2 and "
                f"n_iter_no_change={parameters[name]!r}, or pass X_val, y_val and groups_val to "
                "fit."
            )


def fit_until_best(run: BoostingRun) -> Any:
    """Return the fitted regressor with the best number of iterations.

    The regressor of the run must pass `check_stopping`, and may be changed.
    """
    how = _how_to_fit(run.regressor)
    assert how is not None
    return how(run)
