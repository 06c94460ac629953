"""Labels of rows: relevance grades, or weighted preferences, with or without their queries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import column_or_1d

from sklearn_rankcal.labels._item_ids import check_length, check_rows, check_weight, reading_rows
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.queries._queries import ranges
from sklearn_rankcal.utils import _numbers
from sklearn_rankcal.utils._features import is_dataframe, split_column, warn_of_other_order
from sklearn_rankcal.utils._messages import checks_keywords, counted
from sklearn_rankcal.utils._numbers import Floats, Ints, as_frame

GROUPS_REMEDY = (
    "Pass groups=<query id of each row>. Or pass y=relevance_labels(y, groups), which contains the "
    "ids and also works inside GridSearchCV and cross_validate. Or name a column of a data frame: "
    "group_column='qid'. With sklearn.set_config(enable_metadata_routing=True), scikit-learn "
    "passes groups= to the ranker."
)

RELEVANCE_DTYPE = np.dtype([("relevance", "f8"), ("query", "i8"), ("size", "i8")])


@checks_keywords
def relevance_labels(y: ArrayLike, groups: ArrayLike) -> NDArray[Any]:
    """Make relevance labels that contain the query of each row, to use as `y` in scikit-learn.

    By default, `GridSearchCV` and similar tools pass `groups` only to the splitter and not to the
    ranker, unless metadata routing is enabled. Labels that contain the queries reach the ranker,
    because they are split together with the rows. Queries must stay whole: `fit` and the scorers
    raise an error if a splitter has split a query.

    Transformers that use y, such as `TargetEncoder`, cannot read these labels. For them, pass plain
    labels, and the query ids by the `group_column` of the ranker.

    Parameters
    ----------
    y : array-like of shape (n_documents,)
        Relevance of each row, finite, larger is better. NaN, or another missing value, marks rows
        that nobody judged (:ref:`unjudged`).
    groups : array-like of shape (n_documents,)
        Query id of each row, of any type and in any order.

    Returns
    -------
    labels : structured ndarray of shape (n_documents,)
        One entry per row, with the fields ``relevance`` (float64), ``query`` (int64, numbered by
        first appearance) and ``size`` (int64, the number of rows of the query).

    Examples
    --------
    >>> from sklearn_rankcal import relevance_labels
    >>> labels = relevance_labels([2, 0, 1], ["shoes", "hats", "shoes"])
    >>> labels["query"].tolist(), labels["size"].tolist()
    ([0, 1, 0], [2, 1, 2])
    """
    warn_of_other_order(y=y, groups=groups)
    relevance = check_relevance(y, unjudged=True)
    queries = Queries.from_groups(groups, len(relevance))
    labels = np.empty(len(relevance), dtype=RELEVANCE_DTYPE)
    labels["relevance"] = relevance
    labels["query"] = queries.codes
    labels["size"] = queries.broadcast(queries.sizes)
    return labels


def is_structured(y: Any) -> bool:
    """Whether `y` is a structured array, with any fields."""
    return isinstance(y, np.ndarray) and y.dtype.names is not None


def read_relevance(
    y: Any, n_rows: int | None = None, *, unjudged: bool = False
) -> tuple[NDArray[np.float64], Queries | None]:
    """Return the relevance of each row, and the queries if `y` is structured, otherwise None.

    `unjudged` is whether the relevance may be NaN, for rows that nobody judged.
    """
    if not isinstance(y, np.ndarray) or y.dtype.names is None:
        return check_relevance(y, n_rows, unjudged=unjudged), None
    call = "relevance_labels(y, groups)"
    queries = read_structure(y, RELEVANCE_DTYPE, "relevance", call, n_rows)
    return check_relevance(y["relevance"], unjudged=unjudged), queries


def put_together(what: str, function: str) -> ValueError:
    """Return the error for structured labels that do not come from a single call."""
    return ValueError(
        f"Structured labels of several calls were concatenated, or rows were repeated: {what}. "
        f"Call {function} once, on all rows."
    )


def whole_queries(labels: NDArray[Any], function: str) -> Queries:
    """Return the queries of structured labels made by `function`, and check that they are whole."""
    queries = Queries.from_groups(labels["query"], len(labels))
    low, high = queries.min(labels["size"]), queries.max(labels["size"])
    if (low != high).any() or (low < queries.sizes).any():
        raise put_together("a query has more rows than its labels state", function)
    cut = np.flatnonzero(high > queries.sizes)
    if len(cut):
        q = cut[0]
        raise ValueError(
            f"{len(cut)} of {counted(queries.n_queries, 'query')} are incomplete: query "
            f"{queries.ids[q]} has {queries.sizes[q]} of its {counted(high[q], 'document')} here. "
            "A splitter has cut it. Split by query: cv=QueryKFold(), or GroupKFold() with groups=. "
            "(learning_curve and max_samples cut queries with every splitter.)"
        )
    return queries


def read_structure(
    y: Any, dtype: np.dtype[Any], kind: str, call: str, n_rows: int | None
) -> Queries:
    """Check that `y` is an array of structured labels or a part of it, and return its queries.

    `kind` and `call` describe the labels in error messages, for example ``"preferences"`` and
    ``"preference_labels(pairs, groups)"``.
    """
    wanted = f"Pass {kind} as {call}."
    if y is None:
        raise ValueError(f"This ranker requires y to be passed, but the target y is None. {wanted}")
    if not is_structured(y):
        shape = np.shape(y)
        if kind == "preferences" and len(shape) == 2 and shape[1] == 2:
            raise bare_pairs(shape, "Preference labels have one entry per row.")
        raise ValueError(f"y has shape {shape} and does not contain {kind}. {wanted}")
    if y.dtype.names != dtype.names:
        raise ValueError(
            f"The structured labels have the fields {y.dtype.names}, but the labels of {call} have "
            f"{dtype.names}."
        )
    _numbers.check_no_mask(y, "y")
    if y.ndim != 1:
        raise ValueError(f"y must be a 1-D array with one entry per row; it has shape {y.shape}.")
    if n_rows is not None and len(y) != n_rows:
        raise ValueError(f"y has {counted(len(y), 'entry')}, but X has {counted(n_rows, 'row')}.")
    if len(y) == 0:
        raise ValueError("y is empty: at least one row is needed.")
    return whole_queries(y, call.partition("(")[0])


def agreed_queries(given: Queries | None, of_labels: Queries | None) -> Queries | None:
    """Return the queries of `groups` or of the labels, which must agree; None if both are None."""
    if given is None or of_labels is None:
        return given or of_labels
    if not given.same_partition(of_labels):
        raise ValueError("groups and the structured labels assign the rows to different queries.")
    return given


def groups_of_labels(y: Any) -> NDArray[np.int64] | None:
    """Return the query of each row if `y` is an array of structured labels, otherwise None."""
    return y["query"] if is_structured(y) and "query" in y.dtype.names else None


def bare_pairs(shape: tuple[int, ...], wanted: str) -> ValueError:
    """Return the error for a `y` that looks like pairs of row numbers."""
    return ValueError(
        f"y has shape {shape}. {wanted} Pairs of row numbers do not survive cross-validation "
        "and are not accepted as y. Pass y=preference_labels(pairs, groups)."
    )


def check_relevance(
    y: Any, n_rows: int | None = None, *, unjudged: bool = False
) -> NDArray[np.float64]:
    """Check that relevance is one finite number per row, and return it as float64.

    With `unjudged`, missing values of all kinds become NaN, but one row must be judged.
    """
    if y is None:
        raise ValueError("This ranker requires y to be passed, but the target y is None.")
    values = _numbers.read_numbers(y, "y", missing=unjudged)
    if values.ndim == 2 and 2 <= values.shape[1] < 10:
        wanted, first, second = "One relevance per row is expected.", values[:, 0], values[:, 1]
        if values.shape[1] == 2 and np.asarray(y).dtype.kind in "iu" and (first != second).all():
            raise bare_pairs(values.shape, wanted)
        raise ValueError(
            f"y has shape {values.shape}. {wanted} Add up the columns with a weight for each, such "
            f"as y = np.asarray(y) @ {[*range(1, values.shape[1] + 1)]}."
        )
    relevance: NDArray[np.float64] = column_or_1d(values, warn=True)
    if n_rows is not None and len(relevance) != n_rows:
        raise ValueError(
            f"y has {counted(len(relevance), 'entry')}, but X has {counted(n_rows, 'row')}."
        )
    if len(relevance) == 0:
        raise ValueError("y is empty: at least one row is needed.")
    bad = ~np.isfinite(relevance)
    if unjudged and bad.any() and not bad.all():
        bad = np.isinf(relevance)
    if bad.any():
        remedy = (
            "NaN is for rows that nobody judged, and at least one row must be judged."
            if unjudged
            else "Every document of a query needs a relevance here. Drop the rows that were not "
            "judged, or set their relevance to 0."
        )
        row = int(np.flatnonzero(bad)[0])
        raise ValueError(f"Input y contains NaN or infinity (first at row {row}). {remedy}")
    _numbers.check_range(relevance, "y")
    return relevance


def queries_of_rows(
    final: Any,
    X: Any,
    groups: ArrayLike | None,
    of_labels: Queries | None,
    n_rows: int,
    who: str,
) -> tuple[Queries, Any]:
    """Return the queries of the rows, and the query ids to pass to `predict`."""
    if groups is not None:
        queries = Queries.from_groups(groups, n_rows)
        agreed_queries(queries, of_labels)
        return queries, groups
    if of_labels is not None:
        return of_labels, of_labels.codes
    column = getattr(final, "group_column", None)
    if column is not None and is_dataframe(X := as_frame(X)):
        ids = split_column(X, column)[1]
        return Queries.from_groups(ids, n_rows), ids
    raise ValueError(f"{who} cannot determine which rows belong to which query. {GROUPS_REMEDY}")


PREFERENCE_DTYPE = np.dtype(
    [
        ("query", "i8"),
        ("row", "i8"),
        ("size", "i8"),
        ("wins", "O"),
        ("weights", "O"),
        ("judgement", "O"),
    ]
)
#: A table of all possible pairs is used if it has at most this many entries per given pair. Filling
#: and reading a larger table takes longer than sorting the pairs.
_TABLE_ENTRIES_PER_PAIR = 4


@checks_keywords
def preference_labels(
    pairs: ArrayLike,
    groups: ArrayLike,
    weight: ArrayLike | None = None,
    judgement: ArrayLike | None = None,
) -> NDArray[Any]:
    """Make labels from preferences between rows, to use as `y` anywhere in scikit-learn.

    The labels can be sliced, permuted and split together with the rows of X. Queries must stay
    whole: `fit` raises an error if a splitter has split a query. Contradictions and cycles are
    allowed, because several judgements usually contain some.

    Parameters
    ----------
    pairs : array-like of shape (n_pairs, 2)
        Row numbers of X: the preferred row and the other row. Both must belong to the same query.
        Repeated pairs count repeatedly.
    groups : array-like of shape (n_documents,)
        Query id of each row of X, of any type and in any order.
    weight : array-like of shape (n_pairs,), default=None
        Weight of each pair: 0, or between 1e-50 and 1e50. If None, every weight is 1.
    judgement : array-like of shape (n_pairs,), default=None
        A whole number for each pair that identifies its judgement, for example the annotator or the
        session. Methods that aggregate judgements use it. Losses add up the weights of all
        judgements.

    Returns
    -------
    labels : structured ndarray of shape (n_documents,)
        One entry per row of X, with the following fields.

        - ``query`` (int64): the number of the query, in order of first appearance.
        - ``row`` (int64): the row number.
        - ``size`` (int64): the number of rows of the query.
        - ``wins`` (ndarray): the rows that this row is preferred to, in ascending order.
        - ``weights`` (ndarray): the weights of these preferences.
        - ``judgement`` (ndarray or None): their judgements, or None if `judgement` is None.

    See Also
    --------
    labels.ranking_labels : Make preference labels from (partial) rankings of the documents of each
        query.
    relevance_labels : Make labels from one relevance per row.

    Examples
    --------
    >>> from sklearn_rankcal.labels import preference_labels
    >>> labels = preference_labels([[0, 2], [2, 0], [0, 3]], ["a", "b", "a", "a"], [3, 1, 1])
    >>> labels["size"].tolist(), labels["wins"][0].tolist(), labels["weights"][0].tolist()
    ([3, 1, 3, 3], [2, 3], [3.0, 1.0])

    Whole queries can be selected. A part of a query raises an error in `fit`:

    >>> labels[labels["query"] == 0]["row"].tolist()
    [0, 2, 3]
    """
    queries = Queries.from_groups(groups)
    n_rows = queries.n_rows
    rows = _check_pairs(pairs, queries)
    weights = (
        np.ones(len(rows)) if weight is None else check_weight(weight, len(rows), "weight", "pairs")
    )
    # sort by winner, then by loser, to put the pairs that a row wins next to each other
    order = np.argsort(rows[:, 0] * n_rows + rows[:, 1], kind="stable")
    stops = np.cumsum(np.bincount(rows[:, 0], minlength=n_rows))
    labels = np.empty(n_rows, dtype=PREFERENCE_DTYPE)
    labels["query"] = queries.codes
    labels["row"] = np.arange(n_rows)
    labels["size"] = queries.broadcast(queries.sizes)
    labels["wins"] = cut(rows[order, 1], stops)
    labels["weights"] = cut(weights[order], stops)
    labels["judgement"] = None
    if judgement is not None:
        numbers = _numbers.read_whole(judgement, "judgement")
        check_length(numbers, len(rows), "judgement", "pairs")
        labels["judgement"] = cut(numbers[order], stops)
    return labels


def _check_pairs(pairs: ArrayLike, queries: Queries) -> Ints:
    """Check that every pair holds two different rows of the same query, and return int64."""
    with reading_rows("pairs"):
        values = _numbers.read_array(pairs, "pairs")
    if values.size == 0:
        raise ValueError("pairs is empty: at least one preference is needed.")
    if values.ndim != 2 or values.shape[1] != 2:
        raise ValueError(
            "pairs must have shape (n_pairs, 2), the preferred row and the other row; got shape "
            f"{values.shape}. Pass weights as weight=."
        )
    rows = _numbers.read_whole(values, "pairs")
    flat, pair = rows.reshape(-1), np.repeat(np.arange(len(rows)), 2)
    check_rows(flat, pair, 2 * pair, queries, "Pair")
    itself = rows[:, 0] == rows[:, 1]
    if itself.any():
        k = int(np.argmax(itself))
        raise ValueError(f"Pair {k} prefers row {rows[k, 0]} to itself.")
    return rows


def cut(values: NDArray[Any], stops: Ints) -> NDArray[Any]:
    """Return an object array whose k-th entry is the view ``values[stops[k - 1] : stops[k]]``."""
    parts = np.empty(len(stops), dtype=object)
    start = 0
    # Object arrays can only be filled entry by entry. The loop takes 0.2 microseconds per row.
    for row, stop in enumerate(stops.tolist()):
        parts[row] = values[start:stop]
        start = stop
    return parts


def read_preferences(y: Any, n_rows: int | None = None) -> Preferences:
    """Read the array of `preference_labels`, or its entries for some whole queries, in any order.

    Return the preferences between the rows of `y` in their present order. Raise ValueError if a
    splitter has split a query, if rows are repeated, if arrays of several calls were concatenated,
    or if the number of rows is not `n_rows`.
    """
    queries, winner, loser = read_wins(y, n_rows)
    return Preferences.from_pairs(winner, loser, np.concatenate(y["weights"]), queries)


def read_wins(y: Any, n_rows: int | None) -> tuple[Queries, Ints, Ints]:
    """Return the queries of `read_preferences`, and the index in `y` of both rows of each pair."""
    function = "preference_labels"
    queries = read_structure(
        y, PREFERENCE_DTYPE, "preferences", "preference_labels(pairs, groups)", n_rows
    )
    rows = y["row"]
    # here[row]: the index in y of the entry with the original row number `row`, -1 if missing
    here = np.full(int(rows.max()) + 1, -1)
    here[rows] = np.arange(len(rows))
    if not np.array_equal(here[rows], np.arange(len(rows))):
        raise put_together("a row occurs twice", function)
    # Number winners and losers by their index in y. The losers in y["wins"] have original numbers.
    counts = np.fromiter(map(len, y["wins"]), dtype=np.int64, count=len(y))
    winner = np.repeat(np.arange(len(y)), counts)
    beaten = np.concatenate(y["wins"])
    known = beaten < len(here)
    loser = here[np.where(known, beaten, 0)]
    codes = queries.codes
    if not known.all() or (loser < 0).any() or (codes[winner] != codes[loser]).any():
        raise put_together("a row is preferred to a row that is not in its query", function)
    return queries, winner, loser


class Preferences:
    """Weighted preferences between documents of the same query.

    Use `from_pairs` to make one, because the constructor does not check its arguments. Below, y_ij
    is the weight of the preference for row i over row j, 0 if there is no such pair. Both y_ij and
    y_ji can be positive.

    Parameters
    ----------
    queries : Queries
        The queries of the n_rows rows.
    winner, loser : ndarray of shape (n_pairs,)
        Row numbers (int64) of the preferred and the other row of each pair, in the same query.
        Pairs are distinct and sorted by query, then winner, then loser.
    weight : ndarray of shape (n_pairs,)
        y_ij >= 0 of each pair (float64).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal.queries import Queries
    >>> from sklearn_rankcal.labels import Preferences
    >>> rows = np.array([[1, 0], [0, 2], [1, 0]])
    >>> preferences = Preferences.from_pairs(*rows.T, np.ones(3), Queries.single(3))
    >>> preferences.winner.tolist(), preferences.loser.tolist(), preferences.weight.tolist()
    ([0, 1], [2, 0], [1.0, 2.0])
    """

    def __init__(self, queries: Queries, winner: Ints, loser: Ints, weight: Floats) -> None:
        self.queries = queries
        self.winner = winner
        self.loser = loser
        self.weight = weight
        self.n_rows = queries.n_rows
        self._pair_query = queries.codes[winner]  # query of each pair, ascending
        self._pair_offsets: Ints | None = None

    @classmethod
    def from_pairs(cls, winner: Ints, loser: Ints, weight: Floats, queries: Queries) -> Preferences:
        """Make preferences from pairs in any order. Weights of equal pairs are added up.

        Parameters
        ----------
        winner, loser : ndarray of shape (n_pairs,)
            Row numbers (int64) of the preferred and the other row of each pair.
        weight : ndarray of shape (n_pairs,)
            Weight of each pair, >= 0.
        queries : Queries
            The queries of the rows.

        Returns
        -------
        preferences : Preferences
            The distinct pairs in sorted order. The cost is O(n_pairs log n_pairs).
        """
        first, second = winner, loser
        if queries.order is not None:
            place = queries.scatter(np.arange(queries.n_rows))
            first, second = place[winner], place[loser]
        # Keys sort by (query, winner, loser). If they ascend strictly, the pairs are already sorted
        # and distinct.
        key = first * queries.n_rows + second
        if (key[1:] <= key[:-1]).any():
            chosen, (weight,) = merge_pairs(first, second, (weight,), queries)
            winner, loser = winner[chosen], loser[chosen]
        return cls(queries, winner, loser, weight)

    @property
    def pair_offsets(self) -> Ints:
        """Offsets of the pairs of each query, of shape (n_queries + 1,).

        Query q has the pairs ``pair_offsets[q]`` to ``pair_offsets[q + 1] - 1``.
        """
        if self._pair_offsets is None:
            counts = np.bincount(self._pair_query, minlength=self.queries.n_queries)
            self._pair_offsets = np.concatenate([[0], np.cumsum(counts)])
        return self._pair_offsets

    def total(self) -> Floats:
        """Return the total weight of the pairs of each query, of shape (n_queries,)."""
        sums = np.bincount(self._pair_query, self.weight, self.queries.n_queries)
        return sums.astype(np.float64, copy=False)  # without pairs, bincount returns integers

    def matrices(self, inside: Ints) -> Floats:
        """Return the weights y_ij of some queries as matrices, padded with 0.

        Parameters
        ----------
        inside : ndarray of shape (n, width)
            Places of n queries: an array yielded by `Queries.buckets`, or some of its rows.

        Returns
        -------
        matrices : ndarray of shape (n, width, width)
            ``matrices[m, i, j]`` is the weight of the preference for document i over document j of
            query m. Documents are numbered as in the grouped layout. The cost is O(n width^2).
        """
        n, width = inside.shape
        queries = self.queries
        q = np.searchsorted(queries.offsets, inside[:, 0], side="right") - 1
        pair, starts = ranges(self.pair_offsets, q)
        place = queries.scatter(queries.place)
        matrices = np.zeros((n, width, width))
        member = np.repeat(np.arange(n), np.diff(starts))
        matrices[member, place[self.winner[pair]], place[self.loser[pair]]] = self.weight[pair]
        return matrices

    def take_rows(self, rows: Ints, queries: Queries) -> Preferences:
        """Take some rows with these queries. Pairs with any other row are dropped."""
        new = np.full(self.n_rows, -1)  # the new number of each row, -1 if it is not taken
        new[rows] = np.arange(len(rows))
        winner, loser = new[self.winner], new[self.loser]
        kept = (winner >= 0) & (loser >= 0)
        return Preferences.from_pairs(winner[kept], loser[kept], self.weight[kept], queries)


def merge_pairs(
    first: Ints, second: Ints, weights: tuple[Floats, ...], queries: Queries
) -> tuple[Ints, tuple[Floats, ...]]:
    """Sort the distinct pairs of places, and add up each of `weights` over equal pairs.

    Return the index of one pair for each distinct pair, in the order of (first, second), and the
    sums. A query with r rows has r^2 possible pairs. If the total is not much larger than n_pairs,
    the cost is O(n_pairs + sum of r^2), otherwise O(n_pairs log n_pairs).
    """
    n_pairs, sizes = len(first), queries.sizes
    n_possible = float((sizes.astype(np.float64) ** 2).sum())
    if n_possible <= _TABLE_ENTRIES_PER_PAIR * n_pairs:
        # In a table of all possible pairs, the pairs with the first place p begin at
        # `row_start[p]` + the first place of the query.
        row_start = np.cumsum(queries.repeat(sizes)) - queries.repeat(sizes + queries.offsets[:-1])
        key = row_start[first] + second
        length = int(n_possible)
        table = np.full(length, -1)
        table[key] = np.arange(n_pairs)
        kept = np.flatnonzero(table >= 0)
        # without pairs, bincount returns integers
        sums = [np.bincount(key, weight, length)[kept] for weight in weights]
        return table[kept], tuple(np.asarray(sums, dtype=np.float64))
    key = first * queries.n_rows + second
    order = np.argsort(key, kind="stable")
    key = key[order]
    starts = np.flatnonzero(np.append(True, key[1:] != key[:-1])[: len(key)])
    if len(starts) == len(key):
        return order, tuple(weight[order] for weight in weights)
    return order[starts], tuple(np.add.reduceat(weight[order], starts) for weight in weights)


#: One relevance per row, or weighted preferences between rows.
Labels = NDArray[np.float64] | Preferences


def read_labels(y: Any, n_rows: int | None = None) -> tuple[Labels, Queries | None]:
    """Read relevance (NaN if not judged) or preferences, and the queries of structured labels."""
    names = y.dtype.names if isinstance(y, np.ndarray) else None
    if names is None:
        return check_relevance(y, n_rows, unjudged=True), None
    if names == PREFERENCE_DTYPE.names:
        preferences = read_preferences(y, n_rows)
        return preferences, preferences.queries
    if "clicks" in names:
        raise ValueError(
            "The labels come from click_labels(shown, clicked, groups). Clicks must be aggregated "
            "to relevance: use loss=AggregatedLoss('dcg', 'inverse_propensity'), or "
            "AggregatedLoss('err', 'cascade')."
        )
    return read_relevance(y, n_rows, unjudged=True)


def take_labels(labels: Any, rows: NDArray[np.int64], queries: Queries) -> Any:
    """Take the labels of some rows with these queries. Pairs with any other row are dropped."""
    return labels[rows] if isinstance(labels, np.ndarray) else labels.take_rows(rows, queries)
