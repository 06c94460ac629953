"""A shop whose searches find mostly what was looked for, and accessories of it."""

import numpy as np
import pandas as pd

from sklearn_rankcal import CalibratedRanker
from sklearn_rankcal.metrics import ndcg_score


def searches(seed, n_queries=300):
    """Offers of searches; a search for phones finds mostly phones, beside cases and chargers."""
    rng = np.random.default_rng(seed)
    search = rng.permutation(np.repeat(np.arange(n_queries), 20))
    kinds = np.array(["phone", "case", "charger", "tablet", "laptop", "bag", "mouse", "lamp"])
    wanted = rng.integers(len(kinds), size=n_queries)[search]
    found = np.where(rng.random(len(search)) < 0.5, wanted, rng.integers(8, size=len(search)))
    price = rng.normal(size=len(search))
    appeal = 1.5 * (found == wanted) - 0.5 * price + rng.normal(size=len(search))
    frame = pd.DataFrame(
        {
            "search": search,
            "kind": kinds[found],
            "price": price,
            "country": rng.choice(["fr", "de", "it"], n_queries)[search],
            "bought": np.digitize(appeal, [1.0, 2.0, 3.0]),
        }
    )
    return frame.astype({"kind": "category", "country": "category"})


TRAIN, TEST = searches(0), searches(1)
FEATURES = ["search", "kind", "price", "country"]


def ndcg(ranker):
    ranker.fit(TRAIN[FEATURES], TRAIN["bought"])
    scores = ranker.decision_function(TEST[FEATURES])
    return ndcg_score(TEST["bought"], scores, groups=TEST["search"], k=10)


def test_a_search_finds_what_most_of_its_offers_are_without_a_parameter():
    ranker = CalibratedRanker("boosting", group_column="search")
    without = CalibratedRanker("boosting", group_column="search", context=None)
    assert ndcg(ranker) > ndcg(without) + 0.05
    assert ranker.model_.context_["share"] == ["kind"]  # each search comes from one country
    table = ranker.transform_table(TEST[FEATURES])
    one = table[TEST["search"] == 7]
    np.testing.assert_allclose(
        one["kind__share"], one["kind"].map(one["kind"].value_counts(normalize=True)).astype(float)
    )
