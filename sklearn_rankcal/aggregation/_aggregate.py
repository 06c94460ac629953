"""`aggregate`: one score and one rank for each item, from many partial judgements."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from sklearn_rankcal.aggregation._base import (
    Structure,
    compute_scores,
    shared_ranks,
    tie_scores,
)
from sklearn_rankcal.aggregation._bradley_terry import BradleyTerry
from sklearn_rankcal.aggregation._contest_boards import (
    BoardIntervals,
    coefficients_of,
    fit_boards,
    intervals_of,
)
from sklearn_rankcal.aggregation._contests import has_covariates, is_weighted
from sklearn_rankcal.aggregation._graphs import number_components, number_parts
from sklearn_rankcal.aggregation._intervals import Intervals, bootstrap
from sklearn_rankcal.aggregation._judgement_formats import is_ordinal_instance
from sklearn_rankcal.aggregation._judgements import Judgements
from sklearn_rankcal.aggregation._kemeny import Kemeny
from sklearn_rankcal.aggregation._registry import STRUCTURES, make_structure
from sklearn_rankcal.aggregation._result import Aggregate
from sklearn_rankcal.exceptions import DisconnectedComparisonsWarning
from sklearn_rankcal.labels._item_ids import show_id
from sklearn_rankcal.utils._memory import check_memory
from sklearn_rankcal.utils._messages import counted, warn
from sklearn_rankcal.utils._names import checks_keywords
from sklearn_rankcal.utils._parameters import check_choice, check_count, check_number
from sklearn_rankcal.utils._typing import Ints


@checks_keywords
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
        Intervals without resamples, for `BradleyTerry` and votes between two items.
        ``"information"`` assumes that the model holds. ``"robust"`` (the sandwich estimator) does
        not, and allows for differences between judges if judges are known. None means intervals
        from resamples, if `n_resamples` is positive.
    n_resamples : int, default=0
        Number of bootstrap resamples for the intervals. 1000 is enough for most purposes.
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

    With resamples, intervals of scores are bias-corrected percentile intervals (Efron, 1981). One
    item is above another in the intervals of ranks if it is above in a share of at least (1 +
    confidence_level) / 2 of the resamples. Resamples reverse a share of unanimous comparisons, as
    in the interval of Clopper and Pearson (1934). See :ref:`votes` for details.

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
    structure = make_structure(method, "method", known)
    structure.check()
    if getattr(structure, "takes", "comparisons") == "clicks":
        raise ValueError(
            f"{structure!r} needs clicks, not judgements. Compute its scores with "
            "structure.scores(read_clicks(labels)), with labels from click_labels."
        )
    _check_options(read, n_resamples, resample, confidence_level)
    _check_contests(read, structure, intervals, n_resamples)
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    queries, links = read.queries, read.links()
    compared = np.zeros(queries.n_rows, dtype=bool)
    compared[links[0]] = compared[links[1]] = True
    if getattr(structure, "own_effects", True):
        labels = number_components(*links, queries.n_rows, "weak")
    else:  # features connect all items
        labels, compared[:] = queries.codes, True
    parts = number_parts(labels, compared, queries)
    _warn_if_disconnected(read, parts)
    result = Aggregate(
        items=read.items,
        groups=queries.broadcast(queries.ids),
        scores=np.empty(0),
        ranks=np.empty(0, dtype=np.int64),
        parts=parts,
        method=structure,
        judgements=read,
    )
    sums = structure._takes_sums(read) if isinstance(structure, Structure) else True
    boards = None
    if isinstance(structure, BradleyTerry) and (intervals is not None or not sums):
        clustered = intervals == "robust" and read.judge is not None
        boards = fit_boards(read, structure, merge=not clustered)
        scores = np.zeros(queries.n_rows)
        for board in boards:
            scores[board.rows] = board.scores
        scores = tie_scores(scores, structure, queries)
    elif isinstance(structure, Kemeny):
        decoded, best = structure.decode_board(read.preferences(), read.items, n_jobs)
        scores = (queries.broadcast(queries.sizes) - decoded.ranks).astype(np.float64)
        if best is not None:
            result.best_low, result.best_high = best.low, best.high
            result._best_exact = best.exact
        result.objective, result.lower_bound = decoded.objective, decoded.lower_bound
        result.optimal = decoded.optimal
    else:
        scores = compute_scores(structure, read)
    result.scores = np.where(compared, scores, np.nan)
    result.ranks = shared_ranks(result.scores, queries, parts)
    level = float(confidence_level)
    if boards is not None:
        found = None
        if intervals is not None:
            found = intervals_of(read, boards, intervals, level, parts)
            _keep_intervals(result, found, level)
            result.intervals, result._errors = intervals, found.errors
            if found.effects[0].judges is not None:
                result._judges = [one.judges for one in found.effects if one.judges is not None]
        result.coefficients = coefficients_of(boards, found, level, queries.ids)
        result._boards = boards
    if n_resamples == 0:
        return result
    resampled = bootstrap(
        read,
        structure,
        queries.gather(result.scores),
        queries.gather(labels),
        n_resamples=int(n_resamples),
        resample=resample,
        level=level,
        seed=seed,
        n_jobs=n_jobs,
        verbose=verbose,
    )
    if resampled.messages:
        warn(f"Some resamples: {resampled.messages[0]}", ConvergenceWarning)
    result.n_resamples, result.resample = int(n_resamples), resample
    _keep_intervals(result, resampled, level)
    result.unanimous = resampled.unanimous
    result.n_disconnected, result.n_unbounded = resampled.n_disconnected, resampled.n_unbounded
    return result


def _keep_intervals(result: Aggregate, found: Intervals | BoardIntervals, level: float) -> None:
    """Set the intervals of a result. The intervals of ranks contain the ranks."""
    scatter = result.judgements.queries.scatter
    result.confidence_level = level
    result.score_low, result.score_high = scatter(found.score_low), scatter(found.score_high)
    result.rank_low = np.minimum(scatter(found.rank_low), result.ranks)
    result.rank_high = np.maximum(scatter(found.rank_high), result.ranks)
    result._above, result._first = found.above, found.first


def _check_options(read: Judgements, n_resamples: Any, resample: Any, level: Any) -> None:
    """Check the parameters of the bootstrap."""
    check_count(n_resamples, "n_resamples", least=0)
    check_choice(resample, "resample", ("judgements", "judges"))
    check_number(level, "confidence_level", "(0, 1)")
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
    if n_resamples == 0:
        return
    largest = int(read.queries.sizes.max())
    check_memory(
        40 * int(n_resamples) * largest + 8 * largest**2,
        f"{counted(n_resamples, 'resample')} of a query of {counted(largest, 'item')}",
        "Pass a smaller n_resamples.",
    )


def _check_contests(read: Judgements, structure: Any, intervals: Any, n_resamples: int) -> None:
    """Check that the structure supports the covariates of the votes and the intervals."""
    if has_covariates(read) and not getattr(structure, "uses_covariates", False):
        raise ValueError(
            f"{structure!r} cannot use the position, covariates or features of these "
            "judgements. Pass 'btl' (BradleyTerry), or read the votes without them."
        )
    if intervals is None:
        return
    check_choice(intervals, "intervals", ("information", "robust"))
    if not isinstance(structure, BradleyTerry):
        raise ValueError(
            f"intervals={intervals!r} needs BradleyTerry. For {structure!r}, pass "
            "n_resamples=1000 instead."
        )
    if n_resamples:
        raise ValueError(f"Pass intervals={intervals!r} or n_resamples, not both.")
    if intervals == "information" and is_weighted(read):
        raise ValueError(
            "intervals='information' would read the weights of these votes as numbers of "
            "votes. Pass intervals='robust'. If the weights are numbers of equal votes, "
            "pass them as count= to the constructor of Judgements."
        )
    if intervals == "robust" and read.judge is not None:
        _check_judges(read, "intervals='robust'", "intervals='information'")


def _read_judgements(judgements: Any, groups: ArrayLike | None) -> Judgements:
    """Convert the input of a user to `Judgements`."""
    preflib = is_ordinal_instance(judgements)
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


def _warn_if_disconnected(judgements: Judgements, parts: Ints) -> None:
    """Warn if the comparisons of a query do not connect all of its items."""
    queries = judgements.queries
    n_parts = np.zeros(queries.n_queries, dtype=np.int64)
    np.maximum.at(n_parts, queries.codes, parts)
    texts = []
    split = np.flatnonzero(n_parts > 1)
    if len(split):
        q = int(split[0])
        which, whose = "", "They"
        if queries.n_queries > 1:
            which = f" of {len(split)} of {counted(queries.n_queries, 'query')}"
            whose = f"Those of query {show_id(queries.ids[q])}"
        mine = queries.codes == q
        shown = [
            _some(judgements.items[mine & (parts == part)])
            for part in range(1, min(int(n_parts[q]), 3) + 1)
        ]
        texts.append(
            f"The comparisons do not connect all items{which}. {whose} fall into "
            f"{n_parts[q]} parts that no comparison connects: "
            f"{'; '.join(shown)}{'; ...' if n_parts[q] > 3 else ''}. Scores and ranks of "
            "items in different parts cannot be compared. Aggregate the judgements of each "
            "part separately, or collect comparisons between the parts."
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
