"""Metrics of rankings, scorers for model selection, and comparisons of rankings.

The metric functions take labels and a ranking, and return the mean of the metric over queries.
"""

from sklearn_rankcal.metrics._compare import compare_rankings
from sklearn_rankcal.metrics._evaluate_run import RunEvaluation, evaluate_run
from sklearn_rankcal.metrics._functions import (
    auc_score,
    choice_log_loss,
    dcg_score,
    err_score,
    eru_score,
    evaluate_rankings,
    kendall_tau_score,
    map_score,
    mrr_score,
    ndcg_score,
    pairwise_disagreement_loss,
    precision_at_k_score,
    recall_at_k_score,
    spearman_score,
)
from sklearn_rankcal.metrics._intervals import Comparison, MeanInterval
from sklearn_rankcal.metrics._ranking_scorer import get_ranking_scorer
from sklearn_rankcal.metrics._runs import runs_table, to_qrels, to_run

__all__ = [
    "Comparison",
    "MeanInterval",
    "RunEvaluation",
    "auc_score",
    "choice_log_loss",
    "compare_rankings",
    "dcg_score",
    "err_score",
    "eru_score",
    "evaluate_rankings",
    "evaluate_run",
    "get_ranking_scorer",
    "kendall_tau_score",
    "map_score",
    "mrr_score",
    "ndcg_score",
    "pairwise_disagreement_loss",
    "precision_at_k_score",
    "recall_at_k_score",
    "runs_table",
    "spearman_score",
    "to_qrels",
    "to_run",
]
