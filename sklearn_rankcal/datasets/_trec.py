"""Readers of the files of TREC: runs, which are rankings with scores, and qrels, the labels."""

from __future__ import annotations

import re
from collections.abc import Callable
from os import PathLike
from typing import Any

import numpy as np

from sklearn_rankcal.metrics import to_qrels, to_run
from sklearn_rankcal.utils._text_files import LineReader, parse_number


def read_run(path: str | PathLike[str]) -> Any:
    """Read a run file of TREC, which contains the rankings of a system.

    Parameters
    ----------
    path : path
        A file of lines ``query Q0 document rank score name``, plain, ``.gz`` or ``.bz2``.

    Returns
    -------
    run : pandas.DataFrame of shape (n_documents, 4)
        The table that `to_run` returns, with the columns ``query_id``, ``doc_id``, ``score`` and
        ``rank``. As in trec_eval, documents are sorted by score, and equal scores by document id in
        descending order. The ranks of the file are ignored.

    Raises
    ------
    ValueError
        If a line has another form, if a document occurs twice in a query, or if the file has no
        lines or is damaged. The error names the file.
    ImportError
        If pandas is not installed.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn_rankcal.datasets import read_run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "run.txt")
    ...     _ = file.write_text("301 Q0 a 1 0.5 bm25\\n301 Q0 b 2 2.0 bm25\\n")
    ...     run = read_run(file)
    >>> print(run.to_string(index=False))
    query_id doc_id  score  rank
         301      b    2.0     1
         301      a    0.5     2
    """
    form = "A line of a run has 6 fields: query Q0 document rank score name."
    return _read(path, to_run, 6, form, parse_number)


def read_qrels(path: str | PathLike[str]) -> Any:
    r"""Read a qrels file of TREC, which contains the relevance of judged documents.

    Parameters
    ----------
    path : path
        A file of lines ``query iteration document relevance``, plain, ``.gz`` or ``.bz2``.

    Returns
    -------
    qrels : pandas.DataFrame of shape (n_documents, 3)
        The table that `to_qrels` returns, with the columns ``query_id``, ``doc_id`` and
        ``relevance``. The iterations of the file are ignored.

    Raises
    ------
    ValueError, ImportError
        As in `read_run`.

    Examples
    --------
    Metrics score the documents that are in both tables:

    >>> import pathlib, tempfile
    >>> from sklearn_rankcal.datasets import read_qrels
    >>> from sklearn_rankcal.metrics import ndcg_score, to_run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "qrels.txt")
    ...     _ = file.write_text("301 0 a 1\n301 0 b 0\n")
    ...     qrels = read_qrels(file)
    >>> run = to_run([0.5, 2.0], groups=["301", "301"], document_ids=["a", "b"])
    >>> both = qrels.merge(run, on=["query_id", "doc_id"])
    >>> round(ndcg_score(both["relevance"], both["score"], groups=both["query_id"]), 3)
    0.631
    """
    form = "A line of qrels has 4 fields: query iteration document relevance."
    return _read(path, to_qrels, 4, form, _parse_whole)


def _parse_whole(text: str) -> float:
    if re.fullmatch(r"[+-]?\d{1,15}", text, re.ASCII) is None:
        raise ValueError(f"{text[:40]!r} is not a whole number.")
    return float(text)


def _read(
    path: str | PathLike[str], make: Any, width: int, form: str, parse: Callable[[str], float]
) -> Any:
    """Read lines of `width` fields: query, anything, document, ..., and a value in the fifth field,
    or in the fourth of four."""
    queries, documents, values = [], [], []
    lines = LineReader(path)
    for line in lines:
        cells = line.split()
        if len(cells) != width:
            raise lines.error(f"{line.strip()[:80]!r} has {len(cells)} fields. {form}")
        try:
            values.append(parse(cells[min(4, width - 1)]))
        except ValueError as error:
            raise lines.error(f"the value {error}") from None
        queries.append(cells[0])
        documents.append(cells[2])
    if not values:
        raise ValueError(f"{path} has no lines with text.")
    try:
        # floats, because `to_run` suspects that integers are positions
        return make(np.array(values), groups=queries, document_ids=documents)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
