"""Refuse what cannot fit in memory before it is tried."""

from __future__ import annotations

import os


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
