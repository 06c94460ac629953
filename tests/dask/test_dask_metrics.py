"""Metrics of dask collections: the values of one machine, whatever the partitions are."""

from itertools import pairwise

import pytest

pytest.importorskip("dask.dataframe")

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import UndefinedMetricWarning

from sklearn_rankcal import metrics
from sklearn_rankcal.dask import (
    DaskCalibratedRanker,
    compare_rankings,
    evaluate_rankings,
    group_queries,
)
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.exceptions import PositionsAsScoresWarning
from sklearn_rankcal.losses import NDCG

from .test_dask_reading import _one_thread  # noqa: F401, a fixture of every test

GRADED = ["ndcg@3", NDCG(2), "err@4", "eru", "pairwise_disagreement", "kendall_tau", "spearman"]
BINARY = ["map", "mrr", "precision@2", "recall@2", "auc"]
METRICS = [*GRADED, *BINARY]


def documents(n_rows=200, n_queries=25, seed=0):
    """Return documents whose queries are contiguous, and of several sizes."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "qid": np.sort(rng.integers(0, n_queries, n_rows)),
            "y": rng.integers(0, 4, n_rows),
            "score": rng.integers(0, 9, n_rows) / 4,  # with ties
            "other": rng.normal(size=n_rows),
            "weight": rng.integers(0, 3, n_rows) / 2.0,
        }
    )
    frame["ranks"] = frame.groupby("qid")["other"].rank(ascending=False).astype(int)
    return frame


def cut(frame, places):
    """Cut the rows of a frame at the first queries that start at some places or later."""
    qid = frame["qid"].to_numpy()
    starts = np.append(np.flatnonzero(np.append(True, qid[1:] != qid[:-1])), len(frame))
    return cut_rows(frame, starts[np.searchsorted(starts, sorted(places))])


def cut_rows(frame, places):
    """Cut the rows of a frame at some places, which can be equal."""
    edges = [0, *places, len(frame)]
    parts = [frame.iloc[a:b] for a, b in pairwise(edges)]
    return dd.from_map(lambda part: part, parts, meta=frame.iloc[:0])


def columns(frame, as_arrays=False):
    """Return the columns of a dask frame as series or as arrays with known or unknown chunks."""
    if not as_arrays:
        return {name: frame[name] for name in frame.columns}
    lengths = {"y": True, "score": True}  # the chunks of the others are not known
    return {name: frame[name].to_dask_array(lengths=lengths.get(name)) for name in frame.columns}


# ------------------------------------------------------------------ values


@settings(derandomize=True, max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 99),
    n_rows=st.integers(1, 40),
    places=st.lists(st.integers(0, 40), max_size=6),
    as_arrays=st.booleans(),
    moved=st.booleans(),
    weighted=st.booleans(),
    ties=st.sampled_from(["average", "first", "worst", "best"]),
    zero_division=st.sampled_from(["skip", 0, 1]),
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_the_values_are_those_of_one_machine(
    seed, n_rows, places, as_arrays, moved, weighted, ties, zero_division
):
    frame = documents(n_rows, 8, seed)
    assume(not weighted or frame.groupby("qid")["weight"].sum().all())
    options = {"metrics": METRICS, "threshold": 2, "ties": ties, "zero_division": zero_division}
    weight = {"sample_weight": frame["weight"]} if weighted else {}
    wanted = metrics.evaluate_rankings(
        frame["y"], frame["score"], groups=frame["qid"], **weight, **options
    )
    parts = cut(frame, [min(place, n_rows) for place in places])
    if moved:
        parts = group_queries(parts, "qid", 3)
    of = columns(parts, as_arrays)
    weight = {"sample_weight": of["weight"]} if weighted else {}
    found = evaluate_rankings(of["y"], of["score"], groups=of["qid"], **weight, **options)
    assert list(found) == [*map(str, METRICS)]
    np.testing.assert_allclose(list(found.values()), list(wanted.values()), rtol=1e-12)


def test_positions():
    frame = documents()
    wanted = metrics.evaluate_rankings(
        frame["y"], ranks=frame["ranks"], groups=frame["qid"], metrics=GRADED
    )
    parts = cut(frame, [50, 50, 120])
    found = evaluate_rankings(parts["y"], ranks=parts["ranks"], groups=parts["qid"], metrics=GRADED)
    assert found == pytest.approx(wanted, rel=1e-12)
    mixed = evaluate_rankings(
        parts["y"], ranks=parts["ranks"].values, groups=parts["qid"].values, metrics=GRADED
    )
    assert mixed == found
    with pytest.raises(ValueError, match=r"ranks must be a permutation of 1 \.\. r"):
        evaluate_rankings(parts["y"], ranks=parts["y"] + 1, groups=parts["qid"])


def test_the_top_grade_can_be_in_another_partition():
    frame = documents()
    frame["y"] = np.where(frame["qid"] == 3, frame["y"], np.minimum(frame["y"], 1))
    assert frame["y"].max() == 3
    grouped = group_queries(cut(frame, [80, 130]), "qid", 20)
    found = evaluate_rankings(grouped["y"], grouped["other"], groups=grouped["qid"], metrics="err")
    wanted = metrics.err_score(frame["y"], frame["other"], groups=frame["qid"])
    assert found["err"] == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("scale", [1e-45, 1e45])
def test_weights_of_the_range(scale):
    frame = documents()
    weight = frame["weight"] * scale * 10.0 ** (frame["qid"] % 5)
    frame["weight"] = np.where(frame["qid"] < 3, 0, weight)
    given_here = {"groups": frame["qid"], "sample_weight": frame["weight"]}
    wanted = metrics.evaluate_rankings(frame["y"], frame["other"], **given_here, metrics=GRADED)
    parts = group_queries(cut(frame, [80, 130]), "qid", 20)
    found = evaluate_rankings(
        parts["y"],
        parts["other"],
        groups=parts["qid"],
        sample_weight=parts["weight"],
        metrics=GRADED,
    )
    assert found == pytest.approx(wanted, rel=1e-12)


# ------------------------------------------------------------------ intervals


@pytest.mark.parametrize("weighted", [False, True])
def test_intervals_are_those_of_one_machine(weighted):
    def columns(data):
        weight = {"sample_weight": data["weight"]} if weighted else {}
        return {"y_true": data["y"], "y_score": data["other"], "groups": data["qid"], **weight}

    frame = documents()
    options = {"metrics": ["ndcg@3", "err", "map"], "threshold": 2, "confidence_level": 0.9}
    wanted = metrics.evaluate_rankings(**columns(frame), **options)
    for places in ([], [90], [10, 20, 30, 150]):
        found = evaluate_rankings(**columns(cut(frame, places)), **options)
        assert list(found) == list(wanted)
        for name, interval in found.items():
            assert vars(interval) == pytest.approx(vars(wanted[name]), rel=1e-12)


@pytest.mark.parametrize("as_ranks", [False, True])
def test_compare_rankings(as_ranks):
    frame = documents()
    frame["first"] = frame.groupby("qid")["score"].rank(ascending=False, method="first").astype(int)
    names = ("first", "ranks") if as_ranks else ("score", "other")
    options = {"metric": ["ndcg@3", "err"], "n_resamples": 300, "as_ranks": as_ranks}
    wanted = metrics.compare_rankings(
        frame["y"],
        frame[names[0]],
        frame[names[1]],
        groups=frame["qid"],
        sample_weight=frame["weight"],
        **options,
    )
    parts = cut(frame, [31, 32, 140])
    given_here = (parts["y"], parts[names[0]], parts[names[1]])
    found = compare_rankings(
        *given_here, groups=parts["qid"], sample_weight=parts["weight"], **options
    )
    assert list(found) == list(wanted) and found["metric"].tolist() == ["ndcg@3", "err"]
    for column in list(found)[3:]:
        assert found[column] == pytest.approx(wanted[column], rel=1e-9)
    named = compare_rankings(
        parts["y"], {"a": given_here[1], "b": given_here[2]}, groups=parts["qid"],
        sample_weight=parts["weight"], baseline="a", **options,
    )  # fmt: skip
    assert named["second"].tolist() == ["a"] * 2
    assert named["difference"] == pytest.approx(-wanted["difference"], rel=1e-9)
    alone = compare_rankings(*given_here, groups=parts["qid"], as_ranks=as_ranks, n_resamples=50)
    assert alone.n_queries == frame["qid"].nunique()


# ------------------------------------------------------------------ with a ranker, on a cluster


@pytest.fixture
def client():
    """A client, which other tests must not see: it changes how rows are moved."""
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
    )
    with cluster, distributed.Client(cluster) as started:
        yield started


def test_predictions_of_a_ranker_on_a_cluster(client):
    data = make_ranking(n_queries=30, random_state=0)
    frame = pd.DataFrame(data.X, columns=[f"x{k}" for k in range(data.X.shape[1])])
    parts = cut(frame.assign(qid=data.groups, label=data.y), [20, 100, 230])
    X = parts.drop(columns="label")
    ranker = DaskCalibratedRanker(loss="ndcg@5", group_column="qid").fit(X, parts["label"])
    found = evaluate_rankings(
        parts["label"], ranks=ranker.predict(X), groups=parts["qid"], metrics=["ndcg@5", "err@5"]
    )
    assert found["ndcg@5"] == pytest.approx(ranker.score(X, parts["label"]), rel=1e-12)
    of_scores = evaluate_rankings(
        parts["label"],
        ranker.decision_function(X),
        groups=parts["qid"],
        metrics=["ndcg@5", "err@5"],
        confidence_level=0.9,
    )
    means = [interval.mean for interval in of_scores.values()]
    assert means == pytest.approx(list(found.values()))


# ------------------------------------------------------------------ input


def test_warnings():
    frame = documents()
    parts = cut(frame, [60])
    with pytest.warns(PositionsAsScoresWarning, match="Pass positions .* as ranks=;") as caught:
        evaluate_rankings(
            frame_column(parts, "y"), parts["ranks"], groups=parts["qid"], metrics="dcg"
        )
    assert caught[0].filename == __file__
    with pytest.warns(PositionsAsScoresWarning, match="as rankings with as_ranks=True"):
        compare_rankings(
            parts["y"], parts["other"], parts["ranks"], groups=parts["qid"], n_resamples=9
        )
    nothing = parts["y"] * 0
    with pytest.warns(
        UndefinedMetricWarning, match=r"map is undefined on all 25 queries"
    ) as caught:
        found = evaluate_rankings(nothing, parts["other"], groups=parts["qid"], metrics="map")
    assert caught[0].filename == __file__ and np.isnan(found["map"])
    with pytest.warns(UndefinedMetricWarning, match=r"map is undefined on all 25 queries"):
        found = evaluate_rankings(
            nothing,
            parts["other"],
            groups=parts["qid"],
            metrics=["map", "dcg"],
            confidence_level=0.9,
        )
    assert np.isnan(found["map"].low)
    assert [interval.n_queries for interval in found.values()] == [0, 25]
    # reversed positions are scores
    size = frame.groupby("qid")["y"].transform("size")
    frame["turned"] = size + 1 - frame.groupby("qid")["y"].rank(method="first", ascending=False)
    parts = cut(frame, [60])
    evaluate_rankings(parts["y"], parts["turned"], groups=parts["qid"], metrics="dcg")


def frame_column(parts, name):
    """Return a column as a frame, which is taken like a series."""
    return parts[[name]]


def test_bad_arguments():
    frame = documents()
    parts = cut(frame, [60, 130])
    y, score, qid = parts["y"], parts["score"], parts["qid"]
    of_rows = cut_rows(frame, [60, 130])
    for message, call in {
        "No query ids. Pass groups=": lambda: evaluate_rankings(y, score),
        "Pass either y_score .* neither": lambda: evaluate_rankings(y, groups=qid),
        "Pass either y_score .* both": lambda: evaluate_rankings(y, score, ranks=y, groups=qid),
        "Unknown ties": lambda: evaluate_rankings(y, score, groups=qid, ties="random"),
        "zero_division must be": lambda: evaluate_rankings(y, score, groups=qid, zero_division=2),
        "confidence_level must be": lambda: evaluate_rankings(
            y, score, groups=qid, confidence_level=95
        ),
        "metrics is empty": lambda: evaluate_rankings(y, score, groups=qid, metrics=[]),
        "groups has 2 partitions, but y_true has 3": lambda: evaluate_rankings(
            y, score, groups=cut(frame, [9])["qid"]
        ),
        "y_score has 12 entries, but y_true has 200": lambda: evaluate_rankings(
            da.from_array(frame["y"].to_numpy(), 50),
            da.zeros(12),
            groups=da.from_array(frame["qid"].to_numpy(), 50),
        ),
        "y_true must have one dimension": lambda: evaluate_rankings(
            da.zeros((3, 4)), da.zeros((3, 4)), groups=qid
        ),
        "Rows of 2 queries are in several .*group_queries": lambda: evaluate_rankings(
            *(of_rows[name] for name in ("y", "score")), groups=of_rows["qid"], metrics="dcg"
        ),
        "Rows of 2 queries are in several": lambda: evaluate_rankings(
            of_rows["y"], ranks=of_rows["score"].astype(int), groups=of_rows["qid"]
        ),
        "sample_weight is zero for every row": lambda: evaluate_rankings(
            y, score, groups=qid, metrics="ndcg", sample_weight=score * 0
        ),
        "sample_weight is 0 on every query where ndcg": lambda: evaluate_rankings(
            y * (qid > 5), score, groups=qid, metrics="ndcg", sample_weight=(qid <= 5) * 1.0
        ),
        "y_true has no rows": lambda: evaluate_rankings(
            *(cut(frame.iloc[:0], [0])[name] for name in ("y", "score")),
            groups=cut(frame.iloc[:0], [0])["qid"],
        ),
    }.items():
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(
        TypeError, match=r"y_true must be a dask series .* sklearn_rankcal\.metrics"
    ):
        evaluate_rankings(frame["y"], score, groups=qid)
    with pytest.raises(TypeError, match="has no parameter 'treshold'"):
        evaluate_rankings(y, score, groups=qid, metrics="map", treshold=1)
    with pytest.raises(TypeError, match="Pass groups=<query id of each row>"):
        evaluate_rankings(y, score, qid=qid)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("y", np.nan, r"In partition 1: .*NaN"),
        ("score", np.inf, r"In partition 1: y_score contains NaN or infinity \(first at row \d"),
        ("weight", -1.0, r"In partition 1: Negative values in data passed to sample_weight: -1"),
        ("qid", np.nan, r"In partition 1: groups has a missing or infinite id at row \d"),
        ("other", 1.5, r"In partition 1: ranks"),
    ],
)
def test_bad_values_name_their_partition(name, value, message):
    frame = documents()
    frame["other"] = frame["ranks"]
    frame = frame.astype(float)
    frame.loc[70, name] = value
    parts = cut(frame, [60, 130])
    ranking = {"ranks": parts["other"]} if name == "other" else {"y_score": parts["score"]}
    with pytest.raises(ValueError, match=message):
        evaluate_rankings(
            parts["y"],
            groups=parts["qid"],
            sample_weight=parts["weight"],
            metrics="dcg",
            **ranking,
        )


def test_rows_that_do_not_fit_together():
    frame = documents()
    parts = cut(frame, [60])
    other = cut_rows(frame, [61])
    with pytest.raises(ValueError, match=r"y_score has \d+ rows in partition \d, but y_true has "):
        evaluate_rankings(parts["y"], other["score"], groups=parts["qid"], metrics="dcg")
    turned = parts.map_partitions(lambda part: part.iloc[::-1])
    with pytest.raises(ValueError, match="The index of groups differs from that of y_true in part"):
        evaluate_rankings(parts["y"], parts["score"], groups=turned["qid"], metrics="dcg")
