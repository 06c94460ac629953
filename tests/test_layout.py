"""The package is one line of folders, and wings that stand on it: imports go to the left only.

What a stranger meets, who reads along one call or opens the folder, only shrinks: see
doc/contributing.rst. ``python -m tests.test_layout`` prints the figures of today.
"""

import ast
import sys
import warnings
from functools import cache
from pathlib import Path

import pytest
from sklearn.linear_model import Ridge

import sklearn_rankcal
from sklearn_rankcal import CalibratedRanker, aggregate
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.metrics import ndcg_score

from .python_process import run_python

PACKAGE = Path(sklearn_rankcal.__file__).parent

#: A folder of the line imports those before it.
LINE = ("utils", "queries", "labels", "targets", "losses", "models", "decoders", "rankers")
#: Of each wing: the last folder of the line that it imports, and the other wings.
WINGS = {
    "metrics": ("losses", ()),
    "surrogates": ("losses", ()),
    "clicks": ("labels", ()),
    "plotting": ("losses", ("metrics",)),
    "tiers": ("decoders", ()),
    "consistency": ("decoders", ("surrogates",)),
    "aggregation": ("decoders", ("clicks", "plotting", "tiers")),
    "pairs": ("models", ()),
    "rules": ("decoders", ()),
    "linear": ("rankers", ("surrogates",)),
    "boosting": ("rankers", ("surrogates",)),
    "label_ranking": ("rankers", ("pairs",)),
    "cutoffs": ("rankers", ()),
    "cost_sensitive": ("models", ("label_ranking",)),
    "datasets": ("decoders", ("clicks",)),
    "dask": ("rankers", ("linear", "metrics")),
    "estimator_checks": ("rankers", ("consistency", "datasets", "metrics", "surrogates")),
    "inspection": ("losses", ("metrics",)),
    "model_selection": ("rankers", ()),
}
#: What every folder may import: compiled loops with their twins, warnings, and the version.
COMMON = ("_kernels", "exceptions", "_version")
#: The most functions and files of the package that one call enters.
DOORS = {
    "fit": (118, 20),
    "predict": (33, 11),
    "ndcg_score": (38, 9),
    "aggregate": (75, 13),
    # "robust" profiles likelihoods since the corrections of errors went
    "aggregate, robust": (128, 17),
}
#: The most files and lines of the package, lines of tests, and lines that a reader of
#: `CalibratedRanker` can reach.
SIZES = {"files": 140, "lines": 51_120, "lines of tests": 43_480, "lines in reach": 16_695}


@cache
def modules(types=False):
    """Every module of the package by its name: its path, and the names of those it imports."""
    paths = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        paths[".".join(part for part in parts if part != "__init__")] = path
    return {name: (path, sorted(imported(path, paths, types))) for name, path in paths.items()}


def imported(path, paths, types):
    """The modules that a file imports, also inside functions, and with `types` for types alone."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for_types = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in for_types and not types:
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sklearn_rankcal"):
            for one in node.names:
                for name in (f"{node.module}.{one.name}", node.module):
                    if name in paths:  # a compiled module is in none
                        yield name
                        break


def folder(name):
    return (*name.split("."), "")[1]


def reached(start, types=False):
    """All modules that a module imports, directly or by others, and itself."""
    found, left = {start}, [start]
    while left:
        new = set(modules(types)[left.pop()][1]) - found
        found |= new
        left += new
    return found


def n_lines(names):
    return sum(len(modules()[name][0].read_text(encoding="utf-8").splitlines()) for name in names)


def allowed(name):
    if name in LINE:
        return {*COMMON, *LINE[: LINE.index(name)]}
    last, wings = WINGS[name]
    return {*COMMON, *LINE[: LINE.index(last) + 1], *wings}


def test_every_folder_has_a_place():
    assert {folder(name) for name in modules()} == {"", *COMMON, *LINE, *WINGS}


@pytest.mark.parametrize("name", [*LINE, *WINGS])
def test_imports_go_to_the_left(name):
    others = {
        (module, folder(other))
        for module, (_, imports) in modules().items()
        for other in imports
        if folder(module) == name and folder(other) != name
    }
    assert {pair for pair in others if pair[1] not in allowed(name)} == set()


def test_a_ranker_of_tables_reaches_the_line_alone():
    found = reached("sklearn_rankcal.rankers._calibrated")
    assert {folder(name) for name in found} <= {"", *COMMON, *LINE}


def test_importing_a_ranker_of_tables_loads_the_line_alone():
    """The wings are loaded when they are used, by their names or those of their classes."""
    code = """
import sys
import sklearn_rankcal
from sklearn_rankcal import CalibratedRanker
loaded = {name.split(".")[1] for name in sys.modules if name.startswith("sklearn_rankcal.")}
print(*sorted(loaded))
assert sklearn_rankcal.consistency is sys.modules["sklearn_rankcal.consistency"]
assert all(hasattr(sklearn_rankcal, name) for name in sklearn_rankcal.__all__)
assert not hasattr(sklearn_rankcal, "nothing") and not hasattr(sklearn_rankcal, "_nothing")
assert {*sklearn_rankcal.__all__} <= {*dir(sklearn_rankcal)}
"""
    done = run_python(code)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == {*LINE, *COMMON, "model_selection"}


def test_tests_say_why_they_import_what_is_private():
    """The first private import of a file has a comment, on its line or on the line before."""
    silent = []
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        lines = ["", *path.read_text(encoding="utf-8").splitlines()]
        private = [
            node.lineno
            for node in ast.walk(ast.parse("\n".join(lines[1:])))
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE.name)
            for name in (*node.module.split("."), *(one.name for one in node.names))
            if name.startswith("_") and not name.startswith("__")
        ]
        first = min(private, default=0)
        if first and "  # " not in lines[first] and not lines[first - 1].startswith("# "):
            silent.append(f"{path.name}, line {first}")
    assert silent == []


def test_a_class_has_a_name_of_its_own():
    where = {}
    for name, (path, _) in modules().items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                where.setdefault(node.name, []).append(name)
    assert {kind: places for kind, places in where.items() if len(places) > 1} == {}


def test_no_module_imports_itself():
    """Imports for types alone count, too: a reader follows them."""
    reach = {name: reached(name, types=True) for name in modules()}
    circular = {name for name in reach for other in reach[name] - {name} if name in reach[other]}
    assert circular == set()


# -------------------------------------------------------------------- what only shrinks


def entered(call):
    """How many functions of the package, in how many files, a call enters."""
    root, seen = str(PACKAGE), set()

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(root):
            code = frame.f_code
            seen.add((code.co_filename, code.co_name, code.co_firstlineno))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return len(seen), len({path for path, _, _ in seen})


def doors():
    """The figures of `DOORS` today."""
    data = make_ranking(n_queries=60, random_state=0)
    X, y, groups = data.X, data.y, data.groups
    votes = [("owl", "cat"), ("owl", "cat"), ("cat", "eel"), ("eel", "owl")] * 9
    ranker = CalibratedRanker(Ridge())
    calls = {
        "fit": lambda: ranker.fit(X, y, groups=groups),
        "predict": lambda: ranker.predict(X, groups=groups),
        "ndcg_score": lambda: ndcg_score(y, X[:, 0], groups=groups),
        "aggregate": lambda: aggregate(votes),
        "aggregate, robust": lambda: aggregate(votes, intervals="robust"),
    }
    aggregate(votes)  # imports are no part of a call
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: entered(call) for name, call in calls.items()}


def sizes():
    """The figures of `SIZES` today."""
    tests = [path.read_text(encoding="utf-8") for path in Path(__file__).parent.rglob("*.py")]
    return {
        "files": len(modules()),
        "lines": n_lines(modules()),
        "lines of tests": sum(len(text.splitlines()) for text in tests),
        "lines in reach": n_lines(reached("sklearn_rankcal.rankers._calibrated")),
    }


@pytest.mark.skipif(sys.version_info < (3, 12), reason="comprehensions were functions of their own")
def test_a_call_enters_no_more_functions_and_files():
    found = doors()
    assert {name for name in DOORS if found[name][0] > DOORS[name][0]} == set(), found
    assert {name for name in DOORS if found[name][1] > DOORS[name][1]} == set(), found


def test_the_package_and_its_tests_do_not_grow():
    found = sizes()
    assert {name: size for name, size in found.items() if size > SIZES[name]} == {}


if __name__ == "__main__":
    for name, figures in (doors() | sizes()).items():
        print(f"{name:20}", figures)
    names = reached("sklearn_rankcal.rankers._calibrated")
    for place in sorted({folder(name) for name in names}):
        print(f"  {place:10}", n_lines({name for name in names if folder(name) == place}))
