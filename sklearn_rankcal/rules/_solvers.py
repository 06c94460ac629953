"""The best ranking under rules: an assignment for scores, and three searches for pairs.

A positional measure is sum_i u_i d(place of i) with discounts d that do not increase. Documents are
numbered from 0 by decreasing score, with ties by the keys. Equal problems then have equal answers.
For pairs, an `Objective` has the cost of putting a document at the next place, and the effect of
moves. The searches are subset dynamic programming, local search and an integer program. A `Program`
builds integer programs row by row.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, linear_sum_assignment, milp

from sklearn_rankcal.rules._query_rules import QueryRules
from sklearn_rankcal.targets import PAIRS, SYMMETRIC_PAIRS
from sklearn_rankcal.utils._numbers import ROUNDING, Floats, Ints


class Found(NamedTuple):
    """The best order (n,) of the shown documents found, and what is proved about it."""

    order: Ints
    bound: float  # no ranking has a smaller objective
    proved: bool
    method: str


def best_places(
    u: Floats, discounts: Floats, rules: QueryRules, soft: float | None, time_limit: float | None
) -> Found | None:
    """Minimise - sum_i u_i d(place_i), plus `soft` times the violation; None if impossible.

    - If, apart from pins, only earliest places or only latest places are bounded, the greedy choice
      is optimal: O(n log n).
    - If each document is in at most one group, some best ranking sorts the documents of each group
      by score. Quotas are then bounds on places, and the problem is an assignment: O(n^3).
    - Otherwise, it is an integer program.
    """
    by_score = np.lexsort((np.arange(len(u)), -u))
    if not rules.n:  # all documents are blocked, but a quota can require some
        broken = rules.violation(by_score)
        possible = soft is not None or not broken
        return Found(by_score, (soft or 0.0) * broken, True, "sort") if possible else None
    own, u = rules.permuted(by_score), u[by_score]
    found = _best_of_sorted(u, discounts, own, time_limit)
    if soft is not None:
        free = float(u @ discounts)
        if found is None or not found.proved or found.bound + free > soft:
            # a ranking that breaks a rule gains at most `free` and costs at least `soft`
            found = _integer_program(u, discounts, own, soft, time_limit)
    return None if found is None else found._replace(order=by_score[found.order])


def _best_of_sorted(
    u: Floats, discounts: Floats, rules: QueryRules, time_limit: float | None
) -> Found | None:
    if (rules.low > rules.high).any() or (rules.low >= rules.n).any():
        return None
    if not rules.binds:
        return Found(np.arange(rules.n), -float(u @ discounts), True, "sort")
    intervals = _intervals(rules)
    if intervals is None:
        return _integer_program(u, discounts, rules, None, time_limit)
    low, high = intervals
    if (low > high).any():
        return None
    pinned = low == high
    if (high[~pinned] == rules.n - 1).all():
        order = _greedy(low, pinned)
    elif not low[~pinned].any():
        # the reversed problem: the last place gets the smallest score that may have it
        last = rules.n - 1
        order = _greedy((last - high)[::-1], pinned[::-1])
        order = None if order is None else (last - order)[::-1]
    else:
        return _assignment(u, discounts, low, high)
    if order is None:
        return None
    return Found(order, -float(u[order] @ discounts), True, "greedy")


def _intervals(rules: QueryRules) -> tuple[Ints, Ints] | None:
    """Return first and last places equivalent to the rules, for documents sorted by score.

    Return None if the rules are not of this form. high < low means contradiction.
    """
    if rules.before:
        return None
    low, high = rules.low.copy(), rules.high.copy()
    groups: dict[bytes, list[int]] = {}
    for number, quota in enumerate(rules.quotas):
        groups.setdefault(quota.members.tobytes(), []).append(number)
    lists = [np.sort(rules.quotas[numbers[0]].members) for numbers in groups.values()]
    joined = np.concatenate(lists) if lists else np.empty(0, dtype=np.int64)
    if len(np.unique(joined)) < len(joined):
        return None  # a document is in two groups
    pinned = rules.low == rules.high
    varied = rules.low.any() or (rules.high < rules.n - 1).any()
    for members, numbers in zip(lists, groups.values(), strict=True):
        free = members[~pinned[members]] if varied else members
        if varied and len(free) and (np.ptp(rules.low[free]) or np.ptp(rules.high[free])):
            return None  # documents of the group are not interchangeable
        places = rules.low[members[pinned[members]]]
        for number in numbers:
            quota = rules.quotas[number]
            taken = int(np.count_nonzero(places < quota.prefix)) if varied else 0
            most, least = quota.at_most - taken, quota.at_least - taken
            if most < 0 or least > len(free):
                high[:] = -1
                return low, high
            low[free[most:]] = np.maximum(low[free[most:]], quota.prefix)
            high[free[: max(least, 0)]] = np.minimum(high[free[: max(least, 0)]], quota.prefix - 1)
    return low, high


def _greedy(low: Ints, pinned: np.ndarray) -> Ints | None:
    """Put at each place the first document, in sorted order, that may have it.

    For each k, the sets of documents that can fill the first k places are the independent sets of a
    transversal matroid. The greedy choice therefore maximises every prefix sum.
    """
    n = len(low)
    order = np.full(n, -1)
    order[low[pinned]] = np.flatnonzero(pinned)
    if np.count_nonzero(order >= 0) < np.count_nonzero(pinned):
        return None  # two documents are pinned at the same place
    free = np.flatnonzero(~pinned)
    starts = low[free]
    if not starts.any():
        order[order < 0] = free
        return order
    later = np.argsort(starts, kind="stable")
    arrivals = iter(zip(starts[later].tolist(), free[later].tolist(), strict=True))
    arrival = next(arrivals, None)
    waiting: list[int] = []
    for place in np.flatnonzero(order < 0).tolist():
        while arrival is not None and arrival[0] <= place:
            heapq.heappush(waiting, arrival[1])
            arrival = next(arrivals, None)
        if not waiting:
            return None
        order[place] = heapq.heappop(waiting)
    return order


def _assignment(u: Floats, discounts: Floats, low: Ints, high: Ints) -> Found | None:
    n = len(u)
    places = np.arange(n)
    cost = np.outer(u.min() - u, discounts)
    end, late = _late_places(low, high, [])
    possible = (places >= low[:, None]) & (places <= high[:, None]) & ((places < end) | late)
    cost[~possible] = np.inf
    try:
        # twice as fast with the rows in increasing order of scores
        _, column = linear_sum_assignment(cost[::-1])
    except ValueError:  # no assignment has a finite cost
        return None
    order = np.empty(n, dtype=np.int64)
    order[column[::-1]] = places
    return Found(order, -float(u[order] @ discounts), True, "assignment")


def _integer_program(
    u: Floats,
    discounts: Floats,
    rules: QueryRules,
    soft: float | None,
    time_limit: float | None,
) -> Found | None:
    """Assign documents to blocks of places with equal discounts, by HiGHS.

    z[i, b] is 1 if document i is in block b. A block has places with equal discounts that no rule
    distinguishes.
    """
    n = rules.n
    cuts = np.diff(discounts) != 0
    cuts[[quota.prefix - 1 for quota in rules.quotas if quota.prefix < n]] = True
    if soft is not None and (rules.low.any() or (rules.high < n - 1).any() or rules.before):
        cuts[:] = True  # the violation of such a rule depends on the place
    else:
        cuts[rules.low[rules.low > 0] - 1] = True
        cuts[rules.high[rules.high < n - 1]] = True
    if soft is None and _is_circular(rules.before):
        return None
    first = np.concatenate([[0], np.flatnonzero(cuts) + 1])  # the first place of each block
    size = np.diff(np.append(first, n))
    low, high = _sorted_intervals(rules, soft is not None)
    if (low > high).any():
        return None
    last = first + size - 1
    possible = (first <= high[:, None]) & (last >= low[:, None])
    if soft is None and not rules.before:
        end, late = _late_places(rules.low, rules.high, [quota.prefix for quota in rules.quotas])
        possible &= (first < end) | np.logical_or.reduceat(late, first, axis=1)
    document, block = np.nonzero(possible)
    # HiGHS stops at a gap of 1e-6, which must be small relative to the costs. Shifting the scores
    # adds the same constant to all rankings.
    middle = float(u.max() / 2 + u.min() / 2)
    centred, constant = u - middle, -middle * float(discounts.sum())
    scale = float(np.abs(centred).max() * np.abs(discounts).max()) / 1e4 or 1.0
    cost = -centred[document] * discounts[first[block]] / scale
    if soft is not None:
        below = np.maximum(rules.low[document] - last[block], 0)
        above = np.maximum(first[block] - rules.high[document], 0)
        cost = cost + soft / scale * (below + above)
    program = Program(cost, None if soft is None else soft / scale)
    number = np.arange(len(document))
    for i in range(n):
        program.add(number[document == i], 1.0, 1, 1)
    for b in range(len(first)):
        program.add(number[block == b], 1.0, size[b], size[b])
    for quota in rules.quotas:
        chosen = number[np.isin(document, quota.members) & (first[block] < quota.prefix)]
        if quota.at_least:
            program.add(chosen, 1.0, quota.at_least, np.inf, program.new_slack())
        if quota.at_most < len(quota.members):
            program.add(chosen, 1.0, -np.inf, quota.at_most, program.new_slack())
    for a, b in rules.before:
        slack = program.new_slack()
        for k in range(len(first)):
            of_a = number[(document == a) & (block <= k)]
            of_b = number[(document == b) & (block <= k)]
            values = np.append(np.ones(len(of_a)), -np.ones(len(of_b)))
            program.add(np.append(of_a, of_b), values, 0, np.inf, slack)
    # the relaxed linear program is faster, and often has an integer solution
    for whole in (False, True):
        result = program.solve(time_limit, whole)
        if result.x is None:
            if result.status == 2:
                return None
            raise TimeoutError(
                f"Found no ranking of {n} documents that keeps the rules in {time_limit} seconds."
            )
        fraction = np.abs(result.x - np.round(result.x))[: len(document)]
        if fraction.max() < 1e-6:
            break
    chosen = np.round(result.x[: len(document)]).astype(bool)
    block_of = np.empty(n, dtype=np.int64)
    block_of[document[chosen]] = block[chosen]
    order = _ordered_blocks(block_of, rules.before)
    value_found = -float(u[order] @ discounts) + (soft or 0.0) * rules.violation(order)
    dual = result.fun if result.mip_dual_bound is None else result.mip_dual_bound
    bound = min(float(dual) * scale + constant, value_found)
    proved = result.status == 0
    return Found(order, value_found if proved else bound, proved, "integer_program")


def _late_places(low: Ints, high: Ints, prefixes: list[int]) -> tuple[int, np.ndarray]:
    """Return the number `end` of first places with rules, and a mask (n, n) for later places.

    Some best ranking sorts the documents at later places by score. There, the i-th document by
    score is at one of the places i .. i + end.
    """
    n = len(low)
    bounds = [*low[low > 0], *(high[high < n - 1] + 1), *(k for k in prefixes if k < n)]
    end = int(max(bounds, default=0))
    shift = np.arange(n) - np.arange(n)[:, None]
    return end, (shift >= 0) & (shift <= end)


def _sorted_intervals(rules: QueryRules, soft: bool) -> tuple[Ints, Ints]:
    """Return first and last places in a best ranking in which alike documents keep their order.

    Documents that all rules treat alike are interchangeable, so the t-th best of them has t - 1 of
    them above it. Under soft rules, only this bounds the places.
    """
    n = rules.n
    low, high = (np.zeros(n, int), np.full(n, n - 1)) if soft else (rules.low, rules.high)
    kinds: dict[tuple[object, ...], list[int]] = {}
    member = [np.isin(np.arange(n), quota.members).tolist() for quota in rules.quotas]
    bound = {i for pair in rules.before for i in pair}
    for i in range(n):
        kind = (rules.low[i], rules.high[i], i if i in bound else -1, *(m[i] for m in member))
        kinds.setdefault(kind, []).append(i)
    low, high = low.copy(), high.copy()
    for alike in kinds.values():
        t = np.arange(len(alike))
        low[alike] += t
        high[alike] -= t[::-1]
    return low, high


def _is_circular(before: list[tuple[int, int]]) -> bool:
    sorter = TopologicalSorter[int]()
    for a, b in before:
        sorter.add(b, a)
    try:
        sorter.prepare()
    except CycleError:
        return True
    return False


def _ordered_blocks(block_of: Ints, before: list[tuple[int, int]]) -> Ints:
    """Sort documents by block, and within a block by number as far as the pairs permit."""
    order = np.lexsort((np.arange(len(block_of)), block_of))
    after: dict[int, set[int]] = {}
    for a, b in before:
        if block_of[a] == block_of[b]:
            after.setdefault(b, set()).add(a)
    if not after:
        return order
    placed: set[int] = set()
    result: list[int] = []
    for b in np.unique(block_of):
        waiting = [i for i in order.tolist() if block_of[i] == b]
        while waiting:
            i = next(i for i in waiting if after.get(i, placed) <= placed)
            waiting.remove(i)
            placed.add(i)
            result.append(i)
    return np.array(result)


def contradiction(rules: QueryRules, feasible: Callable[[QueryRules], bool]) -> list[str]:
    """Return a minimal set of rules that contradict each other.

    Drop each rule in turn, permanently if the remaining rules still contradict each other.
    """
    current = rules
    kept: list[str] = []

    def drop(without: QueryRules, text: str) -> None:
        nonlocal current
        if feasible(without):
            kept.append(text)
        else:
            current = without

    for i in np.flatnonzero((rules.low > 0) | (rules.high < rules.n - 1)).tolist():
        low, high = current.low.copy(), current.high.copy()
        low[i], high[i] = 0, rules.n - 1
        drop(replace(current, low=low, high=high), rules.text_of_places(i))
    for pair in rules.before:
        others = [other for other in current.before if other is not pair]
        drop(replace(current, before=others), rules.text_of_pair(*pair))
    for quota in rules.quotas:
        quotas = [other for other in current.quotas if other is not quota]
        drop(replace(current, quotas=quotas), quota.text)
    return kept


class Program:
    """Minimise the cost of variables >= 0 with bounds on linear sums of them.

    `price` is the cost per unit of violation of a soft rule. None means hard rules.
    """

    def __init__(self, costs: Sequence[float] | Floats, price: float | None) -> None:
        self.costs = list(costs)  # the first variables are binary
        self.largest = [1.0] * len(self.costs)
        self.integral = [1] * len(self.costs)
        self.price = price
        self.rows: list[Ints] = []
        self.variables: list[Ints] = []
        self.values: list[Floats] = []
        self.lower: list[float] = []
        self.upper: list[float] = []

    def new_variable(self, cost: float, largest: float, integral: int) -> int:
        """Add a variable and return its number."""
        self.costs.append(cost)
        self.largest.append(largest)
        self.integral.append(integral)
        return len(self.costs) - 1

    def new_slack(self) -> list[int]:
        """Return the new slack variable of a soft rule, or an empty list for a hard rule."""
        return [] if self.price is None else [self.new_variable(self.price, np.inf, 0)]

    def add(
        self,
        variables: Sequence[int] | Ints,
        values: Sequence[float] | Floats | float,
        at_least: float,
        at_most: float,
        slack: Sequence[int] = (),
    ) -> None:
        """Bound the sum of values times variables, or of each row of an array of variables.

        `slack` is a variable by which the sum may violate its bound.
        """
        if slack:
            sign = -1.0 if np.isinf(at_least) else 1.0
            values = np.append(np.broadcast_to(values, len(variables)), sign)
            variables = np.append(variables, slack)
        table = np.atleast_2d(variables)
        rows = len(self.lower) + np.arange(len(table))
        self.rows.append(np.repeat(rows, table.shape[1]))
        self.variables.append(table.ravel())
        self.values.append(np.broadcast_to(values, table.shape).ravel())
        self.lower += [at_least] * len(table)
        self.upper += [at_most] * len(table)

    def solve(self, time_limit: float | None, whole: bool = True) -> Any:
        """Return the result of `scipy.optimize.milp`. Without `whole`, relax the integers."""
        # SciPy before 1.14 needs 32-bit indices
        row = np.concatenate(self.rows).astype(np.int32)
        variable = np.concatenate(self.variables).astype(np.int32)
        shape = len(self.lower), len(self.costs)
        matrix = sparse.csr_array((np.concatenate(self.values), (row, variable)), shape=shape)
        options = {"mip_rel_gap": 0.0}  # HiGHS stops at 1e-4 otherwise
        return milp(
            np.array(self.costs),
            constraints=LinearConstraint(matrix, self.lower, self.upper),
            integrality=np.array(self.integral) * whole,
            bounds=Bounds(0, self.largest),
            options=options if time_limit is None else options | {"time_limit": time_limit},
        )


#: Largest query for subset dynamic programming, which takes O(2^r r) time: a second for 16.
SUBSET_SIZE = 16
#: Largest query for "exact" without a time limit. The integer program has O(r^3) rows.
EXACT_SIZE = 60


class Disagreement:
    """Weight of the preferences that an order contradicts, for differences d (r, r)."""

    def __init__(self, d: Floats) -> None:
        self.d = d
        self.size = float(np.abs(d).sum())  # scale for rounding errors
        self.lost = np.maximum(d, 0.0)  # lost[i, j]: loss if j is before i

    def value(self, order: Ints) -> float:
        return float(np.tril(self.lost[np.ix_(order, order)], -1).sum())

    def step(self, i: int, inside: Floats, n_placed: Ints) -> Floats:
        """Return the cost of document i after sets with these sums of entries `inside`."""
        return inside

    @property
    def entries(self) -> Floats:
        """The cost of i after a set S is a function of sum_{j in S} entries[i, j]."""
        return self.lost

    def moves(self, order: Ints) -> tuple[Floats, Floats]:
        """Return the change of the value by insertions (p, q) and exchanges (p, q), p < q."""
        d = self.d[np.ix_(order, order)]
        n = len(order)
        sums = np.zeros((n, n + 1))
        np.cumsum(d, axis=1, out=sums[:, 1:])
        p, q = np.indices((n, n))
        down = sums[p, q + 1] - sums[p, p + 1]
        up = sums[p, q] - sums[p, p]
        insert = np.where(q > p, down, up)
        exchange = np.where(q > p, down - (sums[q, q] - sums[q, np.minimum(p + 1, q)]), np.inf)
        return insert, exchange


class ExpectedPrecision:
    """1 - sum_{j <= i} u_ij / max(rank_i, rank_j) for a symmetric matrix u (r, r)."""

    def __init__(self, u: Floats) -> None:
        self.u = u
        self.size = float(np.abs(u).sum())

    def value(self, order: Ints) -> float:
        placed = np.tril(self.u[np.ix_(order, order)])
        return float(1.0 - (placed.sum(axis=1) / np.arange(1, len(order) + 1)).sum())

    def step(self, i: int, inside: Floats, n_placed: Ints) -> Floats:
        return -(inside + self.u[i, i]) / (n_placed + 1)

    @property
    def entries(self) -> Floats:
        return self.u

    def moves(self, order: Ints) -> tuple[Floats, Floats]:
        u = self.u[np.ix_(order, order)]
        n = len(order)
        sums = np.zeros((n, n + 1))  # sums[x, k]: over the k documents above place k
        np.cumsum(u, axis=1, out=sums[:, 1:])
        every = np.arange(n)
        own = np.diagonal(u)
        gain = sums[every, every] + own  # of each place, before it is divided by the place
        p, q = np.indices((n, n))
        late = 1.0 / (every + 1.0)
        # places p + 1 .. q move up by one, without x = p above them
        shift_up = np.append(0, np.cumsum(gain[1:] * (late[:-1] - late[1:])))
        # over[x, k]: the sum over places l < k of u[x, l] divided by the place l (from 0)
        inverse = np.append(0.0, 1.0 / every[1:])
        over = np.zeros((n, n + 1))
        np.cumsum(u * inverse, axis=1, out=over[:, 1:])
        down = shift_up[q] - shift_up[p] - (over[p, q + 1] - over[p, p + 1])
        down += sums[p, q + 1] * late[q] - gain[p] * late[p]
        # places q .. p - 1 move down by one, with x = p above them
        below = 1.0 / (every + 2.0)
        shift_down = np.append(0, np.cumsum(gain * (below - late)))
        under = np.zeros((n, n + 1))
        np.cumsum(u * below, axis=1, out=under[:, 1:])
        up = shift_down[p] - shift_down[q] + under[p, p] - under[p, q]
        up += (sums[p, q] + own[p]) * late[q] - gain[p] * late[p]
        insert = -np.where(q > p, down, np.where(q < p, up, 0.0))
        # at place q document x = p, at place p document y = q
        at = np.zeros((n, n + 1))
        np.cumsum(u * late, axis=1, out=at[:, 1:])
        inner = np.minimum(p + 1, q)
        change = (sums[q, p] + own[q] - gain[p]) * late[p]
        change += at[q, q] - at[q, inner] - (at[p, q] - at[p, inner])
        change += (sums[p, q] + u[p, q] - gain[q]) * late[q]
        return insert, np.where(q > p, -change, np.inf)


Objective = Disagreement | ExpectedPrecision
#: Objective by space of the predictions.
OBJECTIVES: dict[str, Callable[[Floats], Objective]] = {
    PAIRS: Disagreement,
    SYMMETRIC_PAIRS: ExpectedPrecision,
}


def best_of_subsets(objective: Objective, rules: QueryRules, soft: float | None) -> Found | None:
    """Minimise the objective plus `soft` times the violation, in O(2^r r) time."""
    n = rules.n
    sets = np.arange(1 << n, dtype=np.int64)
    size = np.bitwise_count(sets).astype(np.int64)
    extra = np.zeros(1 << n)  # cost of each set of first documents by the quotas
    per_unit = np.inf if soft is None else soft
    for quota in rules.quotas:
        of_size = np.flatnonzero(size == quota.prefix)
        mask = int((1 << quota.members).sum())
        inside = np.bitwise_count(of_size & mask).astype(np.int64)
        amount = np.maximum(quota.at_least - inside, 0) + np.maximum(inside - quota.at_most, 0)
        extra[of_size] += np.where(amount > 0, amount, 0) * np.where(amount > 0, per_unit, 1.0)
    best = np.full(1 << n, np.inf)
    last = np.full(1 << n, -1, dtype=np.int8)
    best[0] = extra[0]  # quotas of no place, in a query without shown documents
    steps = []  # for each document, the cost after each set (of the other documents)
    for i in range(n):
        inside = np.zeros(1)
        for j in range(n):  # sums over all subsets of the first j documents
            inside = np.concatenate([inside, inside + objective.entries[i, j] * (j != i)])
        cost = objective.step(i, inside, size)
        away = np.maximum(rules.low[i] - size, 0) + np.maximum(size - rules.high[i], 0)
        for a, b in rules.before:
            if b == i:
                away = away + ((sets >> a & 1) == 0)
        cost[away > 0] += away[away > 0] * per_unit
        if rules.last is not None:
            cost[(size >= rules.n_shown) != rules.last[i]] = np.inf
        steps.append(cost)
    for layer in range(1, n + 1):
        targets = np.flatnonzero(size == layer)
        for i in range(n):
            inside_i = targets[(targets >> i & 1) == 1]
            without = inside_i ^ (1 << i)
            value = best[without] + steps[i][without]
            better = value < best[inside_i]
            best[inside_i[better]] = value[better]
            last[inside_i[better]] = i
        best[targets] += extra[targets]
    if not np.isfinite(best[-1]):
        return None
    order, rest = np.empty(n, dtype=np.int64), (1 << n) - 1
    for place in range(n - 1, -1, -1):
        order[place] = last[rest]
        rest ^= 1 << int(last[rest])
    found = objective.value(order) + (soft or 0.0) * rules.violation(order)
    return Found(order, found, True, "exact")


def best_of_search(
    objective: Objective,
    rules: QueryRules,
    soft: float | None,
    start: Ints,
    n_perturbations: int,
    random_state: int,
    deadline: float | None,
) -> Ints:
    """Descend by insertions and exchanges that keep the rules, from `start` and perturbed orders.

    A descent step takes O(r^2) time, plus a check of the rules for each move that it tries.
    """
    rng = np.random.RandomState(random_state)
    tolerance = ROUNDING * objective.size

    def total(order: Ints) -> float:
        return objective.value(order) + (soft or 0.0) * rules.violation(order)

    def descend(order: Ints) -> Ints:
        broken = rules.violation(order) if soft is not None else 0
        while deadline is None or time.monotonic() < deadline:
            changes = np.stack(objective.moves(order))
            worth = tolerance if soft is None else soft * broken + tolerance
            kind, p, q = np.nonzero(changes < worth - 2 * tolerance)
            for k in np.argsort(changes[kind, p, q], kind="stable").tolist():
                moved = _moved(order, int(kind[k]), int(p[k]), int(q[k]))
                violation = rules.violation(moved)
                price = 0.0 if soft is None else soft * (violation - broken)
                kept = rules.keeps_blocked(moved) and (violation == 0 or soft is not None)
                if kept and changes[kind[k], p[k], q[k]] + price < -tolerance:
                    order, broken = moved, violation
                    break
            else:
                return order
        return order

    best = descend(start)
    for _ in range(n_perturbations):
        if deadline is not None and time.monotonic() >= deadline:
            break
        order = best
        for _ in range(3):
            p, q = rng.choice(rules.n, 2, replace=False)
            moved = _moved(order, int(rng.randint(2)), int(p), int(q))
            kept = rules.keeps_blocked(moved)
            if kept and (soft is not None or rules.violation(moved) == 0):
                order = moved
        order = descend(order)
        if total(order) < total(best) - tolerance:
            best = order
    return best


def _moved(order: Ints, kind: int, p: int, q: int) -> Ints:
    """Return the order after an insertion (0) of place p at place q, or an exchange (1)."""
    moved = order.copy()
    if kind == 1:
        moved[[p, q]] = order[[q, p]]
    else:
        moved = np.insert(np.delete(order, p), q, order[p])
    return moved


def best_linear_order(
    objective: Disagreement, rules: QueryRules, soft: float | None, time_limit: float | None
) -> Found | None:
    """Solve the linear ordering program with rules by HiGHS; None if no solution was found.

    x[i, j] is 1 if i is before j, for i < j. z[i, k] is 1 if i is among the first k places. Local
    search is not enough: of 50 random queries of 17 to 40 documents that were solved within six
    seconds, it had missed the best ranking of nine.
    """
    n = rules.n
    early, late = np.triu_indices(n, 1)
    x = np.zeros((n, n), dtype=np.int64)  # the variable of each pair, also at [j, i]
    x[early, late] = x[late, early] = np.arange(len(early))
    scale = float(np.abs(objective.d).max()) / 1e3 or 1.0
    lost, won = objective.lost[early, late], objective.lost[late, early]
    program = Program((won - lost) / scale, None if soft is None else soft / scale)

    def above(i: int) -> tuple[Ints, Floats, float]:
        """Return the number of documents above i as variables, coefficients and a constant."""
        return np.delete(x[i], i), np.repeat([1.0, -1.0], [i, n - 1 - i]), n - 1.0 - i

    i, j, k = np.array(list(combinations(range(n), 3))).T
    program.add(np.column_stack([x[i, j], x[j, k], x[i, k]]), [1.0, 1.0, -1.0], 0.0, 1.0)
    for a, b in rules.before:
        bounds = (1.0, np.inf) if a < b else (-np.inf, 0.0)
        program.add([x[a, b]], 1.0, *bounds, program.new_slack())
    if rules.last is not None:  # blocked documents are last
        for a, b in zip(*np.nonzero(~rules.last[:, None] & rules.last), strict=True):
            program.add([x[a, b]], 1.0, float(a < b), float(a < b))
    for i in np.flatnonzero((rules.low > 0) | (rules.high < n - 1)).tolist():
        variables, signs, others = above(i)
        if rules.low[i] > 0:
            least = rules.low[i] - others
            program.add(variables, signs, least, np.inf, program.new_slack())
        if rules.high[i] < n - 1:
            most = rules.high[i] - others
            program.add(variables, signs, -np.inf, most, program.new_slack())
    first: dict[tuple[int, int], int] = {}
    for quota in rules.quotas:
        k = quota.prefix
        for i in quota.members.tolist():
            if (i, k) not in first:
                z = first[i, k] = program.new_variable(0.0, 1.0, 1)
                variables, signs, others = above(i)
                variables = np.append(variables, z)
                # z = 1: place < k; z = 0: place >= k
                program.add(variables, np.append(signs, n - k), -np.inf, n - 1.0 - others)
                program.add(variables, np.append(signs, k), k - others, np.inf)
        members = [first[i, k] for i in quota.members.tolist()]
        if quota.at_least:
            program.add(members, 1.0, quota.at_least, np.inf, program.new_slack())
        if quota.at_most < len(members):
            program.add(members, 1.0, -np.inf, quota.at_most, program.new_slack())
    result = program.solve(time_limit)
    if result.x is None:
        return None
    is_above = np.zeros((n, n), dtype=bool)
    is_above[early, late] = result.x[: len(early)] > 0.5
    is_above[late, early] = ~is_above[early, late]
    order = np.argsort(is_above.sum(axis=0), kind="stable")
    bound = float(lost.sum()) + scale * float(result.mip_dual_bound)
    return Found(order, bound, result.status == 0, "exact")
