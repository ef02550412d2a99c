"""Plain readers of a run's tables, who know nothing of it, and what they may see: whole settled states alone."""

from __future__ import annotations

import time
from importlib.util import find_spec
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from pipelines.engine.commits.entry import State
from pipelines.engine.commits.paths import COMMIT, LOG, data_tables, table_name
from pipelines.engine.files.folders import UNNAMED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection
    from pathlib import Path

    from pipelines.engine.commits.history import LogState

SETTLED = "pulseline"
"""Application whose transaction id in a table is the newest commit that is settled there."""
TRIES = 3
"""Times that a reader opens a table anew when a file that it was to read is gone: another VACUUM may take it."""

BREATH = 0.02
"""Seconds between two rounds."""
TICK = 50_000_000
"""Nanoseconds that are more than a disk's clock leaves out."""

Counts = tuple[tuple[int, int], ...]
"""Commits and how many rows of each, smallest first."""


class TableLook(NamedTuple):
    """What a reader saw of one table at once."""

    reader: str
    table: str
    version: int
    settled: int
    counts: Counts
    failed: str = ""
    """Why nothing was seen."""


def by_arrow(table: DeltaTable) -> Counts:
    """Read by pyarrow."""
    commits = ds.dataset(table.file_uris(), format="parquet").to_table(columns=[COMMIT])[COMMIT]
    return tuple(sorted((each["values"], each["counts"]) for each in pc.value_counts(commits).to_pylist()))


def by_pandas(table: DeltaTable) -> Counts:
    """Read as most people do."""
    counts = table.to_pandas(columns=[COMMIT])[COMMIT].value_counts()
    return tuple(sorted((int(commit), int(rows)) for commit, rows in counts.items()))


def by_duckdb(table: DeltaTable) -> Counts:
    """Read by DuckDB."""
    import duckdb

    found = duckdb.read_parquet(table.file_uris()).aggregate("commit, count(*)").fetchall()
    return tuple(sorted((commit, rows) for commit, rows in found))


READERS: dict[str, Callable[[DeltaTable], Counts]] = {"pyarrow": by_arrow, "pandas": by_pandas}
if find_spec("duckdb"):
    READERS["duckdb"] = by_duckdb


def looking(pipe: Connection, root: Path) -> None:
    """Look at every table of a run, again and again, each reader in turn, and tell each look that is another one."""
    last: dict[tuple[Path, str], TableLook] = {}
    seen: dict[tuple[Path, str], tuple[int, ...]] = {}
    while True:
        for path, reader in product(data_tables(root), READERS):
            changed = changes(path)
            if changed == seen.get((path, reader)):
                continue
            found = look(reader, path, table_name(root, path))
            if found is not None and found != last.get((path, reader)):
                pipe.send(found)
                last[path, reader] = found
            # A change in the same tick of the disk's clock would look like none.
            if time.time_ns() - max(changed, default=0) > TICK:
                seen[path, reader] = changed
        time.sleep(BREATH)


def changes(path: Path) -> tuple[int, ...]:
    """Say when files last came into a table's folders, or went: a reader sees the same until they do again."""
    folders = (path, path / LOG, path / UNNAMED)
    return tuple(folder.stat().st_mtime_ns for folder in folders if folder.is_dir())


def look(reader: str, path: Path, name: str, version: int | None = None) -> TableLook | None:
    """Look at one table; None where there is none, or nothing was ever settled there.

    Args:
        reader: one of `READERS`.
        path: the table's folder.
        name: of the table.
        version: which; the newest unless given.
    """
    why = ""
    for _ in range(TRIES):
        try:
            table = DeltaTable(str(path), version=version)
            settled = table.transaction_version(SETTLED)
            counts = READERS[reader](table) if table.file_uris() else ()
            return TableLook(reader, name, table.version(), settled or 0, counts)
        except TableNotFoundError:
            return None
        except Exception as problem:  # noqa: BLE001 - whatever keeps a reader from reading is the finding
            why = f"{type(problem).__name__}: {' '.join(str(problem).split())[:200]}"
    return TableLook(reader, name, -1, -1, (), why)


def looks_now(root: Path) -> list[TableLook]:
    """Look at every table once."""
    found = (look("pyarrow", path, table_name(root, path)) for path in data_tables(root))
    return [each for each in found if each is not None]


def wrong(looks: list[TableLook], state: LogState) -> Iterator[str]:
    """Say which looks were no whole settled state, and which were older than one before.

    Args:
        looks: of one reader after another, each in its order.
        state: the log at the end, which knows all that was ever published.
    """
    newest: dict[tuple[str, str], int] = {}
    known: dict[tuple[str, int], Counts] = {}
    for each in looks:
        what = f"{each.reader} saw {each.table}, version {each.version}"
        if each.failed:
            yield f"{each.reader} could not read {each.table}: {each.failed}"
            continue
        at = (each.table, each.settled)
        if known.setdefault(at, settled_counts(state, *at)) != each.counts:
            yield f"{what} at commit {each.settled} with {dict(each.counts)}, not {dict(known[at])}"
        if each.settled < newest.get((each.reader, each.table), 0):
            yield f"{what} go back to commit {each.settled}"
        newest[each.reader, each.table] = each.settled


def settled_counts(state: LogState, table: str, commit: int) -> Counts:
    """Give what a table holds when a commit is settled: the rows of each commit that readers see then."""
    seen = [row for row in state.commits.values() if row.state is State.PUBLISHED and row.commit <= commit]
    gone = {old for row in seen for old in row.supersedes}
    rows = ((row.commit, row.rows_of(table.rpartition("/")[2])) for row in seen if row.commit not in gone)
    return tuple(sorted((number, count) for number, count in rows if count))
