"""Runs and qrels: tables that hold the rankings and labels that came in."""

from __future__ import annotations

import numpy as np

from . import public
from .values import GROUP_WORDS, draw_codes, draw_groups, spoiled_groups, spoiled_numbers

_M = public.metrics
COVERS = ("to_run", "to_qrels")
COVERS_RUNS = ("evaluate_run", "runs_table", "RunEvaluation")


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


def _listed(case, queries, documents, draw):
    """A dict of dicts, with the ids in any order, and sometimes without a query."""
    made = {}
    for query in case.rng.permutation(queries):
        if made and case.chance(0.2):
            continue
        n = case.whole(1, len(documents))
        found = case.rng.permutation(documents)[:n].tolist()
        made[query.item()] = dict(zip(found, draw(n), strict=True))
    return made


def _given(case, listed, names):
    """The same table as a dict, a data frame or a file."""
    rows = [(q, d, value) for q, found in listed.items() for d, value in found.items()]
    kind = case.whole(0, 2)
    if kind == 0:
        return listed
    if kind == 1:
        import pandas as pd

        case.rng.shuffle(rows)
        return pd.DataFrame(rows, columns=["query_id", "doc_id", names[0]])
    path = case.folder / names[0]
    path.write_text("".join(names[1].format(q, d, value) for q, d, value in rows))
    return path


def runs(case):
    """Runs against qrels: what does not change the order, the form or the ids changes no value."""
    queries, documents = np.arange(case.whole(1, 4)), np.arange(case.whole(1, 12))
    scales = [
        lambda n: case.rng.normal(size=n).tolist(),
        lambda n: (case.rng.integers(-2, 3, n) / 2).tolist(),
    ]
    qrels = _listed(case, queries, documents, lambda n: case.rng.integers(-1, 3, n).tolist())
    first = _listed(case, queries, documents, case.choose(scales))
    second = _listed(case, queries, documents, case.choose(scales))
    if not set(first) & set(qrels) or not set(second) & set(qrels):
        case.refuses(_M.compare_rankings, qrels, {"a": first, "b": second}, words=("qrels",))
        return
    options = {
        "ties": case.choose(["average", "trec_eval", "worst", "best"]),
        "unjudged": case.choose(["irrelevant", "skip"]),
    }
    named = {"metrics": ["ndcg@3", "map", "mrr", "precision@2", "recall@3", "err"]}
    plain = case.call(_M.evaluate_run, qrels, first, **options, **named)
    forms = ("relevance", "{0} 0 {1} {2}\n"), ("score", "{0} Q0 {1} 1 {2!r} x\n")
    again = case.call(
        _M.evaluate_run,
        _given(case, qrels, forms[0]),
        _given(
            case, {q: {d: 2 * s for d, s in found.items()} for q, found in first.items()}, forms[1]
        ),
        **options,
        **named,
    )
    values = np.array([list(plain.values()), list(again.values())])
    case.expect(((values >= 0) & (values <= 1 + 1e-12)).all(), "is beyond 0 and 1", repr(values))
    case.expect(np.allclose(*values, rtol=1e-12), "depends on the form", repr(values))
    case.expect(plain.missing == [str(q) for q in qrels if q not in first], "misses others")
    if options["ties"] == "worst":
        best = case.call(_M.evaluate_run, qrels, first, **{**options, **named, "ties": "best"})
        case.expect(all(best[k] >= plain[k] - 1e-12 for k in plain), "worst is better than best")
    table = case.call(
        _M.compare_rankings,
        qrels,
        {"a": first, "b": second},
        n_resamples=10,
        metric=named["metrics"],
        **options,
    )
    case.expect(np.allclose(table["first_mean"], values[0], rtol=1e-12), "compares other means")
    rows = case.call(_M.runs_table, {"a": first, "b": second})
    pairs = {(str(q), str(d)) for run in (first, second) for q, found in run.items() for d in found}
    case.expect(set(zip(rows["query_id"], rows["doc_id"], strict=True)) == pairs, "has other rows")
    case.expect(rows["score_a"].notna().sum() == sum(map(len, first.values())), "loses scores")
