"""Metric functions: values by definition over all orders, and bad input."""

from __future__ import annotations

import inspect
import itertools
import math
from fractions import Fraction

import numpy as np

import sklearn_rankcal as public
from tests import oracles
from tests.metric_data import per_query

from .case import Finding
from .labels import MISSING
from .values import (
    GROUP_WORDS,
    NON_NEGATIVE,
    Given,
    contain,
    digits,
    draw_codes,
    draw_groups,
    draw_numbers,
    magnitudes,
    rows_of,
    spoiled_groups,
    spoiled_numbers,
)

_M = public.metrics
LABEL_WORDS = ("y_true", "relevance", "label", "y must", "y has", "y is", "input y", "of y", "y ")
SCORE_WORDS = ("y_score", "score")
RANK_WORDS = ("rank",)
WEIGHT_WORDS = ("weight",)


class NoOracle(Exception):
    """The value is not known: the call may give what it likes, or raise."""


# -------------------------------------------------------------------- values by definition


def _gain(value, gain):
    if gain == "linear":
        return value
    if not 0 <= value <= 900:
        raise NoOracle
    return (
        Fraction(2**value.numerator - 1)
        if value.denominator == 1
        else math.expm1(float(value) * math.log(2))
    )


def _dcg(y, order, k=None, gain="exp2"):
    gains = [float(_gain(value, gain)) for value in y]
    return oracles.dcg(gains, order, k, oracles.gain_linear)


def _ndcg(y, order, k=None, gain="exp2"):
    scale = max(_gain(value, gain) for value in y)
    if scale == 0:
        return math.nan
    gains = [float(_gain(value, gain) / scale) for value in y]
    best = sorted(range(len(y)), key=lambda d: -gains[d])
    same = {"gain": lambda value: value}
    return oracles.dcg(gains, order, k, **same) / oracles.dcg(gains, best, k, **same)


def _binary(measure):
    def value(y, order, threshold=None, **parameters):
        if threshold is not None:
            y = [int(v >= Fraction(float(threshold))) for v in y]
        elif any(v not in (0, 1) for v in y):
            raise NoOracle
        return measure([int(v) for v in y], order, **parameters)

    return value


def _eru(y, order, neutral=0.0, half_life=5.0):
    return oracles.eru(y, order, Fraction(neutral), half_life)


def _err(y, order, k=None, max_relevance=None):
    gains = [float(_gain(value, "exp2")) / 2.0**max_relevance for value in y]
    total, reach = 0.0, 1.0
    for place, d in enumerate(order[:k], 1):
        total += reach * gains[d] / place
        reach *= 1 - gains[d]
    return total


def _disagreement(y, order, pair_weight="binary", normalize=True):
    """As the oracle of that name, without a float in it."""
    ranks, lost, total = oracles.ranks_of(order), Fraction(0), Fraction(0)
    for i, j in itertools.permutations(range(len(y)), 2):
        if y[i] > y[j]:
            weight = y[i] - y[j] if pair_weight == "graded" else 1
            total += weight
            lost += weight * (ranks[i] > ranks[j])
    if not normalize:
        return lost
    return lost / total if total else math.nan


def _spearman(y, order):
    levels = sorted(set(y))
    return oracles.spearman([levels.index(value) for value in y], order)


_BINARY = ("grades", "binary", "normal", "tiny", "beyond_2_53")
#: name: function, value of one order, parameters, styles of labels, whether smaller is better
TABLE = {
    "precision": (
        _M.precision_at_k_score, _binary(oracles.precision), ("k!", "threshold"), _BINARY,
    ),
    "recall": (_M.recall_at_k_score, _binary(oracles.recall), ("k!", "threshold"), _BINARY),
    "dcg": (_M.dcg_score, _dcg, ("k", "gain"), NON_NEGATIVE),
    "ndcg": (_M.ndcg_score, _ndcg, ("k", "gain"), NON_NEGATIVE),
    "map": (_M.map_score, _binary(oracles.average_precision), ("k", "threshold"), _BINARY),
    "mrr": (_M.mrr_score, _binary(oracles.reciprocal_rank), ("k", "threshold"), _BINARY),
    "eru": (_M.eru_score, _eru, ("neutral", "half_life"), None),
    "err": (_M.err_score, _err, ("k", "max_relevance"), NON_NEGATIVE),
    "auc": (_M.auc_score, _binary(oracles.auc), ("threshold",), _BINARY),
    "spearman": (_M.spearman_score, _spearman, (), None),
    "kendall_tau": (
        _M.kendall_tau_score, lambda y, order: 1 - 2 * _disagreement(y, order), (), None,
    ),
    "pairwise_disagreement": (
        _M.pairwise_disagreement_loss, _disagreement, ("pair_weight", "normalize"), None,
    ),
}  # fmt: skip


def _parameters(case, names, y):
    found = {}
    if "k!" in names or ("k" in names and case.chance(0.5)):
        found["k"] = case.choose([1, 2, 5, np.int32(3), 10**6, 2**62])
    if "gain" in names and case.chance(0.5):
        found["gain"] = "linear"
    if "threshold" in names and not (set(y) <= {0, 1} and case.chance(0.5)):
        found["threshold"] = case.choose([1, 0.5, 2, 2**53, np.float32(0.25), -1])
    if "neutral" in names and case.chance(0.5):
        found["neutral"] = case.choose([0, 1, -1.0])
    if "half_life" in names and case.chance(0.5):
        found["half_life"] = case.choose([1.5, 2, 30])
    if "max_relevance" in names:
        top = max(y)
        found["max_relevance"] = math.ceil(top) if top <= 900 else 900
    if "pair_weight" in names and case.chance(0.5):
        found["pair_weight"] = case.choose(["binary", "graded"])
    if "normalize" in names and case.chance(0.5):
        found["normalize"] = case.choose([True, False])
    return found


def _expected(measure, y, scores, codes, ties, parameters, smaller):
    """The value of each query, exact numbers in."""
    values = []
    for rows in rows_of(codes):
        own, given = [y[i] for i in rows], [scores[i] for i in rows]
        if ties == "first":
            orders = [tuple(sorted(range(len(rows)), key=lambda d: -given[d]))]
        else:
            orders = oracles.orders_of_scores(given)
        found = [measure(own, order, **parameters) for order in orders]
        if any(v != v for v in found):
            values.append(math.nan)
        elif ties in ("best", "worst"):
            values.append((min if (ties == "best") == smaller else max)(found))
        else:
            values.append(sum(map(Fraction, found)) / len(found))
    if any(v == v and abs(v) > 1e290 for v in values):
        raise NoOracle
    if "gain" in inspect.signature(measure).parameters and any(0 < v < 1e-290 for v in y):
        raise NoOracle  # gains are rounded to multiples of 5e-324
    return [float(v) for v in values]


def _draw(case):
    """A metric, and what it is asked."""
    name = case.choose(TABLE)
    function, measure, names, styles = TABLE[name]
    codes = draw_codes(case)
    if case.chance(0.15):  # many small queries give many labels
        codes = [q for q in range(case.whole(8, 16)) for _ in range(case.whole(1, 4))]
    y = draw_numbers(case, codes, styles)
    scores = draw_numbers(case, codes)
    if case.chance(0.3):
        scores = contain(case, case.rng.integers(0, 3, len(codes)).tolist())
    return name, function, measure, names, codes, y, scores


def _weights(case, codes):
    styles = ("grades", "shares", "normal")
    if not case.chance(0.4):
        return None
    if case.chance(0.3):
        scale = 10.0 ** case.whole(-49, 48)
        values = [scale * case.whole(1, 9) for _ in codes]
    elif case.chance(0.3):
        values = magnitudes(case, codes, -49, 49)
    else:
        values = [abs(v) for v in draw_numbers(case, codes, styles, plain=True).value]
        values = list(map(float, values))
    return values if any(values) else None


def _mean(values, codes, weights):
    kept = [(v, rows) for v, rows in zip(values, rows_of(codes), strict=True) if v == v]
    mass = [
        sum(Fraction(weights[i]) for i in rows) / len(rows) if weights else Fraction(1)
        for _, rows in kept
    ]
    if not kept:
        return math.nan
    if not sum(mass):
        raise NoOracle
    return float(sum(Fraction(v) * m for (v, _), m in zip(kept, mass, strict=True)) / sum(mass))


def value(case):
    """A metric equals its definition, query by query and in the mean."""
    name, function, measure, names, codes, y, scores = _draw(case)
    sure = y.sure and scores.sure and y.exact is not None and scores.exact is not None
    groups = draw_groups(case, codes)
    ties = case.choose(_TIES)
    zero = case.choose(["skip", "skip", 0, 1, 0.0, 1.0])
    weights = _weights(case, codes)
    if y.exact is None or scores.exact is None:
        parameters = {}
        wanted = None
    else:
        parameters = _parameters(case, names, y.exact)
        try:
            wanted = _expected(
                measure,
                y.exact,
                scores.exact,
                codes,
                ties,
                parameters,
                name == "pairwise_disagreement",
            )
            wanted = [float(zero) if v != v and zero != "skip" else v for v in wanted]
            mean = _mean(wanted, codes, weights)
        except (NoOracle, OverflowError):
            wanted, sure = None, False
    given = {"groups": groups, "ties": ties, "zero_division": zero, **parameters}
    if case.chance(0.3):
        y = Given(case.attempt(public.relevance_labels, y.value, groups).value)
        if y.value is None:
            case.expect(not sure, "refuses good labels")
            return
    outcome = case.attempt(per_query, name, y.value, scores.value, **given)
    whole = case.attempt(function, y.value, scores.value, sample_weight=weights, **given)
    if outcome.error is not None:
        if sure:
            raise Finding("refuses good input", outcome.describe()) from outcome.error
        case.expect(whole.error is not None, "refuses values but not their mean")
        return
    if wanted is None:
        case.expect(y.exact is None or not _spoiled(y, scores), "accepts what is no number")
        return
    atol = 1e-320 if name in ("dcg", "eru", "pairwise_disagreement") else 1e-13
    case.equal(outcome.value, wanted, f"wrong value of {name}", atol=atol)
    if whole.error is None:
        case.equal(whole.value, mean, f"wrong mean of {name}", atol=atol)
    elif sure:
        raise Finding("refuses good weights", whole.describe()) from whole.error


def _spoiled(y, scores):
    return y.exact is None or scores.exact is None


def bad_input(case):
    """One argument that has no meaning: an error that names it."""
    name = case.choose(TABLE)
    function = TABLE[name][0]
    codes = draw_codes(case, least=2)
    n = len(codes)
    y = case.rng.integers(0, 2, n).tolist()
    scores = case.rng.normal(size=n)
    which = case.choose(["y_true", "y_score", "ranks", "groups", "sample_weight", "digits"])
    given = {"groups": codes}
    words = {"y_true": LABEL_WORDS, "y_score": SCORE_WORDS, "ranks": RANK_WORDS,
             "groups": GROUP_WORDS, "sample_weight": WEIGHT_WORDS}.get(which, ())  # fmt: skip
    if which == "digits":
        text = digits(n)
        bad = case.choose([text, np.array(text), np.array(text, dtype=object)])
        outcome = case.attempt(function, bad, scores, **given)
        case.expect(outcome.error is not None, "reads text as numbers", "y_true")
        return
    what = f"bad {which}"
    if which == "groups":
        case.refuses(function, y, scores, groups=spoiled_groups(case, codes), words=words,
                     what=what)  # fmt: skip
        return
    unjudged = (*MISSING, "na_boolean") if which == "y_true" else ()
    bad, kind = spoiled_numbers(case, n, without=unjudged)
    if kind in ("short", "long", "empty"):  # two lengths differ: either may be at fault
        words = ()
    if which == "y_true":
        case.refuses(function, bad, scores, words=words, what=f"{kind} as {which}", **given)
    elif which == "y_score":
        case.refuses(function, y, bad, words=words, what=f"{kind} as {which}", **given)
    elif which == "ranks":
        case.refuses(function, y, ranks=bad, words=words, what=f"{kind} as {which}", **given)
    else:
        case.refuses(function, y, scores, sample_weight=bad, words=words,
                     what=f"{kind} as {which}", **given)  # fmt: skip


_NONSENSE = [None, True, "3", 2.5, float("nan"), float("inf"), -1, 0, 10**400, 1j, [], [1], {},
             np.array([1, 2]), object(), "ndcg", b"x", (), "\ud800"]  # fmt: skip


def bad_parameter(case):
    """A parameter of a metric that makes no sense: a number of some meaning, or a good error."""
    name = case.choose(TABLE)
    function, _, names, _ = TABLE[name]
    options = [n.rstrip("!") for n in names] + ["ties", "zero_division"]
    parameter = case.choose(options)
    codes = draw_codes(case)
    n = len(codes)
    y, scores = case.rng.integers(0, 2, n), case.rng.normal(size=n)
    given = case.choose(_NONSENSE)
    if parameter == "normalize" and isinstance(given, np.ndarray):
        return  # a truth value, as of any function of Python
    outcome = case.attempt(function, y, scores, groups=codes, **{parameter: given})
    if outcome.error is not None:
        outcome.names((parameter, parameter.replace("_", " ")))
        return
    found = np.asarray(outcome.value)
    if parameter == "k":
        whole = isinstance(given, int) and not isinstance(given, bool) and given >= 1
        case.expect(given is None or whole, "accepts a bad parameter", f"{parameter}={given!r}")
    case.expect(np.isfinite(found).all() or np.isnan(found).all(), "a value that is not finite")


_TIES = ("average", "average", "first", "best", "worst")
