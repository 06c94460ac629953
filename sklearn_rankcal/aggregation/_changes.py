"""`strength_changes`: which items became better or worse at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import eye_array
from scipy.special import stdtr

from sklearn_rankcal.aggregation._bradley_terry import BradleyTerry
from sklearn_rankcal.aggregation._contest_boards import (
    Board,
    covariates_of,
    errors_of,
    penalties_of,
)
from sklearn_rankcal.aggregation._contest_model import fit_contests
from sklearn_rankcal.aggregation._contest_votes import count_votes
from sklearn_rankcal.aggregation._registry import make_structure
from sklearn_rankcal.aggregation._votes_of_items import FEW_VOTES
from sklearn_rankcal.labels import Judgements
from sklearn_rankcal.labels._contests import contests_of
from sklearn_rankcal.labels._times import read_moment, times_of
from sklearn_rankcal.utils._names import checks_keywords
from sklearn_rankcal.utils._typing import Bools, Floats, Ints


class StrengthChanges(NamedTuple):
    """By how much the scores of items changed at a time.

    Attributes
    ----------
    items : ndarray of shape (n_items,)
        The id of each item.
    change : ndarray of shape (n_items,)
        The score after the time minus that before it, relative to the mean change of the items that
        are not found to have changed. NaN for an item that cannot be tested.
    standard_error : ndarray of shape (n_items,)
        The standard error of the change.
    p_value : ndarray of shape (n_items,)
        The p-value, with the correction of Holm (1979) for the number of items.
    changed : ndarray of bool of shape (n_items,)
        Whether the p-value is at most 1 - confidence_level.
    """

    items: NDArray[Any]
    change: Floats
    standard_error: Floats
    p_value: Floats
    changed: Bools


def holm(p: Floats) -> Floats:
    """Return p-values that are corrected for their number by the method of Holm (1979)."""
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(steps, 1.0)
    return corrected


def relative_changes(
    change: Floats, covariance: Floats, degrees: Floats, level: float
) -> tuple[Floats, Floats, Floats]:
    """Return changes relative to those of the unchanged items, standard errors and p-values.

    Scores of each period are known up to a constant, so that only differences of changes can be
    seen. At first they are relative to the mean of all items. As long as an item among those of the
    mean has changed, the one of the smallest p-value leaves the mean, until half of them are left.
    """
    m = len(change)
    reference = np.ones(m, dtype=bool)
    while True:  # at most m / 2 times
        contrast = np.eye(m) - reference / reference.sum()
        value = contrast @ change
        error = np.sqrt(np.maximum(np.diag(contrast @ covariance @ contrast.T), 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(error > 0, np.abs(value) / error, 0.0)
        p = holm(2 * stdtr(degrees, -z))
        found = reference & (p <= 1 - level)
        if not found.any() or reference.sum() <= m / 2 + 1:
            return value, error, p
        reference[np.argmax(np.where(found, z, -1.0))] = False


@checks_keywords
def strength_changes(
    judgements: Judgements,
    at: Any,
    *,
    method: str | BradleyTerry = "btl",
    confidence_level: float = 0.95,
) -> StrengthChanges:
    """Test which items became better or worse at a time, for example because they were updated.

    Parameters
    ----------
    judgements : Judgements
        Votes of one query with times, such as those of ``Judgements.from_votes(..., time=...)``.
    at : time stamp, str or float
        The time. Votes at this time belong to the second period.
    method : str or BradleyTerry, default="btl"
        ``"btl"``, or an object with parameters. Effects of covariates, of the position and of ties
        are the same in both periods.
    confidence_level : float, default=0.95
        If no item has changed, the probability that one is said to have is at most 1 minus this, if
        there are many votes.

    Returns
    -------
    changes : StrengthChanges
        Items with fewer than 30 votes in a period, and those that comparisons do not connect with
        most others in both, are not tested: their change is NaN.

    Raises
    ------
    ValueError
        If the votes have no times, if they are of several queries or of a single judge, or if `at`
        leaves fewer than three items that can be tested.

    Notes
    -----
    Only changes relative to other items can be seen. They are relative to the mean of the items
    that did not change, which is right as long as these are more than half. Standard errors are the
    robust ones, with judges as clusters if these are known. The time must not be chosen by looking
    at the votes.

    References
    ----------
    Holm (1979), A simple sequentially rejective multiple test procedure, Scand. J. Statist. 6.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal import Judgements
    >>> from sklearn_rankcal.aggregation import strength_changes
    >>> from sklearn_rankcal.datasets import make_arena
    >>> data = make_arena(4000, n_models=6, random_state=0)
    >>> votes = Judgements.from_votes(
    ...     data.model_a, data.model_b, data.winner, position=True, time=data.time
    ... )
    >>> strength_changes(votes, "2026-02-15").changed.any()
    np.False_
    """
    structure = make_structure(method, "method", ["btl"])
    structure.check()
    if not isinstance(structure, BradleyTerry) or not structure.own_effects:
        raise ValueError(f"method must be BradleyTerry with own effects; got {structure!r}.")
    if not isinstance(judgements, Judgements) or judgements.queries.n_queries > 1:
        raise ValueError("judgements must be Judgements of one query, made without groups=.")
    level = float(confidence_level)
    if not 0 < level < 1:
        raise ValueError(f"confidence_level must be between 0 and 1; got {confidence_level!r}.")
    time = times_of(judgements, "strength_changes")
    after = time >= read_moment(at, time, "at")

    if judgements.judges is not None and len(judgements.judges) < 2:
        raise ValueError(
            "strength_changes needs several judges, but there is only one. Read the votes without "
            "judge= for a test about other votes of this judge."
        )

    # Step 1: item i is the number i before the time, and n + i after it.
    contests, n = contests_of(judgements), judgements.queries.n_rows
    shift = n * after[contests.judgement]
    moved = contests._replace(first=contests.first + shift, second=contests.second + shift)
    part, ridge = penalties_of(moved, 2 * n, structure)
    tested = _testable(part, np.bincount(np.append(moved.first, moved.second), minlength=2 * n))
    if len(tested) < 3:
        raise ValueError(
            f"Only {len(tested)} items have at least {FEW_VOTES} votes both before and after "
            f"at={at}, and are connected. At least 3 are needed."
        )

    # Step 2: fit both periods at once, so that votes of a judge in both are a cluster.
    X, names = covariates_of(judgements, contests)
    fit = fit_contests(
        count_votes(moved, X, merge=judgements.judge is None),
        2 * n, names, ties=structure.ties, ridge=ridge, part=part, own_effects=True,
        tol=structure.tol, max_iter=structure.max_iter,
    )  # fmt: skip
    every = eye_array(2 * n, len(fit.weights), format="csr")
    board = Board(fit, np.arange(2 * n), names, every, X, moved)
    scores, effects = errors_of(judgements, board, "robust", level)
    covariance = effects.covariance
    degrees = np.minimum(scores.degrees[tested], scores.degrees[n + tested])
    difference = np.zeros((len(tested), len(fit.weights)))
    difference[np.arange(len(tested)), tested] = -1.0
    difference[np.arange(len(tested)), n + tested] = 1.0

    # Step 3: compare the changes with each other.
    found = relative_changes(
        difference @ fit.weights,
        difference @ covariance @ difference.T,
        degrees,
        level,
    )
    change, error, p = (np.full(n, np.nan) for _ in found)
    change[tested], error[tested], p[tested] = found
    return StrengthChanges(judgements.items, change, error, p, p <= 1 - level)


def _testable(part: Ints, votes: Ints) -> Ints:
    """Return the items with enough votes in the components that most of them are in."""
    n = len(part) // 2
    enough = np.flatnonzero((votes[:n] >= FEW_VOTES) & (votes[n:] >= FEW_VOTES))
    if not len(enough):
        return enough
    _, group = np.unique(part[enough] * 2 * n + part[n + enough], return_inverse=True)
    return enough[group == np.bincount(group).argmax()]
