"""Effects that the votes do not bound.

A *direction of recession* is a direction in parameter space in which some votes become more likely
and no vote becomes less likely, at any distance. If one exists, the likelihood has no maximum
(Albert and Anderson, 1984, Biometrika 71, On the existence of maximum likelihood estimates in
logistic regression models). Linear programs decide whether a direction of recession moves a given
effect.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, hstack, vstack

from sklearn_rankcal.aggregation._contest_design import Votes
from sklearn_rankcal.utils._typing import Bools, Floats, Ints

#: The zero tolerance of the linear programs; directions have size 1.
_ZERO = 1e-6
#: Number of votes of the initial program, and of votes added in each round.
_VOTES = 2000


class Recession(NamedTuple):
    """Directions of recession of the model of one query.

    Attributes
    ----------
    low, high : ndarray of bool of shape (n_effects,)
        Whether an effect can fall, and can rise, without bound.
    directions : dict of (int, int) to ndarray of shape (n_parameters,)
        The direction for each such effect k and sign.
    constraints : csr_array of shape (n_rows, n_parameters)
        Linear functions that are >= 0 in a direction of recession; one or two rows per vote.
    unit : ndarray of shape (n_parameters,)
        The largest absolute value of each covariate.
    free : ndarray of bool of shape (n_parameters,)
        The parameters that can move.
    """

    low: Bools
    high: Bools
    directions: dict[tuple[int, int], Floats]
    constraints: csr_array
    unit: Floats
    free: Bools

    def moves(self, contrast: Floats) -> tuple[bool, bool]:
        """Return whether a sum of parameters can fall, and can rise, without bound."""
        found = [self._find(sign * contrast) is not None for sign in (-1.0, 1.0)]
        return found[0], found[1]

    def _find(self, contrast: Floats) -> Floats | None:
        """Return a direction of recession in which a sum of parameters rises, or None.

        The program starts with some votes, and finds a superset of the directions. Votes that the
        found direction makes less likely are added until there are none.
        """
        bounds = np.where(self.free, 1.0, 0.0)
        goal = contrast / self.unit
        n = self.constraints.shape[0]
        rows = np.unique(np.linspace(0, n - 1, min(n, _VOTES)).astype(np.int64))
        while True:
            found = linprog(
                -goal, A_ub=-self.constraints[rows], b_ub=np.zeros(len(rows)),
                bounds=np.column_stack([-bounds, bounds]), method="highs",
            )  # fmt: skip
            if found.status != 0 or -found.fun <= _ZERO * np.abs(goal).max():
                return None
            slack = self.constraints @ found.x
            violated = np.flatnonzero(slack < -_ZERO)
            if not len(violated):
                return np.asarray(found.x / self.unit)
            violated = violated[np.argsort(slack[violated], kind="stable")[:_VOTES]]
            rows = np.union1d(rows, violated)


def find_recession(votes: Votes, n_items: int, ties: str, moving: bool) -> Recession | None:
    """Find directions of recession that move effects; None if there are none.

    `moving` is whether scores can move as well; they cannot with a penalty. `ties` is the model of
    ties, or "half" if ties have no parameter. Two linear programs per effect.
    """
    p, has_tie = votes.X.shape[1], ties != "half"
    size = n_items + p + has_tie
    unit = np.ones(size)
    unit[n_items : n_items + p] = np.abs(votes.X).max(axis=0)
    unit[unit == 0] = 1.0
    scaled = votes._replace(X=votes.X / unit[n_items : n_items + p])
    free = np.append(np.full(n_items, moving), np.ones(size - n_items, dtype=bool))
    constraints = _constraints(scaled, n_items, ties)
    empty = np.zeros(size - n_items, dtype=bool)
    found = Recession(empty, empty.copy(), {}, constraints, unit, free)
    for k in range(size - n_items):
        contrast = np.zeros(size)
        contrast[n_items + k] = 1.0
        for ends, sign in ((found.low, -1), (found.high, 1)):
            direction = found._find(sign * contrast)
            if direction is not None:
                ends[k] = True
                found.directions[k, sign] = direction
    return found if found.directions else None


def _constraints(votes: Votes, n_items: int, ties: str) -> csr_array:
    """Return linear functions that must be >= 0 in a direction of recession."""
    n = len(votes.first)
    at = np.arange(n)
    ends = np.append(at, at), np.append(votes.first, votes.second)
    items = csr_array((np.repeat([1.0, -1.0], n), ends), shape=(n, n_items))
    lead = hstack([items, csr_array(votes.X)], format="csr")
    first, second, tied = (np.flatnonzero(row) for row in votes.counts > 0)
    if ties == "half":
        rows = [lead[first], -lead[second], lead[tied], -lead[tied]]
        return csr_array(vstack(rows, format="csr"))

    def beside(sign: float, some: Ints, tie: float) -> csr_array:
        column = csr_array(np.full((len(some), 1), tie))
        return csr_array(hstack([sign * lead[some], column], format="csr"))

    # In Davidson's model, results have the odds exp(d / 2), exp(-d / 2) and exp(t). In Rao and
    # Kupper's, a win needs d above t, and t >= 0.
    half = 0.5 if ties == "davidson" else 1.0
    rows = [beside(half, first, -1.0), beside(-half, second, -1.0)]
    rows += [beside(half, tied, 1.0), beside(-half, tied, 1.0)]
    if ties == "davidson":
        rows += [beside(1.0, first, 0.0), beside(-1.0, second, 0.0)]
    else:
        rows.append(csr_array(np.eye(1, lead.shape[1] + 1, lead.shape[1])))
    return csr_array(vstack(rows, format="csr"))
