"""The recipes of the page "Serving": each file scores rows as the fitted ranker does."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge

from sklearn_rankcal import CalibratedRanker, LinearRanker, distill
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.inspection import served_columns
from sklearn_rankcal.models import BoostingCV, PairwiseRidge

PAGE = Path(__file__).parents[2] / "doc" / "serving.rst"
COLUMNS = ["bm25(title)", "bm25(body)", "age", "price", "clicks"]
DATA = make_ranking(n_queries=50, n_documents=20, n_features=5, n_informative=4, random_state=0)
# 32 bits, as the engines have them
FRAME = pd.DataFrame(DATA.X.astype(np.float32), columns=COLUMNS)


def student_of(regressor):
    teacher = CalibratedRanker(Ridge(), loss="ndcg@10", context="zscore")
    teacher.fit(FRAME, DATA.y, groups=DATA.groups)
    return distill(teacher, FRAME, DATA.groups, regressor, context=None)


@pytest.fixture(scope="module")
def lightgbm_student():
    lightgbm = pytest.importorskip("lightgbm")
    return student_of(lightgbm.LGBMRegressor(n_estimators=30, verbose=-1, n_jobs=1))


@pytest.fixture(scope="module")
def xgboost_student():
    xgboost = pytest.importorskip("xgboost")
    return student_of(xgboost.XGBRegressor(n_estimators=30, n_jobs=1))


def assert_same_order(student, scores):
    """The scores are those of the ranker, up to a positive factor and a constant."""
    given = student.decision_function(FRAME, groups=DATA.groups)
    assert len(scores) == 1000
    assert len(np.unique(scores)) > 500
    factor = np.ptp(given) / np.ptp(scores)
    np.testing.assert_allclose(
        given - given[0], factor * (scores - scores[0]), atol=3e-6 * np.ptp(given)
    )


# -------------------------------------------------------------------- readers of the formats


def read_xgboost(node, row):
    """Row is a dictionary; the split names a column, and values are compared with 32 bits.

    A column without a value is 0, as in the plugins of Elasticsearch and OpenSearch.
    """
    while "leaf" not in node:
        yes = np.float32(row.get(node["split"], 0.0)) < np.float32(node["split_condition"])
        wanted = node["yes" if yes else "no"]
        node = next(child for child in node["children"] if child["nodeid"] == wanted)
    return node["leaf"]


def read_solr(node, row):
    """All numbers are texts, and are read with 32 bits."""
    while "value" not in node:
        assert isinstance(node["threshold"], str)
        goes_left = np.float32(row[node["feature"]]) <= np.float32(node["threshold"])
        node = node["left" if goes_left else "right"]
    return float(node["value"])


def read_eland(tree, row):
    nodes = {node["node_index"]: node for node in tree["tree_structure"]}
    node = nodes[0]
    while "leaf_value" not in node:
        value, threshold = row[node["split_feature"]], node["threshold"]
        assert node["decision_type"] in ("lte", "lt")
        goes_left = value <= threshold if node["decision_type"] == "lte" else value < threshold
        node = nodes[node["left_child" if goes_left else "right_child"]]
    return node["leaf_value"]


def code_of_page(*names):
    """Functions of the page, by their names."""
    lines, code = PAGE.read_text().splitlines(), []
    for name in names:
        start = next(i for i, line in enumerate(lines) if line.startswith(f">>> def {name}("))
        end = next(i for i in range(start + 1, len(lines)) if not lines[i].startswith("... "))
        code += [line[4:] for line in lines[start:end]]
    scope = {"np": np, "pd": pd}
    exec("\n".join(code), scope)
    return scope


# -------------------------------------------------------------------- recipes


def test_vespa_and_opensearch_read_the_dump_of_xgboost(xgboost_student):
    trees = xgboost_student.model_.regressor_.get_booster().get_dump(dump_format="json")
    definition = json.loads("[" + ",".join(trees) + "]")
    rows = FRAME.to_dict("records")
    scores = [sum(read_xgboost(tree, row) for tree in definition) for row in rows]
    assert_same_order(xgboost_student, np.array(scores))


def test_plugins_that_send_0_for_missing_values_and_refuse_negative_scores():
    xgboost = pytest.importorskip("xgboost")
    gaps = FRAME.mask(np.random.default_rng(0).random(FRAME.shape) < 0.2)
    regressor = xgboost.XGBRegressor(n_estimators=30, n_jobs=1)
    teacher = CalibratedRanker(Ridge(), loss="ndcg@10", context="zscore")
    teacher.fit(gaps.fillna(0), DATA.y, groups=DATA.groups)
    student = distill(teacher, gaps.fillna(0), DATA.groups, regressor, context=None)
    dump = student.model_.regressor_.get_booster().get_dump(dump_format="json")
    trees = code_of_page("leaves", "raise_scores")["raise_scores"]([*map(json.loads, dump)])
    rows = [row.dropna().to_dict() for _, row in gaps.iterrows()]  # what the plugin knows
    scores = np.array([sum(read_xgboost(tree, row) for tree in trees) for row in rows])
    given = student.decision_function(gaps.fillna(0), groups=DATA.groups)
    assert given.min() < 0 < scores.min()
    np.testing.assert_allclose(np.diff(scores), np.diff(given), atol=1e-5)


def test_solr_reads_the_trees_that_the_page_writes(lightgbm_student):
    booster = lightgbm_student.model_.regressor_.booster_
    solr_model = code_of_page("solr_tree", "solr_model")["solr_model"]
    model = json.loads(json.dumps(solr_model(booster, served_columns(lightgbm_student))))
    assert [feature["name"] for feature in model["features"]] == COLUMNS
    trees = model["params"]["trees"]
    scores = [
        sum(float(tree["weight"]) * read_solr(tree["root"], row) for tree in trees)
        for row in FRAME.to_dict("records")
    ]
    assert_same_order(lightgbm_student, np.array(scores))


@pytest.mark.parametrize("kind", ["lightgbm", "xgboost", "forest"])
def test_elasticsearch_reads_what_eland_writes(kind, request):
    transformers = pytest.importorskip("eland.ml.transformers")
    if kind == "forest":
        student = student_of(RandomForestRegressor(10, random_state=0))
    else:
        student = request.getfixturevalue(f"{kind}_student")
    regressor = student.model_.regressor_
    if kind == "xgboost":  # eland takes the names of columns from the list alone
        regressor.get_booster().feature_names = None
    model = transformers.get_model_transformer(regressor, feature_names=served_columns(student))
    ensemble = model.transform().to_dict()["ensemble"]
    assert ensemble["feature_names"] == COLUMNS
    weights = ensemble.get("aggregate_output", {}).get("weighted_sum", {}).get("weights")
    trees = [one["tree"] for one in ensemble["trained_models"]]
    weights = weights or np.ones(len(trees))
    dtype = np.float32 if kind == "xgboost" else np.float64
    scores = [
        sum(w * read_eland(tree, row) for w, tree in zip(weights, trees, strict=True))
        for row in FRAME.to_numpy(dtype)
    ]
    assert_same_order(student, np.array(scores))


# -------------------------------------------------------------------- served_columns


def test_columns_are_served_in_their_order():
    frame = FRAME.assign(qid=DATA.groups)[[*COLUMNS[:2], "qid", *COLUMNS[2:]]]
    ranker = CalibratedRanker(Ridge(), context=None, group_column="qid").fit(frame, DATA.y)
    assert served_columns(ranker) == COLUMNS
    assert served_columns(LinearRanker().fit(FRAME, DATA.y, groups=DATA.groups)) == COLUMNS


def test_context_columns_cannot_be_served():
    ranker = CalibratedRanker(Ridge(), context=["zscore", "rank"])
    ranker.fit(FRAME, DATA.y, groups=DATA.groups)
    named = re.escape("needs 10 columns")
    with pytest.raises(ValueError, match=rf"{named}.*\(bm25\(title\)__zscore, .*context=None"):
        served_columns(ranker)


def test_only_a_single_regressor_can_be_served():
    for model, loss in ((BoostingCV((None, "forest")), "ndcg"), (PairwiseRidge(), "pd")):
        ranker = CalibratedRanker(model, loss=loss).fit(FRAME, DATA.y, groups=DATA.groups)
        with pytest.raises(TypeError, match="fits one regressor to rows"):
            served_columns(ranker)
