"""Sums over queries from which the models in closed form are solved.

Least squares needs the data only through its normal equations. `PairMoments` holds those of
`PairwiseRidge`, and `BilinearMoments` those of `BilinearPairs`. Both are sums over queries, so
moments can be added: the moments of one part of the queries plus the moments of the other part are
the moments of all queries, up to rounding. The parts may be computed one after another, or on
different machines, as long as no query is split.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve

from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import PairTargets
from sklearn_rankcal.utils._memory import CACHE_BYTES, rows_per_block
from sklearn_rankcal.utils._scales import exponent_of

Floats = NDArray[np.float64]


def solve_ridge(gram: Floats, moment: Floats, penalty: Any) -> Floats:
    """Minimise w'Gw - 2 w'm + sum_k penalty_k w_k^2 over w. The Gram matrix G is overwritten.

    The gradient is zero if (G + diag(penalty)) w = m. The constant 1e-12 keeps the matrix positive
    definite if the penalty is 0 and columns are linearly dependent.
    """
    gram[np.diag_indices_from(gram)] += penalty + 1e-12
    return solve(gram, moment, assume_a="pos")


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums over queries that can be added.

    The weights of the documents enter the sums times 2^-weight_exponent, so that products of very
    large or very small weights neither overflow nor underflow. Two parts may have different
    exponents; their sum has the larger one.

    Attributes
    ----------
    mass : float
        Sum of the weights v_i of the documents.
    pair_mass : float
        Sum of the weights v_i v_j of all ordered pairs, i = j included.
    weight_exponent : int
        Exponent of the power of two by which the weights were divided.
    """

    mass: float
    pair_mass: float
    weight_exponent: int

    #: How many weights are multiplied in each term of a sum: 1 or 2.
    _n_weights: ClassVar[dict[str, int]] = {"mass": 1, "pair_mass": 2}
    #: Attributes that are not added: the sum of two parts has the larger value of the two.
    _maxima: ClassVar[tuple[str, ...]] = ()

    def __add__(self, other: Self) -> Self:
        if type(other) is not type(self):
            return NotImplemented
        self._check_alike(other)
        # A part whose weights are all 0 adds nothing, so its exponent does not count.
        exponent = max((p.weight_exponent for p in (self, other) if p.mass > 0), default=0)
        one, two = self.scaled_to(exponent), other.scaled_to(exponent)
        entries = {name: getattr(one, name) + getattr(two, name) for name in self._n_weights}
        for name in self._maxima:
            entries[name] = np.maximum(getattr(self, name), getattr(other, name))
        return replace(one, **entries)

    def scaled_to(self, exponent: int) -> Self:
        """Return the same moments of weights that were divided by 2^exponent.

        Parameters
        ----------
        exponent : int

        Returns
        -------
        moments : Moments
        """
        # Scaling by a power of two is exact.
        change = self.weight_exponent - exponent
        entries: dict[str, Any] = {
            name: np.ldexp(getattr(self, name), degree * change)
            for name, degree in self._n_weights.items()
        }
        return replace(self, weight_exponent=exponent, **entries)

    def _check_alike(self, other: Self) -> None:
        raise NotImplementedError


def scaled_weights(weight: Floats | None, n_rows: int) -> tuple[Floats, int]:
    """Divide the weights by 2^e so that the largest is below 1; return them and the exponent e."""
    if weight is None:
        return np.ones(n_rows), 0
    exponent = exponent_of(weight)
    return np.ldexp(weight, -exponent), exponent


@dataclass(frozen=True, eq=False)
class PairMoments(Moments):
    """The normal equations of linear scores fitted to all pairs of every query.

    The sums run over all ordered pairs (i, j) of documents of the same query. Pairs with i = j are
    counted, so that a document of weight 2 is the same as two copies of that document. A pair has
    the weight v_i v_j.

    Attributes
    ----------
    gram : ndarray of shape (n_features, n_features)
        Sum of v_i v_j (x_i - x_j)(x_i - x_j)'.
    moment : ndarray of shape (n_features,)
        Sum of v_i v_j (x_i - x_j) t_ij, or 0 if no targets were given.
    total : ndarray of shape (n_features,)
        Sum of v_i x_i over the documents.
    largest : ndarray of shape (n_features,)
        Largest absolute value in each column.
    mass, pair_mass : float
        Sums of v_i over the documents, and of v_i v_j over the pairs.
    weight_exponent : int
        The weights were divided by 2^weight_exponent before they were used in these sums.

    Examples
    --------
    Queries 0 and 1 are summed separately, and the sum is solved:

    >>> import numpy as np
    >>> from sklearn_rankcal.models import PairMoments
    >>> from sklearn_rankcal.queries import Queries
    >>> from sklearn_rankcal.targets._pairs import RelevanceDifferences
    >>> X, y = np.array([[0.0], [1.0], [2.0], [5.0]]), np.array([0.0, 1.0, 0.0, 3.0])
    >>> parts = []
    >>> for rows in (slice(0, 2), slice(2, 4)):
    ...     queries = Queries.single(2)
    ...     targets = RelevanceDifferences(y[rows], queries, "graded", np.ones(1))
    ...     parts.append(PairMoments.of(X[rows], targets, queries))
    >>> (parts[0] + parts[1]).solve(alpha=0.0).round(6)
    array([1.])
    """

    gram: Floats
    moment: Floats
    total: Floats
    largest: Floats

    _n_weights: ClassVar[dict[str, int]] = {
        "mass": 1,
        "pair_mass": 2,
        "gram": 2,
        "moment": 2,
        "total": 1,
    }
    _maxima: ClassVar[tuple[str, ...]] = ("largest",)

    @classmethod
    def of(
        cls,
        X: NDArray[Any],
        targets: PairTargets | None,
        queries: Queries,
        weight: Floats | None = None,
    ) -> PairMoments:
        """Compute the moments of whole queries, without forming the pairs.

        Parameters
        ----------
        X : ndarray of shape (n_documents, n_features)
            Finite numbers.
        targets : PairTargets or None
            Antisymmetric targets t_ij. None if only the spread of the columns is needed.
        queries : Queries
        weight : ndarray of shape (n_documents,), default=None
            Weights v_i of the documents; None means that all are 1.

        Returns
        -------
        moments : PairMoments

        Notes
        -----
        The time is O(n d^2) for n documents and d features. The memory is O(d^2) in addition to X
        and one block of rows.
        """
        d = X.shape[1]
        v_all, exponent = scaled_weights(weight, queries.n_rows)
        # b_i = sum_j v_j t_ij
        sums = None if targets is None else targets.row_sums(None if weight is None else v_all)
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
        return cls(mass, pair_mass, exponent, gram, moment, total, largest)

    def _check_alike(self, other: PairMoments) -> None:
        if len(self.total) != len(other.total):
            raise ValueError(
                f"Moments of {len(self.total)} columns cannot be added to moments of "
                f"{len(other.total)} columns."
            )

    @property
    def center(self) -> Floats:
        """Weighted means of the columns, of shape (n_features,)."""
        return self.total / (self.mass or 1.0)

    @property
    def scale(self) -> Floats:
        """Root mean square of the differences in each column; infinity if they are all 0.

        Dividing by infinity makes the coefficient of such a column 0. If a column is constant
        inside the queries, its computed spread consists of rounding errors, and counts as 0 too.
        """
        spread = np.sqrt(np.diagonal(self.gram) / (self.pair_mass or 1.0))
        return np.where(spread > 1e-12 * self.largest, spread, np.inf)

    def _scaled_gram(self, scale: Floats) -> Floats:
        """Mean products of the differences, each column divided by its scale."""
        return self.gram / (self.pair_mass or 1.0) / scale / scale[:, None]

    def solve(self, alpha: float) -> Floats:
        """Fit the slopes w of the scores w'x by ridge regression.

        Minimises the weighted mean over pairs of (w'(x_i - x_j) - t_ij)^2, plus
        ``alpha * sum_k (w_k scale_k)^2``.

        Parameters
        ----------
        alpha : float
            Strength of the penalty.

        Returns
        -------
        coef : ndarray of shape (n_features,)
        """
        scale = self.scale
        moment = self.moment / (self.pair_mass or 1.0) / scale
        return solve_ridge(self._scaled_gram(scale), moment, alpha) / scale

    def principal_axes(self, n_components: int) -> Floats:
        """Compute the axes of the largest spread inside queries of the scaled columns.

        Each column is divided by its `scale` first.

        Parameters
        ----------
        n_components : int
            The largest number of axes.

        Returns
        -------
        axes : ndarray of shape (n_features, n_axes)
            ``(x_i - x_j) @ axes`` has mean square 1 in each column. There are at most
            `n_components` axes, and fewer if the differences span fewer dimensions.
        """
        scale = self.scale
        values, vectors = np.linalg.eigh(self._scaled_gram(scale))
        kept = np.argsort(-values)[:n_components]
        kept = kept[values[kept] > 1e-10]
        return vectors[:, kept] / np.sqrt(values[kept]) / scale[:, None]
