"""Runs and qrels: the tables that tools of TREC take."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_rankcal import CalibratedRanker, PositionsAsScoresWarning, relevance_labels
from sklearn_rankcal import metrics as m
from sklearn_rankcal.datasets import load_letor, make_ranking
from sklearn_rankcal.metrics import to_qrels, to_run

# -------------------------------------------------------------------- tables


def test_runs_are_sorted_as_trec_eval_sorts_them():
    scores = [0.5, 2.0, 2.0, 1.0, 7.0]
    run = to_run(scores, groups=["q", "p", "p", "q", "p"], document_ids=["d", "a", "b", "c", "aa"])
    assert run.columns.tolist() == ["query_id", "doc_id", "score", "rank"]
    assert run["query_id"].tolist() == ["q", "q", "p", "p", "p"]
    assert run["doc_id"].tolist() == ["c", "d", "aa", "b", "a"]  # b before a: the same score
    assert run["score"].tolist() == [1.0, 0.5, 7.0, 2.0, 2.0]
    assert run["rank"].tolist() == [1, 2, 1, 2, 3]
    assert run["score"].dtype == np.float64 and run["rank"].dtype == np.int64


def test_positions_become_scores_in_the_same_order():
    groups = np.array([5, 5, 3, 5, 3])
    run = to_run(ranks=[2, 3, 1, 1, 2], groups=groups)
    assert run["query_id"].tolist() == ["5", "5", "5", "3", "3"]
    assert run["doc_id"].tolist() == ["3", "0", "1", "2", "4"]  # without ids: the numbers of rows
    assert run["score"].tolist() == [3.0, 2.0, 1.0, 2.0, 1.0]
    again = to_run(
        run["score"], groups=run["query_id"].tolist(), document_ids=run["doc_id"].tolist()
    )
    pd.testing.assert_frame_equal(again, run)


def test_labels_become_whole_numbers():
    y, groups = [0, 2, 1, 4], ["b", "a", "b", "a"]
    qrels = to_qrels(y, groups=groups, document_ids=[10, 11, 12, 10])
    assert qrels.columns.tolist() == ["query_id", "doc_id", "relevance"]
    assert qrels["query_id"].tolist() == ["b", "b", "a", "a"]
    assert qrels["doc_id"].tolist() == ["10", "12", "11", "10"]
    assert qrels["relevance"].tolist() == [0, 1, 2, 4]
    assert qrels["relevance"].dtype == np.int64
    labels = relevance_labels(y, groups)
    pd.testing.assert_frame_equal(to_qrels(labels, groups=groups)[["doc_id", "relevance"]],
                                  to_qrels(labels)[["doc_id", "relevance"]])  # fmt: skip


@pytest.mark.parametrize("make", [list, np.array, pd.Series, pl.Series, tuple])
def test_columns_of_any_kind(make):
    run = to_run(make([1.5, 2.5]), groups=make(["q", "q"]), document_ids=make(["a", "b"]))
    assert run["doc_id"].tolist() == ["b", "a"] and run["query_id"].tolist() == ["q", "q"]
    qrels = to_qrels(make([1, 0]), groups=make([3, 3]), document_ids=make([b"a", b"b"]))
    assert qrels.to_numpy().tolist() == [["3", "a", 1], ["3", "b", 0]]


def test_ids_of_a_column_with_gaps_are_whole_numbers():
    """pandas makes floats of integers beside NaN, as after an outer merge."""
    run = to_run([1.0, 2.0], groups=pd.Series([7.0, 8.5]), document_ids=np.array([1.0, 2.0]))
    assert run["query_id"].tolist() == ["7", "8.5"] and run["doc_id"].tolist() == ["1", "2"]
    qrels = to_qrels([1, 0], groups=[7, 8], document_ids=[1, 2])
    assert qrels["query_id"].tolist() == ["7", "8"]


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_metrics_are_the_same_on_rows_and_on_tables(data):
    n = data.draw(st.integers(1, 25))
    groups = data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    y = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    scores = data.draw(st.lists(st.floats(-5, 5), min_size=n, max_size=n, unique=True))
    run, qrels = to_run(scores, groups=groups), to_qrels(y, groups=groups)
    both = qrels.merge(run, on=["query_id", "doc_id"], validate="one_to_one")
    assert len(both) == n
    options = {"groups": both["query_id"], "zero_division": 0}
    given_rows = {"groups": groups, "zero_division": 0}
    for metric in (m.ndcg_score, m.dcg_score, m.kendall_tau_score):
        of_rows = metric(y, scores, **given_rows)
        assert metric(both["relevance"], both["score"], **options) == pytest.approx(of_rows)
        ranked = metric(both["relevance"], ranks=both["rank"], **options)
        assert ranked == pytest.approx(of_rows)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: to_run(groups=[1]), "either y_score .* or ranks= .*, not neither"),
        (lambda: to_run([1.0], ranks=[1], groups=[1]), "not both"),
        (lambda: to_run([1.0, np.nan], groups=[1, 1]), "y_score contains NaN or infinity"),
        (lambda: to_run([1.0], groups=[1, 1]), "y_score has 1 entry, but there are 2 rows"),
        (lambda: to_run(ranks=[1, 1], groups=[1, 1]), "ranks"),
        (lambda: to_run([1.0], groups=[1], document_ids=["a", "b"]), "document_ids has 2 entries"),
        (
            lambda: to_run([1.0], groups=[1], document_ids="a"),
            "document_ids must be the column itself",
        ),
        (lambda: to_run([1.0], groups=[1], document_ids=[None]), "document_ids has a missing"),
        (
            lambda: to_run([1.0, 2, 3], groups=[1, 2, 2], document_ids=["a", "b", "b"]),
            "The document 'b' occurs 2 times in the query '2'",
        ),
        (
            lambda: to_run([1.0, 2], groups=[1, 1], document_ids=[1, "1"]),
            "document_ids contains the different ids 1 and '1', which are the same text",
        ),
        (lambda: to_run([1.0, 2], groups=[1, "1"]), "groups contains the different ids 1 and '1'"),
        (
            lambda: to_qrels([1, 0.5], groups=[1, 1]),
            r"y must be whole.*; got 0\.5 in row 1",
        ),
        (lambda: to_qrels([1e30], groups=[1]), "y must be whole numbers"),
        (lambda: to_qrels([1]), "Pass groups="),
        (lambda: to_qrels([1, 0], groups=[1]), "groups has 1 entries"),
        (
            lambda: to_qrels([1, 0], groups=[1, 1], document_ids=["a", "a"]),
            "The document 'a' occurs 2 times in the query '1'",
        ),
    ],
)
def test_what_cannot_be_a_table(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_positions_that_are_passed_as_scores_warn():
    with pytest.warns(PositionsAsScoresWarning, match="ranks=") as caught:
        to_run([2, 1, 1, 2], groups=[1, 1, 2, 2])
    assert caught[0].filename == __file__
    to_run([2.0, 1.0, 1.0, 2.0], groups=[1, 1, 2, 2])  # warnings are errors: this call does not


def test_a_wrong_keyword_says_what_to_write():
    with pytest.raises(TypeError, match=r"no parameter 'qid'\. Pass groups="):
        to_qrels([1], qid=[1])


# -------------------------------------------------------------------- the tool ir_measures


def test_ir_measures_takes_the_tables():
    ir_measures = pytest.importorskip("ir_measures")
    data = make_ranking(n_queries=30, random_state=0)
    ranker = CalibratedRanker("boosting", loss="ndcg").fit(data.X, data.y, groups=data.groups)
    ranks = ranker.predict(data.X, groups=data.groups)
    run, qrels = to_run(ranks=ranks, groups=data.groups), to_qrels(data.y, groups=data.groups)
    burges = ir_measures.nDCG(dcg="exp-log2") @ 5
    found = ir_measures.calc_aggregate(
        [ir_measures.nDCG @ 5, ir_measures.AP, ir_measures.P @ 3, ir_measures.RR, burges],
        qrels,
        run,
    )
    values = {str(measure): value for measure, value in found.items()}
    options = {"ranks": ranks, "groups": data.groups, "zero_division": 0}
    assert values["nDCG@5"] == pytest.approx(m.ndcg_score(data.y, k=5, gain="linear", **options))
    assert found[burges] == pytest.approx(m.ndcg_score(data.y, k=5, **options), abs=1e-4)
    relevant = (data.y >= 1).astype(float)
    assert values["AP"] == pytest.approx(m.map_score(relevant, **options))
    assert values["P@3"] == pytest.approx(m.precision_at_k_score(relevant, k=3, **options))
    assert values["RR"] == pytest.approx(m.mrr_score(relevant, **options))


def test_ranx_takes_the_tables():
    groups, y, ranks = [1, 1, 2, 2, 2], [1, 0, 0, 2, 1], [2, 1, 1, 2, 3]
    run, qrels = to_run(ranks=ranks, groups=groups), to_qrels(y, groups=groups)
    # ranx asserts these dtypes; pandas 3 would make columns of text of dtype str
    assert run["query_id"].dtype == run["doc_id"].dtype == object
    assert qrels["query_id"].dtype == qrels["doc_id"].dtype == object
    ranx = pytest.importorskip("ranx")
    columns = {"q_id_col": "query_id", "doc_id_col": "doc_id"}
    found = ranx.evaluate(
        ranx.Qrels.from_df(qrels, score_col="relevance", **columns),
        ranx.Run.from_df(run, score_col="score", **columns),
        ["ndcg@2", "ndcg_burges@2", "mrr"],
    )
    options = {"ranks": ranks, "groups": groups}
    assert found["ndcg_burges@2"] == pytest.approx(m.ndcg_score(y, k=2, **options))
    assert found["ndcg@2"] == pytest.approx(m.ndcg_score(y, k=2, gain="linear", **options))
    assert found["mrr"] == pytest.approx(m.mrr_score(np.minimum(y, 1), **options))


# -------------------------------------------------------------------- document ids of LETOR files


def test_letor_files_keep_document_ids(tmp_path):
    path, other = tmp_path / "a.txt", tmp_path / "b.txt"
    path.write_text(
        "2 qid:1 1:0.5 #docid = GX008-86-4444840 inc = 1 prob = 0.086622\n"
        "0 qid:1 1:0.1 # docid=é\n",
        encoding="utf-8",
    )
    data = load_letor(path)
    assert data.document_ids.tolist() == ["GX008-86-4444840", "é"]
    qrels = to_qrels(data.y, groups=data.groups, document_ids=data.document_ids)
    assert qrels["doc_id"].tolist() == ["GX008-86-4444840", "é"]
    other.write_text("1 qid:2 1:1 # docid = b\n")
    assert load_letor([path, other]).document_ids.tolist() == ["GX008-86-4444840", "é", "b"]
    for line in (b"1 qid:2 1:1\n", b"1 qid:2 1:1 # id = b\n", b"1 qid:2 1:1 # docid = \xe9\n"):
        other.write_bytes(line)
        assert load_letor(other).document_ids is None
        assert load_letor([path, other]).document_ids is None


@pytest.mark.parametrize("bad", ["", " ", "a b", "a\tb", "a\n", "\u00a0x"])
def test_ids_that_would_break_the_fields_of_a_line_are_refused(bad):
    good = ["a", "b", "c"]
    spoiled = {
        "groups": {"groups": [bad, bad, "q"]},
        "document_ids": {"groups": [1, 1, 1], "document_ids": ["a", bad, "c"]},
    }
    for name, ids in spoiled.items():
        with pytest.raises(ValueError, match=f"^{name} contains the id .*white space"):
            to_run([1.0, 2.0, 3.0], **ids)
        with pytest.raises(ValueError, match=f"^{name} contains the id .*white space"):
            to_qrels([1, 0, 2], **ids)
    assert len(to_run([1.0, 2.0, 3.0], groups=good)) == 3
