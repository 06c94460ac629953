"""Sphinx configuration. How to build the site is in contributing.rst."""

import configparser
import os
import re
import sys
from pathlib import Path

from docutils import nodes
from sphinx_gallery.sorting import ExplicitOrder

from sklearn_rankcal import __version__

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

from class_members import MEMBERS

project = "sklearn_rankcal"
author = "The sklearn_rankcal developers"
project_copyright = "2026, the sklearn_rankcal developers"
release = version = __version__
# of setup.cfg; what needs an address appears when the owner has filled it in
setup_cfg = configparser.ConfigParser()
setup_cfg.read(Path(__file__).parents[1] / "setup.cfg", encoding="utf-8")
addresses = dict(re.findall(r"^(\w+) = (\S+)", setup_cfg["metadata"].get("project_urls", ""), re.M))
# the newest release, if its documentation is in the folder stable/ of this site (docs.yml)
html_context = {"stable": os.environ.get("STABLE_VERSION", "")}

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    # ours, in _extensions
    "class_members",
    "code_links",
    "data_docs",
    "doi_links",
    "guide_links",
    "gallery_alt",
    "mathml",
    "source_links",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "auto_examples/**.ipynb"]
default_role = "literal"  # code_links turns names of documented objects into links
smartquotes = False  # quotes mostly stand around strings of Python
nitpicky = True  # with -W, a reference to nothing stops the build
nitpick_ignore = [("py:class", "sklearn.utils.metadata_routing.MetadataRequest")]
# docstrings inherited from scikit-learn point into its own guide and glossary
suppress_warnings = ["ref.ref", "ref.term"]

autosummary_generate = True
autosummary_context = {"class_members": MEMBERS}
# Aggregate is a class: some file systems do not tell its page from that of the function
autosummary_filename_map = {"sklearn_rankcal.aggregate": "sklearn_rankcal.aggregate-function"}
autodoc_typehints = "none"  # the docstrings tell the types
python_maximum_signature_line_length = 80
numpydoc_show_class_members = False
html_math_renderer = "mathml"
copybutton_exclude = ".linenos, .gp, .go"

# the pages of other projects' objects; the files are part of the repository, see reduce.py there
intersphinx_mapping = {
    package: (site, f"inventories/{package}.inv")
    for package, site in {
        "sklearn": "https://scikit-learn.org/stable/",
        "numpy": "https://numpy.org/doc/stable/",
        "scipy": "https://docs.scipy.org/doc/scipy/",
        "pandas": "https://pandas.pydata.org/docs/",
    }.items()
}

# guide pages whose names without a module, such as Borda, are those of this one
code_links_modules = {
    "decoders": "sklearn_rankcal.decoders",
    "guide/votes": "sklearn_rankcal.aggregation",
    "losses": "sklearn_rankcal.losses",
}

html_title = "sklearn_rankcal"
html_theme = "pydata_sphinx_theme"
html_favicon = "_static/favicon.svg"
html_theme_options = {
    "logo": {
        "image_light": "_static/favicon.svg",
        "image_dark": "_static/favicon.svg",
        "text": "sklearn_rankcal",
    },
    "navbar_start": ["navbar-logo", "version"],
    "footer_start": ["copyright", "version"],
    "footer_end": ["sphinx-version"],
    **({"github_url": addresses["Source"]} if "Source" in addresses else {}),
    "header_links_before_dropdown": 4,  # the rest is below More
    "show_prev_next": False,  # but in the user guide, see show_next_page
    "show_toc_level": 2,  # the questions of the FAQ, the methods of a class
    "collapse_navigation": True,  # on a page of the API, only the names of its own section
}
GUIDE = (
    "user_guide", "clicks", "decoders", "losses", "scikit_learn", "serving", "surrogate_theory",
    "theory", "works_with",
)  # fmt: skip
# pages that are no section of the user guide have no sidebar
html_sidebars = {
    "*": [],
    "changes/*": [],
    "auto_examples/index": [],  # the page is the list
    **{page: ["sidebar-nav-bs"] for page in GUIDE},
}
html_static_path = ["_static"]
html_css_files = ["reference.css"]
html_copy_source = False
toc_object_entries_show_parents = "hide"  # fit, and not CalibratedRanker.fit

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": "plot_",
    "ignore_pattern": "quickstart|benchmarks",
    # by use
    "within_subsection_order": ExplicitOrder(
        [
            "plot_search_results.py",
            "plot_pipeline.py",
            "plot_dask.py",
            "plot_recommendation.py",
            "plot_fusion.py",
            "plot_rules.py",
            "plot_exposure.py",
            "plot_cutoff.py",
            "plot_comparisons.py",
            "plot_leaderboard.py",
            "plot_tiers.py",
            "plot_next_comparisons.py",
            "plot_surveys.py",
            "plot_choices.py",
            "plot_model_judgements.py",
            "plot_label_ranking.py",
            "plot_star_wars.py",
            "plot_preference_graph.py",
            "plot_cycles.py",
            "plot_cost_sensitive.py",
            "*",
            # theory
            "plot_decoders.py",
            "plot_learning_curve.py",
            "plot_regret.py",
            "plot_theorem_3_3.py",
            "plot_listwise_normalization.py",
            "plot_surrogate_conditions.py",
        ]
    ),
    "nested_sections": False,
    "remove_config_comments": True,
    "parallel": True,  # as many examples at a time as the option -j says
    "write_computation_times": False,  # its page loads scripts from elsewhere
    # examples are linked to the API, and the API to the examples
    "doc_module": ("sklearn_rankcal",),
    "reference_url": {"sklearn_rankcal": None},
    "backreferences_dir": "generated/backreferences",
}


def unlink_cutoffs(app, doctree):
    """NDCG@10 looks like an e-mail address to docutils."""
    for node in list(doctree.findall(nodes.reference)):
        if node.get("refuri", "").startswith("mailto:"):
            node.replace_self(nodes.Text(node.astext()))


def show_next_page(app, pagename, templatename, context, doctree):
    """Link each chapter of the user guide to the next and the previous one: they have an order."""
    if pagename.startswith("guide/") or pagename in GUIDE:
        context["theme_show_prev_next"] = True


def keep_intervals_together(app, doctree):
    """Write [-.0025, +.0011] with a space that does not break, also in narrow columns of tables."""
    verbatim = nodes.FixedTextElement | nodes.literal | nodes.math
    for node in list(doctree.findall(nodes.Text)):
        if not isinstance(node.parent, verbatim):
            text = re.sub(r"(?<=\[)([-+\d.]+), (?=[-+\d.]+\])", "\\1,\N{NO-BREAK SPACE}", node)
            text = re.sub(r"(?<=\d) (?=%)", "\N{NO-BREAK SPACE}", text)
            node.parent.replace(node, nodes.Text(text))


def setup(app):
    """Sphinx's hook."""
    app.connect("doctree-read", unlink_cutoffs)
    app.connect("html-page-context", show_next_page)
    app.connect("doctree-read", keep_intervals_together)
