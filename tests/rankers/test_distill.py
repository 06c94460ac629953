"""One regressor in the place of a ranker: `distill`."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from sklearn_rankcal import (
    CalibratedRanker,
    LinearRanker,
    distill,
    predict_scores,
    relevance_labels,
)
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.losses import DCG, PDByScores
from sklearn_rankcal.models import DocumentModel, PairwiseRidge
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.rankers import _distill  # limits, and what is drawn
from sklearn_rankcal.rankers._distill import _Drawing

#: With these columns, the centred scores of linear models of z-scores are linear.
BOTH = ["zscore", "difference"]
DATA = make_ranking(n_queries=40, n_documents=12, n_features=6, random_state=0)


def fitted(regressor, **parameters):
    ranker = CalibratedRanker(regressor, **parameters)
    return ranker.fit(DATA.X, DATA.y, groups=DATA.groups)


@pytest.fixture(autouse=True)
def few_copies(monkeypatch):
    monkeypatch.setattr(_distill, "_DRAWN_ROWS", 3_000)


@pytest.fixture(scope="module")
def teacher():
    return fitted(Ridge(), context="zscore")


# -------------------------------------------------------------------- the student


def test_the_student_is_one_regressor_with_all_that_a_single_model_has(few_trees):
    teacher = fitted("stacked")
    ranker = distill(teacher, DATA.X, DATA.groups)
    model = ranker.model_
    table = ranker.transform_table(DATA.X, groups=DATA.groups)
    assert list(ranker.get_feature_names_out())[:6] == [f"x{i}" for i in range(6)]
    assert table.shape[1] == len(ranker.get_feature_names_out())
    scores = ranker.decision_function(DATA.X, groups=DATA.groups)
    assert np.abs(model.regressor_.predict(table) * model._unit - scores).max() < 1e-9
    assert model.n_copies_ == 6
    assert 0 <= model.unexplained_ < 0.5
    assert len(pickle.dumps(ranker)) < len(pickle.dumps(teacher)) / 2


@pytest.mark.parametrize("kind", ["array", "pandas", "polars"])
def test_columns_of_the_query_are_exchanged_for_whole_queries(kind):
    """No query has two users at once, and each user keeps what belongs to her."""
    queries = Queries.from_groups(DATA.groups)
    user = queries.broadcast(np.arange(queries.n_queries))
    X = np.column_stack([DATA.X, user, user**2])
    if kind != "array":
        X = pytest.importorskip(kind).DataFrame(dict(zip("abcdefgh", X.T, strict=False)))
    scores = queries.center(DATA.X[:, 0])
    copy = _Drawing(X, scores, queries, 0).copy(0)
    drawn = np.asarray(copy)[:, -2:]
    assert (queries.max(drawn[:, 0]) == queries.min(drawn[:, 0])).all()
    np.testing.assert_array_equal(drawn[:, 0] ** 2, drawn[:, 1])
    changed = np.mean(drawn[:, 0] != user)
    assert 0.1 < changed < 0.5
    assert (np.asarray(copy)[:, 0] != DATA.X[:, 0]).any()


def test_a_linear_student_repeats_a_linear_teacher(teacher):
    student = distill(teacher, DATA.X, DATA.groups, Ridge(1e-8), context=BOTH)
    given = [r.decision_function(DATA.X, groups=DATA.groups) for r in (teacher, student)]
    centred = [Queries.from_groups(DATA.groups).center(scores) for scores in given]
    assert np.abs(centred[0] - centred[1]).max() < 1e-6
    assert student.model_.unexplained_ < 1e-9
    assert (student.predict(DATA.X, DATA.groups) == teacher.predict(DATA.X, DATA.groups)).all()


def test_what_the_student_cannot_express_is_reported(teacher, few_trees):
    stump = distill(teacher, DATA.X, DATA.groups, DecisionTreeRegressor(max_depth=1), context=None)
    deep = distill(teacher, DATA.X, DATA.groups)
    assert stump.model_.unexplained_ > 1.5 * deep.model_.unexplained_ > 0


def test_fewer_copies_are_drawn_of_many_rows(monkeypatch, teacher):
    def n_copies():
        return distill(teacher, DATA.X, DATA.groups, Ridge()).model_.n_copies_

    monkeypatch.setattr(_distill, "_MOST_ROWS", 3 * len(DATA.y))
    assert n_copies() == 2
    monkeypatch.setattr(_distill, "_MOST_ROWS", 100_000)
    for n_rows, wanted in ((20_000, 40), (100, 1), (4_000, 8)):
        monkeypatch.setattr(_distill, "_DRAWN_ROWS", n_rows)
        assert n_copies() == wanted
    monkeypatch.setattr(_distill, "_MOST_ROWS", 1)
    assert n_copies() == 0


def test_what_the_student_misses_is_measured_on_rows_that_it_has_not_seen(teacher, monkeypatch):
    monkeypatch.setattr(_distill, "_MOST_ROWS", 1)
    by_heart = DecisionTreeRegressor(random_state=0)  # repeats the scores of its own rows
    student = distill(teacher, DATA.X, DATA.groups, by_heart)
    given = student.decision_function(DATA.X, groups=DATA.groups)
    centred = Queries.from_groups(DATA.groups).center
    wanted = centred(teacher.decision_function(DATA.X, groups=DATA.groups))
    assert np.abs(centred(given) - wanted).max() < 1e-9
    assert student.model_.unexplained_ > 0.05


def test_what_the_student_misses_is_what_it_misses_of_new_queries():
    """Without context columns the student knows the queries that it has learned by their rows.

    On copies of these it missed half of what it misses of new queries.
    """
    data, new = (make_ranking(n_queries=60, random_state=seed) for seed in range(2))
    teacher = CalibratedRanker(Ridge(), context="zscore").fit(data.X, data.y, data.groups)
    student = distill(teacher, data.X, data.groups, context=None)
    centred = Queries.from_groups(new.groups).center
    wanted, given = (
        centred(ranker.decision_function(new.X, groups=new.groups)) for ranker in (teacher, student)
    )
    missed = np.sum((wanted - given) ** 2) / np.sum(wanted**2)
    assert 0.75 < student.model_.unexplained_ / missed < 1.33


def test_few_queries_are_all_learned_and_tested(teacher):
    few = np.isin(DATA.groups, np.unique(DATA.groups)[:3])
    student = distill(teacher, DATA.X[few], DATA.groups[few], Ridge())
    assert 0 < student.model_.unexplained_ < 1


def test_the_order_of_the_rows_does_not_matter(teacher):
    order = np.random.default_rng(1).permutation(len(DATA.y))
    tree = DecisionTreeRegressor(max_leaf_nodes=20, random_state=0)
    one = distill(teacher, DATA.X, DATA.groups, tree)
    other = distill(teacher, DATA.X[order], DATA.groups[order], tree)
    scores = [ranker.decision_function(DATA.X, groups=DATA.groups) for ranker in (one, other)]
    assert np.abs(scores[0] - scores[1]).max() < 1e-9


def test_progress_is_printed_if_asked(capsys, teacher):
    distill(teacher, DATA.X, DATA.groups, Ridge(), verbose=1)
    printed = capsys.readouterr().out
    assert printed.startswith("[CalibratedRanker] imitated scores of X and 6 copies (")


# -------------------------------------------------------------------- regret


def world(n_queries, seed):
    """Queries of three documents whose features say everything, and labels 0, 1 or 2 at random.

    Each feature is one of four values. The expected linear gain grows neither with the feature nor
    with its square.
    """
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, 4, (n_queries, 3))
    chances = np.array([[0.2, 0.5, 0.3], [0.7, 0.2, 0.1], [0.1, 0.2, 0.7], [0.5, 0.3, 0.2]])
    y = (rng.random((n_queries, 3, 1)) > np.cumsum(chances, axis=1)[kinds]).sum(axis=2)
    return kinds.reshape(-1, 1).astype(float), y.ravel(), np.repeat(np.arange(n_queries), 3)


def best_order_is_found(regressor, n_queries):
    X, y, groups = world(n_queries, seed=n_queries)
    model = DocumentModel(DecisionTreeRegressor(), center=False)
    teacher = CalibratedRanker(model, loss=DCG(gain="linear")).fit(X, y, groups=groups)
    ranker = distill(teacher, X, groups, regressor, context=None)
    order = np.argsort(-ranker.decision_function(np.arange(4.0)[:, None], groups=np.zeros(4)))
    return order.tolist() == [2, 0, 3, 1]  # expected labels 1.6, 1.1, .7 and .4


def test_a_student_that_can_express_the_limit_of_its_teacher_is_consistent():
    found = [best_order_is_found(DecisionTreeRegressor(), n) for n in (500, 4000)]
    assert all(found)


# -------------------------------------------------------------------- drawn rows


def drawing(X, seed=0):
    queries = Queries.uniform(len(DATA.groups) // 12, 12)
    return _Drawing(X, DATA.X[:, 0], queries, seed)


def test_each_cell_is_of_its_column_and_few_are_changed():
    copy = drawing(DATA.X).copy(0)
    changed = copy != DATA.X
    assert 0.2 < changed.mean() < 0.35
    assert changed.all(axis=1).mean() < 0.01
    for column in range(6):
        assert np.isin(copy[:, column], DATA.X[:, column]).all()
    assert (drawing(DATA.X).copy(1) != copy).any()
    assert (drawing(DATA.X, seed=1).copy(0) != copy).any()
    assert (drawing(DATA.X).copy(0) == copy).all()


def test_cells_come_from_rows_that_the_teacher_scores_alike(monkeypatch):
    monkeypatch.setattr(_distill, "_SWAP", 1.0)
    copy = drawing(DATA.X).copy(0)
    # the teacher of `drawing` scores by the first column
    assert np.corrcoef(copy[:, 0], DATA.X[:, 0])[0, 1] > 0.5
    assert abs(np.corrcoef(copy[:, 1], DATA.X[:, 1])[0, 1]) < 0.4


@pytest.mark.parametrize("kind", ["pandas", "polars", "sparse"])
def test_all_containers_have_the_same_copies(kind):
    make = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "sparse": sparse.csr_matrix}[kind]
    copy = drawing(make(DATA.X)).copy(2)
    assert type(copy) is type(make(DATA.X)) or sparse.issparse(copy)
    dense = copy.toarray() if kind == "sparse" else np.asarray(copy)
    if kind == "sparse":  # which has no tree: any row may give a cell
        assert 0.2 < (dense != DATA.X).mean() < 0.35
        assert (dense != drawing(make(DATA.X)).copy(3).toarray()).any()
    else:
        assert (dense == drawing(DATA.X).copy(2)).all()


def test_rows_with_missing_values_infinity_and_categories_are_drawn():
    X = pd.DataFrame(DATA.X.copy())
    X[1] = X[1].where(X[1] > 0)
    X.loc[3, 2] = np.inf
    X["brand"] = pd.Categorical(np.where(DATA.X[:, 0] > 0, "a", "b"))
    copy = drawing(X).copy(0)
    assert copy.dtypes.equals(X.dtypes)
    assert copy[1].isna().mean() == pytest.approx(X[1].isna().mean(), abs=0.1)


# -------------------------------------------------------------------- distill


def test_a_ranker_in_a_pipeline_is_distilled():
    pipe = make_pipeline(
        StandardScaler(), CalibratedRanker(Ridge(), context="zscore", loss="pd_by_scores")
    )
    pipe.fit(DATA.X, relevance_labels(DATA.y, DATA.groups))
    student = distill(pipe, DATA.X, DATA.groups, Ridge(1e-8), context=BOTH)
    ranks = student.predict(DATA.X, groups=DATA.groups)
    teacher = predict_scores(pipe, DATA.X, DATA.groups)
    scores = student.decision_function(DATA.X, groups=DATA.groups)
    assert np.corrcoef(teacher, scores)[0, 1] > 0.999
    assert isinstance(student.loss_, PDByScores)
    assert ranks.min() == 1
    assert student.score(DATA.X, DATA.y, groups=DATA.groups) > 0.7


def test_rows_without_labels_teach(teacher):
    more = make_ranking(n_queries=30, n_documents=7, n_features=6, random_state=5)
    student = distill(teacher, more.X, more.groups, Ridge(1e-8), context=BOTH)
    wanted = teacher.predict(DATA.X, groups=DATA.groups)
    assert (student.predict(DATA.X, groups=DATA.groups) == wanted).mean() > 0.99


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_the_column_of_query_ids_stays_one(make):
    columns = {f"c{i}": DATA.X[:, i] for i in range(3)} | {"qid": [f"q{g}" for g in DATA.groups]}
    frame = make(columns | {f"c{i}": DATA.X[:, i] for i in range(3, 6)})
    teacher = CalibratedRanker(Ridge(), context="zscore", group_column="qid").fit(frame, DATA.y)
    student = distill(teacher, frame, regressor=Ridge(1e-8), context=BOTH)
    assert (student.predict(frame) == teacher.predict(frame)).all()
    assert student.model_.unexplained_ < 1e-9
    assert "qid" not in student.get_feature_names_out()
    assert student.coef_[3] == 0.0


def test_other_rankers_teach():
    linear = LinearRanker("softmax").fit(DATA.X, DATA.y, groups=DATA.groups)
    student = distill(linear, DATA.X, DATA.groups, Ridge(1e-8), context="difference")
    same = student.predict(DATA.X, DATA.groups) == linear.predict(DATA.X, DATA.groups)
    assert same.mean() > 0.99


def test_a_ranker_of_lightgbm_teaches():
    lightgbm = pytest.importorskip("lightgbm")
    teacher = lightgbm.LGBMRanker(n_estimators=10, verbose=-1, n_jobs=1)
    teacher.fit(DATA.X, DATA.y.astype(int), group=np.full(40, 12))
    student = distill(teacher, DATA.X, DATA.groups, context=None)
    assert student.model_.unexplained_ < 0.5
    assert student.calibrated_over_.startswith("no distributions")


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"regressor": LogisticRegression()}, TypeError, "is a classifier"),
        ({"regressor": CalibratedRanker()}, TypeError, "is a ranker"),
        ({"regressor": "ridge"}, TypeError, "regressor must be None or a regressor"),
        ({"X": DATA.X[:, :5]}, ValueError, "expecting 6 features"),
        ({"context": "level"}, ValueError, "Unknown context"),
    ],
)
def test_bad_input_is_refused(teacher, change, error, words):
    arguments = {"X": DATA.X, "groups": DATA.groups} | change
    with pytest.raises(error, match=words):
        distill(teacher, **arguments)


def test_a_teacher_without_scores_or_without_a_fit_is_refused():
    pairs = fitted(PairwiseRidge(), loss="pd")
    with pytest.raises(TypeError, match="has no scores"):
        distill(pairs, DATA.X, DATA.groups)
    with pytest.raises(NotFittedError):
        distill(CalibratedRanker(), DATA.X, DATA.groups)


def test_a_teacher_that_predicts_nan_is_refused():
    class Broken(CalibratedRanker):
        def decision_function(self, X, groups=None):
            return np.full(len(X), np.nan)

    broken = Broken(Ridge()).fit(DATA.X, DATA.y, groups=DATA.groups)
    with pytest.raises(ValueError, match="predicts NaN or infinity"):
        distill(broken, DATA.X, DATA.groups)


def test_unknown_categories_are_refused(few_trees):
    names = np.array(["a", "b", "c"])[np.arange(len(DATA.y)) % 3]

    def frame(values):
        return pd.DataFrame(DATA.X).add_prefix("x").assign(brand=pd.Categorical(values))

    teacher = CalibratedRanker("boosting").fit(frame(names), DATA.y, groups=DATA.groups)
    student = distill(teacher, frame(names), DATA.groups)
    assert student.model_.unexplained_ < 0.6
    with pytest.raises(ValueError, match=r"categories that the teacher was not fitted to.*'d'"):
        distill(teacher, frame(np.where(names == "c", "d", names)), DATA.groups)


def test_the_student_reads_tables_as_every_ranker_with_its_regressor():
    teacher = fitted(Ridge(), context=None)
    table = sparse.csr_matrix(DATA.X)
    student = distill(teacher, table, DATA.groups, context=None)
    expected = distill(teacher, DATA.X, DATA.groups, context=None).predict(DATA.X, DATA.groups)
    np.testing.assert_array_equal(student.predict(table, groups=DATA.groups), expected)
    frame = pd.DataFrame(DATA.X).rename(columns=str).assign(title="red")
    with pytest.raises(ValueError, match="Column 'title' of X contains text"):
        distill(teacher, frame, DATA.groups)
