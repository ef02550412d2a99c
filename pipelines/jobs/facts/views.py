"""The rows that a judge looks at: exactly the Parquet files that the Delta log names for some commits.

They are read in this process, unless they are very many and there is a Spark to ask. Spark reads the files itself: the
Delta connector would read the same ones, after a download of its jar on first use, and knows nothing of commits that
are written and not published, which is what the gate asks about.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from expectations.laws import laws_of
from expectations.on_duckdb import PlainView, add_kinds, count_plain
from expectations.views import LANDED, STREAM, Counts, Views, crossed_to
from pipelines.engine.columnar.columns import LEDGER_SCHEMA, ORDER_FIELDS, TIME, arrived_within
from pipelines.engine.commits.entry import CommitKind
from pipelines.engine.commits.paths import landed_path, ledger_path, stream_path
from pipelines.engine.commits.readers import read_carry, rows_of
from pipelines.engine.files.packed import opened
from pipelines.engine.files.parquet import count_by_footers, naming_the_damaged, read_rows, rows_of_named, size_of
from pipelines.engine.files.stored import is_stored
from pipelines.engine.landing.manifest import read_sequence
from pipelines.engine.landing.segments import pieces_of, removed_among
from pipelines.engine.tasks.task import carry_key
from pipelines.flows.known_columns import OF_EVERY_STREAM
from pipelines.flows.legs import MAIN, legs_of
from pipelines.jobs.facts.chosen import LandedRows
from pipelines.jobs.facts.earlier import before
from pipelines.jobs.runs.counts import counted
from pipelines.jobs.runs.fitting import is_true
from pipelines.jobs.text.moments import Moments

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from expectations.laws import Law
    from expectations.views import View
    from pipelines.engine.commits.entry import Entry
    from pipelines.engine.commits.history import LogState
    from pipelines.engine.commits.readers import Published
    from pipelines.engine.landing.references import ReferencedRows
    from pipelines.flows.model import Flow, Source

PATTERN = re.compile(r"[\\{}\[\]*?]")
"""Characters that mean something in a pattern of paths."""
LARGE = 2_000_000_000
"""Bytes of Parquet of one table from which on Spark judges, where there is one: some 50,000,000 rows."""
COUNTED = pa.schema([pa.field("kind", pa.string()), pa.field("arrival", TIME)])


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


@dataclass(frozen=True, kw_only=True)
class JudgedPart:
    """What is judged of one root: of a run in one piece, or of one of its legs."""

    root: Path
    state: LogState
    judged: JudgedCommits


Parts = Mapping[str, JudgedPart]
"""By leg, the one that takes what lands first; of a run in one piece that one alone."""
Session = Callable[[], "SparkSession"]
"""Gives Spark's session, and starts Spark where nobody has."""


def views_of(flow: Flow, parts: Parts, session: Session | None = None) -> Views:
    """Open the tables of a run for a judge.

    Args:
        flow: the model that made the commits.
        parts: the commits, in the root of each leg.
        session: asked where a table is `LARGE`; without one all is read in this process.
    """
    main, of = parts[MAIN], {name: _part_of(flow, parts, name) for name in flow.tables()}
    found = {name: _rows(flow, name, part) for name, part in of.items()}
    ledgers = [_ledger(part) for part in parts.values()]
    before = {name: _before(flow, name, part) for name, part in of.items()}
    landed = {name: _landed(main.root, source, main.judged) for name, source in flow.sources.items()}
    held = {name: _held(flow, name, of[name]) for name in flow.streams}
    expected = {name: LandedRows(main.root, name, main.judged) for name in flow.expect if name in flow.sources}
    if session is not None and any(sum(size_of(file) for file in rows.files) >= LARGE for rows in found.values()):
        from expectations.on_spark import SparkView

        spark = session()
        return Views(
            tables={
                name: SparkView(rows=frame(spark, rows), before=before[name], truth=is_true)
                for name, rows in found.items()
            },
            landed={
                name: SparkView(rows=spark.createDataFrame(rows.scan()), truth=is_true)
                for name, rows in expected.items()
            },
            count=partial(_with_crossed, flow, parts, partial(_count_many, spark, found, landed, ledgers)),
            intervals=partial(_intervals, flow, parts),
            held=held,
        )
    rows_landed = {name: _landed_rows(*pieces) for name, pieces in landed.items()}
    return Views(
        tables={name: PlainView(rows=rows, before=before[name], truth=is_true) for name, rows in found.items()},
        landed={name: PlainView(rows=rows, truth=is_true) for name, rows in expected.items()},
        count=partial(_with_crossed, flow, parts, partial(count_plain, found, rows_landed, AlikeTables(ledgers))),
        intervals=partial(_intervals, flow, parts),
        held=held,
    )


def _part_of(flow: Flow, parts: Parts, name: str) -> JudgedPart:
    """Give what is judged of the leg that makes a stream."""
    return parts[flow.legs.get(flow.owner(name).name, MAIN)]


def _intervals(flow: Flow, parts: Parts, table: str) -> dict[str, View]:
    """Open a table interval by interval, by where each begins, where several are judged; epochs are none."""
    part = parts[MAIN] if table in flow.sources else _part_of(flow, parts, table)
    entries = [entry for entry in part.judged.entries if entry.kind is CommitKind.INTERVAL]
    if len(part.judged.entries) == 1:
        return {}
    moments = Moments(flow.timezone)
    found: dict[str, View] = {}
    for entry in entries:
        one = replace(part, judged=replace(part.judged, entries=(entry,)))
        rows = LandedRows(part.root, table, one.judged) if table in flow.sources else _rows(flow, table, one)
        found[moments.argument(entry.span.start)] = PlainView(rows=rows, truth=is_true)
    return found


@dataclass(frozen=True)
class AlikeTables:
    """Rows of alike tables, read as those of one."""

    tables: Sequence[Published]

    def scan(self, columns: Sequence[str] | None = None, where: pc.Expression | None = None) -> pa.Table:
        """As each of them has it."""
        return pa.concat_tables([table.scan(columns, where) for table in self.tables])


def _ledger(part: JudgedPart) -> Published:
    return rows_of(part.root, ledger_path(part.root), part.judged.commits, LEDGER_SCHEMA, part.state)


def _with_crossed(flow: Flow, parts: Parts, count: Callable[[], Counts]) -> Counts:
    """Count what stands in tables and landings, and what legs took of it."""
    return count() + crossed_counts(flow, parts)


def crossed_counts(flow: Flow, parts: Parts) -> Counts:
    """Count what each leg took of others in the judged commits; nothing of a run in one piece.

    What another leg has published, or taken in, since is on its way, and none of it is missing.
    """
    counts: Counts = Counts()
    for leg in legs_of(flow) if len(parts) > 1 else ():
        mine = parts[leg.name].judged
        if leg.name == MAIN or not mine.entries:
            continue
        for name in leg.sources:
            for rows in _landed_rows(*_landed(parts[MAIN].root, flow.sources[name], mine)):
                add_kinds(counts, rows, name, crossed_to(leg.name))
        for writer, name in ((writer, name) for writer, streams in leg.reads.items() for name in streams):
            add_kinds(counts, _between(flow, name, parts[writer], *mine.span), name, crossed_to(leg.name))
    return counts


def _between(flow: Flow, name: str, part: JudgedPart, start: int, end: int) -> pa.Table:
    """Read of what kinds the rows of a stream are that arrived in a span, whichever commits have them."""
    commits = [row.commit for row in part.state.published if row.span.start < end and start < row.span.end]
    rows = rows_of(part.root, stream_path(part.root, name), commits, _otherwise(flow, name), part.state)
    return rows.scan(["kind"], arrived_within(start, end))


def _rows(flow: Flow, name: str, part: JudgedPart) -> Published:
    path = stream_path(part.root, name)
    return rows_of(part.root, path, part.judged.commits, _otherwise(flow, name), part.state)


def _otherwise(flow: Flow, name: str) -> pa.Schema:
    """Give the columns where there is no table: those that may be asked for."""
    asked = (column for law in laws_of(flow, name) for column in (*law.scope, law.measured, *flow.key_of(name)))
    others = dict.fromkeys(column for column in asked if column not in OF_EVERY_STREAM)
    return pa.schema([*ORDER_FIELDS, *(pa.field(column, pa.string()) for column in others)])


def _before(flow: Flow, name: str, part: JudgedPart) -> pa.Table | None:
    laws: dict[tuple[tuple[str, ...], str], Law] = {}
    for law in (each for each in laws_of(flow, name) if each.governors):
        # A promise binds all that any law says it does: a span may have events and no promise of its own.
        binds = (law.governors, law.measured)
        known = laws.get(binds, law)
        laws[binds] = replace(law, governed=tuple(dict.fromkeys((*known.governed, *law.governed))))
    commits, earlier = part.judged.commits, part.judged.earlier
    found = [before(part.root, law, commits, earlier, _otherwise(flow, name), part.state) for law in laws.values()]
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


def _count_many(
    spark: SparkSession,
    tables: Mapping[str, Published],
    landed: Mapping[str, tuple[list[str], list[pa.Table]]],
    ledgers: Sequence[Published],
) -> Counts:
    """Count the rows of large tables: as footers say, and by Spark those of which no footer does.

    Args:
        spark: its session.
        tables: by stream and side stream.
        landed: by source, as `_landed` gives it.
        ledgers: of the same commits.
    """
    from expectations.on_spark import count_on_spark

    counts: Counts = Counts()

    def left_of(name: str, where: str, files: Sequence[str]) -> list[str]:
        said, left = count_by_footers(files, "kind")
        counts.update({(name, where, kind): rows for kind, rows in said.items()})
        return left

    for name, (_, pieces) in landed.items():
        for rows in pieces:
            add_kinds(counts, rows, name, LANDED)
    streams = {
        name: replace(rows, files=tuple(left_of(name, STREAM, rows.files))) if rows.exact else rows
        for name, rows in tables.items()
    }
    feeds = {name: left_of(name, LANDED, files) for name, (files, _) in landed.items()}
    return counts + count_on_spark(
        {name: frame(spark, rows) for name, rows in streams.items() if rows.files},
        {name: _read(spark, files, COUNTED) for name, files in feeds.items() if files},
        [frame(spark, ledger) for ledger in ledgers if ledger.files],
    )


def _landed(root: Path, source: Source, judged: JudgedCommits) -> tuple[list[str], list[pa.Table]]:
    """Find what landed: files that hold it alone, and rows of those that hold rows of other commits too."""
    numbers = sorted({number for entry in judged.entries for number in entry.sequences})
    # Of rows that are no longer kept their manifests say how many there were, and where all are data that will do.
    gone = {} if source.edge else {each.id: each for each in removed_among(landed_path(root), numbers)}
    kept = [read_sequence(landed_path(root), number) for number in numbers if number not in gone]
    pieces = pieces_of(kept, source.name)
    files = [str(path) for path, groups in pieces.items() if groups is None]
    rows = [_as_counted(sequence.sources[source.name].rows) for sequence in gone.values()]
    rows += [_referred(found, source) for each in kept if (found := each.sources[source.name].referenced) is not None]
    for path, groups in pieces.items():
        if groups is not None:
            with naming_the_damaged([path]), opened(path) as file:
                rows.append(file.read_row_groups(groups, columns=COUNTED.names))
    return files, rows


def _referred(landed: ReferencedRows, source: Source) -> pa.Table:
    """Give the rows that landed by reference; of a source without edges all are data, and no file is read."""
    if source.edge is None:
        return _as_counted(landed.rows)
    return pa.concat_tables([COUNTED.empty_table(), *(block.select(COUNTED.names) for block in landed.blocks())])


def _as_counted(rows: int) -> pa.Table:
    """Give so many rows of data of which nothing else is known."""
    return pa.table([pa.repeat("data", rows), pa.nulls(rows, TIME)], schema=COUNTED)


def _landed_rows(files: Sequence[str], rows: Sequence[pa.Table]) -> list[pa.Table]:
    return [*([read_rows(files, COUNTED)] if files else []), *rows]


def _held(flow: Flow, stream: str, part: JudgedPart) -> Counter[str]:
    """Count the rows that the carry holds at the end more than at the beginning, by kind.

    A commit that began from another carry than the one before it left is reckoned from its own beginning.
    """
    more: Counter[str] = Counter()
    root, state, ended = part.root, part.state, None
    for entry in part.judged.entries:
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
