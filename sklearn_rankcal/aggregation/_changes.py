"""`strength_changes`: which items became better or worse at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from sklearn_rankcal.aggregation._bradley_terry import BradleyTerry
from sklearn_rankcal.aggregation._contest_boards import (
    covariates_of,
    penalties_of,
    robust_covariance,
)
from sklearn_rankcal.aggregation._contest_design import count_votes
from sklearn_rankcal.aggregation._contest_model import ContestFit, fit_contests
from sklearn_rankcal.aggregation._contests import Contests, contests_of
from sklearn_rankcal.aggregation._exact_ends import (
    exact_excess,
)
from sklearn_rankcal.aggregation._judgements import Judgements
from sklearn_rankcal.aggregation._registry import read_model
from sklearn_rankcal.aggregation._times import read_moment
from sklearn_rankcal.aggregation._votes_of_items import FEW_VOTES
from sklearn_rankcal.labels._item_ids import content_ranks, show_id
from sklearn_rankcal.utils._messages import counted, warn
from sklearn_rankcal.utils._names import checks_keywords
from sklearn_rankcal.utils._rounding import exceeds, order_from_largest
from sklearn_rankcal.utils._typing import Bools, Floats, Ints

#: The largest number of centres, times the squared number of items; and the smallest number.
_ENTRIES, _CENTRES = 400_000, 40


class StrengthChanges(NamedTuple):
    """By how much the scores of items changed at a time.

    Attributes
    ----------
    items : ndarray of shape (n_items,)
        The id of each item.
    change : ndarray of shape (n_items,)
        The score after the time minus that before it, relative to the mean change of the items that
        are not found to have changed. NaN for an item that cannot be tested.
    standard_error : ndarray of shape (n_items,)
        The standard error of the change.
    p_value : ndarray of shape (n_items,)
        The p-value of the item: the largest one of all sets that contain it and at least half of
        the items, for the hypothesis that all items of the set changed alike. Bonferroni's
        correction allows for the number of items of the set.
    changed : ndarray of bool of shape (n_items,)
        Whether the p-value is at most 1 - confidence_level.
    """

    items: NDArray[Any]
    change: Floats
    standard_error: Floats
    p_value: Floats
    changed: Bools


class _Changes(NamedTuple):
    """Changes relative to those that are not found, and whether these agree with each other."""

    value: Floats
    error: Floats
    p_value: Floats
    agree: bool


def relative_changes(change: Floats, covariance: Floats, degrees: Floats, level: float) -> _Changes:
    """Return changes relative to those of the unchanged items, standard errors and p-values.

    Scores of each period are known up to a constant, so that only differences of changes can be
    seen. An item is found if no set of half of the items and more agrees that contains it. If at
    least half of the items did change alike, they are such a set. The probability that one of them
    is found is therefore at most 1 - level, however precisely they and the others are known. All
    values are NaN if all items are found.
    """
    m = len(change)
    p = largest_p_values(change, covariance, degrees)
    same = p > 1 - level
    if not same.any():
        unknown = np.full(m, np.nan)
        return _Changes(unknown, unknown, unknown, False)
    value, error = _relative(change, covariance, same)
    z = _ratio(value[same], error[same])
    return _Changes(value, error, p, bool(_p_value(z[None], degrees[same][None])[0] > 1 - level))


def largest_p_values(change: Floats, covariance: Floats, degrees: Floats) -> Floats:
    """Return for each item the largest p-value of the sets of half of the items that contain it.

    The sets are those of the items that are nearest to a centre, by their errors, for all centres;
    and for each other item the set of the nearest ones and this item. O(n_items^4) time up to some
    tens of items, and O(n_items^3) for more, with fewer centres.
    """
    m, half = len(change), (len(change) + 1) // 2
    order = _orders(change, covariance)
    # Step 1: the sets of the first s items of each order; `across` sums the covariances of an item
    # with the first s, and `both` those of the first s with each other.
    values, free = change[order], degrees[order]
    matrix = covariance[order[:, :, None], order[:, None, :]]
    own = np.einsum("kss->ks", matrix)
    across, total = matrix.cumsum(axis=2), values.cumsum(axis=1)
    both = np.einsum("kss->ks", across.cumsum(axis=1))
    of_sets = np.zeros(order.shape)
    for s in range(half, m + 1):
        variance = own[:, :s] - 2 * across[:, :s, s - 1] / s + both[:, s - 1, None] / s**2
        z = _ratio(values[:, :s] - total[:, s - 1, None] / s, np.sqrt(np.maximum(variance, 0.0)))
        of_sets[:, s - 1] = _p_value(z, free[:, :s])
    best = np.maximum.accumulate(of_sets[:, ::-1], axis=1)[:, ::-1]

    # Step 2: the sets of the first items of each order and one other item.
    few = half - 1
    other = own[:, few:]
    mean = (total[:, few - 1, None] + values[:, few:]) / half
    beside = across[:, few:, few - 1]
    sums = both[:, few - 1, None] + 2 * beside + other
    variance = other - 2 * (beside + other) / half + sums / half**2
    p_other = _tail(values[:, few:] - mean, variance, free[:, few:])
    beside = across[:, :few, few - 1, None] + matrix[:, :few, few:]
    variance = own[:, :few, None] - 2 * beside / half + sums[:, None] / half**2
    p_first = _tail(values[:, :few, None] - mean[:, None], variance, free[:, :few, None])
    p = np.minimum(p_other, p_first.min(axis=1)) * _tests(half)
    best[:, few:] = np.maximum(best[:, few:], np.minimum(p, 1.0))
    largest = np.zeros(m)
    np.maximum.at(largest, order, best)
    return largest


def _orders(change: Floats, covariance: Floats) -> Ints:
    """Return the orders of the items by their distances to a centre, each as a row.

    The distance of an item is divided by its standard error. The variances of the items are those
    whose sums are nearest to the variances of the differences (quasi-variances).
    """
    m = len(change)
    variance = np.diag(covariance)[:, None] + np.diag(covariance) - 2 * covariance
    sums = variance.sum(axis=1)
    own = (sums - sums.sum() / (2 * (m - 1))) / (m - 2)
    error = np.sqrt(np.maximum(own, 1e-3 * np.abs(own).max()))
    i, j = np.triu_indices(m, 1)
    with np.errstate(divide="ignore", invalid="ignore"):  # centres with equal distances
        inside = (change[i] * error[j] + change[j] * error[i]) / (error[i] + error[j])
        outside = (change[i] * error[j] - change[j] * error[i]) / (error[j] - error[i])
    low, high = change.min(), change.max()
    ends = np.append(inside, outside[(outside > low) & (outside < high)])
    ends = np.sort(np.concatenate([ends, [low, high]]))
    # Between centres that rounding separates, the order would be one by chance.
    apart = exceeds(ends[1:], ends[:-1], max(abs(low), abs(high)))
    centres = ((ends[1:] + ends[:-1]) / 2)[apart]
    if not len(centres):  # all changes are equal
        return np.arange(m)[None]
    most = max(_CENTRES, _ENTRIES // m**2)
    if len(centres) > most:
        centres = centres[np.linspace(0, len(centres) - 1, most).astype(np.int64)]
    distance = np.abs(change - centres[:, None]) / error
    return np.unique(np.argsort(distance, axis=1, kind="stable"), axis=0)


def _relative(change: Floats, covariance: Floats, reference: Bools) -> tuple[Floats, Floats]:
    """Return changes relative to the mean of some, and their standard errors."""
    contrast = np.eye(len(change)) - reference / reference.sum()
    variance = np.diag(contrast @ covariance @ contrast.T)
    return contrast @ change, np.sqrt(np.maximum(variance, 0.0))


def _ratio(value: Floats, error: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(error > 0, np.abs(value) / error, 0.0)


def _tail(value: Floats, variance: Floats, degrees: Floats) -> Floats:
    """Return the two-sided p-value of each value."""
    return _p_values(_ratio(value, np.sqrt(np.maximum(variance, 0.0))), degrees)


def _p_values(z: Floats, degrees: Floats) -> Floats:
    """Return two-sided p-values; 1 without a degree of freedom."""
    p = 2 * stdtr(np.maximum(degrees, 1e-3), -z)
    return np.where(degrees > 0, p, 1.0)


def _tests(n: int) -> int:
    """Return how many tests n items need; of two, both differ equally from their mean."""
    return n if n > 2 else 1


def _p_value(z: Floats, degrees: Floats) -> Floats:
    """Return the p-value of each row, a set, by the item that differs most from its mean."""
    p = _p_values(z, degrees).min(axis=1)
    return np.minimum(p * _tests(z.shape[1]), 1.0)


@checks_keywords
def strength_changes(
    judgements: Judgements,
    at: Any,
    *,
    method: str | BradleyTerry = "btl",
    confidence_level: float = 0.95,
) -> StrengthChanges:
    """Test which items became better or worse at a time, for example because they were updated.

    Parameters
    ----------
    judgements : Judgements
        Votes of one query with times, such as those of ``Judgements.from_votes(..., time=...)``.
    at : time stamp, str or float
        The time. Votes at this time belong to the second period.
    method : str or BradleyTerry, default="btl"
        ``"btl"``, or an object with parameters. Effects of covariates, of the position and of ties
        are the same in both periods.
    confidence_level : float, default=0.95
        If at least half of the items did not change, the probability that one of them is said to
        have changed is at most 1 minus this, if there are many votes.

    Returns
    -------
    changes : StrengthChanges
        Items with fewer than 30 votes in a period, and those that comparisons do not connect with
        most others in both, are not tested: their change is NaN.

    Raises
    ------
    ValueError
        If the votes have no times, if they are of several queries or of a single judge, if `at`
        leaves fewer than three items that can be tested, or if the votes connect two equally large
        groups of items, but not these with each other.

    Notes
    -----
    Only changes relative to other items can be seen, and half of the items must have changed alike,
    usually not at all. An item is said to have changed if no set of half of the items that contains
    it agrees, which does not depend on how many votes each item has. This is a closed test (Marcus,
    Peritz and Gabriel, 1976). If two halves changed differently, or no half changed alike, nothing
    can be said, and a warning says so. Standard errors are the robust ones. If judges are known,
    these are clusters, and no error is smaller than it would be without them. The time must not be
    chosen by looking at the votes.

    References
    ----------
    Marcus, Peritz and Gabriel (1976), On closed testing procedures with special reference to
    ordered analysis of variance, Biometrika 63.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal import Judgements
    >>> from sklearn_rankcal.aggregation import strength_changes
    >>> from sklearn_rankcal.datasets import make_arena
    >>> data = make_arena(4000, n_models=6, random_state=0)
    >>> votes = Judgements.from_votes(
    ...     data.model_a, data.model_b, data.winner, position=True, time=data.time
    ... )
    >>> strength_changes(votes, "2026-02-15").changed.any()
    np.False_
    """
    structure, level = read_model(judgements, method, confidence_level)
    time = judgements.times("strength_changes")
    after = time >= read_moment(at, time, "at")

    if judgements.judges is not None and len(judgements.judges) < 2:
        raise ValueError(
            "strength_changes needs several judges, but there is only one. Read the votes without "
            "judge= for a test about other votes of this judge."
        )

    # Step 1: item i is the number i before the time, and n + i after it.
    contests, n = contests_of(judgements), judgements.queries.n_rows
    shift = n * after[contests.judgement]
    moved = contests._replace(first=contests.first + shift, second=contests.second + shift)
    part, ridge = penalties_of(moved, 2 * n, structure)
    votes = np.bincount(np.append(moved.first, moved.second), minlength=2 * n)
    tested = _testable(part, votes, judgements.items)
    if len(tested) < 3:
        raise ValueError(
            f"Only {counted(len(tested), 'item')} with at least {FEW_VOTES} votes both before and "
            f"after at={at} can be compared. At least 3 are needed."
        )

    # Step 2: fit both periods at once, so that votes of a judge in both are a cluster.
    X, names = covariates_of(judgements, contests)
    counted_votes = count_votes(moved, X, merge=judgements.judge is None)
    fit = fit_contests(counted_votes, 2 * n, names, structure, ridge, part)
    difference = np.zeros((len(tested), len(fit.weights)))
    difference[np.arange(len(tested)), tested] = -1.0
    difference[np.arange(len(tested)), n + tested] = 1.0

    # Step 3: compare the changes with each other.
    change, error, p = np.full((3, n), np.nan)
    covariance, degrees = _uncertainty(judgements, fit, contests, difference, level)
    found = relative_changes(difference @ fit.weights, covariance, degrees, level)
    change[tested], error[tested], p[tested] = found.value, found.error, found.p_value
    changed = p <= 1 - level
    if not found.agree:
        warn(_disagreement(judgements.items, change, error, changed), UserWarning)
    return StrengthChanges(judgements.items, change, error, p, changed)


def _uncertainty(
    judgements: Judgements, fit: ContestFit, contests: Contests, difference: Floats, level: float
) -> tuple[Floats, Floats]:
    """Return the covariance of the changes, and the degrees of freedom of each of them.

    Residuals of an item add up to 0, and so a judge who gave most of its votes seems to have no
    variance. With judges, the variance of a change is therefore at least the one without them. Few
    wins or losses in a period add what exact ends need, on the side of the change.
    """
    m, n = len(difference), fit.n_items // 2
    inverse = fit.inverse()
    of_fit, shares = robust_covariance(judgements, fit, contests, inverse)
    covariance, degrees = difference @ of_fit @ difference.T, np.full(m, np.inf)
    before, after = difference[:, :n].argmin(axis=1), n + difference[:, n : 2 * n].argmax(axis=1)
    if shares is not None:
        free = shares.degrees()[0]
        degrees = np.minimum(free[before], free[after])
        weight = float(fit.votes.squares.sum() / fit.votes.counts.sum())  # of a vote
        least = weight * (difference @ inverse @ difference.T)
        center = np.eye(m) - 1 / m
        found, wanted = (np.diag(center @ one @ center) for one in (covariance, least))
        scale = np.sqrt(np.maximum(1.0, wanted / np.maximum(found, 1e-9 * wanted)))
        covariance = covariance * np.outer(scale, scale)
    low, high, _ = exact_excess(fit, level)
    change = difference @ fit.weights
    up = change > np.median(change)
    extra = np.where(up, low[after] + high[before], high[after] + low[before])
    # a change without a bound on this side cannot be found
    unknown = 1e6 * max(1.0, float(np.diag(covariance).max()))
    covariance[np.diag_indices(m)] += np.where(np.isfinite(extra), extra, unknown)
    return covariance, degrees


def _disagreement(items: NDArray[Any], change: Floats, error: Floats, changed: Bools) -> str:
    """Say that the items that are not found to have changed do not agree, or that none are left."""
    if np.isnan(change).all():
        return (
            "No half of the items changed alike, so that there is nothing to compare a change "
            "with: p-values are NaN. Compare the boards of the two periods, made by "
            "judgements.between(...), by themselves."
        )
    some = np.flatnonzero(~changed & ~np.isnan(change))
    z, ids = np.where(error > 0, change / error, 0.0)[some], content_ranks(items)[some]
    low, high = (some[order_from_largest(sign * z, ids)[0]] for sign in (-1, 1))
    return (
        f"Some items have changed, but the votes cannot say which: {show_id(items[low])} and "
        f"{show_id(items[high])} did not change alike, and each of them changed as half of the "
        "items did. Neither is reported as changed. The attribute change is relative to the mean "
        "of both kinds."
    )


def _testable(part: Ints, votes: Ints, items: NDArray[Any]) -> Ints:
    """Return the items with enough votes in the components that most of them are in."""
    n = len(part) // 2
    enough = np.flatnonzero((votes[:n] >= FEW_VOTES) & (votes[n:] >= FEW_VOTES))
    if not len(enough):
        return enough
    group = np.unique(part[enough] * 2 * n + part[n + enough], return_inverse=True)[1]
    sizes = np.bincount(group)
    largest = np.flatnonzero(sizes == sizes.max())
    if len(largest) > 1 and sizes.max() > 2:
        one, other = (show_id(items[enough[group == k][0]]) for k in largest[:2])
        raise ValueError(
            f"The votes connect {one} with {counted(sizes.max(), 'item')} and {other} with "
            f"{sizes.max()} "
            "others, but not with each other. Test one of these groups at a time: leave out the "
            "votes of the other."
        )
    return enough[group == largest[0]]
