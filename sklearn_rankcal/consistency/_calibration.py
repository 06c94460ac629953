"""A numerical check of calibration: do near-minimisers of a surrogate lead to best rankings?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from sklearn_rankcal.consistency._counterexamples import (
    Counterexample,
    draw_mixtures,
    draw_pool,
    find_counterexample,
)
from sklearn_rankcal.consistency._distributions import LabelDistribution
from sklearn_rankcal.consistency._expected import ExpectedSurrogates, resolved_targets
from sklearn_rankcal.consistency._minima import cone_minimizers, is_piecewise_linear, minimizers
from sklearn_rankcal.consistency._rankings import all_ranks
from sklearn_rankcal.losses import Loss, get_loss
from sklearn_rankcal.surrogates import Surrogate, get_surrogate
from sklearn_rankcal.utils._parameters import check_count
from sklearn_rankcal.utils._rounding import is_largest
from sklearn_rankcal.utils._typing import Floats, Ints

#: The largest query whose cones are searched.
LARGEST = 5
#: Rankings count whose regret is at least this share of the range of the loss. Scores count as a
#: minimum if their surrogate regret and their derivatives are up to this share of the expected
#: surrogate, and of its derivatives, at scores of 0.
NOTABLE, NOTHING = 1e-3, 1e-9
#: Distributions that are drawn at a time, for those that satisfy the condition, and the number of
#: such draws.
DRAWN, DRAWS = 1000, 50


@dataclass(frozen=True, eq=False)
class CalibrationCheck:
    """The result of `is_calibrated_numerically`, which is true if no failure was found.

    Attributes
    ----------
    counterexample : Counterexample or None
        A distribution on which the surrogate fails, with scores that minimise the expected
        surrogate and can be sorted to a ranking with a positive regret.
    margin : float
        The least ratio of surrogate regret and squared regret that was found: every bound regret <=
        c C_phi(2) sqrt(surrogate regret) has (c C_phi(2))^-2 <= margin. Infinite if no ranking has
        regret.
    n_distributions : tuple of two ints
        How many distributions had their minimiser and their near-minimisers searched.
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

    First, `find_counterexample` tests one minimiser of each of `n_trials` distributions. Then, for
    `n_cones` distributions, the surrogate is minimised over the scores of every ranking whose
    regret is at least 0.001 of the range of the loss. It fails if its regret and its derivatives
    there are at most 1e-9 of their size at scores of 0 (Ramaswamy et al., 2013, definition 1, with
    a sort as pred).

    Parameters
    ----------
    surrogate : str or Surrogate
        A key of `surrogates.SURROGATES`, or an object. If it has a parameter `eta` that is None,
        the labels that are mixed determine it.
    loss : str or Loss
        The loss by which rankings are judged (see `ranking_regret`).
    n_documents : int, default=3
        The number r of documents, from 2 to 5.
    condition, labels, n_trials, random_state
        As in `find_counterexample`.
    n_cones : int, default=200
        The number of distributions for the second step.

    Returns
    -------
    check : CalibrationCheck
        True if no failure was found, which proves nothing. Otherwise its `counterexample` is a
        proof up to the tolerances.

    Raises
    ------
    ValueError
        If an argument is out of range, or if the surrogate does not fit the loss.

    Examples
    --------
    >>> from sklearn_rankcal.consistency import is_calibrated_numerically
    >>> is_calibrated_numerically("softmax", "ndcg", n_trials=2000, random_state=0)
    no failure in 2000 minimisers and the near-minimisers of 200 distributions; margin 2.33
    >>> bool(is_calibrated_numerically("ranknet", "ndcg", n_trials=2000, random_state=0))
    False
    """
    r = n_documents
    if isinstance(r, bool) or not isinstance(r, Integral) or not 2 <= r <= LARGEST:
        raise ValueError(f"n_documents must be a whole number from 2 to {LARGEST}; got {r!r}.")
    check_count(n_cones, "n_cones")
    random = check_random_state(random_state)
    surrogate = get_surrogate(surrogate)
    found = find_counterexample(
        loss,
        surrogate,
        int(r),
        condition=condition,
        labels=labels,
        n_trials=n_trials,
        random_state=random,
    )
    if found is not None:
        return CalibrationCheck(found, 0.0, (n_trials, 0))
    loss, pool, value = draw_pool(get_loss(loss), int(r), labels, random)
    surrogate, targets = resolved_targets(surrogate, loss, pool)
    label, weight = _draw(n_cones, pool, condition, random)
    n = len(label)
    problems = ExpectedSurrogates(surrogate, targets, label, weight)
    expected = np.einsum("nk,nkt->nt", weight, value[label])
    regret = expected.max(axis=1, keepdims=True) - expected
    at, ranking = np.nonzero((regret > 0) & (regret >= NOTABLE * np.ptp(value)))
    if len(at) == 0:
        return CalibrationCheck(None, np.inf, (n_trials, n))
    ranks = all_ranks(int(r))
    cones = problems.take(at)
    scores = cone_minimizers(cones, np.argsort(ranks[ranking], axis=1))
    least = problems.value(minimizers(problems))[at]
    excess = np.maximum(cones.value(scores) - least, 0.0)
    size = np.abs(problems.value(np.zeros((n, int(r)))))[at]
    minimal = excess <= NOTHING * size
    if not is_piecewise_linear(cones):
        # The surrogate regret of two documents is of second order in the difference of their
        # utilities, and can vanish beside the value at 0. Derivatives are of first order.
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
        _distribution(pool, label[q], weight[q]),
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
    """Draw n mixtures that satisfy the condition, or fewer if it is seldom satisfied."""
    if condition is None:
        return draw_mixtures(n, len(pool), random)
    labels, weights = [], []
    for _ in range(DRAWS):
        label, weight = draw_mixtures(DRAWN, len(pool), random)
        for k in range(DRAWN):
            if condition(_distribution(pool, label[k], weight[k])):
                labels.append(label[k])
                weights.append(weight[k])
                if len(labels) == n:
                    return np.array(labels), np.array(weights)
    if not labels:
        raise ValueError(f"None of {DRAWS * DRAWN} distributions satisfies {condition!r}.")
    return np.array(labels), np.array(weights)


def _distribution(pool: Floats, label: Ints, weight: Floats) -> LabelDistribution:
    """Return a mixture as a distribution of distinct labels."""
    mixed = np.unique(label[weight > 0])
    return LabelDistribution(pool[mixed], [weight[label == k].sum() for k in mixed])
