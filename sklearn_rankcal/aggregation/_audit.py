"""`Audit`: which conclusions the votes behind a leaderboard do not support."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from sklearn_rankcal.aggregation._audit_data import AuditData, read_votes
from sklearn_rankcal.aggregation._audit_judges import judges_probe
from sklearn_rankcal.aggregation._audit_pooled import pooled_probes
from sklearn_rankcal.aggregation._audit_probes import (
    cycles_probe,
    few_votes_probe,
    names_probe,
    position_probe,
    ties_probe,
    unbounded_probe,
)
from sklearn_rankcal.aggregation._influence import fewest_votes
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
    check_number(level, "level")
    if level >= 1:
        raise ValueError(f"level must be below 1; got {level!r}.")
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
