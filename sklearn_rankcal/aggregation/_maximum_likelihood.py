"""`BradleyTerry` and `PlackettLuce`: maximum likelihood for comparisons and orders."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.special import expit

from sklearn_rankcal.aggregation._base import ComparisonStructure, Solution, Structure
from sklearn_rankcal.aggregation._boards import (
    Board,
    coefficients_of,
    fit_boards,
    intervals_of,
    scores_of,
)
from sklearn_rankcal.aggregation._contest_model import ContestFit
from sklearn_rankcal.aggregation._contests import Contests, center_items, count_votes
from sklearn_rankcal.aggregation._evidence import _EXACT, JudgeTerms, Profiles, judge_terms
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
    tier_probabilities,
    warn_not_converged,
)
from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.queries._queries import ranges
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


_LINEAR_STEPS = 1000  # of conjugate gradients, for one step of Newton's method


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
    In the model, the best item of an order is chosen with probability proportional to exp(s_i),
    then the next from the remaining items, and so on. A tie means that any order of the tied items
    is possible. The probability is exact for up to five tied items, and has a relative error below
    1e-9 for more. Items that the order does not list do not enter its likelihood. A selection from
    a shown list is an order of two tiers. Pairwise comparisons have the likelihood of
    `BradleyTerry`. The likelihood has a maximum where chains of wins lead from every item to every
    other item, and a win is a place above another item in some order (Hunter, 2004, assumption 1).
    Items without comparisons have the score 0.

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
    _has_errors = True

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

    def _solve(
        self, judgements: Judgements, parts: Ints, intervals: str | None, level: float, n_jobs: Any
    ) -> Solution:
        if intervals is None:
            return Solution(self.scores(judgements))
        if judgements.orders is None:
            return self.for_votes()._solve(judgements, parts, intervals, level, n_jobs)
        boards = self.fit_boards(judgements)
        found, _ = intervals_of(judgements, boards, self, intervals, level, parts)
        return Solution(scores_of(boards, judgements), found, None, boards)

    def for_votes(self) -> BradleyTerry:
        """Return the structure with the same likelihood for votes between two items."""
        return BradleyTerry(self.penalty, self.tol, self.max_iter)

    def fit_boards(self, judgements: Judgements) -> list[Board]:
        """Return the fits of the orders of all queries."""
        queries, tiers = judgements.queries, _read_tiers(judgements)
        scores = self.scores(judgements)
        found = judgements.preferences()
        wins = np.column_stack([found.winner, found.loser])[found.weight > 0]
        number, boards = np.empty(queries.n_rows, dtype=np.int64), []
        for q in range(queries.n_queries):  # a loop over queries, each with its own model
            rows = judgements._rows_of_query(q)
            number[rows] = np.arange(len(rows))
            first, second = number[wins[queries.codes[wins[:, 0]] == q]].T
            part, none = number_components(first, second, len(rows), "weak"), np.zeros(len(first))
            contests = Contests(first, second, none.astype(np.int64), none, none, first)
            votes = count_votes(contests, np.zeros((len(first), 0)))
            shape = scores[rows], len(rows), False, votes, np.zeros(len(rows)), part
            fit = ContestFit(*shape, "half", True, 0.0)
            mine = tiers.take(np.flatnonzero(judgements.query[tiers.judgement] == q))
            mine = mine._replace(item=number[mine.item])
            orders = OrderJudges.of_tiers(mine, fit, self, judgements.judge)
            fit = fit._replace(information=orders.fit.information)
            unit = eye_array(len(rows), format="csr")
            boards.append(Board(fit, rows, (), unit, votes.X, contests, orders))
        return boards


class OrderTiers(NamedTuple):
    """The tiers of orders with at least two tiers."""

    item: Ints  # of all tiers, best first in each judgement
    sizes: Ints  # items of each tier
    per_judgement: Ints  # tiers of each judgement
    times: Floats  # how often each judgement was made, positive
    judgement: Ints  # the number of each judgement

    def take(self, judgements: Ints) -> OrderTiers:
        """Take some judgements, possibly several times."""
        tiers, _ = ranges(np.append(0, np.cumsum(self.per_judgement)), judgements)
        entries, _ = ranges(np.append(0, np.cumsum(self.sizes)), tiers)
        rest = (one[judgements] for one in self[2:])
        return OrderTiers._make((self.item[entries], self.sizes[tiers], *rest))

    def with_half_votes(self, votes: Floats) -> OrderTiers:
        """Add half of these votes between each two items to each side, of shape (n, n)."""
        pairs = np.argwhere(votes > 0)
        two = np.full(len(pairs), 2)
        more = pairs.ravel(), np.ones(2 * len(pairs), dtype=np.int64), two, votes[votes > 0] / 2
        return OrderTiers._make(map(np.append, self, (*more, two)))

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
    found = OrderTiers(item, sizes, per_judgement, count, np.arange(len(count)))
    return found.take(np.flatnonzero((per_judgement > 1) & (count > 0)))


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
    lower: Floats  # minus the derivative of log P of the higher tiers by the score of each entry
    terms: Floats  # the derivative of the log-likelihood by the score of each entry


class _OrderLikelihood:
    """The penalised negative log-likelihood of each component."""

    def __init__(self, tiers: OrderTiers, parts: Queries, penalty: Floats) -> None:
        self.tiers = tiers
        self.parts = parts
        self.penalty = penalty
        self.ridge = parts.repeat(penalty)
        self._copies: _OrderLikelihood | None = None
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
        state = _State(weight, below, slope, singles, blocks, lower, slopes - lower)
        return value, gradient, unit, state

    def hessian(self, x: Floats) -> Floats:
        """Return the dense matrix of second derivatives, by column."""
        state = self.evaluate(x)[3]
        return np.array([self.bend(state, v) for v in np.eye(len(x))])

    def bend(self, state: _State, v: Floats) -> Floats:
        """Return the product of the second derivatives and v."""
        return self.to_nodes(self.curvature(state, v)) + self.ridge * v

    def curvature(self, state: _State, v: Floats) -> Floats:
        """Return minus the derivatives of `_State.terms` in the direction v."""
        weight, below, slope, singles, blocks, lower, _ = state
        sizes, entry = self.tiers.sizes, self.starts[self.single]
        # z_i = x_i - log(W): the change of z is v_i minus the mean of v over the lower items
        inner = v[self.tiers.item]
        mean = self.after(self.per_tier(weight * inner)) / below
        change = inner - np.repeat(mean, sizes)
        result = np.zeros(len(inner))
        result[entry] = singles * change[entry]
        for (_, entries), block in zip(self.tied, blocks, strict=True):
            result[entries] = (block @ change[entries][:, :, None])[:, :, 0]
        taken = self.before((slope * mean + self.per_tier(result)) / below)
        return result + lower * inner - np.repeat(taken, sizes) * weight

    def solve(self, state: _State, rhs: Floats, tolerance: Floats) -> Floats:
        # The preconditioner is the diagonal without second-order terms in the weights.
        terms = state.lower.copy()
        terms[self.starts[self.single]] += state.singles
        for (_, entries), block in zip(self.tied, state.blocks, strict=True):
            terms[entries] += np.einsum("nii->ni", block)
        diagonal = np.maximum(self.to_nodes(terms) + self.ridge, 1e-200)
        how = diagonal, rhs, self.parts, tolerance, _LINEAR_STEPS
        return self.parts.center(conjugate_gradients(partial(self.bend, state), *how)[0])

    def copies(self, n: int) -> _OrderLikelihood:
        """Return the likelihood of n copies of the items. The last one is kept."""
        if self._copies is None or self._copies.parts.n_queries != n:
            tiers, r = self.tiers, self.parts.n_rows
            shift = np.repeat(np.arange(n) * r, len(tiers.item))
            item = np.tile(tiers.item, n) + shift
            repeated = OrderTiers._make((item, *(np.tile(one, n) for one in tiers[1:])))
            parts = Queries(np.arange(n + 1) * r)
            self._copies = _OrderLikelihood(repeated, parts, np.repeat(self.penalty, n))
        return self._copies

    def take(self, parts: Bools) -> tuple[_OrderLikelihood, Ints]:
        kept = self.parts.repeat(parts)
        number = np.cumsum(kept) - 1
        tiers = self.tiers.take(np.flatnonzero(parts[self.part_of_judgement]))
        tiers = tiers._replace(item=number[tiers.item])
        rest = Queries(np.append(0, np.cumsum(self.parts.sizes[parts])))
        return _OrderLikelihood(tiers, rest, self.penalty[parts]), np.flatnonzero(kept)


#: Precision of the scores of items that never lose, and rounds of the leverages of votes.
_RIDGE, _ROUNDS = 1e-4, 2
#: Pairs of items times entries of orders up to which all statements have the exact form.
_PROFILED = 500_000


class OrderJudges(NamedTuple):
    """What the orders of the judges of a query say of contrasts of its scores.

    `fit` has Firth's scores and information: as `fit_firth` for votes, with half a vote for each of
    two items, in all as many votes as parameters. The information of the orders about the
    difference of two items is minus the entry of the information matrix. Each order is a judge of
    its own if `judge` is None.
    """

    fit: ContestFit
    likelihood: _OrderLikelihood
    judge: Ints | None  # of each order of the likelihood
    profiles: Profiles | None  # if they take little time

    @classmethod
    def of_tiers(
        cls, tiers: OrderTiers, fit: ContestFit, structure: PlackettLuce, judge: Ints | None
    ) -> OrderJudges:
        """Fit orders of items that are numbered from 0."""
        auto = isinstance(structure.penalty, str)
        ridge = np.array([_RIDGE if auto else max(float(structure.penalty), _RIDGE)])
        whole, weights = Queries.single(fit.n_items), np.zeros(fit.n_items)
        alone = more = _OrderLikelihood(tiers, whole, ridge)
        for _ in range(_ROUNDS):
            information = alone.hessian(weights)
            covariance = fit._replace(information=information).inverse()
            own = np.diag(covariance)
            votes = -information * (own[:, None] + own - 2 * covariance)
            more = _OrderLikelihood(tiers.with_half_votes(votes), whole, ridge)
            found = minimize(more, structure.tol, structure.max_iter, weights)
            weights = center_items(found.x, fit.part)
        fit = fit._replace(weights=weights, information=more.hessian(weights))
        profiles, n = None, fit.n_items
        if n <= _EXACT and n * n * len(tiers.item) <= _PROFILED:
            at = fit.ridge, weights, fit.inverse()
            profiles = Profiles(None, fit.votes.counts, "half", *at, orders=alone)
        if judge is None:
            each = np.repeat(np.arange(len(tiers.times)), tiers.times.astype(np.int64))
            tiers = tiers.take(each)._replace(times=np.ones(len(each)))
            return cls(fit, _OrderLikelihood(tiers, whole, ridge), None, profiles)
        number = np.unique(judge[tiers.judgement], return_inverse=True)[1]
        return cls(fit, alone, number, profiles)

    def terms(self, pulls: Floats, own: bool = False) -> tuple[JudgeTerms, Floats]:
        """Do the same as `Judges.terms`.

        What a judge says is measured at equal scores.
        """
        orders, tiers = self.likelihood, self.likelihood.tiers
        size = len(tiers.times), self.fit.n_items
        owner = np.repeat(np.arange(size[0]), orders.entries)  # of each entry
        state, even = (orders.evaluate(x)[3] for x in (self.fit.weights, np.zeros(size[1])))
        scores, said = (
            csr_array((one.terms, (owner, tiers.item)), shape=size) for one in (state, even)
        )
        judge = np.arange(size[0]) if self.judge is None else self.judge
        shape = judge.max(initial=0) + 1, size[0]
        members = csr_array((np.ones(size[0]), (judge, np.arange(size[0]))), shape=shape)
        known = [add_up(owner, orders.curvature(state, v) * v[tiers.item], size[0]) for v in pulls]
        moves = said @ pulls.T
        sums = members @ moves, members @ np.abs(moves), members @ moves**2
        share = members @ np.array(known).T
        *found, scaled = judge_terms(members @ (scores @ pulls.T), share, *sums)
        covariance = scaled.T @ scaled
        return JudgeTerms(np.diag(covariance).copy(), *found), covariance
