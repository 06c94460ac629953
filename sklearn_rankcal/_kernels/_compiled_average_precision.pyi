from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
TimeIsUp = Callable[[], bool] | None

def average_precision_search(
    u: Floats,
    start: Ints,
    perturbations: Floats,
    tolerance: float,
    max_sweeps: int,
    time_is_up: TimeIsUp = None,
) -> tuple[Ints, int]: ...
