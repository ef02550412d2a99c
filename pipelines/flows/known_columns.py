"""Which columns a source or stream has, as far as the flow itself says it: before a row has been read."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - a field of a named tuple
from typing import TYPE_CHECKING, NamedTuple

from pipelines.flows.model import BROKEN, QUARANTINED, Source
from pipelines.operators.specs import SPECS

if TYPE_CHECKING:
    from pipelines.flows.model import Flow

OF_EVERY_STREAM = {
    "kind": "string",
    "arrival": "timestamp",
    "place": "int64",
    "event_time": "timestamp",
    "event_end": "timestamp",
    "due_at": "timestamp",
    "landed_at": "timestamp",
    "landed_place": "int64",
    "commit": "int64",
}
OF_EVERY_LANDING = ("kind", "arrival", "place", "event_time", "event_end")


class KnownColumns(NamedTuple):
    """What a flow says of the columns of a table."""

    types: Mapping[str, str]
    """By name, as a flow spells them."""
    whole: bool
    """Whether there are no others."""


def columns_of(flow: Flow, table: str) -> KnownColumns:
    """Give the columns of a source, stream or side stream, as far as the flow says them."""
    payload, whole = _payload(flow, table)
    is_source = table in flow.sources
    own = {name: kind for name, kind in OF_EVERY_STREAM.items() if not is_source or name in OF_EVERY_LANDING}
    return KnownColumns({**own, **payload}, whole)


def _payload(flow: Flow, table: str) -> KnownColumns:
    made = flow.owner(table)
    if isinstance(made, Source):
        feed = made.feed
        types = {made.rename.get(name, name): kind for name, kind in feed.types.items()}
        return KnownColumns({**types, **feed.added}, bool(feed.types) and feed.names_all)
    by_value = made.operator == "merge" and made.ports is not None and made.ports.column is not None
    same = by_value or SPECS[made.operator].same_columns
    known = _payload(flow, made.inputs[0]) if same else KnownColumns({}, whole=False)
    return KnownColumns({**known.types, BROKEN: "string"}, known.whole) if table.endswith(QUARANTINED) else known


def kind_of(spelled: str) -> str:
    """Give what a type is: `text`, `number`, `time`, `truth` or `other`.

    Args:
        spelled: as a flow spells it, or as Arrow does.

    >>> kind_of("decimal(10, 2)"), kind_of("list<int64>"), kind_of("timestamp[us, tz=UTC]"), kind_of("date")
    ('number', 'other', 'time', 'time')
    """
    if spelled.startswith(("int", "uint", "float", "halffloat", "decimal", "double")):
        return "number"
    if spelled.startswith(("timestamp", "date")):
        return "time"
    return {"string": "text", "large_string": "text", "bool": "truth"}.get(spelled, "other")
