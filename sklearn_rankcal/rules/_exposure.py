"""Randomised rankings with fair exposure.

A policy is a distribution over rankings. Its expected measure and the expected exposure of each
document are linear in the probabilities. The best policy therefore solves a linear program over all
r! rankings. Column generation finds the few rankings with a positive probability: given the dual
prices, the best ranking is a sort.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog
from sklearn.utils import check_random_state

from sklearn_rankcal.decoders._decode_scores import check_discounts
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.queries._ranking import check_scores
from sklearn_rankcal.rules._query_rules import group_codes
from sklearn_rankcal.utils._messages import check_choice, checks_keywords
from sklearn_rankcal.utils._numbers import Floats, Ints, is_missing, read_numbers

# The tolerances of HiGHS are absolute, at least 1e-10, so scores and discounts are scaled to 1.
# Gains below _TOLERANCE are rounding errors of the prices, and digits beyond _DIGITS are rounding
# errors of the input.
_TOLERANCE = 1e-9
_DIGITS = 9
_HIGHS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


@dataclass
class ExposurePolicy:
    """A distribution over the rankings of each query, as `exposure_policy` returns it.

    Attributes
    ----------
    ids : ndarray of shape (n_queries,)
        Query ids.
    rankings : list of ndarray of shape (n_rankings, n_documents_of_query)
        For each query, the rankings with positive probability: positions of its documents, in the
        order of their rows.
    probabilities : list of ndarray of shape (n_rankings,)
        For each query, the probabilities of its rankings.
    exposure : ndarray of shape (n_documents,)
        Expected discount of the place of each row.
    expected : ndarray of shape (n_queries,)
        Expected sum over documents of score times discount.
    price : ndarray of shape (n_queries,)
        Difference between this sum for the ranking by score and `expected`.

    Examples
    --------
    >>> from sklearn_rankcal.decoders import exposure_policy
    >>> policy = exposure_policy([0.9, 0.8, 0.7, 0.6], of=["x", "x", "y", "y"])
    >>> policy.draw(random_state=0).tolist()
    [2, 4, 1, 3]
    >>> policy.matrix().round(2).tolist()[0]  # places of the first document
    [0.5, 0.5, 0.0, 0.0]
    """

    ids: NDArray[Any]
    rankings: list[Ints]
    probabilities: list[Floats]
    exposure: Floats
    expected: Floats
    price: Floats
    _queries: Queries

    def draw(self, *, key: object = None, random_state: Any = None) -> Ints:
        """Draw a ranking of each query at random.

        Parameters
        ----------
        key : object, default=None
            If given, the query id and ``str(key)`` determine the draw, for example the day or the
            user. Different keys give independent draws.
        random_state : int, RandomState instance or None, default=None
            Seed for draws without a key.

        Returns
        -------
        ranks : ndarray of shape (n_documents,)
            Position of each row in its query, 1 = top.
        """
        if key is not None and random_state is not None:
            raise ValueError("Pass key or random_state, not both.")
        n = len(self.ids)
        if key is None:
            uniform = check_random_state(random_state).random_sample(n)
        else:
            words = [f"{query!r}\x00{key}".encode() for query in self.ids.tolist()]
            digests = b"".join(hashlib.blake2b(word, digest_size=8).digest() for word in words)
            uniform = (np.frombuffer(digests, ">u8") >> np.uint64(11)) / 2.0**53
        grouped = np.empty(len(self.exposure), dtype=np.int64)
        for q in range(n):
            # because of rounding, the last sum can be below 1
            sums = np.cumsum(self.probabilities[q])
            drawn = np.searchsorted(sums / sums[-1], uniform[q], side="right")
            begin, end = self._queries.offsets[q : q + 2]
            grouped[begin:end] = self.rankings[q][drawn]
        return self._queries.scatter(grouped)

    def matrix(self, query: object = None) -> Floats:
        """Return the probability of each document of a query at each place.

        Parameters
        ----------
        query : object, default=None
            Query id. None is the only query.

        Returns
        -------
        matrix : ndarray of shape (n_documents_of_query, n_documents_of_query)
            Rows are documents, and columns are places 1, 2, ... All rows and columns sum to 1.
        """
        found = np.arange(len(self.ids)) if query is None else np.flatnonzero(self.ids == query)
        if len(found) != 1:
            raise ValueError(f"Pass the id of one of the {len(self.ids)} queries; got {query!r}.")
        rankings, probabilities = self.rankings[found[0]], self.probabilities[found[0]]
        r = rankings.shape[1]
        matrix = np.zeros((r, r))
        for ranks, probability in zip(rankings, probabilities, strict=True):
            matrix[np.arange(r), ranks - 1] += probability
        return matrix


@checks_keywords
def exposure_policy(
    scores: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    of: ArrayLike | None = None,
    target: str = "equal",
    merit: ArrayLike | None = None,
    ratio: float = 1.0,
    discounts: ArrayLike | None = None,
) -> ExposurePolicy:
    """Find the best randomised rankings that give groups or documents fair exposure.

    The exposure of a document is the discount of its place. Among all distributions over rankings
    in which the mean expected exposure of each group is at least `ratio` times its target [1]_, the
    policy has the largest expected sum of score times discount.

    Parameters
    ----------
    scores : array-like of shape (n_documents,)
        Expected gains, such as ``CalibratedRanker.decision_function`` returns. A constant per query
        does not matter.
    groups : array-like of shape (n_documents,), default=None
        Query id of each row. With None, all rows are one query.
    of : array-like of shape (n_documents,), default=None
        Group of each row, such as its seller. None and NaN mean no group. If boolean, the rows with
        False are a group, too. With None, each document is a group.
    target : {"equal", "merit"}, default="equal"
        ``"equal"``: the mean exposure of all documents of the query. ``"merit"``: this mean times
        the mean merit of the group, divided by the mean merit of all documents with a group.
    merit : array-like of shape (n_documents,), default=None
        Merit of each row, not negative. Only for ``target="merit"``.
    ratio : float, default=1.0
        Fraction of the target that each group gets at least, between 0 and 1. With 1 and every
        document in a group, each group gets exactly its target.
    discounts : array-like of shape (n_places,), default=None
        Weight of each place: numbers that do not increase and are not negative. None means the
        discounts of DCG, ``1 / log2(1 + place)``.

    Returns
    -------
    policy : ExposurePolicy
        The number of rankings of a query is at most the number of its groups plus 1.

    Raises
    ------
    ValueError
        If merit is so uneven that no policy reaches the targets of a query. The message has the
        largest possible ratio. Also if a number or shape is invalid.

    Notes
    -----
    Scaling the scores or the discounts, or adding a constant to the scores, does not change the
    policy. The rankings are a vertex of a linear program, which bounds their number. Column
    generation adds one ranking at a time, a sort by score plus the price of exposure, until no
    ranking improves the policy. This takes milliseconds for a few groups, and a second for 100
    documents that are their own groups. It needs no decomposition of the doubly stochastic matrix
    of [1]_, which `ExposurePolicy.matrix` returns.

    References
    ----------
    .. [1] A. Singh and T. Joachims (2018). Fairness of exposure in rankings. KDD.

    Examples
    --------
    >>> from sklearn_rankcal.decoders import exposure_policy
    >>> policy = exposure_policy([0.9, 0.8, 0.7, 0.6], of=["x", "x", "y", "y"])
    >>> policy.exposure.round(3).tolist()
    [0.815, 0.465, 0.815, 0.465]
    >>> [ranks.tolist() for ranks in policy.rankings[0]], policy.price.round(3).tolist()
    ([[1, 3, 2, 4], [2, 4, 1, 3]], [0.057])
    >>> (policy.draw(key="2026-11-23") == policy.draw(key="2026-11-23")).all()
    np.True_
    """
    values = check_scores(scores, None, "scores")
    n = len(values)
    queries = Queries.single(n) if groups is None else Queries.from_groups(groups, n)
    check_choice(target, "target", ("equal", "merit"))
    if not 0 <= ratio <= 1:
        raise ValueError(f"ratio must be between 0 and 1; got {ratio!r}.")
    phi = check_discounts(discounts, int(queries.sizes.max()))
    if phi[: queries.sizes.max()].min() < 0:
        raise ValueError("discounts must not be negative: they are the exposure of the places.")
    if (target == "merit") != (merit is not None):
        raise ValueError("target='merit' needs merit, and target='equal' does not use it.")
    worth = np.ones(n) if merit is None else read_numbers(merit, "merit")
    if worth.shape != (n,) or not np.isfinite(worth).all() or worth.min() < 0:
        raise ValueError(f"merit must be finite numbers >= 0 of shape ({n},).")
    code = np.arange(n) if of is None else _codes(of, n)
    values, worth, code = queries.gather(values), queries.gather(worth), queries.gather(code)
    rankings, probabilities, exposures, expected, price = [], [], [], [], []
    for q in range(queries.n_queries):
        part = slice(queries.offsets[q], queries.offsets[q + 1])
        d = phi[: queries.sizes[q]]
        u = values[part].astype(np.float64)
        low, high = float(u.min()) / 2, float(u.max()) / 2
        u_unit, u_middle = (high - low) or 1.0, low + high
        u = (u - u_middle) / u_unit  # scores in [-1, 1]
        d_unit = float(d.max()) or 1.0
        d = d / d_unit
        # rounding errors of the unit must not decide between equally good policies
        rounded = np.round(u, _DIGITS), np.round(d, _DIGITS)
        sharing = _sharing(code[part], worth[part], float(rounded[1].mean()), ratio)
        found = _solve(*rounded, *sharing)
        if isinstance(found, float):
            raise ValueError(
                f"No policy gives each group of query {queries.ids[q]!r} ratio={ratio!r} of its "
                f"target: merit is too uneven. The largest possible ratio is "
                f"{ratio * found:.4g}."
            )
        orders, chance = found
        ranks = np.argsort(orders, axis=1) + 1
        listed = np.lexsort(ranks.T[::-1])  # independent of the order of the search
        ranks, chance = ranks[listed], chance[listed]
        exposure = chance @ d[ranks - 1]
        rankings.append(ranks)
        probabilities.append(chance)
        exposures.append(exposure * d_unit)
        # the exposures of a query always sum to the sum of the discounts
        expected.append(float(u @ exposure) * u_unit * d_unit + u_middle * float(d.sum()) * d_unit)
        price.append(max(0.0, float(np.sort(u)[::-1] @ d - u @ exposure)) * u_unit * d_unit)
    return ExposurePolicy(
        queries.ids,
        rankings,
        probabilities,
        queries.scatter(np.concatenate(exposures)),
        np.array(expected),
        np.array(price),
        queries,
    )


def _codes(of: ArrayLike, n: int) -> Ints:
    """Return the number of the group of each row, -1 for none. Here, False is a group."""
    codes, names = group_codes(of, n)
    if names == [True]:
        missing = [is_missing(value) for value in np.asarray(of).tolist()]
        codes = np.where(missing, -1, codes + 1)
    return codes


def _sharing(code: Ints, worth: Floats, mean: float, ratio: float) -> tuple[Floats, Floats]:
    """Return the averaging matrix (n_groups, r) of the groups, and their least exposures."""
    names = np.unique(code[code >= 0])
    members = (code == names[:, None]).astype(np.float64)
    sharing = members / members.sum(axis=1, keepdims=True)
    inside = code >= 0
    total = worth[inside].mean() if inside.any() else 0.0
    merit = sharing @ worth / total if total > 0 else np.ones(len(names))
    return sharing, ratio * mean * merit


def _solve(u: Floats, d: Floats, sharing: Floats, targets: Floats) -> tuple[Ints, Floats] | float:
    """Return orders (n, r) and probabilities, or the possible share of the targets if below 1."""
    best = np.argsort(-u, kind="stable")
    if not len(targets) or not targets.any():
        return best[None], np.ones(1)

    def exposures(order: Ints) -> Floats:
        placed = np.empty(len(d))
        placed[order] = d
        return sharing @ placed

    # Step 1: the largest share s of the targets, max s such that exposures >= s targets.
    orders, columns = [best], [exposures(best)]
    scale = targets / targets.max()

    def to_reach(prices: Floats) -> tuple[Ints, float]:
        order = np.lexsort((-u, -(prices @ sharing)))
        return order, float(prices @ exposures(order))

    share, _ = _generate(orders, columns, exposures, to_reach, scale, None, lambda order: 0.0)
    share /= targets.max()
    if share < 1 - _TOLERANCE:
        return share
    # Step 2: the largest expected measure such that exposures >= targets, up to rounding.

    def to_earn(prices: Floats) -> tuple[Ints, float]:
        worth = u + prices @ sharing
        order = np.lexsort((-u, -worth))
        return order, float(worth[order] @ d)

    def value(order: Ints) -> float:
        return float(u[order] @ d)

    limits = targets - 2 * _TOLERANCE * targets.max()
    _, chance = _generate(orders, columns, exposures, to_earn, None, limits, value)
    used = chance > 1e-12
    return np.array(orders)[used], chance[used] / chance[used].sum()


def _generate(
    orders: list[Ints],
    columns: list[Floats],
    exposures: Callable[[Ints], Floats],
    best_for: Callable[[Floats], tuple[Ints, float]],
    per_share: Floats | None,
    limits: Floats | None,
    value: Callable[[Ints], float],
) -> tuple[float, Floats]:
    """Solve a linear program over rankings by column generation; return value and probabilities.

    With `per_share`, maximise s such that the mean exposures are at least s * per_share. With
    `limits`, maximise the mean of `value` such that they are at least the limits. Extends `orders`
    and `columns`.
    """
    values = [value(order) for order in orders]
    size = max(1.0, max(map(abs, values)))
    known = {order.tobytes() for order in orders}
    while True:
        table = np.array(columns).T
        n = len(orders)
        if per_share is not None:
            cost = np.append(np.zeros(n), -1.0)
            upper, bound = np.column_stack([-table, per_share]), np.zeros(len(per_share))
        else:
            assert limits is not None
            cost, upper, bound = -np.array(values), -table, -limits
        sums = np.append(np.ones(n), np.zeros(len(cost) - n))[None]
        solved = linprog(cost, upper, bound, sums, [1.0], method="highs-ds", options=_HIGHS)
        if solved.x is None:
            raise RuntimeError(f"The linear program of a policy was not solved: {solved.message}")
        prices = -solved.ineqlin.marginals
        order, worth = best_for(prices)
        # the ranking improves the policy if its worth exceeds the dual price of the sum constraint
        gain = worth + float(solved.eqlin.marginals[0])
        # because of rounding errors of the prices, a known ranking can seem to be an improvement
        if gain <= _TOLERANCE * size or order.tobytes() in known:
            return -float(solved.fun), solved.x[:n]
        known.add(order.tobytes())
        orders.append(order)
        columns.append(exposures(order))
        values.append(value(order))
