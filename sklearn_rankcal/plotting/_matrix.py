"""The plot of predictions for pairs as a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sklearn_rankcal.queries._ranking import check_scores
from sklearn_rankcal.utils._axes import make_axes
from sklearn_rankcal.utils._numbers import read_numbers, read_whole
from sklearn_rankcal.utils._typing import Floats, Ints


def plot_matrix(u: ArrayLike, ranks: ArrayLike | None = None, *, ax: Any = None) -> Any:
    """Plot predictions for pairs as a coloured matrix, with documents in the order of a ranking.

    Parameters
    ----------
    u : array-like of shape (r, r)
        A matrix of differences of preferences, or a symmetric matrix, such as
        `CalibratedRanker.predict_preferences` returns.
    ranks : array-like of shape (r,), default=None
        The position of each document, 1 = top. If u is antisymmetric, the ranking agrees with a red
        entry above the diagonal and contradicts a blue one. If None, documents keep their order.
    ax : matplotlib axes, default=None
        The axes to draw on. If None, a new figure is made.

    Returns
    -------
    ax : matplotlib axes

    Raises
    ------
    ValueError
        If u is not a square matrix of finite numbers, or if `ranks` is not a ranking of its
        documents.
    ImportError
        If matplotlib is not installed.
    """
    matrix, order = read_matrix(u, ranks)
    ax = make_axes() if ax is None else ax
    size = np.abs(matrix).max() or 1.0
    shown = matrix[np.ix_(order, order)]
    image = ax.imshow(shown, cmap="RdBu_r", vmin=-size, vmax=size)
    ax.figure.colorbar(image, ax=ax, shrink=0.8)
    if len(order) <= 30:
        ax.set_xticks(range(len(order)), order.tolist())
        ax.set_yticks(range(len(order)), order.tolist())
    ax.set(xlabel="document", ylabel="document")
    return ax


def read_matrix(matrix: ArrayLike, ranks: ArrayLike | None) -> tuple[Floats, Ints]:
    """Check the matrix and the ranking; return the matrix and its documents, best first."""
    values = read_numbers(matrix, "the matrix")
    if values.ndim != 2 or values.shape[0] != values.shape[1] or values.size == 0:
        raise ValueError(
            "A square matrix is needed, with a row and a column for each document; it has shape "
            f"{values.shape}."
        )
    check_scores(values.reshape(-1), None, "the matrix")
    r = len(values)
    if ranks is None:
        return values, np.arange(r)
    given = read_whole(ranks, "ranks")
    if given.shape != (r,) or sorted(given.tolist()) != list(range(1, r + 1)):
        raise ValueError(f"ranks must contain the positions 1 to {r} once each; got {ranks!r}.")
    return values, np.argsort(given)
