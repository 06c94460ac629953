"""Calibration queries: draw them, check that there are enough, and that no ranker has seen them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from sklearn_rankcal.utils._messages import warn
from sklearn_rankcal.utils._rounding import ROUNDING
from sklearn_rankcal.utils._typing import Bools, Floats
from sklearn_rankcal.utils._wrapped import call_with_groups, innermost_estimator


def draw_queries(n_queries: int, share: float, random_state: Any) -> Bools:
    """Draw a share of the queries, whatever their contents, so that they are exchangeable."""
    if n_queries < 2:
        raise ValueError(
            "One query cannot be divided into one to fit the ranker and one to calibrate. Pass "
            "more queries."
        )
    n_drawn = min(max(1, round(share * n_queries)), n_queries - 1)
    drawn = np.zeros(n_queries, dtype=bool)
    drawn[check_random_state(random_state).permutation(n_queries)[:n_drawn]] = True
    return drawn


def queries_needed(alpha: float) -> int:
    """Return the smallest n with 1 / (n + 1) <= alpha: how many calibration queries alpha needs."""
    return max(1, math.ceil((1 - ROUNDING) / alpha) - 1)


def check_enough(defined: Bools, alpha: float, alpha_silent: float) -> None:
    """Refuse fewer calibration queries on which the risk is `defined` than alpha needs."""
    needed = max(queries_needed(part) for part in (alpha - alpha_silent, alpha_silent) if part > 0)
    if defined.sum() < needed:
        silent = f" of which alpha_silent={alpha_silent!r}" if alpha_silent else ""
        raise ValueError(
            f"alpha={alpha!r}{silent} needs at least {needed} calibration queries on which the "
            f"risk is defined, such as those with a relevant document; {defined.sum()} of "
            f"{len(defined)} are. Pass more queries, a larger share calibration_queries of them, "
            "or a larger alpha."
        )


def warn_if_fitted(ranker: Any, X: Any, ids: NDArray[Any], relevance: Floats) -> None:
    """Warn if a fitted ranker remembers that it was fitted on some of the queries."""
    if getattr(innermost_estimator(ranker), "_fitted_queries", None) is None:
        return
    if seen := call_with_groups(ranker, "_count_fitted", X, ids, labels=relevance):
        warn(
            f"The ranker was fitted on {seen} of the calibration queries. It ranks them better "
            "than new ones, so that the promise does not hold. Calibrate on other queries, or pass "
            "the ranker without FrozenEstimator: then fit holds queries out."
        )
