"""The result of a decoder: the rankings, and how far they can be from the best ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


def check_result(result: Any, decoder: Any) -> Any:
    """Return what a decoder returned, which must have the attributes of a `DecodeResult`."""
    if not hasattr(result, "ranks"):
        raise TypeError(
            f"{type(decoder).__name__}.decode must return a decoders.DecodeResult; it returned "
            f"{type(result).__name__}. Return DecodeResult(ranks, objective, lower_bound, optimal, "
            "method), with the position of each row as ranks, 1 = top."
        )
    return result


@dataclass
class DecodeResult:
    """Rankings and bounds on how far they can be from the best ones.

    For a single query the attributes are scalars. For a batch they are arrays with one entry for
    each query.

    Attributes
    ----------
    ranks : ndarray of int64, or list of them
        Position of every document within its query; 1 is the top. The shape is (r,) for one matrix,
        and (n_queries, r) for a padded array, with 0 in the padding. For a list of matrices it is a
        list of arrays. A decoder object returns shape (n_documents,), in the order of the rows.
    objective : float or ndarray of shape (n_queries,)
        The value that the decoder minimises, for these rankings. It is NaN for scores, because a
        sort minimises every positional loss at once (Calauzènes et al., 2013, theorem 3.2).
    lower_bound : float or ndarray of shape (n_queries,)
        No ranking has a smaller objective than this, up to the rounding that `optimal` allows.
    optimal : bool or ndarray of shape (n_queries,)
        Whether the ranking is proved to minimise the objective, up to rounding: no ranking
        contradicts less weight by more than 1e-11 of the weight that this one contradicts, or has a
        larger average precision by more than 1e-13 of its value for absolute entries. For
        preferences, the proof is strict if all weights are multiples of a common unit (integers,
        decimals, averages of votes), and the contradicted ones add up to fewer than 1e10 units.
    method : str or ndarray of shape (n_queries,)
        The method that produced the ranking. For ``"auto"``, the method that it chose.
    n_iter : int or ndarray of shape (n_queries,)
        Number of sweeps of the local search, plus the number of linear programs and dynamic
        programs that were solved. It is 0 for the other methods.
    threshold : float or ndarray of shape (n_queries,), or None
        Weight of the heaviest edge that ``"greedy_dag"`` deletes, 0 if the graph has no cycle. It
        is None for every other method.
    broken : list of list of str, or None
        Under soft rules, the rules that the ranking of each query breaks. None without rules.
    violation : int or ndarray of shape (n_queries,), or None
        By how many places, pairs and documents it breaks them, which adds so many times their cost
        to the objective. None without rules.
    """

    ranks: Any
    objective: Any
    lower_bound: Any
    optimal: Any
    method: Any
    n_iter: Any = 0
    threshold: Any = None
    broken: Any = None
    violation: Any = None

    @property
    def gap(self) -> Any:
        """Largest possible distance from the smallest objective: objective - lower_bound."""
        return self.objective - self.lower_bound


@dataclass
class Decoded:
    """The result of decoding a batch of m queries of r documents: `DecodeResult` with orders."""

    order: NDArray[np.int64]  # (m, r): the document at each place, best first
    objective: NDArray[np.float64]
    lower_bound: NDArray[np.float64]
    optimal: NDArray[np.bool_]
    method: list[str]
    n_iter: NDArray[np.int64]
    threshold: NDArray[np.float64] | None = None
    # (m, r): the position, from 1, of the document at each place; None: 1, 2, ..., r
    first: NDArray[np.int64] | None = None
    # under rules: what each ranking breaks, and by how much
    broken: list[list[str]] | None = None
    violation: NDArray[np.int64] | None = None

    @property
    def positions(self) -> NDArray[np.int64]:
        """The position of the document at each place, of shape (m, r)."""
        if self.first is not None:
            return self.first
        return np.broadcast_to(np.arange(1, self.order.shape[1] + 1), self.order.shape)
