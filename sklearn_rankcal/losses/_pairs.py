"""Measures of pairs, and the losses for pairwise agreement.

`PD` has one target per pair of documents, `PDByScores` has one target per document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.labels._rankings import PairWeight, check_pair_weight, weigh_pairs
from sklearn_rankcal.losses._base import Loss, Measure, divide
from sklearn_rankcal.queries import Queries, Ranking
from sklearn_rankcal.queries._ranking import blocks, equal_neighbours
from sklearn_rankcal.targets import PAIRS, PreferenceDifferences, RelevanceDifferences
from sklearn_rankcal.utils._messages import check_number
from sklearn_rankcal.utils._numbers import Bools, Floats, add_up, check_range, exceeds, read_numbers


class PairwiseMeasure(Measure):
    """Base class of the measures of pairs.

    `pair_weight` defines the weight of the preference for document i over document j if y_i > y_j:
    1, y_i - y_j, or ``pair_weight(y_i - y_j)``. `Preferences` have their own weights.
    """

    takes_preferences = True

    pair_weight: PairWeight

    def __init__(self, pair_weight: PairWeight = "binary") -> None:
        self.pair_weight = pair_weight

    def check(self, labels: Any) -> None:
        super().check(labels)
        check_pair_weight(self.pair_weight)

    def defined(self, labels: Any, queries: Queries) -> NDArray[np.bool_]:
        return self.total(labels, queries) > 0

    def total(self, labels: Any, queries: Queries) -> Floats:
        """Return the weight of all preferences of each query."""
        if isinstance(labels, Preferences):
            return labels.total()
        if callable(self.pair_weight):
            return _weight_by_pairs(labels, queries, self.pair_weight, None)
        return preference_weight(queries, labels, self.pair_weight == "graded")

    def contradicted(self, ranking: Ranking, labels: Any) -> Floats:
        """Return the weight of the preferences of each query that the ranking contradicts."""
        queries = ranking.queries
        if isinstance(labels, Preferences):
            i, j = labels.winner, labels.loser
            # the place of each row; tied rows have the first place of their block
            place = np.empty(queries.n_rows, dtype=np.int64)
            place[ranking.order] = queries.place if ranking.start is None else ranking.start
            share = (np.sign(place[i] - place[j]) + 1) / 2
            return add_up(queries.codes[i], labels.weight * share, queries.n_queries)
        if not callable(self.pair_weight):
            return discordant_weight(ranking, labels, self.pair_weight == "graded")
        if ranking.start is not None:
            # a tied pair adds nothing in the first order and its whole weight in the second
            best = self.contradicted(ranking.break_ties(-labels), labels)
            return (best + self.contradicted(ranking.break_ties(labels), labels)) / 2
        return _weight_by_pairs(labels, queries, self.pair_weight, queries.rank(ranking.order))

    def share(self, ranking: Ranking, labels: Any) -> Floats:
        """Return the contradicted share of the weight of each query, NaN without a preference."""
        return divide(self.contradicted(ranking, labels), self.total(labels, ranking.queries))


class PairwiseDisagreement(PairwiseMeasure):
    """Pairwise disagreement: the weight of the preferences that a ranking contradicts.

    With `normalize`, it is divided by the weight of all preferences of the query, and undefined for
    a query without a preference. Otherwise, it is 0 for such a query.
    """

    greater_is_better = False

    def __init__(self, pair_weight: PairWeight = "binary", *, normalize: bool = True) -> None:
        super().__init__(pair_weight)
        self.normalize = normalize

    @property
    def bounds(self) -> tuple[float, float]:  # type: ignore[override]
        return 0.0, 1.0 if self.normalize else np.inf

    def defined(self, labels: Any, queries: Queries) -> NDArray[np.bool_]:
        if not self.normalize:
            return np.ones(queries.n_queries, dtype=bool)
        return super().defined(labels, queries)

    def per_query(self, ranking: Ranking, labels: Any) -> Floats:
        return self.share(ranking, labels) if self.normalize else self.contradicted(ranking, labels)


class PairwiseAgreement(PairwiseMeasure):
    """Pairwise agreement: the share of the preference weight that a ranking does not contradict."""

    bounds = (0.0, 1.0)

    def per_query(self, ranking: Ranking, labels: Any) -> Floats:
        return 1 - self.share(ranking, labels)


class KendallTau(PairwiseMeasure):
    """Kendall's tau: 1 - 2 times the share of the preference weight that a ranking contradicts."""

    bounds = (-1.0, 1.0)

    def per_query(self, ranking: Ranking, labels: Any) -> Floats:
        return 1 - 2 * self.share(ranking, labels)


def _weight_by_pairs(
    relevance: Floats,
    queries: Queries,
    pair_weight: PairWeight,
    ranks: NDArray[np.int64] | None,
) -> Floats:
    """Return the weight of all preferences of each query, or only of those that `ranks` contradict.

    The cost is O(sum of r^2) for queries with r documents. Blocks of pairs limit the memory.
    """
    value = queries.gather(relevance)
    place = None if ranks is None else queries.gather(ranks)
    total = np.zeros(queries.n_queries)
    owner = np.repeat(np.arange(queries.n_queries), queries.sizes)
    for inside, valid in queries.pair_blocks():
        weight = weigh_pairs(value[inside], valid, pair_weight)
        if place is not None:
            weight *= place[inside][:, :, None] > place[inside][:, None, :]
        total[owner[inside[:, 0]]] = weight.sum(axis=(1, 2))
    return total


class _Disagreement(PairwiseAgreement, Loss):
    """Base class of the losses for pairwise agreement."""

    equal_queries: bool
    _of_targets = ("equal_queries", "score_function", "smoothing")

    def calibrated_measure(self, ranking: Ranking, relevance: Any) -> Floats:
        """Compute the measure if `equal_queries`, otherwise the negative contradicted weight."""
        if self.equal_queries:
            return self.per_query(ranking, relevance)
        return -self.contradicted(ranking, relevance)

    def query_weight(self, labels: Any, queries: Queries) -> Floats | None:
        """Return None if `equal_queries`, otherwise the weight of all preferences of each query."""
        return None if self.equal_queries else self.total(labels, queries)

    def differences(self, labels: Any, queries: Queries) -> Differences:
        """Return the differences t_ij = y_ij - y_ji of all pairs of documents.

        If `equal_queries`, they are divided by the total weight of the query.
        """
        factor = np.ones(queries.n_queries)
        if self.equal_queries:
            total = self.total(labels, queries)
            factor /= np.where(total > 0, total, 1.0)
        if isinstance(labels, Preferences):
            return PreferenceDifferences(labels, factor)
        return RelevanceDifferences(labels, queries, self.pair_weight, factor)


class PD(_Disagreement):
    """Pairwise disagreement, learned from all pairs of documents.

    Pairwise disagreement is the weight of the preferences that a ranking contradicts.

    Parameters
    ----------
    pair_weight : {"binary", "graded"} or callable, default="binary"
        Weight y_ij of the preference for document i over document j if y_i > y_j: 1, y_i - y_j, or
        ``pair_weight(y_i - y_j)``. Not used with `preference_labels`, which contain weights.
    equal_queries : bool, default=False
        Whether to divide the preferences of each query by their total weight, which gives all
        queries the same weight. `score` is then the mean over queries of the share of weight that
        the ranking does not contradict. Otherwise, `score` is this share over all queries together.

    Notes
    -----
    The targets of a query with r documents are the r (r - 1) / 2 differences y_ij - y_ji, i < j.
    The measure is 1 - PD / total weight. It is undefined for a query without a preference.

    Least squares on the targets is calibrated for every distribution if it is decoded exactly
    (Ramaswamy et al., 2013, theorem 3). The decoder ``"greedy_dag"`` is calibrated if the expected
    preferences are acyclic (theorem 7). With binary labels, or with ``pair_weight="graded"``,
    sorting by E[y_i] is optimal, and `PDByScores` is cheaper.

    Without `equal_queries`, the targets are calibrated for the contradicted weight. A ranking that
    minimises it need not minimise the mean of the contradicted shares. For example, let the labels
    of three documents be (0, 2, 2), (2, 0, 1) or (0, 1, 0) with probabilities .1, .5 and .4. The
    expected total weight is 2.5. The positions 1, 3, 2 have the smallest expected contradicted
    weight, 1.0, and an expected contradicted share of .5. The positions 2, 1, 3 have the values 1.1
    and .383.

    Examples
    --------
    >>> from sklearn_rankcal import CalibratedRanker
    >>> from sklearn_rankcal.losses import PD
    >>> ranker = CalibratedRanker(loss=PD(pair_weight="graded"))
    """

    space = PAIRS
    calibrated_over = "every distribution, decoded exactly (Ramaswamy et al., 2013, theorem 3)"

    def __init__(self, pair_weight: PairWeight = "binary", *, equal_queries: bool = False) -> None:
        self.pair_weight = pair_weight
        self.equal_queries = equal_queries

    def encode(self, relevance: Any, queries: Queries) -> Differences:
        """Return the differences of all pairs. They are computed for a few queries at a time."""
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
        How to compute the score of document i, in a query with r documents and weights y_ij:

        * ``"borda"``: the mean net preference, sum_j (y_ij - y_ji) / r.
        * ``"copeland"``: the number of pairs won minus the number of pairs lost, divided by r.
        * ``"row_sums"``: sum_j y_ij / r.
        * ``"log_odds"``: sum_j log((y_ij + smoothing) / (y_ji + smoothing)) / r
          (Bradley-Terry-Luce).
        * ``"least_squares"``: the scores x that minimise the sum of (x_i - x_j - (y_ij - y_ji))^2
          over the compared pairs (Thurstone-Mosteller), with mean 0 in each connected component of
          the comparisons. If all pairs are compared, this is ``"borda"``.
        * A function that maps the weights of n queries with r documents, shape (n, r, r), to
          scores of shape (n, r). Queries without preferences get the score 0 without a call.
    smoothing : float, default=0.5
        The number that ``"log_odds"`` adds to both weights. The default suits counts.
    equal_queries : bool, default=False
        Whether to divide the weights of each query by their sum before the scores are computed.
        `score` is computed as in `PD`.

    Notes
    -----
    The targets are calibrated over the distributions with the property P_f (Ramaswamy et al., 2013,
    theorem 6): if E[Y_ij] > E[Y_ji], document i has a larger expected score than document j. The
    net Borda score (Duchi, Mackey and Jordan, 2010) is the usual f. For some distributions, no f is
    calibrated. For example, let the label be a single preference: 1 > 2, 2 > 1, 2 > 3, 1 > 3 or
    3 > 1, with probabilities .20, .10, .36, .24 and .10. All named functions put document 2 first,
    but the best ranking puts document 1 first.

    With rules (`decoders.Rules`), the best ranking for the scores is also best for the disagreement
    if the preferences are differences of scores. This is the case for ``"borda"`` and
    ``"least_squares"``, with relevance of two grades or ``pair_weight="graded"``. In all other
    cases, ``loss="pd"`` may find a better ranking that keeps the rules, and reports do not call the
    ranking proved.

    The cost is O(n log r) for n documents with relevance, and O(pairs log pairs) with preferences.
    It is O(sum of r^2) if `score_function` or `pair_weight` is a function, and for ``"log_odds"``
    with graded relevance. It is O(sum of r^3) for ``"least_squares"``, except where it equals
    ``"borda"``.

    Examples
    --------
    Documents 0, 1 and 2 are never compared with documents 3 and 4. Scores are only comparable
    within each of the two components:

    >>> from sklearn_rankcal.labels import preference_labels
    >>> from sklearn_rankcal.labels._labels import read_preferences
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

    #: Whether, under rules, the best ranking for the scores is also best for the measure.
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
        check_number(self.smoothing, "smoothing")
        check_range(np.array([self.smoothing], dtype=np.float64), "smoothing")
        super().check(labels)

    def resolve(self, relevance: Any) -> PDByScores:
        """Return a copy of the loss, with `exact_under_rules` set."""
        resolved: PDByScores = super().resolve(relevance)
        known = ["borda"] if callable(self.pair_weight) else ["borda", "least_squares"]
        graded = self.pair_weight == "graded"
        if not isinstance(relevance, Preferences) and self.score_function in known:
            # Distributed labels are passed as only the smallest and the largest label.
            binary = not graded and len(relevance) > 2 and len(np.unique(relevance)) <= 2
            resolved.exact_under_rules = graded or binary
        return resolved

    def encode(self, relevance: Any, queries: Queries) -> Floats:
        """Compute the score f_i(y) of every row."""
        targets = self.differences(relevance, queries)
        if callable(self.score_function):
            return scores_by_matrices(targets, self.score_function)
        return SCORES[self.score_function](targets, self.smoothing)


Differences = RelevanceDifferences | PreferenceDifferences


def _borda(targets: Differences, c: float) -> Floats:
    return targets.row_sums() / targets.queries.broadcast(targets.queries.sizes)


def _least_squares(targets: Differences, c: float) -> Floats:
    # With relevance, a document is compared with all documents of different relevance. If n
    # documents have the relevance of document i, the normal equation of its score x_i is
    # (r - n) x_i - sum over the compared j of x_j = b_i, where b_i = sum_j (y_ij - y_ji). These n
    # documents have the same score, and all scores sum to 0. The sum over j is therefore -n x_i,
    # and the equation becomes r x_i = b_i, the Borda score.
    if isinstance(targets, RelevanceDifferences) and not callable(targets.kind):
        return _borda(targets, c)
    return scores_by_matrices(targets, least_squares_scores)


def _mean_share(
    targets: Differences, c: float, share: Callable[..., Floats], degree: int | None
) -> Floats:
    """Compute the scores sum_j share(y_ij, y_ji, c) / r, where share(0, 0, c) = 0.

    `degree` is the degree of homogeneity d, share(a y, a z, c) = a^d share(y, z, c) for all a > 0,
    or None.
    """
    queries = targets.queries
    if isinstance(targets, PreferenceDifferences):
        # Only compared pairs have a share that is not 0.
        i, j, y, opposed = targets.comparisons()
        rows, shares = np.append(i, j), np.append(share(y, opposed, c), share(opposed, y, c))
        sums = add_up(rows, shares, queries.n_rows)
    elif targets.kind == "binary" or (targets.kind == "graded" and degree is not None):
        # With relevance, at least one of y_ij and y_ji is 0. A nonzero weight is the factor of the
        # query, times the difference of relevance if graded. A share of degree 1 is proportional to
        # the difference, and a share of degree 0 does not depend on it. The sum over j is therefore
        # the share of the factor times a number of documents or a sum of differences.
        below, above = targets.below_and_above(graded=targets.kind == "graded" and degree == 1)
        weight = queries.broadcast(targets.factor)
        sums = below * share(weight, 0 * weight, c) + above * share(0 * weight, weight, c)
    else:
        return scores_by_matrices(targets, lambda y: share(y, y.transpose(0, 2, 1), c).mean(axis=2))
    return sums / queries.broadcast(queries.sizes)


def _winner(y: Floats, opposed: Floats) -> Floats:
    """Return 1, -1 or 0; equal sums of weights may differ by rounding."""
    return np.where(exceeds(np.abs(y - opposed), 0.0, y + opposed), np.sign(y - opposed), 0.0)


def _log_odds(y: Floats, opposed: Floats, c: float) -> Floats:
    # log((y + c) / (opposed + c)), without cancellation if the quotient is close to 1
    more, less = np.maximum(y, opposed), np.minimum(y, opposed)
    return np.copysign(np.log1p((more - less) / (less + c)), y - opposed)


def scores_by_matrices(targets: Differences, f: Callable[[Floats], Floats]) -> Floats:
    """Apply f to the weights of every query with a preference, and check the returned scores."""
    grouped = np.zeros(targets.queries.n_rows)
    for inside in targets.queries.equal_pair_blocks():
        weights = targets.weights(inside)
        some = weights.any(axis=(1, 2))
        if not some.any():
            continue
        scores = read_numbers(f(weights[some]), "the return value of score_function")
        if scores.shape != inside[some].shape:
            raise ValueError(
                f"score_function must return one score per document, shape {inside[some].shape}; "
                f"got shape {scores.shape} for weights of shape {weights[some].shape}."
            )
        if not np.isfinite(scores).all():
            q = int(np.argmin(np.isfinite(scores).all(axis=1)))
            raise ValueError(
                f"score_function must return finite scores; got {scores[q].tolist()} for "
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
    # Step 1: find the connected components of all queries, as one graph with n * r nodes.
    q, i, j = np.nonzero(compared)
    graph = sparse.coo_array((np.ones(len(q)), (q * r + i, q * r + j)), shape=(n * r, n * r))
    part = connected_components(graph, directed=False)[1].reshape(n, r)
    # Step 2: L is singular, because adding a constant to a component changes no difference. Adding
    # 1 to L_ij for all i and j of the same component makes it regular, and x has mean 0 in each
    # component.
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


# ---------------------------------------------------------------- discordant pairs

#: Up to this number of distinct labels, one pass per label is faster than a radix partition.
FEW_LEVELS = 32


def discordant_weight(ranking: Ranking, relevance: Floats, graded: bool = False) -> Floats:
    """Return the total weight of the discordant pairs of every query; a tied pair counts half.

    A pair of rows of a query with y_i > y_j is discordant if row i is not above row j. Its weight
    is 1, or y_i - y_j if `graded`. Pairs are counted in integers and never formed: label by label
    if there are few labels, otherwise by a radix partition in O(n log(labels of a query)).

    If `graded`, each gap between neighbouring labels of a query is multiplied by the number of
    discordant pairs across it, and the products are added in ascending order. The result is
    therefore bitwise independent of other queries, and never exceeds `preference_weight`.
    """
    levels = np.unique(relevance)
    if len(levels) <= FEW_LEVELS:
        return _discordant_by_level(ranking, relevance, levels, graded)
    # Number the labels of each query. 32 bits halve the time.
    queries, order = ranking.queries, ranking.queries.sort(-relevance)
    ascending = relevance[order]
    number = np.cumsum(~equal_neighbours(ascending, queries), dtype=np.int64)
    number -= queries.repeat(number[queries.offsets[:-1]])
    codes: NDArray[Any] = np.empty(len(order), np.int32 if len(order) < 2**31 else np.int64)
    codes[order] = number
    if ranking.start is None:
        count = _discordant_counts(ranking, codes, graded)
    else:  # a tied pair counts 0 in one of these orders and 1 in the other
        best, worst = (ranking.break_ties(key) for key in (-codes, codes))
        count = _discordant_counts(best, codes, graded) + _discordant_counts(worst, codes, graded)
        count = count / 2
    return _sum_of_gaps(queries, ascending, count) if graded else count.astype(float)


def _by_level(queries: Queries, values: Floats, levels: Floats, graded: bool) -> Iterator[Any]:
    """Yield, for each label but the lowest, sets of low and high places, and the weight of a pair.

    The low places have a lower label, and the high places have this label. If `graded`, they also
    have the higher labels, and the weight is the gap below this label: 0 in queries without it.
    """
    below = queries.reduce(np.minimum, values)
    for level in levels[1:]:
        low, same = values < level, values == level
        if not graded:
            yield low, same, 1.0
            continue
        present = queries.reduce(np.logical_or, same)
        yield low, ~low, np.where(present, level - below, 0.0)
        below[present] = level


def _discordant_by_level(
    ranking: Ranking, relevance: Floats, levels: Floats, graded: bool
) -> Floats:
    """Compute `discordant_weight` in one pass per label."""
    queries, total = ranking.queries, np.zeros(ranking.queries.n_queries)
    first = queries.offsets[:-1]
    if ranking.start is not None and ranking.stop is not None:
        start, stop = (place + queries.repeat(first) for place in (ranking.start, ranking.stop))
    before = np.zeros(queries.n_rows + 1, dtype=np.int64)  # number of low places before each place
    for low, high, weight in _by_level(queries, relevance[ranking.order], levels, graded):
        np.cumsum(low, out=before[1:])
        if ranking.start is None:
            above = before[:-1] * high
        else:  # half of the low places in a row's own block of ties count as above it
            above = (before[start] + before[stop]) * (high / 2)
        count = ranking.sum(above) - before[first] * ranking.sum(high.astype(np.int64))
        total += count * weight
    return total


def _sum_of_gaps(queries: Queries, ascending: Floats, across: NDArray[Any]) -> Floats:
    """Return the sum over the gaps of each query of gap * number of pairs across it.

    `ascending` holds the labels of each query in ascending order, and `across` the number of pairs
    across the gap after each label.
    """
    gap = np.zeros(len(ascending))
    inner = np.ones(len(ascending), dtype=bool)  # no gap follows the last label of a query
    inner[queries.offsets[1:] - 1] = False
    np.subtract(ascending[1:], ascending[:-1], out=gap[:-1], where=inner[:-1])
    owner = queries.repeat(np.arange(queries.n_queries))
    total = np.bincount(owner, gap * across, queries.n_queries)
    return total.astype(np.float64, copy=False)


def _discordant_counts(ranking: Ranking, codes: NDArray[Any], graded: bool) -> NDArray[Any]:
    """Count the discordant pairs of a ranking without ties, given the numbers of the labels.

    The result is the number of pairs of each query. If `graded`, it is the number of pairs across
    the gap after each label, in ascending order.

    Rows are partitioned by the bits of the numbers, from the highest bit to the lowest. Invariant:
    rows with equal higher bits form a group, in the order of the ranking. A discordant pair is
    counted once, at the bit that separates its rows.
    """
    queries = ranking.queries
    code = codes[ranking.order]
    count = np.zeros(len(code) if graded else queries.n_queries, dtype=np.int64)
    row = np.arange(len(code), dtype=code.dtype)
    starts, sizes = queries.offsets[:-1].astype(code.dtype), queries.sizes  # of the groups
    for bit in reversed(range(int(codes.max()).bit_length())):
        high = (code >> bit) & 1
        # for each row: the rows of its group with bit 1 that are above it
        before = np.cumsum(high, dtype=code.dtype) - high
        before -= np.repeat(before[starts], sizes)
        first = np.repeat(starts, sizes)
        low_before = row - first - before
        n_high = np.add.reduceat(high, starts, dtype=code.dtype)
        if graded:
            # Going up the labels, a pair is added at its lower label and subtracted at its higher
            # label. In between, it is across the current gap.
            count -= high * low_before
            count += (1 - high) * (np.repeat(n_high, sizes) - before)
        else:
            count += queries.reduce(np.add, high * low_before)
            if bit == 0:
                break
        # stable partition of every group: rows with bit 0 first, then those with bit 1
        n_low = sizes.astype(code.dtype) - n_high
        place = np.where(high, np.repeat(n_low, sizes) + before, low_before)
        target = (first + place).astype(np.intp)
        moved = np.empty_like(code)
        moved[target] = code
        code = moved
        if graded:
            moved = np.empty_like(count)
            moved[target] = count
            count = moved
        split = (n_low > 0) & (n_high > 0)
        begins = np.zeros(len(code), dtype=bool)
        begins[starts] = begins[(starts + n_low)[split]] = True
        starts = row[begins]
        sizes = np.diff(np.append(starts, len(code)))
    return queries.cumsum(count) if graded else count


def preference_weight(queries: Queries, relevance: Floats, graded: bool = False) -> Floats:
    """Return the total weight of all pairs with y_i > y_j of each query."""
    levels = np.unique(relevance)
    if len(levels) <= FEW_LEVELS:
        total = np.zeros(queries.n_queries)
        for low, high, weight in _by_level(queries, queries.gather(relevance), levels, graded):
            n_low, n_high = (queries.reduce(np.add, at.astype(np.int64)) for at in (low, high))
            total += n_low * n_high * weight
        return total
    if graded:
        # the pairs across the gap after the i-th label: i lower rows times r - i higher rows
        ascending = -queries.sort_values(-relevance)
        passed = queries.place + 1
        return _sum_of_gaps(queries, ascending, passed * (queries.repeat(queries.sizes) - passed))
    # The t-th row of a run of equal labels forms t - 1 equal pairs with the rows before it. These
    # are subtracted from all r (r - 1) / 2 pairs.
    start, _ = blocks(equal_neighbours(queries.sort_values(relevance), queries), queries)
    equal = queries.reduce(np.add, queries.place - start)
    return (queries.sizes * (queries.sizes - 1) / 2 - equal).astype(np.float64)


def score_violations(
    differences: Floats, scores: Floats, slack: Floats | float, score_slack: Floats | float
) -> Bools:
    """Return which pairs (i, j) violate P_f, for differences (n, r, r) and scores (n, r)."""
    lead = scores[:, :, None] - scores[:, None, :]
    return (differences > slack) & ~(lead > score_slack)
