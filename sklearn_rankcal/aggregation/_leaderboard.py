"""The text of a leaderboard, which `print` shows for an `Aggregate`."""

from __future__ import annotations

from typing import Any

import numpy as np

from sklearn_rankcal.aggregation._contests import few_votes
from sklearn_rankcal.aggregation._intervals import main_part
from sklearn_rankcal.aggregation._kemeny import others_are_as_good
from sklearn_rankcal.aggregation._maximum_likelihood import MaximumLikelihood
from sklearn_rankcal.labels._item_ids import show_id
from sklearn_rankcal.utils._messages import counted
from sklearn_rankcal.utils._numbers import ROUNDING, Floats, Ints, exceeds, is_largest

#: Number of rows in the text, for one query and for each of several; number of queries.
_ROWS, _ROWS_OF_MANY, _QUERIES = 20, 5, 5
#: The longest name that the text shows in full.
_NAME = 30
# With fewer effective judges, intervals are long.
_FEW_JUDGES = 5


def write_leaderboard(result: Any) -> str:
    """Return the text of an `Aggregate`."""
    queries = result.judgements.queries
    several = queries.n_queries > 1
    total = counted(int(result.judgements.per_query.sum()), "judgement")
    refused = result.judgements.refused
    if refused is not None and refused.any():
        total += f" ({refused.sum():,.0f} without an answer left out)"
    head = f"{counted(len(result.items), 'item')}, {total}, {result.method!r}"
    if several:
        head = f"{counted(queries.n_queries, result._words[0])}, {head}"
    lines = [
        head,
        *result.notes,
        *_parts(result),
        *_certificate(result),
        *_resamples(result),
        *_effects(result),
        *_few_votes(result),
        *_few_judges(result),
    ]
    for query in queries.ids[:_QUERIES]:
        if several:
            lines.append(f"{result._words[0]} {show_id(query)}:")
        rows = result._rows_by_part(query)
        shown = rows[: _ROWS_OF_MANY if several else _ROWS]
        lines += _table(result, shown)
        if len(rows) > len(shown):
            lines.append(f"... {counted(len(rows) - len(shown), 'more item')}; to_frame() has all")
    if queries.n_queries > _QUERIES:
        more = counted(queries.n_queries - _QUERIES, f"more {result._words[0]}")
        lines.append(f"... {more}; to_frame() has all")
    return "\n".join(lines)


def _table(result: Any, rows: Ints) -> list[str]:
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
    if result.best_low is not None and result.best_high is not None:
        low, high = result.best_low[rows], result.best_high[rows]
        if (low < high)[result.parts[rows] > 0].any():
            texts = [_range(*ends) for ends in zip(low, high, strict=True)]
            columns.insert(1, _column("in best", texts))
    if result.score_low is not None and result.score_high is not None:
        bounds = zip(write(result.score_low[rows]), write(result.score_high[rows]), strict=True)
        texts = [f"{low} to {high}" for low, high in bounds]
        columns.append(_column("interval", texts, right=True))
    if (result.parts[rows] > 1).any():
        parts = [str(part) if part else "-" for part in result.parts[rows]]
        columns.insert(0, _column("part", parts, right=True))
    return ["  ".join(cells).rstrip() for cells in zip(*columns, strict=True)]


def _parts(result: Any) -> list[str]:
    """Report that some items cannot be compared."""
    n_queries = result.judgements.queries.n_queries
    split = np.unique(result.judgements.queries.codes[result.parts > 1])
    if not len(split):
        return []
    where = f"the items are in {counted(result.parts.max(), 'part')}"
    if n_queries > 1:
        where = (
            f"the items of {len(split):,} of {n_queries:,} {result._words[1]} are in several parts"
        )
    return [f"{where}, the largest first; scores and ranks of different parts cannot be compared"]


def _certificate(result: Any) -> list[str]:
    """Report how much Kemeny's ranking contradicts, and whether it is proved optimal."""
    if result.optimal is None:
        return []
    if len(result.optimal) > 1:
        return [
            (
                f"{result.optimal.sum():,} of {counted(len(result.optimal), 'ranking')} are "
                "proved optimal"
            )
        ]
    weight, bound = float(result.objective[0]), float(result.lower_bound[0])
    preferences = result.judgements.preferences()
    total = float(preferences.weight.sum())
    lost = f"ranking contradicts comparisons of weight {weight:g} of {total:g}"
    lines = [f"the {lost}"]
    if not result.optimal[0]:
        exact = result.method.method == "exact"
        way = "a larger time_limit" if exact else 'aggregate(judgements, Kemeny("exact"))'
        lines += [f"every ranking contradicts at least {bound:g}; {way} may find a proof"]
        return lines
    rows = result.rows_of()
    rows = rows[result.parts[rows] > 0]
    low, high, exact, others = result.best_low, result.best_high, False, None
    if low is not None:
        exact, others = bool(result._proof.exact[0]), bool((low[rows] < high[rows]).any())
    if not exact and others is not False:  # the bounds leave it open
        others = others_are_as_good(preferences, rows)
    if others is None:
        return [*lines, "proved optimal; other rankings may be equally good"]
    if not others:
        return [*lines, "proved optimal: all other rankings contradict more"]
    proof = "proved optimal, but other rankings are equally good"
    lines = [f"a best {lost}", proof]
    if low is not None:
        what = "has" if exact else "bounds"
        lines.append(
            f"the column 'in best' {what} the positions of each item in all optimal rankings"
        )
    return lines


def _effects(result: Any) -> list[str]:
    """Write the coefficients of a single query, or where to find the coefficients of several."""
    found = result.coefficients or []
    if not found:
        return []
    if result.judgements.queries.n_queries > 1:
        names = ", ".join(dict.fromkeys(one.name for one in found))
        return [f"the attribute coefficients has the effects of each {result._words[0]} ({names})"]
    lines = []
    for one in found:
        ends = [one.value, *(() if np.isnan(one.low) else (one.low, one.high))]
        small = max(abs(end) for end in ends if np.isfinite(end)) < 1e-3  # in a small unit
        value, *bounds = (f"{end:.3g}" if small else f"{end:.4f}" for end in ends)
        text = f"effect of {_shorten(one.name)}: {value}"
        if bounds:
            text += f" ({bounds[0]} to {bounds[1]})"
        lines.append(text)
    open_ended = [_shorten(one.name) for one in found if np.isinf([one.low, one.high]).sum() == 1]
    if open_ended:
        names = ", ".join(open_ended)
        lines.append(f"the votes do not bound these effects, only the penalty does: {names}")
    return lines


def _few_judges(result: Any) -> list[str]:
    """Name items and effects with few effective judges."""
    known = result._intervals
    if known is None or known.judges is None or result.judgements.queries.n_queries > 1:
        return []
    items, effects = known.judges[0]
    names = result.items[result.judgements.rows_of_query(0)].tolist()
    numbers = dict(zip(map(_shorten, names), items.tolist(), strict=True))
    for one, number in zip(result.coefficients or [], effects.tolist(), strict=True):
        numbers[f"the effect of {_shorten(one.name)}"] = number
    few = sorted((n, name) for name, n in numbers.items() if 0 < n < _FEW_JUDGES)
    if not few:
        return []
    shown = ", ".join(f"{name} ({n:.1f})" if n > 1.05 else f"{name} (1)" for n, name in few[:3])
    more = f" and {len(few) - 3:,} more" if len(few) > 3 else ""
    return [f"few judges in effect: {shown}{more}"]


def _few_votes(result: Any) -> list[str]:
    """Name items with few votes, if other items have many."""
    found = few_votes(result.judgements)
    names = [f"{_shorten(result.items[k])} ({votes:,.0f})" for k, votes in found.items()]
    if not names or result.judgements.queries.n_queries > 1:
        return []
    more = f" and {counted(len(names) - 3, 'more item')}" if len(names) > 3 else ""
    return [f"fewer than 30 votes: {', '.join(names[:3])}{more}"]


def _resamples(result: Any) -> list[str]:
    """Describe the intervals, whether the first place is clear, and any difficulties."""
    if result.intervals is not None:
        level, judges = f"{100 * result.confidence_level:g} %", result.judgements.judges
        one = result.judgements.queries.n_queries == 1
        kind = "by the information of the votes"
        of_judges = "" if judges is None else f"differences between {counted(len(judges), 'judge')}"
        if result.intervals == "robust":
            kind = "robust to a wrong model"
            kind += f", and to the {of_judges}" if of_judges else ""
        elif of_judges:
            kind += f", which ignores {of_judges}" if len(judges) > 1 else " of one judge"
        return [f"{level} intervals {kind}", *(_first_place(result) if one else [])]
    if result.n_disconnected is None or result.n_unbounded is None:
        return []
    level = f"{100 * result.confidence_level:g} %"
    drawn = f"the {result.resample}"
    one = result.judgements.queries.n_queries == 1
    if one and result.resample == "judges" and result.judgements.judges is not None:
        drawn = f"the {counted(len(result.judgements.judges), 'judge')}"
    lines = [f"{level} intervals from {counted(int(result.n_resamples), 'resample')} of {drawn}"]
    if result.unanimous is not None and result.unanimous.any():
        where = "" if one else f" in {counted(result.unanimous.sum(), 'query')}"
        lines.append(
            f"some comparisons are unanimous{where}; the intervals allow for their small number"
        )
    kinds = [
        (result.n_disconnected, "the comparisons do not connect all items that the data connect")
    ]
    if isinstance(result.method, MaximumLikelihood):
        text = "some items never lose to the rest, and only the penalty bounds their scores"
        kinds.append((result.n_unbounded, text))
    for counts, text in kinds:
        if len(counts) == 1 and counts[0]:
            lines.append(f"in {counted(int(counts[0]), 'resample')}, {text}")
        elif counts.any():
            lines.append(
                f"in some resamples of {counted(int(np.count_nonzero(counts)), 'query')}, {text}"
            )
    return lines + (_first_place(result) if one else [])


def _first_place(result: Any) -> list[str]:
    """Report whether the first place is clear."""
    rows = result.rows_of()
    parts = result.parts[rows]
    if np.count_nonzero(parts) < 2:
        return []
    main = rows[main_part(parts)]
    if not len(main):
        return ["first place is open: no part has more than half of the items"]
    among = "all others" if (parts > 0).all() else "all others that were compared"
    if (parts > 1).any():
        among = f"the other {counted(len(main) - 1, 'item')} of part 1"
    best, others = main[0], main[1:]
    name, chance = _shorten(result.items[best]), float(result._known().first[0])
    if result.is_first_clear():
        share = f"{50 * (1 + result.confidence_level):g} % or more"
        return [f"first place: {name} is above {among} at once {_chance(result, share)}"]
    shares = result.probability_matrix()[0, 1 : len(main)]
    rival = int(np.flatnonzero(is_largest(-shares))[0])
    if exceeds((1 + result.confidence_level) / 2, shares[rival], 1.0):
        among, chance = _shorten(result.items[others[rival]]), float(shares[rival])
    else:
        among += " at once"
    found = np.floor(1000 * (chance + ROUNDING)) / 10  # do not round up to a sufficient share
    text = f"{name} is above {among}"
    return [f"first place is open: {text} {_chance(result, f'only {found:g} %')}"]


def _chance(result: Any, share: str) -> str:
    return (
        f"with a probability of {share}"
        if result.n_resamples == 0
        else f"in {share} of the resamples"
    )


def _shorten(name: Any) -> str:
    text = str(name).replace("\n", " ")
    return text if len(text) <= _NAME else text[: _NAME - 3] + "..."


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}-{high}"


def _decimals(scores: Floats) -> Any:
    """Return a function that writes scores with the decimals that give the largest four digits."""
    finite = np.abs(scores[np.isfinite(scores)])
    largest = float(finite.max(initial=0.0))
    digits = 4 if largest == 0 else int(np.clip(3 - np.floor(np.log10(largest)), 0, 10))
    # -0.0 is shown as 0
    return lambda values: [f"{round(value, digits) + 0.0:.{digits}f}" for value in values.tolist()]


def _column(title: str, cells: list[str], right: bool = False) -> list[str]:
    """Pad the cells of a column to the same width."""
    width = max(map(len, [title, *cells]))
    return [cell.rjust(width) if right else cell.ljust(width) for cell in [title, *cells]]
