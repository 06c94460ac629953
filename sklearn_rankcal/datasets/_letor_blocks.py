"""Blocks of LETOR files: consecutive lines with whole queries, which can be read one by one."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.datasets._letor import IN_SEVERAL_FILES, LetorPart, open_part, read_part
from sklearn_rankcal.utils._text_files import is_compressed, numbered_lines

_CHUNK = 2**16
#: The beginning of a row: its label and its qid.
_ROW_START = re.compile(rb"\s*[^\s#]+\s+qid:([+-]?\d{1,19})(?![^\s#])")


@dataclass(frozen=True)
class Block:
    """The lines of a file from the byte `start` to the byte `stop` - 1, or to its end.

    `size` and `modified` are the bytes of the file and the time of its last change, when the block
    was made.
    """

    path: str
    start: int = 0
    stop: int | None = None
    first_line: int = 1
    size: int = 0
    modified: int = 0

    def read(self, dtype: np.dtype[Any], n_features: int | None = None) -> LetorPart:
        """Read the rows; ValueError as in `load_letor`, or if the file has another size now."""
        size = os.stat(self.path).st_size
        if size != self.size:
            raise ValueError(
                f"{self.path} had {self.size:,} bytes when its blocks were made, and has {size:,} "
                "now. Call read_letor again."
            )
        return read_part(self.path, dtype, n_features, self.start, self.stop, self.first_line)


@dataclass(frozen=True)
class Survey:
    """The numbers of lines and rows of a block; its query ids, and the line each begins at."""

    n_lines: int
    n_rows: int
    ids: NDArray[np.int64]
    lines: NDArray[np.int64]

    @classmethod
    def of(cls, block: Block) -> Survey:
        """Read the query ids of a block. This takes a small part of the time of `Block.read`."""
        first: dict[bytes, int] = {}
        n_rows = number = 0
        with open_part(block.path, block.start, block.stop) as file:
            for number, line in numbered_lines(block.path, file):
                if found := _ROW_START.match(line):
                    n_rows += 1
                    first.setdefault(found[1], number - 1)
        lines: dict[int, int] = {}
        for text, before in first.items():
            if -(2**63) <= int(text) < 2**63:  # `read_part` refuses others
                lines.setdefault(int(text), before)
        ids = np.fromiter(lines, np.int64, len(lines))
        return cls(number, n_rows, ids, np.fromiter(lines.values(), np.int64, len(lines)))


def blocks_of_file(path: str, n_bytes: int | None) -> list[Block]:
    """Cut a file into blocks of whole queries, which have about `n_bytes` bytes.

    A block begins at the first row at or after a place whose qid differs from that of the row
    before it. Only the lines around these places are read. A compressed file is one block.
    """
    status = os.stat(path)
    size = status.st_size
    whole = Block(path, size=size, modified=status.st_mtime_ns)
    if n_bytes is None or n_bytes >= size or is_compressed(path):
        return [whole]
    places = [0]
    with open(path, "rb") as file:
        while places[-1] < size:
            places.append(_next_query(file, places[-1] + n_bytes, size))
    return [replace(whole, start=start, stop=stop) for start, stop in pairwise(places)]


def _next_query(file: BinaryIO, place: int, size: int) -> int:
    """Return where a query begins whose first row is at `place` or after it."""
    start = max(place - _CHUNK, 0)
    file.seek(start)
    if start:
        start += len(file.readline())
    last = None  # the qid of the row before; it is not known where lines are long
    for line in file:
        if found := _ROW_START.match(line):
            if start >= place and last is not None and int(found[1]) != last:
                return start
            last = int(found[1])
        start += len(line)
    return size


def numbered(blocks: Sequence[Block], surveys: Sequence[Survey]) -> list[Block]:
    """Return the blocks with the numbers of their first lines; a qid may be in one block only."""
    found: list[Block] = []
    line = 1
    for block, survey in zip(blocks, surveys, strict=True):
        if block.start == 0:
            line = 1
        found.append(replace(block, first_line=line))
        line += survey.n_lines
    ids = np.concatenate([survey.ids for survey in surveys])
    order = np.argsort(ids, kind="stable")
    twice = np.flatnonzero(ids[order][1:] == ids[order][:-1])
    if not len(twice):
        return found
    of_block = np.repeat(np.arange(len(found)), [len(survey.ids) for survey in surveys])
    lines = np.concatenate([survey.lines for survey in surveys])
    two = [
        (found[of_block[k]].path, found[of_block[k]].first_line + lines[k])
        for k in order[twice[0] : twice[0] + 2]
    ]
    where = " and ".join(f"{path}, line {line}" for path, line in two)
    remedy = (
        IN_SEVERAL_FILES
        if two[0][0] != two[1][0]
        else "The rows of a query must be next to each other in a file that is read in blocks. "
        "Sort its lines by qid, or pass blocksize=None."
    )
    raise ValueError(f"qid {ids[order[twice[0]]]} begins at {where}. {remedy}")
