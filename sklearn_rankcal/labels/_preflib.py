"""Reader of orders in the formats of PrefLib, a library of preference data."""

from __future__ import annotations

import json
import re
from os import PathLike

from sklearn_rankcal.utils._text_files import LineReader

_TYPES = ("soc", "soi", "toc", "toi")
#: Largest number of alternatives that have no name.
_MOST_UNNAMED = 100_000
_HEADER = re.compile(r"\s*#\s*(ALTERNATIVE NAME|NUMBER ALTERNATIVES|DATA TYPE)([ \d]*):(.*)")
_ORDER = re.compile(r"\s*(\d{1,15})\s*:((?:[\d\s,]|\{[\d\s,]*\})+)", re.ASCII)
Order = list[int | list[int]]


def read_preflib(path: str | PathLike[str]) -> tuple[list[Order], list[int], dict[int, str]]:
    """Return the orders, the number of voters of each, and the name of each alternative.

    An order consists of numbers of alternatives and lists of tied ones, which `Judgements` checks.
    Alternatives that the file does not name are named by their numbers.
    """
    orders, counts, names = [], [], {}
    r = 0
    lines = LineReader(path)
    for line in lines:
        try:
            if header := _HEADER.match(line):
                key, number, value = header[1], header[2], header[3].strip()
                if key == "ALTERNATIVE NAME":
                    names[int(number)] = value
                elif key == "NUMBER ALTERNATIVES":
                    r = int(value)
                elif value not in _TYPES:
                    raise ValueError(f"the data type is not one of {', '.join(_TYPES)}")
            elif not line.lstrip().startswith("#"):
                order = _ORDER.fullmatch(line)
                if order is None:
                    raise ValueError("an order is 'count: 3,{1,2},4'")
                counts.append(int(order[1]))
                orders.append(json.loads(f"[{order[2].replace('{', '[').replace('}', ']')}]"))
        except ValueError as error:
            raise lines.error(f"{line.strip()[:80]!r} cannot be read: {error}.") from None
    if not orders or r < 1:
        raise ValueError(f"{path} has no orders, or no header '# NUMBER ALTERNATIVES: 3'.")
    if r - len(names) > _MOST_UNNAMED:
        raise ValueError(f"{path} names {len(names):,} of {r:,} alternatives.")
    return orders, counts, {k: names.get(k, str(k)) for k in range(1, r + 1)}
