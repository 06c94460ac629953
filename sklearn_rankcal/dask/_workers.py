"""Delayed calls for partitions, and detection of workers that are lost during a fit."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import dask
from dask import delayed
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer
from dask.system import CPU_COUNT
from dask.utils import ensure_dict

#: Minutes that LightGBM's workers wait for each other, unless the regressor sets its own limit.
#: LightGBM's default is 120. XGBoost waits 5 minutes (``coll_cfg``).
LIGHTGBM_MINUTES = 5
_SECONDS_BETWEEN_LOOKS = 1.0
#: Number of partial results to add in one task.
_FAN_IN = 8


def for_each(function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Return one delayed call of a function for each entry of the arguments, like `map`.

    An argument can be endless, such as `itertools.repeat` of a delayed value used in all calls.
    Bind common arguments with `functools.partial`: dask searches every argument of every call for
    collections, which takes longer than the call itself.
    """
    call = delayed(function, pure=False)
    return [call(*each) for each in zip(*arguments, strict=False)]


def add_up(parts: list[Any], add: Callable[[Any, Any], Any] = operator.add) -> Any:
    """Compute the sum of delayed values, a few at a time. None counts as zero."""
    return dask.compute(delayed_sum(parts, add))[0]


def delayed_sum(parts: list[Any], add: Callable[[Any, Any], Any] = operator.add) -> Any:
    """Return the delayed value of `add_up`."""

    def added(*values: Any) -> Any:
        total = None
        for value in values:
            total = value if total is None else total if value is None else add(total, value)
        return total

    call = delayed(added, pure=False)
    while len(parts) > 1:
        parts = [call(*parts[first : first + _FAN_IN]) for first in range(0, len(parts), _FAN_IN)]
    return parts[0]


def in_one_layer(value: Delayed) -> Delayed:
    """Return a delayed value whose graph is one layer.

    Each task that takes the value copies its list of layers. With one layer per partition, P tasks
    would take O(P^2) time.
    """
    tasks = ensure_dict(value.__dask_graph__())
    layers = {value.key: MaterializedLayer(tasks)}
    return Delayed(value.key, HighLevelGraph(layers, {value.key: set()}))


# ---------------------------------------------------------------- workers


def is_from(regressor: Any, *modules: str) -> bool:
    """Return whether the regressor's class or one of its base classes is from a module."""
    return any(kind.__module__.startswith(modules) for kind in type(regressor).__mro__)


def wait_less_long(regressor: Any) -> Any:
    """Set the time-out of a LightGBM regressor, unless it is already set."""
    if is_from(regressor, "lightgbm.dask"):
        if regressor.get_params().get("time_out") is None:
            regressor.set_params(time_out=LIGHTGBM_MINUTES)
    return regressor


@contextmanager
def refuse_lost_workers(regressor: Any) -> Iterator[None]:
    """Raise an error if a worker is lost in the block, instead of waiting for it forever.

    LightGBM and XGBoost train in tasks tied to a worker and its part of the data. If that worker is
    lost, no other worker can run its task. Therefore the futures of the block are cancelled as soon
    as a worker is missing.

    Raises
    ------
    RuntimeError
        If a worker was lost.
    """
    client = _client()
    if client is None:
        yield
        return
    before = set(client.futures)
    # Do not use `scheduler_info`: it returns a cached answer, which a callback of the client
    # overwrites every two seconds with an answer that lists no workers.
    workers = set(client.nthreads())
    lost: set[str] = set()
    stop = threading.Event()

    def look() -> None:
        from distributed import Future

        while not stop.wait(_SECONDS_BETWEEN_LOOKS):
            missing = workers - set(client.nthreads())
            if missing:
                lost.update(missing)
                keys = [key for key in list(client.futures) if key not in before]
                # Cancelling a task with dependents fails inside the scheduler (2026.8).
                try:
                    keys = client.run_on_scheduler(_without_dependents, keys=keys)
                finally:  # also if this package is not installed on the scheduler
                    client.cancel([Future(key, client) for key in keys])
                return

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    except Exception as error:
        # The library can notice the lost worker before the next look.
        stop.wait(_SECONDS_BETWEEN_LOOKS)
        lost.update(workers - set(client.nthreads()))
        if lost:
            raise _lost_worker(regressor, lost) from error
        raise
    finally:
        stop.set()
        thread.join(timeout=10)
    if lost:
        raise _lost_worker(regressor, lost)


def _without_dependents(dask_scheduler: Any, keys: list[Any]) -> list[Any]:
    tasks = dask_scheduler.tasks
    return [key for key in keys if key in tasks and not tasks[key].dependents]


def n_threads() -> int:
    """Return the number of tasks that the workers, or this machine's threads, run in parallel."""
    client = _client()
    if client is not None:
        return max(1, sum(client.nthreads().values()))
    if dask.config.get("scheduler", None) in ("sync", "synchronous", "single-threaded"):
        return 1
    return dask.config.get("num_workers", None) or CPU_COUNT


def _lost_worker(regressor: Any, lost: set[str]) -> RuntimeError:
    return RuntimeError(
        f"{len(lost)} of the workers ({', '.join(sorted(lost))}) was lost while "
        f"{type(regressor).__name__} was fitted, with its part of the data. No model was kept. "
        "Call fit again. If the worker ran out of memory, use more workers or smaller partitions."
    )


def _client() -> Any:
    """Return the active client of distributed, or None."""
    try:
        from distributed import default_client
    except ImportError:
        return None
    try:
        return default_client()
    except ValueError:
        return None
