"""`Aggregate`: the result of `aggregate`, a leaderboard for each query."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from sklearn_rankcal.aggregation._audit import Audit, audit_board
from sklearn_rankcal.aggregation._base import Structure
from sklearn_rankcal.aggregation._boards import (
    Board,
    Coefficient,
    Intervals,
    clear_ranks,
    is_clear,
    is_first_certain,
    main_part,
    may_be_first,
)
from sklearn_rankcal.aggregation._contests import FEW_VOTES, vote_columns
from sklearn_rankcal.aggregation._judgements import Judgements, find_id
from sklearn_rankcal.aggregation._kemeny import Proof
from sklearn_rankcal.aggregation._leaderboard import (
    LOGITS,
    VoteProbabilities,
    find_in_queries,
    next_comparisons,
    predict_vote,
    read_anchor,
    read_scale,
    relative_intervals,
    write_leaderboard,
)
from sklearn_rankcal.labels._item_ids import show_id
from sklearn_rankcal.plotting import plot_aggregate
from sklearn_rankcal.targets import PAIRS
from sklearn_rankcal.tiers import decode_tiers
from sklearn_rankcal.utils._messages import check_count
from sklearn_rankcal.utils._numbers import Floats, Ints


def _read(part: str, name: str, otherwise: Any = None) -> Any:
    """Return an attribute of a part of the result, or this value without the part."""
    return property(lambda self: getattr(getattr(self, part), name, otherwise))


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
        their positions. A part with more than half of the items is above the rest, and items
        without a score share the last position. For Kemeny, one of the rankings that contradict the
        least weight, without ties.
    parts : ndarray of shape (n_items,)
        The part of its query that each item belongs to, from 1, largest first. A chain of
        comparisons connects the items of a part; scores and ranks can be compared only within a
        part. 0 for an item that no judgement compares with another.
    method : Structure
        The structure that computed the scores.
    judgements : Judgements
        The judgements.
    objective, lower_bound, optimal : ndarray of shape (n_queries,) or None
        For Kemeny only: the weight of the comparisons that the ranking of each query contradicts, a
        lower bound of this weight over all rankings, and whether the ranking is proved optimal.
    best_low, best_high : ndarray of shape (n_items,) or None
        For Kemeny only: the best and the worst position of each item over all optimal rankings.
        Where cycles and ties connect more than 16 items, they can be bounds of these positions.
    score_low, score_high : ndarray of shape (n_items,) or None
        The interval of each score. An end is infinite if the data do not bound the score: without
        resamples, an item that lost at most one vote (a tie is half a loss) has no upper end. With
        resamples, an item that never lost has no ends. None if no intervals were computed, and for
        Copeland and Kemeny.
    rank_low, rank_high : ndarray of shape (n_items,) or None
        The interval of each rank: the best and the worst position of the item. None if no
        intervals were computed.
    n_resamples : int
        The number of resamples.
    resample : {"judgements", "judges"} or None
        What was resampled.
    confidence_level : float or None
        The confidence level of each interval on its own, not of all intervals at the same time.
    intervals : {"information", "robust"} or None
        The kind of intervals, if they were computed without resamples.
    coefficients : list of Coefficient or None
        The effects of the covariates, of the position and of the item features, and the parameter
        of ties. None if the method does not fit them.
    n_disconnected : ndarray of shape (n_queries,) or None
        Number of resamples in which the comparisons do not connect all items that the data connect.
    n_unbounded : ndarray of shape (n_queries,) or None
        Number of resamples in which some items never lost, or never won, against the rest of their
        part. Only a penalty bounds their scores.
    notes : tuple of str
        Remarks that are printed above the leaderboard, such as the scale of the scores.
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
    coefficients: list[Coefficient] | None = None
    notes: tuple[str, ...] = ()
    category_spread: float | None = None
    _intervals: Intervals | None = None
    _proof: Proof | None = None  # of Kemeny
    _boards: list[Board] | None = None  # for each query, the fit of the model
    _rescaled: bool = False

    score_low, score_high = _read("_intervals", "score_low"), _read("_intervals", "score_high")
    rank_low, rank_high = _read("_intervals", "rank_low"), _read("_intervals", "rank_high")
    confidence_level, intervals = _read("_intervals", "level"), _read("_intervals", "kind")
    n_resamples, resample = _read("_intervals", "n_resamples", 0), _read("_intervals", "resample")
    n_disconnected = _read("_intervals", "n_disconnected")
    n_unbounded = _read("_intervals", "n_unbounded")
    objective, lower_bound = _read("_proof", "objective"), _read("_proof", "lower_bound")
    best_low, best_high = _read("_proof", "best_low"), _read("_proof", "best_high")
    optimal = _read("_proof", "optimal")

    # ---------------------------------------------------------------- parts

    def rows_of(self, group: Any = None) -> Ints:
        """Return the row numbers of the items of a query, best first.

        Parameters
        ----------
        group : object, default=None
            The id of the query. It can be left out if there is only one.

        Returns
        -------
        rows : ndarray of shape (n_items_of_query,)
            Indices into `items`, `scores` and `ranks`. Items of equal rank keep their order.

        Raises
        ------
        ValueError
            If there is no such query, or if there are several and none is given.

        Examples
        --------
        >>> from sklearn_rankcal import aggregate
        >>> result = aggregate([("cat", "owl"), ("cat", "eel"), ("owl", "eel")], "borda")
        >>> result.items[result.rows_of()].tolist()
        ['cat', 'owl', 'eel']
        """
        rows = self.judgements._rows_of_query(self._query(group))
        return rows[np.argsort(self.ranks[rows], kind="stable")]

    def _query(self, group: Any) -> int:
        """Return the number of a query."""
        queries = self.judgements.queries
        if group is None and queries.n_queries > 1:
            raise ValueError(
                f"There are {queries.n_queries} {self._words[1]}. Pass the id of one as "
                f"group=, such as {show_id(queries.ids[0])}."
            )
        return 0 if group is None else find_id(queries.ids, group, self._words[0])

    @property
    def _words(self) -> tuple[str, str]:
        """Return the word for a group, singular and plural."""
        if self.category_spread is None:
            return "query", "queries"
        return "category", "categories"

    def _rows_by_part(self, group: Any = None) -> Ints:
        """Return the rows of a query part by part, best first; rows without a score come last."""
        rows = self.rows_of(group)
        parts = np.where(self.parts[rows] > 0, self.parts[rows], len(rows) + 1)
        return rows[np.argsort(parts, kind="stable")]

    def _known(self) -> Intervals:
        """Return the intervals, or raise ValueError."""
        if self._intervals is None:
            fits = self.judgements.orders is None or self.method.takes == "orders"
            way = "intervals='robust', or " if self.method._has_errors and fits else ""
            raise ValueError(f"There are no intervals. Pass {way}n_resamples=1000 to aggregate.")
        return self._intervals

    def probability_matrix(self, group: Any = None) -> Floats:
        """Return the probability that one item is above another, for each pair of a query.

        Parameters
        ----------
        group : object, default=None
            As in `rows_of`.

        Returns
        -------
        probabilities : ndarray of shape (n_items_of_query, n_items_of_query)
            Entry (i, j) is the probability that the i-th item of `rows_of` is above the j-th, with
            one more vote (or judge) against the item that is ahead. It is NaN if the data do not
            connect the two items, and 1/2 on the diagonal.

        Raises
        ------
        ValueError
            If there are no intervals, or as in `rows_of`.

        Examples
        --------
        >>> from sklearn_rankcal import aggregate
        >>> votes = [("owl", "cat")] * 40 + [("cat", "owl")] * 40
        >>> aggregate(votes, intervals="robust").probability_matrix().round(3).tolist()
        [[0.5, 0.5], [0.5, 0.5]]
        """
        z, parts = self._quantiles(group)
        matrix = ndtr(z)
        matrix[((parts[:, None] != parts) | (parts == 0)) & ~np.eye(len(z), dtype=bool)] = np.nan
        return matrix

    def _quantiles(self, group: Any) -> tuple[Floats, Ints]:
        """Return the normal quantiles of the probabilities of all pairs, best first, and parts."""
        q, known = self._query(group), self._known()
        sizes = self.judgements.queries.sizes
        n_entries, r = PAIRS.n_entries(sizes), int(sizes[q])
        start, upper = int(n_entries[:q].sum()), PAIRS.indices(r)
        z = np.zeros((r, r))
        z[upper] = known.z[start : start + n_entries[q]]
        z -= z.T
        rows = self.judgements._rows_of_query(q)
        order = np.argsort(self.ranks[rows], kind="stable")
        parts = self.parts[rows[order]]
        z = z[np.ix_(order, order)]
        z[(parts[:, None] != parts) | (parts == 0)] = 0.0
        return z, parts

    def probability_above(self, one: Any, other: Any, group: Any = None) -> float:
        """Return the probability that one item has a larger score than another.

        Parameters
        ----------
        one, other : object
            Ids of two items of the same query.
        group : object, default=None
            As in `rows_of`.

        Returns
        -------
        probability : float
            The entry of `probability_matrix` for the two items. Raises the same errors.

        Examples
        --------
        >>> from sklearn_rankcal import aggregate
        >>> votes = [("owl", "cat")] * 50 + [("cat", "owl")] * 30
        >>> round(aggregate(votes, intervals="robust").probability_above("owl", "cat"), 3)
        0.983
        """
        matrix, items = self.probability_matrix(group), self.items[self.rows_of(group)]
        return float(matrix[find_id(items, one, "item"), find_id(items, other, "item")])

    def is_first_clear(self, group: Any = None, *, anytime: bool = False) -> bool:
        """Return whether one item is clearly first.

        Parameters
        ----------
        group : object, default=None
            As in `rows_of`.
        anytime : bool, default=False
            Whether the answer must hold however often it is asked for. Use it if you check after
            each new vote and stop once an item is clearly first: without it, such a rule is wrong
            far more often than the level says. It needs `intervals` and 30 votes for each item.

        Returns
        -------
        clear : bool
            Whether the best item is above each other item with a probability of at least (1 +
            confidence_level) / 2, or 97.5 % by default, as in `probability_matrix`. If the
            comparisons do not connect all items, the part with more than half of them is used;
            without such a part the answer is False. With `anytime` and many votes, the probability
            of ever naming an item that is not the best is at most 1 - confidence_level
            (:ref:`how-sure`).

        Raises
        ------
        ValueError
            If there are no intervals, or if `anytime` is True and the intervals are from resamples.

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
        known = self._known()
        if anytime and known.kind is None:
            raise ValueError(
                "anytime=True needs standard errors, and resamples have none. Pass "
                "intervals='robust' or 'information' to aggregate."
            )
        z, parts = self._quantiles(group)
        main = main_part(parts)
        if not len(main):
            return False
        over = z[main[0], main[1:]]
        clear = bool(is_clear(over, (1 - known.level) / 2).all())
        if not (anytime and clear):
            return clear
        rows = self.rows_of(group)[main]
        enough = (vote_columns(self.judgements)["votes"][rows] >= FEW_VOTES).all()
        assert self._boards is not None
        board, scores = self._boards[self._query(group)], np.zeros(len(self.scores))
        scores[board.rows] = board.scores  # log-odds, also after `rescale`
        ahead = scores[rows[0]] - scores[rows[1:]]
        return bool(enough) and is_first_certain(over, ahead, known.level)

    def simultaneous_ranks(self, group: Any = None) -> tuple[Ints, Ints]:
        """Return rank intervals that hold for all items of a query at the same time.

        Each interval of `rank_low` and `rank_high` has the confidence level on its own, and some
        interval fails more often. The intervals of this method are wider: an item is above another
        only if this is clear with the error level divided by the number of pairs (Bonferroni).

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
            If there are no intervals, or as in `rows_of`.

        Examples
        --------
        >>> from sklearn_rankcal import aggregate
        >>> votes = [("owl", "cat")] * 50 + [("cat", "owl")] * 40 + [("cat", "eel")] * 70
        >>> votes += [("eel", "cat")] * 20 + [("owl", "eel")] * 70 + [("eel", "owl")] * 20
        >>> low, high = aggregate(votes, intervals="robust").simultaneous_ranks()
        >>> low.tolist(), high.tolist()
        ([1, 1, 3], [2, 2, 3])
        """
        z, level = self._quantiles(group)[0], self._known().level
        return clear_ranks(z, (1 - level) / max(len(z) * (len(z) - 1), 1))

    def may_be_first(self, group: Any = None) -> NDArray[Any]:
        """Return the items that may be the best at the confidence level, best first.

        Parameters
        ----------
        group : object, default=None
            As in `rows_of`.

        Returns
        -------
        items : ndarray of shape (n_items,)
            The ids of the items that may have the largest true score. An item is left out if
            another one is clearly above it, with the error level divided by the number of its pairs
            (Bonferroni). If `is_first_clear` is False, there are at least two items.

        Raises
        ------
        ValueError
            As in `simultaneous_ranks`.

        Examples
        --------
        >>> from sklearn_rankcal import aggregate
        >>> votes = [("owl", "cat")] * 8 + [("cat", "owl")] * 6 + [("cat", "eel")] * 30
        >>> votes += [("eel", "cat")] * 9 + [("owl", "eel")] * 30 + [("eel", "owl")] * 8
        >>> aggregate(votes, intervals="robust").may_be_first().tolist()
        ['owl', 'cat']
        """
        z, parts = self._quantiles(group)
        clear = (parts == 1) & (np.arange(len(z)) > 0) if self.is_first_clear(group) else None
        return self.items[self.rows_of(group)[may_be_first(z, self._known().level, clear)]]

    def tiers(self, group: Any = None) -> Ints:
        """Return positions with ties wherever the order of two items is uncertain.

        The tiers minimise an expected cost, by the probabilities of `probability_matrix`: a tied
        pair costs as much as an ordered pair that is wrong with probability (1 - confidence_level)
        / 2. See `decoders.decode_tiers`.

        Parameters
        ----------
        group : object, default=None
            As in `rows_of`.

        Returns
        -------
        positions : ndarray of shape (n_items_of_query,)
            The position of each item of `rows_of`. The items of a tier share its best position.

        Raises
        ------
        ValueError
            If there are no intervals, or as in `rows_of`.

        Notes
        -----
        Exact for up to 10 items. For more, a local search with O(n_items^2) time per step.

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
        return decode_tiers(matrix, self._known().level).ranks

    def audit(
        self,
        group: Any = None,
        *,
        level: float = 0.01,
        random_state: int | np.random.RandomState | None = 0,
    ) -> Audit:
        """Check the votes for faults that make the leaderboard unreliable.

        The probes look for

        - items with few votes, without a win or without a loss;
        - an advantage of the item that is shown first;
        - ranks that depend on how ties are modelled;
        - more cycles than chance explains;
        - judges who vote at random, against everyone else, for or against one item, or very often;
        - names that differ by little, and pairs of items that nearly always tie;
        - a first place that few votes decide.

        Parameters
        ----------
        group : object, default=None
            The id of a query. If there are several queries and none is given, the audit pools the
            votes of all queries, which suits thousands of small leaderboards. It then reports the
            votes per query, an effect of the position, ties, cyclic triangles and votes without an
            answer.
        level : float, default=0.01
            The probability that a test fires by chance, corrected for the number of judges, items
            or pairs that are tested.
        random_state : int, RandomState instance or None, default=0
            Determines the random signs of the test of cycles, and the pairs drawn from orders.

        Returns
        -------
        audit : aggregation.Audit
            ``print`` shows a table of findings. `aggregation.Audit.plot` shows how the ranks depend
            on the way the votes are read.

        Raises
        ------
        ValueError
            If the judgements are votes of several comparisons, or as in `rows_of`.

        Notes
        -----
        Of orders, selections and best-worst choices, the audit tests cycles, judges and names. The
        items of each are divided into pairs at random, and each pair is a vote: by the model of
        Plackett and Luce, these votes are independent.

        The probes fit `aggregation.BradleyTerry` with the covariates of the votes, whatever the
        method of the leaderboard is. The test of the position allows for differences between
        judges, and the test of cycles does from 15 judges on. An audit takes as long as some tens
        of fits.

        Examples
        --------
        >>> from sklearn_rankcal import aggregate
        >>> votes = [("owl", "cat")] * 20 + [("cat", "owl")] * 9 + [("cat", "eel")] * 18
        >>> votes += [("eel", "cat")] * 10 + [("owl", "eel")] * 21 + [("eel", "owl")] * 7
        >>> print(aggregate(votes).audit())  # doctest: +ELLIPSIS
        audit of 3 items, 85 votes: ...
        """
        return audit_board(self, group, level, random_state)

    def rescale(self, scale: str = "elo", *, anchor: tuple[Any, float] | None = None) -> Aggregate:
        """Return the leaderboard with its scores on another scale.

        Parameters
        ----------
        scale : {"elo", "logit"}, default="elo"
            On Elo's scale a score of 1 is 400 / log(10) = 173.7 points: an item with 400 points
            more is expected to win 10 of 11 votes. ``"logit"`` keeps the unit.
        anchor : tuple (item, score), default=None
            An item, and the score that it gets in each query. None means that the items of each
            query have the mean 1000 on Elo's scale, and 0 for ``"logit"``.

        Returns
        -------
        board : Aggregate
            With an anchor, `score_low` and `score_high` become the intervals of the difference to
            the anchor; the interval of the anchor has no width. Intervals from resamples are only
            shifted, and the text says so. Effects are rescaled as well.

        Raises
        ------
        ValueError
            If the scores are not log-odds (`BradleyTerry <aggregation.BradleyTerry>` has log-odds),
            if the anchor is missing in a query, or if the comparisons do not connect all items.

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
        factor, at = read_scale(self.method, scale)
        if self._rescaled:
            raise ValueError(
                "These scores are rescaled already. Call rescale on the result of aggregate."
            )
        if (self.parts > 1).any():
            raise ValueError(
                "The comparisons do not connect all items, and no common scale exists. "
                "Aggregate the judgements of each part separately."
            )
        text = f"{scale} scale, where the items have the mean {at:g}"
        known, zero = self._intervals, np.zeros(len(self.items))
        low, high = self.score_low, self.score_high
        if anchor is not None:
            item, at = read_anchor(anchor)
            text = f"{scale} scale, where {show_id(item)} has {at:g}"
            held = find_in_queries(self.judgements, item)
            if np.isnan(self.scores[held]).any():
                raise ValueError(f"The anchor {show_id(item)} has no score: nothing compares it.")
            zero = self.judgements.queries.broadcast(self.scores[held])
            if known is not None and (known.kind is None or self._boards is None):
                text += "; the intervals are for the scores, not for differences to the anchor"
            elif known is not None:
                text += "; the intervals are for differences to the anchor"
                low, high = relative_intervals(self, held)
        if known is not None and low is not None:
            low, high = at + factor * (low - zero), at + factor * (high - zero)
            known = replace(known, score_low=low, score_high=high)
        listed = self.coefficients
        if listed is not None:
            listed = [
                one._replace(**{k: factor * getattr(one, k) for k in one._fields[1:-1]})
                for one in listed
            ]
        return replace(
            self,
            scores=at + factor * (self.scores - zero),
            coefficients=listed,
            notes=(*self.notes, text),
            _intervals=known,
            _rescaled=True,
        )

    def predict_vote(
        self, first: Any, second: Any, covariates: Any = None, *, group: Any = None
    ) -> VoteProbabilities:
        """Predict a vote between two items, even if they were never compared.

        Parameters
        ----------
        first, second : object
            Ids of two items.
        covariates : dict of str to float, default=None
            The covariates of the vote by name, such as ``{"position": 1}``. Missing covariates are
            0.
        group : object, default=None
            As in `rows_of`.

        Returns
        -------
        probabilities : VoteProbabilities
            The attributes ``first``, ``tie`` and ``second`` add up to 1. If the model counts a tie
            as half a win for each item, ``first`` is the expected share of the first item, and
            ``tie`` is None if the data have ties. ``BradleyTerry(ties="davidson")`` predicts ties.

        Raises
        ------
        ValueError
            If the method is not `BradleyTerry <aggregation.BradleyTerry>` or `PlackettLuce
            <aggregation.PlackettLuce>`, if an item or a covariate is unknown, or if the comparisons
            do not connect the items.

        Examples
        --------
        >>> from sklearn_rankcal import aggregate
        >>> votes = [("owl", "cat")] * 3 + [("cat", "owl")] + [("cat", "eel"), ("eel", "cat")]
        >>> aggregate(votes).predict_vote("owl", "eel").first.__round__(4)
        0.75
        """
        if type(self.method).__name__ not in LOGITS[:2] or self._rescaled:
            raise ValueError(
                "predict_vote needs the scores of BradleyTerry or PlackettLuce, before "
                f"rescale. These are scores of {self.method!r}."
            )
        q = self._query(group)
        rows = self.judgements._rows_of_query(q)
        one, other = (rows[find_id(self.items[rows], item, "item")] for item in (first, second))
        if self.parts[one] != self.parts[other] or self.parts[one] == 0:
            raise ValueError(
                f"The comparisons do not connect {show_id(first)} and {show_id(second)}."
            )
        lead = float(self.scores[one] - self.scores[other])
        board = None if self._boards is None else self._boards[q]
        return predict_vote(lead, board, self.judgements, q, dict(covariates or {}))

    def next_comparisons(
        self, n: int, *, target: Any = "first", group: Any = None
    ) -> list[tuple[Any, ...]]:
        """Choose the pairs of items to compare next, to reduce the uncertainty most.

        Parameters
        ----------
        n : int
            The number of pairs. The same pair can occur several times.
        target : {"first", "all"} or object, default="first"
            What to make certain: which item is first, the ranks of all items, or the score of the
            item with this id.
        group : object, default=None
            The id of a query. If there are several queries and none is given, n pairs of each are
            returned.

        Returns
        -------
        pairs : list of (item, item), or of (query, item, item)
            Each pair is chosen as if the pairs before it had been answered. Collect them in any
            order, and show each item first as often as second.

        Raises
        ------
        ValueError
            If the method is not `BradleyTerry <aggregation.BradleyTerry>` or, for orders,
            `PlackettLuce <aggregation.PlackettLuce>`, or as in `rows_of`.

        Notes
        -----
        :ref:`how-sure` has the criterion. Each pair takes O(n_items^3)
        time. To collect votes until the first place is clear, use ``is_first_clear(anytime=True)``,
        which allows for repeated checks.

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
        check_count(n, "n")
        several = group is None and self.judgements.queries.n_queries > 1
        q = None if several else self._query(group)
        return next_comparisons(
            self.judgements, self.method, self.scores, self._boards, int(n), target, q
        )

    def plot(self, group: Any = None, *, ax: Any = None) -> Any:
        """Plot the leaderboard of a query. See `plotting.plot_aggregate`.

        Parameters
        ----------
        group : object, default=None
            As in `rows_of`.
        ax : matplotlib.axes.Axes, default=None
            The axes to draw on. None means new axes.

        Returns
        -------
        ax : matplotlib.axes.Axes
        """
        return plot_aggregate(self, group, ax=ax)

    def to_frame(self) -> Any:
        """Convert the leaderboards to a pandas data frame, query by query, best first.

        Returns
        -------
        frame : pandas.DataFrame of shape (n_items, n_columns)
            The columns are

            - ``query`` (``category`` for `aggregate_categories
              <aggregation.aggregate_categories>`), ``rank``, ``item`` and ``score``;
            - ``part``, if a query has several parts;
            - ``best_low`` and ``best_high``, for Kemeny;
            - ``score_low``, ``score_high``, ``rank_low`` and ``rank_high``, with intervals;
            - ``votes``, the number of judgements that contain the item, and ``few_votes``, whether
              it is below 30;
            - ``win_share``, the share of the weight of its comparisons that the item won, but not
              for orders;
            - ``first_vote`` and ``last_vote``, the times of the item's votes, if times are known.
        """
        import pandas as pd

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
        return write_leaderboard(self)
