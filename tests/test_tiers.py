"""Rankings that leave pairs undecided: `decode_tiers`, `Tiers` and the tiers of a leaderboard."""

import itertools

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from sklearn_rankcal import CalibratedRanker, aggregate
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.decoders import DECODERS, Rules, Tiers, decode_preferences, decode_tiers
from sklearn_rankcal.exceptions import DisconnectedComparisonsWarning
from sklearn_rankcal.metrics import pairwise_disagreement_loss
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.tiers import _best_tiers, _search, _value  # the search beside the exact steps


def weak_orders(r):
    """The tier of each document, for all divisions into ordered tiers."""
    for tiers in itertools.product(range(r), repeat=r):
        if set(tiers) == set(range(max(tiers) + 1)):
            yield np.array(tiers)


def cost(d, margin, ranks):
    decided = np.asarray(ranks)[:, None] < np.asarray(ranks)
    return float((margin - d)[decided].sum())


@pytest.mark.parametrize("margin", [0, 0.5, 2, 9])
def test_tiers_are_the_best_of_all_weak_orders(margin):
    rng = np.random.default_rng(0)
    for _ in range(12):
        r = int(rng.integers(1, 6))
        u = rng.integers(0, 9, (r, r)).astype(float)
        result = decode_tiers(u, margin)
        best = min(cost(u - u.T, margin, tiers) for tiers in weak_orders(r))
        assert cost(u - u.T, margin, result.ranks) == pytest.approx(best)
        assert result.objective == pytest.approx(best)
        assert result.optimal
        assert result.lower_bound == result.objective
        # positions are those of a competition: the number of documents above, plus 1
        assert result.ranks.tolist() == [1 + (result.ranks < one).sum() for one in result.ranks]
        gains = u - u.T - margin
        np.fill_diagonal(gains, 0)
        assert _value(gains, _search(gains, rng.permutation(r), 0)) <= 1e-9 - best


def test_the_search_is_near_the_optimum_and_its_bound_holds():
    rng = np.random.default_rng(0)
    lost = 0
    for _ in range(15):
        u = rng.random((9, 9))
        gains = u - u.T - 0.2
        np.fill_diagonal(gains, 0)
        best = _value(gains, _best_tiers(gains))
        found = _value(gains, _search(gains, np.argsort(decode_preferences(u).ranks), 0))
        assert found <= best + 1e-9
        lost += found < best - 1e-9
    assert lost <= 3
    scores = rng.standard_normal(25)
    for margin in (0.0, 0.3):
        result = decode_tiers([np.subtract.outer(scores, scores) / 2], margin)
        assert result.lower_bound[0] <= result.objective[0]
        assert result.method[0] == "local_search"
    clear = np.sign(np.subtract.outer(np.arange(25), np.arange(25))) * 2.0
    assert decode_tiers(clear, 1.0).optimal
    assert decode_tiers(clear, 1.0).ranks.tolist() == list(range(25, 0, -1))


@pytest.mark.parametrize("r", [4, 9, 14])
def test_no_margin_is_the_ranking_of_preferences_and_a_large_one_decides_nothing(r):
    u = np.random.default_rng(r).random((r, r))
    free, tiers = decode_preferences(u), decode_tiers(u, 0.0)
    d = u - u.T
    assert cost(d, 0.0, tiers.ranks) == pytest.approx(cost(d, 0.0, free.ranks), abs=1e-9)
    assert (decode_tiers(u, np.abs(d).max()).ranks == 1).all()
    assert len(np.unique(decode_tiers(u, 0.3).ranks)) < r


def test_expected_preferences_lead_to_the_best_tiers():
    """The loss is linear in the targets, so that theorem 3 of Ramaswamy et al. (2013) holds."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        labels, chance = rng.integers(0, 4, (3, 4)), rng.dirichlet(np.ones(3))
        margin = float(rng.choice([0.1, 0.4, 1.0]))

        def expected(ranks, labels=labels, chance=chance, margin=margin):
            """A pair in the wrong order loses 1, an undecided one 1/2; decisions cost extra."""
            total = 0.0
            for c, y in zip(chance, labels, strict=True):
                for i, j in itertools.permutations(range(4), 2):
                    if y[i] > y[j]:
                        total += c * (1.0 if ranks[i] > ranks[j] else 0.5 * (ranks[i] == ranks[j]))
                    total += c * margin / 2 * (ranks[i] < ranks[j])
            return total

        u = sum(c * (y[:, None] > y) for c, y in zip(chance, labels, strict=True))
        found = expected(decode_tiers(u, margin).ranks)
        assert found == pytest.approx(min(expected(tiers) for tiers in weak_orders(4)))


def test_a_ranker_with_tiers():
    data = make_ranking(n_queries=25, n_documents=8, random_state=0)
    ranker = CalibratedRanker(Ridge(), loss="pd", decoder=Tiers(margin=1.0))
    ranker.fit(data.X, data.y, groups=data.groups)
    ranks = ranker.predict(data.X, groups=data.groups)
    matrices = ranker.predict_preferences(data.X, groups=data.groups)
    wanted = decode_tiers([m / 2 for m in matrices], 1.0).ranks
    assert ranks.tolist() == np.concatenate(wanted).tolist()
    assert len(np.unique(ranks[:8])) < 8
    # tied documents stay in the order of their rows, and every row is listed
    rows, offsets, _ = ranker.predict_order(data.X, groups=data.groups)
    assert sorted(rows) == list(range(len(data.y)))
    assert (np.diff(ranks[rows])[np.delete(np.arange(len(rows) - 1), offsets[1:-1] - 1)] >= 0).all()
    # an undecided pair counts one half, as a coin flip does
    first = data.groups == 0
    less = np.subtract.outer(data.y[first], data.y[first]) > 0
    lost = np.where(np.subtract.outer(ranks[first], ranks[first]) > 0, 1.0, 0.0)
    lost[np.equal.outer(ranks[first], ranks[first])] = 0.5
    wanted = (lost * less).sum() / less.sum()
    value = pairwise_disagreement_loss(data.y[first], -ranks[first], groups=np.zeros(8))
    assert value == pytest.approx(wanted)
    assert 0.5 < ranker.score(data.X, data.y, groups=data.groups) < 1.0
    report = ranker.decode_report(data.X, groups=data.groups)
    assert report["optimal"].all()
    order = np.random.default_rng(0).permutation(len(data.y))
    again = ranker.predict(data.X[order], groups=data.groups[order])
    assert (again == ranks[order]).all()


def test_tiers_of_a_leaderboard():
    rng = np.random.default_rng(0)
    strength = np.array([2.0, 1.1, 1.0, 0.0])
    one = rng.integers(0, 4, 3000)
    two = (one + rng.integers(1, 4, 3000)) % 4
    wins = rng.random(3000) < 1 / (1 + np.exp(strength[two] - strength[one]))
    votes = [(a, b) if w else (b, a) for a, b, w in zip(one, two, wins, strict=True)]
    board = aggregate(votes, n_resamples=300)
    assert board.items[board.rows_of()][[0, 3]].tolist() == [0, 3]
    assert board.tiers().tolist() == [1, 2, 2, 4]
    with pytest.raises(ValueError, match="no intervals"):
        aggregate(votes).tiers()
    # items that no comparison connects are undecided
    with pytest.warns(DisconnectedComparisonsWarning):
        apart = aggregate([(0, 1)] * 30 + [(2, 3)] * 30, n_resamples=100)
    assert apart.tiers().max() <= 3


@pytest.mark.parametrize("margin", [-1, np.nan, np.inf, "x", None])
def test_a_bad_margin_is_refused(margin):
    with pytest.raises(ValueError, match="margin must be a finite number >= 0"):
        decode_tiers(np.eye(3), margin)
    with pytest.raises(ValueError, match="margin must be a finite number >= 0"):
        Tiers(margin).decode(np.zeros(3), Queries.single(3))


def test_tiers_take_no_rules_and_have_no_name():
    with pytest.raises(TypeError, match="Tiers does not support rules"):
        Tiers(1.0).decode(np.zeros(3), Queries.single(3), rules=Rules(place=[1, 0, 0]))
    assert Tiers not in DECODERS.values()
