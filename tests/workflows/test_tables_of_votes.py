"""Votes, files and click logs as people have them."""

import gzip
import io

import numpy as np
import pandas as pd
import polars as pl
import pytest

from sklearn_rankcal import Judgements
from sklearn_rankcal.aggregation import InversePropensity
from sklearn_rankcal.clicks import click_labels, read_clicks
from sklearn_rankcal.datasets import load_letor, make_clicks

# ---------------------------------------------------------------- feature files


def test_letor_files_with_features_from_0(tmp_path):
    text = "2 qid:1 0:.5 3:1\n0 qid:1 1:2\n"
    path = tmp_path / "a.txt"
    path.write_text(text)
    expected = [[0.5, 0, 0, 1], [0, 2, 0, 0]]
    for found in (
        load_letor(path),
        load_letor(path, zero_based=True),
        load_letor(path, n_features=4),
    ):
        assert found.X.tolist() == expected
    with pytest.raises(ValueError, match=r"a\.txt, line 1: .*Invalid index 0.*zero_based=True"):
        load_letor(path, zero_based=False)
    for wrong in (1, "yes"):
        with pytest.raises(ValueError, match="zero_based must be True, False or 'auto'"):
            load_letor(path, zero_based=wrong)
    # Of several files, one with a feature 0 decides for all.
    other = tmp_path / "b.txt"
    other.write_text("1 qid:2 1:7\n")
    assert load_letor([other, path]).X.tolist() == [[0, 7, 0, 0], *expected]
    assert load_letor(other).X.tolist() == [[7]]
    assert load_letor(other, zero_based=np.True_).X.tolist() == [[0, 7]]


def test_open_letor_files(tmp_path):
    text = "2 qid:1 1:.5 # 1A\n0 qid:1 2:2 # 1B\n"
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(text.encode()))
    of_path = load_letor(path)
    assert of_path.document_ids.tolist() == ["1A", "1B"]  # as RankLib writes them
    with gzip.open(path) as file:
        of_file = load_letor(file)
    for found in (of_file, load_letor(io.StringIO(text)), load_letor([io.BytesIO(text.encode())])):
        np.testing.assert_array_equal(found.X, of_path.X)
        assert found.document_ids.tolist() == ["1A", "1B"]
    with pytest.raises(ValueError, match="the open file, line 2: 'x' cannot be read"):
        load_letor(io.StringIO("1 qid:1 1:1\nx\n"))
    prose = io.StringIO("1 qid:1 1:1 # a good document\n")
    assert load_letor(prose).document_ids is None


# ---------------------------------------------------------------- orders


def test_orders_as_text_and_as_a_frame_of_places():
    as_lists = Judgements.from_orders([["tea", ["milk", "juice"]], ["juice", "tea"]], count=[3, 1])
    rows = {"first": ["tea", "juice"], "second": ["milk", "tea"], "third": ["juice", None]}
    strict = Judgements.from_orders([["tea", "milk", "juice"], ["juice", "tea"]])
    texts = ["tea > milk = juice", "juice > tea"]
    for found in (
        Judgements.from_orders(texts, count=[3, 1]),
        Judgements.from_orders(np.array(texts), count=[3, 1]),
        Judgements.from_orders(pd.Series(texts), count=[3, 1]),
        Judgements.from_orders(pd.DataFrame({"order": texts}), count=[3, 1]),
    ):
        assert wins(found) == wins(as_lists)
    for make in (pd.DataFrame, pl.DataFrame):
        assert wins(Judgements.from_orders(make(rows))) == wins(strict)
    numbers = Judgements.from_orders(pd.DataFrame({"1st": [1, 2], "2nd": [2, 1], "3rd": [3, None]}))
    assert numbers.items.tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="Entry 0 of orders is 'tea', which is not a list"):
        Judgements.from_orders(["tea", "milk"])


def wins(judgements):
    found = judgements.preferences()
    names = judgements.items.tolist()
    return sorted(
        (names[i], names[j], weight)
        for i, j, weight in zip(
            found.winner.tolist(), found.loser.tolist(), found.weight.tolist(), strict=True
        )
    )


def test_a_matrix_of_wins_is_no_table_of_orders():
    table = np.array([[0, 5], [3, 0]])
    for given in (table, pd.DataFrame(table), np.where(np.eye(2) > 0, np.nan, table)):
        with pytest.raises(ValueError, match=r"like a matrix of wins.*from_pairs\(numpy.argwhere"):
            Judgements.from_orders(given)
    advised = Judgements.from_pairs(np.argwhere(table > 0), count=table[table > 0])
    assert wins(advised) == [(0, 1, 5.0), (1, 0, 3.0)]
    both = Judgements.from_orders(np.array([[0, 1], [1, 0]]))  # complete orders of the same items
    assert wins(both) == [(0, 1, 1.0), (1, 0, 1.0)]


def test_stars_and_scores_as_ranks():
    from scipy.stats import rankdata

    stars = np.array([[5, 4, 1.0], [5, 3, 3], [4, 5, np.nan]])
    with pytest.warns(UserWarning, match="rows of ranks do not look like rankings.*rankdata"):
        worst_first = Judgements.from_ranks(stars)
    advised = Judgements.from_ranks(rankdata(-stars, axis=1, nan_policy="omit"))
    assert (0, 1, 2.0) in wins(advised) and (1, 0, 2.0) in wins(worst_first)
    with pytest.raises(ValueError, match=r"got 0 in row 0 and column 0.*count from 0, add 1"):
        Judgements.from_ranks([[0, 1, 2]])
    with pytest.raises(ValueError, match=r"got 0\.4 .*rankdata\(-scores"):
        Judgements.from_ranks([[0.4, 0.9]])
    Judgements.from_ranks([[1, 2, 3], [1, 2.5, 2.5], [2, 1, np.nan]])  # no warning


# ---------------------------------------------------------------- click logs


def click_log(n=400):
    """A log with a row for each impression, and the labels that it makes."""
    random = np.random.default_rng(0)
    groups = np.repeat(np.arange(8), 5)
    data = make_clicks(
        random.permutation(np.tile([2, 1, 0, 0, 1], 8)), groups, n,
        propensities=[1, 0.6, 0.4, 0.2, 0.1], random_state=0,
    )  # fmt: skip
    frame = pd.concat(
        pd.DataFrame({"row": row, "session": data.y["sessions"][row],
                      "position": data.y["positions"][row], "clicked": data.y["clicks"][row]})
        for row in range(len(data.y))
    )  # fmt: skip
    return frame, data, groups


def test_a_click_log_that_is_sorted_by_document():
    frame, data, groups = click_log()
    columns = frame["row"], frame["clicked"], groups
    found = click_labels(*columns, sessions=frame["session"], positions=frame["position"])
    for name in ("sessions", "positions", "clicks"):
        same = [
            sorted(zip(one.tolist(), s.tolist(), strict=True))
            for one, s in zip(found[name], found["positions"], strict=True)
        ]
        given = [
            sorted(zip(one.tolist(), s.tolist(), strict=True))
            for one, s in zip(data.y[name], data.y["positions"], strict=True)
        ]
        if name != "sessions":  # which are numbered anew
            assert same == given
    by_position = InversePropensity([1, 0.6, 0.4, 0.2, 0.1])
    right = by_position.scores(read_clicks(data.y))
    np.testing.assert_allclose(by_position.scores(read_clicks(found)), right, rtol=1e-12)
    shuffled = frame.sample(frac=1, random_state=0)
    again = click_labels(
        shuffled["row"], shuffled["clicked"], groups,
        sessions=shuffled["session"], positions=shuffled["position"],
    )  # fmt: skip
    np.testing.assert_allclose(by_position.scores(read_clicks(again)), right, rtol=1e-12)


def test_positions_of_a_log_that_lacks_documents():
    frame, _, groups = click_log()
    for positions, match in (
        (frame["position"] - 1, r"must be 1, 2, 3 and so on, but it has 0 instead of 1"),
        (frame["position"] * 2, "but it has 2 instead of 1. The log needs all documents"),
        (frame["position"][:5], "positions must have one number for each"),
    ):
        with pytest.raises(ValueError, match=match):
            click_labels(frame["row"], frame["clicked"], groups,
                         sessions=frame["session"], positions=positions)  # fmt: skip
    with pytest.raises(ValueError, match="positions needs sessions"):
        click_labels([[0, 1]], [[1]], [0, 0], positions=[1, 2])


def test_a_log_of_clicks_only():
    frame, _, groups = click_log()
    clicked = frame[frame["clicked"]]
    with pytest.warns(UserWarning, match="documents of the log were clicked.*Pass all"):
        click_labels(clicked["row"], clicked["clicked"], groups, sessions=clicked["session"])


def test_a_log_whose_order_is_that_of_the_documents():
    """Where documents change their places, the order of the rows cannot be a fixed list."""
    random = np.random.default_rng(0)
    shown = [np.sort(random.choice(10, 4, replace=False)) for _ in range(50)]
    rows, sessions = np.concatenate(shown), np.repeat(np.arange(50), 4)
    clicked = random.random(200) < 0.3
    with pytest.warns(UserWarning, match="may be sorted by document.*positions="):
        click_labels(rows, clicked, np.zeros(10), sessions=sessions)
    click_labels(
        rows, clicked, np.zeros(10), sessions=sessions, positions=np.tile([1, 2, 3, 4], 50)
    )
    click_labels(
        np.tile(np.arange(4), 50), clicked, np.zeros(10), sessions=sessions
    )  # a fixed list
