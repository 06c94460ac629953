"""The result of `predict_order`: the rows of each query, best first."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class QueryOrder(NamedTuple):
    """The rows of each query, best first.

    Attributes
    ----------
    rows : ndarray of shape (n_listed,)
        Row indices into X, best first inside each query.
    offsets : ndarray of shape (n_queries + 1,)
        Query q owns ``rows[offsets[q]:offsets[q + 1]]``.
    queries : ndarray of shape (n_queries,)
        Group id of each query, in order of first appearance.
    """

    rows: NDArray[np.int64]
    offsets: NDArray[np.int64]
    queries: NDArray[Any]

    def to_frame(self) -> Any:
        """Return the rankings as a pandas data frame with one row for each listed document.

        Returns
        -------
        frame : pandas.DataFrame of shape (n_listed, 3)
            Columns ``query`` (group id), ``position`` (1 = top of its query) and ``row`` (index
            into X).

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_rankcal import QueryOrder
        >>> order = QueryOrder(np.array([2, 0, 1]), np.array([0, 2, 3]), np.array(["a", "b"]))
        >>> print(order.to_frame().to_string(index=False))
        query  position  row
            a         1    2
            a         2    0
            b         1    1
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "to_frame needs pandas (pip install pandas). The attributes rows, offsets and "
                "queries hold the same data as arrays."
            ) from error
        lengths = np.diff(self.offsets)
        first = np.repeat(self.offsets[:-1], lengths)
        return pd.DataFrame(
            {
                "query": np.repeat(self.queries, lengths),
                "position": np.arange(len(self.rows)) - first + 1,
                "row": self.rows,
            }
        )
