"""The manifest of a segment: what the manifests of its sequences said, with where their rows lie now.

What many sequences say alike stands in it once. A file beside it says when the rows were removed and under which
setting; what the manifest says stays, for ids have no gaps and the landing must know what it has dealt with.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pipelines.engine.files import durable
from pipelines.engine.files.packed import SEGMENT_FILE, in_segment, opened, segment_folder, span_of
from pipelines.engine.files.sums import with_sum, without_sum
from pipelines.engine.landing.errors import SequenceBrokenError
from pipelines.engine.landing.sequence import NO_FILE, LandedSequence, Removed, from_json, to_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

FORMAT = 1
REMOVED_FILE = "removed.json"
ALIKE = ("feed", "declared", "columns", "schema")
"""What sequences say alike of a source as long as nobody changes the flow or its files."""


@dataclass(frozen=True, kw_only=True)
class Segment:
    """A closed segment as its manifest says it."""

    folder: Path
    first: int
    """Id of its first sequence."""
    entries: tuple[Mapping[str, Any], ...]
    """What each sequence's manifest says, and when that was closed."""
    removed: Removed | None

    def sequence(self, number: int) -> LandedSequence:
        """Give one of its sequences."""
        sequence = from_json(self.folder, self._said(number))
        return sequence if self.removed is None else replace(sequence, removed=self.removed)

    @property
    def sequences(self) -> Iterator[LandedSequence]:
        """Give all of them, in order."""
        return (self.sequence(number) for number in span_of(self.first))

    def closed_ns(self, number: int) -> int:
        """Give when a sequence was closed, wall time in nanoseconds."""
        closed: int = self._said(number)["closed_ns"]
        return closed

    def is_deaf(self, number: int) -> bool:
        """Say whether nobody listened to some source in a part of a sequence."""
        return any(source["blind_spans"] for source in self._said(number)["sources"].values())

    def _said(self, number: int) -> dict[str, Any]:
        return dict(self.entries[number - self.first])


def segment_of(shelf: Path, number: int) -> Segment | None:
    """Read the segment in which a sequence stands; None where it stands in none.

    Raises:
        SequenceBrokenError: its manifest cannot be read.
    """
    folder = segment_folder(shelf, number)
    try:
        changed = (folder / SEGMENT_FILE).stat().st_mtime_ns
    except (FileNotFoundError, NotADirectoryError):
        return None
    return _read(folder, changed, _changed(folder / REMOVED_FILE))


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


@lru_cache(maxsize=8)
def _read(folder: Path, changed: int, removed: int) -> Segment:  # noqa: ARG001 - another time of change is another file
    try:
        said = without_sum(json.loads((folder / SEGMENT_FILE).read_text(encoding="utf-8")))
        gone = json.loads((folder / REMOVED_FILE).read_text(encoding="utf-8")) if removed else None
    except (ValueError, AttributeError) as error:
        raise SequenceBrokenError(str(folder), f"a manifest that cannot be read ({error})") from error
    if said.get("format") != FORMAT:
        raise SequenceBrokenError(str(folder), f"a {SEGMENT_FILE} of format {said.get('format')}, not {FORMAT}")
    return Segment(
        folder=folder,
        first=said["first"],
        entries=tuple(_whole(entry, said["alike"]) for entry in said["sequences"]),
        removed=None if gone is None else Removed(gone["at"], gone["keep"]),
    )


def _whole(entry: dict[str, Any], alike: list[dict[str, Any]]) -> dict[str, Any]:
    sources = {name: alike[source["alike"]] | source for name, source in entry["sources"].items()}
    return entry | {"sources": sources}


def spelled_segment(sequences: Iterable[tuple[LandedSequence, int]]) -> dict[str, Any]:
    """Spell a segment as its manifest does.

    Args:
        sequences: in order, each with the time at which it was closed, in nanoseconds.
    """
    known: dict[str, int] = {}
    entries = [to_json(sequence) | {"closed_ns": closed} for sequence, closed in sequences]
    for entry in entries:
        entry["sources"] = {name: _told_once(source, known) for name, source in entry["sources"].items()}
    first, alike = entries[0]["sequence"], [json.loads(spelled) for spelled in known]
    return with_sum({"format": FORMAT, "first": first, "alike": alike, "sequences": entries})


def _told_once(source: dict[str, Any], known: dict[str, int]) -> dict[str, Any]:
    spelled = json.dumps({name: source[name] for name in ALIKE}, ensure_ascii=False)
    rest = {name: value for name, value in source.items() if name not in ALIKE}
    return rest | {"alike": known.setdefault(spelled, len(known))}


def mark_removed(folder: Path, removed: Removed) -> None:
    """Say of a segment that its rows are no longer kept; on disk when this returns, and before any file goes."""
    durable.replace(folder / REMOVED_FILE, json_bytes(removed._asdict()))


def json_bytes(said: object) -> bytes:
    """Spell what a manifest says, without blanks."""
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode()


def pieces_of(sequences: Iterable[LandedSequence], source: str) -> dict[Path, list[int] | None]:
    """Give the files that hold the rows of a source in some sequences, in order, each with its row groups.

    Args:
        sequences: ascending.
        source: its name.

    Returns:
        None for a file of which all row groups count.

    Raises:
        RowsRemovedError: the rows of one are no longer kept.
    """
    found: dict[Path, list[int] | None] = {}
    for sequence in sequences:
        landed = sequence.sources[source]
        if landed.file != NO_FILE and landed.first_group is None:
            found[sequence.path(landed)] = None
        elif landed.file != NO_FILE:
            groups = found.get(sequence.path(landed)) or []
            found[sequence.path(landed)] = [*groups, *landed.groups(lambda _: True)]
    return {path: None if _are_all(path, groups) else groups for path, groups in found.items()}


def _are_all(path: Path, groups: list[int] | None) -> bool:
    if groups is None:
        return True
    with opened(path) as file:
        return len(groups) == int(file.metadata.num_row_groups)


def removed_among(shelf: Path, numbers: Iterable[int]) -> list[LandedSequence]:
    """Give those of some sequences whose rows are no longer kept, in the order given; one without rows lacks nothing.

    Args:
        shelf: the folder of history.
        numbers: of closed sequences.
    """
    gone: dict[int, bool] = {}
    found = []
    for number in numbers:
        first = span_of(number)[0]
        if first not in gone:
            gone[first] = in_segment(shelf, number) and (segment_folder(shelf, number) / REMOVED_FILE).exists()
        segment = segment_of(shelf, number) if gone[first] else None
        if segment is not None and (sequence := segment.sequence(number)).files:
            found.append(sequence)
    return found
