"""Read votes between two items: pairs, columns with a winner, their details and times."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.labels._item_ids import (
    check_length,
    check_same_index,
    check_weight,
    ids_of_list,
    number_column,
    number_ids,
    place_items,
    read_count,
    read_groups,
    read_ids,
    read_judges,
    read_marks,
    show_id,
)
from sklearn_rankcal.labels._rankings import Comparisons
from sklearn_rankcal.queries._queries import number_values
from sklearn_rankcal.utils._messages import check_number, counted, warn
from sklearn_rankcal.utils._numbers import (
    Bools,
    Floats,
    Ints,
    check_no_mask,
    check_no_name,
    frame_columns,
    is_missing,
    read_numbers,
)

Arguments = dict[str, Any]

#: Words for the two items in a column of winners, unless their columns have these names.
_FIRST, _SECOND = "model_a", "model_b"
_OF_VOTES = ("covariates", "time")
_MEANINGS = ("the first item", "the second item", "a tie", "no answer")
#: Stands for a missing winner.
_NO_ANSWER = "no answer"


def from_pairs(
    pairs: Any, tied: ArrayLike | None, probability: ArrayLike | None, **options: Any
) -> Arguments:
    check_same_index(pairs=pairs, tied=tied, probability=probability, **options)
    codes, different = number_ids(_read_pairs(pairs), "pairs", lambda place: f"pair {place // 2}")
    share, marks = np.ones(len(codes) // 2), np.zeros(len(codes) // 2, dtype=bool)
    if tied is not None:
        check_length(marks := read_marks(tied, "tied"), len(share), "tied", "pairs")
    if tied is not None or probability is not None:
        share = _read_shares(probability, marks, "pairs")
    return _of_ids(codes, different, "pair", share, share < 0.5, **options)


def from_votes(
    first: Any, second: Any, winner: Any, words: dict[str, Any], details: dict[str, Any],
    probability: ArrayLike | None, **options: Any,
) -> tuple[Arguments, Bools | None]:  # fmt: skip
    """Return the arguments, and which votes have an answer (None without words for no answer)."""
    no_answer = as_list(words["refused"])
    if any(is_missing(word) for word in no_answer):
        no_answer = [_NO_ANSWER, *(word for word in no_answer if not is_missing(word))]
        read_ids(winner, "winner")  # or an error about it
        filled = [_NO_ANSWER if is_missing(word) else word for word in winner]
        winner = type(winner)(filled, index=winner.index) if hasattr(winner, "iloc") else filled
    columns = {"first": first, "second": second, "winner": winner}
    check_same_index(**columns, probability=probability, **options, **details)
    found = [number_column(columns[name], name, "row {}".format) for name in ("first", "second")]
    try:
        found.append(number_column(winner, "winner", "row {}".format))
    except ValueError as error:
        if "missing" not in str(error):
            raise
        raise ValueError(
            f"{error} If it is a vote without an answer, pass refused=None to count and drop "
            "such votes."
        ) from error
    n = len(found[0][0])
    if n == 0:
        raise ValueError("first is empty: at least one vote is needed.")
    for name, (codes, _) in zip(columns, found, strict=True):
        check_length(codes, n, name, "first")
    outcome = _read_winners(found, _words(first, second, words["tie"], no_answer))
    share = _read_shares(probability, outcome >= 2, "votes")
    second_won = (outcome == 1) != (share < 0.5)
    read = _of_ids(*_side_by_side(*found[:2]), "row", share, second_won, **options)
    if options["judgement"] is None:
        index = first.index if hasattr(first, "iloc") else None
        read["details"] = read_details(second_won, n=n, index=index, **details)
    elif details["position"] is not False or any(details[k] is not None for k in _OF_VOTES):
        raise ValueError(
            "judgement cannot be combined with position, covariates or time. If several "
            "votes belong to one person or session, pass judge=."
        )
    return read, (outcome < 3 if no_answer else None)


def _of_ids(
    codes: Ints,
    different: NDArray[Any],
    unit: str,
    share: Floats,
    reverse: Bools,
    *,
    groups: ArrayLike | None,
    weight: ArrayLike | None,
    count: ArrayLike | None,
    judgement: ArrayLike | None,
    judge: ArrayLike | None,
    items: Any,
) -> Arguments:
    """Make the arguments from the numbers of ids, of shape (2 n_pairs,), and the different ids.

    The two ids of a pair are adjacent. `unit` is the user's word for a pair, and `reverse` marks
    the pairs with the preferred item in second place. `share` has the probability of each winner.
    """
    n = len(codes) // 2
    query, group_ids = read_groups(groups, items, n, "pairs")
    where = lambda place: f"{unit} {place // 2}"  # noqa: E731
    queries, names, rows = place_items(
        codes, different, np.repeat(query, 2), group_ids, items, "pairs", where
    )
    winner, loser = rows[::2], rows[1::2]
    if (winner == loser).any():
        k = int(np.argmax(winner == loser))
        raise ValueError(
            f"{unit.capitalize()} {k} compares item {show_id(names[winner[k]])} with itself."
        )
    winner, loser = np.where(reverse, loser, winner), np.where(reverse, winner, loser)
    weights = None if weight is None else check_weight(weight, n, "weight", "pairs")
    if count is not None and (judgement is not None or judge is not None):
        raise ValueError(
            "count cannot be combined with judgement or judge: a pair with a count stands "
            "for judgements of different judges."
        )
    judge_code, judges = (None, None) if judge is None else read_judges(judge, n, "pairs")
    share = np.maximum(share, 1 - share)
    owner = offsets = None
    if judgement is not None:
        owner, query, order = number_judgements(judgement, query, n)
        winner, loser = winner[order], loser[order]
        weights = None if weights is None else weights[order]
        share = share[order]
        offsets = np.append(0, np.cumsum(np.bincount(owner)))
        if judge_code is not None:
            judge_code = _one_judge(judge_code[order], offsets, judges)
    if (share < 1).any():
        owner = np.arange(n) if owner is None else owner
        winner, loser, weights, offsets = _split(winner, loser, weights, share, owner)
    return {
        "queries": queries,
        "items": names,
        "query": query,
        "comparisons": Comparisons(winner, loser, weights, offsets),
        "count": None if count is None else read_count(count, n, "pairs"),
        "judge": judge_code,
        "judges": judges,
    }


# ---------------------------------------------------------------- pairs


def _read_pairs(pairs: Any) -> NDArray[Any]:
    """Return the ids of pairs as an array of shape (2 n_pairs,); the ids of a pair are adjacent."""
    columns = None
    if not isinstance(pairs, list):
        check_no_mask(pairs, "pairs")
        columns = frame_columns(pairs)
    if columns is not None:
        one, other = (read_ids(column, "pairs") for column in _preferred_first(pairs, columns))
        pairs = np.column_stack(_same_kind(one, other))
    if isinstance(pairs, np.ndarray):
        if pairs.size == 0:
            raise ValueError("pairs is empty: at least one comparison is needed.")
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise ValueError(
                "pairs must have shape (n_pairs, 2), for the preferred and the other item; "
                f"it has shape {pairs.shape}. Pass weights as weight= and queries as groups=."
            )
        return read_ids(pairs.reshape(-1), "pairs")
    if isinstance(pairs, (str, bytes, Mapping)) or not isinstance(pairs, Iterable):
        raise ValueError(f"pairs must be a sequence of (preferred, other); got {pairs!r}.")
    ids: list[Any] = []
    for k, pair in enumerate(pairs):  # a loop over a list of the user's
        if isinstance(pair, (str, bytes)) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise ValueError(
                f"Entry {k} of pairs is {pair!r}, but an entry must have two items: "
                "(preferred, other). Use Judgements.from_orders for orders of several "
                "items, and Judgements.from_votes for votes with a column of winners."
            )
        ids.extend(pair)
    if not ids:
        raise ValueError("pairs is empty: at least one comparison is needed.")
    return ids_of_list(ids)


def _preferred_first(pairs: Any, columns: list[Any]) -> list[Any]:
    """Return the two columns of a frame of pairs, the preferred items first.

    Columns without names (numbered by the library) are read by position. Other names raise an
    error, because they could be misread.
    """
    names = list(pairs.columns)
    if len(names) == 2 and set(names) == {"winner", "loser"}:
        return [columns[names.index(name)] for name in ("winner", "loser")]
    if names in ([0, 1], ["column_0", "column_1"]):
        return columns
    raise ValueError(
        f"The data frame of pairs has the columns {', '.join(map(show_id, names))}, but must have "
        "'winner' and 'loser': pass frame[['winner', 'loser']], and other columns by name. If a "
        "column names the winner, use Judgements.from_votes(first, second, winner)."
    )


def _same_kind(one: NDArray[Any], other: NDArray[Any]) -> list[NDArray[Any]]:
    """Convert two columns of ids to objects, unless both are numbers or both are text."""
    if one.dtype.kind == other.dtype.kind:
        return [one, other]
    return [one.astype(object), other.astype(object)]


def _side_by_side(
    first: tuple[Ints, NDArray[Any]], second: tuple[Ints, NDArray[Any]]
) -> tuple[Ints, NDArray[Any]]:
    """Number the ids of two columns jointly, in the order one, other, one, other."""
    numbers, different = number_ids(np.concatenate(_same_kind(first[1], second[1])), "votes")
    start = len(first[1])
    codes = np.column_stack([numbers[:start][first[0]], numbers[start:][second[0]]]).reshape(-1)
    codes, seen = number_values(codes)
    return codes, different[seen]


# ---------------------------------------------------------------- votes


def as_list(words: Any) -> list[Any]:
    """Return several words, or a single one, as a list."""
    return list(words) if isinstance(words, (list, tuple, set, frozenset)) else [words]


def _words(first: Any, second: Any, tie: Any, no_answer: list[Any]) -> dict[Any, int]:
    """Return the words that a winner can be besides an item, with their index in `_MEANINGS`."""
    names = [getattr(column, "name", None) for column in (first, second)]
    own = {name: k for k, name in enumerate(names) if isinstance(name, str)}
    words: dict[Any, int] = own if len(own) == 2 else {}
    if not {_FIRST, _SECOND} & set(words):
        words |= {_FIRST: 0, _SECOND: 1}
    for name, meaning, given in (("tie", 2, as_list(tie)), ("refused", 3, no_answer)):
        for word in given:
            if words.setdefault(word, meaning) != meaning:
                raise ValueError(
                    f"{name} is {show_id(word)}, which is the word for {_MEANINGS[words[word]]}."
                )
    return words


def _read_winners(columns: list[tuple[Ints, NDArray[Any]]], words: dict[Any, int]) -> Ints:
    """Return the outcome of each vote, an index in `_MEANINGS`.

    `columns` has the numbers and the different values of first, second and winner.
    """
    values = [different.astype(object) for _, different in columns]
    numbers, different = number_ids(np.concatenate(values), "votes")
    parts = np.split(numbers, np.cumsum([len(some) for some in values])[:-1])
    first, second, winner = (part[codes] for part, (codes, _) in zip(parts, columns, strict=True))
    meaning = np.array([words.get(value, -1) for value in different.tolist()])
    by_word = meaning[winner]
    by_name = np.where(winner == first, 0, np.where(winner == second, 1, -1))
    doubtful = (by_name >= 0) & (by_word >= 0) & (by_name != by_word) & (first != second)
    outcome = np.where(by_name >= 0, by_name, by_word)
    if doubtful.any():
        k = int(np.argmax(doubtful))
        raise ValueError(
            f"Row {k} has the winner {show_id(different[winner[k]])}, which is both an item "
            f"of the row and the word for {_MEANINGS[by_word[k]]}. Rename the item."
        )
    if (outcome < 0).any():
        k = int(np.argmax(outcome < 0))
        raise ValueError(
            f"Row {k} has the winner {show_id(different[winner[k]])}. It must be one of the items "
            f"of the row, {show_id(different[first[k]])} and {show_id(different[second[k]])}, or "
            f"one of the words {', '.join(map(show_id, words))}: replace other words for the items "
            "by these, or pass words for a tie as tie=, and for no answer as refused=."
        )
    return outcome


# ---------------------------------------------------------------- judgements of several pairs


def number_judgements(judgement: ArrayLike, query: Ints, n: int) -> tuple[Ints, Ints, Ints]:
    """Return the ascending judgement of each pair, the query of each judgement, and the order."""
    codes, ids = number_ids(read_ids(judgement, "judgement"), "judgement")
    check_length(codes, n, "judgement", "pairs")
    # The same id in two queries means two judgements.
    numbers, keys = number_ids(query * len(ids) + codes, "judgement")
    order = np.argsort(numbers, kind="stable")
    return numbers[order], keys // len(ids), order


def _one_judge(judge: Ints, offsets: Ints, judges: Any) -> Ints:
    """Return the judge of each judgement; its pairs must have the same judge."""
    first = judge[offsets[:-1]]
    repeated = np.repeat(first, np.diff(offsets))
    if (judge != repeated).any():
        k = int(np.argmax(judge != repeated))
        raise ValueError(
            f"A judgement has the judges {show_id(judges[repeated[k]])} and "
            f"{show_id(judges[judge[k]])}. All pairs of a judgement come from one judge."
        )
    return first


def _read_shares(probability: ArrayLike | None, tied: Bools, name: str) -> Floats:
    """Return the probability that each named winner is preferred: one half if nobody won."""
    if probability is None:
        return np.where(tied, 0.5, 1.0)
    share = read_numbers(probability, "probability", missing=True)
    check_length(share, len(tied), "probability", name)
    share = np.where(tied, 0.5, share)
    if len(bad := np.flatnonzero(~((share >= 0) & (share <= 1)))):
        raise ValueError(
            f"probability must be between 0 and 1; entry {bad[0]} is {share[bad[0]]:g}. For "
            "log-odds, pass scipy.special.expit(log_odds)."
        )
    return share


def _split(
    winner: Ints, loser: Ints, weight: Floats | None, share: Floats, owner: Ints
) -> tuple[Ints, Ints, Floats, Ints]:
    """Replace votes that are not certain with two opposite comparisons that share the weight."""
    weights = np.ones(len(winner)) if weight is None else weight
    at = np.repeat(np.arange(len(winner)), np.where(share < 1, 2, 1))
    second = np.append(False, at[1:] == at[:-1])
    return (
        np.where(second, loser[at], winner[at]),
        np.where(second, winner[at], loser[at]),
        weights[at] * np.where(second, 1 - share[at], share[at]),
        np.append(0, np.cumsum(np.bincount(owner[at]))),
    )


# ---------------------------------------------------------------- details of votes


#: The covariate of the item that is shown first or plays at home.
POSITION = "position"


class VoteDetails(NamedTuple):
    """Details of votes, in addition to items, winner and judge.

    Attributes
    ----------
    second_won : ndarray of bool of shape (n_votes,)
        Whether the second item won. False for ties.
    covariates : ndarray of shape (n_votes, n_covariates)
        Positive values favour the first item.
    names : tuple of str
        The name of each covariate.
    time : ndarray of shape (n_votes,) or None
        The time of each vote.
    index : pandas.Index or None
        The index of the columns that the votes were read from.
    """

    second_won: Bools
    covariates: Floats
    names: tuple[str, ...]
    time: NDArray[Any] | None
    index: Any = None

    def take(self, votes: Ints) -> VoteDetails:
        return self._replace(
            second_won=self.second_won[votes],
            covariates=self.covariates[votes],
            time=None if self.time is None else self.time[votes],
            index=None if self.index is None else self.index[votes],
        )


def read_details(
    second_won: Bools, covariates: Any, position: Any, time: Any, n: int, index: Any
) -> VoteDetails:
    """Read the details of n votes."""
    columns: list[Floats] = []
    names: list[str] = []
    if not isinstance(position, bool | np.bool_) or position:
        columns.append(_read_position(position, n)[:, None])
        names.append(POSITION)
    if covariates is not None:
        values, found = read_columns(covariates, "covariates")
        check_rows(values, n, "covariates", "votes")
        columns.append(values)
        names += found
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"Two covariates have the name {sorted(twice)[0]!r}.")
    joined = np.hstack(columns) if columns else np.zeros((n, 0))
    return VoteDetails(second_won, joined, tuple(names), read_time(time, n), index)


def read_columns(values: Any, name: str) -> tuple[Floats, list[str]]:
    """Return a table of finite numbers, and the names of its columns."""
    check_no_name(values, name)
    columns = getattr(values, "columns", None)
    if columns is None and hasattr(values, "name") and getattr(values, "ndim", 1) == 1:
        columns = [values.name if values.name is not None else 0]  # a series
    table = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2:
        raise ValueError(
            f"{name} must be a table with one column each; it has shape {table.shape}."
        )
    own = columns is not None
    names = [str(c) for c in columns] if own else [f"x{k}" for k in range(table.shape[1])]  # type: ignore[union-attr]
    read = []
    for k, title in enumerate(names):  # a loop over columns
        try:
            column = read_numbers(table[:, k], f"{name} {title!r}")
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"{name} {title!r} must be numbers: {error} Convert categories to columns of "
                "0 and 1, for example with pandas.get_dummies."
            ) from error
        bad = ~np.isfinite(column)
        if bad.any():
            raise ValueError(
                f"{name} {title!r} is {column[bad][0]} in {counted(bad.sum(), 'row')}, first "
                f"in row {int(np.argmax(bad))}. Drop these rows, or fill in values."
            )
        read.append(column)
    return np.column_stack(read) if read else np.zeros((len(table), 0)), names


def check_rows(values: Floats, n: int, name: str, other: str) -> None:
    if len(values) != n:
        raise ValueError(f"{name} has {counted(len(values), 'row')}, but there are {n} {other}.")


def read_item_features(features: Any, items: NDArray[Any]) -> tuple[Floats, tuple[str, ...]]:
    """Return the features of each item from a frame indexed by item id."""
    if not hasattr(features, "columns") or not hasattr(features, "index"):
        raise TypeError(
            "item_features must be a pandas data frame with the ids of the items as its "
            "index. Use frame.set_index('item') for a column of ids, or series.to_frame() "
            "for a series; got "
            f"{type(features).__module__.partition('.')[0]}.{type(features).__name__}."
        )
    ids = read_ids(features.index, "the index of item_features")
    if len(number_ids(ids, "the index of item_features")[1]) < len(ids):
        raise ValueError("The index of item_features has duplicate ids.")
    place = {value: k for k, value in enumerate(ids.tolist())}
    unused = place.keys() - items.tolist()
    missing = [item for item in items.tolist() if item not in place]
    if missing:
        holding = [name for name in features.columns if (features[name] == missing[0]).any()]
        hint = f" Pass item_features.set_index({holding[0]!r})." if holding else ""
        raise ValueError(
            f"The index of item_features lacks {counted(len(missing), 'item')}, such as "
            f"{show_id(missing[0])}.{hint}"
        )
    if unused:
        example = next(value for value in place if value in unused)
        warn(
            f"item_features has {counted(len(unused), 'item')} without votes, such as "
            f"{show_id(example)}, which are dropped. To rank them too, pass items=features.index "
            "and BradleyTerry(own_effects=False)."
        )
    values, names = read_columns(features, "item_features")
    return values[[place[item] for item in items.tolist()]], tuple(names)


def _read_position(position: Any, n: int) -> Floats:
    """Return 1 if the first item has the advantage, -1 if the second has it, else 0."""
    if isinstance(position, bool | np.bool_):
        return np.ones(n)
    array = np.asarray(position)
    texts = array.dtype.kind in "OSUT" and any(isinstance(one, str) for one in array.ravel())
    halves = array.dtype.kind == "b" and array.any() and not array.all()
    if texts or halves:
        raise ValueError(
            (
                f"position has {'text' if texts else 'booleans'}, but must be 1 if the first "
                "item has the advantage, -1 if the second has it, and 0 otherwise. If a column "
                "names the item at home, pass position=(home == first).astype(int) - (home == "
                "second).astype(int)."
            )
            + ("" if texts else " If False is neutral ground, pass position.astype(int).")
        )
    values = read_numbers(position, "position")
    check_length(values, n, "position", "the votes")
    known = np.isin(values, (-1.0, 0.0, 1.0))
    if not known.all():
        k = int(np.argmin(known))
        raise ValueError(
            "position must be True, or 1 (the first item has the advantage), -1 (the second "
            f"has it) or 0 (neither) for each vote; row {k} has {values[k]:g}."
        )
    return values


# ---------------------------------------------------------------- times


#: The time zone at the end of a time stamp, such as Z or +02:00.
_ZONE = re.compile(r":\d\d(\.\d+)?\s*(Z|[+-]\d\d:?(\d\d)?)$", re.IGNORECASE)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_DURATION = re.compile(
    r"\s*([0-9]*\.?[0-9]+)\s*(s|seconds?|min|minutes?|h|hours?|d|days?|w|weeks?)\s*", re.IGNORECASE
)


def weights_by_age(time: NDArray[Any], half_life: Any, now: Any) -> Floats:
    """Return the weight of each vote by its age; see `Judgements.faded`."""
    last = time.max() if now is None else read_moment(now, time, "now")
    later = time > last
    if later.any():
        raise ValueError(
            f"now={last} is before {counted(later.sum(), 'vote')}. Leave out later votes "
            "with judgements.between(None, now)."
        )
    return np.asarray(np.exp2(-((last - time) / read_duration(half_life, time, "half_life"))))


def in_period(time: NDArray[Any], start: Any, end: Any) -> Bools:
    """Return which votes are in a period; see `Judgements.between`."""
    kept = np.ones(len(time), dtype=bool)
    if start is not None:
        kept &= time >= read_moment(start, time, "start")
    if end is not None:
        kept &= time < read_moment(end, time, "end")
    if not kept.any():
        raise ValueError(
            f"No vote is between {start} and {end}; the first is at {time.min()}, the last at "
            f"{time.max()}."
        )
    return kept


def read_moment(value: Any, time: NDArray[Any], name: str) -> Any:
    """Return a point in time in the format of the times: a number or a time stamp."""
    read = read_time([value], 1, name)
    assert read is not None
    if (read.dtype.kind == "M") != (time.dtype.kind == "M"):
        kinds = ("a time stamp", "a number")
        wanted, came = kinds if time.dtype.kind == "M" else kinds[::-1]
        raise ValueError(f"{name} must be {wanted}, like the times of the votes; got {came}.")
    return read[0]


def read_duration(value: Any, time: NDArray[Any], name: str) -> Any:
    """Return a duration > 0 in the unit of differences of the times."""
    if time.dtype.kind != "M":
        if isinstance(value, str | np.timedelta64 | datetime.timedelta):
            raise ValueError(
                f"{name} must be a number, like the times of the votes; got {value!r}."
            )
        check_number(value, name)
        return float(value)
    seconds = np.nan
    if isinstance(value, str) and (match := _DURATION.fullmatch(value)):
        seconds = float(match[1]) * _SECONDS[match[2][0].lower()]
    elif isinstance(value, datetime.timedelta):
        seconds = value.total_seconds()
    elif isinstance(value, np.timedelta64):
        seconds = float(value / np.timedelta64(1, "s"))
    if not seconds > 0:
        raise ValueError(
            f"{name} must be a duration > 0, such as '30 days', '12 hours' or a timedelta, because "
            f"the times of the votes are time stamps; got {value!r}."
        )
    return np.timedelta64(round(seconds * 1e6), "us")


def read_time(time: Any, n: int, name: str = "time") -> NDArray[Any] | None:
    """Return times as numbers or numpy.datetime64; ValueError if one is missing."""
    if time is None:
        return None
    check_no_name(time, name)
    values = time.to_numpy() if hasattr(time, "to_numpy") else np.asarray(time)
    check_length(values, n, name, "the votes")
    if values.dtype.kind in "OU":
        listed = values.tolist()
        absent = [k for k, value in enumerate(listed) if is_missing(value)]
        if absent:
            raise ValueError(_missing_times(name, len(absent), absent[0]))
        zoned = _has_zones(listed, name)
        try:
            values = np.array(
                [_to_utc(value) for value in listed] if zoned else listed, dtype="datetime64[us]"
            )
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"{name} must be numbers or time stamps, for example from "
                f"pandas.to_datetime: {error}"
            ) from error
    if values.dtype.kind == "M":
        missing = np.isnat(values)
    else:
        values = read_numbers(values, name)
        missing = ~np.isfinite(values)
    if missing.any():
        raise ValueError(_missing_times(name, int(missing.sum()), int(np.argmax(missing))))
    return values


def _missing_times(name: str, n: int, row: int) -> str:
    return f"{name} is missing for {counted(n, 'vote')}, first in row {row}."


def _has_zones(listed: list[Any], name: str) -> bool:
    """Whether time stamps have a time zone; raise ValueError if only some of them do."""
    zoned = [
        _ZONE.search(value) is not None
        if isinstance(value, str)
        else getattr(value, "tzinfo", None) is not None
        for value in listed
    ]
    if any(zoned) and not all(zoned):
        row = zoned.index(not zoned[0])
        raise ValueError(
            f"{name} mixes time stamps with and without a time zone: row 0 has {listed[0]}, "
            f"and row {row} {listed[row]}. Convert all of them, for example with "
            "pandas.to_datetime(time, utc=True)."
        )
    return any(zoned)


def _to_utc(value: Any) -> datetime.datetime:
    if isinstance(value, str):
        value = datetime.datetime.fromisoformat(value)
    utc: datetime.datetime = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return utc
