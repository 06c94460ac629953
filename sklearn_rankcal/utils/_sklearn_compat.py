"""Code that depends on private parts of scikit-learn, or adds missing types.

`_fit_context` and `available_if` are scikit-learn's decorators with types. Without types, checkers
treat every decorated method as `Any`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from sklearn._loss import HalfPoissonLoss, HalfSquaredError
from sklearn.base import _fit_context as _untyped_fit_context
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import available_if as _untyped_available_if
from sklearn.utils.validation import _check_feature_names, _check_n_features, _get_feature_names

from sklearn_rankcal._kernels import kernels
from sklearn_rankcal.utils._features import (
    category_codes,
    category_columns,
    column_values,
    is_dataframe,
)
from sklearn_rankcal.utils._numbers import Floats

__all__ = [
    "HISTOGRAMS",
    "BinnedTable",
    "Booster",
    "FlatTrees",
    "HasMethods",
    "Interval",
    "StrOptions",
    "_check_feature_names",
    "_check_n_features",
    "_fit_context",
    "_get_feature_names",
    "_safe_indexing",
    "available_if",
    "bins_once",
    "cut_iterations",
    "merge_boosters",
    "shorten_requests",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])
HISTOGRAMS = (HistGradientBoostingRegressor, HistGradientBoostingClassifier)


def _fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[_Function], _Function]:
    decorate: Callable[[_Function], _Function] = _untyped_fit_context(
        prefer_skip_nested_validation=prefer_skip_nested_validation
    )
    return decorate


def available_if(check: Callable[[Any], bool]) -> Callable[[_Function], _Function]:
    decorate: Callable[[_Function], _Function] = _untyped_available_if(check)
    return decorate


def cut_iterations(regressor: Any, n_iter: int) -> bool:
    """Keep only the first iterations of histogram boosting. Return False for other regressors."""
    if not isinstance(regressor, HISTOGRAMS):
        return False
    regressor._predictors = regressor._predictors[:n_iter]
    return True


@contextmanager
def bins_once(regressor: Any) -> Iterator[list[Any]]:
    """Make histogram boosting keep the bins of its training data for further fits to the same data.

    Otherwise each step of a warm start computes the same bins again, which takes as long as dozens
    of trees. The mapper and the bins are in the list that the context returns.
    """
    kept: list[Any] = []
    if not isinstance(regressor, HISTOGRAMS):
        yield kept
        return
    bin_data = regressor._bin_data

    def bin_data_once(*arguments: Any, **options: Any) -> Any:
        if not kept:
            binned = bin_data(*arguments, **options)
            kept.extend([regressor._bin_mapper, binned])
        regressor._bin_mapper = kept[0]
        return kept[1]

    regressor._bin_data = bin_data_once
    try:
        yield kept
    finally:
        del regressor._bin_data


#: With fewer rows per bin, thresholds follow noise, and histograms cost more than their rows.
_ROWS_PER_BIN, _FEWEST_BINS, _MOST_BINS = 40, 32, 255


class BinnedTable:
    """The bins of a table, shared by boosters: of the rows of `table`, and then of those of `more`.

    `regressor` is fitted to the table, and knows its columns, categories and bins. `codes` are the
    queries of its rows: the Poisson deviance then has the best level for each query.
    """

    def __init__(
        self, table: Any, weight: Floats | None, more: Any, random_state: int, codes: Any = None
    ) -> None:
        self.codes = codes
        names = category_columns(table)
        # a missing value of polars is a category of its own to scikit-learn
        n_codes = int(category_codes(table, names).max(initial=0)) + 2 if names else 0
        wanted = min(_MOST_BINS, max(_FEWEST_BINS, n_codes, table.shape[0] // _ROWS_PER_BIN))
        self.regressor = HistGradientBoostingRegressor(
            max_iter=1, max_leaf_nodes=2, max_bins=wanted, early_stopping=False,
            random_state=random_state,
        )  # fmt: skip
        with bins_once(self.regressor) as kept:
            self.regressor.fit(table, np.zeros(table.shape[0]), weight)
        mapper, bins = kept
        if more is not None:
            others = mapper.transform(self.regressor._preprocess_X(more, reset=False))
            bins = np.asfortranarray(np.concatenate([bins, others]))
        sizes = mapper.n_bins_non_missing_.astype(np.int32)
        self.bins = np.minimum(bins, sizes.astype(np.uint8), out=bins)  # missing values are last
        self.starts = np.cumsum(np.append(0, sizes + 1), dtype=np.int32)
        found = self.regressor._is_categorical_remapped
        self.categorical = (np.zeros(len(sizes), bool) if found is None else found).view(np.uint8)
        self.thresholds = np.full(self.starts[-1], np.inf)
        for start, limits in zip(self.starts, mapper.bin_thresholds_, strict=False):
            self.thresholds[start : start + len(limits)] = limits


class Booster:
    """A histogram booster that grows tree by tree, and keeps the scores of all rows of a table.

    It learns the targets of some `rows`, from the first `n_columns`. `start` has scores of all rows
    to start from. Its parameters but the bins are those of the unfitted `regressor`. So are its
    trees, but for the columns that splits draw.
    """

    def __init__(
        self, regressor: Any, table: BinnedTable, rows: Any, held: Any, targets: Floats,
        weight: Floats | None, seed: int, n_columns: int | None = None, start: Any = 0.0,
    ) -> None:  # fmt: skip
        self.like, self.table, self.logs = regressor, table, regressor.loss == "poisson"
        self._bins = table.bins[:, :n_columns]
        self._starts = table.starts[: self._bins.shape[1] + 1]
        self._rows, self._held = rows.astype(np.uint32), held.astype(np.uint32)
        columns = zip(self._bins.T, np.diff(self._starts) - 1, strict=True)
        self.lacks = np.array([(bins[rows] == last).any() for bins, last in columns], np.uint8)
        self._targets, self._weighs = targets, weight is not None
        self._weight = np.ones(len(rows)) if weight is None else weight
        mean = np.average(targets, weights=weight)
        self.baseline = float(np.log(mean) if self.logs else mean)
        self._scores = np.full(len(table.bins), self.baseline) + start
        seeds = np.random.SeedSequence([regressor.random_state % 2**32, seed])
        self._state = seeds.generate_state(1, np.uint64) | np.uint64(1)
        self.trees: list[Any] = []

    def grow(self, rates: Iterable[float]) -> Iterator[Floats]:
        """Add a tree for each learning rate; yield the scores of the rows `held` after each."""
        like, table = self.like, self.table
        n_leaves, n_drawn = like.max_leaf_nodes, math.ceil(like.max_features * len(self.lacks))
        sums = np.empty(5 * n_leaves * int(self._starts[-1]) // 2 + 1)
        # gradients and hessians; no hessians are all 1
        firsts, seconds = np.zeros((2, len(self._scores)), "f4")
        seconds = seconds if self.logs or self._weighs else seconds[:0]
        codes = None
        if self.logs and table.codes is not None:
            codes = table.codes[self._rows]
            wanted = np.bincount(codes, self._weight * self._targets)
        for rate in rates:
            means = self._scores[self._rows]
            means = np.exp(means) if self.logs else means
            if codes is not None:
                predicted = np.bincount(codes, self._weight * means)
                means *= (wanted / np.where(predicted > 0, predicted, 1.0))[codes]
            firsts[self._rows] = (means - self._targets) * self._weight
            if len(seconds):
                seconds[self._rows] = self._weight * (means if self.logs else 1.0)
            shape = 2 * n_leaves - 1
            tree = [np.empty((shape, 2)), np.empty((shape, 7), "i4"), np.empty((shape, 8), "u4")]
            n_nodes = kernels.grow_tree(
                self._bins, self._starts, self.lacks, table.categorical, self._rows, self._held,
                firsts, seconds, self._scores, n_leaves,
                like.min_samples_leaf, like.l2_regularization, rate, n_drawn, self._state, sums,
                *tree,
            )  # fmt: skip
            self.trees.append([part[:n_nodes] for part in tree])
            yield self._scores[self._held]


def merge_boosters(
    boosters: Sequence[Booster], counts: Sequence[int], scales: Sequence[float],
    level: float | None = None,
) -> HistGradientBoostingRegressor:  # fmt: skip
    """Return a fitted regressor that predicts the weighted sum of the raw scores of boosters.

    All must grow on the same table. Of each, the first trees count, as many as `counts` says. If
    `level` is given, the regressor predicts exp(sum + level), like boosters of the Poisson
    deviance, which have logarithmic raw scores.
    """
    table, loss = boosters[0].table, "squared_error" if level is None else "poisson"
    parameters = boosters[0].like.get_params() | {"loss": loss}
    parameters["max_bins"] = table.regressor.max_bins
    parameters["max_leaf_nodes"] = max(one.like.max_leaf_nodes for one in boosters)
    regressor = copy.copy(table.regressor).set_params(**parameters)
    objective = HalfSquaredError if level is None else HalfPoissonLoss
    regressor._loss, ((like,),) = objective(sample_weight=None), table.regressor._predictors
    regressor._predictors = []
    total = level or 0.0
    for booster, n_trees, scale in zip(boosters, counts, scales, strict=True):
        if scale:
            total += scale * booster.baseline
            regressor._predictors += _as_predictors(booster, n_trees, scale, like)
    regressor._baseline_prediction = np.array([[total]])
    return regressor.set_params(max_iter=max(1, len(regressor._predictors)))


def _as_predictors(booster: Booster, n_trees: int, scale: float, like: Any) -> list[list[Any]]:
    """Return the first trees as scikit-learn keeps them, with scaled values."""
    numbers, integers, codes = map(np.concatenate, zip(*booster.trees[:n_trees], strict=True))
    starts = np.cumsum([0, *(len(tree[0]) for tree in booster.trees[:n_trees])])
    nodes = np.zeros(len(numbers), dtype=like.nodes.dtype)
    nodes["value"], nodes["gain"] = numbers[:, 0] * scale, numbers[:, 1]
    names = "left right depth feature_idx bin_threshold missing_go_to_left count".split()
    for name, values in zip(names, integers.T, strict=True):
        nodes[name] = values
    leaf, table, columns = integers[:, 0] == 0, booster.table, integers[:, 3]
    nodes["is_leaf"] = leaf
    limits = table.thresholds[table.starts[columns] + integers[:, 4]]
    nodes["num_threshold"] = np.where(leaf, 0.0, limits)
    of_codes = ~leaf & (table.categorical[columns] > 0)
    nodes["is_categorical"] = of_codes
    sets = np.append(0, np.cumsum(of_codes))  # before each node
    numbered = np.repeat(sets[starts[:-1]], np.diff(starts))
    nodes["bitset_idx"] = np.where(of_codes, sets[:-1] - numbered, 0)
    raw, binned = codes[of_codes], codes[of_codes]
    missing_left = integers[:, 5].astype(bool) & (booster.lacks[columns] > 0)
    word, bit = divmod(int(table.regressor.max_bins), 32)  # the bin of missing values
    binned[:, word] |= missing_left[of_codes].astype(np.uint32) << np.uint32(bit)
    return [
        [type(like)(nodes[a:b], binned[sets[a] : sets[b]], raw[sets[a] : sets[b]])]
        for a, b in pairwise(starts)
    ]


class FlatTrees:
    """The trees of a histogram booster in a few arrays, for fast predictions.

    The booster itself calls a function for each tree, and a column transformer if there are
    categories. The predictions agree to the last digit.
    """

    def __init__(self, regressor: Any) -> None:
        trees = [tree.nodes for (tree,) in regressor._predictors]
        nodes = np.frombuffer(b"".join(tree.tobytes() for tree in trees), trees[0].dtype)
        roots = np.cumsum([0, *map(len, trees)])[:-1]
        leaf = nodes["is_leaf"].astype(bool)
        splits = nodes[~leaf]
        # A node comes before those on its left, and these before those on its right, so the leaves
        # of a tree are numbered from left to right.
        number = np.cumsum(leaf) - leaf
        first_leaves = number[roots]
        starts = np.append(roots - first_leaves, len(splits))  # of the splits of each tree
        tree = np.repeat(np.arange(len(trees)), np.diff(starts))
        lefts = number[splits["left"] + roots[tree]]
        n_lefts = number[splits["right"] + roots[tree]] - lefts
        left_leaves = ((1 << n_lefts) - 1) << (lefts - first_leaves[tree])
        left_codes = [tree.raw_left_cat_bitsets.reshape(-1, 8) for (tree,) in regressor._predictors]
        n_sets = np.array([len(bits) for bits in left_codes])
        sets = splits["bitset_idx"] + (np.cumsum(n_sets) - n_sets)[tree]
        width, features = regressor.n_features_in_, splits["feature_idx"].astype(np.int64)
        self._baseline = float(regressor._baseline_prediction.item())
        self._logs = regressor.loss == "poisson"
        self._arrays = (
            starts.astype(np.int32),
            np.where(splits["missing_go_to_left"], width + features, features).astype(np.int32),
            splits["num_threshold"].astype(np.float64),
            (~left_leaves).astype(np.uint64),
            np.where(splits["is_categorical"], sets, -1).astype(np.int32),
            np.concatenate(left_codes).astype(np.uint32),
            first_leaves.astype(np.int32),
            nodes["value"][leaf].astype(np.float64),
        )
        # The columns of categories come first in the table of the trees, as codes.
        self._codes: list[dict[Any, int]] = []
        self._places: list[int] = []  # of these columns in a table of a user
        if regressor._preprocessor is not None:
            encoder = regressor._preprocessor.named_transformers_["encoder"]
            self._codes = [
                {value: code for code, value in enumerate(known) if value == value}
                for known in encoder.categories_
            ]
            self._places = np.flatnonzero(regressor.is_categorical_).tolist()
        #: code of a missing category, for each column of categories
        self.missing = [known.get(None, np.nan) for known in self._codes]
        self._seen: list[tuple[Any, Floats]] = [(None, np.zeros(0))] * len(self._codes)

    @staticmethod
    def suits(regressor: Any, table: Any) -> bool:
        """Return whether the trees of a regressor can be used for the rows of a table."""
        return (
            kernels.add_trees is not None
            and type(regressor) is HistGradientBoostingRegressor
            and regressor.loss in ("squared_error", "poisson")
            and bool(getattr(regressor, "_predictors", []))
            and (regressor.max_leaf_nodes or np.inf) <= 64
            and (regressor._preprocessor is None or _has_categories(regressor, table))
        )

    def predict(self, X: Any) -> Floats:
        """Predict the rows of a table."""
        total = np.full(len(X), self._baseline)
        table = self.encode(X)
        kernels.add_trees(table, *self._arrays, np.zeros((2 * table.shape[1], 32)), total)
        return np.exp(total) if self._logs else total

    def encode(self, X: Any) -> Floats:
        """Return a table as numbers in C order, with a code for each known category."""
        if not is_dataframe(X):
            return np.ascontiguousarray(X, dtype=np.float64)
        names, dtypes, places = list(X.columns), list(X.dtypes), self._places
        encoded = np.empty(X.shape)
        numbers = [name for place, name in enumerate(names) if place not in places]
        encoded[:, len(places) :] = column_values(X, numbers)
        codes = category_codes(X, [names[k] for k in places]) if places else np.zeros((0, 0), int)
        for k, place in enumerate(places):
            encoded[:, k] = self._codes_of(k, dtypes[place].categories)[codes[:, k]]
        return encoded

    def _codes_of(self, k: int, categories: Any) -> Floats:
        """Return the code of each category of a column (NaN: unknown), and of a missing one."""
        seen, codes = self._seen[k]
        if seen is not categories:
            known = self._codes[k]
            values = [*categories, None]  # polars has None for a missing value, also as a category
            codes = np.array([known.get(value, np.nan) for value in values])
            self._seen[k] = (categories, codes)
        return codes


def _has_categories(regressor: Any, table: Any) -> bool:
    """Whether the columns that a booster reads as categories have a dtype that lists them."""
    dtypes = list(getattr(table, "dtypes", ()))
    return bool(dtypes) and all(
        type(dtypes[place]).__name__ in ("CategoricalDtype", "Enum")
        for place in np.flatnonzero(regressor.is_categorical_)
    )


class _Request:
    """Choose what a meta-estimator passes on by metadata routing: True, False, None or a name."""

    def __init__(self, long: Any) -> None:
        self.long = long

    def __get__(self, instance: Any, owner: Any) -> Any:
        method = self.long.__get__(instance, owner)
        method.__doc__ = self.__doc__
        return method


def shorten_requests(estimator: type) -> None:
    """Replace the docstrings of scikit-learn's ``set_*_request``, which have at least 35 lines."""
    for name, method in list(vars(estimator).items()):
        if name.startswith("set_") and name.endswith("_request"):
            setattr(estimator, name, _Request(method))
