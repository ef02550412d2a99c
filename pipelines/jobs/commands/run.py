"""`pulseline run`: backfill a flow over a span, with a line for each interval and what remains."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from expectations.laws import BLOCKING
from pipelines.engine.columnar.columns import instant_text
from pipelines.engine.commits.entry import LEDGER, CommitKind, State
from pipelines.engine.commits.lease import Claim
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.commits.quality import read_quality
from pipelines.engine.commits.readers import log_state
from pipelines.engine.landing.manifest import load_manifest
from pipelines.engine.tasks.spark import SparkEngine
from pipelines.errors import PulselineError
from pipelines.flows.check import with_checks
from pipelines.flows.definition import flow_from_json
from pipelines.flows.grid import intervals
from pipelines.jobs.environment.engines import engine_named
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.parameters import parameters_of
from pipelines.jobs.environment.settings import MAIN_RUN, command, load_flow, publishing, read_settings
from pipelines.jobs.runs.backfill import Backfill, Ran, run_backfill
from pipelines.jobs.runs.counts import counted as rows_of_commit
from pipelines.jobs.runs.gate import Checked, Gate, RejectedError, blocking, hold, publish_at_once
from pipelines.jobs.runs.in_legs import require_one_piece
from pipelines.jobs.runs.in_use import as_run, require_in_use
from pipelines.jobs.runs.lineage import followed
from pipelines.jobs.runs.lineage_job import Job
from pipelines.jobs.runs.looked_up import require_others
from pipelines.jobs.runs.played import read_range
from pipelines.jobs.runs.replaced import keep_own_file, others_text, require_own_file, under_another_flow
from pipelines.jobs.text.moments import Moments
from pipelines.operators.plain_words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pipelines.engine.commits.history import Entry, LogState
    from pipelines.engine.tasks.stages import Engine
    from pipelines.flows.model import Flow
    from pipelines.jobs.environment.settings import Settings
    from pipelines.jobs.facts.views import Session
    from pipelines.jobs.runs.backfill import Interval
    from pipelines.jobs.runs.gate import GateFinding

AUTO = "auto"


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """What `pulseline run` was asked for."""

    flow: str
    start: str
    end: str
    engine: str | None = None
    run: str = MAIN_RUN
    one_shot: bool = False
    """One commit over the whole span."""
    at_once: str = AUTO
    """Intervals that are worked on in one go, at most, each a commit of its own; `auto`: as many as are small."""
    take_over: bool = False
    hold: bool = False
    """Leave the last interval at written."""
    check: bool = True
    """Publish an interval only when its blocking expectations hold."""
    accept_loss: bool = False
    """Replace published rows of a source by none, where none arrive any more."""
    as_json: bool = False
    """End with one line of JSON."""
    params: Sequence[str] = ()
    """`name=value`, for the parameters of the flow."""


def run_flow(wanted: RunRequest, echo: Callable[[str], None]) -> tuple[Entry, ...]:
    """Backfill a flow over a span of its grid, say what came of each interval, and give the commits."""
    at_once_of(wanted.at_once)
    settings = read_settings()
    flow = load_flow(settings, wanted.flow, parameters_of(wanted.params))
    for warning in flow.warnings:
        echo(f"warning: {warning}")
    spans = intervals(flow, wanted.start, wanted.end)
    if wanted.one_shot:
        spans = [(spans[0][0], spans[-1][1])]
    root = settings.root(flow.name, wanted.run)
    state = log_state(root)
    require_one_piece(root, state, "run", _instead(wanted, flow, root, spans))
    _allowed(wanted, root, spans)
    flow = as_run(flow, state)
    require_own_file(root, flow)
    if state.tip is not None and state.tip.span.end == spans[0][0]:
        require_in_use(state, state.tip.commit, flow, wanted.run, echo)
    of_spark = (settings.master, settings.spark_log, settings.spark)
    runner = engine_named(wanted.engine or settings.engine, *of_spark)
    session = runner.session if isinstance(runner, SparkEngine) else None
    if first := _goes_first(flow, root, state, spans, check=wanted.check):
        echo(first)
    judged: dict[int, Sequence[GateFinding]] = {}
    gate = checking(root, flow, session, judged) if wanted.check else publish_at_once
    progress = RunProgress(flow, len(spans), echo)
    if session is not None:
        echo(f"{counted(len(spans), 'interval')} to run; Spark starts, some seconds")
    backfill = _backfill(wanted, settings, flow, runner, gate)

    def done(interval: Ran) -> None:
        keep_own_file(root, flow)
        progress.done(interval)

    try:
        with followed(job_of(backfill, spans, wanted.engine or settings.engine)):
            ran = run_backfill(backfill, spans, done=done)
    except PulselineError as ended:
        after = log_state(root)
        _warned(wanted, judged, after, echo)
        _left(flow, state, after, spans, echo)
        if isinstance(ended, RejectedError):
            echo(f"next: {command('check', wanted.flow, '--commit', str(ended.commit), run=wanted.run)}")
        raise
    finally:
        runner.close()
    progress.summary(ran)
    after = log_state(root)
    _warned(wanted, judged, after, echo)
    if others := under_another_flow(after):
        echo(f"note: {others_text(others, Moments(str(flow.timezone)))}")
    entries = tuple(each.entry for each in ran)
    _next(wanted, flow, entries, echo)
    return entries


def job_of(backfill: Backfill, spans: Sequence[Interval], engine: str) -> Job:
    """Give a backfill as catalogues are told of it."""
    span = (spans[0][0], spans[-1][1])
    return Job(flow=backfill.flow, root=backfill.root, base=backfill.base, command="run", engine=engine, span=span)


def _goes_first(flow: Flow, root: Path, state: LogState, spans: Sequence[Interval], *, check: bool) -> str | None:
    """Say what becomes of a commit that was left to be checked, where other intervals are run."""
    entry = state.pending
    if entry is None or (entry.state, entry.kind) != (State.WRITTEN, CommitKind.INTERVAL) or entry.span in spans:
        return None
    if blocking(read_quality(root, commit=entry.commit)):
        return None
    fate = "checks it first, and publishes it if it holds" if check else "publishes it first, without a check"
    return f"note: commit {entry.commit} ({span_text(flow, entry.span)}) waits to be published: this run {fate}"


def _left(
    flow: Flow, before: LogState, after: LogState, spans: Sequence[Interval], echo: Callable[[str], None]
) -> None:
    """Say which intervals a run that ended early did not come to; nothing where it came to none at all."""
    states = {number: entry.state for number, entry in before.commits.items()}
    new = [entry.span for number, entry in after.commits.items() if entry.state is not states.get(number)]
    rest = [span for span in spans if new and span[0] >= max(each.end for each in new)]
    if rest:
        told = span_text(flow, (rest[0][0], rest[-1][1]))
        echo(f"note: {counted(len(rest), 'interval')} not begun ({told}): run again, when the one before is published")


def _instead(wanted: RunRequest, flow: Flow, root: Path, spans: Sequence[Interval]) -> str:
    """Spell what runs a span where the run is live in legs: the stream, while it has not ended, or a run of its own."""
    own = "add --run NAME for a run in one piece"
    tip = log_state(root).tip
    if tip is not None and tip.upto and load_manifest(landed_path(root), tip.upto).final is not None:
        return f"its stream has ended; {own}"
    played, moments = read_range(root), Moments(str(flow.timezone))
    given = [word for each in wanted.params for word in ("--param", each)]
    if played is None:
        stream = command("stream", wanted.flow, *given, run=wanted.run)
    else:
        ends = (moments.argument(played[0]), moments.argument(max(played[1], spans[-1][1])))
        words = ("--start", ends[0], "--end", ends[1], "--available-now", *given)
        stream = command("stream", wanted.flow, *words, run=wanted.run)
    return f"{stream} goes on with it in its legs; {own} beside it"


def _allowed(wanted: RunRequest, root: Path, spans: Sequence[Interval]) -> None:
    """Refuse what would be found out too late: a commit that would slip past its check.

    Raises:
        WrongUse: says what to do.
    """
    pending = log_state(root).pending
    if wanted.check or pending is None or pending.state is not State.WRITTEN:
        return
    if (pending.span.start, pending.span.end) not in spans:
        raise WrongUse(
            f"commit {pending.commit} must be published or rejected first, --no-check is for the span asked for alone: "
            f"{command('check', wanted.flow, '--commit', str(pending.commit), run=wanted.run)}, then publish it; or "
            f"{command('abandon', wanted.flow, '--commit', str(pending.commit), run=wanted.run)}"
        )


def _backfill(wanted: RunRequest, settings: Settings, flow: Flow, engine: Engine, gate: Gate) -> Backfill:
    return Backfill(
        flow=flow,
        root=settings.root(flow.name, wanted.run),
        base=settings.feeds_base(flow),
        engine=engine,
        claim=Claim.TAKE_OVER if wanted.take_over else Claim.ASK,
        gate=gate,
        last_gate=hold if wanted.hold else None,
        accept_loss=wanted.accept_loss,
        at_once=at_once_of(wanted.at_once),
    )


def at_once_of(text: str) -> int | None:
    """Read how many intervals are worked on in one go; None for `auto`.

    >>> at_once_of("30"), at_once_of("auto")
    (30, None)

    Raises:
        WrongUse: it is neither.
    """
    if text == AUTO:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise WrongUse(f"--at-once must be a whole number from 1 on, or {AUTO}; it is {text}")
    return int(text)


def checking(
    root: Path, flow: Flow, session: Session | None, judged: dict[int, Sequence[GateFinding]] | None = None
) -> Gate:
    """Give the gate that checks each interval with Great Expectations before it is published.

    Args:
        root: the run's folder.
        flow: what runs; a commit that an older flow began is judged by its own, and by the checks of this one.
        session: as `check_commit` has it.
        judged: takes what was found, by commit.

    Raises:
        WrongUse: the flow has a check of another package than Great Expectations that cannot be asked.
    """
    require_others(flow)
    judged = {} if judged is None else judged

    def judge(number: int, state: LogState) -> Sequence[GateFinding]:
        from pipelines.jobs.commands.check import check_commit

        plan = state.commits[number].plan
        own = flow_from_json(json.loads(plan)["flow"]) if plan else flow
        judged[number] = check_commit(with_checks(own, flow), root, number, state, session)
        return judged[number]

    return Checked(judge)


def _warned(
    wanted: RunRequest, judged: Mapping[int, Sequence[GateFinding]], after: LogState, echo: Callable[[str], None]
) -> None:
    """Name the expectations that only warn and do not hold of what was published."""
    # Of a driver that was overtaken some were judged that are in no log.
    known = (commit for commit in judged if commit in after.commits)
    seen = (commit for commit in known if after.commits[commit].state is State.PUBLISHED)
    broken = Counter(
        f"{each.table}: {each.sentence}"
        for commit in seen
        for each in judged[commit]
        if not each.held and each.severity != BLOCKING
    )
    for about, times in broken.most_common(MOST_WARNINGS):
        echo(f"warning: {about}: does not hold in {counted(times, 'interval')}")
    if broken:
        more = len(broken) - MOST_WARNINGS
        others = f"{counted(more, 'more warning')}; " if more > 0 else ""
        echo(f"note: {others}{command('report', wanted.flow, run=wanted.run)} has the rows that break them")


def _next(wanted: RunRequest, flow: Flow, ran: Sequence[Entry], echo: Callable[[str], None]) -> None:
    for source, (landed, lost) in unread(ran).items():
        if lost > landed:
            said = f"{counted(lost, 'row')} of `{source}` could not be read, and {landed:,} could"
            echo(f"note: {said}: {command('ledger', wanted.flow, run=wanted.run)} says what was wrong with each")
    held = next((each.commit for each in ran if each.state is State.WRITTEN), None)
    if held is None:
        shown = command("show", wanted.flow, list(flow.streams)[-1], run=wanted.run)
        step = f"{shown}, or {command('report', wanted.flow, run=wanted.run)}"
    else:
        step = publishing(wanted.flow, held, run=wanted.run)
    echo(f"next: {step}")
    if wanted.as_json:
        echo(json_of(wanted, flow, ran, step))


def json_of(wanted: RunRequest, flow: Flow, ran: Sequence[Entry], step: str) -> str:
    """Spell what was done, and what to type next, as one line of JSON."""
    commits = [facts_of(each) for each in ran]
    return json.dumps({"flow": flow.name, "run": wanted.run, "commits": commits, "next": step})


def facts_of(entry: Entry) -> dict[str, object]:
    """Give what a commit says of itself, for a line of JSON."""
    return {
        "commit": entry.commit,
        "state": entry.state.value,
        "start": instant_text(entry.span.start),
        "end": instant_text(entry.span.end),
        "counts": dict(entry.counts),
        "hashes": dict(entry.hashes),
        "verdict": entry.verdict,
    }


VERDICT = re.compile(r"(\d+) of (\d+) expectations hold")
"""What a commit says that nobody had to decide of."""
UNREAD = ("unreadable_row", "missing_column")
"""Reasons for which rows of files do not land."""
FEWER = 2
"""How many times fewer rows than before are told."""
MOST_WARNINGS = 3
"""Warnings that are named by `run`; the rest are counted."""


class RunProgress:
    """A line for each interval, with the time that the rest will take.

    Args:
        flow: what runs.
        total: intervals in all.
        echo: where lines go.
    """

    def __init__(self, flow: Flow, total: int, echo: Callable[[str], None]) -> None:
        self._flow, self._total, self._echo = flow, total, echo
        self._count, self._seconds, self._begun = 0, 0.0, time.perf_counter()

    def done(self, ran: Ran) -> None:
        """Say what one interval gave, and how long the rest will take."""
        self._count += 1
        # Each has its share of those that were worked on in one go, and are told in one go.
        self._seconds += ran.seconds
        left = max(0, self._total - self._count)
        rest = self._seconds / self._count * left
        remains = f"{left} left, about {rest:.0f} s" if left else "all done"
        if ran.behind:
            remains = f"in one go with {ran.behind} more"
        waits = "  waits to be checked" if ran.entry.state is State.WRITTEN else ""
        before = None if ran.before in {None, sum(rows_of_commit(ran.entry, "landed").values())} else ran.before
        rows = rows_text(ran.entry, before)
        self._echo(f"{span_text(self._flow, ran.entry.span)}  {rows}  {ran.seconds:.1f} s{waits}  ({remains})")

    def summary(self, ran: list[Ran]) -> None:
        """Say what all intervals gave together."""
        seconds = time.perf_counter() - self._begun
        seen = [each.entry for each in ran if each.entry.state is State.PUBLISHED]
        commits = ", ".join(str(entry.commit) for entry in seen[:8]) + (", ..." if len(seen) > 8 else "")  # noqa: PLR2004
        replaced = sum(len(entry.supersedes) for entry in seen)
        note = f", replacing {counted(replaced, 'earlier one')}" if replaced else ""
        noun = "commit" if len(seen) == 1 else "commits"
        named = f" ({commits})" if seen else ""
        held = [str(each.entry.commit) for each in ran if each.entry.state is State.WRITTEN]
        waits = f"; commit {held[0]} waits to be checked" if held else ""
        self._echo(f"published {len(seen)} {noun}{named}{note} in {seconds:.1f} s{_kept(self._flow, seen)}{waits}")
        for told in _sparse(self._flow, ran):
            self._echo(
                f"note: {told}: see whether the files of that time are there, and whole, and what the ledger says"
            )


def _sparse(flow: Flow, ran: Sequence[Ran]) -> Iterator[str]:
    """Say in which intervals nothing landed, and in which not half of the rows that they had before."""
    landed = [(each, sum(rows_of_commit(each.entry, "landed").values())) for each in ran]
    empty = [each for each, rows in landed if not rows]
    fewer = [each for each, rows in landed if rows and FEWER * rows < (each.before or 0)]
    for found, what in ((empty, "nothing landed in"), (fewer, "not half of the rows of before landed in")):
        if found:
            more = f" and {counted(len(found) - 1, 'more interval')}" if found[1:] else ""
            yield f"{what} {span_text(flow, found[0].entry.span)}{more}"


def unread(entries: Sequence[Entry]) -> dict[str, tuple[int, int]]:
    """Count, by source, the rows that landed and those that could not be read."""
    found: dict[str, tuple[int, int]] = {}
    for entry in entries:
        lines = entry.counts.get(LEDGER, {})
        for source, rows in rows_of_commit(entry, "landed").items():
            lost = sum(lines.get(f"{source} {why} dropped", 0) for why in UNREAD) if isinstance(lines, dict) else 0
            before = found.get(source, (0, 0))
            found[source] = before[0] + rows, before[1] + lost
    return found


def _kept(flow: Flow, seen: Sequence[Entry]) -> str:
    """Say how many expectations hold; of days that differ, from how many to how many, and of which the fewest."""
    verdicts = {entry.verdict: entry for entry in reversed(seen) if entry.verdict}
    counts = {each: VERDICT.fullmatch(each) for each in verdicts}
    held, every = ({each: int(found[n]) for each, found in counts.items() if found} for n in (1, 2))
    if len({*held.values()}) < 2 or len(held) < len(verdicts):  # noqa: PLR2004 - there is no from and to
        return f"; {', '.join(reversed(verdicts))}" if verdicts else ""
    fewest = min(held, key=lambda each: held[each])
    of = f" of {every[fewest]}" if len({*every.values()}) == 1 else ""
    return (
        f"; {held[fewest]} to {max(held.values())}{of} expectations hold, "
        f"fewest of {span_text(flow, verdicts[fewest].span)}"
    )


def span_text(flow: Flow, span: Sequence[int]) -> str:
    """Spell an interval by its local days where it begins and ends at midnight, else by its instants."""
    import pendulum

    local = [pendulum.from_timestamp(tick / 1_000_000, tz=flow.timezone) for tick in span]
    if all(moment.time().isoformat() == "00:00:00" for moment in local):
        first, last = local[0].to_date_string(), local[1].subtract(days=1).to_date_string()
        return first if first == last else f"{first} to {last}"
    return " to ".join(instant_text(tick) for tick in span)


def rows_text(entry: Entry, before: int | None = None) -> str:
    """Spell what a commit landed, and the rows of each of its streams.

    Args:
        entry: the commit.
        before: rows that had landed for what it replaces, where they were others.
    """
    landed = sum(rows_of_commit(entry, "landed").values())
    names = [name for name in entry.counts if name not in {"landed", LEDGER}]
    said = f"landed {landed:,}{'' if before is None else f' ({before:,} before)'}  "
    return said + "  ".join(f"{name} {entry.rows_of(name):,}" for name in [*names, LEDGER])
