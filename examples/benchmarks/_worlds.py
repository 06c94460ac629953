"""Generated ranking data of different kinds, used to choose the defaults of `CalibratedRanker`.

Each world is a function of a seed that returns (X, y, groups). The worlds differ in these respects:
whether labels depend linearly on features; whether features have a level of their own in each
query, and whether the level is informative about relevance; the numbers of queries, documents,
grades and columns; and the noise of the labels. `digits` is made from scikit-learn's images of
digits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits

Data = tuple[np.ndarray, np.ndarray, np.ndarray]
FIVE_GRADES = (0.55, 0.2, 0.13, 0.08, 0.04)
THREE_GRADES = (0.75, 0.15, 0.1)
TWO_GRADES = (0.85, 0.15)


def to_grades(values: np.ndarray, shares: Sequence[float]) -> np.ndarray:
    """Convert real numbers to grades 0, 1, .. with the given share of rows for each grade."""
    return np.searchsorted(np.quantile(values, np.cumsum(shares)[:-1]), values).astype(float)


def query_ids(n_queries: int, n_documents: float, rng: np.random.Generator) -> np.ndarray:
    return np.repeat(np.arange(n_queries), np.maximum(3, rng.poisson(n_documents, n_queries)))


def features(
    seed: int,
    n_queries: int,
    n_documents: float,
    n_columns: int,
    shares: Sequence[float],
    *,
    linear: bool = False,
    shift: float = 0.0,
    level: float = 0.0,
    noise: float = 1.5,
) -> Data:
    """Labels are a function of the features and noise.

    `shift` moves every feature by a number for each query that has no meaning; `level` moves four
    features and the relevance together.
    """
    rng = np.random.default_rng(seed)
    groups = query_ids(n_queries, n_documents, rng)
    n_rows, n_true = len(groups), 8
    X = rng.standard_normal((n_rows, n_columns))
    X[:, ::3] = np.exp(0.7 * X[:, ::3])  # some columns are skewed
    X = X + X @ (0.15 * rng.standard_normal((n_columns, n_columns)))
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    if linear:
        relevance = standard[:, :n_true] @ rng.standard_normal(n_true)
    else:
        relevance = np.zeros(n_rows)
        for _ in range(12):
            i, j = rng.integers(0, min(2 * n_true, n_columns), 2)
            c, d = 0.5 * rng.standard_normal(2)
            first, second = standard[:, i] - c, standard[:, j] - d
            shapes = (np.tanh(3 * first), np.tanh(2 * first) * np.tanh(2 * second), np.abs(first))
            relevance += rng.standard_normal() * shapes[rng.integers(3)]
    relevance /= relevance.std()
    X = X + shift * rng.standard_normal((n_queries, n_columns))[groups]
    if level:
        levels = level * rng.standard_normal(n_queries)[groups]
        relevance = relevance + levels
        X[:, rng.integers(0, n_columns, 4)] += levels[:, None]
    return X, to_grades(relevance + noise * rng.standard_normal(n_rows), shares), groups


def measurements(
    seed: int,
    n_queries: int,
    n_documents: float,
    n_columns: int,
    shares: Sequence[float],
    *,
    between: float = 1.0,
    error: float = 1.5,
    sparse: float = 0.0,
    noise: float = 1.5,
) -> Data:
    """Features are redundant noisy measurements of five qualities, as in search engines.

    The qualities vary `between` queries too, and mean the same there. A share `sparse` of the
    columns is mostly 0.
    """
    rng = np.random.default_rng(seed)
    groups = query_ids(n_queries, n_documents, rng)
    n_rows, n_qualities = len(groups), 5
    quality = between * rng.standard_normal((n_queries, n_qualities))[groups]
    quality += rng.standard_normal((n_rows, n_qualities))
    weights = np.abs(rng.standard_normal(n_qualities))
    relevance = np.log1p(np.exp(2 * quality)) @ weights
    relevance += 0.7 * np.minimum(quality[:, 0], quality[:, 1]) * weights[0]
    relevance = (relevance - relevance.mean()) / relevance.std()
    X = np.empty((n_rows, n_columns))
    for k in range(n_columns):
        values = quality @ rng.dirichlet(np.full(n_qualities, 0.3))
        values += error * rng.standard_normal(n_rows)
        if rng.random() < 0.5:
            values += rng.standard_normal(n_queries)[groups]
        X[:, k] = (np.exp(values), np.maximum(values, 0), values)[rng.integers(3)]
        if rng.random() < sparse:
            X[rng.random(n_rows) < 0.8, k] = 0
    return X, to_grades(relevance + noise * rng.standard_normal(n_rows), shares), groups


def digits(seed: int, n_queries: int = 700, n_documents: int = 20) -> Data:
    """The query is an image of a digit; images of the same digit have relevance 2, neighbours 1."""
    images = load_digits()
    rng = np.random.default_rng(seed)
    pixels = images.data.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16)
    pixels = pixels + rng.normal(0, 2, pixels.shape)
    tables, labels = [], []
    for query in rng.choice(len(pixels), n_queries, replace=False):
        rows = rng.choice(len(pixels), n_documents, replace=False)
        found, wanted = pixels[rows], pixels[query]
        tables.append(np.hstack([np.abs(found - wanted), found, (found * wanted)[:, :8]]))
        distance = np.abs(images.target[rows] - images.target[query])
        labels.append((distance == 0) * 1.0 + (distance <= 1))
    return np.vstack(tables), np.concatenate(labels), np.repeat(np.arange(n_queries), n_documents)


def matches(
    seed: int,
    n_queries: int,
    n_documents: float,
    kind: str,
    *,
    n_others: int = 8,
    shares: Sequence[float] = FIVE_GRADES,
    noise: float = 0.7,
) -> Data:
    """A column of the query has to match one of the document, as in a shop.

    "category": wanted and offered. "price": near the budget. "distance": of two places. "taste":
    how much a property counts depends on the user. "three-way": how much the price counts among the
    documents of the wanted category depends on the user. Quality counts for everybody, and most of
    the other columns for nobody.
    """
    rng = np.random.default_rng(seed)
    groups = query_ids(n_queries, n_documents, rng)
    n_rows = len(groups)

    def of_query(values: np.ndarray) -> np.ndarray:
        return values[groups]

    others = rng.standard_normal((n_rows, n_others))
    relevance = others[:, :3] @ np.array([0.6, 0.4, 0.2])
    if kind == "category":
        own = [of_query(rng.integers(0, 10, n_queries)), rng.integers(0, 10, n_rows)]
        fit = own[0] == own[1]
    elif kind == "price":
        budget = of_query(0.7 * rng.standard_normal(n_queries))
        price = 0.5 * budget + 0.7 * rng.standard_normal(n_rows)
        own, fit = [np.exp(budget), np.exp(price)], -np.abs(price - budget)
    elif kind == "distance":
        places = of_query(rng.standard_normal((n_queries, 2))), rng.standard_normal((n_rows, 2))
        own, fit = [*places[0].T, *places[1].T], -np.hypot(*(places[0] - places[1]).T)
    elif kind == "taste":
        tastes = of_query(rng.standard_normal((n_queries, 3)))
        own, fit = [*tastes.T], (tastes * others[:, 3:6]).sum(axis=1)
    else:
        wanted, offered = of_query(rng.integers(0, 5, n_queries)), rng.integers(0, 5, n_rows)
        thrift = of_query(rng.standard_normal(n_queries))
        fit = (wanted == offered) * (1.0 - thrift * others[:, 3])
        own = [wanted, offered, thrift]
    relevance = relevance + (fit - fit.mean()) / fit.std()
    relevance = relevance / relevance.std()
    X = np.column_stack([*own, others])
    return X, to_grades(relevance + noise * rng.standard_normal(n_rows), shares), groups


class World(NamedTuple):
    """A world, and the share of its queries used for training. The rest is for testing."""

    make: Callable[[int], Data]
    train: float


def clicked(seed: int, n_queries: int, n_documents: float, n_columns: int) -> Data:
    """One click or none in each query: the first relevant document that was looked at."""
    X, y, groups = features(
        seed, n_queries, n_documents, n_columns, (0.25, 0.25, 0.25, 0.25), shift=0.3, noise=1.0
    )
    rng = np.random.default_rng(seed + 1)
    first = np.flatnonzero(np.append(True, np.diff(groups) > 0))
    place = np.arange(len(groups)) - first[groups]
    chance = np.array([0.02, 0.08, 0.2, 0.5])[y.astype(int)] / (1 + 0.3 * place)
    rows = np.flatnonzero(rng.random(len(groups)) < chance)
    clicks = np.zeros(len(groups))
    clicks[rows[np.unique(groups[rows], return_index=True)[1]]] = 1
    return X, clicks, groups


WORLDS = {
    "20 queries": World(
        partial(
            features,
            n_queries=500,
            n_documents=15,
            n_columns=20,
            shares=THREE_GRADES,
            shift=0.3,
            level=0.3,
        ),
        0.04,
    ),
    "40 queries": World(
        partial(
            measurements, n_queries=500, n_documents=15, n_columns=30, shares=FIVE_GRADES
        ),
        0.08,
    ),
    "80 queries": World(partial(features, n_queries=500, n_documents=15, n_columns=20,
                                shares=THREE_GRADES, shift=0.3, level=0.3), 0.16),
    "linear": World(partial(features, n_queries=600, n_documents=40, n_columns=30,
                            shares=FIVE_GRADES, linear=True), 0.4),
    "shifted features": World(partial(features, n_queries=1500, n_documents=14, n_columns=40,
                                      shares=THREE_GRADES, shift=1.5, noise=1.2), 0.5),
    "levels": World(partial(features, n_queries=1200, n_documents=20, n_columns=60,
                            shares=THREE_GRADES, level=0.7), 0.5),
    "noisy labels": World(partial(features, n_queries=900, n_documents=20, n_columns=45,
                                  shares=FIVE_GRADES, shift=0.5, level=0.3, noise=4.0), 0.5),
    "136 columns": World(partial(features, n_queries=700, n_documents=40, n_columns=136,
                                 shares=FIVE_GRADES, shift=0.3, level=0.3), 0.5),
    "long queries": World(partial(features, n_queries=300, n_documents=120, n_columns=46,
                                  shares=TWO_GRADES, shift=0.5), 0.4),
    "measurements": World(partial(measurements, n_queries=1500, n_documents=20, n_columns=46,
                                  shares=THREE_GRADES, between=0.7, noise=2.5), 0.34),
    "sparse measurements": World(partial(measurements, n_queries=900, n_documents=13,
                                         n_columns=200, shares=FIVE_GRADES, error=2.5,
                                         sparse=0.6), 0.22),
    "digits": World(digits, 0.5),
}  # fmt: skip

KINDS_OF_MATCHES = ("category", "price", "distance", "taste", "three-way")
#: About 9,600 training rows, as in WORLDS.
MATCHES = {
    f"match: {kind}": World(partial(matches, n_queries=1400, n_documents=16, kind=kind), 3 / 7)
    for kind in KINDS_OF_MATCHES
}

SKEWED_GRADES = (0.52, 0.32, 0.13, 0.02, 0.01)
#: Worlds of about 140,000 rows, with three quarters for training.
LARGE_WORLDS = {
    "skewed grades": World(partial(features, n_queries=1300, n_documents=108, n_columns=136,
                                   shares=SKEWED_GRADES, noise=0.6, shift=0.3, level=0.3), 0.75),
    "few relevant": World(partial(features, n_queries=4500, n_documents=30, n_columns=30,
                                  shares=(0.95, 0.05)), 0.75),
    "clicks": World(partial(clicked, n_queries=8000, n_documents=15, n_columns=30), 0.75),
    "strong context": World(partial(features, n_queries=4500, n_documents=30, n_columns=40,
                                    shares=THREE_GRADES, shift=1.5, noise=1.2), 0.75),
    "noisy labels": World(partial(features, n_queries=4500, n_documents=30, n_columns=45,
                                  shares=FIVE_GRADES, shift=0.5, level=0.3, noise=4.0), 0.75),
    "queries of 300": World(partial(features, n_queries=1200, n_documents=300, n_columns=46,
                                    shares=TWO_GRADES, shift=0.5), 0.35),
}  # fmt: skip
LARGE_MATCHES = {
    f"match: {kind}": World(partial(matches, n_queries=8000, n_documents=16, kind=kind), 0.8)
    for kind in KINDS_OF_MATCHES
}


def purchases(seed: int, n_queries: int) -> Data:
    """One document of about 100 was bought and is relevant: the one with the largest relevance."""
    X, y, groups = features(seed, n_queries, 100, 20, np.full(1000, 0.001), shift=0.3, noise=0.5)
    order = np.lexsort((np.random.default_rng(seed).random(len(y)), -y, groups))
    first = order[np.append(True, np.diff(groups[order]) > 0)]
    bought = np.zeros(len(y))
    bought[first] = 1
    return X, bought, groups


PURCHASES = {
    f"{n} purchases": World(partial(purchases, n_queries=n + 600), n / (n + 600))
    for n in (100, 200)
}
MANY_PURCHASES = {"1,000 purchases": World(partial(purchases, n_queries=1600), 0.625)}
