"""Runs and qrels, the tables of TREC (Text REtrieval Conference) tools: read and make them.

They are read from data frames, dicts of dicts and TREC files, with ids as text. `to_run` and
`to_qrels` make tables for other tools. `runs_table` makes features from several runs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_rankcal.exceptions import PositionsAsScoresWarning
from sklearn_rankcal.labels import _item_ids
from sklearn_rankcal.labels._labels import agreed_queries, read_relevance
from sklearn_rankcal.metrics._checks import has_positions
from sklearn_rankcal.queries import Queries, check_ranks
from sklearn_rankcal.queries._ranking import check_scores
from sklearn_rankcal.utils._messages import checks_keywords, warn
from sklearn_rankcal.utils._numbers import Floats, Ints, as_frame, read_numbers
from sklearn_rankcal.utils._text_files import LineReader

#: The names of each column, including the names of ir_measures, PyTerrier and ir_datasets.
QUERY = ("query_id", "qid", "q_id", "query-id", "topic")
DOCUMENT = ("doc_id", "docno", "docid", "document_id", "corpus-id")
RELEVANCE = ("relevance", "rel", "label")
SCORE = ("score",)
RANK = ("rank",)

_COLUMNS = {"qrels": "query_id, doc_id and relevance", "run": "query_id, doc_id and score"}
_LINES = {
    "qrels": ("query_id iteration doc_id relevance", (0, 2, 3)),
    "run": ("query_id Q0 doc_id rank score tag", (0, 2, 4)),
}


@dataclass
class Listed:
    """The documents of each query, one per row, with a number for each row.

    `query` (n_rows,) and `document` (n_rows,) are indices into the lists of texts `queries` and
    `documents`. The query texts are distinct, and so are the document texts of a query.
    """

    query: Ints
    queries: list[str]
    document: Ints
    documents: list[str]
    values: Floats

    def __len__(self) -> int:
        return len(self.values)


def read_qrels(given: Any) -> Listed:
    """Read judged documents with their relevance."""
    return _read(given, "qrels")


def read_run(given: Any, name: str = "run") -> Listed:
    """Read retrieved documents with their scores; `name` is used in error messages."""
    return _read(given, "run", name)


def is_qrels(given: Any) -> bool:
    """Whether the labels of a comparison are qrels instead of one relevance per row."""
    if isinstance(given, (Mapping, str, os.PathLike)):
        return True
    columns = _columns(given)
    return columns is not None and any(name in columns for name in (*QUERY, *DOCUMENT))


def is_several(given: Any) -> bool:
    """Whether a mapping holds several runs by name, and not the queries of a single run."""
    if not isinstance(given, Mapping) or _columns(given) is not None:
        return False
    return any(
        not isinstance(one, Mapping) or isinstance(next(iter(one.values()), None), Mapping)
        for one in given.values()
    )


def _read(given: Any, kind: str, name: str = "") -> Listed:
    name = name or kind
    columns = _columns(given)
    if isinstance(given, Mapping) and columns is None:
        return _of_dict(given, kind, name)
    if isinstance(given, (str, os.PathLike)):
        queries, documents, values = _read_file(given, kind)
    elif columns is not None:
        queries, documents, values = _of_columns(columns, kind, name)
    else:
        raise TypeError(
            f"{name} must be a data frame with the columns {_COLUMNS[kind]}, a dict of dicts as in "
            "{'query': {'document': 1.0}}, or the path of a TREC file; got "
            f"{type(given).__name__}."
        )
    numbers = _numbers(values, kind, name)
    query, query_texts = _number(queries, f"the queries of {name}", len(numbers))
    document, texts = _number(documents, f"the documents of {name}", len(numbers))
    listed = Listed(query, query_texts, document, texts, numbers)
    _check_unique(listed, name)
    return listed


def _numbers(values: Any, kind: str, name: str) -> Floats:
    """The relevance of qrels or the scores of a run, which must be finite."""
    what = "relevance" if kind == "qrels" else "score"
    numbers = read_numbers(values, f"the {what} of {name}", missing=True).astype(np.float64)
    if numbers.ndim != 1 or len(numbers) == 0:
        raise ValueError(f"{name} has no rows.")
    if not np.isfinite(numbers).all():
        row = int(np.argmin(np.isfinite(numbers)))
        raise ValueError(
            f"{name} has a {what} that is NaN or infinite in row {row}. Drop the rows of documents "
            + ("that were not judged." if kind == "qrels" else "that were not retrieved.")
        )
    return numbers


def _columns(given: Any) -> Mapping[str, Any] | None:
    """The columns of a data frame, or of a dict of columns, by name; None for anything else."""
    if isinstance(given, Mapping):
        names = {str(name) for name in given}
        return given if names & set(QUERY) and names & set(DOCUMENT) else None
    given = as_frame(given)
    if hasattr(given, "columns") and hasattr(given, "__getitem__"):
        return {str(name): given[name] for name in given.columns}
    return None


def _of_columns(columns: Mapping[str, Any], kind: str, name: str) -> list[Any]:
    """The columns of queries, documents and numbers, by any of their names."""
    found = []
    for names in (QUERY, DOCUMENT, RELEVANCE if kind == "qrels" else (*SCORE, *RANK)):
        known = next((one for one in names if one in columns), None)
        if known is None:
            raise ValueError(
                f"{name} has no column {' or '.join(map(repr, names))}. Its columns are "
                f"{', '.join(map(repr, columns))}. Rename them."
            )
        places = known in RANK  # smaller is better, so the sign is changed
        found.append(
            -read_numbers(columns[known], f"the rank of {name}") if places else columns[known]
        )
    return found


def _of_dict(given: Mapping[Any, Any], kind: str, name: str) -> Listed:
    """The rows of a dict of dicts, query by query, with a number for each row."""
    for query, found in given.items():
        if not isinstance(found, Mapping):
            raise TypeError(
                f"{name} must map each query to a dict of its documents, as in "
                f"{{'query': {{'document': 1.0}}}}; got {type(found).__name__} for "
                f"{_item_ids.show_id(query)}."
            )
    lists = [found for found in given.values() if found]
    numbers = _numbers([value for found in lists for value in found.values()], kind, name)
    queries = [text_of(query) for query, found in given.items() if found]
    texts = list(chain.from_iterable(lists))
    query = np.repeat(np.arange(len(lists)), [len(found) for found in lists])
    if set(map(type, texts)) == {str} and len(set(queries)) == len(queries):  # no document twice
        return Listed(query, queries, np.arange(len(texts)), texts, numbers)
    query, queries = _number([queries[place] for place in query], f"the queries of {name}")
    document, texts = _number(texts, f"the documents of {name}")
    listed = Listed(query, queries, document, texts, numbers)
    _check_unique(listed, name)
    return listed


def _read_file(path: Any, kind: str) -> tuple[list[str], list[str], list[float]]:
    """The fields of the lines of a file of TREC."""
    form, places = _LINES[kind]
    n_fields = len(form.split())
    reader = LineReader(path)
    queries: list[str] = []
    documents: list[str] = []
    values: list[float] = []
    for line in reader:
        fields = line.split()
        if len(fields) != n_fields:
            other = _LINES["run" if kind == "qrels" else "qrels"][0]
            if not values and len(fields) == len(other.split()):
                raise reader.error(f"it has the fields {other!r}. Pass qrels first, then runs.")
            raise reader.error(
                f"{len(fields)} fields, expected {n_fields}: {form!r}. For other formats, read the "
                f"table with pandas.read_csv, and name its columns {_COLUMNS[kind]}."
            )
        query, document, number = (fields[place] for place in places)
        try:
            if not number.isascii() or "_" in number:  # which Python reads, and other tools do not
                raise ValueError
            values.append(float(number))
        except ValueError:
            header = " and no header" if not values else ""
            raise reader.error(
                f"{number!r} is not a number. The file must have the fields {form!r}{header}."
            ) from None
        queries.append(query)
        documents.append(document)
    if not values:
        raise ValueError(f"{path} has no rows.")
    return queries, documents, values


def _number(ids: Any, name: str, n_rows: int | None = None) -> tuple[Ints, list[str]]:
    """Number ids by their texts; 7, 7.0 and "7" are the same id."""
    if str(getattr(ids, "dtype", "")) == "object" and set(map(type, ids)) == {str}:
        ids = ids.astype("str")  # pandas numbers this dtype faster
    codes, different = _item_ids.number_column(ids, name)
    if n_rows is not None and len(codes) != n_rows:
        raise ValueError(f"{name} have {len(codes)} entries, but there are {n_rows} numbers.")
    texts = [text_of(one) for one in different]
    numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    if len(numbers) < len(texts):
        codes = np.array([numbers[text] for text in texts])[codes]
    return codes, list(numbers)


def text_of(one: Any) -> str:
    """Return an id as text; 7.0 becomes "7", because integer columns with gaps are floats."""
    if isinstance(one, bytes):
        return one.decode(errors="backslashreplace")
    if isinstance(one, (float, np.floating)) and float(one).is_integer():
        return str(int(one))
    return str(one)


def _check_unique(listed: Listed, name: str) -> None:
    keys = listed.query * len(listed.documents) + listed.document
    order = np.argsort(keys, kind="stable")
    again = np.flatnonzero(keys[order][1:] == keys[order][:-1])
    if len(again):
        row = int(order[again[0]])
        raise ValueError(
            f"{name} has the document {listed.documents[listed.document[row]]!r} twice in the "
            f"query {listed.queries[listed.query[row]]!r}. Drop the duplicates."
        )


def places_of(texts: Sequence[str], known: Mapping[str, int]) -> Ints:
    """Return the place of each id of a run in the qrels, or -1 if they do not contain it."""
    places = np.fromiter(map(known.get, texts, repeat(-1)), np.int64, len(texts))
    if (places < 0).any():
        bare = {text.strip(): text for text in known}
        for lost in (texts[number] for number in np.flatnonzero(places < 0).tolist()):
            if lost.strip() in bare:
                warn(
                    f"The run has the id {lost!r}, and the qrels have {bare[lost.strip()]!r}: they "
                    "are different. Drop the blanks, as in frame['doc_id'].str.strip()."
                )
                break
    return places


def no_query_in_common(judged: Sequence[str], of_run: Sequence[str], name: str) -> ValueError:
    """Make the error for a run and qrels without a common query."""
    return ValueError(
        f"No query of {name} is in the qrels: its ids look like {few(of_run)}, the ids of the "
        f"qrels look like {few(judged)}."
    )


def few(texts: Sequence[str]) -> str:
    return ", ".join(map(repr, texts[:3]))


@checks_keywords
def to_run(
    y_score: ArrayLike | None = None,
    *,
    groups: ArrayLike,
    document_ids: ArrayLike | None = None,
    ranks: ArrayLike | None = None,
) -> Any:
    """Convert scores or positions to a run, the ranking format of TREC tools.

    Tools such as ir_measures and ranx compute metrics from a run and qrels (`to_qrels`). For
    PyTerrier, rename the id columns to ``qid`` and ``docno``.

    Parameters
    ----------
    y_score : array-like of shape (n_documents,), default=None
        Scores, larger is better. Pass either `y_score` or `ranks`.
    groups : array-like of shape (n_documents,)
        Query id of each row. Ids must differ as texts, and must not contain white space.
    document_ids : array-like of shape (n_documents,), default=None
        Document id of each row, such as the ``document_ids`` of `load_letor`. A document can occur
        once in each query. If None, the row numbers, from 0.
    ranks : array-like of shape (n_documents,), default=None
        Position of each row in its query, 1 = top, without ties, such as the result of
        ``ranker.predict``. Positions preserve the order of documents with equal scores.

    Returns
    -------
    run : pandas.DataFrame of shape (n_documents, 4)
        One row for each document, best first in each query. The columns ``query_id`` and ``doc_id``
        are text, ``score`` is float64 and ``rank`` is the position, 1 = top. Positions in a query
        of r documents become the scores r + 1 - position, because tools sort by scores alone. Equal
        scores are sorted by descending ``doc_id``, as in trec_eval.

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
        checked = check_scores(y_score, queries.n_rows, "y_score")
        if np.asarray(y_score).dtype.kind in "iu" and has_positions(checked, queries):
            warn(
                "y_score looks like positions: in every query its values are the numbers 1 to r. "
                "Better documents must have larger scores. Pass positions (1 = top), such as the "
                "result of a ranker's predict, as ranks=. If these are scores, pass them as "
                "floats.",
                PositionsAsScoresWarning,
            )
        scores = checked.astype(np.float64)
        rows = np.lexsort((-ids.places, -scores, queries.codes))
    return ids.frame(rows, {"score": scores[rows], "rank": queries.place + 1})


@checks_keywords
def to_qrels(
    y: Any, *, groups: ArrayLike | None = None, document_ids: ArrayLike | None = None
) -> Any:
    """Convert relevance to qrels, the format of TREC tools for judged documents.

    Parameters
    ----------
    y : array-like of shape (n_documents,)
        Relevance in whole numbers, or the structured array of `relevance_labels`.
    groups : array-like of shape (n_documents,), default=None
        Query id of each row. Not needed for structured labels; the query ids are then the numbers
        of the queries, from 0.
    document_ids : array-like of shape (n_documents,), default=None
        Document id of each row, as in `to_run`.

    Returns
    -------
    qrels : pandas.DataFrame of shape (n_documents, 3)
        One row for each document, in the order of the rows of each query. The columns ``query_id``
        and ``doc_id`` are text, and the column ``relevance`` is int64.

    Notes
    -----
    Most tools count documents of a run that are not in the qrels as irrelevant. The NDCG of
    ir_measures, ranx and trec_eval uses the gain y, like ``ndcg_score(..., gain="linear")``.

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
            "y must be whole numbers, because TREC tools take no others; got "
            f"{relevance[row].item()!r} in row {row}."
        )
    rows = np.arange(queries.n_rows) if queries.order is None else queries.order
    levels = relevance[rows].astype(np.int64)
    return _Ids(queries, document_ids).frame(rows, {"relevance": levels})


@checks_keywords
def runs_table(runs: Mapping[str, Any], qrels: Any = None) -> Any:
    """Make a feature table from several retrieval runs.

    A ranker fitted to the table learns how to combine the runs, for example a text index and a
    vector index (hybrid search). `to_run` converts the scores of the ranker to a run.

    Parameters
    ----------
    runs : dict of str to run
        At least one run by name, in any format of `evaluate_run`.
    qrels : data frame, dict of dicts, or path, default=None
        The judged documents, in any format of `evaluate_run`. If None, the table has no column
        ``relevance``.

    Returns
    -------
    table : pandas.DataFrame of shape (n_documents, 2 + 2 * n_runs) or one column more
        One row for each query and document that any run contains, sorted by their ids as text. The
        columns ``query_id`` and ``doc_id`` are text. The columns ``score_<run>`` and ``rank_<run>``
        (1 = top) are NaN if the run does not contain the document; equal scores share their mean
        rank. With `qrels`, the column ``relevance`` is 0 for unjudged documents, and queries that
        are not in the qrels are left out.

    Notes
    -----
    Judged documents that no run found have no row. To count them, evaluate the fused run with
    `evaluate_run`.

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

    Reciprocal rank fusion is the sum of 1 / (60 + rank):

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
        raise ValueError(f"Two runs have the name {name!r}. Their columns need different names.")
    table = None
    for name, given in runs.items():
        frame = _listed_frame(read_run(given, f"the run {name!r}"), f"score_{name}")
        by_query = frame.groupby("query_id", sort=False)[f"score_{name}"]
        frame[f"rank_{name}"] = by_query.rank(ascending=False)
        table = (
            frame if table is None else table.merge(frame, how="outer", on=["query_id", "doc_id"])
        )
    assert table is not None
    if qrels is not None:
        judged = read_qrels(qrels)
        judged.values = np.maximum(judged.values, 0.0)
        known = table["query_id"].isin(judged.queries)
        if not known.any():
            raise no_query_in_common(judged.queries, list(table["query_id"]), "the runs")
        table = table[known].merge(
            _listed_frame(judged, "relevance"), how="left", on=["query_id", "doc_id"]
        )
        table = table.fillna({"relevance": 0.0})
    return table.sort_values(["query_id", "doc_id"], ignore_index=True)


def _listed_frame(listed: Listed, column: str) -> Any:
    """Make a data frame of listed documents, with their numbers in a column."""
    queries, documents = listed.queries, listed.documents
    return _frame(queries, listed.query, documents, listed.document, {column: listed.values})


def _frame(
    queries: list[str],
    query: Ints,
    documents: list[str],
    document: Ints,
    columns: dict[str, NDArray[Any]],
) -> Any:
    """Make a data frame of columns and ids; `query` and `document` index the texts of the ids."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("Runs and qrels are pandas data frames (pip install pandas).") from error
    # dtype object: pandas 3 would infer str, and ranx does not accept it
    ids = {
        "query_id": pd.Series(np.array(queries, dtype=object)[query], dtype=object),
        "doc_id": pd.Series(np.array(documents, dtype=object)[document], dtype=object),
    }
    return pd.DataFrame(ids | columns)


class _Ids:
    """The ids of queries and documents as text; `places` ranks the document ids in sorted order."""

    def __init__(self, queries: Queries, document_ids: Any) -> None:
        self._queries = queries
        known = range(queries.n_queries) if queries.ids is None else list(queries.ids)
        self._query_texts = _texts(known, "groups")
        given = np.arange(queries.n_rows) if document_ids is None else document_ids
        ids = _item_ids.read_ids(given, "document_ids")
        if len(ids) != queries.n_rows:
            raise ValueError(
                f"document_ids has {len(ids)} entries, but there are {queries.n_rows} rows."
            )
        codes, names = _item_ids.number_ids(ids, "document_ids")
        items, item_code, item_query, _ = _item_ids.number_items(
            codes, len(names), queries.codes, queries.n_queries
        )
        times = np.bincount(items)
        if (times > 1).any():
            item = int(np.argmax(times > 1))
            raise ValueError(
                f"The document {_item_ids.show_id(names[item_code[item]])} occurs {times[item]} "
                f"times in the query {self._query_texts[item_query[item]]!r}. A document can occur "
                "only once in a query."
            )
        texts = _texts(list(names), "document_ids")
        places = _item_ids.content_ranks(np.array(texts, dtype=object))[codes]
        self._codes, self._document_texts, self.places = codes, texts, places

    def frame(self, rows: Ints, columns: dict[str, NDArray[Any]]) -> Any:
        """Return a data frame of the ids of some rows, followed by the columns."""
        query, document = self._queries.codes[rows], self._codes[rows]
        return _frame(self._query_texts, query, self._document_texts, document, columns)


def _texts(ids: Sequence[Any], name: str) -> list[str]:
    """Return distinct ids as distinct texts."""
    texts = [text_of(one) for one in ids]
    for text in texts:
        if text.split() != [text]:
            raise ValueError(
                f"{name} contains the id {text!r}. An id must not be empty or contain white "
                "space, because white space separates the fields of a line."
            )
    first = dict(zip(reversed(texts), range(len(texts) - 1, -1, -1), strict=True))
    if len(first) < len(texts):
        later = next(k for k, text in enumerate(texts) if first[text] != k)
        raise ValueError(
            f"{name} contains the different ids {_item_ids.show_id(ids[first[texts[later]]])} and "
            f"{_item_ids.show_id(ids[later])}, which are the same text. Pass ids that differ as "
            "text."
        )
    return texts
