"""Validation queries, and how good their rankings are after each iteration of a regressor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.queries import Queries

Floats = NDArray[np.float64]
_N_REPORTS = 20  # about how many lines of progress are printed if training is not stopped


class Validation:
    """Validation queries, and how good their rankings are after each iteration of a regressor.

    Training stops after `n_iter_no_change` iterations in a row without a new best value.

    Attributes
    ----------
    X, queries : table and Queries
        The documents of the validation queries.
    evaluate : callable
        ``evaluate(scores)`` returns the worth of the rankings by these scores; larger is better.
    show : callable or None
        ``show(line)`` receives lines about the progress of training.
    scores : list of float
        The value after each iteration so far.
    n_iter : int
        The number of iterations with the best value. Of equal values the earliest counts.
    """

    def __init__(
        self,
        X: Any,
        queries: Queries,
        evaluate: Callable[[Floats], float],
        n_iter_no_change: int,
        show: Callable[[str], None] | None = None,
    ) -> None:
        self.X = X
        self.queries = queries
        self.evaluate = evaluate
        self.n_iter_no_change = n_iter_no_change
        self.show = show
        self.scores: list[float] = []
        self.n_iter = 0
        self._n_reported = 0

    def record(self, scores: Floats) -> None:
        """Evaluate the predictions of one more iteration."""
        self.scores.append(self.evaluate(scores))
        if self.n_iter == 0 or self.scores[-1] > self.scores[self.n_iter - 1]:
            self.n_iter = len(self.scores)

    @property
    def stops(self) -> bool:
        """Whether training should stop."""
        return len(self.scores) - self.n_iter >= self.n_iter_no_change

    def report(self, n_max: int, seconds: float) -> None:
        """Show the progress of at most `n_max` iterations if enough passed since the last time."""
        n_done = len(self.scores)
        if self.show is None or n_done == 0 or n_done - self._n_reported < n_max / _N_REPORTS:
            return
        self._n_reported = n_done
        remaining = seconds / n_done * (n_max - n_done)
        self.show(
            f"iteration {n_done} of at most {n_max}: {self.scores[-1]:.4f} on the validation "
            f"queries, best {self.scores[self.n_iter - 1]:.4f} after {self.n_iter}; at most "
            f"{remaining:.1f} s remain ({seconds:.2f} s)"
        )
