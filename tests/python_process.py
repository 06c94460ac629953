"""Run code in a Python process of its own, with the package that the tests run with."""

import os
import subprocess
import sys
from pathlib import Path

import sklearn_rankcal


def run_python(code, environment=None, timeout=None):
    """Run code, and return what it printed.

    Without -P, Python would import the source tree in the working directory, where kernels need not
    have been compiled.
    """
    environment = os.environ if environment is None else environment
    return subprocess.run(
        [sys.executable, "-P", "-c", code],
        env={**environment, "PYTHONPATH": str(Path(sklearn_rankcal.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
