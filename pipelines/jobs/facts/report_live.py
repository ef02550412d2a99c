"""What a page says of a live run: its epochs, and of sources and keys what `status` says, however many they are."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from expectations.report import (
    BufferFacts,
    EpochFacts,
    KeyPresence,
    KeysPresence,
    LegFacts,
    PresenceTable,
    QueueFacts,
    RegionFacts,
    SourcePresence,
    WaitFacts,
)
from pipelines.flows.errors import FlowError
from pipelines.flows.legs import MAIN, in_legs, legs_of
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.settings import load_flow, read_settings
from pipelines.jobs.facts.buffers import buffers_facts
from pipelines.jobs.facts.legs import legs_facts
from pipelines.jobs.facts.live import live_of
from pipelines.jobs.facts.presence import presence_of
from pipelines.jobs.facts.status import lease_of
from pipelines.jobs.text.tables import plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipelines.engine.commits.history import Entry
    from pipelines.flows.legs import Leg
    from pipelines.flows.model import Flow
    from pipelines.jobs.runs.known import KnownRun

    Facts = dict[str, Any]


def read_presence(known: KnownRun, now: int) -> PresenceTable | None:
    """Say what holds of the sources of a live run; None where nothing ever ran live.

    Args:
        known: the run.
        now: wall time, in ticks.
    """
    live = live_of(known, now)
    if live is None:
        return None
    recorded = live["clock"] != "wall"
    found = presence_of(known, lease_of(known, now), live, now, most_bytes=math.inf)
    return PresenceTable(
        at=live["readings"]["last_at"] if recorded else now,
        recorded=recorded,
        sources=tuple(_source(name, facts) for name, facts in found.items()),
    )


def read_region(known: KnownRun) -> RegionFacts | None:
    """Say how the buffers of a run are; None where it has none."""
    facts = buffers_facts(known.root, known.state)
    if facts is None:
        return None
    region = facts["region"]
    return RegionFacts(
        commit=region["commit"],
        at=region["since_at"],
        in_flight=region["rows_in_flight"],
        buffers=tuple(
            BufferFacts(
                name=name,
                place=each["place"],
                speaks=each["speaks"],
                why=each["why"],
                times=each["times"],
                depth=each["depth"],
                uncovered=each["uncovered"],
                size=each["bytes"],
            )
            for name, each in facts["buffers"].items()
        ),
        gaps=tuple((gap["first"], gap["last"]) for gap in facts["gaps"]),
    )


def read_legs(known: KnownRun, flow: Flow, now: int) -> tuple[LegFacts, ...]:
    """Say how far each leg of a run is, and what waits for it; nothing of a run in one piece.

    Args:
        known: the run.
        flow: that made it, with its legs.
        now: wall time, in ticks.
    """
    if len(known.parts) == 1:
        return ()
    # Where all was taken back the flow is that of its file, which has regions and no legs yet.
    legs = {leg.name: leg for leg in legs_of(flow if flow.legs else replace(flow, legs=in_legs(flow)))}
    found = (each for each in legs_facts(known.root, now, known.states) if each["leg"] in legs)
    return tuple(_leg(legs[each["leg"]], each, _most(known)) for each in found)


def _most(known: KnownRun) -> dict[str, int]:
    """Say how many rows may wait for each leg, which only the flow's file says."""
    try:
        return {leg.name: leg.most_behind for leg in legs_of(load_flow(read_settings(), known.called, known.given))}
    except (WrongUse, FlowError):
        return {}


def _leg(leg: Leg, facts: Facts, most: Mapping[str, int]) -> LegFacts:
    waits = facts["waits_for"]
    return LegFacts(
        name=leg.name,
        region=leg.region,
        streams=leg.streams,
        commits=facts["commits"],
        sequence=facts["sequence"],
        upto=facts["upto_at"],
        queues=tuple(_queue(leg, each) for each in facts["behind"]),
        most=most.get(leg.name),
        waits=_wait(waits) if waits else None,
    )


def _wait(facts: Facts) -> WaitFacts:
    return WaitFacts(leg=facts["leg"], since=facts["since_at"], rows=facts["rows"], most=facts["most_behind"])


def _queue(leg: Leg, facts: Facts) -> QueueFacts:
    writer = facts["leg"]
    crossing = (*leg.reads[writer], *(leg.sources if writer == MAIN else ()))
    return QueueFacts(
        writer=writer, crossing=crossing, rows=facts["rows"], size=facts["bytes"], seconds=facts["seconds"]
    )


def epoch_facts(entry: Entry, leg: str = "") -> EpochFacts:
    """Tell a published epoch: when it was published, and how late its timers were."""
    found = entry.detail.get("lateness")
    late = found if isinstance(found, dict) else {}
    return EpochFacts(
        number=entry.commit,
        at=entry.at,
        leg=leg,
        idle=entry.idle,
        timers=late.get("timers", 0),
        p50_ms=late.get("p50_ms"),
        p99_ms=late.get("p99_ms"),
        max_ms=late.get("max_ms"),
    )


def _source(name: str, facts: Facts) -> SourcePresence:
    keys = facts.get("keys")
    return SourcePresence(
        name=name,
        state=facts["state"],
        since=facts["since_at"],
        why=facts["why"],
        do=facts["do"],
        keys=None if keys is None else _keys(keys),
    )


def _keys(keys: Facts) -> KeysPresence:
    longest = tuple(map(_key, keys["longest"]))
    return KeysPresence(stream=keys["stream"], states=keys["states"], longest=longest, remedies=keys["do"])


def _key(key: Facts) -> KeyPresence:
    name = " ".join(map(plain, key["key"].values()))
    return KeyPresence(name=name, state=key["state"], since=key["since_at"], last=key["last_at"])
