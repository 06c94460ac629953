"""Reduce inventories of other projects' sites to the classes and functions that we link to.

An inventory (``objects.inv``) tells on which page of a site an object is documented. The reduced
ones are part of the repository, so that a build needs no network. Run this once a year or so::

    python doc/inventories/reduce.py sklearn=objects.inv

Each argument is the name of a package and the inventory of its site: the file of that name in the
root of the site, or in Debian's package of its documentation.
"""

import sys
import zlib
from pathlib import Path

from sphinx.util.inventory import InventoryFile

KINDS = ("py:class", "py:exception", "py:function")


def reduce_inventory(package, content):
    """Return the inventory of one package, without methods, titles and glossaries."""
    inventory = InventoryFile.loads(content, uri="")
    lines = [
        f"{name} {kind} 1 {item.uri.replace('#' + name, '#$')} -\n"
        for kind in KINDS
        for name, item in sorted(inventory.data.get(kind, {}).items())
        if name.split(".")[0] == package
    ]
    header = f"# Sphinx inventory version 2\n# Project: {package}\n# Version: \n"
    header += "# The remainder of this file is compressed using zlib.\n"
    return header.encode() + zlib.compress("".join(lines).encode(), 9)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        package, _, source = argument.partition("=")
        reduced = reduce_inventory(package, Path(source).read_bytes())
        Path(__file__).with_name(f"{package}.inv").write_bytes(reduced)
