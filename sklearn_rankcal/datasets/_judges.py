"""Random judgements: expected preferences between r items come out, and draws of them.

Each of n cases has its own r items. `above[n, i, j]` says that item i is put above item j.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def check_kind(kind: Any, known: tuple[str, ...]) -> None:
    """Refuse an unknown kind of judgements."""
    if kind not in known:
        raise ValueError(f"Unknown kind {kind!r}. Known: {', '.join(map(repr, known))}.")


def check_numbers(noise: Any, **numbers: tuple[int, int]) -> None:
    """Refuse a noise that is not > 0, and counts, (value, least), that are too small."""
    for name, (value, least) in numbers.items():
        if value < least:
            raise ValueError(f"{name} must be at least {least}; got {value!r}.")
    if not 0 < noise < np.inf:
        raise ValueError(f"noise must be > 0 and finite; got {noise!r}.")


def ranks_of_scores(scores: Floats) -> Ints:
    """Positions (1 = largest) of each row's scores."""
    order = np.argsort(-scores, axis=1, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(1, scores.shape[1] + 1)[None], axis=1)
    return ranks


def without_diagonal(probabilities: Floats) -> Floats:
    """The same with P_ii = 0, in place."""
    r = probabilities.shape[-1]
    probabilities[:, np.arange(r), np.arange(r)] = 0.0
    return probabilities


def logistic_probabilities(scores: Floats, noise: float) -> Floats:
    """P(i above j) = 1 / (1 + exp(-(s_i - s_j) / noise)): of Bradley-Terry-Luce and Plackett-Luce.

    Items that a Plackett-Luce order compares are compared as in Bradley-Terry-Luce.
    """
    return without_diagonal(expit((scores[:, :, None] - scores[:, None, :]) / noise))


def mallows_probabilities(ranks: Ints, noise: float) -> Floats:
    """P(i above j) of Mallows' model about `ranks`, in closed form.

    With phi = exp(-1 / noise) and i placed k > 0 before j in the centre, it is h(k + 1) - h(k),
    h(k) = k / (1 - phi^k).
    """
    k = np.arange(1, ranks.shape[1] + 1)
    h = k / -np.expm1(-k / noise)
    ahead = np.append(0.5, np.diff(h))  # by distance
    distance = ranks[:, None, :] - ranks[:, :, None]
    better = ahead[np.abs(distance)]
    return without_diagonal(np.where(distance > 0, better, 1.0 - better))


def amplitude(noise: float) -> float:
    """The net preference of certain comparisons under noise: 1 for none, 0 for much."""
    return float(np.tanh(0.5 / noise))


def draw_pairs(probabilities: Floats, random: np.random.RandomState) -> Bools:
    """Every pair judged on its own: cycles are usual."""
    r = probabilities.shape[-1]
    above = random.uniform(size=probabilities.shape) < probabilities
    i, j = np.triu_indices(r, 1)
    above[:, j, i] = ~above[:, i, j]
    above[:, np.arange(r), np.arange(r)] = False
    return above


def draw_plackett_luce(scores: Floats, noise: float, random: np.random.RandomState) -> Ints:
    """Ranks of a draw: items chosen one after the other, with odds exp(s / noise)."""
    return ranks_of_scores(scores / noise + random.gumbel(size=scores.shape))


def draw_mallows(centre: Ints, noise: float, random: np.random.RandomState) -> Ints:
    """Ranks of a draw with probability proportional to exp(-discordant pairs / noise).

    Repeated insertion: the item at place i of the centre moves v places up, with odds
    exp(-v / noise). O(n r^2).
    """
    n, r = centre.shape
    places = np.zeros((n, r), dtype=np.int64)  # by place in the centre
    for i in range(1, r):  # the algorithm: r insertions, in all cases at once
        # inverse of the distribution function of a geometric variable cut after i
        uniform = random.uniform(size=n)
        moved = np.floor(-noise * np.log1p(uniform * np.expm1(-(i + 1) / noise)))
        at = i - np.clip(moved, 0, i).astype(np.int64)
        places[:, :i] += places[:, :i] >= at[:, None]
        places[:, i] = at
    return np.take_along_axis(places, centre - 1, axis=1) + 1


def contradicted(probabilities: Floats, ranks: Ints) -> Floats:
    """The expected share of pairs that a judgement puts the other way than `ranks`, (n,)."""
    r = ranks.shape[1]
    below = ranks[:, :, None] > ranks[:, None, :]
    return (probabilities * below).sum(axis=(1, 2)) / (r * (r - 1) / 2)
