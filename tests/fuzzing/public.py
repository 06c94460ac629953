"""The package as the fuzzer sees it: the only module here that imports from it."""

from __future__ import annotations

import importlib
import pkgutil

import sklearn_rankcal
from sklearn_rankcal import (
    CalibratedLabelRanker,
    CalibratedRanker,
    CutQueriesWarning,
    LinearRanker,
    LowRankClassifier,
    QueryKFold,
    ScoreRegressor,
    aggregation,
    boosting,
    clicks,
    consistency,
    context_columns,
    cost_sensitive,
    datasets,
    decoders,
    inspection,
    label_ranking,
    labels,
    linear,
    losses,
    make_cost_scorer,
    mean_cost_loss,
    metrics,
    model_selection,
    models,
    order_to_ranks,
    predict_order,
    preference_labels,
    queries,
    ranks_to_order,
    relevance_labels,
    sizes_to_groups,
    surrogates,
    targets,
)
from sklearn_rankcal.labels._labels import read_relevance
from sklearn_rankcal.queries import Queries

__all__ = [
    "CalibratedLabelRanker",
    "CalibratedRanker",
    "CutQueriesWarning",
    "LinearRanker",
    "LowRankClassifier",
    "Queries",
    "QueryKFold",
    "ScoreRegressor",
    "aggregation",
    "boosting",
    "clicks",
    "consistency",
    "context_columns",
    "cost_sensitive",
    "datasets",
    "decoders",
    "inspection",
    "label_ranking",
    "labels",
    "linear",
    "losses",
    "make_cost_scorer",
    "mean_cost_loss",
    "metrics",
    "model_selection",
    "models",
    "order_to_ranks",
    "predict_order",
    "preference_labels",
    "public_names",
    "queries",
    "ranks_to_order",
    "read_relevance",
    "relevance_labels",
    "sizes_to_groups",
    "surrogates",
    "targets",
]


def public_names():
    """Every name in the ``__all__`` of a module without an underscore in its path."""
    names = set(sklearn_rankcal.__all__)
    for module in pkgutil.walk_packages(sklearn_rankcal.__path__, "sklearn_rankcal."):
        if not any(part.startswith("_") for part in module.name.split(".")):
            names.update(getattr(importlib.import_module(module.name), "__all__", ()))
    return names
