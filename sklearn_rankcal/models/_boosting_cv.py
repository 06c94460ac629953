"""Boosting whose number and size of trees held-out queries choose, for one loss or several."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor

from sklearn_rankcal.models._document import DocumentModel, as_counts
from sklearn_rankcal.models._folds import (
    Fold,
    check_cv,
    divide_queries,
    fill_empty_columns,
    fits_at_once,
    split_queries,
    without_sparse_columns,
)
from sklearn_rankcal.models._member_weights import (
    LABELS,
    POISSON,
    POISSON_LABELS,
    has_log_scores,
    listwise_error,
    listwise_weights,
    nonnegative_weights,
    own_targets,
)
from sklearn_rankcal.models._training import Training
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._features import numeric_columns
from sklearn_rankcal.utils._messages import print_progress
from sklearn_rankcal.utils._rounding import exceeds
from sklearn_rankcal.utils._scales import target_unit
from sklearn_rankcal.utils._sklearn_compat import bins_once, cut_iterations, merge_boosters
from sklearn_rankcal.utils._threads import threads_for
from sklearn_rankcal.utils._typing import Floats, Ints

_MANY_ROWS = 20_000
_SMALLEST = np.finfo(np.float64).tiny
#: Leaves of the trees that are tried. Noise asks for small trees and few of them, interactions of
#: columns for larger ones and many. With many rows, 15 leaves were not seen to be too many.
_LEAVES, _LEAVES_OF_MANY_ROWS = (7, 15), (15,)
_AT_FIRST = 640  # leaves in all
_STEP = 30  # trees at least; steps grow with the trees, because each predicts by all so far
_MOST_TREES, _MOST_OF_MANY_ROWS = 600, 1000
_MOST_MERGED = 8_000  # leaves of a mean or weighted sum over folds, about 1 MB in a pickle
_TREES_WITHOUT_NOISE = 200  # with so many, other targets on the same columns help no more
# The held-out error seldom falls again once it has grown for so many trees, or for such a share of
# those that reduced it.
_PATIENCE, _PATIENCE_SHARE = 40, 0.5
# After so many trees the rate doubles: where they still pay, there is little noise.
_SLOW_TREES, _SLOW_OF_MANY_ROWS = 150, 60  # the latter for logarithms, too
_SLOW, _FAST = 0.1, 0.2
# Every split sees so many of the columns, which takes less time and, as in a forest, ranks better.
_SHARE_OF_COLUMNS, _FEWEST_COLUMNS = 0.4, 4
_L2, _L2_OF_TARGETS = 5.0, 50.0  # the targets of a loss vary more than labels
# With many rows, the boosters of another loss stop if their first trees have a smaller share of the
# scores. With few rows, more trees cost little, and a share after the first ones is too noisy.
_SMALLEST_SHARE = 0.05
_SMALLEST_COSINE = 0.99  # of targets that are the same to a booster
_ALPHA = 30.0  # the penalty of the weights, as in `StackedModel`


class BoostingCV(DocumentModel):
    """Histogram gradient boosting whose size is chosen by cross-validation over queries.

    No fixed size of boosting suits all tables: noisy labels need some dozens of small trees, and
    columns that have to match, such as the wanted and the offered category, hundreds of larger
    ones. The queries are divided into `cv` folds. Boosters with trees of 7 and of 15 leaves grow on
    all folds but one, as long as the squared error of the targets falls on the folds that were left
    out, summed over all folds. The mean of the boosters of the better size predicts scores. If they
    have more than 8,000 leaves, one booster of this size, fitted to all queries, takes their place.

    With several losses, this is done for each. The weights of their scores minimise the squared
    error of the held-out targets of the ranker's own loss [1]_. Where boosters learn logarithms,
    the weights minimise the cross-entropy of the targets and of exp(weighted sum), which also
    chooses the sizes of these boosters. Targets of another loss are left out if each booster of the
    first loss has more than 200 trees, which means little noise, or if they are almost a multiple
    of the first targets plus a constant for each query. The mean and the weighted sum of boosters
    are boosters, and `regressor_` is a single one.

    Parameters
    ----------
    losses : sequence, default=(None,)
        What the boosters learn: None stands for the targets of the ranker's own loss, the name of a
        loss or a `Loss` for its targets, and ``"labels"`` for the labels as they are, from the
        columns of X alone, without context columns and with a weaker penalty. ``"poisson"`` and
        ``"poisson_labels"`` are the targets of the ranker's own loss and, from X alone, the labels,
        learned by their Poisson deviance: boosters add up to logarithms, which suit targets that
        are 0 for most documents. The model then predicts exp(weighted sum), in the unit of the
        targets.
    center : bool, default=True
        Whether to subtract from each target the mean of its query, but not from labels and from
        what is learned by the Poisson deviance.
    context : None, "auto", str or list of str, default=None
        Context columns, as in `DocumentModel`.
    cv : int, default=3
        Number of folds of the queries, at least 2.
    random_state : int, default=0
        Seed of the draws of columns: each split of a tree sees two fifths of the columns.
    n_jobs : int, default=None
        Number of folds that are fitted at the same time, in threads. None means one for each
        processor (or ``OMP_NUM_THREADS``) below 20,000 rows, and 1 above.
    verbose : int, default=0
        If positive, `fit` prints the chosen sizes.

    Attributes
    ----------
    regressor_ : HistGradientBoostingRegressor
        The fitted booster, or the weighted sum of several.
    sizes_ : dict of str to (int, int)
        For each loss that helps, the number of trees and the largest number of their leaves.
    weights_, shares_ : dict of str to float
        The weight of each loss, and how much of the scores its booster is, as in `StackedModel`.
    fold_of_query_ : ndarray of shape (n_queries,)
        The fold of each training query, which depends on the contents of the queries.
    context_
        As in `DocumentModel`.

    Notes
    -----
    `fit` takes about 5 to 8 times as long as the final booster alone.

    References
    ----------
    .. [1] L. Breiman (1996). Stacked regressions. Machine Learning 24, 49-64.

    Examples
    --------
    >>> from sklearn_rankcal import CalibratedRanker
    >>> from sklearn_rankcal.datasets import make_ranking
    >>> from sklearn_rankcal.models import BoostingCV
    >>> data = make_ranking(n_queries=60, random_state=0)
    >>> ranker = CalibratedRanker(BoostingCV()).fit(data.X, data.y, groups=data.groups)
    >>> list(ranker.model_.sizes_)
    ['targets']
    """

    regressor = None  # the parameter of `DocumentModel`
    stops_early = True

    def __init__(
        self,
        losses: Sequence[Any] = (None,),
        *,
        center: bool = True,
        context: str | Sequence[str] | None = None,
        cv: int = 3,
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.losses = losses
        self.center = center
        self.context = context
        self.cv = cv
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, training: Training, fold_of_query: Ints | None = None) -> Self:
        """Choose the sizes on held-out queries, and combine the boosters.

        Parameters
        ----------
        training : Training
            The labels are for losses other than the ranker's own. Validation queries choose the
            sizes in place of folds, and the boosters are then not fitted again.
        fold_of_query : ndarray of shape (n_queries,), default=None
            The fold of each query. None divides the queries into `cv` folds.

        Returns
        -------
        self : BoostingCV

        Raises
        ------
        ValueError
            If there are fewer queries than folds, or if a parameter is not as described.
        """
        if isinstance(self.losses, str) or not len(self.losses):
            raise ValueError(
                "losses must be a list of losses, such as (None,) for the loss of the ranker; got "
                f"{self.losses!r}."
            )
        check_cv(self.cv)
        started = time.perf_counter()
        training = replace(training, X=without_sparse_columns(training.X))
        validation = training.validation
        inside_stack = fold_of_query is not None
        self.__dict__.pop("fold_of_query_", None)
        if validation is None:
            if fold_of_query is None:
                fold_of_query = divide_queries(self, training)
            self.fold_of_query_ = fold_of_query
        # Step 1: choose the context columns. Boosters that learn labels read X alone.
        if all(map(_learns_labels, self.losses)):
            self._set_columns(training.X, [])
        else:
            self._choose_columns(training.X, training.queries)
        self._forget_classes()
        self._dtype, self._unit = np.float64, 1.0
        # Step 2: grow the boosters of one loss after another, as far as each of them helps.
        search = _SizeSearch(self, training)
        for loss in self.losses:
            search.learn(loss)
        if not search.grown:
            search.learn(None)
        # Step 3: combine what they predict for held-out queries.
        self.weights_, self.shares_, level = _combine(search.held, search.scores)
        if inside_stack:  # which takes and deletes them
            total = sum(self.weights_[name] * own for name, own in search.scores.items())
            self._held_out = total if level is None else np.exp(total + level)
        self.sizes_ = {name: (one.n_trees, one.n_leaves) for name, one in search.grown.items()}
        self._inverse_scale = search.slopes
        self.regressor_ = search.merged(self.weights_, level)
        print_progress(self, f"chose {self.summary()}", started)
        if validation is not None:
            held_out = validation.held_out
            validation.record(self.predict(held_out.X, held_out.queries))
            validation.n_iter = sum(n_trees for n_trees, _ in self.sizes_.values())
        return self

    def summary(self) -> str:
        """Return the sizes and the shares in words."""
        return "; ".join(
            f"{name}, {n_trees} trees of {n_leaves} leaves, share {self.shares_[name]:.2f}"
            for name, (n_trees, n_leaves) in self.sizes_.items()
        )

    def pop_held_out(self) -> Floats:
        """Return the scores of the training rows by boosters that have not seen them, once."""
        scores: Floats = self.__dict__.pop("_held_out")
        return scores

    @property
    def learns_targets(self) -> bool:  # type: ignore[override]
        """Whether a booster learns the targets of the ranker's own loss."""
        logs = any(map(has_log_scores, self.losses))
        return any(loss == POISSON if logs else loss is None for loss in self.losses)


class _SizeSearch:
    """The boosters of several losses, and what they predict for held-out queries.

    The losses are learned one after another, because boosters of the first ones tell whether
    another loss would help.
    """

    def __init__(self, model: BoostingCV, training: Training) -> None:
        self.grown: dict[str, _Growth] = {}
        self.scores: dict[str, Floats] = {}  # of the held-out rows
        validation = training.validation
        self.held = training if validation is None else validation.held_out
        self._model, self._training = model, training
        self._by_folds = validation is None
        self._many = training.queries.n_rows >= _MANY_ROWS
        table, self.slopes = model._table(training.X, training.queries)
        self._tables = {False: table, True: training.X}  # by whether a booster reads X alone
        self._folds: dict[bool, list[Fold]] = {}

    def learn(self, loss: Any) -> None:
        """Grow the boosters of a loss, unless they would not help."""
        wanted = _wanted(self._training, loss, self._model.center)
        alike = self._of_the_same_kind(loss)
        by_targets = bool(alike) and _learns_targets(loss)
        if by_targets and self._by_folds and alike[0].n_trees > _TREES_WITHOUT_NOISE:
            return
        if any(_are_proportional(self._training.queries, wanted, one.wanted) for one in alike):
            return
        folds = self._folds_of(self._reads_X(loss))
        # a fold may have nothing but 0, which has no logarithm
        if has_log_scores(loss) and not all(_has_positive(fold, wanted) for fold in folds):
            return
        leaves = _LEAVES_OF_MANY_ROWS if self._many else _LEAVES
        if by_targets:
            leaves = (alike[0].n_leaves,)
        one, name = self._first_trees(loss, leaves, folds, wanted), _name(loss)
        if self._many and self.grown and not has_log_scores(loss):
            _, shares, _ = _combine(self.held, {**self.scores, name: one.held_out()})
            if shares[name] < _SMALLEST_SHARE:
                return
        self.grown[name] = one.grow_to_the_end()
        self.scores[name] = one.held_out()

    def _of_the_same_kind(self, loss: Any) -> list[_Growth]:
        """Return boosters that read the same table and learn in the same way as those of a loss."""
        if _learns_targets(loss):
            return [one for name, one in self.grown.items() if _learns_targets(name)]
        same = loss == POISSON_LABELS and not self._reads_X(loss) and POISSON in self.grown
        return [self.grown[POISSON]] if same else []

    def _reads_X(self, loss: Any) -> bool:
        """Whether the boosters of a loss read X without the context columns that there are."""
        return _learns_labels(loss) and bool(self._model._kinds)

    def _folds_of(self, reads_X: bool) -> list[Fold]:
        """Return the folds of a table, or the validation queries with all rows of the table."""
        if reads_X not in self._folds:
            # what boosters learn is not cut into parts, as each loss has targets of its own
            training = replace(self._training, X=self._tables[reads_X], targets=None, labels=None)
            if self._by_folds:
                numbers = self._model.fold_of_query_
                folds = [split_queries(training, numbers == each) for each in np.unique(numbers)]
            else:
                other, every = without_sparse_columns(self.held.X), slice(None)
                if not reads_X:
                    other, _ = self._model._table(other, self.held.queries)
                inside = replace(training, X=fill_empty_columns(training.X))
                folds = [Fold(inside, replace(self.held, X=other), every, every)]
            self._folds[reads_X] = folds
        return self._folds[reads_X]

    def _first_trees(
        self, loss: Any, leaves: tuple[int, ...], folds: list[Fold], wanted: Floats
    ) -> _Growth:
        """Return the first trees, of the number of leaves whose held-out error is smallest."""
        center, n_jobs = self._model.center, self._model.n_jobs
        unseen = wanted if self._by_folds else _wanted(self.held, loss, center)
        n_rows, n_columns = folds[0].inside.X.shape
        regressor = HistGradientBoostingRegressor(
            loss="poisson" if has_log_scores(loss) else "squared_error",
            learning_rate=_SLOW,
            min_samples_leaf=min(20, max(1, n_rows // 50)),
            l2_regularization=_L2_OF_TARGETS if _learns_targets(loss) else _L2,
            max_features=min(1.0, max(_SHARE_OF_COLUMNS, _FEWEST_COLUMNS / n_columns)),
            early_stopping=False,
            random_state=self._model.random_state,
        )
        sizes = []
        for n_leaves in leaves:
            regressor.set_params(max_leaf_nodes=n_leaves)
            sizes.append(_Growth(regressor, folds, wanted, unseen, n_jobs))
            sizes[-1].grow(_AT_FIRST // n_leaves)
        return min(sizes, key=lambda one: one.error)

    def merged(self, weights: dict[str, float], level: float | None) -> Any:
        """Return a single booster: the weighted sum of the boosters of all losses that help."""
        # The first one reads the table with context columns, and so does the sum.
        first, *others = sorted(self.grown, key=_learns_labels)
        names = [first, *(name for name in others if weights[name])]
        n_leaves = sum(
            len(one.regressors) * one.n_trees * one.n_leaves
            for name, one in self.grown.items()
            if weights[name]
        )
        table = self._tables[False]
        # Encoders of categories differ between folds, so that only one fold's trees can be added.
        again = self._by_folds and (
            n_leaves > _MOST_MERGED or len(numeric_columns(table)) < table.shape[1]
        )
        boosters: list[Any] = []
        scales: list[float] = []
        for name in names:
            one = self.grown[name]
            fitted = one.regressors
            if again:
                fitted = [one.refit(self._tables[self._reads_X(name)], self._training.weight)]
            boosters += fitted
            scales += [weights[name] * one.scale / len(fitted)] * len(fitted)
        return merge_boosters(boosters, scales, level)


class _Growth:
    """Boosters of one loss and one size of trees, one for each fold, that grow together."""

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
        # The mean of the positive targets, so that the penalty of a leaf counts relevant documents.
        size = wanted[wanted > 0].mean() if self.logs else np.abs(wanted).max()
        unit = float(size) if self.logs else target_unit(float(size))
        self.scale = 1.0 if self.logs else unit  # of the scores
        self.regressors = [clone(regressor).set_params(warm_start=True) for _ in folds]
        self.n_trees, self.n_grown, self.error = 0, 0, np.inf
        self._folds, self._n_jobs = folds, fits_at_once(n_jobs, len(wanted))
        many = len(wanted) >= _MANY_ROWS
        self._most = _MOST_OF_MANY_ROWS if many else _MOST_TREES
        self._n_slow = _SLOW_OF_MANY_ROWS if many or self.logs else _SLOW_TREES
        self.wanted, self._unseen = wanted / unit, unseen / unit

    @property
    def stops(self) -> bool:
        """Whether more trees would not pay."""
        return self.n_grown >= min(self._most, self.n_trees + self._patience)

    @property
    def _patience(self) -> int:
        """How many more trees may not reduce the error: after many, there are longer plateaus."""
        return max(_PATIENCE, int(_PATIENCE_SHARE * self.n_trees))

    def grow(self, n_more: int) -> None:
        """Add trees to all boosters, as far as the held-out error falls."""
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

    def grow_to_the_end(self) -> _Growth:
        """Grow as long as trees pay, and remove those that did not; return the object itself."""
        while not self.stops:
            self.grow(max(_STEP, self.n_grown // 4))
        for regressor in self.regressors:
            cut_iterations(regressor, self.n_trees)
            regressor.set_params(max_iter=self.n_trees, warm_start=False)
        return self

    def _errors(self, regressor: HistGradientBoostingRegressor, fold: Fold, n_trees: int) -> Floats:
        """Fit a booster up to a number of trees; return the held-out error after each new one."""
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
        """Return the scores of all held-out rows, by boosters that have not seen them."""
        scores = np.empty(sum(fold.outside.queries.n_rows for fold in self._folds))
        for regressor, fold in zip(self.regressors, self._folds, strict=True):
            with threads_for(fold.outside.queries.n_rows):
                scores[fold.held] = self._scores(regressor.predict(fold.outside.X))
        return scores * self.scale

    def _scores(self, predicted: Floats) -> Floats:
        """Return what the trees of a booster add up to."""
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
        """Fit a booster up to a number of trees, the first of them slowly."""
        n_done = getattr(regressor, "n_iter_", 0)
        if n_done < self._n_slow:
            regressor.set_params(learning_rate=_SLOW, max_iter=min(n_trees, self._n_slow))
            regressor.fit(table, wanted, weight)
        if n_trees > self._n_slow:
            regressor.set_params(learning_rate=_FAST, max_iter=n_trees)
            regressor.fit(table, wanted, weight)


def _wanted(known: Training, loss: Any, center: bool) -> Floats:
    """Return what boosters of a loss learn; labels and what has logarithms are not centred."""
    if has_log_scores(loss):
        learned = None if loss == POISSON else LABELS
        return as_counts(own_targets(learned, known), known.queries)
    own = own_targets(loss, known)
    return known.queries.center(own, known.weight) if center and _learns_targets(loss) else own


def _combine(
    known: Training, scores: dict[str, Floats]
) -> tuple[dict[str, float], dict[str, float], float | None]:
    """Return weights and shares of the scores in the sum that is closest to the targets.

    With logarithms among them, they have a level.
    """
    data = list(scores), np.column_stack(list(scores.values())), known, _ALPHA
    if any(map(has_log_scores, scores)):
        return listwise_weights(*data)
    return *nonnegative_weights(*data), None


def _are_proportional(queries: Queries, some: Floats, others: Floats) -> bool:
    """Whether targets are almost a multiple of others plus a constant for each query.

    Where one document of each query is relevant, the targets of most losses are.
    """
    some, others = queries.center(some), queries.center(others)
    return bool(some @ others >= _SMALLEST_COSINE * np.sqrt(some @ some) * np.sqrt(others @ others))


def _learns_targets(loss: Any) -> bool:
    """Whether the targets of a loss are learned by the squared error."""
    return not _learns_labels(loss) and not has_log_scores(loss)


def _learns_labels(loss: Any) -> bool:
    """Whether labels are learned as they are, from X alone."""
    return isinstance(loss, str) and loss in (LABELS, POISSON_LABELS)


def _has_positive(fold: Fold, wanted: Floats) -> bool:
    """Whether a training row with a weight has a target above 0."""
    own, weight = wanted[fold.rows], fold.inside.weight
    return bool((own if weight is None else own * (weight > 0)).any())


def _name(loss: Any) -> str:
    return "targets" if loss is None else loss if isinstance(loss, str) else repr(loss)
