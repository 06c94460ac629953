"""The evaluation notebook of a search team: files of qrels and runs, a table, a fused run."""

import gzip
import warnings

import numpy as np
import pandas as pd
import pytest

from sklearn_rankcal import CalibratedRanker, PositionsAsScoresWarning
from sklearn_rankcal.metrics import compare_rankings, evaluate_run, runs_table, to_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files as a track of TREC publishes them: 60 topics, three systems, graded qrels."""
    folder = tmp_path_factory.mktemp("track")
    rng = np.random.default_rng(0)
    qrels, runs = [], {"bm25": [], "dense": [], "random": []}
    for topic in range(301, 361):
        match = rng.normal(size=400)
        scores = {
            "bm25": 5 + match + rng.normal(size=400),
            "dense": match + rng.normal(size=400),
            "random": rng.normal(size=400),
        }
        pool = set(rng.choice(400, 20, replace=False).tolist())
        for name, values in scores.items():
            top = np.argsort(-values)[:50]
            if name != "random":
                pool |= set(top[:15].tolist())
            if (name, topic) != ("dense", 305):  # a system that crashed on a topic
                runs[name] += [
                    f"{topic} Q0 DOC-{d:03d} {place} {values[d]:.6f} {name}\n"
                    for place, d in enumerate(top, 1)
                ]
        qrels += [f"{topic} 0 DOC-{d:03d} {int(match[d] > 1) + int(match[d] > 2)}\n" for d in pool]
    (folder / "qrels.txt").write_text("".join(qrels))
    for name, lines in runs.items():
        with gzip.open(folder / f"{name}.run.gz", "wt") as file:
            file.writelines(lines)
    return folder


def test_a_table_of_systems_in_three_lines(folder):
    runs = {path.name.split(".")[0]: path for path in sorted(folder.glob("*.run.gz"))}
    evaluations = evaluate_run(folder / "qrels.txt", runs, metrics=["ndcg@10", "map", "recall@50"])
    table = pd.DataFrame(evaluations).T
    assert list(table.index) == ["bm25", "dense", "random"]
    assert (table.loc["random"] < 0.25).all() and (table.loc["bm25"] > 0.3).all()
    assert evaluations["dense"].missing == ["305"]
    assert "1 of them not in the run: 0" in str(evaluations["dense"])
    assert evaluations["random"].judged_share < 0.3  # the values of an unpooled system say little


def test_which_differences_are_more_than_chance(folder):
    runs = {name: folder / f"{name}.run.gz" for name in ("bm25", "dense", "random")}
    table = pd.DataFrame(compare_rankings(folder / "qrels.txt", runs, metric="ndcg@10"))
    assert table[["first", "second"]].to_numpy().tolist() == [
        ["bm25", "dense"],
        ["bm25", "random"],
        ["dense", "random"],
    ]
    assert table["low"][1] > 0 and table["adjusted_p_value"][1] < 0.01
    assert table["low"][0] < table["difference"][0] < table["high"][0]


def test_a_fused_run_is_written_and_read_again(folder):
    runs = {name: folder / f"{name}.run.gz" for name in ("bm25", "dense")}
    table = runs_table(runs, folder / "qrels.txt")
    X = table.drop(columns=["query_id", "doc_id", "relevance"])
    ranker = CalibratedRanker("boosting", loss="ndcg@10", random_state=0)
    ranker.fit(X, table["relevance"], groups=table["query_id"])
    run = to_run(
        ranker.decision_function(X, groups=table["query_id"]),
        groups=table["query_id"],
        document_ids=table["doc_id"],
    )
    columns = ["query_id", "Q0", "doc_id", "rank", "score", "tag"]
    lines = run.assign(Q0="Q0", tag="fused")[columns]
    lines.to_csv(folder / "fused.run", sep=" ", header=False, index=False)
    again = evaluate_run(folder / "qrels.txt", folder / "fused.run")
    assert dict(again) == dict(evaluate_run(folder / "qrels.txt", run))
    assert again["ndcg@10"] > evaluate_run(folder / "qrels.txt", runs["bm25"])["ndcg@10"]


def test_the_other_order_of_arguments_and_other_columns_say_what_to_do(folder):
    run = pd.read_csv(folder / "bm25.run.gz", sep=" ", header=None)
    with pytest.raises(ValueError, match=r"no column 'query_id' or .*Rename them"):
        evaluate_run(folder / "qrels.txt", run)
    with pytest.raises(ValueError, match=r"fields 'query_id Q0 doc_id rank .* Pass qrels first"):
        evaluate_run(folder / "bm25.run.gz", folder / "qrels.txt")


def test_positions_in_the_place_of_scores(folder):
    fields = ["query_id", "Q0", "doc_id", "rank", "score", "tag"]
    run = pd.read_csv(folder / "bm25.run.gz", sep=" ", names=fields)
    value = evaluate_run(folder / "qrels.txt", run)["ndcg@10"]
    positions = run.assign(score=run["rank"])
    with pytest.warns(PositionsAsScoresWarning, match=r"The scores of run look .*column .*'rank'"):
        reverse = evaluate_run(folder / "qrels.txt", positions)
    assert reverse["ndcg@10"] < value / 2
    positions.to_csv(folder / "positions.run", sep=" ", header=False, index=False)
    runs = {"bm25": folder / "bm25.run.gz", "ours": folder / "positions.run"}
    with pytest.warns(PositionsAsScoresWarning, match=r"the run 'ours' look .* fifth field is"):
        compare_rankings(folder / "qrels.txt", runs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert evaluate_run(folder / "qrels.txt", run.drop(columns="score"))["ndcg@10"] == value
        upside_down = run.assign(score=51 - run["rank"])
        assert evaluate_run(folder / "qrels.txt", upside_down)["ndcg@10"] == value
