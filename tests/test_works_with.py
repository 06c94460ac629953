"""Rankers with the tools of doc/works_with.rst that have no test file of their own."""

import dask.array as da
import joblib
import numpy as np
import pandas as pd
import pytest
from dask.distributed import Client, LocalCluster
from sklearn.datasets import dump_svmlight_file
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_rankcal import (
    BoostedRanker,
    CalibratedRanker,
    LinearRanker,
    MissingGroupsWarning,
    QueryKFold,
    ScoreRegressor,
    predict_scores,
    relevance_labels,
)
from sklearn_rankcal.dask import DaskCalibratedRanker
from sklearn_rankcal.datasets import load_letor, make_ranking
from sklearn_rankcal.decoders import decode_scores
from sklearn_rankcal.label_ranking import BlendedRegressor
from sklearn_rankcal.losses import MAP
from sklearn_rankcal.metrics import get_ranking_scorer, ndcg_score
from sklearn_rankcal.models import BilinearPairs, PairModel, PairwiseRidge

pytestmark = pytest.mark.usefixtures("few_trees")

DATA = make_ranking(n_queries=30, n_documents=8, random_state=0)
X, Y, GROUPS = DATA.X, DATA.y, DATA.groups
LABELS = relevance_labels(Y, GROUPS)
RANKERS = [
    CalibratedRanker("boosting"),
    CalibratedRanker("stacked"),
    CalibratedRanker("boosting", loss="pd"),
    CalibratedRanker(PairwiseRidge(), loss="pd"),
    CalibratedRanker(BilinearPairs(), loss="pd"),
    CalibratedRanker(PairModel(Ridge(), symmetric=True), loss=MAP(threshold=2)),
    CalibratedRanker("boosting", loss=MAP(threshold=2)),
    CalibratedRanker(BlendedRegressor(n_estimators=20, random_state=0)),
    CalibratedRanker(LogisticRegression(max_iter=1000)),
    LinearRanker(),
    make_pipeline(StandardScaler(), CalibratedRanker(Ridge())),
]
BOOSTED = [("lightgbm", "LGBMRegressor"), ("xgboost", "XGBRegressor")]
REGRESSORS = [*BOOSTED, ("catboost", "CatBoostRegressor")]


def regressor_of(library, name):
    quiet = {
        "lightgbm": {"verbose": -1},
        "xgboost": {},
        "catboost": {"verbose": 0, "allow_writing_files": False},
    }[library]
    return getattr(pytest.importorskip(library), name)(n_estimators=20, **quiet)


@pytest.mark.parametrize(("library", "name"), REGRESSORS)
def test_regressors_of_boosting_libraries(library, name):
    ranker = CalibratedRanker(regressor_of(library, name), loss="ndcg@5")
    scores = ranker.fit(X, LABELS).decision_function(X, groups=GROUPS)
    assert ndcg_score(Y, scores, groups=GROUPS, k=5) > 0.8
    table = ranker.transform_table(X, groups=GROUPS)
    np.testing.assert_allclose(ranker.model_.regressor_.predict(table), scores)


def skops_again(ranker):
    io = pytest.importorskip("skops.io")
    data = io.dumps(ranker)
    unknown = io.get_untrusted_types(data=data)
    assert unknown  # the classes of this package, which a user reads before trusting them
    return io.loads(data, trusted=unknown), unknown


@pytest.mark.parametrize("ranker", RANKERS, ids=str)
def test_files_of_joblib_and_skops(tmp_path, ranker):
    ranks = ranker.fit(X, LABELS).predict(X, groups=GROUPS)
    joblib.dump(ranker, tmp_path / "ranker.joblib", compress=3)
    again = joblib.load(tmp_path / "ranker.joblib")
    np.testing.assert_array_equal(again.predict(X, groups=GROUPS), ranks)
    again, unknown = skops_again(ranker)
    np.testing.assert_array_equal(again.predict(X, groups=GROUPS), ranks)
    assert all(name.startswith(("sklearn_rankcal.", "sklearn.")) for name in unknown)


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_skops_files_of_boosted_rankers(library):
    pytest.importorskip(library)
    ranker = BoostedRanker(regressor=library).fit(X, Y, groups=GROUPS)
    again, unknown = skops_again(ranker)
    np.testing.assert_array_equal(
        again.decision_function(X, groups=GROUPS), ranker.decision_function(X, groups=GROUPS)
    )
    assert any(name.startswith(f"{library}.") for name in unknown)


# -------------------------------------------------------------------- PyTerrier

IDS = np.array([f"q{g}" for g in GROUPS])
DOCUMENTS = np.array([f"d{row}" for row in range(len(Y))])
TEST = GROUPS >= 20


@pytest.fixture
def pt():
    """PyTerrier without Java, which only its indexes need."""
    return pytest.importorskip("pyterrier")


@pytest.fixture
def search_results():
    """The candidates, with their features, and qrels, as PyTerrier names their columns."""
    results = pd.DataFrame({"qid": IDS, "query": "words", "docno": DOCUMENTS, "features": list(X)})
    qrels = pd.DataFrame({"qid": IDS, "docno": DOCUMENTS, "label": Y.astype(int)})
    return results.assign(score=0.0, rank=0), qrels


def terrier_ndcg(pt, transformer, results, qrels):
    topics = results.loc[TEST, ["qid", "query"]].drop_duplicates()
    pipeline = pt.Transformer.from_df(results) >> transformer
    table = pt.Experiment([pipeline], topics, qrels, eval_metrics=["ndcg_cut_5"])
    return table.loc[0, "ndcg_cut_5"]


def own_ndcg(ranker):
    ranks = ranker.predict(X[TEST], groups=GROUPS[TEST])
    options = {"groups": GROUPS[TEST], "k": 5, "gain": "linear", "zero_division": 0}
    return ndcg_score(Y[TEST], ranks=ranks, **options)


@pytest.mark.filterwarnings("ignore")  # PyTerrier's own warnings
@pytest.mark.parametrize("loss", ["ndcg@5", "pd"])
def test_positions_in_a_pyterrier_pipeline(pt, search_results, loss):
    results, qrels = search_results
    train = results[~TEST].merge(qrels, on=["qid", "docno"], how="left").fillna({"label": 0})
    ranker = CalibratedRanker(Ridge() if loss != "pd" else None, loss=loss)
    ranker.fit(np.stack(train["features"]), train["label"], groups=train["qid"])

    def rank_again(found):
        table = np.stack(found["features"])
        scores = -ranker.predict(table, groups=found["qid"]).astype(float)
        return pt.model.add_ranks(found.assign(score=scores))

    transformer = pt.apply.generic(rank_again, transform_outputs=list)
    found = terrier_ndcg(pt, transformer, results, qrels)
    assert found == pytest.approx(own_ndcg(ranker), abs=1e-12)
    assert found > 0.7


@pytest.mark.filterwarnings("ignore")
def test_scores_in_a_pyterrier_pipeline(pt, search_results):
    results, qrels = search_results
    ranker = CalibratedRanker(Ridge(), loss="ndcg@5", context=None)
    ranker.fit(X[~TEST], Y[~TEST], groups=IDS[~TEST])
    learned = pt.ltr.apply_learned_model(ScoreRegressor(ranker))
    assert terrier_ndcg(pt, learned, *search_results) == pytest.approx(own_ndcg(ranker), abs=1e-12)

    new = ScoreRegressor(CalibratedRanker(Ridge(), loss="ndcg@5", context=None))
    learned = pt.ltr.apply_learned_model(new, fit_kwargs={"groups": IDS[~TEST]})
    learned.fit(results[~TEST], qrels)
    assert terrier_ndcg(pt, learned, *search_results) == pytest.approx(own_ndcg(ranker), abs=1e-12)

    # neither positions that would be read as scores, nor queries that are missing, pass silently
    for refused in (ranker, ScoreRegressor(CalibratedRanker(Ridge()).fit(X, Y, groups=GROUPS))):
        with pytest.raises(ValueError, match="needs them: pass groups="):
            terrier_ndcg(pt, pt.ltr.apply_learned_model(refused), results, qrels)
    with pytest.warns(MissingGroupsWarning):
        pt.ltr.apply_learned_model(new).fit(results[~TEST], qrels)


# -------------------------------------------------------------------- ONNX


def onnx_scores(model, table):
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {session.get_inputs()[0].name: table})[0].ravel()


@pytest.mark.filterwarnings("ignore")  # the converters' own warnings
@pytest.mark.parametrize("context", [None, "zscore"])
@pytest.mark.parametrize(
    ("regressor", "dtype"),
    [
        (make_pipeline(StandardScaler(), Ridge()), np.float64),
        (RandomForestRegressor(n_estimators=20, random_state=0), np.float32),
    ],
)
def test_onnx_files_have_the_same_scores_and_order(regressor, dtype, context):
    skl2onnx = pytest.importorskip("skl2onnx")
    table = X.astype(dtype)
    ranker = CalibratedRanker(regressor, loss="ndcg@5", context=context)
    ranker.fit(table, Y, groups=GROUPS)
    seen = ranker.transform_table(table, groups=GROUPS)
    assert (seen is table) == (context is None)
    model = skl2onnx.to_onnx(ranker.model_.regressor_, seen[:1])
    scores = onnx_scores(model, seen)
    wanted = ranker.decision_function(table, groups=GROUPS)
    np.testing.assert_allclose(scores, wanted, atol=1e-6 if dtype == np.float32 else 1e-13)
    ranks = ranker.predict(table, groups=GROUPS)
    np.testing.assert_array_equal(decode_scores(scores, GROUPS).ranks, ranks)


# -------------------------------------------------------------------- MLflow


@pytest.mark.filterwarnings("ignore")  # MLflow's own warnings
def test_mlflow_models(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    io = pytest.importorskip("skops.io")
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(X).add_prefix("f").assign(qid=IDS)
    ranker = CalibratedRanker(Ridge(), loss="ndcg@5", group_column="qid").fit(frame, Y)
    scores = ranker.decision_function(frame)
    for model, wanted in ((ranker, ranker.predict(frame)), (ScoreRegressor(ranker), scores)):
        unknown = io.get_untrusted_types(data=io.dumps(model))
        folder = tmp_path / type(model).__name__
        mlflow.sklearn.save_model(
            model,
            folder,
            signature=mlflow.models.infer_signature(frame, wanted),
            skops_trusted_types=unknown,
            pip_requirements=["sklearn-rankcal"],
        )
        again = mlflow.pyfunc.load_model(folder)
        np.testing.assert_array_equal(again.predict(frame), wanted)
        np.testing.assert_array_equal(mlflow.sklearn.load_model(folder).predict(frame), wanted)
        with pytest.raises(mlflow.exceptions.MlflowException, match=r"missing inputs.*qid"):
            again.predict(frame.drop(columns="qid"))
    plain = CalibratedRanker(Ridge(), loss="ndcg@5").fit(X, Y, groups=GROUPS)
    signature = mlflow.models.infer_signature(
        X, plain.predict(X, groups=GROUPS), params={"groups": GROUPS.tolist()}
    )
    mlflow.sklearn.save_model(
        plain,
        tmp_path / "plain",
        signature=signature,
        serialization_format="cloudpickle",
        pip_requirements=["sklearn-rankcal"],
    )
    loaded = mlflow.pyfunc.load_model(tmp_path / "plain")
    with pytest.raises(ValueError, match="needs them: pass groups="):
        loaded.predict(X, params={"groups": GROUPS.tolist()})


# -------------------------------------------------------------------- skorch


@pytest.mark.filterwarnings("ignore")  # PyTorch's own warnings
def test_networks_of_skorch():
    skorch, torch = pytest.importorskip("skorch"), pytest.importorskip("torch")

    class Network(torch.nn.Module):
        def __init__(self, n_columns):
            super().__init__()
            self.hidden, self.out = torch.nn.Linear(n_columns, 16), torch.nn.Linear(16, 1)

        def forward(self, X):
            return self.out(torch.relu(self.hidden(X))).squeeze(-1)

    torch.manual_seed(0)
    network = skorch.NeuralNetRegressor(
        Network,
        module__n_columns=X.shape[1],
        optimizer=torch.optim.Adam,
        lr=0.01,
        max_epochs=40,
        train_split=None,
        verbose=0,
    )
    table = X.astype(np.float32)
    ranker = CalibratedRanker(make_pipeline(StandardScaler(), network), loss="ndcg@5", context=None)
    ranker.fit(table, Y, groups=GROUPS)
    scores = ranker.decision_function(table)
    assert scores.shape == Y.shape
    noise = ndcg_score(Y, np.random.default_rng(0).random(len(Y)), groups=GROUPS, k=5)
    assert ndcg_score(Y, scores, groups=GROUPS, k=5) > noise + 0.15
    again = ranker.model_.regressor_.predict(ranker.transform_table(table))
    np.testing.assert_allclose(again, scores, rtol=1e-6)


# -------------------------------------------------------------------- Optuna

SCORER = get_ranking_scorer("ndcg@5")


def cv_score(alpha):
    ranker = CalibratedRanker(Ridge(alpha=alpha), loss="ndcg@5")
    return cross_val_score(ranker, X, LABELS, cv=QueryKFold(3), scoring=SCORER).mean()


def quiet_optuna():
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def test_studies_of_optuna():
    optuna = quiet_optuna()
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda t: cv_score(t.suggest_float("alpha", 1e-3, 1e5, log=True)), n_trials=6)
    values = [trial.value for trial in study.trials]
    assert study.best_value == max(values) > min(values)
    assert study.best_value == cv_score(**study.best_params)


@pytest.mark.filterwarnings("ignore")  # OptunaSearchCV is experimental
@pytest.mark.parametrize("way", ["labels", "column"])
def test_optuna_search(way):
    optuna = quiet_optuna()
    search_class = pytest.importorskip("optuna_integration").OptunaSearchCV
    frame = pd.DataFrame(X).add_prefix("f").assign(qid=GROUPS)
    ranker = CalibratedRanker(
        Ridge(), loss="ndcg@5", group_column="qid" if way == "column" else None
    )
    space = {"regressor__alpha": optuna.distributions.FloatDistribution(1e-3, 1e5, log=True)}
    options = {"n_trials": 6, "scoring": SCORER, "random_state": 0}
    if way == "column":
        search = search_class(ranker, space, cv=GroupKFold(3), **options)
        search.fit(frame, Y, groups=GROUPS)
        np.testing.assert_array_equal(search.predict(frame), search.best_estimator_.predict(frame))
        own = cross_val_score(
            search.best_estimator_, frame, Y, groups=GROUPS, cv=GroupKFold(3), scoring=SCORER
        ).mean()
    else:
        search = search_class(ranker, space, cv=QueryKFold(3), **options).fit(X, LABELS)
        np.testing.assert_array_equal(
            predict_scores(search, X, GROUPS),
            search.best_estimator_.decision_function(X, groups=GROUPS),
        )
        own = cv_score(search.best_params_["regressor__alpha"])
    assert search.best_score_ == pytest.approx(own, abs=1e-12)
    assert len({trial.value for trial in search.trials_}) > 1


# -------------------------------------------------------------------- LETOR files


def test_letor_files_of_scikit_learn(tmp_path):
    path = tmp_path / "train.txt"
    dump_svmlight_file(X, Y, str(path), query_id=GROUPS, zero_based=False)
    assert path.read_text().startswith(f"{Y[0]:.0f} qid:{GROUPS[0]} 1:")
    data = load_letor(path, dtype=np.float64)
    np.testing.assert_allclose(data.X, X, rtol=1e-14)  # scikit-learn writes 16 digits
    np.testing.assert_array_equal(data.y, Y)
    np.testing.assert_array_equal(data.groups, GROUPS)


@pytest.mark.parametrize(
    ("library", "name", "fitted"),
    [
        ("lightgbm.dask", "DaskLGBMRegressor", "LGBMRegressor"),
        ("xgboost.dask", "DaskXGBRegressor", "XGBRegressor"),
        ("dask_ml.linear_model", "LinearRegression", "LinearRegression"),
    ],
)
@pytest.mark.filterwarnings("ignore:Parameter n_jobs will be ignored", "ignore:Finding random")
def test_regressors_of_dask(library, name, fitted):
    regressor = getattr(pytest.importorskip(library), name)()
    quick = {"n_estimators": 20, "verbose": -1, "min_child_samples": 5, "max_iter": 20}
    regressor.set_params(**{key: quick[key] for key in quick.keys() & regressor.get_params()})
    arrays = [da.from_array(array, chunks=(80, -1)[: array.ndim]) for array in (X, Y, GROUPS)]
    ranker = DaskCalibratedRanker(regressor, loss="ndcg@5")
    with LocalCluster(n_workers=2, processes=False, dashboard_address=":0") as cluster:
        with Client(cluster):
            ranker.fit(arrays[0], arrays[1], groups=arrays[2])
            scores = ranker.decision_function(arrays[0], groups=arrays[2]).compute()
    assert ndcg_score(Y, scores, groups=GROUPS, k=5) > 0.8
    local = ranker.ranker_
    assert type(local.model_.regressor_).__name__ == fitted
    np.testing.assert_allclose(local.decision_function(X, groups=GROUPS), scores)
