"""Documents of one policy as keys of one flow: its sources, rows as a landing lays them, and what left, read back.

A landing by itself lands no timers and no `imported` CTIs; these documents do.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.engine.columnar.columns import instant_tick, kind_names, longs, ticks, times
from pipelines.engine.commits.history import LogState
from pipelines.engine.commits.paths import commits_path
from pipelines.engine.landing.stamp import bucketed, landed_row_schema
from pipelines.engine.tasks.stages import Outcome, Work, _tasks
from pipelines.engine.tasks.task import flow_of
from pipelines.flows.definition import flow_to_json
from pipelines.flows.feeds.parquet import ParquetSpec
from pipelines.flows.model import Flow, Ports, Source, Stream
from pipelines.operators.join import JoinPolicy
from pipelines.operators.rows import KIND_NAMES, NULL, Kind, Reason, Shape
from pipelines.operators.union import UnionPolicy
from pipelines.operators.window import WindowPolicy
from tests.transcripts_model import IMPORTED, LEDGER, MAIN, REFUSED, SIDE, Given, Left, Transcript, transcripts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from pipelines.engine.landing.sequence import Chain
    from pipelines.engine.tasks.task import Done, Task
    from pipelines.operators.rows import Policy

    Rows = list[dict[str, Any]]
    Told = dict[str, tuple[dict[tuple[str, str], list[Left]], list[str]]]
    """By document, what left of each stream and key, and what is held."""

KEY = ("document", "key")
TEXTS = (*KEY, "port", "id", "event", "x")
PAYLOAD = pa.schema(
    [(name, pa.string()) for name in TEXTS] + [("v", pa.int64()), ("real", pa.float64()), ("holds", pa.bool_())]
)
"""`x` is what a document has under `on`, `v` and `real` its `value`, `holds` what its filter's condition gives."""
MATCHED = (*KEY, "x")
"""The columns that both sides of a join have; all else of its right side has a name of its own."""
RIGHT = "right_"
STEERING = (Kind.READING, Kind.FINAL)
ROWS, PROMISES = "rows", "promises"
"""The source of documents without sides, and that of CTIs which are imported."""
TIMES = ("arrival", "event_time", "event_end", "due_at")
LEDGER_TIMES = ("arrival", "event_time", "event_end", "new_time", "new_end", "cti", "cti_arrival")
SIDED = frozenset({"union", "interleave", "join"})


def source_of(name: str) -> Source:
    """Give a source of documents."""
    return Source(name=name, feed=ParquetSpec(), key=KEY, time="time", arrival="at")


def imports(document: Transcript) -> bool:
    """Say whether a document has CTIs of another stream."""
    return any(row.port == IMPORTED for row in document.rows)


@dataclass(frozen=True)
class Shared:
    """Documents that share a flow, and the folder of its one commit."""

    documents: tuple[Transcript, ...]
    root: Path
    buckets: int

    @property
    def operator(self) -> str:
        """Name the operator of all documents."""
        return self.documents[0].operator

    @property
    def kind(self) -> str:
        """Name what is shown: an operator, or the import of CTIs."""
        return "import" if PROMISES in self.sources else self.operator

    @cached_property
    def sources(self) -> dict[str, Source]:
        """Give the sources of the flow, in the order of the operator's ports."""
        sides = self.documents[0].ports if self.operator in SIDED else (ROWS,)
        names = (ROWS, PROMISES) if any(map(imports, self.documents)) else sides
        return {name: source_of(name) for name in names}

    @cached_property
    def policy(self) -> Policy:
        """Give the policy of all documents; windows group by what a document has under `on`."""
        policy = self.documents[0].policy
        assert policy is not None
        return replace(policy, group=("x",)) if isinstance(policy, WindowPolicy) else policy

    @cached_property
    def flow(self) -> Flow:
        """Give the flow of one stream."""
        if self.operator == "metronome":
            ticks = Stream(name="s", operator="metronome", inputs=(), by=(), policy=self.policy)
            return Flow(name="transcripts", sources=self.sources, streams={"s": ticks}, buckets=self.buckets)
        inputs = tuple(self.sources)
        stream = Stream(
            name="s",
            operator=self.operator,
            inputs=inputs,
            by=KEY,
            policy=self.policy,
            ports=self._ports,
            event_id="event" if self.operator in {"advance_time", "project", "deduplicate"} else None,
            event_ids=self._event_ids,
        )
        return Flow(name="transcripts", sources=self.sources, streams={"s": stream}, buckets=self.buckets)

    @property
    def side(self) -> str:
        """Name the stream that the operator sets aside; of one that sets none aside, a name that nothing has."""
        return next(iter(self.flow.streams["s"].sides), "s.diverted")

    @property
    def _ports(self) -> Ports | None:
        if len(self.sources) > 1:
            return Ports(streams=tuple(self.sources))
        ports = self.documents[0].ports
        return Ports(column="port", values=ports) if ports else None

    @property
    def _event_ids(self) -> tuple[str, ...]:
        shapes: Sequence[Shape] = ()
        if isinstance(self.policy, UnionPolicy | JoinPolicy):
            shapes = self.policy.shapes
        elif isinstance(self.policy, WindowPolicy):
            shapes = (self.policy.shape,)
        columns = (self._renamed(side)["event"] for side in self.sources)
        return tuple(column if shape is Shape.EDGE else "" for column, shape in zip(columns, shapes, strict=False))

    def _renamed(self, source: str) -> dict[str, str]:
        """Give the name that a source has for each column of the payload."""
        right = self.operator == "join" and source == self.documents[0].ports[1]
        return {name: RIGHT + name if right and name not in MATCHED else name for name in PAYLOAD.names}

    @cached_property
    def payloads(self) -> dict[str, pa.Schema]:
        """Give the payload of each source."""
        return {
            name: pa.schema([field.with_name(self._renamed(name)[field.name]) for field in PAYLOAD])
            for name in self.sources
        }

    @property
    def start(self) -> int:
        """Give the first arrival of all documents."""
        return min(row.at for document in self.documents for row in document.rows)

    @property
    def close(self) -> int:
        """Give the last closing reading of all documents."""
        return max(document.close for document in self.documents)

    def _given(self) -> list[tuple[Given, str]]:
        """Give the rows that land, each with the name of its document, in their order."""
        given = [(row, document.name) for document in self.documents for row in document.rows]
        return sorted(
            ((row, name) for row, name in given if row.kind not in STEERING), key=lambda one: (one[0].at, one[0].place)
        )

    @cached_property
    def ids(self) -> dict[tuple[str, int, int], str]:
        """Give the id of a row by its document, arrival and place."""
        return {(name, row.at, row.place): row.id for row, name in self._given()}

    def _comes_to(self, row: Given, source: str) -> bool:
        if source == PROMISES or row.port == IMPORTED:
            return (source == PROMISES) is (row.port == IMPORTED)
        return source in {ROWS, row.port}

    def landed(self, source: str) -> pa.Table:
        """Give the rows of all documents that come to a source as a landing has them, in their order."""
        rows = [(row, name) for row, name in self._given() if self._comes_to(row, source)]
        columns = {
            "kind": kind_names(np.array([row.kind for row, _ in rows], dtype=np.int8)),
            "arrival": times(np.array([row.at for row, _ in rows], dtype=np.int64)),
            "place": [row.place for row, _ in rows],
            "event_time": times(np.array([row.time for row, _ in rows], dtype=np.int64)),
            "event_end": times(np.array([row.end for row, _ in rows], dtype=np.int64)),
        }
        told = {
            "document": [name for _, name in rows],
            **{name: [getattr(row, name) for row, _ in rows] for name in ("key", "port", "id", "event")},
            "x": [row.on for row, _ in rows],
            "v": [row.value for row, _ in rows],
            "real": [None if row.value is None else float(row.value) for row, _ in rows],
            "holds": [row.port != REFUSED for row, _ in rows],
        }
        columns |= {self._renamed(source)[name]: values for name, values in told.items()}
        schema = landed_row_schema(self.payloads[source])
        return pa.table([pa.array(columns[field.name], field.type) for field in schema], schema=schema)

    def lay(self) -> None:
        """Write the rows of all documents as a landing does, in a run: row groups are buckets, each in order."""
        commits_path(self.root).mkdir(parents=True)
        for source in self.sources:
            table = self.landed(source)
            with pq.ParquetWriter(self._file(source), table.schema) as writer:
                for _, part in self._buckets(table):
                    writer.write_table(part)

    def _file(self, source: str) -> Path:
        return self.root / f"{source}.parquet"

    def _buckets(self, table: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        return bucketed(table, KEY, self.buckets)

    def inputs(self, source: str, bucket: int) -> list[Chain]:
        """Give the row group of a bucket."""
        table = pq.read_table(self._file(source))
        groups = tuple(i for i, (of, _) in enumerate(self._buckets(table)) if of == bucket)
        return [((str(self._file(source)), groups),)] if groups else []

    def tasks(self) -> list[Task]:
        """Give the tasks of the one commit."""
        first = self.documents[0]
        definition = json.dumps(flow_to_json(self.flow), sort_keys=True)
        flow, plan = flow_of(definition)
        work = Work(
            root=self.root,
            definition=definition,
            schemas=self.payloads,
            commit=1,
            parent=0,
            start=self.start,
            close=self.close,
            landed=self,
            state=LogState.of([]),
            blind=dict.fromkeys(self.sources, first.blind),
            final=first.ends,
        )
        return _tasks(work, flow, plan, plan.stages[0], Outcome())

    def read(self, done: Iterable[Done], table: str) -> Rows:
        """Read what tasks wrote into a table, instants as ticks."""
        files = [self.root / file.table / file.name for each in done for file in each.files if file.table == table]
        return [row for file in files for row in plain(pq.read_table(file))]

    def _id(self, row: dict[str, Any]) -> str | None:
        """Give the id that a row says it has; one that has lost its columns is known by where it landed."""
        if "id" not in row:
            return self.ids.get((row["document"], row["landed_at"], row["landed_place"]))
        id_: str | None = row["id"]
        return row.get(RIGHT + "id") if id_ is None else id_

    def left_of(self, row: dict[str, Any], stream: str) -> tuple[str, Left]:
        """Give the document that a row of a stream belongs to, and the row in the document's terms."""
        kind, instants = Kind(KIND_NAMES.index(row["kind"])), [row[name] for name in TIMES]
        at, time, end, due = instants
        if self.operator == "metronome":
            row = row | {"document": self.documents[0].name, "key": "k", "id": None}
        if isinstance(self.policy, WindowPolicy):
            left = Left(stream, row["key"], kind, None, at, row["place"], time, end, due)
            values = tuple(row[name] for name, _, _ in self.policy.parsed())
            return row["document"], left._replace(on=row["x"], values=values) if kind is Kind.DATA else left
        left = Left(stream, row["key"], kind, self._id(row), at, row["place"], time, end, due)
        return row["document"], left._replace(other=row.get(RIGHT + "id"))

    def entry_of(self, row: dict[str, Any]) -> tuple[str, Left]:
        """Give the document that a line of the ledger belongs to, and the line in the document's terms."""
        kind, key = Kind(KIND_NAMES.index(row["kind"])), json.loads(row["key"])
        payload = json.loads(row["row"]) if row["row"] else {"id": None}
        at, time, end, new_time, new_end, cti, cti_at = (row[name] for name in LEDGER_TIMES)
        facts = (at, row["place"], time, end, NULL, Reason[row["reason"].upper()], row["action"])
        entry = Left(LEDGER, key["key"], kind, self._id(payload), *facts, new_time, new_end, cti, cti_at)
        return key["document"], entry._replace(cti_place=row["cti_place"], other=self._standing(key["document"], row))

    def _standing(self, document: str, row: dict[str, Any]) -> str | None:
        """Give the id of the row that a duplicate is one of."""
        if row["reason"] != "duplicate":
            return None
        told = json.loads(row["raw"])
        assert told["source"] == ROWS
        return self.ids[document, instant_tick(told["landed_at"]), told["landed_place"]]

    def came(self, main: Rows, side: Rows, ledger: Rows) -> dict[str, list[Left]]:
        """Give what left by document, without what lies at or past its close."""
        closes = {document.name: document.close for document in self.documents}
        found: dict[str, list[Left]] = {name: [] for name in closes}
        rows = [self.left_of(row, MAIN) for row in main] + [self.left_of(row, SIDE) for row in side]
        rows += [self.entry_of(row) for row in ledger]
        for name, left in rows:
            if left.at < closes[name]:
                found[name].append(left)
        return found

    def told(self, main: Rows, side: Rows, ledger: Rows, held: Rows) -> Told:
        """Give what left, by document, and the ids of what is held in the order in which it came."""
        waiting: dict[str, list[str]] = defaultdict(list)
        for row in sorted(held, key=lambda row: (row["arrival"], row["place"])):
            waiting[row["document"]].append(str(self._id(row)))
        return {name: (by_key(left), waiting[name]) for name, left in self.came(main, side, ledger).items()}


def plain(table: pa.Table) -> Rows:
    """Give rows with their instants and places as the core has them."""
    whole = {field.name: ticks(table[field.name]) for field in table.schema if pa.types.is_timestamp(field.type)}
    whole |= {name: longs(table[name]) for name in ("place", "cti_place") if name in table.column_names}
    rest = table.select([name for name in table.column_names if name not in whole]).to_pylist()
    return [row | {name: int(values[i]) for name, values in whole.items()} for i, row in enumerate(rest)]


def runs(document: Transcript) -> bool:
    """Say whether a flow can run a document.

    No two rows of a source are the same in all columns, for each has its id. What stops writes
    nothing, and where ports meet in one instant a flow has its own order. A run of a metronome begins
    with a reading. What goes round in a loop is no row of a document.
    """
    if document.operator == "loop":
        return False
    if document.operator == "metronome":
        return bool(document.steps) and document.rows[0].kind is Kind.READING
    if document.operator == "deduplicate" and not getattr(document.policy, "on", ()):
        return False
    places = {"": 0, **{name: place for place, name in enumerate(document.ports)}, IMPORTED: 1}
    ports = [(row.at, places[row.port]) for row in document.rows if row.port in places]
    return bool(document.policy and document.steps) and not document.stops and ports == sorted(ports)


def shared(folder: Path, buckets: int) -> list[Shared]:
    """Put the documents of one policy together, but for those that bound what is held, or have no row with a key."""
    groups: dict[object, list[Transcript]] = {}
    for document in transcripts():
        if runs(document):
            bounded = getattr(document.policy, "max_held", None) is not None
            alone = document.name if bounded or document.operator == "metronome" else ""
            policy = (document.operator, document.policy, document.ports, imports(document))
            groups.setdefault((*policy, document.blind, document.ends, alone), []).append(document)
    numbers = count()
    return [Shared(tuple(documents), folder / str(next(numbers)), buckets) for documents in groups.values()]


def by_key(left: Iterable[Left]) -> dict[tuple[str, str], list[Left]]:
    """Sort rows into streams and keys, each in its order; lines of the ledger are read by their arrival."""
    found: dict[tuple[str, str], list[Left]] = {}
    for row in sorted(left, key=lambda row: row.at if row.stream == LEDGER else NULL):
        found.setdefault((row.stream, row.key), []).append(row)
    return dict(sorted(found.items()))


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
