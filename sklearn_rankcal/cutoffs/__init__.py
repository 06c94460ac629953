"""Choose how many documents to show, with a guarantee on the average query."""

from sklearn_rankcal.cutoffs._cutoff import RiskControlledCutoff

__all__ = ["RiskControlledCutoff"]
