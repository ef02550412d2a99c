"""The files that a landing has dealt with: of a folder, what became of each; of recorded files, which had rows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from pipelines.engine.columnar.content import ContentHash  # noqa: TC001 - the codec reads the types of fields

if TYPE_CHECKING:
    from collections.abc import Iterable


class FileFate(Enum):
    """What became of a file."""

    LANDED = "landed"
    """Its rows landed; those that could not be read are lines of the ledger."""
    UNREADABLE = "unreadable"
    """It is no file of the declared format: one line of the ledger, with its bytes."""
    SAME = "same"
    """It holds the very bytes of another that landed: told in the ledger, not landed again."""
    CHANGED = "changed"
    """It had landed and holds other bytes now: told in the ledger, not landed again."""


@dataclass(frozen=True, kw_only=True)
class FileLanded:
    """A file as it was when a sequence dealt with it."""

    path: str
    """Relative to the folder, with `/` between its parts."""
    size: int
    """In bytes."""
    sha256: str
    rows: int
    """Rows that landed or became `dropped` lines; a file that is a `dropped` line itself counts as one."""
    changed: int
    """Its time of change in nanoseconds: as long as size and this are the same, it is not read again."""
    fate: FileFate = FileFate.LANDED

    @property
    def holds_rows(self) -> bool:
        """Say whether rows of it landed, so that other content under its name is a change."""
        return self.fate is FileFate.CHANGED or (self.fate is FileFate.LANDED and self.rows > 0)


@dataclass(frozen=True, kw_only=True)
class FileCame:
    """A recorded feed's file of which rows arrived in a span."""

    path: str
    """As the flow's own folder sees it."""
    content: ContentHash
    """Of these rows, as the feed has them under the names that land."""


class KnownFiles:
    """The files of one source, the newest word on each."""

    def __init__(self, files: Iterable[FileLanded] = ()) -> None:
        """Take up what sequences say, oldest first."""
        self._by_path: dict[str, FileLanded] = {}
        self._by_content: dict[str, str] = {}
        for file in files:
            self.add(file)

    def add(self, file: FileLanded) -> None:
        """Take up a file of a newer sequence."""
        self._by_path[file.path] = file
        if file.fate is FileFate.LANDED and file.rows:
            self._by_content.setdefault(file.sha256, file.path)

    def at(self, path: str) -> FileLanded | None:
        """Give the newest word on a path."""
        return self._by_path.get(path)

    def landed_as(self, sha256: str) -> str | None:
        """Give the path under which content with rows landed."""
        return self._by_content.get(sha256)

    def __len__(self) -> int:
        """Count the paths."""
        return len(self._by_path)
