"""Structures from eigenvectors: Saaty's principal eigenvector and rank centrality."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.linalg import splu

from sklearn_rankcal.aggregation._base import ComparisonStructure
from sklearn_rankcal.aggregation._closed_forms import ADDED_TO, smoothed_log_odds
from sklearn_rankcal.aggregation._graphs import (
    ComparedPairs,
    ComparisonGraph,
    compared_pairs,
    number_components,
)
from sklearn_rankcal.aggregation._newton import warn_not_converged
from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._memory import rows_per_block
from sklearn_rankcal.utils._parameters import check_choice, check_count, check_number
from sklearn_rankcal.utils._typing import Bools, Floats

#: Largest relative change of an entry in the last step of a power iteration. The remaining error is
#: larger by the factor 1 / (1 - g), where a step multiplies the error by g.
_TOLERANCE = 1e-13
_DENSE = 200  # largest component that is solved as a dense matrix


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
    >>> from sklearn_rankcal.aggregation import PrincipalEigenvector
    >>> from sklearn_rankcal.aggregation._judgements import Judgements
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
    >>> from sklearn_rankcal.aggregation import RankCentrality
    >>> from sklearn_rankcal.aggregation._judgements import Judgements
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
        sizes, n_pairs = graph.parts.sizes, np.diff(graph.pair_offsets)
        small = sizes <= _DENSE
        thin = ~small & (n_pairs <= 2 * sizes)
        vector = np.ones(graph.n_nodes)
        for chosen, solve in ((small, _solve_dense), (thin, _solve_sparse)):
            if chosen.any():
                part, nodes = (graph, slice(None)) if chosen.all() else graph.take(chosen)
                vector[nodes] = solve(part, *_rates(part.pairs, self.smoothing))
        chosen = ~small & ~thin
        if chosen.any():
            part, nodes = graph.take(chosen)
            rates = _rates(part.pairs, self.smoothing)
            vector[nodes], unfinished = _walk(part, *rates, self.max_iter)
            name, queries = type(self).__name__, preferences.queries
            warn_not_converged(name, unfinished, part.rows, part.parts, queries, self.max_iter)
        return graph.to_rows(np.log(vector), preferences.n_rows)


def _rates(pairs: ComparedPairs, smoothing: float) -> tuple[Floats, Floats]:
    """Return the rates of moves to the first and to the second item of each pair."""
    total = pairs.total + 2 * smoothing
    return (pairs.wins + smoothing) / total, (pairs.losses + smoothing) / total


def _solve_dense(graph: ComparisonGraph, to_first: Floats, to_second: Floats) -> Floats:
    """Solve the balance equations of small components, in batches of similar size."""
    vector = np.ones(graph.n_nodes)
    parts, pairs = graph.parts, graph.pairs
    leaving = pairs.sum_over(to_second, to_first, graph.n_nodes)
    place = parts.place
    for inside, valid in parts.buckets():
        width = inside.shape[1]
        step = rows_per_block(8 * width**2)
        for begin in range(0, len(inside), step):
            block, real = inside[begin : begin + step], valid[begin : begin + step]
            member = np.searchsorted(parts.offsets, block[:, 0], side="right") - 1
            # the pairs of these components, and the number of the component in this block
            counts = graph.pair_offsets[member + 1] - graph.pair_offsets[member]
            before = np.cumsum(counts) - counts
            pair = np.arange(counts.sum())
            pair += np.repeat(graph.pair_offsets[member] - before, counts)
            which = np.repeat(np.arange(len(block)), counts)
            one, other = place[pairs.first[pair]], place[pairs.second[pair]]
            # Row j: the outflow of item j equals the inflow from its neighbours.
            matrix = np.zeros((len(block), width, width))
            matrix[which, one, other] = -to_first[pair]
            matrix[which, other, one] = -to_second[pair]
            diagonal = np.arange(width)
            matrix[:, diagonal, diagonal] = np.where(real, leaving[block], 1.0)
            # One equation is redundant. It is replaced: the entries add up to 1.
            matrix[:, 0, :] = real
            rhs = np.zeros((len(block), width, 1))
            rhs[:, 0] = 1.0
            vector[block[real]] = np.linalg.solve(matrix, rhs)[:, :, 0][real]
    return vector


def _solve_sparse(graph: ComparisonGraph, to_first: Floats, to_second: Floats) -> Floats:
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
