"""The bootstrap of judgements: intervals of scores and ranks, and probabilities of pairs.

A resample draws *units*: judgements, or all judgements of a judge. Identical judgements are one
unit with a count. A resample is therefore a multinomial draw of counts over the units of a query.
The structure receives many resamples as copies of the query.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.special import ndtr, ndtri, stdtr
from sklearn.exceptions import ConvergenceWarning

from sklearn_rankcal.aggregation._base import (
    ComparisonStructure,
    Structure,
    compute_scores,
    tie_scores,
)
from sklearn_rankcal.aggregation._contests import count_votes_of_items
from sklearn_rankcal.aggregation._errors import FREE, Intervals, judge_degrees, student_quantile
from sklearn_rankcal.aggregation._graphs import number_components, open_ends
from sklearn_rankcal.aggregation._judgements import Judgements
from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.queries._queries import number_values, ranges
from sklearn_rankcal.targets import PAIRS
from sklearn_rankcal.utils._memory import BLOCK_BYTES, rows_per_block
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


#: Number of resamples per state of the random number generator and per job.
CHUNK = 64
#: Maximum number of bytes of the scores of all resamples of a run of queries.
_RUN_BYTES = 4 * BLOCK_BYTES


class Units(NamedTuple):
    """The units of resamples, sorted by query."""

    offsets: Ints  # query q has the units offsets[q] to offsets[q + 1] - 1
    counts: Floats  # how often each unit occurs in the data
    judgement: Ints  # the judgements of the units, sorted by unit
    unit: Ints  # the unit of each of these judgements


def make_units(judgements: Judgements, resample: str, *, merge: bool = True) -> Units:
    """Find the units: the different judgements of each query, or its judges.

    Without `merge`, equal judgements are separate units, because their covariates can differ.
    """
    n_queries = judgements.queries.n_queries
    if resample == "judges":
        assert judgements.judge is not None and judgements.judges is not None
        keys = judgements.query * len(judgements.judges) + judgements.judge
        different, unit = np.unique(keys, return_inverse=True)
        order = np.argsort(unit, kind="stable")
        query = different // len(judgements.judges)
        offsets = np.append(0, np.cumsum(np.bincount(query, minlength=n_queries)))
        return Units(offsets, np.ones(len(different)), order, unit[order])
    unit = _content_codes(judgements) if merge else np.arange(judgements.n_judgements)
    first = np.empty(int(unit.max(initial=-1)) + 1, dtype=np.int64)
    # Of several assignments to a unit, the last remains: its first judgement.
    first[unit[::-1]] = np.arange(len(unit) - 1, -1, -1)
    # Sort the units by query, then by their first judgement.
    order = np.lexsort((first, judgements.query[first]))
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    unit = number[unit]
    first = first[order]
    count = np.bincount(unit, judgements.count, len(first)).astype(np.float64)
    offsets = np.append(0, np.cumsum(np.bincount(judgements.query[first], minlength=n_queries)))
    return Units(offsets, count, first, np.arange(len(first)))


def _content_codes(judgements: Judgements) -> Ints:
    """Number the judgements by first appearance; equal judgements have the same number.

    The content is the order, if there are orders, and the set of weighted comparisons otherwise.
    """
    n, n_rows = judgements.n_judgements, judgements.queries.n_rows
    if judgements.orders is not None:
        item, tier, offsets = judgements.orders
        entry, starts = tier * n_rows + item, offsets
    else:
        winner, loser, weight, ends = judgements.comparisons
        entry = winner * n_rows + loser
        if weight is not None:
            values, weight_code = np.unique(weight, return_inverse=True)
            entry = number_values(entry)[0] * len(values) + weight_code
        starts = np.arange(n + 1) if ends is None else ends
    if len(entry):
        entry = number_values(entry)[0]
    lengths = np.diff(starts)
    if len(entry) == n and (lengths == 1).all():
        return entry
    n_entries = int(entry.max(initial=0)) + 1
    if len(entry) > n:
        owner = np.repeat(np.arange(n), lengths)
        entry = np.sort(owner * n_entries + entry) - owner * n_entries  # sorted by judgement
    # Number the prefixes of all judgements, longer by one entry at each step, with numbers that
    # increase from step to step. A judgement that ends here keeps its number. A step takes time
    # linear in the number of remaining judgements. Apart from sorts, the total time is linear in
    # the number of entries.
    codes = judgements.query.copy()
    active = np.flatnonzero(lengths > 0)
    n_codes, length = judgements.queries.n_queries, 0
    while len(active):
        keys = codes[active] * n_entries + entry[starts[active] + length]
        numbers = number_values(keys)[0]
        codes[active] = numbers + n_codes
        n_codes += int(numbers.max()) + 1
        length += 1
        active = active[lengths[active] > length]
    return number_values(codes)[0] if n else codes


@dataclass
class ResampleRun:
    """Queries with jointly drawn resamples.

    Rows, pairs and units are numbered from the first of the run, in grouped layout.
    """

    structure: Structure
    queries: Queries
    winner: Ints  # of the pairs that the data compare, and the reversed pairs, in ascending order
    loser: Ints
    mirror: Ints  # the number of the reversed pair of each pair
    unit_offsets: Ints
    count: Floats
    contents: csr_array  # the weight of each pair in a unit, (n_units, n_pairs)
    sizes: Floats  # judgements of each unit
    seed: int
    judgements: Judgements | None  # all judgements, for a structure that uses more than comparisons
    judgement: Ints  # the judgements of the units of the run
    unit: Ints
    first_query: int
    unanimous: Unanimous | None

    def resample(self, chunk: int, n_resamples: int) -> Resamples:
        """Draw the resamples of a chunk, at most `CHUNK`, and compute the scores of each."""
        n_units, n_pairs, n_rows = len(self.count), len(self.winner), self.queries.n_rows
        step = rows_per_block(8 * (2 * n_units + 8 * n_pairs + 8 * n_rows))
        bits = np.random.PCG64([self.seed, chunk])
        states = [bits.state] * self.queries.n_queries
        found, messages = [], set()
        shares = np.zeros((n_resamples, 0))
        if self.unanimous is not None:
            shares = self.unanimous.draw(n_resamples, [self.seed, chunk, 1])
        for start in range(0, n_resamples, step):
            n = min(step, n_resamples - start)
            draws = np.empty((n, n_units))
            # A loop over queries: each draws from the same state, and its resamples do not depend
            # on other queries. The overhead per query is some microseconds.
            for q in range(self.queries.n_queries):
                a, b = self.unit_offsets[q], self.unit_offsets[q + 1]
                bits.state = states[q]
                count = self.count[a:b]
                draws[:, a:b] = 0.0
                if total := count.sum():
                    random = np.random.Generator(bits)
                    draws[:, a:b] = random.multinomial(int(total), count / total, size=n)
                states[q] = bits.state
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", ConvergenceWarning)
                found.append(self._solve(draws, shares[start : start + n]))
            for warning in caught:
                if issubclass(warning.category, ConvergenceWarning):
                    messages.add(str(warning.message))
                else:
                    warnings.warn_explicit(
                        warning.message, warning.category, warning.filename, warning.lineno
                    )
        scores, parts, separated = (np.concatenate(values) for values in zip(*found, strict=True))
        return Resamples(scores, parts, separated, sorted(messages))

    def _solve(self, draws: Floats, shares: Floats) -> tuple[Floats, NDArray[np.int32], Bools]:
        """Compute the scores, the components, and whether winners split a component."""
        n, (n_queries, n_rows) = len(draws), (self.queries.n_queries, self.queries.n_rows)
        weight = draws @ self.contents
        against = np.zeros((n, 0))
        if self.unanimous is not None:
            against = self.unanimous.turn_round(weight, shares, self.mirror)
        weight = weight.reshape(-1)
        shift = np.arange(n)[:, None] * n_rows
        winner, loser = (self.winner + shift).reshape(-1), (self.loser + shift).reshape(-1)
        offsets = np.append(0, np.cumsum(np.tile(self.queries.sizes, n)))
        copies = Queries(offsets)
        if self.judgements is None:
            assert isinstance(self.structure, ComparisonStructure)
            sums = np.concatenate([np.zeros((n, 1)), np.cumsum(draws * self.sizes, axis=1)], axis=1)
            totals = np.diff(sums[:, self.unit_offsets], axis=1).reshape(-1)
            preferences = Preferences(copies, winner, loser, weight)
            scores = self.structure._scores(preferences, totals)
            scores = tie_scores(scores, self.structure, copies)
        else:
            scores = compute_scores(self.structure, self._sample(draws, against))
        positive = weight > 0
        winner, loser = winner[positive], loser[positive]
        graph = csr_array((np.ones(len(winner)), (winner, loser)), shape=(n * n_rows, n * n_rows))
        weak = connected_components(graph, connection="weak")[1]
        strong = connected_components(graph, connection="strong")[1]
        # A weak component is split if two of its neighbours are in different strong components.
        split = np.zeros(n * n_queries, dtype=bool)
        across = strong[winner] != strong[loser]
        split[copies.codes[winner[across]]] = True
        alone = np.bincount(weak)[weak] == 1
        scores = np.where(alone, np.nan, scores).reshape(n, n_rows)
        return scores, weak.reshape(n, n_rows).astype(np.int32), split.reshape(n, n_queries)

    def _sample(self, draws: Floats, against: Floats) -> Judgements:
        """Return the judgements of resamples, plus judgements against unanimous comparisons.

        `against` has the weights of the added judgements, of shape (n_resamples, n_columns).
        """
        assert self.judgements is not None
        resample, taken = np.nonzero(draws[:, self.unit])
        judgement = self.judgement[taken]
        query = self.judgements.query[judgement] - self.first_query
        n_queries = self.queries.n_queries
        parents = np.tile(np.arange(n_queries) + self.first_query, len(draws))
        sample = self.judgements.resample(judgement, resample * n_queries + query, parents)
        sample.count = draws[resample, self.unit[taken]]
        if self.unanimous is None:
            return sample
        resample, column = np.nonzero(against)
        pair, shift = self.unanimous.column[column], resample * self.queries.n_rows
        return sample.with_pairs(
            self.loser[pair] + shift, self.winner[pair] + shift, against[resample, column]
        )


class Resamples(NamedTuple):
    """The scores of some resamples of the queries of a run."""

    scores: Floats  # (n_resamples, n_rows), NaN for items that no judgement compares
    parts: NDArray[np.int32]  # (n_resamples, n_rows), equal if comparisons connect two items
    separated: Bools  # (n_resamples, n_queries): some items never lost to the rest
    messages: list[str]  # the convergence warnings of the structure


def make_runs(
    judgements: Judgements, structure: Structure, resample: str, n_resamples: int, seed: int
) -> Iterator[ResampleRun]:
    """Split the queries into runs with resample scores that fit in a block."""
    sums = structure._takes_sums(judgements)
    units = make_units(judgements, resample, merge=sums or judgements.details is None)
    queries, preferences = judgements.queries, judgements.preferences()
    place = queries.scatter(np.arange(queries.n_rows))
    n_rows = queries.n_rows
    winner, loser = place[preferences.winner], place[preferences.loser]
    keys = np.unique(np.append(winner * n_rows + loser, loser * n_rows + winner))
    winner, loser = keys // n_rows, keys % n_rows
    mirror = np.searchsorted(keys, loser * n_rows + winner)
    contents = _contents(judgements, units, place, keys)
    sizes = np.bincount(units.unit, minlength=len(units.counts)).astype(np.float64)
    taken_offsets = np.searchsorted(units.unit, units.offsets)
    pairs = np.searchsorted(keys, queries.offsets * n_rows)
    whole = None if sums else judgements
    limit = max(1, _RUN_BYTES // (12 * max(n_resamples, 1)))
    grouped = Queries(queries.offsets)
    first = 0
    for rows, part in grouped.chunks(limit):
        assert isinstance(rows, slice)
        last = first + part.n_queries
        a, b = units.offsets[first], units.offsets[last]
        c, d = pairs[first], pairs[last]
        taken = slice(taken_offsets[first], taken_offsets[last])
        matrix = contents[a:b, c:d]
        count, codes = units.counts[a:b], part.codes
        unanimous = find_unanimous(
            winner[c:d] - rows.start, loser[c:d] - rows.start, matrix, count, codes
        )
        yield ResampleRun(
            structure=structure,
            queries=part,
            winner=winner[c:d] - rows.start,
            loser=loser[c:d] - rows.start,
            mirror=mirror[c:d] - c,
            unit_offsets=units.offsets[first : last + 1] - a,
            count=count,
            contents=matrix,
            sizes=sizes[a:b],
            seed=seed,
            judgements=whole,
            judgement=units.judgement[taken],
            unit=units.unit[taken] - a,
            first_query=first,
            unanimous=unanimous,
        )
        first = last


def _contents(judgements: Judgements, units: Units, place: Ints, keys: Ints) -> csr_array:
    """Return the matrix with the weight of each pair in each unit; `keys` number the pairs."""
    winner, loser, weight, ends = judgements.comparisons
    if ends is None:
        taken, unit = units.judgement, units.unit
    else:
        taken, starts = ranges(ends, units.judgement)
        unit = np.repeat(units.unit, np.diff(starts))
    key = place[winner[taken]] * judgements.queries.n_rows + place[loser[taken]]
    pair = np.searchsorted(keys, key)
    data = np.ones(len(taken)) if weight is None else weight[taken]
    shape = (len(units.counts), len(keys))
    return csr_array((data, (unit, pair)), shape=shape)


# ---------------------------------------------------------------- unanimous comparisons

# Plain resamples never contain them. If all n judgements that compare two items agree, the share of
# judgements that disagree is below 1 - a^(1/n) with confidence 1 - a (Clopper and Pearson). A
# resample therefore reverses a share q of their weight, where q = 1 - U^(1/n) with U uniform on
# (0, 1). All comparisons between two *blocks* have the same q. Blocks are the strongly connected
# components of a graph: an item points to each item that at least one judgement, or one judge,
# places below it on balance.


_ROUNDING = 1e-12  # relative to the weight of a pair


class Unanimous(NamedTuple):
    """The comparisons between blocks of items, which resamples reverse in part.

    `column` has pairs (winner, loser). A group is the set of pairs between the same two blocks.
    """

    column: Ints
    group: Ints  # of each column
    sign: Ints  # of each column: 1, or -1 for one direction of ties
    votes: Floats  # the judgements, or judges, that compare the two blocks of each group
    tied: Bools  # whether all comparisons of a group are ties; q then has a random sign
    query: Ints  # of each group, ascending
    touched: Bools  # whether comparisons connect a row with one of a column
    only: Bools  # whether all comparisons of a row are in columns
    open_low: Bools  # of each row, as `open_ends` returns them
    open_high: Bools

    def draw(self, n_resamples: int, seed: list[int]) -> Floats:
        """Draw q for each resample and group; with a random sign for tied groups.

        The draws of a group are stratified: each of `n_resamples` equal parts of (0, 1) contains
        one uniform number. They do not depend on other queries.
        """
        shares = np.empty((n_resamples, len(self.votes)))
        starts = np.flatnonzero(np.append(True, self.query[1:] != self.query[:-1]))
        for groups in np.split(np.arange(len(self.votes)), starts[1:]):  # a loop over queries
            random = np.random.default_rng(seed)
            part = np.tile(np.arange(n_resamples), (len(groups), 1))
            place = random.permuted(part, axis=1) + random.random(part.shape)
            sign = np.where(random.random(place.shape) < 0.5, -1.0, 1.0)
            sign[~self.tied[groups]] = 1.0
            q = 1.0 - (place / n_resamples) ** (1.0 / self.votes[groups, None])
            shares[:, groups] = (sign * q).T
        return shares

    def turn_round(self, weight: Floats, shares: Floats, mirror: Ints) -> Floats:
        """Move a share of the weight of pairs (n_resamples, n_pairs) to the reversed pairs.

        Return the weights against each column that would have the same effect if added.
        """
        share = np.clip(self.sign * shares[:, self.group], 0.0, 1 - 1e-9)
        before = weight[:, self.column]
        moved = before * share
        weight[:, self.column] -= moved
        weight[:, mirror[self.column]] += moved
        return before * (share / (1 - share))


def find_unanimous(
    winner: Ints, loser: Ints, contents: csr_array, counts: Floats, codes: Ints
) -> Unanimous | None:
    """Find blocks with unanimous comparisons between them; None if each component is one block.

    `contents` (n_units, n_pairs) has the weight of each pair (winner, loser) in each unit, and
    `counts` the number of each unit in the data. `codes` are the queries of the rows.
    """
    n_rows = len(codes)
    units = csr_array((counts > 0).astype(np.float64)[None])
    contents = contents.multiply(units.T).tocsr()
    contents.eliminate_zeros()
    total = counts @ contents
    first, second = np.minimum(winner, loser), np.maximum(winner, loser)
    keys, pair = np.unique(first * n_rows + second, return_inverse=True)
    # the net weight for the first item of each pair, in each unit
    shape = (len(winner), len(keys))
    start = np.arange(len(winner) + 1)
    net = contents @ csr_array((np.where(winner < loser, 1.0, -1.0), pair, start), shape=shape)
    net = net.tocoo()
    decided = np.abs(net.data) > _ROUNDING * max(float(total.max(initial=0.0)), 1e-300)
    one, other = keys[net.coords[1][decided]] // n_rows, keys[net.coords[1][decided]] % n_rows
    ahead = net.data[decided] > 0
    start, end = np.where(ahead, one, other), np.where(ahead, other, one)
    block = number_components(start, end, n_rows, "strong")
    column = np.flatnonzero((block[winner] != block[loser]) & (total > 0))
    if not len(column):
        return None
    low = np.minimum(block[winner[column]], block[loser[column]])
    high = np.maximum(block[winner[column]], block[loser[column]])
    query = codes[winner[column]]
    order = np.lexsort((high, low, query))
    column, low, high, query = column[order], low[order], high[order], query[order]
    new = np.append(True, (low[1:] != low[:-1]) | (high[1:] != high[:-1]))
    group = np.cumsum(new) - 1
    sign = np.where(block[winner[column]] == low, 1, -1)
    sums = np.bincount(group, sign * total[column])
    tied = np.abs(sums) <= _ROUNDING * np.bincount(group, total[column])
    shape = (len(winner), int(group[-1]) + 1)
    member = csr_array((np.ones(len(column)), (column, group)), shape=shape)
    compares = contents.astype(bool).astype(np.float64) @ member
    compares.data[:] = 1.0
    some = winner[column]
    winner, loser = winner[total > 0], loser[total > 0]
    part = number_components(winner, loser, n_rows, "weak")
    touched = np.isin(part, part[some])
    only = touched.copy()
    same = block[winner] == block[loser]
    only[winner[same]] = only[loser[same]] = False
    return Unanimous(
        column,
        group,
        np.where(tied[group], sign, 1),
        counts @ compares,
        tied,
        query[new],
        touched,
        only,
        *open_ends(winner, loser, part),
    )
