"""What a recorded feed is, whatever it reads: rows in an order that never changes.

The order of a feed is the order of its paths, a pattern's files by name, and inside a file its rows. A feed knows
nothing of keys, arrivals or time zones of keys; it gives what it has, and says when it may have changed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

BATCH = 131_072
"""Rows that are read at once."""


class Feed(ABC):
    """Rows that can be read again and again, in one order."""

    schema: pa.Schema
    """The columns as the feed has them."""
    files: Sequence[Path] = ()
    """Files with exactly these columns, in the order of their rows, that may stand for the rows that land."""
    odd: bool = False
    """Whether there are others beside `files`."""
    named: bool = False
    """Whether somebody gave its files their names, so that one that is gone is missed; a table names its own anew."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Give digits that change when the rows may have; cheap, nothing is read.

        Raises:
            FeedChangedError: a file that was there is gone or shorter; whose it is, the caller knows.
        """

    @abstractmethod
    def size(self) -> int:
        """Give the bytes of the rows as they lie there; cheap, nothing is read."""

    @abstractmethod
    def read(self, where: pa.compute.Expression | None = None) -> Iterator[pa.RecordBatch]:
        """Give the rows in the feed's order; those that `where` refuses may be left out, or not.

        A feed out of text may give one column more, `UNREADABLE`: JSON of what could not be read in a row, null where
        all could. One that has rows which cannot land, or columns that nobody declared, gives those of `told_rows`.
        """

    def read_odd(self, where: pa.compute.Expression | None = None) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - for those that have any
        """Give the rows of the files that are not among `files`, where those may stand for rows."""
        yield from ()

    def read_doubtful(self) -> Iterator[pa.RecordBatch]:
        """Give the rows of which the ledger may be told something: all, unless the feed knows which cannot be."""
        return self.read()
