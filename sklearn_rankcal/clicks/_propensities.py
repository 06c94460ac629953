"""`estimate_propensities`: probabilities of examination from clicks, by regression-EM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import xlog1py, xlogy
from sklearn.base import clone, is_classifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning

from sklearn_rankcal.clicks._clicks import Clicks, read_clicks
from sklearn_rankcal.utils._column_advice import note_columns, without_text
from sklearn_rankcal.utils._features import check_features, take_rows
from sklearn_rankcal.utils._messages import check_count, check_number, checks_keywords, warn
from sklearn_rankcal.utils._numbers import Floats, Ints, add_up

_LEAST = 1e-12  # a classifier's relevance is kept so far from 0 and from 1
#: `tol` without features, and with a classifier, whose predictions do not change smoothly
_TOLERANCE, _TOLERANCE_WITH_X = 1e-6, 1e-3


@dataclass(frozen=True)
class PropensityEstimate:
    """What `estimate_propensities` returns."""

    propensities: Floats
    relevance: Floats
    log_likelihood: Floats
    n_iter: int
    converged: bool


@checks_keywords
def estimate_propensities(
    clicks: Clicks | NDArray[Any],
    X: Any = None,
    *,
    classifier: Any = None,
    max_iter: int = 2000,
    tol: float | None = None,
) -> PropensityEstimate:
    """Estimate the probability that each position is examined, by regression-EM.

    In the model, document i at position k is clicked with probability theta_k gamma_i, where
    theta_k is the propensity and gamma_i the relevance. The E-step computes the probability of
    examination and of relevance for each impression. The M-step averages them over positions and
    over documents. With features, a classifier predicts gamma_i instead, which needs fewer clicks
    per document.

    Parameters
    ----------
    clicks : Clicks or structured ndarray
        Clicks, or labels from `click_labels`.
    X : {array-like, sparse matrix, data frame} of shape (n_documents, n_features), default=None
        Features of the documents, for the default classifier also categories. None means that the
        relevance of each document is estimated separately.
    classifier : classifier, default=None
        A classifier that predicts relevance from X, with `predict_proba` and `sample_weight`. None
        means ``HistGradientBoostingClassifier`` if X is passed.
    max_iter : int, default=2000
        Maximum number of iterations.
    tol : float, default=None
        The iterations stop when no propensity changes by more than `tol`. None means 1e-6, or 1e-3
        with X.

    Returns
    -------
    estimate : object
        An object with the following attributes.

        - ``propensities``, of shape (n_positions,): the probability that each position is examined,
          relative to position 1, which has 1. Pass them to `InversePropensity`.
        - ``relevance``, of shape (n_documents,): the probability that each document is clicked if
          it is examined. NaN if it was never shown.
        - ``log_likelihood``, of shape (n_iter + 1,): the mean log-likelihood of an impression
          before the first iteration and after each.
        - ``n_iter``: the number of iterations.
        - ``converged``: whether no propensity changed by more than `tol` in the last iteration.

    Raises
    ------
    ValueError
        If a position was shown but never clicked, if position 1 has no clicks, or if X does not
        have one row per document. Without X, if the clicks do not determine the propensities, for
        example because every query has only one ranking.

    Notes
    -----
    The clicks determine propensities and relevance only up to a common factor; therefore theta_1 is
    set to 1. Without features and with few sessions per document, the propensities of low positions
    are overestimated.

    References
    ----------
    Wang, Golbandi, Bendersky, Metzler and Najork (2018), Position bias estimation for unbiased
    learning to rank in personal search, WSDM.

    Examples
    --------
    >>> from sklearn_rankcal.clicks import estimate_propensities
    >>> from sklearn_rankcal.datasets import make_clicks
    >>> data = make_clicks(
    ...     [2, 0, 1] * 20, [q for q in range(20) for _ in range(3)], 100_000,
    ...     propensities=[1, 0.5, 0.25], random_state=0,
    ... )  # fmt: skip
    >>> estimate_propensities(data.y).propensities.round(2).tolist()
    [1.0, 0.5, 0.25]
    """
    if not isinstance(clicks, Clicks):
        clicks = read_clicks(clicks)
    check_count(max_iter, "max_iter")
    if tol is None:
        tol = _TOLERANCE if X is None else _TOLERANCE_WITH_X
    check_number(tol, "tol", "(0, 1)")
    table = None
    if X is not None:
        table, default = check_features(X), classifier is None
        who = "the default classifier" if default else "estimate_propensities"
        table = without_text(table, who, takes_categories=default, has_ids=True, to_ranker=False)
        if table.shape[0] != clicks.n_rows:
            raise ValueError(
                f"X must have one row for each of the {clicks.n_rows} documents; it has shape "
                f"{table.shape}."
            )
    elif classifier is not None:
        raise ValueError("A classifier needs the features of the documents: pass X.")
    if classifier is not None and (isinstance(classifier, type) or not is_classifier(classifier)):
        raise TypeError(f"classifier must be a scikit-learn classifier; got {classifier!r}.")
    try:
        estimate = fit_propensities(clicks, table, classifier, max_iter, tol)
    except ValueError as error:
        if X is not None:
            note_columns(error, table)
        raise
    never = np.flatnonzero(estimate.propensities == 0) + 1
    if len(never):
        raise ValueError(
            f"The propensities of {len(never)} positions cannot be estimated, because they were "
            f"shown but never clicked: {', '.join(map(str, never[:5]))}"
            f"{', ...' if len(never) > 5 else ''}. Truncate the sessions above them."
        )
    return estimate


def fit_propensities(
    clicks: Clicks,
    X: Any = None,
    classifier: Any = None,
    max_iter: int = 2000,
    tol: float = _TOLERANCE,
) -> PropensityEstimate:
    """Run regression-EM; the propensity of a position without clicks is 0."""
    row, position, shown, clicked = count_cells(clicks)
    n_rows = clicks.n_rows
    n_positions = int(clicks.position.max(initial=0))
    at = position - 1
    if clicked[position == 1].sum() == 0:
        raise ValueError("Propensities are relative to position 1, but position 1 has no clicks.")
    if X is None:
        _check_connected(row, at, clicked, n_rows)
    of_row = add_up(row, shown, n_rows)
    of_position = add_up(at, shown, n_positions)
    update = (lambda n: ratio(n, of_row)) if X is None else _regression(X, classifier, of_row)
    # Start: examination decreases as 1 / position. Relevance is the share of clicks, smoothed.
    theta = 1.0 / np.arange(1, n_positions + 1)
    theta[add_up(at, clicked, n_positions) == 0] = 0.0
    gamma = (add_up(row, clicked, n_rows) + 1) / (of_row + 2)
    history = [_log_likelihood(theta[at] * gamma[row], shown, clicked)]
    converged = False
    for _ in range(max_iter):
        product = theta[at] * gamma[row]
        missed = np.zeros(len(row))  # where the product is 1, every impression was clicked
        np.divide(shown - clicked, 1 - product, out=missed, where=product < 1)
        # E-step: expected impressions of each cell that were examined, and that were relevant
        examined = clicked + missed * (theta[at] - product)
        relevant = clicked + missed * (gamma[row] - product)
        # M-step
        gamma = update(add_up(row, relevant, n_rows))
        new = add_up(at, examined, n_positions) / np.where(of_position > 0, of_position, 1)
        new[0] = 1.0  # already true up to rounding
        change = np.abs(new - theta).max()
        theta = np.minimum(new, 1.0)  # larger values are rounding errors
        history.append(_log_likelihood(theta[at] * gamma[row], shown, clicked))
        if change <= tol:
            converged = True
            break
    if not converged:
        warn(
            (
                f"Regression-EM did not converge in max_iter={max_iter} iterations: the last "
                f"change of a propensity was {change:.2g}, more than tol={tol:g}."
            ),
            ConvergenceWarning,
        )
    return PropensityEstimate(theta, gamma, np.array(history), len(history) - 1, converged)


def count_cells(clicks: Clicks) -> tuple[Ints, Ints, Floats, Floats]:
    """Return the cells (row, position), and how often each was shown and clicked."""
    position, weight = clicks.position, clicks.weight
    longest = int(position.max(initial=1))
    key = clicks.row * longest + position - 1
    size, pair = clicks.n_rows * longest, None
    if size > 4 * len(key) + 1024:  # most cells of the table of all pairs would be empty
        pair, key = np.unique(key, return_inverse=True)
        size = len(pair)
    shown = add_up(key, weight, size)
    clicked = add_up(key, clicks.clicked if weight is None else clicks.clicked * weight, size)
    cells = np.flatnonzero(shown)
    numbers = cells if pair is None else pair[cells]
    return numbers // longest, numbers % longest + 1, shown[cells], clicked[cells]


def ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Divide; NaN if the denominator is 0."""
    nan = np.full(len(numerator), np.nan)
    return np.divide(numerator, denominator, out=nan, where=denominator > 0)


def _regression(X: Any, classifier: Any, of_row: Floats) -> Callable[[Floats], Floats]:
    """Return the M-step with a classifier that predicts the relevance of each row."""
    model = classifier
    if model is None:
        model = HistGradientBoostingClassifier(max_iter=50, early_stopping=False)
    seen = np.flatnonzero(of_row > 0)
    twice = take_rows(X, np.concatenate([seen, seen]))
    labels = np.repeat([1, 0], len(seen))

    def update(relevant: Floats) -> Floats:
        weight = np.concatenate([relevant[seen], np.maximum(of_row - relevant, 0)[seen]])
        gamma = clone(model).fit(twice, labels, sample_weight=weight).predict_proba(X)[:, 1]
        return np.clip(gamma, _LEAST, 1 - _LEAST)

    return update


def _log_likelihood(product: Floats, shown: Floats, clicked: Floats) -> float:
    """Compute the mean log-likelihood of an impression from the click probabilities."""
    sums = xlogy(clicked, product) + xlog1py(shown - clicked, -product)
    return float(sums.sum() / shown.sum())


def _check_connected(row: Ints, at: Ints, clicked: Floats, n_rows: int) -> None:
    """Check that rows with clicks link every position with clicks to position 1.

    The clicks on a row determine the ratios of the propensities of its positions.
    """
    n_positions = int(at.max()) + 1
    informative = (add_up(row, clicked, n_rows) > 0)[row]
    links = coo_array(
        (np.ones(informative.sum()), (row[informative], n_rows + at[informative])),
        shape=(n_rows + n_positions, n_rows + n_positions),
    )
    component = connected_components(links, directed=False)[1][n_rows:]
    apart = (component != component[0]) & (add_up(at, clicked, n_positions) > 0)
    if apart.any():
        raise ValueError(
            "The clicks do not determine the propensities: no clicked documents shown at "
            f"several positions link position {np.argmax(apart) + 1} to position 1. Show the "
            "documents of a query in several orders, or use features: "
            "propensities=estimate_propensities(clicks, X).propensities."
        )
