"""Evaluate retrieval runs against qrels, as trec_eval does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.exceptions import PositionsAsScoresWarning
from sklearn_rankcal.labels._item_ids import content_ranks
from sklearn_rankcal.losses import AUC, MEASURES, Measure, Spearman, get_measures
from sklearn_rankcal.losses._pairs import PairwiseMeasure
from sklearn_rankcal.metrics import _runs
from sklearn_rankcal.metrics._checks import (
    LONG_QUERY,
    Unjudged,
    ZeroDivision,
    fill_undefined,
    looks_like_positions,
)
from sklearn_rankcal.metrics._intervals import MeanInterval, mean_interval
from sklearn_rankcal.metrics._runs import Listed
from sklearn_rankcal.queries import TIES, Queries, Ranking, mean_over_queries
from sklearn_rankcal.queries._ranking import UNJUDGED
from sklearn_rankcal.utils._messages import check_choice, checks_keywords, counted, warn
from sklearn_rankcal.utils._numbers import Bools, Ints

#: Measures that compare complete orders. All others also measure a list that lacks documents.
_OF_COMPLETE_ORDERS = (AUC, Spearman, PairwiseMeasure)
_SHOWN = 10  # the share of judged documents is reported for this number of first places

Missing = Literal["zero", "skip"]


class RunEvaluation(dict[str, float]):
    """The metrics of a run: a dict from the name of each metric to its mean over queries.

    `evaluate_run` returns it. ``pandas.DataFrame({name: evaluation, ...}).T`` is a table of several
    runs.

    Attributes
    ----------
    per_query : dict of str to ndarray of shape (n_queries,)
        The values of each metric by name, NaN for queries that are left out. The entry ``"query"``
        holds the query ids.
    missing : list of str
        Judged queries that are missing from the run.
    n_unknown : int
        Number of queries of the run that are not in the qrels. They are left out.
    judged_share : float
        The share of judged documents among the first ten places of the run, in judged queries.

    Examples
    --------
    >>> from sklearn_rankcal.metrics import evaluate_run
    >>> evaluation = evaluate_run({"q1": {"a": 1}, "q2": {"a": 1}}, {"q1": {"b": 2.0, "a": 1.0}})
    >>> evaluation["mrr"], evaluation.per_query["mrr"].tolist(), evaluation.missing
    (0.25, [0.5, 0.0], ['q2'])
    """

    def __init__(
        self,
        per_query: dict[str, NDArray[Any]],
        missing: list[str],
        n_unknown: int,
        judged_share: float,
        counts_missing: bool,
        bounds: dict[str, tuple[float, float]],
    ) -> None:
        n_queries = len(per_query["query"])
        queries = Queries.single(n_queries) if n_queries == 1 else Queries.uniform(n_queries, 1)
        super().__init__(
            (name, mean_over_queries(values, queries, None, name))
            for name, values in per_query.items()
            if name != "query"
        )
        self.per_query = per_query
        self.missing = missing
        self.n_unknown = n_unknown
        self.judged_share = judged_share
        self._counts_missing = counts_missing
        self._bounds = bounds

    def intervals(self, confidence_level: float = 0.95) -> dict[str, MeanInterval]:
        """Compute an interval of each mean over queries (:ref:`intervals_of_means`).

        Parameters
        ----------
        confidence_level : float, default=0.95
            Confidence level of the intervals.

        Returns
        -------
        intervals : dict of str to MeanInterval
            The mean of each metric with its interval, by name.

        Examples
        --------
        >>> from sklearn_rankcal.metrics import evaluate_run
        >>> qrels = {f"q{q}": {"a": 1, "b": 0} for q in range(12)}
        >>> run = {f"q{q}": {"a": q % 4, "b": 0.5} for q in range(12)}
        >>> print(evaluate_run(qrels, run, metrics="mrr").intervals()["mrr"])
        0.8750 [0.6385, 1.0000] (95 % interval, 12 queries)
        """
        return {
            name: mean_interval(self.per_query[name], None, bounds, confidence_level)
            for name, bounds in self._bounds.items()
        }

    def __str__(self) -> str:
        width = max(map(len, self))
        lines = [f"{name:<{width}}  {value:.4f}" for name, value in self.items()]
        n_queries, n_missing = len(self.per_query["query"]), len(self.missing)
        lines.append(f"{counted(n_queries, 'query')} judged")
        if n_missing:
            how = "0" if self._counts_missing else "left out"
            lines.append(f"{n_missing} of them not in the run: {how}")
        if self.n_unknown:
            lines.append(f"{counted(self.n_unknown, 'query')} without judgments left out")
        lines.append(
            f"{100 * self.judged_share:.0f} % of the documents at the first {_SHOWN} places judged"
        )
        return "\n".join(lines)

    __repr__ = __str__


@checks_keywords
def evaluate_run(
    qrels: Any,
    run: Any,
    *,
    metrics: str | Measure | Sequence[str | Measure] = ("ndcg@10", "map", "mrr"),
    unjudged: Unjudged = "irrelevant",
    missing: Missing = "zero",
    ties: str = "average",
    zero_division: ZeroDivision = 0,
    threshold: float = 1,
    **parameters: Any,
) -> RunEvaluation | dict[str, RunEvaluation]:
    """Evaluate a retrieval run (the documents that a system found) against qrels (judgements).

    Relevant documents that the run did not find count: they are part of the ideal ranking of NDCG
    and of the number of relevant documents in recall and average precision. An inner merge of both
    tables loses these documents, and metrics of its rows are too high.

    Parameters
    ----------
    qrels : data frame, dict of dicts, or path
        The judged documents: a data frame with the columns ``query_id``, ``doc_id`` and
        ``relevance``, a dict such as ``{"q1": {"d1": 2}}``, or the path of a TREC file, also
        ``.gz``. Ids are compared as text. Negative relevance, as for spam in TREC's web tracks,
        counts as 0.
    run : data frame, dict of dicts, path, or dict of several of these by name
        The retrieved documents: a data frame with the columns ``query_id``, ``doc_id`` and
        ``score`` (larger is better) or ``rank`` (1 = top), a dict such as
        ``{"q1": {"d1": 0.7}}``, or the path of a TREC file. The order of the rows does not matter.
    metrics : str, Measure or sequence of these, default=("ndcg@10", "map", "mrr")
        Names of metrics: ``"dcg"``, ``"err"``, ``"eru"``, ``"map"``, ``"mrr"``, ``"ndcg"``,
        ``"precision"`` and ``"recall"``, with cutoffs, for example ``"recall@100"``. Or objects of
        `sklearn_rankcal.losses`, also your own if `queries.Ranking.take` makes what it adds up.
    unjudged : {"irrelevant", "skip"}, default="irrelevant"
        How to treat retrieved documents that are not in the qrels. ``"skip"`` removes them before
        the places are counted.
    missing : {"zero", "skip"}, default="zero"
        How to count queries of the qrels that are missing from the run. Queries of the run that are
        not in the qrels are always left out.
    ties : {"average", "trec_eval", "first", "worst", "best"}, default="average"
        How equal scores are ranked, as in `ndcg_score`. ``"trec_eval"`` rounds scores to float32,
        and sorts equal scores by descending document id.
    zero_division : {"skip", 0, 1}, default=0
        Value of queries on which the metric is undefined, because no document is relevant.
        ``"skip"`` leaves them out of the mean. trec_eval uses 0.
    threshold : float, default=1
        For metrics of binary relevance: documents with at least this relevance are relevant.
    **parameters
        Parameters of the metrics. Each is passed to the metrics that have it. Pass
        ``gain="linear"`` for the NDCG of trec_eval.

    Returns
    -------
    evaluation : RunEvaluation, or dict of str to RunEvaluation
        The mean over queries of each metric, a dict by name. Its attributes and methods give the
        value of each query, intervals, missing queries and the share of judged documents. For
        several runs, a dict of evaluations by run.

    Raises
    ------
    ValueError, TypeError
        If a table lacks a column, contains a document twice in a query, or contains a number that
        is not finite; if a line of a file does not have the fields of its format; if no query of a
        run is in the qrels; or if a metric or a parameter is not valid.

    Warns
    -----
    UserWarning
        If no document of a run is in the qrels.
    PositionsAsScoresWarning
        If the scores of a run look like positions, 1 = top.

    Notes
    -----
    The cost is O(n log n + m log m) for n rows in the run and m rows in the qrels.

    Examples
    --------
    The query q1 has two relevant documents. The run found one of them:

    >>> from sklearn_rankcal.metrics import evaluate_run
    >>> qrels = {"q1": {"a": 1, "b": 1, "c": 0}, "q2": {"a": 1}}
    >>> run = {"q1": {"a": 3.2, "c": 2.8, "unseen": 1.1}}
    >>> print(evaluate_run(qrels, run, metrics=["map", "recall@10"]))
    map        0.2500
    recall@10  0.2500
    2 queries judged
    1 of them not in the run: 0
    67 % of the documents at the first 10 places judged
    """
    check_choice(unjudged, "unjudged", UNJUDGED)
    check_choice(missing, "missing", ("zero", "skip"))
    check_choice(ties, "ties", (*TIES, "trec_eval"))
    measures = _measures(metrics, threshold, parameters)
    judged = _Judged(_runs.read_qrels(qrels))
    evaluations = {}
    several = _runs.is_several(run)
    for name, given in run.items() if several else [("run", run)]:
        label = f"the run {name!r}" if several else "run"
        listed = _runs.read_run(given, label)
        rows = _FoundDocuments(judged, listed, label)
        rows.warn_of_positions()
        ranking = rows.ranking(ties, unjudged == "skip")
        values: dict[str, NDArray[Any]] = {"query": np.array(judged.listed.queries, dtype=object)}
        for metric, measure in measures.items():
            measure.check(judged.relevance)
            measure = measure.for_labels(judged.relevance)
            of_queries = fill_undefined(measure.per_query(ranking, rows.relevance), zero_division)
            if missing == "skip":
                of_queries = np.where(rows.missing, np.nan, of_queries)
            values[metric] = of_queries
        shown = ranking if unjudged == "irrelevant" else rows.ranking("first", False)
        absent = [judged.listed.queries[query] for query in np.flatnonzero(rows.missing)]
        evaluations[name] = RunEvaluation(
            values,
            absent,
            rows.n_unknown,
            rows.judged_share(shown),
            missing == "zero",
            {metric: measure.bounds for metric, measure in measures.items()},
        )
    return evaluations if several else evaluations["run"]


def _measures(metrics: Any, threshold: float, parameters: dict[str, Any]) -> dict[str, Measure]:
    if "confidence_level" in parameters:
        raise TypeError(
            "evaluate_run has no parameter 'confidence_level'. Call intervals(confidence_level) of "
            "the evaluation that it returns."
        )
    measures = get_measures(metrics, parameters, threshold=threshold)
    for name, measure in measures.items():
        if isinstance(measure, _OF_COMPLETE_ORDERS):
            of_runs = [
                known
                for known, kind in MEASURES.items()
                if not issubclass(kind, _OF_COMPLETE_ORDERS)
            ]
            raise ValueError(
                f"{name!r} compares the orders of all documents, but a run contains only retrieved "
                "documents. Pass the documents that are in both tables to evaluate_rankings. "
                f"Metrics of runs: {', '.join(of_runs)}."
            )
    return measures


class _Judged:
    """Qrels as a lookup table; `relevance` is in the order of the sorted `keys`."""

    def __init__(self, listed: Listed) -> None:
        self.listed = listed
        self.queries = {text: place for place, text in enumerate(listed.queries)}
        texts = dict.fromkeys(listed.documents)
        self.documents = {text: place for place, text in enumerate(texts)}
        document = _runs.places_of(listed.documents, self.documents)[listed.document]
        keys = self.keys_of(listed.query, document)
        order = np.argsort(keys)
        self.keys, self.query = keys[order], listed.query[order]
        self.relevance = np.maximum(listed.values, 0.0)[order]

    def keys_of(self, query: Ints, document: Ints) -> Ints:
        """Return one number for each query and document, -1 for unknown documents."""
        return np.where(document >= 0, query * len(self.documents) + document, -1)


class _FoundDocuments:
    """The retrieved documents of judged queries, followed by judged documents that were not found.

    `relevance` and the rows of `queries` are in this order. `missing` (n_queries,) tells which
    judged queries are missing from the run.
    """

    def __init__(self, judged: _Judged, listed: Listed, name: str) -> None:
        to_query = _runs.places_of(listed.queries, judged.queries)
        to_document = _runs.places_of(listed.documents, judged.documents)
        if to_query.max() < 0:
            raise _runs.no_query_in_common(judged.listed.queries, listed.queries, name)
        if to_document.max() < 0:
            warn(
                f"No document of {name} is in the qrels: its ids look like "
                f"{_runs.few(listed.documents)}, the ids of the qrels look like "
                f"{_runs.few(judged.listed.documents)}. All metrics are 0."
            )
        self.n_unknown = int((to_query < 0).sum())
        self._name = name
        query = to_query[listed.query]
        rows = np.flatnonzero(query >= 0)
        n_queries = len(judged.queries)
        self.missing: Bools = np.bincount(query[rows], minlength=n_queries) == 0
        keys = judged.keys_of(query[rows], to_document[listed.document[rows]])
        at = np.minimum(np.searchsorted(judged.keys, keys), len(judged.keys) - 1)
        known = judged.keys[at] == keys
        relevance = np.where(known, judged.relevance[at], 0.0)
        lacking = np.ones(len(judged.keys), dtype=bool)
        lacking[at[known]] = False
        n_lacking = int(lacking.sum())
        self._listed, self._rows = listed, rows
        self._scores = np.concatenate([listed.values[rows], np.zeros(n_lacking)])
        self._listed_rows = np.arange(len(self._scores)) < len(rows)
        self._known = np.append(known, np.zeros(n_lacking, dtype=bool))
        self.relevance = np.concatenate([relevance, judged.relevance[lacking]])
        self._queries = Queries.from_codes(np.concatenate([query[rows], judged.query[lacking]]))

    def warn_of_positions(self) -> None:
        """Warn if the scores look like positions, 1 = top, which would reverse the ranking."""
        if len(self._rows) < LONG_QUERY:  # may be a coincidence
            return
        _, codes = np.unique(self._listed.query[self._rows], return_inverse=True)
        queries = Queries.from_codes(codes)
        scores, relevance = self._scores[: len(self._rows)], self.relevance[: len(self._rows)]
        if looks_like_positions(scores, relevance, queries):
            warn(
                f"The scores of {self._name} look like positions: in every query they are the "
                "numbers 1 to r, and larger scores do not go with more relevance. Better documents "
                "must have larger scores. Name the column of positions 'rank', and drop the column "
                "'score'. In a TREC file, the fifth field is the score.",
                PositionsAsScoresWarning,
            )

    def ranking(self, ties: str, skip_unjudged: bool) -> Ranking:
        """Rank the retrieved documents; with `skip_unjudged`, only the judged ones."""
        scores = self._scores
        if ties == "trec_eval":
            largest = np.finfo(np.float32).max
            scores = np.clip(scores, -largest, largest).astype(np.float32).astype(np.float64)
        found = self._known if skip_unjudged else self._listed_rows
        ranking = Ranking.from_found(scores, found, self._queries, ties)
        if ranking.start is None or ranking.stop is None or ties == "average":
            return ranking
        if ties == "trec_eval":
            return ranking.break_ties(self._text_places(ranking))
        return ranking.break_ties(-self.relevance if ties == "best" else self.relevance)

    def _text_places(self, ranking: Ranking) -> Ints:
        """Number the tied documents by descending id (as text)."""
        assert ranking.start is not None and ranking.stop is not None
        tied = ranking.order[ranking.stop - ranking.start > 1]
        different, code = np.unique(self._listed.document[self._rows[tied]], return_inverse=True)
        texts = np.array([self._listed.documents[one] for one in different], dtype=object)
        places = np.zeros(self._queries.n_rows, dtype=np.int64)
        places[tied] = -content_ranks(texts)[code]
        return places

    def judged_share(self, ranking: Ranking) -> float:
        """The share of judged documents at the first places; `ranking` contains unjudged ones."""
        first = ranking.order[ranking.queries.place < _SHOWN]
        return float(self._known[first[self._listed_rows[first]]].mean())
