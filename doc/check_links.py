"""Check the links of the built site: ``python doc/check_links.py doc/_build/html``.

Every link to a page of the site has to find the page and the place in it, and no page may load a
script, a style or a picture from elsewhere, so that the site works without a network. Links to
other sites are not followed.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The places, the links and the loaded files of one page."""

    def __init__(self, path):
        super().__init__()
        self.places, self.links, self.loads = set(), set(), set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        """Note what one tag defines, links to or loads."""
        attributes = dict(attrs)
        self.places |= {attributes.get("id"), attributes.get("name")}
        if tag == "a":
            self.links.add(attributes.get("href"))
        elif tag == "link" and attributes.get("rel") in ("stylesheet", "preload", "icon"):
            self.loads.add(attributes.get("href"))
        else:
            self.loads.add(attributes.get("src"))


def find_errors(root):
    """Return a line for each link of the site that leads nowhere, and each file from elsewhere."""
    paths = (path for path in root.rglob("*.html") if "_static" not in path.parts)
    pages = {path.resolve(): Page(path) for path in paths}
    errors = []
    for path, page in pages.items():
        for address in (page.links | page.loads) - {None}:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                if address in page.loads and parts.scheme != "data":
                    errors.append(f"{path.relative_to(root.resolve())} loads {address}")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            places = pages[target].places if target in pages else {unquote(parts.fragment)}
            if not target.exists() or (parts.fragment and unquote(parts.fragment) not in places):
                errors.append(f"{path.relative_to(root.resolve())} links to {address}")
    return len(pages), errors


if __name__ == "__main__":
    n_pages, errors = find_errors(Path(sys.argv[1]))
    print(*sorted(errors), f"{n_pages} pages, {len(errors)} errors", sep="\n")
    sys.exit(1 if errors or not n_pages else 0)
