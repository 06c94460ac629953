"""scikit-learn's tools on a ranker return the right number, or raise an error with the remedy.

`TABLE` says what each tool does, for every way in which the queries can travel, with
metadata routing off and on. The other tests check what the table leaves out.
"""

import re
import warnings
from functools import partial

import numpy as np
import pytest
import sklearn
from sklearn.exceptions import FitFailedWarning, UnsetMetadataPassedError
from sklearn.feature_selection import SelectFromModel, SelectKBest, f_regression
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.utils.fixes import parse_version

from sklearn_rankcal import CalibratedRanker, CutQueriesWarning, MissingGroupsWarning, QueryKFold

from .covering import covering
from .sklearn_tools import (
    ALPHAS,
    LABELS,
    N_FOLDS,
    NDCG_10,
    SCORER,
    SCORINGS,
    TOOLS,
    WAYS,
    G,
    X,
    Y,
    both_routings,
    fitted_search,
    make_ranker,
    mean_measure,
    only_off,
    only_on,
    ranks_by_hand,
    splits,
    to_function,
    use_nested,
)

# What each tool does; doc/scikit_learn.rst has a shorter table. "right" is the number of a loop
# written by hand. A key of WARNINGS is a warning with the result, which is NaN for the keys of NAN.
# All other keys of MESSAGES are errors.
# "silent" is a meaningless number without any warning. "across" is the number of a test that
# shuffles labels between queries. The queries are passed in one of five ways:
#   groups   y is plain, and groups= is passed
#   labels   relevance_labels and QueryKFold
#   both     relevance_labels, GroupKFold and groups=
#   column   a pandas frame with group_column, and GroupKFold, which gets groups=
#   polars   the same with a polars frame
#                         routing off                         routing on
#                         groups labels both   column polars  groups labels both   column polars
TABLE = """
cross_val_score           nan_one right  right  right  right   right  right  right  right  right
cross_validate            nan_one right  right  right  right   right  right  right  right  right
GridSearchCV              nan_one right  right  right  right   right  right  right  right  right
RandomizedSearchCV        nan_one right  right  right  right   right  right  right  right  right
HalvingGridSearchCV       nan_one right  right  right  right   right  right  right  right  right
nested                    inner  right  inner  inner  inner   right  right  right  right  right
nested_QueryKFold         query  right  right  query  query   right  right  right  right  right
Pipeline                  nan_one right  right  frame  frame   right  right  right  frame  frame
ColumnTransformer         nan_one right  right  right  right   right  right  right  right  right
search.score              remedy right  right  right  right   right  right  right  right  right
search.score_by_default   one    right  right  right  right   right  right  right  right  right
permutation_importance    remedy right  right  right  array   remedy right  right  right  array
RFECV                     remedy right  right  frame  frame   right  right  right  frame  frame
SequentialFeatureSelector switch right  switch switch switch  right  right  right  frame  frame
RFE_as_estimator          nan_one right  right  frame  frame   right  right  right  frame  frame
learning_curve            nan_one nan    nan    right  right   right  nan    nan    right  right
cross_val_predict         one    ranks  ranks  right  right   ranks  ranks  ranks  right  right
search.predict            one    ranks  ranks  right  right   ranks  ranks  ranks  right  right
RFECV_without_scoring     one    scorer scorer frame  frame   scorer scorer scorer frame  frame
builtin_scorer            one    named  named  silent silent  named  named  named  silent silent
integer_cv                nan_one cut    cut    warns  warns   warns  cut    cut    warns  warns
halving_of_rows           nan_one cut    cut    silent silent  silent cut    cut    silent silent
importance_of_some_rows   remedy cut    cut    warns  array   remedy cut    cut    warns  array
validation_curve          remedy right  right  right  right   right  right  right  right  right
permutation_test_score    remedy right  right  right  right   across across cut    across across
search_of_rows            nan_one cut    cut    warns  warns   warns  cut    cut    warns  warns
RFE                       right  right  right  frame  frame   right  right  right  frame  frame
query_cross_val_predict   right  right  right  right  right   right  right  right  right  right
partial_dependence        right  right  right  right  polars  right  right  right  right  polars
VotingRegressor_of_scores switch right switch switch switch right right right right right
StackingRegressor_of_scores switch right switch switch switch right right right right right
VotingRegressor           switch class switch switch switch class class class class class
StackingRegressor         switch class switch switch switch class class class class class
TransformedTargetRegressor hidden numbers numbers hidden hidden hidden numbers numbers hidden hidden
BaggingRegressor          switch hidden switch switch switch  hidden repeat repeat frame frame
AdaBoostRegressor         extra repeat extra extra extra extra repeat extra extra extra
RANSACRegressor           switch numbers switch switch switch ranks numbers numbers frame frame
"""
CELLS = {
    (line.split()[0], routing, way): outcome
    for line in TABLE.strip().splitlines()
    for (routing, way), outcome in zip(
        [(routing, way) for routing in ("off", "on") for way in WAYS],
        line.split()[1:],
        strict=True,
    )
}
# A pattern of the error or of the warning.
MESSAGES = {
    "remedy": r"(did not reach the ranker|and needs them|cannot determine which rows belong).*"
    r"relevance_labels\(y, groups\).*group_column.*enable_metadata_routing=True",
    "inner": "The 'groups' parameter should not be None",  # GroupKFold's own words
    "query": r"QueryKFold needs the query of each row\. .*relevance_labels\(y, groups\)",
    "frame": r"group_column='qid' needs X as a data frame",
    "array": "group_column='qid' needs X as a data frame"
    "|cannot determine which rows belong.*relevance_labels",
    "switch": "only supported if enable_metadata_routing=True",  # scikit-learn's own words
    "ranks": r"use group_column='qid'.*best_estimator_\.predict\(X, groups=",
    "scorer": r"scoring=get_ranking_scorer\(",
    "cut": "A splitter has cut it.*QueryKFold",
    "warns": "were fitted with other rows.*QueryKFold",
    "one": "ranked as ONE query.*relevance_labels",
    "nan_one": "ranked as ONE query.*relevance_labels",
    "nan": "A splitter has cut it",
    "class": "should be a regressor",  # scikit-learn's own words, and so on
    "numbers": "dtype='numeric' is not compatible",
    "extra": "unexpected keyword argument 'groups'",
    "polars": r"object has no attribute '(kind|copy)'",  # scikit-learn's, 1.6: copy
    "hidden": r"holds a ranker \(CalibratedRanker\).*Put ScoreRegressor\(ranker\)",
    "repeat": "rows were repeated",
    "named": r"get_ranking_scorer\(",
    "lost": r"Query ids did not reach|fitted with query ids.*relevance_labels\(y, groups\)",
}
NAN = {"nan", "nan_one", "named", "lost"}
WARNINGS = {
    "nan": FitFailedWarning,
    "nan_one": MissingGroupsWarning,
    "one": MissingGroupsWarning,
    "warns": CutQueriesWarning,
    "named": UserWarning,
    "lost": UserWarning,
}

# Up to scikit-learn 1.7, routing with scoring=None does not pass groups to a router, such as a
# pipeline or a search. The score is NaN, with a warning. Drop this when 1.8 is the minimum.
OLD_DEFAULT_SCORER = parse_version(sklearn.__version__) < parse_version("1.8")
ROUTERS = {"Pipeline", "ColumnTransformer", "nested"}


def cells():
    for (tool, routing, way), outcome in CELLS.items():
        for scoring in TOOLS[tool][1]:
            old = OLD_DEFAULT_SCORER and tool in ROUTERS and routing == "on"
            here = "lost" if old and way == "groups" and scoring == "score" else outcome
            yield pytest.param(
                tool,
                routing,
                way,
                scoring,
                here,
                id=f"{tool}-{routing}-{way}-{scoring}",
            )


def sides_of_the_table(tool, routing, way, scoring, outcome):
    return (tool, outcome), (outcome, way), (outcome, routing), (routing, way), scoring


@pytest.mark.parametrize(
    ("tool", "routing", "way", "scoring", "outcome"),
    covering(cells(), sides_of_the_table),
    indirect=["routing"],
)
def test_a_tool_is_right_or_raises_with_the_remedy(tool, routing, way, scoring, outcome):
    use = partial(TOOLS[tool][0], WAYS[way], scoring, routing)
    if outcome == "right":
        got, wanted = use()
        np.testing.assert_allclose(got, wanted, rtol=1e-9)
    elif outcome in WARNINGS:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            got, wanted = use()
        texts = [str(each.message) for each in caught if each.category is WARNINGS[outcome]]
        assert any(re.search(MESSAGES[outcome], text, re.DOTALL) for text in texts), caught
        if outcome in NAN:
            assert np.isnan(got).any()
        if outcome in ("nan", "lost"):  # the scores that are not NaN are right
            np.testing.assert_allclose(np.where(np.isnan(got), wanted, got), wanted)
    elif outcome in ("silent", "across"):
        use()
    else:
        errors = (ValueError, TypeError, AttributeError)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MissingGroupsWarning)
            warnings.filterwarnings("ignore", "Scoring failed|One or more of the test scores")
            with pytest.raises(errors, match=f"(?s){MESSAGES[outcome]}"):
                use()


# ------------------------------------------------------------------ what the table leaves out


@only_off
@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore")
def test_lost_groups_give_no_score_also_in_workers(routing, n_jobs):
    ranker = make_ranker(WAYS["groups"])
    what = {"cv": GroupKFold(N_FOLDS), "n_jobs": n_jobs}
    for scoring in (None, SCORER):
        scores = cross_val_score(ranker, X, Y, groups=G, scoring=scoring, **what)
        assert np.isnan(scores).all()
        with pytest.raises(ValueError, match=MESSAGES["remedy"]):
            cross_validate(ranker, X, Y, groups=G, scoring=scoring, error_score="raise", **what)
    search = GridSearchCV(ranker, {"regressor__alpha": ALPHAS}, **what).fit(X, Y, groups=G)
    assert np.isnan(search.cv_results_["mean_test_score"]).all()


@only_on
def test_groups_are_passed_in_params_when_routing_is_on(routing):
    with pytest.raises(ValueError, match="pass `groups` alongside other metadata via the `params`"):
        cross_val_score(make_ranker(WAYS["groups"]), X, Y, groups=G, cv=GroupKFold(N_FOLDS))


@only_off
def test_groups_for_fit_alone_give_no_number(routing):
    """If routing is off, params= reaches fit, but not score."""
    ranker = make_ranker(WAYS["groups"])
    what = {"cv": GroupKFold(N_FOLDS), "groups": G, "params": {"groups": G}}
    for scoring in (None, SCORER):
        with pytest.warns(UserWarning, match=f"(?s)Scoring failed.*{MESSAGES['remedy']}"):
            assert np.isnan(cross_val_score(ranker, X, Y, scoring=scoring, **what)).all()
        with pytest.raises(ValueError, match=MESSAGES["remedy"]):
            cross_val_score(ranker, X, Y, scoring=scoring, error_score="raise", **what)


@only_off
@pytest.mark.parametrize("scoring", SCORINGS)
def test_nested_search_over_a_frame_needs_the_labels_too(routing, scoring):
    way = WAYS["column"]._replace(y=LABELS, cv=QueryKFold(N_FOLDS), groups=None)
    got, wanted = use_nested(way, scoring, routing)
    np.testing.assert_allclose(got, wanted)


@both_routings
@pytest.mark.parametrize("scoring", ["score", "scorer"])
def test_sample_weight_reaches_fit_and_score(routing, scoring):
    """Weights reach fit and score, by request if routing is on, and as fit parameters if off."""
    weight = np.random.RandomState(1).uniform(0.1, 3.0, size=len(Y))
    what, measures = SCORINGS[scoring]
    way = WAYS["both"]
    ranker = make_ranker(way)
    if routing:
        with pytest.raises(UnsetMetadataPassedError, match=r"set_fit_request\({metadata}=True"):
            GridSearchCV(ranker, {"center": [True]}, cv=way.cv, scoring=what).fit(
                way.X, way.y, groups=G, sample_weight=weight
            )
        ranker.set_fit_request(sample_weight=True)
    search = GridSearchCV(ranker, {"center": [True]}, cv=way.cv, scoring=what)
    search.fit(way.X, way.y, groups=G, sample_weight=weight)
    got = [search.cv_results_[f"split{i}_test_score"][0] for i in range(N_FOLDS)]
    # If routing is off, scikit-learn passes weights to scorers since 1.7.
    weighted = routing or parse_version(sklearn.__version__) >= parse_version("1.7")
    wanted = weighted_scores(way, measures["score"], weight, weight if weighted else None)
    np.testing.assert_allclose(got, wanted)
    if routing:  # weights for the scores only
        search.estimator.set_fit_request(sample_weight=False)
        search.fit(way.X, way.y, groups=G, sample_weight=weight)
        got = [search.cv_results_[f"split{i}_test_score"][0] for i in range(N_FOLDS)]
        np.testing.assert_allclose(got, weighted_scores(way, measures["score"], None, weight))


def weighted_scores(way, measure, fit_weight, score_weight):
    scores = []
    for train, test in splits(way):
        ranker = CalibratedRanker(Ridge(), loss="ndcg@3")
        weight = None if fit_weight is None else fit_weight[train]
        ranker.fit(X[train], Y[train], groups=G[train], sample_weight=weight)
        ranks = ranker.predict(X[test], groups=G[test])
        scores.append(mean_measure(measure, ranks, test, score_weight))
    return scores


@both_routings
def test_selectors_that_would_guess_warn_or_are_refused(routing):
    with pytest.warns(MissingGroupsWarning, match=MESSAGES["one"]):
        SelectFromModel(make_ranker(WAYS["groups"], context=None)).fit(X, Y)
    with pytest.raises(TypeError):
        SelectKBest(f_regression, k=2).fit(X, LABELS)


@pytest.mark.xfail(
    strict=True,
    reason="f_classif, the default of SelectKBest, takes each (relevance, query, size) for a "
    "class of its own, and chooses columns at random without an error. Only scikit-learn can "
    "change this; the documentation says so",
)
def test_select_k_best_refuses_structured_labels():
    with pytest.raises((TypeError, ValueError)):
        SelectKBest(k=2).fit(X, LABELS)


@both_routings
@pytest.mark.parametrize("wrap", ["pipeline of a search", "frozen"])
def test_the_scorer_finds_the_ranker_wherever_it_is(routing, wrap):
    way = WAYS["column"]
    ranker = make_ranker(way).fit(way.X, Y)
    if wrap == "frozen":
        wrapped = FrozenEstimator(ranker)
    else:
        search = GridSearchCV(make_ranker(way), {"center": [True]}, cv=splits(way))
        wrapped = make_pipeline("passthrough", search).fit(way.X, Y)
    wanted = mean_measure(NDCG_10, ranker.predict(way.X), np.arange(len(Y)))
    assert SCORER(ranker, way.X, LABELS) == pytest.approx(wanted)
    assert SCORER(wrapped, way.X, LABELS) == pytest.approx(wanted)


@both_routings
@pytest.mark.parametrize("way", ["labels", "column"])
@pytest.mark.filterwarnings("ignore::sklearn_rankcal.MissingGroupsWarning")
@pytest.mark.filterwarnings("ignore:A label is above")  # the number of a class
def test_cross_val_predict_of_scores_is_refused_with_a_reason(routing, way):
    way = WAYS[way]
    with pytest.raises((AttributeError, ValueError), match="decision_function"):
        cross_val_predict(
            make_ranker(way),
            way.X,
            way.y,
            cv=way.cv,
            method="decision_function",
            **to_function(way, routing),
        )


def top_relevance(estimator, X, y):
    """Score as a user would who knows that predict returns positions."""
    return float(np.mean(y[estimator.predict(X) == 1]))


@both_routings
@pytest.mark.parametrize("scoring", [top_relevance, {"top": top_relevance}])
def test_scorers_of_the_users_own(routing, scoring):
    way = WAYS["column"]
    name = "test_top" if isinstance(scoring, dict) else "test_score"
    got = cross_validate(
        make_ranker(way),
        way.X,
        way.y,
        cv=way.cv,
        scoring=scoring,
        error_score="raise",
        **to_function(way, routing),
    )[name]
    wanted = [np.mean(Y[b][ranks_by_hand(way, a, b) == 1]) for a, b in splits(way)]
    np.testing.assert_allclose(got, wanted)


@both_routings
def test_plain_search_score_is_refused(routing):
    search = fitted_search(WAYS["labels"], SCORER)
    with pytest.raises(ValueError, match=MESSAGES["remedy"]):
        search.score(X, Y)
    if not routing:
        with pytest.raises(ValueError, match=MESSAGES["switch"]):
            search.score(X, Y, groups=G)
