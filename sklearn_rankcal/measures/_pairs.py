"""Measures of pairs: the weight of the preferences that a ranking contradicts, and Kendall's tau.

A ranking comes in, with the relevance of every row or with `Preferences` between rows, and one
value per query comes out. A ranking contradicts a preference for document i over document j if it
puts j above i.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.labels._rankings import PairWeight, check_pair_weight, weigh_pairs
from sklearn_rankcal.measures._base import Measure, divide
from sklearn_rankcal.measures._discordant import discordant_weight, preference_weight
from sklearn_rankcal.queries import Queries, Ranking


@dataclass(frozen=True, kw_only=True)
class _PairwiseMeasure(Measure):
    """Base class of the measures of pairs.

    Parameters
    ----------
    pair_weight : {"binary", "graded"} or callable, default="binary"
        Weight of the preference for document i over document j where y_i > y_j: 1, y_i - y_j, or
        ``pair_weight(y_i - y_j)``. Labels that are `Preferences` have weights of their own.
    """

    takes_preferences = True

    pair_weight: PairWeight = "binary"

    def check(self, labels: Any) -> None:
        check_pair_weight(self.pair_weight)

    def total(self, labels: Any, queries: Queries) -> NDArray[np.float64]:
        """The weight of all preferences of each query."""
        return total_weight(labels, queries, self.pair_weight)

    def contradicted(self, ranking: Ranking, labels: Any) -> NDArray[np.float64]:
        """The weight of the preferences of each query that the ranking contradicts."""
        return contradicted_weight(ranking, labels, self.pair_weight)

    def share(self, ranking: Ranking, labels: Any) -> NDArray[np.float64]:
        """The share of the preference weight of each query that the ranking contradicts.

        It is NaN for a query without a preference.
        """
        # Only graded weights are scaled: binary weights just compare labels, and scaling could
        # round two small labels to a tie.
        if isinstance(self.pair_weight, str) and self.pair_weight == "graded":
            if not isinstance(labels, Preferences):
                labels = scaled_labels(labels, ranking.queries)
        lost = self.contradicted(ranking, labels)
        return divide(lost, self.total(labels, ranking.queries))


@dataclass(frozen=True, kw_only=True)
class PairwiseDisagreement(_PairwiseMeasure):
    """Pairwise disagreement: the weight of the preferences that a ranking contradicts.

    Smaller values are better.

    Parameters
    ----------
    pair_weight : {"binary", "graded"} or callable, default="binary"
        Weight of the preference for document i over document j where y_i > y_j: 1, y_i - y_j, or
        ``pair_weight(y_i - y_j)``. Labels that are `Preferences` have weights of their own.
    normalize : bool, default=True
        Whether to divide by the weight of all preferences of the query.

    Notes
    -----
    With `normalize` the measure is undefined for a query without a preference; otherwise it is 0
    there. A preference between documents whose scores tie counts half.
    """

    greater_is_better = False

    normalize: bool = True

    def defined(self, labels: Any, queries: Queries) -> NDArray[np.bool_]:
        if not self.normalize:
            return super().defined(labels, queries)
        return self.total(labels, queries) > 0

    def per_query(self, ranking: Ranking, labels: Any) -> NDArray[np.float64]:
        return self.share(ranking, labels) if self.normalize else self.contradicted(ranking, labels)


class PairwiseAgreement(_PairwiseMeasure):
    """Pairwise agreement: the share of the preference weight that a ranking does not contradict.

    It is 1 minus the normalized `PairwiseDisagreement`, so that larger values are better.

    Parameters
    ----------
    pair_weight : {"binary", "graded"} or callable, default="binary"
        Weight of a preference, as in `PairwiseDisagreement`.

    Notes
    -----
    The measure is undefined for a query without a preference. A preference between documents whose
    scores tie counts half.
    """

    def defined(self, labels: Any, queries: Queries) -> NDArray[np.bool_]:
        return self.total(labels, queries) > 0

    def per_query(self, ranking: Ranking, labels: Any) -> NDArray[np.float64]:
        return 1 - self.share(ranking, labels)


class KendallTau(PairwiseAgreement):
    """Kendall's tau: 1 - 2 times the share of the preference weight that a ranking contradicts.

    Parameters
    ----------
    pair_weight : {"binary", "graded"} or callable, default="binary"
        Weight of a preference, as in `PairwiseDisagreement`.

    Notes
    -----
    The measure is undefined for a query without a preference. A preference between documents whose
    scores tie counts half of its weight as contradicted. Equal labels imply no preference, so that
    the value 1 can also be reached if labels tie.
    """

    def per_query(self, ranking: Ranking, labels: Any) -> NDArray[np.float64]:
        return 1 - 2 * self.share(ranking, labels)


def total_weight(labels: Any, queries: Queries, pair_weight: PairWeight) -> NDArray[np.float64]:
    """The weight of all preferences of each query."""
    if isinstance(labels, Preferences):
        return labels.total()
    if callable(pair_weight):
        return _weight_by_pairs(labels, queries, pair_weight, None)
    with np.errstate(over="ignore", invalid="ignore"):
        return _finite(preference_weight(queries, labels, pair_weight == "graded"), queries)


def contradicted_weight(
    ranking: Ranking, labels: Any, pair_weight: PairWeight
) -> NDArray[np.float64]:
    """The weight of the preferences of each query that the ranking contradicts.

    A preference between tied rows counts half.
    """
    queries = ranking.queries
    if isinstance(labels, Preferences):
        i, j = labels.winner, labels.loser
        # the place of each row; for tied rows it is the first place of their block
        place = np.empty(queries.n_rows, dtype=np.int64)
        place[ranking.order] = queries.place if ranking.start is None else ranking.start
        share = (np.sign(place[i] - place[j]) + 1) / 2
        lost = np.bincount(queries.codes[i], labels.weight * share, queries.n_queries)
        return lost.astype(np.float64, copy=False)
    if not callable(pair_weight):
        with np.errstate(over="ignore", invalid="ignore"):
            return _finite(discordant_weight(ranking, labels, pair_weight == "graded"), queries)
    if ranking.start is not None:
        # a tied pair adds nothing in the first of these orders and all its weight in the second
        best = contradicted_weight(ranking.break_ties(-labels), labels, pair_weight)
        worst = contradicted_weight(ranking.break_ties(labels), labels, pair_weight)
        return (best + worst) / 2
    return _weight_by_pairs(labels, queries, pair_weight, queries.rank(ranking.order))


def _weight_by_pairs(
    relevance: NDArray[np.float64],
    queries: Queries,
    pair_weight: PairWeight,
    ranks: NDArray[np.int64] | None,
) -> NDArray[np.float64]:
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


def scaled_labels(relevance: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
    """Divide the labels of a query by a power of two if their sums would overflow or lose digits.

    Only queries whose largest absolute label is at least 2^500 or below 2^-500 are scaled. In the
    latter, half of a difference may be too small to be stored. The ratios of weights of one query
    do not change.
    """
    largest = queries.max(np.abs(relevance))
    extreme = (largest > 0) & ((largest >= 2.0**500) | (largest < 2.0**-500))
    if not extreme.any():
        return relevance
    exponent = np.where(extreme, np.frexp(largest)[1], 0)
    return np.ldexp(relevance, -queries.broadcast(exponent))


def _finite(weight: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
    """Return the sums of weights, or raise an error if one of them has overflowed."""
    if not np.isfinite(weight).all():
        q = int(np.argmin(np.isfinite(weight)))
        raise ValueError(
            f"The differences of the labels of query {queries.ids[q]!r} add up to more than the "
            "largest number that can be stored. Divide the labels by a constant."
        )
    return weight
