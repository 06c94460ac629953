"""A generator of clicks on rankings, by user models with known parameters."""

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
    """Generate clicks on rankings of documents with known relevance.

    Each session samples a query, ranks its documents and shows the first `n_shown`. An examined
    document with relevance y is clicked with probability gamma = noise + (1 - noise) (2^y - 1) /
    (2^y_max - 1), where y_max is the largest relevance of all rows. With ``model="position"``, the
    user examines position k with probability theta_k. With ``model="cascade"``, the user examines
    documents from the top until the first click.

    Parameters
    ----------
    relevance : array-like of shape (n_documents,)
        Relevance of each row, at least 0.
    groups : array-like of shape (n_documents,)
        Query id of each row.
    n_sessions : int
        Number of sessions.
    model : {"position", "cascade"}, default="position"
        The user model.
    n_shown : int, default=10
        Number of documents shown in a session. Shorter queries are shown completely.
    propensities : array-like of shape (n_shown,) or longer, default=None
        The probabilities theta_1, theta_2, ..., in (0, 1], for ``model="position"``. If None,
        theta_k = 1 / k.
    ranking : array-like of shape (n_documents,), default=None
        Scores that determine the rankings, larger is better, for example from the ranker in
        production. If None, all orders are equally probable.
    temperature : float, default=0
        If 0, documents are sorted by score. If above 0, the documents for positions 1, 2, ... are
        sampled with probabilities proportional to exp(score / temperature). To estimate
        propensities, rankings must vary.
    noise : float, default=0.1
        Probability, in [0, 1), that an examined irrelevant document is clicked.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers.

    Returns
    -------
    data : Bunch
        Dictionary-like object, with the following attributes.

        - ``shown``, ``sessions`` and ``clicked``, of shape (n_impressions,): for each shown
          document, its row, the number of the session, and whether it was clicked. These are
          arguments of `click_labels`.
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
        raise ValueError(f"relevance must be at least 0; got {grades.min()}.")
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
    # Step 1: sample the queries and the rankings of the sessions.
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
    # Step 2: sample the clicks.
    position = np.arange(1, offsets[-1] + 1) - np.repeat(offsets[:-1], lengths)
    chance = gamma[shown] if theta is None else theta[position - 1] * gamma[shown]
    clicked = random.uniform(size=len(shown)) < chance
    if theta is None:  # keep only the first click of a session
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
    """Sample the rows that each session shows, in their order, given the offsets of sessions.

    `query` holds the query of each session. `keys` holds the logarithms of the sampling weights of
    documents, in grouped layout. If None, weights are equal.
    """
    shown = np.empty(offsets[-1], dtype=np.int64)
    order = np.arange(queries.n_rows) if queries.order is None else queries.order
    # Sessions with the same query size share an array. There are few different sizes.
    sizes = queries.sizes[query]
    for size in np.unique(sizes):
        member = np.flatnonzero(sizes == size)
        n = int(offsets[member[0] + 1] - offsets[member[0]])
        step = rows_per_block(4 * 8 * int(size))
        for first in range(0, len(member), step):
            part = member[first : first + step]
            inside = queries.offsets[query[part]][:, None] + np.arange(size)
            # Gumbel noise is minus the logarithm of an exponential variable. Sorting key + noise
            # samples documents without replacement, with probabilities proportional to exp(key).
            # Without keys, any noise will do.
            if keys is None:
                drawn = random.uniform(size=inside.shape)
            else:
                drawn = np.log(random.exponential(size=inside.shape)) - keys[inside]
            best = np.argsort(drawn, axis=1)[:, :n]
            shown[offsets[part][:, None] + np.arange(n)] = order[
                np.take_along_axis(inside, best, axis=1)
            ]
    return shown
