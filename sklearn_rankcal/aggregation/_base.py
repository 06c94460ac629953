"""The base class of structures: many partial judgements of a query become one score per item."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from sklearn_rankcal.labels import Judgements, Preferences
from sklearn_rankcal.queries import Queries, Ranking

Floats = NDArray[np.float64]


class Structure(BaseEstimator):
    """Base class of structures, functions from the judgements of a query to one score per item.

    The name is that of Duchi, Mackey and Jordan (2013), section 2, who call s(Y_1, ..., Y_k) the
    structure function of the judgements Y_1, ..., Y_k.

    Attributes
    ----------
    takes : {"comparisons", "orders", "clicks"}
        What the structure needs of the judgements: how often each item was preferred to each other
        item, the orders themselves, or what was shown and clicked.
    tolerance : float
        Two scores of a query are equal, and share a rank, if they differ by at most `tolerance`
        times the largest absolute score of the query, or times 1 if that is less. It has to be
        larger than the error of the computation. The default is 1e-9.
    unbounded : bool
        Whether the score of an item that wins all of its comparisons grows without limit as they
        become more. Its interval has no upper end then. The default is False.
    """

    takes: str = "comparisons"
    tolerance: float = 1e-9
    unbounded: bool = False

    def check(self) -> None:
        """Raise ValueError or TypeError unless the parameters are valid."""

    def resolve(self, judgements: Any) -> Structure:
        """Return the structure with parameters that depend on data set from these judgements.

        Parameters
        ----------
        judgements : Judgements or Clicks
            All judgements of the training data.

        Returns
        -------
        structure : Structure
            By default the structure itself.
        """
        return self

    def scores(self, judgements: Any) -> Floats:
        """Compute one score per item; larger is better.

        Parameters
        ----------
        judgements : Judgements or Clicks
            The judgements of all queries.

        Returns
        -------
        scores : ndarray of shape (n_items,)
            NaN for items about which the judgements contain nothing that the structure uses, if it
            has no other answer for them.
        """
        raise NotImplementedError

    def gains(self, scores: Floats, queries: Queries) -> Floats:
        """Convert scores to gains >= 0 in the same order, for losses whose labels are gains.

        Parameters
        ----------
        scores : ndarray of shape (n_items,)
            What `scores` returned.
        queries : Queries
            The queries of the items.

        Returns
        -------
        gains : ndarray of shape (n_items,)
            By default exp(score), the strengths of the model of Bradley, Terry and Luce if the
            scores are its parameters. NaN stays NaN.
        """
        return np.exp(scores)


class ComparisonStructure(Structure):
    """Base class of structures that depend only on how often each item beat each other item.

    A subclass implements `_scores`.
    """

    def scores(self, judgements: Any) -> Floats:
        """Compute one score per item; larger is better.

        Parameters
        ----------
        judgements : Judgements
            The judgements of all queries.

        Returns
        -------
        scores : ndarray of shape (n_items,)
        """
        self.check()
        return self._scores(judgements.preferences(), judgements.per_query)

    def _scores(self, preferences: Preferences, n_judgements: Floats) -> Floats:
        """Compute scores from the sums of the weights of all comparisons.

        Parameters
        ----------
        preferences : Preferences
            ``weight`` is the total weight with which `winner` was preferred to `loser`; the sum of
            the weights of all comparisons, not their mean. Weights can be 0.
        n_judgements : ndarray of shape (n_queries,)
            The number k of judgements of each query, which can be 0.

        Returns
        -------
        scores : ndarray of shape (n_items,)
            In row layout.
        """
        raise NotImplementedError


def compute_scores(structure: Structure, judgements: Judgements) -> Floats:
    """Compute the scores of all items."""
    if isinstance(structure, ComparisonStructure):
        return scores_of_sums(structure, judgements.preferences(), judgements.per_query)
    return tie_scores(structure.scores(judgements), structure, judgements.queries)


def scores_of_sums(
    structure: ComparisonStructure, preferences: Preferences, n_judgements: Floats
) -> Floats:
    """Compute the scores of all items from the sums of all comparisons."""
    scores = structure._scores(preferences, n_judgements)
    return tie_scores(scores, structure, preferences.queries)


def tie_scores(scores: Floats, structure: Structure, queries: Queries) -> Floats:
    """Make scores of a query equal that differ by less than the structure computes exactly.

    Of the scores in descending order, each is made equal to the one before it if they differ by at
    most the tolerance of the structure. NaN stays NaN.
    """
    if np.shape(scores) != (queries.n_rows,):
        raise ValueError(
            f"{type(structure).__name__} returned scores of shape {np.shape(scores)} for "
            f"{queries.n_rows} items."
        )
    scores = np.asarray(scores, dtype=np.float64)
    known = ~np.isnan(scores)
    largest = queries.max(np.abs(np.where(known, scores, 0.0)))
    tolerance = structure.tolerance * np.maximum(largest, 1.0)
    order = queries.sort(np.where(known, scores, -np.inf))
    ordered = scores[order]
    new = np.ones(len(ordered), dtype=bool)
    gap = ordered[:-1] - ordered[1:]
    new[1:] = ~(gap <= queries.repeat(tolerance)[1:])
    new[queries.offsets[:-1]] = True
    tied = np.empty_like(scores)
    tied[order] = ordered[np.flatnonzero(new)[np.cumsum(new) - 1]]
    return tied


def shared_ranks(scores: Floats, queries: Queries) -> NDArray[np.int64]:
    """Return the position of each row, 1 = best; equal scores share the best of their positions.

    NaN is below all other scores.
    """
    ranking = Ranking.from_scores(np.where(np.isnan(scores), -np.inf, scores), queries)
    ranks = np.empty(queries.n_rows, dtype=np.int64)
    ranks[ranking.order] = (queries.place if ranking.start is None else ranking.start) + 1
    return ranks
