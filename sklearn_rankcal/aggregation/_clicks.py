"""Relevance from clicks: structures of clicks, and `estimate_relevance`."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import GroupKFold

from sklearn_rankcal.aggregation._base import Structure
from sklearn_rankcal.clicks._clicks import Clicks, check_propensities, read_clicks
from sklearn_rankcal.clicks._propensities import fit_propensities, ratio
from sklearn_rankcal.models import DocumentModel, Training
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._column_advice import without_text
from sklearn_rankcal.utils._features import check_features, take_rows
from sklearn_rankcal.utils._messages import check_count, check_number, checks_keywords
from sklearn_rankcal.utils._numbers import Floats, add_up, read_numbers


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


# ---------------------------------------------------------------- doubly robust relevance


@checks_keywords
def estimate_relevance(
    clicks: Clicks | NDArray[Any],
    X: Any,
    propensities: ArrayLike | str = "estimate",
    *,
    click_noise: ArrayLike | None = None,
    regressor: Any = None,
    n_folds: int = 5,
    min_exposure: float = 10.0,
) -> Floats:
    """Estimate the relevance of documents from clicks and features (doubly robust).

    In the model, document i at position k is clicked with probability alpha_k gamma_i + beta_k,
    where gamma_i is its relevance. A regressor learns gamma from the features and predicts R_i for
    the documents of held-out queries. The clicks on the document correct its prediction:

        R_i + sum_s (click_s - beta_k - alpha_k R_i) / max(A_i, min_exposure)

    The sum runs over the sessions that showed the document, and A_i is the sum of their alpha_k,
    the expected number of examinations. If A_i is at least `min_exposure`, the prediction cancels,
    and the estimate is the number of clicks per examination. :doc:`/clicks` states when the
    estimate is unbiased.

    Parameters
    ----------
    clicks : Clicks or structured ndarray
        Clicks, or labels from `click_labels`.
    X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features)
        Features of the documents.
    propensities : array-like of shape (n_positions,) or "estimate", default="estimate"
        alpha_1, alpha_2, ..., in (0, 1]. ``"estimate"`` calls `estimate_propensities` without X.
        Scale them to alpha_1 of about 1: the estimates and the meaning of `min_exposure` depend on
        their unit.
    click_noise : array-like of shape (n_positions,), default=None
        beta_1, beta_2, ..., >= 0, with alpha_k + beta_k <= 1: the probabilities of a click on an
        irrelevant document because users trust the position. None means 0.
    regressor : estimator, default=None
        A regressor or classifier that supports sample weights. None means
        `models.default_regressor`.
    n_folds : int, default=5
        Number of folds of the queries. The regressor that predicts the queries of a fold is fitted
        to the rest.
    min_exposure : float, default=10
        The estimate is pulled towards the prediction for documents with fewer expected examinations
        than this. Must be >= 0; 0 means no pull.

    Returns
    -------
    relevance : ndarray of shape (n_documents,)
        The labels `y` of a ranker with ``loss=DCG(gain="linear")``. A document that was never shown
        gets its prediction. With `click_noise` or probabilities of display, values can be negative,
        and losses raise an error. Subtract the minimum: for DCG with linear gain, this does not
        change the best ranking.

    Raises
    ------
    ValueError
        If a parameter is out of range, if X does not have one row per document, or if fewer than
        two queries have sessions.

    Notes
    -----
    If the labels have the probability p_s that a session shows the document (`click_labels`), the
    sum is divided by the number N of sessions of the query, and each term by ``max(alpha_k p_s,
    min_exposure / N)``. The lists may then depend on earlier clicks.

    References
    ----------
    Oosterhuis (2023), Doubly robust estimation for correcting position bias in click feedback for
    unbiased learning to rank, ACM Transactions on Information Systems 41.

    Vardasbi, Oosterhuis and de Rijke (2020), When inverse propensity scoring does not work: affine
    corrections for unbiased learning to rank, CIKM.

    Examples
    --------
    Each query shows a good document above a bad one. A third document is never shown:

    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from sklearn_rankcal.aggregation import estimate_relevance
    >>> from sklearn_rankcal.clicks import click_labels
    >>> groups, X = np.repeat(np.arange(4), 3), np.tile([[2.0], [1.0], [2.0]], (4, 1))
    >>> shown = [[3 * q, 3 * q + 1] for q in range(4) for _ in range(4)]
    >>> y = click_labels(shown, [[1], [1], [1, 2], []] * 4, groups)
    >>> estimate_relevance(y, X, [1, 0.5], regressor=LinearRegression(), n_folds=2)[:3].round(2)
    array([0.75, 0.5 , 0.75])
    """
    if not isinstance(clicks, Clicks):
        clicks = read_clicks(clicks)
    table = check_features(X)
    if table.shape[0] != clicks.n_rows:
        raise ValueError(
            f"X must have one row for each of the {clicks.n_rows} documents; it has shape "
            f"{table.shape}."
        )
    if regressor is None:
        table = without_text(
            table, "the default regressor", takes_categories=True, has_ids=True, to_ranker=False
        )
    check_count(n_folds, "n_folds", least=2)  # a regressor predicts only held-out queries
    check_number(min_exposure, "min_exposure", "[0, inf)")
    alpha, beta = _bias(clicks, propensities, click_noise)
    exposure = sum_over_rows(clicks, alpha)
    surplus = sum_over_rows(clicks, clicks.clicked - beta)
    predicted = _predict(clicks, table, surplus, exposure, regressor, n_folds)
    return _corrected(clicks, predicted, alpha, beta, float(min_exposure))


def _bias(clicks: Clicks, propensities: Any, click_noise: Any) -> tuple[Floats, Floats]:
    """Return alpha and beta of the position of each impression."""
    structure = InversePropensity(propensities)
    structure.check()
    if isinstance(propensities, str) and click_noise is not None:
        raise ValueError(
            "click_noise needs known propensities: 'estimate' assumes that users do not "
            "click on irrelevant documents."
        )
    alpha = check_propensities(structure.resolve(clicks).propensities)
    beta = np.zeros(len(alpha))
    if click_noise is not None:
        beta = read_numbers(click_noise, "click_noise")
        if beta.shape != alpha.shape or not ((beta >= 0) & (alpha + beta <= 1)).all():
            raise ValueError(
                "click_noise must have one number per propensity, between 0 and 1 - "
                f"propensity; got {click_noise!r}."
            )
    return of_positions(clicks, alpha), of_positions(clicks, beta)


def _predict(
    clicks: Clicks, X: Any, surplus: Floats, exposure: Floats, regressor: Any, n_folds: int
) -> Floats:
    """Predict the relevance of all documents, with regressors fitted to other queries.

    The targets are clicks per examination, with a variance of about gamma / exposure.
    """
    shown = exposure > 0
    targets = np.divide(surplus, exposure, out=np.zeros(clicks.n_rows), where=shown)
    codes = clicks.queries.codes
    n_known = len(np.unique(codes[shown]))
    if n_known < 2:
        raise ValueError(
            "At least 2 queries must have sessions, because the regressor predicts held-out "
            f"queries; {n_known} of {clicks.queries.n_queries} have."
        )
    predicted = np.empty(clicks.n_rows)
    # Queries without sessions are a separate fold, predicted from all other queries.
    part = np.full(clicks.n_rows, n_folds)
    rows = np.flatnonzero(np.isin(codes, codes[shown]))
    folds = GroupKFold(min(n_folds, n_known)).split(rows, groups=codes[rows])
    for number, (_, fold) in enumerate(folds):
        part[rows[fold]] = number
    for number in np.unique(part):
        fitted, held_out = np.flatnonzero(shown & (part != number)), np.flatnonzero(part == number)
        weight = exposure[fitted] / exposure[fitted].mean()
        model = DocumentModel(regressor, center=False)
        queries = Queries.from_groups(codes[fitted])
        model.fit(Training(take_rows(X, fitted), targets[fitted], queries, weight))
        predicted[held_out] = model.predict(
            take_rows(X, held_out), Queries.from_groups(codes[held_out])
        )
    return np.maximum(predicted, 0.0)


def _corrected(
    clicks: Clicks, predicted: Floats, alpha: Floats, beta: Floats, least: float
) -> Floats:
    """Add to each prediction the mean excess of the clicks, per examination."""
    surplus = clicks.clicked - beta
    if clicks.probability is None:
        exposure = sum_over_rows(clicks, alpha)
        divisor = np.maximum(exposure, least)
        expected, found = exposure, sum_over_rows(clicks, surplus)
    else:
        divisor = clicks.queries.broadcast(clicks.per_query)
        of_session = divisor[clicks.row]
        # A session with a count of 0 can be the only one of its query.
        bound = np.divide(least, of_session, out=np.zeros(len(of_session)), where=of_session > 0)
        weight = 1 / np.maximum(alpha * clicks.probability, bound)
        expected = sum_over_rows(clicks, weight * alpha)
        found = sum_over_rows(clicks, weight * surplus)
    known = divisor > 0
    # In this form, rounding does not make values negative if the prediction cancels.
    share = np.divide(expected, divisor, out=np.zeros(clicks.n_rows), where=known)
    rate = np.divide(found, divisor, out=np.zeros(clicks.n_rows), where=known)
    relevance: Floats = predicted * (1 - share) + rate
    return relevance
