"""`pulseline advise`: which delay an advance_time stream should have, by what each would have done with its history."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.engine.columnar.columns import instant_text
from pipelines.flows.definition import flow_from_json
from pipelines.flows.durations import spell
from pipelines.flows.errors import DefinitionError
from pipelines.flows.grid import cut_at
from pipelines.jobs.environment.access import opened
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.parameters import parameters_of
from pipelines.jobs.environment.settings import flow_file, load_flow, read_settings
from pipelines.jobs.facts.advising import Delays
from pipelines.jobs.facts.delays import MADE_BY, Advice, drawn, final_of, history_of, kept_from, percent_of
from pipelines.jobs.runs.known import offered, open_run
from pipelines.jobs.text.moments import NOTHING
from pipelines.jobs.text.tables import table_text
from pipelines.operators.advance_time import AdvanceTimePolicy
from pipelines.operators.plain_words import counted, spoken
from pipelines.operators.rows import NULL, Shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pipelines.flows.model import Flow, Source, Stream
    from pipelines.jobs.runs.known import KnownRun

    Facts = dict[str, Any]


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
    span = _span(known, flow, wanted, kept_from(known) if stream.inputs[0] in known.sources else 0)
    delays = Delays(policy, history_of(known, flow, stream), *span, final=final_of(known, policy))
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
        "share late": [percent_of(Fraction(row["late"], events)) for row in rows],
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
    delays, name, share = advice.delays, advice.stream.name, percent_of(advice.share)
    exact, advised = advice.exact, advice.advised
    if exact is None or advised is None:
        most = percent_of(Fraction(delays.events - delays.hopeless, delays.events))
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
    from expectations.report.figure import delays_figure

    return delays_figure(drawn(advice))
