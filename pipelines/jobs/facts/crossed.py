"""How a row came from one leg of a run to another: the commit that published it, and the one that took it along.

Rules of docs/semantics.md: X7, X8
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import TIME
from pipelines.jobs.facts.pages import stream_pages
from pipelines.operators.rows import TICKS_PER_SECOND

if TYPE_CHECKING:
    from pipelines.engine.commits.history import Entry
    from pipelines.jobs.facts.owners import LandedThere
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


def crossing(known: KnownRun, there: LandedThere, read: str, reader: str, source: str) -> CrossedQueue | None:
    """Say how a row came to the leg of a stream; None where no leg lies between, or nothing says so any more.

    Args:
        known: the run.
        there: the rows at its place.
        read: the stream whose row it is by now, or its source: what lands each leg takes behind `main`.
        reader: the stream that reads it.
        source: where it landed.
    """
    if len(known.parts) == 1:
        return None
    names = {part.root: name for name, part in known.by_leg.items()}
    writer, to = known if read in known.sources else known.of(read), known.of(reader)
    came = None if read in known.sources else there.own(read, source)[0]
    published = _landing(known, there, read) if came is None else writer.state.commits.get(came["commit"][0].as_py())
    if writer.root == to.root or published is None:
        return None
    taken = next((entry for entry in to.state.in_order if entry.upto >= published.upto), None)
    waited = 0 if taken is None else max(0, taken.at - published.at)
    return CrossedQueue(
        writer=names[writer.root],
        reader=names[to.root],
        commit=published.commit,
        taken=None if taken is None else taken.commit,
        seconds=waited / TICKS_PER_SECOND,
        before=0 if taken is None or came is None else _before(writer, to, read, taken, came),
        lands=came is None,
    )


def _landing(known: KnownRun, there: LandedThere, source: str) -> Entry | None:
    """Find the commit of the leg that takes what lands with which a row was taken."""
    number = there.sequence(source)
    return next((entry for entry in known.state.in_order if number in entry.sequences), None)


def _before(writer: KnownRun, to: KnownRun, read: str, taken: Entry, came: pa.Table) -> int:
    """Count the rows of a stream that a commit of its reader took along before a row."""
    since = max((entry.upto for entry in to.state.in_order if entry.upto < taken.upto), default=0)
    commits = [entry.commit for entry in writer.state.in_order if since < entry.upto <= taken.upto]
    order = ("arrival", *writer.order_key(read), "place")
    first = came.slice(0, 1)
    upto = pc.field("arrival") <= first["arrival"][0].cast(TIME)
    pages = stream_pages(writer.root, read, commits, writer.state, order, upto)
    rows = pa.concat_tables(page.select(list(order)) for page in pages)
    alike = [pc.equal(rows[column], first[column][0]) for column in order]
    mine = alike[0]
    for each in alike[1:]:
        mine = pc.and_(mine, each)
    return int(pc.index(mine, True).as_py())
