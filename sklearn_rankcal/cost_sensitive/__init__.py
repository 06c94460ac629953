"""Classification that minimizes costs, for any matrix of costs.

`LowRankLoss` factors a matrix of costs, `LowRankClassifier` predicts the target of least expected
cost, and `mean_cost_loss` and `make_cost_scorer` evaluate the predictions of any classifier.
"""

from sklearn_rankcal.cost_sensitive._classifier import LowRankClassifier
from sklearn_rankcal.cost_sensitive._low_rank import LowRankLoss
from sklearn_rankcal.cost_sensitive._metrics import make_cost_scorer, mean_cost_loss

__all__ = ["LowRankClassifier", "LowRankLoss", "make_cost_scorer", "mean_cost_loss"]
