"""The base classes of measures and losses.

A measure maps a ranking and its labels to one value per query. A loss is a measure that also
converts labels to the targets that a model learns.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.labels._labels import read_labels
from sklearn_rankcal.queries import Queries, Ranking
from sklearn_rankcal.targets import SCORES, RedrawnTargets, Space
from sklearn_rankcal.utils._messages import check_count, check_number
from sklearn_rankcal.utils._numbers import Bools, Floats, Ints


class Measure(BaseEstimator):
    """Base class of measures, which compute the quality of the ranking of each query.

    A subclass implements `per_query`. If the measure is undefined for some queries, it also
    implements `defined`. A `Loss` is a measure with targets. The measures in `MEASURES` have
    scorers.

    Attributes
    ----------
    greater_is_better : bool
        Whether a larger value means a better ranking.
    bounds : tuple of two float
        The smallest and largest value that a query can have, for intervals of means.
    takes_preferences : bool
        Whether labels may be `Preferences` between documents instead of one relevance per document.
    non_negative : bool
        Whether labels must not be negative.
    needs_cutoff : bool
        Whether the parameter `k` must be a number, because the measure of all places does not
        depend on the ranking.

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
    bounds: tuple[float, float] = (-np.inf, np.inf)
    takes_preferences: bool = False
    non_negative: bool = False
    needs_cutoff: bool = False
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
        """Raise ValueError unless the parameters and the labels are valid for the measure.

        The parameters here are those that several measures share.
        """
        k = getattr(self, "k", None)
        if k is not None or self.needs_cutoff:
            check_count(k, "k", or_none=not self.needs_cutoff)
        share = getattr(self, "shrinkage", "auto")
        valid = share == "auto" if isinstance(share, str) else isinstance(share, Real)
        if not valid or (not isinstance(share, str) and not 0 <= share <= 1):
            raise ValueError(f"shrinkage must be 'auto' or a number in [0, 1]; got {share!r}.")
        if isinstance(labels, Preferences):
            if not self.takes_preferences:
                raise ValueError(
                    f"{type(self).__name__} needs a relevance of every row, but the labels are "
                    "preferences. Use loss='pd' or loss='pd_by_scores', which learn from "
                    "preferences, or AggregatedLoss of sklearn_rankcal.aggregation, which "
                    "aggregates them to one gain for each row."
                )
        elif np.isnan(least := labels.min()):
            raise ValueError(
                "The labels contain NaN. Only the rankers and metrics support rows that nobody "
                "judged. Here, every row needs a relevance."
            )
        elif least < 0 and self.non_negative:
            raise ValueError(
                "Negative values in data passed to "
                f"{type(self).__name__}: relevance must be >= 0; got {least:g}. Add a "
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
    """

    threshold: float | None
    bounds = (0.0, 1.0)

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


class LabelSums(NamedTuple):
    """Sums over queries: their number, and the sum and number of positive relative normalizers."""

    n_queries: int = 0
    relative_normalizer: float = 0.0
    n_normalizers: int = 0

    def plus(self, other: LabelSums) -> LabelSums:
        """Return the sums over both sets of queries."""
        return LabelSums._make(one + more for one, more in zip(self, other, strict=True))


class Loss(Measure):
    """Base class of ranking losses: a measure, and targets that are calibrated for it.

    To add a loss, write a subclass with the methods of a `Measure` and with `encode`, which
    computes the targets. Test it with `sklearn_rankcal.estimator_checks.check_loss`. `GainLoss` has
    an example of a subclass. `Positional` makes a loss from two functions, without a subclass.

    Attributes
    ----------
    space : Space
        The space of the targets and of the predictions: `targets.SCORES` (one number per document),
        `targets.PAIRS` (an antisymmetric difference for each pair of documents) or
        `targets.SYMMETRIC_PAIRS` (a symmetric number for each pair and each document).
    calibrated_over : str
        The distributions of the labels for which least squares on the targets, followed by the
        decoder, converges to the best ranking. The text names the theorem.
    calibrated_everywhere : bool
        Whether the loss is calibrated over all distributions.
    graded_targets : bool
        Whether the target of a document depends on its own label alone. A classifier can then learn
        the target values as classes.
    takes_judgements : bool
        Whether labels are judgements that the loss aggregates (`aggregation.AggregatedLoss`),
        instead of relevance or preferences.
    averages_targets : bool
        Whether targets are means over several labels of a query. Surrogates must then be affine in
        the targets.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.losses import get_loss
    >>> from sklearn_rankcal.queries import Queries
    >>> loss = get_loss("recall@10")
    >>> loss.encode(np.array([1.0, 0.0, 1.0]), Queries.single(3)).tolist()
    [0.5, 0.0, 0.5]
    """

    space: Space = SCORES
    takes_judgements: bool = False
    averages_targets: bool = False

    # ---------------------------------------------------------------- to be defined by a subclass

    # A subclass can compute these properties from its parameters, or replace them by attributes.
    @property
    def calibrated_over(self) -> str:
        """The distributions of the labels over which the loss is calibrated, with the theorem."""
        return ""

    @property
    def calibrated_everywhere(self) -> bool:
        """Whether the loss is calibrated over every distribution."""
        return True

    @property
    def needs_threshold(self) -> bool:
        """Whether labels must be 0 or 1, because no threshold of relevance is set."""
        return isinstance(self, BinaryMeasure) and self.threshold is None

    @property
    def graded_targets(self) -> bool:
        """Whether the target of each document depends on its own label alone."""
        return False

    def encode(self, relevance: Any, queries: Queries) -> Any:
        """Compute the regression targets of all rows.

        Parameters
        ----------
        relevance : ndarray of shape (n_documents,) or Preferences
            Labels that `check` accepts.
        queries : Queries
            The queries of the rows.

        Returns
        -------
        targets : ndarray of shape (n_documents,) or PairTargets
            The targets, 0 in queries on which the loss is undefined.
        """
        raise self._lacks("a method encode(relevance, queries), which returns the targets")

    def training_targets(self, relevance: Any, queries: Queries) -> Any:
        """Compute the targets that `fit` uses, by default the result of `encode`.

        The loss stays calibrated if they converge to the result of `encode` as the number of
        queries grows.
        """
        return self.encode(relevance, queries)

    def label_sums(self, relevance: Any, queries: Queries) -> LabelSums:
        """Return sums over these queries, if the targets of other queries depend on them."""
        return LabelSums(n_queries=queries.n_queries)

    def targets_of_part(self, relevance: Any, queries: Queries, sums: LabelSums) -> Any:
        """Compute `training_targets` of some queries, given `label_sums` of all queries."""
        return self.training_targets(relevance, queries)

    def draws(self, labels: Any) -> RedrawnTargets | None:
        """Return targets that a stochastic gradient method can resample, or None."""
        return None

    def calibrated_measure(self, ranking: Ranking, labels: Any) -> Floats:
        """Compute the value of each query for which the targets are calibrated; larger is better.

        This is the measure, unless the targets do not contain its denominator. Undefined values are
        NaN.
        """
        return self.per_query(ranking, labels)

    def regret_constant(self, n_documents: int) -> float | None:
        """Return the constant c of the bound regret <= c * sqrt(surrogate regret), or None.

        The surrogate regret is the squared Euclidean distance between the predictions for a query
        with `n_documents` documents and the conditional expectation of its targets.
        """
        return None

    def row_weight(self, labels: Any, queries: Queries) -> Floats | None:
        """Return a factor of the weight of each row in `fit`, computed from the labels, or None."""
        return None

    def query_weight(self, labels: Any, queries: Queries) -> Floats | None:
        """Return the weight of each query in the mean that rankers report, or None if it is 1.

        A ranking that is best for the targets must also be best for this mean (see
        `calibrated_measure`). The weights of the user are multiplied by this weight.
        """
        return None

    def read(self, y: Any, n_rows: int | None = None) -> tuple[Any, Queries | None]:
        """Read the labels that a user passes.

        Parameters
        ----------
        y : array-like of shape (n_documents,)
            Relevance, NaN if nobody judged the row, or the array of `relevance_labels` or
            `preference_labels`.
        n_rows : int, default=None
            Expected number of rows. If None, the number is not checked.

        Returns
        -------
        labels : ndarray of shape (n_documents,) or Preferences
            The labels in the form that the methods of the loss take.
        queries : Queries or None
            The queries, if the labels contain them.
        """
        return read_labels(y, n_rows)

    # ---------------------------------------------------------------- common to all losses

    def resolve(self, relevance: Any) -> Loss:
        """Return a copy of the loss, with data-dependent parameters set from these labels."""
        self.check(relevance)
        resolved = self.for_labels(relevance)
        return clone(self) if resolved is self else resolved

    def metric(self, relevance: Any, ranks: Ints, queries: Queries) -> Floats:
        """Compute the measure of each query for a ranking given as positions, 1 = top."""
        self.check(relevance)
        return self.per_query(Ranking.from_ranks(ranks, queries), relevance)


class NormalizedLoss(Loss):
    """Base class of losses with gains as targets, divided by a normalizer of the query.

    The normalizer is a number that depends on all labels of the query. For NDCG, it is the DCG of
    the best ranking.

    Notes
    -----
    The normalizer makes the targets calibrated, but also noisy: a query with few relevant documents
    has large targets. The *relative normalizer*, normalizer / largest gain, measures the number of
    relevant documents. The parameter `shrinkage`, called a here, reduces the noise: `fit` regresses
    on gain / ((1 - a) normalizer + a m largest gain), where m is the mean of the relative
    normalizers over queries.

    The bias is proportional to a, and the variance decreases with the number n of training queries.
    ``"auto"`` is therefore n0 / (n0 + n), with n0 = 300, or n0 = 1000 for losses that count
    relevant documents (recall, AUC, average precision). It tends to 0, as consistency requires.
    With a fixed number above 0, the limit is the best ranking only if the normalizer and the
    largest gain of each query are certain.

    A classifier learns the targets as weights of two classes (`models.DocumentModel`), because the
    probabilities of the labels of a single document do not contain the normalizer.

    Examples
    --------
    >>> from sklearn_rankcal.losses import NDCG
    >>> loss = NDCG()
    >>> loss.share(n_queries=300), loss.share(n_queries=2700)
    (0.5, 0.1)
    """

    shrinkage: str | float
    _of_targets = ("shrinkage",)
    _half = 300  # n0: the number of training queries with which "auto" is 1/2

    def gains(self, relevance: Floats) -> Floats:
        """Return the gain of every row, before it is divided by the normalizer of its query."""
        raise self._lacks("a method gains(relevance), which returns a number per row")

    def normalizer(self, gains: Floats, queries: Queries) -> Floats:
        """Return the normalizer of each query, 0 if the measure is undefined."""
        raise self._lacks("a method normalizer(gains, queries), which returns a number per query")

    def encode(self, relevance: Floats, queries: Queries) -> Any:
        """Compute the gains divided by the normalizer of the query."""
        return self.shrunken_targets(relevance, queries, 0.0)

    def training_targets(self, relevance: Floats, queries: Queries) -> Any:
        """Compute the targets, with relative normalizers shrunk towards their mean."""
        return self.shrunken_targets(relevance, queries, self.share(queries.n_queries))

    def label_sums(self, relevance: Floats, queries: Queries) -> LabelSums:
        """Return the sum and the number of the relative normalizers above 0."""
        gains = self.gains(relevance)
        relative = relative_normalizers(gains, self.normalizer(gains, queries), queries)
        return LabelSums(queries.n_queries, float(relative.sum()), len(relative))

    def targets_of_part(self, relevance: Floats, queries: Queries, sums: LabelSums) -> Any:
        """Compute the targets of some queries, with the mean relative normalizer of all queries."""
        mean = sums.relative_normalizer / max(sums.n_normalizers, 1)
        return self.shrunken_targets(relevance, queries, self.share(sums.n_queries), mean)

    def share(self, n_queries: int) -> float:
        """Return the value of `shrinkage` for a number of training queries."""
        if isinstance(self.shrinkage, str):
            return self._half / (self._half + n_queries)
        return self.shrinkage

    def shrunken_targets(
        self, relevance: Floats, queries: Queries, share: float, mean: float | None = None
    ) -> Any:
        """Compute the targets, with relative normalizers shrunk by `share` towards `mean`."""
        gains = self.gains(relevance)
        normalizer = self.shrunken_normalizer(gains, queries, share, mean)
        return gains * queries.broadcast(inverse(normalizer))

    def shrunken_normalizer(
        self, gains: Floats, queries: Queries, share: float, mean: float | None = None
    ) -> Floats:
        """Compute the normalizers of `shrunken_targets`, shape (n_queries,).

        A normalizer of 0 means that the loss is undefined. It stays 0 and does not enter the mean.
        """
        normalizer: Floats = self.normalizer(gains, queries)
        defined = normalizer > 0
        if share > 0 and defined.any():
            if mean is None:
                relative = relative_normalizers(gains, normalizer, queries)
                mean = float(relative.mean()) if len(relative) else 0.0
            moved = (1 - share) * normalizer + share * mean * queries.max(gains)
            normalizer = np.where(defined, moved, 0.0)
        return normalizer

    def _shrinks(self) -> bool:
        """Whether `shrinkage` is a fixed number above 0."""
        return isinstance(self.shrinkage, Real) and float(self.shrinkage) > 0

    def _as_shrunken(self, over: str) -> str:
        """Return `calibrated_over`, given its value `over` for targets without shrinkage."""
        if not self._shrinks():
            return over
        return (
            "only the distributions under which the normalizer and the largest gain of a query are "
            f"certain, because shrinkage={self.shrinkage!r} does not decrease with more data; with "
            f"'auto' or 0: {over}"
        )

    @property
    def calibrated_everywhere(self) -> bool:
        return not self._shrinks()


def relative_normalizers(gains: Floats, normalizer: Floats, queries: Queries) -> Floats:
    """Return normalizer / largest gain of each query in which both are above 0."""
    largest = queries.max(gains)
    positive = (normalizer > 0) & (largest > 0)
    return normalizer[positive] * (1.0 / largest[positive])


def without_shrinkage(loss: Loss) -> Loss:
    """Return a copy of the loss with shrinkage 0, or the loss itself if it has no shrinkage."""
    return clone(loss).set_params(shrinkage=0.0) if isinstance(loss, NormalizedLoss) else loss
