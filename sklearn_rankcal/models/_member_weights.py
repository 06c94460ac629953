"""What members of a combination learn, and the weights of their scores: stacking."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.losses import get_loss
from sklearn_rankcal.models._document import as_counts
from sklearn_rankcal.models._sums import solve_nonnegative
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import SCORES

Floats = NDArray[np.float64]
#: In the place of a loss: the targets are the labels themselves.
LABELS = "labels"
#: The targets of the ranker's own loss, and the labels themselves, by their Poisson deviance.
POISSON, POISSON_LABELS = "poisson", "poisson_labels"


def own_targets(loss: Any, targets: Floats, queries: Queries, labels: Any) -> Floats:
    """Return the targets of a member: those of its loss, or those of the ranker."""
    if loss is None:
        return targets
    if has_log_scores(loss):
        own = targets if loss == POISSON else own_targets(LABELS, targets, queries, labels)
        return as_counts(own, queries)
    if labels is None:
        raise ValueError(f"A member that learns {loss!r} needs the labels.")
    if isinstance(loss, str) and loss == LABELS:
        if not isinstance(labels, np.ndarray):
            raise ValueError(
                "A member cannot learn preferences or judgements as they are. Give it a loss "
                "such as 'pd_by_scores', or None."
            )
        return np.asarray(labels, dtype=np.float64)
    loss = get_loss(loss)
    if loss.takes == "relevance" and not isinstance(labels, np.ndarray | Preferences):
        raise ValueError(
            f"The labels are judgements, which {loss!r} does not take. Give the member a loss "
            "such as AggregatedLoss, or None."
        )
    if loss.space != SCORES:
        raise ValueError(
            f"The members of a stack learn scores, but the targets of {loss!r} are in the "
            f"space {loss.space}."
        )
    return loss.resolve(labels).training_targets(labels, queries)


def has_log_scores(loss: Any) -> bool:
    """Whether a member learns by the Poisson deviance, so that its scores are logarithms."""
    return isinstance(loss, str) and loss in (POISSON, POISSON_LABELS)


def listwise_error(
    scores: Floats, targets: Floats, queries: Queries, sample_weight: Floats | None = None
) -> float:
    """Return the cross-entropy of shares of targets that are proportional to exp(scores).

    That is the sum of -t_i log(exp(s_i) / sum_j exp(s_j)), where j runs over the query of i.
    """
    error, _ = _listwise(scores, *_masses(targets, queries, sample_weight), queries)
    return error


def _masses(
    targets: Floats, queries: Queries, sample_weight: Floats | None
) -> tuple[Floats, Floats]:
    """Return targets with the mean weight of their query, and their sum in it, for each row."""
    mass = targets
    if sample_weight is not None:
        mass = targets * queries.broadcast(queries.mean(sample_weight))
    return mass, queries.broadcast(queries.sum(mass))


def _listwise(
    scores: Floats, mass: Floats, total: Floats, queries: Queries
) -> tuple[float, Floats]:
    """Return the cross-entropy, and its derivatives by the scores."""
    lower = scores - queries.broadcast(queries.max(scores))
    share = np.exp(lower)
    whole = queries.broadcast(queries.sum(share))
    return float(mass @ (np.log(whole) - lower)), share / whole * total - mass


def listwise_weights(
    names: list[str],
    held_out: Floats,
    targets: Floats,
    queries: Queries,
    sample_weight: Floats | None,
    alpha: float,
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the weights and the shares of members whose scores are logarithms of targets.

    They minimise the cross-entropy of the targets, without negative ones, and of
    exp(weighted sum of the held-out scores), but for a factor, and `alpha` moves them towards equal
    weights. The results are as those of `nonnegative_weights`.
    """
    columns = np.column_stack([queries.center(scores) for scores in held_out.T])
    spreads = np.sqrt(np.mean(np.square(columns), axis=0))
    spreads[spreads <= 1e-12 * np.abs(held_out).max(axis=0, initial=0.0)] = 0.0
    columns /= np.where(spreads > 0, spreads, np.inf)
    mass, total = _masses(as_counts(targets, queries), queries, sample_weight)
    n_informative = max(1, int(np.count_nonzero(queries.sizes > 1)))
    size = float(mass.sum()) / n_informative

    def error(weights: Floats, equal: float | None) -> tuple[float, Floats]:
        value, slopes = _listwise(columns @ weights, mass, total, queries)
        value, slopes = value / (size * n_informative), columns.T @ slopes / (size * n_informative)
        if equal is None:
            return value, slopes
        away = weights - equal
        penalty = alpha / n_informative / max(equal, 1e-3) ** 2
        return value + 0.5 * penalty * float(away @ away), slopes + penalty * away

    def smallest(start: Floats, function: Any) -> Floats:
        exact = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 200}
        found: Floats = minimize(
            function, start, jac=True, bounds=[(0, None)] * len(start), options=exact
        ).x
        return found

    usable = np.where(spreads > 0, 1.0, 0.0)
    if not size or not usable.any():
        combined = usable if usable.any() else np.ones(len(names))
    else:

        def of_all(weight: Floats) -> tuple[float, Floats]:
            value, slopes = error(weight * usable, None)
            return value, np.array([slopes @ usable])

        equal = smallest(np.full(1, 0.5), of_all)[0]
        combined = usable * smallest(equal * usable, lambda weights: error(weights, equal))
        if not combined.any():
            combined = usable
    weights = combined / np.where(spreads > 0, spreads, 1.0)
    # A factor changes no ranking: the scores get the unit of the targets, as near as they can.
    total_scores, wanted = columns @ combined, queries.center(targets)
    slope = float(total_scores @ wanted) / (float(total_scores @ total_scores) or 1.0)
    weights = weights * slope if slope > 0 else weights
    return (
        dict(zip(names, weights.tolist(), strict=True)),
        dict(zip(names, (combined / combined.sum()).tolist(), strict=True)),
    )


def nonnegative_weights(
    names: list[str],
    held_out: Floats,
    targets: Floats,
    queries: Queries,
    sample_weight: Floats | None,
    alpha: float,
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the weights and the shares of members, by least squares of the targets.

    Targets and held-out scores are centred in each query. `StackedModel` describes the results.
    """
    mass = np.ones(queries.n_rows) if sample_weight is None else sample_weight
    # Every query counts the same, or, with weights, by the mean of the weights of its rows.
    share = mass / queries.broadcast(queries.sizes)
    share /= share.sum()
    target, size = _standardized(targets, queries, mass, share)
    standard = [_standardized(scores, queries, mass, share) for scores in held_out.T]
    # A query of one document says nothing about the weights.
    n_informative = int(np.count_nonzero(queries.sizes > 1))
    combined = _nonnegative_weights(
        np.column_stack([column for column, _ in standard]),
        target,
        share,
        alpha / max(1, n_informative),
    )
    spreads = np.array([spread for _, spread in standard])
    combined[spreads == 0] = 0.0
    if not combined.any():
        # Nothing was learned: the members that rank at all are equally good.
        combined = np.where(spreads > 0, 1.0, 0.0) if spreads.any() else np.ones(len(names))
    weights = (size or 1.0) * combined / np.where(spreads > 0, spreads, 1.0)
    return (
        dict(zip(names, weights.tolist(), strict=True)),
        dict(zip(names, (combined / combined.sum()).tolist(), strict=True)),
    )


def _standardized(
    values: Floats, queries: Queries, mass: Floats, share: Floats
) -> tuple[Floats, float]:
    """Center values in each query and divide them by their root mean square, which is returned.

    Values that are constant in every query become 0, and 0 is returned.
    """
    centered = queries.center(values, mass)
    spread = float(np.sqrt(share @ centered**2))
    if spread <= 1e-12 * np.abs(values).max():  # this is rounding error
        return np.zeros_like(centered), 0.0
    return centered / spread, spread


def _nonnegative_weights(columns: Floats, target: Floats, share: Floats, penalty: float) -> Floats:
    """Minimise the mean squared error plus penalty * |w - w0|^2 over w >= 0.

    The columns and the target have mean square 1, and the shares of the rows sum to 1. w0 is the
    best vector of equal weights, unless the sum of the columns has a mean square below 1. Then the
    columns nearly cancel each other, large weights would fit noise, and w0 is smaller.
    """
    weighted = columns * share[:, None]
    gram, moment = columns.T @ weighted, weighted.T @ target
    equal = max(0.0, float(moment.sum())) / max(1.0, float(gram.sum()))
    # The small constant makes the solution unique if members are equal.
    return solve_nonnegative(gram, moment, penalty + 1e-9, equal)
