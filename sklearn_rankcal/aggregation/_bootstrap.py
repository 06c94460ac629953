"""The bootstrap of judgements: intervals of scores and ranks, and probabilities of pairs.

A resample draws *units*: judgements, or all judgements of a judge. Identical judgements are one
unit with a count. A resample is therefore a multinomial draw of counts over the units of a query.
The structure receives many resamples as copies of the query.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.special import ndtri
from sklearn.exceptions import ConvergenceWarning

from sklearn_rankcal.aggregation._base import ComparisonStructure, Structure, tie_scores
from sklearn_rankcal.aggregation._boards import Intervals, rank_intervals
from sklearn_rankcal.aggregation._contests import count_votes_of_items
from sklearn_rankcal.aggregation._evidence import JudgeTerms, share_terms
from sklearn_rankcal.aggregation._graphs import number_components, open_ends
from sklearn_rankcal.aggregation._judgements import Judgements
from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.queries._queries import number_values, ranges
from sklearn_rankcal.targets import PAIRS
from sklearn_rankcal.utils._features import hash_values
from sklearn_rankcal.utils._memory import BLOCK_BYTES, rows_per_block
from sklearn_rankcal.utils._messages import warn
from sklearn_rankcal.utils._numbers import Bools, Floats, Ints


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
    grouped, parts = queries.gather(scores), queries.gather(parts)
    sizes = [min(CHUNK, n_resamples - start) for start in range(0, n_resamples, CHUNK)]
    found: list[tuple[Any, ...]] = []
    first = 0
    with Parallel(n_jobs=n_jobs, verbose=verbose) as parallel:
        for run in make_runs(judgements, structure, resample, n_resamples, seed):
            # Each chunk of resamples has its own random numbers: results do not depend on n_jobs.
            chunks = parallel(delayed(ResampleRun.resample)(run, c, n) for c, n in enumerate(sizes))
            rows = slice(first, first + run.queries.n_rows)
            mine = grouped[rows], parts[rows]
            found.append(_squares(chunks, *mine, run.queries, structure._steps))
            first = rows.stop
    own, pairs, lead, disconnected, split, texts = zip(*found, strict=True)
    if messages := sorted(set().union(*texts)):
        warn(f"Some resamples: {messages[0]}", ConvergenceWarning)
    number, degrees = (queries.gather(one) for one in _numbers(judgements, resample))
    z = _terms_of_pairs(np.concatenate(pairs), number, degrees, queries).z(np.concatenate(lead))
    low = high = None
    if not structure._steps:
        query = np.repeat(np.arange(queries.n_queries), queries.sizes)
        compared = ~np.isnan(grouped)
        total = np.bincount(query, np.where(compared, grouped, 0.0))
        mean = total / np.maximum(np.bincount(query, compared), 1)
        terms = _terms(np.concatenate(own), number, degrees)
        width = queries.scatter(terms.width(grouped - mean[query], level))
        low, high = scores - width, scores + width
        if structure.unbounded:
            winner, loser = judgements._links()
            ends = open_ends(winner, loser, number_components(winner, loser, len(scores), "weak"))
            # resamples say nothing of a score that only the penalty bounds
            bounded = ~(ends[0] | ends[1]) | np.isnan(scores)
            low, high = np.where(bounded, low, -np.inf), np.where(bounded, high, np.inf)
    ranks = rank_intervals(z, queries, level)
    counts = np.concatenate(disconnected), np.concatenate(split)
    return Intervals(level, low, high, *ranks, z, None, None, n_resamples, resample, *counts)


def _squares(
    chunks: list[Resamples], scores: Floats, parts: Ints, queries: Queries, steps: bool
) -> tuple[Any, ...]:
    """Return the mean squared errors of scores, and the variances and means of all differences.

    If a resample does not connect two items, their difference counts as 0. Means of resamples are
    smooth where scores are step functions (`steps`), but there the share of resamples in which an
    item is ahead can say less than the variance. Also return the number of resamples of each query
    that are disconnected or split, and the warnings. O(n_resamples r^2) time for r items.
    """
    samples, labels, separated, messages = zip(*chunks, strict=True)
    sample, label = np.concatenate(samples), np.concatenate(labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # items that no resample compares
        own = np.nanmean((sample - scores) ** 2, axis=0)
    # A component of the data is connected in a resample if all of its items have the label of its
    # first item.
    first, number = np.unique(parts, return_index=True, return_inverse=True)[1:]
    apart = label != label[:, first[number]]
    disconnected = np.logical_or.reduceat(apart, queries.offsets[:-1], axis=1)
    n, n_entries = len(sample), PAIRS.n_entries(queries.sizes)
    starts = np.cumsum(n_entries) - n_entries
    errors, lead = np.zeros((2, int(n_entries.sum())))
    for r in np.unique(queries.sizes).tolist():
        member = np.flatnonzero(queries.sizes == r)
        step = rows_per_block(n * r * 24)
        for some in (member[k : k + step] for k in range(0, len(member), step)):
            inside = queries.offsets[some][:, None] + np.arange(r)
            s, part = sample[:, inside], label[:, inside]
            # A loop over the items of queries of the same size; each step compares one item per
            # query with all later items.
            entry = starts[some]
            for i in range(r - 1):
                place = entry[:, None] + np.arange(r - 1 - i)
                connected = part[:, :, i, None] == part[:, :, i + 1 :]
                drawn = np.where(connected, s[:, :, i, None] - s[:, :, i + 1 :], 0.0)
                errors[place], lead[place] = drawn.var(axis=0), drawn.mean(axis=0)
                if steps:
                    share = (1 + np.sign(drawn * np.sign(lead[place])).mean(axis=0)) / 2
                    least = lead[place] / np.maximum(ndtri(share), 1e-9)
                    errors[place] = np.maximum(errors[place], least**2)
                entry = entry + r - 1 - i
    texts = sorted(set().union(*messages))
    split = np.concatenate(separated).sum(axis=0)
    return own, errors, lead, disconnected.sum(axis=0), split, texts


def _numbers(judgements: Judgements, resample: str) -> tuple[Floats, Floats]:
    """Return the number of units behind each item, and their degrees of freedom.

    Judges with unequal shares of the judgements of an item count as in `JudgeTerms`.
    """
    n = judgements.queries.n_rows
    row, owner, votes = count_votes_of_items(judgements, np.ones(n, dtype=bool))
    if resample == "judgements":
        return votes, np.maximum(votes - 1, 0.0)
    assert judgements.judge is not None and judgements.judges is not None
    weight = np.ones(len(owner)) if judgements.count is None else judgements.count[owner]
    shape = (len(judgements.judges), n)
    return share_terms(csr_array((weight, (judgements.judge[owner], row)), shape=shape))


def _terms(variance: Floats, number: Floats, degrees: Floats) -> JudgeTerms:
    """Return the terms of statements that must survive one more unit against them.

    A bootstrap variance of n units is too small by the factor (n - 1) / n.
    """
    few = np.where(number > 1, number / np.maximum(number - 1, 1e-300), 1.0)
    return JudgeTerms(variance * few, number, degrees, np.ones(len(number)))


def _terms_of_pairs(
    variance: Floats, number: Floats, degrees: Floats, queries: Queries
) -> JudgeTerms:
    """Return the terms of all pairs, each with the numbers of the item that has fewer."""
    starts = np.cumsum(PAIRS.n_entries(queries.sizes)) - PAIRS.n_entries(queries.sizes)
    numbers, free = np.zeros((2, len(variance)))
    for inside in queries.equal_pair_blocks():
        one, other = PAIRS.indices(inside.shape[1])
        entries = starts[queries.codes[inside[:, :1]]] + np.arange(len(one))
        for of_pairs, of_items in ((numbers, number), (free, degrees)):
            of_pairs[entries] = np.minimum(of_items[inside[:, one]], of_items[inside[:, other]])
    return _terms(variance, numbers, free)


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
    n = judgements.n_judgements
    unit = _content_codes(judgements) if merge and n else np.arange(n)
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
    """Number the judgements; equal judgements have the same number.

    The content is the order, if there are orders, and the set of weighted comparisons otherwise.
    """
    n, n_rows = judgements.n_judgements, judgements.queries.n_rows
    if judgements.orders is not None:
        item, tier, starts = judgements.orders
        entry = tier * n_rows + item
    else:
        winner, loser, weight, ends = judgements.comparisons
        entry = winner * n_rows + loser
        if weight is not None:
            values, weight_code = np.unique(weight, return_inverse=True)
            entry = number_values(entry)[0] * len(values) + weight_code
        starts = np.arange(n + 1) if ends is None else ends
    # the hash of a set is the sum of the hashes of its entries, as differences of cumulative sums;
    # by chance, two of a million judgements share a hash once in thirty million data sets
    total = np.append(np.uint64(0), np.cumsum(hash_values(entry + 1), dtype=np.uint64))
    own = hash_values(-1 - judgements.query)
    return number_values((total[starts[1:]] - total[starts[:-1]] + own).view(np.int64))[0]


@dataclass
class ResampleRun:
    """Queries with jointly drawn resamples.

    Rows, pairs and units are numbered from the first of the run, in grouped layout.
    """

    structure: Structure
    queries: Queries
    winner: Ints  # of the pairs that the data compare, in ascending order
    loser: Ints
    unit_offsets: Ints
    count: Floats
    contents: csr_array  # the weight of each pair in a unit, (n_units, n_pairs)
    sizes: Floats  # judgements of each unit
    seed: int
    judgements: Judgements | None  # all judgements, for a structure that uses more than comparisons
    judgement: Ints  # the judgements of the units of the run
    unit: Ints
    first_query: int

    def resample(self, chunk: int, n_resamples: int) -> Resamples:
        """Draw the resamples of a chunk, at most `CHUNK`, and compute the scores of each."""
        n_units, n_pairs, n_rows = len(self.count), len(self.winner), self.queries.n_rows
        step = rows_per_block(8 * (2 * n_units + 8 * n_pairs + 8 * n_rows))
        bits = np.random.PCG64([self.seed, chunk])
        states = [bits.state] * self.queries.n_queries
        found, messages = [], set()
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
                found.append(self._solve(draws))
            for warning in caught:
                if issubclass(warning.category, ConvergenceWarning):
                    messages.add(str(warning.message))
                else:
                    warnings.warn_explicit(
                        warning.message, warning.category, warning.filename, warning.lineno
                    )
        scores, parts, separated = (np.concatenate(values) for values in zip(*found, strict=True))
        return Resamples(scores, parts, separated, sorted(messages))

    def _solve(self, draws: Floats) -> tuple[Floats, NDArray[np.int32], Bools]:
        """Compute the scores, the components, and whether winners split a component."""
        n, (n_queries, n_rows) = len(draws), (self.queries.n_queries, self.queries.n_rows)
        weight = (draws @ self.contents).reshape(-1)
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
            sample = self._sample(draws)
            scores = tie_scores(self.structure.scores(sample), self.structure, sample.queries)
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

    def _sample(self, draws: Floats) -> Judgements:
        """Return the judgements of resamples."""
        assert self.judgements is not None
        resample, taken = np.nonzero(draws[:, self.unit])
        judgement = self.judgement[taken]
        query = self.judgements.query[judgement] - self.first_query
        n_queries = self.queries.n_queries
        parents = np.tile(np.arange(n_queries) + self.first_query, len(draws))
        sample = self.judgements.resample(judgement, resample * n_queries + query, parents)
        sample.count = draws[resample, self.unit[taken]]
        return sample


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
    keys = np.unique(winner * n_rows + loser)
    winner, loser = keys // n_rows, keys % n_rows
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
        yield ResampleRun(
            structure=structure,
            queries=part,
            winner=winner[c:d] - rows.start,
            loser=loser[c:d] - rows.start,
            unit_offsets=units.offsets[first : last + 1] - a,
            count=units.counts[a:b],
            contents=contents[a:b, c:d],
            sizes=sizes[a:b],
            seed=seed,
            judgements=whole,
            judgement=units.judgement[taken],
            unit=units.unit[taken] - a,
            first_query=first,
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
