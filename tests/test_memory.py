"""Memory limits of machines and containers."""

from __future__ import annotations

import pytest

from sklearn_rankcal.utils import _memory
from sklearn_rankcal.utils._memory import check_memory, container_memory

# Version 1 of control groups writes this number if there is no limit.
UNLIMITED = 9223372036854771712


@pytest.fixture
def cgroups(tmp_path, monkeypatch):
    """Return a function that writes control groups and their limits, and reads the memory limit."""

    def write(own, limits):
        (tmp_path / "own").write_text(own)
        for name, value in limits.items():
            file = tmp_path / "root" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{value}\n")
        monkeypatch.setattr(_memory, "OWN_CGROUPS", tmp_path / "own")
        monkeypatch.setattr(_memory, "CGROUP_ROOT", tmp_path / "root")
        container_memory.cache_clear()
        return container_memory(_memory.OWN_CGROUPS, _memory.CGROUP_ROOT)

    yield write
    container_memory.cache_clear()


V1 = "9:name=systemd:/\n4:cpu,memory:/docker/abc\n"


@pytest.mark.parametrize(
    ("own", "limits", "expected"),
    [
        ("0::/\n", {"memory.max": 2**30}, 2**30),
        ("0::/\n", {"memory.max": "max"}, None),
        ("0::/\n", {}, None),
        # the smallest limit of a group and of the groups around it
        ("0::/job/step\n", {"job/memory.max": 2**29, "job/step/memory.max": "max"}, 2**29),
        ("0::/job/step\n", {"job/memory.max": 2**30, "job/step/memory.max": 2**29}, 2**29),
        # a group outside of the container's view
        ("0::/../job\n", {"memory.max": 2**28}, 2**28),
        # version 1, where the folder of the group exists and where only the mount does
        (V1, {"memory/docker/abc/memory.limit_in_bytes": 2**27}, 2**27),
        (V1, {"memory/memory.limit_in_bytes": 2**26}, 2**26),
        (V1, {"memory/memory.limit_in_bytes": UNLIMITED}, UNLIMITED),
        # both versions side by side, as under systemd's hybrid layout
        (V1 + "0::/\n", {"memory/memory.limit_in_bytes": 2**26}, 2**26),
        # other controllers do not count
        ("3:cpuset:/a\n", {"a/memory.max": 1, "memory/memory.limit_in_bytes": 1}, None),
        ("", {"memory.max": 1}, None),
    ],
)
def test_limits_of_containers(cgroups, own, limits, expected):
    assert cgroups(own, limits) == expected


def test_no_control_groups(tmp_path):
    assert container_memory(tmp_path / "none", tmp_path) is None


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
def test_the_smaller_limit_counts(cgroups, monkeypatch, machine, container, refused):
    monkeypatch.setattr(_memory, "machine_memory", lambda: machine)
    cgroups("0::/\n", {"memory.max": container})
    check_memory(2**31, "A table", "Drop columns.")
    if refused is None:
        check_memory(2**32, "A table", "Drop columns.")
        return
    with pytest.raises(ValueError, match=rf"A table would take 4 GiB, and {refused}\. Drop colu"):
        check_memory(2**32, "A table", "Drop columns.")
