"""How a row came from one leg of a run to another: the commit that published it, and the one that took it along.

Rules of docs/semantics.md: X7, X8
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import TIME
from pipelines.jobs.facts.pages import stream_pages
from pipelines.operators.rows import TICKS_PER_SECOND

if TYPE_CHECKING:
    from pipelines.engine.commits.history import Entry, Span
    from pipelines.jobs.runs.known import KnownRun


@dataclass(frozen=True, kw_only=True)
class CrossedQueue:
    """How a row went through a queue."""

    writer: str
    """The leg that has it, by name."""
    reader: str
    commit: int
    """Of the writer, with which it could be read."""
    taken: int | None
    """Commit of the reader that took it along; None where it waits."""
    seconds: float
    """From the publication of the one to that of the other; 0 while it waits."""
    before: int
    """Rows of its stream that the reader took along before it; 0 while it waits, and of what lands."""
    lands: bool
    """Whether it is as it landed: the writer has passed it, and the reader takes it from the landing."""


def crossing(known: KnownRun, read: str, to: KnownRun, came: pa.Table | None, arrival: int) -> CrossedQueue | None:
    """Say how a row came to a leg; None where none lies between, or nothing says so any more.

    Commits of two legs need not end together, so each is found by the row's own arrival.

    Args:
        known: the run.
        read: the stream whose row it is by now, or its source: what lands each leg takes behind `main`.
        to: the part of the run that reads it.
        came: its rows in that stream; None of a source.
        arrival: of the first of them, or where it landed, in ticks.
    """
    writer = known if came is None else known.of(read)
    published = None if writer.root == to.root else _with(writer, arrival)
    if published is None:
        return None
    taken = _with(to, arrival)
    waited = 0 if taken is None else max(0, taken.at - published.at)
    names = {part.root: name for name, part in known.by_leg.items()}
    return CrossedQueue(
        writer=names[writer.root],
        reader=names[to.root],
        commit=published.commit,
        taken=None if taken is None else taken.commit,
        seconds=waited / TICKS_PER_SECOND,
        before=0 if taken is None or came is None else _before(writer, read, taken.span, came),
        lands=came is None,
    )


def _with(part: KnownRun, arrival: int) -> Entry | None:
    """Find the commit of a leg with which it took what came at an instant, in ticks."""
    return next((entry for entry in part.state.in_order if arrival < entry.span.end), None)


def _before(writer: KnownRun, read: str, span: Span, came: pa.Table) -> int:
    """Count the rows of a stream that a commit of its reader, over a span, took along before a row."""
    commits = [e.commit for e in writer.state.in_order if span.start < e.span.end and e.span.start < span.end]
    order = ("arrival", *writer.order_key(read), "place")
    since, upto = pa.scalar(span.start, pa.int64()).cast(TIME), came["arrival"][0].cast(TIME)
    within = (pc.field("arrival") >= since) & (pc.field("arrival") <= upto)
    pages = stream_pages(writer.root, read, commits, writer.state, order, within)
    rows = pa.concat_tables(page.select(list(order)) for page in pages)
    mine = reduce(pc.and_, (pc.equal(rows[column], came[column][0]) for column in order))
    return int(pc.index(mine, True).as_py())
