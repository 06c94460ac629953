"""What every metric checks: one meaning for scores or ranks, groups, ties and weights."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.decoders._sort import check_scores
from sklearn_rankcal.exceptions import MissingGroupsWarning, PositionsAsScoresWarning
from sklearn_rankcal.labels._relevance import agreed_queries, is_structured, read_relevance
from sklearn_rankcal.measures import Measure, PairwiseAgreement
from sklearn_rankcal.queries import (
    TIES,
    Queries,
    Ranking,
    check_ranks,
    check_weight,
    mean_over_queries,
)
from sklearn_rankcal.utils._names import checks_keywords
from sklearn_rankcal.utils._numbers import read_array


@dataclass
class RankingData:
    """Checked input of a metric: what is true, how it was ranking, and each query's weight."""

    relevance: NDArray[np.float64]
    ranking: Ranking
    weight: NDArray[np.float64] | None

    def values(self, measure: Measure) -> NDArray[np.float64]:
        """The measure of every query, NaN where it is undefined."""
        measure.check(self.relevance)
        return measure.per_query(self.ranking, self.relevance)

    def score(
        self,
        measure: Measure,
        name: str,
        zero_division: str | float,
        return_per_query: bool,
    ) -> float | NDArray[np.float64]:
        """The metric per query, undefined ones by `zero_division`, or its (weighted) mean."""
        values = fill_undefined(self.values(measure), zero_division)
        if return_per_query:
            return values
        return mean_over_queries(values, self.ranking.queries, self.weight, name)


def read_ranking(
    y_true: Any,
    y_score: ArrayLike | None,
    ranks: ArrayLike | None,
    groups: ArrayLike | None,
    ties: str = "average",
    sample_weight: ArrayLike | None = None,
    *,
    positions_as: str = "ranks=",
    stacklevel: int = 5,
) -> RankingData:
    """Check the arguments that every metric shares.

    `positions_as` is how the caller takes positions, and `stacklevel` where the user's own line
    stands, for warnings.

    Warns
    -----
    MissingGroupsWarning
        Several rows, and nothing tells their queries.
    PositionsAsScoresWarning
        See `looks_like_positions`.

    Raises
    ------
    ValueError
        Both or neither of scores and ranks, lengths that differ, NaN, ranks that are no
        permutation, an unknown `ties`, groups that contradict structured labels.
    """
    if (y_score is None) == (ranks is None):
        raise ValueError(
            "Pass either y_score (larger is better) or ranks= (positions, 1 = top), not "
            + ("both." if ranks is not None else "neither.")
        )
    if not isinstance(ties, str) or ties not in TIES:
        raise ValueError(f"ties must be one of {', '.join(map(repr, TIES))}; got {ties!r}.")
    y_true, y_score, ranks, sample_weight, queries = _flatten(
        y_true, y_score, ranks, groups, sample_weight
    )
    relevance, of_labels = read_relevance(y_true)
    if groups is not None:
        queries = Queries.from_groups(groups, len(relevance))
    known = agreed_queries(queries, of_labels)
    queries = known or Queries.single(len(relevance))
    weight = check_weight(sample_weight, len(relevance))
    if ranks is not None:
        ranking = Ranking.from_ranks(check_ranks(ranks, queries), queries)
    else:
        scores = check_scores(y_score, len(relevance), "y_score")
        ranking = Ranking.from_scores(scores, queries, ties, relevance)
        if looks_like_positions(scores, relevance, queries):
            warnings.warn(
                "The scores look like positions: in every query they are the numbers 1 to r, and "
                "the documents with more relevance do not have the larger ones. A score is larger "
                "for a better document. Pass positions (1 = top), such as a ranker's predict, as "
                f"{positions_as}; scores are what its decision_function returns.",
                PositionsAsScoresWarning,
                stacklevel=stacklevel,
            )
    if known is None and len(relevance) > 1:
        warnings.warn(
            f"No query ids: all {len(relevance)} rows are scored as ONE query. Pass groups=<query "
            "id of each row>, or labels that carry their query: relevance_labels(y, groups). If "
            "they are one query, say so with groups=numpy.zeros(len(y_true)), or pass y_true and "
            "the ranking as arrays of shape (1, n_documents).",
            MissingGroupsWarning,
            stacklevel=stacklevel,
        )
    return RankingData(relevance, ranking, weight)


_LONG = 10  # documents of a single query whose scores 1 .. r are hardly chance


def looks_like_positions(
    scores: NDArray[np.float64], relevance: NDArray[np.float64], queries: Queries
) -> bool:
    """Whether scores are probably positions, 1 = top, which as scores are the reverse ranking.

    They are a permutation of 1 .. r in every query, there are several queries of more than one
    document or one of at least `_LONG`, and read as scores they agree with the labels no better
    than their reverse does. The last condition spares r + 1 - positions, which are legitimate
    scores: those of a ranking better than chance agree with the labels.
    """
    sizes = queries.sizes[queries.sizes > 1]
    if len(sizes) < 2 and not (len(sizes) and sizes[0] >= _LONG):
        return False
    if not np.array_equal(scores, np.floor(scores)):
        return False
    size = queries.broadcast(queries.sizes)
    if ((scores < 1) | (scores > size)).any():
        return False
    seen = np.zeros(queries.n_rows, dtype=bool)
    place = queries.gather(scores).astype(np.int64) - 1
    seen[place + queries.repeat(queries.offsets[:-1])] = True
    if not seen.all():
        return False
    share = PairwiseAgreement().share(Ranking.from_scores(scores, queries), relevance)
    lost = share[~np.isnan(share)]
    return bool(len(lost) and lost.mean() >= 0.5)


def _flatten(
    y_true: Any, y_score: Any, ranks: Any, groups: Any, sample_weight: Any
) -> tuple[Any, Any, Any, Any, Queries | None]:
    """Arrays of shape (n_queries, n_documents), as scikit-learn's metrics take, as rows."""
    if groups is not None or y_true is None or is_structured(y_true):
        return y_true, y_score, ranks, sample_weight, None
    y_true = read_array(y_true, "y_true")
    shape = y_true.shape
    if len(shape) != 2 or shape[1] < 2:
        return y_true, y_score, ranks, sample_weight, None
    flat: list[Any] = []
    for name, values in (("y_score", y_score), ("ranks", ranks), ("sample_weight", sample_weight)):
        array = None if values is None else read_array(values, name)
        if array is not None and array.shape != shape:
            raise ValueError(f"{name} has shape {array.shape}, but y_true has {shape}.")
        flat.append(None if array is None else array.ravel())
    return y_true.ravel(), flat[0], flat[1], flat[2], Queries.uniform(*shape)


def fill_undefined(values: NDArray[np.float64], zero_division: str | float) -> NDArray[np.float64]:
    """Per-query values with the undefined ones (NaN) kept, for "skip", or set to 0 or 1."""
    if isinstance(zero_division, str):
        if zero_division == "skip":
            return values
    elif isinstance(zero_division, Real) and zero_division in (0, 1):
        return np.where(np.isnan(values), float(zero_division), values)
    raise ValueError(f"zero_division must be 'skip', 0 or 1; got {zero_division!r}.")


_SHARED = """y_true : array-like of shape (n_documents,) or (n_queries, n_documents)
        Relevance, larger is better; or the structured array of `relevance_labels`.
    y_score : array-like of the shape of `y_true`, default=None
        Scores, larger is better. Pass scores or `ranks`.
    ranks : array-like of the shape of `y_true`, default=None
        Positions inside each query, 1 = top, without ties.
    groups : array-like of shape (n_documents,), default=None
        Query id of each row. None: as structured labels say, or each row of a 2-D `y_true`; else
        all rows are one query, with a warning unless there is a single row. If one query is
        meant, pass ``numpy.zeros(n_documents)``, or `y_true` of shape (1, n_documents).
    ties : {"average", "first", "worst", "best"}, default="average"
        What equal scores mean: the mean over all orders they allow, in closed form; the order of
        the rows; the least or the most favourable order.
    zero_division : {"skip", 0, 1}, default="skip"
        A query on which the metric is undefined is left out of the mean, or counts 0 or 1.
    sample_weight : array-like of the shape of `y_true`, default=None
        A query's weight is the mean of its rows' weights.
    return_per_query : bool, default=False
        Return one value per query (in order of first appearance; NaN where undefined and skipped)
        instead of their mean. `evaluate_rankings` gives the ids of the queries with them."""


def _documented(function: Callable[..., Any]) -> Callable[..., Any]:
    """Put the parameters that all metrics share into a docstring, and check keywords."""
    if function.__doc__:  # absent under python -OO
        function.__doc__ = function.__doc__.replace("{shared}", _SHARED)
    return checks_keywords(function)


def _score(
    measure: Measure,
    name: str,
    y_true: Any,
    y_score: ArrayLike | None,
    ranks: ArrayLike | None,
    groups: ArrayLike | None,
    ties: str,
    zero_division: str | float,
    sample_weight: ArrayLike | None,
    return_per_query: bool,
) -> float | NDArray[np.float64]:
    data = read_ranking(y_true, y_score, ranks, groups, ties, sample_weight)
    return data.score(measure, name, zero_division, return_per_query)
