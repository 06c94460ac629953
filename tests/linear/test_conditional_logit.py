"""Conditional logit (`LinearRanker` with alpha=0): published tables, errors, and what has none."""

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.linalg import sqrtm
from scipy.special import log_softmax
from scipy.stats import norm

from sklearn_rankcal import LinearRanker
from sklearn_rankcal.losses import DCG

CHOICES = Path(__file__).parents[3] / "shared" / "data" / "choices"
needs_choices = pytest.mark.skipif(not CHOICES.exists(), reason="needs the data of choices")
COEF = np.array([0.8, -0.5, 0.0])


def make_choices(n=200, seed=0, persons=None, tastes=0.0, coef=COEF):
    """Choices among 2 to 5 rows: X, y, groups, and the person of each row."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n), rng.integers(2, 6, n))
    X = rng.normal(size=(len(groups), len(coef)))
    persons = np.arange(n) % (persons or n)
    own = coef + tastes * rng.normal(size=(persons.max() + 1, len(coef)))
    utility = (X * own[persons[groups]]).sum(axis=1) + rng.gumbel(size=len(groups))
    y = utility == pd.Series(utility).groupby(groups).transform("max").to_numpy()
    return X, y.astype(int), groups, persons[groups]


def fit(X, y, groups, alpha=0, loss="ndcg", **given):
    return LinearRanker("softmax", alpha=alpha, loss=loss).fit(X, y, groups=groups, **given)


def by_query(X, y, groups, coef):
    """The log-likelihood, score and information of each query, one by one."""
    found = []
    for query in np.unique(groups):
        table, chosen = X[groups == query], y[groups == query]
        share = np.exp(log_softmax(table @ coef))
        centred = table - share @ table
        information = chosen.sum() * (centred.T * share) @ centred
        value = float(chosen @ log_softmax(table @ coef))
        found.append((value, table.T @ (chosen - chosen.sum() * share), information))
    return [np.array(one) for one in zip(*found, strict=True)]


@needs_choices
def test_the_published_table_of_fishing():
    data = pd.read_csv(CHOICES / "fishing.csv.gz")
    X = data[["price", "catch"]].copy()
    for place in ("boat", "charter", "pier"):
        X[place] = (data.alt == place) * 1.0
        X[f"income of {place}"] = (data.alt == place) * data.income
    summary = fit(X, data.choice, data.id).summary()
    published = [-0.02512, 0.3578, 0.5273, 0.0000894, 1.6944, -0.0000333, 0.7780, -0.0001276]
    np.testing.assert_allclose(summary.coef, published, rtol=1e-3)
    assert summary.log_likelihood == pytest.approx(-1215.138, abs=5e-4)
    assert summary.log_likelihood_equal == pytest.approx(-1182 * np.log(4))
    assert summary.n_choices == 1182 and summary.columns.tolist() == list(X.columns)


@needs_choices
def test_the_published_tables_of_heating():
    wide, kinds = pd.read_csv(CHOICES / "heating.csv.gz"), ["gc", "gr", "ec", "er", "hp"]
    X = np.stack([wide[[f"ic.{kind}", f"oc.{kind}"]] for kind in kinds], axis=1).reshape(-1, 2)
    y = (wide.depvar.to_numpy()[:, None] == kinds).ravel().astype(int)
    groups = np.repeat(wide.idcase, 5)
    summary = fit(X, y, groups).summary()
    np.testing.assert_allclose(summary.coef, [-0.006232, -0.004580], rtol=1e-4)
    assert summary.log_likelihood == pytest.approx(-1095.24, abs=5e-3)
    constants = np.tile(np.eye(5)[:, :4], (len(wide), 1))
    coef = fit(np.hstack([X, constants]), y, groups).coef_
    published = [-0.001533, -0.006996, 1.711, 0.3083, 1.6588, 1.8534]
    np.testing.assert_allclose(coef, published, rtol=5e-4)


def test_statsmodels():
    models = pytest.importorskip("statsmodels.discrete.conditional_models")
    X, y, groups, _ = make_choices()
    peer = models.ConditionalLogit(y, X, groups=groups).fit(
        method="newton", disp=False, skip_hessian=False
    )
    found = fit(X, y, groups).summary()
    table = found.table
    np.testing.assert_allclose(found.coef, peer.params, rtol=1e-6)
    np.testing.assert_allclose(table["std_error"], peer.bse, rtol=1e-5)
    np.testing.assert_allclose(table["p_value"], peer.pvalues, rtol=1e-4)
    np.testing.assert_allclose(np.transpose([table["low"], table["high"]]), peer.conf_int(), 1e-4)
    assert found.log_likelihood == pytest.approx(peer.llf)


def test_errors_are_those_of_the_second_differences():
    """Also with several choices in a query, which are independent."""
    X, y, groups, _ = make_choices(60)
    y = y * np.random.default_rng(1).integers(1, 4, len(y)) + (np.arange(len(y)) % 7 == 0)
    ranker = fit(X, y, groups, loss=DCG(gain="linear"))

    def value(coef):
        return by_query(X, y, groups, coef)[0].sum()

    def pair(a, b):
        return sum(i * j * value(ranker.coef_ + i * a + j * b) for i in (-1, 1) for j in (-1, 1))

    step = 1e-3 * np.eye(3)
    hessian = np.array([[pair(a, b) for a in step] for b in step]) / 4e-6
    np.testing.assert_allclose(ranker.covariance_, np.linalg.inv(-hessian), rtol=1e-4, atol=1e-7)
    summary, best = ranker.summary(), value(ranker.coef_)
    assert summary.n_choices == y.sum() and summary.log_likelihood == pytest.approx(best)
    assert summary.mcfadden_r2 == pytest.approx(1 - best / value(np.zeros(3)))
    assert summary.aic == pytest.approx(6 - 2 * best)
    assert summary.bic == pytest.approx(3 * np.log(y.sum()) - 2 * best)
    error, table = np.sqrt(np.diag(ranker.covariance_)), summary.table
    np.testing.assert_allclose(table["std_error"], error)
    np.testing.assert_allclose(table["p_value"], 2 * norm.sf(np.abs(ranker.coef_ / error)), 1e-4)
    ends = norm.interval(0.95, ranker.coef_, error)
    np.testing.assert_allclose([table["low"], table["high"]], ends)


def test_weights_have_no_unit():
    X, y, groups, _ = make_choices()
    weight = np.random.default_rng(3).uniform(0.1, 4, 200)
    ranker = fit(X, y, groups, sample_weight=weight[groups])
    _, score, information = by_query(X, y, groups, ranker.coef_)
    np.testing.assert_allclose(weight @ score, 0, atol=1e-9)
    bread = np.linalg.inv(np.tensordot(weight, information, 1))
    expected = bread @ np.tensordot(weight**2, information, 1) @ bread
    np.testing.assert_allclose(ranker.covariance_, expected, rtol=1e-9)
    plain, same = fit(X, y, groups), fit(X, y, groups, sample_weight=np.full(len(y), 1e7))
    np.testing.assert_allclose(same.covariance_, plain.covariance_, rtol=1e-9)
    assert repr(same.summary()) == repr(plain.summary())


@pytest.mark.parametrize("weight", [None, np.random.default_rng(3).uniform(0.1, 4, 90)])
def test_errors_by_clusters_are_corrected_by_bell_and_mccaffrey(weight):
    X, y, groups, persons = make_choices(90, persons=8, tastes=1.0)
    of_rows = None if weight is None else weight[groups]
    ranker = fit(X, y, groups, clusters=[f"person {p}" for p in persons], sample_weight=of_rows)
    _, score, information = by_query(X, y, groups, ranker.coef_)
    weight = np.ones(90) if weight is None else weight
    codes = np.arange(90) % 8
    known = [np.tensordot(weight[codes == k], information[codes == k], 1) for k in range(8)]
    root = np.linalg.cholesky(np.linalg.inv(sum(known)))  # root root' = inverse information
    own = [root.T @ one @ root for one in known]
    adjusted = [np.linalg.inv(sqrtm(np.eye(3) - one)) for one in own]
    residuals = [
        a @ root.T @ (weight * score.T)[:, codes == k].sum(axis=1) for k, a in enumerate(adjusted)
    ]
    expected = root @ sum(np.outer(u, u) for u in residuals) @ root.T
    np.testing.assert_allclose(ranker.covariance_, expected, rtol=1e-6)
    table = ranker.summary().table
    assert ((table["degrees"] > 4) & (table["degrees"] <= 7)).all()


def test_clusters_that_say_too_little():
    X, y, groups, persons = make_choices(90, persons=6)
    X[persons > 0, 2] = 0  # only one person informs the last coefficient
    summary = fit(X, y, groups, clusters=persons).summary()
    assert np.isinf(summary.table["std_error"]).tolist() == [False, False, True]
    assert summary.table["p_value"][2] == 1 and summary.table["low"][2] == -np.inf
    assert "6 clusters" in repr(summary)
    alone = fit(X, y, groups, clusters=np.zeros(len(y)))
    assert np.isinf(alone.summary().table["high"]).all() and np.isnan(alone.covariance_).all()
    with pytest.raises(ValueError, match="All rows of a query must have the same"):
        fit(X, y, groups, clusters=np.arange(len(y)))


@pytest.mark.parametrize(("n", "persons"), [(50, None), (300, 5), (100, 10)])
def test_intervals_cover_the_coefficients(n, persons):
    """`examples/benchmarks/bench_choice_errors.py` has the figures."""
    coef = np.array([0.6, 0.0])
    hits = []
    for seed in range(150):
        X, y, groups, person = make_choices(n, seed, persons, 0.0 if persons is None else 0.5, coef)
        table = fit(X, y, groups, clusters=None if persons is None else person).summary().table
        hits.append((table["low"] < 0) & (table["high"] > 0))
    assert np.mean(hits, axis=0)[1] > 0.91  # the mean taste of 0 is that of the model, too


def test_units_sparse_tables_and_the_order_of_rows_do_not_matter():
    X, y, groups, _ = make_choices()
    X = np.where(np.abs(X) < 0.7, 0.0, X)
    plain = fit(X, y, groups)
    units = np.array([1e-7, 1e5, 1.0])
    for table in (X * units + [0, 0, 1.7e6], sparse.csr_array(X * units)):
        shuffle = np.random.default_rng(0).permutation(len(y))
        other = fit(table[shuffle], y[shuffle], groups[shuffle])
        np.testing.assert_allclose(other.coef_ * units, plain.coef_, rtol=1e-6)
        error = np.sqrt(np.diag(other.covariance_)) * units
        np.testing.assert_allclose(error, np.sqrt(np.diag(plain.covariance_)), rtol=1e-6)


def test_large_margins():
    """Most choices are nearly certain, and the last one is against odds of e^-60."""
    X, _, groups, _ = make_choices(50)
    y = (X[:, 0] == pd.Series(X[:, 0]).groupby(groups).transform("max")).to_numpy().astype(int)
    X, y, groups = [*X, [60, 0, 0], [0, 0, 0]], [*y, 0, 1], [*groups, 50, 50]
    coef = fit(X, y, groups).coef_
    score = by_query(np.array(X), np.array(y), np.array(groups), coef)[1].sum(axis=0)
    assert np.abs(score).max() < 1e-8 and np.abs(coef).max() < 100


def test_a_distant_start_needs_shorter_steps():
    X, y, groups, _ = make_choices(30, seed=1, coef=np.array([6.0, -4.0, 0.0]))
    ranker = LinearRanker(alpha=0, warm_start=True).fit(X, y, groups=groups)
    coef = ranker.coef_.copy()
    ranker.model_.coef_ = 8 * coef
    np.testing.assert_allclose(ranker.fit(X, y, groups=groups).coef_, coef, rtol=1e-6)


def test_queries_without_a_choice_are_counted():
    X, y, groups, _ = make_choices()
    plain = fit(X, y, groups)
    rows = X[:5] + 100.0
    silent = [200, 200, 201, 201, 202]  # nobody chose of two of them, and one has one row
    for loss in ("ndcg", "dcg"):
        more = fit(np.vstack([X, rows]), [*y, 0, 0, 0, 0, 1], [*groups, *silent], loss=loss)
        np.testing.assert_allclose(more.coef_, plain.coef_, rtol=1e-9)
        assert more.summary().n_silent == 3 and more.summary().n_choices == 200
    assert "200 choices, 3 queries without a choice" in repr(more.summary())


def test_a_penalty_has_its_exact_minimum_by_default_and_no_errors():
    X, y, groups, _ = make_choices()
    ranker = fit(X, y, groups, alpha=2.0)
    score = by_query(X, y, groups, ranker.coef_)[1].sum(axis=0)
    np.testing.assert_allclose(score, 2 * ranker.coef_, atol=1e-8)
    for call in (ranker.summary, lambda: ranker.covariance_):
        with pytest.raises(AttributeError, match=r"no standard errors. .* because a penalty"):
            call()
    y[np.flatnonzero(groups == 0)] = 1
    with pytest.raises(AttributeError, match=r"need .* labels that count choices"):
        fit(X, y, groups).summary()
    assert fit(X, y, groups, loss="dcg").summary().n_choices == 199 + (groups == 0).sum()


def columns_of(name, X, y, groups):
    """Add columns without a finite or unique coefficient; return the table and their numbers."""
    place = np.arange(len(y)) - np.searchsorted(groups, groups)
    if name == "constant":
        return np.column_stack([X, groups % 13]), [3]
    if name == "indicators":
        return np.column_stack([X, place == 0, place == 1, place > 1]), [3, 4, 5]
    if name == "sum":
        return np.column_stack([X, X[:, 0] + X[:, 1] / 3 + groups]), [0, 1, 3]
    if name == "never chosen":
        never = [(place == k) & (y == 0) for k in (1, 2)]
        return np.column_stack([X, *never]), [3, 4]
    return np.column_stack([X, X[:, 1] + np.where(groups < 20, y, 0)]), [1, 3]


@pytest.mark.parametrize("name", ["constant", "indicators", "sum", "never chosen", "separated"])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, pd.DataFrame])
def test_columns_without_estimates_are_named(name, container):
    X, y, groups, _ = make_choices()
    table, columns = columns_of(name, X, y, groups)
    if container is pd.DataFrame:
        table = pd.DataFrame(table).rename(columns="x{}".format)
        columns = [f"x{column}" for column in columns]
    else:
        table = container(table.astype(float))
    why = "no unique" if name in ("constant", "indicators", "sum") else "no finite"
    for weight in (None, np.where(groups < 20, 1e-9, 1.0)):
        with pytest.raises(ValueError) as error:
            fit(table, y, groups, sample_weight=weight)
        assert f"columns {columns} have {why}" in str(error.value)
    assert np.isfinite(fit(table, y, groups, alpha=1e-3).coef_).all()
    if name == "separated" and container is np.asarray:  # one choice is against them
        table[np.flatnonzero((groups == 199) & (y == 0))[0], 3] += 1e-3
        assert np.abs(fit(table, y, groups).coef_).max() < 1e5


def test_the_table_of_a_pickled_ranker():
    X, y, groups, _ = make_choices()
    frame = pd.DataFrame(X, columns=["price", "time", "comfort"])
    frame.insert(1, "trip", groups)
    ranker = LinearRanker(alpha=0, group_column="trip").fit(frame, y)
    data = pickle.dumps(ranker)
    assert len(data) < 8000 and repr(pickle.loads(data).summary()) == repr(ranker.summary())
    table = ranker.summary(confidence_level=0.9).to_frame().set_index("column")
    assert [*table.index] == ["price", "time", "comfort"]
    assert (table.high - table.coef).tolist() == pytest.approx(1.6449 * table.std_error, 1e-4)
    assert ranker.covariance_.shape == (4, 4) and not ranker.covariance_[1].any()
    text = repr(ranker.summary())
    assert "Conditional logit of 200 choices\n" in text and "McFadden's R2" in text
