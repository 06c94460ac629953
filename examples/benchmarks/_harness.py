"""Shared code of the benchmark scripts: interleaved timing, ratios of medians, and plain tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import numpy as np
from scipy.special import stdtrit

from sklearn_rankcal.metrics import evaluate_rankings


def interleaved(tasks: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Median seconds of each task. The tasks take turns: a slow minute affects all equally."""
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(repeats):
        for name, task in tasks.items():
            started = time.perf_counter()
            task()
            seconds[name].append(time.perf_counter() - started)
    return {name: median(values) for name, values in seconds.items()}


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Align the first column left and all further columns right."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    print(f"\n{title}")
    for row in (header, *rows):
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        print("  ".join(cells).rstrip(), flush=True)


class Differences:
    """Differences between two rankers, as values of queries, and their mean over collections."""

    def __init__(self) -> None:
        self.found: list[tuple[float, float]] = []

    def add(self, values: np.ndarray, others: np.ndarray) -> str:
        """Add a collection, and return its mean difference with its 95 % interval."""
        self.found.append(difference(values, others))
        return interval(*self.found[-1])

    def mean(self) -> str:
        """The mean over the collections, with equal weights, and its interval."""
        centers, halves = np.transpose(self.found)
        return interval(centers.mean(), np.sqrt(halves @ halves) / len(halves))


def difference(values: np.ndarray, others: np.ndarray) -> tuple[float, float]:
    """The mean over the queries with defined values, and half its 95 % interval."""
    found = (values - others)[~np.isnan(values)]
    return float(found.mean()), half_interval(found)


def half_interval(values: np.ndarray) -> float:
    """Half the length of Student's 95 % interval of a mean, infinite for a single value."""
    n = len(values)
    return float(stdtrit(n - 1, 0.975) * values.std(ddof=1) / np.sqrt(n)) if n > 1 else np.inf


def interval(center: float, half: float) -> str:
    """A difference with its 95 % interval, with * if it does not contain 0."""
    low, high = center - half, center + half
    return f"{center:+.4f} [{low:+.4f}, {high:+.4f}]{'*' if low > 0 or high < 0 else ''}"


def values_of_queries(
    metric: str, y: Any, scores: Any, groups: Any, **parameters: Any
) -> np.ndarray:
    """The metric of each query, NaN where it is undefined."""
    options = {"groups": groups, "metrics": metric, "return_per_query": True, **parameters}
    return evaluate_rankings(y, scores, **options)[metric]
