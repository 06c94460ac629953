"""Labels: what goes in comes out again, query by query."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import sklearn_rankcal as public
from sklearn_rankcal.labels._labels import read_relevance  # what rankers read

from .values import (
    GROUP_WORDS,
    digits,
    draw_codes,
    draw_groups,
    draw_numbers,
    rows_of,
    spoiled_groups,
    spoiled_numbers,
)

#: Missing labels and ranks, of documents that nobody judged.
MISSING = (
    "nan", "nan_array", "none", "none_array", "na", "na_float", "null", "masked", "masked_int",
    "decimal_nan",
)  # fmt: skip


def relevance(case):
    """The numbers and the partition come back; a slice of whole queries is read, a cut refused."""
    codes = draw_codes(case)
    y, groups = draw_numbers(case, codes), draw_groups(case, codes)
    outcome = case.attempt(public.relevance_labels, y.value, groups)
    if outcome.error is not None:
        case.expect(not y.sure or y.exact is None, "refuses good labels", outcome.describe())
        return
    labels = outcome.value
    case.expect(y.exact is not None, "accepts what is no number", str(labels["relevance"]))
    held = [Fraction(v) for v in labels["relevance"].tolist()]
    close = all(abs(a - b) <= abs(b) / 2**52 for a, b in zip(held, y.exact, strict=True))
    case.expect(close, "reads other numbers", f"{held} for {y.exact}")
    _same_order(case, held, y.exact, codes)
    case.expect(labels["query"].tolist() == codes, "merges or splits queries",
                f"{labels['query'].tolist()} for {codes}")  # fmt: skip
    sizes = [codes.count(code) for code in codes]
    case.expect(labels["size"].tolist() == sizes, "counts rows wrongly")
    order = case.rng.permutation(len(codes))
    kept = [i for i in order if codes[i] != 0] or order.tolist()
    read, queries = case.call(read_relevance, labels[kept])
    case.expect(read.tolist() == labels["relevance"][kept].tolist(), "reads other labels")
    case.expect(
        [codes[i] for i in kept]
        == [list(dict.fromkeys(codes[i] for i in kept))[k] for k in queries.codes],
        "reads other queries",
    )
    cut = [i for i in order if i != rows_of(codes)[0][0]]
    if codes.count(0) > 1:
        case.refuses(read_relevance, labels[cut], words=("incomplete", "quer"))
    case.refuses(read_relevance, np.concatenate([labels, labels]), words=("several", "repeat"))


def _same_order(case, held, exact, codes):
    """Numbers that differ inside a query still do."""
    for rows in rows_of(codes):
        for i in rows:
            for j in rows:
                case.expect((exact[i] < exact[j]) == (held[i] < held[j]), "ties what differs",
                            f"{exact[i]} and {exact[j]}")  # fmt: skip


def bad_relevance(case):
    """Labels or groups without a meaning."""
    codes = draw_codes(case, least=2)
    n = len(codes)
    if case.chance(0.4):
        case.refuses(public.relevance_labels, [1] * n, spoiled_groups(case, codes),
                     words=GROUP_WORDS)  # fmt: skip
    elif case.chance(0.2):
        outcome = case.attempt(public.relevance_labels, digits(n), codes)
        case.expect(outcome.error is not None, "reads text as numbers")
    else:
        bad, kind = spoiled_numbers(case, n, without=(*MISSING, "na_boolean"))
        words = () if kind in ("short", "long", "empty") else ("y ", "relevance", "label")
        case.refuses(public.relevance_labels, bad, codes, words=words)


def bad_preferences(case):
    """Pairs, weights and judgements without a meaning."""
    codes = [0, 0, 0, 1, 1]
    pairs = [[0, 1], [1, 2], [3, 4]]
    which = case.choose(["pairs", "weight", "judgement", "groups"])
    if which == "pairs":
        bad = case.choose([
            [], [[0, 0]], [[0, 3]], [[0, 5]], [[-1, 0]], [[0.5, 1]], [["0", "1"]], [[0, 1, 2]],
            [0, 1], None, [[None, 1]], [[np.nan, 1]], [[np.inf, 1]], [[0, 2**64]], [[0, 2**63]],
            np.ma.array([[0, 1]], mask=[[True, False]]), [[True, False]], [[0], [1, 2]], "ab",
            [[1j, 0]], {(0, 1)}, 7, np.array([["2020-01-01", "NaT"]], dtype="M8[D]"),
            np.array([[0, 1]], dtype="m8[s]"), [[10**30, 0]],
        ])  # fmt: skip
        case.refuses(public.preference_labels, bad, codes, words=("pair", "row"))
    elif which == "groups":
        bad = spoiled_groups(case, codes)
        if isinstance(bad, list) and len(bad) == len(codes) + 1:  # a row without a preference
            return
        case.refuses(public.preference_labels, pairs, bad)
    else:
        bad, _ = spoiled_numbers(case, 3)
        if which == "judgement" and case.chance(0.5):
            bad = case.choose([
                [0, 1, 2**63], np.array([0, 1, 2**63], dtype=np.uint64), [0.5, 1, 2], "abc",
                [0, 1, 10**30], ["0", "1", "2"],
            ])  # fmt: skip
        elif which == "weight" and case.chance(0.3):
            bad = case.choose([[-1, 0, 1], digits(3), [1e308] * 3])
        words = (which, "pair")
        case.refuses(public.preference_labels, pairs, codes, **{which: bad}, words=words)


def bad_rankings(case):
    """Ranks without a meaning."""
    bad, _ = spoiled_numbers(case, 3, without=(*MISSING, "short", "long"))
    if case.chance(0.3):
        bad = case.choose([[0, 1, 2], [-1, 2, 3], digits(3), [[1, 2], [3, 0]]])
    case.refuses(public.labels.ranking_labels, bad, [0, 0, 0], words=("rank", "n_labels", "shape"))


def bad_helpers(case):
    """Orders, ranks and sizes without a meaning."""
    function = case.choose([public.order_to_ranks, public.ranks_to_order, public.sizes_to_groups])
    if case.chance(0.5):
        bad, _ = spoiled_numbers(case, 3, without=("short", "long", "empty"))
    else:
        bad = case.choose([[0, 2], [1.5, 2.5], [-1, 0], [[1, 2], [0, 1]], digits(2), [0, 1, 1],
                           np.array([2**63 + 1, 2], dtype=np.uint64), [1e30, 1], [10**12, 10**12],
                           [2**62, 2**62], np.array([101, 205, 300]) * 10**6, "12", None, 3,
                           [0.0, np.inf], [True, False, True]])  # fmt: skip
    case.refuses(function, bad)
