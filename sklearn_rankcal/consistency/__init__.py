"""Functions that apply the theorems to finite distributions of the labels of one query.

A `LabelDistribution` describes the labels that a query can have. The functions compute its best
ranking, regrets and their bounds, check the conditions of theorems, and search for distributions on
which a loss with a decoder, or a surrogate, fails.

References
----------
Ramaswamy, Agarwal and Tewari (2013), Convex calibrated surrogates for low-rank loss matrices with
applications to subset ranking losses, NIPS.

Calauzènes, Usunier and Gallinari (2013), Calibration and regret bounds for order-preserving
surrogate losses in learning to rank, Machine Learning.

Duchi, Mackey and Jordan (2013), The asymptotics of ranking algorithms, Annals of Statistics.

Ravikumar, Tewari and Yang (2011), On NDCG consistency of listwise ranking methods, AISTATS.
"""

from sklearn_rankcal.consistency._bounds import bregman_regret_bound, regret_bound
from sklearn_rankcal.consistency._calibration import CalibrationCheck, is_calibrated_numerically
from sklearn_rankcal.consistency._conditions import (
    Condition,
    is_low_noise,
    satisfies_dag,
    satisfies_reinforce,
    satisfies_score_condition,
)
from sklearn_rankcal.consistency._counterexamples import Counterexample, find_counterexample
from sklearn_rankcal.consistency._distributions import LabelDistribution, expected_targets
from sklearn_rankcal.consistency._rankings import bayes_ranking, ranking_regret, ranking_risk
from sklearn_rankcal.consistency._surrogate_risks import suboptimality, surrogate_regret

__all__ = [
    "CalibrationCheck",
    "Condition",
    "Counterexample",
    "LabelDistribution",
    "bayes_ranking",
    "bregman_regret_bound",
    "expected_targets",
    "find_counterexample",
    "is_calibrated_numerically",
    "is_low_noise",
    "ranking_regret",
    "ranking_risk",
    "regret_bound",
    "satisfies_dag",
    "satisfies_reinforce",
    "satisfies_score_condition",
    "suboptimality",
    "surrogate_regret",
]
