"""Rankings under rules: `Rules`, `Quota`, and the decoders and rankers that take them."""

import itertools
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_rankcal import CalibratedRanker, LinearRanker
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.decoders import (
    AveragePrecisionDecoder,
    PreferenceDecoder,
    Quota,
    Rules,
    decode_average_precision,
    decode_preferences,
    decode_scores,
)
from sklearn_rankcal.exceptions import ContradictoryRulesError
from sklearn_rankcal.labels import preference_labels
from sklearn_rankcal.losses import get_loss
from sklearn_rankcal.models import PairwiseRidge
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.rules._query_rules import _failure_probability, _fair_table  # by itself
from sklearn_rankcal.rules._solvers import (
    Disagreement,
    ExpectedPrecision,
    best_linear_order,
    best_of_subsets,
)
from tests.rules_oracle import (
    AveragePrecisionCost,
    PreferenceCost,
    ScoreCost,
    best_value,
    random_rules,
    violation,
)

LOG = 1 / np.log2(np.arange(2, 60))
KINDS = [
    ("quota",),
    ("place", "quota"),
    ("interval",),
    ("blocked", "quota", "before"),
    ("place", "interval", "blocked", "before", "quota"),
]
DISCOUNTS = [
    lambda r: LOG[:r],
    lambda r: (np.arange(r) < 3) / 3.0,
    lambda r: -np.arange(1.0, r + 1),
]


# -------------------------------------------------------------------- against enumeration


def random_problem(space, r, rng):
    """The cost of orders by the oracle, and a function that decodes under rules."""
    if space == "scores":
        values = rng.standard_normal(r).round(rng.integers(3))
        discounts = DISCOUNTS[rng.integers(3)](r)
        decode = lambda rules: decode_scores(values, rules=rules, discounts=discounts)  # noqa: E731
        return ScoreCost(values, discounts), decode
    u = rng.standard_normal((r, r)).round(1)
    if space == "pairs":
        return PreferenceCost(u - u.T), lambda rules: decode_preferences(u, rules=rules)
    u = u + u.T
    return AveragePrecisionCost(u), lambda rules: decode_average_precision(u, rules=rules)


def check_against_enumeration(space, n_cases, seed):
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n_cases):
        r = int(rng.integers(2, 7))
        soft = None if rng.random() < 0.7 else float(rng.choice([0.05, 0.3, 2.0]))
        rules = random_rules(r, rng, soft, KINDS[rng.integers(len(KINDS))])
        cost, decode = random_problem(space, r, rng)
        try:
            result = decode(rules)
        except ContradictoryRulesError as error:
            assert best_value(rules, cost) is None
            assert error.rules
            found.append("contradiction")
            continue
        except ValueError as error:
            # one row whose own rules leave it no place, or a place that the query does not have
            assert re.search("or below; row|cannot be at place", str(error))
            assert soft is not None or best_value(rules, cost) is None
            continue
        order = np.argsort(result.ranks)
        broken = violation(rules, order.tolist())
        value = cost(order) + (soft or 0.0) * broken
        assert soft is not None or broken == 0
        assert value == pytest.approx(best_value(rules, cost), abs=1e-9)
        if space == "scores":
            optimal, texts = result.optimal[0], result.broken[0]
            assert result.objective[0] == pytest.approx(value, abs=1e-9)
        else:
            optimal, texts = result.optimal, result.broken
        assert optimal
        assert bool(texts) == (broken > 0)
        found.append(str(np.atleast_1d(result.method)[0]))
    return set(found)


@pytest.mark.parametrize("space", ["scores", "pairs", "symmetric_pairs"])
def test_rankings_under_rules_are_the_best_of_all_that_keep_them(space):
    found = check_against_enumeration(space, 40, seed=0)
    methods = {"sort", "greedy", "integer_program"} if space == "scores" else {"exact"}
    assert found >= methods | {"contradiction"}


@pytest.mark.slow
@pytest.mark.parametrize("space", ["scores", "pairs", "symmetric_pairs"])
def test_many_rankings_under_rules_are_the_best(space):
    check_against_enumeration(space, 600, seed=1)


# -------------------------------------------------------------------- against another formulation


def plain_integer_program(scores, discounts, rules):
    """The least objective by one variable for each document and place; None if there is none.

    For one query without blocked documents, straight from the words of the rules.
    """
    r = len(scores)
    x = np.arange(r * r).reshape(r, r)  # x[i, j]: document i is at place j
    rows, low, high = [], [], []

    def add(variables, at_least, at_most, sign=1.0):
        row = np.zeros(r * r)
        row[variables] = sign
        rows.append(row)
        low.append(at_least)
        high.append(at_most)

    for i in range(r):
        add(x[i], 1, 1)
        add(x[:, i], 1, 1)
    for name in ("place", "earliest", "latest"):
        value = getattr(rules, name)
        for i in range(r if value is not None else 0):
            if value[i] > 0:
                k = int(value[i])
                forbidden = {"place": np.delete(x[i], k - 1), "earliest": x[i, : k - 1]}
                add(forbidden.get(name, x[i, k:]), 0, 0)
    for a, b in rules.before:
        row = np.zeros(r * r)
        row[x[b]] = np.arange(r)
        row[x[a]] = -np.arange(r)
        rows.append(row)
        low.append(1)
        high.append(np.inf)
    for quota in rules.quotas:
        of = np.asarray(quota.of)
        named = quota.at_least if isinstance(quota.at_least, dict) else {}
        for name in {*([True] if of.dtype == bool else of.tolist()), *named}:
            members = np.flatnonzero(of == name)
            at_least = named.get(name) if named else quota.at_least
            for j, first in enumerate(np.atleast_1d(quota.first)):
                inside = x[members][:, :first].ravel()
                if (len(members) or name in named) and at_least is not None:
                    add(inside, np.atleast_1d(at_least)[j], np.inf)
                if len(members) and quota.at_most is not None and first < r:
                    add(inside, -np.inf, np.atleast_1d(quota.at_most)[j])
    result = milp(
        -np.outer(scores, discounts).ravel() * 1e3,
        constraints=LinearConstraint(np.array(rows), low, high),
        integrality=np.ones(r * r),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0},
    )
    return None if result.x is None else result.fun / 1e3


def check_against_integer_program(n_cases, sizes, seed):
    rng = np.random.default_rng(seed)
    methods = []
    for _ in range(n_cases):
        r = int(rng.integers(*sizes))
        rules = random_rules(r, rng, None, KINDS[rng.integers(3)])
        scores, discounts = rng.standard_normal(r), DISCOUNTS[rng.integers(3)](r)
        wanted = plain_integer_program(scores, discounts, rules)
        try:
            result = decode_scores(scores, rules=rules, discounts=discounts)
        except ValueError:
            assert wanted is None
            continue
        assert wanted is not None
        assert violation(rules, np.argsort(result.ranks).tolist()) == 0
        assert result.objective[0] == pytest.approx(wanted, abs=1e-6)
        methods.append(result.method[0])
    return set(methods)


def test_longer_queries_agree_with_another_formulation():
    methods = check_against_integer_program(25, (8, 18), seed=0)
    assert methods >= {"greedy", "integer_program"}


@pytest.mark.slow
def test_many_longer_queries_agree_with_another_formulation():
    check_against_integer_program(1000, (8, 41), seed=1)


def test_quotas_with_lower_and_upper_bounds_are_an_assignment():
    rng = np.random.default_rng(0)
    of, scores = rng.integers(0, 3, 14), rng.standard_normal(14)
    quota = Quota(of, first=[4, 8], at_least=[1, 2], at_most=[2, 3])
    result = decode_scores(scores, rules=Rules(quotas=[quota]))
    assert result.method[0] == "assignment"
    wanted = plain_integer_program(scores, LOG[:14], Rules(quotas=[quota]))
    assert result.objective[0] == pytest.approx(wanted)


@pytest.mark.parametrize("soft", [None, 0.3])
def test_the_linear_ordering_program_agrees_with_dynamic_programming(soft):
    rng = np.random.default_rng(3)
    for _ in range(12):
        r = int(rng.integers(5, 9))
        d = rng.standard_normal((r, r))
        d = d - d.T
        rules = random_rules(r, rng, soft, ("place", "before", "quota"))
        try:
            (own,) = rules.of_queries(Queries.single(r))
        except ValueError:
            continue
        exact = best_of_subsets(Disagreement(d), own, soft)
        found = best_linear_order(Disagreement(d), own, soft, None)
        assert (exact is None) == (found is None)
        if found is not None:
            value = Disagreement(d).value(found.order) + (soft or 0) * own.violation(found.order)
            assert found.proved
            assert value == pytest.approx(exact.bound)


@pytest.mark.parametrize("kind", [Disagreement, ExpectedPrecision])
def test_changes_of_moves_are_differences_of_values(kind):
    rng = np.random.default_rng(0)
    u = rng.standard_normal((7, 7))
    objective = kind(u - u.T if kind is Disagreement else u + u.T)
    order = rng.permutation(7)
    insert, exchange = objective.moves(order)
    before = objective.value(order)
    for p, q in itertools.product(range(7), range(7)):
        moved = np.insert(np.delete(order, p), q, order[p])
        assert insert[p, q] == pytest.approx(objective.value(moved) - before, abs=1e-12)
        if p < q:
            moved = order.copy()
            moved[[p, q]] = order[[q, p]]
            assert exchange[p, q] == pytest.approx(objective.value(moved) - before, abs=1e-12)
        else:
            assert exchange[p, q] == np.inf


@pytest.mark.parametrize(
    "decode", [decode_preferences, decode_average_precision], ids=["pd", "map"]
)
@pytest.mark.parametrize("soft", [None, 0.5])
def test_the_local_search_keeps_rules_and_its_bound_holds(decode, soft):
    rng = np.random.default_rng(1)
    u = rng.random((20, 20))
    u = u + u.T if decode is decode_average_precision else u
    place, blocked = np.zeros(20), np.zeros(20, bool)
    place[4], blocked[7] = 2, True
    quota = Quota(rng.integers(0, 4, 20), first=6, at_most=2)
    rules = Rules(place=place, blocked=blocked, before=[(3, 9)], quotas=[quota], soft=soft)
    free, result = decode(u), decode(u, rules=rules)
    order = np.argsort(result.ranks)
    assert result.method == "local_search"
    assert soft is not None or violation(rules, order.tolist()) == 0
    assert order[-1] == 7
    assert result.lower_bound <= result.objective
    assert result.lower_bound == pytest.approx(free.lower_bound)
    kind = Disagreement(u - u.T) if decode is decode_preferences else ExpectedPrecision(u)
    # no single move that keeps the rules is better
    for changes, move in zip(kind.moves(order), (0, 1), strict=True):
        for p, q in np.argwhere(changes < -1e-9):
            moved = np.insert(np.delete(order, p), q, order[p])
            if move == 1:
                moved = order.copy()
                moved[[p, q]] = order[[q, p]]
            more = violation(rules, moved.tolist()) - violation(rules, order.tolist())
            assert more > 0 if soft is None else changes[p, q] + soft * more > -1e-9


def test_exact_preferences_prove_what_the_local_search_finds():
    rng = np.random.default_rng(5)
    u = rng.random((18, 18)) + np.triu(np.ones((18, 18)))
    rules = Rules(place=np.where(np.arange(18) == 15, 1, 0), before=[(9, 2)])
    found = decode_preferences(u, "local_search", rules=rules)
    exact = decode_preferences(u, "exact", rules=rules)
    assert exact.optimal
    assert exact.objective <= found.objective + 1e-9
    assert exact.objective >= found.lower_bound - 1e-9
    assert violation(rules, np.argsort(exact.ranks).tolist()) == 0


# -------------------------------------------------------------------- the theorem


@pytest.mark.parametrize("name", ["ndcg", "precision@2", "pd", "map"])
def test_expected_targets_lead_to_the_best_permitted_ranking(name):
    """Theorem 3 of Ramaswamy et al. (2013) with a set of permitted rankings."""
    rng = np.random.default_rng(0)
    loss = get_loss(name).resolve(np.array([0.0, 1.0]))
    for _ in range(15):
        r = 4
        labels = rng.integers(0, 2, (3, r)).astype(float)
        labels[:, rng.integers(r)] = 1.0  # every labelling has a relevant document
        chance = rng.dirichlet(np.ones(3))
        rules = random_rules(r, rng, None, ("place", "before", "quota"))
        queries = Queries.single(r)
        permitted = [
            np.argsort(order) + 1
            for order in itertools.permutations(range(r))
            if violation(rules, list(order)) == 0
        ]
        if not permitted:
            continue

        def quality(ranks, labels=labels, chance=chance, queries=queries):
            values = []
            for y in labels:
                weight = loss.query_weight(y, queries)  # of the query among others, for "pd"
                value = np.nan_to_num(loss.metric(y, np.asarray(ranks), queries))
                values.append(float(value[0] * (1.0 if weight is None else weight[0])))
            return chance @ values

        targets = [loss.training_targets(y, queries) for y in labels]
        if loss.space == "scores":
            u = sum(c * t for c, t in zip(chance, targets, strict=True))
            discounts = loss.discounts(r)
            ranks = decode_scores(u, rules=rules, discounts=discounts).ranks
        else:
            every, all_valid = np.arange(r)[None], np.ones((1, r), bool)
            matrices = [t.matrices(every, all_valid)[0] for t in targets]
            u = sum(c * m for c, m in zip(chance, matrices, strict=True))
            u = u[np.triu_indices(r, 1 if name == "pd" else 0)]
            kind = PreferenceDecoder if name == "pd" else AveragePrecisionDecoder
            decoder = kind("exact")
            ranks = decoder.decode(u, queries, rules=rules).ranks
        assert quality(ranks) == pytest.approx(max(map(quality, permitted)), abs=1e-9)


def test_greedy_loses_with_groups_that_overlap():
    scores = np.array([1.0, 0.9, 0.9, 0.1])
    of = [[True, True, False, False], [True, False, True, False]]
    rules = Rules(quotas=[Quota(one, first=2, at_most=1) for one in of])
    best = decode_scores(scores, rules=rules)
    assert best.objective[0] == pytest.approx(-2.0109, abs=1e-4)
    greedy = [0, 3, 1, 2]
    assert violation(rules, greedy) == 0
    assert scores[greedy] @ LOG[:4] == pytest.approx(1.9007, abs=1e-4)


def contradicted(weights, order):
    return sum(weights[order[b], order[a]] for b in range(len(order)) for a in range(b))


def expected_scores(labels, chances, loss):
    """The expected targets and preferences of one query, and the resolved loss."""
    r = labels.shape[1]
    loss = loss.resolve(labels.reshape(-1))
    queries = Queries.single(r)
    u = sum(p * loss.encode(one, queries) for p, one in zip(chances, labels, strict=True))
    difference = labels[:, :, None] - labels[:, None, :]
    weight = np.maximum(difference, 0) if loss.pair_weight == "graded" else difference > 0
    return u, np.tensordot(chances, weight.astype(float), 1), loss


@pytest.mark.parametrize("score_function", ["borda", "least_squares"])
@pytest.mark.parametrize(
    ("grades", "pair_weight"),
    [([0.0, 1.0], "binary"), ([2.0, 5.0], "graded"), ([0.0, 1.0, 3.0], "graded")],
)
def test_disagreement_by_scores_is_exact_under_rules_where_it_says_so(
    grades, pair_weight, score_function
):
    rng = np.random.default_rng(0)
    loss = get_loss("pd_by_scores").set_params(
        pair_weight=pair_weight, score_function=score_function
    )
    for _ in range(8):
        r = int(rng.integers(2, 6))
        labels = rng.choice(grades, (3, r))
        u, weights, resolved = expected_scores(labels, rng.dirichlet(np.ones(3)), loss)
        assert resolved.exact_under_rules
        rules = random_rules(r, rng, None, ("place", "quota", "before"))
        permitted = [p for p in itertools.permutations(range(r)) if violation(rules, p) == 0]
        if permitted:
            ranks = decode_scores(u, rules=rules, discounts=-np.arange(1.0, r + 1)).ranks
            found = contradicted(weights, np.argsort(ranks))
            assert found == pytest.approx(min(contradicted(weights, p) for p in permitted))


def test_disagreement_by_scores_of_other_preferences_is_not_called_proved():
    """The document that wins most is pinned below the top; only the pairs say who is better."""
    pairs, weight = [(0, 1), (2, 0), (2, 1)], [1.0, 1.6, 0.1]
    weights = np.zeros((3, 3))
    weights[tuple(np.transpose(pairs))] = weight
    X, groups = np.eye(3), [0] * 3
    labels = preference_labels(pairs, groups, weight)
    rules = Rules(place=[0, 0, 2])
    free = Ridge(alpha=1e-9, fit_intercept=False)
    found = {}
    for loss in ("pd", "pd_by_scores"):
        ranker = CalibratedRanker(free, loss=loss, context=None).fit(X, labels)
        ranks = ranker.predict(X, groups, rules=rules)
        found[loss] = contradicted(weights, np.argsort(ranks)), ranker
    assert found["pd_by_scores"][0] == pytest.approx(1.6)
    report = found["pd_by_scores"][1].rules_report(X, groups, rules=rules)
    assert report["optimal"].tolist() == [False]
    best = np.argsort(decode_preferences(weights, rules=rules).ranks)
    assert contradicted(weights, best) == pytest.approx(1.1)
    # nothing is lost where no rule binds, nor with grades whose differences are the weights
    report = found["pd_by_scores"][1].rules_report(X, groups, rules=Rules())
    assert report["optimal"].tolist() == [True]
    graded = get_loss("pd_by_scores").set_params(pair_weight="graded")
    for loss, proved in ((graded, True), ("pd_by_scores", False)):
        ranker = CalibratedRanker(free, loss=loss, context=None).fit(X, [2.0, 1.0, 0.0], groups)
        assert ranker.rules_report(X, groups, rules=rules)["optimal"].tolist() == [proved]


# -------------------------------------------------------------------- quotas and contradictions


def test_groups_of_any_type():
    scores = [4.0, 3.0, 2.0, 1.0]
    for of in (["a", "a", None, "b"], [1.0, 1.0, np.nan, 2.0], [True, True, None, False],
               pd.Series(["a", "a", pd.NA, "b"], dtype="string"), ["a", "a", None, 7],
               pd.Categorical(["a", "a", None, "b"]), [True, True, False, False],
               pd.array([True, True, pd.NA, False], dtype="boolean"),
               np.array([np.True_, True, None, False], dtype=object),
               pl.Series([True, True, None, False])):  # fmt: skip
        found = decode_scores(scores, rules=Rules(quotas=[Quota(of, first=2, at_most=1)]))
        assert found.ranks.tolist() == [1, 3, 2, 4], of


def test_blocked_wins_and_short_queries_can_have_too_many():
    rules = Rules(place=[1, 0, 0], blocked=[1, 0, 0], before=[(0, 1)])
    assert decode_scores([3.0, 1, 2], rules=rules).ranks.tolist() == [3, 2, 1]
    for first in (10, 3):  # every ranking has all three documents among the first three
        rules = Rules(quotas=[Quota(["a", "a", "b"], first=first, at_most=1)])
        assert decode_scores([3.0, 2, 1], rules=rules).ranks.tolist() == [1, 2, 3]


def test_a_late_name_among_booleans_makes_them_names():
    of = np.array([True] * 101 + ["x", "y"], dtype=object)
    rules = Rules(quotas=[Quota(of, first=102, at_most=101), Quota(of, first=1, at_least={"x": 1})])
    ranks = decode_scores(np.arange(103.0)[::-1], rules=rules).ranks
    assert ranks[101] == 1


@pytest.mark.parametrize("soft", [None, 0.5])
@pytest.mark.parametrize(
    "decode",
    [
        lambda rules: decode_scores([2.0, 1.0], rules=rules),
        lambda rules: decode_preferences(np.ones((2, 2)), rules=rules),
        lambda rules: decode_preferences(np.ones((2, 2)), "exact", rules=rules),
        lambda rules: decode_average_precision(np.ones((2, 2)), rules=rules),
    ],
)
def test_a_quota_counts_where_all_documents_are_blocked(decode, soft):
    quota = Quota(["x", "y"], first=1, at_least={"x": 1})
    for blocked in ([True, True], [True, False]):
        rules = Rules(blocked=blocked, quotas=[quota], soft=soft)
        if soft is None:
            with pytest.raises(ContradictoryRulesError, match="at least 1 of the 0 documents of"):
                decode(rules)
        else:
            assert np.all(decode(rules).violation == 1)
    # groups that do not occur have no bound unless they are named
    rules = Rules(blocked=[True, True], quotas=[Quota(["x", "y"], first=1, at_least=1)], soft=soft)
    assert decode(rules) is not None


def test_more_than_sixteen_blocked_documents_break_a_quota():
    of, u = ["x"] * 17, np.ones((17, 17))
    quota = Quota(of, first=1, at_least={"x": 1})
    for method in ("local_search", "exact"):
        with pytest.raises(ContradictoryRulesError):
            decode_preferences(u, method, rules=Rules(blocked=[True] * 17, quotas=[quota]))
        soft = Rules(blocked=[True] * 17, quotas=[quota], soft=0.5)
        assert decode_preferences(u, method, rules=soft).violation == 1


@pytest.mark.parametrize(
    "blocked",
    [
        np.array([True, False, np.False_], dtype=object),
        pd.array([True, False, False], dtype="boolean"),
        pd.array([1, 0, 0], dtype="Int64"),
        np.array([np.int8(1), 0, 0.0], dtype=object),
        pl.Series([True, False, False]),
        np.ma.array([True, False, False], mask=False),
    ],
    ids=["objects", "nullable", "nullable numbers", "mixed", "polars", "masked"],
)
def test_blocked_rows_of_any_type(blocked):
    assert decode_scores([3.0, 2, 1], rules=Rules(blocked=blocked)).ranks.tolist() == [3, 1, 2]


@pytest.mark.parametrize(
    ("blocked", "words"),
    [
        (pd.array([True, pd.NA, False], dtype="boolean"), "1 are missing. Use False"),
        ([None, None, True], "2 are missing"),
        ([0.0, np.nan, 1.0], "1 are missing"),
        (["yes", "no", "no"], "got 'yes'"),
        ([0, 1, 2], "got 2"),
        ([True, False], r"shape .3,., one per row; got shape .2,."),
        (np.ma.array([True, False, False], mask=[0, 1, 0]), "masked"),
    ],
)
def test_what_blocked_cannot_be(blocked, words):
    with pytest.raises(ValueError, match=words):
        decode_scores([3.0, 2, 1], rules=Rules(blocked=blocked))


@pytest.mark.parametrize("place", [{2: 1}, [1], [False, True, False]])
def test_a_place_that_is_not_that_of_a_row_says_what_to_put(place):
    with pytest.raises(ValueError, match="put its place at this row, and 0 at all others"):
        decode_scores([3.0, 2, 1], rules=Rules(place=place))


def test_a_contradiction_names_the_quota():
    first = Quota(["x", "x", "y"], first=1, at_most={"x": 0})
    second = Quota(["x", "y", "y"], first=1, at_least={"x": 1})
    third = Quota([True, False, False], first=1, at_least=1)
    with pytest.raises(ContradictoryRulesError) as error:
        decode_scores([3.0, 2, 1], rules=Rules(quotas=[first, second]))
    assert error.value.rules == [
        "at most 0 of the 2 documents of 'x' (quotas[0]) among the first 1",
        "at least 1 of the 1 document of 'x' (quotas[1]) among the first 1",
    ]
    with pytest.raises(ContradictoryRulesError) as error:
        decode_scores([3.0, 2, 1], rules=Rules(quotas=[third, first]))
    assert "at least 1 of the 1 document (quotas[0]) among the first 1" in error.value.rules
    table = {"brand": ["x", "x", "y"], "shop": ["x", "y", "y"]}
    rules = Rules(quotas=[Quota("brand", first=1, at_most={"x": 0}),
                          Quota("shop", first=1, at_least={"x": 1})])  # fmt: skip
    with pytest.raises(ContradictoryRulesError) as error:
        decode_scores([3.0, 2, 1], rules=rules.with_columns(table))
    assert [text.split(" among")[0] for text in error.value.rules] == [
        "at most 0 of the 2 documents of 'x' in 'brand'",
        "at least 1 of the 1 document of 'x' in 'shop'",
    ]


def test_the_report_lists_quotas_that_look_alike():
    of = [list("aabbaabbaa"), list("ababababab")]
    rules = Rules(quotas=[Quota(one, first=3, at_most=1) for one in of])
    assert [name.split(":")[0] for name in rules.relaxed()] == [
        "price",
        "price of quotas[0]",
        "price of quotas[1]",
    ]


def test_bounds_for_named_groups():
    of = ["x", "x", "y", "z", "z"]
    quota = Quota(of, first=[2, 3], at_least={"z": [0, 1], "y": 1})
    ranks = decode_scores([5, 4, 3, 2, 1], rules=Rules(quotas=[quota])).ranks
    assert ranks.tolist() == [1, 4, 2, 3, 5]
    with pytest.raises(ContradictoryRulesError, match="at least 1 of the 0 documents of 'w'"):
        decode_scores([5, 4, 3, 2, 1], rules=Rules(quotas=[Quota(of, first=2, at_least={"w": 1})]))


def test_the_table_of_fair_is_that_of_the_paper_before_its_correction():
    # Zehlike et al. (2017), table 2: p = 0.5, level 0.1
    table = _fair_table(np.arange(1, 13), 0.5, 0.1)
    assert table.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3, 4]


@pytest.mark.parametrize(("share", "level"), [(0.5, 0.1), (0.3, 0.05), (0.7, 0.2)])
def test_the_table_of_fair_fails_a_fair_lottery_at_the_level(share, level):
    table = np.array(Quota.fair("x", first=9, share=share, level=level).at_least)
    draws = np.array(list(itertools.product([0, 1], repeat=9)))
    chance = np.prod(np.where(draws == 1, share, 1 - share), axis=1)
    fails = (np.cumsum(draws, axis=1) < table).any(axis=1)
    assert chance[fails].sum() == pytest.approx(_failure_probability(table, share))
    assert chance[fails].sum() <= level
    # the next stricter table of tests at one level would fail too often
    levels = np.linspace(0, level, 201)
    tables = [_fair_table(np.arange(1, 10), share, one) for one in levels]
    stricter = [t for t in tables if (t >= table).all() and (t > table).any()]
    assert all(_failure_probability(t, share) > level for t in stricter)


def test_a_contradiction_names_rules_none_of_which_can_be_left_out():
    rules = Rules(
        place=[1, 1, 0, 0], latest=[0, 0, 3, 0], before=[(3, 2)],
        quotas=[Quota(["a", "a", "b", "b"], first=3, at_most=2)],
    )  # fmt: skip
    with pytest.raises(ContradictoryRulesError, match=r"query 'q'(?s:.*)soft=") as error:
        decode_scores([1.0, 2, 3, 4], groups=["q"] * 4, rules=rules)
    assert error.value.rules == ["row 0 at place 1", "row 1 at place 1"]
    assert error.value.query == "q"
    circular = Rules(before=[(0, 1), (1, 2), (2, 0), (0, 3)])
    with pytest.raises(ContradictoryRulesError) as error:
        decode_preferences(np.ones((4, 4)), rules=circular)
    assert len(error.value.rules) == 3


def test_soft_rules_are_bent_only_where_they_must_be():
    rules = Rules(quotas=[Quota(["a", "a", "a", "b"], first=3, at_most=1)], soft=10.0)
    result = decode_scores([4.0, 3, 2, 1], rules=rules)
    assert sorted(result.ranks[:3]) == [1, 2, 4] or sorted(result.ranks[:3]) == [1, 3, 4]
    assert result.broken == [["at most 1 of the 3 documents of 'a' among the first 3"]]
    assert result.violation.tolist() == [1]
    # a place that the query does not have, and one that is too early and too late
    far = Rules(place=[9, 0, 0, 0], earliest=[0, 4, 0, 0], latest=[0, 1, 0, 0], soft=10.0)
    result = decode_scores([4.0, 3, 2, 1], rules=far)
    assert result.ranks[0] == 4
    assert result.violation.tolist() == [5 + 3]
    assert decode_preferences(np.ones((4, 4)), rules=far).violation == 8
    cheap = Rules(place=[0, 0, 0, 1], soft=1e-6)
    assert decode_scores([4.0, 3, 2, 1], rules=cheap).ranks.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Quota("x", first=3), "needs at_least or at_most"),
        (lambda: Quota("x", first=0, at_most=1), "first must be whole numbers >= 1"),
        (lambda: Quota("x", first=[3, 5], at_most=[1, 2, 3]), "at_most has 3 numbers"),
        (lambda: Quota("x", first=3, at_least=-1), "at_least must be whole numbers"),
        (lambda: Quota.fair("x", first=3, share=1.5), "between 0 and 1"),
        (lambda: Rules(soft=0), "soft must be a positive number"),
        (lambda: Rules(quotas=["x"]), "must be a list of Quota"),
        (lambda: Rules(before=[(1, 2, 3)]), "pairs of row numbers"),
        (lambda: decode_scores([1, 2], rules=Rules(place=[1])), "shape .2,., one per row"),
        (lambda: decode_scores([1, 2], rules=Rules(place=[3, 0])), "at place 3 of 2 documents"),
        (lambda: decode_scores([1, 2], rules=Rules(place=[1.5, 0])), "must be whole numbers"),
        (lambda: decode_scores([1, 2], rules=Rules(place=[-1, 0])), "must be whole numbers"),
        (lambda: decode_scores([1, 2], rules=Rules(blocked=[2, 0])), "must be booleans"),
        (lambda: decode_scores([1, 2], rules=Rules(before=[(0, 2)])), "before has row 2"),
        (lambda: decode_scores([1, 2], [0, 1], rules=Rules(before=[(0, 1)])), "not two rows"),
        (lambda: decode_scores([1, 2], rules=Rules(place="x")), "name columns"),
        (
            lambda: decode_scores(
                [1, 2], rules=Rules(quotas=[Quota(["a"], first=1, at_most=1)])
            ),
            "has 1 group, but X has 2 rows",
        ),
        (
            lambda: decode_scores([1, 2], rules=Rules(earliest=[2, 0], latest=[1, 0])),
            "or below; row",
        ),
        (lambda: decode_scores([1, 2], rules=Rules(), discounts=[1]), "at least 2 places"),
        (lambda: decode_scores([1, 2], rules=Rules(), discounts=[1, 2]), "do not increase"),
    ],
)  # fmt: skip
def test_bad_rules_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


# -------------------------------------------------------------------- rankers

DATA = make_ranking(n_queries=12, n_documents=10, n_features=4, n_informative=3, random_state=0)
BRAND = np.random.default_rng(0).choice(list("abcdefgh"), len(DATA.y))
PIN = np.where(np.arange(len(DATA.y)) % 10 == 5, 4, 0)
SHOP = Rules(place=PIN, quotas=[Quota(BRAND, first=5, at_most=2)])


def check_shop(ranks):
    assert (ranks[PIN > 0] == 4).all()
    table = pd.DataFrame({"query": DATA.groups, "brand": BRAND})[ranks <= 5]
    assert table.value_counts().max() <= 2


@pytest.mark.parametrize(
    "ranker",
    [
        CalibratedRanker(Ridge()),
        CalibratedRanker(Ridge(), loss="eru"),
        CalibratedRanker(Ridge(), loss="pd_by_scores"),
        CalibratedRanker(Ridge(), loss="pd"),
        CalibratedRanker(PairwiseRidge(), loss="pd", decoder="local_search"),
        LinearRanker("softmax"),
    ],
    ids=lambda ranker: f"{ranker.__class__.__name__}-{getattr(ranker, 'loss', '')}",
)
def test_rankers_keep_rules(ranker):
    ranker.fit(DATA.X, DATA.y, groups=DATA.groups)
    ranks = ranker.predict(DATA.X, groups=DATA.groups, rules=SHOP)
    check_shop(ranks)
    free = ranker.predict(DATA.X, groups=DATA.groups)
    assert (ranks != free).any()
    assert (ranker.predict(DATA.X, groups=DATA.groups, rules=Rules()) == free).all()
    # neither the order of the rows nor that of the queries matters
    order = np.random.default_rng(1).permutation(len(DATA.y))
    rules = Rules(place=PIN[order], quotas=[Quota(BRAND[order], first=5, at_most=2)])
    again = ranker.predict(DATA.X[order], groups=DATA.groups[order], rules=rules)
    assert (again == ranks[order]).all()


def test_blocked_rows_are_not_listed():
    ranker = CalibratedRanker(Ridge()).fit(DATA.X, DATA.y, groups=DATA.groups)
    blocked = np.random.default_rng(0).random(len(DATA.y)) < 0.3
    blocked[DATA.groups == 3] = True
    order = ranker.predict_order(DATA.X, DATA.groups, rules=Rules(blocked=blocked))
    assert sorted(order.rows) == np.flatnonzero(~blocked).tolist()
    assert np.diff(order.offsets).tolist() == [
        np.count_nonzero(~blocked[DATA.groups == q]) for q in order.queries
    ]
    top = ranker.predict_order(DATA.X, DATA.groups, k=2, rules=Rules(blocked=blocked))
    assert np.diff(top.offsets).max() == 2
    ranks = ranker.predict(DATA.X, DATA.groups, rules=Rules(blocked=blocked))
    free = ranker.predict(DATA.X, DATA.groups)
    own = DATA.groups == 3
    assert (ranks[own] == free[own]).all()


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_columns_of_a_frame_are_rules(make):
    names = ["x0", "x1", "x2", "x3"]
    columns = dict(zip(names, DATA.X.T, strict=True)) | {"qid": DATA.groups}
    ranker = CalibratedRanker(Ridge(), group_column="qid").fit(make(columns), DATA.y)
    shop = make(columns | {"pin": PIN, "brand": BRAND})
    rules = Rules(place="pin", quotas=[Quota("brand", first=5, at_most=2)])
    assert (ranker.predict(shop, rules=rules) == ranker.predict(make(columns), rules=SHOP)).all()
    # a column with which the ranker was fitted stays
    own = Rules(quotas=[Quota("x0", first=3, at_most=1)])
    assert (ranker.predict(make(columns), rules=own) == ranker.predict(make(columns))).all()
    with pytest.raises(ValueError, match="name the column 'nothing'"):
        ranker.predict(shop, rules=Rules(place="nothing"))
    assert list(ranker.rules_report(shop, rules=rules)) == [
        "query", "n_documents", "price", "optimal", "method", "violation", "broken",
        "price of place", "price of Quota(of='brand', first=5, at_most=2)",
    ]  # fmt: skip


@pytest.mark.parametrize("loss", ["ndcg", "pd"])
def test_the_report_has_the_price_of_each_rule(loss):
    ranker = CalibratedRanker(Ridge(), loss=loss).fit(DATA.X, DATA.y, groups=DATA.groups)
    report = ranker.rules_report(DATA.X, DATA.groups, rules=SHOP)
    assert report["optimal"].all()
    place, quota = (report[name] for name in report if name.startswith("price of"))
    alone = ranker.rules_report(DATA.X, DATA.groups, rules=Rules(quotas=SHOP.quotas))["price"]
    assert report["price"] - place == pytest.approx(alone, abs=1e-9)
    assert (report["price"] >= np.maximum(place, quota) - 1e-9).all()
    assert report["price"].sum() > place.sum() > 0
    if loss == "ndcg":
        scores = ranker.decision_function(DATA.X, DATA.groups)
        discounts = 1 / np.log2(np.arange(2, 12))
        lost = [
            scores * discounts[ranker.predict(DATA.X, DATA.groups, rules=rules) - 1]
            for rules in (None, SHOP)
        ]
        of_query = np.add.reduceat(lost[0] - lost[1], np.arange(0, len(DATA.y), 10))
        assert report["price"] == pytest.approx(of_query, abs=1e-9)


def test_rules_in_a_pipeline_and_their_errors():
    pipe = make_pipeline(StandardScaler(), CalibratedRanker(Ridge()))
    pipe.fit(DATA.X, DATA.y, calibratedranker__groups=DATA.groups)
    check_shop(pipe.predict(DATA.X, groups=DATA.groups, rules=SHOP))
    by_scores = CalibratedRanker(Ridge(), loss="err").fit(DATA.X, DATA.y, groups=DATA.groups)
    with pytest.raises(TypeError, match="has no discounts of places"):
        by_scores.predict(DATA.X, groups=DATA.groups, rules=SHOP)
    for wrong in ({"place": PIN}, Rules):
        with pytest.raises(TypeError, match="rules must be decoders"):
            pipe.predict(DATA.X, groups=DATA.groups, rules=wrong)
    preferences = CalibratedRanker(Ridge(), loss="pd").fit(DATA.X, DATA.y, groups=DATA.groups)
    with pytest.raises(ValueError, match="not two rows of one query"):
        preferences.predict(DATA.X, groups=DATA.groups, rules=Rules(before=[(0, 15)]))


def test_rules_of_preferences_name_the_rows_of_the_user():
    order = np.random.default_rng(1).permutation(len(DATA.y))
    X, groups = DATA.X[order], DATA.groups[order]
    ranker = CalibratedRanker(Ridge(), loss="pd").fit(X, DATA.y[order], groups=groups)
    a, b = np.flatnonzero(groups == 7)[:2].tolist()
    place = np.zeros(len(X))
    place[[a, b]] = 2
    with pytest.raises(ContradictoryRulesError) as error:
        ranker.predict(X, groups=groups, rules=Rules(place=place))
    assert sorted(error.value.rules) == sorted([f"row {a} at place 2", f"row {b} at place 2"])
    assert error.value.query == 7
    decoder = PreferenceDecoder("local_search")
    with pytest.raises(ContradictoryRulesError):
        decoder.decode(np.ones(1), Queries.single(2), rules=Rules(place=[2, 2]))


def test_whether_disagreement_by_scores_is_exact_follows_all_labels():
    loss = get_loss("pd_by_scores")
    assert loss.resolve(np.array([0.0, 1.0, 1.0])).exact_under_rules
    assert not loss.resolve(np.array([0.0, 1.0, 2.0])).exact_under_rules
    # of labels that are distributed, the smallest and the largest are known
    assert not loss.resolve(np.array([0.0, 1.0])).exact_under_rules
    copeland = get_loss("pd_by_scores").set_params(score_function="copeland")
    assert not copeland.resolve(np.array([0.0, 1.0, 1.0])).exact_under_rules
    ranker = LinearRanker("pointwise_squared", loss="pd_by_scores", solver="sgd", random_state=0)
    ranker.partial_fit(DATA.X, (DATA.y > 1) * 1.0, groups=DATA.groups)
    assert ranker.loss_.exact_under_rules
    ranker.partial_fit(DATA.X, DATA.y, groups=DATA.groups)
    assert not ranker.loss_.exact_under_rules
