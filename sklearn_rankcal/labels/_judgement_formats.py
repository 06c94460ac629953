"""Orders, ranks, selections, elections and labels become the arguments of `Judgements`.

Each function checks its arguments and returns a dictionary of the arguments of the constructor.
`Judgements` documents the formats. Comparisons of two items are in `_judgement_pairs`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.labels._comparisons import Comparisons, Orders
from sklearn_rankcal.labels._item_ids import (
    known_items,
    number_ids,
    number_items,
    read_ids,
    show_id,
)
from sklearn_rankcal.labels._judgement_columns import (
    check_same_index,
    read_count,
    read_groups,
    read_judges,
    sequences,
)
from sklearn_rankcal.labels._judgement_pairs import number_judgements
from sklearn_rankcal.labels._preferences import read_preferences
from sklearn_rankcal.labels._preflib import PrefLibOrders
from sklearn_rankcal.labels._rankings import check_ranks
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._numbers import (
    frame_columns,
    is_missing,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Arguments = dict[str, Any]


# ---------------------------------------------------------------- orders


def from_orders(
    orders: Any,
    groups: ArrayLike | None,
    count: ArrayLike | None,
    judge: ArrayLike | None,
    items: Any,
    unlisted: str,
    ties: str,
) -> Arguments:
    check_same_index({"orders": orders, "groups": groups, "count": count, "judge": judge})
    listed = sequences(orders, "orders")
    flat: list[Any] = []
    tiers: list[int] = []
    sizes = np.zeros(len(listed), dtype=np.int64)
    for m, order in enumerate(listed):  # a loop over a list of the user's
        tier = -1
        for tier, entry in enumerate(order):
            if isinstance(entry, (list, tuple, set, frozenset)):
                if not entry:
                    raise ValueError(f"Order {m} has an empty tier: {order!r}.")
                flat.extend(entry)
                tiers.extend([tier] * len(entry))
            else:
                flat.append(entry)
                tiers.append(tier)
        if tier < 0:
            raise ValueError(f"Order {m} lists no item.")
        sizes[m] = len(flat)
    sizes = np.diff(sizes, prepend=0)
    ids = read_ids(flat, "orders")
    tier_of = np.array(tiers, dtype=np.int64)
    return _of_entries(ids, tier_of, sizes, "orders", groups, count, judge, items, unlisted, ties)


def from_ranks(
    ranks: Any,
    groups: ArrayLike | None,
    count: ArrayLike | None,
    judge: ArrayLike | None,
    items: Any,
    unlisted: str,
    ties: str,
) -> Arguments:
    check_same_index({"ranks": ranks, "groups": groups, "count": count, "judge": judge})
    columns = frame_columns(ranks)
    if columns is not None:
        _refuse_text(ranks, columns)
        items = list(ranks.columns) if items is None else items
    positions = check_ranks(ranks)
    if positions.ndim != 2:
        raise ValueError(f"ranks must have shape (n_orders, n_items); it has {positions.shape}.")
    names = np.arange(positions.shape[1]) if items is None else read_ids(items, "items")
    if len(names) != positions.shape[1]:
        raise ValueError(f"items has {len(names)} ids, but ranks has {positions.shape[1]} columns.")
    present = ~np.isnan(positions)
    sizes = present.sum(axis=1)
    if (sizes == 0).any():
        raise ValueError(f"Row {int(np.argmin(sizes))} of ranks lists no item: it is all NaN.")
    # the columns of each row in the order of their positions; NaN is last
    order = np.argsort(positions, axis=1, kind="stable")
    sorted_ranks = np.take_along_axis(positions, order, axis=1)
    new_tier = np.zeros(positions.shape, dtype=np.int64)
    new_tier[:, 1:] = sorted_ranks[:, 1:] != sorted_ranks[:, :-1]
    listed = np.arange(positions.shape[1]) < sizes[:, None]
    ids, tier_of = names[order[listed]], np.cumsum(new_tier, axis=1)[listed]
    known = names if groups is None else None
    return _of_entries(ids, tier_of, sizes, "ranks", groups, count, judge, known, unlisted, ties)


def _refuse_text(ranks: Any, columns: list[Any]) -> None:
    """Refuse a frame with a column of text, which is a long table, or has a column of names."""
    for name, column in zip(ranks.columns, columns, strict=True):
        text = next((value for value in column.to_numpy().tolist() if isinstance(value, str)), None)
        if text is not None:
            raise ValueError(
                f"The column {show_id(name)} of ranks has text ({text!r}), but ranks has one row "
                "for each order and one column of numbers for each item. Make names of voters the "
                "index: frame.set_index('voter'). If each row is one rank of one item, reshape it: "
                "frame.pivot(index='voter', columns='item', values='rank')."
            )


def from_selections(
    shown: Any,
    selected: Any,
    groups: ArrayLike | None,
    count: ArrayLike | None,
    judge: ArrayLike | None,
) -> Arguments:
    columns = {"shown": shown, "selected": selected, "groups": groups}
    check_same_index({**columns, "count": count, "judge": judge})
    lists = sequences(shown, "shown")
    chosen = list(selected) if isinstance(selected, Iterable) else []
    if isinstance(selected, (str, bytes, Mapping)) or len(chosen) != len(lists):
        raise ValueError(
            f"selected must have one entry for each of the {len(lists)} entries of shown; got "
            f"{len(chosen)}."
        )
    flat: list[Any] = []
    tiers: list[int] = []
    sizes = np.zeros(len(lists), dtype=np.int64)
    for m, (items, choice) in enumerate(zip(lists, chosen, strict=True)):
        items = list(items)
        if not items:
            raise ValueError(f"Entry {m} of shown is empty: nothing could be selected.")
        many = isinstance(choice, (list, tuple, set, frozenset, np.ndarray))
        if not many and is_missing(choice):
            raise ValueError(
                f"Entry {m} of selected is {choice!r}. If nothing was selected, pass an empty list."
            )
        winners = list(choice) if many else [choice]
        for which, listed in (("selected", winners), ("shown", items)):
            if not all(isinstance(one, Hashable) for one in listed):
                raise ValueError(
                    f"Entry {m} of {which} has an id that is not hashable: {listed!r}."
                )
        won = set(winners)
        if len(won) < len(winners):
            raise ValueError(f"Entry {m} of selected has an item twice: {choice!r}.")
        rest = [item for item in items if item not in won]
        if len(rest) + len(winners) != len(items) or not won <= set(items):
            known = set(items)
            unknown = [item for item in winners if item not in known]
            problem = f"{unknown[0]!r}, which was not shown" if unknown else "an item shown twice"
            raise ValueError(f"Entry {m} of shown and selected has {problem}: {items!r}.")
        flat += winners + rest
        tiers += [0] * len(winners) + [1] * len(rest)
        sizes[m] = len(flat)
    sizes = np.diff(sizes, prepend=0)
    ids, tier_of = read_ids(flat, "shown"), np.array(tiers, dtype=np.int64)
    return _of_entries(ids, tier_of, sizes, "shown", groups, count, judge, None, "ignore", "ignore")


def is_ordinal_instance(instance: Any) -> bool:
    """Whether this is an OrdinalInstance of preflibtools, which need not be installed."""
    return all(hasattr(instance, name) for name in ("orders", "multiplicity", "alternatives_name"))


def from_preflib(instance: Any, unlisted: str, ties: str) -> Arguments:
    if isinstance(instance, PrefLibOrders):
        names = np.empty(len(instance.alternatives), dtype=object)
        names[:] = instance.alternatives
        orders, counts, numbers = instance.orders, instance.counts, list(range(len(names)))
    elif is_ordinal_instance(instance):
        # preflibtools: an order is a tuple of tiers, which are tuples of numbers
        orders = list(dict.fromkeys(instance.orders))
        counts = np.array([instance.multiplicity[order] for order in orders])
        numbers = list(instance.alternatives_name)
        names = np.empty(len(numbers), dtype=object)
        names[:] = [instance.alternatives_name[number] for number in numbers]
    else:
        raise TypeError(
            "from_preflib needs what read_preflib returns, or an OrdinalInstance of preflibtools; "
            f"got {type(instance).__name__}."
        )
    found = from_orders(orders, None, counts, None, numbers, unlisted, ties)
    # Two alternatives may have the same name, so the orders refer to their numbers.
    found["items"] = names
    return found


def _of_entries(
    ids: NDArray[Any],
    tier: Ints,
    sizes: Ints,
    name: str,
    groups: ArrayLike | None,
    count: ArrayLike | None,
    judge: ArrayLike | None,
    items: Any,
    unlisted: str,
    ties: str,
) -> Arguments:
    """Make the arguments from the entries of orders: ids and tiers, those of order 0 first."""
    for option, value, known in (
        ("unlisted", unlisted, ("ignore", "last")),
        ("ties", ties, ("ignore", "half")),
    ):
        if value not in known:
            raise ValueError(f"Unknown {option} {value!r}. Known: {', '.join(map(repr, known))}.")
    n = len(sizes)
    query, group_ids = read_groups(groups, n, name)
    offsets = np.append(0, np.cumsum(sizes))
    owner = np.repeat(np.arange(n), sizes)

    def where(place: int) -> str:
        return f"entry {owner[place]}"

    if items is None:
        codes, different = number_ids(ids, name, where)
        rows, item_code, _, n_items = number_items(
            codes, len(different), query[owner], len(group_ids)
        )
        different = different[item_code]
    else:
        if groups is not None:
            raise ValueError("items can only be passed without groups, for a single query.")
        different, rows = known_items(items, ids, name, where)
        n_items = np.array([len(different)])
    # An item occurs once in each order.
    key = np.sort(owner * len(different) + rows)
    twice = np.flatnonzero(key[1:] == key[:-1])
    if len(twice):
        m, row = divmod(int(key[twice[0]]), len(different))
        raise ValueError(f"Entry {m} of {name} has item {show_id(different[row])} twice.")
    queries = Queries(np.append(0, np.cumsum(n_items)), None, group_ids)
    if unlisted == "last":
        rows, tier, offsets = _list_all(rows, tier, owner, query, queries)
    judge_code, judges = read_judges(judge, n, name)
    if judge is not None and count is not None:
        raise ValueError("count cannot be combined with judge: an order comes from one judge.")
    return {
        "queries": queries,
        "items": different,
        "query": query,
        "orders": Orders(rows, tier, offsets),
        "half_ties": ties == "half",
        "count": None if count is None else read_count(count, n, name),
        "judge": judge_code,
        "judges": judges,
    }


def _list_all(
    rows: Ints, tier: Ints, owner: Ints, query: Ints, queries: Queries
) -> tuple[Ints, Ints, Ints]:
    """Add the items that an order does not list as its last tier."""
    sizes = queries.sizes[query]
    offsets = np.append(0, np.cumsum(sizes))
    tiers = np.full(offsets[-1], np.iinfo(np.int64).max)
    first = queries.offsets[query]
    tiers[offsets[owner] + rows - first[owner]] = tier
    every = np.repeat(np.arange(len(query)), sizes)
    items = np.arange(offsets[-1]) - offsets[every] + first[every]
    order = np.lexsort((tiers, every))
    return items[order], tiers[order], offsets


# ---------------------------------------------------------------- labels


def from_labels(y: Any, n_rows: int | None) -> Arguments:
    preferences = read_preferences(y, n_rows)  # checks the labels
    queries = preferences.queries
    here = np.full(int(y["row"].max()) + 1, -1)
    here[y["row"]] = np.arange(len(y))
    winner = np.repeat(np.arange(len(y)), [len(wins) for wins in y["wins"]])
    loser = here[np.concatenate(y["wins"])]
    weights = np.concatenate(y["weights"])
    query = queries.codes[winner]
    given = None if any(one is None for one in y["judgement"]) else np.concatenate(y["judgement"])
    arguments = {"queries": queries, "items": np.arange(queries.n_rows)}
    weight = None if (weights == 1).all() else weights
    if given is None:
        comparisons = Comparisons(winner, loser, weight, None)
        return {**arguments, "query": query, "comparisons": comparisons}
    owner, query, order = number_judgements(given, query, len(winner))
    comparisons = Comparisons(
        winner[order],
        loser[order],
        None if weight is None else weight[order],
        np.append(0, np.cumsum(np.bincount(owner))),
    )
    return {**arguments, "query": query, "comparisons": comparisons}
