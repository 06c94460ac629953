"""Generated data, whose Bayes ranking must be the best, and the readers of data files."""

import gzip
import itertools
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import minmax_scale

from sklearn_rankcal.datasets import (
    label_ranking_from_classes,
    load_letor,
    make_label_ranking,
    make_preferences,
    make_ranking,
)
from sklearn_rankcal.datasets._judgements import (  # draws, for enumerations
    _clockwise,
    draw_mallows,
    draw_plackett_luce,
    mallows_probabilities,
)
from sklearn_rankcal.decoders import decode_preferences
from sklearn_rankcal.labels._labels import read_preferences
from sklearn_rankcal.losses import LOSSES
from sklearn_rankcal.metrics import ndcg_score
from sklearn_rankcal.queries import Queries

from .. import oracles
from ..covering import REST
from ..preference_data import preferences_of_ranks


def test_shapes_and_seed():
    one, two = (make_ranking(30, (2, 5), 7, random_state=3) for _ in range(2))
    assert one.X.shape == (len(one.y), 7)
    assert set(np.bincount(one.groups)) <= {2, 3, 4, 5} and len(set(one.groups)) == 30
    for key in ("X", "y", "groups", "bayes_ranks"):
        np.testing.assert_array_equal(one[key], two[key])
    np.testing.assert_allclose(one.probabilities.sum(axis=1), 1)
    assert one.probabilities.min() >= 0
    assert one.bayes_score == ndcg_score(one.y, ranks=one.bayes_ranks, groups=one.groups, k=10)


def test_grades_follow_the_stated_probabilities():
    data = make_ranking(2000, 10, 4, n_informative=2, n_levels=3, noise=1.0, random_state=0)
    order = np.argsort(data.probabilities[:, 2])
    for part in np.array_split(order, 5):
        share = np.bincount(data.y[part], minlength=3) / len(part)
        np.testing.assert_allclose(share, data.probabilities[part].mean(axis=0), atol=0.03)


@pytest.mark.parametrize("name", LOSSES)
def test_the_bayes_ranking_is_the_best_of_all_rankings(name):
    """Compare the expected measure of every ranking, over all label vectors, on small queries."""
    binary = name in ("precision", "recall", "auc", "map", "map_by_scores")
    levels = 2 if binary else 3
    data = make_ranking(6, 3, 4, n_informative=2, n_levels=levels, noise=0.8, random_state=1)
    loss = LOSSES[name]()
    if name == "err":
        loss.set_params(max_relevance=2)
    labels = np.array(list(itertools.product(range(levels), repeat=3)), dtype=float)
    defined = [bool(loss.defined(y, Queries.single(3))[0]) for y in labels]
    labels = labels[defined]
    for q in range(6):
        rows = np.flatnonzero(data.groups == q)
        chance = [
            np.prod([data.probabilities[row, int(g)] for row, g in zip(rows, y, strict=True)])
            for y in labels
        ]
        values = {}
        for order in oracles.all_orders(3):
            ranks = np.array(oracles.ranks_of(order))
            measured = [loss.metric(y, ranks, Queries.single(3))[0] for y in labels]
            values[tuple(ranks.tolist())] = float(np.dot(chance, measured))
        assert values[tuple(data.bayes_ranks[rows].tolist())] >= max(values.values()) - 1e-12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_queries": 0}, "n_queries must be a whole number >= 1"),
        ({"n_documents": 0}, "n_documents must be a whole number >= 1"),
        ({"n_documents": (5, 2)}, "must be a range"),
        ({"n_levels": 1}, "n_levels must be a whole number >= 2"),
        ({"n_features": 3}, "n_informative=6 exceeds n_features=3"),
        ({"noise": 0}, "noise must be a finite number > 0"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_ranking(**arguments)


def test_load_letor_files(tmp_path):
    first, second = tmp_path / "a.txt", tmp_path / "b.txt.gz"
    first.write_text("2 qid:10 1:0.5 3:1.0 # docid = x\n0 qid:10 2:-2\n1 qid:2 1:4\n")
    with gzip.open(second, "wt") as file:
        file.write("1 qid:30 2:7\n")
    data = load_letor([first, second])
    assert data.X.tolist() == [[0.5, 0, 1], [0, -2, 0], [4, 0, 0], [0, 7, 0]]
    assert data.X.dtype == np.float32
    assert data.y.tolist() == [2, 0, 1, 1] and data.groups.tolist() == [10, 10, 2, 30]
    wide = load_letor(str(first), n_features=5, dtype=np.float64)
    assert wide.X.shape == (3, 5) and wide.X.dtype == np.float64


def test_load_letor_bad_files(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_letor(tmp_path / "missing.txt")
    plain = tmp_path / "plain.txt"
    plain.write_text("1 1:0.5\n0 1:0.25\n")
    with pytest.raises(ValueError, match=r"plain\.txt, line 1: .* there is no qid:, which every"):
        load_letor(plain)
    empty = tmp_path / "empty.txt"
    empty.write_text("")
    with pytest.raises(ValueError, match="qid"):
        load_letor(empty)
    words = tmp_path / "words.txt"
    words.write_text("1 qid:first 1:0.5\n")
    with pytest.raises(ValueError, match=r"words\.txt"):
        load_letor(words)
    one = tmp_path / "one.txt"
    one.write_text("1 qid:1 1:0.5\n")
    with pytest.raises(ValueError, match="occurs in more than one file"):
        load_letor([one, one])
    with pytest.raises(ValueError, match="path is an empty sequence"):
        load_letor([])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "0 qid:1 1:1\n\n# a\n0 qid:1 1:x # b\n",
            "line 4: .0 qid:1 1:x # b. cannot be read: could not convert string to float",
        ),
        ("0 qid:1 1:inf\n", "line 1: .* a value is too large for float32"),
        ("0 qid:1 1:NULL\n", "line 1: .* could not convert string to float"),
        ("nan qid:1 1:1\n", "line 1: 'nan qid:1 1:1' cannot be read: the label is not finite"),
        ("1,2 qid:1 1:1\n", "line 1: '1,2 qid:1 1:1' cannot be read: could not"),
        ("0 qid:1.5 1:1\n", "line 1: '0 qid:1.5 1:1' cannot be read: invalid literal for int"),
        ("0 qid:1 1:1\n0 1:1\n", "line 2: '0 1:1' cannot be read: there is no qid:"),
        ("0 qid:1 2:1 1:1\n", "line 1: .* should be sorted"),
        ("0 qid:1 3:1\n0 qid:1 2:1 2:1\n", "line 2: .* should be sorted"),
        ("0 qid:1 1:1e39\n", "line 1: .* a value is too large for float32"),
        ("0 qid:1 1:1\n\n1e999 qid:1\n", "line 3: .* the label is not finite"),
        (f"0 qid:{2**63} 1:1\n", "line 1: .* too large"),
        (f"0 qid:1 {2**31}:1\n", "line 1: .* too large"),
        ("0 qid:1 1:1\n1e51 qid:1\n", r"line 2: .* label has 1e\+51"),
    ],
)
def test_letor_files_are_read_strictly(tmp_path, text, message):
    path = tmp_path / "a.txt"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"a\.txt, " + message):
        load_letor(path)


def test_wide_letor_files(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("1e50 qid:1 1:1\n-1e-50 qid:1 2000000000:1\n")
    message = (
        r"a\.txt: with the feature 2000000000, X would have 4,000,000,000 cells, but .* only 2"
    )
    with pytest.raises(ValueError, match=message + r"\. Pass sparse=True"):
        load_letor(path)
    assert load_letor(path, sparse=True).y.tolist() == [1e50, -1e-50]
    path.write_bytes(b"1 qid:1 3:nan # caf\xe9\r\n0 qid:1 2000000000:1\n2 qid:2\n")
    data = load_letor([path], sparse=True)
    assert data.X.shape == (3, 2_000_000_000) and data.X.dtype == np.float32
    assert data.X[1, 1_999_999_999] == 1 and np.isnan(data.X[0, 2]) and data.X.nnz == 2
    assert data.y.tolist() == [1, 0, 2] and data.groups.tolist() == [1, 1, 2]
    with pytest.raises(ValueError, match=r"line 2: .* n_features was set to 5, but"):
        load_letor(path, n_features=5)
    for wrong in ({"n_features": 2.5}, {"n_features": 0}, {"dtype": int}):
        with pytest.raises(ValueError, match=rf"{next(iter(wrong))} must be a"):
            load_letor(path, **wrong)
    path.write_bytes(b"1 qid:1\n" * 1000)
    with pytest.raises(ValueError, match=r"A dense X of 1,000 x 2,000,000,000 would take"):
        load_letor(path, n_features=2_000_000_000)
    assert load_letor(path).X.shape == (1000, 1)


def test_damaged_letor_archives(tmp_path):
    text = "".join(f"{k % 3} qid:{k // 9} 1:{k}.5 2:{k % 7}\n" for k in range(30_000)).encode()
    path = tmp_path / "train.txt.gz"
    path.write_bytes(gzip.compress(text)[:-5000])
    with pytest.raises(ValueError, match=r"\.gz: the compressed data is damaged .* after line \d"):
        load_letor(path)


MQ2008 = Path(__file__).parents[3] / "shared" / "data" / "letor" / "mq2008"


@pytest.mark.skipif(not MQ2008.exists(), reason="MQ2008 is not here")
def test_mq2008_reads_whole():
    data = load_letor([MQ2008 / f"S{fold}.txt.gz" for fold in range(1, 6)])
    assert data.X.shape == (15211, 46) and len(set(data.groups)) == 784
    assert sorted(set(data.y)) == [0, 1, 2]


# ------------------------------------------------------------------ preferences


def matrices_of(data):
    """Iterate over the rows and the matrix P of each query."""
    return zip(oracles.split(data.groups.tolist()), data.probabilities, strict=True)


def order_of(ranks):
    return np.argsort(ranks).tolist()


def check_bayes(probabilities, ranks, shares=None):
    """Check that no order contradicts less than the ranking; append its share to `shares`."""
    for P, position in zip(probabilities, ranks, strict=True):
        assert sorted(position) == list(range(1, len(P) + 1))
        off = ~np.eye(len(P), dtype=bool)
        np.testing.assert_allclose((P + P.T)[off], 1)
        assert (P[off] >= 0).all() and not P[~off].any()
        loss = oracles.preference_loss(P.tolist(), order_of(position))
        least = oracles.least_loss(oracles.preference_loss, P.tolist())
        assert loss == pytest.approx(least, abs=1e-9)
        if shares is not None:
            shares.append(least / (len(P) * (len(P) - 1) / 2))


@pytest.mark.parametrize("noise", [0.05, 0.7, 5.0])
@pytest.mark.parametrize("kind", ["btl", "plackett_luce", "mallows", "cyclic"])
def test_bayes_ranking_of_preferences(kind, noise):
    data = make_preferences(25, (2, 5), 3, kind=kind, noise=noise, random_state=2)
    shares = []
    check_bayes(
        data.probabilities, [data.bayes_ranks[rows] for rows, _ in matrices_of(data)], shares
    )
    assert data.bayes_pd == pytest.approx(np.mean(shares))


@pytest.mark.parametrize("clustered", [False, True])
def test_clockwise_is_exact_beyond_brute_force(clustered):
    """Compare the closed form on the circle with dynamic programming, also for clustered angles."""
    rng = np.random.default_rng(0)
    for r in (3, 6, 11, 14):
        angle = rng.uniform(0, 2 * np.pi, size=(20, r))
        if clustered:
            angle = angle[:, rng.integers(0, 3, size=r)] + 0.1 * rng.normal(size=(20, r))
        w = np.maximum(np.sin(angle[:, :, None] - angle[:, None, :]), 0)
        ranks = _clockwise(angle)
        best = decode_preferences(w, "exact")
        assert best.optimal.all()
        for k in range(20):
            loss = oracles.preference_loss(w[k].tolist(), order_of(ranks[k]))
            assert loss == pytest.approx(best.objective[k], abs=1e-9)
    # The vectors sum to 0, so that all starts are equally good.
    even = np.arange(6)[None] * np.pi / 3
    w = np.maximum(np.sin(even[0][:, None] - even[0]), 0).tolist()
    least = oracles.least_loss(oracles.preference_loss, w)
    assert oracles.preference_loss(w, order_of(_clockwise(even)[0])) == pytest.approx(least)


@pytest.mark.parametrize("kind", ["btl", "plackett_luce", "mallows", "cyclic"])
def test_preferences_follow_the_stated_probabilities(kind):
    n = 3000
    data = make_preferences(4, (3, 5), 4, kind=kind, n_judgements=n, random_state=1)
    table = np.zeros((len(data.groups),) * 2)
    np.add.at(table, tuple(data.pairs.T), 1)
    for rows, P in matrices_of(data):
        np.testing.assert_allclose(table[np.ix_(rows, rows)] / n, P, atol=4.5 * 0.5 / np.sqrt(n))
    # The labels y hold the same pairs, and each judgement has every pair once.
    assert len(data.pairs) == n * sum(len(P) * (len(P) - 1) // 2 for P in data.probabilities)
    preferences = read_preferences(data.y)
    np.testing.assert_array_equal(table[preferences.winner, preferences.loser], preferences.weight)
    for judge in (0, n - 1):
        pairs = data.pairs[data.judgement == judge]
        assert len({frozenset(pair) for pair in pairs.tolist()}) == len(pairs)
    # These two kinds draw orders, in which a document wins against all documents below it.
    if kind in ("plackett_luce", "mallows"):
        pairs = data.pairs[data.judgement == 7]
        wins = np.bincount(pairs[:, 0], minlength=len(table))
        assert all(sorted(wins[rows]) == list(range(len(rows))) for rows, _ in matrices_of(data))


def test_mallows_draws_are_those_of_the_model():
    """Compare the shares of all 24 orders, and the closed form of pairs, with the definition."""
    noise, n = 1.3, 40_000
    centre = np.array([3, 1, 4, 2])
    ranks = draw_mallows(np.tile(centre, (n, 1)), noise, np.random.RandomState(0))
    orders = [oracles.ranks_of(order) for order in oracles.all_orders(4)]
    discordant = [
        sum(
            (a[i] - a[j]) * (centre[i] - centre[j]) < 0
            for i, j in itertools.combinations(range(4), 2)
        )
        for a in orders
    ]
    chance = np.exp(-np.array(discordant) / noise)
    chance /= chance.sum()
    share = [(ranks == a).all(axis=1).mean() for a in orders]
    np.testing.assert_allclose(share, chance, atol=4.5 * 0.5 / np.sqrt(n))
    pairs = [
        [sum(p for p, a in zip(chance, orders, strict=True) if a[i] < a[j]) for j in range(4)]
        for i in range(4)
    ]
    np.testing.assert_allclose(mallows_probabilities(centre[None], noise)[0], pairs, atol=1e-12)


@pytest.mark.parametrize("noise", [1e-3, 1e4])
def test_mallows_at_the_ends(noise):
    centre = np.tile(np.arange(1, 8), (3000, 1))
    ranks = draw_mallows(centre, noise, np.random.RandomState(0))
    assert (np.sort(ranks, axis=1) == np.arange(1, 8)).all()
    P = mallows_probabilities(centre[:1], noise)[0]
    if noise < 1:
        np.testing.assert_array_equal(ranks, centre)
        np.testing.assert_array_equal(P, np.triu(np.ones((7, 7)), 1))
    else:
        np.testing.assert_allclose(ranks.mean(axis=0), 4, atol=0.2)
        np.testing.assert_allclose(P + np.eye(7) / 2, 0.5, atol=1e-3)


def test_plackett_luce_draws_are_those_of_the_model():
    noise, n, scores = 0.7, 40_000, np.array([0.2, -0.5, 0.4])
    ranks = draw_plackett_luce(np.tile(scores, (n, 1)), noise, np.random.RandomState(0))
    odds = np.exp(scores / noise)
    for order in oracles.all_orders(3):
        chance = np.prod([odds[d] / sum(odds[list(order[k:])]) for k, d in enumerate(order)])
        share = (ranks == oracles.ranks_of(order)).all(axis=1).mean()
        assert share == pytest.approx(chance, abs=4.5 * 0.5 / np.sqrt(n))


def test_cyclic_is_bilinear_and_no_score_is_enough():
    data = make_preferences(60, 6, 4, kind="cyclic", noise=0.3, random_state=0)
    A = np.zeros((4, 4))
    A[1, 0], A[0, 1] = 1, -1
    lost = 0
    for rows, P in matrices_of(data):
        net = np.tanh(1 / 0.6) * data.X[rows] @ A @ data.X[rows].T
        np.testing.assert_allclose(P - P.T, net, atol=1e-12)
        borda = oracles.preference_loss(P.tolist(), np.argsort(-P.sum(axis=1)).tolist())
        best = oracles.preference_loss(P.tolist(), order_of(data.bayes_ranks[rows]))
        lost += borda > best + 1e-9
    # In more than 10 of the 60 queries even the true sums of preferences give a worse order.
    assert lost > 10
    np.testing.assert_allclose((data.X[:, :2] ** 2).sum(axis=1), 1)


def test_share_of_pairs_judged_and_seed():
    one, two = (
        make_preferences(200, (2, 8), 5, judged=0.3, n_judgements=2, random_state=4)
        for _ in range(2)
    )
    for key in ("X", "pairs", "judgement", "groups", "bayes_ranks"):
        np.testing.assert_array_equal(one[key], two[key])
    n_pairs = 2 * sum(len(P) * (len(P) - 1) // 2 for P in one.probabilities)
    assert len(one.pairs) / n_pairs == pytest.approx(0.3, abs=0.03)
    keys = {(*sorted(p), judge) for p, judge in zip(one.pairs.tolist(), one.judgement, strict=True)}
    assert len(keys) == len(one.pairs)
    assert set(np.bincount(one.groups)) == set(range(2, 9))
    numbers = np.concatenate(one.y["judgement"])
    assert sorted(numbers) == sorted(one.judgement)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "elo"}, "Unknown kind 'elo'. Known: btl, plackett_luce, mallows, cyclic"),
        ({"n_queries": 0}, "n_queries must be a whole number >= 1"),
        ({"n_documents": 1}, "n_documents must be a whole number >= 2"),
        ({"n_documents": (5, 2)}, "must be a range"),
        ({"n_features": 1, "kind": "cyclic"}, "n_features must be a whole number >= 2; got 1"),
        ({"n_features": 0}, "n_features must be a whole number >= 1"),
        ({"n_judgements": 0}, "n_judgements must be a whole number >= 1"),
        ({"judged": 0}, r"judged must be a number in \(0, 1\]; got 0"),
        ({"judged": 1.5}, r"judged must be a number in"),
        ({"noise": 0}, "noise must be a finite number > 0"),
        ({"noise": np.nan}, "noise must be a finite number > 0"),
        (
            {"n_queries": 1, "n_documents": 2, "judged": 1e-9},
            "Increase judged=1e-09",
        ),
    ],
)
def test_bad_arguments_of_preferences(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_preferences(**arguments)


# ------------------------------------------------------------------ label ranking


@pytest.mark.parametrize("n_labels", [2, 3, 5])
@pytest.mark.parametrize("kind", ["btl", "plackett_luce", "mallows", "cyclic"])
def test_bayes_ranking_of_labels(kind, n_labels):
    data = make_label_ranking(25, n_labels, 3, kind=kind, random_state=2)
    shares = []
    check_bayes(data.probabilities, data.bayes_ranks, shares)
    assert data.bayes_optimal.all() and data.bayes_pd == pytest.approx(np.mean(shares))
    assert data.X.shape == (25, 3) and data.latent.shape == (25, n_labels)


@pytest.mark.parametrize("n", [4000, pytest.param(20_000, marks=REST)])
@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("kind", ["btl", "plackett_luce", "mallows", "cyclic"])
def test_rankings_follow_the_stated_probabilities(kind, missing, n):
    """Samples are grouped by the probability of a pair, and compared with the share that has it."""
    data = make_label_ranking(n, 4, 2, kind=kind, noise=0.8, missing=missing, random_state=3)
    above = data.Y if kind == "btl" else preferences_of_ranks(data.Y)
    assert data.Y.shape == ((n, 4, 4) if kind == "btl" else (n, 4))
    for i, j in itertools.permutations(range(4), 2):
        either = (above[:, i, j] + above[:, j, i]) > 0
        assert either.mean() == pytest.approx((1 - missing) ** 2, abs=2.5 / np.sqrt(n))
        chance = data.probabilities[either, i, j]
        won = above[either, i, j]
        for part in np.array_split(np.argsort(chance), 4):
            error = won[part].mean() - chance[part].mean()
            spread = np.sqrt((chance[part] * (1 - chance[part])).sum()) / len(part)
            assert abs(error) < 4.5 * spread


@pytest.mark.parametrize("kind", ["plackett_luce", "mallows", "cyclic"])
def test_ranks_of_labels(kind):
    data = make_label_ranking(300, 5, kind=kind, missing=0.3, random_state=0)
    assert 0.25 < np.isnan(data.Y).mean() < 0.35
    for row in data.Y:
        judged = row[~np.isnan(row)]
        assert sorted(judged) == list(range(1, len(judged) + 1))
    whole = make_label_ranking(300, 5, kind=kind, random_state=0)
    assert not np.isnan(whole.Y).any()
    again = make_label_ranking(300, 5, kind=kind, random_state=0)
    np.testing.assert_array_equal(whole.Y, again.Y)


def test_cyclic_label_ranking_is_cyclic():
    data = make_label_ranking(50, 3, kind="cyclic", noise=0.1, random_state=0)
    net = data.probabilities - data.probabilities.transpose(0, 2, 1)
    around = (net[:, 0, 1] > 0) & (net[:, 1, 2] > 0) & (net[:, 2, 0] > 0)
    assert around.mean() > 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "elo"}, "Unknown kind 'elo'. Known: mallows, plackett_luce, btl, cyclic"),
        ({"n_samples": 0}, "n_samples must be a whole number >= 1"),
        ({"n_labels": 1}, "n_labels must be a whole number >= 2; got 1"),
        ({"n_features": 0}, "n_features must be a whole number >= 1"),
        ({"noise": -1}, "noise must be a finite number > 0"),
        ({"noise": np.inf}, "noise must be a finite number > 0"),
        ({"missing": 1}, r"missing must be a number in \[0, 1\); got 1"),
    ],
)
def test_bad_arguments_of_label_ranking(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_label_ranking(**arguments)


def test_label_ranking_from_classes():
    X, y = load_wine(return_X_y=True)
    names = np.array(["x", "b", "m"])[y]
    rounded = label_ranking_from_classes(X, names)
    assert rounded.dtype == np.int64 and rounded.shape == (178, 3)
    chance = GaussianNB().fit(X, names).predict_proba(X).round(3)
    for row, values in zip(rounded, chance.tolist(), strict=True):
        order = sorted(range(3), key=lambda c: (-values[c], c))
        assert row.tolist() == oracles.ranks_of(order)
    with pytest.raises(ValueError, match="only one class"):
        label_ranking_from_classes(X, np.zeros(len(X)))


BENCHMARK = Path(__file__).parents[3] / "shared" / "data" / "label_ranking"


@pytest.mark.skipif(not BENCHMARK.exists(), reason="the label ranking benchmark is not here")
@pytest.mark.parametrize(("name", "load"), [("iris", load_iris), ("wine", load_wine)])
def test_label_rankings_from_classes_reproduce_the_benchmark(name, load):
    with gzip.open(BENCHMARK / f"{name}.csv.gz", "rt") as file:
        columns = file.readline().strip().split(",")
        table = np.loadtxt(file, delimiter=",")
    is_rank = np.array([column.startswith("L") for column in columns])
    X, y = load(return_X_y=True)
    scaled = minmax_scale(X, (-1, 1))
    nearest = ((scaled[:, None] - table[None, :, ~is_rank]) ** 2).sum(axis=2).argmin(axis=1)
    same = label_ranking_from_classes(X, y) == table[nearest][:, is_rank]
    assert same.all(axis=1).mean() > 0.97
