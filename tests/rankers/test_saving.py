"""Saving rankers: pickles record their versions."""

import pickle
import warnings

import pytest
import sklearn
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.linear_model import Ridge

from sklearn_rankcal import CalibratedLabelRanker, CalibratedRanker, LinearRanker, LowRankClassifier
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.label_ranking import BlendedRegressor
from sklearn_rankcal.linear import LinearModel
from sklearn_rankcal.models import (
    BilinearPairs,
    DocumentModel,
    PairModel,
    PairwiseRidge,
    ResidualPairModel,
    ResidualProductModel,
)
from sklearn_rankcal.utils import _estimators  # the version that a pickle has

pytestmark = pytest.mark.usefixtures("few_trees")

DATA = make_ranking(20, (3, 8), 6, random_state=0)
X, Y, G = DATA.X, DATA.y, DATA.groups

ESTIMATORS = [
    CalibratedRanker(Ridge()),
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


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)
def test_pickles_of_every_estimator_warn_about_other_versions(monkeypatch, estimator):
    data = pickled_elsewhere(estimator, monkeypatch, sklearn, "1.5.99")
    with pytest.warns(
        InconsistentVersionWarning, match=f"{type(estimator).__name__} from version 1.5.99"
    ):
        pickle.loads(data)
    data = pickled_elsewhere(estimator, monkeypatch, _estimators, "0.0.1")
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
