"""From a YAML file to a validated flow, or to one line that says where it is wrong and what to write instead.

The order of the checks is the order of reading: YAML, keys, sources, the graph, then each stream behind what it reads.
The first thing that is wrong is the one that is told.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from pipelines.flows.checks import read_checks, read_checks_of_sides
from pipelines.flows.dividing import divided, said_once
from pipelines.flows.document import load
from pipelines.flows.durations import spell
from pipelines.flows.errors import nearest, one_of
from pipelines.flows.feeds.spec import Clock
from pipelines.flows.holding import ENDS, STARTS, read_holding
from pipelines.flows.loops import in_order
from pipelines.flows.model import AUTO_BUCKETS, WEEK, Flow, is_side
from pipelines.flows.modules import paste
from pipelines.flows.promising import binds_all_keys
from pipelines.flows.region import check_region, read_region
from pipelines.flows.section import Section
from pipelines.flows.sources import NAME, NAME_RULE, check_length, read_source
from pipelines.flows.streams import ADVANCING_KEYS, advancing, build
from pipelines.flows.zones import read_timezone

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipelines.flows.check import Check
    from pipelines.flows.model import Source
    from pipelines.flows.modules import Pasted

KEYS = (
    *("flow", "about", "owner", "every", "timezone", STARTS, ENDS, "buckets", "region", "keep_versions", "parameters"),
    *("sources", "modules", "streams"),
)
LATER = (
    *("module", "regions", "connections"),
    *("clock", "retention", "quality", "expectations"),
)
CLOCKS = {
    Clock.RECORDED: "a recording with arrivals of its own",
    Clock.WALL: "a live source whose rows arrive by the real clock",
}
DAY = 86_400_000_000
SHORTEST = 60_000_000
"""The shortest interval of a backfill: each is a landing and a commit."""
SHORTEST_KEPT = DAY // 24
"""The shortest time for which versions of tables stay: what somebody has open is to be there a while."""
MOST_BUCKETS = 1_024
OF_A_RUN = frozenset({"landed", "ledger"})
"""What each run has beside its sources and streams, and counts and hashes under these names."""
AUTO = "auto"


def read_flow(path: Path | str, parameters: Mapping[str, str] = MappingProxyType({})) -> Flow:
    """Read, check and freeze the flow of a file.

    Args:
        path: the YAML file; errors call it by this very name.
        parameters: what `${name}` stands for, before what the file's own `parameters:` say.

    Returns:
        The flow; what is allowed but looks like a mistake stands in its `warnings`.

    Raises:
        FlowError: the first thing that is wrong: its file, line, what came, what was expected, the nearest right word.
    """
    return _with_streams(*_frame(path, parameters))


def read_frame(path: Path | str) -> Flow:
    """Read a flow without its streams: its grid, its clock, and what its sources are.

    Nothing of operators is loaded, so this is quick; what is wrong with a stream is not seen.

    Args:
        path: the YAML file.

    Raises:
        FlowError: the first thing that is wrong with the rest.
    """
    return _frame(path, {})[1]


def _frame(path: Path | str, parameters: Mapping[str, str]) -> tuple[Section, Flow]:
    tree = load(Path(path))
    top = Section(str(path), "the flow", tree, MappingProxyType({}))
    top.only(KEYS, LATER)
    top = replace(top, parameters=_parameters(top, parameters))
    flow = Flow(
        name=_name(top, "flow", top.text("flow")),
        about=top.text("about", ""),
        asked=" ".join(top.text("owner", "").split()),
        every=_every(top),
        timezone=read_timezone(top, "timezone", "UTC") or "UTC",
        buckets=_buckets(top),
        sources={name: read_source(part, name) for name, part in _parts(top, "sources", "source")},
        streams={},
        region=read_region(top),
        keep_versions=_keep_versions(top),
        file=str(path),
        given=MappingProxyType(dict(parameters)),
    )
    _check_clock(top, flow)
    flow = _check_landing(top, flow)
    check_region(top, flow)
    starts, ends = read_holding(top, flow)
    return top, replace(flow, starts=starts, ends=ends)


def _check_clock(top: Section, flow: Flow) -> None:
    """See that all sources have one kind of clock: two have no common order of arrivals."""
    first = next(iter(flow.sources.values()))
    for name, source in flow.sources.items():
        if source.clock is not flow.clock:
            came = f"`{name}`, {CLOCKS[source.clock]}, beside `{first.name}`, {CLOCKS[first.clock]},"
            expected = "sources of one kind of clock; give the others a flow of their own"
            raise top.inner("sources", "`sources`").wrong(name, came, expected)


def _check_landing(top: Section, flow: Flow) -> Flow:
    """See that what lands by reference lands in one bucket: files of a feed are laid out for no key."""
    referring = [name for name, source in flow.sources.items() if source.feed.by_reference]
    if flow.buckets == AUTO_BUCKETS and referring:
        return replace(flow, buckets=1)
    for name in referring:
        if flow.buckets != 1:
            inside = top.inner("sources", "`sources`").inner(name, f"source `{name}`")
            feed = inside.inner("feed", f"the feed of source `{name}`")
            came = f"`landing: reference` beside {flow.buckets} buckets"
            expected = "`buckets: 1` at the top, or `landing: copy`, which cuts rows by their key"
            raise feed.wrong("landing", came, expected)
    return flow


def _parameters(top: Section, given: Mapping[str, str]) -> Mapping[str, str]:
    declared = top.words("parameters")
    for name in given:
        if name not in declared:
            came = f"a value for the parameter `{name}`, which the flow does not have,"
            expected = one_of(declared) if declared else "no parameters"
            raise top.wrong("parameters", came, expected, nearest(name, declared))
    return MappingProxyType(declared | dict(given))


def _name(section: Section, key: str, name: str) -> str:
    if not NAME.fullmatch(name):
        raise section.wrong(key, f"the name `{name}`", NAME_RULE)
    check_length(section, key, name)
    return name


def _every(top: Section) -> int:
    if not top.has("every"):
        return DAY
    every = top.ticks("every")
    if every < SHORTEST or (every % DAY and DAY % every):
        expected = f"whole days, or a part of a day that divides it, at least {spell(SHORTEST)}"
        raise top.wrong("every", f"`every: {spell(every)}`", expected)
    return every


def _keep_versions(top: Section) -> int:
    kept = top.ticks("keep_versions") if top.has("keep_versions") else WEEK
    if kept < SHORTEST_KEPT:
        expected = f"at least {spell(SHORTEST_KEPT)}: a reader takes a moment from finding a version to reading it"
        raise top.wrong("keep_versions", f"`keep_versions: {spell(kept)}`", expected)
    return kept


def _buckets(top: Section) -> int:
    if not top.has("buckets"):
        return 4
    if top.says("buckets", AUTO):
        return AUTO_BUCKETS
    expected = f"1 to {MOST_BUCKETS:,}, or `{AUTO}`"
    buckets = top.count("buckets", expected)
    if not 1 <= buckets <= MOST_BUCKETS:
        raise top.wrong("buckets", f"`buckets: {buckets}`", expected)
    return buckets


def _parts(top: Section, key: str, kind: str) -> Iterator[tuple[str, Section]]:
    inside = top.inner(key, f"`{key}`")
    if not inside.tree.entries:
        raise top.wrong(key, f"no {kind}", f"at least one under `{key}:`")
    for name in inside.tree.entries:
        # A stream may be called as one of a module is that was pasted; what a stream sets aside has its own name.
        parts = name.split(".") if kind == "stream" else [name]
        if not all(map(NAME.fullmatch, parts)) or (len(parts) > 1 and is_side(name)):
            raise inside.wrong(name, f"the name `{name}`", NAME_RULE)
        if name in OF_A_RUN:
            raise inside.wrong(name, f"`{name}`, a name that each run has of its own,", "another name")
        check_length(inside, name, name)
        yield name, inside.inner(name, f"{kind} `{name}`")


def _with_streams(top: Section, flow: Flow) -> Flow:
    flow = replace(flow, sources={name: _advancing(top, source) for name, source in flow.sources.items()})
    pasted = paste(top, _streams(top, flow), flow.sources)
    drafts = pasted.drafts
    flow = replace(flow, modules=pasted.uses, file_order=tuple(drafts))
    for name in in_order(drafts):
        flow = replace(flow, streams={**flow.streams, name: build(drafts[name], flow)})
    sections = _sections(top, flow, pasted)
    _check_silence(sections, flow)
    flow = replace(flow, said_at=_said_at(sections, pasted), expect=_expected(sections, flow))
    unsaid = frozenset(name for name, drafted in drafts.items() if drafted.is_silent)
    told = divided(flow)
    warnings = said_once((*_warnings(top, flow, pasted), *pasted.warnings, *told.warnings))
    return replace(flow, warnings=warnings, notes=told.notes, unsaid=unsaid)


def _sections(top: Section, flow: Flow, pasted: Pasted) -> dict[str, Section]:
    """Give where each source and stream is said."""
    sources = top.inner("sources", "`sources`")
    sections = {name: sources.inner(name, f"source `{name}`") for name in flow.sources}
    return sections | {name: drafted.section for name, drafted in pasted.drafts.items()}


def _check_silence(sections: Mapping[str, Section], flow: Flow) -> None:
    """See that a heartbeat knows the keys whose silence is to be told."""
    read = {name for each in flow.streams.values() if each.operator == "heartbeat" for name in each.inputs}
    for name, source in flow.sources.items():
        if source.on_silence is not None and name not in read:
            came = f"`on_silence` of `{name}`, whose keys no heartbeat knows,"
            raise sections[name].wrong("on_silence", came, f"a stream such as `{{heartbeat: {name}, interval: 10m}}`")


def _said_at(sections: Mapping[str, Section], pasted: Pasted) -> dict[str, str]:
    """Give file and line of each source and stream; of references that deal rows to instances, too."""
    dealt = {name.rsplit(".", 2)[0]: name for name, drafted in pasted.drafts.items() if drafted.operator == "dispatch"}
    said = {name: f"{section.file}:{section.line()}" for name, section in sections.items()}
    return said | {reference: said[name] for reference, name in dealt.items()}


def _expected(sections: Mapping[str, Section], flow: Flow) -> dict[str, tuple[Check, ...]]:
    """Read what is expected of rows, by source, stream and side stream."""
    found: dict[str, tuple[Check, ...]] = {}
    for name, section in sections.items():
        found[name] = read_checks(section, name, flow)
        if name in flow.streams:
            found |= read_checks_of_sides(section, flow.streams[name], flow)
    return {name: checks for name, checks in found.items() if checks}


def _streams(top: Section, flow: Flow) -> Iterator[tuple[str, Section]]:
    for name, part in _parts(top, "streams", "stream"):
        if name in flow.sources:
            raise top.inner("streams", "`streams`").wrong(name, f"`{name}`, the name of a source,", "another name")
        yield name, part


def _advancing(top: Section, source: Source) -> Source:
    """Give a source what it says of its CTIs to every stream that binds it."""
    section = top.inner("sources", "`sources`").inner(source.name, f"source `{source.name}`")
    if not section.has("advance_time"):
        return source
    inside = section.inner("advance_time", f"`advance_time` of {section.what}")
    inside.only(ADVANCING_KEYS)
    return replace(source, advancing=MappingProxyType(advancing(inside)))


def _warnings(top: Section, flow: Flow, pasted: Pasted) -> Iterator[str]:
    for name, stream in flow.streams.items():
        section = pasted.drafts[name].section
        for warning in stream.policy.warnings():
            yield f"{section.file}:{section.line()}: stream `{name}`: {warning}"
        widened = binds_all_keys(flow, stream)
        if widened:
            yield f"{section.file}:{section.line()}: {widened}"
    for name, line in pasted.unused:
        yield f"{flow.file}:{line}: module `{name}` is there and nothing refers to it"
    read = {name for stream in flow.streams.values() for name in stream.inputs}
    sources = top.inner("sources", "`sources`")
    for name in flow.sources:
        if name not in read:
            yield f"{flow.file}:{sources.line(name)}: source `{name}` lands and no stream reads it"
