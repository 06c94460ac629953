"""Say what is missing before a version can be published: python .build/release.py [TAG]

The workflow wheels.yml refuses to publish while anything is missing. All that only the owner of the
repository knows stands in setup.cfg. The site, the README on a package index, links to the source
and citations take it from there or from CITATION.cff.
"""

import configparser
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
ADDRESSES = {
    "Source": "the repository: links of the README, links to the source on the site",
    "Issues": "where to report problems, and how to reach the maintainers",
    "Documentation": "the site: links of the README, and of estimators in a notebook",
}


def missing(tag: str | None = None, root: Path = ROOT) -> list[str]:
    """Return a line for each thing that a release of the tree at `root` still needs."""
    setup = configparser.ConfigParser()
    setup.read(root / "setup.cfg", encoding="utf-8")
    metadata = setup["metadata"]
    urls = dict(
        re.findall(r"^\s*(\w+)\s*=\s*(https?://\S+)$", metadata.get("project_urls", ""), re.M)
    )
    found = [
        f"setup.cfg, project_urls: {name} ({use})"
        for name, use in ADDRESSES.items()
        if name not in urls
    ]
    if not metadata.get("maintainer"):
        found.append("setup.cfg: maintainer (who answers for the package)")
    text = (root / "sklearn_rankcal" / "_version.py").read_text(encoding="utf-8")
    version = re.search(r'__version__ = "(.+)"', text)[1]
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        found.append(f"sklearn_rankcal/_version.py: {version} is not a version to be released")
    if tag is not None and tag != f"v{version}":
        found.append(f"the tag is {tag}, but sklearn_rankcal/_version.py says {version}")
    recipe = (root / ".conda" / "recipe.yaml").read_text(encoding="utf-8")
    if f"  version: {version}\n" not in recipe:
        found.append(f".conda/recipe.yaml: the version {version}")
    citation = (root / "CITATION.cff").read_text(encoding="utf-8")
    if not re.search("^repository-code:", citation, re.M):
        found.append("CITATION.cff: repository-code (the address of the repository)")
    changes = (root / "doc" / "changes" / "index.rst").read_text(encoding="utf-8")
    if not re.search(rf"^{re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", changes, re.M):
        found.append(f"doc/changes/index.rst: a section '{version} (YYYY-MM-DD)'")
    return found


if __name__ == "__main__":
    lines = missing(*sys.argv[1:2])
    print("\n".join(["Missing before a release:", *lines]) if lines else "Nothing is missing.")
    sys.exit(bool(lines))
