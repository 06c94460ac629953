"""Options and shared fixtures of the test suite."""

from __future__ import annotations

import pytest
import sklearn


def pytest_addoption(parser):
    group = parser.getgroup("fuzz", "the fuzzer of tests/test_fuzz.py")
    group.addoption("--fuzz-calls", type=int, default=None, help="number of calls, all together")
    group.addoption("--fuzz-seed", type=int, default=0, help="seed of the calls")
    group.addoption("--fuzz-only", default="", help="only calls whose name contains this")
    group.addoption("--fuzz-case", default="", help="run one case again, as a failure names it")


@pytest.fixture
def routing(request):
    """Turn metadata routing "on" or "off" as the parameter says; return whether it is on."""
    with sklearn.config_context(enable_metadata_routing=request.param == "on"):
        yield request.param == "on"
