"""The Bradley-Terry model of contests, with ties and covariates, and the covariance of its fit.

In a contest of a first item i and a second item j, the *lead* is d = s_i - s_j + x . b, where s are
the scores and b the coefficients of the covariates x. The probability that the first item wins, the
contest is tied or the second wins depends on the lead and on a parameter of ties.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dpotri
from scipy.sparse import csr_array
from scipy.special import expit, log_expit
from sklearn.exceptions import ConvergenceWarning

from sklearn_rankcal.aggregation._contest_votes import Votes, number_pairs
from sklearn_rankcal.aggregation._contests import POSITION
from sklearn_rankcal.aggregation._linear_systems import conjugate_gradients
from sklearn_rankcal.aggregation._separation import Recession, find_recession
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._memory import check_memory
from sklearn_rankcal.utils._messages import warn
from sklearn_rankcal.utils._numbers import add_up
from sklearn_rankcal.utils._typing import Floats, Ints

TIES = ("half", "davidson", "rao_kupper")
_HALVINGS = 40
#: The share of a covariate, after items and other covariates are removed, that rounding explains.
_COLLINEAR = 1e-9
#: If each result that occurred has a chance of at least this to be another one at the maximum, the
#: gradient, which is 0 there, proves that the maximum exists.
_DECIDED = 1e-5
#: The penalty (a / 2) b^2 of an effect b that the votes do not bound, in the unit in which its
#: largest covariate is 1: that of scores which only a penalty bounds.
_EFFECT_PENALTY = 0.1
_ROUNDING = 1e-15  # of a gradient, relative to the number of votes
_BLOCK = 1 << 13  # votes; their temporary arrays fit in the cache, and products need no threads
_DENSE = 1000  # items up to which Newton's system is factorised, which takes O(n_items^3) time
#: A fit to so many votes, and so many of each item, comes first if there are four times as many.
_SAMPLE, _PER_ITEM = 50_000, 100
_LONGEST = 5.0  # step of a parameter; from a bad start, Newton's method would leave for good


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
    up, p, q = log_expit(d), expit(d), expit(-d)
    lead, none = np.array([q, -p, (q - p) / 2]), np.zeros_like(d)
    value = np.array([up, up - d, up - d / 2])
    return Slopes(value, lead, np.zeros_like(lead), counts.sum(axis=0) * p * q, none, none)


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
    if ties == "half":
        return np.array([expit(d), expit(-d), np.zeros_like(d)])
    return np.exp(log_probabilities(d, ties, tie))


def log_probabilities(d: Floats, ties: str, tie: float) -> Floats:
    """Return the log-likelihood of each result, where a tie may be half a win; shape (3, n)."""
    return _MODELS[ties](d, tie, np.zeros((3, len(d)))).value


def vote_information(d: Floats, ties: str, tie: float) -> Floats:
    """Return the expected information of one vote of each lead about the lead, of shape (n,)."""
    return _MODELS[ties](d, tie, result_probabilities(d, ties, tie)).lead2


# ---------------------------------------------------------------- sums over votes


class _Sums(NamedTuple):
    """Minus the log-likelihood of all votes, and its derivatives summed over the results.

    `lead`, `lead2` and `mixed` have one entry for each contest; `mixed` is None where ties have no
    parameter.
    """

    value: float
    lead: Floats
    lead2: Floats
    mixed: Floats | None
    tie: float
    tie2: float


def _sum_votes(d: Floats, counts: Floats, ties: str, tie: float) -> _Sums:
    """Evaluate a model at the leads d, block by block."""
    model, half = _MODELS[ties], ties == "half"
    lead, lead2, mixed = np.empty((3, len(d)))
    value = by_tie = tie2 = 0.0
    for begin in range(0, len(d), _BLOCK):
        b = slice(begin, begin + _BLOCK)
        n = counts[:, b]
        if half:  # the sums of `_half`, of which few terms are needed
            total, won = n[0] + n[1] + n[2], n[0] + n[2] / 2
            size = np.abs(d[b])
            small = np.exp(-size)
            unlikely = small / (1 + small)
            ahead = d[b] >= 0
            against = np.where(ahead, total - won, won)  # the weight of the less likely result
            value += float(total @ np.log1p(small) + against @ size)
            expected = total * unlikely
            lead[b] = np.where(ahead, against - expected, expected - against)
            lead2[b] = expected * (1 - unlikely)
            continue
        found = model(d[b], tie, n)
        value -= float((n * found.value).sum())
        lead[b] = -(n * found.lead).sum(axis=0)
        lead2[b], mixed[b] = found.lead2, found.mixed
        by_tie -= float((n * found.tie).sum())
        tie2 += float(found.tie2.sum())
    return _Sums(value, lead, lead2, None if half else mixed, by_tie, tie2)


class _Design:
    """The differences between items and the covariates that make the leads of votes.

    Votes of the same two items in the same order are a *pair*, over which sums are taken first.
    """

    def __init__(self, votes: Votes, n_items: int) -> None:
        self.X, self.n_items = votes.X, n_items
        self.pair: Ints | None = None  # of each vote; None if each vote is a pair of its own
        self.first, self.second = votes.first, votes.second
        if votes.X.shape[1]:
            pair, first, second = number_pairs(votes.first, votes.second)
            if 2 * len(first) <= len(pair):  # else there is nothing to gain
                self.pair, self.first, self.second = pair, first, second

    def sum_pairs(self, values: Floats) -> Floats:
        return values if self.pair is None else add_up(self.pair, values, len(self.first))

    def sum_items(self, values: Floats) -> Floats:
        """Add up values of votes over items, those of the second item with a minus sign."""
        sums = self.sum_pairs(values)
        n = self.n_items
        return add_up(self.first, sums, n) - add_up(self.second, sums, n)

    def gradient(self, lead: Floats, tie: Floats) -> Floats:
        return np.concatenate([self.sum_items(lead), self.X.T @ lead, tie])

    def gram_of(self, sums: _Sums) -> _Gram:
        return self.gram(sums.lead2, sums.mixed, sums.tie2)

    def gram(self, lead2: Floats, mixed: Floats | None = None, tie2: float = 0.0) -> _Gram:
        """Return the sum of (a a^T) over votes, weighted by three second derivatives."""
        weighted = self.X * lead2[:, None]
        sides = [self.sum_items(column) for column in weighted.T]
        corner = self.X.T @ weighted
        if mixed is not None:
            sides.append(self.sum_items(mixed))
            edge = self.X.T @ mixed
            corner = np.block([[corner, edge[:, None]], [edge, np.array([tie2])]])
        side = np.array(sides).reshape(len(sides), self.n_items).T
        return _Gram(self.first, self.second, self.sum_pairs(lead2), side, corner)


class _Gram(NamedTuple):
    """A symmetric matrix of items, covariates and the tie parameter: [[L, S], [S^T, C]].

    L is the Laplacian matrix of pairs of items with weights, S has shape (n_items, q).
    """

    first: Ints
    second: Ints
    weight: Floats
    side: Floats
    corner: Floats

    def degrees(self) -> Floats:
        n = len(self.side)
        return add_up(self.first, self.weight, n) + add_up(self.second, self.weight, n)

    def dense(self) -> Floats:
        n, q = self.side.shape
        check_memory(32 * (n + q) ** 2, f"A matrix of {n:,} items", "Use fewer items.")
        matrix = np.zeros((n + q, n + q))
        across = add_up(self.first * n + self.second, self.weight, n * n).reshape(n, n)
        matrix[:n, :n] = -(across + across.T)
        matrix[np.arange(n), np.arange(n)] += self.degrees()
        matrix[:n, n:], matrix[n:, :n], matrix[n:, n:] = self.side, self.side.T, self.corner
        return matrix

    def solve(
        self,
        rhs: Floats,
        ridge: Floats,
        part: Ints,
        tolerance: float,
        prior: Floats | None = None,
    ) -> Floats:
        """Solve (G + diag(ridge) + prior) x = rhs, where items add up to 0 in each component.

        Without a prior, more than a thousand items are left to conjugate gradients.
        """
        n, q = self.side.shape
        if n > _DENSE and prior is None:
            # without a ridge, only items that add up to 0 have a solution, and rounding does not
            centred = np.append(np.where(ridge[:n] > 0, rhs[:n], _center(rhs[:n], part)), rhs[n:])
            found = self._iterate(centred, ridge, tolerance)
            if found is not None:
                return found
        matrix = self.dense() + gauge(part, n + q)
        if prior is not None:
            matrix[:n, :n] += prior
        matrix[np.diag_indices(n + q)] += ridge + 1e-13 * np.trace(matrix) / (n + q)
        return np.asarray(cho_solve(cho_factor(matrix, lower=True), rhs))

    def _iterate(self, rhs: Floats, ridge: Floats, tolerance: float) -> Floats | None:
        n, q = self.side.shape
        across = csr_array((self.weight, (self.first, self.second)), shape=(n, n))
        both = (across + across.T).tocsr()
        diagonal = self.degrees() + ridge[:n]
        unit = np.append(np.where(diagonal > 0, diagonal, 1.0), np.ones(q))
        corner = self.corner + np.diag(ridge[n:])
        corner[np.diag_indices(q)] += 1e-13 * np.trace(corner)
        root = np.linalg.inv(np.linalg.cholesky(corner)).T  # root^T C root is the identity matrix
        side = self.side @ root

        def product(x: Floats) -> Floats:
            v, b = x[:n], x[n:]
            return np.append(diagonal * v - both @ v + side @ b, side.T @ v + b)

        rhs = np.append(rhs[:n], root.T @ rhs[n:])
        found, failed = conjugate_gradients(
            product, unit, rhs, Queries.single(n + q), tolerance, 2000
        )
        return None if failed.any() else np.append(found[:n], root @ found[n:])


# ---------------------------------------------------------------- the fit


class ContestFit(NamedTuple):
    """A fit of the model: scores, coefficients and the tie parameter, and what intervals need.

    `weights` is the vector of all parameters: own scores, coefficients, and the tie parameter.
    """

    weights: Floats
    n_items: int
    has_tie: bool
    votes: Votes
    ridge: Floats
    part: Ints  # the component of each item
    ties: str
    own_effects: bool
    value: float  # minus the penalised log-likelihood
    information: Floats | None = None  # if it is not that of the votes and the ridge
    leans: bool = False  # whether other votes than these inform the scores, by a prior
    recession: Recession | None = None  # if the votes do not bound some effects

    @property
    def own(self) -> Floats:
        return self.weights[: self.n_items]

    @property
    def coefficients(self) -> Floats:
        return self.weights[self.n_items : self.n_items + self.votes.X.shape[1]]

    @property
    def tie(self) -> float:
        return float(self.weights[-1]) if self.has_tie else np.nan

    @property
    def model(self) -> str:
        return self.ties if self.has_tie else "half"

    def leads(self) -> Floats:
        """Return by how much the first item of each contest is ahead."""
        return self.votes.leads(self.weights, self.n_items)

    def slopes(self) -> Slopes:
        """Return the derivatives of each result of each contest."""
        return _MODELS[self.model](self.leads(), self.tie, self.votes.counts)

    def hessian(self) -> Floats:
        """Return the observed information of all parameters, with the penalty."""
        if self.information is not None:
            return self.information
        design = _Design(self.votes, self.n_items)
        sums = _sum_votes(self.leads(), self.votes.counts, self.model, self.tie)
        matrix = design.gram_of(sums).dense()
        matrix[np.diag_indices(len(matrix))] += self.ridge
        if not self.own_effects:
            own = slice(self.n_items)  # known to be 0
            matrix[own], matrix[:, own], matrix[own, own] = 0.0, 0.0, np.eye(self.n_items)
        return matrix

    def _factor(self) -> Floats:
        """Return the lower Cholesky factor of the information, which may say nothing of a score.

        That is so without a penalty, if the likelihood has no maximum.
        """
        matrix = self.hessian() + gauge(self.part, len(self.weights))
        try:
            return np.asarray(cho_factor(matrix, lower=True)[0])
        except np.linalg.LinAlgError:
            matrix[np.diag_indices(len(matrix))] += 1e-12 * np.trace(matrix) / len(matrix)
            return np.asarray(cho_factor(matrix, lower=True)[0])

    def inverse(self) -> Floats:
        """Return the covariance of the parameters by the observed information.

        It is that of scores that add up to 0 in each component.
        """
        lower = dpotri(self._factor(), lower=1, overwrite_c=1)[0]
        inverse = np.tril(lower)
        inverse += np.tril(lower, -1).T
        if not self.own_effects:
            inverse[: self.n_items] = 0.0
        return _center(_center(inverse, self.part).T, self.part).T

    def meat(self) -> csr_array:
        """Return the sum of the squared scores of all votes, the middle of a sandwich covariance.

        With n votes and k parameters, it is multiplied by (n - 1) / (n - k): as many votes as a sum
        of squares needs to be free of the parameters that were fitted.
        """
        slopes, votes = self.slopes(), self.votes
        lead2 = (votes.squares * slopes.lead**2).sum(axis=0)
        mixed = (votes.squares * slopes.lead * slopes.tie).sum(axis=0) if self.has_tie else None
        tie2 = float((votes.squares * slopes.tie**2).sum())
        matrix = _Design(votes, self.n_items).gram(lead2, mixed, tie2).dense()
        n_votes = float(votes.counts.sum() ** 2 / votes.squares.sum())
        fitted = len(self.weights) - (
            len(np.unique(self.part)) if self.own_effects else self.n_items
        )
        return csr_array(matrix * ((n_votes - 1) / max(n_votes - fitted, 1.0)))

    def bias(self, covariance: Floats) -> Floats:
        """Return the bias of the parameters up to terms of a smaller order (Cox and Snell, 1968).

        Each item takes a parameter, and the errors of all of them move the coefficients in the same
        direction, so that the bias is not small beside errors if items have few votes. With P the
        probability of a result, a parameter r gets -1/2 sum of (d_r P / P) (d_t d_u P) cov(t, u).
        `covariance` is that of the parameters, of this model or a robust one.
        """
        design, C, has_tie = _Design(self.votes, self.n_items), covariance, self.has_tie
        d, X, p = self.leads(), self.votes.X, self.votes.X.shape[1]
        first, second = self.votes.first, self.votes.second
        of_x = slice(self.n_items, self.n_items + p)
        variance = np.diag(C)[first] + np.diag(C)[second] - 2 * C[first, second]
        across = X @ C[of_x, of_x] + 2 * (C[first, of_x] - C[second, of_x])
        variance = variance + (across * X).sum(axis=1)
        mixed, tie2 = (
            (self.votes.leads(C[:, -1], self.n_items), C[-1, -1]) if has_tie else (0 * d, 0.0)
        )
        by_lead, by_tie, total = np.zeros(len(d)), 0.0, self.votes.total
        for begin in range(0, len(d), _BLOCK):
            b = slice(begin, begin + _BLOCK)
            for result in range(3 if has_tie else 2):
                one = np.zeros((3, len(d[b])))
                one[result] = 1.0
                found = _MODELS[self.model](d[b], self.tie, one)
                lead, tie = found.lead[result], found.tie[result]
                bend = variance[b] * (lead**2 - found.lead2) + tie2 * (tie**2 - found.tie2)
                bend += 2 * mixed[b] * (lead * tie - found.mixed)
                bend *= total[b] * np.exp(found.value[result])
                by_lead[b] += bend * lead
                by_tie += float(bend @ tie)
        pull = design.gradient(by_lead, np.array([by_tie] if has_tie else []))
        return np.asarray(-cho_solve((self._factor(), True), pull) / 2)


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
    effect_ridge: Floats | None = None,
) -> ContestFit:
    """Fit the model to the contests of one query, by Newton's method with a line search.

    `ridge` is the penalty of each own score, and `part` the component of each item. `prior` is the
    precision of a normal prior of the own scores, and `start` are the first parameters.
    `effect_ridge` are penalties of the effects; without them, effects that the votes do not bound
    are searched and get one. A step takes O(n_votes) time, and O(n_items^3) for up to a thousand
    items; beyond, conjugate gradients take a multiple of the number of pairs. Covariates are
    divided by their root mean squares meanwhile, so that their units do not matter.
    """
    p = votes.X.shape[1]
    has_tie = ties != "half" and bool(votes.counts[2].any())
    if has_tie and not votes.counts[:2].any():
        raise ValueError(f"All votes are ties, so that ties={ties!r} cannot be fitted.")
    total = votes.total
    unit = np.sqrt(total @ votes.X**2 / total.sum())
    _check_values(votes.X, unit, names)
    size, where = n_items + p + has_tie, slice(n_items, n_items + p)
    penalty = np.append(ridge, np.zeros(size - n_items))
    if effect_ridge is not None:
        penalty[where] = effect_ridge[:p] / unit**2
    model = _Newton(
        votes._replace(X=votes.X / unit) if p else votes,
        n_items, ties if has_tie else "half", penalty, part, own_effects, prior,
    )  # fmt: skip
    _check_collinear(model.design, total, names, part, own_effects, ridge)
    weights = np.zeros(size)
    if start is not None:
        weights = start.copy()
        weights[where] *= unit
    elif has_tie:
        share = float(votes.counts[2].sum() / total.sum())
        weights[-1] = np.log(2 * share / (1 - share))
        if ties == "rao_kupper":
            weights[-1] = max(2 * np.arctanh(min(share, 0.99)), 1e-3)
    few = max(_SAMPLE, _PER_ITEM * n_items)  # votes of fewer would be a worse start than 0
    if start is None and p and prior is None and len(total) >= 4 * few:
        some = np.arange(0, len(total), len(total) // few)
        sample = replace(model, votes=model.votes.take(some), ridge=model.ridge + 1e-2)
        weights = sample.minimize(weights, 1e-3, max_iter)[0]  # the penalty connects all items
    weights, value, finished = model.minimize(weights, tol, max_iter)
    weights[:n_items] = _center(weights[:n_items], part)
    recession = None
    proved = finished and not ridge.any() and model.is_undecided(weights)
    if size > n_items and not proved and effect_ridge is None:
        recession = find_recession(votes, n_items, model.ties, own_effects and prior is None)
    if recession is not None:
        open_effects = recession.low | recession.high
        relative = recession.unit[n_items:].copy()
        relative[:p] /= unit
        in_unit = _EFFECT_PENALTY * relative**2
        model.ridge[n_items:] = np.where(open_effects, in_unit, 0.0)
        weights[n_items:][open_effects] = 0.0
        if has_tie and open_effects[-1]:
            weights[-1] = 1.0
        weights, value, finished = model.minimize(weights, tol, max_iter)
        weights[:n_items] = _center(weights[:n_items], part)
    if not finished:
        warn(
            f"BradleyTerry has not converged in max_iter={max_iter} iterations. Increase max_iter.",
            ConvergenceWarning,
        )
    model.ridge[where] *= unit**2
    weights[where] /= unit
    fit = ContestFit(weights, n_items, has_tie, votes, model.ridge, part, ties, own_effects, value)
    fit = fit._replace(recession=recession)
    if prior is not None:
        information = fit.hessian()
        information[:n_items, :n_items] += prior
        fit = fit._replace(information=information)
    return fit


@dataclass
class _Newton:
    """Minus the penalised log-likelihood, and its minimum by Newton's method."""

    votes: Votes
    n_items: int
    ties: str
    ridge: Floats
    part: Ints
    own_effects: bool
    prior: Floats | None

    def __post_init__(self) -> None:
        self.design = _Design(self.votes, self.n_items)

    def evaluate(self, w: Floats) -> tuple[float, _Sums | None]:
        n = self.n_items
        if self.ties == "rao_kupper" and w[-1] <= 0:
            return np.inf, None
        sums = _sum_votes(self.votes.leads(w, n), self.votes.counts, self.ties, float(w[-1]))
        value = sums.value + float(self.ridge @ w**2) / 2
        if self.prior is not None:
            value += float(w[:n] @ self.prior @ w[:n]) / 2
        return value, sums

    def is_undecided(self, w: Floats) -> bool:
        """Whether no result that occurred is nearly certain at these parameters.

        If ties have a parameter, no result may be nearly impossible either: far away, wins and ties
        can share all of the probability, if the other item never wins.
        """
        d = self.votes.leads(w, self.n_items)
        chances = result_probabilities(d, self.ties, float(w[-1]))
        if self.ties != "half":
            return bool((chances >= _DECIDED).all())
        chances[2] = 0.5  # half a win for each, and never certain of the two
        return bool((chances[self.votes.counts > 0] <= 1 - _DECIDED).all())

    def minimize(self, weights: Floats, tol: float, max_iter: int) -> tuple[Floats, float, bool]:
        """Return the parameters, the value, and whether the last step was at most `tol`."""
        has_tie = self.ties != "half"
        value, sums = self.evaluate(weights)
        total, n = self.votes.total, self.n_items
        unit = add_up(self.votes.first, total, n) + add_up(self.votes.second, total, n)
        unit = np.append(unit, np.full(len(weights) - n, total.sum())) + self.ridge
        if self.prior is not None:
            unit[:n] += np.diag(self.prior)
        unit[unit == 0] = 1.0  # items without votes, whose gradient is 0
        for _ in range(max_iter):
            assert sums is not None
            tie = np.array([sums.tie]) if has_tie else np.zeros(0)
            gradient = self.design.gradient(sums.lead, tie) + self.ridge * weights
            if self.prior is not None:
                gradient[:n] += self.prior @ weights[:n]
            if not self.own_effects:
                gradient[:n] = 0.0
            size = float((np.abs(gradient) / unit).max())
            if size <= _ROUNDING:
                return weights, value, True
            step = self._step(self.design.gram_of(sums), gradient, size)
            largest = float(np.abs(step).max())
            slope, rate = float(gradient @ step), min(1.0, _LONGEST / max(largest, _LONGEST))
            for _ in range(_HALVINGS):
                new, found = self.evaluate(weights + rate * step)
                if new <= value + 1e-4 * rate * slope + 1e-13 * abs(value):
                    break
                rate /= 2
            weights, value, sums = weights + rate * step, new, found
            if largest <= tol:
                return weights, value, True
        return weights, value, False

    def _step(self, gram: _Gram, gradient: Floats, size: float) -> Floats:
        """Return Newton's step, solved as exactly as the size of the gradient makes useful."""
        n, step = self.n_items, np.zeros(len(gradient))
        if not self.own_effects:
            corner = gram.corner + np.diag(self.ridge[n:])
            step[n:] = -cho_solve(cho_factor(corner, lower=True), gradient[n:])
            return step
        tolerance = float(np.clip(size, 1e-8, 0.1))
        return gram.solve(-gradient, self.ridge, self.part, tolerance, self.prior)


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


def _check_values(X: Floats, unit: Floats, names: tuple[str, ...]) -> None:
    """Refuse covariates that are constant."""
    for k, name in enumerate(names):
        if unit[k] == 0:
            raise ValueError(f"The covariate {name!r} is 0 in all votes. Leave it out.")
        if name != POSITION and (X[:, k] == X[0, k]).all():
            raise ValueError(
                f"The covariate {name!r} is {X[0, k]:g} in all votes, and so says "
                "nothing but that an item is first. Pass position=True for that."
            )


def _left_of(gram: Floats, k: int) -> float:
    """Return the squared length of column k that the columns before it do not explain."""
    left = gram[k, k]
    if k:
        left -= gram[k, :k] @ np.linalg.lstsq(gram[:k, :k], gram[:k, k], rcond=None)[0]
    return float(left)


def _check_collinear(
    design: _Design,
    total: Floats,
    names: tuple[str, ...],
    part: Ints,
    own_effects: bool,
    ridge: Floats,
) -> None:
    """Refuse covariates that items and other covariates determine; all have the unit 1."""
    n, p = design.n_items, design.X.shape[1]
    if not p:
        return
    gram = design.gram(total / total.sum())
    rest = gram.corner.copy()
    if own_effects:
        alone = gram._replace(side=np.zeros((n, 0)), corner=np.zeros((0, 0)))
        for k in range(p):
            found = alone.solve(gram.side[:, k], ridge / total.sum(), part, 1e-12)
            rest[:, k] -= gram.side.T @ found
    for k in range(p):
        if k and _left_of(gram.corner, k) < _COLLINEAR:
            raise ValueError(
                f"The covariate {names[k]!r} is a sum of {', '.join(map(repr, names[:k]))}, so "
                "that the votes cannot tell their effects apart. Leave it out, as "
                "pandas.get_dummies(frame, drop_first=True) does with one column of each category."
            )
        if _left_of(rest, k) < _COLLINEAR:
            why = f"of {', '.join(map(repr, names[:k]))} and " if k else "of "
            raise ValueError(
                f"The covariate {names[k]!r} is a sum {why}differences of the items, so that the "
                "votes cannot tell its effect from their scores. Leave it out; or, if it is a "
                "feature of the items, pass BradleyTerry(own_effects=False), or penalty=1 for own "
                "effects around those of the features."
            )
