"""Take a carry over, as a commit of its own without rows: from under another flow, or out of another run.

The commit is a base: the whole carry stands in it, so what comes behind needs nothing of before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pipelines.engine.columnar.columns import LEDGER_SCHEMA, RESERVED, ticks, times
from pipelines.engine.columnar.content import content_hash
from pipelines.engine.columnar.row_texts import json_rows
from pipelines.engine.commits.carry_format import UPGRADES, UnknownCarryError
from pipelines.engine.commits.entry import LEDGER, NOTHING, START_OF_RUN, CommitKind, Span
from pipelines.engine.commits.paths import NewFile, carry_path, table_name
from pipelines.engine.commits.plan import carry_format, plan_of
from pipelines.engine.commits.readers import read_carry
from pipelines.engine.files.small import write_summed
from pipelines.engine.files.writing import NO_ROWS, TableFile
from pipelines.engine.tasks.carry import CHANGE, COMMIT, NOT_HASHED, CarryChange, stamped
from pipelines.engine.tasks.leading import PORTS, led_back
from pipelines.engine.tasks.stages import carry_schemas, create_tables
from pipelines.engine.tasks.task import carry_key, carry_parts, ledger_counts, payloads, source_behind
from pipelines.flows.definition import fingerprint_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from pipelines.engine.commits.driver import Driver
    from pipelines.engine.commits.entry import Entry
    from pipelines.engine.commits.history import LogState
    from pipelines.flows.model import Flow, Stream

HELD = "held"
"""The part of a carry with rows that came in and did not leave yet; commits count them by that name."""
WINDOWS = "windows"
"""The part with windows that are open."""
BEGUN_ANEW = "begun_anew"
"""Why a row that waited is in the ledger: its stream began anew, or went, when a changed flow was taken into use."""
LEFT_OPEN = "left_open"
"""Of a window that was open, and of a row that a join or union held, which may have left as a part of a result."""
OF_THE_ROW = ("landed_at", "landed_place", "kind", "arrival", "place", "event_time", "event_end")
NOT_OF_THE_ROW = RESERVED | NOT_HASHED


@dataclass(frozen=True, kw_only=True)
class Ground:
    """A state whose carry is taken over."""

    root: Path
    state: LogState
    commit: int
    """0 for the empty carry before a run's first."""
    end: int
    """Up to where it has come, in ticks."""
    sequence: int
    """The last sequence of the landing that it covers."""
    latest: Mapping[str, int] = field(default_factory=dict)
    """By merge that believes less from here on: the latest instant to which one of its ports may have been led."""
    elsewhere: Mapping[str, Ground] = field(default_factory=dict)
    """By stream of a leg of its own: the state of that leg at the same sequence, which has its carry."""
    older: Flow | None = None
    """The flow that its carry was made by, where rows that wait in streams which do not stand are lost to the run."""


def adopt(  # noqa: PLR0913 - what is taken over, by whom
    driver: Driver,
    flow: Flow,
    ground: Ground,
    streams: Collection[str],
    schemas: Mapping[str, pa.Schema],
    detail: Mapping[str, object] = NOTHING,
) -> Entry:
    """Publish a commit that has the carry of a state and no row; what was left half done before is given up first.

    What waited in a stream that begins anew, or is gone, has a line in its ledger; so has each window that was open.

    Args:
        driver: holds the lease of the run that takes the carry over.
        flow: what the run goes on with.
        ground: whose carry.
        streams: those whose carry stands; the others begin anew.
        schemas: payload of each source, as it landed.
        detail: what else is to be known of the commit.

    Raises:
        UnknownCarryError: the carry is written in a format that is not known here.
        SchemaChangedError: a table of the run has other columns than the flow writes.
    """
    for each in (ground, *ground.elsewhere.values()):
        written = carry_format(each.state, each.commit)
        if written is not None and not UPGRADES.oldest <= written <= UPGRADES.current:
            raise UnknownCarryError(each.commit, written, UPGRADES.oldest, UPGRADES.current)
    create_tables(driver.root, flow, schemas)
    number, tip = driver.next_number(), driver.state().tip
    parent = tip.commit if tip else START_OF_RUN
    plan, span = plan_of(flow, UPGRADES.current), Span(ground.end, ground.end)
    driver.intent(number, span, parent, [], plan, fingerprint_of(flow), kind=CommitKind.ADOPT)
    carry, files = NO_ROWS, dict[str, list[NewFile]]()
    held: dict[str, object] = {name: {HELD: 0} for name in flow.streams if name not in streams}
    for path, rows in _carried(driver.root, flow, ground, streams, schemas, number):
        carry += content_hash(rows, leave_out=NOT_HASHED)
        stream, _, part = path.name.rpartition(".")
        if part == HELD:
            held[stream] = {HELD: rows.num_rows}
        if rows.num_rows:
            files[table_name(driver.root, path)] = [_write(path, number, rows)]
    found = {**detail, "sequence": ground.sequence, "kept": sorted(streams)}
    lines, hashes = left_behind(ground, streams, number), dict[str, str]()
    if lines.num_rows:
        told = TableFile(driver.root, LEDGER, f"c{number:08d}-adopted")
        told.write(lines)
        held[LEDGER], hashes[LEDGER] = dict(ledger_counts(lines)), told.cut().text
        files[LEDGER] = [NewFile(each.name, each.rows, each.size, each.hash) for each in (told.close(),) if each]
    return driver.written_and_published(number, files, held, hashes, carry.text, {}, detail=found)


def left_behind(ground: Ground, streams: Collection[str], number: int) -> pa.Table:
    """Give the ledger's lines of what is lost with streams whose carry does not stand.

    Rows that wait; rows that a join or union holds, which may have left as a part of a result, are noted, and so are
    windows that are open.

    Args:
        ground: whose carry.
        streams: those whose carry stands.
        number: of the commit that the lines are of.
    """
    found, older, written = [LEDGER_SCHEMA.empty_table()], ground.older, carry_format(ground.state, ground.commit)
    if older is None or written is None:
        return found[0]

    def carried(stream: Stream, part: str, order: str) -> pa.Table:
        key = carry_key(stream, part)
        rows = read_carry(ground.root, stream.name, part, ground.commit, key=key, state=ground.state)
        plain = rows.sort_by(order).drop_columns([COMMIT.name, CHANGE.name]) if rows.num_rows else rows
        return UPGRADES.upgraded(stream, part, plain, written)

    parts = carry_parts(older)
    for name, stream in older.streams.items():
        if name in streams:
            continue
        source = source_behind(older, name)
        for part, order, spelled in ((HELD, "position", _as_held), (WINDOWS, "age", partial(_as_windows, ground.end))):
            if part in parts[name] and (rows := carried(stream, part, order)).num_rows:
                found.append(_lines(stream, source, spelled(stream, rows), number))
    return pa.concat_tables(found)


def _as_held(stream: Stream, rows: pa.Table) -> pa.Table:
    """Give what a line says of rows that wait."""
    spelled = json_rows(rows, [name for name in rows.column_names if name not in NOT_OF_THE_ROW])
    reason, action = (BEGUN_ANEW, "dropped") if stream.accountable else (LEFT_OPEN, "noted")
    known = {"reason": [reason] * rows.num_rows, "action": [action] * rows.num_rows, "row": spelled}
    return pa.table({**{name: rows[name] for name in (*stream.by, *OF_THE_ROW)}, **known})


def _as_windows(end: int, stream: Stream, rows: pa.Table) -> pa.Table:
    """Give what a line says of open windows: their lifetimes, and what they have measured."""
    size: int = stream.policy.size  # type: ignore[attr-defined]
    begun = ticks(rows["window_start"])
    known = {
        "kind": ["data"] * rows.num_rows,
        "reason": [LEFT_OPEN] * rows.num_rows,
        "action": ["noted"] * rows.num_rows,
        "arrival": times(np.full(rows.num_rows, end)),
        "event_time": times(begun),
        "event_end": times(begun + size),
        "row": json_rows(rows, [name for name in rows.column_names if name not in {*stream.by, "age", "window_start"}]),
    }
    return pa.table({**{name: rows[name] for name in stream.by}, **known})


def _lines(stream: Stream, source: str | None, rows: pa.Table, number: int) -> pa.Table:
    known = {
        "commit": pa.repeat(number, rows.num_rows),
        "stream": pa.repeat(stream.name, rows.num_rows),
        "operator": pa.repeat(stream.operator, rows.num_rows),
        "source": pa.repeat(pa.scalar(source, pa.string()), rows.num_rows),
        "key": json_rows(rows, stream.by) if stream.by else pa.repeat("{}", rows.num_rows),
    }
    known |= {name: rows[name] for name in (*OF_THE_ROW, "reason", "action", "row") if name in rows.column_names}
    nothing = pa.nulls(rows.num_rows)
    return pa.table([known.get(field.name, nothing).cast(field.type) for field in LEDGER_SCHEMA], schema=LEDGER_SCHEMA)


def _carried(  # noqa: PLR0913 - what is taken over, from where to where
    root: Path,
    flow: Flow,
    ground: Ground,
    streams: Collection[str],
    schemas: Mapping[str, pa.Schema],
    number: int,
) -> Iterator[tuple[Path, pa.Table]]:
    """Give each part of the carry that stands, with the folder of the table that it goes to."""
    parts, wanted, known = carry_parts(flow), carry_schemas(flow, schemas), payloads(flow, schemas)
    for name in streams:
        own = ground.elsewhere.get(name, ground)
        written = carry_format(own.state, own.commit)
        if written is None:
            continue
        for part in parts[name]:
            key = carry_key(flow.streams[name], part)
            rows = read_carry(own.root, name, part, own.commit, key=key, state=own.state)
            if rows.num_rows:
                plain = rows.drop_columns([COMMIT.name, CHANGE.name])
                now = UPGRADES.upgraded(flow.streams[name], part, plain, written)
                if part == PORTS and name in ground.latest:
                    now = led_back(now, flow.streams[name].by, ground.latest[name])
                path, schema = carry_path(root, name, part), wanted[name][part]
                rows = _with_new(stamped(now, number, CarryChange.BASE), schema, known[name])
                yield path, rows.select(schema.names).cast(schema)


def _with_new(rows: pa.Table, schema: pa.Schema, payload: pa.Schema) -> pa.Table:
    """Give rows that an operator holds the columns that its inputs have now and did not have then: null."""
    for each in schema:
        if each.name in payload.names and each.name not in rows.column_names:
            rows = rows.append_column(each, pa.nulls(rows.num_rows, each.type))
    return rows


def _write(path: Path, number: int, rows: pa.Table) -> NewFile:
    path.mkdir(parents=True, exist_ok=True)
    file, size = write_summed(rows, path, f"c{number:08d}-adopted", compression="zstd", store_schema=False)
    return NewFile(name=file.name, rows=rows.num_rows, size=size)
