"""How far sequences have come in a source that is read along: bytes of a spool, offsets of a topic's partitions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from pipelines.engine.landing.seen_files import KnownFiles

if TYPE_CHECKING:
    from collections.abc import Iterable


class Position(NamedTuple):
    """What of one part of a source a sequence dealt with: [start, end) in that part's own count."""

    name: str
    """Of the part, such as `bytes`, or the number of a partition."""
    start: int
    end: int


@dataclass
class SourceProgress:
    """What the sequences of a landing have dealt with of one source."""

    files: KnownFiles = field(default_factory=KnownFiles)
    """Of a folder."""
    ends: dict[str, int] = field(default_factory=dict)
    """By the name of a part: where the next sequence goes on."""

    def move(self, positions: Iterable[Position]) -> None:
        """Take up the positions of a newer sequence."""
        self.ends.update({position.name: position.end for position in positions})

    def positions(self, ends: dict[str, int]) -> tuple[Position, ...]:
        """Give the positions of a sequence that came to `ends`; a part without an end before begins there."""
        return tuple(Position(name, self.ends.get(name, end), end) for name, end in ends.items())
