"""Transcripts: behaviour as documents, read into rows and expectations that any engine can run.

`tests/transcripts/README.md` says how a document is written. What comes out of here is neutral: integers, names, policy
objects; no operator, no engine. `neutral()` gives (name, operator, policy, rows, expected) of every document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from pipelines.operators import advance_time, heartbeat, merge
from pipelines.operators.advance_time import AdvanceTimePolicy
from pipelines.operators.heartbeat import HeartbeatPolicy
from pipelines.operators.merge import MergePolicy
from pipelines.operators.rows import INFINITY, MAX_TIME, MIN_TIME, NULL, Kind, PolicyError, Reason, Shape

Policy = HeartbeatPolicy | MergePolicy | AdvanceTimePolicy
Item = Mapping[str, Any]

FOLDER = Path(__file__).parent / "transcripts"
UNITS = {"tick": 1, "ms": 1_000, "s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
POLICIES: dict[str, type[Policy]] = {
    "heartbeat": HeartbeatPolicy,
    "merge": MergePolicy,
    "advance_time": AdvanceTimePolicy,
}
CHOICES: dict[tuple[str, str], type[IntEnum]] = {
    ("merge", "at_end"): merge.AtEnd,
    ("advance_time", "at_end"): advance_time.AtEnd,
    ("advance_time", "late"): advance_time.Late,
    ("advance_time", "late_end"): advance_time.LateEnd,
    ("advance_time", "shape"): Shape,
}
SPANS = {"interval", "slack", "max_ahead", "expire", "duration", "delay"}
ACTIONS = {"dropped", "diverted", "adjusted", "noted"}
MAIN, SIDE, LEDGER = "main", "side", "ledger"
IMPORTED = "imported"
"""The port of CTIs that come from another stream."""
DOCUMENT = {"name", "operator", "unit", "policy", "blind", "steps", "refused", "warns", "fails"}
STEP = {"in", "out", "side", "ledger", "held"}
ROW = {"id", "key", "port", "at", "time", "end", "edge", "event", "timer", "cti", "import", "reading", "final"}
LEAVES = {"id", "key", "at", "time", "end", "due", "timer", "cti"}
ENTRY = {"id", "key", "at", "reason", "action", "cti"}


class DocumentError(ValueError):
    """A document that cannot be run: file, line where it begins, and what is wrong."""

    def __init__(self, file: str, line: int, wrong: str) -> None:
        """Keep the facts as attributes."""
        super().__init__(file, line, wrong)
        self.file, self.line, self.wrong = file, line, wrong

    def __str__(self) -> str:
        """Say it in one line."""
        return f"{self.file}:{self.line}: {self.wrong}"


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


def neutral(folder: Path = FOLDER) -> Iterator[tuple[str, str, Policy, tuple[Given, ...], tuple[Left, ...]]]:
    """Give (name, operator, policy, rows, expected) of every document that has rows.

    Documents of one policy, blind spans and end may share a flow: put the name before the key.
    """
    for transcript in transcripts(folder):
        if transcript.policy is not None and transcript.steps:
            yield transcript.name, transcript.operator, transcript.policy, transcript.rows, transcript.expected


@lru_cache
def transcripts(folder: Path = FOLDER) -> tuple[Transcript, ...]:
    """Read every document of a folder, not of its subfolders.

    Raises:
        DocumentError: a document is not as the README says, or two have one name.
    """
    found: dict[str, Transcript] = {}
    for path in sorted(folder.glob("*.yaml")):
        for line, text in documents(path):
            transcript = read(text, path.name, line)
            if transcript.name in found:
                raise DocumentError(path.name, line, f"the name {transcript.name!r} is taken")
            found[transcript.name] = transcript
    return tuple(found.values())


def documents(path: Path) -> Iterator[tuple[int, str]]:
    """Give each document of a file with the number of its first line."""
    line = 1
    for text in re.split(r"^---\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE):
        if re.search(r"^[^#\s]", text, flags=re.MULTILINE):
            yield line, text
        line += text.count("\n") + 1


def read(text: str, file: str, line: int) -> Transcript:
    """Read one document.

    Raises:
        DocumentError: it is not as the README says.
    """
    try:
        document = YAML(typ="safe").load(text)
        _only(document, DOCUMENT, "document")
        return _transcript(document, file, line)
    except (YAMLError, KeyError, TypeError, ValueError) as problem:
        wrong = f"{problem} is missing" if isinstance(problem, KeyError) else str(problem)
        raise DocumentError(file, line, wrong) from problem


def _transcript(document: Item, file: str, line: int) -> Transcript:
    operator, unit = document["operator"], UNITS[document.get("unit", "tick")]
    settings = document.get("policy") or {}
    ports = tuple(settings.get("ports", ()))
    blank = Transcript(
        name=document["name"],
        file=file,
        line=line,
        operator=operator,
        policy=None,
        ports=ports,
        blind=tuple((_ticks(start, unit), _ticks(end, unit)) for start, end in document.get("blind", ())),
        refused=document.get("refused", ""),
        warns=document.get("warns", ""),
        fails=document.get("fails", ""),
    )
    if "steps" not in document and not blank.refused and not blank.warns:
        raise ValueError("a document has steps, or says what is refused or warned of")
    try:
        blank = replace(blank, policy=_policy(operator, settings, unit))
    except PolicyError as error:
        if blank.refused and blank.refused in str(error):
            return blank
        raise
    if blank.refused:
        raise ValueError(f"expected a refusal with {blank.refused!r}, and the policy is allowed")
    reader = _Reader(operator, unit, ports)
    return replace(blank, steps=tuple(reader.step(step) for step in document.get("steps", ())))


def _policy(operator: str, settings: Item, unit: int) -> Policy:
    values: dict[str, Any] = {}
    for name, value in settings.items():
        if (operator, name) in CHOICES:
            values[name] = CHOICES[operator, name][value.upper()]
        elif name == "ports":
            values[name] = len(value)
        elif name == "acceleration":
            values[name] = tuple(value)
        else:
            values[name] = None if value == "off" else _ticks(value, unit) if name in SPANS else value
    return POLICIES[operator](**values)


def _ticks(value: object, unit: int) -> int:
    """Read an instant or a span: a number of units, null, `inf`, or `MIN` or `MAX` and a number of ticks."""
    if value is None:
        return NULL
    if isinstance(value, int):
        return value * unit
    if value == "inf":
        return INFINITY
    edge = re.fullmatch(r"(MIN|MAX)([+-]\d+)?", str(value))
    if edge is None:
        raise ValueError(f"{value!r} is no time: write a whole number of units, null, inf, MIN+3 or MAX-3")
    return (MIN_TIME if edge[1] == "MIN" else MAX_TIME) + int(edge[2] or 0)


def _only(item: object, known: set[str], what: str) -> None:
    if not isinstance(item, Mapping):
        raise TypeError(f"a {what} is a mapping, not {item!r}")
    unknown = sorted(item.keys() - known)
    if unknown:
        raise ValueError(f"unknown {what} key {', '.join(unknown)}; known are {', '.join(sorted(known))}")


def _many(value: object) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


class _Places:
    """Numbers rows of one arrival from 1, for each stream and key."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, ...], tuple[int, int]] = {}

    def next(self, arrival: int, *stream: str) -> int:
        last, place = self._last.get(stream, (NULL, 0))
        self._last[stream] = (arrival, place + 1 if last == arrival else 1)
        return self._last[stream][1]


class _Reader:
    """Reads the steps of one document in order."""

    def __init__(self, operator: str, unit: int, ports: tuple[str, ...]) -> None:
        self._operator, self._unit, self._ports = operator, unit, ports
        self._rows: dict[str, Given] = {}
        self._last: Given | None = None
        self._places = _Places()
        self._promised: dict[tuple[str, int], Left] = {}

    def step(self, item: object) -> Step:
        _only(item, STEP, "step")
        assert isinstance(item, Mapping)
        rows = tuple(self._given(row) for row in _many(item.get("in")))
        if not rows:
            raise ValueError("a step has at least one row of input")
        left = [self._left(MAIN, row) for row in _many(item.get("out"))]
        left += [self._left(SIDE, row) for row in _many(item.get("side"))]
        left += [self._entry(entry, left) for entry in _many(item.get("ledger"))]
        held = tuple(str(name) for name in _many(item.get("held")))
        for name in held:
            self._row(name)
        return Step(rows=rows, left=tuple(left), held=held)

    def _given(self, item: object) -> Given:
        _only(item, ROW, "row")
        assert isinstance(item, Mapping)
        row = self._laid(item)
        last = self._last
        if last is not None and last.kind is Kind.FINAL and row.kind is not Kind.READING:
            raise ValueError(f"{row.id} comes after the end")
        if last is not None and row.at < last.at + (row.kind is Kind.READING):
            raise ValueError(f"{row.id} arrives before {last.id}, the row above it")
        if row.id in self._rows:
            raise ValueError(f"the id {row.id!r} is taken")
        self._rows[row.id] = self._last = row
        return row

    def _laid(self, item: Item) -> Given:
        for word, kind in (("reading", Kind.READING), ("final", Kind.FINAL)):
            if word in item:
                at = _ticks(item[word], self._unit)
                return Given(kind, f"{word} {item[word]}", "", "", at, 0, NULL, NULL, "")
        at = _ticks(item["at"], self._unit) if "at" in item else self._following()
        word, kind, shown = self._kind(item)
        event = str(item.get("event", item["id"])) if kind in (Kind.START, Kind.END) else ""
        port = IMPORTED if word == "import" else str(item.get("port", ""))
        key, place = str(item.get("key", "k")), self._places.next(at, "input")
        end = _ticks(item.get("end"), self._unit)
        return Given(kind, shown, key, port, at, place, _ticks(item[word], self._unit), end, event)

    def _kind(self, item: Item) -> tuple[str, Kind, str]:
        """Give the word that holds a row's time, its kind, and its id."""
        for word, kind in (("timer", Kind.TIMER), ("cti", Kind.CTI), ("import", Kind.CTI)):
            if word in item:
                return word, kind, str(item.get("id", f"{word} {item[word]}"))
        kind = {"data": Kind.DATA, "start": Kind.START, "end": Kind.END}[item.get("edge", "data")]
        return "time", kind, f"{item['id']}/end" if kind is Kind.END else str(item["id"])

    def _following(self) -> int:
        return 0 if self._last is None else self._last.at + self._unit

    def _row(self, name: object) -> Given:
        if str(name) not in self._rows:
            raise ValueError(f"no row {name!r} came in before; ids are {', '.join(self._rows)}")
        return self._rows[str(name)]

    def _left(self, stream: str, item: object) -> Left:
        facts = item if isinstance(item, Mapping) else {"id": item}
        _only(facts, LEAVES, "row that leaves")
        assert self._last is not None
        released = self._last.at
        if "id" in facts:
            row = self._row(facts["id"])
            released = released if self._operator == "merge" else row.at
            left = Left(stream, row.key, row.kind, row.id, released, 0, row.time, row.end)
        else:
            word, kind = ("timer", Kind.TIMER) if "timer" in facts else ("cti", Kind.CTI)
            time = _ticks(facts[word], self._unit)
            left = Left(stream, str(facts.get("key", "k")), kind, None, released, 0, time, NULL)
        changes = {name: _ticks(facts[name], self._unit) for name in ("at", "time", "end") if name in facts}
        left = left._replace(**changes)
        if left.kind is Kind.TIMER and left.id is None:
            left = left._replace(due=_ticks(facts["due"], self._unit) if "due" in facts else left.at)
        left = left._replace(place=self._places.next(left.at, stream, left.key))
        if left.kind is Kind.CTI:
            self._promised[left.key, left.time] = left
        return left

    def _entry(self, item: object, leaving: list[Left]) -> Left:
        _only(item, ENTRY, "ledger line")
        assert isinstance(item, Mapping)
        reason, action = Reason[item["reason"].upper()], item["action"]
        if action not in ACTIONS:
            raise ValueError(f"{action!r} is no action; actions are {', '.join(sorted(ACTIONS))}")
        if "id" not in item:
            at = _ticks(item["at"], self._unit)
            return Left(LEDGER, item.get("key", "k"), Kind.TIMER, None, at, NULL, NULL, NULL, NULL, reason, action)
        row = self._row(item["id"])
        entry = Left(LEDGER, row.key, row.kind, row.id, row.at, row.place, row.time, row.end, NULL, reason, action)
        if action == "adjusted":
            moved = next((left for left in leaving if left.id == row.id), None)
            if moved is None:
                raise ValueError(f"{row.id} was adjusted, so it must leave in this step")
            entry = entry._replace(new_time=moved.time, new_end=moved.end)
        if "cti" in item:
            promise = self._promised.get((row.key, _ticks(item["cti"], self._unit)))
            if promise is None:
                raise ValueError(f"no CTI at {item['cti']} left before")
            entry = entry._replace(cti=promise.time, cti_at=promise.at, cti_place=promise.place)
        return entry
