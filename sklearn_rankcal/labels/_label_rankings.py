"""The `y` of a label ranker: names of labels, orders of names, ranks, and what looks wrong in them.

An order of names is a string such as "b > a = c", or a sequence of names, best first. A nested
sequence is a tie. A frame or a 2-D array of names has one order per row. A frame with a single
column is treated like the column. The r labels of a sample become the documents of a query.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import comb
from scipy.stats import rankdata
from sklearn.utils.validation import check_array

from sklearn_rankcal.labels._labels import Preferences
from sklearn_rankcal.labels._rankings import PairWeight, check_pair_weight, weigh
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils import _numbers
from sklearn_rankcal.utils._column_advice import text_columns
from sklearn_rankcal.utils._features import as_number, in_container
from sklearn_rankcal.utils._messages import RARE, counted, one_edit, plain_name, warn
from sklearn_rankcal.utils._numbers import Bools, Floats

_WEIGHTS_HELP = "y of shape (n_samples, r, r) holds preference weights"


def read_label_rankings(y: Any, n_rows: int, y_type: str) -> tuple[str, Floats]:
    """Return the type of `y`, "ranks", "relevance" or "weights", and its values as float64.

    `y_type` is one of these or "auto": ranks if `y` is 2-D, and weights if it is 3-D. NaN marks a
    missing rank or relevance.
    """
    if y is None:
        raise ValueError("This ranker requires y to be passed, but the target y is None.")
    numbers = _numbers.read_numbers(y, "y", missing=True)
    if numbers.ndim not in (2, 3):
        raise ValueError(
            f"y must have shape (n_samples, r), or (n_samples, r, r); it has {numbers.shape}."
        )
    values = check_array(numbers, allow_nd=True, ensure_all_finite="allow-nan", input_name="y")
    _numbers.check_range(values, "y")
    if len(values) != n_rows:
        raise ValueError(f"y has {counted(len(values), 'row')}, but X has {n_rows}.")
    kind = y_type if y_type != "auto" else "ranks" if values.ndim == 2 else "weights"
    if values.ndim != (3 if kind == "weights" else 2):
        wanted = "(n_samples, r, r)" if kind == "weights" else "(n_samples, r)"
        raise ValueError(f"y_type={y_type!r} requires y of shape {wanted}; it has {values.shape}.")
    if kind == "weights":
        if values.shape[1] != values.shape[2]:
            raise ValueError(f"{_WEIGHTS_HELP}; it has shape {values.shape}.")
        if np.isnan(values).any() or values.min() < 0:
            raise ValueError(f"{_WEIGHTS_HELP}, which must be finite and >= 0.")
    elif kind == "ranks" and values.shape[1] > 1 and np.nanmin(values, initial=np.inf) < 1:
        raise ValueError(
            f"Ranks start at 1 (best); y contains {np.nanmin(values):g}. Convert an order of label "
            "numbers to ranks with order_to_ranks. If larger is better, pass y_type='relevance'."
        )
    return kind, values


def place_unlisted(kind: str, Y: Floats, unlisted: str) -> Floats:
    """Return ranks; if `unlisted` is "last", labels without a rank are tied at the bottom.

    Rows without any rank stay as they are.
    """
    if unlisted != "last":
        return Y
    if kind != "ranks":
        raise ValueError(
            f"unlisted='last' needs ranks, but y has {kind}. Replace missing entries yourself."
        )
    missing = np.isnan(Y)
    lowest = np.where(missing, -np.inf, Y).max(axis=1, initial=-np.inf, keepdims=True)
    return np.where(missing & np.isfinite(lowest), lowest + 1, Y)


def read_as_in_fit(y: Any, n_rows: int, ranker: Any) -> tuple[str, Floats]:
    """Read `y` as `read_label_rankings` does, with the names and parameters of a label ranker.

    If `ranker` is not a label ranker, the defaults are used.
    """
    y_type = getattr(ranker, "y_type", "auto")
    numbers, _ = read_names(y, y_type, getattr(ranker, "_names", None))
    kind, Y = read_label_rankings(numbers, n_rows, y_type)
    return kind, place_unlisted(kind, Y, getattr(ranker, "unlisted", "auto"))


def labels_of_rankings(
    kind: str, Y: Floats, pair_weight: PairWeight | None, name: str
) -> tuple[Any, Bools | None]:
    """Convert the result of `read_label_rankings` to labels that losses accept.

    The labels are relevance if no entry is missing, otherwise preferences with weights from
    `pair_weight`. `pair_weight` is None if the loss, called `name` in errors, does not accept
    preferences. Also return whether each pair i < j of each sample was judged, shape
    (n_samples, r (r - 1) / 2), or None if the labels are relevance.
    """
    r = Y.shape[1]
    if kind == "weights":
        i, j = np.triu_indices(r, 1)
        weights = np.where(np.eye(r, dtype=bool), 0.0, Y)
        judged = weights[:, i, j] + weights[:, j, i] > 0
    else:
        if kind == "ranks":
            # relevance of a label: r - 1 minus the number of labels above it, equal for ties
            missing = np.isnan(Y)
            above = rankdata(np.where(missing, np.inf, Y), "min", axis=1) - 1
            Y = np.where(missing, np.nan, r - 1.0 - above)
        if not np.isnan(Y).any():
            return Y.ravel(), None
        if pair_weight is None:
            raise ValueError(
                f"{name} needs every entry of y. Only loss='pd' and loss='pd_by_scores' accept "
                "missing entries (NaN), because they learn from judged pairs."
            )
        i, j = np.triu_indices(r, 1)
        gap = Y[:, :, None] - Y[:, None, :]
        judged = ~np.isnan(gap[:, i, j])
        weights = np.zeros_like(gap)
        weights[gap > 0] = weigh(check_pair_weight(pair_weight), gap[gap > 0])
    row, winner, loser = np.nonzero(weights)
    queries = Queries.uniform(len(Y), r)
    weight = weights[row, winner, loser]
    return Preferences(queries, row * r + winner, row * r + loser, weight), judged


Tiers = list[list[str]]

#: Characters that users write for '>', and that are hardly ever a part of a name in an order.
_SEPARATORS = ",;|<≻≺＞＜"  # noqa: RUF001
#: These are, but not if all parts are names of their own.
_OTHER_SEPARATORS = re.compile(f"[{re.escape(_SEPARATORS)}→≽≥/\\t]")


def read_names(
    y: Any, y_type: str = "auto", known: NDArray[Any] | None = None
) -> tuple[Any, NDArray[Any] | None]:
    """Return `y` without names, and the names of its columns, or None if it has no names.

    Orders of names become ranks of the sorted names, with NaN for names that are missing from a
    row. If names are `known`, the columns have their order, and an unknown name raises an error.
    """
    orders = _find_orders(y)
    if orders is not None:
        if y_type not in ("auto", "ranks"):
            raise ValueError(f"y has orders of names, but y_type is {y_type!r}; use 'ranks'.")
        return _ranks_of_orders(orders, known)
    if _numbers.frame_columns(y) is None:
        return y, None
    if found := text_columns(y):
        column, example = found[0]
        raise ValueError(
            f"Column {column!r} of y contains text or times (such as {example!r}), but "
            "other entries are numbers. Drop it from y. If a rank is missing, write NaN."
        )
    names = _name_array(y.columns)
    if len(set(names)) < len(names):
        raise ValueError(f"The columns of y, which name the labels, are not unique: {list(names)}.")
    if known is None:
        return y, names
    place = {name: number for number, name in enumerate(names)}
    for name in (*known, *names):
        if name not in place or name not in set(known):
            raise ValueError(
                f"The columns of y must be the labels of fit, {list(known)}; they are "
                f"{list(names)}."
            )
    order = [place[name] for name in known]
    return (y.iloc[:, order] if hasattr(y, "iloc") else y[:, order]), known


def make_frame(values: NDArray[Any], names: NDArray[Any], container: str, X: Any) -> Any:
    """Return a data frame of numbers with these column names, and the row index of X, if any."""
    pandas = container == "pandas"
    frame = in_container(values, container, names if pandas else map(str, names))
    return frame.set_axis(X.index) if pandas and hasattr(X, "iloc") else frame


def _name_array(names: Iterable[Any]) -> NDArray[Any]:
    listed = list(names)
    array = np.empty(len(listed), dtype=object)
    array[:] = listed
    return array


def _find_orders(y: Any) -> list[Any] | None:
    """Return the rows of `y` if they are orders of names, judging by the first entry."""
    columns = _numbers.frame_columns(y)
    if columns is not None and len(columns) == 1:
        y, columns = columns[0], None
    if columns is None and hasattr(y, "to_numpy"):
        y = _numbers.as_array(y)
    if isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if columns is not None:
        text = any(getattr(column.dtype, "kind", "O") not in "biufcMm" for column in columns)
        rows = list(zip(*columns, strict=True)) if text else []
    elif isinstance(y, np.ndarray):
        rows = y.tolist() if y.dtype.kind in "OUT" and y.ndim in (1, 2) else []
    else:
        rows = list(y) if isinstance(y, list | tuple) else []
    for row in rows:
        cells = row if isinstance(row, list | tuple | np.ndarray) else [row]
        for cell in cells:
            first = next(iter(cell), None) if isinstance(cell, list | tuple | set) else cell
            if isinstance(first, str):
                return None if isinstance(as_number(first), float) else rows
            if not _numbers.is_missing(first):
                return None
    return None


def _ranks_of_orders(rows: list[Any], known: NDArray[Any] | None) -> tuple[Floats, NDArray[Any]]:
    """Return the position of each name in each order, of shape (n_rows, n_names), and the names."""
    orders = [text_tiers(row, f"Row {number} of y") for number, row in enumerate(rows)]
    if known is None:
        _check_separators(rows)
        check_names(rows, orders, "Row {} of y")
    found = {name for tiers in orders for tier in tiers for name in tier}
    names = _name_array(sorted(found)) if known is None else known
    if known is None:
        _warn_of_misspelt(orders)
    place = {name: number for number, name in enumerate(names)}
    ranks = np.full((len(orders), len(names)), np.nan)
    for number, tiers in enumerate(orders):
        position = 1
        for tier in tiers:
            for name in tier:
                if name not in place:
                    raise ValueError(
                        f"Row {number} of y has the label {name!r}, which fit did not see. The "
                        f"labels are {list(names)}."
                    )
                if not np.isnan(ranks[number, place[name]]):
                    raise ValueError(f"Row {number} of y has the label {name!r} twice.")
                ranks[number, place[name]] = position
            position += len(tier)
    return ranks, names


def _warn_of_misspelt(orders: list[Tiers]) -> None:
    """Warn of two spellings of a label that no row has both: they differ in case only, or a rare
    name is one letter away from a frequent one.
    """
    rows = [{name for tier in tiers for name in tier} for tiers in orders]
    n_rows = Counter(name for row in rows for name in row)
    spellings: dict[str, list[str]] = {}
    for name in sorted(n_rows, key=lambda name: (n_rows[name], name)):
        spellings.setdefault(plain_name(name), []).append(name)
    pairs = [pair for alike in spellings.values() for pair in combinations(alike, 2)]
    for name in sorted(name for name, n in n_rows.items() if n <= RARE):
        alike = [k for k, n in n_rows.items() if n >= OFTEN * n_rows[name] and one_edit(name, k)]
        pairs += [(name, other) for other in alike]
    for name, other in pairs:
        if not any(name in row and other in row for row in rows):
            warn(
                f"The label {name!r} is in {counted(n_rows[name], 'row')} of y, never in the "
                f"same row as {other!r}, which is in {counted(n_rows[other], 'row')}. If it is "
                "misspelt, correct it: each spelling is a separate label."
            )
            return


def _check_separators(rows: list[Any]) -> None:
    """Raise an error for texts that seem to list several names without '>'."""
    texts = [row for row in rows if isinstance(row, str)]
    if any(">" in text or "=" in text for text in texts):
        return
    for text in texts:
        if any(separator in text for separator in _SEPARATORS):
            raise ValueError(
                f"y has the text {text!r} without '>'. Write orders as 'b > a = c', best first. If "
                "names contain other separators, pass lists: [['Salt, pepper'], ...]."
            )


def check_names(rows: list[Any], orders: list[Tiers], where: str) -> None:
    """Raise an error for a rare name in a text that consists of names of other rows.

    It is then likely that a few rows have another separator. A name with a comma that many rows
    have is one name.
    """
    places: dict[str, list[int]] = {}
    listed = [{name for tier in tiers for name in tier} for tiers in orders]
    for number, row in enumerate(rows):
        if isinstance(row, str):
            for name in sorted(listed[number]):
                places.setdefault(name, []).append(number)
    for name, own in places.items():
        parts = [part.strip() for part in _OTHER_SEPARATORS.split(name)]
        if len(parts) == 1 or len(own) > RARE:
            continue
        if any(part in listed[number] for part in parts for number in own):
            continue  # a name and its part are two names
        if all(set(places.get(part, own)) - set(own) for part in parts):
            raise ValueError(
                f"{where.format(own[0])} has the name {name!r}, but its parts are names in other "
                "rows. Write orders as 'b > a = c', best first. If it is one name, pass all orders "
                "as lists: [['b', 'a'], ...]."
            )


def text_tiers(row: Any, where: str) -> Tiers:
    """Return the tiers of an order, best first. Each tier is a list of tied names."""
    if isinstance(row, str):
        if "->" in row:
            raise ValueError(
                f"{where}, {row!r}, has '->'. Write orders as 'b > a = c', best first. If a name "
                "ends with '-', write a blank behind it."
            )
        tiers = [[name.strip() for name in tier.split("=")] for tier in row.split(">")]
        if tiers == [[""]]:
            return []
    elif isinstance(row, list | tuple | np.ndarray):
        tiers = [
            list(cell) if isinstance(cell, list | tuple | set | frozenset) else [cell]
            for cell in row
            if not _numbers.is_missing(cell)
        ]
        tiers = [[n.strip() if isinstance(n, str) else n for n in tier] for tier in tiers]
    elif _numbers.is_missing(row):
        return []
    else:
        raise ValueError(f"{where} is {row!r}, but other rows are orders of names.")
    for tier in tiers:
        for name in tier:
            if not isinstance(name, str) or not name:
                raise ValueError(
                    f"{where}, {row!r}, is no order of names like 'b > a = c' or ['b', 'a']."
                )
    return tiers


#: A label may be misspelt if another one is in this many times as many rows.
OFTEN = 10
_OF_LABELS = (
    "If larger is better, as in ratings, pass y_type='relevance'. If smaller is better, pass "
    "y_type='ranks'."
)


def warn_of_ratings(ranks: Floats, name: str = "y", advice: str = _OF_LABELS) -> None:
    """Warn if a row of ranks (n, r), NaN if missing, does not look like positions of r labels."""
    doubtful = np.flatnonzero(~look_like_positions(ranks))
    if not len(doubtful) or ranks.shape[1] == 1:
        return
    row = ranks[doubtful[0]]
    shown = ", ".join(f"{value:g}" for value in row[:8]) + (", ..." if len(row) > 8 else "")
    warn(
        f"{len(doubtful)} of {counted(len(ranks), 'row')} of {name} do not look like rankings of "
        f"{counted(len(row), 'label')} (row {doubtful[0]}: {shown}), but {name} is read as ranks "
        f"(smaller is better). {advice}"
    )


def look_like_positions(ranks: Floats) -> Bools:
    """Return whether each row of ranks (n, r), NaN if missing, can be a ranking of r labels.

    Tied labels can share the best, the worst or the mean of their positions, and missing labels can
    leave gaps. Numbers of tiers, from 1, are also accepted if there are at least half as many tiers
    as labels in the row. With fewer tiers, the numbers are more likely ratings.
    """
    n, r = ranks.shape
    values = np.sort(ranks, axis=1)  # NaN is last
    listed = ~np.isnan(values)
    size = listed.sum(axis=1)
    # The first and the last place of each run of equal entries, numbered from 1.
    place = np.arange(1, r + 1)
    new = np.ones((n, r), dtype=bool)
    new[:, 1:] = values[:, 1:] != values[:, :-1]
    new &= listed
    begin = np.maximum.accumulate(np.where(new, place, 0), axis=1)
    last = np.ones((n, r), dtype=bool)
    last[:, :-1] = new[:, 1:] | ~listed[:, 1:]
    end = np.minimum.accumulate(np.where(last, place, r)[:, ::-1], axis=1)[:, ::-1]
    ties = end - begin + 1
    plausible = size == 0
    values = np.where(listed, values, 0.0)
    whole = (values == np.floor(values)).all(axis=1)
    # Tied labels have the positions `first` to `first` + `ties` - 1, without overlap.
    for share in (0.0, 0.5, 1.0):
        first = values - share * (ties - 1)
        before = np.zeros((n, r))
        before[:, 1:] = (first + ties - 1)[:, :-1]
        fits = np.where(new, first > before + 0.99, True).all(axis=1)
        final = np.where(listed, first + ties - 1, 0).max(axis=1, initial=0)
        plausible |= fits & (final <= r) & (whole | (share == 0.5))
    tiers = new.sum(axis=1)
    highest = values.max(axis=1, initial=0)
    limit = np.where(size == r, tiers, r)  # without missing labels, there are no gaps
    plausible |= whole & (highest <= limit) & (2 * tiers >= size)
    return plausible


def warn_of_tails(ranks: Floats, are_orders: bool) -> None:
    """Warn if the labels that are missing from a row may be below the listed labels.

    Orders of names always give a warning. Ranks give no warning if they have gaps, such as [1, NaN,
    3]: the missing label is not below the listed labels. Ranks without gaps give a warning, with
    two exceptions. If the number of missing labels differs between rows, labels were probably left
    out at random and the rest was ranked anew. If there are few rows, gaps may be absent by chance,
    with probability 1 / binom(r, size) for each row.

    A label that hardly any row lists, such as a misspelt one, says nothing about the rest.
    """
    listed = ~np.isnan(ranks)
    n_rows, r, size = listed.sum(axis=0), ranks.shape[1], listed.sum(axis=1)
    rare = (n_rows <= RARE) & (OFTEN * n_rows <= n_rows.max(initial=0))
    cut = (size < r) & (size > 0)
    lists_rare = listed[:, rare].any(axis=1)
    counts = ~lists_rare if lists_rare.sum() <= RARE else np.ones(len(ranks), dtype=bool)
    if not (cut & counts & (listed[:, ~rare].sum(axis=1) < (~rare).sum())).any():
        return
    if not are_orders:
        sizes = np.unique(size[cut])
        gapless = np.nanmax(ranks[cut], axis=1) <= size[cut]
        if len(sizes) > 1 or not gapless.all() or comb(r, sizes[0]) ** float(cut.sum()) < 100:
            return
    warn(
        f"{cut.sum()} of {counted(len(ranks), 'row')} of y leave out labels. If missing labels are "
        "worse than listed labels, as in a list of favourites, pass unlisted='last'. If labels are "
        "missing for any other reason, pass unlisted='ignore', as is done now."
    )
