"""Partitions of whole queries, in memory and in parquet files."""

import pytest

pytest.importorskip("dask.dataframe")

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from dask.dataframe.io.parquet.arrow import ArrowDatasetEngine

from sklearn_rankcal.dask import group_queries, read_queries, write_queries


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
    with pytest.raises(ValueError, match=r"'qids' is not among .* of frame\. Did you mean 'qid'"):
        group_queries(cut(frame), "qids")
    with pytest.raises(TypeError, match="group_column must be the name of a column"):
        group_queries(cut(frame), None)
    with pytest.raises(ValueError, match="npartitions must be a whole number >= 1"):
        group_queries(cut(frame), "qid", 0)
    frame["qid"] = frame["qid"].astype(float).where(frame["place"] != 60)
    with pytest.raises(ValueError, match="query id of row 10 of partition 1 is missing"):
        group_queries(cut(frame), "qid").compute()


# ------------------------------------------------------------------ parquet


@pytest.mark.parametrize("npartitions", [None, 2, 12])
def test_queries_in_files(tmp_path, npartitions):
    frame = table()
    write_queries(cut(frame), tmp_path / "q", "qid", npartitions=npartitions)
    queries = read_queries(tmp_path / "q", "qid")
    assert len(list((tmp_path / "q").iterdir())) == queries.npartitions == (npartitions or 6)
    parts = parts_of(queries)
    assert is_whole(parts)
    assert all(part["place"].is_monotonic_increasing for part in parts)
    read = pd.concat(parts).sort_values("place", ignore_index=True)
    wanted = cut(frame).compute().reset_index(drop=True)
    pd.testing.assert_frame_equal(read, wanted, check_categorical=False, check_dtype=False)


def test_columns_of_files(tmp_path):
    write_queries(cut(table()), tmp_path, "qid", npartitions=5)
    assert list(read_queries(tmp_path, "qid", columns=["x"]).columns) == ["qid", "x"]
    assert list(read_queries(str(tmp_path), "qid", columns=["x", "qid"]).columns) == ["x", "qid"]
    # dask would merge the files of which it needs few columns
    queries = read_queries(tmp_path, "qid")
    wide = queries.assign(**{f"x{k}": 0 for k in range(30)})
    write_queries(wide, tmp_path / "wide", "qid", whole_queries=True)
    ids = read_queries(tmp_path / "wide", "qid")[["qid"]] + 1
    parts = dask.compute(ids.to_delayed())[0]
    assert len(parts) == 5 and is_whole(parts)


def test_large_files_are_not_split(tmp_path, monkeypatch):
    for number in range(3):
        frame = pd.DataFrame({"qid": np.repeat([number, number + 10], 50), "x": np.arange(100.0)})
        rows = pa.Table.from_pandas(frame)
        pq.write_table(rows, tmp_path / f"{number}.parquet", row_group_size=20)
    # a file above twice this size is split by default; all files are larger now
    monkeypatch.setattr(ArrowDatasetEngine, "default_blocksize", classmethod(lambda cls: 100))
    assert not is_whole(parts_of(dd.read_parquet(tmp_path)))
    queries = read_queries(tmp_path, "qid")
    assert queries.npartitions == 3 and is_whole(parts_of(queries))


def test_partitions_that_are_said_to_be_whole(tmp_path):
    frame = table()
    with pytest.raises(ValueError, match=r"whole_queries=True, but 20 queries are in several part"):
        write_queries(cut(frame), tmp_path, "qid", whole_queries=True)
    assert list(tmp_path.iterdir()) == []
    grouped = group_queries(cut(frame), "qid")
    with pytest.raises(ValueError, match="npartitions has no effect if whole_queries=True"):
        write_queries(grouped, tmp_path, "qid", whole_queries=True, npartitions=3)
    write_queries(grouped, tmp_path, "qid", whole_queries=True)
    for one, two in zip(parts_of(read_queries(tmp_path, "qid")), parts_of(grouped), strict=True):
        assert one["place"].tolist() == two["place"].tolist()


def test_rows_that_dask_moves_to_add_a_column(tmp_path):
    queries = group_queries(cut(table()), "qid")
    half = [part["x"] / 2 for part in queries.simplify().to_delayed(optimize_graph=False)]
    series = dd.from_delayed(half, meta=queries["x"]._meta, verify_meta=True)
    with pytest.raises(ValueError, match=r"Rows moved between partitions .* files were deleted"):
        write_queries(queries.assign(half=series), tmp_path, "qid", whole_queries=True)
    assert list(tmp_path.iterdir()) == []
    added = queries.assign(half=series.to_dask_array(lengths=True))
    write_queries(added, tmp_path, "qid", whole_queries=True)
    rows = read_queries(tmp_path, "qid").compute()
    assert len(rows) == 300 and (rows["half"] == rows["x"] / 2).all()


def test_files_that_are_left_over(tmp_path):
    write_queries(cut(table()), tmp_path, "qid", npartitions=4)
    with pytest.raises(FileExistsError, match=r"contains 4 parquet files.*overwrite=True"):
        write_queries(cut(table()), tmp_path, "qid", npartitions=2)
    write_queries(cut(table()), tmp_path, "qid", npartitions=2, overwrite=True)
    assert len(read_queries(tmp_path, "qid")) == 300


def test_read_queries_refuses(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        read_queries(tmp_path / "missing", "qid")
    with pytest.raises(FileNotFoundError, match="contains no parquet file"):
        read_queries(tmp_path, "qid")
    cut(table()).to_parquet(tmp_path, write_index=False)
    with pytest.raises(ValueError, match=r"'qids' is not among the columns .* mean 'qid'"):
        read_queries(tmp_path, "qids")
    with pytest.raises(ValueError, match="'y' is not among the columns"):
        read_queries(tmp_path, "qid", columns=["y"])
    with pytest.raises(ValueError, match=r"20 queries are in several files of .*write_queries\("):
        read_queries(tmp_path, "qid")


@pytest.mark.parametrize("how", ["read_queries", "whole", "read_parquet"])
def test_a_folder_can_be_overwritten_with_what_was_read_from_it(how, tmp_path):
    frame = pd.DataFrame({"qid": np.arange(40) // 4, "x": np.arange(40.0)})
    write_queries(dd.from_pandas(frame, npartitions=5), tmp_path, "qid")
    if how == "read_parquet":
        read = dd.read_parquet(tmp_path, split_row_groups=False)
    else:
        read = read_queries(tmp_path, "qid")
    changed = read.assign(x=read["x"] + 1)
    write_queries(changed, tmp_path, "qid", whole_queries=how == "whole", overwrite=True)
    again = read_queries(tmp_path, "qid").compute().sort_values("x")
    assert again["x"].tolist() == (frame["x"] + 1).tolist()


def test_a_write_that_fails_leaves_the_folder_as_it_was(tmp_path):
    frame = pd.DataFrame({"qid": np.arange(40) // 4, "x": np.arange(40.0)})

    def failing(part):
        if part["x"].max() == 39:
            raise OSError("disk full")
        return part

    broken = dd.from_pandas(frame, npartitions=5).map_partitions(failing, meta=frame.iloc[:0])
    with pytest.raises(OSError, match="disk full"):
        write_queries(broken, tmp_path, "qid", whole_queries=True)
    assert list(tmp_path.glob("*.parquet")) == []
    write_queries(dd.from_pandas(frame, npartitions=5), tmp_path, "qid")
    before = sorted(tmp_path.glob("*.parquet"))
    with pytest.raises(OSError, match="disk full"):
        write_queries(broken, tmp_path, "qid", whole_queries=True, overwrite=True)
    assert sorted(tmp_path.glob("*.parquet")) == before
    assert len(read_queries(tmp_path, "qid")) == 40


def test_files_in_subfolders_are_refused(tmp_path):
    frame = pd.DataFrame({"qid": np.arange(40) // 4, "x": np.arange(40.0)})
    write_queries(dd.from_pandas(frame, npartitions=5), tmp_path, "qid")
    (tmp_path / "more").mkdir()
    frame.assign(qid=frame["qid"] + 100).to_parquet(tmp_path / "more" / "a.parquet")
    with pytest.raises(ValueError, match="subfolders"):
        read_queries(tmp_path, "qid")


def test_ids_that_are_categories_are_refused_before_anything_is_written(tmp_path):
    frame = pd.DataFrame({"qid": pd.Categorical(np.arange(40) // 4), "x": np.arange(40.0)})
    with pytest.raises(TypeError, match="are categories"):
        write_queries(dd.from_pandas(frame, npartitions=5), tmp_path, "qid")
    assert list(tmp_path.iterdir()) == []
