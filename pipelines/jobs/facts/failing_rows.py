"""All rows that break an expectation, as files: written when it is judged, linked from the page that shows the first.

A file lies in a folder of the commit or span that was judged. Losing it loses no verdict: those stand in `quality`.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from pipelines.engine.commits.quality import judged_name
from pipelines.engine.files import durable
from pipelines.engine.files.durable import of_this_machine
from pipelines.jobs.text.tables import csv_header, csv_lines

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import pyarrow as pa

FOLDER = "quality_rows"
SHAPE = "csv"
LONGEST = 120
"""Characters of a file's name that say what it is of."""


@dataclass(frozen=True)
class FailingRows:
    """The files of one commit, or one span.

    Args:
        root: the run's folder.
        start: of the span, in ticks.
        end: of the span.
        commit: 0 where published commits of a span are judged together.
    """

    root: Path
    start: int
    end: int
    commit: int

    @property
    def folder(self) -> Path:
        """Give the folder."""
        return of_this_machine(self.root) / FOLDER / self.name

    @property
    def name(self) -> str:
        """Spell what was judged as a folder is called."""
        return judged_name(self.start, self.end, self.commit).translate(str.maketrans(" ", "-", ":."))

    def file(self, table: str, expectation: str) -> Path:
        """Give the file of an expectation on a stream, whether it is there or not."""
        return self.folder / f"{_as_file(f'{table}.{expectation}')}.csv"

    def keep(self, table: str, expectation: str, rows: pa.Table) -> None:
        """Write all rows that break an expectation on a stream."""
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.file(table, expectation)
        draft = file.with_suffix(durable.DRAFT)
        with draft.open("w", encoding="utf-8", newline="") as text:
            text.write(csv_header(rows.schema, SHAPE) + "\n")
            text.writelines(f"{lines}\n" for lines in csv_lines(rows, SHAPE))
        draft.replace(file)

    def forget(self, replaced: Iterable[int] = ()) -> None:
        """Remove what an earlier judgement wrote, and what was written of commits that were replaced since."""
        shutil.rmtree(self.folder, ignore_errors=True)
        there = {each.name: each for each in self.folder.parent.glob("commit-*")}
        for number in replaced:
            if gone := there.get(f"commit-{number}"):
                shutil.rmtree(gone, ignore_errors=True)


def _as_file(name: str) -> str:
    """Spell a name with the signs that names of files have, and so that no two are one.

    >>> _as_file("punctual.diverted.account_holds"), _as_file("a.b/c")[:6]
    ('punctual.diverted.account_holds', 'a.b-c-')
    """
    plain = re.sub(r"[^A-Za-z0-9_.+-]", "-", name)[:LONGEST]
    return plain if plain == name else f"{plain}-{sha256(name.encode()).hexdigest()[:8]}"
