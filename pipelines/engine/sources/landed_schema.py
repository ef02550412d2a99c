"""Landed rows under a flow that declares other columns than the one they landed under.

A column that a sequence did not land is null. One that it landed beside the declared ones is there, where its values
are also values of the type that is declared now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pipelines.engine.landing.column_errors import LandedColumnError
from pipelines.engine.landing.types import spelled_type
from pipelines.engine.landing.undeclared import JSON, MARK, NOTHING, Undeclared, texts_of
from pipelines.engine.sources.live import landed_payload
from pipelines.flows.feeds.spec import Clock

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipelines.engine.landing.sequence import LandedSequence
    from pipelines.flows.model import Flow, Source

WIDER: Mapping[str, tuple[str, ...]] = {
    "int8": ("int16", "int32", "int64", "float32", "float64"),
    "int16": ("int32", "int64", "float32", "float64"),
    "int32": ("int64", "float64"),
    "int64": ("float64",),
    "float32": ("float64",),
}
"""What else the values of a type are values of. A whole number beyond 2^53 becomes the nearest float64, as it does in
a column that is declared so when it lands."""


def payloads_over(flow: Flow, sequences: Sequence[LandedSequence]) -> dict[str, pa.Schema]:
    """Give the payload columns with which a flow reads the sources of sequences, in their order.

    Args:
        flow: as it is to read them.
        sequences: at least one, in their order.

    Raises:
        LandedColumnError: a column landed with a type that is not that of now, nor becomes it.
    """
    return {name: _payload_over(source, sequences) for name, source in flow.sources.items()}


def _payload_over(source: Source, sequences: Sequence[LandedSequence]) -> pa.Schema:
    if source.clock is Clock.RECORDED or not source.feed.types:
        return sequences[-1].payload(source.name)
    payload = landed_payload(source)
    for sequence in sequences:
        _check(source.name, sequence, payload)
    return payload


def _check(source: str, sequence: LandedSequence, payload: pa.Schema) -> None:
    landed = sequence.sources[source]
    if landed.columns == tuple((field.name, str(field.type)) for field in payload):
        return
    was = dict(landed.added) | {field.name: spelled_type(field.type) for field in sequence.payload(source)}
    for field in payload:
        came, wanted = was.get(field.name, NOTHING), spelled_type(field.type)
        if came not in {NOTHING, wanted} and wanted != "string" and wanted not in WIDER.get(came, ()):
            raise LandedColumnError(sequence.id, source, field.name, came, wanted)


def read_as(rows: pa.Table, payload: pa.Schema) -> pa.Table:
    """Give landed rows the payload columns that a flow declares; others that it reads stay as they are.

    Args:
        rows: as a sequence's file has them.
        payload: whose columns `payloads_over` saw to be there, to become what they are to be, or to be null.
    """
    for field in payload:
        place = rows.schema.get_field_index(field.name)
        if place < 0:
            rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
        elif rows.schema.field(place).type != field.type or _is_json(rows.schema.field(place)):
            rows = rows.set_column(place, field, _become(rows.field(place), rows.column(place), field.type))
    return rows


def _is_json(field: pa.Field) -> bool:
    return (field.metadata or {}).items() >= MARK.items()


def _become(was: pa.Field, column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_string(wanted):
        kind = JSON if _is_json(was) else spelled_type(was.type)
        return pa.chunked_array([texts_of(Undeclared(kind, chunk)) for chunk in column.chunks], wanted)
    return column.cast(wanted, safe=not pa.types.is_floating(wanted))
