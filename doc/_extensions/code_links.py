"""Code names in the text become links to the page of the object, where there is one.

A name in backticks may be written as users write it: `CalibratedRanker`, `losses.NDCG`,
`Queries.from_groups`, `AggregatedLoss("ndcg")`, or `fit` within the text of a class. A name that
belongs to several objects, such as `NDCG`, means the one of the module that the page is about
(`code_links_modules`), and stays plain where the page is about no module. Names of parameters and
all other code stay plain, too. The types of parameters, which have no backticks, become links in
the same way.
"""

import functools
import importlib
import inspect
import re

from class_members import public_objects
from docutils import nodes
from sphinx import addnodes
from sphinx.ext.intersphinx import InventoryAdapter
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

PACKAGE = "sklearn_rankcal"
CODE = re.compile(r"(?P<name>[A-Za-z_]\w*(\.[A-Za-z_]\w*)*)(\(.*\))?", re.DOTALL)
_TYPE = re.compile(r"(?<![\w\"'.])([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?![\w\"'])")
_IMPORTED_AS = {"np": "numpy", "pd": "pandas"}
_EXTERNAL_TYPES = ("py:class", "py:exception", "py:function", "py:data")
UNLINKED = (nodes.reference, nodes.title, nodes.rubric, addnodes.desc_signature)
_MEMBERS = ("method", "property", "attribute")


class Names:
    """What a name in the text can mean.

    Parameters
    ----------
    objects : dict of str to sphinx.domains.python.ObjectEntry
        The documented objects by their full names.
    inventory : dict of str to dict
        The objects of other projects by their types and names.
    """

    def __init__(self, objects, inventory):
        self.objects = objects
        self.short = {}
        for full, entry in objects.items():
            parts = full.split(".")[1:]
            # an alias is the private module in which an object is written
            if entry.aliased or entry.objtype == "module" or full.partition(".")[0] != PACKAGE:
                continue
            # a method is named with its class, and any object with as much of its path as one likes
            n_needed = 2 if entry.objtype in _MEMBERS else 1
            for start in range(len(parts) - n_needed + 1):
                self.short.setdefault(".".join(parts[start:]), set()).add(full)
        self._add_other_paths()
        self.external = {}
        self._add_external(inventory)

    def _add_other_paths(self):
        """Add the paths from which a documented object can be imported as well."""
        paths = public_objects()
        documented = {id(item): full for full, item in paths.items() if full in self.objects}
        for path, item in paths.items():
            if (full := documented.get(id(item))) is not None:
                self.short.setdefault(path.removeprefix(f"{PACKAGE}."), {full})

    def _add_external(self, inventory):
        """Add the objects of other projects.

        Those of scikit-learn can be named without their module, if only one has the name and the
        name is not a plain word: `Pipeline`, `cross_validate`.
        """
        uris = {}
        for kind in _EXTERNAL_TYPES:
            for full, item in inventory.get(kind, {}).items():
                self.external[full] = item.uri
                short = full.rpartition(".")[2]
                if full.startswith("sklearn.") and ("_" in short or not short.islower()):
                    uris.setdefault(short, set()).add(item.uri)
        for short, candidates in uris.items():
            if len(candidates) == 1:
                self.external.setdefault(short, *candidates)

    def find(self, name, context, module):
        """Return the full name of our object that a name means, or None.

        Parameters
        ----------
        name : str
            The name in the text.
        context : list of str
            The objects in whose documentation the name stands, innermost first.
        module : str or None
            The module that the page is about.
        """
        for full in (*(f"{outer}.{name}" for outer in context), name):
            if full in self.objects:
                return full
        candidates = self.short.get(name.removeprefix(f"{PACKAGE}."), set())
        if len(candidates) == 1:
            return next(iter(candidates))
        here = context[-1].rpartition(".")[0] if context else module
        return next((full for full in candidates if full == f"{here}.{name}"), None)

    def find_external(self, name):
        """Return the address of the object of another project that a name means, or None."""
        first, dot, rest = name.partition(".")
        return self.external.get(f"{_IMPORTED_AS.get(first, first)}{dot}{rest}")


@functools.cache
def parameters_of(full):
    """Return the names of the parameters of an object; they are no links in its own text."""
    module = full
    while True:
        module, _, _ = module.rpartition(".")
        try:
            found = importlib.import_module(module)
        except ModuleNotFoundError:
            continue
        break
    for part in full.removeprefix(f"{module}.").split("."):
        found = getattr(found, part)
    try:
        return set(inspect.signature(found).parameters)
    except (TypeError, ValueError):  # it cannot be called, or it is written in C
        return set()


def enclosing_objects(node):
    """Return the full names of the objects in whose documentation a node stands."""
    found = []
    while (node := node.parent) is not None:
        if isinstance(node, addnodes.desc) and node["domain"] == "py":
            signature = node[0]
            found.append(f"{signature['module']}.{signature['fullname']}")
    return found


def is_inside(node, kinds):
    """Return whether a node stands within a node of one of several kinds."""
    while (node := node.parent) is not None:
        if isinstance(node, kinds):
            return True
    return False


class CodeLinks(SphinxPostTransform):
    """Turn the code names of a page, and the types of parameters, into links."""

    default_priority = 5

    def run(self):
        """Link each literal and each type that names a documented object."""
        for literal in list(self.document.findall(nodes.literal)):
            match = CODE.fullmatch(literal.astext())
            if match is None or is_inside(literal, UNLINKED):
                continue
            if (link := self.find_link(match["name"], literal)) is not None:
                literal.replace_self(link)
                link += literal
        for kind in list(self.document.findall(nodes.classifier)):
            for text in list(kind.findall(nodes.Text)):
                text.parent.replace(text, self.link_types(text))

    def find_link(self, name, node):
        """Return a link, still empty, to what a name means in the place of a node, or None."""
        names, context = self.app.code_links_names, enclosing_objects(node)
        if any(name in parameters_of(outer) for outer in context):
            return None
        module = self.config.code_links_modules.get(self.env.docname)
        if (full := names.find(name, context, module)) is not None:
            if full in context:
                return None
            entry, page = names.objects[full], self.env.docname
            builder = self.app.builder
            return make_refnode(builder, page, entry.docname, entry.node_id, [], full)
        if (address := names.find_external(name)) is not None:
            return nodes.reference("", "", internal=False, refuri=address)
        return None

    def link_types(self, text):
        """Return the nodes of a type, such as ``Queries or array-like of shape (n_rows,)``."""
        found = []
        for k, part in enumerate(_TYPE.split(text.astext())):
            is_type = k % 2 == 1 and (part != part.lower() or "." in part)
            link = self.find_link(part, text) if is_type else None
            if link is not None:
                link += nodes.Text(part)
            found.append(nodes.Text(part) if link is None else link)
        return found


def collect_names(app, env):
    """Collect what the names can mean, when all pages have been read."""
    app.code_links_names = Names(
        env.domains.python_domain.objects, InventoryAdapter(env).main_inventory
    )


def setup(app):
    """Sphinx's hook."""
    app.setup_extension("sphinx.ext.intersphinx")
    app.add_config_value("code_links_modules", {}, "env")
    app.add_post_transform(CodeLinks)
    app.connect("env-check-consistency", collect_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
