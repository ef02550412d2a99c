"""The ledger in words: what happened to a row, and which promise it broke."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pipelines.engine.columnar.columns import canonical_json, instant_tick
from pipelines.flows.model import BROKEN
from pipelines.jobs.facts.causes import HIDDEN, causes, place_of
from pipelines.jobs.facts.pages import table_columns
from pipelines.jobs.text.moments import EPOCH, NOTHING, TICK
from pipelines.jobs.text.tables import plain
from pipelines.operators.plain_words import spoken
from pipelines.operators.rows import MAX_TIME, Reason

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator

    from pipelines.jobs.runs.known import KnownRun

Line = dict[str, Any]
REASONS = {
    "late": "starts before the newest CTI",
    "late_end": "ends before the newest CTI",
    "start_dropped": "the end of an event whose start was dropped",
    "start_moved": "the end of an event whose start was moved, which it now carries",
    "start_diverted": "the end of an event whose start was set aside, and took it along",
    "orphan_end": "the end of an event whose start never came, or which has ended",
    "id_reused": "the start of an event whose id was open already",
    "max_ahead": "stamped further ahead of its arrival than max_ahead allows, so its time counts for nothing",
    "max_catch_up": "would announce more timers at once than max_catch_up allows, so its time does not count",
    "unknown_port": "belongs to no declared port",
    "expired": "the key was silent for so long (expire) that its timers stopped",
    "empty": "its end is not after its start",
    "null_time": "has no time, or no end, so no promise can be held against it",
    "after_end": "came in after the stream had ended",
    "late_cti": "a CTI that would not move time forward",
    "no_arrival": "never `{arrival}`: no arrival",
    "null_key": "has no key, so no operator can take it",
    "unknown_edge": "does not say what it is: data (of an edge: start or end), cti or punctuation",
    "punctuation": "is a window punctuation: a unit of work is complete; it is no row",
    "unreadable_time": "has a time that cannot be read, and is without it",
    "unreadable_row": "cannot be read; its bytes stand in `raw`",
    "unreadable_file": "is a file that cannot be read; its first bytes stand in `raw`",
    "file_changed": "is a file that changed after it had landed; its rows are not landed again",
    "same_content": "is a file with the content of another one, so its rows were not landed again",
    "unfinished_line": "is a line whose end never came, for the connection broke; its bytes stand in `raw`",
    "disconnected": "nobody listened to the source for a while, so what it sent then is not here",
    "no_value": "a row of a topic without a value (a tombstone)",
    "rows_removed": "a commit of a Delta table that takes rows away; none of those that it adds lands",
    "versions_lost": "commits of a Delta table, or files of theirs, that are gone, and that somebody gave up",
    "offsets_lost": "rows that the topic, or the spool of a socket, no longer has, and that somebody gave up",
    "filtered": "a filter's condition was not true of it",
    "begun_anew": "waited in its stream when an apply began that one anew, or left it out",
    "left_open": "a window that stood open, or a row that could still be paired, when an apply began its stream anew",
    "max_windows": "lasts over more windows than max_windows allows, so it is in none",
    "out_of_time": "would leave the readable years, 1 to 9999, by what was to be done to its time",
    "duration_set": "the end of an event whose duration was set when it started",
    "duplicate": "is the same as a row that left before it",
    "null_dispatch": "has a null where instances are told apart by a value, so it went to the first",
    "quarantined": "breaks a check of its stream that each row must keep",
    "loop_limit": "went round a loop as often as it may and would have gone on",
    "buffers_lost": "sequences that all three buffers lost before a commit covered them; the source is read again",
    "unknown_field": "has a field that nobody declared, which is left out",
    "new_column": "a column that nobody declared; it landed beside the others, and no stream reads it",
    "missing_column": "lacks a declared column; its bytes stand in `raw`",
}
NOTES = frozenset(
    {
        *("punctuation", "disconnected", "new_column", "same_content", "buffers_lost", "offsets_lost"),
        *("versions_lost", "expired", "left_open"),
    }
)
"""Reasons whose lines stand for no row, though they tell something in `row` or `raw`."""
ACTIONS = {
    "dropped": "stands in the ledger alone",
    "diverted": "kept unchanged in {side}",
    "adjusted": "moved, and passed on",
    "noted": "passed on",
}
KNOWN_REASONS = frozenset(REASONS) | {reason.name.lower() for reason in Reason if reason}
EVENT, MADE = ("event_time", "event_end"), ("new_time", "new_end")
"""Columns of an event's lifetime as it came, and as it left where it was moved."""
PAYLOAD_SHOWN = 3
LABEL = 10
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT.*Z")


class Accounts:
    """Tells the lines of one run's ledger."""

    def __init__(self, known: KnownRun) -> None:
        """Take the run, whose flow names the columns."""
        self._known, self._moments = known, known.moments
        columns = dict.fromkeys(name for table in known.tables for name in table_columns(known.root, table))
        self._places = {name: place for place, name in enumerate(columns)}

    def columns(self, rows: pa.Table) -> dict[str, list[str]]:
        """Give the columns of a table for people, a text a line.

        Args:
            rows: lines of the ledger, with all its columns.
        """
        lines = _with_ticks(rows).to_pylist()
        return {
            "when": [self._moments.text(_instant(line)) for line in lines],
            "where": [line["stream"] for line in lines],
            "key": [self._key(line) for line in lines],
            "row": [self._row(line) for line in lines],
            "what happened": [self.sentence(line) for line in lines],
        }

    def sentence(self, line: Line) -> str:
        """Say what happened to one row.

        Args:
            line: its ledger line, instants in ticks.
        """
        why = getattr(self, f"_{line['reason']}", self._otherwise)(line)
        return f"{why}; {self._done(line)}"

    def is_of(self, line: Line, key: str) -> bool:
        """Say whether a line is of a key, whose values somebody wrote between commas.

        Args:
            line: its columns `stream`, `key`, `row` and `source` suffice.
            key: as typed.
        """
        values = [value if isinstance(value, str) else canonical_json(value) for value in self._keys(line).values()]
        return values == [key] or (len(values) > 1 and values == [part.strip() for part in key.split(",")])

    def explained(self, rows: pa.Table) -> tuple[list[str], list[str | None]]:
        """Give the sentence of each line, and in canonical JSON the row that caused the CTI which governed it."""
        lines = _with_ticks(rows).to_pylist()
        found = causes(self._known, lines)
        told = [place and found[place] for place in map(place_of, lines)]
        return [self.sentence(line) for line in lines], [None if row is None else canonical_json(row) for row in told]

    def told_at_length(self, rows: pa.Table) -> Iterator[str]:
        """Tell each line in a paragraph: the event, the promise it broke and its cause, what was done."""
        lines = _with_ticks(rows).to_pylist()
        found = causes(self._known, lines)
        for line in lines:
            parts = [("event", self._event(line)), ("landed", self._landed(line)), ("came in", self._came(line))]
            place = place_of(line)
            if place is not None:
                parts += [("promise", self._promise(line)), ("cause", self._cause(found[place]))]
            parts += [("so", self.sentence(line))]
            head = " · ".join(filter(None, (line["stream"], line["reason"], line["action"], self._row(line))))
            yield "\n".join([head, *(f"  {label:<{LABEL}}{text}" for label, text in parts if text)])

    def _event(self, line: Line) -> str:
        key = self._key(line)
        of = "" if key == NOTHING else f" of {key}"
        if line["kind"] == "data":
            lasts = line["event_end"] is not None
            what, when = (
                ("an interval", self._lifetime(line["event_time"], line["event_end"]))
                if lasts
                else (
                    "a point",
                    self._moments.brief(line["event_time"]),
                )
            )
            return f"{what}{of}, {when}"
        if line["kind"] == "end":
            return f"an end edge{of}, of {self._lifetime(line['event_time'], line['event_end'])}"
        named = {"start": "a start edge", "timer": "a timer", "cti": "a CTI"}.get(str(line["kind"]), "a note")
        return f"{named}{of}, {self._moments.brief(line['event_time'])}"

    def _landed(self, line: Line) -> str:
        if line["landed_at"] is None:
            return ""
        place = "" if line["landed_place"] is None else f", place {line['landed_place']}"
        return f"{self._moments.brief(line['landed_at'])}{place}, from {line['source'] or 'its source'}"

    def _came(self, line: Line) -> str:
        if line["arrival"] is None:
            return ""
        place = "" if line["place"] is None else f", place {line['place']}"
        return f"{self._moments.brief(line['arrival'])}{place}, at {line['stream']}"

    def _promise(self, line: Line) -> str:
        made = "made before the key was heard"
        if line["cti_arrival"] is not None:
            made = f"made {self._moments.brief(line['cti_arrival'])}, place {line['cti_place']}"
        return f"the CTI {self._moments.brief(line['cti'])}, {made}"

    def _cause(self, row: Line | None) -> str:
        if row is None:
            return "a row that is not in the stream: it was dropped, set aside, or the stream ended there"
        if row["kind"] == "cti":
            return "the CTI itself, which came with the input"
        payload = {name: value for name, value in row.items() if name not in HIDDEN}
        shown = [f"{name} {plain(value)}" for name, value in payload.items() if isinstance(value, str | int | float)][
            :PAYLOAD_SHOWN
        ]
        stamped, came = (self._moments.brief(_tick(row[name])) for name in ("event_time", "arrival"))
        what = {"data": "row", "start": "start edge"}.get(row["kind"], row["kind"])
        return ", ".join([f"the {what} stamped {stamped}, which came {came}, place {row['place']}", *shown])

    def _keys(self, line: Line) -> Line:
        """Give the key of a line's row, its columns in the order in which the flow names them."""
        found = _object(line["key"]) or _object(line["row"])
        stream = self._known.stream_of(line["stream"])
        by = (self._known.streams[stream]["by"] if stream else ()) or self._key_columns(line)
        return {name: found[name] for name in by if name in found}

    def _key(self, line: Line) -> str:
        values = self._keys(line).values()
        return " ".join(NOTHING if value is None else plain(value) for value in values) or NOTHING

    def _key_columns(self, line: Line) -> tuple[str, ...]:
        source = self._known.sources.get(str(line["source"]))
        return tuple(source["key"]) if source else ()

    def _row(self, line: Line) -> str:
        """Show the first payload columns that are neither key nor time, in the order in which they landed."""
        known = {*_object(line["key"]), *self._key_columns(line)}
        values = sorted(_object(line["row"]).items(), key=lambda item: self._places.get(item[0], len(self._places)))
        shown = [
            f"{name} {plain(value)}"
            for name, value in values
            if name not in known and value is not None and not (isinstance(value, str) and INSTANT.fullmatch(value))
        ]
        return ", ".join(shown[:PAYLOAD_SHOWN]) + (", …" if len(shown) > PAYLOAD_SHOWN else "")

    def _done(self, line: Line) -> str:
        if line["action"] == "adjusted" and line["new_time"] is not None:
            was, now = (self._lifetime(line[time], line[end]) for time, end in (EVENT, MADE))
            return f"its lifetime {was} became {now}, and it passed on"
        if line["reason"] in NOTES or (line["row"] is None and line["raw"] is None):
            return "a note, which stands for no row"
        return ACTIONS.get(line["action"], str(line["action"])).format(side=self._known.aside(line["stream"]))

    def _lifetime(self, start: int | None, end: int | None) -> str:
        """Say from when until when an event lasts, the day once where both lie on one."""
        first, last = self._moments.brief(start), self._moments.brief(end)
        if end is None:
            return f"from {first} on"
        return f"{first} until {last[11:] if first[:10] == last[:10] else last}"

    def _otherwise(self, line: Line) -> str:
        reason = str(line["reason"])
        return REASONS.get(reason, reason.replace("_", " "))

    def _late(self, line: Line) -> str:
        return self._broken(line, line["event_time"], "stamped")

    def _late_end(self, line: Line) -> str:
        return self._broken(line, line["event_end"], "ends")

    def _broken(self, line: Line, instant: int | None, verb: str) -> str:
        if instant is None or line["cti"] is None:
            return self._otherwise(line)
        endless = line["cti"] > MAX_TIME
        ahead = "" if endless else f"{spoken(line['cti'] - instant)} "
        behind = f"{ahead}before the CTI {'at infinity' if endless else self._near(line, 'cti')}"
        told = f"{verb} {self._moments.brief(instant)}, {behind}"
        if line["cti_arrival"] is None or line["arrival"] is None:
            return told
        after = line["arrival"] - line["cti_arrival"]
        came = f"{spoken(after)} after" if after else "in the instant of"
        return f"{told}; arrived at {line['stream']} {came} that promise, made at {self._near(line, 'cti_arrival')}"

    def _near(self, line: Line, name: str) -> str:
        """Say an instant without its day where that is the day of the row's own time."""
        beside = line["event_time"] if line["event_time"] is not None else line["landed_at"]
        text = self._moments.brief(line[name])
        return text[11:] if beside is not None and text[:10] == self._moments.text(beside)[:10] else text

    def _no_arrival(self, line: Line) -> str:
        source = self._known.sources.get(str(line["source"]), {})
        column = source.get("arrival", "arrived")
        due = (
            ""
            if line["event_time"] is None
            else f", {source.get('time', 'stamped')} {self._moments.brief(line['event_time'])}"
        )
        return f"never {column}: no arrival{due}"

    def _max_ahead(self, line: Line) -> str:
        if line["event_time"] is None or line["arrival"] is None:
            return self._otherwise(line)
        ahead, bound = line["event_time"] - line["arrival"], self._policy(line, "max_ahead")
        allowed = f"max_ahead allows {spoken(bound)}" if isinstance(bound, int) else "more than max_ahead allows"
        stamped = f"stamped {self._moments.brief(line['event_time'])}, {spoken(ahead)} ahead of its arrival"
        kept = "so its time does not count" if line["action"] == "noted" else "so it moves no port"
        return f"{stamped}; {allowed}, {kept}"

    def _unknown_port(self, line: Line) -> str:
        ports = (self._known.streams.get(line["stream"]) or {}).get("ports") or {}
        column, values = ports.get("column"), ports.get("values") or ()
        if not column:
            return self._otherwise(line)
        came = _object(line["row"]).get(column)
        return f"{column} {plain(came)} is no port; there are {', '.join(map(str, values))}"

    def _null_key(self, line: Line) -> str:
        columns = ", ".join(self._key_columns(line)) or "its key columns"
        return f"no key: one of {columns} is empty, so no operator can take it"

    def _unreadable_time(self, line: Line) -> str:
        raw = line["raw"]
        told = f": {plain(raw.decode(errors='replace'))}" if isinstance(raw, bytes) else ""
        return f"{REASONS['unreadable_time']}{told}"

    def _duplicate(self, line: Line) -> str:
        if not isinstance(line["raw"], bytes):
            return self._otherwise(line)
        stood = json.loads(line["raw"])
        if stood["landed_at"] is None:
            return self._otherwise(line)
        which = f"which landed {self._moments.brief(instant_tick(stood['landed_at']))}, place {stood['landed_place']}"
        return f"is the same as a row that left before it, {which}"

    def _quarantined(self, line: Line) -> str:
        if not isinstance(line["raw"], bytes):
            return self._otherwise(line)
        return f"breaks {json.loads(line['raw'])[BROKEN]}"

    def _policy(self, line: Line, setting: str) -> object:
        return ((self._known.streams.get(line["stream"]) or {}).get("policy") or {}).get(setting)


def _object(text: str | None) -> dict[str, Any]:
    value = json.loads(text) if text else {}
    return value if isinstance(value, dict) else {"value": value}


def _tick(moment: dt.datetime) -> int:
    return (moment - EPOCH) // TICK


def _instant(line: Line) -> int | None:
    """Give when a row landed; of a note, which stands for none, its own instant."""
    found: int | None = line["arrival"] if line["landed_at"] is None else line["landed_at"]
    return found


def _with_ticks(rows: pa.Table) -> pa.Table:
    for place, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type):
            rows = rows.set_column(place, field.name, rows[field.name].cast(pa.int64()))
    return rows
