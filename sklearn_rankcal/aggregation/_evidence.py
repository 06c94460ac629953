"""How sure the statements of a leaderboard are: one more vote, or judge, against each of them.

An estimate psi of a difference of scores, or of an effect, says too much if it rests on few votes:
three wins to none look certain. *A statement must survive one more vote against it.* With l(psi)
the profile log-likelihood and g the logistic function,

    z(psi0)^2 = 2 (max over psi of (l(psi) + log 2 g(psi0 - psi)) - l(psi0))

compares the likelihood with one more vote for "psi is below psi0" with the fit at psi0, and P(psi >
psi0) = Phi(z(psi0)). Without covariates, a further win of an item never lowers z for a statement in
its favour. For two items this is close to the interval of Clopper and Pearson, and ends become
infinite by themselves. Judges differ from each other, and a statement about judges must also
survive one more judge: one who is undecided, or against it if the judges never contradict
themselves.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit, log_expit, ndtri, ndtri_exp, stdtr, stdtrit

from sklearn_rankcal._kernels import kernels
from sklearn_rankcal.aggregation._contest_model import ContestFit
from sklearn_rankcal.aggregation._contests import VoteDesign, Votes, center_items
from sklearn_rankcal.aggregation._likelihoods import VOTE_MODELS, ResultSlopes, logistic_terms
from sklearn_rankcal.utils._memory import row_blocks
from sklearn_rankcal.utils._numbers import Bools, Floats, Ints, add_up

#: Precision of the scores of items that never lose; it keeps the likelihoods from rising forever.
_RIDGE = 1e-4
#: Log-odds beyond which an end is infinite, and the least parameter of ties of Rao and Kupper.
_FARTHEST, _LEAST = 30.0, 1e-6
#: Iterations of the leverages of the votes, of Newton's method (`_profiles.pxi` has the same
#: number), of linear systems and of ends.
_ROUNDS, _STEPS, _INNER, _ENDS = 2, 40, 25, 12
_HALVINGS, _BISECTIONS = 30, 20  # of the steps of Newton's method, and of chains


class Firth(NamedTuple):
    """A fit with half a vote for each side, in all as many votes as parameters (Firth, 1993).

    It is finite on any data. With leverages h of the votes, h / 2 wins and h / 2 losses are added.
    """

    weights: Floats
    covariance: Floats


def fit_firth(fit: ContestFit) -> Firth:
    """Fit the votes of a fit again with Firth's penalty, which is that of Jeffreys' prior.

    Firth (1993), Bias reduction of maximum likelihood estimates, Biometrika 80.
    """
    weights = np.zeros(len(fit.weights))
    if fit.has_tie:
        weights[-1] = fit.tie
    counts, one = fit.votes.counts, fit._replace(weights=weights)
    profiles = Profiles.of_votes(one, Firth(weights, weights))
    for _ in range(_ROUNDS):
        inverse, added = one.inverse(), np.zeros_like(counts)
        added[:2] = one.slopes().lead2 * spreads(fit.votes, inverse, fit.n_items) / 2
        profiles = profiles._replace(counts=counts + added, start=one.weights, metric=inverse)
        one = one._replace(weights=center_items(profiles.fit(), fit.part))
    more = fit.votes._replace(counts=profiles.counts)
    return Firth(one.weights, one._replace(votes=more).inverse())


def spreads(votes: Votes, covariance: Floats, n_items: int) -> Floats:
    """Return the variance of the lead of each vote."""
    C, first, second, X = covariance, votes.first, votes.second, votes.X
    variance = C[first, first] + C[second, second] - 2 * C[first, second]
    if X.shape[1]:
        of_x = slice(n_items, n_items + X.shape[1])
        across = X @ C[of_x, of_x] + 2 * (C[first, of_x] - C[second, of_x])
        variance = variance + (across * X).sum(axis=1)
    return np.maximum(variance, 0.0)


def equivalent_votes(psi: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Return the wins and losses of two items that have this estimate and variance by Firth."""
    with np.errstate(divide="ignore"):
        won = 1 / (variance * expit(-psi)) - 0.5
        lost = 1 / (variance * expit(psi)) - 0.5
    return np.clip(won, 0.0, 1e15), np.clip(lost, 0.0, 1e15)


def z_of_two(psi: Floats, variance: Floats, at: Floats | float = 0.0) -> Floats:
    """Return z of two items with the votes that are equivalent to an estimate.

    The exact form of `Profiles` for two items, and close to it for others. O(1) time for each.
    Negative if psi is below the value `at`.
    """
    sign = np.where(psi < at, -1.0, 1.0)
    psi, at = sign * psi, sign * at
    # more variance than two items without a loss can have comes from a chain of comparisons
    links = np.maximum(variance * expit(psi) - 1, 1.0)
    a, b = equivalent_votes(psi / links, variance / links)
    # the best exp(psi) with one more vote against is the positive root of y (b + 1) x^2 = m x + a
    y = np.exp(np.clip(-at, -50.0, 50.0))
    m = (a - 1) * y - b
    root = np.sqrt(m**2 + 4 * a * (b + 1) * y)
    x = np.where(m > 0, m + root, 4 * a * (b + 1) * y / np.maximum(root - m, 1e-300))
    t = np.log(np.maximum(x / (2 * y * (b + 1)), 1e-300))
    if (long := links > 1).any():  # by bisection
        k, won, lost, middle = links[long], a[long], b[long], at[long]
        low, high = middle / k, psi[long] / k
        for _ in range(_BISECTIONS):
            one = (low + high) / 2
            rises = won * expit(-one) - lost * expit(one) > expit(k * one - middle)
            low, high = np.where(rises, one, low), np.where(rises, high, one)
        t[long] = low
    start = at / links
    square = a * (log_expit(t) - log_expit(start)) + b * (log_expit(-t) - log_expit(-start))
    square = 2 * (links * square + log_expit(at - links * t) + np.log(2))
    ahead = (variance > 0) & (t > start) & (a > 0)
    return sign * np.sqrt(np.where(ahead, np.maximum(square, 0.0), 0.0))


def ends_of_two(psi: Floats, variance: Floats, quantile: float) -> tuple[Floats, Floats]:
    """Return the lowest and the highest value that survive, by bisection."""
    ends = []
    for sign in (1.0, -1.0):
        far, near = sign * psi - _FARTHEST, sign * psi
        for _ in range(40):
            middle = (far + near) / 2
            clear = z_of_two(sign * psi, variance, middle) > quantile
            far, near = np.where(clear, middle, far), np.where(clear, near, middle)
        ends.append(sign * np.where(near > sign * psi - _FARTHEST + 1e-3, near, -np.inf))
    return ends[0], ends[1]


# ---------------------------------------------------------------- profile likelihoods


class Profiles(NamedTuple):
    """The likelihood of the votes of one query as a function of contrasts of the parameters.

    Several contrasts are profiled at the same time. `metric` is a covariance of the parameters,
    which is the preconditioner of the linear systems. Time is O(n_pairs + n_parameters^2) for a
    step of each contrast.
    """

    design: Any  # (n_votes, n_parameters): the leads of the votes
    counts: Floats  # (3, n_votes)
    model: str
    ridge: Floats
    start: Floats
    metric: Floats
    pairs: tuple[Ints, Ints] | None = None  # the items of the votes, if the loop is compiled
    orders: Any = None  # the likelihood of orders in the place of votes

    @classmethod
    def of_votes(cls, fit: ContestFit, firth: Firth) -> Profiles:
        """Collect the votes of a fit."""
        n, votes, at = fit.n_items, fit.votes, np.arange(len(fit.votes.first))
        ends = np.append(at, at), np.append(votes.first, votes.second)
        size = len(at), len(fit.weights)
        design = csr_array((np.repeat([1.0, -1.0], len(at)), ends), shape=size)
        if size[1] <= 100 or votes.X.shape[1]:
            design = design.toarray()
            design[:, n : n + votes.X.shape[1]] = votes.X
        plain = kernels.fit_profiles is not None and size[1] == n <= _EXACT
        pairs = (votes.first, votes.second) if plain else None
        return cls(design, votes.counts, fit.model, fit.ridge, *firth, pairs)

    def fit(self) -> Floats:
        """Return the parameters with the largest likelihood."""
        none = np.zeros((1, len(self.start)))
        free = _Lines(none, none, np.ones(1), np.zeros(1), np.zeros(1, dtype=bool))
        return self._minimize(self.start[None], free)[0][0]

    def z(self, contrasts: Floats, at: Floats | float = 0.0) -> Floats:
        """Return z for each contrast being above a value, at least 0."""
        return np.maximum(self._compare(contrasts, np.broadcast_to(at, len(contrasts)))[0], 0.0)

    def ends(self, contrasts: Floats, quantile: float) -> tuple[Floats, Floats]:
        """Return the lowest and the highest value of each contrast that survives.

        Newton's method for z, from Wald's interval.
        """
        both = np.vstack([contrasts, -contrasts])
        psi = both @ self.start
        error = np.sqrt(np.maximum(((both @ self.metric) * both).sum(axis=1), 0.0))
        found = psi - quantile * error
        farthest = psi - _FARTHEST
        if self.model == "rao_kupper":  # its parameter of ties is positive
            farthest = np.where(both[:, -1] > 0, _LEAST, farthest)
        found, going = np.maximum(found, farthest), np.flatnonzero(error > 0)
        start = None
        for _ in range(_ENDS):
            at, last = found[going], farthest[going]
            z, slope, start = self._compare(both[going], at, start)
            lost = (z < quantile) & (at <= last)
            step = np.divide(quantile - z, slope, np.full(len(z), -8.0), where=slope < -1e-3)
            moved = np.maximum(at + np.clip(step, -8.0, 8.0), last)
            found[going] = np.where(lost, -np.inf, moved)
            left = (np.abs(z - quantile) > 1e-3) & ~lost
            going, start = going[left], start[np.tile(left, 2)]
            if not len(going):
                break
        low, high = np.split(found, 2)
        return low, -high

    def _compare(
        self, contrasts: Floats, at: Floats, start: Floats | None = None
    ) -> tuple[Floats, Floats, Floats]:
        """Return z, its derivative by the value, and the fits.

        The first half of the fits has a vote against each contrast, the other half has the contrast
        at its value.
        """
        pull = contrasts @ self.metric
        size = (pull * contrasts).sum(axis=1)
        size[~(size > 0)] = 1.0
        if start is None:
            psi = contrasts @ self.start
            won, lost = equivalent_votes(psi - at, size)
            middle = at + np.log(np.maximum(won, 1e-3) / (lost + 1))
            ahead = np.append(np.clip(middle, psi - 5, psi + 5) - psi, at - psi)
            start = self.start + np.tile(pull / size[:, None], (2, 1)) * ahead[:, None]
        else:
            n = len(at)
            change = (at - (contrasts * start[n:]).sum(axis=1)) / size
            start[n:] += change[:, None] * pull
        if self.model == "rao_kupper":
            start[:, -1] = np.maximum(start[:, -1], _LEAST)
        lines = _Lines(contrasts, pull, size, at, np.zeros(len(at), dtype=bool))
        lines = _Lines._make(np.concatenate([one, one]) for one in lines)
        lines.fixed[len(at) :] = True
        fits, values, slopes = self._minimize(start, lines)
        psi = (contrasts * fits[: len(at)]).sum(axis=1)
        # the added vote has log 2 g, which is 0 at the fit with psi = psi0
        value, tied = np.split(values, 2)
        square = np.maximum(2 * (tied - value + np.log(2)), 0.0)
        z = np.copysign(np.sqrt(square), psi - at)
        bend = expit(psi - at) + slopes[len(at) :]
        return z, np.divide(bend, z, np.zeros(len(z)), where=square > 0), fits

    def _minimize(self, x: Floats, lines: _Lines) -> tuple[Floats, Floats, Floats]:
        """Fit the votes by Newton's method with conjugate gradients.

        Return the fits, minus the log-likelihoods, and their derivatives by the contrasts.
        """
        result, value, slope = x.copy(), np.zeros(len(x)), np.zeros(len(x))
        if self.pairs is not None:
            wins = self.counts[:2] + self.counts[2] / 2
            how = self.ridge, lines.contrasts, lines.at, lines.fixed.view(np.uint8)
            kernels.fit_profiles(*self.pairs, *wins, *how, result, value, slope)
            return result, value, slope
        where = np.arange(len(x))
        now = self._evaluate(x, lines)
        for _ in range(_STEPS):
            step, decrement = self._newton(now, lines)
            reach = np.minimum(1.0, 5.0 / np.maximum(np.abs(step).max(axis=1), 1e-300))
            for _ in range(_HALVINGS):
                trial = x + reach[:, None] * step
                new = self._evaluate(trial, lines)
                high = ~(new.value <= now.value - 1e-4 * reach * decrement + 1e-12)
                if not high.any():
                    break
                reach = np.where(high, reach / 2, reach)
            x, now = trial, new
            left = decrement > 1e-7
            done = where[~left]
            if len(done):
                result[done], value[done] = x[~left], now.value[~left]
                slope[done] = ((now.gradient * lines.pull).sum(axis=1) / lines.size)[~left]
                if not left.any():
                    break
                x, where = x[left], where[left]
                lines = _Lines._make([one[left] for one in lines])
                if self.orders is None:
                    now = _Local(*(one[left] for one in now[:-1]))
                else:
                    now = self._evaluate(x, lines)
        else:
            result[where], value[where] = x, now.value
        return result, value, slope

    def _evaluate(self, x: Floats, lines: _Lines) -> _Local:
        now = self._evaluate_votes(x) if self.orders is None else self._evaluate_orders(x)
        # one more vote against each contrast that is not fixed
        ahead = (lines.contrasts * x).sum(axis=1) - lines.at
        share = np.where(lines.fixed, 0.0, expit(ahead))
        return now._replace(
            value=now.value - np.where(lines.fixed, 0.0, log_expit(-ahead)),
            gradient=now.gradient + share[:, None] * lines.contrasts,
            against=share * (1 - share),
        )

    def _evaluate_orders(self, x: Floats) -> _Local:
        value, gradient, _, state = self.orders.copies(len(x)).evaluate(x.ravel())
        none = np.zeros((len(x), 0))
        return _Local(value, gradient.reshape(x.shape), none, none, none, none, state)

    def _evaluate_votes(self, x: Floats) -> _Local:
        leads, counts = (self.design @ x.T).T, self.counts
        if self.model == "half":
            found = logistic_terms(leads, counts[0] + counts[2] / 2, counts[1] + counts[2] / 2)
            value, slope, lead2 = found.value.sum(axis=1), found.slope, found.bend
            tie = mixed = tie2 = np.zeros((len(x), 0))
        else:
            wide = counts[:, None]
            with np.errstate(divide="ignore", invalid="ignore"):  # steps to no share of ties
                terms = VOTE_MODELS[self.model](leads, x[:, -1:], wide)  # type: ignore[arg-type]
            value = -(wide * terms.value).sum(axis=(0, 2))
            slope, lead2, mixed = -(wide * terms.lead).sum(axis=0), terms.lead2, terms.mixed
            tie = -(wide * terms.tie).sum(axis=(0, 2))[:, None]
            tie2 = terms.tie2.sum(axis=1)[:, None]
        gradient = (self.design.T @ slope.T).T + self.ridge * x
        gradient[:, x.shape[1] - tie.shape[1] :] += tie
        value = value + (self.ridge * x**2).sum(axis=1) / 2
        return _Local(value, gradient, lead2, mixed, tie2, gradient[:, 0])

    def _newton(self, now: _Local, lines: _Lines) -> tuple[Floats, Floats]:
        """Return the Newton steps, which leave fixed contrasts as they are, and decrements."""
        kept = np.where(lines.fixed, 1 / lines.size, 0.0)

        def project(values: Floats) -> Floats:
            """Remove what moves the contrasts, before rounding errors can."""
            return values - (kept * (values * lines.pull).sum(axis=1))[:, None] * lines.contrasts

        def product(v: Floats) -> Floats:
            if self.orders is not None:
                copies = self.orders.copies(len(v))
                found = copies.bend(now.orders, v.ravel()).reshape(v.shape)
            else:
                leads = (self.design @ v.T).T
                found = leads * now.lead2
                if now.tie2.shape[1]:
                    found += now.mixed * v[:, -1:]
                found = (self.design.T @ found.T).T + self.ridge * v
                if now.tie2.shape[1]:
                    found[:, -1] += (leads * now.mixed).sum(axis=1) + now.tie2[:, 0] * v[:, -1]
            against = now.against * (lines.contrasts * v).sum(axis=1)
            return project(found + against[:, None] * lines.contrasts)

        downhill = project(-now.gradient)
        step, residual = np.zeros_like(downhill), downhill
        scaled = residual @ self.metric
        direction, square = scaled, (residual * scaled).sum(axis=1)
        least = np.maximum(1e-6 * square, 1e-13)
        for _ in range(_INNER):
            active = square > least
            if not active.any():
                break
            image = product(direction)
            curvature = (direction * image).sum(axis=1)
            active &= curvature > 0
            length = np.divide(square, curvature, np.zeros_like(square), where=active)
            step += length[:, None] * direction
            residual = residual - length[:, None] * image
            scaled = residual @ self.metric
            previous, square = square, (residual * scaled).sum(axis=1)
            ratio = np.divide(square, previous, np.zeros_like(square), where=active)
            direction = scaled + ratio[:, None] * direction
        return step, np.maximum((downhill * step).sum(axis=1), 0.0)


class _Lines(NamedTuple):
    """Contrasts with their images by the metric, their variances and values.

    Contrasts that are `fixed` stay at their value; the others have one more vote against a larger
    one.
    """

    contrasts: Floats
    pull: Floats
    size: Floats
    at: Floats
    fixed: Bools


class _Local(NamedTuple):
    """Minus the log-likelihoods at some parameters, and their derivatives."""

    value: Floats
    gradient: Floats
    lead2: Floats
    mixed: Floats
    tie2: Floats
    against: Floats
    orders: Any = None  # the state of the likelihood of orders


# ---------------------------------------------------------------- judges


#: A judge with a larger share of the information counts as the only judge.
_ALL = 0.99


class JudgeTerms(NamedTuple):
    """What the judges say of some contrasts, each of shape (n_contrasts,).

    `variance` is clustered by judge, with the correction of Bell and McCaffrey (2002, Survey
    Methodology 28): residuals are divided by 1 minus the share of the judge in the information.
    `number` is the effective number of judges, and `degrees` their degrees of freedom
    (Satterthwaite), 0 for a single judge. `against` is from 0 for judges who contradict themselves
    as chance does to 1 for judges who never do.
    """

    variance: Floats
    number: Floats
    degrees: Floats
    against: Floats

    def z(self, psi: Floats) -> Floats:
        """Return the normal quantile of contrasts being above 0 with one more judge.

        With G equal judges, the additional judge has the value -`against` times their mean, and z
        is from Student's distribution with G degrees of freedom. It is at most the quantile of
        (G - `against`) / (1 + `against`).
        """
        number = np.where(self.degrees > 0, self.number, 1.0)
        wide = (1 + self.against) * psi / number
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.abs(psi) * (1 - self.against / number) / np.sqrt(self.variance + wide**2)
        z = _normal_scores(t, np.broadcast_to(self.degrees + 1, t.shape))
        return np.copysign(np.where((self.degrees > 0) & (psi != 0), z, 0.0), psi)

    def width(self, psi: Floats, level: float) -> Floats:
        """Return the half-width of intervals of this level, infinite with too few judges.

        For an end at distance d, G equal judges have the mean d, and the additional judge has
        -`against` times the estimate. The half-width is where Student's t statistic of these values
        is the quantile.
        """
        known = self.degrees > 0
        number = np.where(known, self.number, 1.0)
        free = np.where(known, self.degrees, 1.0) + 1
        ratio = (stdtrit(free, (1 + level) / 2) / number) ** 2
        shift = self.against * np.abs(psi)
        left, middle = 1 - ratio, shift * (1 / number + ratio)
        rest = shift**2 * (1 / number**2 - ratio) - ratio * number**2 * self.variance
        enough = known & (left > 0)
        root = np.sqrt(np.maximum(middle**2 - left * rest, 0.0))
        return np.where(enough, (middle + root) / np.where(enough, left, 1.0), np.inf)

    def of_pairs(self, covariance: Floats, rows: slice) -> JudgeTerms:
        """Return the terms of the differences of some items and all items."""
        own = np.diag(covariance)
        variance = np.maximum(own[rows, None] + own - 2 * covariance[rows], 0.0)
        number, degrees = (np.minimum(one[rows, None], one) for one in (self.number, self.degrees))
        against = np.maximum(self.against[rows, None], self.against)
        return JudgeTerms(variance, number, degrees, against)


def _normal_scores(t: Floats, degrees: Floats) -> Floats:
    """Return the normal quantiles of values of Student's distribution, for t >= 0.

    From 10 degrees of freedom on, this is Hill's approximation, with an error below 1e-6 (Hill,
    1970, Algorithm 395: Student's t-distribution, Communications of the ACM 13). It is 20 times as
    fast.
    """
    a = degrees - 0.5
    b, square = 48 * a**2, a * np.log1p(t**2 / degrees)
    rest = (((4 * square + 33) * square + 240) * square + 855) / (b + 0.8 * square**2 + 100)
    z = np.sqrt(square) * (1 + (square + 3 - rest / 10) / b)
    few = degrees < 10
    z[few] = -ndtri_exp(np.log(stdtr(degrees[few], -t[few])))
    return np.asarray(z)


def share_terms(shares: csr_array) -> tuple[Floats, Floats]:
    """Return the effective number of judges with these shares, by column, and their degrees.

    A mean over judges with shares h and residuals e has the bias-reduced variance sum of h^2 e^2 /
    (1 - h), and 1 / sum of (h_g^2 if g = k, else h_g^2 h_k^2 / ((1 - h_g) (1 - h_k))) degrees of
    freedom: n - 1 for n equal shares.
    """
    shares.sum_duplicates()  # early versions of SciPy keep them
    total = np.asarray(shares.sum(axis=0)).ravel()
    shares = csr_array(shares * np.divide(1.0, total, np.zeros(len(total)), where=total > 0))
    square = csr_array(shares.multiply(shares))
    over = square.copy()
    over.data = square.data / (1 - np.minimum(shares.data, _ALL))
    sums = [np.asarray(one.sum(axis=0)).ravel() for one in (square, over, over.multiply(over))]
    degrees = 1 / np.maximum(sums[0] + sums[1] ** 2 - sums[2], 1e-300)
    top = np.asarray(shares.max(axis=0).toarray()).ravel()
    none = (top > _ALL) | (sums[0] == 0)
    number = np.divide(1.0, sums[0], np.zeros(len(total)), where=sums[0] > 0)
    return number, np.where(none, 0.0, degrees)


def judge_terms(
    score: Floats, share: Floats, net: Floats, most: Floats, chance: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the number, the degrees and `against`, and the residuals of the judges.

    The arrays have shape (n_judges, n_contrasts): scores and information of each judge, and the net
    size, the total size and the sum of squared sizes of what the judge says.
    """
    total = share.sum(axis=0)
    share = share / np.where(total > 0, total, 1.0)
    left = 1 - np.minimum(share, _ALL)
    scaled = (score - share * score.sum(axis=0)) / np.sqrt(left)
    # how far a judge agrees: the squared net size, less what chance adds to it
    room = most**2 - chance
    agree = np.divide(net**2 - chance, room, np.zeros_like(room), where=room > 1e-9 * most**2)
    against = np.clip((share * agree).sum(axis=0), 0.0, 1.0) ** 4
    return *share_terms(csr_array(share)), against, scaled


class Judges(NamedTuple):
    """The votes of judges at a fit, not merged.

    Each vote is a judge of its own if `judge` is None.
    """

    fit: ContestFit
    judge: Ints | None
    outcome: Ints
    weight: Floats
    square: Floats

    def terms(self, pulls: Floats, own: bool = False) -> tuple[JudgeTerms, Floats]:
        """Return the terms of contrasts with these covariances, and the covariance of all of them.

        O(n_votes n_contrasts) time. Without judges and with `own`, the contrasts are the scores of
        the items, and each has the number of its own votes, in O(n_votes) time.
        """
        slopes = self.fit.slopes()
        if self.judge is None and own:
            n, votes, known = self.fit.n_items, self.fit.votes, slopes.lead2
            each = known**2 * self.square / self.weight**2
            known, each = [
                add_up(votes.first, one, n) + add_up(votes.second, one, n) for one in (known, each)
            ]
            number = np.divide(known**2, each, np.zeros(n), where=each > 0)
            degrees, against = np.maximum(number - 1, 0.0), np.zeros(n)
        else:
            step = max(1, 2_000_000 // len(self.outcome))
            starts = range(0, len(pulls), step)
            parts = [self._block(pulls[k : k + step], slopes) for k in starts]
            number, degrees, against = [np.concatenate([one[k] for one in parts]) for k in range(3)]
        if self.judge is None:
            covariance = pulls @ self._meat(slopes) @ pulls.T
        else:
            scaled = np.hstack([one[3] for one in parts])
            covariance = scaled.T @ scaled
        return JudgeTerms(np.diag(covariance).copy(), number, degrees, against), covariance

    def _block(self, pulls: Floats, slopes: ResultSlopes) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the number, the degrees and `against`, and the residuals of the judges."""
        fit, votes = self.fit, self.fit.votes
        at, n = np.arange(len(self.outcome)), fit.n_items
        moves = (pulls[:, votes.first] - pulls[:, votes.second]).T  # of the lead of each vote
        if votes.X.shape[1]:
            moves = moves + votes.X @ pulls[:, n : n + votes.X.shape[1]].T
        known, tie = slopes.lead2[:, None] * moves**2, pulls[:, -1]
        if fit.has_tie:
            known += 2 * slopes.mixed[:, None] * moves * tie + slopes.tie2[:, None] * tie**2
        if self.judge is None:
            total = known.sum(axis=0)
            known /= np.where(total > 0, total, 1.0)
            square = (self.square / self.weight**2) @ known**2
            number = np.divide(1.0, square, np.zeros(len(square)), where=square > 0)
            none = np.zeros((1, len(pulls)))
            return number, np.maximum(number - 1, 0.0), none[0], none
        score = (self.weight * slopes.lead[self.outcome, at])[:, None] * moves
        if fit.has_tie:
            score += (self.weight * slopes.tie[self.outcome, at])[:, None] * tie
        members = csr_array((np.ones(len(at)), (self.judge, at)))
        # how far the votes of a judge agree, in the net and in the total move
        sign = np.array([1.0, -1.0, 0.0])[self.outcome] * self.weight
        net = members @ (sign[:, None] * moves)
        most = members @ (self.weight[:, None] * np.abs(moves))
        chance = members @ (self.square[:, None] * moves**2)
        return judge_terms(members @ score, members @ known, net, most, chance)

    def _meat(self, slopes: ResultSlopes) -> Floats:
        """Return the sum of the squared scores of all votes.

        With n votes and k parameters, it is multiplied by (n - 1) / (n - k) to correct for fitted
        parameters.
        """
        fit, at = self.fit, np.arange(len(self.outcome))
        lead, tie = slopes.lead[self.outcome, at], slopes.tie[self.outcome, at]
        mixed = self.square * lead * tie if fit.has_tie else None
        design = VoteDesign(fit.votes, fit.n_items)
        matrix = design.gram(self.square * lead**2, mixed, float(self.square @ tie**2)).dense()
        votes = float(self.weight.sum() ** 2 / self.square.sum())
        fitted = len(fit.weights) - (len(np.unique(fit.part)) if fit.own_effects else fit.n_items)
        return matrix * ((votes - 1) / max(votes - fitted, 1.0))


# ---------------------------------------------------------------- the statements of a board


#: Up to this number of items, all pairs and scores have the exact form. Its time grows with the
#: fourth power of their number: 15 ms for the pairs of 20 items, 100 ms for those of 30.
_EXACT = 20
#: For more items, the exact form is for the first item and this number of its nearest rivals.
_RIVALS = 20


class Evidence:
    """What the votes of one query say of contrasts of its scores and effects.

    `scores` (n_items, n_parameters) is the map from parameters to scores, and `penalty` the part of
    the model that shrinks scores. Robust statements need the `judges`, or for a fit with a
    covariance that allows for judges, the number and degrees of freedom of these `few`.
    """

    def __init__(
        self,
        fit: ContestFit,
        scores: csr_array,
        level: float,
        penalty: float = 0.0,
        judges: Any = None,  # `Judges` or `OrderJudges`
        few: tuple[float, float] | None = None,
        profiles: Profiles | None = None,
    ) -> None:
        self.level, self.quantile = level, float(ndtri((1 + level) / 2))
        self.few, self.judges, self.profiles = few, None, profiles
        self._items: tuple[JudgeTerms, Floats] | None = None
        self.unit = np.ones(len(fit.weights))
        self.fit, self.scores = fit, scores
        self.small = fit.n_items <= _EXACT  # whether all statements have the exact form
        if fit.information is not None:  # of orders, or of other votes than these as well
            self.center, self.covariance, self.judges = fit.weights, fit.inverse(), judges
            return
        n, votes = fit.n_items, fit.votes
        of_x = slice(n, n + votes.X.shape[1])
        # covariates in units of their root mean squares, and weights in units of whole votes
        unit = self.unit[of_x] = np.sqrt(votes.total @ votes.X**2 / votes.total.sum())
        scale = float(votes.counts.sum() / votes.squares.sum())
        votes = votes._replace(counts=votes.counts * scale, X=votes.X / unit)
        ridge = np.full(len(fit.weights), _RIDGE)
        ridge[:n] = max(penalty, _RIDGE) if fit.own_effects else 0.0
        self.scores = csr_array(scores / self.unit)
        self.fit = fit = fit._replace(votes=votes, weights=fit.weights * self.unit, ridge=ridge)
        self.center, self.covariance = firth = fit_firth(fit)
        self.profiles = Profiles.of_votes(fit, firth)
        if judges is not None:
            own = judges.fit.votes
            own = own._replace(counts=own.counts * scale, X=own.X / unit)
            self.judges = judges._replace(
                fit=fit._replace(votes=own, weights=self.center),
                weight=judges.weight * scale,
                square=judges.square * scale**2,
            )

    def moments(self, contrasts: Floats) -> tuple[Floats, Floats, Floats]:
        """Return estimates and variances of contrasts, and covariances with the parameters."""
        pulls = contrasts @ self.covariance
        variance = (pulls * contrasts).sum(axis=1)
        return contrasts @ self.center, np.maximum(variance, 0.0), pulls

    def terms(self, pulls: Floats, variance: Floats) -> JudgeTerms | None:
        """Return what the judges say of contrasts with these covariances with the parameters."""
        if self.few is not None:  # the covariance is that of the judges
            number, degrees = (np.full(len(variance), one) for one in self.few)
            return JudgeTerms(variance, number, degrees, np.zeros(len(variance)))
        return None if self.judges is None else self.judges.terms(pulls)[0]

    def z(self, contrasts: Floats, exact: bool = True) -> Floats:
        """Return the normal quantile of the probability that each contrast is above 0."""
        psi, variance, pulls = self.moments(contrasts)
        if not exact or self.profiles is None:
            z = z_of_two(psi, variance)
        else:
            sign = np.where(psi < 0, -1.0, 1.0)
            z = sign * self.profiles.z(sign[:, None] * contrasts)
        terms = self.terms(pulls, variance)
        return z if terms is None else nearest_to_zero(z, terms.z(psi))

    def ends(self, contrasts: Floats, exact: bool = True) -> tuple[Floats, Floats]:
        """Return the interval of each contrast."""
        psi, variance, pulls = self.moments(contrasts)
        if exact and self.profiles is not None:
            ends = self.profiles.ends(contrasts, self.quantile)
        else:
            ends = ends_of_two(psi, variance, self.quantile)
        return self._widen(psi, self.terms(pulls, variance), ends)

    def _widen(
        self, psi: Floats, terms: JudgeTerms | None, ends: tuple[Floats, Floats]
    ) -> tuple[Floats, Floats]:
        """Extend intervals of the votes to those of the judges."""
        if terms is None:
            return ends
        width = terms.width(psi, self.level)
        return np.minimum(ends[0], psi - width), np.maximum(ends[1], psi + width)

    def errors(self, contrasts: Floats) -> tuple[Floats, Floats]:
        """Return the standard error of each contrast, and the effective number of its judges."""
        _, variance, pulls = self.moments(contrasts)
        terms = self.terms(pulls, variance)
        if terms is None:
            return np.sqrt(variance), np.zeros(len(contrasts))
        return np.sqrt(terms.variance), terms.number

    # ---------------------------------------------------------------- scores

    def of_items(self) -> tuple[JudgeTerms, Floats] | None:
        """Return the terms of the judges for each item, and the covariance of the scores."""
        if self._items is None and (self.judges is not None or self.few is not None):
            pulls = self.scores @ self.covariance
            if self.judges is not None:
                self._items = self.judges.terms(pulls, own=not self.small)
            else:
                covariance = (self.scores @ pulls.T).T
                terms = self.terms(pulls, np.diag(covariance))
                assert terms is not None
                self._items = terms, covariance
        return self._items

    def of_pairs(self, best: int, rivals: Ints) -> Floats:
        """Return z of the row item being above the column item, for all pairs of a component.

        `best` and its nearest rivals have the exact form in any case.
        """
        n, part = self.fit.n_items, self._parts()
        one, other = np.triu_indices(n, 1)
        if self.small:
            z, inside = np.zeros((n, n)), part[one] == part[other]
            one, other = one[inside], other[inside]
        else:
            z = self._of_many_pairs(part)
            other = rivals[np.argsort(z[best, rivals], kind="stable")[:_RIVALS]]
            one = np.full(len(other), best)
        if len(one):
            z[one, other] = self.z(self.scores[one].toarray() - self.scores[other].toarray())
            z[other, one] = -z[one, other]
        return z

    def _of_many_pairs(self, part: Ints) -> Floats:
        """Return z of all pairs from the variances of their differences."""
        pulls = self.scores @ self.covariance
        covariance, score = (self.scores @ pulls.T).T, self.scores @ self.center
        known = self.of_items()
        z, own = np.empty((len(part), len(part))), np.diag(covariance)
        for rows in row_blocks(len(part), len(part)):
            psi = score[rows, None] - score
            variance = np.maximum(own[rows, None] + own - 2 * covariance[rows], 0.0)
            z[rows] = z_of_two(psi, variance)
            if known is not None:
                z[rows] = nearest_to_zero(z[rows], known[0].of_pairs(known[1], rows).z(psi))
            z[rows][part[rows, None] != part] = 0.0
        np.fill_diagonal(z, 0.0)
        return z

    def of_scores(self, settled: Bools) -> tuple[Floats, Floats]:
        """Return the intervals of scores relative to the mean of the settled items of a component.

        An item is compared with the mean of the others: for two items, this is their difference.
        """
        part = self._parts()
        size = np.bincount(part, settled)[part]
        rest = np.maximum(size - settled, 1)
        share = np.where(settled, rest / np.maximum(size, 1), 1.0)
        # the sums of the settled items of each component, and of the others
        shape = int(part.max()) + 1, len(part)
        sums = csr_array((settled / 1.0, (part, np.arange(len(part)))), shape=shape)

        def against_others(scores: Any) -> Floats:
            total = np.asarray((sums @ scores)[part])
            return scores - (total - settled[:, None] * scores) / rest[:, None]

        if self.small:
            low, high = self.ends(against_others(self.scores.toarray()))
        else:
            pulls = against_others(self.scores @ self.covariance)
            variance = np.diag(against_others(self.scores @ pulls.T))
            psi = against_others((self.scores @ self.center)[:, None])[:, 0]
            terms, known = None, self.of_items()
            if known is not None:  # the numbers of judges are those of the items
                of_judges = np.diag(against_others(against_others(known[1]).T))
                terms = known[0]._replace(variance=of_judges)
            low, high = self._widen(psi, terms, ends_of_two(psi, variance, self.quantile))
        return low * share, high * share

    def _parts(self) -> Ints:
        """Return the component of each item; features of items connect all."""
        part = self.fit.part
        return part if self.fit.own_effects else np.zeros_like(part)


def nearest_to_zero(z: Floats, other: Floats) -> Floats:
    """Return the less certain of two statements; 0 if they contradict each other."""
    return np.where(z * other > 0, np.copysign(np.minimum(np.abs(z), np.abs(other)), z), 0.0)
