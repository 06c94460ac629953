"""Losses whose measure is pairwise agreement: PD, from pairs of documents, and PDByScores.

Relevance or preferences come in, and targets come out: for PD the difference y_ij - y_ji of every
pair of documents of a query, for PDByScores one score per document. y_ij is the weight of the
preference for document i over document j. The formula of the measure is in
`sklearn_rankcal.measures`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from sklearn_rankcal import measures
from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.labels._rankings import PairWeight
from sklearn_rankcal.losses._base import Loss
from sklearn_rankcal.queries import Queries, Ranking
from sklearn_rankcal.targets import PAIRS, PreferenceDifferences, RelevanceDifferences
from sklearn_rankcal.utils._numbers import read_numbers

Floats = NDArray[np.float64]
Differences = RelevanceDifferences | PreferenceDifferences


class _Disagreement(Loss):
    """Base class of the losses of pairwise disagreement."""

    pair_weight: PairWeight
    equal_queries: bool

    @property
    def measure(self) -> measures.PairwiseAgreement:
        return measures.PairwiseAgreement(pair_weight=self.pair_weight)

    def calibrated_measure(self, ranking: Ranking, relevance: Any) -> Floats:
        """The measure if `equal_queries`, otherwise minus the weight that is contradicted.

        Targets without `equal_queries` are calibrated for the weight itself, not for its share.
        """
        if self.equal_queries:
            return self.measure.per_query(ranking, relevance)
        return -self.measure.contradicted(ranking, relevance)

    def differences(self, labels: Any, queries: Queries) -> Differences:
        """The differences t_ij = y_ij - y_ji of all pairs of documents.

        If `equal_queries`, they are divided by the total weight of their query.
        """
        factor = np.ones(queries.n_queries)
        if self.equal_queries:
            total = self.measure.total(labels, queries)
            factor /= np.where(total > 0, total, 1.0)
        if isinstance(labels, Preferences):
            return PreferenceDifferences(labels, factor)
        return RelevanceDifferences(labels, queries, self.pair_weight, factor)


class PD(_Disagreement):
    """Pairwise disagreement: the weight of the preferences that a ranking contradicts.

    Parameters
    ----------
    pair_weight : {"binary", "graded"} or callable, default="binary"
        Weight y_ij of the preference for document i over document j where y_i > y_j: 1, y_i - y_j,
        or ``pair_weight(y_i - y_j)``. It is not used with `preference_labels`, which have weights
        of their own.
    equal_queries : bool, default=False
        Whether to divide the preferences of each query by their total weight, so that every query
        has the same weight.

    Notes
    -----
    The targets of a query of r documents are the r (r - 1) / 2 differences y_ij - y_ji, i < j. The
    measure is 1 - PD / total weight. It is undefined for a query without a preference, and `fit`
    leaves such queries out. Without `equal_queries` the targets are calibrated for the weight that
    is contradicted, PD itself.

    Least squares on the targets, decoded exactly, is calibrated for every distribution (Ramaswamy
    et al., 2013, theorem 3). Decoded by ``"greedy_dag"`` it is calibrated where expected
    preferences are acyclic (theorem 7). With binary labels, or with ``pair_weight="graded"``,
    sorting by E[y_i] is enough, and `PDByScores` is the cheaper choice.
    """

    space = PAIRS
    calibrated_over = "every distribution, decoded exactly (Ramaswamy et al., 2013, theorem 3)"

    def __init__(self, pair_weight: PairWeight = "binary", *, equal_queries: bool = False) -> None:
        self.pair_weight = pair_weight
        self.equal_queries = equal_queries

    def encode(self, relevance: Any, queries: Queries) -> Differences:
        """The differences of all pairs. They are computed a few queries at a time."""
        return self.differences(relevance, queries)

    def regret_constant(self, n_documents: int) -> float:
        """sqrt(r (r - 1) / 2), because a ranking and its reverse differ in all pairs."""
        return float(np.sqrt(n_documents * (n_documents - 1) / 2))


class PDByScores(_Disagreement):
    """Pairwise disagreement, learned from one score f_i(y) per document.

    Parameters
    ----------
    pair_weight : {"binary", "graded"} or callable, default="binary"
        Weight y_ij of a preference, as in `PD`.
    score_function : str or callable, default="borda"
        The score of document i of a query of r documents, from its weights y_ij:

        * ``"borda"``: the mean net preference, sum_j (y_ij - y_ji) / r;
        * ``"copeland"``: pairs won minus pairs lost, over r;
        * ``"row_sums"``: sum_j y_ij / r;
        * ``"log_odds"``: sum_j log((y_ij + smoothing) / (y_ji + smoothing)) / r
          (Bradley-Terry-Luce);
        * ``"least_squares"``: the scores x that minimize the sum of (x_i - x_j - (y_ij - y_ji))^2
          over the pairs with a weight (Thurstone-Mosteller). They are centred at 0 in each part of
          the query that comparisons connect. They equal ``"borda"`` where all pairs are compared,
          and for relevance unless `pair_weight` is a function;
        * a function that takes an (n, r, r) array, the weights of n queries of r documents, and
          returns their (n, r) scores. It should not depend on how the documents are numbered. It
          is not called for queries without preferences, whose scores are 0.
    smoothing : float, default=0.5
        Number that ``"log_odds"`` adds to both weights. These scores therefore depend on the unit
        of the weights, and no others do. One half is the choice of the empirical logit, for weights
        that are counts.
    equal_queries : bool, default=False
        Whether to divide the weights of each query by their sum before the scores are computed. It
        does not change ``"copeland"``.

    Notes
    -----
    The targets are the scores f_i(y). Scores that are sums over documents are divided by the size
    of the query. The size is known before any label, so that no ranking changes. Without the
    division the largest queries would dominate the regression.

    The targets are calibrated over the distributions of P_f (Ramaswamy et al., 2013, theorem 6):
    E[Y_ij] > E[Y_ji] implies a larger expected score for i. The net Borda score (Duchi, Mackey and
    Jordan, 2010) is the usual f. It depends on the distribution which f are calibrated, and
    sometimes none is. For example, let there be single preferences 1 > 2, 2 > 1, 2 > 3, 1 > 3,
    3 > 1 with probabilities .20, .10, .36, .24, .10. The functions named here put 2 first, but the
    best ranking puts 1 first. With .35 and .25 for the third and the fourth preference, every f
    that does not depend on the numbering ties documents 1 and 2.

    The cost is O(n log r) for n documents with relevance and O(pairs log pairs) with preferences.
    It is O(sum of r^2) if `score_function` or `pair_weight` is a function, and for ``"log_odds"``
    of graded relevance. It is O(sum of r^3) for ``"least_squares"`` where that is not ``"borda"``.

    Examples
    --------
    No comparison connects documents 0, 1, 2 with documents 3, 4. The scores of the two parts cannot
    be compared with each other:

    >>> from sklearn_rankcal.labels import preference_labels, read_preferences
    >>> from sklearn_rankcal.losses import PDByScores
    >>> labels = read_preferences(preference_labels([(0, 1), (1, 2), (4, 3)], [0] * 5))
    >>> loss = PDByScores(score_function="least_squares")
    >>> loss.encode(labels, labels.queries).round(3).tolist()
    [1.0, 0.0, -1.0, -0.5, 0.5]
    """

    calibrated_everywhere = False
    calibrated_over = (
        "the distributions of P_f (Ramaswamy et al., 2013, theorem 6): E[Y_ij] > E[Y_ji] implies "
        "E[f_i(Y)] > E[f_j(Y)]"
    )

    def __init__(
        self,
        pair_weight: PairWeight = "binary",
        *,
        score_function: str | Callable[[Floats], Floats] = "borda",
        smoothing: float = 0.5,
        equal_queries: bool = False,
    ) -> None:
        self.pair_weight = pair_weight
        self.score_function = score_function
        self.smoothing = smoothing
        self.equal_queries = equal_queries

    def check(self, labels: Any) -> None:
        if not callable(self.score_function) and self.score_function not in SCORES:
            raise ValueError(
                f"Unknown score_function {self.score_function!r}. Known: "
                f"{', '.join(map(repr, SCORES))}, or a function of the weights, from (n, r, r) to "
                "(n, r)."
            )
        if not (isinstance(self.smoothing, Real) and 0 < self.smoothing < np.inf):
            raise ValueError(f"smoothing must be a finite number above 0; got {self.smoothing!r}.")
        super().check(labels)

    def encode(self, relevance: Any, queries: Queries) -> Floats:
        """The score f_i(y) of every row."""
        targets = self.differences(relevance, queries)
        if callable(self.score_function):
            return _by_matrices(targets, self.score_function)
        return SCORES[self.score_function](targets, self.smoothing)


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
    """The scores f of every query with a preference, checked; 0 in the other queries."""
    grouped = np.zeros(targets.queries.n_rows)
    for inside in targets.queries.equal_pair_blocks():
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
