"""The best ranking under rules for pairs: subset dynamic programming, local search, and a MILP.

An `Objective` says what it costs to put a document at the next place, and what moves change.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import combinations

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from sklearn_rankcal.rules._places import Found
from sklearn_rankcal.rules._query_rules import QueryRules
from sklearn_rankcal.targets import PAIRS, SYMMETRIC_PAIRS
from sklearn_rankcal.utils._rounding import ROUNDING
from sklearn_rankcal.utils._typing import Floats, Ints

#: Up to so many documents, subset dynamic programming takes O(2^r r) time: a second for 16.
SUBSET_SIZE = 16
#: The integer program has O(r^3) rows; beyond this, "exact" is refused without a time limit.
EXACT_SIZE = 60


class Disagreement:
    """The weight of the preferences that an order contradicts, for differences d (r, r)."""

    def __init__(self, d: Floats) -> None:
        self.d = d
        self.size = float(np.abs(d).sum())  # of the terms of all values
        self.lost = np.maximum(d, 0.0)  # lost[i, j]: what is lost if j is before i

    def value(self, order: Ints) -> float:
        return float(np.tril(self.lost[np.ix_(order, order)], -1).sum())

    def step(self, i: int, inside: Floats, n_placed: Ints) -> Floats:
        """Costs of document i after sets of documents, whose sums of entries are `inside`."""
        return inside

    @property
    def entries(self) -> Floats:
        """A document i after the documents S costs a function of sum_{j in S} entries[i, j]."""
        return self.lost

    def moves(self, order: Ints) -> tuple[Floats, Floats]:
        """The change of the value by insertions (p, q) and by exchanges (p, q), p < q."""
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
#: What a decoder minimises, by the space of its predictions.
OBJECTIVES: dict[str, Callable[[Floats], Objective]] = {
    PAIRS: Disagreement,
    SYMMETRIC_PAIRS: ExpectedPrecision,
}


def best_of_subsets(objective: Objective, rules: QueryRules, soft: float | None) -> Found | None:
    """Minimise the objective plus `soft` times the violation by O(2^r r) dynamic programming."""
    n = rules.n
    sets = np.arange(1 << n, dtype=np.int64)
    size = np.bitwise_count(sets).astype(np.int64)
    extra = np.zeros(1 << n)  # what a set of the first documents costs by the quotas
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
        for j in range(n):  # sums over all subsets, one more document at a time
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

    Each descent step takes O(r^2) time and a check of the rules for each move that is tried.
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
    """The order after an insertion (0) of place p at place q, or an exchange (1)."""
    moved = order.copy()
    if kind == 1:
        moved[[p, q]] = order[[q, p]]
    else:
        moved = np.insert(np.delete(order, p), q, order[p])
    return moved


def best_linear_order(
    objective: Disagreement, rules: QueryRules, soft: float | None, time_limit: float | None
) -> Found | None:
    """The linear ordering program with rules, by HiGHS; None if it is impossible or found nothing.

    x[i, j] is 1 if i is before j, for i < j; z[i, k] is 1 if i is among the first `prefix` places.
    """
    n = rules.n
    pair = {ij: k for k, ij in enumerate(combinations(range(n), 2))}
    scale = float(np.abs(objective.d).max()) / 1e3 or 1.0
    cost = [(objective.lost[j, i] - objective.lost[i, j]) / scale for i, j in pair]
    constant = float(sum(objective.lost[i, j] for i, j in pair))
    upper_bound: list[float] = [1.0] * len(pair)
    integrality = [1] * len(pair)
    rows: list[dict[int, float]] = []
    lower: list[float] = []
    upper: list[float] = []

    def new_variable(price: float, largest: float, integral: int) -> int:
        cost.append(price)
        upper_bound.append(largest)
        integrality.append(integral)
        return len(cost) - 1

    def add(row: dict[int, float], at_least: float, at_most: float) -> None:
        rows.append(row)
        lower.append(at_least)
        upper.append(at_most)

    def bend(row: dict[int, float], sign: float) -> dict[int, float]:
        if soft is not None:
            row[new_variable(soft / scale, np.inf, 0)] = sign
        return row

    def place(i: int) -> tuple[dict[int, float], float]:
        """The number of documents above i, as coefficients and a constant."""
        row, others = {}, 0.0
        for j in range(n):
            if j < i:
                row[pair[j, i]] = 1.0
            elif j > i:
                row[pair[i, j]] = -1.0
                others += 1.0
        return row, others

    for i, j, k in combinations(range(n), 3):  # no cycle of three
        add({pair[i, j]: 1.0, pair[j, k]: 1.0, pair[i, k]: -1.0}, 0.0, 1.0)
    for a, b in rules.before:
        if a < b:
            add(bend({pair[a, b]: 1.0}, 1.0), 1.0, np.inf)
        else:
            add(bend({pair[b, a]: 1.0}, -1.0), -np.inf, 0.0)
    if rules.last is not None:  # blocked documents come after all others
        for (i, j), k in pair.items():
            if rules.last[i] != rules.last[j]:
                add({k: 1.0}, float(rules.last[j]), float(rules.last[j]))
    for i in np.flatnonzero((rules.low > 0) | (rules.high < n - 1)).tolist():
        row, others = place(i)
        if rules.low[i] > 0:
            add(bend(dict(row), 1.0), rules.low[i] - others, np.inf)
        if rules.high[i] < n - 1:
            add(bend(dict(row), -1.0), -np.inf, rules.high[i] - others)
    first: dict[tuple[int, int], int] = {}
    for quota in rules.quotas:
        k = quota.prefix
        for i in quota.members.tolist():
            if (i, k) not in first:
                z = first[i, k] = new_variable(0.0, 1.0, 1)
                row, others = place(i)
                add(row | {z: float(n - k)}, -np.inf, n - 1.0 - others)  # z = 1: place < k
                add(row | {z: float(k)}, k - others, np.inf)  # z = 0: place >= k
        members = {first[i, k]: 1.0 for i in quota.members.tolist()}
        if quota.at_least:
            add(bend(dict(members), 1.0), quota.at_least, np.inf)
        if quota.at_most < len(members):
            add(bend(dict(members), -1.0), -np.inf, quota.at_most)
    entries = [(r, v, c) for r, row in enumerate(rows) for v, c in row.items()]
    r, v, c = (np.array(part) for part in zip(*entries, strict=True))
    # SciPy before 1.14 takes no other indices.
    indices = r.astype(np.int32), v.astype(np.int32)
    matrix = sparse.csr_array((c, indices), shape=(len(rows), len(cost)))
    result = milp(
        np.array(cost),
        constraints=LinearConstraint(matrix, lower, upper),
        integrality=integrality,
        bounds=Bounds(0, upper_bound),
        options={"mip_rel_gap": 0.0} | ({} if time_limit is None else {"time_limit": time_limit}),
    )
    if result.x is None:
        return None
    above = np.zeros((n, n), dtype=bool)
    for (i, j), k in pair.items():
        above[i, j], above[j, i] = result.x[k] > 0.5, result.x[k] <= 0.5
    order = np.argsort(above.sum(axis=0), kind="stable")
    bound = constant + scale * float(result.mip_dual_bound)
    return Found(order, bound, result.status == 0, "exact")
