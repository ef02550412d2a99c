"""The rows that a judge looks at, as Spark frames: exactly the Parquet files that the Delta log names for some commits.

Spark reads those files itself. The Delta connector would read the same ones, after a download of its jar on first use,
and knows nothing of commits that are written and not published, which is what the gate asks about.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from expectations.laws import laws_of
from expectations.views import View, Views
from pipelines.engine.columnar.columns import LEDGER_SCHEMA, ORDER_FIELDS, TIME
from pipelines.engine.commits.entry import CommitKind
from pipelines.engine.commits.paths import landed_path, ledger_path, stream_path
from pipelines.engine.commits.readers import read_carry, rows_of
from pipelines.engine.files.packed import opened
from pipelines.engine.files.parquet import rows_of_named, size_of
from pipelines.engine.files.stored import is_stored
from pipelines.engine.landing.manifest import read_sequence
from pipelines.engine.landing.segments import pieces_of
from pipelines.engine.tasks.task import carry_key
from pipelines.jobs.facts.earlier import before
from pipelines.jobs.runs.counts import counted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from pipelines.engine.commits.entry import Entry
    from pipelines.engine.commits.history import LogState
    from pipelines.engine.commits.readers import Published
    from pipelines.flows.model import Flow

PATTERN = re.compile(r"[\\{}\[\]*?]")
"""Characters that mean something in a pattern of paths."""
SMALL = 8_000_000
"""Bytes of Parquet of one table up to which one task reads it all: some 200,000 rows."""
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


def views_of(spark: SparkSession, flow: Flow, root: Path, judged: JudgedCommits, state: LogState) -> Views:
    """Open the tables of a run for a judge.

    Args:
        spark: the session.
        flow: the model that made the commits.
        root: the run's folder.
        judged: the commits.
        state: the log.
    """
    ledger = rows_of(root, ledger_path(root), judged.commits, LEDGER_SCHEMA, state)
    return Views(
        tables={name: _view(spark, flow, root, name, judged, state) for name in flow.tables()},
        ledger=frame(spark, ledger),
        landed={name: _landed(spark, root, name, judged) for name in flow.sources},
        held={name: _held(root, flow, name, judged, state) for name in flow.streams},
    )


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


def _view(  # noqa: PLR0913 - one table of one judgement
    spark: SparkSession, flow: Flow, root: Path, name: str, judged: JudgedCommits, state: LogState
) -> View:
    laws = laws_of(flow, name)
    scopes = dict.fromkeys(column for law in laws for column in (*law.scope, *flow.key_of(name)))
    otherwise = pa.schema([*ORDER_FIELDS, *(pa.field(column, pa.string()) for column in scopes)])
    found = rows_of(root, stream_path(root, name), judged.commits, otherwise, state)
    bound = {law.governor: before(root, law, judged.commits, judged.earlier, otherwise, state) for law in laws}
    tables = [table for table in bound.values() if table is not None]
    rows = pa.concat_tables(tables, promote_options="default") if tables else None
    size = sum(size_of(file) for file in found.files)
    bound_rows = None if rows is None else spark.createDataFrame(rows)
    return View(rows=frame(spark, found), before=bound_rows, small=size <= SMALL)


def _landed(spark: SparkSession, root: Path, source: str, judged: JudgedCommits) -> DataFrame:
    numbers = sorted({number for entry in judged.entries for number in entry.sequences})
    sequences = [read_sequence(landed_path(root), number) for number in numbers]
    pieces = pieces_of(sequences, source)
    rows = _read(spark, [str(path) for path, groups in pieces.items() if groups is None], LANDED)
    for path, groups in pieces.items():
        if groups is not None:
            with opened(path) as file:
                # Of a segment that holds rows of other commits too.
                some = file.read_row_groups(groups, columns=LANDED.names)
            rows = rows.unionByName(spark.createDataFrame(some))
    return rows


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
