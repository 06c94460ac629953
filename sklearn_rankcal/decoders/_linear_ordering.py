"""Linear ordering: the preferences of one component come in, an order proved the best goes out.

Two exact methods, each strong where the other is weak:

* the linear ordering relaxation, a linear programme over x_ij = 1[i before j] whose cycle
  inequalities x_ij + x_jk + x_ki <= 2 are added as they are violated. Its bound often meets the
  order that came in, which is then proved;
* if a gap remains, dynamic programming over the sets of documents placed first, visiting only those
  whose bound, by the multipliers of the relaxation, leaves room for a better order. Where these are
  too many, the search branches on a pair and starts again on each side.

No bound is taken from a solver: any multipliers >= 0 of the inequalities give a Lagrangian bound,
summed up here, so that a solver's tolerances cost tightness and never validity.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_TOLERANCE = 1e-11  # of the loss: how close a bound must come, rounding being some 1e-13 of it
_VIOLATED = 1e-6  # the solver's own tolerance is 1e-7
_CUTS_PER_PAIR = 6  # a round adds a cut that is among the most violated of one of its pairs
_STALLED = 2  # rounds of little gain, after which the gap is left to dynamic programming
_GAINED = 0.05  # of the gap: a gain that is not little
_SAME = 1e-12  # of a weight: multiples of one unit may be this far from it
_MOST_UNITS = 1e6  # in a weight: with more of them any weights would be multiples of something
_SHARES = (0.5, 1.0)  # of the gap, one after the other: the number of sets grows exponentially
_MAX_SETS = 1 << 17  # of one size; more take longer than the two sides of a branch
_MAX_CANDIDATES = 1 << 20  # equal sets not yet merged: some 50 MB
_GRACE = 0.1  # seconds that the solver may take to notice that time is up
_BLOCK = 1 << 18  # cells handled at a time: temporaries stay in the processor's cache


class LinearOrdering(NamedTuple):
    """An order with what is known about it."""

    order: Ints  # (r,): document at each place
    lost: float  # weight of the preferences that the order violates
    lower_bound: float  # no order loses less; equal to `lost` if `optimal`
    optimal: bool  # proved: no order is better by more than 1e-11 of the loss
    n_iter: int  # linear programmes solved


def solve_linear_ordering(
    d: Floats, order: Ints, time_limit: float | None = None
) -> LinearOrdering:
    """Order the documents of one component so that the least weight of preferences is violated.

    Parameters
    ----------
    d : ndarray of shape (r, r)
        Antisymmetric; ``d[i, j] > 0``: i is preferred to j with this weight.
    order : ndarray of shape (r,)
        An order to start from. A good one saves time.
    time_limit : float, default=None
        Seconds after which the best order so far is returned, perhaps not `optimal`.

    Returns
    -------
    LinearOrdering

    References
    ----------
    Grötschel, M., Jünger, M., and Reinelt, G. (1984). A cutting plane algorithm for the linear
    ordering problem. Operations Research 32, 1195-1220.

    Examples
    --------
    >>> import numpy as np
    >>> d = np.array([[0.0, 3.0, -1.0], [-3.0, 0.0, 2.0], [1.0, -2.0, 0.0]])
    >>> found = solve_linear_ordering(d, np.array([2, 1, 0]))
    >>> found.order.tolist(), found.lost, found.optimal
    ([0, 1, 2], 1.0, True)
    """
    return _Search(d, order, time_limit).run()


class _Box(NamedTuple):
    """Orders with lo <= x <= hi, and multipliers of cycle inequalities, which bound their loss.

    An order loses ``bound`` plus its excess: the sum over pairs of reduced * x less its minimum
    over the box, plus the sum over cuts of multiplier * (2 - x_ab - x_bc - x_ca), all >= 0.
    """

    lo: Floats  # (n_pairs,); lo = hi where the pair is fixed
    hi: Floats
    cycles: Ints  # (n_cuts, 3): a, b, c of x_ab + x_bc + x_ca <= 2
    multipliers: Floats  # (n_cuts,)
    x: Floats  # (n_pairs,): solution of the programme
    reduced: Floats  # (n_pairs,)
    bound: float


class _Search:
    """Best-first search over boxes. Document i is the one at place i of the order that came in."""

    def __init__(self, d: Floats, order: Ints, time_limit: float | None) -> None:
        self.deadline = np.inf if time_limit is None else time.monotonic() + time_limit
        self.start, self.r = order, len(order)
        self.pairs = np.triu_indices(self.r, 1)
        self.index = np.zeros((self.r, self.r), dtype=np.int64)
        self.index[self.pairs] = self.index.T[self.pairs] = np.arange(len(self.pairs[0]))
        self.n_iter = 0
        self.best, self.lost = np.arange(self.r), np.inf
        # to weights of about 1, which solvers expect, by powers of 2, which are exact
        self.rescale(d[np.ix_(order, order)], 1.0)
        self.improve(self.best)
        # no better order contradicts a preference as heavy as the whole loss of this one. Weights
        # beyond it may as well be all alike; as they are they would drown the others in rounding
        limit = 4 * _power_of_2(self.lost)
        weights = np.abs(self.d[self.pairs])
        self.unit = _common_unit(weights[weights < limit] * self.scale) / self.scale
        self.rescale(np.clip(self.d, -limit, limit), self.scale)
        self.cost = -self.d[self.pairs]

    def rescale(self, d: Floats, scale: float) -> None:
        largest = _power_of_2(float(np.abs(d).max()))
        factor = largest * _power_of_2(float(np.abs(d / largest).mean()))
        self.d, self.scale = d / factor, scale * factor
        if np.isfinite(self.lost):
            self.lost, self.unit = self.lost / factor, self.unit / factor
        self.rounding = float(np.finfo(float).eps * np.abs(self.d).sum())

    def run(self) -> LinearOrdering:
        """Search until no box is left that may hold a better order, or time is up."""
        lo, hi = np.zeros_like(self.cost), np.ones_like(self.cost)
        no_cut = np.zeros((0, 3), dtype=np.int64), np.zeros(0)
        root = self.bounded(lo, hi, *no_cut, (self.cost < 0).astype(np.float64))
        boxes, n_boxes = [(root.bound, 0, root)], 1
        while boxes and boxes[0][0] < self.goal and not self.time_is_up():
            bound, _, box = heapq.heappop(boxes)
            box = self.relax(box)
            bound = max(bound, self.visit_sets(box))
            if bound < self.goal:
                for side in [box] if self.time_is_up() else self.branch(box):
                    heapq.heappush(boxes, (bound, n_boxes, side))
                    n_boxes += 1
        bound = boxes[0][0] if boxes else np.inf
        optimal = bool(bound >= self.goal)
        if self.unit and not optimal:
            bound = max(bound, self.unit * np.ceil((bound - self.tolerance) / self.unit))
        bound, lost = (self.lost if optimal else float(bound)) * self.scale, self.lost * self.scale
        return LinearOrdering(self.start[self.best], lost, bound, optimal, self.n_iter)

    @property
    def tolerance(self) -> float:
        return _TOLERANCE * self.lost

    @property
    def goal(self) -> float:
        """A box with this bound holds no better order: one would be better by `unit` at least."""
        return self.lost - max(self.tolerance, self.unit - self.tolerance)

    def time_is_up(self) -> bool:
        return time.monotonic() >= self.deadline

    def improve(self, order: Ints) -> None:
        """Apply the best insertion, found in O(r^2), until none gains; keep a better order."""
        for _ in range(4 * self.r):
            if self.time_is_up():
                break
            # column t: weight towards the documents in front of place t
            ahead = np.zeros((self.r, self.r + 1))
            np.cumsum(self.d[np.ix_(order, order)], axis=1, out=ahead[:, 1:])
            gains = ahead.diagonal()[:, None] - ahead
            place, target = divmod(int(gains.argmax()), self.r + 1)
            if gains[place, target] <= self.rounding:
                break
            rest = np.delete(order, place)
            order = np.insert(rest, target - (target > place), order[place])
        lost = float(np.maximum(np.tril(self.d[np.ix_(order, order)]), 0).sum())
        if lost < self.lost:
            self.best, self.lost = order, lost

    def relax(self, box: _Box) -> _Box:
        """Rounds of cuts, linear programme and fixing, as long as they gain."""
        cycles, x, n_stalled, solved = box.cycles, box.x, 0, False
        while n_stalled < _STALLED and not self.time_is_up():
            self.improve(np.argsort(-self.square(x).sum(axis=1), kind="stable"))
            added = self.violated(x)
            if box.bound >= self.goal or (len(added) == 0 and solved):
                break
            cycles = np.concatenate([cycles, added])
            answer = self.solve(cycles, box.lo, box.hi)
            if answer is None:
                break
            solved, (multipliers, x, tight) = True, answer
            new = self.bounded(box.lo, box.hi, cycles, multipliers, x)
            gain = new.bound - box.bound
            n_stalled = 0 if gain > _GAINED * (self.goal - box.bound) else n_stalled + 1
            if gain > self.tolerance:
                cycles = cycles[tight]  # not without a gain: the same cuts might come and go
            if gain >= 0:
                # one value of these leaves no room for a better order
                sure = (box.lo < box.hi) & (np.abs(new.reduced) > self.goal - new.bound)
                box = self.narrowed(new, sure, np.where(new.reduced < 0, 1.0, 0.0))
        return box

    def square(self, x: Floats) -> Floats:
        """x_ij of every ordered pair; 0 on the diagonal."""
        square = np.zeros((self.r, self.r))
        square[self.pairs] = x
        square.T[self.pairs] = 1 - x
        return square

    def violated(self, x: Floats) -> Ints:
        """Cycles a, b, c with x_ab + x_bc + x_ca > 2, the most violated of each pair; O(r^3)."""
        square = self.square(x)
        cycles, amounts = [np.zeros((0, 3), dtype=np.int64)], [np.zeros(0)]
        for a in range(self.r - 2):
            after = slice(a + 1, None)  # each cycle once: a is the smallest
            if self.time_is_up():
                break
            excess = square[a, after, None] + square[after, after] + square[None, after, a] - 2
            b, c = np.nonzero(excess > _VIOLATED)
            most = _CUTS_PER_PAIR * self.r  # more than can be used, and O(r^2) in all
            if len(b) > most:
                heaviest = np.argpartition(-excess[b, c], most)[:most]
                b, c = b[np.sort(heaviest)], c[np.sort(heaviest)]
            amounts.append(excess[b, c])
            cycles.append(np.stack([np.full_like(b, a), b + a + 1, c + a + 1], axis=1))
        found = np.concatenate(cycles)[np.argsort(-np.concatenate(amounts), kind="stable")]
        # a cut's place among those of each of its pairs
        pairs = self.arcs(found)[0].ravel()
        by_pair = np.argsort(pairs, kind="stable")
        place = np.empty_like(pairs)
        place[by_pair] = np.arange(len(pairs)) - np.searchsorted(pairs[by_pair], pairs[by_pair])
        return found[place.reshape(-1, 3).min(axis=1) < _CUTS_PER_PAIR]

    def arcs(self, cycles: Ints) -> tuple[Ints, Floats]:
        """Pair of each x of a cut, and its sign: -1 where it is 1 - x of the pair. (n_cuts, 3)."""
        heads = cycles[:, [1, 2, 0]]
        return self.index[cycles, heads], np.where(cycles < heads, 1.0, -1.0)

    def solve(self, cycles: Ints, lo: Floats, hi: Floats) -> tuple[Floats, Floats, Ints] | None:
        """Multipliers, solution and which cuts are tight; None where the solver has no answer."""
        pairs, signs = self.arcs(cycles)
        free = (lo < hi)[pairs]
        rows = np.flatnonzero(free.any(axis=1))
        pairs, signs, free = pairs[rows], signs[rows], free[rows]
        used, column = np.unique(pairs[free], return_inverse=True)
        if len(used) == 0:
            return None
        rhs = 2 - (signs < 0).sum(axis=1) - np.where(free, 0, signs * lo[pairs]).sum(axis=1)
        matrix = csr_array((signs[free], (np.nonzero(free)[0], column)), (len(rows), len(used)))
        left = {"time_limit": max(self.deadline - time.monotonic(), 0.01)}
        result = _in_thread(
            lambda: linprog(
                self.cost[used], matrix, rhs, None, None, (0, 1), "highs-ds", options=left
            ),
            lambda: time.monotonic() >= self.deadline + _GRACE,
        )
        self.n_iter += 1
        if result is None or result.status != 0:
            return None
        x = np.where(self.cost < 0, hi, lo)
        x[used] = np.clip(result.x, 0, 1)
        multipliers = np.zeros(len(cycles))
        multipliers[rows] = np.maximum(-result.ineqlin.marginals, 0)
        return multipliers, x, rows[(result.slack < _VIOLATED) | (multipliers[rows] > 0)]

    def bounded(self, lo: Floats, hi: Floats, cycles: Ints, multipliers: Floats, x: Floats) -> _Box:
        """The box with its Lagrangian bound, valid for any multipliers >= 0."""
        pairs, signs = self.arcs(cycles)
        weights = (signs * multipliers[:, None]).ravel()
        added = np.bincount(pairs.ravel(), weights, minlength=len(self.cost))
        reduced = self.cost + added
        # the smaller of what x = 0 and x = 1 lose, each without the weight that it keeps
        least = np.where(hi * reduced < lo * reduced, hi, lo)
        losses = np.where(least == 1, np.maximum(self.cost, 0) + added, np.maximum(-self.cost, 0))
        bound = losses.sum() - multipliers @ (2 - (signs < 0).sum(axis=1))
        return _Box(lo, hi, cycles, multipliers, np.clip(x, lo, hi), reduced, float(bound))

    def branch(self, box: _Box) -> list[_Box]:
        """The two sides of the pair that the programme leaves most open, weighted by its cost."""
        doubt = np.minimum(box.x, 1 - box.x) * (1 + np.abs(self.cost))
        pair = np.argmax(np.where(box.lo < box.hi, doubt, -1))
        here = np.arange(len(doubt)) == pair
        return [self.narrowed(box, here, np.full_like(doubt, value)) for value in (0, 1)]

    def narrowed(self, box: _Box, where: NDArray[np.bool_], value: Floats) -> _Box:
        """Fix pairs, and what follows by transitivity; the bound is inf if no order is left."""
        before = np.zeros((self.r, self.r))
        before[self.pairs] = np.where(where, value, box.lo)
        before.T[self.pairs] = 1 - np.where(where, value, box.hi)
        implied = np.minimum(before + before @ before, 1)
        while not np.array_equal(implied, before):
            before, implied = implied, np.minimum(implied + implied @ implied, 1)
        if before.diagonal().any():
            return box._replace(bound=np.inf)
        lo, hi = before[self.pairs], 1 - before.T[self.pairs]
        return self.bounded(lo, hi, box.cycles, box.multipliers, box.x)

    def visit_sets(self, box: _Box) -> float:
        """Look for a better order in the box; return the bound proved, inf if nothing is left."""
        bound, room = box.bound, self.goal - box.bound
        for share in _SHARES:
            found = self.visit_sets_within(box, share * room) if room > 0 else True
            if found is None:
                return bound
            if found:
                break
            bound = box.bound + share * room
        return np.inf

    def visit_sets_within(self, box: _Box, budget: float) -> bool | None:
        """Whether an order of the box has an excess up to `budget`; None if given up.

        The excess builds up as documents are placed. Placing v after those of a set S adds that of
        x_vk = 1 for each k that is left, and the multiplier of each cut v, s, k with s in S and k
        left: of its three x, the order s, v, k has only x_sk = 1. This depends on the set alone, so
        the best way to each set is enough; the best order found, if any, is the best of the box.
        """
        least = np.minimum(box.reduced * box.lo, box.reduced * box.hi)
        extra = np.zeros((self.r, self.r))  # of v before k; more than the budget outside the box
        extra[self.pairs] = np.where(box.hi == 1, box.reduced - least, 2 * budget + 1)
        extra.T[self.pairs] = np.where(box.lo == 0, -least, 2 * budget + 1)
        active = box.multipliers > 0
        multipliers, cycles = box.multipliers[active], box.cycles[active]
        v, s, k = (np.roll(cycles, -shift, axis=1).T.ravel() for shift in range(3))
        split, column = np.unique(s * self.r + k, return_inverse=True)
        s, k = np.divmod(split, self.r)
        cuts = csr_array((np.tile(multipliers, 3), (v, column)), (self.r, len(split)))
        documents = np.arange(self.r)
        bits = np.zeros((-(-self.r // 63), self.r), dtype=np.int64)
        bits[documents // 63, documents] = 1 << (documents % 63)

        sets, excess = np.zeros((self.r, 1), dtype=bool), np.zeros(1)  # a column is a set
        keys = np.zeros((len(bits), 1), dtype=np.int64)
        block = max(_BLOCK // (len(split) + self.r), 1)
        steps: list[tuple[Ints, Ints]] = []
        while len(steps) < self.r:
            grown: list[tuple[Ints, Ints, Floats]] = []
            for first in range(0, len(excess), block):
                here = sets[:, first : first + block]
                total = extra @ ~here + cuts @ (here[s] & ~here[k]).astype(np.float64)
                total += excess[first : first + block]
                last, source = np.nonzero(~here & (total <= budget))
                grown.append((source + first, last, total[last, source]))
                if sum(len(g[0]) for g in grown) > _MAX_CANDIDATES or self.time_is_up():
                    return None
            source, last, excess = (np.concatenate(part) for part in zip(*grown, strict=True))
            keys = keys[:, source] | bits[:, last]
            by_set = np.lexsort((excess, *keys))
            is_new = (np.diff(keys[:, by_set], axis=1, prepend=-1) != 0).any(axis=0)
            best = by_set[is_new]
            if not 0 < len(best) <= _MAX_SETS:
                return None if len(best) else False
            source, last, excess, keys = source[best], last[best], excess[best], keys[:, best]
            sets = sets[:, source]
            sets[last, np.arange(len(best))] = True
            steps.append((source, last))
        order, state = np.zeros(self.r, dtype=np.int64), 0
        for place in reversed(range(self.r)):
            source, last = steps[place]
            order[place], state = last[state], source[state]
        self.improve(order)
        return True


def _in_thread(call: Callable[[], Any], give_up: Callable[[], bool]) -> Any:
    """The result of a call that sees neither Ctrl-C nor the clock; None if given up.

    HiGHS takes minutes for a large programme and looks at no signal. In a thread of its own it
    leaves this one free to raise KeyboardInterrupt, or to go on when time is up; the thread then
    ends by itself. SciPy before 1.15 holds the interpreter's lock meanwhile: there it has to wait.
    """
    answer: list[Any] = []
    failure: list[BaseException] = []

    def work() -> None:
        try:
            answer.append(call())
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=copy_context().run, args=(work,), daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.05)  # not without an end: on Windows no signal would interrupt it
        if thread.is_alive() and give_up():
            return None
    if failure:
        raise failure[0]
    return answer[0]


def _power_of_2(value: float) -> float:
    """The largest power of 2 up to the value, 1 for 0."""
    return float(2.0 ** np.floor(np.log2(value))) if value > 0 else 1.0


def _common_unit(weights: Floats) -> float:
    """The largest unit found of which all weights are multiples, up to rounding; 0 for none.

    Integers, scaled by a power of 2 or not, have a greatest common divisor. Decimals such as 0.2
    and 0.3, and averages such as 1 / 3 and 1 / 2, are not multiples of anything in binary: for
    them Euclid's algorithm takes a remainder of 1e-12 of the weight for none.
    """
    distinct = np.unique(weights[weights > 0])
    if len(distinct) == 0:
        return 0.0
    mantissa, exponent = np.frexp(distinct)
    digits = np.ldexp(mantissa, 53).astype(np.int64)
    last_bit = int((exponent - 53 + np.log2(digits & -digits).astype(np.int64)).min())
    binary = 0.0
    if int(exponent.max()) - last_bit <= 62:
        shifts = exponent.astype(np.int64) - 53 - last_bit
        left, right = np.maximum(shifts, 0), np.maximum(-shifts, 0)
        counts = (digits >> right) << left
        binary = float(np.ldexp(float(np.gcd.reduce(counts)), last_bit))
    if binary and distinct[-1] <= _MOST_UNITS * binary:
        return binary
    unit = distinct[0]
    while distinct[-1] <= _MOST_UNITS * unit:
        rest = np.abs(distinct - unit * np.round(distinct / unit))
        rest = rest[rest > _SAME * distinct]
        if len(rest) == 0:
            # from the sum: the least weight's own rounding would be multiplied
            return float(distinct.sum() / np.round(distinct / unit).sum())
        unit = rest.min()  # at most half of what it was
    return binary
