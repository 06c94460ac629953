"""Build an integer program row by row, and solve it by HiGHS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from sklearn_rankcal.utils._typing import Floats, Ints


class Program:
    """Minimise the cost of variables >= 0 with bounds on linear sums of them.

    `price` is the cost per unit of violation of a soft rule. None means hard rules.
    """

    def __init__(self, costs: Sequence[float] | Floats, price: float | None) -> None:
        self.costs = list(costs)  # the first variables are binary
        self.largest = [1.0] * len(self.costs)
        self.integral = [1] * len(self.costs)
        self.price = price
        self.rows: list[Ints] = []
        self.variables: list[Ints] = []
        self.values: list[Floats] = []
        self.lower: list[float] = []
        self.upper: list[float] = []

    def new_variable(self, cost: float, largest: float, integral: int) -> int:
        """Add a variable and return its number."""
        self.costs.append(cost)
        self.largest.append(largest)
        self.integral.append(integral)
        return len(self.costs) - 1

    def new_slack(self) -> list[int]:
        """Return the new slack variable of a soft rule, or an empty list for a hard rule."""
        return [] if self.price is None else [self.new_variable(self.price, np.inf, 0)]

    def add(
        self,
        variables: Sequence[int] | Ints,
        values: Sequence[float] | Floats | float,
        at_least: float,
        at_most: float,
        slack: Sequence[int] = (),
    ) -> None:
        """Bound the sum of values times variables, or of each row of an array of variables.

        `slack` is a variable by which the sum may violate its bound.
        """
        if slack:
            sign = -1.0 if np.isinf(at_least) else 1.0
            values = np.append(np.broadcast_to(values, len(variables)), sign)
            variables = np.append(variables, slack)
        table = np.atleast_2d(variables)
        rows = len(self.lower) + np.arange(len(table))
        self.rows.append(np.repeat(rows, table.shape[1]))
        self.variables.append(table.ravel())
        self.values.append(np.broadcast_to(values, table.shape).ravel())
        self.lower += [at_least] * len(table)
        self.upper += [at_most] * len(table)

    def solve(self, time_limit: float | None, whole: bool = True) -> Any:
        """Return the result of `scipy.optimize.milp`. Without `whole`, relax the integers."""
        # SciPy before 1.14 needs 32-bit indices
        row = np.concatenate(self.rows).astype(np.int32)
        variable = np.concatenate(self.variables).astype(np.int32)
        shape = len(self.lower), len(self.costs)
        matrix = sparse.csr_array((np.concatenate(self.values), (row, variable)), shape=shape)
        options = {"mip_rel_gap": 0.0}  # HiGHS stops at 1e-4 otherwise
        return milp(
            np.array(self.costs),
            constraints=LinearConstraint(matrix, self.lower, self.upper),
            integrality=np.array(self.integral) * whole,
            bounds=Bounds(0, self.largest),
            options=options if time_limit is None else options | {"time_limit": time_limit},
        )
