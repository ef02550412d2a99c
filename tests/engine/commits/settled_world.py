"""A run in which anything happens, with a kill between any two steps, and what its tables must hold at each moment.

Two streams, the ledger and one part of a carry; rows are numbers, so that what a table holds can be compared whole.
"""

from __future__ import annotations

import os
import uuid
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import DeltaTable

from pipelines.engine.commits import housekeeping, readers, settling, sweep
from pipelines.engine.commits.delta_log import create
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.entry import CommitKind, Entry, Span, State
from pipelines.engine.commits.errors import CommitError
from pipelines.engine.commits.file_lists import FileLists, visible_at
from pipelines.engine.commits.history import settled_of
from pipelines.engine.commits.lease import Claim
from pipelines.engine.commits.log import CommitLog
from pipelines.engine.commits.paths import NewFile, carry_path, table_path
from pipelines.engine.commits.steps import Finished
from pipelines.engine.commits.table_log import TableLog
from pipelines.engine.files.folders import UNNAMED

if TYPE_CHECKING:
    import datetime as dt
    import random
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    import pytest

    from pipelines.engine.commits.driver import Driver
    from pipelines.engine.commits.history import LogState
    from pipelines.engine.commits.settling import Tables

TABLES = ("ledger", "streams/a", "streams/b")
CARRY = "carry/a.state"
SCHEMA = pa.schema([pa.field("commit", pa.int64()), pa.field("value", pa.int64())])
CARRIED = pa.schema(
    [
        pa.field("commit", pa.int64()),
        pa.field("change", pa.string()),
        pa.field("key", pa.int64()),
        pa.field("due", pa.int64()),
    ]
)
Rows = Counter[tuple[int, int]]
"""How often each row, of commit and value, is there."""
Carried = tuple[int, str, int, int | None]
"""A row of the carry: commit, change, key and due."""
STEPS: tuple[tuple[object, str], ...] = (
    (CommitLog, "append"),
    (CommitLog, "_write"),
    (TableLog, "commit"),
    (settling, "write_together"),
    (housekeeping, "sweep"),
    (sweep, "_unlink"),
    (housekeeping, "checkpoint"),
    (housekeeping, "clean_log"),
)


class Killed(BaseException):
    """The process ended here."""


@dataclass
class Reaper:
    """Ends the process before or after a step, once so many were come past."""

    left: int | None = None

    def watch(self, patch: pytest.MonkeyPatch) -> None:
        """Stand beside every step."""
        for owner, name in STEPS:
            patch.setattr(owner, name, self._deadly(getattr(owner, name)))

    def _deadly(self, step: Callable[..., Any]) -> Callable[..., Any]:
        def stepped(*given: Any, **named: Any) -> Any:  # noqa: ANN401 - whatever the step takes
            self._pass()
            done = step(*given, **named)
            self._pass()
            return done

        return stepped

    def _pass(self) -> None:
        if self.left == 0:
            self.left = None
            raise Killed
        if self.left is not None:
            self.left -= 1


def rows_in(files: Iterable[str]) -> Rows:
    """Read files as anybody would who knows nothing of commits."""
    paths = sorted(files)
    if not paths:
        return Counter()
    found = ds.dataset(paths, schema=SCHEMA, format="parquet").to_table()
    return Counter(zip(found["commit"].to_pylist(), found["value"].to_pylist(), strict=True))


def plain(path: Path, version: int | None = None) -> Rows:
    """Read a table as it is, or as it was."""
    return rows_in(DeltaTable(str(path), version=version).file_uris())


@dataclass
class World:
    """A run and what was done to it.

    Args:
        root: the run's folder.
        rng: draws what happens.
        keep: how long versions of tables stay readable.
    """

    root: Path
    rng: random.Random
    keep: dt.timedelta
    reaper: Reaper
    driver: Driver | None = None
    said: list[str] = field(default_factory=list)
    """What was done, for whoever reads a failure."""
    rows: dict[int, dict[str, list[int]]] = field(default_factory=dict)
    """What tasks wrote for each commit, by table."""
    carry: dict[int, dict[int, int]] = field(default_factory=dict)
    """The carry at each commit, due by key."""
    seen: set[str] = field(default_factory=set)
    _open: ExitStack = field(default_factory=ExitStack)

    def start(self) -> None:
        """Make the tables, and take the lease."""
        for name in TABLES:
            create(table_path(self.root, name), SCHEMA)
        self.take()

    def take(self) -> Driver:
        """Take the lease as the next driver does; a killed one's process, which is this one, lives on."""
        self.driver = self._open.enter_context(open_driver(self.root, flow="f", claim=Claim.TAKE_OVER))
        return self.driver

    def end(self) -> None:
        """End as a kill does: the last settled versions stay unsaid."""
        if self.driver is not None:
            self.driver._settled = None
            self.driver = None
        self.reaper.left = None
        self._open.close()

    def leave(self) -> None:
        """Give the lease back properly."""
        self.driver = None
        self._open.close()

    def happen(self) -> None:
        """Do one thing, and be killed in it now and then."""
        if self.rng.random() < 0.4:
            self.reaper.left = self.rng.randrange(14)
        try:
            self._act(self.driver or self.take())
        except Killed:
            self.said.append("killed")
            self.end()
        self.reaper.left = None

    def _act(self, driver: Driver) -> None:
        pending = driver.pending()
        if pending:
            self.said.append(f"finish {pending.commit} at {pending.state}")
            self._finish(driver, pending)
            return
        acts: list[Callable[[Driver], None]] = [
            self._interval,
            self._again,
            self._epoch,
            self._epoch,
            self._epoch,
            self._epoch,
        ]
        acts += [self._together, self._together_again, self._again, self._idle, self._reset]
        acts += [self._house, self._house, self._optimize, self._go]
        act = self.rng.choice(acts)
        self.said.append(act.__name__)
        with suppress(CommitError):
            act(driver)

    def _go(self, _: Driver) -> None:
        self.leave()

    def _interval(self, driver: Driver) -> None:
        tip = driver.state().tip
        start = tip.span.end if tip else 0
        self._begin(driver, Span(start, start + self.rng.randint(1, 2)), CommitKind.INTERVAL)

    def _again(self, driver: Driver) -> None:
        intervals = [row for row in driver.state().published if row.kind is CommitKind.INTERVAL]
        if intervals:
            first = self.rng.randrange(len(intervals))
            last = min(first + self.rng.randrange(2), len(intervals) - 1)
            span = Span(intervals[first].span.start, intervals[last].span.end)
            self._begin(driver, span, CommitKind.INTERVAL)

    def _together(self, driver: Driver) -> None:
        tip = driver.state().tip
        start = tip.span.end if tip else 0
        self._share(driver, [Span(start + place, start + place + 1) for place in range(self.rng.randint(2, 4))])

    def _together_again(self, driver: Driver) -> None:
        """Work anew, in one go, on intervals that follow one another."""
        intervals = [row.span for row in driver.state().published if row.kind is CommitKind.INTERVAL]
        place = self.rng.randrange(max(1, len(intervals) - 1))
        spans = intervals[place : place + self.rng.randint(2, 4)]
        if len(spans) > 1 and all(one.end == other.start for one, other in pairwise(spans)):
            self._share(driver, spans)

    def _share(self, driver: Driver, spans: Sequence[Span]) -> None:
        """Publish intervals that share their files."""
        number, parent = driver.next_number(), driver.state().parent_for(spans[0].start)
        entry = driver.intent(number, spans[0], parent, [], {}, "print", kind=CommitKind.INTERVAL)
        self.said.append(f"intent {number} and {len(spans) - 1} more from {spans[0]} over {entry.supersedes}")
        commits, carried = range(number, number + len(spans)), self.carry.get(parent, {})
        for each in commits:
            self.rows[each] = {
                name: [self.rng.randrange(1_000) for _ in range(self.rng.randrange(4))] for name in TABLES
            }
            carried = {**carried, self.rng.randrange(4): each}
            self.carry[each] = carried
        files = {name: self._shared_files(name, commits) for name in TABLES}
        bases: list[Carried] = [(each, "base", key, due) for each in commits for key, due in self.carry[each].items()]
        files[CARRY] = [self._carry_file(number, bases, commits[-1])]
        shared = driver.secure_together(number, len(spans), files)
        finished = [
            Finished(
                span=span,
                sequences=[],
                counts={name.rpartition("/")[2]: {"data": len(self.rows[each][name])} for name in TABLES},
                hashes={},
                carry_hash=str(sorted(self.carry[each].items())),
                durations={},
            )
            for each, span in zip(commits, spans, strict=True)
        ]
        driver.publish_together(number, finished, shared)

    def _shared_files(self, name: str, commits: range) -> list[NewFile]:
        """Write the rows of commits as up to three tasks do, each of them some of every commit's."""
        parts: list[list[tuple[int, int]]] = [[], [], []]
        for number in commits:
            for value in self.rows[number][name]:
                self.rng.choice(parts).append((number, value))
        return [
            self._file(
                table_path(self.root, name),
                f"{UNNAMED}/",
                commits[0],
                pa.table(dict(zip(SCHEMA.names, map(list, zip(*part, strict=True)), strict=True)), schema=SCHEMA),
                commits[-1],
            )
            for part in parts
            if part
        ]

    def _epoch(self, driver: Driver) -> None:
        tip = driver.state().tip
        start = tip.span.end if tip else 0
        self._begin(driver, Span(start, start + 1), CommitKind.EPOCH)

    def _idle(self, driver: Driver) -> None:
        tip = driver.state().tip
        start = tip.span.end if tip else 0
        number = driver.next_number()
        self.carry[number] = dict(self.carry[tip.commit]) if tip else {}
        self.rows[number] = {}
        driver.idle(number, Span(start, start + 1), [], {})

    def _reset(self, driver: Driver) -> None:
        seen = driver.state().published
        target = self.rng.choice(seen).commit if seen else 0
        number = driver.next_number()
        self.carry[number] = dict(self.carry.get(target, {}))
        self.rows[number] = {}
        driver.reset(number, target)

    def _house(self, driver: Driver) -> None:
        driver.keep_house(every=1, keep=self.keep)

    def _optimize(self, _: Driver) -> None:
        DeltaTable(str(table_path(self.root, self.rng.choice(TABLES)))).optimize.compact()

    def _begin(self, driver: Driver, span: Span, kind: CommitKind) -> None:
        state = driver.state()
        tip = state.tip.commit if state.tip else 0
        parent = state.parent_for(span.start) if kind is CommitKind.INTERVAL else tip
        entry = driver.intent(driver.next_number(), span, parent, [], {}, "print", kind=kind)
        self.said.append(f"intent {entry.commit} {entry.kind} {entry.span} over {entry.supersedes}")
        self._finish(driver, entry)

    def _finish(self, driver: Driver, entry: Entry) -> None:
        number = entry.commit
        if entry.state is State.INTENT:
            if self.rng.random() < 0.1:
                driver.abandon(number, why="drawn")
                return
            folded = entry.kind is CommitKind.EPOCH and self.rng.random() < 0.2
            files = self._written(driver, entry, folded=folded)
            counts: dict[str, object] = {
                name.rpartition("/")[2]: {"data": len(self.rows[number][name])} for name in TABLES
            }
            hashes: dict[str, str] = {}
            facts = (counts, hashes, str(sorted(self.carry[number].items())), hashes)
            detail = {"folded": True} if folded else {}
            if entry.kind is CommitKind.EPOCH and self.rng.random() < 0.8:
                driver.written_and_published(number, files, *facts, detail=detail)
                return
            driver.written(number, files, *facts, detail=detail)
            if self.rng.random() < 0.2:
                # It is held: another driver finds it at written.
                self.leave()
                return
        end = self.rng.random()
        if end < 0.1:
            driver.reject(number, verdict="drawn")
        elif end < 0.2:
            driver.abandon(number, why="drawn")
        else:
            driver.publish(number)

    def _drawn(self) -> dict[str, list[int]]:
        draw = self.rng.randrange
        return {name: [draw(1_000) for _ in range(draw(4))] for name in TABLES}

    def _written(self, driver: Driver, entry: Entry, *, folded: bool) -> Mapping[str, list[NewFile]]:
        number, draw = entry.commit, self.rng.randrange
        self.rows[number] = self._drawn()
        before = self.carry.get(driver.state().parent_of(number) if entry.parent else 0, {})
        now = {**before, draw(4): number}
        gone = draw(4)
        now.pop(gone, None)
        self.carry[number] = now
        changes: list[Carried] = [(number, "set", key, due) for key, due in now.items() if before.get(key) != due]
        changes += [(number, "gone", gone, None)] if gone in before else []
        bases: list[Carried] = [(number, "base", key, due) for key, due in now.items()]
        if entry.kind is CommitKind.INTERVAL:
            changes = []
        carried = [*changes, *(bases if folded or (not changes and entry.kind is CommitKind.INTERVAL) else [])]
        files = {name: self._files(name, number, values) for name, values in self.rows[number].items()}
        return {**files, CARRY: [self._carry_file(number, carried)] if carried else []}

    def _files(self, name: str, number: int, values: list[int]) -> list[NewFile]:
        """Write rows as one or two tasks do."""
        cut = self.rng.randrange(len(values) + 1)
        parts = [part for part in (values[:cut], values[cut:]) if part]
        return [
            self._file(
                table_path(self.root, name),
                f"{UNNAMED}/",
                number,
                pa.table({"commit": [number] * len(part), "value": part}, schema=SCHEMA),
            )
            for part in parts
        ]

    def _carry_file(self, number: int, rows: list[Carried], last: int | None = None) -> NewFile:
        table = pa.Table.from_pylist([dict(zip(CARRIED.names, row, strict=True)) for row in rows], schema=CARRIED)
        return self._file(carry_path(self.root, "a", "state"), "", number, table, last)

    def _file(self, folder: Path, below: str, number: int, table: pa.Table, last: int | None = None) -> NewFile:
        commits = f"c{number:08d}" if last is None else f"c{number:08d}-{last:08d}"
        name = f"{below}{commits}-0-0-{uuid.uuid4().hex[:8]}.parquet"
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, folder / name)
        size = (folder / name).stat().st_size
        # Written long ago: what stays must not stay because it is young.
        os.utime(folder / name, (1_000_000_000, 1_000_000_000))
        return NewFile(name=name, rows=table.num_rows, size=size, first=number, last=last or number)

    # --- what must hold

    def wanted(self, name: str, commits: Iterable[int]) -> Rows:
        """Give the rows of some commits in a table."""
        return Counter((number, value) for number in commits for value in self.rows.get(number, {}).get(name, ()))

    def check(self) -> None:
        """See that every reader finds what it must, whoever was killed where."""
        state = readers.log_state(self.root)
        for name in TABLES:
            self._check_table(name, state)
        self._check_versions(state)
        self._check_carry(state)

    def _check_table(self, name: str, state: LogState) -> None:
        path, found = table_path(self.root, name), plain(table_path(self.root, name))
        assert found == self.wanted(name, readers.settled_commits(self.root, path, state)), (name, self.said)
        # Those that share their files count from one moment on.
        firsts = {row.first_together for row in state.commits.values() if row.state is State.PUBLISHED}
        numbers = sorted(row.commit for row in state.commits.values() if row.state is State.PUBLISHED)
        ends = [[each for each in numbers if each < max(firsts)][-1:], numbers[-1:]]
        whole = [self.wanted(name, visible_at(state, end[0] if end else 0)) for end in ends]
        assert found in whole, f"{name} stands neither before nor after a commit: {self.said}"
        if self.driver is not None and state.pending is None and self.said[-1] != "_optimize":
            assert found == whole[-1], f"{name} has not followed: {self.said}"
        visible = [row.commit for row in state.published]
        shown = readers.rows_of(self.root, path, visible, SCHEMA, state).scan()
        pairs = zip(shown["commit"].to_pylist(), shown["value"].to_pylist(), strict=True)
        assert Counter(pairs) == self.wanted(name, visible), (name, self.said)
        self._check_lists(name, state)

    def _check_lists(self, name: str, state: LogState) -> None:
        """See that the log could be made anew: `commits` names files for all rows, and they are there."""
        newest = state.newest_published
        held = FileLists(self.root, state).held(name, newest.commit if newest else 0)
        path, wanted = table_path(self.root, name), self.wanted(name, state.visible)
        found = rows_in(str(path / each) for each in held)
        assert {row: count for row, count in found.items() if row[0] in state.visible} == wanted, (name, self.said)

    def _check_versions(self, state: LogState) -> None:
        if not self.keep:
            return
        for row in state.entries:
            if row.settled and row.settled not in self.seen:
                self.seen.add(row.settled)
                self.check_instant(row, state)

    def check_instant(self, row: Entry, state: LogState) -> None:
        """See that recorded versions give all tables as they were at one commit."""
        settled = settled_of(row)
        visible = visible_at(state, settled.commit)
        for name, version in settled.versions.items():
            found = plain(table_path(self.root, name), version)
            assert found == self.wanted(name, visible), (name, settled, self.said)

    def _check_carry(self, state: LogState) -> None:
        wanted = list(state.visible)
        if state.pending and state.pending.parent:
            wanted.append(state.pending.parent)
        for number in wanted:
            found = readers.read_carry(self.root, "a", "state", number, key=["key"], state=state)
            known = zip(found["key"].to_pylist(), found["due"].to_pylist(), strict=True) if found.num_rows else ()
            assert dict(known) == self.carry[number], (number, self.said)

    def check_all_instants(self) -> None:
        """See that every recorded version is still there, whatever was swept since."""
        state = readers.log_state(self.root)
        for row in state.entries:
            if row.settled:
                self.check_instant(row, state)

    def make_anew(self, tables: Tables) -> None:
        """Take every table's log away and make it anew from `commits`."""
        newest = tables.state().newest_published
        for name in TABLES:
            path, past = table_path(self.root, name), tables.log(table_path(self.root, name)).version
            for file in (path / "_delta_log").iterdir():
                file.unlink()
            create(path, SCHEMA)
            detail = {"table": name, "past": past}
            tables.note(Entry(state=State.REBUILT, kind=CommitKind.HOUSE, detail=detail))
            if newest is not None:
                tables.restore(path, newest.commit)
