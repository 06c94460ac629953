"""Read the costs that a user passes (rows are classes, columns targets), and their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.cost_sensitive._low_rank import LowRankLoss, read_matrix
from sklearn_rankcal.utils._messages import counted, warn
from sklearn_rankcal.utils._numbers import check_no_mask
from sklearn_rankcal.utils._typing import Floats, Ints

Names = NDArray[Any]
#: The types of the parameter `loss_matrix`, except None.
Costs = ArrayLike | LowRankLoss | Callable[[Names], ArrayLike | LowRankLoss]


def read_costs(costs: Costs | None, classes: Names) -> LowRankLoss | Floats:
    """Return a `LowRankLoss` or a finite matrix that has a row for each class."""
    if costs is None:
        return LowRankLoss.zero_one(len(classes))
    if callable(costs):
        costs = costs(classes)
        if costs is None:
            raise ValueError("loss_matrix returned None, but it must return a matrix of costs.")
    matrix = costs if isinstance(costs, LowRankLoss) else read_matrix(costs)
    if matrix.shape[0] != len(classes):
        raise ValueError(
            f"loss_matrix has {counted(matrix.shape[0], 'row')}, but there are "
            f"{counted(len(classes), 'class')}: "
            f"{classes[:20].tolist()}. If y may lack some classes, pass classes= with the name of "
            "each row."
        )
    return matrix


def read_names(values: Any, what: str) -> Names:
    """Return the names as an array in which each name keeps its type, and check that they differ.

    NumPy would convert a mixture of numbers and strings to strings, so a mixture becomes an array
    of objects instead.
    """
    check_no_mask(values, what)
    names = np.asarray(values)
    if names.dtype.kind in "US" and not all(isinstance(v, str | bytes) for v in values):
        names = np.array(values, dtype=object)
    if names.ndim != 1 or len(set(names.tolist())) < len(names):
        raise ValueError(f"{what} must be different names in one dimension; got {values!r}.")
    return names


def read_target_names(targets: Any, costs: LowRankLoss | Floats, classes: Names) -> Names:
    """Return a name for each column of the costs; the names of the classes if none are given."""
    n_targets = costs.shape[1]
    if targets is None and n_targets == len(classes):
        return classes
    if targets is None:
        raise ValueError(
            f"loss_matrix has {counted(n_targets, 'column')}, but there are "
            f"{counted(len(classes), 'class')}. Pass targets= with the name of each column."
        )
    names = read_names(targets, "targets")
    if len(names) != n_targets:
        raise ValueError(
            f"targets has {len(names)} names, but loss_matrix has {counted(n_targets, 'column')}."
        )
    return names


def numbers_of_names(values: Names, names: Names, what: str, known: str) -> Ints:
    """Return the index in `names` of each value; `what` and `known` describe both in the error."""
    place = {name: i for i, name in enumerate(names.tolist())}
    found = np.array([place.get(value, -1) for value in values.tolist()], dtype=np.int64)
    if (found < 0).any():
        raise ValueError(
            f"{what} contains {values[found < 0].tolist()[0]!r}, which is not among {known}: "
            f"{names[:20].tolist()}{' ...' if len(names) > 20 else ''}."
        )
    return found


def warn_of_free_targets(costs: Floats, targets: Names) -> None:
    """Warn about targets that cost nothing for every class, if no cost is negative."""
    free = ~costs.any(axis=0)
    if costs.min() >= 0 and free.any():
        warn(
            f"The targets {targets[free].tolist()} cost nothing whatever the class is, because "
            "their columns of loss_matrix are all 0. The first of them is always predicted. An "
            "abstention needs a cost between that of a right answer and that of a wrong one.",
        )
