"""DaskCalibratedRanker on workers: the libraries that train on them, and workers that are lost.

The tests with LightGBM and XGBoost skip where these are not installed, as in CI.
"""

import os
import re
import signal
import threading
import time
from itertools import pairwise
from pathlib import Path

import dask
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from sklearn.linear_model import Ridge, SGDRegressor

from sklearn_rankcal import CalibratedRanker
from sklearn_rankcal.dask import DaskCalibratedRanker
from sklearn_rankcal.dask._collections import refuse_lost_workers  # not to be staged in time

from ..column_tools import behind
from ..dask_data import collection_of

# Libraries warn of things that are no matter of ours, such as ports and deprecated names.
pytestmark = pytest.mark.filterwarnings("default")

SIZES = np.random.default_rng(0).integers(2, 9, 80)


def make_documents():
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(len(SIZES)), SIZES)
    frame = pd.DataFrame(rng.normal(size=(len(qid), 4)), columns=list("abcd"))
    frame["a"] += rng.normal(size=len(SIZES))[qid]
    label = np.clip((frame["a"] + frame["b"] + rng.normal(size=len(qid))).round(), 0, 3)
    kind = pd.Categorical(np.where(frame["c"] > 0, "long", "short"))
    return frame.assign(kind=kind, qid=qid, label=label, w=rng.integers(1, 4, len(qid)) * 1.0)


FRAME = make_documents()
EDGES = np.append(0, np.cumsum(SIZES))[[0, 15, 30, 50, 65, 80]]
PARTS = [FRAME.iloc[a:b] for a, b in pairwise(EDGES)]
FEATURES = ["a", "b", "c", "d", "qid"]


@pytest.fixture(scope="module")
def cluster():
    # one worker, because the bins of histograms depend on which worker has which rows
    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with Client(cluster) as client:
        yield client


@pytest.fixture
def processes(monkeypatch):
    """A client whose workers are processes, which can be killed and are started again."""
    # The workers import this file; they have the path of this process when they are started.
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))

    def too_late(signum, frame):
        raise TimeoutError("the workers do not answer")

    signal.signal(signal.SIGALRM, too_late)
    signal.alarm(120)
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 2}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client
    signal.alarm(0)


class Reader:
    """Read a partition; at the first call for `place` the worker dies, `times` times in all."""

    def __init__(self, folder=None, place=2, times=1, seconds=0.0):
        self.folder, self.place, self.times, self.seconds = folder, place, times, seconds

    def __call__(self, number):
        time.sleep(self.seconds)
        if self.folder is not None and number == self.place:
            for time_ in range(self.times):
                path = os.path.join(self.folder, f"died{time_}")
                if not os.path.exists(path):
                    open(path, "w").close()
                    os._exit(1)
        return PARTS[number]


def documents(reader):
    import dask.dataframe as dd

    return dd.from_map(reader, range(len(PARTS)), meta=FRAME.iloc[:0])


def regressor_of(library, **parameters):
    """Return a regressor with 20 trees of a library on dask, and its class for one machine."""
    if library == "lightgbm":
        lightgbm = pytest.importorskip("lightgbm")
        common = {"n_estimators": 20, "num_leaves": 7, "min_child_samples": 5, "verbose": -1}
        return lightgbm.DaskLGBMRegressor(**common, **parameters)
    pytest.importorskip("xgboost")
    from xgboost import dask as xgboost_dask

    return xgboost_dask.DaskXGBRegressor(
        n_estimators=20, max_depth=3, enable_categorical=True, **parameters
    )


@pytest.mark.slow
@pytest.mark.parametrize("context", ["zscore", "difference"])
@pytest.mark.parametrize("library, constraint", [("lightgbm", [1, 0, 0, 0]), ("xgboost", {"a": 1})])
def test_constraints_hold_beside_context_columns(client, library, constraint, context):
    regressor = regressor_of(library, monotone_constraints=constraint)
    frame = collection_of(PARTS)
    ranker = DaskCalibratedRanker(regressor, group_column="qid", context=context).fit(
        frame[FEATURES], frame["label"]
    )
    assert ranker.regressor.get_params()["monotone_constraints"] == constraint
    one = ranker.ranker_
    assert one.model_.context_ == {context: [*"bcd"] if context == "zscore" else [*"abcd"]}
    rows = FRAME["qid"].isin(FRAME["qid"].unique()[:10])
    assert behind(one, FRAME.loc[rows, [*"abcd"]], FRAME.loc[rows, "qid"].to_numpy()) == 0


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("as_array", [False, True])
@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_libraries_learn_the_targets_of_the_loss(client, library, as_array, weighted):
    regressor = regressor_of(library)
    frame = collection_of(PARTS)
    features = FEATURES if as_array else [*FEATURES, "kind"]
    X, y, weight = frame[features], frame["label"], frame["w"]
    if as_array:
        arrays = [frame[list("abcd")], frame["qid"], y, weight]
        X, groups, y, weight = (each.to_dask_array(lengths=True) for each in arrays)
    ranker = DaskCalibratedRanker(
        regressor,
        loss="dcg",
        group_column=None if as_array else "qid",
        context=None,
        center=False,
    )
    given = {"groups": groups} if as_array else {}
    ranker.fit(X, y, **given, sample_weight=weight if weighted else None)
    # by hand: the targets of DCG are the gains of the labels
    by_hand = regressor.__class__(**regressor.get_params())
    weights = {"sample_weight": weight} if weighted else {}
    table = X if as_array else X.drop(columns="qid")
    by_hand.fit(table, 2**y - 1, **weights)
    local = FRAME[list("abcd")].to_numpy() if as_array else FRAME[[*"abcd", "kind"]]
    wanted = by_hand.to_local().predict(local) if library == "lightgbm" else None
    if wanted is None:
        wanted = np.asarray(by_hand.predict(table).compute())
    lazily = {"groups": groups} if as_array else {}
    scores = ranker.decision_function(X, **lazily).compute()
    np.testing.assert_allclose(scores, wanted, rtol=1e-5, atol=1e-6)
    assert np.std(scores) > 0.1
    ranks = ranker.predict(X, **lazily).compute()
    alone = {"groups": FRAME["qid"]} if as_array else {}
    table = FRAME[list("abcd")].to_numpy() if as_array else FRAME[features]
    assert ranks.tolist() == ranker.ranker_.predict(table, **alone).tolist()


@pytest.mark.slow
def test_a_killed_worker_does_not_change_a_closed_form(processes, tmp_path):
    df = documents(Reader(tmp_path))
    ranker = DaskCalibratedRanker(group_column="qid", loss="dcg")
    ranker.fit(df[FEATURES], df["label"])
    assert (tmp_path / "died0").exists()
    wanted = CalibratedRanker(Ridge(), group_column="qid", loss="dcg")
    wanted.fit(FRAME[FEATURES], FRAME["label"])
    np.testing.assert_allclose(
        ranker.model_.regressor_.coef_, wanted.model_.regressor_.coef_, rtol=1e-9
    )


@pytest.mark.slow
def test_a_killed_worker_does_not_change_partial_fit(processes, tmp_path):
    df = documents(Reader(tmp_path))
    ranker = DaskCalibratedRanker(SGDRegressor(random_state=0), group_column="qid", n_passes=2)
    ranker.fit(df[FEATURES], df["label"])
    assert (tmp_path / "died0").exists()
    coef = ranker.model_.regressor_.coef_
    with dask.config.set(scheduler="synchronous"):
        ranker.fit(collection_of(PARTS)[FEATURES], collection_of(PARTS)["label"])
    np.testing.assert_allclose(coef, ranker.model_.regressor_.coef_, rtol=1e-12)


@pytest.mark.slow
def test_a_partition_that_kills_every_worker_is_an_error(processes, tmp_path):
    df = documents(Reader(tmp_path, times=100))
    ranker = DaskCalibratedRanker(group_column="qid")
    with pytest.raises(Exception, match="worker") as caught:
        ranker.fit(df[FEATURES], df["label"])
    assert type(caught.value).__name__ == "KilledWorker"
    assert not hasattr(ranker, "ranker_")


def kill_while_training(client):
    """Kill one of the workers a second after they began to train, in a thread."""

    def kill():
        # the task of LightGBM is called _train_part, and that of XGBoost fn
        while not re.search("train|fn-", str(client.processing())):
            time.sleep(0.1)
        time.sleep(1.0)
        pids = client.run(os.getpid)
        os.kill(next(iter(pids.values())), 9)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    return thread


@pytest.mark.slow
@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_libraries_say_that_a_worker_was_lost(processes, library):
    # so many trees that the worker is killed while they grow
    regressor = regressor_of(library).set_params(n_estimators=100_000)
    df = collection_of(PARTS)
    ranker = DaskCalibratedRanker(regressor, group_column="qid")
    kill_while_training(processes)
    started = time.perf_counter()
    with pytest.raises(RuntimeError, match=r"workers \(tcp://.*\) was lost while Dask.*Call fit"):
        ranker.fit(df[FEATURES], df["label"])
    assert time.perf_counter() - started < 90
    assert not hasattr(ranker, "ranker_")
    # the nanny starts the worker again
    processes.wait_for_workers(2, timeout=60)
    ranker.set_params(regressor__n_estimators=5).fit(df[FEATURES], df["label"])
    assert ranker.predict(df[FEATURES]).compute().min() == 1


def test_only_the_futures_of_the_block_are_cancelled(monkeypatch):
    monkeypatch.setattr("sklearn_rankcal.dask._collections._SECONDS_BETWEEN_LOOKS", 0.05)
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        first, second = client.scheduler_info(n_workers=-1)["workers"]
        mine = client.submit(sum, [1, 2], workers=first, pure=False)
        assert mine.result() == 3
        with (
            pytest.raises(RuntimeError, match="was lost while Ridge was fitted"),
            refuse_lost_workers(Ridge()),
        ):
            theirs = client.submit(time.sleep, 60, workers=second, pure=False)
            client.retire_workers([second], close_workers=True)
            while theirs.status == "pending":
                time.sleep(0.05)
            assert theirs.status == "cancelled"
            theirs.result()
        assert mine.status == "finished" and mine.result() == 3
        # a worker that joins is no loss
        with refuse_lost_workers(Ridge()):
            cluster.scale(3)
            client.wait_for_workers(2, timeout=30)
            time.sleep(0.2)
            assert client.submit(sum, [4], pure=False).result() == 4


def test_a_fit_without_a_client_needs_no_workers():
    with refuse_lost_workers(Ridge()):
        pass
