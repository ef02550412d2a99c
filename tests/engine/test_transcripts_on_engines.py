"""Every transcript again, as a key of a flow whose tasks an engine runs: files in, files out, on core and on Spark.

Documents of one policy share a flow. Rows are laid down as a landing lays them, which by itself lands no timers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.engine import inputs
from pipelines.engine.columns import kind_names, longs, ticks, times
from pipelines.engine.core import CoreEngine
from pipelines.engine.history import LogState
from pipelines.engine.stages import Outcome, Work, _tasks
from pipelines.engine.stamping import bucketed, landed_row_schema
from pipelines.engine.tasks import flow_of
from pipelines.flows.model import FeedSpec, Flow, Ports, Source, Stream
from pipelines.operators.rows import KIND_NAMES, NULL, Kind, Reason
from tests.transcripts_model import IMPORTED, LEDGER, MAIN, SIDE, Left, Transcript, transcripts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import pytest

    from pipelines.engine.stages import Engine
    from pipelines.engine.tasks import Done, Task
    from tests.conftest import LentSpark

    Rows = list[dict[str, Any]]
    Told = dict[str, tuple[dict[tuple[str, str], list[Left]], list[str]]]
    """By document, what left of each stream and key, and what is held."""

KEY = ("document", "key")
PAYLOAD = pa.schema([(name, pa.string()) for name in (*KEY, "port", "id", "event")])
STEERING = (Kind.READING, Kind.FINAL)
SOURCE = Source(name="rows", feed=FeedSpec(kind="parquet"), key=KEY, time="time", arrival="at")
TIMES = ("arrival", "event_time", "event_end", "due_at")
LEDGER_TIMES = ("arrival", "event_time", "event_end", "new_time", "new_end", "cti", "cti_arrival")


@dataclass(frozen=True)
class Shared:
    """Documents that share a flow, and the folder of its one commit."""

    documents: tuple[Transcript, ...]
    root: Path
    buckets: int

    @cached_property
    def flow(self) -> Flow:
        """Give the flow of one stream."""
        first = self.documents[0]
        assert first.policy is not None
        if first.operator == "metronome":
            ticks = Stream(name="s", operator="metronome", inputs=(), by=(), policy=first.policy)
            return Flow(name="transcripts", sources={"rows": SOURCE}, streams={"s": ticks}, buckets=self.buckets)
        stream = Stream(
            name="s",
            operator=first.operator,
            inputs=("rows",),
            by=KEY,
            policy=first.policy,
            ports=Ports(column="port", values=first.ports) if first.ports else None,
            event_id="event" if first.operator == "advance_time" else None,
        )
        return Flow(name="transcripts", sources={"rows": SOURCE}, streams={"s": stream}, buckets=self.buckets)

    @property
    def start(self) -> int:
        """Give the first arrival of all documents."""
        return min(row.at for document in self.documents for row in document.rows)

    @property
    def close(self) -> int:
        """Give the last closing reading of all documents."""
        return max(document.close for document in self.documents)

    def landed(self) -> pa.Table:
        """Give the rows of all documents as a landing has them, in their order."""
        given = [(row, document.name) for document in self.documents for row in document.rows]
        rows = sorted(
            ((row, name) for row, name in given if row.kind not in STEERING), key=lambda one: (one[0].at, one[0].place)
        )
        columns = {
            "kind": kind_names(np.array([row.kind for row, _ in rows], dtype=np.int8)),
            "arrival": times(np.array([row.at for row, _ in rows], dtype=np.int64)),
            "place": [row.place for row, _ in rows],
            "event_time": times(np.array([row.time for row, _ in rows], dtype=np.int64)),
            "event_end": times(np.array([row.end for row, _ in rows], dtype=np.int64)),
            "document": [name for _, name in rows],
            **{name: [getattr(row, name) for row, _ in rows] for name in ("key", "port", "id", "event")},
        }
        schema = landed_row_schema(PAYLOAD)
        return pa.table([pa.array(columns[field.name], field.type) for field in schema], schema=schema)

    def lay(self) -> None:
        """Write the rows of all documents as a landing does: row groups are buckets, each in order."""
        table = self.landed()
        self.root.mkdir(parents=True)
        with pq.ParquetWriter(self.root / "rows.parquet", table.schema) as writer:
            for _, part in self._buckets(table):
                writer.write_table(part)

    def _buckets(self, table: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        return bucketed(table, KEY, self.buckets)

    def inputs(self, _: str, bucket: int) -> list[tuple[tuple[str, tuple[int, ...]], ...]]:
        """Give the row group of a bucket."""
        table = pq.read_table(self.root / "rows.parquet")
        groups = tuple(i for i, (of, _) in enumerate(self._buckets(table)) if of == bucket)
        return [((str(self.root / "rows.parquet"), groups),)] if groups else []

    def tasks(self) -> list[Task]:
        """Give the tasks of the one commit."""
        first = self.documents[0]
        definition = json.dumps(self.flow.definition(), sort_keys=True)
        flow, plan = flow_of(definition)
        work = Work(
            root=self.root,
            definition=definition,
            schemas={"rows": PAYLOAD},
            commit=1,
            parent=0,
            start=self.start,
            close=self.close,
            landed=self,
            state=LogState.of([]),
            blind={"rows": first.blind},
            final=first.ends,
        )
        return _tasks(work, flow, plan, plan.stages[0], Outcome())

    def read(self, done: Iterable[Done], table: str) -> Rows:
        """Read what tasks wrote into a table, instants as ticks."""
        files = [self.root / file.table / file.name for each in done for file in each.files if file.table == table]
        return [row for file in files for row in plain(pq.read_table(file))]


def plain(table: pa.Table) -> Rows:
    """Give rows with their instants and places as the core has them."""
    whole = {field.name: ticks(table[field.name]) for field in table.schema if pa.types.is_timestamp(field.type)}
    whole |= {name: longs(table[name]) for name in ("place", "cti_place") if name in table.column_names}
    rest = table.select([name for name in table.column_names if name not in whole]).to_pylist()
    return [row | {name: int(values[i]) for name, values in whole.items()} for i, row in enumerate(rest)]


WITHOUT_SIDES = frozenset({"heartbeat", "metronome", "merge", "advance_time"})
"""Operators of whose documents flows are made; `test_relations` runs the others in a flow of their own."""


def runs(document: Transcript) -> bool:
    """Say whether a flow can run a document.

    Imports have no flow yet, what stops writes nothing, and where ports meet in one instant a flow has its own order. A
    run begins with a reading.
    """
    ports = [(row.at, document.ports.index(row.port)) for row in document.rows if row.port in document.ports]
    if document.operator not in WITHOUT_SIDES:
        return False
    if document.operator == "metronome":
        return bool(document.steps) and document.rows[0].kind is Kind.READING
    imports = any(row.port == IMPORTED for row in document.rows)
    return bool(document.policy and document.steps) and not document.stops and not imports and ports == sorted(ports)


def shared(folder: Path, buckets: int) -> list[Shared]:
    """Put the documents of one policy together, but for those that bound what is held, or have no row with a key."""
    groups: dict[object, list[Transcript]] = {}
    for document in transcripts():
        if runs(document):
            bounded = getattr(document.policy, "max_held", None) is not None
            alone = document.name if bounded or document.operator == "metronome" else ""
            of = (document.operator, document.policy, document.ports, document.blind, document.ends, alone)
            groups.setdefault(of, []).append(document)
    numbers = count()
    return [Shared(tuple(documents), folder / str(next(numbers)), buckets) for documents in groups.values()]


def left_of(row: dict[str, Any], stream: str) -> tuple[str, Left]:
    """Give the document that a row of a stream belongs to, and the row in the document's terms."""
    kind, instants = Kind(KIND_NAMES.index(row["kind"])), [row[name] for name in TIMES]
    at, time, end, due = instants
    return row["document"], Left(stream, row["key"], kind, row["id"], at, row["place"], time, end, due)


def entry_of(row: dict[str, Any]) -> tuple[str, Left]:
    """Give the document that a line of the ledger belongs to, and the line in the document's terms."""
    kind, key = Kind(KIND_NAMES.index(row["kind"])), json.loads(row["key"])
    payload = json.loads(row["row"]) if row["row"] else {"id": None}
    at, time, end, new_time, new_end, cti, cti_at = (row[name] for name in LEDGER_TIMES)
    facts = (at, row["place"], time, end, NULL, Reason[row["reason"].upper()], row["action"])
    entry = Left(LEDGER, key["key"], kind, payload["id"], *facts, new_time, new_end, cti, cti_at, row["cti_place"])
    return key["document"], entry


def by_key(left: Iterable[Left]) -> dict[tuple[str, str], list[Left]]:
    """Sort rows into streams and keys, each in its order."""
    found: dict[tuple[str, str], list[Left]] = {}
    for row in left:
        found.setdefault((row.stream, row.key), []).append(row)
    return dict(sorted(found.items()))


def came(group: Shared, main: Rows, side: Rows, ledger: Rows) -> dict[str, list[Left]]:
    """Give what left by document, without what lies at or past its close."""
    closes = {document.name: document.close for document in group.documents}
    found: dict[str, list[Left]] = {name: [] for name in closes}
    if group.documents[0].operator == "metronome":
        main = [row | {"document": group.documents[0].name, "key": "k", "id": None} for row in main]
    rows = [left_of(row, MAIN) for row in main] + [left_of(row, SIDE) for row in side]
    rows += [entry_of(row) for row in ledger]
    for name, left in rows:
        if left.at < closes[name]:
            found[name].append(left)
    return found


def told(group: Shared, main: Rows, side: Rows, ledger: Rows, held: Rows) -> Told:
    """Give what left, by document, and the ids of what is held in the order in which it came."""
    waiting = sorted(held, key=lambda row: (row["arrival"], row["place"]))
    return {
        name: (by_key(left), [row["id"] for row in waiting if row["document"] == name])
        for name, left in came(group, main, side, ledger).items()
    }


def run(groups: list[Shared], engine: Engine) -> Told:
    """Run all documents, all tasks at once, and give what left and what is held, by document."""
    for group in groups:
        group.lay()
    handed = [(group, task) for group in groups for task in group.tasks()]
    written = engine.run([task for _, task in handed])
    found: Told = {}
    for group in groups:
        done = [each for (of, _), each in zip(handed, written, strict=True) if of is group]
        tables = ("streams/s", "streams/s.diverted", "ledger", "carry/s.held")
        found |= told(group, *(group.read(done, table) for table in tables))
    return found


def wanted(groups: list[Shared]) -> Told:
    """Give what is to leave and to be held, by document."""
    documents = [document for group in groups for document in group.documents]
    return {each.name: (by_key(each.expected), list(each.steps[-1].held)) for each in documents}


def assert_told(groups: list[Shared], found: Told) -> None:
    """See that every document holds."""
    should = wanted(groups)
    assert found.keys() == should.keys()
    assert {name: found[name] for name in found if found[name] != should[name]} == {
        name: should[name] for name in found if found[name] != should[name]
    }


def test_nearly_all_documents_are_run_and_many_share_a_flow(tmp_path: Path) -> None:
    groups = shared(tmp_path, 2)
    names = [document.name for group in groups for document in group.documents]
    runnable = [
        each.name
        for each in transcripts()
        if each.operator in WITHOUT_SIDES and each.policy and each.steps and not each.stops
    ]
    assert len(names) > 0.9 * len(runnable)
    assert len(groups) < 0.7 * len(names)


def test_transcripts_hold_on_core(tmp_path: Path) -> None:
    groups = shared(tmp_path, 2)
    assert_told(groups, run(groups, CoreEngine()))


def test_transcripts_hold_on_core_cut_at_every_arrival(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "BLOCK", 1)
    groups = shared(tmp_path, 2)
    assert_told(groups, run(groups, CoreEngine()))


def test_transcripts_hold_on_spark(tmp_path: Path, spark: LentSpark) -> None:
    groups = shared(tmp_path, 1)
    assert_told(groups, run(groups, spark))
