"""A socket that sends lines, as landing sees it: what its spool holds, stamped with a reading.

A sender that cannot send again is heard at its own risk until its bytes are in the spool, and exactly once from there.
What may be missing is told as a range, never guessed: the ledger names each span without a connection, and in it the
source is blind.
"""

from __future__ import annotations

import json
from itertools import accumulate
from typing import TYPE_CHECKING

from pipelines.engine.columnar.clock import SteadyClock, wall_now
from pipelines.engine.columnar.columns import instant_text
from pipelines.engine.files.durable import of_this_machine
from pipelines.engine.landing.file_rows import DROPPED, NOTED
from pipelines.engine.sources.formats.text_rows import read_texts
from pipelines.engine.sources.live import ComesOnce, Gathered, arrived_rows, declared_columns, landed_payload, terms_of
from pipelines.engine.sources.opening import Loss
from pipelines.engine.sources.socket.errors import SpoolBrokenError
from pipelines.engine.sources.socket.receiver import Receiver
from pipelines.engine.sources.socket.spool import Spool
from pipelines.engine.sources.socket.spool_files import Event
from pipelines.engine.sources.state import write_state
from pipelines.flows.feeds.socket import SocketSpec
from pipelines.operators.rows import MIN_TIME

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pyarrow as pa

    from pipelines.engine.landing.arrived import Arrived
    from pipelines.engine.landing.progress import SourceProgress
    from pipelines.engine.landing.source_feed import Reading, SourceFeed
    from pipelines.engine.sources.opening import Opening
    from pipelines.engine.sources.socket.spool import SpoolPart
    from pipelines.flows.model import Source

SPOOLS = "spool"
"""The folder of a run's spools."""
LINE_BYTES = 1 << 20
"""A longer line is cut, and told in pieces."""
BYTES, SEGMENTS, INSIDE = "bytes", "segments", "inside"
"""Positions: bytes that landed, segments whose beginning was told, and 1 where the next byte is inside a cut line."""
NEWLINE = b"\n"


class SocketFeed(ComesOnce):
    """The socket of one source.

    Args:
        source: what the flow says of it.
        root: the run's folder, where the spool lies.
        tell: told a line when the connection changes.
        loss: what is done where the spool does not have any more what comes next.
        now: reads the wall clock, in ticks.

    Raises:
        LandingError: its columns are not what the source says of them.
    """

    def __init__(
        self,
        source: Source,
        root: Path,
        tell: Callable[[str], None] = lambda _: None,
        loss: Loss = Loss.STOP,
        now: Callable[[], int] = wall_now,
    ) -> None:
        """Check the columns; open nothing."""
        self.source, self._root, self._tell, self._loss, self._now = source, root, tell, loss, now
        self._spec = SocketSpec.of(source.feed)
        self._columns = declared_columns(source.feed)
        self.schema = landed_payload(source)
        """The payload as it lands."""
        self._spool: Spool | None = None
        self._receiver: Receiver | None = None
        self._state = ("silent", "", 0)
        self._until = MIN_TIME

    @property
    def _address(self) -> str:
        return self.source.feed.paths[0]

    def listen(self, known: SourceProgress) -> None:
        """Connect, and spool what comes from now on; where there is nobody yet, try again and again.

        Raises:
            LandingError: the spool lacks what has not landed, or cannot be written.
        """
        host, _, port = self._address.rpartition(":")
        self._receiver = Receiver(host.strip("[]"), int(port), self._opened(known), self._hear)
        self._receiver.start()

    def close(self) -> None:
        """Hang up; what came is in the spool."""
        if self._receiver is not None:
            self._receiver.stop()
            self._receiver = None
        if self._spool is not None:
            self._spool.close()
            self._spool = None

    def _opened(self, known: SourceProgress) -> Spool:
        if self._spool is None:
            folder = of_this_machine(self._root) / SPOOLS / self.source.name
            bound = self._spec.max_bytes
            landed = known.ends.get(BYTES, 0)
            self._spool = Spool(folder, landed, known.ends.get(SEGMENTS, 0), bound, self._now, loss=self._loss)
            if self._spool.begins > landed and self._loss is Loss.STOP:
                raise SpoolBrokenError(str(folder), landed, self._spool.begins)
        return self._spool

    def _hear(self, state: str, why: str) -> None:
        """Note how the connection is, and tell what a person would want to know."""
        before, self._state = self._state[0], (state, why, self._now())
        self._write_state()
        if state == "waiting":
            self._tell(f"source {self.source.name}: {why}")
        elif state == "full":
            self._tell(f"source {self.source.name}: the spool is full, {self._address} must wait")
        elif state == "connected" and before != "full":
            self._tell(f"source {self.source.name}: connected to {self._address}")

    def _write_state(self) -> None:
        spool = self._spool
        state, why, since = self._state
        facts = {"kind": "socket", "address": self._address, "state": state, "why": why, "since_at": since}
        sizes = {"waiting_bytes": spool.waiting if spool else 0, "max_bytes": self._spec.max_bytes}
        write_state(self._root, self.source.name, **facts, **sizes)

    def look(self, known: SourceProgress) -> int:
        """Give when the newest thing came that the spool has; see `SourceFeed.look`."""
        return self._opened(known).newest

    def arrive(self, reading: Reading, known: SourceProgress) -> Arrived:
        """Give the whole lines that the spool holds beyond what has landed; see `SourceFeed.arrive`.

        A line came when the last of its bytes did. What came at the reading or behind it waits for a later one.

        Places are by line. A line of the ledger takes a place like a row, also the one that tells of a broken
        connection.

        Raises:
            LandingError: the spool lacks what has not landed, or cannot be written.
        """
        if self._receiver is not None and self._receiver.error is not None:
            raise self._receiver.error
        spool = self._opened(known)
        longest = min(LINE_BYTES, self._spec.max_bytes)
        taken = _TakenLines(self.source, self._columns, known, longest, reading.limit_rows)
        spool.release(taken.offset, taken.number)
        gaps = spool.gaps(self._until)
        for part in spool.parts(taken.offset, taken.number, before=reading.end):
            if not taken.take(part):
                break
        left = spool.end - taken.offset if taken.is_full else 0
        self._write_state()
        arrived = arrived_rows(
            self.source,
            self.schema,
            taken.gathered,
            reading.end,
            positions=known.positions(taken.ends),
            blind=gaps,
            left=left,
        )
        self._until = reading.end
        return arrived


class _TakenLines:
    """What one reading takes out of a spool."""

    def __init__(
        self, source: Source, columns: pa.Schema, known: SourceProgress, longest: int, limit_rows: int | None
    ) -> None:
        self.offset, self.number = known.ends.get(BYTES, 0), known.ends.get(SEGMENTS, 0)
        self.gathered = Gathered(columns, terms_of(source))
        self.is_full = False
        self._source, self._columns, self._longest, self._limit = source, columns, longest, limit_rows
        self._spec = SocketSpec.of(source.feed)
        self._inside = known.ends.get(INSIDE, 0)
        self._tail = b""

    @property
    def ends(self) -> dict[str, int]:
        """Say how far it came: a line that has no end yet is not read."""
        return {BYTES: self.offset, SEGMENTS: self.number, INSIDE: self._inside}

    def take(self, part: SpoolPart) -> bool:
        """Take what a part holds; say whether there is room for more."""
        if self._limit is not None and self.gathered.count >= self._limit:
            self.is_full = True
            return False
        if part.start > self.offset + len(self._tail):
            self._miss(part.start)
        if part.is_new:
            self._begin(part)
        return self._lines(part)

    def _miss(self, start: int) -> None:
        """Tell of bytes that were spooled and are gone, and that somebody gave up."""
        facts = {"first": self.offset, "last": start - 1}
        problem = f"bytes {self.offset} to {start - 1} of the spool are gone"
        self.gathered.tell("offsets_lost", NOTED, json.dumps(facts).encode(), problem)
        # What follows may begin in the middle of a line: unless a connection begins there, it is no row of its own.
        self.offset, self._tail, self._inside = start, b"", 1

    def _begin(self, part: SpoolPart) -> None:
        segment = part.segment
        if segment.event is not Event.GOES_ON:
            self._cut()
        if segment.event is Event.CONNECTED and segment.since is not None:
            since, at = instant_text(segment.since), instant_text(segment.at)
            facts = {"from": since, "to": at, "offset": segment.offset, "why": segment.why}
            problem = f"nobody listened to {self._source.feed.paths[0]} from {since} to {at}: {segment.why}"
            self.gathered.tell("disconnected", NOTED, json.dumps(facts).encode(), problem)
        self.number = segment.number

    def _cut(self) -> None:
        """Tell what came of a line whose end never came."""
        if self._tail:
            problem = f"byte {self.offset} of the spool: the connection broke before the end of this line"
            self.gathered.tell("unfinished_line", DROPPED, self._tail, problem)
        self.offset += len(self._tail)
        self._tail, self._inside = b"", 0

    def _lines(self, part: SpoolPart) -> bool:
        text = self._tail + part.data
        *whole, self._tail = text.split(NEWLINE)
        while whole:
            room = len(whole) if self._limit is None else self._limit - self.gathered.count
            if room <= 0:
                self.is_full = True
                return False
            fit = self._fitting(whole[:room])
            if fit:
                self._read(whole[:fit])
            else:
                self._long(self._without_pieces(whole[0]) + NEWLINE, 0)
            whole = whole[max(fit, 1) :]
        self._tail = self._without_pieces(self._tail)
        return True

    def _fitting(self, lines: list[bytes]) -> int:
        """Count the lines before the first that is too long, or is the rest of one."""
        if self._inside:
            return 0
        return next((at for at, line in enumerate(lines) if len(line) >= self._longest), len(lines))

    def _without_pieces(self, line: bytes) -> bytes:
        """Tell of a line what is too much of it, so that it does not matter in what pieces it came; give the rest."""
        while len(line) >= self._longest:
            self._long(line[: self._longest], 1)
            line = line[self._longest :]
        return line

    def _long(self, piece: bytes, inside: int) -> None:
        bound = f"longer than {self._longest} bytes"
        which = "the rest of a line of which the beginning is" if self._inside else "a line that is cut here, for it is"
        problem = f"byte {self.offset} of the spool: {which} {f'gone, or was {bound}' if self._inside else bound}"
        self.gathered.tell("unreadable_row", DROPPED, piece.removesuffix(NEWLINE), problem)
        self.offset += len(piece)
        self._inside = inside

    def _read(self, lines: list[bytes]) -> None:
        starts = list(accumulate((len(line) + 1 for line in lines), initial=self.offset))
        there = [at for at, line in enumerate(lines) if line.strip()]
        body = [lines[at] for at in there]
        if body:
            came = read_texts(self._source.name, body, self._columns, self._spec, self.gathered.terms)
            self.gathered.add(came, lambda number: f"byte {starts[there[number - 1]]} of the spool")
        self.offset = starts[-1]


def open_source(source: Source, opening: Opening) -> SourceFeed:
    """Open a socket; nobody listens yet. Its spool keeps instants that never decrease."""
    return SocketFeed(source, opening.root, opening.tell, opening.loss, SteadyClock())
