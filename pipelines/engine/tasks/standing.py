"""The flow of a commit that was begun, with its columns in the order in which they stand.

The order of a source's columns is part of a plan. Plans that were written with sorted keys do not tell it; there it is
taken from the tables of the streams that read the source, and else from what landed.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from pipelines.engine.columnar.columns import canonical_json
from pipelines.engine.commits.delta_log import snapshot
from pipelines.engine.commits.paths import stream_path
from pipelines.flows.definition import flow_from_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from pipelines.engine.landing.sequence import LandedSequence
    from pipelines.flows.model import Flow, Source


def flow_begun(root: Path, plan: str, landed: Callable[[], LandedSequence]) -> Flow:
    """Give the flow that a commit was begun under.

    Args:
        root: the run's folder.
        plan: of the commit, as its intent has it.
        landed: opens a sequence that the commit takes in.

    Raises:
        DefinitionError: this code can no longer read it.
    """
    flow = flow_from_json(json.loads(plan)["flow"])
    if plan != canonical_json(json.loads(plan)):
        return flow
    sources = {name: _in_order(source, _orders(root, flow, source, landed)) for name, source in flow.sources.items()}
    return replace(flow, sources=sources)


def _orders(root: Path, flow: Flow, source: Source, landed: Callable[[], LandedSequence]) -> Iterator[Sequence[str]]:
    """Give the columns of what read the source, or holds its rows, each in its order."""
    for stream in flow.streams.values():
        table = snapshot(stream_path(root, stream.name)) if stream.inputs == (source.name,) else None
        if table is not None:
            yield table.schema.names
    sequence = landed()
    if source.name in sequence.sources:
        yield sequence.payload(source.name).names


def _in_order(source: Source, orders: Iterator[Sequence[str]]) -> Source:
    """Give a source whose declared columns stand as in the first order that has them all."""
    types = source.feed.types
    named = {column: source.rename.get(column, column) for column in types}
    order = next((order for order in orders if set(named.values()) <= set(order)), None)
    if order is None:
        return source
    columns = sorted(types, key=lambda column: order.index(named[column]))
    return replace(source, feed=replace(source.feed, types={column: types[column] for column in columns}))
