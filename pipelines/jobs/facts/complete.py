"""Which days of a run are complete: the promises of its streams say that nothing of them will come any more.

A stream without key that has CTIs promises that no event before the newest of them comes. Where all such streams of a
flow have passed the end of a day of its timezone, the day is complete in their tables. Other streams promise nothing of
the whole: a key that was never heard of is bound by no CTI. Nor does a source's own word count before an operator has
held its rows to it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from expectations.scopes import is_answered
from pipelines.engine.columnar.columns import NOT_HASHED, ORDER_FIELDS, TIME, instant_text
from pipelines.engine.columnar.content import content_hash
from pipelines.engine.commits.paths import stream_path
from pipelines.engine.commits.readers import rows_of
from pipelines.flows.definition import flow_from_json
from pipelines.flows.grid import DAY, cuts_between
from pipelines.flows.model import Flow
from pipelines.jobs.facts.promised import EVENTS, newest_of

if TYPE_CHECKING:
    from pipelines.jobs.runs.known import KnownRun

    Facts = dict[str, Any]


class Day(NamedTuple):
    """A day of the flow's timezone, [start, end), in ticks."""

    name: str
    """As a date, such as 2013-01-01."""
    start: int
    end: int


def promising(known: KnownRun) -> list[str]:
    """Name the streams of a run whose CTIs bind all of it, whatever key a row has."""
    flow = flow_from_json(known.definition)
    return [name for name in flow.streams if flow.promises(name) and not flow.key_of(name)]


def proving(known: KnownRun) -> list[str]:
    """Name those of them whose CTIs an operator answers for: those of a source alone prove nothing."""
    flow = flow_from_json(known.definition)
    return [name for name in promising(known) if is_answered(flow, name)]


def promised_until(known: KnownRun, names: list[str]) -> int | None:
    """Give the instant before which no event of any of these streams will come, in ticks.

    What is stale will be run again, with other rows and other promises; until then nothing is proved.

    Args:
        known: the run.
        names: of streams with CTIs.

    Returns:
        The oldest of the streams' newest CTIs; None where one of them has none yet, there are no streams, or
            something is stale.
    """
    newest = [newest_of(known.of(name), name, ("cti",)) for name in names]
    reached = [int(each["event_at"]) for each in newest if each is not None]
    if not names or len(reached) < len(names) or any(part.state.stale for part in known.parts):
        return None
    return min(reached)


def complete_days(known: KnownRun) -> list[Day]:
    """Give the days of a run that are complete, oldest first; a first day of which only a part came in is none."""
    until, published = promised_until(known, proving(known)), known.state.published
    if until is None or not published:
        return []
    begin = min(row.span.start for row in published)
    # At the end of a stream a CTI is infinite; nothing came in behind what was published.
    last = min(until, max(row.span.end for row in published) + DAY)
    days = Flow(name=known.name, sources={}, streams={}, every=DAY, timezone=known.moments.name)
    cuts = [cut for cut in cuts_between(days, begin, max(begin, last)) if begin <= cut <= last]
    return [Day(known.moments.argument(start)[:10], start, end) for start, end in pairwise(cuts)]


def day_facts(known: KnownRun, day: Day) -> Facts:
    """Say what the tables hold of a complete day: span, and of each stream that proves it its events and their hash.

    `judged` says whether a gate has judged all of it.

    Args:
        known: the run.
        day: a complete one.
    """
    tables = {name: _events(known.of(name), name, day) for name in proving(known)}
    return {
        "flow": known.name,
        "run": known.run,
        "day": day.name,
        "start": instant_text(day.start),
        "end": instant_text(day.end),
        "timezone": known.moments.name,
        "counts": {name: rows.num_rows for name, rows in tables.items()},
        "hashes": {name: content_hash(rows, leave_out=NOT_HASHED).text for name, rows in tables.items()},
        "judged": is_judged(known, day),
    }


def is_judged(known: KnownRun, day: Day) -> bool:
    """Say whether a gate has judged all commits of a day; a stream publishes at once, and is judged behind.

    Args:
        known: the run.
        day: a complete one; commits that only reach into it are of it, too.
    """
    spans = ((row, max(row.span.start, day.start), min(row.span.end, day.end)) for row in known.state.published)
    return all(row.verdict for row, start, end in spans if start < end)


def _events(known: KnownRun, name: str, day: Day) -> pa.Table:
    """Read the published events that start within a day."""
    commits = [row.commit for row in known.state.published]
    rows = rows_of(known.root, stream_path(known.root, name), commits, pa.schema(ORDER_FIELDS), known.state)
    start, end = (pa.scalar(tick, pa.int64()).cast(TIME) for tick in (day.start, day.end))
    within = (pc.field("event_time") >= start) & (pc.field("event_time") < end)
    return rows.scan(None, pc.field("kind").isin(pa.array(EVENTS)) & within)
