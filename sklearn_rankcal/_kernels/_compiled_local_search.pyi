from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
TimeIsUp = Callable[[], bool] | None

def preference_search(
    d: Floats,
    starts: Ints,
    n_perturbations: int,
    seed: int,
    tolerance: float,
    max_sweeps: int,
    time_is_up: TimeIsUp = None,
) -> tuple[Ints, int]: ...
