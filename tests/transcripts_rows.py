"""The rows of a transcript, and the transcript itself: what comes in, what is to leave, in no engine's terms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pipelines.operators.rows import NULL, Kind, Reason

if TYPE_CHECKING:
    from pipelines.operators.rows import Policy

MAIN, SIDE, LEDGER = "main", "side", "ledger"
IMPORTED = "imported"
"""The port of CTIs that come from another stream."""
REFUSED = "refused"
"""The port of a row of which a filter's condition is not true."""
TOO_OFTEN = "too often"
"""The port of a row that went round a loop as often as it may."""
Value = int | float | None


class Given(NamedTuple):
    """One row of input, in the operator's order; times in ticks, `NULL` where there is none."""

    kind: Kind
    id: str
    """Tells the rows of a document apart; an end edge is `<id>/end`."""
    key: str
    port: str
    """Name of the port; empty where the operator has none, `imported` for a CTI of another stream."""
    at: int
    place: int
    time: int
    end: int
    event: str
    """Id of the event that an edge belongs to; empty on all else."""
    on: str | None = ""
    """What a join matches the row by, windows group it by, and makes it the same as another."""
    value: Value = None
    """What windows measure."""


class Left(NamedTuple):
    """One row that is to leave, in the main stream or the side stream, or one line of the ledger."""

    stream: str
    key: str
    kind: Kind
    id: str | None
    """The row of input that this is; None for timers and CTIs that the operator made."""
    at: int
    place: int
    time: int
    end: int
    due: int = NULL
    reason: Reason = Reason.NONE
    action: str = ""
    new_time: int = NULL
    new_end: int = NULL
    cti: int = NULL
    cti_at: int = NULL
    cti_place: int = NULL
    other: str | None = None
    """The right row of a join's result; of a duplicate the row that stands."""
    on: str | None = ""
    """The group of a window's row."""
    values: tuple[Value, ...] = ()
    """The measures of a window's row."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """Rows that come together, what leaves because of them, and the ids of the rows held after them."""

    rows: tuple[Given, ...]
    left: tuple[Left, ...]
    held: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Transcript:
    """One document."""

    name: str
    file: str
    line: int
    operator: str
    policy: Policy | None
    """None where the document says that the policy is refused."""
    ports: tuple[str, ...] = ()
    blind: tuple[tuple[int, int], ...] = ()
    steps: tuple[Step, ...] = ()
    refused: str = ""
    """What the refusal of the policy must say."""
    warns: str = ""
    stops: str = ""
    """What the operator must say when it stops in the last step; nothing is asked of that step's output."""
    fails: str = ""
    """What the harness must say of this document, for the documents that must fail."""

    @property
    def rows(self) -> tuple[Given, ...]:
        """Give all rows of input, readings and the end among them."""
        return tuple(row for step in self.steps for row in step.rows)

    @property
    def expected(self) -> tuple[Left, ...]:
        """Give all that is to leave; each stream and key in its order."""
        return tuple(left for step in self.steps for left in step.left)

    @property
    def close(self) -> int:
        """Give the reading that closes the document: timers at or past it are no concern of its."""
        last = self.rows[-1]
        return last.at if last.kind is Kind.READING else last.at + 1

    @property
    def ends(self) -> int | None:
        """Give the arrival of the final punctuation; None where the stream goes on."""
        return next((row.at for row in self.rows if row.kind is Kind.FINAL), None)
