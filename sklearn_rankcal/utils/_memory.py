"""How much memory work may take: the size of blocks, and a refusal of what cannot fit."""

from __future__ import annotations

import os

from sklearn import get_config

#: Bytes of a block whose temporary arrays stay in a processor's cache.
CACHE_BYTES = 1 << 20
#: Bytes of a block of pairs, or of another table that is made and dropped.
BLOCK_BYTES = 1 << 24


def rows_per_block(row_bytes: int, block_bytes: int | None = None) -> int:
    """How many rows of `row_bytes` to handle at a time.

    A block has at most `block_bytes`, by default `BLOCK_BYTES`, and at most scikit-learn's
    ``working_memory`` (a setting of `sklearn.set_config`, in MiB), but at least one row.
    """
    largest = BLOCK_BYTES if block_bytes is None else block_bytes
    limit = min(largest, int(get_config()["working_memory"] * 2**20))
    return max(1, limit // row_bytes)


def check_memory(n_bytes: int, what: str, remedy: str) -> None:
    """Raise when `n_bytes` exceed the memory of the machine, where that is known.

    Raises
    ------
    ValueError
        Says how much `what` would take, and the remedy.
    """
    try:
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not a POSIX system
        return
    if n_bytes > there:
        raise ValueError(
            f"{what} would take {n_bytes / 2**30:,.0f} GiB, and this machine has "
            f"{there / 2**30:,.0f}. {remedy}"
        )
