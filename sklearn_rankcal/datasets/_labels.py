"""Generators of labels with a known best ranking: relevance, clicks and label rankings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.naive_bayes import GaussianNB
from sklearn.utils import Bunch, check_random_state

from sklearn_rankcal.clicks import click_labels
from sklearn_rankcal.clicks._clicks import check_propensities
from sklearn_rankcal.datasets import _judgements
from sklearn_rankcal.datasets._judgements import ranks_of_scores
from sklearn_rankcal.decoders import decode_preferences
from sklearn_rankcal.labels._labels import check_relevance
from sklearn_rankcal.losses import Measure, get_measure
from sklearn_rankcal.losses._registry import settable_parameters
from sklearn_rankcal.queries import Queries, Ranking, mean_over_queries
from sklearn_rankcal.utils._memory import rows_per_block
from sklearn_rankcal.utils._messages import check_choice, check_count, check_number, counted
from sklearn_rankcal.utils._numbers import Floats, Ints


def make_ranking(
    n_queries: int = 100,
    n_documents: int | Sequence[int] = (10, 30),
    n_features: int = 20,
    *,
    n_informative: int = 6,
    n_levels: int = 5,
    noise: float = 0.5,
    query_effect: float = 1.0,
    metric: str | Measure = "ndcg@10",
    random_state: Any = None,
) -> Bunch:
    """Generate queries with graded relevance and a known best ranking.

    The features of a document are the sum of its own features and a shift that is common to its
    query, as in real data. The grades follow an ordered logit model, P(y >= g) =
    1 / (1 + exp(-(s + offset - cut_g) / noise)). The score s is a nonlinear function of the
    document's own features, and each query has its own offset.

    The Bayes ranking sorts by s. It is optimal for every measure of this package, because a larger
    s makes grades larger in the likelihood ratio order. A ranker only sees the shifted features.

    Parameters
    ----------
    n_queries : int, default=100
        Number of queries.
    n_documents : int or (int, int), default=(10, 30)
        Number of documents per query, or an inclusive range to sample it from.
    n_features : int, default=20
        Number of features.
    n_informative : int, default=6
        Number of leading features that determine s.
    n_levels : int, default=5
        Number of grades, 0 to n_levels - 1.
    noise : float, default=0.5
        Scale of the logit, > 0. With little noise, grades follow s closely.
    query_effect : float, default=1.0
        Standard deviation of the shifts of the queries. The offsets have half this standard
        deviation.
    metric : str or Measure, default="ndcg@10"
        The metric of ``bayes_score``.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers.

    Returns
    -------
    data : Bunch
        Dictionary-like object, with the following attributes.

        - ``X``, of shape (n_documents, n_features): the features.
        - ``y``, of shape (n_documents,): the grades, as integers.
        - ``groups``, of shape (n_documents,): the query ids.
        - ``latent``, of shape (n_documents,): the scores s.
        - ``probabilities``, of shape (n_documents, n_levels): the probability of each grade.
        - ``bayes_ranks``, of shape (n_documents,): positions of the Bayes ranking.
        - ``bayes_score``: the mean `metric` of the Bayes ranking on the generated grades. No ranker
          achieves more in expectation.

    Examples
    --------
    >>> from sklearn_rankcal.datasets import make_ranking
    >>> data = make_ranking(n_queries=50, n_documents=10, random_state=0)
    >>> data.X.shape, sorted(set(data.y.tolist()))
    ((500, 20), [0, 1, 2, 3, 4])
    """
    check_count(n_queries, "n_queries")
    check_count(n_features, "n_features")
    check_count(n_informative, "n_informative")
    check_count(n_levels, "n_levels", least=2)
    check_number(noise, "noise")
    if n_informative > n_features:
        raise ValueError(f"n_informative={n_informative} exceeds n_features={n_features}.")
    # Step 1: sample the own features of the documents, and add the shifts of the queries.
    random = check_random_state(random_state)
    groups = _judgements.draw_groups(n_queries, n_documents, 1, random)
    n_rows = len(groups)
    own = random.normal(size=(n_rows, n_features))
    X = own + query_effect * random.normal(size=(n_queries, n_features))[groups]
    # Step 2: compute the scores s from the own features, and sample the offsets of the queries.
    weights = random.uniform(0.5, 1.5, size=n_informative) / np.sqrt(n_informative)
    latent = _judgements.nonlinear_scores(own[:, :n_informative], weights)
    offset = 0.5 * query_effect * random.normal(size=n_queries)[groups]
    # Step 3: sample the grades. The cuts are quantiles of s. About half of the documents have grade
    # 0, and all other grades are about equally frequent.
    cuts = np.quantile(latent, 0.5 + 0.5 * np.arange(n_levels - 1) / (n_levels - 1))
    at_least = expit((latent[:, None] + offset[:, None] - cuts) / noise)
    bounds = np.column_stack([np.ones(n_rows), at_least, np.zeros(n_rows)])
    y = (random.uniform(size=(n_rows, 1)) < at_least).sum(axis=1)
    # Step 4: rank by s, and evaluate this ranking. For metrics of binary relevance, grades in the
    # upper half are relevant.
    queries = Queries.from_groups(groups)
    bayes_ranks = queries.rank(queries.sort(latent))
    binary = "threshold" in settable_parameters(metric)
    threshold: dict[str, Any] = {"threshold": (n_levels - 1) / 2} if binary else {}
    measure, grades = get_measure(metric, **threshold), y.astype(np.float64)
    measure.check(grades)
    values = measure.per_query(Ranking.from_ranks(bayes_ranks, queries), grades)
    return Bunch(
        X=X,
        y=y,
        groups=groups,
        latent=latent,
        probabilities=bounds[:, :-1] - bounds[:, 1:],
        bayes_ranks=bayes_ranks,
        bayes_score=mean_over_queries(values, queries, None, str(metric)),
        DESCR="Graded relevance from an ordered logit; see make_ranking.",
    )


# ---------------------------------------------------------------- clicks


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


# ---------------------------------------------------------------- label rankings


KINDS = ("mallows", "plackett_luce", "btl", "cyclic")
_HIDDEN = 8  # number of directions of X that determine the scores of the labels


def make_label_ranking(
    n_samples: int = 500,
    n_labels: int = 5,
    n_features: int = 6,
    *,
    kind: str = "mallows",
    noise: float = 0.5,
    missing: float = 0.0,
    random_state: Any = None,
) -> Bunch:
    """Generate rankings of a fixed set of labels, with a known best ranking for every sample.

    Each label has a score s, a smooth nonlinear function of the features. The Bayes ranking is the
    best ranking for Kendall's tau. For three of the four kinds of judgements, it sorts by s. For
    ``kind="cyclic"``, the expected preferences are cyclic, although every judgement is an order.

    Parameters
    ----------
    n_samples : int, default=500
        Number of samples.
    n_labels : int, default=5
        Number of labels to rank, r >= 2.
    n_features : int, default=6
        Number of features.
    kind : {"mallows", "plackett_luce", "btl", "cyclic"}, default="mallows"
        How to sample the judgement of a sample:

        - ``"mallows"`` and ``"plackett_luce"``: an order, as in `make_preferences`.
        - ``"btl"``: comparisons of all pairs, as in `make_preferences`. Y contains preference
          weights.
        - ``"cyclic"``: an order around a circle, from a random start (Condorcet's paradox). The
          labels have equal distances on the circle, shifted by s. With probability
          1 - tanh(1 / (2 noise)), the order is uniformly random instead.
    noise : float, default=0.5
        Noise of the judgements, > 0. With little noise, judgements nearly agree.
    missing : float, default=0.0
        Probability, in [0, 1), that a label of a sample is not judged.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers.

    Returns
    -------
    data : Bunch
        Dictionary-like object, with the following attributes.

        - ``X``, of shape (n_samples, n_features): the features.
        - ``Y``, of shape (n_samples, r): ranks among the judged labels, 1 = best, and NaN for
          labels that were not judged. For ``"btl"``, ``Y`` has shape (n_samples, r, r) and contains
          the preference weights 0 and 1.
        - ``probabilities``, of shape (n_samples, r, r): P(i preferred to j) if both are judged, 0
          on the diagonal.
        - ``latent``, of shape (n_samples, r): the scores s.
        - ``bayes_ranks``, of shape (n_samples, r): ranks of the Bayes ranking.
        - ``bayes_optimal``, of shape (n_samples,): whether the Bayes ranking is proved optimal.
        - ``bayes_pd``: the expected share of pairs that the Bayes ranking contradicts, averaged
          over samples. The best expected Kendall's tau is 1 - 2 bayes_pd.

    Examples
    --------
    >>> from sklearn_rankcal.datasets import make_label_ranking
    >>> data = make_label_ranking(200, 4, noise=0.1, random_state=0)
    >>> data.Y.shape, float((data.Y == data.bayes_ranks).all(axis=1).mean()) > 0.99
    ((200, 4), True)
    """
    check_choice(kind, "kind", KINDS)
    check_count(n_samples, "n_samples")
    check_count(n_labels, "n_labels", least=2)
    check_count(n_features, "n_features")
    check_number(noise, "noise")
    check_number(missing, "missing", "[0, 1)")
    # Step 1: sample the features, and compute the scores by a network with one hidden layer.
    random = check_random_state(random_state)
    X = random.normal(size=(n_samples, n_features))
    inward = random.normal(size=(n_features, _HIDDEN)) * 1.5 / np.sqrt(n_features)
    latent = np.tanh(X @ inward) @ random.normal(size=(_HIDDEN, n_labels)) / np.sqrt(_HIDDEN / 2)
    bayes_ranks = ranks_of_scores(latent)
    bayes_optimal = np.ones(n_samples, dtype=bool)
    unjudged = random.uniform(size=latent.shape) < missing
    # Step 2: compute the probabilities, and sample a judgement for each sample.
    if kind == "cyclic":
        # the angles of the labels on the circle, divided by 2 pi
        turn = latent / (2 * n_labels) + np.arange(n_labels) / n_labels
        probabilities = _circle_probabilities(turn, noise)
    else:
        probabilities = _judgements.probabilities_of(kind, latent, noise)
    if kind == "btl":
        Y = _judgements.draw_pairs(probabilities, random).astype(np.float64)
        Y[unjudged[:, :, None] | unjudged[:, None, :]] = 0.0
    else:
        if kind == "cyclic":
            ranks = _draw_circle(turn, noise, random)
            result = decode_preferences(probabilities)
            bayes_ranks, bayes_optimal = np.asarray(result.ranks), np.asarray(result.optimal)
        else:
            ranks = _judgements.draw_order(kind, latent, noise, random)
        # unjudged labels come after all judged ones, before they become NaN
        Y = np.where(unjudged, np.nan, ranks_of_scores(-(ranks + n_labels * unjudged)))
    return Bunch(
        X=X,
        Y=Y,
        probabilities=probabilities,
        latent=latent,
        bayes_ranks=bayes_ranks,
        bayes_optimal=bayes_optimal,
        bayes_pd=float(_judgements.contradicted(probabilities, bayes_ranks).mean()),
        DESCR=f"Rankings of {n_labels} labels of kind {kind!r}; see make_label_ranking.",
    )


def label_ranking_from_classes(X: ArrayLike, y: ArrayLike) -> Ints:
    """Convert classification data to label rankings: rank the classes by naive Bayes.

    The usual benchmarks of label ranking were made in this way [1]_, by a Gaussian naive Bayes
    classifier fitted to all data. The function reproduces 98 % of their rankings for iris, and 99 %
    for wine.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Features without NaN.
    y : array-like of shape (n_samples,)
        Classes, at least 2.

    Returns
    -------
    Y : ndarray of shape (n_samples, n_classes)
        Rank of each class (int64, 1 = most probable), in the order of ``numpy.unique(y)``.

    References
    ----------
    .. [1] W. Cheng, J. Hühn, E. Hüllermeier: Decision tree and instance-based learning for label
       ranking. ICML 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn_rankcal.datasets import label_ranking_from_classes
    >>> X, y = load_iris(return_X_y=True)
    >>> label_ranking_from_classes(X, y)[[0, 79, 100]].tolist()
    [[1, 2, 3], [2, 1, 3], [2, 3, 1]]
    """
    model = GaussianNB().fit(X, y)
    if len(model.classes_) < 2:
        raise ValueError("y has only one class. At least two classes are needed.")
    # three decimals agree best with the benchmark, where improbable classes are tied at 0
    return ranks_of_scores(model.predict_proba(X).round(3))


def _circle_probabilities(turn: Floats, noise: float) -> Floats:
    """Return P(i above j): j comes first if the random start is in the arc from i to j."""
    arc = (turn[:, None, :] - turn[:, :, None]) % 1.0
    net = _judgements.amplitude(noise) * (1.0 - 2.0 * arc)
    return _judgements.without_diagonal((1.0 + net) / 2.0)


def _draw_circle(turn: Floats, noise: float, random: np.random.RandomState) -> Ints:
    """Sample ranks around the circle from a random start, or ranks of a uniformly random order."""
    start = random.uniform(size=(len(turn), 1))
    any_order = random.uniform(size=turn.shape)
    around = random.uniform(size=(len(turn), 1)) < _judgements.amplitude(noise)
    return ranks_of_scores(-np.where(around, (turn - start) % 1.0, any_order))
