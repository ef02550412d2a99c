"""`pulseline advise`: which delay an advance_time stream should have, by what each would have done with its history."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow.fs import LocalFileSystem

from pipelines.engine.columnar.columns import ORDER_FIELDS, instant_text, kinds, ticks
from pipelines.engine.columnar.keys import KeyIndex, canonical_keys
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.commits.readers import published
from pipelines.engine.files.ordered import in_order
from pipelines.engine.landing.manifest import read_sequence
from pipelines.engine.landing.segments import pieces_of, removed_among
from pipelines.engine.tasks.by_time import met_by_time, numbering
from pipelines.flows.definition import flow_from_json
from pipelines.flows.durations import spell
from pipelines.flows.errors import DefinitionError
from pipelines.flows.grid import cut_at
from pipelines.jobs.environment.access import opened
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.parameters import parameters_of
from pipelines.jobs.environment.settings import flow_file, load_flow, read_settings
from pipelines.jobs.facts.advising import Delays, History, written_up
from pipelines.jobs.facts.history import ended_at
from pipelines.jobs.runs.known import offered, open_run
from pipelines.jobs.text.moments import NOTHING
from pipelines.jobs.text.tables import table_text
from pipelines.operators.advance_time import AdvanceTimePolicy, PromiseAtEnd
from pipelines.operators.plain_words import counted, spoken
from pipelines.operators.rows import NULL, Shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pipelines.flows.model import Flow, Source, Stream
    from pipelines.jobs.runs.known import KnownRun

    Facts = dict[str, Any]

READ = ("kind", "arrival", "place", "event_time", "event_end")
MADE_BY = "advance_time"
MOST_PASSED, LEAST_WAITS = 10_000_000, 12
"""Events that are passed over to draw waits, about; and how many delays are drawn of however many events."""


@dataclass(frozen=True, kw_only=True)
class AdviseRequest:
    """What was asked for, as it was typed."""

    flow: str
    stream: str | None = None
    share: float = 0.99
    run: str = "main"
    start: str | None = None
    end: str | None = None
    svg: str | None = None
    as_json: bool = False
    params: Sequence[str] = ()


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


def advise(wanted: AdviseRequest, tell: Callable[[str], object]) -> None:
    """Print what each delay of an advance_time stream would have done, and the smallest that gets a share on time.

    Args:
        wanted: the flow, the stream and the share.
        tell: prints a text.

    Raises:
        WrongUse: no such flow, run or stream, none that has a delay, nothing published, or a share that is none.
        FlowError: the flow's file makes no sense.
    """
    share = _share(wanted.share)
    known = open_run(wanted.flow, wanted.run)
    flow = _flow(known, wanted.params)
    stream, policy = _chosen(known, flow, wanted.stream)
    file = _picture_file(wanted.svg)
    if not known.stands:
        raise WrongUse(known.nothing_yet())
    span = _span(known, flow, wanted, _kept_from(known) if stream.inputs[0] in known.sources else 0)
    delays = Delays(policy, _history(known, flow, stream), *span, final=_final(known, policy))
    if not delays.events:
        raise WrongUse(f"no event of {stream.inputs[0]} arrived in this span, so no delay can be judged by it")
    advice = Advice(known=known, flow=flow, stream=stream, policy=policy, share=share, span=span, delays=delays)
    if file is not None:
        file.write_text(_drawn(advice), encoding="utf-8")
        opened(file)
    if wanted.as_json:
        tell(json.dumps(_facts(advice) | {"svg": None if file is None else str(file)}, ensure_ascii=False))
        return
    for line in _lines(advice):
        tell(line)
    if file is not None:
        tell(f"the curve: {file}")


def _share(share: float) -> Fraction:
    if not 0 < share <= 1:
        raise WrongUse(f"--share must be above 0 and at most 1, such as 0.99 for 99 % on time; it is {share:g}")
    return Fraction(str(share))


def _flow(known: KnownRun, params: Sequence[str]) -> Flow:
    """Give the flow as its file has it now; as the run had it where the file is gone."""
    settings = read_settings()
    try:
        flow_file(settings, known.called)
    except WrongUse:
        if params:
            raise
        return flow_from_json(known.definition)
    return load_flow(settings, known.called, {**known.given, **parameters_of(params)})


def _chosen(known: KnownRun, flow: Flow, asked: str | None) -> tuple[Stream, AdvanceTimePolicy]:
    """Find the stream that is meant, and see that its delay is a question."""
    there = [name for name, stream in flow.streams.items() if stream.operator == MADE_BY]
    if not there:
        raise WrongUse(f"no stream of {flow.name} advances time (`advance_time`), so there is no delay to choose")
    if asked is None and len(there) > 1:
        some = known.command("advise", there[0])
        raise WrongUse(f"{len(there)} streams of {flow.name} advance time: {', '.join(there)}; name one: {some}")
    name = there[0] if asked is None else asked
    if name not in there:
        made = flow.streams.get(name)
        article = "an" if made and made.operator[0] in "aeiou" else "a"
        is_it = f"`{name}` is {article} {made.operator}, which has no delay" if made else ""
        what = is_it or f"no stream `{name}` in {flow.name}"
        raise WrongUse(what + offered(name, there))
    stream = flow.streams[name]
    policy = stream.policy
    if not isinstance(policy, AdvanceTimePolicy) or not (policy.events or policy.duration):
        raise WrongUse(f"`{name}` makes no CTIs of its own (it has no `every`), so its delay changes nothing")
    if len(stream.inputs) > 1:
        raise WrongUse(f"`{name}` imports CTIs of {', '.join(stream.inputs[1:])}; only streams of one input are judged")
    return stream, policy


def _picture_file(svg: str | None) -> Path | None:
    if svg is None:
        return None
    file = Path(svg)
    if file.is_dir() or not file.absolute().parent.is_dir():
        raise WrongUse(f"--svg must be a file in a folder that is there, such as delays.svg; it is `{svg}`")
    return file


def _span(known: KnownRun, flow: Flow, wanted: AdviseRequest, kept: int) -> tuple[int, int]:
    """Give the span that is judged; rows that landed before `kept` are no longer there."""
    rows = known.state.published
    start = rows[0].span.start if wanted.start is None else cut_at(flow, wanted.start, "start")
    end = rows[-1].span.end if wanted.end is None else cut_at(flow, wanted.end, "end")
    if end <= start:
        raise WrongUse(f"--end must be after --start; they are {wanted.start} and {wanted.end}")
    return max(start, rows[0].span.start, kept), min(end, rows[-1].span.end)


def _kept_from(known: KnownRun) -> int:
    """Give the instant from which on all landed rows are kept, in ticks; 0 where none were removed."""
    gone = removed_among(_landing(known), _numbers(known))
    return max((each.end for each in gone), default=0)


def _numbers(known: KnownRun) -> list[int]:
    return sorted({number for entry in known.state.published for number in entry.sequences})


def _final(known: KnownRun, policy: AdvanceTimePolicy) -> int | None:
    """Give when the stream ended, where it promises infinity there."""
    return ended_at(_landing(known), known.state) if policy.at_end is PromiseAtEnd.INFINITY else None


def _landing(known: KnownRun) -> Path:
    return landed_path(known.root)


def _history(known: KnownRun, flow: Flow, stream: Stream) -> History:
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


def _percent(part: Fraction) -> str:
    """Say a share without rounding something to nothing, nor nearly all to all.

    >>> _percent(Fraction(32, 3584)), _percent(Fraction(1, 10**6)), _percent(Fraction(99, 100)), _percent(Fraction(1))
    ('0.89 %', 'under 0.01 %', '99 %', '100 %')
    """
    percent = float(100 * part)
    if 0 < percent < 0.01:  # noqa: PLR2004
        return "under 0.01 %"
    if 99.99 < percent < 100:  # noqa: PLR2004
        return "over 99.99 %"
    return f"{percent:.2f}".rstrip("0").rstrip(".") + " %"


def _rows(advice: Advice) -> list[Facts]:
    """Say of each delay that is shown what it would have done."""
    found = []
    for delay in advice.rungs:
        late, wait = advice.delays.late(delay), advice.delays.wait(delay)
        found.append(
            {
                "delay": spell(delay),
                "delay_us": delay,
                "late": late,
                "share_late": round(late / advice.delays.events, 8),
                "half_wait_us": wait.half,
                "most_wait_us": wait.most,
                "unreleased": wait.left,
                "current": delay == advice.policy.delay,
                "advised": delay == advice.advised,
            }
        )
    return found


def _facts(advice: Advice) -> Facts:
    exact = advice.exact
    return {
        "flow": advice.flow.name,
        "run": advice.known.run,
        "stream": advice.stream.name,
        "input": advice.stream.inputs[0],
        "start": instant_text(advice.span[0]),
        "end": instant_text(advice.span[1]),
        "events": advice.delays.events,
        "untimed": advice.delays.untimed(advice.policy.delay),
        "late_whatever_the_delay": advice.delays.hopeless,
        "share": float(advice.share),
        "current": spell(advice.policy.delay),
        "current_us": advice.policy.delay,
        "smallest_us": None if exact in {None, NULL} else exact,
        "advised": None if advice.advised is None else spell(advice.advised),
        "advised_us": advice.advised,
        "delays": _rows(advice),
    }


def _lines(advice: Advice) -> Iterable[str]:
    delays, stream = advice.delays, advice.stream
    span = advice.known.moments.span(*advice.span)
    events = counted(delays.events, "event")
    yield f"{advice.flow.name} · run {advice.known.run} · {stream.name}, which advances the time of {stream.inputs[0]}"
    yield (
        f"exact for these {events} of {span} ({advice.known.moments.name}), {_every(advice)} as in the flow; "
        "the future may differ"
    )
    yield ""
    yield _table(_rows(advice), delays.events)
    yield ""
    yield from _notes(advice)
    yield from _advice(advice)


def _every(advice: Advice) -> str:
    policy = advice.policy
    said = [f"events: {policy.events}"] if policy.events else []
    said += [f"duration: {spell(policy.duration)}"] if policy.duration else []
    by = f" and `by: {', '.join(advice.stream.by)}`" if advice.stream.by else ""
    return f"`every: {{{', '.join(said)}}}`{by}"


def _table(rows: Sequence[Facts], events: int) -> str:
    columns = {
        "delay": [row["delay"] for row in rows],
        "late": [f"{row['late']:,}" for row in rows],
        "share late": [_percent(Fraction(row["late"], events)) for row in rows],
        "half wait at most": [_spoken(row["half_wait_us"]) for row in rows],
        "99 % wait at most": [_spoken(row["most_wait_us"]) for row in rows],
        "not released yet": [f"{row['unreleased']:,}" if row["unreleased"] else NOTHING for row in rows],
        "": [_mark(row) for row in rows],
    }
    return table_text(columns, list(columns)[:-1])


def _mark(row: Facts) -> str:
    said = [*(["the flow's"] if row["current"] else []), *(["enough"] if row["advised"] else [])]
    return f"← {' and '.join(said)}" if said else ""


def _spoken(wait: int | None) -> str:
    return NOTHING if wait is None else spoken(wait)


def _notes(advice: Advice) -> Iterable[str]:
    delays = advice.delays
    yield (
        f"late: starts before the newest CTI. Wait: of an event on time, from its arrival at {advice.stream.name} "
        "to the first CTI past its start; one that no CTI had passed when the history ends is not released yet."
    )
    if advice.stream.shape is Shape.EDGE:
        yield "Start and end of an event count each: a start by its start, an end by its end."
    if delays.hopeless:
        behind = counted(delays.hopeless, "event is", "events are")
        yield f"{behind} late whatever the delay: CTIs of the input are past them."
    untimed = delays.untimed(advice.policy.delay)
    if untimed:
        yield f"{counted(untimed, 'event has', 'events have')} no time, or no end: no promise can be held against it."
    if _otherwise(advice):
        yield (
            f"The rows of {advice.stream.inputs[0]} are those of run {advice.known.run}, "
            "which made them otherwise than the flow's file says now."
        )


def _otherwise(advice: Advice) -> bool:
    """Say whether what leads to the stream is defined otherwise than when the run made it; `about` says nothing."""
    try:
        made = flow_from_json(advice.known.definition)
    except DefinitionError:
        return True
    given = advice.stream.inputs[0]
    return _behind(advice.flow, given) != _behind(made, given)


def _behind(flow: Flow, name: str) -> list[Source | Stream]:
    """Give what a stream or source is made by, and all that leads to it."""
    return [replace(made, about="") for made in flow.behind(name)]


def _advice(advice: Advice) -> Iterable[str]:
    delays, name, share = advice.delays, advice.stream.name, _percent(advice.share)
    exact, advised = advice.exact, advice.advised
    if exact is None or advised is None:
        most = _percent(Fraction(delays.events - delays.hopeless, delays.events))
        yield f"No delay gets {share} on time: at most {most} can be; ask for less: --share"
        return
    on_time = delays.events - delays.late(advised)
    smallest = "any does" if exact == NULL else f"{spell(exact)} is the smallest that does"
    yield (
        f"For {share} on time {spell(advised)} is enough: {on_time:,} of {delays.events:,} are, "
        f"and half of them wait at most {_spoken(delays.wait(advised).half)} ({smallest})."
    )
    if advised == advice.policy.delay:
        yield f"next: nothing to change; `delay: {spell(advised)}` is what `{name}` has"
        return
    place = _place(name, advice.flow.sources.get(advice.stream.inputs[0]), advice.policy)
    yield f"next: write `delay: {spell(advised)}` under {place}{_where(advice)}{_again(advice)}"


def _place(name: str, source: Source | None, policy: AdvanceTimePolicy) -> str:
    """Say where a file has the settings of a stream: in the source that it binds, or, of one of a module, in there."""
    if source is not None and _is_told_by(source, policy):
        return f"`advance_time` of the source `{source.name}` (it holds for every stream that binds it)"
    reference, _, inner = name.rpartition(".")
    above, _, number = reference.rpartition(".")
    reference = above if number.isdecimal() else reference
    if not reference:
        return f"`{name}`"
    given = f"where that has a parameter for it, under `with:` of `{reference}`"
    return f"`{inner}` of the module that `{reference}` refers to ({given})"


def _is_told_by(source: Source, policy: AdvanceTimePolicy) -> bool:
    """Say whether a stream that binds a source has all of its settings from there."""
    if source.advancing is None:
        return False
    told = {**source.advancing, **source.advancing.get("every", {})}
    return all(getattr(policy, key) == value for key, value in told.items() if key != "every")


def _where(advice: Advice) -> str:
    return f" in {advice.flow.file}" if advice.flow.file else ""


def _again(advice: Advice) -> str:
    """Spell the command that makes a backfill follow the new delay; what a stream published stays."""
    rows = advice.known.state.published
    if any(str(row.kind) != "interval" for row in rows):
        return ", and stream into a run of its own"
    return f", then {advice.known.run_command(rows[0].span.start, rows[-1].span.end)}"


def _drawn(advice: Advice) -> str:
    from expectations.report.charts.delays import DelayFacts, spread
    from expectations.report.figure import delays_figure

    delays, current = advice.delays, advice.policy.delay
    rungs = advice.rungs
    low, high = min(rungs), max(*rungs, min(delays.longest, 4 * max(rungs)), 1)
    bend = max(abs(current), abs(advice.advised or 0), high // 16, 1) // 2 or 1
    few = min(DelayFacts.WAITS, max(LEAST_WAITS, MOST_PASSED // delays.events))
    some = spread(low, high, bend, few, rungs)
    waits = [delays.wait(delay) for delay in some]
    facts = DelayFacts(
        flow=advice.flow.name,
        stream=advice.stream.name,
        span=advice.known.moments.span(*advice.span),
        events=delays.events,
        share=_percent(advice.share),
        current=current,
        advised=advice.advised,
        bend=bend,
        late={delay: delays.late(delay) for delay in spread(low, high, bend, DelayFacts.LATE, rungs)},
        half={delay: wait.half for delay, wait in zip(some, waits, strict=True) if wait.half is not None},
        most={delay: wait.most for delay, wait in zip(some, waits, strict=True) if wait.most is not None},
    )
    return delays_figure(facts)
