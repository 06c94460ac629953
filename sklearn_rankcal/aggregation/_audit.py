"""`Audit`: which conclusions the votes behind a leaderboard do not support."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtr
from sklearn.utils import check_random_state

from sklearn_rankcal.aggregation._audit_data import AuditData, read_votes
from sklearn_rankcal.aggregation._audit_judges import judges_probe
from sklearn_rankcal.aggregation._audit_probes import (
    cycles_probe,
    few_votes_probe,
    names_probe,
    position_probe,
    ties_probe,
    unbounded_probe,
)
from sklearn_rankcal.aggregation._contests import Contests, contests_of
from sklearn_rankcal.aggregation._influence import fewest_votes
from sklearn_rankcal.aggregation._judgements import Judgements
from sklearn_rankcal.queries._groups import number_values
from sklearn_rankcal.utils._messages import counted, percent
from sklearn_rankcal.utils._parameters import check_number
from sklearn_rankcal.utils._rounding import exceeds
from sklearn_rankcal.utils._typing import Ints

#: The share of all votes below which the first place hangs on few of them.
_FEW = 0.01
_WIDTH = 88


class Probe(NamedTuple):
    """One question of an audit.

    Attributes
    ----------
    name : str
        What was asked.
    fires : bool or None
        Whether something was found; None if the votes do not allow an answer.
    finding : str
        What was found, and what to do.
    p_value : float
        The probability of such a finding by chance, corrected for the number of tests of the probe;
        NaN for a probe that is not a test.
    """

    name: str
    fires: bool | None
    finding: str
    p_value: float = np.nan


@dataclass(repr=False, eq=False)
class Audit:
    """Which conclusions the votes behind a leaderboard do not support: a table of probes.

    Attributes
    ----------
    probes : list of Probe
        The probes. Those that are tests fire by chance with probability `level` each.
    level : float
        The rate of false alarms of each test.
    items : ndarray of shape (n_items,)
        The items, best first.
    alternatives : dict of str to ndarray of shape (n_items,)
        The rank of each item if the votes are read in other ways: with an effect of the position,
        with other models of ties, without the judges that a probe names.
    influence : Influence or None
        The fewest votes whose removal was found to change the first place, of the part that has
        more than half of the items. A tie for the first place is no change.

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

    @property
    def fired(self) -> list[Probe]:
        """The probes that found something."""
        return [probe for probe in self.probes if probe.fires]

    def to_frame(self) -> Any:
        """Return the probes as a pandas data frame, one row each."""
        import pandas as pd

        return pd.DataFrame(self.probes, columns=list(Probe._fields))

    def plot(self, *, ax: Any = None) -> Any:
        """Plot the ranks by each reading of the votes; see `plotting.plot_alternatives`."""
        from sklearn_rankcal.plotting import plot_alternatives

        return plot_alternatives(self, ax=ax)

    def __repr__(self) -> str:
        head = (
            f"audit of {counted(len(self.items), 'item')}, {counted(self.n_votes, 'vote')}: "
            f"{len(self.fired)} of "
            f"{counted(len(self.probes), 'probe')} fire; false alarms of each test "
            f"{100 * self.level:g} %"
        )
        lines = [head]
        width = max(len(probe.name) for probe in self.probes)
        for probe in self.probes:
            mark = {True: "FIRES", False: "ok   ", None: "?    "}[probe.fires]
            start = f"{probe.name:<{width}}  {mark}  "
            lines += _wrap(start, probe.finding)
        return "\n".join(lines)


def _wrap(start: str, text: str) -> list[str]:
    import textwrap

    return textwrap.wrap(
        text, _WIDTH, initial_indent=start, subsequent_indent=" " * len(start)
    ) or [start]


def audit_board(
    board: Any, group: Any, level: Any, random_state: int | np.random.RandomState | None
) -> Audit:
    """Make the audit of a query of an `Aggregate`; `Aggregate.audit` has the parameters."""
    check_number(level, "level", "(0, 1)")
    if group is None and board.judgements.queries.n_queries > 1:
        found, total = pooled_probes(board, float(level))
        return Audit([Probe(*one) for one in found], float(level), board.items, total)
    data = read_votes(board, group)
    random = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    alternatives: dict[str, Ints] = {"as fitted": data.ranks}
    probes: list[Probe] = []
    probes.append(Probe("few votes", *few_votes_probe(data)))
    probes.append(Probe("unbounded", *unbounded_probe(data)))
    for name, probe in (("position", position_probe), ("ties", ties_probe)):
        fires, finding, p_value, other = probe(data, float(level))
        probes.append(Probe(name, fires, finding, p_value))
        alternatives |= other
    probes.append(Probe("cycles", *cycles_probe(data, float(level), random)))
    judges, other = judges_probe(data, float(level))
    probes += [Probe(*one) for one in judges]
    alternatives |= other
    probes.append(Probe("same names", *names_probe(data, float(level))))
    influence = fewest_votes(data)
    probes.append(Probe("first place", *_influence_finding(data, influence)))
    order = np.argsort(data.ranks, kind="stable")
    return Audit(
        probes,
        float(level),
        data.items[order],
        float(data.contests.weight.sum()),
        {name: ranks[order] for name, ranks in alternatives.items()},
        influence,
    )


def _influence_finding(data: AuditData, found: Any) -> tuple[bool | None, str]:
    if found is None:
        if not len(data.main):
            return None, "Unknown: votes connect no more than half of the items with each other."
        if data.first(data.ranks) is None:
            return None, "Unknown: several items share the first place."
        return None, "Unknown: no votes were found without which another item is first alone."
    total = data.contests.weight.sum()
    few = not exceeds(found.n_votes, _FEW * total, found.n_votes)
    exact = ""
    if 1 < found.at_least == found.n_votes:
        exact = ", and no fewer votes do"
    return few, (
        f"Without {counted(found.n_votes, 'vote')} ({percent(found.n_votes / total)}), "
        f"{data.name(found.rival)} would be first instead of {data.name(found.first)}{exact}."
    )


# ---------------------------------------------------------------- many small boards

# A board of a few votes has no model that could be tested. What is asked here needs none: a sum
# over the pairs, or the triangles, of all queries, beside what it would be without the fault.


Found = tuple[bool | None, str, float]


def pooled_probes(board: Any, level: float) -> tuple[list[tuple[str, *Found]], float]:
    """Return the probes of all queries of an `Aggregate` together, and the number of votes.

    O(n_votes) time, and O(n_items^2) for the triangles of each query, a few queries at a time.
    """
    read = board.judgements
    contests = contests_of(read)
    tied = contests.outcome == 2
    share = float(contests.weight[tied].sum() / contests.weight.sum())
    probes = [
        ("few votes", *_few_votes(board, contests)),
        ("position", *_position(read, contests, level)),
        ("ties", False, f"{percent(share)} of the votes are ties.", np.nan),
        ("cycles", *_cycles(read)),
        ("no answer", *_no_answer(read)),
    ]
    return probes, float(contests.weight.sum())


def _few_votes(board: Any, contests: Contests) -> Found:
    queries = board.judgements.queries
    votes = np.bincount(queries.codes[contests.first], contests.weight, queries.n_queries)
    split = np.zeros(queries.n_queries, dtype=bool)
    split[queries.codes[board.parts != 1]] = True
    split &= queries.sizes > 1
    text = (
        f"A query has {counted(float(np.median(votes)), 'vote')} on "
        f"{counted(float(np.median(queries.sizes)), 'item')} (medians)."
    )
    if not split.any():
        return False, text + " Votes connect all items of each.", np.nan
    text += f" In {percent(split.mean())} of the queries, they do not connect all items."
    return True, text, np.nan


def _position(read: Judgements, contests: Contests, level: float) -> Found:
    """Whether the first item wins too often, by the pairs that were shown in both orders.

    If the first item is ahead by an effect b, the odds that it wins are exp(d + b) in one order and
    exp(d - b) in the other, where d is the difference of the scores. The odds ratio exp(2 b) is the
    same for all pairs, whatever their d: the estimate is that of Mantel and Haenszel (1959), and
    its error allows for the differences between queries.
    """
    if read.details is None:
        text = "Unknown: read the votes by Judgements.from_votes, which says who was first."
        return None, text, np.nan
    decided = contests.outcome < 2
    first, second, outcome, weight, _, _ = contests.take(decided)
    if not len(first):
        return None, "Unknown: all votes are ties.", np.nan
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
            f"Unknown: the first item wins {percent(ahead)} of the decided votes, but no pair was "
            "shown in both orders. Show some in both."
        )
        return None, text, np.nan
    cell, total = cell[both], cell[both].sum(axis=(1, 2))
    up = cell[:, 0, 1] * cell[:, 1, 0] / total  # the first won in both orders
    down = cell[:, 0, 0] * cell[:, 1, 1] / total
    query = read.queries.codes[keys[both] // read.queries.n_rows]
    ups, downs = (np.bincount(query, values) for values in (up, down))
    agree = cell[:, 0, 1] * cell[:, 1, 1] + cell[:, 0, 0] * cell[:, 1, 0]
    agree = agree / cell.sum(axis=2).prod(axis=1)
    text = f"{percent(agree.mean())} of the pairs that were shown in both orders"
    text = f"{text} ({len(agree):,}) have the same winner in both."
    spread = float(np.sqrt(((ups - downs) ** 2).sum()))
    free = np.count_nonzero(ups + downs) - 1
    z = abs(ups.sum() - downs.sum()) / spread if spread > 0 else 0.0
    p = float(2 * stdtr(free, -z)) if free > 0 else 1.0
    if p >= level:
        return False, f"{text} Which is first makes no difference (p = {p:.2g}).", p
    with np.errstate(divide="ignore"):
        effect = float(np.log(ups.sum()) - np.log(downs.sum())) / 2
    text += f" The first item wins as if its score were {effect:.2f} larger (p = {p:.2g})."
    return True, text + " Draw the order, or show pairs in both.", p


def _cycles(read: Judgements) -> Found:
    """The share of the triangles of decided pairs that are cyclic: a quarter of those of coins."""
    preferences = read.preferences()
    cyclic = triangles = 0.0
    for inside, _ in read.queries.pair_blocks(pair_bytes=32):
        weight = preferences.matrices(inside)
        against = weight.swapaxes(1, 2)
        beats = exceeds(weight, against, weight + against).astype(np.float64)
        met = beats + beats.swapaxes(1, 2)
        # each cyclic triangle is three closed walks of wins, each triangle six of meetings
        cyclic += float(np.einsum("qij,qji->", beats @ beats, beats)) / 3
        triangles += float(np.einsum("qij,qji->", met @ met, met)) / 6
    if not triangles:
        return None, "Unknown: no three items were compared with each other.", np.nan
    share = cyclic / triangles
    text = f"{percent(share)} of {counted(triangles, 'triangle')} are cyclic, and 25 % would be if"
    return not exceeds(0.25, share, 1.0), f"{text} votes were drawn by coins.", np.nan


def _no_answer(read: Judgements) -> Found:
    if read.refused is None:
        text = "Unknown: pass refused=, the word for a vote without an answer, to from_votes."
        return None, text, np.nan
    answered = read.per_query
    text = f"{percent(read.refused.sum() / (read.refused.sum() + answered.sum()))} of the votes"
    lost = int((answered == 0).sum())
    text += " have no answer."
    if not lost:
        return False, text, np.nan
    return True, f"{text} Nothing is left of {counted(lost, 'query')}.", np.nan
