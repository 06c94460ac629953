"""Generators of preferences between the documents of queries, with a known best ranking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.utils import Bunch, check_random_state

from sklearn_rankcal.datasets import _judges
from sklearn_rankcal.labels import preference_labels
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._numbers import check_range, read_numbers
from sklearn_rankcal.utils._parameters import check_choice, check_count, check_number
from sklearn_rankcal.utils._typing import Bools, Floats, Ints

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

    Raises
    ------
    ValueError
        If a number is out of range, if the kind is unknown, or if no pair was sampled.

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
    groups = _judges.draw_groups(n_queries, n_documents, 2, random)
    queries = Queries.from_groups(groups)
    X = random.normal(size=(len(groups), n_features))
    if kind == "cyclic":
        latent = random.uniform(0, 2 * np.pi, size=len(X))
        X[:, 0], X[:, 1] = np.cos(latent), np.sin(latent)
    else:
        informative = X[:, :_INFORMATIVE]
        m = informative.shape[1]
        weights = np.linspace(1.5, 0.5, m) / np.sqrt(m)
        latent = _judges.nonlinear_scores(informative, weights)
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
        shares[member] = _judges.contradicted(chance, ranks)
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
        net = _judges.amplitude(noise) * np.sin(latent[:, :, None] - latent[:, None, :])
        return _judges.without_diagonal((1.0 + net) / 2.0), _clockwise(latent)
    return _judges.probabilities_of(kind, latent, noise), _judges.ranks_of_scores(latent)


def _clockwise(angle: Floats) -> Ints:
    """Rank by decreasing angle, starting opposite to the mean vector."""
    start = np.arctan2(np.sin(angle).sum(axis=1), np.cos(angle).sum(axis=1)) + np.pi
    return _judges.ranks_of_scores(-((start[:, None] - angle) % (2 * np.pi)))


def _draw(
    kind: str, latent: Floats, chance: Floats, noise: float, random: np.random.RandomState
) -> Bools:
    """Sample one judgement of each query. All queries have the same size."""
    if kind in ("btl", "cyclic"):
        return _judges.draw_pairs(chance, random)
    ranks = _judges.draw_order(kind, latent, noise, random)
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
            f"relevance must be a 1-D array with one number per row; got shape {values.shape}."
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
