"""All kernels in NumPy, with the names and results of `_compiled`."""

from typing import Any

from sklearn_rankcal._kernels._numpy_context import N_TEMPORARIES, describe, find_bins
from sklearn_rankcal._kernels._numpy_graphs import (
    binary_insertion,
    components,
    differences,
    from_upper_triangle,
    lost_weight,
    triangle_bound,
)
from sklearn_rankcal._kernels._numpy_greedy_dag import greedy_dag
from sklearn_rankcal._kernels._numpy_local_search import average_precision_search, preference_search
from sklearn_rankcal._kernels._numpy_subsets import subset_dp

# `surrogates._pair_sums` has the NumPy version, which also accepts functions.
pair_sums = None
# Without a kernel, the regressor itself makes the same predictions.
add_trees: Any = None
