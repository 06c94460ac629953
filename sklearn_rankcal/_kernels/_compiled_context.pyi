from typing import Any

import numpy as np
from numpy.typing import NDArray

def describe(
    values: NDArray[Any],
    source: slice | NDArray[np.int64],
    offsets: NDArray[np.int64],
    out: NDArray[Any],
    target: slice | NDArray[np.int64],
    zscore: int,
    difference: int,
    slopes: NDArray[np.float64],
) -> None: ...
def find_bins(bounds: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.int64]: ...
