"""A flow as the engines see it: validated, frozen, free of files and lines, and able to become JSON and come back.

A commit keeps the definition of the flow it was made under, so that a restart finishes it under the very same plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping  # noqa: TC003 - the codec reads the types of fields
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from pipelines.flows.check import Check  # noqa: TC001 - as above
from pipelines.flows.feeds.spec import Clock, FeedSpec
from pipelines.flows.volumes import VolumeBand  # noqa: TC001 - as above
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
DIVERTED, QUARANTINED = ".diverted", ".quarantined"
"""What the name of a stream that an operator sets aside ends in: what came too late or too early, and what breaks a
check."""

BROKEN = "broken"
"""The column of quarantined rows that names the checks which each breaks."""


def is_side(name: str) -> bool:
    """Say whether a name is that of a stream which an operator sets aside."""
    return name.endswith((DIVERTED, QUARANTINED))


def main_of(name: str) -> str:
    """Give the stream beside which an operator sets another aside, by the name of either."""
    return name.removesuffix(DIVERTED).removesuffix(QUARANTINED)


def sides_of(name: str, operator: str, policy: Mapping[str, Any]) -> tuple[str, ...]:
    """Name the streams that an operator sets aside.

    Args:
        name: of its stream.
        operator: its name.
        policy: what was chosen for it; a choice by its name.
    """
    spec = SPECS[operator]
    if spec.quarantines:
        return (name + QUARANTINED,)
    return (name + DIVERTED,) if spec.sets_aside and policy.get(spec.sets_aside) == "divert" else ()


AUTO_BUCKETS = 0
"""`buckets: auto`: a run chooses the number when it begins, and keeps it."""
ALL_HISTORY = 2 * 9_999 * 366 * 86_400_000_000
"""`from: beginning`: longer than all readable time."""


MOST_BEHIND = 1_000_000
"""Rows that may wait for a region, unless its reference says it."""


class Origin(IntEnum):
    """Where a recorded source's rows begin, for a run."""

    BEGINNING = 0
    """With the feed's first row: those that arrived before the run's first interval land in it."""


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
    volume: VolumeBand | None = field(default=None, compare=False)
    """How many rows an interval has, as its team says; None where what is usual says it. No part of what it means."""
    on_silence: int | None = field(default=None, compare=False)
    """How long a key may be silent before somebody is told, in ticks; None: nobody is. No part of the definition."""
    about: str = ""

    @property
    def clock(self) -> Clock:
        """Say whose time the rows arrive in."""
        return self.feed.clock


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
    body: Mapping[str, Stream] = field(default_factory=dict, hash=False)
    """Of a loop: the streams of its module, which are no tables; they read each other and the loop's `entry`."""

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
        setting = SPECS[self.operator].sets_aside
        chosen = getattr(self.policy, setting).name.lower() if setting else ""
        return sides_of(self.name, self.operator, {setting: chosen})


@dataclass(frozen=True, kw_only=True)
class ModuleUse:
    """A module where a flow refers to it."""

    name: str
    """Of the reference; the module's streams have it before their own, and a dot."""
    module: str
    given: Mapping[str, str]
    """What its parameters stand for."""
    inputs: Mapping[str, str]
    """From each of its inputs to the source or stream of the flow that it is; of several instances, of the first."""
    outputs: Mapping[str, str]
    """From what it hands out to the stream of the flow; of several instances, of the first."""
    parallel: bool = False
    """It is a region of its own: it asks for one, and no synchronous connection joins it to the one around it."""
    most_behind: int = MOST_BEHIND
    """Of a region of its own: rows that may wait for it before what writes them waits."""
    instances: int = 1
    inner: tuple[ModuleUse, ...] = ()
    """Modules within it, as they stand in the first instance."""

    @property
    def regions(self) -> int:
        """Count the regions that it adds, by StreamBase's rule."""
        within = 1 + sum(each.regions for each in self.inner)
        return self.instances * (within if self.parallel else within - 1)

    @property
    def all(self) -> tuple[ModuleUse, ...]:
        """Give it and all within it, outer ones first."""
        return (self, *(each for inner in self.inner for each in inner.all))


@dataclass(frozen=True, kw_only=True)
class Flow:
    """A validated graph of sources and streams; its definition says its fields in this order."""

    name: str
    every: int = 86_400_000_000
    """Length of a backfilled interval in ticks, on the calendar of `timezone`."""
    timezone: str = "UTC"
    buckets: int = 4
    """Into how many parts landed rows are cut; AUTO_BUCKETS where a run has to say it."""
    about: str = ""
    warnings: tuple[str, ...] = field(default=(), compare=False)
    """What is allowed and looks like a mistake, one line each."""
    file: str = field(default="", compare=False)
    """The file it was read from; no part of the definition."""
    starts: int | None = field(default=None, compare=False)
    """From where on the sources hold rows, in ticks; None where the file does not say. No part of the definition."""
    ends: int | None = field(default=None, compare=False)
    """Up to where, exclusive."""
    asked: str = field(default="", compare=False)
    """Who is asked where it needs a person: `owner` of the file. No part of the definition."""
    region: ReplayPolicy | None = field(default=None, compare=False)
    """When a stream drains, that is publishes; None: with each epoch. No part of what the flow means."""
    sources: Mapping[str, Source]
    streams: Mapping[str, Stream]
    """In topological order: inputs stand before what reads them."""
    keep_versions: int = field(default=WEEK, compare=False)
    """How long versions of the tables stay readable, in ticks. No part of what the flow means."""
    unsaid: frozenset[str] = field(default=frozenset(), compare=False)
    """Merges of which nothing is said of `max_ahead`: in a file they have the default, in a plan none."""
    notes: tuple[str, ...] = field(default=(), compare=False)
    """What follows from instances, one line each, for whoever validates the flow."""
    said_at: Mapping[str, str] = field(default_factory=dict, compare=False)
    """File and line of each source and stream, where it was read from a file: for what is wrong with its columns."""
    file_order: tuple[str, ...] = field(default=(), compare=False)
    """The streams in the order of the file, while it is read: that of branches. Whose meaning depends on it has it in
    its policy."""
    given: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Parameters of the run, given before those of the file; what they stand for is part of the definition."""

    legs: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Of a run in parallel regions: the leg of each stream (`flows/legs.py`); empty where a flow runs in one piece. No
    part of what the flow means."""
    modules: tuple[ModuleUse, ...] = field(default=(), compare=False)
    """Where modules were pasted; their streams stand among the others."""
    expect: Mapping[str, tuple[Check, ...]] = field(default_factory=dict, compare=False)
    """By source, stream or side stream, what its team expects of its rows. No part of what the flow means."""

    def where(self, name: str) -> str:
        """Say in which file a source or stream stands, and in which line where that is known; a side with its own."""
        return self.said_at.get(main_of(name)) or self.file or self.name

    @property
    def regions(self) -> int:
        """Count the regions by StreamBase's rule: the flow, and each instance of a reference that asks for its own."""
        return 1 + sum(each.regions for each in self.modules)

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
        made = self.sources.get(name) or self.streams.get(name) or self.streams.get(main_of(name))
        if made is None or name not in {made.name, *getattr(made, "sides", ())}:
            raise KeyError(name)
        return made

    def promises(self, name: str) -> bool:
        """Say whether a source or stream can have CTIs: made, imported, or enqueued with the rows of a source."""
        known: dict[str, bool] = {}

        def look(read: str) -> bool:
            if read not in known:
                known[read] = asked(self.owner(read), read)
            return known[read]

        def asked(made: Source | Stream, read: str) -> bool:
            if isinstance(made, Source):
                return made.edge is not None
            if is_side(read) or made.policy.promises is False:
                return False
            together = all if SPECS[made.operator].all_promise else any
            return made.operator == "advance_time" or together(look(each) for each in made.inputs)

        return look(name)

    def has_timers(self, name: str) -> bool:
        """Say whether timers may stand in a source, stream or side stream: made somewhere before it and not dropped.

        None is ever set aside.
        """
        left, seen = [name], set[str]()
        while left:
            each = left.pop()
            made = self.owner(each)
            if each in seen or isinstance(made, Source) or is_side(each):
                continue
            seen.add(each)
            if SPECS[made.operator].has_timers and not SPECS[made.operator].drops_timers:
                return True
            left += () if SPECS[made.operator].drops_timers else made.feeding
        return False

    def key_of(self, name: str) -> tuple[str, ...]:
        """Name the key columns of a source, stream or side stream; () is stream-wide."""
        made = self.owner(name)
        return made.key if isinstance(made, Source) else made.by

    def tables(self) -> tuple[str, ...]:
        """Name every stream that is written, side streams right behind their own."""
        return tuple(name for stream in self.streams.values() for name in (stream.name, *stream.sides))

    def sources_of(self, name: str) -> tuple[str, ...]:
        """Name the sources whose rows can come out of `name`, in the order of the ports that lead to them."""
        return tuple(made.name for made in self.behind(name, along_rows=True) if isinstance(made, Source))

    def behind(self, name: str, *, along_rows: bool = False) -> Iterator[Source | Stream]:
        """Give what makes `name` and all that leads to it, each once, in the order of ports.

        Args:
            name: of a source, stream or side stream.
            along_rows: leave out what gives CTIs alone.
        """
        left, seen = [name], set[str]()
        while left:
            made = self.owner(left.pop())
            if made.name not in seen:
                seen.add(made.name)
                yield made
                reads = () if isinstance(made, Source) else made.feeding if along_rows else made.inputs
                left += reversed(reads)
