"""Metrics of rankings, scorers for model selection, and comparisons of rankings.

Labels and rankings come in, and the mean of a measure over the queries comes out. The formulas are
in `sklearn_rankcal.measures`.
"""

from sklearn_rankcal.metrics._binary import (
    auc_score,
    map_score,
    mrr_score,
    precision_at_k_score,
    recall_at_k_score,
)
from sklearn_rankcal.metrics._bootstrap import Comparison, MeanInterval, paired_bootstrap
from sklearn_rankcal.metrics._compare import compare_rankings, compare_systems
from sklearn_rankcal.metrics._correlation import (
    kendall_tau_score,
    pairwise_disagreement_loss,
    spearman_score,
)
from sklearn_rankcal.metrics._evaluate import evaluate_rankings
from sklearn_rankcal.metrics._graded import dcg_score, err_score, eru_score, ndcg_score
from sklearn_rankcal.metrics._scorers import (
    RankingScorer,
    get_ranking_scorer,
    get_ranking_scorer_names,
)
from sklearn_rankcal.metrics._trec import to_qrels, to_run

__all__ = [
    "Comparison",
    "MeanInterval",
    "RankingScorer",
    "auc_score",
    "compare_rankings",
    "compare_systems",
    "dcg_score",
    "err_score",
    "eru_score",
    "evaluate_rankings",
    "get_ranking_scorer",
    "get_ranking_scorer_names",
    "kendall_tau_score",
    "map_score",
    "mrr_score",
    "ndcg_score",
    "paired_bootstrap",
    "pairwise_disagreement_loss",
    "precision_at_k_score",
    "recall_at_k_score",
    "spearman_score",
    "to_qrels",
    "to_run",
]
