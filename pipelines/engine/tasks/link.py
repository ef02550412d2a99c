"""One named stream at work in a task: its operator between tables of rows, the ledger and the carry.

Nothing here knows what an operator means: a link lays rows out as integers, feeds the scan, and turns what comes out
into the main stream, the side stream and the ledger, which are filters of each row's fate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import (
    LEDGER_SCHEMA,
    TIME,
    kind_names,
    kinds,
    longs,
    spelled_as,
    stream_schema,
    ticks,
    times,
)
from pipelines.engine.columnar.content import ContentHash, content_hash
from pipelines.engine.columnar.keys import KeyIndex, canonical_keys
from pipelines.engine.columnar.row_texts import json_rows
from pipelines.engine.files.ordered import key_ranks, order_of
from pipelines.engine.tasks import carry as carrying
from pipelines.engine.tasks.carry import CarryChange
from pipelines.engine.tasks.payload import PORT, SIDE, has_sides, inner_payload, require_free, with_port
from pipelines.engine.tasks.turns import is_turn, raised, released
from pipelines.operators.leaving import Gathering
from pipelines.operators.registry import OPERATORS, parts_of
from pipelines.operators.rows import INFINITY, NULL, OUT, Fate, Kind, Reason, Rows
from pipelines.operators.scan import Per
from pipelines.operators.witness import bounds, breaks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from pipelines.engine.tasks.turns import TurnColumns, TurnsOfFlow
    from pipelines.flows.model import Stream
    from pipelines.operators.leaving import Leaving
    from pipelines.operators.rows import Longs, Records
    from pipelines.operators.scan import Blind, CarryPart

NEVER = INFINITY
"""Where the end of a stream stands among the rows of a block that has none."""
NO_CONTENT = ContentHash(0, 0, 0)
ADJUSTED = (int(Reason.LATE), int(Reason.LATE_END), int(Reason.START_MOVED))


@dataclass(frozen=True)
class Produced:
    """What a link made of one window: tables of the main stream, the side stream and the ledger."""

    main: pa.Table
    side: pa.Table
    ledger: pa.Table
    rows_in: int
    """Rows of the inputs; held rows came in earlier."""
    passed: int
    """Rows of the main stream that came in, now or earlier; the others were made by the operator."""
    broken: int | None
    """Rows of the main stream that break what the operator promised; None where it promises nothing."""


class Delta(NamedTuple):
    """What a commit changed of one stream's carry."""

    tables: dict[str, pa.Table]
    content: ContentHash
    """Content hash of the whole carry now, minus what it was."""


class Keys:
    """The keys of a scope: dense ids, the carry's keys first, and the column values behind each id.

    Args:
        fields: the key columns; none for a stream-wide operator, which has the one key 0.
        known: key columns of the carry, one row an id.
    """

    def __init__(self, fields: Sequence[pa.Field], known: pa.Table | None = None) -> None:
        """Start from the carry's keys."""
        self.schema = pa.schema(fields)
        self._index = KeyIndex()
        self._values = [] if fields else [pa.table({"": pa.array([None])}).drop_columns([""])]
        self.count = 0 if fields else 1
        if known is not None and fields:
            self.ids(known)

    def ids(self, rows: pa.Table) -> Longs:
        """Give the id of each row's key, new keys in order of first sight."""
        if not self.schema.names:
            return np.zeros(rows.num_rows, dtype=np.int64)
        columns = rows.select(self.schema.names).combine_chunks()
        ids = self._index.ids(canonical_keys([column.combine_chunks() for column in columns.columns]))
        if len(self._index) > self.count:
            fresh, first = np.unique(ids, return_index=True)
            self._values.append(columns.take(pa.array(first[fresh >= self.count])).cast(self.schema))
            self.count = len(self._index)
        return ids

    def ranks(self, ids: Longs) -> Longs:
        """Number the keys of some rows so that numbers compare as keys do, by value."""
        if not len(ids):
            return ids
        return key_ranks(self.table().take(pa.array(ids)), self.schema.names)

    def table(self) -> pa.Table:
        """Give the key columns, one row an id."""
        if not self.schema.names:
            return pa.table({"": pa.array([None])}).drop_columns([""])
        if len(self._values) != 1:
            self._values = [pa.concat_tables([self.schema.empty_table(), *self._values]).combine_chunks()]
        return self._values[0]


class Link:
    """A stream of the flow, its operator and its carry, for the keys of one task.

    Args:
        stream: what the flow says.
        payload: payload columns of each input, in the order of the ports.
        source: name of the one source behind the stream; None behind several.
        commit: the number that every row written carries.
        carry: tables of the parent's carry by part, for the keys of this task; empty at the beginning of a run.
        blind: spans in which nobody listened.
    """

    def __init__(  # noqa: PLR0913 - built in one place
        self,
        stream: Stream,
        payload: Sequence[pa.Schema],
        source: str | None,
        commit: int,
        carry: Mapping[str, pa.Table],
        blind: Blind,
    ) -> None:
        self.stream, self._source, self._commit = stream, source, commit
        self.payload = tuple(payload)
        self.schema = stream_schema(self.payload_of(stream, payload))
        self.inner = stream_schema(inner_payload(stream, payload))
        """The columns of rows inside the operator, and of those that it holds."""
        self._payload = [name for name in inner_payload(stream, payload).names if name != SIDE]
        self._kind = OPERATORS[stream.operator]
        self.keys = Keys([self.inner.field(name) for name in stream.by], carry.get("state"))
        self._event = None if self._remembered is None else self.inner.field(self._remembered)
        event_fields = [self.inner.field(name) for name in stream.by] + ([self._event] if self._event else [])
        self.events = Keys([field.with_name(f"e{i}") for i, field in enumerate(event_fields)])
        self.operator: Any = self._kind(stream.policy, self._records(carry), blind)
        carried = {name: len(records) for name, records in self.operator.records.items()}
        self.operator.grow(self.keys.count, self.events.count + 1)
        held = carry.get("held", carrying.held_schema(self.inner).empty_table())
        self._held, self._positions = carrying.held_rows(held, self.inner)
        # Rows that stood in several buckets may have one position, so what came and left is told by numbers of ours.
        self._numbers = np.arange(len(self._positions))
        self._next = max(len(self._positions), int(self._positions.max(initial=-1)) + 1)
        self._resume(carry)
        self._turned: TurnsOfFlow | None = None
        self._handed, self._first, self._ends = pa.table({}), 0, NEVER
        self._before: dict[str, Records] = {}
        self.renew(commit, blind)
        self._before = {name: records[: carried[name]] for name, records in self._before.items()}

    @classmethod
    def of(cls, stream: Stream) -> type[Link]:  # noqa: ARG003 - as every link is asked
        """Give the class of a stream's link: one of the operator's may be for some of its streams alone."""
        return cls

    @classmethod
    def payload_of(cls, stream: Stream, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """Give the payload columns of a stream.

        Args:
            stream: its operator and what was chosen for it.
            inputs: the payload of each input, in the order of the ports.

        Raises:
            PayloadError: a column is missing, or of a type that the operator cannot take.
        """
        require_free(stream, inputs, cls.own_columns(stream))
        return cls.made(stream, inputs)

    @staticmethod
    def made(stream: Stream, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """Give the payload columns of a stream out of those of its inputs: the same, unless an operator makes others.

        Raises:
            PayloadError: a column is missing, or of a type that the operator cannot take.
        """
        return with_port(stream, inputs)

    @staticmethod
    def aside_of(made: pa.Schema) -> pa.Schema:
        """Give the payload columns of what the operator sets aside out of those of its stream: the same."""
        return made

    @staticmethod
    def own_columns(stream: Stream) -> Sequence[str]:  # noqa: ARG004 - as every link is asked
        """Name the columns that a stream names and that its carry has, beside those of its parts."""
        return ()

    @property
    def _remembered(self) -> str | None:
        """Name the column of the event ids that the operator's carry knows; None where it knows none."""
        return self.stream.event_id if any(part.per is Per.EVENT for part in self._kind.parts) else None

    def _resume(self, carry: Mapping[str, pa.Table]) -> None:
        """Take up what the carry has beside parts and held rows; nothing here."""

    def _lay(self, table: pa.Table, key: Longs) -> None:
        """Give the operator what it must know of a block beside its rows; nothing here."""

    @property
    def held_count(self) -> int:
        """Count the rows that wait in the carry."""
        return int(self._held.num_rows)

    def feed(self, inputs: Sequence[pa.Table], reading: int, final: int | None = None) -> Produced:
        """Run one window: the rows of each input in its order, then the reading that closes it.

        Args:
            inputs: one table a port, rows with an arrival below `reading`.
            reading: the instant that is exclusive of the window, in ticks.
            final: arrival of the final punctuation, where the stream ends in this window.
        """
        laid = self._joined(inputs)
        self._handed, self._first = laid.select(self._beside(laid)), int(self._held.num_rows)
        self._ends = laid.num_rows if final is not None else NEVER
        fresh = laid.select(self.inner.names)
        table = pa.concat_tables([self._held, fresh]) if self._held.num_rows else fresh
        bound = bounds(self.stream.operator, self.operator.records)
        rows = self._rows(table, reading, final)
        gathered, aside = Gathering(Fate.MAIN, len(rows.kind)), Gathering(Fate.SIDE, 0)
        lines = [np.zeros(0, dtype=OUT)]
        for out in self.operator.feed(rows, self._held.num_rows):
            gathered.add(out)
            aside.add(out)
            lines.append(out[out["reason"] != Reason.NONE])
        self._hold(table)
        main = gathered.rows()
        return Produced(
            self._stream(main, table),
            self._aside(aside.rows(), table),
            self._ledger(np.concatenate(lines), table),
            self._taken_in(fresh),
            int((main.src >= 0).sum()),
            self._broken(main, bound),
        )

    def _taken_in(self, fresh: pa.Table) -> int:
        """Count the rows of a window that the operator has to account for."""
        return int(fresh.num_rows)

    def _broken(self, main: Leaving, bound: Longs | None) -> int | None:
        """Count the rows that break what the operator promised; None where it promises nothing."""
        if bound is None:
            return None
        return breaks(self.stream.operator, main, bound, self.keys.count)

    def hear(self, reading: int) -> None:
        """Tell a fresh operator without inputs from which reading on it hears the clock; nothing leaves by it.

        Args:
            reading: the instant at which the span begins, in ticks.
        """
        self.feed([], reading)

    def _hold(self, table: pa.Table) -> None:
        """Keep the rows of a block that stay held; new ones take positions behind all that were held here before."""
        held = self.operator.held
        fresh = np.arange(self._next, self._next + table.num_rows - len(self._positions))
        self._next += len(fresh)
        self._held = table.take(pa.array(held)) if len(held) else self.inner.empty_table()
        self._positions, self._numbers = (np.append(known, fresh)[held] for known in (self._positions, self._numbers))

    def renew(self, commit: int, blind: Blind) -> None:
        """Begin another commit with the carry as it stands."""
        self._commit = commit
        self.operator.listen(blind)
        self._before = {name: records.copy() for name, records in self.operator.records.items()}
        self._held_before = (self._held, self._positions, self._numbers)

    def base(self) -> dict[str, pa.Table]:
        """Give the whole carry as tables, a base for whoever comes next."""
        tables = {
            part.name: self._part_rows(part, self.operator.records[part.name], None, CarryChange.BASE)
            for part in self.operator.parts
        }
        return tables | {"held": self._held_rows(self._held, self._positions, CarryChange.BASE)}

    def delta(self) -> Delta:
        """Give what of the carry changed since the commit began."""
        tables: dict[str, list[pa.Table]] = {}
        content = NO_CONTENT
        for part in self.operator.parts:
            now, before = self.operator.records[part.name], self._before[part.name]
            changed = np.flatnonzero(now[: len(before)] != before)
            fresh = np.arange(len(before), len(now))
            alive = np.concatenate([changed, fresh])
            stays = carrying.kept(part, now[alive])
            ended, alive = alive[~stays], alive[stays]
            ended = ended[ended < len(before)]
            rows = [
                self._part_rows(part, now, alive, CarryChange.SET),
                self._part_rows(part, now, ended, CarryChange.GONE),
            ]
            content += content_hash(rows[0], leave_out=carrying.NOT_HASHED)
            content -= content_hash(
                self._part_rows(part, before, changed, CarryChange.SET), leave_out=carrying.NOT_HASHED
            )
            tables[part.name] = rows
        *held_before, numbers = self._held_before
        came = ~np.isin(self._numbers, numbers)
        left = ~np.isin(numbers, self._numbers)
        held = (self._held, self._positions, came, CarryChange.SET), (*held_before, left, CarryChange.GONE)
        tables["held"] = [
            self._held_rows(rows.filter(pa.array(mask)), positions[mask], change)
            for rows, positions, mask, change in held
        ]
        hashes = [content_hash(rows, leave_out=carrying.NOT_HASHED) for rows in tables["held"]]
        return Delta({name: pa.concat_tables(rows) for name, rows in tables.items()}, content + hashes[0] - hashes[1])

    def _part_rows(self, part: CarryPart, records: Records, which: Longs | None, change: CarryChange) -> pa.Table:
        """Give rows of one carry part for the records `which`, or all that are kept."""
        key = self.keys.table()
        width = len(self.stream.ports or ()) if part.per is Per.PORT else 1
        which = np.arange(len(records)) if which is None else which
        which = which if change is CarryChange.GONE else which[carrying.kept(part, records[which])]
        if part.per is Per.EVENT:
            which = which[which > 0]
            columns = (
                self.events.table().take(pa.array(which - 1)).columns
                if len(which)
                else self.events.schema.empty_table().columns
            )
            names = list(columns)
        else:
            names = key.take(pa.array(which // width)).columns if key.num_columns else []
            names = [*names, pa.array(which % width)] if part.per is Per.PORT else list(names)
        whole = [name.combine_chunks() if isinstance(name, pa.ChunkedArray) else name for name in names]
        return carrying.part_table(part, records[which], self.part_schemas()[part.name], self._commit, change, whole)

    def _held_rows(self, rows: pa.Table, positions: Longs, change: CarryChange) -> pa.Table:
        schema = carrying.held_schema(self.inner)
        return carrying.held_table(rows, positions, schema, self._commit, change)

    def part_schemas(self) -> dict[str, pa.Schema]:
        """Give the schema of each carry table that this stream may have."""
        key = list(self.keys.schema)
        schemas = {part.name: carrying.part_schema(part, key, self._event) for part in self.operator.parts}
        return schemas | {"held": carrying.held_schema(self.inner)}

    def _records(self, carry: Mapping[str, pa.Table]) -> dict[str, Records]:
        records = {}
        for part in parts_of(self.stream.operator, self.stream.policy):
            table = carry.get(part.name)
            if table is None:
                continue
            laid = carrying.to_records(part, table)
            if part.per is Per.KEY:
                laid = carrying.group_major(self.keys.ids(table), np.zeros(len(laid), dtype=np.int64), 1, laid)
            elif part.per is Per.SOME_KEY:
                some = part.fresh(self.keys.count)
                some[self.keys.ids(table)] = laid
                laid = some
            elif part.per is Per.PORT:
                laid = carrying.group_major(
                    self.keys.ids(table), longs(table["port"]), len(self.stream.ports or ()), laid
                )
            elif self._event is not None:
                self.events.ids(self._event_columns(table.rename_columns(self._renamed(table, "event"))))
                laid = np.concatenate([part.fresh(1), laid])
            records[part.name] = laid
        return records

    def _renamed(self, table: pa.Table, event: str) -> list[str]:
        name = self._event.name if self._event is not None else event
        return [name if column == event else column for column in table.column_names]

    def _event_columns(self, table: pa.Table) -> pa.Table:
        names = [*self.stream.by, *([self._event.name] if self._event is not None else [])]
        return table.select(names).rename_columns([f"e{i}" for i in range(len(names))])

    def _joined(self, inputs: Sequence[pa.Table]) -> pa.Table:
        """Put the inputs into one table, ordered by (arrival, port, the order of each)."""
        if len(inputs) > 1:
            inputs = [self._with_port(table, port) for port, table in enumerate(inputs)]
        table = pa.concat_tables([self.inner.empty_table(), *inputs], promote_options="default")
        table = table.select([*self.inner.names, *self._beside(table)])
        return self._ordered(table)

    def _beside(self, table: pa.Table) -> list[str]:
        """Name the columns of a block that say which turns its rows belong to."""
        return [name for name in table.column_names if is_turn(name)]

    def _ordered(self, table: pa.Table) -> pa.Table:
        """Put rows of several inputs, each in its order, into the order in which the operator takes them."""
        if self.stream.ports is None:
            return table
        order = order_of(ticks(table["arrival"]), lambda tied: (self._ports(table)[tied],))
        return table if order is None else table.take(pa.array(order))

    def _with_port(self, table: pa.Table, port: int) -> pa.Table:
        ports = self.stream.ports
        if has_sides(self.stream):
            table, name, said = self._of_side(table, port), SIDE, pa.scalar(port, pa.int64())
        elif ports is not None and ports.streams:
            # As they are called with one instance, and not as the inputs of this one are.
            name, said = PORT, pa.scalar(ports.streams[port])
        else:
            return table
        return table.append_column(name, pa.repeat(said, table.num_rows))

    def _of_side(self, table: pa.Table, port: int) -> pa.Table:  # noqa: ARG002 - others take a part of it
        """Give the rows of one input that the operator takes."""
        return table

    def _ports(self, table: pa.Table) -> Longs:
        ports = self.stream.ports
        if has_sides(self.stream):
            return longs(table[SIDE])
        if ports is None:
            return np.zeros(table.num_rows, dtype=np.int64)
        column = table[ports.column or PORT]
        known = spelled_as(ports.values or ports.streams, column.type)
        return np.asarray(pc.fill_null(pc.index_in(column, known), -1), dtype=np.int64)

    def _key_ids(self, table: pa.Table) -> Longs:
        return self.keys.ids(table)

    def _event_ids(self, table: pa.Table) -> Longs:
        ids = np.zeros(table.num_rows, dtype=np.int64)
        if self._event is None:
            return ids
        edges = np.flatnonzero(np.isin(kinds(table["kind"]), (Kind.START, Kind.END)))
        ids[edges] = 1 + self.events.ids(self._event_columns(table.take(pa.array(edges))))
        return ids

    def _rows(self, table: pa.Table, reading: int, final: int | None) -> Rows:
        key, event_id = self._key_ids(table), self._event_ids(table)
        self.operator.grow(self.keys.count, max(self.events.count, int(event_id.max(initial=0))) + 1)
        self._lay(table, key)
        steering = [(Kind.READING, reading)] if final is None else [(Kind.FINAL, final), (Kind.READING, reading)]
        instants = np.array([instant for _, instant in steering], dtype=np.int64)
        zero, null = np.zeros(len(steering), dtype=np.int64), np.full(len(steering), NULL)
        columns = (
            (kinds(table["kind"]), np.array([kind for kind, _ in steering], dtype=np.int8)),
            (key, zero),
            (self._ports(table), zero),
            (ticks(table["arrival"]), instants),
            (longs(table["place"]), zero),
            (ticks(table["event_time"]), null),
            (ticks(table["event_end"]), null),
            (event_id, zero),
        )
        laid = [np.concatenate(pair) for pair in columns]
        for column in laid:
            column.setflags(write=False)
        return Rows(*laid)

    def _stream(self, out: Leaving, table: pa.Table) -> pa.Table:
        """Build rows of a stream: order columns from the scan, the rest by index, null for timers and CTIs."""
        carried = self._carried()
        schema = pa.schema([*self.schema, *(field for columns in carried for field in columns.fields)])
        if not len(out.src):
            return schema.empty_table()
        out = self._in_order(out)
        built = {
            "kind": kind_names(out.kind),
            "due_at": self._due(out, table),
            "place": pa.array(out.place),
            "commit": pa.array(np.full(len(out.src), self._commit)),
        }
        for name in ("arrival", "event_time", "event_end"):
            built[name] = times(getattr(out, name))
        if self.stream.by:
            keys = self.keys.table().take(pa.array(out.key))
            built |= dict(zip(keys.column_names, keys.columns, strict=True))
        others = [name for name in self.schema.names if name not in built]
        taken = self._columns(others, out, table)
        if carried:
            turns = released(self._handed, carried, out.by - self._first, self._ends)
            built |= raised(turns, carried, out.arrival, out.key)
        columns = [built[name] if name in built else taken[name] for name in schema.names]
        return pa.Table.from_arrays(columns, schema=schema)

    def _aside(self, out: Leaving, table: pa.Table) -> pa.Table:
        """Build rows that the operator sets aside."""
        return self._stream(out, table)

    def know(self, turned: TurnsOfFlow) -> None:
        """Know the turns of the flow that the stream stands in; without them it carries none."""
        self._turned = turned

    def _carried(self) -> list[TurnColumns]:
        return [] if self._turned is None else self._turned.carried(self.stream.name)

    def _due(self, out: Leaving, table: pa.Table) -> pa.Array:
        due = np.append(ticks(table["due_at"]), NULL)
        return times(np.where(out.src >= 0, due[out.src], out.due_at))

    def _columns(self, names: Sequence[str], out: Leaving, table: pa.Table) -> pa.Table:
        """Give payload and identity of rows that leave, null for those that the operator made."""
        return self._taken(table.select(names), out.src)

    def _in_order(self, out: Leaving) -> Leaving:
        """Put rows in the order of their stream: (arrival, key, place)."""
        if not self.stream.by:
            return out
        order = order_of(out.arrival, lambda tied: (self.keys.ranks(out.key[tied]), out.place[tied]))
        return out if order is None else out.take(order)

    def _taken(self, table: pa.Table, src: Longs) -> pa.Table:
        if len(src) == table.num_rows and (src == np.arange(len(src))).all():
            return table
        return table.take(pa.array(src, mask=src < 0))

    def _ledger(self, out: Records, table: pa.Table) -> pa.Table:
        if not len(out):
            return LEDGER_SCHEMA.empty_table()
        rows = len(out)
        taken = table.take(pa.array(out["src"], mask=out["src"] < 0))
        note = np.asarray(out["src"]) < 0
        adjusted = np.isin(out["reason"], ADJUSTED) & (out["fate"] == Fate.MAIN)
        columns = {
            "commit": pa.repeat(self._commit, rows),
            "stream": pa.repeat(self.stream.name, rows),
            "operator": pa.repeat(self.stream.operator, rows),
            "reason": _named(out["reason"], lambda reason: Reason(reason).name.lower()),
            "action": pc.if_else(pa.array(adjusted), "adjusted", _named(out["fate"], _action)),
            "source": pa.repeat(pa.scalar(self._source, pa.string()), rows),
            "landed_at": taken["landed_at"],
            "landed_place": taken["landed_place"],
            "key": self._key_texts(out["key"]),
            "kind": kind_names(np.ascontiguousarray(out["kind"])),
            "arrival": times(np.where(note, out["arrival"], np.append(ticks(table["arrival"]), NULL)[out["src"]])),
            "place": taken["place"],
            "event_time": taken["event_time"],
            "event_end": taken["event_end"],
            "new_time": times(np.where(adjusted, out["event_time"], NULL)),
            "new_end": times(np.where(adjusted, out["event_end"], NULL)),
            "cti": times(np.ascontiguousarray(out["cti"])),
            "cti_arrival": times(np.ascontiguousarray(out["cti_arrival"])),
            "cti_place": pa.array(out["cti_place"], mask=np.asarray(out["cti_place"]) == NULL),
            "row": pc.if_else(pa.array(note), None, json_rows(taken, self._payload)),
            "raw": self._told_more(out, table),
        }
        return pa.Table.from_arrays(
            [_as(columns[field.name], field.type) for field in LEDGER_SCHEMA], schema=LEDGER_SCHEMA
        )

    def _told_more(self, out: Records, table: pa.Table) -> pa.Array:  # noqa: ARG002 - for links that know more of a row
        """Give what a line of the ledger says beside the row, as JSON: column `raw`."""
        return pa.nulls(len(out), pa.binary())

    def _key_texts(self, keys: Longs) -> pa.Array | pa.ChunkedArray:
        """Give each row's key as text."""
        if not self.stream.by:
            return pa.repeat("{}", len(keys))
        distinct, at = np.unique(keys, return_inverse=True)
        return json_rows(self.keys.table().take(pa.array(distinct)), self.stream.by).take(pa.array(at))


def landed_as_stream(table: pa.Table, payload: pa.Schema) -> pa.Table:
    """Give landed rows the columns of a stream; their arrival and place are their identity from here on."""
    rows = table.num_rows
    columns = {
        "due_at": pa.nulls(rows, TIME),
        "landed_at": table["arrival"],
        "landed_place": table["place"],
        "commit": pa.nulls(rows, pa.int64()),
    }
    schema = stream_schema(payload)
    arrays = [columns[name] if name in columns else table[name] for name in schema.names]
    return pa.Table.from_arrays(arrays, names=schema.names).cast(schema)


def _named(values: npt.NDArray[Any], name: Callable[[int], str]) -> pa.Array:
    """Give the name of each of a few values."""
    distinct, at = np.unique(values, return_inverse=True)
    return pa.array([name(int(each)) for each in distinct], pa.string()).take(pa.array(at))


def _action(fate: int) -> str:
    if fate == Fate.SIDE:
        return "diverted"
    return "dropped" if fate == Fate.DROPPED else "noted"


def _as(values: object, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    return values.cast(kind) if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values, kind)
