"""`aggregate`: many partial judgements become one score and one rank for each item."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.aggregation._base import ComparisonStructure, Structure
from sklearn_rankcal.aggregation._graphs import components
from sklearn_rankcal.aggregation._kemeny import Kemeny
from sklearn_rankcal.aggregation._registry import get_structure
from sklearn_rankcal.aggregation._result import Aggregate
from sklearn_rankcal.exceptions import DisconnectedComparisonsWarning
from sklearn_rankcal.labels import Judgements, PrefLibOrders
from sklearn_rankcal.labels._item_ids import show_id
from sklearn_rankcal.queries._ranking import Ranking
from sklearn_rankcal.utils._names import checks_keywords

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@checks_keywords
def aggregate(
    judgements: Any,
    method: str | Structure = "btl",
    groups: ArrayLike | None = None,
) -> Aggregate:
    """Aggregate judgements to one ranking of the items of each query.

    Parameters
    ----------
    judgements : Judgements, array-like of shape (n_pairs, 2), or other
        - A `Judgements` object, which is made from pairs with ties, weights or judges, from orders,
          from tables of ranks or from selections.
        - Pairs of ids, the preferred and the other item: a list of tuples, an array or a data frame
          with two columns.
        - An election: what `read_preflib` returns, or an `OrdinalInstance` of preflibtools.
        - An array of `preference_labels`.
    method : str or Structure, default="btl"
        How scores are computed: a key of `STRUCTURES`, such as ``"btl"``, ``"borda"`` or
        ``"kemeny"``, or a structure object.
    groups : array-like of shape (n_pairs,), default=None
        Query id of each pair, if `judgements` are pairs. None means that all pairs belong to one
        query. The other formats contain the queries.

    Returns
    -------
    result : Aggregate
        Items, scores and ranks. Its text is a leaderboard.

    Raises
    ------
    ValueError
        If the method is unknown, if `groups` are passed together with judgements that contain the
        queries, or if the judgements are refused by the constructor of `Judgements`.
    TypeError
        If `method` is neither a name nor a structure.

    Warns
    -----
    DisconnectedComparisonsWarning
        If the comparisons of a query do not connect all of its items. Each connected component then
        has scores of its own, which cannot be compared with those of another one. In particular,
        an item that no judgement compares has the score NaN, and is ranked last.

    See Also
    --------
    Judgements : Its constructors read all formats of judgements.
    sklearn_rankcal.decoders.decode_preferences : Kemeny's ranking of matrices of preferences.

    Notes
    -----
    The methods take time linear in the number of compared pairs, times the number of iterations,
    except Kemeny, whose problem is NP-hard.

    References
    ----------
    .. [1] J. C. Duchi, L. Mackey and M. I. Jordan (2013). The asymptotics of ranking algorithms.
       Annals of Statistics 41, 2292-2323. Section 5.

    Examples
    --------
    >>> from sklearn_rankcal import aggregate
    >>> votes = [("owl", "cat"), ("owl", "cat"), ("cat", "eel"), ("cat", "eel"), ("eel", "owl")]
    >>> result = aggregate(votes, "kemeny")
    >>> result
    3 items, 5 judgements, Kemeny()
    the ranking contradicts comparisons of weight 1; it is proved that none contradicts less
    rank  item  score
       1  owl   2.000
       2  cat   1.000
       3  eel   0.000
    >>> result.scores.tolist(), result.optimal.tolist()
    ([2.0, 1.0, 0.0], [True])
    """
    read = _read_judgements(judgements, groups)
    structure = get_structure(method)
    structure.check()
    compared = _compared(read)
    _warn_if_disconnected(read, compared)
    queries = read.queries
    result = Aggregate(
        items=read.items,
        groups=queries.broadcast(queries.ids),
        scores=np.empty(0),
        ranks=np.empty(0, dtype=np.int64),
        method=structure,
        judgements=read,
    )
    if isinstance(structure, Kemeny):
        decoded = structure.decode(read.preferences())
        scores = (queries.broadcast(queries.sizes) - decoded.ranks).astype(np.float64)
        result.objective, result.lower_bound = decoded.objective, decoded.lower_bound
        result.optimal = decoded.optimal
    else:
        scores = compute_scores(structure, read)
    result.scores = np.where(compared, scores, np.nan)
    result.ranks = best_and_worst_ranks(result.scores, queries)[0]
    return result


def compute_scores(structure: Structure, judgements: Judgements) -> Floats:
    """Compute the scores of all items, without a warning about disconnected comparisons."""
    if isinstance(structure, ComparisonStructure):
        scores = structure._scores(judgements.preferences(), judgements.per_query)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DisconnectedComparisonsWarning)
            scores = structure.scores(judgements)
    if np.shape(scores) != (judgements.queries.n_rows,):
        raise ValueError(
            f"{type(structure).__name__} returned scores of shape {np.shape(scores)} for "
            f"{judgements.queries.n_rows} items."
        )
    return np.asarray(scores, dtype=np.float64)


def best_and_worst_ranks(scores: Floats, queries: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the positions of each item, 1 = best, if ties are broken for it or against it.

    NaN is below all other scores.
    """
    ranking = Ranking.from_scores(np.where(np.isnan(scores), -np.inf, scores), queries)
    best = np.empty(queries.n_rows, dtype=np.int64)
    best[ranking.order] = (queries.place if ranking.start is None else ranking.start) + 1
    if ranking.stop is None:
        return best, best
    worst = np.empty(queries.n_rows, dtype=np.int64)
    worst[ranking.order] = ranking.stop
    return best, worst


def _read_judgements(judgements: Any, groups: ArrayLike | None) -> Judgements:
    """Make `Judgements` of what a user passed."""
    preflib = isinstance(judgements, PrefLibOrders) or all(
        hasattr(judgements, name) for name in ("orders", "multiplicity", "alternatives_name")
    )
    labels = isinstance(judgements, np.ndarray) and judgements.dtype.names is not None
    if groups is not None and (preflib or labels or isinstance(judgements, Judgements)):
        raise ValueError(
            f"groups can only be passed with pairs; {type(judgements).__name__} contains the "
            "queries."
        )
    if isinstance(judgements, Judgements):
        return judgements
    if preflib:
        return Judgements.from_preflib(judgements)
    if labels:
        return Judgements.from_labels(judgements)
    return Judgements.from_pairs(judgements, groups)


def _compared(judgements: Judgements) -> Bools:
    """Whether each item is compared with another one, with positive weight."""
    preferences = judgements.preferences()
    positive = preferences.weight > 0
    compared = np.zeros(judgements.queries.n_rows, dtype=bool)
    compared[preferences.winner[positive]] = compared[preferences.loser[positive]] = True
    return compared


def _warn_if_disconnected(judgements: Judgements, compared: Bools) -> None:
    """Warn if the comparisons of a query do not connect all of its items."""
    queries = judgements.queries
    first = np.unique(components(judgements.preferences()), return_index=True)[1]
    counts = np.bincount(queries.codes[first], minlength=queries.n_queries)
    broken = np.flatnonzero(counts > 1)
    if not len(broken):
        return
    q = broken[0]
    text = (
        f"The comparisons do not connect all items of {len(broken)} of {queries.n_queries} "
        f"queries. For example, the {queries.sizes[q]} items of query {show_id(queries.ids[q])} "
        f"are in {counts[q]} connected components. Scores and ranks of items in different "
        "components cannot be compared."
    )
    alone = int((~compared & queries.broadcast(queries.sizes > 1)).sum())
    if alone:
        text += (
            f" In particular, no judgement compares {alone} of the items: their scores are NaN, "
            "and they are ranked last."
        )
    warnings.warn(text, DisconnectedComparisonsWarning, stacklevel=4)
