"""`read_letor`: LETOR files as a lazy data frame, in blocks of whole queries.

The blocks and the parser are those of `sklearn_rankcal.datasets`.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from functools import partial
from os import PathLike
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask import delayed
from dask.utils import natural_sort_key, parse_bytes

from sklearn_rankcal.datasets._letor import check_cells, check_options
from sklearn_rankcal.datasets._letor_blocks import Block, Survey, blocks_of_file, numbered
from sklearn_rankcal.utils._parameters import check_flag


def read_letor(
    path: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    n_features: int | None = None,
    dtype: Any = np.float32,
    document_ids: bool = False,
    blocksize: int | str | None = "64MB",
) -> Any:
    """Read LETOR files (SVMlight with ``qid:``) as a lazy data frame that never cuts a query.

    Parameters
    ----------
    path : path or sequence of paths
        Files, plain, ``.gz`` or ``.bz2``. A folder stands for its files, and a path with ``*``,
        ``?`` or ``[`` for the files that match it, both in the natural order of their names.
    n_features : int, default=None
        Number of features. If None, it is the largest index in the files, which are read once more
        to find it.
    dtype : dtype, default=numpy.float32
        The floating point dtype of the features.
    document_ids : bool, default=False
        Whether to read the document ids, such as ``# docid = GX008-86-4444840``, which every line
        must then have.
    blocksize : int, str or None, default="64MB"
        About how many bytes of a plain file become a partition. None makes a partition of each
        file, as a compressed file always is.

    Returns
    -------
    frame : dask data frame
        The columns ``f1`` to ``f<n_features>``, the relevance ``label`` (float64) and the query id
        ``qid`` (int64), and ``document_id`` if it was asked for. The index is the number of the row
        in all files. Pass ``whole_queries=True`` to what uses the frame.

    Raises
    ------
    FileNotFoundError
        If a file does not exist, or if a folder or a pattern has no files.
    ValueError
        If a qid is in several files or in several blocks, or if a file has no rows. Other errors of
        `load_letor` can be raised when the blocks are computed.

    Notes
    -----
    All files are read once at the beginning to find the query ids and to count the lines. Rows of a
    query must be next to each other, except in a file that is a single block. Convert files that
    are read several times to parquet, by
    ``write_queries(frame, folder, "qid", whole_queries=True)``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn_rankcal.dask import read_letor
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "train.txt")
    ...     _ = file.write_text("2 qid:7 1:0.5 2:1\\n0 qid:7 2:0.25\\n1 qid:9 1:0.75\\n")
    ...     frame = read_letor(folder, blocksize=20)
    ...     rows = frame.compute()
    >>> frame.npartitions
    2
    >>> rows
        f1    f2  label  qid
    0  0.50  1.00    2.0    7
    1  0.00  0.25    0.0    7
    2  0.75  0.00    1.0    9
    """
    kind = check_options(n_features, dtype)
    check_flag(document_ids, "document_ids")
    n_bytes = _read_size(blocksize)
    blocks = [block for file in _files(path) for block in blocks_of_file(file, n_bytes)]
    surveys = dask.compute([delayed(Survey.of)(block) for block in blocks])[0]
    for block, survey in zip(blocks, surveys, strict=True):
        if not survey.n_rows:
            block.read(kind)  # raises an error that says what is wrong
    blocks = numbered(blocks, surveys)
    starts = np.cumsum([0, *(survey.n_rows for survey in surveys)])
    width = _width(blocks, kind, int(starts[-1])) if n_features is None else int(n_features)
    read = partial(_read_frame, width=width, dtype=kind, document_ids=document_ids)
    return dd.from_map(
        read,
        blocks,
        starts[:-1].tolist(),
        meta=_meta(width, kind, document_ids),
        divisions=(*starts[:-1].tolist(), int(starts[-1]) - 1),
        label="read-letor",
    )


def _read_size(blocksize: Any) -> int | None:
    if blocksize is None:
        return None
    try:
        n_bytes = parse_bytes(blocksize)
    except (TypeError, ValueError):
        n_bytes = 0
    if n_bytes < 1:
        raise ValueError(
            f"blocksize must be a number of bytes, such as 64_000_000 or '64MB', or None; got "
            f"{blocksize!r}."
        )
    return n_bytes


def _files(path: Any) -> list[str]:
    """Return the files that the paths stand for."""
    given = [path] if isinstance(path, str | PathLike) else list(path)
    if not given:
        raise ValueError("path is an empty sequence. Pass at least one file.")
    found: list[str] = []
    for one in [os.fspath(name) for name in given]:
        if os.path.isdir(one):
            names = [os.path.join(one, name) for name in os.listdir(one) if name[0] not in "._"]
        elif not os.path.exists(one) and glob.has_magic(one):
            names = glob.glob(one)
        else:
            names = [one]
        files = names if names == [one] else [name for name in names if os.path.isfile(name)]
        if not files:
            raise FileNotFoundError(f"There are no files in {one}.")
        found += sorted(map(os.path.abspath, files), key=natural_sort_key)
    return found


def _width(blocks: list[Block], dtype: np.dtype[Any], n_rows: int) -> int:
    """Return the largest feature, by reading all numbers."""
    parts = dask.compute([delayed(_widest)(block, dtype) for block in blocks])[0]
    widest, path, _ = max(parts)
    check_cells(path, n_rows, widest, sum(held for _, _, held in parts))
    return widest


def _widest(block: Block, dtype: np.dtype[Any]) -> tuple[int, str, int]:
    X = block.read(dtype).X
    return X.shape[1], block.path, X.nnz


def _meta(width: int, dtype: np.dtype[Any], document_ids: bool) -> pd.DataFrame:
    empty = pd.DataFrame(np.empty((0, width), dtype), columns=_names(width))
    columns: dict[str, Any] = {"label": np.empty(0), "qid": np.empty(0, np.int64)}
    if document_ids:
        columns["document_id"] = pd.array([], dtype=_TEXT)
    return empty.assign(**columns)


_TEXT = pd.StringDtype("pyarrow")


def _names(width: int) -> list[str]:
    return [f"f{number}" for number in range(1, width + 1)]


def _read_frame(
    block: Block, first_row: int, *, width: int, dtype: np.dtype[Any], document_ids: bool
) -> pd.DataFrame:
    """Read the rows of a block. `first_row` is the number of its first row in all files."""
    part = block.read(dtype, width)
    if document_ids and part.documents is None:
        raise ValueError(
            f"{part.path}, line {part.unnamed}: there is no document id, such as '# docid = "
            "GX008-86-4444840'. Leave out document_ids."
        )
    table = part.X.toarray()
    index = pd.RangeIndex(first_row, first_row + len(table))
    columns = {"label": part.labels, "qid": part.groups}
    if document_ids:
        columns["document_id"] = pd.array(part.documents, dtype=_TEXT)
    more = pd.DataFrame(columns, index=index)
    return pd.concat([pd.DataFrame(table, index=index, columns=_names(width)), more], axis=1)
