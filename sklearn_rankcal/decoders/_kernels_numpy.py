"""All kernels in NumPy, with the names and results of `_kernels_compiled`."""

from sklearn_rankcal.decoders._numpy_graphs import (
    binary_insertion,
    components,
    differences,
    from_upper_triangle,
    lost_weight,
    triangle_bound,
)
from sklearn_rankcal.decoders._numpy_greedy_dag import greedy_dag
from sklearn_rankcal.decoders._numpy_local_search import average_precision_search, preference_search
from sklearn_rankcal.decoders._numpy_subsets import subset_dp

__all__ = [
    "average_precision_search",
    "binary_insertion",
    "components",
    "differences",
    "from_upper_triangle",
    "greedy_dag",
    "lost_weight",
    "preference_search",
    "subset_dp",
    "triangle_bound",
]
