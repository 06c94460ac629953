"""The address of the documentation, to which the HTML of an estimator links."""

from __future__ import annotations

import sys
from functools import cache
from importlib import metadata


@cache
def documentation_site() -> str:
    """Return the address from ``project_urls`` of setup.cfg, or "" while there is none."""
    try:
        urls = metadata.metadata("sklearn_rankcal").get_all("Project-URL", [])
    except metadata.PackageNotFoundError:  # a source tree that is not installed
        return ""
    found = (url.partition(", ") for url in urls)
    return next((site.rstrip("/") for name, _, site in found if name == "Documentation"), "")


class SiteLink:
    """Link the HTML of an estimator to its page of the site, if there is an address."""

    @property
    def _doc_link_module(self) -> str:
        return "sklearn_rankcal" if documentation_site() else ""

    @property
    def _doc_link_template(self) -> str:
        kind, package = type(self), sys.modules["sklearn_rankcal"]
        module = kind.__module__.rpartition(".")[0]
        if getattr(package, kind.__name__, None) is kind:
            module = "sklearn_rankcal"
        return f"{documentation_site()}/generated/{module}.{{estimator_name}}.html"
