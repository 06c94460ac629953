"""Models that need the labels, beside the targets of one loss that are computed from them."""

from __future__ import annotations

from typing import Any


def takes_labels(model: Any) -> bool:
    """Whether `model.fit` has a parameter `labels`, because its parts have losses of their own."""
    return bool(getattr(model, "takes_labels", False))


def fit_model(
    model: Any, X: Any, targets: Any, queries: Any, sample_weight: Any, labels: Any
) -> Any:
    """Fit a model to targets, and pass it the labels if it takes them."""
    if takes_labels(model):
        return model.fit(X, targets, queries, sample_weight, labels=labels)
    return model.fit(X, targets, queries, sample_weight)
