"""A numerical check of calibration, and the search for counterexamples."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from sklearn_rankcal.consistency import _distributions
from sklearn_rankcal.consistency._distributions import LabelDistribution
from sklearn_rankcal.consistency._regrets import (
    LARGEST,
    ExpectedSurrogates,
    is_piecewise_linear,
    minimizers,
    resolved_targets,
)
from sklearn_rankcal.decoders._registry import get_decoder
from sklearn_rankcal.losses import Loss, get_loss
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.surrogates import SURROGATES, Surrogate, get_surrogate
from sklearn_rankcal.targets import SCORES
from sklearn_rankcal.utils._messages import check_count
from sklearn_rankcal.utils._numbers import Floats, Ints, is_largest, read_numbers

#: A ranking is checked if its regret is at least `NOTABLE` times the range of the loss. Scores are
#: a minimum if their surrogate regret and their derivatives are at most `NOTHING` times the
#: expected surrogate, and its derivatives, at scores of 0.
NOTABLE, NOTHING = 1e-3, 1e-9
#: Number of distributions drawn at a time to find some that satisfy the condition, and the maximum
#: number of such draws.
DRAWN, DRAWS = 1000, 50
#: Largest query to search. All its 720 rankings are evaluated for every distribution.
LARGEST_SEARCHED = 6
#: Maximum number of labels in the pool, and in one distribution.
POOL, MIXED = 1024, 6
#: Distributions evaluated at a time.
BLOCK = 4096
#: Standard deviation of the disturbance, relative to the range of the targets (or of the minimising
#: scores of a surrogate), and smallest regret of a counterexample, relative to the range of the
#: loss.
DISTURBANCE, LEAST = 1e-12, 1e-7
#: What `find_counterexample` applies to distributions.
Choice: TypeAlias = str | BaseEstimator | Surrogate | Callable[[Floats], ArrayLike]
#: Mixtures as two arrays (n, `MIXED`): the numbers of the labels, and their probabilities.
Mixtures = tuple[Ints, Floats]


@dataclass(frozen=True, eq=False)
class CalibrationCheck:
    """The result of `is_calibrated_numerically`. It is true if no failure was found.

    Attributes
    ----------
    counterexample : Counterexample or None
        A distribution where the surrogate fails. Its scores minimise the expected surrogate,
        but can be sorted to a ranking with a positive regret.
    margin : float
        Smallest ratio found of surrogate regret and squared regret. Every bound regret <=
        c C_phi(2) sqrt(surrogate regret) has (c C_phi(2))^-2 <= margin. Infinite if no ranking has
        regret.
    n_distributions : tuple of two ints
        Number of distributions checked at a minimiser, and number checked at near-minimisers.
    """

    counterexample: Counterexample | None
    margin: float
    n_distributions: tuple[int, int]

    def __bool__(self) -> bool:
        return self.counterexample is None

    def __repr__(self) -> str:
        if self.counterexample is not None:
            return f"not calibrated:\n{self.counterexample!r}"
        return (
            f"no failure in {self.n_distributions[0]} minimisers and the near-minimisers of "
            f"{self.n_distributions[1]} distributions; margin {self.margin:.3g}"
        )


def is_calibrated_numerically(
    surrogate: str | Surrogate,
    loss: str | Loss,
    n_documents: int = 3,
    *,
    condition: Callable[[LabelDistribution], Any] | None = None,
    labels: ArrayLike | None = None,
    n_trials: int = 20_000,
    n_cones: int = 200,
    random_state: int | np.random.RandomState | None = None,
) -> CalibrationCheck:
    """Check numerically whether a surrogate, followed by a sort, is calibrated for a loss.

    There are two steps:

    1. `find_counterexample` checks one minimiser of each of `n_trials` distributions.
    2. For `n_cones` distributions, the surrogate is minimised over the scores of every ranking with
       a regret of at least 0.001 of the range of the loss. The check fails if the surrogate regret
       and the derivatives there are at most 1e-9 of their size at scores of 0 (Ramaswamy et al.,
       2013, definition 1, with a sort as pred).

    Parameters
    ----------
    surrogate : str or Surrogate
        A name in `surrogates.SURROGATES`, or an object. If its parameter `eta` is None, eta is
        computed from `labels`.
    loss : str or Loss
        The loss that judges the rankings (see `ranking_regret`).
    n_documents : int, default=3
        Number r of documents, from 2 to 5.
    condition : callable, default=None
        A function of a `LabelDistribution`, such as `satisfies_dag`. Only distributions where it
        returns True are used. None means all distributions.
    labels : array-like of shape (m, r) or (m, r, r), default=None
        The labels to mix, as in `find_counterexample`.
    n_trials : int, default=20000
        Number of distributions in the first step.
    n_cones : int, default=200
        Number of distributions in the second step.
    random_state : int, RandomState instance or None, default=None
        Seed of the random distributions.

    Returns
    -------
    check : CalibrationCheck
        True if no failure was found, which is not a proof. Otherwise, `counterexample` is a proof
        up to the tolerances.

    Examples
    --------
    >>> from sklearn_rankcal.consistency import is_calibrated_numerically
    >>> is_calibrated_numerically("softmax", "ndcg", n_trials=2000, random_state=0)
    no failure in 2000 minimisers and the near-minimisers of 200 distributions; margin 2.33
    >>> bool(is_calibrated_numerically("ranknet", "ndcg", n_trials=2000, random_state=0))
    False
    """
    r = read_size(n_documents, LARGEST)
    check_count(n_cones, "n_cones")
    random = check_random_state(random_state)
    surrogate = get_surrogate(surrogate)
    found = find_counterexample(
        loss,
        surrogate,
        r,
        condition=condition,
        labels=labels,
        n_trials=n_trials,
        random_state=random,
    )
    if found is not None:
        return CalibrationCheck(found, 0.0, (n_trials, 0))
    loss, pool, value = draw_pool(get_loss(loss), r, labels, random)
    surrogate, targets = resolved_targets(surrogate, loss, pool)
    label, weight = _draw(n_cones, pool, condition, random)
    n = len(label)
    problems = ExpectedSurrogates(surrogate, targets, label, weight)
    expected = np.einsum("nk,nkt->nt", weight, value[label])
    regret = expected.max(axis=1, keepdims=True) - expected
    at, ranking = np.nonzero((regret > 0) & (regret >= NOTABLE * np.ptp(value)))
    if len(at) == 0:
        return CalibrationCheck(None, np.inf, (n_trials, n))
    ranks = _distributions.all_ranks(r)
    cones = problems.take(at)
    scores = minimizers(cones, np.argsort(ranks[ranking], axis=1))
    least = problems.value(minimizers(problems))[at]
    excess = np.maximum(cones.value(scores) - least, 0.0)
    size = np.abs(problems.value(np.zeros((n, r))))[at]
    minimal = excess <= NOTHING * size
    if not is_piecewise_linear(cones):
        # The surrogate regret of two documents is of second order in the difference of their
        # utilities: it can vanish compared to the value at 0. Derivatives are of first order.
        slope = np.abs(cones.gradient(scores)).max(axis=1)
        minimal &= slope <= NOTHING * cones.scale()
    if not minimal.any():
        ratio = excess / np.square(regret[at, ranking])
        return CalibrationCheck(None, float(ratio.min()), (n_trials, n))
    failures = np.flatnonzero(minimal)
    worst = failures[np.argmax(is_largest(regret[at, ranking][failures]))]
    q = at[worst]
    counterexample = Counterexample(
        loss,
        mixture_of(pool, label[q], weight[q]),
        scores[worst],
        ranks[ranking[worst]].copy(),
        ranks[np.argmax(is_largest(expected[q]))].copy(),
        float(regret[q, ranking[worst]]),
    )
    return CalibrationCheck(counterexample, 0.0, (n_trials, n))


def _draw(
    n: int,
    pool: Floats,
    condition: Callable[[LabelDistribution], Any] | None,
    random: np.random.RandomState,
) -> tuple[Ints, Floats]:
    """Draw n mixtures that satisfy the condition, or fewer if few distributions satisfy it."""
    if condition is None:
        return draw_mixtures(n, len(pool), random)
    kept = (
        mixture
        for _ in range(DRAWS)
        for mixture in zip(*draw_mixtures(DRAWN, len(pool), random), strict=True)
        if condition(mixture_of(pool, *mixture))
    )
    mixtures = list(itertools.islice(kept, n))
    if not mixtures:
        raise ValueError(f"None of {DRAWS * DRAWN} distributions satisfies {condition!r}.")
    labels, weights = zip(*mixtures, strict=True)
    return np.array(labels), np.array(weights)


@dataclass(frozen=True, eq=False)
class Counterexample:
    """A distribution where a loss with a decoder, scores or a surrogate is not calibrated.

    Attributes
    ----------
    loss : Loss
        The loss, with data-dependent parameters filled in.
    distribution : LabelDistribution
        The distribution of the labels.
    u : ndarray of shape (d,)
        The expected targets or scores, in the layout of the decoder, or the scores that minimise
        the expected surrogate.
    ranks : ndarray of shape (r,)
        A ranking that the choice gives in the limit, as positions, 1 = top.
    best : ndarray of shape (r,)
        The best ranking, as positions.
    regret : float
        The expected loss of `ranks` minus the expected loss of `best`.
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
    choice: Choice = "auto",
    n_documents: int = 3,
    *,
    condition: Callable[[LabelDistribution], Any] | None = None,
    labels: ArrayLike | None = None,
    n_trials: int = 20_000,
    random_state: int | np.random.RandomState | None = None,
) -> Counterexample | None:
    """Search for a distribution where a choice has positive regret in the limit.

    Estimates approach the expected targets without reaching them (Ramaswamy et al., 2013,
    definition 1). Expected targets are therefore disturbed by 1e-12 of their range, which breaks
    ties at random. A regret counts if it exceeds 1e-7 of the range of the loss.

    Parameters
    ----------
    loss : str or Loss
        The loss that judges the rankings (see `ranking_regret`).
    choice : str, decoder, Surrogate or callable, default="auto"
        How to rank:

        - A decoder is applied to the expected targets of `loss`.
        - A surrogate, or a name in `surrogates.SURROGATES`, is minimised, and one of its minimisers
          is sorted.
        - A function f maps labels (m, r) or preference weights (m, r, r) to scores (m, r), and
          E[f(Y)] is sorted.
    n_documents : int, default=3
        Number r of documents, from 2 to 6.
    condition : callable, default=None
        A function of a `LabelDistribution`, such as `satisfies_dag`. Only distributions where
        it returns True are used. None means all distributions.
    labels : array-like of shape (m, r) or (m, r, r), default=None
        The labels to mix. None means grades 0 and 1 for binary losses, grades 0 to 3 for other
        losses, and for losses that accept preferences: single preferences, orders and random
        graphs.
    n_trials : int, default=20000
        Number of distributions to draw. Each has 1 to 6 labels.
    random_state : int, RandomState instance or None, default=None
        Seed of the random distributions.

    Returns
    -------
    counterexample : Counterexample or None
        The counterexample with the largest regret. None if none was found, which is not a proof.

    Examples
    --------
    Sorting by scores can fail for pairwise disagreement even if the expected
    preferences are acyclic (Ramaswamy et al., 2013, section 7.2). The exact decoder has no
    counterexample (theorem 3):

    >>> from sklearn_rankcal.consistency import find_counterexample, satisfies_dag
    >>> found = find_counterexample(
    ...     "pd",
    ...     lambda y: (y - y.transpose(0, 2, 1)).sum(axis=2),
    ...     condition=satisfies_dag,
    ...     random_state=0,
    ... )
    >>> found.regret > 0.1
    True
    >>> find_counterexample("pd", "exact", n_trials=2000, random_state=0) is None
    True
    """
    r = read_size(n_documents, LARGEST_SEARCHED)
    check_count(n_trials, "n_trials")
    if condition is not None and not callable(condition):
        raise TypeError(f"condition must be a function of a LabelDistribution; got {condition!r}.")
    random = check_random_state(random_state)
    loss = get_loss(loss)
    loss, pool, value = draw_pool(loss, r, labels, random)
    predict, decoder = _limit(loss, choice, pool, random)
    found, least = None, LEAST * float(np.ptp(value))
    for first in range(0, n_trials, BLOCK):
        # Step 1: draw distributions, and decode their disturbed expected targets or scores.
        n = min(BLOCK, n_trials - first)
        mixtures = draw_mixtures(n, len(pool), random)
        label, weight = mixtures
        starts = np.arange(0, label.size + 1, MIXED)
        chance = sparse.csr_array((weight.ravel(), label.ravel(), starts), (n, len(pool)))
        u = predict(mixtures, chance)
        ranks = decoder.decode(u.ravel(), Queries.uniform(n, r)).ranks.reshape(n, r)
        # Step 2: compute the regrets from the expected value of every ranking.
        expected = chance @ value
        best = expected.argmax(axis=1)
        regret = (
            expected[np.arange(n), best]
            - expected[np.arange(n), _distributions.ranking_numbers(ranks)]
        )
        # Step 3: find the largest regret of the block under the condition. The condition can be
        # slow: check it in order of decreasing regret until it holds.
        for t in np.argsort(-regret, kind="stable"):
            if regret[t] <= least:
                break
            distribution = mixture_of(pool, mixtures[0][t], mixtures[1][t])
            if condition is None or condition(distribution):
                least = float(regret[t])
                found = Counterexample(
                    loss,
                    distribution,
                    u[t],
                    ranks[t],
                    _distributions.all_ranks(r)[best[t]].copy(),
                    least,
                )
                break
    return found


def read_size(n_documents: Any, largest: int) -> int:
    """Check the number of documents: all rankings will be evaluated."""
    check_count(n_documents, "n_documents")
    if not 2 <= n_documents <= largest:
        raise ValueError(f"n_documents must be from 2 to {largest}; got {n_documents}.")
    return int(n_documents)


def draw_pool(
    loss: Loss, r: int, labels: ArrayLike | None, random: np.random.RandomState
) -> tuple[Loss, Floats, Floats]:
    """Return the resolved loss, the labels with a defined loss, and the values of rankings."""
    pool = _draw_labels(loss, r, random) if labels is None else _distributions.check_labels(labels)
    if pool.shape[1] != r:
        raise ValueError(f"labels have {pool.shape[1]} documents, but n_documents is {r}.")
    loss = loss.resolve(_distributions.as_queries(pool)[0])
    value = _distributions.calibrated_values(loss, pool, _distributions.all_ranks(r))
    defined = ~np.isnan(value[:, 0])
    if not defined.any():
        raise ValueError(f"{loss!r} is undefined for every label.")
    return loss, pool[defined], value[defined]


def _limit(
    loss: Loss, choice: Choice, pool: Floats, random: np.random.RandomState
) -> tuple[Callable[[Mixtures, sparse.csr_array], Floats], BaseEstimator]:
    """Return a function that maps mixtures to the limit of estimates, and its decoder."""
    if isinstance(choice, type):
        raise TypeError(
            f"choice must be a decoder or surrogate object and not the class; got {choice!r}."
        )
    if isinstance(choice, Surrogate) or (isinstance(choice, str) and choice in SURROGATES):
        surrogate, utilities = resolved_targets(get_surrogate(choice), loss, pool)

        def minimise(mixtures: Mixtures, chance: sparse.csr_array) -> Floats:
            scores = minimizers(ExpectedSurrogates(surrogate, utilities, *mixtures))
            # Use the range of the query, because some surrogates have minimisers near 0. If all
            # scores tie, a disturbance of any size breaks the tie.
            span = np.ptp(scores, axis=1, keepdims=True)
            span[span == 0] = 1.0
            return scores + DISTURBANCE * span * random.normal(size=scores.shape)

        return minimise, get_decoder("sort", SCORES)
    targets, decoder = _targets(loss, choice, pool)
    span = np.ptp(targets) or 1.0  # the range of the targets

    def average(mixtures: Mixtures, chance: sparse.csr_array) -> Floats:
        u: Floats = chance @ targets
        return u + DISTURBANCE * span * random.normal(size=u.shape)

    return average, decoder


def _targets(
    loss: Loss, choice: str | BaseEstimator | Callable[[Floats], ArrayLike], pool: Floats
) -> tuple[Floats, BaseEstimator]:
    """Return the targets or scores of every label, and the matching decoder."""
    if not callable(choice):
        return _distributions.all_targets(loss, pool), get_decoder(choice, loss.space)
    scores = np.array(read_numbers(choice(pool.copy()), "the return value of choice"))
    if scores.shape != pool.shape[:2] or not np.isfinite(scores).all():
        raise ValueError(
            f"The score function must return {pool.shape[:2]} finite scores, one for each document "
            f"of each label; it returned shape {scores.shape}."
        )
    return scores, get_decoder("sort", SCORES)


def _draw_labels(loss: Loss, r: int, random: np.random.RandomState) -> Floats:
    """Draw the labels to mix if the user passes none."""
    if loss.takes_preferences:
        single = np.eye(r * r).reshape(-1, r, r)[~np.eye(r, dtype=bool).ravel()]
        ranks = _distributions.all_ranks(r)[
            random.permutation(len(_distributions.all_ranks(r)))[:60]
        ]
        orders = (ranks[:, :, None] < ranks[:, None, :]).astype(np.float64)
        graphs = random.randint(1, 4, (60, r, r)) * (random.rand(60, r, r) < 0.4)
        graphs[:, np.arange(r), np.arange(r)] = 0
        return np.concatenate([single, orders, graphs])
    levels = range(2) if loss.needs_threshold else range(4)
    every = np.array(list(itertools.product(levels, repeat=r)), dtype=np.float64)
    return every[random.permutation(len(every))[:POOL]]


def draw_mixtures(n: int, n_labels: int, random: np.random.RandomState) -> Mixtures:
    """Draw n distributions of 1 to `MIXED` labels each."""
    weight = random.gamma(0.7, size=(n, MIXED))
    weight[: n // 2] = random.randint(1, 6, (n // 2, MIXED))
    weight[np.arange(MIXED) > random.randint(MIXED, size=(n, 1))] = 0.0
    weight /= weight.sum(axis=1, keepdims=True)
    return random.randint(n_labels, size=(n, MIXED)), weight


def mixture_of(pool: Floats, label: Ints, weight: Floats) -> LabelDistribution:
    """Return a mixture as a `LabelDistribution` of distinct labels."""
    mixed = np.unique(label[weight > 0])
    return LabelDistribution(pool[mixed], [weight[label == k].sum() for k in mixed])
