"""Metrics, compared with means over all orders of ties, scikit-learn and SciPy."""

from functools import partial

import numpy as np
import pytest
import scipy.stats
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LinearRegression

from sklearn_rankcal import metrics as m
from sklearn_rankcal import relevance_labels
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.inspection import permutation_importance
from sklearn_rankcal.losses import NDCG, Measure, Positional
from sklearn_rankcal.plotting import QueryDifferencesDisplay
from sklearn_rankcal.queries import Queries, Ranking, interval_of_mean

from .. import oracles
from ..metric_data import FUNCTIONS, QUERIES, per_query

# Many tests score rows without query ids, or scores that are small whole numbers, on purpose.
pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_rankcal.exceptions.MissingGroupsWarning",
    "ignore::sklearn_rankcal.exceptions.PositionsAsScoresWarning",
)


# For each name: the public function, its oracle, and whether labels must be binary.
CASES = {
    "precision": (partial(m.precision_at_k_score, k=2), partial(oracles.precision, k=2), True),
    "recall": (partial(m.recall_at_k_score, k=2), partial(oracles.recall, k=2), True),
    "map": (m.map_score, oracles.average_precision, True),
    "map@3": (partial(m.map_score, k=3), partial(oracles.average_precision, k=3), True),
    "mrr": (m.mrr_score, oracles.reciprocal_rank, True),
    "mrr@2": (partial(m.mrr_score, k=2), partial(oracles.reciprocal_rank, k=2), True),
    "auc": (m.auc_score, oracles.auc, True),
    "dcg": (m.dcg_score, oracles.dcg, False),
    "dcg@2": (partial(m.dcg_score, k=2), partial(oracles.dcg, k=2), False),
    "ndcg": (m.ndcg_score, oracles.ndcg, False),
    "ndcg@3 linear": (
        partial(m.ndcg_score, k=3, gain="linear"),
        partial(oracles.ndcg, k=3, gain=oracles.gain_linear),
        False,
    ),
    "eru": (
        partial(m.eru_score, neutral=1, half_life=3),
        partial(oracles.eru, neutral=1, half_life=3),
        False,
    ),
    "err": (partial(m.err_score, max_relevance=3), partial(oracles.err, top=3), False),
    "err@2": (partial(m.err_score, k=2, max_relevance=3), partial(oracles.err, k=2, top=3), False),
    "spearman": (m.spearman_score, oracles.spearman, False),
    "kendall": (m.kendall_tau_score, oracles.kendall_tau, False),
    "pd": (m.pairwise_disagreement_loss, oracles.disagreement, False),
    "pd sum": (
        partial(m.pairwise_disagreement_loss, normalize=False),
        partial(oracles.disagreement, normalize=False),
        False,
    ),
    "pd graded": (
        partial(m.pairwise_disagreement_loss, pair_weight="graded"),
        partial(oracles.disagreement, pair_weight="graded"),
        False,
    ),
}
BEST_IS_MIN = {"pd", "pd sum", "pd graded"}

query = st.integers(1, 5).flatmap(
    lambda r: st.tuples(
        st.lists(st.integers(0, 3), min_size=r, max_size=r),
        st.lists(st.integers(0, 3), min_size=r, max_size=r),
    )
)


def stacked(queries, binary):
    """Return labels, scores and groups of several queries, whose rows are not contiguous."""
    y = np.concatenate([labels for labels, _ in queries])
    scores = np.concatenate([scores for _, scores in queries]).astype(float)
    groups = np.repeat(np.arange(len(queries)), [len(labels) for labels, _ in queries])
    shuffle = np.random.RandomState(0).permutation(len(y))
    return ((y > 1).astype(int) if binary else y)[shuffle], scores[shuffle], groups[shuffle]


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=20, deadline=None)
@given(st.lists(query, min_size=1, max_size=4))
def test_the_average_of_ties_is_the_mean_over_all_their_orders(name, queries):
    metric, oracle, binary = CASES[name]
    y, scores, groups = stacked(queries, binary)
    got = per_query(metric, y, scores, groups=groups)
    np.testing.assert_allclose(got, oracles.per_query(oracle, y, scores, groups), atol=1e-10)


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=10, deadline=None)
@given(st.lists(query, min_size=1, max_size=3))
def test_the_tie_rules_best_worst_and_first(name, queries):
    metric, oracle, binary = CASES[name]
    y, scores, groups = stacked(queries, binary)
    for rows in oracles.split(groups):
        labels, values = y[rows].tolist(), scores[rows].tolist()
        possible = [oracle(labels, order) for order in oracles.orders_of_scores(values)]
        sign = -1 if name in BEST_IS_MIN else 1
        # These measures are best when the most relevant of the tied documents comes first, and
        # worst when the least relevant one does.
        best = max(possible, key=lambda value: sign * value)
        worst = min(possible, key=lambda value: sign * value)
        first = sorted(range(len(rows)), key=lambda i: (-values[i], i))
        for ties, wanted in (("best", best), ("worst", worst), ("first", oracle(labels, first))):
            got = per_query(metric, labels, values, ties=ties)[0]
            np.testing.assert_allclose(got, wanted, atol=1e-10, err_msg=f"{name} ties={ties}")


@pytest.mark.parametrize("name", CASES)
def test_ranks_and_scores_agree_without_ties(name):
    metric, _, binary = CASES[name]
    rng = np.random.default_rng(1)
    groups = rng.integers(0, 9, size=80)
    y = rng.integers(0, 2 if binary else 4, size=80)
    scores = rng.normal(size=80)
    ranks = np.empty(80, dtype=int)
    for rows in oracles.split(groups):
        ranks[rows] = scipy.stats.rankdata(-scores[rows]).astype(int)
    by_scores = metric(y, scores, groups=groups)
    assert metric(y, ranks=ranks, groups=groups) == pytest.approx(by_scores, abs=1e-12)
    labels = relevance_labels(y, groups)
    assert metric(labels, scores) == pytest.approx(by_scores, abs=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_degenerate_queries(name):
    metric, oracle, _binary = CASES[name]
    y, scores = [0, 0, 1, 1, 1, 0], [3.0, 2.0, 1.0, 2.0, 1.0, 0.0]
    # no relevant document, a single document, equal labels, a single irrelevant document
    groups = [0, 0, 1, 2, 2, 3]
    expected = oracles.per_query(oracle, y, scores, groups)
    values = per_query(metric, y, scores, groups=groups)
    np.testing.assert_allclose(values, expected)
    if np.isnan(expected).all():
        with pytest.warns(UndefinedMetricWarning, match="undefined on all 4 queries"):
            assert np.isnan(metric(y, scores, groups=groups))
    else:
        assert metric(y, scores, groups=groups) == pytest.approx(np.nanmean(expected))
    for filler in (0, 1):
        filled = np.where(np.isnan(expected), filler, expected)
        got = metric(y, scores, groups=groups, zero_division=filler)
        assert got == pytest.approx(filled.mean())


class Missed(Measure):
    """1 - NDCG@3, which no registry knows."""

    greater_is_better = False
    bounds = (0.0, 1.0)

    def per_query(self, ranking, labels):
        return 1 - NDCG(3).per_query(ranking, labels)


@pytest.mark.parametrize("metric", ["ndcg@3", NDCG(3), Missed()])
def test_a_metric_is_a_name_or_any_measure(metric):
    y, good, name = QUERIES.y, QUERIES.latent, str(metric)
    poor, by = good[::-1], {"groups": QUERIES.groups}
    wanted, worse = (m.ndcg_score(y, scores, k=3, **by) for scores in (good, poor))
    sign = -1 if isinstance(metric, Missed) else 1
    if sign < 0:
        wanted, worse = 1 - wanted, 1 - worse
    found = m.evaluate_rankings(y, good, metrics=[metric, "err"], confidence_level=0.9, **by)[name]
    assert found.mean == pytest.approx(wanted)
    compared = m.compare_rankings(y, good, poor, metric=metric, **by)
    assert (compared.first, compared.second) == pytest.approx((wanted, worse))
    table = m.compare_rankings(y, good, poor, metric=[metric, "map"], threshold=2, **by)
    assert table["metric"].tolist() == [name, "map"] and table["low"][0] == compared.low
    assert table["second_mean"][1] == m.map_score(y, poor, threshold=2, **by)
    values = [
        m.evaluate_rankings(y, s, metrics=metric, return_per_query=True, **by)[name]
        for s in (good, poor)
    ]
    assert m.compare_rankings(None, *values, metric=metric) == compared
    defined = values[0][~np.isnan(values[0])]
    assert (found.low, found.high) == interval_of_mean(defined, 0.9, bounds=(0, 1))
    qrels, *runs = (
        {q: dict(enumerate(column[by["groups"] == q])) for q in range(len(values[0]))}
        for column in (y, good, poor)
    )
    run = m.evaluate_run(qrels, runs[0], metrics=metric, zero_division="skip")
    assert (run[name], run.intervals(0.9)[name].low) == pytest.approx((wanted, found.low))
    options = {"metric": metric, "zero_division": "skip"}
    assert m.compare_rankings(qrels, *runs, **options).low == pytest.approx(compared.low)
    X, ranker = good[:, np.newaxis], LinearRegression().fit(good[:, np.newaxis], good)
    scorer = m.get_ranking_scorer(metric)
    assert eval(repr(scorer), {**globals(), **vars(m)}) == scorer == clone(scorer, safe=False)
    assert scorer(ranker, X, y, **by) == pytest.approx(sign * wanted)
    importance = permutation_importance(ranker, X, y, **by, metric=metric)
    assert importance.baseline == pytest.approx(wanted)
    assert make_ranking(20, random_state=0, metric=metric).bayes_score > 0
    display = QueryDifferencesDisplay.from_predictions(y, good, poor, metric=metric, **by)
    assert display.greater_is_better == (sign > 0) and display.metric == name


def test_the_default_metric_takes_grades():
    values = m.evaluate_rankings(QUERIES.y, QUERIES.latent, groups=QUERIES.groups)
    assert QUERIES.y.max() > 1 and list(values) == ["ndcg@10"]


def test_query_weights_are_the_mean_of_their_rows():
    y, scores, groups = [1, 0, 0, 1], [1.0, 0.0, 1.0, 0.0], [0, 0, 1, 1]
    got = m.mrr_score(y, scores, groups=groups, sample_weight=[1, 3, 0, 1])
    assert got == pytest.approx((2 * 1.0 + 0.5 * 0.5) / 2.5)


def test_agrees_with_scikit_learn_with_ties():
    rng = np.random.default_rng(0)
    y, scores = rng.integers(0, 4, size=(30, 12)), rng.integers(0, 5, size=(30, 12)).astype(float)
    for k in (None, 1, 5, 12, 40):
        gainless = np.vstack([y, np.zeros(12)]), np.vstack([scores, scores[0]])
        wanted = sklearn.metrics.ndcg_score(*gainless, k=k)
        got = m.ndcg_score(*gainless, k=k, gain="linear", zero_division=0)
        assert got == pytest.approx(wanted)
        wanted = sklearn.metrics.ndcg_score(y, scores, k=k)
        assert m.ndcg_score(y, scores, k=k, gain="linear") == pytest.approx(wanted)
        wanted = sklearn.metrics.dcg_score(y, scores, k=k)
        assert m.dcg_score(y, scores, k=k, gain="linear") == pytest.approx(wanted)
    binary = (y > 1).astype(int)
    got = per_query(m.auc_score, binary, scores)
    for row in range(30):
        wanted = sklearn.metrics.roc_auc_score(binary[row], scores[row])
        assert got[row] == pytest.approx(wanted)
    untied = rng.normal(size=(30, 12))
    got = per_query(m.map_score, binary, untied)
    wanted = [
        sklearn.metrics.average_precision_score(a, b) for a, b in zip(binary, untied, strict=True)
    ]
    np.testing.assert_allclose(got, wanted)


@pytest.mark.parametrize("pair_weight", ["binary", "graded"])
def test_disagreement_of_real_valued_labels_and_large_queries(pair_weight):
    rng = np.random.default_rng(0)
    y, scores = rng.normal(size=300).round(2), rng.normal(size=300).round(1)
    better = y[:, None] > y
    weight = np.where(better, y[:, None] - y if pair_weight == "graded" else 1.0, 0.0)
    cost = (scores[:, None] < scores) + 0.5 * (scores[:, None] == scores)
    got = m.pairwise_disagreement_loss(y, scores, pair_weight=pair_weight, normalize=False)
    assert got == pytest.approx((weight * cost).sum())
    got = m.pairwise_disagreement_loss(y, scores, pair_weight=pair_weight)
    assert got == pytest.approx((weight * cost).sum() / weight.sum())


# -------------------------------------------------------------------- precision over magnitudes


def magnitudes(seed):
    """Yield a few queries whose labels differ by up to 30 orders of magnitude."""
    rng = np.random.default_rng(seed)
    for _ in range(rng.integers(2, 7)):
        size = rng.integers(1, 40)
        y = rng.integers(0, 5, size) if rng.random() < 0.5 else rng.random(size) * 3
        scores = rng.integers(0, 5, size) if rng.random() < 0.5 else rng.normal(size=size)
        yield y * 10.0 ** (rng.integers(-15, 16) if rng.random() < 0.5 else 0), scores * 1.0


@pytest.mark.parametrize("ties", ["average", "worst"])
@pytest.mark.parametrize(
    "metric",
    [
        partial(m.dcg_score, gain="linear"),
        partial(m.ndcg_score, gain="linear", k=4),
        partial(m.eru_score, half_life=1.01),
        m.spearman_score,
        m.kendall_tau_score,
        m.pairwise_disagreement_loss,
        partial(m.pairwise_disagreement_loss, pair_weight="graded", normalize=False),
        partial(m.map_score, threshold=1),
        partial(m.mrr_score, threshold=1),
        partial(m.auc_score, threshold=1),
        partial(m.recall_at_k_score, threshold=1, k=3),
        partial(m.err_score, gain=lambda y: np.minimum(y, 9) / 9),
    ],
)
def test_no_metric_of_a_query_depends_on_the_other_queries(metric, ties):
    for seed in range(20):
        queries = list(magnitudes(seed))
        together = per_query(
            metric,
            np.concatenate([y for y, _ in queries]),
            np.concatenate([scores for _, scores in queries]),
            groups=np.repeat(np.arange(len(queries)), [len(y) for y, _ in queries]),
            ties=ties,
        )
        alone = [per_query(metric, *query, ties=ties)[0] for query in queries]
        np.testing.assert_array_equal(together, alone)


def test_small_discounts_below_large_ones_keep_their_digits():
    """The mean discount of tied places is not computed as a difference of sums over all places."""
    loss = Positional(utility=lambda y, queries: y, discount=[1e17, 3.0, 1.0, 0.0])
    queries = Queries.single(4)
    ranking = Ranking.from_scores(np.array([3.0, 1.0, 1.0, 0.0]), queries)
    y = np.array([0.0, 1.0, 1.0, 1.0])
    got = loss.per_query(ranking, y)
    np.testing.assert_array_equal(got, [4.0])


# -------------------------------------------------------------------- several metrics at once


def test_several_metrics_at_once_equal_single_metrics():
    rng = np.random.default_rng(0)
    y, scores, groups = rng.integers(0, 3, 200), rng.integers(0, 9, 200), rng.integers(0, 20, 200)
    given = {
        "ndcg@5": {"k": 5},
        "map": {"threshold": 1},
        "err@10": {"k": 10},
        "precision@3": {"k": 3, "threshold": 1},
        "kendall_tau": {},
    }
    values = m.evaluate_rankings(y, scores, groups=groups, metrics=list(given), threshold=1)
    for name, options in given.items():
        one = FUNCTIONS[name.partition("@")[0]](y, scores, groups=groups, **options)
        assert values[name] == pytest.approx(one)


def test_ndcg_of_lightgbm_and_xgboost_agree_with_what_the_faq_says():
    """Ties in the order of the rows, and 1 for a query without a relevant document."""
    lightgbm, xgboost = pytest.importorskip("lightgbm"), pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 1)), rng.integers(0, 3, size=40)
    for labels, wanted in ((y, m.ndcg_score([y], [np.zeros(40)], k=5, ties="first")), (0 * y, 1.0)):
        # no split is possible, so that all scores are equal
        table = lightgbm.Dataset(X, labels, group=[40], params={"verbose": -1})
        parameters = {"metric": "ndcg", "eval_at": [5], "min_data_in_leaf": 50, "verbose": -1}
        found: dict = {}
        record = lightgbm.record_evaluation(found)
        lightgbm.train(parameters, table, 1, valid_sets=[table], callbacks=[record])
        assert found["training"]["ndcg@5"][0] == pytest.approx(wanted)
        table = xgboost.DMatrix(X, labels, group=[40])
        parameters = {"eval_metric": "ndcg@5", "learning_rate": 0.0, "objective": "rank:ndcg"}
        xgboost.train(
            parameters, table, 1, evals=[(table, "t")], evals_result=found, verbose_eval=False
        )
        assert found["t"]["ndcg@5"][0] == pytest.approx(wanted)
