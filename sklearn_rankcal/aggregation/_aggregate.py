"""`aggregate`: one score and one rank for each item, from many partial judgements."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from sklearn_rankcal.aggregation._base import Structure, shared_ranks, tie_scores
from sklearn_rankcal.aggregation._bootstrap import bootstrap
from sklearn_rankcal.aggregation._clicks import (
    CascadeSatisfaction,
    ClickThroughRate,
    InversePropensity,
)
from sklearn_rankcal.aggregation._comparison_structures import (
    Borda,
    BudgetedBorda,
    Copeland,
    LeastSquares,
    LogOdds,
    PrincipalEigenvector,
    RankCentrality,
)
from sklearn_rankcal.aggregation._contests import is_weighted
from sklearn_rankcal.aggregation._graphs import number_components, number_parts
from sklearn_rankcal.aggregation._judgements import Judgements
from sklearn_rankcal.aggregation._kemeny import Kemeny
from sklearn_rankcal.aggregation._maximum_likelihood import BradleyTerry, PlackettLuce
from sklearn_rankcal.aggregation._result import Aggregate
from sklearn_rankcal.exceptions import DisconnectedComparisonsWarning
from sklearn_rankcal.labels._item_ids import show_id
from sklearn_rankcal.utils._memory import check_memory
from sklearn_rankcal.utils._messages import (
    check_choice,
    check_count,
    check_number,
    checks_keywords,
    counted,
    did_you_mean,
    warn,
)
from sklearn_rankcal.utils._numbers import Ints

#: The structures by name, for `aggregate` and `AggregatedLoss`.
STRUCTURES: dict[str, type[Structure]] = {
    "borda": Borda,
    "budgeted_borda": BudgetedBorda,
    "copeland": Copeland,
    "least_squares": LeastSquares,
    "log_odds": LogOdds,
    "btl": BradleyTerry,
    "plackett_luce": PlackettLuce,
    "principal_eigenvector": PrincipalEigenvector,
    "rank_centrality": RankCentrality,
    "cascade": CascadeSatisfaction,
    "inverse_propensity": InversePropensity,
    "click_through_rate": ClickThroughRate,
    "kemeny": Kemeny,
}

#: Other common names, and the nearest name in `STRUCTURES`.
_OTHER_NAMES = {
    "bradley_terry": "btl",
    "bradley_terry_luce": "btl",
    "bt": "btl",
    "ctr": "click_through_rate",
    "elo": "btl",
    "hodgerank": "least_squares",
    "ips": "inverse_propensity",
    "pagerank": "rank_centrality",
    "saaty": "principal_eigenvector",
    "thurstone": "least_squares",
    "win_rate": "budgeted_borda",
}


def get_structure(
    structure: Any, word: str = "structure", known: Iterable[str] = tuple(STRUCTURES)
) -> Structure:
    """Make a structure from a name. Errors call it `word`, and list the `known` names."""
    if isinstance(structure, str):
        if structure in STRUCTURES:
            return STRUCTURES[structure]()
        hint = did_you_mean(structure, known, _OTHER_NAMES)
        raise ValueError(f"Unknown {word} {structure!r}.{hint} Known: {', '.join(known)}.")
    if not isinstance(structure, Structure):
        raise TypeError(f"{word} must be a name or a Structure; got {structure!r}.")
    return structure


#: Bytes for each pair of items while intervals without resamples are computed.
_INTERVAL_BYTES = 140
#: Intervals of more items can need more memory than there is.
_MANY = 1000

#: Keywords of the constructors of `Judgements`.
_OF_JUDGEMENTS = {
    "weight|tied|count|judgement|judge|items|unlisted|ties?": (
        "It belongs to the judgements: pass, for example, "
        "Judgements.from_pairs(pairs, {keyword}={keyword}) as the first argument."
    )
}


@checks_keywords(foreign=_OF_JUDGEMENTS)
def aggregate(
    judgements: Any,
    method: str | Structure = "btl",
    groups: ArrayLike | None = None,
    *,
    intervals: str | None = None,
    n_resamples: int = 0,
    resample: str = "judgements",
    confidence_level: float = 0.95,
    random_state: int | np.random.RandomState | None = 0,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Aggregate:
    """Aggregate judgements into one ranking of the items of each query, with intervals.

    Parameters
    ----------
    judgements : Judgements, array-like of shape (n_pairs, 2), or other
        `Judgements`; pairs of ids (winner, loser) or a data frame with these two columns; an
        election of preflibtools; or labels from `preference_labels`. See :ref:`judgements` for all
        formats.
    method : str or Structure, default="btl"
        A key of `STRUCTURES`, such as ``"btl"``, ``"borda"`` or ``"kemeny"``, or a structure
        object.
    groups : array-like of shape (n_pairs,), default=None
        Query id of each pair, if `judgements` are pairs. None means that there is one query.
    intervals : {"information", "robust"} or None, default=None
        Intervals without resamples, for `BradleyTerry` with votes and `PlackettLuce` with orders.
        ``"information"`` assumes that the model holds. ``"robust"`` does not, and allows for
        differences between judges if judges are known; it is never surer than ``"information"``.
        None means intervals from resamples, if `n_resamples` is positive.
    n_resamples : int, default=0
        Number of bootstrap resamples for the intervals. 1000 is enough for most purposes. `Copeland
        <aggregation.Copeland>` and `Kemeny <aggregation.Kemeny>` get intervals of ranks only.
    resample : {"judgements", "judges"}, default="judgements"
        What to resample with replacement in each query. ``"judges"`` takes judges with all of their
        judgements, and needs at least two judges in each query. If judges disagree with each other,
        the intervals of ``"judgements"`` are too short.
    confidence_level : float, default=0.95
        Confidence level of the intervals, between 0 and 1.
    random_state : int, RandomState instance or None, default=0
        Determines the resamples. The resamples of a query depend neither on other queries nor on
        `n_jobs`.
    n_jobs : int, default=None
        Number of joblib jobs, over resamples or over the queries of `Kemeny`.
    verbose : int, default=0
        The verbosity level of joblib.

    Returns
    -------
    result : Aggregate
        Items, scores, ranks and, if asked for, intervals. ``print`` shows a leaderboard.

    Raises
    ------
    ValueError or TypeError
        If a parameter or the judgements are invalid.

    Warns
    -----
    DisconnectedComparisonsWarning
        If the comparisons of a query do not connect all of its items. Scores of different
        `Aggregate.parts` cannot be compared. An item without comparisons has the score NaN and is
        ranked last.
    ConvergenceWarning
        If a method did not converge, on the data or on some resamples.

    Notes
    -----
    All methods except Kemeny take time linear in the number of compared pairs, times the number of
    iterations. Kemeny's problem is NP-hard. A resample takes as long as the method.

    Intervals and probabilities follow one rule (:ref:`how-sure`). With ``"information"`` or
    ``"robust"``, a query takes O(n_items^3) time and O(n_items^2) memory.

    References
    ----------
    Duchi, Mackey and Jordan (2013), The asymptotics of ranking algorithms, section 5.

    Examples
    --------
    >>> from sklearn_rankcal import aggregate
    >>> votes = [("owl", "cat"), ("owl", "cat"), ("cat", "eel"), ("cat", "eel"), ("eel", "owl")]
    >>> result = aggregate(votes, "kemeny")
    >>> result
    3 items, 5 judgements, Kemeny()
    the ranking contradicts comparisons of weight 1 of 5
    proved optimal: all other rankings contradict more
    rank  item  score
       1  owl   2.000
       2  cat   1.000
       3  eel   0.000
    >>> result.scores.tolist(), result.optimal.tolist()
    ([2.0, 1.0, 0.0], [True])
    """
    read = _read_judgements(judgements, groups)
    known = [name for name, kind in STRUCTURES.items() if kind.takes != "clicks"]
    structure = get_structure(method, "method", known)
    structure.check()
    _check_options(read, structure, intervals, n_resamples, resample, confidence_level)
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    queries, level = read.queries, float(confidence_level)

    links = read._links()
    compared = np.zeros(queries.n_rows, dtype=bool)
    compared[links[0]] = compared[links[1]] = True
    if getattr(structure, "own_effects", True):
        labels = number_components(*links, queries.n_rows, "weak")
    else:  # features connect all items
        labels, compared[:] = queries.codes, True
    parts = np.ones(queries.n_rows, dtype=np.int64)
    if labels.max() >= queries.n_queries or not compared.all():
        parts = number_parts(labels, compared, queries)
        _warn_of_parts(read, parts)

    found = structure._solve(read, parts, intervals, level, n_jobs)
    scores = np.where(compared, tie_scores(found.scores, structure, queries), np.nan)
    ranks, sure = shared_ranks(scores, queries, parts), found.intervals
    if n_resamples:
        sure = bootstrap(
            read, structure, scores, labels, n_resamples=int(n_resamples), resample=resample,
            level=level, seed=seed, n_jobs=n_jobs, verbose=verbose,
        )  # fmt: skip
    return Aggregate(
        items=read.items,
        groups=queries.ids[queries.codes],
        scores=scores,
        ranks=ranks,
        parts=parts,
        method=structure,
        judgements=read,
        coefficients=found.coefficients,
        _intervals=None if sure is None else sure.around(ranks),
        _boards=found.boards,
        _proof=found.proof,
    )


def _check_options(
    read: Judgements,
    structure: Structure,
    intervals: Any,
    n_resamples: Any,
    resample: Any,
    level: Any,
) -> None:
    """Check that the options fit the structure, and that the judgements have what they need."""
    if structure.takes == "clicks":
        raise ValueError(
            f"{structure!r} needs clicks, not judgements. Compute its scores with "
            "structure.scores(read_clicks(labels)), with labels from click_labels."
        )
    check_count(n_resamples, "n_resamples", least=0)
    check_choice(resample, "resample", ("judgements", "judges"))
    check_number(level, "confidence_level", "(0, 1)")
    if not structure.uses_covariates and read.has_covariates:
        raise ValueError(
            f"{structure!r} cannot use the position, covariates or features of these "
            "judgements. Pass 'btl' (BradleyTerry), or read the votes without them."
        )
    if n_resamples:
        largest = int(read.queries.sizes.max())
        check_memory(
            40 * int(n_resamples) * largest + 8 * largest**2,
            f"{counted(n_resamples, 'resample')} of a query of {counted(largest, 'item')}",
            "Pass a smaller n_resamples.",
        )
    if resample == "judges":
        if read.judge is None:
            raise ValueError(
                "resample='judges' needs the judge of each judgement. Pass judge= to the "
                "constructor of Judgements, for example Judgements.from_pairs(pairs, "
                "judge=names)."
            )
        if n_resamples == 0:
            raise ValueError(
                "resample='judges' needs resamples, but n_resamples is 0. Pass n_resamples=1000."
            )
        _check_judges(read, "resample='judges'", "resample='judgements'")
    if intervals is None:
        return
    check_choice(intervals, "intervals", ("information", "robust"))
    if not structure._has_errors:
        raise ValueError(
            f"intervals={intervals!r} needs 'btl' or, for orders, 'plackett_luce'. For "
            f"{structure!r}, pass n_resamples=1000 instead."
        )
    if n_resamples:
        raise ValueError(f"Pass intervals={intervals!r} or n_resamples, not both.")
    if (largest := int(read.queries.sizes.max())) > _MANY:
        check_memory(
            _INTERVAL_BYTES * largest**2,
            f"intervals={intervals!r} for a query of {counted(largest, 'item')}",
            "Leave out intervals.",
        )
    if intervals == "information" and is_weighted(read):
        raise ValueError(
            "intervals='information' would read the weights of these votes as numbers of "
            "votes. Pass intervals='robust', or pass numbers of equal votes as count= to the "
            "constructor of Judgements."
        )
    if intervals == "robust" and read.judge is not None:
        _check_judges(read, "intervals='robust'", "intervals='information'")


def _read_judgements(judgements: Any, groups: ArrayLike | None) -> Judgements:
    """Convert the input of a user to `Judgements`."""
    preflib = hasattr(judgements, "alternatives_name")  # of preflibtools
    labels = isinstance(judgements, np.ndarray) and judgements.dtype.names is not None
    if groups is not None and (preflib or labels or isinstance(judgements, Judgements)):
        raise ValueError(
            f"groups can only be passed with pairs. {type(judgements).__name__} contains the "
            "queries."
        )
    if isinstance(judgements, Judgements):
        return judgements
    if preflib:
        return Judgements.from_preflib(judgements)
    if labels:
        return Judgements.from_labels(judgements)
    return Judgements.from_pairs(judgements, groups=groups)


def _check_judges(read: Judgements, option: str, other: str) -> None:
    """Refuse queries of a single judge.

    `option` needs several judges, and `other` works with one.
    """
    queries = read.queries
    assert read.judge is not None and read.judges is not None
    pairs = np.unique(read.query * len(read.judges) + read.judge)
    judges = np.bincount(pairs // len(read.judges), minlength=queries.n_queries)
    single = np.flatnonzero((judges <= 1) & (queries.sizes > 1))
    if len(single):
        q = single[0]
        where = f" in query {show_id(queries.ids[q])}" if queries.n_queries > 1 else ""
        raise ValueError(
            f"{option} needs several judges, but there is only one{where}. Pass {other} "
            "instead, for intervals that describe this judge only."
        )


def _warn_of_parts(judgements: Judgements, parts: Ints) -> None:
    """Warn of queries in several parts, and of items that nothing compares."""
    queries, texts = judgements.queries, []
    n_parts = queries.max(queries.gather(parts))
    split = np.flatnonzero(n_parts > 1)
    if len(split):
        q = int(split[0])
        which, whose = "", "they"
        if queries.n_queries > 1:
            which = f" of {len(split)} of {counted(queries.n_queries, 'query')}"
            whose = f"those of query {show_id(queries.ids[q])}"
        mine = queries.codes == q
        shown = [_some(judgements.items[mine & (parts == part)]) for part in range(1, 4)]
        some = "; ".join(filter(None, shown)) + ("; ..." if n_parts[q] > 3 else "")
        texts.append(
            f"The comparisons do not connect all items{which}: {whose} fall into {n_parts[q]} "
            f"parts, {some}. Scores and ranks of different parts cannot be compared: aggregate "
            "each part separately, or collect comparisons between the parts."
        )
    alone = (parts == 0) & queries.broadcast(queries.sizes > 1)
    if alone.any():
        texts.append(
            f"No judgement compares {alone.sum()} of the items ({_some(judgements.items[alone])}): "
            "their scores are NaN, and they are ranked last."
        )
    if texts:
        warn(" ".join(texts), DisconnectedComparisonsWarning)


def _some(items: NDArray[Any]) -> str:
    """Name the first three items, and count the rest."""
    names = ", ".join(map(show_id, items[:3].tolist()))
    return names if len(items) <= 3 else f"{names} and {len(items) - 3} more"
