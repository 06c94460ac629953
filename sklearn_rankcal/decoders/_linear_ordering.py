"""Linear ordering: find the optimal order of one strongly connected component, with a proof.

The search is a branch and bound that combines two exact methods:

* The linear ordering relaxation is a linear program over x_ij = 1[i before j]. Its inequalities
  x_ij + x_jk + x_ki <= 2 exclude cycles of three edges and are added (as cuts) when they are
  violated. The bound of the program often equals the loss of the order that the search started
  from, which is then proved optimal.
* If a gap remains, dynamic programming over the sets of documents placed first looks for a better
  order. It visits only sets for which the multipliers of the relaxation leave room for one. If
  there are too many of these sets, the search branches on a pair of documents and continues on
  each side. Branching alone takes 3 to 12 times as long for 30 documents with uniform weights.

No bound is taken from a solver. Any multipliers >= 0 of the inequalities give a Lagrangian bound,
which is computed here. Tolerances of a solver can make bounds weaker but not wrong.
"""

from __future__ import annotations

import atexit
import heapq
import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, hstack

from sklearn_rankcal.utils._memory import CACHE_BYTES, rows_per_block
from sklearn_rankcal.utils._numbers import Bools, Floats, Ints

#: How close a bound must come to the loss, as a fraction of it. Rounding errors are about 1e-13.
_TOLERANCE = 1e-11
#: A cycle inequality is violated if it is exceeded by more. The solver's tolerance is 1e-7.
_VIOLATED = 1e-6
#: A round adds a cut if it is among this many most violated cuts of one of its three pairs.
_CUTS_PER_PAIR = 6
#: A program with more cuts is large: its dual is solved, and fewer cuts are added. Up to 8,200
#: cuts, the dual mostly took 1.0 to 1.4 times as long as the primal; from 10,000 on .5 to .9 times.
_MANY_CUTS = 9000
#: How many cuts of one pair a round adds to a large program.
_TIGHT_CUTS_PER_PAIR = 4
#: After this many rounds of little gain, the gap is left to dynamic programming.
_STALLED = 2
#: A gain of at least this fraction of the gap is not little.
_GAINED = 0.05
#: Fractions of the gap that dynamic programming tries in turn. The number of sets that it visits
#: grows exponentially with the fraction.
_SHARES = (0.5, 1.0)
#: Seconds that the solver may take to notice that the time is up.
_GRACE = 0.1
#: A weight counts as a multiple of a unit if it differs by at most this fraction of itself.
_RELATIVE_TOLERANCE = 1e-12
#: Largest number of units in a weight. With more, any weights would be multiples of something.
_MAX_UNITS = 1e6
#: Largest number of sets of one size. More sets take longer than the two sides of a branch.
_MAX_SETS = 1 << 17
#: Largest number of sets before equal ones are merged. They take about 50 MB.
_MAX_CANDIDATES = 1 << 20
#: Name of the threads that solve linear programs.
_THREAD = "sklearn_rankcal solver"
#: Seconds that the interpreter waits at exit for abandoned calls. A solver with a time limit ends
#: at once. An interrupted solver without a limit may take minutes.
_SECONDS_AT_EXIT = 5.0


class LinearOrdering(NamedTuple):
    """An order and a bound on how far it is from the optimum."""

    order: Ints  # (r,): the document at each place
    lost: float  # weight of the preferences that the order contradicts
    lower_bound: float  # no order contradicts less weight; equal to `lost` if `optimal`
    optimal: bool  # whether it is proved that no order is better by more than 1e-11 of `lost`
    n_iter: int  # number of linear programs solved


def solve_linear_ordering(
    d: Floats, order: Ints, time_limit: float | None = None
) -> LinearOrdering:
    """Find the order of one component that contradicts the least weight of preferences.

    d (r, r) is antisymmetric: if d[i, j] > 0, document i is preferred to j with this weight. A good
    start `order` saves time. After `time_limit` seconds, return the best order so far.
    The cuts are due to Grötschel, Jünger and Reinelt (1984), Operations Research 32.
    """
    return _Search(d, order, time_limit).run()


class _Subproblem(NamedTuple):
    """The orders with lo <= x <= hi, and multipliers of cycle inequalities that bound their loss.

    An order of the subproblem loses exactly ``bound`` plus its excess. The excess is the sum over
    pairs of (reduced * x minus the minimum of this product over lo <= x <= hi), plus the sum over
    cuts of multiplier * (2 - x_ab - x_bc - x_ca). All of these terms are >= 0.
    """

    lo: Floats  # (n_pairs,); lo = hi where the pair is fixed
    hi: Floats
    cycles: Ints  # (n_cuts, 3): a, b, c of x_ab + x_bc + x_ca <= 2
    multipliers: Floats  # (n_cuts,)
    x: Floats  # (n_pairs,): solution of the linear program
    reduced: Floats  # (n_pairs,): cost of x_ij plus what the multipliers add to it
    bound: float


def _solve_program(
    cost: Floats, matrix: csr_array, rhs: Floats, time_limit: float
) -> tuple[Floats, Floats] | None:
    """Minimise cost @ x, where matrix @ x <= rhs and 0 <= x <= 1; return x and the multipliers.

    With many cuts, the solver gets the dual program. Its basis has one row per pair. With
    y = 1 - x, the dual is to minimise slack @ multipliers + sum(surplus) over multipliers >= 0 and
    surplus >= 0, where slack = rhs - matrix @ 1 and matrix.T @ multipliers - surplus <= -cost. At
    0, only the pairs that the start order contradicts violate this, and the solver starts close to
    its answer.
    """
    n_cuts, n_pairs = matrix.shape
    options = {"time_limit": time_limit}
    if n_cuts <= _MANY_CUTS:
        result = linprog(cost, matrix, rhs, None, None, (0, 1), "highs-ds", options=options)
        return (result.x, -result.ineqlin.marginals) if result.status == 0 else None
    costs = np.concatenate([rhs - matrix.sum(axis=1), np.ones(n_pairs)])
    dual = hstack([matrix.T, -eye_array(n_pairs)], format="csr")
    result = linprog(costs, dual, -cost, None, None, (0, None), "highs-ds", options=options)
    return (1 + result.ineqlin.marginals, result.x[:n_cuts]) if result.status == 0 else None


class _Search:
    """Best-first branch and bound. Here, document i is the one at place i of the start order."""

    def __init__(self, d: Floats, order: Ints, time_limit: float | None) -> None:
        self.deadline = np.inf if time_limit is None else time.monotonic() + time_limit
        self.start, self.r = order, len(order)
        self.pairs = np.triu_indices(self.r, 1)
        self.index = np.zeros((self.r, self.r), dtype=np.int64)
        self.index[self.pairs] = self.index.T[self.pairs] = np.arange(len(self.pairs[0]))
        self.n_iter = 0
        self.best, self.lost, self.d = np.arange(self.r), np.inf, d[np.ix_(order, order)]
        self.improve(self.best)
        # No better order contradicts a preference as heavy as the whole loss of this one, so larger
        # weights can be made equal. Otherwise, light preferences would be smaller than the rounding
        # errors of heavy ones.
        limit = 4 * power_of_2(self.lost)
        weights = np.abs(self.d[self.pairs])
        # Solvers expect weights of about 1. Division by a power of 2 is exact.
        self.scale = power_of_2(float(np.abs(self.d).clip(max=limit).mean()))
        self.unit = _common_unit(weights[weights < limit]) / self.scale
        self.d, self.lost = np.clip(self.d, -limit, limit) / self.scale, self.lost / self.scale
        self.cost = -self.d[self.pairs]

    def run(self) -> LinearOrdering:
        """Search until no subproblem can hold a better order, or the time is up."""
        lo, hi = np.zeros_like(self.cost), np.ones_like(self.cost)
        no_cut = np.zeros((0, 3), dtype=np.int64), np.zeros(0)
        root = self.with_bound(lo, hi, *no_cut, (self.cost < 0).astype(np.float64))
        # Invariant: every order better than self.best is in an open subproblem. The smallest of
        # their bounds is therefore a lower bound for all orders.
        open_subproblems, n_created = [(root.bound, 0, root)], 1
        while (
            open_subproblems
            and open_subproblems[0][0] < self.pruning_bound
            and not self.time_is_up()
        ):
            bound, _, node = heapq.heappop(open_subproblems)
            node = self.tighten(node)
            bound = max(bound, self.search_subsets(node))
            if bound < self.pruning_bound:
                for side in [node] if self.time_is_up() else self.branch(node):
                    heapq.heappush(open_subproblems, (bound, n_created, side))
                    n_created += 1
        bound = open_subproblems[0][0] if open_subproblems else np.inf
        optimal = bool(bound >= self.pruning_bound)
        # The loss of every order is a multiple of the unit, so the bound can be rounded up to one.
        if self.unit and not optimal:
            bound = max(bound, self.unit * np.ceil((bound - self.tolerance) / self.unit))
        bound, lost = (self.lost if optimal else float(bound)) * self.scale, self.lost * self.scale
        return LinearOrdering(self.start[self.best], lost, bound, optimal, self.n_iter)

    @property
    def tolerance(self) -> float:
        """How close a bound must come to the loss of the best order to prove it optimal."""
        return _TOLERANCE * self.lost

    @property
    def pruning_bound(self) -> float:
        """A subproblem with this bound holds no better order.

        A better order would lose at least `unit` less than the best one so far.
        """
        return self.lost - max(self.tolerance, self.unit - self.tolerance)

    def time_is_up(self) -> bool:
        return time.monotonic() >= self.deadline

    def improve(self, order: Ints) -> None:
        """Repeat the best insertion, found in O(r^2), until none gains; keep a better order."""
        rounding = float(np.finfo(float).eps * np.abs(self.d).sum())
        for _ in range(4 * self.r):
            if self.time_is_up():
                break
            # ahead[p, t]: sum of d between the document at place p and those before place t.
            # Moving the document at place p in front of place t gains ahead[p, p] - ahead[p, t].
            ahead = np.zeros((self.r, self.r + 1))
            np.cumsum(self.d[np.ix_(order, order)], axis=1, out=ahead[:, 1:])
            gains = ahead.diagonal()[:, None] - ahead
            place, target = divmod(int(gains.argmax()), self.r + 1)
            if gains[place, target] <= rounding:
                break
            rest = np.delete(order, place)
            order = np.insert(rest, target - (target > place), order[place])
        lost = float(np.maximum(np.tril(self.d[np.ix_(order, order)]), 0).sum())
        if lost < self.lost:
            self.best, self.lost = order, lost

    def tighten(self, node: _Subproblem) -> _Subproblem:
        """Raise the bound by rounds of cuts, linear program and fixing of pairs.

        Ends when no inequality is violated, the bound reaches the pruning bound, the gains become
        small, or the time is up.
        """
        cycles, x, n_stalled, solved = node.cycles, node.x, 0, False
        while n_stalled < _STALLED and not self.time_is_up():
            # 1. Turn the solution into an order by its row sums, and find violated inequalities.
            self.improve(np.argsort(-self.as_matrix(x).sum(axis=1), kind="stable"))
            added = self.violated_cycles(x)
            if n_stalled == 0 and len(cycles) + len(added) > _MANY_CUTS:
                tight_cycles = self.violated_cycles(x, only_tight=True)
                added = tight_cycles if len(tight_cycles) else added
            if node.bound >= self.pruning_bound or (len(added) == 0 and solved):
                break
            # 2. Solve the linear program with them. Its multipliers give a new bound.
            cycles = np.concatenate([cycles, added])
            answer = self.solve(cycles, node.lo, node.hi)
            if answer is None:
                break
            solved, (multipliers, x, tight) = True, answer
            new = self.with_bound(node.lo, node.hi, cycles, multipliers, x)
            gain = new.bound - node.bound
            n_stalled = 0 if gain > _GAINED * (self.pruning_bound - node.bound) else n_stalled + 1
            # 3. Drop the cuts that are not tight, but only after a gain: otherwise the same cuts
            # could come and go for ever.
            if gain > self.tolerance:
                cycles = cycles[tight]
            # 4. Fix the pairs for which one of the two values raises the bound beyond the pruning
            # bound (reduced cost fixing).
            if gain >= 0:
                sure = (node.lo < node.hi) & (np.abs(new.reduced) > self.pruning_bound - new.bound)
                node = self.with_fixed_pairs(new, sure, np.where(new.reduced < 0, 1.0, 0.0))
        return node

    def as_matrix(self, x: Floats) -> Floats:
        """The matrix of x_ij for every ordered pair; 0 on the diagonal."""
        square = np.zeros((self.r, self.r))
        square[self.pairs] = x
        square.T[self.pairs] = 1 - x
        return square

    def violated_cycles(self, x: Floats, only_tight: bool = False) -> Ints:
        """Cycles a, b, c with x_ab + x_bc + x_ca > 2: the most violated ones of each pair.

        With `only_tight`, return only cycles with two edges in the best order, and fewer per pair.
        If the relaxation proves this order optimal, the multipliers of all other cycles are 0. This
        solves a large program faster, but a small one takes more rounds. Takes O(r^3) time.
        """
        per_pair = _TIGHT_CUTS_PER_PAIR if only_tight else _CUTS_PER_PAIR
        square = self.as_matrix(x)
        place = np.argsort(self.best)
        kept = (place[:, None] < place).astype(np.int64)
        cycles, amounts = [np.zeros((0, 3), dtype=np.int64)], [np.zeros(0)]
        for a in range(self.r - 2):
            after = slice(a + 1, None)  # a is the smallest document, so each cycle is found once
            if self.time_is_up():
                break
            excess = square[a, after, None] + square[after, after] + square[None, after, a] - 2
            violated = excess > _VIOLATED
            if only_tight:
                violated &= kept[a, after, None] + kept[after, after] + kept[None, after, a] == 2
            b, c = np.nonzero(violated)
            most = per_pair * self.r  # more cannot be used; this keeps O(r^2) cycles in all
            if len(b) > most:
                heaviest = np.argpartition(-excess[b, c], most)[:most]
                b, c = b[np.sort(heaviest)], c[np.sort(heaviest)]
            amounts.append(excess[b, c])
            cycles.append(np.stack([np.full_like(b, a), b + a + 1, c + a + 1], axis=1))
        found = np.concatenate(cycles)[np.argsort(-np.concatenate(amounts), kind="stable")]
        # The rank of each cut among the cuts of each of its three pairs, the most violated first.
        pairs = self.pairs_and_signs(found)[0].ravel()
        by_pair = np.argsort(pairs, kind="stable")
        place = np.empty_like(pairs)
        place[by_pair] = np.arange(len(pairs)) - np.searchsorted(pairs[by_pair], pairs[by_pair])
        return found[place.reshape(-1, 3).min(axis=1) < per_pair]

    def pairs_and_signs(self, cycles: Ints) -> tuple[Ints, Floats]:
        """The pair of each x of a cut and its sign, two arrays (n_cuts, 3).

        Variables exist for pairs i < j only. The sign is -1 where x_ab stands for 1 - x_ba.
        """
        heads = cycles[:, [1, 2, 0]]
        return self.index[cycles, heads], np.where(cycles < heads, 1.0, -1.0)

    def solve(self, cycles: Ints, lo: Floats, hi: Floats) -> tuple[Floats, Floats, Ints] | None:
        """Solve the linear program; return multipliers, solution and the tight cuts, or None.

        Pairs with lo = hi are constants, so they move to the right-hand side, and cuts without a
        free pair are left out. None means that the solver has found no answer in time.
        """
        pairs, signs = self.pairs_and_signs(cycles)
        free = (lo < hi)[pairs]
        rows = np.flatnonzero(free.any(axis=1))
        pairs, signs, free = pairs[rows], signs[rows], free[rows]
        used, column = np.unique(pairs[free], return_inverse=True)
        if len(used) == 0:
            return None
        rhs = 2 - (signs < 0).sum(axis=1) - np.where(free, 0, signs * lo[pairs]).sum(axis=1)
        matrix = csr_array((signs[free], (np.nonzero(free)[0], column)), (len(rows), len(used)))
        left = max(self.deadline - time.monotonic(), 0.01)
        answer = _call_in_thread(
            lambda: _solve_program(self.cost[used], matrix, rhs, left),
            lambda: time.monotonic() >= self.deadline + _GRACE,
        )
        self.n_iter += 1
        if answer is None:
            return None
        x = np.where(self.cost < 0, hi, lo)
        x[used] = np.clip(answer[0], 0, 1)
        multipliers = np.zeros(len(cycles))
        multipliers[rows] = np.maximum(answer[1], 0)
        slack = rhs - matrix @ x[used]
        return multipliers, x, rows[(slack < _VIOLATED) | (multipliers[rows] > 0)]

    def with_bound(
        self, lo: Floats, hi: Floats, cycles: Ints, multipliers: Floats, x: Floats
    ) -> _Subproblem:
        """Make a subproblem with its Lagrangian bound, which is valid for any multipliers >= 0.

        For x within the bounds, the loss is at least
        sum over pairs of loss(x) + sum over cuts of multiplier * (x_ab + x_bc + x_ca - 2),
        and the minimum over x is taken for each pair by itself.
        """
        pairs, signs = self.pairs_and_signs(cycles)
        weights = (signs * multipliers[:, None]).ravel()
        added = np.bincount(pairs.ravel(), weights, minlength=len(self.cost))
        reduced = self.cost + added
        # The minimum of each pair: x = 0 loses max(-cost, 0), x = 1 loses max(cost, 0) + added.
        least = np.where(hi * reduced < lo * reduced, hi, lo)
        losses = np.where(least == 1, np.maximum(self.cost, 0) + added, np.maximum(-self.cost, 0))
        bound = losses.sum() - multipliers @ (2 - (signs < 0).sum(axis=1))
        return _Subproblem(lo, hi, cycles, multipliers, np.clip(x, lo, hi), reduced, float(bound))

    def branch(self, node: _Subproblem) -> list[_Subproblem]:
        """Fix the pair with x farthest from 0 and 1, weighted by its cost, to either value."""
        doubt = np.minimum(node.x, 1 - node.x) * (1 + np.abs(self.cost))
        pair = np.argmax(np.where(node.lo < node.hi, doubt, -1))
        here = np.arange(len(doubt)) == pair
        return [self.with_fixed_pairs(node, here, np.full_like(doubt, value)) for value in (0, 1)]

    def with_fixed_pairs(self, node: _Subproblem, where: Bools, value: Floats) -> _Subproblem:
        """Fix pairs and what follows by transitivity; the bound is inf if no order is left."""
        # before[i, j] = 1 if i is before j in every order of the subproblem; squaring the relation
        # until it does not change gives its transitive closure.
        before = np.zeros((self.r, self.r))
        before[self.pairs] = np.where(where, value, node.lo)
        before.T[self.pairs] = 1 - np.where(where, value, node.hi)
        implied = np.minimum(before + before @ before, 1)
        while not np.array_equal(implied, before):
            before, implied = implied, np.minimum(implied + implied @ implied, 1)
        if before.diagonal().any():
            return node._replace(bound=np.inf)
        lo, hi = before[self.pairs], 1 - before.T[self.pairs]
        return self.with_bound(lo, hi, node.cycles, node.multipliers, node.x)

    def search_subsets(self, node: _Subproblem) -> float:
        """Look for a better order in the subproblem by dynamic programming; return a new bound.

        The bound is inf if the best order of the subproblem has been found or there is none.
        """
        bound, room = node.bound, self.pruning_bound - node.bound
        if room <= 0:
            return np.inf
        # excess[v, k]: the excess of x_vk = 1, or more than any budget if v may not precede k.
        least = np.minimum(node.reduced * node.lo, node.reduced * node.hi)
        excess = np.zeros((self.r, self.r))
        excess[self.pairs] = np.where(node.hi == 1, node.reduced - least, 2 * room + 1)
        excess.T[self.pairs] = np.where(node.lo == 0, -least, 2 * room + 1)
        for share in _SHARES:
            complete, order = _search_subsets(
                excess, node.cycles, node.multipliers, share * room, self.time_is_up
            )
            if not complete:
                return bound
            if order is not None:
                self.improve(order)
                break
            bound = node.bound + share * room
        return np.inf


# ------------------------------------------------ units of weights


def power_of_2(value: float) -> float:
    """The largest power of 2 that is not above the value; 1 if the value is 0."""
    return float(2.0 ** np.floor(np.log2(value))) if value > 0 else 1.0


def _common_unit(weights: Floats) -> float:
    """Return a unit such that all weights are multiples of it, up to rounding; 0 if none is found.

    Integers, possibly scaled by a power of 2, have a greatest common divisor. Decimals such as 0.2
    and 0.3, and averages such as 1 / 3 and 1 / 2, have no useful common divisor as binary floats.
    For them Euclid's algorithm runs on the floats and takes a remainder of at most 1e-12 of the
    weight for 0.
    """
    distinct = np.unique(weights[weights > 0])
    if len(distinct) == 0:
        return 0.0
    # Every float is an integer of 53 bits times a power of 2. last_bit is the exponent of the
    # lowest bit that is 1 in any weight. In units of it all weights are integers.
    mantissa, exponent = np.frexp(distinct)
    digits = np.ldexp(mantissa, 53).astype(np.int64)
    last_bit = int((exponent - 53 + np.log2(digits & -digits).astype(np.int64)).min())
    binary = 0.0
    if int(exponent.max()) - last_bit <= 62:
        shifts = exponent.astype(np.int64) - 53 - last_bit
        left, right = np.maximum(shifts, 0), np.maximum(-shifts, 0)
        counts = (digits >> right) << left
        binary = float(np.ldexp(float(np.gcd.reduce(counts)), last_bit))
    if binary and distinct[-1] <= _MAX_UNITS * binary:
        return binary
    # Euclid's algorithm: replace the unit by the smallest remainder that is not rounding error.
    unit = distinct[0]
    while distinct[-1] <= _MAX_UNITS * unit:
        rest = np.abs(distinct - unit * np.round(distinct / unit))
        rest = rest[rest > _RELATIVE_TOLERANCE * distinct]
        if len(rest) == 0:
            # Take the unit from the sum of the weights, because the rounding error of the smallest
            # weight would be multiplied.
            return float(distinct.sum() / np.round(distinct / unit).sum())
        unit = rest.min()  # at most half of what it was
    return binary


# ------------------------------------------------ dynamic programming over sets


def _search_subsets(
    excess: Floats,
    cycles: Ints,
    multipliers: Floats,
    budget: float,
    give_up: Callable[[], bool],
) -> tuple[bool, Ints | None]:
    """Find the order of least excess, if its excess is at most `budget`.

    The excess of an order is the sum of ``excess[i, j]`` over the documents i before j, plus the
    sum over `cycles` a, b, c (n_cuts, 3) of their multiplier * (2 - x_ab - x_bc - x_ca), where x_ij
    = 1 if i is before j and 0 otherwise. All terms are >= 0.

    Placing document v after the documents of a set S adds ``excess[v, k]`` for each document k that
    is left, and the multiplier of each cut v, s, k with s in S and k left, because of its three
    variables the order s, v, k has only x_sk = 1. Both depend on the set S alone. It is therefore
    enough to know the smallest excess of each set (Held and Karp, 1962).

    Return whether the search is complete, and the order (r,), or None if every order exceeds the
    budget. It is not complete if there are too many sets or ``give_up()`` is true.
    """
    r = len(excess)
    active = multipliers > 0
    multipliers, cycles = multipliers[active], cycles[active]
    v, s, k = (np.roll(cycles, -shift, axis=1).T.ravel() for shift in range(3))
    # cuts[v, c]: sum of the multipliers of the cuts v, s, k, where (s, k) is the c-th pair of
    # `split`. They count when v is placed if s is in S and k is left.
    split, column = np.unique(s * r + k, return_inverse=True)
    s, k = np.divmod(split, r)
    cuts = csr_array((np.tile(multipliers, 3), (v, column)), (r, len(split)))
    # keys: each set as integers of 63 bits, to compare sets with.
    documents = np.arange(r)
    bits = np.zeros((-(-r // 63), r), dtype=np.int64)
    bits[documents // 63, documents] = 1 << (documents % 63)

    sets, totals = np.zeros((r, 1), dtype=bool), np.zeros(1)  # a column for each set
    keys = np.zeros((len(bits), 1), dtype=np.int64)
    block = rows_per_block(8 * (len(split) + r), 2 * CACHE_BYTES)
    steps: list[tuple[Ints, Ints]] = []
    # One step for each size of sets: extend every set by every document within the budget, then
    # keep the smallest excess of equal sets.
    while len(steps) < r:
        grown: list[tuple[Ints, Ints, Floats]] = []
        for first in range(0, len(totals), block):
            here = sets[:, first : first + block]
            total = excess @ ~here + cuts @ (here[s] & ~here[k]).astype(np.float64)
            total += totals[first : first + block]
            last, source = np.nonzero(~here & (total <= budget))
            grown.append((source + first, last, total[last, source]))
            if sum(len(g[0]) for g in grown) > _MAX_CANDIDATES or give_up():
                return False, None
        source, last, totals = (np.concatenate(part) for part in zip(*grown, strict=True))
        keys = keys[:, source] | bits[:, last]
        by_set = np.lexsort((totals, *keys))
        is_new = (np.diff(keys[:, by_set], axis=1, prepend=-1) != 0).any(axis=0)
        best = by_set[is_new]
        if not 0 < len(best) <= _MAX_SETS:
            return len(best) == 0, None
        source, last, totals, keys = source[best], last[best], totals[best], keys[:, best]
        sets = sets[:, source]
        sets[last, np.arange(len(best))] = True
        steps.append((source, last))
    # Walk back from the set of all documents.
    order, state = np.zeros(r, dtype=np.int64), 0
    for place in reversed(range(r)):
        source, last = steps[place]
        order[place], state = last[state], source[state]
    return True, order


# ------------------------------------------------ calls that can be abandoned


def _call_in_thread(call: Callable[[], Any], give_up: Callable[[], bool]) -> Any:
    """Return the result of a call, or None as soon as ``give_up()`` is true.

    HiGHS takes minutes for a large linear program and ignores signals. While it runs in another
    thread, this thread can raise KeyboardInterrupt, or continue when the time is up. The other
    thread ends by itself. SciPy before 1.15 holds Python's lock while HiGHS runs, and this thread
    must wait.
    """
    answer: list[Any] = []
    failure: list[BaseException] = []

    def work() -> None:
        try:
            answer.append(call())
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=copy_context().run, args=(work,), name=_THREAD, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.05)  # with a timeout, because no signal interrupts an endless join on Windows
        if thread.is_alive() and give_up():
            return None
    if failure:
        raise failure[0]
    return answer[0]


@atexit.register
def _wait_for_calls() -> None:
    """Wait for running calls. The process would abort if one returned after its end."""
    deadline = time.monotonic() + _SECONDS_AT_EXIT
    for thread in threading.enumerate():
        if thread.name == _THREAD:
            thread.join(max(0.0, deadline - time.monotonic()))
