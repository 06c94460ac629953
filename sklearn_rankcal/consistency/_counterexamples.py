"""Counterexamples: a loss and a decoder or scores in, a distribution on which they fail out."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from sklearn_rankcal.consistency._distributions import (
    LabelDistribution,
    all_targets,
    as_queries,
    check_labels,
)
from sklearn_rankcal.consistency._rankings import all_ranks, calibrated_values, ranking_numbers
from sklearn_rankcal.decoders import get_decoder
from sklearn_rankcal.losses import BinaryLoss, Loss, get_loss
from sklearn_rankcal.queries._queries import Queries
from sklearn_rankcal.utils._numbers import read_numbers

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: Largest query searched: its 720 rankings are evaluated for every distribution.
LARGEST = 6
#: Labels of the pool, and of one distribution, at most.
POOL, MIXED = 1024, 6
#: Distributions evaluated at a time.
CHUNK = 4096
#: Disturbance of the expected targets, and the least regret, relative to their ranges.
DISTURBANCE, LEAST = 1e-12, 1e-7


@dataclass(frozen=True, eq=False)
class Counterexample:
    """A distribution on which a choice of surrogate and decoder is not calibrated.

    Attributes
    ----------
    loss : Loss
        With parameters that it left to the data, such as the top grade of `ERR`, set.
    distribution : LabelDistribution
    u : ndarray of shape (d,)
        The expected targets, or scores, as the decoder takes them.
    ranks : ndarray of shape (r,)
        What the choice tends to, 1 = top. Where ties are broken at random: a way to break them.
    best : ndarray of shape (r,)
        The best ranking.
    regret : float
        Expected loss of `ranks`, above that of `best`.
    """

    loss: Loss
    distribution: LabelDistribution
    u: Floats
    ranks: Ints
    best: Ints
    regret: float

    def __repr__(self) -> str:
        return (
            f"Counterexample for {self.loss!r}: positions {self.ranks.tolist()}, best "
            f"{self.best.tolist()}, regret {self.regret:.4g}\n{self.distribution!r}"
        )


def find_counterexample(
    loss: str | Loss,
    choice: str | BaseEstimator | Callable[[Floats], ArrayLike] = "auto",
    n_documents: int = 3,
    *,
    condition: Callable[[LabelDistribution], Any] | None = None,
    labels: ArrayLike | None = None,
    n_trials: int = 20_000,
    random_state: int | np.random.RandomState | None = None,
) -> Counterexample | None:
    """Search for a distribution on which a choice has positive regret in the limit.

    Parameters
    ----------
    loss : str or Loss
        What rankings are judged by (`ranking_regret`).
    choice : str, decoder or callable, default="auto"
        A decoder, applied to the expected targets of `loss`; or a score function f, from labels
        (m, r) or preference weights (m, r, r) to scores (m, r), and documents are sorted by
        E[f(Y)].
    n_documents : int, default=3
        r, from 2 to 6.
    condition : callable, default=None
        ``condition(distribution)`` is true where counterexamples count, such as `satisfies_dag`.
    labels : array-like of shape (m, r) or (m, r, r), default=None
        Labels to mix. None: relevance 0, 1 for binary losses, and 0 .. 3 for others (1,024 drawn
        where there are more); for losses that take preferences all single ones, total orders, and
        random graphs.
    n_trials : int, default=20000
        Distributions to draw: of 1 to 6 labels, half of them with random probabilities, half with
        proportions of small whole numbers, which make ties.
    random_state : int, RandomState instance or None, default=None
        Seeds the draws.

    Returns
    -------
    counterexample : Counterexample or None
        That of the largest regret found. None proves nothing; it is what calibrated choices give.

    Raises
    ------
    ValueError
        A query too large to enumerate its rankings, labels of another size, scores of a wrong
        shape, a decoder that does not fit the loss, no trials.
    TypeError
        A choice that is none of those.

    Notes
    -----
    Estimates tend to expected targets without reaching them, so calibration is about all that a
    decoder does nearby (P1, definition 1). Expected targets are therefore disturbed by 1e-12 of
    their range before decoding, in a random direction, which breaks ties at random. A regret
    counts from 1e-7 of the range of the loss.

    Examples
    --------
    Scores for pairwise disagreement, though expected preferences are acyclic (P1, section 7.2):

    >>> from sklearn_rankcal.consistency import find_counterexample, satisfies_dag
    >>> found = find_counterexample(
    ...     "pd",
    ...     lambda y: (y - y.transpose(0, 2, 1)).sum(axis=2),
    ...     condition=satisfies_dag,
    ...     random_state=0,
    ... )
    >>> found.regret > 0.1
    True

    None where there is none to find (P1, theorem 3):

    >>> find_counterexample("pd", "exact", n_trials=2000, random_state=0) is None
    True
    """
    r = n_documents
    if isinstance(r, bool) or not isinstance(r, (int, np.integer)) or not 2 <= r <= LARGEST:
        raise ValueError(
            f"n_documents must be a whole number from 2 to {LARGEST}, since all rankings are "
            f"evaluated ({len(all_ranks(LARGEST))} of {LARGEST} documents); got {r!r}."
        )
    if isinstance(n_trials, bool) or not isinstance(n_trials, Integral) or n_trials < 1:
        raise ValueError(f"n_trials must be a whole number >= 1; got {n_trials!r}.")
    if condition is not None and not callable(condition):
        raise TypeError(f"condition must be a function of a LabelDistribution; got {condition!r}.")
    random = check_random_state(random_state)
    loss = get_loss(loss)
    pool = _draw_labels(loss, int(r), random) if labels is None else check_labels(labels)
    if pool.shape[1] != r:
        raise ValueError(f"labels are of {pool.shape[1]} documents, n_documents is {r}.")
    loss = loss.resolve(as_queries(pool)[0])
    value = calibrated_values(loss, pool, all_ranks(r))
    defined = ~np.isnan(value[:, 0])
    if not defined.any():
        raise ValueError(f"{loss!r} is undefined for every label.")
    pool, value = pool[defined], value[defined]
    targets, decoder = _surrogate(loss, choice, pool)
    span = np.ptp(targets) or 1.0
    found, least = None, LEAST * float(np.ptp(value))
    for first in range(0, n_trials, CHUNK):
        n = min(CHUNK, n_trials - first)
        chance = _draw_mixtures(n, len(pool), random)
        u = chance @ targets
        u += DISTURBANCE * span * random.normal(size=u.shape)
        ranks = decoder.decode(u.ravel(), Queries.uniform(n, r)).ranks.reshape(n, r)
        expected = chance @ value
        best = expected.argmax(axis=1)
        regret = expected[np.arange(n), best] - expected[np.arange(n), ranking_numbers(ranks)]
        for t in np.argsort(-regret, kind="stable"):
            if regret[t] <= least:
                break
            probabilities = chance[[t]].toarray()[0]
            mixed = np.flatnonzero(probabilities)
            distribution = LabelDistribution(pool[mixed], probabilities[mixed])
            if condition is None or condition(distribution):
                least = float(regret[t])
                found = Counterexample(
                    loss, distribution, u[t], ranks[t], all_ranks(r)[best[t]].copy(), least
                )
                break
    return found


def _surrogate(
    loss: Loss, choice: str | BaseEstimator | Callable[[Floats], ArrayLike], pool: Floats
) -> tuple[Floats, BaseEstimator]:
    """The targets of every label, or scores, and their decoder."""
    if isinstance(choice, type):
        raise TypeError(f"A decoder object is needed, not the class; got {choice!r}.")
    if not callable(choice):
        return all_targets(loss, pool), get_decoder(choice, loss.space, loss.default_decoder)
    scores = np.array(read_numbers(choice(pool.copy()), "what the choice returned"))
    if scores.shape != pool.shape[:2] or not np.isfinite(scores).all():
        raise ValueError(
            f"The score function must return {pool.shape[:2]} finite scores, one for each document "
            f"of each label; it returned shape {scores.shape}."
        )
    return scores, get_decoder("sort", "scores")


def _draw_labels(loss: Loss, r: int, random: np.random.RandomState) -> Floats:
    """The labels to mix."""
    if loss.takes_preferences:
        single = np.eye(r * r).reshape(-1, r, r)[~np.eye(r, dtype=bool).ravel()]
        ranks = all_ranks(r)[random.permutation(len(all_ranks(r)))[:60]]
        orders = (ranks[:, :, None] < ranks[:, None, :]).astype(np.float64)
        graphs = random.randint(1, 4, (60, r, r)) * (random.rand(60, r, r) < 0.4)
        graphs[:, np.arange(r), np.arange(r)] = 0
        return np.concatenate([single, orders, graphs])
    binary = isinstance(loss, BinaryLoss) and loss.threshold is None
    levels = range(2) if binary else range(4)
    every = np.array(list(itertools.product(levels, repeat=r)), dtype=np.float64)
    return every[random.permutation(len(every))[:POOL]]


def _draw_mixtures(n: int, n_labels: int, random: np.random.RandomState) -> sparse.csr_array:
    """Probabilities (n, n_labels) of n distributions of up to `MIXED` labels."""
    weight = random.gamma(0.7, size=(n, MIXED))
    weight[: n // 2] = random.randint(1, 6, (n // 2, MIXED))
    weight[np.arange(MIXED) > random.randint(MIXED, size=(n, 1))] = 0.0
    weight /= weight.sum(axis=1, keepdims=True)
    label = random.randint(n_labels, size=(n, MIXED))
    return sparse.csr_array(
        (weight.ravel(), label.ravel(), np.arange(0, n * MIXED + 1, MIXED)), (n, n_labels)
    )
