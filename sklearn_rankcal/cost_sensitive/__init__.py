"""Classification that minimises expected costs, for any matrix of costs."""

from sklearn_rankcal.cost_sensitive._classifier import (
    LowRankClassifier,
    make_cost_scorer,
    mean_cost_loss,
)
from sklearn_rankcal.cost_sensitive._low_rank import LowRankLoss

__all__ = ["LowRankClassifier", "LowRankLoss", "make_cost_scorer", "mean_cost_loss"]
