"""Readers of the text files of users, plain or compressed, with errors that name the line."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import zlib
from collections.abc import Iterator
from os import PathLike
from typing import Any

Path = str | PathLike[str]
_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}


def open_bytes(path: Path) -> Any:
    """Open a file for reading bytes, and decompress it if it is called ``.gz`` or ``.bz2``."""
    opener = _OPENERS.get(os.path.splitext(os.fspath(path))[1])
    if opener is None:
        return open(path, "rb")
    return io.BufferedReader(opener(path, "rb"))  # yields lines at the speed of C


def numbered_lines(path: Path, file: Any, blank: bool = True) -> Iterator[tuple[int, Any]]:
    """Yield the numbers, from 1, and the lines of an open file. ValueError if it is damaged.

    Lines of white space are left out unless `blank`.
    """
    number = 0
    try:
        for number, line in enumerate(file, 1):
            if blank or not line.isspace():
                yield number, line
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        # Text is decoded in blocks, so that the line is found by reading the file again.
        with open_bytes(path) as again:
            lines = (k for k, line in enumerate(again, 1) if not _is_utf8(line))
            number = next(lines, number)
        raise ValueError(
            f"{path}, line {number}: byte 0x{byte:02x} is not text in UTF-8. Save the file in "
            "that encoding."
        ) from None
    except (EOFError, OSError, zlib.error) as error:
        if getattr(error, "errno", None) is not None:  # of the system, not of the contents
            raise
        raise ValueError(
            f"{path}: the compressed data is damaged or cut short after line {number} ({error}). "
            "Download or pack it again."
        ) from error


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


class LineReader:
    """Iterate over the lines of a text file in UTF-8 that are not blank; once only.

    `number` is the number of the line that was returned last, from 1.
    """

    def __init__(self, path: Path) -> None:
        self.path = os.fspath(path)
        self.number = 0

    def error(self, what: str) -> ValueError:
        """Return an error about the line that was returned last."""
        return ValueError(f"{self.path}, line {self.number}: {what}")

    def __iter__(self) -> Iterator[str]:
        with io.TextIOWrapper(open_bytes(self.path), "utf-8-sig") as file:
            for number, line in numbered_lines(self.path, file, blank=False):
                self.number = number
                yield line
