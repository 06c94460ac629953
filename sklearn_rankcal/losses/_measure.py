"""The base class of measures, which map a ranking and its labels to one value per query."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from sklearn_rankcal.queries import Queries, Ranking
from sklearn_rankcal.utils._parameters import check_number
from sklearn_rankcal.utils._typing import Bools, Floats


class Measure(BaseEstimator):
    """Base class of measures, which compute the quality of the ranking of each query.

    A subclass implements `per_query`. If the measure is undefined for some queries, it also
    implements `defined`. A `Loss` is a measure with targets. The measures in `MEASURES` have
    scorers.

    Attributes
    ----------
    greater_is_better : bool
        Whether a larger value means a better ranking.
    takes_preferences : bool
        Whether labels may be `Preferences` between documents instead of one relevance per document.
    non_negative : bool
        Whether labels must not be negative.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.losses import get_measure
    >>> from sklearn_rankcal.queries import Queries, Ranking
    >>> ranking = Ranking.from_scores(np.array([0.9, 0.1, 0.5]), Queries.single(3))
    >>> get_measure("mrr").per_query(ranking, np.array([0.0, 0.0, 1.0])).tolist()
    [0.5]
    """

    greater_is_better: bool = True
    takes_preferences: bool = False
    non_negative: bool = False
    # parameters of a loss that do not affect its measure
    _of_targets: tuple[str, ...] = ()

    def per_query(self, ranking: Ranking, labels: Any) -> Floats:
        """Return the value of every query, shape (n_queries,), NaN if the measure is undefined.

        If the ranking has ties, the value is the mean over all orders of the tied documents.
        """
        raise self._lacks("a method per_query(ranking, labels), which returns a value per query")

    def _lacks(self, what: str) -> NotImplementedError:
        return NotImplementedError(
            f"{type(self).__name__} must define {what}. See the documentation of "
            "losses.Loss. Test a loss with estimator_checks.check_loss(loss)."
        )

    def defined(self, labels: Any, queries: Queries) -> Bools:
        """Return whether the measure is defined for each query, shape (n_queries,)."""
        return np.ones(queries.n_queries, dtype=bool)

    def check(self, labels: Any) -> None:
        """Raise ValueError unless the parameters and the labels are valid for the measure."""
        if self.non_negative and labels.min() < 0:
            raise ValueError(
                "Negative values in data passed to "
                f"{type(self).__name__}: relevance must be >= 0; got {labels.min():g}. Add a "
                "constant to all labels, or use loss='spearman', 'pd_by_scores' or 'pd', which "
                "only use the order of the labels."
            )

    def for_labels(self, labels: Any) -> Self:
        """Return a copy with data-dependent parameters set, such as `max_relevance` of ERR.

        A measure without such parameters returns itself.
        """
        return self


class BinaryMeasure(Measure):
    """Base class of measures of binary relevance, with a parameter `threshold`.

    A document is relevant if its label is at least `threshold`. If None, labels must be 0 or 1.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.losses import get_measure
    >>> get_measure("map", threshold=2).relevant(np.array([0.0, 2.0, 3.0])).tolist()
    [False, True, True]
    """

    threshold: float | None

    def relevant(self, relevance: Floats) -> Bools:
        """Return whether each row is relevant, shape (n_rows,)."""
        if self.threshold is not None:
            check_number(self.threshold, "threshold", "(-inf, inf)", "None, or")
            return relevance >= self.threshold
        relevant = relevance == 1
        other = ~relevant & (relevance != 0)
        if other.any():
            raise ValueError(
                f"This measure needs binary relevance, 0 or 1; got {relevance[other][0]:g}. To "
                "treat relevance >= t as relevant, pass threshold=t to the metric, to the scorer, "
                "or to the loss object, as in loss=MAP(threshold=t) of sklearn_rankcal.losses."
            )
        return relevant

    def gains(self, relevance: Floats) -> Floats:
        """Return 1 for relevant and 0 for irrelevant documents."""
        return self.relevant(relevance).astype(np.float64)

    def check(self, labels: Floats) -> None:
        super().check(labels)
        self.relevant(labels)


def divide(numerator: NDArray[Any], denominator: NDArray[Any]) -> Floats:
    """Return numerator / denominator, or NaN where the denominator is 0."""
    defined = denominator != 0
    return np.where(defined, numerator / np.where(defined, denominator, 1), np.nan)


def inverse(normalizer: Floats) -> Floats:
    """Return 1 / normalizer, or 0 where the normalizer is 0."""
    return np.where(normalizer > 0, 1.0 / np.where(normalizer > 0, normalizer, 1.0), 0.0)
