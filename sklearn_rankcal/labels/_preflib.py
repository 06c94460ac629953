"""Reader of orders in the formats of PrefLib, a library of preference data."""

from __future__ import annotations

import re
from functools import cached_property
from os import PathLike

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from sklearn_rankcal.utils._numbers import LARGEST_WHOLE
from sklearn_rankcal.utils._text_files import LineReader

_TYPES = ("soc", "soi", "toc", "toi")
#: Largest number of alternatives that are neither listed in an order nor named in the header.
_MOST_UNKNOWN = 100_000
# Patterns of an order. White space may surround commas, colons and braces; it may not be inside
# a number.
_NUMBER, _GAP = r"\d{1,18}", r"\s*"
_COMMA = f"{_GAP},{_GAP}"
_TIER = rf"(?:{_NUMBER}|\{{{_GAP}{_NUMBER}(?:{_COMMA}{_NUMBER})*{_GAP}\}})"
_ORDER = re.compile(rf"({_NUMBER}){_GAP}:{_GAP}({_TIER}(?:{_COMMA}{_TIER})*)", re.ASCII)


class PrefLibOrders(Bunch):
    """The data that `read_preflib` returns: orders over alternatives, and the voters of each."""

    def preferences(self, unlisted: str = "ignore") -> NDArray[np.float64]:
        """Count the voters who prefer one alternative to another.

        Parameters
        ----------
        unlisted : {"ignore", "last"}, default="ignore"
            What an order says about the alternatives that it does not list: nothing, or that they
            are tied below all that it lists.

        Returns
        -------
        weights : ndarray of shape (r, r)
            ``weights[i, j]`` is the number of voters who rank alternative i above alternative j. It
            can be passed to `decoders.decode_preferences`. The cost is O(n_orders r^2) time.

        Raises
        ------
        ValueError
            If `unlisted` is unknown.
        """
        if unlisted not in ("ignore", "last"):
            raise ValueError(f"Unknown unlisted {unlisted!r}. Known: 'ignore', 'last'.")
        ranks = np.where(np.isnan(self.ranks), np.inf if unlisted == "last" else np.nan, self.ranks)
        counts = self.counts.astype(np.float64)
        return np.array([counts @ (ranks[:, [i]] < ranks) for i in range(ranks.shape[1])])

    @cached_property
    def ranks(self) -> NDArray[np.float64]:
        """The orders as ranks, (n_orders, r), 1 = best, NaN if not listed; made when first used."""
        ranks = np.full((len(self.orders), len(self.alternatives)), np.nan)
        for row, order in enumerate(self.orders):
            position = 1
            for tier in order:
                ranks[row, tier] = position
                position += len(tier)
        return ranks


def read_preflib(path: str | PathLike[str]) -> PrefLibOrders:
    """Read orders in the formats of PrefLib: ``.soc``, ``.soi``, ``.toc`` and ``.toi``.

    Parameters
    ----------
    path : path
        A file, plain, ``.gz`` or ``.bz2``. Lines that begin with ``#`` contain metadata. Each other
        line is ``count: order``: the number of voters and their order of the alternatives, best
        first. Alternatives are numbered from 1, and braces surround ties.

    Returns
    -------
    data : PrefLibOrders
        A Bunch with the method ``preferences()``, which returns an (r, r) array of weights; with
        ``ranks`` of shape (n_orders, r), the orders as ranks, 1 = best, where ties share the best
        rank of their tier, and NaN marks alternatives that are not listed; and with these entries:

        - ``alternatives``: the r names. An alternative without a name has its number as the name.
        - ``orders``: for each order a list of tiers, best first. A tier is a list of tied indices
          into `alternatives`.
        - ``counts``: the number of voters of each order, int64.
        - ``title`` and ``data_type``, from the metadata.

    Raises
    ------
    ValueError
        If a line is not an order, or lists an alternative twice; if an alternative has a number
        beyond that in the header; if the file has another type of data or no orders; if more than
        100,000 alternatives are neither listed nor named; or if a compressed file is damaged. If a
        single line causes the error, the error names that line.

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
    header: dict[str, str] = {}
    names: dict[int, str] = {}
    orders: list[list[list[int]]] = []
    counts: list[int] = []
    known: set[int] = set()  # numbers of alternatives that are listed or named
    lines = LineReader(path)
    for line in lines:
        text = line.strip()
        if text.startswith("#"):
            key, _, value = (part.strip() for part in text[1:].partition(":"))
            key = key.upper()
            if header.setdefault(key, value) != value and key == "NUMBER ALTERNATIVES":
                raise lines.error(f"{key} is {value[:80]!r}, but {header[key][:80]!r} before.")
            if found := re.fullmatch(rf"ALTERNATIVE NAME ({_NUMBER})", key, re.ASCII):
                names.setdefault(int(found[1]), value)
                listed = [int(found[1])]
            else:
                listed = []
        else:
            found = _ORDER.fullmatch(text)
            if found is None:
                raise lines.error(
                    f"{text[:80]!r} is not an order. An order of PrefLib has the form "
                    "'count: 3,{1,2},4', without white space inside numbers."
                )
            tiers = [re.findall(r"\d+", tier) for tier in re.findall(r"\{[^}]*\}|\d+", found[2])]
            listed = [int(number) for tier in tiers for number in tier]
            if len(set(listed)) < len(listed):
                raise lines.error(f"an alternative is listed twice in {text[:80]!r}.")
            if int(found[1]) > LARGEST_WHOLE:
                raise lines.error(f"the count {found[1]} is beyond 2^53.")
            orders.append([[int(number) - 1 for number in tier] for tier in tiers])
            counts.append(int(found[1]))
        if 0 in listed:
            raise lines.error("alternatives are numbered from 1.")
        known.update(listed)
    data_type = header.get("DATA TYPE", "").lower()
    if data_type and data_type not in _TYPES:
        raise ValueError(
            f"{path} has the unknown DATA TYPE {data_type}. Known: {', '.join(_TYPES)}."
        )
    if not orders:
        raise ValueError(f"{path} has no orders.")
    announced = header.get("NUMBER ALTERNATIVES", str(max(known)))
    if re.fullmatch(_NUMBER, announced, re.ASCII) is None:
        raise ValueError(
            f"{path}: NUMBER ALTERNATIVES must be a whole number; got {announced[:80]!r}."
        )
    r = int(announced)
    if max(known) > r:
        raise ValueError(
            f"The header of {path} gives the number of alternatives as {r}, but the file lists or "
            f"names alternative {max(known)}."
        )
    if r - len(known) > _MOST_UNKNOWN:
        raise ValueError(
            f"{path}: there would be {r:,} alternatives, but the file lists or names only "
            f"{len(known):,} of them. At most {_MOST_UNKNOWN:,} may be neither listed nor named."
        )
    return PrefLibOrders(
        alternatives=[names.get(k, str(k)) for k in range(1, r + 1)],
        orders=orders,
        counts=np.array(counts, dtype=np.int64),
        title=header.get("TITLE", ""),
        data_type=data_type,
    )
