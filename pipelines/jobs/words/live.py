"""Where a live run stands, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipelines.engine.columnar.columns import TABLE_INFINITY
from pipelines.jobs.text.moments import NOTHING
from pipelines.jobs.text.tables import table_text
from pipelines.operators.plain_words import counted, spoken
from pipelines.operators.replay import Trigger
from pipelines.operators.rows import TICKS_PER_SECOND
from pipelines.operators.specs import SPECS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.jobs.runs.known import KnownRun
    from pipelines.jobs.text.moments import Moments

    Facts = dict[str, Any]

SPOKEN_PORTS = 5
SECOND_MS = 1_000


def live_lines(
    known: KnownRun, live: Facts, now: int, behind: Sequence[str] = (), *, heard: bool = True
) -> list[tuple[str, str]]:
    """Give labelled lines: readings, backlog, blind spans, heartbeats, end.

    Args:
        known: the run.
        live: what `live_of` gave.
        now: wall time, in ticks.
        behind: the legs that rows wait for.
        heard: whether a process listens to the sources.
    """
    return [
        ("readings", _readings_text(known, live, now)),
        ("backlog", _backlog_text(live["backlog"], now, behind, known.command("doctor"))),
        *([("region", _region_text(live["region"]))] if live["region"] else []),
        *[
            ("blind", _blind_text(known, name, each["blind"]))
            for name, each in live["sources"].items()
            if live["clock"] == "wall"
        ],
        *[
            ("source", ("" if heard else "when somebody listened last, ") + _state_text(name, each["state"], now))
            for name, each in live["sources"].items()
            if each["state"] is not None
        ],
        ("heartbeats", _heartbeats_text(known, live)),
        *(
            [("end", f"the final punctuation landed at {known.moments.text(live['final_at'])}")]
            if live["final_at"]
            else []
        ),
    ]


def waits_lines(known: KnownRun, awaited: Facts) -> list[tuple[str, str]]:
    """Give a labelled line for each stream that waits for something, as `awaited` has them."""
    return [("waits", _awaited_text(known, name, facts)) for name, facts in awaited.items()]


def promise_lines(known: KnownRun, promises: Facts) -> list[tuple[str, str]]:
    """Give a labelled line for each stream with CTIs, as `promises` has them."""
    return [
        ("promise", f"{name}: {_promise_text(known, facts)}{_open_text(known, facts)}")
        for name, facts in promises.items()
    ]


def _promise_text(known: KnownRun, facts: Facts) -> str:
    text = known.moments.text
    if facts["cti_at"] is not None and facts["cti_at"] >= TABLE_INFINITY:
        return "the newest CTI is ∞: all is released"
    which = "CTI that came last" if facts["is_last"] else "newest CTI"
    newest = f"the {which} is {text(second(facts['cti_at']))}"
    if facts["timelines"] is not None:
        having, without = facts["timelines"] - facts["unpromised"], facts["unpromised"]
        newest += f", the oldest of {counted(having, 'timeline')} {text(second(facts['oldest_cti_at']))}"
        newest += f" ({counted(without, 'more has', 'more have')} none yet)" if without else ""
    if facts["waiting"] is None:
        return newest
    least = "" if facts["whole"] else "at least "
    if not facts["waiting"]:
        return f"{newest}, past every event{'' if facts['whole'] else ' of the last commits'}"
    if facts["timelines"] is None and facts["newest_event_at"] is not None:
        behind = spoken(facts["newest_event_at"] - facts["cti_at"])
        newest += f", {behind} behind the newest event{_too_far_text(known, facts)}"
    if facts["is_over"]:
        lie = counted(facts["waiting"], "event does", "events do")
        return f"{newest}; {least}{lie} not lie before a CTI, and none comes any more: the stream has ended"
    return f"{newest}; {least}{counted(facts['waiting'], 'event waits', 'events wait')} for a CTI past {_it(facts)}"


def _too_far_text(known: KnownRun, facts: Facts) -> str:
    """Say which event is the newest that counts, where others are left out."""
    if not facts["too_far"]:
        return ""
    left = counted(facts["too_far"], "later event is", "later events are")
    newest = known.moments.text(second(facts["newest_event_at"]))
    return f" that counts, of {newest} ({left} stamped further ahead than max_ahead allows)"


def _it(facts: Facts) -> str:
    return "its start" if facts["waiting"] == 1 else "their start"


def _open_text(known: KnownRun, facts: Facts) -> str:
    if not facts["open"]:
        return ""
    since = known.moments.text(second(facts["open_since_at"]))
    return f"; {counted(facts['open'], 'event is', 'events are')} open, the oldest since {since}"


def _readings_text(known: KnownRun, live: Facts, now: int) -> str:
    readings, text = live["readings"], known.moments.text
    last = second(readings["last_at"])
    behind = f", {ago(now, readings['last_at'])}" if live["clock"] == "wall" else ""
    closed = "" if behind else f", closed {ago(now, readings['closed_at'])}"
    number = f"{counted(readings['number'], 'reading')} since {text(second(readings['first_at']))}"
    return f"{number}, the last {text(last)}{behind}{closed}"


def _backlog_text(backlog: Facts, now: int, behind: Sequence[str], doctor: str) -> str:
    gone = backlog["gone"]
    if gone is None:
        return _waiting_text(backlog, now, behind)
    before = f"{_waiting_text(backlog, now, behind)}; " if backlog["sequences"] else ""
    return f"{before}sequence {gone} landed and is gone, though later ones stand: nothing goes on behind it ({doctor})"


def _waiting_text(backlog: Facts, now: int, behind: Sequence[str]) -> str:
    if not backlog["sequences"] and behind:
        legs = f"{' and '.join(behind)} {'has' if len(behind) == 1 else 'have'}"
        return f"main has published its part of all that landed, and {legs} not"
    if not backlog["sequences"]:
        return "nothing: all that landed is published"
    landed = f"{counted(backlog['sequences'], 'sequence')} with {counted(backlog['rows'], 'row')}"
    return f"{landed} landed and not published yet, the oldest {ago(now, backlog['since_at'])}"


WAITS_FOR = {
    Trigger.OPERATOR.name.lower(): "behind each window punctuation; what landed since waits for the next",
    Trigger.FINAL.name.lower(): "when the stream ends (pulseline finish); what landed waits for that",
}
"""When a region drains that no period drives, by its trigger as definitions spell it."""


def _region_text(region: Facts) -> str:
    waits = WAITS_FOR.get(region["trigger"])
    if waits is not None:
        return f"drains, that is publishes, {waits}"
    period = spoken(region["period"])
    behind = "behind the last state or reset; what landed since waits"
    return f"drains, that is publishes, when a reading lies {period} {behind}"


def _state_text(name: str, state: Facts, now: int) -> str:
    """Say how what a source reads is, as the process that reads said last, and what waits there."""
    why = f" ({state['why']})" if state["why"] else ""
    since = f", since {ago(now, state['since_at'])}" if state["since_at"] else ""
    said = f"{name}: {state['address']} {state['state']}{since}{why}"
    if "waiting_bytes" in state:
        return f"{said}; {state['waiting_bytes']:,} of {state['max_bytes']:,} bytes of the spool wait to be landed"
    if "waiting_commits" in state:
        return f"{said}; {counted(state['waiting_commits'], 'commit waits', 'commits wait')} to be landed"
    waiting = counted(state["waiting_rows"], "row waits", "rows wait")
    return f"{said}; {waiting} in {counted(state['partitions'], 'partition')}"


def _blind_text(known: KnownRun, name: str, blind: Facts) -> str:
    looked = f"in the last {counted(blind['looked'], 'reading')}"
    if not blind["spans"]:
        return f"{name}: never {looked}"
    last = "; ".join(moments_span(known.moments, span["start"], span["end"]) for span in reversed(blind["last"]))
    rest = "" if blind["spans"] == len(blind["last"]) else "; …"
    return f"{name}: {counted(blind['spans'], 'span')}, {spoken(blind['ticks'])} in all, {looked}: {last}{rest}"


def _meeting_text(known: KnownRun, name: str, facts: Facts) -> str:
    each = f", the oldest of {counted(facts['scopes'], 'timeline')}" if facts["scopes"] > 1 else ""
    if facts["cti_at"] is not None and facts["cti_at"] >= TABLE_INFINITY:
        return f"{name}: keeps {counted(facts['kept'], 'row')}; both sides have ended"
    stands = "has no CTI yet" if facts["cti_at"] is None else f"stands at {known.moments.text(second(facts['cti_at']))}"
    return f"{name}: keeps {counted(facts['kept'], 'row')}; {facts['side']} {stands}{each}: its next CTI goes on"


def _window_text(known: KnownRun, name: str, facts: Facts) -> str:
    kept = f" and {counted(facts['kept'], 'open event')}" if facts["kept"] else ""
    sums = f"{counted(facts['accumulators'], 'accumulator')} of {counted(facts['windows'], 'window')}"
    until = known.moments.text(second(facts["next_at"]))
    return f"{name}: keeps {sums}{kept}; the first leaves with a CTI at or past {until}"


def _awaited_text(known: KnownRun, name: str, facts: Facts) -> str:
    if "events" in facts:
        sooner = f", or {spoken(facts['duration'])} of event time," if facts["duration"] else ""
        return f"{name}: {counted(facts['events'], 'more event')}{sooner} until it looks at its next CTI"
    if "side" in facts:
        return _meeting_text(known, name, facts)
    if "accumulators" in facts:
        return _window_text(known, name, facts)
    oldest = f"; the oldest came {known.moments.text(facts['since_at'])}" if facts["since_at"] else ""
    held = (
        f"{name}: holds {counted(facts['held'], 'row')}{_far_text(known, facts['far'])}{_led_text(known, facts['led'])}"
    )
    if not facts["ports"]:
        return held + oldest
    ports = _spoken([_port_text(each, facts["groups"]) for each in facts["ports"]])
    since = known.moments.text(second(facts["stuck_at"]))
    return f"{held}, waiting for {ports} since {since}{oldest}{_release_text(facts['ports'])}"


def _far_text(known: KnownRun, far: Facts | None) -> str:
    """Say which row blocks its port, where one does."""
    if far is None:
        return ""
    row = f"stamped {known.moments.text(second(far['event_at']))}, came {known.moments.text(second(far['arrived_at']))}"
    return f", a row of {far['port']} among them ({row}), which holds what comes behind it: `max_ahead` leaves it out"


def _led_text(known: KnownRun, led: Facts | None) -> str:
    """Say which port a row that is gone has led away, where one has, and what brings it back."""
    if led is None:
        return ""
    to = known.moments.text(second(led["event_at"]))
    return (
        f", and what comes into {led['port']} waits until the others reach {to}, for a row with that time has left it: "
        f"write another `max_ahead` under the merge (`1d`), then {known.command('apply')}"
    )


def _release_text(ports: list[Facts]) -> str:
    """Say what would let the rows leave: a heartbeat where there is none, and that one begins with a first row."""
    bare = [str(port["port"]) for port in ports if not port["beats"]]
    unheard = [str(port["port"]) for port in ports if port["never"]]
    rest = [str(port["port"]) for port in ports if port["beats"] and not port["never"]]
    told = [f"a heartbeat before {_spoken(bare)} would release them"] if bare else []
    told += [f"{_spoken(unheard)} never sent a row, and no timer comes before the first"] if unheard else []
    told += [f"the next row or timer of {_spoken(rest)} releases what is before it"] if rest else []
    told += ["no timer comes of a retired key"] if any(port["expires"] for port in ports if port["beats"]) else []
    return "".join(f"; {each}" for each in told)


def _spoken(words: list[str]) -> str:
    return " and ".join([*words[:SPOKEN_PORTS], *(["…"] if len(words) > SPOKEN_PORTS else [])])


def _port_text(port: Facts, groups: int) -> str:
    return str(port["port"]) if groups == 1 else f"{port['port']} (in {port['groups']:,} of {groups:,} groups)"


def _heartbeats_text(known: KnownRun, live: Facts) -> str:
    pace = live["pace"]
    idle = f", {pace['idle']:,} of them idle" if pace["idle"] else ""
    pace_text = f"{counted(pace['commits_a_minute'], 'commit')} in the last minute{idle}"
    beats = live["heartbeats"]
    if not any(SPECS[stream["operator"]].has_timers for stream in known.streams.values()):
        return f"the flow has none; {pace_text}"
    if beats is None:
        return f"no timer was published in the last epochs; {pace_text}"
    half, most, worst = (milliseconds(beats[name]) for name in ("p50_ms", "p99_ms", "max_ms"))
    late = f"half at most {half} late, 99 % at most {most}, the worst {worst}"
    return f"{late} ({counted(beats['timers'], 'timer')} of {counted(beats['epochs'], 'epoch')}); {pace_text}"


def milliseconds(value: float) -> str:
    """Say a number of milliseconds.

    >>> milliseconds(12.3), milliseconds(30390.7)
    ('12 ms', '30.4 s')
    """
    return f"{value:.0f} ms" if value < SECOND_MS else f"{value / SECOND_MS:.1f} s"


def sources_text(known: KnownRun, live: Facts) -> str:
    """Set the sources of a live run as a table: how far each is known, and what waits."""
    sources, text = live["sources"], known.moments.text
    columns = {
        "source": list(sources),
        "frontier": [text(second(each["frontier_at"])) for each in sources.values()],
        "last rows before": [text(second(each["rows_until_at"])) for each in sources.values()],
        "rows waiting": [f"{each['waiting_rows']:,}" if each["waiting_rows"] else NOTHING for each in sources.values()],
        "new files": [NOTHING if each["new_files"] is None else f"{each['new_files']:,}" for each in sources.values()],
    }
    if live["clock"] != "wall":
        del columns["new files"]
    return table_text(columns, ["rows waiting", "new files"])


def second(tick: int | None) -> int | None:
    """Cut an instant or a span to the second; infinity and what is missing stay."""
    return tick if tick is None or tick >= TABLE_INFINITY else tick // TICKS_PER_SECOND * TICKS_PER_SECOND


def ago(now: int, instant: int) -> str:
    """Say how long ago an instant was."""
    return f"{spoken(max(now - instant, 0) // TICKS_PER_SECOND * TICKS_PER_SECOND)} ago"


def moments_span(moments: Moments, start: int, end: int) -> str:
    """Say [start, end) to the second, the day once where both lie on one; whole days as `Moments.span` does.

    >>> from pipelines.jobs.text.moments import Moments
    >>> moments_span(Moments("UTC"), 1_357_034_400_123_456, 1_357_034_460_000_000)
    '2013-01-01 10:00:00 until 10:01:00'
    """
    first, last = moments.text(second(start)), moments.text(second(end))
    if "T" not in moments.argument(start) + moments.argument(end):
        return moments.span(start, end)
    return f"{first} until {last.removeprefix(first[:11])}"
