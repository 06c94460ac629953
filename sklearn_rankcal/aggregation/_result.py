"""`Aggregate`: the result of `aggregate`, a leaderboard for each query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.aggregation._anytime import is_first_certain
from sklearn_rankcal.aggregation._base import Structure
from sklearn_rankcal.aggregation._bradley_terry import BradleyTerry
from sklearn_rankcal.aggregation._contest_boards import Board, Coefficient, main_part
from sklearn_rankcal.aggregation._errors import (
    ScoreErrors,
)
from sklearn_rankcal.aggregation._frames import (
    VoteProbabilities,
    predict_vote,
    rescale,
)
from sklearn_rankcal.aggregation._judgements import Judgements
from sklearn_rankcal.aggregation._kemeny import Kemeny, others_are_as_good
from sklearn_rankcal.aggregation._next_comparisons import next_comparisons
from sklearn_rankcal.aggregation._plackett_luce import PlackettLuce
from sklearn_rankcal.aggregation._simultaneous import may_be_first, simultaneous_ranks
from sklearn_rankcal.aggregation._votes_of_items import few_votes, vote_columns
from sklearn_rankcal.decoders import decode_tiers
from sklearn_rankcal.labels._item_ids import show_id
from sklearn_rankcal.plotting import plot_aggregate
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import PAIRS
from sklearn_rankcal.utils._messages import counted
from sklearn_rankcal.utils._rounding import ROUNDING, exceeds, is_largest
from sklearn_rankcal.utils._typing import Bools, Floats, Ints

if TYPE_CHECKING:
    from sklearn_rankcal.aggregation._audit import Audit

#: Rows of a leaderboard that the text of a result shows, for one query and for each of many; and
#: the number of queries.
_NO_INTERVALS = (
    "There are no intervals. Pass intervals='robust', or n_resamples=1000, to aggregate."
)
_ROWS, _ROWS_OF_MANY, _QUERIES = 20, 5, 5
#: The longest name that the text shows in full.
_NAME = 30
#: Intervals of what fewer judges carry, as if all had equal shares, are long.
_FEW_JUDGES = 5


@dataclass(repr=False, eq=False)
class Aggregate:
    """Scores and ranks of the items of each query, aggregated from judgements.

    The text of the object, which ``print`` shows, is a leaderboard.

    Attributes
    ----------
    items : ndarray of shape (n_items,)
        The id of each item.
    groups : ndarray of shape (n_items,)
        The query id of each item; 0 if the judgements have no query ids.
    scores : ndarray of shape (n_items,)
        Larger is better, and scores of different queries cannot be compared. NaN for an item that
        no judgement compares with another.
    ranks : ndarray of shape (n_items,)
        The position of each item in its query, 1 = best. Items with equal scores share the best of
        their positions. A part with more than half of the items is above the others, and items
        without a score share the position after all others. For Kemeny, one ranking that
        contradicts the least weight, in which no others share a position.
    parts : ndarray of shape (n_items,)
        Scores and ranks of two items can be compared only if they are in the same part of their
        query, where a chain of comparisons connects them. Parts are numbered from 1, larger ones
        first; 0 for an item that no judgement compares with another.
    method : Structure
        The structure that computed the scores.
    judgements : Judgements
        The judgements.
    objective, lower_bound, optimal : ndarray of shape (n_queries,) or None
        For Kemeny only: the weight of the comparisons that the ranking of each query contradicts, a
        weight that every ranking contradicts, and whether the ranking is proved to contradict the
        least.
    best_low, best_high : ndarray of shape (n_items,) or None
        For Kemeny only: the best and the worst position of each item in all rankings that
        contradict the least weight, of which `ranks` are one. Where cycles and ties connect more
        than 16 items, they can be bounds of these positions.
    score_low, score_high : ndarray of shape (n_items,) or None
        The interval of each score. An end is infinite where the data do not bound the score. None,
        like all following attributes, if there are no resamples.
    rank_low, rank_high : ndarray of shape (n_items,) or None
        The best and the worst position of each item that the resamples allow.
    n_resamples : int
        The number of resamples.
    resample : {"judgements", "judges"} or None
        What was drawn.
    confidence_level : float or None
        The confidence level of each interval; it is not one for all items at the same time.
    intervals : {"information", "robust"} or None
        The intervals without resamples that were computed.
    coefficients : list of Coefficient or None
        The effects of covariates, of the position and of item features, and the parameter of ties.
    unanimous : ndarray of bool of shape (n_queries,) or None
        Whether nobody contradicts some of the comparisons, of which resamples turn a share round.
    n_disconnected : ndarray of shape (n_queries,) or None
        In how many resamples the comparisons do not connect some items that the data connect.
    n_unbounded : ndarray of shape (n_queries,) or None
        In how many resamples some items never lost to others that they are connected with, so that
        only a penalty bounds their scores.
    notes : tuple of str
        What the text of the object says beside the leaderboard, such as its scale.
    category_spread : float or None
        How much the scores of categories differ, for `aggregate_categories
        <aggregation.aggregate_categories>`.

    Examples
    --------
    >>> from sklearn_rankcal import aggregate
    >>> print(aggregate([("owl", "cat"), ("owl", "cat"), ("cat", "owl"), ("cat", "eel")], "borda"))
    3 items, 4 judgements, Borda()
    rank  item  score
       1  owl   0.2500
       2  cat   0.0000
       3  eel  -0.2500
    """

    items: NDArray[Any]
    groups: NDArray[Any]
    scores: Floats
    ranks: Ints
    parts: Ints
    method: Structure
    judgements: Judgements
    objective: Floats | None = None
    lower_bound: Floats | None = None
    optimal: Bools | None = None
    best_low: Ints | None = None
    best_high: Ints | None = None
    score_low: Floats | None = None
    score_high: Floats | None = None
    rank_low: Ints | None = None
    rank_high: Ints | None = None
    n_resamples: int = 0
    resample: str | None = None
    confidence_level: float | None = None
    intervals: str | None = None
    coefficients: list[Coefficient] | None = None
    unanimous: Bools | None = None
    n_disconnected: Ints | None = None
    n_unbounded: Ints | None = None
    notes: tuple[str, ...] = ()
    category_spread: float | None = None
    _rescaled: bool = False
    _best_exact: Bools | None = None  # of each query whether best_low and best_high occur
    # the probabilities of the pairs i < j of each query, in the order of the entries of `PAIRS`
    _above: Floats | None = None
    # of each query the probability that its best item is above all others; NaN if it has no best
    _first: Floats | None = None
    # of each query the fit, and the errors of its scores
    _boards: list[Board] | None = None
    _errors: list[ScoreErrors] | None = None
    # of each query, how many judges with equal shares would carry each item and each effect as well
    _judges: list[tuple[Floats, Floats]] | None = None

    # ---------------------------------------------------------------- parts

    def rows_of(self, group: Any = None) -> Ints:
        """Return the numbers of the items of a query, best first.

        Parameters
        ----------
        group : object, default=None
            The id of the query. It can be left out if there is only one.

        Returns
        -------
        rows : ndarray of shape (n_items_of_query,)
            Items of the same rank are in their own order.

        Raises
        ------
        ValueError
            If there is no such query, or if there are several and none is given.
        """
        rows = self._rows_of(self._query(group))
        return rows[np.argsort(self.ranks[rows], kind="stable")]

    def _query(self, group: Any) -> int:
        """Return the number of a query."""
        queries = self.judgements.queries
        if group is None and queries.n_queries > 1:
            raise ValueError(
                f"There are {queries.n_queries} {self._words[1]}. Pass group=, the id of one, such "
                f"as {show_id(queries.ids[0])}."
            )
        return 0 if group is None else _find(queries.ids, group, self._words[0])

    @property
    def _words(self) -> tuple[str, str]:
        """What the groups are, as one and as many."""
        if self.category_spread is None:
            return "query", "queries"
        return "category", "categories"

    def _rows_of(self, q: int) -> Ints:
        """Return the rows of a query, in their own order."""
        queries = self.judgements.queries
        places = np.arange(queries.offsets[q], queries.offsets[q + 1])
        return places if queries.order is None else queries.order[places]

    def _judgements_of(self, group: Any) -> tuple[Judgements, Ints]:
        """Return the judgements of a query by themselves, and the rows of its items."""
        q, queries = self._query(group), self.judgements.queries
        rows = self._rows_of(q)
        if queries.n_queries == 1:
            return self.judgements, np.arange(queries.n_rows)
        one = Queries(np.array([0, len(rows)]), None, queries.ids[q : q + 1])
        return self.judgements.take_rows(rows, one), rows

    def _rows_by_part(self, group: Any = None) -> Ints:
        """Return the rows of a query part by part, best first; those without a score are last."""
        rows = self.rows_of(group)
        parts = np.where(self.parts[rows] > 0, self.parts[rows], len(rows) + 1)
        return rows[np.argsort(parts, kind="stable")]

    def probability_matrix(self, group: Any = None) -> Floats:
        """Return the probability of each pair of items of a query that one is above the other.

        Parameters
        ----------
        group : object, default=None
            As in `rows_of`.

        Returns
        -------
        probabilities : ndarray of shape (n_items_of_query, n_items_of_query)
            Entry (i, j) is the share of resamples in which the i-th item of `rows_of` has a larger
            score than the j-th, made less certain if few judgements or judges compare one of them.
            A resample counts one half if the scores are equal, or if its comparisons do not connect
            the two items. Without resamples, the entry comes from the errors of the scores. NaN if
            the data do not connect them, and 1/2 on the diagonal.

        Raises
        ------
        ValueError
            If there are no resamples, or as in `rows_of`.
        """
        q = self._query(group)
        if self._above is None:
            raise ValueError(_NO_INTERVALS)
        n_entries = PAIRS.n_entries(self.judgements.queries.sizes)
        start = int(n_entries[:q].sum())
        above = self._above[start : start + n_entries[q]]
        r = int(self.judgements.queries.sizes[q])
        matrix = np.full((r, r), 0.5)
        upper = PAIRS.indices(r)
        matrix[upper] = above
        matrix.T[upper] = 1.0 - matrix[upper]
        rows = self._rows_of(q)
        parts = self.parts[rows]
        matrix[((parts[:, None] != parts) | (parts == 0)) & ~np.eye(r, dtype=bool)] = np.nan
        order = np.argsort(self.ranks[rows], kind="stable")
        return matrix[np.ix_(order, order)]

    def probability_above(self, one: Any, other: Any, group: Any = None) -> float:
        """Return the share of resamples in which an item has a larger score than another one.

        Parameters
        ----------
        one, other : object
            Ids of two items of the same query.
        group : object, default=None
            As in `rows_of`.

        Returns
        -------
        probability : float
            An entry of `probability_matrix`, with the same errors.
        """
        matrix, items = self.probability_matrix(group), self.items[self.rows_of(group)]
        return float(matrix[_find(items, one, "item"), _find(items, other, "item")])

    def is_first_clear(self, group: Any = None, *, anytime: bool = False) -> bool:
        """Return whether the intervals leave only one item for the first place.

        Parameters
        ----------
        group : object, default=None
            As in `rows_of`.
        anytime : bool, default=False
            Whether the answer is to hold however often one looks. Without it, one who looks after
            each new vote, and stops as soon as an item is first, is wrong far more often than the
            level says. Needs `intervals`, and 30 votes of each item.

        Returns
        -------
        clear : bool
            Whether the best item is above all others at the same time with a probability of at
            least 97.5 %, for a `confidence_level` of 0.95: in this share of the resamples, or by
            the errors of the scores. If the comparisons do not connect all items, the part with
            more than half of them counts, and without such a part the answer is False. With
            `anytime`, the probability that an item is ever said to be first although another one
            is better is at most 5 % in total, if there are many votes.

        Raises
        ------
        ValueError
            If there are no intervals, or for `anytime` none without resamples.

        Notes
        -----
        The bound of `anytime` is the asymptotic confidence sequence of Waudby-Smith, Arbour, Sinha,
        Kennedy and Ramdas (2024, Annals of Statistics 52, Time-uniform central limit theory and
        asymptotic confidence sequences), a normal mixture of Robbins (1970), for the differences
        between the best item and each other one, at level (1 - confidence_level) / (n_items - 1).

        Examples
        --------
        >>> from sklearn_rankcal import aggregate
        >>> votes = [("owl", "cat")] * 9 + [("cat", "owl")] * 3 + [("cat", "eel")] * 9
        >>> votes += [("eel", "cat")] * 3
        >>> result = aggregate(votes, n_resamples=1000)
        >>> result.is_first_clear()
        False
        >>> result.probability_above("owl", "cat") < 0.975
        True
        """
        if self.rank_high is None:
            raise ValueError(_NO_INTERVALS)
        if anytime:
            return is_first_certain(self, group)
        assert self._first is not None
        certain = (1 + (self.confidence_level or 0)) / 2
        first = float(self._first[self._query(group)])
        return not np.isnan(first) and not bool(exceeds(certain, first, 1.0))

    def simultaneous_ranks(self, group: Any = None) -> tuple[Ints, Ints]:
        """Return intervals of the ranks that hold for all items of a query at the same time.

        `rank_low` and `rank_high` hold for each item with the confidence level, and therefore fail
        for some item more often. These are wider. An item is above another one here if that is
        clear at a level divided by the number of all pairs (Bonferroni).

        Parameters
        ----------
        group : object, default=None
            As in `rows_of`.

        Returns
        -------
        low, high : ndarray of shape (n_items_of_query,)
            The best and the worst rank of each item of `rows_of`.

        Raises
        ------
        ValueError
            If the board has no intervals of the kinds "information" and "robust", or as in
            `rows_of`.

        References
        ----------
        Klein, Wright and Wieczorek (2020), A joint confidence region for an overall ranking of
        populations, Journal of the Royal Statistical Society C 69.
        """
        z, level = self._clearness(group)
        return simultaneous_ranks(z, level)

    def may_be_first(self, group: Any = None) -> NDArray[Any]:
        """Return the items that may be the best one at the confidence level, best first.

        Parameters
        ----------
        group : object, default=None
            As in `rows_of`.

        Returns
        -------
        items : ndarray of shape (n_items,)
            The ids of a set that contains the item with the largest true score. An item is left out
            if another one is above it, clearly at a level divided by the number of its pairs. If
            `is_first_clear` is False, there are at least two items.

        Raises
        ------
        ValueError
            As in `simultaneous_ranks`, which has the reference.

        Examples
        --------
        >>> from sklearn_rankcal import aggregate
        >>> votes = [("owl", "cat")] * 8 + [("cat", "owl")] * 6 + [("cat", "eel")] * 30
        >>> votes += [("eel", "cat")] * 9 + [("owl", "eel")] * 30 + [("eel", "owl")] * 8
        >>> aggregate(votes, intervals="robust").may_be_first().tolist()
        ['owl', 'cat']
        """
        z, level = self._clearness(group)
        rows, clear = self.rows_of(group), None
        if self.is_first_clear(group):
            parts = self.parts[rows]
            clear = (parts == 1) & (np.arange(len(rows)) > 0)
        return self.items[rows[may_be_first(z, level, clear)]]

    def _clearness(self, group: Any) -> tuple[Floats, float]:
        """Return how clearly each item is above each other one, best first, and the level."""
        if self._boards is None or self._errors is None or self._rescaled:
            raise ValueError(
                "This needs the errors of the scores: pass intervals='robust' (or "
                "'information') to aggregate, and ask before the scores are rescaled."
            )
        assert self.confidence_level is not None
        q = self._query(group)
        rows = self.rows_of(group)
        place = {row: k for k, row in enumerate(self._boards[q].rows.tolist())}
        order = [place[row] for row in rows.tolist()]
        z = self._errors[q].z()[np.ix_(order, order)]
        z[self.parts[rows][:, None] != self.parts[rows]] = 0.0
        return z, self.confidence_level

    def tiers(self, group: Any = None) -> Ints:
        """Return positions that decide only what the resamples support.

        Two items are decided if that is worth it by the probabilities of `probability_matrix`: an
        undecided pair costs as much as a decided one that is wrong with probability (1 -
        confidence_level) / 2. `decoders.decode_tiers` finds the division of least expected cost.

        Parameters
        ----------
        group : object, default=None
            As in `rows_of`.

        Returns
        -------
        positions : ndarray of shape (n_items_of_query,)
            The position of each item of `rows_of`. Items of a tier share the best of their
            positions.

        Raises
        ------
        ValueError
            If there are no resamples, or as in `rows_of`.

        Notes
        -----
        Exact up to 10 items. Above, a local search takes O(r^2) time for each of its steps.

        Examples
        --------
        >>> from sklearn_rankcal import aggregate
        >>> votes = [("owl", "cat")] * 7 + [("cat", "owl")] * 6 + [("cat", "eel")] * 30
        >>> votes += [("eel", "cat")] * 9 + [("owl", "eel")] * 30 + [("eel", "owl")] * 8
        >>> result = aggregate(votes, n_resamples=1000)
        >>> result.ranks.tolist(), result.tiers().tolist()
        ([1, 2, 3], [1, 1, 3])
        """
        matrix = np.nan_to_num(self.probability_matrix(group), nan=0.5)
        assert self.confidence_level is not None
        return decode_tiers(matrix, self.confidence_level).ranks

    def audit(
        self,
        group: Any = None,
        *,
        level: float = 0.01,
        random_state: int | np.random.RandomState | None = 0,
    ) -> Audit:
        """Ask which conclusions the votes do not support: one table, and one picture.

        The probes: items with few votes, or without a win or a loss; an effect of the position;
        what a tie is taken to be; cycles beyond chance; judges who vote at random, against all
        others, for one item, or a great deal; names that differ by little, and pairs that tie as
        clones do; and the fewest votes without which another item would be first.

        Parameters
        ----------
        group : object, default=None
            The id of a query. If there are several and none is given, the votes of all are counted
            together, as for thousands of small boards: how many votes a query has, an effect of the
            position by pairs that were shown in both orders, ties, cyclic triangles, and votes
            without an answer.
        level : float, default=0.01
            The probability that a test fires by chance, corrected for the number of judges, items
            or pairs that it asks about.
        random_state : int, RandomState instance or None, default=0
            Determines the draws of the test of cycles.

        Returns
        -------
        audit : aggregation.Audit
            Its text is the table, and `aggregation.Audit.plot` draws the picture.

        Raises
        ------
        ValueError
            If the judgements are not votes between two items, or as in `rows_of`.

        Notes
        -----
        The model is that of `aggregation.BradleyTerry`, with the covariates of the votes, whatever
        the method of the board is. With 15 and more judges, the tests allow for the differences
        between them. The time is that of some tens of fits.

        References
        ----------
        Jiang, Lim, Yao and Ye (2011), Statistical ranking and combinatorial Hodge theory,
        Mathematical Programming 127.

        Broderick, Giordano and Meager (2020), An automatic finite-sample robustness metric,
        arXiv:2011.14999.

        Examples
        --------
        >>> from sklearn_rankcal import aggregate
        >>> votes = [("owl", "cat")] * 20 + [("cat", "owl")] * 9 + [("cat", "eel")] * 18
        >>> votes += [("eel", "cat")] * 10 + [("owl", "eel")] * 21 + [("eel", "owl")] * 7
        >>> print(aggregate(votes).audit())  # doctest: +ELLIPSIS
        audit of 3 items, 85 votes: ...
        """
        from sklearn_rankcal.aggregation._audit import audit_board

        return audit_board(self, group, level, random_state)

    def rescale(self, scale: str = "elo", *, anchor: tuple[Any, float] | None = None) -> Aggregate:
        """Return the leaderboard with its scores on another scale.

        Parameters
        ----------
        scale : {"elo", "logit"}, default="elo"
            On Elo's scale a score of 1 is 400 / log(10) = 173.7 points, so that an item with 400
            points more is expected to win 10 of 11 votes. ``"logit"`` keeps the unit.
        anchor : tuple (item, score), default=None
            An item, and the score that it has in each query. None means that the items of each
            query have the mean 1000 on Elo's scale, and 0 otherwise.

        Returns
        -------
        board : Aggregate
            With an anchor, `score_low` and `score_high` are the intervals of the difference to it,
            and its own interval has no width. If intervals are from resamples, they are only
            shifted, and the text says so. Effects are on the new scale as well.

        Raises
        ------
        ValueError
            If the scores are not log-odds, like those of `BradleyTerry
            <aggregation.BradleyTerry>`, if the anchor is not an item of each query, or if the
            comparisons do not connect all items.

        Examples
        --------
        >>> from sklearn_rankcal import aggregate
        >>> votes = [("owl", "cat")] * 10 + [("cat", "owl")]
        >>> print(aggregate(votes).rescale("elo", anchor=("cat", 1000)))
        2 items, 11 judgements, BradleyTerry()
        elo scale, where 'cat' has 1000
        rank  item  score
           1  owl    1400
           2  cat    1000
        """
        return rescale(self, scale, anchor)

    def predict_vote(
        self, first: Any, second: Any, covariates: Any = None, *, group: Any = None
    ) -> VoteProbabilities:
        """Predict a vote between two items, which need not have met.

        Parameters
        ----------
        first, second : object
            Ids of two items.
        covariates : dict of str to float, default=None
            The covariates of the vote by their names, such as ``{"position": 1}``. Those that are
            left out are 0.
        group : object, default=None
            As in `rows_of`.

        Returns
        -------
        probabilities : VoteProbabilities
            The attributes ``first``, ``tie`` and ``second`` add up to 1. Where ties are half a win
            for each, ``first`` is the expected share of the first item, and ``tie`` is None if
            there are ties. ``BradleyTerry(ties="davidson")`` predicts them.

        Raises
        ------
        ValueError
            If the scores are not those of `BradleyTerry <aggregation.BradleyTerry>` or
            `PlackettLuce <aggregation.PlackettLuce>`, if an item or a covariate is not known, or if
            the comparisons do not connect the items.

        Examples
        --------
        >>> from sklearn_rankcal import aggregate
        >>> votes = [("owl", "cat")] * 3 + [("cat", "owl")] + [("cat", "eel"), ("eel", "cat")]
        >>> aggregate(votes).predict_vote("owl", "eel").first.__round__(4)
        0.75
        """
        return predict_vote(self, first, second, covariates, group)

    def next_comparisons(
        self, n: int, *, target: Any = "first", group: Any = None
    ) -> list[tuple[Any, ...]]:
        """Return the pairs of items whose comparison makes most certain what matters.

        Parameters
        ----------
        n : int
            The number of pairs, which can contain the same pair several times.
        target : {"first", "all"} or object, default="first"
            What is to become certain: which item is first, the places of all items, or the score of
            one item, by its id.
        group : object, default=None
            The id of a query. If there are several and none is given, n pairs of each are planned.

        Returns
        -------
        pairs : list of (item, item), or of (query, item, item)
            Ask for them in any order, and show each item first as often as second. Each pair is
            chosen as if those before it had been answered.

        Raises
        ------
        ValueError
            If the method is not `BradleyTerry <aggregation.BradleyTerry>`, or as in `rows_of`.

        Notes
        -----
        For a place, the expected loss is that of deciding the order of two items by their scores:
        the size of their true difference if its sign is another one. A pair is chosen for which a
        vote reduces the sum of these losses most, to first order in the variances. Each takes
        O(n_items^3) time. Intervals whose level is to hold when votes are asked for until the first
        place is clear are those of ``is_first_clear(anytime=True)``.

        Examples
        --------
        >>> from sklearn_rankcal import aggregate
        >>> votes = [("owl", "cat")] * 9 + [("cat", "owl")] * 8 + [("owl", "eel")] * 9
        >>> votes += [("eel", "owl")] + [("cat", "eel")] * 9 + [("eel", "cat")]
        >>> board = aggregate(votes)
        >>> board.next_comparisons(2)
        [('owl', 'cat'), ('owl', 'cat')]
        >>> "eel" in board.next_comparisons(1, target="eel")[0]
        True
        """
        return next_comparisons(self, n, target, group)

    def _find_item(self, item: Any, rows: Ints) -> int:
        """Return the place of an item among rows."""
        return _find(self.items[rows], item, "item")

    def plot(self, group: Any = None, *, ax: Any = None) -> Any:
        """Plot the leaderboard of a query, and return the axes; see `plotting.plot_aggregate`."""
        return plot_aggregate(self, group, ax=ax)

    def to_frame(self) -> Any:
        """Return the leaderboards as a pandas data frame, query by query, best first.

        Returns
        -------
        frame : pandas.DataFrame of shape (n_items, n_columns)
            The first column is ``query``, or ``category`` for `aggregate_categories
            <aggregation.aggregate_categories>`. The others are ``rank``, ``item`` and ``score``,
            for Kemeny also ``best_low`` and ``best_high``, with intervals also ``score_low``,
            ``score_high``, ``rank_low`` and ``rank_high``, and ``part`` if a query has several.
            ``votes`` is the number of judgements that contain the item, and ``few_votes`` whether
            these are fewer than 30. ``win_share`` is the weight of the comparisons that it won,
            divided by that of all of its comparisons; orders have none. If times are known,
            ``first_vote`` and ``last_vote`` are those of the item.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "to_frame needs pandas: pip install pandas. The attributes items, groups, scores "
                "and ranks hold the same data as arrays."
            ) from error
        columns = {self._words[0]: self.groups, "rank": self.ranks, "item": self.items}
        columns["score"] = self.scores
        if (self.parts > 1).any():
            columns["part"] = self.parts
        bounds = ("best_low", "best_high", "score_low", "score_high", "rank_low", "rank_high")
        for name in bounds:
            if getattr(self, name) is not None:
                columns[name] = getattr(self, name)
        columns |= vote_columns(self.judgements)
        order = np.lexsort((self.ranks, self.judgements.queries.codes))
        return pd.DataFrame(columns).iloc[order].reset_index(drop=True)

    def __repr__(self) -> str:
        return _write_leaderboard(self)


def _find(ids: NDArray[Any], wanted: Any, kind: str) -> int:
    """Return the place of an id among ids, or raise ValueError."""
    listed = ids.tolist()
    if isinstance(wanted, np.generic) and ids.dtype == wanted.dtype:
        wanted = wanted.item()
    equal = [k for k, one in enumerate(listed) if one is wanted or bool(np.all(one == wanted))]
    if equal:  # of 1 and True, which are equal, the one of the same type
        return next((k for k in equal if type(listed[k]) is type(wanted)), equal[0])
    shown = ", ".join(map(show_id, listed[:5])) + (", ..." if len(listed) > 5 else "")
    raise ValueError(f"There is no {kind} {show_id(wanted)}. There are: {shown}.")


def _write_leaderboard(result: Aggregate) -> str:
    """Return the text of a result."""
    queries = result.judgements.queries
    several = queries.n_queries > 1
    total = counted(int(result.judgements.per_query.sum()), "judgement")
    head = f"{counted(len(result.items), 'item')}, {total}, {result.method!r}"
    if several:
        head = f"{counted(queries.n_queries, result._words[0])}, {head}"
    lines = [
        head,
        *result.notes,
        *_parts(result),
        *_certificate(result),
        *_resamples(result),
        *_effects(result),
        *_few_votes(result),
        *_few_judges(result),
    ]
    for query in queries.ids[:_QUERIES]:
        if several:
            lines.append(f"{result._words[0]} {show_id(query)}:")
        rows = result._rows_by_part(query)
        shown = rows[: _ROWS_OF_MANY if several else _ROWS]
        lines += _table(result, shown)
        if len(rows) > len(shown):
            lines.append(f"... {counted(len(rows) - len(shown), 'more item')}; to_frame() has all")
    if queries.n_queries > _QUERIES:
        more = counted(queries.n_queries - _QUERIES, f"more {result._words[0]}")
        lines.append(f"... {more}; to_frame() has all")
    return "\n".join(lines)


def _table(result: Aggregate, rows: Ints) -> list[str]:
    names = [_shorten(name) for name in result.items[rows].tolist()]
    write = _decimals(result.scores)
    columns = [
        _column("rank", [str(rank) for rank in result.ranks[rows]], right=True),
        _column("item", names),
        _column("score", write(result.scores[rows]), right=True),
    ]
    if result.rank_low is not None and result.rank_high is not None:
        ranks = zip(result.rank_low[rows], result.rank_high[rows], strict=True)
        columns.insert(1, _column("ranks", [_range(low, high) for low, high in ranks]))
    if result.best_low is not None and result.best_high is not None:
        low, high = result.best_low[rows], result.best_high[rows]
        if (low < high)[result.parts[rows] > 0].any():
            texts = [_range(*ends) for ends in zip(low, high, strict=True)]
            columns.insert(1, _column("in best", texts))
    if result.score_low is not None and result.score_high is not None:
        bounds = zip(write(result.score_low[rows]), write(result.score_high[rows]), strict=True)
        texts = [f"{low} to {high}" for low, high in bounds]
        columns.append(_column("interval", texts, right=True))
    if (result.parts[rows] > 1).any():
        parts = [str(part) if part else "-" for part in result.parts[rows]]
        columns.insert(0, _column("part", parts, right=True))
    return ["  ".join(cells).rstrip() for cells in zip(*columns, strict=True)]


def _parts(result: Aggregate) -> list[str]:
    """Say that some items cannot be compared."""
    n_queries = result.judgements.queries.n_queries
    split = np.unique(result.judgements.queries.codes[result.parts > 1])
    if not len(split):
        return []
    where = f"the items are in {counted(result.parts.max(), 'part')}"
    if n_queries > 1:
        where = (
            f"the items of {len(split):,} of {n_queries:,} {result._words[1]} are in several parts"
        )
    return [f"{where}, the largest first; scores and ranks of different parts cannot be compared"]


def _certificate(result: Aggregate) -> list[str]:
    """Say how little the ranking of Kemeny contradicts."""
    if result.optimal is None or result.objective is None or result.lower_bound is None:
        return []
    if len(result.optimal) > 1:
        return [
            f"{result.optimal.sum():,} of {counted(len(result.optimal), 'ranking')} are proved to "
            "contradict the least weight of comparisons"
        ]
    weight, bound = float(result.objective[0]), float(result.lower_bound[0])
    preferences = result.judgements.preferences()
    total = float(preferences.weight.sum())
    lost = f"ranking contradicts comparisons of weight {weight:g} of {total:g}"
    lines = [f"the {lost}"]
    if not result.optimal[0]:
        exact = isinstance(result.method, Kemeny) and result.method.method == "exact"
        way = "a larger time_limit" if exact else 'aggregate(judgements, Kemeny("exact"))'
        lines += [f"every ranking contradicts at least {bound:g}; {way} can find a proof"]
        return lines
    rows = result.rows_of()
    rows = rows[result.parts[rows] > 0]
    low, high, exact, others = result.best_low, result.best_high, False, None
    if low is not None and high is not None and result._best_exact is not None:
        exact, others = bool(result._best_exact[0]), bool((low[rows] < high[rows]).any())
    if not exact and others is not False:  # the bounds leave it open
        others = others_are_as_good(preferences, rows)
    if others is None:
        return [*lines, "it is proved that none contradicts less; others may contradict as little"]
    if not others:
        return [*lines, "it is proved that all others contradict more"]
    proof = "it is proved that none contradicts less, but others contradict as little"
    lines = [f"a best {lost}", proof]
    if low is not None:
        what = "has" if exact else "bounds"
        lines.append(f"the column 'in best' {what} the positions of each item in all of them")
    return lines


def _effects(result: Aggregate) -> list[str]:
    """Write the coefficients of a single query, or say that there are some."""
    found = result.coefficients or []
    if not found:
        return []
    if result.judgements.queries.n_queries > 1:
        names = ", ".join(dict.fromkeys(one.name for one in found))
        return [f"the effects of each {result._words[0]} ({names}) are in coefficients"]
    lines = []
    for one in found:
        ends = [one.value, *(() if np.isnan(one.low) else (one.low, one.high))]
        small = max(abs(end) for end in ends if np.isfinite(end)) < 1e-3  # in a small unit
        value, *bounds = (f"{end:.3g}" if small else f"{end:.4f}" for end in ends)
        text = f"effect of {_shorten(one.name)}: {value}"
        if bounds:
            text += f" ({bounds[0]} to {bounds[1]})"
        lines.append(text)
    open_ended = [_shorten(one.name) for one in found if np.isinf([one.low, one.high]).sum() == 1]
    if open_ended:
        names = ", ".join(open_ended)
        lines.append(f"the votes do not bound these effects, only a penalty does: {names}")
    return lines


def _few_judges(result: Aggregate) -> list[str]:
    """Name what few judges carry, with their effective number."""
    if result._judges is None or result.judgements.queries.n_queries > 1:
        return []
    items, effects = result._judges[0]
    names = result.items[result._rows_of(0)].tolist()
    numbers = dict(zip(map(_shorten, names), items.tolist(), strict=True))
    for one, number in zip(result.coefficients or [], effects.tolist(), strict=True):
        numbers[f"the effect of {_shorten(one.name)}"] = number
    few = sorted((n, name) for name, n in numbers.items() if 0 < n < _FEW_JUDGES)
    if not few:
        return []
    shown = ", ".join(f"{name} ({n:.1f})" if n > 1.05 else f"{name} (1)" for n, name in few[:3])
    more = f" and {len(few) - 3:,} more" if len(few) > 3 else ""
    return [f"few judges in effect: {shown}{more}"]


def _few_votes(result: Aggregate) -> list[str]:
    """Name items with few votes, where others have many."""
    found = few_votes(result.judgements)
    names = [f"{_shorten(result.items[k])} ({votes:,.0f})" for k, votes in found.items()]
    if not names or result.judgements.queries.n_queries > 1:
        return []
    more = f" and {counted(len(names) - 3, 'more item')}" if len(names) > 3 else ""
    return [f"fewer than 30 votes: {', '.join(names[:3])}{more}"]


def _resamples(result: Aggregate) -> list[str]:
    """Say what the intervals are, whether the first place is clear, and what was difficult."""
    if result.intervals is not None:
        level, judges = f"{100 * (result.confidence_level or 0):g} %", result.judgements.judges
        one = result.judgements.queries.n_queries == 1
        kind = "by the information of the votes"
        if result.intervals == "robust":
            kind = "robust to a wrong model"
            if judges is not None:
                kind += f", and to the differences between {counted(len(judges), 'judge')}"
        return [f"{level} intervals {kind}", *(_first_place(result) if one else [])]
    if result.n_disconnected is None or result.n_unbounded is None:
        return []
    level = f"{100 * (result.confidence_level or 0):g} %"
    drawn = f"the {result.resample}"
    one = result.judgements.queries.n_queries == 1
    if one and result.resample == "judges" and result.judgements.judges is not None:
        drawn = f"the {counted(len(result.judgements.judges), 'judge')}"
    lines = [f"{level} intervals from {counted(int(result.n_resamples), 'resample')} of {drawn}"]
    if result.unanimous is not None and result.unanimous.any():
        where = "" if one else f" in {counted(result.unanimous.sum(), 'query')}"
        lines.append(
            f"some comparisons are unanimous{where}; the intervals allow for how few they are"
        )
    kinds = [(result.n_disconnected, "the comparisons do not connect all items that the data do")]
    if isinstance(result.method, (BradleyTerry, PlackettLuce)):
        text = "some items never lose to the others, and the penalty bounds their scores"
        kinds.append((result.n_unbounded, text))
    for counts, text in kinds:
        if len(counts) == 1 and counts[0]:
            lines.append(f"in {counted(int(counts[0]), 'resample')}, {text}")
        elif counts.any():
            lines.append(
                f"in some resamples of {counted(int(np.count_nonzero(counts)), 'query')}, {text}"
            )
    return lines + (_first_place(result) if one else [])


def _first_place(result: Aggregate) -> list[str]:
    """Say whether the intervals leave only one item for the first place."""
    rows = result.rows_of()
    parts = result.parts[rows]
    if np.count_nonzero(parts) < 2:
        return []
    main = rows[main_part(parts)]
    if not len(main):
        return ["first place is open: no part has more than half of the items"]
    among = "all others" if (parts > 0).all() else "all others that were compared"
    if (parts > 1).any():
        among = f"the other {counted(len(main) - 1, 'item')} of part 1"
    assert result._first is not None
    best, others = main[0], main[1:]
    name, chance = _shorten(result.items[best]), float(result._first[0])
    if result.is_first_clear():
        share = f"{50 * (1 + (result.confidence_level or 0)):g} % or more"
        return [f"first place: {name} is above {among} at once {_chance(result, share)}"]
    shares = result.probability_matrix()[0, 1 : len(main)]
    rival = int(np.flatnonzero(is_largest(-shares))[0])
    if exceeds((1 + (result.confidence_level or 0)) / 2, shares[rival], 1.0):
        among, chance = _shorten(result.items[others[rival]]), float(shares[rival])
    else:
        among += " at once"
    found = np.floor(1000 * (chance + ROUNDING)) / 10  # not rounded up to what would be enough
    text = f"{name} is above {among}"
    return [f"first place is open: {text} {_chance(result, f'only {found:g} %')}"]


def _chance(result: Aggregate, share: str) -> str:
    return (
        f"with a probability of {share}"
        if result.n_resamples == 0
        else f"in {share} of the resamples"
    )


def _shorten(name: Any) -> str:
    text = str(name).replace("\n", " ")
    return text if len(text) <= _NAME else text[: _NAME - 3] + "..."


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}-{high}"


def _decimals(scores: Floats) -> Any:
    """Return a function that writes scores with four digits of the largest, all of them alike."""
    finite = np.abs(scores[np.isfinite(scores)])
    largest = float(finite.max(initial=0.0))
    digits = 4 if largest == 0 else int(np.clip(3 - np.floor(np.log10(largest)), 0, 10))
    # -0.0 is shown as 0
    return lambda values: [f"{round(value, digits) + 0.0:.{digits}f}" for value in values.tolist()]


def _column(title: str, cells: list[str], right: bool = False) -> list[str]:
    """Pad the cells of a column to the same width."""
    width = max(map(len, [title, *cells]))
    return [cell.rjust(width) if right else cell.ljust(width) for cell in [title, *cells]]
