"""The parts of the documentation's build that need no Sphinx: the members of classes, the links."""

import ast
import doctest
import email.message
import importlib.util
import inspect
import pydoc
import re
import sys
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.utils import estimator_html_repr

from sklearn_rankcal import (
    CalibratedLabelRanker,
    CalibratedRanker,
    LinearRanker,
    LowRankClassifier,
    RelevanceRegressor,
    RiskControlledCutoff,
    ScoreRegressor,
)
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.targets import SCORES
from sklearn_rankcal.utils import _estimators  # an address that tests replace

DOC = Path(__file__).parent.parent / "doc"


def load(path):
    """Import a file of the documentation, which is no package."""
    spec = importlib.util.spec_from_file_location(f"doc_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class_members = load(DOC / "_extensions" / "class_members.py")
check_links = load(DOC / "check_links.py")


def test_members_of_a_ranker():
    members = class_members.describe_class(CalibratedRanker)
    assert {"fit", "predict", "decision_function", "score"} <= set(members["methods"])
    assert {"get_params", "set_params", "set_fit_request"} <= set(members["shared"])
    assert "coef_" in members["attributes"]
    assert "classes_" not in members["attributes"]  # it only raises an error


def test_members_of_python_types_are_left_out():
    """A space is a string, but its page need not list the methods of all strings."""
    members = class_members.describe_class(type(SCORES))
    assert "upper" not in members["methods"] and members["methods"]


def test_help_of_a_ranker_can_be_read():
    """Methods of scikit-learn included, of which those of metadata routing have one line each."""
    shown = pydoc.plain(pydoc.render_doc(CalibratedRanker)).splitlines()
    # from Python 3.13 on, each parameter of a long signature has a line of its own
    long_signatures = sys.version_info >= (3, 13)
    assert len(shown) < (500 if long_signatures else 310)
    assert any("needs no parameter" in line for line in shown[: 30 if long_signatures else 10])
    assert not any("sub-estimator" in line for line in shown)


LINKED = {
    "sklearn_rankcal.CalibratedRanker": CalibratedRanker(),
    "sklearn_rankcal.CalibratedLabelRanker": CalibratedLabelRanker(),
    "sklearn_rankcal.LinearRanker": LinearRanker(),
    "sklearn_rankcal.RelevanceRegressor": RelevanceRegressor(Ridge()),
    "sklearn_rankcal.RiskControlledCutoff": RiskControlledCutoff(CalibratedRanker()),
    "sklearn_rankcal.ScoreRegressor": ScoreRegressor(CalibratedRanker()),
    "sklearn_rankcal.LowRankClassifier": LowRankClassifier(loss_matrix=np.eye(2)),
}


@pytest.mark.parametrize("site", ["", "https://site.example/it"])
@pytest.mark.parametrize("page", LINKED)
def test_html_of_an_estimator_links_to_its_page(monkeypatch, page, site):
    monkeypatch.setattr(_estimators, "documentation_site", lambda: site)
    module, _, name = page.rpartition(".")
    listed = "\n".join(path.read_text(encoding="utf-8") for path in (DOC / "api").glob("*.rst"))
    assert f".. module:: {module}\n" in listed and f"\n   {name}\n" in listed
    shown = estimator_html_repr(LINKED[page])
    assert name in shown
    assert (f'href="{site}/generated/{page}.html"' in shown) == bool(site)
    assert ("/generated/sklearn_rankcal" in shown) == bool(site)


@pytest.mark.parametrize(
    ("urls", "wanted"),
    [
        (None, ""),
        (["Source, https://host.example"], ""),
        (["Source, https://a.example", "Documentation, https://b.example/"], "https://b.example"),
    ],
)
def test_the_site_is_in_the_metadata(monkeypatch, urls, wanted):
    message = email.message.Message()
    for url in urls or ():
        message["Project-URL"] = url
    monkeypatch.setattr(_estimators.metadata, "metadata", lambda name: message)
    _estimators.documentation_site.cache_clear()
    assert _estimators.documentation_site() == wanted
    _estimators.documentation_site.cache_clear()


def test_every_public_member_has_a_docstring():
    classes = class_members.public_objects()
    assert [
        f"{full}.{name}"
        for full, members in class_members.MEMBERS.items()
        for name in members["methods"] + members["attributes"]
        if not inspect.getdoc(inspect.getattr_static(classes[full], name))
    ] == []


@pytest.mark.parametrize(
    ("body", "n_errors"),
    [
        ('<a href="other.html#here">', 0),
        ('<a href="#top"><p id="top">', 0),
        ('<a href="https://example.org/x.html">', 0),
        ('<img src="data:image/png;base64,AAAA">', 0),
        ('<a href="missing.html">', 1),
        ('<a href="other.html#there">', 1),
        ('<a href="#top">', 1),
        ('<script src="https://example.org/x.js">', 1),
        ('<link rel="stylesheet" href="missing.css">', 1),
    ],
)
def test_links_of_a_site(tmp_path, body, n_errors):
    (tmp_path / "index.html").write_text(body, encoding="utf-8")
    (tmp_path / "other.html").write_text('<h1 id="here">', encoding="utf-8")
    n_pages, errors = check_links.find_errors(tmp_path)
    assert n_pages == 2 and len(errors) == n_errors


def test_every_picture_of_the_gallery_has_a_text():
    """A figure is shown by plt.show(); the texts are read without importing Sphinx."""
    tree = ast.parse((DOC / "_extensions" / "gallery_alt.py").read_text(encoding="utf-8"))
    (texts,) = (
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "TEXTS"
    )
    examples = {
        path.stem.removeprefix("plot_"): path.read_text(encoding="utf-8").count("\nplt.show()")
        for path in (DOC.parent / "examples").glob("plot_*.py")
    }
    assert all(examples.values())
    assert sorted(ast.literal_eval(texts)) == sorted(
        f"{name}_{i + 1:03d}" for name, n_shown in examples.items() for i in range(n_shown)
    )


def test_citations_of_the_site_are_those_of_the_citation_file():
    cff = " ".join((DOC.parent / "CITATION.cff").read_text(encoding="utf-8").split())
    papers = cff.split("references:")[1].split("- type: ")[1:]
    entries = (DOC / "about.rst").read_text(encoding="utf-8").split("\n* ")[1:]
    assert len(papers) == len(entries) == 4
    for paper, entry in zip(papers, entries, strict=True):
        (title,) = re.findall(r"title: (?:>- )?(.+?) authors:", paper)
        (year,) = re.findall(r"\byear: (\d+)", paper)
        assert f"({year}). {title}. *" in " ".join(entry.split())
        assert re.findall(r"\bdoi: (\S+)", paper) == re.findall(r"\bdoi (\S+):", entry)


def run_examples(text, name):
    """Run the examples of a page or of a part of it, and return the reports of the failures."""
    test = doctest.DocTestParser().get_doctest(text, {}, name, str(DOC / name), 0)
    flags, reports = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS, []
    doctest.DocTestRunner(optionflags=flags).run(test, out=reports.append)
    return reports


def test_heads_of_tables_have_the_delimiter_of_their_rows():
    """Sphinx says nothing if a head is a single cell."""
    heads = []
    for page in [*DOC.glob("*.rst"), *DOC.glob("guide/*.rst")]:
        found = re.findall(
            r":header: (.+)\n +:delim: (.)\n\n(.+)", page.read_text(encoding="utf-8")
        )
        heads += [(head.count(mark), row.count(mark)) for head, mark, row in found]
    assert heads and all(in_head >= in_row > 0 for in_head, in_row in heads)


def test_the_comparison_with_lightgbm(capsys, few_trees):
    """Its code is not run with the page, which is tested without LightGBM."""
    pytest.importorskip("lightgbm")
    text = (DOC / "coming_from.rst").read_text(encoding="utf-8")
    section = text[text.index(".. _fair-comparison:") : text.index("What to keep\n---")]
    code = textwrap.dedent(section.split(".. code-block:: python\n")[1].split("\nWith ``make")[0])
    data = make_ranking(n_queries=30, random_state=0)
    frame = pd.DataFrame(data.X).add_prefix("f").assign(qid=data.groups, relevance=data.y)
    names = {"frame": frame.sample(frac=1, random_state=0)}
    exec(code.replace("GroupKFold(5)", "GroupKFold(2)"), names)
    printed = [line for line in capsys.readouterr().out.splitlines() if "interval" in line]
    assert len(printed) == 2 and all("% interval, 30 queries)" in line for line in printed)
    fitted, stops, test = (set(names["qid"][names[rows]]) for rows in ("fitted", "stops", "test"))
    assert len(fitted) + len(stops) + len(test) == len(fitted | stops | test) == 30
    assert names["qid"].is_monotonic_increasing


FAQ = (DOC / "faq.rst").read_text(encoding="utf-8")
ANSWERS = re.split(r"\n(?=[^\n]+\n~{5,}\n)", FAQ)[1:]


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.partition("\n")[0])
def test_every_answer_of_the_faq_runs_by_itself(answer):
    """People come to one answer by a link, and copy its code."""
    assert run_examples(answer, "faq.rst") == []
