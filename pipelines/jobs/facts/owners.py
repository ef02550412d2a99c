"""Of which source a row is, where several landed rows at the same instant and place: what landed tells them apart.

A row of a stream says when it landed and at which place, and not of which source. It is followed from what landed on,
stream by stream: an operator that passes rows on passes their columns on too, and one that gives them other columns
keeps their times and what it names again. What is of two sources alike may be of either.
"""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import RESERVED, TIME, canonical_json
from pipelines.engine.commits.paths import landed_path, stream_path
from pipelines.engine.commits.readers import settled_commits
from pipelines.engine.landing.errors import LandingError
from pipelines.engine.landing.manifest import load_manifest, read_sequence
from pipelines.engine.landing.stamp import landed_row_schema
from pipelines.flows.model import main_of
from pipelines.jobs.facts.pages import stream_pages
from pipelines.operators.specs import SPECS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pipelines.jobs.runs.known import Definition, KnownRun

Values = dict[str, Any]
Types = dict[str, pa.DataType]
TIMES = ("event_time", "event_end")
"""What a row keeps where it is given other columns, and in a loop."""
KEPT = ("arrival", "place", *TIMES)
"""What it keeps besides where it is given other columns outside of one."""
PASSING = {name for name, spec in SPECS.items() if spec.same_columns} | {"merge"}
"""Operators whose rows have the columns with which they came in."""
PORT = "port"
"""Column of a merge of streams, which says by which a row came in."""
MIXED = ", together with those of another source that landed at the same instant and place"
UNSURE = ", or those of another source that landed at the same instant and place"
"""Where what landed is no longer there to say whether another one has a row there."""


class Owners(NamedTuple):
    """The sources that a row may be of."""

    sources: frozenset[str]
    known: bool
    """Whether each of them is known to have landed a row there."""


class LandedThere:
    """The rows that landed at one instant and place, at most one of a source, and what came of them.

    Args:
        known: the run.
        landed_at: the instant, in ticks.
        landed_place: the place.
    """

    def __init__(self, known: KnownRun, landed_at: int, landed_place: int) -> None:
        """Take the run; what is asked for is read once."""
        self._known, self._at, self._place = known, landed_at, landed_place
        self._landed: dict[str, pa.Table | None] = {}
        self._tables: dict[str, pa.Table] = {}
        self._owners: dict[str, list[Owners]] = {}

    @property
    def condition(self) -> pc.Expression:
        """Ask for what came of the rows in a table."""
        at = pc.field("landed_at") == pa.scalar(self._at, pa.int64()).cast(TIME)
        return at & (pc.field("landed_place") == self._place)

    def landed(self, source: str) -> pa.Table | None:
        """Give the row of a source as it landed, of one row or none; None where what landed is no longer there."""
        if source not in self._landed:
            self._landed[source] = self._read(source)
        return self._landed[source]

    def rows(self, table: str) -> pa.Table:
        """Give the rows of a stream that came of any of them, in its order."""
        if table not in self._tables:
            known = self._known.of(table)
            commits = settled_commits(known.root, stream_path(known.root, table), known.state)
            order = ("arrival", *known.order_key(table), "place")
            pages = stream_pages(known.root, table, commits, known.state, order, self.condition)
            self._tables[table] = pa.concat_tables(pages)
        return self._tables[table]

    def owners(self, table: str) -> list[Owners]:
        """Say of each row of a stream of which sources it may be."""
        if table not in self._owners:
            rows, name = self.rows(table), table if table in self._known.streams else main_of(table)
            types = {field.name: field.type for field in rows.schema}
            self._owners[table] = [self._of(self._known.streams[name], row, types) for row in rows.to_pylist()]
        return self._owners[table]

    def own(self, table: str, source: str) -> tuple[pa.Table, str]:
        """Give the rows of a stream that may be of a source, and in words of whom else they may be."""
        found = self.owners(table)
        mine = pa.array([source in each.sources for each in found], pa.bool_())
        return self.rows(table).filter(mine), self.words([each for each in found if source in each.sources])

    def of_line(self, stream: str, row: str | None) -> Owners:
        """Say of which sources a line of the ledger may be.

        Args:
            stream: whose line it is; of one within a loop, that of the loop.
            row: the row as it came in there, as canonical JSON; none where the line has none.
        """
        return self._of(self._known.streams[stream], json.loads(row) if row else {}, None)

    @staticmethod
    def words(found: Sequence[Owners]) -> str:
        """Say in words that rows may be of another source too; nothing where they are not."""
        shared = [each for each in found if len(each.sources) > 1]
        if not shared:
            return ""
        return MIXED if all(each.known for each in shared) else UNSURE

    @cached_property
    def _sequences(self) -> list[int]:
        """Name the sequences of the published commits that can have them."""
        entries = (entry for entry in self._known.state.published if entry.span.start <= self._at <= entry.span.end)
        return sorted({number for entry in entries for number in entry.sequences})

    def _read(self, source: str) -> pa.Table | None:
        landing, empty, whole = landed_path(self._known.root), None, True
        for number in self._sequences:
            try:
                found = self._in(landing, number, source)
            except (LandingError, OSError):
                whole = False
                continue
            if found is not None and found.num_rows:
                return found
            empty = found if empty is None else empty
        return empty if whole else None

    def _in(self, landing: Path, number: int, source: str) -> pa.Table | None:
        """Find the row in a sequence: one or none; None where the instant is not within it."""
        said = load_manifest(landing, number)
        if source not in said.sources or not said.start <= self._at <= said.end:
            return None
        sequence = read_sequence(landing, number)
        wanted = (pc.field("arrival") == pa.scalar(self._at, pa.int64()).cast(TIME)) & (
            pc.field("place") == self._place
        )
        landed = sequence.sources[source]
        buckets = {group.bucket for group in landed.row_groups if group.first <= self._at <= group.last}
        pages = sequence.open(source, None if landed.referenced else buckets)
        schema = landed_row_schema(sequence.payload(source))
        return pa.concat_tables(
            [schema.empty_table(), *(pa.Table.from_batches([page]).cast(schema).filter(wanted) for page in pages)]
        )

    def _of(self, stream: Definition, row: Values, types: Types | None) -> Owners:
        """Say of which sources a row may be.

        Args:
            stream: that it is of.
            row: its values by column.
            types: of its columns; None where it came in there, and its values are as JSON has them.
        """
        behind = self._there(dict.fromkeys(each for read in read_by(stream) for each in self._known.sources_of(read)))
        if len(behind.sources) < 2:  # noqa: PLR2004 - one source has no other
            return behind
        found = frozenset(each for each in behind.sources if self._may_be(stream, each, row, types))
        # A row that is like none that came in is of one of them all the same.
        return Owners(found, behind.known) if found else behind

    def _there(self, sources: Iterable[str]) -> Owners:
        """Give those of some sources that landed a row there, or may have."""
        landed = {name: self.landed(name) for name in sources}
        could = {name: rows for name, rows in landed.items() if rows is None or rows.num_rows}
        return Owners(frozenset(could or landed), bool(could) and all(rows is not None for rows in could.values()))

    def _may_be(self, stream: Definition, source: str, row: Values, types: Types | None) -> bool:
        operator = stream["operator"]
        if operator == "union" and "edge" in stream["policy"]["shapes"]:
            return True
        reads = [read for read in read_by(stream) if source in self._known.sources_of(read)]
        if operator == "merge" and len(stream["inputs"]) > 1 and types is not None and PORT in types:
            reads = [read for read in reads if read == row[PORT]]
        return any(self._came(stream, read, source, row, types) for read in reads)

    def _came(self, stream: Definition, read: str, source: str, row: Values, types: Types | None) -> bool:
        """Say whether a row of a source that came in from what a stream reads can be this one."""
        if read in self._known.sources:
            above = self.landed(source)
            if above is None:
                return True
        else:
            above = self.own(read, source)[0]
        names = [field.name for field in above.schema if field.name not in RESERVED and field.name in row]
        if types is not None:
            names = [name for name in names if types[name] == above.schema.field(name).type]
            if stream["operator"] == "merge":
                names = [name for name in names if name != PORT]
            elif stream["operator"] not in PASSING:
                names = [name for name in self._kept(stream, read, names) if name in above.schema.names]
        elif stream["operator"] == "loop":
            # Such a line is of a row within it.
            names = [name for name in names if all(_keeps(each, name) for each in stream["body"])]
        wanted = canonical_json([row[name] for name in names])
        return any(canonical_json([each[name] for name in names]) == wanted for each in above.to_pylist())

    def _kept(self, stream: Definition, read: str, names: Sequence[str]) -> list[str]:
        """Name what a row of a stream has kept that gives it other columns.

        Args:
            stream: that it is of.
            read: what it came in from.
            names: columns that both have, of one type.
        """
        if stream["operator"] == "loop":
            # Its rows are numbered anew behind it.
            return [*TIMES, *(name for name in names if all(_keeps(each, name) for each in stream["body"]))]
        if not SPECS[stream["operator"]].names_columns:
            return []
        again = [name for name in names if _keeps(stream, name)]
        return again if read in self._known.sources else [*KEPT, *again]


def _keeps(stream: Definition, column: str) -> bool:
    """Say whether rows leave a stream with the values of a column with which they came in."""
    if not SPECS[stream["operator"]].names_columns:
        return stream["operator"] in PASSING
    said: list[str] = stream["policy"]["columns"]
    made = {text.partition("=")[0] for text in said}
    return f"{column}={column}" in said or (column in stream["by"] and column not in made)


def read_by(stream: Definition) -> list[str]:
    """Name what a stream takes rows from: of what it imports it has the CTIs alone."""
    inputs: list[str] = stream["inputs"]
    return inputs[:1] if stream["operator"] == "advance_time" else inputs
