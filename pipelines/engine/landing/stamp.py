"""The Marker's stamp, as a pure function: which rows of a source came in a span, in what order, and what is set aside.

Rows in, rows and ledger out; no file, no clock. Every row that belongs to the span comes out exactly once, as a row or
as a ledger line `dropped`; a line `noted` stands beside a row that landed.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import (
    LEDGER_SCHEMA,
    TABLE_INFINITY,
    TIME,
    UNREADABLE,
    canonical_json,
    ticks,
    times,
)
from pipelines.engine.columnar.keys import bucket_of, canonical_keys
from pipelines.engine.columnar.row_texts import json_rows
from pipelines.engine.files.ordered import order_of
from pipelines.engine.landing.column_errors import ColumnBrokenError
from pipelines.engine.landing.file_rows import DROPPED, NOTED
from pipelines.engine.landing.told_rows import is_beside, is_lost, lines_told, undeclared_of
from pipelines.flows.region import PUNCTUATION
from pipelines.operators.rows import NULL, Shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from pipelines.engine.landing.undeclared import Undeclared
    from pipelines.flows.model import Source
    from pipelines.operators.rows import Longs

    Mask = npt.NDArray[np.bool_]

STAMPS = pa.schema(
    [
        ("kind", pa.string()),
        ("arrival", TIME),
        ("place", pa.int64()),
        ("event_time", TIME),
        ("event_end", TIME),
    ]
)
LANDED_LEDGER = pa.schema([field for field in LEDGER_SCHEMA if field.name != "commit"])
"""The ledger's columns but `commit`, which a landing does not have."""
OPERATOR = "landing"


class Stamped(NamedTuple):
    """What of a source's rows lands in a span."""

    rows: pa.Table
    """STAMPS and the payload, in the order (arrival, place)."""
    ledger: pa.Table
    """LANDED_LEDGER, in the order (landed_at, landed_place)."""
    punctuations: int = 0
    """How many window punctuations came; each has a line `noted` in the ledger, and no row."""
    undeclared: Mapping[str, Undeclared] = {}
    """By name: columns of these rows that nobody declared, where they have values."""

    @property
    def any(self) -> bool:
        """Say whether anything lands."""
        return bool(self.rows.num_rows or self.ledger.num_rows)


class Orphans(NamedTuple):
    """Rows with neither arrival nor event time, and the instants they land at: those of their neighbours."""

    rows: pa.Table
    instants: Longs


def landed_row_schema(payload: pa.Schema) -> pa.Schema:
    """Give the columns of a source's file in a sequence."""
    return pa.schema([*STAMPS, *payload])


def stamp(  # noqa: PLR0913 - rows, and what span of them
    source: Source, rows: pa.Table, orphans: Orphans, start: int, end: int, since: int | None = None
) -> Stamped:
    """Number the rows that arrived in [start, end) and set aside those that cannot stand in a stream.

    `place` numbers from 1 the rows of one arrival, in the feed's order; rows set aside for a null key have taken
    theirs. A row without arrival lands, in the ledger, at its event time, behind the rows that arrived in that instant;
    one with neither at the instant that `orphans` says. So does a row that the feed says cannot land, with what it
    tells of it. A row whose event time (or another time) could not be read stands in the stream without it, and the
    ledger says what it was; a plain null is no ledger case.

    Args:
        source: what its columns mean.
        rows: payload and UNREADABLE in the feed's order; more rows than belong to the span do no harm.
        orphans: rows with neither arrival nor event time; those of other spans do no harm.
        start: in ticks.
        end: in ticks, exclusive.
        since: from when on rows that arrived before `start` belong to it, too; they arrive at `start`, in the order of
            their own arrivals, before all others. None where none of them does.

    Returns:
        Rows and ledger; the same for the same rows of the span, whatever else was given.

    Raises:
        ColumnBrokenError: the columns of a row are not the declared ones, and the source says to stop there.
    """
    arrival, time = ticks(rows[source.arrival]), ticks(rows[source.time])
    mine = (arrival >= (start if since is None else since)) & (arrival < end)
    came, instants = _sorted(_those(rows, mine), arrival if mine.all() else arrival[mine])
    if since is not None:
        instants = np.maximum(instants, start)
    absent = _those(rows, (arrival == NULL) & (time >= start) & (time < end))
    lost = (orphans.instants >= start) & (orphans.instants < end)
    homeless = pa.concat_tables([absent, _those(orphans.rows, lost)], promote_options="default")
    homes = np.concatenate([ticks(absent[source.time]), orphans.instants[lost]])
    aside = _aside(source, homeless, homes, instants)
    late = [*_told(source, aside), _lines(source, _those(aside, ~is_lost(aside)), "no_arrival", DROPPED)]
    arrived = came[source.arrival] if since is None else times(instants)
    return _judged(source, _stamped(source, came, arrived, places(instants)), pa.concat_tables(late))


def stamp_arrivals(source: Source, rows: pa.Table, numbers: Longs, instant: int, told: pa.Table) -> Stamped:
    """Give rows that came in by the real clock their one arrival, and set aside those that cannot stand in a stream.

    Args:
        source: what its columns mean; none is an arrival.
        rows: payload and UNREADABLE in the feed's order.
        numbers: place of each, ascending.
        instant: the arrival, in ticks.
        told: LANDED_LEDGER lines that stand for what has no row; they have places of their own.
    """
    arrival = times(np.full(rows.num_rows, instant, dtype=np.int64))
    return _judged(source, _stamped(source, rows, arrival, numbers), told)


def _judged(source: Source, stamped: pa.Table, others: pa.Table) -> Stamped:
    told = _told(source, _as_landed(stamped))
    stamped = _those(stamped, ~is_lost(stamped))
    marks = _is_punctuation(source, stamped)
    marked, stamped = _those(stamped, marks), _those(stamped, ~marks)
    keyless = _any_null(stamped, source.key)
    edgeless = _any_null(stamped, ("kind",)) & ~keyless
    kept = _those(stamped, ~(keyless | edgeless))
    noted = kept.filter(kept[UNREADABLE].is_valid())
    lines = (
        others,
        *told,
        _lines(source, _as_landed(_those(stamped, keyless)), "null_key", DROPPED),
        _lines(source, _as_landed(_those(stamped, edgeless)), "unknown_edge", DROPPED),
        _lines(source, _as_landed(noted), "unreadable_time", NOTED),
        _lines(source, _as_landed(marked), PUNCTUATION, NOTED),
    )
    rows = kept.drop_columns([name for name in kept.schema.names if name == UNREADABLE or is_beside(name)])
    return Stamped(rows, _in_order(pa.concat_tables(lines)), marked.num_rows, undeclared_of(kept))


def _told(source: Source, rows: pa.Table) -> list[pa.Table]:
    """Write the ledger's lines of what the feed tells of rows: what it was stands in `row`, its bytes in `raw`."""
    told = lines_told(rows)
    for _, line in told:
        if line.breach is not None:
            raise ColumnBrokenError(source.name, line.where, line.breach)
    if not told:
        return []
    lines = _lines(source, rows.take(pa.array([row for row, _ in told])), "", "")
    said = {
        "reason": pa.array([line.reason for _, line in told]),
        "action": pa.array([line.action for _, line in told]),
        "key": pa.nulls(len(told), pa.string()),
        "row": pa.array([canonical_json({"problem": line.problem}) for _, line in told]),
        "raw": pa.array([line.raw for _, line in told], pa.binary()),
    }
    return [pa.Table.from_arrays([said.get(name, lines[name]) for name in lines.schema.names], schema=LANDED_LEDGER)]


def _is_punctuation(source: Source, stamped: pa.Table) -> Mask:
    if source.edge is None:
        return np.zeros(stamped.num_rows, dtype=bool)
    said = pc.fill_null(pc.equal(stamped["kind"], PUNCTUATION), False)  # noqa: FBT003 - a value
    return np.asarray(said.combine_chunks())


def _those(rows: pa.Table, mask: Mask) -> pa.Table:
    return rows if mask.all() else rows.filter(pa.array(mask))


INFINITE = re.compile(r"253402300799999999|9999-12-31[T ]23:59:59\.999999.*|infinity|inf", re.IGNORECASE)
"""How a feed says that a CTI closes its stream: the instant that stands for infinity in tables, or the word."""


def _any_null(rows: pa.Table, columns: tuple[str, ...]) -> Mask:
    nulls = [np.asarray(rows[name].combine_chunks().is_null()) for name in columns if rows[name].null_count]
    found: Mask = np.any(nulls, axis=0) if nulls else np.zeros(rows.num_rows, dtype=bool)
    return found


def _sorted(rows: pa.Table, arrival: Longs) -> tuple[pa.Table, Longs]:
    """Put rows in the order of their arrivals; rows of one arrival keep theirs."""
    order = order_of(arrival)
    return (rows, arrival) if order is None else (rows.take(pa.array(order)), arrival[order])


def places(instants: Longs) -> Longs:
    """Number from 1 the rows of each instant.

    >>> places(np.array([5, 5, 7])).tolist()
    [1, 2, 1]

    Args:
        instants: in order.
    """
    begins = np.flatnonzero(np.append(True, instants[1:] != instants[:-1]))
    if len(begins) == len(instants):
        return np.ones(len(instants), dtype=np.int64)
    return np.arange(1, len(instants) + 1) - np.repeat(begins, np.diff(np.append(begins, len(instants))))


def _stamped(source: Source, rows: pa.Table, arrival: pa.Array | pa.ChunkedArray, numbers: Longs) -> pa.Table:
    kind = kind_of(source, rows)
    rows = _with_infinity(source, rows, kind)
    columns = {
        "kind": kind,
        "arrival": arrival,
        "place": pa.array(numbers, pa.int64()),
        **times_of(source, rows, kind),
    }
    schema = landed_row_schema(rows.schema)
    return pa.Table.from_arrays([*columns.values(), *rows.columns], schema=schema)


def kind_of(source: Source, rows: pa.Table) -> pa.Array | pa.ChunkedArray:
    """Say what each row is; null where the column that says it holds another word.

    Args:
        source: what its columns mean.
        rows: with the column that says it, where there is one.
    """
    if source.edge is None:
        return pa.repeat("data", rows.num_rows)
    said = rows[source.edge].cast(pa.string())
    words = [*(["start", "end"] if source.shape is Shape.EDGE else ["data"]), "cti", PUNCTUATION]
    known = pc.is_in(said, pa.array(words))
    return pc.if_else(known, said, pa.scalar(None, pa.string()))


def _with_infinity(source: Source, rows: pa.Table, kind: pa.Array | pa.ChunkedArray) -> pa.Table:
    """Give CTIs that close the stream their time: infinity, which no event can have, so a feed's reader refused it."""
    asked = pc.and_(pc.equal(kind, "cti"), pc.and_(rows[UNREADABLE].is_valid(), rows[source.time].is_null()))
    asked = pc.fill_null(asked, False)  # noqa: FBT003 - a value
    if source.edge is None or not pc.any(asked).as_py():
        return rows
    texts = zip(asked.to_pylist(), rows[UNREADABLE].to_pylist(), strict=True)
    told = [json.loads(text) if wanted else {} for wanted, text in texts]
    endless = [INFINITE.fullmatch(lost.pop(source.time, "").strip()) is not None for lost in told]
    left = [json.dumps(lost, sort_keys=True, ensure_ascii=False) if lost else None for lost in told]
    mask, closing = pa.array(endless), pa.scalar(TABLE_INFINITY, pa.int64()).cast(TIME)
    replaced = {
        source.time: pc.if_else(mask, closing, rows[source.time]),
        UNREADABLE: pc.if_else(asked, pa.array(left, pa.string()), rows[UNREADABLE]),
    }
    columns = [replaced.get(name, rows[name]) for name in rows.column_names]
    return pa.table(columns, schema=rows.schema)


def times_of(source: Source, rows: pa.Table, kind: pa.Array | pa.ChunkedArray) -> dict[str, pa.Array | pa.ChunkedArray]:
    """Give event time and end; an edge without a column for its end says its own instant.

    Args:
        source: what its columns mean.
        rows: with the columns of its times.
        kind: what `kind_of` gave.
    """
    nothing = pa.nulls(rows.num_rows, TIME)
    time, end = rows[source.time], nothing if source.end is None else rows[source.end]
    if source.shape is Shape.EDGE and source.end is None:
        ends = pc.equal(kind, "end")
        time, end = pc.if_else(ends, nothing, time), pc.if_else(ends, time, nothing)
    return {"event_time": time, "event_end": end}


def _as_landed(rows: pa.Table) -> pa.Table:
    return rows.append_column("landed_at", rows["arrival"]).append_column("landed_place", rows["place"])


def _aside(source: Source, rows: pa.Table, homes: Longs, instants: Longs) -> pa.Table:
    """Give rows without arrival the instants they land at, and places behind the rows that arrived then."""
    order = np.argsort(homes, kind="stable")
    rows, homes = rows.take(pa.array(order)), homes[order]
    arrived = np.searchsorted(instants, homes, side="right") - np.searchsorted(instants, homes, side="left")
    kind = kind_of(source, rows)
    schema = landed_row_schema(rows.schema)
    nothing = {"arrival": pa.nulls(len(homes), TIME), "place": pa.nulls(len(homes), pa.int64())}
    stamps = {"kind": kind, **nothing, **times_of(source, rows, kind)}
    stamped = pa.Table.from_arrays([*stamps.values(), *rows.columns], schema=schema)
    return stamped.append_column("landed_at", times(homes)).append_column(
        "landed_place", pa.array(arrived + places(homes))
    )


def _lines(source: Source, rows: pa.Table, reason: str, action: str) -> pa.Table:
    """Write a ledger line for each row."""
    own = {*STAMPS.names, "landed_at", "landed_place", UNREADABLE}
    payload = [name for name in rows.column_names if name not in own and not is_beside(name)]
    said = {"stream": source.name, "operator": OPERATOR, "reason": reason, "action": action, "source": source.name}
    columns = {
        **{name: pa.repeat(text, rows.num_rows) for name, text in said.items()},
        **{name: rows[name] for name in ("landed_at", "landed_place", *STAMPS.names)},
        "key": json_rows(rows, source.key),
        "row": json_rows(rows, payload),
        "raw": rows[UNREADABLE].cast(pa.binary()),
    }
    made = [columns.get(field.name, pa.nulls(rows.num_rows, field.type)) for field in LANDED_LEDGER]
    return pa.Table.from_arrays(made, schema=LANDED_LEDGER)


def _in_order(ledger: pa.Table) -> pa.Table:
    order = np.lexsort((ticks(ledger["landed_place"]), ticks(ledger["landed_at"])))
    return ledger.take(pa.array(order))


def bucketed(rows: pa.Table, key: tuple[str, ...], buckets: int) -> Iterator[tuple[int, pa.Table]]:
    """Divide rows by the bucket of their key, each in the order they stood in; buckets without rows are left out.

    Args:
        rows: with no null in a key column.
        key: column names; () puts all rows into bucket 0.
        buckets: how many.
    """
    if rows.num_rows == 0:
        return
    if not key or buckets == 1:
        yield 0, rows
        return
    numbers = bucket_of(canonical_keys([rows[name].combine_chunks() for name in key]), buckets)
    for bucket in np.unique(numbers).tolist():
        yield bucket, _those(rows, numbers == bucket)
