"""The constructions in the proofs of two lemmas: misordered pairs, and order-preserving maps."""

import numpy as np


def misordered_pairs(ranks, expected):
    """Return disjoint pairs (i, j) in the wrong order that account for the regret of a ranking.

    This is lemma 4.1 of Calauzènes et al. (2013). Its proof takes the best document i, and the
    worst document j of those ranked above i. It exchanges both with the documents at their correct
    places. This can put other documents in a wrong order although the ranking has them in the right
    order: for the documents 2, 3, 4, 1, numbered from best to worst, the pairs are (1, 4) and
    (2, 3). It is enough to move i and j. The documents in between then keep their order, which does
    not raise the value of the ranking either.
    """
    best_first = np.argsort(-np.asarray(expected), kind="stable").tolist()
    place = {document: k for k, document in enumerate(best_first)}
    ranking = np.argsort(ranks).tolist()
    pairs = []
    while best_first:
        i = best_first[0]
        j = max(ranking[: ranking.index(i) + 1], key=place.__getitem__)
        if expected[i] > expected[j]:
            pairs.append((i, j))
        for document in {i, j}:
            ranking.remove(document)
            best_first.remove(document)
    return pairs


class OrderPreservingMap:
    """An invertible function g with g(r) = s: some permutation sorts both x and g(x), for every x.

    This is lemma 2 of Ravikumar et al. (2011), for vectors s and r that some permutation sorts. If
    they have the same ties, g applies a piecewise linear function to each entry, and is continuous.
    Otherwise no such function is continuous. For all cases, the proof of the lemma uses

    y_(1) = s_(1) + angle(x_(1) - r_(1)),
    y_(k+1) = y_(k) - (s_(k) - s_(k+1) + angle(x_(k+1) - r_(k+1))),

    where (k) denotes the k-th largest entry, and angle(z) in [0, pi) has the tangent z. Three
    corrections were necessary:

    - Ties of x are broken by the order of s. Otherwise g(r) = s only for one way to break the ties
      of r.
    - The function is not invertible if s has ties. Here the angle is pi/2 + arctan(z) instead,
      which is always positive: the entries of y differ and determine the order of x. The case
      g(r) = s is handled separately.
    - Both functions are only invertible on their image, which is not R^r.
    """

    def __init__(self, s, r):
        self.s, self.r = np.array(s, dtype=float), np.array(r, dtype=float)
        opposed = (self.s[:, None] > self.s) & (self.r[:, None] < self.r)
        if opposed.any():
            raise ValueError("No order-preserving function exists.")
        # s and r do not increase along this order, which also breaks all other ties.
        self.order = np.lexsort((-self.s, -self.r))
        high, low = self.r[self.order], self.s[self.order]
        self.continuous = bool(((np.diff(high) == 0) == (np.diff(low) == 0)).all())
        self.priority = np.argsort(self.order)
        self.steps = -np.diff(low)

    def __call__(self, x):
        if self.continuous:
            return interpolate(x, self.r, self.s)
        if (x == self.r).all():
            return self.s.copy()
        x = np.asarray(x)
        order = np.lexsort((self.priority, -x))
        # Each entry of y is below the entry before it, by a step of s and a positive number that
        # determines the entry of x.
        angle = np.pi / 2 + np.arctan(x[order] - self.r[self.order])
        y = np.empty(len(x))
        top = self.s[self.order[0]] + angle[0]
        y[order] = top - np.append(0.0, np.cumsum(self.steps + angle[1:]))
        return y

    def inverse(self, y):
        """Return x with g(x) = y, up to rounding, or raise ValueError."""
        if self.continuous:
            return interpolate(y, self.s, self.r)
        if (y == self.s).all():
            return self.r.copy()
        y = np.asarray(y)
        order = np.argsort(-y)
        angle = np.append(y[order[0]] - self.s[self.order[0]], -np.diff(y[order]) - self.steps)
        x = np.empty(len(y))
        x[order] = np.tan(angle - np.pi / 2) + self.r[self.order]
        inside = ((angle > 0) & (angle < np.pi)).all()
        if not inside or (np.diff(x[order]) > 1e-9 * (1 + np.abs(x).max())).any():
            raise ValueError(f"No x has g(x) = {y.tolist()}.")
        return x


def interpolate(x, source, image):
    """Apply the function that is linear between the points, and has slope 1 outside of them."""
    source, first = np.unique(source, return_index=True)
    inside = np.interp(x, source, image[first])
    return inside + np.minimum(x - source[0], 0.0) + np.maximum(x - source[-1], 0.0)
