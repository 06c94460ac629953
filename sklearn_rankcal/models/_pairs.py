"""Models of pairs around any regressor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import check_random_state

from sklearn_rankcal.models._document import default_regressor, weight_argument
from sklearn_rankcal.models._tables import numeric_table, rows_per_prediction
from sklearn_rankcal.queries._queries import Queries
from sklearn_rankcal.targets._pairs import PairTargets, entry_counts, square_chunks
from sklearn_rankcal.utils._features import hash_rows
from sklearn_rankcal.utils._memory import check_memory
from sklearn_rankcal.utils._parameters import check_count, check_flag, check_methods
from sklearn_rankcal.utils._pickles import VersionedPickle
from sklearn_rankcal.utils._scales import below_one, check_weight_range, target_exponent

Floats = NDArray[np.float64]
Keys = NDArray[np.uint64]


class PairModel(VersionedPickle, BaseEstimator):
    """Any regressor on one row per pair; predictions are made antisymmetric, or symmetric.

    Parameters
    ----------
    regressor : estimator, default=None
        Cloned and fitted on the features of ordered pairs. None: `default_regressor`.
    features : {"difference", "concatenation", "products"} or callable, default="concatenation"
        What the regressor sees of a pair: x_i - x_j; [x_i, x_j]; [x_i - x_j, x_i * x_j]; or
        ``features(first, second)`` of two tables. With `symmetric` ``|x_i - x_j|`` and x_i + x_j
        stand for x_i - x_j in the first and the third. A model that is linear in the difference is
        a score and cannot express a cycle.
    symmetric : bool, default=False
        True for the space ``"sym_pairs"``: a second clone of the regressor is then fitted to the
        diagonal, one row per document.
    max_pairs : int or None, default=2_000_000
        With more pairs than these, so many are drawn at random, every pair alike. None: all.
    random_state : int, RandomState instance or None, default=0
        Seeds the draw, and which of its two orders each pair is shown in. Both follow from a hash
        of the documents of the query and their targets, so that the order of the rows does not
        matter.

    Attributes
    ----------
    regressor_ : estimator
        The fitted regressor.
    diagonal_ : estimator or None
        The one of documents, where symmetric.
    n_pairs_ : int
        Pairs it was fitted on.

    Notes
    -----
    Memory: `max_pairs` rows of features in `fit`, 131,072 in `predict`. The regressor is handed
    the pairs in an order of their content.
    """

    def __init__(
        self,
        regressor: Any = None,
        *,
        features: str | Callable[[Any, Any], Any] = "concatenation",
        symmetric: bool = False,
        max_pairs: int | None = 2_000_000,
        random_state: Any = 0,
    ) -> None:
        self.regressor = regressor
        self.features = features
        self.symmetric = symmetric
        self.max_pairs = max_pairs
        self.random_state = random_state

    @property
    def space(self) -> str:
        """``"pairs"``, or ``"sym_pairs"`` where symmetric."""
        return "sym_pairs" if self.symmetric else "pairs"

    def fit(
        self,
        X: Any,
        targets: PairTargets,
        queries: Queries,
        sample_weight: Floats | None = None,
    ) -> PairModel:
        """Fit the regressor on pairs.

        Parameters
        ----------
        X : array-like of shape (n_documents, n_features)
            Dense, finite numbers.
        targets : PairTargets
            Of the symmetry of the model.
        queries : Queries
        sample_weight : ndarray of shape (n_documents,), default=None
            A pair weighs the product of its documents' weights.

        Returns
        -------
        self : PairModel

        Raises
        ------
        ValueError
            No query has two documents, `max_pairs` is not a whole number >= 1, the
            regressor is a classifier, or the features of the pairs would not fit in memory.
        """
        check_methods(self.regressor, "regressor", "a regressor", "fit", "predict")
        if self.regressor is not None and is_classifier(self.regressor):
            raise ValueError(
                f"{type(self.regressor).__name__} is a classifier, and targets of pairs are no "
                "classes. Use a regressor."
            )
        check_count(self.max_pairs, "max_pairs", or_none=True)
        check_flag(self.symmetric, "symmetric")
        table = numeric_table(X)
        seeds = check_random_state(self.random_state).randint(2**31, size=2).astype(np.uint64)
        keys = hash_rows(table, np.arange(queries.n_rows))
        if sample_weight is not None:
            keys = _mixed(keys ^ _mixed(_bits(sample_weight / sample_weight.max())))
        first, second, goal, drawn = self._draw(table, targets, queries, keys, seeds[0])
        turned = (_mixed(drawn ^ _mixed(seeds[1:])) & np.uint64(1)).astype(bool)
        first, second = np.where(turned, second, first), np.where(turned, first, second)
        if not self.symmetric:
            goal = np.where(turned, -goal, goal)
        weight = None
        if sample_weight is not None:
            if self.regressor is None:  # whose weights are scaled anyway
                sample_weight = below_one(sample_weight)
            else:  # products of weights that are too small or too large would not show it
                check_weight_range(sample_weight, type(self.regressor).__name__)
            weight = sample_weight[first] * sample_weight[second]
        self.n_pairs_ = len(goal)
        own = targets.diagonal() if self.symmetric else np.empty(0)
        self._exponent = target_exponent(np.append(goal, own))
        self.regressor_ = self._fit_one(self._show(table[first], table[second]), goal, weight)
        self.diagonal_: Any = None
        if self.symmetric:
            rows = np.lexsort((own, keys))
            weight = None if sample_weight is None else sample_weight[rows]
            self.diagonal_ = self._fit_one(table[rows], own[rows], weight)
        return self

    def _fit_one(self, table: Any, goal: Floats, weight: Floats | None) -> Any:
        regressor = (
            default_regressor(len(goal)) if self.regressor is None else clone(self.regressor)
        )
        weights = weight_argument(regressor, weight, own=self.regressor is None)
        return regressor.fit(table, np.ldexp(goal, -self._exponent), **weights)

    def _draw(
        self,
        table: NDArray[Any],
        targets: PairTargets,
        queries: Queries,
        keys: Keys,
        seed: np.uint64,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats, Keys]:
        """Rows of the pairs that are used, their targets and keys, by increasing key.

        Each pair is once in one of its two orders, which content determines. `keys` are those of
        the documents. Of pairs with equal keys it does not matter which is drawn: they are alike.
        """
        n_pairs = int(entry_counts(queries.sizes, symmetric=False).sum())
        if n_pairs == 0:
            raise ValueError(
                f"No query has two documents (n_samples={queries.n_rows}), so there is no pair to "
                "learn from."
            )
        wanted = n_pairs if self.max_pairs is None else min(n_pairs, self.max_pairs)
        shown = self._show(table[:1], table[:1])
        check_memory(
            wanted * (shown.shape[1] * 8 + 24),
            f"{wanted:,} pairs of {shown.shape[1]} features",
            "Set max_pairs: that many pairs are then drawn at random.",
        )
        of_query = _query_keys(targets, queries, keys, seed)
        share = (wanted + 4 * np.sqrt(wanted)) / n_pairs  # seldom too few
        limit = np.uint64(share * 2.0**64) if share < 1 else np.iinfo(np.uint64).max
        parts = []
        for q, first, second, goal, key in _all_pairs(targets, queries, keys):
            drawn = _mixed(key ^ of_query[q])
            taken = drawn <= limit
            parts.append((first[taken], second[taken], goal[taken], drawn[taken]))
        first, second, goal, drawn = (np.concatenate(part) for part in zip(*parts, strict=True))
        kept = np.lexsort((goal, drawn))[:wanted]
        return first[kept], second[kept], goal[kept], drawn[kept]

    def _show(self, first: NDArray[Any], second: NDArray[Any]) -> Any:
        if callable(self.features):
            return self.features(first, second)
        if self.features == "concatenation":
            return np.concatenate([first, second], axis=1)
        if self.features == "difference":
            return np.abs(first - second) if self.symmetric else first - second
        if self.features == "products":
            other = first + second if self.symmetric else first - second
            return np.concatenate([other, first * second], axis=1)
        raise ValueError(
            "features must be 'difference', 'concatenation', 'products' or a callable; got "
            f"{self.features!r}."
        )

    def predict(self, X: Any, queries: Queries) -> Floats:
        """The regressor's answer for both orders of a pair, halved: their difference, or their sum.

        Of the pairs i < j of every query (``numpy.triu_indices(r, 1)``); where symmetric of i <= j
        (``numpy.triu_indices(r)``), with the predictions of documents on the diagonal.
        """
        table = numeric_table(X)
        first, second = pair_rows(queries, self.symmetric)
        values = np.empty(len(first))
        sign = 1.0 if self.symmetric else -1.0
        step = rows_per_prediction(self._show(table[:1], table[:1]).shape[1])
        for start in range(0, len(first), step):
            i, j = table[first[start : start + step]], table[second[start : start + step]]
            there = np.asarray(self.regressor_.predict(self._show(i, j))).reshape(-1)
            back = np.asarray(self.regressor_.predict(self._show(j, i))).reshape(-1)
            values[start : start + step] = (there + sign * back) / 2
        if self.symmetric:
            alone = first == second
            documents = np.asarray(self.diagonal_.predict(table)).reshape(-1)
            values[alone] = documents[first[alone]]
        return np.ldexp(values, self._exponent)


def _mixed(keys: Keys) -> Keys:
    """A hash of 64 bits (splitmix64's finaliser)."""
    with np.errstate(over="ignore"):
        keys = keys + np.uint64(0x9E3779B97F4A7C15)
        keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return keys ^ (keys >> np.uint64(31))


def _bits(values: NDArray[Any]) -> Keys:
    """Numbers as keys: in single precision, as sums over a query depend on its order of rows."""
    with np.errstate(over="ignore", under="ignore"):
        single = np.asarray(values).astype(np.float32) + np.float32(0)  # -0.0 becomes 0.0
    return single.view(np.uint32).astype(np.uint64)


def _all_pairs(
    targets: PairTargets, queries: Queries, keys: Keys
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], Floats, Keys]]:
    """Queries, rows, targets and keys of all pairs, some queries at a time.

    Each pair once: the document of the smaller key first. Where the keys are equal the two look
    the same, and that one is first which makes the target positive.
    """
    rows = np.arange(queries.n_rows) if queries.order is None else queries.order
    for inside, valid in square_chunks(queries):
        upper = np.triu(np.ones(inside.shape[1:] * 2, dtype=bool), 1)
        q, i, j = np.nonzero(valid[:, :, None] & valid[:, None, :] & upper)
        goal = targets.matrices(inside, valid)[q, i, j]
        largest = np.zeros(len(inside))
        np.maximum.at(largest, q, np.abs(goal))
        # in units of the query's largest target, so that the unit of preferences draws no pairs
        share = goal / np.where(largest > 0, largest, 1.0)[q]
        first, second = rows[inside[q, i]], rows[inside[q, j]]
        one, other = keys[first], keys[second]
        turned = one > other
        if not targets.symmetric:
            turned |= (one == other) & (goal < 0)
            goal, share = np.where(turned, -goal, goal), np.where(turned, -share, share)
        first, second = np.where(turned, second, first), np.where(turned, first, second)
        key = _mixed(_mixed(_mixed(np.minimum(one, other)) ^ np.maximum(one, other)) ^ _bits(share))
        yield queries.codes[first], first, second, goal, key


def _query_keys(targets: PairTargets, queries: Queries, keys: Keys, seed: np.uint64) -> Keys:
    """A key for each query, from its documents and targets; queries that are alike get others.

    Otherwise the pairs of queries with the same documents would be drawn together, and all shown in
    the same order.
    """
    of_query = np.zeros(queries.n_queries, dtype=np.uint64)
    np.add.at(of_query, queries.codes, _mixed(keys))
    for q, _, _, _, key in _all_pairs(targets, queries, keys):
        np.add.at(of_query, q, key)
    order = np.argsort(of_query, kind="stable")
    ordered = of_query[order]
    new = np.append(True, ordered[1:] != ordered[:-1])
    place = np.arange(len(order))
    number = place - np.maximum.accumulate(np.where(new, place, 0))
    of_query[order] = _mixed(ordered ^ _mixed(number.astype(np.uint64) + (seed << np.uint64(32))))
    return of_query


def pair_rows(
    queries: Queries, diagonal: bool = False
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of the pairs i < j (or i <= j) of every query, in the order of `PairTargets.flat`."""
    rows = np.arange(queries.n_rows) if queries.order is None else queries.order
    counts = entry_counts(queries.sizes, diagonal)
    first = np.empty(int(counts.sum()), dtype=np.int64)
    second = np.empty_like(first)
    starts = np.cumsum(counts) - counts
    for r in np.unique(queries.sizes):
        member = np.flatnonzero(queries.sizes == r)
        i, j = np.triu_indices(r, 0 if diagonal else 1)
        places = starts[member][:, None] + np.arange(len(i))
        first[places] = rows[queries.offsets[member][:, None] + i]
        second[places] = rows[queries.offsets[member][:, None] + j]
    return first, second
