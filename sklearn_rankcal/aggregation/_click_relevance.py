"""`estimate_relevance`: doubly robust relevance from clicks and features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import GroupKFold

from sklearn_rankcal.aggregation._click_structures import (
    InversePropensity,
    of_positions,
    sum_over_rows,
)
from sklearn_rankcal.clicks import Clicks, read_clicks
from sklearn_rankcal.clicks._click_log import check_propensities
from sklearn_rankcal.models import DocumentModel, Training
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._features import check_features, check_no_text, take_rows
from sklearn_rankcal.utils._names import checks_keywords
from sklearn_rankcal.utils._numbers import read_numbers
from sklearn_rankcal.utils._parameters import check_count, check_number
from sklearn_rankcal.utils._typing import Floats


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
        check_no_text(
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
