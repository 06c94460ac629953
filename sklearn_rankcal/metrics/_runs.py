"""Read runs and qrels from data frames, dicts of dicts and TREC files, with ids as text."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.labels._item_ids import number_column, show_id
from sklearn_rankcal.utils._numbers import read_numbers
from sklearn_rankcal.utils._text_files import LineReader
from sklearn_rankcal.utils._typing import Floats, Ints

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
                f"{show_id(query)}."
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
    codes, different = number_column(ids, name)
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
    """Return the place of each text in a list, or -1 if the list does not contain it."""
    return np.fromiter(map(known.get, texts, repeat(-1)), np.int64, len(texts))


def no_query_in_common(judged: Sequence[str], of_run: Sequence[str], name: str) -> ValueError:
    """Make the error for a run and qrels without a common query."""
    return ValueError(
        f"No query of {name} is in the qrels: its ids look like {few(of_run)}, the ids of the "
        f"qrels look like {few(judged)}."
    )


def few(texts: Sequence[str]) -> str:
    return ", ".join(map(repr, texts[:3]))


def found_rows(values: NDArray[Any], keys: Ints, wanted: Ints) -> tuple[Floats, NDArray[np.bool_]]:
    """Look up keys in sorted `keys`: return their values (0 if absent), and whether they exist."""
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    known = keys[at] == wanted
    return np.where(known, values[at], 0.0), known
