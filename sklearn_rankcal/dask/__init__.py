"""Ranking of data that do not fit in memory or are spread over several machines, with Dask.

`DaskCalibratedRanker` accepts dask data frames and arrays. Install it with
``pip install "sklearn_rankcal[dask]"``.
"""

try:
    import dask.array
    import dask.dataframe  # noqa: F401
except ImportError as error:
    raise ImportError(
        'sklearn_rankcal.dask needs dask and pandas: pip install "sklearn_rankcal[dask]".'
    ) from error

from sklearn_rankcal.dask._collections import group_queries
from sklearn_rankcal.dask._metrics import compare_rankings, evaluate_rankings
from sklearn_rankcal.dask._ranker import DaskCalibratedRanker

__all__ = [
    "DaskCalibratedRanker",
    "compare_rankings",
    "evaluate_rankings",
    "group_queries",
]
