"""Scorers for `GridSearchCV(scoring=...)`, one for each measure."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metadata_routing import MetadataRequest

from sklearn_rankcal.exceptions import CutQueriesWarning
from sklearn_rankcal.labels import Labels, Preferences
from sklearn_rankcal.labels._label_rankings import labels_of_rankings, read_as_in_fit
from sklearn_rankcal.labels._labels import is_structured, queries_of_rows, read_labels
from sklearn_rankcal.losses import MEASURES, ChoiceLogLoss, Loss, Measure, get_measure
from sklearn_rankcal.metrics._checks import Unjudged, ZeroDivision, fill_undefined
from sklearn_rankcal.queries import Queries, Ranking, check_weight, mean_over_queries
from sklearn_rankcal.queries._ranking import UNJUDGED, check_scores
from sklearn_rankcal.utils import _estimators
from sklearn_rankcal.utils._messages import check_choice, checks_keywords, warn
from sklearn_rankcal.utils._numbers import Floats, read_numbers

#: The measures of losses that have a different name.
_OF_LOSSES = {
    "map_by_scores": "map",
    "pd": "pairwise_disagreement",
    "pd_by_scores": "pairwise_disagreement",
    "wta": "precision@1",
}


class RankingScorer:
    """What `get_ranking_scorer` returns."""

    def __init__(
        self,
        metric: str | Measure,
        *,
        zero_division: ZeroDivision = "skip",
        unjudged: Unjudged = "irrelevant",
        **parameters: Any,
    ):
        base: Any = metric
        if isinstance(metric, str):
            base = metric.removeprefix("neg_")
            base = _OF_LOSSES.get(base, base)
        self.measure = get_measure(base, **parameters)
        greater_is_better = self.measure.greater_is_better
        if greater_is_better and str(metric).startswith("neg_"):
            raise ValueError(f"Larger is better for {base!r}: drop the prefix 'neg_'.")
        fill_undefined(np.zeros(1), zero_division)
        check_choice(unjudged, "unjudged", UNJUDGED)
        self.name = str(base) if greater_is_better else f"neg_{base}"
        self.metric = self.name if isinstance(metric, str) else metric
        self.zero_division = zero_division
        self.unjudged = unjudged
        self.parameters = parameters

    @checks_keywords
    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Score a fitted estimator: the mean over queries, larger is better."""
        measure, who = self.measure, f"The scorer {self.name!r}"
        labels, ranking, _, weight = predicted_ranking(
            estimator, X, y, groups, sample_weight, measure, who, self.unjudged
        )
        measure.check(labels)
        values = fill_undefined(measure.per_query(ranking, labels), self.zero_division)
        mean = mean_over_queries(values, Queries.uniform(len(values), 1), weight, self.name)
        return mean if measure.greater_is_better else -mean

    # ---------------------------------------------------------------- scikit-learn's protocol

    def get_metadata_routing(self) -> MetadataRequest:
        """Get the metadata routing, which requests `groups` and `sample_weight`."""
        request = MetadataRequest(owner=self)
        request.score.add_request(param="groups", alias=True)
        request.score.add_request(param="sample_weight", alias=True)
        return request

    def _accept_sample_weight(self) -> bool:
        return True

    def __repr__(self) -> str:
        shown: dict[str, Any] = {}
        if self.zero_division != "skip":
            shown["zero_division"] = self.zero_division
        if self.unjudged != "irrelevant":
            shown["unjudged"] = self.unjudged
        extra = "".join(f", {key}={value!r}" for key, value in (self.parameters | shown).items())
        return f"get_ranking_scorer({self.metric!r}{extra})"

    def __eq__(self, other: object) -> bool:  # a search copies the measure, which has no equality
        return isinstance(other, RankingScorer) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(self.name)


def predicted_ranking(
    estimator: Any,
    X: Any,
    y: Any,
    groups: ArrayLike | None,
    sample_weight: ArrayLike | None,
    measure: Measure,
    who: str,
    unjudged: str = "irrelevant",
) -> tuple[Labels, Ranking, Queries, Floats | None]:
    """Return labels, the predicted ranking, the queries of the rows of y, and weights of queries.

    In label ranking, every row of y is a query. Otherwise, and if all rows were judged,
    `ranking.queries` is returned. `measure` determines how labels are read. Error messages start
    with `who`.
    """
    final = _estimators.innermost_estimator(estimator)
    if _ranks_labels(final, y):
        pair_weight = getattr(measure, "pair_weight", "binary")
        labels, ranking = _read_label_ranking(estimator.predict(X), y, final, pair_weight)
        rows = Queries.uniform(len(y), 1)
    else:
        labels, of_labels = measure.read(y) if isinstance(measure, Loss) else read_labels(y)
        rows, ids = queries_of_rows(final, X, groups, of_labels, len(y), who)
        fitted = getattr(final, "_fitted_queries", None)
        named = groups is not None or of_labels is None
        if named and fitted is not None and fitted.share_ids(rows):
            if cut := _estimators.call_with_groups(
                estimator, "_describe_cut", X, ids, labels=labels
            ):
                warn(cut, CutQueriesWarning)
        if isinstance(measure, ChoiceLogLoss):
            chances = _estimators.call_with_groups(estimator, "choice_probabilities", X, ids)
            ranking = Ranking.from_scores(chances, rows)
        else:
            ranking = rank_rows(estimator, X, ids, rows, who)
    if isinstance(labels, Preferences) and not measure.takes_preferences:
        others = [repr(name) for name, kind in MEASURES.items() if kind.takes_preferences]
        raise ValueError(
            f"{who} needs a relevance of every row, or a rank of every label. For preferences or "
            f"missing entries, use {' or '.join(others)}."
        )
    judged, weight = rows, check_weight(sample_weight, len(y))
    if isinstance(labels, np.ndarray) and np.isnan(labels).any():
        ranking, labels, kept = ranking.judged(labels, unjudged)
        judged, weight = ranking.queries, None if weight is None else weight[kept]
    return labels, ranking, rows, None if weight is None else judged.mean(weight)


def rank_rows(estimator: Any, X: Any, ids: Any, rows: Queries, who: str) -> Ranking:
    """Return the ranking that an estimator predicts for the documents of each query."""
    final = _estimators.innermost_estimator(estimator)
    if _estimators.predicts_positions(final):
        return Ranking.from_ranks(_estimators.call_with_groups(estimator, "predict", X, ids), rows)
    _estimators.refuse_hidden_ranker(final, who)
    if _estimators.predicts_scores(final):
        predicted = _estimators.call_with_groups(estimator, "predict", X, ids)
    else:
        predicted = estimator.predict(X)
    return Ranking.from_scores(check_scores(predicted, rows.n_rows, "predict(X)"), rows)


def _ranks_labels(final: Any, y: Any) -> bool:
    """Whether every row of y ranks labels."""
    if _estimators.predicts_positions(final) or is_structured(y):
        return False
    if hasattr(final, "labels_") and hasattr(final, "y_type"):  # y may be orders of names
        return len(final.labels_) > 1
    return np.ndim(y) > 1 and np.shape(y)[1] > 1


def _read_label_ranking(ranks: Any, y: Any, final: Any, pair_weight: Any) -> tuple[Labels, Ranking]:
    """Return the labels and the predicted rankings, with one query per row.

    The labels are preferences if entries of y are missing, and relevance otherwise.
    """
    ranks = read_numbers(ranks, "predict(X)")
    kind, Y = read_as_in_fit(y, len(ranks), _estimators.label_ranker_in(final))
    shape = Y.shape[:2]
    if ranks.shape != shape:
        raise ValueError(
            f"predict(X) has shape {ranks.shape}, but y has {shape[0]} rows that rank {shape[1]} "
            f"labels. It must return the positions of the labels, shape {shape}."
        )
    scores = check_scores(ranks.ravel(), ranks.size, "predict(X)")
    if kind != "relevance":  # smaller positions are better
        scores = -scores
    labels, _ = labels_of_rankings(kind, Y, pair_weight, "The metric")
    return labels, Ranking.from_scores(scores, Queries.uniform(*shape))


def get_ranking_scorer(
    name: str | Measure,
    *,
    zero_division: ZeroDivision = "skip",
    unjudged: Unjudged = "irrelevant",
    **parameters: Any,
) -> RankingScorer:
    """Make a scorer for `GridSearchCV`, `cross_validate` and similar tools.

    ``scorer(estimator, X, y, groups=None, sample_weight=None)`` returns the mean of a metric over
    queries, which weigh the mean weight of their rows. It passes the queries to
    ``estimator.predict``, which scorers of scikit-learn's `make_scorer` do not. It reads the
    queries from `groups` (scikit-learn passes it if metadata routing is enabled), from structured
    labels, or from the ranker's `group_column`. Without queries, it raises an error. In label
    ranking, where y has two or three dimensions, every row is a query.

    Parameters
    ----------
    name : str or Measure
        Name of a metric, a key of `losses.MEASURES`, optionally with a cutoff, such as
        ``"ndcg@10"``. ``"precision"`` and ``"recall"`` need one. ``"choice_log_loss"`` scores
        `choice_probabilities` of a ranker. The name of a loss, such as ``"pd"``, selects its
        measure. If smaller values are better, the scorer returns the negative mean, and the name
        may start with ``neg_``, as in ``"neg_pairwise_disagreement"``. Or a measure or loss object,
        such as ``NDCG(k=10)``, also your own.
    zero_division : {"skip", 0, 1}, default="skip"
        Value of queries on which the metric is undefined. ``"skip"`` leaves them out of the mean.
    unjudged : {"irrelevant", "skip"}, default="irrelevant"
        How to treat rows with NaN as label, which nobody judged: as in `ndcg_score`.
    **parameters
        Parameters of a named metric, such as ``gain``, or ``threshold``. With graded labels,
        metrics of binary relevance need a ``threshold``.

    Returns
    -------
    scorer : callable
        A scorer with the protocol of scikit-learn.

    Notes
    -----
    All scorers take relevance and complete rankings of labels. ``"kendall_tau"`` and
    ``"neg_pairwise_disagreement"`` also take preferences: `preference_labels` and, in label
    ranking, weights of preferences and rankings with missing entries. These two scorers weight all
    queries equally. The loss ``"pd"`` weights a query by its total preference weight, unless it is
    ``PD(equal_queries=True)``.

    A ranker of this package is scored by the positions that it predicts. Any other estimator must
    return scores from `predict`, and ties are averaged. In label ranking, `predict` returns
    positions of shape (n_samples, r), or relevance if `y_type` is "relevance".

    `sample_weight` weights a query by the mean weight of its rows.

    A ranker is found inside pipelines, searches, `RFE`, `RFECV` and `FrozenEstimator`. Inside any
    other wrapper, the scorer raises an error, because the positions would be read as scores. Put a
    `ScoreRegressor` there instead. The scorer cannot detect a ranker in another process, or behind
    an object without `predict`.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn_rankcal import CalibratedRanker, QueryKFold, relevance_labels
    >>> from sklearn_rankcal.datasets import make_ranking
    >>> from sklearn_rankcal.metrics import get_ranking_scorer
    >>> data = make_ranking(n_queries=40, random_state=0)
    >>> labels = relevance_labels(data.y, data.groups)  # no metadata routing needed
    >>> scorer = get_ranking_scorer("map", threshold=2)
    >>> ranker = CalibratedRanker(Ridge())
    >>> cross_val_score(ranker, data.X, labels, cv=QueryKFold(4), scoring=scorer).shape
    (4,)
    """
    return RankingScorer(name, zero_division=zero_division, unjudged=unjudged, **parameters)
