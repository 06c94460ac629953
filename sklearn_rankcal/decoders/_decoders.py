"""The decoders of losses on pairs as classes, and the registry of all decoders by name.

The algorithms are in ``METHODS`` of `_decode_preferences` and `_decode_average_precision`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from sklearn_rankcal._kernels import kernels
from sklearn_rankcal.decoders import _decode_average_precision, _decode_preferences
from sklearn_rankcal.decoders._batches import (
    Decoded,
    DecodeResult,
    SearchOptions,
    check_options,
    collect_results,
    decode_batches,
)
from sklearn_rankcal.decoders._decode_scores import Sort, TieBreakers
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import PAIRS, SCORES, SYMMETRIC_PAIRS, Space, get_space
from sklearn_rankcal.utils._messages import check_choice, did_you_mean
from sklearn_rankcal.utils._numbers import LARGEST, Floats, Ints, read_numbers


class MatrixDecoder(BaseEstimator):
    """Base class of decoders whose predictions are one matrix per query.

    A subclass defines `space`, `_decode`, and `_methods` or `_options`.
    """

    space: Space
    method: str
    n_perturbations: int
    time_limit: float | None
    random_state: int | np.random.RandomState | None
    _methods: Iterable[str]
    #: Whether `decode` supports rules, and minimises the objective of its space under them.
    takes_rules = False

    def decode(
        self,
        u: Floats,
        queries: Queries,
        tie_breakers: TieBreakers | None = None,
        n_jobs: int | None = None,
        rules: Any = None,
    ) -> DecodeResult:
        """Compute rankings from surrogate predictions.

        Parameters
        ----------
        u : ndarray of shape (n_entries,)
            Predictions, query by query: for `targets.PAIRS` the r (r - 1) / 2 differences ``u_ij -
            u_ji`` for i < j, and for `targets.SYMMETRIC_PAIRS` the r (r + 1) / 2 entries ``u_ij``
            for i <= j, in the order of ``numpy.triu_indices``.
        queries : Queries
            The rows of each query.
        tie_breakers : callable, default=None
            ``tie_breakers(rows)`` returns a secondary sort key for each row. It decides between
            equally good rankings. None means the order of the rows.
        n_jobs : int, default=None
            Number of batches of queries to decode in parallel.
        rules : Rules, default=None
            Rules that the rankings keep (:ref:`rules`).

        Returns
        -------
        result : DecodeResult
            ``ranks`` has shape (n_documents,), in the order of the rows. Other attributes have one
            entry per query. For `targets.PAIRS`, the objective is the weight of the differences
            that the ranking contradicts.
        """
        options = self._options()
        sizes, offsets = queries.sizes, queries.offsets
        n_entries = self.space.n_entries(sizes)
        starts = np.cumsum(n_entries) - n_entries
        values = read_numbers(u, "u", keep_float32=True)
        if values.shape != (n_entries.sum(),):
            shown = ", ".join(map(str, sizes[:5])) + (", ..." if len(sizes) > 5 else "")
            raise ValueError(
                f"u must have shape ({n_entries.sum()},), one entry per pair of documents, "
                f"for queries of {shown} documents; it has shape {values.shape}."
            )
        if not np.abs(values).max(initial=0.0) <= LARGEST:  # true for NaN as well
            raise ValueError(
                f"u contains NaN, infinity or an entry beyond {LARGEST:g}. If it is too large, "
                "divide u by a common factor."
            )
        rows = np.arange(queries.n_rows) if queries.order is None else queries.order
        # With tie breakers, number[offset + k] is the row within the query of the document with the
        # k-th smallest key. The matrices have the documents in this order.
        owner, number = np.repeat(np.arange(queries.n_queries), sizes), None
        if tie_breakers is not None:
            number = np.lexsort((tie_breakers(rows), owner)) - offsets[owner]

        def make_batch(which: Ints, r: int) -> Floats:
            width = self.space.n_entries(r)
            flat = values[starts[which][:, None] + np.arange(width)]
            flat = np.ascontiguousarray(flat, dtype=np.float64)
            if self.space == PAIRS:  # the kernel is 15 times as fast
                matrices = kernels.from_upper_triangle(flat, r)
            else:
                matrices = self.space.matrices(flat, r)
            if number is None:
                return matrices
            by_key = number[offsets[which][:, None] + np.arange(r)]
            return matrices[
                np.arange(len(which))[:, None, None], by_key[:, :, None], by_key[:, None, :]
            ]

        decoded = decode_batches(partial(self._decode, options=options), make_batch, sizes, n_jobs)
        if rules is not None:
            if not self.takes_rules:
                raise TypeError(f"{type(self).__name__} does not support rules.")
            space, method = self.space, self.method
            rules.keep(decoded, make_batch, space, queries, method, options, number)
        result = collect_results(decoded, sizes)
        if number is not None:
            rows = rows[offsets[owner] + number]
        by_row = np.empty_like(result.ranks)
        by_row[rows] = result.ranks
        result.ranks = by_row
        return result

    def _options(self) -> SearchOptions:
        """Check the parameters, and return the options of the search."""
        return check_options(
            self.method,
            self._methods,
            self.n_perturbations,
            self.time_limit,
            self.random_state,
        )

    def _decode(self, matrices: Floats, options: SearchOptions) -> Decoded:
        """Decode a batch of matrices."""
        raise NotImplementedError


class PreferenceDecoder(MatrixDecoder):
    """Decoder for ``loss="pd"``: the ranking that contradicts the least weight of preferences.

    It is `decode_preferences` for rankers. Most methods are not exact; see there.

    Parameters
    ----------
    method : str, default="auto"
        A method of `decode_preferences`, such as ``"exact"`` or ``"greedy_dag"``.
    order : {"ranked_pairs", "topological"}, default="ranked_pairs"
        Topological order that ``"greedy_dag"`` returns.
    n_perturbations : int, default=400
        Number of random steps of the local search.
    time_limit : float, default=None
        Seconds per query, for ``"exact"`` and ``"local_search"``. None means no limit.
    random_state : int, RandomState instance or None, default=0
        Seed for the random steps.

    See Also
    --------
    decode_preferences : The same for matrices of preferences.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.queries import Queries
    >>> from sklearn_rankcal.decoders import PreferenceDecoder
    >>> d = np.array([1.0, -1.0, 2.0])  # d_01, d_02 and d_12: the cycle 0 -> 1 -> 2 -> 0
    >>> PreferenceDecoder("greedy_dag").decode(d, Queries.single(3)).ranks.tolist()
    [3, 1, 2]
    """

    space = PAIRS
    takes_rules = True
    _methods = _decode_preferences.METHODS

    def __init__(
        self,
        method: str = "auto",
        *,
        order: str = "ranked_pairs",
        n_perturbations: int = _decode_preferences.N_PERTURBATIONS,
        time_limit: float | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.method = method
        self.order = order
        self.n_perturbations = n_perturbations
        self.time_limit = time_limit
        self.random_state = random_state

    def _options(self) -> SearchOptions:
        check_choice(self.order, "order", _decode_preferences.ORDERS)
        return super()._options()

    def _decode(self, matrices: Floats, options: SearchOptions) -> Decoded:
        unavoidable = np.zeros(len(matrices))  # unknown, because u has only differences
        return _decode_preferences.decode_differences(
            matrices, unavoidable, self.method, self.order, options
        )


class AveragePrecisionDecoder(MatrixDecoder):
    """Decoder for ``loss="map"``: the ranking with the largest expected average precision.

    It is `decode_average_precision` for rankers. Not all methods are exact; see there.

    Parameters
    ----------
    method : str, default="auto"
        A method of `decode_average_precision`, such as ``"exact"`` or ``"diagonal"``.
    n_perturbations : int, default=60
        Number of random perturbations of the local search.
    time_limit : float, default=None
        Seconds per query, for ``"local_search"``. None means no limit.
    random_state : int, RandomState instance or None, default=0
        Seed for the perturbations.

    See Also
    --------
    decode_average_precision : The same for matrices.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.queries import Queries
    >>> from sklearn_rankcal.decoders import AveragePrecisionDecoder
    >>> u = np.array([0.2, 0.1, 0.0, 0.5, 0.2, 0.3])  # u_00, u_01, u_02, u_11, u_12, u_22
    >>> AveragePrecisionDecoder("exact").decode(u, Queries.single(3)).ranks.tolist()
    [3, 1, 2]
    """

    space = SYMMETRIC_PAIRS
    takes_rules = True
    _methods = _decode_average_precision.METHODS

    def __init__(
        self,
        method: str = "auto",
        *,
        n_perturbations: int = _decode_average_precision.N_PERTURBATIONS,
        time_limit: float | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.method = method
        self.n_perturbations = n_perturbations
        self.time_limit = time_limit
        self.random_state = random_state

    def _decode(self, matrices: Floats, options: SearchOptions) -> Decoded:
        return _decode_average_precision.decode_symmetric(matrices, self.method, options)


#: Functions that create a decoder, by space of the predictions and name. Methods for pairs come
#: from METHODS of _decode_preferences.py and _decode_average_precision.py: add new methods there.
DECODERS: dict[tuple[str, str], Callable[..., BaseEstimator]] = {(SCORES, "sort"): Sort} | {
    (kind.space, method): partial(kind, method)
    for kind in (PreferenceDecoder, AveragePrecisionDecoder)
    for method in kind._methods
}


def sorts_scores(decoder: object) -> bool:
    """Whether a decoder is known to sort if predictions are scores or differences of scores.

    False for subclasses, which may override any step.
    """
    return type(decoder) in (Sort, PreferenceDecoder)


def get_decoder(decoder: str | BaseEstimator, space: str) -> BaseEstimator:
    """Get a decoder by name, or check a decoder object.

    Parameters
    ----------
    decoder : str or object with a ``decode`` method
        ``"auto"`` is the default decoder of the space.
    space : str
        Space of the predictions of the loss, such as ``"pairs"``.

    Returns
    -------
    decoder : estimator
        A new decoder, or the object that was passed.

    Raises
    ------
    ValueError
        If the name, the space or a parameter is unknown, or if the decoder is for another space.
    TypeError
        If `decoder` is neither a string nor an object with a ``decode`` method.

    Examples
    --------
    >>> from sklearn_rankcal.decoders import get_decoder
    >>> get_decoder("greedy_dag", "pairs")
    PreferenceDecoder(method='greedy_dag')
    """
    known_space = space if isinstance(space, Space) else get_space(space)
    if isinstance(decoder, str):
        name = known_space.default_decoder if decoder == "auto" else decoder
        if (space, name) not in DECODERS:
            fitting = sorted({"auto", *(known for kind, known in DECODERS if kind == space)})
            raise ValueError(
                f"Unknown decoder {decoder!r} for a loss on {space}."
                f"{did_you_mean(decoder, fitting)} Known: {', '.join(fitting)}."
            )
        return DECODERS[space, name]()
    if not hasattr(decoder, "decode"):
        raise TypeError(f"decoder must be a name or have a decode method; got {decoder!r}.")
    if getattr(decoder, "space", space) != space:
        raise ValueError(
            f"{type(decoder).__name__} decodes {decoder.space}, but the loss predicts {space}."
        )
    if isinstance(decoder, MatrixDecoder):
        # raise for bad parameters before a long fit, without drawing a seed
        clone(decoder).set_params(random_state=0)._options()
    return decoder
