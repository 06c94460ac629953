"""Reports of a fitted ranker: proofs of decoders, and regret bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.decoders import DecodeResult, PreferenceDecoder
from sklearn_rankcal.decoders._batches import not_a_result
from sklearn_rankcal.labels._labels import take_labels
from sklearn_rankcal.labels._relevance import agreed_queries, is_structured
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.rankers._diagnosis import (
    Diagnosis,
    rounding_slack,
    scores_suffice,
    squared_errors,
)
from sklearn_rankcal.rankers._input import read_labelled, read_queries
from sklearn_rankcal.rankers._predict import decode_under_rules, predicted_pairs
from sklearn_rankcal.targets import PAIRS
from sklearn_rankcal.utils._numbers import read_array


def decode_report(
    ranker: Any,
    X: Any,
    queries: Queries,
    more: Callable[[NDArray[np.int64], Queries, NDArray[np.float64]], dict[str, Any]] | None = None,
) -> dict[str, NDArray[Any]]:
    """Return the report of the decoder for each query, with additional columns of `more`."""
    parts: dict[str, list[NDArray[Any]]] = {}
    for rows, part, u in predicted_pairs(ranker, X, queries):
        result = ranker.decoder_.decode(u, part, n_jobs=ranker.n_jobs)
        if not hasattr(result, "ranks"):
            raise not_a_result(ranker.decoder_, result)
        columns = {
            "objective": result.objective,
            "lower_bound": result.lower_bound,
            "gap": result.gap,
            "optimal": result.optimal,
            "method": result.method,
        }
        if ranker.loss_.space == PAIRS:
            threshold = result.threshold
            if threshold is None:
                greedy = PreferenceDecoder("greedy_dag", order="topological")
                threshold = greedy.decode(u, part).threshold
            columns["cyclic"] = threshold > rounding_slack(u, part, PAIRS)
        for name, column in (columns | (more(rows, part, u) if more else {})).items():
            parts.setdefault(name, []).append(column)
    report = {"query": queries.ids, "n_documents": queries.sizes}
    return report | {name: np.concatenate(columns) for name, columns in parts.items()}


def rules_report(ranker: Any, X: Any, queries: Queries, rules: Any) -> dict[str, NDArray[Any]]:
    """Return what the rules, and each of them, add to the expected loss of each query."""

    def loss(result: DecodeResult) -> NDArray[np.float64]:
        value: NDArray[np.float64] = result.objective - (rules.soft or 0.0) * result.violation
        return value

    ruled = decode_under_rules(ranker, X, queries, rules)
    prices = {
        name: loss(ruled) - loss(decode_under_rules(ranker, X, queries, others))
        for name, others in rules.relaxed().items()
    }
    broken = np.empty(queries.n_queries, dtype=object)
    broken[:] = ruled.broken
    report = {
        "query": queries.ids,
        "n_documents": queries.sizes,
        "price": prices["price"],
        "optimal": ruled.optimal,
        "method": ruled.method,
        "violation": ruled.violation,
        "broken": broken,
    }
    return report | prices


def diagnose(ranker: Any, X: Any, groups: ArrayLike | None, y: Any) -> Diagnosis:
    """Create a `Diagnosis`.

    By theorem 3 of Ramaswamy et al. (2013), the regret of a query is at most c ||u - u*|| + gap,
    where u* are the conditional expectations of the targets and c is `Loss.regret_constant`. For
    ``"map"``, it takes an additional O(sum of r^3) time.
    """
    loss = ranker.loss_
    labels: list[Any] = []
    if y is None:
        X, queries = read_queries(ranker, X, groups)
    else:
        judges = [y]
        if isinstance(y, list | tuple) and y and all(is_structured(one) for one in y):
            judges = list(y)
        elif not is_structured(y) and np.ndim(y) == 2:
            judges = list(read_array(y, "y").T)
        if not judges:
            raise ValueError("y has no columns. Pass labels, or y=None.")
        X, read, queries = read_labelled(ranker, X, judges[0], groups)
        labels = [read]
        for other in judges[1:]:
            read, of_labels = loss.read(other, queries.n_rows)
            agreed_queries(queries, of_labels)
            labels.append(read)
        for read in labels:
            loss.check(read)
    bounded = bool(labels) and ranker._learns_targets and loss.regret_constant(2) is not None

    def more(
        rows: NDArray[np.int64], part: Queries, u: NDArray[np.float64]
    ) -> dict[str, NDArray[Any]]:
        columns: dict[str, NDArray[Any]] = {"scores_suffice": scores_suffice(u, part, loss.space)}
        if bounded:
            own = [take_labels(label, rows, part) for label in labels]
            columns["squared_error"] = squared_errors(loss, u, own, part)
        return columns

    if loss.space.is_pairwise:
        columns = decode_report(ranker, X, queries, more)
        if "cyclic" in columns:
            columns["acyclic"] = ~columns.pop("cyclic")
    else:
        columns = {"query": queries.ids, "n_documents": queries.sizes}
        if bounded:
            scores = queries.gather(ranker.model_.predict(X, queries))
            columns["squared_error"] = squared_errors(loss, scores, labels, queries)
    if bounded:
        sizes, place = np.unique(queries.sizes, return_inverse=True)
        constants = np.array([loss.regret_constant(int(r)) for r in sizes])
        columns["squared_bound"] = constants[place] ** 2 * columns["squared_error"]
    return Diagnosis(loss, columns)
