"""Readers of plain or compressed text files, with line numbers in their errors."""

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
    """Open a file for reading bytes, and decompress it if its name ends in ``.gz`` or ``.bz2``."""
    opener = _OPENERS.get(os.path.splitext(os.fspath(path))[1])
    if opener is None:
        return open(path, "rb")
    return io.BufferedReader(opener(path, "rb"))  # yields lines at the speed of C


def numbered_lines(path: Path, file: Any, blank: bool = True) -> Iterator[tuple[int, Any]]:
    """Yield the numbers, from 1, and the lines of an open file.

    Blank lines are left out unless `blank`. Raises ValueError if the file is damaged.
    """
    number = 0
    try:
        for number, line in enumerate(file, 1):
            if blank or not line.isspace():
                yield number, line
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        # Text is decoded in blocks: read the file again to find the line.
        with open_bytes(path) as again:
            lines = (k for k, line in enumerate(again, 1) if not _is_utf8(line))
            number = next(lines, number)
        raise ValueError(
            f"{path}, line {number}: byte 0x{byte:02x} is not text in UTF-8. Save the file in "
            "that encoding."
        ) from None
    except (EOFError, OSError, zlib.error) as error:
        if getattr(error, "errno", None) is not None:  # an error of the system, not the contents
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
    """Iterate once over the non-blank lines of a UTF-8 text file.

    `number` is the number of the line returned last, counted from 1.
    """

    def __init__(self, path: Path) -> None:
        self.path = os.fspath(path)
        self.number = 0

    def error(self, what: str) -> ValueError:
        """Return an error about the line returned last."""
        return ValueError(f"{self.path}, line {self.number}: {what}")

    def __iter__(self) -> Iterator[str]:
        with io.TextIOWrapper(open_bytes(self.path), "utf-8-sig") as file:
            for number, line in numbered_lines(self.path, file, blank=False):
                self.number = number
                if "\0" in line:
                    raise self.error("it contains a NUL byte, which is no text. Save it as UTF-8.")
                yield line
