"""What a run's folder is found to be: what of its tables stands, and what is torn, unsettled, strange or missing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import pyarrow as pa

from pipelines.engine.commits.delta_log import LogFiles, exists, snapshot, torn_names
from pipelines.engine.commits.entry import LEDGER, State
from pipelines.engine.commits.file_lists import FileLists, counts_at, strangers
from pipelines.engine.commits.log import SCHEMA, UNREADABLE, from_table
from pipelines.engine.commits.log_held import commits_without_rows, unlike
from pipelines.engine.commits.paths import (
    NewFile,
    QualityLostError,
    TornLogError,
    commits_path,
    data_tables,
    landed_path,
    lands_elsewhere,
    run_root,
    table_name,
)
from pipelines.engine.commits.quality import quality_path, read_quality, require_own
from pipelines.engine.commits.readers import are_as_hashed, log_state, rows_of_file
from pipelines.engine.commits.table_log import TableLog
from pipelines.engine.commits.taken_back import changed_by_others
from pipelines.engine.files.folders import CARRY, UNNAMED
from pipelines.engine.files.parquet import FileDamagedError, false_bounds
from pipelines.engine.files.small import read_whole
from pipelines.engine.landing.errors import LandingError, ReferenceBrokenError, SequenceBrokenError
from pipelines.engine.landing.manifest import ids_gone, is_closed, load_manifest, read_sequence, verify
from pipelines.engine.live.crossing import files_waiting, in_the_way
from pipelines.engine.live.relanding import can_land_again, can_land_in_place, can_stand_in, free_from, is_ready
from pipelines.engine.live.remaking import can_be_remade

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from pipelines.engine.commits.entry import Entry
    from pipelines.engine.commits.history import LogState


BACK = "put its folder back out of a copy of the run's, or use a run of another name"
"""What is left to do about a landed sequence that cannot be had again."""


ROW_FILE = re.compile(r"e(\d{8,})-")
"""How the name of a file of `commits` begins, with the place of its first row."""


class Ill(Enum):
    """What is wrong with something."""

    TORN = "torn"
    """A log has files that cannot be read, as after a power cut."""
    LOST = "lost"
    """A table is gone, or an older copy of it stands in its place."""
    AHEAD = "ahead"
    """A table has commits that `commits` does not: an older copy of `commits` stands there."""
    CHANGED = "changed"
    """Somebody else changed rows or columns of `commits`, by which all else is put right."""
    BEHIND = "behind"
    """A leg ends before what another has taken of it: a reset takes that one back."""
    FOREIGN = "foreign"
    """Somebody else changed a table's rows or columns."""
    MISSING = "missing"
    """A file that `commits` names is gone, or not whole."""
    UNNAMED = "unnamed"
    """A row of `commits` is in no version: its append was cut off, or the version was removed."""
    UNSETTLED = "unsettled"
    """A table has not followed the last published commit yet."""
    STRAY = "stray"
    """Files that nothing names; the sweep takes them in time."""
    LANDING = "landing"
    """A landed sequence cannot be read."""
    BLOCKED = "blocked"
    """Something lies where a file or folder of the run belongs."""
    VERDICTS = "verdicts"
    """What checks found cannot be read."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is not as it should be."""

    ill: Ill
    table: str
    """Named by its folder below the root."""
    sentence: str
    remedy: str
    """What a repair does about it; empty where it has nothing to do, or can do nothing."""
    commits: tuple[int, ...] = ()
    """Of missing files: the commits whose rows they hold."""
    files: int = 0
    """How many files it is about, where that is known."""
    size: int = 0
    """Bytes of these."""
    aside: int = 0
    """Of what landed and can be put aside: from which sequence on."""
    again: int = 0
    """Of what landed and can land again in its place: which sequence."""


def examine_run(root: Path, state: LogState, *, deep: bool = False, recorded: bool = False) -> list[Finding]:
    """Look through a run's folder; nothing is changed.

    Args:
        root: the run's folder, or of one of its legs.
        state: of its log.
        deep: read every file; else those that the next commits read, and of the others see that they are there.
        recorded: the flow's feeds are all recorded, so that what nobody has seen yet can land again.
    """
    found = [*_torn(root, commits_path(root)), *_unnamed(root, state), *_verdicts(root)]
    lists, waiting = FileLists(root, state), files_waiting(root)
    for name in _tables(root, state, lists):
        found += _table(root, name, state, lists, None if deep else waiting.get(name, set()))
    found += _carry(root, state, lists)
    found += _written(root, state, lists)
    found += _landing(root, state, deep=deep, recorded=recorded)
    return [*found, *_waiting(root, state, recorded=recorded), *_blocked(root)]


def _tables(root: Path, state: LogState, lists: FileLists) -> list[str]:
    """Name the tables that are there, and those that published commits wrote."""
    written = {LEDGER if name == LEDGER else f"streams/{name}" for row in state.published for name in row.hashes}
    named = {name for row in state.published for name in lists.of(row.commit) if not name.startswith(CARRY)}
    return sorted({table_name(root, path) for path in data_tables(root)} | written | named)


def examine_commits(root: Path) -> list[Finding]:
    """Find what others did to the `commits` of a root: nothing else is told or put right by that."""
    name, changed = table_name(root, commits_path(root)), changed_by_others(root)
    remedy, lasts = ("", f"; {changed.lasts}") if changed.lasts else ("take it back", "")
    return [
        Finding(ill=Ill.CHANGED, table=name, sentence=f"{each.words}{lasts}", remedy=remedy)
        for each in changed.by_others
    ]


def _unnamed(root: Path, state: LogState) -> Iterator[Finding]:
    """Find rows of `commits` behind its newest that no version names: what they say may have been told to somebody."""
    path = commits_path(root)
    for file in sorted(path.glob("e*.parquet")):
        number = ROW_FILE.match(file.name)
        if number is None or int(number[1]) <= state.newest_entry:
            continue
        try:
            rows = [row for row in from_table(read_whole([str(file)], SCHEMA)) if row.entry > state.newest_entry]
        except UNREADABLE:
            continue
        for row in rows:
            of = f" of commit {row.commit}" if row.commit else ""
            sentence = (
                f"row {row.entry}, `{row.state}`{of}, is in a file that no version of its log names ({file.name}): its "
                "append was cut off, or the version was removed, and what it said counts no more; where somebody was "
                "told of it, say it again, or put the log back out of a copy"
            )
            yield Finding(ill=Ill.UNNAMED, table=table_name(root, path), sentence=sentence, remedy="")


def _verdicts(root: Path) -> list[Finding]:
    """Look at what checks found: what cannot be read of it is put aside whole, for it can be judged again."""
    path = quality_path(root)
    try:
        require_own(path)
        read_quality(root)
    except QualityLostError as problem:
        sentence = f"what checks found cannot be read ({problem.problem})"
        remedy = "put it aside; check judges again what is still asked for"
        return [Finding(ill=Ill.VERDICTS, table=table_name(root, path), sentence=sentence, remedy=remedy)]
    return _torn(root, path) if path.is_dir() else []


def _torn(root: Path, path: Path) -> list[Finding]:
    files = torn_names(path)
    if not files:
        return []
    sentence = f"its log has {len(files)} files that cannot be read ({files[0]}), as after a power cut"
    return [Finding(ill=Ill.TORN, table=table_name(root, path), sentence=sentence, remedy="remove them")]


def _table(root: Path, name: str, state: LogState, lists: FileLists, read: set[str] | None) -> Iterator[Finding]:
    path, newest = root / name, state.newest_published
    yield from _torn(root, path)
    upto = newest.commit if newest else 0
    held = lists.held(name, upto)
    columns = None
    if not exists(path):
        if held or name in state.recorded.versions:
            yield _lost(name, "its log is gone")
    else:
        found = [*_log(root, name, state, lists, read=read is None)]
        yield from found
        if read != set() and all(each.ill is Ill.UNSETTLED for each in found):
            columns = _columns(path)
    yield from _missing(root, name, held, state, lists, read, columns)
    yield from _strays(path, name, set(held), state)


def _columns(path: Path) -> frozenset[str] | None:
    table = snapshot(path)
    return None if table is None else frozenset(table.schema.names)


def _lost(name: str, why: str) -> Finding:
    remedy = "make its log anew from `commits`; versions that were recorded of it mean nothing then"
    return Finding(ill=Ill.LOST, table=name, sentence=why, remedy=remedy)


def _log(root: Path, name: str, state: LogState, lists: FileLists, *, read: bool) -> Iterator[Finding]:
    log, known = TableLog(root / name), state.recorded.versions.get(name)
    try:
        log.look(known)
    except TornLogError as problem:
        yield _lost(name, f"its log cannot be read ({problem.reason})")
        return
    if known is not None and log.version < known:
        torn = LogFiles.of(root / name).torn
        why = "what came after cannot be read" if torn else "an older copy stands in its place"
        yield _lost(name, f"it is at version {log.version} and was at {known}: {why}")
        return
    newest = state.newest_published
    if log.settled() > (newest.commit if newest else 0):
        now = log_state(root).newest_published
        if now is not None and log.settled() <= now.commit:
            # A driver is at work, and has published since: that commit is looked at the next time.
            return
        sentence = (
            f"it has commit {log.settled()}, and `commits` ends before: an older copy of `commits` stands there, or "
            "some of it was taken away"
        )
        yield Finding(ill=Ill.AHEAD, table=name, sentence=sentence, remedy="")
        return
    if (otherwise := _otherwise(root, log, state, lists, read=read)) is not None:
        yield otherwise
        return
    for each in log.foreign:
        if each.harm:
            sentence = each.words
            remedy = "put the rows of the run back; what was added goes"
            yield Finding(ill=Ill.FOREIGN, table=name, sentence=sentence, remedy=remedy)
    behind = newest is not None and log.settled() < newest.commit and newest.commit > state.recorded.commit
    if newest and behind and _touches(newest, name, lists):
        sentence = f"commit {newest.commit} is published and the table does not have it yet"
        yield Finding(ill=Ill.UNSETTLED, table=name, sentence=sentence, remedy="settle it, as the next driver would")


def _otherwise(root: Path, log: TableLog, state: LogState, lists: FileLists, *, read: bool) -> Finding | None:
    """Find that a log names other files than its commits wrote, or says of them what they are not; None where not."""
    name = table_name(root, log.path)
    held = lists.held(name, log.settled())
    if strange := strangers(log.files, held):
        return _lost(name, f"it names {min(strange)}, which no commit wrote there: another table stands in its place")
    if any(each.harm for each in log.foreign):
        return None
    if gone := _others_gone(log, held, read=read):
        sentence = f"it names {gone[0]}, which none of its commits wrote, and which is gone or not whole"
        remedy = "put the files of its commits back"
        return Finding(ill=Ill.FOREIGN, table=name, sentence=sentence, remedy=remedy, files=len(gone))
    if said := unlike(root, log.path, state):
        return _without_rows(root, name, state) or _lost(name, said)
    return None


def _others_gone(log: TableLog, held: Mapping[str, NewFile], *, read: bool) -> list[str]:
    """Name the files of a log that none of its commits has and that are gone or not whole.

    Somebody else may have put files together; and a name with another letter in it is none of ours either.
    """
    others = [
        NewFile(name, file.rows, file.size, first=file.first, last=file.last)
        for name, file in sorted(log.files.items())
        if name not in held
    ]
    return [file.name for file in others if not _is_whole(log.path, file, None, read=read)]


def _without_rows(root: Path, name: str, state: LogState) -> Finding | None:
    """Tell of commits whose rows are in no file of a table, as a repair that was cut short leaves them; else None."""
    commits = tuple(commits_without_rows(root, root / name, state))
    if not commits:
        return None
    can = tuple(commit for commit in commits if can_be_remade(state, commit))
    sentence = f"rows of commits {_few(commits)} are in none of its files"
    remedy = f"work on {_few(can)} again from the landing, and compare hashes" if can else ""
    return Finding(ill=Ill.MISSING, table=name, sentence=sentence, remedy=remedy, commits=commits)


def _touches(entry: Entry, name: str, lists: FileLists) -> bool:
    return any(lists.of(commit).get(name) for commit in (entry.commit, *entry.supersedes))


def _is_whole(path: Path, file: NewFile, columns: frozenset[str] | None, *, read: bool) -> bool:
    """Say whether a file is there in its size and, where it is read, has what was written, as far as that can be told.

    Pages have checksums; of its other bytes the name of one of the carry tells the sum, and what they make of the rows
    of a table is held against the content hash that its commit said. By bounds that are too narrow readers leave rows
    out.
    """
    try:
        if (path / file.name).stat().st_size != file.size:
            return False
        rows = rows_of_file(path, file, columns) if read else None
    except (OSError, pa.ArrowException, FileDamagedError):
        return False
    if rows is None or columns is None:
        return True
    return are_as_hashed(rows, file) and false_bounds(path / file.name, rows) is None


def _missing(  # noqa: PLR0913 - a table, and what is known of it
    root: Path,
    name: str,
    held: dict[str, NewFile],
    state: LogState,
    lists: FileLists,
    read: set[str] | None = None,
    columns: frozenset[str] | None = None,
) -> Iterator[Finding]:
    """Find the files that are gone or not whole; some are read, all unless given, of the others the size is seen."""
    is_carry = name.startswith(CARRY)
    gone = {
        file.name
        for file in held.values()
        if not _is_whole(root / name, file, columns, read=read is None or file.name in read)
    }
    if not gone:
        return
    newest = state.newest_published
    upto = newest.commit if newest else 0
    counts = [commit for commit in state.commits if is_carry or counts_at(state, commit, upto)]
    commits = tuple(
        sorted(commit for commit in counts if any(file.name in gone for file in lists.holder(name, commit)))
    )
    can = [commit for commit in commits if can_be_remade(state, commit)]
    sentence = f"{len(gone)} files of commits {_few(commits)} are gone, not whole or damaged ({min(gone)})"
    remedy = f"work on {_few(tuple(can))} again from the landing, and compare hashes" if can else ""
    yield Finding(ill=Ill.MISSING, table=name, sentence=sentence, remedy=remedy, commits=commits, files=len(gone))


def _few(commits: tuple[int, ...]) -> str:
    some = ", ".join(map(str, commits[:5]))
    return some if len(commits) <= 5 else f"{some} and {len(commits) - 5} more"  # noqa: PLR2004 - as many as are named


def _strays(path: Path, name: str, held: set[str], state: LogState) -> Iterator[Finding]:
    log = TableLog(path)
    try:
        there = set(log.files) if log.look() else set()
    except TornLogError:
        return
    pending = f"c{state.pending.commit:08d}-" if state.pending else None
    files = [file for folder in (path / UNNAMED, path) for file in folder.glob("*.parquet")]
    idle = [
        file
        for file in files
        if file.relative_to(path).as_posix() not in there | held and not (pending and file.name.startswith(pending))
    ]
    if idle:
        size = sum(file.stat().st_size for file in idle)
        sentence = f"{len(idle)} files of {size:,} bytes are in no version of now"
        yield Finding(ill=Ill.STRAY, table=name, sentence=sentence, remedy="", files=len(idle), size=size)


def _carry(root: Path, state: LogState, lists: FileLists) -> Iterator[Finding]:
    held: dict[str, dict[str, NewFile]] = {}
    for commit in state.carried:
        for name in lists.of(commit):
            if name.startswith(CARRY):
                held.setdefault(name, {}).update({file.name: file for file in lists.holder(name, commit)})
    for name, files in sorted(held.items()):
        yield from _missing(root, name, files, state, lists)


def _written(root: Path, state: LogState, lists: FileLists) -> Iterator[Finding]:
    """Find that files of a commit that waits to be published are gone or not whole: it can only be given up."""
    waits = state.pending
    if waits is None or waits.state is not State.WRITTEN:
        return
    leg = "" if run_root(root) == root else f"{root.name}:"
    for name, files in sorted(lists.of(waits.commit).items()):
        try:
            columns = _columns(root / name) if exists(root / name) else None
        except TornLogError:
            # That is told of the log.
            columns = None
        gone = sorted(each.name for each in files if not _is_whole(root / name, each, columns, read=True))
        if gone:
            sentence = (
                f"{len(gone)} files of commit {waits.commit}, which waits to be published, are gone, not whole or "
                f"damaged ({gone[0]}): pulseline abandon FLOW --commit {leg}{waits.commit} gives it up, then its span "
                "can be run again"
            )
            yield Finding(ill=Ill.MISSING, table=name, sentence=sentence, remedy="", files=len(gone))


def _landing(root: Path, state: LogState, *, deep: bool, recorded: bool) -> Iterator[Finding]:
    landing, gone = landed_path(root), list[int]()
    if run_root(root) != root or lands_elsewhere(root):
        return
    for row in state.published:
        for number in row.sequences:
            try:
                sequence = read_sequence(landing, number)
                if deep and sequence.removed is None:
                    verify(sequence)
            except (LandingError, OSError, ValueError, pa.ArrowException) as problem:
                again = can_land_again(row)
                if not again and not landing.exists():
                    gone.append(number)
                    continue
                sentence = f"sequence {number}, which commit {row.commit} ran over, cannot be read: {_why(problem)}"
                if not again or is_ready(root, number):
                    yield _in_place(root, number, sentence, recorded=recorded)
                    continue
                remedy = "land it again from the feed, and compare hashes"
                yield Finding(ill=Ill.LANDING, table="landed", sentence=sentence, remedy=remedy, commits=(row.commit,))
    if gone:
        sentence = (
            f"it is gone, with all up to sequence {max(gone)} that is published: tables stand, and nothing lands "
            "behind them; put it back out of a copy of the run's folder, or make a run of its own anew (--run NAME)"
        )
        yield Finding(ill=Ill.LANDING, table="landed", sentence=sentence, remedy="")


def _in_place(root: Path, number: int, sentence: str, *, recorded: bool, back: str = BACK) -> Finding:
    """Tell of a sequence that cannot be put aside: it lands again in its place where its manifest stands."""
    if is_ready(root, number):
        remedy = "put it in its place: it landed again, and a repair was cut short"
        return Finding(ill=Ill.LANDING, table="landed", sentence=sentence, remedy=remedy, again=number)
    if recorded and can_stand_in(landed_path(root), log_state(root), number):
        remedy = "land what its feeds have now in its place: nothing that is published was made of it"
        return Finding(ill=Ill.LANDING, table="landed", sentence=sentence, remedy=remedy, again=number)
    if recorded and can_land_in_place(landed_path(root), number):
        remedy = "land it again from the feeds, and compare what it held"
        return Finding(ill=Ill.LANDING, table="landed", sentence=sentence, remedy=remedy, again=number)
    return Finding(ill=Ill.LANDING, table="landed", sentence=f"{sentence}; {back}", remedy="")


def _why(problem: Exception) -> str:
    """Say what is wrong with a sequence, and not what to do: that a finding says itself."""
    if isinstance(problem, ReferenceBrokenError):
        return f"{problem.folder} must be what it was, and {problem.problem}"
    return f"it has {problem.problem}" if isinstance(problem, SequenceBrokenError) else str(problem)


def _blocked(root: Path) -> Iterator[Finding]:
    """Find what lies where tickets belong, and stops each start."""
    for path, belongs in in_the_way(root):
        sentence = f"it must be {belongs}: move it away; the next start makes the tickets anew"
        yield Finding(ill=Ill.BLOCKED, table=table_name(root, path), sentence=sentence, remedy="")


def _unreadable(landing: Path, numbers: Iterable[int]) -> Iterator[tuple[int, LandingError]]:
    """Give the sequences that are closed and whose manifest cannot be read, and why."""
    for number in (each for each in numbers if is_closed(landing, each)):
        try:
            load_manifest(landing, number)
        except LandingError as problem:
            yield number, problem


def _waiting(root: Path, state: LogState, *, recorded: bool) -> Iterator[Finding]:
    """Find the sequences that landed, are not published yet, and are gone or cannot be read."""
    landing, newest = landed_path(root), state.newest_published
    if not landing.exists() or lands_elsewhere(root):
        return
    upto = newest.upto if newest and newest.sequences else 0
    known = {number for row in state.published for number in row.sequences}
    free = free_from(landing, state) if recorded else None

    def found(number: int, sentence: str) -> Finding:
        if free is not None and number >= free:
            remedy = "put it and what landed behind it aside; the next start lands all of it again from the feeds"
            return Finding(ill=Ill.LANDING, table="landed", sentence=sentence, remedy=remedy, aside=number)
        waits = state.pending
        if not recorded or waits is None or number not in waits.sequences:
            return _in_place(root, number, sentence, recorded=recorded)
        back = (
            f"give up the commit that was made of it (pulseline abandon FLOW --commit {waits.commit}): then a repair "
            "has it landed again from the feeds"
        )
        return _in_place(root, number, sentence, recorded=recorded, back=back)

    for number in ids_gone(landing):
        if number not in known:
            which = "which waits to be published" if number > upto else "of a commit that no longer counts"
            yield found(
                number,
                f"sequence {number}, {which}, is gone, though a later one stands, and nothing lands before it is back",
            )
    numbers = sorted(int(each.name) for each in landing.iterdir() if each.name.isdecimal())
    for number, problem in _unreadable(landing, [each for each in numbers if each <= upto and each not in known]):
        yield found(number, f"sequence {number}, of a commit that no longer counts, cannot be read: {_why(problem)}")
    for number in (each for each in numbers if each > upto and each not in known and is_closed(landing, each)):
        try:
            verify(read_sequence(landing, number))
        except (LandingError, OSError, ValueError) as problem:
            yield found(number, f"sequence {number}, which waits to be published, cannot be read: {_why(problem)}")
