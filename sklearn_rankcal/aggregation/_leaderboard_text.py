"""The text of an `Aggregate`: a leaderboard, and what is known about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.aggregation._bradley_terry import BradleyTerry
from sklearn_rankcal.aggregation._equally_good import others_are_as_good
from sklearn_rankcal.aggregation._kemeny import Kemeny
from sklearn_rankcal.aggregation._plackett_luce import PlackettLuce
from sklearn_rankcal.labels._item_ids import show_id

if TYPE_CHECKING:
    from sklearn_rankcal.aggregation._result import Aggregate

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Rows of a leaderboard that the text of a result shows, for one query and for each of many; and
#: the number of queries.
_ROWS, _ROWS_OF_MANY, _QUERIES = 20, 5, 5
#: The longest name that the text shows in full.
_NAME = 30


def write_leaderboard(result: Aggregate) -> str:
    """Return the text of a result."""
    queries = result.judgements.queries
    several = queries.n_queries > 1
    total = f"{int(result.judgements.per_query.sum()):,} judgements"
    head = f"{len(result.items):,} items, {total}, {result.method!r}"
    if several:
        head = f"{queries.n_queries:,} queries, {head}"
    lines = [head, *_parts(result), *_certificate(result), *_resamples(result)]
    for query in queries.ids[:_QUERIES]:
        if several:
            lines.append(f"query {show_id(query)}:")
        rows = result._rows_by_part(query)
        shown = rows[: _ROWS_OF_MANY if several else _ROWS]
        lines += _table(result, shown)
        if len(rows) > len(shown):
            lines.append(f"... {_more(len(rows) - len(shown), 'item')}; to_frame() has all")
    if queries.n_queries > _QUERIES:
        more = _more(queries.n_queries - _QUERIES, "query", "queries")
        lines.append(f"... {more}; to_frame() has all")
    return "\n".join(lines)


def _more(n: int, one: str, many: str = "") -> str:
    return f"{n:,} more {one if n == 1 else many or one + 's'}"


def _table(result: Aggregate, rows: Ints) -> list[str]:
    names = [_shorten(name) for name in result.items[rows].tolist()]
    write = _decimals(result.scores)
    columns = [
        _column("rank", [str(rank) for rank in result.ranks[rows]], right=True),
        _column("item", names),
        _column("score", write(result.scores[rows]), right=True),
    ]
    if result.rank_low is not None and result.rank_high is not None:
        ranks = zip(result.rank_low[rows], result.rank_high[rows], strict=True)
        columns.insert(1, _column("ranks", [_range(low, high) for low, high in ranks]))
    if result.score_low is not None and result.score_high is not None:
        bounds = zip(write(result.score_low[rows]), write(result.score_high[rows]), strict=True)
        texts = [f"{low} to {high}" for low, high in bounds]
        columns.append(_column("interval", texts, right=True))
    if (result.parts[rows] > 1).any():
        parts = [str(part) if part else "-" for part in result.parts[rows]]
        columns.insert(0, _column("part", parts, right=True))
    return ["  ".join(cells).rstrip() for cells in zip(*columns, strict=True)]


def _parts(result: Aggregate) -> list[str]:
    """Say that some items cannot be compared."""
    queries = result.judgements.queries
    split = np.unique(queries.codes[result.parts > 1])
    if not len(split):
        return []
    text = "scores and ranks of different parts cannot be compared"
    if queries.n_queries > 1:
        of = f"{len(split):,} of {queries.n_queries:,} queries"
        return [f"the items of {of} are in several parts; {text}"]
    return [f"the items are in {result.parts.max():,} parts; {text}"]


def _certificate(result: Aggregate) -> list[str]:
    """Say how little the ranking of Kemeny contradicts."""
    if result.optimal is None or result.objective is None or result.lower_bound is None:
        return []
    if len(result.optimal) > 1:
        return [
            f"{result.optimal.sum():,} of {len(result.optimal):,} rankings are proved to "
            "contradict the least weight of comparisons"
        ]
    weight, bound = float(result.objective[0]), float(result.lower_bound[0])
    preferences = result.judgements.preferences()
    total = float(preferences.weight.sum())
    lost = f"ranking contradicts comparisons of weight {weight:g} of {total:g}"
    lines = [f"the {lost}"]
    if not result.optimal[0]:
        exact = isinstance(result.method, Kemeny) and result.method.method == "exact"
        way = "a larger time_limit" if exact else 'aggregate(judgements, Kemeny("exact"))'
        lines += [f"every ranking contradicts at least {bound:g}; {way} can find a proof"]
        return lines
    rows = result.rows_of()
    others = others_are_as_good(preferences, rows[result.parts[rows] > 0])
    if others is None:
        return [*lines, "it is proved that none contradicts less; others may contradict as little"]
    if others:
        return [
            f"a best {lost}",
            "it is proved that none contradicts less, but others contradict as little",
        ]
    return [*lines, "it is proved that all others contradict more"]


def _resamples(result: Aggregate) -> list[str]:
    """Say what the intervals are, whether the first place is clear, and what was difficult."""
    if result.n_disconnected is None or result.n_unbounded is None:
        return []
    level = f"{100 * (result.confidence_level or 0):g} %"
    drawn = f"the {result.resample}"
    one = result.judgements.queries.n_queries == 1
    if one and result.resample == "judges" and result.judgements.judges is not None:
        drawn = f"the {len(result.judgements.judges):,} judges"
    lines = [f"{level} intervals from {result.n_resamples:,} resamples of {drawn}"]
    if result.unanimous is not None and result.unanimous.any():
        where = "" if one else f" in {result.unanimous.sum():,} queries"
        lines.append(
            f"some comparisons are unanimous{where}; the intervals allow for how few they are"
        )
    kinds = [(result.n_disconnected, "the comparisons do not connect all items that the data do")]
    if isinstance(result.method, (BradleyTerry, PlackettLuce)):
        text = "some items never lose to the others, and the penalty bounds their scores"
        kinds.append((result.n_unbounded, text))
    for counts, text in kinds:
        if len(counts) == 1 and counts[0]:
            lines.append(f"in {counts[0]:,} resamples, {text}")
        elif counts.any():
            lines.append(f"in some resamples of {np.count_nonzero(counts):,} queries, {text}")
    return lines + (_first_place(result) if one else [])


def _first_place(result: Aggregate) -> list[str]:
    """Say whether the resamples leave only one item for the first place."""
    rows = result.rows_of()
    best, others = rows[0], rows[1:]
    if not len(others) or result.parts[best] == 0:
        return []
    share = f"{50 * (1 + (result.confidence_level or 0)):g} % or more"
    name = _shorten(result.items[best])
    if (result.parts[others] != result.parts[best]).any():
        return [f"first place is open: {name} cannot be compared with all items"]
    if result.is_first_clear():
        return [f"first place: {name} is above all others in {share} of the resamples"]
    shares = [result._share_above(0, best, other) for other in others]
    rival = int(np.argmin(shares))
    found = np.floor(1000 * shares[rival] + 1e-9) / 10  # not rounded up to what would be enough
    text = f"{name} is above {_shorten(result.items[others[rival]])} in only {found:g} %"
    return [f"first place is open: {text} of the resamples"]


def _shorten(name: Any) -> str:
    text = str(name).replace("\n", " ")
    return text if len(text) <= _NAME else text[: _NAME - 3] + "..."


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}-{high}"


def _decimals(scores: Floats) -> Any:
    """Return a function that writes scores with four digits of the largest, all of them alike."""
    finite = np.abs(scores[np.isfinite(scores)])
    largest = float(finite.max(initial=0.0))
    digits = 4 if largest == 0 else int(np.clip(3 - np.floor(np.log10(largest)), 0, 10))
    # -0.0 is shown as 0
    return lambda values: [f"{round(value, digits) + 0.0:.{digits}f}" for value in values.tolist()]


def _column(title: str, cells: list[str], right: bool = False) -> list[str]:
    """Pad the cells of a column to the same width."""
    width = max(map(len, [title, *cells]))
    return [cell.rjust(width) if right else cell.ljust(width) for cell in [title, *cells]]
