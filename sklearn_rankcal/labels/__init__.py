"""Functions that make and read labels: from relevance, preferences, rankings or files.

Relevance is one number per row. Preferences are weighted pairs of rows of the same query. The
functions whose names end in ``_labels`` return a structured array with one entry per row. Each
entry also contains the query of its row, so the array can be used as `y` with every splitter of
scikit-learn.
"""

from sklearn_rankcal.labels._item_ids import read_edges
from sklearn_rankcal.labels._labels import Labels, Preferences, preference_labels, relevance_labels
from sklearn_rankcal.labels._rankings import ranking_labels

__all__ = [
    "Labels",
    "Preferences",
    "preference_labels",
    "ranking_labels",
    "read_edges",
    "relevance_labels",
]
