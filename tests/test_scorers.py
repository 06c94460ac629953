"""RankingScorer alone; with scikit-learn's tools it is tested in test_sklearn_tools.py."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.metadata_routing import get_routing_for_object

from sklearn_rankcal import CalibratedRanker, MissingGroupsWarning, relevance_labels
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.metrics import (
    METRICS,
    RankingScorer,
    evaluate_rankings,
    get_ranking_scorer,
    get_ranking_scorer_names,
    ndcg_score,
)

DATA = make_ranking(50, (3, 9), 6, n_levels=2, random_state=0)
X, Y, G = DATA.X, DATA.y, DATA.groups
RANKER = CalibratedRanker(Ridge()).fit(X, Y, G)


@pytest.mark.parametrize("name", get_ranking_scorer_names())
def test_every_named_scorer_is_the_metric_of_predict(name):
    base = name.removeprefix("neg_")
    cutoff = "@3" if METRICS[base].cutoff else ""
    scorer = get_ranking_scorer(name + cutoff)
    ranks = RANKER.predict(X, G)
    wanted = evaluate_rankings(Y, ranks=ranks, groups=G, metrics=[base + cutoff])[base + cutoff]
    sign = 1 if METRICS[base].greater_is_better else -1
    assert scorer(RANKER, X, Y, groups=G) == pytest.approx(sign * wanted)
    assert scorer(RANKER, X, relevance_labels(Y, G)) == pytest.approx(sign * wanted)


def test_a_loss_is_negated_with_and_without_the_prefix():
    plain = get_ranking_scorer("pairwise_disagreement")
    assert plain == get_ranking_scorer("neg_pairwise_disagreement")
    assert repr(plain) == "get_ranking_scorer('neg_pairwise_disagreement')"
    assert plain(RANKER, X, Y, groups=G) < 0


def test_other_estimators_are_scored_by_their_predictions():
    plain = Ridge().fit(X, Y)
    scorer = get_ranking_scorer("ndcg@5")
    wanted = ndcg_score(Y, plain.predict(X), k=5, groups=G)
    assert scorer(plain, X, Y, groups=G) == pytest.approx(wanted)


def test_pipelines_searches_and_group_columns_are_looked_into():
    scorer = get_ranking_scorer("ndcg")
    wanted = scorer(RANKER, X, Y, groups=G)
    pipe = make_pipeline(make_pipeline(StandardScaler(with_mean=False, with_std=False), RANKER))
    pipe.fit(X, relevance_labels(Y, G))
    assert scorer(pipe, X, Y, groups=G) == pytest.approx(wanted)
    search = GridSearchCV(RANKER, {"center": [True]}, cv=[(np.arange(len(Y)),) * 2])
    search.fit(X, relevance_labels(Y, G))
    assert scorer(search, X, Y, groups=G) == pytest.approx(wanted)
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(qid=G)
    by_column = CalibratedRanker(Ridge(), group_column="qid").fit(frame, Y)
    assert scorer(by_column, frame, Y) == pytest.approx(wanted)
    assert scorer(make_pipeline("passthrough", by_column), frame, Y) == pytest.approx(wanted)


def test_it_raises_without_queries_and_never_guesses():
    with pytest.raises(ValueError, match=r"cannot tell the queries of the rows.*relevance_labels"):
        get_ranking_scorer("ndcg")(RANKER, X, Y)
    with pytest.warns(MissingGroupsWarning):
        groupless = CalibratedRanker(Ridge()).fit(X, Y)
    with pytest.raises(ValueError, match="cannot tell the queries"):
        get_ranking_scorer("ndcg")(groupless, X, Y)
    with pytest.raises(ValueError, match="different queries"):
        get_ranking_scorer("ndcg")(RANKER, X, relevance_labels(Y, G), groups=np.roll(G, 1))
    with pytest.raises(ValueError, match="splitter has cut it"):
        get_ranking_scorer("ndcg")(RANKER, X[1:], relevance_labels(Y, G)[1:])


def test_weights_and_parameters():
    scorer = get_ranking_scorer("ndcg@5", gain="linear")
    weight = np.where(G < 10, 1.0, 0.0)
    assert scorer(RANKER, X, Y, groups=G, sample_weight=weight) == pytest.approx(
        scorer(RANKER, X[G < 10], Y[G < 10], groups=G[G < 10])
    )
    graded = get_ranking_scorer("map", threshold=2)
    assert np.isnan(_quiet(graded, RANKER, X, Y, G))
    assert get_ranking_scorer("map", threshold=2, zero_division=0)(RANKER, X, Y, groups=G) == 0
    assert repr(get_ranking_scorer("map", threshold=2, zero_division=0)) == (
        "get_ranking_scorer('map', threshold=2, zero_division=0)"
    )


def _quiet(scorer, ranker, X, Y, G):
    with pytest.warns(UserWarning, match="undefined on all"):
        return scorer(ranker, X, Y, groups=G)


def test_scikit_learns_protocol():
    scorer = get_ranking_scorer("err@3", max_relevance=4)
    assert scorer == pickle.loads(pickle.dumps(scorer)) and hash(scorer) == hash(scorer)
    assert clone(scorer, safe=False) == scorer
    assert scorer != get_ranking_scorer("err@3")
    request = get_routing_for_object(scorer)
    assert request.score.requests == {"groups": True, "sample_weight": True}
    assert get_ranking_scorer_names() == sorted(get_ranking_scorer_names())
    assert isinstance(scorer, RankingScorer)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("nope",), ValueError, "Unknown metric 'nope'"),
        (("neg_ndcg",), ValueError, "drop the prefix"),
        (("ndcg@-1",), ValueError, "cutoff in 'ndcg@-1'"),
        (("precision",), ValueError, "needs a cutoff"),
        ((5,), TypeError, "must be a name"),
    ],
)
def test_bad_names(arguments, error, message):
    with pytest.raises(error, match=message):
        get_ranking_scorer(*arguments)


def test_bad_parameters():
    with pytest.raises(TypeError, match="gian"):
        get_ranking_scorer("ndcg", gian="exp2")
    with pytest.raises(ValueError, match="zero_division"):
        get_ranking_scorer("ndcg", zero_division="drop")
