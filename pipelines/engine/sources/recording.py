"""A source's recorded feed, as landing sees it: the stream's column names, landed types, and the rows of a span.

Everything that can be wrong between a feed and what a flow says of it is found here, before a row is read.
"""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import RESERVED, UNREADABLE, ticks
from pipelines.engine.columnar.keys import check_key_type
from pipelines.engine.landing.errors import (
    ColumnMissingError,
    ColumnTypeError,
    DuplicateColumnError,
    FeedChangedError,
    NoTimeError,
    ReservedColumnError,
    TimezoneMissingError,
)
from pipelines.engine.landing.file_rows import DROPPED, NOTED, ColumnTerms, Line
from pipelines.engine.landing.stamp import Orphans
from pipelines.engine.landing.told_rows import file_of, is_beside, is_blank_file, is_empty_file, lines_told, stacked
from pipelines.engine.landing.types import check_timezones, landed_column, landed_type, told_unreadable, unreadable
from pipelines.engine.landing.undeclared import Names
from pipelines.engine.sources.by_reference import check_referable
from pipelines.flows.errors import nearest
from pipelines.flows.grid import FIRST_TICK, LAST_TICK
from pipelines.operators.rows import MAX_TIME, MIN_TIME, NULL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

    from pipelines.engine.sources.rows_feed import Feed
    from pipelines.flows.model import Source
    from pipelines.operators.rows import Longs

MOST_SHOWN = 200
"""Characters of a row's text that an error shows."""
TICKS_IN = {"s": 1_000_000, "ms": 1_000, "us": 1}
ZONED_MARGIN, FACE_MARGIN = 1_000_000, 2 * 86_400_000_000
"""How far, in ticks, the rows asked for reach beyond a span; which ones belong is decided after conversion."""


class RowsRead(NamedTuple):
    """Rows of a feed, in its order, and where they come from."""

    rows: pa.Table
    files: tuple[tuple[str, int], ...]
    """Name of a file, and how many of the rows come from it, one behind the other; none of a feed without names."""


class Recording:
    """The rows of one source's feed.

    Args:
        source: what the flow says of it.
        feed: its rows.

    Raises:
        LandingError: a column is missing, has a type that does not land or a reserved name, times have no zone, or the
            feed's files cannot stand for the rows that land, as the source wants them to.
    """

    def __init__(self, source: Source, feed: Feed) -> None:
        """Check the feed's columns against what the source says of them; read nothing."""
        self.source, self._feed = source, feed
        self.schema = landed_schema(source, feed.schema)
        """The payload as it lands."""
        self._feed_name: dict[str, str] = {source.rename.get(name, name): name for name in feed.schema.names}
        self._orphans: tuple[str, Orphans] | None = None
        self.files = feed.files if source.feed.by_reference else ()
        """Files of the feed that may stand for the rows that land, in their order; none where rows are copied."""
        self.odd = feed.odd
        """Whether the feed has further files, whose rows must be copied."""
        if self.files:
            check_referable(source, feed.schema, self.schema)

    def feed_name(self, column: str) -> str:
        """Say what the feed calls a column."""
        return self._feed_name[column]

    def fingerprint(self) -> str:
        """Give digits that change when the feed's rows may have.

        Raises:
            FeedChangedError: a file that was there is gone or shorter.
        """
        try:
            return self._feed.fingerprint()
        except FeedChangedError as found:
            raise FeedChangedError(self.source.name, found.problem) from None

    def size(self) -> int:
        """Give the bytes of the feed as it lies there."""
        return self._feed.size()

    def between(self, start: int, end: int) -> RowsRead:
        """Give, in the feed's order, the rows that arrived in [start, end) and those without arrival that belong there.

        The latter are those whose event time lies in the span. Rows of other spans may come along.

        Args:
            start: in ticks.
            end: in ticks, exclusive.

        Returns:
            The payload and the column UNREADABLE; beside them what is told of rows (`told_rows`), where there is any.
        """
        files: list[tuple[str, int]] = []

        def noted(batch: pa.RecordBatch) -> pa.RecordBatch:
            files.append((file_of(batch).decode(), batch.num_rows))
            return self._landed(batch)

        rows = self._table(map(noted, self._named(self._feed.read(self._where(start, end)))))
        return RowsRead(rows, tuple(files) if self._feed.named else ())

    def odd_between(self, start: int, end: int) -> pa.Table:
        """Give such rows of those files of the feed that have not exactly its columns."""
        return self._table(map(self._landed, self._named(self._feed.read_odd(self._where(start, end)))))

    def told(self, most: int) -> list[tuple[str, Line]]:
        """Read the feed's first rows, and give what the ledger will be told of them, with the file of each.

        Args:
            most: how many rows are read.
        """
        found, seen = [], 0
        for batch in self._named(self._feed.read_doubtful()):
            file = file_of(batch).decode()
            found += [(file, line) for _, line in lines_told(pa.Table.from_batches([batch]))]
            found += [(file, line) for line in self._untold(file, batch)]
            seen += batch.num_rows
            if seen >= most:
                break
        return found

    def arrivals(self, most: int, within: tuple[int, int] | None = None) -> tuple[int, int] | None:
        """Give the first and the last arrival of the feed, in ticks; None where no row has one, or there are too many.

        Args:
            most: how many rows are read.
            within: the span that is looked at, in ticks, its end exclusive; all of time unless given.
        """
        first, last, seen = MAX_TIME, NULL, 0
        start, end = within or (MIN_TIME, MAX_TIME + 1)
        for batch in self._rows(None if within is None else self._around(self.source.arrival, start, end)):
            seen += batch.num_rows
            if seen > most:
                return None
            known = ticks(batch.column(self.source.arrival))
            known = known[(known >= start) & (known < end)]
            first, last = min(first, known.min(initial=first)), max(last, known.max(initial=last))
        return None if last == NULL else (int(first), int(last))

    def _untold(self, file: str, batch: pa.RecordBatch) -> Iterator[Line]:
        """Give what the ledger will be told of times that cannot be read."""
        texts = self._landed(batch).column(UNREADABLE)
        for row in np.flatnonzero(np.asarray(texts.is_valid())).tolist():
            cells: dict[str, object] = json.loads(texts[row].as_py())
            said = ", ".join(f"`{name}` is {json.dumps(came, ensure_ascii=False)}" for name, came in cells.items())
            reason = "no_arrival" if self.source.arrival in cells else "unreadable_time"
            problem = f"{file}: {said}, which is no time that can be read"
            yield Line(number=row + 1, reason=reason, action=NOTED, raw=b"", problem=problem)

    def _where(self, start: int, end: int) -> pc.Expression:
        arrived = self._around(self.source.arrival, start, end)
        return arrived | (self._untimed(self.source.arrival) & self._around(self.source.time, start, end))

    def orphans(self) -> Orphans:
        """Give the rows with neither arrival nor event time, and the instants they land at.

        Each goes with a row of its own file: the nearest earlier one with an arrival that a run can reach, else the
        next. Where the file has none, it goes with the next row of a later file, else with the last of an earlier one.
        Behind a row that no run can reach it would land never, and no ledger would tell of it. The feed is read
        whole, and only where it has such rows; what was found is kept as long as its files stand still. An empty file
        that no row follows lost nothing, and is not told yet, nor is a blank one in a feed without a row.

        Raises:
            NoTimeError: no row of the feed has any time.
        """
        seen = self.fingerprint()
        if self._orphans is None or self._orphans[0] != seen:
            self._orphans = seen, self._find_orphans()
        return self._orphans[1]

    def _find_orphans(self) -> Orphans:
        nowhere = self._untimed(self.source.arrival) & self._untimed(self.source.time)
        if not any(_is_orphan(self.source, batch).any() for batch in self._rows(nowhere)):
            return Orphans(self._table(()), np.zeros(0, dtype=np.int64))
        kept, orphan, instants, files = [], [], [], []
        for batch in self._rows(None):
            mask = _is_orphan(self.source, batch)
            kept.append(batch.filter(pa.array(mask)))
            orphan.append(mask)
            instants.append(ticks(batch.column(self.source.arrival)))
            files.append(file_of(batch))
        lost = np.concatenate(orphan)
        homes = neighbours(instants, files)
        found, rows = homes.instants[lost], self._table(kept)
        nowhere, blank = found == NULL, is_blank_file(rows)
        if (nowhere & ~blank).any():
            unread = rows[UNREADABLE].drop_null()
            first = unread[0].as_py()[:MOST_SHOWN] if len(unread) else ""
            gone = next((line.problem for _, line in lines_told(rows) if line.action == DROPPED), "")
            raise NoTimeError(self.source.name, len(lost), first, gone)
        waits = (homes.behind_all[lost] & is_empty_file(rows)) | (nowhere & blank)
        return Orphans(rows.filter(pa.array(~waits)), found[~waits])

    def _table(self, batches: Iterable[pa.RecordBatch]) -> pa.Table:
        return stacked(self.schema.append(pa.field(UNREADABLE, pa.string())), batches)

    def _rows(self, where: pc.Expression | None) -> Iterator[pa.RecordBatch]:
        for batch in self._named(self._feed.read(where)):
            if batch.num_rows:
                yield self._landed(batch)

    def _named(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read rows of the feed, which knows its files and not whose they are."""
        try:
            yield from batches
        except TimezoneMissingError as found:
            example = f"{found.example}, in {Path(found.source).name}"
            raise TimezoneMissingError(self.source.name, found.column, example) from None
        except FeedChangedError as found:
            raise FeedChangedError(self.source.name, found.problem) from None

    def _landed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        timezone, columns, lost = self.source.feed.timezone, [], {}
        for field, name in zip(self.schema, self._feed_name.values(), strict=True):
            came = batch.column(name)
            columns.append(landed_column(came, field.type, timezone))
            text = unreadable(came, columns[-1])
            if text is not None:
                lost[field.name] = text
        told = batch.column(UNREADABLE) if UNREADABLE in batch.schema.names else told_unreadable(lost, batch.num_rows)
        others = [name for name in batch.schema.names if is_beside(name)]
        names = [*self.schema.names, UNREADABLE, *others]
        landed = pa.RecordBatch.from_arrays([*columns, told, *(batch.column(name) for name in others)], names=names)
        return landed.replace_schema_metadata(batch.schema.metadata)

    def _around(self, column: str, start: int, end: int) -> pc.Expression:
        name = self._feed_name[column]
        kind = self._feed.schema.field(name).type
        # Where nothing is rounded or moved there is no margin: it would have the files before and behind decoded too.
        margin = FACE_MARGIN if kind.tz is None else ZONED_MARGIN if kind.unit == "ns" else 0
        field = pc.field(name)
        return (field >= _literal(start - margin, kind)) & (field <= _literal(end - 1 + margin, kind))

    def _untimed(self, column: str) -> pc.Expression:
        name = self._feed_name[column]
        kind = self._feed.schema.field(name).type
        field = pc.field(name)
        if kind.unit == "ns":
            return field.is_null()
        margin = FACE_MARGIN if kind.tz is None else ZONED_MARGIN
        outside = (field < _literal(MIN_TIME + margin, kind)) | (field > _literal(MAX_TIME - margin, kind))
        return field.is_null() | outside


def recorded_terms(source: Source) -> ColumnTerms:
    """Give what a source says of columns that are not the declared ones."""
    own = {stream: name for name, stream in source.rename.items()}
    names = Names(taken=frozenset(source.rename.values()))
    return ColumnTerms(source.feed.lacking, source.feed.retyped, names, own.get(source.edge or "", source.edge or ""))


def landed_schema(source: Source, feed: pa.Schema) -> pa.Schema:
    """Give the payload with which a feed lands, in the feed's order, named as after `rename`.

    Raises:
        LandingError: a column is missing, is there twice, has a type that does not land or a reserved name.
    """
    for name in source.rename:
        _find(source, "rename", name, tuple(feed.names))
    names = [source.rename.get(name, name) for name in feed.names]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise DuplicateColumnError(source.name, name)
        if name in RESERVED or name == UNREADABLE or is_beside(name):
            raise ReservedColumnError(source.name, name)
        check_timezones(source.name, name, feed.field(place).type, source.feed.timezone)
    landed = pa.schema(
        [(name, landed_type(source.name, name, field.type)) for name, field in zip(names, feed, strict=True)]
    )
    _check_roles(source, landed)
    return landed


def _check_roles(source: Source, landed: pa.Schema) -> None:
    for column in source.key:
        _find(source, "key", column, tuple(landed.names))
        check_key_type(column, landed.field(column).type)
    for setting in ("time", "arrival", "end"):
        column = getattr(source, setting)
        if not column:
            continue
        _find(source, setting, column, tuple(landed.names))
        if not pa.types.is_timestamp(landed.field(column).type):
            raise ColumnTypeError(source.name, column, str(landed.field(column).type), f"a timestamp as `{setting}`")
    for setting in ("edge", "event_id"):
        if getattr(source, setting) is not None:
            _find(source, setting, getattr(source, setting), tuple(landed.names))


def _find(source: Source, setting: str, column: str, there: tuple[str, ...]) -> None:
    if column not in there:
        raise ColumnMissingError(source.name, setting, column, there, nearest(column, there))


def _literal(tick: int, kind: pa.DataType) -> pa.Scalar:
    limit = 2**63 - 1
    whole = min(max(tick * 1_000, -limit), limit) if kind.unit == "ns" else tick // TICKS_IN[kind.unit]
    return pa.scalar(whole, pa.int64()).cast(kind)


def _is_orphan(source: Source, batch: pa.RecordBatch) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    arrival, time = ticks(batch.column(source.arrival)), ticks(batch.column(source.time))
    found: np.ndarray[tuple[int], np.dtype[np.bool_]] = (arrival == NULL) & (time == NULL)
    return found


class Homes(NamedTuple):
    """Where rows without any time land."""

    instants: Longs
    """Of each row: its own arrival, where a run can reach it, or that of its neighbour."""
    behind_all: npt.NDArray[np.bool_]
    """Whether it stands in a file without such arrivals that no row with one follows."""


def neighbours(arrivals: Sequence[Longs], files: Sequence[bytes]) -> Homes:
    """Give each row the nearest arrival of its file, at or before it, that a run can reach; where none is, the next.

    A row whose file has none gets that of the next row of a later file, else of the last of an earlier one. Where no
    run can reach any row, those that have an arrival count for want of others.

    >>> neighbours([np.array([NULL, 5, NULL, 3]), np.array([NULL]), np.array([NULL, 7])], [b"a", b"b", b"c"]).instants
    array([5, 5, 5, 3, 7, 7, 7])

    Args:
        arrivals: of the rows of each batch, NULL where there is none.
        files: which file each batch comes from.
    """
    own, near = [], [_within_reach(each) for each in arrivals]
    if all((each == NULL).all() for each in near):
        near = list(arrivals)
    for _, batches in groupby(range(len(files)), key=files.__getitem__):
        own.append(_nearest(np.concatenate([near[batch] for batch in batches])))
    found = np.concatenate(own)
    there = np.flatnonzero(found != NULL)
    behind_all = np.arange(len(found)) > (there[-1] if len(there) else -1)
    if len(there):
        after = np.searchsorted(there, np.arange(len(found)))
        found = found[there[np.minimum(after, len(there) - 1)]]
    return Homes(found, behind_all)


def _within_reach(arrivals: Longs) -> Longs:
    """Leave out arrivals before the first instant that a run can begin at, and behind the last that one can end at."""
    return np.where((arrivals >= FIRST_TICK) & (arrivals < LAST_TICK), arrivals, NULL)


def _nearest(arrivals: Longs) -> Longs:
    there = np.flatnonzero(arrivals != NULL)
    if len(there) == 0:
        return arrivals
    before = np.searchsorted(there, np.arange(len(arrivals)), side="right") - 1
    found: Longs = arrivals[there[np.maximum(before, 0)]]
    return found
