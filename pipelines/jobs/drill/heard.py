"""What the drill `live` holds a run against: what was sent, when, and what a backfill of the recording gives."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.engine.columnar.columns import NOT_HASHED
from pipelines.engine.columnar.content import content_hash
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.commits.readers import log_state, read_ledger, read_stream
from pipelines.engine.landing.manifest import read_sequence
from pipelines.engine.live.epochs import EpochRunner
from pipelines.engine.sources.socket.spool_files import read_segments
from pipelines.engine.tasks.local import CoreEngine
from pipelines.flows.reading import read_flow
from pipelines.jobs.drill.judging import lost
from pipelines.jobs.drill.shapes import DAY, DELAY
from pipelines.jobs.proofs.parity import table_hashes
from pipelines.jobs.runs.backfill import Backfill, run_backfill
from pipelines.operators.rows import TICKS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pipelines.engine.columnar.content import ContentHash
    from pipelines.jobs.drill.loops import Here
    from pipelines.jobs.drill.shapes import FeedShape, Row

MINUTE = 60 * TICKS_PER_SECOND
FEW = 5
"""Rows that are named of those that are wrong."""
TORN = frozenset({"disconnected", "unfinished_line"})
"""What the ledger of a broken connection says."""
PLACES = frozenset({"place", "landed_place"})
"""A line of the ledger takes a place, which the recording does not have."""


@dataclass(frozen=True)
class Heard:
    """What is known of what was sent to a run."""

    shape: FeedShape
    sent: Sequence[Row]
    """All that was sent, in order, each with its instant."""
    needed: frozenset[int]
    """Numbers of the rows that must be there: those that are known to have come."""
    slow: frozenset[int]
    """Numbers of the rows that took a while to be sent."""
    breaks: int
    """Times that a connection broke, at most."""


def judged(here: Here, heard: Heard, told: Mapping[int, str]) -> list[str]:
    """Say what is wrong with a run that has come to its end.

    Args:
        here: the run.
        heard: what was sent.
        told: the content of each commit that was told as published, by its number.
    """
    return [*lost(here, told), *Judge(here, heard).wrong()]


class Judge:
    """Holds the tables of one run against what was sent."""

    def __init__(self, here: Here, heard: Heard) -> None:
        self.here, self.heard, self.root = here, heard, here.root
        self.number = heard.shape.of("number").name
        self.rows = self._data("beating")
        self.numbers = self.rows[self.number].to_pylist()
        self.arrivals = self.rows["arrival"].cast("int64").to_pylist()

    def _data(self, stream: str) -> pa.Table:
        rows = read_stream(self.root, stream)
        order = [("arrival", "ascending"), ("landed_place", "ascending")]
        return rows.filter(pc.equal(rows["kind"], "data")).sort_by(order)

    def wrong(self) -> Iterator[str]:
        """Say each thing that is wrong."""
        yield from self._once()
        if len(set(self.numbers)) == len(self.numbers) and set(self.numbers) <= set(range(len(self.heard.sent))):
            yield from self._values()
            yield from self._times()
            yield from self._diverted()
        yield from self._parity()

    def _once(self) -> Iterator[str]:
        there, sent = set(self.numbers), len(self.heard.sent)
        if len(there) < len(self.numbers):
            yield f"{len(self.numbers) - len(there)} rows are there twice"
        if missing := sorted(self.heard.needed - there):
            yield f"{len(missing)} of {sent} rows are not there: {missing[:FEW]}"
        if strange := sorted(there - set(range(sent))):
            yield f"{len(strange)} rows were never sent: {strange[:FEW]}"
        if self.heard.shape.kind == "socket":
            gone = [number for number in range(max(there, default=0)) if number not in there]
            holes = sum(number - 1 in there or number == 0 for number in gone)
            if holes > self.heard.breaks:
                yield f"{holes} holes in what came by {self.heard.breaks} broken connections"
        reasons = set(read_ledger(self.root)["reason"].to_pylist())
        landed = reasons - (TORN if self.heard.shape.kind == "socket" else frozenset()) - {"late", "max_catch_up"}
        if landed:
            yield f"the ledger has lines that nothing gave a reason for: {sorted(landed)}"

    def _values(self) -> Iterator[str]:
        """Hold each value against the one that was sent."""
        for column in self.heard.shape.columns:
            found = self.rows[column.name]
            if column.role == "time":
                found = found.cast("int64")
            wanted = [self.heard.sent[number][column.name] for number in self.numbers]
            differ = [n for n, one, other in zip(self.numbers, found.to_pylist(), wanted, strict=True) if one != other]
            if differ:
                yield f"{len(differ)} rows have another `{column.name}` than was sent: {differ[:FEW]}"

    def _times(self) -> Iterator[str]:
        sent = self.heard.shape.of("sent").name
        early = [
            self.heard.sent[number][sent] - arrival
            for number, arrival in zip(self.numbers, self.arrivals, strict=True)
            if arrival < self.heard.sent[number][sent]
        ]
        if early:
            yield f"{len(early)} rows arrived before they were sent, by up to {max(early) / TICKS_PER_SECOND:.3f} s"

    def _diverted(self) -> Iterator[str]:
        """See that each row left once, and that none was set aside that was on time."""
        aside, passed = (self._data(name)[self.number].to_pylist() for name in ("punctual.diverted", "punctual"))
        if len(set(aside) | set(passed)) < len(aside) + len(passed):
            yield "rows left twice, or were set aside and left"
        if self.heard.shape.chain == "alone" and len(aside) + len(passed) < len(self.numbers):
            yield f"{len(self.numbers) - len(aside) - len(passed)} rows neither left nor were set aside"
        newest = self._newest_before()
        time = self.heard.shape.of("time").name
        punctual = [n for n in aside if n not in self.heard.slow]
        wrong = [n for n in punctual if self.heard.sent[n][time] >= newest[n] - DELAY * TICKS_PER_SECOND]
        if wrong:
            yield f"{len(wrong)} rows were set aside that were on time: {wrong[:FEW]}"

    def _newest_before(self) -> dict[int, int]:
        """Give for each row the newest event time of those that were sent, or had arrived, before it."""
        time = self.heard.shape.of("time").name
        by_arrival: dict[int, int] = {}
        for number, arrival in zip(self.numbers, self.arrivals, strict=True):
            by_arrival[arrival] = max(by_arrival.get(arrival, 0), self.heard.sent[number][time])
        arrived = dict(zip(by_arrival, accumulate([0, *by_arrival.values()], max), strict=False))
        there = sorted(zip(self.numbers, self.arrivals, strict=True))
        sent = accumulate([0, *(self.heard.sent[number][time] for number, _ in there)], max)
        return {number: max(newest, arrived[at]) for (number, at), newest in zip(there, sent, strict=False)}

    def _parity(self) -> Iterator[str]:
        """Play what landed again in one go, and hold the tables, the ledger and the carry against the run's."""
        published = log_state(self.root).published
        if not published:
            return
        start, end = published[0].span.start, published[-1].span.end
        flow, again = self.here.wanted().flow, self.root.with_name("again")
        again.mkdir()
        (again / "landed").symlink_to(landed_path(self.root), target_is_directory=True)
        parts = tuple(read_sequence(landed_path(again), n) for row in published for n in row.sequences)
        with open_driver(again, flow=flow.name) as driver:
            core = CoreEngine()
            EpochRunner(driver=driver, flow=flow, landing=landed_path(again), engine=lambda _: core).play(parts)
        found, wanted = (table_hashes(root, flow, start, end) for root in (again, self.root))
        yield from (f"{name} differs when it is played again" for name in wanted if found[name] != wanted[name])
        if self.heard.shape.slack == DAY:
            yield from self._backfill(start, end)

    def _backfill(self, start: int, end: int) -> Iterator[str]:
        """Backfill the recording as a feed of its own, and hold the rows of the streams against the run's."""
        base = self.root.with_name("recorded")
        base.mkdir()
        names = [column.name for column in self.heard.shape.columns]
        seen = self.rows.select([*names, "arrival"]).rename_columns([*names, "seen"])
        pq.write_table(seen, base / "recorded.parquet")
        (base / "flow.yaml").write_text(self.heard.shape.recorded())
        flow = read_flow(base / "flow.yaml", {})
        spans = [(at, at + MINUTE) for at in range(start // MINUTE * MINUTE, end, MINUTE)]
        wanted = Backfill(flow=flow, root=base / "run", base=base, engine=CoreEngine())
        run_backfill(wanted, spans)
        for name in flow.tables():
            if _content(base / "run", name) != _content(self.root, name):
                yield f"{name} differs in a backfill of the recording"


def _content(root: Path, name: str) -> ContentHash:
    rows = read_stream(root, name)
    extra = {"seen"} & set(rows.column_names)
    return content_hash(rows.drop_columns([*extra]), leave_out=NOT_HASHED | PLACES)


def spooled(root: Path, shape: FeedShape) -> set[int]:
    """Give the numbers of whole lines that the spool of a run holds."""
    folder = root / "spool" / "rows"
    if not folder.is_dir():
        return set()
    found: set[int] = set()
    for segment in read_segments(folder)[0]:
        data = b"".join(append.data for append in segment.appends(folder))
        # The first line of a segment may have begun in another one.
        found |= {number for line in data.split(b"\n")[1:-1] if (number := _number(line, shape)) is not None}
    return found


def _number(line: bytes, shape: FeedShape) -> int | None:
    """Give the number in a line; None where it is no whole one."""
    try:
        fields: dict[str, Any] | list[str] = (
            json.loads(line) if shape.format == "json" else next(csv.reader([line.decode()]))
        )
    except (ValueError, StopIteration):
        return None
    if isinstance(fields, dict):
        return int(fields[shape.of("number").name])
    return int(fields[list(shape.types).index(shape.of("number").name)]) if len(fields) == len(shape.types) else None
