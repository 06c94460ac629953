"""Base classes of structures, which compute one score per item from judgements."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from sklearn_rankcal.aggregation._judgements import Judgements
from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.queries import Queries, Ranking
from sklearn_rankcal.queries._ranking import tie_rounded
from sklearn_rankcal.utils._numbers import Floats, Ints


class Solution(NamedTuple):
    """What a structure finds: scores in row layout, and what else it knows of a leaderboard."""

    scores: Floats
    intervals: Any = None  # `Intervals`, if the structure has errors
    coefficients: list[Any] | None = None  # `Coefficient`s
    boards: list[Any] | None = None  # the fit of each query
    proof: Any = None  # how good the ranking is, for `Kemeny`


class Structure(BaseEstimator):
    """Base class of structures, which compute one score per item from the judgements of a query.

    Duchi, Mackey and Jordan (2013, section 2) call s(Y_1, ..., Y_k) the structure function of the
    judgements Y_1, ..., Y_k.

    Attributes
    ----------
    takes : {"comparisons", "orders", "clicks"}
        The kind of judgements that the structure uses.
    tolerance : float
        Scores of a query share a rank if they differ by at most this fraction of the largest
        absolute score of the query, or of 1 if that is smaller. Must exceed the error of the
        computation. Default: 1e-9.
    unbounded : bool
        Whether the score of an item that wins all of its comparisons grows without bound with their
        number. The interval of such a score from resamples has no ends. Default: False.
    uses_covariates : bool
        Whether the structure uses covariates of votes and features of items. Otherwise `aggregate`
        raises an error for them. Default: False.
    """

    takes: str = "comparisons"
    tolerance: float = 1e-9
    unbounded: bool = False
    uses_covariates: bool = False
    _scores_are_gains: bool = False  # absolute values are not negative
    _has_errors: bool = False  # whether there are intervals without resamples
    _steps: bool = False  # whether scores are step functions: resamples say nothing of their errors

    def check(self) -> None:
        """Raise ValueError or TypeError unless the parameters are valid."""

    def resolve(self, judgements: Any) -> Structure:
        """Return the structure with its data-dependent parameters set.

        Parameters
        ----------
        judgements : Judgements or Clicks
            All training judgements.

        Returns
        -------
        structure : Structure
            A copy, or the object itself if there are no such parameters.
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
            NaN for items without judgements that the structure can use.
        """
        raise NotImplementedError

    def _solve(
        self, judgements: Judgements, parts: Ints, intervals: str | None, level: float, n_jobs: Any
    ) -> Solution:
        """Compute what `aggregate` reports, with intervals of this kind if they are not None.

        `parts` has the connected part of each item in its query.
        """
        return Solution(self.scores(judgements))

    def _takes_sums(self, judgements: Any) -> bool:
        """Whether the scores depend only on how often each item beat each other item."""
        return False

    def gains(self, scores: Floats, queries: Queries) -> Floats:
        """Convert scores to gains >= 0 in the same order, as labels of a loss.

        By default, the gains are exp(score), the strengths of the Bradley-Terry-Luce model.

        Parameters
        ----------
        scores : ndarray of shape (n_items,)
            Scores, or NaN for items without a score.
        queries : Queries
            The partition of the items into queries.

        Returns
        -------
        gains : ndarray of shape (n_items,)
            NaN for items without a score.
        """
        return scores if self._scores_are_gains else np.exp(scores)


class ComparisonStructure(Structure):
    """Base class of structures that depend only on how often each item beat each other item.

    A subclass implements `_scores`.
    """

    def scores(self, judgements: Any) -> Floats:
        """Compute one score per item; larger is better."""
        self.check()
        return self._scores(judgements.preferences(), judgements.per_query)

    def _takes_sums(self, judgements: Any) -> bool:
        return True

    def _scores(self, preferences: Preferences, n_judgements: Floats) -> Floats:
        """Compute scores, in row layout, from the total weights of all comparisons.

        Weights and the numbers of judgements of queries can be 0.
        """
        raise NotImplementedError


def tie_scores(scores: Floats, structure: Structure, queries: Queries) -> Floats:
    """Make scores of a query equal if they differ only by the error of the computation.

    Each score is compared with the next larger one, as in `tie_rounded`. NaN stays NaN.
    """
    if np.shape(scores) != (queries.n_rows,):
        raise ValueError(
            f"{type(structure).__name__}.scores must return shape ({queries.n_rows},), one "
            f"score per item; got {np.shape(scores)}."
        )
    scores = np.asarray(scores, dtype=np.float64)
    largest = queries.max(np.abs(np.where(np.isnan(scores), 0.0, scores)))
    return tie_rounded(scores, queries, structure.tolerance * np.maximum(largest, 1.0))


def shared_ranks(scores: Floats, queries: Queries, parts: Ints | None = None) -> Ints:
    """Return the position of each row, 1 = best; equal scores share their best position.

    NaN is below all other scores. If the first part has more than half of the compared items, its
    items are above the rest; their scores cannot be compared.
    """
    if parts is not None and (parts > 1).any():
        inside, codes = shared_ranks(scores, queries), queries.codes
        many = 2 * np.bincount(codes, parts == 1) > np.bincount(codes, parts > 0)
        below = (parts > 1) & many[codes]
        scores = np.where(parts > 0, -(below * (inside.max() + 1.0) + inside), np.nan)
    ranking = Ranking.from_scores(np.where(np.isnan(scores), -np.inf, scores), queries)
    ranks = np.empty(queries.n_rows, dtype=np.int64)
    ranks[ranking.order] = (queries.place if ranking.start is None else ranking.start) + 1
    return ranks
