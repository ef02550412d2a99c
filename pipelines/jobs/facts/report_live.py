"""What a page says of a live run: its epochs, and of sources and keys what `status` says, however many they are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from expectations.report import (
    BufferFacts,
    EpochFacts,
    KeyPresence,
    KeysPresence,
    PresenceTable,
    RegionFacts,
    SourcePresence,
)
from pipelines.jobs.facts.buffers import buffers_facts
from pipelines.jobs.facts.live import live_of
from pipelines.jobs.facts.presence import presence_of
from pipelines.jobs.facts.status import lease_of
from pipelines.jobs.text.tables import plain

if TYPE_CHECKING:
    from pipelines.engine.commits.history import Entry
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


def epoch_facts(entry: Entry) -> EpochFacts:
    """Tell a published epoch: when it was published, and how late its timers were."""
    found = entry.detail.get("lateness")
    late = found if isinstance(found, dict) else {}
    return EpochFacts(
        number=entry.commit,
        at=entry.at,
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
