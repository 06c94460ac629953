"""The table of the documents that several runs found, to learn how to combine the runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sklearn_rankcal.metrics._runs import (
    Listed,
    is_several,
    no_query_in_common,
    read_qrels,
    read_run,
)
from sklearn_rankcal.metrics._trec import import_pandas
from sklearn_rankcal.utils._names import checks_keywords

_IDS = ["query_id", "doc_id"]


@checks_keywords
def runs_table(runs: Mapping[str, Any], qrels: Any = None) -> Any:
    """Make a feature table of several retrieval runs, one row for each document that any run found.

    A ranker that is fitted to the table learns how to combine the runs, such as those of a text
    index and of a vector index (hybrid search). `to_run` turns its scores into a run again.

    Parameters
    ----------
    runs : dict of str to run
        At least one run by name, each as `evaluate_run` takes it.
    qrels : data frame, dict of dicts, or path, default=None
        The judged documents, as `evaluate_run` takes them. If None, the table has no column
        ``relevance``.

    Returns
    -------
    table : pandas.DataFrame of shape (n_documents, 2 + 2 * n_runs) or one column more
        The columns ``query_id`` and ``doc_id`` are text. ``score_<run>`` and ``rank_<run>``, 1 =
        top, are NaN where the run does not have the document; equal scores share their mean rank.
        ``relevance`` is 0 for documents that were not judged, and queries that are not in the qrels
        are left out. The rows are sorted by the texts of their ids.

    Raises
    ------
    ValueError, TypeError
        If a run or the qrels are not valid, as in `evaluate_run`, or if no query of the runs is in
        the qrels.
    ImportError
        If pandas is not installed.

    Notes
    -----
    Judged documents that no run found have no row. Pass the fused run to `evaluate_run`, which
    counts them.

    Examples
    --------
    >>> from sklearn_rankcal.metrics import runs_table
    >>> words = {"q1": {"a": 12.5, "b": 11.0}}
    >>> vectors = {"q1": {"b": 0.75, "c": 0.5}}
    >>> table = runs_table({"words": words, "vectors": vectors}, qrels={"q1": {"b": 1}})
    >>> print(table.drop(columns="query_id").to_string(index=False))
    doc_id  score_words  rank_words  score_vectors  rank_vectors  relevance
         a         12.5         1.0            NaN           NaN        0.0
         b         11.0         2.0           0.75           1.0        1.0
         c          NaN         NaN           0.50           2.0        0.0

    The sum of the inverse places, each plus 60, is reciprocal rank fusion:

    >>> (1 / (60 + table.filter(like="rank_"))).sum(axis=1).round(4).tolist()
    [0.0164, 0.0325, 0.0161]
    """
    if not is_several(runs):
        raise TypeError(
            "runs must map the name of each run to the run, as in {'words': a, 'vectors': b}."
        )
    names = [str(name) for name in runs]
    if len(set(names)) < len(names):
        name = next(one for k, one in enumerate(names) if one in names[:k])
        raise ValueError(f"Two runs have the name {name!r}, but columns need different ones.")
    pd = import_pandas("runs_table returns")
    table = None
    for name, given in runs.items():
        frame = _frame(pd, read_run(given, f"the run {name!r}"), f"score_{name}")
        by_query = frame.groupby("query_id", sort=False)[f"score_{name}"]
        frame[f"rank_{name}"] = by_query.rank(ascending=False)
        table = frame if table is None else table.merge(frame, how="outer", on=_IDS)
    assert table is not None
    if qrels is not None:
        judged = read_qrels(qrels)
        judged.values = np.maximum(judged.values, 0.0)
        known = table["query_id"].isin(judged.queries)
        if not known.any():
            raise no_query_in_common(judged.queries, list(table["query_id"]), "the runs")
        table = table[known].merge(_frame(pd, judged, "relevance"), how="left", on=_IDS)
        table = table.fillna({"relevance": 0.0})
    return table.sort_values(_IDS, ignore_index=True)


def _frame(pd: Any, listed: Listed, column: str) -> Any:
    """A data frame of the ids, which are text, and the numbers of listed documents."""
    queries, documents = (
        np.array(texts, dtype=object)[codes]
        for texts, codes in ((listed.queries, listed.query), (listed.documents, listed.document))
    )
    # dtype object: pandas 3 would infer str, which ranx refuses
    ids = {
        "query_id": pd.Series(queries, dtype=object),
        "doc_id": pd.Series(documents, dtype=object),
    }
    return pd.DataFrame(ids | {column: listed.values})
