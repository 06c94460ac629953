"""Surrogate regrets, suboptimality, and a numerical check of calibration."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from sklearn_rankcal.consistency._counterexamples import (
    Counterexample,
    draw_mixtures,
    draw_pool,
    find_counterexample,
    mixture_of,
    read_size,
)
from sklearn_rankcal.consistency._distributions import Distribution, LabelDistribution, resolve
from sklearn_rankcal.consistency._minima import (
    ExpectedSurrogates,
    is_piecewise_linear,
    minimizers,
    resolved_targets,
)
from sklearn_rankcal.consistency._rankings import all_ranks, ranking_regret
from sklearn_rankcal.losses import Loss, get_loss
from sklearn_rankcal.surrogates import Surrogate, get_surrogate
from sklearn_rankcal.utils._numbers import read_numbers
from sklearn_rankcal.utils._parameters import check_count
from sklearn_rankcal.utils._rounding import is_largest
from sklearn_rankcal.utils._typing import Floats, Ints

#: Largest query. A surrogate is minimised over the scores of each of its 120 rankings.
LARGEST = 5
#: Expected values of surrogates that differ by at most this relative amount are equal.
ROUNDING = 1e-12
#: A ranking is checked if its regret is at least `NOTABLE` times the range of the loss. Scores are
#: a minimum if their surrogate regret and their derivatives are at most `NOTHING` times the
#: expected surrogate, and its derivatives, at scores of 0.
NOTABLE, NOTHING = 1e-3, 1e-9
#: Number of distributions drawn at a time to find some that satisfy the condition, and the maximum
#: number of such draws.
DRAWN, DRAWS = 1000, 50


def surrogate_regret(
    scores: ArrayLike, distribution: Distribution, loss: str | Loss, surrogate: str | Surrogate
) -> Any:
    """Compute the expected value of a surrogate for scores, minus its infimum over all scores.

    The utilities are the targets of `expected_targets`, without shrinkage. If the labels are
    preferences and the surrogate accepts them, it is evaluated for each label and not for the mean.
    :doc:`/surrogate_theory` describes how the infimum is found.

    Parameters
    ----------
    scores : array-like of shape (r,) or (n_scores, r)
        The score of each document. Each row of a two-dimensional array is evaluated separately.
    distribution : LabelDistribution or tuple (labels, probabilities)
        The distribution of the labels of one query of r documents.
    loss : str or Loss
        A name such as ``"ndcg@10"``, or a loss object. Its targets are the utilities.
    surrogate : str or Surrogate
        A name in `surrogates.SURROGATES`, or an object. If its parameter `eta` is None, eta is
        computed from the labels of the distribution.

    Returns
    -------
    regret : float or ndarray of shape (n_scores,)
        The regret, at least 0. Values within rounding (1e-12 of the expected value) are set to 0.

    Warns
    -----
    ConvergenceWarning
        If a derivative at the minimum is larger than 1e-6 of its size at scores of 0. For
        non-convex surrogates, only derivatives are checked.

    Examples
    --------
    >>> from sklearn_rankcal.consistency import surrogate_regret
    >>> distribution = ([[1, 0], [0, 1]], [0.75, 0.25])
    >>> surrogate_regret([[0.75, 0.25], [0.5, 0.5]], distribution, "dcg", "pointwise_squared")
    array([0.   , 0.125])
    """
    problem, rows = _problem(scores, distribution, loss, surrogate)
    values = problem.take(np.zeros(len(rows), dtype=np.int64)).value(rows)
    regret = _regret(values, problem.value(minimizers(problem)))
    return float(regret[0]) if np.ndim(scores) == 1 else regret


def suboptimality(
    epsilon: ArrayLike, distribution: Distribution, loss: str | Loss, surrogate: str | Surrogate
) -> Any:
    """Compute H(epsilon), the least surrogate regret of scores with a regret of at least epsilon.

    This is equation (9) of Duchi et al. (2013). A surrogate is consistent if and only if H is
    positive for all positive epsilon and all distributions (their proposition 2). The function
    minimises the surrogate over the scores of every ranking with such a regret; see
    :doc:`/surrogate_theory`.

    Parameters
    ----------
    epsilon : float or array-like of shape (n,)
        Non-negative regrets of the ranking.
    distribution : LabelDistribution or tuple (labels, probabilities)
        The distribution of the labels of one query of at most 5 documents.
    loss : str or Loss
        A name such as ``"ndcg@10"``, or a loss object. Its targets are the utilities.
    surrogate : str or Surrogate
        A name in `surrogates.SURROGATES`, or an object, as in `surrogate_regret`.

    Returns
    -------
    regret : float or ndarray of shape (n,)
        H(epsilon). It is infinite if no ranking has a regret of epsilon or more. If H(epsilon) is 0
        for a positive epsilon, some scores minimise the surrogate although their ranking has that
        regret.

    Raises
    ------
    ValueError
        If an argument is invalid, or if there are more than 5 documents.

    Examples
    --------
    RankSVM is not consistent, even if preferences reinforce each other, as in the proof of theorem
    3 of Duchi et al. (2013). Here a ranking that loses 0.01 of expected weight has no surrogate
    regret:

    >>> import numpy as np
    >>> from sklearn_rankcal.consistency import suboptimality
    >>> labels = np.zeros((4, 3, 3))  # single preferences 0 > 1, 1 > 2, 0 > 2 and 2 > 0
    >>> labels[range(4), [0, 1, 0, 2], [1, 2, 2, 0]] = 1
    >>> suboptimality([0.01, 0.02], (labels, [0.25, 0.01, 0.5, 0.24]), "pd", "ranksvm").round(9)
    array([0.  , 0.24])
    """
    wanted = read_numbers(epsilon, "epsilon")
    if not ((wanted >= 0) & np.isfinite(wanted)).all():
        raise ValueError(f"epsilon must be finite and >= 0; got {epsilon!r}.")
    surrogate = get_surrogate(surrogate)
    loss, distribution = resolve(distribution, loss)
    r = distribution.n_documents
    if r > LARGEST:
        raise ValueError(
            f"suboptimality minimises over the scores of every ranking, for up to {LARGEST} "
            f"documents; got {r}."
        )
    ranks = all_ranks(r)
    regrets = ranking_regret(ranks, distribution, loss)
    problem = ExpectedSurrogates.of_distribution(distribution, loss, surrogate)
    wanted = wanted - ROUNDING * regrets.max()  # regrets that differ only by rounding are equal
    counts = regrets >= wanted.min(initial=np.inf)
    least = np.full(len(ranks), np.inf)
    if counts.any():
        orders = np.argsort(ranks[counts], axis=1)
        cones = problem.take(np.zeros(len(orders), dtype=np.int64))
        values = cones.value(minimizers(cones, orders))
        least[counts] = _regret(values, problem.value(minimizers(problem)))
    h = np.where(regrets >= wanted[..., None], least, np.inf).min(axis=-1)
    return float(h) if h.ndim == 0 else h


def _regret(values: Floats, least: Floats) -> Floats:
    """Return values minus the least value, and 0 where they differ only by rounding."""
    regret = values - least
    return np.where(regret <= ROUNDING * (np.abs(values) + np.abs(least)), 0.0, regret)


def _problem(
    scores: ArrayLike, distribution: Distribution, loss: str | Loss, surrogate: str | Surrogate
) -> tuple[ExpectedSurrogates, Floats]:
    """Return the expected surrogate, and the scores as an array of shape (n_scores, r)."""
    surrogate = get_surrogate(surrogate)
    loss, distribution = resolve(distribution, loss)
    r = distribution.n_documents
    given = read_numbers(scores, "scores")
    if given.ndim not in (1, 2) or given.shape[-1] != r:
        raise ValueError(
            f"scores must have shape ({r},) or (n_scores, {r}), with the score of each document; "
            f"they have shape {given.shape}."
        )
    if not np.isfinite(given).all():
        raise ValueError("scores contains NaN or infinity.")
    problem = ExpectedSurrogates.of_distribution(distribution, loss, surrogate)
    return problem, given.reshape(-1, r)


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
    ranks = all_ranks(r)
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
