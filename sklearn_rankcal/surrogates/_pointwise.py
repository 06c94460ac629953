"""Pointwise surrogates: sums over documents of a function of utility and score."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from sklearn_rankcal.losses import Loss
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.surrogates._base import Evaluation, ListwiseSurrogate, Surrogate, gains
from sklearn_rankcal.surrogates._pair_sums import MARGINS
from sklearn_rankcal.utils._messages import check_choice, check_number
from sklearn_rankcal.utils._numbers import Floats, exceeds


class PointwiseSurrogate(Surrogate):
    """Base class of sums over documents. Subclasses implement `_terms`."""

    def _terms(self, v: Floats, s: Floats) -> tuple[Floats, Floats, Floats]:
        """Return value, first and second derivative of the term of each document."""
        raise NotImplementedError

    def _evaluate(
        self, v: Floats, s: Floats, queries: Queries, derivatives: int, n_jobs: int | None
    ) -> Evaluation:
        value, gradient, curvature = self._terms(v, s)
        return Evaluation(queries.reduce(np.add, value), gradient, curvature)


class PointwiseSquared(PointwiseSurrogate, ListwiseSurrogate):
    """Squared error: psi(v, s) = sum_i (v_i - s_i)^2. `CalibratedRanker` minimises it.

    Parameters
    ----------
    normalization : {"loss", "own"}, default="loss"
        "loss" uses the utilities of the loss. "own" uses its gains without any normalization, as
        regression did before Ravikumar et al. (2011).

    Examples
    --------
    >>> from sklearn_rankcal.queries import Queries
    >>> from sklearn_rankcal.surrogates import PointwiseSquared
    >>> PointwiseSquared().value([1.0, 0.0], [0.5, 0.5], Queries.single(2)).tolist()
    [0.5]
    """

    takes_negative = True
    _theorem = (
        "order preserving (Calauzènes et al., 2013, section 3.1; Ramaswamy et al., 2013, theorem "
        "3): the expected value is least at E[v]"
    )

    def _terms(self, v: Floats, s: Floats) -> tuple[Floats, Floats, Floats]:
        error = s - v
        return np.square(error), 2 * error, np.full(len(s), 2.0)

    def _minimizer(self, expected: Floats, queries: Queries) -> Floats:
        return expected.copy()

    def constant(self, n_documents: int, largest: float, total: float | None = None) -> float:
        """Return sqrt(2) (Calauzènes et al., 2013, table 2)."""
        return float(np.sqrt(2.0))

    def _own_utilities(self, loss: Loss, labels: Floats, queries: Queries) -> Floats:
        return gains(loss, labels)


def _smooth_hinge_minimizer(u: Floats, eta: float, t: float) -> Floats:
    # The minimiser s lies between 0 and t. By symmetry, utilities u and eta - u have minimisers s
    # and t - s. For u <= eta / 2, the upper hinge has slope 1 if s <= t - 1; otherwise both hinges
    # are in their quadratic part.
    low = np.minimum(u, eta - u)
    linear = low / (eta - low)
    score = np.where(linear <= t - 1.0, linear, t * low / eta)
    if t > 2:  # for a utility of eta / 2, every score from 1 to t - 1 is a minimiser
        score = np.where(exceeds(eta, 2 * low, eta), score, t / 2)
    return np.where(exceeds(2 * u, eta, eta), t - score, score)


#: The minimising scores, as functions of the expected utilities, eta and t.
_MINIMIZERS: dict[str, Callable[[Floats, float, float], Floats]] = {
    "logistic": lambda u, eta, t: np.log(u) - np.log(eta - u),
    "exponential": lambda u, eta, t: (np.log(u) - np.log(eta - u)) / 2,
    "squared_hinge": lambda u, eta, t: t * u / eta,
    "smooth_hinge": _smooth_hinge_minimizer,
}
#: The constant of the regret bound, as a function of eta and t.
_CONSTANTS: dict[str, Callable[[float, float], Any]] = {
    "logistic": lambda eta, t: np.sqrt(eta),
    "exponential": lambda eta, t: np.sqrt(eta),
    "squared_hinge": lambda eta, t: np.sqrt(2 * eta) / t,
    "smooth_hinge": lambda eta, t: 2 * np.sqrt(eta) / min(t, 1.0),
}


class PointwiseMargin(PointwiseSurrogate):
    """Convex margins of documents, each relevant with weight v_i and irrelevant with eta - v_i.

    For logistic and exponential margins, it is sum_i v_i phi(s_i) + (eta - v_i) phi(-s_i). For
    hinges, it is sum_i v_i h(t - s_i) + (eta - v_i) h(s_i).

    Parameters
    ----------
    margin : {"logistic", "exponential", "squared_hinge", "smooth_hinge"}, default="logistic"
        phi(d) is log(1 + e^-d) or e^-d. h(x) is max(0, x)^2 or, for ``"smooth_hinge"``, 0 for
        x <= 0, x^2 / 2 up to x = 1, and x - 1/2 above.
    eta : float, default=None
        Upper bound on the utilities. It must be larger than every expected utility; otherwise the
        best score of logistic and exponential margins is infinite. None means twice the largest
        utility in the data.
    t : float, default=1.0
        For hinges, the score above which a relevant document has no loss. Must be positive.

    Notes
    -----
    ``CalibratedRanker(LogisticRegression(), loss="ndcg")`` minimises logistic margins.
    ``CalibratedRanker(LinearSVC(), loss="ndcg")`` minimises the squared hinge, with the decision
    function 2 s / t - 1. Both use the largest utility as eta (`models.DocumentModel`).

    The constants of the regret bound, in the order of `margin`, are sqrt(eta), sqrt(eta),
    sqrt(2 eta) / t and 2 sqrt(eta) / min(t, 1) (Calauzènes et al., 2013, table 2). The paper's
    smooth hinge of width a is a times the smooth hinge with t = 1 / a, evaluated at s / a. For
    a > 2, the regret can exceed the constant 4 sqrt(eta / a) stated there.

    Examples
    --------
    >>> from sklearn_rankcal.queries import Queries
    >>> from sklearn_rankcal.surrogates import PointwiseMargin
    >>> queries = Queries.single(2)
    >>> PointwiseMargin(eta=1.0).minimizer([0.5, 0.25], queries).round(3).tolist()
    [0.0, -1.099]
    >>> PointwiseMargin("squared_hinge", eta=2.0).minimizer([1.0, 0.5], queries).tolist()
    [0.5, 0.25]
    """

    theorem = (
        "order preserving (Calauzènes et al., 2013, table 2): the expected value is least at a "
        "strictly increasing function of E[v_i], as long as 0 < E[v_i] < eta"
    )

    def __init__(self, margin: str = "logistic", eta: float | None = None, t: float = 1.0) -> None:
        self.margin = margin
        self.eta = eta
        self.t = t

    def _check_parameters(self) -> None:
        check_choice(self.margin, "margin", _MINIMIZERS)
        check_number(self.t, "t")
        if self.eta is not None:
            check_number(self.eta, "eta")

    def check(self, targets: Any) -> None:
        """Check the parameters, and that 0 <= v <= eta.

        Parameters
        ----------
        targets : ndarray of shape (n_documents,) or Preferences
            The utilities, see `Surrogate.targets`.
        """
        super().check(targets)
        if self.eta is not None and targets.max() > self.eta:
            raise ValueError(
                f"{type(self).__name__} needs utilities of at most eta={self.eta!r}; got "
                f"{targets.max():g}. Pass a larger eta, or None, which follows the data."
            )

    def _with_defaults(self, targets: Any) -> Self:
        if self.eta is not None:
            return self
        # Twice the largest utility keeps the best scores finite.
        return clone(self).set_params(eta=2 * float(targets.max(initial=0.0)) or 1.0)

    @property
    def _eta(self) -> float:
        assert self.eta is not None  # `_with_defaults` has set it
        return float(self.eta)

    def _terms(self, v: Floats, s: Floats) -> tuple[Floats, Floats, Floats]:
        margin, rest = MARGINS[self.margin], self._eta - v
        value, slope, curvature = margin.f(self.t * margin.end - s)
        other_value, other_slope, other_curvature = margin.f(s)
        return (
            v * value + rest * other_value,
            rest * other_slope - v * slope,
            v * curvature + rest * other_curvature,
        )

    def _minimizer(self, expected: Floats, queries: Queries) -> Floats:
        return _MINIMIZERS[self.margin](expected, self._eta, self.t)

    def constant(self, n_documents: int, largest: float, total: float | None = None) -> float:
        """Return the constant stated in the Notes of the class."""
        eta = 2 * largest if self.eta is None else self.eta
        return float(_CONSTANTS[self.margin](eta, self.t))
