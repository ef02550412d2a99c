"""Whether a CSV file ends between quotes: then its last row has swallowed all that stood behind the one that opened."""

from __future__ import annotations

import gzip
import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

QUOTE, BOM = b'"', b"\xef\xbb\xbf"


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
    if last is None or not (last.endswith("\n") or _ends_within_a_line(file, last)):
        return False
    with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as opened:
        return stays_open(opened.read().removeprefix(BOM), delimiter)


def _ends_within_a_line(file: Path, last: str) -> bool:
    """Say whether the last line may have no end; of what is packed it is not known before all of it is read."""
    if file.suffix == ".gz":
        return "\n" in last
    with file.open("rb") as opened:
        opened.seek(-1, os.SEEK_END)
        return opened.read(1) not in {b"\n", b"\r"}


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
        at = max(at, data.rfind(b"\n", at, quote) + 1)
        while at <= quote:
            found = field.match(data, at)
            end = at if found is None else found.end()
            if data[end : end + 1] == QUOTE:
                return True
            at = end + 1
    return False
