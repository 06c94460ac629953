"""Choose how many documents to show, with a guarantee on the average query.

A fitted ranker and held-out labelled queries determine a threshold. Each document of a query has a
*level*, and a threshold t shows the documents of level at most t. Each hidden document would have
*added* to the value of the list. This is not negative, and its sum over a query is at most 1. The
loss of a query is the sum over its hidden documents. It decreases in t and reaches 0, as conformal
risk control requires.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state, indexable
from sklearn.utils.validation import _num_samples, check_is_fitted

from sklearn_rankcal.decoders import Sort
from sklearn_rankcal.labels import relevance_labels
from sklearn_rankcal.labels._labels import GROUPS_REMEDY, agreed_queries, read_relevance
from sklearn_rankcal.losses import Measure, get_measure
from sklearn_rankcal.losses._base import BinaryMeasure
from sklearn_rankcal.losses._positional import NormalizedPositionalLoss
from sklearn_rankcal.queries import Queries, Ranking, check_weight, mean_over_queries
from sklearn_rankcal.queries._ranking import check_scores, tie_rounded
from sklearn_rankcal.rankers._predict import QueryOrder
from sklearn_rankcal.rankers._query_ranker import FOREIGN_WITHOUT_VALIDATION, RankerMixin
from sklearn_rankcal.rankers._wrappers import AroundRanker, group_column, predict_scores
from sklearn_rankcal.utils import _estimators
from sklearn_rankcal.utils._features import check_features, hash_rows, is_dataframe, split_column
from sklearn_rankcal.utils._messages import check_count, checks_keywords, did_you_mean, warn
from sklearn_rankcal.utils._numbers import (
    ROUNDING,
    Bools,
    Floats,
    Ints,
    as_frame,
    exceeds,
    read_numbers,
)
from sklearn_rankcal.utils._sklearn_compat import (
    HasMethods,
    Interval,
    StrOptions,
    _fit_context,
    _safe_indexing,
    available_if,
)

__all__ = ["RiskControlledCutoff"]

Risk = str | Measure | Callable[[Floats], ArrayLike]

_ALL_PLACES = 2**63 - 1


class RiskControlledCutoff(AroundRanker, RankerMixin, MetaEstimatorMixin, BaseEstimator):
    """Show as few documents of each ranking as possible, with an expected loss of at most `alpha`.

    The loss is, for example, the recall that is missed because documents are hidden. The guarantee
    comes from conformal risk control [1]_. It holds for any ranker, any distribution and any number
    of queries, if the new query is exchangeable with the queries of `fit`. `fit` holds out a part
    of the queries from training to choose the cutoff.

    Parameters
    ----------
    ranker : estimator
        A ranker, a regressor of relevance, or a pipeline or search that ends in one. `fit` fits a
        clone. To use a ranker that is already fitted, pass ``FrozenEstimator(ranker)``: all queries
        of `fit` then choose the cutoff, and must be new to the ranker.
    risk : str, measure or callable, default="recall"
        The value that a list may lose. A list of all documents loses 0.

        - ``"recall"``: the share of the relevant documents that are shown.
        - ``"best_relevance"``: the largest relevance in the list, as a share of the largest of the
          query. With labels 0 and 1, the loss is 1 if no relevant document is shown.
        - ``"ndcg"``: NDCG. These names may have a cutoff, as in ``"ndcg@10"``.
        - A positional measure with values between 0 and 1, such as
          ``get_measure("ndcg", gain="linear")``.
        - A function of the relevance of the documents of a query, best first. It returns the values
          of the lists of the first 1, 2, ..., r documents: nondecreasing numbers between 0 and 1,
          or NaN if the query has no value.
    alpha : float, default=0.1
        Maximum expected loss, between 0 and 1. It needs at least 1 / alpha - 1 calibration queries.
    rule : {"score", "count"}, default="score"
        The type of cutoff. ``"score"`` shows the documents with a score that exceeds the mean of
        their query by a threshold, and always the best document. ``"count"`` shows the same number
        of documents of each query, and needs no scores.
    alpha_silent : float, default=0.0
        The part of `alpha` that may be lost by showing nothing. If positive, queries with a best
        score close to their mean get an empty list.
    threshold : float, default=None
        Labels of at least `threshold` count as 1, smaller labels as 0. None means that labels are
        not changed; recall then needs labels 0 and 1.
    calibration_queries : float, default=0.2
        Share of the queries that are held out to choose the cutoff.
    random_state : int, RandomState instance or None, default=None
        Determines the random choice of the calibration queries.

    Attributes
    ----------
    ranker_ : estimator
        The fitted ranker.
    cutoff_ : float
        The number of documents to show, or the minimum difference of the score of a document to the
        mean of its query.
    silence_cutoff_ : float
        The minimum difference of the best score of a query to its mean, for a list to be shown;
        -inf if `alpha_silent` is 0.
    calibrated_risk_ : float
        The bound of the expected loss at the chosen cutoff, at most `alpha`.
    n_calibration_queries_ : int
        Number of calibration queries with a defined risk.

    Notes
    -----
    The guarantee is for queries with at least one relevant document; other queries are left out, as
    in the mean of the measure. It is a mean over calibration sets: in one data set, the loss can
    exceed `alpha` by chance, by less with more calibration queries. See :ref:`cutoffs` for the
    formula.

    References
    ----------
    .. [1] A. N. Angelopoulos, S. Bates, A. Fisch, L. Lei and T. Schuster (2024). Conformal risk
       control. ICLR. Theorem 1: the loss is at most alpha. Theorem 2: with n calibration queries,
       it is at least alpha - 2 / (n + 1), for ``rule="score"``, ``alpha_silent=0`` and scores
       without ties, unless one document is enough. ``rule="count"`` can lose less, because counts
       of documents tie.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn_rankcal import CalibratedRanker, RiskControlledCutoff
    >>> from sklearn_rankcal.datasets import make_ranking
    >>> data = make_ranking(n_queries=200, random_state=0)
    >>> ranker = CalibratedRanker(Ridge(), loss="ndcg")
    >>> shows = RiskControlledCutoff(ranker, risk="recall", alpha=0.1, threshold=3, random_state=0)
    >>> shows = shows.fit(data.X, data.y, groups=data.groups)
    >>> shows.n_calibration_queries_, bool(shows.calibrated_risk_ <= 0.1)
    (40, True)
    >>> new = make_ranking(n_queries=3, random_state=1)
    >>> rows, offsets, queries = shows.predict_order(new.X, groups=new.groups)
    >>> offsets.tolist()  # 9, 10 and 10 of its documents are shown
    [0, 9, 19, 29]
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "ranker": [HasMethods(["fit", "predict"])],
        "risk": [str, Measure, callable],
        "alpha": [Interval(Real, 0, 1, closed="neither")],
        "rule": [StrOptions({"score", "count"})],
        "alpha_silent": [Interval(Real, 0, 1, closed="left")],
        "threshold": [None, Real],
        "calibration_queries": [Interval(Real, 0, 1, closed="neither")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        ranker: Any,
        *,
        risk: Risk = "recall",
        alpha: float = 0.1,
        rule: str = "score",
        alpha_silent: float = 0.0,
        threshold: float | None = None,
        calibration_queries: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.ranker = ranker
        self.risk = risk
        self.alpha = alpha
        self.rule = rule
        self.alpha_silent = alpha_silent
        self.threshold = threshold
        self.calibration_queries = calibration_queries
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    @checks_keywords(foreign=FOREIGN_WITHOUT_VALIDATION)
    def fit(self, X: Any, y: Any, groups: ArrayLike | None = None) -> Self:
        """Fit the ranker on a part of the queries, and choose the cutoff on the rest.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features)
            One row per query-document pair.
        y : array-like of shape (n_documents,)
            Relevance, larger is better, or the structured array of `relevance_labels`.
        groups : array-like of shape (n_documents,), default=None
            Query id of each row, unless `y` or the ranker's `group_column` has it.

        Returns
        -------
        self : RiskControlledCutoff

        Warns
        -----
        UserWarning
            If a frozen ranker of this package was fitted on queries of X. It remembers queries that
            were passed with `groups`, until it is pickled.
        """
        self._check_parts()
        (X,) = indexable(X)
        relevance, of_labels = read_relevance(y, _num_samples(X))
        queries, ids = read_ids(self.ranker, X, groups, of_labels)
        frozen = isinstance(self.ranker, FrozenEstimator)
        n = queries.n_queries
        drawn = np.ones(n, dtype=bool)
        if not frozen:
            drawn = draw_queries(n, self.calibration_queries, self.random_state)
        # Step 1: raise errors before a long fit, with the rows in any order.
        rows, part = queries.select(drawn)
        _, defined = self._added(part, part.rank(np.argsort(part.codes)), relevance[rows])
        check_enough(defined, self.alpha, self.alpha_silent)
        # Step 2: fit the ranker on the training queries.
        if frozen:
            self.ranker_ = self.ranker
            warn_if_fitted(self.ranker, X, ids, relevance)
        else:
            others, _ = queries.select(~drawn)
            table, named = _safe_indexing(X, others), groups is not None or of_labels is None
            self.ranker_ = fit_ranker(self.ranker, table, relevance[others], ids[others], named)
        # Step 3: choose the cutoff on the calibration queries.
        self._calibrate(_safe_indexing(X, rows), relevance[rows], ids[rows])
        return self

    @checks_keywords
    def predict(self, X: Any, groups: ArrayLike | None = None) -> Ints:
        """Predict the position of each row in its query, 1 = top, whether it is shown or not.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features)
            One row per query-document pair.
        groups : array-like of shape (n_documents,), default=None
            Query id of each row, unless X has the ranker's `group_column`. For one query:
            ``numpy.zeros(len(X))``.

        Returns
        -------
        ranks : ndarray of shape (n_documents,)
            The positions predicted by the ranker.
        """
        check_is_fitted(self)
        return rank_rows(self.ranker_, X, groups)[2]

    @checks_keywords
    def predict_shown(self, X: Any, groups: ArrayLike | None = None) -> Bools:
        """Predict whether each row is shown.

        Parameters
        ----------
        X, groups : array-like
            As in `predict`.

        Returns
        -------
        shown : ndarray of shape (n_documents,)
            True for the first documents of each query. With ``rule="score"``, tied documents are
            shown together.
        """
        check_is_fitted(self)
        return self._shown(*rank_rows(self.ranker_, X, groups))

    @checks_keywords
    def predict_order(
        self, X: Any, groups: ArrayLike | None = None, k: int | None = None
    ) -> QueryOrder:
        """Predict the row indices of the documents that are shown, best first.

        Parameters
        ----------
        X, groups : array-like
            As in `predict`.
        k : int, default=None
            Maximum number of rows of each query. The guarantee does not hold for lists shortened by
            k.

        Returns
        -------
        order : QueryOrder
            The row indices of each query. ``numpy.diff(order.offsets)`` is the number of documents
            shown for each query.
        """
        check_is_fitted(self)
        check_count(k, "k", or_none=True)
        queries, scores, ranks = rank_rows(self.ranker_, X, groups)
        shown = self._shown(queries, scores, ranks)
        if k is not None:
            shown &= ranks <= k
        order = Ranking.from_ranks(ranks, queries).order
        offsets = np.append(0, np.cumsum(queries.sum(shown.astype(np.int64))))
        return QueryOrder(order[shown[order]], offsets, queries.ids)

    @available_if(lambda self: has_scores(self.ranker))
    @checks_keywords
    def decision_function(self, X: Any, groups: ArrayLike | None = None) -> Floats:
        """Compute the scores of the ranker; larger is better.

        Parameters
        ----------
        X, groups : array-like
            As in `predict`.

        Returns
        -------
        scores : ndarray of shape (n_documents,)
        """
        check_is_fitted(self)
        return predict_scores(self.ranker_, X, groups)

    @checks_keywords
    def score(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Compute 1 minus the mean loss of the lists shown, for example the mean recall.

        Parameters
        ----------
        X, y, groups : array-like
            As in `fit`.
        sample_weight : array-like of shape (n_documents,), default=None
            Weight of each row. The weight of a query is the mean of the weights of its rows.

        Returns
        -------
        score : float
            At least ``1 - alpha`` in expectation. Higher is better. Longer lists never have a lower
            score: compare the number of documents shown as well.
        """
        check_is_fitted(self)
        relevance, of_labels = read_relevance(y, _num_samples(X))
        ids = read_ids(self._known, X, groups, of_labels)[1]
        queries, scores, ranks = rank_rows(self.ranker_, X, ids)
        hidden = ~self._shown(queries, scores, ranks)
        added, defined = self._added(queries, ranks, relevance)
        kept = np.where(defined, 1.0 - queries.sum(added * hidden), np.nan)
        weight = check_weight(sample_weight, queries.n_rows)
        return mean_over_queries(kept, queries, weight, f"risk={self.risk!r}")

    # ---------------------------------------------------------------- steps of fit and predict

    def _check_parts(self) -> None:
        """Raise an error if alpha_silent uses up alpha, or if the rule needs missing scores."""
        if self.alpha_silent >= self.alpha:
            raise ValueError(
                f"alpha_silent={self.alpha_silent!r} must be smaller than alpha={self.alpha!r}."
            )
        if (self.rule == "score" or self.alpha_silent > 0) and not has_scores(self.ranker):
            final = _estimators.innermost_estimator(self.ranker)
            raise TypeError(
                f"{type(final).__name__}(loss={getattr(final, 'loss', None)!r}) has no "
                "scores. Pass rule='count' and alpha_silent=0, or use a loss on scores, "
                "such as 'ndcg'."
            )

    def _added(self, queries: Queries, ranks: Ints, relevance: Floats) -> tuple[Floats, Bools]:
        """Return the added value of each document, and whether it is defined for each query."""
        if self.threshold is not None:
            relevance = (relevance >= self.threshold).astype(np.float64)
        return added_values(self.risk, Ranking.from_ranks(ranks, queries), relevance)

    def _calibrate(self, X: Any, relevance: Floats, ids: NDArray[Any]) -> None:
        """Choose the thresholds on the held-out queries."""
        queries, scores, ranks = rank_rows(self.ranker_, X, ids)
        added, defined = self._added(queries, ranks, relevance)
        check_enough(defined, self.alpha, self.alpha_silent)
        n = int(defined.sum())
        levels, from_mean = self._levels(queries, scores, ranks)
        cut, risk = controlled_threshold(levels, added, n, self.alpha - self.alpha_silent)
        self.cutoff_ = int(cut) if self.rule == "count" else -rounded_up(cut, levels)
        self.silence_cutoff_ = -np.inf
        if self.alpha_silent > 0:
            assert from_mean is not None
            lost = queries.sum(added)[defined]  # by showing nothing
            cut, more = controlled_threshold(from_mean[defined], lost, n, self.alpha_silent)
            self.silence_cutoff_, risk = -rounded_up(cut, from_mean), risk + more
        self.calibrated_risk_ = risk
        self.n_calibration_queries_ = n

    def _levels(
        self, queries: Queries, scores: Floats | None, ranks: Ints
    ) -> tuple[Floats, Floats | None]:
        """Return the level of each document, and of the best document of each query."""
        levels, from_mean = (None, None) if scores is None else score_levels(scores, queries)
        if levels is None or self.rule == "count":
            levels = ranks.astype(np.float64)
        return levels, from_mean

    def _shown(self, queries: Queries, scores: Floats | None, ranks: Ints) -> Bools:
        levels, from_mean = self._levels(queries, scores, ranks)
        shown = levels <= (self.cutoff_ if self.rule == "count" else -self.cutoff_)
        if from_mean is not None:
            shown &= queries.broadcast(-from_mean >= self.silence_cutoff_)
        return shown

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = _estimators.tags_of(self.ranker).input_tags
        return tags


def has_scores(ranker: Any) -> bool:
    """Whether a ranker has scores. Other estimators predict scores."""
    final = _estimators.innermost_estimator(ranker)
    return not _estimators.predicts_positions(final) or hasattr(final, "decision_function")


def read_ids(
    ranker: Any, X: Any, groups: ArrayLike | None, of_labels: Queries | None = None
) -> tuple[Queries, NDArray[Any]]:
    """Return the queries from groups, labels or `group_column`, and the query id of each row."""
    column = group_column(ranker)
    if groups is None and column is not None and is_dataframe(X := as_frame(X)):
        groups = split_column(X, column)[1]
    given = None if groups is None else Queries.from_groups(groups, _num_samples(X))
    queries = agreed_queries(given, of_labels)
    if queries is None:
        raise ValueError(
            "The query id of each row is missing, and cutoffs are chosen for queries. "
            f"{GROUPS_REMEDY} For a single query, pass groups=numpy.zeros(len(X)) to predict."
        )
    return queries, queries.ids[queries.codes]


def fit_ranker(ranker: Any, X: Any, relevance: Floats, ids: NDArray[Any], named: bool) -> Any:
    """Fit a clone of a ranker or regressor; `named`: whether ids are from the user."""
    fitted = clone(ranker)
    if not _estimators.takes_ranking_labels(ranker):
        return fitted.fit(X, relevance)
    if named and _estimators.predicts_positions(ranker):
        return fitted.fit(X, relevance, groups=ids)
    return fitted.fit(X, relevance_labels(relevance, ids))


def rank_rows(ranker: Any, X: Any, groups: ArrayLike | None) -> tuple[Queries, Floats | None, Ints]:
    """Return the queries of the rows, their scores (or None) and their positions.

    Rows with equal scores are ordered by a hash of their features, as by `predict` of a ranker.
    """
    queries, _ = read_ids(ranker, X, groups)
    if not has_scores(ranker):
        return queries, None, _estimators.call_with_groups(ranker, "predict", X, groups)
    predicted = predict_scores(ranker, X, groups)
    scores = check_scores(predicted, queries.n_rows, "The prediction of the ranker").astype(float)
    scores = tie_rounded(scores, queries)
    ranks = Sort().decode(scores, queries, lambda rows: _hash(ranker, X, rows)).ranks
    return queries, scores, ranks


def _hash(ranker: Any, X: Any, rows: Ints) -> NDArray[np.uint64]:
    table = np.reshape(X, (-1, 1)) if np.ndim(X) == 1 else check_features(X)
    column = group_column(ranker)
    if column is not None and is_dataframe(table):
        table, _ = split_column(table, column)
    return hash_rows(table, rows)


# ---------------------------------------------------------------- calibration queries


def draw_queries(n_queries: int, share: float, random_state: Any) -> Bools:
    """Choose a random share of the queries, independently of their contents."""
    if n_queries < 2:
        raise ValueError(
            "At least 2 queries are needed, to fit the ranker and to choose the cutoff; got 1."
        )
    n_drawn = min(max(1, round(share * n_queries)), n_queries - 1)
    drawn = np.zeros(n_queries, dtype=bool)
    drawn[check_random_state(random_state).permutation(n_queries)[:n_drawn]] = True
    return drawn


def queries_needed(alpha: float) -> int:
    """Return the smallest n with 1 / (n + 1) <= alpha, the calibration queries for alpha."""
    return max(1, math.ceil((1 - ROUNDING) / alpha) - 1)


def check_enough(defined: Bools, alpha: float, alpha_silent: float) -> None:
    """Raise an error if alpha needs more calibration queries with a `defined` risk."""
    needed = max(queries_needed(part) for part in (alpha - alpha_silent, alpha_silent) if part > 0)
    if defined.sum() < needed:
        silent = f" with alpha_silent={alpha_silent!r}" if alpha_silent else ""
        raise ValueError(
            f"alpha={alpha!r}{silent} needs at least {needed} calibration queries with a "
            f"defined risk, for example with a relevant document; {defined.sum()} of "
            f"{len(defined)} have one. Pass more queries, a larger calibration_queries, or a "
            "larger alpha."
        )


def warn_if_fitted(ranker: Any, X: Any, ids: NDArray[Any], relevance: Floats) -> None:
    """Warn if the ranker was fitted on some of the queries."""
    if getattr(_estimators.innermost_estimator(ranker), "_fitted_queries", None) is None:
        return
    if seen := _estimators.call_with_groups(ranker, "_count_fitted", X, ids, labels=relevance):
        warn(
            f"The ranker was fitted on {seen} of the calibration queries. It ranks them "
            "better than new queries, and the guarantee does not hold. Pass other queries, "
            "or pass the ranker without FrozenEstimator to hold out queries in fit."
        )


def controlled_threshold(
    levels: Floats, added: Floats, n_queries: int, alpha: float
) -> tuple[float, float]:
    """Return the smallest threshold with a risk of at most alpha, and its bound of the risk.

    The loss L_i(t) is the sum of `added` over the entries of query i with levels above t. The
    threshold is the smallest level t with (L_1(t) + ... + L_n(t) + 1) / (n + 1) <= alpha
    (Angelopoulos et al., 2024, theorem 1, with B = 1). It exists if 1 / (n + 1) <= alpha. `levels`
    and `added` are of shape (n_entries,). `added` is not negative, and its sum over a query is at
    most 1.
    """
    order = np.argsort(levels)
    levels, added = levels[order], added[order]
    # Step 1: add up the loss beyond each entry, starting from the end, where sums are small.
    lost = np.append(np.cumsum(added[:0:-1])[::-1], 0.0)
    # Step 2: find the first entry that is the last of its level and has a small enough loss.
    bound = (lost + 1.0) / (n_queries + 1)
    kept = ~exceeds(bound, alpha, alpha)
    with np.errstate(invalid="ignore"):  # the first levels can be -inf
        kept[:-1] &= exceeds(levels[1:], levels[:-1], _size(levels))
    first = int(np.flatnonzero(kept)[0])
    return float(levels[first]), float(bound[first])


def score_levels(scores: Floats, queries: Queries) -> tuple[Floats, Floats]:
    """Return the level of each document: the mean score of its query minus its score.

    The documents with the largest score get the level -inf, because each list shows at least one
    document. The second result, of shape (n_queries,), is their original level.
    """
    mean, top = queries.mean(scores), queries.max(scores)
    levels = queries.broadcast(mean) - scores
    levels[scores == queries.broadcast(top)] = -np.inf
    return levels, mean - top


def rounded_up(threshold: float, levels: Floats) -> float:
    """Return a threshold that allows for rounding differences between batches."""
    # the score of a row differs in the last bits between batches
    return threshold + ROUNDING * _size(levels)


def _size(levels: Floats) -> float:
    """Return the largest absolute value of the finite levels."""
    return float(np.abs(levels[np.isfinite(levels)]).max(initial=0.0))


# ---------------------------------------------------------------- added values


def added_values(risk: Risk, ranking: Ranking, relevance: Floats) -> tuple[Floats, Bools]:
    """Return the value that each document adds to the list above it, and where it is defined.

    The first result is in row layout, and 0 for queries with an undefined value. The second has
    shape (n_queries,). The ranking must not have ties.
    """
    if isinstance(risk, str):
        if risk == "best_relevance":
            by_place, defined = _added_by_best(ranking, relevance)
        else:
            by_place, defined = _added_by_measure(_named(risk), ranking, relevance)
    elif isinstance(risk, Measure):
        by_place, defined = _added_by_measure(risk, ranking, relevance)
    else:
        by_place, defined = _added_by_function(risk, ranking, relevance)
    added = np.empty(len(relevance))
    added[ranking.order] = np.where(ranking.queries.repeat(defined), by_place, 0.0)
    return added, defined


def _named(risk: str) -> Measure:
    """Return the measure with this name; recall without a cutoff counts all places."""
    try:
        return get_measure(risk, **({"k": _ALL_PLACES} if risk == "recall" else {}))
    except ValueError as error:
        known = ("recall", "best_relevance", "ndcg")
        raise ValueError(
            f"Unknown risk {risk!r}.{did_you_mean(risk, known)} Known: {', '.join(known)}, "
            "the same with a cutoff, such as 'ndcg@10', and functions."
        ) from error


def _added_by_measure(
    measure: Measure, ranking: Ranking, relevance: Floats
) -> tuple[Floats, Bools]:
    """Utility times discount. The sum is at most 1, because the measure is normalized."""
    queries = ranking.queries
    n_places = int(queries.sizes.max())
    if not isinstance(measure, NormalizedPositionalLoss) or measure.discounts(n_places)[-1] < 0:
        raise ValueError(
            f"The risk {measure!r} cannot be controlled, because its loss can grow with the "
            "list or exceed 1. Pass 'recall', 'best_relevance', 'ndcg', or a function that "
            "maps the relevance of a list to the values of its first 1, 2, ... documents."
        )
    binary = isinstance(measure, BinaryMeasure) and getattr(measure, "threshold", None) is None
    if binary and not np.isin(relevance, (0, 1)).all():
        raise ValueError(
            "This risk needs labels 0 and 1. Pass threshold=t to RiskControlledCutoff to "
            "count labels of at least t as relevant."
        )
    measure.check(relevance)
    by_place = (
        ranking.take(measure.utilities(relevance, queries))
        * measure.discounts(n_places)[queries.place]
    )
    return by_place, measure.defined(relevance, queries)


def _added_by_best(ranking: Ranking, relevance: Floats) -> tuple[Floats, Bools]:
    """The increase of the best relevance so far by each document, as a share of the largest."""
    if relevance.min() < 0:
        raise ValueError(f"risk='best_relevance' needs relevance >= 0; got {relevance.min():g}.")
    queries = ranking.queries
    ordered, best = ranking.take(relevance), np.empty(len(relevance))
    for inside, valid in queries.buckets():
        best[inside[valid]] = np.maximum.accumulate(ordered[inside], axis=1)[valid]
    largest = queries.max(relevance)
    return _steps(best, queries) / queries.repeat(np.where(largest > 0, largest, 1)), largest > 0


def _added_by_function(
    value: Callable[[Floats], ArrayLike], ranking: Ranking, relevance: Floats
) -> tuple[Floats, Bools]:
    """Differences of the values of a user's function, called once per query."""
    queries = ranking.queries
    ordered, values = ranking.take(relevance), np.empty(len(relevance))
    for q in range(queries.n_queries):
        part = slice(queries.offsets[q], queries.offsets[q + 1])
        of_query = read_numbers(value(ordered[part].copy()), "what risk returned")
        if of_query.shape != ordered[part].shape:
            raise ValueError(
                "The function risk must return one value per document, for the first 1, 2, "
                f"..., r documents: shape {ordered[part].shape}; got {of_query.shape}."
            )
        values[part] = of_query
    undefined = np.isnan(queries.reduce(np.add, values))
    steps = _steps(values, queries)
    defined = queries.repeat(~undefined)
    wrong = defined & (exceeds(0.0, steps, 1.0) | exceeds(values, 1.0, 1.0))
    if wrong.any():
        q = int(queries.repeat(np.arange(queries.n_queries))[wrong.argmax()])
        shown = values[queries.offsets[q] : queries.offsets[q + 1]][:6].round(3)
        raise ValueError(
            "The function risk must return nondecreasing values between 0 and 1; for query "
            f"{q} they begin {shown.tolist()}."
        )
    return np.maximum(steps, 0.0), ~undefined


def _steps(values: Floats, queries: Queries) -> Floats:
    """Differences between consecutive places of each query, from 0, in best-first layout."""
    steps = np.diff(values, prepend=0.0)
    steps[queries.offsets[:-1]] = values[queries.offsets[:-1]]
    return steps
