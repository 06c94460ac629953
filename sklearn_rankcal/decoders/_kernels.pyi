from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Late = Callable[[], bool] | None

def differences(u: Floats) -> tuple[Floats, Floats]: ...
def antisymmetric(values: Floats, r: int) -> Floats: ...
def lost_weight(d: Floats, order: Ints) -> Floats: ...
def components(d: Floats) -> tuple[Ints, Ints]: ...
def greedy_dag(d: Floats, ranked_pairs: bool, late: Late = None) -> tuple[Ints, Floats]: ...
def binary_insertion(d: Floats) -> Ints: ...
def triangle_bound(d: Floats, late: Late = None) -> float: ...
def subset_dp(
    cost: Floats, own: Floats, scale: Floats, limit: float, of_rest: bool
) -> tuple[Ints, float]: ...
def preference_search(
    d: Floats,
    start: Ints,
    kicks: Floats,
    tolerance: float,
    max_sweeps: int,
    late: Late = None,
) -> tuple[Ints, int]: ...
def average_precision_search(
    u: Floats,
    start: Ints,
    kicks: Floats,
    tolerance: float,
    max_sweeps: int,
    late: Late = None,
) -> tuple[Ints, int]: ...
