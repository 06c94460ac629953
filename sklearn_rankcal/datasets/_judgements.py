"""Generators of judgements with known scores: preferences, comparisons and votes.

A judge compares r items, either pair by pair or by ordering them. Arrays have one entry for each of
n cases, and every case has its own r items. ``above[n, i, j]`` is True if the judge puts item i
above item j. P(i above j) is the probability of this event.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.utils import Bunch, check_random_state

from sklearn_rankcal.labels import preference_labels
from sklearn_rankcal.queries import Queries, sizes_to_groups
from sklearn_rankcal.queries._ranking import check_scores
from sklearn_rankcal.utils._messages import check_choice, check_count, check_number
from sklearn_rankcal.utils._numbers import Bools, Floats, Ints, check_range

KINDS = ("btl", "plackett_luce", "mallows", "cyclic")
_INFORMATIVE = 6  # number of leading features that determine the score


def make_preferences(
    n_queries: int = 100,
    n_documents: int | Sequence[int] = (5, 15),
    n_features: int = 10,
    *,
    kind: str = "btl",
    n_judgements: int = 1,
    judged: float = 1.0,
    noise: float = 0.5,
    random_state: Any = None,
) -> Bunch:
    """Generate preferences between the documents of queries, with a known best ranking.

    The Bayes ranking is the best ranking for pairwise disagreement. For three of the four kinds of
    judgements, it sorts by a score s, a nonlinear function of the first six features. For
    ``kind="cyclic"``, no score is sufficient, because preferences go around a circle.

    Parameters
    ----------
    n_queries : int, default=100
        Number of queries.
    n_documents : int or (int, int), default=(5, 15)
        Number of documents per query, at least 2, or an inclusive range to sample it from.
    n_features : int, default=10
        Number of features; at least 2 for ``"cyclic"``.
    kind : {"btl", "plackett_luce", "mallows", "cyclic"}, default="btl"
        How to sample a judgement of a query:

        - ``"btl"``: comparisons of all pairs (Bradley, Terry, Luce). Document i is preferred to j
          with probability 1 / (1 + exp(-(s_i - s_j) / noise)).
        - ``"plackett_luce"``: an order, chosen from the top with odds exp(s / noise).
        - ``"mallows"``: an order, with probability proportional to exp(-d / noise), where d is the
          number of pairs in which it contradicts the order by s (Mallows, 1957).
        - ``"cyclic"``: comparisons of all pairs. Document i is preferred to j with probability
          (1 + a sin(angle_i - angle_j)) / 2, where a = tanh(1 / (2 noise)). The first two features
          are the cosine and the sine of the angle.
    n_judgements : int, default=1
        Number of judgements of each query.
    judged : float, default=1.0
        Probability, in (0, 1], that a judgement contains a pair.
    noise : float, default=0.5
        Noise of the judgements, > 0. With little noise, judgements nearly agree.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers.

    Returns
    -------
    data : Bunch
        Dictionary-like object, with the following attributes.

        - ``X``, of shape (n_documents, n_features): the features.
        - ``y``, of shape (n_documents,): the structured array of `preference_labels`, made from
          ``pairs``, of shape (n_pairs, 2), and ``judgement``, of shape (n_pairs,).
        - ``groups``, of shape (n_documents,): the query ids.
        - ``probabilities``: a list with one array of shape (r, r) per query, P(i preferred to j), 0
          on the diagonal. Documents are numbered in the order of the rows of the query.
        - ``latent``, of shape (n_documents,): the score s, or the angle for ``"cyclic"``.
        - ``bayes_ranks``, of shape (n_documents,): positions of the Bayes ranking.
        - ``bayes_pd``: the expected share of preferences that the Bayes ranking contradicts,
          averaged over queries. No ranker achieves less in expectation.

    Notes
    -----
    The Bayes ranking of ``"cyclic"`` has a closed form. It goes clockwise around the circle, and
    starts opposite to the sum of the unit vectors of the documents. Proof: a sum of cross products
    of these vectors is minus twice the area of a polygon with these sides, and the convex clockwise
    order has the largest sum.

    Examples
    --------
    >>> from sklearn_rankcal.datasets import make_preferences
    >>> data = make_preferences(50, 4, 3, random_state=0)
    >>> data.X.shape, len(data.pairs), data.probabilities[0].shape
    ((200, 3), 300, (4, 4))

    With cyclic preferences, even the best ranking contradicts many preferences, also without noise:

    >>> data = make_preferences(50, 9, 2, kind="cyclic", noise=0.01, random_state=0)
    >>> 0.1 < data.bayes_pd < 0.4
    True
    """
    check_choice(kind, "kind", KINDS)
    check_count(n_queries, "n_queries")
    check_count(n_features, "n_features", least=2 if kind == "cyclic" else 1)
    check_count(n_judgements, "n_judgements")
    check_number(noise, "noise")
    check_number(judged, "judged", "(0, 1]")
    # Step 1: sample the sizes of the queries and the features, and compute the scores or angles.
    random = check_random_state(random_state)
    groups = draw_groups(n_queries, n_documents, 2, random)
    queries = Queries.from_groups(groups)
    X = random.normal(size=(len(groups), n_features))
    if kind == "cyclic":
        latent = random.uniform(0, 2 * np.pi, size=len(X))
        X[:, 0], X[:, 1] = np.cos(latent), np.sin(latent)
    else:
        informative = X[:, :_INFORMATIVE]
        m = informative.shape[1]
        weights = np.linspace(1.5, 0.5, m) / np.sqrt(m)
        latent = nonlinear_scores(informative, weights)
    probabilities: list[Floats] = [np.empty(0)] * n_queries
    bayes_ranks = np.empty(len(groups), dtype=np.int64)
    shares = np.empty(n_queries)
    pairs, judgement = [], []
    # Step 2: compute the Bayes rankings and sample judgements, for all queries of one size at once.
    for r in np.unique(queries.sizes):
        member = np.flatnonzero(queries.sizes == r)
        rows = queries.offsets[member][:, None] + np.arange(r)
        chance, ranks = _expected(kind, latent[rows], noise)
        bayes_ranks[rows] = ranks
        shares[member] = contradicted(chance, ranks)
        for q, matrix in zip(member.tolist(), chance, strict=True):
            probabilities[q] = matrix
        for judge in range(n_judgements):
            above = _draw(kind, latent[rows], chance, noise, random)
            if judged < 1:
                # Sample once for each pair i < j, and keep or drop both directions of the pair.
                kept = np.triu(random.uniform(size=above.shape) < judged, 1)
                above &= kept | kept.transpose(0, 2, 1)
            m, i, j = np.nonzero(above)
            pairs.append(np.column_stack([rows[m, i], rows[m, j]]))
            judgement.append(np.full(len(m), judge))
    stacked, numbers = np.concatenate(pairs), np.concatenate(judgement)
    if len(stacked) == 0:
        raise ValueError(f"No pair was sampled. Increase judged={judged!r} or n_queries.")
    return Bunch(
        X=X,
        y=preference_labels(stacked, groups, judgement=numbers),
        pairs=stacked,
        judgement=numbers,
        groups=groups,
        probabilities=probabilities,
        latent=latent,
        bayes_ranks=bayes_ranks,
        bayes_pd=float(shares.mean()),
        DESCR=f"Preferences of kind {kind!r}; see make_preferences.",
    )


def _expected(kind: str, latent: Floats, noise: float) -> tuple[Floats, Ints]:
    """Return P(i preferred to j) in queries of one size, and their Bayes ranks.

    Sorting by s is optimal if P(i preferred to j) > 1/2 is equivalent to s_i > s_j: it then
    contradicts the less probable preference of every pair.
    """
    if kind == "cyclic":
        net = amplitude(noise) * np.sin(latent[:, :, None] - latent[:, None, :])
        return without_diagonal((1.0 + net) / 2.0), _clockwise(latent)
    return probabilities_of(kind, latent, noise), ranks_of_scores(latent)


def _clockwise(angle: Floats) -> Ints:
    """Rank by decreasing angle, starting opposite to the mean vector."""
    start = np.arctan2(np.sin(angle).sum(axis=1), np.cos(angle).sum(axis=1)) + np.pi
    return ranks_of_scores(-((start[:, None] - angle) % (2 * np.pi)))


def _draw(
    kind: str, latent: Floats, chance: Floats, noise: float, random: np.random.RandomState
) -> Bools:
    """Sample one judgement of each query. All queries have the same size."""
    if kind in ("btl", "cyclic"):
        return draw_pairs(chance, random)
    ranks = draw_order(kind, latent, noise, random)
    return ranks[:, :, None] < ranks[:, None, :]


def make_comparisons(
    relevance: ArrayLike,
    groups: ArrayLike,
    n_comparisons: int,
    *,
    noise: float = 1.0,
    random_state: Any = None,
) -> Bunch:
    """Generate comparisons of two documents from graded relevance.

    Duchi, Mackey and Jordan (2013) generate partial preferences with a known distribution in this
    way. Each comparison samples a query and two different documents of the query, with equal
    probabilities. In the model of Bradley, Terry and Luce, document i is preferred to document j
    with probability 1 / (1 + exp(-(r_i - r_j) / noise)), where r is the relevance.

    Parameters
    ----------
    relevance : array-like of shape (n_documents,)
        Finite relevance of each row.
    groups : array-like of shape (n_documents,)
        Query id of each row, in any order. Queries with one document are never sampled.
    n_comparisons : int
        Number of comparisons, at least 1.
    noise : float, default=1.0
        Noise of the comparisons, > 0. With much noise, comparisons are like coin tosses.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers.

    Returns
    -------
    data : Bunch
        Dictionary-like object, with the following attributes.

        - ``y``, of shape (n_documents,): the structured array of
          ``preference_labels(pairs, groups)``. Each pair is a separate judgement.
        - ``pairs``, of shape (n_comparisons, 2): the rows of the preferred and the other document
          of each comparison.
        - ``groups``, of shape (n_documents,): the query ids.
        - ``scores``, of shape (n_documents,): the limit of the log-odds of the comparisons, the
          mean of (r_i - r_j) / noise over all other documents j of the query. The only document of
          a query has the score 0.

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
    values = check_scores(relevance, None, "relevance").astype(np.float64)
    check_range(values, "relevance")
    queries = Queries.from_groups(groups, len(values))
    check_count(n_comparisons, "n_comparisons")
    check_number(noise, "noise")
    check_range(np.array([noise]), "noise")
    several = np.flatnonzero(queries.sizes > 1)
    if len(several) == 0:
        raise ValueError("No query has two documents to compare.")
    # Step 1: compute the asymptotic scores. In a query with m documents, the mean of r_i - r_j over
    # j != i is m / (m - 1) times the difference from the mean of the query.
    factor = queries.broadcast(queries.sizes / np.maximum(queries.sizes - 1, 1))
    scores = factor * (queries.center(values) / noise)
    # Step 2: sample the query of each comparison, and two different places. The second place is one
    # of the size - 1 remaining places: numbers >= first are shifted by 1.
    random = check_random_state(random_state)
    query = several[random.randint(len(several), size=n_comparisons)]
    size = queries.sizes[query]
    first = random.randint(size)
    second = random.randint(size - 1)
    row = np.arange(queries.n_rows) if queries.order is None else queries.order
    start = queries.offsets[query]
    one, other = row[start + first], row[start + second + (second >= first)]
    # Step 3: sample the preferred document, equation (26).
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


# ---------------------------------------------------------------- votes between models


_START = np.datetime64("2026-01-01T00:00:00")
_DAYS = 90
_LENGTH = 300.0  # words of a typical answer
_COLUMNS = (
    "model_a", "model_b", "winner", "judge", "category", "length_a", "length_b", "time",
)  # fmt: skip


def make_arena(
    n_votes: int = 5000,
    *,
    n_models: int = 10,
    n_judges: int = 50,
    n_categories: int = 4,
    category_spread: float = 0.3,
    taste: float = 0.0,
    drift: float = 0.0,
    position: float = 0.2,
    length: float = 0.4,
    ties: float = 0.3,
    random_state: Any = None,
) -> Bunch:
    """Generate votes between models with known strengths.

    In each vote, a judge compares the answers of two different models to a question from one
    category. The strengths of the models depend on the category, the time and the judge. The *lead*
    of the first model is the difference of the strengths, plus `position`, plus `length` times the
    logarithm of the ratio of the lengths. Let e be logistic noise. The vote is a tie if lead + e is
    between -`ties` and `ties`. Otherwise, the first model wins if lead + e > 0. This is the model
    of Rao and Kupper (1967).

    Parameters
    ----------
    n_votes : int, default=5000
        Number of votes.
    n_models : int, default=10
        Number of models, at least 2.
    n_judges : int, default=50
        Number of judges.
    n_categories : int, default=4
        Number of categories. The number of votes in the k-th category is proportional to 1 / k.
    category_spread : float, default=0.3
        Standard deviation, over categories, of the difference between the strength of a model in a
        category and its overall strength.
    taste : float, default=0
        Standard deviation, over judges, of the difference between the strength of a model for a
        judge and its overall strength. Above 0, the votes of a judge are dependent, and leads
        averaged over judges are closer to 0.
    drift : float, default=0
        Standard deviation of the change in strength of a model from the first to the last day.
    position : float, default=0.2
        Advantage of the first answer.
    length : float, default=0.4
        Advantage of an answer that is e times as long. Each model has its own typical length.
    ties : float, default=0.3
        Largest absolute noisy lead of a tie. With 0, there are no ties.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers.

    Returns
    -------
    data : Bunch
        Dictionary-like object, with the following attributes.

        - ``model_a``, ``model_b``, of shape (n_votes,): the names of the first and second model.
        - ``winner``, of shape (n_votes,): ``"model_a"``, ``"model_b"`` or ``"tie"``.
        - ``judge``, ``category``, ``time``, of shape (n_votes,): the number of the judge, the name
          of the category, and an ascending NumPy time stamp within 90 days.
        - ``length_a``, ``length_b``, of shape (n_votes,): the lengths of the answers in words.
        - ``frame``: a pandas data frame with these columns, or None if pandas is not installed.
        - ``log_length``, of shape (n_votes, 1): log(length_a / length_b), a covariate for
          `Judgements.from_votes`.
        - ``models``, of shape (n_models,): the names of the models.
        - ``categories``, of shape (n_categories,): the names of the categories.
        - ``scores``, of shape (n_models,): the overall strengths, with sum 0.
        - ``category_scores``, of shape (n_categories, n_models): the strengths in each category in
          the middle of the 90 days. Each row has sum 0.
        - ``trends``, of shape (n_models,): the change of each strength in 90 days, with sum 0.
        - ``probabilities``, of shape (n_votes, 3): the probabilities of the outcomes
          ``"model_a"``, ``"model_b"`` and ``"tie"``.

    References
    ----------
    Rao and Kupper (1967), Ties in paired-comparison experiments, JASA 62, equation (2.6).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal import Judgements, aggregate
    >>> from sklearn_rankcal.datasets import make_arena
    >>> data = make_arena(20000, category_spread=0, random_state=0)
    >>> votes = Judgements.from_votes(
    ...     data.model_a, data.model_b, data.winner, position=True, covariates=data.log_length
    ... )
    >>> board = aggregate(votes)
    >>> found = dict(zip(board.items.tolist(), board.scores.tolist()))
    >>> errors = [found[name] - score for name, score in zip(data.models, data.scores)]
    >>> bool(np.abs(errors).max() < 0.2)  # ties count as half a vote, which shrinks the scores
    True
    """
    check_count(n_votes, "n_votes")
    check_count(n_models, "n_models", least=2)
    check_count(n_judges, "n_judges")
    check_count(n_categories, "n_categories")
    check_number(category_spread, "category_spread", "[0, inf)")
    check_number(taste, "taste", "[0, inf)")
    check_number(drift, "drift", "[0, inf)")
    check_number(position, "position", "(-inf, inf)")
    check_number(length, "length", "(-inf, inf)")
    check_number(ties, "ties", "[0, inf)")
    random = check_random_state(random_state)

    # Step 1: sample the true strengths.
    scores = _centred(random.normal(size=n_models))
    in_category = category_spread * random.normal(size=(n_categories, n_models))
    category_scores = _centred(scores + in_category)
    trends = _centred(drift * random.normal(size=n_models))
    tastes = taste * random.normal(size=(n_judges, n_models))
    typical = np.log(_LENGTH) + 0.3 * random.normal(size=n_models)

    # Step 2: sample models, judges, categories and times. The second model is one of the remaining
    # n_models - 1: numbers >= first are shifted by 1.
    first = random.randint(n_models, size=n_votes)
    second = random.randint(n_models - 1, size=n_votes)
    second += second >= first
    judge = random.randint(n_judges, size=n_votes)
    share = 1.0 / np.arange(1, n_categories + 1)
    category = random.choice(n_categories, size=n_votes, p=share / share.sum())
    day = np.sort(random.uniform(size=n_votes))
    time = _START + (day * _DAYS * 86400).astype("timedelta64[s]")
    words = np.exp(typical[[first, second]] + 0.5 * random.normal(size=(2, n_votes)))
    words = np.maximum(np.rint(words), 1.0)
    log_length = np.log(words[0] / words[1])

    # Step 3: sample the votes.
    strength = category_scores[category, [first, second]] + tastes[judge, [first, second]]
    strength += trends[[first, second]] * (day - 0.5)
    lead = strength[0] - strength[1] + position + length * log_length
    probabilities = np.array([expit(lead - ties), expit(-lead - ties), np.zeros(n_votes)])
    probabilities[2] = np.maximum(1.0 - probabilities.sum(axis=0), 0.0)
    noisy = lead + random.logistic(size=n_votes)
    outcome = np.select([np.abs(noisy) < ties, noisy > 0], ["tie", "model_a"], "model_b")

    models = np.array([f"m{k:0{len(str(n_models - 1))}d}" for k in range(n_models)])
    categories = np.array([f"c{k:0{len(str(n_categories - 1))}d}" for k in range(n_categories)])
    columns = (
        models[first], models[second], outcome, judge, categories[category],
        words[0].astype(np.int64), words[1].astype(np.int64), time,
    )  # fmt: skip
    votes = dict(zip(_COLUMNS, columns, strict=True))
    return Bunch(
        **votes,
        frame=_frame(votes),
        log_length=log_length[:, None],
        models=models,
        categories=categories,
        scores=scores,
        category_scores=category_scores,
        trends=trends,
        probabilities=probabilities.T,
        DESCR="Votes between models; see make_arena.",
    )


def _centred(values: Any) -> Any:
    return values - values.mean(axis=-1, keepdims=True)


def _frame(votes: dict[str, Any]) -> Any:
    """Return a pandas data frame, or None if pandas is not installed."""
    try:
        import pandas as pd
    except ImportError:
        return None
    return pd.DataFrame(votes)


# ---------------------------------------------------------------- judges


def draw_groups(n_queries: int, n_documents: Any, least: int, random: Any) -> Ints:
    """Sample the sizes of queries (fixed or from an inclusive range), and return the query ids."""
    low, high = (n_documents, n_documents) if isinstance(n_documents, int) else tuple(n_documents)
    check_count(low, "n_documents", least=least)
    if high < low:
        raise ValueError(f"n_documents must be a range (low, high); got {n_documents!r}.")
    sizes = random.randint(low, high + 1, size=n_queries)
    return sizes_to_groups(sizes, n_rows=int(sizes.sum()))


def nonlinear_scores(X: Floats, weights: Floats) -> Floats:
    """Compute a nonlinear function of all features with standard deviation about 1."""
    return np.tanh(X) @ weights + 0.5 * np.sin(X @ weights[::-1])


def ranks_of_scores(scores: Floats) -> Ints:
    """Return the position of each score in its row, 1 = largest."""
    return np.argsort(np.argsort(-scores, axis=1, kind="stable"), axis=1) + 1


def without_diagonal(probabilities: Floats) -> Floats:
    """Set P(i above i) to 0 in place, and return the array."""
    r = probabilities.shape[-1]
    probabilities[:, np.arange(r), np.arange(r)] = 0.0
    return probabilities


def probabilities_of(kind: str, scores: Floats, noise: float) -> Floats:
    """Return P(i above j) for a kind of judges with the given scores.

    The Plackett-Luce model of orders has the pairwise probabilities of Bradley, Terry and Luce.
    """
    if kind == "mallows":
        return mallows_probabilities(ranks_of_scores(scores), noise)
    return without_diagonal(expit((scores[:, :, None] - scores[:, None, :]) / noise))


def draw_order(kind: str, scores: Floats, noise: float, random: np.random.RandomState) -> Ints:
    """Sample ranks from the Mallows model or the Plackett-Luce model."""
    if kind == "mallows":
        return draw_mallows(ranks_of_scores(scores), noise, random)
    return draw_plackett_luce(scores, noise, random)


def mallows_probabilities(ranks: Ints, noise: float) -> Floats:
    """Return P(i above j) in the Mallows model with the central order `ranks`.

    If i is k > 0 places before j in the central order, the probability is h(k + 1) - h(k), where
    h(k) = k / (1 - phi^k) and phi = exp(-1 / noise).
    """
    k = np.arange(1, ranks.shape[1] + 1)
    h = k / -np.expm1(-k / noise)
    ahead = np.append(0.5, np.diff(h))  # P(i above j) for k = 0, 1, 2, ...
    distance = ranks[:, None, :] - ranks[:, :, None]
    better = ahead[np.abs(distance)]
    return without_diagonal(np.where(distance > 0, better, 1.0 - better))


def amplitude(noise: float) -> float:
    """Return the factor that noise multiplies a net preference by, from 1 (no noise) to 0."""
    return float(np.tanh(0.5 / noise))


def draw_pairs(probabilities: Floats, random: np.random.RandomState) -> Bools:
    """Sample every pair independently, which often gives cycles."""
    r = probabilities.shape[-1]
    above = random.uniform(size=probabilities.shape) < probabilities
    i, j = np.triu_indices(r, 1)
    above[:, j, i] = ~above[:, i, j]
    above[:, np.arange(r), np.arange(r)] = False
    return above


def draw_plackett_luce(scores: Floats, noise: float, random: np.random.RandomState) -> Ints:
    """Sample ranks by choosing items from the top with odds exp(s / noise) (Gumbel noise)."""
    return ranks_of_scores(scores / noise + random.gumbel(size=scores.shape))


def draw_mallows(centre: Ints, noise: float, random: np.random.RandomState) -> Ints:
    """Sample ranks with probability proportional to exp(-d / noise).

    Here d is the number of pairs that the ranks and the central order put in different orders. The
    algorithm is repeated insertion: the item at place i of the central order is inserted v places
    above the end of the list, with odds exp(-v / noise). The cost is O(n r^2).
    """
    n, r = centre.shape
    places = np.zeros((n, r), dtype=np.int64)  # the places of the items, in central order
    for i in range(1, r):
        # Sample v from a geometric distribution truncated to 0 .. i, by inverting its distribution
        # function.
        uniform = random.uniform(size=n)
        moved = np.floor(-noise * np.log1p(uniform * np.expm1(-(i + 1) / noise)))
        at = i - np.clip(moved, 0, i).astype(np.int64)
        # The items at or below the place of the new item move down by one place.
        places[:, :i] += places[:, :i] >= at[:, None]
        places[:, i] = at
    return np.take_along_axis(places, centre - 1, axis=1) + 1


def contradicted(probabilities: Floats, ranks: Ints) -> Floats:
    """Return the expected share of pairs, shape (n,), in which a judgement contradicts `ranks`."""
    r = ranks.shape[1]
    below = ranks[:, :, None] > ranks[:, None, :]
    return (probabilities * below).sum(axis=(1, 2)) / (r * (r - 1) / 2)
