"""`Audit`: a check of the votes behind a leaderboard."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr, stdtr
from sklearn.utils import check_random_state

from sklearn_rankcal.aggregation._audit_data import AuditData, Found, Probe, read_votes
from sklearn_rankcal.aggregation._audit_probes import (
    cycles_probe,
    few_votes_probe,
    first_place_probe,
    listing,
    names_probe,
    position_probe,
    share_without_answer,
    ties_probe,
    unbounded_probe,
)
from sklearn_rankcal.aggregation._contests import Contests, contests_of
from sklearn_rankcal.aggregation._judgements import Judgements
from sklearn_rankcal.labels._item_ids import content_ranks, show_id
from sklearn_rankcal.queries._queries import number_values
from sklearn_rankcal.utils._messages import check_number, counted, percent
from sklearn_rankcal.utils._numbers import Floats, Ints, add_up, exceeds, order_from_largest

_WIDTH = 88


@dataclass(repr=False, eq=False)
class Audit:
    """A check of the votes behind a leaderboard, made by `Aggregate.audit`.

    ``print`` shows a table of the findings.

    Attributes
    ----------
    probes : list of Probe
        The checks. Each test among them fires by chance with probability `level`.
    level : float
        The rate of false alarms of each test.
    items : ndarray of shape (n_items,)
        The items, best first.
    alternatives : dict of str to ndarray of shape (n_items,)
        The rank of each item if the votes are read differently: with an effect of the position,
        with another model of ties, or without the judges that a probe names.
    influence : Influence or None
        The smallest set of votes that was found to decide the first place: without them, another
        item alone would be first. It refers to the part with more than half of the items.

    Examples
    --------
    >>> from sklearn_rankcal import aggregate
    >>> votes = [("owl", "cat")] * 20 + [("cat", "owl")] * 9 + [("cat", "eel")] * 18
    >>> votes += [("eel", "cat")] * 10 + [("owl", "eel")] * 21 + [("eel", "owl")] * 7
    >>> audit = aggregate(votes).audit()
    >>> {probe.name: probe.fires for probe in audit.probes}["cycles"]
    False
    """

    probes: list[Probe]
    level: float
    items: Any
    n_votes: float
    alternatives: dict[str, Ints] = field(default_factory=dict)
    influence: Any = None
    title: str = "audit"

    @property
    def fired(self) -> list[Probe]:
        """The probes that found a fault."""
        return [probe for probe in self.probes if probe.fires]

    def to_frame(self) -> Any:
        """Convert the probes to a pandas data frame, one row each.

        Returns
        -------
        frame : pandas.DataFrame
            The columns are the attributes of `Probe`.
        """
        import pandas as pd

        return pd.DataFrame(self.probes, columns=list(Probe._fields))

    def plot(self, *, ax: Any = None) -> Any:
        """Plot the ranks by each reading of the votes. See `plotting.plot_alternatives`.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            The axes to draw on. None means new axes.

        Returns
        -------
        ax : matplotlib.axes.Axes
        """
        from sklearn_rankcal.plotting import plot_alternatives

        return plot_alternatives(self, ax=ax)

    def __repr__(self) -> str:
        import textwrap

        head = (
            f"{self.title} of {counted(len(self.items), 'item')}, {counted(self.n_votes, 'vote')}: "
            f"{len(self.fired)} of {counted(len(self.probes), 'probe')} fire; false alarm "
            f"rate {100 * self.level:g} % per test"
        )
        lines = [head]
        width = max(len(probe.name) for probe in self.probes)
        for probe in self.probes:
            mark = {True: "FIRES", False: "ok   ", None: "?    "}[probe.fires]
            start = f"{probe.name:<{width}}  {mark}  "
            lines += textwrap.wrap(
                probe.finding, _WIDTH, initial_indent=start, subsequent_indent=" " * len(start)
            ) or [start]
        return "\n".join(lines)


def audit_board(
    board: Any, group: Any, level: Any, random_state: int | np.random.RandomState | None
) -> Audit:
    """Make the audit of a query of an `Aggregate`; `Aggregate.audit` has the parameters."""
    check_number(level, "level", "(0, 1)")
    if group is None and board.judgements.queries.n_queries > 1:
        found, total = pooled_probes(board, float(level))
        return Audit(found, float(level), board.items, total)
    random = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    data = read_votes(board, group, float(level), random)
    ordered = board.judgements.orders is not None
    title, find = "audit by drawn pairs", {"cycles": cycles_probe}
    if not ordered:  # drawn votes say less of scores than the orders do
        title = "audit" if board.category_spread is None else "audit without pooling"
        find = {
            "few votes": few_votes_probe,
            "unbounded": unbounded_probe,
            "position": position_probe,
            "ties": ties_probe,
            **find,
        }
    probes = [Probe(name, *probe(data)) for name, probe in find.items()]
    if data.judgements.refused is not None:
        probes.append(Probe("no answer", *share_without_answer(data.judgements)))
    probes += judges_probes(data)
    probes.append(Probe("same names", *names_probe(data)))
    if not ordered:
        probes.append(Probe("first place", *first_place_probe(data)))
    order = np.argsort(data.ranks, kind="stable")
    return Audit(
        probes,
        data.level,
        data.items[order],
        float(data.contests.weight.sum()),
        {name: ranks[order] for name, ranks in data.alternatives.items()},
        data.influence,
        title,
    )


# ---------------------------------------------------------------- judges


_VOTES = 5  # that a judge, or a judge of an item, must have given to be tested
_SHARE = 0.1  # of all votes, from one judge
_MEDIAN = 0.4549364231195724  # of the chi-squared distribution with one degree of freedom
_NAMES = ("random judges", "opposed judges", "partial judges", "busy judges")


def judges_probes(data: AuditData) -> list[Probe]:
    """Find judges who vote at random, against all others, for one item, or very often.

    The first two are tests of the slope of a judge's votes on the leads of the board, which is 1 on
    average. The third tests the votes of each judge for each item.
    """
    if data.judge is None:
        text = "Unknown: the judge of each vote is not given. Pass judge=."
        return [Probe(name, None, text) for name in _NAMES]
    contests = data.contests
    codes, judge = np.unique(data.judge, return_inverse=True)
    assert data.judges is not None
    ids = data.judges[codes]
    n = len(codes)
    if n == 1:
        text = f"Unknown: all votes are by one judge, {show_id(ids[0])}."
        unknown = [Probe(name, None, text) for name in _NAMES[:-1]]
        text = f"All votes are by {show_id(ids[0])}. They say nothing about other judges."
        return [*unknown, Probe(_NAMES[-1], True, text)]
    votes = np.bincount(judge, contests.weight, n)
    strange = _strange_items(data, judge, ids)
    # leave out the votes about an item that a judge treats unlike other judges
    special = np.full(n, -1)
    special[strange.judge[::-1]] = strange.item[::-1]
    plain = (contests.first != special[judge]) & (contests.second != special[judge])
    weight = contests.weight * plain
    d = data.lead
    score = add_up(judge, weight * data.residual * d, n)
    square = contests.square * plain
    information = add_up(judge, square * data.variance * d**2, n)
    third = add_up(judge, weight * square * data.third * d**3, n)
    many = ~exceeds(_VOTES, np.bincount(judge, weight, n), _VOTES)
    tested = many & (information > 0)
    found: list[Probe] = []
    z = np.where(tested, _standard(score, information, third), 0.0)
    # what a judge agrees with the leads, relative to what the model expects of a judge
    value = np.array([1.0, 0.0, 0.5])[contests.outcome]
    agreement = add_up(judge, weight * (value - 0.5) * d, n)
    agreement /= np.maximum(add_up(judge, weight * (expit(d) - 0.5) * d, n), 1e-9)
    p = np.ones(n)
    p[tested] = _chances(z[tested])  # small for slopes below 1
    corrected = np.minimum(p * max(int(tested.sum()), 1), 1.0)
    low = corrected < data.level
    against = low & (agreement < -0.5)
    at_random = low & ~against & (agreement < 0.5)
    suspects = np.zeros(n, dtype=bool)
    for name, which, what, quiet in (
        ("random judges", at_random, "look random", "at random"),
        ("opposed judges", against, "contradict all others", "against all others"),
    ):
        some = np.flatnonzero(which)
        some = some[order_from_largest(-z[some], content_ranks(ids)[some])]
        least = float(corrected.min(initial=1.0))
        suspects |= which
        if len(some):
            names = listing(
                [f"{show_id(ids[k])} ({counted(votes[k], 'vote')})" for k in some.tolist()]
            )
            text = f"The votes of {len(some)} of {counted(n, 'judge')} {what}: {names}."
            found.append(Probe(name, True, text, least))
        elif not tested.any():
            found.append(Probe(name, None, f"Unknown: no judge gave {_VOTES} votes."))
        else:
            of_judges = f"the {n:,} judges"
            if not tested.all():
                of_judges = f"{counted(tested.sum(), 'judge')} with {_VOTES} votes or more"
            found.append(Probe(name, False, f"None of {of_judges} votes {quiet}.", least))
    partial = [k for k in range(len(strange.judge)) if not suspects[strange.judge[k]]]
    if partial:
        shown = [
            f"{show_id(ids[strange.judge[k]])} {'for' if strange.z[k] > 0 else 'against'} "
            f"{data.name(int(strange.item[k]))}"
            for k in partial
        ]
        text = (
            f"The votes of {len({int(strange.judge[k]) for k in partial})} of "
            f"{counted(n, 'judge')} favour or oppose an item unusually often: {listing(shown)}."
        )
        found.append(Probe("partial judges", True, text, strange.p_value))
        suspects[strange.judge[partial]] = True
    elif not strange.n_tested:
        text = f"Unknown: no judge gave {_VOTES} votes on one item."
        found.append(Probe("partial judges", None, text))
    else:
        text = "No judge favours or opposes an item more than the rest."
        found.append(Probe("partial judges", False, text, strange.p_value))
    least = max(_SHARE * votes.sum(), 3 * votes.mean())
    much = np.flatnonzero(exceeds(votes, least, votes))
    if len(much):
        busy = [f"{show_id(ids[k])} ({100 * votes[k] / votes.sum():.0f} %)" for k in much.tolist()]
        text = f"A large share of the votes is by {listing(busy)}."
        found.append(Probe("busy judges", True, text))
    else:
        text = f"No judge gave more than {percent(float(votes.max() / votes.sum()))} of the votes."
        found.append(Probe("busy judges", False, text))
    if suspects.any() and not suspects.all():
        kept = ~suspects[judge]
        seen = np.zeros(len(data.items), dtype=bool)
        seen[contests.first[kept]] = seen[contests.second[kept]] = True
        if seen.all():
            data.alternatives["without these judges"] = data.ranks_of(data.refit(kept=kept))
    return found


def _chances(z: Floats) -> Floats:
    """Return the probability of a smaller statistic, for each of several judges without faults.

    Ordinary differences in taste widen the normal distribution of the statistics. Their spread is
    that around their median, because a faulty judge moves the board, and so the statistics of all.
    """
    spread = np.sqrt(np.median((z - np.median(z)) ** 2) / _MEDIAN) if len(z) else 0.0
    return np.asarray(stdtr(len(z) - 1, z / spread) if spread > 1 else ndtr(z))


def _standard(score: Floats, variance: Floats, third: Floats) -> Floats:
    """Return standard normal statistics of sums, corrected for skewness (Cornish, Fisher)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z = score / np.sqrt(variance)
        skew = np.clip(third / variance**1.5, -1.0, 1.0)
    # the correction is constant beyond the range in which it grows with z
    edge = np.abs(3 / np.where(skew == 0, 1e-9, skew))
    inside = np.clip(z, -edge, edge)
    return np.nan_to_num(z - skew * (inside**2 - 1) / 6)


class _Strange(NamedTuple):
    """Judges with unusual votes for or against an item, most significant first."""

    judge: Ints
    item: Ints
    z: Floats
    p_value: float
    n_tested: int


def _strange_items(data: AuditData, judge: Ints, ids: NDArray[Any]) -> _Strange:
    """Find judges with unusual votes for or against an item."""
    contests, m = data.contests, len(data.items)
    key = np.append(judge * m + contests.first, judge * m + contests.second)
    value = contests.weight * data.residual
    size = np.tile(contests.square * data.variance, 2)
    third = contests.weight * contests.square * data.third
    keys, place = np.unique(key, return_inverse=True)
    score = add_up(place, np.append(value, -value), len(keys))
    information = add_up(place, size, len(keys))
    skew = add_up(place, np.append(third, -third), len(keys))
    tested = ~exceeds(_VOTES, np.bincount(place, np.tile(contests.weight, 2)), _VOTES)
    z = np.where(tested, _standard(score, information, skew), 0.0)
    p = np.ones(len(keys))
    p[tested] = 2 * np.minimum(_chances(z[tested]), _chances(-z[tested]))
    corrected = np.minimum(p * max(int(tested.sum()), 1), 1.0)
    some = np.flatnonzero(corrected < data.level)
    # a judge with opposite votes for two items has the same statistic for both
    of_item, of_judge = content_ranks(data.items)[keys % m], content_ranks(ids)[keys // m]
    some = some[order_from_largest(np.abs(z[some]), of_judge[some], of_item[some])]
    least = float(corrected.min(initial=1.0))
    return _Strange(keys[some] // m, keys[some] % m, z[some], least, int(tested.sum()))


# ---------------------------------------------------------------- many small boards

# A board with few votes does not support the test of a model. These probes need no model: they
# compare a sum over the pairs or triangles of all queries with its value without the fault.


def pooled_probes(board: Any, level: float) -> tuple[list[Probe], float]:
    """Return the pooled probes of all queries of an `Aggregate`, and the number of votes.

    O(n_votes) time, and O(n_items^2) for the triangles of each query, a few queries at a time.
    """
    read = board.judgements
    contests = contests_of(read)
    tied = contests.outcome == 2
    share = float(contests.weight[tied].sum() / contests.weight.sum())
    probes = [
        Probe("few votes", *_few_votes(board, contests)),
        Probe("position", *_position(read, contests, level)),
        Probe("ties", False, f"{percent(share)} of the votes are ties."),
        Probe("cycles", *_cycles(read)),
    ]
    if board.category_spread is None:  # of votes without an answer, the category is not known
        probes.append(Probe("no answer", *share_without_answer(read)))
    return probes, float(contests.weight.sum())


def _few_votes(board: Any, contests: Contests) -> Found:
    queries = board.judgements.queries
    votes = np.bincount(queries.codes[contests.first], contests.weight, queries.n_queries)
    split = np.zeros(queries.n_queries, dtype=bool)
    split[queries.codes[board.parts != 1]] = True
    split &= queries.sizes > 1
    unit = "query" if board.category_spread is None else "category"
    text = (
        f"{counted(queries.n_queries, unit)}, each with {counted(float(np.median(votes)), 'vote')} "
        f"on {counted(float(np.median(queries.sizes)), 'item')} (medians); "
        f"pass group= to examine one {unit}."
    )
    if not split.any():
        return False, text + f" In each {unit}, votes connect all items."
    apart = counted(int(split.sum()), unit)
    text += f" In {apart} ({percent(split.mean())}), votes do not connect all items."
    return True, text


def _position(read: Judgements, contests: Contests, level: float) -> Found:
    """Whether the first item wins too often, among the pairs that were shown in both orders.

    Let b be the effect of the first place and d the difference of the scores. The first item wins
    with odds exp(d + b) in one order and exp(d - b) in the other order. The odds ratio exp(2 b) is
    the same for all pairs. It is estimated as in Mantel and Haenszel (1959), with an error that
    allows for differences between queries.
    """
    if read.details is None:
        text = "Unknown: read the votes with Judgements.from_votes, which records who was first."
        return None, text
    decided = contests.outcome < 2
    first, second, outcome, weight, _, _ = contests.take(decided)
    if not len(first):
        return None, "Unknown: all votes are ties."
    one, other = np.minimum(first, second), np.maximum(first, second)
    pair, keys = number_values(one * read.queries.n_rows + other)
    swapped, won = first != one, (outcome == 0) == (first == one)  # by the item `one`
    cell = np.bincount(4 * pair + 2 * swapped + won, weight, 4 * len(keys)).reshape(
        -1, 2, 2
    )  # pair, order, whether `one` won
    both = (cell.sum(axis=2) > 0).all(axis=1)
    if not both.any():
        ahead = float(weight[outcome == 0].sum() / weight.sum())
        text = (
            f"Unknown: the first item wins {percent(ahead)} of the decided votes, but no "
            "pair was shown in both orders. Show some pairs in both."
        )
        return None, text
    cell, total = cell[both], cell[both].sum(axis=(1, 2))
    up = cell[:, 0, 1] * cell[:, 1, 0] / total  # the first won in both orders
    down = cell[:, 0, 0] * cell[:, 1, 1] / total
    query = read.queries.codes[keys[both] // read.queries.n_rows]
    ups, downs = (np.bincount(query, values) for values in (up, down))
    agree = cell[:, 0, 1] * cell[:, 1, 1] + cell[:, 0, 0] * cell[:, 1, 0]
    agree = agree / cell.sum(axis=2).prod(axis=1)
    text = f"{percent(agree.mean())} of the pairs that were shown in both orders"
    text = f"{text} ({len(agree):,}) have the same winner both times."
    spread = float(np.sqrt(((ups - downs) ** 2).sum()))
    free = np.count_nonzero(ups + downs) - 1
    z = abs(ups.sum() - downs.sum()) / spread if spread > 0 else 0.0
    p = float(2 * stdtr(free, -z)) if free > 0 else 1.0
    if p >= level:
        return False, f"{text} No effect of the order was found (p = {p:.2g}).", p
    with np.errstate(divide="ignore"):
        effect = float(np.log(ups.sum()) - np.log(downs.sum())) / 2
    text += f" The first item wins as if its score were {effect:.2f} larger (p = {p:.2g})."
    return True, text + " Show pairs in random order, or in both orders.", p


def _cycles(read: Judgements) -> Found:
    """The share of triangles of decided pairs that are cyclic: 1/4 for votes by coin flips."""
    preferences = read.preferences()
    cyclic = triangles = 0.0
    for inside, _ in read.queries.pair_blocks(pair_bytes=32):
        weight = preferences.matrices(inside)
        against = weight.swapaxes(1, 2)
        beats = exceeds(weight, against, weight + against).astype(np.float64)
        met = beats + beats.swapaxes(1, 2)
        # a cyclic triangle gives three closed walks of wins, any triangle six of meetings
        cyclic += float(np.einsum("qij,qji->", beats @ beats, beats)) / 3
        triangles += float(np.einsum("qij,qji->", met @ met, met)) / 6
    if not triangles:
        return None, "Unknown: no three items were compared with each other."
    share = cyclic / triangles
    text = f"{percent(share)} of {counted(triangles, 'triangle')} are cyclic;"
    return not exceeds(0.25, share, 1.0), f"{text} votes by coin flips would give 25 %."
