"""Convert comparisons of two items to arguments of `Judgements`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.aggregation._contests import read_details
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
from sklearn_rankcal.utils._numbers import check_no_mask, frame_columns, is_missing
from sklearn_rankcal.utils._typing import Bools, Floats, Ints

Arguments = dict[str, Any]

#: Words for the two items in a column of winners, unless their columns have these names.
_FIRST, _SECOND = "model_a", "model_b"
_OF_VOTES = ("covariates", "time")
_MEANINGS = ("the first item", "the second item", "a tie", "no answer")
#: Stands for a missing winner.
_NO_ANSWER = "no answer"


def from_pairs(pairs: Any, tied: ArrayLike | None, **options: Any) -> Arguments:
    check_same_index(pairs=pairs, tied=tied, **options)
    found = number_ids(_read_pairs(pairs), "pairs", lambda place: f"pair {place // 2}")
    marks = None if tied is None else read_marks(tied, "tied")
    return _of_ids(*found, "pair", marks, None, **options)


def from_votes(
    first: Any, second: Any, winner: Any, words: dict[str, Any], details: dict[str, Any],
    **options: Any,
) -> tuple[Arguments, Bools | None]:  # fmt: skip
    """Return the arguments, and which votes have an answer (None without words for no answer)."""
    no_answer = _as_list(words["refused"])
    if any(is_missing(word) for word in no_answer):
        no_answer = [_NO_ANSWER, *(word for word in no_answer if not is_missing(word))]
        read_ids(winner, "winner")  # or an error about it
        filled = [_NO_ANSWER if is_missing(word) else word for word in winner]
        winner = type(winner)(filled, index=winner.index) if hasattr(winner, "iloc") else filled
    columns = {"first": first, "second": second, "winner": winner}
    check_same_index(**columns, **options, **details)
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
    tied = outcome >= 2 if (outcome >= 2).any() else None
    read = _of_ids(*_side_by_side(*found[:2]), "row", tied, outcome == 1, **options)
    if options["judgement"] is None:
        index = first.index if hasattr(first, "iloc") else None
        read["details"] = read_details(outcome == 1, n=n, index=index, **details)
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
    tied: Bools | None,
    reverse: Bools | None,
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
    the pairs with the preferred item in second place.
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
    if reverse is not None:
        winner, loser = np.where(reverse, loser, winner), np.where(reverse, winner, loser)
    weights = None if weight is None else check_weight(weight, n, "weight", "pairs")
    if count is not None and (judgement is not None or judge is not None):
        raise ValueError(
            "count cannot be combined with judgement or judge: a pair with a count stands "
            "for judgements of different judges."
        )
    judge_code, judges = read_judges(judge, n, "pairs")
    if tied is not None:
        check_length(tied, n, "tied", "pairs")
    owner = offsets = None
    if judgement is not None:
        owner, query, order = number_judgements(judgement, query, n)
        winner, loser = winner[order], loser[order]
        weights = None if weights is None else weights[order]
        tied = None if tied is None else tied[order]
        offsets = np.append(0, np.cumsum(np.bincount(owner)))
        if judge_code is not None:
            judge_code = _one_judge(judge_code[order], offsets, judges)
    if tied is not None:
        owner = np.arange(n) if owner is None else owner
        winner, loser, weights, offsets = _split_ties(winner, loser, weights, tied, owner)
    return {
        "queries": queries,
        "items": names,
        "query": query,
        "comparisons": Comparisons(winner, loser, weights, offsets),
        "count": read_count(count, n, "pairs"),
        "judge": judge_code,
        "judges": judges,
    }


# ---------------------------------------------------------------- pairs


def _read_pairs(pairs: Any) -> NDArray[Any]:
    """Return the ids of pairs as an array of shape (2 n_pairs,); the ids of a pair are adjacent."""
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
        f"The data frame of pairs has the columns {', '.join(map(show_id, names))}, but it "
        "must have the columns 'winner' and 'loser', in any order. Pass frame[['winner', "
        "'loser']], and other columns by name. If a column names the winner, use "
        "Judgements.from_votes(first, second, winner)."
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


def _as_list(words: Any) -> list[Any]:
    return list(words) if isinstance(words, (list, tuple, set, frozenset)) else [words]


def _words(first: Any, second: Any, tie: Any, no_answer: list[Any]) -> dict[Any, int]:
    """Return the words that a winner can be besides an item, with their index in `_MEANINGS`."""
    names = [getattr(column, "name", None) for column in (first, second)]
    own = {name: k for k, name in enumerate(names) if isinstance(name, str)}
    words: dict[Any, int] = own if len(own) == 2 else {}
    if not {_FIRST, _SECOND} & set(words):
        words |= {_FIRST: 0, _SECOND: 1}
    for name, meaning, given in (("tie", 2, _as_list(tie)), ("refused", 3, no_answer)):
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
            f"Row {k} has the winner {show_id(different[winner[k]])}. It must be one of the "
            f"items of the row, {show_id(different[first[k]])} and "
            f"{show_id(different[second[k]])}, or one of the words "
            f"{', '.join(map(show_id, words))}. Replace other words for the two items by "
            "these. Pass other words for a tie as tie=, and words for votes without an "
            "answer as refused=."
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


def _split_ties(
    winner: Ints, loser: Ints, weight: Floats | None, tied: Bools, owner: Ints
) -> tuple[Ints, Ints, Floats, Ints]:
    """Replace each tie with two opposite comparisons of half the weight."""
    weights = np.ones(len(winner)) if weight is None else weight
    at = np.repeat(np.arange(len(winner)), np.where(tied, 2, 1))
    second = np.append(False, at[1:] == at[:-1])
    return (
        np.where(second, loser[at], winner[at]),
        np.where(second, winner[at], loser[at]),
        np.where(tied, weights / 2, weights)[at],
        np.append(0, np.cumsum(np.bincount(owner[at]))),
    )
