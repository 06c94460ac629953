"""`check_loss`: test a loss by enumerating all rankings of small queries."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import clone

from sklearn_rankcal.consistency._distributions import (
    all_ranks,
    all_targets,
    calibrated_values,
    ranking_numbers,
    values_of_rankings,
)
from sklearn_rankcal.decoders import get_decoder
from sklearn_rankcal.losses import Loss, get_loss
from sklearn_rankcal.losses._base import without_shrinkage
from sklearn_rankcal.queries import Queries, Ranking
from sklearn_rankcal.targets._targets import Space, flat_targets
from sklearn_rankcal.utils._memory import rows_per_block
from sklearn_rankcal.utils._typing import Bools, Floats

#: Values of a measure count as equal if they differ by at most this much.
ROUNDING = 1e-9
#: Scores tie if they differ by at most this much. A sort may return tied documents in any order.
TIED = 1e-12
#: Number of label vectors per query size with which tied scores are checked.
TIED_LABELS = 20


def check_loss(
    loss: Loss | str,
    *,
    levels: tuple[float, ...] | None = None,
    n_documents: tuple[int, ...] = (1, 2, 3, 4),
    n_distributions: int = 200,
    random_state: int = 0,
) -> None:
    """Test a loss against an enumeration of all rankings.

    The function checks the following:

    - Targets have the right shape and are finite.
    - `defined` is true if and only if `per_query` is not NaN.
    - Targets and measures of a query do not depend on the order of the rows or on other queries.
    - The measure of tied scores is the mean over all orders of the tied documents.
    - The loss is calibrated. For random distributions of the labels, the ranking decoded from the
      expected targets (by sorting, or by the exact decoder) attains the largest expected value of
      `calibrated_measure` among all r! rankings. If the loss does not claim to be calibrated for
      every distribution, each distribution has a single label vector.
    - The regret of random scores does not exceed the bound of `regret_constant`.

    Parameters
    ----------
    loss : Loss or str
        A loss object, for example of your own class, or the name of a loss.
    levels : tuple of float, default=None
        The grades to sample labels from. If None, (0, 1) for binary losses, otherwise
        (0, 1, 2, 3).
    n_documents : tuple of int, default=(1, 2, 3, 4)
        The sizes r of queries. All r! rankings of each size are enumerated.
    n_distributions : int, default=200
        Number of random distributions for each size.
    random_state : int, default=0
        Seed of the random numbers.

    Raises
    ------
    AssertionError
        If a check fails.

    Examples
    --------
    >>> from sklearn_rankcal.estimator_checks import check_loss
    >>> check_loss("ndcg@2", n_distributions=20)
    """
    loss = get_loss(loss)
    assert loss.calibrated_over, (
        "calibrated_over must name the distributions over which the loss is calibrated"
    )
    if levels is None:
        levels = (0.0, 1.0) if loss.needs_threshold else (0.0, 1.0, 2.0, 3.0)
    random = np.random.RandomState(random_state)
    loss = loss.resolve(np.array(levels))
    get_decoder("auto", loss.space)
    clone(loss)
    _check_layouts(loss, levels, random)
    for r in n_documents:
        _check_ties(loss, levels, r, random)
        _check_calibration(loss, levels, r, n_distributions, random)


def _targets(loss: Loss, y: Floats, queries: Queries) -> Floats:
    """Return the targets as a vector with one entry per row or per pair."""
    return flat_targets(loss.encode(y, queries))


def _check_layouts(loss: Loss, levels: tuple[float, ...], random: Any) -> None:
    """Check that targets and measures of a query do not depend on other queries or row order."""
    # Compute everything for shuffled rows of 12 queries.
    groups = np.repeat(np.arange(12), random.randint(1, 6, size=12))
    y = random.choice(levels, size=len(groups))
    shuffle = random.permutation(len(y))
    queries = Queries.from_groups(groups[shuffle])
    targets = _targets(loss, y[shuffle], queries)
    if not loss.space.is_pairwise:
        assert targets.shape == y.shape, "encode must return one target per row"
        targets = targets[np.argsort(shuffle)]
    assert np.isfinite(targets).all(), "targets must be finite, and 0 if the loss is undefined"
    scores = random.randint(0, 3, size=len(y)).astype(float)
    different = random.permutation(len(y)).astype(float)
    values = loss.per_query(Ranking.from_scores(scores[shuffle], queries), y[shuffle])
    calibrated = loss.calibrated_measure(
        Ranking.from_scores(different[shuffle], queries), y[shuffle]
    )
    defined = loss.defined(y[shuffle], queries)
    assert values.shape == defined.shape == (queries.n_queries,)
    np.testing.assert_array_equal(np.isnan(values), ~defined, "measure is NaN where not defined")
    # Compare with the results of each query alone, with rows in the original order.
    for q, group in enumerate(queries.ids):
        rows = np.flatnonzero(groups == group)
        alone = Queries.single(len(rows))
        if not loss.space.is_pairwise:
            here, label = targets[rows], y[rows]
        else:  # pairs are numbered in the order of the shuffled rows
            label = y[shuffle][queries.codes == q]
            here = targets[_entries(loss.space, queries, q)]
        np.testing.assert_allclose(here, _targets(loss, label, alone), atol=1e-12)
        value = loss.per_query(Ranking.from_scores(scores[rows], alone), y[rows])
        np.testing.assert_allclose(values[q], value[0], atol=1e-12)
        value = loss.calibrated_measure(Ranking.from_scores(different[rows], alone), y[rows])
        np.testing.assert_allclose(calibrated[q], value[0], atol=1e-12)


def _entries(space: Space, queries: Queries, q: int) -> slice:
    """Return the slice of a query in the vector of the pairs of all queries."""
    counts = space.n_entries(queries.sizes)
    stops = np.cumsum(counts)
    return slice(int(stops[q] - counts[q]), int(stops[q]))


def _check_ties(loss: Loss, levels: tuple[float, ...], r: int, random: Any) -> None:
    """Check that the measure of tied scores is the mean over the orders of the tied documents."""
    labels = random.choice(levels, size=(TIED_LABELS, r))
    scores = random.randint(0, 3, size=(TIED_LABELS, r)).astype(float)
    queries = Queries.uniform(TIED_LABELS, r)
    loss.check(labels.ravel())
    of_rankings = values_of_rankings(loss.per_query, labels, all_ranks(r))
    allowed = _sorting_rankings(scores)
    of_ties = loss.per_query(Ranking.from_scores(scores.ravel(), queries), labels.ravel())
    for y, tied, value, values, sorts in zip(
        labels, scores, of_ties, of_rankings, allowed, strict=True
    ):
        np.testing.assert_allclose(
            value, values[sorts].mean(), atol=1e-10, err_msg=f"y={y}, scores={tied}"
        )


def _check_calibration(
    loss: Loss, levels: tuple[float, ...], r: int, n_distributions: int, random: Any
) -> None:
    """Check calibration and the regret bound, for a block of distributions at a time."""
    # The largest array has a number for each distribution, ranking and document.
    step = rows_per_block(8 * math.factorial(r) * r)
    for first in range(0, n_distributions, step):
        n = min(step, n_distributions - first)
        labels, chance = _draw_distributions(loss, levels, r, n, random)
        if len(chance):
            _check_distributions(loss, labels, chance, random)


def _draw_distributions(
    loss: Loss, levels: tuple[float, ...], r: int, n: int, random: Any
) -> tuple[Floats, Floats]:
    """Sample up to n distributions of one to four label vectors on which the loss is defined.

    Return the distinct label vectors (m, r), and their probabilities (at most n, m).
    """
    sizes = random.randint(1, 5, size=n)
    owner = np.repeat(np.arange(n), sizes)
    drawn = random.choice(levels, size=(len(owner), r))
    defined = loss.defined(drawn.ravel(), Queries.uniform(len(drawn), r))
    owner, drawn = owner[defined], drawn[defined]
    if not without_shrinkage(loss).calibrated_everywhere:
        # A distribution of a single label vector satisfies every noise condition.
        owner, first = np.unique(owner, return_index=True)
        drawn = drawn[first]
    # Gamma variables divided by their sum have a Dirichlet distribution.
    weight = random.gamma(0.7, size=len(owner))
    labels, number = np.unique(drawn, axis=0, return_inverse=True)
    chance = np.zeros((n, len(labels)))
    np.add.at(chance, (owner, number.ravel()), weight)
    chance = chance[np.unique(owner)]
    return labels, chance / chance.sum(axis=1, keepdims=True)


def _check_distributions(loss: Loss, labels: Floats, chance: Floats, random: Any) -> None:
    """Check that decoding expected targets is optimal, and that the regret bound holds."""
    n, r = len(chance), labels.shape[1]
    # The expected value of every ranking under each distribution, shape (n, r!), larger is better.
    worth = chance @ calibrated_values(loss, labels, all_ranks(r))
    best = worth.max(axis=1)
    expected = chance @ all_targets(loss, labels)
    if not loss.space.is_pairwise:
        method, attained = "sorting", _least_when_sorted(worth, expected)
    else:
        exact = get_decoder("exact", loss.space)
        ranks = exact.decode(expected.ravel(), Queries.uniform(n, r)).ranks.reshape(n, r)
        method, attained = "decoding", worth[np.arange(n), ranking_numbers(ranks)]
    for k in np.flatnonzero(~(attained >= best - ROUNDING))[:1]:
        possible = chance[k] > 0
        raise AssertionError(
            f"{loss!r} is not calibrated: for the labels {labels[possible].tolist()} with "
            f"probabilities {chance[k][possible].tolist()}, {method} gives {attained[k]:.6f}, but "
            f"the best ranking gives {best[k]:.6f}."
        )
    constant = loss.regret_constant(r)
    if loss.space.is_pairwise or constant is None:
        return
    scores = expected + random.choice([0.01, 0.3, 2.0], size=(n, 1)) * random.normal(size=(n, r))
    regret = best - _least_when_sorted(worth, scores)
    bound = constant * np.linalg.norm(scores - expected, axis=1)
    for k in np.flatnonzero(~(regret <= bound + ROUNDING))[:1]:
        raise AssertionError(
            f"The regret {regret[k]:.6f} of random scores exceeds the bound {bound[k]:.6f} of "
            "regret_constant."
        )


def _sorting_rankings(scores: Floats) -> Bools:
    """Return whether each ranking of `all_ranks` sorts each row of scores, shape (n, r!)."""
    orders = np.argsort(all_ranks(scores.shape[1]), axis=1)
    sorts: Bools = np.all(np.diff(scores[:, orders], axis=2) <= TIED, axis=2)
    return sorts


def _least_when_sorted(worth: Floats, scores: Floats) -> Floats:
    """Return the smallest worth among the rankings that sort the scores."""
    return np.where(_sorting_rankings(scores), worth, np.inf).min(axis=1)
