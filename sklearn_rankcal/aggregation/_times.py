"""Times of votes: reading, weights that decay with age, and the votes of a period."""

from __future__ import annotations

import datetime
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.labels._item_ids import check_length
from sklearn_rankcal.utils._messages import counted
from sklearn_rankcal.utils._numbers import check_no_name, is_missing, read_numbers
from sklearn_rankcal.utils._parameters import check_number
from sklearn_rankcal.utils._typing import Bools, Floats

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
