"""Quotas of groups among the first places of each query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from scipy.stats import binom

from sklearn_rankcal.utils._messages import counted
from sklearn_rankcal.utils._names import checks_keywords
from sklearn_rankcal.utils._typing import Ints

#: Bound on the number of documents: a number, one per prefix, or a dictionary of these by group.
Bound = int | Sequence[int] | Mapping[Any, int | Sequence[int]]


class Quota:
    """Bound the number of documents of each group among the first places of a query.

    Parameters
    ----------
    of : array-like of shape (n_documents,) or str
        Group of each row, such as its brand, or the name of a column of the data frame X. None and
        NaN mean no group. If boolean, the rows with True are the only group.
    first : int or list of int
        Number of places, or an increasing list of numbers. If a query shows this number of
        documents or fewer, `at_most` has no effect.
    at_least, at_most : int, list of int or dict, default=None
        Bounds for each group of the query: a number, a list with one number per entry of `first`,
        or a dictionary from groups to either. Groups that are not in the dictionary have no bound.
        A query without documents of a group breaks `at_least` only if the dictionary names the
        group or if `of` is boolean.

    Raises
    ------
    ValueError
        If there is no bound, or if a number is negative or not a whole number.

    See Also
    --------
    Rules : Rules for the rankings of a ranker.

    Examples
    --------
    >>> from sklearn_rankcal.decoders import Quota
    >>> quota = Quota(["x", "x", "y"], first=2, at_most=1)
    >>> quota
    Quota(of=['x', 'x', 'y'], first=2, at_most=1)
    >>> from sklearn_rankcal.decoders import Rules, decode_scores
    >>> decode_scores([0.9, 0.8, 0.1], rules=Rules(quotas=[quota])).ranks.tolist()
    [1, 3, 2]
    """

    @checks_keywords
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
        """Name of the column of X with the groups, or None."""
        return self._column

    def copy_for(self, of: Any) -> Quota:
        """Return the same quota with the groups `of`."""
        quota = Quota(of, first=self.first, at_least=self.at_least, at_most=self.at_most)
        quota._column = self._column
        return quota

    def bounds(self, group: Any) -> Iterator[tuple[int, int | None, int | None]]:
        """Yield (prefix, at_least, at_most) for each entry of `first`."""
        for number, prefix in enumerate(self._prefixes):
            at_least = _entry(self.at_least, group, number)
            yield prefix, at_least, _entry(self.at_most, group, number)

    @classmethod
    @checks_keywords
    def fair(cls, of: Any, *, first: int, share: float, level: float = 0.1) -> Quota:
        """Require a fair number of documents of a group in every prefix, as FA*IR does [1]_.

        The number for each prefix is the smallest that is plausible if each place is drawn at
        random from a lottery.

        Parameters
        ----------
        of : array-like of bool of shape (n_documents,) or str
            Whether each row is in the protected group, or the name of a column of X.
        first : int
            The prefixes are 1, 2, ..., `first`.
        share : float
            Share of the group in the lottery, between 0 and 1.
        level : float, default=0.1
            Largest probability that the lottery itself breaks the quota in at least one prefix. It
            is computed exactly, and the quota is the strictest one of its kind.

        Returns
        -------
        quota : Quota
            A quota with `at_least` for each prefix.

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
            raise ValueError(
                f"share and level must lie between 0 and 1; got {share!r} and {level!r}."
            )
        prefixes = np.arange(1, *(k + 1 for k in _whole_numbers(first, "first", smallest=1)))
        # largest level at which the lottery fails with probability <= level, by bisection
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
        raise ValueError(f"{name} must be whole numbers >= {smallest}; got {value!r}.")
    return [int(k) for k in numbers]


def _entry(bound: Bound | None, group: Any, number: int) -> int | None:
    """Return the bound of a group for the prefix of this number, or None."""
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
    """Return the least number in each prefix that the test at this level does not reject."""
    return np.maximum(binom.ppf(level, prefixes, share), 0).astype(np.int64)


def _failure_probability(table: Ints, share: float) -> float:
    """Return the probability that independent draws fall below the table in some prefix."""
    alive = np.zeros(len(table) + 1)  # probability of each count so far, without failed draws
    alive[0] = 1.0
    for least in table:
        alive[1:] = alive[1:] * (1 - share) + alive[:-1] * share
        alive[0] *= 1 - share
        alive[:least] = 0.0
    return 1.0 - float(alive.sum())
