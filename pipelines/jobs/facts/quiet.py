"""What makes no progress in a stream that runs: sources and keys that give nothing, promises that lag, no commits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipelines.engine.columnar.columns import TABLE_INFINITY
from pipelines.engine.commits.lease import HolderStanding
from pipelines.jobs.facts.complete import promising
from pipelines.jobs.facts.live import live_of
from pipelines.jobs.facts.presence import Presence, presence_of, silent_keys
from pipelines.jobs.facts.promised import newest_of
from pipelines.jobs.facts.status import lease_of

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from pipelines.jobs.facts.presence import LastHeard
    from pipelines.jobs.runs.known import KnownRun

    Facts = dict[str, Any]

SOURCE, KEY = "source ", ", key "
MOST_KEYS = 20
"""Keys that are told in one look, those of the longest silence; the next look tells more."""
UNHEARD = frozenset({Presence.SILENT.value, Presence.DISCONNECTED.value})


def asked_keys(known: KnownRun) -> dict[str, int]:
    """Give for how long a key of a source may be silent, by source, as the flow's file says now."""
    sources = {} if known.flow_now is None else known.flow_now.sources
    return {name: each.on_silence for name, each in sources.items() if each.on_silence is not None}


def is_looked_at(what: str, bound: int | None, keys: Mapping[str, int]) -> bool:
    """Say whether somebody wants to know of something: of keys the flow says so, of all else a bound."""
    source, is_key, _ = what.partition(KEY)
    return source.removeprefix(SOURCE) in keys if is_key else bound is not None


def quiet(
    known: KnownRun, now: int, bound: int | None, keys: Mapping[str, int], told: Container[str] = ()
) -> dict[str, int] | None:
    """Say what of a run has made no progress for longer than a bound.

    Args:
        known: the run.
        now: wall time, in ticks.
        bound: how long is long, in ticks; None where only keys are asked for.
        keys: the same for the keys of some sources.
        told: what somebody knows of already.

    Returns:
        By what it is (`source trips`, `stream punctual`, `commits`, `source trips, key JFK`), since when, in ticks of
        the flow's clock, of the wall's for commits; None where no stream runs, or it has ended: then nothing is
        expected.
    """
    lease, live = lease_of(known, now), live_of(known, now)
    if live is None or lease["standing"] != HolderStanding.HELD.value or live["final_at"] is not None:
        return None
    presence = presence_of(known, lease, live, now)
    late = {} if bound is None else _late(known, live, presence, now, bound)
    for name, own in keys.items():
        speaks = name in presence and presence[name]["state"] not in UNHEARD
        late |= _late_keys(name, silent_keys(known, live, name, now, own), told, news=MOST_KEYS if speaks else 0)
    return late


def _late(known: KnownRun, live: Facts, presence: Mapping[str, Facts], now: int, bound: int) -> dict[str, int]:
    heard = heard_until(live, now)
    found = {
        f"{SOURCE}{name}": each["since_at"]
        for name, each in presence.items()
        if each["state"] in UNHEARD and each["since_at"] is not None
    }
    found |= {f"stream {name}": at for name, at in promised(known) if at < TABLE_INFINITY}
    late = {what: since for what, since in found.items() if heard - since > bound}
    newest = known.state.newest_published
    if newest is not None and known.definition.get("region") is None and now - newest.at > bound:
        late["commits"] = newest.at
    return late


def _late_keys(source: str, silent: Mapping[str, LastHeard], told: Container[str], *, news: int) -> dict[str, int]:
    """Give the silent keys that were told and still are silent, and some others: none of a silent source is news.

    What its heartbeat gave up before anybody was told is none either.
    """
    found = {f"{SOURCE}{source}{KEY}{key}": heard for key, heard in silent.items()}
    fresh = [what for what, heard in found.items() if what not in told and not heard.retired][:news]
    return {what: heard.at for what, heard in found.items() if what in told or what in fresh}


def heard_until(live: Facts, now: int) -> int:
    """Say up to where a run that streams has listened, in ticks of its clock.

    Args:
        live: what `live_of` gives.
        now: wall time, in ticks.
    """
    return int(now if live["clock"] == "wall" else live["readings"]["last_at"])


def promised(known: KnownRun) -> Iterator[tuple[str, int]]:
    """Give the newest CTI of each stream that promises something whatever its key is, in ticks."""
    for name in promising(known):
        newest = newest_of(known.of(name), name, ("cti",))
        if newest is not None:
            yield name, int(newest["event_at"])
