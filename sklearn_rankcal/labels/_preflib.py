"""Reader of orders in the formats of PrefLib, a library of preference data."""

from __future__ import annotations

import re
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from sklearn_rankcal.utils._memory import check_memory
from sklearn_rankcal.utils._numbers import LARGEST_WHOLE
from sklearn_rankcal.utils._text_files import LineReader

Floats = NDArray[np.float64]
_PREFLIB_TYPES = ("soc", "soi", "toc", "toi")
#: Largest number of alternatives that are neither listed in an order nor named in the header.
MOST_UNKNOWN = 100_000
# Patterns of an order. White space may surround commas, colons and braces; it may not be inside
# a number.
_NUMBER, _GAP = r"\d{1,18}", r"\s*"
_COMMA = f"{_GAP},{_GAP}"
_TIER = rf"(?:{_NUMBER}|\{{{_GAP}{_NUMBER}(?:{_COMMA}{_NUMBER})*{_GAP}\}})"
_ORDER = re.compile(rf"({_NUMBER}){_GAP}:{_GAP}({_TIER}(?:{_COMMA}{_TIER})*)", re.ASCII)
_ONE_TIER, _ONE_NUMBER = re.compile(r"\{[^}]*\}|\d+"), re.compile(r"\d+")


class PrefLibOrders(Bunch):
    """The data that `read_preflib` returns: orders over alternatives, and the voters of each."""

    def preferences(self, unlisted: str = "ignore") -> Floats:
        """Count the voters who prefer one alternative to another.

        Parameters
        ----------
        unlisted : {"ignore", "last"}, default="ignore"
            How to interpret an order that does not list all alternatives. With ``"ignore"`` the
            order expresses no preference about the alternatives that it does not list. With
            ``"last"`` these alternatives are tied below all that it lists, as in a list of
            favourites.

        Returns
        -------
        weights : ndarray of shape (r, r)
            ``weights[i, j]`` is the number of voters who rank alternative i above alternative j. It
            can be passed to `decoders.decode_preferences`. The cost is O(n_orders r^2) time and
            O(n_orders r) memory.

        Raises
        ------
        ValueError
            If `unlisted` is unknown, or if the weights would not fit in memory.
        """
        if unlisted not in ("ignore", "last"):
            raise ValueError(f"Unknown unlisted {unlisted!r}. Known: 'ignore', 'last'.")
        r = len(self.alternatives)
        check_memory(
            8 * r * r, f"Weights of {r:,} alternatives", "Count the pairs of `orders` yourself."
        )
        ranks = self.ranks
        if unlisted == "last":
            ranks = np.where(np.isnan(ranks), np.inf, ranks)
        counts = self.counts.astype(np.float64)
        rows = [counts @ (ranks[:, [i]] < ranks) for i in range(r)]  # r passes of O(n_orders r)
        return np.array(rows)

    @cached_property
    def ranks(self) -> Floats:
        """The orders as ranks of shape (n_orders, r), 1 = best.

        The array is computed when it is first used. ValueError if it would not fit in memory.
        """
        shape = (len(self.orders), len(self.alternatives))
        check_memory(
            8 * shape[0] * shape[1],
            f"Ranks of {shape[0]:,} x {shape[1]:,}",
            "Use `orders`, which needs less memory.",
        )
        ranks = np.full(shape, np.nan)
        for row, order in enumerate(self.orders):
            position = 1
            for tier in order:
                ranks[row, tier] = position
                position += len(tier)
        return ranks

    def __missing__(self, key: str) -> Any:
        """Let data["ranks"] return the same as data.ranks."""
        if key == "ranks":
            return self.ranks
        raise KeyError(key)


def read_preflib(path: str | PathLike[str]) -> PrefLibOrders:
    """Read orders in the formats of PrefLib: ``.soc``, ``.soi``, ``.toc`` and ``.toi``.

    Parameters
    ----------
    path : path
        A file, plain or ``.gz``. Lines that begin with ``#`` contain metadata. Each other line is
        ``count: order``: the number of voters and their order of the alternatives, best first.
        Alternatives are numbered from 1, and braces surround ties.

    Returns
    -------
    data : PrefLibOrders
        A Bunch with the method ``preferences()``, which returns an (r, r) array of weights, and
        these entries:

        - ``alternatives``: the r names. An alternative without a name has its number as the name.
        - ``orders``: for each order a list of tiers, best first. A tier is a list of tied indices
          into `alternatives`.
        - ``counts``: the number of voters of each order, int64.
        - ``ranks``, of shape (n_orders, r): the same orders as ranks, 1 = best. Ties share the best
          rank of their tier, and alternatives that are not listed have NaN. The array is computed
          when it is first used.
        - ``title`` and ``data_type``, from the metadata.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    ValueError
        If a line is not an order; if an order lists an alternative twice, or an alternative whose
        number exceeds the number of alternatives in the header; if the file has another type of
        data or no orders; if more than 100,000 alternatives are neither listed nor named; if a
        compressed file is damaged or cut short; or if the text does not fit in memory. If a single
        line causes the error, the error names that line.

    Notes
    -----
    The header also announces the numbers of voters and of orders. They are not compared with the
    file, because headers of edited files are often out of date.

    References
    ----------
    N. Mattei, T. Walsh: PrefLib: a library for preferences. Algorithmic Decision Theory, 2013.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn_rankcal.labels import read_preflib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "tea.toi")
    ...     _ = file.write_text("# ALTERNATIVE NAME 1: tea\\n3: 1,{2,3}\\n2: 3\\n")
    ...     data = read_preflib(file)
    >>> data.alternatives, data.orders, data.counts.tolist()
    (['tea', '2', '3'], [[[0], [1, 2]], [[2]]], [3, 2])
    >>> data.preferences()[0].tolist(), data.preferences(unlisted="last")[2].tolist()
    ([0.0, 3.0, 3.0], [2.0, 2.0, 0.0])
    """
    header: dict[str, tuple[int, str]] = {}
    orders: list[list[list[int]]] = []
    counts: list[int] = []
    last, last_line = 0, 0  # the largest number of an alternative, and a line that contains it
    known: set[int] = set()  # numbers of alternatives that are listed or named
    lines = LineReader(path, bytes_per_character=40, bytes_per_line=200)
    for number, line in lines:
        text = line.strip()
        if text.startswith("#"):
            _read_header(text, header, lines)
            continue
        found = _ORDER.fullmatch(text)
        if found is None:
            raise lines.error(
                f"{text[:80]!r} is not an order. An order of PrefLib has the form "
                "'count: 3,{1,2},4', without white space inside numbers."
            )
        tiers = _ONE_TIER.findall(found[2])
        order = [[int(k) - 1 for k in _ONE_NUMBER.findall(tier)] for tier in tiers]
        listed = [k for tier in order for k in tier]
        if len(set(listed)) < len(listed):
            raise lines.error(f"an alternative is listed twice in {text[:80]!r}.")
        if min(listed) < 0:
            raise lines.error("alternatives are numbered from 1.")
        if int(found[1]) > LARGEST_WHOLE:
            raise lines.error(f"the count {found[1]} is beyond 2^53.")
        if 1 + max(listed) > last:
            last, last_line = 1 + max(listed), number
        known.update(k + 1 for k in listed)
        orders.append(order)
        counts.append(int(found[1]))
    _, data_type = header.get("DATA TYPE", (0, ""))
    data_type = data_type.lower()
    if data_type and data_type not in _PREFLIB_TYPES:
        raise ValueError(
            f"{path} has the unknown DATA TYPE {data_type}. Known: {', '.join(_PREFLIB_TYPES)}."
        )
    if not orders:
        raise ValueError(f"{path} has no orders.")
    names = _alternative_names(header, path)
    for k, (number, _) in names.items():
        if k > last:
            last, last_line = k, number
    known.update(names)
    r, r_line = _announced(header, last, last_line, path)
    if last > r:
        raise ValueError(
            f"The header of {path} gives the number of alternatives as {r}, but line {last_line} "
            f"lists or names alternative {last}."
        )
    if r - len(known) > MOST_UNKNOWN:
        raise ValueError(
            f"{path}, line {r_line}: there would be {r:,} alternatives, but the file lists or "
            f"names only {len(known):,} of them. At most {MOST_UNKNOWN:,} may be neither listed "
            f"nor named. Check the number {r}, or number the alternatives without gaps."
        )
    return PrefLibOrders(
        alternatives=[names[k][1] if k in names else str(k) for k in range(1, r + 1)],
        orders=orders,
        counts=np.array(counts, dtype=np.int64),
        title=header.get("TITLE", (0, ""))[1],
        data_type=data_type,
    )


# ---------------------------------------------------------------- the header of a PrefLib file


def _read_header(text: str, header: dict[str, tuple[int, str]], lines: LineReader) -> None:
    """Store (line, value) of a line ``# KEY: value``. If a key is repeated, its first line counts.

    Two different values for the number of alternatives, or for a name, are an error.
    """
    key, _, value = text[1:].partition(":")
    key, value = key.strip().upper(), value.strip()
    first, stored = header.setdefault(key, (lines.number, value))
    if stored != value and (key == "NUMBER ALTERNATIVES" or key.startswith("ALTERNATIVE NAME")):
        raise lines.error(f"{key} is {value[:80]!r}, but {stored[:80]!r} in line {first}.")


def _alternative_names(
    header: dict[str, tuple[int, str]], path: str | PathLike[str]
) -> dict[int, tuple[int, str]]:
    """Return (line, name) of each numbered alternative that has a name."""
    names = {}
    for key, value in header.items():
        found = re.fullmatch(rf"ALTERNATIVE NAME ({_NUMBER})", key, re.ASCII)
        if found:
            if int(found[1]) < 1:
                raise ValueError(f"{path}, line {value[0]}: alternatives are numbered from 1.")
            names[int(found[1])] = value
    return names


def _announced(
    header: dict[str, tuple[int, str]], last: int, last_line: int, path: str | PathLike[str]
) -> tuple[int, int]:
    """Return the number of alternatives, and the line that determines it.

    If the header does not contain it, it is the largest number of an alternative, `last`.
    """
    if "NUMBER ALTERNATIVES" not in header:
        return last, last_line
    line, value = header["NUMBER ALTERNATIVES"]
    if re.fullmatch(_NUMBER, value, re.ASCII) is None:
        raise ValueError(
            f"{path}, line {line}: NUMBER ALTERNATIVES must be a whole number; got {value[:80]!r}."
        )
    return int(value), line
