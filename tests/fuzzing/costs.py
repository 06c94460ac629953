"""Cost-sensitive classification: costs by name, factored losses, and the cheapest target."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from sklearn.linear_model import Ridge

from . import public
from .values import read_only, spoiled_numbers

_NAMES = {
    "int": lambda k: k, "negative": lambda k: -k, "text": lambda k: f"c{k}",
    "bool": lambda k: bool(k), "float": lambda k: k / 3, "nul": lambda k: "c" + "\0" * k,
    "beyond_2_53": lambda k: 2**53 + k, "bytes": lambda k: b"c%d" % k,
    "mixed": lambda k: k if k % 2 else str(k),
}  # fmt: skip


def _matrix(case, n, k):
    kind = case.choose(["grades", "normal", "metric", "zero_one"])
    if kind == "grades":
        return case.rng.integers(0, 5, (n, k)).astype(float)
    if kind == "normal":
        return case.rng.normal(size=(n, k))
    if kind == "metric":
        return np.abs(np.arange(n)[:, None] - np.arange(k)).astype(float)
    return (np.arange(n)[:, None] != np.arange(k)).astype(float)


def mean_cost(case):
    """The mean of the costs, looked up by name."""
    n = case.whole(2, 4)
    kind = case.choose([name for name in _NAMES if name != "bool" or n == 2])
    classes = [_NAMES[kind](k) for k in range(n)]
    costs = _matrix(case, n, n)
    m = case.whole(1, 8)
    truth, chosen = case.rng.integers(0, n, (2, m))
    y_true, y_pred = [classes[k] for k in truth], [classes[k] for k in chosen]
    weight = [abs(float(v)) for v in case.rng.integers(1, 9, m)] if case.chance(0.5) else None
    if weight and case.chance(0.5):
        weight = [w * 10.0 ** case.whole(-40, 40) for w in weight]
    outcome = case.attempt(public.mean_cost_loss, y_true, y_pred, costs, classes=classes,
                           sample_weight=weight)  # fmt: skip
    if outcome.error is not None:
        sure = kind not in ("mixed", "nul")
        case.expect(not sure, "refuses good input", outcome.describe())
        return
    exact = list(map(Fraction, weight or [1] * m))
    wanted = sum(Fraction(costs[i, j]) * w for i, j, w in zip(truth, chosen, exact, strict=True))
    case.equal(outcome.value, float(wanted / sum(exact)), "another mean cost",
               atol=1e-12 * np.abs(costs).max())  # fmt: skip


def factored(case):
    """A factored loss has the costs of its matrix, up to its error, and decodes the cheapest."""
    n, k = case.whole(2, 4), case.whole(2, 5)
    L = _matrix(case, n, k) * 10.0 ** case.whole(-20, 20)
    loss = case.call(public.cost_sensitive.LowRankLoss.from_matrix, L)
    found = loss.alpha @ loss.beta.T + loss.c[:, None] + loss.intercept
    scale = np.abs(L).max()
    case.equal(found, L, "other costs than the matrix", 1e-9, 1e-10 * scale + loss.error)
    p = case.rng.dirichlet(np.ones(n))
    chosen = case.call(loss.decode, (p @ loss.alpha)[None])[0]
    case.expect((p @ L)[chosen] - (p @ L).min() <= 1e-9 * scale, "not the cheapest target")


def classifier(case):
    """Predictions are targets, in the order of the rows; the score is minus the mean cost."""
    n, k = case.whole(2, 3), case.whole(2, 3)
    classes = np.array([f"c{i}" for i in range(n)])
    targets = np.array([f"t{i}" for i in range(k)])
    m = case.whole(4, 12)
    X = case.rng.normal(size=(m, 2))
    y = classes[np.append(np.arange(n), case.rng.integers(0, n, m - n))]
    L = _matrix(case, n, k) + 0.5
    model = public.LowRankClassifier(Ridge(), loss_matrix=L, targets=targets, n_folds=None)
    case.call(model.fit, X, y)
    found = case.call(model.predict, X)
    case.expect(set(found) <= set(targets), "predicts what is no target")
    order = case.rng.permutation(m)
    again = case.call(model.predict, read_only(X[order].copy()))
    case.expect(again.tolist() == found[order].tolist(), "depends on the order of rows")
    cost = case.call(public.mean_cost_loss, y, found, L, classes=classes, targets=targets)
    exact = np.mean([L[classes.tolist().index(a), targets.tolist().index(b)]
                     for a, b in zip(y, found, strict=True)])  # fmt: skip
    case.equal(cost, exact, "another mean cost")
    scorer = case.call(public.make_cost_scorer, L, classes=classes, targets=targets)
    case.equal(case.call(scorer, model, X, y), -cost, "the scorer differs from the mean cost")
    value = case.call(model.score, X, y)
    case.expect(value <= 1 + 1e-9 or L.min() < 0, "a score above 1", str(value))


def bad_costs(case):
    """Costs, classes and labels without a meaning."""
    good = np.array([[0.0, 1.0], [2.0, 0.0]])
    which = case.choose(["matrix", "factor", "y", "classes", "weight"])
    if which in ("matrix", "factor"):
        bad = case.choose([None if which == "factor" else good[:1], [[np.nan, 1], [1, 0]], "L",
                           [[np.inf, 1], [1, 0]], 3, [], [[]], good * 1j, [["a", "b"], ["c", "d"]],
                           np.ma.array(good, mask=np.eye(2)), [[1, 2], [3]], good[None],
                           np.full((2, 2), np.datetime64("NaT", "D")), [[10**400, 1], [1, 0]],
                           np.full((2, 2), np.timedelta64("NaT", "D")), [["0", "1"], ["1", "0"]],
                           ])  # fmt: skip
        if which == "factor":
            case.refuses(public.cost_sensitive.LowRankLoss.from_matrix, bad)
        else:
            case.refuses(public.mean_cost_loss, [0, 1], [0, 1], bad, classes=[0, 1])
    elif which == "y":
        bad, _ = spoiled_numbers(case, 2)
        case.refuses(public.mean_cost_loss, bad, [0, 1], good, classes=[0, 9])
    elif which == "classes":
        bad = case.choose([[0], [0, 0], [0, 1, 2], None, 3, "ab", [[0, 1]], [0, None, 0]])
        case.refuses(public.mean_cost_loss, [0, 1], [0, 1], good, classes=bad)
    else:
        bad, _ = spoiled_numbers(case, 2)
        case.refuses(public.mean_cost_loss, [0, 1], [0, 1], good, classes=[0, 1],
                     sample_weight=bad, words=("weight",))  # fmt: skip
