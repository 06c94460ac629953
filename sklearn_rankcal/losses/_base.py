"""Loss: labels come in, regression targets come out; and the measure the targets are made for."""

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

    Subclass it to add a loss: `measure` names what a ranking is worth, `encode` makes the targets,
    and `check_loss` (`sklearn_rankcal.estimator_checks`) tests both against exhaustive enumeration.

    Attributes
    ----------
    space : Space
        Where targets and surrogate predictions live: `targets.SCORES`, one number per document;
        `targets.PAIRS`, the antisymmetric differences of all pairs, as `PairTargets`; or
        `targets.SYMMETRIC_PAIRS`, a symmetric number for each pair and each document.
    calibrated_over : str
        The distributions of the labels over which least squares on the targets of `fit`, decoded,
        is calibrated for the loss, with the theorem that says so. It depends on parameters: a
        fixed `shrinkage` above 0 is calibrated over fewer (`NormalizedLoss`).
    calibrated_everywhere : bool
        Whether that is every distribution.
    calibrated_over_with_classifier : str
        The same of a classifier in the regressor's place, which learns `encode_documents`.
    """

    space: Space = SCORES

    # ---------------------------------------------------------------- what a subclass writes

    @property
    def measure(self) -> Measure:
        """What a ranking is worth: a measure with the parameters of this loss."""
        raise NotImplementedError

    # properties, so that a subclass may make them depend on parameters, or write plain attributes
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
        """What `fit` regresses on: `encode`, or a variant of it of smaller variance.

        A variant must tend to `encode` as the number of queries grows.
        """
        return self.encode(relevance, queries)

    def calibrated_measure(self, ranking: Ranking, labels: Any) -> NDArray[np.float64]:
        """What the targets are calibrated for, per query, larger is better.

        It is the measure, unless that is a quotient whose denominator the targets leave out.
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
        """Whether the measure is defined, for every query; `fit` leaves the others out."""
        return self.measure.defined(labels, queries)

    def check(self, labels: Any) -> None:
        """Raise unless the parameters are valid and the loss can take these labels.

        Raises
        ------
        ValueError
            A parameter or the labels are out of range, or labels are preferences and the loss needs
            a relevance of every row.
        """
        if isinstance(labels, Preferences) and not self.measure.takes_preferences:
            raise ValueError(
                f"{type(self).__name__} needs a relevance of every row. Labels made of preferences "
                "go with loss='pd' and loss='pd_by_scores'."
            )
        self.measure.check(labels)

    def resolve(self, relevance: Any) -> Loss:
        """A copy in which parameters left to the data are set from training labels."""
        self.check(relevance)
        return clone(self)

    def metric(
        self, relevance: Any, ranks: NDArray[np.int64], queries: Queries
    ) -> NDArray[np.float64]:
        """`measure` of rankings given as positions, 1 = top."""
        self.check(relevance)
        return self.measure.per_query(Ranking.from_ranks(ranks, queries), relevance)


class NormalizedLoss(Loss):
    """A loss whose targets are a document's own worth over a normaliser of its whole query.

    Notes
    -----
    The normaliser is what makes the targets calibrated, and what makes them noisy: a query with
    little relevance gets large targets. `shrinkage` a trades the one for the other: `fit`
    regresses on worth / ((1 - a) normaliser + a mean normaliser). The bias is proportional to a
    and the variance falls with the number n of training queries, so the best a is of the form
    n0 / (n0 + n); ``"auto"`` is that with n0 = 300, or 1000 where relevant documents are counted
    (recall, AUC, average precision). It tends to 0, which is all that consistency asks. A number
    above 0 stays: however many queries there are, labels with a small normaliser then count less
    than they should, and the limit is best only where the normaliser of a query is certain.
    `calibrated_over` says so. The same holds of a classifier, which learns the worth of a document
    by itself; the normaliser belongs to the whole query, and no single document's class
    probabilities contain it.
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
