"""A run's three buffers as plain values, in words, and as metrics: how deep, how big, how old, how well."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pipelines.engine.buffers.places import last_noted, read_record
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.files.stored import path_of
from pipelines.engine.landing.manifest import is_closed, load_manifest
from pipelines.jobs.runs.known import is_replayed
from pipelines.jobs.text.moments import NOTHING
from pipelines.jobs.text.tables import table_text
from pipelines.operators.plain_words import counted, spoken
from pipelines.operators.rows import TICKS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pipelines.engine.buffers.depth import MeasuredDepth
    from pipelines.engine.commits.history import LogState
    from pipelines.jobs.text.moments import Moments

    Facts = dict[str, Any]

NO_SOURCES: Mapping[str, dict[str, Any]] = MappingProxyType({})
LOOKED = 1_000
"""Uncovered sequences whose rows are counted."""


def buffers_facts(root: Path, state: LogState) -> Facts | None:
    """Say what the buffers of a run hold and how they are; None where it has none, or a replay made it.

    Args:
        root: the run's folder.
        state: its log.

    Raises:
        RecordBrokenError: the record of the buffers cannot be read.
    """
    landed = landed_path(root)
    record = None if is_replayed(root) else read_record(landed)
    if record is None:
        return None
    # Few runs have buffers, and whoever looks at one without waits for no import.
    from pipelines.engine.buffers.depth import measure
    from pipelines.engine.buffers.owners import GONE, run_id
    from pipelines.jobs.environment.buffer_settings import consistent_state

    stands, owner = consistent_state(state), run_id(landed)
    found = [measure(name, path_of(place), record.of(name), stands, owner) for name, place in record.places.items()]
    tip = state.tip
    return {
        "region": {"commit": stands.commit, "sequence": stands.covered, "since_at": tip.at if tip else None}
        | {"rows_in_flight": _in_flight(landed, stands.covered)},
        "buffers": {
            each.name: {
                "place": each.place,
                "there": not each.problem,
                "problem": each.problem,
                "gone": each.problem == GONE,
                "speaks": each.speaks,
                "rebuilt": each.health.rebuilt,
                "why": each.health.why,
                "quarantined_at": each.health.since or None,
                "times": each.health.times,
                "last_drain": stands.drain if each.speaks else each.health.restarted,
                "depth": each.depth,
                "uncovered": each.uncovered,
                "bytes": each.size,
                "oldest": each.oldest,
                "newest": each.newest,
            }
            for each in found
        },
        "lost": _lost(landed, found, stands.covered),
        "gaps": [{"first": first, "last": last, "accepted_at": at} for first, last, at, _ in record.gaps],
    }


def _lost(landed: Path, found: list[MeasuredDepth], covered: int) -> tuple[int, int] | None:
    """Give the sequences that no buffer holds any more and no commit covers; None where one may still be believed."""
    newest = last_noted(landed)
    if newest <= covered or any(not each.problem and each.health.rebuilt for each in found):
        return None
    return covered + 1, newest


def _in_flight(landed: Path, covered: int) -> int:
    rows, number = 0, covered + 1
    while number <= covered + LOOKED and is_closed(landed, number):
        rows += sum(source.rows for source in load_manifest(landed, number).sources.values())
        number += 1
    return rows


def buffer_lines(facts: Facts | None, moments: Moments, now: int) -> list[tuple[str, str]]:
    """Give labelled lines: the last consistent state, what is wrong with a buffer, what is lost for ever.

    Args:
        facts: what `buffers_facts` gave.
        moments: how instants are told.
        now: wall time, in ticks.
    """
    if facts is None:
        return []
    region = facts["region"]
    since = "" if region["since_at"] is None else f", {_ago(now, region['since_at'])}"
    state = f"commit {region['commit']} (sequence {region['sequence']}){since}" if region["commit"] else "none yet"
    flight = (
        f"{counted(region['rows_in_flight'], 'row')} in flight" if facts["lost"] is None else "what came since is lost"
    )
    lines = [("consistent", f"{state}; {flight}")]
    if facts["lost"] is not None:
        first, last = facts["lost"]
        lost = f"sequences {first} to {last}, unless a buffer's storage comes back: what is left may not be believed"
        lines.append(("LOST", f"{lost}. Bring one back, or go on without them: pulseline stream FLOW --accept-loss"))
    for name, each in facts["buffers"].items():
        if not each["there"]:
            rebuilt = "" if facts["lost"] else "; the stream rebuilds it"
            lines.append(("buffer", f"{name} {_absent(each)}{rebuilt}"))
        elif not each["speaks"]:
            waits = f"rebuilt, counts again after commit {each['last_drain']}" if each["rebuilt"] else "not rebuilt yet"
            why = f"{each['why']}, {_ago(now, each['quarantined_at'])}"
            lines.append(("buffer", f"{name} does not count ({why}): {waits}"))
    for gap in facts["gaps"]:
        when = moments.text(gap["accepted_at"] // TICKS_PER_SECOND * TICKS_PER_SECOND)
        lines.append(("lost", f"sequences {gap['first']} to {gap['last']} were given up at {when}"))
    return lines


def buffers_text(facts: Facts) -> str:
    """Set the buffers as a table."""
    buffers = facts["buffers"]
    ends = [NOTHING if each["oldest"] is None else f"{each['oldest']} to {each['newest']}" for each in buffers.values()]
    columns = {
        "buffer": list(buffers),
        "health": [_health(each) for each in buffers.values()],
        "sequences": [f"{each['depth']:,}" for each in buffers.values()],
        "uncovered": [f"{each['uncovered']:,}" if each["uncovered"] else NOTHING for each in buffers.values()],
        "bytes": [f"{each['bytes']:,}" for each in buffers.values()],
        "holds": ends,
        "stands in": [each["place"] for each in buffers.values()],
    }
    return table_text(columns, ["sequences", "uncovered", "bytes"])


def _absent(each: Facts) -> str:
    """Say what is wrong with a folder that is no buffer now."""
    if each["gone"]:
        return f"is not in {each['place']} any more"
    return f"in {each['place']} cannot be used: {each['problem']}"


def _health(each: Facts) -> str:
    if not each["there"]:
        return "gone" if each["gone"] else each["problem"]
    if not each["speaks"]:
        return "silent" if each["rebuilt"] else "quarantined"
    return f"whole, was rebuilt {counted(each['times'], 'time')}" if each["times"] else "whole"


def _ago(now: int, instant: int) -> str:
    return f"{spoken(max(now - instant, 0) // TICKS_PER_SECOND * TICKS_PER_SECOND)} ago"


def metrics_text(  # noqa: PLR0913 - all that is measured
    flow: str,
    run: str,
    facts: Facts | None,
    state: LogState,
    now: int,
    sources: Mapping[str, Facts] = NO_SOURCES,
    legs: Sequence[Facts] = (),
) -> str:
    """Give what a run and its buffers measure in Prometheus' text format.

    Args:
        flow: its name.
        run: its name.
        facts: what `buffers_facts` gave.
        state: the run's log.
        now: wall time, in ticks.
        sources: what its live sources said of themselves last, by name.
        legs: what `facts.legs` gave.
    """
    from prometheus_client import CollectorRegistry, Gauge, generate_latest

    registry = CollectorRegistry()
    tip = state.tip
    # A clock that was set back makes nothing younger than now.
    age = max(0, now - tip.at) / TICKS_PER_SECOND if tip else float("nan")
    region: list[tuple[str, str, float]] = [
        ("consistent_commit", "Number of the newest published commit", tip.commit if tip else 0),
        ("consistent_age_seconds", "Age of the newest published commit", age),
    ]
    if facts is not None:
        region.append(("rows_in_flight", "Rows that landed and no commit covers", facts["region"]["rows_in_flight"]))
    for name, about, value in region:
        Gauge(f"pulseline_{name}", about, ["flow", "run"], registry=registry).labels(flow, run).set(value)
    for name, about in MEASURES.items() if facts is not None else ():
        gauge = Gauge(f"pulseline_buffer_{name}", about, ["flow", "run", "buffer"], registry=registry)
        for buffer, each in (facts or {})["buffers"].items():
            gauge.labels(flow, run, buffer).set(float("nan") if each[name] is None else float(each[name]))
    for name, about in OF_SOURCES.items():
        found = {source: said[name] for source, said in sources.items() if isinstance(said.get(name), int | float)}
        if not found:
            continue
        gauge = Gauge(f"pulseline_source_{name}", about, ["flow", "run", "source"], registry=registry)
        for source, value in found.items():
            gauge.labels(flow, run, source).set(float(value))
    for name, about in OF_LEGS.items() if legs else ():
        gauge = Gauge(f"pulseline_leg_{name}", about, ["flow", "run", "leg"], registry=registry)
        for leg in legs:
            gauge.labels(flow, run, leg["leg"]).set(_of_leg(leg, name))
    return generate_latest(registry).decode()


def _of_leg(leg: Facts, name: str) -> float:
    if name == "sequence":
        return float(leg["sequence"])
    if name == "waits":
        return float(leg["waits_for"] is not None)
    found = [float(each[name.partition("_")[0]]) for each in leg["behind"]]
    return max(found, default=0.0) if name == "seconds_behind" else sum(found)


OF_LEGS = {
    "sequence": "The last sequence of the landing that the leg has taken in",
    "rows_behind": "Rows that wait for the leg",
    "bytes_behind": "Bytes of the files that wait for the leg",
    "seconds_behind": "For how long the oldest of them has waited",
    "waits": "1 while the leg begins no epoch because one that reads it is too far behind",
}


OF_SOURCES = {
    "waiting_bytes": "Bytes of a socket's spool that have not landed",
    "max_bytes": "Bytes at which the spool is full and the socket is not read from",
    "waiting_rows": "Rows of a topic that have not landed",
    "waiting_commits": "Commits of a Delta table that have not landed",
    "partitions": "Partitions of the topic",
}
MEASURES = {
    "speaks": "1 where what the buffer holds may be read, 0 where it is quarantined or silent",
    "depth": "Sequences in the buffer",
    "uncovered": "Of these, sequences that no commit covers",
    "bytes": "Bytes in the buffer",
    "oldest": "Id of the oldest sequence",
    "newest": "Id of the newest sequence",
    "last_drain": "Newest commit whose drain the buffer took part in",
    "times": "How often the buffer was quarantined",
}
