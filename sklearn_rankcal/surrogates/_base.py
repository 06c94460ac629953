"""The base class of surrogates, which map the scores of documents to a value for each query."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone

from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.losses import GainLoss, Loss
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._messages import check_choice
from sklearn_rankcal.utils._numbers import LARGEST, Floats, read_numbers


class Evaluation(NamedTuple):
    """The value of a surrogate and its derivatives.

    Attributes
    ----------
    value : ndarray of shape (n_queries,)
        The value of each query.
    gradient, curvature : ndarray of shape (n_documents,) or None
        First and second derivative of the value with respect to the score of each document.
    """

    value: Floats
    gradient: Any = None
    curvature: Any = None


class Surrogate(BaseEstimator):
    """Base class of surrogates, functions psi(v, s) of the utilities and scores of a query.

    v holds the utilities of the documents under the labels (the targets of a loss), and s holds
    their scores. A ranker minimises the mean of psi over queries.

    A surrogate is order preserving if the scores that minimise its expected value sort the
    documents by their expected utilities E[v]. It is then calibrated for every positional measure
    with these utilities (Calauzènes, Usunier and Gallinari, 2013, definition 3.1 and theorem 3.2).

    To add a surrogate, write a subclass with a method `_evaluate` and the attributes below. Test it
    with `sklearn_rankcal.estimator_checks.check_surrogate`.

    Attributes
    ----------
    order_preserving : bool
        Whether the surrogate is order preserving, under the condition stated in `theorem`.
    theorem : str
        Why the surrogate is or is not order preserving, with the source.
    convex : bool
        Whether psi is a convex function of the scores.
    shift_invariant, scale_invariant : bool
        Whether psi stays the same if all scores of a query are shifted by the same number, or
        multiplied by the same positive number.
    takes_negative, takes_preferences : bool
        Whether utilities may be negative, and whether v may be `Preferences` between documents.
    affine : bool
        Whether psi is an affine function of v, up to a term that does not depend on s. Only an
        affine surrogate can be evaluated at a mean of utilities.
    """

    order_preserving: bool = True
    theorem: str = ""
    convex: bool = True
    shift_invariant: bool = False
    scale_invariant: bool = False
    takes_negative: bool = False
    takes_preferences: bool = False
    affine: bool = True

    # ---------------------------------------------------------------- to be defined by a subclass

    def _evaluate(
        self, v: Floats, s: Floats, queries: Queries, derivatives: int, n_jobs: int | None
    ) -> Evaluation:
        """Evaluate checked arrays. The rows of each query are contiguous (``queries.order`` None).

        Derivatives above order `derivatives` may be left out, and the second one always.
        """
        raise NotImplementedError

    def _derivatives(
        self, v: Any, s: Floats, queries: Queries, derivatives: int, n_jobs: int | None
    ) -> Evaluation:
        """Evaluate checked arrays, in which the rows of each query are contiguous."""
        with np.errstate(over="ignore", under="ignore"):
            found = self._evaluate(v, s, queries, derivatives, n_jobs)
        if derivatives and found.gradient is None:
            raise NotImplementedError(
                f"{type(self).__name__} must return a gradient. Test a surrogate with "
                "estimator_checks.check_surrogate(surrogate)."
            )
        return found

    def _minimizer(self, expected: Floats, queries: Queries) -> Floats | None:
        """Return the scores that minimise the expected value, or None if no closed form exists."""
        return None

    def constant(
        self, n_documents: int, largest: float, total: float | None = None
    ) -> float | None:
        """Return the constant c of the bound regret <= c C_phi(2) sqrt(surrogate regret).

        The bound holds for the regret of a positional measure with discounts phi; see
        `PositionalLoss.regret_constant`.

        Parameters
        ----------
        n_documents : int
            Number of documents of the query.
        largest : float
            Upper bound on the expected utility of a document.
        total : float, default=None
            Upper bound on the sum of the expected utilities. None means n_documents * largest.

        Returns
        -------
        constant : float or None
            The constant, or None if no such bound is known.
        """
        return None

    def _check_parameters(self) -> None:
        """Raise an error unless the parameters are valid."""

    def warn_of_unused(self, preferences: Preferences) -> None:
        """Warn if the surrogate ignores part of the weights of preferences.

        Parameters
        ----------
        preferences : Preferences
            The weighted preferences between documents.
        """

    # ---------------------------------------------------------------- common to all surrogates

    def targets(self, loss: Loss, labels: Any, queries: Queries) -> Any:
        """Compute the utilities v from the labels.

        By default, these are the `Loss.training_targets` of the loss.

        Parameters
        ----------
        loss : Loss
            A loss on scores, as returned by `Loss.resolve`.
        labels : ndarray of shape (n_documents,) or Preferences
            The labels.
        queries : Queries
            The partition of the rows into queries.

        Returns
        -------
        targets : ndarray of shape (n_documents,) or Preferences
            The utilities. Preferences are returned unchanged if `takes_preferences`.
        """
        if self.takes_preferences and isinstance(labels, Preferences):
            return labels
        self.check_loss(loss)
        if loss.space.is_pairwise:
            raise ValueError(
                f"{type(self).__name__} is a function of scores, but {type(loss).__name__} learns "
                "pairs of documents. Use loss='pd_by_scores' or 'map_by_scores'."
            )
        targets = self._from_loss(loss, labels, queries)
        self.check(targets)
        return targets

    def check_loss(self, loss: Loss) -> None:
        """Raise ValueError if the loss averages utilities and the surrogate is not affine.

        Parameters
        ----------
        loss : Loss
            The loss.
        """
        if loss.averages_targets and not self.affine:
            raise ValueError(
                f"{type(self).__name__} is not an affine function of the utilities, whose "
                f"mean {type(loss).__name__} computes. Use an affine surrogate, such as "
                "'softmax' or 'pairwise_logistic', or subset_size='all', which takes no mean."
            )

    def _from_loss(self, loss: Loss, labels: Any, queries: Queries) -> Floats:
        targets: Floats = loss.training_targets(labels, queries)
        return targets

    def resolve(self, targets: Any) -> Self:
        """Return a copy of the surrogate with data-dependent parameters filled in.

        Parameters
        ----------
        targets : ndarray of shape (n_documents,) or Preferences
            The utilities, see `targets`.

        Returns
        -------
        surrogate : Surrogate
            The copy.
        """
        self.check(targets)
        return clone(self._with_defaults(targets))

    def check(self, targets: Any) -> None:
        """Raise ValueError if a parameter is invalid or the surrogate does not accept the targets.

        Parameters
        ----------
        targets : ndarray of shape (n_documents,) or Preferences
            The utilities, see `targets`.
        """
        self._check_parameters()
        if isinstance(targets, Preferences):
            if not self.takes_preferences:
                raise ValueError(
                    f"{type(self).__name__} needs a utility for every document; it does not take "
                    "preferences between documents."
                )
            return
        lowest = targets.min()
        if lowest < 0 and not self.takes_negative:
            raise ValueError(
                f"{type(self).__name__} needs utilities >= 0; got {lowest:g}. Use a surrogate "
                "that takes negative utilities, such as 'pointwise_squared' or 'pairwise_squared', "
                "or a loss with utilities >= 0."
            )

    def evaluate(
        self,
        targets: Any,
        scores: ArrayLike,
        queries: Queries,
        *,
        derivatives: int = 2,
        n_jobs: int | None = None,
    ) -> Evaluation:
        """Compute the value of each query, and its derivatives by the scores.

        Parameters
        ----------
        targets : array-like of shape (n_documents,) or Preferences
            The utilities of the documents, see `targets`.
        scores : array-like of shape (n_documents,)
            Finite scores.
        queries : Queries
            The partition of the rows into queries.
        derivatives : {0, 1, 2}, default=2
            0 computes only the value, 1 also the gradient, and 2 also the diagonal of the Hessian
            matrix.
        n_jobs : int, default=None
            Number of threads that share the pairs of documents. None means 1, or the value of the
            active `joblib.parallel_config`.

        Returns
        -------
        evaluation : Evaluation
            The value and the derivatives that were requested. An exponential of a margin continues
            as a straight line above e^400; other exponentials can be infinite. No entry is NaN.

        Examples
        --------
        >>> from sklearn_rankcal.queries import Queries
        >>> from sklearn_rankcal.surrogates import Softmax
        >>> result = Softmax().evaluate([1.0, 0.0], [0.0, 0.0], Queries.single(2))
        >>> result.value.round(3).tolist(), result.gradient.tolist(), result.curvature.tolist()
        ([0.693], [-0.5, 0.5], [0.25, 0.25])
        """
        if derivatives not in (0, 1, 2) or isinstance(derivatives, bool):
            raise ValueError(f"derivatives must be 0, 1 or 2; got {derivatives!r}.")
        s = _row_numbers(scores, "scores", queries)
        grouped = queries if queries.order is None else Queries(queries.offsets)
        if isinstance(targets, Preferences):
            if not targets.queries.same_partition(queries):
                raise ValueError("The preferences are between documents of other queries.")
            if queries.order is not None:
                place = queries.scatter(np.arange(queries.n_rows))
                targets = Preferences(
                    grouped, place[targets.winner], place[targets.loser], targets.weight
                )
        else:
            targets = queries.gather(_row_numbers(targets, "targets", queries))
            if np.abs(targets).max(initial=0.0) > LARGEST**2:
                raise ValueError(f"targets must be at most {LARGEST**2:g} in absolute value.")
        self.check(targets)
        value, gradient, curvature = self._with_defaults(targets)._derivatives(
            targets, queries.gather(s), grouped, derivatives, n_jobs
        )
        return Evaluation(
            value,
            None if derivatives < 1 else queries.scatter(gradient),
            None if derivatives < 2 or curvature is None else queries.scatter(curvature),
        )

    def _with_defaults(self, targets: Any) -> Self:
        """Return a surrogate with data-dependent parameters set, or itself if they are set."""
        return self

    def minimizer(self, expected: ArrayLike, queries: Queries) -> Floats | None:
        """Return the scores that minimise the expected value of each query, in closed form.

        Parameters
        ----------
        expected : array-like of shape (n_documents,)
            The expected utility E[v] of each document.
        queries : Queries
            The partition of the rows into queries.

        Returns
        -------
        scores : ndarray of shape (n_documents,) or None
            The minimising scores. A score is infinite if the expected value keeps decreasing as the
            score grows. None if the expected value depends on more than E[v], or if there is no
            closed form.

        Examples
        --------
        >>> from sklearn_rankcal.queries import Queries
        >>> from sklearn_rankcal.surrogates import PointwiseSquared
        >>> PointwiseSquared().minimizer([0.5, 0.25], Queries.single(2)).tolist()
        [0.5, 0.25]
        """
        u = _row_numbers(expected, "expected", queries)
        self.check(u)
        grouped = Queries(queries.offsets)
        with np.errstate(divide="ignore", over="ignore"):
            scores = self._with_defaults(u)._minimizer(queries.gather(u), grouped)
        return None if scores is None else queries.scatter(scores)


class ListwiseSurrogate(Surrogate):
    """Base class of surrogates that offer the normalizations of listwise methods.

    With ``normalization="loss"``, the utilities come from the loss, as Ravikumar et al. (2011)
    recommend. With ``"own"``, they are the utilities of the method's original publication, and the
    method is not calibrated for NDCG (their proposition 7).
    """

    normalization: str
    _theorem: str  # with the utilities of the loss

    def __init__(self, normalization: str = "loss") -> None:
        self.normalization = normalization

    @property
    def order_preserving(self) -> bool:  # type: ignore[override]
        return self.normalization == "loss"

    @property
    def theorem(self) -> str:  # type: ignore[override]
        if self.order_preserving:
            return self._theorem
        return (
            "not calibrated for NDCG (Ravikumar et al., 2011, proposition 7): the utilities are "
            "not those of the loss"
        )

    def _check_parameters(self) -> None:
        check_choice(self.normalization, "normalization", ("loss", "own"))

    def _from_loss(self, loss: Loss, labels: Any, queries: Queries) -> Floats:
        if self.normalization == "loss":
            return super()._from_loss(loss, labels, queries)
        if not isinstance(labels, np.ndarray):
            raise ValueError("normalization='own' needs a relevance of every row.")
        return self._own_utilities(loss, labels, queries)

    def _own_utilities(self, loss: Loss, labels: Floats, queries: Queries) -> Floats:
        """Compute the utilities as the method's original publication defines them."""
        raise NotImplementedError


def gains(loss: Loss, labels: Floats) -> Floats:
    """Return the gains of a loss, without any normalization."""
    if not isinstance(loss, GainLoss):
        raise ValueError(
            f"normalization='own' needs the gains of a document, but {type(loss).__name__} has "
            "none. Use loss='ndcg' or 'dcg'."
        )
    return loss.gains(labels)


def _row_numbers(values: ArrayLike, name: str, queries: Queries) -> Floats:
    """Read one finite number for each row."""
    array: Floats = np.asarray(read_numbers(values, name), dtype=np.float64)
    if array.shape != (queries.n_rows,):
        raise ValueError(
            f"{name} must hold one number for each of the {queries.n_rows} documents; it has shape "
            f"{array.shape}."
        )
    if not np.isfinite(array).all():
        raise ValueError(f"{name} contains NaN or infinity.")
    return array
