"""Learning to rank, done right statistically, as ordinary scikit-learn.

"Calibrated" is surrogate consistency, not probability calibration: least squares on the right
targets, decoded, converges to the best ranking for the measure you chose.
"""

from sklearn_rankcal._version import __version__
from sklearn_rankcal.aggregation import Aggregate, Judgements, aggregate
from sklearn_rankcal.boosting import BoostedRanker
from sklearn_rankcal.cost_sensitive import LowRankClassifier, make_cost_scorer, mean_cost_loss
from sklearn_rankcal.cutoffs import RiskControlledCutoff
from sklearn_rankcal.exceptions import (
    CutQueriesWarning,
    MissingGroupsWarning,
    PositionsAsScoresWarning,
)
from sklearn_rankcal.label_ranking import CalibratedLabelRanker
from sklearn_rankcal.labels import preference_labels, relevance_labels
from sklearn_rankcal.linear import LinearRanker
from sklearn_rankcal.model_selection import QueryKFold
from sklearn_rankcal.models._context import context_columns
from sklearn_rankcal.queries import order_to_ranks, ranks_to_order, sizes_to_groups
from sklearn_rankcal.rankers import (
    CalibratedRanker,
    QueryOrder,
    RankerMixin,
    RelevanceRegressor,
    ScoreRegressor,
    distill,
    predict_order,
    predict_scores,
)
from sklearn_rankcal.rankers._diagnosis import Diagnosis
from sklearn_rankcal.utils import show_versions

__all__ = [
    "Aggregate",
    "BoostedRanker",
    "CalibratedLabelRanker",
    "CalibratedRanker",
    "CutQueriesWarning",
    "Diagnosis",
    "Judgements",
    "LinearRanker",
    "LowRankClassifier",
    "MissingGroupsWarning",
    "PositionsAsScoresWarning",
    "QueryKFold",
    "QueryOrder",
    "RankerMixin",
    "RelevanceRegressor",
    "RiskControlledCutoff",
    "ScoreRegressor",
    "__version__",
    "aggregate",
    "context_columns",
    "distill",
    "make_cost_scorer",
    "mean_cost_loss",
    "order_to_ranks",
    "predict_order",
    "predict_scores",
    "preference_labels",
    "ranks_to_order",
    "relevance_labels",
    "show_versions",
    "sizes_to_groups",
]
