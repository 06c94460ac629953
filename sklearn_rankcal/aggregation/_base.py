"""The base class of structures: many partial judgements of a query become one score per item."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from sklearn_rankcal.aggregation._judgements import Judgements
from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.queries import Queries, Ranking
from sklearn_rankcal.queries._ranking import tie_within
from sklearn_rankcal.utils._typing import Floats, Ints


class Structure(BaseEstimator):
    """Base class of structures, functions from the judgements of a query to one score per item.

    Duchi, Mackey and Jordan (2013, section 2) call s(Y_1, ..., Y_k) the structure function of the
    judgements Y_1, ..., Y_k.

    Attributes
    ----------
    takes : {"comparisons", "orders", "clicks"}
        What the structure needs of the judgements.
    tolerance : float
        Scores of a query share a rank if they differ by at most this share of its largest absolute
        score, or of 1 if that is less. It exceeds the error of the computation. Default: 1e-9.
    unbounded : bool
        Whether the score of an item that wins all of its comparisons grows without limit as they
        become more, so that its interval has no upper end. Default: False.
    uses_covariates : bool
        Whether covariates of votes and features of items enter the scores. `aggregate` refuses
        them otherwise. Default: False.
    """

    takes: str = "comparisons"
    tolerance: float = 1e-9
    unbounded: bool = False
    uses_covariates: bool = False
    _scores_are_gains: bool = False  # because they are not negative

    def check(self) -> None:
        """Raise ValueError or TypeError unless the parameters are valid."""

    def resolve(self, judgements: Any) -> Structure:
        """Return the structure with parameters set that depend on all training judgements."""
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
            NaN for items about which the judgements say nothing that the structure uses.
        """
        raise NotImplementedError

    def _takes_sums(self, judgements: Any) -> bool:
        """Whether the scores depend only on how often each item beat each other one."""
        return False

    def gains(self, scores: Floats, queries: Queries) -> Floats:
        """Convert scores to gains >= 0 in the same order, for losses whose labels are gains.

        By default they are exp(score), the strengths of the Bradley-Terry-Luce model. NaN stays
        NaN.
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


def compute_scores(structure: Structure, judgements: Judgements) -> Floats:
    """Compute the scores of all items."""
    return tie_scores(structure.scores(judgements), structure, judgements.queries)


def tie_scores(scores: Floats, structure: Structure, queries: Queries) -> Floats:
    """Make scores of a query equal that differ by less than the structure computes exactly.

    Each score is compared with the next larger one, as in `tie_within`. NaN stays NaN.
    """
    if np.shape(scores) != (queries.n_rows,):
        raise ValueError(
            f"{type(structure).__name__} returned scores of shape {np.shape(scores)} for "
            f"{queries.n_rows} items."
        )
    scores = np.asarray(scores, dtype=np.float64)
    largest = queries.max(np.abs(np.where(np.isnan(scores), 0.0, scores)))
    return tie_within(scores, queries, structure.tolerance * np.maximum(largest, 1.0))


def shared_ranks(scores: Floats, queries: Queries, parts: Ints | None = None) -> Ints:
    """Return the position of each row, 1 = best; equal scores share the best of their positions.

    NaN is below all other scores. If the first part has more than half of the compared items, these
    are above the others, whose scores cannot be compared with theirs.
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
