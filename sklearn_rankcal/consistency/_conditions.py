"""Noise conditions: expected targets or a distribution in, whether a theorem covers them out.

Each predicate returns a `Condition`, which is true or false and lists the documents that violate
it. In all of them ``a > b`` means a > b + slack, and ``a >= b`` means a >= b - slack: differences
up to the slack count as equality. The slack is `tol` times a size. The difference of two equal
expectations is rounding noise, so its own size says nothing. What does is the size of what was
added up to get it:

* of a distribution, the expected absolute values of the terms that are compared, such as
  E|Y_ij| + E|Y_ji|. Each comparison has a size of its own;
* of a matrix, which does not say what its entries were made of, the largest absolute entry.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import connected_components

from sklearn_rankcal.consistency._distributions import (
    LabelDistribution,
    check_numbers,
    expected_sizes,
    expected_targets,
)
from sklearn_rankcal.losses import MAP, PD, Loss, PDByScores

Floats = NDArray[np.float64]
TOL = 1e-9


@dataclass(frozen=True)
class Condition:
    """Whether a condition holds, and where it does not.

    Attributes
    ----------
    name : str
    violations : tuple of tuples of int
        Documents, numbered from 0. Their number and meaning depend on the condition.
    meaning : str
        What a violation says.
    """

    name: str
    violations: tuple[tuple[int, ...], ...]
    meaning: str

    @property
    def holds(self) -> bool:
        """Whether there is no violation; what ``bool`` says, too."""
        return not self.violations

    def __bool__(self) -> bool:
        return self.holds

    def __repr__(self) -> str:
        if self.holds:
            return f"{self.name} holds"
        shown = ", ".join(map(str, self.violations[:6]))
        more = len(self.violations) - 6
        return f"{self.name} fails: {self.meaning} {shown}" + (f" and {more} more" * (more > 0))


def _violations(where: NDArray[np.bool_]) -> tuple[tuple[int, ...], ...]:
    return tuple(map(tuple, np.argwhere(where).tolist()))


def _is_distribution(u: Any) -> bool:
    return isinstance(u, LabelDistribution) or (
        isinstance(u, tuple) and len(u) == 2 and np.ndim(u[0]) >= 2
    )


def _expected(u: Any, loss: Loss, tol: float) -> tuple[Floats, Floats | float]:
    """The matrix of expected targets; and the slack of its entries, one for all of a matrix."""
    if isinstance(tol, (bool, np.bool_)) or not isinstance(tol, Real) or not 0 <= tol < np.inf:
        raise ValueError(f"tol must be a finite number >= 0; got {tol!r}.")
    if _is_distribution(u):
        return expected_targets(u, loss), tol * expected_sizes(u, loss)
    matrix = check_numbers(u, "u")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
        raise ValueError(
            "u must be a matrix, one row and column a document, or a distribution (labels, "
            f"probabilities); it has shape {matrix.shape}."
        )
    return matrix, tol * float(np.abs(matrix).max())


def satisfies_reinforce(
    u: LabelDistribution | tuple[Any, Any] | ArrayLike, *, tol: float = TOL
) -> Condition:
    """P_reinforce (P1, theorem 4): is sorting by the diagonal optimal for average precision?

    For all i, j: u_ii >= u_jj implies u_ii >= u_jj + sum_{g not in {i, j}} (u_jg - u_ig)_+ , with
    u_ij = E[Y_i Y_j / sum(Y)]. Then ``loss="map", decoder="diagonal"`` and ``"map_by_scores"``
    (corollary 5) are calibrated.

    Parameters
    ----------
    u : LabelDistribution, tuple (labels, probabilities) or array-like of shape (r, r)
        Binary labels, or the symmetric u itself, such as
        ``expected_targets(distribution, MAP(threshold=2))`` or a prediction.
    tol : float, default=1e-9
        Differences up to this share of the expected absolute values of their terms count as 0; up
        to this share of the largest entry, where u is a matrix.

    Returns
    -------
    condition : Condition
        Violations are pairs (i, j): i is sorted before j, or ties with it, but j shares relevance
        that i lacks.

    Raises
    ------
    ValueError
        Not a distribution or not a symmetric matrix; labels other than 0 and 1.

    Notes
    -----
    It holds for documents that are independent given the query, for one. O(r^3).

    Examples
    --------
    >>> from sklearn_rankcal.consistency import satisfies_reinforce
    >>> satisfies_reinforce(([[0, 0, 1, 0], [1, 1, 0, 1]], [0.3, 0.7]))
    P_reinforce fails: pairs (i, j) sorted i first, though j shares more: (2, 0), (2, 1), (2, 3)

    With equality, it still holds:

    >>> satisfies_reinforce(([[0, 0, 1, 0], [1, 1, 0, 1]], [0.5, 0.5]))
    P_reinforce holds
    """
    u, slack = _expected(u, MAP(), tol)
    uneven = np.abs(u - u.T) > slack
    if uneven.any():
        i, j = np.argwhere(uneven)[0]
        raise ValueError(
            f"u must be symmetric; entries [{i}, {j}] and [{j}, {i}] are {u[i, j]:g} and "
            f"{u[j, i]:g}."
        )
    own = np.diagonal(u)
    lead = own[:, None] - own
    lack = np.maximum(u - u[:, None], 0.0)  # [i, j, g]: u_jg - u_ig
    other = ~np.eye(len(u), dtype=bool)
    missing = (lack * (other[:, None] & other)).sum(axis=2)
    of_lead = of_all = slack
    if isinstance(slack, np.ndarray):  # the terms of the lead, and all with those of the lack
        of_lead = np.add.outer(np.diagonal(slack), np.diagonal(slack))
        of_all = np.add.outer(slack.sum(axis=1), slack.sum(axis=1))
    return Condition(
        "P_reinforce",
        _violations((lead >= -of_lead) & (lead < missing - of_all)),
        "pairs (i, j) sorted i first, though j shares more:",
    )


def _differences(u: Any, tol: float, loss: Loss | None = None) -> tuple[Floats, Floats | float]:
    """Expected differences of preferences and their slack; E[Y_ij] - E[Y_ji] up to a factor."""
    matrix, slack = _expected(u, PD() if loss is None else loss, tol)
    if _is_distribution(u):  # these are differences, with slacks of both terms
        return matrix, slack
    return matrix - matrix.T, slack


def satisfies_dag(
    u: LabelDistribution | tuple[Any, Any] | ArrayLike, *, tol: float = TOL
) -> Condition:
    """P_DAG (P1, theorem 7): are expected preferences acyclic?

    That is, the graph of the edges (i, j) with E[Y_ij] > E[Y_ji]. Then ``loss="pd"`` with
    ``decoder="greedy_dag"`` is calibrated.

    Parameters
    ----------
    u : LabelDistribution, tuple (labels, probabilities) or array-like of shape (r, r)
        Preference weights, or relevance, which prefers i to j by 1 where y_i > y_j (otherwise pass
        ``expected_targets(distribution, PD("graded"))``). Of a matrix only the differences
        u_ij - u_ji count.
    tol : float, default=1e-9
        Differences up to this share of the expected absolute values of their terms count as 0; up
        to this share of the largest entry, where u is a matrix.

    Returns
    -------
    condition : Condition
        Each violation lists documents that cycles connect: each is preferred to each other one,
        directly or along a path.

    Raises
    ------
    ValueError
        Not a distribution, or not a square matrix.

    Notes
    -----
    O(r^2).

    Examples
    --------
    >>> from sklearn_rankcal.consistency import satisfies_dag
    >>> satisfies_dag([[0, 7, 4, 9], [3, 0, 8, 9], [6, 2, 0, 9], [1, 1, 1, 0]])
    P_DAG fails: cycles connect (0, 1, 2)
    """
    d, slack = _differences(u, tol)
    n_parts, part = connected_components(d > slack, connection="strong")
    cyclic = [c for c in range(n_parts) if (part == c).sum() > 1]
    members = sorted(tuple(np.flatnonzero(part == c).tolist()) for c in cyclic)
    return Condition("P_DAG", tuple(members), "cycles connect")


def satisfies_score_condition(
    u: LabelDistribution | tuple[Any, Any] | ArrayLike,
    f: str | Callable[[Floats], Floats] | PDByScores | ArrayLike = "borda",
    *,
    tol: float = TOL,
) -> Condition:
    """P_f (P1, theorem 6): do expected scores order every expected preference?

    For all i, j: E[Y_ij] > E[Y_ji] implies E[f_i(Y)] > E[f_j(Y)]. Then ``"pd_by_scores"`` with
    this f is calibrated. P_f is a part of P_DAG, whatever f is.

    Parameters
    ----------
    u : LabelDistribution, tuple (labels, probabilities) or array-like of shape (r, r)
        As in `satisfies_dag`.
    f : str, callable, PDByScores or array-like of shape (r,), default="borda"
        The scores, as `PDByScores` takes them; or that loss, whose `h` and `normalize` make the
        preferences, too; or E[f(Y)] itself, which a matrix u needs.
    tol : float, default=1e-9
        Differences up to this share of the expected absolute values of their terms count as 0:
        of E|Y_ij| + E|Y_ji|, and of E|f_i(Y)| + E|f_j(Y)|, or more, where f adds up terms that
        cancel. Where u is a matrix, up to this share of its largest entry, and of the largest
        score.

    Returns
    -------
    condition : Condition
        Violations are pairs (i, j): i is preferred to j, but its expected score is not larger.

    Raises
    ------
    ValueError
        Not a distribution or not a square matrix; an unknown f; scores that do not fit.

    Examples
    --------
    Single preferences: the net Borda score puts document 1 before 0, against expected preferences.

    >>> import numpy as np
    >>> from sklearn_rankcal.consistency import satisfies_dag, satisfies_score_condition
    >>> labels = np.zeros((5, 3, 3))
    >>> labels[range(5), [0, 1, 1, 0, 2], [1, 0, 2, 2, 0]] = 1
    >>> distribution = (labels, [0.20, 0.10, 0.36, 0.24, 0.10])
    >>> satisfies_dag(distribution), satisfies_score_condition(distribution)
    (P_DAG holds, P_f fails: pairs (i, j) preferred but not scored higher: (0, 1))
    """
    of_scores: Floats | float
    if isinstance(f, str) or callable(f) or isinstance(f, PDByScores):
        loss = f if isinstance(f, PDByScores) else PDByScores(score_function=f)
        if not _is_distribution(u):
            raise ValueError(
                "E[f(Y)] does not follow from a matrix of expected preferences: pass the "
                "distribution, or the expected scores themselves as f."
            )
        distribution: Any = u
        d, slack = _differences(
            distribution, tol, PD(loss.pair_weight, equal_queries=loss.equal_queries)
        )
        scores = expected_targets(distribution, loss)
        sizes = tol * expected_sizes(distribution, loss)
        of_scores = sizes[:, None] + sizes
    else:
        scores = check_numbers(f, "f")
        d, slack = _differences(u, tol)
        of_scores = tol * float(np.abs(scores).max(initial=0.0))
    if scores.shape != (len(d),):
        raise ValueError(
            f"f must be {len(d)} expected scores, one a document; it has shape {scores.shape}."
        )
    lead = scores[:, None] - scores
    return Condition(
        "P_f",
        _violations((d > slack) & ~(lead > of_scores)),
        "pairs (i, j) preferred but not scored higher:",
    )


def is_low_noise(
    u: LabelDistribution | tuple[Any, Any] | ArrayLike, *, tol: float = TOL
) -> Condition:
    """Low noise (P3, definition 4): do expected preferences reinforce each other?

    For edges i -> j and j -> k of the difference graph, w_ij = E[Y_ij] - E[Y_ji] > 0 and w_jk > 0:
    w_ik >= w_ij + w_jk. Low noise is a part of P_f for the net Borda score, and that of P_DAG.

    Parameters
    ----------
    u : LabelDistribution, tuple (labels, probabilities) or array-like of shape (r, r)
        As in `satisfies_dag`.
    tol : float, default=1e-9
        Differences up to this share of the expected absolute values of their terms count as 0; up
        to this share of the largest entry, where u is a matrix.

    Returns
    -------
    condition : Condition
        Violations are paths (i, j, k) that outweigh the edge from i to k.

    Raises
    ------
    ValueError
        Not a distribution, or not a square matrix.

    Notes
    -----
    O(r^3). Low noise does not make margin surrogates consistent: that is P3's theorem 3, whose
    example has low noise with equality, .26 = .25 + .01.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.consistency import is_low_noise
    >>> labels = np.zeros((4, 3, 3))
    >>> labels[range(4), [0, 1, 0, 2], [1, 2, 2, 0]] = 1
    >>> is_low_noise((labels, [0.25, 0.01, 0.5, 0.24]))
    Low noise holds
    >>> is_low_noise((labels, [0.25, 0.02, 0.49, 0.24]))
    Low noise fails: paths heavier than their shortcut: (0, 1, 2)
    """
    d, slack = _differences(u, tol)
    edge = d > slack
    path = d[:, :, None] + d  # [i, j, k]
    of_path = slack
    if isinstance(slack, np.ndarray):
        of_path = slack[:, :, None] + slack + slack[:, None, :]
    lighter = d[:, None, :] < path - of_path
    return Condition(
        "Low noise",
        _violations(edge[:, :, None] & edge & lighter),
        "paths heavier than their shortcut:",
    )
