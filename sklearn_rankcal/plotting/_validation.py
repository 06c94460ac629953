"""Plots of early stopping."""

from __future__ import annotations

from typing import Any

import numpy as np

from sklearn_rankcal.plotting._axes import make_axes


def plot_validation_scores(ranker: Any, *, ax: Any = None) -> Any:
    """Plot the value of the rankings of validation queries after each iteration of a regressor.

    Parameters
    ----------
    ranker : CalibratedRanker
        A ranker that was fitted with validation queries.
    ax : matplotlib axes, default=None
        If None, a new figure is made.

    Returns
    -------
    ax : matplotlib axes
        ``ranker.validation_scores_``, and a dashed line at the iteration ``ranker.n_iter_``.

    Raises
    ------
    ValueError
        If the ranker is not fitted or had no validation queries.
    ImportError
        If matplotlib is not installed.
    """
    scores = getattr(ranker, "validation_scores_", None)
    if scores is None:
        raise ValueError(
            "The ranker has no validation_scores_. Fit it with validation queries: with the "
            "parameter validation_queries=0.2, or with X_val, y_val and groups_val in fit."
        )
    ax = make_axes() if ax is None else ax
    ax.plot(np.arange(1, len(scores) + 1), scores, color="0.2")
    ax.axvline(ranker.n_iter_, color="tab:red", linestyle="--")
    name = type(ranker.loss_).__name__
    # not in a legend, which could cover the line
    ax.set(xlabel=f"iteration (dashed: {ranker.n_iter_} are kept)", ylabel=f"validation {name}")
    return ax
