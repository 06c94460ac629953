"""Votes by their times: weights that fade, and the votes of a period."""

from __future__ import annotations

import datetime
import re
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.aggregation._contests import read_time
from sklearn_rankcal.labels._rankings import Comparisons
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._messages import counted
from sklearn_rankcal.utils._parameters import check_number

if TYPE_CHECKING:
    from sklearn_rankcal.aggregation._judgements import Judgements

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_DURATION = re.compile(
    r"\s*([0-9]*\.?[0-9]+)\s*(s|seconds?|min|minutes?|h|hours?|d|days?|w|weeks?)\s*", re.IGNORECASE
)


def fade(judgements: Judgements, half_life: Any, now: Any) -> Judgements:
    """Weight votes by their age; `Judgements.faded` has the parameters."""
    time = times_of(judgements, "faded")
    last = time.max() if now is None else read_moment(now, time, "now")
    later = time > last
    if later.any():
        raise ValueError(
            f"now={last} is before {counted(later.sum(), 'vote')}. Leave out what is later by "
            "judgements.between(None, now)."
        )
    weight = np.exp2(-((last - time) / read_duration(half_life, time, "half_life")))
    old = judgements.comparisons
    owner = judgements.of_comparison
    of_pairs = weight if owner is None else weight[owner]
    of_pairs = of_pairs if old.weight is None else of_pairs * old.weight
    comparisons = Comparisons(old.winner, old.loser, of_pairs, old.offsets)
    return judgements.replace_comparisons(comparisons)


def between(judgements: Judgements, start: Any, end: Any) -> Judgements:
    """Take the votes of a period; `Judgements.between` has the parameters."""
    time = times_of(judgements, "between")
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
    queries = judgements.queries
    taken = np.flatnonzero(kept)
    same = np.arange(queries.n_queries)
    votes = judgements.resample(taken, judgements.query[taken], same)
    winner, loser, _, _ = votes.comparisons
    rows = np.unique(np.append(winner, loser))
    left, sizes = np.unique(votes.queries.codes[rows], return_counts=True)
    offsets = np.append(0, np.cumsum(sizes))
    return votes.take_rows(rows, Queries(offsets, None, queries.ids[left]))


def times_of(judgements: Judgements, method: str) -> NDArray[Any]:
    """Return the times of all votes, or raise ValueError."""
    details = judgements.details
    if details is None or details.time is None:
        raise ValueError(
            f"{method} needs the time of each vote. Pass time= to Judgements.from_votes."
        )
    return details.time


def read_moment(value: Any, time: NDArray[Any], name: str) -> Any:
    """Return a point in time as the times have it: a number or a time stamp."""
    read = read_time([value], 1, name)
    assert read is not None
    if (read.dtype.kind == "M") != (time.dtype.kind == "M"):
        kinds = ("a time stamp", "a number")
        wanted, came = kinds if time.dtype.kind == "M" else kinds[::-1]
        raise ValueError(f"{name} must be {wanted}, as the times of the votes are; got {came}.")
    return read[0]


def read_duration(value: Any, time: NDArray[Any], name: str) -> Any:
    """Return a duration > 0, which differences of the times can be divided by."""
    if time.dtype.kind != "M":
        if isinstance(value, str | np.timedelta64 | datetime.timedelta):
            raise ValueError(
                f"{name} must be a number, as the times of the votes are; got {value!r}."
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
