"""The table of comparisons of several rankings over queries, corrected for their number."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.metrics._bootstrap import paired_bootstrap
from sklearn_rankcal.utils._typing import Floats

_SIGNED = ("difference", "low", "high")


class ComparisonTable(dict[str, NDArray[Any]]):
    """A dict from the name of each column to an array, printed as a table.

    ``pandas.DataFrame(table)`` makes a data frame of it.
    """

    def __str__(self) -> str:
        columns = [[name, *map(_text_as(name), values)] for name, values in self.items()]
        widths = [max(map(len, column)) for column in columns]
        left = [values.dtype.kind not in "iuf" for values in self.values()]
        return "\n".join(
            "  ".join(
                cell.ljust(width) if is_left else cell.rjust(width)
                for cell, width, is_left in zip(row, widths, left, strict=True)
            ).rstrip()
            for row in zip(*columns, strict=True)
        )

    __repr__ = __str__


def _text_as(column: str) -> Any:
    def text(value: Any) -> str:
        if not isinstance(value, (float, np.floating)):
            return str(value)
        return f"{value:+.4f}" if column in _SIGNED else f"{value:.4f}"

    return text


def compare_values(
    values: Mapping[str, Mapping[str, Floats]],
    weight: Floats | None,
    metrics: list[str],
    baseline: str | None,
    *,
    n_resamples: int,
    confidence_level: float,
    random_state: Any,
) -> ComparisonTable:
    """Compare systems by their values on each query, which `values` maps by system and metric."""
    if len(values) < 2:
        raise ValueError(f"There must be at least two rankings; got {len(values)}.")
    if baseline is None:
        pairs = list(itertools.combinations(values, 2))
    elif baseline in values:
        pairs = [(name, baseline) for name in values if name != baseline]
    else:
        raise ValueError(
            f"baseline must be the name of one of the systems, {', '.join(map(repr, values))}; "
            f"got {baseline!r}."
        )
    rows = [(name, first, second) for name in metrics for first, second in pairs]
    found = [
        paired_bootstrap(
            values[first][name],
            values[second][name],
            weight=weight,
            n_resamples=n_resamples,
            confidence_level=confidence_level,
            random_state=random_state,
        )
        for name, first, second in rows
    ]
    p_value = np.array([each.p_value for each in found])
    return ComparisonTable(
        metric=np.array([row[0] for row in rows]),
        first=np.array([row[1] for row in rows]),
        second=np.array([row[2] for row in rows]),
        first_mean=np.array([each.first for each in found]),
        second_mean=np.array([each.second for each in found]),
        difference=np.array([each.difference for each in found]),
        low=np.array([each.low for each in found]),
        high=np.array([each.high for each in found]),
        p_value=p_value,
        adjusted_p_value=_holm(p_value),
        n_queries=np.array([each.n_queries for each in found]),
    )


def _holm(p_value: Floats) -> Floats:
    """Adjust m p-values by Holm's step-down method.

    The i-th smallest p-value, for i = 1 .. m, is multiplied by m - i + 1. A running maximum then
    keeps the adjusted values in the order of the p-values.
    """
    order = np.argsort(p_value, kind="stable")
    adjusted = np.empty_like(p_value)
    factors = np.arange(len(p_value), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(p_value[order] * factors), 1.0)
    return adjusted
