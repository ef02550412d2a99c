"""A table's log held against `commits` and against the files themselves: what of it somebody or a disk has changed.

Each line of a version is JSON of its own, so a log that lost some, or has another letter in one, can be read as well.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.engine.commits.delta_log import snapshot
from pipelines.engine.commits.file_lists import FileLists, visible_at
from pipelines.engine.commits.paths import COMMIT, TableLostError, table_name
from pipelines.engine.commits.readers import are_as_hashed, log_state, rows_of_file
from pipelines.engine.commits.table_log import TableLog
from pipelines.engine.files.parquet import FileDamagedError
from pipelines.engine.files.stored import for_arrow, is_stored

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pipelines.engine.commits.history import LogState
    from pipelines.engine.commits.paths import NewFile


def unlike(root: Path, path: Path, state: LogState) -> str:
    """Say what a table's log says otherwise than `commits`, or than its files; nothing where it agrees.

    Files that somebody else took out or put together are told by that. In a store columns are not looked at: that would
    be a call a table.

    Args:
        root: the run's folder, or of one of its legs.
        path: the table's folder.
        state: the log of the run; where it differs, as it is now counts.

    Raises:
        TornLogError: a version cannot be read.
    """
    said = _unlike(root, path, state)
    return said and _unlike(root, path, log_state(root))


def _unlike(root: Path, path: Path, state: LogState) -> str:
    name, log = table_name(root, path), TableLog(path)
    if not log.look(state.recorded.versions.get(name)):
        return ""
    upto = log.settled()
    counted = sum(state.commits[commit].rows_of(path.name) for commit in visible_at(state, upto))
    there = sum(file.rows for file in log.files.values())
    # Who put files together may have said nothing of their rows.
    if there != counted and all(file.rows for file in log.files.values()):
        return f"its log names files of {there:,} rows, and commits have {counted:,} in it"
    held = FileLists(root, state).held(name, upto)
    for file in sorted(held.keys() & log.files.keys()):
        said, wrote = log.files[file], held[file]
        if said.size != wrote.size or said.rows not in {0, wrote.rows}:
            return f"its log says {said.rows:,} rows and {said.size:,} bytes of {file}, and its commit {_told(wrote)}"
    return "" if is_stored(path) or any(each.reshapes for each in log.foreign) else _other_columns(path, held)


def commits_without_rows(root: Path, path: Path, state: LogState) -> list[int]:
    """Name the commits whose rows are in none of the files that a table holds of them.

    A repair that was cut short may have put a file of one commit in the place of one that several shared.

    Args:
        root: the run's folder, or of one of its legs.
        path: the table's folder.
        state: the log of the run.
    """
    lists, name, log = FileLists(root, state), table_name(root, path), TableLog(path)
    log.look()
    found: Counter[int] = Counter()
    for file in lists.held(name, log.settled()).values():
        with suppress(FileDamagedError, TableLostError):
            found.update(rows_of_file(path, file, frozenset({COMMIT}))[COMMIT].to_pylist())
    visible = visible_at(state, log.settled())
    return [commit for commit in visible if found[commit] < state.commits[commit].rows_of(path.name)]


def _told(file: NewFile) -> str:
    return f"{file.rows:,} and {file.size:,}"


def _other_columns(path: Path, held: Mapping[str, NewFile]) -> str:
    """Say what a table's log says otherwise of its columns than one of its files that is as it was written."""
    table = snapshot(path)
    file = None if table is None else max(held.keys() & table.files.keys(), default=None)
    if table is None or file is None:
        return ""
    try:
        said = _unlike_column(table.schema, pq.read_schema(for_arrow(path / file)))
        return said if said and are_as_hashed(rows_of_file(path, held[file], None), held[file]) else ""
    except (pa.ArrowException, OSError, FileDamagedError, TableLostError):
        # That is told of the file.
        return ""


def _unlike_column(said: pa.Schema, written: pa.Schema) -> str:
    for column in said:
        if column.name not in written.names:
            return f"its log has a column {column.name}, which its files lack"
        came = written.field(column.name).type
        if not pa.types.is_nested(came) and _plain(came) != _plain(column.type):
            return f"its log says that {column.name} is {column.type}, and its files have {came}"
    return ""


def _plain(kind: pa.DataType) -> str:
    """Spell a type, texts and bytes in any of their layouts alike."""
    return str(kind).replace("large_", "").replace("_view", "")
