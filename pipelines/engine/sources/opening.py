"""What opening a source takes, beside what the flow says of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa


class Loss(Enum):
    """What is done where a source, or its spool, does not have any more what comes next."""

    STOP = "stop"
    """The landing stops, and names what is lost."""
    ACCEPT = "accept"
    """It goes on with what there is; the ledger keeps what is lost."""


def nobody(_: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True, kw_only=True)
class Opening:
    """Where a flow's sources begin; a recorded one needs no more than `base`."""

    base: Path
    """The folder that relative paths begin in: the flow file's own."""
    root: Path = Path()
    """The run's folder, where what a source cannot send again is kept."""
    payloads: Mapping[str, pa.Schema] = field(default_factory=dict)
    """With which sources landed before, by source."""
    tell: Callable[[str], None] = nobody
    """Told a line when a connection changes."""
    loss: Loss = Loss.STOP
    """What is done where a source does not have any more what comes next."""
