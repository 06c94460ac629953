"""`Aggregate.next_comparisons`: chosen pairs compared with exhaustive search over all pairs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from scipy.stats import norm

from sklearn_rankcal import Judgements, aggregate
from sklearn_rankcal.aggregation import BradleyTerry
from sklearn_rankcal.aggregation._leaderboard import _weights, plan_comparisons  # plans by hand
from sklearn_rankcal.aggregation._likelihoods import result_probabilities, vote_information
from sklearn_rankcal.exceptions import DisconnectedComparisonsWarning


def draw(rng, scores, a, b):
    won = rng.random(len(a)) < expit(scores[a] - scores[b])
    return Judgements.from_votes(a, b, np.where(won, a, b), items=list(range(len(scores))))


def uniform_pairs(rng, m, n):
    a = rng.integers(m, size=n)
    return a, (a + rng.integers(1, m, size=n)) % m


def information_of(a, b, scores):
    """The information matrix of votes, written as a loop."""
    m = len(scores)
    matrix = np.zeros((m, m))
    for i, j in zip(a, b, strict=True):
        e = np.eye(m)[i] - np.eye(m)[j]
        p = expit(scores[i] - scores[j])
        matrix += p * (1 - p) * np.outer(e, e)
    return matrix


def cost(scores, covariance, frozen, target):
    """What is to become small, where `frozen` is the covariance before the vote."""
    m = len(scores)
    if not isinstance(target, str):
        return covariance[target, target]
    total = 0.0
    for k in range(m):
        for other in range(m):
            if k == other or (target == "first" and k != np.argmax(scores)):
                continue
            e = np.eye(m)[k] - np.eye(m)[other]
            before, after = e @ frozen @ e, e @ covariance @ e
            total += (
                norm.pdf((scores[k] - scores[other]) / np.sqrt(before)) / np.sqrt(before) * after
            )
    return total


@pytest.mark.parametrize("target", ["first", "all", 0, 3])
@pytest.mark.parametrize("seed", range(4))
def test_each_pair_is_the_best_of_all_pairs(target, seed):
    rng = np.random.default_rng(seed)
    m = 5
    a, b = uniform_pairs(rng, m, 80)
    board = aggregate(draw(rng, rng.normal(size=m), a, b), BradleyTerry(penalty=0.0))
    pairs = board.next_comparisons(6, target=target)
    place = {item: k for k, item in enumerate(board.items.tolist())}
    scores = board.scores
    matrix = information_of([place[i] for i in a], [place[j] for j in b], scores)
    goal = target if isinstance(target, str) else place[target]
    for pair in pairs:
        before = np.linalg.pinv(matrix)
        costs = {}
        for i in range(m):
            for j in range(i):
                more = matrix + information_of([i], [j], scores)
                costs[i, j] = cost(scores, np.linalg.pinv(more), before, goal)
        i, j = sorted((place[pair[0]], place[pair[1]]), reverse=True)
        assert costs[i, j] <= min(costs.values()) * (1 + 1e-9)
        assert costs[i, j] < cost(scores, before, before, goal)
        matrix += information_of([i], [j], scores)  # as if it had been answered


def test_weights_are_the_derivative_of_the_expected_loss():
    scores = np.array([0.3, 0.1, -0.4])
    variance = np.array([[0, 0.04, 0.3], [0.04, 0, 0.2], [0.3, 0.2, 0]])

    def loss(d, v):  # by a sum over a fine grid of true differences
        x = np.linspace(-10, 10, 400001)
        return np.sum(np.maximum(0, -x) * norm.pdf(x, d, np.sqrt(v))) * (x[1] - x[0])

    found = _weights(scores, variance, "all")
    slopes = []
    for i, j in ((0, 1), (0, 2), (1, 2)):
        d, v = abs(scores[i] - scores[j]), variance[i, j]
        slopes.append((loss(d, v * 1.001) - loss(d, v * 0.999)) / (0.002 * v))
    ratios = np.array(slopes) / slopes[0]
    assert_allclose(found[[0, 0, 1], [1, 2, 2]] / found[0, 1], ratios, rtol=1e-4)
    assert_allclose(found, found.T)
    first = _weights(scores, variance, "first")
    assert first[1, 2] == 0 and first[0, 2] > 0


def test_an_item_far_below_is_not_asked_for_while_the_first_place_is_open():
    wins = {("owl", "cat"): 30, ("cat", "owl"): 28, ("owl", "eel"): 60, ("eel", "owl"): 2,
            ("cat", "eel"): 60, ("eel", "cat"): 2}  # fmt: skip
    votes = [pair for pair, times in wins.items() for _ in range(times)]
    board = aggregate(votes)
    assert set(board.next_comparisons(50)) == {("owl", "cat")}
    assert all("eel" in pair for pair in board.next_comparisons(20, target="eel"))


def test_all_places_need_more_pairs_than_the_first_place():
    even = [("a", "b"), ("b", "a"), ("c", "d"), ("d", "c")] * 20
    clear = [("a", "c"), ("a", "d"), ("b", "c"), ("b", "d")] * 20 + [("c", "a"), ("d", "b")]
    board = aggregate([*even, *clear, ("a", "b"), ("c", "d")])
    assert set(board.next_comparisons(20)) == {("a", "b")}
    assert set(board.next_comparisons(20, target="all")) == {("a", "b"), ("c", "d")}


@pytest.mark.parametrize("target", ["first", "all", "c"])
@pytest.mark.parametrize("record", ["circle", "equal", "two best"])
def test_a_plan_does_not_depend_on_the_order_of_votes_and_items(target, record):
    items = list("abcdef")
    if record == "circle":  # each item is above the next two
        wins = {(one, items[(k + step) % 6]): 4 - step for k, one in enumerate(items)
                for step in (1, 2)}  # fmt: skip
    else:
        wins = {(one, other): 5 for one in items for other in items if one != other}
    if record == "two best":
        wins |= {(one, other): 12 for one in "ab" for other in "cdef"}
    votes = [pair for pair, times in wins.items() for _ in range(times)]
    plans = set()
    for seed in range(8):
        rng = np.random.default_rng(seed)
        some = [votes[k] for k in rng.permutation(len(votes))]
        board = aggregate(Judgements.from_pairs(some, items=rng.permutation(items).tolist()))
        plans.add(tuple(board.next_comparisons(12, target=target)))
    assert len(plans) == 1


def test_items_that_share_the_first_place_are_compared_alike():
    votes = [("a", "b"), ("b", "a")] * 20 + [("a", "c"), ("b", "c")] * 6
    votes += [("c", "a"), ("c", "b")] * 5 + [("a", "d"), ("b", "d")] * 9
    votes += [("d", "a"), ("d", "b")] * 4 + [("c", "d")] * 9 + [("d", "c")] * 5
    board = aggregate(votes)
    assert board.ranks[:2].tolist() == [1, 1]
    plan = board.next_comparisons(40)
    assert [plan.count(("a", "c")), plan.count(("b", "c"))] == [20, 20]


def test_scores_that_are_far_apart_do_not_underflow():
    scores, worth = np.array([100.0, 0.0, -90.0]), np.full((3, 3), 0.25)
    pairs = plan_comparisons(scores, 1e-6 * np.eye(3), worth, 2, "all")
    assert pairs.tolist() == [[1, 2], [1, 2]]


def test_items_without_votes_and_parts_are_connected_first():
    known = [("a", "b")] * 40 + [("b", "a")] * 30 + [("c", "d")] * 40 + [("d", "c")] * 30
    with pytest.warns(DisconnectedComparisonsWarning):
        board = aggregate(known)
    one = board.next_comparisons(1, target="all")[0]
    assert {"a", "b"} & set(one) and {"c", "d"} & set(one)
    new = Judgements.from_pairs(known[:70], items=["a", "b", "new"])
    with pytest.warns(DisconnectedComparisonsWarning):
        board = aggregate(new)
    for target in ("first", "all", "new"):
        assert "new" in board.next_comparisons(1, target=target)[0]


@pytest.mark.parametrize(
    ("ties", "tie"), [("half", np.nan), ("davidson", 0.4), ("rao_kupper", 0.7)]
)
def test_the_information_of_a_vote_is_that_of_its_likelihood(ties, tie):
    d, step = np.array([-2.0, 0.0, 0.7]), 1e-4

    def expected(at):
        p, q = result_probabilities(d, ties, tie), result_probabilities(at, ties, tie)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(p > 0, p * np.log(q), 0.0).sum(axis=0)

    second = (expected(d + step) + expected(d - step) - 2 * expected(d)) / step**2
    assert_allclose(vote_information(d, ties, tie), -second, rtol=1e-5)


def test_one_query_of_several_and_a_board_with_intervals():
    votes = [("a", "b"), ("b", "a"), ("x", "y"), ("y", "x"), ("y", "z"), ("z", "y")]
    groups = [0, 0, 1, 1, 1, 1]
    board = aggregate(votes, groups=groups)
    assert {query for query, *_ in board.next_comparisons(1)} == {0, 1}
    pairs = board.next_comparisons(5, group=1)
    assert {item for pair in pairs for item in pair} <= {"x", "y", "z"}
    other = aggregate(votes, groups=groups, intervals="robust").rescale()
    assert other.next_comparisons(5, group=1) == pairs


def test_what_cannot_be_planned_is_refused():
    board = aggregate([("a", "b"), ("b", "a")])
    with pytest.raises(ValueError, match=r"There is no item 'c'\. There are: 'a', 'b'"):
        board.next_comparisons(1, target="c")
    with pytest.raises(ValueError, match="n must be a whole number >= 1; got 0"):
        board.next_comparisons(0)
    with pytest.raises(ValueError, match=r"but the method is Borda\(\)"):
        aggregate([("a", "b")], "borda").next_comparisons(1)
