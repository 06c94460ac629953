"""Validation queries for early stopping: read them, or hold them out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from sklearn_rankcal.decoders import get_decoder
from sklearn_rankcal.decoders._batches import not_a_result
from sklearn_rankcal.labels._relevance import agreed_queries
from sklearn_rankcal.losses import Loss, get_loss
from sklearn_rankcal.models import Training
from sklearn_rankcal.models._early_stopping import check_stops_early
from sklearn_rankcal.models._folds import query_folds
from sklearn_rankcal.models._model import Validation, squared_error
from sklearn_rankcal.queries import Queries, check_weight, mean_over_queries
from sklearn_rankcal.rankers._input import read_table
from sklearn_rankcal.targets import SCORES
from sklearn_rankcal.utils._features import warn_of_other_order
from sklearn_rankcal.utils._messages import all_of, print_progress
from sklearn_rankcal.utils._parameters import check_count
from sklearn_rankcal.utils._row_hashes import hash_rows

_HELD_OUT_OF = 7  # the default model holds out one query in seven
_ATTRIBUTES = ("n_iter_", "validation_scores_", "validation_queries_")


def read_validation(
    ranker: Any,
    training: Queries,
    X: Any,
    y: Any,
    groups: ArrayLike | None,
    sample_weight: ArrayLike | None,
    *,
    ids_known: bool,
) -> Training | None:
    """Read the arguments ``X_val``, ``y_val``, ``groups_val`` and ``sample_weight_val`` of `fit`.

    Return None if there are none. `ids_known` is whether the user passed ids of the training
    queries. Structured labels only number the queries of each call from 0.
    """
    check_count(ranker.n_iter_no_change, "n_iter_no_change")
    if X is None:
        others = {"y_val": y, "groups_val": groups, "sample_weight_val": sample_weight}
        if lonely := [name for name, value in others.items() if value is not None]:
            raise ValueError(f"{lonely[0]} was passed without X_val.")
        return None
    if y is None:
        raise ValueError("X_val was passed without y_val, the labels of its rows.")
    if ranker.validation_queries is not None:
        raise ValueError(
            f"X_val was passed, but validation_queries={ranker.validation_queries!r} holds out "
            "queries of X. Use only one of the two."
        )
    warn_of_other_order(X_val=X, y_val=y, sample_weight_val=sample_weight)
    with _naming_validation_data():
        X, given = read_table(ranker, X, groups)
        labels, of_labels = get_loss(ranker.loss).read(y, X.shape[0])
        queries = agreed_queries(given, of_labels)
        weight = check_weight(sample_weight, X.shape[0])
    if queries is None and ranker.grouped_:
        raise ValueError(
            "The training rows have query ids, but the validation rows have none. Pass "
            "groups_val=<query id of each row of X_val>, or y_val=relevance_labels(y, groups)."
        )
    if given is not None and ids_known:
        _refuse_common_queries(training, given)
    return Training(X, None, queries or Queries.single(X.shape[0]), weight, labels)


def hold_out(ranker: Any, data: Training) -> tuple[Training, Training | None]:
    """Hold out a share `validation_queries` of the training queries at random.

    If it is None and the default model needs held-out queries, hold out a seventh, chosen by the
    contents of the queries, so `fit` is deterministic. The number of trees then minimises the
    squared error of the targets, because its mean varies far less than the mean of a measure.
    """
    share = ranker.validation_queries
    if share is None:
        if not ranker._needs_held_out(data):
            return data, None
        labels = data.labels if isinstance(data.labels, np.ndarray) else None
        out = query_folds(data.X, data.queries, _HELD_OUT_OF, labels) == 0
        held_out = data.take_queries(out)
        return data.take_queries(~out), replace(held_out, by_targets=loss_of_scores(ranker))
    n_queries = data.queries.n_queries
    if n_queries < 2:
        raise ValueError(
            f"validation_queries={share!r} needs at least 2 queries with a defined loss, one of "
            f"them for training. There is {n_queries}."
        )
    n_held_out = min(max(1, round(share * n_queries)), n_queries - 1)
    out = np.zeros(n_queries, dtype=bool)
    out[check_random_state(ranker.random_state).permutation(n_queries)[:n_held_out]] = True
    return data.take_queries(~out), data.take_queries(out)


def make_validation(ranker: Any, model: Any, data: Training) -> Validation:
    """Return the validation queries with functions to evaluate scores."""
    loss = ranker.loss_
    check_stops_early(model)
    with _naming_validation_data():
        loss.check(data.labels)
        data = _useful_queries(loss, data)
    # a model of pairs fits scores first, which are evaluated by their rankings
    decoder = get_decoder("sort", SCORES) if loss.space.is_pairwise else ranker.decoder_
    keys = hash_rows(data.X, np.arange(data.queries.n_rows))
    name, factor = type(loss).__name__, loss.query_weight(data.labels, data.queries)

    def evaluate(scores: NDArray[np.float64]) -> float:
        found = decoder.decode(scores, data.queries, lambda rows: keys[rows])
        if not hasattr(found, "ranks"):
            raise not_a_result(decoder, found)
        values = loss.metric(data.labels, found.ranks, data.queries)
        return mean_over_queries(values, data.queries, data.weight, name, factor)

    show = partial(print_progress, ranker)
    # `evaluate` uses the weights of the user, and the targets also those of the loss
    held_out = data.weighted_by(loss).learning(loss)
    if data.by_targets:
        return Validation(held_out, squared_error(held_out), ranker.n_iter_no_change, show)
    steady = None
    with _naming_validation_data():
        evaluate(np.zeros(data.queries.n_rows))  # raises an error if no query has a weight
        if not loss.space.is_pairwise:  # models of pairs set it themselves
            steady = ranker._steady_value(held_out)
    return Validation(held_out, evaluate, ranker.n_iter_no_change, show, steady)


def _useful_queries(loss: Loss, data: Training) -> Training:
    """Return the validation queries with a defined loss.

    Raise ValueError if all rankings of them are equally good.
    """
    n_queries = all_of(data.queries.n_queries, "query")
    remedy = (
        "They cannot choose the number of iterations. Pass other queries as X_val, or use "
        "validation_queries=0.2 to hold out a share of X."
    )
    if not loss.defined(data.labels, data.queries).any():
        raise ValueError(
            f"{type(loss).__name__} is undefined on {n_queries}. For most losses, a query needs a "
            "document of positive relevance. For 'auc', 'spearman' and 'pd', it needs two "
            f"different labels. {remedy}"
        )
    if not data.by_targets and isinstance(data.labels, np.ndarray):
        if data.queries.have_equal(data.labels):
            raise ValueError(
                f"In {n_queries}, all documents have the same label, so every ranking is equally "
                f"good. {remedy}"
            )
    return data.without_undefined_queries(loss)


def loss_of_scores(ranker: Any) -> bool:
    """Whether targets are one number per document."""
    return bool(get_loss(ranker.loss).space == SCORES)


def keep_validation(ranker: Any, validation: Validation | None) -> None:
    """Set the attributes of validation, or remove the attributes of an earlier `fit`."""
    for name in _ATTRIBUTES:
        vars(ranker).pop(name, None)
    if validation is not None:
        ranker.n_iter_ = validation.n_iter
        ranker.validation_scores_ = np.array(validation.scores)
        ranker.validation_queries_ = validation.held_out.queries.ids


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
