"""Histories for tests: sequences that readings closed, of two sources, as they are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pipelines.engine.columnar.columns import times
from pipelines.engine.columnar.content import content_hash
from pipelines.engine.landing.arrived import Arrived
from pipelines.engine.landing.index import Landing, landed_content
from pipelines.engine.landing.manifest import closed_ns, is_closed, read_sequence, verify
from pipelines.engine.landing.progress import Position
from pipelines.engine.landing.seen_files import FileFate, FileLanded
from pipelines.engine.landing.stamp import LANDED_LEDGER, landed_row_schema
from pipelines.engine.landing.write import write_sequence
from pipelines.flows.feeds.folder import FolderSpec
from pipelines.flows.model import Flow, Source

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pipelines.engine.landing.sequence import LandedSequence

READING = 10
"""Ticks from one reading to the next."""
SOURCES = {
    name: Source(name=name, feed=FolderSpec(paths=("in",)), key=key, time="at")
    for name, key in {"pumps": ("pump",), "doors": ()}.items()
}
PAYLOADS = {
    "pumps": [
        pa.schema([("pump", pa.string()), ("flow", pa.float32())]),
        pa.schema([("pump", pa.string()), ("flow", pa.float32()), ("note", pa.string(), True, {"of": "later"})]),
    ],
    "doors": [pa.schema([("door", pa.struct([("id", pa.int16()), ("open", pa.bool_())]))])],
}


@dataclass(frozen=True)
class Drawn:
    """What one sequence is to hold."""

    pumps: int = 1
    doors: int = 0
    """Rows."""
    lines: int = 0
    """Of the ledger."""
    buckets: int = 2
    payload: int = 0
    """Which of PAYLOADS the pumps have."""
    deaf: bool = False
    kind: str = "reading"


def close(landed: Path, number: int, drawn: Drawn) -> LandedSequence:
    """Close a sequence, or a version of an interval of its own."""
    arrived = {
        "pumps": _arrived(number, drawn.pumps, PAYLOADS["pumps"][drawn.payload], drawn.lines),
        "doors": _arrived(number, drawn.doors, PAYLOADS["doors"][0], 0),
    }
    start = number * READING
    blind = {"doors": ((start + 1, start + 3),)} if drawn.deaf else None
    flow = Flow(name="f", sources=SOURCES, streams={}, buckets=drawn.buckets)
    return write_sequence(
        landed,
        number,
        flow,
        arrived,
        kind=drawn.kind,
        start=start,
        end=start + READING,
        version=1,
        final=None,
        blind=blind,
    )


def close_all(landed: Path, drawn: Iterable[Drawn]) -> None:
    """Close sequences from the first on."""
    for number, each in enumerate(drawn, start=1):
        close(landed, number, each)


def _arrived(number: int, rows: int, payload: pa.Schema, lines: int) -> Arrived:
    table, ledger = _rows(number, rows, payload), _ledger(number, lines)
    file = FileLanded(path=f"{number}.csv", size=rows, sha256="00", rows=rows, changed=number, fate=FileFate.LANDED)
    return Arrived(
        schema=payload,
        rows=table,
        ledger=ledger,
        content=content_hash(table),
        feed="",
        declared="one",
        files=(file,),
        positions=(Position("bytes", number - 1, number),),
    )


def _rows(number: int, rows: int, payload: pa.Schema) -> pa.Table:
    at = times(number * READING + np.sort(np.arange(rows) % READING))
    values: dict[str, Any] = {
        "pump": [f"p{each % 5}" for each in range(rows)],
        "flow": [None if each % 7 == 0 else each + number / 8 for each in range(rows)],
        "note": [None] * rows,
        "door": [{"id": each, "open": each % 2 == 0} for each in range(rows)],
    }
    schema = landed_row_schema(payload)
    stamps = [pa.repeat("data", rows), at, pa.array(range(1, rows + 1)), at, pa.nulls(rows)]
    columns = [*stamps, *(pa.array(values[name], payload.field(name).type) for name in payload.names)]
    return pa.table([column.cast(field.type) for column, field in zip(columns, schema, strict=True)], schema=schema)


def _ledger(number: int, lines: int) -> pa.Table:
    line = {field.name: None for field in LANDED_LEDGER} | {"source": "pumps", "reason": f"drawn in {number}"}
    return pa.Table.from_pylist([line] * lines, schema=LANDED_LEDGER)


def read(landed: Path) -> list[tuple[Any, ...]]:
    """Give all that anybody reads of a history, in order."""
    landing, found = Landing(landed), []
    for each in landing.sequences:
        sequence = read_sequence(landed, each.id)
        verify(sequence)
        blind = landing.blind_before("doors", each.id), closed_ns(landed, each.id)
        found.append((_said(sequence), _rows_of(sequence), sequence.ledger_rows(), blind))
    assert landing.known("pumps").ends == {"bytes": len(found)}
    assert not is_closed(landed, len(found) + 1)
    return found


def _said(sequence: LandedSequence) -> dict[str, Any]:
    """Give what a manifest says beside where rows lie."""
    sources = {
        name: {**vars(landed), "file": "", "size": 0, "sha256": "", "first_group": None, "schema": landed.schema}
        for name, landed in sequence.sources.items()
    }
    payloads = {name: sequence.payload(name) for name in sequence.sources}
    content = landed_content(sequence)
    rest = {name: value for name, value in vars(sequence).items() if name not in {"folder", "sources", "ledger"}}
    return rest | {"sources": sources, "payloads": payloads, "content": content, "lines": sequence.ledger.rows}


def _rows_of(sequence: LandedSequence) -> dict[tuple[str, int], list[pa.RecordBatch]]:
    buckets = [(name, bucket) for name in sequence.sources for bucket in range(sequence.buckets)]
    return {
        (name, bucket): pa.Table.from_batches(
            list(sequence.open(name, [bucket])), landed_row_schema(sequence.payload(name))
        ).combine_chunks()
        for name, bucket in buckets
    }
