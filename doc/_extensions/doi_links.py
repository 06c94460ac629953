"""References to papers end with a link to the paper, by its digital object identifier (DOI).

Docstrings and pages name a paper by authors, year and title. The identifiers are only here, so that
a paper that many docstrings cite has its identifier once. A paragraph is a reference if it has the
title of one of these papers and a year in parentheses.
"""

import re

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

DOIS = {
    "A scalable estimate of the out-of-sample prediction error": "10.1111/rssb.12374",
    "Calibration and regret bounds for order-preserving surrogate losses": (
        "10.1007/s10994-013-5382-3"
    ),
    "Decision-making with the AHP": "10.1016/S0377-2217(02)00227-8",
    "Learning to rank: from pairwise approach to listwise approach": "10.1145/1273496.1273513",
    "MM algorithms for generalized Bradley-Terry models": "10.1214/aos/1079120141",
    "Nonparametric standard errors and confidence intervals": "10.2307/3314608",
    "Optimizing search engines using clickthrough data": "10.1145/775047.775067",
    "Position bias estimation for unbiased learning to rank": "10.1145/3159652.3159732",
    "Projected Newton methods for optimization problems with simple constraints": "10.1137/0320018",
    "Rank analysis of incomplete block designs": "10.1093/biomet/39.3-4.324",
    "Stacked regressions": "10.1007/BF00117832",
    "Statistical ranking and combinatorial Hodge theory": "10.1007/s10107-010-0419-x",
    "Super learner": "10.2202/1544-6115.1309",
    "The analysis of permutations": "10.2307/2346567",
    "The asymptotics of ranking algorithms": "10.1214/13-AOS1142",
}
_YEAR = re.compile(r"\((1[89]|20)\d\d\)")


def find_doi(text):
    """Return the identifier of the one paper that a text cites, or None."""
    plain = " ".join(text.split()).lower()
    found = [doi for title, doi in DOIS.items() if title.lower() in plain]
    return found[0] if len(found) == 1 and _YEAR.search(plain) else None


class DoiLinks(SphinxPostTransform):
    """Append a link to each paragraph that is a reference to a paper."""

    default_priority = 5

    def run(self):
        """Link the references of a page."""
        for paragraph in self.document.findall(nodes.paragraph):
            if (doi := find_doi(paragraph.astext())) is not None:
                link = nodes.reference("", f"doi:{doi}", internal=False)
                link["refuri"] = f"https://doi.org/{doi}"
                paragraph += [nodes.Text(" "), link]


def setup(app):
    """Sphinx's hook."""
    app.add_post_transform(DoiLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
