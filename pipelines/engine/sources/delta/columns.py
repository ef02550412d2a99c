"""Which columns of a Delta table land: those that a source declares, else all, of the table's own types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pipelines.engine.columnar.columns import TIME
from pipelines.engine.landing.errors import ColumnMissingError, DuplicateColumnError
from pipelines.engine.landing.types import declared_type, landed_type, spelled_type
from pipelines.engine.sources.delta.errors import DeclaredTypeError
from pipelines.flows.errors import nearest

if TYPE_CHECKING:
    from pipelines.engine.sources.delta.log import TableShape
    from pipelines.flows.model import Source


def declared(source: Source, shape: TableShape) -> pa.Schema:
    """Give the columns of a table that a source has land, by the table's own names and of its types.

    Raises:
        ColumnMissingError: `types` names one that is not there.
        DeclaredTypeError: `types` says another type than the table.
    """
    there = shape.named((*source.rename, *source.feed.types))
    for name, spelled in source.feed.types.items():
        if name not in there.names:
            raise ColumnMissingError(source.name, "types", name, tuple(there.names), nearest(name, there.names))
        came = spelled_type(landed_type(source.name, name, there.field(name).type))
        if came != spelled_type(declared_type(spelled)):
            raise DeclaredTypeError(source.name, name, spelled, came)
    return pa.schema([there.field(name) for name in source.feed.types or there.names])


def with_committed(source: Source, schema: pa.Schema, name: str) -> pa.Schema:
    """Add the column that says when rows were committed, where a source asks for one.

    Raises:
        DuplicateColumnError: the table has a column of that name.
    """
    if not name:
        return schema
    if name in schema.names:
        raise DuplicateColumnError(source.name, name)
    return schema.append(pa.field(name, TIME))
