"""Conditions of theorems on a distribution, and the bounds on regrets that theorems give.

Numbers are equal if they differ by at most a slack: `tol` times the size of the terms that were
added. For a matrix, the terms are unknown, and the size is its largest absolute entry.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components

from sklearn_rankcal.consistency._distributions import (
    Distribution,
    LabelDistribution,
    check_numbers,
    targets_and_sizes,
)
from sklearn_rankcal.losses import MAP, PD, Loss, PDByScores, PositionalLoss, get_loss
from sklearn_rankcal.losses._average_precision import reinforce_violations
from sklearn_rankcal.losses._pairs import score_violations
from sklearn_rankcal.surrogates import Surrogate, get_surrogate
from sklearn_rankcal.utils._messages import check_number
from sklearn_rankcal.utils._numbers import (
    Bools,
    Floats,
    Ints,
    check_range,
    read_numbers,
    read_whole,
)

TOL = 1e-9
#: The expected targets themselves, or a distribution.
Expected = Distribution | ArrayLike


@dataclass(frozen=True)
class Condition:
    """The result of checking a condition. As a ``bool``, it is true if the condition holds.

    Attributes
    ----------
    name : str
        The name of the condition.
    violations : tuple of tuples of int
        Documents, numbered from 0, that violate the condition. The function that checks the
        condition documents their meaning.
    meaning : str
        What a violation means, for ``repr``.
    """

    name: str
    violations: tuple[tuple[int, ...], ...]
    meaning: str

    def __bool__(self) -> bool:
        return not self.violations

    def __repr__(self) -> str:
        if self:
            return f"{self.name} holds"
        shown = ", ".join(map(str, self.violations[:6]))
        more = len(self.violations) - 6
        return f"{self.name} fails: {self.meaning} {shown}" + (f" and {more} more" * (more > 0))


def _violations(where: Bools) -> tuple[tuple[int, ...], ...]:
    return tuple(map(tuple, np.argwhere(where).tolist()))


def _is_distribution(u: Any) -> bool:
    return isinstance(u, LabelDistribution) or (
        isinstance(u, tuple) and len(u) == 2 and np.ndim(u[0]) >= 2
    )


def _expected(u: Any, loss: Loss, tol: float) -> tuple[Floats, Floats]:
    """Return the matrix of expected targets and the slack of each entry."""
    check_number(tol, "tol", "[0, inf)")
    if _is_distribution(u):
        matrix, sizes = targets_and_sizes(u, loss)
        return matrix, tol * sizes
    matrix = check_numbers(u, "u")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
        raise ValueError(
            "u must be a square matrix, with a row and a column for each document, or a "
            f"distribution (labels, probabilities); it has shape {matrix.shape}."
        )
    check_range(matrix, "u")
    return matrix, np.full(matrix.shape, tol * np.abs(matrix).max())


def satisfies_reinforce(u: Expected, *, tol: float = TOL) -> Condition:
    """Check P_reinforce, under which sorting by the diagonal is optimal for average precision.

    Let u_ij = E[Y_i Y_j / sum(Y)]. The condition is that for all i and j, u_ii >= u_jj implies
    u_ii >= u_jj + sum over g not in {i, j} of (u_jg - u_ig)_+. If it holds, ``loss="map",
    decoder="diagonal"`` and ``loss="map_by_scores"`` are calibrated (Ramaswamy et al., 2013,
    theorem 4 and corollary 5).

    Parameters
    ----------
    u : LabelDistribution, tuple (labels, probabilities) or array-like of shape (r, r)
        A distribution of binary labels, or the symmetric matrix u itself, such as
        ``expected_targets(distribution, MAP(threshold=2))`` or a prediction.
    tol : float, default=1e-9
        Differences up to `tol` times the size of their terms are treated as 0. For a distribution,
        the size of a term is its expected absolute value. For a matrix, it is the largest absolute
        entry.

    Returns
    -------
    condition : Condition
        The violations are pairs (i, j). Document i is sorted before j or ties with it, although j
        is relevant together with other documents more often than i is.

    Examples
    --------
    >>> from sklearn_rankcal.consistency import satisfies_reinforce
    >>> satisfies_reinforce(([[0, 0, 1, 0], [1, 1, 0, 1]], [0.3, 0.7]))
    P_reinforce fails: pairs (i, j) with i first, although j shares more: (2, 0), (2, 1), (2, 3)

    The condition still holds with equality:

    >>> satisfies_reinforce(([[0, 0, 1, 0], [1, 1, 0, 1]], [0.5, 0.5]))
    P_reinforce holds
    """
    u, slack = _expected(u, MAP(), tol)
    if (np.abs(u - u.T) > slack).any():
        raise ValueError(f"u must be symmetric; it differs by up to {np.abs(u - u.T).max():g}.")
    # The lead u_ii - u_jj has two terms. The second inequality adds the terms of the sum, which are
    # entries of rows i and j.
    lead_slack = np.add.outer(np.diagonal(slack), np.diagonal(slack))
    total_slack = np.add.outer(slack.sum(axis=1), slack.sum(axis=1))
    return Condition(
        "P_reinforce",
        _violations(reinforce_violations(u[None], lead_slack, total_slack)[0]),
        "pairs (i, j) with i first, although j shares more:",
    )


def _differences(u: Any, tol: float, loss: Loss | None = None) -> tuple[Floats, Floats]:
    """Return the matrix of differences E[Y_ij] - E[Y_ji] and the slack of its entries."""
    matrix, slack = _expected(u, PD() if loss is None else loss, tol)
    if _is_distribution(u):  # `expected_targets` are differences; the slack covers both terms
        return matrix, slack
    return matrix - matrix.T, slack


def satisfies_dag(u: Expected, *, tol: float = TOL) -> Condition:
    """Check P_DAG: the expected preferences are acyclic.

    The condition is that the graph with an edge (i, j) for each pair with E[Y_ij] > E[Y_ji] has
    no cycle. If it holds, ``loss="pd"`` with ``decoder="greedy_dag"`` is calibrated (Ramaswamy et
    al., 2013, theorem 7).

    Parameters
    ----------
    u : LabelDistribution, tuple (labels, probabilities) or array-like of shape (r, r)
        A distribution of preference weights or relevance grades, or a matrix. Only the differences
        u_ij - u_ji matter. With relevance grades y, i is preferred to j with weight 1 if y_i > y_j.
        For other weights, pass ``expected_targets(distribution, loss)`` with a `PD` loss.
    tol : float, default=1e-9
        As in `satisfies_reinforce`.

    Returns
    -------
    condition : Condition
        Each violation is a set of documents connected by cycles.

    Examples
    --------
    >>> from sklearn_rankcal.consistency import satisfies_dag
    >>> satisfies_dag([[0, 7, 4, 9], [3, 0, 8, 9], [6, 2, 0, 9], [1, 1, 1, 0]])
    P_DAG fails: cycles connect (0, 1, 2)
    """
    d, slack = _differences(u, tol)
    # Cycles connect the documents of each strongly connected component with two or more documents.
    n_parts, part = connected_components(d > slack, connection="strong")
    cyclic = [c for c in range(n_parts) if (part == c).sum() > 1]
    members = sorted(tuple(np.flatnonzero(part == c).tolist()) for c in cyclic)
    return Condition("P_DAG", tuple(members), "cycles connect")


def satisfies_score_condition(
    u: Expected,
    f: str | Callable[[Floats], Floats] | PDByScores | ArrayLike = "borda",
    *,
    tol: float = TOL,
) -> Condition:
    """Check P_f: the expected scores agree with every expected preference.

    The condition is that for all i and j, E[Y_ij] > E[Y_ji] implies E[f_i(Y)] > E[f_j(Y)]. If it
    holds, ``loss="pd_by_scores"`` with the scores f is calibrated (Ramaswamy et al., 2013, theorem
    6). For any f, P_f implies P_DAG.

    Parameters
    ----------
    u : LabelDistribution, tuple (labels, probabilities) or array-like of shape (r, r)
        As in `satisfies_dag`.
    f : str, callable, PDByScores or array-like of shape (r,), default="borda"
        The scores: a name or a function, as in `PDByScores`; or a `PDByScores` loss, which also
        determines the preferences; or, if u is a matrix, the expected scores E[f(Y)].
    tol : float, default=1e-9
        As in `satisfies_reinforce`. Also applies to the scores.

    Returns
    -------
    condition : Condition
        The violations are pairs (i, j). Document i is preferred to j, but its expected score is not
        larger.

    Examples
    --------
    >>> from sklearn_rankcal.consistency import satisfies_score_condition
    >>> satisfies_score_condition([[0, 3, 2], [1, 0, 4], [2, 0, 0]], f=[1.0, 1.0, 0.5])
    P_f fails: pairs (i, j) preferred but not scored higher: (0, 1)
    """
    score_slack: Floats | float
    if isinstance(f, str) or callable(f) or isinstance(f, PDByScores):
        loss = f if isinstance(f, PDByScores) else PDByScores(score_function=f)
        if not _is_distribution(u):
            raise ValueError(
                "E[f(Y)] cannot be computed from a matrix of expected preferences. Pass the "
                "distribution as u, or the expected scores themselves as f."
            )
        pairs = PD(loss.pair_weight, equal_queries=loss.equal_queries)
        d, slack = _differences(u, tol, pairs)
        scores, sizes = targets_and_sizes(u, loss)  # type: ignore[arg-type]
        score_slack = tol * (sizes[:, None] + sizes)
    else:
        scores = check_numbers(f, "f")
        d, slack = _differences(u, tol)
        score_slack = tol * float(np.abs(scores).max(initial=0.0))
    if scores.shape != (len(d),):
        raise ValueError(f"f must be {len(d)} expected scores; it has shape {scores.shape}.")
    return Condition(
        "P_f",
        _violations(score_violations(d[None], scores[None], slack, score_slack)[0]),
        "pairs (i, j) preferred but not scored higher:",
    )


def is_low_noise(u: Expected, *, tol: float = TOL) -> Condition:
    """Check low noise: expected preferences reinforce each other along paths.

    Let w_ij = E[Y_ij] - E[Y_ji]. The condition is that for all documents i, j and k with w_ij > 0
    and w_jk > 0, w_ik >= w_ij + w_jk (Duchi et al., 2013, definition 4). Low noise implies P_f for
    the net Borda score. It does not make margin surrogates consistent (their theorem 3).

    Parameters
    ----------
    u : LabelDistribution, tuple (labels, probabilities) or array-like of shape (r, r)
        As in `satisfies_dag`.
    tol : float, default=1e-9
        As in `satisfies_reinforce`.

    Returns
    -------
    condition : Condition
        The violations are paths (i, j, k) with w_ik < w_ij + w_jk.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.consistency import is_low_noise
    >>> labels = np.zeros((4, 3, 3))
    >>> labels[range(4), [0, 1, 0, 2], [1, 2, 2, 0]] = 1
    >>> is_low_noise((labels, [0.25, 0.01, 0.5, 0.24]))  # with equality: .26 = .25 + .01
    Low noise holds
    >>> is_low_noise((labels, [0.25, 0.02, 0.49, 0.24]))
    Low noise fails: paths heavier than their shortcut: (0, 1, 2)
    """
    d, slack = _differences(u, tol)
    edge = d > slack
    path = d[:, :, None] + d  # [i, j, k] = w_ij + w_jk
    path_slack = slack[:, :, None] + slack + slack[:, None, :]
    lighter = d[:, None, :] < path - path_slack
    return Condition(
        "Low noise",
        _violations(edge[:, :, None] & edge & lighter),
        "paths heavier than their shortcut:",
    )


def regret_bound(
    loss: str | Loss,
    surrogate_regret: ArrayLike,
    n_documents: ArrayLike,
    gap: ArrayLike = 0.0,
    *,
    surrogate: str | Surrogate | None = None,
    largest: ArrayLike | None = None,
    total: ArrayLike | None = None,
    best_value: ArrayLike | None = None,
) -> Any:
    """Bound the regret of a ranking by the surrogate regret of predictions or scores.

    There are two cases; see :doc:`/surrogate_theory`:

    - Without `surrogate`, the ranking is decoded from predictions u. The bound is
      c ||u - u*|| + gap, where u* are the expected targets and c is `Loss.regret_constant`
      (theorem 3 of Ramaswamy et al., 2013).
    - With `surrogate`, the ranking sorts scores. The bound is c C_phi(2) sqrt(surrogate regret),
      where c is `Surrogate.constant` and C_phi is `PositionalLoss.discount_constant` (table 2 of
      Calauzènes et al., 2013).

    Parameters
    ----------
    loss : str or Loss
        A loss that is calibrated for every distribution; with `surrogate`, a positional loss.
    surrogate_regret : float or array-like of shape (n_queries,)
        Without `surrogate`, the squared distance ||u - u*||^2 of a query: a sum over documents, or
        over pairs i < j for ``"pd"``, or over i <= j for ``"map"``. With `surrogate`, the output
        of the function `surrogate_regret`.
    n_documents : int or array-like of shape (n_queries,)
        Number of documents of the query.
    gap : float or array-like of shape (n_queries,), default=0
        Upper bound on the decoder's objective minus its minimum, such as `DecodeResult.gap`.
    surrogate : str or Surrogate, default=None
        An order-preserving surrogate that has a constant.
    largest, total : float or array-like of shape (n_queries,), default=None
        Upper bounds on the expected utility of a document, and on the sum over documents. Some
        constants depend on them. If total is None, it is `n_documents` times `largest`.
    best_value : float or array-like of shape (n_queries,), default=None
        Largest expected value of the measure over all rankings. It can replace `largest` and
        `total` (Calauzènes et al., corollary A.2).

    Returns
    -------
    bound : float or ndarray of shape (n_queries,)
        Upper bound on `ranking_regret`, for every order of tied documents.

    Examples
    --------
    >>> from sklearn_rankcal.consistency import regret_bound
    >>> regret_bound("pd", [0.01, 0.04], [3, 9], gap=[0, 0.5]).round(3).tolist()
    [0.173, 1.7]

    A bound on the loss of NDCG by scores, if the best expected NDCG is 0.9:

    >>> round(regret_bound("ndcg", 0.001, 5, surrogate="pairwise_logistic", best_value=0.9), 4)
    0.0387
    """
    loss = get_loss(loss)
    given, sizes = _read(
        n_documents,
        surrogate_regret=surrogate_regret,
        gap=gap,
        largest=largest,
        total=total,
        best_value=best_value,
    )
    if surrogate is not None:
        if given["gap"].any():
            raise ValueError(
                "gap is only for predictions that a decoder decodes. With a surrogate, the ranking "
                "sorts scores exactly; leave gap at 0."
            )
        constant = _surrogate_constants(loss, get_surrogate(surrogate), sizes, given)
        return _number_or_array(constant * np.sqrt(given["surrogate_regret"]))
    for name in ("largest", "total", "best_value"):
        if name in given:
            raise ValueError(f"{name} is only used together with a surrogate.")
    constant = _of_sizes(loss.regret_constant, sizes)
    if np.isnan(constant).any():
        raise ValueError(
            f"{type(loss).__name__} has no regret bound, because it is not calibrated for every "
            f"distribution, but over {loss.calibrated_over}."
        )
    return _number_or_array(constant * np.sqrt(given["surrogate_regret"]) + given["gap"])


def bregman_regret_bound(
    loss: str | Loss,
    surrogate_regret: ArrayLike,
    n_documents: ArrayLike,
    strong_convexity: ArrayLike,
    *,
    dual_norm: float = 2.0,
) -> Any:
    """Bound the regret of scores by a Bregman divergence that is strongly convex in some norm.

    The surrogate is B_psi(v || g(s)), where g preserves the order of scores, and psi satisfies
    B_psi(v || x) >= (mu / 2) ||v - x||^2. The bound is D sqrt(2 / mu) sqrt(surrogate regret), where
    D is the dual norm of the difference between the discounts and the reversed discounts. This is
    theorem 10 of Ravikumar et al. (2011) with a constant that is never larger; see
    :doc:`/surrogate_theory`.

    Parameters
    ----------
    loss : str or Loss
        A positional loss, such as ``"ndcg@10"``.
    surrogate_regret, n_documents : float or array-like of shape (n_queries,)
        As in `regret_bound` with a surrogate.
    strong_convexity : float or array-like of shape (n_queries,)
        The positive number mu.
    dual_norm : float, default=2
        A number p >= 1, or ``np.inf``. The p-norm is the dual of the q-norm with 1/p + 1/q = 1.

    Returns
    -------
    bound : float or ndarray of shape (n_queries,)
        Upper bound on `ranking_regret`.

    Examples
    --------
    Softmax cross-entropy is strongly convex in the 1-norm with mu = 1 / total,
    where total is the sum of the expected utilities:

    >>> import numpy as np
    >>> from sklearn_rankcal.consistency import bregman_regret_bound, regret_bound
    >>> round(bregman_regret_bound("ndcg", 0.01, 10, 1 / 1.5, dual_norm=np.inf), 4)
    0.1231
    >>> round(regret_bound("ndcg", 0.01, 10, surrogate="softmax", total=1.5), 4)
    0.1406
    """
    loss = _positional(get_loss(loss))
    given, sizes = _read(
        n_documents, surrogate_regret=surrogate_regret, strong_convexity=strong_convexity
    )
    mu = given["strong_convexity"]
    if not (mu > 0).all():
        raise ValueError(f"strong_convexity must be positive; got {strong_convexity!r}.")
    if isinstance(dual_norm, bool) or not isinstance(dual_norm, Real) or not float(dual_norm) >= 1:
        raise ValueError(f"dual_norm must be a number >= 1, or infinite; got {dual_norm!r}.")
    p = float(dual_norm)
    constant = _of_sizes(lambda r: 2 ** (1 / p) * loss.discount_constant(r, p), sizes)
    return _number_or_array(constant * np.sqrt(2 * given["surrogate_regret"] / mu))


#: Numbers that may be None.
_OPTIONAL = ("largest", "total", "best_value")


def _read(n_documents: ArrayLike, **numbers: Any) -> tuple[dict[str, Floats], Ints]:
    """Read sizes, and numbers that must be finite and >= 0. Leave out numbers that are None."""
    sizes = read_whole(n_documents, "n_documents")
    if sizes.size == 0 or sizes.min() < 1:
        raise ValueError(f"n_documents must be whole numbers >= 1; got {n_documents!r}.")
    given = {}
    for name, values in numbers.items():
        if values is None and name in _OPTIONAL:
            continue
        given[name] = read_numbers(values, name)
        if not ((given[name] >= 0) & np.isfinite(given[name])).all():
            raise ValueError(f"{name} must be finite and >= 0; got {values!r}.")
    try:
        np.broadcast_shapes(sizes.shape, *(array.shape for array in given.values()))
    except ValueError as error:
        raise ValueError(f"The arguments must have shapes that broadcast: {error}") from None
    return given, sizes


def _of_sizes(function: Callable[[int], float | None], sizes: Ints) -> Floats:
    """Apply a function of the number of documents to each query, with NaN for None."""
    of_size = {r: function(r) for r in set(sizes.ravel().tolist())}
    values = [of_size[r] for r in sizes.ravel().tolist()]
    return np.array(values, dtype=np.float64).reshape(sizes.shape)


def _number_or_array(values: Floats) -> Any:
    return float(values) if values.ndim == 0 else values


def _positional(loss: Loss) -> PositionalLoss:
    if not isinstance(loss, PositionalLoss):
        raise ValueError(f"Surrogate bounds need a positional loss, such as 'ndcg'; got {loss!r}.")
    return loss


def _surrogate_constants(
    loss: Loss, surrogate: Surrogate, sizes: Ints, given: dict[str, Floats]
) -> Floats:
    """Return c C_phi(2) of each query."""
    loss = _positional(loss)
    name = type(surrogate).__name__
    if not surrogate.order_preserving:
        raise ValueError(f"{surrogate!r} has no regret bound: it is {surrogate.theorem}.")
    surrogate._check_parameters()
    if "best_value" in given:
        if "largest" in given or "total" in given:
            raise ValueError("best_value replaces largest and total; pass one or the other.")
        if getattr(surrogate, "eta", 1.0) is None:
            raise ValueError(f"best_value does not determine eta; pass {name}(eta=...).")
    # Compute the constants once for distinct sizes and utilities; -1 stands for None.

    @functools.cache
    def constant_of(r: int, largest: float, total: float, best: float) -> float:
        if best >= 0:
            phi = loss.discounts(r)
            if phi[0] <= 0 or phi.min() < 0:
                raise ValueError(
                    "best_value needs a measure with discounts >= 0 and no constant term; those of "
                    f"{type(loss).__name__} are negative. Pass largest or total."
                )
            largest, total = best / float(phi[0]), best / float(phi.mean())
        # The constant is NaN if it depends on a missing utility.
        constant = surrogate.constant(
            r, largest if largest >= 0 else np.nan, total if total >= 0 else None
        )
        if constant is None:
            raise ValueError(f"{surrogate!r} has no regret bound of the form of table 2.")
        if np.isnan(constant):
            raise ValueError(
                f"The constant of {name} depends on the expected utilities; pass largest, total or "
                "best_value."
            )
        return constant * loss.discount_constant(r)

    columns = [given.get(key, np.array(-1.0)) for key in ("largest", "total", "best_value")]
    full = np.broadcast_arrays(sizes, *columns)
    rows = zip(*(column.ravel().tolist() for column in full), strict=True)
    return np.array([constant_of(*row) for row in rows]).reshape(full[0].shape)
