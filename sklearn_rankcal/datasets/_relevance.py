"""Graded relevance: a generator with a known best ranking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.utils import Bunch, check_random_state

from sklearn_rankcal.queries import Queries, sizes_to_groups


def make_ranking(
    n_queries: int = 100,
    n_documents: int | Sequence[int] = (10, 30),
    n_features: int = 20,
    *,
    n_informative: int = 6,
    n_levels: int = 5,
    noise: float = 0.5,
    query_effect: float = 1.0,
    metric: str = "ndcg@10",
    random_state: Any = None,
) -> Bunch:
    """Generate graded relevance whose best possible ranking is known.

    The features of a document are its own plus a shift that all documents of its query share, as
    the scores of one retrieval function run higher for some queries than for others. Its grade
    follows an ordered logit in a nonlinear function s of its own features plus an offset of the
    query: P(y >= g) = 1 / (1 + exp(-(s + offset - cut_g) / noise)). Given s, grades are
    independent, and a larger s makes them larger in the likelihood ratio order. Sorting by s is
    therefore optimal (the Bayes ranking) for every measure that never prefers a lower grade above
    a higher one: NDCG, P@q, ERU, MAP, ERR, pairwise disagreement and the others here. A ranker
    sees the shifted features, so with a large `query_effect` it may need many documents in a query
    to come close.

    Parameters
    ----------
    n_queries : int, default=100
        Number of queries.
    n_documents : int or (int, int), default=(10, 30)
        Documents per query; a pair is an inclusive range to draw from.
    n_features : int, default=20
        Number of features.
    n_informative : int, default=6
        Leading features on which s depends.
    n_levels : int, default=5
        Number of grades, 0 to n_levels - 1.
    noise : float, default=0.5
        Scale of the logit, > 0; small means grades that follow s closely.
    query_effect : float, default=1.0
        Standard deviation of the queries' shifts, and twice that of their offsets: no ranking
        depends on either.
    metric : str, default="ndcg@10"
        Metric of `bayes_score`.
    random_state : int, RandomState instance or None, default=None
        Seed.

    Returns
    -------
    data : Bunch
        ``X`` (n_rows, n_features), ``y`` (n_rows,) int grades, ``groups`` (n_rows,) query ids,
        ``latent`` (n_rows,) s, ``probabilities`` (n_rows, n_levels) of each grade,
        ``bayes_ranks`` (n_rows,) positions of the Bayes ranking, and ``bayes_score``, its mean
        `metric` on the grades drawn: what no ranker beats in expectation.

    Raises
    ------
    ValueError
        Numbers out of range.

    Examples
    --------
    >>> from sklearn_rankcal.datasets import make_ranking
    >>> data = make_ranking(n_queries=50, n_documents=10, random_state=0)
    >>> data.X.shape, sorted(set(data.y.tolist()))
    ((500, 20), [0, 1, 2, 3, 4])
    """
    from sklearn_rankcal.measures import find_measure, parameters_of
    from sklearn_rankcal.metrics import evaluate_rankings  # metrics import the ranker

    low, high = (n_documents, n_documents) if isinstance(n_documents, int) else tuple(n_documents)
    for name, value, least in (
        ("n_queries", n_queries, 1),
        ("n_documents", low, 1),
        ("n_features", n_features, 1),
        ("n_levels", n_levels, 2),
        ("n_informative", n_informative, 1),
    ):
        if value < least:
            raise ValueError(f"{name} must be at least {least}; got {value!r}.")
    if high < low:
        raise ValueError(f"n_documents must be a range (low, high); got {n_documents!r}.")
    if n_informative > n_features:
        raise ValueError(f"n_informative={n_informative} exceeds n_features={n_features}.")
    if not noise > 0:
        raise ValueError(f"noise must be > 0; got {noise!r}.")
    random = check_random_state(random_state)
    sizes = random.randint(low, high + 1, size=n_queries)
    groups = sizes_to_groups(sizes, n_rows=int(sizes.sum()))
    n_rows = len(groups)
    own = random.normal(size=(n_rows, n_features))
    X = own + query_effect * random.normal(size=(n_queries, n_features))[groups]
    weights = random.uniform(0.5, 1.5, size=n_informative) / np.sqrt(n_informative)
    informative = own[:, :n_informative]
    latent = np.tanh(informative) @ weights + 0.5 * np.sin(informative @ weights[::-1])
    offset = 0.5 * query_effect * random.normal(size=n_queries)[groups]
    cuts = np.quantile(latent, 0.5 + 0.5 * np.arange(n_levels - 1) / (n_levels - 1))
    at_least = expit((latent[:, None] + offset[:, None] - cuts) / noise)
    bounds = np.column_stack([np.ones(n_rows), at_least, np.zeros(n_rows)])
    y = (random.uniform(size=(n_rows, 1)) < at_least).sum(axis=1)
    queries = Queries.from_groups(groups)
    bayes_ranks = queries.rank(queries.sort(latent))
    binary = "threshold" in parameters_of(find_measure(metric)[0])
    threshold: dict[str, Any] = {"threshold": (n_levels - 1) / 2} if binary else {}
    score = evaluate_rankings(y, ranks=bayes_ranks, groups=groups, metrics=[metric], **threshold)
    return Bunch(
        X=X,
        y=y,
        groups=groups,
        latent=latent,
        probabilities=bounds[:, :-1] - bounds[:, 1:],
        bayes_ranks=bayes_ranks,
        bayes_score=score[metric],
        DESCR="Graded relevance from an ordered logit; see make_ranking.",
    )
