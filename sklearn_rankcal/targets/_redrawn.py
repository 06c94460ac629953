"""`RedrawnTargets`: targets that a stochastic gradient method resamples in each step."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from sklearn_rankcal.utils._typing import Floats, Ints


class RedrawnTargets(NamedTuple):
    """One target per document, and a function that samples new targets with the same expectation.

    ``draw(numbers)`` takes query numbers, and returns new targets for the documents of these
    queries, one query after the other, in grouped layout.
    """

    values: Floats
    draw: Callable[[Ints], Floats]
