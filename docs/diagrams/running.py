"""Runs a case as a stream, reading by reading, and reads back what readers of its tables see.

The flow is read, landed, run and published as any other; the engine is this process. Blind spans are recorded as the
landing of a live source records them.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.engine.columnar.columns import ticks
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.readers import log_state, read_carry, read_ledger, read_stream
from pipelines.engine.landing.index import Landing
from pipelines.engine.landing.manifest import sequence_folder
from pipelines.engine.sources.catalog import open_recorded
from pipelines.engine.tasks.local import CoreEngine
from pipelines.flows.reading import read_flow
from pipelines.jobs.runs.backfill import Backfill
from pipelines.jobs.runs.readings import runner_of
from pipelines.operators.rows import NULL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from docs.diagrams.cases import Case, Span
    from pipelines.flows.model import Flow

FLOW_FILE = "flow.yaml"
HOLDING = frozenset({"merge", "union", "join", "window"})
"""Operators that hold rows back, or keep them."""
CARRIED = {"held": ("position",), "windows": ("age",)}
"""What tells two rows of a part of the carry apart, where the stream has no key."""
Row = dict[str, Any]
"""A row of a table; instants are ticks, None where there is none."""


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What a case came to."""

    case: Case
    flow: Flow
    landed: Mapping[str, list[Row]]
    """By source: what came in, in order of arrival."""
    streams: Mapping[str, list[Row]]
    held: Mapping[str, list[Row]]
    """By stream: the rows that it still holds at the last reading."""
    windows: Mapping[str, list[Row]]
    """By stream of windows: what it knows of those that have not left."""
    ledger: list[Row]

    @property
    def key(self) -> str:
        """Name the key column that every source has."""
        ((column,),) = {source.key for source in self.flow.sources.values()}
        return column

    @property
    def span(self) -> Span:
        """Give the first and the last reading."""
        return self.case.readings[0], self.case.readings[-1]

    def reason(self, stream: str, row: Row) -> str:
        """Say why a stream, or the landing before it, names a row of data in the ledger; empty where none does."""
        same = (line for line in self.ledger if line["stream"] in {stream, *self.flow.sources})
        found = (
            line
            for line in same
            if (line["landed_at"], line["landed_place"]) == (row["landed_at"], row["landed_place"])
        )
        return next((str(line["reason"]) for line in found), "")

    def rows_into(self, stream: str, port: int = 0) -> list[Row]:
        """Give the rows of what a stream reads at a port."""
        name = self.flow.streams[stream].inputs[port]
        return self.landed[name] if name in self.flow.sources else self.streams[name]


def identity(row: Row, column: str) -> tuple[object, ...]:
    """Tell a row from all others, before an operator and behind it.

    Args:
        row: of data, or a timer.
        column: says whose timer it is.
    """
    timer = row["kind"] == "timer"
    return ("timer", row[column], row["event_time"]) if timer else ("data", row["landed_at"], row["landed_place"])


def run(case: Case) -> Ran:
    """Run a case in a folder of its own, which is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        for name, text in case.files.items():
            (base / name).write_text(text, encoding="utf-8")
        (base / FLOW_FILE).write_text(case.flow, encoding="utf-8")
        flow = read_flow(base / FLOW_FILE)
        wanted = Backfill(flow=flow, root=base / "run", base=base, engine=CoreEngine())
        with open_driver(wanted.root, flow=flow.name) as driver:
            last = _land(case, wanted).last_id
            runner = runner_of(wanted, driver)
            while runner.last_sequence() < last:
                done = runner.last_sequence()
                runner.advance(done, done + 1)
        return _read(case, wanted)


def _land(case: Case, wanted: Backfill) -> Landing:
    """Close a sequence at each reading, with the blind spans that fall into it."""
    landing, feeds = Landing(wanted.landing), open_recorded(wanted.flow, wanted.base)
    for start, end in pairwise(case.readings):
        deaf = _within(case.blind, start, end)
        landing.land(wanted.flow, start, end, feeds, dict.fromkeys(wanted.flow.sources, deaf))
    return landing


def _within(spans: tuple[Span, ...], start: int, end: int) -> tuple[Span, ...]:
    """Cut spans at the bounds of [start, end); those outside are left out."""
    cut = [(max(first, start), min(last, end)) for first, last in spans]
    return tuple((first, last) for first, last in cut if first < last)


def _read(case: Case, wanted: Backfill) -> Ran:
    flow, root = wanted.flow, wanted.root
    return Ran(
        case=case,
        flow=flow,
        landed={name: _landed(wanted, name, len(case.readings) - 1) for name in flow.sources},
        streams={name: _rows(read_stream(root, name, key=flow.key_of(name))) for name in flow.tables()},
        held={
            name: _carried(wanted, name, "held") for name, stream in flow.streams.items() if stream.operator in HOLDING
        },
        windows={
            name: _carried(wanted, name, "windows")
            for name, stream in flow.streams.items()
            if stream.operator == "window"
        },
        ledger=_rows(read_ledger(root)),
    )


def _landed(wanted: Backfill, source: str, sequences: int) -> list[Row]:
    files = [sequence_folder(wanted.landing, number) / f"{source}.parquet" for number in range(1, sequences + 1)]
    rows = [row for file in files if file.exists() for row in _rows(pq.read_table(file))]
    came = [row | {"landed_at": row["arrival"], "landed_place": row["place"]} for row in rows]
    return sorted(came, key=lambda row: (row["arrival"], row["place"]))


def _carried(wanted: Backfill, stream: str, part: str) -> list[Row]:
    tip, (column,) = log_state(wanted.root).tip, CARRIED[part]
    rows = _rows(read_carry(wanted.root, stream, part, tip.commit if tip else 0, key=(column,)))
    return sorted(rows, key=lambda row: int(row[column]))


def _rows(table: pa.Table) -> list[Row]:
    """Give rows with their instants as ticks."""
    rows: list[Row] = table.to_pylist()
    for field in table.schema:
        if pa.types.is_timestamp(field.type):
            for row, tick in zip(rows, ticks(table[field.name]).tolist(), strict=True):
                row[field.name] = None if tick == NULL else tick
    return rows
