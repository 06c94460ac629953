"""The measure Spearman's rank correlation between the ranking and the order of the labels.

It is a positional measure: the utility of a document is its standardized midrank, and the discount
of place j is -j. A ranking and its labels come in; the correlation of every query comes out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.measures._positional import PositionalMeasure
from sklearn_rankcal.queries import Queries, Ranking


def position_scale(sizes: Any) -> Any:
    """r times the standard deviation of the positions 1 .. r of a query of r documents.

    For r = 1, where Spearman's rho is undefined, it is 1.
    """
    return np.where(np.asarray(sizes) > 1, sizes * np.sqrt((np.square(sizes) - 1) / 12), 1.0)


class Spearman(PositionalMeasure):
    """Spearman's rank correlation between the ranking and the order of the labels.

    Equal labels share the mean of their positions, which is called their midrank. The measure is
    Pearson's correlation of midranks with positions, as in `scipy.stats.spearmanr`.

    Notes
    -----
    The measure is undefined for a query in which all labels are equal. Where scores tie, the value
    is the mean over the orders of the tied documents, which is not the correlation of two sets of
    midranks.
    """

    def standardized_midranks(
        self, relevance: NDArray[np.float64], queries: Queries
    ) -> NDArray[np.float64]:
        """(mean - midrank_i) / standard deviation for every row i, over the midranks of its query.

        The variance of these numbers in each query is 1. They are 0 in a query in which all labels
        are equal.
        """
        ranking = Ranking.from_scores(relevance, queries)
        middle = queries.repeat((queries.sizes - 1) / 2)
        if ranking.start is None or ranking.stop is None:
            above = middle - queries.place.astype(np.float64)
        else:
            above = middle - (ranking.start + ranking.stop - 1) / 2
        deviation = np.sqrt(ranking.sum(above**2) / queries.sizes)
        values = np.empty(queries.n_rows)
        values[ranking.order] = above / queries.repeat(np.where(deviation > 0, deviation, 1.0))
        return values

    def utilities(self, relevance: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
        midranks = self.standardized_midranks(relevance, queries)
        return midranks / queries.broadcast(position_scale(queries.sizes))

    def discounts(self, n_places: int) -> NDArray[np.float64]:
        return -np.arange(1.0, n_places + 1)

    def defined(self, labels: NDArray[np.float64], queries: Queries) -> NDArray[np.bool_]:
        return queries.max(labels) > queries.min(labels)
