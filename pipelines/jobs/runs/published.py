"""What a job has published since it began, and what its tables and sources look like, read from the tables alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from pipelines.engine.commits.delta_log import open_table
from pipelines.engine.commits.entry import LEDGER
from pipelines.engine.commits.file_lists import named_in
from pipelines.engine.commits.leg_roots import root_of, roots_of
from pipelines.engine.commits.log import CommitLog
from pipelines.engine.commits.paths import landed_path, ledger_path, stream_path, table_name
from pipelines.engine.commits.quality import read_quality
from pipelines.engine.landing.manifest import load_manifest
from pipelines.engine.landing.types import spelled_type
from pipelines.jobs.runs.counts import counted

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pipelines.engine.commits.history import Entry, LogState
    from pipelines.engine.commits.paths import NewFile
    from pipelines.engine.commits.quality import Quality
    from pipelines.flows.model import Flow

Columns = tuple[tuple[str, str], ...]
"""Names and types."""


class TablePlace(NamedTuple):
    """A table of a run, and the root whose commits write it."""

    table: str
    root: Path

    @property
    def path(self) -> Path:
        """Give the folder of the table."""
        return ledger_path(self.root) if self.table == LEDGER else stream_path(self.root, self.table)


class JobWrites:
    """What a run's logs have got since a job began.

    Args:
        flow: what runs.
        root: the run's folder.
        before: the newest row of the log of each root when the job began.
    """

    def __init__(self, flow: Flow, root: Path, before: Mapping[Path, int]) -> None:
        """Have looked at nothing."""
        self._flow, self._root, self._before = flow, root, before
        self._logs: dict[Path, CommitLog] = {}
        self._states: dict[Path, LogState] = {}
        self._columns: dict[Path, Columns] = {}

    def look(self) -> int:
        """Read what the logs say now, and give how many commits of the job are published."""
        for root in roots_of(self._root):
            self._states[root] = self._logs.setdefault(root, CommitLog(root)).state()
        return sum(len(self.commits(root)) for root in self._states)

    @property
    def places(self) -> list[TablePlace]:
        """Give the tables of the run: its streams, and the ledger of each leg."""
        streams = [TablePlace(table, root_of(self._root, table)) for table in self._flow.tables()]
        return streams + [TablePlace(LEDGER, root) for root in self._states]

    def commits(self, root: Path) -> list[Entry]:
        """Give the commits of a root that the job has published and that readers see."""
        before = self._before.get(root, 0)
        return [row for row in self._states[root].published if row.entry > before]

    def files(self, place: TablePlace) -> dict[str, NewFile]:
        """Give the files that these commits wrote into a table, by name; some share them."""
        own = table_name(place.root, place.path)
        rows = self.commits(place.root)
        return {file.name: file for row in rows for file in named_in(place.root, row).get(own, ())}

    def columns(self, path: Path) -> Columns:
        """Give the columns of a table as Delta spells them; none where it is not there yet."""
        if path not in self._columns and (table := open_table(path)) is not None:
            fields: list[dict[str, Any]] = json.loads(table.schema().to_json())["fields"]
            self._columns[path] = tuple((field["name"], _spelled(field["type"])) for field in fields)
        return self._columns.get(path, ())

    def landed_columns(self, source: str) -> Columns:
        """Give the columns of a source as they landed last; none where nothing has."""
        tip = self._states[self._root].tip
        if tip is None or not tip.upto:
            return ()
        sequence = load_manifest(landed_path(self._root), tip.upto)
        if source not in sequence.sources:
            return ()
        return tuple((field.name, spelled_type(field.type)) for field in sequence.payload(source))

    def landed_rows(self, source: str) -> int:
        """Count the rows of a source that these commits took in."""
        return sum(counted(row, "landed").get(source, 0) for row in self.commits(self._root))

    def judged(self) -> list[Quality]:
        """Give what was found of commits that the job has brought about, also of those that nobody may read."""
        state, before = self._states[self._root], self._before.get(self._root, 0)
        new = {number for number, row in state.commits.items() if row.entry > before}
        return [row for row in read_quality(self._root) if row.commit in new] if new else []


def _spelled(kind: str | dict[str, Any]) -> str:
    """Spell a type of Delta; one that has parts by what it is."""
    return kind if isinstance(kind, str) else str(kind["type"])
