"""Noise conditions of theorems, for a distribution or a matrix of expected targets.

Numbers are equal if they differ by at most a slack: `tol` times the size of the terms that were
added. For a matrix, the terms are unknown, and the size is its largest absolute entry.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
from sklearn_rankcal.losses import MAP, PD, Loss, PDByScores
from sklearn_rankcal.losses._average_precision import reinforce_violations
from sklearn_rankcal.losses._pairs import score_violations
from sklearn_rankcal.utils._numbers import check_range
from sklearn_rankcal.utils._parameters import check_number
from sklearn_rankcal.utils._typing import Bools, Floats

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
