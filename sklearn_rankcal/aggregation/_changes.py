"""`strength_changes`: test which items became better or worse at a given time."""

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

#: Largest number of centres times n_items^2, and smallest number of centres.
_ENTRIES, _CENTRES = 400_000, 40


class StrengthChanges(NamedTuple):
    """Changes of the scores of items at a given time, from `strength_changes`.

    Attributes
    ----------
    items : ndarray of shape (n_items,)
        The id of each item.
    change : ndarray of shape (n_items,)
        The score after the time minus the score before it, relative to the mean change of the items
        that are not reported as changed. NaN for an item that cannot be tested.
    standard_error : ndarray of shape (n_items,)
        The standard error of the change.
    p_value : ndarray of shape (n_items,)
        The p-value of the item. For a set of items, the hypothesis is that all of its items changed
        alike, with Bonferroni's correction for the size of the set. The p-value of an item is the
        largest over all sets that contain it and at least half of the items.
    changed : ndarray of bool of shape (n_items,)
        Whether the p-value is at most 1 - confidence_level.
    """

    items: NDArray[Any]
    change: Floats
    standard_error: Floats
    p_value: Floats
    changed: Bools


class _Changes(NamedTuple):
    """Changes relative to the unchanged items, and whether the unchanged items agree."""

    value: Floats
    error: Floats
    p_value: Floats
    agree: bool


def relative_changes(change: Floats, covariance: Floats, degrees: Floats, level: float) -> _Changes:
    """Return changes relative to the unchanged items, standard errors and p-values.

    Scores of a period are known up to a constant, and only differences of changes can be seen. An
    item is found if no set of at least half of the items that contains it agrees. If at least half
    of the items changed alike, they form such a set, and one of them is found with probability at
    most 1 - level, however precise their scores are. All values are NaN if all items are found.
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
    """Return the largest p-value of the sets of half of the items that contain each item.

    For each centre, the sets have the nearest items, relative to their errors; for each other item,
    one set has the nearest items and this item. O(n_items^4) time up to some tens of items, and
    O(n_items^3) for more, with fewer centres.
    """
    m, half = len(change), (len(change) + 1) // 2
    order = _orders(change, covariance)
    # Step 1: the sets of the first s items of each order. `across` sums the covariances of an item
    # with the first s items, and `both` sums the covariances among the first s.
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

    # Step 2: the sets of the first items of each order plus one other item.
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
    """Return the items sorted by their distance to each centre, one row per centre.

    The distance of an item is divided by its standard error, from quasi-variances: variances of
    items with sums nearest to the variances of the differences.
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
    # Between centres that differ only by rounding, the order would be arbitrary.
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
    """Return changes relative to the mean of some items, and their standard errors."""
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
    """Return the number of tests for n items; two items differ equally from their mean."""
    return n if n > 2 else 1


def _p_value(z: Floats, degrees: Floats) -> Floats:
    """Return the p-value of each row (set), from the item that differs most from its mean."""
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
    """Test which items became better or worse at a given time, for example by an update.

    Parameters
    ----------
    judgements : Judgements
        Votes of one query with times, for example from ``Judgements.from_votes(..., time=...)``.
    at : time stamp, str or float
        The time of the possible change. Votes at this time belong to the second period.
    method : str or BradleyTerry, default="btl"
        ``"btl"``, or a `BradleyTerry` object. Effects of covariates, of the position and of ties
        are the same in both periods.
    confidence_level : float, default=0.95
        If at least half of the items did not change and there are many votes, the probability of
        reporting one of them as changed is at most 1 - confidence_level.

    Returns
    -------
    changes : StrengthChanges
        The change is NaN for items that are not tested: items with fewer than 30 votes in a
        period, and items that are not connected with most items in both periods.

    Raises
    ------
    ValueError
        If the votes have no times, or come from several queries or a single judge. If fewer than
        three items can be tested, or if two equally large groups of items are not connected.

    Notes
    -----
    Choose the time without looking at the votes.

    Only changes relative to other items can be seen. The test assumes that half of the items
    changed alike, usually not at all. It is a closed test (Marcus, Peritz and Gabriel, 1976): an
    item is reported as changed if no set of half of the items that contains it agrees, however many
    votes each item has. If two halves changed differently, or no half changed alike, no item is
    reported, with a warning. Standard errors are robust. If judges are known, they are clusters,
    and no error is smaller than without them.

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
            "strength_changes needs several judges, but there is only one. Read the votes "
            "without judge= for a test that describes this judge only."
        )

    # Step 1: item i has number i before the time, and n + i after it.
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

    # Step 2: fit both periods jointly, because the votes of a judge in both are one cluster.
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
    """Return the covariance of the changes, and the degrees of freedom of each change.

    The residuals of an item add up to 0, and a judge who gave most of its votes seems to have no
    variance. With judges, the variance of a change is therefore at least as large as without. Few
    wins or losses in a period add the variance of exact intervals, on the side of the change.
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
    # a change without a bound on this side cannot be significant
    unknown = 1e6 * max(1.0, float(np.diag(covariance).max()))
    covariance[np.diag_indices(m)] += np.where(np.isfinite(extra), extra, unknown)
    return covariance, degrees


def _disagreement(items: NDArray[Any], change: Floats, error: Floats, changed: Bools) -> str:
    """Warn that the items that are not reported disagree, or that none are left."""
    if np.isnan(change).all():
        return (
            "No half of the items changed alike: there is no reference for a change, and "
            "p-values are NaN. Compare the leaderboards of the two periods instead, with "
            "judgements.between(...)."
        )
    some = np.flatnonzero(~changed & ~np.isnan(change))
    z, ids = np.where(error > 0, change / error, 0.0)[some], content_ranks(items)[some]
    low, high = (some[order_from_largest(sign * z, ids)[0]] for sign in (-1, 1))
    return (
        f"Some items have changed, but the votes cannot say which: {show_id(items[low])} and "
        f"{show_id(items[high])} did not change alike, and each agrees with half of the "
        "items. Neither is reported as changed. The attribute change is relative to the "
        "mean of both halves."
    )


def _testable(part: Ints, votes: Ints, items: NDArray[Any]) -> Ints:
    """Return the items with enough votes, in the components of most of them."""
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
            f"{sizes.max()} others, but no votes connect the two groups. Test one group at a "
            "time."
        )
    return enough[group == largest[0]]
