"""Where a run stands, as plain values: what is published, pending and stale, who holds the lease, the last commits."""

from __future__ import annotations

from bisect import bisect_left
from itertools import groupby, takewhile
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pipelines.engine.commits.history import CommitKind, State, by_span
from pipelines.engine.commits.lease import Holder, HolderStanding, look, this_process
from pipelines.engine.commits.paths import QualityLostError, landed_path
from pipelines.engine.commits.quality import read_quality
from pipelines.engine.commits.settling import is_settled
from pipelines.engine.files.parquet import FileDamagedError
from pipelines.engine.landing.errors import SequenceBrokenError
from pipelines.jobs.facts.awaited import awaited, held_rows
from pipelines.jobs.facts.buffers import buffers_facts
from pipelines.jobs.facts.history import history_of
from pipelines.jobs.facts.legs import behind, legs_facts
from pipelines.jobs.facts.live import epochs_folded, is_played, live_of
from pipelines.jobs.facts.planned import PlanState, let_pass
from pipelines.jobs.facts.planning import plan_of
from pipelines.jobs.facts.presence import presence_of
from pipelines.jobs.facts.promised import newest_of, promises
from pipelines.jobs.runs.counts import counted, ledger_counts, stream_counts
from pipelines.jobs.runs.gate import blocking
from pipelines.jobs.runs.in_use import going_on, unapplied
from pipelines.jobs.runs.known import is_replayed
from pipelines.jobs.runs.replaced import others_text, under_another_flow
from pipelines.jobs.runs.stop_note import read_stop
from pipelines.operators.rows import KIND_NAMES, TICKS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipelines.engine.commits.history import Entry
    from pipelines.engine.commits.quality import Quality
    from pipelines.jobs.facts.planned import PlannedInterval, RunPlan
    from pipelines.jobs.runs.gate import GateFinding
    from pipelines.jobs.runs.known import KnownRun

    Facts = dict[str, Any]

DOCTOR = "pulseline doctor FLOW"
MOST_SAID = 200
"""Characters of what a library says of a file."""
KINDS_OF = {"newest": KIND_NAMES, "newest_cti": ("cti",)}
GO_ON = ("pulseline run", "pulseline stream")
"""Commands that go on with the flow that the run was made by, and with no other."""
REPLACED = "began from what was replaced since"
LAST = 10
"""Commits that are told one by one; idle epochs in a row count as one."""


def status_of(known: KnownRun, now: int) -> Facts:
    """Say where a run stands, as plain values; instants, whose names end in `_at`, `start` or `end`, in ticks.

    Args:
        known: the run.
        now: wall time, in ticks.
    """
    damaged = [*known.damaged, *known.out_of_step]
    # Each leg begins commits of its own.
    begun = [_pending(known, part, row) for part in known.parts if (row := part.state.pending)]
    before = len(damaged)
    live = _read(lambda: live_of(known, now) or {}, {}, damaged) or None
    is_known = len(damaged) == before
    plan = plan_of(known)
    damaged += [_damage(plan.damage)] if plan.damage else []
    facts: Facts = {
        "flow": known.name,
        "run": known.run,
        "root": str(known.root),
        "timezone": known.moments.name,
        "now_at": now,
        "published": _published(known),
        "landed": _landed(known),
        "streams": {name: _stream(known, name, damaged) for name in known.tables},
        "ledger": _ledger(known),
        "lease": lease_of(known, now),
        "stopped": read_stop(known.root),
        "pending": begun[0] if begun else None,
        "also_pending": begun[1:],
        "broken": _broken(known),
        "unsettled": _unsettled(known),
        "rejected": rejected_of(known),
        "stale": _stale(known, plan),
        "unread": plan.unread or None,
        "edited": unapplied(known),
        "other_flow": others_text(under_another_flow(known.state), known.moments),
        "live": live,
        "legs": legs_facts(known.root, now, known.states),
        "replay": buffers_facts(known.root, known.state),
        "history": None if is_replayed(known.root) else history_of(landed_path(known.root)),
        "commits": [_commit(known, rows) for rows in _shown(known)],
    }
    ended = facts["live"] is not None and facts["live"]["final_at"] is not None
    facts["awaited"] = {} if ended else _read(lambda: awaited(known), {}, damaged)
    facts["promises"] = _read(lambda: promises(known, facts["streams"], is_over=ended and _is_done(facts)), {}, damaged)
    facts["sources"] = _read(lambda: presence_of(known, facts["lease"], live, now), {}, damaged) if is_known else {}
    facts["damaged"] = _first(damaged, known)
    gone = facts["live"] is not None and facts["live"]["backlog"]["gone"] is not None
    if damaged or gone:
        return facts | {"next": known.command("doctor")}
    then = _next(known, facts)
    # What was begun is finished under its own plan, whatever the file says now.
    edited = facts["edited"] if not facts["pending"] and then.startswith(GO_ON) else None
    return facts | {"next": going_on(known, edited, then, in_legs=bool(facts["legs"]))}


def _is_done(facts: Facts) -> bool:
    """Say whether a live run has published all that landed, each leg of it."""
    backlog = facts["live"]["backlog"]
    return not backlog["sequences"] and backlog["gone"] is None and not behind(facts["legs"])


def _read(find: Callable[[], Facts], otherwise: Facts, damaged: list[str]) -> Facts:
    """Give what files of the run say; where one is gone or cannot be read, the rest is told all the same, and that."""
    try:
        return find()
    except (OSError, pa.ArrowException, FileDamagedError, SequenceBrokenError) as error:
        damaged.append(_damage(shorten(str(error), MOST_SAID, placeholder=" …")))
        return otherwise


def _damage(said: str) -> str:
    return f"a file of the run is gone or cannot be read ({said}): {DOCTOR} says what can be had again"


def damage_of(known: KnownRun) -> str | None:
    """Say what of the published rows is not there, or is not the run's own, by a glance at each table; else None."""
    damaged = [*known.damaged, *known.out_of_step]
    for name in known.tables if not damaged else ():
        _stream(known, name, damaged)
    return _first(damaged, known)


def _first(damaged: Sequence[str], known: KnownRun) -> str | None:
    """Give the first damage, and how many more a glance at each table finds: what cannot be read follows of them."""
    more = len({*known.damaged, *known.out_of_step}) - 1
    return f"{damaged[0]}{f'; and {more} more, which {DOCTOR} names' if more > 0 else ''}" if damaged else None


def _unsettled(known: KnownRun) -> int | None:
    """Give the commit that is published and that not every table has followed yet; None where all have."""
    newest = known.state.newest_published
    return None if newest is None or is_settled(known.state, known.root) else newest.commit


def _published(known: KnownRun) -> Facts:
    rows = known.state.published
    if not rows:
        return {"commits": 0, "start": None, "end": None, "first": None, "last": None}
    numbers = [row.commit for row in rows]
    first, last = rows[0].span.start, rows[-1].span.end
    return {"commits": len(rows), "start": first, "end": last, "first": min(numbers), "last": max(numbers)}


def _landed(known: KnownRun) -> dict[str, int]:
    found = dict.fromkeys(known.sources, 0)
    for row in known.state.published:
        for name, count in _counted(row, "landed").items():
            found[name] = found.get(name, 0) + count
    return found


def _counted(row: Entry, name: str) -> dict[str, int]:
    counts = row.counts.get(name)
    return counts if isinstance(counts, dict) else {}


def _stream(known: KnownRun, name: str, damaged: list[str]) -> Facts:
    known = known.of(name)
    kinds = stream_counts(known, name)
    newest: Facts = {"newest": None, "newest_cti": None}
    return {
        "rows": sum(kinds.values()),
        "kinds": {kind: kinds[kind] for kind in KIND_NAMES if kinds[kind]},
        "held": held_rows(known, name),
        **_read(lambda: {key: newest_of(known, name, KINDS_OF[key]) for key in newest}, newest, damaged),
    }


def _ledger(known: KnownRun) -> Facts:
    counts = ledger_counts(known)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    lines = [{"stream": at, "reason": why, "action": done, "rows": count} for (at, why, done), count in ranked]
    return {"rows": sum(counts.values()), "lines": lines}


def lease_of(known: KnownRun, now: int) -> Facts:
    """Say who holds the lease of a run, since when, and what can be seen of it at a glance."""
    lease = known.state.lease
    if lease is None:
        nobody = {"holder": None, "token": 0, "since_at": None, "renewed_at": None, "process": None}
        return {"standing": HolderStanding.FREE.value, **nobody}
    seen = look(known.root, lease, this_process())
    return {
        "standing": seen.standing(now).value,
        "holder": Holder.read(lease.detail).facts(),
        "token": lease.token,
        "since_at": lease.at,
        "renewed_at": seen.renewal.renewed if seen.renewal else None,
        "process": seen.life.value,
    }


def _judged(known: KnownRun, row: Entry) -> tuple[Quality, ...]:
    """Give what was found of a commit; nothing where what checks found cannot be read, which is told by itself."""
    try:
        return read_quality(known.root, commit=row.commit)
    except QualityLostError:
        return ()


def _pending(known: KnownRun, part: KnownRun, row: Entry) -> Facts:
    """Tell the commit that a part of the run has begun."""
    leg = None if part is known else part.root.name
    named = str(row.commit) if leg is None else f"{leg}:{row.commit}"
    held = row.state is State.WRITTEN and row.kind is CommitKind.INTERVAL
    check = known.command("check", "--commit", str(row.commit)) if held else None
    judged = _judged(known, row) if held else ()
    return {
        "commit": row.commit,
        "leg": leg,
        "kind": str(row.kind),
        "state": str(row.state),
        "start": row.span.start,
        "end": row.span.end,
        "since_at": row.at,
        "command": _finishing(known, row, check, judged),
        "check": check,
        "checked": bool(judged),
        "failed": bool(blocking(judged)),
        "abandon": known.command("abandon", "--commit", named) if row.state is State.INTENT else None,
    }


def _broken(known: KnownRun) -> str | None:
    """Say in which published commits a scan let something out that breaks a promise; None where in none."""
    found = [
        (row, name, broken)
        for part in known.parts
        for row in part.state.published
        for name in row.counts
        if (broken := counted(row, name).get("broken", 0))
    ]
    if not found:
        return None
    first, name, broken = found[0]
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    noun = "row breaks" if broken == 1 else "rows break"
    told = f"{broken:,} {noun} what {name} promised in commit {first.commit}{more}"
    # A leg of its own numbers its commits for itself.
    which = ("--commit", str(first.commit)) if len(known.parts) == 1 else ()
    return f"{told}: {known.command('check', *which)}"


def _finishing(known: KnownRun, row: Entry, check: str | None, judged: Sequence[GateFinding]) -> str:
    """Spell the command that comes next for a pending commit."""
    if check is None:
        return command_for(known, row)
    # Of one that failed its check that says how it is decided of.
    is_decided = judged and not blocking(judged)
    return known.command("publish", "--commit", str(row.commit)) if is_decided else check


def command_for(known: KnownRun, row: Entry) -> str:
    """Spell the command that does a commit's work, or finishes it."""
    if row.kind is CommitKind.INTERVAL:
        return known.run_command(*row.span)
    return known.command("apply" if row.kind is CommitKind.ADOPT else "stream")


def rejected_of(known: KnownRun) -> Facts | None:
    """Tell the newest commit that was rejected.

    Not where its span was published behind it, or a person had let the same rows pass, which stand and may stay.
    """
    rejected = {number: row for number, row in known.state.commits.items() if row.state is State.REJECTED}
    newest = rejected.get(max(rejected, default=0))
    later = [row for row in known.state.published if newest is not None and row.commit > newest.commit]
    if newest is None or any(row.span.meets(newest.span) for row in later):
        return None
    stands = known.state.at(newest.span)
    if stands is not None and let_pass(stands, newest) and stands not in known.state.stale:
        return None
    return {"commit": newest.commit, "start": newest.span.start, "end": newest.span.end, "why": newest.verdict}


def _stale(known: KnownRun, plan: RunPlan) -> list[Facts]:
    """Give what is stale and follows one another for the same cause, and the command that heals each.

    Intervals are run again, by their plan where the flow or what arrives has changed; what only follows them may come
    out as it is, and has no command. A stream that began from an interval which was replaced goes back to what replaced
    it.
    """
    replaced = {row.commit for row in known.state.stale}

    def why(each: PlannedInterval) -> str:
        return REPLACED if each.commit in replaced else each.why

    groups = [list(group) for _, group in groupby(plan.found, key=lambda each: (each.state, why(each)))]
    found = [
        {
            "start": group[0].span.start,
            "end": group[-1].span.end,
            "commits": [each.commit for each in group],
            "why": why(group[0]),
            "command": _healing(known, group, why(group[0])),
        }
        for group in groups
        if group[0].state is PlanState.STALE
    ]
    return [*found, *stale_epochs(known)]


def _healing(known: KnownRun, group: Sequence[PlannedInterval], why: str) -> str | None:
    if why == REPLACED or (known.state.streams and not group[0].follows):
        # A run that streams has no plan.
        return known.run_command(group[0].span.start, group[-1].span.end)
    return None if group[0].follows else known.command("run", "--plan")


def stale_epochs(known: KnownRun) -> list[Facts]:
    """Give what a stream made that began from an interval which was replaced since, to its end or the next interval.

    Returns:
        Its span in ticks, its commits, why it is stale, and the reset that has it made again.
    """
    rows = known.state.in_order
    ends = {row.span.end: row.commit for row in known.state.published if row.kind is CommitKind.INTERVAL}
    found = []
    for first in (row for row in known.state.stale if row.kind is not CommitKind.INTERVAL and row.span.start in ends):
        place = bisect_left(rows, by_span(first), key=by_span)
        made = list(takewhile(lambda row: row.kind is not CommitKind.INTERVAL, rows[place:]))
        found.append(
            {
                "start": first.span.start,
                "end": made[-1].span.end,
                "commits": [row.commit for row in made],
                "why": REPLACED,
                "command": known.command("reset", "--to", str(ends[first.span.start])),
            }
        )
    return found


def _shown(known: KnownRun) -> list[list[Entry]]:
    return epochs_folded(sorted(known.state.commits.values(), key=lambda row: row.commit))[-LAST:]


def _commit(known: KnownRun, rows: list[Entry]) -> Facts:
    """Tell a commit, or idle epochs that follow one another."""
    row = rows[-1]
    steps = reversed(known.state.entries)
    first = min(rows[0].commit, row.first_together)
    begun = min(step.at for step in steps if step.commit == first and step.state is not State.LEASE)
    # Of what was worked on in one go each has its share.
    shared = sum(each.first_together == row.first_together for each in known.state.commits.values())
    successor = known.state.successors.get(row.commit)
    made = {name: count for name in known.tables if (count := _rows(row, name))}
    return {
        "commit": row.commit,
        "first": rows[0].commit,
        "idle": row.idle,
        "kind": str(row.kind),
        "state": "superseded" if successor else str(row.state),
        "superseded_by": successor,
        "supersedes": list(row.supersedes),
        "parent": row.parent,
        "start": rows[0].span.start,
        "end": row.span.end,
        "landed": sum(_counted(row, "landed").values()),
        "rows": made,
        "ledger": sum(_counted(row, "ledger").values()),
        "durations": dict(row.durations),
        "lateness": row.detail.get("lateness"),
        "seconds": round((row.at - begun) / TICKS_PER_SECOND / shared, 3),
        "begun_at": begun,
        "changed_at": row.at,
    }


def _rows(row: Entry, name: str) -> int:
    return sum(_counted(row, name).get(kind, 0) for kind in KIND_NAMES)


def _next(known: KnownRun, facts: Facts) -> str:
    """Spell the command to type next."""
    working = facts["lease"]["standing"] == HolderStanding.HELD.value
    if working:
        return known.command("status")
    if is_replayed(known.root):
        # Made by a replay: nothing goes on from it.
        return known.command("show", list(known.streams)[-1])
    for waits in (facts["pending"], *(each for each in facts["stale"] if each["why"] == REPLACED)):
        if waits:
            return str(waits["command"])
    if facts["live"]:
        lost = facts["replay"] and facts["replay"]["lost"]
        return f"{'bring back the storage of a buffer, then ' if lost else ''}{_next_live(known, facts)}"
    return _next_of_intervals(known, facts)


def _next_of_intervals(known: KnownRun, facts: Facts) -> str:
    """Spell what goes on with a backfill, or makes anew what is stale."""
    if facts["rejected"]:
        # Behind a flow that was applied the days before may have to be made anew as well.
        is_of_more = known.is_applied and known.state.published
        return known.command("plan") if is_of_more else known.looking_at(facts["rejected"]["commit"])
    if heals := next((each["command"] for each in facts["stale"] if each["command"]), None):
        return str(heals)
    if facts["unread"] and not facts["live"]:
        # What would run next could not be read either.
        return known.command("plan")
    return known.next_command() if known.state.published else known.first_command()


def _next_live(known: KnownRun, facts: Facts) -> str:
    """Spell what goes on with a stream, or shows what it made where it has come to its end."""
    live = facts["live"]
    if _is_done(facts) and (is_played(known, live) or live["final_at"] is not None):
        return known.command("show", list(known.streams)[-1])
    return known.command("stream")
