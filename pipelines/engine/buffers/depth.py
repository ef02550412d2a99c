"""How much each of a run's three buffers holds, and how it is: for whoever looks, in a process of any kind."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipelines.engine.buffers.owners import problem_of
from pipelines.engine.landing.manifest import MANIFEST, numbers_held

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.engine.buffers.places import BufferDrain, Health
    from pipelines.engine.landing.sequence import LandedSequence


@dataclass(frozen=True, kw_only=True)
class MeasuredDepth:
    """What one buffer holds."""

    name: str
    place: str
    health: Health
    problem: str
    """Why its folder cannot be asked, or is not there, or not its own any more."""
    speaks: bool
    depth: int
    """Sequences."""
    uncovered: int
    """Of these, those that no consistent state covers."""
    size: int
    """In bytes."""
    oldest: int | None
    newest: int | None


def measure(name: str, place: Path, health: Health, state: BufferDrain, owner: str) -> MeasuredDepth:
    """Look at one buffer; anybody may.

    Args:
        name: of the buffer.
        place: its folder.
        health: what is known of it.
        state: where the region stands.
        owner: id of the run.
    """
    numbers, problem = numbers_held(place), problem_of(place, owner)
    files = [file for number in numbers for file in _files(place / f"{number:08}")]
    return MeasuredDepth(
        name=name,
        place=str(place),
        health=health,
        problem=problem,
        speaks=health.speaks(state.drain) and not problem,
        depth=len(numbers),
        uncovered=sum(number > state.covered for number in numbers),
        size=sum(map(_size, files)),
        oldest=min(numbers, default=None),
        newest=max(numbers, default=None),
    )


def size_of(sequence: LandedSequence) -> int:
    """Count the bytes of a sequence's files, and of its manifest."""
    return sum(landed.size for landed in sequence.files) + _size(sequence.folder / MANIFEST)


def _size(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_size
    return 0


def _files(folder: Path) -> list[Path]:
    with suppress(OSError):
        return list(folder.iterdir())
    return []
