"""Helpers: estimator checks, versions, and scikit-learn compatibility."""

from sklearn_rankcal.utils._versions import show_versions

__all__ = ["show_versions"]
