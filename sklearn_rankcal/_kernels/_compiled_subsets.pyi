import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

def subset_dp(
    cost: Floats, own: Floats, scale: Floats, limit: float, sum_remaining: bool
) -> tuple[Ints, float]: ...
