"""Drives an operator over neutral rows as an engine does: blocks, ids of keys and events, held rows, restarts."""

from __future__ import annotations

from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pipelines.operators.deduplicate import STANDING_INSTANTS, DeduplicatePolicy, Named
from pipelines.operators.registry import OPERATORS
from pipelines.operators.rows import INFINITY, MAX_TIME, MIN_TIME, NULL, OUT_CAPACITY, Fate, Kind, Reason, Rows
from pipelines.operators.scan import NO_BLIND, Blind, Per
from pipelines.operators.window import Measure, Measured, WindowPolicy, sums
from tests.transcripts_model import IMPORTED, LEDGER, MAIN, REFUSED, SIDE, TOO_OFTEN, Given, Left

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipelines.operators.rows import Longs, Policy, Records
    from tests.transcripts_model import Transcript, Value

STEERING = (Kind.READING, Kind.FINAL)
EDGES = (Kind.START, Kind.END)
MOVED = (Reason.LATE, Reason.LATE_END, Reason.START_MOVED)
ALONE = "k"
"""The key that a metronome, which has no row of input, is given."""
REAL = "real"
"""The column whose values are floats."""
INSTANT_COLUMNS = ("arrival", "event_time", "event_end", "due_at", "cti", "cti_arrival")


class Unreadable(AssertionError):  # noqa: N818 - a finding of the harness
    """An instant that no table can hold: neither null, nor infinity, nor within the years 1 to 9999."""


class Job(NamedTuple):
    """What an operator is asked to do: everything but how the rows are cut."""

    operator: str
    policy: Policy
    rows: tuple[Given, ...]
    ports: tuple[str, ...] = ()
    blind: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, transcript: Transcript) -> Job:
        """Take the job out of a document."""
        assert transcript.policy is not None
        return cls(transcript.operator, transcript.policy, transcript.rows, transcript.ports, transcript.blind)


def readable(instants: Iterable[int]) -> None:
    """Refuse instants that would come back from a table as something else."""
    for instant in instants:
        if instant not in (NULL, INFINITY) and not MIN_TIME <= instant <= MAX_TIME:
            raise Unreadable(f"{instant} is no instant that a table can hold")


class Drive:
    """One operator at work for one job, with the ids that its keys and events have until the next restart.

    Args:
        job: operator, policy, ports and blind spans; its rows are for `feed`.
        capacity: rows of the output buffer.
    """

    def __init__(self, job: Job, capacity: int = OUT_CAPACITY) -> None:
        """Begin without a carry."""
        self._job, self._capacity = job, capacity
        spans = np.array(job.blind, dtype=np.int64).reshape(-1, 2)
        self._blind = Blind(spans[:, 0].copy(), spans[:, 1].copy()) if job.blind else NO_BLIND
        self._keys: dict[str, int] = {ALONE: 0} if job.operator == "metronome" else {}
        self._groups: dict[tuple[str, str | None], int] = {}
        self._events: dict[tuple[str, str, str], int] = {}
        self._same: dict[tuple[object, ...], int] = {}
        self._came: dict[tuple[int, int], str] = {}
        self.waiting: list[Given] = []
        """Rows that the operator holds, in the order in which they came."""
        self._start({})

    def _start(self, carry: dict[str, Records]) -> None:
        kind = OPERATORS[self._job.operator]
        self._operator = kind(self._job.policy, carry, self._blind, self._capacity)
        self._operator.grow(len(self._keys), len(self._events) + 1)

    @property
    def next_due(self) -> int:
        """Give the instant at which the operator says that silence makes something leave."""
        return int(self._operator.next_due())

    def timers(self, since: int, until: int) -> float:
        """Give how many timers the operator says that silence may bring."""
        return float(self._operator.timers(since, until, 0))

    def restart(self) -> None:
        """Carry the records into a fresh operator, keys in another order and closed events forgotten."""
        carry, before, keys = {}, self._operator, list(self._keys)
        for part in self._operator.parts:
            records = self._operator.records[part.name]
            for name in part.instants & set(part.record.names or ()):
                readable(records[name].tolist())
            if self._job.operator == "heartbeat" and part.name == "state":
                never = records["newest"] == NULL
                assert not records["retired"][never].any(), "a key that was never heard is not retired"
            if part.per is Per.EVENT:
                carry[part.name] = self._kept_events(records)
            else:
                width = len(self._job.ports) if part.per is Per.PORT else 1
                carry[part.name] = records.reshape(-1, width)[::-1].ravel().copy()
        events = list(self._events)
        if not any(part.per is Per.EVENT for part in before.parts):
            self._events = {}
        self._keys = {key: i for i, key in enumerate(reversed(self._keys))}
        self._start(carry)
        if self._job.operator == "window":
            self._take_up_windows(before, keys)
        elif self._job.operator == "deduplicate":
            self._take_up_standing(before, keys, events)

    def _take_up_standing(self, before: Any, keys: list[str], events: list[tuple[str, str, str]]) -> None:  # noqa: ANN401 - an operator
        """Hand remembered rows on, by keys, values and events in another order, what is not carried left out."""
        known, same = before.remembered().copy(), list(self._same)
        self._same = {values: i for i, values in enumerate(reversed(same))}
        for row in known:
            readable(int(row[name]) for name in STANDING_INSTANTS)
            row["key"] = self._keys[keys[row["key"]]]
            row["same"] = self._same[same[row["same"]]]
            event = events[row["event"] - 1] if row["named"] else None
            row["event"] = 0 if event is None else self._events.setdefault(event, len(self._events) + 1)
            row["less"], row["more"] = 0, 0
        self._operator.resume(known)

    def _take_up_windows(self, before: Any, keys: list[str]) -> None:  # noqa: ANN401 - an operator
        """Hand the accumulators of open windows on, in the order of their age, groups in another order."""
        which, old, groups = before.open_windows(), before.sums, list(self._groups)
        which = which[np.argsort(old.of["age"][which], kind="stable")]
        self._groups = {group: i for i, group in enumerate(reversed(groups))}
        laid = sums(len(which), len(self._windows.measures))
        for column, known in zip(laid, old, strict=True):
            column[:] = known[which]
        laid.of["scope"] = [self._keys[keys[scope]] for scope in old.of["scope"][which]]
        laid.of["group"] = [self._groups[groups[group]] for group in old.of["group"][which]]
        self._operator.resume(laid)

    def _kept_events(self, records: Records) -> Records:
        kept = {event: i for event, i in self._events.items() if records[i]["status"]}
        self._events = {event: i for i, event in enumerate(kept, start=1)}
        return np.concatenate([records[:1], records[list(kept.values())]])

    def feed(self, rows: Sequence[Given]) -> list[Left]:
        """Take in rows as one block and give what leaves."""
        block = [*self.waiting, *rows]
        laid = self._laid(block)
        self._operator.grow(len(self._keys), len(self._events) + 1)
        if self._job.operator == "join":
            self._operator.match = self._matches(block)
        elif self._job.operator == "window":
            self._operator.values = self._values(block)
        elif self._job.operator == "deduplicate":
            self._operator.named = self._named(block, laid)
        left = [one for out in self._operator.feed(laid, len(self.waiting)) for one in self._left(out, block)]
        self.waiting = [block[i] for i in self._operator.held]
        return left

    def _laid(self, block: Sequence[Given]) -> Rows:
        for row in block:
            if row.kind not in STEERING:
                self._keys.setdefault(row.key, len(self._keys))
            if row.kind in EDGES:
                self._events.setdefault((row.key, row.port, row.event), len(self._events) + 1)
        columns = (
            [row.kind for row in block],
            [self._keys.get(row.key, 0) for row in block],
            [self._port(row.port) for row in block],
            [row.at for row in block],
            [row.place for row in block],
            [row.time for row in block],
            [row.end for row in block],
            [self._events.get((row.key, row.port, row.event), 0) for row in block],
        )
        kind, *longs = (np.array(column, dtype=np.int64) for column in columns)
        laid = Rows(kind.astype(np.int8), *longs)
        for column in laid:
            column.setflags(write=False)
        return laid

    @property
    def _windows(self) -> WindowPolicy:
        assert isinstance(self._job.policy, WindowPolicy)
        return self._job.policy

    def _matches(self, block: Sequence[Given]) -> Longs:
        """Number rows by key and what they are matched by; -1 where that is null."""
        known: dict[tuple[str, str], int] = {}
        found = [-1 if row.on is None else known.setdefault((row.key, row.on), len(known)) for row in block]
        return np.array(found, dtype=np.int64)

    def _named(self, block: Sequence[Given], laid: Rows) -> Named:
        """Number rows by key and what makes them the same; their identity is where they arrived."""
        self._came |= {(row.at, row.place): row.id for row in block if row.kind not in STEERING}
        assert isinstance(self._job.policy, DeduplicatePolicy)
        whole = not self._job.policy.on
        named = [(row.key, row.on, *((row.time, row.end, row.value) if whole else ())) for row in block]
        same = [self._same.setdefault(values, len(self._same)) for values in named]
        return Named(np.array(same, dtype=np.int64), laid.arrival, laid.place)

    def _values(self, block: Sequence[Given]) -> Measured:
        """Lay out what each measure is of: `count` counts rows, all others take the one value of a row."""
        measures = self._windows.parsed()
        group = [self._groups.setdefault((row.key, row.on), len(self._groups)) for row in block]
        shape = (len(measures), len(block))
        whole, real, given = np.zeros(shape, np.int64), np.zeros(shape), np.ones(shape, np.bool_)
        for m, (_, _, column) in enumerate(measures):
            if column is not None:
                given[m] = [row.value is not None for row in block]
                (real if column == REAL else whole)[m] = [row.value or 0 for row in block]
        kinds = np.array([measure for _, measure, _ in measures], dtype=np.int64)
        is_real = np.array([column == REAL for _, _, column in measures], dtype=np.bool_)
        return Measured(np.array(group, dtype=np.int64), kinds, is_real, whole, real, given)

    def _measured(self, a: int) -> tuple[str | None, tuple[Value, ...]]:
        """Give the group of an accumulator, and what it measured, as a table has it."""
        known = self._operator.sums
        _, group = list(self._groups)[known.of["group"][a]]
        found: list[Value] = []
        for m, (_, measure, column) in enumerate(self._windows.parsed()):
            count = int(known.counted[a, m])
            value = float(known.real[a, m]) if column == REAL else int(known.whole[a, m])
            if measure is Measure.COUNT:
                found.append(count)
            else:
                found.append(None if count <= 0 else value / count if measure is Measure.MEAN else value)
        return group, tuple(found)

    def _port(self, port: str) -> int:
        if port == IMPORTED:
            return 1
        if port in (REFUSED, TOO_OFTEN):
            return -1 if port == REFUSED else -2
        if not self._job.ports:
            return 0
        return self._job.ports.index(port) if port in self._job.ports else -1

    def _left(self, out: Records, block: Sequence[Given]) -> list[Left]:
        keys = list(self._keys)
        found = []
        for row in out:
            readable(row[name].item() for name in INSTANT_COLUMNS if name != "due_at" or not self._relates)
            found += self._related(row, block, _leavings(row, block, keys))
        return found

    @property
    def _relates(self) -> bool:
        """Say whether `due_at` names a row or an accumulator."""
        return self._job.operator in {"join", "window", "deduplicate"}

    def _related(self, row: np.void, block: Sequence[Given], found: list[Left]) -> list[Left]:
        """Say of a result what it was made of."""
        named = int(row["due_at"])
        if not self._relates or named == NULL:
            return found
        (left,) = found
        if self._job.operator == "deduplicate":
            stood = self._operator.known[named]
            return [left._replace(other=self._came[int(stood["landed_at"]), int(stood["landed_place"])])]
        if self._job.operator == "join":
            return [left._replace(due=NULL, other=block[named].id)]
        group, values = self._measured(named)
        return [left._replace(due=NULL, on=group, values=values)]


def _leavings(row: np.void, block: Sequence[Given], keys: list[str]) -> list[Left]:
    """Give the row that leaves and the line of the ledger that one record stands for."""
    src, fate, reason = int(row["src"]), Fate(row["fate"]), Reason(row["reason"])
    given = block[src] if src >= 0 else None
    key, kind, arrival = keys[row["key"]], Kind(row["kind"]), int(row["arrival"])
    place, time, end = int(row["place"]), int(row["event_time"]), int(row["event_end"])
    cti, name = (int(row["cti"]), int(row["cti_arrival"]), int(row["cti_place"])), None if given is None else given.id
    found = []
    assert src >= -1, f"a row that was made stands for none of the input, -1; it says {src}"
    assert reason is not Reason.NONE or cti == (NULL, NULL, NULL), f"no CTI governed a row without a reason: {cti}"
    if fate in (Fate.MAIN, Fate.SIDE):
        stream = MAIN if fate is Fate.MAIN else SIDE
        found.append(Left(stream, key, kind, name, arrival, place, time, end, int(row["due_at"])))
    if reason is not Reason.NONE:
        action = {Fate.SIDE: "diverted", Fate.DROPPED: "dropped"}.get(fate, "noted")
        facts = Given(kind, "", "", "", arrival, place, time, end, "") if given is None else given
        action = "adjusted" if fate is Fate.MAIN and reason in MOVED else action
        new = (time, end) if action == "adjusted" else (NULL, NULL)
        entry = (LEDGER, key, kind, name, facts.at, facts.place, facts.time, facts.end, NULL, reason, action)
        found.append(Left(*entry, *new, *cti))
    return found


class Outcome(NamedTuple):
    """What a job came to: what left, by stream and key in order, and the ids of the rows still held."""

    left: dict[tuple[str, str], list[Left]]
    held: tuple[str, ...]

    @property
    def main(self) -> dict[str, list[Left]]:
        """Give the main stream of each key."""
        return {key: rows for (stream, key), rows in self.left.items() if stream == MAIN}

    @property
    def all(self) -> list[Left]:
        """Give everything that left, in no particular order of keys."""
        return [row for rows in self.left.values() for row in rows]


class Between(Enum):
    """What happens between two blocks."""

    NOTHING = "nothing"
    RESTART = "restart"
    """A fresh operator takes up the carry."""


def run(
    job: Job, cuts: Iterable[int] = (), between: Between = Between.NOTHING, capacity: int = OUT_CAPACITY
) -> Outcome:
    """Run a job with its rows cut before the given positions.

    Args:
        job: what to do.
        cuts: positions in the rows; each begins a new block.
        between: what happens at each cut.
        capacity: rows of the output buffer.
    """
    drive, left = Drive(job, capacity), []
    inner = sorted({at for at in cuts if 0 < at < len(job.rows)})
    for start, end in pairwise([0, *inner, len(job.rows)]):
        if start and between is Between.RESTART:
            drive.restart()
        left += drive.feed(job.rows[start:end])
    return Outcome(by_stream(left), tuple(row.id for row in drive.waiting))


def by_stream(left: Iterable[Left]) -> dict[tuple[str, str], list[Left]]:
    """Sort rows into streams and keys, each in its order."""
    found: dict[tuple[str, str], list[Left]] = {}
    for row in left:
        found.setdefault((row.stream, row.key), []).append(row)
    return dict(sorted(found.items()))
