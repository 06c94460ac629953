"""Queries, rankings of their rows, and means over queries.

`Queries` assigns rows to queries, given the group id of each row. Its methods compute all sums,
means and sorts over queries in the package. `Ranking` holds the rows of every query, best first.
Losses, measures and decoders receive these objects. You need them if you write your own.
"""

from sklearn_rankcal.queries._queries import Queries
from sklearn_rankcal.queries._ranking import TIES as TIES
from sklearn_rankcal.queries._ranking import (
    Ranking,
    order_to_ranks,
    ranks_to_order,
    sizes_to_groups,
)
from sklearn_rankcal.queries._ranking import check_ranks as check_ranks
from sklearn_rankcal.queries._ranking import check_weight as check_weight
from sklearn_rankcal.queries._ranking import interval_of_mean as interval_of_mean
from sklearn_rankcal.queries._ranking import mean_over_queries as mean_over_queries

__all__ = ["Queries", "Ranking", "order_to_ranks", "ranks_to_order", "sizes_to_groups"]
