"""Pointwise surrogates: sums over documents of a function of the document's utility and score."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import expit
from sklearn.base import clone

from sklearn_rankcal.losses import Loss
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.surrogates._base import (
    Evaluation,
    ListwiseSurrogate,
    Surrogate,
    check_positive,
    gains,
)
from sklearn_rankcal.surrogates._margins import capped_exp, straightened_exp
from sklearn_rankcal.utils._rounding import exceeds
from sklearn_rankcal.utils._typing import Floats

_CONVEX_SUM = (
    "order preserving (Calauzènes et al., 2013, table 2): the expected value is least at a "
    "strictly increasing function of E[v_i], as long as 0 < E[v_i] < eta"
)


class PointwiseSurrogate(Surrogate):
    """Base class of sums over documents. A subclass implements `_terms`."""

    def _terms(self, v: Floats, s: Floats) -> tuple[Floats, Floats, Floats]:
        """Return value, first and second derivative of the term of each document."""
        raise NotImplementedError

    def _evaluate(
        self, v: Floats, s: Floats, queries: Queries, derivatives: int, n_jobs: int | None
    ) -> Evaluation:
        value, gradient, curvature = self._terms(v, s)
        return Evaluation(queries.reduce(np.add, value), gradient, curvature)


class PointwiseSquared(PointwiseSurrogate, ListwiseSurrogate):
    """Squared error: psi(v, s) = sum_i (v_i - s_i)^2, which `CalibratedRanker` minimises.

    Parameters
    ----------
    normalization : {"loss", "own"}, default="loss"
        "loss" uses the utilities of the loss. "own" uses its gains without any normalization, as
        regression did before Ravikumar et al. (2011).
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


class _BoundedPointwise(PointwiseSurrogate):
    """Base class of v phi(s) + (eta - v) phi(-s), where eta is above every utility."""

    eta: float | None
    theorem = _CONVEX_SUM

    def _check_parameters(self) -> None:
        if self.eta is not None:
            check_positive("eta", self.eta)

    def check(self, targets: Any) -> None:
        """Check the parameters, and that 0 <= v <= eta; see `Surrogate.check`."""
        super().check(targets)
        if self.eta is not None and targets.max() > self.eta:
            raise ValueError(
                f"{type(self).__name__} needs utilities of at most eta={self.eta!r}; got "
                f"{targets.max():g}. Pass a larger eta, or None, which follows the data."
            )

    def resolve(self, targets: Any) -> Self:
        """Return a copy in which `eta` is set; see `Surrogate.resolve`."""
        return super().resolve(targets)._with_defaults(targets)

    def _with_defaults(self, targets: Any) -> Self:
        if self.eta is not None:
            return self
        # Twice the largest utility keeps the best scores finite.
        eta = self._eta_of(float(targets.max(initial=0.0)))
        return clone(self).set_params(eta=eta if eta > 0 else 1.0)

    def _eta_of(self, largest: float) -> float:
        return 2 * largest if self.eta is None else self.eta

    @property
    def _eta(self) -> float:
        assert self.eta is not None
        return float(self.eta)


class PointwiseLogistic(_BoundedPointwise):
    """Logistic regression: sum_i v_i log(1 + e^-s_i) + (eta - v_i) log(1 + e^s_i).

    Parameters
    ----------
    eta : float, default=None
        A number that no utility exceeds. It must be larger than every expected utility, or the best
        score is infinite. None means twice the largest utility of the data.

    Notes
    -----
    ``CalibratedRanker(LogisticRegression(), loss="ndcg")`` minimises it, with the largest utility
    as eta (`models.DocumentModel`). The minimiser is log(E[v] / (eta - E[v])), and the constant of
    the regret bound is sqrt(eta) (Calauzènes et al., 2013, table 2).

    Examples
    --------
    >>> from sklearn_rankcal.queries import Queries
    >>> from sklearn_rankcal.surrogates import PointwiseLogistic
    >>> PointwiseLogistic(eta=1.0).minimizer([0.5, 0.25], Queries.single(2)).round(3).tolist()
    [0.0, -1.099]
    """

    def __init__(self, eta: float | None = None) -> None:
        self.eta = eta

    def _terms(self, v: Floats, s: Floats) -> tuple[Floats, Floats, Floats]:
        eta, high = self._eta, expit(s)
        value = v * np.logaddexp(0.0, -s) + (eta - v) * np.logaddexp(0.0, s)
        return value, eta * high - v, eta * high * expit(-s)

    def _minimizer(self, expected: Floats, queries: Queries) -> Floats:
        return np.log(expected) - np.log(self._eta - expected)

    def constant(self, n_documents: int, largest: float, total: float | None = None) -> float:
        """Return sqrt(eta)."""
        return float(np.sqrt(self._eta_of(largest)))


class PointwiseExponential(_BoundedPointwise):
    """Exponential: sum_i v_i e^-s_i + (eta - v_i) e^s_i.

    Parameters
    ----------
    eta : float, default=None
        As in `PointwiseLogistic`.

    Notes
    -----
    The minimiser is log(E[v] / (eta - E[v])) / 2, and the constant of the regret bound is sqrt(eta)
    (Calauzènes et al., 2013, table 2).
    """

    def __init__(self, eta: float | None = None) -> None:
        self.eta = eta

    def _terms(self, v: Floats, s: Floats) -> tuple[Floats, Floats, Floats]:
        w = self._eta - v
        up, down = v * capped_exp(-s), w * capped_exp(s)
        value = v * straightened_exp(-s) + w * straightened_exp(s)
        return value, down - up, up + down

    def _minimizer(self, expected: Floats, queries: Queries) -> Floats:
        return (np.log(expected) - np.log(self._eta - expected)) / 2

    def constant(self, n_documents: int, largest: float, total: float | None = None) -> float:
        """Return sqrt(eta)."""
        return float(np.sqrt(self._eta_of(largest)))


class PointwiseSquaredHinge(_BoundedPointwise):
    """Squared hinge: sum_i v_i max(0, t - s_i)^2 + (eta - v_i) max(0, s_i)^2.

    Parameters
    ----------
    eta : float, default=None
        As in `PointwiseLogistic`.
    t : float, default=1.0
        The largest score that is worth something, a positive number.

    Notes
    -----
    ``CalibratedRanker(LinearSVC(), loss="ndcg")`` minimises it, with the largest utility as eta,
    and the decision function 2 s / t - 1. The minimiser is t E[v] / eta, and the constant of the
    regret bound is sqrt(2 eta) / t (Calauzènes et al., 2013, table 2).

    Examples
    --------
    >>> from sklearn_rankcal.queries import Queries
    >>> from sklearn_rankcal.surrogates import PointwiseSquaredHinge
    >>> PointwiseSquaredHinge(eta=2.0).minimizer([1.0, 0.5], Queries.single(2)).tolist()
    [0.5, 0.25]
    """

    def __init__(self, eta: float | None = None, t: float = 1.0) -> None:
        self.eta = eta
        self.t = t

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_positive("t", self.t)

    def _terms(self, v: Floats, s: Floats) -> tuple[Floats, Floats, Floats]:
        rest = self._eta - v
        below, above = np.maximum(self.t - s, 0.0), np.maximum(s, 0.0)
        value = v * np.square(below) + rest * np.square(above)
        return value, 2 * (rest * above - v * below), 2 * (v * (s < self.t) + rest * (s > 0))

    def _minimizer(self, expected: Floats, queries: Queries) -> Floats:
        return self.t * expected / self._eta

    def constant(self, n_documents: int, largest: float, total: float | None = None) -> float:
        """Return sqrt(2 eta) / t."""
        return float(np.sqrt(2 * self._eta_of(largest)) / self.t)


class PointwiseSmoothHinge(_BoundedPointwise):
    """Differentiable hinge: sum_i v_i phi(1 - s_i) + (eta - v_i) phi(s_i).

    phi(x) is 0 for x <= 0, x^2 / (2 width) up to x = width, and x - width / 2 above.

    Parameters
    ----------
    eta : float, default=None
        As in `PointwiseLogistic`.
    width : float, default=1.0
        The length on which the corner of the hinge is rounded off, a positive number.

    Notes
    -----
    The constant of the regret bound is 2 sqrt(eta max(width, 1 / width)). Calauzènes et al. (2013),
    table 2, state 4 sqrt(eta / width), which the regret can exceed for a width above 2.
    """

    def __init__(self, eta: float | None = None, width: float = 1.0) -> None:
        self.eta = eta
        self.width = width

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_positive("width", self.width)

    def _terms(self, v: Floats, s: Floats) -> tuple[Floats, Floats, Floats]:
        rest = self._eta - v
        up, up_slope, up_curvature = self._hinge(1.0 - s)
        down, down_slope, down_curvature = self._hinge(s)
        return (
            v * up + rest * down,
            rest * down_slope - v * up_slope,
            rest * down_curvature + v * up_curvature,
        )

    def _hinge(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        slope = np.clip(x / self.width, 0.0, 1.0)
        value = slope * (x - self.width * slope / 2)
        return value, slope, ((x > 0) & (x < self.width)) / self.width

    def _minimizer(self, expected: Floats, queries: Queries) -> Floats:
        # The least of the expected value lies between 0 and 1, and documents with utilities u and
        # eta - u have scores s and 1 - s. With a utility of at most eta / 2, the upper hinge has
        # slope 1 if s <= 1 - width; otherwise both hinges are in their quadratic part.
        eta, width = self._eta, self.width
        low = np.minimum(expected, eta - expected)
        linear = width * low / (eta - low)
        score = np.where(linear <= 1.0 - width, linear, low / eta)
        if width < 0.5:  # every score from width to 1 - width is a minimiser of utility eta / 2
            score = np.where(exceeds(eta, 2 * low, eta), score, 0.5)
        return np.where(exceeds(2 * expected, eta, eta), 1.0 - score, score)

    def constant(self, n_documents: int, largest: float, total: float | None = None) -> float:
        """Return 2 sqrt(eta max(width, 1 / width))."""
        return float(2 * np.sqrt(self._eta_of(largest) * max(self.width, 1 / self.width)))
