"""Learning to rank with scikit-learn's API and statistical guarantees.

"Calibrated" refers to surrogate consistency, not to probability calibration: least squares on the
targets of a loss, followed by decoding, converges to the best ranking for the chosen measure.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from sklearn_rankcal._version import __version__
from sklearn_rankcal.exceptions import (
    CutQueriesWarning,
    MissingGroupsWarning,
    PositionsAsScoresWarning,
)
from sklearn_rankcal.labels import preference_labels, relevance_labels
from sklearn_rankcal.model_selection import QueryKFold
from sklearn_rankcal.models._context import context_columns
from sklearn_rankcal.queries import order_to_ranks, ranks_to_order, sizes_to_groups
from sklearn_rankcal.rankers import (
    CalibratedRanker,
    QueryOrder,
    RankerMixin,
    RelevanceRegressor,
    ScoreRegressor,
    predict_order,
    predict_scores,
)
from sklearn_rankcal.rankers._diagnosis import Diagnosis
from sklearn_rankcal.utils import load_on_use, show_versions

if TYPE_CHECKING:
    from sklearn_rankcal.aggregation import Aggregate, Judgements, aggregate
    from sklearn_rankcal.boosting import BoostedRanker
    from sklearn_rankcal.cost_sensitive import LowRankClassifier, make_cost_scorer, mean_cost_loss
    from sklearn_rankcal.cutoffs import RiskControlledCutoff
    from sklearn_rankcal.label_ranking import CalibratedLabelRanker
    from sklearn_rankcal.linear import LinearRanker
    from sklearn_rankcal.rankers._distill import distill

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

# These names are imported on first use, which halves the import time.
_LAZY = {
    "Aggregate": "aggregation",
    "Judgements": "aggregation",
    "aggregate": "aggregation",
    "BoostedRanker": "boosting",
    "LowRankClassifier": "cost_sensitive",
    "make_cost_scorer": "cost_sensitive",
    "mean_cost_loss": "cost_sensitive",
    "RiskControlledCutoff": "cutoffs",
    "CalibratedLabelRanker": "label_ranking",
    "LinearRanker": "linear",
    "distill": "rankers._distill",
}


_of_folders, __dir__ = load_on_use(__name__, __all__, _LAZY)


def __getattr__(name: str) -> Any:
    if name not in _LAZY and find_spec(f"{__name__}.{name}"):
        return import_module(f"{__name__}.{name}")
    globals()[name] = value = _of_folders(name)  # found without this function from now on
    return value
