"""Positional measures of binary relevance: precision, recall and the area under the ROC curve.

A document is relevant or not. A ranking and its labels come in; one value per query comes out. The
sum that all positional measures share is in `_positional`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.measures._base import BinaryMeasure, check_cutoff
from sklearn_rankcal.measures._positional import GainMeasure, NormalizedMeasure, first_places
from sklearn_rankcal.queries import Queries


class _BinaryGains(BinaryMeasure, GainMeasure):
    """Base class of positional measures whose gain is 1 for a relevant document and 0 otherwise."""

    def gains(self, relevance: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.relevant(relevance).astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class Precision(_BinaryGains):
    """Precision@k: the share of relevant documents among the first k.

    Parameters
    ----------
    k : int, default=10
        Number of places that count. The number of relevant documents is divided by k even if the
        query has fewer documents.
    threshold : float, default=None
        A document is relevant if its label is at least `threshold`. None: labels must be 0 or 1.

    Notes
    -----
    The measure is defined for every query. Where scores tie, the value is the mean over the orders
    of the tied documents.
    """

    k: int = 10

    def check(self, labels: NDArray[np.float64]) -> None:
        check_cutoff("k", self.k, required=True)
        super().check(labels)

    def discounts(self, n_places: int) -> NDArray[np.float64]:
        return first_places(n_places, self.k) / self.k


@dataclass(frozen=True, kw_only=True)
class Recall(NormalizedMeasure, _BinaryGains):
    """Recall@k: the share of the relevant documents that stand among the first k.

    Parameters
    ----------
    k : int, default=10
        Number of places that count.
    threshold : float, default=None
        A document is relevant if its label is at least `threshold`. None: labels must be 0 or 1.

    Notes
    -----
    The measure is undefined for a query without a relevant document. Where scores tie, the value is
    the mean over the orders of the tied documents.
    """

    k: int = 10

    def check(self, labels: NDArray[np.float64]) -> None:
        check_cutoff("k", self.k, required=True)
        super().check(labels)

    def normalizer(self, gains: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
        return queries.sum(gains)

    def discounts(self, n_places: int) -> NDArray[np.float64]:
        return first_places(n_places, self.k).astype(np.float64)


class AUC(NormalizedMeasure, _BinaryGains):
    """Area under the ROC curve of each query.

    It is the share of pairs of a relevant and an irrelevant document in which the relevant document
    stands above the other.

    Parameters
    ----------
    threshold : float, default=None
        A document is relevant if its label is at least `threshold`. None: labels must be 0 or 1.

    Notes
    -----
    The measure is undefined for a query in which all documents are relevant or none is. A pair
    whose scores tie counts half.
    """

    def normalizer(self, gains: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
        positive = queries.sum(gains)
        return positive * (queries.sizes - positive)

    def discounts(self, n_places: int) -> NDArray[np.float64]:
        return -np.arange(1.0, n_places + 1)

    def offset(self, gains: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
        # A relevant row at position p has r - p rows below it. Summed over the n relevant rows that
        # is n r - sum p, and n (n - 1) / 2 of these pairs consist of two relevant rows.
        positive = queries.sum(gains)
        return positive * (queries.sizes - (positive - 1) / 2)
