from typing import Any

import numpy as np
from numpy.typing import NDArray

def pair_sums(
    v: NDArray[np.float64],
    s: NDArray[np.float64],
    offsets: NDArray[np.int64],
    first: int,
    last: int,
    margin: int,
    weighting: int,
    required: int,
    value: NDArray[np.float64],
    gradient: NDArray[np.float64],
    curvature: NDArray[np.float64],
) -> Any: ...
