"""Linear scores that minimise a surrogate: `LinearRanker` and the model it fits."""

from sklearn_rankcal.linear._conditional_logit import ChoiceSummary
from sklearn_rankcal.linear._linear_model import LinearModel
from sklearn_rankcal.linear._linear_ranker import LinearRanker

__all__ = ["ChoiceSummary", "LinearModel", "LinearRanker"]
