"""`BoostingCV`: boosting with the number and size of trees chosen on held-out queries."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor

from sklearn_rankcal.models import _held_out
from sklearn_rankcal.models._document import DocumentModel, as_counts
from sklearn_rankcal.models._held_out import Fold
from sklearn_rankcal.models._member_weights import (
    FOREST,
    LABELS,
    POISSON,
    POISSON_LABELS,
    has_log_scores,
    listwise_error,
    listwise_weights,
    nonnegative_weights,
    own_targets,
)
from sklearn_rankcal.models._model import Training
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils import _features, _memory, _messages
from sklearn_rankcal.utils._numbers import Floats, Ints, exceeds, target_unit
from sklearn_rankcal.utils._sklearn_compat import BinnedTable, Booster, merge_boosters

#: Numbers of leaves to try. Noisy data need few small trees, and interactions of columns need many
#: larger trees. With many rows, 15 leaves were never too many.
_LEAVES, _LEAVES_OF_MANY_ROWS = (7, 15), (15,)
_AT_FIRST = 640  # leaves of the first trees, in total
_MOST_MERGED = 8_000  # most leaves of a merged booster, about 1 MB in a pickle
_TREES_WITHOUT_NOISE = 200  # with more trees, other targets of the same columns do not help
# Fraction of the columns that each split sees. As in a forest, this is faster and ranks better.
_SHARE_OF_COLUMNS, _FEWEST_COLUMNS = 0.4, 4
_L2, _L2_OF_TARGETS = 5.0, 50.0  # the targets of a loss vary more than labels
# With many rows, stop the boosters of another loss if the share of their first trees is smaller.
# With few rows, more trees are cheap, and this share is too noisy.
_SMALLEST_SHARE = 0.05
_SMALLEST_COSINE = 0.99  # from here on, targets are the same to a booster
_ALPHA = 30.0  # penalty that shrinks the weights towards equal weights of standardised scores
# For more rows, limit the leaves of the forest, whose trees would otherwise be most of the memory
# of the model. It ranks equally well.
_ROWS_OF_FULL_TREES, _LEAVES_OF_FORESTS = 15_000, 1000


class BoostingCV(DocumentModel):
    """Histogram gradient boosting with a size chosen by cross-validation over queries.

    It is the default model of `CalibratedRanker`. The queries are divided into `cv` folds. Boosters
    with trees of 7 and of 15 leaves grow on all folds but one, as long as the squared error of the
    targets decreases on the held-out folds, summed over the folds. The prediction is the mean of
    the boosters of the better size. If they have more than 8,000 leaves, it is one booster of this
    size, fitted to all queries.

    Several losses are learned in the same way, and their scores are added. The weights of the sum
    minimise the squared error of the held-out targets of the ranker's own loss [1]_. With losses
    that learn logarithms, the weights minimise the cross-entropy between the targets and
    exp(weighted sum) instead, and so do the sizes of their boosters. Another loss is skipped if the
    boosters of the first loss have more than 200 trees, which means little noise. It is also
    skipped if its targets are almost a multiple of the first targets plus a constant per query.
    `regressor_` is always a single booster. With a forest among the losses, no loss is skipped, and
    the forest and each booster of logarithms, exp(score), are added to `regressor_`.

    Parameters
    ----------
    losses : sequence, default=(None,)
        What the boosters learn:

        - None: the targets of the ranker's own loss.
        - The name of a loss or a `Loss`: the targets of this loss.
        - ``"labels"``: the labels, from the columns of X without context columns, with a weaker
          penalty.
        - ``"poisson"``: the targets of the ranker's own loss, by their Poisson deviance. These
          boosters learn logarithms, which suits targets that are 0 for most documents. The model
          then predicts exp(weighted sum), in the unit of the targets.
        - ``"poisson_labels"``: the labels by their Poisson deviance, from the columns of X.
        - ``"forest"``: the labels, from the columns of X, by extremely randomised trees in the
          place of boosters. All columns must be numbers. Numbers beyond 1e30 count as 1e30.
    center : bool, default=True
        Whether to subtract from each target the mean of its query. Labels, and what is learned by
        the Poisson deviance, are not centred.
    context : None, "auto", str or list of str, default=None
        Context columns, as in `DocumentModel`.
    cv : int, default=3
        Number of folds of the queries, at least 2.
    random_state : int, default=0
        Seed for the choice of columns, which each split of a tree sees a part of.
    n_jobs : int, default=None
        Number of folds to fit in parallel, in threads. None means one per processor (or
        ``OMP_NUM_THREADS``) for fewer than 20,000 rows, and 1 for more.
    verbose : int, default=0
        If positive, `fit` prints the chosen sizes.

    Attributes
    ----------
    regressor_ : HistGradientBoostingRegressor
        The fitted booster, or the weighted sum of several.
    sizes_ : dict of str to (int, int)
        For each loss that helps: number of trees, and largest number of leaves per tree.
    weights_ : dict of str to float
        Weight of each loss in the sum.
    shares_ : dict of str to float
        Share of each loss in the sum: the weights for scores scaled to the same spread within
        queries, divided by their sum.
    forests_ : list of ExtraTreesRegressor
        One forest per fold, whose mean is predicted. Empty without ``"forest"``, or if its weight
        is 0.
    fold_of_query_ : ndarray of shape (n_queries,)
        Fold of each training query. It depends on the contents of the queries. Not defined with
        validation queries.
    context_ : dict of str to list
        As in `DocumentModel`.

    Notes
    -----
    `fit` takes about 5 to 8 times as long as a fit of the final booster.

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

    def fit(self, training: Training) -> Self:
        """Choose the sizes on held-out queries, and combine the boosters.

        Parameters
        ----------
        training : Training
            Documents, targets and queries, and labels if `losses` need them. If there are
            validation queries, they choose the sizes instead of folds, without another fit to all
            queries.

        Returns
        -------
        self : BoostingCV
            The fitted model.
        """
        if isinstance(self.losses, str) or not len(self.losses):
            raise ValueError(
                "losses must be a list of losses, such as (None,) for the loss of the ranker; got "
                f"{self.losses!r}."
            )
        _messages.check_count(self.cv, "cv", least=2)
        started = time.perf_counter()
        validation = training.validation
        self.__dict__.pop("fold_of_query_", None)
        if validation is None:
            self.fold_of_query_ = _held_out.divide_queries(self, training)
        # Step 1: choose the context columns. Boosters of labels do not use them.
        if all(map(_learns_labels, self.losses)):
            self._set_columns(training.X, [])
        else:
            self._choose_columns(training)
        self._reader, self._dtype, self._unit = None, np.float64, 1.0
        # Step 2: grow the boosters of each loss in turn, if they help.
        search = _SizeSearch(self, training)
        for loss in self.losses:
            if loss != FOREST:
                search.learn(loss)
        if not search.grown:
            search.learn(None)
        if FOREST in self.losses:
            search.plant()
        # Step 3: combine their held-out predictions. Beside a forest, boosters of logarithms are
        # summands of their own, with exp(weight * score + level) as score.
        scores, self._counts = search.scores, {}
        logs = [name for name in scores if has_log_scores(name)]
        if FOREST in scores:
            for name in logs:
                weights, _, level = _combine(search.held, {name: scores[name]}, logs=True)
                self._counts[name] = search.merged(weights, level)
                scores[name] = np.exp(weights[name] * scores[name] + (level or 0.0))
        by_logs = bool(logs) and not self._counts
        self.weights_, self.shares_, level = _combine(search.held, scores, logs=by_logs)
        self._inverse_scale = search.slopes
        self.sizes_ = {name: (one.n_trees, one.n_leaves) for name, one in search.grown.items()}
        own = {name: weight for name, weight in self.weights_.items() if name not in self._counts}
        self.regressor_ = search.merged(own, level)
        self.forests_ = search.forests if self.weights_.get(FOREST) else []
        self._counts = {name: one for name, one in self._counts.items() if self.weights_[name]}
        _messages.print_progress(self, f"chose {self.summary()}", started)
        if validation is not None:
            held_out = validation.held_out
            validation.record(held_out.scores_of(self))
            validation.n_iter = sum(n_trees for n_trees, _ in self.sizes_.values())
        return self

    def predict(self, X: Any, queries: Queries) -> Floats:
        """Predict the score of each document."""
        scores = super().predict(X, queries)
        if not self.forests_:
            return scores
        return scores + self.weights_[FOREST] * _predict_forests(self.forests_, X)

    def _predict(self, table: Any) -> Floats:
        scores = super()._predict(table)
        for name, counts in self._counts.items():
            scores = scores + self.weights_[name] * self._boosted(counts, table)
        return scores

    def summary(self) -> str:
        """Return the sizes and shares as text."""
        shown = dict.fromkeys(self.shares_, "") | {
            name: f", {n_trees} trees of {n_leaves} leaves"
            for name, (n_trees, n_leaves) in self.sizes_.items()
        }
        return "; ".join(
            f"{name}{size}, share {self.shares_[name]:.2f}" for name, size in shown.items()
        )

    @property
    def has_table(self) -> bool:  # type: ignore[override]
        """Whether one regressor predicts, and not several beside a forest."""
        return not self.forests_ and not self._counts

    def why_no_table(self) -> str:
        """Return the end of an error message: the forest reads other columns."""
        return (
            "adds the scores of a forest, which reads other columns. distill replaces it with one "
            "regressor"
        )

    @property
    def learns_targets(self) -> bool:  # type: ignore[override]
        """Whether a booster learns the targets of the ranker's own loss."""
        logs = any(map(has_log_scores, self.losses))
        return any(loss == POISSON if logs else loss is None for loss in self.losses)


class _SizeSearch:
    """The boosters of several losses, and their held-out predictions.

    Losses are learned one by one, because the boosters of the first losses show whether another
    loss can help.
    """

    def __init__(self, model: BoostingCV, training: Training) -> None:
        self.grown: dict[str, BoosterGrowth] = {}
        self.scores: dict[str, Floats] = {}  # of the held-out rows
        self.forests: list[ExtraTreesRegressor] = []
        validation = training.validation
        self.held = training if validation is None else validation.held_out
        self._model, self._training = model, training
        self._by_folds = validation is None
        self._many = training.queries.n_rows >= MANY_ROWS
        table, self.slopes = model._table(training.X, training.queries, training.page)
        self._tables = {
            False: table,
            True: _features.keep_categories(training.X, model._frequent),
        }  # by whether a booster reads X alone
        self._folds: dict[bool, list[Fold]] = {}
        self._binned: dict[bool, BinnedTable] = {}

    def learn(self, loss: Any) -> None:
        """Grow the boosters of a loss if they can help."""
        wanted = _wanted(self._training, loss, self._model.center)
        alike = self._of_the_same_kind(loss)
        by_targets = bool(alike) and _learns_targets(loss)
        if by_targets and self._by_folds and alike[0].n_trees > _TREES_WITHOUT_NOISE:
            return
        if any(_are_proportional(self._training.queries, wanted, one.wanted) for one in alike):
            return
        folds = self._folds_of(self._reads_X(loss))
        # a fold may have only targets 0, which have no logarithm
        if has_log_scores(loss) and not all(_has_positive(fold, wanted) for fold in folds):
            return
        leaves = _LEAVES_OF_MANY_ROWS if self._many else _LEAVES
        if by_targets:
            leaves = (alike[0].n_leaves,)
        one, name = self._first_trees(loss, leaves, folds, wanted), _name(loss)
        if self._many and self.grown and not has_log_scores(loss):
            logs = any(map(has_log_scores, self.scores))
            _, shares, _ = _combine(self.held, {**self.scores, name: one.held_out()}, logs=logs)
            if shares[name] < _SMALLEST_SHARE:
                return
        self.grown[name] = one.grow_to_the_end()
        self.scores[name] = one.held_out()

    def plant(self) -> None:
        """Fit a forest to the labels without each fold, from the columns of X."""
        labels, folds = own_targets(LABELS, self._training), self._folds_of(self._reads_X(LABELS))
        n_rows, table = len(labels), _numbers(self._tables[self._reads_X(LABELS)])

        def fit(number: int, fold: Fold) -> ExtraTreesRegressor:
            forest = ExtraTreesRegressor(
                20,
                min_samples_leaf=5,
                max_features=0.2,
                max_leaf_nodes=_LEAVES_OF_FORESTS if n_rows > _ROWS_OF_FULL_TREES else None,
                random_state=(self._model.random_state + number) % 2**32,
            )
            return forest.fit(table[fold.rows], labels[fold.rows], fold.weight)

        self.forests = Parallel(
            n_jobs=_held_out.fits_at_once(self._model.n_jobs, n_rows), prefer="threads"
        )(delayed(fit)(*each) for each in enumerate(folds))
        scores = np.empty(self.held.queries.n_rows)
        for forest, fold in zip(self.forests, folds, strict=True):
            scores[fold.held] = _predict_forests([forest], fold.outside.X)
        self.scores[FOREST] = scores

    def _of_the_same_kind(self, loss: Any) -> list[BoosterGrowth]:
        """Return known boosters with the table and the error that a loss needs.

        With a forest, the best ranking counts more than the time of `fit`: no loss is skipped.
        """
        if FOREST in self._model.losses:
            return []
        if _learns_targets(loss):
            return [one for name, one in self.grown.items() if _learns_targets(name)]
        same = loss == POISSON_LABELS and not self._reads_X(loss) and POISSON in self.grown
        return [self.grown[POISSON]] if same else []

    def _reads_X(self, loss: Any) -> bool:
        """Whether the boosters of a loss read X without existing context columns."""
        return _learns_labels(loss) and bool(self._model._kinds)

    def _folds_of(self, reads_X: bool) -> list[Fold]:
        """Return the folds of a table, or one fold that holds out the validation queries."""
        if reads_X not in self._folds:
            # targets are not split, because each loss has its own
            training = replace(
                self._training, X=self._tables[reads_X], targets=None, labels=None, page=None
            )
            if self._by_folds:
                numbers = self._model.fold_of_query_
                folds = [
                    _held_out.split_queries(training, numbers == each)
                    for each in np.unique(numbers)
                ]
            else:
                other, every = self.held.X, slice(None)
                if not reads_X:
                    other, _ = self._model._table(other, self.held.queries, self.held.page)
                folds = [Fold(every, every, replace(self.held, X=other), training.weight)]
            self._folds[reads_X] = folds
            X, more = training.X, None if self._by_folds else folds[0].outside.X
            with _memory.threads_for(self._training.queries.n_rows):
                self._binned[reads_X] = BinnedTable(
                    _held_out.fill_empty_columns(X), training.weight, more, self._model.random_state
                )
        return self._folds[reads_X]

    def _first_trees(
        self, loss: Any, leaves: tuple[int, ...], folds: list[Fold], wanted: Floats
    ) -> BoosterGrowth:
        """Grow the first trees for each number of leaves; return the best on held-out queries."""
        center, n_jobs = self._model.center, self._model.n_jobs
        unseen = wanted if self._by_folds else _wanted(self.held, loss, center)
        table = self._binned[self._reads_X(loss)]
        n_rows, n_columns = len(wanted[folds[0].rows]), table.bins.shape[1]
        regressor = HistGradientBoostingRegressor(
            loss="poisson" if has_log_scores(loss) else "squared_error",
            min_samples_leaf=min(20, max(1, n_rows // 50)),
            l2_regularization=_L2_OF_TARGETS if _learns_targets(loss) else _L2,
            max_features=min(1.0, max(_SHARE_OF_COLUMNS, _FEWEST_COLUMNS / n_columns)),
            early_stopping=False,
            random_state=self._model.random_state,
        )
        sizes = []
        for n_leaves in leaves:
            regressor.set_params(max_leaf_nodes=n_leaves)
            sizes.append(BoosterGrowth(regressor, table, folds, wanted, unseen, n_jobs))
            sizes[-1].grow(_AT_FIRST // n_leaves)
        return min(sizes, key=lambda one: one.error)

    def merged(self, weights: dict[str, float], level: float | None) -> Any:
        """Return a single booster: the weighted sum over the losses with a weight."""
        # the first booster reads the table with context columns, and so does the sum
        first, *others = sorted(self.grown, key=_learns_labels)
        names = [first, *(name for name in others if weights.get(name))]
        leaves = {
            name: len(one.regressors) * one.n_trees * one.n_leaves
            for name, one in self.grown.items()
            if weights.get(name)
        }
        boosters: list[Any] = []
        scales: list[float] = []
        for name in names:
            one = self.grown[name]
            fitted = one.regressors
            # beside a forest, the size of the other boosters matters little
            n_leaves = leaves.get(name, 0) if self.forests else sum(leaves.values())
            # rare categories need all rows
            encoded = self._binned[self._reads_X(name)].categorical.any()
            if self._by_folds and (n_leaves > _MOST_MERGED or encoded):
                fitted = [one.refit(self._training.weight)]
            boosters += fitted
            scales += [weights.get(name, 0.0) * one.scale / len(fitted)] * len(fitted)
        return merge_boosters(boosters, scales, level)


def _wanted(known: Training, loss: Any, center: bool) -> Floats:
    """Return the targets of boosters of a loss. Labels and Poisson targets are not centred."""
    if has_log_scores(loss):
        learned = None if loss == POISSON else LABELS
        return as_counts(own_targets(learned, known), known.queries)
    own = own_targets(loss, known)
    return known.queries.center(own, known.weight) if center and _learns_targets(loss) else own


def _combine(
    known: Training, scores: dict[str, Floats], *, logs: bool
) -> tuple[dict[str, float], dict[str, float], float | None]:
    """Return weights and shares of the scores in the sum that is closest to the targets.

    With `logs`, exp(sum + level) is closest, and the third result is the level.
    """
    data = list(scores), np.column_stack(list(scores.values())), known, _ALPHA
    if logs:
        return listwise_weights(*data)
    return *nonnegative_weights(*data), None


def _are_proportional(queries: Queries, some: Floats, others: Floats) -> bool:
    """Whether targets are almost a multiple of other targets plus a constant per query.

    This holds for most losses if each query has one relevant document.
    """
    some, others = queries.center(some), queries.center(others)
    return bool(some @ others >= _SMALLEST_COSINE * np.sqrt(some @ some) * np.sqrt(others @ others))


def _learns_targets(loss: Any) -> bool:
    """Whether boosters learn the targets of a loss by the squared error."""
    return not _learns_labels(loss) and not has_log_scores(loss)


def _learns_labels(loss: Any) -> bool:
    """Whether boosters learn the labels, from X without context columns."""
    return isinstance(loss, str) and loss in (LABELS, POISSON_LABELS, FOREST)


def _has_positive(fold: Fold, wanted: Floats) -> bool:
    """Whether a training row with positive weight has a target above 0."""
    own, weight = wanted[fold.rows], fold.weight
    return bool((own if weight is None else own * (weight > 0)).any())


def _numbers(X: Any) -> Floats:
    """Return the columns of X as float32, with the limits of a forest. NaN stays NaN."""
    values = _features.column_values(X, list(X.columns)) if _features.is_dataframe(X) else X
    if not _held_out.suits_forests(values):
        values = np.clip(values, -_held_out.LARGEST, _held_out.LARGEST)
    return np.ascontiguousarray(values, dtype=np.float32)


def _predict_forests(forests: list[ExtraTreesRegressor], X: Any) -> Floats:
    """Return the mean of all trees. For few rows, scikit-learn's pool of threads is slow."""
    values = _numbers(X)
    trees = [tree.tree_ for forest in forests for tree in forest.estimators_]
    return np.mean([tree.predict(values)[:, 0] for tree in trees], axis=0)


def _name(loss: Any) -> str:
    return "targets" if loss is None else loss if isinstance(loss, str) else repr(loss)


#: From this number of rows on, more trees may grow, and the learning rate doubles earlier.
MANY_ROWS = 20_000
_STEP = 30  # fewest trees per step
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
        table: BinnedTable,
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
        self.n_trees, self.n_grown, self.error = 0, 0, np.inf
        self._folds, self._n_jobs = folds, _held_out.fits_at_once(n_jobs, len(wanted))
        many = len(wanted) >= MANY_ROWS
        self._most = _MOST_OF_MANY_ROWS if many else _MOST_TREES
        self._n_slow = _SLOW_OF_MANY_ROWS if many or self.logs else _SLOW_TREES
        self.wanted, self._unseen = wanted / unit, unseen / unit
        self._regressor, self._table = clone(regressor), table
        rows = np.arange(len(table.bins))
        known, others = rows[: len(wanted)], rows[-len(unseen) :]
        self._boosters = [
            self._booster(known[fold.rows], others[fold.held], fold.weight, number)
            for number, fold in enumerate(folds)
        ]

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
            delayed(self._errors)(booster, fold, n_next)
            for booster, fold in zip(self._boosters, self._folds, strict=True)
        )
        for number, error in enumerate(np.sum(errors, axis=0), self.n_grown + 1):
            if self.error == np.inf or exceeds(self.error, error, self.error):
                self.n_trees, self.error = number, float(error)
            elif number >= self.n_trees + self._patience:
                break
        self.n_grown = n_next

    def grow_to_the_end(self) -> BoosterGrowth:
        """Grow as long as trees help, and return self."""
        while not self.stops:
            self.grow(max(_STEP, self.n_grown // 4))
        return self

    def _rates(self, start: int, stop: int) -> list[float]:
        """Return the learning rates of some trees. The first ones have a smaller rate."""
        return [_SLOW if number < self._n_slow else _FAST for number in range(start, stop)]

    def _errors(self, booster: Booster, fold: Fold, n_trees: int) -> Floats:
        """Grow a booster up to a number of trees; return the held-out error after each new tree."""
        outside = fold.outside
        unseen = self._unseen[fold.held]
        wanted = outside.queries.center(unseen)
        errors = []
        for scores in booster.grow(self._rates(self.n_grown, n_trees)):
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
        self.regressors = [booster.as_regressor(self.n_trees) for booster in self._boosters]
        for regressor, fold in zip(self.regressors, self._folds, strict=True):
            with _memory.threads_for(fold.outside.queries.n_rows):
                scores[fold.held] = merge_boosters([regressor], [1.0]).predict(fold.outside.X)
        return scores * self.scale

    def refit(self, weight: Floats | None) -> HistGradientBoostingRegressor:
        """Fit a booster of this size to all rows."""
        rows = np.arange(len(self.wanted))
        booster = self._booster(rows, rows[:0], weight, len(self._folds))
        list(booster.grow(self._rates(0, self.n_trees)))
        return booster.as_regressor(self.n_trees)

    def _booster(self, rows: Ints, held: Ints, weight: Floats | None, number: int) -> Booster:
        what = rows, held, self.wanted[rows], weight, number
        return Booster(self._regressor, self._table, *what)
