"""The result of a decoder: rankings, and bounds on their distance from the best ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.queries import Queries


def check_result(result: Any, decoder: Any) -> Any:
    """Return the result of a decoder, after checking that it is a `DecodeResult`."""
    if not hasattr(result, "ranks"):
        raise TypeError(
            f"{type(decoder).__name__}.decode must return a decoders.DecodeResult; it returned "
            f"{type(result).__name__}. Return DecodeResult(ranks, objective, lower_bound, optimal, "
            "method), with the position of each row as ranks, 1 = top."
        )
    return result


@dataclass
class DecodeResult:
    """Rankings, and bounds on their distance from the best ones.

    For a single matrix, the attributes are scalars. For a batch, they are arrays with one entry per
    query.

    Attributes
    ----------
    ranks : ndarray of int64, or list of them
        Position of each document in its query, 1 = top. The shape is (r,) for one matrix, and
        (n_queries, r) for a padded array, with 0 in the padding. For a list of matrices, it is a
        list of arrays. Decoder objects return shape (n_documents,), in the order of the rows.
    objective : float or ndarray of shape (n_queries,)
        Value of the objective for this ranking. NaN for a sort of scores, which minimises every
        positional loss (Calauzènes et al., 2013, theorem 3.2).
    lower_bound : float or ndarray of shape (n_queries,)
        Lower bound on the objective of every ranking, up to the rounding that ``optimal`` allows.
    optimal : bool or ndarray of shape (n_queries,)
        Whether the ranking is proved to minimise the objective, up to rounding. For preferences: no
        ranking contradicts less weight, up to 1e-11 of the contradicted weight. The proof is strict
        if all weights are multiples of a common unit, such as integers, decimals or averages of
        votes, and the contradicted weight is less than 1e10 units. For average precision: no
        ranking has a larger value, up to 1e-13 of the value for absolute entries.
    method : str or ndarray of shape (n_queries,)
        The method that was used. For ``"auto"``, the method that it chose.
    n_iter : int or ndarray of shape (n_queries,)
        Number of sweeps of the local search, plus the number of linear programs and dynamic
        programs solved. 0 for other methods.
    threshold : float or ndarray of shape (n_queries,), or None
        Weight of the heaviest edge that ``"greedy_dag"`` deleted, 0 without cycles. None for other
        methods.
    broken : list of list of str, or None
        Soft rules that the ranking of each query breaks. None without rules.
    violation : int or ndarray of shape (n_queries,), or None
        Number of places, pairs and documents by which it breaks soft rules. The objective includes
        the cost ``soft`` for each. None without rules.

    Examples
    --------
    >>> from sklearn_rankcal.decoders import decode_preferences
    >>> result = decode_preferences([[0, 7, 10], [3, 0, 10], [0, 0, 0]])
    >>> result.ranks.tolist(), result.objective, result.gap, result.optimal
    ([1, 2, 3], 3.0, 0.0, True)
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
        """Largest possible distance from the smallest objective: ``objective - lower_bound``."""
        return self.objective - self.lower_bound


@dataclass
class Decoded:
    """Result for a batch of m queries of r documents, with orders instead of ranks."""

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


class Constraints(Protocol):
    """What the decoders ask of rules, such as `Rules`."""

    def decode_scores(
        self,
        scores: NDArray[np.float64],
        queries: Queries,
        discounts: Callable[[int], NDArray[np.float64]],
        keys: Any = None,
        time_limit: float | None = None,
    ) -> DecodeResult:
        """Maximise the sum of score times discount under the rules; `keys` order equal scores."""

    def keep(
        self,
        decoded: list[tuple[NDArray[np.int64], Decoded]],
        matrices_of: Callable[[NDArray[np.int64], int], NDArray[np.float64]],
        space: str,
        queries: Queries,
        method: str,
        options: Any,
        numbers: NDArray[np.int64] | None = None,
    ) -> None:
        """Replace, in place, decoded rankings that break rules by the best ones that keep them."""
