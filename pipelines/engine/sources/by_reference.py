"""Which rows of a feed's files are a span, where the files themselves can stand for it; or why they must be copied.

Nothing is believed: every arrival of the span is read and seen to stand in its order. That no key is null and every
time can be read is what the files' statistics say where they are exact, else the rows; whoever opens the files looks
again. Rows that would need a line in the ledger, another order or another value are a reason to copy.
"""

from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import TIME, longs
from pipelines.engine.files.durable import sync_file, sync_folder
from pipelines.engine.landing.errors import ReferenceTypeError
from pipelines.engine.landing.references import Reference, ReferencedRows, digest_of
from pipelines.engine.landing.stamp import kind_of
from pipelines.engine.sources.footers import footer_of
from pipelines.flows.feeds.spec import NOWHERE
from pipelines.flows.model import Source
from pipelines.flows.region import PUNCTUATION
from pipelines.operators.rows import NULL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipelines.engine.sources.footers import ColumnBounds, Footer
    from pipelines.engine.sources.recording import Recording

MOST_READERS = 8
"""Files that are looked at at once."""
SYNCLESS = frozenset({errno.EROFS, errno.EINVAL, errno.ENOTSUP})
"""What storage says that has nothing to sync."""


class Run(NamedTuple):
    """Rows of one row group that follow one another."""

    group: int
    begin: int
    """Number of the first of them, from 0."""
    end: int
    of: int
    """Rows that the row group has."""
    first: int
    """Arrival of the first of them, in ticks."""
    last: int


class MustCopyError(Exception):
    """Rows of a file cannot be landed by reference; caught where it is told why they are copied."""


def check_referable(source: Source, came: pa.Schema, lands: pa.Schema) -> None:
    """See that every column lands with the very values that stand in the files.

    Args:
        source: what the flow says of the feed.
        came: columns of the files.
        lands: the same columns as they land, renamed.

    Raises:
        ReferenceTypeError: a column is converted when it lands.
    """
    for field, landed in zip(came, lands, strict=True):
        if field.type != landed.type:
            raise ReferenceTypeError(source.name, landed.name, str(field.type), str(landed.type))
        if pa.types.is_nested(field.type) and "timestamp" in str(field.type):
            raise ReferenceTypeError(source.name, landed.name, str(field.type), "without times inside it")


def refer(recording: Recording, start: int, end: int) -> ReferencedRows | str:
    """Find the rows that arrived in [start, end) in the files of a feed; nothing is written.

    Args:
        recording: of a feed of Parquet files whose columns `check_referable` has seen.
        start: in ticks.
        end: in ticks, exclusive.

    Returns:
        The rows where they lie; or, in words, why they must be copied.
    """
    readers = min(MOST_READERS, os.cpu_count() or 1)
    footers = [footer_of(path) for path in recording.files]
    looking = _Looking(recording, start, end)
    try:
        with ThreadPoolExecutor(readers) as pool:
            found = tuple(chain.from_iterable(pool.map(looking.found_in, footers)))
        _see_order(recording, found)
    except MustCopyError as why:
        return str(why)
    return ReferencedRows(source=_stamping(recording.source), files=found)


def _stamping(source: Source) -> Source:
    """Give what the stamps of a source's rows are made from, and nothing else that a flow says of it."""
    return Source(
        name=source.name,
        feed=NOWHERE,
        key=source.key,
        shape=source.shape,
        time=source.time,
        arrival=source.arrival,
        end=source.end,
        edge=source.edge,
        rename=dict(source.rename),
    )


def _see_order(recording: Recording, found: Sequence[Reference]) -> None:
    last = NULL
    for file in found:
        if file.first < last:
            raise _out_of_order(recording, file.path)
        last = file.last


def _out_of_order(recording: Recording, path: str) -> MustCopyError:
    return MustCopyError(f"rows of {path} do not stand in the order of `{recording.source.arrival}`")


class _Looking:
    """Looks into files for the rows of one span."""

    def __init__(self, recording: Recording, start: int, end: int) -> None:
        self._recording, self._source = recording, recording.source
        self._start, self._end = start, end
        self._timed = [field.name for field in recording.schema if field.type == TIME]

    def found_in(self, footer: Footer) -> list[Reference]:
        """Give the rows of a file that are in the span, a reference for each run of them.

        Raises:
            MustCopyError: they cannot be landed by reference.
        """
        runs = [run for group in range(footer.said.num_row_groups) if (run := self._run(footer, group)) is not None]
        if not runs:
            return []
        if any(run.first < before.last for before, run in pairwise(runs)):
            raise _out_of_order(self._recording, footer.path)
        have_on_disk(Path(footer.path))
        sha256 = digest_of(footer.path, footer.size, footer.changed, footer.touched)
        return [_reference(footer, sha256, joined) for joined in _joined(runs)]

    def _run(self, footer: Footer, group: int) -> Run | None:
        count = footer.said.row_group(group).num_rows
        if not count:
            return None
        arrived = self._bounds(footer, group, self._source.arrival)
        if arrived.nulls or not arrived.readable:
            # Such a row belongs to the span that its event time lies in, whichever that is.
            raise MustCopyError(f"a row of {footer.path} has no `{self._source.arrival}` that can be read")
        if arrived.high < self._start or arrived.low >= self._end:
            return None
        found = self._placed(footer, group, count)
        if found is not None:
            self._see_values(footer, group)
        return found

    def _placed(self, footer: Footer, group: int, count: int) -> Run | None:
        arrivals = longs(self._column(footer, group, self._source.arrival))
        inside = np.flatnonzero((arrivals >= self._start) & (arrivals < self._end))
        if not len(inside):
            return None
        begin, end = int(inside[0]), int(inside[-1]) + 1
        mine = arrivals[begin:end]
        if len(inside) != end - begin or not (mine[1:] >= mine[:-1]).all():
            raise _out_of_order(self._recording, footer.path)
        return Run(group, begin, end, count, int(mine[0]), int(mine[-1]))

    def _see_values(self, footer: Footer, group: int) -> None:
        """See that no row needs a line in the ledger."""
        for name in self._source.key:
            if self._bounds(footer, group, name).nulls:
                raise MustCopyError(f"a row of {footer.path} has no `{name}`, which is its key")
        for name in self._timed:
            if not self._bounds(footer, group, name).readable:
                raise MustCopyError(f"a time in `{name}` of {footer.path} cannot be read")
        if self._source.edge is not None:
            said = self._column(footer, group, self._source.edge)
            kinds = kind_of(self._source, pa.table({self._source.edge: said}))
            if kinds.null_count:
                raise MustCopyError(f"a row of {footer.path} does not say in `{self._source.edge}` what it is")
            if pc.any(pc.equal(kinds, PUNCTUATION)).as_py():
                raise MustCopyError(f"a row of {footer.path} is a window punctuation, which stands in the ledger")

    def _bounds(self, footer: Footer, group: int, name: str) -> ColumnBounds:
        kind = self._recording.schema.field(name).type
        return footer.bounds(group, pa.field(self._recording.feed_name(name), kind))

    def _column(self, footer: Footer, group: int, name: str) -> pa.ChunkedArray:
        return footer.column(group, self._recording.feed_name(name))


def _joined(runs: Sequence[Run]) -> Iterator[list[Run]]:
    """Put together runs that follow one another without a row between."""
    joined: list[Run] = []
    for run in runs:
        if joined and (run.group, run.begin, joined[-1].end) != (joined[-1].group + 1, 0, joined[-1].of):
            yield joined
            joined = []
        joined.append(run)
    yield joined


def have_on_disk(file: Path) -> None:
    """Sync a file of a feed that is landed where it lies: what a commit covers must outlive a power cut.

    Raises:
        OSError: its storage fails; one that is read-only or knows no syncing holds what it holds.
    """
    try:
        sync_file(file)
        sync_folder(file.parent)
    except OSError as problem:
        if problem.errno not in SYNCLESS:
            raise


def _reference(footer: Footer, sha256: str, runs: Sequence[Run]) -> Reference:
    return Reference(
        path=footer.path,
        size=footer.size,
        sha256=sha256,
        changed=footer.changed,
        touched=footer.touched,
        groups=tuple(run.group for run in runs),
        skip=runs[0].begin,
        rows=sum(run.end - run.begin for run in runs),
        first=runs[0].first,
        last=runs[-1].last,
    )
