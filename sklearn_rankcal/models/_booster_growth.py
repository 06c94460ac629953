"""`BoosterGrowth`: boosters of several folds that grow together while held-out errors fall."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor

from sklearn_rankcal.models._folds import Fold, fill_empty_columns, fits_at_once
from sklearn_rankcal.models._member_weights import listwise_error
from sklearn_rankcal.utils._rounding import exceeds
from sklearn_rankcal.utils._scales import target_unit
from sklearn_rankcal.utils._sklearn_compat import bins_once, cut_iterations
from sklearn_rankcal.utils._threads import threads_for
from sklearn_rankcal.utils._typing import Floats

#: From this number of rows on, more trees may grow, and the learning rate doubles earlier.
MANY_ROWS = 20_000
_SMALLEST = np.finfo(np.float64).tiny
_STEP = 30  # fewest trees per step; steps grow, because each step predicts by all trees so far
_MOST_TREES, _MOST_OF_MANY_ROWS = 600, 1000
# Stop after this number of trees without improvement, or this fraction of the trees so far: the
# held-out error seldom decreases again.
_PATIENCE, _PATIENCE_SHARE = 40, 0.5
# After this number of trees, the learning rate doubles: if more trees still help, there is little
# noise.
_SLOW_TREES, _SLOW_OF_MANY_ROWS = 150, 60  # the latter also for logarithms
_SLOW, _FAST = 0.1, 0.2


class BoosterGrowth:
    """Boosters of one loss and one size of trees, one per fold, that grow together."""

    def __init__(
        self,
        regressor: HistGradientBoostingRegressor,
        folds: list[Fold],
        wanted: Floats,
        unseen: Floats,
        n_jobs: int | None,
    ) -> None:
        self.n_leaves = regressor.max_leaf_nodes
        self.logs = regressor.loss == "poisson"
        # with the mean of the positive targets as unit, the penalty of a leaf counts documents
        size = wanted[wanted > 0].mean() if self.logs else np.abs(wanted).max()
        unit = float(size) if self.logs else target_unit(float(size))
        self.scale = 1.0 if self.logs else unit  # of the scores
        self.regressors = [clone(regressor).set_params(warm_start=True) for _ in folds]
        self.n_trees, self.n_grown, self.error = 0, 0, np.inf
        self._folds, self._n_jobs = folds, fits_at_once(n_jobs, len(wanted))
        many = len(wanted) >= MANY_ROWS
        self._most = _MOST_OF_MANY_ROWS if many else _MOST_TREES
        self._n_slow = _SLOW_OF_MANY_ROWS if many or self.logs else _SLOW_TREES
        self.wanted, self._unseen = wanted / unit, unseen / unit

    @property
    def stops(self) -> bool:
        """Whether more trees are not expected to help."""
        return self.n_grown >= min(self._most, self.n_trees + self._patience)

    @property
    def _patience(self) -> int:
        """Number of trees without improvement to allow. After many trees, plateaus are longer."""
        return max(_PATIENCE, int(_PATIENCE_SHARE * self.n_trees))

    def grow(self, n_more: int) -> None:
        """Add trees to all boosters, and update the best number of trees."""
        n_next = min(self._most, self.n_grown + n_more)
        errors = Parallel(n_jobs=self._n_jobs, prefer="threads")(
            delayed(self._errors)(regressor, fold, n_next)
            for regressor, fold in zip(self.regressors, self._folds, strict=True)
        )
        for number, error in enumerate(np.sum(errors, axis=0), self.n_grown + 1):
            if self.error == np.inf or exceeds(self.error, error, self.error):
                self.n_trees, self.error = number, float(error)
            elif number >= self.n_trees + self._patience:
                break
        self.n_grown = n_next

    def grow_to_the_end(self) -> BoosterGrowth:
        """Grow as long as trees help, remove the trees after the best number, and return self."""
        while not self.stops:
            self.grow(max(_STEP, self.n_grown // 4))
        for regressor in self.regressors:
            cut_iterations(regressor, self.n_trees)
            regressor.set_params(max_iter=self.n_trees, warm_start=False)
        return self

    def _errors(self, regressor: HistGradientBoostingRegressor, fold: Fold, n_trees: int) -> Floats:
        """Fit a booster up to a number of trees; return the held-out error after each new tree."""
        inside, outside = fold.inside, fold.outside
        unseen = self._unseen[fold.held]
        wanted = outside.queries.center(unseen)
        errors = []
        with threads_for(inside.queries.n_rows), bins_once(regressor, fold.bins):
            self._add_trees(regressor, n_trees, inside.X, self.wanted[fold.rows], inside.weight)
            for predicted in islice(regressor.staged_predict(outside.X), self.n_grown, None):
                scores = self._scores(predicted)
                if self.logs:
                    errors.append(listwise_error(scores, unseen, outside.queries, outside.weight))
                    continue
                squares = np.square(outside.queries.center(scores) - wanted)
                weight = outside.weight
                errors.append(float(squares.sum() if weight is None else squares @ weight))
        return np.array(errors)

    def held_out(self) -> Floats:
        """Return the scores of all held-out rows."""
        scores = np.empty(sum(fold.outside.queries.n_rows for fold in self._folds))
        for regressor, fold in zip(self.regressors, self._folds, strict=True):
            with threads_for(fold.outside.queries.n_rows):
                scores[fold.held] = self._scores(regressor.predict(fold.outside.X))
        return scores * self.scale

    def _scores(self, predicted: Floats) -> Floats:
        """Return the sum of the trees: the predictions or their logarithms."""
        return np.log(np.maximum(predicted, _SMALLEST)) if self.logs else predicted

    def refit(self, table: Any, weight: Floats | None) -> HistGradientBoostingRegressor:
        """Fit a booster of this size to all rows."""
        regressor = clone(self.regressors[0]).set_params(warm_start=True)
        with threads_for(len(self.wanted)), bins_once(regressor):
            table = fill_empty_columns(table)
            self._add_trees(regressor, self.n_trees, table, self.wanted, weight)
        return regressor.set_params(warm_start=False)

    def _add_trees(
        self,
        regressor: HistGradientBoostingRegressor,
        n_trees: int,
        table: Any,
        wanted: Floats,
        weight: Floats | None,
    ) -> None:
        """Fit a booster up to a number of trees, the first ones with a smaller learning rate."""
        n_done = getattr(regressor, "n_iter_", 0)
        if n_done < self._n_slow:
            regressor.set_params(learning_rate=_SLOW, max_iter=min(n_trees, self._n_slow))
            regressor.fit(table, wanted, weight)
        if n_trees > self._n_slow:
            regressor.set_params(learning_rate=_FAST, max_iter=n_trees)
            regressor.fit(table, wanted, weight)
