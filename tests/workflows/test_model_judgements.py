"""A table of answers of a language model goes in as it is, and a ranker comes out."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

from sklearn_rankcal import CalibratedRanker, Judgements, QueryKFold, aggregate
from sklearn_rankcal.aggregation import AggregatedLoss, BradleyTerry
from sklearn_rankcal.metrics import ndcg_score


@pytest.fixture(scope="module")
def tables():
    """The catalogue in the order of a data base, and the log of answers in the order of time."""
    rng = np.random.default_rng(0)
    catalogue = pd.DataFrame(
        {"query": np.repeat([f"q{k}" for k in range(150)], 6), "sku": np.tile(list("abcdef"), 150)}
    )
    catalogue[["match", "price", "age"]] = rng.normal(size=(900, 3))
    catalogue["useful"] = catalogue["match"] - 0.5 * catalogue["price"]
    pairs = catalogue.merge(catalogue, on="query", suffixes=("", "_2"))
    pairs = pairs[pairs["sku"] != pairs["sku_2"]].sample(1800, random_state=0)
    lead = 2 * (pairs["useful"] - pairs["useful_2"]) + 0.8 + rng.logistic(size=len(pairs))
    answer = np.where(lead > 0, "A", "B").astype(object)
    answer[rng.random(len(pairs)) < 0.1] = "same"
    answer[rng.random(len(pairs)) < 0.05] = None
    log = pairs[["query", "sku", "sku_2"]].set_axis(["query", "A", "B"], axis=1)
    return catalogue.sample(frac=1, random_state=1), log.assign(answer=answer)


def test_answers_become_a_ranker(tables):
    catalogue, log = tables
    votes = Judgements.from_votes(
        log["A"], log["B"], log["answer"], groups=log["query"], tie="same", refused=None
    )
    assert votes.refused.sum() == log["answer"].isna().sum()
    y = votes.to_labels(catalogue["query"], catalogue["sku"])
    X, groups = catalogue[["match", "price", "age"]], catalogue["query"]
    loss = AggregatedLoss("ndcg", BradleyTerry(penalty=1), subset_size="all")
    train, test = next(QueryKFold(3).split(X, y, groups))
    ranker = CalibratedRanker(Ridge(), loss=loss, context=None)
    ranker.fit(X.iloc[train], y[train], groups=groups.iloc[train])
    scores = ranker.decision_function(X.iloc[test], groups=groups.iloc[test])
    grades = np.digitize(catalogue["useful"], [-1, 0, 1])[test]
    assert ndcg_score(grades, scores, groups=groups.iloc[test]) > 0.97


@pytest.mark.filterwarnings("ignore::sklearn_rankcal.exceptions.DisconnectedComparisonsWarning")
def test_the_audit_says_what_is_wrong_with_the_judge(tables):
    _, log = tables
    votes = Judgements.from_votes(
        log["A"], log["B"], log["answer"], groups=log["query"], tie="same", refused=None
    )
    board = aggregate(votes)
    found = {probe.name: probe for probe in board.audit().probes}
    assert found["position"].fires and "larger" in found["position"].finding
    assert found["no answer"].finding.startswith("4.3 %")
    plan = pd.DataFrame(board.next_comparisons(2, target="all"), columns=["query", "A", "B"])
    assert len(plan) == 2 * votes.queries.n_queries


def test_answers_that_the_reader_does_not_know_are_named(tables):
    _, log = tables
    columns = log["A"], log["B"], log["answer"]
    with pytest.raises(ValueError, match="refused="):
        Judgements.from_votes(*columns, groups=log["query"], tie="same")
    with pytest.raises(ValueError, match="tie="):
        Judgements.from_votes(*columns, groups=log["query"], refused=None)
