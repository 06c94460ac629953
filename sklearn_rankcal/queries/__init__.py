"""Queries: which rows belong together, their rankings, and weights and means over queries.

Group ids of any type come in. `Queries` has every sum, mean and sort over queries of the package;
`Ranking` is the rows of every query, best first. Extensions of the package receive both.
"""

from sklearn_rankcal.queries._groups import order_to_ranks, ranks_to_order, sizes_to_groups
from sklearn_rankcal.queries._queries import Queries
from sklearn_rankcal.queries._ranking import TIES, Ranking, check_ranks
from sklearn_rankcal.queries._weights import check_weight, mean_over_queries

__all__ = [
    "TIES",
    "Queries",
    "Ranking",
    "check_ranks",
    "check_weight",
    "mean_over_queries",
    "order_to_ranks",
    "ranks_to_order",
    "sizes_to_groups",
]
