"""Structures from sums of comparisons: closed forms, least squares and eigenvectors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.linalg import splu
from scipy.special import ndtri

from sklearn_rankcal.aggregation._base import ComparisonStructure
from sklearn_rankcal.aggregation._graphs import (
    ComparedPairs,
    ComparisonGraph,
    compared_pairs,
    number_components,
    solve_laplacian,
)
from sklearn_rankcal.aggregation._likelihoods import warn_not_converged
from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._messages import check_choice, check_count, check_flag, check_number
from sklearn_rankcal.utils._numbers import Bools, Floats

#: Values of the parameter `added_to`.
ADDED_TO = ("counts", "fractions", "conditional")


class Borda(ComparisonStructure):
    """Net Borda count: the mean number of wins minus losses of an item per judgement.

    See Duchi et al. (2013), section 5.1.

    Notes
    -----
    The scores are s = A 1 / k. A_ij is the total weight of preferences of item i over item j minus
    the reverse, and k is the number of judgements of the query. The scores add up to 0.

    If items are not compared equally often, the order depends on the number of comparisons. An item
    that wins 60 of 100 comparisons is above an item that wins 10 of 10, even in the limit of many
    judgements.

    Examples
    --------
    >>> from sklearn_rankcal import Judgements
    >>> from sklearn_rankcal.aggregation import Borda
    >>> judgements = Judgements.from_pairs([("a", "b")] * 2 + [("b", "a"), ("b", "c")])
    >>> judgements.items.tolist(), Borda().scores(judgements).tolist()
    (['a', 'b', 'c'], [0.25, 0.0, -0.25])
    """

    tolerance = 1e-12  # one comparison in a million judgements changes a score by 1e-6

    def _scores(self, preferences: Preferences, n_judgements: Floats) -> Floats:
        queries, pairs = preferences.queries, compared_pairs(preferences)
        net = pairs.sum_skew(pairs.wins - pairs.losses, queries.n_rows)
        return queries.scatter(net * queries.repeat(_inverse(n_judgements)))

    def gains(self, scores: Floats, queries: Queries) -> Floats:
        """Convert scores to the gains (score + 1) / 2, which are linear in the counts.

        Scores below -1 occur if a judgement compares several pairs. The lowest score of the query
        then replaces -1.
        """
        lowest = np.minimum(queries.min(scores), -1.0)
        return (scores - queries.broadcast(lowest)) / 2


class BudgetedBorda(ComparisonStructure):
    """Budgeted Borda count: the probability of a win against a random opponent.

    Parameters
    ----------
    conditional : bool, default=False
        If True, the probability that item j is preferred to item l is estimated from the
        comparisons of j and l. If False, it is estimated from all k judgements of the query, and a
        judgement that does not compare j and l counts as not preferring j.

    Notes
    -----
    The scores are s_j = (1 / (r - 1)) sum over l != j of P(j preferred to l), for a query of r
    items. A pair that was never compared contributes 0. If pairs are not compared equally often,
    only the conditional probabilities recover the true order with a growing number of judgements,
    and only if all pairs are compared.

    References
    ----------
    Ammar and Shah (2011), Ranking: compare, don't score; Duchi et al. (2013), section 5.1.

    Examples
    --------
    >>> from sklearn_rankcal import Judgements
    >>> from sklearn_rankcal.aggregation import BudgetedBorda
    >>> judgements = Judgements.from_pairs([("a", "b")] * 2 + [("b", "a")] * 2 + [("c", "b")])
    >>> BudgetedBorda().scores(judgements).tolist()
    [0.2, 0.2, 0.1]
    >>> BudgetedBorda(conditional=True).scores(judgements).tolist()
    [0.25, 0.25, 0.5]
    """

    tolerance = 1e-12
    _scores_are_gains = True

    def __init__(self, conditional: bool = False) -> None:
        self.conditional = conditional

    def check(self) -> None:
        """Raise ValueError unless the parameters are valid."""
        check_flag(self.conditional, "conditional")

    def _scores(self, preferences: Preferences, n_judgements: Floats) -> Floats:
        queries, pairs = preferences.queries, compared_pairs(preferences)
        share = 1 / pairs.total if self.conditional else np.ones(len(pairs.first))
        sums = pairs.sum_over(pairs.wins * share, pairs.losses * share, queries.n_rows)
        if not self.conditional:
            sums = sums * queries.repeat(_inverse(n_judgements))
        return queries.scatter(sums / others(queries))


class Copeland(ComparisonStructure):
    """Copeland's rule: the number of items that an item beats, minus the number that beat it.

    Notes
    -----
    Item i beats item j if i was preferred to j with more weight than j to i. Ties and pairs without
    comparisons count 0. If all pairs are compared and their expected winners form an order, the
    scores recover this order with a growing number of judgements, even if some pairs are compared
    more often than others. Resamples give intervals of ranks, but not of scores, which change in
    steps.

    References
    ----------
    Copeland (1951), A reasonable social welfare function, University of Michigan.

    Examples
    --------
    >>> from sklearn_rankcal import Judgements
    >>> from sklearn_rankcal.aggregation import Copeland
    >>> Copeland().scores(
    ...     Judgements.from_pairs([("a", "b")] * 2 + [("b", "a"), ("b", "c")])
    ... ).tolist()
    [1.0, 0.0, -1.0]
    """

    _steps = True

    def _scores(self, preferences: Preferences, n_judgements: Floats) -> Floats:
        queries, pairs = preferences.queries, compared_pairs(preferences)
        return queries.scatter(pairs.sum_skew(np.sign(pairs.net), queries.n_rows))

    def gains(self, scores: Floats, queries: Queries) -> Floats:
        """Convert scores to the share of the other items that an item beats; ties count half."""
        return (1.0 + scores / queries.scatter(others(queries))) / 2


class LogOdds(ComparisonStructure):
    """Mean smoothed log-odds of an item against all other items.

    Parameters
    ----------
    smoothing : float, default=0.5
        The number c > 0 added to both sides of each pair. It keeps the log-odds finite if one item
        always won.
    added_to : {"conditional", "counts", "fractions"}, default="conditional"
        The quantity that c is added to:

        - ``"counts"``: log((w_jl + c) / (w_lj + c)), where w_jl is the total weight of preferences
          of item j over item l. As w_jl and w_lj grow, the effect of c disappears.
        - ``"fractions"``: log((P_jl + c) / (P_lj + c)), where P_jl = w_jl / k is the fraction of
          the k judgements of the query that prefer j to l. This is the formula of Duchi et al.
        - ``"conditional"``: the same formula with P_jl = w_jl / (w_jl + w_lj), the fraction of the
          comparisons of j and l.

    See Also
    --------
    BradleyTerry : Maximum likelihood in the same model.
    LeastSquares : The counterpart for queries with pairs that were not compared.

    Notes
    -----
    The scores are s_j = (1 / (r - 1)) sum over l != j of the log-odds of j against l, for a query
    of r items. A pair that was never compared contributes 0.

    If all pairs are compared, the scores with ``"counts"`` converge to r / (r - 1) times the
    centred parameters of the Bradley-Terry-Luce model with a growing number of judgements. With c =
    1/2 the bias is of order 1 / n^2 (Haldane, 1956). With ``"conditional"``, the order is right in
    the limit, and the log-odds of a pair are at most log(3), which suits the subsets of
    `AggregatedLoss`. With ``"fractions"``, the order can be wrong if pairs are not compared equally
    often.

    References
    ----------
    Duchi et al. (2013), sections 5.1 and 6.2, with the limit in equation (27).

    Examples
    --------
    >>> from sklearn_rankcal import Judgements
    >>> from sklearn_rankcal.aggregation import LogOdds
    >>> judgements = Judgements.from_pairs([("a", "b")] * 3 + [("b", "a")])
    >>> LogOdds().scores(judgements).round(3).tolist()  # log(1.25 / .75)
    [0.511, -0.511]
    >>> LogOdds(0.01, added_to="fractions").scores(judgements).round(3).tolist()  # log(.76 / .26)
    [1.073, -1.073]
    """

    def __init__(self, smoothing: float = 0.5, added_to: str = "conditional") -> None:
        self.smoothing = smoothing
        self.added_to = added_to

    @property
    def unbounded(self) -> bool:  # type: ignore[override]
        """Whether the smoothing, which bounds the log-odds of a pair, disappears in the limit."""
        return self.added_to == "counts"

    def check(self) -> None:
        """Raise ValueError unless the parameters are valid."""
        check_number(self.smoothing, "smoothing")
        check_choice(self.added_to, "added_to", ADDED_TO)

    def _scores(self, preferences: Preferences, n_judgements: Floats) -> Floats:
        queries, pairs = preferences.queries, compared_pairs(preferences)
        k = queries.repeat(n_judgements)[pairs.first]
        sums = pairs.sum_skew(
            smoothed_log_odds(pairs, self.smoothing, self.added_to, k), queries.n_rows
        )
        return queries.scatter(sums / others(queries))


def smoothed_log_odds(pairs: ComparedPairs, smoothing: float, added_to: str, k: Floats) -> Floats:
    """Return the log-odds of the first item of each pair, for queries with k judgements."""
    # log((w / k + c) / (w' / k + c)) = log((w + c k) / (w' + c k))
    unit = {"counts": np.ones_like(k), "fractions": k, "conditional": pairs.total}[added_to]
    added = smoothing * unit
    return np.log(pairs.wins + added) - np.log(pairs.losses + added)


def others(queries: Queries) -> Floats:
    """Return the number of other items in the query, at least 1, in grouped layout."""
    return queries.repeat(np.maximum(queries.sizes - 1, 1)).astype(np.float64)


def _inverse(n_judgements: Floats) -> Floats:
    """Return 1 / k for each query, and 0 for a query without judgements."""
    return np.divide(1.0, n_judgements, out=np.zeros(len(n_judgements)), where=n_judgements > 0)


# ---------------------------------------------------------------- least squares


def _probit(pairs: ComparedPairs, smoothing: float) -> Floats:
    # The smaller share is accurate even if the larger share is rounded to 1.
    smaller = np.minimum(pairs.wins, pairs.losses) + smoothing
    distance = -ndtri(smaller / (pairs.total + 2 * smoothing))
    return np.copysign(distance, pairs.wins - pairs.losses)


#: Functions that return the margin of the first item of each pair over the second.
MARGINS: dict[str, Callable[[ComparedPairs, float], Floats]] = {
    "difference": lambda pairs, smoothing: pairs.net / pairs.total,
    "log_odds": lambda pairs, smoothing: smoothed_log_odds(pairs, smoothing, "counts", pairs.total),
    "probit": _probit,
}


class LeastSquares(ComparisonStructure):
    """Thurstone-Mosteller least squares: scores with differences closest to the margins of pairs.

    Parameters
    ----------
    margin : {"difference", "log_odds", "probit"}, default="log_odds"
        The margin A_ij of item i over item j, where w_ij is the total weight of preferences of i
        over j:

        - ``"difference"``: (w_ij - w_ji) / (w_ij + w_ji);
        - ``"log_odds"``: log((w_ij + c) / (w_ji + c)), as in the Bradley-Terry-Luce model;
        - ``"probit"``: the normal quantile of (w_ij + c) / (w_ij + w_ji + 2 c), as in Thurstone's
          model.
    smoothing : float, default=0.5
        The number c > 0. ``"difference"`` does not use it.
    weighted : bool, default=False
        Whether the squared error of a pair is weighted by w_ij + w_ji. Otherwise all compared pairs
        have the same weight.

    Notes
    -----
    The scores minimise the sum over the compared pairs of (A_ij - (s_i - s_j))^2, equation (22) of
    Duchi et al., and are centred at 0 on each connected component of the comparisons. Apart from c,
    the margins do not depend on how often a pair is compared. With the margin of a
    Bradley-Terry-Luce or Thurstone model, and comparisons that connect all items, the scores
    therefore recover the order of the model with a growing number of judgements. With other
    margins, this needs comparisons of all pairs.

    References
    ----------
    Duchi et al. (2013), section 5.1; Mosteller (1951), Remarks on the method of paired comparisons.

    Examples
    --------
    Items a and c were never compared. Their scores follow from comparisons with b:

    >>> from sklearn_rankcal import Judgements
    >>> from sklearn_rankcal.aggregation import LeastSquares
    >>> judgements = Judgements.from_pairs([("a", "b")] * 2 + [("b", "a"), ("a", "b"), ("b", "c")])
    >>> LeastSquares("difference").scores(judgements).round(6).tolist()
    [0.666667, 0.166667, -0.833333]
    """

    def __init__(
        self, margin: str = "log_odds", smoothing: float = 0.5, weighted: bool = False
    ) -> None:
        self.margin = margin
        self.smoothing = smoothing
        self.weighted = weighted

    @property
    def unbounded(self) -> bool:  # type: ignore[override]
        """Whether the margin of a pair that one item always wins grows with the comparisons."""
        return self.margin != "difference"

    def check(self) -> None:
        """Raise ValueError unless the parameters are valid."""
        check_choice(self.margin, "margin", MARGINS)
        check_number(self.smoothing, "smoothing")
        check_flag(self.weighted, "weighted")

    def _scores(self, preferences: Preferences, n_judgements: Floats) -> Floats:
        graph = ComparisonGraph.from_preferences(preferences)
        if not graph.n_nodes:
            return np.zeros(preferences.n_rows)
        pairs = graph.pairs
        weight = pairs.total if self.weighted else np.ones(len(pairs.first))
        margin = MARGINS[self.margin](pairs, self.smoothing)
        rhs = pairs.sum_skew(weight * margin, graph.n_nodes)
        return graph.to_rows(solve_laplacian(graph, weight, rhs), preferences.n_rows)


# ---------------------------------------------------------------- eigenvectors


#: Largest relative change of an entry in the last step of a power iteration. The remaining error is
#: larger by the factor 1 / (1 - g), where a step multiplies the error by g.
_TOLERANCE = 1e-13
#: Components of up to this number of items are eliminated, which is slow for thousands: 6 s against
#: .02 s of the power iteration for 3,000 items with 60,000 comparisons.
_SMALL = 200


class PrincipalEigenvector(ComparisonStructure):
    """Saaty's principal eigenvector of the matrix of preference ratios.

    Parameters
    ----------
    smoothing : float, default=0.5
        The number c > 0 added to both sides of each pair.
    added_to : {"counts", "fractions", "conditional"}, default="counts"
        The quantity that c is added to, as in `LogOdds`.
    max_iter : int, default=1000
        The largest number of steps of the power iteration.

    Warns
    -----
    ConvergenceWarning
        If `max_iter` steps are not enough.

    Notes
    -----
    The matrix A of a query has the ratios A_jl = (P_jl + c) / (P_lj + c), where `added_to` defines
    P_jl, and 1 on the diagonal and for pairs without comparisons. The scores are the logarithms of
    its eigenvector with positive entries, centred at 0 on each connected component of the
    comparisons. If A_jl = exp(s_j - s_l) for all pairs, the scores are s. With ``"counts"``, they
    therefore recover the scores of a Bradley-Terry-Luce model with a growing number of judgements,
    if all pairs are compared.

    References
    ----------
    Saaty (2003), Decision-making with the AHP; Duchi et al. (2013), section 5.1.

    Examples
    --------
    >>> from sklearn_rankcal import Judgements
    >>> from sklearn_rankcal.aggregation import PrincipalEigenvector
    >>> judgements = Judgements.from_pairs([("a", "b")] * 3 + [("b", "a")])
    >>> PrincipalEigenvector().scores(judgements).round(4).tolist()  # half of log(3.5 / 1.5)
    [0.4236, -0.4236]
    """

    def __init__(
        self, smoothing: float = 0.5, added_to: str = "counts", max_iter: int = 1000
    ) -> None:
        self.smoothing = smoothing
        self.added_to = added_to
        self.max_iter = max_iter

    @property
    def unbounded(self) -> bool:  # type: ignore[override]
        """Whether the smoothing, which bounds the log-odds of a pair, disappears in the limit."""
        return self.added_to == "counts"

    def check(self) -> None:
        """Raise ValueError unless the parameters are valid."""
        check_number(self.smoothing, "smoothing")
        check_choice(self.added_to, "added_to", ADDED_TO)
        check_count(self.max_iter, "max_iter")

    def _scores(self, preferences: Preferences, n_judgements: Floats) -> Floats:
        queries, pairs = preferences.queries, compared_pairs(preferences)
        k = queries.repeat(n_judgements)[pairs.first]
        ratio = np.exp(smoothed_log_odds(pairs, self.smoothing, self.added_to, k))
        vector, unfinished = _perron(pairs, ratio, queries, self.max_iter)
        if unfinished.any():
            rows = np.arange(queries.n_rows) if queries.order is None else queries.order
            name = type(self).__name__
            warn_not_converged(name, unfinished, rows, queries, queries, self.max_iter)
        # centre each connected component
        labels = number_components(pairs.first, pairs.second, queries.n_rows, "weak")
        scores = np.log(vector)
        mean = np.bincount(labels, scores) / np.bincount(labels)
        return queries.scatter(scores - mean[labels])


def _perron(
    pairs: ComparedPairs, ratio: Floats, queries: Queries, max_iter: int
) -> tuple[Floats, Bools]:
    """Return the Perron vectors of all queries, and which did not converge.

    The array has shape (n_rows,), in grouped layout. The entries of a query add up to its size.
    """
    n = queries.n_rows
    shape = (n, n)
    # A minus a matrix of ones, above and below the diagonal
    above = coo_array((ratio - 1, (pairs.first, pairs.second)), shape=shape).tocsr()
    below = coo_array((1 / ratio - 1, (pairs.second, pairs.first)), shape=shape).tocsr()
    grouped = Queries(queries.offsets)

    def step(x: Floats) -> Floats:
        # m is the growth of the last step. The shift A + (m / 2) I also converges fast if other
        # eigenvalues of A have the modulus of the largest.
        product = grouped.repeat(grouped.sum(x)) + above @ x + below @ x
        growth = grouped.sum(product) / grouped.sum(x)
        return product + grouped.repeat(growth / 2) * x

    return _iterate(step, grouped, max_iter)


def _iterate(
    step: Callable[[Floats], Floats], parts: Queries, max_iter: int
) -> tuple[Floats, Bools]:
    """Iterate from 1, scaled to mean 1 in each part, and return the parts that still change."""
    x = np.ones(parts.n_rows)
    changing = np.ones(parts.n_queries, dtype=bool)
    for _ in range(max_iter):
        new = step(x)
        new *= parts.repeat(parts.sizes / parts.sum(new))
        changing = parts.max(np.abs(new - x) / x) > _TOLERANCE
        x = new
        if not changing.any():
            break
    return x, changing


class RankCentrality(ComparisonStructure):
    """Rank centrality: the stationary distribution of a random walk from losers to winners.

    Parameters
    ----------
    smoothing : float, default=0.5
        The number c > 0 added to both sides of each pair. It keeps the walk from being trapped.
    max_iter : int, default=10000
        The largest number of steps of the power iteration for large queries.

    Warns
    -----
    ConvergenceWarning
        If `max_iter` steps are not enough.

    Notes
    -----
    Let w_ij be the total weight of preferences of i over j. The walk moves from item i to a
    compared item j at the rate (w_ji + c) / (w_ij + w_ji + 2 c). The scores are the logarithms of
    its stationary distribution, centred at 0 on each connected component of the comparisons. If the
    comparisons connect all items, they converge to the scores of a Bradley-Terry-Luce model with a
    growing number of judgements, even if some pairs are compared more often than others.

    References
    ----------
    Negahban, Oh and Shah (2012), Iterative ranking from pair-wise comparisons, NIPS.

    Examples
    --------
    >>> from sklearn_rankcal import Judgements
    >>> from sklearn_rankcal.aggregation import RankCentrality
    >>> judgements = Judgements.from_pairs([("a", "b")] * 3 + [("b", "a")])
    >>> RankCentrality().scores(judgements).round(4).tolist()  # half of log(3.5 / 1.5)
    [0.4236, -0.4236]
    """

    unbounded = True

    def __init__(self, smoothing: float = 0.5, max_iter: int = 10_000) -> None:
        self.smoothing = smoothing
        self.max_iter = max_iter

    def check(self) -> None:
        """Raise ValueError unless the parameters are valid."""
        check_number(self.smoothing, "smoothing")
        check_count(self.max_iter, "max_iter")

    def _scores(self, preferences: Preferences, n_judgements: Floats) -> Floats:
        graph = ComparisonGraph.from_preferences(preferences)
        if not graph.n_nodes:
            return np.zeros(preferences.n_rows)
        sizes, vector = graph.parts.sizes, np.ones(graph.n_nodes)
        few_pairs = np.diff(graph.pair_offsets) <= 2 * sizes  # as in chains: the walk is slow
        direct = (sizes <= _SMALL) | few_pairs
        for chosen, eliminate in ((direct, True), (~direct, False)):
            if not chosen.any():
                continue
            part, nodes = (graph, slice(None)) if chosen.all() else graph.take(chosen)
            rates = _rates(part.pairs, self.smoothing)
            if eliminate:
                vector[nodes] = _eliminate(part, *rates)
                continue
            vector[nodes], unfinished = _walk(part, *rates, self.max_iter)
            if unfinished.any():
                name, queries = type(self).__name__, preferences.queries
                warn_not_converged(name, unfinished, part.rows, part.parts, queries, self.max_iter)
        return graph.to_rows(np.log(vector), preferences.n_rows)


def _rates(pairs: ComparedPairs, smoothing: float) -> tuple[Floats, Floats]:
    """Return the rates of moves to the first and to the second item of each pair."""
    total = pairs.total + 2 * smoothing
    return (pairs.wins + smoothing) / total, (pairs.losses + smoothing) / total


def _eliminate(graph: ComparisonGraph, to_first: Floats, to_second: Floats) -> Floats:
    """Solve the balance equations by sparse elimination, with 1 for the first item of each part."""
    n = graph.n_nodes
    pairs = graph.pairs
    place = np.arange(n)
    leaving = pairs.sum_over(to_second, to_first, n)
    entries = np.concatenate([leaving, -to_first, -to_second])
    rows = np.concatenate([place, pairs.first, pairs.second])
    columns = np.concatenate([place, pairs.second, pairs.first])
    fixed = np.zeros(n, dtype=bool)
    fixed[graph.parts.offsets[:-1]] = True
    inside = ~fixed[rows]
    entries = np.concatenate([entries[inside], np.ones(int(fixed.sum()))])
    rows = np.concatenate([rows[inside], place[fixed]])
    columns = np.concatenate([columns[inside], place[fixed]])
    matrix = coo_array((entries, (rows, columns)), shape=(n, n)).tocsc()
    return np.asarray(splu(matrix).solve(fixed.astype(np.float64)))


def _walk(
    graph: ComparisonGraph, to_first: Floats, to_second: Floats, max_iter: int
) -> tuple[Floats, Bools]:
    """Find the stationary distributions by power iteration, and the parts without convergence."""
    leaving = graph.pairs.sum_over(to_second, to_first, graph.n_nodes)
    above, below = graph.upper(to_first), graph.upper(to_second).T
    # The walk stays with probability 1/2, to prevent periodicity.
    return _iterate(lambda x: (x + (above @ x + below @ x) / leaving) / 2, graph.parts, max_iter)
