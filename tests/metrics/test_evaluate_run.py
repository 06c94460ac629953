"""Runs against qrels: loops over documents, trec_eval, ir_measures, and what users guess."""

import gzip
import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from sklearn_rankcal import metrics as m
from sklearn_rankcal.losses import MEASURES
from sklearn_rankcal.metrics import compare_rankings, evaluate_run, runs_table

METRICS = ["ndcg@5", "ndcg", "dcg@3", "map", "map@3", "mrr", "mrr@2", "precision@4", "recall@6",
           "err@5", "eru"]  # fmt: skip


def by_loops(judged, listed, name):
    """The value of a metric for documents in an order, given the relevance of judged ones."""
    base, _, cutoff = name.partition("@")
    k = int(cutoff) if cutoff else max(len(listed), len(judged))
    grades = [max(judged.get(one, 0), 0) for one in listed][:k]
    best = sorted((max(one, 0) for one in judged.values()), reverse=True)[:k]
    n_relevant = sum(one >= 1 for one in judged.values())

    def gain(grades):
        return sum((2**one - 1) / np.log2(place + 2) for place, one in enumerate(grades))

    hits = [place for place, one in enumerate(grades) if one >= 1]
    if base == "err":
        value, left = 0.0, 1.0
        for place, one in enumerate(grades):
            stop = (2**one - 1) / 2 ** max(TOP[0], 0)
            value, left = value + left * stop / (place + 1), left * (1 - stop)
        return value
    if base == "eru":
        return sum(one * 2 ** (-place / 4) for place, one in enumerate(grades))
    if base == "dcg":
        return gain(grades)
    if base == "ndcg":
        return gain(grades) / gain(best) if any(best) else 0.0
    if base == "precision":
        return len(hits) / k
    if n_relevant == 0:
        return 0.0
    if base == "recall":
        return len(hits) / n_relevant
    if base == "mrr":
        return 1 / (hits[0] + 1) if hits else 0.0
    return sum((number + 1) / (place + 1) for number, place in enumerate(hits)) / n_relevant


TOP = [0]  # the largest grade of the qrels, which ERR takes


def a_case(seed, ties):
    """Qrels and a run with unjudged documents, missing and unknown queries, and negative grades."""
    rng = np.random.default_rng(seed)
    n_documents = int(rng.integers(2, 9))

    def some():
        return rng.choice(n_documents, rng.integers(1, n_documents + 1), replace=False)

    qrels = {f"q{q}": {f"d{d}": int(rng.integers(-1, 4)) for d in some()} for q in range(4)}
    run = {
        f"q{q}": {f"d{d}": float(rng.integers(0, 3) if ties else rng.normal()) for d in some()}
        for q in range(1, 6)
    }
    TOP[0] = max(grade for judged in qrels.values() for grade in judged.values())
    return qrels, run


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("unjudged", ["irrelevant", "skip"])
def test_metrics_by_loops(seed, unjudged):
    qrels, run = a_case(seed, ties=False)
    got = evaluate_run(qrels, run, metrics=METRICS, unjudged=unjudged)
    assert got.per_query["query"].tolist() == list(qrels)
    assert got.missing == ["q0"] and got.n_unknown == 2
    for query, judged in qrels.items():
        scores = run.get(query, {})
        listed = sorted(scores, key=scores.get, reverse=True)
        if unjudged == "skip":
            listed = [one for one in listed if one in judged]
        for name in METRICS:
            value = got.per_query[name][list(qrels).index(query)]
            assert value == pytest.approx(by_loops(judged, listed, name), abs=1e-12), name
    for name in METRICS:
        assert got[name] == pytest.approx(got.per_query[name].mean())


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("ties", ["average", "trec_eval", "worst", "best", "first"])
def test_ties_by_loops(seed, ties):
    qrels, run = a_case(seed, ties=True)
    got = evaluate_run(qrels, run, metrics=METRICS, ties=ties)
    for place, (query, judged) in enumerate(qrels.items()):
        scores = run.get(query, {})
        orders = [
            order
            for order in itertools.permutations(scores)
            if all(scores[a] >= scores[b] for a, b in itertools.pairwise(order))
        ] if len(scores) < 6 else []  # fmt: skip
        if not orders:
            continue
        for name in METRICS:
            values = [by_loops(judged, order, name) for order in orders]
            wanted = {
                "average": np.mean(values),
                "trec_eval": values[orders.index(max(orders, key=_descending(scores)))],
                "first": values[orders.index(tuple(sorted(scores, key=lambda d: -scores[d])))],
                "worst": min(values),
                "best": max(values),
            }[ties]
            assert got.per_query[name][place] == pytest.approx(wanted, abs=1e-12), name


def _descending(scores):
    return lambda order: [(scores[one], one) for one in order]


def test_a_random_run_of_a_pooled_collection_is_bad():
    """The merge of run and qrels gave 1.0: of 1,000 documents each query has one judged."""
    rng = np.random.default_rng(0)
    qrels = {q: {int(rng.integers(1000)): 1} for q in range(200)}
    run = {
        q: dict(zip(rng.permutation(1000)[:100].tolist(), range(100), strict=True)) for q in qrels
    }
    values = evaluate_run(qrels, run, metrics=["mrr", "ndcg@10", "map"])
    assert max(values.values()) < 0.02
    assert "0 % of the documents at the first 10 places judged" in str(values)
    rows = pd.DataFrame([(q, d, s) for q in run for d, s in run[q].items()],
                        columns=["query_id", "doc_id", "score"])  # fmt: skip
    judged = pd.DataFrame([(q, d, 1) for q in qrels for d in qrels[q]],
                          columns=["query_id", "doc_id", "relevance"])  # fmt: skip
    merged = judged.merge(rows, on=["query_id", "doc_id"])
    assert m.mrr_score(merged["relevance"], merged["score"], groups=merged["query_id"]) == 1.0
    outer = judged.merge(rows, on=["query_id", "doc_id"], how="outer")
    with pytest.raises(ValueError, match=r"call evaluate_run\(qrels, run\)"):
        m.mrr_score(outer["relevance"], outer["score"], groups=outer["query_id"])
    with pytest.raises(ValueError, match=r"call evaluate_run\(qrels, run\)"):
        m.mrr_score(outer["relevance"].fillna(0), outer["score"], groups=outer["query_id"])


# -------------------------------------------------------------------- other tools


@pytest.mark.parametrize("scores", [(1.00000001, 1.0), (1e300, 1e299)])
def test_scores_of_trec_eval_are_floats_of_32_bits(scores):
    run = {"q": dict(zip("ab", scores, strict=True))}
    values = {
        ties: evaluate_run({"q": {"a": 1}}, run, ties=ties)["mrr"] for ties in ("average", "worst")
    }
    assert set(values.values()) == {1.0}  # the scores are different
    # pytrec_eval 0.5.11 gives 0.5: equal scores are in descending order of their ids.
    assert evaluate_run({"q": {"a": 1}}, run, ties="trec_eval")["mrr"] == 0.5


TREC = Path(__file__).parents[3] / "shared" / "data" / "trec_eval"


@pytest.mark.skipif(not TREC.exists(), reason="the test data of trec_eval is not available")
def test_files_of_trec_eval():
    with gzip.open(TREC / "out.test.aq.gz", "rt") as file:
        wanted = {(name, topic): value for name, topic, value in map(str.split, file)}
    of_tool = {"precision": "P", "recall": "recall", "ndcg": "ndcg_cut", "map": "map_cut"}
    cutoffs = (5, 10, 30, 100, 1000)
    names = {f"{ours}@{k}": f"{theirs}_{k}" for k in cutoffs for ours, theirs in of_tool.items()}
    names |= {"map": "map", "mrr": "recip_rank", "ndcg": "ndcg"}
    got = evaluate_run(
        TREC / "qrels.test.gz",
        str(TREC / "results.test.gz"),
        metrics=list(names),
        ties="trec_eval",
        gain="linear",
        missing="skip",
    )
    n_checked = 0
    for name, theirs in names.items():
        assert got[name] == pytest.approx(float(wanted[theirs, "all"]), abs=5.1e-5)
        for topic, value in zip(got.per_query["query"], got.per_query[name], strict=True):
            if topic not in got.missing:
                assert value == pytest.approx(float(wanted[theirs, topic]), abs=5.1e-5)
                n_checked += 1
    assert n_checked == 3 * len(names)


@pytest.mark.parametrize("ties", [False, True])
def test_ir_measures_agrees(ties):
    """On 100 random pairs of qrels and runs, which are given to the tool as one: it starts slowly.

    Its RR with a cutoff, by another tool, has another order of equal scores, and is left out.
    """
    tool = pytest.importorskip("ir_measures")
    of_tool = {"ndcg": tool.nDCG, "ndcg@5": tool.nDCG @ 5, "map": tool.AP, "map@3": tool.AP @ 3,
               "mrr": tool.RR, "precision@4": tool.P @ 4, "recall@6": tool.R @ 6}  # fmt: skip
    qrels, run = {}, {}
    for seed in range(100):
        judged, found = a_case(seed, ties)
        qrels |= {f"{seed} {query}": listed for query, listed in judged.items()}
        run |= {f"{seed} {query}": listed for query, listed in found.items()}
    got = evaluate_run(qrels, run, metrics=list(of_tool), ties="trec_eval", gain="linear")
    places = {query: place for place, query in enumerate(got.per_query["query"])}
    n_checked = 0
    names = {str(measure): name for name, measure in of_tool.items()}
    for one in tool.iter_calc(of_tool.values(), qrels, run):
        value = got.per_query[names[str(one.measure)]][places[one.query_id]]
        assert value == pytest.approx(one.value, abs=1e-9), one
        n_checked += 1
    assert n_checked == 400 * len(of_tool)


# -------------------------------------------------------------------- forms


def test_all_forms_of_tables_are_the_same(tmp_path):
    qrels, run = a_case(3, ties=True)
    want = evaluate_run(qrels, run, metrics=METRICS)
    q = [(q, d, v) for q, listed in qrels.items() for d, v in listed.items()]
    r = [(q, d, v) for q, listed in run.items() for d, v in listed.items()]
    (tmp_path / "qrels").write_text("".join(f"{a} 0 {b} {v}\n" for a, b, v in q))
    with gzip.open(tmp_path / "run.gz", "wt") as file:
        file.write("".join(f"{a}\tQ0\t{b}\t1\t{v}\ttag\n" for a, b, v in r))
    frame = pd.DataFrame(r, columns=["query_id", "doc_id", "score"])
    judged = pd.DataFrame(q, columns=["qid", "docno", "label"])
    for one, other in [
        (tmp_path / "qrels", tmp_path / "run.gz"),
        (judged, frame.sample(frac=1, random_state=0)),
        (judged.astype({"qid": "category"}), frame.rename(columns={"query_id": "qid"})),
        (pl.DataFrame(q, schema=["query_id", "doc_id", "relevance"], orient="row"), run),
        (qrels, {name: frame[name].tolist() for name in frame}),
    ]:
        got = evaluate_run(one, other, metrics=METRICS)
        assert dict(got) == pytest.approx(dict(want)), type(one)


def test_ids_are_compared_as_text():
    qrels = {1: {10: 1}, 2: {11: 1}}
    for run in ({"1": {"10": 1.0}}, {1.0: {10.0: 1.0}}, {b"1": {b"10": 1.0}}):
        assert evaluate_run(qrels, run, metrics="mrr")["mrr"] == 0.5


def test_places_instead_of_scores():
    run = pd.DataFrame({"qid": [1, 1, 1], "docno": ["a", "b", "c"], "rank": [2, 1, 3]})
    assert evaluate_run({1: {"a": 1}}, run, metrics="mrr")["mrr"] == 0.5


def test_what_the_result_says():
    qrels = {"a": {"d": 1}, "b": {"d": 0}, "c": {"d": 1}}
    run = {"a": {"d": 1.0, "e": 2.0}, "b": {"d": 1.0}, "z": {"d": 1.0}}
    evaluation = evaluate_run(qrels, run)
    assert evaluation["mrr"] == pytest.approx(0.5 / 3)
    assert evaluation.judged_share == pytest.approx(2 / 3)
    text = str(evaluation)
    assert "3 queries judged\n1 of them not in the run: 0\n1 query without judgments" in text
    skipped = evaluate_run(qrels, run, missing="skip", zero_division="skip")
    assert skipped["mrr"] == 0.5 and "1 of them not in the run: left out" in str(skipped)
    assert np.isnan(skipped.per_query["mrr"]).tolist() == [False, True, True]
    interval = evaluation.intervals()["mrr"]
    assert interval.low < interval.mean == evaluation["mrr"] < interval.high


def test_several_runs_and_their_comparison():
    rng = np.random.default_rng(0)
    qrels = {q: {d: int(d < 2) for d in range(8)} for q in range(60)}

    def search(noise):
        return {q: {d: qrels[q][d] + noise * rng.normal() for d in range(8)} for q in qrels}

    runs = {"good": search(0.3), "bad": search(3.0)}
    evaluations = evaluate_run(qrels, runs, metrics=["mrr", "map"])
    assert list(evaluations) == ["good", "bad"]
    frame = pd.DataFrame(evaluations).T
    assert frame.loc["good", "mrr"] == evaluations["good"]["mrr"]
    table = compare_rankings(qrels, runs, metric=["mrr", "map"])
    single = m.compare_rankings(
        None,
        evaluations["good"].per_query["mrr"],
        evaluations["bad"].per_query["mrr"],
        metric="mrr",
    )
    assert table["difference"][0] == single.difference and table["low"][0] == single.low > 0
    assert "+" in str(table).splitlines()[1] and len(str(table).splitlines()) == 3
    # a single run in the form of a dict of dicts is not taken for several
    assert set(evaluate_run(qrels, runs["good"], metrics="mrr")) == {"mrr"}


# -------------------------------------------------------------------- errors

Q, R = {"q": {"a": 1}}, {"q": {"a": 1.0}}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: evaluate_run(Q, {"x": {"a": 1.0}}), ValueError, "No query of run is in the qrels"),
        (lambda: evaluate_run(Q, [1]), TypeError, "run must be a data frame with the columns"),
        (lambda: evaluate_run(3, R), TypeError, "qrels must be a data frame with the columns"),
        (lambda: evaluate_run(Q, {}), ValueError, "run has no rows"),
        (lambda: evaluate_run(Q, {"q": {}}), ValueError, "run has no rows"),
        (lambda: evaluate_run({}, R), ValueError, "qrels has no rows"),
        (lambda: evaluate_run(Q, {"q": {"a": 1, "b": None}}), ValueError, "infinite in row 1"),
        (lambda: evaluate_run(Q, {"q": {"a": "x"}}), ValueError, "the score of run"),
        (
            lambda: evaluate_run(Q, pd.DataFrame({"qid": [1], "d": [2], "score": [3]})),
            ValueError,
            "run has no column 'doc_id' or .*Its columns are 'qid', 'd', 'score'",
        ),
        (
            lambda: evaluate_run(
                Q, pd.DataFrame({"qid": ["q", "q"], "docno": ["a", "a"], "score": [1, 2]})
            ),
            ValueError,
            "run has the document 'a' twice in the query 'q'",
        ),
        (lambda: evaluate_run(Q, R, metrics="kendall_tau"), ValueError, "compares the orders"),
        (lambda: evaluate_run(Q, R, unjudged="drop"), ValueError, "Unknown unjudged"),
        (lambda: evaluate_run(Q, R, missing=0), ValueError, "Unknown missing"),
        (lambda: evaluate_run(Q, R, ties="trec"), ValueError, "Unknown ties"),
        (lambda: evaluate_run(Q, R, gain=3), ValueError, "gain must be"),
        (lambda: evaluate_run(Q, R, confidence_level=0.9), TypeError, "Call intervals"),
        (lambda: compare_rankings(Q, R), TypeError, "call evaluate_run"),
        (
            lambda: compare_rankings(Q, {"a": {"q": {"a": 1.0}}}),
            ValueError,
            "at least two rankings",
        ),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_other_ids_of_documents_warn():
    with pytest.warns(UserWarning, match="No document of run is in the qrels: .*'D1'.*'a'"):
        assert evaluate_run(Q, {"q": {"D1": 1.0}})["mrr"] == 0.0
    with pytest.warns(UserWarning, match=r"the id 'b ', and .* have 'b': .*\.str\.strip\(\)"):
        evaluate_run({"q": {"a": 1, "b": 1}}, {"q": {"a": 2.0, "b ": 1.0}})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\t7\t1\n", "line 1: 3 fields, expected 6: .*read_csv"),
        ("q Q0 a 1 1.0 x\nq Q0 b 1 high x\n", "line 2: 'high' is not a number"),
        ("query Q0 doc rank score tag\n", "line 1: 'score' is not a number.*no header"),
        ("q Q0 b 1 1_0 x\n", "line 1: '1_0' is not a number"),
        ("q Q0 b 1 \u0661 x\n", "line 1: '\u0661' is not a number"),  # an Arabic digit
        ("q Q0 b\0 1 1.0 x\n", "line 1: it contains a NUL byte"),
        ("", "has no rows"),
    ],
)
def test_other_files_are_refused(tmp_path, text, message):
    path = tmp_path / "run.tsv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        evaluate_run(Q, path)


def test_each_metric_is_of_lists_or_refused():
    lists = {name.partition("@")[0] for name in METRICS}
    for name in set(MEASURES) - lists:
        with pytest.raises(ValueError, match="evaluate_rankings"):
            evaluate_run(Q, R, metrics=name)


# -------------------------------------------------------------------- the table of several runs


def test_a_table_has_every_document_of_any_run():
    words = {"q1": {"a": 3.0, "b": 2.0}, "q2": {"a": 1.0}, "q3": {"a": 1.0}}
    vectors = pd.DataFrame(
        {"qid": ["q2", "q1", "q1"], "docno": ["a", "c", "b"], "score": [5, 1, 1]}
    )
    table = runs_table(
        {"words": words, "vectors": vectors}, {"q1": {"b": 2, "z": 1}, "q2": {"a": -1}}
    )
    nan = np.nan
    wanted = [
        ("q1", "a", 3.0, 1.0, nan, nan, 0.0),
        ("q1", "b", 2.0, 2.0, 1.0, 1.5, 2.0),
        ("q1", "c", nan, nan, 1.0, 1.5, 0.0),
        ("q2", "a", 1.0, 1.0, 5.0, 1.0, 0.0),
    ]
    columns = ["query_id", "doc_id", "score_words", "rank_words", "score_vectors", "rank_vectors"]
    frame = pd.DataFrame(wanted, columns=[*columns, "relevance"])
    pd.testing.assert_frame_equal(table, frame, check_dtype=False)
    without = runs_table({"words": words, "vectors": vectors})
    assert without.columns.tolist() == columns and len(without) == 5  # q3 has no judgments


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: runs_table(R), TypeError, "map the name of each run"),
        (lambda: runs_table([R]), TypeError, "map the name of each run"),
        (lambda: runs_table({"x": R}, {"p": {"a": 1}}), ValueError, "No query of the runs is in"),
        (lambda: runs_table({"x": {"q": {}}}), ValueError, "the run 'x' has no rows"),
        (lambda: runs_table({1: R, "1": R}), ValueError, "Two runs have the name '1'"),
    ],
)
def test_what_is_no_table_of_runs(call, error, message):
    with pytest.raises(error, match=message):
        call()
