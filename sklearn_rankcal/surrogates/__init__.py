"""Surrogates: functions of the scores of a query that a ranker minimises instead of a loss.

labels -> **utilities** v -> psi(v, s), with derivatives by the scores s

A `Surrogate` computes psi, its gradient and the diagonal of its Hessian matrix. It also states
whether it is order preserving: whether the scores that minimise its expected value sort documents
by their expected utilities. The docstrings cite these papers:

References
----------
.. [1] C. Calauzènes, N. Usunier and P. Gallinari (2013). Calibration and regret bounds for
   order-preserving surrogate losses in learning to rank. Machine Learning 93, 227-260.
.. [2] P. Ravikumar, A. Tewari and E. Yang (2011). On NDCG consistency of listwise ranking methods.
   AISTATS.
.. [3] J. C. Duchi, L. Mackey and M. I. Jordan (2013). The asymptotics of ranking algorithms. Annals
   of Statistics 41, 2292-2323.
.. [4] H. G. Ramaswamy, S. Agarwal and A. Tewari (2013). Convex calibrated surrogates for low-rank
   loss matrices with applications to subset ranking losses. NIPS.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from sklearn_rankcal.losses._registry import make_named, signature_of
from sklearn_rankcal.surrogates._additive import (
    DifferenceGraph,
    PairwiseMargin,
    PairwiseSquared,
    PointwiseMargin,
    PointwiseSquared,
    WeightedComparisons,
)
from sklearn_rankcal.surrogates._base import Evaluation, Surrogate
from sklearn_rankcal.surrogates._listwise import (
    Bregman,
    Cosine,
    DuchiMackeyJordan,
    GeneralizedKullbackLeibler,
    Softmax,
)
from sklearn_rankcal.utils._messages import look_up

__all__ = [
    "SURROGATES",
    "Bregman",
    "Cosine",
    "DifferenceGraph",
    "DuchiMackeyJordan",
    "Evaluation",
    "GeneralizedKullbackLeibler",
    "PairwiseMargin",
    "PairwiseSquared",
    "PointwiseMargin",
    "PointwiseSquared",
    "Softmax",
    "Surrogate",
    "WeightedComparisons",
]

#: How to make a surrogate from its name. Parameters bound by position belong to the name;
#: parameters bound by keyword are defaults.
SURROGATES: dict[str, Callable[..., Surrogate]] = {
    "pointwise_squared": PointwiseSquared,
    "pointwise_logistic": partial(PointwiseMargin, "logistic"),
    "pointwise_exponential": partial(PointwiseMargin, "exponential"),
    "pointwise_squared_hinge": partial(PointwiseMargin, "squared_hinge"),
    "pointwise_smooth_hinge": partial(PointwiseMargin, "smooth_hinge"),
    "pairwise_squared": PairwiseSquared,
    "pairwise_logistic": partial(PairwiseMargin, "logistic"),
    "pairwise_exponential": partial(PairwiseMargin, "exponential"),
    "pairwise_margin": PairwiseMargin,
    "softmax": Softmax,
    "cosine": Cosine,
    "generalized_kl": GeneralizedKullbackLeibler,
    "bregman": Bregman,
    "duchi_mackey_jordan": DuchiMackeyJordan,
    "difference_graph": DifferenceGraph,
    "weighted_comparisons": WeightedComparisons,
    "required_margin": partial(
        WeightedComparisons, margin="hinge", weight="binary", required="difference"
    ),
    "ranksvm": partial(WeightedComparisons, "hinge", "binary", None),
    "ranknet": partial(WeightedComparisons, "logistic", "binary", None),
    "rankboost": partial(WeightedComparisons, "exponential", "binary", None),
}

#: Common names of other packages, and the nearest name in `SURROGATES`.
_OTHER_NAMES = {
    "cross_entropy": "softmax",
    "hinge": "ranksvm",
    "kl": "generalized_kl",
    "lambdarank": "softmax",
    "least_squares": "pointwise_squared",
    "listnet": "softmax",
    "logistic": "pairwise_logistic",
    "poisson": "generalized_kl",
    "rank_xendcg": "softmax",
    "squared": "pointwise_squared",
    "squared_error": "pointwise_squared",
    "svm": "ranksvm",
    "xendcg": "softmax",
    "zhang": "pairwise_margin",
}


def get_surrogate(surrogate: str | Surrogate, **parameters: Any) -> Surrogate:
    """Make a surrogate from a name, or return a surrogate object unchanged."""
    kind = look_up("surrogate", surrogate, SURROGATES, Surrogate, parameters, _OTHER_NAMES)
    if isinstance(kind, Surrogate):
        return kind
    made: Surrogate = make_named("Surrogate", str(surrogate), kind, parameters, signature_of(kind))
    return made
