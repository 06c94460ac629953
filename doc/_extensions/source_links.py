"""Correct the links from the pages of the source code back to the documentation.

If objects of one file are public in several modules, as those of ``labels/_preferences.py`` are,
`sphinx.ext.viewcode` takes one of the modules for all of them, and its links lead to places that do
not exist. The page that such a link leads to is right, and has the full name of the object.
"""

import re

_LINK = re.compile(r'(generated/([\w.]+)\.html)#([\w.]+)"')


def correct_link(match):
    """Return the link with the place that the page has."""
    page, full, place = match.groups()
    short = full.rpartition(".")[2]
    member = re.search(rf"\.{short}(\.\w+)*$", place)
    return f'{page}#{full}{member[0].removeprefix("." + short)}"' if member else match[0]


def correct_page(app, pagename, templatename, context, doctree):
    """Correct the links of one page of source code."""
    if pagename.startswith("_modules/"):
        context["body"] = _LINK.sub(correct_link, context["body"])


def setup(app):
    """Sphinx's hook."""
    app.connect("html-page-context", correct_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
