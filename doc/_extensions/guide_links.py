"""The page of an object in the reference begins with links to the guide pages that describe it.

A guide page describes an object if it names it, or one of its methods, in backticks. Pages of the
user guide come before all others, and those that name it most often come first. No docstring has to
repeat where the guide is, and a new page of the guide is found by itself.
"""

from collections import Counter

from code_links import CODE, UNLINKED, is_inside
from docutils import nodes
from sphinx import addnodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

N_PAGES = 4
# the reference itself, lists of all pages, and pages that are no guide to anything
_NO_GUIDE = ("generated/", "api", "auto_examples/", "changes/", "index", "benchmarks")
_NO_GUIDE += ("user_guide", "contributing", "about", "install")


def count_mentions(app, env):
    """Count, for each page of the reference, how often each page of the guide names its object."""
    names, found = app.code_links_names, {}
    for page in sorted(env.found_docs):
        if page.startswith(_NO_GUIDE):
            continue
        module = app.config.code_links_modules.get(page)
        for literal in env.get_doctree(page).findall(nodes.literal):
            match = CODE.fullmatch(literal.astext())
            if match is None or is_inside(literal, UNLINKED):
                continue
            if (full := names.find(match["name"], [], module)) is not None:
                found.setdefault(names.objects[full].docname, Counter())[page] += 1
    app.guide_mentions = found


class GuideLinks(SphinxPostTransform):
    """Insert the links after the first paragraph about the object of a page."""

    default_priority = 4

    def run(self):
        """Link the pages of the guide, if there are any."""
        mentions = self.app.guide_mentions.get(self.env.docname)
        if not mentions or not self.env.docname.startswith("generated/"):
            return
        links = nodes.paragraph("", "In the guide: ", classes=["guide-links"])
        pages = sorted(mentions, key=lambda page: (not page.startswith("guide/"), -mentions[page]))
        for k, page in enumerate(pages[:N_PAGES]):
            title = nodes.Text(self.env.titles[page].astext())
            links += [nodes.Text(", ")] if k else []
            links += make_refnode(self.app.builder, self.env.docname, page, "", [title])
        content = next(self.document.findall(addnodes.desc_content))
        first = next((k for k, node in enumerate(content) if isinstance(node, nodes.paragraph)), -1)
        content.insert(first + 1, links)


def setup(app):
    """Sphinx's hook."""
    app.setup_extension("code_links")
    app.add_post_transform(GuideLinks)
    app.connect("env-check-consistency", count_mentions, priority=600)  # after the names
    return {"parallel_read_safe": True, "parallel_write_safe": True}
