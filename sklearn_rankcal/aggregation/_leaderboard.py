"""What an `Aggregate` says: the printed leaderboard, predictions of votes, and what to ask next."""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from sklearn_rankcal.aggregation._base import Structure, tie_scores
from sklearn_rankcal.aggregation._boards import (
    Board,
    evidence_of,
    fit_boards,
    main_part,
    penalties_of,
)
from sklearn_rankcal.aggregation._contests import contests_of, few_votes
from sklearn_rankcal.aggregation._judgements import Judgements, find_id
from sklearn_rankcal.aggregation._kemeny import others_are_as_good
from sklearn_rankcal.aggregation._likelihoods import result_probabilities, vote_information
from sklearn_rankcal.aggregation._maximum_likelihood import (
    BradleyTerry,
    MaximumLikelihood,
    PlackettLuce,
)
from sklearn_rankcal.labels._item_ids import content_ranks, show_id
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.utils._messages import check_choice, counted, did_you_mean
from sklearn_rankcal.utils._numbers import ROUNDING, Floats, Ints, is_largest

#: Number of rows in the text, for one query and for each of several; number of queries.
_ROWS, _ROWS_OF_MANY, _QUERIES = 20, 5, 5
#: The longest name that the text shows in full.
_NAME = 30
# With fewer effective judges, intervals are long.
_FEW_JUDGES = 5


def write_leaderboard(result: Any) -> str:
    """Return the text of an `Aggregate`."""
    queries = result.judgements.queries
    several = queries.n_queries > 1
    total = counted(int(result.judgements.per_query.sum()), "judgement")
    refused = result.judgements.refused
    if refused is not None and refused.any():
        total += f" ({refused.sum():,.0f} without an answer left out)"
    head = f"{counted(len(result.items), 'item')}, {total}, {result.method!r}"
    if several:
        head = f"{counted(queries.n_queries, result._words[0])}, {head}"
    lines = [
        head,
        *result.notes,
        *_parts(result),
        *_certificate(result),
        *_resamples(result),
        *_effects(result),
        *_few_votes(result),
        *_few_judges(result),
    ]
    for query in queries.ids[:_QUERIES]:
        if several:
            lines.append(f"{result._words[0]} {show_id(query)}:")
        rows = result._rows_by_part(query)
        shown = rows[: _ROWS_OF_MANY if several else _ROWS]
        lines += _table(result, shown)
        if len(rows) > len(shown):
            lines.append(f"... {counted(len(rows) - len(shown), 'more item')}; to_frame() has all")
    if queries.n_queries > _QUERIES:
        more = counted(queries.n_queries - _QUERIES, f"more {result._words[0]}")
        lines.append(f"... {more}; to_frame() has all")
    return "\n".join(lines)


def _table(result: Any, rows: Ints) -> list[str]:
    names = [_shorten(name) for name in result.items[rows].tolist()]
    write = _decimals(result.scores)
    columns = [
        _column("rank", [str(rank) for rank in result.ranks[rows]], right=True),
        _column("item", names),
        _column("score", write(result.scores[rows]), right=True),
    ]
    if result.rank_low is not None and result.rank_high is not None:
        ranks = zip(result.rank_low[rows], result.rank_high[rows], strict=True)
        columns.insert(1, _column("ranks", [_range(low, high) for low, high in ranks]))
    if result.best_low is not None and result.best_high is not None:
        low, high = result.best_low[rows], result.best_high[rows]
        if (low < high)[result.parts[rows] > 0].any():
            texts = [_range(*ends) for ends in zip(low, high, strict=True)]
            columns.insert(1, _column("in best", texts))
    if result.score_low is not None and result.score_high is not None:
        bounds = zip(write(result.score_low[rows]), write(result.score_high[rows]), strict=True)
        texts = [f"{low} to {high}" for low, high in bounds]
        columns.append(_column("interval", texts, right=True))
    if (result.parts[rows] > 1).any():
        parts = [str(part) if part else "-" for part in result.parts[rows]]
        columns.insert(0, _column("part", parts, right=True))
    return ["  ".join(cells).rstrip() for cells in zip(*columns, strict=True)]


def _parts(result: Any) -> list[str]:
    """Report that some items cannot be compared."""
    n_queries = result.judgements.queries.n_queries
    split = np.unique(result.judgements.queries.codes[result.parts > 1])
    if not len(split):
        return []
    where = f"the items are in {counted(result.parts.max(), 'part')}"
    if n_queries > 1:
        where = (
            f"the items of {len(split):,} of {n_queries:,} {result._words[1]} are in several parts"
        )
    return [f"{where}, the largest first; scores and ranks of different parts cannot be compared"]


def _certificate(result: Any) -> list[str]:
    """Report how much Kemeny's ranking contradicts, and whether it is proved optimal."""
    if result.optimal is None:
        return []
    if len(result.optimal) > 1:
        return [
            (
                f"{result.optimal.sum():,} of {counted(len(result.optimal), 'ranking')} are "
                "proved optimal"
            )
        ]
    weight, bound = float(result.objective[0]), float(result.lower_bound[0])
    preferences = result.judgements.preferences()
    total = float(preferences.weight.sum())
    lost = f"ranking contradicts comparisons of weight {weight:g} of {total:g}"
    lines = [f"the {lost}"]
    if not result.optimal[0]:
        exact = result.method.method == "exact"
        way = "a larger time_limit" if exact else 'aggregate(judgements, Kemeny("exact"))'
        lines += [f"every ranking contradicts at least {bound:g}; {way} may find a proof"]
        return lines
    rows = result.rows_of()
    rows = rows[result.parts[rows] > 0]
    low, high, exact, others = result.best_low, result.best_high, False, None
    if low is not None:
        exact, others = bool(result._proof.exact[0]), bool((low[rows] < high[rows]).any())
    if not exact and others is not False:  # the bounds leave it open
        others = others_are_as_good(preferences, rows)
    if others is None:
        return [*lines, "proved optimal; other rankings may be equally good"]
    if not others:
        return [*lines, "proved optimal: all other rankings contradict more"]
    proof = "proved optimal, but other rankings are equally good"
    lines = [f"a best {lost}", proof]
    if low is not None:
        what = "has" if exact else "bounds"
        lines.append(
            f"the column 'in best' {what} the positions of each item in all optimal rankings"
        )
    return lines


def _effects(result: Any) -> list[str]:
    """Write the coefficients of a single query, or where to find the coefficients of several."""
    found = result.coefficients or []
    if not found:
        return []
    if result.judgements.queries.n_queries > 1:
        names = ", ".join(dict.fromkeys(one.name for one in found))
        return [f"the attribute coefficients has the effects of each {result._words[0]} ({names})"]
    lines = []
    for one in found:
        ends = [one.value, *(() if np.isnan(one.low) else (one.low, one.high))]
        small = max(abs(end) for end in ends if np.isfinite(end)) < 1e-3  # in a small unit
        value, *bounds = (f"{end:.3g}" if small else f"{end:.4f}" for end in ends)
        text = f"effect of {_shorten(one.name)}: {value}"
        if bounds:
            text += f" ({bounds[0]} to {bounds[1]})"
        lines.append(text)
    open_ended = [_shorten(one.name) for one in found if np.isinf([one.low, one.high]).sum() == 1]
    if open_ended:
        names = ", ".join(open_ended)
        lines.append(f"the votes do not bound these effects, only the penalty does: {names}")
    return lines


def _few_judges(result: Any) -> list[str]:
    """Name items and effects with few effective judges."""
    known = result._intervals
    if known is None or known.judges is None or result.judgements.queries.n_queries > 1:
        return []
    items, effects = known.judges[0]
    names = result.items[result.judgements._rows_of_query(0)].tolist()
    numbers = dict(zip(map(_shorten, names), items.tolist(), strict=True))
    for one, number in zip(result.coefficients or [], effects.tolist(), strict=True):
        numbers[f"the effect of {_shorten(one.name)}"] = number
    few = sorted((n, name) for name, n in numbers.items() if 0 < n < _FEW_JUDGES)
    if not few:
        return []
    shown = ", ".join(f"{name} ({n:.1f})" if n > 1.05 else f"{name} (1)" for n, name in few[:3])
    more = f" and {len(few) - 3:,} more" if len(few) > 3 else ""
    return [f"few judges in effect: {shown}{more}"]


def _few_votes(result: Any) -> list[str]:
    """Name items with few votes, if other items have many."""
    found = few_votes(result.judgements)
    names = [f"{_shorten(result.items[k])} ({votes:,.0f})" for k, votes in found.items()]
    if not names or result.judgements.queries.n_queries > 1:
        return []
    more = f" and {counted(len(names) - 3, 'more item')}" if len(names) > 3 else ""
    return [f"fewer than 30 votes: {', '.join(names[:3])}{more}"]


def _resamples(result: Any) -> list[str]:
    """Describe the intervals, whether the first place is clear, and any difficulties."""
    if result.intervals is not None:
        level, judges = f"{100 * result.confidence_level:g} %", result.judgements.judges
        one = result.judgements.queries.n_queries == 1
        kind = "by the information of the votes"
        of_judges = "" if judges is None else f"differences between {counted(len(judges), 'judge')}"
        if result.intervals == "robust":
            kind = "robust to a wrong model"
            kind += f", and to the {of_judges}" if of_judges else ""
        elif of_judges:
            kind += f", which ignores {of_judges}" if len(judges) > 1 else " of one judge"
        return [f"{level} intervals {kind}", *(_first_place(result) if one else [])]
    if result.n_disconnected is None or result.n_unbounded is None:
        return []
    level = f"{100 * result.confidence_level:g} %"
    drawn = f"the {result.resample}"
    one = result.judgements.queries.n_queries == 1
    if one and result.resample == "judges" and result.judgements.judges is not None:
        drawn = f"the {counted(len(result.judgements.judges), 'judge')}"
    lines = [f"{level} intervals from {counted(int(result.n_resamples), 'resample')} of {drawn}"]
    kinds = [
        (result.n_disconnected, "the comparisons do not connect all items that the data connect")
    ]
    if isinstance(result.method, MaximumLikelihood):
        text = "some items never lose to the rest, and only the penalty bounds their scores"
        kinds.append((result.n_unbounded, text))
    for counts, text in kinds:
        if len(counts) == 1 and counts[0]:
            lines.append(f"in {counted(int(counts[0]), 'resample')}, {text}")
        elif counts.any():
            lines.append(
                f"in some resamples of {counted(int(np.count_nonzero(counts)), 'query')}, {text}"
            )
    return lines + (_first_place(result) if one else [])


def _first_place(result: Any) -> list[str]:
    """Report whether the first place is clear."""
    rows = result.rows_of()
    parts = result.parts[rows]
    if np.count_nonzero(parts) < 2:
        return []
    main = rows[main_part(parts)]
    if not len(main):
        return ["first place is open: no part has more than half of the items"]
    among = "all others" if (parts > 0).all() else "all others that were compared"
    if (parts > 1).any():
        among = f"the other {counted(len(main) - 1, 'item')} of part 1"
    best, others = main[0], main[1:]
    name, level = _shorten(result.items[best]), result.confidence_level
    if result.is_first_clear():
        share = f"{50 * (1 + level):g} % or more"
        return [f"first place: {name} is above {among}, each with a probability of {share}"]
    shares = result.probability_matrix()[0, 1 : len(main)]
    rival = int(np.flatnonzero(is_largest(-shares))[0])
    # do not round up to a sufficient share
    found = np.floor(1000 * (shares[rival] + ROUNDING)) / 10
    rival_name = _shorten(result.items[others[rival]])
    return [f"first place is open: {name} is above {rival_name} with a probability of {found:g} %"]


def _shorten(name: Any) -> str:
    text = str(name).replace("\n", " ")
    return text if len(text) <= _NAME else text[: _NAME - 3] + "..."


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}-{high}"


def _decimals(scores: Floats) -> Any:
    """Return a function that writes scores with the decimals that give the largest four digits."""
    finite = np.abs(scores[np.isfinite(scores)])
    largest = float(finite.max(initial=0.0))
    digits = 4 if largest == 0 else int(np.clip(3 - np.floor(np.log10(largest)), 0, 10))
    # -0.0 is shown as 0
    return lambda values: [f"{round(value, digits) + 0.0:.{digits}f}" for value in values.tolist()]


def _column(title: str, cells: list[str], right: bool = False) -> list[str]:
    """Pad the cells of a column to the same width."""
    width = max(map(len, [title, *cells]))
    return [cell.rjust(width) if right else cell.ljust(width) for cell in [title, *cells]]


#: Points per unit of a score, and the score of the mean item without an anchor.
SCALES = {"elo": (400 / np.log(10), 1000.0), "logit": (1.0, 0.0)}
#: Structures with log-odds as scores.
LOGITS = ("BradleyTerry", "PlackettLuce", "LeastSquares")


class VoteProbabilities(NamedTuple):
    """Probabilities of the results of a vote: the first item wins, a tie, the second item wins.

    `tie` is None if the data have ties and the model counts a tie as half a win for each item.
    """

    first: float
    tie: float | None
    second: float


def predict_vote(
    lead: float, board: Board | None, judgements: Judgements, q: int, covariates: dict[str, Any]
) -> VoteProbabilities:
    """Predict a vote of query q, where `lead` is the score difference of the two items.

    `board` is the fit of the query, if it has covariates or ties.
    """
    ties, tie = "half", np.nan
    known: dict[str, float] = {}
    if board is not None:
        n = len(board.names) - len(judgements.feature_names)  # the scores contain the features
        known = dict(zip(board.names[:n], board.fit.coefficients.tolist(), strict=False))
        ties, tie = board.fit.model, board.fit.tie
    for key, value in covariates.items():
        if key not in known:
            raise ValueError(
                f"There is no covariate {key!r}.{did_you_mean(str(key), known)} "
                f"There are: {', '.join(map(repr, known)) or 'none'}."
            )
        if not isinstance(value, Real) or not np.isfinite(float(value)):
            raise ValueError(f"The covariate {key!r} must be a finite number; got {value!r}.")
        lead += known[key] * float(value)
    win, lose, tied = result_probabilities(np.array([lead]), ties, tie)[:, 0].tolist()
    if ties == "half" and _has_ties(judgements, q):
        tied = None
    return VoteProbabilities(win, tied, lose)


def _has_ties(judgements: Judgements, q: int) -> bool:
    """Whether a query has ties: pairs of opposite comparisons of the same weight."""
    if judgements.orders is not None:
        return False
    try:
        contests = contests_of(judgements)
    except ValueError:  # several comparisons are one judgement
        return False
    return bool((contests.outcome[judgements.query[contests.judgement] == q] == 2).any())


def read_scale(method: Structure, scale: str) -> tuple[float, float]:
    """Return the points per unit of a score, and the score of the mean item."""
    check_choice(scale, "scale", SCALES)
    if type(method).__name__ not in LOGITS:
        raise ValueError(
            f"The scores of {method!r} are not log-odds and cannot be rescaled. Use one of "
            f"{', '.join(LOGITS)}."
        )
    return SCALES[scale]


def read_anchor(anchor: Any) -> tuple[Any, float]:
    """Return the item and its score."""
    if not isinstance(anchor, tuple) or len(anchor) != 2:
        raise ValueError(
            f"anchor must be a pair (item, score) such as ('owl', 1000); got {anchor!r}."
        )
    item, value = anchor
    if isinstance(value, bool | str) or not np.isscalar(value) or not np.isfinite(value):
        raise ValueError(f"The score of an anchor must be a finite number; got {value!r}.")
    return item, float(value)  # type: ignore[arg-type]


def find_in_queries(judgements: Judgements, item: Any) -> Ints:
    """Return the row of an item in each query."""
    found = []
    for q in range(judgements.queries.n_queries):  # a loop over queries
        rows = judgements._rows_of_query(q)
        found.append(rows[find_id(judgements.items[rows], item, "item")])
    return np.array(found)


def relative_intervals(result: Any, held: Ints) -> tuple[Floats, Floats]:
    """Return the interval of the difference to the anchor, plus the anchor's score.

    `held` is the row of the anchor of each query.
    """
    low, high, known = result.scores.copy(), result.scores.copy(), result._intervals
    for board, row in zip(result._boards, held, strict=True):  # a loop over queries
        found = evidence_of(result.judgements, board, result.method, known.kind, known.level)
        place = int(np.flatnonzero(board.rows == row)[0])
        scores = found.scores.toarray()
        ends = found.ends(scores - scores[place])
        rest = board.rows[board.rows != row]
        for end, value, nearest in zip((low, high), ends, (np.minimum, np.maximum), strict=True):
            end[rest] = nearest(end[rest], result.scores[row] + value[board.rows != row])
    return low, high


# ---------------------------------------------------------------- next comparisons

# Let S be the covariance of the scores, u = S (e_i - e_j), and v = u_i - u_j the variance of the
# difference of items i and j. A vote between them with information w changes S to
# S - (w / (1 + w v)) u u^T (Sherman, Morrison). This does not depend on the winner: several votes
# can be planned in advance.


#: The assumed standard deviation of the difference between unconnected items.
_UNCONNECTED = 3.0


def plan_comparisons(
    scores: Floats, covariance: Floats, worth: Floats, n: int, target: int | str
) -> Ints:
    """Choose pairs of items sequentially, each as if the pairs before had been answered.

    `scores` (..., m) of each board have this `covariance` (..., m, m). Equal scores are exactly
    equal. `worth` (..., m, m) is the information of a vote about the difference of two items.
    `target` is what to make certain: "first", "all", or the score of one item. The result has shape
    (..., n, 2), the smaller number first. It takes O(m^3) time for each pair.
    """
    m, shape = scores.shape[-1], scores.shape[:-1]
    scores, S = scores.reshape(-1, m), covariance.reshape(-1, m, m).copy()
    worth, board = worth.reshape(-1, m, m), np.arange(len(scores))
    pairs = np.empty((len(scores), n, 2), dtype=np.int64)
    for step in range(n):  # a loop over the pairs; each depends on the pairs before
        variance = np.maximum(_of_differences(S), 0.0)
        if isinstance(target, str):
            shrinks = _of_differences(_shrinks(S, _weights(scores, variance, target)))
        else:  # the square of the target's entry of u
            shrinks = (S[:, target, :, None] - S[:, target, None]) ** 2
        gain = np.triu(shrinks * worth / (1 + worth * variance), 1)
        i, j = np.divmod(np.argmax(is_largest(gain.reshape(len(S), -1)), axis=1), m)
        u, w = S[board, i] - S[board, j], worth[board, i, j]
        shrink = w / (1 + w * variance[board, i, j])
        S -= shrink[:, None, None] * u[:, :, None] * u[:, None]
        pairs[:, step] = np.column_stack([i, j])
    return pairs.reshape(*shape, n, 2)


def _of_differences(covariance: Floats) -> Floats:
    """Return the variance of the difference of each pair of entries, of shape (n_boards, m, m)."""
    own = np.diagonal(covariance, axis1=1, axis2=2)
    return own[:, :, None] + own[:, None] - 2 * covariance


def _shrinks(S: Floats, L: Floats) -> Floats:
    """Return the product of S, the Laplacian matrix of the weights L, and S.

    For a pair with u = S (e_i - e_j), its entries give u^T (Laplacian) u. The matrix is also the
    sum over weights of w d d^T with d = S (e_a - e_b), which is shorter if few weights matter.
    """
    m = S.shape[1]
    if len(S) == 1:
        one, other = np.nonzero(np.triu(L[0] > 1e-12 * L[0].max()))
        if 2 * len(one) < m:
            moves = (S[0, :, one] - S[0, :, other]).T
            return np.asarray(((moves * L[0, one, other]) @ moves.T)[None])
    laplacian = L.sum(axis=1)[:, None] * np.eye(m) - L
    return np.asarray(S @ laplacian @ S)


def _weights(scores: Floats, variance: Floats, target: str) -> Floats:
    """Return the cost of the variance of each difference, up to a common factor.

    If a difference has mean d and variance v, deciding for the sign of d has the expected loss E
    max(0, -sign(d) difference) = sqrt(v) phi(z) - |d| Phi(-z), where z = |d| / sqrt(v). The
    derivative of this by v is phi(z) / (2 sqrt(v)).
    """
    difference = scores[..., :, None] - scores[..., None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        power = -(difference**2) / variance / 2 - np.log(variance) / 2
    power[~(variance > 0)] = -np.inf
    if target == "first":
        best = scores == scores.max(axis=-1, keepdims=True)  # several can share the first place
        power[~(best[..., :, None] | best[..., None, :])] = -np.inf
    power[..., np.eye(scores.shape[-1], dtype=bool)] = -np.inf
    return np.exp(power - power.max(axis=(-2, -1), keepdims=True))


def next_comparisons(
    judgements: Judgements,
    structure: Structure,
    scores: Floats,
    boards: list[Board] | None,
    n: int,
    target: Any,
    q: int | None,
) -> list[tuple[Any, ...]]:
    """Plan comparisons of a query, or of all queries if `q` is None; see `Aggregate`.

    `boards` are the fits of all queries, if there are any.
    """
    queries = judgements.queries
    if q is None and target not in ("first", "all"):
        raise ValueError(
            f"target={target!r} needs a query, and there are several queries. Pass group=, "
            "or target='first' or 'all'."
        )
    orders = judgements.orders is not None
    if isinstance(structure, PlackettLuce):
        structure = structure if orders else structure.for_votes()
    elif orders or not isinstance(structure, BradleyTerry):
        kind, name = ("orders", "plackett_luce") if orders else ("votes", "btl")
        raise ValueError(
            f"next_comparisons of {kind} needs a fit of {name!r}, but the method is {structure!r}. "
            f"Use aggregate(judgements, {name!r})."
        )
    if q is None:
        if boards is None and structure._takes_sums(judgements):
            return _plans_of_all(judgements, structure, scores, n, target)
        return [
            (queries.ids[q : q + 1].tolist()[0], *pair)
            for q in np.flatnonzero(queries.sizes > 1).tolist()
            for pair in next_comparisons(judgements, structure, scores, boards, n, target, q)
        ]
    if boards is None:
        read, rows = judgements._of_query(q)
        one = (structure.fit_boards(read) if orders else fit_boards(read, structure))[0]
        one = one._replace(rows=rows[one.rows])
    else:
        one = boards[q]
    ids = judgements.items[one.rows]
    if len(ids) < 2:
        raise ValueError("next_comparisons needs at least 2 items; there is only 1.")
    if not isinstance(target, str) or target not in ("first", "all"):
        target = find_id(ids, target, "item")
    # Number items from the best, with ties broken by id: the plan must not depend on the order of
    # the votes.
    scores = tie_scores(one.scores, structure, Queries.single(len(ids)))
    order = np.lexsort((content_ranks(ids), -scores))
    if not isinstance(target, str):
        target = int(np.flatnonzero(order == target)[0])
    scores, covariance = scores[order], one.of_scores(one.fit.inverse())
    part = one.fit.part
    if (part != part[0]).any():
        covariance += _UNCONNECTED**2 * (part[:, None] == part)
    difference = scores[:, None] - scores
    worth = vote_information(difference.ravel(), one.fit.model, one.fit.tie)
    worth, covariance = worth.reshape(difference.shape), covariance[np.ix_(order, order)]
    pairs = plan_comparisons(scores, covariance, worth, n, target)
    items = ids[order].tolist()
    return [(items[i], items[j]) for i, j in pairs.tolist()]


def _plans_of_all(
    read: Judgements, structure: BradleyTerry, scores: Floats, n: int, target: str
) -> list[tuple[Any, ...]]:
    """Plan n comparisons of each query in batches, for votes without covariates."""
    queries, preferences = read.queries, read.preferences()
    positive = preferences.weight > 0
    wins = preferences.winner[positive], preferences.loser[positive]
    part, ridge = penalties_of(wins, queries.n_rows, structure)
    scores = tie_scores(np.nan_to_num(scores), structure, queries)
    order = np.lexsort((content_ranks(read.items), -scores, queries.codes))  # rows, best first
    place = queries.scatter(np.arange(queries.n_rows))
    planned = []
    for inside in queries.equal_pair_blocks():
        if inside.shape[1] < 2:
            continue
        rows = order[inside]
        at = place[rows] - inside[:, :1]
        weight = preferences.matrices(inside)
        weight += weight.swapaxes(1, 2)
        weight = weight[np.arange(len(at))[:, None, None], at[:, :, None], at[:, None]]
        s = scores[rows]
        difference = s[:, :, None] - s[:, None]
        worth = expit(difference) * expit(-difference)
        same = part[rows][:, :, None] == part[rows][:, None]
        # the information, with ones added within each part (scores add up to 0) to make it regular
        information = same - weight * worth
        at_diagonal = np.arange(inside.shape[1])
        information[:, at_diagonal, at_diagonal] += (weight * worth).sum(axis=2) + ridge[rows]
        covariance = np.linalg.inv(information)
        center = np.eye(inside.shape[1]) - same / same.sum(axis=2, keepdims=True)
        covariance = center @ covariance @ center
        covariance += _UNCONNECTED**2 * (same & ~same.all(axis=(1, 2), keepdims=True))
        pairs = plan_comparisons(s, covariance, worth, n, target)
        query = np.repeat(queries.codes[rows[:, 0]], n)
        found = np.take_along_axis(rows, pairs.reshape(len(rows), -1), axis=1).reshape(-1, 2)
        planned.append(np.column_stack([query, found]))
    if not planned:
        raise ValueError(
            "next_comparisons needs a query with at least 2 items; each query has only 1."
        )
    q, one, other = (found := np.concatenate(planned))[np.argsort(found[:, 0], kind="stable")].T
    columns = queries.ids[q], read.items[one], read.items[other]
    return list(zip(*(column.tolist() for column in columns), strict=True))
