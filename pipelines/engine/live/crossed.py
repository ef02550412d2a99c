"""What had crossed to a leg in a span that is long published: read out of the tables of those that wrote it.

Its tickets are gone, and the files that they named may have been put together with others. So the rows are laid out
anew, a file a bucket, as the leg read them then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipelines.engine.columnar.columns import arrived_within
from pipelines.engine.commits.leg_roots import root_of
from pipelines.engine.commits.readers import log_state, read_stream
from pipelines.engine.files.parquet import write_table
from pipelines.engine.files.writing import only_bucket
from pipelines.engine.tasks.stages import layout_of
from pipelines.flows.plan import plan

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from pipelines.engine.commits.entry import Span
    from pipelines.engine.landing.sequence import Chain
    from pipelines.flows.model import Flow


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
        rows = read_stream(root, stream, *self.span, key=self.flow.key_of(stream), state=log_state(root))
        return rows.filter(arrived_within(*self.span))
