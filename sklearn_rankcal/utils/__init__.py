"""Helpers that are independent of ranking: input checks, files, memory, versions, scikit-learn."""

from sklearn_rankcal.utils._versions import show_versions

__all__ = ["show_versions"]
