"""The one reading of the arguments that all metrics share, and their documentation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.exceptions import MissingGroupsWarning, PositionsAsScoresWarning
from sklearn_rankcal.labels._labels import agreed_queries, is_structured, read_relevance
from sklearn_rankcal.losses import Measure
from sklearn_rankcal.losses._pairs import PairwiseAgreement
from sklearn_rankcal.queries import (
    TIES,
    Queries,
    Ranking,
    check_ranks,
    check_weight,
    mean_over_queries,
)
from sklearn_rankcal.queries._ranking import UNJUDGED, check_scores, lacks_positions
from sklearn_rankcal.utils._features import warn_of_other_order
from sklearn_rankcal.utils._messages import check_choice, checks_keywords, warn
from sklearn_rankcal.utils._numbers import read_array

_Function = TypeVar("_Function", bound=Callable[..., Any])
Ties = Literal["average", "first", "worst", "best"]
ZeroDivision = Literal["skip", 0, 1]
Unjudged = Literal["irrelevant", "skip"]


@dataclass
class RankingData:
    """Checked input of a metric: true relevance, ranking, and weights of the documents."""

    relevance: NDArray[np.float64]
    ranking: Ranking
    weight: NDArray[np.float64] | None

    def mean(self, name: str, measure: Measure, zero_division: ZeroDivision) -> float:
        """Return the mean of a measure over queries; `name` is for warnings and errors."""
        values = self.values(measure)
        if not isinstance(zero_division, str) or zero_division != "skip":
            values = fill_undefined(values, zero_division)
        return mean_over_queries(values, self.ranking.queries, self.weight, name)

    def values(self, measure: Measure) -> NDArray[np.float64]:
        """Return the measure of each query, NaN where it is undefined."""
        try:
            measure.check(self.relevance)
        except ValueError as error:
            if not self._look_swapped():
                raise
            raise ValueError(
                "The labels have fractions, but the scores are whole numbers: are they swapped? "
                f"The labels, y_true, come first, then the scores. If they are right: {error}"
            ) from None
        return measure.per_query(self.ranking, self.relevance)

    def _look_swapped(self) -> bool:
        """Whether the labels have fractions, and the scores could be labels: 0, 1, ..."""
        scores = self.ranking.scores
        if scores is None or not 0 <= scores.min() < scores.max():
            return False
        whole = [bool((each == np.floor(each)).all()) for each in (self.relevance, scores)]
        return whole == [False, True]

    def query_weight(self) -> NDArray[np.float64] | None:
        """The weight of each query: the mean weight of its rows."""
        return None if self.weight is None else self.ranking.queries.mean(self.weight)


def read_ranking(
    y_true: Any,
    y_score: ArrayLike | None,
    ranks: ArrayLike | None,
    groups: ArrayLike | None,
    ties: str = "average",
    sample_weight: ArrayLike | None = None,
    unjudged: str = "irrelevant",
    *,
    positions_as: str = "ranks=",
) -> RankingData:
    """Check the arguments that all metrics share.

    `positions_as` tells a user in a warning how to pass positions.
    """
    if (y_score is None) == (ranks is None):
        raise ValueError(
            "Pass either y_score (larger is better) or ranks= (positions, 1 = top), not "
            + ("both." if ranks is not None else "neither.")
        )
    if not isinstance(ties, str) or ties not in TIES:
        check_choice(ties, "ties", TIES)
    if not isinstance(unjudged, str) or unjudged not in UNJUDGED:
        check_choice(unjudged, "unjudged", UNJUDGED)
    if len([one for one in (y_true, y_score, ranks, groups) if hasattr(one, "iloc")]) > 1:
        warn_of_other_order(y_true=y_true, y_score=y_score, ranks=ranks, groups=groups)
    queries = None
    if groups is None:
        y_true, y_score, ranks, sample_weight, queries = _flatten(
            y_true, y_score, ranks, sample_weight
        )
    scores = None
    try:
        relevance, of_labels = read_relevance(y_true, unjudged=True)
        if ranks is None:
            scores = check_scores(y_score, len(relevance), "y_score")
    except ValueError as error:
        if "NaN" not in str(error):  # an outer merge of run and qrels contains NaN
            raise
        raise ValueError(
            f"{error} If some judged documents were not found, call evaluate_run(qrels, run)."
        ) from None
    n_rows = len(relevance)
    if groups is not None:
        queries = Queries.from_groups(groups, n_rows)
    if of_labels is not None:
        queries = agreed_queries(queries, of_labels)
    known, queries = queries is not None, queries or Queries.single(n_rows)
    weight = None if sample_weight is None else check_weight(sample_weight, n_rows)
    judged, missing = relevance, np.isnan(relevance)
    if missing.any():
        relevance = np.where(missing, 0.0, relevance)
    if scores is None:
        ranking = Ranking.from_ranks(check_ranks(ranks, queries), queries)
    else:
        ranking = Ranking.from_scores(scores, queries, ties, relevance)
        if scores.min() == 1 and looks_like_positions(scores, relevance, queries):
            warn_of_positions(positions_as)
    if missing.any():
        ranking, relevance, rows = ranking.judged(judged, unjudged)
        weight = None if weight is None else weight[rows]
    if not known and n_rows > 1:
        warn(
            f"No query ids: all {n_rows} rows are scored as ONE query. Pass groups=<query id of "
            "each row>, or labels that contain the query of each row: relevance_labels(y, groups). "
            "If all rows belong to one query, pass groups=numpy.zeros(len(y_true)), or pass y_true "
            "and the ranking as arrays of shape (1, n_documents).",
            MissingGroupsWarning,
        )
    return RankingData(relevance, ranking, weight)


def read_compared(
    y_true: Any,
    given: ArrayLike,
    as_ranks: bool,
    groups: ArrayLike | None,
    ties: str,
    sample_weight: ArrayLike | None,
    unjudged: str = "irrelevant",
) -> RankingData:
    """Check one of several rankings; with `as_ranks` they are positions, otherwise scores."""
    score, ranks = (None, given) if as_ranks else (given, None)
    kind = "rankings with as_ranks=True"
    of_rows = groups, ties, sample_weight, unjudged
    return read_ranking(y_true, score, ranks, *of_rows, positions_as=kind)


# With at least this many documents, scores 1 .. r of a single query are hardly a coincidence.
LONG_QUERY = 10


def looks_like_positions(
    scores: NDArray[np.float64], relevance: NDArray[np.float64], queries: Queries
) -> bool:
    """Whether scores are probably positions, 1 = top, which would reverse the ranking.

    This holds under three conditions:

    1. In every query, the scores are a permutation of 1 .. r.
    2. At least two queries have more than one document, or one has at least `LONG_QUERY`.
    3. The scores agree with the labels no better than the reversed scores do. Scores
       r + 1 - position of a useful ranking do not meet this condition.
    """
    if not has_positions(scores, queries):
        return False
    lost = contradicted_shares(scores, relevance, queries)
    return bool(len(lost) and lost.mean() >= 0.5)


def contradicted_shares(
    scores: NDArray[np.float64], relevance: NDArray[np.float64], queries: Queries
) -> NDArray[np.float64]:
    """The share of pairs that the scores order wrongly, for each query with pairs."""
    share = PairwiseAgreement().share(Ranking.from_scores(scores, queries), relevance)
    return share[~np.isnan(share)]


def warn_of_positions(positions_as: str) -> None:
    """Warn that scores look like positions; see `looks_like_positions`."""
    warn(
        "The scores look like positions: in every query they are the numbers 1 to r, and larger "
        "scores do not go with more relevance. Better documents must have larger scores. Pass "
        f"positions (1 = top), such as the result of a ranker's predict, as {positions_as}; its "
        "decision_function returns scores.",
        PositionsAsScoresWarning,
    )


def has_positions(scores: NDArray[np.float64], queries: Queries) -> bool:
    """Whether the first two conditions of `looks_like_positions` hold."""
    sizes = queries.sizes[queries.sizes > 1]
    if len(sizes) < 2 and not (len(sizes) and sizes[0] >= LONG_QUERY):
        return False
    whole = np.array_equal(scores, np.floor(scores)) and np.abs(scores).max() <= queries.n_rows
    return whole and not lacks_positions(scores.astype(np.int64), queries).any()


def _flatten(
    y_true: Any, y_score: Any, ranks: Any, sample_weight: Any
) -> tuple[Any, Any, Any, Any, Queries | None]:
    """Flatten arrays of shape (n_queries, n_documents), the input of scikit-learn's metrics.

    The last result holds the queries, or is None if the arrays do not have this shape.
    """
    if y_true is None or is_structured(y_true):
        return y_true, y_score, ranks, sample_weight, None
    y_true = read_array(y_true, "y_true", missing=True)
    shape = y_true.shape
    if len(shape) != 2 or shape[1] == 0:
        return y_true, y_score, ranks, sample_weight, None
    if shape[1] == 1 and shape[0] > 1:
        of_rows = y_score if y_score is not None else ranks
        if np.shape(of_rows) != shape:  # a column of labels with a 1-D array
            return y_true, y_score, ranks, sample_weight, None
        warn(
            f"y_true has shape {shape} and is read as {shape[0]:,} queries with one document each. "
            "If the rows are documents, pass 1-D arrays, such as y_true.ravel() or "
            "frame['relevance'], and groups=<query id of each row>."
        )
    flat: list[Any] = []
    for name, values in (("y_score", y_score), ("ranks", ranks), ("sample_weight", sample_weight)):
        array = None if values is None else read_array(values, name)
        if array is not None and array.shape != shape:
            raise ValueError(f"{name} has shape {array.shape}, but y_true has {shape}.")
        flat.append(None if array is None else array.ravel())
    return y_true.ravel(), flat[0], flat[1], flat[2], Queries.uniform(*shape)


def fill_undefined(values: NDArray[np.float64], zero_division: str | float) -> NDArray[np.float64]:
    """Replace undefined values (NaN) by `zero_division`, or keep them if it is "skip"."""
    if isinstance(zero_division, str):
        if zero_division == "skip":
            return values
    elif isinstance(zero_division, Real) and zero_division in (0, 1):
        return np.where(np.isnan(values), float(zero_division), values)
    raise ValueError(f"zero_division must be 'skip', 0 or 1; got {zero_division!r}.")


_SHARED = {
    "{shared}": """y_true : array-like of shape (n_documents,) or (n_queries, n_documents)
        Relevance, larger is better, or the structured array of `relevance_labels`. NaN if nobody
        judged the document.
    y_score : array-like with the shape of `y_true`, default=None
        Scores, larger is better. Pass either `y_score` or `ranks`.
    ranks : array-like with the shape of `y_true`, default=None
        Position of each row in its query, 1 = top, without ties.
    groups : array-like of shape (n_documents,), default=None
        Query id of each row. If None, the queries are read from structured labels or from the rows
        of a 2-D `y_true`. Otherwise all rows are treated as one query, with a warning if there is
        more than one row. To score a single query without a warning, pass
        ``numpy.zeros(n_documents)``, or `y_true` of shape (1, n_documents).
    ties : {"average", "first", "worst", "best"}, default="average"
        How equal scores are ranked. ``"average"`` takes the mean of the metric over all orders of
        the tied documents, in closed form. ``"first"`` keeps the order of the rows. ``"worst"`` and
        ``"best"`` take the least and the most favourable order.
    zero_division : {"skip", 0, 1}, default="skip"
        Value of queries on which the metric is undefined. ``"skip"`` leaves them out of the mean.
    sample_weight : array-like with the shape of `y_true`, default=None
        Weight of each row. The weight of a query is the mean weight of its rows.
    unjudged : {"irrelevant", "skip"}, default="irrelevant"
        How to treat documents that nobody judged. ``"skip"`` removes them before the places are
        counted. Queries without a judged document are always left out.""",
    "{k}": """k : int, default=None
        Cutoff: only the first k places count. If None, every place counts.""",
    "{threshold}": """threshold : float, default=None
        A label of at least `threshold` is relevant. If None, labels must be 0 or 1.""",
    "{returns}": """Returns
    -------
    score : float
        The mean over queries, larger is better. NaN, with a warning, if the metric is undefined on
        all queries.""",
}


def documented_metric(function: _Function) -> _Function:
    """Write the shared parts into a docstring, and check keywords."""
    if function.__doc__:  # absent under python -OO
        for name, text in _SHARED.items():
            function.__doc__ = function.__doc__.replace(name, text)
    return checks_keywords(function)
