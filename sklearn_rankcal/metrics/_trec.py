"""Rankings and labels as data frames for tools of TREC (Text REtrieval Conference)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.exceptions import PositionsAsScoresWarning
from sklearn_rankcal.labels._item_ids import (
    content_ranks,
    number_ids,
    number_items,
    read_ids,
    show_id,
)
from sklearn_rankcal.labels._relevance import agreed_queries, read_relevance
from sklearn_rankcal.metrics._checks import has_positions
from sklearn_rankcal.metrics._runs import text_of
from sklearn_rankcal.queries import Queries, check_ranks
from sklearn_rankcal.queries._ranking import check_scores
from sklearn_rankcal.utils._messages import warn
from sklearn_rankcal.utils._names import checks_keywords
from sklearn_rankcal.utils._typing import Ints


@checks_keywords
def to_run(
    y_score: ArrayLike | None = None,
    *,
    groups: ArrayLike,
    document_ids: ArrayLike | None = None,
    ranks: ArrayLike | None = None,
) -> Any:
    """Convert scores or positions to a run, the table of rankings that tools of TREC take.

    Tools such as ir_measures and ranx compute measures from a run and from qrels (`to_qrels`).
    PyTerrier calls the columns of ids ``qid`` and ``docno``.

    Parameters
    ----------
    y_score : array-like of shape (n_documents,), default=None
        Scores, where larger is better. Pass either `y_score` or `ranks`.
    groups : array-like of shape (n_documents,)
        Query id of each row.
    document_ids : array-like of shape (n_documents,), default=None
        Document id of each row, such as the ``document_ids`` of `load_letor`. A document can occur
        once in each query. None means the row numbers, from 0.
    ranks : array-like of shape (n_documents,), default=None
        Position of each row in its query, 1 = top, without ties, such as those of
        ``ranker.predict``. They preserve the order of documents with equal scores.

    Returns
    -------
    run : pandas.DataFrame of shape (n_documents, 4)
        One row for each document, the best first in each query. The columns ``query_id`` and
        ``doc_id`` are text, ``score`` is float64 and ``rank`` is the position, 1 = top. Positions
        in a query of r documents become the scores r + 1 - position, because tools sort by scores
        alone. Equal scores are sorted by ``doc_id`` in descending order, as trec_eval does.

    Raises
    ------
    ValueError
        If both or neither of `y_score` and `ranks` are given, if lengths, scores or positions are
        not valid, if an id is missing, empty or contains white space, if two different ids have
        the same text, or if a document occurs twice in a query.
    ImportError
        If pandas is not installed.

    Examples
    --------
    >>> from sklearn_rankcal.metrics import to_run
    >>> run = to_run([0.5, 2.0, 1.0], groups=[7, 7, 8], document_ids=["a", "b", "a"])
    >>> print(run.to_string(index=False))
    query_id doc_id  score  rank
           7      b    2.0     1
           7      a    0.5     2
           8      a    1.0     1
    """
    if (y_score is None) == (ranks is None):
        raise ValueError(
            "Pass either y_score (larger is better) or ranks= (positions, 1 = top), not "
            + ("both." if ranks is not None else "neither.")
        )
    queries = Queries.from_groups(groups)
    ids = _Ids(queries, document_ids)
    if ranks is not None:
        positions = check_ranks(ranks, queries)
        scores = queries.broadcast(queries.sizes) + 1.0 - positions
        rows = np.lexsort((positions, queries.codes))
    else:
        checked = check_scores(y_score, queries.n_rows, "y_score")  # type: ignore[arg-type]
        if np.asarray(y_score).dtype.kind in "iu" and has_positions(checked, queries):
            warn(
                "y_score looks like positions: in every query its values are the numbers 1 to r. A "
                "score is larger for a better document. Pass positions (1 = top), such as those of "
                "a ranker's predict, as ranks=. If these are scores, pass them as floats.",
                PositionsAsScoresWarning,
            )
        scores = checked.astype(np.float64)
        rows = np.lexsort((-ids.places, -scores, queries.codes))
    return ids.frame(rows, {"score": scores[rows], "rank": queries.place + 1})


@checks_keywords
def to_qrels(
    y: Any, *, groups: ArrayLike | None = None, document_ids: ArrayLike | None = None
) -> Any:
    """Convert relevance to qrels, the table of judged documents that tools of TREC take.

    Parameters
    ----------
    y : array-like of shape (n_documents,)
        Relevance, which must be whole numbers, or the structured array of `relevance_labels`.
    groups : array-like of shape (n_documents,), default=None
        Query id of each row. Structured labels need none; the ids are then the numbers of the
        queries, from 0.
    document_ids : array-like of shape (n_documents,), default=None
        Document id of each row, as in `to_run`.

    Returns
    -------
    qrels : pandas.DataFrame of shape (n_documents, 3)
        One row for each document, in the order of the rows of each query. The columns ``query_id``
        and ``doc_id`` are text, and the column ``relevance`` is int64.

    Raises
    ------
    ValueError
        If a relevance is not a whole number, if neither `groups` nor `y` gives the queries, if
        lengths differ, or if ids are not valid, as in `to_run`.
    ImportError
        If pandas is not installed.

    Notes
    -----
    Tools count documents that are in a run and not in the qrels as irrelevant. The NDCG of
    ir_measures, ranx and trec_eval has the gain y, which is ``ndcg_score(..., gain="linear")``.

    Examples
    --------
    >>> from sklearn_rankcal.metrics import to_qrels
    >>> qrels = to_qrels([0, 2, 1], groups=[7, 7, 8], document_ids=["a", "b", "a"])
    >>> print(qrels.to_string(index=False))
    query_id doc_id  relevance
           7      a          0
           7      b          2
           8      a          1
    """
    relevance, of_labels = read_relevance(y)
    given = None if groups is None else Queries.from_groups(groups)
    if given is not None and given.n_rows != len(relevance):
        raise ValueError(f"groups has {given.n_rows} entries, but y has {len(relevance)}.")
    queries = agreed_queries(given, of_labels)
    if queries is None:
        raise ValueError("Pass groups=<query id of each row>, or y=relevance_labels(y, groups).")
    whole = (relevance == np.floor(relevance)) & (np.abs(relevance) < 2.0**63)
    if not whole.all():
        row = int(np.argmin(whole))
        raise ValueError(
            "y must be whole numbers, which is what tools of TREC take; row "
            f"{row} is {relevance[row].item()!r}."
        )
    rows = np.arange(queries.n_rows) if queries.order is None else queries.order
    levels = relevance[rows].astype(np.int64)
    return _Ids(queries, document_ids).frame(rows, {"relevance": levels})


def import_pandas(what: str) -> Any:
    """Return the module pandas; `what` begins the sentence of the error."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(f"{what} pandas data frames (pip install pandas).") from error
    return pandas


class _Ids:
    """The ids of queries and documents as text; `places` has those of the sorted document ids."""

    def __init__(self, queries: Queries, document_ids: Any) -> None:
        self._queries = queries
        known = range(queries.n_queries) if queries.ids is None else list(queries.ids)
        self._query_texts = _texts(known, "groups")
        given = np.arange(queries.n_rows) if document_ids is None else document_ids
        ids = read_ids(given, "document_ids")
        if len(ids) != queries.n_rows:
            raise ValueError(
                f"document_ids has {len(ids)} entries, but there are {queries.n_rows} rows."
            )
        codes, names = number_ids(ids, "document_ids")
        items, item_code, item_query, _ = number_items(
            codes, len(names), queries.codes, queries.n_queries
        )
        times = np.bincount(items)
        if (times > 1).any():
            item = int(np.argmax(times > 1))
            raise ValueError(
                f"The document {show_id(names[item_code[item]])} occurs {times[item]} times in the "
                f"query {self._query_texts[item_query[item]]!r}. A document can occur only once "
                "in a query."
            )
        texts = _texts(list(names), "document_ids")
        places = content_ranks(np.array(texts, dtype=object))[codes]
        self._codes, self._document_texts, self.places = codes, texts, places

    def frame(self, rows: Ints, columns: dict[str, NDArray[Any]]) -> Any:
        """Return a data frame of the ids of some rows, with the columns added on the right."""
        pd = import_pandas("to_run and to_qrels return")
        queries = np.array(self._query_texts, dtype=object)
        documents = np.array(self._document_texts, dtype=object)
        # ranx refuses the dtype str, which pandas 3 would infer
        ids = {
            "query_id": pd.Series(queries[self._queries.codes[rows]], dtype=object),
            "doc_id": pd.Series(documents[self._codes[rows]], dtype=object),
        }
        return pd.DataFrame(ids | columns)


def _texts(ids: Sequence[Any], name: str) -> list[str]:
    """Return different ids as text; two of them may not have the same text."""
    texts = [text_of(one) for one in ids]
    for text in texts:
        if text.split() != [text]:
            raise ValueError(
                f"{name} contains the id {text!r}. An id must not be empty or contain white "
                "space, which separates the fields of a line of a run or of qrels."
            )
    first = dict(zip(reversed(texts), range(len(texts) - 1, -1, -1), strict=True))
    if len(first) < len(texts):
        later = next(k for k, text in enumerate(texts) if first[text] != k)
        raise ValueError(
            f"{name} contains the different ids {show_id(ids[first[texts[later]]])} and "
            f"{show_id(ids[later])}, which are the same text. Pass ids that differ as text."
        )
    return texts
