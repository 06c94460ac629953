"""The base class of measures. A ranking and its labels come in; one value per query comes out."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from sklearn_rankcal.queries import Queries, Ranking
from sklearn_rankcal.utils._parameters import check_number
from sklearn_rankcal.utils._typing import Bools, Floats


class Measure(BaseEstimator):
    """Base class of measures: what a ranking is worth, query by query.

    A subclass implements `per_query`. If the measure is undefined for some queries, it also
    implements `defined`. A `Loss` is a measure with targets. Others, as `ReciprocalRank`, have a
    scorer if they are in `MEASURES`.

    Attributes
    ----------
    greater_is_better : bool
        Whether a larger value means a better ranking.
    takes_preferences : bool
        Whether labels may be `Preferences` between documents instead of one relevance per document.
    non_negative : bool
        Whether labels must not be negative.
    """

    greater_is_better: bool = True
    takes_preferences: bool = False
    non_negative: bool = False
    # parameters of a loss that its measure does not have
    _of_targets: tuple[str, ...] = ()

    def per_query(self, ranking: Ranking, labels: Any) -> Floats:
        """The value of every query, NaN where the measure is undefined, of shape (n_queries,).

        Where the ranking has ties, the value is the mean over all orders that the ties allow.
        """
        raise self._lacks("a method per_query(ranking, labels), which returns a value per query")

    def _lacks(self, what: str) -> NotImplementedError:
        return NotImplementedError(
            f"{type(self).__name__} has to define {what}. See the documentation of "
            "losses.Loss; estimator_checks.check_loss(loss) tests a loss."
        )

    def defined(self, labels: Any, queries: Queries) -> Bools:
        """Whether the measure is defined for each query, an array of shape (n_queries,)."""
        return np.ones(queries.n_queries, dtype=bool)

    def check(self, labels: Any) -> None:
        """Raise ValueError unless the parameters and the labels are in the range of the measure."""
        if self.non_negative and labels.min() < 0:
            raise ValueError(
                "Negative values in data passed to "
                f"{type(self).__name__}: relevance must be >= 0; got {labels.min():g}. Add a "
                "constant to all labels; or learn their order, for which negative labels are fine, "
                "by loss='spearman', 'pd_by_scores' or 'pd'."
            )

    def for_labels(self, labels: Any) -> Self:
        """A copy whose parameters that depend on data, as `max_relevance` of ERR, are set.

        A measure without such parameters returns itself.
        """
        return self


class BinaryMeasure(Measure):
    """Base class of measures of binary relevance, with a parameter `threshold`.

    A document is relevant if its label is at least `threshold`. None: labels must be 0 or 1.
    """

    threshold: float | None

    def relevant(self, relevance: Floats) -> Bools:
        """Whether each row is relevant, an array of shape (n_rows,)."""
        if self.threshold is not None:
            check_number(self.threshold, "threshold", "(-inf, inf)", "None, or")
            return relevance >= self.threshold
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

    def gains(self, relevance: Floats) -> Floats:
        """1 for a relevant document, 0 for any other document."""
        return self.relevant(relevance).astype(np.float64)

    def check(self, labels: Floats) -> None:
        super().check(labels)
        self.relevant(labels)


def divide(numerator: NDArray[Any], denominator: NDArray[Any]) -> Floats:
    """The quotient numerator / denominator, or NaN where the denominator is 0."""
    defined = denominator != 0
    return np.where(defined, numerator / np.where(defined, denominator, 1), np.nan)


def inverse(normalizer: Floats) -> Floats:
    """The inverse 1 / normalizer, or 0 where the normalizer is 0."""
    return np.where(normalizer > 0, 1.0 / np.where(normalizer > 0, normalizer, 1.0), 0.0)
