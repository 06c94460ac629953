"""Graded relevance: a generator with a known best ranking, and a reader of LETOR files."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.datasets import load_svmlight_files
from sklearn.utils import Bunch, check_random_state

from sklearn_rankcal._queries import Queries, sizes_to_groups


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
    from sklearn_rankcal.metrics import evaluate_rankings  # metrics import the ranker

    low, high = (
        (n_documents, n_documents) if isinstance(n_documents, int) else tuple(n_documents)
    )
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
    groups = sizes_to_groups(sizes)
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
    score = evaluate_rankings(
        y, ranks=bayes_ranks, groups=groups, metrics=[metric], threshold=(n_levels - 1) / 2
    )
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


def load_letor(
    path: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    n_features: int | None = None,
    dtype: Any = np.float32,
) -> Bunch:
    """Read ranking data in the SVMlight format with ``qid:`` (LETOR, MSLR, Yahoo, Istella).

    Parameters
    ----------
    path : path or sequence of paths
        Files, plain, ``.gz`` or ``.bz2``; several are stacked, as the folds of LETOR are.
    n_features : int, default=None
        Number of features; None: the largest index found.
    dtype : dtype, default=numpy.float32
        Of ``X``.

    Returns
    -------
    data : Bunch
        ``X`` (n_rows, n_features) dense, ``y`` (n_rows,) relevance and ``groups`` (n_rows,) query
        ids, for `fit` as they are.

    Raises
    ------
    FileNotFoundError
        No such file.
    ValueError
        A file without ``qid:`` on every line, or that cannot be read as SVMlight, or a qid that
        occurs in several files.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn_rankcal.datasets import load_letor
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "train.txt")
    ...     _ = file.write_text("2 qid:7 1:0.5 2:1 # docid = a\\n0 qid:7 2:0.25\\n")
    ...     data = load_letor(file)
    >>> data.X.tolist(), data.y.tolist(), data.groups.tolist()
    ([[0.5, 1.0], [0.0, 0.25]], [2.0, 0.0], [7, 7])
    """
    paths = [path] if isinstance(path, (str, PathLike)) else list(path)
    if not paths:
        raise ValueError("path names no file.")
    names = [str(p) for p in paths]
    # 1-based features, as in every LETOR file: "auto" would shift a file that uses feature 0
    try:
        parts = load_svmlight_files(
            names, n_features=n_features, dtype=dtype, query_id=True, zero_based=False
        )
    except (ValueError, OverflowError) as error:
        raise ValueError(
            f"Not SVMlight with whole numbers as qid: in {', '.join(names)}: {error}."
        ) from error
    tables, labels, ids = parts[0::3], parts[1::3], parts[2::3]
    for name, table, qid in zip(names, tables, ids, strict=True):
        if table.shape[0] == 0 or len(qid) != table.shape[0]:
            raise ValueError(f"{name} does not have a qid: on every line ({len(qid)} found).")
    if sum(len(np.unique(qid)) for qid in ids) > len(np.unique(np.concatenate(ids))):
        raise ValueError(
            "A qid occurs in more than one file: their rows would become one query. Load the files "
            "one by one and number the queries apart."
        )
    X: NDArray[Any] = np.concatenate([table.toarray() for table in tables])
    return Bunch(X=X, y=np.concatenate(labels), groups=np.concatenate(ids))
