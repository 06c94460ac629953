"""Queries of many documents: every surrogate against a count of the pairs with equal terms."""

import itertools
import warnings

import numpy as np
import pytest
from scipy.special import logsumexp

from sklearn_rankcal import LinearRanker
from sklearn_rankcal.queries import Queries

# private: both ways to add pairs, to compare them
from sklearn_rankcal.surrogates import SURROGATES, PairwiseMargin, _pair_sums, get_surrogate

from ..surrogate_data import MARGINS, name_of

#: Numbers of documents, and steps of scores. No sum of steps is 1, where hinges have a corner.
SIZES = [(10, 0.0), (1000, 0.37), (10_000, 11.1)]
LARGE = [pytest.param(100_000, step, marks=pytest.mark.slow) for step in (0.0, 0.37, 11.1)]

PHI = {
    "logistic": lambda d: np.logaddexp(0, -d),
    "exponential": lambda d: np.exp(-d),
    "hinge": lambda d: np.maximum(0, 1 - d),
    "squared_hinge": lambda d: np.maximum(0, 1 - d) ** 2,
    "smooth_hinge": lambda d: np.where(d > 1, 0, np.where(d > 0, (1 - d) ** 2 / 2, 0.5 - d)),
}


def of_pairs(phi, weight, required=lambda y: 0.0):
    """A sum over pairs of documents, from the number of documents in each cell."""

    def value(v, s, n):
        y = v[:, None] - v
        count = n[:, None] * (n - np.eye(len(n)))
        w = count * weight(v[:, None] + 0 * y, y)
        terms = PHI[phi](s[:, None] - s - required(y))
        return float((w * np.where(w > 0, terms, 0)).sum())

    return value


def binary(v, y):
    return y > 0


def difference(v, y):
    return np.maximum(y, 0)


def utility(v, y):
    return v


#: The value of a query of n[c] documents with utility v[c] and score s[c], of defaults.
CELLS = {
    "pointwise_squared": lambda v, s, n: n @ (v - s) ** 2,
    "pointwise_logistic": lambda v, s, n: (
        n @ (v * np.logaddexp(0, -s) + (4 - v) * np.logaddexp(0, s))
    ),
    "pointwise_exponential": lambda v, s, n: n @ (v * np.exp(-s) + (4 - v) * np.exp(s)),
    "pointwise_squared_hinge": lambda v, s, n: (
        n @ (v * np.maximum(1 - s, 0) ** 2 + (4 - v) * np.maximum(s, 0) ** 2)
    ),
    "pointwise_smooth_hinge": lambda v, s, n: (
        n @ (v * PHI["smooth_hinge"](s) + (4 - v) * PHI["smooth_hinge"](1 - s))
    ),
    "pairwise_squared": lambda v, s, n: n.sum() ** 2 * np.cov(v - s, fweights=n, ddof=0),
    "pairwise_logistic": of_pairs("logistic", utility),
    "pairwise_exponential": of_pairs("exponential", utility),
    "pairwise_margin": of_pairs("squared_hinge", utility),
    "softmax": lambda v, s, n: n @ v * logsumexp(s, b=n) - n @ (v * s),
    "cosine": lambda v, s, n: 0.5 - n @ (v * s) / np.sqrt(n @ s**2) / 2 if s.any() else 0.5,
    "generalized_kl": lambda v, s, n: (
        n @ (np.where(v > 0, v * np.log(np.maximum(v, 1)), 0) - v * s - v + np.exp(s))
    ),
    "bregman": lambda v, s, n: n @ (v - s) ** 2,
    "duchi_mackey_jordan": lambda v, s, n: n @ (s * s / 2 - v * s),
    "difference_graph": of_pairs("logistic", difference),
    "weighted_comparisons": of_pairs("logistic", difference),
    "required_margin": of_pairs("hinge", binary, lambda y: y),
    "ranksvm": of_pairs("hinge", binary),
    "ranknet": of_pairs("logistic", binary),
    "rankboost": of_pairs("exponential", binary),
}


@pytest.mark.parametrize(("n", "spread"), SIZES + LARGE)
@pytest.mark.parametrize("name", SURROGATES)
def test_surrogates_of_large_queries_are_finite_and_right(name, n, spread):
    random = np.random.default_rng(n)
    v = random.integers(0, 3, n).astype(float)
    v[0] = 2.0
    s = spread * random.integers(-4, 5, n)
    cells, of_row, counts = np.unique(
        np.column_stack([v, s]), axis=0, return_inverse=True, return_counts=True
    )
    result = get_surrogate(name).evaluate(v, s, Queries.single(n))
    cell_v, cell_s = cells.T
    value = CELLS[name](cell_v, cell_s, counts)
    assert result.value[0] == pytest.approx(value, rel=1e-10, abs=1e-10)
    assert np.isfinite(result.gradient).all() and np.isfinite(result.curvature).all()
    if name == "cosine" and not s.any():
        return  # its direction has no derivative at 0
    of_cells = np.bincount(of_row.ravel(), result.gradient)  # NumPy 2.0: of shape (n, 1)
    step = 1e-4
    for c in range(len(cells)):
        ends = [
            CELLS[name](cell_v, np.where(np.arange(len(cells)) == c, cell_s + h, cell_s), counts)
            for h in (step, -step)
        ]
        slope = (ends[0] - ends[1]) / (2 * step)
        tolerance = 1e-6 * np.abs(of_cells).max() + 1e-10 * abs(value) / step
        tolerance += 4 * step * counts[c]  # for the corner of a second derivative
        if "svm" in name or name == "required_margin":
            # A hinge has corners only where differences of scores are whole numbers.
            tolerance += 0 if spread else np.inf
        assert of_cells[c] == pytest.approx(slope, rel=1e-6, abs=tolerance)


def test_a_query_of_alternating_labels_does_not_overflow():
    """Products of terms of pairs are taken in parts, also if every second pair is left out."""
    y = np.arange(3000) % 2
    for n_rows in (1200, 3000):
        labels, queries = y[:n_rows], Queries.single(n_rows)
        value = (
            get_surrogate("ranknet")
            .evaluate(labels, np.zeros(n_rows), queries, derivatives=0)
            .value
        )
        assert value[0] == pytest.approx((n_rows // 2) ** 2 * np.log(2), rel=1e-12)
    if _pair_sums.kernels.pair_sums is not None:  # the kernel, for which the query is too short
        v, queries = y.astype(float), Queries.single(3000)
        sums = _pair_sums._add_pairs(
            v, np.zeros(3000), queries, _pair_sums.MARGINS["logistic"], "binary", None, None
        )
        assert sums[0][0] == pytest.approx(1500**2 * np.log(2), rel=1e-12)
    X = np.column_stack([y + np.sin(np.arange(3000)), np.cos(np.arange(3000))])
    ranker = LinearRanker("ranknet").fit(X, y, groups=np.zeros(3000))
    assert ranker.coef_[0] > 10 * abs(ranker.coef_[1])


@pytest.mark.parametrize(
    ("weight", "required"),
    [
        (None, None),
        *itertools.product(["binary", "difference"], [None, "binary", "difference"]),
        (np.sqrt, np.square),
    ],
)
@pytest.mark.parametrize("margin", MARGINS)
def test_sums_by_level_are_sums_over_pairs(margin, weight, required):
    n, phi = 150, _pair_sums.MARGINS[margin]
    functions = _pair_sums.function_of(weight), _pair_sums.function_of(required)
    for spread in (0, 1, 30):
        random = np.random.default_rng(3)
        v = random.integers(0, 4, n) / 2
        # Some scores are equal, and some are exactly 1 apart.
        s = spread * np.round(4 * random.normal(size=n)) / 4
        pairs = _pair_sums._add_pairs(v, s, Queries.single(n), phi, weight, required, None)
        levels = _pair_sums.level_sums(v, s, phi, *functions)
        for one, other in zip(pairs, levels, strict=True):
            scale = max(np.abs(one).max(), 1e-9)
            np.testing.assert_allclose(other, one, rtol=1e-10, atol=1e-12 * scale)


@pytest.mark.parametrize("scores", ["equal", "spread", "outlier"])
@pytest.mark.parametrize("size", [1e9, 1e17, 1e160])
@pytest.mark.parametrize("margin", MARGINS)
def test_large_scores_keep_their_digits(margin, size, scores):
    """Sums of squares of scores overflow or cancel, and y + 1 is y, where differences are fine."""
    random = np.random.default_rng(6)
    n = 1200
    v, s = random.integers(0, 2, n).astype(float), random.normal(size=n)
    s = {"equal": np.full(n, size), "spread": size * s, "outlier": np.append(s[1:], size)}[scores]
    queries = Queries.single(n)
    with np.errstate(over="ignore"):
        phi = _pair_sums.MARGINS[margin]
        pairs = _pair_sums._add_pairs(v, s, queries, phi, "binary", None, None)
        sums = _pair_sums.pair_sums(v, s, queries, phi, weight="binary")
    for one, other in zip(pairs, sums, strict=True):
        scale = np.abs(one).max()
        np.testing.assert_allclose(other, one, rtol=1e-10, atol=1e-12 * scale)


@pytest.mark.parametrize(
    "surrogate",
    [get_surrogate("ranknet"), get_surrogate("ranksvm"), PairwiseMargin("logistic")],
    ids=name_of,
)
def test_a_large_query_among_small_ones(surrogate):
    random = np.random.default_rng(4)
    sizes = [3, 12_000, 1, 40, 9000, 2]
    groups = random.permutation(np.repeat(np.arange(6), sizes))
    queries = Queries.from_groups(groups)
    v, s = random.integers(0, 3, len(groups)).astype(float), random.normal(size=len(groups))
    together = surrogate.evaluate(v, s, queries)
    for q, of_query in enumerate(queries.ids):
        rows = groups == of_query
        alone = surrogate.evaluate(v[rows], s[rows], Queries.single(int(rows.sum())))
        assert together.value[q] == pytest.approx(alone.value[0], rel=1e-12)
        np.testing.assert_allclose(together.gradient[rows], alone.gradient, rtol=1e-12)
        np.testing.assert_allclose(together.curvature[rows], alone.curvature, rtol=1e-12)


def test_quadratic_work_says_what_it_costs(monkeypatch):
    random = np.random.default_rng(5)
    n = 2000
    v, s, queries = random.normal(size=n), random.normal(size=n), Queries.single(n)
    with warnings.catch_warnings(record=True) as nothing:
        get_surrogate("ranknet").evaluate(v, s, queries, derivatives=0)
    assert not nothing
    monkeypatch.setattr(_pair_sums, "_LONG", 0.01)
    with pytest.warns(UserWarning, match="4,000,000 pairs of documents takes about .* 'softmax'"):
        get_surrogate("ranknet").evaluate(v, s, queries, derivatives=0)
    # Few levels need no pairs.
    get_surrogate("ranksvm").evaluate(np.round(v), s, queries, derivatives=0)
