"""Saving rankers: pickles record their versions, and arrays do not depend on versions."""

import io
import json
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from sklearn_rankcal import (
    CalibratedLabelRanker,
    CalibratedRanker,
    LinearRanker,
    LowRankClassifier,
)
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.losses import MAP, PD
from sklearn_rankcal.models import (
    BilinearPairs,
    BlendedRegressor,
    DocumentModel,
    LinearModel,
    PairModel,
    PairwiseRidge,
    ResidualPairModel,
    ResidualProductModel,
)
from sklearn_rankcal.utils import _pickles

from .few_trees import few_trees  # noqa: F401

pytestmark = pytest.mark.usefixtures("few_trees")

DATA = make_ranking(20, (3, 8), 6, random_state=0)
X, Y, G = DATA.X, DATA.y, DATA.groups

RANKERS = {
    "default": CalibratedRanker(),
    "ridge": CalibratedRanker(Ridge()),
    "PairwiseRidge": CalibratedRanker(PairwiseRidge(), loss="pd"),
    "BilinearPairs": CalibratedRanker(BilinearPairs(), loss="pd"),
    "PairModel": CalibratedRanker(PairModel(Ridge()), loss="pd"),
    "ResidualProductModel": CalibratedRanker(loss=MAP(threshold=2)),
}
OTHERS = [
    CalibratedLabelRanker(Ridge()),
    LowRankClassifier(),
    DocumentModel(),
    PairModel(),
    PairwiseRidge(),
    BilinearPairs(),
    ResidualPairModel(),
    ResidualProductModel(),
    BlendedRegressor(),
    LinearModel(),
    LinearRanker(),
]


def pickled_elsewhere(estimator, monkeypatch, where, version):
    with monkeypatch.context() as patch:
        patch.setattr(where, "__version__", version)
        return pickle.dumps(estimator)


@pytest.mark.parametrize("name", RANKERS)
def test_a_pickle_of_another_version_of_scikit_learn_warns(monkeypatch, name):
    ranker = clone(RANKERS[name]).fit(X, Y, groups=G)
    data = pickled_elsewhere(ranker, monkeypatch, sklearn, "1.5.99")
    with pytest.warns(InconsistentVersionWarning) as caught:
        again = pickle.loads(data)
    ours = [w.message for w in caught if w.message.estimator_name == "CalibratedRanker"]
    assert ours and ours[0].original_sklearn_version == "1.5.99"
    np.testing.assert_array_equal(again.predict(X, groups=G), ranker.predict(X, groups=G))
    assert pickle.loads(pickle.dumps(ranker)).get_params().keys() == ranker.get_params().keys()


@pytest.mark.parametrize("estimator", OTHERS, ids=lambda one: type(one).__name__)
def test_pickles_of_every_estimator_warn_about_other_versions(monkeypatch, estimator):
    data = pickled_elsewhere(estimator, monkeypatch, sklearn, "1.5.99")
    with pytest.warns(InconsistentVersionWarning, match=f"{type(estimator).__name__} from version"):
        pickle.loads(data)
    data = pickled_elsewhere(estimator, monkeypatch, _pickles, "0.0.1")
    with pytest.warns(UserWarning, match=r"pickled by sklearn_rankcal 0\.0\.1"):
        pickle.loads(data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pickle.loads(pickle.dumps(estimator))


class Stubborn(Ridge):
    """An estimator like scikit-learn's trees, whose pickles other versions cannot load."""

    def __setstate__(self, state):
        raise ValueError("node array from the pickle has an incompatible dtype")


def test_the_warning_comes_before_the_error_of_loading(monkeypatch):
    data = pickled_elsewhere(CalibratedRanker(Stubborn()), monkeypatch, sklearn, "1.5.99")
    with (
        pytest.warns(InconsistentVersionWarning, match="CalibratedRanker from version"),
        pytest.raises(ValueError, match="incompatible dtype"),
    ):
        pickle.loads(data)


PORTABLE = {
    "PairwiseRidge": (PairwiseRidge(alpha=0.1), PD(pair_weight="graded")),
    "BilinearPairs": (BilinearPairs(n_components=3), "pd"),
    "symmetric": (BilinearPairs(n_components=3, symmetric=True), MAP(threshold=2)),
}


def saved(ranker):
    file = io.BytesIO()
    np.savez(file, **ranker.to_arrays())
    file.seek(0)
    return np.load(file, allow_pickle=False)


@pytest.mark.parametrize("name", PORTABLE)
@pytest.mark.parametrize("frame", [False, True])
def test_closed_forms_survive_as_arrays(name, frame):
    regressor, loss = PORTABLE[name]
    options = {"loss": loss, "group_column": "qid" if frame else None}
    table = pd.DataFrame(X, columns=list("abcdef")).assign(qid=G) if frame else X
    groups = None if frame else G
    ranker = CalibratedRanker(regressor, **options).fit(table, Y, groups=groups)
    again = CalibratedRanker(clone(regressor), **options).from_arrays(saved(ranker))
    wanted, found = (one.predict_preferences(table, groups) for one in (ranker, again))
    for one, other in zip(wanted, found, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(again.predict(table, groups), ranker.predict(table, groups))
    assert again.score(table, Y, groups) == ranker.score(table, Y, groups)
    assert again.loss_.get_params() == ranker.loss_.get_params()
    if name == "PairwiseRidge":
        np.testing.assert_array_equal(again.coef_, ranker.coef_)
    if not frame:
        with pytest.raises(ValueError, match="fitted with query ids"):
            again.predict(X)
    else:
        with pytest.raises(ValueError, match="feature names"):
            again.predict(table.rename(columns={"a": "z"}))


def test_the_arrays_are_those_of_their_docstrings():
    ranker = CalibratedRanker(BilinearPairs(n_components=3), loss="pd").fit(X, Y, groups=G)
    arrays = ranker.to_arrays()
    first = np.flatnonzero(G == G[0])
    z = (X[first] - arrays["center"]) @ arrays["axes"]
    z = np.column_stack([np.ones(len(z)), z])
    np.testing.assert_allclose(
        z @ arrays["matrix"] @ z.T, ranker.predict_preferences(X, G)[0], atol=1e-12
    )
    ridge = CalibratedRanker(PairwiseRidge(), loss="pd").fit(X, Y, groups=G)
    np.testing.assert_array_equal(ridge.to_arrays()["coef"], ridge.coef_)
    header = json.loads(str(ridge.to_arrays()["ranker"]))
    assert header["loss"] == "PD" and header["n_features_in_"] == 6


def test_arrays_that_do_not_fit_are_refused():
    ridge = CalibratedRanker(PairwiseRidge(), loss="pd").fit(X, Y, groups=G)
    form = CalibratedRanker(BilinearPairs(n_components=3), loss="pd").fit(X, Y, groups=G)
    arrays, of_form = ridge.to_arrays(), form.to_arrays()
    with pytest.raises(TypeError, match="DocumentModel has no form as plain arrays"):
        CalibratedRanker(Ridge()).fit(X, Y, groups=G).to_arrays()
    with pytest.raises(TypeError, match="cannot be written as JSON"):
        CalibratedRanker(PairwiseRidge(), loss=PD(pair_weight=np.sqrt)).fit(
            X, Y, groups=G
        ).to_arrays()
    mapped = CalibratedRanker(BilinearPairs(StandardScaler()), loss="pd").fit(X, Y, groups=G)
    with pytest.raises(ValueError, match="Transform X before the ranker"):
        mapped.to_arrays()
    new = CalibratedRanker(PairwiseRidge(), loss="pd")
    for change, message in (
        ({"ranker": None}, "'ranker' is absent"),
        ({"coef": None}, "'coef' is absent"),
        ({"coef": arrays["coef"][None]}, "'coef' has shape"),
        ({"coef": arrays["coef"] * np.nan}, "NaN or infinity"),
        ({"coef": arrays["coef"][:3]}, "of two rankers"),
        ({"ranker": json.dumps({"format": 99})}, "later version"),
    ):
        given = {k: v for k, v in (arrays | change).items() if v is not None}
        with pytest.raises(ValueError, match=message):
            clone(new).from_arrays(given)
    with pytest.raises(ValueError, match="regressor is PairwiseRidge, but this one has Bilinear"):
        CalibratedRanker(BilinearPairs(), loss="pd").from_arrays(arrays)
    with pytest.raises(ValueError, match="loss is PD, but this one has NDCG"):
        CalibratedRanker(PairwiseRidge()).from_arrays(arrays)
    with pytest.raises(ValueError, match="group_column is None"):
        clone(new).set_params(group_column="qid").from_arrays(arrays)
    with pytest.raises(ValueError, match="skew-symmetric"):
        BilinearPairs().from_arrays(of_form | {"matrix": np.ones((4, 4))})
    with pytest.raises(ValueError, match=r"'matrix' has shape \(5, 5\)"):
        BilinearPairs().from_arrays(of_form | {"matrix": np.zeros((5, 5))})
