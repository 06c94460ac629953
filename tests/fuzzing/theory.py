"""Consistency: conditions, risks and best rankings against exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tests import matrices, oracles

from . import public
from .values import spoiled_numbers

_C, _L = public.consistency, public.losses
COVERS = ("Condition", "satisfies_dag", "satisfies_score_condition", "satisfies_reinforce",
          "is_low_noise", "LabelDistribution", "expected_targets")  # fmt: skip


def _worlds(case, binary=False):
    """A distribution of preferences or labels, its counts, and the same in exact numbers."""
    r, m = case.whole(2, 4), case.whole(1, 4)
    counts = case.rng.integers(1, 7, m)
    shares = [Fraction(int(c), int(counts.sum())) for c in counts]
    if binary:
        labels = case.rng.integers(0, 2, (m, r))
        labels[:, 0] |= ~labels.any(axis=1)
    else:
        labels = case.rng.integers(0, 4, (m, r, r)) * (case.rng.random((m, r, r)) < 0.5)
        labels[:, range(r), range(r)] = 0
        labels[:, 0, 1] += ~labels.any(axis=(1, 2))
    return labels, counts / counts.sum(), shares


def _mean(values, shares):
    """Expected value of nested lists."""
    if isinstance(values[0], (list, tuple)):
        return [_mean(list(column), shares) for column in zip(*values, strict=True)]
    return sum(share * Fraction(v) for share, v in zip(shares, values, strict=True))


def conditions(case):
    """P_DAG, P_f and P_reinforce by their definitions, ties included."""
    labels, probabilities, shares = _worlds(case)
    r = labels.shape[1]
    u = _mean(labels.tolist(), shares)
    d = [[u[i][j] - u[j][i] for j in range(r)] for i in range(r)]
    edges = [(d[i][j], i, j) for i in range(r) for j in range(r) if d[i][j] > 0]
    given = (labels.astype(float), probabilities)
    found = case.call(_C.satisfies_dag, given)
    case.expect(bool(found) == (not oracles.has_cycle(r, edges)), "P_DAG is wrong", repr(found))
    for f, score in (("borda", oracles.net_borda), ("copeland", oracles.copeland)):
        exact = _mean([[Fraction(v).limit_denominator(100) for v in score(world)]
                       for world in labels.tolist()], shares)  # fmt: skip
        holds = all(exact[i] > exact[j] for _, i, j in edges)
        found = case.call(_C.satisfies_score_condition, given, f)
        case.expect(bool(found) == holds, f"P_f of {f} is wrong", repr(found))
    binary, probabilities, shares = _worlds(case, binary=True)
    r = binary.shape[1]
    worlds = [[[Fraction(a * b, sum(y)) for b in y] for a in y] for y in binary.tolist()]
    u = _mean(worlds, shares)
    holds = all(
        u[i][i] < u[j][j] or u[i][i] >= u[j][j] + sum(
            max(u[j][g] - u[i][g], 0) for g in range(r) if g not in (i, j))
        for i in range(r) for j in range(r) if i != j
    )  # fmt: skip
    found = case.call(_C.satisfies_reinforce, (binary.astype(float), probabilities))
    case.expect(bool(found) == holds, "P_reinforce is wrong", repr(found))
    labels, probabilities, shares = _worlds(case)
    r = labels.shape[1]
    u = _mean(labels.tolist(), shares)
    d = [[u[i][j] - u[j][i] for j in range(r)] for i in range(r)]
    holds = all(
        not (d[i][j] > 0 and d[j][k] > 0) or d[i][k] >= d[i][j] + d[j][k]
        for i in range(r) for j in range(r) for k in range(r)
    )  # fmt: skip
    found = case.call(_C.is_low_noise, (labels.astype(float), probabilities))
    case.expect(bool(found) == holds, "low noise is wrong", repr(found))


def rankings(case):
    """Best rankings, risks and regrets over all orders."""
    labels, probabilities, shares = _worlds(case, binary=True)
    r = labels.shape[1]
    name, measure = case.choose([
        ("map", oracles.average_precision), ("dcg", oracles.dcg),
        ("precision@1", lambda y, order: oracles.precision(y, order, 1)),
        ("pd", lambda y, order: -oracles.disagreement(y, order, normalize=False)),
    ])  # fmt: skip
    given = (labels.astype(float), probabilities)
    orders = oracles.all_orders(r)
    values = [
        float(sum(share * Fraction(measure(y, order))
                  for share, y in zip(shares, labels.tolist(), strict=True)))
        for order in orders
    ]  # fmt: skip
    outcome = case.attempt(_C.bayes_ranking, given, name)
    if outcome.error is not None:
        raise outcome.error
    ranks = outcome.value
    own = values[orders.index(tuple(int(d) for d in np.argsort(ranks)))]
    case.equal(own, max(values), f"not the best ranking for {name}", 1e-9, 1e-9)
    every = matrices.all_ranks(r)
    regrets = case.call(_C.ranking_regret, every, given, name)
    wanted = [max(values) - values[orders.index(tuple(int(d) for d in np.argsort(row)))]
              for row in every]  # fmt: skip
    case.equal(regrets, wanted, f"another regret for {name}", 1e-9, 1e-9)
    risks = np.asarray(case.call(_C.ranking_risk, every, given, name))
    case.equal(risks - risks.min(), wanted, f"another risk for {name}", 1e-9, 1e-9)


def bounds(case):
    """The bound of the regret is a number; what is none is refused."""
    r, name = case.whole(1, 5), case.choose(["dcg", "map", "pd"])
    gap = case.call(_C.regret_bound, name, float(case.whole(0, 4)), r)
    case.expect(np.isfinite(gap) and gap >= 0, "no bound")
    bad = case.choose([(name, -1.0, r), (name, float("nan"), r), (name, 1.0, 0), (name, 1.0, 2.5),
                       (name, 1.0, "3"), (name, "x", 3), (name, None, 3), (name, 1.0, None),
                       ("err", 1.0, 3), (name, 1j, 3), (name, [1.0, 2.0], [1, 2, 3]),
                       (name, 1.0, 3, -1.0), (name, 10**400, 3)])  # fmt: skip
    case.refuses(_C.regret_bound, *bad)


def counterexamples(case):
    """A counterexample is one: its regret, computed anew, is positive."""
    loss, choice = case.choose([("pd", "borda"), ("pd", "greedy_dag"), ("err", "auto"),
                                ("map", "diagonal"), ("dcg", "auto")])  # fmt: skip
    found = case.call(_C.find_counterexample, loss, choice, n_documents=case.choose([3, 4]),
                      n_trials=200, random_state=case.whole(0, 99))  # fmt: skip
    if loss == "dcg":
        case.expect(found is None, "a counterexample to a theorem", repr(found))
    elif found is not None:
        regret = case.call(_C.ranking_regret, found.ranks, found.distribution, loss)
        case.equal(regret, found.regret, "another regret", 1e-9, 1e-12)
        case.expect(found.regret > 1e-9, "no regret")


def bad_worlds(case):
    """Distributions and matrices without a meaning."""
    good = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]])
    which = case.choose(["probabilities", "labels", "matrix", "tol"])
    if which == "probabilities":
        bad = case.choose([[0.5], [0.5, 0.6], [-0.5, 1.5], [np.nan, 1], [np.inf, 1], ["a", "b"],
                           None, 0.5, [[0.5, 0.5]], [0.5, 0.5, 0], [1j, 1], [],
                           np.ma.array([0.5, 0.5], mask=[True, False]), [0, 0]])  # fmt: skip
        case.refuses(_C.LabelDistribution, good, bad, words=("probabilit",))
    elif which == "labels":
        bad, _ = spoiled_numbers(case, 2)
        case.refuses(_C.LabelDistribution, bad, [0.5, 0.5])
    elif which == "matrix":
        bad = case.choose([good, good * np.nan, "u", None, [], [[]], np.zeros((0, 0)), [[1j]],
                           np.full((2, 2), np.datetime64("NaT", "D")), [["a"]], [[np.inf]],
                           np.ma.array(np.eye(2), mask=True)])  # fmt: skip
        case.refuses(case.choose([_C.satisfies_dag, _C.satisfies_reinforce, _C.is_low_noise]), bad)
    else:
        case.refuses(_C.satisfies_dag, np.eye(2),
                     tol=case.choose([-1, float("nan"), "x", None, [1e-9], 1j]))  # fmt: skip
