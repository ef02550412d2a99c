"""A flow as the engines see it: validated, frozen, free of files and lines, and able to become JSON and come back.

A commit keeps the definition of the flow it was made under, so that a restart finishes it under the very same plan.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - the codec reads the types of fields
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Any

from pipelines.operators.replay import ReplayPolicy  # noqa: TC001 - as above
from pipelines.operators.rows import TICKS_PER_SECOND, Policy, Shape
from pipelines.operators.specs import SPECS

Definition = dict[str, Any]
"""JSON: text, numbers, truth values, null, lists and objects of these."""

RESERVED = frozenset(
    {
        "kind",
        "arrival",
        "place",
        "event_time",
        "event_end",
        "due_at",
        "landed_at",
        "landed_place",
        "commit",
    }
)
"""The columns that every stream has; a payload column of such a name must be renamed."""

WEEK = 7 * 86_400 * TICKS_PER_SECOND
DIVERTED = ".diverted"
"""What the name of a stream that an operator sets aside ends in."""


class Clock(Enum):
    """Whose time a source's rows arrive in."""

    RECORDED = "recorded"
    """A column of the feed says when each row came in; the clock of a run is simulated along with it."""
    WALL = "wall"
    """Rows arrive when they land: one tick before the reading of the real clock that closes their sequence."""


class Placing(IntEnum):
    """Where the rows of a feed lie once they have landed."""

    COPY = 0
    """In files of the landing's own."""
    REFERENCE = 1
    """In the feed's files, which never change: where their rows stand in order, nothing is copied."""


ALL_HISTORY = 2 * 9_999 * 366 * 86_400_000_000
"""`from: beginning`: longer than all readable time."""
LIVE_KINDS = ("folder", "socket", "kafka", "commits")
"""Feeds whose rows arrive when they land, by the real clock."""
SPOOL_BYTES = 256 << 20
"""What a socket's spool holds, and about what one reading of a topic takes, unless the flow says otherwise."""
FILE_BYTES = 1 << 30
"""How large a file that arrives may be, unpacked, unless the flow says otherwise."""


class Start(IntEnum):
    """Where the first start of a run begins to read a topic or a table; a later one goes on where sequences ended."""

    EARLIEST = 0
    """With the oldest row that the topic still has; of a table, with all that it holds."""
    LATEST = 1
    """With the next row that is sent; of a table, with the next commit."""


class Origin(IntEnum):
    """Where a recorded source's rows begin, for a run."""

    BEGINNING = 0
    """With the feed's first row: those that arrived before the run's first interval land in it."""


class Missing(IntEnum):
    """What a feed does with a row, or a file, that lacks a declared column."""

    NULL = 0
    """It lands, with null there."""
    LEDGER = 1
    """It stands in the ledger with its bytes."""
    STOP = 2
    """The landing stops before it, and names it."""


class Retyped(IntEnum):
    """What a feed does with a row, or a file, that has a value which is not of its declared type."""

    LEDGER = 0
    """It stands in the ledger with its bytes."""
    STOP = 1
    """The landing stops before it, and names it."""


class Changes(IntEnum):
    """What a feed does with a commit of a Delta table that takes rows away."""

    STOP = 0
    """The landing stops before it, and names it."""
    LEDGER = 1
    """It stands in the ledger, and none of its rows lands."""


@dataclass(frozen=True, kw_only=True)
class TableSpec:
    """Which part of a Delta table is read, and how."""

    version: int | None = None
    """The version whose rows are read; None for the newest, or where `versions` says."""
    versions: tuple[int, ...] = ()
    """The first and the last commit whose rows are read; the first alone: up to the newest."""
    committed: str = ""
    """Name of a column to add: when the row was committed; none where empty."""
    changes: Changes = field(default=Changes.STOP, compare=False)
    """What becomes of a commit that takes rows away, where commits are read. No part of what the flow means."""

    def __str__(self) -> str:
        """Say which part it is."""
        if self.versions:
            last = f"to {self.versions[1]}" if self.versions[1:] else "on"
            return f"the commits from version {self.versions[0]} {last}"
        return "the newest version" if self.version is None else f"version {self.version}"


@dataclass(frozen=True, kw_only=True)
class FeedSpec:
    """Where the rows of a source come from. Nothing is opened here; `engine.feeds` does that."""

    kind: str
    """`builtin`, `parquet`, `csv`, `json` (a JSON object a line); `folder`, in which such files arrive; `socket`, which
    sends such lines; `kafka`, a topic with such values; `delta`, a version of a Delta table or a span of its commits;
    `commits`, those of one as they come."""
    name: str | None = None
    """Which builtin feed."""
    paths: tuple[str, ...] = ()
    """Files or patterns, relative to the folder the engine is given; rows come in this order. A folder: its path. A
    socket: host and port. Kafka: the topic."""
    format: str = ""
    """Of a live feed: `parquet`, `csv` or `json`."""
    types: Mapping[str, str] = field(default_factory=dict)
    """Type by column, in the feed's own names, as `type_names` reads them.

    Delta: the columns that land, of the table's own types; none is named where all land. CSV: columns not named are
    strings. JSON, and a live feed of CSV or JSON: these are all columns; of a socket or a
    topic of CSV, which have no header, in this order. A folder of Parquet: these are all columns, or none is named and
    the first file's are meant.
    """
    delimiter: str = ","
    """CSV: the one character between two fields."""
    nulls: tuple[str, ...] = ("",)
    """CSV: what stands for null."""
    timezone: str | None = None
    """The timezone of times that carry none; None where there must be no such times."""
    landing: Placing = Placing.COPY
    """Recorded Parquet: whether its files may stand for the rows that landed. No part of what the flow means."""
    brokers: tuple[str, ...] = ()
    """Kafka: hosts and ports to ask first. No part of what the flow means, nor are the next three."""
    client: str = ""
    """Kafka: a file of properties of the client, relative to the folder the engine is given; none where empty."""
    start: Start = Start.EARLIEST
    """Kafka: where a run that has landed nothing begins."""
    max_bytes: int = SPOOL_BYTES
    """Socket: how much may be spooled and not landed; then it is not read from. Folder: how large a file may be, also
    when it is unpacked. Kafka: about how much one reading takes."""
    missing: Missing | None = None
    """What becomes of rows that lack a declared column; None is what `lacking` says. These two decide which rows
    land and not what landed rows mean, so they are no part of what the flow means."""
    retyped: Retyped = Retyped.LEDGER
    """What becomes of rows with a value that is not of its declared type."""
    table: TableSpec | None = None
    """Delta: which part of the table; None elsewhere. A definition without it is what it was before there was one."""

    @property
    def lacking(self) -> Missing:
        """Say what becomes of what lacks a declared column: a field of JSON is null, a file does not land."""
        if self.missing is not None:
            return self.missing
        return Missing.NULL if "json" in {self.kind, self.format} else Missing.LEDGER


@dataclass(frozen=True, kw_only=True)
class Source:
    """A feed whose rows land: what of a row is its key, its event time and its arrival.

    All columns are named as after `rename`.
    """

    name: str
    feed: FeedSpec
    key: tuple[str, ...]
    time: str
    """Column of the event time (an edge: its own instant, where there is no `end`)."""
    arrival: str = ""
    """Column of the instant at which the row came in; empty under the real clock."""
    shape: Shape = Shape.POINT
    end: str | None = None
    """Column of the event's end: shape `interval`, and `edge` where start and end have a column each."""
    edge: str | None = None
    """Column that says what a row is: `start`, `end` or `cti` under the shape `edge`, `data` or `cti` under the others.

    Without one, every row of a point or an interval is data.
    """
    event_id: str | None = None
    """Column that tells one open event of a key from another: shape `edge`."""
    rename: Mapping[str, str] = field(default_factory=dict)
    """From the feed's column name to the stream's."""
    advancing: Mapping[str, Any] | None = field(default=None, compare=False)
    """What the source says of its CTIs to every stream that binds it and says nothing of its own; such a stream has it
    in its policy, so it is no part of the definition."""
    buffers: int = 1
    """1, or 3: how many copies a live landing keeps of what no commit covers yet. No part of what the flow means."""
    history: int | None = None
    """Of a recorded source: how long before a run's first interval rows may have arrived, in ticks, to land in it with
    its start as arrival; None where none of them lands. A definition without it is what it was before there was one."""
    about: str = ""

    @property
    def clock(self) -> Clock:
        """Say whose time the rows arrive in."""
        return Clock.WALL if self.feed.kind in LIVE_KINDS else Clock.RECORDED


@dataclass(frozen=True, kw_only=True)
class Ports:
    """The ports of an operator, in their order: values of one column (of a merge), or streams."""

    column: str | None = None
    values: tuple[str | int | bool, ...] = ()
    streams: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Count the ports."""
        return len(self.values) or len(self.streams)


@dataclass(frozen=True, kw_only=True)
class Stream:
    """A named stream: what one operator makes of its inputs."""

    name: str
    operator: str
    """One of `pipelines.operators.specs.SPECS`."""
    inputs: tuple[str, ...]
    """Sources, streams and side streams, in the order of their ports; none of a metronome, which reads the clock."""
    by: tuple[str, ...]
    """Columns that one carry of the operator stands for, and the key of the stream; () is stream-wide."""
    policy: Policy
    ports: Ports | None = None
    shape: Shape = Shape.POINT
    event_id: str | None = None
    """Column that tells one open event from another, where the shape is `edge`."""
    event_ids: tuple[str, ...] = ()
    """Of an operator that pairs edges itself (union, join, window): this column of each input, empty where none is."""
    about: str = ""

    @property
    def feeding(self) -> tuple[str, ...]:
        """Name the inputs whose rows can leave; of a stream whose CTIs are imported nothing else is taken."""
        return self.inputs[:1] if self.operator == "advance_time" else self.inputs

    @property
    def accountable(self) -> bool:
        """Say whether each row that comes in leaves as a row, so that rows in and out can be held against each other.

        A join pairs rows, a window counts them, and a union makes one row of two edges.
        """
        spec = SPECS[self.operator]
        edges = Shape.EDGE in getattr(self.policy, "shapes", ())
        return not spec.remakes_rows and not (spec.joins_edges and edges)

    @property
    def sides(self) -> tuple[str, ...]:
        """Name the streams that the operator sets aside."""
        chosen = (getattr(self.policy, setting, None) for setting in ("late", "ahead"))
        diverts = any(choice is not None and choice.name == "DIVERT" for choice in chosen)
        return (self.name + DIVERTED,) if diverts else ()


@dataclass(frozen=True, kw_only=True)
class Flow:
    """A validated graph of sources and streams; its definition says its fields in this order."""

    name: str
    every: int = 86_400_000_000
    """Length of a backfilled interval in ticks, on the calendar of `timezone`."""
    timezone: str = "UTC"
    buckets: int = 4
    about: str = ""
    warnings: tuple[str, ...] = field(default=(), compare=False)
    """What is allowed and looks like a mistake, one line each."""
    file: str = field(default="", compare=False)
    """The file it was read from; no part of the definition."""
    starts: int | None = field(default=None, compare=False)
    """From where on the sources hold rows, in ticks; None where the file does not say. No part of the definition."""
    ends: int | None = field(default=None, compare=False)
    """Up to where, exclusive."""
    region: ReplayPolicy | None = field(default=None, compare=False)
    """When a stream drains, that is publishes; None: with each epoch. No part of what the flow means."""
    sources: Mapping[str, Source]
    streams: Mapping[str, Stream]
    """In topological order: inputs stand before what reads them."""
    keep_versions: int = field(default=WEEK, compare=False)
    """How long versions of the tables stay readable, in ticks. No part of what the flow means."""
    unsaid: frozenset[str] = field(default=frozenset(), compare=False)
    """Merges of which nothing is said of `max_ahead`: in a file they have the default, in a plan none."""
    given: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Parameters of the run, given before those of the file; what they stand for is part of the definition."""

    @property
    def buffers(self) -> int:
        """Count the copies that a live landing keeps: sources land together, so one that asks for three gets all."""
        return max((source.buffers for source in self.sources.values()), default=1)

    @property
    def clock(self) -> Clock:
        """Say which kind of clock the flow runs under; all its sources have the same (`reading` sees to it)."""
        return next((source.clock for source in self.sources.values()), Clock.RECORDED)

    def owner(self, name: str) -> Source | Stream:
        """Give the source or stream that makes the rows called `name`; a side stream belongs to its operator's stream.

        Raises:
            KeyError: the flow has nothing of that name.
        """
        made = self.sources.get(name) or self.streams.get(name) or self.streams.get(name.removesuffix(DIVERTED))
        if made is None or name not in {made.name, *getattr(made, "sides", ())}:
            raise KeyError(name)
        return made

    def key_of(self, name: str) -> tuple[str, ...]:
        """Name the key columns of a source, stream or side stream; () is stream-wide."""
        made = self.owner(name)
        return made.key if isinstance(made, Source) else made.by

    def tables(self) -> tuple[str, ...]:
        """Name every stream that is written, side streams right behind their own."""
        return tuple(name for stream in self.streams.values() for name in (stream.name, *stream.sides))

    def sources_of(self, name: str) -> tuple[str, ...]:
        """Name the sources whose rows can come out of `name`, in the order of the ports that lead to them."""
        made = self.owner(name)
        if isinstance(made, Source):
            return (made.name,)
        found = [source for read in made.feeding for source in self.sources_of(read)]
        return tuple(dict.fromkeys(found))
