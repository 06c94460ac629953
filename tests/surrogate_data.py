"""Surrogates to test, and data where they are defined."""

import re

import numpy as np
from scipy.optimize import isotonic_regression

from sklearn_rankcal.consistency._regrets import _problem  # one value of a surrogate
from sklearn_rankcal.queries import Queries
from sklearn_rankcal.surrogates import (
    SURROGATES,
    Bregman,
    Cosine,
    DuchiMackeyJordan,
    PairwiseMargin,
    PointwiseMargin,
    Softmax,
    WeightedComparisons,
)

MARGINS = ("logistic", "exponential", "hinge", "squared_hinge", "smooth_hinge")


def itakura_saito():
    """A Bregman divergence with functions of a user. It needs positive utilities."""
    return Bregman(lambda x: -np.log(x), lambda x: -1 / x, lambda x: x**-2.0, np.exp, np.exp)


def required_margin(margin):
    """Equation (13) of Duchi et al. (2013): pairs require the difference of their utilities."""
    return WeightedComparisons(margin, "binary", "difference")


#: One of each class, and others whose parameters lead to other formulas.
EVERY = (
    [kind() for kind in SURROGATES.values()]
    + [PairwiseMargin(margin) for margin in MARGINS]
    + [WeightedComparisons(margin) for margin in MARGINS]
    + [required_margin(margin) for margin in MARGINS]
    + [
        itakura_saito(),
        DuchiMackeyJordan("cosh", nu=2.0),
        DuchiMackeyJordan("quartic"),
        PointwiseMargin("smooth_hinge", t=1 / 0.3),
        PointwiseMargin("smooth_hinge", t=1 / 1.7),
        PointwiseMargin("squared_hinge", t=2.5),
        Softmax("own"),
        Cosine("own"),
        WeightedComparisons("squared_hinge", np.sqrt),
        WeightedComparisons("logistic", "binary", "binary"),
        WeightedComparisons("exponential", "binary", np.square),
    ]
)


def name_of(surrogate):
    """A short name for the report of pytest, which is the same in every process."""
    return re.sub(r"at0x\w+", "", re.sub(r"\s", "", repr(surrogate)))[:60]


def draw(random, sizes=(1, 2, 5, 9), interleaved=True):
    """Return utilities with ties and zeros, scores, and queries with mixed rows."""
    groups = np.repeat(np.arange(len(sizes)), sizes)
    if interleaved:
        random.shuffle(groups)
    utilities = random.integers(0, 4, len(groups)) / 2
    return utilities, random.normal(size=len(groups)), Queries.from_groups(groups)


def surrogate_risk(scores, distribution, loss, surrogate):
    """Return the expected value of a surrogate; parameters as in `surrogate_regret`."""
    problem, rows = _problem(scores, distribution, loss, surrogate)
    values = problem.take(np.zeros(len(rows), dtype=np.int64)).value(rows)
    return float(values[0]) if np.ndim(scores) == 1 else values


def decreasing_fit(values):
    """The non-increasing rows that are nearest to the rows of values."""
    return np.array([isotonic_regression(row, increasing=False).x for row in values])
