"""What had crossed to a leg and is long published: read out of the tables of those that wrote it.

Its tickets are gone, and the files that they named may have been put together with others. So the rows are laid out
anew, a file a bucket, as the leg read them then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.engine.columnar.columns import arrived_within
from pipelines.engine.commits.leg_roots import root_of
from pipelines.engine.commits.paths import TableError, stream_path, table_name
from pipelines.engine.commits.readers import log_state, published, rows_of
from pipelines.engine.files.parquet import write_table
from pipelines.engine.files.stored import for_arrow
from pipelines.engine.files.writing import TableFile, only_bucket
from pipelines.engine.tasks.stages import layout_of
from pipelines.engine.tasks.turns import TurnColumns, is_turn
from pipelines.flows.forks import meetings, turns
from pipelines.flows.plan import plan

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pipelines.engine.commits.entry import Entry, Span
    from pipelines.engine.commits.readers import Published
    from pipelines.engine.files.writing import Layout, Written
    from pipelines.engine.landing.sequence import Chain
    from pipelines.flows.model import Flow


@dataclass(eq=False)
class TurnsLostError(TableError):
    """Rows that crossed to another leg have no turns any more: somebody put their files together with others."""

    stream: str
    says = (
        "the files of `{stream}` must have the turns of its rows, which are in no column of its table; another writer "
        "(an OPTIMIZE) has put some together without them: what other legs made of them stands, and cannot be made "
        "again; leave compaction to pulseline maintain FLOW"
    )


@dataclass(frozen=True)
class PublishedSpan:
    """What crossed to a leg in the span of one of its commits.

    Args:
        run: the run's folder.
        flow: under which the commit stands, with its legs.
        span: of the commit.
        buckets: of the rows that landed in it.
        folder: takes the files that it lays out.
    """

    run: Path
    flow: Flow
    span: Span
    buckets: int
    folder: Path

    def inputs(self, stream: str, bucket: int) -> list[Chain]:
        """Give the readers of a stream's bucket."""
        stages = plan(self.flow)
        layout = layout_of(stages, stages.stage_of(stream), stream, self.buckets)
        rows = only_bucket(self._rows(stream), layout.key, bucket, layout.buckets)
        if not rows.num_rows:
            return []
        file = self.folder / f"{stream}-{bucket}.parquet"
        write_table(rows, file, row_group_size=rows.num_rows)
        return [((str(file), (0,)),)]

    def _rows(self, stream: str) -> pa.Table:
        """Read the rows of a stream that arrived in the span, in its order; the commits that hold them hold others."""
        root = root_of(self.run, stream)
        found = published(root, stream, *self.span, state=log_state(root))
        rows = with_turns(found, stream, _carried(self.flow, stream)).scan(where=arrived_within(*self.span))
        return _in_order(self.flow, stream, rows)


def laid_again(root: Path, flow: Flow, stream: str, entry: Entry, layout: Layout) -> Written | None:
    """Write the rows of a stream in a commit into a file of their own once more, where a leg has still to read them.

    Args:
        root: of the leg that made them, which put their files together with others and swept them.
        flow: with its legs.
        stream: which crosses.
        entry: the commit.
        layout: of the row groups, for the reader's first stage.

    Returns:
        The file, which no table names; None where the commit has no rows there.

    Raises:
        TurnsLostError: another writer has put files together, as columns of the table alone.
        TableLostError: a file is gone.
    """
    path = stream_path(root, stream)
    found = rows_of(root, path, [entry.commit], pa.schema([]), log_state(root))
    file = TableFile(root, table_name(root, path), f"c{entry.commit:08d}-again", layout, leave_out=None)
    file.write(_in_order(flow, stream, with_turns(found, stream, _carried(flow, stream)).scan()))
    return file.close()


def _carried(flow: Flow, stream: str) -> tuple[str, ...]:
    return turns(flow, meetings(flow))[flow.owner(stream).name].carried


def _in_order(flow: Flow, stream: str, rows: pa.Table) -> pa.Table:
    return rows.sort_by([(name, "ascending") for name in ("arrival", *flow.key_of(stream), "place")])


def with_turns(found: Published, stream: str, carried: Sequence[str]) -> Published:
    """Give the rows of a stream with the turns that stand in its files, in no column of its table.

    Args:
        found: rows of it.
        stream: its name.
        carried: forks whose turns they carry.

    Raises:
        TurnsLostError: somebody has put files together, as columns of the table alone.
    """
    if not found.files or not carried:
        return found
    schemas = [pq.read_schema(for_arrow(file)) for file in found.files]
    if any(TurnColumns(fork).turn not in schema.names for schema in schemas for fork in carried):
        raise TurnsLostError(stream)
    turned = [field for field in schemas[0] if is_turn(field.name)]
    return replace(found, schema=pa.schema([*found.schema, *turned]))
