"""All compiled kernels. If one of their modules was not built, importing this module fails."""

from sklearn_rankcal.decoders._compiled_average_precision import average_precision_search
from sklearn_rankcal.decoders._compiled_graphs import (
    binary_insertion,
    components,
    differences,
    from_upper_triangle,
    greedy_dag,
    lost_weight,
    triangle_bound,
)
from sklearn_rankcal.decoders._compiled_local_search import preference_search
from sklearn_rankcal.decoders._compiled_subsets import subset_dp

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
