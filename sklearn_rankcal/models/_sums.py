"""Sums over queries from which closed forms are solved: those of parts add up to those of all."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve

from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import PairTargets
from sklearn_rankcal.utils._memory import CACHE_BYTES, rows_per_block

Floats = NDArray[np.float64]


def solve_ridge(gram: Floats, moment: Floats, penalty: Any) -> Floats:
    """Minimise w'Gw - 2 w'm + sum_k penalty_k w_k^2 over w. The Gram matrix G is overwritten.

    The gradient is zero if (G + diag(penalty)) w = m. The constant 1e-12 keeps the matrix positive
    definite if the penalty is 0 and columns are linearly dependent.
    """
    gram[np.diag_indices_from(gram)] += penalty + 1e-12
    return solve(gram, moment, assume_a="pos")


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over the queries of a part of the data, which ``+`` adds to those of another part."""

    #: The fields of which the whole has the largest value of its parts, and not their sum.
    _maxima: ClassVar[tuple[str, ...]] = ()

    def __add__(self, other: Self) -> Self:
        if type(other) is not type(self):
            return NotImplemented
        added = {}
        for name in (field.name for field in fields(self)):
            one, two = getattr(self, name), getattr(other, name)
            if np.shape(one) != np.shape(two):
                raise ValueError(
                    f"Sums of different columns cannot be added: {name} has the shapes "
                    f"{np.shape(one)} and {np.shape(two)}."
                )
            added[name] = np.maximum(one, two) if name in self._maxima else one + two
        return type(self)(**added)


@dataclass(frozen=True, eq=False)
class PairSums(Sums):
    """The normal equations of linear scores fitted to all pairs of every query.

    They run over all ordered pairs (i, j) of documents of a query. Pairs with i = j are counted, so
    that a document of weight 2 is the same as two copies of it. A pair has the weight v_i v_j.

    Attributes
    ----------
    mass, pair_mass : float
        Sums of v_i over the documents, and of v_i v_j over the pairs.
    gram : ndarray of shape (n_features, n_features)
        Sum of v_i v_j (x_i - x_j)(x_i - x_j)'.
    moment : ndarray of shape (n_features,)
        Sum of v_i v_j (x_i - x_j) t_ij, or 0 without targets.
    total : ndarray of shape (n_features,)
        Sum of v_i x_i over the documents.
    largest : ndarray of shape (n_features,)
        Largest absolute value in each column.
    """

    mass: float
    pair_mass: float
    gram: Floats
    moment: Floats
    total: Floats
    largest: Floats

    _maxima: ClassVar[tuple[str, ...]] = ("largest",)

    @classmethod
    def of(
        cls,
        X: NDArray[Any],
        targets: PairTargets | None,
        queries: Queries,
        weight: Floats | None = None,
    ) -> PairSums:
        """Add up whole queries in O(n d^2) time, without forming the pairs."""
        d = X.shape[1]
        v_all = np.ones(queries.n_rows) if weight is None else weight
        # b_i = sum_j v_j t_ij
        sums = None if targets is None else targets.row_sums(weight)
        gram, moment = np.zeros((d, d)), np.zeros(d)
        total, largest = np.zeros(d), np.zeros(d)
        mass = pair_mass = 0.0
        for rows, part in queries.chunks(rows_per_block(8 * d, CACHE_BYTES)):
            block = X[rows].astype(np.float64)
            v = v_all[rows]
            # V = sum_i v_i and sum_i v_i x_i of each query
            query_mass = part.sum(v)
            sum_x = part.sum(block if weight is None else block * v[:, None])
            total += sum_x.sum(axis=0)
            np.maximum(largest, np.abs(block).max(axis=0), out=largest)
            mass += float(v.sum())
            pair_mass += float((query_mass**2).sum())
            # Subtract the weighted mean of the query, so that sum_i v_i x_i = 0. No difference
            # x_i - x_j changes, and the mixed terms of the sums below vanish.
            block -= part.repeat(sum_x / np.where(query_mass > 0, query_mass, 1.0)[:, None])
            # sum_ij v_i v_j (x_i - x_j) t_ij = 2 sum_i v_i x_i b_i, as t_ij = -t_ji
            if sums is not None:
                moment += 2.0 * (v * sums[rows]) @ block
            # sum_ij v_i v_j (x_i - x_j)(x_i - x_j)' = 2 V sum_i v_i x_i x_i'
            block *= np.sqrt(2.0 * v * part.repeat(query_mass))[:, None]
            gram += block.T @ block
        return cls(mass, pair_mass, gram, moment, total, largest)

    def scale(self) -> Floats:
        """Return the root mean square of the differences in each column; infinity if all are 0.

        Dividing by infinity makes the coefficient of such a column 0. If a column is constant
        inside the queries, its computed spread consists of rounding errors, and counts as 0 too.
        """
        spread = np.sqrt(np.diagonal(self.gram) / (self.pair_mass or 1.0))
        return np.where(spread > 1e-12 * self.largest, spread, np.inf)

    def scaled_gram(self, scale: Floats) -> Floats:
        """Return the mean products of the differences, each column divided by its scale."""
        return self.gram / (self.pair_mass or 1.0) / scale / scale[:, None]
