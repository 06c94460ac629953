"""`fit`, shared by CalibratedRanker, LinearRanker and BoostedRanker, and its validation queries."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from sklearn_rankcal.decoders._batches import not_a_result
from sklearn_rankcal.decoders._registry import get_decoder
from sklearn_rankcal.labels._labels import agreed_queries
from sklearn_rankcal.losses import Choice, Loss, get_loss
from sklearn_rankcal.models import Training
from sklearn_rankcal.models._held_out import check_stops_early
from sklearn_rankcal.models._member_weights import log_loss_of_shares
from sklearn_rankcal.models._model import Validation
from sklearn_rankcal.queries import Queries, check_weight, mean_over_queries
from sklearn_rankcal.rankers import _advice
from sklearn_rankcal.rankers._input import Schema, warn_of_one_query
from sklearn_rankcal.targets import SCORES
from sklearn_rankcal.utils._estimators import set_random_states, set_verbose
from sklearn_rankcal.utils._features import hash_rows, warn_of_other_order
from sklearn_rankcal.utils._messages import all_of, check_count, counted, print_progress

_OF_VALIDATION = ("n_iter_", "validation_scores_", "validation_queries_")  # attributes


class ValidationArguments(NamedTuple):
    """The arguments of `fit` with validation queries."""

    X_val: Any
    y_val: Any
    groups_val: ArrayLike | None
    sample_weight_val: ArrayLike | None


def fit(
    ranker: Any,
    X: Any,
    y: Any,
    groups: ArrayLike | None,
    sample_weight: ArrayLike | None,
    validation: ValidationArguments | None = None,
    clusters: ArrayLike | None = None,
) -> None:
    """Fit a ranker: check, read, advise, hold out, choose a model, fit it, store.

    `validation` is None for rankers that take no validation queries. `ranker._table_needs` returns
    what the model needs of X, and `ranker._prepare` the model, and the data with its targets.
    """
    # check
    loss = get_loss(ranker.loss)
    decoder = get_decoder(ranker.decoder, loss.space)
    # read
    schema, rows, named, grouped = read_rows(ranker, loss, X, y, groups, sample_weight)
    queries, held_out = rows.queries, None
    if clusters is not None:
        rows = replace(rows, clusters=Queries.from_groups(clusters, queries.n_rows).codes)
    if validation is not None:
        if isinstance(ranker.n_iter_no_change, bool):  # a number for scikit-learn's constraints
            check_count(ranker.n_iter_no_change, "n_iter_no_change")
        if [one for one in validation if one is not None]:
            held_out = read_validation(ranker, loss, schema, grouped, named, validation)
    # advise
    _advice.advise(ranker, rows)
    data = rows.judged()
    if data.weight is not None:
        data = data.without_zero_weights()
    loss = loss.resolve(data.labels)
    if isinstance(data.labels, np.ndarray) and data.labels.max() > _advice.LARGEST_GRADE:
        _advice.warn_of_amounts(loss)
    # hold out
    data = data.without_undefined_queries(loss)
    n_dropped = queries.n_queries - data.queries.n_queries
    if ranker.validation_queries is not None:
        data, held_out = hold_out(data, ranker.validation_queries, ranker.random_state)
    if (factor := loss.row_weight(data.labels, data.queries)) is not None:
        data = data.weighted_by(factor).without_zero_weights()
    # choose a model, and fit it
    model, data = ranker._prepare(loss, data, held_out, grouped)
    if ranker.random_state is not None:
        set_random_states(model, ranker.random_state)
    if ranker.verbose:
        set_verbose(model, ranker.verbose - 1)
    stopping = None
    if held_out is not None:
        stopping = make_validation(ranker, loss, decoder, model, data, held_out)
    if ranker.verbose:
        report_start(ranker, loss, model, data, n_dropped, stopping)
    started = time.perf_counter()
    model = model.fit(replace(data, validation=stopping))
    # store
    schema.keep(ranker)
    ranker.model_, ranker.loss_, ranker.decoder_, ranker.grouped_ = model, loss, decoder, grouped
    ranker.n_queries_, ranker.n_queries_dropped_ = queries.n_queries, n_dropped
    for name in _OF_VALIDATION:
        vars(ranker).pop(name, None)  # of an earlier fit
    if stopping is not None:
        ranker.n_iter_, ranker.validation_scores_ = stopping.n_iter, np.array(stopping.scores)
        ranker.validation_queries_ = stopping.held_out.queries.ids
    ranker._fitted_queries = None
    if named is not None:
        ranker._fitted_queries = _advice.FittedQueries(named, rows.X, rows.labels)
    if ranker.verbose:
        report_end(ranker, stopping, started)
    if data.queries.n_rows > data.queries.n_queries:
        _advice.warn_if_nothing_was_learned(ranker, data)


def read_rows(
    ranker: Any, loss: Loss, X: Any, y: Any, groups: ArrayLike | None, sample_weight: Any
) -> tuple[Schema, Training, Queries | None, bool]:
    """Read the arguments of a first call of `fit` or `partial_fit`.

    Return the schema, the rows, their queries with names, and whether there are query ids. Without
    ids, all rows are one query. Structured labels number the queries of each call from 0, so these
    have no names (None).
    """
    if hasattr(X, "iloc") or hasattr(y, "iloc"):
        warn_of_other_order(X=X, y=y, groups=groups, sample_weight=sample_weight)
    schema, table, of_ids = Schema.of(X, groups, ranker.group_column, ranker._table_needs(loss))
    labels, of_labels = loss.read(y, table.shape[0])
    queries = of_ids if of_labels is None else agreed_queries(of_ids, of_labels)
    if grouped := queries is not None:
        if queries.n_queries == queries.n_rows > 1:
            _advice.warn_of_single_rows(queries.n_rows)
    else:
        queries = Queries.single(table.shape[0])
        warn_of_one_query(queries.n_rows)
    weight = None if sample_weight is None else check_weight(sample_weight, queries.n_rows)
    named = of_ids if grouped else queries
    return schema, Training(table, None, queries, weight, labels), named, grouped


def report_start(
    ranker: Any,
    loss: Loss,
    model: Any,
    data: Training,
    n_dropped: int,
    validation: Validation | None,
) -> None:
    """Print what is fitted to what."""
    queries, shown = data.queries, getattr(model, "regressor", None)
    n_rows, n_columns = data.X.shape
    print_progress(
        ranker,
        f"{counted(queries.n_rows, 'document')} in {counted(queries.n_queries, 'query')} for "
        f"{loss!r}; {counted(n_dropped, 'query')} dropped"
        + (f"; {validation.held_out.queries.n_queries} for validation" if validation else ""),
    )
    print_progress(
        ranker,
        f"fitting {type(model if shown is None else shown).__name__} to "
        f"{counted(n_rows, 'row')}, {counted(n_columns, 'column')} ...",
    )


def report_end(ranker: Any, validation: Validation | None, started: float) -> None:
    """Print what was fitted."""
    fitted = getattr(ranker.model_, "regressor_", ranker.model_)
    kept = "" if validation is None else f" with {counted(validation.n_iter, 'iteration')}"
    if hasattr(ranker.model_, "summary"):
        kept = f": {ranker.model_.summary()}"
    print_progress(ranker, f"fitted {type(fitted).__name__}{kept}", started)


def read_validation(
    ranker: Any,
    loss: Loss,
    schema: Schema,
    grouped: bool,
    named: Queries | None,
    validation: ValidationArguments,
) -> Training:
    """Read the arguments of `fit` with validation queries.

    `named` and `grouped` are what `read_rows` returned for the training rows.
    """
    X, y, groups, sample_weight = validation
    if X is None:
        without_table = next(n for n, value in validation._asdict().items() if value is not None)
        raise ValueError(f"{without_table} was passed without X_val.")
    if y is None:
        raise ValueError("X_val was passed without y_val, the labels of its rows.")
    if ranker.validation_queries is not None:
        raise ValueError(
            f"X_val was passed, but validation_queries={ranker.validation_queries!r} holds out "
            "queries of X. Use only one of the two."
        )
    warn_of_other_order(X_val=X, y_val=y, groups_val=groups, sample_weight_val=sample_weight)
    with _naming_validation_data():
        fitted = copy.copy(ranker)
        schema.keep(fitted)  # the ranker keeps the names of an earlier fit until this one succeeds
        X, of_ids = schema.read(fitted, X, groups)
        labels, of_labels = loss.read(y, X.shape[0])
        queries = agreed_queries(of_ids, of_labels)
        weight = check_weight(sample_weight, X.shape[0])
    if queries is None and grouped:
        raise ValueError(
            "The training rows have query ids, but the validation rows have none. Pass "
            "groups_val=<query id of each row of X_val>, or y_val=relevance_labels(y, groups)."
        )
    if of_ids is not None and grouped and named is not None:
        _refuse_common_queries(named, of_ids)
    return Training(X, None, queries or Queries.single(X.shape[0]), weight, labels).judged()


def hold_out(data: Training, share: float, random_state: Any) -> tuple[Training, Training]:
    """Hold out a share of the queries at random."""
    n_queries = data.queries.n_queries
    if n_queries < 2:
        raise ValueError(
            f"validation_queries={share!r} needs at least 2 queries with a defined loss, one of "
            f"them for training. There is {n_queries}."
        )
    n_held_out = min(max(1, round(share * n_queries)), n_queries - 1)
    out = np.zeros(n_queries, dtype=bool)
    out[check_random_state(random_state).permutation(n_queries)[:n_held_out]] = True
    return data.take_queries(~out), data.take_queries(out)


def make_validation(
    ranker: Any, loss: Loss, decoder: Any, model: Any, data: Training, held_out: Training
) -> Validation:
    """Return the validation queries with functions to evaluate scores."""
    check_stops_early(model)
    with _naming_validation_data():
        loss.check(held_out.labels)
        held_out = _useful_queries(loss, held_out)
    labels, queries, weight = held_out.labels, held_out.queries, held_out.weight
    if loss.space.is_pairwise:  # a model of pairs fits scores first, evaluated by their rankings
        decoder = get_decoder("sort", SCORES)
    keys = hash_rows(held_out.X, np.arange(queries.n_rows))
    name, query_weight = type(loss).__name__, loss.query_weight(labels, queries)

    def evaluate(scores: NDArray[np.float64]) -> float:
        found = decoder.decode(scores, queries, lambda rows: keys[rows])
        if not hasattr(found, "ranks"):
            raise not_a_result(decoder, found)
        values = loss.metric(labels, found.ranks, queries)
        return mean_over_queries(values, queries, weight, name, query_weight)

    # `evaluate` uses the weights of the user, and the targets also those of the loss
    factor = loss.row_weight(labels, queries)
    weighted = held_out if factor is None else held_out.weighted_by(factor)
    targets = weighted.learning(loss)
    show = partial(print_progress, ranker)
    if isinstance(loss, Choice) and ranker._learns_targets:
        return Validation(targets, log_loss_of_shares(targets), ranker.n_iter_no_change, show)
    steady = None
    with _naming_validation_data():
        evaluate(np.zeros(queries.n_rows))  # raises an error if no query has a weight
        if not loss.space.is_pairwise:  # models of pairs set it themselves
            steady = ranker._steady_value(loss, data, targets)
    return Validation(targets, evaluate, ranker.n_iter_no_change, show, steady)


def _useful_queries(loss: Loss, data: Training) -> Training:
    """Return the validation queries with a defined loss.

    Raise ValueError if all rankings of them are equally good.
    """
    data = data.without_undefined_queries(loss)
    if isinstance(data.labels, np.ndarray) and data.queries.have_equal(data.labels):
        raise ValueError(
            f"In {all_of(data.queries.n_queries, 'query')}, all documents have the same label, so "
            "every ranking is equally good. They cannot choose the number of iterations. Pass "
            "other queries as X_val, or use validation_queries=0.2 to hold out a share."
        )
    return data


@contextmanager
def _naming_validation_data() -> Iterator[None]:
    """Add to error messages that they are about the validation data."""
    try:
        yield
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"The validation data (X_val, y_val, ...): {error}") from error


def _refuse_common_queries(training: Queries, held_out: Queries) -> None:
    """Raise ValueError if a query is in both the training and the validation data."""
    trained = set(training.ids.tolist())
    common = [query for query in held_out.ids.tolist() if query in trained]
    if common:
        raise ValueError(
            f"{len(common)} of {held_out.n_queries} validation queries, such as {common[0]!r}, are "
            "also training queries. Their measure improves with every iteration, so training would "
            "stop too late. Pass other queries, or give different queries different ids."
        )
