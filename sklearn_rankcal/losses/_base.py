"""The base class of losses. Labels come in, and the targets that a model learns come out."""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.measures import BinaryMeasure, Measure, inverse
from sklearn_rankcal.queries import Queries, Ranking
from sklearn_rankcal.targets import SCORES, RedrawnTargets, Space


class LabelSums(NamedTuple):
    """Sums over queries on which the targets of a query can depend, besides its own labels.

    Attributes
    ----------
    n_queries : int
        The number of queries.
    relative_normalizer : float
        The sum of their relative normalizers, if the loss has a normalizer (`NormalizedLoss`).
    n_normalizers : int
        The number of queries with a relative normalizer above 0.
    """

    n_queries: int = 0
    relative_normalizer: float = 0.0
    n_normalizers: int = 0

    def plus(self, other: LabelSums) -> LabelSums:
        """Return the sums over the queries of both."""
        return LabelSums(
            self.n_queries + other.n_queries,
            self.relative_normalizer + other.relative_normalizer,
            self.n_normalizers + other.n_normalizers,
        )


class Loss(BaseEstimator):
    """Base class of ranking losses. A loss has a measure, and targets that are calibrated for it.

    To add a loss, write a subclass with a property `measure`, the quality of a ranking, and a
    method `encode`, which computes the targets. `sklearn_rankcal.estimator_checks.check_loss` tests
    both by enumerating all rankings of small queries.

    Attributes
    ----------
    space : Space
        The space of the targets and of the predictions. `targets.SCORES` has one number per
        document, `targets.PAIRS` an antisymmetric difference for each pair of documents, and
        `targets.SYMMETRIC_PAIRS` a symmetric number for each pair and each document.
    calibrated_over : str
        The distributions of the labels over which the loss is calibrated, and the theorem. Under
        these distributions, least squares on the targets of `fit`, followed by the decoder, leads
        to the best ranking. There can be fewer of them for some parameters, such as a fixed
        `shrinkage` above 0 (`NormalizedLoss`).
    calibrated_everywhere : bool
        Whether the loss is calibrated over every distribution.
    graded_targets : bool
        Whether the target of each document depends on its own label alone, and so has as few
        distinct values as the labels. A classifier then learns these values as classes.
    takes : {"relevance", "comparisons", "orders", "clicks"}
        What labels are: relevance or preferences, which are the labels of nearly all losses, or
        judgements that have yet to be aggregated (`aggregation.AggregatedLoss`).
    averages_targets : bool
        Whether the targets of `training_targets` are means over several labels of a query, so that
        surrogates have to be affine in them. The default is False.
    """

    space: Space = SCORES
    takes: str = "relevance"
    averages_targets: bool = False

    # ---------------------------------------------------------------- to be defined by a subclass

    @property
    def measure(self) -> Measure:
        """The measure of the quality of a ranking, with the parameters of this loss."""
        raise self._lacks("a property measure, which returns an object of measures")

    # These are properties, so that a subclass can make them depend on its parameters. It can also
    # overwrite them with plain attributes.
    @property
    def calibrated_over(self) -> str:
        """The distributions of the labels over which the loss is calibrated, and the theorem."""
        return ""

    @property
    def calibrated_everywhere(self) -> bool:
        """Whether the loss is calibrated over every distribution."""
        return True

    @property
    def needs_threshold(self) -> bool:
        """Whether labels must be 0 and 1, because there is no threshold of relevance."""
        return isinstance(self.measure, BinaryMeasure) and getattr(self, "threshold", None) is None

    @property
    def graded_targets(self) -> bool:
        """Whether the target of each document depends on its own label alone."""
        return False

    def encode(self, relevance: NDArray[np.float64], queries: Queries) -> Any:
        """Compute the regression targets of all rows. They are 0 if the loss is undefined.

        Parameters
        ----------
        relevance : ndarray of shape (n_documents,) or Preferences
            Labels that `check` accepts.
        queries : Queries
            The partition of the rows into queries.

        Returns
        -------
        targets : ndarray of shape (n_documents,) or PairTargets
            `PairTargets` if the space has an entry for each pair of documents.
        """
        raise self._lacks("a method encode(relevance, queries), which returns the targets")

    def _lacks(self, what: str) -> NotImplementedError:
        return NotImplementedError(
            f"The loss {type(self).__name__} has to define {what}. See the documentation of "
            "losses.Loss; estimator_checks.check_loss(loss) tests both."
        )

    def training_targets(self, relevance: NDArray[np.float64], queries: Queries) -> Any:
        """Compute the targets that `fit` uses, which by default are those of `encode`.

        A subclass can return targets with a smaller variance instead. The loss then stays
        calibrated only if they tend to those of `encode` as the number of queries grows.

        Parameters
        ----------
        relevance : ndarray of shape (n_documents,) or Preferences
            Labels that `check` accepts.
        queries : Queries
            The partition of the rows into queries.

        Returns
        -------
        targets : ndarray of shape (n_documents,) or PairTargets
        """
        return self.encode(relevance, queries)

    def label_sums(self, relevance: NDArray[np.float64], queries: Queries) -> LabelSums:
        """Return the sums over these queries on which the targets of other queries depend.

        Parameters
        ----------
        relevance : ndarray of shape (n_documents,) or Preferences
            Labels that `check` accepts.
        queries : Queries
            The partition of the rows into queries.

        Returns
        -------
        sums : LabelSums
        """
        return LabelSums(n_queries=queries.n_queries)

    def targets_of_part(
        self, relevance: NDArray[np.float64], queries: Queries, sums: LabelSums
    ) -> Any:
        """Compute the targets that `fit` uses for a part of the training queries.

        They are the entries of `training_targets` of all queries. A subclass whose
        `training_targets` depend on other queries overwrites this method and `label_sums`.

        Parameters
        ----------
        relevance : ndarray of shape (n_documents,) or Preferences
            Labels of the part.
        queries : Queries
            The queries of the part.
        sums : LabelSums
            The sums over all training queries.

        Returns
        -------
        targets : ndarray of shape (n_documents,) or PairTargets
        """
        return self.training_targets(relevance, queries)

    def draws(self, labels: Any) -> RedrawnTargets | None:
        """Return targets that a stochastic gradient method can draw anew, or None.

        Parameters
        ----------
        labels : ndarray of shape (n_documents,) or Preferences
            Labels that `check` accepts.

        Returns
        -------
        targets : RedrawnTargets or None
            None if the targets of `training_targets` are the only ones.
        """
        return None

    def calibrated_measure(self, ranking: Ranking, labels: Any) -> NDArray[np.float64]:
        """Compute for each query the value for which the targets are calibrated; larger is better.

        This is the measure, unless the measure is a quotient and the targets do not contain its
        denominator.

        Parameters
        ----------
        ranking : Ranking
            A ranking of the documents of every query.
        labels : ndarray of shape (n_documents,) or Preferences
            Labels that `check` accepts.

        Returns
        -------
        values : ndarray of shape (n_queries,)
            NaN if this value is undefined for the query.
        """
        return self.measure.per_query(ranking, labels)

    def regret_constant(self, n_documents: int) -> float | None:
        """Return the constant c of the bound regret <= c * sqrt(surrogate regret), or None.

        The regret is that of the ranking of a query. The surrogate regret is the squared Euclidean
        distance between the predictions for the query and the conditional expectation of its
        targets, as vectors of the entries that the exact decoder accepts.

        Parameters
        ----------
        n_documents : int
            The number of documents of the query.

        Returns
        -------
        constant : float or None
            None if there is no such bound.
        """
        return None

    def row_weight(self, labels: Any, queries: Queries) -> NDArray[np.float64] | None:
        """Return the factor by which the labels change the weight of each row in `fit`, or None.

        Parameters
        ----------
        labels : ndarray of shape (n_documents,) or Preferences
            Labels that `check` accepts.
        queries : Queries

        Returns
        -------
        weight : ndarray of shape (n_documents,) or None
            None means 1 for each row.
        """
        return None

    def query_weight(self, labels: Any, queries: Queries) -> NDArray[np.float64] | None:
        """Return the weight of each query in the mean that rankers report, or None.

        Rankers report it by `score`, and stop early by it. The best rankings of the targets must be
        the best ones for it. This is so without weights if the targets are calibrated for the
        measure (see `calibrated_measure`).

        Parameters
        ----------
        labels : ndarray of shape (n_documents,) or Preferences
            Labels that `check` accepts.
        queries : Queries

        Returns
        -------
        weight : ndarray of shape (n_queries,) or None
            None means 1 for each query. The weights of the user are multiplied by it.
        """
        return None

    # ---------------------------------------------------------------- common to all losses

    def defined(self, labels: Any, queries: Queries) -> NDArray[np.bool_]:
        """Return whether the measure is defined for each query. `fit` leaves out other queries.

        Parameters
        ----------
        labels : ndarray of shape (n_documents,) or Preferences
        queries : Queries

        Returns
        -------
        defined : ndarray of bool of shape (n_queries,)
        """
        return self.measure.defined(labels, queries)

    def check(self, labels: Any) -> None:
        """Check that the parameters are valid and that the loss accepts these labels.

        Parameters
        ----------
        labels : ndarray of shape (n_documents,) or Preferences

        Raises
        ------
        ValueError
            If a parameter or a label is out of range, or if the labels are preferences and the loss
            needs a relevance of every row.
        """
        if isinstance(labels, Preferences) and not self.measure.takes_preferences:
            raise ValueError(
                f"{type(self).__name__} needs a relevance of every row, but the labels are "
                "preferences. loss='pd' and loss='pd_by_scores' learn from them as they are. "
                "AggregatedLoss('ndcg') of sklearn_rankcal.aggregation, or with another loss on "
                "scores in it, first aggregates them to one gain for each row."
            )
        self.measure.check(labels)

    def resolve(self, relevance: Any) -> Loss:
        """Return a copy of the loss, with parameters that depend on data set from these labels.

        Parameters
        ----------
        relevance : ndarray of shape (n_documents,) or Preferences
            The training labels.

        Returns
        -------
        loss : Loss
        """
        self.check(relevance)
        return clone(self)

    def metric(
        self, relevance: Any, ranks: NDArray[np.int64], queries: Queries
    ) -> NDArray[np.float64]:
        """Compute the measure of each query for a ranking that is given as positions.

        Parameters
        ----------
        relevance : ndarray of shape (n_documents,) or Preferences
        ranks : ndarray of shape (n_documents,)
            The position of each document in its query, 1 = top.
        queries : Queries

        Returns
        -------
        values : ndarray of shape (n_queries,)
            NaN if the measure is undefined for the query.
        """
        self.check(relevance)
        return self.measure.per_query(Ranking.from_ranks(ranks, queries), relevance)


class NormalizedLoss(Loss):
    """Base class of losses whose targets are gains divided by a normalizer of the query.

    The normalizer is a number that depends on all labels of the query. For NDCG it is the largest
    DCG that the labels allow.

    Notes
    -----
    The normalizer makes the targets calibrated, but it also makes them noisy, because a query with
    few relevant documents has large targets. The *relative normalizer* of a query, normalizer /
    largest gain, measures how many they are: the number of relevant documents if the relevance is
    binary, and a number between 1 and the sum of the discounts for NDCG. 1 divided by it is the
    largest target of the query. The parameter `shrinkage`, called a here, is a compromise: `fit`
    regresses on gain / ((1 - a) normalizer + a m largest gain), where m is the mean of the relative
    normalizers over queries. The bias is proportional to a, and the variance decreases with the
    number n of training queries. The best a is therefore of the form n0 / (n0 + n). ``"auto"`` uses
    n0 = 300, or n0 = 1000 for losses that count relevant documents (recall, AUC, average
    precision). It tends to 0, which is all that consistency requires.

    Normalizers themselves have no useful mean if labels are wide. With the gain 2^y - 1 and labels
    from 0 to 30, a few of them are larger than all others together. A share of their mean would
    leave only targets near 0 to nearly all queries. Relative normalizers do not depend on the size
    of the gains of a query, and the largest target of each query keeps its order of magnitude.

    A fixed number above 0 does not tend to 0. Labels with a small normalizer then have too little
    influence, however many queries there are, and the limit is the best ranking only if the
    normalizer and the largest gain of a query are certain. `calibrated_over` describes this.

    The normalizer belongs to the whole query, and the probabilities of the labels of a single
    document do not contain it. So a classifier does not learn the labels. It learns the targets as
    weights of two classes (`models.DocumentModel`), and its limit is that of a regressor.
    """

    shrinkage: str | float
    measure: Any  # a `NormalizedMeasure`, or one with the same `gains` and `normalizer`
    _half = 300  # n0: with so many training queries, "auto" is 1/2

    def encode(self, relevance: NDArray[np.float64], queries: Queries) -> Any:
        """Compute the gains divided by the normalizer of the query."""
        return self.shrunken_targets(relevance, queries, 0.0)

    def training_targets(self, relevance: NDArray[np.float64], queries: Queries) -> Any:
        """Compute the targets with the relative normalizers moved to their mean by `shrinkage`."""
        return self.shrunken_targets(relevance, queries, self.share(queries.n_queries))

    def label_sums(self, relevance: NDArray[np.float64], queries: Queries) -> LabelSums:
        """Return the sum of the relative normalizers, and how many of them are above 0."""
        gains = self.measure.gains(relevance)
        relative = relative_normalizer(gains, self.measure.normalizer(gains, queries), queries)
        some = relative[relative > 0]
        return LabelSums(queries.n_queries, float(some.sum()), len(some))

    def targets_of_part(
        self, relevance: NDArray[np.float64], queries: Queries, sums: LabelSums
    ) -> Any:
        """Compute the targets of some queries, with the mean relative normalizer of all."""
        mean = sums.relative_normalizer / max(sums.n_normalizers, 1)
        return self.shrunken_targets(relevance, queries, self.share(sums.n_queries), mean)

    def share(self, n_queries: int) -> float:
        """Return how far normalizers are moved if there are so many training queries."""
        if isinstance(self.shrinkage, str):
            return self._half / (self._half + n_queries)
        return self.shrinkage

    def shrunken_targets(
        self,
        relevance: NDArray[np.float64],
        queries: Queries,
        share: float,
        mean: float | None = None,
    ) -> Any:
        """Compute the targets with the relative normalizers moved towards their mean.

        Parameters
        ----------
        relevance : ndarray of shape (n_documents,)
        queries : Queries
        share : float
            How far the relative normalizers are moved, from 0 (not at all) to 1 (they all equal the
            mean).
        mean : float, default=None
            Their mean, if it is known. None means that of these queries.

        Returns
        -------
        targets : ndarray of shape (n_documents,) or PairTargets
        """
        gains = self.measure.gains(relevance)
        normalizer = self.shrunken_normalizer(gains, queries, share, mean)
        return gains * queries.broadcast(inverse(normalizer))

    def shrunken_normalizer(
        self,
        gains: NDArray[np.float64],
        queries: Queries,
        share: float,
        mean: float | None = None,
    ) -> NDArray[np.float64]:
        """Compute the normalizers, and move the relative ones towards their mean over queries.

        Parameters
        ----------
        gains : ndarray of shape (n_documents,)
        queries : Queries
        share : float
            How far the relative normalizers are moved, from 0 to 1.
        mean : float, default=None
            As in `shrunken_targets`.

        Returns
        -------
        normalizer : ndarray of shape (n_queries,)
            A normalizer of 0, for which the loss is undefined, stays 0 and does not enter the mean.
        """
        normalizer: NDArray[np.float64] = self.measure.normalizer(gains, queries)
        defined = normalizer > 0
        if share > 0 and defined.any():
            if mean is None:
                mean = mean_of_positive(relative_normalizer(gains, normalizer, queries))
            moved = (1 - share) * normalizer + share * mean * queries.max(gains)
            normalizer = np.where(defined, moved, 0.0)
        return normalizer

    def check(self, labels: Any) -> None:
        share = self.shrinkage
        if isinstance(share, str):
            valid = share == "auto"
        else:
            valid = isinstance(share, Real) and 0 <= share <= 1
        if not valid:
            raise ValueError(f"shrinkage must be 'auto' or a number in [0, 1]; got {share!r}.")
        super().check(labels)

    def _shrinks(self) -> bool:
        """Whether `shrinkage` is a fixed number above 0, which more data do not lower."""
        return isinstance(self.shrinkage, Real) and float(self.shrinkage) > 0

    def _as_shrunken(self, over: str) -> str:
        """Return `calibrated_over`, where `over` is its value for targets without shrinkage."""
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

    @property
    def graded_targets(self) -> bool:
        return False


def relative_normalizer(
    gains: NDArray[np.float64], normalizer: NDArray[np.float64], queries: Queries
) -> NDArray[np.float64]:
    """Compute normalizer / largest gain of each query, or 0 where no gain is above 0."""
    largest = queries.max(gains)
    some = largest > 0
    return np.where(some, normalizer / np.where(some, largest, 1.0), 0.0)


def mean_of_positive(numbers: NDArray[np.float64]) -> float:
    """Compute the mean of the numbers above 0, or return 0 if there is none."""
    some = numbers[numbers > 0]
    return float(some.mean()) if len(some) else 0.0


def without_shrinkage(loss: Loss) -> Loss:
    """Return a copy of the loss with shrinkage 0, or the loss itself if it has no shrinkage."""
    return clone(loss).set_params(shrinkage=0.0) if isinstance(loss, NormalizedLoss) else loss
