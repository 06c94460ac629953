"""Generated data: the ranking called Bayes must be the best; and the LETOR reader."""

import gzip
import itertools
from pathlib import Path

import numpy as np
import pytest

from sklearn_rankcal._queries import Queries
from sklearn_rankcal.datasets import load_letor, make_ranking
from sklearn_rankcal.losses import LOSSES
from sklearn_rankcal.metrics import ndcg_score

from . import oracles


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
def test_bayes_ranking_is_the_best_of_all(name):
    """Expected measure over all label vectors, for every ranking of a few small queries."""
    binary = name in ("precision", "recall", "auc", "map_by_scores")
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
        ({"n_queries": 0}, "n_queries must be at least 1"),
        ({"n_documents": 0}, "n_documents must be at least 1"),
        ({"n_documents": (5, 2)}, "must be a range"),
        ({"n_levels": 1}, "n_levels must be at least 2"),
        ({"n_features": 3}, "n_informative=6 exceeds n_features=3"),
        ({"noise": 0}, "noise must be > 0"),
        ({"metric": "nope"}, "Unknown metric"),
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
    with pytest.raises(ValueError, match="does not have a qid: on every line"):
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
    with pytest.raises(ValueError, match="names no file"):
        load_letor([])


MQ2008 = Path(__file__).parents[2] / "shared" / "data" / "letor" / "mq2008"


@pytest.mark.skipif(not MQ2008.exists(), reason="MQ2008 is not here")
def test_mq2008_reads_whole():
    data = load_letor([MQ2008 / f"S{fold}.txt.gz" for fold in range(1, 6)])
    assert data.X.shape == (15211, 46) and len(set(data.groups)) == 784
    assert sorted(set(data.y)) == [0, 1, 2]
