"""Processes of Python that use the package and then exit, with threads and solvers left behind."""

from __future__ import annotations

from tests.python_process import run_python

_CODE = """
import warnings
import numpy as np
from sklearn_rankcal import CalibratedRanker, aggregate
from sklearn_rankcal.decoders import decode_average_precision, decode_preferences

warnings.simplefilter("ignore")
rng = np.random.default_rng({seed})
u = rng.random(({r}, {r}))
X, y, groups = rng.normal(size=(40, 3)), rng.integers(0, 3, 40), np.arange(40) // 8
{call}
"""
#: What can leave a thread or a process behind.
_CALLS = [
    "decode_preferences(u, 'exact', time_limit={limit}, n_perturbations=0)",
    "decode_preferences([u] * 3, 'exact', time_limit={limit}, n_jobs=2)",
    "decode_average_precision(u + u.T, 'local_search', time_limit={limit})",
    "aggregate([(i, (i + 1) % 5) for i in range(5)], 'kemeny', n_resamples=20)",
    "CalibratedRanker().fit(X, y, groups=groups).predict(X, groups=groups)",
    "CalibratedRanker(loss='pd', n_jobs=2).fit(X, y, groups=groups).predict(X, groups=groups)",
]


def exits(case):
    """The exit status is 0, and nothing is printed, whatever still runs when the code ends."""
    limit = case.choose([0.001, 0.05, 0.3, 1.0])
    code = _CODE.format(
        seed=case.whole(0, 99),
        r=case.choose([3, 20, 60, 100]),
        call=case.choose(_CALLS).format(limit=limit),
    )
    case.log.append(code)
    run = run_python(code, timeout=60)
    case.expect(run.returncode == 0, f"exit status {run.returncode}", run.stderr[-500:])
    case.expect(not run.stdout and not run.stderr, "prints", run.stdout + run.stderr[-500:])
