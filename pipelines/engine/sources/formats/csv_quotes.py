"""Whether a CSV file ends between quotes: then its last row has swallowed all that stood behind the one that opened."""

from __future__ import annotations

import gzip
import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

QUOTE, BOM = b'"', b"\xef\xbb\xbf"
LONGEST_NUMBER = 1_024
"""Bytes that no value has that is no text."""
AT_ONCE = 1 << 20
LINE_ENDS, BYTEWISE = ("\n", "\r"), "latin-1"


def ends_between_quotes(file: Path, delimiter: str, last: str | None) -> bool:
    """Say whether a field of a file begins with a quote that nothing closes: its value goes on to the end of the file.

    A value that does not end as the file does is closed, which is seen at once; else each field is looked at.

    Args:
        file: plain or gzipped.
        delimiter: one character between fields.
        last: the value of the last row's last column.

    Raises:
        OSError, EOFError, zlib.error: it cannot be read.
    """
    if last is None:
        return False
    with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as opened:
        if not last.endswith(LINE_ENDS) and file.suffix != ".gz":
            opened.seek(-1, os.SEEK_END)
            if opened.read(1).decode(BYTEWISE) in LINE_ENDS:
                return False
            opened.seek(0)
        data = opened.read()
    if not last.endswith(LINE_ENDS) and data[-1:].decode(BYTEWISE) in LINE_ENDS:
        return False
    return stays_open(data.removeprefix(BOM), delimiter)


def is_cut_between_quotes(file: Path, delimiter: str) -> bool:
    """Say whether a file ends within a short value that begins with a quote: one that was cut does.

    Args:
        file: plain or gzipped.
        delimiter: one character between fields.

    Raises:
        OSError, EOFError, zlib.error: it cannot be read.
    """
    with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as opened:
        plain = opened.seek(0, os.SEEK_END) if file.suffix != ".gz" else None
        size = sum(map(len, iter(lambda: opened.read(AT_ONCE), b""))) if plain is None else plain
        opened.seek(max(0, size - LONGEST_NUMBER))
        value = re.split(rb"[\r\n" + re.escape(delimiter.encode()) + rb"]", opened.read())[-1]
    return value.startswith(QUOTE) and value.count(QUOTE) % 2 == 1


def stays_open(data: bytes, delimiter: str) -> bool:
    r"""Say whether the last field that begins with a quote is never closed.

    >>> stays_open(b'a,b\\n1,"x\\n2,y\\n', ","), stays_open(b'a,b\\n1,5" pipe\\n2,"x""y"\\n', ",")
    (True, False)
    """
    ends = re.escape(delimiter.encode()) + rb"\r\n"
    field = re.compile(rb'"(?:[^"]++|"")*+"[^%b]*|[^"%b][^%b]*|' % (ends, ends, ends))
    at = 0
    while (quote := data.find(QUOTE, at)) >= 0:
        # What has no quote is passed over, line by line.
        at = max(at, data.rfind(b"\n", at, quote) + 1, data.rfind(b"\r", at, quote) + 1)
        while at <= quote:
            found = field.match(data, at)
            end = at if found is None else found.end()
            if data[end : end + 1] == QUOTE:
                return True
            at = end + 1
    return False
