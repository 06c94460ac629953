"""Checks for rankers and losses, in addition to `sklearn.utils.estimator_checks`.

scikit-learn's checks do not test rankings: a ranker that returns the worst order passes them.
`check_ranker` runs every check of `yield_ranker_checks` on a ranker. `check_loss` compares a loss
with an enumeration of all rankings. A failed check raises AssertionError.
`expected_failed_checks` lists the checks of scikit-learn that do not apply to rankers.
"""

from sklearn_rankcal.estimator_checks._losses import check_loss
from sklearn_rankcal.estimator_checks._rankers import (
    check_ranker,
    expected_failed_checks,
    yield_ranker_checks,
)

__all__ = [
    "check_loss",
    "check_ranker",
    "expected_failed_checks",
    "yield_ranker_checks",
]
