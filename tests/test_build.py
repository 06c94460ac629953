"""What pip and a release give people: the build backend, the source archive and the wheels."""

import configparser
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from sklearn_rankcal import __version__

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = (".build", ".ci", ".conda", ".github", "doc", "examples", "sklearn_rankcal", "tests")


@pytest.fixture
def backend(monkeypatch):
    """The module .build/backend.py, used from the root of the repository as frontends use it."""
    spec = importlib.util.spec_from_file_location("backend", ROOT / ".build" / "backend.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("SKLEARN_RANKCAL_KERNELS", raising=False)
    return module


@pytest.fixture
def tree(tmp_path):
    """A copy of the repository without what .gitignore names."""
    lines = (ROOT / ".gitignore").read_text().split()
    ignored = shutil.ignore_patterns(".git", *(line.strip("/").split("/")[-1] for line in lines))
    return shutil.copytree(ROOT, tmp_path / "tree", ignore=ignored)


def run_backend(tree, hook, kernels):
    """Call one hook of the backend in a process of its own; return the file that it built."""
    code = f"import backend; print(backend.{hook}('dist'))"
    environment = {
        **os.environ, "PYTHONPATH": str(tree / ".build"), "SKLEARN_RANKCAL_KERNELS": kernels,
    }  # fmt: skip
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return tree / "dist" / run.stdout.split()[-1]


def test_compiler_options(backend):
    compile_args, link_args = backend.compiler_options("msvc", "win32")
    assert all(option.startswith("/") for option in compile_args + link_args)
    for compiler, system in [("unix", "linux"), ("unix", "darwin"), ("mingw32", "win32")]:
        compile_args, link_args = backend.compiler_options(compiler, system)
        assert "-ffp-contract=off" in compile_args
        assert len(link_args) == 1


def test_one_extension_unless_numpy_is_wanted(backend, monkeypatch):
    for wanted, optional in (("", True), ("compiled", False)):
        monkeypatch.setenv("SKLEARN_RANKCAL_KERNELS", wanted)
        (extension,) = backend.kernels()
        assert extension.optional == optional
        sources = {*extension.sources, *extension.depends}
        cython = ROOT.glob("sklearn_rankcal/**/*.p[xy][xdi]")
        assert sources == {path.relative_to(ROOT).as_posix() for path in cython}
    monkeypatch.setenv("SKLEARN_RANKCAL_KERNELS", "numpy")
    assert backend.kernels() == []
    monkeypatch.setenv("SKLEARN_RANKCAL_KERNELS", "fast")
    with pytest.raises(SystemExit, match="must be 'numpy', 'compiled' or unset; it is 'fast'"):
        backend.kernels()


def test_recipe_and_citations_repeat_setup_cfg():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    recipe = (ROOT / ".conda" / "recipe.yaml").read_text(encoding="utf-8")
    needed = re.search(r"  run:\n    - python\n(.*?)\n\n", recipe, re.DOTALL)[1]
    wanted = setup["options"]["install_requires"].split()
    assert [line.strip(" -").replace(" ", "") for line in needed.split("\n")] == wanted
    assert f"\n  version: {__version__}\n" in recipe
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    zenodo = json.loads((ROOT / ".zenodo.json").read_text(encoding="utf-8"))
    metadata = setup["metadata"]
    assert zenodo["title"] == metadata["name"]
    assert zenodo["description"] == metadata["description"] + "."
    assert zenodo["license"] == metadata["license_expression"]
    assert zenodo["creators"] == [{"name": metadata["author"]}]
    for text in (zenodo["title"], zenodo["description"], zenodo["license"], metadata["author"]):
        assert f": {text}\n" in citation
    for keyword in zenodo["keywords"]:
        assert f"\n  - {keyword}\n" in citation


SITE = {"Documentation": "https://site.example/"}
SOURCE = {"Source": "https://host.example/us/it"}


@pytest.mark.parametrize(
    ("target", "urls", "wanted"),
    [
        ("[a](doc/guide/b.rst#c)", SITE | SOURCE, "[a](https://site.example/guide/b.html#c)"),
        ("[a](doc/b.rst)", SOURCE, "[a](https://host.example/us/it/blob/HEAD/doc/b.rst)"),
        ("[a](LICENSE)", SITE | SOURCE, "[a](https://host.example/us/it/blob/HEAD/LICENSE)"),
        ("![a](doc/b.png)", SOURCE, "![a](https://host.example/us/it/raw/HEAD/doc/b.png)"),
        ("[a](#b)", SOURCE, "[a](https://host.example/us/it#b)"),
        ("[`a`](doc/b.rst) ([c](#d))", {}, "`a` (c)"),
        ("[a](https://b.example/c)", {}, "[a](https://b.example/c)"),
    ],
)
def test_links_of_the_readme(backend, target, urls, wanted):
    assert backend.absolute_links(f"See {target}.", urls) == f"See {wanted}."


@pytest.mark.parametrize("known", [False, True])
def test_description_has_no_relative_link(tmp_path, known):
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / ".build", tmp_path / ".build")
    for folder in ("dist", "sklearn_rankcal"):
        (tmp_path / folder).mkdir()
    shutil.copy(ROOT / "sklearn_rankcal" / "_version.py", tmp_path / "sklearn_rankcal")
    if known:
        setup = configparser.ConfigParser()
        setup.read(ROOT / "setup.cfg")
        setup["metadata"]["project_urls"] = "\nSource = https://host.example/it"
        with (tmp_path / "setup.cfg").open("w") as file:
            setup.write(file)
    folder = run_backend(tmp_path, "prepare_metadata_for_build_wheel", "numpy")
    description = (folder / "METADATA").read_text(encoding="utf-8")
    assert "](doc/" not in description and "](#" not in description
    assert "](doc/" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert ("Project-URL: Source, https://host.example/it" in description) == known
    assert ("(https://host.example/it/blob/HEAD/doc/" in description) == known


COMPLETE = {
    "setup.cfg": """\
[metadata]
maintainer = The owner
project_urls =
    Source = https://host.example/it
    Issues = https://host.example/it/issues
    Documentation = https://site.example/it
""",
    "CITATION.cff": "repository-code: https://host.example/it\n",
    "sklearn_rankcal/_version.py": '__version__ = "7.6.5"\n',
    ".conda/recipe.yaml": "context:\n  version: 7.6.5\n",
    "doc/changes/index.rst": "7.6.5 (2030-01-31)\n------------------\n",
}


@pytest.fixture
def missing(tmp_path):
    """Write a complete release, with one file changed; return what `.build/release.py` misses."""
    spec = importlib.util.spec_from_file_location("release", ROOT / ".build" / "release.py")
    release = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(release)

    def run(tag=None, file=None, old="", new=""):
        for name, text in COMPLETE.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            text = text.replace(old, new) if name == file else text
            (tmp_path / name).write_text(text, encoding="utf-8")
        return release.missing(tag, tmp_path)

    return run


def test_a_complete_release_misses_nothing(missing):
    assert missing() == missing("v7.6.5") == []
    assert missing("v7.6.4") == ["the tag is v7.6.4, but sklearn_rankcal/_version.py says 7.6.5"]


@pytest.mark.parametrize(
    ("file", "old", "new", "named"),
    [
        ("setup.cfg", "maintainer", "# maintainer", "maintainer"),
        ("setup.cfg", "Source", "# Source", "Source"),
        ("setup.cfg", "https://host.example/it/issues", "", "Issues"),
        ("setup.cfg", "Documentation", "# Documentation", "Documentation"),
        ("CITATION.cff", "repository-code", "# repository", "repository-code"),
        ("sklearn_rankcal/_version.py", "7.6.5", "7.6.5.dev0", "not a version"),
        (".conda/recipe.yaml", "7.6.5", "7.6.4", "recipe.yaml"),
        ("doc/changes/index.rst", "2030-01-31", "unreleased", "7.6.5 (YYYY-MM-DD)"),
    ],
)
def test_a_release_needs_what_only_the_owner_knows(missing, file, old, new, named):
    assert any(named in line for line in missing(None, file, old, new))


@pytest.mark.slow
@pytest.mark.parametrize("hook", ["build_sdist", "build_wheel"])
def test_two_builds_give_the_same_bytes(tree, tmp_path, monkeypatch, hook):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    other = shutil.copytree(tree, tmp_path / "other")
    for number, path in enumerate(sorted(other.rglob("*"))):
        os.utime(path, (10**9 + number, 10**9 + number))
    (other / "README.md").chmod(0o600)
    first, second = (run_backend(folder, hook, "numpy") for folder in (tree, other))
    assert first.name == second.name
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.slow
def test_source_archive_holds_the_repository(tree):
    archive = run_backend(tree, "build_sdist", "numpy")
    with tarfile.open(archive) as members:
        held = {name.partition("/")[2] for name in members.getnames()}
    wanted = {
        path.relative_to(tree).as_posix()
        for folder in FOLDERS
        for path in (tree / folder).rglob("*")
        if path.is_file()
    }
    assert len(wanted) > 100
    assert not wanted - held
    assert {"LICENSE", "README.md", "CITATION.cff", ".zenodo.json", "setup.cfg"} <= held


@pytest.mark.slow
def test_pure_wheel_holds_the_modules_and_nothing_of_an_earlier_build(tree):
    stale = tree / "build" / "lib" / "sklearn_rankcal" / "gone.py"
    stale.parent.mkdir(parents=True)
    stale.touch()
    wheel = run_backend(tree, "build_wheel", "numpy")
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as members:
        held = {name for name in members.namelist() if ".dist-info/" not in name}
    wanted = {
        path.relative_to(tree).as_posix()
        for pattern in ("*.py", "py.typed")
        for path in (tree / "sklearn_rankcal").rglob(pattern)
    }
    assert held == wanted


@pytest.mark.slow
@pytest.mark.exhaustive  # the release that CI builds compiles the kernels, too
def test_compiled_wheel_holds_stripped_kernels(tree):
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", "dist", "."]
    environment = {**os.environ, "SKLEARN_RANKCAL_KERNELS": "compiled"}
    subprocess.run(pip, cwd=tree, env=environment, check=True)
    (wheel,) = (tree / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as members:
        sizes = [m.file_size for m in members.infolist() if m.filename.endswith((".so", ".pyd"))]
    assert len(sizes) == 1
    assert sizes[0] < 800_000  # 420 kB on Linux, and a multiple with debugging information
