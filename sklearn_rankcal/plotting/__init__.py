"""Plots of metrics, comparisons, predicted preferences, rankings and leaderboards.

The plots need matplotlib (``pip install "sklearn-rankcal[plot]"``).
"""

from sklearn_rankcal.plotting._displays import MetricAtKDisplay, QueryDifferencesDisplay
from sklearn_rankcal.plotting._plots import (
    plot_aggregate,
    plot_alternatives,
    plot_choice_calibration,
    plot_matrix,
    plot_preference_graph,
    plot_probability_above,
)

__all__ = [
    "MetricAtKDisplay",
    "QueryDifferencesDisplay",
    "plot_aggregate",
    "plot_alternatives",
    "plot_choice_calibration",
    "plot_matrix",
    "plot_preference_graph",
    "plot_probability_above",
]
