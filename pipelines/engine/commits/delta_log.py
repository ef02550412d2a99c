"""A table's Delta log as a whole: made, opened, shortened by checkpoints, cleaned, and mended after a power cut.

What a log's newest files say may be nothing: a version or checkpoint can have its name on disk and not its bytes. Such
a file counts as absent; who holds the run's lease removes it.
"""

from __future__ import annotations

import datetime as dt
import errno
import json
import os
import re
import shutil
import tempfile
import weakref
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from pipelines.engine.columnar.clock import wall_now
from pipelines.engine.commits.paths import (
    COMMIT,
    LOG,
    MOST,
    ActiveFile,
    SchemaChangedError,
    TornLogError,
    version_lines,
    version_path,
)
from pipelines.engine.commits.young_log import WRITERS, Snapshot, read_young
from pipelines.engine.files import durable
from pipelines.engine.files.stored import StoreFailedError, StorePath, each_at_once, for_arrow, is_stored, told
from pipelines.errors import PulselineError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

CONFIGURATION: Mapping[str, str | None] = {
    "delta.deletedFileRetentionDuration": "interval 7 days",
    "delta.logRetentionDuration": "interval 7 days",
    "pulseline.writer": "written by its run alone; others read, and copy what they want to change",
}
SETTLED = "pulseline"
"""Application whose number in a table is the newest commit that is settled there."""
HOUSE = "pulseline/house"
"""Application whose number is the entry of the newest row of `commits` about the table's files that was carried out."""
APPLICATIONS = (SETTLED, HOUSE, WRITERS)
HINT = "_last_checkpoint"
COPIED_LOG = "_checkpoint-"
"""Begins the name of a folder below a table in which a checkpoint is made, in a copy of its log."""
CHECKPOINT = ".checkpoint.parquet"
DIGITS = 20
SYSTEM_SAID = re.compile(r"\(os error (\d+)\)")
AT_A_TIME = 600
"""Files of one log that are removed at a time, more than come between two times: a removal takes up to 2 ms."""


def exists(path: Path) -> bool:
    """Say whether a Delta table lies at `path`; files without a log are none yet."""
    return any(name.endswith((".json", CHECKPOINT)) for name in _names(path) if name[:DIGITS].isdigit())


def open_table(path: Path) -> DeltaTable | None:
    """Open the table at `path` as it is now; None where there is none yet.

    What cannot be read of its log counts as absent.

    Raises:
        TornLogError: nothing that can be read makes a table.
        StoreFailedError: the store does not do its part.
    """
    if not exists(path):
        return None
    try:
        table = DeltaTable(str(path))
    except Exception as problem:  # noqa: BLE001 - delta-rs raises its own errors, and others, for what cannot be read
        if not exists(path):
            return None
        if is_stored(path):
            return _open_stored(path, str(problem))
        return _open_readable(path, _first_line(problem))
    # delta-rs takes a version without bytes for a transaction that does nothing: what it added would be gone unsaid.
    last = table.version()
    empty = [number for number in _empty_versions(path) if number <= last]
    if not empty:
        return table
    if is_stored(path) or empty != list(range(empty[0], last + 1)):
        raise TornLogError(str(path), version_path(path, empty[0]).name, "it is empty")
    # As a power cut leaves the newest ones.
    return _open_readable(path, "it is empty")


@contextmanager
def _delta_asks(path: Path) -> Iterator[None]:
    """Have told as a store's what delta-rs meets in one: it names addresses, and has no one error for that.

    Raises:
        StoreFailedError: the store does not do its part.
        TornLogError: a version is gone, or says what no version does.
    """
    try:
        yield
    except PulselineError:
        raise
    except Exception as problem:
        if is_stored(path):
            raise _unreadable(path, str(problem)) from None
        if (said := _by_the_system(problem, path)) is not None:
            raise said from problem
        if isinstance(problem, DeltaError):
            raise TornLogError(str(path), LOG, _first_line(problem)) from None
        raise


def _by_the_system(problem: Exception, path: Path) -> OSError | None:
    """Give what the system refused, of which delta-rs has the number in words alone; None where a file is gone."""
    found = SYSTEM_SAID.search(str(problem))
    if found is None or int(found[1]) == errno.ENOENT:
        return None
    return OSError(int(found[1]), os.strerror(int(found[1])), str(path))


def _first_line(problem: object) -> str:
    """Leave out the trace that delta-rs has behind its words."""
    return str(problem).partition("\n")[0]


def _unreadable(path: Path, problem: str) -> TornLogError | StoreFailedError:
    """Say why delta-rs cannot read a table in a store: something of its log is gone or harmed, or the store fails."""
    try:
        _open_stored(path, problem)
    except (TornLogError, StoreFailedError) as why:
        return why
    return TornLogError(str(path), next(iter(torn_names(path)), LOG), told(_first_line(problem)))


def _open_stored(path: Path, problem: str) -> DeltaTable:
    """Open a table in a store that delta-rs cannot: by its words nobody tells a log from a store that does not answer.

    So the log is read here, where the store says itself what it does not do, and opened in a copy on this machine.

    Raises:
        TornLogError: nothing that can be read makes a table, or a version is gone, or is none.
        StoreFailedError: the store does not do its part.
    """
    torn = _torn(path)
    if torn is not None:
        raise torn
    table = _open_readable(path, told(_first_line(problem)))
    if not torn_names(path):
        raise StoreFailedError(str(path), told(problem))
    return table


def torn_names(path: Path) -> list[str]:
    """Name what cannot be read of a log: checkpoints, newest versions, and a hint that leads nowhere."""
    found = LogFiles.of(path)
    return [*found.torn, *([] if found.hint else [HINT])]


def _torn(path: Path) -> TornLogError | None:
    """Name the version of a log that is gone, or that is none; None where all are there."""
    gap = _gap(path)
    if gap is not None:
        return TornLogError(str(path), f"version {gap}", "its file is gone, and later ones stand")
    ground = checkpoint_version(path)
    files = [version_path(path, number) for number in _versions(path) if number > ground]
    whole = each_at_once(_is_version, files, stored=is_stored(path))
    none = next((file for file, is_whole in zip(files, whole, strict=True) if not is_whole), None)
    return None if none is None else TornLogError(str(path), none.name, "it is not what a version is")


def _empty_versions(path: Path) -> list[int]:
    """Give the versions of a log that have no bytes, and that no checkpoint stands for, in order."""
    ground, log = checkpoint_version(path), path / LOG
    if isinstance(log, StorePath):
        empty = {file.name for file, said in log.below() if not said.st_size}
    else:
        with os.scandir(log) as found:
            empty = {each.name for each in found if _is_empty(each)}
    return [number for number in _versions(path) if number > ground and version_path(path, number).name in empty]


def _is_empty(file: os.DirEntry[str]) -> bool:
    try:
        return not file.stat().st_size
    except FileNotFoundError:
        return False


def _open_readable(path: Path, problem: str) -> DeltaTable:
    """Open a copy of what can be read of a log; it stays as long as the table, which reads of it when it is asked."""
    folder = tempfile.mkdtemp()
    try:
        with _only_readable(path, Path(folder)) as copy:
            table = DeltaTable(str(copy))
    except Exception as failed:
        shutil.rmtree(folder, ignore_errors=True)
        # A disk that fails is no torn log, and says so itself; a file that is gone has been cleaned away meanwhile.
        if isinstance(failed, OSError) and failed.errno not in (None, errno.ENOENT):
            raise
        if (said := _by_the_system(failed, path)) is not None:
            raise said from failed
        raise (_torn(path) or TornLogError(str(path), LOG, problem)) from None
    weakref.finalize(table, shutil.rmtree, folder, ignore_errors=True)
    return table


def snapshot(path: Path) -> Snapshot | None:
    """Read the newest version of the table at `path`; None where there is none yet.

    What cannot be read of its log counts as absent.

    Raises:
        TornLogError: nothing that can be read makes a table.
    """
    young = read_young(path)
    if young is not None:
        return young
    table = open_table(path)
    if table is None:
        return None
    with _delta_asks(path):
        return _snapshot_of(path, table)


def at_version(path: Path, version: int) -> tuple[Snapshot, dict[str, Any]]:
    """Read a version of a table that is not its newest, and what the table was then, as a log has it.

    Args:
        path: the table's folder.
        version: which.

    Raises:
        TornLogError: what it was can no longer be read.
        StoreFailedError: the store does not do its part.
    """
    with _delta_asks(path):
        table = DeltaTable(str(path), version=version)
        told = table.metadata()
        shape = {
            "id": str(told.id),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": table.schema().to_json(),
            "partitionColumns": told.partition_columns,
            "configuration": told.configuration,
            "createdTime": told.created_time,
        }
        return _snapshot_of(path, table), shape


def _snapshot_of(path: Path, table: DeltaTable) -> Snapshot:
    """Give what delta-rs knows of a table at the version at which it opened it."""
    files = {file.path.relative_to(path).as_posix(): file for file in active_files(table, path)}
    return Snapshot(path, table.version(), schema_of(table), application_versions(table, APPLICATIONS), files)


def schema_of(table: DeltaTable) -> pa.Schema:
    """Give a table's columns as pyarrow has them."""
    return pa.schema(table.schema().to_arrow())


def create(path: Path, schema: pa.Schema) -> None:
    """Create the table at `path` unless it is there already with these columns; on disk when this returns.

    Two that create at once are safe: one of them finds the other's table. Columns compare by name, type and order.

    Raises:
        SchemaChangedError: it is there with other columns.
    """
    if not exists(path):
        (path / LOG).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            DeltaTable.create(folder, schema, configuration=CONFIGURATION, raise_if_key_not_exists=False)
            first = version_path(Path(folder), 0).read_bytes()
        with suppress(FileExistsError):
            # Somebody else made it at the same time.
            durable.write_new(version_path(path, 0), first)
        for each in (path, path.parent, path.parent.parent):
            durable.sync_folder(each)
    check_columns(path, schema)


def check_columns(path: Path, schema: pa.Schema) -> None:
    """See that the table at `path`, where there is one, has these columns.

    Raises:
        SchemaChangedError: it has others.
    """
    table = snapshot(path)
    stands = schema if table is None else table.schema
    if _columns(stands) != _columns(schema):
        raise SchemaChangedError(str(path), _columns(stands), _columns(schema))


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{column.name} {column.type}" for column in schema)


def application_versions(table: DeltaTable, names: Iterable[str]) -> dict[str, int]:
    """Give the numbers that applications have in a table, of those that have one."""
    found = {name: table.transaction_version(name) for name in names}
    return {name: number for name, number in found.items() if number is not None}


def active_files(table: DeltaTable, path: Path) -> list[ActiveFile]:
    """List the files of a table's version; one without bounds of `commit` may hold any commit.

    Args:
        table: the handle.
        path: the table's folder.
    """
    actions = pa.table(table.get_add_actions(flatten=True))
    count = actions.num_rows
    known = f"min.{COMMIT}" in actions.column_names
    lows = actions[f"min.{COMMIT}"].to_pylist() if known else [None] * count
    highs = actions[f"max.{COMMIT}"].to_pylist() if known else [None] * count
    names, rows, sizes = (actions[name].to_pylist() for name in ("path", "num_records", "size_bytes"))
    return [
        ActiveFile(path / unquote(name), number or 0, size, 0 if low is None else low, MOST if high is None else high)
        for name, number, size, low, high in zip(names, rows, sizes, lows, highs, strict=True)
    ]


def checkpoint_version(path: Path) -> int:
    """Give the version of a table's newest checkpoint, -1 where there is none."""
    return max((_number(name) for name in _names(path) if name.endswith(CHECKPOINT)), default=-1)


def checkpoint(path: Path) -> int:
    """Write a checkpoint of a table's newest version unless there is one; on disk, and read back, before it counts.

    delta-rs writes it in a copy of the log, for it would be named, and found by its hint, before its bytes are on disk.

    Returns:
        The version of the newest checkpoint.
    """
    if is_stored(path):
        # What a store names is whole, so it may be written where it stands.
        with _delta_asks(path):
            table = DeltaTable(str(path))
            if (version := table.version()) > checkpoint_version(path):
                table.create_checkpoint()
        return version
    with (
        tempfile.TemporaryDirectory(prefix=COPIED_LOG, dir=path) as folder,
        _only_readable(path, Path(folder)) as copy,
    ):
        table = DeltaTable(str(copy))
        version = table.version()
        if version == checkpoint_version(path):
            return version
        table.create_checkpoint()
        made = copy / LOG / f"{version:020d}{CHECKPOINT}"
        durable.sync_file(made)
        if not _is_readable(made):
            raise TornLogError(str(path), made.name, "it was just written, and cannot be read back")
        made.replace(path / LOG / made.name)
        durable.sync_folder(path / LOG)
        # Not synced: an empty hint is none for any reader, and cleaning has its name on disk before what it named goes.
        (copy / LOG / HINT).replace(path / LOG / HINT)
    return version


@contextmanager
def _only_readable(path: Path, folder: Path) -> Iterator[Path]:
    """Give a table whose log holds what can be read of one: the newest checkpoint and the versions behind it."""
    log = folder / LOG
    log.mkdir(exist_ok=True)
    found = LogFiles.of(path)
    ground = found.checkpoints[-1] if found.checkpoints else -1
    files = [version_path(path, number) for number in found.versions if number >= ground]
    if ground >= 0:
        files.append(path / LOG / f"{ground:020d}{CHECKPOINT}")
    each_at_once(lambda file: _link(file, log), files, stored=is_stored(path))
    yield folder


def _link(file: Path, folder: Path) -> None:
    if is_stored(file):
        (folder / file.name).write_bytes(file.read_bytes())
        return
    try:
        os.link(file, folder / file.name)
    except OSError:
        shutil.copyfile(file, folder / file.name)


class LogFiles(NamedTuple):
    """What a table's log holds."""

    versions: tuple[int, ...]
    """Up to the newest that can be read."""
    checkpoints: tuple[int, ...]
    """Versions of checkpoints that can be read."""
    torn: tuple[str, ...]
    """Names of checkpoints, and of newest versions, that cannot be read; the newest first."""
    hint: bool
    """Whether the hint is as it should be: it names a checkpoint that can be read, or is absent."""

    @classmethod
    def of(cls, path: Path) -> LogFiles:
        """Look at a log; of versions only the newest are opened.

        Args:
            path: the table's folder.

        Raises:
            OSError: the disk does not give a file. Torn is what it gives, and what makes no sense.
        """
        names = [name for name in _names(path) if name[:DIGITS].isdigit()]
        grounds = sorted(_number(name) for name in names if name.endswith(CHECKPOINT))
        broken = [number for number in grounds if not _is_readable(path / LOG / f"{number:020d}{CHECKPOINT}")]
        checkpoints = tuple(number for number in grounds if number not in broken)
        versions = sorted(_number(name) for name in names if name.endswith(".json"))
        ground = checkpoints[-1] if checkpoints else -1
        lost = list[int]()
        while versions and versions[-1] > ground and not _is_version(version_path(path, versions[-1])):
            lost.append(versions.pop())
        return cls(
            versions=tuple(versions),
            checkpoints=checkpoints,
            torn=(*(f"{each:020d}{CHECKPOINT}" for each in broken), *(f"{each:020d}.json" for each in lost)),
            hint=_hint(path) in {None, *checkpoints},
        )


def mend(path: Path, *, harmed: bool = False) -> list[str]:
    """Remove what cannot be read of a table's log: a torn newest version, checkpoints, the hint. Under the lease alone.

    A version of ours is on disk before the next is begun, so none that was told is among what goes.

    Args:
        path: the table's folder.
        harmed: look in a store, too, which shows an object whole or not at all: what is torn there somebody harmed, and
            a version of it that was told stays.

    Returns:
        The names of what was removed.

    Raises:
        OSError: the disk does not give a file; nothing was removed.
    """
    if is_stored(path) and not harmed:
        return []
    gone = [name for name in torn_names(path) if not is_stored(path) or not name.endswith(".json")]
    for name in gone:
        file = path / LOG / name
        if file.is_dir():
            # No writer of Delta makes one; whose it is, it stays.
            file.rename(path / f"{name}-aside-{wall_now()}")
        else:
            file.unlink(missing_ok=True)
    return gone


def _names(path: Path) -> list[str]:
    try:
        return [file.name for file in (path / LOG).iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _versions(path: Path) -> list[int]:
    """Give the numbers of the versions that a log has, in order."""
    return sorted(_number(name) for name in _names(path) if name[:DIGITS].isdigit() and name.endswith(".json"))


def _number(name: str) -> int:
    return int(name[:DIGITS])


def _gap(path: Path) -> int | None:
    """Give the first version that is not there though one before it and one behind it are; None where none is."""
    numbers = _versions(path)
    return next((one + 1 for one, other in pairwise(numbers) if other != one + 1), None)


def _is_version(file: Path) -> bool:
    try:
        lines = version_lines(file)
        return bool(lines) and all(isinstance(json.loads(line), dict) for line in lines)
    except (FileNotFoundError, IsADirectoryError, ValueError):
        return False


def _is_readable(file: Path) -> bool:
    try:
        return bool(pq.read_metadata(for_arrow(file)).num_rows)
    except FileNotFoundError:
        return False
    except OSError as problem:
        # Arrow tells bytes that are no Parquet as an OSError too, without a number.
        if problem.errno is not None:
            raise
        return False
    except pa.ArrowException:
        return False


def _hint(path: Path) -> int | None:
    """Give the version that a log's hint names; None without a hint, -1 where it cannot be read."""
    try:
        return int(json.loads((path / LOG / HINT).read_text(encoding="utf-8"))["version"])
    except FileNotFoundError:
        return None
    except StoreFailedError:
        # What a store does not give is not harmed, and nothing that stands may go for it.
        raise
    except (OSError, ValueError, KeyError, TypeError):
        return -1


def clean_log(path: Path, age: dt.timedelta) -> int:
    """Remove what a table's log has before the newest checkpoint that is old enough, from the oldest version on.

    That checkpoint, which somebody else may have made, is read back and synced, with its name and the hint's, before
    anything behind which it stands goes.

    Args:
        path: the table's folder.
        age: a checkpoint younger than this does not count, nor what came after the one before it.

    Returns:
        How many files were removed.
    """
    names = sorted(name for name in _names(path) if name[:DIGITS].isdigit())
    limit = (wall_now() - age // dt.timedelta(microseconds=1)) * 1_000
    grounds = [path / LOG / name for name in names if name.endswith(CHECKPOINT)]
    old = [file for file in grounds if file.stat().st_mtime_ns <= limit and _is_readable(file)]
    if not old:
        return 0
    durable.sync_file(old[-1])
    durable.sync_folder(path / LOG)
    gone: Sequence[str] = [name for name in names if _number(name) < _number(old[-1].name)][:AT_A_TIME]
    for name in gone:
        (path / LOG / name).unlink(missing_ok=True)
    return len(gone)
