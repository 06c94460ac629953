"""`Audit`: a check of the votes behind a leaderboard."""

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

# The probe of the first place fires if at most this share of all votes decides it.
_FEW = 0.01
_WIDTH = 88


class Probe(NamedTuple):
    """One check of an audit.

    Attributes
    ----------
    name : str
        Name of the check.
    fires : bool or None
        Whether a fault was found. None if the votes do not allow an answer.
    finding : str
        What was found, and what to do about it.
    p_value : float
        The probability of such a finding by chance, corrected for the number of tests of the probe.
        NaN if the probe is not a test.
    """

    name: str
    fires: bool | None
    finding: str
    p_value: float = np.nan


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
        head = (
            f"audit of {counted(len(self.items), 'item')}, {counted(self.n_votes, 'vote')}: "
            f"{len(self.fired)} of {counted(len(self.probes), 'probe')} fire; false alarm "
            f"rate {100 * self.level:g} % per test"
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


# ---------------------------------------------------------------- many small boards

# A board with few votes does not support the test of a model. These probes need no model: they
# compare a sum over the pairs or triangles of all queries with its value without the fault.


Found = tuple[bool | None, str, float]


def pooled_probes(board: Any, level: float) -> tuple[list[tuple[str, *Found]], float]:
    """Return the pooled probes of all queries of an `Aggregate`, and the number of votes.

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
        return False, text + " In each query, votes connect all items.", np.nan
    text += f" In {percent(split.mean())} of the queries, votes do not connect all items."
    return True, text, np.nan


def _position(read: Judgements, contests: Contests, level: float) -> Found:
    """Whether the first item wins too often, among the pairs that were shown in both orders.

    Let b be the effect of the first place and d the difference of the scores. The first item wins
    with odds exp(d + b) in one order and exp(d - b) in the other order. The odds ratio exp(2 b) is
    the same for all pairs. It is estimated as in Mantel and Haenszel (1959), with an error that
    allows for differences between queries.
    """
    if read.details is None:
        text = "Unknown: read the votes with Judgements.from_votes, which records who was first."
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
            f"Unknown: the first item wins {percent(ahead)} of the decided votes, but no "
            "pair was shown in both orders. Show some pairs in both."
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
        return None, "Unknown: no three items were compared with each other.", np.nan
    share = cyclic / triangles
    text = f"{percent(share)} of {counted(triangles, 'triangle')} are cyclic;"
    return not exceeds(0.25, share, 1.0), f"{text} votes by coin flips would give 25 %.", np.nan


def _no_answer(read: Judgements) -> Found:
    if read.refused is None:
        text = (
            "Unknown: to count votes without an answer, pass their word as refused= to from_votes."
        )
        return None, text, np.nan
    answered = read.per_query
    text = f"{percent(read.refused.sum() / (read.refused.sum() + answered.sum()))} of the votes"
    lost = int((answered == 0).sum())
    text += " have no answer."
    if not lost:
        return False, text, np.nan
    return True, f"{text} {counted(lost, 'query')} lost all votes.", np.nan
