"""Reader of LETOR files, the SVMlight format with query ids."""

from __future__ import annotations

import re
import zlib
from io import BytesIO
from itertools import islice
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import vstack
from sklearn.datasets import load_svmlight_file
from sklearn.utils import Bunch

from sklearn_rankcal.utils._memory import check_memory
from sklearn_rankcal.utils._messages import check_count
from sklearn_rankcal.utils._numbers import Floats, Ints, check_range
from sklearn_rankcal.utils._text_files import numbered_lines, open_bytes

#: A dense X with more than _DENSE_CELLS cells raises an error if the files contain less than one of
#: _DENSE_SHARE cells.
_DENSE_CELLS, _DENSE_SHARE = 2**24, 1000
#: A comment names the document as "docid = x", or as a single word (RankLib).
_DOCUMENT = re.compile(rb"\bdocid\s*=\s*(\S+)|^\s*([^\s=]+)\s*$")
_WANTED = "Every line must be 'label qid:number feature:value feature:value ...', features in order"


def load_letor(
    path: Any,
    *,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    dtype: Any = np.float32,
    sparse: bool = False,
) -> Bunch:
    r"""Read ranking data in the SVMlight format with ``qid:`` (LETOR, MSLR, Yahoo, Istella).

    Parameters
    ----------
    path : path, open file, or sequence of paths or open files
        The files to read, plain, ``.gz`` or ``.bz2``. An open file must have a method ``read`` that
        returns the uncompressed contents. The rows of several files are stacked; each query must
        be in one file.
    n_features : int, default=None
        Number of features. If None, the largest index in the files.
    zero_based : bool or "auto", default="auto"
        Whether the features of all files are numbered from 0 instead of 1. With ``"auto"``, they
        are numbered from 0 if a file has a feature 0.
    dtype : dtype, default=numpy.float32
        Floating point dtype of ``X``.
    sparse : bool, default=False
        Whether to return ``X`` as a CSR matrix. It takes less memory if most features are 0.

    Returns
    -------
    data : Bunch
        Dictionary-like object, with the following attributes.

        - ``X``, of shape (n_documents, n_features): the features. A feature that is missing from a
          line is 0, and the value ``nan`` is NaN.
        - ``y``, of shape (n_documents,): the relevance.
        - ``groups``, of shape (n_documents,): the query ids.
        - ``document_ids``, of shape (n_documents,): the document ids as text, for `to_run` and
          `to_qrels`. It is None unless the comment of every line contains an id in UTF-8, as
          ``# docid = GX008-86-4444840``, or as ``# GX008-86-4444840`` (RankLib).

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn_rankcal.datasets import load_letor
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "train.txt")
    ...     _ = file.write_text("2 qid:7 1:0.5 2:1 # docid = a\n0 qid:7 2:0.25\n")
    ...     data = load_letor(file)
    >>> data.X.tolist(), data.y.tolist(), data.groups.tolist()
    ([[0.5, 1.0], [0.0, 0.25]], [2.0, 0.0], [7, 7])
    """
    kind = np.dtype(dtype)
    if kind.kind != "f":
        raise ValueError(f"dtype must be a floating point dtype; got {dtype!r}.")
    check_count(n_features, "n_features", or_none=True)
    if not (isinstance(zero_based, (bool, np.bool_)) or zero_based == "auto"):
        raise ValueError(f"zero_based must be True, False or 'auto'; got {zero_based!r}.")
    alone = isinstance(path, (str, PathLike)) or hasattr(path, "read")
    paths = [
        _Contents.of(one) if hasattr(one, "read") else one for one in ([path] if alone else path)
    ]
    if not paths:
        raise ValueError("path is an empty sequence. Pass at least one file.")
    try:
        from_zero = zero_based != "auto" and bool(zero_based)
        parts = [_read_file(one, kind, n_features, from_zero) for one in paths]
    except _StartsAtZero as error:
        if zero_based != "auto":
            raise ValueError(f"{error} Pass zero_based=True if they start at 0.") from None
        parts = [_read_file(one, kind, n_features, True) for one in paths]
    tables, labels, groups, documents = zip(*parts, strict=True)
    query_ids = np.concatenate(groups)
    if sum(len(np.unique(ids)) for ids in groups) > len(np.unique(query_ids)):
        raise ValueError(
            "A qid occurs in more than one file, and its rows would become one query. Load the "
            "files one by one and give their queries different ids."
        )
    widths = [table.shape[1] for table in tables]
    width = max(widths)
    for table in tables:
        table.resize(table.shape[0], width)
    X = vstack(tables, format="csr")
    if not sparse:
        n_rows = len(query_ids)
        if n_features is None and n_rows * width > max(_DENSE_CELLS, _DENSE_SHARE * X.nnz):
            raise ValueError(
                f"{paths[np.argmax(widths)]}: with the feature {width}, X would have "
                f"{n_rows * width:,} cells, but the files contain only {X.nnz:,}. Pass "
                f"sparse=True, or confirm the number of features with n_features={width}."
            )
        n_bytes = n_rows * width * kind.itemsize
        check_memory(n_bytes, f"A dense X of {n_rows:,} x {width:,}", "Pass sparse=True.")
        X = X.toarray()
    known = all(ids is not None for ids in documents)
    return Bunch(
        X=X,
        y=np.concatenate(labels),
        groups=query_ids,
        document_ids=np.concatenate(documents) if known else None,
    )


class _StartsAtZero(ValueError):
    """A file has a feature 0, but is read with features numbered from 1."""


class _Contents(NamedTuple):
    """The contents of an open file."""

    name: str
    data: bytes

    @classmethod
    def of(cls, file: Any) -> _Contents:
        data = file.read()
        name = getattr(file, "name", None)
        text = data.encode() if isinstance(data, str) else bytes(data)
        return cls(name if isinstance(name, str) else "the open file", text)

    def __str__(self) -> str:
        return self.name


def _open(path: Any) -> Any:
    return BytesIO(path.data) if isinstance(path, _Contents) else open_bytes(path)


def _read_file(
    path: Any, dtype: np.dtype[Any], n_features: int | None, zero_based: bool
) -> tuple[Any, Floats, Ints, NDArray[Any] | None]:
    """Return the CSR matrix, labels, qids and document ids of a file (None if one is missing)."""
    try:
        with _open(path) as file:
            X, labels, groups = _load(file, dtype, n_features, zero_based)
    except (ValueError, OverflowError, EOFError, OSError, zlib.error) as error:
        if getattr(error, "errno", None) is not None:
            raise
        with _open(path) as file:
            _blame(path, numbered_lines(path, file), dtype, n_features, zero_based)
        raise ValueError(f"{path}: {error}") from error
    if not len(labels):
        raise ValueError(f"{path} has no rows with a qid:. {_WANTED}.")
    ids = []
    with _open(path) as file:
        for _, line in numbered_lines(path, file):
            row, _, comment = line.partition(b"#")
            if row and not row.isspace():
                named = _DOCUMENT.search(comment)
                try:
                    ids.append((named[1] or named[2]).decode() if named else None)
                except UnicodeDecodeError:
                    ids.append(None)
                if ids[-1] is None:
                    return X, labels, groups, None
    return X, labels, groups, np.array(ids, dtype=object)


def _load(
    file: Any, dtype: np.dtype[Any], n_features: int | None, zero_based: bool
) -> tuple[Any, Any, Any]:
    """Read features, labels and qids by scikit-learn, and check them."""
    kind = np.float32 if dtype.itemsize <= 4 else np.float64
    X, labels, groups = load_svmlight_file(
        file, n_features=n_features, dtype=kind, zero_based=zero_based, query_id=True
    )
    with np.errstate(over="ignore"):  # checked below
        X = X.astype(dtype, copy=False)
    if len(groups) < len(labels):
        raise ValueError("there is no qid:, which every line needs")
    if not np.isfinite(labels).all():
        raise ValueError("the label is not finite")
    if np.isinf(X.data).any():
        raise ValueError(f"a value is too large for {dtype}")
    check_range(labels, "label")
    return X, labels, groups


def _blame(
    path: Any, lines: Any, dtype: np.dtype[Any], n_features: int | None, zero_based: bool
) -> None:
    """Raise an error about the first line that cannot be read, if there is such a line."""
    while chunk := list(islice(lines, 1000)):
        try:
            _load(BytesIO(b"".join(line for _, line in chunk)), dtype, n_features, zero_based)
        except (ValueError, OverflowError):
            for number, line in chunk:
                try:
                    _load(BytesIO(line), dtype, n_features, zero_based)
                except (ValueError, OverflowError) as error:
                    text = line.decode("utf-8", "replace").strip()[:80]
                    what = str(error).rstrip(".")
                    kind = ValueError
                    if not zero_based and what.startswith("Invalid index 0 "):
                        kind = _StartsAtZero
                    raise kind(
                        f"{path}, line {number}: {text!r} cannot be read: {what}. {_WANTED}."
                    ) from None
