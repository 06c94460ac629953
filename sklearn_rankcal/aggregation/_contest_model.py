"""The Bradley-Terry model of contests, with ties and covariates, and the covariance of its fit.

Let s be the scores and b the coefficients of the covariates x. In a contest of a first item i and a
second item j, the *lead* is d = s_i - s_j + x . b. The probability that the first item wins, the
contest is tied or the second wins depends on the lead and on a parameter of ties.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dpotri
from scipy.optimize import linprog
from scipy.sparse import csr_array, hstack, vstack
from sklearn.exceptions import ConvergenceWarning

from sklearn_rankcal.aggregation._contests import (
    VoteDesign,
    Votes,
    center_items,
    check_collinear,
    check_values,
    gauge,
)
from sklearn_rankcal.aggregation._likelihoods import (
    VOTE_MODELS,
    ResultSlopes,
    VoteSums,
    minimize,
    result_probabilities,
    sum_votes,
)
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._messages import warn
from sklearn_rankcal.utils._numbers import Bools, Floats, Ints, add_up

#: If each observed result has at least this probability of being different at the fit, the zero
#: gradient proves that the maximum exists.
_DECIDED = 1e-5
#: The penalty (a / 2) b^2 of an unbounded effect b, as for unbounded scores, in the unit in which
#: its largest covariate is 1.
_EFFECT_PENALTY = 0.1
_LONGEST = 5.0  # step of a parameter; from a bad start, Newton's method would leave for good


class ContestFit(NamedTuple):
    """A fit of the model: scores, coefficients and the tie parameter, and data for intervals.

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
    information: Floats | None = None  # if it is not the information of the votes and the ridge
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
        """Return the lead of the first item of each contest."""
        return self.votes.leads(self.weights, self.n_items)

    def slopes(self) -> ResultSlopes:
        """Return the derivatives of each result of each contest."""
        return VOTE_MODELS[self.model](self.leads(), self.tie, self.votes.counts)

    def hessian(self) -> Floats:
        """Return the observed information of all parameters, with the penalty."""
        if self.information is not None:
            return self.information
        design = VoteDesign(self.votes, self.n_items)
        sums = sum_votes(self.leads(), self.votes.counts, self.model, self.tie)
        matrix = design.gram(sums.lead2, sums.mixed, sums.tie2).dense()
        matrix[np.diag_indices(len(matrix))] += self.ridge
        if not self.own_effects:
            own = slice(self.n_items)  # known to be 0
            matrix[own], matrix[:, own], matrix[own, own] = 0.0, 0.0, np.eye(self.n_items)
        return matrix

    def _factor(self) -> Floats:
        """Return the lower Cholesky factor of the information, which may be singular.

        It is singular without a penalty if the likelihood has no maximum.
        """
        matrix = self.hessian() + gauge(self.part, len(self.weights))
        try:
            return np.asarray(cho_factor(matrix, lower=True)[0])
        except np.linalg.LinAlgError:
            matrix[np.diag_indices(len(matrix))] += 1e-12 * np.trace(matrix) / len(matrix)
            return np.asarray(cho_factor(matrix, lower=True)[0])

    def solve(self, rhs: Floats) -> Floats:
        """Divide by the observed information."""
        return np.asarray(cho_solve((self._factor(), True), rhs))

    def inverse(self) -> Floats:
        """Return the covariance of the parameters by the observed information.

        It refers to scores that add up to 0 in each component.
        """
        lower = dpotri(self._factor(), lower=1, overwrite_c=1)[0]
        inverse = np.tril(lower)
        inverse += np.tril(lower, -1).T
        if not self.own_effects:
            inverse[: self.n_items] = 0.0
        return center_items(center_items(inverse, self.part).T, self.part).T


def fit_contests(
    votes: Votes,
    n_items: int,
    names: tuple[str, ...],
    structure: Any,
    ridge: Floats,
    part: Ints,
    *,
    prior: Floats | None = None,
    start: Floats | None = None,
    effect_ridge: Floats | None = None,
) -> ContestFit:
    """Fit the model to the contests of one query, by Newton's method with a line search.

    `structure` is a `BradleyTerry`, `ridge` the penalty of each own score, and `part` the component
    of each item. `prior` is the precision of a normal prior of the own scores, and `start` the
    initial parameters. `effect_ridge` has the penalties of the effects; without it, unbounded
    effects are found and penalised.

    A step takes O(n_votes) time, plus O(n_items^3) for up to a thousand items; for more, conjugate
    gradients take a multiple of the number of pairs. Covariates are divided by their root mean
    squares during the fit, to be independent of their units.
    """
    ties, own_effects = structure.ties, structure.own_effects
    tol, max_iter = structure.tol, structure.max_iter
    p = votes.X.shape[1]
    has_tie = ties != "half" and bool(votes.counts[2].any())
    if has_tie and not votes.counts[:2].any():
        raise ValueError(f"All votes are ties: ties={ties!r} cannot be fitted.")
    total = votes.total
    unit = np.sqrt(total @ votes.X**2 / total.sum())
    if p:
        check_values(votes.X, unit, names)
    size, where = n_items + p + has_tie, slice(n_items, n_items + p)
    penalty = np.append(ridge, np.zeros(size - n_items))
    if effect_ridge is not None:
        penalty[where] = effect_ridge[:p] / unit**2
    model = PenalizedVotes(
        votes._replace(X=votes.X / unit) if p else votes,
        n_items, ties if has_tie else "half", penalty, part, own_effects, prior,
    )  # fmt: skip
    if p:
        check_collinear(model.design, total, names, part, own_effects, ridge)
    weights = np.zeros(size)
    if start is not None:
        weights = center_items(start, part)
        weights[where] *= unit
    elif has_tie:
        share = float(votes.counts[2].sum() / total.sum())
        weights[-1] = np.log(2 * share / (1 - share))
        if ties == "rao_kupper":
            weights[-1] = max(2 * np.arctanh(min(share, 0.99)), 1e-3)
    found = minimize(model, tol, max_iter, weights, _LONGEST)
    weights = center_items(found.x, part)
    recession = None
    if size > n_items and effect_ridge is None:
        proved = not found.unfinished[0] and not ridge.any() and model.is_undecided(weights)
        if not proved:
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
        found = minimize(model, tol, max_iter, weights, _LONGEST)
        weights = center_items(found.x, part)
    if found.unfinished[0]:
        warn(
            (
                f"BradleyTerry did not converge in max_iter={max_iter} iterations. Increase "
                "max_iter."
            ),
            ConvergenceWarning,
        )
    model.ridge[where] *= unit**2
    weights[where] /= unit
    fit = ContestFit(
        weights, n_items, has_tie, votes, model.ridge, part, ties, own_effects,
        float(found.value[0]), recession=recession,
    )  # fmt: skip
    if prior is not None:
        information = fit.hessian()
        information[:n_items, :n_items] += prior
        fit = fit._replace(information=information)
    return fit


class PenalizedVotes:
    """Minus the penalised log-likelihood of one query, in the form for `minimize`."""

    def __init__(
        self,
        votes: Votes,
        n_items: int,
        ties: str,
        ridge: Floats,
        part: Ints,
        own_effects: bool,
        prior: Floats | None,
    ) -> None:
        self.votes, self.n_items, self.ties = votes, n_items, ties
        self.ridge, self.part, self.own_effects, self.prior = ridge, part, own_effects, prior
        self.design, self.parts = VoteDesign(votes, n_items), Queries(np.array([0, len(ridge)]))
        of_items = add_up(votes.first, votes.total, n_items)
        of_items += add_up(votes.second, votes.total, n_items)
        effects = np.full(len(ridge) - n_items, votes.total.sum())
        self.unit = np.append(of_items, effects) + ridge
        if prior is not None:
            self.unit[:n_items] += np.diag(prior)

    def evaluate(self, w: Floats) -> tuple[Floats, Floats, Floats, VoteSums | None]:
        n, tie = self.n_items, float(w[-1])
        if self.ties == "rao_kupper" and tie <= 0:
            return np.array([np.inf]), np.zeros(len(w)), self.unit, None
        sums = sum_votes(self.votes.leads(w, n), self.votes.counts, self.ties, tie)
        pull = self.ridge * w
        if self.prior is not None:
            pull[:n] += self.prior @ w[:n]
        value = np.array([sums.value + float(w @ pull) / 2])
        gradient = self.design.gradient(sums.lead, None if self.ties == "half" else sums.tie) + pull
        if not self.own_effects:
            gradient[:n] = 0.0
        return value, gradient, self.unit, sums

    def solve(self, sums: VoteSums, rhs: Floats, tolerance: Floats) -> Floats:
        gram, n = self.design.gram(sums.lead2, sums.mixed, sums.tie2), self.n_items
        if self.own_effects:
            return gram.solve(rhs, self.ridge, self.part, float(tolerance[0]), self.prior)
        corner = gram.corner + np.diag(self.ridge[n:])
        return np.append(np.zeros(n), cho_solve(cho_factor(corner, lower=True), rhs[n:]))

    def is_undecided(self, w: Floats) -> bool:
        """Whether no observed result is nearly certain at these parameters.

        If ties have a parameter, no result may be nearly impossible either: in the limit, wins and
        ties can share all of the probability if one item never wins.
        """
        d = self.votes.leads(w, self.n_items)
        chances = result_probabilities(d, self.ties, float(w[-1]))
        if self.ties != "half":
            return bool((chances >= _DECIDED).all())
        chances[2] = 0.5  # half a win for each item, never nearly certain
        return bool((chances[self.votes.counts > 0] <= 1 - _DECIDED).all())


# ---------------------------------------------------------------- unbounded effects

# A *direction of recession* is a direction of the parameters in which some votes become more likely
# and no vote becomes less likely, at any distance. If one exists, the likelihood has no maximum
# (Albert and Anderson, 1984, Biometrika 71, On the existence of maximum likelihood estimates in
# logistic regression models). Linear programs decide whether a direction of recession moves a given
# effect.


#: The zero tolerance of the linear programs; directions have size 1.
_ZERO = 1e-6
#: Number of votes of the initial program, and of votes added in each round.
_VOTES = 2000


class Recession(NamedTuple):
    """The effects that directions of recession of the model of one query move."""

    low: Bools  # whether each effect can fall without bound
    high: Bools  # or rise
    unit: Floats  # of each parameter: the largest absolute value of a covariate


def find_recession(votes: Votes, n_items: int, ties: str, moving: bool) -> Recession | None:
    """Find directions of recession that move effects; None if there are none.

    `moving` is whether scores can move as well; they cannot with a penalty. `ties` is the model of
    ties, or "half" if ties have no parameter. Two linear programs per effect.
    """
    p, has_tie = votes.X.shape[1], ties != "half"
    size = n_items + p + has_tie
    unit = np.ones(size)
    unit[n_items : n_items + p] = np.abs(votes.X).max(axis=0)
    unit[unit == 0] = 1.0
    scaled = votes._replace(X=votes.X / unit[n_items : n_items + p])
    free = np.append(np.full(n_items, moving), np.ones(size - n_items, dtype=bool))
    constraints = _constraints(scaled, n_items, ties)
    low, high = np.zeros((2, size - n_items), dtype=bool)
    for k in range(size - n_items):
        low[k], high[k] = [_can_move(constraints, free, n_items + k, sign) for sign in (-1.0, 1.0)]
    return Recession(low, high, unit) if (low | high).any() else None


def _can_move(constraints: csr_array, free: Bools, place: int, sign: float) -> bool:
    """Return whether a direction of recession moves a parameter to this side.

    In such a direction, the linear functions in `constraints` are >= 0. The program starts with
    some of them. Those that the found direction violates are added until there are none.
    """
    bounds = np.where(free, 1.0, 0.0)
    goal = np.zeros(len(free))
    goal[place] = sign
    n = constraints.shape[0]
    rows = np.unique(np.linspace(0, n - 1, min(n, _VOTES)).astype(np.int64))
    while True:
        found = linprog(
            -goal, A_ub=-constraints[rows], b_ub=np.zeros(len(rows)),
            bounds=np.column_stack([-bounds, bounds]), method="highs",
        )  # fmt: skip
        if found.status != 0 or -found.fun <= _ZERO:
            return False
        slack = constraints @ found.x
        violated = np.flatnonzero(slack < -_ZERO)
        if not len(violated):
            return True
        violated = violated[np.argsort(slack[violated], kind="stable")[:_VOTES]]
        rows = np.union1d(rows, violated)


def _constraints(votes: Votes, n_items: int, ties: str) -> csr_array:
    """Return linear functions that must be >= 0 in a direction of recession."""
    n = len(votes.first)
    at = np.arange(n)
    ends = np.append(at, at), np.append(votes.first, votes.second)
    items = csr_array((np.repeat([1.0, -1.0], n), ends), shape=(n, n_items))
    lead = hstack([items, csr_array(votes.X)], format="csr")
    first, second, tied = (np.flatnonzero(row) for row in votes.counts > 0)
    if ties == "half":
        rows = [lead[first], -lead[second], lead[tied], -lead[tied]]
        return csr_array(vstack(rows, format="csr"))

    def beside(sign: float, some: Ints, tie: float) -> csr_array:
        column = csr_array(np.full((len(some), 1), tie))
        return csr_array(hstack([sign * lead[some], column], format="csr"))

    # In Davidson's model, results have the odds exp(d / 2), exp(-d / 2) and exp(t). In Rao and
    # Kupper's, a win needs d above t, and t >= 0.
    half = 0.5 if ties == "davidson" else 1.0
    rows = [beside(half, first, -1.0), beside(-half, second, -1.0)]
    rows += [beside(half, tied, 1.0), beside(-half, tied, 1.0)]
    if ties == "davidson":
        rows += [beside(1.0, first, 0.0), beside(-1.0, second, 0.0)]
    else:
        rows.append(csr_array(np.eye(1, lead.shape[1] + 1, lead.shape[1])))
    return csr_array(vstack(rows, format="csr"))
