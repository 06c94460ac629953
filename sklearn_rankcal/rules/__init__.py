"""Rankings under rules: pinned places, pairs, quotas of groups, and fair exposure.

`sklearn_rankcal.decoders` exports the same names. Rankers and decoders call the methods of `Rules`.
"""

from sklearn_rankcal.rules._exposure import ExposurePolicy, exposure_policy
from sklearn_rankcal.rules._query_rules import Quota
from sklearn_rankcal.rules._rules import Rules

__all__ = ["ExposurePolicy", "Quota", "Rules", "exposure_policy"]
