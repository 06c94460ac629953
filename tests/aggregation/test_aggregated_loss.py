"""AggregatedLoss: targets are means over subsets of the judgements of each query."""

import importlib.util
import itertools
import math

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV

from sklearn_rankcal import (
    BoostedRanker,
    CalibratedRanker,
    Judgements,
    LinearRanker,
    QueryKFold,
    preference_labels,
)
from sklearn_rankcal.aggregation import STRUCTURES, AggregatedLoss, InversePropensity
from sklearn_rankcal.aggregation._aggregate import get_structure  # the plan of a fit
from sklearn_rankcal.aggregation._loss import plan
from sklearn_rankcal.clicks import click_labels, read_clicks
from sklearn_rankcal.losses import DCG, NDCG, get_loss
from sklearn_rankcal.metrics import get_ranking_scorer
from sklearn_rankcal.models import BoostingCV
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.surrogates import SURROGATES, Softmax

from ..boosting_tools import regressor

SIZES = [3, 1, 4, 2]  # documents of each query
NUMBERS = [5, 0, 7, 3]  # judgements of each query


def data_of(numbers, sizes=SIZES, seed=0, shuffle=True):
    """Rows in any order, and comparisons of random documents of each query."""
    random = np.random.RandomState(seed)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    if shuffle:
        groups = random.permutation(groups)
    pairs = []
    for query, n in enumerate(numbers):
        rows = np.flatnonzero(groups == query)
        for _ in range(n):
            i, j = sorted(random.choice(len(rows), 2, replace=False))
            pairs.append(rows[[i, j]] if random.uniform() < 0.7 else rows[[j, i]])
    return np.array(pairs), groups


def literal_log_odds(pairs, rows, c=0.5):
    """Mean over the other rows of log((share + c) / (1 - share + c)), 0 without comparisons."""
    wins = {(i, j): 0 for i in rows for j in rows}
    for i, j in pairs:
        wins[i, j] += 1

    def log_odds(i, j):
        total = wins[i, j] + wins[j, i]
        return math.log((wins[i, j] / total + c) / (wins[j, i] / total + c)) if total else 0.0

    return [sum(log_odds(i, j) for j in rows if j != i) / max(1, len(rows) - 1) for i in rows]


def literal_mean(pairs, groups, k):
    """The mean of the targets over all subsets of k judgements, and the judgements per query."""
    loss = NDCG(gain="linear", shrinkage=0)
    targets, number = np.zeros(len(groups)), np.zeros(len(groups))
    for query in np.unique(groups):
        rows = np.flatnonzero(groups == query).tolist()
        mine = [pair for pair in pairs.tolist() if pair[0] in rows]
        terms = [
            loss.encode(np.exp(literal_log_odds(subset, rows)), Queries.single(len(rows)))
            for subset in itertools.combinations(mine, min(k, len(mine)))
        ]
        targets[rows] = np.mean(terms, axis=0) if mine else 0
        number[rows] = len(mine)
    return targets, number


@pytest.mark.parametrize("k", [1, 2, 3, 4, 6, 7, 50])
def test_targets_are_means_over_all_subsets(k):
    pairs, groups = data_of(NUMBERS)
    labels = preference_labels(pairs, groups)
    loss = AggregatedLoss(NDCG(gain="linear", shrinkage=0), subset_size=k, n_subsets=35)
    mean = loss.mean_targets(Judgements.from_labels(labels))
    expected, number = literal_mean(pairs, groups, k)
    judged = number > 0
    assert mean.targets[judged] == pytest.approx(expected[judged], abs=1e-12)
    assert np.isnan(mean.targets[~judged]).all()
    assert mean.standard_error[judged].tolist() == [0.0] * judged.sum()
    assert mean.exact.all()
    judgements = Judgements.from_labels(labels)
    order = judgements.queries.ids
    wanted = [
        math.comb(n, min(k, n)) if n else 0 for n in np.array(NUMBERS)[groups_in_order(groups)]
    ]
    assert mean.n_subsets.tolist() == wanted and len(order) == 4
    # `all` is one term with all judgements, as is any k above their number
    every = AggregatedLoss(NDCG(gain="linear", shrinkage=0), subset_size="all")
    if k >= 7:
        assert every.mean_targets(judgements).targets[judged] == pytest.approx(
            mean.targets[judged], abs=1e-14
        )


def groups_in_order(groups):
    """The different groups in order of first appearance."""
    return list(dict.fromkeys(groups.tolist()))


@pytest.mark.slow
def test_means_over_drawn_subsets_are_within_their_standard_errors():
    pairs, groups = data_of([30, 40], [3, 4])
    judgements = Judgements.from_labels(preference_labels(pairs, groups))
    loss = AggregatedLoss(DCG(gain="linear"), subset_size=4, n_subsets=400)
    means = [clone(loss).set_params(random_state=s).mean_targets(judgements) for s in range(30)]
    assert not means[0].exact.any()
    assert (means[0].n_subsets >= 400).all() and (means[0].n_subsets < 420).all()
    values = np.array([mean.targets for mean in means])
    spread, stated = values.std(axis=0, ddof=1), np.mean([m.standard_error for m in means], axis=0)
    assert (stated > 0).all() and (stated < 0.08).all()
    assert (spread < 1.4 * stated).all() and (spread > 0.7 * stated).all()
    reference = clone(loss).set_params(n_subsets=40_000).mean_targets(judgements).targets
    z = (values.mean(axis=0) - reference) / (stated / np.sqrt(30))
    assert np.abs(z).max() < 4.5


def test_plans():
    numbers = np.array([0, 1, 3, 10, 100, 1000])
    found = plan(numbers, 10, 50)
    assert found.size.tolist() == [0, 1, 3, 10, 10, 10]
    assert found.exact.tolist() == [True, True, True, True, False, False]
    assert found.n_rounds.tolist() == [0, 1, 1, 1, 5, 2]
    assert (found.per_round * found.n_rounds).tolist() == [0, 1, 1, 1, 50, 200]
    assert plan(numbers, None, 50).n_rounds.tolist() == [0, 1, 1, 1, 1, 1]
    assert plan(np.array([5]), 3, 10).per_round.tolist() == [10]  # all of them
    assert plan(np.array([5]), 3, 9).per_round.tolist() == [1]


def test_a_ranker_regresses_on_the_mean_targets_with_the_weights_of_queries():
    pairs, groups = data_of(NUMBERS)
    X = np.random.RandomState(2).normal(size=(len(groups), 2))
    loss = AggregatedLoss(NDCG(gain="linear", shrinkage=0), subset_size=3)
    ranker = CalibratedRanker(LinearRegression(), loss=loss, context=None, center=False)
    ranker.fit(X, preference_labels(pairs, groups))
    targets, number = literal_mean(pairs, groups, 3)
    expected = LinearRegression().fit(X, targets, number)
    assert ranker.coef_ == pytest.approx(expected.coef_, rel=1e-9)
    assert ranker.n_queries_dropped_ == 1  # the query without judgements
    weights = np.random.RandomState(3).uniform(0.5, 2, size=len(groups))
    ranker.fit(X, preference_labels(pairs, groups), sample_weight=weights)
    expected = LinearRegression().fit(X, targets, number * weights)
    assert ranker.coef_ == pytest.approx(expected.coef_, rel=1e-9)


def test_judgements_with_several_pairs_stay_together():
    pairs, groups = data_of([8, 8], [3, 3])
    session = np.repeat([0, 1, 2, 3], 2)
    labels = preference_labels(pairs, groups, judgement=np.tile(session, 2))
    loss = AggregatedLoss(DCG(gain="linear"), subset_size=2)
    found = loss.mean_targets(Judgements.from_labels(labels))
    for query in (0, 1):
        rows = np.flatnonzero(groups == query).tolist()
        mine = pairs[8 * query : 8 * query + 8].tolist()
        terms = [
            np.exp(
                literal_log_odds([p for p, s in zip(mine, session, strict=True) if s in two], rows)
            )
            for two in itertools.combinations(range(4), 2)
        ]
        assert found.targets[rows] == pytest.approx(np.mean(terms, axis=0), abs=1e-12)


def test_counts_are_single_judgements():
    pairs, groups = data_of([4, 3], [3, 2], shuffle=False)
    count = np.array([1, 2, 0, 1, 3, 1, 1])
    query = groups[pairs[:, 0]]
    loss = AggregatedLoss(DCG(gain="linear"), subset_size=2)
    counted = Judgements.from_pairs(pairs, groups=query, count=count)
    listed = Judgements.from_pairs(np.repeat(pairs, count, axis=0), groups=np.repeat(query, count))
    found, expected = loss.mean_targets(counted), loss.mean_targets(listed)
    one = dict(
        zip(zip(counted.queries.codes, counted.items, strict=True), found.targets, strict=True)
    )
    two = dict(
        zip(zip(listed.queries.codes, listed.items, strict=True), expected.targets, strict=True)
    )
    assert set(two) <= set(one)
    for key, value in two.items():
        assert one[key] == pytest.approx(value, abs=1e-12)


def world(n_queries=60, n_judgements=40, seed=0):
    """Comparisons that a linear score explains."""
    random = np.random.RandomState(seed)
    sizes = random.randint(2, 7, size=n_queries)
    groups = np.repeat(np.arange(n_queries), sizes)
    X = random.normal(size=(len(groups), 4))
    score = X @ np.array([1.0, -1.0, 0.5, 0.0])
    pairs = []
    for query in range(n_queries):
        rows = np.flatnonzero(groups == query)
        for _ in range(random.randint(1, n_judgements)):
            i, j = random.choice(rows, 2, replace=False)
            wins = random.uniform() < 1 / (1 + np.exp(score[j] - score[i]))
            pairs.append([i, j] if wins else [j, i])
    return X, np.array(pairs), groups, score


@pytest.mark.parametrize(
    "ranker",
    [
        CalibratedRanker(Ridge(), context=None),
        CalibratedRanker(),
        LinearRanker("pairwise_squared"),
        LinearRanker("softmax"),
        LinearRanker("softmax", solver="sgd", max_iter=30, random_state=0),
    ],
    ids=["ridge", "default", "pairwise_squared", "softmax", "sgd"],
)
def test_every_ranker_takes_it(ranker):
    X, pairs, groups, score = world()
    labels = preference_labels(pairs, groups)
    loss = AggregatedLoss("ndcg", subset_size=10)
    ranker = clone(ranker).set_params(loss=loss).fit(X, labels)
    predicted = ranker.decision_function(X, groups=groups)
    assert np.corrcoef(predicted, score)[0, 1] > 0.7
    assert 0.8 < ranker.score(X, labels) <= 1
    assert get_ranking_scorer(loss)(ranker, X, labels) == pytest.approx(ranker.score(X, labels))
    assert ranker.loss is loss and loss.subset_size == 10  # fit does not change the parameter
    # the true scores are ranked best by the measure as well
    best = ranker.loss_.metric(
        Judgements.from_labels(labels),
        Queries.from_groups(groups).rank(Queries.from_groups(groups).sort(score)),
        Queries.from_groups(groups),
    )
    assert np.nanmean(best) > 0.9


def test_boosted_rankers_take_it():
    X, pairs, groups, score = world()
    loss = AggregatedLoss("ndcg", subset_size=10)
    ranker = BoostedRanker("softmax", loss=loss, regressor=regressor("lightgbm", 20))
    ranker.fit(X, preference_labels(pairs, groups))
    assert np.corrcoef(ranker.decision_function(X, groups=groups), score)[0, 1] > 0.6


@pytest.mark.parametrize(
    "surrogate", [name for name, make in SURROGATES.items() if not make().affine]
)
def test_surrogates_that_are_not_affine_are_refused(surrogate):
    """Their mean over subsets is not their value at the mean, which only one solver minimised."""
    X, pairs, groups, _ = world()
    labels = preference_labels(pairs, groups)
    rankers = [LinearRanker(surrogate, solver=solver, max_iter=1) for solver in ("lbfgs", "sgd")]
    if importlib.util.find_spec("lightgbm"):
        rankers.append(BoostedRanker(surrogate=surrogate))
    for ranker in rankers:
        ranker.set_params(loss=AggregatedLoss("dcg", subset_size=3))
        with pytest.raises(ValueError, match=r"not an affine function .* subset_size='all'"):
            ranker.fit(X, labels, groups=groups)
    rankers[0].set_params(loss=AggregatedLoss("dcg", subset_size="all"), max_iter=1000)
    whole = rankers[0].fit(X, labels, groups=groups)
    assert np.isfinite(whole.coef_).all()


def test_stochastic_gradients_draw_subsets_whose_mean_is_that_of_all():
    _, pairs, groups, _ = world(20, 12)
    judgements = Judgements.from_labels(preference_labels(pairs, groups))
    loss = AggregatedLoss("ndcg", subset_size=3, n_subsets=2000).resolve(judgements)
    drawn = loss.draws(judgements)
    numbers = np.repeat(np.arange(20), 3000)
    targets = drawn.draw(numbers)
    sizes = np.bincount(groups)
    rows = np.concatenate([np.tile(np.flatnonzero(groups == q), 3000) for q in range(20)])
    mean = np.bincount(rows, targets) / 3000
    error = np.sqrt(np.maximum(np.bincount(rows, targets**2) / 3000 - mean**2, 0) / 3000)
    expected = loss.mean_targets(judgements).targets
    assert np.abs(mean - expected).max() < 5 * error.max() and error.max() < 0.02
    assert len(drawn.values) == sizes.sum()
    # few judgements of a query: all of them, every time
    few = np.flatnonzero(judgements.per_query <= 3)
    assert len(few) > 0
    assert (loss.draws(judgements).draw(few) == loss.draws(judgements).draw(few)).all()


@pytest.mark.parametrize("name", [n for n, kind in STRUCTURES.items() if kind.takes != "clicks"])
def test_every_structure_gives_gains_in_the_order_of_its_scores(name):
    X, pairs, groups, score = world(30, 25)
    weight = np.random.RandomState(0).choice([1.0, 4.0], size=len(pairs))
    judgements = Judgements.from_labels(preference_labels(pairs, groups, weight))
    structure = get_structure(name)
    scores = structure.scores(judgements)
    gains = structure.gains(scores, judgements.queries)
    assert (gains >= 0).all() and np.isfinite(gains).all()
    for query in range(30):
        rows = groups == query
        above = np.subtract.outer(scores[rows], scores[rows])
        difference = np.subtract.outer(gains[rows], gains[rows])
        assert (difference[above > 1e-9] > 0).all() and np.abs(difference[above == 0]).max() == 0
    loss = AggregatedLoss("ndcg", name, subset_size=8, n_subsets=10)
    ranker = CalibratedRanker(Ridge(), loss=loss, context=None)
    ranker.fit(X, preference_labels(pairs, groups))
    assert np.corrcoef(ranker.decision_function(X, groups=groups), score)[0, 1] > 0.6


def test_subset_size_and_structure_can_be_searched():
    X, pairs, groups, _ = world()
    labels = preference_labels(pairs, groups)
    search = GridSearchCV(
        CalibratedRanker(Ridge(), loss=AggregatedLoss(), context=None),
        {"loss__subset_size": [1, 5, "auto", "all"], "loss__structure": ["log_odds", "borda"]},
        cv=QueryKFold(3),
    ).fit(X, labels)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert len(set(search.cv_results_["mean_test_score"].round(12))) > 2


def test_boosters_do_not_learn_judgements_as_labels():
    X, pairs, groups, _ = world()
    labels = preference_labels(pairs, groups)
    loss = AggregatedLoss("ndcg", subset_size=5)
    ranker = CalibratedRanker("stacked", loss=loss).fit(X, labels)
    assert list(ranker.model_.weights_) == ["targets"]
    for member in ("labels", "pd_by_scores"):
        with pytest.raises(ValueError, match="judgements"):
            CalibratedRanker(BoostingCV((None, member)), loss=loss).fit(X, labels)
    own = LinearRanker(Softmax(normalization="own"), loss=loss)
    with pytest.raises(ValueError, match="'own' needs a relevance of every row"):
        own.fit(X, labels)


def test_early_stopping_on_validation_queries():
    X, pairs, groups, score = world(100)
    ranker = CalibratedRanker(
        "boosting", loss=AggregatedLoss("ndcg", subset_size=10), validation_queries=0.2,
        random_state=0,
    )  # fmt: skip
    ranker.fit(X, preference_labels(pairs, groups))
    assert ranker.n_iter_ > 1
    assert np.corrcoef(ranker.decision_function(X, groups=groups), score)[0, 1] > 0.5


def test_more_judgements_of_a_query_weigh_more():
    pairs, groups = data_of([2, 6], [2, 2])
    judgements = Judgements.from_labels(preference_labels(pairs, groups))
    weight = AggregatedLoss().row_weight(judgements, judgements.queries)
    assert weight.tolist() == [{0: 0.5, 1: 1.5}[query] for query in groups]


def test_names_stand_for_losses_with_linear_gains():
    assert AggregatedLoss("ndcg@5")._inner().get_params()["gain"] == "linear"
    assert AggregatedLoss(get_loss("ndcg@5"))._inner().get_params()["gain"] == "exp2"
    assert AggregatedLoss("spearman")._inner() is not None


def clicked_world(seed=0):
    """Sessions of queries whose documents a feature describes, with position bias."""
    random = np.random.RandomState(seed)
    groups = np.repeat(np.arange(40), 5)
    X = random.normal(size=(200, 3))
    relevance = 1 / (1 + np.exp(-2 * X[:, 0]))
    propensities = 1 / np.arange(1, 6)
    shown, clicked = [], []
    for query in range(40):
        logged = 5 * query + np.argsort(-X[5 * query : 5 * query + 5, 1])  # another feature
        for _ in range(60):
            rows = logged if random.uniform() < 0.5 else random.permutation(logged)
            seen = random.uniform(size=5) < propensities
            clicked.append(1 + np.flatnonzero(seen & (random.uniform(size=5) < relevance[rows])))
            shown.append(rows)
    return X, click_labels(shown, clicked, groups), groups, relevance, propensities


def test_clicks_with_inverse_propensities():
    X, labels, _, _, propensities = clicked_world()
    found = {}
    for structure in (InversePropensity(propensities), "inverse_propensity", "click_through_rate"):
        loss = AggregatedLoss("dcg", structure, subset_size=5)
        ranker = CalibratedRanker(Ridge(), loss=loss, context=None).fit(X, labels)
        found[str(structure)] = ranker
        targets = ranker.loss_.mean_targets(read_clicks(labels))
        # The targets are linear in the clicks, so their mean is the score of all sessions.
        every = get_structure(ranker.loss_.structure).scores(read_clicks(labels))
        assert targets.targets == pytest.approx(every, abs=0.2)
        assert np.mean(targets.targets - every) == pytest.approx(0, abs=0.01)
    known, estimated, naive = found.values()
    # the logged order follows the second feature, which only position bias makes look relevant
    assert abs(known.coef_[1]) < 0.15 * known.coef_[0]
    assert abs(estimated.coef_[1]) < 0.15 * estimated.coef_[0]
    assert naive.coef_[1] > 0.2 * naive.coef_[0]
    assert estimated.loss_.structure.propensities == pytest.approx(propensities, abs=0.1)
    assert 0 < known.score(X, labels)
    # documents that no session showed have weight 0
    part = click_labels([[0, 1], [1, 0]], [1, None], [0, 0, 0, 1])
    loss = AggregatedLoss("dcg", "click_through_rate")
    assert loss.row_weight(read_clicks(part), Queries.from_groups([0, 0, 0, 1])).tolist() == [
        1.0, 1.0, 0.0, 0.0,
    ]  # fmt: skip
    ranker = CalibratedRanker(LinearRegression(), loss=loss, context=None, center=False)
    ranker.fit([[0.0], [1.0], [50.0], [60.0]], part)
    assert ranker.predict([[0.0], [1.0]], groups=[0, 0]).tolist() == [1, 2]


def test_clicks_of_the_cascade_model_feed_err():
    X, labels, groups, relevance, _ = clicked_world()
    loss = AggregatedLoss("err", "cascade", subset_size=20)
    ranker = CalibratedRanker(Ridge(), loss=loss, context=None).fit(X, labels)
    assert ranker.loss_.loss.get_params()["gain"] == "linear"
    assert ranker.loss_.loss.max_relevance == 1.0
    assert np.corrcoef(ranker.decision_function(X, groups=groups), relevance)[0, 1] > 0.6
    score = ranker.score(X, labels)
    assert 0 < score < 1


def test_labels_of_the_other_kind_are_refused():
    X, labels, groups, _, _ = clicked_world()
    pairs = preference_labels([[0, 1]], groups)
    with pytest.raises(ValueError, match="click_labels"):
        CalibratedRanker(Ridge(), loss=AggregatedLoss("dcg", "cascade")).fit(X, pairs)
    with pytest.raises(ValueError, match="preference_labels"):
        CalibratedRanker(Ridge(), loss=AggregatedLoss("dcg")).fit(X, labels)
    with pytest.raises(ValueError, match="AggregatedLoss"):
        CalibratedRanker(Ridge()).fit(X, labels)


PAIRS, GROUPS = np.array([[0, 1], [1, 2], [4, 3]]), [0, 0, 0, 1, 1]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"subset_size": 0}, "subset_size must be a whole number >= 1; got 0"),
        ({"subset_size": 2.5}, "subset_size must be a whole number >= 1"),
        ({"subset_size": True}, "subset_size must be a whole number"),
        ({"subset_size": "most"}, "subset_size must be 'auto', 'all' or a number"),
        ({"n_subsets": 0}, "n_subsets"),
        ({"gain": "exp"}, "gain must be 'auto', 'identity' or a function"),
        ({"gain": lambda s: s[:1]}, "one finite number per score"),
        ({"gain": lambda s: s * np.nan}, "one finite number per score"),
        (
            {"loss": "pd"},
            "loss='pd' itself",
        ),
        ({"loss": "ndgc"}, "Unknown loss 'ndgc'"),
        ({"gain": "identity"}, "relevance must be >= 0"),
        ({"loss": "err"}, "exceeds max_relevance=1.*gains computed by LogOdds"),
        ({"loss": "precision@3"}, "needs binary relevance.*gains computed by LogOdds"),
        ({"loss": "map"}, "MAP learns pairs of documents"),
        ({"structure": "log_ods"}, "log_odds"),
    ],
)
def test_bad_parameters(parameters, message):
    ranker = CalibratedRanker(Ridge(), loss=AggregatedLoss(**parameters))
    with pytest.raises(ValueError, match=message):
        ranker.fit(np.zeros((5, 1)), preference_labels(PAIRS, GROUPS))


@pytest.mark.parametrize("y", [[0, 1, 2, 0, 1], None, np.zeros((3, 2), dtype=int)])
def test_labels_without_judgements_are_refused(y):
    with pytest.raises(ValueError, match=r"preference_labels|requires y"):
        CalibratedRanker(Ridge(), loss=AggregatedLoss()).fit(np.zeros((5, 1)), y, groups=GROUPS)


def test_a_cut_query_is_refused():
    labels = preference_labels(PAIRS, GROUPS)
    with pytest.raises(ValueError, match="incomplete"):
        CalibratedRanker(Ridge(), loss=AggregatedLoss()).fit(np.zeros((4, 1)), labels[1:])


def test_losses_on_relevance_say_that_preferences_can_be_aggregated():
    labels = preference_labels([[0, 1]], [0, 0])
    with pytest.raises(ValueError, match=r"AggregatedLoss of sklearn_rankcal.aggregation"):
        CalibratedRanker(Ridge(), loss="ndcg").fit([[0.0], [1.0]], labels, groups=[0, 0])
