"""Invertible maps that preserve the order of scores, between two vectors of the same order."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.utils._numbers import read_numbers

Floats = NDArray[np.float64]


class OrderPreservingMap:
    """The result of `order_preserving_map`: a function of arrays of shape (r,), with an inverse.

    Attributes
    ----------
    s, r : ndarray of shape (r,)
        The vectors with g(r) = s.
    continuous : bool
        Whether the map is continuous. It is then a bijection from R^r to R^r, which applies an
        increasing function to each entry.
    """

    def __init__(self, s: Floats, r: Floats) -> None:
        self.s, self.r = s, r
        # s and r do not increase along this order, which also breaks all other ties.
        self._order = np.lexsort((-s, -r))
        high, low = r[self._order], s[self._order]
        self.continuous = bool(((np.diff(high) == 0) == (np.diff(low) == 0)).all())
        self._priority = np.argsort(self._order)
        self._steps = -np.diff(low)

    def __call__(self, x: ArrayLike) -> Floats:
        """Return g(x)."""
        x = self._read(x, "x")
        if self.continuous:
            return _interpolate(x, self.r, self.s)
        if (x == self.r).all():
            return self.s.copy()
        order = np.lexsort((self._priority, -x))
        # Each entry of y is below the entry before it, by a step of s and a positive number that
        # determines the entry of x.
        angle = np.pi / 2 + np.arctan(x[order] - self.r[self._order])
        y = np.empty(len(x))
        top = self.s[self._order[0]] + angle[0]
        y[order] = top - np.append(0.0, np.cumsum(self._steps + angle[1:]))
        return y

    def inverse(self, y: ArrayLike) -> Floats:
        """Return x with g(x) = y, up to rounding.

        Raises
        ------
        ValueError
            If there is no such x.
        """
        y = self._read(y, "y")
        if self.continuous:
            return _interpolate(y, self.s, self.r)
        if (y == self.s).all():
            return self.r.copy()
        order = np.argsort(-y)
        sorted_ = y[order]
        angle = np.append(
            sorted_[0] - self.s[self._order[0]], sorted_[:-1] - sorted_[1:] - self._steps
        )
        if ((angle <= 0) | (angle >= np.pi)).any():
            raise ValueError(f"No x has g(x) = {y.tolist()}.")
        x = np.empty(len(y))
        x[order] = np.tan(angle - np.pi / 2) + self.r[self._order]
        if (np.diff(x[order]) > 1e-9 * (1 + np.abs(x).max())).any():
            raise ValueError(f"No x has g(x) = {y.tolist()}.")
        return x

    def _read(self, values: ArrayLike, name: str) -> Floats:
        array: Floats = np.asarray(read_numbers(values, name), dtype=np.float64)
        if array.shape != self.r.shape or not np.isfinite(array).all():
            raise ValueError(
                f"{name} must be finite and have shape {self.r.shape}; it has shape {array.shape}."
            )
        return array


def order_preserving_map(s: ArrayLike, r: ArrayLike) -> OrderPreservingMap:
    """Construct an invertible function g with g(r) = s that preserves the order of scores.

    Parameters
    ----------
    s, r : array-like of shape (r,)
        Vectors in the same order: some permutation sorts both, which means that no two documents
        are in strictly opposite orders. Ties of one need not be ties of the other.

    Returns
    -------
    g : OrderPreservingMap
        A function of arrays of shape (r,), with a method `inverse`. For every x, some permutation
        sorts both x and g(x).

    Raises
    ------
    ValueError
        If the vectors differ in their shapes, are not finite, or are in opposite orders.

    Notes
    -----
    This is lemma 2 of Ravikumar et al. (2011). If s and r have the same ties, g applies a piecewise
    linear function to each entry, and is continuous. If their ties differ, no invertible function
    that preserves the order is continuous.

    For all cases, the proof of the lemma uses the function

    y_(1) = s_(1) + angle(x_(1) - r_(1)),
    y_(k+1) = y_(k) - (s_(k) - s_(k+1) + angle(x_(k+1) - r_(k+1))),

    where (k) denotes the k-th largest entry, and angle(z) in [0, pi) has the tangent z. Three
    corrections were necessary. First, the function leaves open how ties of x are broken, and then
    g(r) = s is true for one way only if r has ties; here the order of s breaks them. Second, it is
    not invertible if s has ties: for s = r = (0, 0), both (1, 0) and (0, 1) are mapped to
    (pi/4, pi/4), since angle(0) = 0. Here the angle is pi/2 + arctan(z), which is always positive,
    so that the entries of y differ and determine the order of x, and g(r) = s is a case of its own.
    No other x is mapped to s, because the largest entry of y is larger than that of s. Third, both
    functions are invertible on their image only, which is not R^r.

    Examples
    --------
    >>> from sklearn_rankcal.consistency import order_preserving_map
    >>> g = order_preserving_map([5.0, 0.0, 1.0], [0.3, 0.1, 0.2])
    >>> g([0.3, 0.1, 0.2]).tolist(), g([0.25, 0.15, 0.2]).round(6).tolist()
    ([5.0, 0.0, 1.0], [3.0, 0.5, 1.0])
    >>> g.inverse(g([0.4, 0.15, 0.0])).round(9).tolist()
    [0.4, 0.15, 0.0]
    """
    values = {}
    for name, given in (("s", s), ("r", r)):
        values[name] = np.array(read_numbers(given, name), dtype=np.float64)
        if values[name].ndim != 1 or values[name].size == 0:
            raise ValueError(f"{name} must have shape (r,); it has shape {values[name].shape}.")
        if not np.isfinite(values[name]).all():
            raise ValueError(f"{name} contains NaN or infinity.")
    high, low = values["s"], values["r"]
    if high.shape != low.shape:
        raise ValueError(f"s and r must have the same shape; got {high.shape} and {low.shape}.")
    opposed = (high[:, None] > high) & (low[:, None] < low)
    if opposed.any():
        i, j = np.argwhere(opposed)[0]
        raise ValueError(
            f"No order-preserving function exists: s[{i}] > s[{j}], but r[{i}] < r[{j}]."
        )
    return OrderPreservingMap(high, low)


def _interpolate(x: Floats, source: Floats, image: Floats) -> Floats:
    """Apply the function that is linear between the points, and has slope 1 outside of them."""
    source, first = np.unique(source, return_index=True)
    image = image[first]
    inside = np.interp(x, source, image)
    return inside + np.minimum(x - source[0], 0.0) + np.maximum(x - source[-1], 0.0)
