"""Models of several models, and one regressor in the place of a model.

`models` has the names of the models, and loads them when they are used.
"""

from sklearn_rankcal.stacking._distill import distill
from sklearn_rankcal.stacking._distilled import DistilledModel, default_student
from sklearn_rankcal.stacking._stacked import StackedModel, default_members

__all__ = ["DistilledModel", "StackedModel", "default_members", "default_student", "distill"]
