"""Click logs, and estimates of how likely users look at each position of a list.

`aggregation.AggregatedLoss` learns from the labels made by `click_labels`.
"""

from sklearn_rankcal.clicks._clicks import click_labels, read_clicks
from sklearn_rankcal.clicks._propensities import estimate_propensities

__all__ = ["click_labels", "estimate_propensities", "read_clicks"]
