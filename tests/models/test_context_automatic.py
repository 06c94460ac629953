"""The columns to which ``context="auto"`` adds z-scores."""

import threading
import time

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import rankdata
from sklearn.linear_model import Ridge

from sklearn_rankcal import CalibratedRanker, context_columns
from sklearn_rankcal.datasets import make_ranking
from sklearn_rankcal.models import DocumentModel, Training, _context  # limits that tests lower
from sklearn_rankcal.models._context import columns_that_differ, sampled_queries, thinned_rows
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._features import hash_values

RNG = np.random.default_rng(0)
SIZES = RNG.integers(5, 60, size=1500)
QUERIES = Queries(np.append(0, np.cumsum(SIZES)))
N = QUERIES.n_rows


def per_query(scale):
    return QUERIES.repeat(scale * RNG.normal(size=QUERIES.n_queries))


def zero_inflated(values):
    return np.where(RNG.random(N) < 0.8, 0.0, values)


# column: (values, whether its z-score tells something new)
COLUMNS = {
    "the same normal in every query": (RNG.normal(size=N), False),
    "the same heavy tails": (RNG.standard_cauchy(size=N), False),
    "the same few values": (RNG.integers(0, 3, size=N), False),
    "the same zeros": (zero_inflated(RNG.exponential(size=N)), False),
    "constant": (np.full(N, 0.1), False),
    "constant in each query": (per_query(1.0), False),
    "missing everywhere": (np.full(N, np.nan), False),
    "missing at random": (np.where(RNG.random(N) < 0.5, np.nan, RNG.normal(size=N)), False),
    "a level": (RNG.normal(size=N) + per_query(0.3), True),
    "a level under heavy tails": (RNG.standard_cauchy(size=N) + per_query(1.0), True),
    "a level and infinite values": (
        np.where(RNG.random(N) < 0.1, np.inf, RNG.normal(size=N)) + per_query(0.5),
        True,
    ),
    "a share of ones": (RNG.random(N) < 0.1 + 0.4 * (per_query(1.0) > 0), True),
    "a spread": (RNG.normal(size=N) * np.exp(per_query(0.4)), True),
    "a scale beside zeros": (zero_inflated(RNG.random(N) * np.exp(per_query(0.7))), True),
}
TABLE = np.column_stack([values for values, _ in COLUMNS.values()])
WANTED = [name for name, (_, wanted) in COLUMNS.items() if wanted]


def test_columns_whose_level_or_spread_differs():
    chosen = columns_that_differ(TABLE, list(range(len(COLUMNS))), QUERIES)
    names = list(COLUMNS)
    assert [names[place] for place in chosen] == WANTED


def test_the_choice_does_not_depend_on_scales_or_on_the_order_of_rows():
    candidates = list(range(len(COLUMNS)))
    chosen = columns_that_differ(TABLE, candidates, QUERIES)
    assert columns_that_differ(1e6 + 1e-3 * TABLE, candidates, QUERIES) == chosen
    shuffle = RNG.permutation(N)
    queries = Queries.from_groups(QUERIES.codes[shuffle])
    assert columns_that_differ(TABLE[shuffle], candidates, queries) == chosen


def test_the_choice_does_not_depend_on_the_number_of_threads(monkeypatch):
    used = set()

    def differs(*arguments):
        used.add(threading.get_ident())
        time.sleep(0.01)  # so that no thread is fast enough to take all columns
        return kernel(*arguments)

    kernel = _context._differs
    monkeypatch.setattr(_context, "_differs", differs)
    for n_threads in (1, 2, 3):
        monkeypatch.setattr(_context, "allowed_threads", lambda n=n_threads: n)
        used.clear()
        test_columns_whose_level_or_spread_differs()
        assert len(used) == 1 if n_threads == 1 else 1 < len(used) <= n_threads


def test_the_intraclass_correlation_is_that_of_the_textbook():
    """One-way analysis of variance, written as a loop over queries."""
    values = TABLE[:, list(COLUMNS).index("a level")]
    ranks = rankdata(values)
    parts = np.split(ranks, QUERIES.offsets[1:-1])
    k = len(parts)
    between = sum(len(p) * (p.mean() - ranks.mean()) ** 2 for p in parts) / (k - 1)
    within = sum(((p - p.mean()) ** 2).sum() for p in parts) / (N - k)
    size = (N - sum(len(p) ** 2 for p in parts) / N) / (k - 1)
    share = (between - within) / (between + (size - 1) * within)
    error = np.sqrt(2 / (k - 1) + 2 / (N - k)) / size
    for limit, wanted in ((share + 1.99 * error, True), (share + 2.01 * error, False)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_context, "SMALLEST_SHARE", limit)
            assert _context._may_differ(ranks, QUERIES.codes) is wanted


def test_a_sample_of_whole_queries(monkeypatch):
    monkeypatch.setattr(_context, "SAMPLE_ROWS", N // 3)
    hashes = hash_values(QUERIES.ids)
    chosen = sampled_queries(hashes, QUERIES.sizes)
    assert 0 <= QUERIES.sizes[chosen].sum() - N // 3 < QUERIES.sizes.max()
    # of parts of the queries, in any order, the same ones are chosen
    order = RNG.permutation(QUERIES.n_queries)
    parts = [
        part[sampled_queries(hashes[part], QUERIES.sizes[part])]
        for part in (order[:700], order[700:])
    ]
    both = np.concatenate(parts)
    again = both[sampled_queries(hashes[both], QUERIES.sizes[both])]
    np.testing.assert_array_equal(again, chosen)


@pytest.mark.parametrize("n_queries", [2, 40, 70])
def test_a_sample_of_few_long_queries(n_queries):
    """Of queries that are longer than the sample, some rows are looked at, in no order of rows."""
    chosen = sampled_queries(hash_values(np.arange(n_queries)), np.full(n_queries, 10**6))
    assert len(chosen) == min(n_queries, 50)
    groups = np.arange(700 * n_queries) % n_queries  # the queries take turns
    X = RNG.integers(0, 9, size=(len(groups), 2)) * 1.0  # many rows are equal
    rows, part = thinned_rows(X, Queries.from_groups(groups), 30)
    np.testing.assert_array_equal(part.sizes, 24)
    np.testing.assert_array_equal(groups[rows], np.repeat(part.ids, part.sizes))
    order = RNG.permutation(len(groups))
    others, again = thinned_rows(X[order], Queries.from_groups(groups[order]), 30)
    by_query = [np.sort(X[order][others][groups[order][others] == q], axis=0) for q in range(2)]
    assert again.n_rows == part.n_rows
    for q in range(2):
        np.testing.assert_array_equal(np.sort(X[rows][groups[rows] == q], axis=0), by_query[q])


def test_small_tables_keep_all_columns_that_vary():
    X = RNG.normal(size=(40, 6))
    X[:, 2] = 1.0
    for queries in (Queries.uniform(8, 5), Queries.single(40)):
        assert columns_that_differ(X, list(range(6)), queries) == [0, 1, 3, 4, 5]
    assert columns_that_differ(X, list(range(6)), Queries.uniform(40, 1)) == []


def test_the_model_says_what_it_added():
    places = [list(COLUMNS).index(name) for name in ("a level", "a spread")]
    X = TABLE[:, [0, *places, 2]]
    y = np.digitize(X[:, 0] + RNG.normal(size=N), [0, 1])
    ranker = CalibratedRanker(Ridge()).fit(X, y, groups=QUERIES.codes)
    model = ranker.model_
    assert model.context_ == {"zscore": [1, 2]}
    assert model.regressor_.n_features_in_ == 6
    table, _ = model._table(X, QUERIES)
    np.testing.assert_array_equal(table, np.delete(context_columns(X, QUERIES.codes), [4, 7], 1))
    np.testing.assert_allclose(
        ranker.decision_function(X, groups=QUERIES.codes),
        model.regressor_.predict(table) * model._unit,
    )
    # the coefficient of a column contains that of its z-score
    slopes = model.regressor_.coef_[:4].copy()
    slopes[[1, 2]] += model.regressor_.coef_[4:] * model._inverse_scale
    np.testing.assert_allclose(ranker.coef_, slopes * model._unit)
    frame = pd.DataFrame(X, columns=list("abcd"))
    by_frame = CalibratedRanker(Ridge()).fit(frame, y, groups=QUERIES.codes)
    assert by_frame.model_.context_ == {"zscore": ["b", "c"]}
    assert list(by_frame.model_.regressor_.feature_names_in_)[4:] == ["b__zscore", "c__zscore"]
    np.testing.assert_array_equal(
        by_frame.predict(frame, groups=QUERIES.codes), ranker.predict(X, groups=QUERIES.codes)
    )


def test_where_no_column_differs_the_model_is_the_one_without_context():
    X = TABLE[:, :3]
    y = np.digitize(X[:, 0], [0, 1])
    groups = QUERIES.codes
    ranker = CalibratedRanker(Ridge()).fit(X, y, groups=groups)
    bare = CalibratedRanker(Ridge(), context=None).fit(X, y, groups=groups)
    assert ranker.model_.context_ == bare.model_.context_ == {}
    # scores of a query are equal if only rounding separates them, and here all rows are one query
    np.testing.assert_allclose(
        ranker.decision_function(X, groups=groups), bare.decision_function(X), rtol=1e-8, atol=1e-9
    )
    # Whether groups are needed depends on the parameters, and not on the data.
    with pytest.raises(ValueError, match="group"):
        ranker.decision_function(X)


def test_a_sparse_table_has_no_context():
    data = make_ranking(20, random_state=0)
    queries = Queries.from_groups(data.groups)
    model = DocumentModel(Ridge(), context="auto")
    assert model.fit(Training(sparse.csr_array(data.X), data.y, queries)).context_ == {}


def test_few_documents_need_context_of_all_columns_that_vary():
    """The mean of a few documents is far from that of all by chance."""
    rng = np.random.default_rng(0)
    for size, wanted in ((6, [0, 1]), (20, [1])):
        queries = Queries.uniform(400, size)
        level = queries.broadcast(rng.normal(size=400))
        X = rng.normal(size=(queries.n_rows, 4))
        X[:, 1] += level
        X[:, 2] = level
        X[:, 3] = np.nan
        assert columns_that_differ(X, [0, 1, 2, 3], queries) == wanted
        kind = "difference" if size < 10 else "zscore"  # a standard deviation of six is noise
        model = DocumentModel(context="auto").fit(Training(X, X[:, 0], queries))
        assert model.context_ == {kind: wanted}
