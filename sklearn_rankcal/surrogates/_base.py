"""The base class of surrogates. Scores of documents come in; a value for each query comes out."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone

from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.losses import GainLoss, Loss
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._numbers import LARGEST, read_numbers
from sklearn_rankcal.utils._parameters import check_choice
from sklearn_rankcal.utils._typing import Floats


class Evaluation(NamedTuple):
    """What a surrogate returns for the scores of some queries.

    Attributes
    ----------
    value : ndarray of shape (n_queries,)
        The value of each query.
    gradient, curvature : ndarray of shape (n_documents,) or None
        The first and the second derivative of it by the score of each document.
    """

    value: Floats
    gradient: Floats | None = None
    curvature: Floats | None = None


class Surrogate(BaseEstimator):
    """Base class of surrogates, functions psi(v, s) of the utilities and scores of a query.

    v holds the utilities of the documents of a query under its labels, which are the targets of a
    loss, and s holds the scores. A ranker minimises the mean of psi over queries. A surrogate is
    order preserving if scores that minimise its expected value sort the documents by their expected
    utilities E[v]. Then it is calibrated for every positional measure with these utilities
    (Calauzènes, Usunier and Gallinari, 2013, definition 3.1 and theorem 3.2).

    To add a surrogate, write a subclass with a method `_evaluate` and the attributes below.

    Attributes
    ----------
    order_preserving : bool
        Whether the surrogate is order preserving, under the condition that `theorem` states.
    theorem : str
        Why the surrogate is order preserving, or why it is not, with the source.
    convex : bool
        Whether psi is a convex function of the scores.
    shift_invariant, scale_invariant : bool
        Whether psi does not change if the same number is added to all scores of a query, or if
        they are multiplied by the same positive number.
    takes_negative, takes_preferences : bool
        Whether utilities may be negative, and whether v may be `Preferences` between documents.
    affine : bool
        Whether psi is an affine function of v, up to a number that does not depend on s. Only then
        v may be a mean.
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

        What `derivatives` does not ask for may be left out.
        """
        raise NotImplementedError

    def _minimizer(self, expected: Floats, queries: Queries) -> Floats | None:
        """Return the scores that minimise the expected value, or None without a closed form."""
        return None

    def constant(
        self, n_documents: int, largest: float, total: float | None = None
    ) -> float | None:
        """Return the constant c of the bound regret <= c C_phi(2) sqrt(surrogate regret), or None.

        The regret is that of a positional measure with the discounts phi; see
        `PositionalLoss.regret_constant`. `largest` bounds the expected utility of a document, and
        `total` their sum; None means n_documents times `largest`.
        """
        return None

    def _check_parameters(self) -> None:
        """Raise an error unless the parameters are valid."""

    def warn_of_unused(self, preferences: Preferences) -> None:
        """Warn if the surrogate leaves out what is in the weights of preferences."""

    # ---------------------------------------------------------------- common to all surrogates

    def targets(self, loss: Loss, labels: Any, queries: Queries) -> Any:
        """Compute what `evaluate` takes as v from the labels, for the measure of a loss on scores.

        By default these are `Loss.training_targets`, of a loss that `Loss.resolve` returned.
        ValueError is raised if the loss and the surrogate do not fit each other.
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
        """Raise ValueError if the targets of the loss are means that the surrogate cannot use."""
        if loss.averages_targets and not self.affine:
            raise ValueError(
                f"{type(self).__name__} is not an affine function of the utilities, whose "
                f"mean {type(loss).__name__} computes. Use a surrogate that is affine, such as "
                "'softmax' or 'pairwise_logistic', or subset_size='all', which takes no mean."
            )

    def _from_loss(self, loss: Loss, labels: Any, queries: Queries) -> Floats:
        targets: Floats = loss.training_targets(labels, queries)
        return targets

    def resolve(self, targets: Any) -> Self:
        """Return a copy of the surrogate, whose parameters that depend on data follow `targets`."""
        self.check(targets)
        return clone(self._with_defaults(targets))

    def check(self, targets: Any) -> None:
        """Raise ValueError unless the parameters are valid and the surrogate takes the targets."""
        self._check_parameters()
        if isinstance(targets, Preferences):
            if not self.takes_preferences:
                raise ValueError(
                    f"{type(self).__name__} needs a utility of every document; it does not take "
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
            How many derivatives are needed: none, the gradient, or also the diagonal of the
            Hessian matrix.
        n_jobs : int, default=None
            How many threads share the pairs of documents. None means 1, or the number of a
            `joblib.parallel_config`.

        Returns
        -------
        evaluation : Evaluation
            Exponentials of margins are straight lines where they are above e^400. Others can be
            infinite. No number is NaN.

        Raises
        ------
        ValueError
            If a shape is wrong, if a score is NaN or infinite, or if a target is out of range.

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
        ready = self._with_defaults(targets)
        with np.errstate(over="ignore", under="ignore"):
            value, gradient, curvature = ready._evaluate(
                targets, queries.gather(s), grouped, derivatives, n_jobs
            )
        return Evaluation(
            value,
            None if derivatives < 1 or gradient is None else queries.scatter(gradient),
            None if derivatives < 2 or curvature is None else queries.scatter(curvature),
        )

    def _with_defaults(self, targets: Any) -> Self:
        """Return a surrogate whose parameters that depend on data are set, itself if they are."""
        return self

    def value(self, targets: Any, scores: ArrayLike, queries: Queries) -> Floats:
        """Compute the value of each query, an array of shape (n_queries,); see `evaluate`."""
        return self.evaluate(targets, scores, queries, derivatives=0).value

    def gradient(self, targets: Any, scores: ArrayLike, queries: Queries) -> Floats:
        """Compute the derivative by the score of each document; see `evaluate`."""
        gradient = self.evaluate(targets, scores, queries, derivatives=1).gradient
        assert gradient is not None
        return gradient

    def curvature(self, targets: Any, scores: ArrayLike, queries: Queries) -> Floats:
        """Compute the second derivative by the score of each document; see `evaluate`."""
        curvature = self.evaluate(targets, scores, queries, derivatives=2).curvature
        assert curvature is not None
        return curvature

    def minimizer(self, expected: ArrayLike, queries: Queries) -> Floats | None:
        """Return scores that minimise the expected value of each query, in closed form.

        `expected` holds the expected utilities E[v] of the documents. None is returned if the
        expected value depends on more than E[v], or if there is no closed form. A score is infinite
        if the expected value decreases as it grows.
        """
        u = _row_numbers(expected, "expected", queries)
        self.check(u)
        grouped = Queries(queries.offsets)
        with np.errstate(divide="ignore", over="ignore"):
            scores = self._with_defaults(u)._minimizer(queries.gather(u), grouped)
        return None if scores is None else queries.scatter(scores)


class ListwiseSurrogate(Surrogate):
    """Base class of surrogates with the normalizations that listwise methods use.

    With ``normalization="loss"`` the utilities are those of the loss, as Ravikumar et al. (2011)
    recommend. With ``"own"`` they are those that the method used when it was published, which is
    not calibrated for NDCG (their proposition 7).
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
        """Compute the utilities of the method as it was published."""
        raise NotImplementedError


def gains(loss: Loss, labels: Floats) -> Floats:
    """Return the gains of a loss, which nothing normalizes."""
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
