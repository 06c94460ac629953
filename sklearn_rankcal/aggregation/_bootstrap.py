"""Intervals of scores and ranks, and probabilities of pairs, from resamples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import ndtr, ndtri, stdtr
from sklearn.exceptions import ConvergenceWarning

from sklearn_rankcal.aggregation._base import Structure
from sklearn_rankcal.aggregation._contests import count_votes_of_items
from sklearn_rankcal.aggregation._errors import (
    FREE,
    judge_degrees,
    student_quantile,
)
from sklearn_rankcal.aggregation._intervals import Intervals
from sklearn_rankcal.aggregation._judgements import Judgements
from sklearn_rankcal.aggregation._resampling import CHUNK, ResampleRun, Resamples, make_runs
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.targets import PAIRS
from sklearn_rankcal.utils._memory import rows_per_block
from sklearn_rankcal.utils._messages import warn
from sklearn_rankcal.utils._numbers import Bools, Floats, Ints, exceeds, is_largest


class _Summary(NamedTuple):
    """What the resamples of some queries say, in grouped layout; see `Intervals`.

    `messages` has the different convergence warnings of structures.
    """

    score_low: Floats
    score_high: Floats
    above: Floats
    first: Floats
    unanimous: Bools
    n_disconnected: Ints
    n_unbounded: Ints
    messages: list[str]


def bootstrap(
    judgements: Judgements,
    structure: Structure,
    scores: Floats,
    parts: Ints,
    *,
    n_resamples: int,
    resample: str,
    level: float,
    seed: int,
    n_jobs: int | None,
    verbose: int,
) -> Intervals:
    """Compute the intervals of all queries, and warn if the structure did not converge.

    `scores` and `parts` (the connected components) are from the data, in row layout. `level` is
    the confidence level.
    """
    queries = judgements.queries
    scores, parts = queries.gather(scores), queries.gather(parts)
    found: list[_Summary] = []
    sizes = [min(CHUNK, n_resamples - start) for start in range(0, n_resamples, CHUNK)]
    first = 0
    degrees = queries.gather(_degrees(judgements, resample))
    # a single judgement has an interval; a single judge has no information about other judges
    single = (degrees == 0) & (resample == "judges")
    with Parallel(n_jobs=n_jobs, verbose=verbose) as parallel:
        for run in make_runs(judgements, structure, resample, n_resamples, seed):
            # Each chunk of resamples has its own random numbers: results do not depend on n_jobs.
            chunks = parallel(delayed(ResampleRun.resample)(run, c, n) for c, n in enumerate(sizes))
            rows = slice(first, first + run.queries.n_rows)
            found.append(
                summarize(
                    chunks, scores[rows], parts[rows], degrees[rows], single[rows], run, level
                )
            )
            first = rows.stop
    *arrays, texts = zip(*found, strict=True)
    if messages := sorted(set().union(*texts)):
        warn(f"Some resamples: {messages[0]}", ConvergenceWarning)
    low, high, above, *rest = (np.concatenate(values) for values in arrays)
    ends = queries.scatter(low), queries.scatter(high), *rank_intervals(above, queries, level)
    top, *counts = rest
    return Intervals(level, *ends, above, top, None, None, None, n_resamples, resample, *counts)


def _degrees(judgements: Judgements, resample: str) -> Floats:
    """Return the degrees of freedom of each item: n - 1, if n of the units contain it.

    Judges with unequal shares of the judgements of an item count as in `judge_degrees`.
    """
    n = judgements.queries.n_rows
    row, owner, votes = count_votes_of_items(judgements, np.ones(n, dtype=bool))
    if resample == "judgements":
        return np.maximum(votes - 1, 0.0)
    assert judgements.judge is not None and judgements.judges is not None
    weight = np.ones(len(owner)) if judgements.count is None else judgements.count[owner]
    share = np.divide(weight, votes[row], np.zeros(len(row)), where=votes[row] > 0)
    shape = (len(judgements.judges), n)
    shares = csr_array((share, (judgements.judge[owner], row)), shape=shape)
    shares.sum_duplicates()  # early versions of SciPy keep them
    return judge_degrees(shares)


def summarize(
    chunks: list[Resamples],
    scores: Floats,
    parts: Ints,
    degrees: Floats,
    single: Bools,
    run: ResampleRun,
    level: float,
) -> _Summary:
    """Summarize the resamples of some queries.

    Resamples of few judgements or judges vary too little. Intervals of items are extended as the
    intervals of a mean with these `degrees` of freedom. Items with a `single` judge have infinite
    intervals.

    If some comparisons are unanimous, the score of the data is at an end of the scores of the
    resamples. The interval is then given by plain percentiles, extended to the score of the data,
    and to infinity if the score is unbounded.
    """
    queries = run.queries
    samples, labels, separated, messages = zip(*chunks, strict=True)
    sample, label = np.concatenate(samples), np.concatenate(labels)
    raw = pair_probabilities(sample, label, queries)
    # A component of the data is connected in a resample if all of its items have the label of its
    # first item.
    first, number = np.unique(parts, return_index=True, return_inverse=True)[1:]
    apart = label != label[:, first[number]]
    disconnected = np.logical_or.reduceat(apart, queries.offsets[:-1], axis=1)
    found, unanimous = run.unanimous, np.zeros(queries.n_queries, dtype=bool)
    if found is not None:  # draws against unanimous comparisons already allow for small numbers
        degrees = np.where(found.only & ~single, np.inf, degrees)
    plain = np.zeros(queries.n_rows, dtype=bool) if found is None else found.touched
    low, high = corrected_intervals(sample, scores, level, plain)
    longer = student_quantile(degrees, level) / float(ndtri((1 + level) / 2))
    few = np.isfinite(degrees) & (degrees > 0)
    longer[few] *= _error_of_few(degrees[few])
    with np.errstate(invalid="ignore"):  # an end at distance 0 stays
        low, high = (
            np.where(end == scores, end, scores + longer * (end - scores)) for end in (low, high)
        )
    few &= degrees < FREE  # with few different resamples, the farthest is not far enough
    spread = np.nanstd(sample[:, few], axis=0) * _error_of_few(degrees[few])
    reach = spread * student_quantile(degrees[few], level)
    low[few] = np.fmin(low[few], scores[few] - reach)
    high[few] = np.fmax(high[few], scores[few] + reach)
    above = few_chances(raw, degrees, len(sample), queries)
    top = first_chances(sample, label, scores, parts, raw, above, queries)
    if found is not None:
        unanimous[found.query] = True
        low, high = (
            np.where(plain, np.fmin(low, scores), low),
            np.where(plain, np.fmax(high, scores), high),
        )
        if run.structure.unbounded:
            low[found.open_low & plain], high[found.open_high & plain] = -np.inf, np.inf
    return _Summary(
        low,
        high,
        above,
        top,
        unanimous,
        disconnected.sum(axis=0),
        np.concatenate(separated).sum(axis=0),
        sorted(set().union(*messages)),
    )


def corrected_intervals(
    samples: Floats, scores: Floats, level: float, plain: Bools
) -> tuple[Floats, Floats]:
    """Return the bias-corrected percentile intervals of scores (Efron, 1981).

    Let z0 be the normal quantile of the share of resamples with a score below the score of the
    data. The bounds are the quantiles of the resamples at Phi(2 z0 -+ z), where z is the quantile
    of the confidence level. Without bias, z0 is 0, and the bounds are the percentiles. NaN is left
    out. If `plain` is True, z0 is set to 0.
    """
    valid = (~np.isnan(samples)).sum(axis=0)
    ordered = np.sort(samples, axis=0)  # NaN is last
    size = max(1.0, float(np.nanmax(np.abs(scores), initial=0.0)))
    with np.errstate(invalid="ignore"):
        less, more = exceeds(scores, samples, size), exceeds(samples, scores, size)
    below = (less.sum(axis=0) + valid - more.sum(axis=0)) / 2
    # Keep the share away from 0 and 1: the number of resamples is finite.
    n = np.maximum(valid, 1)
    z0 = np.where(plain, 0.0, ndtri(np.clip(below / n, 0.5 / n, 1 - 0.5 / n)))
    z = ndtri((1 + level) / 2)
    columns = np.arange(samples.shape[1])
    bounds = []
    for end in (-z, z):
        position = ndtr(2 * z0 + end) * (n - 1)
        lower = np.floor(position).astype(np.int64)
        upper = np.minimum(lower + 1, n - 1)
        share = position - lower
        below_it = ordered[lower, columns]
        bounds.append(below_it + share * (ordered[upper, columns] - below_it))
    return bounds[0], np.maximum(*bounds)


def pair_probabilities(samples: Floats, labels: NDArray[np.int32], queries: Queries) -> Floats:
    """Return the share of resamples in which item i is above item j, for all pairs i < j.

    A resample counts one half if both scores are equal, or if its comparisons do not connect the
    two items. O(n_resamples r^2) time for a query of r items.
    """
    n = len(samples)
    n_entries = PAIRS.n_entries(queries.sizes)
    starts = np.cumsum(n_entries) - n_entries
    above = np.empty(int(n_entries.sum()))
    for r in np.unique(queries.sizes).tolist():
        member = np.flatnonzero(queries.sizes == r)
        step = rows_per_block(n * r * 24)
        for some in (member[k : k + step] for k in range(0, len(member), step)):
            inside = queries.offsets[some][:, None] + np.arange(r)
            s, part = samples[:, inside], labels[:, inside]
            # A loop over the items of queries of the same size; each step compares one item per
            # query with all later items.
            entry = starts[some]
            for i in range(r - 1):
                one, others = s[:, :, i, None], s[:, :, i + 1 :]
                connected = part[:, :, i, None] == part[:, :, i + 1 :]
                wins = ((one > others) & connected).sum(axis=0)
                halves = n - wins - ((one < others) & connected).sum(axis=0)
                columns = np.arange(r - 1 - i)
                above[entry[:, None] + columns] = (wins + halves / 2) / n
                entry = entry + r - 1 - i
    return above


def few_chances(above: Floats, degrees: Floats, n_resamples: int, queries: Queries) -> Floats:
    """Move probabilities of pairs towards 1/2 for items with few judgements or judges.

    A share of resamples is converted to a normal quantile, divided by the relative error of a mean
    of few values, and converted to a probability by Student's t distribution. The item with fewer
    degrees of freedom decides.
    """
    if not np.isfinite(degrees).any():
        return above
    starts = np.cumsum(PAIRS.n_entries(queries.sizes)) - PAIRS.n_entries(queries.sizes)
    changed = above.copy()
    for inside in queries.equal_pair_blocks():
        one, other = PAIRS.indices(inside.shape[1])
        free = np.minimum(degrees[inside[:, one]], degrees[inside[:, other]])
        entries = starts[queries.codes[inside[:, :1]]] + np.arange(len(one))
        some = np.isfinite(free) & (above[entries] != 0.5)
        share = np.clip(above[entries][some], 0.5 / n_resamples, 1 - 0.5 / n_resamples)
        chance = np.full(len(share), 0.5)
        known = free[some] > 0
        df = free[some][known]
        chance[known] = stdtr(df, ndtri(share[known]) / _error_of_few(df))
        changed[entries[some]] = chance
    return changed


def _error_of_few(degrees: Floats) -> Floats:
    """Return sqrt(n / (n - 1)), the relative error of a mean that a bootstrap underestimates."""
    return np.sqrt((degrees + 1) / np.maximum(degrees, 1e-300))


def first_chances(
    samples: Floats,
    labels: NDArray[np.int32],
    scores: Floats,
    parts: Ints,
    raw: Floats,
    above: Floats,
    queries: Queries,
) -> Floats:
    """Return the share of resamples in which the best item of each query is above the rest.

    A resample counts one half if the best item ties, or if the comparisons do not connect all
    items. The correction of `few_chances` to the probabilities `raw` of its pairs is subtracted.
    Only the component with more than half of the items counts; NaN without such a component.
    """
    found = np.full(queries.n_queries, np.nan)
    starts = np.append(0, np.cumsum(PAIRS.n_entries(queries.sizes)))
    for q in range(queries.n_queries):  # a loop over queries, each with few operations
        rows = np.arange(queries.offsets[q], queries.offsets[q + 1])
        rows = rows[~np.isnan(scores[rows])]
        number, size = np.unique(parts[rows], return_inverse=True, return_counts=True)[1:]
        if not len(rows) or 2 * size.max() <= len(rows):
            continue
        rows = rows[number == int(np.argmax(size))]  # more than half: the largest
        best = rows[is_largest(scores[rows])][0]
        others = rows[rows != best]
        if not len(others):
            found[q] = 1.0
            continue
        ahead = samples[:, [best]] - samples[:, others]  # 0 for ties
        connected = (labels[:, [best]] == labels[:, others]).all(axis=1)
        share = np.where((ahead > 0).all(axis=1), 1.0, np.where((ahead >= 0).all(axis=1), 0.5, 0.0))
        share = np.where(connected, share, 0.5)
        some = slice(starts[q], starts[q + 1])
        r = int(queries.sizes[q])
        lost = PAIRS.matrices((raw[some] - above[some])[None], r)[0]
        place = others - queries.offsets[q]
        lost_by_best = np.maximum(lost[best - queries.offsets[q], place], 0.0).sum()
        found[q] = max(float(share.mean()) - float(lost_by_best), 0.0)
    return found


def rank_intervals(above: Floats, queries: Queries, level: float) -> tuple[Ints, Ints]:
    """Return the best and the worst position of each item, in row layout.

    The best position is 1 plus the number of items that are above it in a share of at least (1 +
    level) / 2 of the resamples. The worst position excludes the items that are below it in the same
    share.
    """
    certain = (1 + level) / 2
    certainly = exceeds(certain, 1 - above, 1.0).astype(np.int64) - exceeds(certain, above, 1.0)
    low = np.ones(queries.n_rows, dtype=np.int64)
    high = queries.repeat(queries.sizes).astype(np.int64)
    starts = np.append(0, np.cumsum(PAIRS.n_entries(queries.sizes)))
    for inside in queries.equal_pair_blocks():
        r = inside.shape[1]
        entries = starts[queries.codes[inside[:, :1]]] + np.arange(PAIRS.n_entries(r))
        matrices = PAIRS.matrices(certainly[entries].astype(np.float64), r)
        low[inside] += (matrices < 0).sum(axis=2)
        high[inside] -= (matrices > 0).sum(axis=2)
    return queries.scatter(low), queries.scatter(high)
