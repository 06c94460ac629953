"""Click logs: what was shown and clicked comes out again, and structures are their formulas."""

from __future__ import annotations

import math

import numpy as np

from . import public
from .values import (
    GROUP_WORDS,
    contain,
    draw_codes,
    draw_groups,
    rows_of,
    spoiled_groups,
    spoiled_numbers,
)

_A, _C = public.aggregation, public.clicks
COVERS = (
    "click_labels", "read_clicks", "Clicks", "CascadeSatisfaction", "InversePropensity",
    "ClickThroughRate",
)  # fmt: skip


def logs(case):
    """A log in any form comes back, and clicks are counted as loops count them."""
    codes = draw_codes(case)
    shown, clicked = [], []
    for _ in range(case.whole(1, 2 * case.size)):
        rows = case.rng.permutation(case.choose(rows_of(codes))).tolist()
        shown.append(rows[: case.whole(1, len(rows))])
        clicked.append([k for k in range(1, len(shown[-1]) + 1) if case.chance(0.4)])
    n = len(shown)
    counts, options = [1] * n, {}
    if case.chance(0.5):
        given = contain(case, case.rng.integers(0, 4, n).tolist(), plain=True)
        counts, options = [float(c) for c in given.exact], {"count": given.value}
    form = case.choose(["lists", "arrays", "marks", "flat"])
    first, second = shown, clicked
    if form == "arrays":
        first = [np.array(rows, dtype=np.int32) for rows in shown]
        second = [None if not marks else np.array(marks) for marks in clicked]
    elif form == "marks":
        second = [[k in marks for k in range(1, len(rows) + 1)]
                  for rows, marks in zip(shown, clicked, strict=True)]  # fmt: skip
    elif form == "flat":
        first = np.array([row for rows in shown for row in rows])
        second = np.array([k in marks for rows, marks in zip(shown, clicked, strict=True)
                           for k in range(1, len(rows) + 1)])  # fmt: skip
        options["sessions"] = [f"s{s}" for s, rows in enumerate(shown) for _ in rows]
    labels = case.call(_C.click_labels, first, second, draw_groups(case, codes), **options)
    case.expect(labels["query"].tolist() == codes, "merges or splits queries")
    order = case.rng.permutation(len(codes))
    new = np.argsort(order)
    read = case.call(_C.read_clicks, labels[order])
    found = sorted(
        (read.row[a:b].tolist(), (np.flatnonzero(read.clicked[a:b]) + 1).tolist())
        for a, b in zip(read.offsets[:-1], read.offsets[1:], strict=True)
    )
    wanted = sorted((new[rows].tolist(), m) for rows, m in zip(shown, clicked, strict=True))
    case.expect(found == wanted, "other sessions", f"{found} for {wanted}")
    _structures(case, read, list(zip(shown, clicked, counts, strict=True)), order)


def _structures(case, clicks, sessions, order):
    """Scores of rows in their new order are those of loops over sessions."""
    theta = np.append(1.0, case.rng.uniform(0.1, 1, max(len(rows) for rows, _, _ in sessions)))
    for structure, weights, down_to_click in (
        (_A.ClickThroughRate(), np.ones(len(theta)), False),
        (_A.InversePropensity(theta.tolist()), 1 / theta, False),
        (_A.CascadeSatisfaction(), np.ones(len(theta)), True),
    ):
        total, seen = np.zeros(len(order)), np.zeros(len(order))
        for rows, marks, count in sessions:
            stop = max(marks) if marks and down_to_click else len(rows)
            for k, row in enumerate(rows, start=1):
                seen[row] += count * (k <= stop)
                total[row] += count * (k in marks) * weights[k - 1]
        wanted = [total[i] / seen[i] if seen[i] else math.nan for i in order]
        scores = case.call(structure.scores, clicks)
        same = np.allclose(scores, wanted, rtol=1e-9, equal_nan=True)
        case.expect(same, "another score", f"{scores} for {wanted}")


def bad_logs(case):
    """Logs without a meaning."""
    codes, shown, clicked = [0, 0, 0, 1, 1], [[0, 2], [1], [4, 3]], [[1], None, [2]]
    which = case.choose(["groups", "count", "shown", "clicked", "row", "flat"])
    if which == "groups":
        bad = spoiled_groups(case, codes)
        if isinstance(bad, list) and len(bad) == len(codes) + 1:  # a row that was never shown
            return
        case.refuses(_C.click_labels, shown, clicked, bad, words=(*GROUP_WORDS, "queries", "row"))
    elif which == "count":
        bad, _ = spoiled_numbers(case, 3)
        if case.chance(0.3):
            bad = case.choose([[-1, 0, 1], [1e308] * 3, [1, 1], 2, "111"])
        case.refuses(_C.click_labels, shown, clicked, codes, count=bad, words=("count",))
    elif which == "shown":
        bad = case.choose([
            None, 3, "ab", [], [[]], [0, 1], {"a": [0]}, [[0, 1], None, [3]], [["0"], ["1"], ["2"]],
            [[0, 0], [1], [3]], [[0, 3], [1], [4]], [[0, 5], [1], [4]], [[0, -1], [1], [4]],
            [[0.5, 1], [1], [4]], [[0, [1]], [1], [4]], [[True, False], [1], [3]], np.zeros((3, 0)),
            np.zeros((2, 2, 2), int), np.array(["a"]), [[0, 10**30], [1], [3]],
        ])  # fmt: skip
        case.refuses(_C.click_labels, bad, clicked, codes, words=("shown", "ession"))
    elif which == "clicked":
        bad = case.choose([
            None, 3, "ab", [], [None], [[1], None], [[3], None, None], [[0], None, None],
            [[1, 1], None, None], [[1.5], None, None], [np.nan, 1, 1], ["1", "1", "1"],
            [[True], [True], [False]], np.ones((3, 2), bool), [[-1], None, None], {1: 1},
            [[[1]], None, None], [[10**30], None, None],
        ])  # fmt: skip
        case.refuses(_C.click_labels, shown, bad, codes, words=("clicked", "ession"))
    elif which == "row":
        labels = case.call(_C.click_labels, shown, clicked, codes)
        case.refuses(_C.read_clicks, labels[:-1], words=("incomplete",))
        case.refuses(_C.read_clicks, np.concatenate([labels, labels]), words=("several", "repeat"))
    else:
        bad, _ = spoiled_numbers(case, 3)
        name = case.choose(["shown", "clicked"])
        args = {"shown": [0, 1, 2], "clicked": [0, 1, 0], name: bad}
        if name == "clicked" and case.chance(0.3):
            args["clicked"] = [0, 1, 2]
        case.refuses(_C.click_labels, groups=codes, sessions=[7, 8, 7], **args)
