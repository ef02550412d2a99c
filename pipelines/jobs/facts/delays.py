"""What is known of the delay of a run's advance_time stream: its history, read from the tables, and what to draw of it.

For `pulseline advise`, and for the page of a run, where its history is small.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow.fs import LocalFileSystem

from pipelines.engine.columnar.columns import ORDER_FIELDS, kinds, ticks
from pipelines.engine.columnar.keys import KeyIndex, canonical_keys
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.commits.readers import published
from pipelines.engine.files.ordered import in_order
from pipelines.engine.landing.manifest import read_sequence
from pipelines.engine.landing.segments import pieces_of, removed_among
from pipelines.engine.tasks.by_time import met_by_time, numbering
from pipelines.errors import PulselineError
from pipelines.flows.durations import spell
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.facts.advising import Delays, History, written_up
from pipelines.jobs.facts.history import ended_at
from pipelines.jobs.runs.counts import counted
from pipelines.operators.advance_time import AdvanceTimePolicy, PromiseAtEnd

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from expectations.report.charts.delays import DelayFacts
    from pipelines.flows.model import Flow, Stream
    from pipelines.jobs.facts.report import Reported
    from pipelines.jobs.runs.known import KnownRun

READ = ("kind", "arrival", "place", "event_time", "event_end")
MADE_BY = "advance_time"
MOST_PASSED, LEAST_WAITS = 10_000_000, 12
"""Events that are passed over to draw waits, about; and how many delays are drawn of however many events."""
ON_A_PAGE = 500_000
"""Rows of a history that a page of a run reads for it, in five columns: of more it names the command."""
SHARE = Fraction(99, 100)
"""Of the events that are to be on time by a page."""


@dataclass(frozen=True, kw_only=True)
class Advice:
    """What is known of the delays of one stream."""

    known: KnownRun
    flow: Flow
    stream: Stream
    policy: AdvanceTimePolicy
    share: Fraction
    span: tuple[int, int]
    delays: Delays

    @cached_property
    def exact(self) -> int | None:
        """Give the smallest delay that gets the share on time; None where none does."""
        return self.delays.smallest(self.share)

    @cached_property
    def advised(self) -> int | None:
        """Give it as a person would write it."""
        return None if self.exact is None else written_up(self.exact)

    @cached_property
    def rungs(self) -> list[int]:
        """Give the delays that are shown."""
        return self.delays.ladder(self.policy.delay, *(() if self.advised is None else (self.advised,)))


def kept_from(known: KnownRun) -> int:
    """Give the instant from which on all landed rows are kept, in ticks; 0 where none were removed."""
    gone = removed_among(_landing(known), _numbers(known))
    return max((each.end for each in gone), default=0)


def _numbers(known: KnownRun) -> list[int]:
    return sorted({number for entry in known.state.published for number in entry.sequences})


def final_of(known: KnownRun, policy: AdvanceTimePolicy) -> int | None:
    """Give when the stream ended, where it promises infinity there."""
    return ended_at(_landing(known), known.state) if policy.at_end is PromiseAtEnd.INFINITY else None


def _landing(known: KnownRun) -> Path:
    return landed_path(known.root)


def history_of(known: KnownRun, flow: Flow, stream: Stream) -> History:
    """Read all rows that the stream took in since the run began, in their order."""
    given = stream.inputs[0]
    if given not in known.sources and given not in known.tables:
        raise WrongUse(
            f"`{stream.name}` reads `{given}`, of which run `{known.run}` has no rows: run the flow as it is now first"
        )
    columns = tuple(dict.fromkeys([*READ, *flow.key_of(given), *stream.by]))
    rows = _landed(known, given, columns) if given in known.sources else _made(known, given, columns)
    rows = in_order(rows, numbering(flow, given))
    by_time = met_by_time(flow, stream, given)
    rows = rows if by_time is None else by_time.laid(rows)
    index = KeyIndex()
    keys = [rows[name].combine_chunks() for name in stream.by]
    timeline = index.ids(canonical_keys(keys)) if keys else np.zeros(rows.num_rows, dtype=np.int64)
    return History(
        kind=kinds(rows["kind"]),
        timeline=timeline,
        arrival=ticks(rows["arrival"]),
        event_time=ticks(rows["event_time"]),
        event_end=ticks(rows["event_end"]),
        timelines=max(len(index), 1),
    )


def _made(known: KnownRun, name: str, columns: Sequence[str]) -> pa.Table:
    known = known.of(name)
    return published(known.root, name, state=known.state).scan(columns)


def _landed(known: KnownRun, name: str, columns: Sequence[str]) -> pa.Table:
    """Read the rows of a source in the sequences that the published commits were made from, as far as they are kept."""
    numbers = _numbers(known)
    gone = {each.id for each in removed_among(_landing(known), numbers)}
    read = [read_sequence(_landing(known), number) for number in numbers if number not in gone]
    having = [each for each in read if name in each.sources and each.sources[name].rows]
    if not having:
        return pa.schema([*ORDER_FIELDS, *((column, pa.string()) for column in columns)]).empty_table().select(READ)
    copied = _copied(pieces_of(having, name), columns)
    referred = [rows for each in having if (rows := each.sources[name].referenced) is not None]
    blocks = (block.select(list(columns)) for rows in referred for block in rows.blocks())
    return pa.concat_tables([*copied, *blocks])


def _copied(pieces: Mapping[Path, list[int] | None], columns: Sequence[str]) -> list[pa.Table]:
    if not pieces:
        return []
    parquet, files = ds.ParquetFileFormat(), LocalFileSystem()
    parts = [parquet.make_fragment(str(path), files, row_groups=groups) for path, groups in pieces.items()]
    rows = ds.FileSystemDataset(parts, parts[0].physical_schema, parquet, files)
    return [rows.to_table(columns=list(columns))]


def percent_of(part: Fraction) -> str:
    """Say a share without rounding something to nothing, nor nearly all to all.

    >>> [percent_of(Fraction(*each)) for each in ((32, 3584), (1, 10**6), (99, 100), (1, 1))]
    ['0.89 %', 'under 0.01 %', '99 %', '100 %']
    """
    percent = float(100 * part)
    if 0 < percent < 0.01:  # noqa: PLR2004
        return "under 0.01 %"
    if 99.99 < percent < 100:  # noqa: PLR2004
        return "over 99.99 %"
    return f"{percent:.2f}".rstrip("0").rstrip(".") + " %"


def drawn(advice: Advice) -> DelayFacts:
    """Give what the curve of a stream's delays is drawn from, and the lines behind it."""
    from expectations.report.charts.delays import DelayFacts, DelayLine, spread

    delays, current, rungs = advice.delays, advice.policy.delay, advice.rungs
    low, high = min(rungs), max(*rungs, min(delays.longest, 4 * max(rungs)), 1)
    bend = max(abs(current), abs(advice.advised or 0), high // 16, 1) // 2 or 1
    few = min(DelayFacts.WAITS, max(LEAST_WAITS, MOST_PASSED // delays.events))
    some = spread(low, high, bend, few, rungs)
    waits = {delay: delays.wait(delay) for delay in some}
    late = {delay: delays.late(delay) for delay in spread(low, high, bend, DelayFacts.LATE, rungs)}
    return DelayFacts(
        flow=advice.flow.name,
        stream=advice.stream.name,
        span=advice.known.moments.span(*advice.span),
        events=delays.events,
        share=percent_of(advice.share),
        current=current,
        advised=advice.advised,
        bend=bend,
        late=late,
        half={delay: wait.half for delay, wait in waits.items() if wait.half is not None},
        most={delay: wait.most for delay, wait in waits.items() if wait.most is not None},
        lines=tuple(
            DelayLine(
                delay=delay,
                spelled=spell(delay),
                late=late[delay],
                share=percent_of(Fraction(late[delay], delays.events)),
                half=waits[delay].half,
                most=waits[delay].most,
            )
            for delay in rungs
        ),
    )


def chosen_delay(about: Reported) -> Stream | None:
    """Find the stream whose delay is a question: of several the one that takes in most; None where there is none."""
    found = [each for each in about.flow.streams.values() if has_delay(each)]
    return max(reversed(found), key=lambda each: _taken_in(about, each), default=None)


def has_delay(stream: Stream) -> bool:
    """Say whether a stream makes CTIs of its own behind what it takes from one input."""
    policy = stream.policy
    makes = isinstance(policy, AdvanceTimePolicy) and bool(policy.events or policy.duration)
    return stream.operator == MADE_BY and makes and len(stream.inputs) == 1


def _taken_in(about: Reported, stream: Stream) -> int:
    """Count the rows that a stream took in, by what the commits say."""
    return sum(counted(entry, stream.name).get("in", 0) for entry in about.of(stream.name).published)


def advising(about: Reported, stream: Stream) -> str:
    """Spell the command that says what each delay of a stream would have done with the rows of a page."""
    ends = [] if about.span is None else map(about.known.moments.argument, about.span)
    spans = zip(("--start", "--end"), ends, strict=False)
    return about.known.command("advise", stream.name, *(word for pair in spans for word in pair))


def delays_of(about: Reported, stream: Stream, most: int = ON_A_PAGE) -> DelayFacts | None:
    """Give what each delay of a stream would have done in a whole run; None where that would be much to read.

    What the stream took in may be gone by now, or be in files that changed: then there is none either.

    Args:
        about: the run.
        stream: one that has a delay.
        most: rows that are read for it.
    """
    known, policy, given = about.known, stream.policy, stream.inputs[0]
    is_small = 0 < _taken_in(about, stream) <= most
    if not (known.stands and is_small and isinstance(policy, AdvanceTimePolicy)):
        return None
    rows = known.state.published
    try:
        start = max(rows[0].span.start, kept_from(known) if given in known.sources else 0)
        span = (start, rows[-1].span.end)
        delays = Delays(policy, history_of(known, about.flow, stream), *span, final=final_of(known, policy))
    except (PulselineError, OSError):
        return None
    if not delays.events:
        return None
    return drawn(
        Advice(known=known, flow=about.flow, stream=stream, policy=policy, share=SHARE, span=span, delays=delays)
    )
