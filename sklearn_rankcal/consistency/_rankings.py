"""Rankings of one query: a distribution and a loss in, the best ranking or a regret out."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.consistency._distributions import (
    LabelDistribution,
    all_targets,
    as_queries,
    resolve,
)
from sklearn_rankcal.decoders import get_decoder
from sklearn_rankcal.decoders._average_precision import DP_LARGEST
from sklearn_rankcal.losses import Loss
from sklearn_rankcal.losses._base import without_shrinkage
from sklearn_rankcal.measures._formulas import Ranking, check_ranks
from sklearn_rankcal.queries._queries import Queries
from sklearn_rankcal.utils._memory import rows_per_block
from sklearn_rankcal.utils._numbers import read_array

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: Rankings are enumerated up to this many documents.
LARGEST = 8
#: Expected goals of rankings may differ by this share of their terms and count as equal; or by
#: this share of the largest terms of any ranking, which a goal of terms that cancel is rounded by.
ROUNDING, NOISE = 1e-12, 1e-14


@lru_cache(maxsize=4)
def all_ranks(r: int) -> Ints:
    """All rankings (r!, r), positions from 1, by lexicographic order of the documents listed."""
    orders = np.array(list(itertools.permutations(range(r))), dtype=np.int64)
    ranks = np.argsort(orders, axis=1) + 1
    ranks.flags.writeable = False
    return ranks


def ranking_numbers(ranks: Ints) -> Ints:
    """Return the index in `all_ranks` of each ranking (n, r)."""
    r = ranks.shape[1]
    # Ranks minus 1 are the digits of a number in base r, which differs for different rankings.
    digits = r ** np.arange(r)
    codes = (all_ranks(r) - 1) @ digits
    order = np.argsort(codes)
    return order[np.searchsorted(codes[order], (ranks - 1) @ digits)]


def values_of_rankings(
    measure: Callable[[Ranking, Any], Floats], labels: Floats, ranks: Ints
) -> Floats:
    """Return ``measure(ranking, labels)`` of each ranking under each of m labels.

    Parameters
    ----------
    measure : callable
        It receives a `Ranking` of many queries and their labels, and returns one value per query.
    labels : ndarray of shape (m, r) or (m, r, r)
        Relevance or preference weights.
    ranks : ndarray of shape (n, r)
        Positions of the documents, from 1.

    Returns
    -------
    values : ndarray of shape (m, n)
    """
    m = len(labels)
    values = np.empty((m, len(ranks)))
    # Each pair of a label and a ranking becomes a query. A block holds all labels of some rankings.
    step = rows_per_block(8 * labels.size)
    for first in range(0, len(ranks), step):
        some = ranks[first : first + step]
        repeated, queries = as_queries(np.repeat(labels, len(some), axis=0))
        ranked = Ranking.from_ranks(np.tile(some, (m, 1)).ravel(), queries)
        values[:, first : first + step] = measure(ranked, repeated).reshape(m, -1)
    return values


def calibrated_values(loss: Loss, labels: Floats, ranks: Ints) -> Floats:
    """Return the value (m, n) of each ranking under each label for which the loss is calibrated.

    This is `Loss.calibrated_measure`, of which larger values are better. The time is at most
    O(n m r^2).
    """
    return values_of_rankings(loss.calibrated_measure, labels, ranks)


def bayes_ranking(
    distribution: LabelDistribution | tuple[Any, Any],
    loss: str | Loss,
    *,
    time_limit: float | None = None,
) -> Ints:
    """The ranking of the smallest expected loss.

    Parameters
    ----------
    distribution : LabelDistribution or tuple (labels, probabilities)
    loss : str or Loss
    time_limit : float, default=None
        Seconds for ``"pd"`` beyond 8 documents, where expected preferences are cyclic; a
        `ConvergenceWarning` says when they were too few to prove that the ranking is best.

    Returns
    -------
    ranks : ndarray of shape (r,)
        Position of each document, 1 = top. Of equally good rankings one: up to 8 documents the
        one that lists documents of small number first.

    Raises
    ------
    ValueError
        Not a distribution; labels that the loss does not take; more than 8 documents and a loss
        without an exact decoder, more than 24 and ``"map"``.

    See Also
    --------
    ranking_risk : What is minimised.

    Notes
    -----
    Up to 8 documents all r! rankings are enumerated, whatever the loss is. Beyond, the expected
    targets are decoded exactly (P1, theorem 3): by a sort for losses that are calibrated by it
    for every distribution, by ``decoder="exact"`` for ``"pd"`` and ``"map"``. Uniform random
    preferences of 30 documents take a fraction of a second, of 45 perhaps minutes.

    Examples
    --------
    Average precision wants the third document last, though its expected score is the largest:

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
        best = risks.argmin()
        return all_ranks(r)[np.argmax(risks - risks[best] <= _slack(sizes, best))].copy()
    if loss.space == "scores" and not without_shrinkage(loss).calibrated_everywhere:
        raise ValueError(
            f"{r} documents have {math.factorial(r):,} rankings, too many to enumerate (the "
            f"limit is {LARGEST} documents), and {type(loss).__name__} has no exact decoder. "
            "Average precision has one in loss='map', pairwise disagreement in loss='pd'."
        )
    if loss.space == "sym_pairs" and r > DP_LARGEST:
        raise ValueError(
            f"Average precision is maximised exactly for up to {DP_LARGEST} documents; got {r}."
        )
    decoder = get_decoder("sort" if loss.space == "scores" else "exact", loss.space)
    if loss.space == "pairs":
        decoder.set_params(time_limit=time_limit)
    expected = distribution.probabilities @ all_targets(loss, distribution.labels)
    ranks: Ints = decoder.decode(expected, Queries.single(r)).ranks
    return ranks


def ranking_risk(
    ranks: ArrayLike, distribution: LabelDistribution | tuple[Any, Any], loss: str | Loss
) -> Any:
    """Expected loss of a ranking: minus the expected `Loss.goal`.

    Parameters
    ----------
    ranks : array-like of shape (r,) or (n_rankings, r)
        Position of each document, 1 = top.
    distribution : LabelDistribution or tuple (labels, probabilities)
    loss : str or Loss

    Returns
    -------
    risk : float or ndarray of shape (n_rankings,)
        The weight that the ranking is expected to contradict for ``"pd"`` and
        ``"pd_by_scores"``; minus the expected measure for the others.

    Raises
    ------
    ValueError
        Not a distribution; ranks that are not a permutation of 1 .. r; labels that the loss does
        not take.

    Examples
    --------
    P2, theorem 3.3: scores that were best for every distribution would have to tie these four
    documents (lemma B.2), yet their order matters. The
    differences are those of the means over the two labels, -1/24 and +1/48; the proof prints
    -1/12 and +1/24, which are their sums over the labels.

    >>> from fractions import Fraction
    >>> from sklearn_rankcal.consistency import ranking_risk
    >>> distribution = ([[1, 1, 0, 0], [0, 0, 1, 1]], [0.5, 0.5])
    >>> for loss in ("map", "err"):
    ...     values = -ranking_risk([[1, 3, 2, 4], [1, 2, 3, 4]], distribution, loss)
    ...     print(loss, *(Fraction(value).limit_denominator(100) for value in values))
    map 2/3 17/24
    err 43/96 41/96
    """
    loss, distribution = resolve(distribution, loss)
    risks, _ = _risks(_read_ranks(ranks, distribution.n_documents), distribution, loss)
    return float(risks[0]) if np.ndim(ranks) == 1 else risks


def _read_ranks(ranks: ArrayLike, r: int) -> Ints:
    """Rankings (n_rankings, r), checked."""
    given = read_array(ranks, "ranks")
    if given.ndim not in (1, 2) or given.shape[-1] != r:
        raise ValueError(
            f"ranks must have shape ({r},) or (n_rankings, {r}), the position of each document; "
            f"it has shape {given.shape}."
        )
    rows = given.reshape(-1, r)
    return check_ranks(rows.ravel(), Queries.uniform(len(rows), r)).reshape(rows.shape)


def _risks(ranks: Ints, distribution: LabelDistribution, loss: Loss) -> tuple[Floats, Floats]:
    """Expected losses of rankings, and the expected absolute values that they add up."""
    values = calibrated_values(loss, distribution.labels, ranks)
    return -(distribution.probabilities @ values), distribution.probabilities @ np.abs(values)


def _slack(sizes: Floats, best: Any) -> Floats:
    """Up to what difference a ranking is as good as that of number `best`."""
    return ROUNDING * (sizes + sizes[best]) + NOISE * float(sizes.max())


def ranking_regret(
    ranks: ArrayLike,
    distribution: LabelDistribution | tuple[Any, Any],
    loss: str | Loss,
    *,
    time_limit: float | None = None,
) -> Any:
    """Expected loss of a ranking, above that of the best one.

    Parameters
    ----------
    ranks : array-like of shape (r,) or (n_rankings, r)
        Position of each document, 1 = top.
    distribution : LabelDistribution or tuple (labels, probabilities)
    loss : str or Loss
    time_limit : float, default=None
        As in `bayes_ranking`.

    Returns
    -------
    regret : float or ndarray of shape (n_rankings,)
        0 for the best, and for rankings that differ from it by no more than rounding. Below 0 only
        where `time_limit` was too short to find the best.

    Raises
    ------
    ValueError
        As `ranking_risk` and `bayes_ranking`.

    Examples
    --------
    Algorithm 1 of P1 is not exact on cyclic preferences:

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
