"""How many threads there may be, and loops over blocks in threads."""

import threading
import time

import joblib
import numpy as np
import pytest
from joblib import cpu_count
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import Ridge
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from threadpoolctl import threadpool_limits

from sklearn_rankcal import CalibratedRanker
from sklearn_rankcal.models import BoostingCV, Training, _held_out  # limits that tests replace
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils import _memory
from sklearn_rankcal.utils._memory import allowed_threads, map_in_order, threads_for


@pytest.mark.parametrize(
    ("variable", "expected"),
    [("1", 1), ("3", 3), (" 2 , 4", 2), ("99", 8), ("0", 8), ("", 8), ("all", 8), ("-1", 8)],
)
def test_the_variable_of_openmp_is_a_limit(monkeypatch, variable, expected):
    monkeypatch.setattr(_memory, "cpu_count", lambda: 8)
    monkeypatch.setenv("OMP_NUM_THREADS", variable)
    assert allowed_threads() == expected


def test_without_the_variable_all_processors_are_used(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert allowed_threads() == cpu_count()


def test_results_come_in_the_order_of_the_blocks():
    together = threading.Barrier(3, timeout=60)  # passes only if three calls run at the same time

    def slow_at_first(number):
        together.wait()
        time.sleep(0.01 if number % 3 == 0 else 0)
        return number, threading.get_ident()

    results = list(map_in_order(slow_at_first, range(30), 3))
    assert [number for number, _ in results] == list(range(30))
    assert len({thread for _, thread in results}) == 3


def test_one_thread_is_that_of_the_caller():
    results = list(map_in_order(lambda _: threading.get_ident(), range(3), 1))
    assert results == [threading.get_ident()] * 3


@pytest.mark.parametrize("n_threads", [1, 2])
def test_blocks_are_read_only_a_little_ahead(n_threads):
    read = []
    blocks = (read.append(number) or number for number in range(1000))
    results = map_in_order(lambda number: number, blocks, n_threads)
    for number in range(100):
        assert next(results) == number
        assert len(read) <= number + 10
    results.close()
    assert len(read) < 120


@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_exception_of_a_block_reaches_the_caller(n_threads):
    with pytest.raises(ZeroDivisionError):
        list(map_in_order(lambda number: 1 / (number - 5), range(50), n_threads))


@pytest.fixture
def two_threads():
    with threadpool_limits(2, user_api="openmp"):
        yield


def test_only_small_tables_get_one_thread(two_threads):
    expected = _openmp_effective_n_threads()  # 1 on a machine with one processor
    for n_rows, n_threads in [(1, 1), (19_999, 1), (20_000, expected)]:
        with threads_for(n_rows):
            assert _openmp_effective_n_threads() == n_threads
        assert _openmp_effective_n_threads() == expected


class Counting(Ridge):
    """A regressor that notes how many threads OpenMP would use, and the thread that calls it."""

    seen: set = set()

    def fit(self, X, y, sample_weight=None):
        self.seen.add((_openmp_effective_n_threads(), threading.get_ident()))
        return super().fit(X, y, sample_weight)

    def predict(self, X):
        self.seen.add((_openmp_effective_n_threads(), threading.get_ident()))
        return super().predict(X)


@pytest.mark.parametrize("loss", ["ndcg", "pd", "map"])
def test_regressors_of_few_rows_get_one_thread(two_threads, loss):
    Counting.seen.clear()
    rng = np.random.default_rng(0)
    X, y, groups = rng.normal(size=(60, 3)), rng.integers(0, 2, 60), np.arange(60) // 10
    CalibratedRanker(Counting(), loss=loss).fit(X, y, groups=groups).predict(X, groups=groups)
    assert {n_threads for n_threads, _ in Counting.seen} == {1}


@pytest.mark.usefixtures("few_trees")
def test_the_folds_of_few_rows_are_fitted_in_several_threads(two_threads, monkeypatch):
    monkeypatch.setattr(_held_out, "allowed_threads", lambda: 3)
    together = threading.Barrier(3, timeout=60)  # passes only if three fits run at the same time
    forest_fit, waiting, seen = ExtraTreesRegressor.fit, iter([True] * 3 + [False] * 3), set()

    def wait_at_first(self, *args, **kwargs):
        seen.add(threading.get_ident())
        if next(waiting, False):
            together.wait()
        return forest_fit(self, *args, **kwargs)

    def n_threads(**parameters):
        seen.clear()
        rng = np.random.default_rng(0)
        X, queries = rng.normal(size=(200, 3)), Queries.uniform(20, 10)
        model = BoostingCV((None, "forest"), cv=6, **parameters)
        model.fit(Training(X, X[:, 0], queries, labels=X[:, 0]))
        return len(seen)

    monkeypatch.setattr(ExtraTreesRegressor, "fit", wait_at_first)
    assert n_threads() == 3
    assert n_threads(n_jobs=1) == 1


def test_folds_keep_to_the_configuration_of_joblib(monkeypatch):
    monkeypatch.setattr(_held_out, "allowed_threads", lambda: 3)
    with joblib.parallel_config("threading", n_jobs=2):
        assert _held_out.fits_at_once(None) == 2
    assert _held_out.fits_at_once(None) == 3
    assert _held_out.fits_at_once(1) == 1
