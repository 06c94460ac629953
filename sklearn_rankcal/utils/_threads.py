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
    """Return how many threads a loop may use.

    It is the number of processors that this process may use, or ``OMP_NUM_THREADS`` if this
    environment variable is a smaller number. The parts of scikit-learn that use OpenMP read the
    same variable, and joblib sets it in its worker processes.
    """
    # The variable may be a list such as "4,2", whose first number is for loops that are not nested.
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    limit = int(first) if first.isdecimal() else 0
    return min(limit, cpu_count()) if limit > 0 else cpu_count()


def map_in_order(
    function: Callable[[Block], Result], blocks: Iterable[Block], n_threads: int
) -> Iterator[Result]:
    """Yield ``function(block)`` of each block, in the order of the blocks.

    The threads help only where `function` releases Python's lock, as NumPy and compiled kernels do.

    Parameters
    ----------
    function : callable
        Is called from several threads at the same time if `n_threads` is above 1.
    blocks : iterable
        Is read in the thread of the caller, and only a few blocks ahead of the results.
    n_threads : int
        With 1, everything happens in the thread of the caller.

    Yields
    ------
    result : object
        The first exception that a call raises is raised here.
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
