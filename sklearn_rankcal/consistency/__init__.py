"""Functions that apply the theorems to finite distributions of the labels of one query.

A `LabelDistribution` describes the labels that a query can have. The functions compute its best
ranking, regrets and bounds on them. They check the conditions of theorems, and search for
distributions where a surrogate, or a loss with a decoder, fails.
"""

from sklearn_rankcal.consistency._calibration import (
    CalibrationCheck,
    Counterexample,
    find_counterexample,
    is_calibrated_numerically,
)
from sklearn_rankcal.consistency._conditions import (
    Condition,
    bregman_regret_bound,
    is_low_noise,
    regret_bound,
    satisfies_dag,
    satisfies_reinforce,
    satisfies_score_condition,
)
from sklearn_rankcal.consistency._distributions import (
    LabelDistribution,
    bayes_ranking,
    expected_targets,
    ranking_regret,
    ranking_risk,
)
from sklearn_rankcal.consistency._regrets import suboptimality, surrogate_regret

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
