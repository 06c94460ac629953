"""`Rules`: restrictions of rankings, and the decoding of predictions under them.

Other folders import this one only on first use. Rankers and decoders call the methods of the rules
that they receive.

The proof of theorem 3 of Ramaswamy et al. (2013) holds for any set of rankings. Decoding the same
predictions is therefore consistent for the best ranking that the rules permit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from sklearn_rankcal.decoders._batches import Decoded, DecodeResult, SearchOptions, collect_results
from sklearn_rankcal.exceptions import ContradictoryRulesError
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.rules import _query_rules, _solvers
from sklearn_rankcal.rules._query_rules import QueryRules, Quota
from sklearn_rankcal.rules._solvers import Found, Objective
from sklearn_rankcal.targets import PAIRS
from sklearn_rankcal.utils._features import is_dataframe, warn_of_other_order
from sklearn_rankcal.utils._messages import checks_keywords
from sklearn_rankcal.utils._numbers import Floats, Ints, as_frame, exceeds

PLACES = ("place", "earliest", "latest")
PER_ROW = (*PLACES, "blocked")
#: Number of random steps of the local search under rules.
_N_PERTURBATIONS = 20


class Rules:
    """Rules that the ranking of each query keeps, for the `predict` of a fitted ranker.

    `predict` returns the ranking with the least expected loss among those that keep the rules. The
    same fitted ranker works with different rules each day. The ranking is exact where decoding
    without rules is exact; for ``loss="pd_by_scores"``, only with labels of two grades or
    ``pair_weight="graded"``. Read more in :ref:`rules`.

    Parameters
    ----------
    place : array-like of shape (n_documents,) or str, default=None
        Place at which each row is pinned, 1 = top. None, NaN and 0 mean no rule. Blocked documents
        do not count for places. Here and below, a string names a column of the data frame X. If
        the ranker was not fitted with this column, it is removed from X.
    earliest, latest : array-like of shape (n_documents,) or str, default=None
        First and last place that each row may have.
    blocked : array-like of bool of shape (n_documents,) or str, default=None
        Rows that are not shown, whatever the other rules say. `predict` ranks them last, and
        `predict_order` leaves them out.
    before : list of (int, int), default=()
        Pairs of row indices of the same query. The first row is ranked above the second.
    quotas : list of Quota, default=()
        Bounds on the number of documents of a group among the first places.
    soft : float, default=None
        None: rules that contradict each other raise an error. A number: the cost that each broken
        place, pair or document adds to the expected loss. A rule is broken where that costs less
        than keeping it. A number larger than any possible loss, such as 10 for NDCG, breaks rules
        only where they contradict each other, and as little as possible.

    See Also
    --------
    sklearn_rankcal.decoders.Quota.fair : Quotas of FA*IR.
    sklearn_rankcal.CalibratedRanker.rules_report : Cost of each rule.

    Notes
    -----
    Rankers and decoders call the methods. Users need none of them.

    Examples
    --------
    >>> from sklearn_rankcal.decoders import Quota, Rules, decode_scores
    >>> rules = Rules(place=[0, 0, 0, 2], quotas=[Quota(["x", "x", "y", None], first=3, at_most=1)])
    >>> decode_scores([0.9, 0.8, 0.2, 0.1], rules=rules).ranks.tolist()
    [1, 4, 3, 2]
    """

    @checks_keywords
    def __init__(
        self,
        *,
        place: Any = None,
        earliest: Any = None,
        latest: Any = None,
        blocked: Any = None,
        before: Sequence[tuple[int, int]] = (),
        quotas: Sequence[Quota] = (),
        soft: float | None = None,
    ) -> None:
        if soft is not None and not 0 < soft < np.inf:
            raise ValueError(f"soft must be a positive number or None; got {soft!r}.")
        quotas = [quotas] if isinstance(quotas, Quota) else list(quotas)
        if any(not isinstance(quota, Quota) for quota in quotas):
            raise ValueError("quotas must be a list of Quota objects.")
        fine = all(len(p) == 2 and all(isinstance(row, Integral) for row in p) for p in before)
        if not fine:
            raise ValueError("before must be a list of pairs of row numbers.")
        self.place = place
        self.earliest = earliest
        self.latest = latest
        self.blocked = blocked
        self.before = [(int(a), int(b)) for a, b in before]
        self.quotas = quotas
        self.soft = soft
        self._rows: Ints | None = None  # original row numbers for messages, after `take`

    def __repr__(self) -> str:
        shown = {name: _query_rules.shorten(getattr(self, name)) for name in PER_ROW}
        shown |= {"before": self.before, "quotas": self.quotas, "soft": self.soft}
        return f"Rules({', '.join(f'{k}={v!r}' for k, v in shown.items() if not _is_empty(v))})"

    # ---------------------------------------------------------------- for a fitted ranker

    def take_columns(self, X: Any, fitted: Any) -> tuple[Any, Rules]:
        """Return X without the columns that only the rules use, and the rules with their values.

        Columns in `fitted`, the features of the ranker, stay in X.
        """
        warn_of_other_order(X=X, **{name: getattr(self, name) for name in PER_ROW})
        for quota in self.quotas:
            warn_of_other_order(X=X, quota=quota.of)
        if not self.columns:
            return X, self
        X = as_frame(X)
        present = list(X.columns) if is_dataframe(X) else []
        if missing := [name for name in self.columns if name not in present]:
            raise ValueError(
                f"The rules name the column {missing[0]!r}, which X does not have. Pass a data "
                "frame with that column, or arrays with one value for each row."
            )
        columns = {name: np.asarray(X[name]) for name in self.columns}
        extra = [name for name in self.columns if name not in list(fitted)]
        X = X.drop(columns=extra) if hasattr(X, "iloc") else X.drop(extra)
        return X, self.with_columns(columns)

    def check_pairs(self, queries: Queries) -> None:
        """Raise ValueError if a pair of `before` is not two rows of one query."""
        _query_rules.pairs_of_queries(self.before, queries)

    def count_shown(self, queries: Queries) -> Ints:
        """Return the number of documents of each query that are not blocked."""
        if self.blocked is None:
            return queries.sizes
        return queries.sizes - queries.sum(np.asarray(self.blocked, dtype=np.int64))

    # ---------------------------------------------------------------- for a decoder

    def decode_scores(
        self,
        scores: Floats,
        queries: Queries,
        discounts: Callable[[int], Floats],
        keys: Any,
        time_limit: float | None,
    ) -> DecodeResult:
        """Maximise the sum over documents of score times ``discounts(r)[place]`` under the rules.

        The objective is minus this sum. Blocked documents come after shown documents, both in the
        best order. `keys` order documents with equal scores.
        """
        decoded: list[tuple[Ints, Decoded]] = []
        scores = queries.gather(scores)
        if keys is not None:
            keys = queries.gather(keys)
        for q, own in enumerate(self.of_queries(queries)):
            part = slice(*queries.offsets[q : q + 2])
            u = scores[part]
            phi = np.asarray(discounts(len(u)), dtype=np.float64)
            by_key = np.arange(len(u))  # the place of each document among the keys
            if keys is not None:
                by_key = np.argsort(np.argsort(keys[part], kind="stable"))
            shown = own.shown[np.argsort(by_key[own.shown], kind="stable")]
            ruled = own.permuted(np.searchsorted(own.shown, shown))
            found = _solvers.best_places(u[shown], phi[: own.n], ruled, self.soft, time_limit)
            if found is None:
                raise _contradiction(own, queries.ids[q])
            last = own.blocked[np.lexsort((by_key[own.blocked], -u[own.blocked]))]
            order = np.concatenate([shown[found.order], last])
            of_last = -float(u[last] @ phi[own.n :])
            broken = ruled.broken(found.order) if self.soft is not None else []
            violation = sum(n for _, n in broken)
            value = -float(u[order] @ phi) + (self.soft or 0.0) * violation
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

    def decode_for_loss(
        self, scores: Floats, queries: Queries, loss: Any, keys: Any
    ) -> DecodeResult:
        """Return the best rankings under the rules for the scores that a loss predicts."""
        result = self.decode_scores(scores, queries, _discounts(loss), keys, None)
        if not getattr(loss, "exact_under_rules", True):
            result.optimal &= result.method == "sort"
        return result

    def keep(
        self,
        decoded: list[tuple[Ints, Decoded]],
        matrices_of: Callable[[Ints, int], Floats],
        space: str,
        queries: Queries,
        method: str,
        options: SearchOptions,
        numbers: Ints | None = None,
    ) -> None:
        """Replace, in place, decoded rankings that break rules by the best ones that keep them.

        ``matrices_of(which, r)`` returns the matrices of the queries `which`. Matrices and orders
        number documents by their rows, or by `numbers` (n_rows,), query by query. Up to 16
        documents are decoded by subset dynamic programming. More are decoded by a local search that
        keeps the rules or, for preferences with ``"exact"``, by the linear ordering program.
        """
        own = [one.with_blocked() for one in self.of_queries(queries)]
        if numbers is not None:
            parts = np.split(numbers, queries.offsets[1:-1])
            own = [one.permuted(part) for one, part in zip(own, parts, strict=True)]
        for which, part in decoded:
            part.broken = [[] for _ in which]
            part.violation = np.zeros(len(which), dtype=np.int64)
            binding = [k for k, q in enumerate(which) if not own[q].is_kept_by(part.order[k])]
            matrices = matrices_of(which[binding], part.order.shape[1]) if binding else ()
            for matrix, k in zip(matrices, binding, strict=True):
                rules, objective = own[which[k]], _solvers.OBJECTIVES[space](matrix)
                offset = part.objective[k] - objective.value(part.order[k])
                bound = float(part.lower_bound[k] - offset)
                found = _decode_query(
                    objective, rules, self.soft, method, options, part.order[k], bound
                )
                if found is None:
                    raise _contradiction(rules, queries.ids[which[k]])
                amounts = rules.broken(found.order) if self.soft is not None else []
                part.broken[k] = _texts(amounts)
                part.violation[k] = sum(n for _, n in amounts)
                cost = (self.soft or 0.0) * sum(n for _, n in amounts)
                value = objective.value(found.order) + cost
                part.order[k] = found.order
                part.objective[k] = offset + value
                part.lower_bound[k] = offset + (value if found.proved else min(found.bound, value))
                part.optimal[k] = found.proved
                part.method[k] = found.method

    # ---------------------------------------------------------------- other rules and rows

    @property
    def columns(self) -> list[str]:
        """Names of the columns of X that the rules use."""
        given = [getattr(self, name) for name in PER_ROW] + [quota.of for quota in self.quotas]
        return list(dict.fromkeys(name for name in given if isinstance(name, str)))

    def with_columns(self, table: Mapping[str, Any]) -> Rules:
        """Return the rules with each column name replaced by the column of `table`."""

        def found(value: Any) -> Any:
            return table[value] if isinstance(value, str) else value

        return self._copy(
            **{name: found(getattr(self, name)) for name in PER_ROW},
            quotas=[quota.copy_for(found(quota.of)) for quota in self.quotas],
        )

    def take(self, rows: Ints) -> Rules:
        """Return the rules of `rows`, which are whole queries. Messages keep the row numbers."""
        number = dict(zip(rows.tolist(), range(len(rows)), strict=True))

        def part(value: Any) -> Any:
            return None if value is None else np.asarray(value)[rows]

        own = self._copy(
            **{name: part(getattr(self, name)) for name in PER_ROW},
            before=[(number[a], number[b]) for a, b in self.before if a in number],
            quotas=[quota.copy_for(part(quota.of)) for quota in self.quotas],
        )
        own._rows = rows
        return own

    def relaxed(self) -> dict[str, Rules]:
        """Return rules by name of what they cost: no rules, or all but one parameter or quota."""
        without = {"price": Rules()}
        for name in (*PER_ROW, "before"):
            if not _is_empty(getattr(self, name)):
                without[f"price of {name}"] = self._copy(**{name: () if name == "before" else None})
        for number, quota in enumerate(self.quotas):
            kept = self.quotas[:number] + self.quotas[number + 1 :]
            name = repr(quota)
            if sum(repr(other) == name for other in self.quotas) > 1:
                name = f"quotas[{number}]: {name}"
            without[f"price of {name}"] = self._copy(quotas=kept)
        return without

    def _copy(self, **changes: Any) -> Rules:
        given = {name: getattr(self, name) for name in (*PER_ROW, "before", "quotas", "soft")}
        return Rules(**{**given, **changes})

    def of_queries(self, queries: Queries) -> Iterator[QueryRules]:
        """Yield the rules of each query. Raise ValueError if an array is invalid."""
        named = np.arange(queries.n_rows) if self._rows is None else self._rows
        if self.columns:
            raise ValueError(
                f"The rules name columns ({', '.join(self.columns)}). Columns need a data frame X "
                "passed to predict. Here, pass arrays with one value per row instead."
            )
        n_rows = queries.n_rows
        blocked = _query_rules.read_booleans(self.blocked, "blocked", n_rows)
        given = np.array(
            [_query_rules.read_places(getattr(self, name), name, n_rows) for name in PLACES]
        )
        names = _query_rules.names_of_quotas(self.quotas)
        codes = [
            (quota, name, *_query_rules.group_codes(quota.of, n_rows))
            for quota, name in zip(self.quotas, names, strict=True)
        ]
        pairs = _query_rules.pairs_of_queries(self.before, queries)
        order = np.arange(n_rows) if queries.order is None else queries.order
        for q in range(queries.n_queries):
            rows = order[queries.offsets[q] : queries.offsets[q + 1]]
            shown, hidden = np.flatnonzero(~blocked[rows]), np.flatnonzero(blocked[rows])
            own, n = rows[shown], len(shown)
            place, earliest, latest = given[:, own]
            # first and last places from 0; in the rules, 0 is no rule
            low = np.maximum(np.maximum(place, earliest) - 1, 0)
            high = np.where(latest > 0, np.minimum(latest, n), n)
            high = np.where(place > 0, np.minimum(high, place), high) - 1
            if self.soft is None:
                _query_rules.check_places(
                    queries.ids[q], low, high, place, earliest, latest, named[own]
                )
            found = QueryRules(shown, hidden, low, high, rows=named[own])
            if pairs:
                number = dict(zip(own.tolist(), range(n), strict=True))
                of_query = pairs.get(q, ())
                found.before = [
                    (number[a], number[b]) for a, b in of_query if a in number and b in number
                ]
            for quota, name, code, of_groups in codes:
                found.quotas += _query_rules.quotas_of_query(quota, name, code[own], of_groups, n)
            yield found


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, list | tuple) and not value)


def _discounts(loss: Any) -> Callable[[int], Floats]:
    """Return the discounts of the places that define the best ranking under rules."""
    if hasattr(loss, "discounts"):
        return loss.discounts
    if loss.space == PAIRS or hasattr(loss, "exact_under_rules"):
        # If the preferences are differences of scores, the contradicted weight of a ranking is the
        # sum over documents of score times place, up to a factor and a constant. If they are not,
        # `exact_under_rules` of the loss is False.
        return lambda r: -np.arange(1.0, r + 1.0)
    raise TypeError(
        f"{type(loss).__name__} on scores has no discounts of places, so scores do not determine "
        "the best ranking under rules. Losses that support rules are 'ndcg', 'dcg', 'precision', "
        "'recall', 'eru', 'auc', 'spearman', 'pd' and 'map'."
    )


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
    if rules.n <= _solvers.SUBSET_SIZE:
        return _solvers.best_of_subsets(objective, rules, soft)
    exact = method == "exact"
    if exact and rules.n > _solvers.EXACT_SIZE and options.time_limit is None:
        raise ValueError(
            f"A query has {rules.n} documents. Under rules, 'exact' supports at most "
            f"{_solvers.EXACT_SIZE} without a time_limit. 'local_search' supports any number."
        )
    # start from the order that keeps the rules and is nearest to the best one without rules
    nearest = np.empty(rules.n)
    nearest[order] = -np.arange(rules.n)
    start = _nearest(nearest, rules, soft)
    if start is None:
        return None
    limit = options.time_limit
    deadline = None if limit is None else time.monotonic() + limit
    best = _solvers.best_of_search(
        objective, rules, soft, start, _N_PERTURBATIONS, options.seed, deadline
    )
    value = objective.value(best) + (soft or 0.0) * rules.violation(best)
    # rounding can hide a proof, but cannot make a false one
    found = Found(best, bound, value <= bound, "local_search")
    if exact and not found.proved and isinstance(objective, _solvers.Disagreement):
        solved = _solvers.best_linear_order(objective, rules, soft, limit)
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
    found = _solvers.best_places(
        scores[part.shown], by_place, part, None if soft is None else 1.0, None
    )
    if found is None:
        return None
    last = part.blocked[np.argsort(-scores[part.blocked], kind="stable")]
    return np.concatenate([part.shown[found.order], last])


def _contradiction(rules: QueryRules, query: object) -> ContradictoryRulesError:
    shown = rules.without_blocked()
    zeros = np.zeros(shown.n)

    def feasible(some: QueryRules) -> bool:
        return _solvers.best_places(zeros, zeros, some, None, None) is not None

    return ContradictoryRulesError(query, _solvers.contradiction(shown, feasible))
