"""A table's Delta log as its one writer keeps it: looked at cheaply, added to from that look, on disk when it says so.

delta-rs opens logs and makes checkpoints. It does not append here: its commits cost what the log's folder holds (5 ms
with 100 versions, 12 ms with 2,000, and as much again to look: `docs/measure.py` versions), versions have to stay for
readers, and it names a version before its bytes are on disk. An append is one small file that is synced and then
linked to the name of the next version, which fails where anybody was faster: nothing is tried again over it.
"""

from __future__ import annotations

import errno
import json
import time
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from pipelines.engine.columnar.clock import wall_now
from pipelines.engine.commits.delta_log import SETTLED, checkpoint_version, snapshot
from pipelines.engine.commits.paths import (
    ConcurrentAddError,
    ForeignWriteError,
    TableMissingError,
    TornLogError,
    version_lines,
    version_path,
)
from pipelines.engine.commits.young_log import KNOWN_FEATURES, WRITERS, is_of_others
from pipelines.engine.files.durable import write_new
from pipelines.engine.files.stored import StoreFailedError, each_at_once, is_stored, number_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pipelines.engine.commits.paths import ActiveFile, NewFile
    from pipelines.engine.commits.young_log import Snapshot

NO_VERSION = -1
FRESH = 0.5
"""Seconds for which a look at a log in a store is as good as another: each is a call, and what it showed may have
changed since in any case. What must not happen twice is kept from it by the name of the next version alone."""
STANDS = 60.0
"""Seconds for which a version in a store is not looked for once more: only older ones are cleaned away."""
WORDS = {"add": "added rows", "remove": "took rows away"}


@dataclass(frozen=True, kw_only=True)
class TableChange:
    """What one transaction does to a table."""

    adds: Sequence[NewFile] = ()
    removes: Sequence[ActiveFile] = ()
    moves_rows: bool = True
    """Whether rows come or go; False where the same rows lie in other files from then on."""
    says: str = "WRITE"
    """What the log's history calls it."""
    shape: Mapping[str, Any] | None = None
    """What the table is from then on, columns and properties; as before unless given."""


@dataclass(frozen=True)
class Foreign:
    """A transaction of somebody else."""

    version: int
    operation: str
    harm: str
    """What it did to rows or columns; empty where it did nothing to them."""
    gone: tuple[str, ...] = ()
    """The files that it took out of the table, by path below the folder."""
    came: tuple[str, ...] = ()
    """The files that it put into the table."""
    reshapes: bool = False
    """Whether it changed what the table is: columns, properties, or what writers must know."""
    is_lasting: bool = False
    """Whether no later transaction can take it back: what writers must know is never unasked."""

    @property
    def words(self) -> str:
        """Say what somebody else did."""
        return f"{self.operation} in version {self.version} is not ours and {self.harm}"


@dataclass
class TableLog:
    """The newest state of one table's log, and the one way to append to it.

    A look is as good as opening the table: it is current when the next version's file is not there and its own
    version's file is the very one it was, in this order. For one thread, and one process at a time (the lease).
    """

    path: Path
    """The table's folder; the table may not exist yet."""
    watched: bool = False
    """Whether what others did is looked for from the newest checkpoint on when the log is opened."""
    foreign: list[Foreign] = field(default_factory=list)
    """What others did since the log was opened here, or since the version that was asked for then."""
    _now: Snapshot | None = None
    _seen: tuple[int, int] | None = None
    _looked: float = -inf
    """When it was looked at last, and nothing newer was there; by the monotonic clock, in seconds."""
    _stood: float = -inf
    """When its own version's file was last known to be the one that it was."""

    @property
    def version(self) -> int:
        """The version that was looked at last."""
        return self._now.version if self._now else NO_VERSION

    @property
    def applications(self) -> Mapping[str, int]:
        """Numbers of applications in that version."""
        return self._now.applications if self._now else {}

    @property
    def columns(self) -> Sequence[str]:
        """Names of its columns when the log was opened."""
        return self._now.schema.names if self._now else ()

    @property
    def files(self) -> Mapping[str, ActiveFile]:
        """The files of that version, by path below the folder."""
        return self._now.files if self._now else {}

    def is_current(self) -> bool:
        """Say whether what was looked at last is still the newest version, and the very file that it was."""
        newer = version_path(self.path, self.version + 1).exists()
        return not newer and self._stands()

    def _stands(self) -> bool:
        """Say whether the own version's file is the very one that it was."""
        now = time.monotonic()
        if is_stored(self.path) and self._seen is not None and now - self._stood < STANDS:
            return True
        if self._seen is None or self._identity() != self._seen:
            return False
        self._stood = now
        return True

    def look(self, since: int | None = None) -> bool:
        """Bring this up to date.

        Args:
            since: a version up to which all is known to be right; what came behind it is looked through when the log
                is opened.

        Returns:
            Whether there is a table.

        Raises:
            TornLogError: a version cannot be read.
        """
        if self._now is None:
            return self._open(since)
        now = time.monotonic()
        if is_stored(self.path) and now - self._looked < FRESH:
            return True
        newer = version_path(self.path, self.version + 1).exists()
        if not self._stands():
            return self._open(self.version if since is None else since)
        while newer:
            self._apply(self._now, self.read(self.version + 1))
            newer = version_path(self.path, self.version + 1).exists()
        self._looked = now
        return True

    def settled(self) -> int:
        """Give the newest commit that is settled in the table, 0 for none."""
        return self.applications.get(SETTLED, 0)

    def refuse_foreign(self) -> None:
        """Refuse to go on over what somebody else did to the table's rows or columns.

        Raises:
            ForeignWriteError: says what, and what repairs it.
        """
        for each in self.foreign:
            if each.harm:
                raise ForeignWriteError(str(self.path), each.version, each.operation, each.harm)

    def commit(self, change: TableChange, applications: Mapping[str, int]) -> int:
        """Append a transaction to what the last look showed; on disk when this returns.

        Args:
            change: what it does.
            applications: numbers of applications that it sets, besides that of all our transactions.

        Returns:
            The version.

        Raises:
            ConcurrentAddError: the next version is there already; nothing was written.
            TableMissingError: there was no table.
        """
        if self._now is None:
            raise TableMissingError(str(self.path))
        numbers = {**applications, WRITERS: self.applications.get(WRITERS, 0) + 1}
        actions = [*_head(change, numbers), *_body(self.path, change)]
        text = "".join(json.dumps(action, separators=(",", ":")) + "\n" for action in actions)
        next_version = version_path(self.path, self.version + 1)
        self._looked, now = -inf, time.monotonic()
        try:
            tag = write_new(next_version, text.encode())
        except FileExistsError:
            raise ConcurrentAddError(str(self.path), self.version + 1, "the version is there already") from None
        if self._identity() != self._seen:
            # The log was cleaned past the look, from the oldest version on: a free name says nothing then.
            next_version.unlink(missing_ok=True)
            raise ConcurrentAddError(str(self.path), self.version + 1, "the version came and was cleaned away")
        self._apply(self._now, actions, tag)
        self._looked = self._stood = now
        return self.version

    def _open(self, since: int | None) -> bool:
        self._now, self._seen = snapshot(self.path), None
        if self._now is None:
            return False
        self._seen = self._identity()
        told = self._now.others
        if since is None and self.watched:
            # A checkpoint may be of a version that somebody else wrote.
            since = 0 if told is not None else max(checkpoint_version(self.path), 1) - 1
        if since is None or told is not None:
            for version, actions in told or ():
                if since is not None and version > since:
                    self._note(version, actions)
            return True
        later = [each for each in range(since + 1, self.version + 1) if version_path(self.path, each).exists()]
        found = each_at_once(self.read, later, stored=is_stored(self.path))
        ours = sum(not is_of_others(actions) for actions in found)
        # Older code marked no transaction as ours: those before the first that is are its own.
        marked = not self.watched or self.applications.get(WRITERS, 0) > ours
        for version, actions in zip(later, found, strict=True):
            marked = marked or not is_of_others(actions)
            if marked:
                self._note(version, actions)
        return True

    def _identity(self) -> tuple[int, int] | None:
        try:
            found = version_path(self.path, self.version).stat()
        except StoreFailedError:
            # Whether a version stands must not be guessed: what is taken for another's is removed.
            raise
        except OSError:
            return None
        return found.st_ino, 0 if is_stored(self.path) else found.st_mtime_ns

    def read(self, version: int) -> list[dict[str, Any]]:
        """Read the transaction of a version.

        Raises:
            TornLogError: it cannot be read.
        """
        path = version_path(self.path, version)
        try:
            actions = [json.loads(line) for line in version_lines(path)]
        except (ValueError, OSError) as problem:
            # A disk that fails is no torn log, and says so itself.
            if isinstance(problem, OSError) and problem.errno not in {None, errno.ENOENT}:
                raise
            raise TornLogError(str(self.path), path.name, str(problem)) from None
        if not actions:
            raise TornLogError(str(self.path), path.name, "it is empty")
        return actions

    def _apply(self, now: Snapshot, actions: Sequence[dict[str, Any]], tag: str = "") -> None:
        now.apply(actions)
        self._note(now.version, actions)
        self._seen = (number_of(tag), 0) if tag else self._identity()

    def _note(self, version: int, actions: Sequence[Mapping[str, Any]]) -> None:
        if not is_of_others(actions):
            return
        told: Mapping[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
        gone, came = (
            tuple(unquote(action[verb]["path"]) for action in actions if verb in action) for verb in ("remove", "add")
        )
        reshapes = any("metaData" in action or "protocol" in action for action in actions)
        operation = str(told.get("operation", "a transaction"))
        harm = _harm(actions)
        is_lasting = bool(_strange(actions)) or any("deletionVector" in action.get("add", {}) for action in actions)
        self.foreign.append(Foreign(version, operation, harm, gone, came, reshapes, is_lasting))


def harmful(path: Path, since: int | None) -> list[Foreign]:
    """Give what others did to rows or columns of a table.

    Args:
        path: the table's folder.
        since: a version up to which all is known to be right.

    Raises:
        TornLogError: a version cannot be read.
    """
    log = TableLog(path)
    log.look(since)
    return [each for each in log.foreign if each.harm]


def _harm(actions: Sequence[Mapping[str, Any]]) -> str:
    """Say what a transaction of somebody else did to rows or columns."""
    did = [any(action[verb].get("dataChange", True) for action in actions if verb in action) for verb in WORDS]
    if any(did):
        return "changed rows" if all(did) else next(word for word, was in zip(WORDS.values(), did, strict=True) if was)
    if strange := _strange(actions):
        return f"asks of every writer what is not known here ({', '.join(strange)})"
    if any("deletionVector" in action.get("add", {}) for action in actions):
        return "hid rows"
    return "changed columns or properties" if any("metaData" in action for action in actions) else ""


def _strange(actions: Sequence[Mapping[str, Any]]) -> list[str]:
    """Name the features that a transaction asks for and that are not known here."""
    features = {
        feature
        for action in actions
        if "protocol" in action
        for kind in ("readerFeatures", "writerFeatures")
        for feature in action["protocol"].get(kind) or ()
    }
    return sorted(features - KNOWN_FEATURES)


def _head(change: TableChange, numbers: Mapping[str, int]) -> list[dict[str, Any]]:
    now = wall_now() // 1_000
    told = {"timestamp": now, "operation": change.says, "operationParameters": {}, "engineInfo": "pulseline"}
    return [
        {"commitInfo": told},
        *({"txn": {"appId": name, "version": number, "lastUpdated": now}} for name, number in numbers.items()),
    ]


def _body(path: Path, change: TableChange) -> list[dict[str, Any]]:
    now = wall_now() // 1_000
    removed = [
        {
            "path": quote(file.path.relative_to(path).as_posix()),
            "deletionTimestamp": now,
            "dataChange": change.moves_rows,
            "extendedFileMetadata": True,
            "partitionValues": {},
            "size": file.size,
        }
        for file in change.removes
    ]
    added = [
        {
            "path": quote(file.name),
            "partitionValues": {},
            "size": file.size,
            "modificationTime": now,
            "dataChange": change.moves_rows,
            "stats": file.statistics(),
        }
        for file in change.adds
    ]
    shape = [] if change.shape is None else [{"metaData": change.shape}]
    return [*shape, *({"remove": each} for each in removed), *({"add": each} for each in added)]
