"""A Delta table as a live source: what it holds when a run begins, then commit by commit what somebody else adds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from pipelines.engine.columnar.clock import wall_now
from pipelines.engine.columnar.columns import canonical_json
from pipelines.engine.commits.paths import LOG
from pipelines.engine.landing.column_errors import ColumnBrokenError, OtherColumnsError
from pipelines.engine.landing.errors import ColumnTypeError, FeedUnreadableError, in_ledger
from pipelines.engine.landing.file_rows import DROPPED, NOTED, ColumnTerms, read_rows
from pipelines.engine.landing.progress import SourceProgress
from pipelines.engine.landing.undeclared import Names
from pipelines.engine.sources.delta.columns import declared, with_committed
from pipelines.engine.sources.delta.errors import (
    DeltaTableMissingError,
    FileGoneError,
    TableReplacedError,
    VersionsGoneError,
)
from pipelines.engine.sources.delta.log import Log
from pipelines.engine.sources.delta.removals import taken_away, told_commit
from pipelines.engine.sources.delta.rows import rows_of
from pipelines.engine.sources.live import ComesOnce, Gathered, arrived_rows, landed_payload, terms_of
from pipelines.engine.sources.opening import Loss
from pipelines.engine.sources.recording import landed_schema
from pipelines.engine.sources.state import write_state
from pipelines.flows.feeds.delta import Changes, CommitsSpec
from pipelines.flows.feeds.spec import Missing, Start
from pipelines.operators.rows import MIN_TIME

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pipelines.engine.landing.arrived import Arrived
    from pipelines.engine.landing.source_feed import Reading, SourceFeed
    from pipelines.engine.sources.delta.log import Commit, DataFile, TableShape
    from pipelines.engine.sources.opening import Opening
    from pipelines.flows.model import Source

GONE = "versions_lost"


class CommitsFeed(ComesOnce):
    """The commits of one source's table.

    A position is the number of the version that comes next, under the table's own id. A commit lands whole, in one
    sequence, and must fit into memory; so must what the table holds when a run begins.

    Args:
        source: what the flow says of it.
        base: the folder that the path begins in: the flow file's own.
        root: the run's folder.
        payload: with which it landed before, where it did: columns stay as they were then.
        tell: told a line when the table goes, and when it is back.
        loss: what is done where commits that come next, or their files, are gone.
        now: reads the wall clock, in ticks.

    Raises:
        LandingError: there is no such table, its rows cannot be read as they stand, or it does not have what the
            source says of it.
    """

    def __init__(  # noqa: PLR0913 - what a table's reader is made of
        self,
        source: Source,
        base: Path,
        root: Path,
        payload: pa.Schema | None = None,
        tell: Callable[[str], None] = lambda _: None,
        loss: Loss = Loss.STOP,
        now: Callable[[], int] = wall_now,
    ) -> None:
        """Open the table once; read no row."""
        self.source, self._root, self._tell, self._loss, self._now = source, root, tell, loss, now
        self._feed = CommitsSpec.of(source.feed)
        self._spec = self._feed.table
        self._log = Log(source.name, base / source.feed.paths[0])
        shape = self._log.shape(self._log.opened())
        self._id = shape.id
        self.schema, self._columns = self._landing(shape, payload)
        self._shapes: dict[int, TableShape] = {}
        """By the version that comes next: the columns of the one before."""
        self._looks: list[_CommitsLook] = []
        self._is_fresh = False
        """Whether nothing was made of the last look yet."""
        self._heard, self._state, self._since = MIN_TIME, "silent", 0

    def _landing(self, shape: TableShape, payload: pa.Schema | None) -> tuple[pa.Schema, pa.Schema]:
        """Give the payload as it lands, and the same by the table's own names."""
        back = {to: came for came, to in self.source.rename.items()}
        if payload is None:
            came = with_committed(self.source, declared(self.source, shape), self._spec.committed)
            payload = landed_schema(self.source, came)
        elif self.source.feed.types:
            payload = landed_payload(self.source)
        return payload, pa.schema([field.with_name(back.get(field.name, field.name)) for field in payload])

    def listen(self, known: SourceProgress) -> None:
        """Do nothing: commits wait in the table."""

    def close(self) -> None:
        """Do nothing: nothing is open between two looks."""

    def look(self, known: SourceProgress) -> int:  # noqa: ARG002 - part of the protocol
        """See which version is the newest; give when that was, in ticks of this machine's clock."""
        versions, away = list[int](), ""
        try:
            versions = self._log.versions()
        except OSError as error:
            away = error.strerror or str(error)
        if not versions and not away:
            away = "its log holds no version"
        at = max([self._now(), *(each.at for each in self._looks)])
        self._looks = [*self._looks[-1:], _CommitsLook(at, tuple(versions), away)]
        self._is_fresh = True
        return at

    def arrive(self, reading: Reading, known: SourceProgress) -> Arrived:
        """Give what was committed beyond what has landed; see `SourceFeed.arrive`.

        Places are by commit, file and row. While the table is not there readings go on, and are blind: so is the one
        in which it is back.

        Raises:
            VersionsGoneError: commits that come next are gone, and nobody accepted that.
            FileGoneError: the same of a file of theirs.
            RowsTakenAwayError: a commit takes rows away, and the source says to stop there.
            TableReplacedError: the table is another one than the one that landed.
            ColumnBrokenError: its columns are not the declared ones, and the source says to stop there.
        """
        end, ends, left = reading.end, dict(known.ends), 0
        gathered, was_away = Gathered(self._columns, self._terms()), self._state == "away"
        look, is_early = self._seen_before(end)
        if look.away:
            self._note("away", look.away, 0)
        elif not is_early:
            following = self._start(look, known, gathered)
            limit = reading.limit_rows
            before = -1
            while before < following <= look.newest and (limit is None or gathered.count < limit):
                before, following = following, self._take(following, look, gathered)
            ends, left = {self._id: following}, max(0, look.newest + 1 - following)
            self._note("there", "", left)
        is_away = self._state == "away"
        arrived = arrived_rows(
            self.source,
            self.schema,
            gathered,
            end,
            positions=known.positions(ends),
            blind=((self._heard, end),) if is_away or was_away else (),
            left=left,
            unsettled=(self.source.feed.paths[0],) if is_away or is_early else (),
        )
        self._heard = self._heard if is_away else end
        return arrived

    def _terms(self) -> ColumnTerms:
        """Give what becomes of other columns: without declared types those of the first reading are the declared."""
        said = terms_of(self.source)
        names = Names(taken=frozenset({*self.source.rename.values(), self._spec.committed}))
        return ColumnTerms(said.missing, said.retyped, names, said.edge)

    def _seen_before(self, end: int) -> tuple[_CommitsLook, bool]:
        """Give the newest look that was before a reading; where none was, the newest, and that it was not."""
        if not self._is_fresh:
            self.look(SourceProgress())
        self._is_fresh = False
        looks = [each for each in self._looks if each.at < end]
        return (looks or self._looks)[-1], not looks

    def _start(self, look: _CommitsLook, known: SourceProgress, gathered: Gathered) -> int:
        """Say which version comes next; a run that has landed nothing takes what the table holds."""
        table = str(self._log.path)
        if not known.ends:
            if self._feed.start is Start.EARLIEST:
                self._take_all(look.newest, gathered)
            return look.newest + 1
        if self._id not in known.ends:
            raise TableReplacedError(self.source.name, table, f"has the id {self._id}, not {', '.join(known.ends)}")
        start = known.ends[self._id]
        if start > look.newest + 1:
            problem = f"is at version {look.newest}, and versions up to {start - 1} landed"
            raise TableReplacedError(self.source.name, table, problem)
        return start

    def _take_all(self, version: int, gathered: Gathered) -> None:
        """Take what the table holds; its rows stand as committed with the version that is read."""
        opened = self._log.opened(version)
        shape, at = self._log.shape(opened), self._committed(version)
        for file in self._log.files(opened):
            self._read(file, shape, version, at, gathered)
        self._shapes = {version + 1: shape}

    def _committed(self, version: int) -> int:
        return self._log.commit(version).at if self._spec.committed else 0

    def _take(self, version: int, look: _CommitsLook, gathered: Gathered) -> int:
        """Take one commit, or tell that it is gone; give the version that comes next: the same, if it went just now."""
        try:
            commit = self._log.commit(version)
        except FileNotFoundError:
            return version if version in look.versions else self._lost(version, look, gathered)
        before = self._shape_before(version)
        shape = commit.shape or before
        if shape.id != self._id:
            raise TableReplacedError(self.source.name, str(self._log.path), f"has the id {shape.id} from {version} on")
        if commit.removed and self._spec.changes is Changes.STOP:
            raise taken_away(self.source.name, self._log.path, commit, shape)
        if commit.removed:
            line = told_commit(commit)
            gathered.tell(line.reason, line.action, line.raw, line.problem)
        else:
            self._take_files(commit, shape, gathered)
        self._shapes = {version + 1: shape}
        return version + 1

    def _take_files(self, commit: Commit, shape: TableShape, gathered: Gathered) -> None:
        for file in commit.adds:
            self._read(file, shape, commit.version, commit.at, gathered)

    def _shape_before(self, version: int) -> TableShape:
        """Give the columns before a version; those of now, where nobody can say it any more."""
        if version not in self._shapes:
            self._shapes = {version: self._opened_shape(version - 1)}
        return self._shapes[version]

    def _opened_shape(self, version: int) -> TableShape:
        try:
            return self._log.shape(self._log.opened(version))
        except DeltaTableMissingError:
            return self._log.shape(self._log.opened())

    def _lost(self, version: int, look: _CommitsLook, gathered: Gathered) -> int:
        following = min(each for each in look.versions if each > version)
        table = str(self._log.path)
        if self._loss is Loss.STOP:
            raise VersionsGoneError(self.source.name, table, version, following - 1, is_live=True)
        facts = {"table": self.source.feed.paths[0], "first": version, "last": following - 1}
        problem = f"versions {version} to {following - 1} of {self.source.feed.paths[0]} were cleaned away"
        gathered.tell(GONE, NOTED, json.dumps(facts).encode(), problem)
        return following

    def _read(self, file: DataFile, shape: TableShape, version: int, at: int, gathered: Gathered) -> None:
        """Take the rows of a file; one that does not fit the declared columns stands in the ledger."""
        name = self._spec.committed
        # Bookkeeping of a flow's table that nobody asked for is left there.
        columns = with_committed(self.source, shape.named(self._columns.names), name)
        where = f"version {version}, {file.name}"
        try:
            batches = list(rows_of(file, shape, columns, (name, at) if name else None))
            rows = pa.Table.from_batches(batches, columns)
            came = read_rows(where, rows, self._columns, self.source.feed.timezone, gathered.terms)
        except FileNotFoundError:
            self._file_lost(file, version, gathered)
        except (FeedUnreadableError, ColumnTypeError) as error:
            self._refuse(where, error, {"version": version, "file": file.name}, gathered)
        else:
            gathered.add(came, lambda row: f"{where}, row {row}")

    def _file_lost(self, file: DataFile, version: int, gathered: Gathered) -> None:
        if not (self._log.path / LOG).is_dir():
            raise DeltaTableMissingError(self.source.name, str(self._log.path), "it is gone while it was read")
        if self._loss is Loss.STOP:
            raise FileGoneError(self.source.name, str(self._log.path), version, file.name, is_live=True)
        facts = {"table": self.source.feed.paths[0], "first": version, "last": version, "file": file.name}
        problem = f"{file.name} of version {version} of {self.source.feed.paths[0]} is gone"
        gathered.tell(GONE, NOTED, json.dumps(facts).encode(), problem)

    def _refuse(self, where: str, error: Exception, facts: Mapping[str, object], gathered: Gathered) -> None:
        breach = error.breach if isinstance(error, OtherColumnsError) else None
        is_lacking = breach is not None and breach.setting == "missing"
        if breach is not None and (not is_lacking or gathered.terms.missing is Missing.STOP):
            raise ColumnBrokenError(self.source.name, where, breach)
        reason = "missing_column" if is_lacking else "unreadable_file"
        gathered.tell(reason, DROPPED, canonical_json(dict(facts)).encode(), f"{where}: {in_ledger(error)}")

    def _note(self, state: str, why: str, waiting: int) -> None:
        """Note how the table is, and tell when it goes or comes back."""
        path = self.source.feed.paths[0]
        if state != self._state:
            self._since = wall_now()
            if state == "away":
                self._tell(f"source {self.source.name}: {path} is gone ({why}); its time is blind until it is back")
            elif self._state == "away":
                self._tell(f"source {self.source.name}: {path} is back")
        self._state = state
        facts = {"kind": "commits", "address": path, "state": state, "why": why, "since_at": self._since}
        write_state(self._root, self.source.name, **facts, waiting_commits=waiting)


class _CommitsLook(NamedTuple):
    """What the log held at an instant."""

    at: int
    """In ticks."""
    versions: tuple[int, ...]
    away: str
    """Why nothing could be seen; empty where it could."""

    @property
    def newest(self) -> int:
        return self.versions[-1]


def open_source(source: Source, opening: Opening) -> SourceFeed:
    """Open a table whose commits are followed."""
    landed = opening.payloads.get(source.name)
    return CommitsFeed(source, opening.base, opening.root, landed, opening.tell, opening.loss)
