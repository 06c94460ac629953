"""LowRankLoss, a matrix of costs as products of vectors of labels and targets."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from sklearn.utils import check_array, gen_batches
from sklearn.utils.extmath import svd_flip

from sklearn_rankcal.utils._memory import rows_per_block
from sklearn_rankcal.utils._numbers import check_range, read_numbers, read_whole
from sklearn_rankcal.utils._parameters import check_count
from sklearn_rankcal.utils._typing import Floats, Ints

#: Rounding errors of an expected cost are below ||u|| ||beta|| + |intercept| times this number.
TIED = 1e-12
#: A singular value below this number times the norm of the matrix of costs is rounding.
NOISE = 1e-13


class LowRankLoss:
    """A loss <alpha_y, beta_t> + c_y + b_t of a label y and a target t, both numbered from 0.

    `from_matrix` makes such a loss from any matrix of costs. `encode` maps a label y to its vector
    alpha_y. Least squares on these vectors estimates u = E[alpha_Y], and `decode` returns the
    target with the smallest <u, beta_t> + b_t.

    This is calibrated for every distribution of the labels (Ramaswamy, Agarwal and Tewari, 2013,
    theorem 3). For any u, the regret of the decoded target is at most
    ``regret_constant() * ||u - E[alpha_Y]|| + 2 * error``; see :ref:`low_rank`.

    Parameters
    ----------
    alpha : array-like of shape (n_labels, rank)
        The regression targets of each label.
    beta : array-like of shape (n_targets, rank)
        The vector of each target. Its product with the regression targets is the cost.
    c : float or array-like of shape (n_labels,), default=0.0
        Part of the cost that depends only on the label. It does not affect decoding.
    intercept : float or array-like of shape (n_targets,), default=0.0
        Part b of the cost that depends only on the target. It needs no regression target.

    Examples
    --------
    Six grades have a matrix of distances of rank 5. Two regression targets approximate it well:

    >>> import numpy as np
    >>> from sklearn_rankcal.cost_sensitive import LowRankLoss
    >>> L = np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
    >>> loss = LowRankLoss.from_matrix(L, rank=2)
    >>> p = np.array([0.1, 0.2, 0.3, 0.2, 0.1, 0.1])
    >>> u = p @ loss.encode(np.arange(6))
    >>> round(loss.error, 2), loss.decode(u[None]).item(), int(np.argmin(p @ L))  # the median
    (0.52, 2, 2)
    """

    def __init__(
        self, alpha: ArrayLike, beta: ArrayLike, c: ArrayLike = 0.0, *, intercept: ArrayLike = 0.0
    ) -> None:
        self.alpha, self.beta = read_matrix(alpha, "alpha"), read_matrix(beta, "beta")
        self.shape = len(self.alpha), len(self.beta)
        self.c = _read_vector(c, self.shape[0], "c")
        self.error = 0.0  # largest difference from the costs that this loss approximates
        self.intercept = _read_vector(intercept, self.shape[1], "intercept")
        if self.alpha.shape[1] != self.beta.shape[1]:
            shapes = f"{self.alpha.shape} and {self.beta.shape}"
            raise ValueError(f"alpha and beta need the same number of columns; got {shapes}.")

    @classmethod
    def from_matrix(cls, L: ArrayLike, rank: int | None = None) -> LowRankLoss:
        """Factor a matrix of costs, in O(n_labels n_targets min(n_labels, n_targets)) time.

        Parameters
        ----------
        L : array-like of shape (n_labels, n_targets)
            ``L[y, t]`` is the cost of target t for label y: 0, or from 1e-50 to 1e50.
        rank : int, default=None
            Maximum number of regression targets. If the matrix needs more, it is approximated. None
            means as many as the matrix needs, and at least one.

        Returns
        -------
        loss : LowRankLoss
            The factored loss. Its ``intercept`` holds the column means. The columns of ``beta`` are
            orthonormal: the squared error of a prediction of alpha equals the squared error of the
            costs of all targets. The attribute `error` is the largest error of a cost; without
            `rank`, it is only rounding.
        """
        matrix = read_matrix(L, "loss_matrix")
        check_range(matrix, "loss_matrix")
        check_count(rank, "rank", or_none=True)
        # Let H = I - 11'/n, which subtracts the means of columns. For all intercepts b and all M,
        # H (L - 1 b' - M) = H L - H M. H never increases a norm or a rank. Therefore no b leaves a
        # smaller rank than rank(H L), or a smaller squared error for M of the same rank. The column
        # means attain this: they leave H L. Row means would save at most one output, but without
        # their costs.
        b = matrix.mean(axis=0)
        left, values, right = np.linalg.svd(matrix - b, full_matrices=False)
        left, right = svd_flip(left, right)
        values[values <= NOISE * np.linalg.norm(matrix)] = 0.0
        d = max(np.count_nonzero(values[:rank]), 1)
        alpha, beta = left[:, :d] * values[:d], right[:d].T
        loss = cls(alpha, beta, intercept=b)
        loss.error = float(np.abs(loss.expected_cost(alpha) - matrix).max())
        return loss

    def encode(self, labels: ArrayLike) -> Floats:
        """Return the regression targets of labels.

        Parameters
        ----------
        labels : array-like of shape (n_samples,)
            Labels, numbered from 0.

        Returns
        -------
        alpha : ndarray of shape (n_samples, rank)
            The regression targets.
        """
        return self.alpha[_read_numbers(labels, len(self.alpha), "labels")]

    def decode(self, u: ArrayLike) -> Ints:
        """Return the target with the smallest <u, beta_t> + b_t for each row of u.

        Parameters
        ----------
        u : array-like of shape (n_samples, rank)
            Estimates of E[alpha_Y].

        Returns
        -------
        targets : ndarray of shape (n_samples,)
            Targets, numbered from 0. If several targets tie up to rounding, the first of them.
        """
        u = read_matrix(u, "u")
        best = np.empty(len(u), dtype=np.int64)
        lengths = np.linalg.norm(self.beta, axis=1)
        # At most four arrays of shape (rows, n_targets) exist at the same time.
        for rows in gen_batches(len(u), rows_per_block(4 * 8 * len(self.beta))):
            cost = u[rows] @ self.beta.T + self.intercept
            # A target ties with the smallest if the intervals of their rounding errors overlap.
            slack = np.linalg.norm(u[rows], axis=1, keepdims=True) * lengths
            slack = TIED * (slack + np.abs(self.intercept))
            least = (cost + slack).min(axis=1, keepdims=True)
            best[rows] = np.argmax(cost - slack <= least, axis=1)
        return best

    def expected_cost(self, u: ArrayLike) -> Floats:
        """Return the expected cost of each target, without the part c.

        Parameters
        ----------
        u : array-like of shape (n_samples, rank)
            Estimates of E[alpha_Y].

        Returns
        -------
        cost : ndarray of shape (n_samples, n_targets)
            The expected costs.
        """
        return read_matrix(u, "u") @ self.beta.T + self.intercept

    def cost(self, labels: ArrayLike, targets: ArrayLike) -> Floats:
        """Return the costs of targets for known labels.

        Parameters
        ----------
        labels, targets : array-like of int
            Labels and targets, numbered from 0. Their shapes must broadcast. For example,
            ``cost(np.arange(n)[:, None], np.arange(k))`` is the whole matrix.

        Returns
        -------
        cost : ndarray
            The costs, of the common shape.
        """
        y = _read_numbers(labels, len(self.alpha), "labels")
        t = _read_numbers(targets, len(self.beta), "targets")
        product = np.einsum("...d,...d->...", self.alpha[y], self.beta[t])
        return np.asarray(product + self.c[y] + self.intercept[t])

    def regret_constant(self) -> float:
        """Return the largest distance between two rows of beta, in O(n_targets^2 rank) time.

        Returns
        -------
        constant : float
            The constant of the regret bound.
        """
        batches = gen_batches(len(self.beta), rows_per_block(8 * len(self.beta)))
        return max(float(cdist(self.beta[rows], self.beta).max()) for rows in batches)


def read_matrix(values: ArrayLike, name: str) -> Floats:
    """Check a matrix of finite numbers."""
    return np.asarray(check_array(read_numbers(values, name), dtype=np.float64, input_name=name))


def _read_vector(values: ArrayLike, length: int, name: str) -> Floats:
    """Check a finite number or a vector of finite numbers, and return a vector."""
    read = read_numbers(values, name)
    if read.shape not in ((), (length,)) or not np.isfinite(read).all():
        raise ValueError(f"{name} must be a finite number, or {length} of them; got {values!r}.")
    return np.broadcast_to(read, length)


def _read_numbers(numbers: ArrayLike, n: int, name: str) -> Ints:
    """Check numbers of labels or targets: whole numbers from 0 to n - 1."""
    read = read_whole(numbers, name)
    if read.size and not 0 <= read.min() <= read.max() < n:
        raise ValueError(f"{name} must be whole numbers from 0 to {n - 1}; got {numbers!r}.")
    return read
