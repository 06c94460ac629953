"""How many threads there may be, and loops over blocks in threads."""

import threading
import time

import pytest
from joblib import cpu_count

from sklearn_rankcal.utils import _threads
from sklearn_rankcal.utils._threads import allowed_threads, map_in_order


@pytest.mark.parametrize(
    ("variable", "expected"),
    [("1", 1), ("3", 3), (" 2 , 4", 2), ("99", 8), ("0", 8), ("", 8), ("all", 8), ("-1", 8)],
)
def test_the_variable_of_openmp_is_a_limit(monkeypatch, variable, expected):
    monkeypatch.setattr(_threads, "cpu_count", lambda: 8)
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
