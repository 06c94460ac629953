"""LowRankLoss: any table of costs as a product, so that labels become few regression targets.

P1's theorem 3 without rankings: labels and targets are numbered, and every cost is written out.
"""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, gen_batches
from sklearn.utils.extmath import svd_flip

from sklearn_rankcal.utils._numbers import read_array, read_numbers

Floats = NDArray[np.float64]
LARGEST = 1e150
CHUNK = 2**22  # numbers held at a time
EXACT_DIAMETER = 2e9  # multiplications: a few seconds
TIED = 1e-12  # of ||u|| ||beta|| + |intercept|: lesser differences of costs are rounding
NOISE = 2.0**-48  # of the largest cost of its row or column: a lesser cost is rounding


class LowRankLoss(BaseEstimator):
    """A loss <alpha_y, beta_t> + c_y + b_t of label y and target t, both numbered from 0.

    `from_matrix` makes one of any matrix of costs. The label y is encoded as alpha_y, least squares
    on that estimates u = E[alpha_Y], and u is decoded as the target of least <u, beta_t> + b_t.

    Parameters
    ----------
    alpha : array-like of shape (n_labels, rank)
        Regression targets of each label.
    beta : array-like of shape (n_targets, rank)
        What each target does with a prediction.
    c : float or array-like of shape (n_labels,), default=0.0
        A part of the cost that depends on the label alone. It decides nothing.
    error : float, default=0.0
        The largest difference between a cost and that of the loss which is meant, where this one
        is an approximation.
    intercept : float or array-like of shape (n_targets,), default=0.0
        b, a part of the cost that depends on the target alone. It is known, so that no regression
        target is spent on it.

    See Also
    --------
    sklearn_rankcal.LowRankClassifier : Regress and decode, as a classifier.

    Notes
    -----
    Calibrated for every distribution of the labels (P1, theorem 3): the minimiser of
    E||u - alpha_Y||^2 is E[alpha_Y], and its target has the least expected loss. An intercept
    changes nothing about that: it is a component of alpha that is 1 for every label, whose
    expectation is known, with b_t for its component of beta_t. The theorem's argument also bounds
    the expected loss above the least of the target decoded from any u, by::

        regret_constant() * ||u - E[alpha_Y]|| + 2 * error

    where ||u - E[alpha_Y]||^2 is the surrogate regret. The second term: a target that is best for
    the approximation costs at most `error` more than the approximation says, and the best target
    at most `error` less.

    It has the vocabulary of a ranking `Loss`, but is none: there are no queries and no measure of
    an order, so `CalibratedRanker` does not take it.

    References
    ----------
    .. [1] H. G. Ramaswamy, S. Agarwal and A. Tewari (2013). Convex calibrated surrogates for
       low-rank loss matrices with applications to subset ranking losses. NIPS. Theorem 3.

    Examples
    --------
    The distance ``|y - t|`` between six grades has rank 5 beside the mean costs of grades. Rank 2
    comes close:

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
    calibrated_over = "every distribution of the labels (P1, theorem 3)"
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

    # ---------------------------------------------------------------- making one

    @classmethod
    def from_matrix(
        cls, L: ArrayLike, rank: int | None = None, *, tol: float = 1e-13
    ) -> LowRankLoss:
        """Factor a matrix of costs.

        Parameters
        ----------
        L : array-like of shape (n_labels, n_targets)
            ``L[y, t]`` is the cost of target t when the label is y. Any finite numbers. A target
            that never costs anything, where no cost is negative, is the answer to everything.
        rank : int, default=None
            At most that many regression targets, the best that the singular value decomposition
            has; `error` says what that costs. None is as many as the matrix needs.
        tol : float, default=1e-13
            Singular values up to `tol` times the largest count as 0. A warning says where that
            costs more than rounding does, as beside a cost of 1e14.

        Returns
        -------
        loss : LowRankLoss
            ``beta`` has orthonormal columns: the squared error of a prediction of alpha is that
            of the costs of all targets it implies. Means of the rows of L are taken out as
            ``c``, and means of the columns as ``intercept``, where that lowers the rank, or
            improves an approximation; else they are 0. No other constants lower the rank further.

        Raises
        ------
        ValueError
            NaN or infinity; a rank out of 1 .. min(L.shape).

        Notes
        -----
        O(n_labels n_targets min(n_labels, n_targets)) time. Where a factorisation is known, give
        it to the class instead.
        """
        L = _read_matrix(L)
        n, k = L.shape
        if rank is not None and not (_is_whole(rank) and 1 <= rank <= min(n, k)):
            raise ValueError(
                f"rank must be a whole number from 1 to {min(n, k)}, the smaller side of L of "
                f"shape {L.shape}, or None; got {rank!r}."
            )
        if not (isinstance(tol, Real) and 0 <= float(tol) < 1):
            raise ValueError(f"tol must be a number >= 0 and < 1; got {tol!r}.")
        if not np.abs(L).max() < LARGEST:
            raise ValueError(f"Costs beyond {LARGEST:g} are too large: squares would overflow.")
        # Whatever constants c of the labels and b of the targets are: with H = I - 11'/n, which
        # centres, H (L - c 1' - 1 b') H = H L H, so that rank(L - c 1' - 1 b') >= rank(H L H). The
        # means of rows and columns, less the mean of all, leave just H L H: the least rank there
        # is. Where fewer constants reach it, they are preferred.
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
            floor = max(floor, tol * values[0])  # taking means out lengthens nothing
            needed = int(np.sum(values > floor))
            d = needed if rank is None else min(needed, rank)
            loss = cls(left[:, :d] * values[:d], right[:d].T, c, intercept=b if b.any() else 0.0)
            errors = np.abs(loss.expected_cost(loss.alpha, c) - L)
            loss.error = float(errors.max())
            candidates.append((d, loss.error if d < needed else 0.0, len(candidates), loss))
        best = min(candidates)[-1]  # fewest outputs, then the least error, then fewest constants
        size = np.abs(L)
        largest = np.maximum(size.max(axis=1, keepdims=True), size.max(axis=0))
        counts = size > NOISE * largest
        if rank is None and counts.any() and best.error > 1e-3 * size[counts].min():
            warnings.warn(
                f"Costs of very different size: the factored loss errs by up to {best.error:.3g}, "
                "so that small costs are lost beside large ones. Use smaller large costs.",
                UserWarning,
                stacklevel=2,
            )
        return best

    @classmethod
    def zero_one(cls, n_labels: int) -> LowRankLoss:
        """1 for a wrong label, 0 for the right one: regress on indicators, decode the largest.

        Parameters
        ----------
        n_labels : int
            At least 2. Two labels need a single indicator.

        Returns
        -------
        loss : LowRankLoss
        """
        if not (_is_whole(n_labels) and n_labels >= 2):
            raise ValueError(f"n_labels must be a whole number >= 2; got {n_labels!r}.")
        if n_labels == 2:
            return cls([[0.5], [-0.5]], [[-1.0], [1.0]], 0.5)
        return cls(np.eye(n_labels), -np.eye(n_labels), 1.0)

    # ---------------------------------------------------------------- using one

    def _read(self) -> tuple[Floats, Floats, Floats, Floats]:
        """alpha, beta, c of shape (n_labels,), and the intercept of shape (n_targets,), checked."""
        names = ("alpha", "beta", "c", "intercept")
        alpha, beta, c, b = (read_numbers(getattr(self, name), name) for name in names)
        for name, part in zip(names, (alpha, beta, c, b), strict=True):
            if not np.isfinite(part).all():
                raise ValueError(f"{name} contains NaN or infinity.")
        if alpha.ndim != 2 or beta.ndim != 2 or alpha.shape[1] != beta.shape[1]:
            raise ValueError(
                "alpha (n_labels, rank) and beta (n_targets, rank) need two dimensions and as many "
                f"columns; got shapes {alpha.shape} and {beta.shape}."
            )
        if not (len(alpha) and len(beta)):
            raise ValueError(f"{len(alpha)} labels and {len(beta)} targets: none is too few.")
        if c.shape not in ((), (len(alpha),)):
            raise ValueError(
                f"c has shape {c.shape}, but a number, or one for each of {len(alpha)} labels, is "
                "needed."
            )
        if b.shape not in ((), (len(beta),)):
            raise ValueError(
                f"intercept has shape {b.shape}, but a number, or one for each of {len(beta)} "
                "targets, is needed."
            )
        return alpha, beta, np.broadcast_to(c, len(alpha)), np.broadcast_to(b, len(beta))

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of labels and targets."""
        alpha, beta, _, _ = self._read()
        return len(alpha), len(beta)

    def encode(self, labels: ArrayLike) -> Floats:
        """Regression targets of labels.

        Parameters
        ----------
        labels : array-like of int
            From 0.

        Returns
        -------
        targets : ndarray of shape (n_samples, rank)

        Raises
        ------
        ValueError
            Not the number of a label.
        """
        alpha, _, _, _ = self._read()
        return alpha[_read_numbers(labels, len(alpha), "labels")]

    def decode(self, u: ArrayLike) -> NDArray[np.int64]:
        """The target of least <u, beta_t> + b_t for each row.

        Parameters
        ----------
        u : array-like of shape (n_samples, rank)
            Predictions of the regression targets.

        Returns
        -------
        targets : ndarray of shape (n_samples,)
            From 0. Of targets that tie, up to rounding, the first.

        Raises
        ------
        ValueError
            Another shape, NaN or infinity.
        """
        _, beta, _, b = self._read()
        u = _read_predictions(u, beta.shape[1])
        known = TIED * np.abs(b)
        best = np.empty(len(u), dtype=np.int64)
        sizes = np.linalg.norm(beta, axis=1)
        step = max(1, CHUNK // (4 * len(beta)))  # costs and slacks
        for rows in (slice(first, first + step) for first in range(0, len(u), step)):
            cost = u[rows] @ beta.T + b
            least = cost.argmin(axis=1)
            length = np.linalg.norm(u[rows], axis=1, keepdims=True)
            slack = TIED * length * (sizes + sizes[least, None]) + known + known[least, None]
            best[rows] = np.argmax(cost <= cost.min(axis=1, keepdims=True) + slack, axis=1)
        return best

    def expected_cost(self, u: ArrayLike, constant: ArrayLike = 0.0) -> Floats:
        """Expected cost of every target.

        Parameters
        ----------
        u : array-like of shape (n_samples, rank)
            Expected regression targets.
        constant : float or array-like of shape (n_samples,), default=0.0
            Expected c. With 0 the costs of a row are right up to a constant.

        Returns
        -------
        cost : ndarray of shape (n_samples, n_targets)
        """
        _, beta, _, b = self._read()
        u = _read_predictions(u, beta.shape[1])
        return u @ beta.T + b + np.reshape(np.asarray(constant, dtype=np.float64), (-1, 1))

    def cost(self, labels: ArrayLike, targets: ArrayLike) -> Floats:
        """Cost of targets when the labels are known.

        Parameters
        ----------
        labels, targets : array-like of int
            From 0; of shapes that broadcast.

        Returns
        -------
        cost : ndarray of float
            ``cost(np.arange(n)[:, None], np.arange(k))`` is the matrix.
        """
        alpha, beta, c, b = self._read()
        labels = _read_numbers(labels, len(alpha), "labels")
        targets = _read_numbers(targets, len(beta), "targets")
        return np.einsum("...d,...d->...", alpha[labels], beta[targets]) + c[labels] + b[targets]

    def regret_constant(self) -> float:
        """The largest distance between two rows of beta: see the bound above.

        Where k targets of rank d are so many that k^2 d > 2e9, twice the radius of a ball around
        their mean, which is larger, up to twice.
        """
        _, beta, _, _ = self._read()
        k, d = beta.shape
        if k * k * d > EXACT_DIAMETER:
            return float(2 * np.linalg.norm(beta - beta.mean(axis=0), axis=1).max())
        batches = gen_batches(k, max(1, CHUNK // k))
        return max(float(cdist(beta[rows], beta).max()) for rows in batches) if d else 0.0


def _read_matrix(L: ArrayLike) -> Floats:
    """A finite matrix of costs."""
    L = read_numbers(L, "the loss matrix")
    matrix = check_array(L, dtype=np.float64, ensure_all_finite=False, input_name="loss matrix")
    bad = ~np.isfinite(matrix)
    if bad.any():
        raise ValueError(
            f"The loss matrix has NaN or infinity in columns {np.flatnonzero(bad.any(0)).tolist()}:"
            " every target, an abstention too, needs a finite cost for every label."
        )
    return matrix


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _read_numbers(numbers: ArrayLike, n: int, name: str) -> NDArray[np.int64]:
    """Whole numbers from 0 to n - 1."""
    read = read_array(numbers, name)
    if read.dtype.kind not in "iu" or (read.size and not 0 <= read.min() <= read.max() < n):
        raise ValueError(f"{name} must be whole numbers from 0 to {n - 1}; got {numbers!r}.")
    return read


def _read_predictions(u: ArrayLike, rank: int) -> Floats:
    u = read_numbers(u, "u")
    if u.ndim != 2 or u.shape[1] != rank:
        raise ValueError(f"u has shape {u.shape}, but (n_samples, {rank}) is needed.")
    if not np.isfinite(u).all():
        raise ValueError("u contains NaN or infinity.")
    return u
