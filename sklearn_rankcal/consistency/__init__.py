"""The theorems as code, on explicit finite distributions of the labels of one query.

A `LabelDistribution` comes in; out come its best ranking, the regret of any other, whether it
satisfies the condition of a theorem, a bound on what wrong predictions cost, and distributions on
which a choice of loss and decoder fails. P1 is Ramaswamy, Agarwal & Tewari (2013), P2 Calauzènes,
Usunier & Gallinari (2013), P3 Duchi, Mackey & Jordan (2013).
"""

from sklearn_rankcal.consistency._bounds import regret_bound
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

__all__ = [
    "Condition",
    "Counterexample",
    "LabelDistribution",
    "bayes_ranking",
    "expected_targets",
    "find_counterexample",
    "is_low_noise",
    "ranking_regret",
    "ranking_risk",
    "regret_bound",
    "satisfies_dag",
    "satisfies_reinforce",
    "satisfies_score_condition",
]
