"""Validation queries: read or hold out the queries on which early stopping measures rankings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import has_fit_parameter

from sklearn_rankcal.decoders import get_decoder
from sklearn_rankcal.labels._labels import read_any_labels
from sklearn_rankcal.labels._relevance import agreed_queries
from sklearn_rankcal.losses import Loss, get_loss
from sklearn_rankcal.models._validation import Validation
from sklearn_rankcal.queries import Queries, check_weight, mean_over_queries
from sklearn_rankcal.rankers._training import TrainingData
from sklearn_rankcal.targets import SCORES
from sklearn_rankcal.utils._parameters import check_count
from sklearn_rankcal.utils._row_hashes import hash_rows

_ATTRIBUTES = ("n_iter_", "validation_scores_", "validation_queries_")


class ValidatingRanker:
    """The part of `CalibratedRanker` and `BoostedRanker` that is about validation queries."""

    # Metadata routing passes these arguments to `fit` without a set_fit_request call.
    __metadata_request__fit = {"X_val": True, "y_val": True, "groups_val": True}

    loss: str | Loss
    group_column: str | None
    random_state: Any
    validation_queries: float | None
    n_iter_no_change: int
    grouped_: bool
    loss_: Loss
    decoder_: Any
    _table_and_queries: Callable[..., tuple[Any, Queries | None]]
    _print_progress: Callable[..., None]

    def _read_validation(
        self,
        training: Queries,
        X: Any,
        y: Any,
        groups: ArrayLike | None,
        sample_weight: ArrayLike | None,
        *,
        ids_known: bool,
    ) -> TrainingData | None:
        """Check and convert the validation data that `fit` received; None if there are none.

        Parameters
        ----------
        training : Queries
            The queries of the training rows.
        X, y, groups, sample_weight
            The arguments ``X_val``, ``y_val``, ``groups_val`` and ``sample_weight_val`` of `fit`.
        ids_known : bool
            Whether the ids of the training queries are the user's. Structured labels number the
            queries of each call from 0, so that their numbers cannot be compared.

        Raises
        ------
        ValueError
            If X is missing where another argument is there, or y where X is there, if the
            parameter `validation_queries` is set too, or if a query is among the training queries.
            Also if the data are not as `score` takes them.
        """
        check_count(self.n_iter_no_change, "n_iter_no_change")
        if X is None:
            others = {"y_val": y, "groups_val": groups, "sample_weight_val": sample_weight}
            if lonely := [name for name, value in others.items() if value is not None]:
                raise ValueError(f"{lonely[0]} was passed without X_val.")
            return None
        if y is None:
            raise ValueError("X_val was passed without y_val, the labels of its rows.")
        if self.validation_queries is not None:
            raise ValueError(
                f"X_val was passed, but validation_queries={self.validation_queries!r} holds out "
                "queries of X. Only one of the two can be used."
            )
        with _naming_validation_data():
            X, given = self._table_and_queries(X, groups, reset=False)
            labels, of_labels = read_any_labels(y, X.shape[0], get_loss(self.loss).takes)
            queries = agreed_queries(given, of_labels)
            weight = check_weight(sample_weight, X.shape[0])
        if queries is None and self.grouped_:
            raise ValueError(
                "The training rows have query ids, and the validation rows have none. Pass "
                "groups_val=<query id of each row of X_val>, or y_val=relevance_labels(y, groups)."
            )
        if given is not None and ids_known:
            _refuse_common_queries(training, given)
        return TrainingData(X, labels, queries or Queries.single(X.shape[0]), weight)

    def _hold_out(self, data: TrainingData) -> tuple[TrainingData, TrainingData | None]:
        """Split off the share `validation_queries` of the queries, drawn at random.

        Returns
        -------
        training : TrainingData
        held_out : TrainingData or None
            None if the parameter is None.
        """
        share = self.validation_queries
        if share is None:
            return data, None
        n_queries = data.queries.n_queries
        if n_queries < 2:
            raise ValueError(
                f"validation_queries={share!r} needs at least 2 queries on which the loss is "
                f"defined, one of which remains for training. There is {n_queries}."
            )
        n_held_out = min(max(1, round(share * n_queries)), n_queries - 1)
        out = np.zeros(n_queries, dtype=bool)
        out[check_random_state(self.random_state).permutation(n_queries)[:n_held_out]] = True
        return data.take_queries(~out), data.take_queries(out)

    def _make_validation(self, model: Any, data: TrainingData) -> Validation:
        """Return the validation queries with what is needed to evaluate scores on them.

        Raises
        ------
        TypeError
            If the model cannot stop early.
        ValueError
            If labels are outside the range of the loss, or if it is undefined on all queries.
        """
        if not has_fit_parameter(model, "validation"):
            raise TypeError(
                f"{type(model).__name__} cannot stop early on validation queries. With "
                f"loss={self.loss!r} "
                + (
                    "these can: regressor=None, and the models ResidualPairModel and "
                    "ResidualProductModel with DocumentModel(regressor) for their scores."
                    if self.loss_.space.is_pairwise
                    else "a regressor can, or DocumentModel(regressor), if it is boosted."
                )
            )
        with _naming_validation_data():
            self.loss_.check(data.labels)
            data = data.without_undefined_queries(self.loss_)
        # A model of pairs fits scores first. Their rankings are evaluated.
        sorts = self.loss_.space.is_pairwise
        decoder = get_decoder("sort", SCORES) if sorts else self.decoder_
        keys = hash_rows(data.X, np.arange(data.queries.n_rows))
        name, factor = type(self.loss_).__name__, self.loss_.query_weight(data.labels, data.queries)

        def evaluate(scores: NDArray[np.float64]) -> float:
            ranks = decoder.decode(scores, data.queries, lambda rows: keys[rows]).ranks
            values = self.loss_.metric(data.labels, ranks, data.queries)
            return mean_over_queries(values, data.queries, data.weight, name, factor)

        return Validation(
            data.X, data.queries, evaluate, self.n_iter_no_change, self._print_progress
        )

    def _keep_validation(self, validation: Validation | None) -> None:
        """Set the attributes about validation, or remove those of an earlier `fit`."""
        for name in _ATTRIBUTES:
            vars(self).pop(name, None)
        if validation is not None:
            self.n_iter_ = validation.n_iter
            self.validation_scores_ = np.array(validation.scores)
            self.validation_queries_ = validation.queries.ids


@contextmanager
def _naming_validation_data() -> Iterator[None]:
    """Add to the message of an error that it is about the validation data."""
    try:
        yield
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"The validation data (X_val, y_val, ...): {error}") from error


def _refuse_common_queries(training: Queries, held_out: Queries) -> None:
    """Raise if a query id is among both the training queries and the validation queries."""
    trained = set(training.ids.tolist())
    common = [query for query in held_out.ids.tolist() if query in trained]
    if common:
        raise ValueError(
            f"{len(common)} of {held_out.n_queries} validation queries, such as {common[0]!r}, are "
            "training queries too. Their measure grows with every iteration, so that training "
            "would not stop in time. Pass other queries, or give different queries different ids."
        )
