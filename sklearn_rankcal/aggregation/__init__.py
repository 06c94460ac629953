"""Aggregation: from many partial judgements of a query to one score per item.

judgements -> **structure** -> scores

A `Structure` computes the scores of the items of many queries from their judgements. `STRUCTURES`
maps names to classes. `AggregatedLoss` lets every ranker learn from judgements.

References
----------
.. [1] J. C. Duchi, L. Mackey and M. I. Jordan (2013). The asymptotics of ranking algorithms. Annals
   of Statistics 41, 2292-2323.
"""

from sklearn_rankcal.aggregation._aggregate import STRUCTURES, aggregate
from sklearn_rankcal.aggregation._audit import Audit, Probe
from sklearn_rankcal.aggregation._base import Structure
from sklearn_rankcal.aggregation._boards import Coefficient
from sklearn_rankcal.aggregation._categories import aggregate_categories
from sklearn_rankcal.aggregation._clicks import (
    CascadeSatisfaction,
    ClickThroughRate,
    InversePropensity,
    estimate_relevance,
)
from sklearn_rankcal.aggregation._comparison_structures import (
    Borda,
    BudgetedBorda,
    Copeland,
    LeastSquares,
    LogOdds,
    PrincipalEigenvector,
    RankCentrality,
)
from sklearn_rankcal.aggregation._judgements import Judgements
from sklearn_rankcal.aggregation._kemeny import Kemeny
from sklearn_rankcal.aggregation._loss import AggregatedLoss
from sklearn_rankcal.aggregation._maximum_likelihood import BradleyTerry, PlackettLuce
from sklearn_rankcal.aggregation._result import Aggregate

__all__ = [
    "STRUCTURES",
    "Aggregate",
    "AggregatedLoss",
    "Audit",
    "Borda",
    "BradleyTerry",
    "BudgetedBorda",
    "CascadeSatisfaction",
    "ClickThroughRate",
    "Coefficient",
    "Copeland",
    "InversePropensity",
    "Judgements",
    "Kemeny",
    "LeastSquares",
    "LogOdds",
    "PlackettLuce",
    "PrincipalEigenvector",
    "Probe",
    "RankCentrality",
    "Structure",
    "aggregate",
    "aggregate_categories",
    "estimate_relevance",
]
