"""Pairwise disagreement: its surrogate predictions are differences of all pairs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from sklearn_rankcal.labels._preferences import Preferences
from sklearn_rankcal.labels._rankings import weighing
from sklearn_rankcal.losses._base import Loss
from sklearn_rankcal.measures._formulas import (
    Ranking,
    _divide,
    discordant_weight,
    preference_weight,
    scaled_labels,
)
from sklearn_rankcal.queries._queries import Queries
from sklearn_rankcal.targets._pairs import (
    PreferenceDifferences,
    RelevanceDifferences,
    equal_squares,
    square_chunks,
)
from sklearn_rankcal.utils._numbers import read_numbers

Floats = NDArray[np.float64]
H = str | Callable[[Floats], Floats]
Differences = RelevanceDifferences | PreferenceDifferences


class _Disagreement(Loss):
    """What the losses of pairwise disagreement share: preferences from relevance, the measure."""

    h: H
    normalize: bool
    takes_preferences = True

    def check(self, relevance: Floats) -> None:
        weighing(self.h)
        super().check(relevance)

    def differences(self, labels: Any, queries: Queries) -> Differences:
        """t_ij = y_ij - y_ji of all pairs; divided by the query's total weight if `normalize`."""
        factor = np.ones(queries.n_queries)
        if self.normalize:
            total = self.total(labels, queries)
            factor /= np.where(total > 0, total, 1.0)
        if isinstance(labels, Preferences):
            return PreferenceDifferences(labels, factor)
        return RelevanceDifferences(labels, queries, self.h, factor)

    def total(self, labels: Any, queries: Queries) -> Floats:
        """Preference weight of each query."""
        if isinstance(labels, Preferences):
            return labels.total()
        if callable(self.h):
            return self._weight(labels, queries, None)
        with np.errstate(over="ignore", invalid="ignore"):
            return _finite(preference_weight(queries, labels, self.h == "graded"), queries)

    def _weight(self, relevance: Floats, queries: Queries, ranks: NDArray[Any] | None) -> Floats:
        """Total weight of the preferences, or of those that ranks contradict. O(sum r^2)."""
        targets = RelevanceDifferences(relevance, queries, self.h, np.ones(queries.n_queries))
        placed = None if ranks is None else queries.gather(ranks)
        total = np.zeros(queries.n_queries)
        owner = np.repeat(np.arange(queries.n_queries), queries.sizes)
        for inside, valid in square_chunks(queries):
            weight = np.maximum(targets.matrices(inside, valid), 0.0)
            if placed is not None:
                place = placed[inside]
                weight *= place[:, :, None] > place[:, None, :]
            total[owner[inside[:, 0]]] = weight.sum(axis=(1, 2))
        return total

    def defined(self, relevance: Any, queries: Queries) -> NDArray[np.bool_]:
        return self.total(relevance, queries) > 0

    def lost(self, ranked: Ranking, relevance: Any) -> Floats:
        """Preference weight of each query that the ranking contradicts; a tied pair costs half."""
        if isinstance(relevance, Preferences):
            queries, i, j = ranked.queries, relevance.winner, relevance.loser
            place = np.empty(queries.n_rows, dtype=np.int64)  # that of its block, if tied
            place[ranked.order] = queries.place if ranked.start is None else ranked.start
            contradicted = (np.sign(place[i] - place[j]) + 1) / 2
            lost = np.bincount(queries.codes[i], relevance.weight * contradicted, queries.n_queries)
            return lost.astype(np.float64, copy=False)
        if not callable(self.h):
            with np.errstate(over="ignore", invalid="ignore"):
                weight = discordant_weight(ranked, relevance, self.h == "graded")
            return _finite(weight, ranked.queries)
        if ranked.start is not None:  # it costs 0 in one of these orders and 1 in the other
            best = self.lost(ranked.break_ties(-relevance), relevance)
            return (best + self.lost(ranked.break_ties(relevance), relevance)) / 2
        return self._weight(relevance, ranked.queries, ranked.queries.rank(ranked.order))

    def share_lost(self, ranked: Ranking, relevance: Any) -> Floats:
        """Share of each query's preference weight that is contradicted; NaN where there is none."""
        # without grades labels are only compared, and scaling could round small ones to a tie
        if self.h == "graded" and not isinstance(relevance, Preferences):
            relevance = scaled_labels(relevance, ranked.queries)
        return _divide(self.lost(ranked, relevance), self.total(relevance, ranked.queries))

    def measure(self, ranked: Ranking, relevance: Any) -> Floats:
        return 1.0 - self.share_lost(ranked, relevance)

    def calibrated_measure(self, ranked: Ranking, relevance: Any) -> Floats:
        """Minus the weight lost, which is what the targets without `normalize` are made for."""
        return self.measure(ranked, relevance) if self.normalize else -self.lost(ranked, relevance)


def _finite(weight: Floats, queries: Queries) -> Floats:
    """The weights of the queries, unless their sums overflow."""
    if not np.isfinite(weight).all():
        q = int(np.argmin(np.isfinite(weight)))
        raise ValueError(
            f"The differences of the labels of query {queries.ids[q]!r} add up to more than the "
            "largest number that can be stored. Divide the labels by a constant."
        )
    return weight


class PD(_Disagreement):
    """Pairwise disagreement: the preference weight that a ranking contradicts.

    Parameters
    ----------
    h : "binary", "graded" or callable, default="binary"
        Weight of the preference for i over j where y_i > y_j: 1, y_i - y_j, or h(y_i - y_j). Not
        used with `preference_labels`, which have weights of their own.
    normalize : bool, default=False
        Divide a query's preferences by their total weight, so that every query counts alike.

    Notes
    -----
    Targets: the r(r-1)/2 differences y_ij - y_ji of a query, i < j. The measure is
    1 - PD / total weight, undefined without a preference (such a query is left out of `fit`). The
    targets without `normalize` are made for the weight lost, PD itself. Least squares on the
    targets, decoded exactly, is calibrated for every distribution (P1, theorem 3); decoded by
    ``"greedy_dag"``, where expected preferences are acyclic (P1, theorem 7). With binary labels, or
    ``h="graded"``, sorting by E[y_i] is enough, and `PDByScores` is the cheaper choice.
    """

    space = "pairs"
    default_decoder = "auto"
    calibrated_over = "every distribution, decoded exactly (P1, theorem 3)"

    def __init__(self, h: H = "binary", *, normalize: bool = False) -> None:
        self.h = h
        self.normalize = normalize

    def encode(self, relevance: Any, queries: Queries) -> Differences:
        """Differences of all pairs, made when asked for."""
        return self.differences(relevance, queries)

    def regret_constant(self, n_documents: int) -> float:
        """sqrt(r (r - 1) / 2): a ranking and its reverse turn all pairs."""
        return float(np.sqrt(n_documents * (n_documents - 1) / 2))


class PDByScores(_Disagreement):
    """Pairwise disagreement, ranked by scores f_i(y) of the documents.

    Parameters
    ----------
    h : "binary", "graded" or callable, default="binary"
        Weight y_ij of a preference, as in `PD`.
    f : str or callable, default="borda"
        The score of document i of a query of r documents, from its weights y_ij:

        * ``"borda"``: the mean net preference, sum_j (y_ij - y_ji) / r;
        * ``"copeland"``: pairs won minus pairs lost, over r;
        * ``"row_sums"``: sum_j y_ij / r;
        * ``"log_odds"``: sum_j log((y_ij + c) / (y_ji + c)) / r (Bradley-Terry-Luce);
        * ``"least_squares"``: the scores x of least sum of (x_i - x_j - (y_ij - y_ji))^2 over the
          pairs with a weight (Thurstone-Mosteller), centred at 0 in each part of the query that
          comparisons connect. ``"borda"`` where all pairs are compared, and for relevance
          unless h is a function;
        * a function that takes an (n, r, r) array, the weights of n queries of r documents, and
          returns their (n, r) scores. It should not depend on how the documents are numbered. It
          is not asked about queries without preferences: their scores are 0.
    c : float, default=0.5
        Of ``"log_odds"``: what is added to both weights, so that these scores alone depend on the
        unit of the weights. One half is the empirical logit's, for weights that are counts.
    normalize : bool, default=False
        Divide a query's weights by their sum, before f. It does not change ``"copeland"``.

    Notes
    -----
    Targets: f_i(y); where it is a sum over documents, over the size of the query, which is known
    before any label, so that it changes no ranking; without it the largest queries would rule the
    regression. Calibrated over the distributions of P_f (P1, theorem 6): E[Y_ij] > E[Y_ji] implies
    a larger expected score for i. The net Borda score (Duchi, Mackey and Jordan 2010) is the usual
    f. Which f do for a distribution depends on the distribution, and sometimes none does:
    with single preferences 1 > 2, 2 > 1, 2 > 3, 1 > 3, 3 > 1 of probability .20, .10, .36, .24, .10
    those named here put 2 first, and the best ranking puts 1 first; with .35 and .25 for the third
    and the fourth every f that does not depend on the numbering ties the two.

    O(n log r) for n documents with relevance, O(pairs log pairs) with preferences; O(sum of r^2)
    where f or h is a function and for the ``"log_odds"`` of graded relevance, and
    O(sum of r^3) for ``"least_squares"`` where it is not ``"borda"``.

    Examples
    --------
    Scores across parts that no comparison connects, here 0, 1, 2 and 3, 4, say nothing:

    >>> from sklearn_rankcal.labels import preference_labels, read_preferences
    >>> from sklearn_rankcal.losses import PDByScores
    >>> labels = read_preferences(preference_labels([(0, 1), (1, 2), (4, 3)], [0] * 5))
    >>> loss = PDByScores(f="least_squares")
    >>> loss.encode(labels, labels.queries).round(3).tolist()
    [1.0, 0.0, -1.0, -0.5, 0.5]
    """

    calibrated_everywhere = False
    calibrated_over = (
        "the distributions of P_f (P1, theorem 6): E[Y_ij] > E[Y_ji] implies E[f_i(Y)] > E[f_j(Y)]"
    )

    def __init__(
        self,
        h: H = "binary",
        *,
        f: str | Callable[[Floats], Floats] = "borda",
        c: float = 0.5,
        normalize: bool = False,
    ) -> None:
        self.h = h
        self.f = f
        self.c = c
        self.normalize = normalize

    def accept(self, labels: Any) -> None:
        if not callable(self.f) and self.f not in SCORES:
            raise ValueError(
                f"Unknown f {self.f!r}. Known: {', '.join(map(repr, SCORES))}, or a function of "
                "the weights, from (n, r, r) to (n, r)."
            )
        if not (isinstance(self.c, Real) and 0 < self.c < np.inf):
            raise ValueError(f"c must be a finite number above 0; got {self.c!r}.")
        super().accept(labels)

    def encode(self, relevance: Any, queries: Queries) -> Floats:
        """f_i(y) of every row."""
        targets = self.differences(relevance, queries)
        if callable(self.f):
            return _by_matrices(targets, self.f)
        return SCORES[self.f](targets, self.c)


def _borda(targets: Differences, c: float) -> Floats:
    return targets.row_sums() / targets.queries.broadcast(targets.queries.sizes)


def _least_squares(targets: Differences, c: float) -> Floats:
    # Relevance compares all documents of different levels. Those of a level have the same x, and
    # sum x = 0; so the normal equation (r - n) x_i - sum over other levels of x_j = b_i of a
    # document of a level of n is r x_i = b_i.
    if isinstance(targets, RelevanceDifferences) and not callable(targets.kind):
        return _borda(targets, c)
    return _by_matrices(targets, least_squares_scores)


def _mean_share(
    targets: Differences, c: float, share: Callable[..., Floats], degree: int | None
) -> Floats:
    """sum_j share(y_ij, y_ji, c) / r, where share(0, 0, c) = 0.

    `degree` is that of homogeneity of the share in the weights; None: it is not homogeneous.
    """
    queries = targets.queries
    if isinstance(targets, PreferenceDifferences):
        i, j, y, opposed = targets.comparisons()
        rows, shares = np.append(i, j), np.append(share(y, opposed, c), share(opposed, y, c))
        sums = np.bincount(rows, shares, queries.n_rows).astype(np.float64, copy=False)
    elif targets.kind == "binary" or (targets.kind == "graded" and degree is not None):
        below, above = targets.below_and_above(graded=targets.kind == "graded" and degree == 1)
        weight = queries.broadcast(targets.factor)  # of a pair, or of a unit of difference
        sums = below * share(weight, 0 * weight, c) + above * share(0 * weight, weight, c)
    else:
        return _by_matrices(targets, lambda y: share(y, y.transpose(0, 2, 1), c).mean(axis=2))
    return sums / queries.broadcast(queries.sizes)


def _log_odds(y: Floats, opposed: Floats, c: float) -> Floats:
    # log((y + c) / (opposed + c)) without the loss of digits where both are much smaller than c
    more, less = np.maximum(y, opposed), np.minimum(y, opposed)
    with np.errstate(over="ignore"):
        ratio = (more - less) / (less + c)
    large = np.log(more + c) - np.log(less + c)
    return np.copysign(np.where(ratio < 1, np.log1p(ratio), large), y - opposed)


def _by_matrices(targets: Differences, f: Callable[[Floats], Floats]) -> Floats:
    """f of the weights of every query that has any, checked; 0 in the others."""
    grouped = np.zeros(targets.queries.n_rows)
    for inside in equal_squares(targets.queries):
        weights = targets.weights(inside)
        some = weights.any(axis=(1, 2))
        if not some.any():
            continue
        scores = read_numbers(f(weights[some]), "what f returned")
        if scores.shape != inside[some].shape:
            raise ValueError(
                f"f returned an array of shape {scores.shape} for weights of shape "
                f"{weights[some].shape}; {inside[some].shape} is needed, a score for each document."
            )
        if not np.isfinite(scores).all():
            q = int(np.argmin(np.isfinite(scores).all(axis=1)))
            raise ValueError(
                f"f must return finite scores; it gave {scores[q].tolist()} for the weights "
                f"{weights[some][q].tolist()}."
            )
        grouped[inside[some]] = scores
    return targets.queries.scatter(grouped)


def least_squares_scores(weights: Floats) -> Floats:
    """Thurstone-Mosteller scores (n, r) from weights (n, r, r): the Laplacian's pseudo-inverse."""
    n, r, _ = weights.shape
    turned = weights.transpose(0, 2, 1)
    compared = ((weights > 0) | (turned > 0)).astype(np.float64)
    q, i, j = np.nonzero(compared)
    graph = sparse.coo_array((np.ones(len(q)), (q * r + i, q * r + j)), shape=(n * r, n * r))
    part = connected_components(graph, directed=False)[1].reshape(n, r)
    # 1 added to all entries of a part makes the Laplacian regular and its solution centred there
    system = (part[:, :, None] == part[:, None, :]) - compared
    system[:, np.arange(r), np.arange(r)] += compared.sum(axis=2)
    net = (weights - turned).sum(axis=2)
    return np.linalg.solve(system, net[:, :, None])[:, :, 0]


#: f of `PDByScores` by name: scores of the rows from the weights and c.
SCORES: dict[str, Callable[[Differences, float], Floats]] = {
    "borda": _borda,
    "copeland": partial(_mean_share, share=lambda y, z, c: np.sign(y - z), degree=0),
    "row_sums": partial(_mean_share, share=lambda y, z, c: y, degree=1),
    "log_odds": partial(_mean_share, share=_log_odds, degree=None),
    "least_squares": _least_squares,
}


def _mean_over_others(share: Callable[[Floats, Floats], Floats]) -> Callable[[Floats], Floats]:
    return lambda y: share(y, y.transpose(0, 2, 1)).mean(axis=2)


#: For each f of `SCORES`, from c to a function of weights (n, r, r) that returns the sizes (n, r)
#: of the terms a score adds up: rounding errors of the score are relative to these. Of a least
#: squares score the size is the weight of the whole query, which no difference of scores exceeds.
SCORE_SIZES: dict[str, Callable[[float], Callable[[Floats], Floats]]] = {
    "borda": lambda c: _mean_over_others(lambda y, z: y + z),
    "copeland": lambda c: _mean_over_others(lambda y, z: np.abs(np.sign(y - z))),
    "row_sums": lambda c: _mean_over_others(lambda y, z: y),
    "log_odds": lambda c: _mean_over_others(
        lambda y, z: np.where(y + z > 0, np.abs(np.log(y + c)) + np.abs(np.log(z + c)), 0.0)
    ),
    "least_squares": lambda c: lambda y: np.broadcast_to(y.sum(axis=(1, 2))[:, None], y.shape[:2]),
}
