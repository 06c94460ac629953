"""Rules that a ranking has to keep: places of documents, orders of two, and quotas of groups.

`Rules` holds what a user says about the rows of X. `_rules_of_queries` converts it to the rules of
each query.
"""

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
PER_ROW = ("place", "earliest", "latest", "blocked")


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
        shown = {"of": self._column or _short(self.of), "first": self.first}
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


class Rules:
    """What the ranking of each query has to keep, for the ``predict`` of a fitted ranker.

    A ranking that keeps the rules and has the least expected loss is still found exactly where
    decoding without rules is exact (for ``loss="pd_by_scores"`` only with labels of two grades or
    ``pair_weight="graded"``): the same predictions serve with other rules each day. The places are
    counted without the blocked documents. :ref:`rules` explains all of it.

    Parameters
    ----------
    place : array-like of shape (n_documents,) or str, default=None
        The place, 1 = top, at which a row is pinned. None, NaN and 0 mean that it is free. Here and
        below, a string is the name of a column of the data frame X. A column with which the ranker
        was not fitted is taken out of X.
    earliest, latest : array-like of shape (n_documents,) or str, default=None
        The first and the last place that a row may have.
    blocked : array-like of bool of shape (n_documents,) or str, default=None
        Rows that are not shown, whatever else is said of them: they have the last places, and
        `predict_order` leaves them out.
    before : list of (int, int), default=()
        Pairs of rows of the same query, counted from 0; the first of a pair is ranked above the
        second.
    quotas : list of Quota, default=()
        Bounds on the numbers of documents of groups among the first places.
    soft : float, default=None
        None: rules that contradict each other are an error. A number: what each place, pair or
        document by which a ranking breaks a rule adds to the expected loss. A rule is broken where
        that costs less than to keep it. A number larger than the loss can be, such as 10 for NDCG,
        bends rules only where they contradict each other, and as little as possible.

    Raises
    ------
    ValueError
        If `before` or `quotas` is not as described, or `soft` is not positive.

    See Also
    --------
    sklearn_rankcal.decoders.Quota.fair : The table of quotas of FA*IR.

    Examples
    --------
    >>> from sklearn_rankcal.decoders import Quota, Rules, decode_scores
    >>> rules = Rules(place=[0, 0, 0, 2], quotas=[Quota(["x", "x", "y", None], first=3, at_most=1)])
    >>> decode_scores([0.9, 0.8, 0.2, 0.1], rules=rules).ranks.tolist()
    [1, 4, 3, 2]
    """

    def __init__(
        self,
        *,
        place: Any = None,
        earliest: Any = None,
        latest: Any = None,
        blocked: Any = None,
        before: Sequence[tuple[int, int]] = (),
        quotas: Sequence[Quota] = (),
        soft: float | None = None,
    ) -> None:
        if soft is not None and not 0 < soft < np.inf:
            raise ValueError(f"soft must be a positive number or None; got {soft!r}.")
        quotas = [quotas] if isinstance(quotas, Quota) else list(quotas)
        if any(not isinstance(quota, Quota) for quota in quotas):
            raise ValueError("quotas must be a list of Quota objects.")
        fine = all(len(p) == 2 and all(isinstance(row, Integral) for row in p) for p in before)
        if not fine:
            raise ValueError("before must be a list of pairs of row numbers.")
        self.place = place
        self.earliest = earliest
        self.latest = latest
        self.blocked = blocked
        self.before = [(int(a), int(b)) for a, b in before]
        self.quotas = quotas
        self.soft = soft
        self._rows: Ints | None = None  # numbers of the rows for messages, if they are a part

    def __repr__(self) -> str:
        shown = {name: _short(getattr(self, name)) for name in PER_ROW}
        shown |= {"before": self.before, "quotas": self.quotas, "soft": self.soft}
        return f"Rules({', '.join(f'{k}={v!r}' for k, v in shown.items() if not _is_empty(v))})"

    @property
    def columns(self) -> list[str]:
        """The names of the columns that the rules use, without repetitions."""
        given = [getattr(self, name) for name in PER_ROW] + [quota.of for quota in self.quotas]
        return list(dict.fromkeys(name for name in given if isinstance(name, str)))

    def with_columns(self, table: Mapping[str, Any]) -> Rules:
        """Return the rules with the columns in the place of their names."""

        def found(value: Any) -> Any:
            return table[value] if isinstance(value, str) else value

        rules = Rules(before=self.before, soft=self.soft)
        for name in PER_ROW:
            setattr(rules, name, found(getattr(self, name)))
        rules.quotas = [quota.copy_for(found(quota.of)) for quota in self.quotas]
        return rules

    def take(self, rows: Ints) -> Rules:
        """Return the rules of some rows, whole queries; error messages number them as before."""
        number = dict(zip(rows.tolist(), range(len(rows)), strict=True))

        def part(value: Any) -> Any:
            return None if value is None else np.asarray(value)[rows]

        own = self._copy(
            **{name: part(getattr(self, name)) for name in PER_ROW},
            before=[(number[a], number[b]) for a, b in self.before if a in number],
            quotas=[quota.copy_for(part(quota.of)) for quota in self.quotas],
        )
        own._rows = rows
        return own

    def statements(self) -> dict[str, Rules]:
        """Return, by name, the rules without each one of the parameters and quotas."""
        names = [n for n in (*PER_ROW, "before") if not _is_empty(getattr(self, n))]
        without = {}
        for name in names:
            without[name] = self._copy(**{name: () if name == "before" else None})
        for number, quota in enumerate(self.quotas):
            kept = self.quotas[:number] + self.quotas[number + 1 :]
            name = repr(quota)
            if sum(repr(other) == name for other in self.quotas) > 1:
                name = f"quotas[{number}]: {name}"
            without[name] = self._copy(quotas=kept)
        return without

    def _copy(self, **changes: Any) -> Rules:
        given = {name: getattr(self, name) for name in (*PER_ROW, "before", "quotas", "soft")}
        return Rules(**{**given, **changes})


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


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, list | tuple) and not value)


def _short(value: Any) -> Any:
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
