"""Models of pairs with regressors: of one row per pair, and of what scores leave unexplained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.linear_model._base import LinearModel
from sklearn.utils import check_random_state

from sklearn_rankcal.models._column_parameters import SIGNS, refuse_parameters
from sklearn_rankcal.models._document import DocumentModel, default_regressor, weight_arguments
from sklearn_rankcal.models._held_out import check_stops_early
from sklearn_rankcal.models._model import PairwiseModel, Training, squared_error
from sklearn_rankcal.pairs._closed_forms import BilinearPairs, score_differences
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import PAIRS, SCORES, SYMMETRIC_PAIRS, PairTargets, Residuals, Space
from sklearn_rankcal.utils._estimators import clone
from sklearn_rankcal.utils._features import (
    category_columns,
    column_at,
    hash_rows,
    is_dataframe,
    numeric_table,
)
from sklearn_rankcal.utils._memory import (
    PREDICTION_BYTES,
    check_memory,
    row_blocks,
    rows_per_block,
    threads_for,
)
from sklearn_rankcal.utils._messages import check_count, check_flag, check_methods
from sklearn_rankcal.utils._numbers import (
    Bools,
    Floats,
    Ints,
    check_weight_range,
    is_missing,
    read_numbers,
    target_unit,
)

Keys = NDArray[np.uint64]
# penalty times the number of queries: ten times that of `BilinearPairs`, because products are
# noisier than differences
_PENALTY_TIMES_QUERIES = 3000.0
_MOST_CATEGORIES = 32  # most frequent categories that are encoded, per column


class PairModel(PairwiseModel):
    """Model of pairs: a regressor fitted to one row per pair of documents of a query.

    The prediction for a pair combines the predictions for both of its orders, which makes it
    antisymmetric or symmetric.

    Parameters
    ----------
    regressor : estimator, default=None
        The regressor. A clone is fitted to rows [x_i, x_j] of ordered pairs. For other features,
        such as differences, pass a pipeline with a transformer. None means `default_regressor`.
    symmetric : bool, default=False
        Whether the space is `targets.SYMMETRIC_PAIRS`, as for ``loss="map"``. A second clone of the
        regressor is then fitted to the diagonal, with one row per document.
    max_pairs : int or None, default=2_000_000
        Largest number of pairs to fit. If there are more, pairs are drawn at random with equal
        probability. None means no limit.
    random_state : int, RandomState instance or None, default=0
        Seed for the drawn pairs and for the order of the two documents in each row. Neither depends
        on the order of the rows of X.

    Attributes
    ----------
    regressor_ : estimator
        The fitted regressor.
    diagonal_ : estimator or None
        The regressor fitted to documents. None unless `symmetric`.
    n_pairs_ : int
        Number of pairs that the regressor was fitted to.

    Notes
    -----
    `fit` stores the features of at most `max_pairs` pairs. `predict` stores one block of pairs:
    at most 128 MiB, or ``working_memory`` of scikit-learn if it is smaller.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn_rankcal import CalibratedRanker
    >>> from sklearn_rankcal.datasets import make_ranking
    >>> from sklearn_rankcal.models import PairModel
    >>> data = make_ranking(n_queries=20, n_documents=10, random_state=0)
    >>> ranker = CalibratedRanker(PairModel(Ridge()), loss="pd")
    >>> ranker.fit(data.X, data.y, groups=data.groups).model_.n_pairs_
    900
    """

    def __init__(
        self,
        regressor: Any = None,
        *,
        symmetric: bool = False,
        max_pairs: int | None = 2_000_000,
        random_state: Any = 0,
    ) -> None:
        self.regressor = regressor
        self.symmetric = symmetric
        self.max_pairs = max_pairs
        self.random_state = random_state

    @property
    def space(self) -> Space:  # type: ignore[override]
        """`targets.SYMMETRIC_PAIRS` if `symmetric`, else `targets.PAIRS`."""
        return SYMMETRIC_PAIRS if self.symmetric else PAIRS

    def fit(self, training: Training) -> Self:
        """Fit the regressor to pairs, whose targets must have the symmetry of the model."""
        check_methods(self.regressor, "regressor", "a regressor", "fit", "predict")
        if self.regressor is not None and is_classifier(self.regressor):
            raise ValueError(
                f"{type(self.regressor).__name__} is a classifier, but the targets of pairs are "
                "not classes. Use a regressor."
            )
        check_count(self.max_pairs, "max_pairs", or_none=True)
        check_flag(self.symmetric, "symmetric")
        table, targets = numeric_table(training.X), training.targets
        queries, sample_weight = training.queries, training.weight
        # Step 1: draw the pairs. Each document has a key, a hash of its features and its weight.
        seeds = check_random_state(self.random_state).randint(2**31, size=2).astype(np.uint64)
        keys = hash_rows(table, np.arange(queries.n_rows))
        if sample_weight is not None:
            keys = _mixed(keys ^ _mixed(_bits(sample_weight / sample_weight.max())))
        first, second, target, drawn = self._draw(table, targets, queries, keys, seeds[0])
        # Step 2: choose one of the two orders of each pair, by a bit of a hash of its key.
        turned = (_mixed(drawn ^ _mixed(seeds[1:])) & np.uint64(1)).astype(bool)
        first, second = np.where(turned, second, first), np.where(turned, first, second)
        if not self.symmetric:
            target = np.where(turned, -target, target)
        # Step 3: the weight of a pair is the product of the weights of its documents.
        weight = None
        if sample_weight is not None:
            if self.regressor is not None:  # the default regressor gets weights of mean 1
                check_weight_range(sample_weight, type(self.regressor).__name__)
            weight = sample_weight[first] * sample_weight[second]
        # Step 4: fit a regressor to the pairs and, if symmetric, another one to the diagonal.
        self.n_pairs_ = len(target)
        own = targets.diagonal() if self.symmetric else np.empty(0)
        self._unit = target_unit(float(np.abs(np.append(target, own)).max()))
        self.regressor_ = self._fit_one(np.hstack([table[first], table[second]]), target, weight)
        self.diagonal_: Any = None
        if self.symmetric:
            rows = np.lexsort((own, keys))
            weight = None if sample_weight is None else sample_weight[rows]
            self.diagonal_ = self._fit_one(table[rows], own[rows], weight)
        return self

    def _fit_one(self, table: Any, target: Floats, weight: Floats | None) -> Any:
        regressor = (
            default_regressor(len(target)) if self.regressor is None else clone(self.regressor)
        )
        weights = weight_arguments(regressor, weight, is_default=self.regressor is None)
        with threads_for(len(target)):
            return regressor.fit(table, target / self._unit, **weights)

    def _draw(
        self, table: NDArray[Any], targets: PairTargets, queries: Queries, keys: Keys, seed: Any
    ) -> tuple[Ints, Ints, Floats, Keys]:
        """Return the rows of the pairs to use, their targets and their keys, by increasing key.

        Each pair gets a random key, which depends on the hashes `keys` of its documents, on its
        query and on the seed. The pairs with the smallest keys are drawn.
        """
        n_pairs = int(PAIRS.n_entries(queries.sizes).sum())
        if n_pairs == 0:
            raise ValueError(
                f"No query has two documents (n_samples={queries.n_rows}), so there is no pair to "
                "learn from."
            )
        wanted = n_pairs if self.max_pairs is None else min(n_pairs, self.max_pairs)
        width = 2 * table.shape[1]
        check_memory(
            wanted * (width * 8 + 24),
            f"{wanted:,} pairs of {width} features",
            "Set max_pairs to draw a smaller number of pairs at random.",
        )
        of_query = _query_keys(targets, queries, keys, seed)
        # Keys are uniform on [0, 2^64). A limit for the keys keeps about `wanted` pairs plus 4
        # standard deviations, so memory does not grow with n_pairs.
        share = (wanted + 4 * np.sqrt(wanted)) / n_pairs
        limit = np.uint64(share * 2.0**64) if share < 1 else np.iinfo(np.uint64).max
        parts = []
        for q, first, second, target, key in _all_pairs(targets, queries, keys):
            drawn = _mixed(key ^ of_query[q])
            taken = drawn <= limit
            parts.append((first[taken], second[taken], target[taken], drawn[taken]))
        first, second, target, drawn = (np.concatenate(part) for part in zip(*parts, strict=True))
        kept = np.lexsort((target, drawn))[:wanted]
        return first[kept], second[kept], target[kept], drawn[kept]

    def predict_scores(self, X: Any, queries: Queries) -> Floats | None:
        """Predict scores whose differences are the predictions, if the regressor is linear.

        A linear regressor predicts w'x_i + v'x_j + b for a pair. Half the difference of its
        predictions for both orders is then s_i - s_j with s = (w - v)'x / 2. There are none if
        `symmetric`.
        """
        if self.symmetric or not isinstance(self.regressor_, LinearModel):
            return None
        table, coef = numeric_table(X), np.ravel(self.regressor_.coef_)
        w, v = coef[: table.shape[1]], coef[table.shape[1] :]
        blocks = row_blocks(*table.shape)
        return np.concatenate([table[rows] @ (w - v) for rows in blocks]) / 2 * self._unit

    def predict(self, X: Any, queries: Queries) -> Floats:
        """Predict the targets of all pairs of each query.

        The prediction for a pair is half the difference of the predictions for its two orders. If
        `symmetric`, it is half their sum, and `diagonal_` predicts i = j.
        """
        table = numeric_table(X)
        first, second = pair_rows(queries, self.space)
        values = np.empty(len(first))
        step = rows_per_block(16 * table.shape[1], PREDICTION_BYTES)
        with threads_for(len(first)):
            for start in range(0, len(first), step):
                i, j = table[first[start : start + step]], table[second[start : start + step]]
                there = np.asarray(self.regressor_.predict(np.hstack([i, j]))).reshape(-1)
                back = np.asarray(self.regressor_.predict(np.hstack([j, i]))).reshape(-1)
                values[start : start + step] = self.space.fold(there, back)
            if self.symmetric:
                alone = first == second
                documents = np.asarray(self.diagonal_.predict(table)).reshape(-1)
                values[alone] = documents[first[alone]]
        return values * self._unit


def _mixed(keys: Keys) -> Keys:
    """Hash each key to 64 bits, with the finaliser of splitmix64."""
    with np.errstate(over="ignore"):
        keys = keys + np.uint64(0x9E3779B97F4A7C15)
        keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return keys ^ (keys >> np.uint64(31))


def _bits(values: NDArray[Any]) -> Keys:
    """Convert numbers to keys in single precision: last digits depend on the order of rows."""
    with np.errstate(over="ignore", under="ignore"):
        single = np.asarray(values).astype(np.float32) + np.float32(0)  # turns -0.0 into 0.0
    return single.view(np.uint32).astype(np.uint64)


def _all_pairs(
    targets: PairTargets, queries: Queries, keys: Keys
) -> Iterator[tuple[Ints, Ints, Ints, Floats, Keys]]:
    """Yield queries, rows, targets and keys of all pairs, for a few queries at a time.

    Each pair occurs once, with the document of smaller key first. Documents with equal keys have
    the same features, and their order is the one with a positive target.
    """
    rows = np.arange(queries.n_rows) if queries.order is None else queries.order
    for inside, valid in queries.pair_blocks():
        upper = np.triu(np.ones(inside.shape[1:] * 2, dtype=bool), 1)
        q, i, j = np.nonzero(valid[:, :, None] & valid[:, None, :] & upper)
        target = targets.matrices(inside, valid)[q, i, j]
        largest = np.zeros(len(inside))
        np.maximum.at(largest, q, np.abs(target))
        # keys use targets relative to the largest target of the query, so the drawn pairs do not
        # depend on the unit of the preferences
        share = target / np.where(largest > 0, largest, 1.0)[q]
        first, second = rows[inside[q, i]], rows[inside[q, j]]
        one, other = keys[first], keys[second]
        turned = one > other
        if not targets.space.symmetric:
            turned |= (one == other) & (target < 0)
            target, share = np.where(turned, -target, target), np.where(turned, -share, share)
        first, second = np.where(turned, second, first), np.where(turned, first, second)
        key = _mixed(_mixed(_mixed(np.minimum(one, other)) ^ np.maximum(one, other)) ^ _bits(share))
        yield queries.codes[first], first, second, target, key


def _query_keys(targets: PairTargets, queries: Queries, keys: Keys, seed: np.uint64) -> Keys:
    """Compute a key for each query from its documents, its targets and the seed.

    Queries with equal contents get different keys. With equal keys, the same pairs would be drawn
    from each of these queries, in the same order.
    """
    of_query = np.zeros(queries.n_queries, dtype=np.uint64)
    np.add.at(of_query, queries.codes, _mixed(keys))
    for q, _, _, _, key in _all_pairs(targets, queries, keys):
        np.add.at(of_query, q, key)
    # number the queries of equal content from 0, and mix the number into the key
    order = np.argsort(of_query, kind="stable")
    ordered = of_query[order]
    new = np.append(True, ordered[1:] != ordered[:-1])
    place = np.arange(len(order))
    number = place - np.maximum.accumulate(np.where(new, place, 0))
    of_query[order] = _mixed(ordered ^ _mixed(number.astype(np.uint64) + (seed << np.uint64(32))))
    return of_query


def pair_rows(queries: Queries, space: Space) -> tuple[Ints, Ints]:
    """Return the rows of the pairs of each query, in the order of `PairTargets.flat`."""
    rows = np.arange(queries.n_rows) if queries.order is None else queries.order
    counts = space.n_entries(queries.sizes)
    first = np.empty(int(counts.sum()), dtype=np.int64)
    second = np.empty_like(first)
    starts = np.cumsum(counts) - counts
    for r in np.unique(queries.sizes):
        member = np.flatnonzero(queries.sizes == r)
        i, j = space.indices(int(r))
        places = starts[member][:, None] + np.arange(len(i))
        first[places] = rows[queries.offsets[member][:, None] + i]
        second[places] = rows[queries.offsets[member][:, None] + j]
    return first, second


class TableEncoder:
    """Encode categories and text as columns of 0 and 1, and keep numbers (NaN if missing).

    A missing category is a category. New categories, and all but the 32 most frequent of a column,
    are 0 in all columns.
    """

    def fit(self, X: Any) -> Self:
        """Learn the categories of each column of a table from `check_features`."""
        #: For each column: None if numeric, else the place of each category.
        self.places_: list[dict[Any, int] | None] = [None] * X.shape[1]
        if not is_dataframe(X) and X.dtype.kind in "biuf":
            return self
        names = list(X.columns) if is_dataframe(X) else range(X.shape[1])
        categories = set(category_columns(X))
        for number, name in enumerate(names):
            values = column_at(X, number)
            if name in categories or any(isinstance(value, str) for value in values):
                counts = Counter(_or_none(values)).items()
                common = sorted(counts, key=lambda pair: (-pair[1], str(pair[0])))
                self.places_[number] = {
                    value: place for place, (value, _) in enumerate(common[:_MOST_CATEGORIES])
                }
        return self

    def transform(self, X: Any) -> Any:
        """Return an array of numbers, of shape (n_rows, n_numbers + n_categories)."""
        frame = is_dataframe(X)
        if not any(self.places_) and not frame and X.dtype.kind in "biuf":
            return X
        parts = []
        for number, places in enumerate(self.places_):
            values = column_at(X, number)
            if places is None:
                name = repr(X.columns[number]) if frame else number
                parts.append(read_numbers(values, f"Column {name} of X", missing=True)[:, None])
            else:
                found = np.array([places.get(value, -1) for value in _or_none(values)])
                parts.append((found[:, None] == np.arange(len(places))).astype(np.float64))
        return np.hstack(parts)


def _or_none(values: NDArray[Any]) -> list[Any]:
    return [None if is_missing(value) else value for value in values.tolist()]


class _ResidualModel(PairwiseModel):
    """Fit scores, fit pairs to the residuals of the scores, and predict the sum of both."""

    stops_early = True

    def __init__(self, scores: Any = None, pairs: Any = None) -> None:
        self.scores = scores
        self.pairs = pairs

    @property
    def takes_categories(self) -> bool:  # type: ignore[override]
        """Whether the model of the scores supports categories of a data frame."""
        return self.scores is None or getattr(self.scores, "takes_categories", False)

    def fit(self, training: Training) -> Self:
        """Fit `scores` to the targets, and then `pairs` to the residuals.

        Both models must support the table, and targets must have the symmetry of the model.
        Validation queries choose the number of iterations of a boosted regressor in `scores`, by
        its rankings and the error of its targets. Labels are only needed if `scores` learns them.
        """
        targets, queries = training.targets, training.queries
        queries.check_pairs_fit()  # before the long fit of the scores
        for name, wanted in (("scores", "a DocumentModel"), ("pairs", "a model of pairs")):
            check_methods(getattr(self, name), name, f"{wanted} of sklearn_rankcal.models", "space")
        pairs = self._default_pairs(queries) if self.pairs is None else clone(self.pairs)
        if self.scores is not None and self.scores.space != SCORES:
            raise ValueError(f"scores must predict scores, not {self.scores.space}.")
        if pairs.space != self.space:
            raise ValueError(f"pairs must predict {self.space}, not {pairs.space}; got {pairs!r}.")
        model = DocumentModel() if self.scores is None else clone(self.scores)
        refuse_parameters(
            getattr(model, "regressor", None),
            "The predictions for pairs, which are added to the scores, keep no monotone "
            "constraint. Pass the regressor to a CalibratedRanker with a loss on scores, such as "
            "'pd_by_scores' or 'map_by_scores'.",
            SIGNS,
        )
        # Step 1: fit the scores.
        own = self._score_targets(targets, training.weight)
        validation = training.validation
        if validation is not None:
            check_stops_early(model)
            # targets for a stack and for the number of iterations
            held_out = validation.held_out
            aims = self._score_targets(held_out.targets, held_out.weight)
            validation.held_out = replace(held_out, targets=aims)
            validation.steady = squared_error(validation.held_out)
        self.scores_ = model.fit(replace(training, targets=own, graded_targets=False))
        # Step 2: fit the relation between the scores and the targets of pairs.
        scores = training.scores_of(self.scores_)
        self._fit_relation(targets, scores, queries, training.weight)
        # Step 3: fit the model of pairs to the residuals.
        rest = Residuals(targets, self._implied_by_scores(scores, queries))
        self._encoder = TableEncoder().fit(training.X)
        numbers = self._encoder.transform(training.X)
        gaps = np.isnan(numbers)
        self._means = np.where(gaps, 0.0, numbers).sum(axis=0) / (~gaps).sum(axis=0).clip(1)
        table = self._numbers(training.X)
        self.pairs_ = pairs.fit(replace(training, X=table, targets=rest, validation=None))
        return self

    def _numbers(self, X: Any) -> Any:
        """Return the table of `pairs`: categories as columns of 0 and 1, means in place of NaN."""
        table = self._encoder.transform(X)
        gaps = np.isnan(table)
        return np.where(gaps, self._means, table) if gaps.any() else table

    def predict(self, X: Any, queries: Queries) -> Floats:
        """Predict the targets of all pairs of each query."""
        u = self._implied_by_scores(self.scores_.predict(X, queries), queries).flat()
        u += self.pairs_.predict(self._numbers(X), queries)
        return u

    def _default_pairs(self, queries: Queries) -> Any:
        return BilinearPairs()

    def _score_targets(self, targets: PairTargets, sample_weight: Floats | None) -> Floats:
        """Compute the targets of the scores, one per document."""
        raise NotImplementedError

    def _fit_relation(
        self, targets: PairTargets, scores: Floats, queries: Queries, sample_weight: Floats | None
    ) -> None:
        """Fit the coefficients, if any, that convert scores to predictions for pairs."""

    def _implied_by_scores(self, scores: Floats, queries: Queries) -> PairTargets:
        """Return the predictions for pairs that scores imply."""
        raise NotImplementedError


class ResidualPairModel(_ResidualModel):
    """Model of preferences: differences of scores, plus a model of their residuals.

    It is the default model for ``loss="pd"``. The prediction for a pair is s_i - s_j + z_i' A z_j,
    where s_i is the score of document i and z_i are its features. The scores are fitted to net
    Borda targets, and the skew-symmetric form to the residuals. It can represent cycles, which
    scores cannot.

    Parameters
    ----------
    scores : DocumentModel, default=None
        Model of the scores. None means `DocumentModel()`.
    pairs : model of pairs, default=None
        Model of the residuals. None means `BilinearPairs()`.

    Attributes
    ----------
    scores_ : DocumentModel
        The fitted model of the scores.
    pairs_ : model of pairs
        The fitted model of the residuals.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn_rankcal import CalibratedRanker
    >>> from sklearn_rankcal.datasets import make_ranking
    >>> from sklearn_rankcal.models import DocumentModel, ResidualPairModel
    >>> data = make_ranking(n_queries=40, random_state=0)
    >>> ranker = CalibratedRanker(ResidualPairModel(DocumentModel(Ridge())), loss="pd")
    >>> ranker = ranker.fit(data.X, data.y, groups=data.groups)
    >>> len(ranker.predict_preferences(data.X, groups=data.groups))  # one matrix per query
    40
    """

    space = PAIRS

    def predict_scores(self, X: Any, queries: Queries) -> Floats | None:
        """Predict scores whose differences are the predictions, if `pairs` has such scores."""
        residual = self.pairs_.predict_scores(self._numbers(X), queries)
        return None if residual is None else self.scores_.predict(X, queries) + residual

    def _score_targets(self, targets: PairTargets, sample_weight: Floats | None) -> Floats:
        queries = targets.queries
        mass = np.ones(queries.n_rows) if sample_weight is None else sample_weight
        total = queries.broadcast(queries.sum(mass))
        # With V = sum_i v_i, b_i = sum_j v_j t_ij and sum_i v_i s_i = 0,
        # sum_ij v_i v_j (s_i - s_j - t_ij)^2 = 2 V sum_i v_i (s_i - b_i / V)^2 + constant,
        # which b_i / V minimise.
        return targets.row_sums(sample_weight) / np.where(total > 0, total, 1.0)

    def _implied_by_scores(self, scores: Floats, queries: Queries) -> PairTargets:
        return score_differences(scores, queries)


class ResidualProductModel(_ResidualModel):
    """Model of joint relevance: products of scores, plus a model of their residuals.

    It is the default model for ``loss="map"``. The predictions are u_ii = s_i and
    u_ij = a + b (s_i + s_j) + c s_i s_j + z_i' A z_j, where s_i is the score of document i and z_i
    are its features. The scores are fitted to the diagonal of the targets, then a, b and c to all
    pairs by least squares, and then the symmetric form to the residuals. The form represents which
    documents tend to be relevant together, or never together.

    Parameters
    ----------
    scores : DocumentModel, default=None
        Model of the scores. None means `DocumentModel()`.
    pairs : symmetric model of pairs, default=None
        Model of the residuals. None means ``BilinearPairs(symmetric=True)`` with a penalty of 3000
        divided by the number of training queries.

    Attributes
    ----------
    scores_ : DocumentModel
        The fitted model of the scores.
    pairs_ : symmetric model of pairs
        The fitted model of the residuals.
    slopes_ : ndarray of shape (3,)
        The coefficients a, b and c.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn_rankcal import CalibratedRanker
    >>> from sklearn_rankcal.datasets import make_ranking
    >>> from sklearn_rankcal.models import DocumentModel, ResidualProductModel
    >>> data = make_ranking(n_queries=40, random_state=0)
    >>> ranker = CalibratedRanker(ResidualProductModel(DocumentModel(Ridge())), loss="map")
    >>> ranker = ranker.fit(data.X, (data.y > 1).astype(int), groups=data.groups)
    >>> ranker.model_.slopes_.shape
    (3,)
    """

    space = SYMMETRIC_PAIRS

    def _default_pairs(self, queries: Queries) -> Any:
        return BilinearPairs(symmetric=True, alpha=_PENALTY_TIMES_QUERIES / queries.n_queries)

    def _score_targets(self, targets: PairTargets, sample_weight: Floats | None) -> Floats:
        return targets.diagonal()

    def _fit_relation(
        self, targets: PairTargets, scores: Floats, queries: Queries, sample_weight: Floats | None
    ) -> None:
        self.slopes_ = _fit_slopes(targets, scores, queries, sample_weight)

    def _implied_by_scores(self, scores: Floats, queries: Queries) -> PairTargets:
        return _ScoreProducts(scores, self.slopes_, queries)


def _fit_slopes(
    targets: PairTargets, scores: Floats, queries: Queries, sample_weight: Floats | None
) -> Floats:
    """Fit t_ij = a + b (s_i + s_j) + c s_i s_j by least squares over pairs i != j.

    It takes O(sum of r^2) time for queries of r documents.
    """
    mass = np.ones(queries.n_rows) if sample_weight is None else sample_weight
    grouped, mass = queries.gather(scores), queries.gather(mass)
    scale = np.abs(grouped).max() or 1.0  # for well-scaled equations
    gram, moment = np.zeros((3, 3)), np.zeros(3)
    for inside, valid in queries.pair_blocks():
        s, weight = grouped[inside] / scale, mass[inside] * valid
        weights = weight[:, :, None] * weight[:, None, :]
        _diagonal(weights)[...] = 0.0  # leave out the pairs i = j
        target = targets.matrices(inside, valid)
        terms = [np.ones_like(target), s[:, :, None] + s[:, None, :], s[:, :, None] * s[:, None, :]]
        for k, term in enumerate(terms):
            weighted = term * weights
            moment[k] += np.vdot(weighted, target)
            gram[k] += [np.vdot(weighted, other) for other in terms]
    # keep gram regular if all scores are equal
    gram[np.diag_indices(3)] += 1e-10 * (gram[0, 0] or 1.0)
    return np.linalg.solve(gram, moment) / [1.0, scale, scale**2]


def _diagonal(matrices: Floats) -> Floats:
    """Return a writable view of the diagonals of a stack of matrices."""
    return np.einsum("qii->qi", matrices)


class _ScoreProducts(PairTargets):
    """Pairwise targets a + b (s_i + s_j) + c s_i s_j for i != j, and s_i for i = j."""

    space = SYMMETRIC_PAIRS

    def __init__(self, scores: Floats, slopes: Floats, queries: Queries) -> None:
        super().__init__(queries)
        self._grouped = queries.gather(scores)
        self._slopes = slopes

    def matrices(self, inside: Ints, valid: Bools) -> Floats:
        a, b, c = self._slopes
        s = self._grouped[inside]
        products = a + b * (s[:, :, None] + s[:, None, :]) + c * s[:, :, None] * s[:, None, :]
        _diagonal(products)[...] = s
        products *= valid[:, :, None] & valid[:, None, :]
        return products
