"""Every benchmark can still be started: they use parts of the package that move."""

import json
from pathlib import Path

import pytest

from .python_process import run_python

FOLDER = Path(__file__).parents[1] / "examples" / "benchmarks"
IMPORT_ALL = """
import importlib, json, sys
sys.path.insert(0, {folder!r})
failed = {{}}
for name in {names!r}:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:  # of a library that is optional
        if error.name.partition(".")[0] in ("sklearn_rankcal", "_harness"):
            failed[name] = repr(error)
    except Exception as error:
        failed[name] = repr(error)
print(json.dumps(failed))
"""


@pytest.mark.slow
def test_every_benchmark_can_be_imported():
    names = sorted(path.stem for path in FOLDER.glob("bench_*.py"))
    assert names
    run = run_python(IMPORT_ALL.format(folder=str(FOLDER), names=names), timeout=300)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == {}
