"""Where a run's tables lie, what a file in them is, and everything that is refused about them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from pipelines.engine.files import durable
from pipelines.engine.files.folders import CARRY
from pipelines.engine.files.stored import each_at_once, is_stored, path_of
from pipelines.errors import Exit, PulselineError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

COMMIT = "commit"
LOG = "_delta_log"
REGIONS = "regions"
"""Folder of a run in which its legs have theirs."""
FILE = "legs.json"
"""Says in it which these are."""
MOST = 2**63 - 1


class TableError(PulselineError, RuntimeError):
    """A table is not what the commit protocol needs; every error about tables is one of these."""


class OfCommitsError(TableError):
    """Tables and `commits` do not go together, or `commits` cannot be read: no repair makes it anew.

    Facts: a table.
    """

    table: str

    def __str__(self) -> str:
        return f"{super().__str__()}{self._of_leg()}"

    def _of_leg(self) -> str:
        """Say of a leg of its own that all it had made can be made again."""
        leg = next((path for path in path_of(self.table).parents if run_root(path) != path), None)
        if leg is None:
            return ""
        return (
            f"; or, as leg {leg.name} is one of its own, move {commits_path(leg)} out of the way, and pulseline doctor "
            "FLOW says how its rows are made again"
        )


@dataclass(eq=False)
class TableMissingError(TableError):
    """Files were to be added to a table that nobody created."""

    table: str
    says = (
        "{table} must be a Delta table; there is none: whoever writes makes it first, so it was removed; begin again, "
        "and pulseline doctor FLOW says what is gone"
    )


@dataclass(eq=False)
class SchemaChangedError(TableError):
    """A table exists with other columns than the flow now writes."""

    table: str
    stands: str
    came: str
    code = Exit.WRONG_USE

    def __str__(self) -> str:
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


@dataclass(eq=False)
class TableAheadError(OfCommitsError):
    """A table has a later commit number than the one to add: tables and commits do not belong together."""

    table: str
    commit: int
    newest: int
    says = (
        "{table} must not be ahead of commit {commit}; it has commit {newest} already: the root was mixed from two "
        "copies, or somebody else wrote to a table: pulseline doctor FLOW says what it finds, and what of it --repair "
        "mends; else put `commits` back out of a copy of the run's folder, or make a run of its own anew (--run NAME)"
    )


@dataclass(eq=False)
class TableLostError(TableError):
    """Rows that `commits` names are in no table: it was removed, or an older copy was put in its place."""

    table: str
    commit: int
    says = (
        "{table} must hold what commit {commit} wrote; it does not: the table or a file of it was removed, or "
        "replaced by an older copy; pulseline doctor FLOW says what can be had again; else put it back, or make a run "
        "of its own anew (--run NAME)"
    )


@dataclass(eq=False)
class CommitsLostError(OfCommitsError):
    """Rows of the table `commits` are gone: by all else they could be had again, and by nothing they can.

    Facts: the table, what of it is gone, and in which way.
    """

    table: str
    name: str
    how: str = "is gone"
    says = (
        "{table} must hold every row of the run's commits; {name} {how}, and nothing else knows what it said: put "
        "it back out of a copy of the run's folder, or make a run of its own anew (--run NAME)"
    )


@dataclass(eq=False)
class CommitsChangedError(OfCommitsError):
    """Somebody else changed rows or columns of `commits`, by which all else is told and put right."""

    table: str
    change: str
    says = (
        "{table} must have the rows that the run wrote, and no others; {change}: nothing is told or done by it until "
        "that is taken back: pulseline doctor FLOW says whether pulseline doctor FLOW --repair can"
    )

    def _of_leg(self) -> str:
        return ""


@dataclass(eq=False)
class RootGoneError(TableError):
    """The folder of a run is gone while a command works on it, as a disk that is no longer mounted takes it away."""

    root: str
    says = (
        "{root} must be there as long as a command works on it, and is gone: see whether its disk is still mounted; "
        "once it is there again, the same command goes on from here"
    )


@dataclass(eq=False)
class QualityLostError(TableError):
    """What checks found cannot be read: nothing that a run computes stands on it, and it can be judged again."""

    table: str
    problem: str
    says = (
        "{table} must hold what checks found; it cannot be read ({problem}): pulseline doctor FLOW --repair puts it "
        "aside, and pulseline check FLOW judges again what is still asked for"
    )


@dataclass(eq=False)
class FileMissingError(TableError):
    """A file that a task named is not in the table's folder."""

    table: str
    name: str
    says = (
        "{name} must lie in {table} with all its bytes before it counts; it does not: run what wrote it again; where "
        "that ends so again, pulseline abandon FLOW --commit N gives up a commit that nobody sees yet, and pulseline "
        "doctor FLOW has one made again that is published"
    )


@dataclass(eq=False)
class ConcurrentAddError(TableError):
    """Another writer added to the table between this one's look and its commit."""

    table: str
    version: int
    reason: str
    says = (
        "{table} must have one writer; another was faster than version {version} ({reason}): nothing was added, look "
        "at the lease and try again"
    )


@dataclass(eq=False)
class ForeignWriteError(TableError):
    """Somebody else changed rows or columns of a table that has one writer.

    Facts: the version, what its log calls it, and what it did.
    """

    table: str
    version: int
    operation: str
    harm: str
    says = (
        "{table} must be written by its run alone; {operation} in version {version}, which is not ours, {harm}: "
        "nothing was added; pulseline doctor FLOW --repair puts the rows of the run back, and what you want to change "
        "belongs into a copy of the table"
    )


@dataclass(eq=False)
class TornLogError(OfCommitsError):
    """A table's log has a version or checkpoint that cannot be read.

    Facts: the file, and why it cannot be read.
    """

    table: str
    name: str
    reason: str

    def __str__(self) -> str:
        """Say what cannot be read, and what to do: by `commits` all tables can be had again, and by nothing it can."""
        told = f"{self.table} must have a log that can be read; {self.name} cannot ({self.reason})"
        if not self.table.endswith("/commits"):
            return f"{told}: pulseline doctor FLOW says what stands, with --repair it mends it"
        again = "put it back out of a copy of the run's folder, or make a run of its own anew (--run NAME)"
        return f"{told}: {again}{self._of_leg()}"


class NewFile(NamedTuple):
    """A Parquet file of a table as `commits` and the table's log name it."""

    name: str
    """Path below the table's folder."""
    rows: int
    size: int
    """Bytes."""
    hash: str = ""
    """Text of the content hash of its rows; empty where none was taken."""
    first: int = 0
    """Smallest commit number in the file."""
    last: int = MOST
    """Largest commit number in the file."""

    def statistics(self) -> str:
        """Spell rows and bounds of `commit` as the Delta log has them."""
        bounds = None if (self.first, self.last) == (0, MOST) else (self.first, self.last)
        known = {"minValues": {COMMIT: self.first}, "maxValues": {COMMIT: self.last}, "nullCount": {COMMIT: 0}}
        return json.dumps({"numRecords": self.rows, **(known if bounds else {})}, separators=(",", ":"))


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


def require_file(path: Path, file: NewFile) -> None:
    """See that a file lies below its table's folder, whole.

    Args:
        path: the table's folder.
        file: as it was named.

    Raises:
        FileMissingError: it is not there, or has another size.
    """
    try:
        size = (path / file.name).stat().st_size
    except FileNotFoundError:
        size = -1
    if size != file.size:
        raise FileMissingError(str(path), file.name)


def require_files(path: Path, files: Sequence[NewFile]) -> None:
    """See that files lie below their table's folder, whole; arguments and errors as those of `require_file`.

    In a store several are asked for beside each other, for a commit has as many as it had tasks.
    """
    each_at_once(partial(require_file, path), files, stored=is_stored(path))


def landed_path(root: Path) -> Path:
    """Give the folder of a run's landed history; where a run began before it had this name, the one it had then."""
    if is_stored(root):
        return durable.linked(root / "landed")
    older, landed = root / "landing" / "a", root / "landed"
    return older if (older / "00000001").exists() and not landed.exists() else landed


def lands_elsewhere(root: Path) -> bool:
    """Say whether a run plays the landed history of another."""
    landed = landed_path(root)
    return landed.is_symlink() or not landed.is_relative_to(root)


def stream_path(root: Path, stream: str) -> Path:
    """Give the folder of a stream's table."""
    return root / "streams" / stream


def ledger_path(root: Path) -> Path:
    """Give the folder of the ledger."""
    return root / "ledger"


def carry_path(root: Path, stream: str, part: str) -> Path:
    """Give the folder of one part of a stream's carry, such as `state`."""
    return root / CARRY / f"{stream}.{part}"


def run_root(root: Path) -> Path:
    """Give the run's folder that a root belongs to: itself, or that of which it is a leg."""
    above = root.parent.parent
    return above if root.parent.name == REGIONS and (above / REGIONS / FILE).is_file() else root


def commits_path(root: Path) -> Path:
    """Give the folder of the table `commits`."""
    return root / "commits"


def table_path(root: Path, table: str) -> Path:
    """Give the folder of a table that is named by its folder below the root, such as `streams/beating`."""
    return root / table


def table_name(root: Path, path: Path) -> str:
    """Name a table by its folder below the root."""
    return path.relative_to(root).as_posix()


def data_tables(root: Path) -> list[Path]:
    """List the folders of a root that are tables of rows of commits: streams and ledger; made or half made.

    Raises:
        OSError: the disk does not say; none may be taken for absent.
    """
    streams = _inside(root / "streams")
    if is_stored(root):
        # What lies below one is what makes a folder there.
        return sorted([*streams, *([ledger_path(root)] if ledger_path(root).is_dir() else [])])
    return sorted(folder for folder in (*streams, ledger_path(root)) if folder.is_dir())


def carry_folders(root: Path) -> list[Path]:
    """List the folders of a root that hold the carry.

    Raises:
        OSError: the disk does not say.
    """
    return sorted(folder for folder in _inside(root / CARRY) if folder.is_dir())


def _inside(folder: Path) -> list[Path]:
    """Give what lies in a folder; a pattern would find nothing in one that may not be read for a moment."""
    try:
        return list(folder.iterdir())
    except FileNotFoundError:
        return []


def version_path(path: Path, version: int) -> Path:
    """Give the path of a version in a table's log."""
    return path / LOG / f"{version:020d}.json"


def version_lines(file: Path) -> list[str]:
    """Read the lines of one version of a table's log; statistics hold text with line ends that only Unicode has.

    Args:
        file: the version.

    Raises:
        OSError: it cannot be read.
        UnicodeDecodeError: it is no text.
    """
    return [line for line in file.read_text(encoding="utf-8").split("\n") if line.strip()]
