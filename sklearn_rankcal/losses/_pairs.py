"""Losses whose measure is pairwise agreement, with targets for pairs (`PD`) or for documents."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.labels._rankings import PairWeight
from sklearn_rankcal.losses._base import Loss
from sklearn_rankcal.measures._pairs import PairwiseAgreement
from sklearn_rankcal.queries import Queries, Ranking
from sklearn_rankcal.targets import PAIRS, PreferenceDifferences, RelevanceDifferences
from sklearn_rankcal.utils._numbers import check_range, read_numbers
from sklearn_rankcal.utils._rounding import exceeds
from sklearn_rankcal.utils._typing import Floats

Differences = RelevanceDifferences | PreferenceDifferences


class _Disagreement(Loss):
    """Base class of the losses whose measure is pairwise agreement."""

    pair_weight: PairWeight
    equal_queries: bool

    @property
    def measure(self) -> PairwiseAgreement:
        return PairwiseAgreement(pair_weight=self.pair_weight)

    def calibrated_measure(self, ranking: Ranking, relevance: Any) -> Floats:
        """Compute the measure if `equal_queries`, else minus the weight that is contradicted."""
        if self.equal_queries:
            return self.measure.per_query(ranking, relevance)
        return -self.measure.contradicted(ranking, relevance)

    def query_weight(self, labels: Any, queries: Queries) -> Floats | None:
        """Return None if `equal_queries`, else the weight of all preferences of each query."""
        return None if self.equal_queries else self.measure.total(labels, queries)

    def differences(self, labels: Any, queries: Queries) -> Differences:
        """Return the differences t_ij = y_ij - y_ji of all pairs of documents.

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
        Weight y_ij of the preference for document i over document j if y_i > y_j: 1, y_i - y_j, or
        ``pair_weight(y_i - y_j)``. It is not used with `preference_labels`, which contain weights.
    equal_queries : bool, default=False
        Whether to divide the preferences of each query by their total weight. `score` is then the
        mean over queries of the share of the weight that is not contradicted. Otherwise it is the
        share of the weight of all queries together.

    Notes
    -----
    The targets of a query of r documents are the r (r - 1) / 2 differences y_ij - y_ji, i < j. The
    measure is 1 - PD / total weight, undefined for a query without a preference. Without
    `equal_queries` the targets are calibrated for the weight that is contradicted, and the best
    rankings for it need not be the best ones for the mean of the shares. For example, let the
    labels of three documents be (0, 2, 2), (2, 0, 1) or (0, 1, 0) with probabilities .1, .5 and .4.
    The positions 1, 3, 2 contradict the least weight on average, 1.0 of 2.5, and the share of a
    query is .5 on average. For 2, 1, 3 these are 1.1 and .383.

    Least squares on the targets, decoded exactly, is calibrated for every distribution (Ramaswamy
    et al., 2013, theorem 3). Decoded by ``"greedy_dag"``, it is calibrated if the expected
    preferences are acyclic (theorem 7). With binary labels, or with ``pair_weight="graded"``,
    sorting by E[y_i] is optimal, and `PDByScores` is the cheaper choice.
    """

    space = PAIRS
    calibrated_over = "every distribution, decoded exactly (Ramaswamy et al., 2013, theorem 3)"

    def __init__(self, pair_weight: PairWeight = "binary", *, equal_queries: bool = False) -> None:
        self.pair_weight = pair_weight
        self.equal_queries = equal_queries

    def encode(self, relevance: Any, queries: Queries) -> Differences:
        """Return the differences of all pairs, which are computed a few queries at a time."""
        return self.differences(relevance, queries)

    def regret_constant(self, n_documents: int) -> float:
        """Return sqrt(r (r - 1) / 2), because a ranking and its reverse differ in all pairs."""
        return float(np.sqrt(n_documents * (n_documents - 1) / 2))


class PDByScores(_Disagreement):
    """Pairwise disagreement, learned from one score f_i(y) per document.

    Parameters
    ----------
    pair_weight : {"binary", "graded"} or callable, default="binary"
        Weight y_ij of a preference, as in `PD`.
    score_function : str or callable, default="borda"
        How the score of document i of a query of r documents is computed from the weights y_ij:

        * ``"borda"``: the mean net preference, sum_j (y_ij - y_ji) / r;
        * ``"copeland"``: the number of pairs won minus the number of pairs lost, divided by r;
        * ``"row_sums"``: sum_j y_ij / r;
        * ``"log_odds"``: sum_j log((y_ij + smoothing) / (y_ji + smoothing)) / r
          (Bradley-Terry-Luce);
        * ``"least_squares"``: the scores x that minimize the sum of (x_i - x_j - (y_ij - y_ji))^2
          over the pairs with a weight (Thurstone-Mosteller), of mean 0 in each part of the query
          that comparisons connect. They equal ``"borda"`` if all pairs are compared;
        * a function of an (n, r, r) array, the weights of n queries of r documents, that returns
          (n, r) scores. It is not called for queries without preferences, whose scores are 0.
    smoothing : float, default=0.5
        Number that ``"log_odds"`` adds to both weights, for counts one half.
    equal_queries : bool, default=False
        Whether to divide the weights of each query by their sum before the scores are computed.
        `score` is as in `PD`.

    Notes
    -----
    The targets are calibrated over the distributions that satisfy the condition P_f (Ramaswamy et
    al., 2013, theorem 6): E[Y_ij] > E[Y_ji] implies that the expected score of i is larger than
    that of j. The net Borda score (Duchi, Mackey and Jordan, 2010) is the usual f. For some
    distributions no f is calibrated. For example, let the label be a single preference: 1 > 2,
    2 > 1, 2 > 3, 1 > 3 or 3 > 1, with probabilities .20, .10, .36, .24 and .10. All functions f
    with a name put document 2 first, but the best ranking puts document 1 first.

    Under rules (`decoders.Rules`), the best ranking for the scores is the best one for the
    disagreement if the preferences are differences of scores. This holds for relevance of two
    grades, and with ``pair_weight="graded"``, for ``"borda"`` and ``"least_squares"``. Otherwise it
    can contradict more than another ranking that keeps the rules, which ``loss="pd"`` finds, and
    reports do not call it proved.

    The cost is O(n log r) for n documents with relevance and O(pairs log pairs) with preferences.
    It is O(sum of r^2) if `score_function` or `pair_weight` is a function, and for ``"log_odds"``
    of graded relevance; and O(sum of r^3) for ``"least_squares"`` where it differs from borda.

    Examples
    --------
    Documents 0, 1 and 2 are never compared with documents 3 and 4. Scores of different parts cannot
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

    #: Whether a ranking under rules that is best for the scores is best for the measure.
    exact_under_rules = False

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
                f"{', '.join(map(repr, SCORES))}, or a function that maps weights of shape "
                "(n, r, r) to scores of shape (n, r)."
            )
        if not (isinstance(self.smoothing, Real) and 0 < self.smoothing < np.inf):
            raise ValueError(f"smoothing must be a finite number above 0; got {self.smoothing!r}.")
        check_range(np.array([self.smoothing], dtype=np.float64), "smoothing")
        super().check(labels)

    def resolve(self, relevance: Any) -> PDByScores:
        """Return a copy of the loss, and find out whether preferences are differences of scores."""
        resolved: PDByScores = super().resolve(relevance)
        known = ["borda"] if callable(self.pair_weight) else ["borda", "least_squares"]
        graded = self.pair_weight == "graded"
        if not isinstance(relevance, Preferences) and self.score_function in known:
            # Of labels that are distributed, only the smallest and the largest one come here.
            binary = not graded and len(relevance) > 2 and len(np.unique(relevance)) <= 2
            resolved.exact_under_rules = graded or binary
        return resolved

    def encode(self, relevance: Any, queries: Queries) -> Floats:
        """Compute the score f_i(y) of every row."""
        targets = self.differences(relevance, queries)
        if callable(self.score_function):
            return _by_matrices(targets, self.score_function)
        return SCORES[self.score_function](targets, self.smoothing)


# ---------------------------------------------------------------- the score functions by name
# Each receives the differences of all pairs and the smoothing c, which only "log_odds" uses.


def _borda(targets: Differences, c: float) -> Floats:
    return targets.row_sums() / targets.queries.broadcast(targets.queries.sizes)


def _least_squares(targets: Differences, c: float) -> Floats:
    # With relevance, a document is compared with all documents of other relevance. If n documents
    # have the relevance of document i, the normal equation of its score x_i is
    # (r - n) x_i - sum over the compared j of x_j = b_i, where b_i = sum_j (y_ij - y_ji). These n
    # documents have the same score, and all scores sum to 0, so the sum over j is -n x_i. The
    # equation becomes r x_i = b_i, which is the Borda score.
    if isinstance(targets, RelevanceDifferences) and not callable(targets.kind):
        return _borda(targets, c)
    return _by_matrices(targets, least_squares_scores)


def _mean_share(
    targets: Differences, c: float, share: Callable[..., Floats], degree: int | None
) -> Floats:
    """Compute the scores sum_j share(y_ij, y_ji, c) / r, where share(0, 0, c) = 0.

    `degree` is the number d with share(a y, a z, c) = a^d share(y, z, c) for all a > 0, or None.
    """
    queries = targets.queries
    if isinstance(targets, PreferenceDifferences):
        # Add the shares of the pairs that are compared; those of other pairs are 0.
        i, j, y, opposed = targets.comparisons()
        rows, shares = np.append(i, j), np.append(share(y, opposed, c), share(opposed, y, c))
        sums = np.bincount(rows, shares, queries.n_rows).astype(np.float64, copy=False)
    elif targets.kind == "binary" or (targets.kind == "graded" and degree is not None):
        # With relevance, at least one of y_ij and y_ji is 0. The other is the factor of the query,
        # times the difference of relevance if graded. A share of degree 1 is proportional to the
        # difference, and a share of degree 0 does not depend on it. The sum over j is therefore the
        # share of a weight equal to the factor, times a number of documents or a sum of
        # differences.
        below, above = targets.below_and_above(graded=targets.kind == "graded" and degree == 1)
        weight = queries.broadcast(targets.factor)
        sums = below * share(weight, 0 * weight, c) + above * share(0 * weight, weight, c)
    else:
        return _by_matrices(targets, lambda y: share(y, y.transpose(0, 2, 1), c).mean(axis=2))
    return sums / queries.broadcast(queries.sizes)


def _winner(y: Floats, opposed: Floats) -> Floats:
    """1, -1 or 0; sums of weights that are equal can differ by rounding."""
    return np.where(exceeds(np.abs(y - opposed), 0.0, y + opposed), np.sign(y - opposed), 0.0)


def _log_odds(y: Floats, opposed: Floats, c: float) -> Floats:
    # log((y + c) / (opposed + c)), without loss of digits where the quotient is close to 1
    more, less = np.maximum(y, opposed), np.minimum(y, opposed)
    return np.copysign(np.log1p((more - less) / (less + c)), y - opposed)


def _by_matrices(targets: Differences, f: Callable[[Floats], Floats]) -> Floats:
    """Apply f to the weights of every query with a preference, and check the scores it returns."""
    grouped = np.zeros(targets.queries.n_rows)
    for inside in targets.queries.equal_pair_blocks():
        weights = targets.weights(inside)
        some = weights.any(axis=(1, 2))
        if not some.any():
            continue
        scores = read_numbers(f(weights[some]), "the return value of score_function")
        if scores.shape != inside[some].shape:
            raise ValueError(
                f"score_function returned an array of shape {scores.shape} for weights of shape "
                f"{weights[some].shape}; it must return a score for each document, in an array of "
                f"shape {inside[some].shape}."
            )
        if not np.isfinite(scores).all():
            q = int(np.argmin(np.isfinite(scores).all(axis=1)))
            raise ValueError(
                f"score_function must return finite scores; it returned {scores[q].tolist()} for "
                f"the weights {weights[some][q].tolist()}."
            )
        grouped[inside[some]] = scores
    return targets.queries.scatter(grouped)


def least_squares_scores(weights: Floats) -> Floats:
    """Compute the Thurstone-Mosteller scores (n, r) of n queries from their weights (n, r, r).

    The normal equations are L x = b, with L the Laplacian of the graph of compared pairs and
    b_i = sum_j (y_ij - y_ji).
    """
    n, r, _ = weights.shape
    turned = weights.transpose(0, 2, 1)
    compared = ((weights > 0) | (turned > 0)).astype(np.float64)
    # Step 1: the connected parts of the graphs of all queries, as one graph of n * r nodes.
    q, i, j = np.nonzero(compared)
    graph = sparse.coo_array((np.ones(len(q)), (q * r + i, q * r + j)), shape=(n * r, n * r))
    part = connected_components(graph, directed=False)[1].reshape(n, r)
    # Step 2: L is singular, because adding a constant to a part changes no difference. With 1 added
    # to L_ij for all i and j of the same part, it is regular, and x has mean 0 in each part.
    system = (part[:, :, None] == part[:, None, :]) - compared
    system[:, np.arange(r), np.arange(r)] += compared.sum(axis=2)
    net = (weights - turned).sum(axis=2)
    return np.linalg.solve(system, net[:, :, None])[:, :, 0]


#: The score functions of `PDByScores` by name. They map differences and c to scores of all rows.
SCORES: dict[str, Callable[[Differences, float], Floats]] = {
    "borda": _borda,
    "copeland": partial(_mean_share, share=lambda y, z, c: _winner(y, z), degree=0),
    "row_sums": partial(_mean_share, share=lambda y, z, c: y, degree=1),
    "log_odds": partial(_mean_share, share=_log_odds, degree=None),
    "least_squares": _least_squares,
}


def _mean_over_others(share: Callable[[Floats, Floats], Floats]) -> Callable[[Floats], Floats]:
    """Return the function of weights y that is mean_j share(y_ij, y_ji) for document i."""
    return lambda y: share(y, y.transpose(0, 2, 1)).mean(axis=2)


#: The sizes of scores, for each name in `SCORES`. The size of a score is the sum of the absolute
#: values of the terms that it adds, to which its rounding error is proportional. For least squares
#: it is the weight of the whole query, because no difference of scores exceeds that weight. An
#: entry maps c to a function, which maps weights (n, r, r) to sizes (n, r).
SCORE_SIZES: dict[str, Callable[[float], Callable[[Floats], Floats]]] = {
    "borda": lambda c: _mean_over_others(lambda y, z: y + z),
    "copeland": lambda c: _mean_over_others(lambda y, z: np.abs(_winner(y, z))),
    "row_sums": lambda c: _mean_over_others(lambda y, z: y),
    "log_odds": lambda c: _mean_over_others(
        lambda y, z: np.where(y + z > 0, np.abs(np.log(y + c)) + np.abs(np.log(z + c)), 0.0)
    ),
    "least_squares": lambda c: lambda y: np.broadcast_to(y.sum(axis=(1, 2))[:, None], y.shape[:2]),
}
