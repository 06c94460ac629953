"""How many threads there may be: for loops over blocks, and inside small regressors."""

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

_WAITING = 4  # blocks per thread that are in the queue, so that no thread waits for the caller
#: Threads of OpenMP gain little below so many rows. On a busy machine they wait for each other, and
#: a fit of a second can take minutes.
ROWS_FOR_THREADS = 20_000


def threads_for(n_rows: int) -> AbstractContextManager[object]:
    """Return a context in which OpenMP uses one thread if a table has fewer than 20,000 rows.

    Regressors of scikit-learn, such as histogram boosting, otherwise start a thread on each
    processor after each pass over the rows. The limit concerns the thread that enters the context.
    """
    if n_rows >= ROWS_FOR_THREADS:
        return nullcontext()
    return _controller().limit(limits=1, user_api="openmp")


@cache
def _controller() -> ThreadpoolController:
    """Look for the libraries only once, which takes milliseconds."""
    return ThreadpoolController()


def allowed_threads() -> int:
    """Return how many threads a loop may use: the processors, or ``OMP_NUM_THREADS`` if smaller."""
    # The variable may be a list such as "4,2", whose first number is for loops that are not nested.
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    limit = int(first) if first.isdecimal() else 0
    return min(limit, cpu_count()) if limit > 0 else cpu_count()


def map_in_order(
    function: Callable[[Block], Result], blocks: Iterable[Block], n_threads: int
) -> Iterator[Result]:
    """Yield ``function(block)`` of each block, in the order of the blocks, by several threads.

    They help only where `function` releases Python's lock, as NumPy and compiled kernels do. Blocks
    are read in the thread of the caller, a few ahead of the results, and the first exception is
    raised there.
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
