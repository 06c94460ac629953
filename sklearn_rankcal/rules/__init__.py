"""Rankings that keep rules: places, orders of two, quotas of groups, and fair exposure.

`Rules` bring their own decoding to the rankers and decoders that get them. The names are those of
`sklearn_rankcal.decoders`, too.
"""

from sklearn_rankcal.rules._exposure import ExposurePolicy, exposure_policy
from sklearn_rankcal.rules._quotas import Quota
from sklearn_rankcal.rules._rules import Rules

__all__ = ["ExposurePolicy", "Quota", "Rules", "exposure_policy"]
