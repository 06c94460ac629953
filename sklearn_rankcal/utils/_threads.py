"""The number of threads for loops over blocks, and inside small regressors."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import TypeVar

from joblib import cpu_count
from threadpoolctl import ThreadpoolController  # scikit-learn depends on it

Block = TypeVar("Block")
Result = TypeVar("Result")

_WAITING = 4  # blocks per thread in the queue, to keep threads from waiting for the caller
#: OpenMP threads gain little below this number of rows. On a busy machine they wait for each other,
#: and a fit of a second can take minutes.
ROWS_FOR_THREADS = 20_000


def threads_for(n_rows: int) -> AbstractContextManager[object]:
    """Return a context where OpenMP uses one thread if a table has fewer than 20,000 rows.

    Otherwise regressors of scikit-learn, such as histogram boosting, start a thread on each
    processor after each pass over the rows. The limit applies to the thread that enters the
    context.
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
