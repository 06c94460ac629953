"""Surrogate regrets: expected surrogates of distributions of labels, minus their minima."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.optimize import isotonic_regression, linprog
from sklearn.exceptions import ConvergenceWarning

from sklearn_rankcal.consistency._distributions import (
    Distribution,
    LabelDistribution,
    all_ranks,
    as_queries,
    ranking_regret,
    resolve,
)
from sklearn_rankcal.losses import Loss
from sklearn_rankcal.losses._base import without_shrinkage
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.surrogates import (
    DifferenceGraph,
    Evaluation,
    PairwiseMargin,
    Surrogate,
    WeightedComparisons,
    get_surrogate,
)
from sklearn_rankcal.surrogates._pair_sums import function_of
from sklearn_rankcal.utils._messages import warn
from sklearn_rankcal.utils._numbers import Bools, Floats, Ints, read_numbers

#: Largest query to check. A surrogate is minimised over the scores of each of its 120 rankings.
LARGEST = 5
#: Expected values of surrogates that differ by at most this relative amount are equal.
ROUNDING = 1e-12
#: Scores that are infinite at the infimum are replaced by scores this far beyond the finite ones.
#: Exponentials of such differences are lost in rounding.
FAR = 40.0
#: A minimum is accepted if no derivative exceeds `TOLERANCE` times the size of derivatives at
#: scores of 0 (`ExpectedSurrogates.scale`). A closed form is accepted up to `ACCEPTED`. The search
#: continues beyond `ACCEPTED` until `TOLERANCE`.
TOLERANCE, ACCEPTED = 1e-11, 1e-6
#: Maximum number of Newton steps and of halvings of a step, and longest step of a score.
STEPS, HALVINGS, LONGEST = 100, 30, 5.0
#: Number of linear programs to solve together.
PROGRAMS = 256


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
    loss, surrogate
        As in `surrogate_regret`.

    Returns
    -------
    regret : float or ndarray of shape (n,)
        H(epsilon). It is infinite if no ranking has a regret of epsilon or more. If H(epsilon) is 0
        for a positive epsilon, some scores minimise the surrogate although their ranking has that
        regret.

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


class ExpectedSurrogates:
    """The expected values E[psi(v(Y), s)] of n distributions, as functions of scores (n, r).

    The parameters of the surrogate must be set. `targets` are the utilities (m, r) or preference
    weights (m, r, r) of m labels. Distribution n mixes ``labels[n]`` with the probabilities
    ``chance[n]``. `expected` are the expected utilities (n, r), or None for preferences.
    """

    def __init__(self, surrogate: Surrogate, targets: Floats, labels: Ints, chance: Floats) -> None:
        self.surrogate, self.targets, self.labels, self.chance = surrogate, targets, labels, chance
        self.n, self.r = len(labels), targets.shape[1]
        # Only evaluate labels of positive probability: `row` is the distribution of each.
        self._row, column = np.nonzero(chance > 0)
        self._first = np.searchsorted(self._row, np.arange(self.n))
        used = targets[labels[self._row, column]]
        self._share = chance[self._row, column]
        self._values, self._queries = as_queries(used)
        self.expected: Floats | None = None
        if targets.ndim == 2:
            self.expected = self._add(used)

    @classmethod
    def of_distribution(cls, distribution: LabelDistribution, loss: Loss, surrogate: Any) -> Self:
        """Return the expected surrogate of one distribution, with parameters set by its labels."""
        surrogate, targets = resolved_targets(surrogate, loss, distribution.labels)
        m = len(targets)
        return cls(surrogate, targets, np.arange(m)[None], distribution.probabilities[None])

    def take(self, rows: Ints) -> ExpectedSurrogates:
        """Select some distributions, possibly with repetitions."""
        return ExpectedSurrogates(
            self.surrogate, self.targets, self.labels[rows], self.chance[rows]
        )

    def evaluate(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return the expected values (n,) at scores (n, r), and their gradients (n, r)."""
        value, gradient, _ = self._of_labels(scores, 1)
        return self._add(value), self._add(gradient.reshape(-1, self.r))

    def value(self, scores: Floats) -> Floats:
        """Return the expected values (n,) at scores (n, r)."""
        return self._add(self._of_labels(scores, 0).value)

    def gradient(self, scores: Floats) -> Floats:
        """Return the gradients (n, r) at scores (n, r)."""
        return self.evaluate(scores)[1]

    def scale(self) -> Floats:
        """Return the size (n,) of derivatives: the expected largest derivative at scores of 0.

        It is at least a hundredth of the expected value there, in case all derivatives are 0.
        """
        value, gradient, _ = self._of_labels(np.zeros((self.n, self.r)), 1)
        largest = np.abs(gradient).reshape(-1, self.r).max(axis=1)
        size = self._add(np.maximum(largest, np.abs(value) / 100))
        return np.where(size > 0, size, 1.0)

    def _of_labels(self, scores: Floats, derivatives: int) -> Evaluation:
        """Evaluate the surrogate for each label of each distribution, at its scores."""
        return self.surrogate.evaluate(
            self._values, scores[self._row].ravel(), self._queries, derivatives=derivatives
        )

    def _add(self, terms: Floats) -> Floats:
        """Sum the terms of the labels of each distribution, weighted by their probabilities."""
        weighted = terms * (self._share if terms.ndim == 1 else self._share[:, None])
        total: Floats = np.add.reduceat(weighted, self._first)
        return total


def resolved_targets(surrogate: Surrogate, loss: Loss, labels: Floats) -> tuple[Surrogate, Floats]:
    """Return the surrogate with its parameters set, and the targets of m labels.

    The targets are the ones of unlimited data, without shrinkage: (m, r), or preferences (m, r, r)
    if the surrogate accepts them.
    """
    read, queries = as_queries(labels)
    targets = surrogate.targets(without_shrinkage(loss), read, queries)
    ready = surrogate.resolve(targets)
    if isinstance(targets, np.ndarray):
        return ready, targets.reshape(labels.shape[:2])
    return ready, labels


def minimizers(problems: ExpectedSurrogates, orders: Ints | None = None) -> Floats:
    """Return scores (n, r) that minimise each expected surrogate.

    `orders` (n, r) has the documents of a ranking in each row, best first. If given, minimise only
    over scores that do not increase along the ranking.
    """
    if is_piecewise_linear(problems):
        return _solve_programs(problems, orders)
    expected = problems.expected
    if expected is not None and orders is not None:
        # Documents that tie at the minimum have the scores of their mean utility.
        along = np.take_along_axis(expected, orders, axis=1)
        fits = np.array([isotonic_regression(row, increasing=False).x for row in along])
        expected = np.empty_like(fits)
        np.put_along_axis(expected, orders, fits, axis=1)
    n, r = problems.n, problems.r
    start, closed = np.zeros((n, r)), None
    if expected is not None:
        closed = problems.surrogate.minimizer(expected.ravel(), Queries.uniform(n, r))
    if closed is not None:  # infinite scores become scores far beyond the finite ones
        start = closed.reshape(n, r)
        finite = np.where(np.isfinite(start), start, 0.0)
        low, high = finite.min(axis=1, keepdims=True), finite.max(axis=1, keepdims=True)
        start = np.clip(start, low - FAR, high + FAR)
    return _newton(problems, start, orders)


def is_piecewise_linear(problems: ExpectedSurrogates) -> bool:
    """Return whether the surrogate is a sum of hinges."""
    surrogate = problems.surrogate
    return isinstance(surrogate, PairwiseMargin | WeightedComparisons) and (
        surrogate.margin == "hinge"
    )


# ---------------------------------------------------------------- smooth surrogates


def _newton(problems: ExpectedSurrogates, start: Floats, orders: Ints | None) -> Floats:
    """Minimise by Newton steps, over all scores or over the cones of rankings.

    With a ranking, the unknowns are z >= 0: the differences between neighbouring scores, and the
    lowest score, which is free. Without one, the unknowns are the scores, all free.
    """
    n, r = start.shape
    if orders is None:
        shape, free = np.broadcast_to(np.eye(r), (n, r, r)), np.ones(r, dtype=bool)
        z = start.copy()
    else:
        # s_(k) = z_k + .. + z_r for the document at place k of the ranking
        shape = np.zeros((n, r, r))
        np.put_along_axis(
            shape, orders[:, :, None], np.broadcast_to(np.triu(np.ones((r, r))), (n, r, r)), 1
        )
        sorted_ = np.take_along_axis(start, orders, axis=1)
        z = np.append(sorted_[:, :-1] - sorted_[:, 1:], sorted_[:, -1:], axis=1)
        free = np.arange(r) == r - 1
        z[:, ~free] = np.maximum(z[:, ~free], 0.0)
    scale = problems.scale()
    if not np.isfinite(problems.value(np.einsum("nij,nj->ni", shape, z))).all():
        raise ValueError(
            f"{problems.surrogate!r} is infinite or undefined for some of these utilities."
        )
    active = np.arange(n)
    rest = problems
    for _ in range(STEPS):
        # Step 1: drop the problems that are solved.
        some, into = z[active], shape[active]
        scores = np.einsum("nij,nj->ni", into, some)
        value, by_score = rest.evaluate(scores)
        slope = np.einsum("nij,ni->nj", into, by_score)
        open_ = _violation(some, slope, free) > TOLERANCE * scale[active]
        if not open_.any():
            return np.einsum("nij,nj->ni", shape, z)
        if open_.mean() < 0.7:
            active, rest = active[open_], rest.take(np.flatnonzero(open_))
            some, into, scores = some[open_], into[open_], scores[open_]
            value, by_score, slope = value[open_], by_score[open_], slope[open_]
        # Step 2: compute Newton directions in the unknowns that are not held at their bound.
        held = ~free & (some <= 1e-12) & (slope > 0)
        hessian = _hessian(rest, scores, by_score)
        if problems.surrogate.shift_invariant:  # prevent rounding from causing a common shift
            hessian += scale[active, None, None]
        bend = np.einsum("nki,nkl,nlj->nij", into, hessian, into)
        bend[held[:, :, None] | held[:, None, :]] = 0.0
        bend += held[:, :, None] * np.eye(r) * scale[active, None, None]
        direction = -_solve(bend, np.where(held, 0.0, slope), scale[active])
        longest = np.abs(direction).max(axis=1, keepdims=True)
        direction *= np.minimum(1.0, LONGEST / np.maximum(longest, 1e-300))
        # Step 3: halve the steps that do not lower the value enough.
        size, best, waiting = np.ones(len(some)), some.copy(), np.arange(len(some))
        part = rest
        for _ in range(HALVINGS):
            tried = some[waiting] + size[waiting, None] * direction[waiting]
            tried = np.where(free, tried, np.maximum(tried, 0.0))
            gain = np.einsum("nj,nj->n", slope[waiting], tried - some[waiting])
            lower = part.value(np.einsum("nij,nj->ni", into[waiting], tried))
            # The last term allows for rounding near a minimum.
            fine = lower <= value[waiting] + 1e-4 * gain + 1e-15 * np.abs(value[waiting])
            best[waiting[fine]] = tried[fine]
            if fine.all():
                break
            waiting = waiting[~fine]
            part = part.take(np.flatnonzero(~fine))
            size[waiting] /= 2
        moved = np.abs(best - some).max(axis=1) > 0
        z[active] = best
        if not moved.any():
            break
        if not moved.all():  # the remaining problems stop here, at the limit of rounding
            active, rest = active[moved], rest.take(np.flatnonzero(moved))
    scores = np.einsum("nij,nj->ni", shape, z)
    slope = np.einsum("nij,ni->nj", shape, problems.gradient(scores))
    left = (_violation(z, slope, free) / scale).max()
    if left > ACCEPTED:
        warn(
            f"The expected value of {problems.surrogate!r} was not minimised: a derivative of "
            f"{left:.1e} is left, relative to those at scores of 0. Its infimum may be lower.",
            ConvergenceWarning,
        )
    return scores


def _violation(z: Floats, slope: Floats, free: Bools) -> Floats:
    """Return the largest derivative (n,) in a direction that the bounds allow."""
    step = np.where(free, slope, np.minimum(np.maximum(slope, 0.0), z) + np.minimum(slope, 0.0))
    return np.abs(step).max(axis=1)


def _hessian(problems: ExpectedSurrogates, scores: Floats, gradient: Floats) -> Floats:
    """Estimate the second derivatives (n, r, r) from differences of gradients."""
    n, r = scores.shape
    hessian = np.empty((n, r, r))
    step = 1e-6
    for i in range(r):
        moved = scores.copy()
        moved[:, i] += step
        hessian[:, i] = (problems.gradient(moved) - gradient) / step
    return (hessian + hessian.transpose(0, 2, 1)) / 2


def _solve(bend: Floats, slope: Floats, scale: Floats) -> Floats:
    """Solve bend x = slope, with |eigenvalues| instead of small and negative eigenvalues."""
    value, vector = np.linalg.eigh(bend)
    # In a direction without curvature but with a slope, take a long step.
    value = np.maximum(np.abs(value), 1e-9 * np.abs(value).max(axis=1, keepdims=True))
    value = np.maximum(value, 1e-14 * scale[:, None])
    along = np.einsum("nij,ni->nj", vector, slope)
    solved: Floats = np.einsum("nij,nj->ni", vector, along / value)
    return solved


# ---------------------------------------------------------------- sums of hinges


def _solve_programs(problems: ExpectedSurrogates, orders: Ints | None) -> Floats:
    """Minimise sums of weight max(0, 1 + required - (s_i - s_j)) by linear programs."""
    n, r = problems.n, problems.r
    if n > PROGRAMS:
        blocks = np.split(np.arange(n), range(PROGRAMS, n, PROGRAMS))
        cones = [None if orders is None else orders[rows] for rows in blocks]
        parts = [problems.take(rows) for rows in blocks]
        return np.vstack([_solve_programs(*part) for part in zip(parts, cones, strict=True)])
    at, i, j, weight, needed = _hinges(problems)
    n_terms = len(at)
    # The unknowns are the n r scores, and a slack for each term: s_j - s_i - slack <= -needed.
    term = np.arange(n_terms)
    rows = np.concatenate([term, term, term])
    columns = np.concatenate([at * r + j, at * r + i, n * r + term])
    entries = np.concatenate([np.ones(n_terms), -np.ones(n_terms), -np.ones(n_terms)])
    bound = -needed
    if orders is not None:  # the score at place k + 1 minus the score at place k is at most 0
        base = np.arange(n)[:, None] * r
        upper, lower = (base + orders[:, :-1]).ravel(), (base + orders[:, 1:]).ravel()
        more = n_terms + np.arange(len(upper))
        rows = np.concatenate([rows, more, more])
        columns = np.concatenate([columns, lower, upper])
        entries = np.concatenate([entries, np.ones(len(more)), -np.ones(len(more))])
        bound = np.append(bound, np.zeros(len(more)))
    matrix = sparse.csr_array((entries, (rows, columns)), (len(bound), n * r + n_terms))
    # Some optimal scores differ only by sums of needed margins.
    width = (r - 1) * max(float(np.abs(needed).max(initial=0.0)), 1.0)
    result = linprog(
        np.append(np.zeros(n * r), weight),
        A_ub=matrix,
        b_ub=bound,
        bounds=np.vstack([np.tile([0.0, width], (n * r, 1)), np.tile([0.0, np.inf], (n_terms, 1))]),
        method="highs-ds",
    )
    if result.x is None:
        raise RuntimeError(f"The linear program of the surrogate failed: {result.message}")
    scores: Floats = result.x[: n * r].reshape(n, r)
    return scores


def _hinges(problems: ExpectedSurrogates) -> tuple[Ints, Ints, Ints, Floats, Floats]:
    """Return the problem, i, j, weight and needed margin of each term of the surrogates."""
    surrogate, targets, r = problems.surrogate, problems.targets, problems.r
    if isinstance(surrogate, PairwiseMargin):
        assert problems.expected is not None
        weights = np.where(np.eye(r, dtype=bool), 0.0, problems.expected[:, :, None])
        at, i, j = np.nonzero(weights > 0)
        return at, i, j, weights[at, i, j], np.ones(len(at))
    assert isinstance(surrogate, WeightedComparisons)
    weight, required = function_of(surrogate.weight), function_of(surrogate.required)
    assert weight is not None
    y = targets
    if targets.ndim == 2:
        y = np.maximum(targets[:, :, None] - targets[:, None, :], 0.0)
    elif isinstance(surrogate, DifferenceGraph):
        y = np.maximum(targets - targets.transpose(0, 2, 1), 0.0)
    some = y > 0
    weights = np.zeros(y.shape)
    weights[some] = weight(y[some])
    if required is None:
        mean = np.einsum("nk,nkij->nij", problems.chance, weights[problems.labels])
        at, i, j = np.nonzero(mean > 0)
        return at, i, j, mean[at, i, j], np.ones(len(at))
    needed = np.ones(y.shape)
    needed[some] += required(y[some])
    each = problems.chance[:, :, None, None] * weights[problems.labels]
    at, k, i, j = np.nonzero(each > 0)
    return at, i, j, each[at, k, i, j], needed[problems.labels[at, k], i, j]
