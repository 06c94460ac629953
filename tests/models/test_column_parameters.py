"""Parameters of regressors that name or count columns, beside context columns."""

import inspect
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import all_estimators

from sklearn_rankcal import BoostedRanker, CalibratedRanker, context_columns, distill
from sklearn_rankcal.models import DocumentModel, ResidualPairModel, ResidualProductModel
from sklearn_rankcal.models._column_parameters import COLUMN_PARAMETERS  # is it complete?
from tests.column_tools import LIBRARIES, MONOTONE, NAMES, behind, boosted, documents

X, Y, G = documents()
FIRST = G < 8  # the queries in which values rise
BOOSTING = [library for library in LIBRARIES if library in ("lightgbm", "xgboost")]

#: The forms in which a library takes a constraint of the first column.
FORMS = {
    "sklearn": [{"price": 1}, [1, 0, 0], np.array([1, 0, 0])],
    "lightgbm": [[1, 0, 0], "1,0,0"],
    "xgboost": [{"price": 1}, (1, 0, 0), (1,), "(1,0,0)"],
    "catboost": [{"price": 1}, {0: 1}, [1, 0, 0], [1], "(1,0,0)"],
}
CONTEXTS = ("auto", "zscore", "difference", "rank", None)
CASES = [(library, forms[0], context) for library, forms in FORMS.items() for context in CONTEXTS]
CASES += [(library, form, "auto") for library, forms in FORMS.items() for form in forms[1:]]


def constrained(library, form, **parameters):
    return boosted(library, **{MONOTONE[library]: form}, **parameters)


# -------------------------------------------------------------------- monotone constraints


@pytest.mark.parametrize("library, form, context", CASES, ids=str)
def test_a_document_whose_column_rises_never_falls_behind(library, form, context):
    given = constrained(library, form)
    ranker = CalibratedRanker(given, context=context).fit(X, Y, groups=G)
    assert behind(ranker, X[FIRST], G[FIRST]) == 0
    described = ranker.model_.context_
    if context == "zscore":
        assert described == {"zscore": NAMES[1:]}
    elif context is not None:  # the constraint also holds for these columns
        assert described == {"difference" if context == "auto" else context: NAMES}
    assert given.get_params()[MONOTONE[library]] is not None  # the user's own is not changed


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_falling_column_of_an_array(library):
    form = {"catboost": [0, -1, 0], "xgboost": (0, -1, 0)}.get(library, [0, -1, 0])
    table = X.to_numpy()
    ranker = CalibratedRanker(constrained(library, form)).fit(table, Y, groups=G)
    assert behind(ranker, X[FIRST], G[FIRST], place=1, sign=-1, frame=False) == 0
    free = CalibratedRanker(boosted(library)).fit(table, Y, groups=G)
    assert behind(free, X[FIRST], G[FIRST], place=1, sign=-1, frame=False) > 0


@pytest.mark.parametrize("context", ["auto", ["difference", "rank"], None])
@pytest.mark.parametrize("library", BOOSTING)
def test_a_boosted_ranker_keeps_the_order_too(library, context):
    for form in FORMS[library][:2]:
        ranker = BoostedRanker(regressor=constrained(library, form), context=context)
        assert behind(ranker.fit(X, Y, groups=G), X[FIRST], G[FIRST]) == 0


@pytest.mark.parametrize("alias", ["mc", "monotone_constraint", "monotonic_cst"])
@pytest.mark.parametrize("ranker", [CalibratedRanker, BoostedRanker])
def test_aliases_of_lightgbm(ranker, alias):
    one = ranker(regressor=boosted("lightgbm", **{alias: [1, 0, 0]})).fit(X, Y, groups=G)
    assert one.model_.context_ == {"difference": NAMES}
    assert behind(one, X[FIRST], G[FIRST]) == 0


def test_ties_and_constant_columns():
    # whole numbers, many of which are equal, and queries in which all are
    table = X.round().assign(price=np.where(G % 3 == 0, 1.0, X["price"].round()))
    for context in ("auto", "difference", "rank", ["rank", "difference"]):
        one = CalibratedRanker(boosted("sklearn", monotonic_cst={"price": 1}))
        one.set_params(context=context).fit(table, Y, groups=G)
        assert behind(one, table[FIRST], G[FIRST], rises=(1.0, 3.0)) == 0


def test_differences_and_ranks_of_the_others_never_rise():
    rng = np.random.default_rng(0)
    for _ in range(150):
        n = rng.integers(2, 8)
        before = rng.integers(0, 4, n) * rng.choice([1.0, 0.1, 7.0])
        before[rng.random(n) < 0.1] = np.nan
        one = rng.integers(n)
        before[one] = 2.0
        after = before.copy()
        after[one] += rng.choice([0.1, 1.0, 100.0])
        rows = [context_columns(v[:, None], np.zeros(n), ["difference", "rank"])[:, 1:]
                for v in (before, after)]  # fmt: skip
        moves = rows[1] - rows[0]
        assert (moves[one] >= -1e-12).all()
        assert (np.nan_to_num(np.delete(moves, one, axis=0)) <= 1e-12).all()


def test_the_constraint_of_a_student_and_with_validation_queries():
    one = boosted("sklearn", monotonic_cst={"price": 1})
    teacher = CalibratedRanker(Ridge()).fit(X, Y, groups=G)
    student = distill(teacher, X, G, one)
    assert behind(student, X[FIRST], G[FIRST]) == 0
    for library, forms in FORMS.items():
        stopped = CalibratedRanker(constrained(library, forms[0]), validation_queries=0.2)
        stopped.set_params(random_state=0, n_iter_no_change=5).fit(X, Y, groups=G)
        assert behind(stopped, X[FIRST], G[FIRST]) == 0


def test_all_columns_constrained_leave_no_zscores():
    one = HistGradientBoostingRegressor(monotonic_cst=[1, 1, -1])
    ranker = CalibratedRanker(one, context="zscore").fit(X, Y, groups=G)
    assert ranker.model_.context_ == {} and list(ranker.transform_table(X, G)) == NAMES
    ranker = CalibratedRanker(one).fit(X, Y, groups=G)
    assert ranker.model_.context_ == {"difference": NAMES}


def test_automatic_context_has_zscores_unless_a_described_column_is_constrained():
    long, y, groups = documents(size=12)
    flat = long.assign(price=groups % 5.0)  # no differences inside queries
    one = HistGradientBoostingRegressor(monotonic_cst={"price": 1})
    ranker = CalibratedRanker(one).fit(flat, y, groups=groups)
    assert ranker.model_.context_ == {"zscore": NAMES[1:]}
    assert behind(ranker, flat[groups < 3], groups[groups < 3]) == 0


def test_forests_have_constraints_too():
    one = RandomForestRegressor(20, monotonic_cst=[1, 0, 0], random_state=0)
    ranker = CalibratedRanker(one).fit(X, Y, groups=G)
    assert behind(ranker, X[FIRST], G[FIRST]) == 0


@pytest.mark.parametrize(
    "parameters, words",
    [
        ({"monotonic_cst": [1, 0]}, "monotonic_cst has 2 entries, but X has 3 columns"),
        ({"monotonic_cst": {"cost": 1}}, "monotonic_cst refers to column 'cost'.*'price'"),
        ({"interaction_cst": [[0, 7]]}, "interaction_cst refers to column 7"),
    ],
)
def test_errors_count_the_columns_of_x(parameters, words):
    one = HistGradientBoostingRegressor(**parameters)
    with pytest.raises(ValueError, match=words):
        CalibratedRanker(one).fit(X, Y, groups=G)


def test_parameters_that_cannot_be_extended():
    inner = HistGradientBoostingRegressor(monotonic_cst=[1, 0, 0])
    for outer in (
        make_pipeline(FunctionTransformer(), inner),
        TransformedTargetRegressor(inner),
    ):
        with pytest.raises(ValueError, match=r"monotonic_cst refers to the columns.*context=None"):
            CalibratedRanker(outer).fit(X, Y, groups=G)
        ranker = CalibratedRanker(outer, context=None).fit(X, Y, groups=G)
        assert behind(ranker, X[FIRST], G[FIRST]) == 0
    for grid in (
        {"monotonic_cst": [{"price": 1}]},
        [{"max_depth": [3]}, {"monotonic_cst": [None]}],
    ):
        search = GridSearchCV(HistGradientBoostingRegressor(max_iter=3), grid, cv=2)
        with pytest.raises(ValueError, match=r"monotonic_cst in param_grid refers.*context=None"):
            CalibratedRanker(search).fit(X, Y, groups=G)
    with pytest.raises(ValueError, match="Pass monotone_constraints as a list"):
        CalibratedRanker(constrained("xgboost", "first")).fit(X, Y, groups=G)


@pytest.mark.parametrize("loss", ["pd", "map"])
def test_pairs_keep_no_constraint(loss):
    one, y = HistGradientBoostingRegressor(monotonic_cst=[1, 0, 0]), (Y > 1).astype(int)
    with pytest.raises(ValueError, match=r"monotonic_cst.*pd_by_scores"):
        CalibratedRanker(one, loss=loss).fit(X, y, groups=G)
    kind = {"pd": ResidualPairModel, "map": ResidualProductModel}[loss]
    with pytest.raises(ValueError, match=r"monotonic_cst.*pd_by_scores"):
        CalibratedRanker(kind(DocumentModel(one)), loss=loss).fit(X, y, groups=G)
    ranker = CalibratedRanker(one, loss=f"{loss}_by_scores").fit(X, y, groups=G)
    assert behind(ranker, X[FIRST], G[FIRST]) == 0


@pytest.mark.parametrize("loss", ["pd", "map"])
def test_pairs_refuse_a_constraint_inside_a_pipeline(loss):
    short = make_pipeline(constrained("xgboost", (1,)))  # which fits tables with more columns
    with pytest.raises(ValueError, match=r"monotone_constraints.*pd_by_scores"):
        CalibratedRanker(short, loss=loss, context=None).fit(X, (Y > 1).astype(int), groups=G)


# -------------------------------------------------------------------- other parameters


def interactions(ranker, one, other):
    """The largest change that two columns make together, beyond the sum of their own."""
    rng = np.random.default_rng(3)
    base = X[FIRST].to_numpy()
    moved = [base.copy() for _ in range(4)]
    for number, place in ((1, one), (2, other), (3, one), (3, other)):
        moved[number][:, place] = rng.permutation(base[:, place]) if number < 3 else 0
    moved[3][:, one], moved[3][:, other] = moved[1][:, one], moved[2][:, other]
    # what holds for a score holds in one query, in which nothing else moves
    scores = [ranker.decision_function(pd.DataFrame(m, columns=NAMES), groups=G[FIRST])
              for m in moved]  # fmt: skip
    return np.abs(scores[3] - scores[1] - scores[2] + scores[0]).max()


@pytest.mark.parametrize("context", ["auto", ["difference", "rank"]])
@pytest.mark.parametrize(
    "library, name, groups",
    [
        ("sklearn", "interaction_cst", [{0}, {1, 2}]),
        ("sklearn", "interaction_cst", [[0]]),  # the others are one more group
        ("sklearn", "interaction_cst", "no_interactions"),
        ("lightgbm", "interaction_constraints", [[0], [1, 2]]),
        ("lightgbm", "interaction_constraints", "[0],[1,2]"),
        ("xgboost", "interaction_constraints", [["price"], ["match", "fresh"]]),
        ("xgboost", "interaction_constraints", "[[0], [1, 2]]"),
    ],
)
def test_columns_that_may_not_interact(library, name, groups, context):
    # "price" and "match" multiply in the labels
    y = np.digitize(X["price"] * X["match"], [-1.0, 0.0, 1.0])
    free = CalibratedRanker(boosted(library), context=context).fit(X, y, groups=G)
    assert interactions(free, 0, 1) > 1e-3
    ranker = CalibratedRanker(boosted(library, **{name: groups}), context=context)
    ranker.fit(X, y, groups=G)
    assert interactions(ranker, 0, 1) < 1e-6
    assert "price" in next(iter(ranker.model_.context_.values()))


def test_numbers_of_columns_count_for_context_columns():
    # a column of weight 0 is not used, and neither are the columns that describe it
    for library, name in (("lightgbm", "feature_contri"), ("lightgbm", "fp")):
        one = boosted(library, **{name: [0.0, 1.0, 1.0]})
        ranker = CalibratedRanker(one, context=["zscore", "rank"]).fit(X, Y, groups=G)
        used = ranker.model_.regressor_.feature_importances_
        assert used[[0, 3, 6]].sum() == 0 and used[[1, 4]].sum() > 0
    module = pytest.importorskip("xgboost")
    one = module.XGBRegressor(
        n_estimators=20, colsample_bynode=0.4, feature_weights=[0.0, 1.0, 1.0], random_state=0
    )
    used = CalibratedRanker(one).fit(X, Y, groups=G).model_.regressor_.feature_importances_
    assert used[[0, 3]].sum() == 0 and used[[1, 4]].sum() > 0


@pytest.mark.parametrize(
    "library, parameters",
    [
        ("sklearn", {"categorical_features": [0]}),
        ("sklearn", {"categorical_features": ["price"]}),
        ("sklearn", {"categorical_features": [True, False, False]}),
        ("lightgbm", {"cat_feature": "0"}),
        ("xgboost", {"feature_types": ["c", "q", "q"], "enable_categorical": True}),
        ("catboost", {"cat_features": [0]}),
        ("catboost", {"cat_features": ["price"]}),
        ("catboost", {"ignored_features": ["price"]}),
        ("catboost", {"ignored_features": [0]}),
    ],
    ids=str,
)
def test_categories_and_ignored_columns_are_not_described(library, parameters):
    codes = np.abs(X["price"].round().astype(int)) % 5
    frame = X.assign(price=codes)
    if library == "xgboost":
        frame = frame.astype({"price": float})
    ranker = CalibratedRanker(boosted(library, n=5, **parameters), context="zscore")
    ranker.fit(frame, Y, groups=G)
    assert ranker.model_.context_ == {"zscore": NAMES[1:]}
    assert np.isfinite(ranker.decision_function(frame, groups=G)).all()


# -------------------------------------------------------------------- the list

_COLUMNS = re.compile("feature|column|cst|constraint|contri|categor|interaction|monoton|_cat|cat_")
#: Parameters that look as if they named or counted columns, and what they have instead.
_OTHERS = {
    "sklearn": {"max_features", "bootstrap_features"},
    "xgboost": {"enable_categorical", "max_cat_threshold", "max_cat_to_onehot"},
    "lightgbm": {
        # shares, seeds, and limits for all columns
        "feature_fraction", "feature_fraction_seed", "feature_fraction_bynode", "sub_feature",
        "sub_feature_bynode", "feature_pre_filter", "cat_l2", "cat_smooth", "max_cat_threshold",
        "max_cat_to_onehot", "saved_feature_importance_type", "monotone_constraints_method",
        "monotone_penalty", "monotone_splits_penalty", "monotone_constraining_method",
        "predict_contrib", "is_predict_contrib", "contrib",
        # for data in files only, which have no context columns
        "ignore_column", "ignore_feature", "label_column", "weight_column", "group_column",
        "query_column",
    },
    "catboost": {
        "feature_border_type", "feature_calcers", "sparse_features_conflict_fraction",
        "gpu_cat_features_storage",
        # names of columns by their place, which context columns do not change
        "per_float_feature_quantization", "per_feature_ctr",
    },
}  # fmt: skip


def _names_of(library):
    if library == "sklearn":
        found = {
            name
            for _, kind in all_estimators(type_filter="regressor")
            for name in inspect.signature(kind.__init__).parameters
        }
        return found
    module = pytest.importorskip(library)
    if library == "lightgbm":
        from lightgbm.basic import _ConfigAliases

        aliases = _ConfigAliases._get_all_param_aliases()
        return {alias for names in aliases.values() for alias in names} | set(aliases)
    if library == "catboost":
        return set(inspect.signature(module.CatBoostRegressor.__init__).parameters)
    return set(module.XGBRegressor().get_params())


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_list_has_all_parameters_of_columns(library):
    # A new parameter of a library belongs into COLUMN_PARAMETERS, or here into _OTHERS.
    names = _names_of(library)
    suspects = {name for name in names if _COLUMNS.search(name)}
    known = set(COLUMN_PARAMETERS[library])
    assert suspects - known - _OTHERS[library] == set()
    short = {"mc", "fc", "fp"} if library == "lightgbm" else set()
    assert known <= names | short and short <= names


def test_the_list_has_all_aliases_of_lightgbm():
    pytest.importorskip("lightgbm")
    from lightgbm.basic import _ConfigAliases

    known = set(COLUMN_PARAMETERS["lightgbm"])
    for names in _ConfigAliases._get_all_param_aliases().values():
        assert known.isdisjoint(names) or known >= set(names)
