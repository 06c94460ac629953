"""Reports of a fitted ranker: proofs of decoders, and `Diagnosis`, with regret bounds."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.decoders import DecodeResult, PreferenceDecoder
from sklearn_rankcal.decoders._batches import not_a_result
from sklearn_rankcal.labels._labels import agreed_queries, is_structured, take_labels
from sklearn_rankcal.losses import Loss
from sklearn_rankcal.losses._average_precision import reinforce_violations
from sklearn_rankcal.losses._pairs import score_violations
from sklearn_rankcal.queries import Queries, interval_of_mean
from sklearn_rankcal.rankers._input import read_labelled, read_queries
from sklearn_rankcal.rankers._predict import decode_under_rules, predicted_pairs
from sklearn_rankcal.targets import PAIRS, Space, flat_targets
from sklearn_rankcal.utils import _memory, _messages
from sklearn_rankcal.utils._numbers import Bools, Floats, read_array

#: Predictions for pairs count as 0 up to this fraction of the largest one of their query.
TOL = 1e-9
#: Label of each certificate in the text and in the plot.
_SHARES = {
    "acyclic": "predicted preferences are acyclic",
    "scores_suffice": "sorting by scores would be enough",
    "optimal": "the ranking is proved to be the best for its predictions",
}


@dataclass(repr=False)
class Diagnosis:
    """Certificates and regret bounds for predicted rankings.

    `CalibratedRanker.diagnose` returns it. ``print`` shows a summary (:ref:`diagnosis`).

    Attributes
    ----------
    loss : Loss
        The loss of the ranker.
    per_query : dict of ndarray of shape (n_queries,)
        The columns ``query`` and ``n_documents``, and some of the following.

        - For losses on pairs: the columns of `CalibratedRanker.decode_report`, and
          ``scores_suffice``, whether the predictions satisfy the condition under which sorting by
          scores is optimal: P_f with net Borda scores for ``"pd"`` (Ramaswamy et al., 2013, theorem
          6), and P_reinforce for ``"map"`` (theorem 4).
        - For ``"pd"``: ``acyclic``, whether the predicted preferences have no cycle (theorem 7).
        - With labels: ``squared_error``, an estimate of the squared distance between the
          predictions and the expected targets (NaN if the loss is undefined), and
          ``squared_bound``, which is the squared `Loss.regret_constant` times ``squared_error``.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn_rankcal import CalibratedRanker
    >>> from sklearn_rankcal.datasets import make_ranking
    >>> data = make_ranking(n_queries=60, random_state=0)
    >>> train, test = data.groups < 40, data.groups >= 40
    >>> ranker = CalibratedRanker(Ridge(), loss="ndcg")
    >>> ranker = ranker.fit(data.X[train], data.y[train], groups=data.groups[train])
    >>> diagnosis = ranker.diagnose(data.X[test], data.groups[test], y=data.y[test])
    >>> bool(diagnosis.regret_bound > diagnosis.regret_estimate > 0)
    True
    >>> diagnosis.to_frame().columns.tolist()
    ['query', 'n_documents', 'squared_error', 'squared_bound']
    """

    loss: Loss
    per_query: dict[str, NDArray[Any]]

    @property
    def shares(self) -> dict[str, float]:
        """Fraction of the queries with two or more documents that have each certificate."""
        several = self.per_query["n_documents"] > 1
        return {
            name: float(self.per_query[name][several].mean())
            for name in _SHARES
            if name in self.per_query and several.any()
        }

    @property
    def regret_bound(self) -> float:
        """Upper bound on the expected regret of a query, with about 95 % confidence.

        It is sqrt(mean squared bound) + mean gap. Each mean is replaced by the upper end of its
        approximate one-sided 95 % confidence interval over queries. The bound is too small if a few
        rare labels cause most of the error. The unit is the measure, or preference weight for
        ``"pd"``. Queries with an undefined loss do not count. NaN without labels.
        """
        return self._bound(lambda values: interval_of_mean(values, 0.9)[1])

    @property
    def regret_estimate(self) -> float:
        """The formula of `regret_bound` with the means themselves. It is not a bound."""
        return self._bound(np.mean)

    def _bound(self, mean: Callable[[Floats], Any]) -> float:
        squares = self.per_query.get("squared_bound", np.array([np.nan]))
        kept = ~np.isnan(squares)
        if not kept.any():
            return np.nan
        gaps = self.per_query["gap"][kept] if "gap" in self.per_query else np.zeros(kept.sum())
        return float(np.sqrt(max(mean(squares[kept]), 0.0)) + mean(gaps))

    def to_frame(self) -> Any:
        """Convert `per_query` to a pandas data frame with one row per query.

        Returns
        -------
        frame : pandas.DataFrame of shape (n_queries, n_columns)
        """
        import pandas as pd

        return pd.DataFrame(self.per_query)

    def __repr__(self) -> str:
        sizes = self.per_query["n_documents"]
        lines = [
            f"Diagnosis of {_messages.counted(len(sizes), 'query')} of {sizes.min()} to "
            f"{_messages.counted(sizes.max(), 'document')} for {self.loss!r}"
        ]
        lines += [f"  {share:6.1%}  {_SHARES[name]}" for name, share in self.shares.items()]
        if "gap" in self.per_query:
            gap = self.per_query["gap"]
            lines.append(f"  largest gap to the best ranking of the predictions: {gap.max():.3g}")
        if self.loss.regret_constant(2) is None:
            lines.append(f"  no regret bound: calibrated over {self.loss.calibrated_over}")
        elif np.isfinite(self.regret_bound):
            lines += [
                f"  expected regret at most {self.regret_bound:.3g}, with about 95 % confidence "
                f"(estimate of the bound {self.regret_estimate:.3g})",
                "  (it includes the noise of labels, unless each row has several labels)",
            ]
        return "\n".join(lines)

    def plot(self, axes: Any = None) -> Any:
        """Plot `shares`, and the bound of each query against its number of documents.

        Without labels, the gap of each query replaces the bound.

        Parameters
        ----------
        axes : sequence of two matplotlib axes, default=None
            Axes to draw on. None creates a new figure.

        Returns
        -------
        axes : ndarray of two matplotlib axes
            The axes with the plots.
        """
        # matplotlib is optional
        from sklearn_rankcal.utils._axes import make_axes, place_legend

        if axes is None:
            axes = make_axes(1, 2, figsize=(9, 3))
        left, right = axes
        shares = self.shares
        if shares:
            # short lines leave most of the width to the bars
            texts = [textwrap.fill(_SHARES[name], 24) for name in shares]
            bars = left.barh(texts, [100 * share for share in shares.values()])
            left.bar_label(bars, fmt="%.1f", padding=2)
            left.invert_yaxis()
            left.set(xlim=(0, 140), xticks=[0, 50, 100], xlabel="% of queries")
        else:
            sorts = "gap" not in self.per_query
            text = "every ranking sorts scores,\nwhich is best for its predictions"
            text = text if sorts else "no query has two documents"
            left.text(0.5, 0.5, text, ha="center", va="center", transform=left.transAxes)
            left.axis("off")
        sizes = self.per_query["n_documents"]
        right.set_xlim(sizes.min() - 1, sizes.max() + 1)
        right.xaxis.get_major_locator().set_params(integer=True)
        if "squared_bound" in self.per_query:
            bounds = np.sqrt(np.maximum(self.per_query["squared_bound"], 0.0))
            right.plot(sizes, bounds, ".", alpha=0.5, label="one query")
            right.axhline(self.regret_bound, color="black", label="bound on the expected regret")
            right.set(xlabel="documents", ylabel="constant x distance\nto the labels")
            place_legend(right)
        elif "gap" in self.per_query:
            right.plot(sizes, self.per_query["gap"], ".", alpha=0.5)
            right.set(xlabel="documents", ylabel="gap to the best ranking")
        return axes


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


def rounding_slack(u: Floats, queries: Queries, space: Space) -> Floats:
    """Return the size up to which predictions of each query count as 0: `TOL` * largest."""
    largest = np.zeros(queries.n_queries)
    np.maximum.at(largest, space.owners(queries), np.abs(u))
    return TOL * largest


def scores_suffice(u: Floats, queries: Queries, space: Space) -> Bools:
    """Return for each query whether sorting by scores is optimal for its predictions.

    For differences of pairs, check P_f with net Borda scores in O(sum r^2). For products, check
    P_reinforce in O(sum r^3).
    """
    holds = np.ones(queries.n_queries, dtype=bool)
    slacks = rounding_slack(u, queries, space)
    starts = np.append(0, np.cumsum(space.n_entries(queries.sizes)))
    for r in np.unique(queries.sizes[queries.sizes > 1]):
        member = np.flatnonzero(queries.sizes == r)
        entries = np.arange(space.n_entries(int(r)))
        step = _memory.rows_per_block(8 * int(r) ** (3 if space.symmetric else 2))
        for first in range(0, len(member), step):
            some = member[first : first + step]
            flat = u[starts[some][:, None] + entries]
            slack = slacks[some][:, None, None]
            matrices = space.matrices(flat, int(r))
            if space.symmetric:
                violated = reinforce_violations(matrices, slack, slack)
            else:
                violated = score_violations(matrices, matrices.sum(axis=2), slack, slack)
            holds[some] = ~violated.any(axis=(1, 2))
    return holds


def squared_errors(loss: Loss, u: Floats, labels: list[Any], queries: Queries) -> Floats:
    """Return an unbiased estimate of ||u - E[targets]||^2 per query, NaN without targets.

    It ignores directions that no ranking depends on, and subtracts the variance of the mean of m
    labels. With m = 1, this variance is unknown and nothing is subtracted.
    """
    targets = np.stack([_flat(loss, label, queries) for label in labels])
    owner = loss.space.owners(queries)
    defined = np.stack([loss.defined(label, queries) for label in labels])
    m = defined.sum(axis=0)  # labels of each query on which the loss is defined
    kept = defined[:, owner]
    mean = np.where(kept, targets, 0.0).sum(axis=0) / np.maximum(m, 1)[owner]
    rest = loss.space.remove_constants(u - mean, queries)
    # Sum of ||target - mean||^2 over the m labels. Divided by m (m - 1), it estimates the variance
    # of the mean, which is the average excess of ||u - mean||^2 over ||u - E[targets]||^2.
    noise = sum(
        np.bincount(
            owner,
            loss.space.remove_constants(np.where(keep, target - mean, 0.0), queries) ** 2,
            queries.n_queries,
        )
        for target, keep in zip(targets, kept, strict=True)
    )
    squares = np.bincount(owner, rest**2, queries.n_queries).astype(np.float64)
    squares -= np.where(m > 1, noise / np.maximum(m * (m - 1), 1), 0.0)
    return np.where(m > 0, squares, np.nan)


def _flat(loss: Loss, labels: Any, queries: Queries) -> Floats:
    """Return the targets in grouped layout, query by query."""
    targets = flat_targets(loss.encode(labels, queries))
    return targets if loss.space.is_pairwise else queries.gather(targets)
