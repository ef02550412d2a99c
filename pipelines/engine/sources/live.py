"""What every source under the real clock is to the landing, and how what came in becomes rows of a sequence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from pipelines.engine.columnar.columns import UNREADABLE, canonical_json, times
from pipelines.engine.columnar.content import content_hash
from pipelines.engine.landing.arrived import Arrived, declared
from pipelines.engine.landing.column_errors import ColumnBrokenError
from pipelines.engine.landing.file_rows import NOTED, ColumnTerms, Line, with_unreadable
from pipelines.engine.landing.stamp import LANDED_LEDGER, OPERATOR, stamp_arrivals
from pipelines.engine.landing.types import declared_type
from pipelines.engine.landing.undeclared import Names, table_of, together
from pipelines.engine.sources.recording import landed_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pipelines.engine.landing.file_rows import FileRows
    from pipelines.engine.landing.progress import Position
    from pipelines.engine.landing.seen_files import FileLanded
    from pipelines.engine.landing.undeclared import Undeclared
    from pipelines.flows.feeds.spec import FeedSpec
    from pipelines.flows.model import Source
    from pipelines.operators.rows import Longs

    Spans = tuple[tuple[int, int], ...]


class ComesOnce:
    """What is the same of every source whose rows come once and arrive when they land."""

    def fingerprint(self) -> str:
        """Give nothing: nothing can be read again."""
        return ""

    def size(self) -> int | None:
        """Give nothing: what will come is not known."""
        return None

    def told(self, most: int) -> list[tuple[str, Line]]:  # noqa: ARG002 - part of the protocol
        """Give nothing: what will come is not known."""
        return []

    def arrivals(self, most: int, within: tuple[int, int] | None = None) -> None:
        """Give nothing: rows arrive when they land."""


class Came(Protocol):
    """What one look at a source brought."""

    @property
    def rows(self) -> pa.Table:
        """Give the rows: the feed's columns and UNREADABLE."""

    @property
    def places(self) -> Longs:
        """Give the place of each row."""

    @property
    def lines(self) -> Sequence[Line]:
        """Give what is to be told in the ledger."""

    @property
    def undeclared(self) -> Mapping[str, Undeclared]:
        """Give the columns of the rows that nobody declared."""


class Gathered:
    """Rows and ledger lines of one reading, in the order of their places.

    Args:
        schema: the feed's columns.
        terms: what becomes of rows with others.
    """

    def __init__(self, schema: pa.Schema, terms: ColumnTerms) -> None:
        """Begin with nothing."""
        self.terms = terms
        self._schema = with_unreadable(schema)
        self._tables: list[pa.Table] = []
        self._places: list[Longs] = []
        self._undeclared: list[tuple[int, Mapping[str, Undeclared]]] = []
        self.lines: list[Line] = []
        self.count = 0
        """How many places are taken."""

    def add(self, came: FileRows, where: Callable[[int], str]) -> None:
        """Take up rows behind what is there.

        Args:
            came: rows and lines, numbered from 1.
            where: says where the row of a number stood.
        """
        self._tables.append(came.rows)
        self._places.append(came.numbers + self.count)
        self._undeclared.append((came.rows.num_rows, came.undeclared))
        self.lines += [line.at(self.count + line.number, where(line.number)) for line in came.lines]
        self.count += came.count

    def tell(self, reason: str, action: str, raw: bytes, problem: str) -> None:
        """Take up a line that stands for no row that can be read."""
        self.count += 1
        self.lines.append(Line(number=self.count, reason=reason, action=action, raw=raw, problem=problem))

    @property
    def rows(self) -> pa.Table:
        """Give the rows: the feed's columns and UNREADABLE."""
        return pa.concat_tables([self._schema.empty_table(), *self._tables])

    @property
    def places(self) -> Longs:
        """Give the place of each row."""
        return np.concatenate([np.zeros(0, dtype=np.int64), *self._places])

    @property
    def undeclared(self) -> dict[str, Undeclared]:
        """Give the columns of the rows that nobody declared."""
        return together(self._undeclared)


def terms_of(source: Source) -> ColumnTerms:
    """Give what a source says of columns that are not the declared ones, for one reading."""
    feed = source.feed
    # Columns that nobody declared could not be told from those of a first file that says what the columns are.
    names = Names(taken=frozenset(source.rename.values())) if feed.types else None
    own = {stream: name for name, stream in source.rename.items()}
    return ColumnTerms(feed.lacking, feed.retyped, names, own.get(source.edge or "", source.edge or ""))


def declared_columns(spec: FeedSpec) -> pa.Schema:
    """Give the columns that a feed declares, by its own names and in their order."""
    return pa.schema([(name, declared_type(spelled)) for name, spelled in {**spec.types, **spec.added}.items()])


def landed_payload(source: Source) -> pa.Schema:
    """Give the payload with which the declared columns of a source land.

    Raises:
        LandingError: the source names a column that is not there or cannot be used so.
    """
    return landed_schema(source, declared_columns(source.feed))


def arrived_rows(  # noqa: PLR0913 - all that a reading brings
    source: Source,
    schema: pa.Schema,
    came: Came,
    end: int,
    *,
    files: tuple[FileLanded, ...] = (),
    positions: tuple[Position, ...] = (),
    blind: Spans = (),
    left: int = 0,
    unsettled: tuple[str, ...] = (),
) -> Arrived:
    """Stamp what a reading brought with the arrival one tick before it.

    Args:
        source: what its columns mean.
        schema: the payload.
        came: rows and lines.
        end: the closing reading, in ticks.
        files: of a folder: those that were dealt with.
        positions: of a source that is read along: how far this came.
        blind: spans of ticks in which nobody listened.
        left: how much waits for a later reading because a limit was reached.
        unsettled: what cannot be read yet, by name.

    Raises:
        ColumnBrokenError: the columns of a row are not the declared ones, and the source says to stop there.
    """
    for line in came.lines:
        if line.breach is not None:
            raise ColumnBrokenError(source.name, line.where, line.breach)
    rows, undeclared = came.rows.rename_columns([*schema.names, UNREADABLE]), came.undeclared
    lines = [*came.lines, *_new_columns(undeclared, _last_place(came))]
    stamped = stamp_arrivals(source, rows, came.places, end - 1, _told(source, lines, end - 1))
    kept = np.searchsorted(came.places, np.asarray(stamped.rows["place"]))
    return Arrived(
        schema=schema,
        rows=stamped.rows,
        ledger=stamped.ledger,
        content=content_hash(stamped.rows),
        feed="",
        declared=declared(source),
        files=files,
        left=left,
        unsettled=unsettled,
        positions=positions,
        blind=blind,
        punctuations=stamped.punctuations,
        added=tuple((name, column.kind) for name, column in undeclared.items()),
        others=table_of({name: column.taken(pa.array(kept)) for name, column in undeclared.items()}),
    )


def _last_place(came: Came) -> int:
    return max(int(came.places.max(initial=0)), *(line.number for line in came.lines), 0)


def _new_columns(undeclared: Mapping[str, Undeclared], last: int) -> Iterator[Line]:
    """Tell of each column that nobody declared, behind the places of all that came: they move no row."""
    for number, (name, column) in enumerate(undeclared.items(), start=last + 1):
        raw = canonical_json({"column": name, "type": column.kind, "rows": column.valued}).encode()
        problem = f"`{name}` is no declared column; it lands as {column.kind}, with {column.valued} values"
        yield Line(number=number, reason="new_column", action=NOTED, raw=raw, problem=problem)


def _told(source: Source, lines: Sequence[Line], instant: int) -> pa.Table:
    """Write the ledger's lines of what has no payload: what it was stands in `row`, its bytes in `raw`."""
    count = len(lines)
    instants = times(np.full(count, instant, dtype=np.int64))
    known: dict[str, object] = {
        "stream": [source.name] * count,
        "operator": [OPERATOR] * count,
        "reason": [line.reason for line in lines],
        "action": [line.action for line in lines],
        "source": [source.name] * count,
        "landed_at": instants,
        "landed_place": [line.number for line in lines],
        "arrival": instants,
        "place": [line.number for line in lines],
        "row": [canonical_json({"problem": line.problem}) for line in lines],
        "raw": [line.raw for line in lines],
    }
    columns = [
        pa.array(known[field.name], field.type) if field.name in known else pa.nulls(count, field.type)
        for field in LANDED_LEDGER
    ]
    return pa.Table.from_arrays(columns, schema=LANDED_LEDGER)
