"""`AggregatedLoss`: judgements -> subsets -> structure -> targets of a loss -> their mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations, islice
from math import comb
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from sklearn_rankcal.aggregation._aggregate import get_structure
from sklearn_rankcal.aggregation._base import Structure
from sklearn_rankcal.aggregation._judgements import Judgements
from sklearn_rankcal.clicks._clicks import Clicks, read_clicks
from sklearn_rankcal.losses import Loss, NormalizedLoss, get_loss
from sklearn_rankcal.losses._base import relative_normalizers
from sklearn_rankcal.queries import Queries, Ranking
from sklearn_rankcal.targets import RedrawnTargets, Space
from sklearn_rankcal.utils._messages import check_count
from sklearn_rankcal.utils._numbers import Bools, Floats, Ints, read_numbers

Gains = str | Callable[[Floats], Floats]
#: Results of `AggregatedLoss.aggregated_gains` for judgements that are still in use.
_KNOWN_GAINS: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()
#: The function that makes `y` for structures of each kind of judgements.
LABELS_OF = {
    "comparisons": "preference_labels(pairs, groups)",
    "orders": "preference_labels(pairs, groups)",
    "clicks": "click_labels(shown, clicked, groups)",
}


class AggregatedLoss(Loss):
    """Learn from labels that are aggregated from partial judgements of each query.

    Learning from single comparisons, orders or clicks is not consistent (Duchi, Mackey and Jordan,
    2013, theorems 2 and 3). This loss takes subsets of k judgements of a query. A structure turns
    each subset into one score per document, and the wrapped loss turns the scores into targets.
    `fit` learns the mean of the targets over subsets. See :ref:`partial_preferences`.

    Parameters
    ----------
    loss : str or Loss, default="ndcg"
        A loss on scores. Its labels are the aggregated gains. A name means the loss with
        ``gain="linear"`` if it has a gain, and with ``max_relevance=1`` for ``"err"``.
    structure : str or Structure, default="log_odds"
        A key of `STRUCTURES` or a structure object.
    subset_size : int, "auto" or "all", default="auto"
        The number k of judgements in a subset. A query with fewer judgements has one subset.
        ``"auto"`` means 2 n^0.45, rounded up, if there are n judgements. ``"all"`` means one subset
        with all judgements of the query.
    n_subsets : int, default=50
        Minimum number of random subsets of each query, if not all subsets are taken.
    gain : {"auto", "identity"} or callable, default="auto"
        How to convert scores to labels of the wrapped loss. ``"auto"`` uses `Structure.gains`. A
        callable maps an array of scores to an array of labels, and must be nondecreasing.
    random_state : int or RandomState, default=0
        Determines the subsets.

    Attributes
    ----------
    takes_judgements : bool
        True. `fit` needs labels from `click_labels` if the structure uses clicks, and from
        `preference_labels` otherwise.

    Notes
    -----
    The ranker is consistent (theorem 4) if

    - the wrapped loss is calibrated for labels without noise;
    - the score of the structure converges as k grows (assumption A);
    - k grows more slowly than the square root of the number of judgements.

    Surrogates that compare utilities in pairs, such as ``"ranknet"``, need ``subset_size="all"``.

    `score` and validation queries aggregate all judgements of each query. Documents without a score
    have weight 0 in `fit` and gain 0 in `score`.

    References
    ----------
    Duchi, Mackey and Jordan (2013), The asymptotics of ranking algorithms, Annals of Statistics 41.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn_rankcal import CalibratedRanker, preference_labels
    >>> from sklearn_rankcal.aggregation import AggregatedLoss
    >>> X = [[0.0], [1.0], [2.0], [0.0], [2.0]]
    >>> pairs = [[2, 0], [2, 1], [1, 0], [0, 1], [4, 3]]
    >>> labels = preference_labels(pairs, groups=["a", "a", "a", "b", "b"])
    >>> ranker = CalibratedRanker(Ridge(), loss=AggregatedLoss("ndcg", subset_size=2))
    >>> ranker.fit(X, labels).predict(X, groups=["a", "a", "a", "b", "b"]).tolist()
    [3, 2, 1, 2, 1]
    """

    takes_judgements = True

    def __init__(
        self,
        loss: str | Loss = "ndcg",
        structure: str | Structure = "log_odds",
        *,
        subset_size: int | str = "auto",
        n_subsets: int = 50,
        gain: Gains = "auto",
        random_state: int | np.random.RandomState = 0,
    ) -> None:
        self.loss = loss
        self.structure = structure
        self.subset_size = subset_size
        self.n_subsets = n_subsets
        self.gain = gain
        self.random_state = random_state

    # ---------------------------------------------------------------- the parts

    @property
    def space(self) -> Space:  # type: ignore[override]
        return self._inner().space

    @property
    def greater_is_better(self) -> bool:  # type: ignore[override]
        return self._inner().greater_is_better

    def per_query(self, ranking: Ranking, labels: Any) -> Floats:
        """Compute the measure of the wrapped loss for the gains of all judgements."""
        return self._inner().per_query(ranking, self.aggregated_gains(labels))

    def defined(self, labels: Any, queries: Queries) -> Bools:
        gains = self.aggregated_gains(labels)
        return self._inner().defined(gains, queries) & (labels.per_query > 0)

    @property
    def calibrated_over(self) -> str:
        return (
            f"judgements that the structure {type(get_structure(self.structure)).__name__} "
            "aggregates to the right gains as their number grows (Duchi et al., 2013, assumption A "
            f"and theorem 4); for gains that are certain: {self._inner().calibrated_over}"
        )

    @property
    def calibrated_everywhere(self) -> bool:
        return False

    @property
    def averages_targets(self) -> bool:  # type: ignore[override]
        return self.subset_size != "all"

    def _inner(self) -> Loss:
        """Return the wrapped loss."""
        if not isinstance(self.loss, str):
            return get_loss(self.loss)
        named = get_loss(self.loss)
        # For ERR, the gain y / max_relevance is then the probability itself.
        known = {"gain": "linear", "max_relevance": 1.0}
        return named.set_params(**{k: v for k, v in known.items() if k in named.get_params()})

    # ---------------------------------------------------------------- labels

    def read(self, y: Any, n_rows: int | None = None) -> tuple[Judgements | Clicks, Queries | None]:
        """Read the judgements for the structure, and the queries of the rows."""
        takes = get_structure(self.structure).takes
        read = read_clicks if takes == "clicks" else Judgements.from_labels
        judgements = read(y, n_rows)
        return judgements, judgements.queries

    def check(self, labels: Any) -> None:
        """Check the parameters and the kind of judgements."""
        inner, structure = self._inner(), get_structure(self.structure)
        structure.check()
        if inner.space.is_pairwise:
            raise ValueError(
                f"AggregatedLoss needs a loss on scores, but {type(inner).__name__} learns "
                "pairs of documents. Pass loss='pd' itself with y=preference_labels(...), "
                "which adds up all judgements."
            )
        check_count(self.n_subsets, "n_subsets")
        k = self.subset_size
        if isinstance(k, str):
            if k not in ("auto", "all"):
                raise ValueError(f"subset_size must be 'auto', 'all' or a number; got {k!r}.")
        else:
            check_count(k, "subset_size")
        if not callable(self.gain) and self.gain not in ("auto", "identity"):
            raise ValueError(f"gain must be 'auto', 'identity' or a function; got {self.gain!r}.")
        kind = "clicks" if hasattr(labels, "clicked") else "comparisons"
        wanted = "clicks" if structure.takes == "clicks" else "comparisons"
        if not hasattr(labels, "per_query") or kind != wanted:
            raise ValueError(
                f"AggregatedLoss with the structure {type(structure).__name__} needs judgements as "
                f"labels. Pass y={LABELS_OF[structure.takes]}."
            )
        try:
            inner.check(self.aggregated_gains(labels))
        except ValueError as error:
            raise ValueError(
                f"{error} (The labels of {inner!r} are gains computed by {structure!r}. Try "
                "another structure, another loss, or gain=<function of scores>.)"
            ) from error

    def resolve(self, relevance: Any) -> Loss:
        """Return a copy of the loss with its data-dependent parameters set."""
        self.check(relevance)
        made = get_structure(self.structure)
        structure: str | Structure = made.resolve(relevance)
        if structure is made:
            structure = self.structure  # `check` has cached the gains for it
        resolved = clone(self).set_params(
            structure=structure, subset_size=self._size(relevance) or "all"
        )
        gains = resolved.aggregated_gains(relevance)
        return resolved.set_params(loss=self._inner().resolve(gains))

    def aggregated_gains(self, judgements: Any) -> Floats:
        """Aggregate all judgements of each query to one gain per document, 0 without a score."""
        return np.nan_to_num(self._kept_gains(judgements), nan=0.0)

    def _kept_gains(self, judgements: Any) -> Floats:
        """Compute the gains for all judgements once; NaN for documents without a score."""
        # Objects are compared by identity. Keeping them prevents reuse of their address.
        made_by = (self.structure, self.gain)
        known = _KNOWN_GAINS.setdefault(judgements, [])
        for other, gains in known:
            if all(
                a is b or (isinstance(a, str) and a == b)
                for a, b in zip(other, made_by, strict=True)
            ):
                return gains
        gains = self._gains(judgements)
        known.append((made_by, gains))
        return gains

    def _gains(self, judgements: Any) -> Floats:
        """Compute the gains of the documents of each query or copy, NaN if they have no score."""
        structure = get_structure(self.structure)
        scores = structure.scores(judgements)
        if self.gain == "auto":
            return structure.gains(scores, judgements.queries)
        if not callable(self.gain):
            return scores
        known = ~np.isnan(scores)
        gains = np.full(len(scores), np.nan)
        values = read_numbers(self.gain(scores[known]), "the return value of gain")
        if values.shape != (int(known.sum()),) or not np.isfinite(values).all():
            raise ValueError(
                f"gain must return one finite number per score; it returned shape {values.shape}."
            )
        gains[known] = values
        return gains

    def query_weight(self, labels: Any, queries: Queries) -> Floats | None:
        """Return the query weights of the wrapped loss, for the gains of all judgements."""
        return self._inner().query_weight(self.aggregated_gains(labels), queries)

    def row_weight(self, labels: Any, queries: Queries) -> Floats:
        """Weight queries by their judgements, with mean 1, and documents without a score by 0."""
        number = labels.per_query
        weight = queries.broadcast(number / number[number > 0].mean())
        return np.where(np.isnan(self._kept_gains(labels)), 0.0, weight)

    # ---------------------------------------------------------------- targets

    def encode(self, relevance: Any, queries: Queries) -> Floats:
        """Compute the targets of the wrapped loss for all judgements of each query."""
        encoded: Floats = self._inner().encode(self.aggregated_gains(relevance), queries)
        return encoded

    def training_targets(self, relevance: Any, queries: Queries) -> Floats:
        """Compute the mean of the targets over subsets of the judgements; 0 without a target."""
        return np.nan_to_num(self.mean_targets(relevance).targets, nan=0.0)

    def mean_targets(self, judgements: Any) -> MeanTargets:
        """Return the mean of the targets over subsets, and its error, as `MeanTargets`."""
        random = check_random_state(self.random_state)
        size = self._size(judgements)
        return mean_over_subsets(
            judgements, self._encoder(judgements), size, self.n_subsets, random
        )

    def draws(self, labels: Any) -> RedrawnTargets:
        """Return the targets of one subset of each query, and a function that draws more."""
        random = check_random_state(self.random_state)
        draw = SubsetDraws(labels, self._encoder(labels), self._size(labels), random)
        numbers = np.arange(labels.queries.n_queries)
        return RedrawnTargets(labels.queries.scatter(draw(numbers)), draw)

    def _encoder(self, judgements: Any) -> Callable[[Any], Floats]:
        """Return the function from copies of queries to targets; NaN without a score.

        Relative normalizers use the mean and the share of the queries, not of the copies.
        """
        inner = self._inner()
        encode: Callable[..., Any] = inner.training_targets
        if isinstance(inner, NormalizedLoss):
            gains = inner.gains(self.aggregated_gains(judgements))
            normalizer = inner.normalizer(gains, judgements.queries)
            share = inner.share(judgements.queries.n_queries)
            relative = relative_normalizers(gains, normalizer, judgements.queries)
            mean = float(relative.mean()) if len(relative) else 0.0
            encode = partial(inner.shrunken_targets, share=share, mean=mean)

        def encode_copies(copies: Any) -> Floats:
            gains = self._gains(copies)
            unknown = np.isnan(gains)
            targets = encode(np.where(unknown, 0.0, gains), copies.queries)
            return np.where(unknown, np.nan, targets)

        return encode_copies

    def _size(self, judgements: Any) -> int | None:
        """Return the size of the subsets; None means all judgements."""
        if self.subset_size == "all":
            return None
        if self.subset_size == "auto":
            # Theorem 4 of Duchi, Mackey and Jordan (2013) needs a size that grows more slowly than
            # sqrt(n). On comparisons sampled from the labels of MQ2008, the risk of this one was
            # within 1 % of the best size.
            n = float(judgements.per_query.sum())
            return max(1, int(np.ceil(2.0 * n**0.45)))
        return int(self.subset_size)


# ---------------------------------------------------------------- subsets of judgements


#: Function from judgements of copies of queries to targets of documents, NaN without a score.
Encode = Callable[[Any], Floats]

#: Rows of the copies in a block.
_BLOCK_ROWS = 1 << 21


class SubsetPlan(NamedTuple):
    """How many subsets of each query are taken, and how.

    A round divides the judgements of a query, in random order, into disjoint subsets.
    """

    size: Ints  # judgements of a subset: k, or all if there are fewer
    per_round: Ints  # subsets of a round
    n_rounds: Ints  # 0 for queries without judgements
    exact: Bools  # whether all subsets are taken, each equally often


def plan(n_judgements: Ints, k: int | None, n_subsets: int) -> SubsetPlan:
    """Decide how many subsets of k judgements (None: all) of each query are taken."""
    n = np.asarray(n_judgements, dtype=np.int64)
    size = n if k is None else np.minimum(n, k)
    per_round = np.where(size > 0, n // np.maximum(size, 1), 0)
    # One round has all subsets if there is only one, or if each has one judgement.
    exact = (size == n) | (size == 1)
    # At least two rounds: their differences give the standard error of the mean.
    rounds = np.where(exact, 1, np.maximum(2, -(-n_subsets // np.maximum(per_round, 1))))
    # Few subsets are listed. `listed` is small, because a query with many judgements has many.
    for m, s in set(zip(n[~exact].tolist(), size[~exact].tolist(), strict=True)):
        if comb(m, s) <= n_subsets:
            listed = (n == m) & (size == s) & ~exact
            exact = exact | listed
            per_round = np.where(listed, comb(m, s), per_round)
            rounds = np.where(listed, 1, rounds)
    return SubsetPlan(size, per_round, np.where(n > 0, rounds, 0), exact)


def expand_counts(judgements: Any) -> Any:
    """Repeat each judgement by its count, because subsets contain single judgements."""
    if judgements.count is None:
        return judgements
    numbers = np.repeat(np.arange(judgements.n_judgements), judgements.count.astype(np.int64))
    queries = np.arange(judgements.queries.n_queries)
    expanded = judgements.resample(numbers, judgements.query[numbers], queries)
    # `resample` groups the rows by query, but here they must stay in place.
    if judgements.queries.order is not None:
        expanded = expanded.take_rows(
            judgements.queries.scatter(np.arange(judgements.queries.n_rows)), judgements.queries
        )
    expanded.count = None
    return expanded


def subset_blocks(
    judgements: Any, plan: SubsetPlan, random: np.random.RandomState
) -> Iterator[tuple[Any, Ints, bool]]:
    """Yield copies of queries with one subset each, their queries, and whether a round ends."""
    order = np.argsort(judgements.query, kind="stable")
    counts = np.bincount(judgements.query, minlength=judgements.queries.n_queries)
    starts = np.cumsum(counts) - counts
    listed = plan.exact & (plan.size > 1) & (plan.size < counts)
    if listed.any():
        yield from _blocks(judgements, *_list_subsets(order, starts, counts, plan, listed))
    divided = (plan.n_rounds > 0) & ~listed
    for number in range(int(plan.n_rounds[divided].max(initial=0))):  # a loop over rounds
        active = divided & (plan.n_rounds > number)
        taken, copy, parent = _divide(order, starts, counts, plan, active, random)
        yield from _blocks(judgements, taken, copy, parent)


def _divide(
    order: Ints,
    starts: Ints,
    counts: Ints,
    plan: SubsetPlan,
    active: Bools,
    random: np.random.RandomState,
) -> tuple[Ints, Ints, Ints]:
    """Divide the judgements of some queries, in random order, into disjoint subsets."""
    queries = np.flatnonzero(active)
    n = counts[queries]
    owner = np.repeat(np.arange(len(queries)), n)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(n) - n, n)
    # Sorting (query + uniform number) permutes the judgements inside each query.
    shuffled = np.argsort(owner + random.uniform(size=len(owner)))
    size, per_round = plan.size[queries], plan.per_round[queries]
    kept = place < (size * per_round)[owner]
    number = place // np.maximum(size, 1)[owner]
    first = np.cumsum(per_round) - per_round
    source = shuffled[kept]  # shuffling stays within queries
    taken = order[starts[queries][owner[source]] + place[source]]
    return taken, (first[owner] + number)[kept], np.repeat(queries, per_round)


def _list_subsets(
    order: Ints, starts: Ints, counts: Ints, plan: SubsetPlan, listed: Bools
) -> tuple[Ints, Ints, Ints]:
    """List all subsets of some queries with few judgements."""
    taken, copies, parents, n_copies = [], [], [], 0
    kinds = set(zip(counts[listed].tolist(), plan.size[listed].tolist(), strict=True))
    for n, size in sorted(kinds):  # a loop over the different numbers of judgements
        queries = np.flatnonzero(listed & (counts == n) & (plan.size == size))
        places = np.array(list(combinations(range(n), size)))
        of_query = order[starts[queries][:, None, None] + places]  # (queries, subsets, size)
        new = len(queries) * len(places)
        taken.append(of_query.reshape(-1))
        copies.append(n_copies + np.repeat(np.arange(new), size))
        parents.append(np.repeat(queries, len(places)))
        n_copies += new
    return np.concatenate(taken), np.concatenate(copies), np.concatenate(parents)


def _blocks(
    judgements: Any, taken: Ints, copy: Ints, parent: Ints
) -> Iterator[tuple[Any, Ints, bool]]:
    """Split the copies of a round, in ascending order, into blocks of bounded size."""
    rows = np.cumsum(judgements.queries.sizes[parent])
    first = 0
    while first < len(parent):
        before = rows[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(rows, before + _BLOCK_ROWS, side="right")))
        inside = slice(*np.searchsorted(copy, [first, last]))
        part = parent[first:last]
        block = judgements.resample(taken[inside], copy[inside] - first, part)
        yield block, part, last >= len(parent)
        first = last


def _sample(n: int, k: int, random: np.random.RandomState) -> Ints:
    """Draw k different numbers below n, uniformly over all sets."""
    if 2 * k > n:
        return random.permutation(n)[:k]
    # The distinct values of draws with replacement, in order of appearance, are a sample without
    # replacement.
    found: dict[int, None] = {}
    while len(found) < k:
        found.update(dict.fromkeys(random.randint(n, size=k - len(found)).tolist()))
    return np.fromiter(islice(found, k), dtype=np.int64, count=k)


class MeanTargets(NamedTuple):
    """Mean of the targets over subsets of the judgements of each query.

    Attributes
    ----------
    targets : ndarray of shape (n_documents,)
        The mean targets; NaN for documents without a target in any subset.
    standard_error : ndarray of shape (n_documents,)
        Standard error of the mean from sampling subsets, 0 if all subsets are taken.
    exact : ndarray of bool of shape (n_queries,)
        Whether all subsets of the query were taken.
    n_subsets : ndarray of shape (n_queries,)
        Number of subsets of the query.
    """

    targets: Floats
    standard_error: Floats
    exact: Bools
    n_subsets: Ints


def mean_over_subsets(
    judgements: Any, encode: Encode, size: int | None, n_subsets: int, random: np.random.RandomState
) -> MeanTargets:
    """Compute the mean of the targets over at least `n_subsets` subsets of each query, or all.

    A size of None means one subset with all judgements.
    """
    queries = judgements.queries
    single = expand_counts(judgements)
    planned = plan(np.bincount(single.query, minlength=queries.n_queries), size, n_subsets)
    # sums over the subsets of a round, and sums over rounds of the means and squared means
    count, total, rounds, sums, squares = (np.zeros(queries.n_rows) for _ in range(5))
    for copies, parent, last in subset_blocks(single, planned, random):
        targets = encode(copies)
        known = ~np.isnan(targets)
        rows = queries.copies(parent)[1][known]
        values = targets[known]
        count += np.bincount(rows, minlength=queries.n_rows)
        total += np.bincount(rows, values, queries.n_rows)
        if last:
            some = count > 0
            means = total[some] / count[some]
            rounds += some
            sums[some] += means
            squares[some] += means**2
            count[:], total[:] = 0.0, 0.0
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = sums / rounds
        variance = np.maximum(squares / rounds - mean**2, 0.0) / (rounds - 1)
    exact = queries.broadcast(planned.exact)
    # The error is unknown for a document with a score in only one round.
    error = np.where(exact, 0.0, np.where(rounds > 1, np.sqrt(variance), np.inf))
    return MeanTargets(mean, error, planned.exact, planned.per_round * planned.n_rounds)


class SubsetDraws:
    """Draw the targets of one subset of k judgements per query, in O(k) time each.

    For the parameters, see `mean_over_subsets`.
    """

    def __init__(
        self, judgements: Any, encode: Encode, size: int | None, random: np.random.RandomState
    ) -> None:
        self.judgements = expand_counts(judgements)
        self.encode = encode
        self.size = size
        self.random = random
        self._order = np.argsort(self.judgements.query, kind="stable")
        self._counts = np.bincount(self.judgements.query, minlength=judgements.queries.n_queries)
        self._starts = np.cumsum(self._counts) - self._counts

    def __call__(self, numbers: Ints) -> Floats:
        counts = self._counts[numbers]
        sizes = counts if self.size is None else np.minimum(counts, self.size)
        places = zip(self._starts[numbers], counts.tolist(), sizes.tolist(), strict=True)
        # Drawing some extra with replacement and redrawing duplicates takes O(k), unless k is
        # nearly n; then permute all.
        taken = [start + _sample(n, k, self.random) for start, n, k in places]
        chosen = self._order[np.concatenate([*taken, np.zeros(0, dtype=np.int64)])]
        copy = np.repeat(np.arange(len(numbers)), sizes)
        copies = self.judgements.resample(chosen, copy, numbers)
        return np.nan_to_num(self.encode(copies), nan=0.0)
