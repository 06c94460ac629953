"""What members of a combination learn, and the weights of their scores: stacking."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.losses import get_loss
from sklearn_rankcal.models._sums import solve_nonnegative
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import SCORES

Floats = NDArray[np.float64]
LABELS = "labels"  # in the place of a loss: the targets are the labels themselves


def own_targets(loss: Any, targets: Floats, queries: Queries, labels: Any) -> Floats:
    """Return the targets of a member: those of its loss, or those of the ranker."""
    if loss is None:
        return targets
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
