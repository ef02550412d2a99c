"""Queues between the legs of a live flow: a ticket for each commit, that names what the reader is to take of it.

A ticket is a small file beside the tables of the leg that wrote them. It names files that are published anyway, so a
row that crosses is written once. It is written in one step, behind the publication; one that a crash left unwritten is
made from the log of commits. A ticket that was read goes, but for the newest.
"""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.engine.commits.file_lists import FileLists
from pipelines.engine.commits.paths import stream_path, table_name
from pipelines.engine.files import durable
from pipelines.engine.files.packed import opened
from pipelines.engine.files.sums import with_sum, without_sum
from pipelines.engine.files.writing import Layout, bucket_rows
from pipelines.flows.legs import MAIN

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from pipelines.engine.commits.entry import Entry
    from pipelines.engine.commits.history import LogState
    from pipelines.engine.commits.paths import NewFile
    from pipelines.engine.files.writing import Written
    from pipelines.engine.landing.sequence import Chain
    from pipelines.engine.tasks.commit_work import Sequences
    from pipelines.flows.legs import Leg

QUEUE = "queue"
"""Folder of a root with a folder for each leg that reads it."""
WAITS = "waits.json"
"""File of a root in which its driver says for whom it waits, while it does."""
DIGITS = 8


@dataclass(frozen=True, kw_only=True)
class TicketFile:
    """A file of a stream, as the reader needs to know it."""

    name: str
    """Path below the stream's table."""
    groups: tuple[int, ...]
    """Bucket of each row group, for the first stage that reads the stream by a key."""
    rows: int
    size: int


@dataclass(frozen=True, kw_only=True)
class Ticket:
    """What one commit of a leg hands to another."""

    commit: int
    first: int
    """The first sequence of the landing that the commit covers."""
    upto: int
    """The last one."""
    end: int
    """The reading that closed it, in ticks."""
    at: int
    """Wall time of the commit, in ticks."""
    landed: int = 0
    """Rows of sources that the reader takes from the landing itself."""
    files: Mapping[str, tuple[TicketFile, ...]] = field(default_factory=dict)
    """By stream."""

    @property
    def rows(self) -> int:
        """Count the rows that wait with it."""
        return self.landed + sum(file.rows for files in self.files.values() for file in files)

    @property
    def size(self) -> int:
        """Give the bytes of its files."""
        return sum(file.size for files in self.files.values() for file in files)

    def to_json(self) -> bytes:
        """Spell it, with a sum over all that it says: one changed bit would be other rows."""
        return json.dumps(with_sum(asdict(self)), separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, said: bytes) -> Ticket:
        """Read what `to_json` gave.

        Raises:
            ValueError: it is not that: torn, damaged, or somebody else's, also of before there was a sum.
        """
        whole = json.loads(said)
        try:
            parts = without_sum(whole)
            if len(parts) == len(whole):
                raise ValueError("it has no sum")
            files = {
                stream: tuple(TicketFile(**{**each, "groups": tuple(each["groups"])}) for each in listed)
                for stream, listed in parts.pop("files").items()
            }
            return cls(**parts, files=files)
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"no ticket: {error}") from error


def tickets_in(folder: Path) -> Iterator[Ticket]:
    """Read the tickets of a queue; one that is taken meanwhile is none, nor is a torn one, made by the next start."""
    for file in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        with suppress(FileNotFoundError, IsADirectoryError, ValueError):
            yield Ticket.from_json(file.read_bytes())


def in_the_way(root: Path) -> Iterator[tuple[Path, str]]:
    """Find what lies in a leg where a queue or a ticket belongs and is none, with what it must be."""
    queues = sorted((root / QUEUE).glob("*"))
    for path in (root / QUEUE, *queues):
        if path.is_file():
            yield path, "a folder, and a file lies there"
    for path in (ticket for queue in queues for ticket in sorted(queue.glob("*.json"))):
        if path.is_dir():
            yield path, "a file, and a folder lies there"


def files_waiting(root: Path) -> dict[str, set[str]]:
    """Name the files of a leg that others have still to read, by table."""
    found: dict[str, set[str]] = {}
    for ticket in (each for queue in (root / QUEUE).glob("*") for each in tickets_in(queue)):
        for stream, listed in ticket.files.items():
            names = found.setdefault(table_name(root, stream_path(root, stream)), set())
            names.update(each.name for each in listed)
    return found


class Queue:
    """The tickets that one leg has for another, oldest first.

    One thread offers and another takes; both live in the process that holds the leases.

    Args:
        root: of the leg that writes.
        writer: its name.
        reader: the leg that reads.
        layouts: of each stream that crosses, given the number of buckets of its rows, as the writer's tasks lay it out.
        again: writes the rows of a stream in a commit into a file of their own, where that is gone.
    """

    def __init__(
        self,
        root: Path,
        writer: str,
        reader: Leg,
        layouts: Callable[[str, int], Layout],
        again: Callable[[str, Entry, Layout], Written | None],
    ) -> None:
        self.root, self.folder, self.reader = root, root / QUEUE / reader.name, reader
        self._streams = reader.reads[writer]
        self._sources = reader.sources if writer == MAIN else ()
        """What the reader takes from the landing itself, once the writer has taken it in."""
        self._layouts, self._again = layouts, again
        self._tickets: list[Ticket] = []
        self._lock = threading.Lock()
        self.upto = 0
        """The last sequence that can be taken."""
        self.taken = 0
        """The last sequence that was taken."""

    @property
    def waiting(self) -> list[Ticket]:
        """Give the tickets that were not taken wholly, oldest first."""
        return self.tickets(self.taken)

    @property
    def is_full(self) -> bool:
        """Say whether more rows wait than may."""
        return sum(ticket.rows for ticket in self.waiting) > self.reader.most_behind

    def tickets(self, after: int) -> list[Ticket]:
        """Give those that cover sequences after one, oldest first."""
        with self._lock:
            return [ticket for ticket in self._tickets if ticket.upto > after]

    def offer(self, entry: Entry, written: Mapping[str, Sequence[Written]], landed: Mapping[str, int]) -> None:
        """Hand a published commit to the reader.

        Args:
            entry: the commit.
            written: its files, by table.
            landed: rows of each source that it took from the landing.
        """
        files = {stream: tuple(map(_of_written, written.get(f"streams/{stream}", ()))) for stream in self._streams}
        self._add(self._ticket(entry, files, landed))

    def _ticket(self, entry: Entry, files: Mapping[str, tuple[TicketFile, ...]], landed: Mapping[str, int]) -> Ticket:
        return Ticket(
            commit=entry.commit,
            first=min(entry.sequences),
            upto=entry.upto,
            end=entry.span.end,
            at=entry.at,
            landed=sum(landed.get(source, 0) for source in self._sources),
            files={stream: listed for stream, listed in files.items() if listed},
        )

    def _add(self, ticket: Ticket) -> None:
        durable.make_folder(self.folder)
        # A ticket that is there says the same: a commit is published once.
        with suppress(FileExistsError):
            durable.write_new(self.folder / f"{ticket.commit:0{DIGITS}d}.json", ticket.to_json())
        with self._lock:
            self._tickets.append(ticket)
            self.upto = max(self.upto, ticket.upto)

    def resume(self, state: LogState, after: int, buckets: Callable[[Entry], int]) -> int:
        """Read the tickets that a reader at `after` has to take, and make those that are not there.

        Args:
            state: the log of the leg that writes.
            after: the last sequence that the reader has taken.
            buckets: gives the number of buckets of a commit's rows.

        Returns:
            How many had to be made.
        """
        # A reset hands nothing over: what lies behind it is published anew, and handed over with that.
        rows = [row for row in state.in_order if row.sequences]
        wanted = [row for row in rows if row.upto > after] or rows[-1:]
        self._forget(keep={row.commit for row in wanted})
        made, lists = 0, FileLists(self.root, state)
        with self._lock:
            # A commit that was finished just now has handed its own over, which stands behind those that are read here.
            self._tickets = []
        for row in wanted:
            files = self._files(lists, row)
            found = self._found(row.commit, files)
            if found is None and row.upto <= after:
                # Its files, which nobody has to read any more, may have been put together with others and swept.
                self.upto = max(self.upto, row.upto)
                continue
            made += found is None
            self._add(found or self._ticket(row, self._of_log(files, row, buckets), landed_rows(row)))
        self.cover(after)
        return made

    def _forget(self, keep: Collection[int]) -> None:
        """Remove tickets of commits that a reset took back, or that nobody has to take any more."""
        for file in self.folder.glob("*.json") if self.folder.is_dir() else ():
            if file.stem.isdecimal() and int(file.stem) not in keep:
                file.unlink(missing_ok=True)

    def _files(self, lists: FileLists, row: Entry) -> dict[str, tuple[NewFile, ...]]:
        """Give the files of what crosses that hold rows of this commit alone: those that it wrote, or had again."""
        found = {}
        for stream in self._streams:
            table = table_name(self.root, stream_path(self.root, stream))
            now = lists.holder(table, row.commit)
            alone = all(file.first == file.last == row.commit for file in now)
            found[stream] = now if alone else lists.of(row.commit).get(table, ())
        return found

    def _found(self, commit: int, files: Mapping[str, Sequence[NewFile]]) -> Ticket | None:
        """Read the ticket of a commit; one that is torn or names files of before a repair goes, and is made anew."""
        path = self.folder / f"{commit:0{DIGITS}d}.json"
        try:
            ticket = Ticket.from_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except ValueError:
            ticket = None
        if ticket is not None and all(
            {file.name for file in listed} <= {file.name for file in files.get(stream, ())}
            for stream, listed in ticket.files.items()
        ):
            return ticket
        path.unlink(missing_ok=True)
        return None

    def _of_log(
        self, files: Mapping[str, Sequence[NewFile]], row: Entry, buckets: Callable[[Entry], int]
    ) -> dict[str, tuple[TicketFile, ...]]:
        """Give the files of what crosses, each with the buckets of its row groups.

        Where they were put together with others and swept since, their rows are written into one of their own again.
        """
        found: dict[str, tuple[TicketFile, ...]] = {}
        for stream, listed in files.items():
            path = stream_path(self.root, stream)
            layout = self._layouts(stream, buckets(row)) if listed else Layout()
            if not all((path / file.name).exists() for file in listed):
                again = self._again(stream, row, layout)
                found[stream] = () if again is None else (_of_written(again),)
                continue
            found[stream] = tuple(
                TicketFile(
                    name=file.name,
                    groups=tuple(_groups(path / file.name, layout)),
                    rows=file.rows,
                    size=file.size,
                )
                for file in listed
            )
        return found

    def cover(self, upto: int) -> None:
        """Remove the tickets that the reader has taken, but for the newest."""
        with self._lock:
            self.taken = upto
            done = [ticket for ticket in self._tickets if ticket.upto <= upto]
            if done and len(done) == len(self._tickets):
                done.pop()
            self._tickets = self._tickets[len(done) :]
        for ticket in done:
            (self.folder / f"{ticket.commit:0{DIGITS}d}.json").unlink(missing_ok=True)

    def inputs(self, stream: str, bucket: int, first: int, upto: int) -> list[Chain]:
        """Give the readers of a stream's bucket over sequences; a commit's files come behind those of one before it."""
        path = stream_path(self.root, stream)
        listed = []
        for ticket in self.tickets(first - 1):
            if ticket.first <= upto:
                pieces = ((file, _of_bucket(file, bucket)) for file in ticket.files.get(stream, ()))
                listed.append([(str(path / file.name), groups) for file, groups in pieces if groups])
        return [tuple(piece for piece in chain if piece is not None) for chain in zip_longest(*listed)]


def _of_written(file: Written) -> TicketFile:
    return TicketFile(name=file.name, groups=file.groups, rows=file.rows, size=file.size)


def _of_bucket(file: TicketFile, bucket: int) -> tuple[int, ...]:
    return tuple(number for number, of in enumerate(file.groups) if of == bucket)


def _groups(file: Path, layout: Layout) -> Iterator[int]:
    """Give the bucket of each row group of a file, which is that of its first row."""
    with opened(file) as found:
        for group in range(found.metadata.num_row_groups):
            yield 0 if not layout.key or layout.buckets == 1 else _bucket(found, group, layout)


def _bucket(file: pq.ParquetFile, group: int, layout: Layout) -> int:
    [row] = (pa.Table.from_batches([batch]) for batch in _one(file, group, layout))
    return next(bucket for bucket, places in enumerate(bucket_rows(row, layout.key, layout.buckets)) if len(places))


def _one(file: pq.ParquetFile, group: int, layout: Layout) -> Iterator[pa.RecordBatch]:
    rows = file.iter_batches(batch_size=1, row_groups=[group], columns=list(layout.key))
    yield next(rows)


def landed_rows(entry: Entry) -> dict[str, int]:
    """Give the rows of each source that a commit counted as landed."""
    found = entry.counts.get("landed", {})
    return dict(found) if isinstance(found, dict) else {}


@dataclass(frozen=True)
class Crossing:
    """What a leg takes from others: its queues, by the leg that writes."""

    leg: Leg
    queues: Mapping[str, Queue]

    @property
    def upto(self) -> int:
        """Give the last sequence that everything it reads has come to."""
        return min(queue.upto for queue in self.queues.values())

    def rows(self, sequences: Sequences) -> int:
        """Count the rows that may be in sequences: those of tickets that lie partly in them are counted whole."""
        first, last = sequences.parts[0].id, sequences.parts[-1].id
        own = sum(
            part.sources[name].rows for part in sequences.parts for name in self.leg.sources if name in part.sources
        )
        files = (
            ticket.files
            for queue in self.queues.values()
            for ticket in queue.tickets(first - 1)
            if ticket.first <= last
        )
        return own + sum(file.rows for each in files for listed in each.values() for file in listed)

    def over(self, sequences: Sequences) -> QueuedSpan:
        """Give what crosses in sequences."""
        first, last = sequences.parts[0].id, sequences.parts[-1].id
        return QueuedSpan(self, first, last)

    def cover(self, upto: int) -> None:
        """Let go of what the leg has taken."""
        for queue in self.queues.values():
            queue.cover(upto)


@dataclass(frozen=True)
class QueuedSpan:
    """What crosses to a leg in some sequences."""

    crossing: Crossing
    first: int
    last: int

    def inputs(self, stream: str, bucket: int) -> list[Chain]:
        """Give the readers of a stream's bucket."""
        [queue] = (self.crossing.queues[leg] for leg, names in self.crossing.leg.reads.items() if stream in names)
        return queue.inputs(stream, bucket, self.first, self.last)
