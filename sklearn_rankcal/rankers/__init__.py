"""Rankers: estimators that learn to rank documents, or a fixed set of labels."""
