"""The decoders of pairs as objects: a class for each method of the two decoding functions.

The algorithms are the entries of ``METHODS`` in `_decode_preferences` and
`_decode_average_precision`, and the names of the classes are in `_registry`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from sklearn_rankcal._kernels import kernels
from sklearn_rankcal.decoders import _decode_average_precision, _decode_preferences
from sklearn_rankcal.decoders._batches import collect_results, decode_batches
from sklearn_rankcal.decoders._decode_rules import keep_rules
from sklearn_rankcal.decoders._decode_scores import TieBreakers
from sklearn_rankcal.decoders._result import Decoded, DecodeResult
from sklearn_rankcal.decoders._rules import Rules
from sklearn_rankcal.decoders._rules_of_queries import rules_of_queries
from sklearn_rankcal.decoders._rules_orders import AveragePrecision, Disagreement, Objective
from sklearn_rankcal.decoders._search import SearchOptions, check_options
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.queries._ranking import check_scores
from sklearn_rankcal.targets import PAIRS, SYMMETRIC_PAIRS
from sklearn_rankcal.targets._space import Space
from sklearn_rankcal.utils._numbers import LARGEST, read_array
from sklearn_rankcal.utils._typing import Floats, Ints


def _format_sizes(sizes: Ints) -> str:
    """The first few sizes, for an error message."""
    shown = ", ".join(map(str, sizes[:5]))
    return f"{shown}, ..." if len(sizes) > 5 else shown


class MatrixDecoder(BaseEstimator):
    """Base class of the decoders whose predictions are a matrix for each query.

    Its direct subclasses, one for each space, define `space`, `methods` and `_decode`; theirs
    define `method`.
    """

    space: Space
    method: str
    methods: Any  # the methods that the decoding function of this space knows
    _objective: Callable[[Floats], Objective]  # what it minimises, for a matrix

    def decode(
        self,
        u: Floats,
        queries: Queries,
        tie_breakers: TieBreakers | None = None,
        n_jobs: int | None = None,
        rules: Rules | None = None,
    ) -> DecodeResult:
        """Compute rankings from surrogate predictions.

        Parameters
        ----------
        u : ndarray of shape (n_entries,)
            The predictions of one query after the other: for `targets.PAIRS` the r (r - 1) / 2
            differences ``u_ij - u_ji`` for i < j, and for `targets.SYMMETRIC_PAIRS` the r (r + 1) /
            2 entries ``u_ij`` for i <= j, in the order of ``numpy.triu_indices``.
        queries : Queries
            The rows of each query.
        tie_breakers : callable, default=None
            ``tie_breakers(rows)`` returns a secondary sort key for each row. Where several rankings
            are equally good, the documents in ascending order of their keys decide, by default in
            the order of the rows.
        n_jobs : int, default=None
            Number of batches of queries that are decoded at the same time, through joblib.
        rules : Rules, default=None
            What the rankings have to keep.

        Returns
        -------
        result : DecodeResult
            `ranks` has shape (n_documents,), in the order of the rows. The other attributes have
            one entry for each query. For `targets.PAIRS`, the objective is the weight of the
            differences that the ranking contradicts.
        """
        options = check_options(
            self.method,
            self.methods,
            getattr(self, "n_perturbations", 0),
            getattr(self, "time_limit", None),
            getattr(self, "random_state", 0),
        )
        sizes, offsets = queries.sizes, queries.offsets
        n_entries = self.space.n_entries(sizes)
        starts = np.cumsum(n_entries) - n_entries
        values = read_array(u, "u")
        if values.shape != (n_entries.sum(),):
            raise ValueError(
                f"u must have shape ({n_entries.sum()},), one entry for each pair of documents, "
                f"for queries of {_format_sizes(sizes)} documents; it has shape {values.shape}."
            )
        if len(values):
            values = check_scores(values, None, "u")
            if not np.abs(values).max() <= LARGEST:
                raise ValueError(f"u has entries beyond {LARGEST:g}. Divide u by a common factor.")
        rows = np.arange(queries.n_rows) if queries.order is None else queries.order
        # With tie breakers, number[offset + k] is the row, within its query, of the document with
        # the k-th smallest key. The matrices are decoded with the documents in this order.
        number = None
        if tie_breakers is not None:
            owner = np.repeat(np.arange(queries.n_queries), sizes)
            number = np.lexsort((tie_breakers(rows), owner)) - offsets[owner]

        def make_batch(which: Ints, r: int) -> Floats:
            width = self.space.n_entries(r)
            flat = values[starts[which][:, None] + np.arange(width)]
            matrices = self._matrices(np.ascontiguousarray(flat, dtype=np.float64), r)
            if number is None:
                return matrices
            by_key = number[offsets[which][:, None] + np.arange(r)]
            return matrices[
                np.arange(len(which))[:, None, None], by_key[:, :, None], by_key[:, None, :]
            ]

        decoded = decode_batches(partial(self._decode, options=options), make_batch, sizes, n_jobs)
        broken = violation = None
        if rules is not None:
            if not hasattr(self, "_objective"):
                raise TypeError(f"{type(self).__name__} does not decode under rules.")
            own = list(rules_of_queries(rules, queries))
            if number is not None:
                parts = np.split(number, offsets[1:-1])
                own = [
                    one.with_blocked().permuted(part) for one, part in zip(own, parts, strict=True)
                ]
            else:
                own = [one.with_blocked() for one in own]
            kind, soft, ids = self._objective, rules.soft, queries.ids
            broken, violation = keep_rules(
                decoded, make_batch, kind, own, soft, self.method, options, ids
            )
        ranks = np.empty(queries.n_rows, dtype=np.int64)
        for which, part in decoded:
            places = offsets[which][:, None] + part.order
            if number is not None:
                places = offsets[which][:, None] + number[places]
            ranks[rows[places]] = part.positions
        result = collect_results(decoded, queries.n_queries, ranks)
        result.broken, result.violation = broken, violation
        return result

    def _matrices(self, flat: Floats, r: int) -> Floats:
        """Convert the predictions (m, n_entries) of queries of equal size to matrices (m, r, r)."""
        return self.space.matrices(flat, r)

    def _decode(self, matrices: Floats, options: SearchOptions) -> Decoded:
        """Decode a batch of matrices."""
        raise NotImplementedError


class PreferenceDecoder(MatrixDecoder):
    """Base class of the decoders of preferences: matrices of differences u_ij - u_ji."""

    space = PAIRS
    methods = _decode_preferences.METHODS
    _objective = Disagreement

    def _matrices(self, flat: Floats, r: int) -> Floats:
        return kernels.from_upper_triangle(flat, r)

    def _decode(self, matrices: Floats, options: SearchOptions) -> Decoded:
        order = getattr(self, "order", "ranked_pairs")
        _decode_preferences.check_order(order)
        unavoidable = np.zeros(len(matrices))  # not known, because only differences are given
        return _decode_preferences.decode_differences(
            matrices, unavoidable, self.method, order, options
        )


class GreedyDAG(PreferenceDecoder):
    """Delete the lightest preference until no cycle is left (Ramaswamy et al., 2013, Algorithm 1).

    This decoder is not exact. On cyclic preferences it can contradict more weight than necessary;
    `decode_preferences` shows an example.

    Parameters
    ----------
    order : {"ranked_pairs", "topological"}, default="ranked_pairs"
        Which topological order of the remaining preferences is returned; see `decode_preferences`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.queries import Queries
    >>> from sklearn_rankcal.decoders import GreedyDAG
    >>> d = np.array([1.0, -1.0, 2.0])  # d_01, d_02 and d_12: the cycle 0 -> 1 -> 2 -> 0
    >>> GreedyDAG().decode(d, Queries.single(3)).ranks.tolist()
    [3, 1, 2]
    """

    method = "greedy_dag"

    def __init__(self, *, order: str = "ranked_pairs") -> None:
        self.order = order


class LocalSearchPreferences(PreferenceDecoder):
    """Local search by insertion, from perturbed and combined orders, with a lower bound.

    This decoder is not exact. The `gap` of its result is the largest possible distance from the
    optimum.

    Parameters
    ----------
    n_perturbations : int, default=400
        Number of random steps. Each one perturbs an order or combines two, and a descent follows.
        More steps never end with a worse order, up to rounding.
    time_limit : float, default=None
        Seconds for each query. By default there is no limit.
    random_state : int, RandomState instance or None, default=0
        Determines the perturbations.
    """

    method = "local_search"

    def __init__(
        self,
        *,
        n_perturbations: int = _decode_preferences.N_PERTURBATIONS,
        time_limit: float | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.n_perturbations = n_perturbations
        self.time_limit = time_limit
        self.random_state = random_state


class ExactPreferences(LocalSearchPreferences):
    """Find the ranking that contradicts the least weight, and prove that no other is better.

    This is the minimum feedback arc set. If `time_limit` ends the search, the result is the best
    ranking found, with a lower bound.

    Parameters
    ----------
    n_perturbations : int, default=400
        Number of random steps in the local search that the exact search starts from.
    time_limit : float, default=None
        Seconds for each query. By default there is no limit, and a query in which more than 100
        documents form one strongly connected component raises an error.
    random_state : int, RandomState instance or None, default=0
        Determines the perturbations.
    """

    method = "exact"


class AutoPreferences(LocalSearchPreferences):
    """Choose the method by the cycles of the preferences.

    If there is no cycle, the ranking is a topological order, which is exact. If no strongly
    connected component has more than 16 documents, decoding is exact, too. Otherwise it is the
    local search of `LocalSearchPreferences`, which is not exact.

    Parameters
    ----------
    n_perturbations : int, default=400
        Number of random steps of the local search, where cycles connect more than 16 documents.
    time_limit : float, default=None
        Seconds for each query. By default there is no limit.
    random_state : int, RandomState instance or None, default=0
        Determines the perturbations.
    """

    method = "auto"


class Borda(PreferenceDecoder):
    """Sort by the row sums of the differences.

    This decoder is not exact, not even if the preferences have no cycle.
    """

    method = "borda"


class Copeland(PreferenceDecoder):
    """Sort by the number of preferences won minus the number lost.

    This decoder is exact if no pair is tied and the preferences have no cycle.
    """

    method = "copeland"


class InsertionSort(PreferenceDecoder):
    """Binary insertion sort that compares two documents at a time.

    This decoder is exact if no pair is tied and the preferences have no cycle.
    """

    method = "sort"


class _AveragePrecisionDecoder(MatrixDecoder):
    """Base class of the decoders of average precision: symmetric matrices."""

    space = SYMMETRIC_PAIRS
    methods = _decode_average_precision.METHODS
    _objective = AveragePrecision

    def _decode(self, matrices: Floats, options: SearchOptions) -> Decoded:
        return _decode_average_precision.decode_symmetric(matrices, self.method, options)


class ExactAveragePrecision(_AveragePrecisionDecoder):
    """Exact decoding by subset dynamic programming, for up to 24 documents in a query.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.queries import Queries
    >>> from sklearn_rankcal.decoders import ExactAveragePrecision
    >>> u = np.array([0.2, 0.1, 0.0, 0.5, 0.2, 0.3])  # u_00, u_01, u_02, u_11, u_12, u_22
    >>> ExactAveragePrecision().decode(u, Queries.single(3)).ranks.tolist()
    [3, 1, 2]
    """

    method = "exact"


class LocalSearchAveragePrecision(_AveragePrecisionDecoder):
    """Iterated local search by insertion from three starts, with a lower bound.

    This decoder is not exact. The `gap` of its result is the largest possible distance from the
    optimum.

    Parameters
    ----------
    n_perturbations : int, default=60
        Number of random perturbations of the best order, each followed by a local search.
    time_limit : float, default=None
        Seconds for each query. By default there is no limit.
    random_state : int, RandomState instance or None, default=0
        Determines the perturbations.
    """

    method = "local_search"

    # scikit-learn reads the defaults from the signature, so that another default needs another one
    def __init__(
        self,
        *,
        n_perturbations: int = _decode_average_precision.N_PERTURBATIONS,
        time_limit: float | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.n_perturbations = n_perturbations
        self.time_limit = time_limit
        self.random_state = random_state


class AutoAveragePrecision(LocalSearchAveragePrecision):
    """Exact decoding for up to 16 documents in a query, and local search for more documents.

    The local search is that of `LocalSearchAveragePrecision`, which is not exact.

    Parameters
    ----------
    n_perturbations : int, default=60
        Number of perturbations of the local search.
    time_limit : float, default=None
        Seconds for each query. By default there is no limit.
    random_state : int, RandomState instance or None, default=0
        Determines the perturbations.
    """

    method = "auto"


class DiagonalSort(_AveragePrecisionDecoder):
    """Sort by the diagonal u_ii (Ramaswamy et al., 2013, theorem 4).

    This decoder is exact if the labels satisfy the condition P_reinforce, but not in general;
    `decode_average_precision` shows an example.
    """

    method = "diagonal"
