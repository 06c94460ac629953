"""Slow, obvious second implementations of structures, for one query at a time.

Nothing here shares code with the package. `W` is the matrix of one query: W[i][j] is the total
weight with which item i was preferred to item j. `k` is the number of judgements of the query.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.special import expit, log_expit
from scipy.stats import norm


def compared(W):
    return (W + W.T) > 0


def parts(reachable):
    """Return the sets of items that reach each other, by the algorithm of Warshall."""
    reach = np.array(reachable) | np.eye(len(reachable), dtype=bool)
    for middle in range(len(reach)):
        reach |= np.outer(reach[:, middle], reach[middle])
    mutual = reach & reach.T
    return sorted({tuple(np.flatnonzero(row).tolist()) for row in mutual})


def centred(scores, W):
    scores = np.array(scores, dtype=float)
    for part in map(list, parts(compared(W))):
        scores[part] -= scores[part].mean()
    return scores


def skew_rows(W, function):
    """Sum over the items that were compared with i of ``function(W[i][j], W[j][i])``."""
    r = len(W)
    rows = [[j for j in range(r) if W[i][j] + W[j][i] > 0] for i in range(r)]
    return np.array([sum(function(W[i][j], W[j][i]) for j in rows[i]) for i in range(r)])


def borda(W, k):
    return skew_rows(W, lambda won, lost: (won - lost) / k)


def budgeted_borda(W, k, conditional=False):
    others = max(len(W) - 1, 1)
    return skew_rows(W, lambda won, lost: won / (won + lost if conditional else k)) / others


def copeland(W, k):
    return skew_rows(W, lambda won, lost: int(won > lost) - int(won < lost))


def log_ratio(won, lost, k, c, added_to):
    if added_to == "counts":
        return math.log((won + c) / (lost + c))
    n = k if added_to == "fractions" else won + lost
    return math.log((won / n + c) / (lost / n + c))


def log_odds(W, k, smoothing=0.5, added_to="counts"):
    odds = skew_rows(W, lambda won, lost: log_ratio(won, lost, k, smoothing, added_to))
    return odds / max(len(W) - 1, 1)


def least_squares(W, k, margin="log_odds", smoothing=0.5, weighted=False):
    """Equation (22) of Duchi et al., with the pseudo-inverse of the Laplacian matrix."""
    r, c = len(W), smoothing
    A, mask = np.zeros((r, r)), np.zeros((r, r))
    for i, j in itertools.permutations(range(r), 2):
        n = W[i][j] + W[j][i]
        if n > 0:
            mask[i, j] = n if weighted else 1.0
            A[i, j] = {
                "difference": (W[i][j] - W[j][i]) / n,
                "log_odds": math.log((W[i][j] + c) / (W[j][i] + c)),
                "probit": norm.ppf((W[i][j] + c) / (n + 2 * c)),
            }[margin]
    ones = np.ones(r)
    return np.linalg.pinv(np.diag(mask @ ones) - mask) @ ((mask * A) @ ones)


def penalties(above, penalty):
    """The penalty of each item, where `above` says which items were above which others."""
    if penalty != "auto":
        return np.full(len(above), penalty)
    strong = parts(above)
    return np.array([0.0 if whole in strong else 0.1 for whole in whole_parts(above)])


def whole_parts(above):
    """The connected component of each item."""
    found = parts(above | above.T)
    return [next(part for part in found if i in part) for i in range(len(above))]


def bradley_terry_gradient(W, s, penalty="auto"):
    """The gradient of the penalised negative log-likelihood, relative to the comparisons of i."""
    r = len(W)
    a = penalties(W > 0, penalty)
    gradient = np.zeros(r)
    for i in range(r):
        expected = sum((W[i][j] + W[j][i]) / (1 + math.exp(s[j] - s[i])) for j in range(r))
        gradient[i] = expected - W[i].sum() + a[i] * s[i]
        gradient[i] /= max(W[i].sum() + W[:, i].sum(), 1.0)
    return gradient


def principal_eigenvector(W, k, smoothing=0.5, added_to="counts"):
    r = len(W)
    A = np.ones((r, r))
    for i, j in itertools.permutations(range(r), 2):
        if W[i][j] + W[j][i] > 0:
            A[i, j] = math.exp(log_ratio(W[i][j], W[j][i], k, smoothing, added_to))
    values, vectors = np.linalg.eig(A)
    perron = np.abs(np.real(vectors[:, np.argmax(np.real(values))]))
    return centred(np.log(perron), W)


def rank_centrality(W, k, smoothing=0.5):
    """The stationary distribution of the matrix P of Negahban et al., in each component."""
    r, c = len(W), smoothing
    scores = np.zeros(r)
    neighbours = compared(W)
    for part in map(list, parts(neighbours)):
        if len(part) == 1:
            continue
        d_max = neighbours[part].sum(axis=1).max()
        P = np.zeros((len(part), len(part)))
        for (a, i), (b, j) in itertools.permutations(list(enumerate(part)), 2):
            if neighbours[i, j]:
                P[a, b] = (W[j][i] + c) / (W[i][j] + W[j][i] + 2 * c) / d_max
        P += np.diag(1 - P.sum(axis=1))
        values, vectors = np.linalg.eig(P.T)
        stationary = np.abs(np.real(vectors[:, np.argmax(np.real(values))]))
        scores[part] = np.log(stationary)
    return centred(scores, W)


def plackett_luce_loss(orders, counts, s, a):
    """The penalised negative log-likelihood, by enumeration of the orders inside each tier."""
    w = np.exp(s)
    loss = (np.asarray(a) * np.asarray(s) ** 2).sum() / 2
    for tiers, count in zip(orders, counts, strict=True):
        for place, tier in enumerate(tiers[:-1]):
            lower = [item for other in tiers[place + 1 :] for item in other]
            probability = 0.0
            for order in itertools.permutations(tier):
                chance = 1.0
                for k, item in enumerate(order):
                    chance *= w[item] / (w[list(order[k:])].sum() + w[lower].sum())
                probability += chance
            loss -= count * math.log(probability)
    return loss


def vote_likelihood(first, second, words, X, ties, ridge=1e-4):
    """The log-likelihood of scores, effects and a parameter of ties, from the papers."""
    win, lose = words == "model_a", words == "model_b"

    def value(w, m):
        lead = w[first] - w[second] + X @ w[m : m + X.shape[1]]
        if ties == "half":
            chance = [log_expit(lead), log_expit(-lead)]
            chance.append((chance[0] + chance[1]) / 2)
        elif ties == "davidson":
            chance = np.array([lead / 2, -lead / 2, np.full(len(lead), w[-1])])
            chance = chance - np.log(np.exp(chance).sum(axis=0))
        else:
            up, down = expit(lead - w[-1]), expit(-lead - w[-1])
            chance = np.log(np.maximum([up, down, 1 - up - down], 1e-300))
        return np.select([win, lose], chance[:2], chance[2]).sum() - ridge / 2 * (w**2).sum()

    return value
