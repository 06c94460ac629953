"""The API pages of the documentation list every public name."""

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import sklearn_rankcal

PAGES = sorted((Path(__file__).parent.parent / "doc" / "api").glob("*.rst"))
ROOMS = [module.name for module in pkgutil.iter_modules(sklearn_rankcal.__path__)]
#: Subpackages that are not for users: `labels` has the functions by which the others read labels.
NOT_FOR_USERS = {"labels"}


def listed_objects():
    """Return the objects that the pages list, by their ids, without names that do not exist."""
    found = {}
    for page in PAGES:
        module = "sklearn_rankcal"
        for line in page.read_text(encoding="utf-8").splitlines():
            if current := re.fullmatch(r"\.\. (?:current)?module:: (\S+)", line):
                module = current[1]
            elif entry := re.fullmatch(r" {3}([A-Za-z_.]+)", line):
                folder, _, name = f"{module}.{entry[1]}".rpartition(".")
                if hasattr(importlib.import_module(folder), name):
                    listed = getattr(importlib.import_module(folder), name)
                    found[id(listed)] = listed
    return found


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
