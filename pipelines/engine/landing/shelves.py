"""What a landing needs of the buffers of its run: room, somebody who closes sequences in them, and what they lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipelines.engine.landing.sequence import LandedSequence


class Gap(NamedTuple):
    """Sequences that are gone for ever, because somebody went on without them."""

    first: int
    last: int
    at: int
    """When that was, in ticks."""
    told: bool = False
    """Whether a sequence has landed whose ledger says so."""


class Shelves(Protocol):
    """The buffers of a run, as its landing knows them."""

    def room(self) -> None:
        """See that there is room for more.

        Raises:
            NoRoomError: there is none; the source is not to be read.
        """

    def land(self, number: int, write: Callable[[Path], LandedSequence]) -> LandedSequence:
        """Close a sequence in all of them that take it; the first one that closes decides what it is.

        Args:
            number: of the sequence.
            write: writes and closes it in the folder that it is given.

        Raises:
            LandingError: none may speak, or none has room.
        """

    def adopt(self, number: int) -> None:
        """Have a sequence in all of them that a driver closed which was overtaken."""

    def untold(self) -> tuple[Gap, ...]:
        """Give the accepted losses that the ledger does not have yet."""

    def tell_of_gaps(self) -> None:
        """Remember that the ledger has all losses that were accepted so far."""
