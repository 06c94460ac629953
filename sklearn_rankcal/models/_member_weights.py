"""Targets of the members of a combination, and the weights of their scores (stacking)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize

from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.losses import get_loss
from sklearn_rankcal.models._document import as_counts
from sklearn_rankcal.models._held_out import LARGEST
from sklearn_rankcal.models._model import Training
from sklearn_rankcal.models._sums import solve_nonnegative
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import SCORES
from sklearn_rankcal.utils._numbers import Floats
from sklearn_rankcal.utils._sklearn_compat import FlatTrees

#: Value of `loss` of a member: it learns the labels.
LABELS = "labels"
#: Members that learn the targets of the ranker's loss, or the labels, by the Poisson deviance.
POISSON, POISSON_LABELS = "poisson", "poisson_labels"
#: Linear logarithms of the targets, from which boosters of logarithms start.
LINEAR = "linear"
#: A forest that learns the labels.
FOREST = "forest"


def own_targets(loss: Any, known: Training) -> Floats:
    """Return the targets of a member, for its own loss or for the loss of the ranker."""
    labels = known.labels
    if loss is None:
        return known.targets
    if labels is None:
        raise ValueError(f"A member that learns {loss!r} needs the labels.")
    if isinstance(loss, str) and loss == LABELS:
        if not isinstance(labels, np.ndarray):
            raise ValueError(
                "A member cannot learn preferences or judgements as labels. Give it a loss such as "
                "'pd_by_scores', or None."
            )
        return np.asarray(labels, dtype=np.float64)
    loss = get_loss(loss)
    if not loss.takes_judgements and not isinstance(labels, np.ndarray | Preferences):
        raise ValueError(
            f"The labels are judgements, which {loss!r} does not support. Give the member a loss "
            "such as AggregatedLoss, or None."
        )
    if loss.space != SCORES:
        raise ValueError(f"Boosters learn scores, but the targets of {loss!r} are {loss.space}.")
    return loss.resolve(labels).training_targets(labels, known.queries)


def has_log_scores(loss: Any) -> bool:
    """Whether a member learns by the Poisson deviance. Its scores are then logarithms."""
    return isinstance(loss, str) and loss in (POISSON, POISSON_LABELS)


def listwise_error(
    scores: Floats, targets: Floats, queries: Queries, sample_weight: Floats | None = None
) -> float:
    """Return the cross-entropy between targets and exp(scores), as shares of their query.

    It is the sum over rows of -w_i t_i log(exp(s_i) / sum_j w_j exp(s_j)), where j runs over the
    query of i: the Poisson deviance with the best level for each query.
    """
    return _listwise(scores, targets, queries, sample_weight)[0]


def log_loss_of_shares(held_out: Training) -> Callable[[Floats], float]:
    """Return a function of scores that are shares of targets: minus their mean cross-entropy."""
    what = held_out.targets, held_out.queries, held_out.weight

    def evaluate(shares: Floats) -> float:
        logs = np.log(np.maximum(shares, np.finfo(np.float64).tiny))
        return -listwise_error(logs, *what) / held_out.queries.n_queries

    return evaluate


def _listwise(
    scores: Floats, targets: Floats, queries: Queries, sample_weight: Floats | None
) -> tuple[float, Floats]:
    """Return the cross-entropy, and its derivatives by the scores."""
    lower = scores - queries.broadcast(queries.max(scores))
    share, mass = np.exp(lower), targets
    if sample_weight is not None:
        share, mass = share * sample_weight, mass * sample_weight
    whole = queries.broadcast(queries.sum(share))
    whole[whole == 0] = 1.0  # rows without weight
    total = queries.broadcast(queries.sum(mass))
    return float(mass @ (np.log(whole) - lower)), share / whole * total - mass


class LinearScores:
    """Linear scores of the rows of a table, whose exponentials are shares of the targets.

    They are those of a conditional logit of the first `n_columns`, standardised, with an L2
    penalty. Each value of a category that at least 1 % of the rows have is a column, and so is a
    missing value. Missing numbers count as the mean, and numbers outside the range of `table` as
    the nearest one inside. `regressor` knows the columns of the table.
    """

    def __init__(self, regressor: Any, table: Any, n_columns: int) -> None:
        self._encoder, self._n_columns = FlatTrees(regressor), n_columns
        categories, numbers = self._read(table)
        self._codes = []
        for codes in categories:
            known, counts = np.unique(codes, return_counts=True)
            self._codes.append(known[counts >= 0.01 * len(codes)])
        numbers = np.clip(numbers, -LARGEST, LARGEST)
        self._range = np.nanmin(numbers, axis=0), np.nanmax(numbers, axis=0)
        self._mean, self._spread = np.nanmean(numbers, axis=0), np.nanstd(numbers, axis=0)
        self._spread[self._spread <= 1e-12 * np.abs(self._mean)] = np.inf
        self.coef = np.zeros(0)

    def _read(self, table: Any) -> tuple[list[Floats], Floats]:
        """Return codes of categories, -1 if missing or unknown, and numbers."""
        encoded, missing = self._encoder.encode(table), self._encoder.missing
        each = zip(encoded.T, missing, strict=False)
        codes = [np.where(np.isnan(own) | (own == gap), -1.0, own) for own, gap in each]
        return codes, encoded[:, len(missing) : self._n_columns]

    def columns(self, table: Any) -> Floats:
        """Return the columns that have coefficients."""
        categories, numbers = self._read(table)
        numbers = (np.clip(numbers, *self._range) - self._mean) / self._spread
        each = zip(categories, self._codes, strict=True)
        of_codes = [codes[:, None] == known for codes, known in each]
        return np.column_stack([np.nan_to_num(numbers), *of_codes])

    def predict(self, table: Any) -> Floats:
        """Return the scores of all rows."""
        return self.columns(table) @ self.coef


def linear_coefficients(
    columns: Floats, targets: Floats, queries: Queries, sample_weight: Floats | None
) -> Floats:
    """Return the coefficients that minimise `listwise_error` plus half their squared norm."""

    def error(coef: Floats) -> tuple[float, Floats]:
        value, slopes = _listwise(columns @ coef, targets, queries, sample_weight)
        return value + 0.5 * float(coef @ coef), columns.T @ slopes + coef

    exact = {"ftol": 1e-12, "gtol": 1e-7, "maxiter": 500}
    start = np.zeros(columns.shape[1])
    found: Floats = minimize(error, start, jac=True, method="L-BFGS-B", options=exact).x
    return found


def listwise_weights(
    names: list[str], held_out: Floats, known: Training, alpha: float
) -> tuple[dict[str, float], dict[str, float], float]:
    """Return weights and shares of members with logarithms as scores, and a level.

    The weights minimise the cross-entropy between the targets (shifted to be >= 0) and
    exp(weighted sum of the held-out scores), plus a penalty `alpha` that shrinks them towards equal
    weights. The targets are those of all queries and of one more, whose shares are equal.
    exp(weighted sum + level) has the mean of the targets. For shares, see `nonnegative_weights`.
    """
    targets, queries, sample_weight = known.targets, known.queries, known.weight
    columns = np.column_stack([queries.center(scores) for scores in held_out.T])
    spreads = np.sqrt(np.mean(np.square(columns), axis=0))
    spreads[spreads <= 1e-12 * np.abs(held_out).max(axis=0, initial=0.0)] = 0.0
    columns /= np.where(spreads > 0, spreads, np.inf)
    counts = as_counts(targets, queries)
    n_informative = max(1, int(np.count_nonzero(queries.sizes > 1)))
    # one more query, of equal shares: without it, no weights are the best if all is predicted
    equal_share = queries.broadcast(queries.sum(counts) / queries.sizes)
    counts = (n_informative * counts + equal_share) / (n_informative + 1)
    mass = counts if sample_weight is None else counts * sample_weight
    whole = float(mass.sum()) or 1.0

    def error(weights: Floats, equal: float | None) -> tuple[float, Floats]:
        value, slopes = _listwise(columns @ weights, counts, queries, sample_weight)
        value, gradient = value / whole, columns.T @ slopes / whole
        if equal is None:
            return value, gradient
        away = weights - equal
        penalty = alpha / n_informative / max(equal, 1e-3) ** 2
        return value + 0.5 * penalty * float(away @ away), gradient + penalty * away

    def smallest(start: Floats, function: Any) -> Floats:
        exact = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 200}
        bounds = [(0, None)] * len(start)
        found: Floats = minimize(function, start, jac=True, bounds=bounds, options=exact).x
        return found

    def of_all(weight: Floats) -> tuple[float, Floats]:
        value, gradient = error(np.full(len(names), weight[0]), None)
        return value, gradient.sum(keepdims=True)

    equal = smallest(np.full(1, 0.5), of_all)[0]
    combined = smallest(np.full(len(names), equal), lambda weights: error(weights, equal))
    weights, shares = _of_scores(names, combined, spreads)
    scores = held_out @ list(weights.values())
    largest = float(scores.max())
    expected = np.exp(scores - largest)
    predicted = float(np.sum(expected if sample_weight is None else expected * sample_weight))
    return weights, shares, float(np.log(whole) - np.log(predicted) - largest)


def nonnegative_weights(
    names: list[str], held_out: Floats, known: Training, alpha: float
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the weights and the shares of members, by least squares of the targets.

    Targets and held-out scores are centred in each query. `BoostingCV` describes the results.
    """
    targets, queries, sample_weight = known.targets, known.queries, known.weight
    mass = np.ones(queries.n_rows) if sample_weight is None else sample_weight
    # every query has weight 1, or the mean weight of its rows
    share = mass / queries.broadcast(queries.sizes)
    share /= share.sum()
    target, size = _standardized(targets, queries, mass, share)
    standard = [_standardized(scores, queries, mass, share) for scores in held_out.T]
    # queries of one document do not affect the weights
    n_informative = int(np.count_nonzero(queries.sizes > 1))
    combined = _nonnegative_weights(
        np.column_stack([column for column, _ in standard]),
        target,
        share,
        alpha / max(1, n_informative),
    )
    return _of_scores(names, combined, np.array([spread for _, spread in standard]), size or 1.0)


def _of_scores(
    names: list[str], combined: Floats, spreads: Floats, size: float = 1.0
) -> tuple[dict[str, float], dict[str, float]]:
    """Convert weights of standardised scores to weights of scores, and to shares.

    `size` is the spread of the target.
    """
    combined[spreads == 0] = 0.0
    if not combined.any():
        # nothing was learned: equal weights for members that are not constant
        combined = np.where(spreads > 0, 1.0, 0.0) if spreads.any() else np.ones(len(names))
    weights = size * combined / np.where(spreads > 0, spreads, 1.0)
    return (
        dict(zip(names, weights.tolist(), strict=True)),
        dict(zip(names, (combined / combined.sum()).tolist(), strict=True)),
    )


def _standardized(
    values: Floats, queries: Queries, mass: Floats, share: Floats
) -> tuple[Floats, float]:
    """Center values in each query and divide by their root mean square; return both.

    Values that are constant in each query become 0, with root mean square 0.
    """
    centered = queries.center(values, mass)
    spread = float(np.sqrt(share @ centered**2))
    if spread <= 1e-12 * np.abs(values).max():  # this is rounding error
        return np.zeros_like(centered), 0.0
    return centered / spread, spread


def _nonnegative_weights(columns: Floats, target: Floats, share: Floats, penalty: float) -> Floats:
    """Minimise the mean squared error plus penalty * |w - w0|^2 over w >= 0.

    The columns and the target have mean square 1, and the shares of the rows sum to 1. w0 is the
    best vector of equal weights. It is smaller if the sum of the columns has a mean square below 1:
    then the columns nearly cancel each other, and large weights would fit noise.
    """
    weighted = columns * share[:, None]
    gram, moment = columns.T @ weighted, weighted.T @ target
    equal = max(0.0, float(moment.sum())) / max(1.0, float(gram.sum()))
    # the constant makes the solution unique if members are equal
    return solve_nonnegative(gram, moment, penalty + 1e-9, equal)
