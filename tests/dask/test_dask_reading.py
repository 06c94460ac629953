"""Partitions of whole queries, in memory and in parquet files."""

import pytest

pytest.importorskip("dask.dataframe")

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd

from sklearn_rankcal.dask import group_queries


@pytest.fixture(autouse=True)
def _one_thread(request):
    """Compute in this thread, which is the fastest for small data."""
    on_a_cluster = "cluster" in request.node.name
    with dask.config.set({} if on_a_cluster else {"scheduler": "sync"}):
        yield


def table(n_rows=300, n_queries=20, seed=0):
    """A data frame with columns of many dtypes, and the number of each row in ``place``."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "x": rng.normal(size=n_rows),
            "qid": rng.integers(0, n_queries, n_rows),
            "text": rng.choice(["a", "b"], n_rows),
            "color": pd.Categorical(rng.choice(["red", "blue"], n_rows)),
            "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 9, n_rows), "D"),
            "place": np.arange(n_rows),
        },
        index=pd.Index(rng.permutation(n_rows), name="document"),
    )


def cut(frame, npartitions=6):
    return dd.from_pandas(frame, npartitions=npartitions, sort=False)


def parts_of(frame):
    return dask.compute(frame.to_delayed(optimize_graph=False))[0]


def is_whole(parts, column="qid"):
    ids = pd.concat([part[column].drop_duplicates() for part in parts])
    return not ids.duplicated().any()


# ------------------------------------------------------------------ group_queries


@pytest.mark.parametrize("npartitions", [None, 1, 4, 30])
def test_group_queries(npartitions):
    frame = table()
    assert not is_whole(parts_of(cut(frame)))
    grouped = group_queries(cut(frame), "qid", npartitions)
    parts = parts_of(grouped)
    assert len(parts) == grouped.npartitions == (npartitions or 6)
    assert is_whole(parts)
    for part in parts:
        assert part["place"].is_monotonic_increasing
        assert (part.dtypes == grouped.dtypes).all()
    pd.testing.assert_frame_equal(pd.concat(parts).sort_values("place"), cut(frame).compute())


@pytest.mark.parametrize(
    "ids",
    [
        lambda q: q.astype(str),
        lambda q: q.astype("category"),
        lambda q: q / 2,
        lambda q: pd.Timestamp("2026-01-01") + pd.to_timedelta(q, "D"),
        lambda q: q.astype("uint64") + np.uint64(2**63),
    ],
)
def test_group_queries_by_ids_of_any_kind(ids):
    frame = table()
    frame["qid"] = ids(frame["qid"])
    parts = parts_of(group_queries(cut(frame), "qid"))
    assert is_whole(parts)
    pd.testing.assert_frame_equal(pd.concat(parts).sort_values("place"), cut(frame).compute())


def test_group_queries_with_columns_that_are_not_text():
    frame = pd.DataFrame({0: [1.0, 2.0, 3.0, 4.0], "qid": [1, 2, 1, 2], 7: [5, 6, 7, 8]})
    parts = parts_of(group_queries(cut(frame, 2), "qid"))
    assert is_whole(parts) and list(parts[0].columns) == [0, "qid", 7]


def test_group_queries_on_a_cluster():
    distributed = pytest.importorskip("distributed")
    frame = table()
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
    )
    with cluster, distributed.Client(cluster):
        parts = dask.compute(group_queries(cut(frame), "qid").to_delayed())[0]
    assert is_whole(parts)
    assert all(part["place"].is_monotonic_increasing for part in parts)
    assert sum(len(part) for part in parts) == len(frame)


def test_group_queries_refuses():
    frame = table()
    with pytest.raises(TypeError, match=r"frame must be a dask data frame; got DataFrame"):
        group_queries(frame, "qid")
    with pytest.raises(ValueError, match=r"'qids' is not among .* Did you mean 'qid'"):
        group_queries(cut(frame), "qids")
    with pytest.raises(TypeError, match="group_column must be the name of a column"):
        group_queries(cut(frame), None)
    with pytest.raises(ValueError, match="npartitions must be a whole number >= 1"):
        group_queries(cut(frame), "qid", 0)
    frame["qid"] = frame["qid"].astype(float).where(frame["place"] != 60)
    with pytest.raises(ValueError, match=r"partition 1: groups has a missing .* id at row 10"):
        group_queries(cut(frame), "qid").compute()


@pytest.mark.parametrize("other", [float, str])
def test_equal_ids_of_two_dtypes_are_one_query(other):
    """Partitions of files written apart can have other dtypes than dask says."""
    frame = table()
    parts = cut(frame).map_partitions(
        lambda part: part.astype({"qid": other}) if part["place"].iloc[0] >= 150 else part,
        meta=frame.astype({"qid": other}),
    )
    assert is_whole(parts_of(group_queries(parts, "qid")))


# ------------------------------------------------------------------ parquet


@pytest.mark.parametrize("npartitions", [None, 2, 12])
def test_queries_in_files(tmp_path, npartitions):
    frame = table()
    group_queries(cut(frame), "qid", npartitions).to_parquet(tmp_path / "q", write_index=False)
    queries = dd.read_parquet(tmp_path / "q", split_row_groups=False)
    assert len(list((tmp_path / "q").iterdir())) == queries.npartitions == (npartitions or 6)
    parts = parts_of(queries)
    assert is_whole(parts)
    assert all(part["place"].is_monotonic_increasing for part in parts)
    read = pd.concat(parts).sort_values("place", ignore_index=True)
    wanted = cut(frame).compute().reset_index(drop=True)
    pd.testing.assert_frame_equal(read, wanted, check_categorical=False, check_dtype=False)
