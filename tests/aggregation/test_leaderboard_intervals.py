"""Error bars of `aggregate`: literal bootstrap loops, and what does not change them."""

import warnings
from itertools import combinations

import numpy as np
import pytest
import sklearn
from scipy.optimize import brentq
from scipy.stats import norm
from scipy.stats import t as student
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from sklearn_rankcal import Judgements, aggregate
from sklearn_rankcal.aggregation import STRUCTURES, BradleyTerry
from sklearn_rankcal.aggregation._aggregate import get_structure  # structures by their names
from sklearn_rankcal.aggregation._base import ComparisonStructure
from sklearn_rankcal.exceptions import DisconnectedComparisonsWarning

from . import worlds

CHUNK = 64  # resamples that share the start of their random numbers


def simulate(random, scores, n):
    """Votes of the Bradley-Terry-Luce model on random pairs."""
    r = len(scores)
    i = random.randint(r, size=n)
    j = (i + random.randint(1, r, size=n)) % r
    first = random.uniform(size=n) < 1 / (1 + np.exp(scores[j] - scores[i]))
    return np.column_stack([np.where(first, i, j), np.where(first, j, i)])


def draw_counts(counts, n_resamples, random_state=0):
    """The counts of the units of one query in each resample, as the documentation says."""
    seed = check_random_state(random_state).randint(2**31 - 1)
    parts = []
    for chunk, start in enumerate(range(0, n_resamples, CHUNK)):
        generator = np.random.Generator(np.random.PCG64([seed, chunk]))
        n = min(CHUNK, n_resamples - start)
        shares = np.array(counts) / sum(counts)
        parts.append(generator.multinomial(int(sum(counts)), shares, size=n))
    return np.concatenate(parts)


def check_intervals(result, rows, samples, parts, numbers, degrees, level=0.95):
    """Compare the attributes of a result with those that follow from the scores of resamples.

    Items have these numbers of judgements or judges, and degrees of freedom. A statement must
    survive one more of them whose value is minus their mean.
    """
    numbers, degrees = np.array(numbers, dtype=float), np.array(degrees, dtype=float)
    steps = type(result.method).__name__ in ("Copeland", "Kemeny")
    assert (result.score_low is None) == steps
    for k, row in enumerate(rows):
        if steps:
            break
        values, n = samples[:, k][~np.isnan(samples[:, k])], numbers[k]
        variance = np.mean((values - result.scores[row]) ** 2) * n / (n - 1)
        shift = abs(result.scores[row] - result.scores[rows].mean())
        t = student.ppf((1 + level) / 2, degrees[k] + 1)

        def excess(d, n=n, variance=variance, shift=shift, t=t):
            """n values with the mean d and one of -shift, against the quantile."""
            return (d - shift / n) / np.sqrt(variance + ((d + shift) / n) ** 2) - t

        width = brentq(excess, 0.0, 1e6) if n > t else np.inf
        assert result.score_low[row] == pytest.approx(result.scores[row] - width, abs=1e-8)
        assert result.score_high[row] == pytest.approx(result.scores[row] + width, abs=1e-8)
    matrix = result.probability_matrix(result.groups[rows[0]])
    order = [list(rows).index(row) for row in result.rows_of(result.groups[rows[0]])]
    place = np.argsort(order)
    certainly = np.zeros((len(rows), len(rows)), dtype=bool)
    for a, b in combinations(range(len(rows)), 2):
        drawn = np.where(parts[:, a] == parts[:, b], samples[:, a] - samples[:, b], 0.0)
        n, mean, variance = min(numbers[a], numbers[b]), drawn.mean(), drawn.var()
        if steps and mean:  # as the share of resamples with the same sign says it
            one = norm.ppf(((drawn * mean > 0).mean() + (drawn * mean >= 0).mean()) / 2)
            variance = max(variance, (mean / max(one, 1e-9)) ** 2)
        error = np.sqrt(variance * n / (n - 1) + (2 * mean / n) ** 2)
        free = min(degrees[a], degrees[b]) + 1
        share = student.cdf(mean * (1 - 1 / n) / error, free) if mean else 0.5
        assert matrix[place[a], place[b]] == pytest.approx(share)
        assert matrix[place[b], place[a]] == pytest.approx(1 - share)
        one, other = result.items[rows[a]], result.items[rows[b]]
        found = result.probability_above(one, other, result.groups[rows[0]])
        assert found == pytest.approx(share)
        certainly[a, b] = share >= (1 + level) / 2 - 1e-9
        certainly[b, a] = 1 - share >= (1 + level) / 2 - 1e-9
    for k, row in enumerate(rows):
        rank = result.ranks[row]
        assert result.rank_low[row] == min(1 + certainly[:, k].sum(), rank)
        assert result.rank_high[row] == max(len(rows) - certainly[k].sum(), rank)


def components(pairs, items):
    """The smallest item that comparisons connect each item with."""
    label = {item: item for item in items}
    for _ in items:
        for one, other in pairs:
            label[one] = label[other] = min(label[one], label[other])
    return [label[item] for item in items]


@pytest.mark.parametrize("method", ["btl", "borda", "copeland", "kemeny", "rank_centrality"])
def test_resamples_of_judgements_are_those_of_a_literal_loop(method):
    random = np.random.RandomState(0)
    groups = np.repeat(["x", "y"], [60, 90])
    pairs = np.concatenate([simulate(random, np.arange(5) / 2, 60),
                            simulate(random, np.arange(4) / 2, 90)])  # fmt: skip
    tied = random.uniform(size=150) < 0.2
    weight = random.choice([1.0, 2.0], size=150)
    judgements = Judgements.from_pairs(pairs, groups=groups, tied=tied, weight=weight)
    result = aggregate(judgements, method, n_resamples=40)
    for group in ("x", "y"):
        rows = np.flatnonzero(result.groups == group)
        ids = result.items[rows].tolist()
        mine = np.flatnonzero(groups == group)
        # the same tie can be written in two ways
        contents = [
            (*(sorted(pairs[k].tolist()) if tied[k] else pairs[k].tolist()), tied[k], weight[k])
            for k in mine
        ]
        units = list(dict.fromkeys(contents))
        draws = draw_counts([contents.count(unit) for unit in units], 40)
        samples = np.full((40, len(ids)), np.nan)
        parts = np.arange(len(ids)) * np.ones((40, 1))
        for b, counts in enumerate(draws):
            drawn = [unit for unit, n in zip(units, counts, strict=True) for _ in range(n)]
            votes = Judgements.from_pairs(
                [unit[:2] for unit in drawn],
                tied=[bool(unit[2]) for unit in drawn],
                weight=[unit[3] for unit in drawn],
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DisconnectedComparisonsWarning)
                one = aggregate(votes, method)
            # of Kemeny, a board shows one of several best rankings, which would be no tie
            scores = get_structure(method).scores(votes) if method == "kemeny" else one.scores
            for item, score in zip(one.items.tolist(), scores, strict=True):
                samples[b, ids.index(item)] = score
            parts[b] = components([unit[:2] for unit in drawn], ids)
        n = np.array([sum(item in content[:2] for content in contents) for item in ids])
        check_intervals(result, rows, samples, parts, n, n - 1)


def test_resamples_of_orders():
    random = np.random.RandomState(1)
    orders = [random.permutation(list("abcd"))[: random.randint(2, 5)].tolist() for _ in range(40)]
    count = random.randint(1, 4, size=40)
    judgements = Judgements.from_orders(orders, count=count)
    result = aggregate(judgements, "plackett_luce", n_resamples=70, random_state=5)
    units = list(dict.fromkeys(map(tuple, orders)))
    totals = [sum(n for o, n in zip(orders, count, strict=True) if tuple(o) == u) for u in units]
    draws = draw_counts(totals, 70, random_state=5)
    samples = []
    for counts in draws:
        kept = np.flatnonzero(counts)
        one = aggregate(
            Judgements.from_orders([units[k] for k in kept], count=counts[kept],
                                   items=result.items.tolist()),
            "plackett_luce",
        )  # fmt: skip
        samples.append(one.scores)
    items = result.items.tolist()
    n = [sum(c for order, c in zip(orders, count, strict=True) if item in order) for item in items]
    n = np.array(n)
    check_intervals(result, np.arange(4), np.array(samples), np.zeros((70, 4)), n, n - 1)


def test_resamples_of_judges():
    random = np.random.RandomState(2)
    pairs = simulate(random, np.arange(5) / 2, 200)
    judge = random.randint(12, size=200)
    judgements = Judgements.from_pairs(pairs, judge=judge)
    result = aggregate(judgements, "btl", n_resamples=80, resample="judges")
    names = list(dict.fromkeys(judge.tolist()))
    samples = np.full((80, 5), np.nan)
    for b, counts in enumerate(draw_counts([1] * len(names), 80)):
        drawn = [
            pair
            for name, n in zip(names, counts, strict=True)
            for _ in range(n)
            for pair in pairs[judge == name].tolist()
        ]
        one = aggregate(drawn, "btl")
        for item, score in zip(one.items.tolist(), one.scores, strict=True):
            samples[b, result.items.tolist().index(item)] = score
    numbers, degrees = [], []
    for item in result.items.tolist():
        by = np.bincount(judge[(pairs == item).any(axis=1)])
        shares = by[by > 0] / by.sum()
        numbers.append(1 / (shares**2).sum())
        products = np.outer(shares, shares) / np.sqrt(np.outer(1 - shares, 1 - shares))
        np.fill_diagonal(products, shares)
        degrees.append(1 / (products**2).sum())  # Satterthwaite's
    check_intervals(result, np.arange(5), samples, np.zeros((80, 5)), numbers, degrees)


def test_blocks_jobs_and_other_queries_change_nothing():
    random = np.random.RandomState(3)
    pairs = np.concatenate([simulate(random, np.arange(r) / 3, 30 * r) for r in (3, 6, 4)])
    groups = np.repeat([7, 8, 9], [90, 180, 120])
    names = ("score_low", "score_high", "rank_low", "rank_high", "n_unbounded")
    result = aggregate(pairs, "btl", groups, n_resamples=200)
    again = aggregate(pairs, "btl", groups, n_resamples=200, n_jobs=2)
    for name in names:
        np.testing.assert_array_equal(getattr(again, name), getattr(result, name))
    np.testing.assert_array_equal(again.probability_matrix(7), result.probability_matrix(7))
    with sklearn.config_context(working_memory=1):
        small = aggregate(pairs, "btl", groups, n_resamples=200)
    for name in names:
        np.testing.assert_allclose(getattr(small, name), getattr(result, name), atol=1e-7)
    alone = aggregate(pairs[groups == 8], "btl", n_resamples=200)
    rows = np.flatnonzero(result.groups == 8)
    for name in names[:4]:
        np.testing.assert_allclose(getattr(alone, name), getattr(result, name)[rows], atol=1e-7)
    np.testing.assert_allclose(alone.probability_matrix(), result.probability_matrix(8))
    other = aggregate(pairs, "btl", groups, n_resamples=200, random_state=1)
    assert (other.score_low != result.score_low).all()
    assert np.abs(other.score_low - result.score_low).max() < 0.5


AB, BA = ("a", "b"), ("b", "a")
METHODS = [name for name, kind in STRUCTURES.items() if kind.takes != "clicks"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("judges", [False, True])
def test_unanimous_votes_are_as_few_as_they_are(method, judges):
    """As a mean of n ones and of one minus one; the votes of a judge count once."""
    for n in (1, 2, 3, 5, 6, 20):
        times = 10 if judges and n > 1 else 1  # several judges are needed
        judge = np.tile(np.arange(n), times) if times > 1 else None
        votes = Judgements.from_pairs([AB] * (n * times), judge=judge)
        drawn = "judges" if times > 1 else "judgements"
        result = aggregate(votes, method, n_resamples=64, resample=drawn)
        share = student.cdf((n - 1) / 2, n) if n > 1 else 0.5
        assert result.probability_above("a", "b") == pytest.approx(share)
        assert result.is_first_clear() == (n > 5)
        assert result.rank_high.tolist() == [1 if n > 5 else 2, 2]
        if n <= 5:
            text = "first place is open: a is above b with a probability of"
            assert text in str(result)


@pytest.mark.parametrize("method", METHODS)
def test_ties_of_few_votes_say_nothing(method):
    one = Judgements.from_pairs([AB], tied=[True])
    result = aggregate(one, method, n_resamples=64)
    assert result.probability_above("a", "b") == 0.5 and not result.is_first_clear()
    assert result.ranks.tolist() == ([1, 2] if method == "kemeny" else [1, 1])
    if result.score_low is not None:
        assert np.isinf([result.score_low, result.score_high]).all()


def test_orders_that_all_agree():
    for n, clear in ((1, False), (3, False), (200, True)):
        result = aggregate(Judgements.from_orders([[*"abc"]] * n), "plackett_luce", n_resamples=640)
        assert result.is_first_clear() == clear
        # resamples say nothing of scores that only the penalty bounds
        assert np.isinf([result.score_low, result.score_high]).all()


def test_many_unanimous_votes_have_a_tight_interval_where_scores_are_bounded():
    """The lower end of the share of wins by Clopper and Pearson is .996."""
    result = aggregate([AB] * 1000, "budgeted_borda", n_resamples=64)
    assert result.scores[0] == 1 and 0.995 < result.score_low[0] < 0.999


@pytest.mark.parametrize("n", [1, 5, 10, 20])
def test_resamples_of_few_votes_are_seldom_wrong(n):
    found = worlds.two_item_rates(n, n_resamples=200)
    assert found["scores"] <= 0.06 and found["wrong first"] <= 0.05


def test_resamples_that_fall_apart_are_counted():
    pairs = [("a", "b"), ("b", "a")] * 10 + [("c", "b")]
    result = aggregate(pairs, "btl", n_resamples=400)
    # c is missing where its only comparison is not drawn
    assert abs(result.n_disconnected[0] / 400 - (1 - 1 / 21) ** 21) < 0.1
    assert result.n_unbounded[0] == 400 - result.n_disconnected[0]  # c has never lost
    assert f"in {result.n_disconnected[0]} resamples, the comparisons do not connect" in str(result)
    assert result.probability_above("c", "b") == 0.5  # by a single vote
    assert np.isinf([result.score_low, result.score_high]).all()
    assert (result.rank_low <= result.ranks).all() and (result.ranks <= result.rank_high).all()


def matrix_entry(result, one, other):
    names = result.items[result.rows_of()].tolist()
    return result.probability_matrix()[names.index(one), names.index(other)]


def test_items_that_cannot_be_compared():
    judgements = Judgements.from_pairs(
        [("a", "b")] * 30 + [("c", "d")] * 30 + [("a", "e")], weight=[1.0] * 60 + [0.0]
    )
    with pytest.warns(DisconnectedComparisonsWarning):
        result = aggregate(judgements, "borda", n_resamples=50)
    place = {item: k for k, item in enumerate(result.items.tolist())}
    assert result.probability_above("a", "b") > 0.9999
    assert np.isnan(result.probability_above("a", "d")) and np.isnan(matrix_entry(result, "c", "a"))
    assert np.isnan(result.score_low[place["e"]]) and np.isnan(result.score_high[place["e"]])
    assert (result.rank_low[place["e"]], result.rank_high[place["e"]]) == (1, 5)
    assert (result.rank_low[place["a"]], result.rank_high[place["a"]]) == (1, 4)
    assert result.n_disconnected.tolist() == [0]
    assert "nan to nan" in str(result)


def test_a_query_without_judgements_left():
    judgements = Judgements.from_pairs([(0, 1), (2, 3), (3, 2)], groups=[0, 1, 1], count=[0, 20, 9])
    with pytest.warns(DisconnectedComparisonsWarning):
        result = aggregate(judgements, "btl", n_resamples=20)
    assert np.isnan(result.score_low[:2]).all() and np.isfinite(result.score_low[2:]).all()
    assert result.rank_low.tolist()[:2] == [1, 1] and result.rank_high.tolist()[:2] == [2, 2]


def votes_of_judges(n_judges, n_queries=1):
    pairs = simulate(np.random.RandomState(0), np.arange(4.0), 100)
    judge = np.arange(100) % n_judges
    groups = np.where(judge > 0, np.arange(100) % n_queries, 0)
    return Judgements.from_pairs(pairs, judge=judge, groups=groups if n_queries > 1 else None)


def test_a_single_judge():
    with pytest.raises(ValueError, match=r"needs several judges, but there is only one. Pass"):
        aggregate(votes_of_judges(1), n_resamples=10, resample="judges")
    alone = Judgements.from_pairs(
        [("a", "b")] * 5, groups=["x", "x", "x", "y", "y"], judge=[1, 2, 1, 3, 3]
    )
    with pytest.raises(ValueError, match="there is only one in query 'y'"):
        aggregate(alone, n_resamples=10, resample="judges")
    result = aggregate(votes_of_judges(14), n_resamples=10, resample="judges")
    assert "intervals from 10 resamples of the 14 judges" in str(result)
    # one judge is enough if judges are not drawn
    aggregate(votes_of_judges(1), n_resamples=10)


def test_judges_without_resamples_are_refused():
    with pytest.raises(ValueError, match=r"n_resamples is 0. Pass n_resamples=1000"):
        aggregate(votes_of_judges(20), resample="judges")


@pytest.mark.parametrize("n_votes, clear", [(40, True), (6, False)])
def test_whether_the_first_place_is_clear(n_votes, clear):
    pairs = [("a", "b")] * n_votes * 2 + [("b", "a")] * n_votes
    pairs += [("b", "c")] * n_votes * 2 + [("c", "b")] * n_votes
    result = aggregate(pairs, "btl", n_resamples=500)
    shares = [result.probability_above("a", other) for other in "bc"]
    assert result.is_first_clear() == clear == (min(shares) >= 0.975)
    text = "first place: a is above all others, each with a probability of 97.5 % or more"
    if not clear:
        share = np.floor(1000 * shares[0] + 1e-9) / 10
        assert shares[0] < shares[1]
        text = f"first place is open: a is above b with a probability of {share:g} %"
    assert text in str(result)


def test_convergence_warnings_of_resamples_are_one_warning():
    pairs = simulate(np.random.RandomState(0), np.arange(4.0), 200)
    with pytest.warns(ConvergenceWarning) as caught:
        aggregate(pairs, BradleyTerry(max_iter=1), n_resamples=200)
    texts = [str(one.message) for one in caught]
    assert len(texts) == 2 and texts[1].startswith("Some resamples: ")
    assert caught[1].filename == __file__


@pytest.mark.parametrize(
    "options, words",
    [
        ({"n_resamples": -1}, "n_resamples must be a whole number >= 0; got -1"),
        ({"n_resamples": 10**15}, "Pass a smaller n_resamples"),
        ({"resample": "judge"}, "Unknown resample 'judge'. Did you mean 'judges'?"),
        ({"resample": "judges"}, "needs the judge of each judgement"),
        ({"confidence_level": 1}, "confidence_level must be a number in (0, 1); got 1"),
        ({"random_state": "a"}, "cannot be used to seed"),
        ({"n_jobs": 0, "n_resamples": 5}, "n_jobs"),
    ],
)
def test_bad_options_are_refused(options, words):
    with pytest.raises(ValueError) as caught:
        aggregate([("a", "b"), ("b", "a")], "borda", **options)
    assert words in str(caught.value)


def test_probabilities_need_resamples_and_known_items():
    result = aggregate([("a", "b"), ("b", "a")], "borda")
    assert result.score_low is result.rank_high is result.n_disconnected is None
    with pytest.raises(ValueError, match="Pass n_resamples=1000"):
        result.probability_matrix()
    result = aggregate([("a", "b"), ("b", "a")], "borda", n_resamples=5)
    with pytest.raises(ValueError, match=r"There is no item 'c'\. There are: 'a', 'b'\."):
        result.probability_above("a", "c")
    one, other = result.probability_above("a", "b"), result.probability_above("b", "a")
    best_first = [[0.5, one], [other, 0.5]]
    assert result.probability_matrix().tolist() == best_first and one + other == 1


def test_a_structure_of_ones_own_gets_intervals():
    class Wins(ComparisonStructure):
        def _scores(self, preferences, n_judgements):
            return np.bincount(preferences.winner, preferences.weight, preferences.n_rows)

    pairs = [("a", "b")] * 3 + [("b", "a")] * 2
    result = aggregate(pairs, Wins(), n_resamples=500)
    wins = draw_counts([3, 2], 500)
    lead = wins[:, 0] - wins[:, 1]
    error = np.sqrt(lead.var() * 5 / 4 + (2 * lead.mean() / 5) ** 2)
    above = student.cdf(lead.mean() * 4 / 5 / error, 5)
    assert result.probability_above("a", "b") == pytest.approx(above)
