"""What a run lost for ever: sequences that no buffer held any more, and that somebody went on without."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pipelines.engine.buffers.places import read_record
from pipelines.engine.columnar.columns import instant_text
from pipelines.engine.commits.paths import landed_path

if TYPE_CHECKING:
    from pathlib import Path


class GivenUp(NamedTuple):
    """A gap in what a run took in. A certificate keeps it: what these sequences held nobody can prove any more."""

    run: str
    first: int
    """The first sequence that is gone."""
    last: int
    at: int
    """When somebody accepted it, in ticks."""

    def __str__(self) -> str:
        """Name the run, the sequences and when they were given up, and what nobody can have again."""
        sequences = f"sequence {self.first}" if self.first == self.last else f"sequences {self.first} to {self.last}"
        return (
            f"run `{self.run}` gave up {sequences} at {instant_text(self.at)}, for no buffer held them any more: what "
            "came with them and was not sent again is in no table"
        )


def given_up(root: Path) -> tuple[GivenUp, ...]:
    """Give the gaps of a run, in the order in which they were accepted.

    Args:
        root: the run's folder; a run without buffers has none.

    Raises:
        RecordBrokenError: the record of its buffers cannot be read.
    """
    record = read_record(landed_path(root))
    return tuple(GivenUp(root.name, gap.first, gap.last, gap.at) for gap in (record.gaps if record else ()))
