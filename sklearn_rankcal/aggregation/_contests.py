"""Details of votes: who was shown first, covariates and times."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.aggregation._times import read_time
from sklearn_rankcal.labels._item_ids import check_length, number_ids, read_ids, show_id
from sklearn_rankcal.utils._messages import counted, warn
from sklearn_rankcal.utils._numbers import check_no_name, read_numbers
from sklearn_rankcal.utils._typing import Bools, Floats, Ints

#: The covariate of the item that is shown first or plays at home.
POSITION = "position"


class VoteDetails(NamedTuple):
    """Details of votes, in addition to items, winner and judge.

    Attributes
    ----------
    second_won : ndarray of bool of shape (n_votes,)
        Whether the second item won. False for ties.
    covariates : ndarray of shape (n_votes, n_covariates)
        Positive values favour the first item.
    names : tuple of str
        The name of each covariate.
    time : ndarray of shape (n_votes,) or None
        The time of each vote.
    index : pandas.Index or None
        The index of the columns that the votes were read from.
    """

    second_won: Bools
    covariates: Floats
    names: tuple[str, ...]
    time: NDArray[Any] | None
    index: Any = None

    def take(self, votes: Ints) -> VoteDetails:
        return self._replace(
            second_won=self.second_won[votes],
            covariates=self.covariates[votes],
            time=None if self.time is None else self.time[votes],
            index=None if self.index is None else self.index[votes],
        )

    def extend(self, n: int) -> VoteDetails:
        """Add n votes for the first item, with covariates of 0."""
        new = np.zeros((n, self.covariates.shape[1]))
        return self._replace(
            second_won=np.append(self.second_won, np.zeros(n, dtype=bool)),
            covariates=np.concatenate([self.covariates, new]),
            time=None,
            index=None,
        )


class Contests(NamedTuple):
    """Votes as contests between a first and a second item.

    `outcome` is 0 if the first item won, 1 if the second item won, and 2 for a tie. `weight` is the
    total weight of a contest, `square` the sum of the squared weights of its votes, and `judgement`
    its number in the judgements.
    """

    first: Ints
    second: Ints
    outcome: Ints
    weight: Floats
    square: Floats
    judgement: Ints

    def take(self, chosen: Ints | Bools | slice) -> Contests:
        """Keep some contests, or sort them."""
        return Contests._make(column[chosen] for column in self)


def has_covariates(judgements: Any) -> bool:
    """Whether judgements have a position, covariates or features of the items."""
    details = getattr(judgements, "details", None)
    if getattr(judgements, "item_features", None) is not None:
        return True
    return details is not None and bool(details.names)


def is_weighted(judgements: Any) -> bool:
    """Whether some votes have a larger weight than others, regardless of counts."""
    if judgements.orders is not None or judgements.comparisons.weight is None:
        return False
    _, _, weight, offsets = judgements.comparisons
    size = 1.0 if offsets is None else np.repeat(np.diff(offsets), np.diff(offsets))
    return bool((weight * size != 1.0).any())  # a tie is two comparisons of one half


def contests_of(judgements: Any) -> Contests:
    """Read judgements as contests of two items; raise ValueError for other judgements.

    Without details, the first item is the winner, or the first of a tie.
    """
    if judgements.orders is not None:
        raise ValueError(
            "These judgements are orders or selections. Audits, next comparisons, "
            "covariates, models of ties and intervals without resamples need votes between "
            "two items. For intervals of orders, pass n_resamples=1000."
        )
    winner, loser, weight, offsets = judgements.comparisons
    n = judgements.n_judgements
    offsets = np.arange(n + 1) if offsets is None else offsets
    sizes, start = np.diff(offsets), offsets[:-1]
    pair = np.flatnonzero(sizes == 2)
    second = start[pair] + 1
    tied = (winner[start[pair]] == loser[second]) & (loser[start[pair]] == winner[second])
    if weight is not None:
        tied &= weight[start[pair]] == weight[second]
    if (sizes > 2).any() or (sizes == 0).any() or not tied.all():
        raise ValueError(
            "Audits, next comparisons, covariates, models of ties and intervals without "
            "resamples need judgements of one vote each. Leave out judgement=, and pass the "
            "person or session as judge=."
        )
    first, second = winner[start], loser[start]
    outcome = np.zeros(n, dtype=np.int64)
    details = judgements.details
    if details is not None:
        swap = details.second_won
        first, second = np.where(swap, second, first), np.where(swap, first, second)
        outcome[swap] = 1
    outcome[pair] = 2
    times = np.ones(n) if weight is None else weight[start] * sizes
    square = times**2
    if judgements.count is not None:
        times, square = times * judgements.count, square * judgements.count
    kept = np.flatnonzero(times > 0)
    return Contests(first, second, outcome, times, square, np.arange(n)).take(kept)


def read_details(
    second_won: Bools, covariates: Any, position: Any, time: Any, n: int, index: Any
) -> VoteDetails:
    """Read the details of n votes."""
    columns: list[Floats] = []
    names: list[str] = []
    if not isinstance(position, bool | np.bool_) or position:
        columns.append(_read_position(position, n)[:, None])
        names.append(POSITION)
    if covariates is not None:
        values, found = read_columns(covariates, "covariates")
        check_rows(values, n, "covariates", "votes")
        columns.append(values)
        names += found
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"Two covariates have the name {sorted(twice)[0]!r}.")
    joined = np.hstack(columns) if columns else np.zeros((n, 0))
    return VoteDetails(second_won, joined, tuple(names), read_time(time, n), index)


def read_columns(values: Any, name: str) -> tuple[Floats, list[str]]:
    """Return a table of finite numbers, and the names of its columns."""
    check_no_name(values, name)
    columns = getattr(values, "columns", None)
    if columns is None and hasattr(values, "name") and getattr(values, "ndim", 1) == 1:
        columns = [values.name if values.name is not None else 0]  # a series
    table = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2:
        raise ValueError(
            f"{name} must be a table with one column each; it has shape {table.shape}."
        )
    own = columns is not None
    names = [str(c) for c in columns] if own else [f"x{k}" for k in range(table.shape[1])]  # type: ignore[union-attr]
    read = []
    for k, title in enumerate(names):  # a loop over columns
        try:
            column = read_numbers(table[:, k], f"{name} {title!r}")
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"{name} {title!r} must be numbers: {error} Convert categories to columns of "
                "0 and 1, for example with pandas.get_dummies."
            ) from error
        bad = ~np.isfinite(column)
        if bad.any():
            raise ValueError(
                f"{name} {title!r} is {column[bad][0]} in {counted(bad.sum(), 'row')}, first "
                f"in row {int(np.argmax(bad))}. Drop these rows, or fill in values."
            )
        read.append(column)
    return np.column_stack(read) if read else np.zeros((len(table), 0)), names


def check_rows(values: Floats, n: int, name: str, other: str) -> None:
    if len(values) != n:
        raise ValueError(f"{name} has {counted(len(values), 'row')}, but there are {n} {other}.")


def read_item_features(features: Any, items: NDArray[Any]) -> tuple[Floats, tuple[str, ...]]:
    """Return the features of each item from a frame indexed by item id."""
    if not hasattr(features, "columns") or not hasattr(features, "index"):
        raise TypeError(
            "item_features must be a pandas data frame with the ids of the items as its "
            "index. Use frame.set_index('item') for a column of ids, or series.to_frame() "
            "for a series; got "
            f"{type(features).__module__.partition('.')[0]}.{type(features).__name__}."
        )
    ids = read_ids(features.index, "the index of item_features")
    if len(number_ids(ids, "the index of item_features")[1]) < len(ids):
        raise ValueError("The index of item_features has duplicate ids.")
    place = {value: k for k, value in enumerate(ids.tolist())}
    unused = place.keys() - items.tolist()
    missing = [item for item in items.tolist() if item not in place]
    if missing:
        holding = [name for name in features.columns if (features[name] == missing[0]).any()]
        hint = f" Pass item_features.set_index({holding[0]!r})." if holding else ""
        raise ValueError(
            f"The index of item_features lacks {counted(len(missing), 'item')}, such as "
            f"{show_id(missing[0])}.{hint}"
        )
    if unused:
        example = next(value for value in place if value in unused)
        warn(
            f"item_features has {counted(len(unused), 'item')} without votes, such as "
            f"{show_id(example)}. They are dropped. To rank them too, pass "
            "items=features.index; BradleyTerry(own_effects=False) gives them scores."
        )
    values, names = read_columns(features, "item_features")
    return values[[place[item] for item in items.tolist()]], tuple(names)


def _read_position(position: Any, n: int) -> Floats:
    """Return 1 if the first item has the advantage, -1 if the second has it, else 0."""
    if isinstance(position, bool | np.bool_):
        return np.ones(n)
    array = np.asarray(position)
    texts = array.dtype.kind in "OSUT" and any(isinstance(one, str) for one in array.ravel())
    halves = array.dtype.kind == "b" and array.any() and not array.all()
    if texts or halves:
        raise ValueError(
            (
                f"position has {'text' if texts else 'booleans'}, but must be 1 if the first "
                "item has the advantage, -1 if the second has it, and 0 otherwise. If a column "
                "names the item at home, pass position=(home == first).astype(int) - (home == "
                "second).astype(int)."
            )
            + ("" if texts else " If False is neutral ground, pass position.astype(int).")
        )
    values = read_numbers(position, "position")
    check_length(values, n, "position", "the votes")
    known = np.isin(values, (-1.0, 0.0, 1.0))
    if not known.all():
        k = int(np.argmin(known))
        raise ValueError(
            "position must be True, or 1 (the first item has the advantage), -1 (the second "
            f"has it) or 0 (neither) for each vote; row {k} has {values[k]:g}."
        )
    return values
