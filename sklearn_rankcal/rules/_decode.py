"""Decode predictions under the rules of each query.

The proof of theorem 3 of Ramaswamy et al. (2013) holds for any set of rankings. Decoding the same
predictions is therefore consistent for the best ranking that the rules permit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.decoders._batches import Decoded, DecodeResult, SearchOptions, collect_results
from sklearn_rankcal.exceptions import ContradictoryRulesError
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.rules._orders import (
    EXACT_SIZE,
    SUBSET_SIZE,
    Disagreement,
    Objective,
    best_linear_order,
    best_of_search,
    best_of_subsets,
)
from sklearn_rankcal.rules._places import Found, best_places, contradiction
from sklearn_rankcal.rules._query_rules import QueryRules
from sklearn_rankcal.utils._rounding import exceeds
from sklearn_rankcal.utils._typing import Floats, Ints

#: Number of random steps of the local search under rules.
_N_PERTURBATIONS = 20


def decode_scores_under(
    rules: Iterable[QueryRules],
    soft: float | None,
    scores: Floats,
    queries: Queries,
    discounts: Callable[[int], Floats],
    keys: Any,
    time_limit: float | None,
) -> DecodeResult:
    """Maximise the sum over documents of score times ``discounts(r)[place]`` under rules.

    The objective is minus this sum. Blocked documents come after shown documents, both in the best
    order. `keys` order documents with equal scores.
    """
    decoded: list[tuple[Ints, Decoded]] = []
    scores = queries.gather(scores)
    if keys is not None:
        keys = queries.gather(keys)
    for q, own in enumerate(rules):
        part = slice(*queries.offsets[q : q + 2])
        u = scores[part]
        phi = np.asarray(discounts(len(u)), dtype=np.float64)
        by_key = np.arange(len(u))  # the place of each document among the keys
        if keys is not None:
            by_key = np.argsort(np.argsort(keys[part], kind="stable"))
        shown = own.shown[np.argsort(by_key[own.shown], kind="stable")]
        ruled = own.permuted(np.searchsorted(own.shown, shown))
        found = best_places(u[shown], phi[: own.n], ruled, soft, time_limit)
        if found is None:
            raise _contradiction(own, queries.ids[q])
        last = own.blocked[np.lexsort((by_key[own.blocked], -u[own.blocked]))]
        order = np.concatenate([shown[found.order], last])
        of_last = -float(u[last] @ phi[own.n :])
        broken = ruled.broken(found.order) if soft is not None else []
        violation = sum(n for _, n in broken)
        value = -float(u[order] @ phi) + (soft or 0.0) * violation
        bound = value if found.proved else min(found.bound + of_last, value)
        one = Decoded(
            order[None],
            np.array([value]),
            np.array([bound]),
            np.array([found.proved]),
            [found.method],
            np.zeros(1, dtype=np.int64),
            broken=[_texts(broken)],
            violation=np.array([violation]),
        )
        decoded.append((np.array([q]), one))
    result = collect_results(decoded, queries.sizes)
    result.ranks = queries.scatter(result.ranks)
    return result


def keep_rules(
    decoded: list[tuple[Ints, Decoded]],
    matrices_of: Callable[[Ints, int], Floats],
    kind: Callable[[Floats], Objective],
    rules: list[QueryRules],
    soft: float | None,
    ids: NDArray[Any],
    method: str,
    options: SearchOptions,
) -> None:
    """Replace, in place, decoded rankings of pairs that break rules, and set what they still break.

    `rules` number documents as the orders and matrices do. Up to 16 documents are decoded by subset
    dynamic programming. More are decoded by a local search that keeps the rules or, for preferences
    with ``"exact"``, by the linear ordering program.
    """
    for which, part in decoded:
        part.broken = [[] for _ in which]
        part.violation = np.zeros(len(which), dtype=np.int64)
        binding = [k for k, q in enumerate(which) if not rules[q].is_kept_by(part.order[k])]
        matrices = matrices_of(which[binding], part.order.shape[1]) if binding else ()
        for matrix, k in zip(matrices, binding, strict=True):
            own, objective = rules[which[k]], kind(matrix)
            offset = part.objective[k] - objective.value(part.order[k])
            bound = float(part.lower_bound[k] - offset)
            found = _decode_query(objective, own, soft, method, options, part.order[k], bound)
            if found is None:
                raise _contradiction(own, ids[which[k]])
            amounts = own.broken(found.order) if soft is not None else []
            part.broken[k] = _texts(amounts)
            part.violation[k] = sum(n for _, n in amounts)
            value = objective.value(found.order) + (soft or 0.0) * sum(n for _, n in amounts)
            part.order[k] = found.order
            part.objective[k] = offset + value
            part.lower_bound[k] = offset + (value if found.proved else min(found.bound, value))
            part.optimal[k] = found.proved
            part.method[k] = found.method


def _texts(broken: list[tuple[str, int]]) -> list[str]:
    """Return texts of the broken rules, with the amount if it is more than 1."""
    return [text if n == 1 else f"{text} (by {n})" for text, n in broken]


def _decode_query(
    objective: Objective,
    rules: QueryRules,
    soft: float | None,
    method: str,
    options: SearchOptions,
    order: Ints,
    bound: float,
) -> Found | None:
    """Return the best order under rules, or None. `order` is the best one without rules."""
    if rules.n <= SUBSET_SIZE:
        return best_of_subsets(objective, rules, soft)
    exact = method == "exact"
    if exact and rules.n > EXACT_SIZE and options.time_limit is None:
        raise ValueError(
            f"A query has {rules.n} documents. Under rules, 'exact' supports at most {EXACT_SIZE} "
            "without a time_limit. 'local_search' supports any number."
        )
    # start from the order that keeps the rules and is nearest to the best one without rules
    nearest = np.empty(rules.n)
    nearest[order] = -np.arange(rules.n)
    start = _nearest(nearest, rules, soft)
    if start is None:
        return None
    limit = options.time_limit
    deadline = None if limit is None else time.monotonic() + limit
    best = best_of_search(objective, rules, soft, start, _N_PERTURBATIONS, options.seed, deadline)
    value = objective.value(best) + (soft or 0.0) * rules.violation(best)
    # rounding can hide a proof, but cannot make a false one
    found = Found(best, bound, value <= bound, "local_search")
    if exact and not found.proved and isinstance(objective, Disagreement):
        solved = best_linear_order(objective, rules, soft, limit)
        if solved is not None:
            broken = rules.violation(solved.order)
            again = objective.value(solved.order) + (soft or 0.0) * broken
            better = exceeds(value, again, objective.size)
            order = solved.order if better else best
            found = solved._replace(order=order, bound=max(bound, solved.bound))
    return found


def _nearest(scores: Floats, rules: QueryRules, soft: float | None) -> Ints | None:
    """Return the order that keeps the rules with the smallest sum of score times place."""
    part = rules.without_blocked()
    by_place = -np.arange(part.n, dtype=np.float64)
    found = best_places(scores[part.shown], by_place, part, None if soft is None else 1.0, None)
    if found is None:
        return None
    last = part.blocked[np.argsort(-scores[part.blocked], kind="stable")]
    return np.concatenate([part.shown[found.order], last])


def _contradiction(rules: QueryRules, query: object) -> ContradictoryRulesError:
    shown = rules.without_blocked()
    zeros = np.zeros(shown.n)

    def feasible(some: QueryRules) -> bool:
        return best_places(zeros, zeros, some, None, None) is not None

    return ContradictoryRulesError(query, contradiction(shown, feasible))
