"""A flow as a drawing of boxes and arrows, its policies in words: what a person wants to see before running it."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from pipelines.flows.definition import fingerprint_of
from pipelines.flows.durations import spell
from pipelines.flows.legs import MAIN, legs_of
from pipelines.flows.model import AUTO_BUCKETS
from pipelines.flows.plan import plan
from pipelines.jobs.text.tables import width
from pipelines.operators.plain_words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipelines.flows.model import Flow, Source, Stream
    from pipelines.flows.plan import Stage

WIDEST, NARROWEST = 84, 40
STEM = 12
"""Column in which arrows run."""
HASH = 12
SHAPES = {"POINT": "points", "INTERVAL": "intervals", "EDGE": "edges"}


def drawn(flow: Flow) -> Iterator[str]:
    """Draw a flow, a line at a time: sources, then stage by stage the streams that it runs."""
    wide = max(NARROWEST, min(WIDEST, width()))
    yield f"{flow.name}" + (f": {flow.about}" if flow.about else "")
    yield f"{flow.file} · an interval each {spell(flow.every)} ({flow.timezone}) · {_bucket_words(flow)}"
    yield from _module_words(flow)
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


def _bucket_words(flow: Flow) -> str:
    """Count the buckets; a flow that leaves them to its runs has another fingerprint in each."""
    if flow.buckets == AUTO_BUCKETS:
        return "buckets: auto, which a run chooses when it begins"
    return f"{counted(flow.buckets, 'bucket')} · fingerprint {fingerprint_of(flow)[:HASH]}"


def _module_words(flow: Flow) -> Iterator[str]:
    """Say which modules were pasted in, a line a reference."""
    for use in (each for outer in flow.modules for each in outer.all):
        given = ", ".join(f"{name} {value}" for name, value in use.given.items())
        told = [f"{use.name}: module {use.module}{f' ({given})' if given else ''}"]
        told += [f"{use.instances} instances, `{use.name}.0` to `{use.name}.{use.instances - 1}`"] * (use.instances > 1)
        told += ["a region of its own"] * use.parallel
        gives = ", ".join(
            f"{use.name}.{out} is {stream}" for out, stream in use.outputs.items() if f"{use.name}.{out}" != stream
        )
        yield ", ".join(told) + (f"; {gives}" if gives and use.instances == 1 else "")
    if flow.regions > 1:
        yield from _leg_words(flow)


def _leg_words(flow: Flow) -> Iterator[str]:
    """Say how many regions there are, in which legs they run live, and what waits in which queue."""
    legs = legs_of(flow)
    names = ", ".join(leg.name for leg in legs)
    told = f"{flow.regions} regions by the rules of StreamBase"
    yield f"{told}; live in {counted(len(legs), 'leg')} with commits of their own ({names}), else in one piece"
    for leg in legs:
        for writer, streams in leg.reads.items():
            crossing = ", ".join((*streams, *(leg.sources if writer == MAIN else ())))
            if crossing:
                yield f"queue {writer} ▷ {leg.name}: {crossing}; at most {counted(leg.most_behind, 'row')} behind"


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
        f"= {source.feed.words()}",
        f"{SHAPES[source.shape.name]} at `{source.time}`{end}{edges}; a row arrives {_arrives(source)}",
        f"key: {', '.join(source.key)}",
    ]
    if source.rename:
        words.append("renamed: " + ", ".join(f"{old} to {new}" for old, new in source.rename.items()))
    return [*([source.about] if source.about else []), *words]


def _arrives(source: Source) -> str:
    return f"at `{source.arrival}`" if source.arrival else "when it lands"


def _stage_words(flow: Flow, stage: Stage) -> str:
    if not stage.reads:
        return f"stage {stage.index}: one task that reads the clock alone"
    if stage.key:
        tasks = (
            "one task a bucket" if flow.buckets == AUTO_BUCKETS else f"{counted(flow.buckets, 'task')}, one a bucket"
        )
        return f"stage {stage.index}: by {', '.join(stage.key)}, {tasks}"
    return f"stage {stage.index}: one task that sees every row in one order"


def stream_words(stream: Stream) -> list[str]:
    """Say what a stream's operator does."""
    inputs = f" of {', '.join(stream.feeding)}" if stream.inputs else ""
    scope = f", for each {', '.join(stream.by)}" if stream.by else ""
    about = [stream.about] if stream.about else []
    within = (f"within it {each.name} = {each.operator} of {', '.join(each.inputs)}" for each in stream.body.values())
    return [*about, f"= {stream.operator}{inputs}{scope}", *stream.policy.words(stream), *within]
