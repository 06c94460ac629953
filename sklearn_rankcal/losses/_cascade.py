"""Expected reciprocal rank, from the cascade model: a user stops at the first good document."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.base import clone

from sklearn_rankcal.losses._base import Loss
from sklearn_rankcal.losses._positional import Gain, called_gains, exp2_minus_1
from sklearn_rankcal.queries import Queries, Ranking
from sklearn_rankcal.utils._messages import check_number
from sklearn_rankcal.utils._numbers import Floats, read_numbers

#: A discount F: a function of the array of places 1, 2, ..., or None for the places themselves.
Discount = Callable[[Floats], Floats] | None
_NEGLIGIBLE = 45.0  # probabilities below exp(-45) = 3e-20 are left out


class ERR(Loss):
    """Expected reciprocal rank: sum_j (1 / F(j)) R_(j) prod_{l < j} (1 - R_(l)).

    R_(j) = G(y) is the probability that the document at place j, with label y, satisfies the user.

    Parameters
    ----------
    k : int, default=None
        Cutoff of the measure: only the first k places count. If None, every place counts.
    max_relevance : float, default=None
        The highest grade of the relevance scale. If None, the largest label passed to `fit` or to a
        metric is used; set it if the data may lack the highest grade. It must be None if `gain` is
        a function.
    gain : {"exp2", "linear"} or callable, default="exp2"
        The function G. ``"exp2"`` is ``(2**y - 1) / 2**max_relevance``, and ``"linear"`` is
        ``y / max_relevance``. A function maps an array of labels to probabilities in [0, 1].
    discount : callable, default=None
        The function F. It maps the array of places 1, 2, ... to non-decreasing numbers >= 1. If
        None, F(j) = j. The targets do not depend on it.

    Notes
    -----
    The targets are the probabilities R_i of the documents. They are calibrated if the labels of the
    documents are independent given the query (Duchi, Mackey and Jordan, 2013, equation 16 and lemma
    1). No scores are calibrated for every distribution (Calauzènes et al., 2013, theorem 3.3). For
    example, let the labels be (1, 1, 0, 0) or (0, 0, 1, 1) with probability one half each. The
    expected scores tie, but the ranking 1, 3, 2, 4 has a larger expected ERR (43/96) than
    1, 2, 3, 4 (41/96).

    Examples
    --------
    >>> from sklearn_rankcal import CalibratedRanker
    >>> from sklearn_rankcal.losses import ERR
    >>> ranker = CalibratedRanker(loss=ERR(k=10, max_relevance=4))
    """

    calibrated_everywhere = False
    graded_targets = True
    bounds = (0.0, 1.0)
    calibrated_over = (
        "product distributions, in which labels are independent given the query (Duchi et al., "
        "2013, lemma 1); not all distributions (Calauzènes et al., 2013, theorem 3.3)"
    )

    def __init__(
        self,
        k: int | None = None,
        *,
        max_relevance: float | None = None,
        gain: Gain = "exp2",
        discount: Discount = None,
    ) -> None:
        self.k = k
        self.max_relevance = max_relevance
        self.gain = gain
        self.discount = discount

    @property
    def non_negative(self) -> bool:  # type: ignore[override]
        return not callable(self.gain)

    def encode(self, relevance: Floats, queries: Queries) -> Floats:
        """Compute the probabilities R."""
        return self.satisfaction(relevance)

    def check(self, labels: Floats) -> None:
        if self.max_relevance is not None:
            check_number(self.max_relevance, "max_relevance", "[0, 1000]")
        self.divisors(2)
        if callable(self.gain):
            if self.max_relevance is not None:
                raise ValueError(
                    f"max_relevance={self.max_relevance!r} has no effect if gain is a function. "
                    "Leave it out."
                )
            super().check(labels)
            self.satisfaction(labels)
            return
        if not isinstance(self.gain, str) or self.gain not in ("exp2", "linear"):
            raise ValueError(f"gain must be 'exp2', 'linear' or a callable; got {self.gain!r}.")
        super().check(labels)
        top = labels.max()
        if self.max_relevance is None:
            if top > 1000:
                raise ValueError(
                    f"Relevance of {top:g} overflows 2**y. Rescale the labels to a few grades."
                )
        elif top > self.max_relevance:
            raise ValueError(
                f"Relevance {top:g} exceeds max_relevance={self.max_relevance:g}. Pass the highest "
                "grade of the relevance scale as ERR(max_relevance=...)."
            )

    def for_labels(self, labels: Floats) -> ERR:
        """Return the loss with the largest label as top grade, if `max_relevance` is None."""
        if self.max_relevance is not None or callable(self.gain):
            return self
        return clone(self).set_params(max_relevance=float(labels.max()))

    def satisfaction(self, relevance: Floats) -> Floats:
        """Return R, the probability that each document satisfies the user."""
        if callable(self.gain):
            chances = called_gains(relevance, self.gain)
            if (chances > 1).any():
                raise ValueError(
                    "gain must return probabilities, numbers in [0, 1], for ERR; got "
                    f"{chances.max():g}."
                )
            return chances
        top = relevance.max() if self.max_relevance is None else self.max_relevance
        if self.gain == "linear":
            return relevance / top if top > 0 else np.zeros(len(relevance))
        return exp2_minus_1(relevance) / np.exp2(top)

    def divisors(self, n_places: int) -> Floats:
        """Return F(1) .. F(n_places)."""
        places = np.arange(1.0, n_places + 1)
        if self.discount is None:
            return places
        if not callable(self.discount):
            raise ValueError(f"discount must be a function or None; got {self.discount!r}.")
        values = read_numbers(self.discount(places.copy()), "what discount returned")
        if values.shape != places.shape:
            raise ValueError(
                f"discount must return one value for each place, shape {places.shape}; got shape "
                f"{values.shape}."
            )
        if not np.isfinite(values).all() or values[0] < 1 or (np.diff(values) < 0).any():
            raise ValueError(
                "discount of ERR is a divisor. It must be finite, at least 1 at the first place, "
                f"and must not decrease; got {values[:5].tolist()} for the first places."
            )
        return values

    def per_query(self, ranking: Ranking, labels: Floats) -> Floats:
        """Return the sum over places j <= k, averaged over the orders of tied rows.

        The cost is O(n) without ties. A block of tied rows costs O(m T), where m is the number of
        its rows with R > 0, and T the number of its places that users reach with a probability that
        counts.
        """
        satisfaction = self.satisfaction(labels)
        ranking = ranking.head(self.k)
        queries = ranking.queries
        passing = 1.0 - ranking.take(satisfaction)
        # probability that the user reaches each place: the product of 1 - R over the places above
        reach = np.empty(queries.n_rows)
        for inside, valid in queries.buckets():
            product = np.ones(inside.shape)
            np.cumprod(passing[inside[:, :-1]], axis=1, out=product[:, 1:])
            reach[inside[valid]] = product[valid]
        if ranking.start is None or ranking.stop is None:
            # the same order of operations as with ties gives the same bits
            divisor = self.divisors(int(queries.sizes.max()))[queries.place]
            value = reach * ((1.0 - passing) / divisor)
        else:
            base = queries.repeat(queries.offsets[:-1])
            value = reach[ranking.start + base] * self._tied_values(passing, ranking)
        if self.k is not None:
            value = np.where(queries.place < self.k, value, 0.0)
        return ranking.sum(value)

    def _tied_values(self, passing: Floats, ranking: Ranking) -> Floats:
        """Return (E_(t-1) - E_t) / F(k0 + t) at the t-th place of each block below k0 documents.

        E_t is the mean of prod (1 - R) over all subsets of t documents of the block. A user who
        reaches the block stops at its t-th place with the probability E_(t-1) - E_t.
        """
        assert ranking.start is not None and ranking.stop is not None
        stopping = 1.0 - passing
        lengths = ranking.stop - ranking.start
        first = np.flatnonzero((ranking.queries.place == ranking.start) & (lengths > 1))
        for m in np.unique(lengths[first]):  # all blocks of the same length at once
            blocks = first[lengths[first] == m]
            inside = blocks + np.arange(m)[:, None]
            # E_t <= E_1^t by Maclaurin's inequality: leave out places that users hardly reach
            mean = float(passing[inside].mean(axis=0).max())
            places = m
            if mean < 1:
                places = min(m, int(np.ceil(_NEGLIGIBLE / -np.log(mean))) if mean > 0 else 1)
            if self.k is not None:
                places = min(places, self.k - int(ranking.start[blocks].min()))
            stopping[inside[places:]] = 0.0
            stopping[inside[:places]] = -np.diff(means_of_subsets(passing[inside], places), axis=0)
        return stopping / self.divisors(int(ranking.stop.max()))[ranking.queries.place]


def means_of_subsets(passing: Floats, places: int) -> Floats:
    """Return E_0 .. E_T of n blocks of m documents (T + 1, n), given 1 - R of shape (m, n).

    E_t is the mean of prod (1 - R) over all subsets of t documents. Document s is in a share t / s
    of the subsets of t of the first s documents. Therefore
    E_t(s) = ((s - t) E_t(s - 1) + t (1 - R_s) E_(t-1)(s - 1)) / s. The cost is O(n T) for n
    documents with R > 0.
    """
    # begin with the documents at which no user stops: E_t of them alone is 1
    passing = -np.sort(-passing, axis=0)
    idle = int((passing == 1).all(axis=1).sum())
    mean = np.zeros((places + 1, passing.shape[1]))
    mean[: min(idle, places) + 1] = 1.0
    for seen in range(idle + 1, len(passing) + 1):
        size = np.arange(1, min(seen, places) + 1)[:, None]
        last = len(size)
        mean[1 : last + 1] = (
            (seen - size) * mean[1 : last + 1] + size * passing[seen - 1] * mean[:last]
        ) / seen
    return mean
