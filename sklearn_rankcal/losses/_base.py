"""The base class of losses. Labels come in, and the targets that a model learns come out."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.measures import Measure, inverse
from sklearn_rankcal.queries import Queries, Ranking
from sklearn_rankcal.targets import SCORES, Space


class Loss(BaseEstimator):
    """A ranking loss, the surrogate targets calibrated for it, and its decoder.

    To add a loss, write a subclass. Its `measure` is what a ranking is worth, and its `encode`
    computes the targets. `check_loss` (`sklearn_rankcal.estimator_checks`) tests both against
    exhaustive enumeration.

    Attributes
    ----------
    space : Space
        Where targets and surrogate predictions live: `targets.SCORES`, one number per document;
        `targets.PAIRS`, the antisymmetric differences of all pairs, as `PairTargets`; or
        `targets.SYMMETRIC_PAIRS`, a symmetric number for each pair and each document.
    calibrated_over : str
        The distributions of the labels over which the loss is calibrated, with the theorem. That
        is, least squares on the targets of `fit`, decoded, leads to the best ranking. It may depend
        on parameters: with a fixed `shrinkage` above 0 there are fewer (`NormalizedLoss`).
    calibrated_everywhere : bool
        Whether the loss is calibrated over every distribution.
    calibrated_over_with_classifier : str
        As `calibrated_over`, for a classifier in the place of the regressor. It learns
        `encode_documents`.
    """

    space: Space = SCORES

    # ---------------------------------------------------------------- what a subclass writes

    @property
    def measure(self) -> Measure:
        """What a ranking is worth: a measure with the parameters of this loss."""
        raise NotImplementedError

    # These are properties, so that a subclass can let them depend on parameters or overwrite them
    # with plain attributes.
    @property
    def calibrated_over(self) -> str:
        return ""

    @property
    def calibrated_everywhere(self) -> bool:
        return True

    @property
    def calibrated_over_with_classifier(self) -> str:
        return self.calibrated_over

    def encode(self, relevance: NDArray[np.float64], queries: Queries) -> Any:
        """Regression targets alpha(y) of every row; 0 in queries where the loss is undefined.

        Parameters
        ----------
        relevance : ndarray of shape (n_documents,)
            Labels.
        queries : Queries
            Which rows belong together.

        Returns
        -------
        targets : ndarray of shape (n_documents,), or PairTargets
            The latter where the space has an entry for each pair.
        """
        raise NotImplementedError

    def training_targets(self, relevance: NDArray[np.float64], queries: Queries) -> Any:
        """The targets that `fit` uses: those of `encode`, or a variant with a smaller variance.

        A variant must tend to the targets of `encode` as the number of queries grows.
        """
        return self.encode(relevance, queries)

    def calibrated_measure(self, ranking: Ranking, labels: Any) -> NDArray[np.float64]:
        """The value of every query for which the targets are calibrated; larger is better.

        It is the measure, unless the measure is a quotient whose denominator the targets leave out.
        """
        return self.measure.per_query(ranking, labels)

    def regret_constant(self, n_documents: int) -> float | None:
        """c with regret(loss) <= c * sqrt(surrogate regret) at `n_documents`; None: no such bound.

        The surrogate regret of a query is the squared distance of its predictions from the
        conditional expectation of the targets, entry by entry as the exact decoder takes them.
        """
        return None

    def encode_documents(self, relevance: NDArray[np.float64]) -> NDArray[np.float64]:
        """Targets that depend on a document's own label alone, for a classifier's `predict_proba`.

        Raises
        ------
        ValueError
            The loss has no such targets.
        """
        raise ValueError(
            f"{type(self).__name__} has no per-document targets, so a classifier cannot stand in "
            "for the regressor. Use a regressor, or loss='dcg'."
        )

    # ---------------------------------------------------------------- what every loss has

    def defined(self, labels: Any, queries: Queries) -> NDArray[np.bool_]:
        """Whether the measure is defined for each query. `fit` leaves the other queries out."""
        return self.measure.defined(labels, queries)

    def check(self, labels: Any) -> None:
        """Raise unless the parameters are valid and the loss can take these labels.

        Raises
        ------
        ValueError
            If a parameter or the labels are out of range, or if labels are preferences and the loss
            needs a relevance of every row.
        """
        if isinstance(labels, Preferences) and not self.measure.takes_preferences:
            raise ValueError(
                f"{type(self).__name__} needs a relevance of every row. Labels made of preferences "
                "go with loss='pd' and loss='pd_by_scores'."
            )
        self.measure.check(labels)

    def resolve(self, relevance: Any) -> Loss:
        """A copy of the loss whose parameters that depend on data are set from training labels."""
        self.check(relevance)
        return clone(self)

    def metric(
        self, relevance: Any, ranks: NDArray[np.int64], queries: Queries
    ) -> NDArray[np.float64]:
        """`measure` of rankings given as positions, 1 = top."""
        self.check(relevance)
        return self.measure.per_query(Ranking.from_ranks(ranks, queries), relevance)


class NormalizedLoss(Loss):
    """Base class of losses whose targets are the gain of a document over a normalizer of its query.

    Notes
    -----
    The normalizer makes the targets calibrated, but it also makes them noisy: a query with little
    relevance gets large targets. The parameter `shrinkage`, a, is a compromise: `fit` regresses on
    gain / ((1 - a) normalizer + a mean normalizer). The bias is proportional to a, and the variance
    falls with the number n of training queries. The best a is therefore of the form n0 / (n0 + n).
    ``"auto"`` takes n0 = 300, or 1000 where relevant documents are counted (recall, AUC, average
    precision). It tends to 0, which is all that consistency requires.

    A fixed number above 0 does not tend to 0. However many queries there are, labels with a small
    normalizer then count less than they should, and the limit is best only where the normalizer of
    a query is certain. `calibrated_over` describes this. The same holds for a classifier, which
    learns the gain of a document by itself: the normalizer belongs to the whole query, and the
    class probabilities of a single document do not contain it.
    """

    shrinkage: str | float
    measure: Any  # a `NormalizedMeasure`, or one with the same `gains` and `normalizer`
    _half = 300  # training queries at which "auto" shrinks a normaliser half-way to its mean

    def encode(self, relevance: NDArray[np.float64], queries: Queries) -> Any:
        """Gains over the query's normaliser."""
        return self.shrunken_targets(relevance, queries, 0.0)

    def encode_documents(self, relevance: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.measure.gains(relevance)

    def training_targets(self, relevance: NDArray[np.float64], queries: Queries) -> Any:
        """Gains over the normaliser, which is drawn to its mean over queries by `shrinkage`."""
        share = self.shrinkage
        if isinstance(share, str):
            share = self._half / (self._half + queries.n_queries)
        return self.shrunken_targets(relevance, queries, share)

    def shrunken_targets(
        self, relevance: NDArray[np.float64], queries: Queries, share: float
    ) -> Any:
        """Gains over the normaliser, drawn to its mean over queries by `share`."""
        gains = self.measure.gains(relevance)
        return gains * queries.broadcast(inverse(self.shrunken_normalizer(gains, queries, share)))

    def shrunken_normalizer(
        self, gains: NDArray[np.float64], queries: Queries, share: float
    ) -> NDArray[np.float64]:
        """Normaliser of each query, drawn to the mean over queries by `share`; 0 stays 0."""
        normalizer = self.measure.normalizer(gains, queries)
        defined = normalizer > 0
        if share > 0 and defined.any():
            mean = normalizer[defined].mean()
            normalizer = np.where(defined, (1 - share) * normalizer + share * mean, 0.0)
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
        """Whether normalisers are drawn to their mean by a share that data do not lower."""
        return isinstance(self.shrinkage, Real) and float(self.shrinkage) > 0

    def _as_shrunken(self, over: str) -> str:
        """`calibrated_over` from that of the targets without shrinking."""
        if not self._shrinks():
            return over
        return (
            "distributions that leave a query's normaliser certain, no others, because "
            f"shrinkage={self.shrinkage!r} does not fall with more data; with 'auto' or 0: {over}"
        )

    @property
    def calibrated_everywhere(self) -> bool:
        return not self._shrinks()

    @property
    def calibrated_over_with_classifier(self) -> str:
        over = without_shrinkage(self).calibrated_over
        return (
            "distributions that leave a query's normaliser certain, no others, because a "
            "classifier learns the worth of a document, which the normaliser is no part of; with "
            f"a regressor: {over}"
        )


def without_shrinkage(loss: Loss) -> Loss:
    """The loss whose targets of `fit` are those of `encode`."""
    return clone(loss).set_params(shrinkage=0.0) if isinstance(loss, NormalizedLoss) else loss
