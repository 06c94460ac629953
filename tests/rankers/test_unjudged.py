"""Rows that nobody judged: on the page of their query, and in no target, weight or measure."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge

from sklearn_rankcal import (
    BoostedRanker,
    CalibratedRanker,
    LinearRanker,
    RelevanceRegressor,
    RiskControlledCutoff,
    relevance_labels,
)
from sklearn_rankcal import metrics as m
from sklearn_rankcal.inspection import permutation_importance
from sklearn_rankcal.losses import NDCG

from ..oracles import dcg, ndcg, per_query
from ..ranker_data import G, X, Y

JUDGED = np.random.default_rng(0).random(len(Y)) > 1 / 3
LABELS = np.where(JUDGED, Y, np.nan)


class Recorder(RegressorMixin, BaseEstimator):
    """Keeps its table and targets, and predicts a sum of columns, some of them of the page."""

    def fit(self, X, y, sample_weight):
        self.seen_ = X, y, sample_weight
        return self

    def predict(self, X):
        return (X["price__zscore"].fillna(-2) + X["brand__share"] + X["rating"]).to_numpy()


def shop(seed):
    """A frame of pages in any order, grades with gaps, weights, and the columns of the page."""
    rng = np.random.default_rng(seed)
    pages = rng.permutation(np.repeat(np.arange(8), rng.integers(1, 7, 8)))
    n = len(pages)
    frame = pd.DataFrame({"qid": pages, "price": rng.gamma(2.0, 20.0, n)})
    frame.loc[rng.random(n) < 0.1, "price"] = np.nan
    frame["rating"], frame["brand"] = rng.normal(size=n), rng.choice(["a", "b", "c"], n)
    frame["brand"] = frame["brand"].astype("category")
    grades = pd.Series(rng.integers(0, 4, n), dtype="Int64").mask(rng.random(n) < 1 / 3)
    frame.loc[0, "price"], grades[0] = 9.0, 3
    pages = frame.groupby("qid")
    sd = pages["price"].transform("std", ddof=0)
    zscore = (frame["price"] - pages["price"].transform("mean")) / sd.where(sd > 0, 1.0)
    share = frame.groupby(["qid", "brand"], observed=True)["rating"].transform("size")
    return frame, grades, rng.random(n), zscore, share / pages["rating"].transform("size")


@pytest.mark.parametrize("n_frames", [12, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore:.*has learned nothing")
def test_targets_scores_and_measures_by_loops(n_frames):
    parameters = {"context": ["zscore", "share"], "center": False, "group_column": "qid"}
    for seed in range(n_frames):
        frame, grades, weight, zscore, share = shop(seed)
        ranker = CalibratedRanker(Recorder(), loss=NDCG(k=3, shrinkage=0.0), **parameters)
        ranker.fit(frame, grades, sample_weight=weight)
        table, targets, weights = ranker.model_.regressor_.seen_
        rows, wanted = [], []
        for page in frame["qid"].unique():
            known = frame.index[(frame["qid"] == page) & grades.notna()]
            if len(known) and grades[known].max() > 0:
                y = grades[known].tolist()
                rows += known.tolist()
                wanted += [(2.0**one - 1) / dcg(sorted(y)[::-1], range(len(y)), 3) for one in y]
        rows, wanted = np.sort(rows), np.array(wanted)[np.argsort(rows)]
        assert_allclose(targets, wanted, rtol=1e-12)
        assert_array_equal(weights, weight[rows])
        assert_allclose(table["price__zscore"], zscore[rows], atol=1e-12)
        assert_allclose(table["brand__share"], share[rows], atol=1e-12)
        assert ranker.n_queries_dropped_ == 8 - frame["qid"][rows].nunique()

        scores = (zscore.fillna(-2) + share + frame["rating"]).to_numpy()
        assert_allclose(ranker.decision_function(frame), scores, atol=1e-12)
        ranks = ranker.predict(frame)
        assert_array_equal(ranks, pd.Series(-scores).groupby(frame["qid"]).rank())
        on_judged = grades.groupby(frame["qid"]).transform("count") > 0
        for unjudged in ("irrelevant", "skip"):
            some = np.flatnonzero(on_judged if unjudged == "irrelevant" else grades.notna())
            y, groups = grades.fillna(0).to_numpy()[some], frame["qid"].to_numpy()[some]
            values = per_query(ndcg, y, scores[some], groups, k=3)
            pages = pd.Series(weight[some]).groupby(groups, sort=False).mean().to_numpy()
            of_pages = {"weights": pages[~np.isnan(values)]}
            given = {"groups": frame["qid"], "sample_weight": weight, "unjudged": unjudged}
            scorer, of_rows = m.get_ranking_scorer("ndcg@3", unjudged=unjudged), (grades, scores)
            found = [
                ranker.score(frame, grades, sample_weight=weight, unjudged=unjudged),
                m.ndcg_score(*of_rows, k=3, **given),
                m.ndcg_score(grades, ranks=ranks, k=3, **given),
                m.evaluate_rankings(*of_rows, metrics="ndcg@3", **given)["ndcg@3"],
                scorer(ranker, frame, grades, sample_weight=weight),
                m.compare_rankings(*of_rows, -scores, metric="ndcg@3", **given).first,
            ]
            assert_allclose(found, np.average(values[~np.isnan(values)], **of_pages), rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "ranker",
    [
        CalibratedRanker(Ridge(), context=None),
        CalibratedRanker("stacked", context=None),
        CalibratedRanker("boosting", context=None, validation_queries=0.3, random_state=0),
        CalibratedRanker(Ridge(), loss="pd"),
        LinearRanker("ranknet"),
        BoostedRanker(regressor="lightgbm", context=None),
    ],
    ids=lambda one: str(one).replace("\n", ""),
)
def test_without_context_columns_only_judged_rows_count(ranker, weighted):
    """The ranker equals one that is fitted to the judged rows alone, to the last bit."""
    if isinstance(ranker, BoostedRanker):
        pytest.importorskip("lightgbm")
    weight = np.random.default_rng(1).integers(0, 3, len(Y)) if weighted else np.ones(len(Y))
    ranker.fit(X[JUDGED], Y[JUDGED], groups=G[JUDGED], sample_weight=weight[JUDGED])
    ranks, coef = ranker.predict(X, groups=G), getattr(ranker, "coef_", None)
    weight[~JUDGED] *= 5
    ranker.fit(X, relevance_labels(LABELS, G), sample_weight=weight)
    assert_array_equal(ranker.predict(X, groups=G), ranks)
    assert_array_equal(getattr(ranker, "coef_", None), coef)


@pytest.mark.parametrize("regressor", ["boosting", "stacked"])
def test_held_out_rows_are_compared_with_their_page(regressor):
    """The measure after the best iteration is the score of the whole pages."""
    val = G >= 40
    held = {"X_val": X[val], "groups_val": G[val], "y_val": LABELS[val]}
    ranker = CalibratedRanker(regressor, context="zscore", n_iter_no_change=5)
    ranker.fit(X[~val], LABELS[~val], groups=G[~val], **held)
    score = ranker.score(X[val], LABELS[val], groups=G[val], unjudged="skip")
    best = ranker.validation_scores_[ranker.n_iter_ - 1 if regressor == "boosting" else -1]
    assert best == pytest.approx(score, abs=1e-12)


def test_weight_0_leaves_a_judged_row_off_the_page():
    weight = np.where(JUDGED & (np.arange(len(Y)) % 5 == 0), 0.0, 1.0)
    ranker, kept = CalibratedRanker(Ridge(), context="zscore"), weight > 0
    coef = ranker.fit(X[kept], LABELS[kept], groups=G[kept]).coef_
    weight[~JUDGED] = 0.0  # weights of other rows do not count
    assert_allclose(ranker.fit(X, LABELS, groups=G, sample_weight=weight).coef_, coef, rtol=1e-9)


def test_every_missing_value_is_not_judged():
    listed = [None if np.isnan(one) else int(one) for one in LABELS]
    ranker = CalibratedRanker(Ridge()).fit(X, LABELS, groups=G)
    score = ranker.score(X, np.nan_to_num(LABELS), groups=G)
    masked = np.ma.array(Y, mask=~JUDGED)
    for y in (listed, pd.Series(listed, dtype="Int64"), pl.Series(listed), masked):
        assert_array_equal(CalibratedRanker(Ridge()).fit(X, y, groups=G).coef_, ranker.coef_)
        assert ranker.score(X, y, groups=G) == score
        assert m.ndcg_score(y, ranks=ranker.predict(X, groups=G), groups=G) == score


def test_other_estimators_and_queries_without_a_judged_row():
    parts = LinearRanker(solver="sgd"), LinearRanker(solver="sgd")
    for part in (G < 30, G >= 30):
        parts[0].partial_fit(X[part], LABELS[part], groups=G[part])
        parts[1].partial_fit(X[part & JUDGED], Y[part & JUDGED], groups=G[part & JUDGED])
    assert_array_equal(parts[0].coef_, parts[1].coef_)
    y, weight = np.where(G == G[0], np.nan, LABELS), G + 1.0
    ranker = CalibratedRanker(Ridge()).fit(X, y, groups=G)
    scorer = m.get_ranking_scorer("ndcg@10")
    found = permutation_importance(ranker, X, y, G, sample_weight=weight, random_state=0)
    assert found.baseline == pytest.approx(scorer(ranker, X, y, groups=G, sample_weight=weight))
    assert found.importances.max() > 0 and G[0] not in found.queries


def test_where_every_row_needs_a_label():
    ranker = CalibratedRanker(Ridge()).fit(X, LABELS, groups=G)
    cutoff = RiskControlledCutoff(FrozenEstimator(ranker), threshold=1)
    for call, message in (
        (lambda: ranker.diagnose(X, G, LABELS), "Here, every row needs a relevance"),
        (lambda: RelevanceRegressor(Ridge()).fit(X, LABELS), "needs a relevance here"),
        (lambda: cutoff.fit(X, LABELS, groups=G), "needs a relevance here"),
        (lambda: ranker.fit(X, LABELS * np.nan, groups=G), "at least one row must be judged"),
        (lambda: ranker.fit(X, LABELS, G, sample_weight=~JUDGED), "zero for every row"),
        (lambda: ranker.score(X, Y, G, unjudged="drop"), "Unknown unjudged"),
        (lambda: m.map_score(Y, X[:, 0], unjudged="drop"), "Unknown unjudged"),
        (lambda: m.get_ranking_scorer("map", unjudged="drop"), "Unknown unjudged"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
