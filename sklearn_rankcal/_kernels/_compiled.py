"""All compiled kernels. The import fails if one of their modules was not built."""

from sklearn_rankcal._kernels._compiled_average_precision import average_precision_search
from sklearn_rankcal._kernels._compiled_context import describe, find_bins
from sklearn_rankcal._kernels._compiled_graphs import (
    binary_insertion,
    components,
    differences,
    from_upper_triangle,
    greedy_dag,
    lost_weight,
    triangle_bound,
)
from sklearn_rankcal._kernels._compiled_local_search import preference_search
from sklearn_rankcal._kernels._compiled_pair_sums import pair_sums
from sklearn_rankcal._kernels._compiled_subsets import subset_dp
from sklearn_rankcal._kernels._compiled_trees import add_trees

N_TEMPORARIES = 1  # arrays of the size of a block that `describe` holds at the same time
