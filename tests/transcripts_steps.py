"""The steps of a transcript, read from YAML into rows and expectations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pipelines.operators.rows import INFINITY, MAX_TIME, MIN_TIME, NULL, Kind, Reason
from tests.transcripts_rows import IMPORTED, LEDGER, MAIN, REFUSED, SIDE, Given, Left, Step

Item = Mapping[str, Any]

ACTIONS = {"dropped", "diverted", "adjusted", "noted"}
STEP = {"in", "out", "side", "ledger", "held"}
ROW = {"id", "key", "port", "at", "time", "end", "edge", "event", "timer", "cti", "import", "reading", "final"}
ROW |= {"on", "value", "holds"}
LEAVES = {"id", "key", "at", "time", "end", "due", "timer", "cti", "with", "window", "on", "values"}
RELEASING = {"merge", "union", "join", "window"}
"""Operators whose rows leave because of the last row of a step."""
ENTRY = {"id", "key", "at", "reason", "action", "cti", "of"}


def ticks(value: object, unit: int) -> int:
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


def only(item: object, known: set[str], what: str) -> None:
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


class Reader:
    """Reads the steps of one document in order."""

    def __init__(self, operator: str, unit: int, ports: tuple[str, ...]) -> None:
        self._operator, self._unit, self._ports = operator, unit, ports
        self._rows: dict[str, Given] = {}
        self._last: Given | None = None
        self._places = _Places()
        self._promised: dict[tuple[str, int], Left] = {}

    def step(self, item: object) -> Step:
        """Read the next step.

        Raises:
            ValueError, TypeError, KeyError: it is not as the README says.
        """
        only(item, STEP, "step")
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
        only(item, ROW, "row")
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
                at = ticks(item[word], self._unit)
                return Given(kind, f"{word} {item[word]}", "", "", at, 0, NULL, NULL, "")
        at = ticks(item["at"], self._unit) if "at" in item else self._following()
        word, kind, shown = self._kind(item)
        event = str(item.get("event", item["id"])) if kind in (Kind.START, Kind.END) else ""
        port = IMPORTED if word == "import" else str(item.get("port", ""))
        key, place = str(item.get("key", "k")), self._places.next(at, "input")
        end = ticks(item.get("end"), self._unit)
        port = port if item.get("holds", True) else REFUSED
        row = Given(kind, shown, key, port, at, place, ticks(item[word], self._unit), end, event)
        return row._replace(on=item.get("on", ""), value=item.get("value"))

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
        only(facts, LEAVES, "row that leaves")
        assert self._last is not None
        released = self._last.at
        if "id" in facts:
            row = self._row(facts["id"])
            released = released if self._operator in RELEASING else row.at
            whole = self._operator in {"union", "join", "alter_duration"} and row.kind is Kind.START
            left = Left(stream, row.key, Kind.DATA if whole else row.kind, row.id, released, 0, row.time, row.end)
            if "with" in facts:
                left = left._replace(other=self._row(facts["with"]).id)
        elif "window" in facts:
            start = ticks(facts["window"], self._unit)
            left = Left(stream, str(facts.get("key", "k")), Kind.DATA, None, released, 0, start, NULL)
            group = facts.get("on", "")
            left = left._replace(on=None if group is None else str(group), values=tuple(_many(facts["values"])))
        else:
            word, kind = ("timer", Kind.TIMER) if "timer" in facts else ("cti", Kind.CTI)
            time = ticks(facts[word], self._unit)
            left = Left(stream, str(facts.get("key", "k")), kind, None, released, 0, time, NULL)
        left = left._replace(
            at=ticks(facts["at"], self._unit) if "at" in facts else left.at,
            time=ticks(facts["time"], self._unit) if "time" in facts else left.time,
            end=ticks(facts["end"], self._unit) if "end" in facts else left.end,
        )
        if left.kind is Kind.TIMER and left.id is None:
            left = left._replace(due=ticks(facts["due"], self._unit) if "due" in facts else left.at)
        left = left._replace(place=self._places.next(left.at, stream, left.key))
        if left.kind is Kind.CTI:
            self._promised[left.key, left.time] = left
        return left

    def _governing(self, row: Given, time: int) -> Left | None:
        """Find the CTI at a time that bound a row: one that left, or, of an operator with sides, one that came in."""
        if self._operator not in RELEASING:
            return self._promised.get((row.key, time))
        came = (each for each in self._rows.values() if each.kind is Kind.CTI and each.time == time)
        mine = (each for each in came if (each.key, each.port) == (row.key, row.port))
        return next((Left(MAIN, row.key, Kind.CTI, None, each.at, each.place, time, NULL) for each in mine), None)

    def _entry(self, item: object, leaving: list[Left]) -> Left:
        only(item, ENTRY, "ledger line")
        assert isinstance(item, Mapping)
        reason, action = Reason[item["reason"].upper()], item["action"]
        if action not in ACTIONS:
            raise ValueError(f"{action!r} is no action; actions are {', '.join(sorted(ACTIONS))}")
        if "id" not in item:
            at = ticks(item["at"], self._unit)
            return Left(LEDGER, item.get("key", "k"), Kind.TIMER, None, at, NULL, NULL, NULL, NULL, reason, action)
        row = self._row(item["id"])
        entry = Left(LEDGER, row.key, row.kind, row.id, row.at, row.place, row.time, row.end, NULL, reason, action)
        if "of" in item:
            entry = entry._replace(other=self._row(item["of"]).id)
        if action == "adjusted":
            moved = next((left for left in leaving if left.id == row.id), None)
            if moved is None:
                raise ValueError(f"{row.id} was adjusted, so it must leave in this step")
            entry = entry._replace(new_time=moved.time, new_end=moved.end)
        if "cti" in item:
            promise = self._governing(row, ticks(item["cti"], self._unit))
            if promise is None:
                raise ValueError(f"no CTI at {item['cti']} left before")
            entry = entry._replace(cti=promise.time, cti_at=promise.at, cti_place=promise.place)
        return entry
