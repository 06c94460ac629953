from typing import Any

import numpy as np
from numpy.typing import NDArray

def describe(
    values: NDArray[Any],
    offsets: NDArray[np.int64],
    out: NDArray[Any],
    zscore: int,
    difference: int,
    slope: NDArray[np.float64],
) -> None: ...
