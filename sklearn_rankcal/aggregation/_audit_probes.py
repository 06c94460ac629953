"""The probes of an audit for items and for the votes as a whole."""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import Any, NamedTuple
from unicodedata import category, normalize

import numpy as np
from scipy.linalg import inv
from scipy.sparse import csr_array
from scipy.special import comb, ndtr
from scipy.stats import binom, chi2

from sklearn_rankcal.aggregation._audit_data import MOST, AuditData, Found
from sklearn_rankcal.aggregation._base import tie_scores
from sklearn_rankcal.aggregation._boards import evidence_of, fit_board, wins_of
from sklearn_rankcal.aggregation._contests import Contests, gauge
from sklearn_rankcal.aggregation._graphs import number_components, open_ends
from sklearn_rankcal.aggregation._votes import POSITION
from sklearn_rankcal.labels._item_ids import content_ranks
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._messages import RARE, counted, one_edit, percent
from sklearn_rankcal.utils._numbers import (
    ROUNDING,
    Bools,
    Floats,
    Ints,
    add_up,
    exceeds,
    order_from_largest,
)

# A wider interval says little: 1 unit is a win in 73 of 100 votes.
_WIDE = 1.0
# For more items, the distribution of cycles by chance takes too long.
_MAX_ITEMS = 1000
_DRAWS = 999
_SHOWN = 3
# An item with few votes may be a misspelling of one with more votes than this.
_OFTEN = 30


def listing(names: list[str]) -> str:
    """Name the first few, and count the rest."""
    text = ", ".join(names[:_SHOWN])
    return text if len(names) <= _SHOWN else f"{text} and {len(names) - _SHOWN} more"


def votes_of_items(data: AuditData) -> Floats:
    contests, n = data.contests, len(data.items)
    votes = np.bincount(contests.first, contests.weight, n)
    return np.asarray(votes + np.bincount(contests.second, contests.weight, n))


def few_votes_probe(data: AuditData) -> Found:
    """Find items with too few votes to determine their scores."""
    votes = votes_of_items(data)
    wide = np.flatnonzero((data.half_width > _WIDE) & (votes > 0))
    none = np.flatnonzero(votes == 0)
    if not len(wide) and not len(none):
        least = int(order_from_largest(-votes, content_ranks(data.items))[0])
        return (
            False,
            f"Each item has at least {counted(votes[least], 'vote')} ({data.name(least)}).",
        )
    order = _fewest_first(data, votes, wide)
    names = [f"{data.name(k)} ({votes[k]:,.0f})" for k in [*none.tolist(), *order.tolist()]]
    return True, (
        f"Too few votes for {counted(len(names), 'item')}, with 95 % intervals of more than "
        f"+-{_WIDE:g}: {listing(names)}. Collect more votes on them."
    )


def unbounded_probe(data: AuditData) -> Found:
    """Find items that never lost or never won, unbounded effects, and separate parts."""
    part = data.board.fit.part
    low, high = open_ends(*wins_of(data.contests), part, MOST)
    compared = np.bincount(part)[part] > 1
    n_parts = int((np.bincount(part) > 1).sum())
    if n_parts > 1:
        text = f"The items are in {counted(n_parts, 'part')} that no votes connect."
        if not len(data.main):
            return (
                True,
                f"{text} None has more than half of them, and there is no common leaderboard.",
            )
        others = [data.name(k) for k in np.flatnonzero(data.parts > 1).tolist()]
        text += (
            f" The largest has {counted(len(data.main), 'item')}, and the first place is "
            f"among them; {counted(len(others), 'item')} cannot be compared with it: "
            f"{listing(others)}."
        )
        inside = data.main[(low | high)[data.main]]
        if len(inside):
            names = [data.name(k) for k in inside.tolist()]
            text += (
                f" In the largest, {counted(len(names), 'item')} never lost, or never won, against "
            )
            text += f"the rest: {listing(names)}."
        return True, text
    ends = np.flatnonzero((low | high) & compared)
    recession = data.board.fit.recession
    if recession is not None:
        names = [*data.board.names, "ties"]
        effects = listing([names[k] for k in np.flatnonzero(recession.low | recession.high)])
        return True, (
            f"The votes do not bound these effects, only the penalty does: {effects}. Leave "
            "them out, or collect votes with both results."
        )
    if not len(ends):
        return False, "Wins link each item to every other, directly or in a chain."
    votes = votes_of_items(data)
    order = _fewest_first(data, votes, ends)
    names = [f"{data.name(k)} ({votes[k]:,.0f})" for k in order.tolist()]
    return True, (
        f"{counted(len(names), 'item')} never lost, or never won, against the rest: "
        f"{listing(names)}. Only the penalty bounds the scores."
    )


def _fewest_first(data: AuditData, votes: Floats, items: Ints) -> Ints:
    """Sort items by their votes, and by their ids."""
    return items[order_from_largest(-votes[items], content_ranks(data.items)[items])]


# ---------------------------------------------------------------- position and ties

_FEWEST_TESTED = 10  # with fewer votes, an effect that matters would seldom be found
_FEWEST_DECIDED = 20  # by chance, all of these are in one column at most twice in a million boards


def position_probe(data: AuditData) -> Found:
    """Test whether the first item wins more often than its score predicts."""
    details = data.judgements.details
    if details is None:
        text = "Unknown: read the votes with Judgements.from_votes, which records who was first."
        return None, text
    known = POSITION in data.board.names
    decided = data.contests.outcome[data.contests.outcome < 2]
    told = known and np.ptp(details.covariates[:, details.names.index(POSITION)]) > 0
    if not told and len(decided) >= _FEWEST_DECIDED and (decided == decided[0]).all():
        text = (
            "Unknown: the winner is always in the same column, as in tables of winners and "
            "losers. Pass who was shown first as position=: 1 for the first item, -1 for "
            "the second."
        )
        return (True if known else None), text
    if len(decided) < _FEWEST_TESTED:
        return None, f"Unknown: {counted(len(decided), 'decided vote')} only."
    try:
        board = data.board if known else data.refit(position=np.ones(len(data.contests.first)))
    except ValueError:  # the same item of each pair is always first
        text = "Unknown: the same item of each pair is always first. Show pairs in both orders."
        return None, text
    place = board.fit.n_items + board.names.index(POSITION)
    effect = float(board.fit.weights[place])
    found = evidence_of(data.judgements, board, data.structure, "robust", 0.95)
    z = found.z(np.eye(len(board.fit.weights))[[place]], found.small)[0]
    p = float(2 * ndtr(-abs(z)))
    ranks = data.ranks_of(board)
    text = f"The first item wins as if its score were {effect:.3f} larger (p = {p:.2g})."
    if p >= data.level:
        text = f"No effect of the first place was found (p = {p:.2g}; estimate {effect:.3f})."
    if known:
        return False, text + " The leaderboard allows for it.", p
    moved = int((ranks != data.ranks).sum())
    data.alternatives["with position"] = ranks
    if p >= data.level:
        return False, text, p
    text += f" Allowing for it moves {counted(moved, 'rank')}"
    new, old = data.first(ranks), data.first(data.ranks)
    if new is not None and old is not None and new != old:
        text += f", and {data.name(new)} is first instead of {data.name(old)}"
    return True, text + ". Pass position=True to from_votes.", p


def share_without_answer(read: Any) -> Found:
    if read.refused is None:
        text = (
            "Unknown: to count votes without an answer, pass their word as refused= to from_votes."
        )
        return None, text
    answered, refused = read.per_query, float(read.refused.sum())
    share = percent(refused / (refused + float(answered.sum())))
    text = f"{share} of the votes ({refused:,.0f}) have no answer, and are left out."
    lost = int((answered == 0).sum())
    return (True, f"{text} {counted(lost, 'query')} lost all votes.") if lost else (False, text)


def ties_probe(data: AuditData) -> Found:
    """Check whether ranks depend on how ties are modelled."""
    tied = data.contests.outcome == 2
    if not tied.any():
        return False, "There are no ties."
    share = float(data.contests.weight[tied].sum() / data.contests.weight.sum())
    found: dict[str, Ints] = {}
    for ties in ("half", "davidson", "rao_kupper"):
        if ties != data.structure.ties and not tied.all():
            structure = type(data.structure)(**{**data.structure.get_params(), "ties": ties})
            found[f"ties: {ties}"] = data.ranks_of(data.refit(structure=structure))
    plain = type(data.structure)(**{**data.structure.get_params(), "ties": "half"})
    if not tied.all():
        found["without ties"] = data.ranks_of(data.refit(structure=plain, kept=~tied))
    text = f"{percent(share)} of the votes are ties."
    outside = {
        name: np.flatnonzero((ranks < data.rank_low) | (ranks > data.rank_high))
        for name, ranks in found.items()
    }
    worst = max(outside, key=lambda name: len(outside[name]), default="")
    moved = max((int((ranks != data.ranks).sum()) for ranks in found.values()), default=0)
    data.alternatives |= found
    if worst and len(outside[worst]):
        names = listing([data.name(k) for k in outside[worst].tolist()])
        text += f" With {worst!r}, {names} would leave the interval of the rank."
        return True, text
    return (
        False,
        f"{text} Other models of ties move {counted(moved, 'rank')}, all within the intervals.",
    )


# ---------------------------------------------------------------- cycles


def cycles_probe(data: AuditData) -> Found:
    """Test whether the results of pairs differ from the scores by more than chance.

    The statistic is the sum over pairs of the squared residual divided by its variance, without
    the part that scores can explain. By chance, it has a chi-squared distribution. With judges,
    this distribution is sampled: the residuals of each judge get a random sign.
    """
    # items and judges are numbered by their ids: the order of the votes must not change the draws
    ids, n = content_ranks(data.items), len(data.items)
    contests = data.contests
    contests = contests._replace(first=ids[contests.first], second=ids[contests.second])
    one = np.minimum(contests.first, contests.second)
    other = np.maximum(contests.first, contests.second)
    keys, pair = np.unique(one * n + other, return_inverse=True)
    if n > _MAX_ITEMS:
        return None, f"Not tested: there are more than {_MAX_ITEMS:,} items."
    signed = np.where(contests.first == one, 1.0, -1.0) * data.residual * contests.weight
    residual = add_up(pair, signed, len(keys))
    variance = add_up(pair, data.variance * contests.square, len(keys))
    first, second = keys // n, keys % n
    columns = (np.append(first, second), np.tile(np.arange(len(keys)), 2))
    signs = np.repeat([1.0, -1.0], len(keys))
    incidence = csr_array((signs, columns), shape=(n, len(keys)))
    part = number_components(first, second, n, "weak")
    if len(keys) <= n - (part.max() + 1):
        return None, "Unknown: the compared pairs form no cycle."
    inverse = _inverse(incidence, variance, part)

    def free(values: Floats) -> Floats:
        """Remove what a change of the scores explains, of shape (n_draws, n_pairs)."""
        change = (incidence @ values.T).T @ inverse
        return values - (incidence.T @ change.T).T * variance

    statistic = float((free(residual[None])[0] ** 2 / variance).sum())
    p = float(chi2.sf(statistic, len(keys) - n + part.max() + 1))
    if data.clusters is not None:
        assert data.judges is not None
        codes = np.unique(content_ranks(data.judges)[data.clusters], return_inverse=True)[1]
        shape = int(codes.max()) + 1, len(keys)
        # half of what the votes of a judge moved the fit towards them (Bell and McCaffrey, 2002)
        moved = csr_array((signed, (codes, pair)), shape=shape) @ incidence.T @ inverse
        lead = moved[codes, first[pair]] - moved[codes, second[pair]]
        signed = signed + data.variance * contests.square * lead / 2
        by_judge = csr_array((signed, (codes, pair)), shape=shape)
        drawn = np.empty(_DRAWS)
        step = max(1, 20_000_000 // len(keys))
        for some in (slice(k, k + step) for k in range(0, _DRAWS, step)):
            flips = data.random.choice([-1.0, 1.0], size=(len(drawn[some]), shape[0]))
            drawn[some] = (free((by_judge.T @ flips.T).T) ** 2 / variance).sum(axis=1)
        # if no pair has several judges, all draws equal the statistic up to rounding
        p = float((1 + (~exceeds(statistic, drawn, statistic)).sum()) / (1 + _DRAWS))
    share, chance = _cyclic_share(data, contests, pair, contests.first == one, incidence, part)
    text = (
        f"{percent(share)} of the strength of the preferences is cyclic; {percent(chance)} "
        f"is expected by chance (p = {p:.2g})."
    )
    if p >= data.level:
        return False, text, p
    return True, text + " One score per item does not describe the votes.", p


def _inverse(incidence: csr_array, weight: Floats, part: Ints) -> Floats:
    """Return an inverse of the Laplacian matrix, for values that add up to 0 in each component."""
    laplacian = (incidence @ (incidence * weight[None, :]).T).toarray()
    return np.asarray(inv(laplacian + gauge(part, len(part))))


def _cyclic_share(
    data: AuditData, contests: Contests, pair: Ints, ahead: Bools, incidence: csr_array, part: Ints
) -> tuple[float, float]:
    """Return the cyclic share of the net votes (Jiang et al., 2011), and its size by chance."""
    n_pairs = incidence.shape[1]
    value = np.array([1.0, -1.0, 0.0])[contests.outcome] * contests.weight
    net = np.bincount(pair, np.where(ahead, value, -value), n_pairs)
    total = add_up(pair, contests.weight, n_pairs)
    flow = net / total
    inverse = _inverse(incidence, total, part)
    scores = inverse @ (incidence @ (total * flow))
    gap = flow - incidence.T @ scores
    energy = float((total * flow**2).sum())
    variance = 4 * np.bincount(pair, data.variance * contests.square, n_pairs) / total
    leverage = total * np.ravel(incidence.T.multiply(incidence.T @ inverse).sum(axis=1))
    chance = float((variance * (1 - leverage)).sum())
    if not exceeds(np.sqrt(energy), 0.0, np.sqrt(total.sum())):  # all pairs are even
        return 0.0, 0.0
    return float((total * gap**2).sum()) / energy, min(chance / energy, 1.0)


# ---------------------------------------------------------------- names


def _misspelt(data: AuditData) -> list[str]:
    """Find rare names that are similar to frequent ones."""
    votes = votes_of_items(data)
    names = [item if isinstance(item, str) else "" for item in data.items.tolist()]
    rare = (votes > 0) & (votes <= RARE)
    frequent = [k for k in np.flatnonzero(votes > _OFTEN).tolist() if names[k]]
    near = []
    for k in np.flatnonzero(rare).tolist():  # few items
        close = [other for other in frequent if one_edit(names[k], names[other])]
        if names[k] and close:
            best = max(close, key=lambda other: float(votes[other]))
            near.append(f"{data.name(k)} ({votes[k]:,.0f}) and {data.name(best)}")
    return near


def _plain_name(item: str | float) -> str:
    """Return a name without case, punctuation and differences of coding.

    Unicode has several codes for some letters, such as full-width ones, and a column of numbers can
    be read as numbers or as text. A name that is only punctuation is unchanged.
    """
    if not isinstance(item, str):
        return str(int(item)) if float(item).is_integer() else repr(item)
    text = normalize("NFKC", normalize("NFKC", item).casefold())
    # P: punctuation, Z: separators, C: invisible characters
    return "".join(c for c in text if category(c)[0] not in "PZC") or item


def _equation(names: list[str]) -> str:
    """Write equal names, with escapes if they look the same."""
    looks = {normalize("NFC", name) for name in names}
    return " = ".join((ascii(name)[1:-1] for name in names) if len(looks) < len(names) else names)


def names_probe(data: AuditData) -> Found:
    """Find items with nearly the same name, and pairs that nearly always tie.

    A rare name that is one letter away from a frequent one may be misspelt.
    """
    plain: dict[str, list[int]] = {}
    for k, item in enumerate(data.items.tolist()):
        if isinstance(item, (str, int, float)):
            plain.setdefault(_plain_name(item), []).append(k)
    twins = [group for group in plain.values() if len(group) > 1]
    if twins:
        shown = [_equation([data.name(k) for k in group]) for group in twins]
        text = f"Names differ only by case, punctuation or coding: {listing(shown)}."
        return True, text + " If they are the same items, merge them."
    if near := _misspelt(data):
        text = f"A rare name is similar to a frequent one: {listing(near)}."
        return True, text + " If it is misspelt, correct it."
    contests, n = data.contests, len(data.items)
    tied = contests.outcome == 2
    if not tied.any() or tied.all():
        return False, "No two names differ only by case, punctuation or coding."
    share = float(contests.weight[tied].sum() / contests.weight.sum())
    key = np.minimum(contests.first, contests.second) * n + np.maximum(
        contests.first, contests.second
    )
    keys, pair = np.unique(key, return_inverse=True)
    votes, ties = np.bincount(pair, contests.weight), np.bincount(pair, contests.weight * tied)
    # Equal items tie more often than other pairs; clones tie at least twice as often.
    p = binom.sf(np.round(ties) - 1, np.round(votes), min(2 * share, 0.999)) * len(keys)
    ids = content_ranks(data.items)
    one, other = ids[keys // n], ids[keys % n]
    best = int(np.lexsort((np.maximum(one, other), np.minimum(one, other), p))[0])
    if p[best] < data.level:
        one, other = sorted(divmod(int(keys[best]), n), key=ids.__getitem__)
        text = f"{data.name(one)} and {data.name(other)} tie in {ties[best]:.0f} of their "
        text += (
            f"{counted(votes[best], 'vote')}, far more often than other pairs: perhaps they "
            "are clones."
        )
        return True, text, float(min(p[best], 1.0))
    return (
        False,
        "No two items have nearly the same name or tie unusually often.",
        float(min(p[best], 1.0)),
    )


# ---------------------------------------------------------------- first place

_FEW = 0.01  # the probe fires if at most this share of all votes decides the first place


def first_place_probe(data: AuditData) -> Found:
    """Find the fewest votes without which another item would be first."""
    if len(data.contests.first) > data.judgements.n_judgements:
        return None, "Not tested: votes have probabilities."
    found = data.influence = fewest_votes(data)
    if found is None:
        if not len(data.main):
            return None, "Unknown: no connected part has more than half of the items."
        if data.first(data.ranks) is None:
            return None, "Unknown: several items share the first place."
        return None, "Unknown: no set of votes was found that decides the first place."
    total = data.contests.weight.sum()
    few = not exceeds(found.n_votes, _FEW * total, found.n_votes)
    exact = ""
    if 1 < found.at_least == found.n_votes:
        exact = ", and fewer votes are not enough"
    return few, (
        f"Without {counted(found.n_votes, 'vote')} ({percent(found.n_votes / total)}), "
        f"{data.name(found.rival)} would be first instead of {data.name(found.first)}{exact}."
    )


# ---------------------------------------------------------------- votes that decide the first place


#: Number of rivals with gradients, and number of rivals that are tried: those that need the fewest
#: votes by their gradients.
_NEAREST, _RIVALS = 51, 3
#: Maximum number of sets of votes that are tried one by one.
_MAX_SETS = 200


class Influence(NamedTuple):
    """The smallest set of votes that was found to change the first place if removed.

    Attributes
    ----------
    n_votes : float
        Number of removed votes.
    at_least : int
        No set of fewer votes changes the first place, as all of them were tried.
    first, rival : int
        The item that is first with all votes, and the item that is first without these votes.
    votes : ndarray of int
        Numbers of the removed votes in the judgements.
    """

    n_votes: float
    at_least: int
    first: int
    rival: int
    votes: Ints


def fewest_votes(data: AuditData) -> Influence | None:
    """Find the smallest set of votes that decides the first place; None without a first item.

    Without these votes, another item alone is first in the main part of the items; a tie does not
    count. Votes are removed in the order of their effects on the lead of the first item, by one
    Newton step. The model is then refitted to the remaining votes, to verify that the first place
    changes. If there are at most 200 smaller sets of different votes, all are tried, and the
    number is exact: `at_least` is `n_votes`. Otherwise `at_least` is 1.
    """
    fit, contests = data.board.fit, data.contests
    scores, ids = data.board.scores, content_ranks(data.items)
    best: tuple[float, int, Floats] | None = None
    first = data.first(data.ranks)
    if first is None or len(data.main) < 2:
        return None
    rivals = data.main[np.lexsort((ids[data.main], data.ranks[data.main]))][1:]
    kinds, of_kind, counts, at = _kinds_of_votes(data)
    own = (kinds.first == first) | (kinds.second == first)
    leader = _leader(data, kinds, np.where(own, 0.0, counts), at)
    if leader is not None:  # an item without remaining votes is not first
        best = (float(np.ceil(counts[own].sum())), leader, np.where(own, counts, 0.0))
    outcome = contests.outcome[at]
    slopes = fit.slopes()
    lead, tie = slopes.lead[outcome, at], slopes.tie[outcome, at]
    tries, needed = [], []
    scores_of = data.board.map.toarray()
    pulls = fit.solve((scores_of[first] - scores_of[rivals[:_NEAREST]]).T).T
    for rival, pull in zip(rivals[:_NEAREST].tolist(), pulls, strict=True):
        effect = lead * fit.votes.leads(pull, fit.n_items)[at]
        if fit.has_tie:
            effect += tie * pull[-1]
        ranked = order_from_largest(effect)  # break ties of equal effects by kind
        helps = exceeds(effect, 0.0, np.abs(effect).max())
        total = np.cumsum(np.where(helps, effect, 0.0)[ranked] * counts[ranked])
        gap = float(scores[first] - scores[rival])
        # the number of votes with effects that sum to the gap, up to rounding
        reach = int(exceeds(gap, total, gap).sum())
        needed.append(float(counts[ranked[: reach + 1]].sum()) if reach < len(total) else np.inf)
        tries.append(ranked[helps[ranked]])
    nearest = order_from_largest(-np.array(needed), ids[rivals[: len(needed)]])
    for k in nearest[:_RIVALS].tolist():
        found = _shortest_prefix(data, kinds, counts, at, tries[k], first, best)
        if found is not None and (best is None or found[0] < best[0]):
            best = found
    if best is None:
        return None
    n_votes, rival, removed = best
    at_least = 1
    smaller_sets = comb(len(counts) + int(n_votes) - 1, int(n_votes) - 1)
    small = n_votes <= 20 and smaller_sets <= _MAX_SETS
    while small and at_least < n_votes:
        smaller = _some_set_changes(data, kinds, counts, at, first, at_least)
        if smaller is not None:
            n_votes, rival, removed = float(at_least), smaller[0], smaller[1]
            break
        at_least += 1
    votes = np.concatenate(
        [np.flatnonzero(of_kind == k)[: int(np.ceil(removed[k]))] for k in np.flatnonzero(removed)]
    )
    return Influence(n_votes, at_least, first, rival, contests.judgement[votes])


def _kinds_of_votes(data: AuditData) -> tuple[Contests, Ints, Floats, Ints]:
    """Return one vote of each kind, the kind of each vote, and the number of votes per kind.

    The order of the kinds depends on the ids of items and on covariates, not on the order of the
    votes. The last array has the index of a vote of each kind.
    """
    contests, X = data.contests, data.board.X
    ids, n = content_ranks(data.items), len(data.items)
    key = (ids[contests.first] * n + ids[contests.second]) * 3 + contests.outcome
    if X.shape[1] and (X != X[:1]).any():
        place = np.lexsort((*X.T, key))
        of_kind = np.empty_like(place)
        of_kind[place] = np.arange(len(place))
    else:
        place, of_kind = np.unique(key, return_index=True, return_inverse=True)[1:]
    counts = add_up(of_kind, contests.weight, len(place))
    return contests.take(place), of_kind, counts, place


def _leader(data: AuditData, kinds: Contests, counts: Floats, places: Ints) -> int | None:
    """Fit the model to these numbers of votes per kind, and return the unique first item.

    Only items of the main part that the remaining votes connect can be first. None without a unique
    first item.
    """
    kept = counts > ROUNDING * np.abs(data.contests.weight).max()
    if not kept.any():
        return None
    left = kinds._replace(weight=counts, square=counts).take(kept)
    X = data.board.X[places][kept]
    try:
        board = fit_board(
            left, X, data.board.names, data.board.rows, data.judgements, data.structure,
            effect_ridge=data.board.fit.ridge[data.board.fit.n_items :],
            start=data.board.fit.weights,
        )  # fmt: skip
    except ValueError:  # the remaining votes do not determine the covariates
        return None
    seen = np.intersect1d(data.main, np.append(left.first, left.second))
    if not len(seen) or len(np.unique(board.fit.part[seen])) > 1:
        return None
    tied = tie_scores(board.scores[seen], data.structure, Queries.single(len(seen)))
    top = seen[tied == tied.max()]
    return int(top[0]) if len(top) == 1 else None


def _shortest_prefix(
    data: AuditData,
    kinds: Contests,
    counts: Floats,
    places: Ints,
    ranked: Ints,
    first: int,
    best: tuple[float, int, Floats] | None,
) -> tuple[float, int, Floats] | None:
    """Find by bisection the number of votes of a list that must be removed."""
    ends = np.cumsum(counts[ranked])
    if not len(ends):
        return None

    def remove(m: float) -> Floats:
        left = counts.copy()
        left[ranked] -= np.clip(m - (ends - counts[ranked]), 0.0, counts[ranked])
        return left

    low, high = 0, int(np.floor(ends[-1]))
    if best is not None:
        high = min(high, int(best[0]) - 1)
    if high < 1:
        return None
    leader = _leader(data, kinds, remove(high), places)
    while leader is None and high > 1:
        high //= 2
        leader = _leader(data, kinds, remove(high), places)
    if leader is None or leader == first:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        now = _leader(data, kinds, remove(middle), places)
        if now is not None and now != first:
            high, leader = middle, now
        else:
            low = middle
    return float(high), leader, counts - remove(high)


def _some_set_changes(
    data: AuditData, kinds: Contests, counts: Floats, places: Ints, first: int, size: int
) -> tuple[int, Floats] | None:
    """Try all sets of this number of votes; return the new first item and the removed votes."""
    for some in combinations_with_replacement(range(len(counts)), size):
        taken = np.bincount(some, minlength=len(counts)).astype(np.float64)
        if (taken > counts).any():
            continue
        leader = _leader(data, kinds, counts - taken, places)
        if leader is not None and leader != first:
            return leader, taken
    return None
