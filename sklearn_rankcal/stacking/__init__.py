"""Stacks of models, and students that imitate a model with one regressor.

`models` exports the names of the models, and imports them on first use.
"""

from sklearn_rankcal.stacking._distill import distill
from sklearn_rankcal.stacking._distilled import DistilledModel, default_student
from sklearn_rankcal.stacking._stacked import StackedModel, default_members

__all__ = ["DistilledModel", "StackedModel", "default_members", "default_student", "distill"]
