"""Memory limits: block sizes of computations, and errors for arrays that cannot fit."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from pathlib import Path

from sklearn import get_config

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
