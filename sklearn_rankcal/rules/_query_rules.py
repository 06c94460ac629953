"""`Quota`, and all rules of one query as data. Documents and places are numbered from 0."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binom

from sklearn_rankcal.exceptions import ContradictoryRulesError
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._messages import checks_keywords, counted
from sklearn_rankcal.utils._numbers import Bools, Ints, check_no_mask, is_missing

#: Bound on the number of documents: a number, one per prefix, or a dictionary of these by group.
Bound = int | Sequence[int] | Mapping[Any, int | Sequence[int]]
_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)


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


class QuotaOfQuery(NamedTuple):
    """From `at_least` to `at_most` of the `members` are among the first `prefix` places."""

    members: Ints
    prefix: int
    at_least: int
    at_most: int
    text: str


@dataclass
class QueryRules:
    """The rules for the n shown documents of a query.

    Documents are numbered from 0 in the order of their rows, without blocked ones. Places are
    numbered from 0, too.
    """

    shown: Ints  # numbers of the shown documents among all rows of the query
    blocked: Ints
    low: Ints  # (n,) first place of each document
    high: Ints  # (n,) last place of each document
    before: list[tuple[int, int]] = field(default_factory=list)
    quotas: list[QuotaOfQuery] = field(default_factory=list)
    rows: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    n_shown: int = -1  # places from here on have blocked documents; -1 without any
    last: Bools | None = None  # (n,) which documents are blocked

    @property
    def n(self) -> int:
        return len(self.shown)

    @property
    def binds(self) -> bool:
        """Whether a ranking of the shown documents can break a rule."""
        free = not self.low.any() and (self.high == self.n - 1).all()
        return not free or bool(self.before) or bool(self.quotas)

    def with_blocked(self) -> QueryRules:
        """Return rules for all documents of the query, with the blocked ones last."""
        n, r = self.n, self.n + len(self.blocked)
        low, high = np.zeros(r, dtype=np.int64), np.full(r, r - 1)
        low[self.shown] = self.low
        high[self.shown] = self.high
        last = np.ones(r, dtype=bool)
        last[self.shown] = False
        rows = np.full(r, -1)
        rows[self.shown] = self.rows
        number = self.shown.tolist()
        return QueryRules(
            np.arange(r),
            np.empty(0, dtype=np.int64),
            low,
            high,
            [(number[a], number[b]) for a, b in self.before],
            [quota._replace(members=self.shown[quota.members]) for quota in self.quotas],
            rows,
            n,
            last,
        )

    def without_blocked(self) -> QueryRules:
        """Invert `with_blocked`. Without blocked documents, return the rules themselves."""
        if self.last is None:
            return self
        shown, blocked = np.flatnonzero(~self.last), np.flatnonzero(self.last)
        number = np.full(self.n, -1)
        number[shown] = np.arange(len(shown))
        return QueryRules(
            shown,
            blocked,
            self.low[shown],
            np.minimum(self.high[shown], len(shown) - 1),
            [(int(number[a]), int(number[b])) for a, b in self.before],
            [quota._replace(members=number[quota.members]) for quota in self.quotas],
            self.rows[shown],
        )

    def is_kept_by(self, order: Ints) -> bool:
        """Whether an order keeps all rules."""
        return self.keeps_blocked(order) and not self.broken(order)

    def keeps_blocked(self, order: Ints) -> bool:
        """Whether the blocked documents come last. Soft rules need this, too."""
        return self.last is None or bool(self.last[order[self.n_shown :]].all())

    def permuted(self, order: Ints) -> QueryRules:
        """Return the rules with document ``order[i]`` as document i."""
        number = np.argsort(order)
        return replace(
            self,
            low=self.low[order],
            high=self.high[order],
            before=[(int(number[a]), int(number[b])) for a, b in self.before],
            quotas=[quota._replace(members=number[quota.members]) for quota in self.quotas],
            rows=self.rows[order],
            last=None if self.last is None else self.last[order],
        )

    def violation(self, order: Ints) -> int:
        """Return the number of places, pairs and documents by which an order breaks the rules."""
        return sum(amount for _, amount in self.broken(order))

    def broken(self, order: Ints) -> list[tuple[str, int]]:
        """Return the rules that an order breaks, and by how much."""
        place = np.argsort(order)
        found = []
        distance = np.maximum(self.low - place, 0) + np.maximum(place - self.high, 0)
        for i in np.flatnonzero(distance):
            found.append((self.text_of_places(int(i)), int(distance[i])))
        for a, b in self.before:
            if place[a] > place[b]:
                found.append((self.text_of_pair(a, b), 1))
        for quota in self.quotas:
            n = int(np.count_nonzero(place[quota.members] < quota.prefix))
            amount = max(0, quota.at_least - n) + max(0, n - quota.at_most)
            if amount:
                found.append((quota.text, amount))
        return found

    def text_of_places(self, i: int) -> str:
        low, high = self.low[i] + 1, self.high[i] + 1
        where = f"at place {low}" if low >= high else f"between places {low} and {high}"
        return f"row {self.rows[i]} {where}"

    def text_of_pair(self, a: int, b: int) -> str:
        return f"row {self.rows[a]} above row {self.rows[b]}"


# ------------------------------------------------------------------ from rows to queries


def check_places(
    query: object,
    low: Ints,
    high: Ints,
    place: Ints,
    earliest: Ints,
    latest: Ints,
    rows: Ints,
) -> None:
    """Raise an error if the rules of one row leave no place for it."""
    if not (low > high).any():
        return
    i, n = int(np.flatnonzero(low > high)[0]), len(low)
    pinned = place[i] >= earliest[i]
    where = f"at place {place[i]}" if pinned else f"at place {earliest[i]} or below"
    lowest = f"row {rows[i]} {where}"
    if low[i] >= n:
        raise ContradictoryRulesError(query, [f"{lowest} of {counted(n, 'document')} shown"])
    pinned = 0 < place[i] < latest[i] or not latest[i]
    where = f"at place {place[i]}" if pinned else f"at place {latest[i]} or above"
    raise ContradictoryRulesError(query, [lowest, f"row {rows[i]} {where}"])


def names_of_quotas(quotas: list[Quota]) -> list[str]:
    """Return texts that identify the quotas: the column, and the number if it is ambiguous."""
    found = []
    for number, quota in enumerate(quotas):
        name = f" in {quota.column!r}" if quota.column is not None else ""
        alike = sum(other.column == quota.column for other in quotas) > 1
        found.append(f"{name} (quotas[{number}])" if alike else name)
    return found


def quotas_of_query(
    quota: Quota, of_quota: str, code: Ints, names: list[Any], n: int
) -> list[QuotaOfQuery]:
    wanted = set(np.unique(code[code >= 0]).tolist())
    if isinstance(quota.at_least, Mapping):
        # a query without documents of a group can break its bound, too
        wanted |= {k for k, name in enumerate(names) if name in quota.at_least}
        missing = [name for name in quota.at_least if name not in names]
        names = names + missing
        wanted |= set(range(len(names) - len(missing), len(names)))
    elif quota.at_least is not None and names == [True]:
        wanted.add(0)  # a boolean group counts as named
    found = []
    by_group = np.argsort(code, kind="stable")
    edges = np.searchsorted(code[by_group], np.arange(len(names) + 1))
    for k in sorted(wanted):
        members = by_group[edges[k] : edges[k + 1]]
        for prefix, at_least, at_most in quota.bounds(names[k]):
            small = at_least or 0
            # with prefix >= n, every ranking has all documents in the prefix
            large = len(members) if at_most is None or prefix >= n else at_most
            if small > 0 or large < len(members):
                text = _text(small, large, len(members), names[k], of_quota, prefix)
                found.append(QuotaOfQuery(members, min(prefix, n), small, large, text))
    return found


def _text(small: int, large: int, n: int, name: Any, of_quota: str, prefix: int) -> str:
    bounds = ([f"at least {small}"] if small else []) + ([f"at most {large}"] if large < n else [])
    of = of_quota if name is True else f" of {name!r}{of_quota}"
    return f"{' and '.join(bounds)} of the {counted(n, 'document')}{of} among the first {prefix}"


def pairs_of_queries(
    before: Sequence[tuple[int, int]], queries: Queries
) -> dict[int, list[tuple[int, int]]]:
    if not before:
        return {}
    pairs = np.array(before, dtype=np.int64)
    if pairs.min() < 0 or pairs.max() >= queries.n_rows:
        raise ValueError(
            f"before has row {pairs.max() if pairs.max() >= queries.n_rows else pairs.min()}, "
            f"but X has the rows 0 to {queries.n_rows - 1}."
        )
    first, second = queries.codes[pairs].T
    bad = (first != second) | (pairs[:, 0] == pairs[:, 1])
    if bad.any():
        a, b = pairs[bad][0].tolist()
        raise ValueError(f"before has the pair ({a}, {b}), which is not two rows of one query.")
    found: dict[int, list[tuple[int, int]]] = {}
    for q, (a, b) in zip(first.tolist(), pairs.tolist(), strict=True):
        found.setdefault(q, []).append((a, b))
    return found


# ------------------------------------------------------------------ reading


def read_places(values: Any, name: str, n_rows: int) -> Ints:
    """Return the places of rows, 0 for no rule."""
    if values is None:
        return np.zeros(n_rows, dtype=np.int64)
    check_no_mask(values, name)
    array = np.asarray(values)
    if array.dtype == object:
        array = np.array([np.nan if is_missing(v) else v for v in array.ravel()])
    if array.shape != (n_rows,) or array.dtype.kind not in "iuf":
        raise ValueError(
            f"{name} must be numbers of shape ({n_rows},), one per row; got shape "
            f"{array.shape} of {array.dtype}. For a rule about one row, put its place at this row, "
            "and 0 at all others."
        )
    numbers = np.nan_to_num(array.astype(np.float64), nan=0.0, posinf=-1.0, neginf=-1.0)
    if (numbers < 0).any() or (numbers != np.floor(numbers)).any():
        raise ValueError(f"{name} must be whole numbers >= 1, or 0 or NaN for no rule.")
    return np.minimum(numbers, 2.0**40).astype(np.int64)


def read_booleans(values: Any, name: str, n_rows: int) -> Bools:
    if values is None:
        return np.zeros(n_rows, dtype=bool)
    check_no_mask(values, name)
    array = np.asarray(values)
    wrong = [v for v in array.ravel().tolist() if not isinstance(v, _NUMBERS) or v not in (0, 1)]
    if array.shape == (n_rows,) and not wrong:
        return array.astype(bool)
    got = f"got shape {array.shape}."
    if wrong and is_missing(wrong[0]):
        got = f"{len(wrong)} are missing. Use False for rows that are shown."
    elif wrong:
        got = f"got {wrong[0]!r}."
    raise ValueError(
        f"{name} must be booleans, or 0 and 1, of shape ({n_rows},), one per row; {got}"
    )


def group_codes(of: Any, n_rows: int) -> tuple[Ints, list[Any]]:
    """Return the number of the group of each row, -1 for none, and the names of the groups."""
    check_no_mask(of, "of")
    array = np.asarray(of)
    if array.shape != (n_rows,):
        raise ValueError(
            f"A Quota has {counted(array.size, 'group')}, but X has {counted(n_rows, 'row')}."
        )
    if array.dtype == object:
        kept = np.array([not is_missing(v) for v in array], dtype=bool)
    else:
        kept = array == array
    if array.dtype == bool or (
        array.dtype == object
        and kept.any()
        and all(isinstance(v, bool | np.bool_) for v in array[kept])
    ):
        flags = np.zeros(n_rows, dtype=bool)
        flags[kept] = array[kept].astype(bool)
        return np.where(flags, 0, -1), [True]
    codes = np.full(n_rows, -1)
    try:
        names, codes[kept] = np.unique(array[kept], return_inverse=True)
    except TypeError:  # names of different types cannot be sorted
        numbers: dict[Any, int] = {}
        codes[kept] = [numbers.setdefault(value, len(numbers)) for value in array[kept]]
        return codes, list(numbers)
    return codes, names.tolist()
