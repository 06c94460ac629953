"""Delayed calls: one for each partition, and sums of their results."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import dask
from dask import delayed
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer
from dask.utils import ensure_dict

#: How many partial results are added in one task.
_FAN_IN = 8


def for_each(function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Return one delayed call of a function for each entry of the arguments, as `map` does.

    What the calls have in common is best given by `functools.partial`: dask looks for collections
    inside every argument of every call, which takes longer than the call.
    """
    call = delayed(function, pure=False)
    return [call(*each) for each in zip(*arguments, strict=True)]


def add_up(parts: list[Any], add: Callable[[Any, Any], Any] = operator.add) -> Any:
    """Compute the sum of delayed values, added a few at a time. None adds nothing."""
    return dask.compute(delayed_sum(parts, add))[0]


def delayed_sum(parts: list[Any], add: Callable[[Any, Any], Any] = operator.add) -> Any:
    """Return the delayed value of `add_up`."""

    def added(*values: Any) -> Any:
        total = None
        for value in values:
            total = value if total is None else total if value is None else add(total, value)
        return total

    call = delayed(added, pure=False)
    while len(parts) > 1:
        parts = [call(*parts[first : first + _FAN_IN]) for first in range(0, len(parts), _FAN_IN)]
    return parts[0]


def in_one_layer(value: Delayed) -> Delayed:
    """Return a delayed value whose graph is one layer.

    Each task that takes the value copies the list of its layers. If every partition has a layer of
    its own, P tasks would take O(P^2) time.
    """
    tasks = ensure_dict(value.__dask_graph__())
    layers = {value.key: MaterializedLayer(tasks)}
    return Delayed(value.key, HighLevelGraph(layers, {value.key: set()}))
