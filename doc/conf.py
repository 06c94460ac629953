"""Sphinx configuration: ``pip install ".[doc]" && sphinx-build -W doc doc/_build``."""

from docutils import nodes

from sklearn_rankcal import __version__

project = "sklearn_rankcal"
author = "The sklearn_rankcal developers"
project_copyright = "2026, the sklearn_rankcal developers"
release = version = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
autosummary_generate = True
numpydoc_show_class_members = False
default_role = "literal"
suppress_warnings = ["ref.ref"]  # docstrings inherited from scikit-learn point into its own guide
html_theme = "pydata_sphinx_theme"
html_theme_options = {"show_prev_next": False}
exclude_patterns = ["_build", "auto_examples/**.ipynb"]
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": "plot_",
    "ignore_pattern": "quickstart|benchmarks",
    "nested_sections": False,
    "remove_config_comments": True,
}
html_title = "sklearn_rankcal"
html_sidebars = {"**": []}


def unlink_cutoffs(app, doctree):
    """NDCG@10 looks like an e-mail address to docutils."""
    for node in list(doctree.findall(nodes.reference)):
        if node.get("refuri", "").startswith("mailto:"):
            node.replace_self(nodes.Text(node.astext()))


def skip_methods_of_str(app, what, name, obj, skip, options):
    """A space is a string, but its page need not list the methods of all strings."""
    return True if name in dir(str) and getattr(str, name) == obj else None


def setup(app):
    """Sphinx's hook."""
    app.connect("doctree-read", unlink_cutoffs)
    app.connect("autodoc-skip-member", skip_methods_of_str)
