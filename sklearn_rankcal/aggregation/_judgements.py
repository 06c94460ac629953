"""`Judgements`: partial judgements about the items of each query, the input of `aggregate`."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.aggregation import _orders as formats
from sklearn_rankcal.aggregation._votes import (
    VoteDetails,
    from_pairs,
    from_votes,
    in_period,
    read_item_features,
    weights_by_age,
)
from sklearn_rankcal.labels._item_ids import rows_of_items, show_id
from sklearn_rankcal.labels._labels import Preferences, preference_labels
from sklearn_rankcal.labels._rankings import Comparisons, Orders, compare_tiers
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.queries._queries import ranges
from sklearn_rankcal.utils._messages import checks_keywords, warn
from sklearn_rankcal.utils._numbers import Floats, Ints


class Judgements:
    """Partial judgements about the items of queries.

    A judgement comes from one person, session or match. It compares two items, orders several
    items, or selects some of the items that were shown, all of one query. `aggregation.aggregate`
    turns judgements into one ranking of the items of each query.

    Use one of the constructors `from_votes`, `from_pairs`, `from_orders`, `from_ranks`,
    `from_selections`, `from_best_worst`, `from_preflib` and `from_labels`, which check their
    arguments.

    Attributes
    ----------
    queries : Queries
        The partition of the n_items rows into queries. A query is a set of items that are compared
        with each other, such as the documents of a search or the candidates of an election. Its
        rows are contiguous.
    items : ndarray of shape (n_items,)
        The id of each item.
    n_judgements : int
        Number of different judgements.
    query, count, judge : ndarray of shape (n_judgements,)
        The query number of each judgement; how often it was made (None: once each); the number of
        its judge (None: judges are unknown).
    judges : ndarray of shape (n_judges,) or None
        The id of each judge.
    orders : Orders or None
        The orders, if the judgements are orders or selections, else None.
    details : VoteDetails or None
        Who was first, covariates and times of votes, if `from_votes` read them.
    item_features : ndarray of shape (n_items, n_features) or None
        Features of the items. `feature_names` has their names.
    refused : ndarray of shape (n_queries,) or None
        Number of votes of each query without an answer, if `from_votes` got `refused`.

    Examples
    --------
    Three votes between two items. The last vote is a tie:

    >>> from sklearn_rankcal import Judgements
    >>> votes = [("owl", "cat"), ("owl", "cat"), ("cat", "owl")]
    >>> judgements = Judgements.from_pairs(votes, tied=[False, False, True])
    >>> judgements
    Judgements(n_judgements=3, n_items=2, n_queries=1)
    >>> preferences = judgements.preferences()
    >>> judgements.items[preferences.winner].tolist(), preferences.weight.tolist()
    (['owl', 'cat'], [2.5, 0.5])
    """

    def __init__(
        self,
        queries: Queries,
        items: NDArray[Any],
        query: Ints,
        *,
        comparisons: Comparisons | None = None,
        orders: Orders | None = None,
        half_ties: bool = False,
        count: Floats | None = None,
        judge: Ints | None = None,
        judges: NDArray[Any] | None = None,
        details: VoteDetails | None = None,
        item_features: Floats | None = None,
        feature_names: tuple[str, ...] = (),
        refused: Floats | None = None,
    ) -> None:
        self.queries = queries
        self.items = items
        self.query = query
        self.orders = orders
        self.count = count
        self.judge = judge
        self.judges = judges
        self.details = details
        self.item_features = item_features
        self.feature_names = feature_names
        self.refused = refused
        self.n_judgements = len(query)
        self._comparisons = comparisons
        self._half_ties = half_ties
        self._preferences: Preferences | None = None
        listed = items.tolist() if items.dtype.kind in "OU" else []
        texts = [one for one in listed if isinstance(one, str)]
        bare = {one.strip(): one for one in texts}
        if twins := [one for one in texts if bare[one.strip()] != one]:
            warn(
                f"The items {twins[0]!r} and {bare[twins[0].strip()]!r} differ only by blanks, and "
                "count as two. If they are the same, drop the blanks, as in column.str.strip()."
            )

    def __repr__(self) -> str:
        judges = "" if self.judges is None else f", n_judges={len(self.judges)}"
        return (
            f"Judgements(n_judgements={self.n_judgements}, n_items={self.queries.n_rows}, "
            f"n_queries={self.queries.n_queries}{judges})"
        )

    # ---------------------------------------------------------------- constructors

    @classmethod
    @checks_keywords
    def from_pairs(
        cls,
        pairs: Any,
        *,
        groups: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        tied: ArrayLike | None = None,
        probability: ArrayLike | None = None,
        count: ArrayLike | None = None,
        judgement: ArrayLike | None = None,
        judge: ArrayLike | None = None,
        items: Any = None,
    ) -> Judgements:
        """Read comparisons of two items.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2)
            Ids of the preferred item and the other item, of any hashable type: a list of tuples, an
            array, or a data frame with the columns ``winner`` and ``loser``.
        groups : array-like of shape (n_pairs,), default=None
            Query id of each pair. None means that there is one query. The same item id in two
            queries means two different items.
        weight : array-like of shape (n_pairs,), default=None
            Strength of each preference, >= 0. None means 1.
        tied : array-like of bool of shape (n_pairs,), default=None
            Whether the two items are tied. A tie counts as half a preference in each direction.
            None means that there are no ties.
        probability : array-like of shape (n_pairs,), default=None
            The probability with which the preferred item is better, from 0 to 1, for example by a
            language model. 0.5 is a tie. However small or large it is, each pair is one judgement.
            None means 1.
        count : array-like of shape (n_pairs,), default=None
            Number of judges who made this judgement, an integer >= 0. It cannot be combined with
            `judgement` or `judge`.
        judgement : array-like of shape (n_pairs,), default=None
            Id of the judgement that each pair belongs to, for example a session. The same id in two
            queries means two judgements. None means that each pair is one judgement.
        judge : array-like of shape (n_pairs,), default=None
            Id of the judge of each pair, for intervals that allow for differences between judges.
        items : sequence of shape (n_items,), default=None
            The ids of all items. A pair with another id raises an error. It cannot be combined with
            `groups`.

        Returns
        -------
        judgements : Judgements
            Queries, and the items of a query, are in order of first appearance.

        Raises
        ------
        ValueError
            If shapes or lengths differ, if an item is compared with itself, if an id is missing or
            not in `items`, if a weight or count is out of range, or if a judgement has two judges.

        Examples
        --------
        >>> from sklearn_rankcal import Judgements
        >>> Judgements.from_pairs([(7, 3), (3, 5)], judge=["ann", "bob"])
        Judgements(n_judgements=2, n_items=3, n_queries=1, n_judges=2)
        """
        options = {"groups": groups, "weight": weight, "count": count, "judgement": judgement}
        return cls(**from_pairs(pairs, tied, probability, judge=judge, items=items, **options))

    @classmethod
    @checks_keywords
    def from_votes(
        cls,
        first: ArrayLike,
        second: ArrayLike,
        winner: ArrayLike,
        *,
        tie: Any = ("tie", "tie (bothbad)"),
        refused: Any = (),
        groups: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        probability: ArrayLike | None = None,
        count: ArrayLike | None = None,
        judgement: ArrayLike | None = None,
        judge: ArrayLike | None = None,
        items: Any = None,
        position: Any = False,
        covariates: Any = None,
        item_features: Any = None,
        time: Any = None,
    ) -> Judgements:
        """Read a table of votes between two items, with a column that names the winner.

        Parameters
        ----------
        first, second : array-like of shape (n_votes,)
            Ids of the two items of each vote, for example the columns ``model_a`` and ``model_b``
            of a data frame.
        winner : array-like of shape (n_votes,)
            The winner of each vote: the id of the item, the name of its column in the data frame,
            or one of the words in `tie`. If neither column is called ``model_a`` or ``model_b``,
            these two words mean the first and the second item.
        tie : object or list of objects, default=("tie", "tie (bothbad)")
            The words in `winner` that mean a tie. A tie counts as half a preference in each
            direction.
        refused : object or list of objects, default=()
            The words in `winner` that mean that there is no answer, such as ``"refused"``. None
            stands for a missing entry. These votes are counted in `Judgements.refused` and dropped.
            Their items are kept.
        groups, weight, probability, count, judgement, judge, items : array-like
            As in `from_pairs`, with one entry per vote. If `probability` refers to the first item,
            pass `first` as `winner`, too.
        position : bool or array-like of shape (n_votes,), default=False
            Whether the first item of each vote may have an advantage, because it is shown first or
            plays at home. In an array, 1 means that the first item has the advantage, -1 the
            second, and 0 neither (neutral ground). If a column names the item at home, pass ``(home
            == first).astype(int) - (home == second).astype(int)``.
        covariates : array-like of shape (n_votes, n_covariates), default=None
            Variables that may have influenced the votes, such as the difference of the lengths of
            two answers: the value of the first item minus the value of the second. A data frame
            gives them names.
        item_features : DataFrame of shape (n_items, n_features), default=None
            Features of the items, such as their prices, indexed by item id. Items without votes are
            dropped with a warning, unless they are in `items`.
        time : array-like of shape (n_votes,), default=None
            The time of each vote, as numbers or time stamps.

        Returns
        -------
        judgements : Judgements
            `aggregation.BradleyTerry` adjusts its scores for position, covariates and features.
            Other structures raise an error.

        Raises
        ------
        ValueError
            If a winner is neither an item of its row nor a known word, if a covariate, feature,
            position or time is missing or not a number, or as in `from_pairs`.

        Examples
        --------
        >>> from sklearn_rankcal import Judgements
        >>> Judgements.from_votes(
        ...     ["owl", "cat", "owl"], ["cat", "eel", "eel"], ["model_a", "tie", "owl"]
        ... )
        Judgements(n_judgements=3, n_items=3, n_queries=1)
        """
        options = {"groups": groups, "weight": weight, "count": count, "judgement": judgement}
        details = {"position": position, "covariates": covariates, "time": time}
        words = {"tie": tie, "refused": refused}
        found, answered = from_votes(
            first, second, winner, words, details, probability, judge=judge, items=items, **options
        )
        if item_features is not None:
            if groups is not None:
                raise ValueError("item_features can only be passed without groups.")
            found["item_features"], found["feature_names"] = read_item_features(
                item_features, found["items"]
            )
        votes = cls(**found)
        if answered is None:
            return votes
        n_queries = votes.queries.n_queries
        none = np.bincount(votes.query[~answered], minlength=n_queries).astype(np.float64)
        kept = np.flatnonzero(answered)
        left = votes.resample(kept, votes.query[kept], np.arange(n_queries))
        left.queries, left.refused = votes.queries, none  # the copies have other ids
        return left

    @classmethod
    @checks_keywords
    def from_orders(
        cls,
        orders: Any,
        *,
        groups: ArrayLike | None = None,
        count: ArrayLike | None = None,
        judge: ArrayLike | None = None,
        items: Any = None,
        unlisted: str = "ignore",
        ties: str = "ignore",
        unranked: Any = None,
    ) -> Judgements:
        """Read orders of items, which may be partial and may contain ties.

        Parameters
        ----------
        orders : sequence of sequences
            Each order lists items, best first. An entry is the id of an item, or a list, tuple or
            set of tied ids; missing entries are left out. An order can also be text such as ``"tea
            > milk = juice"``. A data frame has one column per place.
        groups : array-like of shape (n_orders,), default=None
            Query id of each order. None means that there is one query.
        count : array-like of shape (n_orders,), default=None
            Number of judges who gave each order, an integer >= 0. None means 1.
        judge : array-like of shape (n_orders,), default=None
            Id of the judge of each order, for ``aggregate(..., resample="judges")``.
        items : sequence of shape (n_items,), default=None
            The ids of all items, if some may be in no order. It cannot be combined with `groups`.
        unlisted : {"ignore", "last"}, default="ignore"
            How to treat the items of the query that an order does not list. ``"ignore"`` does not
            compare them, ``"last"`` ties them below all listed items.
        ties : {"ignore", "half"}, default="ignore"
            How to treat tied items. ``"ignore"`` does not compare them, ``"half"`` counts half a
            preference in each direction.
        unranked : object or list of objects, default=None
            Entries that mean that nothing has this place, such as 0, 99 or ``""``.

        Returns
        -------
        judgements : Judgements
            Without blank orders. A warning says how many there were.

        Raises
        ------
        ValueError
            If a tier is empty, if an order lists an item twice, if an id is missing or not in
            `items`, if lengths differ, if a count or an option is out of range, or if a column of a
            data frame seems to have time stamps or ids of its rows.

        Examples
        --------
        >>> from sklearn_rankcal import Judgements
        >>> Judgements.from_orders([["tea", ["milk", "juice"]], ["juice", "tea"]], count=[3, 1])
        Judgements(n_judgements=2, n_items=3, n_queries=1)
        """
        options = {"groups": groups, "count": count, "judge": judge, "items": items}
        return cls(**formats.from_orders(orders, unranked, unlisted=unlisted, ties=ties, **options))

    @classmethod
    @checks_keywords
    def from_ranks(
        cls,
        ranks: Any,
        *,
        groups: ArrayLike | None = None,
        count: ArrayLike | None = None,
        judge: ArrayLike | None = None,
        items: Any = None,
        unlisted: str = "ignore",
        ties: str = "ignore",
        unranked: Any = None,
    ) -> Judgements:
        """Read orders from a table of ranks, with one column per item.

        Parameters
        ----------
        ranks : array-like of shape (n_orders, n_columns)
            Position of each item, 1 = best. Only the order of the positions counts, and equal
            positions are ties. NaN means that the order does not list the item. Blank rows are left
            out with a warning. The column names of a data frame are the ids of the items.
        groups, count, judge, unlisted, ties : array-like or str
            As in `from_orders`. The items of a query are those that at least one of its orders
            lists.
        items : sequence of shape (n_columns,), default=None
            Ids of the items. None means the column names of a data frame, otherwise 0, 1, 2, and so
            on.
        unranked : float or list of floats, default=None
            Numbers that mean the same as NaN, such as 0 or 99.

        Returns
        -------
        judgements : Judgements

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_rankcal import Judgements
        >>> table = [[1, 2, np.nan], [2, 1, 3]]
        >>> Judgements.from_ranks(table, items=["tea", "milk", "juice"]).preferences().total()
        array([4.])
        """
        options = {"count": count, "judge": judge, "unlisted": unlisted, "ties": ties}
        return cls(**formats.from_ranks(ranks, items, unranked, groups, **options))

    @classmethod
    @checks_keywords
    def from_selections(
        cls,
        shown: Any,
        selected: Any,
        *,
        groups: ArrayLike | None = None,
        count: ArrayLike | None = None,
        judge: ArrayLike | None = None,
    ) -> Judgements:
        """Read which of the shown items were selected, regardless of their places.

        Each selected item is preferred to each item that was shown but not selected. If people read
        a list from the top, they may not have seen its lower items: use `click_labels` instead.

        Parameters
        ----------
        shown : sequence of sequences
            The ids of the items of each display.
        selected : sequence
            For each display, the id of the selected item, or a list, tuple or set of ids. An empty
            list means that nothing was selected, a missing entry that there was no answer.
        groups, count, judge : array-like
            As in `from_orders`.

        Returns
        -------
        judgements : Judgements

        Raises
        ------
        ValueError
            If an item was shown twice, or selected but not shown, or as in `from_orders`.

        Examples
        --------
        >>> from sklearn_rankcal import Judgements
        >>> judgements = Judgements.from_selections([["a", "b", "c"], ["b", "c"]], ["b", ["b"]])
        >>> judgements.preferences().total()
        array([3.])
        """
        options = {"groups": groups, "count": count, "judge": judge, "items": None}
        return cls(**formats.from_selections(shown, selected, **options))

    @classmethod
    @checks_keywords
    def from_best_worst(
        cls,
        sets: Any,
        best: Any,
        worst: Any,
        *,
        set_id: Any = None,
        respondent: Any = None,
        groups: Any = None,
        items: Any = None,
    ) -> Judgements:
        """Read best-worst choices (MaxDiff): the best and the worst item of each set.

        The best item of a set is preferred to the others, and all others to the worst.

        Parameters
        ----------
        sets : array-like of shape (n_sets, n_columns)
            The ids of the items of each set, for example the columns of a survey's export. Missing
            entries are left out. With `set_id`, the items of all sets, of shape (n_rows,).
        best, worst : array-like of shape (n_sets,)
            The ids of the best and the worst item of each set; missing if there was no answer. If
            you have numbers of columns from 1, pass ``sets.to_numpy()[range(n_sets), best - 1]``.
            With `set_id`, whether each row is the best or the worst, of shape (n_rows,).
        set_id : array-like of shape (n_rows,), default=None
            The set of each row, for tables with one row for each item that was shown. The same id
            of two respondents means two sets.
        respondent : array-like of shape (n_sets,) or (n_rows,), default=None
            The id of the person, who becomes the judge.
        groups, items : array-like
            As in `from_orders`, with one entry of `groups` for each entry of `respondent`.

        Returns
        -------
        judgements : Judgements
            Orders for the method ``"plackett_luce"``, without sets that have no answer.

        Raises
        ------
        ValueError
            If an item was shown twice, chosen but not shown, or best and worst, or as in
            `from_orders`.

        Examples
        --------
        >>> import pandas as pd
        >>> from sklearn_rankcal import Judgements, aggregate
        >>> rows = [["tea", "milk", "ale", "tea", "ale"], ["ale", "milk", "tea", "milk", "ale"]]
        >>> table = pd.DataFrame(rows, columns=["item1", "item2", "item3", "best", "worst"])
        >>> choices = Judgements.from_best_worst(
        ...     table[["item1", "item2", "item3"]], table["best"], table["worst"], respondent=[1, 2]
        ... )
        >>> board = aggregate(choices, "plackett_luce", intervals="information")
        >>> board.rank_low.tolist(), board.rank_high.tolist()
        ([1, 1, 1], [3, 3, 3])
        """
        given = set_id, respondent, groups, items
        return cls(**formats.from_best_worst(sets, best, worst, *given))

    @classmethod
    @checks_keywords
    def from_preflib(
        cls, source: Any, *, unlisted: str = "ignore", ties: str = "ignore"
    ) -> Judgements:
        """Read an election from PrefLib.

        Parameters
        ----------
        source : path or preflibtools.instances.OrdinalInstance
            A file of type ``.soc``, ``.soi``, ``.toc`` or ``.toi``, plain or compressed (``.gz`` or
            ``.bz2``); or an instance of the package preflibtools.
        unlisted, ties : str
            As in `from_orders`.

        Returns
        -------
        judgements : Judgements
            One query, with all alternatives as its items. `count` is the number of voters.

        Raises
        ------
        ValueError
            If a line is not an order in this format, if an order has ties or is incomplete although
            the file type excludes it, or if an order lists an alternative twice.

        Warns
        -----
        UserWarning
            If the number of voters or orders differs from the number that the file states.
        """
        return cls(**formats.from_preflib(source, unlisted, ties))

    @classmethod
    @checks_keywords
    def from_labels(cls, y: Any, n_rows: int | None = None) -> Judgements:
        """Read an array made by `preference_labels`, or its entries for some complete queries.

        Parameters
        ----------
        y : structured ndarray of shape (n_rows,)
            The labels. If they were made with ``judgement=``, the pairs of a query with the same
            number are one judgement. Otherwise each pair is one judgement.
        n_rows : int, default=None
            The expected length.

        Returns
        -------
        judgements : Judgements
            The items are the rows of `y`, in the same order.
        """
        return cls(**formats.from_labels(y, n_rows))

    # ---------------------------------------------------------------- times

    def faded(self, half_life: Any, *, now: Any = None) -> Judgements:
        """Return the votes with weights that decay with their age.

        Parameters
        ----------
        half_life : str, timedelta or float
            The age at which a vote counts half: a number, or ``"30 days"`` or a timedelta if times
            are time stamps.
        now : time stamp or float, default=None
            The time at which a vote counts fully. None means the time of the last vote.

        Returns
        -------
        judgements : Judgements
            For intervals, pass ``intervals="robust"`` or resamples to `aggregate`.
            ``"information"`` would read the weights as numbers of votes and raises an error.

        Raises
        ------
        ValueError
            If `from_votes` got no times, or if votes are later than `now`.

        Examples
        --------
        >>> from sklearn_rankcal import Judgements, aggregate
        >>> votes = Judgements.from_votes(["owl"] * 2, ["cat"] * 2, ["owl", "cat"], time=[0, 10])
        >>> votes.faded(10).preferences().weight.tolist()  # the older vote, and the newer
        [0.5, 1.0]
        """
        weight = weights_by_age(self._times("faded"), half_life, now)
        old, owner = self.comparisons, self.of_comparison
        weight = weight if owner is None else weight[owner]
        weight = weight if old.weight is None else weight * old.weight
        return self._with(_comparisons=old._replace(weight=weight))

    def between(self, start: Any = None, end: Any = None) -> Judgements:
        """Return the votes of a period, with the items that they compare.

        Parameters
        ----------
        start, end : time stamp, str or float, default=None
            The period begins at `start` and ends before `end`. None means no limit.

        Returns
        -------
        judgements : Judgements

        Raises
        ------
        ValueError
            If `from_votes` got no times, or if the period has no votes.

        Examples
        --------
        >>> from sklearn_rankcal import Judgements
        >>> days = ["2026-01-01", "2026-01-02", "2026-02-01"]
        >>> votes = Judgements.from_votes(["a"] * 3, ["b", "b", "c"], ["a"] * 3, time=days)
        >>> votes.between("2026-01-02", "2026-02-01")
        Judgements(n_judgements=1, n_items=2, n_queries=1)
        """
        taken = np.flatnonzero(in_period(self._times("between"), start, end))
        every = np.arange(self.queries.n_queries)
        votes = self.resample(taken, self.query[taken], every)
        winner, loser, _, _ = votes.comparisons
        rows = np.unique(np.append(winner, loser))
        left, sizes = np.unique(votes.queries.codes[rows], return_counts=True)
        offsets = np.append(0, np.cumsum(sizes))
        return votes.take_rows(rows, Queries(offsets, None, self.queries.ids[left]))

    def _times(self, method: str) -> NDArray[Any]:
        """Return the times of all votes, which this method needs."""
        if self.details is None or self.details.time is None:
            raise ValueError(
                f"{method} needs the time of each vote. Pass time= to Judgements.from_votes."
            )
        return self.details.time

    # ---------------------------------------------------------------- what structures use

    @property
    def comparisons(self) -> Comparisons:
        """The comparisons of all judgements. Orders are converted on first use."""
        if self._comparisons is None:
            assert self.orders is not None
            self._comparisons = compare_tiers(self.orders, self._half_ties)
        return self._comparisons

    @property
    def has_covariates(self) -> bool:
        """Whether votes have a position or covariates, or items have features."""
        names = () if self.details is None else self.details.names
        return bool(names) or self.item_features is not None

    @property
    def per_query(self) -> Floats:
        """Number of judgements of each query, weighted by count, of shape (n_queries,)."""
        numbers = np.bincount(self.query, self.count, self.queries.n_queries)
        return numbers.astype(np.float64, copy=False)

    @property
    def of_comparison(self) -> Ints | None:
        """The judgement of each comparison; None if judgement m is the single comparison m."""
        offsets = self.comparisons.offsets
        return (
            None if offsets is None else np.repeat(np.arange(self.n_judgements), np.diff(offsets))
        )

    def preferences(self) -> Preferences:
        """Add up the weights of the comparisons of all judgements.

        Returns
        -------
        preferences : Preferences
            ``weight`` is the total weight of each preference of one item to another. The first call
            takes at most O(n_comparisons log n_comparisons) time; the result is cached.
        """
        if self._preferences is None:
            winner, loser, weight, _ = self.comparisons
            if self.count is not None:
                owner = self.of_comparison
                count = self.count if owner is None else self.count[owner]
                weight = count if weight is None else weight * count
            if weight is None:
                weight = np.ones(len(winner))
            self._preferences = Preferences.from_pairs(winner, loser, weight, self.queries)
        return self._preferences

    def _links(self) -> tuple[Ints, Ints]:
        """Return pairs of rows that connect the same items as the comparisons of positive weight.

        For orders, their number is linear in the length of an order, not quadratic.
        """
        if self.orders is None:
            preferences = self.preferences()
            positive = preferences.weight > 0
            return preferences.winner[positive], preferences.loser[positive]
        item, tier, offsets = self.orders
        # an order compares all of its items, or none if it is a single tier without half ties
        compares = (tier[offsets[1:] - 1] != tier[offsets[:-1]]) | self._half_ties
        if self.count is not None:
            compares &= self.count > 0
        kept = np.flatnonzero(compares)
        entries, starts = ranges(offsets, kept)
        first = np.repeat(offsets[kept], np.diff(starts))
        inner = entries > first
        return item[first[inner]], item[entries[inner]]

    def to_labels(self, groups: ArrayLike, documents: ArrayLike) -> NDArray[Any]:
        """Return the judgements as labels for a table with one row per document.

        Parameters
        ----------
        groups, documents : array-like of shape (n_rows,)
            The query id and the document id of each row of the table, as they occur in the
            judgements (as ``groups`` and items). A row without judgements has no preferences.

        Returns
        -------
        labels : structured ndarray of shape (n_rows,)
            Labels as from `preference_labels`, for the `y` of `fit`.

        Raises
        ------
        ValueError
            If the table has a document of a query twice, or lacks one that is judged.

        Examples
        --------
        >>> from sklearn_rankcal import Judgements
        >>> votes = Judgements.from_votes(
        ...     ["d1", "d2"], ["d2", "d3"], ["d2", "tie"], groups=["cats", "cats"]
        ... )
        >>> labels = votes.to_labels(groups=["cats"] * 3, documents=["d3", "d2", "d1"])
        >>> [wins.tolist() for wins in labels["wins"]]  # row 1 beats row 2, and ties with row 0
        [[1], [0, 2], []]
        """
        rows = rows_of_items(self.queries, self.items, groups, documents)
        winner, loser, weight, _ = self.comparisons
        owner = self.of_comparison
        owner = np.arange(self.n_judgements) if owner is None else owner
        if self.count is not None:
            weight = self.count[owner] if weight is None else weight * self.count[owner]
        unknown = np.flatnonzero(rows[np.append(winner, loser)] < 0)
        if len(unknown):
            item = np.append(winner, loser)[unknown[0]]
            raise ValueError(
                f"The judgements compare {show_id(self.items[item])} of query "
                f"{show_id(self.queries.ids[self.queries.codes[item]])}, which is not in the "
                "table. Leave out judgements of documents that are not in the table."
            )
        pairs = np.column_stack([rows[winner], rows[loser]])
        return preference_labels(pairs, groups, weight, owner)

    # ---------------------------------------------------------------- parts

    def resample(self, judgements: Ints, copy: Ints, parent: Ints) -> Judgements:
        """Take judgements, possibly several times, into copies of their queries.

        A structure computes the scores of all copies at the same time.

        Parameters
        ----------
        judgements : ndarray of shape (n_taken,)
            Numbers of judgements.
        copy : ndarray of shape (n_taken,)
            The copy that gets each judgement, from 0 to n_copies - 1.
        parent : ndarray of shape (n_copies,)
            The query of each copy.

        Returns
        -------
        judgements : Judgements
            The queries are the copies, each with the items of its parent.
        """
        queries, rows, shift = self.queries.copies(parent)
        place = self.queries.scatter(np.arange(self.queries.n_rows))
        moved = shift[copy]
        comparisons, orders = self._comparisons, self.orders
        if orders is not None:
            entries, starts = ranges(orders.offsets, judgements)
            owner = np.repeat(moved, np.diff(starts))
            orders = Orders(place[orders.item[entries]] + owner, orders.tier[entries], starts)
            comparisons = None
        if comparisons is not None:
            chosen, owner, ends = judgements, moved, None
            if comparisons.offsets is not None:
                chosen, ends = ranges(comparisons.offsets, judgements)
                owner = np.repeat(moved, np.diff(ends))
            winner, loser = comparisons.winner[chosen], comparisons.loser[chosen]
            comparisons = Comparisons(
                place[winner] + owner, place[loser] + owner, _take(comparisons.weight, chosen), ends
            )
        refused = _take(self.refused, parent)
        return self._part(queries, rows, copy, comparisons, orders, judgements, refused)

    def take_rows(self, rows: Ints, queries: Queries) -> Judgements:
        """Take some items, and drop comparisons with other items.

        Parameters
        ----------
        rows : ndarray of shape (n_taken,)
            Row numbers.
        queries : Queries
            The partition of the taken rows into queries, each a part of a present query.

        Returns
        -------
        judgements : Judgements
            Judgements without remaining comparisons are dropped.
        """
        new = np.full(self.queries.n_rows, -1)
        new[rows] = np.arange(len(rows))
        number = np.full(self.queries.n_queries, -1)  # the new number of each query
        number[self.queries.codes[rows]] = queries.codes
        query = number[self.query]
        winner, loser, weight, offsets = self.comparisons
        winner, loser = new[winner], new[loser]
        inside = (winner >= 0) & (loser >= 0)
        owner = self.of_comparison
        owner = np.arange(self.n_judgements) if owner is None else owner
        counts = np.bincount(owner[inside], minlength=self.n_judgements)
        # A judgement without comparisons, such as a single tier, still counts.
        left = counts > 0
        if offsets is not None:
            left |= np.diff(offsets) == 0
        orders = self.orders
        if orders is not None:
            entries = np.flatnonzero(new[orders.item] >= 0)
            owner = np.repeat(np.arange(self.n_judgements), np.diff(orders.offsets))[entries]
            listed = np.bincount(owner, minlength=self.n_judgements)
            left &= listed > 0
        left &= query >= 0
        kept = np.flatnonzero(left)
        if orders is not None:
            entries = entries[left[owner]]
            starts = np.append(0, np.cumsum(listed[kept]))
            orders = Orders(new[orders.item[entries]], orders.tier[entries], starts)
        counts = counts[kept]
        ends = None if (counts == 1).all() else np.append(0, np.cumsum(counts))
        comparisons = Comparisons(winner[inside], loser[inside], _take(weight, inside), ends)
        refused = None
        if self.refused is not None:
            left = number >= 0
            refused = np.zeros(queries.n_queries)
            refused[number[left]] = self.refused[left]
        return self._part(queries, rows, query[kept], comparisons, orders, kept, refused)

    def _of_query(self, q: int) -> tuple[Judgements, Ints]:
        """Return the judgements of query q, and the rows of its items."""
        rows = self._rows_of_query(q)
        if self.queries.n_queries == 1:
            return self, np.arange(self.queries.n_rows)
        one = Queries(np.array([0, len(rows)]), None, self.queries.ids[q : q + 1])
        return self.take_rows(rows, one), rows

    def _rows_of_query(self, q: int) -> Ints:
        """Return the rows of the items of query q, in their own order."""
        places = np.arange(self.queries.offsets[q], self.queries.offsets[q + 1])
        return places if self.queries.order is None else self.queries.order[places]

    def _part(
        self,
        queries: Queries,
        rows: Ints,
        query: Ints,
        comparisons: Comparisons | None,
        orders: Orders | None,
        taken: Ints,
        refused: Floats | None,
    ) -> Judgements:
        return self._with(
            queries=queries,
            items=self.items[rows],
            query=query,
            _comparisons=comparisons,
            orders=orders,
            count=_take(self.count, taken),
            judge=_take(self.judge, taken),
            details=None if self.details is None else self.details.take(taken),
            item_features=_take(self.item_features, rows),
            refused=refused,
        )

    def _with(self, **changes: Any) -> Judgements:
        """Return a copy with other attributes."""
        new = copy(self)
        vars(new).update(changes, _preferences=None)
        new.n_judgements = len(new.query)
        return new


def _take(values: Any, chosen: Any) -> Any:
    return None if values is None else values[chosen]


def find_id(ids: NDArray[Any], wanted: Any, kind: str) -> int:
    """Return the index of an id, or raise ValueError."""
    listed = ids.tolist()
    if isinstance(wanted, np.generic) and ids.dtype == wanted.dtype:
        wanted = wanted.item()
    equal = [k for k, one in enumerate(listed) if one is wanted or bool(np.all(one == wanted))]
    if equal:  # 1 == True: prefer the id of the same type
        return next((k for k in equal if type(listed[k]) is type(wanted)), equal[0])
    shown = ", ".join(map(show_id, listed[:5])) + (", ..." if len(listed) > 5 else "")
    raise ValueError(f"There is no {kind} {show_id(wanted)}. There are: {shown}.")
