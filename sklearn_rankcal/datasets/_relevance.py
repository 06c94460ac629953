"""A generator of graded relevance with a known best ranking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.utils import Bunch, check_random_state

from sklearn_rankcal.datasets import _judges
from sklearn_rankcal.losses._registry import find_measure, get_measure, parameters_of
from sklearn_rankcal.queries import Queries, Ranking, mean_over_queries
from sklearn_rankcal.utils._parameters import check_count, check_number


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
    metric : str, default="ndcg@10"
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

    Raises
    ------
    ValueError
        If a number is out of range or `metric` is unknown.

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
    groups = _judges.draw_groups(n_queries, n_documents, 1, random)
    n_rows = len(groups)
    own = random.normal(size=(n_rows, n_features))
    X = own + query_effect * random.normal(size=(n_queries, n_features))[groups]
    # Step 2: compute the scores s from the own features, and sample the offsets of the queries.
    weights = random.uniform(0.5, 1.5, size=n_informative) / np.sqrt(n_informative)
    latent = _judges.nonlinear_scores(own[:, :n_informative], weights)
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
    binary = "threshold" in parameters_of(find_measure(metric)[0])
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
        bayes_score=mean_over_queries(values, queries, None, metric),
        DESCR="Graded relevance from an ordered logit; see make_ranking.",
    )
