"""Memory limits of machines and containers."""

from __future__ import annotations

import pytest

from sklearn_rankcal.utils import _memory  # limits that tests replace
from sklearn_rankcal.utils._memory import check_memory, container_memory

# Version 1 of control groups writes this number if there is no limit.
UNLIMITED = 9223372036854771712


@pytest.fixture
def limits(tmp_path, monkeypatch):
    """Return a function that writes the limits of both versions, and reads the memory limit."""

    def write(version_2=None, version_1=None):
        files = tmp_path / "memory.max", tmp_path / "memory.limit_in_bytes"
        for file, value in zip(files, (version_2, version_1), strict=True):
            if value is not None:
                file.write_text(f"{value}\n")
        monkeypatch.setattr(_memory, "CONTAINER_LIMITS", files)
        container_memory.cache_clear()
        return container_memory()

    yield write
    container_memory.cache_clear()


@pytest.mark.parametrize(
    ("version_2", "version_1", "expected"),
    [
        (2**30, None, 2**30),
        ("max", None, None),
        (None, 2**26, 2**26),
        (None, UNLIMITED, UNLIMITED),
        ("max", 2**26, 2**26),
        (None, None, None),
    ],
)
def test_limits_of_containers(limits, version_2, version_1, expected):
    assert limits(version_2, version_1) == expected


@pytest.mark.parametrize(
    ("machine", "container", "refused"),
    [
        (2**33, 2**31, "this container may use 2"),
        (2**31, 2**33, "this machine has 2"),
        (2**31, UNLIMITED, "this machine has 2"),
        (None, 2**31, "this container may use 2"),
        (2**33, 2**33, None),
        (2**33, "max", None),
        (None, "max", None),
    ],
)
def test_the_smaller_limit_counts(limits, monkeypatch, machine, container, refused):
    monkeypatch.setattr(_memory, "machine_memory", lambda: machine)
    limits(container)
    check_memory(2**31, "A table", "Drop columns.")
    if refused is None:
        check_memory(2**32, "A table", "Drop columns.")
        return
    with pytest.raises(ValueError, match=rf"A table would take 4 GiB, and {refused}\. Drop colu"):
        check_memory(2**32, "A table", "Drop columns.")
