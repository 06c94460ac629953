"""`BoostingCV`: boosting with the number and size of trees chosen on held-out queries."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.utils import check_random_state

from sklearn_rankcal.models import _held_out
from sklearn_rankcal.models._document import DocumentModel, as_counts
from sklearn_rankcal.models._held_out import Fold
from sklearn_rankcal.models._member_weights import (
    FOREST,
    LABELS,
    LINEAR,
    POISSON,
    POISSON_LABELS,
    LinearScores,
    has_log_scores,
    linear_coefficients,
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
#: larger trees.
_LEAVES = (7, 15)
_AT_FIRST = 420  # leaves of the first trees, in total
_MOST_SPARE = 5_300  # most leaves that one booster would save, about .7 MB in a pickle
# Fraction of the columns that each split sees. As in a forest, this is faster and ranks better.
_SHARE_OF_COLUMNS, _FEWEST_COLUMNS = 0.4, 4
_L2, _L2_OF_TARGETS = 5.0, 50.0  # the targets of a loss vary more than labels
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
    the boosters of the better size. If one booster of this size saves more than 5,300 leaves, or
    there are categories, it is this one, fitted to all queries.

    With many rows, fewer boosters grow: as many as learn from 40,000 rows and 4,000 relevant
    documents in total, or one, from six queries in seven. The last one learns from a part of the
    queries, and counts less in the mean. If less than a twentieth of more than 20,000 documents is
    relevant, boosters learn from 20 others for each relevant one, with larger weights. With a
    forest, they learn from all.

    Several losses are learned in the same way, and their scores are added. The weights of the sum
    minimise the squared error of the held-out targets of the ranker's own loss [1]_. With losses
    that learn logarithms, the weights minimise the cross-entropy between the targets and
    exp(weighted sum) instead, and so do the sizes of their boosters. Another loss is dropped if its
    trees, added to as many of the losses before it, do not decrease the held-out error, and skipped
    if its targets are almost a multiple of the first ones plus a constant per query. `regressor_`
    is always a single booster. With a forest among the losses, all others are learned, and the
    forest and each booster of logarithms, exp(score), are added to `regressor_`.

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
        - ``"linear"``: logarithms of the targets that are linear in the columns of X, with an L2
          penalty. The boosters of logarithms start from them.
        - ``"forest"``: the labels, from the columns of X, by extremely randomised trees in the
          place of boosters. All columns must be numbers. Numbers beyond 1e30 count as 1e30.
    center : bool, default=True
        Whether to subtract from each target the mean of its query. Labels, and what is learned by
        the Poisson deviance, are not centred.
    context : None, "auto", str or list of str, default=None
        Context columns, as in `DocumentModel`.
    cv : int, default=3
        Number of folds of the queries, at least 2. With many rows, there are fewer.
    random_state : int, RandomState instance or None, default=0
        Seed for the choice of columns, which each split of a tree sees a part of.
    n_jobs : int, default=None
        Number of folds to fit in parallel, in threads. None means one per processor (or
        ``OMP_NUM_THREADS``).
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
    dropped_ : dict of str to float
        For each loss that was tried and dropped: by which part the held-out error fell with its
        trees, at most 0.
    forests_ : list of ExtraTreesRegressor
        One forest per fold, whose mean is predicted. Empty without ``"forest"``, or if its weight
        is 0.
    fold_of_query_ : ndarray of shape (n_queries,)
        Fold of each training query, or -1 if no booster holds it out. It depends on the contents of
        the queries. Not defined with validation queries.
    context_ : dict of str to list
        As in `DocumentModel`.

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
        random_state: Any = 0,
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
            validation queries, they choose the sizes instead of folds.

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
        if LINEAR in self.losses and (
            FOREST in self.losses or not any(map(has_log_scores, self.losses))
        ):
            raise ValueError(
                "'linear' needs 'poisson' or 'poisson_labels' in losses, and no 'forest'."
            )
        _messages.check_count(self.cv, "cv", least=2)
        started = time.perf_counter()
        validation = training.validation
        self.__dict__.pop("fold_of_query_", None)
        # Step 1: choose the context columns. Boosters of labels do not use them.
        if all(map(_learns_labels, self.losses)):
            self._set_columns(training.X, [])
        else:
            self._choose_columns(training)
        self._reader, self._dtype, self._unit = None, np.float64, 1.0
        # Step 2: grow the boosters of each loss in turn, if they help. Linear scores come first.
        search = _SizeSearch(self, training)
        if validation is None:
            self.fold_of_query_ = search.fold_of_query
        for loss in self.losses:
            if loss not in (FOREST, LINEAR):
                search.learn(loss)
        if not search.grown:
            search.learn(None)
        scores = {name: one.held_out() for name, one in search.grown.items()}
        if FOREST in self.losses:
            scores[FOREST] = search.plant()
        # Step 3: combine their held-out predictions. Beside a forest, boosters of logarithms are
        # summands of their own, with exp(weight * score + level) as score.
        self._counts = {}
        logs = [name for name in scores if has_log_scores(name)]
        if FOREST in scores:
            for name in logs:
                weights, _, level = _combine(search.held, {name: scores[name]}, logs=True)
                self._counts[name] = search.merged(weights, level)
                scores[name] = np.exp(weights[name] * scores[name] + (level or 0.0))
        by_logs = bool(logs) and not self._counts
        self.weights_, self.shares_, level = _combine(search.held, scores, logs=by_logs)
        self._inverse_scale = search.slopes
        self.dropped_ = search.dropped
        self.sizes_ = {name: (one.n_trees, one.n_leaves) for name, one in search.grown.items()}
        own = {name: weight for name, weight in self.weights_.items() if name not in self._counts}
        self.regressor_ = search.merged(own, level)
        self._linear, self._linear_weight = search.linear, sum(self.weights_[name] for name in logs)
        self.forests_ = search.forests if self.weights_.get(FOREST) else []
        self._counts = {name: one for name, one in self._counts.items() if self.weights_[name]}
        _messages.print_progress(self, f"chose {self.summary()}", started)
        if validation is not None:
            total: Any = sum(weight * scores[name] for name, weight in self.weights_.items())
            validation.record(np.exp(total + (level or 0.0)) if by_logs else total)
            validation.n_iter = sum(n_trees for n_trees, _ in self.sizes_.values())
        return self

    def predict(self, X: Any, queries: Queries) -> Floats:
        """Predict the score of each document."""
        scores = super().predict(X, queries)
        if self._linear is not None:
            own = self._linear_weight * self._linear.predict(X)
            scores = scores * np.exp(own - queries.broadcast(queries.max(own)))
        if not self.forests_:
            return scores
        return scores + self.weights_[FOREST] * _predict_forests(self.forests_, X)

    def _predict(self, table: Any) -> Floats:
        scores = super()._predict(table)
        for name, counts in self._counts.items():
            scores = scores + self.weights_[name] * self._boosted(counts, table)
        return scores

    def summary(self) -> str:
        """Return the sizes and shares as text, and which losses were dropped."""
        shown = dict.fromkeys(self.shares_, "") | {
            name: f", {n_trees} trees of {n_leaves} leaves"
            for name, (n_trees, n_leaves) in self.sizes_.items()
        }
        parts = ["linear scores"] * (self._linear is not None)
        parts += [f"{name}{size}, share {self.shares_[name]:.2f}" for name, size in shown.items()]
        parts += [f"{name} dropped, error {-gain:+.1%}" for name, gain in self.dropped_.items()]
        return "; ".join(parts)

    @property
    def has_table(self) -> bool:  # type: ignore[override]
        """Whether one regressor predicts, and not several beside a forest."""
        return not self.forests_ and not self._counts and self._linear is None

    def why_no_table(self) -> str:
        """Return the end of an error message: other scores are added to those of the booster."""
        other = "a forest, which reads other columns" if self._linear is None else "a linear model"
        return f"adds the scores of {other}. distill replaces it with one regressor"

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
        self.dropped: dict[str, float] = {}
        self.forests: list[ExtraTreesRegressor] = []
        self.linear: LinearScores | None = None
        self._starts: list[Floats] = []  # scores of all rows, for the booster of each fold
        validation = training.validation
        self.held = training if validation is None else validation.held_out
        seed = model.random_state
        whole = isinstance(seed, Integral)
        self._seed = int(seed) if whole else check_random_state(seed).randint(2**31 - 1)
        self._model, self._training = model, training
        self._by_folds = validation is None
        table, self.slopes = model._table(training.X, training.queries, training.page)
        more, n_rows = None, len(training.targets)
        if validation is None:
            self.fold_of_query, self._folds = _held_out.divide_queries(
                model, training, all_rows=FOREST in model.losses
            )
            self._places = np.sort(np.concatenate([fold.held for fold in self._folds]))
            if len(self._places) < n_rows:
                self.held = training.take_queries(self.fold_of_query >= 0)
                for fold in self._folds:
                    fold.held = np.searchsorted(self._places, fold.held)
        else:
            more, _ = model._table(self.held.X, self.held.queries, self.held.page)
            rows, held = np.arange(n_rows), np.arange(len(self.held.targets))
            weights: Any = training.weight, self.held.weight
            self._folds = [Fold(rows, held, self.held.queries, *weights)]
            self._places = n_rows + held
        table, codes = _held_out.fill_empty_columns(table), training.queries.codes
        with _memory.threads_for(training.queries.n_rows):
            self._binned = BinnedTable(table, training.weight, more, self._seed, codes)
        self._shares = np.array([fold.share for fold in self._folds])
        if LINEAR in model.losses:
            self._start([table] if more is None else [table, more])

    def _start(self, tables: list[Any]) -> None:
        """Fit linear scores without each fold, from which boosters of logarithms start.

        Held-out queries scale the coefficients: to 0 if the scores do not help.
        """
        self.linear = LinearScores(self._binned.regressor, tables[0], self._training.X.shape[1])
        self._columns = np.concatenate([self.linear.columns(table) for table in tables])
        each = [self._coefficients(fold.rows, fold.weight) for fold in self._folds]
        scores, held = np.empty(len(self._places)), self._columns[self._places]
        for fold, coef in zip(self._folds, each, strict=True):
            scores[fold.held] = held[fold.held] @ coef
        self._scale = _combine(self.held, {LINEAR: scores}, logs=True)[0][LINEAR]
        self._starts = [self._below_best(coef) for coef in each]
        self.linear.coef = self._scale * np.average(each, axis=0, weights=self._shares)

    def _below_best(self, coef: Floats) -> Floats:
        """Return linear scores of all rows, less the largest one of the query."""
        parts = np.split(self._columns @ (self._scale * coef), [len(self._training.targets)])
        each = zip(parts, (self._training.queries, self.held.queries), strict=True)
        return np.concatenate([own - q.broadcast(q.max(own)) for own, q in each if len(own)])

    def _coefficients(self, rows: Ints, weight: Floats | None) -> Floats:
        targets = _wanted(self._training, POISSON, center=False)[rows]
        queries = Queries.from_groups(self._binned.codes[rows])
        return linear_coefficients(self._columns[rows], targets, queries, weight)

    def learn(self, loss: Any) -> None:
        """Grow the boosters of a loss if they can help."""
        wanted = _wanted(self._training, loss, self._model.center)
        alike = self._of_the_same_kind(loss)
        if any(_are_proportional(self._training.queries, wanted, one.wanted) for one in alike):
            return
        # a fold may have only targets 0, which have no logarithm
        if has_log_scores(loss) and not all(_has_positive(fold, wanted) for fold in self._folds):
            return
        leaves = (alike[0].n_leaves,) if alike and _learns_targets(loss) else _LEAVES
        one, name = self._first_trees(loss, leaves, wanted), _name(loss)
        while (gain := self._gain(name, one)) > 0 and not one.stops:
            one.grow_to(2 * one.n_grown)
        if gain > 0:
            self.grown[name] = one
        else:
            self.dropped[name] = gain

    def _gain(self, name: str, one: BoosterGrowth) -> float:
        """Return by which part the held-out error falls if a loss joins the others.

        All have as many trees as the loss has now. It is 1 for the first loss of all, the first of
        logarithms, and beside a forest.
        """
        logs = any(map(has_log_scores, self.grown))
        if not self.grown or FOREST in self._model.losses or one.logs > logs:
            return 1.0
        stage = len(one.stages) - 1
        scores = {known: other.held_out(stage) for known, other in self.grown.items()}
        without = _error(self.held, scores, logs=logs)
        joined = _error(self.held, scores | {name: one.held_out()}, logs=logs)
        return float(1 - joined / (without or 1.0))

    def plant(self) -> Floats:
        """Fit a forest to the labels without each fold, and return its held-out scores."""
        labels, table = own_targets(LABELS, self._training), _numbers(self._training.X)
        other = table if self._by_folds else _numbers(self.held.X)
        most = _LEAVES_OF_FORESTS if len(labels) > _ROWS_OF_FULL_TREES else None

        def fit(numbered: tuple[int, Fold]) -> ExtraTreesRegressor:
            number, fold = numbered
            forest = ExtraTreesRegressor(
                20, min_samples_leaf=5, max_features=0.2, max_leaf_nodes=most,
                random_state=(self._seed + number) % 2**32,
            )  # fmt: skip
            return forest.fit(table[fold.rows], labels[fold.rows], fold.weight)

        n_threads = _held_out.fits_at_once(self._model.n_jobs)
        self.forests = list(_memory.map_in_order(fit, enumerate(self._folds), n_threads))
        scores = np.empty(self.held.queries.n_rows)
        for forest, fold in zip(self.forests, self._folds, strict=True):
            scores[fold.held] = _predict_forests([forest], other[fold.held])
        return scores

    def _of_the_same_kind(self, loss: Any) -> list[BoosterGrowth]:
        """Return known boosters with the table and the error that a loss needs.

        With a forest, the best ranking counts more than the time of `fit`: no loss is skipped.
        """
        if FOREST in self._model.losses:
            return []
        if _learns_targets(loss):
            return [one for name, one in self.grown.items() if _learns_targets(name)]
        same = loss == POISSON_LABELS and not self._model._kinds and POISSON in self.grown
        return [self.grown[POISSON]] if same else []

    def _first_trees(self, loss: Any, leaves: tuple[int, ...], wanted: Floats) -> BoosterGrowth:
        """Grow the first trees for each number of leaves; return the best on held-out queries."""
        center, n_jobs = self._model.center, self._model.n_jobs
        unseen = wanted[self._places] if self._by_folds else _wanted(self.held, loss, center)
        # the columns of X come first
        width = self._training.X.shape[1] if _learns_labels(loss) else self._binned.bins.shape[1]
        n_rows = len(wanted[self._folds[0].rows])
        regressor = HistGradientBoostingRegressor(
            loss="poisson" if has_log_scores(loss) else "squared_error",
            min_samples_leaf=min(20, max(1, n_rows // 50)),
            l2_regularization=_L2_OF_TARGETS if _learns_targets(loss) else _L2,
            max_features=min(1.0, max(_SHARE_OF_COLUMNS, _FEWEST_COLUMNS / width)),
            early_stopping=False, random_state=self._seed,
        )  # fmt: skip
        starts = self._starts if has_log_scores(loss) else []
        what = self._binned, width, self._folds, self._places, wanted, unseen, n_jobs, starts
        sizes: list[BoosterGrowth] = []
        for n_leaves in leaves:
            sizes.append(BoosterGrowth(regressor.set_params(max_leaf_nodes=n_leaves), *what))
            sizes[-1].grow_to(_AT_FIRST // n_leaves)
        return min(sizes, key=lambda one: one.error)

    def merged(self, weights: dict[str, float], level: float | None) -> Any:
        """Return a single booster: the weighted sum over the losses with a weight."""
        used = [one for name, one in self.grown.items() if weights.get(name)]
        shares = self._shares
        n_spare = (shares.sum() - 1) * sum(one.n_trees * one.n_leaves for one in used)
        boosters, counts, scales = [], [], []
        # rare categories need all rows
        again = n_spare > _MOST_SPARE or (len(shares) > 1 and self._binned.categorical.any())
        shares = np.ones(1) if again else shares
        if again and self.linear is not None:
            coef = self._coefficients(np.arange(len(self._training.targets)), self._training.weight)
            self.linear.coef = self._scale * coef
            self._starts.append(self._below_best(coef))
        for name, one in self.grown.items():
            if used and one not in used:
                continue
            boosters += [one.refit(self._training.weight)] if again else one.boosters
            counts += [one.n_trees] * len(shares)
            scales += (weights.get(name, 0.0) * one.scale * shares / shares.sum()).tolist()
        return merge_boosters(boosters, counts, scales, level)


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


def _error(known: Training, scores: dict[str, Floats], *, logs: bool) -> float:
    """Return the error of the best sum of the scores."""
    weights, _, _ = _combine(known, scores, logs=logs)
    total = np.column_stack(list(scores.values())) @ list(weights.values())
    queries, weight = known.queries, known.weight
    if logs:
        return listwise_error(total, as_counts(known.targets, queries), queries, weight)
    squares = np.square(queries.center(total - known.targets, weight))
    return float(squares.sum() if weight is None else squares @ weight)


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


_STEP = 10  # fewest trees per step
_MOST_TREES = 600
# Stop after this number of trees without improvement, or this fraction of the trees so far: the
# held-out error seldom decreases again.
_PATIENCE, _PATIENCE_SHARE = 30, 0.35
# After this number of trees, the learning rate doubles, and again after twice as many: if more
# trees still help, there is little noise. With more rows, there are fewer slow trees, as also for
# logarithms.
_SLOW_TREES, _FEWEST_SLOW, _SLOW_TIMES_ROWS = 150, 60, 1_200_000
_RATE, _LARGEST_RATE = 0.1, 0.4
_MOST_SCORES = 2_000_000  # held-out scores of a step, which are 16 MB


class BoosterGrowth:
    """Boosters of one loss and one size of trees, one per fold, that grow together."""

    def __init__(
        self, regressor: HistGradientBoostingRegressor, table: BinnedTable, n_columns: int,
        folds: list[Fold], places: Ints, wanted: Floats, unseen: Floats, n_jobs: int | None,
        starts: Sequence[Floats] = (),
    ) -> None:  # fmt: skip
        self.n_leaves = regressor.max_leaf_nodes
        self.logs = regressor.loss == "poisson"
        # with the mean of the positive targets as unit, the penalty of a leaf counts documents
        size = wanted[wanted > 0].mean() if self.logs else np.abs(wanted).max()
        unit = float(size) if self.logs else target_unit(float(size))
        self.scale = 1.0 if self.logs else unit  # of the scores
        self.n_trees, self.n_grown, self.error = 0, 0, np.inf
        self.stages: list[list[Floats]] = []  # held-out scores of each fold
        self._folds, self._n_threads = folds, _held_out.fits_at_once(n_jobs)
        n_slow = 0 if self.logs else _SLOW_TIMES_ROWS // len(table.bins)
        self._n_slow = min(_SLOW_TREES, max(_FEWEST_SLOW, n_slow))
        self.wanted, self._unseen = wanted / unit, unseen / unit
        self._regressor, self._table, self._n_columns = clone(regressor), table, n_columns
        self._starts = starts
        self.boosters = [
            self._booster(fold.rows, places[fold.held], fold.weight, number)
            for number, fold in enumerate(folds)
        ]

    @property
    def stops(self) -> bool:
        """Whether more trees are not expected to help."""
        return self.n_grown >= self._limit

    @property
    def _limit(self) -> int:
        """Most trees without further improvement. After many trees, plateaus are longer."""
        return min(_MOST_TREES, self.n_trees + max(_PATIENCE, int(_PATIENCE_SHARE * self.n_trees)))

    def grow_to(self, n_trees: int) -> None:
        """Grow as long as trees help, up to a number of trees, and keep the held-out scores."""
        while self.n_grown < min(n_trees, self._limit):
            # the scores of a step are kept until its best number of trees is known
            step = min(max(_STEP, self.n_grown // 4), max(1, _MOST_SCORES // len(self.wanted)))
            n_next = min(self.n_grown + step, n_trees, _MOST_TREES)
            further = partial(self._errors, n_trees=n_next)
            each = zip(self.boosters, self._folds, strict=True)
            grown = list(_memory.map_in_order(further, each, self._n_threads))
            errors = np.sum([errors for errors, _ in grown], axis=0)
            for number, error in enumerate(errors, self.n_grown + 1):
                if self.error == np.inf or exceeds(self.error, error, self.error):
                    self.n_trees, self.error = number, float(error)
                elif number >= self._limit:
                    break
            if (best := self.n_trees - self.n_grown - 1) >= 0:
                self._held = [scores[best] for _, scores in grown]
            self.n_grown = n_next
        self.stages.append(self._held)

    def _rates(self, start: int, stop: int) -> list[float]:
        """Return the learning rates of some trees. The first ones have a smaller rate."""
        parts = [number // self._n_slow for number in range(start, stop)]
        return [min(_LARGEST_RATE, _RATE * 2 ** part.bit_length()) for part in parts]

    def _errors(self, one: tuple[Booster, Fold], n_trees: int) -> tuple[Floats, list[Floats]]:
        """Grow a booster up to a number of trees; return held-out errors and scores after each."""
        (booster, fold), queries, weight = one, one[1].queries, one[1].held_weight
        unseen = self._unseen[fold.held]
        wanted = queries.center(unseen)
        errors, kept = [], list(booster.grow(self._rates(self.n_grown, n_trees)))
        for scores in kept:
            if self.logs:
                errors.append(listwise_error(scores, unseen, queries, weight))
                continue
            squares = np.square(queries.center(scores) - wanted)
            errors.append(float(squares.sum() if weight is None else squares @ weight))
        return np.array(errors), kept

    def held_out(self, stage: int = -1) -> Floats:
        """Return the scores of all held-out rows, by the trees of a stage or of the last before."""
        parts = self.stages[-1 if stage >= len(self.stages) else stage]
        scores = np.empty(sum(map(len, parts)))
        for fold, own in zip(self._folds, parts, strict=True):
            scores[fold.held] = own
        return scores * self.scale

    def refit(self, weight: Floats | None) -> Booster:
        """Fit a booster of this size to all rows."""
        rows = np.arange(len(self.wanted))
        booster = self._booster(rows, rows[:0], weight, len(self._folds))
        list(booster.grow(self._rates(0, self.n_trees)))
        return booster

    def _booster(self, rows: Ints, held: Ints, weight: Floats | None, number: int) -> Booster:
        start = self._starts[number] if self._starts else 0.0
        what = rows, held, self.wanted[rows], weight, number, self._n_columns, start
        return Booster(self._regressor, self._table, *what)
