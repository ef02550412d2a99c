"""Where a run's tables lie, and how the driver adds files that tasks wrote to them: once for each commit number.

delta-rs neither refuses a transaction version it has seen before nor a smaller one (measured, 1.6.6), so the newest one
is compared first. What it does refuse is a second transaction of one application from a handle as old as the first's:
of two writers that compared at the same time, one fails. A handle does not learn of its own commits either; every step
here looks at the table anew (`handles.Handle` does it cheaply for one that writes again and again).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from deltalake.transaction import RemoveAction

COMMIT = "commit"
CONFIGURATION: Mapping[str, str | None] = {"delta.deletedFileRetentionDuration": "interval 2 hours"}
"""How long checkpoints name what was removed, a week unless said: twice as long as housekeeping lets it lie."""
OVERTAKEN = "Invalid table version"
"""What delta-rs says, without an error class of its own, when a handle's version was cleaned from the log."""
UNHOOKED = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
"""The driver writes checkpoints and cleans logs itself, between commits."""


class TableError(RuntimeError):
    """A table is not what the commit protocol needs; every error about tables is one of these."""


class TableMissingError(TableError):
    """Files were to be added to a table that nobody created."""

    def __init__(self, table: str) -> None:
        """Keep the facts as attributes."""
        super().__init__(table)
        self.table = table

    def __str__(self) -> str:
        """Say it in one sentence."""
        return f"{self.table} must be a Delta table; there is none: create it with its schema before its first files"


class SchemaChangedError(TableError):
    """A table exists with other columns than the flow now writes."""

    def __init__(self, table: str, stands: str, came: str) -> None:
        """Keep the facts as attributes."""
        super().__init__(table, stands, came)
        self.table, self.stands, self.came = table, stands, came

    def __str__(self) -> str:
        """Say it in one sentence."""
        stands, came = self.stands.split(", "), self.came.split(", ")
        new, gone = [each for each in came if each not in stands], [each for each in stands if each not in came]
        told = [f"new: {', '.join(new)}"] if new else []
        told += [f"gone: {', '.join(gone)}"] if gone else []
        others = "; ".join(told) or "in another order"
        return (
            f"{self.table} must keep its columns; the flow now writes others ({others}): "
            "give the changed flow a run of its own (--run NAME), or play into one what this one took in "
            "(pulseline replay FLOW --run RUN --into NAME)"
        )


class TableAheadError(TableError):
    """A table has a later commit number than the one to add: tables and commits do not belong together."""

    def __init__(self, table: str, commit: int, newest: int) -> None:
        """Keep the facts as attributes."""
        super().__init__(table, commit, newest)
        self.table, self.commit, self.newest = table, commit, newest

    def __str__(self) -> str:
        """Say it in one sentence."""
        return (
            f"{self.table} must not be ahead of commit {self.commit}; it has commit {self.newest} already: "
            "the root was mixed from two copies, or a table was written by hand; restore it whole"
        )


class TableLostError(TableError):
    """Rows that `commits` says are published are in no table: it was removed, or an older copy was put in its place."""

    def __init__(self, table: str, commit: int) -> None:
        """Keep the facts as attributes."""
        super().__init__(table, commit)
        self.table, self.commit = table, commit

    def __str__(self) -> str:
        """Say it in one sentence."""
        return (
            f"{self.table} must hold what commit {self.commit} wrote, which is published; it does not: the table was "
            "removed or replaced by an older copy; put it back, or make a run of its own anew (--run NAME)"
        )


class FileMissingError(TableError):
    """A file that a task named is not in the table's folder."""

    def __init__(self, table: str, name: str) -> None:
        """Keep the facts as attributes."""
        super().__init__(table, name)
        self.table, self.name = table, name

    def __str__(self) -> str:
        """Say it in one sentence."""
        return f"{self.name} must lie in {self.table} before it is added; it does not: run the task again"


class ConcurrentAddError(TableError):
    """Another writer added to the table between this one's look and its commit."""

    def __init__(self, table: str, version: int, reason: str) -> None:
        """Keep the facts as attributes."""
        super().__init__(table, version, reason)
        self.table, self.version, self.reason = table, version, reason

    def __str__(self) -> str:
        """Say it in one sentence."""
        return (
            f"{self.table} must have one writer; another was faster than transaction {self.version} "
            f"({self.reason}): nothing was added, look at the lease and try again"
        )


@dataclass(frozen=True, kw_only=True)
class NewFile:
    """A Parquet file that a task has written directly into a table's folder."""

    name: str
    """File name, without a folder."""
    rows: int
    size: int
    """Bytes."""
    stats: Mapping[str, tuple[object, object]] = field(default_factory=dict)
    """Smallest and largest value of columns, as JSON has them; those of `commit` are added by `add_files`."""


def landed_path(root: Path) -> Path:
    """Give the folder of a run's landed history; where a run began before it had this name, the one it had then."""
    older, landed = root / "landing" / "a", root / "landed"
    return older if (older / "00000001").exists() and not landed.exists() else landed


def stream_path(root: Path, stream: str) -> Path:
    """Give the folder of a stream's table."""
    return root / "streams" / stream


def ledger_path(root: Path) -> Path:
    """Give the folder of the ledger."""
    return root / "ledger"


def carry_path(root: Path, stream: str, part: str) -> Path:
    """Give the folder of one part of a stream's carry, such as `state`."""
    return root / "carry" / f"{stream}.{part}"


def commits_path(root: Path) -> Path:
    """Give the folder of the table `commits`."""
    return root / "commits"


def application(root: Path, flow: str, path: Path) -> str:
    """Name the application under which a flow's driver adds to a table."""
    return f"{flow}/{path.relative_to(root).as_posix()}"


def data_tables(root: Path) -> list[Path]:
    """List the folders of a root that hold rows of commits: streams, ledger, carry; made or half made."""
    folders = [*(root / "streams").glob("*"), *(root / "carry").glob("*"), ledger_path(root)]
    return sorted(folder for folder in folders if folder.is_dir())


def exists(path: Path) -> bool:
    """Say whether a Delta table lies at `path`; files without a log are none yet."""
    return DeltaTable.is_deltatable(str(path))


def open_table(path: Path) -> DeltaTable | None:
    """Open the table at `path` as it is now; None where there is none yet."""
    return DeltaTable(str(path)) if exists(path) else None


def schema_of(table: DeltaTable) -> pa.Schema:
    """Give a table's columns as pyarrow has them."""
    return pa.schema(table.schema().to_arrow())


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{column.name} {column.type}" for column in schema)


def create(path: Path, schema: pa.Schema) -> None:
    """Create the table at `path` unless it is there already with these columns.

    Two that create at once are safe: one of them finds the other's table. Columns compare by name, type and order.

    Raises:
        SchemaChangedError: it is there with other columns.
    """
    if not exists(path):
        path.mkdir(parents=True, exist_ok=True)
        try:
            DeltaTable.create(str(path), schema, configuration=CONFIGURATION)
        except DeltaError:
            if not exists(path):
                raise
    check_columns(path, schema)


def check_columns(path: Path, schema: pa.Schema) -> None:
    """See that the table at `path`, where there is one, has these columns.

    Raises:
        SchemaChangedError: it has others.
    """
    stands = schema_of(DeltaTable(str(path))) if exists(path) else schema
    if _columns(stands) != _columns(schema):
        raise SchemaChangedError(str(path), _columns(stands), _columns(schema))


def newest_version(table: DeltaTable, app_id: str) -> int:
    """Give the newest transaction version of an application in a table as this handle sees it, 0 for none."""
    return table.transaction_version(app_id) or 0


def stats(file: NewFile, commit: int | None) -> str:
    """Spell the statistics of a file as the Delta log has them, with `commit` as bounds where it is known."""
    bounds = {**file.stats, **({} if commit is None else {COMMIT: (commit, commit)})}
    return json.dumps(
        {
            "numRecords": file.rows,
            "minValues": {name: low for name, (low, _) in bounds.items()},
            "maxValues": {name: high for name, (_, high) in bounds.items()},
            "nullCount": {COMMIT: 0} if commit is not None else {},
        }
    )


def _action(path: Path, file: NewFile, commit: int | None) -> AddAction:
    try:
        written = (path / file.name).stat().st_mtime_ns // 1_000_000
    except FileNotFoundError:
        raise FileMissingError(str(path), file.name) from None
    return AddAction(file.name, file.size, {}, written, data_change=True, stats=stats(file, commit))


def append(table: DeltaTable, path: Path, files: Sequence[NewFile], app_id: str, version: int) -> None:
    """Add files in one transaction, provided that no other of this application came since `table` was opened.

    Args:
        table: the handle whose view the caller has judged; it still shows the old state afterwards.
        path: the table's folder, in which the files lie.
        files: what to add.
        app_id: name of the application whose transactions exclude each other.
        version: number of the transaction.

    Raises:
        ConcurrentAddError: another transaction of `app_id` came first; nothing was added.
        FileMissingError: a file is not there.
    """
    transact(table, path, [_action(path, file, None) for file in files], app_id, version)


def transact(
    table: DeltaTable, path: Path, actions: Sequence[AddAction | RemoveAction], app_id: str, version: int
) -> None:
    """Commit actions under a number of an application; see `append`, also for what is refused."""
    properties = CommitProperties(app_transactions=[Transaction(app_id, version)])
    try:
        table.create_write_transaction(
            list(actions),
            mode="append",
            schema=table.schema(),
            commit_properties=properties,
            post_commithook_properties=UNHOOKED,
        )
    except DeltaError as error:
        if isinstance(error, CommitFailedError) or OVERTAKEN in str(error):
            raise ConcurrentAddError(str(path), version, str(error)) from error
        raise


def add_files(path: Path, app_id: str, version: int, files: Sequence[NewFile]) -> bool:
    """Make files part of a table under a commit number, unless the table has that number already.

    The number is compared before and carried by the transaction, so a driver that was killed after the transaction and
    starts over adds nothing twice. Without files nothing is written, and the number is not remembered.

    Args:
        path: the table's folder; the files lie directly in it.
        app_id: flow and table, the same for every commit.
        version: the commit number; also the `commit` of every row in the files.
        files: what the tasks wrote.

    Returns:
        Whether files were added now.

    Raises:
        TableMissingError: there is no table.
        TableAheadError: the table has a later number.
        ConcurrentAddError: another writer came in between.
        FileMissingError: a file is not there.
    """
    return add_to(open_table(path), path, app_id, version, files)


def add_to(table: DeltaTable | None, path: Path, app_id: str, version: int, files: Sequence[NewFile]) -> bool:
    """Add files through a handle that shows the table as it is now; otherwise as `add_files`."""
    if table is None:
        raise TableMissingError(str(path))
    newest = newest_version(table, app_id)
    if newest > version:
        raise TableAheadError(str(path), version, newest)
    if not files or newest == version:
        return False
    transact(table, path, [_action(path, file, version) for file in files], app_id, version)
    return True


@dataclass(frozen=True)
class ActiveFile:
    """A file that a table's newest version holds, and which commits' rows are in it."""

    path: Path
    rows: int
    size: int
    first: int
    """Smallest commit number in the file."""
    last: int
    """Largest commit number in the file."""


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
        ActiveFile(path / name, number or 0, size, 0 if low is None else low, 2**63 - 1 if high is None else high)
        for name, number, size, low, high in zip(names, rows, sizes, lows, highs, strict=True)
    ]
