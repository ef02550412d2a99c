"""`pulseline check`: judge what is published, or one commit in place of what it would supersede, and keep the verdict.

The gate asks `check_commit`; people and DAGs ask `check_flow`.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from expectations.judge import judge, judge_reckoned
from expectations.judgement import Judgement
from pipelines.engine.columnar.clock import wall_now
from pipelines.engine.commits.entry import CommitKind, Entry, State
from pipelines.engine.commits.plan import definition_of, planned
from pipelines.engine.commits.quality import Quality, judged_name, write_quality
from pipelines.engine.commits.readers import log_state
from pipelines.engine.files.parquet import FileDamagedError
from pipelines.engine.landing.errors import SequenceBrokenError
from pipelines.errors import Exit
from pipelines.flows.check import with_checks
from pipelines.flows.definition import flow_from_json
from pipelines.flows.grid import cut_at
from pipelines.flows.legs import MAIN
from pipelines.jobs.environment.engines import CORE
from pipelines.jobs.environment.errors import JobError, WrongUse
from pipelines.jobs.environment.settings import load_flow, read_settings
from pipelines.jobs.facts.data_docs import docs_folder
from pipelines.jobs.facts.failing_rows import FailingRows
from pipelines.jobs.facts.home import red_or_lost
from pipelines.jobs.facts.recomputation import recomputed
from pipelines.jobs.facts.told_at_landing import landings_told
from pipelines.jobs.facts.unchanged import FOREIGN, unchanged_in
from pipelines.jobs.facts.usual import usual
from pipelines.jobs.facts.views import JudgedCommits, JudgedPart, Session, views_of
from pipelines.jobs.runs.known import open_run
from pipelines.jobs.runs.lineage import followed
from pipelines.jobs.runs.lineage_job import CHECK, Job
from pipelines.jobs.runs.looked_up import require_others
from pipelines.jobs.runs.standing import standing
from pipelines.jobs.words.verdicts import SpokenVerdict, json_lines, text_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from expectations.reckoned import Reckoned
    from pipelines.engine.commits.history import LogState
    from pipelines.flows.model import Flow
    from pipelines.jobs.environment.settings import Settings
    from pipelines.jobs.facts.recomputation import DeepSample
    from pipelines.jobs.facts.views import Parts
    from pipelines.jobs.runs.known import KnownRun

__all__ = ["Judgement", "check_commit", "check_flow", "check_span"]

JUDGEABLE = frozenset({State.WRITTEN, State.PUBLISHED, State.REJECTED})
UNSEEN = JUDGEABLE - {State.PUBLISHED}


def check_commit(
    flow: Flow, root: Path, number: int, state: LogState | None = None, session: Session | None = None
) -> tuple[Judgement, ...]:
    """Judge a commit as if it stood in place of what it would supersede, and keep what was found.

    Great Expectations' own pages are made where something was found.

    Args:
        flow: the model that the commit was made by.
        root: the run's folder.
        number: of a commit that is written, published or rejected.
        state: the log, where the caller has read it.
        session: asked where there are very many rows; without one they are judged in this process.

    Raises:
        WrongUse: there is no such commit, it has no rows yet, or none any more.
    """
    state = state or log_state(root)
    part = JudgedPart(root=root, state=state, judged=_one(state, number))
    return _check(flow, {MAIN: part}, number, session, docs_if_held=False).judged


def check_span(  # noqa: PLR0913 - which rows, of which run
    flow: Flow,
    root: Path,
    start: int | None,
    end: int | None,
    state: LogState | None = None,
    session: Session | None = None,
) -> tuple[Judgement, ...]:
    """Judge the published commits that lie in a span, together, and keep what was found.

    Args:
        flow: the model that the commits were made by.
        root: the run's folder.
        start: only commits that end after this instant, in ticks.
        end: only commits that start before this instant, in ticks.
        state: the log, where the caller has read it.
        session: as `check_commit` has it.

    Raises:
        WrongUse: nothing is published there.
    """
    state = state or log_state(root)
    part = JudgedPart(root=root, state=state, judged=_published(state, start, end))
    return _check(flow, {MAIN: part}, 0, session).judged


def _one(state: LogState, number: int) -> JudgedCommits:
    entry = _judgeable(state, number)
    return JudgedCommits(entries=(entry,), earlier=_earlier(state, entry, _replaced(state, entry)))


def _judgeable(state: LogState, number: int) -> Entry:
    entry = state.commits.get(number)
    if entry is None:
        newest = max(state.commits, default=0)
        raise WrongUse(f"--commit must be a commit of the run; {number} is none, the newest is {newest}")
    if entry.state not in JUDGEABLE:
        raise WrongUse(f"commit {number} must be written, published or rejected to be judged; it is at {entry.state}")
    if number in state.successors:
        raise WrongUse(
            f"commit {number} was superseded by {state.successors[number]} and its rows are swept: judge that one"
        )
    return entry


def _replaced(state: LogState, entry: Entry) -> frozenset[int]:
    if entry.kind is not CommitKind.INTERVAL or entry.state is State.PUBLISHED:
        return frozenset(entry.supersedes)
    return frozenset(state.superseded_by(entry.span))


def _earlier(state: LogState, first: Entry, without: Iterable[int] = ()) -> tuple[int, ...]:
    """Number the published commits that end where one begins or before, the latest first."""
    left_out = frozenset(without)
    ended = (row for row in state.published if row.span.end <= first.span.start and row.commit not in left_out)
    return tuple(row.commit for row in reversed(list(ended)))


def _published(state: LogState, start: int | None, end: int | None) -> JudgedCommits:
    found = _inside(state, start, end)
    if not found.entries:
        refused = [row.commit for row in state.commits.values() if row.state in UNSEEN and _meets(row, start, end)]
        unseen = (
            f"; of commit {refused[-1]}, which is not: pulseline check FLOW --commit {refused[-1]}" if refused else ""
        )
        raise WrongUse(f"nothing is published in this span: run it first, or check another{unseen}")
    return found


def _meets(row: Entry, start: int | None, end: int | None) -> bool:
    return (end is None or row.span.start < end) and (start is None or start < row.span.end)


def _inside(state: LogState, start: int | None, end: int | None) -> JudgedCommits:
    """Give the published commits of a span, which may be none."""
    inside = [row for row in state.published if _meets(row, start, end)]
    return JudgedCommits(entries=tuple(inside), earlier=_earlier(state, inside[0]) if inside else ())


class Found(NamedTuple):
    """What a check found."""

    judged: tuple[Judgement, ...]
    unasked: str = ""
    """Why nothing but the files was judged; nothing where all was."""


def _check(  # noqa: PLR0913 - which rows, by whom, and under which name they are kept
    flow: Flow,
    parts: Parts,
    commit: int,
    session: Session | None,
    on_disk: Callable[[], tuple[Reckoned, ...]] = tuple,
    reckon: Callable[[], tuple[Reckoned, ...]] = tuple,
    *,
    docs_if_held: bool = True,
) -> Found:
    """Judge rows, and keep what was found; where files are damaged, or others', that is found, and no row is judged."""
    root, (start, end) = parts[MAIN].root, parts[MAIN].judged.span
    failing = FailingRows(root, start, end, commit)
    failing.forget(parts[MAIN].state.successors)
    docs, name = docs_folder(root, start, end, commit), judged_name(start, end, commit)
    with standing(_published_in(parts, commit), "checked"):
        files = on_disk()
        changed = [each for each in files if each.unexpected]
        # What somebody else wrote to a table may be of other types, and is none of the run's rows.
        unasked = next((row["problem"] for each in changed for row in each.rows if FOREIGN in row), "")
        found: tuple[Judgement, ...] = ()
        if not unasked:
            try:
                views, reckoned = views_of(flow, parts, session), (*reckon(), *files)
                found = judge(
                    flow, views, (start, end), docs, name, reckoned, docs_if_held=docs_if_held, keep=failing.keep
                )
            except (FileDamagedError, SequenceBrokenError) as damaged:
                if not changed:
                    raise
                unasked = str(damaged)
        if unasked:
            found = judge_reckoned(flow, changed, docs, name)
    at = wall_now()
    asks = {(table, each.label): each.asks for table, checks in flow.expect.items() for each in checks}
    rows = [
        Quality(
            **vars(each),
            start=start,
            end=end,
            commit=commit,
            at=at,
            asked=asks.get((each.table, each.expectation), ""),
        )
        for each in found
    ]
    write_quality(root, rows)
    return Found(found, unasked)


def _published_in(parts: Parts, commit: int) -> dict[Path, frozenset[int]]:
    """Give the commits of a span by the root of their leg; none of one commit, which may stand where nobody reads."""
    if commit:
        return {}
    return {part.root: frozenset(entry.commit for entry in part.judged.entries) for part in parts.values()}


@contextmanager
def spark_if_asked(settings: Settings) -> Iterator[Session | None]:
    """Offer Spark while the block runs, which starts when its session is asked for; None where all runs without."""
    from pipelines.engine.tasks.spark import SparkEngine

    if settings.engine == CORE:
        yield None
        return
    engine = SparkEngine(settings.master, settings.spark_log, settings.spark)
    try:
        yield engine.session
    finally:
        engine.close()


def check_flow(  # noqa: PLR0913 - the options of the command
    name: str,
    start: str | None,
    end: str | None,
    commit: int | None,
    run: str,
    as_json: bool,  # noqa: FBT001 - the command's flag
    echo: Callable[[str], None],
    deep: DeepSample | None = None,
) -> int:
    """Judge what is published of a flow, a span of it, or one commit, and say what came of it.

    Args:
        name: name of the flow or path of its file.
        start: begin of the span, on the flow's grid; all that is published unless given.
        end: end of the span, exclusive.
        commit: judge this commit instead, in place of what it would supersede.
        run: name of the run.
        as_json: print one JSON object a line.
        echo: prints a text.
        deep: which of the judged intervals are computed again as well; none unless given.

    Returns:
        1 where a blocking expectation failed, else 0.

    Raises:
        WrongUse: no such flow, run or commit, nothing is published there, or a check of another package than Great
            Expectations cannot be asked.
        JobError: it was taken back or replaced meanwhile, or a leg of the run has read more than there is.
    """
    if commit is not None and (start is not None or end is not None):
        raise WrongUse("--commit judges one commit; --start and --end judge what is published: give one or the other")
    known, settings = open_run(name, run), read_settings()
    known.require_whole_log()
    if told := known.out_of_step:
        raise JobError(f"what is judged must go together: {told[0]}")
    flow = _with_own(known, settings, _flow_of(known, commit))
    require_others(flow)
    parts = _wanted(known, flow, start, end, commit)
    job = Job(
        flow=flow,
        root=known.root,
        base=settings.feeds_base(flow),
        command=CHECK,
        engine=settings.engine,
        span=parts[MAIN].judged.span,
    )
    verdicts: list[SpokenVerdict] = []
    with followed(job) as ending, spark_if_asked(settings) as session:
        for made, piece in _by_flow(known, settings, flow, parts):
            on_disk, reckon = partial(unchanged_in, made, piece), partial(_reckoned, made, piece, deep)
            found, unasked = _check(made, piece, commit or 0, session, on_disk, reckon)
            docs = docs_folder(known.root, *piece[MAIN].judged.span, commit or 0)
            judged = {leg: part.judged for leg, part in piece.items()}
            verdicts.append(SpokenVerdict(known, judged, commit or 0, found, docs, unasked))
        ending.found = tuple(each for verdict in verdicts for each in verdict.found)
    # What sums up stands last, and where something does not hold it is that.
    verdicts.sort(key=lambda each: not each.held)
    if commit is None:
        # Days that do not hold by themselves may hold together.
        verdicts[-1] = replace(verdicts[-1], red=red_or_lost(known, alone=not verdicts[-1].held)[0])
    for verdict in verdicts:
        if len(verdicts) > 1 and not as_json:
            echo(_made_by(known, verdict))
        for line in json_lines(verdict) if as_json else text_lines(verdict):
            echo(line)
    return Exit.FINE if all(verdict.held for verdict in verdicts) else Exit.CHECK_FAILED


def _by_flow(known: KnownRun, settings: Settings, newest: Flow, parts: Parts) -> Iterator[tuple[Flow, Parts]]:
    """Part what is judged by the flows that made it: an `apply` changes what must hold. A run in legs has one alone."""
    main = parts[MAIN]
    groups = _made_alike(known.state, main.judged.entries)
    if len(parts) > 1 or len(groups) == 1:
        yield newest, parts
        return
    for entries in groups:
        row = planned(known.state, entries[-1].commit)
        made = newest if row is None else _with_own(known, settings, flow_from_json(definition_of(row)))
        judged = JudgedCommits(entries=tuple(entries), earlier=_earlier(known.state, entries[0]))
        if judged.span[0] == judged.span[1]:
            # An `apply` has no rows: of how many there should be in an interval nobody asks.
            made = replace(made, expect={})
        yield made, {MAIN: replace(main, judged=judged)}


def _made_alike(state: LogState, entries: Iterable[Entry]) -> list[list[Entry]]:
    """Part commits where the flow that made one is not that of the one before; before any plan there were no rows."""
    groups: list[list[Entry]] = []
    before = None
    for entry in entries:
        row = planned(state, entry.commit)
        made = before if row is None else row.fingerprint
        if not groups or (before is not None and made != before):
            groups.append([])
        groups[-1].append(entry)
        before = made
    return groups


def _made_by(known: KnownRun, verdict: SpokenVerdict) -> str:
    """Head what is said of commits that one of several flows made."""
    entries = verdict.judged.entries
    first, last = (known.moments.text(each) for each in verdict.judged.span)
    of = f"commit {entries[0].commit}" if len(entries) == 1 else f"commits {entries[0].commit} to {entries[-1].commit}"
    return f"{of}, {first} until {last}, by the flow that made them:"


def _flow_of(known: KnownRun, commit: int | None) -> Flow:
    """Give the flow that the judged commits were made by."""
    entry = known.state.commits.get(commit or 0)
    plan = entry.plan if entry else None
    return flow_from_json(json.loads(plan)["flow"] if plan else known.definition)


def _reckoned(flow: Flow, parts: Parts, deep: DeepSample | None) -> tuple[Reckoned, ...]:
    """Find what the gate does not ask of rows: whether intervals are as usual, and landings told."""
    main = parts[MAIN]
    usually = usual(flow, main.root, main.judged, main.state)
    told = landings_told(flow, main.root, main.judged.entries, main.state)
    again = [] if deep is None else [recomputed(parts, deep)]
    return (*usually, *told, *again)


def _with_own(known: KnownRun, settings: Settings, made: Flow) -> Flow:
    """Give a flow with the checks that its file has now; those that it was made with where there is no file."""
    try:
        own = load_flow(settings, known.called, known.given)
    except WrongUse:
        # No file: the run is known by its tables alone.
        return made
    return replace(with_checks(made, own), file=own.file)


def _wanted(known: KnownRun, flow: Flow, start: str | None, end: str | None, commit: int | None) -> Parts:
    """Find the commits to judge, in each leg; whatever is wrong is found before Spark starts.

    A commit is one of the leg that takes what lands; with it is judged what the others have made of its span.
    """
    if commit is not None:
        one = _one(known.state, commit)
        return _in_legs(known, one, *one.span)
    first = None if start is None else cut_at(flow, start, "start")
    last = None if end is None else cut_at(flow, end, "end")
    if first is not None and last is not None and last <= first:
        raise WrongUse(f"a span ends after it starts; --start is {start} and --end is {end}")
    if not known.state.published:
        raise WrongUse(known.nothing_yet())
    return _in_legs(known, _published(known.state, first, last), first, last)


def _in_legs(known: KnownRun, judged: JudgedCommits, start: int | None, end: int | None) -> Parts:
    """Add to what is judged of a run what its other legs have of the same span, as far as they have come."""
    found = {
        leg: JudgedPart(root=part.root, state=part.state, judged=_inside(part.state, start, end))
        for leg, part in known.by_leg.items()
    }
    return {**found, MAIN: replace(found[MAIN], judged=judged)}
