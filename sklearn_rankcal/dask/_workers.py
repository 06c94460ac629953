"""Delayed calls for partitions, and the workers that compute them, which can be lost in a fit."""

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

#: Minutes after which LightGBM's workers stop waiting for each other, unless the regressor says
#: otherwise. LightGBM's own default is 120. XGBoost waits for 5 minutes (``coll_cfg``).
LIGHTGBM_MINUTES = 5
_SECONDS_BETWEEN_LOOKS = 1.0
#: How many partial results are added in one task.
_FAN_IN = 8


def for_each(function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Return one delayed call of a function for each entry of the arguments, as `map` does.

    An argument can be endless, such as `itertools.repeat` of one delayed value for all calls.
    What the calls have in common is best given by `functools.partial`: dask looks for collections
    inside every argument of every call, which takes longer than the call.
    """
    call = delayed(function, pure=False)
    return [call(*each) for each in zip(*arguments, strict=False)]


def add_up(parts: list[Any], add: Callable[[Any, Any], Any] = operator.add) -> Any:
    """Compute the sum of delayed values, added a few at a time. None adds nothing."""
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

    Each task that takes the value copies the list of its layers. If every partition has a layer of
    its own, P tasks would take O(P^2) time.
    """
    tasks = ensure_dict(value.__dask_graph__())
    layers = {value.key: MaterializedLayer(tasks)}
    return Delayed(value.key, HighLevelGraph(layers, {value.key: set()}))


# ---------------------------------------------------------------- workers


def is_from(regressor: Any, *modules: str) -> bool:
    """Return whether the class of the regressor, or one that it is derived from, is of a module."""
    return any(kind.__module__.startswith(modules) for kind in type(regressor).__mro__)


def wait_less_long(regressor: Any) -> Any:
    """Set the time-out of a regressor of LightGBM, unless it is set."""
    if is_from(regressor, "lightgbm.dask"):
        if regressor.get_params().get("time_out") is None:
            regressor.set_params(time_out=LIGHTGBM_MINUTES)
    return regressor


@contextmanager
def refuse_lost_workers(regressor: Any) -> Iterator[None]:
    """Raise an error if a worker is lost in the block, instead of waiting for it for ever.

    LightGBM and XGBoost train in tasks that are tied to a worker and its part of the data. If that
    worker is gone, nobody can run the task. So the futures of the block are cancelled as soon as a
    worker is missing.

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
    # `scheduler_info` would return a cached answer, which a callback of the client overwrites every
    # two seconds with one that lists no workers.
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
                # To cancel a task with dependents fails inside the scheduler (2026.8).
                try:
                    keys = client.run_on_scheduler(_without_dependents, keys=keys)
                finally:  # also if the scheduler does not have this package
                    client.cancel([Future(key, client) for key in keys])
                return

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    except Exception as error:
        # The library can notice before the next look that a worker is gone.
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
    """Return how many tasks the workers, or the threads of this machine, compute at a time."""
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
    """Return the client of distributed that computes, or None if there is none."""
    try:
        from distributed import default_client
    except ImportError:
        return None
    try:
        return default_client()
    except ValueError:
        return None
