"""`Audit`: a check of the votes behind a leaderboard."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from sklearn_rankcal.aggregation._audit_data import Probe, read_votes
from sklearn_rankcal.aggregation._audit_judges import judges_probes
from sklearn_rankcal.aggregation._audit_pooled import pooled_probes
from sklearn_rankcal.aggregation._audit_probes import (
    cycles_probe,
    few_votes_probe,
    first_place_probe,
    names_probe,
    no_answer_probe,
    position_probe,
    ties_probe,
    unbounded_probe,
)
from sklearn_rankcal.utils._messages import counted
from sklearn_rankcal.utils._parameters import check_number
from sklearn_rankcal.utils._typing import Ints

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
            lines += _wrap(start, probe.finding)
        return "\n".join(lines)


def _wrap(start: str, text: str) -> list[str]:
    import textwrap

    return textwrap.wrap(
        text, _WIDTH, initial_indent=start, subsequent_indent=" " * len(start)
    ) or [start]


#: All probes, in the order of the report. See `AuditData` for what a probe is.
PROBES = (
    few_votes_probe,
    unbounded_probe,
    position_probe,
    ties_probe,
    cycles_probe,
    no_answer_probe,
    judges_probes,
    names_probe,
    first_place_probe,
)


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
    probes = [found for probe in PROBES for found in probe(data)]
    order = np.argsort(data.ranks, kind="stable")
    return Audit(
        probes,
        data.level,
        data.items[order],
        float(data.contests.weight.sum()),
        {name: ranks[order] for name, ranks in data.alternatives.items()},
        data.influence,
        "audit" if board.category_spread is None else "audit without pooling",
    )
