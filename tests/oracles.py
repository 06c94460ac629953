"""Slow, obvious second implementations: plain loops, one query at a time, all permutations.

Nothing here shares code with the package. A ranking is a tuple `order`: order[k] is the document
at place k (0-based), best first.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np


def all_orders(r):
    return list(itertools.permutations(range(r)))


def orders_of_scores(scores):
    """Return every order that sorts the scores, where ties allow several."""
    return [
        order
        for order in all_orders(len(scores))
        if all(scores[a] >= scores[b] for a, b in itertools.pairwise(order))
    ]


def ranks_of(order):
    ranks = [0] * len(order)
    for place, document in enumerate(order):
        ranks[document] = place + 1
    return ranks


# ------------------------------------------------------------------ measures of one query


def precision(y, order, k):
    return sum(y[d] for d in order[:k]) / k


def choice(y, order):
    return y[order[0]] / sum(y) if len(y) > 1 and sum(y) else math.nan


def recall(y, order, k):
    return sum(y[d] for d in order[:k]) / sum(y) if sum(y) else math.nan


def eru(y, order, neutral=0.0, half_life=5.0):
    return sum(
        max(y[d] - neutral, 0) * 2 ** ((1 - (j + 1)) / (half_life - 1)) for j, d in enumerate(order)
    )


def gain_exp2(y):
    return 2**y - 1


def gain_linear(y):
    return y


def dcg(y, order, k=None, gain=gain_exp2):
    k = len(y) if k is None else k
    return sum(gain(y[d]) / math.log2(j + 2) for j, d in enumerate(order[:k]))


def ndcg(y, order, k=None, gain=gain_exp2):
    best = max(dcg(y, other, k, gain) for other in all_orders(len(y)))
    return dcg(y, order, k, gain) / best if best > 0 else math.nan


def average_precision(y, order, k=None):
    k = len(y) if k is None else k
    if sum(y) == 0:
        return math.nan
    total, found = 0.0, 0
    for j, d in enumerate(order):
        if y[d]:
            found += 1
            if j < k:
                total += found / (j + 1)
    return total / sum(y)


def reciprocal_rank(y, order, k=None):
    if sum(y) == 0:
        return math.nan
    first = min(j for j, d in enumerate(order) if y[d])
    return 1 / (first + 1) if k is None or first < k else 0.0


def err(y, order, k=None, top=None):
    k = len(y) if k is None else k
    top = max(y) if top is None else top
    total, reach = 0.0, 1.0
    for j, d in enumerate(order[:k]):
        satisfied = (2 ** y[d] - 1) / 2**top
        total += reach * satisfied / (j + 1)
        reach *= 1 - satisfied
    return total


def auc(y, order):
    ranks = ranks_of(order)
    pairs = [(i, j) for i in range(len(y)) for j in range(len(y)) if y[i] == 1 and y[j] == 0]
    if not pairs:
        return math.nan
    return sum(ranks[i] < ranks[j] for i, j in pairs) / len(pairs)


def disagreement(y, order, pair_weight="binary", normalize=True):
    ranks, lost, total = ranks_of(order), 0.0, 0.0
    for i in range(len(y)):
        for j in range(len(y)):
            if y[i] > y[j]:
                weight = y[i] - y[j] if pair_weight == "graded" else 1.0
                total += weight
                lost += weight * (ranks[i] > ranks[j])
    if not normalize:
        return lost
    return lost / total if total else math.nan


def kendall_tau(y, order):
    return 1 - 2 * disagreement(y, order)


def spearman(y, order):
    """Return Pearson's correlation of labels' midranks (1 = most relevant) with the positions."""
    r = len(y)
    middle = [
        sum(other > value for other in y) + (sum(other == value for other in y) + 1) / 2
        for value in y
    ]
    if len(set(y)) == 1:
        return math.nan
    return float(np.corrcoef(middle, ranks_of(order))[0, 1]) if r > 1 else math.nan


def tied_mean(measure, y, scores, **parameters):
    """Return the mean of a measure over every order that ties allow."""
    values = [measure(y, order, **parameters) for order in orders_of_scores(scores)]
    return float(np.mean(values))


# ------------------------------------------------------------------ per-query helpers


def split(groups):
    """Return the row indices of each query, in order of first appearance."""
    found = {}
    for row, group in enumerate(groups):
        found.setdefault(group, []).append(row)
    return list(found.values())


def per_query(measure, y, scores, groups, **parameters):
    return np.array(
        [
            tied_mean(measure, [y[i] for i in rows], [scores[i] for i in rows], **parameters)
            for rows in split(groups)
        ]
    )


# ------------------------------------------------------------------ scores of weight matrices


def net_borda(y):
    return [sum(y[i][j] - y[j][i] for j in range(len(y))) / len(y) for i in range(len(y))]


def copeland(y):
    r = len(y)
    return [sum((y[i][j] > y[j][i]) - (y[i][j] < y[j][i]) for j in range(r)) / r for i in range(r)]


def row_sums(y):
    return [sum(row) / len(y) for row in y]


def log_odds(y, c=0.5):
    r = len(y)
    return [
        sum(math.log((y[i][j] + c) / (y[j][i] + c)) for j in range(r) if y[i][j] > 0 or y[j][i] > 0)
        / r
        for i in range(r)
    ]


def least_squares(y):
    """Return the x of least norm that best fits x_i - x_j to y_ij - y_ji over compared pairs."""
    pairs = [(i, j) for i in range(len(y)) for j in range(i) if y[i][j] > 0 or y[j][i] > 0]
    rows = [[(d == i) - (d == j) for d in range(len(y))] for i, j in pairs]
    if not pairs:
        return [0.0] * len(y)
    return np.linalg.lstsq(rows, [y[i][j] - y[j][i] for i, j in pairs], rcond=1e-9)[0].tolist()


def principal_eigenvector(y, c=0.5):
    """Compute Saaty's scores by the power method."""
    r = len(y)
    ratio = [[(y[i][j] + c) / (y[j][i] + c) for j in range(r)] for i in range(r)]
    x = [1.0] * r
    for _ in range(500):
        x = [sum(ratio[i][j] * x[j] for j in range(r)) for i in range(r)]
        x = [value / sum(x) for value in x]
    return x


# ------------------------------------------------------------------ decoders of matrices


def preference_loss(u, order):
    """Return the loss of the order for u: the sum of u_ij over the pairs with j placed before i."""
    ranks, r = ranks_of(order), len(order)
    return sum(u[i][j] for i in range(r) for j in range(r) if i != j and ranks[i] > ranks[j])


def average_precision_loss(u, order):
    ranks = ranks_of(order)
    return 1 - sum(
        u[i][j] / max(ranks[i], ranks[j]) for i in range(len(order)) for j in range(i + 1)
    )


def least_loss(loss, u):
    return min(loss(u, order) for order in all_orders(len(u)))


def least_preference_loss_by_sets(u):
    """Minimise over sets: the loss of the next document does not depend on the order of a set."""
    return _least_by_sets(len(u), lambda d, placed: sum(u[d][other] for other in placed))


def least_average_precision_loss_by_sets(u):
    def cost(d, placed):
        return -(u[d][d] + sum(u[d][other] for other in placed)) / (len(placed) + 1)

    return 1 + _least_by_sets(len(u), cost)


def _least_by_sets(r, cost):
    least = {frozenset(): 0.0}
    for size in range(1, r + 1):
        for chosen in itertools.combinations(range(r), size):
            placed = frozenset(chosen)
            least[placed] = min(least[placed - {d}] + cost(d, placed - {d}) for d in chosen)
    return least[frozenset(range(r))]


def insertions(order):
    """Yield every order in which one document has moved to another place."""
    for start in range(len(order)):
        rest = [*order[:start], *order[start + 1 :]]
        for stop in range(len(order)):
            if stop != start:
                yield [*rest[:stop], order[start], *rest[stop:]]


def preference_edges(u):
    """Return (weight, i, j) of every strict preference, in the order of the documents."""
    r = len(u)
    return [
        (u[i][j] - u[j][i], i, j)
        for i in range(r)
        for j in range(r)
        if i != j and u[i][j] - u[j][i] > 0
    ]


def reaches(start, goal, edges):
    """Whether a path of at least one edge leads from start to goal."""
    seen, waiting = set(), [start]
    while waiting:
        here = waiting.pop()
        for _, i, j in edges:
            if i == here and j not in seen:
                seen.add(j)
                waiting.append(j)
    return goal in seen


def has_cycle(r, edges):
    return any(reaches(d, d, edges) for d in range(r))


def literal_greedy_dag(u):
    """Run Algorithm 1 of Ramaswamy et al. (2013) literally.

    Returns the heaviest deleted weight (0 if none was deleted) and the remaining edges.
    """
    edges, threshold = preference_edges(u), 0.0
    while has_cycle(len(u), edges):
        lightest = min(edges, key=lambda edge: edge[0])  # the first of equal edges
        threshold = lightest[0]
        edges.remove(lightest)
    return threshold, edges


def ranked_pairs(u):
    """Insert edges in reverse of the order in which Algorithm 1 would delete all of them."""
    inserted = []
    for weight, i, j in sorted(preference_edges(u), key=lambda edge: edge[0])[::-1]:
        if not reaches(j, i, inserted):
            inserted.append((weight, i, j))
    return inserted


def heaviest_lightest_edge(u):
    """Return the largest, over all cycles, of the lightest edge of the cycle; 0 without cycles."""
    weight = {(i, j): w for w, i, j in preference_edges(u)}
    found = [0.0]
    for size in range(3, len(u) + 1):
        for cycle in itertools.permutations(range(len(u)), size):
            steps = list(zip(cycle, cycle[1:] + cycle[:1], strict=True))
            if all(step in weight for step in steps):
                found.append(min(weight[step] for step in steps))
    return max(found)


def is_topological(order, edges):
    ranks = ranks_of(order)
    return all(ranks[i] < ranks[j] for _, i, j in edges)


def first_topological_order(r, edges):
    """At each place, put the first document that no remaining document must precede."""
    order = []
    while len(order) < r:
        left = [d for d in range(r) if d not in order]
        free = [d for d in left if not any(j == d and i in left for _, i, j in edges)]
        order.append(free[0])
    return order


# ------------------------------------------------------------------ exact expectations


def exact_mean(matrices, counts):
    """Return the mean of integer matrices, each repeated as `counts` says, as fractions."""
    n = sum(counts)
    r, width = len(matrices[0]), len(matrices[0][0])
    return [
        [sum(Fraction(c * int(m[i][j]), n) for m, c in zip(matrices, counts, strict=True))
         for j in range(width)]
        for i in range(r)
    ]  # fmt: skip


def exact_products(labels, counts):
    """Return E[Y_i Y_j / sum(Y)] of binary labels as fractions; labels without a 1 are left out."""
    kept = [(y, c) for y, c in zip(labels, counts, strict=True) if sum(y)]
    n, r = sum(c for _, c in kept), len(labels[0])
    return [
        [sum(Fraction(c * int(y[i] * y[j]), n * int(sum(y))) for y, c in kept) for j in range(r)]
        for i in range(r)
    ]


def exact_scores(f, weights, counts):
    """Return exact numbers that have the same order as E[f_i(Y)], for whole weights."""
    r = len(weights[0])
    scores = []
    for i in range(r):
        score = Fraction(1 if f == "log_odds" else 0)
        for y, c in zip(weights, counts, strict=True):
            y = [[Fraction(int(value)) for value in row] for row in y]
            if f == "borda":
                score += c * sum(y[i][j] - y[j][i] for j in range(r))
            elif f == "copeland":
                score += c * sum((y[i][j] > y[j][i]) - (y[i][j] < y[j][i]) for j in range(r))
            elif f == "row_sums":
                score += c * sum(y[i])
            elif f == "least_squares":
                score += c * exact_least_squares(y)[i]
            else:  # the exponential of the expected logarithms
                half = Fraction(1, 2)
                for j in range(r):
                    score *= ((y[i][j] + half) / (y[j][i] + half)) ** c
        scores.append(score)
    return scores


def exact_least_squares(y):
    """Return Thurstone-Mosteller scores as fractions, centred in each connected component."""
    r = len(y)
    compared = [[y[i][j] > 0 or y[j][i] > 0 for j in range(r)] for i in range(r)]
    part = list(range(r))
    for _ in range(r):
        for i, j in itertools.product(range(r), repeat=2):
            if compared[i][j]:
                part[i] = part[j] = min(part[i], part[j])
    rows = []
    for i in range(r):
        row = [Fraction(part[i] == part[j]) - compared[i][j] for j in range(r)]
        row[i] += sum(compared[i])
        rows.append([*row, sum((y[i][j] - y[j][i] for j in range(r)), Fraction(0))])
    for k in range(r):  # elimination
        pivot = next(i for i in range(k, r) if rows[i][k])
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [value / rows[k][k] for value in rows[k]]
        for i in range(r):
            if i != k and rows[i][k]:
                rows[i] = [a - rows[i][k] * b for a, b in zip(rows[i], rows[k], strict=True)]
    return [row[-1] for row in rows]


# ------------------------------------------------------------------ clicks


def cascade_satisfaction(sessions, n_rows, a=0, b=0):
    """Clicks / examined, where a session is (rows in the order shown, clicked positions, count)."""
    clicks, examined = [0] * n_rows, [0] * n_rows
    for rows, clicked, count in sessions:
        last = max(clicked) if clicked else len(rows)
        for position, row in enumerate(rows, start=1):
            if position <= last:
                examined[row] += count
            if position in clicked:
                clicks[row] += count
    return [
        (c + a) / (e + a + b) if e + a + b > 0 else math.nan
        for c, e in zip(clicks, examined, strict=True)
    ]


def weighted_clicks(sessions, n_rows, weights):
    """The mean over the sessions that show a row of its clicks, weighted by position."""
    total, shown = [0] * n_rows, [0] * n_rows
    for rows, clicked, count in sessions:
        for position, row in enumerate(rows, start=1):
            shown[row] += count
            if position in clicked:
                total[row] += count * weights[position - 1]
    return [t / s if s > 0 else math.nan for t, s in zip(total, shown, strict=True)]


def position_log_likelihood(theta, gamma, sessions):
    """Mean over impressions of the log-likelihood of the position-based model."""
    total, n = 0.0, 0
    for rows, clicked, count in sessions:
        for position, row in enumerate(rows, start=1):
            p = theta[position - 1] * gamma[row]
            total += count * math.log(p if position in clicked else 1 - p)
            n += count
    return total / n


def propensity_steps(theta, gamma, sessions, n_steps):
    """Regression-EM of Wang et al. (2018) with a relevance per row, one impression at a time."""
    theta, gamma = list(theta), list(gamma)
    for _ in range(n_steps):
        examined, relevant = [[] for _ in theta], [[] for _ in gamma]
        for rows, clicked, count in sessions:
            for position, row in enumerate(rows, start=1):
                t, g = theta[position - 1], gamma[row]
                hit = position in clicked
                examined[position - 1].append((count, 1 if hit else t * (1 - g) / (1 - t * g)))
                relevant[row].append((count, 1 if hit else g * (1 - t) / (1 - t * g)))
        theta = [sum(c * v for c, v in part) / sum(c for c, _ in part) for part in examined]
        gamma = [
            sum(c * v for c, v in part) / sum(c for c, _ in part) if part else math.nan
            for part in relevant
        ]
        theta[0] = 1.0
    return theta, gamma
