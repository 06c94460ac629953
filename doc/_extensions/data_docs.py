"""The pages of constants and registries: the comment in the source, and the entries of a registry.

Python keeps no docstring of a constant, so that its page would show that of its type. What the
constant means is written in the source, in a comment ``#:`` above it. A registry, which maps names
to objects, has its entries listed.
"""

import sys

from sphinx.pycode import ModuleAnalyzer


def find_comment(full, constant):
    """Return the lines of the comment above a constant, in the module that defines it."""
    package, _, name = full.rpartition(".")
    for path, module in list(sys.modules.items()):
        is_ours = f"{path}.".startswith(f"{package}.") and (module.__file__ or "").endswith(".py")
        if is_ours and getattr(module, name, None) is constant:
            comments = ModuleAnalyzer.for_module(path).find_attr_docs()
            if ("", name) in comments:
                return comments["", name]
    return []


def list_entries(registry):
    """Return a list of the keys of a registry and the names of what they stand for."""
    lines = []
    for key, value in registry.items():
        keys = ", ".join(f'"{part}"' for part in (key if isinstance(key, tuple) else (key,)))
        shown = f"({keys})" if isinstance(key, tuple) else keys
        lines.append(f"- ``{shown}``: `{getattr(value, '__name__', value)}`")
    return lines


def describe_data(app, what, name, obj, options, lines):
    """Replace the docstring of a type by what the source says about the constant."""
    if what != "data" or not name.startswith("sklearn_rankcal."):
        return
    lines[:] = find_comment(name, obj)
    if isinstance(obj, dict):
        lines += ["", *list_entries(obj), ""]


def setup(app):
    """Sphinx's hook."""
    app.connect("autodoc-process-docstring", describe_data, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
