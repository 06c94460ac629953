"""Blocks of LETOR files: consecutive lines with whole queries, which can be read one by one.

A path and a size come in. The places come out at which the file can be cut without cutting a query,
and the lines and query ids between them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from sklearn_rankcal.datasets._letor import IN_SEVERAL_FILES, ROW_START, LetorPart, read_part
from sklearn_rankcal.utils._text_files import LONGEST_LINE, LineReader, is_compressed

_CHUNK = 2**16


@dataclass(frozen=True)
class Block:
    """Some lines of a file.

    Attributes
    ----------
    path : str
    start, stop : int or None
        The lines are those from the byte `start` to the byte `stop` - 1. None is the end of the
        file.
    first_line : int
        The number of the first line in the file.
    size, modified : int
        The bytes of the file and the time when it was changed, when the block was made.
    """

    path: str
    start: int = 0
    stop: int | None = None
    first_line: int = 1
    size: int = 0
    modified: int = 0

    def read(self, dtype: np.dtype[Any]) -> LetorPart:
        """Read the rows.

        Raises
        ------
        ValueError
            As `load_letor` does, or if the file has another size than when the block was made.
        """
        size = os.stat(self.path).st_size
        if size != self.size:
            raise ValueError(
                f"{self.path} had {self.size:,} bytes when its blocks were made, and has {size:,} "
                "now. Call read_letor again."
            )
        return read_part(self.path, dtype, self.start, self.stop, self.first_line)


@dataclass(frozen=True)
class Survey:
    """What is known of a block whose numbers were not read.

    Attributes
    ----------
    n_lines, n_rows : int
        The numbers of lines, and of lines that begin as rows do.
    ids : ndarray of shape (n_queries,)
        The qid of each query, in order of first appearance.
    lines : ndarray of shape (n_queries,)
        The number of lines before its first row.
    """

    n_lines: int
    n_rows: int
    ids: NDArray[np.int64]
    lines: NDArray[np.int64]

    @classmethod
    def of(cls, block: Block) -> Survey:
        """Read the query ids of a block. This takes a small part of the time of `Block.read`."""
        reader = LineReader(
            block.path,
            bytes_per_character=0,
            bytes_per_line=0,
            any_bytes=True,
            start=block.start,
            stop=block.stop,
        )
        first: dict[int, int] = {}
        n_rows, last = 0, None
        for number, line in reader:
            found = ROW_START.match(line)
            if found is None:
                continue
            n_rows += 1
            if found[2] != last:
                last = found[2]
                first.setdefault(int(last), number - 1)
        # `read_part` refuses others
        known = {qid: line for qid, line in first.items() if -(2**63) <= qid < 2**63}
        return cls(
            reader.next_number - 1,
            n_rows,
            np.fromiter(known.keys(), np.int64, len(known)),
            np.fromiter(known.values(), np.int64, len(known)),
        )


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
    last = None  # the qid of the row before
    for start, line in _lines(file, max(place - _CHUNK, 0)):
        found = ROW_START.match(line.decode("utf-8", "surrogateescape"))
        if found is None:
            continue
        # Where the row before is not known, because lines are long, the query is not cut off here.
        if start >= place and last is not None and int(found[2]) != last:
            return start
        last = int(found[2])
    return size


def _lines(file: BinaryIO, begin: int) -> Iterator[tuple[int, bytes]]:
    """Yield the place and the bytes of each line that begins after `begin`, or at it if it is 0."""
    file.seek(begin)
    rest, start, skip = b"", begin, begin > 0
    while True:
        piece = file.read(_CHUNK)
        # of bytes, splitlines splits at the line ends of all systems and nowhere else
        lines = (rest + piece).splitlines(keepends=True)
        # the last line can continue in the next piece, and so can a line end of two bytes
        rest = lines.pop() if piece and lines else b""
        if len(rest) > LONGEST_LINE:
            raise ValueError(
                f"{file.name}: the line at byte {start:,} has more than {LONGEST_LINE:,} bytes."
            )
        for line in lines:
            if not skip:
                yield start, line
            skip = False
            start += len(line)
        if not piece:
            return


def numbered(blocks: Sequence[Block], surveys: Sequence[Survey]) -> list[Block]:
    """Return the blocks with the numbers of their first lines.

    Raises
    ------
    ValueError
        If a qid is in several blocks.
    """
    found: list[Block] = []
    line = 1
    for block, survey in zip(blocks, surveys, strict=True):
        if block.start == 0:
            line = 1
        found.append(replace(block, first_line=line))
        line += survey.n_lines
    _check_ids(found, surveys)
    return found


def _check_ids(blocks: list[Block], surveys: Sequence[Survey]) -> None:
    ids = np.concatenate([survey.ids for survey in surveys])
    order = np.argsort(ids, kind="stable")
    twice = np.flatnonzero(ids[order][1:] == ids[order][:-1])
    if not len(twice):
        return
    of_block = np.repeat(np.arange(len(blocks)), [len(survey.ids) for survey in surveys])
    lines = np.concatenate([survey.lines for survey in surveys])
    two = [
        (blocks[of_block[k]].path, blocks[of_block[k]].first_line + lines[k])
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
