"""Series whose index has the labels of X in another order: rows would be paired wrongly."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

from sklearn_rankcal import CalibratedLabelRanker, CalibratedRanker, relevance_labels
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.decoders import Quota, Rules
from sklearn_rankcal.metrics import ndcg_score

pytestmark = pytest.mark.usefixtures("few_trees")

DATA = make_ranking(n_queries=8, n_documents=5, n_features=3, n_informative=2, random_state=0)
INDEX = np.random.default_rng(0).permutation(len(DATA.y)) + 100
X = pd.DataFrame(DATA.X, columns=list("abc"), index=INDEX)
Y, GROUPS, WEIGHT = (
    pd.Series(values, index=INDEX) for values in (DATA.y, DATA.groups, np.ones(len(DATA.y)))
)
BLOCKED = pd.Series(np.arange(len(Y)) % 5 == 0, index=INDEX)
BRAND = pd.Series(np.arange(len(Y)) % 2, index=INDEX)
ORDERS = pd.Series([["tea", "milk"], ["milk", "tea"]] * (len(Y) // 2), index=INDEX)
NAMED = CalibratedRanker(Ridge()).fit(X, DATA.y, groups=DATA.groups)
LABELS = CalibratedLabelRanker(Ridge()).fit(X, list(ORDERS))


#: A call with one column, and the column.
CALLS = {
    "fit y": (lambda y: CalibratedRanker(Ridge()).fit(X, y, groups=DATA.groups), Y),
    "fit groups": (lambda g: CalibratedRanker(Ridge()).fit(X, DATA.y, groups=g), GROUPS),
    "fit weight": (
        lambda w: CalibratedRanker(Ridge()).fit(X, DATA.y, groups=DATA.groups, sample_weight=w),
        WEIGHT,
    ),
    "fit y_val": (
        lambda y: CalibratedRanker("boosting").fit(
            X, Y, groups=GROUPS, X_val=X, y_val=y, groups_val=DATA.groups + 100
        ),
        Y,
    ),
    "score weight": (
        lambda w: NAMED.score(X, DATA.y, groups=DATA.groups, sample_weight=w), WEIGHT
    ),
    "predict groups": (lambda g: NAMED.predict(X, groups=g), GROUPS),
    "metric": (lambda y: ndcg_score(y, X["a"], groups=DATA.groups), Y),
    "relevance_labels": (lambda g: relevance_labels(Y, g), GROUPS),
    "blocked": (lambda b: NAMED.predict(X, groups=DATA.groups, rules=Rules(blocked=b)), BLOCKED),
    "quota": (
        lambda b: NAMED.predict(
            X, groups=DATA.groups, rules=Rules(quotas=[Quota(b, first=2, at_most=1)])
        ),
        BRAND,
    ),
    "label ranker fit": (lambda y: CalibratedLabelRanker(Ridge()).fit(X, y), ORDERS),
    "label ranker score": (lambda y: LABELS.score(X, y), ORDERS),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_another_order_warns(name):
    call, column = CALLS[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(column)
        call(column.to_numpy() if column.dtype != object else list(column))
        call(column.reset_index(drop=True))
    assert not [one for one in caught if "paired by position" in str(one.message)]
    with pytest.warns(UserWarning, match="same labels in different orders.*paired by position"):
        call(column.sort_index())
