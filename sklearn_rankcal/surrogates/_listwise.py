"""Listwise surrogates: Bregman divergences, cross-entropy, cosine and penalised inner products."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sklearn_rankcal.losses import Loss
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.surrogates._additive import PointwiseSurrogate, log_sum_exp
from sklearn_rankcal.surrogates._base import Evaluation, ListwiseSurrogate, gains
from sklearn_rankcal.utils._messages import check_choice, check_number
from sklearn_rankcal.utils._numbers import Floats

Function = Callable[[Floats], Floats]
_DIVERGENCE = (
    "order preserving (Ravikumar et al., 2011, theorem 6; Calauzènes et al., 2013, section 3.1): "
    "the expected value is least where an order-preserving function of the scores is E[v]"
)


class Softmax(ListwiseSurrogate):
    """Softmax cross-entropy: -sum_i v_i log(e^s_i / sum_j e^s_j).

    Parameters
    ----------
    normalization : {"loss", "own"}, default="loss"
        "loss" uses the utilities of the loss unchanged: v need not sum to 1. "own" is ListNet (Cao
        et al., 2007): v is the softmax of the labels. It is not calibrated for NDCG.

    Notes
    -----
    The minimiser is log E[v]. The constant of the regret bound is sqrt(2 sum_i E[v_i]). Proof step:
    if documents with utilities u and w are in the wrong order, the surrogate regret is smallest for
    equal scores, where it is at least (u - w)^2 / (2 (u + w)).

    References
    ----------
    .. [1] Z. Cao, T. Qin, T.-Y. Liu, M.-F. Tsai and H. Li (2007). Learning to rank: from pairwise
       approach to listwise approach. ICML.

    Examples
    --------
    >>> from sklearn_rankcal.queries import Queries
    >>> from sklearn_rankcal.surrogates import Softmax
    >>> Softmax().evaluate([1.0, 0.0], [0.0, 0.0], Queries.single(2)).gradient.tolist()
    [-0.5, 0.5]
    """

    shift_invariant = True
    _theorem = _DIVERGENCE

    def _evaluate(
        self, v: Floats, s: Floats, queries: Queries, derivatives: int, n_jobs: int | None
    ) -> Evaluation:
        total = queries.repeat(queries.reduce(np.add, v))
        log_share = s - queries.repeat(log_sum_exp(s, queries))
        share = np.exp(log_share)
        value = -queries.reduce(np.add, v * log_share)
        return Evaluation(value, total * share - v, total * share * -np.expm1(log_share))

    def _minimizer(self, expected: Floats, queries: Queries) -> Floats:
        return np.log(expected)

    def constant(self, n_documents: int, largest: float, total: float | None = None) -> float:
        """Return sqrt(2 total)."""
        return float(np.sqrt(2 * (n_documents * largest if total is None else total)))

    def _own_utilities(self, loss: Loss, labels: Floats, queries: Queries) -> Floats:
        shifted = labels - queries.broadcast(queries.max(labels))
        shares = np.exp(shifted)
        return shares / queries.broadcast(queries.sum(shares))


class Cosine(ListwiseSurrogate):
    """Cosine distance: (1 - <v, s> / ||s||) / 2. It is not convex.

    Parameters
    ----------
    normalization : {"loss", "own"}, default="loss"
        "loss" uses the utilities of the loss. "own" is RankCosine (Qin et al., 2008): v are the
        gains divided by their Euclidean norm. It is not calibrated for NDCG.

    Notes
    -----
    Every positive multiple of E[v] is a minimiser. At s = 0, where the gradient does not exist,
    -v / 2 is returned. The constant of the regret bound is sqrt(8 ||E[v]||). Proof step: two
    documents in the wrong order shorten the projection of E[v] on s at least as much as replacing
    both of their utilities by the mean of the two.

    References
    ----------
    .. [1] T. Qin, X.-D. Zhang, M.-F. Tsai, D.-S. Wang, T.-Y. Liu and H. Li (2008). Query-level loss
       functions for information retrieval. Information Processing and Management 44, 838-855.

    Examples
    --------
    >>> from sklearn_rankcal.queries import Queries
    >>> from sklearn_rankcal.surrogates import Cosine
    >>> Cosine().evaluate([1.0, 0.0], [7.0, 0.0], Queries.single(2)).value.tolist()
    [0.0]
    """

    convex = False
    scale_invariant = True
    _theorem = _DIVERGENCE

    def _evaluate(
        self, v: Floats, s: Floats, queries: Queries, derivatives: int, n_jobs: int | None
    ) -> Evaluation:
        # Scale the largest score of each query to 1: squares then neither overflow nor vanish.
        unit = queries.repeat(queries.reduce(np.maximum, np.abs(s)))
        somewhere = unit > 0
        unit = np.where(somewhere, unit, 1.0)
        s = s / unit
        length = np.sqrt(queries.reduce(np.add, np.square(s)))
        length = queries.repeat(np.where(length > 0, length, 1.0))
        direction = s / length
        projection = queries.reduce(np.add, v * direction)
        along = queries.repeat(projection) * direction
        inverse = 1.0 / (length * unit)
        bend = 2 * v * direction + queries.repeat(projection) - 3 * along * direction
        return Evaluation(
            (1 - projection) / 2,
            (along - v) * inverse / 2,
            np.where(somewhere, bend * np.square(inverse) / 2, 0.0),
        )

    def _minimizer(self, expected: Floats, queries: Queries) -> Floats:
        return expected.copy()

    def constant(self, n_documents: int, largest: float, total: float | None = None) -> float:
        """Return sqrt(8 ||E[v]||), with a bound on the norm from `largest` and `total`."""
        norm = np.sqrt(n_documents) * largest
        if total is not None:
            norm = min(norm, np.sqrt(largest * total))
        return float(np.sqrt(8 * norm))

    def _own_utilities(self, loss: Loss, labels: Floats, queries: Queries) -> Floats:
        of_rows = gains(loss, labels)
        length = np.sqrt(queries.sum(np.square(of_rows)))
        return of_rows / queries.broadcast(np.where(length > 0, length, 1.0))


class Bregman(PointwiseSurrogate):
    """Bregman divergence B_psi(v || g(s)), summed over documents, with an increasing link g.

    B_psi(v || x) = psi(v) - psi(x) - psi'(x) (v - x). If all functions are None, psi(x) = x^2 and
    g(s) = s.

    Parameters
    ----------
    potential : callable, default=None
        psi, a strictly convex function. It takes and returns an array, elementwise.
    potential_slope, potential_curvature : callable, default=None
        The derivatives psi' and psi''. psi'' must be positive.
    link, link_slope : callable, default=None
        g and its derivative. g must increase strictly and map the scores onto the domain of psi.
    strong_convexity : float, default=None
        A positive number mu with psi''(x) >= mu for all x, if one exists. The constant of the
        regret bound is then 2 / sqrt(mu).

    Notes
    -----
    For any psi, the expected value is minimised where g(s) = E[v] (Calauzènes et al., 2013, section
    3.1 and theorem 5.3). `convex` is False unless psi is None, because convexity is not known. The
    curvature omits the term with v - g(s), which keeps it non-negative (Gauss-Newton).

    Examples
    --------
    The Itakura-Saito divergence with the link e^s:

    >>> import numpy as np
    >>> from sklearn_rankcal.queries import Queries
    >>> from sklearn_rankcal.surrogates import Bregman
    >>> surrogate = Bregman(lambda x: -np.log(x), lambda x: -1 / x, lambda x: x**-2, np.exp, np.exp)
    >>> surrogate.evaluate([1.0, 2.0], np.log([1.0, 2.0]), Queries.single(2)).value.tolist()
    [0.0]
    """

    takes_negative = True  # the domain of psi may include negative numbers
    theorem = (
        "order preserving (Ravikumar et al., 2011, theorem 6; Calauzènes et al., 2013, theorem "
        "5.3): the expected value is least where g(s) = E[v]"
    )

    def __init__(
        self,
        potential: Function | None = None,
        potential_slope: Function | None = None,
        potential_curvature: Function | None = None,
        link: Function | None = None,
        link_slope: Function | None = None,
        strong_convexity: float | None = None,
    ) -> None:
        self.potential = potential
        self.potential_slope = potential_slope
        self.potential_curvature = potential_curvature
        self.link = link
        self.link_slope = link_slope
        self.strong_convexity = strong_convexity

    @property
    def convex(self) -> bool:  # type: ignore[override]
        return self.potential is None

    def _check_parameters(self) -> None:
        if self.strong_convexity is not None:
            check_number(self.strong_convexity, "strong_convexity")
        names = ("potential", "potential_slope", "potential_curvature", "link", "link_slope")
        given = {name: getattr(self, name) for name in names}
        if all(function is None for function in given.values()):
            return
        lacking = [name for name, function in given.items() if not callable(function)]
        if lacking:
            raise ValueError(
                f"{', '.join(names)} must all be functions, or all None; {lacking[0]} is "
                f"{given[lacking[0]]!r}."
            )

    def _terms(self, v: Floats, s: Floats) -> tuple[Floats, Floats, Floats]:
        potential, link = self.potential, self.link
        if potential is None or link is None:
            error = s - v
            return np.square(error), 2 * error, np.full(len(s), 2.0)
        assert self.potential_slope and self.potential_curvature and self.link_slope
        x, rate = link(s), self.link_slope(s)
        bend = self.potential_curvature(x)
        value = potential(v) - potential(x) - self.potential_slope(x) * (v - x)
        return value, bend * rate * (x - v), bend * np.square(rate)

    def _minimizer(self, expected: Floats, queries: Queries) -> Floats | None:
        # The minimiser has g(s) = E[v], and the inverse of a user's g is unknown.
        return expected.copy() if self.potential is None else None

    def constant(
        self, n_documents: int, largest: float, total: float | None = None
    ) -> float | None:
        """Return 2 / sqrt(mu) (Calauzènes et al., 2013, theorem 5.3), or None without mu."""
        if self.potential is None:
            return float(np.sqrt(2.0))
        if self.strong_convexity is None:
            return None
        return float(2 / np.sqrt(self.strong_convexity))


class GeneralizedKullbackLeibler(PointwiseSurrogate):
    """Generalised Kullback-Leibler divergence: sum_i v_i log(v_i / e^s_i) - v_i + e^s_i.

    Notes
    -----
    This is the loss of Poisson regression. The minimiser is log E[v]. The constant of the regret
    bound is 2 sqrt(max_i E[v_i]), by the argument of `Softmax`.

    Examples
    --------
    >>> from sklearn_rankcal.queries import Queries
    >>> from sklearn_rankcal.surrogates import GeneralizedKullbackLeibler
    >>> GeneralizedKullbackLeibler().minimizer([1.0, 2.0], Queries.single(2)).round(3).tolist()
    [0.0, 0.693]
    """

    theorem = (
        "order preserving (Ravikumar et al., 2011, theorem 6): the expected value is least at log "
        "E[v]"
    )

    def _terms(self, v: Floats, s: Floats) -> tuple[Floats, Floats, Floats]:
        mean = np.exp(s)
        own = v * np.log(np.where(v > 0, v, 1.0)) - v
        return own - v * s + mean, mean - v, mean

    def _minimizer(self, expected: Floats, queries: Queries) -> Floats:
        return np.log(expected)

    def constant(self, n_documents: int, largest: float, total: float | None = None) -> float:
        """Return 2 sqrt(largest)."""
        return float(2 * np.sqrt(largest))


#: The penalties of `DuchiMackeyJordan`: value, first and second derivative, and the inverse of the
#: first derivative.
_PENALTIES: dict[str, tuple[Function, Function, Function, Function]] = {
    "squared": (np.square, lambda z: 2 * z, lambda z: np.full(len(z), 2.0), lambda g: g / 2),
    "quartic": (
        lambda z: z**4,
        lambda z: 4 * z**3,
        lambda z: 12 * np.square(z),
        lambda g: np.cbrt(g / 4),
    ),
    "cosh": (np.cosh, np.sinh, np.cosh, np.arcsinh),
}


class DuchiMackeyJordan(PointwiseSurrogate):
    """Inner product with a penalty on large scores: -sum_i v_i s_i + nu sum_i lambda(s_i).

    Parameters
    ----------
    penalty : {"squared", "quartic", "cosh"}, default="squared"
        The function lambda(z): z^2, z^4 or cosh(z). All are strictly convex and grow faster than
        linearly.
    nu : float, default=0.5
        Weight of the penalty. Must be positive.

    Notes
    -----
    With v_i = sum_j (y_ij - y_ji), which ``loss="pd_by_scores"`` computes, this is the surrogate of
    Duchi, Mackey and Jordan (2010), in the notation of Ramaswamy et al. (2013), section 7.1. With
    lambda(z) = z^2 and nu = 1/2, it is least squares on v up to a constant and a factor (their
    theorem 6). The minimiser solves nu lambda'(s_i) = E[v_i].

    References
    ----------
    .. [1] J. Duchi, L. Mackey and M. I. Jordan (2010). On the consistency of ranking algorithms.
       ICML.

    Examples
    --------
    >>> from sklearn_rankcal.queries import Queries
    >>> from sklearn_rankcal.surrogates import DuchiMackeyJordan
    >>> DuchiMackeyJordan().minimizer([0.5, -0.5], Queries.single(2)).tolist()
    [0.5, -0.5]
    """

    takes_negative = True
    theorem = (
        "order preserving (Ramaswamy et al., 2013, theorem 6 and section 7.1): the expected value "
        "is least at a strictly increasing function of E[v_i]"
    )

    def __init__(self, penalty: str = "squared", nu: float = 0.5) -> None:
        self.penalty = penalty
        self.nu = nu

    def _check_parameters(self) -> None:
        check_choice(self.penalty, "penalty", _PENALTIES)
        check_number(self.nu, "nu")

    def _terms(self, v: Floats, s: Floats) -> tuple[Floats, Floats, Floats]:
        value, slope, curvature, _ = _PENALTIES[self.penalty]
        return self.nu * value(s) - v * s, self.nu * slope(s) - v, self.nu * curvature(s)

    def _minimizer(self, expected: Floats, queries: Queries) -> Floats:
        return _PENALTIES[self.penalty][3](expected / self.nu)

    def constant(
        self, n_documents: int, largest: float, total: float | None = None
    ) -> float | None:
        """Return 2 sqrt(2 nu) for the squared penalty, None for others."""
        # Up to a constant, nu s^2 - v s is (2 nu s - v)^2 / (4 nu). The constant of the squared
        # error is sqrt(2).
        return float(np.sqrt(8 * self.nu)) if self.penalty == "squared" else None
