"""Metrics: against exhaustive means over tie orders, scikit-learn, SciPy and trec_eval."""

import gzip
import itertools
import warnings
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import Ridge

from sklearn_rankcal import CalibratedRanker, relevance_labels
from sklearn_rankcal import metrics as m
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.exceptions import MissingGroupsWarning, PositionsAsScoresWarning
from sklearn_rankcal.losses import Positional
from sklearn_rankcal.measures._tied_cascade import block_value, by_documents, by_quadrature
from sklearn_rankcal.metrics._compare import _holm
from sklearn_rankcal.models import PairwiseRidge
from sklearn_rankcal.queries import Queries, Ranking

from . import oracles

# many tests score a single query, or small whole numbers, and mean it
pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_rankcal.exceptions.MissingGroupsWarning",
    "ignore::sklearn_rankcal.exceptions.PositionsAsScoresWarning",
)

Y, S = [1, 0, 1], [0.1, 0.2, 0.3]

# public function, oracle, whether labels are binary
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

query = st.integers(1, 6).flatmap(
    lambda r: st.tuples(
        st.lists(st.integers(0, 3), min_size=r, max_size=r),
        st.lists(st.integers(0, 3), min_size=r, max_size=r),
    )
)


def stacked(queries, binary):
    """Labels, scores and non-contiguous groups of several queries."""
    y = np.concatenate([labels for labels, _ in queries])
    scores = np.concatenate([scores for _, scores in queries]).astype(float)
    groups = np.repeat(np.arange(len(queries)), [len(labels) for labels, _ in queries])
    shuffle = np.random.RandomState(0).permutation(len(y))
    return ((y > 1).astype(int) if binary else y)[shuffle], scores[shuffle], groups[shuffle]


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=40, deadline=None)
@given(st.lists(query, min_size=1, max_size=4))
def test_ties_average_equals_the_mean_over_all_orders(name, queries):
    metric, oracle, binary = CASES[name]
    y, scores, groups = stacked(queries, binary)
    got = metric(y, scores, groups=groups, return_per_query=True)
    np.testing.assert_allclose(got, oracles.per_query(oracle, y, scores, groups), atol=1e-10)


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=20, deadline=None)
@given(st.lists(query, min_size=1, max_size=3))
def test_other_tie_rules(name, queries):
    metric, oracle, binary = CASES[name]
    y, scores, groups = stacked(queries, binary)
    for rows in oracles.split(groups):
        labels, values = y[rows].tolist(), scores[rows].tolist()
        possible = [oracle(labels, order) for order in oracles.orders_of_scores(values)]
        sign = -1 if name in BEST_IS_MIN else 1
        # the most relevant first is best for these measures, the least relevant first is worst
        best = max(possible, key=lambda value: sign * value)
        worst = min(possible, key=lambda value: sign * value)
        first = sorted(range(len(rows)), key=lambda i: (-values[i], i))
        for ties, wanted in (("best", best), ("worst", worst), ("first", oracle(labels, first))):
            got = metric(labels, values, ties=ties, return_per_query=True)[0]
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
    groups = [0, 0, 1, 2, 2, 3]  # no relevant, one document, all equal, one irrelevant document
    expected = oracles.per_query(oracle, y, scores, groups)
    values = metric(y, scores, groups=groups, return_per_query=True)
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


def test_huge_weights_and_one_name():
    scores = m.evaluate_rankings(Y, S, metrics="mrr", sample_weight=[1e308] * 3)
    assert scores == {"mrr": 1.0}


def test_query_weights_are_the_mean_of_their_rows():
    y, scores, groups = [1, 0, 0, 1], [1.0, 0.0, 1.0, 0.0], [0, 0, 1, 1]
    got = m.mrr_score(y, scores, groups=groups, sample_weight=[1, 3, 0, 1])
    assert got == pytest.approx((2 * 1.0 + 0.5 * 0.5) / 2.5)


def test_agrees_with_scikit_learn_with_ties():
    rng = np.random.default_rng(0)
    y, scores = rng.integers(0, 4, size=(30, 12)), rng.integers(0, 5, size=(30, 12)).astype(float)
    for k in (None, 1, 5, 12, 40):
        wanted = sklearn.metrics.ndcg_score(y, scores, k=k)
        assert m.ndcg_score(y, scores, k=k, gain="linear") == pytest.approx(wanted)
        wanted = sklearn.metrics.dcg_score(y, scores, k=k)
        assert m.dcg_score(y, scores, k=k, gain="linear") == pytest.approx(wanted)
    binary = (y > 1).astype(int)
    got = m.auc_score(binary, scores, return_per_query=True)
    for row in range(30):
        wanted = sklearn.metrics.roc_auc_score(binary[row], scores[row])
        assert got[row] == pytest.approx(wanted)
    untied = rng.normal(size=(30, 12))
    got = m.map_score(binary, untied, return_per_query=True)
    wanted = [
        sklearn.metrics.average_precision_score(a, b) for a, b in zip(binary, untied, strict=True)
    ]
    np.testing.assert_allclose(got, wanted)


def test_agrees_with_scipy_without_tied_scores():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=15)
    for y in (rng.permutation(15), rng.integers(0, 4, size=15)):
        wanted = scipy.stats.spearmanr(y, scores).statistic
        assert m.spearman_score(y, scores) == pytest.approx(wanted)
        assert m.kendall_tau_score(y, scores) == pytest.approx(
            scipy.stats.somersd(y, scores).statistic
        )
    y = rng.permutation(15)
    assert m.kendall_tau_score(y, scores) == pytest.approx(
        scipy.stats.kendalltau(y, scores).statistic
    )


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


def test_tied_err_of_a_large_block_against_simulation():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, size=60)
    orders = rng.permuted(np.tile(np.arange(60), (4000, 1)), axis=1)
    simulated = np.mean([oracles.err(y.tolist(), order, top=3) for order in orders.tolist()])
    exact = m.err_score(y, np.zeros(60), max_relevance=3)
    assert exact == pytest.approx(simulated, abs=0.01)
    assert m.mrr_score(y >= 3, np.zeros(60)) == pytest.approx(
        np.mean([oracles.reciprocal_rank((y >= 3).tolist(), o) for o in orders.tolist()]), abs=0.01
    )


def test_known_values_of_p2_theorem_3_3():
    """Half each of (1,1,0,0) and (0,0,1,1): 1,3,2,4 against 1,2,3,4 (math of P2, enumerated)."""
    y = [1, 1, 0, 0, 0, 0, 1, 1]
    groups = [0] * 4 + [1] * 4
    mixed, straight = [1, 3, 2, 4] * 2, [1, 2, 3, 4] * 2
    assert m.map_score(y, ranks=mixed, groups=groups) == pytest.approx(2 / 3)
    assert m.map_score(y, ranks=straight, groups=groups) == pytest.approx(17 / 24)
    assert m.err_score(y, ranks=mixed, groups=groups) == pytest.approx(43 / 96)
    assert m.err_score(y, ranks=straight, groups=groups) == pytest.approx(41 / 96)


# -------------------------------------------------------------------- precision over magnitudes


def graded_disagreement(y, scores, normalize):
    """The same in exact rationals."""
    lost = total = Fraction(0)
    for i, j in itertools.permutations(range(len(y)), 2):
        if y[i] > y[j]:
            weight = Fraction(float(y[i])) - Fraction(float(y[j]))
            total += weight
            lost += weight * (1 + np.sign(scores[j] - scores[i]).astype(int).item()) / 2
    if not normalize:
        return float(lost)
    return float(lost / total) if total else np.nan


scaled_query = st.tuples(
    st.integers(1, 12), st.integers(-150, 150), st.sampled_from([0.0, 1.0, 1e6, 1e15]),
    st.booleans(), st.booleans(), st.integers(0, 2**32 - 1),
)  # fmt: skip


def drawn_query(size, exponent, offset, few_labels, few_scores, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, size).astype(float) if few_labels else rng.normal(size=size)
    scores = rng.integers(0, 4, size).astype(float) if few_scores else rng.normal(size=size)
    return (y + offset) * 10.0**exponent, scores


@given(st.lists(scaled_query, min_size=1, max_size=6), st.booleans())
@settings(deadline=None, max_examples=150)
def test_graded_disagreement_of_a_query_does_not_depend_on_its_neighbours(drawn, normalize):
    """Whatever the magnitudes: bit by bit the value of the query alone, which is accurate."""
    queries = [drawn_query(*each) for each in drawn]
    groups = np.repeat(np.arange(len(queries)), [len(y) for y, _ in queries])
    loss = partial(
        m.pairwise_disagreement_loss,
        pair_weight="graded",
        normalize=normalize,
        return_per_query=True,
    )
    together = loss(
        np.concatenate([y for y, _ in queries]),
        np.concatenate([scores for _, scores in queries]),
        groups=groups,
    )
    for value, (y, scores) in zip(together, queries, strict=True):
        np.testing.assert_array_equal(value, loss(y, scores)[0])
        wanted = graded_disagreement(y, scores, normalize)
        np.testing.assert_allclose(value, wanted, rtol=1e-13, atol=0)
        assert not (normalize and value > 1)


def test_a_query_of_huge_labels_leaves_its_neighbours_alone():
    rng = np.random.default_rng(0)
    y, scores = rng.normal(size=(40, 10)), rng.normal(size=(40, 10))
    alone = m.pairwise_disagreement_loss(y, scores, pair_weight="graded", return_per_query=True)
    for place in (0, 20):
        huge = y.copy()
        huge[place] *= 1e15
        got = m.pairwise_disagreement_loss(
            huge, scores, pair_weight="graded", return_per_query=True
        )
        np.testing.assert_array_equal(np.delete(got, place), np.delete(alone, place))
        np.testing.assert_allclose(got[place], alone[place], rtol=1e-13)


def magnitudes(seed):
    """A few queries whose labels differ by up to 30 orders of magnitude."""
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
        partial(m.map_score, threshold=1),
        partial(m.mrr_score, threshold=1),
        partial(m.auc_score, threshold=1),
        partial(m.recall_at_k_score, threshold=1, k=3),
        lambda y, *rest, **named: m.err_score(np.minimum(y, 9), *rest, max_relevance=9, **named),
    ],
)
def test_no_metric_of_a_query_depends_on_the_other_queries(metric, ties):
    for seed in range(20):
        queries = list(magnitudes(seed))
        together = metric(
            np.concatenate([y for y, _ in queries]),
            np.concatenate([scores for _, scores in queries]),
            groups=np.repeat(np.arange(len(queries)), [len(y) for y, _ in queries]),
            ties=ties,
            return_per_query=True,
        )
        alone = [metric(*query, ties=ties, return_per_query=True)[0] for query in queries]
        np.testing.assert_array_equal(together, alone)


def test_graded_disagreement_of_labels_whose_differences_overflow():
    y, scores = [1e308, -1e308, 0.0], [1.0, 2.0, 3.0]
    assert m.pairwise_disagreement_loss(y, scores, pair_weight="graded") == 0.75
    with pytest.raises(ValueError, match=r"labels of query .* more than the largest number"):
        m.pairwise_disagreement_loss(y, scores, pair_weight="graded", normalize=False)


def test_small_discounts_below_large_ones_keep_their_digits():
    """The mean discount of tied places is no difference of sums over all places."""
    loss = Positional(utility=lambda y, queries: y, discount=[1e17, 3.0, 1.0, 0.0])
    queries = Queries.single(4)
    ranking = Ranking.from_scores(np.array([3.0, 1.0, 1.0, 0.0]), queries)
    y = np.array([0.0, 1.0, 1.0, 1.0])
    got = loss.measure.per_query(ranking, y)
    np.testing.assert_array_equal(got, [4.0])


# -------------------------------------------------------------------- ERR of tied blocks


def cascade_by_documents(passing, above, places):
    stopping = -np.diff(by_documents(passing, places))
    return (stopping / (above + np.arange(1, places + 1))).sum()


@pytest.mark.parametrize("m_rows", [1, 2, 3, 10, 100, 700])
@pytest.mark.parametrize("above", [0, 1, 30, 5000])
def test_err_of_a_tied_block_by_quadrature(m_rows, above):
    rng = np.random.default_rng(m_rows + above)
    for satisfaction in (
        rng.random(m_rows),
        rng.random(m_rows) * 1e-4,
        rng.integers(0, 5, m_rows) / 16,
        np.ones(m_rows),
        np.append(np.zeros(m_rows - 1), 0.5),
        np.append(np.zeros(m_rows - 1), 1.0),
        np.zeros(m_rows),
    ):
        passing = 1 - satisfaction
        wanted = cascade_by_documents(passing, above, m_rows)
        np.testing.assert_allclose(by_quadrature(passing, above), wanted, rtol=1e-9, atol=1e-13)
        assert abs(by_quadrature(passing, above) - wanted) < 1e-12


@pytest.mark.parametrize("places", [1, 7, 40, 60, 900, 1999, 2000])
def test_err_of_a_tied_block_with_a_cutoff_inside(places):
    rng = np.random.default_rng(places)
    for satisfaction in (rng.random(2000), rng.random(2000) * 1e-3, np.append(np.zeros(1999), 1)):
        passing = 1 - satisfaction
        wanted = cascade_by_documents(passing, 3, places)
        assert abs(block_value(passing, 3, places) - wanted) < 1e-12


@pytest.mark.parametrize("k", [None, 5, 1200, 1900])
def test_err_with_blocks_on_both_sides_of_the_threshold(monkeypatch, k):
    """The same value by the recursion alone and by all three ways."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 3000)
    scores = np.repeat([5.0, 4.0, 3.0, 2.0], [100, 1500, 1000, 400])
    groups = np.repeat([0, 1], [2600, 400])
    got = m.err_score(y, scores, groups=groups, k=k, return_per_query=True)
    monkeypatch.setattr("sklearn_rankcal.measures._cascade.LONG_BLOCK", 10**9)
    wanted = m.err_score(y, scores, groups=groups, k=k, return_per_query=True)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-12)


def test_err_of_a_long_tied_block_is_not_quadratic(monkeypatch):
    def refuse(passing, places):
        raise AssertionError(f"{passing.shape[-1]} documents, {places} places: quadratic")

    monkeypatch.setattr("sklearn_rankcal.measures._cascade.by_documents", refuse)
    monkeypatch.setattr("sklearn_rankcal.measures._tied_cascade.by_documents", refuse)
    y = np.random.default_rng(0).integers(0, 5, 40_000)
    whole = m.err_score(y, np.zeros(40_000))
    assert m.err_score(y, np.zeros(40_000), k=10) < whole < 1


# -------------------------------------------------------------------- trec_eval

TREC = Path(__file__).parents[2] / "shared" / "data" / "trec_eval"
needs_trec = pytest.mark.skipif(not TREC.exists(), reason="trec_eval's test data is not here")


def read_lines(name):
    with gzip.open(TREC / name, "rt") as file:
        return [line.split() for line in file if line.strip()]


def trec_input(qrels_name):
    """Labels, ranks and topics of the run, each topic followed by its unretrieved documents."""
    relevance = {(t, d): float(r) for t, _, d, r in read_lines(qrels_name)}
    retrieved = {}
    for topic, _, document, _, score, _ in read_lines("results.test.gz"):
        retrieved.setdefault(topic, []).append((float(score), document))
    y, ranks, topics, cut = [], [], [], []
    for topic, rows in retrieved.items():
        judged = {d for t, d in relevance if t == topic}
        if not judged:
            continue
        # trec_eval: by score, ties by document number, both descending
        listed = [document for _, document in sorted(rows, reverse=True)]
        missing = sorted(judged - set(listed))
        for place, document in enumerate(listed + missing):
            y.append(max(relevance.get((topic, document), 0.0), 0.0))
            ranks.append(place + 1)
            topics.append(topic)
        cut.append(len(listed))
    assert len(set(cut)) == 1
    return np.array(y), np.array(ranks), topics, cut[0]


def expected(name, per_topic=False):
    return {
        (measure, topic): float(value)
        for measure, topic, value in read_lines(name)
        if (topic == "all" and measure != "runid") or (per_topic and measure == "map")
    }


@needs_trec
def test_agrees_with_trec_eval():
    y, ranks, topics, retrieved = trec_input("qrels.test.gz")
    wanted = expected("out.test.a.gz")
    y = (y >= 1).astype(float)

    def check(name, value):
        assert value == pytest.approx(wanted[name, "all"], abs=5.1e-5), name

    check("map", m.map_score(y, ranks=ranks, groups=topics, k=retrieved))
    check("recip_rank", m.mrr_score(y, ranks=ranks, groups=topics))
    for k in (5, 10, 15, 20, 30, 100, 200, 500):
        check(f"P_{k}", m.precision_at_k_score(y, ranks=ranks, groups=topics, k=k))
        check(f"recall_{k}", m.recall_at_k_score(y, ranks=ranks, groups=topics, k=k))
        check(f"map_cut_{k}", m.map_score(y, ranks=ranks, groups=topics, k=k))
        check(
            f"ndcg_cut_{k}",
            m.ndcg_score(y, ranks=ranks, groups=topics, k=k, gain="linear"),
        )
    check("ndcg", m.ndcg_score(y, ranks=ranks, groups=topics, k=retrieved, gain="linear"))


# -------------------------------------------------------------------- input


def test_several_metrics_at_once_equal_one_by_one():
    rng = np.random.default_rng(0)
    y, scores, groups = rng.integers(0, 3, 200), rng.integers(0, 9, 200), rng.integers(0, 20, 200)
    names = ["ndcg@5", "map", "err@10", "precision@3", "kendall_tau", "pairwise_disagreement"]
    values = m.evaluate_rankings(y, scores, groups=groups, metrics=names, threshold=1)
    assert values["ndcg@5"] == pytest.approx(m.ndcg_score(y, scores, k=5, groups=groups))
    assert values["map"] == pytest.approx(m.map_score(y, scores, groups=groups, threshold=1))
    assert values["err@10"] == pytest.approx(m.err_score(y, scores, groups=groups, k=10))
    assert values["precision@3"] == pytest.approx(
        m.precision_at_k_score(y, scores, groups=groups, k=3, threshold=1)
    )
    assert values["kendall_tau"] == pytest.approx(m.kendall_tau_score(y, scores, groups=groups))
    assert values["pairwise_disagreement"] == pytest.approx(
        m.pairwise_disagreement_loss(y, scores, groups=groups)
    )
    many = m.evaluate_rankings(
        y, scores, groups=groups, metrics=["map"], threshold=1, return_per_query=True
    )
    assert np.nanmean(many["map"]) == pytest.approx(values["map"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: m.ndcg_score(Y), "Pass either y_score .* not neither"),
        (lambda: m.ndcg_score(Y, S, ranks=[1, 2, 3]), "not both"),
        (lambda: m.ndcg_score(Y, S[:2]), "y_score has 2 entries, but there are 3 rows"),
        (lambda: m.ndcg_score(Y, [0, np.nan, 1]), "y_score contains NaN or infinity"),
        (lambda: m.ndcg_score([1, np.nan, 0], S), "y contains NaN or infinity"),
        (lambda: m.ndcg_score(Y, S, groups=[1, 2]), "groups has 2 entries, but X has 3 rows"),
        (lambda: m.ndcg_score(Y, ranks=[0, 1, 2]), "permutation of 1 .. r"),
        (lambda: m.ndcg_score(Y, ranks=[1, 1, 2]), "permutation of 1 .. r"),
        (lambda: m.ndcg_score(Y, ranks=[1, 2.5, 3]), "whole numbers"),
        (lambda: m.ndcg_score(Y, ranks=[1, 2]), r"ranks has shape \(2,\)"),
        (lambda: m.ndcg_score(Y, S, ties="random"), "ties must be one of"),
        (lambda: m.ndcg_score(Y, S, zero_division=2), "zero_division must be"),
        (lambda: m.ndcg_score(Y, S, zero_division="raise"), "zero_division must be"),
        (lambda: m.ndcg_score(Y, S, k=0), "k must be at least 1"),
        (lambda: m.ndcg_score(Y, S, k=1.5), "k must be a whole number"),
        (lambda: m.ndcg_score([-1, 0, 1], S), "relevance must be >= 0"),
        (lambda: m.ndcg_score([1100, 0, 1], S), "overflows"),
        (lambda: m.ndcg_score(Y, S, gain="exp"), "gain must be"),
        (lambda: m.ndcg_score(Y, S, gain=lambda y: -y), "Negative values"),
        (lambda: m.precision_at_k_score(Y, S, k=0), "k must be at least 1"),
        (lambda: m.map_score([0, 1, 2], S), "binary relevance, 0 or 1; got 2"),
        (lambda: m.eru_score(Y, S, half_life=1), "half_life must be finite and > 1"),
        (lambda: m.err_score([0, 4, 1], S, max_relevance=3), "exceeds max_relevance=3"),
        (lambda: m.ndcg_score(Y, S, sample_weight=[1, -1, 1]), "Negative values in data"),
        (lambda: m.ndcg_score(Y, S, sample_weight=[1, np.nan, 1]), "sample_weight contains NaN"),
        (lambda: m.ndcg_score(Y, S, sample_weight=[1, 1]), "one weight per row"),
        (lambda: m.ndcg_score([], []), "empty"),
        (lambda: m.ndcg_score(Y, [1 + 1j, 2, 3]), "must be real numbers"),
        (lambda: m.map_score(Y, S, threshold=np.nan), "threshold must be a finite number"),
        (lambda: m.ndcg_score([[1, 0]], [1, 0]), "y_score has shape"),
        (
            lambda: m.ndcg_score(relevance_labels(Y, [0, 0, 1]), S, groups=[0, 1, 1]),
            "different queries",
        ),
        (lambda: m.ndcg_score(relevance_labels(Y, [0, 0, 1])[1:], S[1:]), "splitter has cut it"),
        (lambda: m.evaluate_rankings(Y, S, metrics=["nope"]), "Unknown metric 'nope'. Known: auc"),
        (lambda: m.evaluate_rankings(Y, S, metrics=["ndcg@x"]), "cutoff in 'ndcg@x'"),
        (lambda: m.evaluate_rankings(Y, S, metrics=["auc@3"]), "has no cutoff"),
        (lambda: m.evaluate_rankings(Y, S, metrics=["recall"]), "needs a cutoff"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# -------------------------------------------------------------------- what is easily mistaken

QUERIES = make_ranking(40, (2, 12), random_state=0)
GOOD_RANKS = QUERIES.bayes_ranks
SIZES = np.bincount(QUERIES.groups)[QUERIES.groups]


@pytest.mark.parametrize(
    "score",
    [
        m.ndcg_score,
        m.err_score,
        partial(m.map_score, threshold=2),
        m.kendall_tau_score,
        partial(m.evaluate_rankings, metrics="ndcg"),
    ],
)
@pytest.mark.parametrize("dtype", [np.int64, np.float32])
def test_positions_passed_as_scores_warn(score, dtype):
    with pytest.warns(PositionsAsScoresWarning, match="look like positions.* as ranks=") as record:
        score(QUERIES.y, GOOD_RANKS.astype(dtype), groups=QUERIES.groups)
    assert [warning.filename for warning in record] == [__file__]


def test_positions_passed_to_a_comparison_warn():
    ranks = GOOD_RANKS
    with pytest.warns(PositionsAsScoresWarning, match="as_ranks=True") as record:
        m.compare_rankings(QUERIES.y, ranks, -ranks, groups=QUERIES.groups, n_resamples=10)
    assert [warning.filename for warning in record] == [__file__]
    with pytest.warns(PositionsAsScoresWarning):
        systems = {"a": ranks, "b": -ranks}
        m.compare_systems(QUERIES.y, systems, groups=QUERIES.groups, n_resamples=10)


@pytest.mark.filterwarnings("error")
def test_what_does_not_look_like_positions_passes_without_a_word():
    y, groups = QUERIES.y, QUERIES.groups
    wanted = m.ndcg_score(y, ranks=GOOD_RANKS, groups=groups)
    for scores in (
        SIZES + 1 - GOOD_RANKS,  # 1 .. r in every query, and larger is better
        -GOOD_RANKS,
        QUERIES.latent,
    ):
        assert m.ndcg_score(y, scores, groups=groups) == pytest.approx(wanted)
    m.ndcg_score(y, GOOD_RANKS - 1, groups=groups)  # 0 .. r - 1
    m.ndcg_score(y, np.where(np.arange(len(y)), GOOD_RANKS, 7), groups=groups)
    m.ndcg_score([[2, 1, 0]], [[1, 2, 3]])  # one short query may be chance
    m.dcg_score(np.ones(len(y)), GOOD_RANKS, groups=groups)  # no order is better than another


def test_one_long_query_of_positions_warns():
    with pytest.warns(PositionsAsScoresWarning):
        m.ndcg_score([np.arange(12)[::-1]], [np.arange(1, 13)])


@pytest.mark.parametrize("score", [m.ndcg_score, partial(m.evaluate_rankings, metrics="ndcg")])
def test_rows_without_query_ids_are_one_query_with_a_warning(score):
    with pytest.warns(MissingGroupsWarning, match="all 3 rows are scored as ONE query") as record:
        without = score(Y, S)
    assert [warning.filename for warning in record] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for said in (
            score(Y, S, groups=np.zeros(3)),
            score([Y], [S]),
            score(relevance_labels(Y, [0, 0, 0]), S),
        ):
            assert said == without
        score([1], [0.5])  # one row is one query


@pytest.mark.parametrize("keyword", ["group", "qid", "query_id"])
@pytest.mark.parametrize(
    "call",
    [
        m.ndcg_score,
        m.evaluate_rankings,
        lambda y, scores, **groups: m.compare_rankings(y, scores, scores, **groups),
        lambda y, scores, **groups: m.compare_systems(y, {"a": scores, "b": scores}, **groups),
        lambda y, scores, **groups: CalibratedRanker(Ridge()).fit(scores[:, None], y, **groups),
        lambda y, scores, **groups: fitted_ranker().predict(scores[:, None], **groups),
        lambda y, scores, **groups: fitted_ranker().predict_order(scores[:, None], **groups),
        lambda y, scores, **groups: fitted_ranker().decision_function(scores[:, None], **groups),
        lambda y, scores, **groups: fitted_ranker().score(scores[:, None], y, **groups),
        lambda y, scores, **groups: fitted_ranker("pd").decode_report(scores[:, None], **groups),
        lambda y, scores, **groups: fitted_ranker("pd").predict_preferences(
            scores[:, None], **groups
        ),
        lambda y, scores, **groups: fitted_ranker().diagnose(scores[:, None], **groups),
        lambda y, scores, **groups: m.get_ranking_scorer("ndcg")(
            fitted_ranker(), scores[:, None], y, **groups
        ),
    ],
)
def test_group_keywords_of_other_libraries_are_named(call, keyword):
    with pytest.raises(TypeError, match=f"no parameter '{keyword}'. Pass groups=<query id of each"):
        call(QUERIES.y, QUERIES.latent, **{keyword: QUERIES.groups})


def fitted_ranker(loss="ndcg"):
    ranker = CalibratedRanker(PairwiseRidge() if loss == "pd" else Ridge(), loss=loss)
    return ranker.fit(QUERIES.latent[:, None], QUERIES.y, QUERIES.groups)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda **q: m.compare_rankings(*[QUERIES.y] * 3, metric="ndcg@10", threshold=1, **q),
            "'ndcg@10' has no parameter 'threshold'. Parameters of 'ndcg@10': k, gain. Metrics that"
            " have it: auc, map, mrr, precision, recall",
        ),
        (
            lambda **q: m.evaluate_rankings(
                QUERIES.y, QUERIES.y, gain="linear", metrics="auc", **q
            ),
            "'auc' has no parameter 'gain'. Parameters of 'auc': threshold. .* have it: dcg, ndcg",
        ),
        (
            lambda **q: m.evaluate_rankings(
                QUERIES.y, QUERIES.y, gian="linear", metrics=["ndcg", "spearman"], **q
            ),
            "'ndcg' and 'spearman' have no parameter 'gian'.* 'spearman' has no parameters",
        ),
        (lambda **q: m.get_ranking_scorer("ndcg", shrinkage=0), "no parameter 'shrinkage'"),
        (lambda **q: m.get_ranking_scorer("ndcg@10", k=5), "cutoff in its name; k=5 contradicts"),
        (lambda **q: m.ndcg_score(QUERIES.y, QUERIES.y, nothing=1, **q), "Its parameters: y_true"),
        (lambda **q: m.ndcg_score(QUERIES.y, QUERIES.y, gains="x", **q), "Did you mean 'gain'"),
        (lambda **q: m.compare_systems(QUERIES.y, [QUERIES.y], **q), "map the name of each system"),
    ],
)
def test_parameters_that_do_not_exist_are_named(call, message):
    with pytest.raises(TypeError, match=message):
        call(groups=QUERIES.groups)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("ndgc", "Did you mean 'ndcg'?"),
        ("NDCG@10", "Did you mean 'ndcg@10'?"),
        ("ndgc@5", "Did you mean 'ndcg@5'?"),
        ("ndcg10", "Did you mean 'ndcg@10'?"),
        ("ndcg_cut_10", "Did you mean 'ndcg@10'?"),
        ("P@5", "the nearest is 'precision@5'"),
        ("pd", "the nearest is 'pairwise_disagreement'"),
        ("wta", "the nearest is 'precision@1'"),
        ("kendall", "the nearest is 'kendall_tau'"),
        ("nothing like it", "Unknown metric 'nothing like it'. Known: auc"),
    ],
)
def test_misspelt_metrics_get_the_nearest(name, hint):
    for call in (m.get_ranking_scorer, lambda name: m.evaluate_rankings([Y], [S], metrics=[name])):
        with pytest.raises(ValueError, match="Unknown metric") as error:
            call(name)
        assert hint in str(error.value)


def test_values_per_query_come_with_their_ids():
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.repeat(["q7", "q3", "q5"], 6))
    y, scores = rng.integers(0, 3, 18), rng.normal(size=18)
    table = m.evaluate_rankings(y, scores, groups=groups, metrics="ndcg", return_per_query=True)
    assert table["query"].tolist() == list(dict.fromkeys(groups.tolist()))
    for query, value in zip(table["query"], table["ndcg"], strict=True):
        rows = groups == query
        assert value == m.ndcg_score(y[rows], scores[rows], groups=groups[rows])


def test_parameters_go_to_the_metrics_that_have_them():
    values = m.evaluate_rankings(
        QUERIES.y, QUERIES.latent, groups=QUERIES.groups, metrics=["ndcg@5", "mrr", "spearman"],
        gain="linear", threshold=3,
    )  # fmt: skip
    same = {"groups": QUERIES.groups}
    assert values["ndcg@5"] == m.ndcg_score(QUERIES.y, QUERIES.latent, k=5, gain="linear", **same)
    assert values["mrr"] == m.mrr_score(QUERIES.y, QUERIES.latent, threshold=3, **same)


# -------------------------------------------------------------------- comparison


def test_bootstrap_interval_matches_the_normal_one():
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.3, 1, 400), rng.normal(0, 1, 400)
    result = m.paired_bootstrap(a, b, random_state=1)
    half = 1.96 * (a - b).std() / 20
    assert result.difference == pytest.approx((a - b).mean())
    assert result.low == pytest.approx(result.difference - half, abs=0.02)
    assert result.high == pytest.approx(result.difference + half, abs=0.02)
    assert result.p_value < 0.05
    swapped = m.paired_bootstrap(b, a, random_state=1)
    assert swapped.low == pytest.approx(-result.high)
    assert "400 queries" in str(result)


def test_compare_rankings_counts_defined_queries_and_weights():
    y, groups = [1, 0, 0, 0, 1, 0], [0, 0, 1, 1, 2, 2]
    first, second = [1, 0, 1, 0, 1, 0], [0, 1, 0, 1, 1, 0]
    result = m.compare_rankings(y, first, second, metric="mrr", groups=groups, n_resamples=50)
    assert (result.n_queries, result.first, result.second) == (2, 1.0, 0.75)
    weighted = m.compare_rankings(
        y,
        first,
        second,
        metric="mrr",
        groups=groups,
        sample_weight=[3, 3, 1, 1, 1, 1],
        n_resamples=50,
    )
    assert weighted.second == pytest.approx((3 * 0.5 + 1) / 4)
    ranks = [1, 2, 1, 2, 1, 2]
    assert m.compare_rankings(y, ranks, ranks, as_ranks=True, groups=groups).p_value == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"first": [1.0], "second": [1.0, 2.0]}, "1-D arrays of the same length"),
        ({"first": [np.nan], "second": [1.0]}, "no query"),
        ({"first": [1.0], "second": [1.0], "confidence_level": 95}, "confidence_level"),
        ({"first": [1.0], "second": [1.0], "n_resamples": 0}, "n_resamples"),
        ({"first": [1.0], "second": [1.0], "weight": [-1.0]}, "non-negative"),
    ],
)
def test_bad_bootstrap_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        m.paired_bootstrap(**arguments)


def test_several_metrics_in_one_comparison():
    rng = np.random.default_rng(0)
    noisy = QUERIES.latent + rng.normal(size=len(QUERIES.y))
    arguments = {"groups": QUERIES.groups, "n_resamples": 200}
    found = m.compare_rankings(
        QUERIES.y, QUERIES.latent, noisy, metric=["ndcg@5", "map"], threshold=2, **arguments
    )
    assert found["ndcg@5"] == m.compare_rankings(
        QUERIES.y, QUERIES.latent, noisy, metric="ndcg@5", **arguments
    )
    assert found["map"] == m.compare_rankings(
        QUERIES.y, QUERIES.latent, noisy, metric="map", threshold=2, **arguments
    )


def test_systems_are_compared_in_pairs_or_with_a_baseline():
    rng = np.random.default_rng(0)
    n = len(QUERIES.y)
    systems = {
        "best": QUERIES.latent,
        "noisy": QUERIES.latent + rng.normal(size=n),
        "noise": rng.normal(size=n),
        "more noise": rng.normal(size=n),
    }
    arguments = {"groups": QUERIES.groups, "metrics": ["ndcg@5", "err"], "n_resamples": 500}
    table = m.compare_systems(QUERIES.y, systems, **arguments)
    assert {len(column) for column in table.values()} == {12}
    for row in range(12):
        names = [str(table[column][row]) for column in ("metric", "first", "second")]
        single = m.compare_rankings(
            QUERIES.y, systems[names[1]], systems[names[2]], metric=names[0],
            groups=QUERIES.groups, n_resamples=500,
        )  # fmt: skip
        for column in ("difference", "low", "high", "p_value", "n_queries"):
            assert table[column][row] == getattr(single, column)
        assert table["first_mean"][row] == single.first
    assert (table["adjusted_p_value"] >= table["p_value"]).all()
    plain = m.compare_systems(QUERIES.y, systems, correction=None, **arguments)
    np.testing.assert_array_equal(plain["adjusted_p_value"], table["p_value"])
    against = m.compare_systems(QUERIES.y, systems, baseline="noise", **arguments)
    assert against["first"].tolist() == ["best", "noisy", "more noise"] * 2
    assert set(against["second"]) == {"noise"}


def test_holms_correction():
    """Holm (1979): step down, factors m, m - 1, .., 1, never decreasing, at most 1."""
    got = _holm(np.array([0.01, 0.04, 0.03, 0.005]))
    np.testing.assert_allclose(got, [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(_holm(np.array([0.9, 0.6])), [1.0, 1.0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"systems": {"a": S}}, "at least two rankings; got 1"),
        ({"systems": {"a": S, "b": S}, "baseline": "c"}, "one of the systems, 'a', 'b'; got 'c'"),
        ({"systems": {"a": S, "b": S}, "correction": "bonferroni"}, "'holm' or None"),
        ({"systems": {"a": S, "b": S}, "metrics": []}, "metrics is empty"),
    ],
)
def test_bad_comparisons_of_systems(arguments, message):
    with pytest.raises(ValueError, match=message):
        m.compare_systems(Y, groups=[0, 0, 0], **arguments)
