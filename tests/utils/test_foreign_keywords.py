"""Calls of people who know LGBMRanker, XGBRanker or CatBoostRanker: errors say what to write."""

import inspect
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_rankcal import (
    BoostedRanker,
    CalibratedLabelRanker,
    CalibratedRanker,
    Judgements,
    LinearRanker,
    RelevanceRegressor,
    ScoreRegressor,
    distill,
    predict_order,
    predict_scores,
    preference_labels,
    relevance_labels,
    sizes_to_groups,
)
from sklearn_rankcal.aggregation import aggregate_categories, estimate_relevance
from sklearn_rankcal.clicks import click_labels, estimate_propensities
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.decoders import Quota, Rules, exposure_policy
from sklearn_rankcal.inspection import permutation_importance
from sklearn_rankcal.labels import ranking_labels
from sklearn_rankcal.metrics import compare_rankings, evaluate_rankings, ndcg_score
from sklearn_rankcal.model_selection import query_cross_val_predict
from sklearn_rankcal.models import DocumentModel
from sklearn_rankcal.rankers._query_ranker import FOREIGN  # a table that must be complete

DATA = make_ranking(n_queries=12, n_documents=5, random_state=0)
X, Y, GROUPS = DATA.X, DATA.y, DATA.groups
SIZES = np.bincount(GROUPS)
RANKERS = [CalibratedRanker(Ridge()), LinearRanker(), BoostedRanker()]
VALIDATION = (
    "X_val=, y_val= and groups_val=<query id of each row of X_val>.*validation_queries=0.2"
    ".*loss of the ranker is the metric"
)
GROUPS_SAID = r"Pass groups=<query id of each row>.*sizes_to_groups\(sizes\)"
#: A keyword and its value in another library, and what the error says to a ranker that takes
#: validation queries.
CALLS = {
    "group": (SIZES, GROUPS_SAID),
    "qid": (GROUPS, GROUPS_SAID),
    "group_id": (GROUPS, GROUPS_SAID),
    "eval_set": ([(X, Y)], VALIDATION),
    "eval_group": ([SIZES], VALIDATION),
    "eval_qid": ([GROUPS], VALIDATION),
    "eval_names": (["valid"], VALIDATION),
    "eval_X": (X, VALIDATION),
    "eval_y": (Y, VALIDATION),
    "eval_sample_weight": ([np.ones(len(Y))], VALIDATION),
    "sample_weight_eval_set": ([np.ones(len(Y))], VALIDATION),
    "early_stopping_rounds": (10, VALIDATION),
    "use_best_model": (True, VALIDATION),
    "eval_at": ([5, 10], VALIDATION),
    "eval_metric": ("ndcg", VALIDATION),
    "group_weight": (np.ones(len(Y)), "Did you mean|Its parameters: X, y, groups"),
    "cat_features": ([0], "Did you mean|Its parameters: X, y, groups"),
}


@pytest.mark.parametrize("keyword", CALLS)
def test_fit_says_what_to_write(keyword):
    for ranker in RANKERS:
        value, said = CALLS[keyword]
        if said == VALIDATION and isinstance(ranker, LinearRanker):
            said = "takes no validation queries"
        with pytest.raises(TypeError, match=rf"fit\(\) has no parameter '{keyword}'\. .*({said})"):
            ranker.fit(X, Y, **{keyword: value})
        with pytest.raises(TypeError, match=said):  # and not of missing query ids before it
            ranker.fit(X, Y, groups=GROUPS, **{keyword: value})


def test_partial_fit_and_pipelines_say_it_too():
    with pytest.raises(TypeError, match=r"partial_fit\(\) has no parameter 'group'\. Pass groups="):
        LinearRanker(solver="sgd").partial_fit(X, Y, group=SIZES)
    pipe = make_pipeline(StandardScaler(), CalibratedRanker(Ridge()))
    with pytest.raises(TypeError, match=VALIDATION):
        pipe.fit(X, Y, calibratedranker__groups=GROUPS, calibratedranker__eval_set=[(X, Y)])


@pytest.mark.parametrize("name", ["ndcg@10", "NDCG@10", "pd", "wta"])
def test_a_loss_in_the_place_of_the_regressor(name):
    match = rf"regressor='{name}' is the name of a loss\. Pass it as loss='{name.lower()}'"
    with pytest.raises(ValueError, match=match):
        CalibratedRanker(name).fit(X, Y, groups=GROUPS)
    with pytest.raises(ValueError, match=match):
        CalibratedLabelRanker(name).fit(X, np.tile([1, 2, 3], (len(X), 1)))
    with pytest.raises(ValueError, match="must be None, a str among"):
        CalibratedRanker("nearest").fit(X, Y, groups=GROUPS)


def test_other_methods_do_not_speak_of_validation():
    ranker = CalibratedRanker(Ridge()).fit(X, Y, groups=GROUPS)
    for method in ("predict", "predict_order", "decision_function", "score", "diagnose"):
        with pytest.raises(TypeError, match=GROUPS_SAID):
            getattr(ranker, method)(X, query_id=GROUPS)
    with pytest.raises(TypeError, match="Its parameters: X, groups"):
        ranker.predict(X, groups=GROUPS, eval_set=[(X, Y)])


@pytest.mark.parametrize(
    ("function", "keyword", "message"),
    [
        (click_labels, "position", r"click_labels\(\) has no .* Did you mean 'positions'\?"),
        (estimate_propensities, "features", "Its parameters: clicks, X, "),
        (estimate_relevance, "noise", r"Did you mean 'click_noise'\?"),
        (ndcg_score, "group", GROUPS_SAID),
        (evaluate_rankings, "qid", GROUPS_SAID),
        (compare_rankings, "query_id", GROUPS_SAID),
        (preference_labels, "weights", r"Did you mean 'weight'\?"),
        (preference_labels, "qid", GROUPS_SAID),
        (ranking_labels, "group", GROUPS_SAID),
        (relevance_labels, "query_id", GROUPS_SAID),
        (predict_order, "qid", GROUPS_SAID),
        (predict_scores, "group", GROUPS_SAID),
        (permutation_importance, "n_repeat", r"Did you mean 'n_repeats'\?"),
        (query_cross_val_predict, "folds", "Its parameters: estimator, X, "),
        (distill, "group", GROUPS_SAID),
        (exposure_policy, "query", GROUPS_SAID),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_functions_say_which_keyword_is_meant(function, keyword, message):
    with pytest.raises(TypeError, match=message):
        function(**{keyword: 1})


def test_what_the_errors_name_exists():
    text = "".join(FOREIGN.values())
    parameters = set(inspect.signature(CalibratedRanker.fit).parameters)
    parameters |= set(inspect.signature(CalibratedRanker.__init__).parameters)
    named = set(re.findall(r"\b(\w+)=", text)) - {"y"}
    assert named <= parameters


# -------------------------------------------------------------------- group sizes as groups


@pytest.mark.parametrize("sizes", [SIZES, SIZES.tolist(), SIZES.astype(float)])
def test_sizes_that_are_passed_as_groups_are_recognised(sizes):
    message = r"groups has 12 entries, but X has 60 rows\. They add up .*=sizes_to_groups\(sizes\)"
    for ranker in RANKERS[:2]:
        with pytest.raises(ValueError, match=message):
            ranker.fit(X, Y, sizes)
    CalibratedRanker(Ridge()).fit(X, Y, sizes_to_groups(SIZES))


@pytest.mark.parametrize(
    "groups", [[1, 2], [60, 0], [-1, 61], ["60"], [59.5, 0.5], GROUPS[:-1], [None, 60], [60] * 61]
)
def test_other_groups_of_a_wrong_length_are_not_taken_for_sizes(groups):
    with pytest.raises(ValueError) as caught:
        CalibratedRanker(Ridge()).fit(X, Y, groups)
    number = "1 entry" if len(groups) == 1 else f"{len(groups)} entries"
    assert str(caught.value) == f"groups has {number}, but X has 60 rows."


@pytest.mark.parametrize("name", ["group", "qid"])
def test_regressors_around_rankers_say_what_to_write(name):
    ranker = CalibratedRanker(Ridge(), context=None)
    wrong = {name: SIZES}
    for regressor in (ScoreRegressor(ranker), RelevanceRegressor(Ridge())):
        with pytest.raises(TypeError, match=GROUPS_SAID):
            regressor.fit(X, Y, **wrong)
    view = ScoreRegressor(ranker.fit(X, Y, groups=GROUPS))
    with pytest.raises(TypeError, match=GROUPS_SAID):
        view.predict(X, **wrong)
    with pytest.raises(TypeError, match=GROUPS_SAID):
        view.score(X, Y, **wrong)


def test_a_ranker_is_not_a_regressor():
    class LGBMRanker(Ridge):
        __module__ = "lightgbm.sklearn"

    class OwnRanker(LGBMRanker):
        __module__ = "somewhere"

    class OtherRanker(Ridge):
        _estimator_type = "ranker"

    known = "LGBMRanker is a ranker. Pass a regressor instead: LGBMRegressor has"
    for regressor, words in {
        LGBMRanker(): known,
        OwnRanker(): "OwnRanker is a ranker.*: LGBMRegressor has",
        make_pipeline(StandardScaler(), LGBMRanker()): known,
        DocumentModel(LGBMRanker()): known,
        OtherRanker(): r"OtherRanker is a ranker. Pass a regressor instead\.$",
        CalibratedRanker(Ridge()): "CalibratedRanker is a ranker",
    }.items():
        for loss in ("ndcg",) if isinstance(regressor, DocumentModel) else ("ndcg", "pd"):
            with pytest.raises(TypeError, match=words):
                CalibratedRanker(regressor, loss=loss).fit(X, Y, groups=GROUPS)


# -------------------------------------------------------------------- calls and columns


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: Quota("x"),
            r"Quota\(\): missing .*'first'.* Quota\(of, first=\.\.\.\), with",
        ),
        (lambda: Quota("x", 3), r"Quota\(\): too many positional arguments.*first=\.\.\."),
        (lambda: Quota("x", frist=3), r"Quota\(\) has no parameter 'frist'. Did you mean 'first'"),
        (lambda: Quota.fair("x", 3), r"fair\(of, first=\.\.\., share=\.\.\.\), with level="),
        (lambda: Rules([1]), r"Rules\(\): too many .*\. Call it as Rules\(\), with place="),
        (lambda: Rules(places=[1]), r"Rules\(\) has no parameter 'places'. Did you mean 'place'"),
    ],
)
def test_a_wrong_call_of_rules_says_the_right_one(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_a_type_error_inside_a_call_stays_as_it_is():
    with pytest.raises(TypeError, match=r"^'int' object is not iterable$"):
        Rules(before=3)


VOTES = {"first": ["a", "b", "a"], "second": ["b", "c", "c"], "winner": ["a", "b", "c"]}


@pytest.mark.parametrize(
    "name",
    ["first", "second", "winner", "groups", "weight", "count", "judge", "covariates", "time"],
)  # fmt: skip
def test_the_name_of_a_column_is_not_the_column(name):
    with pytest.raises(ValueError, match=rf"{name} must be .*'kind'.*data\['kind'\]"):
        Judgements.from_votes(**{**VOTES, name: "kind"})
    with pytest.raises(ValueError, match=r"category must be the column itself.*data\['kind'\]"):
        aggregate_categories(Judgements.from_votes(**VOTES), "kind")


def test_columns_that_fit_did_not_see_come_with_the_way_out():
    table = pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])])
    ranker = CalibratedRanker(Ridge()).fit(table, Y, groups=GROUPS)
    wider = table.assign(more=1.0)
    with pytest.raises(ValueError, match="unseen at fit time:\n- more") as caught:
        ranker.predict(wider, groups=GROUPS)
    assert "X[list(ranker.feature_names_in_)]" in caught.value.__notes__[0]
    known = wider[list(ranker.feature_names_in_)]
    assert (ranker.predict(known, groups=GROUPS) == ranker.predict(table, groups=GROUPS)).all()
    with pytest.raises(ValueError, match="yet now missing") as caught:  # no way out
        ranker.predict(wider.drop(columns="x0"), groups=GROUPS)
    assert not getattr(caught.value, "__notes__", [])
