"""Reader of LETOR files, the SVMlight format with query ids."""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack
from sklearn.utils import Bunch

from sklearn_rankcal.utils._memory import check_memory
from sklearn_rankcal.utils._text_files import LineReader

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: A dense X with more cells than DENSE_CELLS is refused if the files contain less than one in
#: DENSE_SHARE of them.
DENSE_CELLS, DENSE_SHARE = 2**24, 1000
# A text can match this pattern in one way only, so lines that do not match are refused in linear
# time.
_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_ROW_START = rf"\s*({_NUMBER})\s+qid:(-?\d{{1,19}})"
_LINE = re.compile(rf"{_ROW_START}((?:\s+\d{{1,10}}:(?:{_NUMBER}|[nN][aA][nN]))*)\s*", re.ASCII)
#: The beginning of a row: its label and, as the second group, its qid.
ROW_START = re.compile(rf"{_ROW_START}(?![^\s#])", re.ASCII)
#: What `load_letor` says of a query in several files.
IN_SEVERAL_FILES = (
    "A qid occurs in more than one file, and its rows would become one query. Load the files one "
    "by one and give their queries different ids."
)
_DOCUMENT = re.compile(r"\bdocid\s*=\s*(\S+)")
#: Bytes that are stored for each line, without and with the id of its document.
_BYTES_PER_LINE, _BYTES_WITH_ID = 40, 140
_WANTED = "Every line must be 'label qid:number feature:value feature:value ...', features in order"


def load_letor(
    path: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    n_features: int | None = None,
    dtype: Any = np.float32,
    sparse: bool = False,
) -> Bunch:
    """Read ranking data in the SVMlight format with ``qid:`` (LETOR, MSLR, Yahoo, Istella).

    Parameters
    ----------
    path : path or sequence of paths
        The files to read, plain, ``.gz`` or ``.bz2``. The rows of several files, such as the folds
        of LETOR, are stacked.
    n_features : int, default=None
        Number of features. If None, it is the largest index in the files.
    dtype : dtype, default=numpy.float32
        The floating point dtype of ``X``.
    sparse : bool, default=False
        Whether ``X`` is a CSR matrix. It takes less memory if most features of a row are 0.

    Returns
    -------
    data : Bunch
        A dictionary-like object with ``X`` of shape (n_rows, n_features), the relevance ``y`` of
        shape (n_rows,) and the query ids ``groups`` of shape (n_rows,). They can be passed to
        `fit`. A feature that is not in a line is 0, and the value ``nan`` is NaN.

        ``document_ids``, of shape (n_rows,), are the document ids as text, if the comment of every
        line contains one in UTF-8, such as ``# docid = GX008-86-4444840``. Otherwise it is None.
        `to_run` and `to_qrels` take these ids.

    Raises
    ------
    FileNotFoundError
        If a file does not exist.
    ValueError
        If a line has another format or no ``qid:``; if the features of a line do not ascend from 1,
        or are beyond 2^31 - 1 or `n_features`; if numbers are too large for `dtype`; if a
        compressed file is damaged or cut short; if a qid occurs in several files; or if a dense
        ``X`` does not fit in memory. A dense ``X`` is also refused if `n_features` is not passed,
        and ``X`` would have more than 2^24 cells (16.8 million) of which the files contain less
        than one in 1,000. If a single line causes the error, the error names that line.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn_rankcal.datasets import load_letor
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "train.txt")
    ...     _ = file.write_text("2 qid:7 1:0.5 2:1 # docid = a\\n0 qid:7 2:0.25\\n")
    ...     data = load_letor(file)
    >>> data.X.tolist(), data.y.tolist(), data.groups.tolist()
    ([[0.5, 1.0], [0.0, 0.25]], [2.0, 0.0], [7, 7])

    The second line has no document id.

    >>> data.document_ids is None
    True
    """
    kind = check_options(n_features, dtype)
    paths = [path] if isinstance(path, (str, PathLike)) else list(path)
    if not paths:
        raise ValueError("path is an empty sequence. Pass at least one file.")
    parts = [read_part(one, kind) for one in paths]
    groups = np.concatenate([part.groups for part in parts])
    if sum(len(np.unique(part.groups)) for part in parts) > len(np.unique(groups)):
        raise ValueError(IN_SEVERAL_FILES)
    widest = max(parts, key=lambda part: part.widest)
    width = max(widest.widest, 1) if n_features is None else int(n_features)
    widest.check_width(width)
    y = np.concatenate([part.labels for part in parts])
    if sparse:
        X = vstack([part.matrix(width) for part in parts], format="csr")
    else:
        X = dense_table(parts, width, kind, n_features is None)
    ids = [part.documents for part in parts if part.documents is not None]
    documents = np.concatenate(ids) if len(ids) == len(parts) else None
    return Bunch(X=X, y=y, groups=groups, document_ids=documents)


def check_options(n_features: Any, dtype: Any) -> np.dtype[Any]:
    """Check the number of features, and return the dtype."""
    kind = np.dtype(dtype)
    if kind.kind != "f":
        raise ValueError(f"dtype must be a floating point dtype; got {dtype!r}.")
    if n_features is not None and (not isinstance(n_features, Integral) or n_features < 1):
        raise ValueError(f"n_features must be a whole number >= 1 or None; got {n_features!r}.")
    return kind


@dataclass
class LetorPart:
    """The contents of lines of a file: rows, and the entries feature:value of the rows."""

    path: Any
    labels: Floats  # the label of each row
    groups: Ints  # the qid of each row
    lines: Ints  # the line of each row in the file
    stops: Ints  # row k has the entries stops[k] to stops[k + 1] - 1
    indices: Ints  # the feature of each entry, from 1
    values: NDArray[Any]  # the value of each entry
    documents: NDArray[Any] | None  # the document id of each row, if every row has one
    unnamed: int | None  # the first line without a document id, if there is one

    def __post_init__(self) -> None:
        self.widest = int(self.indices.max(initial=0))

    def where(self, entry: int) -> str:
        """Return the file and the line of an entry."""
        row = int(np.searchsorted(self.stops, entry, side="right")) - 1
        return f"{self.path}, line {self.lines[row]}"

    def where_widest(self) -> str:
        """Return the file and the line of the largest feature."""
        return self.where(int(np.argmax(self.indices)))

    def check_width(self, width: int) -> None:
        """Raise an error if a feature exceeds the number of features."""
        if self.widest > width:
            raise ValueError(
                f"{self.where_widest()}: the feature {self.widest} exceeds n_features={width}."
            )

    def matrix(self, width: int) -> Any:
        """Return the rows as a CSR matrix."""
        shape = (len(self.labels), width)
        return csr_matrix((self.values, self.indices - 1, self.stops), shape=shape)


def read_part(
    path: str | PathLike[str],
    dtype: np.dtype[Any],
    start: int = 0,
    stop: int | None = None,
    first_line: int = 1,
) -> LetorPart:
    """Read a file or some lines of it, and check the contents.

    The lines are those from the byte `start` to the byte `stop` - 1. `first_line` is the number of
    the first one.
    """
    labels, values = array("d"), array("f" if dtype.itemsize <= 4 else "d")
    groups, line_numbers, stops, indices = array("q"), array("q"), array("q", [0]), array("i")
    documents: list[str] | None = []
    # Only document ids are kept of comments, so these may have any encoding.
    unnamed = None
    lines = LineReader(
        path,
        bytes_per_character=6,
        bytes_per_line=_BYTES_WITH_ID,
        any_bytes=True,
        start=start,
        stop=stop,
        first_number=first_line,
    )
    for number, line in lines:
        text, _, comment = line.partition("#")
        if not text or text.isspace():
            continue
        found = _LINE.fullmatch(text)
        if found is None:
            raise lines.error(_what_is_wrong(text))
        cells = found[3].replace(":", " ").split()
        try:
            groups.append(int(found[2]))
            indices.extend(map(int, cells[::2]))
        except OverflowError:
            raise lines.error(
                "a qid is beyond 64 bits, or a feature beyond 2,147,483,647."
            ) from None
        values.extend(map(float, cells[1::2]))
        labels.append(float(found[1]))
        stops.append(len(indices))
        line_numbers.append(number)
        if documents is not None:
            named = _DOCUMENT.search(comment)
            if named is None or not _is_utf8(named[1]):
                documents, unnamed = None, number
                lines.bytes_per_line = _BYTES_PER_LINE
            else:
                documents.append(named[1])
    if not labels:
        raise ValueError(f"{path} has no rows with a qid:. {_WANTED}.")
    with np.errstate(over="ignore"):  # `_check` refuses infinite numbers
        numbers = np.array(values, dtype=dtype)
    part = LetorPart(
        path,
        np.array(labels),
        np.array(groups, dtype=np.int64),
        np.array(line_numbers, dtype=np.int64),
        np.array(stops, dtype=np.int64),
        np.array(indices),
        numbers,
        None if documents is None else np.array(documents, dtype=object),
        unnamed,
    )
    _check(part)
    return part


def _is_utf8(text: str) -> bool:
    """Whether the bytes that the text was read from are valid UTF-8; others are surrogates."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def _check(part: LetorPart) -> None:
    """Refuse features that are out of order, and numbers that are infinite in the dtype."""
    ascends = np.diff(part.indices, prepend=0) > 0
    starts = part.stops[:-1]
    starts = starts[starts < len(part.indices)]
    ascends[starts] = part.indices[starts] > 0  # the first entry of a row
    if not ascends.all():
        entry = int(np.argmin(ascends))
        raise ValueError(
            f"{part.where(entry)}: the feature {part.indices[entry]} is out of order. Features "
            "must ascend in a line, from 1."
        )
    infinite = np.isinf(part.values)
    if infinite.any():
        where = part.where(int(np.argmax(infinite)))
        raise ValueError(f"{where}: a value is too large for {part.values.dtype}.")
    infinite = np.isinf(part.labels)
    if infinite.any():
        line = part.lines[int(np.argmax(infinite))]
        raise ValueError(f"{part.path}, line {line}: the label is too large for a float.")


def _what_is_wrong(text: str) -> str:
    """Return the error message for a line that is not in the format."""
    if "qid:" not in text:
        return f"{text.strip()[:80]!r} has no qid:, which a ranker needs on every line. {_WANTED}."
    for entry in text.split()[2:]:
        if re.fullmatch(rf"\d{{1,10}}:(?:{_NUMBER}|[nN][aA][nN])", entry, re.ASCII) is None:
            return f"{entry[:80]!r} is not of the form feature:value. {_WANTED}."
    return (
        f"{text.strip()[:80]!r} is not in the SVMlight format with a whole number as qid:. "
        f"{_WANTED}."
    )


def dense_table(
    parts: list[LetorPart], width: int, dtype: np.dtype[Any], found: bool
) -> NDArray[Any]:
    """Return all rows as an array; refuse it if it would be nearly empty or too large."""
    n_rows = sum(len(part.labels) for part in parts)
    held = sum(len(part.indices) for part in parts)
    cells = n_rows * width
    remedy = "Pass sparse=True for a sparse X."
    if found and cells > max(DENSE_CELLS, DENSE_SHARE * held):
        widest = max(parts, key=lambda part: part.widest)
        raise ValueError(
            f"{widest.where_widest()}: with the feature {width}, X would have {cells:,} cells, but "
            f"the files contain only {held:,}. {remedy} For a dense X, pass n_features={width}."
        )
    check_memory(cells * dtype.itemsize, f"A dense X of {n_rows:,} x {width:,}", remedy)
    X = np.zeros((n_rows, width), dtype=dtype)
    first = 0
    for part in parts:
        last = first + len(part.labels)
        part.matrix(width).toarray(out=X[first:last])
        first = last
    return X
