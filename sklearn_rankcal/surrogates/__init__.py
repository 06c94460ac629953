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

from sklearn_rankcal.surrogates._base import Evaluation, Surrogate
from sklearn_rankcal.surrogates._comparisons import DifferenceGraph, WeightedComparisons
from sklearn_rankcal.surrogates._listwise import (
    Bregman,
    Cosine,
    DuchiMackeyJordan,
    GeneralizedKullbackLeibler,
    Softmax,
)
from sklearn_rankcal.surrogates._pairwise import PairwiseMargin, PairwiseSquared
from sklearn_rankcal.surrogates._pointwise import PointwiseMargin, PointwiseSquared
from sklearn_rankcal.surrogates._registry import SURROGATES, get_surrogate

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
    "get_surrogate",
]
