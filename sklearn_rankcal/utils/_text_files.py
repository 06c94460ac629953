"""A reader of text files that users pass, line by line, with line numbers.

A small file can contain a large text: 300 KB of gzip can hold 300 MB. Lines are therefore read as
a stream, blank lines are skipped in bulk, and the length of a line is bounded. What the caller
stores is estimated while reading and compared with the memory of the machine.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import os
import re
import sys
import zlib
from collections.abc import Iterator
from os import PathLike
from typing import Any

from sklearn_rankcal.utils._memory import check_memory

Path = str | PathLike[str]
#: The largest number of characters of a line.
LONGEST_LINE = 2**24
_CHUNK = 2**16
_OPENERS = {".gz": gzip.open, ".bz2": bz2.open}
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


class LineReader:
    """Iterate over (number, line) of the lines of a text file that are not blank; once only.

    Parameters
    ----------
    path : path
        Text in UTF-8, plain, ``.gz`` or ``.bz2``, with the line ends of any system. Line numbers
        start at 1.
    bytes_per_character, bytes_per_line : int
        An estimate of what the caller stores. If it exceeds the available memory, an error is
        raised.
    any_bytes : bool
        Whether to accept bytes that are not UTF-8, and return them as surrogates. This is for
        comments that are ignored.
    start, stop : int
        The bytes of a plain file to read, from `start` to `stop` - 1. A line begins at each of
        them. None is the end of the file.
    first_number : int
        The number of the line that begins at `start`.

    Attributes
    ----------
    number : int
        The number of the line that was returned last.
    next_number : int
        The number of the line that begins at `stop`, after the iteration.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    ValueError
        If a compressed file is damaged or cut short, if bytes are not UTF-8, if a line is too long,
        or if the text does not fit in memory. The error names the file and the line.
    """

    def __init__(
        self,
        path: Path,
        *,
        bytes_per_character: int = 2,
        bytes_per_line: int = 100,
        any_bytes: bool = False,
        start: int = 0,
        stop: int | None = None,
        first_number: int = 1,
    ) -> None:
        self.path = os.fspath(path)
        self.number = 0
        # during the iteration, the number of the line in which the next piece of text begins
        self.next_number = first_number
        self.start, self.stop = start, stop
        self.bytes_per_character = bytes_per_character
        self.bytes_per_line = bytes_per_line
        self.any_bytes = any_bytes

    def error(self, what: str) -> ValueError:
        """Return an error about the line that was returned last."""
        return ValueError(f"{self.path}, line {self.number}: {what}")

    def __iter__(self) -> Iterator[tuple[int, str]]:
        kept = 0
        for first, lines in self._blocks():
            for number, line in enumerate(lines, first):
                if line and not line.isspace():
                    self.number = number
                    kept += len(line) * self.bytes_per_character + self.bytes_per_line
                    yield number, line
            check_memory(
                kept,
                f"{self.path}, read up to line {self.number},",
                "The compressed file may be much smaller than its text. Read it in parts.",
            )

    def _blocks(self) -> Iterator[tuple[int, list[str]]]:
        """Yield runs of whole lines, with the number of the first line of each."""
        # rest is the beginning of a line whose end was not read yet
        number, rest = self.next_number, ""
        for text in self._texts():
            head, newline, tail = (rest + text).rpartition("\n")
            if newline:
                if not head or head.isspace():  # blank lines are only counted
                    count = head.count("\n") + 1
                else:
                    lines = head.split("\n")
                    count = len(lines)
                    if len(head) > LONGEST_LINE:
                        self._check_lengths(lines, number)
                    self._check_text(head, number)
                    yield number, lines
                number += count
            rest, self.next_number = tail, number
            if len(rest) > LONGEST_LINE:
                if not rest.isspace():
                    self._check_lengths([rest], number)
                rest = " "  # replace a long blank line by a short one, to save memory
        self._check_text(rest, number)
        yield number, [rest]

    def _texts(self) -> Iterator[str]:
        """Yield the text in pieces, with newlines as line ends and surrogates for invalid bytes."""
        opener: Any = _OPENERS.get(os.path.splitext(self.path)[1], open)
        encoding = "utf-8" if self.start else "utf-8-sig"  # a mark of the encoding comes first
        decoder = io.IncrementalNewlineDecoder(
            codecs.getincrementaldecoder(encoding)("surrogateescape"), translate=True
        )
        left = sys.maxsize if self.stop is None else self.stop - self.start
        with opener(self.path, "rb") as file:
            if self.start:
                file.seek(self.start)
            while True:
                try:
                    piece = file.read1(min(_CHUNK, left))
                except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                    raise self._damaged(error) from error
                except OSError as error:
                    if error.errno is not None:  # an error of the system, not of the contents
                        raise
                    raise self._damaged(error) from error
                left -= len(piece)
                yield decoder.decode(piece, final=not piece)
                if not piece:
                    return

    def _check_text(self, text: str, first: int) -> None:
        if self.any_bytes or text.isascii():
            return
        try:
            text.encode()
        except UnicodeEncodeError as error:
            self.number = first + text.count("\n", 0, error.start)
            raise self.error(
                f"byte 0x{ord(text[error.start]) - 0xDC00:02x} is not text in UTF-8. Save the file "
                "in that encoding."
            ) from None

    def _damaged(self, error: Exception) -> ValueError:
        self.number = self.next_number
        return self.error(
            f"the compressed data is damaged or cut short ({error}). Download or pack it again."
        )

    def _check_lengths(self, lines: list[str], first: int) -> None:
        for number, line in enumerate(lines, first):
            if len(line) > LONGEST_LINE:
                self.number = number
                raise self.error(f"the line has more than {LONGEST_LINE:,} characters.")


def is_compressed(path: Path) -> bool:
    """Whether `LineReader` decompresses a file."""
    return os.path.splitext(os.fspath(path))[1] in _OPENERS


def parse_number(text: str) -> float:
    """Convert text to a number; only plain decimal numbers are accepted.

    White space and underscores inside a number, "nan" and "inf" are refused.

    Raises
    ------
    ValueError
        If the text is not a decimal number, or if the number is too large for float64.

    Examples
    --------
    >>> from sklearn_rankcal.utils._text_files import parse_number
    >>> parse_number("-1.5e3")
    -1500.0
    >>> parse_number("nan")
    Traceback (most recent call last):
    ValueError: 'nan' is not a decimal number.
    """
    if _NUMBER.fullmatch(text) is None:
        raise ValueError(f"{text[:40]!r} is not a decimal number.")
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{text[:40]!r} is too large for a number of 64 bits.")
    return value
