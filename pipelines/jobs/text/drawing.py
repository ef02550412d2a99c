"""A flow as a drawing of boxes and arrows, its policies in words: what a person wants to see before running it."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from pipelines.flows.durations import spell
from pipelines.flows.model import Placing
from pipelines.flows.plan import plan
from pipelines.jobs.text.moments import counted, spoken
from pipelines.jobs.text.tables import width

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipelines.flows.model import FeedSpec, Flow, Source, Stream, TableSpec
    from pipelines.flows.plan import Stage
    from pipelines.operators.advance_time import AdvanceTimePolicy
    from pipelines.operators.heartbeat import HeartbeatPolicy
    from pipelines.operators.merge import MergePolicy

WIDEST, NARROWEST = 84, 40
STEM = 12
"""Column in which arrows run."""
HASH = 12
SHAPES = {"POINT": "points", "INTERVAL": "intervals", "EDGE": "edges"}


def drawn(flow: Flow) -> Iterator[str]:
    """Draw a flow, a line at a time: sources, then stage by stage the streams that it runs."""
    wide = max(NARROWEST, min(WIDEST, width()))
    yield f"{flow.name}" + (f": {flow.about}" if flow.about else "")
    yield (
        f"{flow.file} · an interval each {spell(flow.every)} ({flow.timezone}) · {counted(flow.buckets, 'bucket')} · "
        f"fingerprint {flow.fingerprint()[:HASH]}"
    )
    yield ""
    above: list[str] = []
    for source in flow.sources.values():
        yield from _box(source.name, _source_words(source), wide)
        above = [source.name]
    for stage in plan(flow).stages:
        for place, name in enumerate(stage.streams):
            stream = flow.streams[name]
            linked = not set(above).isdisjoint(stream.inputs)
            yield from _arrow(_stage_words(flow, stage) if place == 0 else "", joined=linked)
            yield from _box(name, stream_words(stream), wide, stream.sides)
            above = [name, *stream.sides]
    yield ""


def _arrow(note: str, *, joined: bool) -> Iterator[str]:
    stem = " " * STEM
    yield f"{stem}{'│' if joined else ' '}{'   ' + note if note else ''}".rstrip()
    if joined:
        yield f"{stem}▼"


def _box(title: str, words: Sequence[str], wide: int, sides: Sequence[str] = ()) -> Iterator[str]:
    inner = wide - 4
    lines = [line for text in words for line in textwrap.wrap(text, inner, subsequent_indent="  ")]
    yield f"┌─ {title} ".ljust(wide - 1, "─") + "┐"
    for line in lines:
        yield f"│ {line:<{inner}} │"
    for side in sides:
        yield f"│ {'':<{inner}} ├──▶ {side}"
    yield "└".ljust(wide - 1, "─") + "┘"


def _source_words(source: Source) -> list[str]:
    end = f" until `{source.end}`" if source.end else ""
    said = "start, end" if source.event_id else "data"
    edges = f", {said} or cti by `{source.edge}`" if source.edge else ""
    edges += f", one event by `{source.event_id}`" if source.event_id else ""
    words = [
        f"= {_feed_words(source.feed)}",
        f"{SHAPES[source.shape.name]} at `{source.time}`{end}{edges}; a row arrives {_arrives(source)}",
        f"key: {', '.join(source.key)}",
    ]
    if source.rename:
        words.append("renamed: " + ", ".join(f"{old} to {new}" for old, new in source.rename.items()))
    return [*([source.about] if source.about else []), *words]


def _arrives(source: Source) -> str:
    return f"at `{source.arrival}`" if source.arrival else "when it lands"


def _feed_words(feed: FeedSpec) -> str:
    if feed.kind == "builtin":
        return f"{feed.name}, which comes with a package"
    zone = f", times without zone are {feed.timezone}" if feed.timezone else ""
    where = ", landed by reference" if feed.landing is Placing.REFERENCE else ""
    if feed.kind == "socket":
        return f"lines of {feed.format} from the socket {feed.paths[0]}{zone}"
    if feed.kind == "kafka":
        return f"values of {feed.format} in the topic {feed.paths[0]} of Kafka, by {', '.join(feed.brokers)}{zone}"
    if feed.table is not None:
        return _table_words(feed, feed.table) + zone
    return f"{feed.kind} files {', '.join(feed.paths)}{zone}{where}"


def _table_words(feed: FeedSpec, table: TableSpec) -> str:
    which = "the commits, as they come," if feed.kind == "commits" else str(table)
    added = f"; `{table.committed}` is when a row was committed" if table.committed else ""
    return f"{which} of the Delta table {feed.paths[0]}{added}"


def _stage_words(flow: Flow, stage: Stage) -> str:
    if not stage.reads:
        return f"stage {stage.index}: one task that reads the clock alone"
    if stage.key:
        return f"stage {stage.index}: by {', '.join(stage.key)}, {counted(flow.buckets, 'task')}, one a bucket"
    return f"stage {stage.index}: one task that sees every row in one order"


def stream_words(stream: Stream) -> list[str]:
    """Say what a stream's operator does."""
    from pipelines.operators.advance_time import AdvanceTimePolicy
    from pipelines.operators.heartbeat import HeartbeatPolicy
    from pipelines.operators.merge import MergePolicy
    from pipelines.operators.metronome import MetronomePolicy

    inputs = ", ".join(stream.inputs)
    scope = f", for each {', '.join(stream.by)}" if stream.by else ""
    if isinstance(stream.policy, HeartbeatPolicy):
        words = [f"= heartbeat of {inputs}{scope}", *heartbeat_words(stream.policy)]
    elif isinstance(stream.policy, MetronomePolicy):
        words = ["= metronome", f"a timer at each multiple of {spoken(stream.policy.interval)} of the clock"]
    elif isinstance(stream.policy, AdvanceTimePolicy):
        words = [f"= advance_time of {stream.inputs[0]}{scope}", *advance_time_words(stream, stream.policy)]
    elif isinstance(stream.policy, MergePolicy):
        words = [f"= merge of {inputs}{scope}", *merge_words(stream, stream.policy)]
    else:
        words = [f"= {stream.operator} of {inputs}{scope}", *relation_words(stream.operator, stream.policy)]
    return [*([stream.about] if stream.about else []), *words]


RELEASED = "once the older of its sides' promises is past"


def relation_words(operator: str, policy: Any) -> list[str]:  # noqa: ANN401 - of one of several operators
    """Say in words what an operator does that events go through under CTIs."""
    return {
        "filter": lambda: [f"lets events through of which `{policy.where}` is true; the others go to the ledger"],
        "project": lambda: [f"{name} is {told}" for name, told in policy.parsed()],
        "shift_time": lambda: [
            f"events and promises are {spoken(abs(policy.shift))} {'later' if policy.shift >= 0 else 'earlier'}"
        ],
        "alter_duration": lambda: [f"every event lasts {spoken(policy.duration)} from its start on"],
        "union": lambda: [f"an event leaves {RELEASED} its start, in order of starts"],
        "join": lambda: _join_words(policy.on),
        "window": lambda: _window_words(policy),
        "deduplicate": lambda: _deduplicate_words(policy),
    }[operator]()


def _join_words(on: tuple[str, ...]) -> list[str]:
    equal = f" whose {', '.join(on)} {'is' if len(on) == 1 else 'are'} equal" if on else ""
    return [f"pairs events{equal} while both last; a pair leaves {RELEASED} its start"]


def _window_words(policy: Any) -> list[str]:  # noqa: ANN401 - as it is asked
    hop = "" if policy.hop == policy.size else f", a new one each {spoken(policy.hop)}"
    group = f" for each {', '.join(policy.group)}" if policy.group else ""
    leaves = f"a window's row{group} leaves with the first promise at or past its end"
    measures = ", ".join(text.replace("=", " is ", 1) for text in policy.measures)
    return [f"windows of {spoken(policy.size)}{hop}, counted from 1970 UTC; {leaves}", measures]


def _deduplicate_words(policy: Any) -> list[str]:  # noqa: ANN401 - as it is asked
    equal = f"of rows whose {', '.join(policy.on)} {'is' if len(policy.on) == 1 else 'are'} equal"
    same = equal if policy.on else "of rows that are equal in every column"
    words = [f"{same} the first leaves; one that comes again within {spoken(policy.within)} goes to the ledger"]
    words.append(f"a row is forgotten once time is past it by more than {spoken(policy.within)}")
    words.append(f"at most {counted(policy.max_kept, 'row')} of a key may be remembered, or the run stops")
    if policy.max_ahead is not None:
        words.append(f"a row more than {spoken(policy.max_ahead)} ahead of its arrival is compared by arrival")
    return words


def heartbeat_words(policy: HeartbeatPolicy) -> list[str]:
    """Say in words what a heartbeat does."""
    when = f"{spoken(policy.slack)} after its time" if policy.slack else "at its time"
    every = f"passes every row on, with a timer at each multiple of {spoken(policy.interval)} of event time"
    words = [f"{every}; where no row comes, the clock brings the timer, {when}"]
    if policy.acceleration != (1, 1):
        words.append(f"event time runs {policy.acceleration[0]}/{policy.acceleration[1]} times as fast as the clock")
    if policy.max_ahead is None:
        words.append("a time counts however far it runs ahead of its row's arrival")
    else:
        words.append(f"a time more than {spoken(policy.max_ahead)} ahead of its row's arrival does not count")
    words.append(f"a row that would give more than {policy.max_catch_up:,} timers does not count")
    if policy.expire is not None:
        words.append(f"the timers of a key stop after {spoken(policy.expire)} of silence")
    return words


def merge_words(stream: Stream, policy: MergePolicy) -> list[str]:
    """Say in words what a merge does."""
    ports = stream.ports
    named = f"the ports are {', '.join(stream.inputs)}"
    if ports is not None and ports.column is not None:
        named = f"the ports are {ports.column} {', '.join(str(value) for value in ports.values)}"
    held = "waits on" if policy.at_end.name == "HOLD" else "leaves in order"
    words = [
        f"rows leave in order of event time; {named}",
        f"a row waits until every port has shown that it has nothing earlier; what waits at the end {held}",
    ]
    if policy.max_held is not None:
        each = " of each " + ", ".join(stream.by) if stream.by else ""
        words.append(f"at most {counted(policy.max_held, 'row')}{each} may wait, or the run stops")
    if policy.max_ahead is not None:
        gone = f"is kept unchanged in {', '.join(stream.sides)}" if stream.sides else "goes to the ledger alone"
        words.append(f"a row more than {spoken(policy.max_ahead)} ahead of its arrival {gone}, and moves no port")
    return words


def advance_time_words(stream: Stream, policy: AdvanceTimePolicy) -> list[str]:
    """Say in words which promises are made, and what becomes of rows that break one."""
    after = [
        *([f"after every {counted(policy.events, 'event')}"] if policy.events is not None else []),
        *([f"each {spoken(policy.duration)} of event time"] if policy.duration is not None else []),
    ]
    shift = f"{spoken(abs(policy.delay))} {'before' if policy.delay > 0 else 'past'} " if policy.delay else "at "
    delay = f"{shift}the time of the event that causes it"
    promise = f"a promise (CTI) {' and '.join(after)}, {delay}" if after else "promises (CTIs) come with its input"
    late = {
        "DROP": "goes to the ledger alone",
        "ADJUST": "is moved to the promise where it reaches past it, else it goes to the ledger alone",
        "DIVERT": f"is kept unchanged in {', '.join(stream.sides)}",
    }[policy.late.name]
    if len(stream.inputs) > 1:
        taken = f"each promise of {stream.inputs[1]} is taken over"
        promise = f"{promise}; {taken}" if after else taken
    words = [promise, f"what starts before the newest promise {late}"]
    if policy.shape.name == "EDGE":
        closes = policy.late_end.name == "CLOSE_AT_CTI"
        words.append(f"an event whose end is too late {'ends at the newest promise' if closes else 'stays open'}")
    if policy.max_ahead is not None:
        words.append(f"an event more than {spoken(policy.max_ahead)} ahead of its arrival causes no promise")
    if policy.at_end.name == "INFINITY":
        words.append("when the stream ends, a last promise: everything")
    return words
