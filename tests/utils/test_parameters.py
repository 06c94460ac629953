"""Invalid parameters of models: the error names the parameter and its valid values."""

import re

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from sklearn_rankcal import CalibratedLabelRanker, CalibratedRanker
from sklearn_rankcal.datasets import make_label_ranking, make_ranking
from sklearn_rankcal.models import BilinearPairs, DocumentModel, PairModel, ResidualPairModel
from sklearn_rankcal.utils._messages import check_number  # the check that all parameters share

DATA = make_ranking(12, (2, 6), 6, random_state=0)
COUNTS = [2.5, 0, -1, "x", np.nan, True, [1], np.inf]
BAD = [
    *((PairModel(Ridge(), max_pairs=v), "pd", "max_pairs must be a whole") for v in COUNTS),
    *((BilinearPairs(n_components=v), "pd", "n_components must be a whole") for v in COUNTS),
    *((DocumentModel(Ridge(), center=v), "ndcg", "center must be True") for v in ("no", None, 2)),
    *(
        (DocumentModel(Ridge(), context=v), "ndcg", "context must be None, a name|Unknown context")
        for v in (3, {}, [3], [["zscore"]], ["auto"])
    ),
    (BilinearPairs(symmetric=None), "pd", "symmetric must be True or False"),
    (PairModel(Ridge(), symmetric=None), "pd", "symmetric must be True or False"),
    (PairModel("x"), "pd", "regressor must be None or a regressor"),
    (ResidualPairModel(scores=Ridge()), "pd", "scores must be None or a DocumentModel"),
    (ResidualPairModel(scores="x"), "pd", "scores must be None or a DocumentModel"),
    (ResidualPairModel(scores=BilinearPairs()), "pd", "scores must predict scores, not pairs"),
    (ResidualPairModel(pairs=Ridge()), "pd", "pairs must be None or a model of pairs"),
]


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
@pytest.mark.parametrize("model, loss, message", BAD)
def test_bad_parameters_are_named(model, loss, message):
    with pytest.raises((TypeError, ValueError)) as caught:
        CalibratedRanker(model, loss=loss).fit(DATA.X, DATA.y, groups=DATA.groups)
    assert re.search(message, str(caught.value)), caught.value


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
def test_numbers_of_numpy_and_documented_extremes_are_taken():
    labels = make_label_ranking(30, 3, 2, random_state=0)
    ranker = CalibratedLabelRanker(Ridge(), n_jobs=np.int64(1)).fit(labels.X, labels.Y)
    assert ranker.predict(labels.X).shape == (30, 3)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.longdouble, np.int8])
def test_a_number_of_any_dtype_is_a_number(kind):
    """The limits of float64 overflow in smaller dtypes."""
    check_number(kind(1), "alpha")
    for value in (kind(0), kind(-1)):
        with pytest.raises(ValueError, match="alpha must be a finite number > 0"):
            check_number(value, "alpha")
