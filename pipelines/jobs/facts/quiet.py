"""What makes no progress in a stream that runs: sources that give nothing, promises that lag, no commits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipelines.engine.columnar.columns import TABLE_INFINITY
from pipelines.engine.commits.lease import HolderStanding
from pipelines.jobs.facts.complete import promising
from pipelines.jobs.facts.live import live_of
from pipelines.jobs.facts.presence import Presence, presence_of
from pipelines.jobs.facts.promised import newest_of
from pipelines.jobs.facts.status import lease_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipelines.jobs.runs.known import KnownRun

    Facts = dict[str, Any]

UNHEARD = frozenset({Presence.SILENT.value, Presence.DISCONNECTED.value})


def quiet(known: KnownRun, now: int, bound: int) -> dict[str, int] | None:
    """Say what of a run has made no progress for longer than a bound.

    Args:
        known: the run.
        now: wall time, in ticks.
        bound: how long is long, in ticks.

    Returns:
        By what it is (`source trips`, `stream punctual`, `commits`), since when, in ticks of the flow's clock, of the
        wall's for commits; None where no stream runs, or it has ended: then nothing is expected.
    """
    lease, live = lease_of(known, now), live_of(known, now)
    if live is None or lease["standing"] != HolderStanding.HELD.value or live["final_at"] is not None:
        return None
    heard = heard_until(live, now)
    presence = presence_of(known, lease, live, now)
    found = {
        f"source {name}": each["since_at"]
        for name, each in presence.items()
        if each["state"] in UNHEARD and each["since_at"] is not None
    }
    found |= {f"stream {name}": at for name, at in promised(known) if at < TABLE_INFINITY}
    late = {what: since for what, since in found.items() if heard - since > bound}
    newest = known.state.newest_published
    if newest is not None and known.definition.get("region") is None and now - newest.at > bound:
        late["commits"] = newest.at
    return late


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
