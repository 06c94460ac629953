"""The API pages of the documentation list every public name."""

import dataclasses
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import sklearn_rankcal
from sklearn_rankcal import Judgements
from sklearn_rankcal.aggregation import Structure
from sklearn_rankcal.decoders import Quota, Rules
from sklearn_rankcal.labels import Preferences
from sklearn_rankcal.losses import Measure
from sklearn_rankcal.metrics import RunEvaluation
from sklearn_rankcal.models import Model
from sklearn_rankcal.surrogates import Surrogate

PAGES = sorted((Path(__file__).parent.parent / "doc" / "api").glob("*.rst"))
ROOMS = [module.name for module in pkgutil.iter_modules(sklearn_rankcal.__path__)]
#: Subpackages that are not for users: `labels` has the functions by which the others read labels.
NOT_FOR_USERS = {"labels"}


def objects_of(page):
    """Yield the full names of the objects that a page lists, and the objects, if they exist."""
    module = "sklearn_rankcal"
    for line in page.read_text(encoding="utf-8").splitlines():
        if current := re.fullmatch(r"\.\. (?:current)?module:: (\S+)", line):
            module = current[1]
        elif entry := re.fullmatch(r" {3}([A-Za-z_.]+)", line):
            folder, _, name = f"{module}.{entry[1]}".rpartition(".")
            if hasattr(importlib.import_module(folder), name):
                yield f"{folder}.{name}", getattr(importlib.import_module(folder), name)


def listed_objects():
    """Return the objects that the pages list, by their ids."""
    return {id(listed): listed for page in PAGES for _, listed in objects_of(page)}


@pytest.mark.parametrize("room", ["", *(name for name in ROOMS if name not in NOT_FOR_USERS)])
def test_the_api_pages_list_every_public_name(room):
    module = importlib.import_module(f"sklearn_rankcal.{room}".rstrip("."))
    listed = listed_objects()
    missing = [
        name
        for name in getattr(module, "__all__", [])
        if name != "__version__" and id(getattr(module, name)) not in listed
    ]
    assert missing == []


#: Checks of numpydoc. We leave out See Also and the extended summary. We also leave out the types
#: and the order of parameters, because several that are described elsewhere are in one group.
CHECKS = {
    *("GL02", "GL03", "GL05", "GL06", "GL07", "GL08", "GL09", "GL10"),
    *("SS01", "SS02", "SS03", "SS04", "SS05", "SS06"),
    *("PR01", "PR02", "PR05", "PR06", "PR07", "PR09", "PR10"),
    *("RT01", "RT04", "RT05", "EX01"),
}
#: The package calls the methods of these classes, which their bases describe.
CALLED_BY_THE_PACKAGE = (Measure, Surrogate, Structure, Model, Preferences, Rules, Quota)
#: Users make these by functions or by methods such as `Judgements.from_votes`.
MADE_BY_FUNCTIONS = (Judgements, RunEvaluation)


def faults(full_name, checks):
    validate = pytest.importorskip("numpydoc.validate").validate
    return {
        f"{full_name}: {code} {message}"
        for code, message in validate(full_name)["errors"]
        if code in checks
    }


def holds_results(listed):
    """Whether users get objects of a class and do not make them; its attributes are described."""
    return dataclasses.is_dataclass(listed) or hasattr(listed, "_fields")


def checks_of_class(listed):
    if issubclass(listed, Warning):
        return CHECKS - {"EX01"}
    if issubclass(listed, MADE_BY_FUNCTIONS):
        return CHECKS - {"PR01"}
    return CHECKS - {"EX01", "PR01"} if holds_results(listed) else CHECKS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_docstrings_have_the_sections_of_numpydoc(page):
    found = set()
    for full_name, listed in objects_of(page):
        if not inspect.isclass(listed) and not inspect.isfunction(listed):
            continue
        if page.stem == "developers":  # short, and described together in the guide
            found |= faults(full_name, CHECKS - {"EX01", "PR01", "RT01"})
        elif inspect.isfunction(listed):
            found |= faults(full_name, CHECKS)
        else:
            found |= faults(full_name, checks_of_class(listed))
            if not issubclass(listed, CALLED_BY_THE_PACKAGE):
                for name, method in vars(listed).items():
                    if inspect.isfunction(method) and not name.startswith("_"):
                        found |= faults(f"{full_name}.{name}", CHECKS - {"EX01"})
    assert sorted(found) == []
