"""Files of JSON lines as a recorded feed: the declared columns, and no line that is anything else."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pyarrow as pa

from pipelines.engine.csv_feed import UNREADABLE
from pipelines.engine.feed_files import files_fingerprint
from pipelines.engine.file_rows import with_unreadable
from pipelines.engine.json_rows import read_json
from pipelines.engine.landed_types import declared_type
from pipelines.engine.landing_errors import FeedUnreadableError, TimezoneMissingError
from pipelines.engine.text_times import read_times

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pipelines.flows.model import FeedSpec


class JsonFeed:
    """JSON lines; their columns are those declared."""

    def __init__(self, files: Sequence[Path], spec: FeedSpec) -> None:
        """Read nothing yet."""
        self._files, self._spec = list(files), spec
        self.schema = pa.schema([(name, declared_type(spelled)) for name, spelled in spec.types.items()])
        self._held: tuple[str, pa.Table] | None = None

    def fingerprint(self) -> str:
        """Give digits that change with the files or with how they are read."""
        return files_fingerprint(self._files, [list(self._spec.types.items()), self._spec.timezone])

    def read(self, where: pa.compute.Expression | None = None) -> Iterator[pa.RecordBatch]:
        """Give the rows that `where` allows, file by file, line by line, and the column UNREADABLE.

        The files are read once and kept, as long as they stand still.

        Raises:
            FeedUnreadableError: a line is no object of the declared columns.
            TimezoneMissingError: a time has no zone, and the feed names none.
        """
        seen = self.fingerprint()
        if self._held is None or self._held[0] != seen:
            tables = [with_unreadable(self.schema).empty_table(), *map(self._parsed, self._files)]
            self._held = seen, pa.concat_tables(tables)
        table = self._held[1]
        yield from (table if where is None else table.filter(where)).to_batches()

    def _parsed(self, file: Path) -> pa.Table:
        data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        came = read_json(data, self.schema, self._spec.timezone)
        if came.lines:
            problem = f"row {came.lines[0].number}: {came.lines[0].problem}"
            raise FeedUnreadableError(str(file), "JSON lines of the declared columns", problem)
        if self._spec.timezone is None:
            self._check_zones(file, came.rows)
        return came.rows

    def _check_zones(self, file: Path, rows: pa.Table) -> None:
        for told in rows[UNREADABLE].drop_null().to_pylist():
            for column, text in json.loads(told).items():
                if (example := read_times(pa.array([text]), None)[1]) is not None:
                    raise TimezoneMissingError(str(file), column, example)
