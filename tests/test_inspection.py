"""Permutation importance inside queries."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_rankcal import (
    CalibratedLabelRanker,
    CalibratedRanker,
    preference_labels,
    relevance_labels,
)
from sklearn_rankcal.datasets import make_label_ranking, make_ranking
from sklearn_rankcal.inspection import permutation_importance
from sklearn_rankcal.metrics import evaluate_rankings, get_ranking_scorer, ndcg_score
from sklearn_rankcal.models import PairwiseRidge

DATA = make_ranking(40, (4, 12), 6, random_state=0)
X, Y, G = DATA.X, DATA.y, DATA.groups


class ByColumn:
    """A regressor that predicts a single column of X."""

    def __init__(self, column):
        self.column = column

    def predict(self, X):
        return np.asarray(X)[:, self.column].astype(float)

    def __sklearn_tags__(self):
        return LinearRegression().__sklearn_tags__()


def test_only_the_column_that_is_used_has_importance():
    result = permutation_importance(ByColumn(2), X, X[:, 2] > 0.5, groups=G, random_state=0)
    others = np.arange(6) != 2
    assert result.baseline == 1 and result.importances_mean[2] > 0.1
    assert (result.importances[others] == 0).all() and (result.importances_std[others] == 0).all()
    assert result.importances.shape == (6, 5)
    defined = ~np.isnan(result.per_query[2])
    assert defined.any() and not defined.all()
    assert result.per_query[2, defined].mean() == pytest.approx(result.importances_mean[2])


def test_values_are_shuffled_inside_queries():
    """A column that is constant inside queries is shuffled between them."""
    table = X.copy()
    table[:, 1] = G
    seen = []

    class Recorder(ByColumn):
        def predict(self, table):
            seen.append(table.copy())
            return super().predict(table)

    result = permutation_importance(Recorder(1), table, Y, groups=G, n_repeats=2, random_state=0)
    assert (result.importances == 0).all()  # alone, it orders nothing
    assert result.between_queries.tolist() == [False, True, False, False, False, False]
    assert len(seen) == 1 + 6 * 2
    for number, shuffled in enumerate(seen[1:]):
        column = number // 2
        others = np.arange(6) != column
        np.testing.assert_array_equal(shuffled[:, others], table[:, others])
        if column == 1:
            of_queries = [np.unique(shuffled[g == G, 1]).tolist() for g in np.unique(G)]
            assert sorted(of_queries) == [[g] for g in np.unique(G)] != of_queries
            continue
        for g in np.unique(G):
            mine = G == g
            assert sorted(shuffled[mine, column]) == sorted(table[mine, column])
    assert (seen[1] != table).any() and (seen[1] != seen[2]).any()


@pytest.mark.parametrize("kind", ["array", "pandas", "polars", "sparse"])
def test_a_column_that_is_constant_in_queries_matters_through_others(kind):
    """Documents are relevant by one column where the query says so, and by another elsewhere."""
    random = np.random.default_rng(0)
    groups = random.permutation(np.repeat(np.arange(60), 10))
    x = random.normal(size=(600, 3))
    x[:, 0] = (random.random(60) < 0.5)[groups]
    y = np.where(x[:, 0] > 0, x[:, 1], x[:, 2]) > 0.8
    table = {
        "array": np.asarray,
        "pandas": lambda x: pd.DataFrame(x, columns=["a", "b", "c"]),
        "polars": lambda x: pl.DataFrame(x, schema=["a", "b", "c"]),
        "sparse": sparse.csr_array,
    }[kind](x)

    class Chosen(ByColumn):
        def predict(self, X):
            X = X.toarray() if sparse.issparse(X) else np.asarray(X)
            return np.where(X[:, 0] > 0, X[:, 1], X[:, 2])

    result = permutation_importance(Chosen(0), table, y, groups=groups, random_state=0)
    assert result.baseline == 1 and result.importances_mean[0] > 0.1
    assert result.between_queries.tolist() == [True, False, False]


def test_the_importance_is_the_loss_of_the_metric():
    ranker = CalibratedRanker(Ridge(), context="zscore").fit(X, Y, groups=G)
    weight = np.random.default_rng(0).uniform(0.1, 3, len(Y))
    for metric in ("ndcg@3", "mrr", "pairwise_disagreement", "precision@2"):
        binary = {"threshold": 2} if metric in ("mrr", "precision@2") else {}
        result = permutation_importance(
            ranker,
            X,
            Y,
            groups=G,
            metric=metric,
            n_repeats=1,
            random_state=1,
            sample_weight=weight,
            **binary,
        )
        ranks = ranker.predict(X, groups=G)
        wanted = evaluate_rankings(
            Y, ranks=ranks, groups=G, metrics=[metric], sample_weight=weight, **binary
        )
        assert result.baseline == pytest.approx(wanted[metric])
        assert result.importances_mean.max() > 0.02
        known = ~np.isnan(result.per_query[0])
        mass = pd.Series(weight).groupby(G, sort=False).mean().to_numpy()
        np.testing.assert_allclose(
            result.importances_mean,
            np.average(result.per_query[:, known], axis=1, weights=mass[known]),
        )
        np.testing.assert_array_equal(result.queries, pd.unique(G))


def test_every_way_to_give_the_queries_and_every_kind_of_table():
    order = np.random.default_rng(0).permutation(len(Y))  # the rows of a query are not contiguous
    table, y, g = X[order], Y[order], G[order]
    ranker = CalibratedRanker(Ridge(), context=None).fit(table, y, groups=g)
    wanted = permutation_importance(ranker, table, y, g, random_state=3)
    names = list("abcdef")
    frame = pd.DataFrame(table, columns=names)
    by_column = frame.assign(qid=g)
    own = CalibratedRanker(Ridge(), context=None, group_column="qid").fit(by_column, y)
    of_frame = CalibratedRanker(Ridge(), context=None).fit(frame, y, groups=g)
    found = {
        "labels": permutation_importance(ranker, table, relevance_labels(y, g), random_state=3),
        "sparse": permutation_importance(ranker, sparse.csr_array(table), y, g, random_state=3),
        "pandas": permutation_importance(of_frame, frame, y, g, random_state=3),
        "column": permutation_importance(own, by_column, y, random_state=3),
    }
    for name, result in found.items():
        if name == "column":
            assert result.feature_names[6] == "qid" and result.importances_mean[6] == 0
        mean = result.importances_mean[:6]
        np.testing.assert_allclose(mean, wanted.importances_mean, atol=1e-12, err_msg=name)
    shown = ndcg_score(y, ranks=ranker.predict(table, groups=g), groups=g, k=10)
    assert wanted.baseline == pytest.approx(shown)


def test_a_ranker_inside_a_pipeline_has_the_importances_of_the_raw_columns():
    pipe = make_pipeline(StandardScaler(), CalibratedRanker(Ridge()))
    pipe.fit(X, Y, calibratedranker__groups=G)
    how = {"groups": G, "random_state": 0, "n_repeats": 2}
    found = permutation_importance(pipe, X, Y, **how).importances
    alone = permutation_importance(pipe[-1], pipe[0].transform(X), Y, **how).importances
    np.testing.assert_allclose(found, alone, rtol=1e-12)
    assert np.abs(found).max() > 0.01


def test_a_label_ranker_has_importances_of_rows():
    data = make_label_ranking(n_samples=60, random_state=0)
    ranker = CalibratedLabelRanker(Ridge()).fit(data.X, data.Y)
    how = {"metric": "kendall_tau", "random_state": 0, "n_repeats": 1}
    found = permutation_importance(ranker, data.X, data.Y, **how)
    assert found.per_query.shape == (data.X.shape[1], 60) and found.importances_mean.min() > 0
    assert found.baseline == pytest.approx(
        get_ranking_scorer("kendall_tau")(ranker, data.X, data.Y)
    )


def test_preferences_are_labels_too():
    pairs = [(i, j) for i in range(60) for j in range(60) if G[i] == G[j] and Y[i] > Y[j]]
    mine = slice(0, int(np.flatnonzero(G == G[59])[-1]) + 1)
    labels = preference_labels(pairs, G[mine])
    ranker = CalibratedRanker(PairwiseRidge(), loss="pd").fit(X[mine], labels)
    result = permutation_importance(ranker, X[mine], labels, metric="kendall_tau", random_state=0)
    slopes = np.abs(ranker.coef_ * X[mine].std(axis=0))
    assert set(np.argsort(result.importances_mean)[-2:]) == set(np.argsort(slopes)[-2:])


def test_bad_input():
    ranker = CalibratedRanker(Ridge()).fit(X, Y, groups=G)
    with pytest.raises(
        ValueError, match="permutation_importance cannot determine which rows belong"
    ):
        permutation_importance(ranker, X, Y)
    with pytest.raises(ValueError, match="n_repeats must be a whole number"):
        permutation_importance(ranker, X, Y, G, n_repeats=0)
    with pytest.raises(ValueError, match="undefined on all 40 queries"):
        permutation_importance(ranker, X, 0 * Y, G)
    with pytest.raises(ValueError, match="sample_weight is 0 on every query where"):
        permutation_importance(
            ranker, X, np.where(G == 0, Y, 0), G, sample_weight=(G != 0).astype(float)
        )
    own = CalibratedRanker(Ridge(), group_column="qid").fit(
        pd.DataFrame(X).set_axis(list("abcdef"), axis=1).assign(qid=G), Y
    )
    with pytest.raises(ValueError, match="'qid' is not among the columns"):
        permutation_importance(own, pd.DataFrame(X).set_axis(list("abcdef"), axis=1), Y)


def test_preferences_need_a_metric_that_reads_them():
    labels = preference_labels([(0, 1)], [0, 0, 0])
    with pytest.raises(
        ValueError, match=r"needs a relevance of every row.*use 'kendall_tau' or 'pairwise_dis"
    ):
        permutation_importance(ByColumn(0), X[:3], labels)
