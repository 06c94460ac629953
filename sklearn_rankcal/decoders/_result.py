"""What a decoder returns: the ranking, and how good it is known to be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass
class DecodeResult:
    """Rankings, and an account of how far they can be from the best.

    For a single query the fields are scalars; for a batch, arrays with an entry for each query.

    Attributes
    ----------
    ranks : ndarray of int64, or list of them
        Position of every document inside its query, 1 = top. Of one matrix: (r,). Of a list of
        matrices: a list. Of a padded array: (n_queries, r), 0 in the padding. Of a decoder object:
        (n_documents,), in the order of the rows.
    objective : float or ndarray of shape (n_queries,)
        What the decoder minimises, at these rankings. NaN for scores: a sort minimises every
        positional loss at once (P2, theorem 3.2).
    lower_bound : float or ndarray of shape (n_queries,)
        No ranking has a smaller objective, up to the rounding that `optimal` allows.
    optimal : bool or ndarray of shape (n_queries,)
        Whether the ranking is proved to minimise the objective, up to rounding. For preferences: no
        ranking contradicts less weight, of the differences ``u_ij - u_ji`` as float64 has them, by
        more than 1e-11 of the weight that this one contradicts. For average precision: no ranking
        has a larger value by more than 1e-13 of what the absolute values of `u` add up to at this
        one. The proof is strict where weights are multiples of a common unit and contradicted ones
        add up to fewer than 1e10 units: integers, and decimals or averages of votes of at most
        1e6 units each.
    method : str or ndarray of shape (n_queries,)
        What produced it; for ``"auto"``, what that chose.
    n_iter : int or ndarray of shape (n_queries,)
        Sweeps of a local search, plus programs solved by ``"exact"``; 0 for the others.
    threshold : float or ndarray of shape (n_queries,), or None
        Weight of the heaviest edge that ``"greedy_dag"`` deletes, 0 for an acyclic graph; None for
        every other method.
    """

    ranks: Any
    objective: Any
    lower_bound: Any
    optimal: Any
    method: Any
    n_iter: Any = 0
    threshold: Any = None

    @property
    def gap(self) -> Any:
        """How far the objective can be from the smallest: objective - lower_bound."""
        return self.objective - self.lower_bound


@dataclass
class Decoded:
    """Orders of m queries of r documents, best first, and their account."""

    order: NDArray[np.int64]  # (m, r)
    objective: NDArray[np.float64]
    lower_bound: NDArray[np.float64]
    optimal: NDArray[np.bool_]
    method: list[str]
    n_iter: NDArray[np.int64]
    threshold: NDArray[np.float64] | None = None
