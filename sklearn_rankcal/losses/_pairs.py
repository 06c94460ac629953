"""Pairwise disagreement: its surrogate predictions are differences of all pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal._pair_targets import (
    PairTargets,
    PreferenceDifferences,
    RelevanceDifferences,
    square_chunks,
)
from sklearn_rankcal._queries import Queries
from sklearn_rankcal._ranked import Ranked, discordant_weight, preference_weight
from sklearn_rankcal.labels._preferences import Preferences
from sklearn_rankcal.labels._rankings import weighing
from sklearn_rankcal.losses._base import Loss

Floats = NDArray[np.float64]
H = str | Callable[[Floats], Floats]


class _Disagreement(Loss):
    """What the losses of pairwise disagreement share: preferences from relevance, the measure."""

    h: H
    normalize: bool
    takes_preferences = True

    def check(self, relevance: Floats) -> None:
        weighing(self.h)
        super().check(relevance)

    def differences(self, labels: Any, queries: Queries) -> PairTargets:
        """t_ij = y_ij - y_ji of all pairs; divided by the query's total weight if `normalize`."""
        factor = np.ones(queries.n_queries)
        if self.normalize:
            total = self.total(labels, queries)
            factor /= np.where(total > 0, total, 1.0)
        if isinstance(labels, Preferences):
            return PreferenceDifferences(labels, factor)
        return RelevanceDifferences(labels, queries, self.h, factor)

    def total(self, labels: Any, queries: Queries) -> Floats:
        """Preference weight of each query."""
        if isinstance(labels, Preferences):
            return labels.total()
        if callable(self.h):
            return self._weight(labels, queries, None)
        return preference_weight(queries, labels, self.h == "graded")

    def _weight(self, relevance: Floats, queries: Queries, ranks: NDArray[Any] | None) -> Floats:
        """Total weight of the preferences, or of those that ranks contradict. O(sum r^2)."""
        targets = RelevanceDifferences(relevance, queries, self.h, np.ones(queries.n_queries))
        placed = None if ranks is None else queries.gather(ranks)
        total = np.zeros(queries.n_queries)
        owner = np.repeat(np.arange(queries.n_queries), queries.sizes)
        for inside, valid in square_chunks(queries):
            weight = np.maximum(targets.matrices(inside, valid), 0.0)
            if placed is not None:
                place = placed[inside]
                weight *= place[:, :, None] > place[:, None, :]
            total[owner[inside[:, 0]]] = weight.sum(axis=(1, 2))
        return total

    def defined(self, relevance: Any, queries: Queries) -> NDArray[np.bool_]:
        return self.total(relevance, queries) > 0

    def lost(self, ranked: Ranked, relevance: Any) -> Floats:
        """Preference weight of each query that the ranking contradicts; a tied pair costs half."""
        if isinstance(relevance, Preferences):
            ranks = ranked.queries.rank(ranked.order)
            contradicted = ranks[relevance.winner] > ranks[relevance.loser]
            owner = ranked.queries.codes[relevance.winner]
            lost = np.bincount(owner, relevance.weight * contradicted, ranked.queries.n_queries)
            return lost.astype(np.float64, copy=False)
        if not callable(self.h):
            return discordant_weight(ranked, relevance, self.h == "graded")
        if ranked.start is not None:  # it costs 0 in one of these orders and 1 in the other
            best = self.lost(ranked.broken_by(-relevance), relevance)
            return (best + self.lost(ranked.broken_by(relevance), relevance)) / 2
        return self._weight(relevance, ranked.queries, ranked.queries.rank(ranked.order))

    def measure(self, ranked: Ranked, relevance: Any) -> Floats:
        total = self.total(relevance, ranked.queries)
        share = self.lost(ranked, relevance) / np.where(total > 0, total, 1.0)
        return np.where(total > 0, 1.0 - share, np.nan)

    def goal(self, ranked: Ranked, relevance: Any) -> Floats:
        """Minus the weight lost, which is what the targets without `normalize` are made for."""
        return self.measure(ranked, relevance) if self.normalize else -self.lost(ranked, relevance)


class PD(_Disagreement):
    """Pairwise disagreement: the preference weight that a ranking contradicts.

    Parameters
    ----------
    h : "binary", "graded" or callable, default="binary"
        Weight of the preference for i over j where y_i > y_j: 1, y_i - y_j, or h(y_i - y_j). Not
        used with `preference_labels`, which have weights of their own.
    normalize : bool, default=False
        Divide a query's preferences by their total weight, so that every query counts alike.

    Notes
    -----
    Targets: the r(r-1)/2 differences y_ij - y_ji of a query, i < j. The measure is
    1 - PD / total weight, undefined without a preference (such a query is left out of `fit`). The
    targets without `normalize` are made for the weight lost, PD itself. Least squares on the
    targets, decoded exactly, is calibrated for every distribution (P1, theorem 3); decoded by
    ``"greedy_dag"``, where expected preferences are acyclic (P1, theorem 7). With binary labels, or
    ``h="graded"``, sorting by E[y_i] is enough, and `PDByScores` is the cheaper choice.
    """

    space = "pairs"
    default_decoder = "auto"
    calibrated_over = "every distribution, decoded exactly (P1, theorem 3)"

    def __init__(self, h: H = "binary", *, normalize: bool = False) -> None:
        self.h = h
        self.normalize = normalize

    def encode(self, relevance: Any, queries: Queries) -> PairTargets:
        """Differences of all pairs, made when asked for."""
        return self.differences(relevance, queries)


class PDByScores(_Disagreement):
    """Pairwise disagreement, ranked by scores: a document's mean net preference is its target.

    Parameters
    ----------
    h : "binary", "graded" or callable, default="binary"
        Weight of a preference, as in `PD`.
    normalize : bool, default=False
        Divide a query's preferences by their total weight.

    Notes
    -----
    Targets: sum_j (y_ij - y_ji) / r, the net Borda score over the size of the query (Duchi, Mackey
    and Jordan 2010). The size is known before any label, so it changes no ranking; without it the
    largest queries would rule the regression. Calibrated over the distributions of P_f (P1,
    theorem 6): E[Y_ij] > E[Y_ji] implies a larger expected target for i. Not beyond:
    with single preferences 1 > 2, 2 > 1, 2 > 3, 1 > 3, 3 > 1 of probability .20, .10, .36, .24, .10
    it puts 2 first, and the best ranking puts 1 first.
    """

    calibrated_everywhere = False
    calibrated_over = (
        "the distributions of P_f (P1, theorem 6): E[Y_ij] > E[Y_ji] implies "
        "E[f_i(Y)] > E[f_j(Y)], f the net Borda score"
    )

    def __init__(self, h: H = "binary", *, normalize: bool = False) -> None:
        self.h = h
        self.normalize = normalize

    def encode(self, relevance: Any, queries: Queries) -> Floats:
        return self.differences(relevance, queries).row_sums() / queries.broadcast(queries.sizes)
