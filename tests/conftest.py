"""Options and shared fixtures of the test suite."""

from __future__ import annotations

import os

# Each worker of pytest-xdist gets one thread, and so does each process that a test starts, because
# OpenMP spins where there are more threads than free cores. OpenMP and BLAS read the variable when
# they are loaded, so it is set before the first import that loads them.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import sklearn
from sklearn.ensemble import HistGradientBoostingRegressor

N_TREES = 15  # of the fixture `few_trees`


def pytest_addoption(parser):
    group = parser.getgroup("fuzz", "the fuzzer of tests/test_fuzz.py")
    group.addoption("--fuzz-calls", type=int, default=None, help="number of calls, all together")
    group.addoption("--fuzz-seed", type=int, default=0, help="seed of the calls")
    group.addoption("--fuzz-only", default="", help="only calls whose name contains this")
    group.addoption("--fuzz-case", default="", help="run one case again, as a failure names it")


class NameFailures:
    """Name a failure when it happens, and not only after the last test."""

    def __init__(self, terminal):
        self.terminal = terminal

    def pytest_runtest_logreport(self, report):
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            reason = crash.message.partition("\n")[0] if crash else "see below"
            self.terminal.write_line(f"FAILED {report.nodeid}: {reason}", red=True)


def pytest_sessionstart(session):
    terminal = session.config.pluginmanager.getplugin("terminalreporter")
    if terminal is not None and not hasattr(session.config, "workerinput"):
        session.config.pluginmanager.register(NameFailures(terminal))


@pytest.fixture
def routing(request):
    """Turn metadata routing "on" or "off" as the parameter says; return whether it is on."""
    with sklearn.config_context(enable_metadata_routing=request.param == "on"):
        yield request.param == "on"


@pytest.fixture
def few_trees(monkeypatch):
    """Let the default regressor, also as a member of the default stack, have a few trees only.

    It serves tests of what goes through the regressor, and not of how well it fits.
    """

    limit_trees(monkeypatch)


def limit_trees(monkeypatch):
    """What `few_trees` does, for fixtures of a module."""

    def make(**parameters):
        n = min(N_TREES, parameters.pop("max_iter", N_TREES))
        return HistGradientBoostingRegressor(max_iter=n, **parameters)

    for module in ("rankers._distill", "models._document"):
        name = f"sklearn_rankcal.{module}.HistGradientBoostingRegressor"
        monkeypatch.setattr(name, make)
    monkeypatch.setattr("sklearn_rankcal.models._boosting_cv._AT_FIRST", N_TREES)
    monkeypatch.setattr("sklearn_rankcal.models._boosting_cv._MOST_TREES", N_TREES)
