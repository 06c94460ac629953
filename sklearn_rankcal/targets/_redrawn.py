"""`RedrawnTargets`: targets of which a stochastic gradient method draws new ones for each step."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from sklearn_rankcal.utils._typing import Floats, Ints


class RedrawnTargets(NamedTuple):
    """One target per document, and a function that draws others with the same expectation.

    ``draw(numbers)`` receives query numbers. It returns new targets of the documents of the first
    of these queries, in grouped layout, then of those of the second, and so on.
    """

    values: Floats
    draw: Callable[[Ints], Floats]
