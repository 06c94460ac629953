"""Loss: labels come in, regression targets come out; and the measure the targets are made for."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from sklearn_rankcal.labels._preferences import Preferences
from sklearn_rankcal.measures._formulas import Ranking
from sklearn_rankcal.queries._queries import Queries

#: No table has more rows than this.
LARGEST_CUTOFF = 2**63 - 1


class Loss(BaseEstimator):
    """A ranking loss, the surrogate targets calibrated for it, and its decoder.

    Subclass it to add a loss: `encode` makes the targets, `measure` computes the ranking measure
    from a `Ranking`, and `check_loss` (`sklearn_rankcal.estimator_checks`) tests both against
    exhaustive enumeration.

    Attributes
    ----------
    space : str
        Where surrogate predictions live: ``"scores"``, one number per document; ``"pairs"``, the
        antisymmetric differences of all pairs, as a `PairTargets`; ``"sym_pairs"``, a symmetric
        number for each pair and each document.
    default_decoder : str
        What ``decoder="auto"`` stands for.
    calibrated_over : str
        The distributions of the labels over which least squares on the targets of `fit`, decoded,
        is calibrated for the loss, with the theorem that says so. It depends on parameters: a
        fixed `shrinkage` above 0 is calibrated over fewer (`NormalizedLoss`).
    calibrated_everywhere : bool
        Whether that is every distribution.
    calibrated_over_by_grades : str
        The same of a classifier in the regressor's place, which learns `encode_documents`.
    positive_only : bool
        Whether labels must be non-negative.
    takes_preferences : bool
        Whether labels may be `Preferences` between documents instead of a relevance of each.
    """

    space = "scores"
    default_decoder = "sort"
    positive_only = False
    takes_preferences = False

    # properties, so that a subclass may make them depend on parameters, or write plain attributes
    @property
    def calibrated_over(self) -> str:
        return ""

    @property
    def calibrated_everywhere(self) -> bool:
        return True

    @property
    def calibrated_over_by_grades(self) -> str:
        return self.calibrated_over

    # ---------------------------------------------------------------- what a subclass writes

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
            The latter where the space is not ``"scores"``.
        """
        raise NotImplementedError

    def training_targets(self, relevance: NDArray[np.float64], queries: Queries) -> Any:
        """What `fit` regresses on: `encode`, or a variant of it of smaller variance.

        A variant must tend to `encode` as the number of queries grows.
        """
        return self.encode(relevance, queries)

    def measure(self, ranked: Ranking, relevance: NDArray[np.float64]) -> NDArray[np.float64]:
        """The measure of each query, higher is better, NaN where undefined.

        Parameters
        ----------
        ranked : Ranking
            The rows of every query, best first.
        relevance : ndarray of shape (n_documents,)
            Labels, row layout.

        Returns
        -------
        values : ndarray of shape (n_queries,)
        """
        raise NotImplementedError

    def calibrated_measure(
        self, ranked: Ranking, relevance: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """What the targets are calibrated for, per query, higher is better.

        The measure; unless that is a quotient whose denominator the targets leave out.
        """
        return self.measure(ranked, relevance)

    def defined(self, relevance: NDArray[np.float64], queries: Queries) -> NDArray[np.bool_]:
        """Queries that say something; the others are dropped from `fit`."""
        return np.ones(queries.n_queries, dtype=bool)

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

    def check(self, relevance: NDArray[np.float64]) -> None:
        """Raise ValueError when the loss cannot take these labels."""
        if self.positive_only and relevance.min() < 0:
            raise ValueError(
                "Negative values in data passed to "
                f"{type(self).__name__}: relevance must be >= 0; got {relevance.min():g}."
            )

    def accept(self, labels: Any) -> None:
        """`check` relevance, or refuse preferences where the loss takes none."""
        if not isinstance(labels, Preferences):
            self.check(labels)
        elif not self.takes_preferences:
            raise ValueError(
                f"{type(self).__name__} needs a relevance of every row. Labels made of preferences "
                "go with loss='pd' and loss='pd_by_scores'."
            )

    def resolve(self, relevance: Any) -> Loss:
        """A copy in which parameters left to the data are set from training labels."""
        self.accept(relevance)
        return clone(self)

    def metric(
        self, relevance: Any, ranks: NDArray[np.int64], queries: Queries
    ) -> NDArray[np.float64]:
        """`measure` of rankings given as positions, 1 = top."""
        self.accept(relevance)
        return self.measure(Ranking.from_ranks(ranks, queries), relevance)


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
    _half = 300  # training queries at which "auto" shrinks a normaliser half-way to its mean

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
    def calibrated_over_by_grades(self) -> str:
        over = without_shrinkage(self).calibrated_over
        return (
            "distributions that leave a query's normaliser certain, no others, because a "
            "classifier learns the worth of a document, which the normaliser is no part of; with "
            f"a regressor: {over}"
        )

    def normalizer(self, worth: NDArray[np.float64], queries: Queries) -> NDArray[np.float64]:
        """The normaliser of each query from `encode_documents`, 0 where the loss is undefined."""
        raise NotImplementedError

    def encode(self, relevance: NDArray[np.float64], queries: Queries) -> Any:
        """Worth over the query's normaliser."""
        return self._targets(relevance, queries, 0.0)

    def training_targets(self, relevance: NDArray[np.float64], queries: Queries) -> Any:
        """Worth over the shrunken normaliser."""
        if isinstance(self.shrinkage, str):
            return self._targets(relevance, queries, self._half / (self._half + queries.n_queries))
        return self._targets(relevance, queries, self.shrinkage)

    def _targets(self, relevance: NDArray[np.float64], queries: Queries, a: float) -> Any:
        worth = self.encode_documents(relevance)
        normalizer = self._shrunken(worth, queries, a)
        scale = np.where(normalizer > 0, 1.0 / np.where(normalizer > 0, normalizer, 1.0), 0.0)
        return worth * queries.broadcast(scale)

    def _shrunken(
        self, worth: NDArray[np.float64], queries: Queries, a: float
    ) -> NDArray[np.float64]:
        """Normalisers drawn to their mean by a share a; 0 stays 0."""
        normalizer = self.normalizer(worth, queries)
        defined = normalizer > 0
        if a > 0 and defined.any():
            mean = normalizer[defined].mean()
            normalizer = np.where(defined, (1 - a) * normalizer + a * mean, 0.0)
        return normalizer

    def defined(self, relevance: NDArray[np.float64], queries: Queries) -> NDArray[np.bool_]:
        return self.normalizer(self.encode_documents(relevance), queries) > 0

    def check(self, relevance: NDArray[np.float64]) -> None:
        a = self.shrinkage
        valid = a == "auto" if isinstance(a, str) else isinstance(a, Real) and 0 <= a <= 1
        if not valid:
            raise ValueError(f"shrinkage must be 'auto' or a number in [0, 1]; got {a!r}.")
        super().check(relevance)


def without_shrinkage(loss: Loss) -> Loss:
    """The loss whose targets of `fit` are those of `encode`."""
    return clone(loss).set_params(shrinkage=0.0) if isinstance(loss, NormalizedLoss) else loss


class BinaryLoss(Loss):
    """A loss on binary relevance; `threshold` makes graded labels binary."""

    threshold: float | None

    def relevant(self, relevance: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which rows are relevant."""
        return binary_relevance(relevance, self.threshold)

    def check(self, relevance: NDArray[np.float64]) -> None:
        self.relevant(relevance)

    def encode_documents(self, relevance: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.relevant(relevance).astype(np.float64)


def binary_relevance(relevance: NDArray[np.float64], threshold: float | None) -> NDArray[np.bool_]:
    """Rows with relevance >= threshold; without a threshold only 0 and 1 are accepted."""
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
            "threshold=t to count relevance >= t as relevant: to the metric, the scorer, or the "
            "loss object, as in loss=MAP(threshold=t) of sklearn_rankcal.losses."
        )
    return relevant


def check_cutoff(name: str, value: Any) -> None:
    """Raise unless `value` is None or a whole number >= 1."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ValueError(f"{name} must be a whole number >= 1 or None; got {value!r}.")
    if value < 1:
        raise ValueError(f"{name} must be at least 1; got {value}.")
    if value > LARGEST_CUTOFF:
        raise ValueError(
            f"{name} must be at most {LARGEST_CUTOFF}, more rows than a table can have; pass None "
            "to count every place."
        )


def check_real(name: str, value: Any) -> None:
    """Raise unless `value` is a finite real number."""
    try:
        finite = isinstance(value, Real) and bool(np.isfinite(float(value)))
    except OverflowError:  # a Python integer beyond float64
        finite = False
    if not finite:
        raise ValueError(f"{name} must be finite, a real number; got {value!r}.")


def exp2_minus_1(relevance: NDArray[np.float64]) -> NDArray[np.float64]:
    """2**y - 1, to full precision also where y is so small that 2**y rounds to 1."""
    with np.errstate(over="ignore"):  # the callers refuse what overflows
        large = np.exp2(relevance) - 1
        small = np.expm1(relevance * np.log(2))
    return np.where(np.abs(relevance) < 0.5, small, large)
