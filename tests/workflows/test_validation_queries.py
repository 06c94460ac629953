"""What users of validation queries write first: many trees where they pay, or what to do."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

from sklearn_rankcal import CalibratedRanker


def shop(seed, n_queries):
    """A customer wants a category, and buys documents of it that are good."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_queries), 10)
    wanted, offered = rng.integers(0, 6, n_queries)[groups], rng.integers(0, 6, len(groups))
    quality = rng.normal(size=(len(groups), 3))
    value = 2.0 * (wanted == offered) + quality[:, 0] + 0.5 * rng.normal(size=len(groups))
    return (
        np.column_stack([wanted, offered, quality]),
        np.clip(np.floor(value), 0, 3),
        groups + 1000 * seed,
    )


X, Y, G = shop(0, 150)


def test_a_few_validation_queries_let_boosting_learn_the_match():
    table, y, groups = shop(1, 200)
    trees = {"max_leaf_nodes": 7, "learning_rate": 0.05, "early_stopping": False}
    fixed = CalibratedRanker(HistGradientBoostingRegressor(max_iter=100, **trees))
    fixed.fit(X, Y, groups=G)
    many = HistGradientBoostingRegressor(max_iter=600, **trees)
    for seed in range(2):
        ranker = CalibratedRanker(many, validation_queries=0.07, random_state=seed)
        ranker.fit(X, Y, groups=G)
        assert len(ranker.validation_queries_) <= 10 and ranker.n_iter_ > 100
        assert ranker.score(table, y, groups=groups) > fixed.score(table, y, groups=groups) + 0.01


def test_a_validation_file_without_a_relevant_document():
    table, y, groups = shop(1, 20)
    ranker = CalibratedRanker("boosting", loss="ndcg@10")
    with pytest.raises(ValueError, match=r"all 20 queries.*validation_queries=0\.2"):
        ranker.fit(X, Y, groups=G, X_val=table, y_val=0 * y, groups_val=groups)
    ranker.set_params(validation_queries=0.2, random_state=0).fit(X, Y, groups=G)  # the remedy
    assert len(ranker.validation_queries_) == round(0.2 * (150 - ranker.n_queries_dropped_))


def test_a_validation_file_in_which_some_queries_have_no_relevant_document():
    table, y, groups = shop(1, 20)
    some = np.where(groups < 1005, 0, y)
    ranker = CalibratedRanker("boosting", n_iter_no_change=5)
    ranker.fit(X, Y, groups=G, X_val=table, y_val=some, groups_val=groups)
    assert ranker.validation_queries_.tolist() == list(range(1005, 1020))
    assert ranker.score(table, some, groups=groups) == ranker.validation_scores_[ranker.n_iter_ - 1]
