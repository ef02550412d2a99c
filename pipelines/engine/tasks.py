"""The one model of task, for every engine and stage: a bucket and a span in, files and their counts and hashes out.

A task opens the row groups of its bucket itself, runs the stage's chain of operators over them in windows, writes one
file a table and says what it wrote. It commits nothing: files of tasks that failed or were run twice are never added to
a table and are swept later. Nothing here knows whether Spark or this process called it.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pipelines.engine import carrying
from pipelines.engine.columns import stream_schema
from pipelines.engine.content import ContentHash
from pipelines.engine.inputs import OrderedInput, row_groups, windows
from pipelines.engine.link import Link, landed_as_stream, output_payload
from pipelines.engine.readers import Carry, taken_up
from pipelines.engine.writing import NO_ROWS, Layout, TableFile, Written, only_bucket
from pipelines.flows.model import DIVERTED, Flow
from pipelines.flows.plan import Plan, Stage, plan
from pipelines.operators.scan import Blind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipelines.flows.model import Stream

Groups = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Input:
    """What a task reads of one source or stream.

    Each reader is a chain of files, with the row groups of each, whose rows are in order from the first file to the
    last; several readers are merged.
    """

    name: str
    readers: tuple[tuple[tuple[str, Groups], ...], ...]
    mixed: bool = False
    """Row groups are laid out for another key: rows of other buckets are among them, and are left out."""


@dataclass(frozen=True, kw_only=True)
class CarryInput:
    """What a task takes up of one part of one stream's carry: files that may hold other buckets' keys too."""

    stream: str
    part: str
    carry: Carry


@dataclass(frozen=True, kw_only=True)
class Task:
    """Everything a task needs, picklable and small."""

    root: str
    definition: str
    """The flow, as `Flow.definition()` has it, in JSON."""
    schemas: Mapping[str, pa.Schema]
    """Payload of each source, as landed."""
    stage: int
    bucket: int
    buckets: int
    commit: int
    start: int
    close: int
    """The closing reading of the span, in ticks."""
    inputs: tuple[Input, ...]
    carry: tuple[CarryInput, ...] = ()
    layouts: Mapping[str, Layout] = field(default_factory=dict)
    blind: tuple[tuple[int, int], ...] = ()
    final: int | None = None


@dataclass(frozen=True, kw_only=True)
class Done:
    """What a task wrote: names, counts and hashes, no row."""

    stage: int
    bucket: int
    files: tuple[Written, ...]
    counts: Mapping[str, Mapping[str, int]]
    """By stream: rows by kind, `in`, `passed` (of the main stream, those that came in), `held`; by `ledger`: rows by "stream reason action"."""
    hashes: Mapping[str, ContentHash]
    """By stream and `ledger`."""
    carry: ContentHash
    seconds: float


@lru_cache(maxsize=8)
def flow_of(definition: str) -> tuple[Flow, Plan]:
    """Give the flow and its stages from the text in a task."""
    flow = Flow.from_definition(json.loads(definition))
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
        known |= {side: known[stream.name] for side in stream.sides}
    return known


def source_behind(flow: Flow, name: str) -> str | None:
    """Give the one source that a stream's rows come from; None where there are several."""
    name = name.removesuffix(DIVERTED)
    if name in flow.sources:
        return name
    behind = {source_behind(flow, source) for source in flow.streams[name].inputs}
    return behind.pop() if len(behind) == 1 else None


def numbering(flow: Flow, name: str) -> tuple[str, ...]:
    """Give the key by which a stream is numbered; sources are numbered stream-wide."""
    name = name.removesuffix(DIVERTED)
    return () if name in flow.sources else flow.streams[name].by


def run_task(task: Task) -> Done:
    """Run one task to its end.

    Returns:
        What it wrote; nothing of it is visible until the driver commits it.

    Raises:
        MergeFull: a merge holds more than it may.
        OSError: a file cannot be read or written.
    """
    begun = time.perf_counter()
    flow, stages = flow_of(task.definition)
    work = _Work(task, flow, stages.stages[task.stage])
    work.run()
    return work.done(time.perf_counter() - begun)


class _Work:
    """A task while it runs."""

    def __init__(self, task: Task, flow: Flow, stage: Stage) -> None:
        self.task, self.flow, self.stage = task, flow, stage
        self.known = payloads(flow, task.schemas)
        self.counts: dict[str, Counter[str]] = {"ledger": Counter()}
        self.links = [self._link(name) for name in stage.streams]
        self.inputs = {given.name: self._input(given) for given in task.inputs}
        self.files = {name: self._file(f"streams/{name}", name) for name in (*stage.streams, *stage.sides)}
        self.ledger = self._file("ledger")
        self.carry: list[TableFile] = []

    def run(self) -> None:
        for reading in windows(list(self.inputs.values()), self.task.start, self.task.close):
            last = reading == self.task.close
            tables = {name: source.take(reading) for name, source in self.inputs.items()}
            for link in self.links:
                self._step(link, tables, reading, self.task.final if last else None)
        for link in self.links:
            self.counts[link.stream.name]["held"] = link.held_count
            for part, table in link.carry().items():
                file = self._file(f"carry/{link.stream.name}.{part}", leave_out=carrying.NOT_HASHED)
                file.write(table)
                self.carry.append(file)

    def _step(self, link: Link, tables: dict[str, pa.Table], reading: int, final: int | None) -> None:
        name = link.stream.name
        made = link.feed([tables[given] for given in link.stream.inputs], reading, final)
        self.counts[name].update({"in": made.rows_in, "passed": made.passed})
        outputs = [(name, made.main), *((side, made.side) for side in link.stream.sides)]
        for output, rows in outputs:
            tables[output] = rows
            self.files[output].write(rows)
            self._count(output, rows)
        self.ledger.write(made.ledger)
        self.counts["ledger"].update(ledger_counts(made.ledger))

    def _count(self, name: str, rows: pa.Table) -> None:
        counted = rows["kind"].value_counts().to_pylist()
        self.counts.setdefault(name, Counter()).update({each["values"]: each["counts"] for each in counted})

    def done(self, seconds: float) -> Done:
        files = [*self.files.values(), self.ledger, *self.carry]
        written = tuple(made for file in files if (made := file.close()) is not None)
        hashes = {name: file.content for name, file in self.files.items()} | {"ledger": self.ledger.content}
        carry = sum((file.content for file in self.carry), NO_ROWS)
        return Done(
            stage=self.task.stage,
            bucket=self.task.bucket,
            files=written,
            counts={name: dict(count) for name, count in self.counts.items()},
            hashes=hashes,
            carry=carry,
            seconds=seconds,
        )

    def _file(self, table: str, stream: str = "", leave_out: frozenset[str] | None = None) -> TableFile:
        stem = file_stem(self.task)
        layout = self.task.layouts.get(stream, Layout())
        chosen = {} if leave_out is None else {"leave_out": leave_out}
        return TableFile(Path(self.task.root), table, stem, layout, **chosen)

    def _link(self, name: str) -> Link:
        stream = self.flow.streams[name]
        spans = np.array(self.task.blind, dtype=np.int64).reshape(-1, 2)
        self.counts[name] = Counter()
        return Link(
            stream,
            [self.known[given] for given in stream.inputs],
            source_behind(self.flow, name),
            self.task.commit,
            self._carry(name),
            Blind(spans[:, 0].copy(), spans[:, 1].copy()),
        )

    def _carry(self, name: str) -> dict[str, pa.Table]:
        tables = {}
        for given in self.task.carry:
            if given.stream == name:
                key = self.flow.streams[name].by
                table = taken_up(given.carry, carry_key(self.flow.streams[name], given.part))
                if table.num_rows:
                    tables[given.part] = only_bucket(table, key, self.task.bucket, self.task.buckets)
        return tables

    def _input(self, given: Input) -> OrderedInput:
        payload, task = self.known[given.name], self.task
        landed = given.name in self.flow.sources

        def blocks(files: tuple[tuple[str, Groups], ...]) -> Iterator[pa.Table]:
            for block in chain.from_iterable(row_groups(path, groups) for path, groups in files):
                rows = landed_as_stream(block, payload) if landed else block.cast(stream_schema(payload))
                yield only_bucket(rows, self.stage.key, task.bucket, task.buckets) if given.mixed else rows

        readers = [blocks(files) for files in given.readers]
        return OrderedInput(readers, stream_schema(payload), numbering(self.flow, given.name))


def file_stem(task: Task) -> str:
    """Give the name of a task's files, up to the random part that tells two attempts apart."""
    return f"c{task.commit:08d}-{task.stage}-{task.bucket:03d}of{task.buckets:03d}"


def carry_key(stream: Stream, part: str) -> tuple[str, ...]:
    """Give the columns that tell two rows of one carry part apart."""
    return (*stream.by, *{"ports": ("port",), "open": ("event",), "held": ("position",)}.get(part, ()))


def ledger_counts(ledger: pa.Table) -> Counter[str]:
    """Count ledger rows by "stream reason action"."""
    names = ("stream", "reason", "action")
    return Counter(" ".join(words) for words in zip(*(ledger[name].to_pylist() for name in names), strict=True))
