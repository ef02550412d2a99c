"""Landing: the rows of an interval become a closed, immutable sequence of files, once for each content.

One caller at a time: whoever holds the run's lease. Nothing that was closed is ever overwritten; late data makes a new
version of its interval, as a new sequence.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.content import ContentHash, content_hash
from pipelines.engine.files.stored import each_at_once, is_stored
from pipelines.engine.landing.arrived import Arrived, Standing, declared
from pipelines.engine.landing.errors import SequenceBrokenError, SequenceClosedError
from pipelines.engine.landing.manifest import (
    check_files,
    closed_ids,
    is_closed,
    load_manifest,
    read_sequence,
    sequence_folder,
    sequences,
)
from pipelines.engine.landing.progress import SourceProgress
from pipelines.engine.landing.source_feed import Reading, SourceFeed
from pipelines.engine.landing.write import Spans, columns_of, ledger_of, whole_content, write_sequence

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pipelines.engine.landing.sequence import LandedSequence, LandedSource
    from pipelines.engine.landing.shelves import Shelves
    from pipelines.flows.model import Flow

INTERVAL, READING = "interval", "reading"
Backlog = dict[str, tuple[int, tuple[str, ...]]]
"""By source: how many files wait for a later reading, and those that were seen once or still change."""


class Closed:
    """The closed sequences of a landing as whoever lands its intervals asks for them: each manifest is read once.

    Args:
        landing: the folder of the sequences; it need not be there yet.
        taken: the last one that was published. One up to there that is gone, or whose manifest cannot be read, keeps
            no interval from landing: its own lands anew, as another version.
    """

    def __init__(self, landing: Path, taken: int = 0) -> None:
        """Have read none."""
        self._landing, self._taken = landing, taken
        self._known: list[LandedSequence] = []
        self.newest = 0
        """Id of the last one."""

    def all(self) -> list[LandedSequence]:
        """Give all that can be read, by id; to look at now and not to keep.

        Raises:
            LandingError: a later sequence than the last published one is missing, or its manifest cannot be read.
        """
        if not self.newest:
            numbers = closed_ids(self._landing, since=self._taken)
            found = each_at_once(self._read, numbers, stored=is_stored(self._landing))
            self._known = [each for each in found if each is not None]
            self.newest = max(numbers, default=0)
        while is_closed(self._landing, self.newest + 1):
            self.newest += 1
            self._known.append(load_manifest(self._landing, self.newest))
        return self._known

    def _read(self, number: int) -> LandedSequence | None:
        try:
            return load_manifest(self._landing, number)
        except SequenceBrokenError:
            if number > self._taken:
                raise
            return None


def land_interval(  # noqa: PLR0913 - where, what, and of what span
    landing: Path,
    flow: Flow,
    start: int,
    end: int,
    feeds: Mapping[str, SourceFeed],
    final: int | None = None,
    standing: Standing = Standing.LATER,
    closed: Closed | None = None,
) -> LandedSequence:
    """Land what arrived in [start, end), as a new sequence or the one that holds exactly this already.

    Where neither the feeds' files nor what the flow says of the sources changed since the interval's newest version,
    nothing is read. Where they did and the rows are the same, that version still stands.

    Args:
        landing: the folder of the landing's sequences; made when it is not there.
        flow: its sources and number of buckets.
        start: in ticks.
        end: the closing reading, in ticks; exclusive.
        feeds: what `open_recorded` gave, by source.
        final: arrival of the final punctuation, behind all rows of the interval; None where the feed goes on.
        standing: of the interval in its run.
        closed: the sequences of the landing, where the caller lands one interval after the other.

    Returns:
        The closed sequence.

    Raises:
        LandingError: a feed cannot be read or changed meanwhile, or the landing is broken.
    """
    closed = closed or Closed(landing)
    before = closed.all()
    versions = [each for each in before if (each.kind, each.start, each.end) == (INTERVAL, start, end)]
    newest = versions[-1] if versions and versions[-1].final == final else None
    if newest is not None and _untouched(newest, flow, feeds, standing):
        return check_files(newest)
    span, nothing = Reading(start, end, flow.buckets, standing), SourceProgress()
    arrived = {name: feeds[name].arrive(span, nothing) for name in flow.sources}
    ledger = ledger_of(arrived)
    if newest is not None and _same(newest, flow, arrived, content_hash(ledger)):
        return check_files(newest)
    number, version = closed.newest + 1, len(versions) + 1
    try:
        return write_sequence(
            landing, number, flow, arrived, kind=INTERVAL, start=start, end=end, version=version, final=final
        )
    except SequenceClosedError:
        # A driver that was overtaken has landed after all.
        return land_interval(landing, flow, start, end, feeds, final, standing, closed)


def changed_sources(
    landed: LandedSequence, flow: Flow, feeds: Mapping[str, SourceFeed], standing: Standing = Standing.LATER
) -> tuple[str, ...]:
    """Name the sources of which an interval would land with other rows now than it did; nothing is written.

    Feeds are read only where their files, or what the flow says of the sources, changed since.

    Args:
        landed: what was landed of the interval.
        flow: its sources.
        feeds: what `open_recorded` gave, by source.
        standing: of the interval in its run.
    """
    if set(landed.sources) != set(flow.sources):
        return tuple(sorted(set(landed.sources) ^ set(flow.sources)))
    if not must_be_read(landed, flow, feeds, standing):
        return ()
    span = Reading(landed.start, landed.end, landed.buckets, standing)
    arrived = {name: feeds[name].arrive(span, SourceProgress()) for name in flow.sources}
    found = tuple(name for name, each in arrived.items() if stands_as(landed.sources[name]) != _came_as(each))
    return found or _told_otherwise(landed, ledger_of(arrived))


def _told_otherwise(landed: LandedSequence, now: pa.Table) -> tuple[str, ...]:
    """Name the sources of which a landing would tell something else of rows and files; all where nobody knows."""
    if landed.ledger.content == content_hash(now):
        return ()
    try:
        before = landed.ledger_rows()
    except (OSError, pa.ArrowException):
        return tuple(landed.sources)
    of = (
        (name, [content_hash(lines.filter(pc.field("source") == name)) for lines in (before, now)])
        for name in landed.sources
    )
    return tuple(name for name, (told, tells) in of if told != tells) or tuple(landed.sources)


def must_be_read(
    landed: LandedSequence, flow: Flow, feeds: Mapping[str, SourceFeed], standing: Standing = Standing.LATER
) -> bool:
    """Say whether feeds have to be read to know what an interval would land with now; of `changed_sources`, likewise.

    Args:
        landed: what was landed of the interval.
        flow: its sources.
        feeds: what `open_recorded` gave, by source.
        standing: of the interval in its run.
    """
    has_sources = set(landed.sources) == set(flow.sources)
    return has_sources and not _untouched(landed, replace(flow, buckets=landed.buckets), feeds, standing)


def land_reading(  # noqa: PLR0913 - where, what, and of what span
    landing: Path,
    number: int,
    flow: Flow,
    start: int,
    end: int,
    arrived: Mapping[str, Arrived],
    blind: Mapping[str, Spans],
    final: int | None = None,
    shelf: Path | None = None,
) -> LandedSequence:
    """Land what arrived between two readings, as the sequence `number`; one that is closed already stays as it is.

    Where nothing arrived, the manifest is all that is written.

    Args:
        landing: the folder of the landing's sequences; made when it is not there.
        number: of the sequence: one more than the last.
        flow: its sources and number of buckets.
        start: the reading before, in ticks.
        end: the closing reading, in ticks; exclusive.
        arrived: by source, what a `SourceFeed` gave.
        blind: by source, the spans of ticks in which nobody listened; sources without any may be missing.
        final: arrival of the final punctuation, behind all rows; None where the stream goes on.
        shelf: where the sequence is written, unless in the landing's own folder: that of a buffer.

    Returns:
        The closed sequence.

    Raises:
        ValueError: the readings do not increase.
        LandingError: the landing is broken, or the sequence before is not closed.
    """
    if shelf is None and is_closed(landing, number):
        return read_sequence(landing, number)
    if start >= end:
        message = f"readings must increase; {end} does not come after {start}"
        raise ValueError(message)
    if number > 1 and not is_closed(landing, number - 1):
        raise SequenceBrokenError(str(sequence_folder(landing, number - 1)), "no manifest, though the next is to land")
    return write_sequence(
        shelf or landing, number, flow, arrived, kind=READING, start=start, end=end, version=1, final=final, blind=blind
    )


def landed_content(sequence: LandedSequence) -> dict[str, ContentHash]:
    """Give the content hash of each source of a sequence and, as `ledger`, of its ledger lines.

    Rows that lie in files of a feed are read for it.

    Raises:
        SequenceBrokenError: such a file has changed.
    """
    found = {**sequence.sources, "ledger": sequence.ledger}
    return {name: _content(sequence, name) if each.content is None else each.content for name, each in found.items()}


def _content(sequence: LandedSequence, source: str) -> ContentHash:
    return sum((content_hash(batch) for batch in sequence.open(source)), ContentHash())


def _untouched(newest: LandedSequence, flow: Flow, feeds: Mapping[str, SourceFeed], standing: Standing) -> bool:
    if newest.buckets != flow.buckets or set(newest.sources) != set(flow.sources):
        return False
    return all(
        (landed.feed, landed.declared) == (feeds[name].fingerprint(), declared(feeds[name].source, standing))
        and (landed.referenced is None or flow.sources[name].feed.by_reference)
        for name, landed in newest.sources.items()
    )


def _same(newest: LandedSequence, flow: Flow, arrived: Mapping[str, Arrived], ledger: ContentHash) -> bool:
    stood = {name: stands_as(landed) for name, landed in newest.sources.items()}
    came = {name: _came_as(each) for name, each in arrived.items()}
    return newest.buckets == flow.buckets and stood == came and newest.ledger.content == ledger


def stands_as(landed: LandedSource) -> tuple[object, ...]:
    """Give what tells the rows of a source that landed from others."""
    return landed.content, landed.columns, landed.referenced, landed.whole


def _came_as(arrived: Arrived) -> tuple[object, ...]:
    return arrived.content, columns_of(arrived.schema), arrived.referenced, whole_content(arrived)


class Landing:
    """All that the closed sequences of a landing say, read once and kept up with what is closed since.

    Args:
        path: the folder of the sequences; it need not be there yet.
        buffers: which take what lands, where the run has any; settled.

    Raises:
        LandingError: a sequence is missing, or its manifest cannot be read.
    """

    def __init__(self, path: Path, buffers: Shelves | None = None) -> None:
        """Read the manifests."""
        self.path, self.buffers = path, buffers
        self._sequences: list[LandedSequence] = []
        self._known: dict[str, SourceProgress] = {}
        self._blind: dict[str, dict[int, Spans]] = {}
        self._tail: dict[int, int] = {}
        self._newest: dict[str, LandedSequence] = {}
        self.final: int | None = None
        """Arrival of the final punctuation that a reading landed, in ticks; None where the stream goes on."""
        for sequence in sequences(path):
            self._take(sequence)

    @property
    def last_id(self) -> int:
        """Give the id of the last closed sequence; 0 where there is none."""
        return len(self._sequences)

    @property
    def sequences(self) -> tuple[LandedSequence, ...]:
        """Give all closed sequences, by id."""
        return tuple(self._sequences)

    def sequence(self, number: int) -> LandedSequence:
        """Give a closed sequence.

        Raises:
            SequenceBrokenError: it is not closed.
        """
        if not 1 <= number <= self.last_id:
            raise SequenceBrokenError(str(sequence_folder(self.path, number)), "no manifest")
        return self._sequences[number - 1]

    def after(self, number: int) -> tuple[LandedSequence, ...]:
        """Give the closed sequences after an id, in order."""
        return tuple(self._sequences[number:])

    def last(self, kind: str = READING) -> LandedSequence | None:
        """Give the newest sequence of a kind."""
        return self._newest.get(kind)

    def last_reading(self, kind: str = READING) -> int | None:
        """Give the closing reading, in ticks, of the newest sequence of a kind; None where there is none."""
        newest = self.last(kind)
        return None if newest is None else newest.end

    def known(self, source: str) -> SourceProgress:
        """Give what sequences have dealt with of a live source: files of a folder, positions of what is read along."""
        return self._known.setdefault(source, SourceProgress())

    def payload(self, source: str) -> pa.Schema | None:
        """Give the payload with which a source landed last; None where it never did."""
        newest = next((each for each in reversed(self._sequences) if source in each.sources), None)
        return None if newest is None else newest.payload(source)

    def blind_before(self, source: str, number: int) -> Spans:
        """Give the blind spans that matter to whoever runs a sequence: its own, and what reaches its start.

        A deadline that fell into a span of an earlier sequence which lasted to that one's end has not been judged yet,
        so that span counts here too, with all those before that it follows without a gap. Spans that touch are one.

        Args:
            source: its name; one that did not land in the sequence has none.
            number: of the sequence.

        Returns:
            Spans [a, b) of ticks, ascending.
        """
        self.sequence(number)
        return self._blind.get(source, {}).get(number, ())

    def refresh(self) -> tuple[LandedSequence, ...]:
        """Take in what somebody closed since, and give it."""
        before = self.last_id
        while is_closed(self.path, self.last_id + 1):
            if self.buffers is not None:
                self.buffers.adopt(self.last_id + 1)
            self._take(load_manifest(self.path, self.last_id + 1))
        return self.after(before)

    def land(  # noqa: PLR0913 - what, and of what span
        self,
        flow: Flow,
        start: int,
        end: int,
        feeds: Mapping[str, SourceFeed],
        blind: Mapping[str, Spans] | None = None,
        final: int | None = None,
        limit_rows: int | None = None,
        told: pa.Table | None = None,
        *,
        may_rest: bool = False,
    ) -> tuple[LandedSequence | None, Backlog]:
        """Land what arrived between two readings as the next sequence, and keep it in mind.

        Where a driver that was overtaken has closed a sequence meanwhile, this one begins at its end; where nothing is
        left of the span, that sequence is all there is.

        Args:
            flow: its sources and number of buckets.
            start: the reading before, in ticks.
            end: the closing reading, in ticks; exclusive.
            feeds: by source, what `open_sources` gave.
            blind: by source, the spans of ticks in which nobody listened, beside those that a feed knows of itself.
            final: arrival of the final punctuation; None where the stream goes on.
            limit_rows: of each live source: about how many rows are read at most.
            told: LANDED_LEDGER lines of the landing itself, beside those of the sources.
            may_rest: close nothing where nothing came: the next sequence then begins where this one would have.

        Returns:
            The closed sequence, and what waits; None where nothing came and it may rest.

        Raises:
            ValueError: the readings do not increase.
            NoRoomError: the buffers take no more now; nothing was read of what the feeds keep.
            SequenceClosedError: another driver closed the sequence meanwhile.
            LandingError: a feed cannot be read, or the landing is broken.
        """
        if self.buffers is not None:
            self.buffers.room()
        self.refresh()
        newest = self.last()
        start = start if newest is None else max(start, newest.end)
        if newest is not None and start >= end and final is None:
            return newest, {}
        standing = Standing.LATER if newest is not None or self._follows(start) else Standing.FIRST
        reading = Reading(start, end, flow.buckets, standing, limit_rows)
        arrived = {name: feeds[name].arrive(reading, self.known(name)) for name in flow.sources}
        deaf = {name: _deaf(each.blind, (blind or {}).get(name, ()), start, end) for name, each in arrived.items()}
        if (
            may_rest
            and told is None
            and final is None
            and not any(deaf.values())
            and not any(map(_came, arrived.values()))
        ):
            return None, {}
        number = self.last_id + 1

        def write(shelf: Path) -> LandedSequence:
            return land_reading(self.path, number, flow, start, end, with_told(arrived, told), deaf, final, shelf=shelf)

        sequence = write(self.path) if self.buffers is None else self.buffers.land(number, write)
        self._take(sequence)
        return sequence, {name: (each.left, each.unsettled) for name, each in arrived.items()}

    def _follows(self, start: int) -> bool:
        """Say whether an interval landed that ends where a stream begins, or before."""
        return any(each.end <= start for each in self._sequences)

    def _take(self, sequence: LandedSequence) -> None:
        self._sequences.append(sequence)
        self._newest[sequence.kind] = sequence
        for name, landed in sequence.sources.items():
            known = self.known(name)
            for file in landed.files:
                known.files.add(file)
            known.move(landed.positions)
        if sequence.kind == READING:
            self._chain(sequence)
            self.final = sequence.final if sequence.final is not None else self.final

    def _chain(self, sequence: LandedSequence) -> None:
        before = self._tail.get(sequence.start)
        for name, landed in sequence.sources.items():
            chains = self._blind.setdefault(name, {})
            reaching = [span for span in chains.get(before or 0, ()) if span[1] == sequence.start]
            found = joined([*reaching, *landed.blind_spans])
            if found:
                chains[sequence.id] = found
        self._tail[sequence.end] = sequence.id


def with_told(arrived: Mapping[str, Arrived], told: pa.Table | None) -> Mapping[str, Arrived]:
    """Give what arrived with further lines for the ledger, before those of the first source."""
    if told is None:
        return arrived
    name, first = next(iter(arrived.items()))
    return {**arrived, name: first._replace(ledger=pa.concat_tables([told, first.ledger]))}


def _came(arrived: Arrived) -> bool:
    """Say whether a source brought anything: rows, lines, files that were dealt with, or something that waits."""
    return bool(
        arrived.rows.num_rows
        or arrived.ledger.num_rows
        or arrived.files
        or arrived.referenced
        or arrived.punctuations
        or arrived.left
        or arrived.unsettled
    )


def _deaf(heard: Spans, given: Spans, start: int, end: int) -> Spans:
    """Join what a feed knows of its own blind spans, cut to [start, end), with what the landing knows."""
    within = [(max(a, start), min(b, end)) for a, b in (*heard, *given)]
    return joined((a, b) for a, b in within if a < b)


def joined(spans: Iterable[tuple[int, int]]) -> Spans:
    """Join spans that touch or overlap.

    >>> joined([(5, 7), (0, 2), (2, 4)])
    ((0, 4), (5, 7))
    """
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return tuple(found)
