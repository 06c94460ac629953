"""Reader of orders in the formats of PrefLib, a library of preference data."""

from __future__ import annotations

import json
import os
import re
from os import PathLike

from sklearn_rankcal.utils._messages import warn
from sklearn_rankcal.utils._text_files import LineReader

_TYPES = ("soc", "soi", "toc", "toi")
#: Largest number of alternatives that have no name.
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

    An order consists of numbers of alternatives and lists of tied ones, which `Judgements` checks.
    Alternatives that the file does not name are named by their numbers.
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
                f"{path} states '# {title}: {n_stated}', but its orders make {found[title]}. Was "
                "the file cut short?"
            )
    return orders, counts, {k: names.get(k, str(k)) for k in range(1, r + 1)}


def _check_kind(order: Order, kind: str, r: int, where: str) -> None:
    """Raise an error if an order has ties or lacks alternatives although its type excludes it."""
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
