"""Expected losses and the best ranking of one query, for a given distribution of labels."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sklearn_rankcal.consistency._distributions import (
    Distribution,
    LabelDistribution,
    all_targets,
    as_queries,
    resolve,
)
from sklearn_rankcal.decoders import get_decoder
from sklearn_rankcal.decoders._decode_average_precision import DP_LARGEST
from sklearn_rankcal.losses import Loss
from sklearn_rankcal.losses._base import without_shrinkage
from sklearn_rankcal.queries import Queries, Ranking, check_ranks
from sklearn_rankcal.targets import PAIRS, SYMMETRIC_PAIRS
from sklearn_rankcal.utils._memory import rows_per_block
from sklearn_rankcal.utils._numbers import read_array
from sklearn_rankcal.utils._typing import Floats, Ints

#: Up to this many documents, all rankings are enumerated.
LARGEST = 8
#: Two expected values of rankings are equal if they differ by at most `ROUNDING` times the expected
#: absolute values of their terms, or by `NOISE` times the maximum of these over all rankings. The
#: second allows for values with terms that cancel.
ROUNDING, NOISE = 1e-12, 1e-14


@lru_cache(maxsize=4)
def all_ranks(r: int) -> Ints:
    """Return all rankings (r!, r) as positions from 1, in ascending order of document lists."""
    orders = np.array(list(itertools.permutations(range(r))), dtype=np.int64)
    ranks = np.argsort(orders, axis=1) + 1
    ranks.flags.writeable = False
    return ranks


def ranking_numbers(ranks: Ints) -> Ints:
    """Return the index in `all_ranks` of each ranking (n, r)."""
    r = ranks.shape[1]
    # Read ranks minus 1 as the digits of a number in base r, which is unique for each ranking.
    digits = r ** np.arange(r)
    codes = (all_ranks(r) - 1) @ digits
    order = np.argsort(codes)
    return order[np.searchsorted(codes[order], (ranks - 1) @ digits)]


def values_of_rankings(
    measure: Callable[[Ranking, Any], Floats], labels: Floats, ranks: Ints
) -> Floats:
    """Return ``measure(ranking, labels)`` of n rankings under each of m labels, (m, n)."""
    m = len(labels)
    values = np.empty((m, len(ranks)))
    # Each pair of a label and a ranking becomes a query. A block has all labels of some rankings.
    step = rows_per_block(8 * labels.size)
    for first in range(0, len(ranks), step):
        some = ranks[first : first + step]
        repeated, queries = as_queries(np.repeat(labels, len(some), axis=0))
        ranked = Ranking.from_ranks(np.tile(some, (m, 1)).ravel(), queries)
        values[:, first : first + step] = measure(ranked, repeated).reshape(m, -1)
    return values


def calibrated_values(loss: Loss, labels: Floats, ranks: Ints) -> Floats:
    """Return `Loss.calibrated_measure` (m, n) of rankings for labels; larger is better."""
    return values_of_rankings(loss.calibrated_measure, labels, ranks)


def bayes_ranking(
    distribution: Distribution, loss: str | Loss, *, time_limit: float | None = None
) -> Ints:
    """Find the ranking with the smallest expected loss.

    Up to 8 documents, all rankings are enumerated. Beyond that, the expected targets are decoded
    exactly (Ramaswamy et al., 2013, theorem 3). ``"map"`` allows 24 documents. A loss that is not
    calibrated for every distribution allows only 8.

    Parameters
    ----------
    distribution : LabelDistribution or tuple (labels, probabilities)
        The distribution of the labels of one query of r documents.
    loss : str or Loss
        A name such as ``"ndcg@10"``, or a loss object.
    time_limit : float, default=None
        Limit in seconds for ``"pd"`` with more than 8 documents and cyclic expected preferences.
        A `ConvergenceWarning` is issued if optimality cannot be proved in this time. None means no
        limit.

    Returns
    -------
    ranks : ndarray of shape (r,)
        The position of each document, 1 = top. If several rankings of up to 8 documents are
        optimal, return the one with the lexicographically first list of documents, best first.

    Raises
    ------
    ValueError
        If there are too many documents, or if the loss is undefined for every label.

    Examples
    --------
    For average precision, the optimal ranking puts the third document last, although it has the
    largest expected score:

    >>> from sklearn_rankcal.consistency import bayes_ranking, expected_targets
    >>> distribution = ([[0, 0, 1, 0], [1, 1, 0, 1]], [0.3, 0.7])
    >>> bayes_ranking(distribution, "map").tolist()
    [1, 2, 4, 3]
    >>> expected_targets(distribution, "map_by_scores").argmax().item()
    2
    """
    loss, distribution = resolve(distribution, loss)
    r = distribution.n_documents
    if r <= LARGEST:
        risks, sizes = _risks(all_ranks(r), distribution, loss)
        # Take the first of the rankings with the least risk, up to rounding.
        best = risks.argmin()
        return all_ranks(r)[np.argmax(risks - risks[best] <= _slack(sizes, best))].copy()
    if not loss.space.is_pairwise and not without_shrinkage(loss).calibrated_everywhere:
        raise ValueError(
            f"The rankings of {r} documents are too many to enumerate (the limit is {LARGEST}), "
            f"and {type(loss).__name__} has no exact decoder; loss='map' and loss='pd' have one."
        )
    if loss.space == SYMMETRIC_PAIRS and r > DP_LARGEST:
        raise ValueError(
            f"Average precision can be maximised exactly for up to {DP_LARGEST} documents; got {r}."
        )
    decoder = get_decoder("exact" if loss.space.is_pairwise else "sort", loss.space)
    if loss.space == PAIRS:
        decoder.set_params(time_limit=time_limit)
    expected = distribution.probabilities @ all_targets(loss, distribution.labels)
    ranks: Ints = decoder.decode(expected, Queries.single(r)).ranks
    return ranks


def ranking_risk(ranks: ArrayLike, distribution: Distribution, loss: str | Loss) -> Any:
    """Compute the expected loss of a ranking: minus the expected `calibrated_measure`.

    Parameters
    ----------
    ranks : array-like of shape (r,) or (n_rankings, r)
        The position of each document, 1 = top. Each row of a two-dimensional array is one ranking.
    distribution : LabelDistribution or tuple (labels, probabilities)
        The distribution of the labels of one query of r documents.
    loss : str or Loss
        A name such as ``"ndcg@10"``, or a loss object.

    Returns
    -------
    risk : float or ndarray of shape (n_rankings,)
        For ``"pd"`` and ``"pd_by_scores"``, the expected weight of the preferences that the ranking
        contradicts. For other losses, minus the expected measure.

    Examples
    --------
    The expected scores of four documents tie, although their order matters (proof of theorem 3.3 of
    Calauzènes et al., 2013, which adds the two labels instead of taking their mean):

    >>> from sklearn_rankcal.consistency import ranking_risk
    >>> distribution = ([[1, 1, 0, 0], [0, 0, 1, 1]], [0.5, 0.5])
    >>> ranking_risk([[1, 3, 2, 4], [1, 2, 3, 4]], distribution, "map").round(4).tolist()
    [-0.6667, -0.7083]
    """
    loss, distribution = resolve(distribution, loss)
    risks, _ = _risks(_read_ranks(ranks, distribution.n_documents), distribution, loss)
    return float(risks[0]) if np.ndim(ranks) == 1 else risks


def _read_ranks(ranks: ArrayLike, r: int) -> Ints:
    """Check one ranking or several, and return an array of shape (n_rankings, r)."""
    given = read_array(ranks, "ranks")
    if given.ndim not in (1, 2) or given.shape[-1] != r:
        raise ValueError(
            f"ranks must have shape ({r},) or (n_rankings, {r}), with the position of each "
            f"document; it has shape {given.shape}."
        )
    rows = given.reshape(-1, r)
    return check_ranks(rows.ravel(), Queries.uniform(len(rows), r)).reshape(rows.shape)


def _risks(ranks: Ints, distribution: LabelDistribution, loss: Loss) -> tuple[Floats, Floats]:
    """Return expected losses of rankings, and the expected absolute values of their terms."""
    values = calibrated_values(loss, distribution.labels, ranks)
    return -(distribution.probabilities @ values), distribution.probabilities @ np.abs(values)


def _slack(sizes: Floats, best: Any) -> Floats:
    """Return how much each ranking may differ from ranking number `best` and still be equal."""
    return ROUNDING * (sizes + sizes[best]) + NOISE * float(sizes.max())


def ranking_regret(
    ranks: ArrayLike,
    distribution: Distribution,
    loss: str | Loss,
    *,
    time_limit: float | None = None,
) -> Any:
    """Compute the regret of a ranking: its expected loss minus the least expected loss.

    Parameters
    ----------
    ranks : array-like of shape (r,) or (n_rankings, r)
        The position of each document, 1 = top. Each row of a two-dimensional array is one ranking.
    distribution : LabelDistribution or tuple (labels, probabilities)
        The distribution of the labels of one query of r documents.
    loss : str or Loss
        A name such as ``"ndcg@10"``, or a loss object.
    time_limit : float, default=None
        Limit in seconds for `bayes_ranking`. If it is too short, a regret can be negative.

    Returns
    -------
    regret : float or ndarray of shape (n_rankings,)
        The regret. It is 0 if a ranking differs from the best one only by rounding.

    Examples
    --------
    Algorithm 1 of Ramaswamy et al. (2013) is not exact on cyclic preferences:

    >>> from sklearn_rankcal.consistency import ranking_regret
    >>> from sklearn_rankcal.decoders import decode_preferences
    >>> weights = [[0, 1, 3, 0], [0, 0, 0, 4], [0, 5, 0, 0], [6, 0, 2, 0]]
    >>> greedy = decode_preferences(weights, "greedy_dag").ranks
    >>> ranking_regret(greedy, ([weights], [1.0]), "pd")
    2.0
    """
    best = bayes_ranking(distribution, loss, time_limit=time_limit)
    loss, distribution = resolve(distribution, loss)
    positions = _read_ranks(ranks, distribution.n_documents)
    risks, sizes = _risks(np.vstack([best, positions]), distribution, loss)
    regret = risks - risks[0]
    regret = np.where(np.abs(regret) <= _slack(sizes, 0), 0.0, regret)[1:]
    return float(regret[0]) if np.ndim(ranks) == 1 else regret
