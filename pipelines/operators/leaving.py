"""What leaves a scan: rows are written into its buffer, which is emptied into columns after each call, by stream.

Rules of docs/semantics.md: S17
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipelines.operators.compiled import compiled
from pipelines.operators.rows import NULL

if TYPE_CHECKING:
    from pipelines.operators.rows import Bytes, Fate, Longs, Records


@compiled
def write(out, src, key, kind, fate, reason, arrival, place, time, end, due_at, by) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001 - Numba infers records
    """Write one record of a buffer; the promise that a row broke is for the caller to name.

    Every scan takes this, with numbers and one record: an array or a named tuple that is handed on costs more than all
    that is written.
    """
    out["src"] = src
    out["key"] = key
    out["kind"] = kind
    out["fate"] = fate
    out["reason"] = reason
    out["arrival"] = arrival
    out["place"] = place
    out["event_time"] = time
    out["event_end"] = end
    out["due_at"] = due_at
    out["cti"] = NULL
    out["cti_arrival"] = NULL
    out["cti_place"] = NULL
    out["by"] = by


class Leaving(NamedTuple):
    """Columns of the rows that leave in one stream, in the order in which they leave; fields as in `OUT`."""

    src: Longs
    key: Longs
    kind: Bytes
    arrival: Longs
    place: Longs
    event_time: Longs
    event_end: Longs
    due_at: Longs
    by: Longs

    def take(self, order: Longs) -> Leaving:
        """Give rows by number."""
        return Leaving(*(column[order] for column in self))  # type: ignore[arg-type]


class Gathering:
    """Rows of one fate, gathered out of buffers that are filled again and again.

    Args:
        fate: of the rows that are taken.
        room: how many are expected; more are taken too.
    """

    def __init__(self, fate: Fate, room: int) -> None:
        self._fate, self._columns, self._count = int(fate), _columns(room), 0

    def add(self, out: Records) -> None:
        """Take the rows of the fate out of a buffer."""
        room, needed = len(self._columns.src), self._count + int((out["fate"] == self._fate).sum())
        if needed > room:
            # Twice the room at least: however often rows are added, each is copied but a few times.
            more = _columns(max(needed, 2 * room) - room)
            self._columns = Leaving(*(np.append(*pair) for pair in zip(self._columns, more, strict=True)))  # type: ignore[call-overload]
        self._count = gather(out, self._fate, self._columns, self._count)

    def rows(self) -> Leaving:
        """Give what was gathered so far."""
        return Leaving(*(column[: self._count] for column in self._columns))  # type: ignore[arg-type]


def _columns(rows: int) -> Leaving:
    longs = [np.empty(rows, dtype=np.int64) for _ in range(len(Leaving._fields) - 1)]
    return Leaving(longs[0], longs[1], np.empty(rows, dtype=np.int8), *longs[2:])


@compiled
def gather(out, fate, columns, n):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Copy the rows of one fate into columns from row `n` on; give the row behind the last."""
    for row in out:
        if row["fate"] == fate:
            columns.src[n] = row["src"]
            columns.key[n] = row["key"]
            columns.kind[n] = row["kind"]
            columns.arrival[n] = row["arrival"]
            columns.place[n] = row["place"]
            columns.event_time[n] = row["event_time"]
            columns.event_end[n] = row["event_end"]
            columns.due_at[n] = row["due_at"]
            columns.by[n] = row["by"]
            n += 1
    return n
