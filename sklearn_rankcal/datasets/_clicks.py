"""A generator of clicks on rankings, by models of users whose parameters are known."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Bunch, check_random_state

from sklearn_rankcal.clicks import click_labels
from sklearn_rankcal.clicks._click_log import check_propensities
from sklearn_rankcal.labels._relevance import check_relevance
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._memory import rows_per_block
from sklearn_rankcal.utils._messages import counted
from sklearn_rankcal.utils._parameters import check_choice, check_count, check_number
from sklearn_rankcal.utils._typing import Floats, Ints

MODELS = ("cascade", "position")


def make_clicks(
    relevance: ArrayLike,
    groups: ArrayLike,
    n_sessions: int,
    *,
    model: str = "position",
    n_shown: int = 10,
    propensities: ArrayLike | None = None,
    ranking: ArrayLike | None = None,
    temperature: float = 0.0,
    noise: float = 0.1,
    random_state: Any = None,
) -> Bunch:
    """Generate clicks on rankings of documents whose relevance is known.

    Each session draws a query and shows the first `n_shown` documents of a ranking of it. A
    document of relevance y has the probability of attraction gamma = noise + (1 - noise) (2^y - 1)
    / (2^y_max - 1), where y_max is the largest relevance of all rows. With ``model="position"``,
    position k is examined with probability theta_k, and every examined document clicked with
    probability gamma. With ``model="cascade"``, documents are examined from the top until the first
    click.

    Parameters
    ----------
    relevance : array-like of shape (n_documents,)
        Relevance of each row, at least 0, such as the grades of a LETOR file.
    groups : array-like of shape (n_documents,)
        Query id of each row.
    n_sessions : int
        Number of sessions.
    model : {"position", "cascade"}, default="position"
        The model of the user.
    n_shown : int, default=10
        Number of documents that a session shows. Queries with fewer show them all.
    propensities : array-like of shape (n_shown,) or more, default=None
        theta_1, theta_2, ..., in (0, 1], for ``model="position"``. None means 1 / k.
    ranking : array-like of shape (n_documents,), default=None
        Scores by which sessions rank, such as those of the ranker that ran when clicks were logged;
        larger is better. None means that all orders are equally probable.
    temperature : float, default=0
        If it is above 0, documents are drawn for position 1, 2, ... with probabilities proportional
        to exp(score / temperature). Some variation of this kind is needed to estimate propensities.
    noise : float, default=0.1
        Probability, in [0, 1), that an irrelevant document is clicked if it is examined.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers.

    Returns
    -------
    data : Bunch
        A dictionary-like object with these entries:

        - ``shown``, ``sessions`` and ``clicked``, of shape (n_impressions,): the row, the number of
          the session and whether it was clicked, for each document that was shown, in the form that
          `click_labels` takes.
        - ``y``, of shape (n_documents,): the labels of `click_labels`.
        - ``probabilities``, of shape (n_documents,): gamma of each row.
        - ``propensities``, of shape (n_shown,): theta, or None for ``model="cascade"``.

    Raises
    ------
    ValueError
        If a number is out of range, if relevance is negative, if there are fewer propensities than
        positions, or if the model is unknown.

    Examples
    --------
    >>> from sklearn_rankcal.datasets import make_clicks
    >>> data = make_clicks([2, 0, 1, 0], ["a", "a", "b", "b"], 1000, noise=0, random_state=0)
    >>> data.probabilities.round(3).tolist(), data.propensities.tolist()
    ([1.0, 0.0, 0.333, 0.0], [1.0, 0.5])
    >>> len(data.shown), len(data.y)
    (2000, 4)
    """
    grades = check_relevance(relevance)
    queries = Queries.from_groups(groups, len(grades))
    check_count(n_sessions, "n_sessions")
    check_count(n_shown, "n_shown")
    check_number(temperature, "temperature", "[0, inf)")
    check_choice(model, "model", MODELS)
    check_number(noise, "noise", "[0, 1)")
    if (grades < 0).any():
        raise ValueError(f"relevance must be at least 0; the smallest is {grades.min()}.")
    n_positions = int(min(n_shown, queries.sizes.max()))
    theta = 1 / np.arange(1.0, n_positions + 1) if model == "position" else None
    if propensities is not None:
        if theta is None:
            raise ValueError("The cascade model has no propensities; pass model='position'.")
        theta = check_propensities(propensities)[:n_positions]
        if len(theta) < n_positions:
            raise ValueError(
                f"propensities has {counted(len(theta), 'entry')}, but sessions show "
                f"{n_positions} documents."
            )
    scores = None
    if ranking is not None:
        scores = check_relevance(ranking)
        if len(scores) != len(grades):
            raise ValueError(
                f"ranking has {counted(len(scores), 'entry')}, but there are {len(grades)} rows."
            )
    random = check_random_state(random_state)
    top = max(float(grades.max()), 1.0)
    gain = (2.0 ** (grades - top) - 2.0**-top) / (1 - 2.0**-top)
    gamma = noise + (1 - noise) * gain / max(float(gain.max()), np.finfo(float).tiny)
    # Step 1: draw the queries, and what their sessions show.
    query = random.randint(queries.n_queries, size=int(n_sessions))
    lengths = np.minimum(queries.sizes[query], n_shown)
    offsets = np.append(0, np.cumsum(lengths))
    if scores is not None and temperature == 0:
        order = queries.sort(scores)
        place = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
        shown = order[place + np.repeat(queries.offsets[query], lengths)]
    else:
        keys = None if scores is None else queries.gather(scores) / temperature
        shown = _random_lists(query, queries, keys, offsets, random)
    # Step 2: draw the clicks.
    position = np.arange(1, offsets[-1] + 1) - np.repeat(offsets[:-1], lengths)
    chance = gamma[shown] if theta is None else theta[position - 1] * gamma[shown]
    clicked = random.uniform(size=len(shown)) < chance
    if theta is None:  # only the first click of a session happens
        before = np.cumsum(clicked) - clicked
        clicked &= before == np.repeat(before[offsets[:-1]], lengths)
    sessions = np.repeat(np.arange(int(n_sessions)), lengths)
    return Bunch(
        shown=shown,
        sessions=sessions,
        clicked=clicked,
        y=click_labels(shown, clicked, queries.codes, sessions=sessions),
        probabilities=gamma,
        propensities=theta,
        DESCR=f"Clicks from a {model} model; see make_clicks.",
    )


def _random_lists(
    query: Ints, queries: Queries, keys: Floats | None, offsets: Ints, random: Any
) -> Ints:
    """Draw the rows that each session shows, in the order shown; `offsets` are those of sessions.

    `query` is that of each session. `keys` are the logarithms of the weights with which documents
    are drawn, in grouped layout; None means that they are equal.
    """
    shown = np.empty(offsets[-1], dtype=np.int64)
    order = np.arange(queries.n_rows) if queries.order is None else queries.order
    # Sessions of queries of the same size share an array. There are few different sizes.
    sizes = queries.sizes[query]
    for size in np.unique(sizes):
        member = np.flatnonzero(sizes == size)
        n = int(offsets[member[0] + 1] - offsets[member[0]])
        step = rows_per_block(4 * 8 * int(size))
        for first in range(0, len(member), step):
            part = member[first : first + step]
            inside = queries.offsets[query[part]][:, None] + np.arange(size)
            # Gumbel noise, minus the logarithm of an exponential variable: sorting the sums draws
            # documents without replacement, with probabilities proportional to exp(key). Without
            # keys, sorting any noise does.
            if keys is None:
                drawn = random.uniform(size=inside.shape)
            else:
                drawn = np.log(random.exponential(size=inside.shape)) - keys[inside]
            best = np.argsort(drawn, axis=1)[:, :n]
            shown[offsets[part][:, None] + np.arange(n)] = order[
                np.take_along_axis(inside, best, axis=1)
            ]
    return shown
