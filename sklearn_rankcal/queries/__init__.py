"""Queries: which rows belong together, their rankings, and weights and means over queries."""

from sklearn_rankcal.queries._groups import order_to_ranks, ranks_to_order, sizes_to_groups
from sklearn_rankcal.queries._queries import Queries
from sklearn_rankcal.queries._weights import check_weight, mean_over_queries

__all__ = [
    "Queries",
    "check_weight",
    "mean_over_queries",
    "order_to_ranks",
    "ranks_to_order",
    "sizes_to_groups",
]
