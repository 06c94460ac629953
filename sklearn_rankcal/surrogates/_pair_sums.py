"""Sums over pairs of documents: the compiled kernel where it was built, or its twin in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from sklearn_rankcal._kernels import kernels
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.surrogates import _numpy_pair_sums
from sklearn_rankcal.surrogates._margins import Margin

Floats = NDArray[np.float64]
#: With fewer pairs, starting threads takes longer than adding the pairs.
_PAIRS_PER_THREAD = 1 << 20

#: Scores that differ by less have margins whose exponentials are finite.
_WIDEST = 600.0

#: Functions of a difference of utilities, by name.
FUNCTIONS: dict[str, Callable[[Floats], Floats]] = {
    "binary": np.ones_like,
    "difference": np.positive,
}
_CODES: dict[Any, int] = {"binary": 1, "difference": 2}  # what the kernel calls them


def pair_sums(
    v: Floats,
    s: Floats,
    queries: Queries,
    margin: Margin,
    *,
    weight: str | Callable[[Floats], Floats] | None = None,
    required: str | Callable[[Floats], Floats] | None = None,
    n_jobs: int | None = None,
) -> tuple[Floats, Floats, Floats]:
    """Compute sum_ij w_ij phi(s_i - s_j - h_ij) of each query, with its derivatives.

    Parameters
    ----------
    v, s : ndarray of shape (n_rows,)
        Utilities and scores. The rows of each query are contiguous.
    queries : Queries
    margin : Margin
        The function phi.
    weight : {"binary", "difference"}, callable or None
        The weight w_ij of the pairs with v_i > v_j: 1, v_i - v_j, or ``weight(v_i - v_j)``. Other
        pairs have weight 0. None means w_ij = v_i for all i and j with i != j.
    required : {"binary", "difference"}, callable or None
        The margin h_ij that these pairs should have, in the same form. None means 0.
    n_jobs : int or None
        The number of threads.

    Returns
    -------
    value : ndarray of shape (n_queries,)
    gradient, curvature : ndarray of shape (n_rows,)

    Notes
    -----
    The time is O(r^2) for a query of r documents. The compiled kernel needs O(r) memory, and its
    logistic margins one exponential for each document.
    """
    by_name = not callable(weight) and not callable(required)
    overflows = margin.name == "exponential" and _overflows(v, s, queries, required)
    if kernels.pair_sums is None or not by_name or overflows:
        functions = (_function(weight), _function(required))
        return _numpy_pair_sums.pair_sums(v, s, queries, margin, *functions)
    codes = 0 if weight is None else _CODES[weight], -1 if required is None else _CODES[required]
    v, s = np.ascontiguousarray(v), np.ascontiguousarray(s)
    value, gradient, curvature = np.empty(queries.n_queries), np.empty_like(s), np.empty_like(s)
    n_pairs = np.cumsum(queries.sizes**2)
    n_threads = int(min(effective_n_jobs(n_jobs), 1 + n_pairs[-1] // _PAIRS_PER_THREAD))
    edges = np.searchsorted(n_pairs, n_pairs[-1] * np.arange(1, n_threads) / n_threads)
    edges = np.unique(np.concatenate([[0], edges, [queries.n_queries]]))

    def add(first: int, last: int) -> None:
        kernels.pair_sums(
            v, s, queries.offsets, first, last, margin.code, *codes, value, gradient, curvature
        )

    parts = zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    if len(edges) == 2:
        add(0, queries.n_queries)
    else:
        Parallel(n_jobs=n_threads, prefer="threads")(delayed(add)(*part) for part in parts)
    return value, gradient, curvature


def _overflows(v: Floats, s: Floats, queries: Queries, required: Any) -> bool:
    """Whether exponentials of margins can be infinite, so that their difference could be NaN."""
    widest = float(np.max(queries.max(s) - queries.min(s)))
    if required == "difference":
        widest += float(np.max(queries.max(v) - queries.min(v)))
    return widest > _WIDEST


def _function(given: str | Callable[[Floats], Floats] | None) -> Callable[[Floats], Floats] | None:
    return FUNCTIONS[given] if isinstance(given, str) else given
