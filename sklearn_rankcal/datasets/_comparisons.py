"""A generator of comparisons of documents from their graded relevance."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.utils import Bunch, check_random_state

from sklearn_rankcal.labels import preference_labels
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._numbers import check_range, read_numbers
from sklearn_rankcal.utils._parameters import check_count, check_number


def make_comparisons(
    relevance: ArrayLike,
    groups: ArrayLike,
    n_comparisons: int,
    *,
    noise: float = 1.0,
    random_state: Any = None,
) -> Bunch:
    """Generate comparisons of two documents each from graded relevance.

    This is how Duchi, Mackey and Jordan (2013) obtain partial preferences whose distribution is
    known. Each comparison is drawn independently: first a query, then two different documents of
    it, with equal probabilities. By the model of Bradley, Terry and Luce, document i is preferred
    to document j with probability 1 / (1 + exp(-(r_i - r_j) / noise)), where r is the relevance.

    Parameters
    ----------
    relevance : array-like of shape (n_rows,)
        Finite relevance of each document.
    groups : array-like of shape (n_rows,)
        Query id of each row, in any order. Queries of one document are never drawn.
    n_comparisons : int
        Number of comparisons, at least 1.
    noise : float, default=1.0
        Noise of the comparisons, > 0. With much noise, they are like coin tosses.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers.

    Returns
    -------
    data : Bunch
        A dictionary-like object with these entries:

        - ``y``, of shape (n_rows,): the structured array of ``preference_labels(pairs, groups)``,
          in which each pair is a judgement of its own.
        - ``pairs``, of shape (n_comparisons, 2): the rows of the preferred and of the other
          document of each comparison.
        - ``groups``, of shape (n_rows,): the query ids, as they were given.
        - ``scores``, of shape (n_rows,): the asymptotic scores, which are what the log-odds of the
          comparisons converge to: the mean of (r_i - r_j) / noise over the other documents j of the
          query. The only document of a query has the score 0.

    Raises
    ------
    ValueError
        If a number is out of range, if lengths differ, or if no query has two documents.

    References
    ----------
    J. C. Duchi, L. Mackey and M. I. Jordan: The asymptotics of ranking algorithms. Annals of
    Statistics 41, 2013, equations (26) and (27), both with noise 1.

    Examples
    --------
    >>> from sklearn_rankcal.datasets import make_comparisons
    >>> data = make_comparisons([2, 0, 1, 3], ["a", "a", "a", "b"], 1000, random_state=0)
    >>> data.pairs.shape, data.scores.tolist()
    ((1000, 2), [1.5, -1.5, 0.0, 0.0])
    """
    values = read_numbers(relevance, "relevance")
    if values.ndim != 1:
        raise ValueError(
            f"relevance must be a 1-D array with one number per row; it has shape {values.shape}."
        )
    if not np.isfinite(values).all():
        bad = int(np.argmin(np.isfinite(values)))
        raise ValueError(f"relevance must be finite; row {bad} has {values[bad]}.")
    check_range(values, "relevance")
    queries = Queries.from_groups(groups, len(values))
    check_count(n_comparisons, "n_comparisons")
    check_number(noise, "noise")
    check_range(np.array([noise]), "noise")
    several = np.flatnonzero(queries.sizes > 1)
    if len(several) == 0:
        raise ValueError("No query has two documents, so that there is nothing to compare.")
    # Step 1: compute the asymptotic scores. The mean of r_i - r_j over the other documents j is the
    # difference to the mean of the query, times m / (m - 1) in a query of m documents.
    factor = queries.broadcast(queries.sizes / np.maximum(queries.sizes - 1, 1))
    scores = factor * (queries.center(values) / noise)
    # Step 2: draw the query of each comparison, and two different places in it. The second place
    # is drawn among the size - 1 others: numbers from the first place on stand for the next place.
    random = check_random_state(random_state)
    query = several[random.randint(len(several), size=n_comparisons)]
    size = queries.sizes[query]
    first = random.randint(size)
    second = random.randint(size - 1)
    row = np.arange(queries.n_rows) if queries.order is None else queries.order
    start = queries.offsets[query]
    one, other = row[start + first], row[start + second + (second >= first)]
    # Step 3: draw which of the two is preferred, equation (26).
    chance = expit((values[one] - values[other]) / noise)
    won = random.uniform(size=n_comparisons) < chance
    pairs = np.column_stack([np.where(won, one, other), np.where(won, other, one)])
    return Bunch(
        y=preference_labels(pairs, groups),
        pairs=pairs,
        groups=groups,
        scores=scores,
        DESCR="Comparisons from graded relevance; see make_comparisons.",
    )
