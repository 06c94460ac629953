"""Shared by the probes of an audit: the votes of one query, and the model fitted to them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from sklearn_rankcal.aggregation._base import tie_scores
from sklearn_rankcal.aggregation._boards import (
    Board,
    fit_board,
    fit_boards,
    intervals_of,
    main_part,
)
from sklearn_rankcal.aggregation._contests import Contests, count_votes
from sklearn_rankcal.aggregation._graphs import number_parts
from sklearn_rankcal.aggregation._likelihoods import result_probabilities
from sklearn_rankcal.labels._item_ids import show_id
from sklearn_rankcal.labels._rankings import Comparisons
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._numbers import Floats, Ints

# From this number of judges on, errors allow for differences between them.
_JUDGES = 15
#: If chains of wins connect this share of the items, the rest are compared with these. The share is
#: smaller than for intervals: an audit names the few items that are unlike the rest.
MOST = 0.5


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


@dataclass
class AuditData:
    """The votes of one query, with their model; items are numbered in the order of rows.

    Each probe is a function of this object that returns what it `Found`. It can add the ranks by
    another reading of the votes to `alternatives`, and the probe of the first place sets
    `influence`. A probe with a p-value is a test at `level`.

    `lead` is the score of the first item of each vote minus the score of the second item.
    `residual` is the result of the vote (1, 0 or 1/2) minus its expectation, with variance
    `variance` and third central moment `third`. `parts` numbers the connected parts from 1, larger
    ones first.
    """

    items: NDArray[Any]
    board: Board
    structure: Any
    judgements: Any
    parts: Ints
    ranks: Ints
    rank_low: Ints
    rank_high: Ints
    half_width: Floats
    lead: Floats
    residual: Floats
    variance: Floats
    third: Floats
    judge: Ints | None
    judges: NDArray[Any] | None
    level: float
    random: np.random.Generator
    alternatives: dict[str, Ints] = field(default_factory=dict)
    influence: Any = None

    @property
    def contests(self) -> Contests:
        return self.board.contests

    @property
    def clusters(self) -> Ints | None:
        """The judge of each vote, if there are enough judges."""
        enough = self.judge is not None and len(np.unique(self.judge)) >= _JUDGES
        return self.judge if enough else None

    def name(self, item: int) -> str:
        return show_id(self.items[item])

    def refit(self, **changes: Any) -> Board:
        """Refit the model with another structure, other votes, or another column.

        `changes` can be `structure`, `kept` (which votes) and `position` (a column for it).
        """
        structure = changes.get("structure", self.structure)
        contests, X, names = self.contests, self.board.X, self.board.names
        kept = changes.get("kept")
        if "position" in changes:
            X = np.column_stack([changes["position"], X])
            names = ("position", *names)
        if kept is not None:
            contests, X = contests.take(kept), X[kept]
        return fit_board(contests, X, names, self.board.rows, self.judgements, structure)

    def ranks_of(self, board: Board) -> Ints:
        """Return the position of each item by the scores of another board."""
        return ranks_of(board.scores, self.structure, self.parts)

    @property
    def main(self) -> Ints:
        """The items of the part with more than half of the compared items, or none.

        The probes of the first place refer to them.
        """
        return main_part(self.parts)

    def first(self, ranks: Ints) -> int | None:
        """Return the first item of the main part, or None if several tie."""
        best = self.main[ranks[self.main] == 1]
        return int(best[0]) if len(best) == 1 else None


#: What one probe finds: whether it fires, the text, and the p-value of a test.
Found = tuple[bool | None, str] | tuple[bool | None, str, float]


def read_votes(result: Any, group: Any, level: float, random: np.random.Generator) -> AuditData:
    """Read the votes of a query of an `Aggregate`, and fit the model if necessary."""
    from sklearn_rankcal.aggregation._maximum_likelihood import BradleyTerry

    read, rows = result.judgements._of_query(result._query(group))
    if read.orders is not None:
        read = draw_votes(read, random)
    structure = result.method if isinstance(result.method, BradleyTerry) else BradleyTerry()
    boards = fit_boards(read, structure)
    board = boards[0]
    if not len(board.contests.first):
        raise ValueError("There is no vote between two items to audit.")
    parts = result.parts[rows]
    found = intervals_of(read, boards, structure, "robust", 0.95, parts, main=MOST)[0]
    assert found.score_low is not None and found.score_high is not None
    contests = board.contests
    votes = count_votes(contests, board.X, merge=False)
    fit = board.fit._replace(votes=votes)
    board, lead = board._replace(fit=fit), fit.leads()
    result_value = np.array([1.0, 0.0, 0.5])[contests.outcome]
    tie = fit
    tied = contests.outcome == 2
    if fit.ties == "half" and tied.any():
        other = BradleyTerry(penalty=structure.penalty, ties="davidson")
        if not tied.all() and structure.own_effects:
            tie = fit_board(contests, board.X, board.names, board.rows, read, other).fit
    leads = votes.leads(tie.weights, tie.n_items)
    chances = result_probabilities(leads, tie.model, tie.tie)
    mean = chances[0] + chances[2] / 2
    expected = expit(lead) if fit.ties == "half" else mean
    variance = chances[0] + chances[2] / 4 - mean**2
    third = (chances.T @ np.array([1.0, 0.0, 0.125])) - 3 * mean * variance - mean**3
    judge = None if read.judge is None else read.judge[contests.judgement]
    compared = np.bincount(fit.part)[fit.part] > 1
    parts = number_parts(fit.part, compared, Queries.single(fit.n_items))
    ranks = ranks_of(board.scores, structure, parts)
    return AuditData(
        items=read.items[board.rows],
        board=board,
        structure=structure,
        judgements=read,
        parts=parts,
        ranks=ranks,
        rank_low=found.rank_low[board.rows],
        rank_high=found.rank_high[board.rows],
        half_width=(found.score_high - found.score_low)[board.rows] / 2,
        lead=lead,
        residual=result_value - expected,
        variance=np.maximum(variance, 1e-12),
        third=third,
        judge=judge,
        judges=read.judges,
        level=level,
        random=random,
        alternatives={"as fitted": ranks},
    )


def draw_votes(read: Any, random: np.random.Generator) -> Any:
    """Divide the items of each order into pairs at random; return a vote for each pair.

    By the model of Plackett and Luce, votes of disjoint pairs are independent, with the
    probabilities of Bradley and Terry. Tied items give no vote.
    """
    item, tier, offsets = read.orders
    sizes = np.diff(offsets)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    drawn = np.lexsort((random.random(len(item)), owner))
    place = np.arange(len(item)) - offsets[owner]
    start = np.flatnonzero((place % 2 == 0) & (place + 1 < sizes[owner]))
    one, other = drawn[start], drawn[start + 1]
    differ = tier[one] != tier[other]
    one, other = np.sort(np.column_stack([one, other])[differ], axis=1).T  # the better item first
    taken = owner[one]
    votes = Comparisons(item[one], item[other], None, None)
    rows = np.arange(len(read.items))
    return read._part(read.queries, rows, read.query[taken], votes, None, taken, read.refused)


def ranks_of(scores: Floats, structure: Any, parts: Ints) -> Ints:
    """Return the position of each item, 1 = best; equal scores share their best position.

    Items are ranked within their parts, and larger parts are above smaller ones.
    """
    tied = tie_scores(scores, structure, Queries.from_groups(parts))
    part = np.where(parts > 0, parts, len(parts) + 1)
    above = (part[None, :] == part[:, None]) & (tied[None, :] > tied[:, None])
    return 1 + (above | (part[None, :] < part[:, None])).sum(axis=1)
