"""What type checkers see of the package, in the scripts of a user."""

import importlib
import inspect
import pkgutil
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sklearn_rankcal

TESTS = Path(__file__).parent
SCRIPT = TESTS / "typed_script.py"


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("mypy")


def run_mypy(script, folder):
    """Run mypy on one script, which sees the package that is beside the tests."""
    pytest.importorskip("mypy")
    options = ["--strict", "--ignore-missing-imports", "--follow-imports=silent", "--no-color"]
    command = [sys.executable, "-m", "mypy", "--config-file=", *options, f"--cache-dir={folder}"]
    return subprocess.run(
        [*command, str(script)], cwd=TESTS.parent, capture_output=True, text=True, check=False
    )


def test_the_script_runs(capsys):
    runpy.run_path(str(SCRIPT))
    assert len(capsys.readouterr().out.split()) >= 9


@pytest.mark.slow  # CI runs it with lint and types
def test_mypy_knows_the_types_of_a_script(cache):
    run = run_mypy(SCRIPT, cache)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.slow
def test_mypy_reports_every_mistake(cache):
    script = TESTS / "mistyped_script.py"
    lines = script.read_text().splitlines()
    marked = [(n, line.partition("# mistake: ")[2]) for n, line in enumerate(lines, 1)]
    wanted = {(n, code) for n, code in marked if code}
    assert len(wanted) == 14
    out = run_mypy(script, cache).stdout
    found = re.findall(r":(\d+): error: .*\[([a-z-]+)\]", out)
    assert {(int(n), code) for n, code in found} == wanted, out


def run_pyright(script):
    """Run pyright on one script; skip if it is absent, or cannot download its other half."""
    pyright = shutil.which("pyright", path=Path(sys.executable).parent) or shutil.which("pyright")
    if pyright is None:
        pytest.skip("pyright is not installed")
    version = subprocess.run([pyright, "--version"], capture_output=True, text=True, check=False)
    if version.returncode != 0:
        pytest.skip(f"pyright could not be downloaded: {version.stderr[-300:]}")
    command = [pyright, "--pythonpath", sys.executable, str(script)]
    return subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, check=False)


@pytest.mark.slow  # the first run of pyright downloads it
def test_pyright_knows_the_types_of_a_script():
    run = run_pyright(SCRIPT)
    assert run.returncode == 0, run.stdout + run.stderr


def documented_attributes():
    """The names in the section Attributes of every public class."""
    found = {}
    for module in pkgutil.iter_modules(sklearn_rankcal.__path__, "sklearn_rankcal."):
        public = importlib.import_module(module.name)
        for name in getattr(public, "__all__", ()):
            section = r"Attributes\n-{10}\n(.*?)(?:\n\n|\Z)"
            match = re.search(section, inspect.getdoc(getattr(public, name)) or "", re.DOTALL)
            if match and inspect.isclass(getattr(public, name)):
                listed = re.findall(r"^(\w[\w, ]*?)(?: : .*)?$", match[1], re.MULTILINE)
                found[f"{module.name}.{name}"] = ", ".join(listed).split(", ")
    return found


@pytest.mark.slow
def test_pyright_knows_the_documented_attributes(tmp_path):
    found = documented_attributes()
    assert len(found) > 20 and "cutoff_" in found["sklearn_rankcal.cutoffs.RiskControlledCutoff"]
    lines = []
    for number, (path, names) in enumerate(found.items()):
        module, _, name = path.rpartition(".")
        lines += [f"from {module} import {name}", f"def use{number}(one: {name}) -> None:"]
        lines += [f"    print(one.{attribute})" for attribute in names]
    script = tmp_path / "attributes.py"
    script.write_text("\n".join(lines))
    run = run_pyright(script)
    assert run.returncode == 0, run.stdout + run.stderr
