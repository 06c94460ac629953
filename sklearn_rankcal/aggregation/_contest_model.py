"""The Bradley-Terry model of contests, with ties and covariates, and the covariance of its fit.

In a contest of a first item i and a second item j, the *lead* is d = s_i - s_j + x . b, where s are
the scores and b the coefficients of the covariates x. The probability that the first item wins, the
contest is tied or the second wins depends on the lead and on a parameter of ties.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_array, hstack
from scipy.special import expit, log_expit
from sklearn.exceptions import ConvergenceWarning

from sklearn_rankcal.labels._contests import POSITION, Contests
from sklearn_rankcal.utils._memory import check_memory
from sklearn_rankcal.utils._messages import warn
from sklearn_rankcal.utils._typing import Floats, Ints

TIES = ("half", "davidson", "rao_kupper")
_HALVINGS = 40
#: The share of a covariate, after items and other covariates are removed, that rounding explains.
_COLLINEAR = 1e-9
#: A coefficient whose term is larger in a typical vote means that it decides all votes.
_SEPARATED = 25.0


class Votes(NamedTuple):
    """Contests of one query, of items 0 to n_items - 1, with how often each result occurred.

    `counts` has shape (3, n): the weight of contests that the first item won, that the second won,
    and of ties; `squares` has the sums of the squared weights of their votes. `X` has shape (n,
    n_covariates).
    """

    first: Ints
    second: Ints
    counts: Floats
    squares: Floats
    X: Floats

    @property
    def total(self) -> Floats:
        return self.counts.sum(axis=0)


def count_votes(contests: Contests, X: Floats, *, merge: bool = True) -> Votes:
    """Merge contests of the same items in the same order, if all have the same covariates.

    O(n) time where there are fewer pairs of items than votes.
    """
    first, second, outcome, weight, square, _ = contests
    if not merge or (X.shape[1] and (X != X[:1]).any()):
        counts, squares = np.zeros((2, 3, len(first)))
        at = outcome, np.arange(len(first))
        counts[at], squares[at] = weight, square
        return Votes(first, second, counts, squares, X)
    n = int(max(first.max(initial=0), second.max(initial=0))) + 1
    key = first * n + second
    if n * n <= 4 * len(key):
        place, size = key, n * n
    else:
        keys, place = np.unique(key, return_inverse=True)
        size = len(keys)
    sums = [
        [np.bincount(place[outcome == k], values[outcome == k], size) for k in range(3)]
        for values in (weight, square)
    ]
    counts, squares = np.array(sums, dtype=np.float64)
    if n * n <= 4 * len(key):
        keys = np.flatnonzero(counts.any(axis=0))
        counts, squares = counts[:, keys], squares[:, keys]
    return Votes(keys // n, keys % n, counts, squares, np.repeat(X[:1], len(keys), axis=0))


# ---------------------------------------------------------------- the three models of ties


class Slopes(NamedTuple):
    """The log-likelihood of each result at each contest, and its derivatives.

    `value` and `lead` (by the lead) and `tie` (by the parameter of ties) have shape (3, n), one row
    for each result; `lead2`, `mixed` and `tie2` are minus the expected second derivatives summed
    with the counts, of shape (n,).
    """

    value: Floats
    lead: Floats
    tie: Floats
    lead2: Floats
    mixed: Floats
    tie2: Floats


def _half(d: Floats, tie: float, counts: Floats) -> Slopes:
    up, down = log_expit(d), log_expit(-d)
    p = expit(d)
    value = np.array([up, down, (up + down) / 2])
    lead = np.array([1 - p, -p, 0.5 - p])
    none = np.zeros_like(d)
    return Slopes(value, lead, np.zeros_like(lead), counts.sum(axis=0) * p * expit(-d), none, none)


def _davidson(d: Floats, tie: float, counts: Floats) -> Slopes:
    powers = np.array([d / 2, -d / 2, np.full_like(d, tie)])
    top = powers.max(axis=0)
    value = powers - (top + np.log(np.exp(powers - top).sum(axis=0)))
    win, loss, draw = np.exp(value)
    mean = (win - loss) / 2
    lead = np.array([0.5 - mean, -0.5 - mean, -mean])
    slope = np.array([-draw, -draw, 1 - draw])
    total = counts.sum(axis=0)
    lead2 = total * ((win + loss) / 4 - mean**2)
    return Slopes(value, lead, slope, lead2, -total * mean * draw, total * draw * (1 - draw))


def _rao_kupper(d: Floats, tie: float, counts: Floats) -> Slopes:
    up, down = log_expit(d - tie), log_expit(-d - tie)
    a, b = expit(tie - d), expit(tie + d)  # one minus the probabilities of the two wins
    grow = np.expm1(2 * tie)
    value = np.array([up, down, up + down + np.log(grow)])
    lead = np.array([a, -b, a - b])
    extra = 2 * (1 + 1 / grow)
    slope = np.array([-a, -b, extra - a - b])
    for_first, for_second = counts[0] + counts[2], counts[1] + counts[2]
    one, other = for_first * a * (1 - a), for_second * b * (1 - b)
    bend = counts[2] * 4 * (1 + 1 / grow) / grow
    return Slopes(value, lead, slope, one + other, other - one, one + other + bend)


_MODELS = {"half": _half, "davidson": _davidson, "rao_kupper": _rao_kupper}


def result_probabilities(d: Floats, ties: str, tie: float) -> Floats:
    """Return the probabilities that the first item wins, that the second does, and of a tie.

    The array has shape (3, n).
    """
    if ties == "half" or np.isnan(tie):
        return np.array([expit(d), expit(-d), np.zeros_like(d)])
    return np.exp(_MODELS[ties](np.asarray(d, dtype=np.float64), tie, np.zeros((3, len(d)))).value)


def vote_information(d: Floats, ties: str, tie: float) -> Floats:
    """Return the expected information of one vote of each lead about the lead, of shape (n,)."""
    counts = result_probabilities(d, ties, tie)
    if ties == "half" or np.isnan(tie):
        return _half(d, 0.0, counts).lead2
    return _MODELS[ties](np.asarray(d, dtype=np.float64), tie, counts).lead2


# ---------------------------------------------------------------- the fit


class ContestFit(NamedTuple):
    """A fit of the model: scores, coefficients and the tie parameter, and what intervals need.

    `weights` is the vector of all parameters: own scores, coefficients, and the tie parameter.
    """

    weights: Floats
    n_items: int
    has_tie: bool
    votes: Votes
    slopes: Slopes
    ridge: Floats
    part: Ints  # the component of each item
    hessian: Floats
    ties: str
    value: float  # minus the penalised log-likelihood

    @property
    def own(self) -> Floats:
        return self.weights[: self.n_items]

    @property
    def coefficients(self) -> Floats:
        return self.weights[self.n_items : self.n_items + self.votes.X.shape[1]]

    @property
    def tie(self) -> float:
        return float(self.weights[-1]) if self.has_tie else np.nan

    def inverse(self) -> Floats:
        """Return the covariance of the parameters by the observed information.

        It is that of scores that add up to 0 in each component.
        """
        matrix = self.hessian + gauge(self.part, len(self.weights))
        inverse = cho_solve(cho_factor(matrix, lower=True), np.eye(len(matrix)))
        return _center(_center(inverse, self.part).T, self.part).T

    def robust(self, cluster: Ints | None, contests: tuple[Ints, Floats] | None) -> Floats:
        """Return the sandwich covariance: robust to a wrong model and to clusters of votes.

        Without clusters each vote is drawn by itself. `contests` are the outcome and the weight of
        each vote that `cluster` numbers. With n votes, k parameters and G clusters, it is
        multiplied by (n - 1) / (n - k), and by G / (G - 1).
        """
        bread = self.inverse()
        slopes, votes = self.slopes, self.votes
        if cluster is None:
            lead2 = (votes.squares * slopes.lead**2).sum(axis=0)
            mixed = (votes.squares * slopes.lead * slopes.tie).sum(axis=0)
            tie2 = (votes.squares * slopes.tie**2).sum(axis=0)
            meat = _gram(votes, self.n_items, self.has_tie, lead2, mixed, tie2)
            factor = 1.0
        else:
            assert contests is not None
            outcome, weight = contests
            at = np.arange(len(outcome))
            lead = weight * slopes.lead[outcome, at]
            n = int(cluster.max()) + 1
            ends = (np.tile(cluster, 2), np.concatenate([votes.first, votes.second]))
            sums = [csr_array((np.append(lead, -lead), ends), shape=(n, self.n_items))]
            sums += [csr_array(np.bincount(cluster, lead * x, n)[:, None]) for x in votes.X.T]
            if self.has_tie:
                tie = weight * slopes.tie[outcome, at]
                sums.append(csr_array(np.bincount(cluster, tie, n)[:, None]))
            scores = hstack(sums, format="csr")
            pull = self.ridge * self.weights  # the sum of the scores of all clusters
            meat = (scores.T @ scores).toarray() - np.outer(pull, pull) / n
            factor = n / (n - 1)
        # as many votes as a sum of squares needs to be free of the parameters that were fitted
        n_votes = float(votes.counts.sum() ** 2 / votes.squares.sum())
        fitted = len(self.weights) - len(np.unique(self.part))
        factor *= (n_votes - 1) / max(n_votes - fitted, 1.0)
        return np.asarray(bread @ meat @ bread * factor)


def fit_contests(
    votes: Votes,
    n_items: int,
    names: tuple[str, ...],
    *,
    ties: str,
    ridge: Floats,
    part: Ints,
    own_effects: bool,
    tol: float,
    max_iter: int,
    prior: Floats | None = None,
    start: Floats | None = None,
) -> ContestFit:
    """Fit the model to the contests of one query, by Newton's method with a line search.

    `ridge` is the penalty of each own score, and `part` the component of each item. `prior` is the
    precision of a normal prior of the own scores, and `start` are the first parameters. O(n_votes +
    n_items^2) memory, and O(n_votes + n_items^3) time for a step.
    """
    p = votes.X.shape[1]
    has_tie = ties != "half" and bool(votes.counts[2].any())
    model = _MODELS[ties if has_tie else "half"]
    check_memory(32 * (n_items + p + 1) ** 2, f"A model of {n_items:,} items", "Use fewer items.")
    if has_tie and not votes.counts[:2].any():
        raise ValueError(f"All votes are ties, so that ties={ties!r} cannot be fitted.")
    _check_columns(votes, n_items, names, part, own_effects, ridge)
    size = n_items + p + has_tie
    weights = np.zeros(size) if start is None else start
    if has_tie and start is None:
        share = float(votes.counts[2].sum() / votes.total.sum())
        weights[-1] = np.log(2 * share / (1 - share))
        if ties == "rao_kupper":
            weights[-1] = max(2 * np.arctanh(min(share, 0.99)), 1e-3)
    ridges = np.zeros(size)
    ridges[:n_items] = ridge
    fixed = np.zeros(size, dtype=bool)
    fixed[:n_items] = not own_effects
    free = gauge(part, size)
    free[fixed], free[:, fixed] = 0.0, 0.0

    def evaluate(w: Floats) -> tuple[float, Slopes]:
        if has_tie and ties == "rao_kupper" and w[-1] <= 0:
            return np.inf, None  # type: ignore[return-value]
        d = w[votes.first] - w[votes.second]
        if p:
            d = d + votes.X @ w[n_items : n_items + p]
        slopes = model(d, float(w[-1]) if has_tie else 0.0, votes.counts)
        value = float(-(votes.counts * slopes.value).sum() + ridges @ w**2 / 2)
        if prior is not None:
            value += float(w[:n_items] @ prior @ w[:n_items]) / 2
        return value, slopes

    value, slopes = evaluate(weights)
    finished = False
    for _ in range(max_iter):
        gradient = _gradient(votes, n_items, has_tie, slopes) + ridges * weights
        hessian = _gram(votes, n_items, has_tie, slopes.lead2, slopes.mixed, slopes.tie2)
        hessian[np.diag_indices(size)] += ridges
        if prior is not None:
            gradient[:n_items] += prior @ weights[:n_items]
            hessian[:n_items, :n_items] += prior
        gradient[fixed] = 0.0
        system = hessian + free
        system[fixed], system[:, fixed] = 0.0, 0.0
        system[fixed, fixed] = 1.0
        system[np.diag_indices(size)] += 1e-13 * np.trace(system) / size
        step = -cho_solve(cho_factor(system, lower=True), gradient)
        slope, rate = float(gradient @ step), 1.0
        for _ in range(_HALVINGS):
            new, found = evaluate(weights + rate * step)
            if new <= value + 1e-4 * rate * slope + 1e-13 * abs(value):
                break
            rate /= 2
        weights, value, slopes = weights + rate * step, new, found
        if np.abs(step).max() <= tol:
            finished = True
            break
    weights[:n_items] = _center(weights[:n_items], part)
    used = np.sqrt(np.average(votes.X**2, axis=0, weights=votes.total)) if p else np.zeros(0)
    large = np.abs(weights[n_items : n_items + p]) * used > _SEPARATED
    if large.any() or not finished:
        cause = (
            f"The covariate {names[int(np.argmax(large))]!r} decides all votes, so that its "
            "coefficient has no maximum likelihood"
            if large.any()
            else f"BradleyTerry has not converged in max_iter={max_iter} iterations"
        )
        warn(f"{cause}. Increase max_iter or penalty, or leave the covariate out.",
             ConvergenceWarning)  # fmt: skip
    hessian = _gram(votes, n_items, has_tie, slopes.lead2, slopes.mixed, slopes.tie2)
    hessian[np.diag_indices(size)] += ridges
    if prior is not None:
        hessian[:n_items, :n_items] += prior
    if not own_effects:
        hessian[fixed], hessian[:, fixed] = 0.0, 0.0
    return ContestFit(weights, n_items, has_tie, votes, slopes, ridges, part, hessian, ties, value)


def _gradient(votes: Votes, n: int, has_tie: bool, slopes: Slopes) -> Floats:
    """Return the gradient of the negative log-likelihood."""
    lead = -(votes.counts * slopes.lead).sum(axis=0)
    items = np.bincount(votes.first, lead, n) - np.bincount(votes.second, lead, n)
    tie = [-(votes.counts * slopes.tie).sum()] if has_tie else []
    return np.concatenate([items, votes.X.T @ lead, tie])


def _gram(
    votes: Votes, n: int, has_tie: bool, lead2: Floats, mixed: Floats, tie2: Floats
) -> Floats:
    """Return the matrix sum of (a a^T) of each contest, weighted by three second derivatives."""
    p = votes.X.shape[1]
    matrix = np.zeros((n + p + has_tie, n + p + has_tie))
    first, second, X = votes.first, votes.second, votes.X
    if n * n <= 16 * len(first):
        across = np.bincount(first * n + second, lead2, n * n).reshape(n, n)
    else:
        across = csr_array((lead2, (first, second)), shape=(n, n)).toarray()
    matrix[:n, :n] = -(across + across.T)
    degree = across.sum(axis=1) + across.sum(axis=0)
    matrix[np.arange(n), np.arange(n)] += degree
    sides = [(n + k, lead2 * X[:, k]) for k in range(p)]
    if has_tie:
        sides.append((n + p, mixed))
        matrix[-1, -1] = tie2.sum()
    for place, values in sides:  # a loop over covariates
        column = np.bincount(first, values, n) - np.bincount(second, values, n)
        matrix[:n, place] = matrix[place, :n] = column
    if p:
        matrix[n : n + p, n : n + p] = (X * lead2[:, None]).T @ X
        if has_tie:
            matrix[n : n + p, -1] = matrix[-1, n : n + p] = X.T @ mixed
    return matrix


def gauge(part: Ints, size: int) -> Floats:
    """Return a matrix that makes scores of a component add up to 0, and changes nothing else."""
    matrix = np.zeros((size, size))
    n = len(part)
    matrix[:n, :n] = (part[:, None] == part).astype(np.float64)
    return matrix


def _center(values: Floats, part: Ints) -> Floats:
    """Subtract from the first rows, one for each item, their mean over the component."""
    n = len(part)
    sizes = np.bincount(part)
    centred = values.copy()
    member = csr_array((1.0 / sizes[part], (part, np.arange(n))), shape=(len(sizes), n))
    centred[:n] -= (member @ values[:n])[part]
    return centred


def _check_columns(
    votes: Votes, n: int, names: tuple[str, ...], part: Ints, own_effects: bool, ridge: Floats
) -> None:
    """Refuse covariates that are constant, or that items and other covariates determine."""
    p = votes.X.shape[1]
    if not p:
        return
    scale = np.sqrt(np.average(votes.X**2, axis=0, weights=votes.total))
    for k in range(p):
        if scale[k] == 0:
            raise ValueError(f"The covariate {names[k]!r} is 0 in all votes. Leave it out.")
        if names[k] != POSITION and (votes.X[:, k] == votes.X[0, k]).all():
            raise ValueError(
                f"The covariate {names[k]!r} is {votes.X[0, k]:g} in all votes, and so says "
                "nothing but that an item is first. Pass position=True for that."
            )
    scaled = votes._replace(X=votes.X / scale)
    weight = votes.total / votes.total.sum()
    gram = _gram(scaled, n, False, weight, weight, weight)
    own = gram[:n, :n].copy()
    own[np.diag_indices(n)] += ridge / votes.total.sum()
    own += gauge(part, n) / n
    own[np.diag_indices(n)] += 1e-14
    rest = gram[n:, n:].copy()
    if own_effects:
        side = gram[:n, n:]
        rest -= side.T @ cho_solve(cho_factor(own, lower=True), side)
    for k in range(p):
        before = rest[:k, :k]
        left = rest[k, k]
        if k:
            left -= rest[k, :k] @ np.linalg.lstsq(before, rest[:k, k], rcond=None)[0]
        if left < _COLLINEAR:
            why = f"of {', '.join(map(repr, names[:k]))} and " if k else "of "
            raise ValueError(
                f"The covariate {names[k]!r} is a sum {why}differences of the items, so that the "
                "votes cannot tell its effect from their scores. Leave it out; or, if it is a "
                "feature of the items, pass BradleyTerry(own_effects=False), or penalty=1 for own "
                "effects around those of the features."
            )
