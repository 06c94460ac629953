"""Comparisons of two items as users write them become the arguments of `Judgements`.

What comes in are pairs, or a table of votes between two items. Each function checks its arguments
and returns a dictionary of the arguments of the constructor. `Judgements` documents the formats.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.labels._checks import check_weight
from sklearn_rankcal.labels._comparisons import Comparisons
from sklearn_rankcal.labels._item_ids import (
    ids_of_list,
    known_items,
    number_ids,
    number_items,
    read_ids,
    show_id,
)
from sklearn_rankcal.labels._judgement_columns import (
    check_length,
    check_same_index,
    read_count,
    read_groups,
    read_judges,
    read_tied,
)
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._numbers import check_no_mask, frame_columns

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Arguments = dict[str, Any]

#: What a column of winners can say about the two items, where their columns have other names.
_FIRST, _SECOND = "model_a", "model_b"
_MEANINGS = ("the first item", "the second item", "a tie")
#: Columns of a frame that are arguments of `from_pairs` and `from_votes`.
_OPTIONS = ("weight", "tied", "count", "judgement", "judge")


def from_pairs(pairs: Any, **options: Any) -> Arguments:
    check_same_index({"pairs": pairs, **options})
    return _of_ids(_read_pairs(pairs), "pair", **options)


def from_votes(first: Any, second: Any, winner: Any, tie: Any, **options: Any) -> Arguments:
    columns = {"first": first, "second": second, "winner": winner}
    check_same_index({**columns, **options})
    one, other, won = (read_ids(values, name) for name, values in columns.items())
    if len(one) == 0:
        raise ValueError("first is empty: at least one vote is needed.")
    for name, ids in zip(columns, (one, other, won), strict=True):
        check_length(ids, len(one), name, "first")
        number_ids(ids, name, "row {}".format)  # refuses missing ids
    outcome = _read_winners(one, other, won, _words(first, second, tie))
    tied = outcome == 2 if (outcome == 2).any() else None
    return _of_ids(_side_by_side(one, other), "row", tied=tied, reverse=outcome == 1, **options)


def _of_ids(
    ids: NDArray[Any],
    unit: str,
    *,
    groups: ArrayLike | None,
    weight: ArrayLike | None,
    tied: ArrayLike | None,
    count: ArrayLike | None,
    judgement: ArrayLike | None,
    judge: ArrayLike | None,
    items: Any,
    reverse: NDArray[np.bool_] | None = None,
) -> Arguments:
    """Make the arguments from the ids of shape (2 n_pairs,), the two of a pair side by side.

    `unit` is the word of the user for a pair, and `reverse` says which pairs have the preferred
    item in the second place.
    """
    n = len(ids) // 2

    def where(place: int) -> str:
        return f"{unit} {place // 2}"

    query, group_ids = read_groups(groups, n, "pairs")
    if items is None:
        codes, different = number_ids(ids, "pairs", where)
        rows, item_code, _, sizes = number_items(
            codes, len(different), np.repeat(query, 2), len(group_ids)
        )
        different = different[item_code]
    else:
        if groups is not None:
            raise ValueError("items can only be passed without groups, for a single query.")
        different, rows = known_items(items, ids, "pairs", where)
        sizes = np.array([len(different)])
    itself = rows[::2] == rows[1::2]
    if itself.any():
        k = int(np.argmax(itself))
        raise ValueError(
            f"{unit.capitalize()} {k} compares item {show_id(different[rows[2 * k]])} with itself."
        )
    winner, loser = rows[::2], rows[1::2]
    if reverse is not None:
        winner, loser = np.where(reverse, loser, winner), np.where(reverse, winner, loser)
    weights = None if weight is None else check_weight(weight, n)
    if count is not None and (judgement is not None or judge is not None):
        raise ValueError(
            "count cannot be combined with judgement or judge: a pair with a count stands for "
            "several judgements of different judges."
        )
    judge_code, judges = read_judges(judge, n, "pairs")
    owner = offsets = None
    if judgement is not None:
        owner, query, order = number_judgements(judgement, query, n)
        winner, loser = winner[order], loser[order]
        weights = None if weights is None else weights[order]
        offsets = np.append(0, np.cumsum(np.bincount(owner)))
        if judge_code is not None:
            judge_code = _one_judge(judge_code[order], offsets, judges)
    if tied is not None:
        both = read_tied(tied, n)
        both = both if owner is None else both[order]
        owner = np.arange(n) if owner is None else owner
        winner, loser, weights, offsets = _split_ties(winner, loser, weights, both, owner)
    return {
        "queries": Queries(np.append(0, np.cumsum(sizes)), None, group_ids),
        "items": different,
        "query": query,
        "comparisons": Comparisons(winner, loser, weights, offsets),
        "count": None if count is None else read_count(count, n, "pairs"),
        "judge": judge_code,
        "judges": judges,
    }


# ---------------------------------------------------------------- pairs


def _read_pairs(pairs: Any) -> NDArray[Any]:
    """Return the ids of pairs as an array of shape (2 n_pairs,), the two of a pair side by side."""
    check_no_mask(pairs, "pairs")
    columns = frame_columns(pairs)
    if columns is not None:
        one, other = _preferred_first(columns, list(pairs.columns))
        pairs = _side_by_side(read_ids(one, "pairs"), read_ids(other, "pairs")).reshape(-1, 2)
    if isinstance(pairs, np.ndarray):
        if pairs.size == 0:
            raise ValueError("pairs is empty: at least one comparison is needed.")
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise ValueError(
                "pairs must have shape (n_pairs, 2), the preferred item and the other item; it has "
                f"shape {pairs.shape}. Pass weights as weight= and queries as groups=."
            )
        flat = pairs.reshape(-1)
        return flat if flat.dtype.kind in "iufbUSmM" else flat.astype(object)
    if isinstance(pairs, (str, bytes, Mapping)) or not isinstance(pairs, Iterable):
        raise ValueError(f"pairs must be a sequence of (preferred, other); got {pairs!r}.")
    ids: list[Any] = []
    for k, pair in enumerate(pairs):  # a loop over a list of the user's
        if isinstance(pair, (str, bytes)) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise ValueError(
                f"Entry {k} of pairs is {pair!r}, but an entry has two items: (preferred, other). "
                "Read orders of several items by Judgements.from_orders, and votes with a column "
                "of winners by Judgements.from_votes."
            )
        ids.extend(pair)
    if not ids:
        raise ValueError("pairs is empty: at least one comparison is needed.")
    return ids_of_list(ids)


def _preferred_first(columns: list[Any], names: list[Any]) -> list[Any]:
    """Return the two columns of a frame of pairs, that of the preferred items first.

    The columns winner and loser are found by their names. Columns without names, which are those
    that the library has numbered, are read by their places. Anything else could be misread.
    """
    if len(names) == 2 and set(names) == {"winner", "loser"}:
        return [columns[names.index(name)] for name in ("winner", "loser")]
    if names in ([0, 1], ["column_0", "column_1"]):
        return columns
    start = f"The data frame of pairs has the columns {', '.join(map(show_id, names))}. "
    others = "".join(f", {name}=frame['{name}']" for name in _OPTIONS if name in names)
    if "winner" in names and "loser" in names:
        raise ValueError(
            f"{start}Pass two of them as pairs: "
            f"Judgements.from_pairs(frame[['winner', 'loser']]{others})."
        )
    arena = _FIRST in names and _SECOND in names
    rest = [name for name in names if name != "winner" and name not in _OPTIONS]
    if arena or ("winner" in names and len(rest) > 1):
        one, other = (_FIRST, _SECOND) if arena else rest[:2]
        raise ValueError(
            f"{start}If a column says who won, write Judgements.from_votes(frame[{show_id(one)}], "
            f"frame[{show_id(other)}], frame['winner']{others})."
        )
    raise ValueError(
        f"{start}A frame of pairs has the columns 'winner' and 'loser', in any order. Rename two "
        "columns, or pass frame[[preferred, other]].to_numpy(), the column of the preferred items "
        "first. If another column says who won, use Judgements.from_votes."
    )


def _side_by_side(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    """Return two columns of ids as one array of shape (2 n,)."""
    if one.dtype.kind != other.dtype.kind:
        one, other = one.astype(object), other.astype(object)
    return np.column_stack([one, other]).reshape(-1)


# ---------------------------------------------------------------- votes


def _words(first: Any, second: Any, tie: Any) -> dict[Any, int]:
    """Return what a winner can be, other than an item: 0 the first one, 1 the second, 2 a tie."""
    ties = list(tie) if isinstance(tie, (list, tuple, set, frozenset)) else [tie]
    names = [getattr(column, "name", None) for column in (first, second)]
    own = {name: k for k, name in enumerate(names) if isinstance(name, str)}
    words = dict(own) if len(own) == 2 else {}
    if not {_FIRST, _SECOND} & set(words):
        words |= {_FIRST: 0, _SECOND: 1}
    for word in ties:
        if words.setdefault(word, 2) != 2:
            raise ValueError(
                f"tie is {show_id(word)}, which is the word for {_MEANINGS[words[word]]}."
            )
    return words


def _read_winners(
    one: NDArray[Any], other: NDArray[Any], won: NDArray[Any], words: dict[Any, int]
) -> Ints:
    """Return the outcome of each vote: 0 the first item won, 1 the second, 2 a tie."""
    n = len(one)
    ids = np.concatenate([column.astype(object) for column in (one, other, won)])
    codes, different = number_ids(ids, "votes")
    first, second, winner = codes.reshape(3, n)
    numbers = {value: code for code, value in enumerate(different.tolist())}
    meaning = np.full(len(different), -1)
    for word, value in words.items():
        if word in numbers:
            meaning[numbers[word]] = value
    by_word = meaning[winner]
    by_name = np.where(winner == first, 0, np.where(winner == second, 1, -1))
    doubtful = (by_name >= 0) & (by_word >= 0) & (by_name != by_word) & (first != second)
    if doubtful.any():
        k = int(np.argmax(doubtful))
        raise ValueError(
            f"Row {k} has the winner {show_id(won[k])}, which is the name of one of its items and "
            f"also the word for {_MEANINGS[by_word[k]]}. Rename the item."
        )
    outcome = np.where(by_name >= 0, by_name, by_word)
    if (outcome < 0).any():
        k = int(np.argmax(outcome < 0))
        raise ValueError(
            f"Row {k} has the winner {show_id(won[k])}. It must be one of the items of the row, "
            f"{show_id(one[k])} and {show_id(other[k])}, or one of the words "
            f"{', '.join(map(show_id, words))}. Drop votes without an answer, and pass other words "
            "for a tie as tie=."
        )
    return outcome


# ---------------------------------------------------------------- judgements of several pairs


def number_judgements(judgement: ArrayLike, query: Ints, n: int) -> tuple[Ints, Ints, Ints]:
    """Return the judgement of each pair, ascending, the queries of judgements, and the order."""
    codes, ids = number_ids(read_ids(judgement, "judgement"), "judgement")
    check_length(codes, n, "judgement", "pairs")
    # The same id in two queries means two judgements.
    numbers, keys = number_ids(query * len(ids) + codes, "judgement")
    order = np.argsort(numbers, kind="stable")
    return numbers[order], keys // len(ids), order


def _one_judge(judge: Ints, offsets: Ints, judges: Any) -> Ints:
    """Return the judge of each judgement; all of its pairs must have the same."""
    first = judge[offsets[:-1]]
    other = judge != np.repeat(first, np.diff(offsets))
    if other.any():
        k = int(np.argmax(other))
        owner = int(np.searchsorted(offsets, k, side="right")) - 1
        one, two = show_id(judges[first[owner]]), show_id(judges[judge[k]])
        raise ValueError(
            f"A judgement has the judges {one} and {two}. All pairs of a judgement come from one "
            "judge."
        )
    return first


def _split_ties(
    winner: Ints, loser: Ints, weight: Floats | None, tied: NDArray[np.bool_], owner: Ints
) -> tuple[Ints, Ints, Floats, Ints]:
    """Replace each tie by two opposite comparisons of half the weight."""
    weights = np.ones(len(winner)) if weight is None else weight
    copies = np.where(tied, 2, 1)
    at = np.repeat(np.arange(len(winner)), copies)
    second = np.append(False, at[1:] == at[:-1])
    return (
        np.where(second, loser[at], winner[at]),
        np.where(second, winner[at], loser[at]),
        np.where(tied, weights / 2, weights)[at],
        np.append(0, np.cumsum(np.bincount(owner[at]))),
    )
