"""Queries: which rows belong together, their rankings, and weights and means over queries.

A user's group ids, one for each row, come in. `Queries` is the partition of the rows into queries,
and every sum, mean and sort over queries in the package is one of its methods. `Ranking` contains
the rows of every query, best first. Losses, measures and decoders, including those that a user
writes, receive these objects.
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
