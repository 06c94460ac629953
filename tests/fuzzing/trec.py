"""Runs and qrels: tables that hold the rankings and labels that came in."""

from __future__ import annotations

import numpy as np

from . import public
from .values import GROUP_WORDS, draw_codes, draw_groups, spoiled_groups, spoiled_numbers

_M = public.metrics
COVERS = ("to_run", "to_qrels")


def _ids(case, codes):
    """Document ids, different inside each query, and their texts."""
    seen = {}
    places = []
    for code in codes:
        places.append(seen.setdefault(code, 0))
        seen[code] += 1
    if case.chance(0.5):  # no id in two queries
        places = list(range(len(codes)))
    make = case.choose([lambda k: f"d{k}", lambda k: k, lambda k: ("d", k), lambda k: -k])
    ids = [make(place) for place in places]
    return ids, [str(one) for one in ids]


def tables(case):
    """A run and qrels, by loops over rows."""
    codes = draw_codes(case)
    n = len(codes)
    groups = draw_groups(case, codes)
    if len({str(one) for one in groups}) < len(set(codes)):  # such as 0 and "0"
        case.refuses(_M.to_run, np.zeros(n), groups=groups, words=GROUP_WORDS)
        return
    ids, texts = _ids(case, codes)
    y = case.rng.integers(0, 4, n)
    scores = case.choose([case.rng.normal(size=n), case.rng.integers(0, 3, n) / 2])
    made = case.attempt(_M.to_run, scores, groups=groups, document_ids=ids)
    if made.error is not None:
        spaces = any(text.split() != [text] for text in [*texts, *map(str, groups)])
        case.expect(
            spaces and "white space" in str(made.error), "refuses good ids", made.describe()
        )
        case.refuses(_M.to_qrels, y, groups=groups, document_ids=ids)
        return
    run = made.value
    qrels = case.call(_M.to_qrels, y, groups=groups, document_ids=ids)
    rows = sorted(range(n), key=lambda i: texts[i], reverse=True)
    rows = sorted(rows, key=lambda i: (codes[i], -scores[i]))
    case.expect(run["doc_id"].tolist() == [texts[i] for i in rows], "sorts other documents")
    case.expect(run["score"].tolist() == [scores[i] for i in rows], "has other scores")
    rows = sorted(range(n), key=lambda i: codes[i])
    case.expect(qrels["doc_id"].tolist() == [texts[i] for i in rows], "has other documents")
    case.expect(qrels["relevance"].tolist() == y[rows].tolist(), "has other relevance")
    case.expect(run["query_id"].tolist() == qrels["query_id"].tolist(), "has other queries")
    # nunique of pandas merges text with lone surrogates
    case.expect(len(set(run["query_id"])) == len(set(codes)), "merges queries")
    for text in [*texts, *run["query_id"]]:
        case.expect(text.split() == [text], "accepts ids with white space", repr(text))


def bad_tables(case):
    """Scores, labels and groups that are no table."""
    codes = draw_codes(case)
    n = len(codes)
    function, name = case.choose([(_M.to_run, "y_score"), (_M.to_qrels, "y")])
    if case.chance(0.5):
        bad, _ = spoiled_numbers(case, n)
        case.refuses(function, bad, groups=codes, words=(name,))
    else:
        bad = spoiled_groups(case, codes)
        case.refuses(function, np.zeros(n), groups=bad, words=(*GROUP_WORDS, name))
