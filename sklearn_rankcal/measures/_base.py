"""The base class of measures. A ranking and its labels come in; one value per query comes out.

A measure does not involve regression. Losses (`sklearn_rankcal.losses`) add the targets that are
calibrated for a measure, and metrics (`sklearn_rankcal.metrics`) add input checks and the mean over
queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.queries import Queries, Ranking


@dataclass(frozen=True, kw_only=True)
class Measure:
    """Base class of measures: what a ranking is worth, query by query.

    A subclass is a frozen dataclass whose fields are the parameters of the measure. It implements
    `per_query`. If the measure is undefined for some queries, it also implements `defined`.

    Attributes
    ----------
    greater_is_better : bool
        Whether a larger value means a better ranking.
    takes_preferences : bool
        Whether labels may be `Preferences` between documents instead of one relevance per document.
    non_negative : bool
        Whether labels must not be negative.
    """

    greater_is_better: ClassVar[bool] = True
    takes_preferences: ClassVar[bool] = False
    non_negative: ClassVar[bool] = False

    def per_query(self, ranking: Ranking, labels: Any) -> NDArray[np.float64]:
        """The value of every query, NaN where the measure is undefined.

        Parameters
        ----------
        ranking : Ranking
            The rows of every query, best first. Where it has ties, the value is the mean over all
            orders that the ties allow.
        labels : ndarray of shape (n_documents,), or Preferences
            Relevance of every row, in the order of the rows of the data, or the preferences between
            them.

        Returns
        -------
        values : ndarray of shape (n_queries,)
        """
        raise NotImplementedError

    def defined(self, labels: Any, queries: Queries) -> NDArray[np.bool_]:
        """Whether the measure is defined for each query, an array of shape (n_queries,)."""
        return np.ones(queries.n_queries, dtype=bool)

    def check(self, labels: Any) -> None:
        """Raise an error unless the parameters are valid and the measure can take these labels.

        Raises
        ------
        ValueError
            If a parameter is out of its range, or if labels are out of the range of the measure.
        """
        if self.non_negative and labels.min() < 0:
            raise ValueError(
                "Negative values in data passed to "
                f"{type(self).__name__}: relevance must be >= 0; got {labels.min():g}."
            )

    def resolve(self, labels: Any) -> Self:
        """A copy of this measure whose parameters that depend on data are set from `labels`.

        Most measures have no such parameter and return themselves. `ERR` sets `max_relevance`.
        """
        return self


@dataclass(frozen=True, kw_only=True)
class BinaryMeasure(Measure):
    """Base class of measures of binary relevance.

    Parameters
    ----------
    threshold : float, default=None
        A document is relevant if its label is at least `threshold`. None: labels must be 0 or 1.
    """

    threshold: float | None = None

    def relevant(self, relevance: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether each row is relevant, an array of shape (n_rows,)."""
        return binary_relevance(relevance, self.threshold)

    def check(self, labels: NDArray[np.float64]) -> None:
        self.relevant(labels)


def divide(numerator: NDArray[Any], denominator: NDArray[Any]) -> NDArray[np.float64]:
    """The quotient numerator / denominator, or NaN where the denominator is 0."""
    defined = denominator != 0
    return np.where(defined, numerator / np.where(defined, denominator, 1), np.nan)


#: The largest cutoff. No table can have more rows.
LARGEST_CUTOFF = 2**63 - 1


def binary_relevance(relevance: NDArray[np.float64], threshold: float | None) -> NDArray[np.bool_]:
    """Whether the relevance of each row is at least `threshold`.

    Without a threshold, a relevance of 1 means relevant and 0 means not relevant, and any other
    value is refused.
    """
    if threshold is not None:
        try:
            check_real("threshold", threshold)
        except ValueError:
            raise ValueError(
                f"threshold must be a finite number or None; got {threshold!r}."
            ) from None
        return relevance >= threshold
    relevant = relevance == 1
    other = ~relevant & (relevance != 0)
    if other.any():
        raise ValueError(
            f"This measure needs binary relevance, 0 or 1; got {relevance[other][0]:g}. Pass "
            "threshold=t to the metric, to the scorer, or to the loss object, as in "
            "loss=MAP(threshold=t) of sklearn_rankcal.losses: relevance >= t then counts as "
            "relevant."
        )
    return relevant


def check_cutoff(name: str, value: Any, required: bool = False) -> None:
    """Raise an error unless `value` is a whole number >= 1. Unless `required`, it may be None."""
    if value is None and required:
        raise ValueError(f"{name} must be a whole number >= 1; got None.")
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ValueError(f"{name} must be a whole number >= 1 or None; got {value!r}.")
    if value < 1:
        raise ValueError(f"{name} must be at least 1; got {value}.")
    if value > LARGEST_CUTOFF:
        raise ValueError(
            f"{name} must be at most {LARGEST_CUTOFF}, because no table has more rows. Pass "
            "None to count every place."
        )


def check_real(name: str, value: Any) -> None:
    """Raise an error unless `value` is a finite real number."""
    try:
        finite = isinstance(value, Real) and bool(np.isfinite(float(value)))
    except OverflowError:  # a Python integer beyond float64
        finite = False
    if not finite:
        raise ValueError(f"{name} must be a finite real number; got {value!r}.")


def exp2_minus_1(relevance: NDArray[np.float64]) -> NDArray[np.float64]:
    """The gain 2**y - 1, with full precision even where y is so small that 2**y rounds to 1."""
    with np.errstate(over="ignore"):  # the callers refuse labels for which this overflows
        large = np.exp2(relevance) - 1
        small = np.expm1(relevance * np.log(2))
    return np.where(np.abs(relevance) < 0.5, small, large)


def inverse(normalizer: NDArray[np.float64]) -> NDArray[np.float64]:
    """The inverse 1 / normalizer, or 0 where the normalizer is 0."""
    return np.where(normalizer > 0, 1.0 / np.where(normalizer > 0, normalizer, 1.0), 0.0)
