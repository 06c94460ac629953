"""Shared functions of generators: sizes of queries, scores, and random judgements of items.

A judge compares r items, either pair by pair or by ordering them. Arrays have one entry for each of
n cases, and every case has its own r items. ``above[n, i, j]`` is True if the judge puts item i
above item j. P(i above j) is the probability of this event.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from sklearn_rankcal.queries import sizes_to_groups
from sklearn_rankcal.utils._parameters import check_count
from sklearn_rankcal.utils._typing import Bools, Floats, Ints


def draw_groups(n_queries: int, n_documents: Any, least: int, random: Any) -> Ints:
    """Sample the sizes of queries (fixed or from an inclusive range), and return the query ids."""
    low, high = (n_documents, n_documents) if isinstance(n_documents, int) else tuple(n_documents)
    check_count(low, "n_documents", least=least)
    if high < low:
        raise ValueError(f"n_documents must be a range (low, high); got {n_documents!r}.")
    sizes = random.randint(low, high + 1, size=n_queries)
    return sizes_to_groups(sizes, n_rows=int(sizes.sum()))


def nonlinear_scores(X: Floats, weights: Floats) -> Floats:
    """Compute a nonlinear function of all features with standard deviation about 1."""
    return np.tanh(X) @ weights + 0.5 * np.sin(X @ weights[::-1])


def ranks_of_scores(scores: Floats) -> Ints:
    """Return the position of each score in its row, 1 = largest."""
    order = np.argsort(-scores, axis=1, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(1, scores.shape[1] + 1)[None], axis=1)
    return ranks


def without_diagonal(probabilities: Floats) -> Floats:
    """Set P(i above i) to 0 in place, and return the array."""
    r = probabilities.shape[-1]
    probabilities[:, np.arange(r), np.arange(r)] = 0.0
    return probabilities


def probabilities_of(kind: str, scores: Floats, noise: float) -> Floats:
    """Return P(i above j) for a kind of judges with the given scores.

    The Plackett-Luce model of orders has the pairwise probabilities of Bradley, Terry and Luce.
    """
    if kind == "mallows":
        return mallows_probabilities(ranks_of_scores(scores), noise)
    return without_diagonal(expit((scores[:, :, None] - scores[:, None, :]) / noise))


def draw_order(kind: str, scores: Floats, noise: float, random: np.random.RandomState) -> Ints:
    """Sample ranks from the Mallows model or the Plackett-Luce model."""
    if kind == "mallows":
        return draw_mallows(ranks_of_scores(scores), noise, random)
    return draw_plackett_luce(scores, noise, random)


def mallows_probabilities(ranks: Ints, noise: float) -> Floats:
    """Return P(i above j) in the Mallows model with the central order `ranks`.

    If i is k > 0 places before j in the central order, the probability is h(k + 1) - h(k), where
    h(k) = k / (1 - phi^k) and phi = exp(-1 / noise).
    """
    k = np.arange(1, ranks.shape[1] + 1)
    h = k / -np.expm1(-k / noise)
    ahead = np.append(0.5, np.diff(h))  # P(i above j) for k = 0, 1, 2, ...
    distance = ranks[:, None, :] - ranks[:, :, None]
    better = ahead[np.abs(distance)]
    return without_diagonal(np.where(distance > 0, better, 1.0 - better))


def amplitude(noise: float) -> float:
    """Return the factor that noise multiplies a net preference by, from 1 (no noise) to 0."""
    return float(np.tanh(0.5 / noise))


def draw_pairs(probabilities: Floats, random: np.random.RandomState) -> Bools:
    """Sample every pair independently, which often gives cycles."""
    r = probabilities.shape[-1]
    above = random.uniform(size=probabilities.shape) < probabilities
    i, j = np.triu_indices(r, 1)
    above[:, j, i] = ~above[:, i, j]
    above[:, np.arange(r), np.arange(r)] = False
    return above


def draw_plackett_luce(scores: Floats, noise: float, random: np.random.RandomState) -> Ints:
    """Sample ranks by choosing items from the top with odds exp(s / noise) (Gumbel noise)."""
    return ranks_of_scores(scores / noise + random.gumbel(size=scores.shape))


def draw_mallows(centre: Ints, noise: float, random: np.random.RandomState) -> Ints:
    """Sample ranks with probability proportional to exp(-d / noise).

    Here d is the number of pairs that the ranks and the central order put in different orders. The
    algorithm is repeated insertion: the item at place i of the central order is inserted v places
    above the end of the list, with odds exp(-v / noise). The cost is O(n r^2).
    """
    n, r = centre.shape
    places = np.zeros((n, r), dtype=np.int64)  # the places of the items, in central order
    for i in range(1, r):
        # Sample v from a geometric distribution truncated to 0 .. i, by inverting its distribution
        # function.
        uniform = random.uniform(size=n)
        moved = np.floor(-noise * np.log1p(uniform * np.expm1(-(i + 1) / noise)))
        at = i - np.clip(moved, 0, i).astype(np.int64)
        # The items at or below the place of the new item move down by one place.
        places[:, :i] += places[:, :i] >= at[:, None]
        places[:, i] = at
    return np.take_along_axis(places, centre - 1, axis=1) + 1


def contradicted(probabilities: Floats, ranks: Ints) -> Floats:
    """Return the expected share of pairs, shape (n,), in which a judgement contradicts `ranks`."""
    r = ranks.shape[1]
    below = ranks[:, :, None] > ranks[:, None, :]
    return (probabilities * below).sum(axis=(1, 2)) / (r * (r - 1) / 2)
