"""`pulseline status`: where a run stands, what is left to do, and what to type for it; no JVM, about a second."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from pipelines.engine.columnar.clock import wall_now
from pipelines.engine.columnar.columns import TABLE_INFINITY, instant_text
from pipelines.engine.commits.entry import CommitKind
from pipelines.engine.commits.lease import LAPSES_AFTER, HolderStanding
from pipelines.engine.commits.machine import Life
from pipelines.jobs.environment.exits import named
from pipelines.jobs.facts.buffers import buffer_lines, buffers_text
from pipelines.jobs.facts.history import history_line
from pipelines.jobs.facts.legs import behind
from pipelines.jobs.facts.status import REPLACED, status_of
from pipelines.jobs.runs.counts import numbered
from pipelines.jobs.runs.known import KnownRun, open_run
from pipelines.jobs.text.moments import NOTHING, utc_text
from pipelines.jobs.text.tables import table_text
from pipelines.jobs.words.legs import legs_lines
from pipelines.jobs.words.live import (
    live_lines,
    milliseconds,
    moments_span,
    promise_lines,
    second,
    sources_text,
    waits_lines,
)
from pipelines.jobs.words.presence import presence_lines
from pipelines.operators.plain_words import counted, spoken
from pipelines.operators.rows import KIND_NAMES, TICKS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Callable

    Facts = dict[str, Any]

LATE = "timers late: half · 99 % · all"


def show_all(as_json: bool, tell: Callable[[str], object]) -> None:  # noqa: FBT001 - the command's flag
    """Print where all flows stand: what is published, what is under way, how far behind it is, what needs a person.

    Args:
        as_json: an object for each run, and one last that sums up, instead of words.
        tell: takes each line.
    """
    from expectations.report.site import LIVE, LOOKS, live_words, newest_day, site_verdict
    from pipelines.jobs.environment.offered import flow_names
    from pipelines.jobs.environment.settings import read_settings
    from pipelines.jobs.facts.home import need_lines, read_home, run_object
    from pipelines.jobs.proofs.certificates import kept_certificate

    facts = read_home(read_settings(), wall_now(), flow_names(), kept_certificate)
    tone, sentence = site_verdict(facts)
    if as_json:
        for told in (*map(run_object, facts.runs), {"verdict": tone.value, "sentence": sentence}):
            tell(json.dumps(told, ensure_ascii=False))
        return
    columns: dict[str, list[str]] = {
        "flow": [each.flow for each in facts.runs],
        "run": [each.run for each in facts.runs],
        "newest published": [newest_day(each) for each in facts.runs],
        "verdict": [LOOKS[each.tone] for each in facts.runs],
    }
    live = [live_words(each.live) for each in facts.runs]
    columns |= {name: [words[place] for words in live] for place, name in enumerate(LIVE)}
    tell(sentence)
    if facts.runs:
        tell(table_text(columns, []))
    for line in need_lines(facts):
        tell(line)


def show_status(flow: str, run: str, as_json: bool, tell: Callable[[str], object]) -> None:  # noqa: FBT001 - the command's flag
    """Print where a run stands.

    Args:
        flow: name of the flow or path of its file.
        run: name of the run.
        as_json: one JSON object instead of words; instants in UTC.
        tell: prints a text.

    Raises:
        WrongUse: no such flow or run.
    """
    known = open_run(flow, run)
    # Reading takes a while, in which a driver renews its lease: that was not in the future.
    facts = _with_red(known, status_of(known, wall_now())) | {"now_at": wall_now()}
    if as_json:
        tell(json.dumps(_readable(facts), ensure_ascii=False))
        return
    for text in _texts(known, facts):
        tell(text)


def _with_red(known: KnownRun, facts: Facts) -> Facts:
    """Add which published days do not hold, and what to type to see why: that comes before anything that goes on."""
    from pipelines.jobs.facts.home import red_lines, red_or_lost

    needs, lost = red_or_lost(known)
    if lost:
        return facts | {"red": [], "damaged": facts["damaged"] or lost, "next": known.command("doctor", "--repair")}
    if not needs:
        return facts | {"red": []}
    goes_on = not facts["pending"] and facts["next"] in {known.next_command(), known.command("stream")}
    then = next((need.command for need in needs if goes_on and need.command), facts["next"])
    return facts | {"red": red_lines(needs), "next": then}


def _readable(value: Any, name: str = "") -> Any:  # noqa: ANN401 - JSON
    """Spell instants in UTC; all else stays."""
    if isinstance(value, dict):
        # Of what kinds rows are is counted, and two kinds are called as ends of a span are.
        return {key: inner if key == "kinds" else _readable(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [_readable(inner, name) for inner in value]
    instant = isinstance(value, int) and (name.endswith("_at") or name in {"start", "end"})
    return instant_text(value) if instant else value


def _texts(known: KnownRun, facts: Facts) -> list[str]:
    head = [f"{known.name} · run {known.run} · {known.root}", ""]
    if not known.state.entries:
        return [*head[:1], f"nothing was run yet; next: {facts['next']}"]
    labelled = [
        ("published", _published_text(known, facts)),
        *([("broken", facts["broken"])] if facts["broken"] else []),
        *[("red", each) for each in facts["red"]],
        *([("damaged", facts["damaged"])] if facts["damaged"] else []),
        *([("stopped", stopped)] if (stopped := _stopped_text(facts)) else []),
        *[("pending", _pending_text(known, facts, each)) for each in _all_pending(facts)],
        *([] if facts["pending"] else [("pending", "nothing")]),
        *([("unsettled", unsettled)] if (unsettled := _unsettled_text(known, facts)) else []),
        *([("rejected", _rejected_text(known, facts["rejected"]))] if facts["rejected"] else []),
        ("stale", _stale_text(known, facts)),
        *([("edited", _edited_text(facts))] if facts["edited"] else []),
        *([("other flow", facts["other_flow"])] if facts["other_flow"] else []),
        ("lease", lease_text(facts["lease"], facts["now_at"])),
    ]
    live = facts["live"]
    labelled += presence_lines(known.moments, facts["sources"], _clock(facts))
    heard = facts["lease"]["standing"] == HolderStanding.HELD.value
    labelled += live_lines(known, live, facts["now_at"], behind(facts["legs"]), heard=heard) if live else []
    labelled += legs_lines(known, facts["legs"], facts["now_at"], heard=heard)
    labelled += buffer_lines(facts["replay"], known.moments, facts["now_at"])
    labelled += history_line(facts["history"], known.moments) if live else []
    labelled += waits_lines(known, facts["awaited"])
    labelled += promise_lines(known, facts["promises"])
    lines = [f"{label:<11}{named(text, known.called, known.run)}" for label, text in labelled]
    tables = [sources_text(known, live), ""] if live else []
    tables += [buffers_text(facts["replay"]), ""] if facts["replay"] else []
    tables += [_streams_text(known, facts), ""] if facts["published"]["commits"] else []
    of = " of main, and other legs have theirs" if facts["legs"] else ""
    tables += [f"last commits{of}:", _commits_text(known, facts), ""] if facts["commits"] else []
    return [*head, *lines, "", *tables, _next_text(facts)]


def _rejected_text(known: KnownRun, rejected: Facts) -> str:
    span = known.moments.span(rejected["start"], rejected["end"])
    seen = known.looking_at(rejected["commit"])
    return f"commit {rejected['commit']} ({span}) is not published: {rejected['why']}; what to do about it: {seen}"


def _edited_text(facts: Facts) -> str:
    remedy = (
        "put it back as it was, for a run in legs takes no other flow"
        if facts["legs"]
        else "put it back, or `apply` it (with --dry-run it says what that means)"
    )
    return f"the file has changed since, and the run does not go on with it ({facts['edited']}): {remedy}"


def _clock(facts: Facts) -> int:
    """Give the time on the flow's clock: the last reading of a recording that is played, else the wall's."""
    live = facts["live"]
    return int(live["readings"]["last_at"] if live and live["clock"] != "wall" else facts["now_at"])


def _published_text(known: KnownRun, facts: Facts) -> str:
    published = facts["published"]
    if not published["commits"]:
        return "nothing yet"
    if published["start"] == published["end"]:
        return f"nothing: commit {published['last']} took the run back to its beginning"
    numbers = f"number {published['first']}" + (
        f" to {published['last']}" if published["last"] != published["first"] else ""
    )
    landed = ", ".join(f"{counted(count, 'row')} of {name}" for name, count in facts["landed"].items())
    span = _span(known, facts["live"] is not None, published)
    return f"{span} ({known.moments.name}), in {counted(published['commits'], 'commit')} ({numbers}); landed: {landed}"


def _span(known: KnownRun, live: bool, row: Facts) -> str:  # noqa: FBT001 - a fact
    say = partial(moments_span, known.moments) if live else known.moments.span
    return say(row["start"], row["end"])


def _unsettled_text(known: KnownRun, facts: Facts) -> str:
    if facts["unsettled"] is None:
        return ""
    told = f"commit {facts['unsettled']} is published, on disk, and not every table has followed it yet"
    if facts["lease"]["standing"] == HolderStanding.HELD.value:
        return f"{told}; its driver is at it"
    return f"{told}: whoever drives next settles it first; to do only that: {known.command('doctor', '--repair')}"


def _all_pending(facts: Facts) -> list[Facts]:
    return [facts["pending"], *facts["also_pending"]] if facts["pending"] else []


def _pending_name(pending: Facts) -> str:
    of = f" of {pending['leg']}" if pending["leg"] else ""
    return f"{pending['commit']}{of}"


def _pending_text(known: KnownRun, facts: Facts, pending: Facts) -> str:
    since = _ago(facts["now_at"], pending["since_at"])
    span = _span(known, facts["live"] is not None, pending)
    told = f"commit {_pending_name(pending)} ({span}) at {pending['state']}"
    if facts["lease"]["standing"] == HolderStanding.HELD.value:
        return f"{told} since {since}; the holder of the lease is at it"
    if pending["kind"] == CommitKind.ADOPT:
        return f"{told} since {since}: an `apply` that was cut short; the next one gives it up, and begins anew"
    written = pending["state"] == "written"
    if written and pending["check"]:
        waits = "holds, and waits to be published" if pending["checked"] else "waits for its check"
        waits = "failed its check, and publish rejects it" if pending["failed"] else waits
        return f"{told} since {since}: it {waits}; nobody sees it"
    if facts["damaged"]:
        return f"{told} since {since}, as far as `commits` tells"
    left = "its files are in their tables and nobody sees them" if written else "its tasks may be half done"
    then = "go on" if len(known.parts) > 1 else "run the flow as it is"
    way_out = "" if written else f"; where that fails again: {pending['abandon']}, then {then}"
    return f"{told} since {since}: {left}; the next run finishes it first{way_out}"


def _stopped_text(facts: Facts) -> str:
    stopped = facts["stopped"]
    if stopped is None or facts["lease"]["standing"] == HolderStanding.HELD.value:
        return ""
    return f"the stream stopped by itself {_ago(facts['now_at'], stopped['since_at'])}: {stopped['why']}"


def _stale_text(known: KnownRun, facts: Facts) -> str:
    told = [_stale_line(known, each) for each in facts["stale"]]
    if facts["unread"]:
        told.append(f"{'' if told else 'nothing by the log and the flow; '}{facts['unread']}: {known.command('plan')}")
    return ("\n" + " " * 11).join(told or ["nothing"])


def _stale_line(known: KnownRun, stale: Facts) -> str:
    line = f"{known.moments.span(stale['start'], stale['end'])} ({stale['why']})"
    return f"{line}: {stale['command']}" if stale["command"] else line


def lease_text(lease: Facts, now: int) -> str:
    """Say in words what `facts.status.lease_of` gave.

    Args:
        lease: the facts.
        now: wall time, in ticks.
    """
    if lease["holder"] is None:
        return "free, nobody has held it yet"
    who = f"process {lease['holder']['pid']} on {lease['holder']['host']}"
    since = _ago(now, lease["since_at"])
    renewed = f"last renewed {_ago(now, lease['renewed_at'])}" if lease["renewed_at"] else "never renewed"
    watches = f"the next run watches it for {LAPSES_AFTER // TICKS_PER_SECOND} s and takes it if it does not renew"
    lives = "is alive" if lease["process"] == Life.ALIVE.value else "cannot be looked up from here"
    given_back = _ago(now, lease["renewed_at"] or lease["since_at"])
    told: dict[str, str] = {
        HolderStanding.HELD.value: f"held by {who}, which {lives}, since {since}; {renewed}",
        HolderStanding.RELEASED.value: f"free; {who} gave it back {given_back}",
        HolderStanding.GONE.value: f"free: {who} took it {since} and is gone; the next run takes it",
        HolderStanding.LAPSED.value: f"not renewed: {who}, which {lives}, took it {since} ({renewed}); {watches}",
        HolderStanding.AHEAD.value: f"taken by {who}, whose clock ran ahead of this one's ({renewed}); {watches}",
    }
    return told[lease["standing"]]


def _ago(now: int, instant: int) -> str:
    away = spoken(abs(now - instant) // TICKS_PER_SECOND * TICKS_PER_SECOND)
    return f"{utc_text(instant)} ({away} {'ago' if instant - now < TICKS_PER_SECOND else 'from now'})"


def _streams_text(known: KnownRun, facts: Facts) -> str:
    streams = facts["streams"]
    kinds = [kind for kind in KIND_NAMES if any(each["kinds"].get(kind) for each in streams.values())]
    text = known.moments.text
    columns = {"stream": [*streams, "ledger"]}
    numbers = ["rows", *kinds, "held"]
    for name in numbers:
        values = [each[name] if name in {"rows", "held"} else each["kinds"].get(name, 0) for each in streams.values()]
        columns[name] = [*(f"{value:,}" if value else NOTHING for value in values), ""]
    columns["rows"][-1] = f"{facts['ledger']['rows']:,}" if facts["ledger"]["rows"] else NOTHING
    columns["newest row"] = [*(text(_of(each["newest"], "arrival_at")) for each in streams.values()), ""]
    if facts["live"]:
        columns["newest event time"] = [
            *(text(second(each["event_at"])) for each in facts["live"]["streams"].values()),
            "",
        ]
    else:
        columns["its event time"] = [*(text(_of(each["newest"], "event_at")) for each in streams.values()), ""]
    reached = {name: each["cti_at"] for name, each in facts["promises"].items() if not each["is_last"]}
    ctis = {name: reached.get(name, _of(each["newest_cti"], "event_at")) for name, each in streams.items()}
    # Of keys whose newest ones no carry has it is the one that came last, as the line `promise` says.
    last = {name for name, each in facts["promises"].items() if each["is_last"]}
    told = (f"{text(_infinite(cti))}{' (last)' if name in last else ''}" for name, cti in ctis.items())
    columns["newest CTI"] = [*told, ""]
    if not any(each["held"] for each in streams.values()):
        del columns["held"]
    return table_text(columns, numbers)


def _of(row: Facts | None, name: str) -> int | None:
    return None if row is None else row[name]


def _infinite(tick: int | None) -> int | None:
    return TABLE_INFINITY if tick is not None and tick >= TABLE_INFINITY else tick


def _commits_text(known: KnownRun, facts: Facts) -> str:
    rows = facts["commits"]
    columns = {
        "commit": [_numbers(row) for row in rows],
        "span" if facts["live"] else "interval": [_span_of(known, row) for row in rows],
        "state": [_state(row) for row in rows],
        "landed": [f"{row['landed']:,}" for row in rows],
        "rows out": [f"{sum(row['rows'].values()):,}" for row in rows],
        "ledger": [f"{row['ledger']:,}" for row in rows],
        LATE: [_late(row["lateness"]) for row in rows],
        "tasks": [_milliseconds(row, "tasks_ms") for row in rows],
        "in all": [f"{row['seconds']:.1f} s" for row in rows],
        "at": [utc_text(row["changed_at"]) for row in rows],
    }
    if not facts["live"]:
        del columns[LATE]
    return table_text(columns, ["commit", "landed", "rows out", "ledger", "tasks", "in all"])


def _late(lateness: Facts | None) -> str:
    """Say how late the timers of a commit were published: half of them, 99 % and all at most."""
    if not lateness or "max_ms" not in lateness:
        return NOTHING
    return " · ".join(milliseconds(lateness[name]) for name in ("p50_ms", "p99_ms", "max_ms"))


def _numbers(row: Facts) -> str:
    return str(row["commit"]) if row["first"] == row["commit"] else f"{row['first']}–{row['commit']}"


def _span_of(known: KnownRun, row: Facts) -> str:
    """Say what a commit covers; a reset covers nothing and stands at the state that the run went back to."""
    if row["start"] == row["end"]:
        return f"at {known.moments.text(row['end'])}"
    return _span(known, row["kind"] == "epoch", row)


def _state(row: Facts) -> str:
    replaced = f"superseded by {row['superseded_by']}" if row["superseded_by"] else ""
    if row["idle"]:
        idle = counted(row["commit"] - row["first"] + 1, "idle epoch")
        return f"{idle}, {replaced}" if replaced else idle
    if replaced:
        return replaced
    word = f"reset to {row['parent']}" if row["kind"] == "reset" else row["state"]
    return f"{word}, replaces {numbered(row['supersedes'])}" if row["supersedes"] else str(word)


def _milliseconds(row: Facts, name: str) -> str:
    value = row["durations"].get(name)
    return NOTHING if value is None else f"{value / 1000:.1f} s"


def _next_text(facts: Facts) -> str:
    if facts["lease"]["standing"] == HolderStanding.HELD.value:
        return f"it is being worked on; to look again: {facts['next']}"
    if facts["pending"] and facts["next"] == facts["pending"]["command"]:
        begun = ", ".join(_pending_name(each) for each in _all_pending(facts))
        adopts = facts["pending"]["kind"] == CommitKind.ADOPT
        return f"next: {facts['next']}  ({'gives up' if adopts else 'finishes'} commit {begun})"
    if any(each["why"] == REPLACED and each["command"] == facts["next"] for each in facts["stale"]):
        return f"next: {facts['next']}  (then ask status again: what follows may have become stale)"
    return f"next: {facts['next']}"
