"""The best ranking under rules for scores: an assignment of documents to places.

A positional measure is sum_i u_i d(place of i) with discounts d that do not increase. Documents are
numbered from 0 by decreasing score, with ties by the keys. Equal problems then have equal answers.
A `Program` builds an integer program row by row, here and for pairs.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, linear_sum_assignment, milp

from sklearn_rankcal.rules._query_rules import QueryRules
from sklearn_rankcal.utils._numbers import Floats, Ints


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
