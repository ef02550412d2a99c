"""What a report is told: plain values, read from the tables by the jobs, checked once when they are built.

Instants and spans are int64 ticks (µs since 1970 UTC), as everywhere in the core; `None` is an instant that does not
exist. Tables are `pa.Table` with the columns of a stream, or of the ledger.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from expectations.report.memory import Memory
from pipelines.errors import PulselineError
from pipelines.flows.model import is_side

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from expectations.report.buffers import RegionFacts
    from expectations.report.calendar import CalendarDay
    from expectations.report.charts.delays import DelayFacts
    from expectations.report.legs import LegFacts
    from expectations.report.presence import PresenceTable

STREAM_COLUMNS = ("kind", "arrival", "event_time", "landed_at")
DIVERTED_COLUMNS = (*STREAM_COLUMNS, "landed_place")
"""Of a stream of rows that were set aside, which are counted once each."""
LATE = "late"
ASIDE_FOR = {"max_ahead": "too far ahead", "quarantined": "breaking a check"}
"""What rows are that an operator sets aside, by the ledger's reason; for every other they are late."""
LEDGER_COLUMNS = (
    *("stream", "operator", "reason", "action", "source", "landed_at", "landed_place", "key", "kind", "arrival"),
    *("event_time", "row"),
)
ROWS_OF_SOURCES = ("data", "start", "end")
"""Kinds of what comes from a source; timers and CTIs are made."""
LATE_REASONS = ("late", "late_end", "start_dropped")
"""Reasons of the ledger's lines about rows that an operator dropped as late."""
MEANT = ("filtered", "duplicate")
"""Reasons of those about rows that a flow says are to be dropped."""
OF_PROMISES = ("late_cti",)
"""Reasons of those about CTIs, which are no rows."""


@dataclass(eq=False)
class ReportError(PulselineError, ValueError):
    """Facts that no page can be made of: says what is required and what came."""

    fact: str
    required: str
    came: object
    says = "{fact} must be {required}; it is {came!r}"


def _no_lines() -> pa.Table:
    times = STREAM_COLUMNS[1:]
    kinds = [(name, pa.timestamp("us", "UTC") if name in times else pa.string()) for name in LEDGER_COLUMNS]
    return pa.schema(kinds).empty_table()


def rows_told(lines: pa.Table) -> int:
    """Count the rows of sources that lines of the ledger are about; several streams may have a line about one.

    Args:
        lines: with `source`, which a join does not say, `landed_at` and `landed_place`.
    """
    place = ["landed_at", "landed_place"]
    named = lines.filter(pc.is_valid(lines["source"])).group_by(["source", *place]).aggregate([])
    places, every = (each.group_by(place).aggregate([]).num_rows for each in (named, lines))
    return int(named.num_rows + every - places)


def _require_columns(fact: str, table: pa.Table, columns: tuple[str, ...]) -> None:
    missing = [name for name in columns if name not in table.column_names]
    if missing:
        raise ReportError(fact, f"a table with the columns {', '.join(columns)}", table.column_names)


@dataclass(frozen=True, kw_only=True)
class SourceFacts:
    """One source of the flow and what its landing took in."""

    name: str
    feed: str
    rows: int
    """Rows that arrived in the span."""


@dataclass(frozen=True, kw_only=True)
class StreamFacts:
    """One named stream: what its operator does, in words, and its published rows in stream order."""

    name: str
    does: str
    """Such as `heartbeat of departures, every 10 min, slack 90 s`."""
    rows: pa.Table
    """At least `kind`, `arrival`, `event_time`, `landed_at` and, for the charts, the key column."""

    def __post_init__(self) -> None:
        """Refuse a table without the columns that every stream has."""
        columns = DIVERTED_COLUMNS if is_side(self.name) else STREAM_COLUMNS
        _require_columns(f"the rows of stream {self.name}", self.rows, columns)

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """Count the rows of each kind."""
        found = self.rows["kind"].value_counts().to_pylist()
        return Counter({pair["values"]: pair["counts"] for pair in found})


@dataclass(frozen=True, kw_only=True)
class CommitFacts:
    """One commit of the flow, as the newest row of the table `commits` has it."""

    number: int
    kind: str
    state: str
    start: int | None
    end: int | None
    rows: int | None
    seconds: float | None
    hash: str | None
    """The text of its content hash; the page shows the first digits."""
    note: str = ""
    """Such as `supersedes 4`, or why it was rejected."""
    leg: str = ""
    """Whose commit it is, of a run in legs."""
    asked_by: str = ""
    """Address of Airflow's run that it was made in; empty where none is known."""


@dataclass(frozen=True, kw_only=True)
class EpochFacts:
    """One published epoch of a live run, on the wall clock."""

    number: int
    at: int
    """When it was published, in ticks."""
    leg: str = ""
    """Whose epoch it is, of a run in legs."""
    idle: bool = False
    """It had no row and nothing due."""
    timers: int = 0
    p50_ms: float | None = None
    """How late its timers were published, half of them at most; None where there was no timer or no clock."""
    p99_ms: float | None = None
    max_ms: float | None = None


@dataclass(frozen=True, kw_only=True)
class Account:
    """The account of rows of one operator."""

    stream: str
    rows_in: int
    main: int
    side: int
    dropped: int
    held: int

    @property
    def missing(self) -> int:
        """Give the rows that came in and are nowhere; negative when more left than came."""
        return self.rows_in - self.main - self.side - self.dropped - self.held


@dataclass(frozen=True, kw_only=True)
class DataDocs:
    """Great Expectations' own pages of one judgement."""

    start: int
    end: int
    commit: int | None
    """The commit that was judged; None where a span was."""
    folder: Path
    """Where they lie."""

    @property
    def below(self) -> str:
        """Give the folder of their copy, relative to the page."""
        return f"docs/{self.folder.name}"

    @property
    def link(self) -> str:
        """Give the first of the copied pages, relative to the page of the report."""
        return f"{self.below}/index.html"


@dataclass(frozen=True, kw_only=True)
class Broken:
    """One check in which an expectation did not hold."""

    start: int
    end: int
    commit: int | None
    """The commit that was checked; None where a span was."""
    unexpected: int
    rows: tuple[Mapping[str, object], ...]
    """The first of the rows that break it, as the judge found them."""
    file: Path | None = None
    """Where all of them lie; None where nothing was written."""
    link: str = ""
    """Where a copy of that lies, relative to the page."""


@dataclass(frozen=True, kw_only=True)
class ExpectationFacts:
    """One expectation on one stream, over all its checks."""

    name: str
    table: str
    severity: str
    """`blocking`, or `warning`."""
    sentence: str
    """What must hold."""
    remedy: str
    """What to do where it does not."""
    looked_at: int
    """Rows that were judged."""
    checks: int
    """Commits and spans that were checked."""
    broken: tuple[Broken, ...] = ()
    memory: Memory = field(default_factory=Memory)
    """All verdicts up to the end of the page, those of commits that were replaced since among them."""

    @property
    def held(self) -> bool:
        """Say whether it held in every check."""
        return not self.broken

    @property
    def unexpected(self) -> int:
        """Count the rows that break it."""
        return sum(found.unexpected for found in self.broken)


@dataclass(frozen=True, kw_only=True)
class Way:
    """One way of computing the same rows: an engine, how time was cut, how many buckets."""

    engine: str
    buckets: int
    cut: str = ""
    """Such as `one shot` or `day by day`; empty where there is nothing to tell."""
    seconds: float | None = None

    @property
    def title(self) -> str:
        """Name the engine and the cut."""
        return f"{self.engine}, {self.cut}" if self.cut else self.engine

    @property
    def full_title(self) -> str:
        """Name the engine, the cut and the buckets."""
        return f"{self.title} ({self.buckets:,} bucket{'' if self.buckets == 1 else 's'})"


@dataclass(frozen=True, kw_only=True)
class CertificateRow:
    """The content hashes of one stream, or of the ledger, one for each way; `None` where that way was not run."""

    stream: str
    hashes: tuple[str | None, ...]
    """Texts of the form `rows:hexadecimal`."""

    @property
    def reference(self) -> str | None:
        """Give the hash that the others are held against: the first that was computed."""
        return next((text for text in self.hashes if text is not None), None)

    @property
    def reference_way(self) -> int | None:
        """Give the first way that was computed."""
        return next((way for way, text in enumerate(self.hashes) if text is not None), None)

    @property
    def unequal(self) -> tuple[int, ...]:
        """Give the ways whose hash is not the reference."""
        return tuple(way for way, text in enumerate(self.hashes) if text is not None and text != self.reference)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The first row in which one way's stream is not the reference's; a side without such a row is `None`."""

    stream: str
    way: int
    """Index into the certificate's ways."""
    position: int
    """Row number in stream order, from 1."""
    expected: Mapping[str, object] | None
    came: Mapping[str, object] | None


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """The parity certificate: every stream and the ledger, computed in several ways."""

    ways: tuple[Way, ...]
    rows: tuple[CertificateRow, ...]
    differences: tuple[Difference, ...] = ()
    left_out: tuple[str, ...] = ("commit",)
    """Columns that the hash does not cover."""
    gaps: tuple[str, ...] = ()
    """What a run has lost for ever, a sentence each."""

    def __post_init__(self) -> None:
        """Refuse rows with more or fewer hashes than there are ways."""
        for row in self.rows:
            if len(row.hashes) != len(self.ways):
                raise ReportError(f"the hashes of {row.stream}", f"{len(self.ways)}, one a way", len(row.hashes))
        for found in self.differences:
            if not 0 <= found.way < len(self.ways):
                raise ReportError("the way of a difference", f"below {len(self.ways)}", found.way)

    @property
    def not_run(self) -> tuple[Way, ...]:
        """Give the ways that lack a hash."""
        return tuple(way for place, way in enumerate(self.ways) if any(row.hashes[place] is None for row in self.rows))

    @property
    def unequal(self) -> tuple[tuple[CertificateRow, int], ...]:
        """Give every pair of stream and way that is not equal to the reference."""
        return tuple((row, way) for row in self.rows for way in row.unequal)


@dataclass(frozen=True, kw_only=True)
class Picture:
    """What the charts draw: a stream, what was set aside from it, and the column that colours the rows."""

    stream: str
    side: str | None = None
    key: str | None = None
    delay: int | None = None
    """Delay of the CTIs in ticks, marked in the distribution."""
    tell: tuple[str, ...] = ()
    """Payload columns that a point names when it is pointed at."""


@dataclass(frozen=True, kw_only=True)
class ReportFacts:
    """All that one page says. Empty tuples and `None` leave their section out, or say that it is still to come."""

    flow: str
    about: str
    run: str
    timezone: str
    start: int | None
    end: int | None
    next_step: str
    """The command that a person would run next, shown where something is missing."""
    of_interval: bool = False
    """Whether the page is of one interval of a run."""
    made_at: int | None = None
    sources: tuple[SourceFacts, ...] = ()
    streams: tuple[StreamFacts, ...] = ()
    ledger: pa.Table | None = None
    """None where its lines are only counted, or not read."""
    ledger_counts: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    """Its lines by stream, reason and action, where it is not read itself."""
    commits: tuple[CommitFacts, ...] = ()
    epochs: tuple[EpochFacts, ...] = ()
    """Of a live run, published, by number."""
    presence: PresenceTable | None = None
    """What holds of the sources of a live run; None of a backfill, and of one interval of it."""
    legs: tuple[LegFacts, ...] = ()
    """Of a run in parallel regions, each behind all that it reads; empty of all others, and of one interval."""
    region: RegionFacts | None = None
    """Of a run with three buffers; None of all others, and of one interval."""
    certificate: Certificate | None = None
    accounts: tuple[Account, ...] = ()
    expectations: tuple[ExpectationFacts, ...] = ()
    data_docs: tuple[DataDocs, ...] = ()
    """Great Expectations' own pages that a copy of lies beside the page."""
    unchecked: int = 0
    """Published commits that no expectation has looked at."""
    not_asked: int = 0
    """Published commits of which not all of the own checks were asked: some came since, or go by all rows together."""
    picture: Picture | None = None
    delays: DelayFacts | None = None
    """What each delay of a stream would have done; None where that was not reckoned."""
    advise: str = ""
    """The command that says all of it; empty where no stream has a delay to choose."""
    calendar: tuple[CalendarDay, ...] = ()
    """Of an overview of a run, in the order of time; empty of all other pages."""
    versions: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a ledger without its columns, and a picture of a stream that is not here."""
        if self.ledger is not None:
            _require_columns("the ledger", self.ledger, LEDGER_COLUMNS)
        known = [stream.name for stream in self.streams]
        wanted = [] if self.picture is None else [self.picture.stream, self.picture.side]
        for name in wanted:
            if name is not None and name not in known:
                raise ReportError("the picture's stream", f"one of {', '.join(known) or 'none'}", name)

    def holds(self, start: int, end: int) -> bool:
        """Say whether a span lies within that of the page."""
        return (self.start is None or self.start <= start) and (self.end is None or end <= self.end)

    def page_at(self, start: int | None, end: int | None) -> str:
        """Give the page of the day that has a span, as a page of a site knows it; empty where there is none."""
        if start is None or end is None or end <= start:
            return ""
        return next((day.page for day in self.calendar if day.start <= start and end <= day.end), "")

    def docs_at(self, start: int, end: int, commit: int | None) -> str:
        """Give where Great Expectations' own pages of a judgement are; empty where there are none."""
        judged = (start, end, commit)
        return next((each.link for each in self.data_docs if (each.start, each.end, each.commit) == judged), "")

    def ledger_anchor(self, stream: str) -> str:
        """Name the place of a stream's first lines in the section of the ledger; empty where it has none there."""
        place = self._places.get(stream)
        return "" if place is None or stream not in self._with_lines else f"ledger-{place}"

    def account_anchor(self, stream: str) -> str:
        """Name the place of a stream's account of rows; empty where it has none."""
        place = self._places.get(stream)
        return "" if place is None else f"account-{place}"

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {account.stream: place for place, account in enumerate(self.accounts, 1)} if self.streams else {}

    @cached_property
    def _with_lines(self) -> frozenset[str]:
        return frozenset() if self.ledger is None else frozenset(self.ledger["stream"].unique().to_pylist())

    def stream(self, name: str) -> StreamFacts:
        """Give the stream of that name."""
        return next(stream for stream in self.streams if stream.name == name)

    @property
    def set_aside(self) -> int:
        """Count the rows that operators diverted."""
        return sum(rows.num_rows for rows in self._diverted)

    @property
    def setting_aside(self) -> int:
        """Count the streams that did so."""
        return sum(rows.num_rows > 0 for rows in self._diverted)

    @cached_property
    def aside_for(self) -> str:
        """Say what these rows were, all that some of them were."""
        if self.ledger is None:
            return LATE
        reasons = self.ledger.filter(pc.equal(self.ledger["action"], "diverted"))["reason"].unique().to_pylist()
        told = {ASIDE_FOR.get(reason, LATE) for reason in reasons}
        return " or ".join(word for word in (LATE, *ASIDE_FOR.values()) if word in told) or LATE

    @cached_property
    def set_aside_once(self) -> bool:
        """Say whether each of these rows is another one that landed; rows of two sources at one place look the same."""
        rows = pa.concat_tables(self._diverted) if self._diverted else None
        return rows is None or rows.group_by(rows.column_names, use_threads=False).aggregate([]).num_rows == len(rows)

    @cached_property
    def late_and_dropped(self) -> pa.Table:
        """Give the ledger's lines about rows that an operator dropped because they were late."""
        return self._dropped.filter(pc.field("reason").isin(LATE_REASONS))

    @cached_property
    def otherwise_dropped(self) -> pa.Table:
        """Give those about rows that an operator dropped for another reason that nobody asked for."""
        return self._dropped.filter(~pc.field("reason").isin([*LATE_REASONS, *MEANT]))

    @cached_property
    def _dropped(self) -> pa.Table:
        by_operator = (pc.field("action") == "dropped") & (pc.field("operator") != "landing")
        ledger = _no_lines() if self.ledger is None else self.ledger
        return ledger.filter(by_operator & pc.field("kind").isin(ROWS_OF_SOURCES))

    @cached_property
    def _diverted(self) -> list[pa.Table]:
        """Give when and where each row landed that a stream diverted, a table a stream."""
        sides = [stream.rows for stream in self.streams if is_side(stream.name)]
        wanted = pa.array(ROWS_OF_SOURCES)
        return [rows.filter(pc.is_in(rows["kind"], wanted)).select(["landed_at", "landed_place"]) for rows in sides]
