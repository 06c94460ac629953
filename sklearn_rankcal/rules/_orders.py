"""The best ranking under rules for pairs: subset dynamic programming, local search, and a MILP.

An `Objective` has the cost of putting a document at the next place, and the effect of moves.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import combinations

import numpy as np

from sklearn_rankcal.rules._places import Found, Program
from sklearn_rankcal.rules._query_rules import QueryRules
from sklearn_rankcal.targets import PAIRS, SYMMETRIC_PAIRS
from sklearn_rankcal.utils._numbers import ROUNDING, Floats, Ints

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
