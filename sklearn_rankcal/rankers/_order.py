"""`QueryOrder`, the result of `predict_order`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class QueryOrder(NamedTuple):
    """The rows of each query, best first, as `predict_order` returns them.

    Attributes
    ----------
    rows : ndarray of shape (n_listed,)
        Row indices into X, best first within each query.
    offsets : ndarray of shape (n_queries + 1,)
        The rows of query q are ``rows[offsets[q]:offsets[q + 1]]``.
    queries : ndarray of shape (n_queries,)
        Query ids, in order of first appearance.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_rankcal import QueryOrder
    >>> order = QueryOrder(np.array([2, 0, 1]), np.array([0, 2, 3]), np.array(["a", "b"]))
    >>> order.rows[order.offsets[0] : order.offsets[1]].tolist()  # the rows of "a"
    [2, 0]
    >>> print(order.to_frame().to_string(index=False))
    query  position  row
        a         1    2
        a         2    0
        b         1    1
    """

    rows: NDArray[np.int64]
    offsets: NDArray[np.int64]
    queries: NDArray[Any]

    def to_frame(self) -> Any:
        """Convert the rankings to a pandas data frame with one row per listed document.

        Returns
        -------
        frame : pandas.DataFrame of shape (n_listed, 3)
            Columns ``query`` (id), ``position`` (1 = top of the query) and ``row`` (index into X).

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "to_frame needs pandas: pip install pandas. The attributes rows, offsets and "
                "queries have the same data as arrays."
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
