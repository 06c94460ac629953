"""LowRankLoss, a matrix of costs in the form of products of vectors of labels and of targets."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, gen_batches
from sklearn.utils.extmath import svd_flip

from sklearn_rankcal.utils._memory import rows_per_block
from sklearn_rankcal.utils._messages import warn
from sklearn_rankcal.utils._numbers import check_range, read_array, read_numbers
from sklearn_rankcal.utils._rounding import is_largest
from sklearn_rankcal.utils._typing import Floats, Ints

#: Bytes of a block of costs that are computed at a time.
BLOCK_BYTES = 2**25
#: Up to this many multiplications, a few seconds, `regret_constant` compares all pairs of targets.
EXACT_DIAMETER = 2e9
#: Expected costs tie if they differ by less than this share of ||u|| ||beta|| + |intercept|.
TIED = 1e-12
#: A cost below this share of the largest cost of its row or column is rounding.
NOISE = 2.0**-48


class LowRankLoss(BaseEstimator):
    """A loss <alpha_y, beta_t> + c_y + b_t of a label y and a target t, both numbered from 0.

    `from_matrix` makes such a loss from any matrix of costs. `encode` maps a label y to its vector
    alpha_y. Least squares on these vectors estimates u = E[alpha_Y], and `decode` returns the
    target for which <u, beta_t> + b_t is least. Its method names are those of ranking losses, but
    `CalibratedRanker` does not take it.

    Parameters
    ----------
    alpha : array-like of shape (n_labels, rank)
        The regression targets of each label.
    beta : array-like of shape (n_targets, rank)
        The vector of each target, whose product with the regression targets is the cost.
    c : float or array-like of shape (n_labels,), default=0.0
        The part of the cost that depends on the label alone. It does not affect `decode`.
    error : float, default=0.0
        If this loss approximates other costs, the largest difference between the two.
    intercept : float or array-like of shape (n_targets,), default=0.0
        The part b of the cost that depends on the target alone, which needs no regression target.

    See Also
    --------
    sklearn_rankcal.cost_sensitive.LowRankClassifier : A classifier that regresses on `encode` and
        predicts by `decode`.

    Notes
    -----
    The loss is calibrated for every distribution of the labels (theorem 3 of [1]_), and the regret
    of the target decoded from any u is at most ``regret_constant() * ||u - E[alpha_Y]|| + 2 *
    error``; see :ref:`low_rank`.

    References
    ----------
    .. [1] H. G. Ramaswamy, S. Agarwal and A. Tewari (2013). Convex calibrated surrogates for
       low-rank loss matrices with applications to subset ranking losses. NIPS. Theorem 3.

    Examples
    --------
    The distance ``|y - t|`` between six grades has rank 5, not counting the mean costs of grades.
    Rank 2 comes close:

    >>> import numpy as np
    >>> from sklearn_rankcal.cost_sensitive import LowRankLoss
    >>> L = np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
    >>> loss = LowRankLoss.from_matrix(L, rank=2)
    >>> LowRankLoss.from_matrix(L).alpha.shape, loss.alpha.shape, round(loss.error, 2)
    ((6, 5), (6, 2), 0.48)
    >>> p = np.array([0.1, 0.2, 0.3, 0.2, 0.1, 0.1])
    >>> u = p @ loss.encode(np.arange(6))
    >>> loss.decode(u[None]).item(), int(np.argmin(p @ L))  # the median
    (2, 2)
    """

    space = "low_rank"
    calibrated_over = "every distribution of the labels (Ramaswamy et al., 2013, theorem 3)"
    calibrated_everywhere = True

    def __init__(
        self,
        alpha: ArrayLike,
        beta: ArrayLike,
        c: ArrayLike = 0.0,
        *,
        error: float = 0.0,
        intercept: ArrayLike = 0.0,
    ) -> None:
        self.alpha = alpha
        self.beta = beta
        self.c = c
        self.error = error
        self.intercept = intercept

    # ---------------------------------------------------------------- construction

    @classmethod
    def from_matrix(
        cls, L: ArrayLike, rank: int | None = None, *, tol: float = 1e-13
    ) -> LowRankLoss:
        """Factor a matrix of costs, in O(n_labels n_targets min(n_labels, n_targets)) time.

        Parameters
        ----------
        L : array-like of shape (n_labels, n_targets)
            ``L[y, t]`` is the cost of target t when the label is y. If no cost is negative and a
            target costs nothing for every label, that target is always decoded.
        rank : int, default=None
            The largest number of regression targets. If the matrix needs more, it is approximated
            by its truncated singular value decomposition, and the attribute `error` is the largest
            error of a cost. If None, there are as many regression targets as the matrix needs.
        tol : float, default=1e-13
            Singular values up to `tol` times the largest one count as 0. A warning says if this
            changes costs by more than rounding, as happens if one cost is 1e14 and the others are
            small.

        Returns
        -------
        loss : LowRankLoss
            The columns of ``beta`` are orthonormal, so that the squared error of a prediction of
            alpha is that of the costs of all targets. The means of the rows of L are subtracted as
            ``c`` and those of the columns as ``intercept`` if that lowers the rank or improves the
            approximation.

        Raises
        ------
        ValueError
            If L has NaN, infinity or entries beyond 1e-50 to 1e50, or if `rank` is not from 1 to
            min(L.shape).
        """
        L = read_matrix(L)
        n, k = L.shape
        if rank is not None and not (_is_whole(rank) and 1 <= rank <= min(n, k)):
            raise ValueError(
                f"rank must be a whole number from 1 to {min(n, k)}, the smaller side of L of "
                f"shape {L.shape}, or None; got {rank!r}."
            )
        if not (isinstance(tol, Real) and 0 <= float(tol) < 1):
            raise ValueError(f"tol must be a number >= 0 and < 1; got {tol!r}.")
        # Let H = I - 11'/n be the matrix that subtracts means. For all constants c of the labels
        # and b of the targets, H (L - c 1' - 1 b') H = H L H, and therefore
        # rank(L - c 1' - 1 b') >= rank(H L H). The means of the rows, and the means of the columns
        # minus the mean of all entries, leave exactly H L H, which has the least possible rank.
        # Four choices of constants are tried, and the fewest constants win if the ranks are equal.
        rows, columns = L.mean(axis=1), L.mean(axis=0)
        nothing = np.zeros(n), np.zeros(k)
        floor = 0.0
        candidates: list[Any] = []
        for c, b in (
            nothing,
            (rows, nothing[1]),
            (nothing[0], columns),
            (rows, columns - columns.mean()),
        ):
            left, values, right = np.linalg.svd(L - c[:, None] - b, full_matrices=False)
            left, right = svd_flip(left, right)
            # Subtracting means never increases the largest singular value, so that the first
            # candidate, which subtracts nothing, sets the threshold for all of them.
            floor = max(floor, tol * values[0])
            needed = int(np.sum(values > floor))
            d = needed if rank is None else min(needed, rank)
            loss = cls(left[:, :d] * values[:d], right[:d].T, c, intercept=b if b.any() else 0.0)
            errors = np.abs(loss.expected_cost(loss.alpha, c) - L)
            loss.error = float(errors.max())
            candidates.append((d, loss.error if d < needed else 0.0, loss))
        # The order of preference: fewest outputs, then least error, then fewest constants.
        fewest = min(candidate[0] for candidate in candidates)
        few = [candidate for candidate in candidates if candidate[0] == fewest]
        errors = np.array([candidate[1] for candidate in few])
        best = few[int(np.argmax(is_largest(-errors, np.abs(L).max())))][-1]
        # Warn if the smallest cost that is not rounding is wrong by more than one in a thousand.
        size = np.abs(L)
        largest = np.maximum(size.max(axis=1, keepdims=True), size.max(axis=0))
        counts = size > NOISE * largest
        if rank is None and counts.any() and best.error > 1e-3 * size[counts].min():
            warn(
                f"The costs have very different sizes. The factored loss has errors of up to "
                f"{best.error:.3g}, which distort the small costs. Make the largest costs smaller."
            )
        return best

    @classmethod
    def zero_one(cls, n_labels: int) -> LowRankLoss:
        """Make the 0-1 loss: 1 for a wrong label and 0 for the right one.

        The regression targets are indicators of the labels, and `decode` returns the label of the
        largest one.

        Parameters
        ----------
        n_labels : int
            The number of labels, at least 2. Two labels need a single indicator.

        Returns
        -------
        loss : LowRankLoss
        """
        if not (_is_whole(n_labels) and n_labels >= 2):
            raise ValueError(f"n_labels must be a whole number >= 2; got {n_labels!r}.")
        if n_labels == 2:
            return cls([[0.5], [-0.5]], [[-1.0], [1.0]], 0.5)
        return cls(np.eye(n_labels), -np.eye(n_labels), 1.0)

    # ---------------------------------------------------------------- use

    def _read(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Check and return alpha, beta, c (n_labels,) and the intercept (n_targets,)."""
        names = ("alpha", "beta", "c", "intercept")
        alpha, beta, c, b = (read_numbers(getattr(self, name), name) for name in names)
        for name, part in zip(names, (alpha, beta, c, b), strict=True):
            if not np.isfinite(part).all():
                raise ValueError(f"{name} contains NaN or infinity.")
        if alpha.ndim != 2 or beta.ndim != 2 or alpha.shape[1] != beta.shape[1]:
            raise ValueError(
                "alpha (n_labels, rank) and beta (n_targets, rank) need two dimensions and the "
                f"same number of columns; got shapes {alpha.shape} and {beta.shape}."
            )
        if not (len(alpha) and len(beta)):
            raise ValueError(
                f"At least one label and one target are needed; got {len(alpha)} labels and "
                f"{len(beta)} targets."
            )
        if c.shape not in ((), (len(alpha),)):
            raise ValueError(
                f"c must be a number or have shape ({len(alpha)},), one number for each label; it "
                f"has shape {c.shape}."
            )
        if b.shape not in ((), (len(beta),)):
            raise ValueError(
                f"intercept must be a number or have shape ({len(beta)},), one number for each "
                f"target; it has shape {b.shape}."
            )
        return alpha, beta, np.broadcast_to(c, len(alpha)), np.broadcast_to(b, len(beta))

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of labels and of targets."""
        alpha, beta, _, _ = self._read()
        return len(alpha), len(beta)

    def encode(self, labels: ArrayLike) -> Floats:
        """Return the regression targets of labels.

        Parameters
        ----------
        labels : array-like of int of shape (n_samples,)
            Numbers of labels, from 0.

        Returns
        -------
        targets : ndarray of shape (n_samples, rank)

        Raises
        ------
        ValueError
            If an entry is not the number of a label.
        """
        alpha, _, _, _ = self._read()
        return alpha[_read_numbers(labels, len(alpha), "labels")]

    def decode(self, u: ArrayLike) -> Ints:
        """Return the target of least <u, beta_t> + b_t for each row.

        Parameters
        ----------
        u : array-like of shape (n_samples, rank)
            Predictions of the regression targets.

        Returns
        -------
        targets : ndarray of shape (n_samples,)
            Numbers of targets, from 0. If several targets tie up to rounding, the first of them.

        Raises
        ------
        ValueError
            If u has another shape, or if it contains NaN or infinity.
        """
        _, beta, _, b = self._read()
        u = _read_predictions(u, beta.shape[1])
        known = TIED * np.abs(b)
        best = np.empty(len(u), dtype=np.int64)
        sizes = np.linalg.norm(beta, axis=1)
        # Four arrays of shape (rows, n_targets) exist at a time.
        step = rows_per_block(4 * 8 * len(beta), BLOCK_BYTES)
        for rows in (slice(first, first + step) for first in range(0, len(u), step)):
            # A target ties with the least one if their costs differ by no more than the rounding
            # errors of both, which are proportional to ||u|| ||beta_t|| + |b_t|.
            cost = u[rows] @ beta.T + b
            least = cost.argmin(axis=1)
            length = np.linalg.norm(u[rows], axis=1, keepdims=True)
            slack = TIED * length * (sizes + sizes[least, None]) + known + known[least, None]
            best[rows] = np.argmax(cost <= cost.min(axis=1, keepdims=True) + slack, axis=1)
        return best

    def expected_cost(self, u: ArrayLike, constant: ArrayLike = 0.0) -> Floats:
        """Return the expected cost of every target.

        Parameters
        ----------
        u : array-like of shape (n_samples, rank)
            Expected regression targets.
        constant : float or array-like of shape (n_samples,), default=0.0
            The expectation of c. If it is 0, the costs of each row are correct up to a constant.

        Returns
        -------
        cost : ndarray of shape (n_samples, n_targets)
        """
        _, beta, _, b = self._read()
        u = _read_predictions(u, beta.shape[1])
        return u @ beta.T + b + np.reshape(np.asarray(constant, dtype=np.float64), (-1, 1))

    def cost(self, labels: ArrayLike, targets: ArrayLike) -> Floats:
        """Return the cost of targets if the labels are known.

        Parameters
        ----------
        labels, targets : array-like of int
            Numbers of labels and of targets, from 0. The shapes must broadcast.

        Returns
        -------
        cost : ndarray of float
            For example, ``cost(np.arange(n)[:, None], np.arange(k))`` is the whole matrix.
        """
        alpha, beta, c, b = self._read()
        labels = _read_numbers(labels, len(alpha), "labels")
        targets = _read_numbers(targets, len(beta), "targets")
        return np.einsum("...d,...d->...", alpha[labels], beta[targets]) + c[labels] + b[targets]

    def regret_constant(self) -> float:
        """Return the largest distance between two rows of beta, for the bound in the class notes.

        If k targets of rank d are so many that k^2 d > 2e9, the method returns the diameter of a
        ball around their mean that contains them all. It is at least the largest distance and at
        most twice as large.
        """
        _, beta, _, _ = self._read()
        k, d = beta.shape
        if k * k * d > EXACT_DIAMETER:
            return float(2 * np.linalg.norm(beta - beta.mean(axis=0), axis=1).max())
        batches = gen_batches(k, rows_per_block(8 * k, BLOCK_BYTES))
        return max(float(cdist(beta[rows], beta).max()) for rows in batches) if d else 0.0

    def _least_costs(self) -> Floats:
        """Return the least cost of each label, computed for a block of labels at a time."""
        n_labels, n_targets = self.shape
        c = np.broadcast_to(self.c, n_labels)
        least = np.empty(n_labels)
        for rows in gen_batches(n_labels, rows_per_block(8 * n_targets, BLOCK_BYTES)):
            costs = self.expected_cost(self.encode(np.arange(n_labels)[rows]), c[rows])
            least[rows] = costs.min(axis=1)
        return least


def read_matrix(L: ArrayLike) -> Floats:
    """Check a matrix of costs, which must be finite and in range."""
    L = read_numbers(L, "the loss matrix")
    matrix = check_array(L, dtype=np.float64, ensure_all_finite=False, input_name="loss matrix")
    bad = ~np.isfinite(matrix)
    if bad.any():
        raise ValueError(
            "The loss matrix contains NaN or infinity in columns "
            f"{np.flatnonzero(bad.any(0)).tolist()}. Every target, including an abstention, needs "
            "a finite cost for every label."
        )
    check_range(matrix, "The loss matrix")
    return matrix


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _read_numbers(numbers: ArrayLike, n: int, name: str) -> Ints:
    """Check numbers of labels or targets, which are whole numbers from 0 to n - 1."""
    read = read_array(numbers, name)
    if read.dtype.kind not in "iu" or (read.size and not 0 <= read.min() <= read.max() < n):
        raise ValueError(f"{name} must be whole numbers from 0 to {n - 1}; got {numbers!r}.")
    return read


def _read_predictions(u: ArrayLike, rank: int) -> Floats:
    """Check finite predictions (n_samples, rank)."""
    u = read_numbers(u, "u")
    if u.ndim != 2 or u.shape[1] != rank:
        raise ValueError(f"u must have shape (n_samples, {rank}); it has shape {u.shape}.")
    if not np.isfinite(u).all():
        raise ValueError("u contains NaN or infinity.")
    return u
