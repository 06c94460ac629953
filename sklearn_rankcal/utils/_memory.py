"""Memory limits: the size of the blocks of a computation, and errors for what cannot fit."""

from __future__ import annotations

import functools
import os
from pathlib import Path, PurePosixPath

from sklearn import get_config

#: Bytes of a block whose temporary arrays stay in the processor's cache.
CACHE_BYTES = 1 << 20
#: Bytes of a block of pairs, or of another array that is only needed for a moment.
BLOCK_BYTES = 1 << 24
#: The file in which Linux lists the control groups of this process, and the folder with their
#: limits.
OWN_CGROUPS, CGROUP_ROOT = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def rows_per_block(row_bytes: int, block_bytes: int | None = None) -> int:
    """Return how many rows of `row_bytes` bytes each to handle at a time.

    A block has at most `block_bytes`, by default `BLOCK_BYTES`, and at most scikit-learn's
    ``working_memory`` (a setting of `sklearn.set_config`, in MiB), but at least one row.
    """
    largest = BLOCK_BYTES if block_bytes is None else block_bytes
    limit = min(largest, int(get_config()["working_memory"] * 2**20))
    return max(1, limit // row_bytes)


def check_memory(n_bytes: int, what: str, remedy: str) -> None:
    """Raise an error if `n_bytes` exceed the memory that this process may use.

    The memory is that of the machine or the limit of the container, whichever is smaller. If
    neither is known, nothing is checked.

    Raises
    ------
    ValueError
        The message says how much memory `what` would take, and what to do: `remedy`.
    """
    limits = {
        "this machine has": machine_memory(),
        "this container may use": container_memory(OWN_CGROUPS, CGROUP_ROOT),
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
    """Return the bytes of the machine's physical memory, or None if the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not a POSIX system
        return None


@functools.lru_cache(maxsize=8)  # readers of files ask once for each block of text
def container_memory(own_cgroups: Path, root: Path) -> int | None:
    """Return the smallest memory limit of the control groups of this process, in bytes.

    Containers (Docker, Kubernetes, Slurm, systemd) limit memory by control groups of Linux, in
    version 1 or 2. The groups are nested folders, and each group is also subject to the limits of
    the groups that contain it.

    Parameters
    ----------
    own_cgroups : path
        The file with a line ``number:controllers:group`` for each hierarchy of groups.
    root : path
        The folder where the hierarchies are mounted.

    Returns
    -------
    limit : int or None
        None if there is no limit, or on a system without control groups.
    """
    try:
        lines = own_cgroups.read_text().splitlines()
    except OSError:
        return None
    limits = []
    for line in lines:
        number, controllers, group = [*line.split(":", 2), "", ""][:3]
        if number == "0" and not controllers:  # version 2 has one hierarchy for everything
            mount, name = root, "memory.max"
        elif "memory" in controllers.split(","):
            mount, name = root / "memory", "memory.limit_in_bytes"
        else:
            continue
        # Inside a container the path may be the one that the host sees. Its folders do not exist
        # here, and the limit of the container is that of the mount itself, the last parent.
        inside = PurePosixPath(*(part for part in group.split("/") if part not in ("", "..")))
        for folder in (inside, *inside.parents):
            try:
                text = (mount / folder / name).read_text().strip()
            except OSError:
                continue
            if text.isdecimal():  # version 2 writes "max" where there is no limit
                limits.append(int(text))
    return min(limits, default=None)
