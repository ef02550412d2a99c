"""Parallel regions: what a reference says of its own, and how a flow is cut into legs that run at the same time.

A *region* is what runs at the reference to a module that asks for one; all else is `main`. Where streams of one region
read those of another, a row crosses: it waits in a queue until it is taken. A *leg* is the part of a region between
queues: the streams of one region whose rows have crossed equally often on the longest way. So a leg never waits for
itself, and legs never wait for each other in a circle.

Rules of docs/semantics.md: X7, X8, X9
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipelines.flows.errors import nearest, one_of
from pipelines.flows.model import MOST_BEHIND, main_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipelines.flows.model import Flow, ModuleUse
    from pipelines.flows.section import Section

MAIN = "main"
"""The region of all that stands in none of its own, and the leg that takes what lands."""
QUEUED, SYNCHRONOUS = "queued", "synchronous"
"""How a region of its own may be connected: by a queue, or as if it were none."""


@dataclass(frozen=True)
class OwnRegion:
    """What a reference says of the region that it runs in."""

    own: bool = False
    """Whether it runs in one of its own."""
    most_behind: int = MOST_BEHIND
    """Rows that may wait for it."""


def region_of(section: Section) -> OwnRegion:
    """Read what a reference says of its region.

    Raises:
        FlowError: `parallel` is neither true nor false, there is no such connection, `most_behind` is no number from 1
            on, or something is said of a queue that is not there.
    """
    parallel = _word_of(section, "parallel", ("true", "false"), "false") == "true"
    connection = _word_of(section, "connection", (QUEUED, SYNCHRONOUS), QUEUED)
    own = parallel and connection == QUEUED
    for key in ("connection", "most_behind"):
        if section.has(key) and not parallel:
            raise section.wrong(key, f"`{key}` beside no `parallel: true`", "`parallel: true`, or a reference without")
    if not section.has("most_behind"):
        return OwnRegion(own)
    if not own:
        came = f"`most_behind` beside `connection: {SYNCHRONOUS}`, which has no queue,"
        raise section.wrong("most_behind", came, f"`connection: {QUEUED}`, or no `most_behind`")
    most = section.count("most_behind", "a number of rows")
    if most < 1:
        raise section.wrong("most_behind", f"`most_behind: {most}`", "1 row or more")
    return OwnRegion(own, most)


def _word_of(section: Section, key: str, words: tuple[str, ...], otherwise: str) -> str:
    said = section.text(key, otherwise)
    if said not in words:
        raise section.wrong(key, f"`{key}: {said}`", one_of(words), nearest(said, words))
    return said


@dataclass(frozen=True, kw_only=True)
class Leg:
    """A part of a region between queues."""

    name: str
    """`main` of what takes what lands; else the reference's, with its number behind it from the second on."""
    region: str
    streams: tuple[str, ...]
    """In the order of the flow."""
    sources: tuple[str, ...]
    """Those that its streams read."""
    reads: Mapping[str, tuple[str, ...]]
    """By leg: the streams and side streams of it that cross to this one. What reads sources goes on behind `main`."""
    most_behind: int
    """Rows of one leg that may wait for it before that one waits."""


def legs_of(flow: Flow) -> tuple[Leg, ...]:
    """Give the legs that a flow is cut into, each behind all that it reads; one of a flow without regions of its own.

    Args:
        flow: with its legs, as a run has it, or with its modules, as a file has it.
    """
    named = flow.legs or cut(flow)
    return tuple(_leg(flow, name, named) for name in dict.fromkeys((MAIN, *_behind_each_other(flow, named))))


def in_legs(flow: Flow) -> Mapping[str, str]:
    """Give the leg of each stream where a flow has regions of its own; nothing where it has none."""
    named = flow.legs or cut(flow)
    return named if set(named.values()) - {MAIN} else {}


def cut(flow: Flow) -> dict[str, str]:
    """Give the leg of each stream by the modules of a flow."""
    apart = sorted(dict(_apart(flow.modules)), key=len, reverse=True)
    return cut_by(flow, {name: _innermost(name, apart) for name in flow.streams})


def _innermost(name: str, apart: Sequence[str]) -> str:
    """Give the region of a stream: the first, of those with longer names before others, in which it stands."""
    return next((each for each in apart if name.startswith(f"{each}.")), MAIN)


def cut_by(flow: Flow, regions: Mapping[str, str]) -> dict[str, str]:
    """Give the leg of each stream of a flow by the regions of the streams."""
    placed: dict[str, tuple[str, int]] = {}
    for name, stream in flow.streams.items():
        region = regions[name]
        read = [placed[main_of(given)] for given in stream.inputs if given not in flow.sources]
        placed[name] = region, max((crossed + (of != region) for of, crossed in read), default=0)
    crossings = {
        region: sorted({n for of, n in placed.values() if of == region}) for region in {MAIN, *regions.values()}
    }
    if crossings[MAIN][:1] != [0]:
        # What lands is taken by a leg of `main`, also where that makes nothing of it.
        crossings[MAIN].insert(0, 0)
    return {name: _named(region, crossings[region].index(crossed)) for name, (region, crossed) in placed.items()}


def _named(region: str, number: int) -> str:
    return f"{region}-{number + 1}" if number else region


def _apart(uses: tuple[ModuleUse, ...], known: tuple[tuple[str, str], ...] = ()) -> Iterator[tuple[str, int]]:
    """Name the references that have a region of their own, with their bound; within several instances, that of each."""
    for use in uses:
        names = [use.name]
        for first, other in known:
            names = [*dict.fromkeys(each for name in names for each in (name, _moved(name, first, other)))]
        if use.parallel:
            yield from ((name, use.most_behind) for name in names)
        several = [(f"{use.name}.0.", f"{use.name}.{number}.") for number in range(1, use.instances)]
        # Of instances within instances the inner ones are told apart first: names are those of the outer first one.
        yield from _apart(use.inner, (*several, *known))


def _moved(name: str, first: str, other: str) -> str:
    return other + name.removeprefix(first) if name.startswith(first) else name


def _behind_each_other(flow: Flow, named: Mapping[str, str]) -> Iterator[str]:
    """Give the legs so that each stands behind those that it reads."""
    waiting = dict.fromkeys(named[name] for name in flow.streams)
    reads = {leg: set(_crossing(flow, leg, named)) for leg in waiting}
    done: set[str] = {MAIN}
    waiting.pop(MAIN, None)
    while waiting:
        ready = next(leg for leg in waiting if reads[leg] <= done)
        waiting.pop(ready)
        done.add(ready)
        yield ready


def _crossing(flow: Flow, leg: str, named: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Give what crosses to a leg, by the leg that it comes from."""
    found: dict[str, dict[str, None]] = {}
    for name, stream in flow.streams.items():
        for given in stream.inputs if named[name] == leg else ():
            other = named.get(main_of(given), leg)
            if given not in flow.sources and other != leg:
                found.setdefault(other, {})[given] = None
    return {other: tuple(streams) for other, streams in found.items()}


def _leg(flow: Flow, name: str, named: Mapping[str, str]) -> Leg:
    streams = tuple(each for each in flow.streams if named[each] == name)
    reads = _crossing(flow, name, named)
    sources = dict.fromkeys(given for each in streams for given in flow.streams[each].inputs if given in flow.sources)
    bounds = dict(_apart(flow.modules))
    region = name.partition("-")[0]
    # Behind a region, `main` may be as far behind as that region may.
    near = [bounds[other.partition("-")[0]] for other in reads if other.partition("-")[0] in bounds]
    return Leg(
        name=name,
        region=region,
        streams=streams,
        sources=tuple(sources),
        reads={MAIN: (), **reads} if name != MAIN and (sources or not reads) else reads,
        most_behind=bounds.get(region, min(near, default=MOST_BEHIND)),
    )


def uncrossable(flow: Flow) -> Iterator[tuple[str, str]]:
    """Give the streams that import CTIs which bind keys to come from another leg, each with what it imports.

    A key that comes later is bound by what the imported stream promised last, which stands in the carry of its leg.
    """
    named = in_legs(flow)
    for name, stream in flow.streams.items():
        if stream.operator == "advance_time" and stream.by and len(stream.inputs) > 1:
            given = stream.inputs[1]
            if given not in flow.sources and not flow.key_of(given) and named and named[given] != named[name]:
                yield name, given
