"""Decisions between computed numbers that are equal but for rounding, in rankers and models."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import LinearRegression, Ridge

from sklearn_rankcal import CalibratedLabelRanker, CalibratedRanker, RiskControlledCutoff
from sklearn_rankcal.cutoffs import controlled_threshold
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.models._model import Validation  # the choice by itself
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.queries._ranking import tie_rounded
from sklearn_rankcal.utils._numbers import first_smallest

pytestmark = pytest.mark.usefixtures("few_trees")

DATA = make_ranking(n_queries=40, random_state=0)


def rows_of_twins(seed):
    """Five documents, each of which occurs five times, in random order."""
    rng = np.random.default_rng(seed)
    which = rng.permutation(np.repeat(np.arange(5), 5))
    return 3 * rng.normal(size=(5, DATA.X.shape[1]))[which], which


@pytest.mark.parametrize(
    "ranker",
    [
        CalibratedRanker(Ridge()),
        CalibratedRanker(LinearRegression(), context=None),
        CalibratedRanker(Ridge(), loss="pd"),
        CalibratedRanker(ExtraTreesRegressor(5, random_state=0), loss="pd"),
        CalibratedRanker(loss="pd"),
    ],
    ids=str,
)
def test_documents_with_equal_features_keep_the_order_of_their_rows(ranker):
    ranker.fit(DATA.X, DATA.y, groups=DATA.groups)
    for seed in range(10):
        X, which = rows_of_twins(seed)
        ranks = ranker.predict(X, groups=np.zeros(25))
        assert sorted(ranks) == list(range(1, 26))
        assert all((np.diff(ranks[which == document]) > 0).all() for document in range(5))
        if hasattr(ranker, "decision_function"):
            scores = ranker.decision_function(X, groups=np.zeros(25))
            assert len(set(scores)) == 5


def test_a_cutoff_shows_equal_rows_of_a_plain_regressor_in_their_order():
    shows = RiskControlledCutoff(
        LinearRegression(), alpha=0.2, rule="count", threshold=3, random_state=0
    )
    shows.fit(DATA.X, DATA.y, groups=DATA.groups)
    for seed in range(10):
        X, which = rows_of_twins(seed)
        ranks = shows.predict(X, groups=np.zeros(25))
        assert all((np.diff(ranks[which == document]) > 0).all() for document in range(5))


def test_scores_tie_within_rounding_of_their_own_query_only():
    queries = Queries.from_groups([0, 1, 0, 1, 0, 1], 6)
    scores = np.array([0.1 + 0.2, 3.0, 0.3, 3e9, 0.3001, 3.5])
    tied = tie_rounded(scores, queries)
    assert tied[0] == tied[2] == 0.1 + 0.2
    assert tied[1] == tied[5] == 3.5  # rounding errors of 3e9 are as large
    assert (tied[[3, 4]] == scores[[3, 4]]).all()
    assert tie_rounded(scores[[0, 4]], Queries.uniform(1, 2)).tolist() == [0.1 + 0.2, 0.3001]


def test_training_stops_at_the_first_of_equal_values():
    values = iter([0.3, 0.1 + 0.2, 0.3, 0.25])
    validation = Validation(None, lambda scores: next(values), n_iter_no_change=3)
    for _ in range(4):
        validation.record(np.zeros(1))
    assert validation.n_iter == 1 and validation.stops
    losses = iter([-0.4, -0.1 - 0.2, -0.3, -0.2])
    validation = Validation(None, lambda scores: next(losses), n_iter_no_change=3)
    for _ in range(3):
        validation.record(np.zeros(1))
    assert validation.n_iter == 2  # the last differs from it by rounding only
    validation.record(np.zeros(1))
    assert validation.n_iter == 4


def test_a_level_that_two_queries_share_is_one_threshold():
    # of three queries, two lose all beyond the level 0.3, however it is computed
    added = np.array([0.5, 0.5, 1.0])
    for one, other in [(0.3, 0.1 + 0.2), (0.1 + 0.2, 0.3), (0.3, 0.3)]:
        threshold, risk = controlled_threshold(np.array([one, other, 1.0]), added, 3, 0.6)
        assert threshold == pytest.approx(0.3, rel=1e-12)
        assert risk == 0.5


def test_a_risk_may_decrease_by_rounding():
    def recall(relevance):
        return np.cumsum(relevance) / relevance.sum() - np.arange(len(relevance)) * 1e-17

    data = make_ranking(n_queries=60, random_state=0)
    own = RiskControlledCutoff(Ridge(), risk=recall, threshold=3, random_state=0)
    named = RiskControlledCutoff(Ridge(), risk="recall", threshold=3, random_state=0)
    with np.errstate(invalid="ignore"):  # queries without a relevant document
        own.fit(data.X, data.y, groups=data.groups)
    named.fit(data.X, data.y, groups=data.groups)
    assert own.cutoff_ == pytest.approx(named.cutoff_)


def test_the_first_of_equal_errors_is_chosen():
    assert first_smallest([0.5, 0.1 + 0.2, 0.3, 0.4]) == 1
    assert first_smallest([0.5, 0.3, 0.1 + 0.2]) == 1
    assert first_smallest([-1e9, -1e9 - 1e-3]) == 0


def test_labels_with_equal_scores_keep_their_order():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)), np.argsort(rng.normal(size=(20, 3)), axis=1) + 1
    ranker = CalibratedLabelRanker(Ridge(), loss="spearman").fit(X, y)
    ranker.regressor_ = SimpleNamespace(
        predict=lambda X: np.tile([0.3, 0.1 + 0.2, 0.2], (len(X), 1))  # a tie but for rounding
    )
    assert ranker.predict(X).tolist() == [[1, 2, 3]] * 20
