"""The probes of an audit for judges."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from sklearn_rankcal.aggregation._audit_data import AuditData, Probe
from sklearn_rankcal.aggregation._audit_probes import listing
from sklearn_rankcal.labels._item_ids import content_ranks, show_id
from sklearn_rankcal.utils._messages import counted, percent
from sklearn_rankcal.utils._numbers import add_up
from sklearn_rankcal.utils._rounding import exceeds, order_from_largest
from sklearn_rankcal.utils._typing import Floats, Ints

_VOTES = 5  # that a judge, or a judge of an item, must have given to be tested
_SHARE = 0.1  # of all votes, from one judge
_STEPS, _STEEPEST = 20, 5.0  # of Newton's method for the slopes of judges
_MEDIAN = 0.4549364231195724  # of the chi-squared distribution with one degree of freedom
_NAMES = ("random judges", "opposed judges", "partial judges", "busy judges")


def judges_probes(data: AuditData) -> list[Probe]:
    """Find judges who vote at random, against all others, for one item, or very often.

    The first two are tests of the slope of a judge's votes on the leads of the board, which is 1 on
    average. The third tests the votes of each judge for each item. Ordinary differences in taste
    widen the distribution of the statistics; the factor is estimated from their median.
    """
    if data.judge is None:
        text = "Unknown: the judge of each vote is not given. Pass judge= to from_votes."
        return [Probe(name, None, text) for name in _NAMES]
    contests = data.contests
    codes, judge = np.unique(data.judge, return_inverse=True)
    assert data.judges is not None
    ids = data.judges[codes]
    n = len(codes)
    if n == 1:
        text = f"Unknown: all votes are by one judge, {show_id(ids[0])}."
        unknown = [Probe(name, None, text) for name in _NAMES[:-1]]
        text = f"All votes are by {show_id(ids[0])}. They say nothing about other judges."
        return [*unknown, Probe(_NAMES[-1], True, text)]
    votes = np.bincount(judge, contests.weight, n)
    strange = _strange_items(data, judge, ids)
    # leave out the votes about an item that a judge treats unlike other judges
    special = np.full(n, -1)
    special[strange.judge[::-1]] = strange.item[::-1]
    plain = (contests.first != special[judge]) & (contests.second != special[judge])
    weight = contests.weight * plain
    d = data.lead
    score = add_up(judge, weight * data.residual * d, n)
    information = add_up(judge, weight**2 * data.variance * d**2, n)
    third = add_up(judge, weight**3 * data.third * d**3, n)
    many = ~exceeds(_VOTES, np.bincount(judge, weight, n), _VOTES)
    tested = many & (information > 0)
    found: list[Probe] = []
    z = np.where(tested, _standard(score, information, third), 0.0)
    z /= _spread(z[tested])
    slope = _slopes(data, judge, weight, n)
    p = np.where(tested, ndtr(z), 1.0)  # small for slopes below 1
    corrected = np.minimum(p * max(int(tested.sum()), 1), 1.0)
    low = corrected < data.level
    against = low & (slope < -0.5)
    at_random = low & ~against & (slope < 0.5)
    suspects = np.zeros(n, dtype=bool)
    for name, which, what, quiet in (
        ("random judges", at_random, "look random", "at random"),
        ("opposed judges", against, "contradict all others", "against all others"),
    ):
        some = np.flatnonzero(which)
        some = some[order_from_largest(-z[some], content_ranks(ids)[some])]
        least = float(corrected.min(initial=1.0))
        suspects |= which
        if len(some):
            names = listing(
                [f"{show_id(ids[k])} ({counted(votes[k], 'vote')})" for k in some.tolist()]
            )
            text = f"The votes of {len(some)} of {counted(n, 'judge')} {what}: {names}."
            found.append(Probe(name, True, text, least))
        elif not tested.any():
            found.append(Probe(name, None, f"Unknown: no judge gave {_VOTES} votes."))
        else:
            of_judges = f"the {n:,} judges"
            if not tested.all():
                of_judges = f"{counted(tested.sum(), 'judge')} with {_VOTES} votes or more"
            found.append(Probe(name, False, f"None of {of_judges} votes {quiet}.", least))
    partial = [k for k in range(len(strange.judge)) if not suspects[strange.judge[k]]]
    if partial:
        shown = [
            f"{show_id(ids[strange.judge[k]])} {'for' if strange.z[k] > 0 else 'against'} "
            f"{data.name(int(strange.item[k]))}"
            for k in partial
        ]
        text = (
            f"The votes of {len({int(strange.judge[k]) for k in partial})} of "
            f"{counted(n, 'judge')} favour or oppose an item unusually often: {listing(shown)}."
        )
        found.append(Probe("partial judges", True, text, strange.p_value))
        suspects[strange.judge[partial]] = True
    elif not strange.n_tested:
        text = f"Unknown: no judge gave {_VOTES} votes on one item."
        found.append(Probe("partial judges", None, text))
    else:
        text = "No judge favours or opposes an item more than the rest."
        found.append(Probe("partial judges", False, text, strange.p_value))
    least = max(_SHARE * votes.sum(), 3 * votes.mean())
    much = np.flatnonzero(exceeds(votes, least, votes))
    if len(much):
        busy = [f"{show_id(ids[k])} ({100 * votes[k] / votes.sum():.0f} %)" for k in much.tolist()]
        text = f"A large share of the votes is by {listing(busy)}."
        found.append(Probe("busy judges", True, text))
    else:
        text = f"No judge gave more than {percent(float(votes.max() / votes.sum()))} of the votes."
        found.append(Probe("busy judges", False, text))
    if suspects.any() and not suspects.all():
        kept = ~suspects[judge]
        seen = np.zeros(len(data.items), dtype=bool)
        seen[contests.first[kept]] = seen[contests.second[kept]] = True
        if seen.all():
            data.alternatives["without these judges"] = data.ranks_of(data.refit(kept=kept))
    return found


def _spread(z: Floats) -> float:
    """Return the spread of the statistics relative to chance, at least 1."""
    return float(np.sqrt(max(1.0, np.median(z**2) / _MEDIAN))) if len(z) else 1.0


def _standard(score: Floats, variance: Floats, third: Floats) -> Floats:
    """Return standard normal statistics of sums, corrected for skewness (Cornish, Fisher)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z = score / np.sqrt(variance)
        skew = np.clip(third / variance**1.5, -1.0, 1.0)
    # the correction is constant beyond the range in which it grows with z
    edge = np.abs(3 / np.where(skew == 0, 1e-9, skew))
    inside = np.clip(z, -edge, edge)
    return np.nan_to_num(z - skew * (inside**2 - 1) / 6)


def _slopes(data: AuditData, judge: Ints, weight: Floats, n: int) -> Floats:
    """Return the slope of the votes of each judge on the leads, by Newton's method."""
    value = np.array([1.0, 0.0, 0.5])[data.contests.outcome]
    slope = np.ones(n)
    for _ in range(_STEPS):
        p = expit(slope[judge] * data.lead)
        score = np.bincount(judge, weight * (value - p) * data.lead, n)
        bend = np.bincount(judge, weight * p * (1 - p) * data.lead**2, n)
        step = score / np.maximum(bend, 1e-9)
        slope = np.clip(slope + np.clip(step, -1.0, 1.0), -_STEEPEST, _STEEPEST)
    return slope


class _Strange(NamedTuple):
    """Judges with unusual votes for or against an item, most significant first."""

    judge: Ints
    item: Ints
    z: Floats
    p_value: float
    n_tested: int


def _strange_items(data: AuditData, judge: Ints, ids: NDArray[Any]) -> _Strange:
    """Find judges with unusual votes for or against an item."""
    contests, m = data.contests, len(data.items)
    key = np.append(judge * m + contests.first, judge * m + contests.second)
    value = contests.weight * data.residual
    size = np.tile(contests.weight**2 * data.variance, 2)
    third = contests.weight**3 * data.third
    keys, place = np.unique(key, return_inverse=True)
    score = add_up(place, np.append(value, -value), len(keys))
    information = add_up(place, size, len(keys))
    skew = add_up(place, np.append(third, -third), len(keys))
    tested = ~exceeds(_VOTES, np.bincount(place, np.tile(contests.weight, 2)), _VOTES)
    z = np.where(tested, _standard(score, information, skew), 0.0)
    z /= _spread(z[tested])
    p = np.where(tested, 2 * ndtr(-np.abs(z)), 1.0)
    corrected = np.minimum(p * max(int(tested.sum()), 1), 1.0)
    some = np.flatnonzero(corrected < data.level)
    # a judge with opposite votes for two items has the same statistic for both
    of_item, of_judge = content_ranks(data.items)[keys % m], content_ranks(ids)[keys // m]
    some = some[order_from_largest(np.abs(z[some]), of_judge[some], of_item[some])]
    least = float(corrected.min(initial=1.0))
    return _Strange(keys[some] // m, keys[some] % m, z[some], least, int(tested.sum()))
