"""Newton's method for many convex functions at a time."""

import numpy as np
import pytest

from sklearn_rankcal.aggregation._likelihoods import minimize  # the search by itself
from sklearn_rankcal.queries import Queries


class LogCosh:
    """The sum of log(2 cosh(x - a)) of each part, where whole Newton steps from afar diverge."""

    def __init__(self, minimum, parts):
        self.minimum, self.parts = minimum, parts

    def evaluate(self, x):
        d = x - self.minimum
        value = self.parts.sum(np.logaddexp(d, -d))
        with np.errstate(over="ignore"):  # of a trial far away, which is not taken
            bend = 1 / np.cosh(d) ** 2
        return value, np.tanh(d), np.ones_like(d), bend

    def solve(self, state, right, tolerance):
        return right / state

    def take(self, going):
        rows, parts = self.parts.select(going)
        return LogCosh(self.minimum[rows], parts), np.asarray(rows)


@pytest.mark.parametrize("start", [0.5, 1.2, 3.0, 6.0])
def test_steps_that_increase_the_value_are_shortened(start):
    parts = Queries.from_groups(np.repeat(np.arange(4), 3))
    minimum = np.linspace(-1, 1, 12)
    far = np.where(np.arange(12) < 6, start, 0.0)  # two parts begin at their minimum
    found = minimize(LogCosh(minimum, parts), 1e-9, 200, start=minimum + far)
    np.testing.assert_allclose(found.x, minimum, atol=1e-8)
    np.testing.assert_allclose(found.value, 3 * np.log(2), rtol=1e-12)
    assert not found.unfinished.any()


def test_what_is_not_finished_says_so():
    parts = Queries.from_groups(np.arange(2))
    objective = LogCosh(np.zeros(2), parts)
    found = minimize(objective, 1e-12, 1, start=np.array([0.0, 1.0]))
    assert found.unfinished.tolist() == [False, True]
