"""Queries: grouping ids of any kind and order, per-query reductions and sorts."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_rankcal import order_to_ranks, ranks_to_order, sizes_to_groups
from sklearn_rankcal.queries import Queries

from .. import oracles

LAYOUTS = [
    [0],
    [3, 3, 3],
    [1, 1, 2, 2, 2, 5],
    [2, 1, 2, 1, 1],
    ["b", "a", "b", "c"],
    [1, "1", 1, None.__class__],
    [0.5, 0.25, 0.5],
    [("q", 1), ("q", 2), ("q", 1)],
    [True, False, True],
    [np.int64(3), "a", np.int64(3), np.float64(0.5), np.str_("a")],
    np.array([127, -128, 127, 0], dtype=np.int8),
    np.array([2**62, -(2**62), 2**62]),
    np.arange(70_000)[::-1] % 69_000,
    [2**63 + 5, -3, 2**63 + 6, -3],
    [2**63, 2**63, 2**63 + 1, 7],
    pd.Series(["x", "y", "x"], dtype="category"),
    pd.Series([7, 8, 7], index=[5, 6, 7]),
    pd.array([1, 2, 1], dtype="Int64"),
    pl.Series(["x", "y", "x"]),
    np.array(["2020-01-01", "2021-01-01", "2020-01-01"], dtype="datetime64[D]"),
    np.array([[1], [2], [1]]),
    np.array([2**63 + 1, 5, 2**63 + 1], dtype=np.uint64),
]


@pytest.mark.parametrize("groups", LAYOUTS, ids=lambda g: type(g).__name__ + str(len(g)))
def test_partition_matches_a_dictionary(groups):
    listed = [g[0] if isinstance(g, np.ndarray) else g for g in list(groups)]
    queries = Queries.from_groups(groups, len(listed))
    order = np.arange(len(listed)) if queries.order is None else queries.order
    parts = [
        order[a:b].tolist() for a, b in zip(queries.offsets[:-1], queries.offsets[1:], strict=True)
    ]
    assert parts == oracles.split(listed)
    assert [listed[p[0]] for p in parts] == list(queries.ids)


def test_contiguous_groups_are_not_reordered():
    assert Queries.from_groups([4, 4, 1, 1, 9]).order is None
    assert Queries.from_groups([4, 1, 4]).order is not None


groups_strategy = st.lists(st.integers(0, 5), min_size=1, max_size=40)


@given(groups_strategy, st.integers(0, 2**32 - 1))
def test_reductions_match_loops(groups, seed):
    values = np.random.RandomState(seed).randint(-3, 4, size=len(groups)).astype(float)
    weight = np.random.RandomState(seed).randint(0, 3, size=len(groups)).astype(float)
    queries = Queries.from_groups(groups)
    parts = oracles.split(groups)
    np.testing.assert_allclose(queries.sum(values), [values[p].sum() for p in parts])
    np.testing.assert_allclose(queries.max(values), [values[p].max() for p in parts])
    np.testing.assert_allclose(queries.min(values), [values[p].min() for p in parts])
    np.testing.assert_allclose(queries.mean(values), [values[p].mean() for p in parts])
    assert queries.have_equal(values) == all(np.ptp(values[p]) == 0 for p in parts)
    assert queries.have_equal(queries.broadcast(queries.max(values)))
    means = [np.average(values[p], weights=weight[p]) if weight[p].any() else 0 for p in parts]
    np.testing.assert_allclose(queries.mean(values, weight), means, atol=1e-12)
    np.testing.assert_allclose(queries.sum(queries.center(values)), 0, atol=1e-12)
    own = [means[code] for code in queries.codes]
    np.testing.assert_allclose(queries.center(values, weight), values - own, atol=1e-12)
    grouped = queries.cumsum(queries.gather(values))
    np.testing.assert_allclose(grouped, np.concatenate([np.cumsum(values[p]) for p in parts]))
    np.testing.assert_array_equal(queries.scatter(queries.gather(values)), values)
    np.testing.assert_array_equal(
        queries.codes,
        [next(n for n, p in enumerate(parts) if row in p) for row in range(len(groups))],
    )


@given(groups_strategy, st.integers(0, 2**32 - 1))
def test_sort_is_stable_and_descending(groups, seed):
    scores = np.random.RandomState(seed).randint(0, 4, size=len(groups)).astype(float)
    queries = Queries.from_groups(groups)
    expected = [sorted(p, key=lambda row: (-scores[row], row)) for p in oracles.split(groups)]
    order = queries.sort(scores)
    assert order.tolist() == [row for part in expected for row in part]
    ranks = queries.rank(order)
    for part in expected:
        assert ranks[part].tolist() == list(range(1, len(part) + 1))


def test_sort_of_very_different_sizes():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), rng.integers(1, 400, size=40))
    rng.shuffle(groups)
    scores = rng.normal(size=len(groups)).round(1)
    order = Queries.from_groups(groups).sort(scores)
    expected = [sorted(p, key=lambda row: (-scores[row], row)) for p in oracles.split(groups)]
    assert order.tolist() == [row for part in expected for row in part]


def test_integer_scores_sort_without_overflow():
    scores = np.array([0, np.iinfo(np.uint8).max, 3], dtype=np.uint8)
    assert Queries.single(3).sort(scores).tolist() == [1, 2, 0]


@given(groups_strategy, st.integers(1, 7))
def test_chunks_and_select_cover_whole_queries(groups, max_rows):
    queries = Queries.from_groups(groups)
    rows_seen, sizes = [], []
    for rows, part in queries.chunks(max_rows):
        rows = np.arange(len(groups))[rows]
        assert part.n_rows == len(rows)
        assert part.n_queries == 1 or part.n_rows <= max_rows
        rows_seen.extend(rows.tolist())
        sizes.extend(part.sizes.tolist())
    assert sorted(rows_seen) == list(range(len(groups)))
    assert sizes == queries.sizes.tolist()
    keep = np.arange(queries.n_queries) % 2 == 0
    rows, part = queries.select(keep)
    expected = [p for n, p in enumerate(oracles.split(groups)) if keep[n]]
    assert rows.tolist() == sorted(r for p in expected for r in p)
    order = np.arange(part.n_rows) if part.order is None else part.order
    assert rows[order].tolist() == [r for p in expected for r in p]
    assert part.ids.tolist() == queries.ids[keep].tolist()


def test_running_sums_of_floats_stay_inside_their_query():
    values = np.array([1e17, 1.0, 0.25, 0.5, 3.0, 1e300])
    queries = Queries(np.array([0, 2, 5, 6]))
    wanted = np.array([1e17, 1e17 + 1, 0.25, 0.75, 3.75, 1e300])
    np.testing.assert_array_equal(queries.cumsum(values), wanted)
    np.testing.assert_array_equal(queries.cumsum(np.arange(6)), [0, 1, 2, 5, 9, 5])


def test_same_partition_ignores_names():
    one, other = Queries.from_groups(["a", "b", "a"]), Queries.from_groups([9, 3, 9])
    assert one.same_partition(other)
    assert not one.same_partition(Queries.from_groups([9, 9, 3]))


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([1, 2], "groups has 2 entries, but X has 3 rows"),
        (np.zeros((3, 2)), "1-D"),
        ([1.0, np.nan, 2.0], r"missing or infinite id at row 1"),
        ([1.0, 2.0, np.inf], r"missing or infinite id at row 2"),
        (["a", None, "b"], "missing or infinite id at row 1"),
        (pd.array([1, None, 2], dtype="Int64"), "missing or infinite id at row 1"),
        (pd.to_datetime(["2020-01-01", None, "2020-01-02"]), "missing or infinite id at row 1"),
        ([[1], [2, 3], [4]], "hashable"),
        ("qid", "parameter group_column of rankers is a name"),
        (3, "one id per row"),
        (np.ma.array([1, 2, 3], mask=[0, 1, 0]), "missing or infinite id at row 1"),
        (np.ma.array([[1], [2], [3]], mask=[[0], [1], [0]]), "missing or infinite id at row 1"),
        (np.ma.array([[1, 2]] * 3, mask=[[0, 1], [0, 1], [0, 1]]), "1-D"),
        ([1, np.ma.masked, 3], "missing or infinite id at row 1"),
        ({"a": 1, "b": 2, "c": 3}, "in the order of the rows; got a dict"),
        ({1, 2, 3}, "in the order of the rows; got a set"),
    ],
)
def test_bad_groups(groups, message):
    with pytest.raises(ValueError, match=message):
        Queries.from_groups(groups, 3)


def test_texts_keep_their_own_lengths():
    queries = Queries.from_groups(["a", "a\0", "a", "a\0"])
    assert queries.sizes.tolist() == [2, 2] and queries.ids.tolist() == ["a", "a\0"]
    # An array of text of a fixed width would take 4 * 10^7 * 10^5 bytes.
    queries = Queries.from_groups(["x" * 10**7] + ["y"] * 10**5)
    assert queries.sizes.tolist() == [1, 10**5]
    assert Queries.from_groups([b"a", b"a\0"]).n_queries == 2


def test_empty_groups():
    with pytest.raises(ValueError, match="empty"):
        Queries.from_groups([], 0)


def test_conversions():
    assert sizes_to_groups(np.array([1, 2])).tolist() == [0, 1, 1]
    order = np.random.RandomState(0).permutation(9)
    np.testing.assert_array_equal(ranks_to_order(order_to_ranks(order)), order)
    with pytest.raises(ValueError, match="at least 1; got 0"):
        sizes_to_groups([1, 0])
    with pytest.raises(ValueError, match="whole numbers"):
        sizes_to_groups([1.5])
    with pytest.raises(ValueError, match="1-D"):
        sizes_to_groups([])
    for values in (np.ma.array([1, 2], mask=[0, 1]), [1, "2"], np.array([1, 2], dtype="m8[s]")):
        for convert in (sizes_to_groups, order_to_ranks, ranks_to_order):
            with pytest.raises(ValueError, match=r"(sizes|order|ranks) (has|must be real)"):
                convert(values)
    with pytest.raises(ValueError, match=r"ranks must be a permutation of 1 .. 3"):
        ranks_to_order([0, 1, 2])
    with pytest.raises(ValueError, match=r"order must be a permutation of 0 .. 2"):
        order_to_ranks([1, 1, 2])


def test_query_ids_are_not_taken_for_sizes():
    ids = np.repeat(np.arange(10_001, 10_101), 200)  # as in a LETOR file: 20,000 rows
    with pytest.raises(ValueError, match=r"add up to 201,010,000 rows\. If these are quer"):
        sizes_to_groups(ids)
    with pytest.raises(ValueError, match="sizes add up to 201,010,000 rows, but n_rows is 20000"):
        sizes_to_groups(ids, n_rows=len(ids))
    sizes = np.repeat([20_000, 30_000], 20)
    assert len(sizes_to_groups(sizes)) == len(sizes_to_groups(sizes, n_rows=10**6)) == 10**6
