"""`CutQueriesWarning` comes exactly if a fitted query is scored with other rows."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    cross_val_score,
    cross_validate,
    learning_curve,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import TargetEncoder

from sklearn_rankcal import (
    CalibratedRanker,
    CutQueriesWarning,
    LinearRanker,
    MissingGroupsWarning,
    ScoreRegressor,
    relevance_labels,
)
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.metrics import get_ranking_scorer

DATA = make_ranking(n_queries=60, n_documents=(8, 16), n_features=6, random_state=0)
X, Y = DATA.X, DATA.y
G = np.array([f"patient-{number:06d}" for number in DATA.groups])
SCORER = get_ranking_scorer("ndcg@10")
RANKER = CalibratedRanker(Ridge())
TRAIN, TEST = train_test_split(np.arange(len(Y)), random_state=0)
FITTED = clone(RANKER).fit(X[TRAIN], Y[TRAIN], groups=G[TRAIN])
FRAME = pd.DataFrame(X, columns=list("abcdef")).assign(qid=G)
BY_COLUMN = CalibratedRanker(Ridge(), group_column="qid")


def cuts(use):
    """Return the texts of the warnings about cut queries, and the result."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = use()
    assert {each.category for each in caught} <= {CutQueriesWarning}, caught
    return [str(each.message) for each in caught], result


WAYS_TO_SCORE = {
    "score": lambda ranker, x, y, g: ranker.score(x, y, groups=g),
    "scorer": lambda ranker, x, y, g: SCORER(ranker, x, y, groups=g),
    "frozen": lambda ranker, x, y, g: SCORER(FrozenEstimator(ranker), x, y, groups=g),
    "pipeline": lambda ranker, x, y, g: SCORER(
        make_pipeline("passthrough", ranker), x, y, groups=g
    ),
    "scores": lambda ranker, x, y, g: ScoreRegressor(ranker).score(x, y, groups=g),
    "scorer of scores": lambda ranker, x, y, g: SCORER(ScoreRegressor(ranker), x, y, groups=g),
    "labels and groups": lambda ranker, x, y, g: ranker.score(x, relevance_labels(y, g), groups=g),
}


@pytest.mark.parametrize("way", WAYS_TO_SCORE)
def test_the_warning_comes_if_a_fitted_query_is_scored_with_other_rows(way):
    score = WAYS_TO_SCORE[way]
    texts, cut = cuts(lambda: score(FITTED, X[TEST], Y[TEST], G[TEST]))
    assert len(texts) == 1
    n_test = len(np.unique(G[TEST]))
    assert texts[0].startswith(f"{n_test} of {n_test} queries to be scored, such as 'patient-")
    assert "QueryKFold" in texts[0] and "GroupShuffleSplit" in texts[0]
    assert 'filterwarnings("ignore", category=CutQueriesWarning)' in texts[0]
    # the remedy and the way to silence it are true
    train, test = next(GroupShuffleSplit(1, random_state=0).split(X, Y, groups=G))
    right = clone(RANKER).fit(X[train], Y[train], groups=G[train])
    texts, whole = cuts(lambda: score(right, X[test], Y[test], G[test]))
    assert texts == [] and whole < cut
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=CutQueriesWarning)
        assert score(FITTED, X[TEST], Y[TEST], G[TEST]) == cut


def test_the_warning_points_to_the_line_of_the_user():
    for way in ("score", "scorer"):
        with pytest.warns(CutQueriesWarning) as caught:
            WAYS_TO_SCORE[way](FITTED, X[TEST], Y[TEST], G[TEST])
        assert [each.filename for each in caught] == [__file__]


@pytest.mark.parametrize(
    "what", ["rows", "order", "some", "new", "labels", "mixed"], ids=lambda what: what
)
def test_the_rows_of_fit_and_new_queries_give_no_warning(what):
    rows = np.random.RandomState(0).permutation(TRAIN)
    y, groups = Y, G
    if what == "rows":
        rows = TRAIN
    elif what == "some":
        rows = rows[np.isin(G[rows], np.unique(G)[:5])]
    elif what == "new":
        rows, groups = TEST, np.char.add(G, " again")
    elif what == "labels":  # another judge of the same rows
        y = np.minimum(Y, 1)
    elif what == "mixed":
        rows = np.concatenate([rows, TEST])
        groups = G.copy().astype(object)
        groups[TEST] = [f"{one} again" for one in G[TEST]]
    for score in WAYS_TO_SCORE.values():
        assert cuts(lambda score=score: score(FITTED, X[rows], y[rows], groups[rows]))[0] == []


@pytest.mark.parametrize(
    "ids", ["int", "negative", "text", "objects", "times", "wide", "long doubles"]
)
def test_every_kind_of_id(ids):
    number = DATA.groups
    groups = {
        "int": number,
        "negative": -number,
        "text": G,
        "objects": np.array([("a", one) for one in number] + [None], dtype=object)[:-1],
        "times": np.datetime64("2020-01-01") + number,
        "wide": number + 2**60,  # neighbours are equal as floats
        "long doubles": (number + 2**60).astype(np.longdouble),
    }[ids]
    ranker = clone(RANKER).fit(X[TRAIN], Y[TRAIN], groups=groups[TRAIN])
    texts, _ = cuts(lambda: ranker.score(X[TEST], Y[TEST], groups=groups[TEST]))
    assert len(texts) == 1
    some = number[TEST] < 7
    texts, _ = cuts(lambda: ranker.score(X[TEST][some], Y[TEST][some], groups=groups[TEST][some]))
    assert texts[0].startswith(f"{len(np.unique(number[TEST][some]))} of ")
    new, known = number >= 30, number < 30  # neighbours of fitted ids
    ranker.fit(X[known], Y[known], groups=groups[known])
    assert cuts(lambda: ranker.score(X[new], Y[new], groups=groups[new]))[0] == []


@pytest.mark.parametrize("ranker", [RANKER, LinearRanker(), LinearRanker(solver="sgd")])
def test_a_pickle_holds_no_ids_and_copies_forget_the_queries(ranker):
    ranker = clone(ranker).fit(X, Y, groups=G)
    stored = pickle.dumps(ranker)
    assert b"patient" not in stored and b"fitted_queries" not in stored
    few = clone(ranker).fit(X[:40], Y[:40], groups=G[:40])
    assert abs(len(pickle.dumps(few)) - len(stored)) < 200  # it does not grow with the queries
    if isinstance(ranker, CalibratedRanker):
        assert len(stored) < 2500
    for other in (pickle.loads(stored), copy.deepcopy(ranker), copy.copy(ranker)):
        np.testing.assert_array_equal(other.predict(X, groups=G), ranker.predict(X, groups=G))
        assert cuts(lambda other=other: other.score(X[::2], Y[::2], groups=G[::2]))[0] == []
    assert len(cuts(lambda: ranker.score(X[::2], Y[::2], groups=G[::2]))[0]) == 1


def test_batches_of_partial_fit_are_queries_of_their_own():
    ranker = LinearRanker("pairwise_logistic", solver="sgd").fit(
        X[TRAIN], Y[TRAIN], groups=G[TRAIN]
    )
    assert cuts(lambda: ranker.partial_fit(X[TEST], Y[TEST], groups=G[TEST]))[0] == []
    assert cuts(lambda: ranker.score(X[TEST], Y[TEST], groups=G[TEST]))[0] == []


# ------------------------------------------------------------------ tools of scikit-learn


@pytest.mark.parametrize("scoring", [None, SCORER])
def test_folds_of_rows_warn_and_folds_of_queries_do_not(scoring):
    what = {"scoring": scoring, "params": {}}
    texts, scores = cuts(lambda: cross_val_score(BY_COLUMN, FRAME, Y, cv=5, **what))
    assert len(texts) == 5 and np.isfinite(scores).all()
    what = {"cv": list(GroupKFold(3).split(X, Y, G)), "scoring": scoring, "params": {}}
    learns = {**what, "train_sizes": [0.4, 1.0]}
    assert (
        cuts(lambda: cross_validate(BY_COLUMN, FRAME, Y, return_train_score=True, **what))[0] == []
    )
    assert cuts(lambda: learning_curve(BY_COLUMN, FRAME, Y, **learns))[0] == []  # test is whole


@pytest.mark.parametrize("scoring", [None, SCORER])
def test_permutation_importance_warns_if_it_samples_rows(scoring):
    fitted = clone(BY_COLUMN).fit(FRAME, Y)
    what = {"scoring": scoring, "n_repeats": 2, "random_state": 0}
    assert cuts(lambda: permutation_importance(fitted, FRAME, Y, **what))[0] == []
    texts, _ = cuts(lambda: permutation_importance(fitted, FRAME, Y, max_samples=0.5, **what))
    assert texts


def test_an_encoder_that_encodes_training_rows_by_the_targets_of_others():
    """`TargetEncoder.fit_transform` and `transform` give the same row other numbers."""
    table = np.digitize(X, [-1, 0, 1])
    pipe = make_pipeline(TargetEncoder(target_type="continuous"), clone(RANKER))
    pipe.fit(table[TRAIN], Y[TRAIN], calibratedranker__groups=G[TRAIN])
    assert cuts(lambda: SCORER(pipe, table[TRAIN], Y[TRAIN], groups=G[TRAIN]))[0] == []
    assert len(cuts(lambda: SCORER(pipe, table[TEST], Y[TEST], groups=G[TEST]))[0]) == 1


def test_halves_of_equal_size_are_noticed():
    groups = np.tile(np.arange(6), 8)
    x, y = X[:48], Y[:48]
    ranker = clone(RANKER).fit(x[:24], y[:24], groups=groups[:24])
    assert len(cuts(lambda: ranker.score(x[24:], y[24:], groups=groups[24:]))[0]) == 1


def test_a_ranker_without_query_ids_scores_no_other_rows_as_one_query():
    with pytest.warns(MissingGroupsWarning):
        ranker = clone(RANKER).fit(X[TRAIN], Y[TRAIN])
    with pytest.warns(MissingGroupsWarning):
        assert 0 < ranker.score(X[TRAIN], Y[TRAIN]) <= 1
    with pytest.raises(ValueError, match="did not reach the ranker"):
        ranker.score(X[TEST], Y[TEST])
    for groups in (np.zeros(len(TEST)), G[TEST]):
        for name in ("score", "scorer"):
            score = WAYS_TO_SCORE[name]
            texts, _ = cuts(lambda g=groups, score=score: score(ranker, X[TEST], Y[TEST], g))
            assert texts == []


def test_the_type_of_whole_numbers_does_not_matter():
    ranker = clone(RANKER).fit(X[TRAIN], Y[TRAIN], groups=DATA.groups[TRAIN])
    for dtype in (np.int32, np.uint64, np.float64, object):
        groups = DATA.groups[TEST].astype(dtype)
        assert len(cuts(lambda g=groups: ranker.score(X[TEST], Y[TEST], groups=g))[0]) == 1
