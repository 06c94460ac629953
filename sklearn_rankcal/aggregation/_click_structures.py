"""Structures of clicks, which compute one score per document from displays and clicks."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.aggregation._base import Structure
from sklearn_rankcal.clicks import Clicks
from sklearn_rankcal.clicks._click_log import check_propensities
from sklearn_rankcal.clicks._propensities import fit_propensities, ratio
from sklearn_rankcal.utils._numbers import add_up
from sklearn_rankcal.utils._parameters import check_number
from sklearn_rankcal.utils._typing import Floats


class ClickStructure(Structure):
    """Base class of structures of clicks. A subclass implements `_scores`."""

    takes = "clicks"
    _scores_are_gains = True

    def scores(self, judgements: Any) -> Floats:
        """Compute one score per document from the `Clicks` of all queries; larger is better."""
        self.check()
        if not isinstance(judgements, Clicks):
            raise TypeError(
                f"{type(self).__name__} needs clicks: pass read_clicks(labels), with labels "
                f"from click_labels(shown, clicked, groups). Got {type(judgements).__name__}."
            )
        return self._scores(judgements)

    def _scores(self, clicks: Clicks) -> Floats:
        raise NotImplementedError


class CascadeSatisfaction(ClickStructure):
    """Probability that a document satisfies a user, by maximum likelihood in a cascade model.

    A user examines documents from the top. Each examined document satisfies the user with its
    probability p; the user then clicks on it and stops. The estimate of p is the number of clicks
    on the document divided by the number of its examinations. The loss ERR with ``gain="linear"``
    and ``max_relevance=1`` takes it as the probability of satisfaction.

    Parameters
    ----------
    smoothing : (float, float), default=None
        Positive numbers a and b: the score is (clicks + a) / (examined + a + b), the posterior mean
        of p for the prior Beta(a, b). None means maximum likelihood, with NaN for documents that
        were never examined.

    Notes
    -----
    If a session has several clicks, every click counts, and the documents down to the last click
    count as examined. This is the estimator of the dependent click model (Guo et al.), which
    maximises a lower bound of its likelihood.

    References
    ----------
    Craswell, Zoeter, Taylor and Ramsey (2008), An experimental comparison of click position-bias
    models, WSDM.

    Duchi, Mackey and Jordan (2013), The asymptotics of ranking algorithms, section 5.2.

    Guo, Liu and Wang (2009), Efficient multiple-click models in web search, WSDM.

    Examples
    --------
    Document 2 was shown once, below a click, and was never examined:

    >>> from sklearn_rankcal.aggregation import CascadeSatisfaction
    >>> from sklearn_rankcal.clicks import click_labels, read_clicks
    >>> clicks = read_clicks(click_labels([[0, 1, 2], [1, 0], [0, 1]], [2, 1, None], [0, 0, 0]))
    >>> CascadeSatisfaction().scores(clicks).round(3).tolist()
    [0.0, 0.667, nan]
    >>> CascadeSatisfaction(smoothing=(1, 3)).scores(clicks).round(3).tolist()
    [0.167, 0.429, 0.25]
    """

    def __init__(self, smoothing: tuple[float, float] | None = None) -> None:
        self.smoothing = smoothing

    def check(self) -> None:
        """Raise ValueError unless `smoothing` is None or two positive finite numbers."""
        if self.smoothing is None:
            return
        if not isinstance(self.smoothing, (tuple, list)) or len(self.smoothing) != 2:
            raise ValueError(
                f"smoothing must be None or two positive numbers (a, b); got {self.smoothing!r}."
            )
        for number in self.smoothing:
            check_number(number, "smoothing", also="None, or each of two numbers")

    def _scores(self, clicks: Clicks) -> Floats:
        last = clicks.last_click
        examined = np.where(last > 0, last, np.iinfo(np.int64).max)
        # the impressions down to the last click, or all without a click
        seen = clicks.position <= np.repeat(examined, np.diff(clicks.offsets))
        clicked = sum_over_rows(clicks, clicks.clicked)
        n_examined = sum_over_rows(clicks, seen)
        a, b = (0.0, 0.0) if self.smoothing is None else self.smoothing
        return ratio(clicked + a, n_examined + a + b)


class InversePropensity(ClickStructure):
    """Relevance from clicks, corrected for position bias by inverse propensity weights.

    In the position-based model, a user examines position k with probability theta_k, the
    *propensity*, and clicks on an examined document with a probability that is its relevance. The
    score of a document is the mean of clicked / theta_position over the sessions that showed it. It
    can exceed 1, and is NaN without such sessions.

    The score is unbiased if the clicks on a document do not influence when and where it is shown.
    Otherwise its bias disappears with a growing number of sessions. If the labels have the
    probabilities that documents are shown (`probability` of `click_labels`), the score is unbiased
    even then. It is the sum of clicked / (theta_position probability) divided by the number of
    sessions of the query. It is 0 for a document that was never shown.

    Parameters
    ----------
    propensities : array-like of shape (n_positions,) or "estimate", default="estimate"
        theta_1, theta_2, ..., in (0, 1]. ``"estimate"`` estimates them from the same clicks with
        `estimate_propensities`, without features. To use features, or the same propensities in all
        bootstrap samples, pass the result of that function.
    clip : float, default=None
        Maximum weight of a click, >= 1. Clipping reduces the variance, but scores of documents at
        positions with propensities below 1 / clip become too small, and scores depend on the unit
        of the propensities. None means no maximum.

    References
    ----------
    Joachims, Swaminathan and Schnabel (2017), Unbiased learning-to-rank with biased feedback, WSDM.

    Examples
    --------
    Each document was clicked once. The click at position 2 has twice the weight, because only half
    of the users look there:

    >>> from sklearn_rankcal.aggregation import InversePropensity
    >>> from sklearn_rankcal.clicks import click_labels, read_clicks
    >>> clicks = read_clicks(click_labels([[0, 1]] * 4, [1, 2, None, None], [0, 0]))
    >>> InversePropensity([1, 0.5]).scores(clicks).tolist()
    [0.25, 0.5]
    """

    def __init__(
        self, propensities: ArrayLike | str = "estimate", clip: float | None = None
    ) -> None:
        self.propensities = propensities
        self.clip = clip

    def check(self) -> None:
        """Raise ValueError unless propensities are in (0, 1] and `clip` is None or at least 1."""
        if isinstance(self.propensities, str):
            if self.propensities != "estimate":
                raise ValueError(
                    "propensities must be 'estimate' or an array with one number per "
                    f"position; got {self.propensities!r}."
                )
        else:
            check_propensities(self.propensities)
        number = isinstance(self.clip, Real) and not isinstance(self.clip, bool)
        if self.clip is not None and not (number and 1 <= self.clip < np.inf):
            raise ValueError(f"clip must be None or a finite number >= 1; got {self.clip!r}.")

    def resolve(self, judgements: Any) -> InversePropensity:
        """Return a copy with propensities estimated from these clicks.

        A position without clicks gets the smallest propensity of the positions with clicks, which
        bounds the weight of later clicks there.

        Parameters
        ----------
        judgements : Clicks
            All training clicks.

        Returns
        -------
        structure : InversePropensity
        """
        if not isinstance(self.propensities, str):
            return self
        self.check()
        theta = fit_propensities(judgements).propensities
        theta = np.where(theta > 0, theta, theta[theta > 0].min())
        return InversePropensity(theta, self.clip)

    def _scores(self, clicks: Clicks) -> Floats:
        if isinstance(self.propensities, str):
            theta = fit_propensities(clicks).propensities
        else:
            theta = check_propensities(self.propensities)
        # The estimate is 0 for a position without clicks, or with counts of 0 only.
        chance = of_positions(clicks, theta)
        if clicks.probability is not None:
            chance = chance * clicks.probability
        weight = np.zeros(len(chance))
        np.divide(1.0, chance, out=weight, where=clicks.clicked & (chance > 0))
        if self.clip is not None:
            np.minimum(weight, self.clip, out=weight)
        known = clicks.probability is not None
        number = clicks.queries.broadcast(clicks.per_query) if known else sum_over_rows(clicks)
        return ratio(sum_over_rows(clicks, weight), number)


class ClickThroughRate(ClickStructure):
    """Share of the sessions that showed a document in which it was clicked.

    This is the baseline without a correction: a document further down has a lower score than an
    equally relevant one at the top. The score is NaN if the document was never shown.

    Examples
    --------
    >>> from sklearn_rankcal.aggregation import ClickThroughRate
    >>> from sklearn_rankcal.clicks import click_labels, read_clicks
    >>> clicks = read_clicks(click_labels([[0, 1], [1, 0], [1]], [1, 2, 1], [0, 0, 0]))
    >>> ClickThroughRate().scores(clicks).round(3).tolist()
    [1.0, 0.333, nan]
    """

    def _scores(self, clicks: Clicks) -> Floats:
        return ratio(sum_over_rows(clicks, clicks.clicked), sum_over_rows(clicks))


def of_positions(clicks: Clicks, propensities: Floats) -> Floats:
    """Return the propensity of each impression; ValueError if a position has none."""
    longest = int(clicks.position.max(initial=0))
    if longest > len(propensities):
        raise ValueError(
            f"A session shows {longest} documents, but there are only {len(propensities)} "
            "propensities. Pass one per position, or truncate the sessions."
        )
    return propensities[clicks.position - 1]


def sum_over_rows(clicks: Clicks, values: NDArray[Any] | None = None) -> Floats:
    """Add up one value per impression (1 by default) times its count, for each row."""
    weight = clicks.weight
    if values is not None:
        weight = values if weight is None else weight * values
    return add_up(clicks.row, weight, clicks.n_rows)
