"""Simulated boards with a known truth, to count how often their statements are wrong.

A *world* is a function (random, n) -> (judgements, truth), with n votes or judges. A *statement* is
a function (board, truth) -> array of bool: whether each instance of it is wrong or, for the power,
made. ``python -m tests.aggregation.worlds 400`` prints the rates of all worlds and statements in
400 boards each; tests use fewer. ``python -m tests.aggregation.worlds 10000 "added wins"`` counts
violations of the law that one more win of an item lowers nothing that is said for it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import binom

from sklearn_rankcal import Judgements, aggregate
from sklearn_rankcal.aggregation import BradleyTerry, aggregate_categories

Bools = NDArray[np.bool_]


class Truth(NamedTuple):
    """The scores of the items "0", "1", ..., and the effects by name."""

    scores: NDArray[np.float64]
    effects: dict[str, float]


# ---------------------------------------------------------------- worlds


def vote(
    random: np.random.Generator,
    first: Any,
    second: Any,
    lead: Any,
    scores: Any,
    *,
    tie: float | None = None,
    effects: dict[str, float] | None = None,
    soft: bool = False,
    **options: Any,
) -> tuple[Judgements, Truth]:
    """Draw votes: if `tie` is given, by Davidson's model; if `soft`, with their probabilities."""
    if soft:
        a, b = first.astype(str), second.astype(str)
        read = Judgements.from_votes(a, b, a, probability=expit(lead), **options)
        return read, Truth(np.asarray(scores, dtype=float), effects or {})
    draw = random.random(len(first))
    if tie is None:
        result = np.where(draw < expit(lead), "a", "b")
    else:
        odds = np.exp([lead / 2, -lead / 2, np.full(len(lead), tie)])
        win, lose, _ = odds / odds.sum(axis=0)
        result = np.where(draw < win, "a", np.where(draw < win + lose, "b", "tie"))
    words = np.where(result == "a", "model_a", np.where(result == "b", "model_b", "tie"))
    read = Judgements.from_votes(first.astype(str), second.astype(str), words, **options)
    return read, Truth(np.asarray(scores, dtype=float), effects or {})


def new_item(random: Any, n: int, lead: float = 0.0) -> Any:
    """Five settled items, and a new one with n votes, ahead by `lead`."""
    scores = np.append(np.linspace(-1, 1, 5), 1 + lead)
    first = np.append(random.integers(0, 5, 600), np.full(n, 5))
    second = np.append((first[:600] + random.integers(1, 5, 600)) % 5, random.integers(0, 5, n))
    return vote(random, first, second, scores[first] - scores[second], scores)


def two_groups(random: Any, n: int, lead: float = 0.0) -> Any:
    """Two groups of three items with 150 votes inside each, and n votes between them."""
    scores = np.append(np.zeros(3), np.full(3, lead))
    inside = random.integers(0, 3, 300) + np.repeat([0, 3], 150)
    first = np.append(inside, random.integers(0, 3, n))
    second = (inside - np.repeat([0, 3], 150) + random.integers(1, 3, 300)) % 3
    second = np.append(second + np.repeat([0, 3], 150), random.integers(3, 6, n))
    return vote(random, first, second, scores[first] - scores[second], scores)


def six_items(
    random: Any,
    n: int,
    spread: float = 0.0,
    effect: float | None = None,
    planted: float = 0.0,
    n_judges: int = 0,
    **options: Any,
) -> Any:
    """Six items with n votes, and an effect of the position in the model, or `planted`."""
    scores = spread * np.linspace(-1, 1, 6)
    first = random.integers(0, 6, n)
    second = (first + random.integers(1, 6, n)) % 6
    lead = scores[first] - scores[second] + (effect or 0.0) + planted
    if n_judges:
        options["judge"] = random.integers(0, n_judges, n).astype(str)
    if effect is not None:
        options |= {"position": True, "effects": {"position": effect}}
    return vote(random, first, second, lead, scores, **options)


def sparse_covariate(random: Any, n: int, effect: float = 0.5) -> Any:
    """Four items with 200 votes, and a covariate that is 0 except in n of the votes."""
    scores = np.linspace(-0.5, 0.5, 4)
    first = random.integers(0, 4, 200)
    second = (first + random.integers(1, 4, 200)) % 4
    x = np.zeros(200)
    x[:n] = random.choice([-1.0, 1.0], n)
    lead = scores[first] - scores[second] + effect * x
    return vote(random, first, second, lead, scores, covariates=x[:, None], effects={"x0": effect})


def weighted(random: Any, n: int) -> Any:
    """Six equal items with n votes of different weights."""
    return six_items(random, n, weight=random.exponential(size=n) + 0.1)


def judges(
    random: Any, n: int, tastes: float = 0.7, lead: float = 0.0, votes: int = 24, k: int = 2,
    **options: Any,
) -> Any:  # fmt: skip
    """n judges with `votes` votes each on k items, and tastes of this standard deviation."""
    scores = np.zeros(k)
    scores[0] = lead
    judge = np.repeat(np.arange(n), votes)
    first = random.integers(0, k, len(judge))
    second = (first + random.integers(1, k, len(judge))) % k
    taste = tastes * random.standard_normal((n, k)) / np.sqrt(2)
    ahead = scores[first] - scores[second] + taste[judge, first] - taste[judge, second]
    return vote(random, first, second, ahead, scores, judge=judge.astype(str), **options)


def thin_cut(random: Any, n: int, spread: float = 0.4) -> Any:
    """n votes on six items in category 0, and 150 in each of two others."""
    category = np.repeat([0, 1, 2], [n, 150, 150])
    scores = spread * random.standard_normal((3, 6))
    first = random.integers(0, 6, len(category))
    second = (first + random.integers(1, 6, len(category))) % 6
    ahead = scores[category, first] - scores[category, second]
    read, truth = vote(random, first, second, ahead, scores[0])
    return (read, category), truth


def judge_set(random: Any, shown: Any, scores: Any, shape: str) -> list[list[int]]:
    """Return the tiers of an "order", a "choice" or a "best-worst" choice of shown items."""
    order = shown[np.argsort(-scores[shown] - random.gumbel(size=len(shown)))].tolist()
    if shape == "order":
        return [[item] for item in order]
    tiers = [order[:1], order[1:]] if shape == "choice" else [order[:1], order[1:-1], order[-1:]]
    return [tier for tier in tiers if tier]


def best_worst(
    random: Any, n: int, spread: float = 1.0, tastes: float = 0.0, respondents: bool = False
) -> Any:
    """n respondents with five sets of four of eight items, for the best and the worst of each.

    The scores are those of the board of infinitely many such respondents, if tastes are 0.
    """
    scores, tiers = spread * np.linspace(-1, 1, 8), []
    for _ in range(n):
        mine = scores + tastes * random.standard_normal(8)
        shown = np.concatenate([random.permutation(8) for _ in range(3)])[:20].reshape(5, 4)
        shown = [row if len(set(row)) == 4 else random.permutation(8)[:4] for row in shown]
        tiers += [judge_set(random, row, mine, "best-worst") for row in shown]
    judge = np.repeat(np.arange(n), 5) if respondents else None
    tiers = [[[str(item) for item in tier] for tier in order] for order in tiers]
    return Judgements.from_orders(tiers, judge=judge), Truth(scores, {})


# ---------------------------------------------------------------- statements


def of_cut(board: Any, truth: Truth) -> Bools:
    """Whether the interval of each score in category 0 misses it, and each pair is wrong."""
    rows, found = board.rows_of(0), np.zeros((6, 7), dtype=bool)
    items = board.items[rows].astype(int)
    true = truth.scores[items] - truth.scores.mean()
    found[items, 6] = (true < board.score_low[rows]) | (true > board.score_high[rows])
    clear = board.probability_matrix(0) >= (1 + board.confidence_level) / 2 - 1e-9
    found[np.ix_(items, items)] = clear & (true[:, None] <= true)
    return found.ravel()


def pairs(board: Any, truth: Truth) -> Bools:
    """Whether each pair is said to be in the wrong order, or in an order if there is none."""
    items = board.items[board.rows_of()].astype(int)
    clear = board.probability_matrix() >= (1 + board.confidence_level) / 2 - 1e-9
    true = truth.scores[items]
    wrong = np.zeros((len(truth.scores), len(truth.scores)), dtype=bool)
    wrong[np.ix_(items, items)] = clear & (true[:, None] <= true)
    return wrong


def scores(board: Any, truth: Truth) -> Bools:
    """Whether the interval of each score misses it."""
    items, parts = board.items.astype(int), board.parts
    true = truth.scores[items]
    mean = np.bincount(parts, true) / np.maximum(np.bincount(parts), 1)
    true = true - mean[parts]
    missed = np.zeros(len(truth.scores), dtype=bool)
    missed[items] = (true < board.score_low) | (true > board.score_high)
    return missed


def effects(board: Any, truth: Truth) -> Bools:
    """Whether the interval of each effect misses it."""
    found = [one for one in board.coefficients if one.name in truth.effects]
    true = np.array([truth.effects[one.name] for one in found])
    return np.array([one.low for one in found] > true) | ([one.high for one in found] < true)


def wrong_first(board: Any, truth: Truth) -> Bools:
    """Whether an item that is not the only best is said to be clearly first."""
    true = truth.scores[board.items.astype(int)]
    right = (true < true[board.rows_of()[0]]).sum() == len(true) - 1
    return np.array([board.is_first_clear() and not right])


def right_first(board: Any, truth: Truth) -> Bools:
    """Whether the best item is said to be clearly first (the power)."""
    return np.array([board.is_first_clear() and not wrong_first(board, truth)[0]])


def ranks(board: Any, truth: Truth) -> Bools:
    """Whether a simultaneous interval of a rank misses it, for items of different scores."""
    low, high = board.simultaneous_ranks()
    true = np.argsort(np.argsort(-truth.scores[board.items[board.rows_of()].astype(int)])) + 1
    return np.array([((true < low) | (true > high)).any()])


Statement = Callable[[Any, Truth], Bools]


def alarm(name: str) -> Statement:
    """Return whether a probe of an audit at level .05 fires."""

    def fires(board: Any, truth: Truth) -> Bools:
        if not hasattr(board, "_fires"):
            board._fires = {one.name: one.fires for one in board.audit(level=0.05).probes}
        return np.array([board._fires[name] is True])

    return fires


def rates(
    world: Any,
    statements: dict[str, Statement],
    n: int,
    n_boards: int,
    seed: int = 0,
    method: Any = "btl",
    **options: Any,
) -> dict[str, float]:
    """Return the largest rate over the instances of each statement."""
    found: dict[str, list[Bools]] = {name: [] for name in statements}
    options = options or {"intervals": "information"}
    for k in range(n_boards):
        read, truth = world(np.random.default_rng([seed, n, k]), n)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                if isinstance(read, tuple):  # votes and their categories
                    board = aggregate_categories(*read, method, **options)
                else:
                    board = aggregate(read, method, **options)
            except ValueError:  # votes that the model refuses, such as one vote with ties
                continue
            for name, statement in statements.items():
                found[name].append(statement(board, truth))
    return {name: float(np.mean(one, axis=0).max()) for name, one in found.items() if one}


def two_item_rates(n: int, level: float = 0.95, **options: Any) -> dict[str, float]:
    """Return the largest rates for two items with n votes over their probabilities, enumerated."""
    shares = np.linspace(0.5, 0.95, 46)
    leads, options = np.log(shares / (1 - shares)), options or {"intervals": "information"}
    misses, wrong, power = np.zeros((3, len(shares), n + 1))
    for won in range(n + 1):
        votes = [("0", "1")] * won + [("1", "0")] * (n - won)
        read = Judgements.from_pairs(votes, items=["0", "1"])
        board = aggregate(read, confidence_level=level, **options)
        at = int(np.flatnonzero(board.items == "0")[0])
        low, high = 2 * board.score_low[at], 2 * board.score_high[at]
        misses[:, won] = (leads < low) | (leads > high)
        above = board.probability_above("0", "1") > (1 + level) / 2
        wrong[0, won], power[:, won] = board.is_first_clear(), above
    chance = binom.pmf(np.arange(n + 1), n, shares[:, None])
    rate = [(one * chance).sum(axis=1) for one in (misses, wrong, power)]
    return {"scores": rate[0].max(), "wrong first": rate[1][0], "power at .9": rate[2][40]}


def added_wins(n: int, seed: int = 0, soft: bool = False, **options: Any) -> NDArray[np.float64]:
    """Add a win to each of n random boards of 3 to 6 items and 5 to 40 votes.

    If `soft`, the other votes have probabilities. Return the smallest change of z of the winner
    above any other item, and the changes of the ends of its interval, of shape (n, 3). None is
    negative.
    """
    random = np.random.default_rng(seed)
    pairs, groups, shares, winners = [], [], [], random.integers(6, size=n)
    for k in range(n):
        r, votes = int(random.integers(3, 7)), int(random.integers(5, 41))
        scores = random.normal(size=r) * random.choice([0.3, 1.0, 3.0])
        first = np.append(np.arange(1, r), random.integers(0, r, votes - r + 1))
        second = (first + random.integers(1, r, votes)) % r
        second[: r - 1] = random.integers(0, first[: r - 1])  # the votes connect all items
        won = random.random(votes) < expit(scores[first] - scores[second])
        mine = np.column_stack([np.where(won, first, second), np.where(won, second, first)])
        winners[k] %= r
        added = [winners[k], (winners[k] + int(random.integers(1, r))) % r]
        pairs += [mine, mine, [added]]
        groups.append(np.repeat([2 * k, 2 * k + 1], [votes, votes + 1]))
        share = random.random(votes) if soft else np.ones(votes)
        shares.append(np.concatenate([share, share, [1.0]]))
    pairs, groups, shares = map(np.concatenate, (pairs, groups, shares))
    read = Judgements.from_pairs(pairs, groups=groups, probability=shares)
    board = aggregate(read, **(options or {"intervals": "information"}))
    found = np.empty((n, 2, 3))
    for k, winner in enumerate(winners):
        z = []
        for j in range(2):
            rows = board.rows_of(2 * k + j)
            items = board.items[rows]
            row, order = rows[items == winner][0], np.argsort(items)
            z.append(board._quantiles(2 * k + j)[0][items == winner][0][order])
            found[k, j, 1:] = board.score_low[row], board.score_high[row]
        found[k, :, 0] = 0.0, (z[1] - z[0]).min()
    with np.errstate(invalid="ignore"):
        return np.where(found[:, 0] == found[:, 1], 0.0, found[:, 1] - found[:, 0])


SIZES = (1, 2, 3, 5, 8, 10, 20, 50)
#: Numbers of votes of audits.
AUDITED = (3, 5, 12, 20, 50, 100, 1000)
OF_BOARD: dict[str, Statement] = {"pairs": pairs, "scores": scores, "first": wrong_first}
OF_EFFECT: dict[str, Statement] = {**OF_BOARD, "effects": effects}
POWER: dict[str, Statement] = {"power": right_first}
TESTS = ("position", "cycles", "random judges", "opposed judges", "partial judges")
AUDIT: dict[str, Statement] = {name: alarm(name) for name in TESTS}
ORDERS = {"method": "plackett_luce", "intervals": "information"}
DAVIDSON, ROBUST = {"method": BradleyTerry(ties="davidson")}, {"intervals": "robust"}
WORLDS: dict[str, tuple[Any, dict[str, Statement], dict[str, Any]]] = {
    "new item": (new_item, OF_BOARD, {}),
    "new item ahead by 1, resamples": (partial(new_item, lead=1.0), OF_BOARD, {"n_resamples": 200}),
    "new item ahead by 3": (partial(new_item, lead=3.0), POWER, {}),
    "two groups": (two_groups, OF_BOARD, {}),
    "two groups, robust": (two_groups, OF_BOARD, ROBUST),
    "six items": (six_items, OF_BOARD, {}),
    "six items, spread .3": (partial(six_items, spread=0.3), {"ranks": ranks}, {}),
    "six items, spread 1": (partial(six_items, spread=1.0), POWER, {}),
    "position": (partial(six_items, effect=0.3), OF_EFFECT, {}),
    "sparse covariate": (sparse_covariate, OF_EFFECT, {}),
    "davidson": (partial(six_items, effect=0.3, tie=-0.5), OF_EFFECT, DAVIDSON),
    "thin cut": (thin_cut, {"pairs and scores": of_cut}, {}),
    "thin cut, robust": (thin_cut, {"pairs and scores": of_cut}, ROBUST),
    "weights": (weighted, OF_BOARD, ROBUST),
    "penalty": (six_items, OF_BOARD, {"method": BradleyTerry(penalty=0.1)}),
    "judges, tastes 0": (partial(judges, tastes=0.0), OF_BOARD, ROBUST),
    "judges, tastes .7": (judges, OF_BOARD, ROBUST),
    "judges, tastes 3": (partial(judges, tastes=3.0), OF_BOARD, ROBUST),
    "judges, tastes 20": (partial(judges, tastes=20.0), OF_BOARD, ROBUST),
    "judges, tastes .7, lead 1": (partial(judges, lead=1.0), POWER, ROBUST),
    "four items, judges, soft votes": (partial(judges, k=4, soft=True), OF_BOARD, ROBUST),
    "four items, judges": (partial(judges, k=4), OF_BOARD, ROBUST),
    "best-worst": (best_worst, OF_BOARD, ORDERS),
    "best-worst, equal": (partial(best_worst, spread=0.0), OF_BOARD, ORDERS),
    "best-worst, respondents": (
        partial(best_worst, respondents=True),
        OF_BOARD,
        {**ORDERS, **ROBUST},
    ),
    "audit": (partial(six_items, spread=1.0), AUDIT, {}),
    "audit, 5 judges": (partial(six_items, spread=1.0, n_judges=5), AUDIT, {}),
    "audit, 30 judges": (partial(six_items, spread=1.0, n_judges=30), AUDIT, {}),
    "audit, position .5": (partial(six_items, spread=1.0, planted=0.5), AUDIT, {}),
}


def main(n_boards: int, names: list[str]) -> None:
    if names == ["added wins"]:
        blocks = [min(100, n_boards - k) for k in range(0, n_boards, 100)]
        changes = np.concatenate([added_wins(n, seed) for seed, n in enumerate(blocks)])
        for bound in (1e-6, 1e-5, 1e-4, 1e-3):
            lowered = (changes < -bound).sum(axis=0)
            print(f"{n_boards:,} wins, lower by {bound:g}: z {lowered[0]}, ends {lowered[1:]}")
        return
    print(f"{'largest rate of errors, nominal .05':40}", *(f"{n:>5}" for n in SIZES))
    if not names:
        rows = [two_item_rates(n) for n in SIZES]
        for key in rows[0]:
            print(f"{'two items, enumerated: ' + key:40}", *(f"{row[key]:5.3f}" for row in rows))
    for name in names or WORLDS:
        world, statements, options = WORLDS[name]
        sizes = [n for n in SIZES if n > 1 or "judges" not in name]
        if statements is AUDIT:
            sizes = list(AUDITED)
            print(f"{'votes':40}", *(f"{n:>5}" for n in sizes))
        found = {n: rates(world, statements, n, n_boards, **options) for n in sizes}
        for key in statements:
            cells = [found[n].get(key, np.nan) for n in sizes]
            if sizes != list(AUDITED):
                cells = [np.nan] * (len(SIZES) - len(sizes)) + cells
            print(f"{name + ': ' + key:40}", *(f"{cell:5.3f}" for cell in cells), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400, sys.argv[2:])
