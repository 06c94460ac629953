"""The parts of `fit` that all rankers share: read training data, fit a model to targets."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from numpy.typing import ArrayLike

from sklearn_rankcal.decoders import get_decoder
from sklearn_rankcal.losses import get_loss
from sklearn_rankcal.models import Model, Training
from sklearn_rankcal.queries import check_weight
from sklearn_rankcal.rankers._data_warnings import (
    warn_if_labels_are_amounts,
    warn_if_nothing_was_learned,
    warn_if_rows_are_queries,
    warn_if_split_cuts_queries,
)
from sklearn_rankcal.rankers._id_columns import warn_of_ids, warn_of_label
from sklearn_rankcal.rankers._input import read_labelled
from sklearn_rankcal.rankers._validation import (
    hold_out,
    keep_validation,
    make_validation,
    read_validation,
)
from sklearn_rankcal.utils._estimators import set_random_states, set_verbose
from sklearn_rankcal.utils._features import warn_of_other_order
from sklearn_rankcal.utils._messages import counted, print_progress


def read_training(
    ranker: Any,
    X: Any,
    y: Any,
    groups: ArrayLike | None,
    sample_weight: ArrayLike | None,
    validation: tuple[Any, ...] | None = None,
) -> tuple[Training, Training | None]:
    """Read the data of `fit`, and set `loss_` and `decoder_`.

    `validation` has `X_val`, `y_val`, `groups_val` and `sample_weight_val` of `fit`. None is for
    rankers without validation queries. Return the training queries that have positive weight and a
    defined loss, and the validation queries or None.
    """
    loss = get_loss(ranker.loss)
    warn_of_other_order(X=X, sample_weight=sample_weight)
    X, labels, queries = read_labelled(ranker, X, y, groups, reset=True)
    data = Training(X, None, queries, check_weight(sample_weight, queries.n_rows), labels)
    held_out = None
    if validation is not None:
        known = groups is not None or ranker.group_column is not None
        held_out = read_validation(ranker, queries, *validation, ids_known=known)
    ranker.decoder_ = get_decoder(ranker.decoder, loss.space)
    ranker.n_queries_ = queries.n_queries
    warn_if_rows_are_queries(queries)
    warn_of_ids(X, queries, ranker.group_column)
    warn_of_label(X, labels)
    warn_if_split_cuts_queries(ranker.regressor, queries)
    data = data.without_zero_weights()
    ranker.loss_ = loss.resolve(data.labels)
    warn_if_labels_are_amounts(ranker.loss_, data.labels)
    data = data.without_undefined_queries(ranker.loss_)
    ranker.n_queries_dropped_ = ranker.n_queries_ - data.queries.n_queries
    if held_out is None:
        data, held_out = hold_out(ranker, data)
    return data.weighted_by(ranker.loss_).without_zero_weights(), held_out


def fit_model(ranker: Any, model: Model, data: Training, held_out: Training | None = None) -> None:
    """Fit the model to the targets. Validation queries, if any, stop training."""
    started = time.perf_counter()
    queries = data.queries
    set_random_states(model, ranker.random_state)
    set_verbose(model, ranker.verbose - 1)
    validation = None if held_out is None else make_validation(ranker, model, held_out)
    print_progress(
        ranker,
        f"{counted(queries.n_rows, 'document')} in {counted(queries.n_queries, 'query')} for "
        f"{ranker.loss_!r}; {counted(ranker.n_queries_dropped_, 'query')} dropped"
        + (f"; {validation.held_out.queries.n_queries} for validation" if validation else ""),
    )
    shown = getattr(model, "regressor", None)
    shown = model if shown is None else shown
    n_rows, n_columns = data.X.shape
    print_progress(
        ranker,
        f"fitting {type(shown).__name__} to {counted(n_rows, 'row')}, "
        f"{counted(n_columns, 'column')} ...",
    )
    ranker.model_ = model.fit(replace(data, validation=validation))
    fitted = getattr(ranker.model_, "regressor_", ranker.model_)
    kept = "" if validation is None else f" with {counted(validation.n_iter, 'iteration')}"
    if hasattr(ranker.model_, "summary"):
        kept = f": {ranker.model_.summary()}"
    print_progress(ranker, f"fitted {type(fitted).__name__}{kept}", started)
    keep_validation(ranker, validation)
    warn_if_nothing_was_learned(ranker, data)
