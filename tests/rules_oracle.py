"""Random rules, a slow check of them by their words, and the best ranking by enumeration."""

import itertools

import numpy as np

from sklearn_rankcal.decoders import Quota, Rules


def random_rules(r, rng, soft=None, kinds=("place", "interval", "blocked", "before", "quota")):
    """Rules for one query of r documents; they may contradict each other."""
    given = {}
    if "place" in kinds and rng.random() < 0.4:
        given["place"] = np.zeros(r)
        rows = rng.choice(r, rng.integers(1, 3), replace=False)
        given["place"][rows] = rng.choice(r, len(rows), replace=False) + 1
    if "interval" in kinds and rng.random() < 0.3:
        name = rng.choice(["earliest", "latest"])
        given[name] = np.where(rng.random(r) < 0.3, rng.integers(1, r + 1, r), np.nan)
    if "blocked" in kinds and rng.random() < 0.3:
        given["blocked"] = rng.random(r) < rng.choice([0.25, 0.25, 1.0])
    if "before" in kinds and rng.random() < 0.3:
        given["before"] = [
            tuple(rng.choice(r, 2, replace=False).tolist()) for _ in range(rng.integers(1, 3))
        ]
    if "quota" in kinds and rng.random() < 0.8:
        given["quotas"] = []
        for _ in range(rng.integers(1, 3)):
            first = sorted(set(rng.integers(1, r + 1, rng.integers(1, 3)).tolist()))
            of = rng.integers(0, 3, r) if rng.random() < 0.7 else rng.random(r) < 0.5
            bound = rng.choice(["at_least", "at_most", "both"])
            bounds = {}
            if bound != "at_most":
                bounds["at_least"] = np.sort(rng.integers(0, 2, len(first))).tolist()
                if of.dtype != bool and rng.random() < 0.3:  # also of a group that does not occur
                    bounds["at_least"] = {int(rng.integers(0, 4)): bounds["at_least"]}
            if bound != "at_least":
                bounds["at_most"] = np.sort(rng.integers(1, 3, len(first))).tolist()
            given["quotas"].append(Quota(of, first=first, **bounds))
    return Rules(**given, soft=soft)


def violation(rules, order):
    """By how many places, pairs and documents an order of all documents breaks the rules."""
    r = len(order)
    blocked = np.zeros(r, bool) if rules.blocked is None else np.asarray(rules.blocked)
    n_shown = int((~blocked).sum())
    place = {row: k + 1 for k, row in enumerate(order)}
    if any(blocked[row] != (k >= n_shown) for k, row in enumerate(order)):
        return np.inf  # blocked documents come last, also under soft rules
    total = 0
    for row in range(r):
        if blocked[row]:
            continue
        low, high = 1, n_shown
        for name in ("place", "earliest", "latest"):
            value = getattr(rules, name)
            if value is None or not value[row] > 0:
                continue
            if name in ("place", "earliest"):
                low = max(low, value[row])
            if name in ("place", "latest"):
                high = min(high, value[row])
        total += max(low - place[row], 0) + max(place[row] - high, 0)
    for a, b in rules.before:
        if not blocked[a] and not blocked[b]:
            total += place[a] > place[b]
    for quota in rules.quotas:
        of = np.asarray(quota.of)
        names = [True] if of.dtype == bool else np.unique(of[~blocked]).tolist()
        named = quota.at_least if isinstance(quota.at_least, dict) else {}
        for name in {*names, *named}:
            members = {row for row in range(r) if of[row] == name and not blocked[row]}
            if not members and name not in named and of.dtype != bool:
                continue
            at_least = named.get(name) if named else quota.at_least
            for j, first in enumerate(np.atleast_1d(quota.first)):
                count = len(members & set(order[: min(first, n_shown)]))
                if at_least is not None:
                    total += max(0, np.atleast_1d(at_least)[j] - count)
                if quota.at_most is not None and first < n_shown:
                    total += max(0, count - np.atleast_1d(quota.at_most)[j])
    return int(total)


def best_value(rules, cost):
    """The least cost of an order under the rules, by enumeration; None if there is none.

    Under soft rules, blocked documents must be last all the same.
    """
    r = len(cost.values)
    best = None
    for order in itertools.permutations(range(r)):
        broken = violation(rules, list(order))
        if broken and (rules.soft is None or broken == np.inf):
            continue
        value = cost(order) + (rules.soft or 0.0) * broken
        best = value if best is None else min(best, value)
    return best


class ScoreCost:
    def __init__(self, values, discounts):
        self.values, self.discounts = values, discounts

    def __call__(self, order):
        return -sum(self.values[row] * self.discounts[k] for k, row in enumerate(order))


class PreferenceCost:
    def __init__(self, values):
        self.values = values

    def __call__(self, order):
        pairs = itertools.combinations(order, 2)
        return sum(max(self.values[later, early], 0) for early, later in pairs)


class AveragePrecisionCost(PreferenceCost):
    def __call__(self, order):
        total = 0.0
        for k, row in enumerate(order):
            total += sum(self.values[row, other] for other in order[: k + 1]) / (k + 1)
        return 1 - total
