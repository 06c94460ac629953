"""Expected surrogates of one query under a distribution, their infima, and suboptimality."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sklearn_rankcal.consistency._distributions import LabelDistribution, resolve
from sklearn_rankcal.consistency._expected import ExpectedSurrogates
from sklearn_rankcal.consistency._minima import cone_minimizers, minimizers
from sklearn_rankcal.consistency._rankings import all_ranks, ranking_regret
from sklearn_rankcal.losses import Loss
from sklearn_rankcal.surrogates import Surrogate, get_surrogate
from sklearn_rankcal.utils._memory import rows_per_block
from sklearn_rankcal.utils._numbers import read_numbers
from sklearn_rankcal.utils._typing import Floats

#: `suboptimality` enumerates the rankings of queries up to this size.
LARGEST = 5
#: Expected values of surrogates that differ by this share of their size count as equal.
ROUNDING = 1e-12


def surrogate_regret(
    scores: ArrayLike,
    distribution: LabelDistribution | tuple[Any, Any],
    loss: str | Loss,
    surrogate: str | Surrogate,
) -> Any:
    """Compute the expected value of a surrogate for scores, minus its infimum over all scores.

    The utilities are the targets of `expected_targets`, without shrinkage. If the surrogate takes
    preferences, and labels are preferences, it is evaluated for each label, and not for their mean.
    :doc:`/surrogate_theory` describes how infima are found.

    Parameters
    ----------
    scores : array-like of shape (r,) or (n_scores, r)
        The score of each document, or several such rows.
    distribution, loss : LabelDistribution or tuple, str or Loss
        As in `expected_targets`; the targets of the loss are the utilities.
    surrogate : str or Surrogate
        A key of `surrogates.SURROGATES`, or an object. If it has a parameter `eta` that is None,
        the labels of the distribution determine it.

    Returns
    -------
    regret : float or ndarray of shape (n_scores,)
        At least 0. Differences within rounding (1e-12 of the expected value) are 0.

    Raises
    ------
    ValueError
        If the scores are not valid, or if the loss or the surrogate does not accept the labels.

    Warns
    -----
    ConvergenceWarning
        If a derivative of more than 1e-6 of its size at scores of 0 is left at the minimum. For
        surrogates that are not convex, only derivatives are checked.

    Examples
    --------
    >>> from sklearn_rankcal.consistency import surrogate_regret
    >>> distribution = ([[1, 0], [0, 1]], [0.75, 0.25])
    >>> surrogate_regret([[0.75, 0.25], [0.5, 0.5]], distribution, "dcg", "pointwise_squared")
    array([0.   , 0.125])
    """
    problem, rows = _problem(scores, distribution, loss, surrogate)
    values, least = _values(problem, rows), problem.value(minimizers(problem))
    regret = _regret(values, least)
    return float(regret[0]) if np.ndim(scores) == 1 else regret


def suboptimality(
    epsilon: ArrayLike,
    distribution: LabelDistribution | tuple[Any, Any],
    loss: str | Loss,
    surrogate: str | Surrogate,
) -> Any:
    """Compute H(epsilon), the least surrogate regret of scores with a regret of at least epsilon.

    This is equation (9) of Duchi et al. (2013). A surrogate is consistent if and only if H is
    positive for all positive epsilon and all distributions (their proposition 2). The surrogate is
    minimised over the scores of every ranking of such a regret; see :doc:`/surrogate_theory`.

    Parameters
    ----------
    epsilon : float or array-like of shape (n,)
        Regrets of the ranking, which are not negative.
    distribution, loss, surrogate
        As in `surrogate_regret`, for at most 5 documents.

    Returns
    -------
    regret : float or ndarray of shape (n,)
        Infinite if no ranking has a regret of epsilon or more. If H(epsilon) is 0 for a positive
        epsilon, scores can minimise the surrogate and lead to a ranking with that regret.

    Raises
    ------
    ValueError
        If an epsilon is negative or not finite, or if there are more than 5 documents.

    Examples
    --------
    RankSVM is not consistent, even if preferences reinforce each other as in the proof of theorem 3
    of Duchi et al. (2013). It costs no surrogate regret to lose 0.01 of expected weight here:

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
    wanted = wanted - ROUNDING * regrets.max()  # regrets that rounding alone tells apart are equal
    counts = regrets >= wanted.min(initial=np.inf)
    least = np.full(len(ranks), np.inf)
    if counts.any():
        orders = np.argsort(ranks[counts], axis=1)
        cones = problem.take(np.zeros(len(orders), dtype=np.int64))
        values = cones.value(cone_minimizers(cones, orders))
        least[counts] = _regret(values, problem.value(minimizers(problem)))
    h = np.where(regrets >= wanted[..., None], least, np.inf).min(axis=-1)
    return float(h) if h.ndim == 0 else h


def _regret(values: Floats, least: Floats) -> Floats:
    """Return values minus the least one, and 0 where rounding alone tells them apart."""
    regret = values - least
    return np.where(regret <= ROUNDING * (np.abs(values) + np.abs(least)), 0.0, regret)


def _problem(
    scores: ArrayLike,
    distribution: LabelDistribution | tuple[Any, Any],
    loss: str | Loss,
    surrogate: str | Surrogate,
) -> tuple[ExpectedSurrogates, Floats]:
    """Return the expected surrogate, and the scores as an array (n_scores, r)."""
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


def _values(problem: ExpectedSurrogates, rows: Floats) -> Floats:
    """Return the expected value for each row of scores, a block of rows at a time."""
    values = np.empty(len(rows))
    step = rows_per_block(8 * problem.targets.size)
    for first in range(0, len(rows), step):
        some = rows[first : first + step]
        copies = problem.take(np.zeros(len(some), dtype=np.int64))
        values[first : first + step] = copies.value(some)
    return values
