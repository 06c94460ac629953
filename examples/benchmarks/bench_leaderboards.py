"""Coverage of the intervals of leaderboards, and the time to compute them.

    python examples/benchmarks/bench_leaderboards.py
    python examples/benchmarks/bench_leaderboards.py --parts scores ranks judges seconds

scores   Leaderboards of Bradley-Terry-Luce votes between items with normal scores of standard
         deviation 1: the share of true scores, centred, inside 95 % intervals. "aggregate" are the
         intervals of `aggregate`, which survive one more vote against them; "percentile" are
         percentiles; "basic" percentiles reflected at the estimate; "normal" 1.96 standard
         deviations of resamples.
ranks    The same for ranks: "pairs" are the intervals of `aggregate`, from the probabilities of
         pairs, and "percentile" the percentiles of resampled ranks. Scores are equally spaced, from
         -spread to spread. A spread of 0.1 or less is a world of near-ties, and 0 a world of ties,
         where the items are ranked by their numbers.
judges   Votes of judges who disagree: each judge adds individual normal numbers to the scores. The
         true scores belong to the expected votes of all judges. Resamples draw judgements or
         judges; "robust" are intervals without resamples.
kinds    The intervals without resamples, of scores and of effects, for votes that depend on the
         position and on a covariate. "sparse" are designs with 40 votes per item, "dense" with 400.
         With judges, each has individual tastes, and the true scores belong to the expected votes.
peers    Processor seconds from a table of votes to scores, compared with evalica, choix, arena-rank
         and statsmodels, if installed; and to robust intervals, which arena-rank has. Peers get
         their input as lists, codes or dummies. Its preparation is not timed, and arena-rank is
         compiled beforehand. The gap is the log-likelihood of a vote below the best. "no" is a
         package without covariates. "-" was not tried: more votes than --peer-votes, more than 10
         million numbers of dummies, or more than 1,000 items with dense matrices.
seconds  Ten million votes on 50 models, and 100,000 votes on 1,000 queries of 10.

The coverage of a kind of interval is over all items of all leaderboards. Its standard error is at
most 0.25 percentage points for 1,000 leaderboards of 8 items or more.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from _harness import print_table
from sklearn.exceptions import ConvergenceWarning

from sklearn_rankcal import Judgements, aggregate
from sklearn_rankcal.aggregation import BradleyTerry
from sklearn_rankcal.aggregation._bootstrap import CHUNK, make_runs

PARTS = ("scores", "ranks", "judges", "kinds", "peers", "seconds")
#: (items, votes) of a leaderboard.
SIZES = [(10, 1000), (20, 5000), (10, 300), (10, 150), (8, 100)]
SPREADS = [1.0, 0.5, 0.3, 0.1, 0.03, 0.0]
#: (judges, standard deviation of their tastes); the scores go from -1 to 1.
JUDGES = [(100, 0.0), (100, 0.5), *((n, 1.0) for n in (100, 40, 20, 15, 10, 5, 3))]
#: (items, votes of each item, judges or 0, worlds in a hundred)
KINDS = [(10, 40, 0, 100), (10, 400, 0, 100), (50, 40, 0, 20), (50, 400, 0, 20),
         (200, 40, 0, 5), (200, 400, 0, 5), (10, 400, 20, 50), (50, 400, 50, 10)]  # fmt: skip
PEERS = ("evalica", "choix", "arena_rank", "statsmodels")
#: (votes, items)
PEER_SIZES = [(10_000, 100), (10_000, 5000), (1_000_000, 100), (1_000_000, 5000),
              (10_000_000, 100), (10_000_000, 5000)]  # fmt: skip


def draw_votes(rng: Any, scores: Any, n_votes: int) -> Any:
    """Votes on random pairs, of shape (n_worlds, n_votes, 2), for scores (n_worlds, r)."""
    n_worlds, r = scores.shape
    i = rng.integers(r, size=(n_worlds, n_votes))
    j = (i + rng.integers(1, r, size=i.shape)) % r
    gap = np.take_along_axis(scores, i, 1) - np.take_along_axis(scores, j, 1)
    first = rng.random(i.shape) < 1 / (1 + np.exp(-gap))
    return np.stack([np.where(first, i, j), np.where(first, j, i)], axis=-1)


def as_judgements(votes: Any, **options: Any) -> Judgements:
    """One query for each world."""
    n_worlds, n_votes, _ = votes.shape
    groups = np.repeat(np.arange(n_worlds), n_votes)
    return Judgements.from_pairs(votes.reshape(-1, 2), groups=groups, **options)


def resampled(judgements: Judgements, n_resamples: int) -> Iterator[tuple[Any, ...]]:
    """Yield the rows, the run and the samples of some worlds."""
    sizes = [min(CHUNK, n_resamples - start) for start in range(0, n_resamples, CHUNK)]
    first = 0
    for run in make_runs(judgements, BradleyTerry(), "judgements", n_resamples, seed=0):
        chunks = [run.resample(chunk, n) for chunk, n in enumerate(sizes)]
        rows = slice(first, first + run.queries.n_rows)
        yield rows, run, np.concatenate([chunk.scores for chunk in chunks])
        first = rows.stop


def report_scores(n_worlds: int, n_resamples: int) -> None:
    rows = []
    for seed, (r, n_votes) in enumerate(SIZES):
        rng = np.random.default_rng(seed)
        scores = rng.normal(size=(n_worlds, r))
        judgements = as_judgements(draw_votes(rng, scores, n_votes))
        board = aggregate(judgements, n_resamples=n_resamples)
        found = board.scores
        true = (scores - scores.mean(axis=1, keepdims=True))[
            judgements.queries.codes, judgements.items
        ]
        held: dict[str, list[Any]] = {}
        for part, _, samples in resampled(judgements, n_resamples):
            centre, plain = found[part], np.nanquantile(samples, [0.025, 0.975], axis=0)
            spread = 1.96 * np.nanstd(samples, axis=0)
            kinds = {
                "aggregate": (board.score_low[part], board.score_high[part]),
                "percentile": plain,
                "basic": 2 * centre - plain[::-1],
                "normal": (centre - spread, centre + spread),
            }
            for name, (low, high) in kinds.items():
                held.setdefault(name, []).append((low <= true[part]) & (true[part] <= high))
        shares = {name: f"{np.concatenate(values).mean():.1%}" for name, values in held.items()}
        rows.append([f"{r} items, {n_votes:,} votes", *shares.values()])
    print_table("scores held by 95 % intervals", ["", *shares], rows)


def report_ranks(n_worlds: int, n_resamples: int) -> None:
    rows = []
    r, n_votes = 10, 1000
    for seed, spread in enumerate(SPREADS):
        rng = np.random.default_rng(seed)
        scores = np.tile(np.linspace(spread, -spread, r), (n_worlds, 1))
        judgements = as_judgements(draw_votes(rng, scores, n_votes))
        true = judgements.items + 1
        held: dict[str, list[Any]] = {"pairs": [], "percentile": []}
        length: dict[str, list[Any]] = {"pairs": [], "percentile": []}
        board = aggregate(judgements, n_resamples=n_resamples)
        for part, run, samples in resampled(judgements, n_resamples):
            matrix = samples.reshape(len(samples), run.queries.n_queries, r)
            ranks = np.argsort(np.argsort(-matrix, axis=2), axis=2).reshape(len(samples), -1) + 1
            options = {"axis": 0, "method": "inverted_cdf"}
            kinds = {
                "pairs": (board.rank_low[part], board.rank_high[part]),
                "percentile": np.quantile(ranks, [0.025, 0.975], **options),
            }
            for name, (low, high) in kinds.items():
                held[name].append((low <= true[part]) & (true[part] <= high))
                length[name].append(high - low + 1)
        cells = [f"spread {spread:g}"]
        for name in ("pairs", "percentile"):
            inside = np.concatenate(held[name])
            places = [inside[true == place].mean() for place in range(1, r + 1)]
            mean_length = np.concatenate(length[name]).mean()
            cells += [f"{inside.mean():.1%}", f"{min(places):.1%}", f"{mean_length:.1f}"]
        rows.append(cells)
    header = ["", "pairs", "worst place", "length", "percentile", "worst place", "length"]
    print_table(f"ranks held by 95 % intervals, {r} items, {n_votes:,} votes", header, rows)


def expected_scores(scores: Any, taste: float) -> Any:
    """Scores of the expected votes of judges who add normal numbers to the scores."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(61)
    i, j = np.nonzero(~np.eye(len(scores), dtype=bool))
    gap = scores[i] - scores[j] + np.sqrt(2) * taste * nodes[:, None]
    share = weights @ (1 / (1 + np.exp(-gap))) / weights.sum()
    expected = Judgements.from_pairs(np.column_stack([i, j]), weight=share)
    result = aggregate(expected, "btl")
    return result.scores[np.argsort(result.items)]


def report_judges(n_worlds: int, n_resamples: int) -> None:
    rows = []
    r, n_votes = 8, 2000
    scores = np.linspace(-1, 1, r)
    for n_judges, taste in JUDGES:
        rng = np.random.default_rng(n_judges)
        judge = np.tile(np.arange(n_votes) % n_judges, (n_worlds, 1))
        own = scores + taste * rng.normal(size=(n_worlds, n_judges, r))
        i = rng.integers(r, size=judge.shape)
        j = (i + rng.integers(1, r, size=judge.shape)) % r
        world = np.arange(n_worlds)[:, None]
        gap = own[world, judge, i] - own[world, judge, j]
        first = rng.random(judge.shape) < 1 / (1 + np.exp(-gap))
        votes = np.stack([np.where(first, i, j), np.where(first, j, i)], axis=-1)
        judgements = as_judgements(votes, judge=judge.reshape(-1))
        true = expected_scores(scores, taste)[judgements.items]
        cells = [f"{n_judges} judges, taste {taste:g}"]
        for kind in ("judgements", "judges", "robust"):
            options: dict[str, Any] = {"n_resamples": n_resamples, "resample": kind}
            if kind == "robust":
                options = {"intervals": "robust"}
            result = aggregate(judgements, **options)
            held = (result.score_low <= true) & (true <= result.score_high)
            cells += [f"{held.mean():.1%}", f"{(result.score_high - result.score_low).mean():.2f}"]
        rows.append(cells)
    header = ["", "judgements", "length", "judges", "length", "robust", "length"]
    print_table(f"scores held by 95 % intervals, {r} items, {n_votes:,} votes", header, rows)


def report_kinds(n_worlds: int) -> None:
    rows = []
    for seed, (r, per_item, n_judges, percent) in enumerate(KINDS):
        rng = np.random.default_rng(seed)
        n_votes, worlds = r * per_item // 2, max(n_worlds * percent // 100, 10)
        taste = 1.0 if n_judges else 0.0
        scores = np.linspace(-1, 1, r)
        shape = (worlds, n_votes)
        i = rng.integers(r, size=shape)
        j = (i + rng.integers(1, r, size=shape)) % r
        x, judge = (
            rng.normal(size=shape),
            np.tile(np.arange(n_votes) % max(n_judges, 1), (worlds, 1)),
        )
        own = scores + taste * rng.normal(size=(worlds, max(n_judges, 1), r))
        world = np.arange(worlds)[:, None]
        # judges with tastes: without effects, whose true size with tastes is not that of the model
        effects = (0.2, 0.5) if not n_judges else (0.0, 0.0)
        lead = own[world, judge, i] - own[world, judge, j] + effects[0] + effects[1] * x
        won = rng.random(shape) < 1 / (1 + np.exp(-lead))
        known = {"judge": judge.reshape(-1)} if n_judges else {}
        votes = Judgements.from_votes(
            i.reshape(-1), j.reshape(-1), np.where(won, "model_a", "model_b").reshape(-1),
            groups=np.repeat(np.arange(worlds), n_votes), position=True, covariates=x.reshape(-1),
            **known,
        )  # fmt: skip
        true = scores if not n_judges else expected_scores(scores, taste)
        design = "sparse" if per_item < 100 else "dense"
        judges = f", {n_judges} judges with tastes" if n_judges else ""
        cells = [f"{r} items, {design}{judges}"]
        for kind in ("information", "robust"):
            board = aggregate(votes, intervals=kind)
            at = true[board.items.astype(int)]
            held = (board.score_low <= at) & (at <= board.score_high)
            wanted = dict(zip(("position", "x0"), effects, strict=True))
            inside = [one.low <= wanted[one.name] <= one.high for one in board.coefficients]
            cells += [f"{held.mean():.1%}", f"{np.mean(inside):.1%}"]
        rows.append(cells)
    header = ["", "information: scores", "effects", "robust: scores", "effects"]
    print_table("scores and effects held by 95 % intervals without resamples", header, rows)


def draw_table(n: int, r: int) -> tuple[Any, Any]:
    """A table of votes with a tenth of ties, and its codes."""
    import pandas as pd

    rng = np.random.default_rng(n + r)
    scores, x = rng.normal(size=r), rng.normal(size=n)
    i = np.append(np.arange(r), rng.integers(r, size=n))[:n]  # each item has a vote
    j = (i + rng.integers(1, r, size=n)) % r
    lead = scores[i] - scores[j] + 0.2 + 0.5 * x
    won = np.where(rng.random(n) < 1 / (1 + np.exp(-lead)), 0, 1)
    outcome = np.where(rng.random(n) < 0.1, 2, won)
    names = np.array([f"model-{k}" for k in range(r)])
    words = np.array(["model_a", "model_b", "tie"])
    columns = {"model_a": names[i], "model_b": names[j], "winner": words[outcome]}
    return pd.DataFrame({**columns, "x": x, "first": 1.0}), (i, j, outcome, x)


def ours(table: Any, effects: bool, intervals: str | None) -> Any:
    options = {"position": True, "covariates": table[["x"]]} if effects else {}
    votes = Judgements.from_votes(table["model_a"], table["model_b"], table["winner"], **options)
    board = aggregate(votes, intervals=intervals)
    number = [int(name.partition("-")[2]) for name in board.items.tolist()]
    scores = np.empty(len(number))
    scores[number] = board.scores
    return scores, [one.value for one in board.coefficients or ()]


def with_arena_rank(table: Any, effects: bool, intervals: bool) -> Any:
    from arena_rank.models.bradley_terry import BradleyTerry as Plain
    from arena_rank.models.contextual_bradley_terry import ContextualBradleyTerry
    from arena_rank.utils.data_utils import ContextualPairDataset, PairDataset

    r = len(np.unique(np.append(table["model_a"].unique(), table["model_b"].unique())))
    if effects:
        options = {"feature_cols": ["first", "x"], "reweighted": False}
        data = ContextualPairDataset.from_pandas(table, normalize_features=False, **options)
        model = ContextualBradleyTerry(r, 2, reg=0.0)
    else:
        data, model = PairDataset.from_pandas(table), Plain(r)
    model.fit(data)
    if intervals:
        model.compute_ratings_and_cis(data)
    number = [int(name.partition("-")[2]) for name in data.competitors]
    scores = np.empty(r)
    scores[number] = np.asarray(model.params["ratings"])
    return scores, np.asarray(model.params["coeffs"]) if effects else []


def peers_of(table: Any, codes: Any, r: int, effects: bool, few: bool) -> dict[str, Any]:
    """The tasks of the packages that are installed, which return scores and effects."""
    i, j, outcome, x = codes
    tasks: dict[str, Any] = {}
    found = {name: importlib.util.find_spec(name) is not None for name in PEERS}
    if found["evalica"] and not effects:
        import evalica

        kinds = [evalica.Winner.X, evalica.Winner.Y, evalica.Winner.Draw]
        lists = table["model_a"].tolist(), table["model_b"].tolist()
        winners = [kinds[k] for k in outcome.tolist()]

        def by_evalica() -> Any:
            scores = evalica.bradley_terry(*lists, winners).scores  # at most 100 iterations
            scores.index = scores.index.str.partition("-").get_level_values(2).astype(int)
            return np.log(scores.sort_index().to_numpy()), []

        tasks["evalica"] = by_evalica
    if found["choix"] and not effects and few and r <= 1000:  # it solves dense systems
        import choix

        won, lost = np.where(outcome == 1, j, i), np.where(outcome == 1, i, j)
        pairs = list(zip(won.tolist(), lost.tolist(), strict=True))
        tied = outcome == 2  # it has no ties: these are a win for each here
        pairs += list(zip(lost[tied].tolist(), won[tied].tolist(), strict=True))
        tasks["choix"] = lambda: (choix.ilsr_pairwise(r, pairs, alpha=1e-9), [])
    if found["arena_rank"] and few:
        tasks["arena-rank"] = lambda: with_arena_rank(table, effects, False)
        if r <= 1000:
            tasks["arena-rank, intervals"] = lambda: with_arena_rank(table, effects, True)
    if found["statsmodels"] and len(i) * r <= 10_000_000:
        import statsmodels.api as sm

        design = np.zeros((len(i), r))
        design[np.arange(len(i)), i], design[np.arange(len(i)), j] = 1.0, -1.0
        design = design[:, 1:]
        if effects:
            design = np.column_stack([design, np.ones(len(i)), x])
        y = np.array([1.0, 0.0, 0.5])[outcome]

        def by_statsmodels() -> Any:
            w = np.asarray(sm.GLM(y, design, family=sm.families.Binomial()).fit().params)
            return np.append(0.0, w[: r - 1]), w[r - 1 :]

        tasks["statsmodels"] = by_statsmodels
    return tasks


def report_peers(sizes: list[tuple[int, int]], most: int) -> None:
    """Each task runs once, and arena-rank once before that."""
    rows = []
    ours(draw_table(1000, 10)[0], True, "robust")
    for n, r in sizes:
        table, codes = draw_table(n, r)
        i, j, outcome, x = codes
        for effects in (False, True):
            tasks = {
                "scores": lambda e=effects, t=table: ours(t, e, None),
                "intervals": lambda e=effects, t=table: ours(t, e, "robust"),
            }
            if r > 1000:
                del tasks["intervals"]
            tasks |= peers_of(table, codes, r, effects, n <= most)
            seconds, likelihood = {}, {}
            for name, task in tasks.items():
                if name.startswith("arena-rank"):
                    task()  # compile
                started = time.process_time()
                scores, w = task()
                seconds[name] = time.process_time() - started
                lead = scores[i] - scores[j]
                if effects:
                    lead = lead + w[0] + w[1] * x
                y = np.array([1.0, 0.0, 0.5])[outcome]
                likelihood[name] = float(np.mean(y * lead - np.logaddexp(0, lead)))
            best = max(likelihood.values())
            for name, used in seconds.items():
                base = seconds["intervals" if "intervals" in name else "scores"]
                mark = f"{n:,} x {r:,}{', effects' if effects else ''}: {name}"
                rows.append([mark, f"{used:.3f}", f"{used / base:.1f}",
                             f"{best - likelihood[name]:.0e}"])  # fmt: skip
                print(*rows[-1], flush=True)
    print_table("processor seconds", ["", "seconds", "times ours", "gap"], rows)


def report_seconds(n_resamples: int) -> None:
    rows = []
    rng = np.random.default_rng(0)
    one = as_judgements(draw_votes(rng, rng.normal(size=(1, 50)), 10_000_000))
    many = as_judgements(draw_votes(rng, rng.normal(size=(1000, 10)), 100))
    for name, judgements in (
        ("10,000,000 votes on 50 items", one),
        ("1,000 x 100 votes on 10", many),
    ):
        for method in ("btl", "borda", "log_odds", "rank_centrality", "kemeny"):
            # The ten million votes are read already, but not yet added up.
            judgements._preferences = None
            started = time.perf_counter()
            aggregate(judgements, method)
            between = time.perf_counter()
            resamples = n_resamples if method != "kemeny" else n_resamples // 10
            aggregate(judgements, method, n_resamples=resamples)
            ended = time.perf_counter()
            seconds = f"{between - started:.2f}", f"{ended - between:.2f}"
            rows.append([f"{name}, {method}", seconds[0], seconds[1], f"{resamples:,}"])
    print_table("seconds", ["", "alone", "with resamples", "resamples"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--worlds", type=int, default=1000, help="leaderboards of each kind")
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--votes", type=int, default=10_000_000, help="most of the part peers")
    parser.add_argument("--peer-votes", type=int, default=1_000_000)
    args = parser.parse_args()
    # Rare resamples of few votes stop short of the tolerance of Newton's method.
    warnings.simplefilter("ignore", ConvergenceWarning)
    if "scores" in args.parts:
        report_scores(args.worlds, args.resamples)
    if "ranks" in args.parts:
        report_ranks(args.worlds, args.resamples)
    if "judges" in args.parts:
        report_judges(args.worlds, args.resamples)
    if "kinds" in args.parts:
        report_kinds(args.worlds)
    if "peers" in args.parts:
        sizes = [size for size in PEER_SIZES if size[0] <= args.votes]
        report_peers(sizes, args.peer_votes)
    if "seconds" in args.parts:
        report_seconds(args.resamples)


if __name__ == "__main__":
    main()
