"""The table `quality`: what was judged of a run, one row an expectation, table and span or commit.

What is judged again replaces what was found before, in one transaction, so judging twice changes nothing but `at`. Each
commit or span has one file, named after it, so nothing is read to replace it. (delta-rs could replace by a condition;
its writer panics where the folder's name has a bracket.)
"""

from __future__ import annotations

import errno
import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.clock import NANOS_PER_TICK, wall_now
from pipelines.engine.columnar.columns import TIME, canonical_json, instant_text, ticks, times
from pipelines.engine.commits.delta_log import LogFiles, checkpoint, checkpoint_version, create, mend
from pipelines.engine.commits.log import UNREADABLE
from pipelines.engine.commits.paths import (
    LOG,
    ConcurrentAddError,
    NewFile,
    QualityLostError,
    SchemaChangedError,
    TornLogError,
)
from pipelines.engine.commits.table_log import TableChange, TableLog
from pipelines.engine.files import durable
from pipelines.engine.files.parquet import dataset, write_table
from pipelines.operators.rows import TICKS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

SCHEMA = pa.schema(
    [
        pa.field("judged", pa.string()),
        pa.field("expectation", pa.string()),
        pa.field("table", pa.string()),
        pa.field("span_start", TIME),
        pa.field("span_end", TIME),
        pa.field("commit", pa.int64()),
        pa.field("severity", pa.string()),
        pa.field("sentence", pa.string()),
        pa.field("remedy", pa.string()),
        pa.field("held", pa.bool_()),
        pa.field("looked_at", pa.int64()),
        pa.field("unexpected", pa.int64()),
        pa.field("rows", pa.string()),
        pa.field("at", TIME),
    ]
)
WRITTEN = pa.schema([*SCHEMA, pa.field("asked", pa.string())])
"""Columns of its files: what was asked stands beside the columns of the table, for tables of before lack it."""
PLAIN = ("expectation", "table", "severity", "sentence", "remedy", "held", "looked_at", "unexpected", "commit")
INSTANTS = {"span_start": "start", "span_end": "end", "at": "at"}
SUFFIX, VERSION = ".parquet", ".json"
TRIES = 5
KEPT = 3_600 * TICKS_PER_SECOND
"""How long a replaced file stays, in ticks."""
CHECKPOINT_EVERY = 100
OTHER_COLUMNS = "it has other columns than it was made with"


@dataclass(frozen=True, kw_only=True)
class Quality:
    """What came of one expectation of one table, over a span or in a commit."""

    expectation: str
    table: str
    severity: str
    """`blocking`, or `warning`."""
    sentence: str
    remedy: str
    held: bool
    looked_at: int
    unexpected: int
    rows: tuple[Mapping[str, Any], ...]
    """The first rows that break it, plain values."""
    start: int
    """Of the span, in ticks."""
    end: int
    commit: int
    """0 where the published commits of a span were judged together."""
    at: int
    """Wall time of the judgement, in ticks."""
    asked: str = ""
    """What a team's own check asked (`Check.asks`); empty of all others, and of what older code judged."""

    @property
    def judged(self) -> str:
        """Name what was judged: a commit, or a span."""
        return judged_name(self.start, self.end, self.commit)


def judged_name(start: int, end: int, commit: int) -> str:
    """Name a commit, or a span in ticks.

    >>> judged_name(0, 1_000_000, 5), judged_name(0, 1_000_000, 0)
    ('commit 5', '1970-01-01T00:00:00.000000Z to 1970-01-01T00:00:01.000000Z')
    """
    return f"commit {commit}" if commit else f"{instant_text(start)} to {instant_text(end)}"


def quality_path(root: Path) -> Path:
    """Give the folder of the table."""
    return root / "quality"


def write_quality(root: Path, rows: Sequence[Quality]) -> None:
    """Put what was judged in place of what was found of the same commit or span before.

    Args:
        root: the run's folder.
        rows: all of one commit, or all of one span.

    Raises:
        ValueError: they are of several.
        QualityLostError: somebody else has changed its rows or columns; nothing was written.
        ConcurrentAddError: other checks wrote again and again; nothing was written.
    """
    if not rows:
        return
    names = {row.judged for row in rows}
    if len(names) > 1:
        raise ValueError(f"quality rows that are written together must be of one commit or span; they are of {names}")
    path = quality_path(root)
    mend(path)
    try:
        create(path, SCHEMA)
    except SchemaChangedError:
        raise QualityLostError(str(path), OTHER_COLUMNS) from None
    require_own(path)
    file = _write(path, names.pop(), rows)
    for left in reversed(range(TRIES)):
        try:
            _replace(path, file)
        except ConcurrentAddError:
            # Another check wrote at the same time; what the table holds now is looked at anew.
            if not left:
                (path / file.name).unlink()
                raise
        else:
            break


def _write(path: Path, judged: str, rows: Sequence[Quality]) -> NewFile:
    name = f"{_stem(judged)}{uuid.uuid4().hex}{SUFFIX}"
    commit, size = rows[0].commit, write_table(_table(rows), path / name)
    durable.sync_files(path, [path / name])
    return NewFile(name=name, rows=len(rows), size=size, first=commit, last=commit)


def _stem(judged: str) -> str:
    """Spell what was judged as all its files begin, and no other's."""
    return judged.translate(str.maketrans(" ", "-", ":.")) + "--"


def _replace(path: Path, file: NewFile) -> None:
    """Add a file in place of those of the same commit or span, in one transaction."""
    log, stem = TableLog(path), file.name.partition("--")[0] + "--"
    log.look()
    old = [each for each in log.files.values() if each.path.name.startswith(stem)]
    log.commit(TableChange(adds=[file], removes=old), {})
    if log.version - checkpoint_version(path) >= CHECKPOINT_EVERY:
        checkpoint(path)
    for each in path.glob(f"*{SUFFIX}"):
        # What was replaced so long ago that nobody reads it any more.
        if each.name not in log.files and wall_now() - each.stat().st_mtime_ns // NANOS_PER_TICK > KEPT:
            each.unlink(missing_ok=True)


def _table(rows: Sequence[Quality]) -> pa.Table:
    columns: dict[str, Any] = {name: [getattr(row, name) for row in rows] for name in PLAIN}
    columns |= {name: _instants([getattr(row, own) for row in rows]) for name, own in INSTANTS.items()}
    columns |= {
        "judged": [row.judged for row in rows],
        "rows": [canonical_json([dict(each) for each in row.rows]) for row in rows],
        "asked": [row.asked for row in rows],
    }
    arrays = [
        columns[field.name] if isinstance(columns[field.name], pa.Array) else pa.array(columns[field.name], field.type)
        for field in WRITTEN
    ]
    return pa.Table.from_arrays(arrays, schema=WRITTEN)


def _instants(values: Sequence[int]) -> pa.Array:
    return times(ticks(pa.array(values, pa.int64())))


def read_quality(
    root: Path, *, commit: int | None = None, start: int | None = None, end: int | None = None
) -> tuple[Quality, ...]:
    """Read what was judged, without a JVM; nothing where nothing was.

    Args:
        root: the run's folder.
        commit: only what was found of this commit; 0 for spans.
        start: only what ends after this instant, in ticks.
        end: only what starts before this instant, in ticks.

    Returns:
        Ordered by span, then by commit, then as they were judged.

    Raises:
        QualityLostError: its log or a file of it cannot be read, or somebody else has changed its rows or columns.
    """
    path = quality_path(root)
    try:
        found = _read(_rows(path, None if commit is None else pc.field("commit") == commit))
    except (TornLogError, *UNREADABLE) as problem:
        # A disk that fails says so itself.
        if isinstance(problem, OSError) and problem.errno not in {None, errno.ENOENT, errno.ENOTDIR}:
            raise
        raise QualityLostError(str(path), str(problem)) from None
    rows = sorted(found, key=lambda row: (row.start, row.end, row.commit))
    return tuple(row for row in before(rows, end) if start is None or start < row.end)


def _rows(path: Path, where: pc.Expression | None) -> pa.Table:
    """Read the table as it is now; nothing where there is none."""
    if path.is_file():
        raise NotADirectoryError(errno.ENOTDIR, "a file lies where the table's folder would be")
    for name in LogFiles.of(path).torn:
        # A version has its name once all of it is on disk: what is left of one was told, unless nothing is.
        if name.endswith(VERSION) and (path / LOG / name).stat().st_size:
            raise TornLogError(str(path), name, "somebody or a disk changed it")
    files = [str(file.path) for file in require_own(path).files.values()]
    return dataset(files, WRITTEN).to_table(filter=where) if files else WRITTEN.empty_table()


def require_own(path: Path) -> TableLog:
    """See that nobody else has changed what checks found since the newest checkpoint; OPTIMIZE and properties may.

    Args:
        path: of the table; it need not be there.

    Returns:
        Its log as it is now.

    Raises:
        QualityLostError: somebody has, or a version cannot be read.
    """
    log = TableLog(path, watched=True)
    try:
        if not log.look():
            return log
    except TornLogError as problem:
        raise QualityLostError(str(path), str(problem)) from None
    for each in log.foreign:
        if "rows" in each.harm:
            raise QualityLostError(str(path), each.words)
    if not {*SCHEMA.names} <= set(log.columns) <= {*WRITTEN.names}:
        raise QualityLostError(str(path), OTHER_COLUMNS)
    return log


def put_aside(root: Path) -> None:
    """Leave what cannot be read of the table under another name, so that the next check writes it anew."""
    path = quality_path(root)
    durable.put_aside(path / LOG if path.is_dir() else path)


def before(rows: Sequence[Quality], end: int | None) -> tuple[Quality, ...]:
    """Give what was judged of spans that start before an instant, in ticks; of all where there is none."""
    return tuple(row for row in rows if end is None or row.start < end)


def _read(found: pa.Table) -> list[Quality]:
    instants = {own: ticks(found[name]).tolist() for name, own in INSTANTS.items()}
    return [
        Quality(
            **{name: row[name] for name in PLAIN},
            rows=tuple(json.loads(row["rows"])),
            asked=row["asked"] or "",
            **{own: values[place] for own, values in instants.items()},
        )
        for place, row in enumerate(found.select([*PLAIN, "rows", "asked"]).to_pylist())
    ]
