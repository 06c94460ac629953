"""The members of every public class, for the pages of the API.

The template of a class page asks `MEMBERS` which methods and attributes it documents. Methods by
which scikit-learn passes parameters and metadata are the same in every estimator. They are
documented once, on the page that `SHARED_PAGE` names, and a class page only lists them. Properties
without a docstring are left out: they only raise an error with an explanation.
"""

import functools
import importlib
import inspect
import pkgutil
import re

import sklearn_rankcal

SHARED_PAGE = "api/shared_methods"
_SHARED = re.compile(r"(get|set)_params|get_metadata_routing|set_output|set_\w+_request")
#: Sections of a docstring that stand after the table of methods.
_LATER_SECTIONS = (
    ".. seealso::",
    ".. rubric:: Notes",
    ".. rubric:: References",
    ".. rubric:: Examples",
)
_NOT_OURS = ("builtins", "enum", "typing", "collections")


def public_objects():
    """Return the public objects of the package and its modules, by each full name they have."""
    found = [module.name for module in pkgutil.iter_modules(sklearn_rankcal.__path__)]
    modules = [f"sklearn_rankcal.{name}" for name in found if not name.startswith("_")]
    objects = {}
    for module in map(importlib.import_module, ["sklearn_rankcal", *modules]):
        own = (name for name, item in vars(module).items() if _is_own(name, item, module))
        for name in getattr(module, "__all__", own):
            objects[f"{module.__name__}.{name}"] = getattr(module, name)
    return objects


def _is_own(name, item, module):
    return not name.startswith("_") and getattr(item, "__module__", None) == module.__name__


def describe_class(class_):
    """Return the names of the methods, the attributes and the shared methods of a class."""
    members = {"methods": [], "attributes": [], "shared": []}
    for name in dir(class_):
        owner = next((base for base in class_.__mro__ if name in vars(base)), class_)
        if name.startswith("_") or owner.__module__.split(".")[0] in _NOT_OURS:
            continue
        member = inspect.getattr_static(class_, name)
        if isinstance(member, (property, functools.cached_property)):
            if inspect.getdoc(member):
                members["attributes"].append(name)
        elif callable(getattr(class_, name)) and not inspect.isclass(member):
            members["shared" if _SHARED.fullmatch(name) else "methods"].append(name)
    return members


MEMBERS = {
    full: describe_class(item) for full, item in public_objects().items() if inspect.isclass(item)
}


def add_tables_of_members(app, what, name, obj, options, lines):
    """Insert tables of the members of a class behind the attributes in its docstring."""
    if what != "class" or name not in MEMBERS:
        return
    members, short = MEMBERS[name], name.rpartition(".")[2]
    table = []
    for title, kind in (("Properties", "attributes"), ("Methods", "methods")):
        if members[kind]:
            table += [f".. rubric:: {title}", "", ".. autosummary::", "   :nosignatures:", ""]
            table += [*(f"   ~{short}.{member}" for member in members[kind]), ""]
    if members["shared"]:
        shared = ", ".join(f"`{method}`" for method in members["shared"])
        table += [f":doc:`Methods of scikit-learn </{SHARED_PAGE}>`: {shared}.", ""]
    where = next((k for k, line in enumerate(lines) if line.startswith(_LATER_SECTIONS)), None)
    if where is None:
        lines += ["", *table]
    else:
        lines[where:where] = table


def setup(app):
    """Sphinx's hook."""
    # after numpydoc, which has the priority 500
    app.connect("autodoc-process-docstring", add_tables_of_members, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
