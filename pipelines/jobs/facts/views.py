"""The rows that a judge looks at: exactly the Parquet files that the Delta log names for some commits.

They are read in this process, unless they are very many and there is a Spark to ask. Spark reads the files itself: the
Delta connector would read the same ones, after a download of its jar on first use, and knows nothing of commits that
are written and not published, which is what the gate asks about.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from expectations.laws import laws_of
from expectations.on_duckdb import PlainView, count_plain
from expectations.views import Views
from pipelines.engine.columnar.columns import LEDGER_SCHEMA, ORDER_FIELDS, TIME
from pipelines.engine.commits.entry import CommitKind
from pipelines.engine.commits.paths import landed_path, ledger_path, stream_path
from pipelines.engine.commits.readers import read_carry, rows_of
from pipelines.engine.files.packed import opened
from pipelines.engine.files.parquet import dataset, rows_of_named, size_of
from pipelines.engine.files.stored import is_stored
from pipelines.engine.landing.manifest import read_sequence
from pipelines.engine.landing.segments import pieces_of
from pipelines.engine.tasks.task import carry_key
from pipelines.flows.known_columns import OF_EVERY_STREAM
from pipelines.jobs.facts.chosen import LandedRows, is_true
from pipelines.jobs.facts.earlier import before
from pipelines.jobs.runs.counts import counted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from expectations.laws import Law
    from pipelines.engine.commits.entry import Entry
    from pipelines.engine.commits.history import LogState
    from pipelines.engine.commits.readers import Published
    from pipelines.flows.model import Flow

PATTERN = re.compile(r"[\\{}\[\]*?]")
"""Characters that mean something in a pattern of paths."""
LARGE = 2_000_000_000
"""Bytes of Parquet of one table from which on Spark judges, where there is one: some 50,000,000 rows."""
LANDED = pa.schema([pa.field("kind", pa.string()), pa.field("arrival", TIME)])


@dataclass(frozen=True, kw_only=True)
class JudgedCommits:
    """Which commits are judged, and what is published before them."""

    entries: tuple[Entry, ...]
    """In the order of their spans."""
    earlier: tuple[int, ...]
    """Published commits that end where the first of them begins or before, the latest first."""

    @property
    def commits(self) -> tuple[int, ...]:
        """Number the commits."""
        return tuple(entry.commit for entry in self.entries)

    @property
    def span(self) -> tuple[int, int]:
        """Give start and end of all of them together, in ticks."""
        return self.entries[0].span.start, max(entry.span.end for entry in self.entries)


Session = Callable[[], "SparkSession"]
"""Gives Spark's session, and starts Spark where nobody has."""


def views_of(flow: Flow, root: Path, judged: JudgedCommits, state: LogState, session: Session | None = None) -> Views:
    """Open the tables of a run for a judge.

    Args:
        flow: the model that made the commits.
        root: the run's folder.
        judged: the commits.
        state: the log.
        session: asked where a table is `LARGE`; without one all is read in this process.
    """
    found = {name: _rows(flow, root, name, judged, state) for name in flow.tables()}
    ledger = rows_of(root, ledger_path(root), judged.commits, LEDGER_SCHEMA, state)
    before = {name: _before(flow, root, name, judged, state) for name in flow.tables()}
    landed = {name: _landed(root, name, judged) for name in flow.sources}
    held = {name: _held(root, flow, name, judged, state) for name in flow.streams}
    expected = {name: LandedRows(root, name, judged) for name in flow.expect if name in flow.sources}
    if session is not None and any(sum(size_of(file) for file in rows.files) >= LARGE for rows in found.values()):
        from expectations.on_spark import SparkView, count_on_spark

        spark = session()
        frames = {name: frame(spark, rows) for name, rows in found.items()}
        of_landed = {name: _landed_frame(spark, *pieces) for name, pieces in landed.items()}
        return Views(
            tables={name: SparkView(rows=rows, before=before[name], truth=is_true) for name, rows in frames.items()},
            landed={
                name: SparkView(rows=spark.createDataFrame(rows.scan()), truth=is_true)
                for name, rows in expected.items()
            },
            count=partial(count_on_spark, frames, of_landed, frame(spark, ledger)),
            held=held,
        )
    return Views(
        tables={name: PlainView(rows=rows, before=before[name], truth=is_true) for name, rows in found.items()},
        landed={name: PlainView(rows=rows, truth=is_true) for name, rows in expected.items()},
        count=partial(count_plain, found, {name: _landed_rows(*pieces) for name, pieces in landed.items()}, ledger),
        held=held,
    )


def _rows(flow: Flow, root: Path, name: str, judged: JudgedCommits, state: LogState) -> Published:
    return rows_of(root, stream_path(root, name), judged.commits, _otherwise(flow, name), state)


def _otherwise(flow: Flow, name: str) -> pa.Schema:
    """Give the columns where there is no table: those that may be asked for."""
    asked = (column for law in laws_of(flow, name) for column in (*law.scope, law.measured, *flow.key_of(name)))
    others = dict.fromkeys(column for column in asked if column not in OF_EVERY_STREAM)
    return pa.schema([*ORDER_FIELDS, *(pa.field(column, pa.string()) for column in others)])


def _before(flow: Flow, root: Path, name: str, judged: JudgedCommits, state: LogState) -> pa.Table | None:
    laws: dict[tuple[tuple[str, ...], str], Law] = {}
    for law in laws_of(flow, name):
        # A promise binds all that any law says it does: a span may have events and no promise of its own.
        binds = (law.governors, law.measured)
        known = laws.get(binds, law)
        laws[binds] = replace(law, governed=tuple(dict.fromkeys((*known.governed, *law.governed))))
    found = [before(root, law, judged.commits, judged.earlier, _otherwise(flow, name), state) for law in laws.values()]
    tables = [table for table in found if table is not None]
    return pa.concat_tables(tables, promote_options="default") if tables else None


def frame(spark: SparkSession, found: Published) -> DataFrame:
    """Read the rows of the wanted commits as a frame; no file is opened to learn the columns."""
    rows = _read(spark, found.files, found.schema)
    return rows if found.exact else rows.where(rows["commit"].isin(list(found.commits)))


def _read(spark: SparkSession, files: Sequence[str], schema: pa.Schema) -> DataFrame:
    from pyspark.sql.pandas.types import from_arrow_schema

    columns = from_arrow_schema(schema, prefer_timestamp_ntz=True)
    if not files:
        return spark.createDataFrame([], columns)
    if is_stored(files[0]):
        named = spark.createDataFrame([(file,) for file in files], "file string").repartition(len(files))
        # Spark itself would need the store's own Java for it.
        return named.mapInArrow(partial(rows_of_named, schema), columns)
    # Spark takes a path for a pattern; told not to, it reads files in a folder such as `[1]` several times (4.2.0).
    literal = [PATTERN.sub(r"\\\g<0>", file) for file in files]
    return spark.read.schema(columns).option("datetimeRebaseMode", "CORRECTED").parquet(*literal)


def _landed(root: Path, source: str, judged: JudgedCommits) -> tuple[list[str], list[pa.Table]]:
    """Find what landed: files that hold it alone, and rows of those that hold rows of other commits too."""
    numbers = sorted({number for entry in judged.entries for number in entry.sequences})
    pieces = pieces_of([read_sequence(landed_path(root), number) for number in numbers], source)
    files = [str(path) for path, groups in pieces.items() if groups is None]
    rows = []
    for path, groups in pieces.items():
        if groups is not None:
            with opened(path) as file:
                rows.append(file.read_row_groups(groups, columns=LANDED.names))
    return files, rows


def _landed_rows(files: Sequence[str], rows: Sequence[pa.Table]) -> list[pa.Table]:
    return [*([dataset(files, LANDED).to_table()] if files else []), *rows]


def _landed_frame(spark: SparkSession, files: Sequence[str], rows: Sequence[pa.Table]) -> DataFrame:
    frames = (spark.createDataFrame(some) for some in rows)
    return reduce(lambda one, other: one.unionByName(other), frames, _read(spark, files, LANDED))


def _held(root: Path, flow: Flow, stream: str, judged: JudgedCommits, state: LogState) -> Counter[str]:
    """Count the rows that the carry holds at the end more than at the beginning, by kind.

    A commit that began from another carry than the one before it left is reckoned from its own beginning.
    """
    more: Counter[str] = Counter()
    ended = None
    for entry in judged.entries:
        ground = state.parent_of(entry.commit)
        if ground != ended:
            more.update(_held_at(root, flow, stream, ended, state))
            more.subtract(_held_at(root, flow, stream, ground, state))
        if entry.kind is CommitKind.ADOPT and not ground:
            # A run that begins with the carry of another one: what that held came in there.
            more.subtract(Counter(data=counted(entry, stream).get("held", 0)))
        ended = entry.commit
    more.update(_held_at(root, flow, stream, ended, state))
    return more


def _held_at(root: Path, flow: Flow, stream: str, commit: int | None, state: LogState) -> Counter[str]:
    """Count the rows that the carry at a commit holds, in its table; once that is swept, as the commit counted them."""
    if not commit:
        return Counter()
    if commit in state.successors:
        return Counter(data=counted(state.commits[commit], stream).get("held", 0))
    rows = read_carry(root, stream, "held", commit, key=carry_key(flow.streams[stream], "held"), state=state)
    return Counter(rows["kind"].to_pylist()) if "kind" in rows.column_names else Counter()
