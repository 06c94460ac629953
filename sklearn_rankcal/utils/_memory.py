"""Memory limits and threads: block sizes of computations, and loops over blocks."""

from __future__ import annotations

import functools
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path
from typing import TypeVar

from joblib import cpu_count
from sklearn import get_config
from threadpoolctl import ThreadpoolController  # scikit-learn depends on it

#: Bytes of a block with temporary arrays that stay in the processor's cache.
CACHE_BYTES = 1 << 20
#: Bytes of a block of pairs, or of another short-lived array.
BLOCK_BYTES = 1 << 24
#: Bytes of a table passed to a regressor's `predict`. These blocks are larger than the blocks of
#: our own loops, because each call of `predict` has a fixed cost (threads, input checks).
PREDICTION_BYTES = 1 << 27
#: Files with the memory limit of a Linux container, for control groups of version 2 and 1.
CONTAINER_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def rows_per_block(row_bytes: int, block_bytes: int | None = None) -> int:
    """Return the number of rows, of `row_bytes` bytes each, to process at a time.

    A block has at most `block_bytes` (default: `BLOCK_BYTES`), at most scikit-learn's
    ``working_memory`` (a setting of `sklearn.set_config`, in MiB), and at least one row.
    """
    largest = BLOCK_BYTES if block_bytes is None else block_bytes
    limit = min(largest, int(get_config()["working_memory"] * 2**20))
    return max(1, limit // row_bytes)


def row_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Yield blocks of rows of a table that are small enough to stay in the processor's cache."""
    step = rows_per_block(8 * n_columns, CACHE_BYTES)
    return (slice(first, first + step) for first in range(0, n_rows, step))


def check_memory(n_bytes: int, what: str, remedy: str) -> None:
    """Raise ValueError if `n_bytes` exceeds the memory of the machine or the container.

    The message says how much memory `what` needs, and gives a `remedy`. If no limit is known,
    nothing is checked.
    """
    limits = {
        "this machine has": machine_memory(),
        "this container may use": container_memory(),
    }
    known = {owner: limit for owner, limit in limits.items() if limit is not None}
    if not known:
        return
    owner = min(known, key=known.__getitem__)
    if n_bytes > known[owner]:
        raise ValueError(
            f"{what} would take {n_bytes / 2**30:,.0f} GiB, and {owner} "
            f"{known[owner] / 2**30:,.0f}. {remedy}"
        )


def machine_memory() -> int | None:
    """Return the physical memory of the machine in bytes, or None if unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not a POSIX system
        return None


@functools.cache  # readers of files call this once for each block of text
def container_memory() -> int | None:
    """Return the memory limit of the container in bytes, or None if there is none."""
    for file in CONTAINER_LIMITS:
        try:
            text = file.read_text().strip()
        except OSError:
            continue
        if text.isdecimal():  # version 2 writes "max" if there is no limit
            return int(text)
    return None


Block = TypeVar("Block")
Result = TypeVar("Result")

_WAITING = 4  # blocks per thread in the queue, to keep threads from waiting for the caller
#: OpenMP threads gain little below this number of rows. On a busy machine they wait for each other,
#: and a fit of a second can take minutes.
ROWS_FOR_THREADS = 20_000


def threads_for(n_rows: int) -> AbstractContextManager[object]:
    """Return a context where OpenMP uses one thread if a table has fewer than 20,000 rows.

    Otherwise regressors of scikit-learn, such as histogram boosting, start a thread on each
    processor after each pass over the rows. The limit is for the thread that enters the context.
    """
    if n_rows >= ROWS_FOR_THREADS:
        return nullcontext()
    return _controller().limit(limits=1, user_api="openmp")


@cache
def _controller() -> ThreadpoolController:
    """Look for the libraries only once, because this takes milliseconds."""
    return ThreadpoolController()


def allowed_threads() -> int:
    """Return the number of threads for a loop: processors, or ``OMP_NUM_THREADS`` if smaller."""
    # The variable may be a list such as "4,2". Its first number is for loops that are not nested.
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    limit = int(first) if first.isdecimal() else 0
    return min(limit, cpu_count()) if limit > 0 else cpu_count()


def map_in_order(
    function: Callable[[Block], Result], blocks: Iterable[Block], n_threads: int
) -> Iterator[Result]:
    """Yield ``function(block)`` for each block, in order, computed by several threads.

    Threads only help if `function` releases Python's lock, like NumPy and compiled kernels. The
    caller's thread reads blocks, a few ahead of the results, and raises the first exception.
    """
    if n_threads == 1:
        yield from map(function, blocks)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        queue: deque[Future[Result]] = deque()
        for block in blocks:
            queue.append(pool.submit(function, block))
            if len(queue) > _WAITING * n_threads:
                yield queue.popleft().result()
        while queue:
            yield queue.popleft().result()
