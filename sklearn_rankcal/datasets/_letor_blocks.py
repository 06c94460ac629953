"""Blocks of LETOR files: consecutive lines with whole queries, which can be read one by one."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, BinaryIO

import numpy as np

from sklearn_rankcal.datasets._letor import IN_SEVERAL_FILES, LetorPart, open_part, read_part
from sklearn_rankcal.utils._text_files import is_compressed, numbered_lines

_CHUNK = 2**16
#: The beginning of a row: its label and its qid.
_ROW_START = re.compile(rb"\s*[^\s#]+\s+qid:([+-]?\d{1,19})(?![^\s#])")

_NOT_TOGETHER = (
    "The rows of a query must be next to each other in a file that is read in blocks. Sort its "
    "lines by qid, or pass blocksize=None."
)


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
    """The numbers of lines and rows of a block, and the number of lines before each new qid."""

    n_lines: int
    n_rows: int
    lines: dict[int, int]

    @classmethod
    def of(cls, block: Block) -> Survey:
        """Read the query ids of a block. This takes a small part of the time of `Block.read`."""
        lines: dict[int, int] = {}
        n_rows, number, last = 0, 0, None
        with open_part(block.path, block.start, block.stop) as file:
            for number, line in numbered_lines(block.path, file):
                if found := _ROW_START.match(line):
                    n_rows += 1
                    if found[1] != last:
                        last = found[1]
                        lines.setdefault(int(last), number - 1)
        return cls(number, n_rows, lines)


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
    begins: dict[int, tuple[str, int]] = {}  # where each query begins
    first = 1
    for block, survey in zip(blocks, surveys, strict=True):
        if block.start == 0:
            first = 1
        for qid, before in survey.lines.items():
            path, line = begins.setdefault(qid, (block.path, first + before))
            if (path, line) != (block.path, first + before):
                remedy = IN_SEVERAL_FILES if path != block.path else _NOT_TOGETHER
                raise ValueError(
                    f"qid {qid} begins at {path}, line {line} and {block.path}, line "
                    f"{first + before}. {remedy}"
                )
        found.append(replace(block, first_line=first))
        first += survey.n_lines
    return found
