"""The base class of structures: many partial judgements of a query become one score per item."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.queries import Queries

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
