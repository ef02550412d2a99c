"""The rows that a team's own checks are about: what landed with all its columns, and what `where` says of any."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.commits.paths import landed_path
from pipelines.engine.landing.index import Landing
from pipelines.engine.landing.manifest import read_sequence
from pipelines.engine.landing.stamp import landed_row_schema

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pipelines.jobs.facts.views import JudgedCommits


class LandedRows:
    """What landed of a source for some commits.

    Args:
        root: the run's folder.
        source: its name.
        judged: the commits.
    """

    def __init__(self, root: Path, source: str, judged: JudgedCommits) -> None:
        """Find the sequences; nothing is read yet."""
        numbers = sorted({number for entry in judged.entries for number in entry.sequences})
        self._sequences = [read_sequence(landed_path(root), number) for number in numbers]
        self._source, self._root = source, root

    def scan(self, columns: Sequence[str] | None = None, where: pc.Expression | None = None) -> pa.Table:
        """Read some columns, all unless given, of the rows of which a condition is true."""
        rows = self._rows if where is None else self._rows.filter(where)
        return rows if columns is None else rows.select(list(columns))

    @cached_property
    def _rows(self) -> pa.Table:
        """Read all of them, once: each check of a source asks for them."""
        tables = [
            pa.Table.from_batches(sequence.open(self._source), landed_row_schema(sequence.payload(self._source)))
            for sequence in self._sequences
        ]
        return pa.concat_tables(tables, promote_options="permissive") if tables else self._nothing()

    def _nothing(self) -> pa.Table:
        """Give no rows, as what landed last has them: an `apply` has a commit of its own, for which nothing landed."""
        landed = reversed(Landing(landed_path(self._root)).sequences)
        payload = next((each.payload(self._source) for each in landed if self._source in each.sources), pa.schema([]))
        return landed_row_schema(payload).empty_table()
