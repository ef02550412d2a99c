"""`pulseline doctor`: what of a run stands, what does not, and what can be had again."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from pipelines.engine.commits.delta_log import create, exists, mend
from pipelines.engine.commits.driver import Driver, held_log
from pipelines.engine.commits.entry import CommitKind, Entry, State
from pipelines.engine.commits.errors import LegsLostError
from pipelines.engine.commits.leg_roots import (
    gone_legs,
    leg_of,
    leg_root,
    legs_begun,
    note_legs_anew,
    overtaken,
    planned_legs,
)
from pipelines.engine.commits.log_held import unlike
from pipelines.engine.commits.paths import FILE, LOG, REGIONS, TornLogError, commits_path, run_root
from pipelines.engine.commits.quality import put_aside
from pipelines.engine.commits.table_log import TableLog
from pipelines.engine.commits.taken_back import take_back
from pipelines.engine.files import durable
from pipelines.engine.files.folders import CARRY
from pipelines.engine.landing.errors import LandingError
from pipelines.engine.live.examining import Finding, Ill, examine_commits, examine_run
from pipelines.engine.live.relanding import DAMAGED, land_again, land_in_place, put_aside_from
from pipelines.engine.live.remaking import can_be_remade, remake
from pipelines.engine.tasks.local import CoreEngine
from pipelines.errors import Exit
from pipelines.jobs.environment.errors import JobError
from pipelines.jobs.environment.exits import named
from pipelines.jobs.environment.settings import command, load_flow, read_settings
from pipelines.jobs.runs.known import flow_name, open_run, root_called
from pipelines.operators.plain_words import counted, some_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

    from pipelines.engine.commits.leg_roots import Overtaken
    from pipelines.jobs.runs.known import KnownRun

GRAVE = frozenset(Ill) - {Ill.UNNAMED, Ill.UNSETTLED, Ill.STRAY}
"""What keeps a run from going on, or readers from counting right."""
BESIDE = frozenset({Ill.AHEAD, Ill.LOST, Ill.TORN})
"""What says that tables and `commits` do not go together."""


def examine(  # noqa: PLR0913 - the command's options
    called: str,
    run: str,
    repair: bool,  # noqa: FBT001 - the command's flag
    as_json: bool,  # noqa: FBT001 - as above
    echo: Callable[[str], None],
    *,
    deep: bool = False,
) -> int:
    """Say what is found, do what can be done where that was asked for, and say what is left.

    Args:
        called: name of the flow, or the path of its file.
        run: name of the run.
        repair: do what can be done; else nothing is touched.
        as_json: one JSON object a finding instead of words.
        echo: where lines go.
        deep: read every file, not only those that the next commits read.

    Returns:
        1 where something is left that keeps the run from going on, else 0.

    Raises:
        LeaseHeldError: a driver is at work on the run, and it was to be repaired.
    """
    if not _are_own(called, run, repair, as_json, echo):
        return Exit.CHECK_FAILED
    known = open_run(called, run)
    lost = _lost_legs(known)
    if lost and not repair:
        _tell(known, lost, as_json, echo, deep=deep)
        if not as_json:
            echo(f"nothing was touched, nor looked at beyond that; next: {known.command('doctor', '--repair')}")
        return Exit.CHECK_FAILED
    if lost:
        _say_legs(known, echo)
        known = open_run(called, run)
    found = _found(known, deep=deep)
    findings = _named(known, found)
    _tell(known, findings, as_json, echo, deep=deep)
    if repair and any(finding.remedy for finding in findings):
        _repair(known, found, echo)
        known = open_run(called, run)
        findings = _named(known, _found(known, deep=deep))
        if not as_json:
            echo("")
            echo("after the repair:")
        _tell(known, findings, as_json, echo, deep=deep)
    elif not as_json and any(finding.remedy for finding in findings):
        again = ["--deep"] if deep else []
        echo(f"nothing was touched; next: {known.command('doctor', *again, '--repair')}")
    return Exit.CHECK_FAILED if any(finding.ill in GRAVE for finding in findings) else Exit.FINE


def _are_own(
    called: str,
    run: str,
    repair: bool,  # noqa: FBT001 - the command's flag
    as_json: bool,  # noqa: FBT001 - as above
    echo: Callable[[str], None],
) -> bool:
    """Say what others did to the `commits` of a run and its legs, and take it back where that was asked for.

    Returns:
        Whether they are the run's own, then; nothing else is told by those that are not.
    """
    root, is_own, can_all = root_called(called, run), True, True
    for part in (root, *(leg_root(root, leg) for leg in sorted(legs_begun(root)))):
        found = examine_commits(part)
        for finding in found:
            table = (part / finding.table).relative_to(root).as_posix()
            echo(_line(replace(finding, table=table), as_json=as_json))
        can_be = all(finding.remedy for finding in found)
        if found and repair and can_be:
            take_back(part, flow_name(read_settings(), called))
        is_own, can_all = is_own and ((repair and can_be) or not found), can_all and can_be
    if not is_own and not as_json:
        again = f"; next: {command('doctor', called, '--repair', run=run)}" if can_all else ""
        echo(f"nothing was touched, nor looked at beyond that{again}")
    return is_own


def _line(finding: Finding, *, as_json: bool) -> str:
    if as_json:
        facts = {"table": finding.table, "found": finding.ill.value, "what": finding.sentence}
        return json.dumps({**facts, "repair": finding.remedy or None, "commits": finding.commits})
    remedy = f"; repair: {finding.remedy}" if finding.remedy else ""
    return f"{finding.ill.value:<10} {finding.table}: {finding.sentence}{remedy}"


def _lost_legs(known: KnownRun) -> list[Finding]:
    """Find that nothing says which legs a run has, though it has some."""
    try:
        planned_legs(known.root, known.state)
    except LegsLostError as problem:
        sentence = f"it {problem.how}, and says which legs the run has, each with tables of its own"
        begun = bool(known.state.commits)
        remedy = "make it anew out of the newest commit's plan" if begun else "put aside what lies beside it"
        return [Finding(ill=Ill.LOST, table=f"{REGIONS}/{FILE}", sentence=sentence, remedy=remedy)]
    return []


def _say_legs(known: KnownRun, echo: Callable[[str], None]) -> None:
    """Note anew which legs a run has, as the flow of its newest commit is cut into them."""
    with held_log(known.root, known.name):
        if not known.state.commits:
            echo(f"nothing was begun: what lies in {REGIONS}/ is put aside, and {known.command('stream')} begins anew")
            durable.put_aside(known.root / REGIONS)
            return
        legs = known.legs
        strange = sorted(legs_begun(known.root) - {leg.name for leg in legs})
        if strange:
            raise JobError(
                f"the legs that `commits` tells of ({', '.join(leg.name for leg in legs)}) must be those that lie in "
                f"{REGIONS}/, and {', '.join(strange)} is none of them: put {REGIONS}/{FILE} back out of a copy of the "
                "run's folder"
            )
        echo(f"noting anew that the run has the legs {', '.join(leg.name for leg in legs)}")
        note_legs_anew(known.root, legs)
        for leg in gone_legs(known.root, known.state):
            echo(f"nothing is left of {leg}: {known.rows_again(leg)}")


def _found(known: KnownRun, *, deep: bool) -> list[list[Finding]]:
    """Look through the folders of a run, leg by leg."""
    found, gone, ahead = [], gone_legs(known.root, known.state), list(overtaken(known.root))
    for part in known.folders:
        if part.root.name in gone:
            found.append([_gone(known, part.root.name, gone[part.root.name]["streams"])])
            continue
        own = examine_run(part.root, part.state, deep=deep, recorded=known.is_recorded)
        found.append([*own, *_overtaken(known, part, ahead, stands=_goes_with_tables(own))])
    return found


def _goes_with_tables(found: Iterable[Finding]) -> bool:
    return all(each.ill not in BESIDE for each in found)


def _gone(known: KnownRun, leg: str, streams: Sequence[str]) -> Finding:
    """Tell of a leg of which no log is left."""
    rest = leg_root(known.root, leg).is_dir()
    what = "`commits` of this leg is gone" if rest else "nothing is left of this leg"
    sentence = (
        f"{what}, which makes {some_of(streams)}: what it had published is in no table; put its folder back out of a "
        f"copy, or {known.rows_again(leg)}{'; what else is left of it is put aside then' if rest else ''}"
    )
    return Finding(ill=Ill.LOST, table="", sentence=sentence, remedy="")


def _overtaken(known: KnownRun, part: KnownRun, ahead: Iterable[Overtaken], *, stands: bool) -> Iterator[Finding]:
    """Find that a leg ends before what another has read of it: what it had published is gone.

    Args:
        known: the run.
        part: the leg.
        ahead: all that were found of the run.
        stands: whether its tables go with its `commits`, which a reset needs.
    """
    for each in ahead:
        if each.leg == leg_of(part.root):
            sentence = str(each)
            if stands:
                sentence += f", or a reset was cut short; {known.command('reset')} takes {each.reader} back behind it"
            yield Finding(ill=Ill.BEHIND if stands else Ill.AHEAD, table="commits", sentence=sentence, remedy="")


def _named(known: KnownRun, found: Sequence[Sequence[Finding]]) -> list[Finding]:
    """Give all findings, tables named by their folder below the run's."""
    return [
        replace(
            finding,
            table=(part.root / finding.table).relative_to(known.root).as_posix(),
            sentence=named(finding.sentence, known.called, known.run),
        )
        for part, findings in zip(known.folders, found, strict=True)
        for finding in findings
    ]


def _tell(
    known: KnownRun,
    findings: Sequence[Finding],
    as_json: bool,  # noqa: FBT001 - the command's flag
    echo: Callable[[str], None],
    *,
    deep: bool,
) -> None:
    for finding in _told(findings, as_json):
        echo(_line(finding, as_json=as_json))
    if not as_json and any(finding.ill is Ill.AHEAD for finding in findings):
        echo(
            "no repair makes `commits` anew: put it back out of a copy of the run's folder, or make a run of its own "
            "anew (--run NAME)"
        )
        for part in known.folders[1:]:
            if any(finding.ill is Ill.AHEAD and _is_of(known, part, finding) for finding in findings):
                again = known.rows_again(part.root.name)
                echo(f"or move {commits_path(part.root)} out of the way, and {again}")
    if not as_json and not any(finding.ill in GRAVE for finding in findings):
        published = sum(len(part.state.published) for part in known.folders)
        read = ", read to its end" if deep else ", in its size; what is in them --deep reads"
        whole = (
            f"all {published} published commits of run `{known.run}` stand, with every file that `commits` names{read}"
        )
        begun = f"run `{known.run}` has published nothing yet, and nothing is missing of what it has; how it goes on: "
        echo(whole if published else f"{begun}{known.command('status')}")


def _is_of(known: KnownRun, part: KnownRun, finding: Finding) -> bool:
    """Say whether what is found, named by its folder below the run's, is of a leg."""
    return part.root in (known.root / finding.table).parents


ONE_BY_ONE = 3
"""Tables that lost files of the same commits and are told line by line."""


def _told(findings: Sequence[Finding], as_json: bool) -> Iterator[Finding]:  # noqa: FBT001 - the command's flag
    """Give the findings that are told one by one.

    For people files that only wait for the sweep are one line, and so are those that many tables lost with a commit.
    """
    strays = [finding for finding in findings if finding.ill is Ill.STRAY]
    alike: dict[tuple[object, ...], list[Finding]] = {}
    for number, finding in enumerate(findings):
        if as_json or finding.ill is not Ill.STRAY:
            same = (finding.commits, finding.remedy) if finding.ill is Ill.MISSING and not as_json else (number,)
            alike.setdefault((finding.ill, *same), []).append(finding)
    for some in alike.values():
        if len(some) <= ONE_BY_ONE:
            yield from some
            continue
        sentence = f"with {len(some) - 1} other tables, {sum(each.files for each in some)} files; {some[0].sentence}"
        yield replace(some[0], sentence=sentence)
    if strays and not as_json:
        sentence = (
            f"{counted(sum(finding.files for finding in strays), 'file')} "
            f"({sum(finding.size for finding in strays):,} bytes) of {counted(len(strays), 'table')} are in no version "
            "of now: replaced, or of attempts that were cut off; they stay for readers of older versions, then the "
            "sweep takes them"
        )
        yield Finding(ill=Ill.STRAY, table=known_as(strays), sentence=sentence, remedy="")


def known_as(strays: Sequence[Finding]) -> str:
    """Name the tables of some findings in a few words."""
    return strays[0].table if len(strays) == 1 else "tables"


def _repair(known: KnownRun, found: Sequence[Sequence[Finding]], echo: Callable[[str], None]) -> None:
    """Do what can be done, under the leases of all legs: each behind what it reads, which it may be made of again."""
    # Of a leg of which nothing is left no lease is taken: with a log it would count as one that is behind.
    gone = gone_legs(known.root, known.state)
    there = [each for each in zip(known.folders, found, strict=True) if each[0].root.name not in gone]
    with ExitStack() as leases:
        held = [leases.enter_context(held_log(known.root, known.name))]
        main = Driver(known.root, known.name, *held[0])
        held += [leases.enter_context(held_log(part.root, known.name, under=main.state)) for part, _ in there[1:]]
        for (part, findings), (log, token) in zip(there, held, strict=True):
            _repair_part(known, Driver(part.root, known.name, log, token), findings, echo)


def _repair_part(known: KnownRun, driver: Driver, findings: Sequence[Finding], echo: Callable[[str], None]) -> None:
    driver.tables.mend()
    behind: list[str] = []
    for finding in findings:
        if finding.ill is Ill.TORN:
            mend(driver.root / finding.table, harmed=True)
        if finding.ill is Ill.LOST or (finding.ill is Ill.FOREIGN and not _is_of_use(driver, finding.table)):
            if driver.state().published:
                behind += [] if _make_anew(driver, finding.table, echo) else [finding.table]
            else:
                echo(f"putting the log of {finding.table} aside: nothing is published, and the next run makes it anew")
                if (log := driver.root / finding.table / LOG).exists():
                    durable.put_aside(log)
        if finding.ill is Ill.VERDICTS:
            echo(f"putting {finding.table} aside")
            put_aside(driver.root)
    _have_again(driver, known, findings, echo)
    for name in behind:
        _make_anew(driver, name, echo, at_last=True)
    is_seen = bool(driver.state().published)
    again = {each.table for each in findings if is_seen and each.ill in {Ill.FOREIGN, Ill.LOST, Ill.MISSING}}
    for name in sorted(name for name in again if not name.startswith(CARRY)):
        echo(f"putting back what `commits` says into {name}")
        driver.restore(driver.root / name)
    driver.settle()
    driver.close()


def _is_of_use(driver: Driver, name: str) -> bool:
    """Say whether a table's log can be read, and its columns and properties are as the run made them."""
    log = TableLog(driver.root / name)
    try:
        log.look(driver.state().recorded.versions.get(name))
    except TornLogError:
        return False
    if any(each.harm for each in log.foreign):
        return not any(each.harm and each.reshapes for each in log.foreign)
    return not unlike(driver.root, log.path, driver.state())


def _make_anew(driver: Driver, name: str, echo: Callable[[str], None], *, at_last: bool = False) -> bool:
    """Have a log for a table whose own is gone, unreadable, older than it was or another's; it is kept aside.

    What recorded versions of it meant ends here.

    Args:
        driver: holds the lease.
        name: of the table.
        echo: where lines go.
        at_last: whether all that landed and can land again has.

    Returns:
        Whether it was made: what tells its columns may have to land again before.
    """
    path, state = driver.root / name, driver.state()
    try:
        columns = None if exists(path) and _is_of_use(driver, name) else _columns(driver, name)
    except LandingError:
        if at_last:
            raise
        return False
    echo(f"making the log of {name} anew")
    if exists(path) and not _is_of_use(driver, name):
        durable.put_aside(path / LOG)
    past = state.recorded.versions.get(name, 0)
    row = Entry(state=State.REBUILT, kind=CommitKind.HOUSE, detail={"table": name, "past": past})
    if columns is not None:
        create(path, columns)
    driver.tables.note(row)
    return True


def _columns(driver: Driver, name: str) -> pa.Schema:
    """Give the columns of a table whose log is gone: those that the flow writes there, over what landed."""
    from pipelines.engine.commits.paths import landed_path
    from pipelines.engine.landing.manifest import read_sequence
    from pipelines.engine.sources.landed_schema import payloads_over
    from pipelines.engine.tasks.stages import table_schemas
    from pipelines.engine.tasks.standing import flow_begun

    state = driver.state()
    row = next((row for row in reversed(state.published) if row.plan and row.sequences), None)
    if row is None:
        raise JobError(
            f"the columns of {name} cannot be known, for nothing is published that tells them: move the run's folder "
            f"({run_root(driver.root)}) out of the way and begin it again, or put it back out of a copy"
        )
    landed = landed_path(run_root(driver.root))
    parts = [read_sequence(landed, number) for number in row.sequences]
    flow = flow_begun(driver.root, str(row.plan), lambda: parts[0])
    return table_schemas(driver.root, flow, payloads_over(flow, parts), leg_of(driver.root))[driver.root / name]


def _have_again(driver: Driver, known: KnownRun, findings: Sequence[Finding], echo: Callable[[str], None]) -> None:
    """Land intervals again that cannot be read, and work on commits again whose files are gone.

    In the order of their spans, and of each commit first what it ran over: so each finds the carry that it began from.
    What nobody has seen yet the next start lands again.
    """
    waiting = [finding.aside for finding in findings if finding.aside]
    if waiting:
        many = counted(put_aside_from(driver, min(waiting)), "sequence")
        echo(f"{many} of what landed, from {min(waiting)} on, put aside into {DAMAGED}/")
    unread = {each.commits[0] for each in findings if each.ill is Ill.LANDING and each.remedy and each.commits}
    lost: dict[int, set[str]] = {}
    for finding in findings:
        for commit in finding.commits if finding.ill is Ill.MISSING else ():
            if can_be_remade(driver.state(), commit):
                lost.setdefault(commit, set()).add(finding.table)
    engine, settings, state = CoreEngine(), read_settings(), driver.state()

    def base() -> Path:
        return settings.feeds_base(load_flow(settings, known.called))

    for number in sorted({finding.again for finding in findings if finding.again}):
        echo(f"landing sequence {number} again")
        land_in_place(driver, number, base())
    for commit in sorted(unread | set(lost), key=lambda number: (state.commits[number].span, number)):
        if commit in unread:
            echo(f"landing the interval of commit {commit} again")
            land_again(driver, commit, base(), engine)
        if commit in lost:
            echo(f"working on commit {commit} again, for {', '.join(sorted(lost[commit]))}")
            remake(driver, commit, lost[commit], engine)
