"""Votes as contests of a first and a second item, and the algebra to fit a model to them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_array

from sklearn_rankcal.aggregation._graphs import conjugate_gradients
from sklearn_rankcal.aggregation._judgements import Judgements
from sklearn_rankcal.aggregation._votes import POSITION
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.queries._queries import number_values
from sklearn_rankcal.utils._memory import check_memory
from sklearn_rankcal.utils._numbers import Bools, Floats, Ints, add_up


class Contests(NamedTuple):
    """Votes as contests between a first and a second item.

    `outcome` is 0 if the first item won, 1 if the second item won, and 2 for a tie. `weight` is the
    total weight of a contest, `square` the sum of the squared weights of its votes, and `judgement`
    its number in the judgements. A vote with a probability p is two contests, with the shares p and
    1 - p of its weight and of its square: both together are one vote.
    """

    first: Ints
    second: Ints
    outcome: Ints
    weight: Floats
    square: Floats
    judgement: Ints

    def take(self, chosen: Ints | Bools | slice) -> Contests:
        """Keep some contests, or sort them."""
        return Contests._make(column[chosen] for column in self)


def is_weighted(judgements: Any) -> bool:
    """Whether some votes have a larger weight than others, regardless of counts."""
    if judgements.orders is not None or judgements.comparisons.weight is None:
        return False
    weight, owner = judgements.comparisons.weight, judgements.of_comparison
    weight = weight if owner is None else np.bincount(owner, weight)  # a tie is two of one half
    return bool((weight != 1.0).any())


def contests_of(judgements: Any) -> Contests:
    """Read judgements as contests of two items; raise ValueError for other judgements.

    Without details, the first item is the winner, or the first of a tie.
    """
    if judgements.orders is not None:
        raise ValueError(
            "These judgements are orders or selections, but categories, models of ties and "
            "intervals of 'btl' need votes between two items. For intervals of orders, pass the "
            "method 'plackett_luce', or n_resamples=1000, to aggregate. For categories of orders, "
            "read them with groups=categories: each gets a board of its own. An audit of orders "
            "needs the group."
        )
    winner, loser, weight, offsets = judgements.comparisons
    n = judgements.n_judgements
    offsets = np.arange(n + 1) if offsets is None else offsets
    sizes, start = np.diff(offsets), offsets[:-1]
    pair = np.flatnonzero(sizes == 2)
    one, other = start[pair], start[pair] + 1
    opposite = (winner[one] == loser[other]) & (loser[one] == winner[other])
    if (sizes > 2).any() or (sizes == 0).any() or not opposite.all():
        raise ValueError(
            "Audits, next comparisons, covariates, models of ties and intervals without "
            "resamples need judgements of one vote each. Leave out judgement=, and pass the "
            "person or session as judge=."
        )
    first, second = winner[start], loser[start]
    outcome = np.zeros(n, dtype=np.int64)
    details = judgements.details
    if details is not None:
        swap = details.second_won
        first, second = np.where(swap, second, first), np.where(swap, first, second)
        outcome[swap] = 1
    weight = np.repeat(1 / sizes, sizes) if weight is None else weight
    tied = weight[one] == weight[other]
    outcome[pair[tied]] = 2
    at = np.append(np.arange(n), pair[~tied])
    times = np.append(weight[start], weight[other[~tied]])
    times[pair[tied]] *= 2
    square = times * np.add.reduceat(weight, start)[at]
    if judgements.count is not None:
        times, square = times * judgements.count[at], square * judgements.count[at]
    outcome = np.append(outcome, 1 - outcome[at[n:]])
    found = Contests(first[at], second[at], outcome, times, square, at)
    return found if (times > 0).all() else found.take(np.flatnonzero(times > 0))


# ---------------------------------------------------------------- votes of one query


#: Largest share of a covariate, given items and other covariates, that rounding explains.
_COLLINEAR = 1e-9
_DENSE = 1000  # items up to which systems are factorised, which takes O(n_items^3) time


class Votes(NamedTuple):
    """Contests of one query between items 0 to n_items - 1, with the weight of each result.

    `counts` has shape (3, n): the weight of wins of the first item, wins of the second item, and
    ties. `squares` has the sums of the squared weights of their votes. `X` has shape (n,
    n_covariates).
    """

    first: Ints
    second: Ints
    counts: Floats
    squares: Floats
    X: Floats

    @property
    def total(self) -> Floats:
        return self.counts.sum(axis=0)

    def leads(self, weights: Floats, n_items: int) -> Floats:
        """Return the lead of the first item, for these scores and coefficients."""
        effects = weights[n_items : n_items + self.X.shape[1]]
        return weights[self.first] - weights[self.second] + self.X @ effects

    def take(self, some: Ints | Bools) -> Votes:
        first, second, counts, squares, X = self
        return Votes(first[some], second[some], counts[:, some], squares[:, some], X[some])


def count_votes(contests: Contests, X: Floats, *, merge: bool = True) -> Votes:
    """Merge contests of the same items in the same order, if all have the same covariates.

    O(n) time if there are fewer pairs of items than votes.
    """
    first, second, outcome, weight, square, _ = contests
    if not merge or (X.shape[1] and (X != X[:1]).any()):
        counts, squares = np.zeros((2, 3, len(first)))
        at = outcome, np.arange(len(first))
        counts[at], squares[at] = weight, square
        return Votes(first, second, counts, squares, X)
    pair, first, second = number_pairs(first, second)
    n = len(first)
    cell = outcome * n + pair
    counts = add_up(cell, weight, 3 * n).reshape(3, n)
    squares = add_up(cell, square, 3 * n).reshape(3, n)
    return Votes(first, second, counts, squares, np.repeat(X[:1], n, axis=0))


def number_pairs(first: Ints, second: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the pair number of each vote, and the items of each pair."""
    n = int(max(first.max(initial=0), second.max(initial=0))) + 1
    pair, keys = number_values(first * n + second) if len(first) else (first, first)
    return pair, keys // n, keys % n


class VoteDesign:
    """The design matrix of the leads of votes: differences of items, and covariates.

    Votes of the same two items in the same order are a *pair*. Sums are first taken over pairs.
    """

    def __init__(self, votes: Votes, n_items: int) -> None:
        self.X, self.n_items = votes.X, n_items
        self.pair: Ints | None = None  # of each vote; None if each vote is a pair of its own
        self.first, self.second = votes.first, votes.second
        if votes.X.shape[1]:
            pair, first, second = number_pairs(votes.first, votes.second)
            if 2 * len(first) <= len(pair):  # else there is nothing to gain
                self.pair, self.first, self.second = pair, first, second

    def sum_pairs(self, values: Floats) -> Floats:
        return values if self.pair is None else add_up(self.pair, values, len(self.first))

    def sum_items(self, values: Floats) -> Floats:
        """Sum values of votes over items, with a minus sign for the second item."""
        sums = self.sum_pairs(values)
        n = self.n_items
        return add_up(self.first, sums, n) - add_up(self.second, sums, n)

    def gradient(self, lead: Floats, tie: float | None) -> Floats:
        """Return the gradient, from derivatives by the leads and by the parameter of ties."""
        of_tie = [] if tie is None else [tie]
        return np.concatenate([self.sum_items(lead), self.X.T @ lead, of_tie])

    def gram(self, lead2: Floats, mixed: Floats | None = None, tie2: float = 0.0) -> VoteGram:
        """Return the sum of (a a^T) over votes, weighted by the three second derivatives."""
        weighted = self.X * lead2[:, None]
        sides = [self.sum_items(column) for column in weighted.T]
        corner = self.X.T @ weighted
        if mixed is not None:
            sides.append(self.sum_items(mixed))
            edge = self.X.T @ mixed
            corner = np.block([[corner, edge[:, None]], [edge, np.array([tie2])]])
        side = np.array(sides).reshape(len(sides), self.n_items).T
        return VoteGram(self.first, self.second, self.sum_pairs(lead2), side, corner)


class VoteGram(NamedTuple):
    """A symmetric matrix of items, covariates and the tie parameter: [[L, S], [S^T, C]].

    L is the Laplacian matrix of pairs of items with weights, S has shape (n_items, q).
    """

    first: Ints
    second: Ints
    weight: Floats
    side: Floats
    corner: Floats

    def degrees(self) -> Floats:
        n = len(self.side)
        return add_up(self.first, self.weight, n) + add_up(self.second, self.weight, n)

    def dense(self) -> Floats:
        n, q = self.side.shape
        if n > _DENSE:
            check_memory(32 * (n + q) ** 2, f"A matrix of {n:,} items", "Use fewer items.")
        matrix = np.zeros((n + q, n + q))
        across = add_up(self.first * n + self.second, self.weight, n * n).reshape(n, n)
        matrix[:n, :n] = -(across + across.T)
        matrix[np.arange(n), np.arange(n)] += self.degrees()
        matrix[:n, n:], matrix[n:, :n], matrix[n:, n:] = self.side, self.side.T, self.corner
        return matrix

    def solve(
        self,
        rhs: Floats,
        ridge: Floats,
        part: Ints,
        tolerance: float,
        prior: Floats | None = None,
    ) -> Floats:
        """Solve (G + diag(ridge) + prior) x = rhs, where items add up to 0 in each component.

        Without a prior, conjugate gradients solve systems of more than a thousand items.
        """
        n, q = self.side.shape
        if n > _DENSE and prior is None:
            # without a ridge, only items that add up to 0 have a solution: remove rounding errors
            centred = np.append(
                np.where(ridge[:n] > 0, rhs[:n], center_items(rhs[:n], part)), rhs[n:]
            )
            found = self._iterate(centred, ridge, tolerance)
            if found is not None:
                return found
        matrix = self.dense() + gauge(part, n + q)
        if prior is not None:
            matrix[:n, :n] += prior
        matrix[np.diag_indices(n + q)] += ridge + 1e-13 * np.trace(matrix) / (n + q)
        return np.asarray(cho_solve(cho_factor(matrix, lower=True), rhs))

    def _iterate(self, rhs: Floats, ridge: Floats, tolerance: float) -> Floats | None:
        n, q = self.side.shape
        across = csr_array((self.weight, (self.first, self.second)), shape=(n, n))
        both = (across + across.T).tocsr()
        diagonal = self.degrees() + ridge[:n]
        unit = np.append(np.where(diagonal > 0, diagonal, 1.0), np.ones(q))
        corner = self.corner + np.diag(ridge[n:])
        corner[np.diag_indices(q)] += 1e-13 * np.trace(corner)
        root = np.linalg.inv(np.linalg.cholesky(corner)).T  # root^T C root is the identity matrix
        side = self.side @ root

        def product(x: Floats) -> Floats:
            v, b = x[:n], x[n:]
            return np.append(diagonal * v - both @ v + side @ b, side.T @ v + b)

        rhs = np.append(rhs[:n], root.T @ rhs[n:])
        found, failed = conjugate_gradients(
            product, unit, rhs, Queries.single(n + q), tolerance, 2000
        )
        return None if failed.any() else np.append(found[:n], root @ found[n:])


def gauge(part: Ints, size: int) -> Floats:
    """Return a matrix that fixes the sum of the scores of each component to 0."""
    matrix = np.zeros((size, size))
    n = len(part)
    matrix[:n, :n] = (part[:, None] == part).astype(np.float64)
    return matrix


def center_items(values: Floats, part: Ints) -> Floats:
    """Subtract from the first rows (items) their mean over the component."""
    n = len(part)
    centred = values.copy()
    if not part.any():  # one component
        centred[:n] -= values[:n].mean(axis=0)
        return centred
    sizes = np.bincount(part)
    member = csr_array((1.0 / sizes[part], (part, np.arange(n))), shape=(len(sizes), n))
    centred[:n] -= (member @ values[:n])[part]
    return centred


# ---------------------------------------------------------------- checks


def check_values(X: Floats, unit: Floats, names: tuple[str, ...]) -> None:
    """Raise an error for constant covariates."""
    for k, name in enumerate(names):
        if unit[k] == 0:
            raise ValueError(f"The covariate {name!r} is 0 in all votes. Leave it out.")
        if name != POSITION and (X[:, k] == X[0, k]).all():
            raise ValueError(
                f"The covariate {name!r} is {X[0, k]:g} in all votes: it is the same as a "
                "position effect. Pass position=True instead."
            )


def _left_of(gram: Floats, k: int) -> float:
    """Return the squared length of column k that the preceding columns do not explain."""
    left = gram[k, k]
    if k:
        left -= gram[k, :k] @ np.linalg.lstsq(gram[:k, :k], gram[:k, k], rcond=None)[0]
    return float(left)


def check_collinear(
    design: VoteDesign,
    total: Floats,
    names: tuple[str, ...],
    part: Ints,
    own_effects: bool,
    ridge: Floats,
) -> None:
    """Raise an error for covariates that items and other covariates determine (unit 1)."""
    n, p = design.n_items, design.X.shape[1]
    gram = design.gram(total / total.sum())
    rest = gram.corner.copy()
    if own_effects:
        alone = gram._replace(side=np.zeros((n, 0)), corner=np.zeros((0, 0)))
        for k in range(p):
            found = alone.solve(gram.side[:, k], ridge / total.sum(), part, 1e-12)
            rest[:, k] -= gram.side.T @ found
    for k in range(p):
        if k and _left_of(gram.corner, k) < _COLLINEAR:
            raise ValueError(
                f"The covariate {names[k]!r} is a sum of {', '.join(map(repr, names[:k]))}, and "
                "the votes cannot separate their effects. Leave it out; for categories, use "
                "pandas.get_dummies(frame, drop_first=True)."
            )
        if _left_of(rest, k) < _COLLINEAR:
            why = f"of {', '.join(map(repr, names[:k]))} and " if k else "of "
            raise ValueError(
                f"The covariate {names[k]!r} is a sum {why}differences of the items, and the votes "
                "cannot separate its effect from their scores. Leave it out; for a feature of the "
                "items, pass BradleyTerry(own_effects=False), or penalty=1 for own effects around "
                "its effect."
            )


# ---------------------------------------------------------------- votes of each item


#: A leaderboard marks items with fewer votes than this.
FEW_VOTES = 30


def count_votes_of_items(judgements: Judgements, some: Bools) -> tuple[Ints, Ints, Floats]:
    """Return the judgements of each item, and the number of votes of each item."""
    n = judgements.queries.n_rows
    if judgements.orders is not None:
        row, _, offsets = judgements.orders
        owner = np.repeat(np.arange(judgements.n_judgements), np.diff(offsets))
    else:
        winner, loser, _, _ = judgements.comparisons
        owners = judgements.of_comparison
        owner = np.arange(len(winner)) if owners is None else owners
        one, other = some[winner], some[loser]
        row, owner = np.append(winner[one], loser[other]), np.append(owner[one], owner[other])
        if owners is not None:  # an item can be in several comparisons of a judgement
            owner, row = np.divmod(np.unique(owner * n + row), n)
    times = None if judgements.count is None else judgements.count[owner]
    return row, owner, add_up(row, times, n)


def vote_columns(judgements: Judgements) -> dict[str, Any]:
    """Count the votes of each item: columns of `Aggregate.to_frame`.

    Returns
    -------
    columns : dict of ndarray of shape (n_items,)
        ``votes`` is the number of judgements that contain the item, and ``few_votes`` whether this
        is below 30. ``win_share`` is the share of the weight of its comparisons that the item won.
        ``first_vote`` and ``last_vote`` are times, if they are known. Linear in the entries of the
        judgements.
    """
    n = judgements.queries.n_rows
    columns: dict[str, Any] = {}
    row, owner, times = count_votes_of_items(judgements, np.ones(n, dtype=bool))
    columns["votes"] = times.astype(np.int64) if (times == np.rint(times)).all() else times
    columns["few_votes"] = times < FEW_VOTES
    if judgements.orders is None:
        found = judgements.preferences()
        won = np.bincount(found.winner, found.weight, n)
        total = won + np.bincount(found.loser, found.weight, n)
        columns["win_share"] = np.divide(won, total, np.full(n, np.nan), where=total > 0)
    if judgements.details is not None and judgements.details.time is not None:
        time = judgements.details.time
        order = np.argsort(time[owner], kind="stable")
        for name, chosen in (("first_vote", order[::-1]), ("last_vote", order)):
            missing = "NaT" if time.dtype.kind == "M" else np.nan
            columns[name] = np.full(n, missing, dtype=time.dtype)
            columns[name][row[chosen]] = time[owner[chosen]]  # the last assignment remains
    return columns


def few_votes(judgements: Judgements) -> dict[int, float]:
    """Return the rows of items with fewer than 30 votes, and their numbers of votes.

    Empty if all items have few votes, or if the judgements are orders.
    """
    if judgements.orders is not None:
        return {}
    winner, loser, *_ = judgements.comparisons
    n = judgements.queries.n_rows
    # a vote is at most two comparisons: only items with few comparisons can have few votes
    some = add_up(winner, None, n) + add_up(loser, None, n) < 2 * FEW_VOTES
    if some.all():
        return {}
    votes = count_votes_of_items(judgements, some)[2]
    few = np.flatnonzero((votes > 0) & (votes < FEW_VOTES))
    return {int(k): float(votes[k]) for k in few[np.argsort(votes[few], kind="stable")]}
