"""The one model of task, for every engine and stage: a bucket and a span in, files and their counts and hashes out.

A task opens the row groups of its bucket itself, runs the stage's chain of operators over them in windows, writes one
file a table and says what it wrote. It commits nothing: files of tasks that failed or were run twice are never added to
a table and are swept later. Nothing here knows whether Spark or this process called it.
"""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import NOT_HASHED, kinds, stream_schema, ticks, with_kinds_encoded
from pipelines.engine.columnar.content import ContentHash, content_hash
from pipelines.engine.commits.history import START_OF_RUN, CarryLine
from pipelines.engine.commits.readers import Carry, taken_up
from pipelines.engine.files.ordered import OrderedInput, row_groups, windows
from pipelines.engine.files.parquet import naming_the_damaged
from pipelines.engine.files.stored import path_of
from pipelines.engine.files.writing import NO_ROWS, Layout, TableFile, Written, only_bucket
from pipelines.engine.landing.references import ReferencedRows
from pipelines.engine.sources.landed_schema import read_as
from pipelines.engine.tasks import carry as carrying
from pipelines.engine.tasks.by_time import met_by_time, numbering
from pipelines.engine.tasks.carry import Writes
from pipelines.engine.tasks.link import landed_as_stream
from pipelines.engine.tasks.link_catalogue import aside_payload, link_of, output_payload
from pipelines.engine.tasks.links.advance_time import AdvanceTimeLink
from pipelines.engine.tasks.readings import MOST_TIMERS, burden, common, spaced
from pipelines.engine.tasks.turns import TurnsOfFlow
from pipelines.flows.definition import flow_from_json
from pipelines.flows.plan import Plan, Stage, plan, stage_with
from pipelines.operators.registry import parts_of
from pipelines.operators.rows import KIND_NAMES, NULL, FullError, Kind
from pipelines.operators.scan import Blind
from pipelines.operators.specs import SPECS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from pipelines.engine.landing.sequence import Chain, Piece
    from pipelines.engine.tasks.link import Link
    from pipelines.flows.model import Flow, Stream

NOTHING_CARRIED = CarryLine(START_OF_RUN, ())
_WARM: dict[tuple[str, str, tuple[str, ...], int, int], tuple[int, list[Link]]] = {}
"""What the tasks of a stream left in this process: by session, root, streams and bucket the commit and operators."""


@dataclass(frozen=True, kw_only=True)
class Input:
    """What a task reads of one source or stream.

    Each reader is a chain of files, with the row groups of each, or of rows that landed by reference, whose rows are in
    order from the first to the last; several readers are merged.
    """

    name: str
    readers: tuple[Chain, ...]
    mixed: bool = False
    """Row groups are laid out for another key: rows of other buckets are among them, and are left out."""
    crosses: bool = False
    """Another leg published it: rows from before the span may be among them, and are left out."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """Everything a task needs, picklable and small."""

    root: str
    definition: str
    """The flow, as `flow_to_json` gives it."""
    schemas: Mapping[str, pa.Schema]
    """Payload of each source, as landed."""
    stage: int
    streams: tuple[str, ...]
    """Those of the stage that it makes: all, or a part that none of the others feeds."""
    bucket: int
    buckets: int
    commit: int
    line: CarryLine
    """Where the carry to begin from stands."""
    start: int
    close: int
    """The closing reading of the span, in ticks."""
    inputs: tuple[Input, ...]
    carry: Mapping[tuple[str, str], Carry] = field(default_factory=dict)
    """By stream and part, the files of the carry."""
    layouts: Mapping[str, Layout] = field(default_factory=dict)
    blind: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    """By source: spans in which nobody listened."""
    final: int | None = None
    writes: Writes = Writes.BASE
    session: str = ""
    """Names the process of a stream, whose tasks keep their operators between commits; empty: nothing is kept."""
    kept: int = 0
    """The commit whose operators, where a task of the session kept them, hold the carry to begin from."""
    cuts: tuple[tuple[int, int], ...] = ()
    """Commits that are worked on in one go, `commit` first, with the closing reading of each, `close` last; empty where
    `commit` is alone."""

    @property
    def parts(self) -> tuple[tuple[int, int], ...]:
        """Give each commit that is worked on, with its closing reading."""
        return self.cuts or ((self.commit, self.close),)


@dataclass(frozen=True)
class CommitShare:
    """What one commit has of the work of a task, or of all tasks."""

    counts: dict[str, Counter[str]] = field(default_factory=partial(defaultdict, Counter))
    """By stream: rows by kind, `in`, `passed` (of the main stream, those that came in), `held`.
    By `ledger`: rows by "stream reason action"."""
    hashes: dict[str, ContentHash] = field(default_factory=dict)
    """By stream and `ledger`."""
    carry: ContentHash = NO_ROWS
    """Of the whole carry where a base was written; else what the commit added to it, less what it took away."""

    def __add__(self, other: CommitShare) -> CommitShare:
        """Put two together."""
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        hashes: dict[str, ContentHash] = {}
        for each in (self, other):
            for name, count in each.counts.items():
                counts[name].update(count)
            for name, content in each.hashes.items():
                hashes[name] = hashes.get(name, NO_ROWS) + content
        return CommitShare(counts, hashes, self.carry + other.carry)


@dataclass(frozen=True, kw_only=True)
class Done:
    """What a task wrote: names, counts and hashes, no row."""

    stage: int
    bucket: int
    files: tuple[Written, ...]
    shares: Mapping[int, CommitShare]
    """By commit."""
    next_due: int
    """First instant at which silence alone would make something leave."""
    newest: Mapping[str, Mapping[str, int]]
    """By stream: the newest `event` and the newest `cti`, in ticks, where there is one."""
    due: npt.NDArray[np.int64]
    """When each timer that a heartbeat or a metronome sent was due; of an epoch only."""
    seconds: float


@lru_cache(maxsize=8)
def flow_of(definition: str) -> tuple[Flow, Plan]:
    """Give the flow and its stages from the text in a task."""
    flow = flow_from_json(json.loads(definition))
    return flow, plan(flow)


def payloads(flow: Flow, schemas: Mapping[str, pa.Schema]) -> dict[str, pa.Schema]:
    """Give the payload columns of each source, stream and side stream of a flow.

    Args:
        flow: the model.
        schemas: payload of each source, as landed.
    """
    known = dict(schemas)
    for stream in flow.streams.values():
        known[stream.name] = output_payload(stream, [known[name] for name in stream.inputs])
        known |= {side: aside_payload(stream, known[stream.name]) for side in stream.sides}
    return known


@lru_cache(maxsize=8)
def _payloads_of(definition: str, schemas: tuple[tuple[str, pa.Schema], ...]) -> Mapping[str, pa.Schema]:
    """Give what `payloads` does, once for the tasks of a flow in a process."""
    return payloads(flow_of(definition)[0], dict(schemas))


def source_behind(flow: Flow, name: str) -> str | None:
    """Give the one source that a stream's rows come from; None where there are several, or none."""
    behind = flow.sources_of(name)
    return behind[0] if len(behind) == 1 else None


def run_task(task: Task) -> Done:
    """Run one task to its end.

    Returns:
        What it wrote; nothing of it is visible until the driver commits it.

    Raises:
        FullError: an operator holds more than it may.
        OSError: a file cannot be read or written.
    """
    begun = time.perf_counter()
    flow, stages = flow_of(task.definition)
    stage = stages.stages[task.stage]
    work = _Work(task, flow, stage if task.streams == stage.streams else stage_with(flow, task.stage, task.streams))
    work.run()
    return work.done(time.perf_counter() - begun)


class _Work:
    """A task while it runs."""

    def __init__(self, task: Task, flow: Flow, stage: Stage) -> None:
        self.task, self.flow, self.stage = task, flow, stage
        _, stages = flow_of(task.definition)
        self.read_later = frozenset(name for later in stages.stages[stage.index + 1 :] for name in later.reads)
        self.known = _payloads_of(task.definition, tuple(task.schemas.items()))
        self.turned = TurnsOfFlow(flow, self.known)
        self.shares: dict[int, CommitShare] = {}
        self.newest: dict[str, dict[str, int]] = {}
        self.due: list[npt.NDArray[np.int64]] = []
        self.links = self._warm() or [self._link(name) for name in stage.streams]
        self.inputs = {given.name: self._input(given) for given in task.inputs}
        self.files = {name: self._file(f"streams/{name}", name) for name in (*stage.streams, *stage.sides)}
        self.ledger = self._file("ledger")
        self.carry: dict[str, TableFile] = {}

    def run(self) -> None:
        start = self.task.start
        for number, close in self.task.parts:
            if number != self.task.commit:
                self._go_on(number, start)
            self._run_part(number, start, close)
            start = close
        if self.task.session:
            _WARM[self._place()] = (self.task.commit, self.links)

    def _run_part(self, number: int, start: int, close: int) -> None:
        """Run the span of one commit, and say what it has of the task."""
        self.counts: dict[str, Counter[str]] = {"ledger": Counter(), **{name: Counter() for name in self.stage.streams}}
        self.carry_content = NO_ROWS
        for reading in self._readings(start, close):
            last = reading == self.task.close
            tables = {name: source.take(reading) for name, source in self.inputs.items()}
            for link in self.links:
                self._step(link, tables, reading, self.task.final if last else None)
        for link in self.links:
            self.counts[link.stream.name]["held"] = link.held_count
            self._write_carry(link)
        hashes = {name: file.cut() for name, file in self.files.items()} | {"ledger": self.ledger.cut()}
        self.shares[number] = CommitShare(self.counts, hashes, self.carry_content)

    def _go_on(self, number: int, start: int) -> None:
        """Begin the next commit with the operators as they stand, which is what its parent's carry says."""
        for link in self.links:
            link.renew(number, self._blind(link.stream.name))
            self._begin(link, start)

    def _readings(self, start: int, close: int) -> Iterator[int]:
        """Cut a span, so that no window holds more than a few blocks of rows or too many timers."""
        inputs, reading = list(self.inputs.values()), start
        for until in windows(inputs, start, close):
            while True:
                reading = spaced(reading, until, MOST_TIMERS, burden(self.links, inputs, self.stage.key, reading))
                yield reading
                if reading == until:
                    break

    def _write_carry(self, link: Link) -> None:
        tables: dict[str, list[pa.Table]] = defaultdict(list)
        if self.task.writes is not Writes.BASE:
            delta = link.delta()
            self.carry_content += delta.content
            for part, table in delta.tables.items():
                tables[part].append(table)
        if self.task.writes is not Writes.DELTA:
            for part, table in link.base().items():
                tables[part].append(table)
                if self.task.writes is Writes.BASE:
                    self.carry_content += content_hash(table, leave_out=carrying.NOT_HASHED)
        for part, written in tables.items():
            name = f"carry/{link.stream.name}.{part}"
            if name not in self.carry:
                self.carry[name] = self._file(name, leave_out=None)
            for table in written:
                self.carry[name].write(table)

    def _place(self) -> tuple[str, str, tuple[str, ...], int, int]:
        task = self.task
        return (task.session, task.root, task.streams, task.bucket, task.buckets)

    def _warm(self) -> list[Link]:
        """Give the operators as the parent commit's task left them in this process, if it ran here."""
        if not self.task.session:
            return []
        for place in list(_WARM):
            if place[1] == self.task.root and place[0] != self.task.session:
                del _WARM[place]
        commit, links = _WARM.pop(self._place(), (0, []))
        if commit != self.task.kept or not links:
            return []
        for link in links:
            link.renew(self.task.commit, self._blind(link.stream.name))
            link.know(self.turned)
        return links

    def _step(self, link: Link, tables: dict[str, pa.Table], reading: int, final: int | None) -> None:
        name = link.stream.name
        try:
            inputs = [
                self._met(link.stream, given, self.turned.handed(link.stream, given, tables[given]))
                for given in link.stream.inputs
            ]
            made = link.feed(inputs, reading, final)
        except FullError as full:
            full.stream = name
            raise
        self.counts[name].update({"in": made.rows_in, "passed": made.passed})
        if made.broken is not None:
            self.counts[name].update({"broken": made.broken})
        if SPECS[link.stream.operator].has_timers and self.task.writes is not Writes.BASE:
            self.due.append(ticks(made.main["due_at"].filter(pc.equal(made.main["kind"], "timer"))))
        outputs = [(name, made.main), *((side, made.side) for side in link.stream.sides)]
        for output, rows in outputs:
            tables[output] = rows
            encoded = with_kinds_encoded(rows)
            self.files[output].write(self._written(output, encoded))
            self._count(output, encoded)
        self.ledger.write(made.ledger)
        self.counts["ledger"].update(ledger_counts(made.ledger))

    def _written(self, name: str, rows: pa.Table) -> pa.Table:
        """Give rows as a file has them: with their turns only where a later stage reads them."""
        beside = [field.name for field in self.turned.fields(name)]
        return rows if not beside or name in self.read_later else rows.drop_columns(beside)

    def _met(self, reader: Stream, given: str, rows: pa.Table) -> pa.Table:
        """Give rows of an input as a stream reads them."""
        by_time = met_by_time(self.flow, reader, given)
        return rows if by_time is None else by_time.laid(rows)

    def _count(self, name: str, rows: pa.Table) -> None:
        coming = kinds(rows["kind"])
        counted = np.bincount(coming, minlength=len(KIND_NAMES)).tolist()
        there = {kind: count for kind, count in zip(KIND_NAMES, counted, strict=True) if count}
        self.counts.setdefault(name, Counter()).update(there)
        if rows.num_rows and self.task.writes is not Writes.BASE:
            promised, times = coming == Kind.CTI, ticks(rows["event_time"])
            for what, chosen in (("cti", promised), ("event", ~promised)):
                newest = times[chosen].max(initial=NULL)
                known = self.newest.setdefault(name, {})
                if newest != NULL:
                    known[what] = max(int(newest), known.get(what, NULL))

    def done(self, seconds: float) -> Done:
        files = [*self.files.values(), self.ledger, *self.carry.values()]
        written = tuple(made for file in files if (made := file.close()) is not None)
        return Done(
            stage=self.task.stage,
            bucket=self.task.bucket,
            files=written,
            shares=self.shares,
            next_due=min(link.operator.next_due() for link in self.links),
            newest=self.newest,
            due=np.concatenate([np.zeros(0, dtype=np.int64), *self.due]),
            seconds=seconds,
        )

    def _file(self, table: str, stream: str = "", leave_out: frozenset[str] | None = NOT_HASHED) -> TableFile:
        layout = self.task.layouts.get(stream, Layout())
        if leave_out is not None and stream:
            leave_out = leave_out.union(field.name for field in self.turned.fields(stream))
        return TableFile(path_of(self.task.root), table, file_stem(self.task), layout, leave_out)

    def _link(self, name: str) -> Link:
        stream = self.flow.streams[name]
        carry = self._carry(name)
        link = link_of(
            stream,
            [self.known[given] for given in stream.inputs],
            source_behind(self.flow, name),
            self.task.commit,
            carry,
            self._blind(name),
        )
        link.know(self.turned)
        if not stream.inputs and not carry:
            link.hear(self.task.start)
        self._begin(link, self.task.start)
        if isinstance(link, AdvanceTimeLink) and stream.by and not self.flow.key_of(stream.inputs[1]):
            sender = self.flow.streams[stream.inputs[1]].operator
            link.bind(self._carry(stream.inputs[1]).get(SPECS[sender].promised_in))
        return link

    def _begin(self, link: Link, start: int) -> None:
        """Tell an operator where the span of its commit begins, where it asks for that."""
        if link.stream.operator == "merge":
            link.operator.since = start

    def _blind(self, name: str) -> Blind:
        """Give the spans in which one of the sources behind a stream was not listened to; behind none, all of them."""
        if self.flow.streams[name].inputs:
            spans = sorted({span for source in self.flow.sources_of(name) for span in self.task.blind.get(source, ())})
        else:
            spans = common([self.task.blind.get(source, ()) for source in self.flow.sources])
        laid = np.array(spans, dtype=np.int64).reshape(-1, 2)
        return Blind(laid[:, 0].copy(), laid[:, 1].copy())

    def _carry(self, name: str) -> dict[str, pa.Table]:
        task, stream = self.task, self.flow.streams[name]
        tables = {}
        for part in carry_parts(self.flow)[name] if task.line != NOTHING_CARRIED else ():
            table = taken_up(task.carry[name, part], carry_key(stream, part))
            if table.num_rows:
                tables[part] = only_bucket(table, stream.by, task.bucket, task.buckets)
        return tables

    def _input(self, given: Input) -> OrderedInput:
        payload, task = self.known[given.name], self.task
        landed = given.name in self.flow.sources
        schema = pa.schema([*stream_schema(payload), *self.turned.fields(given.name)])

        def blocks(pieces: Chain) -> Iterator[pa.Table]:
            for block in chain.from_iterable(map(opened, pieces)):
                rows = landed_as_stream(read_as(block, payload), payload) if landed else block.cast(schema)
                rows = _since(rows, task.start) if given.crosses else rows
                yield only_bucket(rows, self.stage.key, task.bucket, task.buckets) if given.mixed else rows

        readers = [blocks(files) for files in given.readers]
        return OrderedInput(readers, schema, numbering(self.flow, given.name))


def _since(rows: pa.Table, start: int) -> pa.Table:
    """Leave out the rows, which are in order, that an earlier span has."""
    return rows.slice(int(np.searchsorted(ticks(rows["arrival"]), start)))


def opened(piece: Piece) -> Iterator[pa.Table]:
    """Read the rows of a piece of a chain, in blocks.

    Raises:
        FileDamagedError: its file is not as it was written.
    """
    if isinstance(piece, ReferencedRows):
        yield from piece.blocks()
        return
    with naming_the_damaged([piece[0]]):
        yield from row_groups(*piece)


def file_stem(task: Task) -> str:
    """Give the name of a task's files, up to the random part that tells two attempts apart."""
    last = f"-{task.cuts[-1][0]:08d}" if len(task.cuts) > 1 else ""
    return f"c{task.commit:08d}{last}-{task.stage}-{task.bucket:03d}of{task.buckets:03d}"


def carry_parts(flow: Flow) -> dict[str, tuple[str, ...]]:
    """Name the carry tables that each stream of a flow may have."""
    return {
        name: (
            *(part.name for part in parts_of(stream.operator, stream.policy)),
            *SPECS[stream.operator].carry_besides,
            "held",
        )
        for name, stream in flow.streams.items()
    }


def carry_key(stream: Stream, part: str) -> tuple[str, ...]:
    """Give the columns that tell two rows of one carry part apart."""
    beside = {
        "ports": ("port",),
        "promises": ("port",),
        "open": ("event",),
        "held": ("position",),
        "windows": ("age",),
        "standing": ("age",),
    }
    return (*stream.by, *beside.get(part, ()))


def ledger_counts(ledger: pa.Table) -> Counter[str]:
    """Count ledger rows by "stream reason action"."""
    counted = (
        ledger.select(["stream", "reason", "action"])
        .group_by(["stream", "reason", "action"])
        .aggregate([([], "count_all")])
    )
    return Counter({" ".join(words): count for *words, count in zip(*counted.to_pydict().values(), strict=True)})
