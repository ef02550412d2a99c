"""The link of a deduplicate: what makes rows the same goes in by row, what is remembered comes out as a carry table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import TIME, kinds, longs, ticks, times
from pipelines.engine.columnar.row_texts import json_rows
from pipelines.engine.tasks.carry import CHANGE, COMMIT, CarryChange, stamped
from pipelines.engine.tasks.link import Delta, Link
from pipelines.engine.tasks.numbered import KnownNumbers, NumberedValues, changes
from pipelines.engine.tasks.payload import column_of, require_comparable
from pipelines.operators.deduplicate import CARRIED, STANDING, STANDING_INSTANTS, Named
from pipelines.operators.rows import NULL, Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipelines.flows.model import Stream
    from pipelines.operators.rows import Longs, Records, Rows
    from pipelines.operators.scan import Blind

WHOLE = ("event_time", "event_end")
"""What rows have in common, besides all payload columns, that are the same where a flow names no columns."""
SAME, EVENT = "same", "event"
"""The columns of the carry for the values that make a row the same as another, and for the id of its event."""
OWN = frozenset({*CARRIED, SAME, EVENT})
"""Columns of the carry's table of remembered rows, beside their key."""
SPARE = 4_096
"""How many values that nobody remembers any more may stay numbered, beside as many as are remembered."""


class DeduplicateLink(Link):
    """Rows are numbered by key and the values that make them the same, edges by key and event id."""

    def _resume(self, carry: Mapping[str, pa.Table]) -> None:
        on = self.operator.policy.on or (*WHOLE, *self._payload)
        self._on = pa.schema([self.inner.field(name) for name in on])
        self._id = None if self.stream.event_id is None else self.inner.field(self.stream.event_id)
        self._number_afresh()
        carried = carry.get("standing")
        if carried is not None:
            self._take_up(carried)

    def renew(self, commit: int, blind: Blind) -> None:
        """Begin another commit with the carry as it stands."""
        super().renew(commit, blind)
        self._standing_before = self._standing(), self._known()

    def _number_afresh(self) -> None:
        key = list(self.keys.schema)
        apart = [field for field in self._on if field.name not in self.stream.by]
        self._same = NumberedValues([*key, *apart])
        self._ids = (
            NumberedValues([*key, self._id])
            if self._id is not None and self._id not in key
            else NumberedValues([*key, *apart])
        )

    def _take_up(self, carried: pa.Table) -> None:
        known = np.zeros(carried.num_rows, dtype=STANDING)
        for name in CARRIED:
            known[name] = ticks(carried[name]) if name in STANDING_INSTANTS else longs(carried[name])
        known["key"] = self.keys.ids(carried)
        self._renumber(known, carried.select(self.stream.by), carried[SAME], carried[EVENT])

    def _renumber(self, known: Records, keys: pa.Table, same: pa.ChunkedArray, event: pa.ChunkedArray) -> None:
        """Have the operator remember rows, their values numbered anew."""
        apart = {field.name: pc.struct_field(same, field.name) for field in self._on}
        known["same"] = self._same.ids(_beside(keys, apart))
        named = np.flatnonzero(known["named"])
        if self._id is not None and len(named):
            edges = _beside(keys, {self._id.name: event}).take(pa.array(named))
            known["event"][named] = 1 + self._ids.ids(edges)
        self.operator.resume(known)

    def _forget_values(self) -> None:
        """Number values anew where most of those that are numbered belong to rows that are forgotten."""
        remembered = len(self.operator.remembered())
        if max(len(self._same), len(self._ids)) > 2 * remembered + SPARE:
            rows, known = self._standing(), self.operator.remembered()
            self._number_afresh()
            self._renumber(known, rows.select(self.stream.by), rows[SAME], rows[EVENT])

    @staticmethod
    def made(stream: Stream, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """Give its payload columns; see `Link.made`."""
        for name in stream.policy.on:  # type: ignore[attr-defined]
            require_comparable(
                stream, "on", column_of(stream, inputs[0], name, "`on` names columns of its input, which")
            )
        return inputs[0]

    @staticmethod
    def own_columns(stream: Stream) -> Sequence[str]:
        """Name those of its table of remembered rows; see `Link.own_columns`."""
        return [name for name in stream.by if name in OWN]

    def _rows(self, table: pa.Table, reading: int, final: int | None) -> Rows:
        self._forget_values()
        return super()._rows(table, reading, final)

    def _event_ids(self, table: pa.Table) -> Longs:
        ids = np.zeros(table.num_rows, dtype=np.int64)
        if self._id is not None:
            edges = np.flatnonzero(np.isin(kinds(table["kind"]), (Kind.START, Kind.END)))
            ids[edges] = 1 + self._ids.ids(table.take(pa.array(edges)))
        return ids

    def _lay(self, table: pa.Table, key: Longs) -> None:
        same, landed_at, landed_place = (np.zeros(len(key) + 2, dtype=np.int64) for _ in range(3))
        events = np.flatnonzero(np.isin(kinds(table["kind"]), (Kind.DATA, Kind.START)))
        same[events] = self._same.ids(table.take(pa.array(events)))
        landed_at[: len(key)], landed_place[: len(key)] = ticks(table["landed_at"]), longs(table["landed_place"])
        self.operator.named = Named(same, landed_at, landed_place)

    def _told_more(self, out: Records, table: pa.Table) -> pa.Array:  # noqa: ARG002 - as every link has it
        """Tell of a duplicate which row stands."""
        stood = self.operator.known[out["due_at"]]
        place = np.ascontiguousarray(stood["landed_place"])
        told = pa.table(
            {
                "source": pa.array([self._source] * len(stood), pa.string()),
                "landed_at": times(np.ascontiguousarray(stood["landed_at"])),
                "landed_place": pa.array(place, mask=place == NULL),
            }
        )
        return json_rows(told, told.column_names).cast(pa.binary())

    def base(self) -> dict[str, pa.Table]:
        """Give the whole carry as tables, a base for whoever comes next."""
        return super().base() | {"standing": stamped(self._standing(), self._commit, CarryChange.BASE)}

    def delta(self) -> Delta:
        """Give what of the carry changed since the commit began."""
        known = super().delta()
        rows, came, went = changes((self._standing(), self._known()), self._standing_before, self._commit)
        return Delta(known.tables | {"standing": pa.concat_tables(rows)}, known.content + came - went)

    def part_schemas(self) -> dict[str, pa.Schema]:
        """Give the schema of each carry table that this stream may have."""
        return super().part_schemas() | {"standing": pa.schema([COMMIT, CHANGE, *self._standing_schema()])}

    def _standing_schema(self) -> pa.Schema:
        event = pa.string() if self._id is None else self._id.type
        carried = [pa.field(name, TIME if name in STANDING_INSTANTS else pa.int64()) for name in CARRIED]
        return pa.schema([*self.keys.schema, *carried, pa.field(SAME, pa.struct(self._on)), pa.field(EVENT, event)])

    def _standing(self) -> pa.Table:
        """Give the rows that are remembered."""
        known, schema = self.operator.remembered(), self._standing_schema()
        columns = list(self.keys.table().take(pa.array(known["key"])).columns) if self.stream.by else []
        for name in CARRIED:
            values = np.ascontiguousarray(known[name])
            columns.append(times(values) if name in STANDING_INSTANTS else pa.array(values))
        columns += [self._spelled_same(known), self._spelled_event(known)]
        return pa.table(columns, schema=schema)

    def _spelled_same(self, known: Records) -> pa.Array:
        values = self._same.rows.take(pa.array(known["same"])).combine_chunks()
        apart = [_whole(values[field.name]) for field in self._on]
        return pa.StructArray.from_arrays(apart, fields=list(self._on))

    def _spelled_event(self, known: Records) -> pa.Array:
        if self._id is None:
            return pa.nulls(len(known), pa.string())
        named = pa.array(known["event"] - 1, mask=known["named"] == 0)
        return _whole(self._ids.rows[self._id.name].take(named))

    def _known(self) -> KnownNumbers:
        """Give what is known of remembered rows, rows as those of `_standing`."""
        known = self.operator.remembered()
        bits = np.stack([known[name] for name in CARRIED], axis=1)
        return KnownNumbers(np.ascontiguousarray(known["key"]), np.ascontiguousarray(known["age"]), bits)


def _beside(keys: pa.Table, columns: Mapping[str, pa.ChunkedArray]) -> pa.Table:
    """Give key columns and others, those of the key once."""
    others: Sequence[str] = [name for name in columns if name not in keys.column_names]
    names = [*keys.column_names, *others]
    return pa.table([*keys.columns, *(columns[name] for name in others)], names=names)


def _whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Give a column in one piece."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
