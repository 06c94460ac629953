"""Read the columns of judgements: ids of any hashable type, groups, judges, counts, and edges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch

from sklearn_rankcal.queries import Queries
from sklearn_rankcal.queries._queries import number_objects, number_values, object_array
from sklearn_rankcal.utils import _numbers
from sklearn_rankcal.utils._messages import counted, did_you_mean
from sklearn_rankcal.utils._numbers import Bools, Floats, Ints


def read_edges(source: ArrayLike | Iterable[Any]) -> Bunch:
    """Read a list of preferences between documents: (query, preferred, other[, weight]).

    The function replaces document ids by row numbers. Document ids are only compared within a
    query. Different queries may use the same ids.

    Parameters
    ----------
    source : data frame, or array-like of shape (n_pairs, 3) or (n_pairs, 4)
        One preference per row, with ids of any hashable type. Read a file with
        ``pandas.read_csv(path, header=None)``.

    Returns
    -------
    data : Bunch
        Dictionary-like object, with the following attributes.

        - ``pairs``, of shape (n_pairs, 2): the row numbers of the preferred and the other document.
        - ``weight``, of shape (n_pairs,), or None if the list has no weights.
        - ``groups`` and ``documents``, of shape (n_documents,): the query id and the document id of
          each row, in order of first appearance. They are integers if all ids are integers, and
          objects otherwise.

        Sort the rows of X in this order. For a data frame with the index (query, document), use
        ``X.loc[list(zip(data.groups, data.documents))]``.

    Examples
    --------
    >>> from sklearn_rankcal.labels import preference_labels, read_edges
    >>> edges = [("cats", "tom", "felix", 2), ("dogs", "rex", "tom", 1)]
    >>> data = read_edges(edges)
    >>> data.pairs.tolist(), data.groups.tolist(), data.documents.tolist()
    ([[0, 1], [2, 3]], ['cats', 'cats', 'dogs', 'dogs'], ['tom', 'felix', 'rex', 'tom'])
    >>> labels = preference_labels(data.pairs, data.groups, data.weight)
    """
    columns = _columns_of_rows(source)
    query, ends = list(columns[0]), list(chain.from_iterable(zip(*columns[1:3], strict=True)))
    weight = check_weight(columns[3], len(query), "weight", "source") if len(columns) == 4 else None

    q_codes, q_ids = number_objects(query, "source", partial(_missing, 1))
    d_codes, d_ids = number_objects(ends, "source", partial(_missing, 2))
    rows, keys = number_values(np.repeat(q_codes, 2) * len(d_ids) + d_codes)
    q, d = np.divmod(keys, len(d_ids))
    return Bunch(
        pairs=rows.reshape(-1, 2),
        weight=weight,
        groups=ids_of_list(q_ids[q].tolist()),
        documents=ids_of_list(d_ids[d].tolist()),
    )


def _missing(per_row: int, place: int, value: Any) -> ValueError:
    row = place // per_row
    return ValueError(f"source has a missing or infinite id ({value!r}) in row {row}.")


def _columns_of_rows(source: Any) -> list[Any]:
    """Return the columns of rows or of a data frame."""
    _numbers.check_no_mask(source, "source")
    frame = _numbers.frame_columns(source)
    # Read a data frame column by column. In an array of its rows, the integers of one column would
    # become floats if another column contains floats.
    if frame is not None:
        columns = [column.to_list() for column in frame] if len(source) else []
    else:
        if isinstance(source, (str, PathLike, Mapping)) or not isinstance(source, Iterable):
            raise ValueError(
                f"source must be rows of (query, preferred, other[, weight]); got {source!r}."
            )
        if isinstance(source, np.ndarray):  # Python's own numbers and dates
            source = (source.astype(object) if source.dtype.kind in "mM" else source).tolist()
        kinds = (list, tuple, np.ndarray, np.void)
        rows = [list(row) if isinstance(row, kinds) else [row] for row in source]  # type: ignore[arg-type]
        if len(set(map(len, rows))) > 1:
            raise ValueError("source must have 3 or 4 entries in each row, the same number in all.")
        columns = list(map(list, zip(*rows, strict=True)))
    if not columns:
        raise ValueError("source has no preferences.")
    if len(columns) not in (3, 4):
        raise ValueError(
            "source must have 3 or 4 entries in each row: query, preferred, other[, weight]; "
            f"got {len(columns)}."
        )
    return columns


def read_ids(values: Any, name: str) -> NDArray[Any]:
    """Return a column of ids as a 1-D array of numbers or text, or of objects if types differ."""
    _numbers.check_no_mask(values, name)
    _numbers.check_no_name(values, name)
    if isinstance(values, (bytes, Mapping, set, frozenset)) or not hasattr(values, "__iter__"):
        raise ValueError(f"{name} must be a sequence with one id per entry; got {values!r}.")
    if hasattr(values, "to_numpy"):
        values = _numbers.as_array(values)
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise ValueError(f"{name} must be a 1-D array; it has shape {values.shape}.")
        return values if values.dtype.kind in "iufbUSmM" else values.astype(object)
    return ids_of_list(list(values))


def number_column(
    values: Any, name: str, where: Callable[[int], str] = "entry {}".format
) -> tuple[Ints, NDArray[Any]]:
    """Number the ids of a column as `number_ids` does, with pandas for text, which is faster."""
    text = str(getattr(values, "dtype", "")) in ("str", "string", "category")
    if text and hasattr(values, "factorize"):
        codes, different = values.factorize()
        if not (codes < 0).any():
            return codes.astype(np.int64), read_ids(different, name)
    return number_ids(read_ids(values, name), name, where)


def ids_of_list(ids: list[Any]) -> NDArray[Any]:
    """Return ids as an array of integers if all are integers, otherwise of objects."""
    kinds = set(map(type, ids))
    if not kinds or kinds & {str, bool}:
        return object_array(ids)
    if all(issubclass(kind, (int, np.integer)) for kind in kinds):
        if all(-(2**63) <= value < 2**63 for value in ids):
            return np.array(ids, dtype=np.int64)
    return object_array(ids)


def number_ids(
    ids: NDArray[Any], name: str, where: Callable[[int], str] = "entry {}".format
) -> tuple[Ints, NDArray[Any]]:
    """Number ids by first appearance: return the number of each id, and the distinct ids.

    Missing ids and ids that are not hashable raise an error. `where` describes a place to the user.
    """

    def missing(place: int, value: Any) -> ValueError:
        return ValueError(
            f"{name} has a missing or infinite id ({show_id(value)}, {where(place)}, counted from "
            "0). Drop it or fill it in."
        )

    if ids.dtype.kind == "O":
        return number_objects(ids.tolist(), name, missing)
    if len(ids) == 0:
        return np.zeros(0, dtype=np.int64), ids
    if ids.dtype.kind in "fmM":
        bad = ~np.isfinite(ids)
        if bad.any():
            place = int(np.argmax(bad))
            raise missing(place, ids[place])
    return number_values(ids)


def number_items(
    codes: Ints, n_ids: int, query: Ints, n_queries: int
) -> tuple[Ints, Ints, Ints, Ints]:
    """Number the distinct items (query, id) in the order of the queries.

    `codes` and `query` are the id number and the query number of each entry. Return the item number
    of each entry, the id number and the query of each item, and the number of items of each query.
    """
    # If no id occurs in two queries, the items are the ids.
    owner = np.zeros(n_ids, dtype=np.int64)
    owner[codes] = query
    if (owner[codes] == query).all():
        item_code, rows = np.arange(n_ids), codes
        item_query = owner
    else:
        rows, keys = number_values(query * n_ids + codes)
        item_query, item_code = np.divmod(keys, n_ids)
    if (item_query[1:] < item_query[:-1]).any():
        order = np.argsort(item_query, kind="stable")
        number = np.empty_like(order)
        number[order] = np.arange(len(order))
        rows, item_code, item_query = number[rows], item_code[order], item_query[order]
    return rows, item_code, item_query, np.bincount(item_query, minlength=n_queries)


def show_id(value: Any) -> str:
    """Return an id for error messages: text in quotes, NumPy's numbers as plain numbers."""
    return repr(value.item() if isinstance(value, np.generic) else value)


def content_ranks(ids: NDArray[Any]) -> Ints:
    """Return the place of each id in sorted order, which does not depend on the order of the input.

    Numbers and texts are sorted as usual. All other ids are sorted by type name and text.
    """
    listed = ids.tolist()
    plain = all(isinstance(one, str) for one in listed)
    plain = plain or all(isinstance(one, (int, float)) for one in listed)
    keys = listed if plain else [(type(one).__name__, repr(one)) for one in listed]
    places = np.empty(len(listed), dtype=np.int64)
    places[sorted(range(len(listed)), key=keys.__getitem__)] = np.arange(len(listed))
    return places


def place_items(
    codes: Ints,
    different: NDArray[Any],
    query: Ints,
    group_ids: NDArray[Any],
    items: Any,
    name: str,
    where: Callable[[int], str],
) -> tuple[Queries, NDArray[Any], Ints]:
    """Return the queries of items, the id of each item, and the item of each entry.

    `codes` and `query` are the id number and the query number of each entry, and `different` holds
    the distinct ids. If `items` is not None, it holds the item ids of a single query, and any other
    id raises an error.
    """
    if items is None:
        rows, item_code, _, sizes = number_items(codes, len(different), query, len(group_ids))
        queries = Queries(np.append(0, np.cumsum(sizes)), None, group_ids)
        return queries, different[item_code], rows
    known = read_ids(items, "items")
    if len(known) == 0:
        raise ValueError("items is empty: at least one item is needed.")
    if len(number_ids(known, "items")[1]) < len(known):
        raise ValueError("items contains an id twice.")
    numbers, all_ids = number_ids(
        np.concatenate([known.astype(object), different.astype(object)]), "items"
    )
    codes = numbers[len(known) :][codes]
    if len(all_ids) > len(known):
        unknown = all_ids[len(known)]
        place = where(int(np.argmax(codes == len(known))))
        raise ValueError(
            f"{name} has the item {show_id(unknown)} ({place}, counted from 0), which is not in "
            f"items.{did_you_mean(str(unknown), map(str, known))}"
        )
    return Queries(np.array([0, len(known)]), None, group_ids), known, codes


def rows_of_items(
    queries: Queries, items: NDArray[Any], groups: ArrayLike, documents: ArrayLike
) -> Ints:
    """Return the row of each item in a table of queries and documents, -1 if it is missing."""
    table = Queries.from_groups(groups)
    codes, ids = number_column(documents, "documents")
    check_length(codes, table.n_rows, "documents", "groups")
    own = number_column(items, "items")
    numbers = number_ids(np.concatenate([ids.astype(object), own[1].astype(object)]), "items")[0]
    groups_all = np.concatenate([table.ids.astype(object), queries.ids.astype(object)])
    group_numbers = number_ids(groups_all, "groups")[0]
    n, width = table.n_queries, len(numbers)
    key = group_numbers[:n][table.codes] * width + numbers[: len(ids)][codes]
    wanted = group_numbers[n:][queries.codes] * width + numbers[len(ids) :][own[0]]
    order = np.argsort(key, kind="stable")
    twice = np.flatnonzero(key[order][1:] == key[order][:-1])
    if len(twice):
        k = int(order[twice[0] + 1])
        raise ValueError(
            f"The table has the document {show_id(ids[codes[k]])} of query "
            f"{show_id(table.ids[table.codes[k]])} twice, the second time in row {k}."
        )
    place = np.minimum(np.searchsorted(key, wanted, sorter=order), len(key) - 1)
    return np.where(key[order[place]] == wanted, order[place], -1)


# ---------------------------------------------------------------- other columns


def read_groups(
    groups: ArrayLike | None, items: Any, n: int, name: str
) -> tuple[Ints, NDArray[Any]]:
    """Return the query number of each of n entries, and the ids of queries."""
    if groups is None:
        return np.zeros(n, dtype=np.int64), np.zeros(1, dtype=np.int64)
    if items is not None:
        raise ValueError("items can only be passed without groups, for a single query.")
    queries = Queries.from_groups(groups)
    check_length(queries.codes, n, "groups", name)
    return queries.codes, queries.ids


def read_judges(
    judge: ArrayLike | None, n: int, name: str
) -> tuple[Ints | None, NDArray[Any] | None]:
    """Return the number of the judge of each of n entries, and the ids of judges."""
    if judge is None:
        return None, None
    codes, judges = number_column(judge, "judge")
    check_length(codes, n, "judge", name)
    return codes, judges


def read_marks(marks: Any, name: str) -> Bools:
    """Read booleans, or the numbers 0 and 1."""
    try:
        numbers = _numbers.read_array(marks, name)
    except ValueError as error:
        raise ValueError(f"{name} must be True or False for each entry: {error}") from error
    wrong = (numbers != 0) & (numbers != 1)
    if wrong.any():
        raise ValueError(
            f"{name} must be True or False for each entry; it has {numbers[wrong][0]}."
        )
    return numbers.astype(bool)


def read_count(count: ArrayLike | None, n: int, name: str) -> Floats | None:
    """Check the counts of n judgements; None stays None."""
    if count is None:
        return None
    counts = check_weight(count, n, "count", name)
    if (counts != np.floor(counts)).any():
        k = int(np.argmax(counts != np.floor(counts)))
        raise ValueError(f"count must be whole numbers >= 0; entry {k} is {counts[k]}.")
    if counts.sum() > _numbers.LARGEST_WHOLE:
        raise ValueError("The sum of the counts is beyond 2^53.")
    return counts


def check_weight(weight: ArrayLike, n: int, name: str, other: str) -> Floats:
    """Check that each of n entries has a weight >= 0 in the supported range."""
    weights = _numbers.read_numbers(weight, name)
    check_length(weights, n, name, other)
    bad = ~np.isfinite(weights) | (weights < 0)
    if bad.any():
        k = int(np.argmax(bad))
        raise ValueError(f"{name} must be finite and >= 0; entry {k} is {weights[k]}.")
    _numbers.check_range(weights, name)
    return weights


@contextmanager
def reading_rows(name: str) -> Iterator[None]:
    """Say in errors about text that row numbers are expected."""
    try:
        yield
    except ValueError as error:
        if "not text" not in str(error):
            raise
        raise ValueError(
            f"{name} must be row numbers of X, counted from 0, but has text. If these are ids of "
            "documents, look up their rows: pandas.MultiIndex.from_arrays([groups, ids])"
            f".get_indexer([queries, {name}]), where groups and ids have the query and the "
            f"document of each row of X, and queries has the query of each entry of {name}."
        ) from None


def check_rows(rows: Ints, owner: Ints, first: Ints, queries: Queries, unit: str) -> None:
    """Check that the rows of each pair or session, numbered `owner`, belong to one query.

    `first` is the place of the first row of the same owner.
    """
    unknown = (rows < 0) | (rows >= queries.n_rows)
    if unknown.any():
        k = int(np.argmax(unknown))
        raise ValueError(
            f"{unit} {owner[k]} has the row {rows[k]}, but the rows of groups are numbered 0 to "
            f"{queries.n_rows - 1}."
        )
    codes = queries.codes[rows]
    across = codes != codes[first]
    if across.any():
        k = int(np.argmax(across))
        f = first[k]
        raise ValueError(
            f"{unit} {owner[k]} has rows of different queries: row {rows[f]} of query "
            f"{queries.ids[codes[f]]!s} and row {rows[k]} of query {queries.ids[codes[k]]!s}."
        )


def check_same_index(**columns: Any) -> None:
    """Raise an error for pandas objects with different indexes: their rows may not match."""
    indexed = {name: values for name, values in columns.items() if hasattr(values, "iloc")}
    for name, values in indexed.items():
        first = next(iter(indexed))
        if len(values) == len(indexed[first]) and not values.index.equals(indexed[first].index):
            raise ValueError(
                f"{name} and {first} have different indexes. Their rows may not belong together. "
                "Take both from the same data frame, or sort both by their index with "
                "sort_index(). If the rows already match, call reset_index(drop=True) on both."
            )


def check_length(values: NDArray[Any], n: int, name: str, other: str) -> None:
    if values.ndim != 1:
        raise ValueError(f"{name} must be a 1-D array; it has shape {values.shape}.")
    if len(values) != n:
        raise ValueError(f"{name} has {counted(len(values), 'entry')}, but {other} has {n}.")
