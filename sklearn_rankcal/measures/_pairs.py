"""Measures of pairs: the weight of the preferences that a ranking contradicts, and Kendall's tau.

A ranking contradicts a preference for document i over document j if it puts j above i. A preference
between documents whose scores tie counts half.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.labels._rankings import PairWeight, check_pair_weight, weigh_pairs
from sklearn_rankcal.measures._base import Floats, Measure, divide
from sklearn_rankcal.measures._discordant import discordant_weight, preference_weight
from sklearn_rankcal.queries import Queries, Ranking


@dataclass(frozen=True, kw_only=True)
class PairwiseMeasure(Measure):
    """Base class of the measures of pairs.

    `pair_weight` is the weight of the preference for document i over document j where y_i > y_j: 1,
    y_i - y_j, or ``pair_weight(y_i - y_j)``. Labels that are `Preferences` have their own weights.
    """

    takes_preferences = True

    pair_weight: PairWeight = "binary"

    def check(self, labels: Any) -> None:
        check_pair_weight(self.pair_weight)

    def defined(self, labels: Any, queries: Queries) -> NDArray[np.bool_]:
        return self.total(labels, queries) > 0

    def total(self, labels: Any, queries: Queries) -> Floats:
        """The weight of all preferences of each query."""
        if isinstance(labels, Preferences):
            return labels.total()
        if callable(self.pair_weight):
            return _weight_by_pairs(labels, queries, self.pair_weight, None)
        return preference_weight(queries, labels, self.pair_weight == "graded")

    def contradicted(self, ranking: Ranking, labels: Any) -> Floats:
        """The weight of the preferences of each query that the ranking contradicts."""
        queries = ranking.queries
        if isinstance(labels, Preferences):
            i, j = labels.winner, labels.loser
            # the place of each row; for tied rows it is the first place of their block
            place = np.empty(queries.n_rows, dtype=np.int64)
            place[ranking.order] = queries.place if ranking.start is None else ranking.start
            share = (np.sign(place[i] - place[j]) + 1) / 2
            lost = np.bincount(queries.codes[i], labels.weight * share, queries.n_queries)
            return lost.astype(np.float64, copy=False)
        if not callable(self.pair_weight):
            return discordant_weight(ranking, labels, self.pair_weight == "graded")
        if ranking.start is not None:
            # a tied pair adds nothing in the first of these orders and all its weight in the second
            best = self.contradicted(ranking.break_ties(-labels), labels)
            return (best + self.contradicted(ranking.break_ties(labels), labels)) / 2
        return _weight_by_pairs(labels, queries, self.pair_weight, queries.rank(ranking.order))

    def share(self, ranking: Ranking, labels: Any) -> Floats:
        """The share of the weight of each query that is contradicted, NaN without a preference."""
        return divide(self.contradicted(ranking, labels), self.total(labels, ranking.queries))


@dataclass(frozen=True, kw_only=True)
class PairwiseDisagreement(PairwiseMeasure):
    """Pairwise disagreement: the weight of the preferences that a ranking contradicts.

    With `normalize` it is divided by the weight of all preferences of the query, so that it is
    undefined for a query without a preference; otherwise it is 0 there.
    """

    greater_is_better = False

    normalize: bool = True

    def defined(self, labels: Any, queries: Queries) -> NDArray[np.bool_]:
        if not self.normalize:
            return np.ones(queries.n_queries, dtype=bool)
        return super().defined(labels, queries)

    def per_query(self, ranking: Ranking, labels: Any) -> Floats:
        return self.share(ranking, labels) if self.normalize else self.contradicted(ranking, labels)


class PairwiseAgreement(PairwiseMeasure):
    """Pairwise agreement: the share of the preference weight that a ranking does not contradict."""

    def per_query(self, ranking: Ranking, labels: Any) -> Floats:
        return 1 - self.share(ranking, labels)


class KendallTau(PairwiseMeasure):
    """Kendall's tau: 1 - 2 times the share of the preference weight that a ranking contradicts."""

    def per_query(self, ranking: Ranking, labels: Any) -> Floats:
        return 1 - 2 * self.share(ranking, labels)


def _weight_by_pairs(
    relevance: Floats,
    queries: Queries,
    pair_weight: PairWeight,
    ranks: NDArray[np.int64] | None,
) -> Floats:
    """The weight of all preferences of each query, or of those that `ranks` contradict.

    The cost is O(sum of r^2) for queries of r documents. Blocks of pairs bound the memory.
    """
    value = queries.gather(relevance)
    place = None if ranks is None else queries.gather(ranks)
    total = np.zeros(queries.n_queries)
    owner = np.repeat(np.arange(queries.n_queries), queries.sizes)
    for inside, valid in queries.pair_blocks():
        weight = weigh_pairs(value[inside], valid, pair_weight)
        if place is not None:
            weight *= place[inside][:, :, None] > place[inside][:, None, :]
        total[owner[inside[:, 0]]] = weight.sum(axis=(1, 2))
    return total
