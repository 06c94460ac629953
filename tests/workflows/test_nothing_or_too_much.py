"""A shop's frame goes in as it is: ids among the features, and tables that teach nothing."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Lasso, Ridge

from sklearn_rankcal import CalibratedRanker, LinearRanker
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.losses import MEASURES
from sklearn_rankcal.metrics import evaluate_rankings
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.rankers._advice import warn_of_ids  # the advice without a fit, in many worlds

pytestmark = pytest.mark.usefixtures("few_trees")


def shop(n_queries=60, seed=0):
    """A table of queries and products, with the id of the query in it."""
    data = make_ranking(n_queries=n_queries, random_state=seed)
    frame = pd.DataFrame(data.X, columns=[f"feature_{j}" for j in range(data.X.shape[1])])
    frame.insert(0, "qid", data.groups + 10_001)
    return frame, data.y


def query_features(codes, random):
    """Columns that are constant in a query, as search engines have them."""
    n = codes.max() + 1
    return {
        "n_candidates": np.bincount(codes)[codes],
        "n_words": random.integers(1, 12, n)[codes],
        "idf": random.gamma(3, 1, n)[codes],
        "hour": random.integers(0, 24, n)[codes],
        "time": np.sort(random.integers(1_600_000_000, 1_700_000_000, n))[codes],
        "n_hits": random.integers(0, 1_000_000, n)[codes],
        "is_mobile": random.integers(0, 2, n)[codes],
        "country": pd.Categorical(random.choice(list("ABCDEFGHIJKLMNOPQRST"), n)[codes]),
    }


# ---------------------------------------------------------------- the id among the features


def test_the_query_id_among_the_features():
    frame, y = shop()
    with pytest.warns(UserWarning, match="'qid' of X has the query id .* group_column='qid'"):
        CalibratedRanker(Ridge()).fit(frame, y, groups=frame["qid"])
    # What the warning advises does not warn.
    advised = CalibratedRanker(Ridge(), group_column="qid").fit(frame, y)
    dropped = CalibratedRanker(Ridge()).fit(frame.drop(columns="qid"), y, groups=frame["qid"])
    np.testing.assert_array_equal(
        advised.predict(frame), dropped.predict(frame.drop(columns="qid"), groups=frame["qid"])
    )


@pytest.mark.parametrize("shuffled", [False, True])
def test_other_forms_of_the_id(shuffled):
    frame, y = shop()
    if shuffled:
        frame = frame.sample(frac=1, random_state=0)
    ids = frame["qid"]
    codes = pd.factorize(ids)[0]
    with pytest.warns(UserWarning, match="Column 0 of X has the query id .* Drop it from X"):
        LinearRanker().fit(frame.to_numpy(), y, groups=ids)
    for column, groups, match in (
        (ids.astype(str).astype("category"), ids, "has the query id"),
        (codes, ids, "looks like a query id"),
        (ids, codes, "looks like a query id"),
        (("query " + ids.astype(str)).astype("category"), ids, "looks like a query id"),
    ):
        table = frame.assign(qid=column)
        with pytest.warns(UserWarning, match=f"Column 'qid' of X {match}"):
            warn_of_ids(table, Queries.from_groups(groups), None)


def test_features_of_queries_are_no_ids():
    """120 small tables with eight columns that are constant in each query: no false alarm."""
    random = np.random.default_rng(0)
    data = make_ranking(n_queries=150, random_state=0)
    for n_queries in (3, 5, 10, 20, 60, 120):
        for _ in range(20):
            chosen = random.choice(150, n_queries, replace=False)
            rows = np.isin(data.groups, chosen)
            ids = data.groups[rows] + 1000
            codes = np.unique(ids, return_inverse=True)[1]
            table = pd.DataFrame(query_features(codes, random))
            for groups in (ids, codes):  # a warning is an error in these tests
                warn_of_ids(table, Queries.from_groups(groups), None)


# ---------------------------------------------------------------- nothing to learn


@pytest.mark.parametrize(
    "ranker", [CalibratedRanker(), CalibratedRanker(Ridge()), LinearRanker()], ids=repr
)
def test_the_labels_as_groups(ranker):
    frame, y = shop()
    with pytest.warns(UserWarning, match="Did you pass the labels as groups") as caught:
        ranker.fit(frame.drop(columns="qid"), y, groups=y)
    assert len(caught) == 1


def test_equal_labels_in_every_query():
    frame, _ = shop()
    ids = frame.pop("qid")
    with pytest.warns(UserWarning, match="have the same label. Every ranking") as caught:
        CalibratedRanker(Ridge()).fit(frame, ids % 3 + 1, groups=ids)
    assert len(caught) == 1


@pytest.mark.parametrize("loss", ["ndcg", "pd"])
def test_constant_columns(loss):
    frame, y = shop()
    for table in (np.ones((len(y), 2)), (frame[["qid"]] % 7).to_numpy()):
        with pytest.warns(UserWarning, match="no column of X has different values") as caught:
            CalibratedRanker(loss=loss).fit(table, y, groups=frame["qid"])
        assert len(caught) == 1
    if loss == "ndcg":
        with pytest.warns(UserWarning, match="no column of X has different values") as caught:
            CalibratedRanker(HistGradientBoostingRegressor()).fit(
                np.full((len(y), 2), np.nan), y, groups=frame["qid"]
            )
        assert len(caught) == 1


def test_regressors_that_predict_the_same_for_all():
    frame, y = shop()
    X, groups = frame.drop(columns="qid"), frame["qid"]
    for regressor, n_rows in ((HistGradientBoostingRegressor(), 30), (Lasso(100.0), len(X))):
        with pytest.warns(UserWarning, match=f"{type(regressor).__name__} predicts the same"):
            CalibratedRanker(regressor).fit(X[:n_rows], y[:n_rows], groups=groups[:n_rows])
    CalibratedRanker(HistGradientBoostingRegressor()).fit(X, y, groups=groups)


def test_lightgbm_on_thirty_rows():
    lightgbm = pytest.importorskip("lightgbm")
    frame, y = shop()
    X, groups = frame.drop(columns="qid").to_numpy(), frame["qid"].to_numpy()
    with pytest.warns(UserWarning, match="LGBMRegressor predicts the same .*min_child_samples"):
        CalibratedRanker(lightgbm.LGBMRegressor(verbose=-1)).fit(X[:30], y[:30], groups=groups[:30])


def test_a_few_queries_without_differences_are_no_reason_to_warn():
    """The first queries tie, and later ones do not."""
    random = np.random.default_rng(0)
    x = np.concatenate([np.zeros(2100), random.normal(size=100)])
    y = (x > 0).astype(float)
    y[:2100:2] = 1.0
    CalibratedRanker(Ridge(), context=None).fit(x[:, None], y, groups=np.arange(len(x)) // 10)


# ---------------------------------------------------------------- one query is much larger


def with_a_catalogue(n=50_000):
    """A hundred small queries, and one of a whole catalogue."""
    random = np.random.default_rng(0)
    groups = np.concatenate([np.zeros(n, dtype=int), 1 + np.repeat(np.arange(100), 10)])
    X = random.normal(size=(len(groups), 3))
    y = np.clip(np.round(X[:, 0] + random.normal(size=len(groups))), 0, 3)
    return X, y, groups


@pytest.mark.parametrize("name", MEASURES)
def test_metrics_of_a_large_query_among_small_ones(name):
    """The metric of each query is that of the query alone, in a second."""
    X, y, groups = with_a_catalogue()
    metric = f"{name}@10" if name in ("precision", "recall") else name
    y = (y > 1).astype(float)
    scores = np.round(X[:, 0], 2)  # with ties
    options = {"metrics": [metric], "return_per_query": True}
    together = evaluate_rankings(y, scores, groups=groups, **options)[metric]
    for q in (0, 1, 50):
        rows = groups == q
        alone = evaluate_rankings(y[rows], scores[rows], groups=groups[rows], **options)[metric]
        np.testing.assert_allclose(together[q], alone[0], rtol=1e-9)
