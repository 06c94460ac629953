"""Decoders as objects, for ``decoder=`` of a ranker: flat surrogate predictions in, ranks out."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from sklearn_rankcal.decoders import _average_precision, _preferences
from sklearn_rankcal.decoders._backend import kernels
from sklearn_rankcal.decoders._batches import LARGEST_ENTRY, account, run
from sklearn_rankcal.decoders._result import Decoded, DecodeResult
from sklearn_rankcal.decoders._search import SearchOptions, check_options
from sklearn_rankcal.decoders._sort import TieBreakers, check_scores
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import PAIRS, SYMMETRIC_PAIRS, PairSpace
from sklearn_rankcal.utils._numbers import read_array

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def _listed(sizes: Ints) -> str:
    shown = ", ".join(map(str, sizes[:5]))
    return f"{shown}, ..." if len(sizes) > 5 else shown


class _MatrixDecoder(BaseEstimator):
    """What the decoders of matrices share: flat vectors to stacks, and `decode`."""

    space: PairSpace
    method: str
    methods: Any

    def decode(
        self,
        u: NDArray[np.float64],
        queries: Queries,
        tie_breakers: TieBreakers | None = None,
        n_jobs: int | None = None,
    ) -> DecodeResult:
        """Rankings from surrogate predictions.

        Parameters
        ----------
        u : ndarray of shape (n_entries,)
            Query after query. For the space `targets.PAIRS` the r (r - 1) / 2 differences
            ``u_ij - u_ji`` of a query, i < j, in the order of ``numpy.triu_indices(r, 1)``; for
            `targets.SYMMETRIC_PAIRS` the r (r + 1) / 2 entries ``u_ij``, i <= j, in the order of
            ``numpy.triu_indices(r)``.
        queries : Queries
            Which rows belong together.
        tie_breakers : callable, default=None
            ``tie_breakers(rows)`` gives a key of each row. Documents are then taken in ascending
            order of their keys wherever the order of the documents counts. None: in row order.
        n_jobs : int, default=None
            Queries decoded at the same time, through joblib.

        Returns
        -------
        result : DecodeResult
            `ranks` (n_documents,) in row order, the rest per query. For `targets.PAIRS` the objective
            is the weight of the differences that the ranking contradicts.
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
                f"u must have shape ({n_entries.sum()},), one entry a pair of documents, for "
                f"queries of {_listed(sizes)} documents; it has shape {values.shape}."
            )
        if len(values):
            values = check_scores(values, None, "u")
            if not np.abs(values).max() < LARGEST_ENTRY:
                raise ValueError(f"u has entries beyond {LARGEST_ENTRY:.0e}: sums would overflow.")
        rows = np.arange(queries.n_rows) if queries.order is None else queries.order
        number = None  # of the document at each place, when keys order them
        if tie_breakers is not None:
            owner = np.repeat(np.arange(queries.n_queries), sizes)
            number = np.lexsort((tie_breakers(rows), owner)) - offsets[owner]

        def stack(which: Ints, r: int) -> Floats:
            width = self.space.n_entries(r)
            flat = values[starts[which][:, None] + np.arange(width)]
            matrices = self._matrices(np.ascontiguousarray(flat, dtype=np.float64), r)
            if number is None:
                return matrices
            listed = number[offsets[which][:, None] + np.arange(r)]
            return matrices[
                np.arange(len(which))[:, None, None], listed[:, :, None], listed[:, None, :]
            ]

        decoded = run(partial(self._decode, options=options), stack, sizes, n_jobs)
        ranks = np.empty(queries.n_rows, dtype=np.int64)
        for which, part in decoded:
            places = offsets[which][:, None] + part.order
            if number is not None:
                places = offsets[which][:, None] + number[places]
            ranks[rows[places]] = np.arange(1, part.order.shape[1] + 1)
        return account(decoded, queries.n_queries, ranks)

    def _matrices(self, flat: Floats, r: int) -> Floats:
        return self.space.matrices(flat, r)

    def _decode(self, matrices: Floats, options: SearchOptions) -> Decoded:
        raise NotImplementedError


class _PreferenceDecoder(_MatrixDecoder):
    space = PAIRS
    methods = _preferences.METHODS

    def _matrices(self, flat: Floats, r: int) -> Floats:
        return kernels.antisymmetric(flat, r)

    def _decode(self, matrices: Floats, options: SearchOptions) -> Decoded:
        order = getattr(self, "order", "ranked_pairs")
        _preferences.check_order(order)
        floor = np.zeros(len(matrices))
        return _preferences.decode_differences(matrices, floor, self.method, order, options)


class GreedyDAG(_PreferenceDecoder):
    """Algorithm 1 of P1: delete the lightest preference until no cycle is left.

    Not exact: on cyclic preferences it can lose more than it must (`decode_preferences`).

    Parameters
    ----------
    order : {"ranked_pairs", "topological"}, default="ranked_pairs"
        Which topological order of what is left.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.queries import Queries
    >>> from sklearn_rankcal.decoders import GreedyDAG
    >>> d = np.array([1.0, -1.0, 2.0])  # 0 beats 1, 2 beats 0, 1 beats 2 by more
    >>> GreedyDAG().decode(d, Queries.single(3)).ranks.tolist()
    [3, 1, 2]
    """

    method = "greedy_dag"

    def __init__(self, order: str = "ranked_pairs") -> None:
        self.order = order


class ExactPreferences(_PreferenceDecoder):
    """The minimum feedback arc set, proved; or a bound, where `time_limit` ends the search.

    Parameters
    ----------
    time_limit : float, default=None
        Seconds for each query. None: no limit, and an error beyond 100 documents in one cycle.
    n_perturbations : int, default=300
        Kicks of the local search that it starts from.
    random_state : int, RandomState instance or None, default=0
        Seeds the kicks.
    """

    method = "exact"

    def __init__(
        self,
        time_limit: float | None = None,
        n_perturbations: int = _preferences.N_PERTURBATIONS,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.time_limit = time_limit
        self.n_perturbations = n_perturbations
        self.random_state = random_state


class LocalSearchPreferences(_PreferenceDecoder):
    """Insertion local search, iterated, with a lower bound. Not exact.

    Parameters
    ----------
    n_perturbations : int, default=300
        Local searches after the first ones.
    time_limit : float, default=None
        Seconds for each query.
    random_state : int, RandomState instance or None, default=0
        Seeds the kicks.
    """

    method = "local_search"

    def __init__(
        self,
        n_perturbations: int = _preferences.N_PERTURBATIONS,
        time_limit: float | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.n_perturbations = n_perturbations
        self.time_limit = time_limit
        self.random_state = random_state


class AutoPreferences(LocalSearchPreferences):
    """A topological sort where that is enough; else exact while cheap; else local search.

    Parameters
    ----------
    n_perturbations : int, default=300
        Local searches after the first ones, where components of more than 16 documents need them.
    time_limit : float, default=None
        Seconds for each query.
    random_state : int, RandomState instance or None, default=0
        Seeds the kicks.
    """

    method = "auto"


class Borda(_PreferenceDecoder):
    """Sort by the row sums of the differences. Not exact, not even on acyclic preferences."""

    method = "borda"


class Copeland(_PreferenceDecoder):
    """Sort by preferences won minus lost. Exact where no pair is tied and nothing is cyclic."""

    method = "copeland"


class InsertionSort(_PreferenceDecoder):
    """Binary insertion sort by comparisons. Exact where no pair is tied and nothing is cyclic."""

    method = "sort"


class _AveragePrecisionDecoder(_MatrixDecoder):
    space = SYMMETRIC_PAIRS
    methods = _average_precision.METHODS

    def _decode(self, matrices: Floats, options: SearchOptions) -> Decoded:
        return _average_precision.decode_symmetric(matrices, self.method, options)


class ExactAveragePrecision(_AveragePrecisionDecoder):
    """Subset dynamic programming, up to 24 documents a query.

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
    """Insertion local search from three starts, iterated. Not exact.

    Parameters
    ----------
    n_perturbations : int, default=60
        Local searches after the first ones.
    time_limit : float, default=None
        Seconds for each query.
    random_state : int, RandomState instance or None, default=0
        Seeds the kicks.
    """

    method = "local_search"

    def __init__(
        self,
        n_perturbations: int = _average_precision.N_PERTURBATIONS,
        time_limit: float | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.n_perturbations = n_perturbations
        self.time_limit = time_limit
        self.random_state = random_state


class AutoAveragePrecision(LocalSearchAveragePrecision):
    """Exact up to 16 documents, local search beyond.

    Parameters
    ----------
    n_perturbations : int, default=60
        Local searches after the first ones, beyond 16 documents.
    time_limit : float, default=None
        Seconds for each query.
    random_state : int, RandomState instance or None, default=0
        Seeds the kicks.
    """

    method = "auto"


class DiagonalSort(_AveragePrecisionDecoder):
    """Sort by u_ii (P1, theorem 4): exact under P_reinforce, not in general."""

    method = "diagonal"


PREFERENCE_DECODERS: list[type[_PreferenceDecoder]] = [
    AutoPreferences,
    GreedyDAG,
    ExactPreferences,
    LocalSearchPreferences,
    Borda,
    Copeland,
    InsertionSort,
]
AVERAGE_PRECISION_DECODERS: list[type[_AveragePrecisionDecoder]] = [
    AutoAveragePrecision,
    ExactAveragePrecision,
    LocalSearchAveragePrecision,
    DiagonalSort,
]
