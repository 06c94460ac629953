"""Choice probabilities: of which rankers, their definition, and how close they are to the truth."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge, TweedieRegressor
from sklearn.model_selection import GridSearchCV

from sklearn_rankcal import (
    BoostedRanker,
    CalibratedRanker,
    LinearRanker,
    QueryKFold,
    distill,
    relevance_labels,
)
from sklearn_rankcal.metrics import choice_log_loss, compare_rankings, get_ranking_scorer
from sklearn_rankcal.models import BoostingCV
from sklearn_rankcal.queries import Queries


def choices(n_choices, curved=0.0, seed=0):
    """Choices among 3 to 6 alternatives: table, chosen, queries and true probabilities."""
    rng = np.random.default_rng(seed)
    queries = Queries.from_groups(np.repeat(np.arange(n_choices), rng.integers(3, 7, n_choices)))
    X = rng.normal(size=(queries.n_rows, 4))
    utility = X @ [1.0, 0.5, -0.5, 0.0] + curved * np.sin(3 * X[:, 3])
    odds = np.exp(utility)
    drawn = utility + rng.gumbel(size=queries.n_rows)
    chosen = (drawn == queries.broadcast(queries.max(drawn))).astype(float)
    return X, chosen, queries, odds / queries.broadcast(queries.sum(odds))


@pytest.fixture(scope="module")
def fitted():
    X, chosen, queries, _ = choices(800, curved=1.5)
    return CalibratedRanker(loss="choice").fit(X, chosen, groups=queries.codes)


def test_probabilities_sum_to_one_and_do_not_depend_on_the_order_of_rows(fitted):
    X, _, queries, _ = choices(100, seed=1)
    p = fitted.choice_probabilities(X, queries.codes)
    np.testing.assert_allclose(queries.sum(p), 1.0, rtol=1e-12)
    order = np.random.default_rng(0).permutation(len(X))
    shuffled = fitted.choice_probabilities(X[order], queries.codes[order])
    np.testing.assert_allclose(shuffled, p[order], rtol=1e-12)
    np.testing.assert_array_equal(fitted.predict(X, queries.codes), queries.rank(queries.sort(p)))
    assert fitted.choice_probabilities(X[:1], [7]).tolist() == [1.0]
    assert fitted.choice_probabilities(X[:0]).tolist() == []
    assert fitted.model_.summary().startswith("linear scores; poisson, ")
    student = distill(fitted, X, queries.codes)
    assert np.abs(student.choice_probabilities(X, queries.codes) - p).mean() < 0.02
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.choice_probabilities(X, queries.codes), p)


@pytest.mark.parametrize("curved", [0.0, 1.5])
def test_they_are_close_to_the_truth(curved):
    """Within bins of the prediction by .02, and for linear utilities as conditional logit."""
    X, chosen, queries, _ = choices(2_000, curved)
    new, _, asked, truth = choices(4_000, curved, seed=1)
    ranker = CalibratedRanker(loss="choice").fit(X, chosen, groups=queries.codes)
    p = ranker.choice_probabilities(new, asked.codes)
    for part in np.array_split(np.argsort(p), 10):
        assert abs(p[part].mean() - truth[part].mean()) < 0.02
    logit = LinearRanker("softmax", alpha=0).fit(X, chosen, groups=queries.codes)
    linear = logit.choice_probabilities(new, asked.codes)

    def excess(p):
        """The expected log-loss above the smallest possible one."""
        return float((truth * np.log(truth / p)).sum()) / asked.n_queries

    assert excess(p) < (0.004 if curved == 0 else 0.3 * excess(linear))


@pytest.mark.parametrize("n_choices", [5, 10, 300])
@pytest.mark.parametrize("kind", ["normal", "lognormal"])
def test_choices_that_are_predicted_without_error_leave_a_doubt(n_choices, kind):
    """Also if a column has a long tail. One more choice, of equal shares, counts."""
    rng = np.random.default_rng(n_choices)
    X = (
        rng.normal(size=(4 * n_choices, 2))
        if kind == "normal"
        else rng.lognormal(0, 2, (4 * n_choices, 2))
    )
    groups, best = np.repeat(np.arange(n_choices), 4), X[:, 0].reshape(-1, 4).argmax(axis=1)
    chosen = np.eye(4)[best].ravel()
    ranker = CalibratedRanker(loss="choice").fit(X, chosen, groups=groups)
    p = ranker.choice_probabilities(X, groups)
    assert choice_log_loss(chosen, p, groups=groups) < (1.2 if n_choices < 300 else 0.1)
    new = rng.normal(size=(400, 2))
    p = ranker.choice_probabilities(new, np.repeat(np.arange(100), 4)).reshape(-1, 4)
    first = new[:, 0].reshape(-1, 4).argmax(axis=1)
    assert -np.log(p[np.arange(100), first]).mean() < 1.7 and p.min() > 0


def test_softmax_of_linear_scores():
    X, chosen, queries, _ = choices(100)
    for loss in ("ndcg", "choice"):
        ranker = LinearRanker("softmax", alpha=0, loss=loss).fit(X, chosen, groups=queries.codes)
        odds = np.exp(X @ ranker.coef_)
        np.testing.assert_allclose(
            ranker.choice_probabilities(X, queries.codes),
            odds / queries.broadcast(queries.sum(odds)),
            rtol=1e-9,
        )


def test_large_scores_do_not_overflow():
    ranker = LinearRanker("softmax").fit([[0.0], [1.0]], [0, 1], groups=[0, 0])
    assert ranker.choice_probabilities([[0.0], [1e6]], [0, 0]) == pytest.approx([0, 1], abs=1e-300)


@pytest.mark.parametrize(
    "ranker", [CalibratedRanker(), LinearRanker("ranknet"), BoostedRanker("cosine")]
)
def test_other_rankers_name_those_that_have_them(ranker):
    assert not hasattr(ranker, "choice_probabilities")
    with pytest.raises(AttributeError) as error:
        ranker.choice_probabilities([[1.0]], [0])
    assert "needs CalibratedRanker(loss='choice')" in str(error.value.__cause__)


@pytest.mark.parametrize(
    "regressor",
    [
        LogisticRegression(),
        PoissonRegressor(alpha=1e-3),
        HistGradientBoostingRegressor(loss="poisson", max_iter=60, max_leaf_nodes=5),
    ],
)
def test_classifiers_and_regressors_of_logarithms_inside(regressor):
    X, chosen, queries, truth = choices(1_000)
    ranker = CalibratedRanker(regressor, loss="choice").fit(X, chosen, groups=queries.codes)
    p = ranker.choice_probabilities(X, queries.codes)
    np.testing.assert_allclose(queries.sum(p), 1.0, rtol=1e-12)
    equal = 1 / queries.broadcast(queries.sizes)
    assert np.abs(p - truth).mean() < 0.4 * np.abs(equal - truth).mean()


def test_regressors_with_negative_shares_are_refused():
    X, chosen, queries, _ = choices(50)
    ranker = CalibratedRanker(Ridge(), loss="choice").fit(X, chosen, groups=queries.codes)
    with pytest.raises(ValueError, match=r"negative shares.*loss='poisson'"):
        ranker.choice_probabilities(X, queries.codes)
    tweedie = TweedieRegressor(power=1.5, link="log", alpha=0)  # its targets are not centred
    ranker = CalibratedRanker(tweedie, loss="choice").fit(X, chosen, groups=queries.codes)
    assert ranker.choice_probabilities(X, queries.codes).min() > 0
    for losses in (("linear",), ("linear", None), ("linear", "poisson", "forest")):
        with pytest.raises(ValueError, match="'linear' needs 'poisson'"):
            CalibratedRanker(BoostingCV(losses), loss="choice").fit(X, chosen, groups=queries.codes)
    with pytest.raises(ValueError, match="'stacked' estimates no choice probabilities"):
        CalibratedRanker("stacked", loss="choice").fit(X, chosen, groups=queries.codes)


def test_choices_without_information_are_dropped():
    """No one was chosen, or there is one alternative: probabilities are those of the others."""
    X, chosen, queries, _ = choices(60)
    wanted = CalibratedRanker("boosting", loss="choice").fit(X, chosen, groups=queries.codes)
    more = np.concatenate([X, X[:4] + 1]), np.append(chosen, [1, 0, 0, 0])
    groups = np.append(queries.codes, [70, 71, 71, 71])
    found = CalibratedRanker("boosting", loss="choice").fit(*more, groups=groups)
    assert found.n_queries_dropped_ == 2
    np.testing.assert_array_equal(
        found.choice_probabilities(X, queries.codes), wanted.choice_probabilities(X, queries.codes)
    )


def test_numbers_of_choices_give_expected_shares():
    rng = np.random.default_rng(0)
    X, groups = np.tile(np.eye(3), (300, 1)), np.repeat(np.arange(300), 3)
    counts = rng.multinomial(20, [0.6, 0.3, 0.1], 300).ravel()
    ranker = CalibratedRanker(loss="choice").fit(X, counts, groups=groups)
    p = ranker.choice_probabilities(np.eye(3), [0, 0, 0])
    np.testing.assert_allclose(p, counts.reshape(300, 3).mean(axis=0) / 20, atol=0.01)
    assert ranker.score(X, counts, groups) == pytest.approx(counts[::3].mean() / 20)
    scorer = get_ranking_scorer("choice")
    assert scorer(ranker, X, counts, groups=groups) == ranker.score(X, counts, groups)


def test_linear_scores_have_categories_and_missing_values():
    """Constants of alternatives, and a price that is missing now and then."""
    rng = np.random.default_rng(0)
    n = 1_500
    kinds = np.tile(["bus", "car", "walk"], n)
    price = np.where(kinds == "walk", np.nan, rng.normal(size=3 * n))
    utility = np.select([kinds == "bus", kinds == "car"], [1.0, 0.5]) - np.nan_to_num(price)
    drawn = (utility + rng.gumbel(size=3 * n)).reshape(n, 3)
    chosen = (drawn == drawn.max(axis=1, keepdims=True)).ravel().astype(float)
    table = pd.DataFrame({"price": price, "kind": pd.Categorical(kinds)})
    groups = np.repeat(np.arange(n), 3)
    model = BoostingCV(("linear", "poisson"))
    ranker = CalibratedRanker(model, loss="choice").fit(table, chosen, groups=groups)
    odds = np.exp(utility).reshape(n, 3)
    truth = (odds / odds.sum(axis=1, keepdims=True)).ravel()
    assert np.abs(ranker.choice_probabilities(table, groups) - truth).mean() < 0.03
    assert ranker.model_.sizes_["poisson"][0] < 30  # linear scores leave little to the trees
    with pytest.raises(TypeError, match="adds the scores of a linear model"):
        ranker.transform_table(table, groups)


def test_validation_queries_choose_by_the_log_loss():
    X, chosen, queries, _ = choices(400, curved=1.5)
    fit = queries.codes < 300
    what = {"X_val": X[~fit], "y_val": chosen[~fit], "groups_val": queries.codes[~fit]}
    for regressor in (None, HistGradientBoostingRegressor(loss="poisson", early_stopping=False)):
        ranker = CalibratedRanker(regressor, loss="choice")
        ranker.fit(X[fit], chosen[fit], groups=queries.codes[fit], **what)
        p = ranker.choice_probabilities(X[~fit], queries.codes[~fit])
        loss = choice_log_loss(chosen[~fit], p, groups=queries.codes[~fit])
        assert ranker.validation_scores_.max() == pytest.approx(-loss)


def test_the_log_loss(fitted):
    y, p, groups = [1, 0, 0, 1, 2, 1], [0.5, 0.5, 0.2, 0.8, 0.1, 0.9], [0, 0, 1, 1, 2, 2]
    each = [-np.log(0.5), -np.log(0.8), -(2 * np.log(0.1) + np.log(0.9)) / 3]
    assert choice_log_loss(y, p, groups=groups) == pytest.approx(np.mean(each))
    weight = [1, 1, 2, 2, 1, 1]
    found = choice_log_loss(y, p, groups=groups, sample_weight=weight)
    assert found == pytest.approx(np.average(each, weights=[1, 2, 1]))
    assert choice_log_loss([1, 0], [0.0, 1.0], groups=[0, 0]) == pytest.approx(36.04, abs=0.01)
    for wrong in ([0.6, 0.6], [1.5, -0.5]):
        with pytest.raises(ValueError, match="needs probabilities"):
            choice_log_loss([1, 0], wrong, groups=[0, 0])
    X, chosen, queries, _ = choices(50, seed=2)
    p = fitted.choice_probabilities(X, queries.codes)
    equal = 1.0 / queries.broadcast(queries.sizes)
    found = compare_rankings(chosen, p, equal, groups=queries.codes, metric="choice_log_loss")
    wanted = choice_log_loss(chosen, p, groups=queries.codes) - np.log(queries.sizes).mean()
    assert found.difference == pytest.approx(wanted)
    assert found.low < wanted < found.high


def test_the_scorer_chooses_in_a_search():
    X, chosen, queries, _ = choices(120, curved=2.0)
    scorer = get_ranking_scorer("choice_log_loss")
    search = GridSearchCV(
        CalibratedRanker("boosting", loss="choice"), {"context": [None, "rank"]},
        cv=QueryKFold(2), scoring=scorer,
    )  # fmt: skip
    search.fit(X, relevance_labels(chosen, queries.codes))
    p = search.best_estimator_.choice_probabilities(X, queries.codes)
    found = scorer(search, X, relevance_labels(chosen, queries.codes))
    assert found == -choice_log_loss(chosen, p, groups=queries.codes)
    assert (search.cv_results_["mean_test_score"] > -1.3).all()  # equal shares have -1.48
