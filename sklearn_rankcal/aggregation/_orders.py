"""Convert orders, ranks, selections, elections and labels to arguments of `Judgements`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.aggregation._votes import as_list, number_judgements
from sklearn_rankcal.labels._item_ids import (
    check_same_index,
    number_ids,
    place_items,
    read_count,
    read_groups,
    read_ids,
    read_judges,
    read_marks,
    show_id,
)
from sklearn_rankcal.labels._label_rankings import check_names, text_tiers, warn_of_ratings
from sklearn_rankcal.labels._labels import read_wins
from sklearn_rankcal.labels._rankings import Comparisons, Orders, check_ranks
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.queries._queries import object_array
from sklearn_rankcal.utils._messages import counted, warn
from sklearn_rankcal.utils._numbers import Ints, frame_columns, is_missing, read_numbers
from sklearn_rankcal.utils._text_files import LineReader

Arguments = dict[str, Any]


# ---------------------------------------------------------------- orders


def from_orders(orders: Any, unranked: Any, **options: Any) -> Arguments:
    check_same_index(orders=orders, **options)
    columns = frame_columns(orders)
    listed: Any = orders
    if columns is not None:  # a column for each place
        _refuse_wins(np.asarray(orders))
        _refuse_keys(orders, columns, "orders")
        listed = _rows_of(columns)
        if len(columns) == 1:
            listed = [row[0] if row else "" for row in listed]
    elif isinstance(orders, np.ndarray):
        _refuse_wins(orders)
    if not isinstance(listed, (str, bytes, Mapping)) and isinstance(listed, Iterable):
        listed = listed.tolist() if isinstance(listed, np.ndarray) else list(listed)
        if any(isinstance(order, str) and ">" in order for order in listed):
            read = [
                text_tiers(order, f"Entry {m} of orders") if isinstance(order, str) else order
                for m, order in enumerate(listed)
            ]
            check_names(listed, read, "Entry {} of orders")
            listed = read
    codes = [] if unranked is None else as_list(unranked)
    codes = [*codes, *map(str, codes)]  # a column of names is text
    return _of_lists(_sequences(listed, "orders", codes), "orders", **options)


def _rows_of(columns: list[Any]) -> list[list[Any]]:
    """Return the rows of a data frame."""
    rows = zip(*(column.to_list() for column in columns), strict=True)
    return [[_whole(item) for item in row] for row in rows]


#: Different ids of rows from which they are noticed.
_KEYS = 5


def _refuse_keys(frame: Any, columns: list[Any], name: str) -> None:
    """Raise an error for a column of time stamps, or of ids of the rows, among items or ranks.

    Other columns share their items with each other, and ranks are at most as many as columns.
    """
    contents = [
        {one for one in own.to_list() if not isinstance(one, list | set) and not is_missing(one)}
        for own in columns
    ]
    for k, own in enumerate(contents):
        rest = set().union(*contents[:k], *contents[k + 1 :])
        if name == "ranks":
            apart = len(own) > len(contents) + 1 >= len(rest)
        else:
            apart = len(own) > len(rest) > 0 and not own & rest
        kinds = (datetime, str) if name == "ranks" else datetime
        other = [any(isinstance(one, kinds) for one in some) for some in (own, rest)]
        if (apart and len(own) >= _KEYS) or other == [True, False]:
            raise ValueError(
                f"The column {frame.columns[k]!r} of {name} seems to have ids or times of its "
                "rows. Leave it out. Pass ids of people as judge= or respondent=."
            )


def _whole(item: Any) -> Any:
    """Return an integer id from a column that is float because other rows are shorter."""
    return int(item) if isinstance(item, float) and item.is_integer() else item


def _refuse_wins(table: NDArray[Any]) -> None:
    """Raise an error for a matrix of wins, which is square with an empty diagonal."""
    if table.ndim != 2 or table.dtype.kind not in "iuf" or table.shape[0] != table.shape[1]:
        return
    diagonal = np.diagonal(table)
    orders = (np.sort(table, axis=1) == np.sort(table[0])).all()  # of the same items
    if len(table) > 1 and not orders and ((diagonal == 0) | np.isnan(diagonal)).all():
        raise ValueError(
            f"orders is a {len(table)} x {len(table)} matrix with an empty diagonal, like a matrix "
            "of wins. Pass orders as lists, and wins [i, j] of i against j as "
            "Judgements.from_pairs(numpy.argwhere(wins > 0), count=wins[wins > 0])."
        )


def _sequences(values: Any, name: str, codes: Sequence[Any] = ()) -> list[Any]:
    """Return a user's sequence of sequences as a list, without blanks.

    Missing entries and these codes are blank, and a missing sequence has no entries.
    """
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise ValueError(f"{name} must be a list with one entry per judgement; got {values!r}.")
    listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
    if not listed:
        raise ValueError(f"{name} is empty: at least one entry is needed.")
    for m, order in enumerate(listed):
        entries = order if isinstance(order, Iterable) or not is_missing(order) else []
        if isinstance(entries, (str, bytes, Mapping, set)) or not isinstance(entries, Iterable):
            raise ValueError(f"Entry {m} of {name} is {order!r}, which is not a list of items.")
        listed[m] = [one for one in entries if not is_missing(one) and one not in codes]
    return listed


def _of_lists(listed: list[Any], name: str, **options: Any) -> Arguments:
    flat: list[Any] = []
    tiers: list[int] = []
    ends = []
    for m, order in enumerate(listed):  # a loop over a list of the user's
        for tier, entry in enumerate(order):
            if isinstance(entry, (list, tuple, set, frozenset)):
                if not entry:
                    raise ValueError(f"Entry {m} of {name} has an empty tier: {order!r}.")
                flat.extend(entry)
                tiers.extend([tier] * len(entry))
            else:
                flat.append(entry)
                tiers.append(tier)
        ends.append(len(flat))
    sizes = np.diff(ends, prepend=0)
    return _of_entries(read_ids(flat, name), np.array(tiers), sizes, name, **options)


def from_ranks(
    ranks: Any, items: Any, unranked: Any, groups: ArrayLike | None, **options: Any
) -> Arguments:
    check_same_index(ranks=ranks, groups=groups, **options)
    if (columns := frame_columns(ranks)) is not None:
        _refuse_keys(ranks, columns, "ranks")
        items = list(ranks.columns) if items is None else items
    if unranked is not None:
        ranks = read_numbers(ranks, "ranks", missing=True)
        ranks = np.where(np.isin(ranks, as_list(unranked)), np.nan, ranks)
    positions = check_ranks(ranks)
    if positions.ndim != 2:
        raise ValueError(f"ranks must have shape (n_orders, n_items); it has {positions.shape}.")
    warn_of_ratings(
        positions,
        "ranks",
        (
            "If larger is better, as with stars, pass ranks=scipy.stats.rankdata(-stars, "
            "axis=1, nan_policy='omit'). Without the minus, this function also corrects tied "
            "ranks."
        ),
    )
    names = np.arange(positions.shape[1]) if items is None else read_ids(items, "items")
    if len(names) != positions.shape[1]:
        raise ValueError(
            f"items has {len(names)} ids, but ranks has {counted(positions.shape[1], 'column')}."
        )
    sizes = (~np.isnan(positions)).sum(axis=1)
    # the columns of each row, sorted by position; NaN is last
    order = np.argsort(positions, axis=1, kind="stable")
    sorted_ranks = np.take_along_axis(positions, order, axis=1)
    tier = np.zeros(positions.shape, dtype=np.int64)
    tier[:, 1:] = np.cumsum(sorted_ranks[:, 1:] != sorted_ranks[:, :-1], axis=1)
    listed = np.arange(positions.shape[1]) < sizes[:, None]
    known = names if groups is None else None
    return _of_entries(
        names[order[listed]], tier[listed], sizes, "ranks", items=known, groups=groups, **options
    )


def from_selections(shown: Any, selected: Any, **options: Any) -> Arguments:
    check_same_index(shown=shown, selected=selected, **options)
    lists = _sequences(shown, "shown")
    several = isinstance(selected, Iterable) and not isinstance(selected, (str, bytes, Mapping))
    chosen = list(selected) if several else []
    many = list, tuple, set, frozenset, np.ndarray
    ends = [list(one) if isinstance(one, many) else _choice(one) for one in chosen]
    return _of_choices(lists, "shown", {"selected": ends}, **options)


def _choice(item: Any) -> list[Any] | None:
    """Return the only item of a choice, or None if there was no answer."""
    return None if is_missing(item) else [_whole(item)]


def _of_choices(
    sets: list[Any], name: str, ends: Mapping[str, list[Any]], **options: Any
) -> Arguments:
    """Make the arguments from the first and the last tier of each set; the rest is between them.

    A tier is None if there was no answer. Sets without any answer are blank.
    """
    orders: list[list[Any]] = []
    answers = np.zeros(len(sets), dtype=np.int64)
    for word, end in ends.items():
        if len(end) != len(sets):
            raise ValueError(
                f"{word} must have one entry for each of the {counted(len(sets), 'entry')} of "
                f"{name}; got {len(end)}."
            )
    for m, (listed, *given) in enumerate(zip(sets, *ends.values(), strict=True)):
        answers[m] = sum(end is not None for end in given)
        chosen = [end or [] for end in given]
        if not listed and answers[m]:
            raise ValueError(f"Entry {m} of {name} is empty: nothing could be selected.")
        try:
            known, taken = set(listed), set(chain(*chosen))
        except TypeError as error:
            raise ValueError(f"Entry {m} of {name} must contain hashable ids: {error}.") from None
        for word, some in zip(ends, chosen, strict=True):
            if unknown := set(some).difference(known):
                raise ValueError(f"Entry {m} of {word} has {unknown.pop()!r}, which was not shown.")
        rest = [item for item in listed if item not in taken]
        if sum(map(len, chosen)) + len(rest) != len(listed):
            words = " and ".join([name, *ends])
            raise ValueError(f"Entry {m} of {words} has an item twice: {listed!r}.")
        tiers = [tier for tier in (chosen[0], rest, *chosen[1:]) if tier]
        orders.append(tiers if answers[m] else [])
    if half := np.count_nonzero((answers > 0) & (answers < len(ends))):
        text = f"{half:,} of {counted(len(sets), 'entry')} of {name} have only a best or a worst"
        warn(f"{text} item. They count.")
    return _of_lists(orders, name, unlisted="ignore", ties="ignore", **options)


def from_best_worst(
    sets: Any, best: Any, worst: Any, set_id: Any, respondent: Any, groups: Any, items: Any
) -> Arguments:
    check_same_index(
        sets=sets, best=best, worst=worst, set_id=set_id, respondent=respondent, groups=groups
    )
    if set_id is not None:
        shown = read_ids(sets, "sets").tolist()
        marks = read_marks(best, "best"), read_marks(worst, "worst")
        shown, best, worst, respondent, groups = _sets_of_rows(
            shown, *marks, set_id=set_id, respondent=respondent, groups=groups
        )
    else:
        if (columns := frame_columns(sets)) is not None:
            _refuse_keys(sets, columns, "sets")
        shown = _sequences(sets if columns is None else _rows_of(columns), "sets")
        best, worst = (list(map(_choice, end)) for end in (best, worst))
    options = {"groups": groups, "judge": respondent, "count": None, "items": items}
    return _of_choices(shown, "sets", {"best": best, "worst": worst}, **options)


def _sets_of_rows(items: list[Any], *marks: Any, **keys: Any) -> list[Any]:
    """Return the items, the best and the worst of each set, its respondent and its group.

    The table has a row for each item that was shown, with the `marks` best and worst.
    """
    columns = {name: None if one is None else list(one) for name, one in keys.items()}
    for name, one in zip(("best", "worst", *keys), (*marks, *columns.values()), strict=True):
        if one is not None and len(one) != len(items):
            raise ValueError(f"{name} has {counted(len(one), 'entry')}, but sets has {len(items)}.")
    found: dict[Any, tuple[list[Any], ...]] = {}
    for m, item in enumerate(items):
        key = tuple(None if one is None else one[m] for one in columns.values())
        mine = found.setdefault(key, ([], [], []))
        for chosen, some in zip((True, *(mark[m] for mark in marks)), mine, strict=True):
            some += [item] * bool(chosen)
    of_sets = [list(one) for one in zip(*found, strict=True)][1:]
    known = [
        own if keys[name] is not None else None
        for name, own in zip(("respondent", "groups"), of_sets, strict=True)
    ]
    shown, *ends = map(list, zip(*found.values(), strict=True))
    return [shown, *([one or None for one in end] for end in ends), *known]


def from_preflib(source: Any, unlisted: str, ties: str) -> Arguments:
    name = "orders"
    if isinstance(source, (str, PathLike)):
        name = str(source)
        orders, counts, names = read_preflib(source)
    elif hasattr(source, "alternatives_name"):  # of preflibtools, which need not be installed
        # an order is a tuple of tiers, and a tier is a tuple of numbers
        orders, names = list(dict.fromkeys(source.orders)), source.alternatives_name
        counts = [source.multiplicity[order] for order in orders]
    else:
        raise TypeError(
            "source must be the path of a file or an OrdinalInstance of preflibtools; got "
            f"{type(source).__name__}."
        )
    options = {"groups": None, "count": counts, "judge": None, "items": list(names)}
    found = _of_lists(orders, name, unlisted=unlisted, ties=ties, **options)
    # Two alternatives may have the same name, so the orders refer to their numbers.
    return {**found, "items": object_array(list(names.values()))}


def _of_entries(
    ids: NDArray[Any],
    tier: Ints,
    sizes: Ints,
    name: str,
    *,
    groups: ArrayLike | None,
    count: ArrayLike | None,
    judge: ArrayLike | None,
    items: Any,
    unlisted: str,
    ties: str,
) -> Arguments:
    """Make the arguments from the ids and tiers of all orders, concatenated."""
    for option, value, known in (
        ("unlisted", unlisted, ("ignore", "last")),
        ("ties", ties, ("ignore", "half")),
    ):
        if value not in known:
            raise ValueError(f"Unknown {option} {value!r}. Known: {', '.join(map(repr, known))}.")
    n, listing = len(sizes), np.flatnonzero(sizes)
    query, group_ids = read_groups(groups, items, n, name)
    judge_code, judges = read_judges(judge, n, name)
    if judge is not None and count is not None:
        raise ValueError("count cannot be combined with judge: an order comes from one judge.")
    counts = read_count(count, n, name)
    if len(listing) < n:
        if not len(listing):
            raise ValueError(f"No entry of {name} lists an item.")
        warn(f"{n - len(listing):,} of {counted(n, 'entry')} of {name} are blank and left out.")
        query, group_ids = _number_again(query[listing], group_ids)
        if judge_code is not None:
            judge_code, judges = _number_again(judge_code[listing], judges)
        counts = None if counts is None else counts[listing]
        n, sizes = len(listing), sizes[listing]
    owner = np.repeat(np.arange(n), sizes)
    where = lambda place: f"entry {listing[owner[place]]}"  # noqa: E731
    queries, names, rows = place_items(
        *number_ids(ids, name, where), query[owner], group_ids, items, name, where
    )
    # An item occurs once in each order.
    key = np.sort(owner * len(names) + rows)
    twice = np.flatnonzero(key[1:] == key[:-1])
    if len(twice):
        m, row = divmod(int(key[twice[0]]), len(names))
        raise ValueError(f"Entry {listing[m]} of {name} has item {show_id(names[row])} twice.")
    orders = Orders(rows, tier, np.append(0, np.cumsum(sizes)))
    if unlisted == "last":
        orders = _list_all(orders, owner, query, queries)
    return {
        "queries": queries,
        "items": names,
        "query": query,
        "orders": orders,
        "half_ties": ties == "half",
        "count": counts,
        "judge": judge_code,
        "judges": judges,
    }


def _number_again(codes: Ints, ids: Any) -> tuple[Ints, Any]:
    """Number the ids that are left."""
    used, codes = np.unique(codes, return_inverse=True)
    return codes, ids[used]


def _list_all(orders: Orders, owner: Ints, query: Ints, queries: Queries) -> Orders:
    """Add the items that an order does not list, as its last tier."""
    sizes = queries.sizes[query]
    offsets = np.append(0, np.cumsum(sizes))
    tiers = np.full(offsets[-1], np.iinfo(np.int64).max)
    first = queries.offsets[query]
    tiers[offsets[owner] + orders.item - first[owner]] = orders.tier
    every = np.repeat(np.arange(len(query)), sizes)
    items = np.arange(offsets[-1]) - offsets[every] + first[every]
    order = np.lexsort((tiers, every))
    return Orders(items[order], tiers[order], offsets)


# ---------------------------------------------------------------- labels


def from_labels(y: Any, n_rows: int | None) -> Arguments:
    queries, winner, loser = read_wins(y, n_rows)
    weights = np.concatenate(y["weights"])
    weight = None if (weights == 1).all() else weights
    query, offsets = queries.codes[winner], None
    if not any(one is None for one in y["judgement"]):
        given = np.concatenate(y["judgement"])
        owner, query, order = number_judgements(given, query, len(winner))
        winner, loser = winner[order], loser[order]
        weight = None if weight is None else weight[order]
        offsets = np.append(0, np.cumsum(np.bincount(owner)))
    comparisons = Comparisons(winner, loser, weight, offsets)
    items = np.arange(queries.n_rows)
    return {"queries": queries, "items": items, "query": query, "comparisons": comparisons}


# ---------------------------------------------------------------- files of PrefLib


_TYPES = ("soc", "soi", "toc", "toi")
#: Largest number of alternatives without a name.
_MOST_UNNAMED = 100_000
_HEADER = re.compile(
    r"\s*#\s*(ALTERNATIVE NAME|NUMBER ALTERNATIVES|NUMBER VOTERS|NUMBER UNIQUE ORDERS|DATA TYPE)"
    r"([ \d]*):(.*)"
)
_TIER = r"\s*(?:\d+|\{\s*\d+(?:\s*,\s*\d+)*\s*\})\s*"
_ORDER = re.compile(rf"\s*(\d{{1,15}})\s*:({_TIER}(?:,{_TIER})*)", re.ASCII)
Order = list[int | list[int]]


def read_preflib(path: str | PathLike[str]) -> tuple[list[Order], list[int], dict[int, str]]:
    """Return the orders, the number of voters of each, and the name of each alternative.

    An order has numbers of alternatives and lists of tied numbers, which `Judgements` checks.
    Alternatives without a name in the file are named by their numbers.
    """
    orders, counts, names = [], [], {}
    where = []  # the line of each order
    r = 0
    stated: dict[str, int] = {}
    kind = os.path.splitext(os.fspath(path).removesuffix(".gz").removesuffix(".bz2"))[1][1:]
    lines = LineReader(path)
    for line in lines:
        try:
            if header := _HEADER.match(line):
                key, number, value = header[1], header[2], header[3].strip()
                if key == "ALTERNATIVE NAME":
                    names[int(number)] = value
                elif key == "NUMBER ALTERNATIVES":
                    r = int(value)
                elif key != "DATA TYPE":
                    stated[key] = int(value)
                elif value not in _TYPES:
                    raise ValueError(f"the data type is not one of {', '.join(_TYPES)}")
                else:
                    kind = value
            elif not line.lstrip().startswith("#"):
                order = _ORDER.fullmatch(line)
                if order is None:
                    raise ValueError("an order is 'count: 3,{1,2},4', without a comma at its end")
                counts.append(int(order[1]))
                where.append(lines.number)
                orders.append(json.loads(f"[{order[2].replace('{', '[').replace('}', ']')}]"))
        except ValueError as error:
            raise lines.error(f"{line.strip()[:80]!r} cannot be read: {error}.") from None
    if not orders or r < 1:
        raise ValueError(f"{path} has no orders, or no header '# NUMBER ALTERNATIVES: 3'.")
    if r - len(names) > _MOST_UNNAMED:
        raise ValueError(f"{path} names {len(names):,} of {r:,} alternatives.")
    for listed, at in zip(orders, where, strict=True):
        _check_kind(listed, kind, r, f"{path}, line {at}")
    found = {"NUMBER VOTERS": sum(counts), "NUMBER UNIQUE ORDERS": len(orders)}
    for title, n_stated in stated.items():
        if n_stated != found[title]:
            # Some published files count voters without a ballot.
            warn(
                f"{path} states '# {title}: {n_stated}', but its orders have {found[title]}. "
                "The file may be truncated."
            )
    return orders, counts, {k: names.get(k, str(k)) for k in range(1, r + 1)}


def _check_kind(order: Order, kind: str, r: int, where: str) -> None:
    """Raise an error if an order has ties or is incomplete although the file type excludes it."""
    n_listed = sum(len(tier) if isinstance(tier, list) else 1 for tier in order)
    if kind in ("soc", "soi") and n_listed > len(order):
        what, other = "strict orders, but this one has a tie", "t" + kind[1:]
    elif kind in ("soc", "toc") and n_listed < r:
        what, other = f"complete orders, but this one lists {n_listed} of {r}", kind[:2] + "i"
    else:
        return
    raise ValueError(
        f"{where}: a file of the type {kind!r} has {what}. Correct it, or write "
        f"'# DATA TYPE: {other}' at the top."
    )
