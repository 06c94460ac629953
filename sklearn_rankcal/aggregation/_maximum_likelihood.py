"""`BradleyTerry` and `PlackettLuce`: maximum likelihood for comparisons and orders."""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logsumexp

from sklearn_rankcal.aggregation._base import ComparisonStructure, Solution, Structure
from sklearn_rankcal.aggregation._boards import coefficients_of, fit_boards, intervals_of, scores_of
from sklearn_rankcal.aggregation._graphs import (
    ComparisonGraph,
    conjugate_gradients,
    number_components,
    solve_laplacian,
)
from sklearn_rankcal.aggregation._judgements import Judgements
from sklearn_rankcal.aggregation._likelihoods import (
    BLOCK,
    TIES,
    LogisticTerms,
    logistic_terms,
    minimize,
    warn_not_converged,
)
from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._messages import check_choice, check_count, check_flag, check_number
from sklearn_rankcal.utils._numbers import Bools, Floats, Ints, add_up

#: The ridge penalty of ``penalty="auto"`` if the likelihood has no maximum.
AUTO_PENALTY = 0.1


class MaximumLikelihood(Structure):
    """Base class of structures that are fitted by Newton's method, as `BradleyTerry`."""

    unbounded = True

    def __init__(
        self, penalty: float | str = "auto", tol: float = 1e-6, max_iter: int = 100
    ) -> None:
        self.penalty = penalty
        self.tol = tol
        self.max_iter = max_iter

    @property
    def tolerance(self) -> float:  # type: ignore[override]
        """The smallest difference of two scores, far above the error of Newton's method."""
        return max(1e-9, 1e-3 * self.tol)

    def check(self) -> None:
        """Raise ValueError unless the parameters are valid."""
        if self.penalty != "auto" or not isinstance(self.penalty, str):
            check_number(self.penalty, "penalty", "[0, inf)", also="'auto' or")
        check_number(self.tol, "tol")
        check_count(self.max_iter, "max_iter")

    def _penalties(self, strong: Bools) -> Floats:
        """Return the penalty of each component, given whether it is strongly connected."""
        if isinstance(self.penalty, str):
            return np.where(strong, 0.0, AUTO_PENALTY)
        return np.full(len(strong), float(self.penalty))

    def _minimize(self, objective: Any, rows: Ints, queries: Queries) -> Floats:
        """Return the centred scores of the nodes, which have these rows."""
        found = minimize(objective, self.tol, self.max_iter)
        if found.unfinished.any():
            name, parts = type(self).__name__, objective.parts
            warn_not_converged(name, found.unfinished, rows, parts, queries, self.max_iter)
        return objective.parts.center(found.x)

    def _fit_comparisons(self, preferences: Preferences) -> Floats:
        graph = ComparisonGraph.from_preferences(preferences)
        if not graph.n_nodes:
            return np.zeros(preferences.n_rows)
        objective = _ComparisonLikelihood(graph, self._penalties(graph.strongly_connected()))
        scores = self._minimize(objective, graph.rows, preferences.queries)
        return graph.to_rows(scores, preferences.n_rows)


class BradleyTerry(MaximumLikelihood, ComparisonStructure):
    """Maximum likelihood in the Bradley-Terry-Luce model of comparisons.

    Parameters
    ----------
    penalty : float or "auto", default="auto"
        The factor a >= 0 of the ridge penalty (a / 2) sum of s_i^2, which is a normal prior with
        variance 1 / a. ``"auto"`` means 0 for each connected component of the comparisons with a
        finite maximum of the likelihood, and 0.1 for each other component.
    tol : float, default=1e-6
        The iterations end when no score changes by more than `tol` in a step. The remaining error
        is far smaller, because Newton's method converges quadratically.
    max_iter : int, default=100
        Maximum number of Newton steps.
    ties : {"half", "davidson", "rao_kupper"}, default="half"
        The model of ties. ``"half"`` counts a tie as half a win for each item. ``"davidson"``
        (Davidson, 1970, which Newman's algorithm fits too) and ``"rao_kupper"`` (Rao and Kupper,
        1967) give ties a probability with a fitted parameter.
    own_effects : bool, default=True
        Whether each item has its own effect, in addition to the effect of its `item_features`. If
        True, features need a `penalty` > 0.

    Warns
    -----
    ConvergenceWarning
        If `max_iter` steps are not enough, for example with ``penalty=0`` if the likelihood has no
        maximum.

    Notes
    -----
    In the model, item i is preferred to item j with probability 1 / (1 + exp(s_j - s_i)). The
    likelihood of a connected component has a maximum if and only if chains of wins lead from every
    item to every other item (Ford, 1957). Scores of each component are centred at 0. If the
    comparisons connect all items, the scores converge to the scores of the model as the number of
    judgements grows, even if some pairs are compared more often than others.

    With covariates, a position or item features in the judgements (`Judgements.from_votes`), the
    log-odds of the first item i are s_i - s_j + x . b. The scores refer to x = 0, and each query
    has its own coefficients b. In Davidson's model, the probability of a tie is proportional to
    exp(t + (s_i + s_j) / 2) and the probability of a win to exp(s_i). In Rao and Kupper's model,
    the probability of a win is 1 / (1 + exp(t + s_j - s_i)). A step of these fits takes
    O(n_items^3) time plus O(1) time per vote.

    References
    ----------
    Bradley and Terry (1952), Rank analysis of incomplete block designs, Biometrika 39.

    Davidson (1970), On extending the Bradley-Terry model to accommodate ties, JASA 65.

    Rao and Kupper (1967), Ties in paired-comparison experiments, JASA 62.

    Ford (1957), Solution of a ranking problem from binary comparisons, Amer. Math. Monthly 64(8).

    Examples
    --------
    >>> from sklearn_rankcal import Judgements
    >>> from sklearn_rankcal.aggregation import BradleyTerry
    >>> judgements = Judgements.from_pairs([("a", "b")] * 3 + [("b", "a")])
    >>> BradleyTerry().scores(judgements).round(4).tolist()  # half of log(3), and minus that
    [0.5493, -0.5493]

    If an item wins all comparisons, the penalty keeps its score finite:

    >>> BradleyTerry().scores(Judgements.from_pairs([("a", "b")] * 2)).round(4).tolist()
    [1.3235, -1.3235]
    """

    uses_covariates = True
    _has_errors = True

    def __init__(
        self,
        penalty: float | str = "auto",
        tol: float = 1e-6,
        max_iter: int = 100,
        ties: str = "half",
        own_effects: bool = True,
    ) -> None:
        self.penalty = penalty
        self.tol = tol
        self.max_iter = max_iter
        self.ties = ties
        self.own_effects = own_effects

    def check(self) -> None:
        """Raise ValueError unless the parameters are valid."""
        super().check()
        check_choice(self.ties, "ties", TIES)
        check_flag(self.own_effects, "own_effects")

    def scores(self, judgements: Any) -> Floats:
        """Compute one score per item; larger is better."""
        self.check()
        if self._takes_sums(judgements):
            return self._fit_comparisons(judgements.preferences())
        return scores_of(fit_boards(judgements, self), judgements)

    def _solve(
        self, judgements: Judgements, parts: Ints, intervals: str | None, level: float, n_jobs: Any
    ) -> Solution:
        if intervals is None and self._takes_sums(judgements):
            return Solution(self._fit_comparisons(judgements.preferences()))
        boards = fit_boards(judgements, self)
        scores = scores_of(boards, judgements)
        if intervals is None:
            listed = coefficients_of(boards, judgements.queries.ids)
            return Solution(scores, None, listed, boards)
        found, listed = intervals_of(judgements, boards, self, intervals, level, parts)
        return Solution(scores, found, listed, boards)

    def _takes_sums(self, judgements: Any) -> bool:
        return self.ties == "half" and self.own_effects and not judgements.has_covariates

    def _scores(self, preferences: Preferences, n_judgements: Floats) -> Floats:
        return self._fit_comparisons(preferences)


class _ComparisonLikelihood:
    """The penalised negative log-likelihood of each component."""

    def __init__(self, graph: ComparisonGraph, penalty: Floats) -> None:
        self.graph = graph
        self.parts = graph.parts
        self.penalty = penalty
        self.ridge = graph.parts.repeat(penalty)

    def evaluate(self, x: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        graph, pairs = self.graph, self.graph.pairs
        terms = LogisticTerms(*np.empty((4, len(pairs.first))))
        # The temporary arrays of a block fit in the cache. This is several times faster.
        for start in range(0, len(pairs.first), BLOCK):
            block = slice(start, start + BLOCK)
            lead = x[pairs.first[block]] - x[pairs.second[block]]
            found = logistic_terms(lead, pairs.wins[block], pairs.losses[block])
            for column, values in zip(terms, found, strict=True):
                column[block] = values
        value = np.add.reduceat(
            terms.value, graph.pair_offsets[:-1]
        ) + self.penalty / 2 * self.parts.sum(x * x)
        gradient = pairs.sum_skew(terms.slope, graph.n_nodes) + self.ridge * x
        unit = pairs.sum_over(terms.size, terms.size, graph.n_nodes) + self.ridge * np.abs(x)
        return value, gradient, unit, terms.bend

    def solve(self, curvature: Floats, rhs: Floats, tolerance: Floats) -> Floats:
        # Curvature that underflows would make the system singular.
        pairs = self.graph.pairs
        weight = np.maximum(curvature, 1e-12 * (pairs.wins + pairs.losses))
        found = solve_laplacian(self.graph, weight, rhs, self.ridge, tolerance)
        return self.parts.center(found)

    def take(self, parts: Bools) -> tuple[_ComparisonLikelihood, Ints]:
        graph, nodes = self.graph.take(parts)
        return _ComparisonLikelihood(graph, self.penalty[parts]), nodes


# ---------------------------------------------------------------- orders


_BLOCK = 1 << 20  # numbers in the largest temporary array
_LINEAR_STEPS = 1000  # of conjugate gradients, for one step of Newton's method
_LISTED = 5  # items of the largest tiers with a sum over all orders; beyond, quadrature is faster
_TIERS = 1 << 10  # in a block of the sum: its arrays fit in the cache


class PlackettLuce(MaximumLikelihood):
    """Maximum likelihood in the Plackett-Luce model of orders.

    Parameters
    ----------
    penalty, tol, max_iter : float or "auto", float, int
        As in `BradleyTerry`.

    Warns
    -----
    ConvergenceWarning
        If `max_iter` steps are not enough.

    Notes
    -----
    In the model, the best item of an order is chosen with probability proportional to w_i =
    exp(s_i), then the next from the remaining items, and so on. A tie means that any order of the
    tied items is possible. If D is a tier and W the total weight of the lower tiers, the items of D
    precede the lower items with probability

        integral over u in (0, 1) of product over i in D of (1 - u^(w_i / W)),

    which is w_i / (w_i + W) for a single item. Up to five items, it is computed exactly. For more,
    the relative error is below 1e-9.
    Items that the order does not list do not enter its likelihood. A selection from a shown list is
    an order of two tiers. Pairwise comparisons have the likelihood of `BradleyTerry`.

    As in `BradleyTerry`, the likelihood of a connected component has a maximum if and only if
    chains of wins lead from every item to every other item (Hunter, 2004, assumption 1). A win is a
    place above another item in some order. Scores of each component are centred at 0. Items without
    comparisons have the score 0.

    References
    ----------
    Plackett (1975), The analysis of permutations, Applied Statistics 24.

    Hunter (2004), MM algorithms for generalized Bradley-Terry models, Annals of Statistics 32.

    Examples
    --------
    >>> from sklearn_rankcal import Judgements
    >>> from sklearn_rankcal.aggregation import PlackettLuce
    >>> orders = [[*"abc"], [*"acb"], [*"bca"], [["c", "b"], "a"]]
    >>> PlackettLuce().scores(Judgements.from_orders(orders)).round(4).tolist()
    [-0.1777, 0.201, -0.0233]
    """

    takes = "orders"

    def scores(self, judgements: Any) -> Floats:
        """Compute one score per item from orders, selections or comparisons; larger is better."""
        self.check()
        if judgements.orders is None:
            return self._fit_comparisons(judgements.preferences())
        queries = judgements.queries
        result = np.zeros(queries.n_rows)
        tiers = _read_tiers(judgements)
        if not len(tiers.times):
            return result
        nodes, parts, strong = _components(tiers, queries.n_rows)
        number = np.zeros(queries.n_rows, dtype=np.int64)
        number[nodes] = np.arange(len(nodes))
        tiers = tiers._replace(item=number[tiers.item])
        objective = _OrderLikelihood(tiers, parts, self._penalties(strong))
        result[nodes] = self._minimize(objective, nodes, queries)
        return result


class OrderTiers(NamedTuple):
    """The tiers of orders with at least two tiers."""

    item: Ints  # of all tiers, best first in each judgement
    sizes: Ints  # items of each tier
    per_judgement: Ints  # tiers of each judgement
    times: Floats  # how often each judgement was made, positive

    def take(self, judgements: Bools) -> OrderTiers:
        """Keep some judgements."""
        kept = np.repeat(judgements, self.per_judgement)
        return OrderTiers(
            self.item[np.repeat(kept, self.sizes)],
            self.sizes[kept],
            self.per_judgement[judgements],
            self.times[judgements],
        )

    @property
    def is_lowest(self) -> Bools:
        """Whether each tier is the lowest of its judgement."""
        lowest = np.zeros(len(self.sizes), dtype=bool)
        lowest[np.cumsum(self.per_judgement) - 1] = True
        return lowest


def _read_tiers(judgements: Any) -> OrderTiers:
    """Find where the tiers of the orders begin, and drop orders that contain no comparison."""
    item, tier, offsets = judgements.orders
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    new = np.append(True, (owner[1:] != owner[:-1]) | (tier[1:] != tier[:-1]))
    starts = np.flatnonzero(new[: len(item)])
    sizes = np.diff(np.append(starts, len(item)))
    per_judgement = np.bincount(owner[starts], minlength=len(offsets) - 1)
    given = judgements.count
    count = np.ones(len(per_judgement)) if given is None else np.asarray(given, dtype=np.float64)
    return OrderTiers(item, sizes, per_judgement, count).take((per_judgement > 1) & (count > 0))


def _components(tiers: OrderTiers, n_rows: int) -> tuple[Ints, Queries, Bools]:
    """Return the rows by component, their partition, and whether each is strongly connected.

    An item points to the items below it in an order. It is enough to join consecutive tiers through
    an auxiliary node.
    """
    lowest = tiers.is_lowest
    highest = np.roll(lowest, 1)
    number = n_rows + np.cumsum(~lowest) - 1  # the auxiliary node below each tier
    below = np.repeat(~lowest, tiers.sizes)
    above = np.repeat(~highest, tiers.sizes)
    from_above = np.repeat(np.append(0, number[:-1]), tiers.sizes)
    start = np.concatenate([tiers.item[below], from_above[above]])
    end = np.concatenate([np.repeat(number, tiers.sizes)[below], tiers.item[above]])
    n_nodes = n_rows + int((~lowest).sum())
    labels = number_components(start, end, n_nodes, "weak")[:n_rows]
    inside = number_components(start, end, n_nodes, "strong")[:n_rows]
    nodes = np.unique(tiers.item)
    nodes = nodes[np.argsort(labels[nodes], kind="stable")]
    codes = np.unique(labels[nodes], return_inverse=True)[1]
    parts = Queries(np.append(0, np.cumsum(np.bincount(codes))))
    strong = parts.max(inside[nodes]) == parts.min(inside[nodes])
    return nodes, parts, np.asarray(strong)


class _State(NamedTuple):
    """Functions of the scores that the second derivatives need."""

    weight: Floats  # of each entry, relative to the best item of its judgement
    below: Floats  # total weight of the lower tiers, for each tier
    slope: Floats  # sum over each tier of the derivatives of log P, times the count
    singles: Floats  # second derivatives of the tiers of one item, times the count
    blocks: list[Floats]  # and of the other tiers


class _OrderLikelihood:
    """The penalised negative log-likelihood of each component."""

    def __init__(self, tiers: OrderTiers, parts: Queries, penalty: Floats) -> None:
        self.tiers = tiers
        self.parts = parts
        self.penalty = penalty
        self.ridge = parts.repeat(penalty)
        sizes = tiers.sizes
        self.starts = np.cumsum(sizes) - sizes  # first entry of each tier
        self.judgements = Queries(np.append(0, np.cumsum(tiers.per_judgement)))
        self.buckets = list(self.judgements.buckets())
        self.first_entry = self.starts[self.judgements.offsets[:-1]]
        self.entries = np.diff(np.append(self.first_entry, len(tiers.item)))
        self.part_of_judgement = parts.codes[tiers.item[self.first_entry]]
        self.count = np.repeat(tiers.times, tiers.per_judgement)
        stages = np.flatnonzero(~tiers.is_lowest)
        self.single = stages[sizes[stages] == 1]
        # the tiers of each size above 1, and their entries, of shape (n_tiers_of_size, size)
        self.tied = []
        for size in np.unique(sizes[stages][sizes[stages] > 1]):  # a loop over different sizes
            tier = stages[sizes[stages] == size]
            self.tied.append((tier, self.starts[tier][:, None] + np.arange(size)))

    # ---------------------------------------------------------------- sums

    def before(self, values: Floats) -> Floats:
        """Sum over the higher tiers of the same judgement, for each tier."""
        sums = np.zeros(len(values))
        for inside, valid in self.buckets:
            total = np.cumsum(values[inside[:, :-1]], axis=1)
            sums[inside[:, 1:][valid[:, 1:]]] = total[valid[:, 1:]]
        return sums

    def after(self, values: Floats) -> Floats:
        """Sum over the lower tiers of the same judgement, for each tier."""
        sums = np.zeros(len(values))
        for inside, valid in self.buckets:
            padded = np.where(valid, values[inside], 0.0)[:, :0:-1]
            total = np.cumsum(padded, axis=1)[:, ::-1]
            sums[inside[:, :-1][valid[:, :-1]]] = total[valid[:, :-1]]
        return sums

    def per_tier(self, values: Floats) -> Floats:
        return np.add.reduceat(values, self.starts)

    def to_nodes(self, values: Floats) -> Floats:
        return add_up(self.tiers.item, values, self.parts.n_rows)

    # ---------------------------------------------------------------- the objective

    def evaluate(self, x: Floats) -> tuple[Floats, Floats, Floats, _State]:
        tiers, score = self.tiers, x[self.tiers.item]
        best = np.maximum.reduceat(score, self.first_entry)
        score = score - np.repeat(best, self.entries)
        weight = np.exp(score)
        below = np.maximum(self.after(self.per_tier(weight)), 1e-290)
        log_below = np.log(below)
        loss = np.zeros(len(tiers.sizes))
        slopes = np.zeros(len(score))  # of log P by z, times the count
        entry = self.starts[self.single]
        z, count = score[entry] - log_below[self.single], self.count[self.single]
        loss[self.single] = np.logaddexp(0.0, -z) * count
        slopes[entry] = expit(-z) * count
        singles = expit(-z) * expit(z) * count
        blocks = []
        for tier, entries in self.tied:
            count = self.count[tier][:, None]
            log_p, gradient, curvature = tier_probabilities(
                score[entries] - log_below[tier][:, None]
            )
            loss[tier] = -log_p * count[:, 0]
            slopes[entries] = gradient * count
            blocks.append(curvature * count[:, :, None])
        slope = self.per_tier(slopes)
        lower = np.repeat(self.before(slope / below), tiers.sizes) * weight
        per_judgement = np.add.reduceat(loss, self.judgements.offsets[:-1])
        value = self.penalty / 2 * self.parts.sum(x * x)
        value += np.bincount(self.part_of_judgement, per_judgement, self.parts.n_queries)
        gradient = self.to_nodes(lower - slopes) + self.ridge * x
        unit = self.to_nodes(lower + slopes) + self.ridge * np.abs(x)
        return value, gradient, unit, _State(weight, below, slope, singles, blocks)

    def solve(self, state: _State, rhs: Floats, tolerance: Floats) -> Floats:
        weight, below, slope, singles, blocks = state
        tiers, entry = self.tiers, self.starts[self.single]
        pull = np.repeat(self.before(slope / below), tiers.sizes) * weight

        def product(v: Floats) -> Floats:
            # z_i = x_i - log(W): the change of z is v_i minus the mean of v over the lower items
            inner = v[tiers.item]
            mean = self.after(self.per_tier(weight * inner)) / below
            change = inner - np.repeat(mean, tiers.sizes)
            result = np.zeros(len(inner))
            result[entry] = singles * change[entry]
            for (_, entries), block in zip(self.tied, blocks, strict=True):
                result[entries] = (block @ change[entries][:, :, None])[:, :, 0]
            taken = self.before((slope * mean + self.per_tier(result)) / below)
            result += pull * inner - np.repeat(taken, tiers.sizes) * weight
            return self.to_nodes(result) + self.ridge * v

        # The preconditioner is the diagonal without second-order terms in the weights.
        terms = pull.copy()
        terms[entry] += singles
        for (_, entries), block in zip(self.tied, blocks, strict=True):
            terms[entries] += np.einsum("nii->ni", block)
        diagonal = np.maximum(self.to_nodes(terms) + self.ridge, 1e-200)
        found, _ = conjugate_gradients(product, diagonal, rhs, self.parts, tolerance, _LINEAR_STEPS)
        return self.parts.center(found)

    def take(self, parts: Bools) -> tuple[_OrderLikelihood, Ints]:
        kept = self.parts.repeat(parts)
        number = np.cumsum(kept) - 1
        tiers = self.tiers.take(parts[self.part_of_judgement])
        tiers = tiers._replace(item=number[tiers.item])
        rest = Queries(np.append(0, np.cumsum(self.parts.sizes[parts])))
        return _OrderLikelihood(tiers, rest, self.penalty[parts]), np.flatnonzero(kept)


def tier_nodes(m: int) -> Floats:
    """Return the logarithms s of the quadrature nodes for tiers of m items.

    As a function of s = log(t), the integrand is log-concave and analytic. The trapezoidal rule
    therefore converges faster than any power of its step. The step follows the width of a gamma
    density of m + 1 degrees. The part below t = exp(-25) is at most 1.4e-11 of the integral.
    """
    step = 0.33 / np.sqrt(1 + m / 6)
    return np.arange(-25.0, np.log(m + 14 * np.sqrt(m) + 40), step)


def tier_probabilities(z: Floats) -> tuple[Floats, Floats, Floats]:
    """Compute log P, its gradient and the negative of its Hessian matrix, for several tiers.

    P is the probability that all m items of a tier precede all lower items, in any order. Let w_i
    be the weights of the items, W the total weight of the lower items, and z_i = log(w_i / W). P is
    the integral over t > 0 of exp(-t) product over i of (1 - exp(-exp(z_i) t)). Here items arrive
    at rates w_i, and t is the first arrival of a lower item, in units of 1 / W. `z` has shape
    (n_tiers, m). For up to five items, P is the sum over all orders of the tier, in O(n_tiers m^3
    2^m) time. For more, the relative error is below 1e-9. The time is O(n_tiers m^2 n_nodes), with
    about 100 nodes, growing with the square root of m.
    """
    n, m = z.shape
    log_p, gradient = np.empty(n), np.empty((n, m))
    curvature = np.empty((n, m, m))
    if m <= _LISTED:
        for start in range(0, n, _TIERS):
            block = slice(start, start + _TIERS)
            log_p[block], gradient[block], curvature[block] = _sum_over_orders(z[block])
        return log_p, gradient, curvature
    s = tier_nodes(m)
    size = max(1, _BLOCK // (m * len(s)))
    for start in range(0, n, size):
        block = slice(start, start + size)
        # y_i = exp(z_i) t, of shape (n_block, m, n_nodes). Beyond exp(6.5), 1 - exp(-y) is 1.
        y = np.exp(np.minimum(z[block, :, None] + s, 6.5))
        log_f = np.log(-np.expm1(-y)).sum(axis=1) + (s - np.exp(s))
        total = logsumexp(log_f, axis=1)
        density = np.exp(log_f - total[:, None])
        first = y / np.expm1(y)  # of log(1 - exp(-exp(z))) by z
        second = first * (1 - y - first)
        log_p[block] = total + np.log(s[1] - s[0])
        gradient[block] = np.einsum("nik,nk->ni", first, density)
        weighted = first * density[:, None, :]
        products = weighted @ first.transpose(0, 2, 1)
        mean = gradient[block]
        curvature[block] = mean[:, :, None] * mean[:, None, :] - products
        diagonal = np.arange(m)
        curvature[block, diagonal, diagonal] -= np.einsum("nik,nk->ni", second, density)
    return log_p, gradient, curvature


def _sum_over_orders(z: Floats) -> tuple[Floats, Floats, Floats]:
    """Compute `tier_probabilities` from the sets of items that are left.

    Let a_i = exp(z_i), and P(S) the probability that the items of S precede the lower items. One of
    them comes first: P(S) = sum over i in S of a_i P(S - i) / (1 + sum over S of a). All terms are
    positive, and nothing cancels. The derivatives are those of a mixture of the next sets.
    """
    m = z.shape[1]
    z = np.minimum(z.T, 300.0)  # beyond, P is 1
    rate = np.exp(z)
    # P(S) is divided by the product of min(a_i, 1), which can underflow
    scaled, own, at = np.maximum(rate, 1.0), np.eye(m)[:, :, None], np.arange(m)
    found = {(): (np.ones_like(z[0]), np.zeros_like(z), np.zeros((m, *z.shape)))}
    for size in range(1, m + 1):
        for some in combinations(range(m), size):  # a loop over all sets
            rest = zip(*(found[some[:k] + some[k + 1 :]] for k in range(size)), strict=True)
            chance, slope, bend = (np.array(one) for one in rest)
            inside, chosen = np.zeros_like(z), list(some)
            inside[chosen] = rate[chosen]
            total = 1 + inside.sum(axis=0)
            inside /= total
            share = scaled[chosen] * chance
            chance = share.sum(axis=0)
            share /= chance
            move = slope + own[chosen]
            weighted = share[:, None] * move
            mean = weighted.sum(axis=0)
            curvature = (share[:, None, None] * bend).sum(axis=0)
            curvature -= (weighted[:, :, None] * move[:, None]).sum(axis=0)
            curvature += mean[:, None] * mean - inside[:, None] * inside
            curvature[at, at] += inside
            found[some] = chance / total, mean - inside, curvature
    chance, slope, bend = found[tuple(range(m))]
    return np.minimum(z, 0.0).sum(axis=0) + np.log(chance), slope.T, bend.transpose(2, 0, 1)
