"""Quotas of groups among the first places of each query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from scipy.stats import binom

from sklearn_rankcal.utils._messages import counted
from sklearn_rankcal.utils._typing import Ints

#: A bound on the number of documents: one number, one for each prefix, or either for each group.
Bound = int | Sequence[int] | Mapping[Any, int | Sequence[int]]


class Quota:
    """At least or at most so many documents of a group among the first places of each query.

    Parameters
    ----------
    of : array-like of shape (n_documents,) or str
        The group of each row, such as its brand, or the name of a column of the data frame X. None
        and NaN mean no group. If it is boolean, the rows with True are the only group, and the
        bounds hold for it as for a group that a dictionary names.
    first : int or list of int
        The number of places, or an increasing list of them. Where a query shows as many documents
        or fewer, `at_most` asks for nothing, because every ranking has them all.
    at_least, at_most : int, list of int or dict, default=None
        The bounds for each group that occurs in the query: a number, a list with one number for
        each entry of `first`, or a dictionary from groups to either. A group that the dictionary
        does not name has no bound. One that it names breaks `at_least` if the query lacks it.

    Raises
    ------
    ValueError
        If there is no bound, or if a number is negative or is not a whole number.

    Examples
    --------
    >>> from sklearn_rankcal.decoders import Quota
    >>> Quota(["x", "y", "x"], first=2, at_most=1)
    Quota(of=['x', 'y', 'x'], first=2, at_most=1)
    """

    def __init__(
        self,
        of: Any,
        *,
        first: int | Sequence[int],
        at_least: Bound | None = None,
        at_most: Bound | None = None,
    ) -> None:
        if at_least is None and at_most is None:
            raise ValueError("A Quota needs at_least or at_most.")
        self.of = of
        self.first = first
        self.at_least = at_least
        self.at_most = at_most
        self._column = of if isinstance(of, str) else None
        self._prefixes = _whole_numbers(first, "first", smallest=1)
        for name, bound in (("at_least", at_least), ("at_most", at_most)):
            for one in bound.values() if isinstance(bound, Mapping) else [bound]:
                found = [] if one is None else _whole_numbers(one, name)
                if len(found) > 1 and len(found) != len(self._prefixes):
                    raise ValueError(
                        f"{name} has {counted(len(found), 'number')}, but first has "
                        f"{len(self._prefixes)}."
                    )

    def __repr__(self) -> str:
        shown = {"of": self._column or shorten(self.of), "first": self.first}
        shown |= {"at_least": self.at_least, "at_most": self.at_most}
        return f"Quota({', '.join(f'{k}={v!r}' for k, v in shown.items() if v is not None)})"

    @property
    def column(self) -> str | None:
        """The name of the column of the groups, if they were given by one."""
        return self._column

    def copy_for(self, of: Any) -> Quota:
        """Return the same quota for other rows, or with a column in the place of its name."""
        quota = Quota(of, first=self.first, at_least=self.at_least, at_most=self.at_most)
        quota._column = self._column
        return quota

    def bounds(self, group: Any) -> Iterator[tuple[int, int | None, int | None]]:
        """Yield each prefix with its smallest and its largest number of documents of a group."""
        for number, prefix in enumerate(self._prefixes):
            at_least = _entry(self.at_least, group, number)
            yield prefix, at_least, _entry(self.at_most, group, number)

    @classmethod
    def fair(cls, of: Any, *, first: int, share: float, level: float = 0.1) -> Quota:
        """Require of every prefix what a fair lottery would give, as FA*IR does [1]_.

        Parameters
        ----------
        of : array-like of shape (n_documents,) of bool, or str
            Which rows are in the protected group, or the name of a column.
        first : int
            The prefixes are 1, 2, ..., `first`.
        share : float
            The share of the group in the lottery, between 0 and 1.
        level : float, default=0.1
            The probability that the lottery itself fails the table in at least one prefix is at
            most this: it is computed exactly, and the table is the strictest one of its kind.

        Returns
        -------
        quota : Quota

        References
        ----------
        .. [1] M. Zehlike, F. Bonchi, C. Castillo, S. Hajian, M. Megahed and R. Baeza-Yates (2017).
           FA*IR: A fair top-k ranking algorithm. CIKM.

        Examples
        --------
        >>> from sklearn_rankcal.decoders import Quota
        >>> Quota.fair("young", first=10, share=0.5).at_least
        [0, 0, 0, 0, 1, 1, 1, 2, 2, 3]
        """
        if not 0 < share < 1 or not 0 < level < 1:
            raise ValueError(f"share and level are between 0 and 1; got {share!r} and {level!r}.")
        prefixes = np.arange(1, *(k + 1 for k in _whole_numbers(first, "first", smallest=1)))
        # The table changes at the few levels at which an entry does: bisection finds the largest.
        low, high = 0.0, level
        for _ in range(40):
            middle = (low + high) / 2
            fails = _failure_probability(_fair_table(prefixes, share, middle), share)
            low, high = (middle, high) if fails <= level else (low, middle)
        table = [int(m) for m in _fair_table(prefixes, share, low)]
        return cls(of, first=prefixes.tolist(), at_least=table)


def _whole_numbers(value: Any, name: str, smallest: int = 0) -> list[int]:
    numbers = list(value) if isinstance(value, list | tuple | np.ndarray) else [value]
    fine = all(isinstance(k, Integral) and not isinstance(k, bool) for k in numbers)
    if not numbers or not fine or any(k < smallest for k in numbers):
        raise ValueError(f"{name} must be whole numbers from {smallest} on; got {value!r}.")
    return [int(k) for k in numbers]


def _entry(bound: Bound | None, group: Any, number: int) -> int | None:
    """The bound of a group for the prefix of a number, or None."""
    if isinstance(bound, Mapping):
        bound = bound.get(group)
    if bound is None or isinstance(bound, int):
        return bound
    listed = np.atleast_1d(np.asarray(bound))
    return int(listed[number if len(listed) > 1 else 0])


def shorten(value: Any) -> Any:
    if value is None or isinstance(value, str) or np.size(value) <= 8:
        return value
    return f"<{counted(np.size(value), 'value')}>"


# ------------------------------------------------------------------ FA*IR


def _fair_table(prefixes: Ints, share: float, level: float) -> Ints:
    """The least number in each prefix that the test at this level does not reject."""
    return np.maximum(binom.ppf(level, prefixes, share), 0).astype(np.int64)


def _failure_probability(table: Ints, share: float) -> float:
    """The probability that independent draws have fewer than the table in some prefix."""
    alive = np.zeros(len(table) + 1)  # probability of each number so far, without those that failed
    alive[0] = 1.0
    for least in table:
        alive[1:] = alive[1:] * (1 - share) + alive[:-1] * share
        alive[0] *= 1 - share
        alive[:least] = 0.0
    return 1.0 - float(alive.sum())
