"""What a live feed of a drill looks like: names, order and types of columns, format, rates, bursts, and the flow."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.engine.columnar.clock import wall_now
from pipelines.engine.landing.types import declared_type
from pipelines.operators.rows import TICKS_PER_SECOND

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Sequence

    Row = dict[str, Any]

NAMES = ("zeta", "a", "Pump", "unit_7", "größe", "b c", "m", "Zone")
EXTRAS = ("string", "float64", "bool", "int32", "date")
TEXTS = ("plain", 'a "quoted", one', "größer als ä", "semi;colon", " spaces ")
KEYS = {"string": ("p", "q", "r"), "int64": (7, -3, 2**40), "int32": (1, 2, 30)}
DELAY = 5
"""Seconds that the flow waits for late rows."""
ON_TIME = 4.0
"""Seconds that a row on time is behind at most: less than DELAY by more than any two clocks' readings lie apart."""
LATE = 0.03
"""Of the rows, those that are a minute late."""
DAY, SLACK = "1d", "1500ms"
CHAINS = {
    "alone": "  punctual: {{advance_time: beating, {every}}}\n",
    "merged": "  ordered: {{merge: beating, ports_by: {{{key}: {ports}}}}}\n"
    "  punctual: {{advance_time: ordered, {every}}}\n",
}
FLOW = """\
flow: drilled
buckets: {buckets}
sources:
  rows: {{feed: {feed}, key: {key}, time: {time}, buffers: {buffers}}}
streams:
  beating: {{heartbeat: rows, interval: {interval}, slack: {slack}}}
"""
RECORDED = {"parquet": "recorded.parquet"}


@dataclass(frozen=True)
class DrawnColumn:
    """A column of the feed."""

    name: str
    kind: str
    """Its type, as a flow spells it."""
    role: str
    """key, time, number, sent, or extra."""


class FeedShape:
    """The shape of one feed, as a seed draws it.

    Args:
        drawn: where it is drawn from.
        kind: folder, socket or kafka.
    """

    def __init__(self, drawn: random.Random, kind: str) -> None:
        self.kind = kind
        self.format = drawn.choice(("csv", "json", "parquet") if kind == "folder" else ("csv", "json"))
        names = drawn.sample(NAMES, k=4 + drawn.randrange(4))
        roles = [("key", drawn.choice(sorted(KEYS))), ("time", "timestamp"), ("number", "int64"), ("sent", "int64")]
        roles += [("extra", drawn.choice(EXTRAS)) for _ in names[4:]]
        self.columns = [DrawnColumn(name, each, role) for name, (role, each) in zip(names, roles, strict=True)]
        drawn.shuffle(self.columns)
        self.keys = KEYS[self.of("key").kind]
        self.bursts = [(drawn.choice((0.0, 0.02, 0.2, 0.6)), drawn.choice((1, 5, 40, 200))) for _ in range(12)]
        self.chain = drawn.choice(sorted(CHAINS))
        # A sender that cannot connect is silent, and timers of its silence move time on under a merge or a duration;
        # what waits in a folder or a topic while nobody looks is no silence.
        is_kept, is_alone = kind != "socket", self.chain == "alone"
        self.slack = drawn.choice((DAY, SLACK)) if is_kept or is_alone else DAY
        every = ["{events: 1}", "{events: 20}", "{duration: 2s}"]
        if self.slack != DAY:
            every = every[1:] if is_kept else every[:2]
        self.every = f"every: {drawn.choice(every)}, delay: {DELAY}s, late: divert"
        self.interval = drawn.choice(("1s", "3s", "10s"))
        self.buckets, self.buffers = drawn.choice((1, 2, 3)), drawn.choice((1, 1, 3))

    def of(self, role: str) -> DrawnColumn:
        """Give the first column of a role."""
        return next(each for each in self.columns if each.role == role)

    @property
    def types(self) -> dict[str, str]:
        """Give the columns as a flow declares them."""
        return {each.name: each.kind for each in self.columns}

    def flow(self, place: dict[str, Any]) -> str:
        """Write the flow of a feed.

        Args:
            place: where the feed is, under the feed's keys.
        """
        return self._flow({**place, "format": self.format, "types": self.types}, "", self.buffers)

    def recorded(self) -> str:
        """Write the flow of what a run recorded, in minutes, with arrivals of its own."""
        return self._flow(dict(RECORDED), ", arrival: seen", 1).replace("buckets:", "every: 1m\nbuckets:", 1)

    def _flow(self, feed: dict[str, Any], arrival: str, buffers: int) -> str:
        key, time = (json.dumps(self.of(role).name, ensure_ascii=False) for role in ("key", "time"))
        text = FLOW.format(
            buckets=self.buckets,
            feed=json.dumps(feed, ensure_ascii=False),
            key=key,
            time=time + arrival,
            buffers=buffers,
            interval=self.interval,
            slack=self.slack,
        )
        return text + CHAINS[self.chain].format(every=self.every, key=key, ports=json.dumps(list(self.keys)))

    def rows(self, drawn: random.Random, first: int, count: int) -> list[Row]:
        """Draw rows that are sent now.

        Args:
            drawn: where they are drawn from.
            first: the number of the first.
            count: how many.
        """
        return [self._row(drawn, number) for number in range(first, first + count)]

    def _row(self, drawn: random.Random, number: int) -> Row:
        sent = wall_now()
        behind = 60.0 if drawn.random() < LATE else drawn.uniform(0, ON_TIME)
        known: dict[str, Any] = {"number": number, "sent": sent, "time": sent - int(behind * TICKS_PER_SECOND)}
        known["key"] = drawn.choice(self.keys)
        return {each.name: known.get(each.role, _extra(drawn, each.kind)) for each in self.columns}

    def text(self, rows: Iterable[Row]) -> list[str]:
        """Spell rows as lines, without their ends."""
        spelled = [{each.name: _spelled(row[each.name], each, self.format) for each in self.columns} for row in rows]
        if self.format == "json":
            return [json.dumps(row, ensure_ascii=False) for row in spelled]
        return [csv_line(row.values()) for row in spelled]

    def file(self, rows: Sequence[Row]) -> bytes:
        """Spell rows as a file."""
        if self.format == "parquet":
            return self._parquet(rows)
        head = [csv_line(self.types)] if self.format == "csv" else []
        return "".join(f"{line}\n" for line in (*head, *self.text(rows))).encode()

    def _parquet(self, rows: Sequence[Row]) -> bytes:
        data = {
            each.name: pa.array([row[each.name] for row in rows], pa.int64()).cast(declared_type(each.kind))
            if each.role == "time"
            else pa.array([row[each.name] for row in rows], declared_type(each.kind))
            for each in self.columns
        }
        written = io.BytesIO()
        pq.write_table(pa.table(data), written)
        return written.getvalue()


def _extra(drawn: random.Random, kind: str) -> Any:  # noqa: ANN401 - of the column's type
    made: dict[str, Callable[[], Any]] = {
        "string": lambda: drawn.choice(TEXTS),
        "float64": lambda: drawn.choice((0.1, -0.0, 1e300, drawn.random())),
        "bool": lambda: drawn.random() < 0.5,  # noqa: PLR2004 - a coin
        "int32": lambda: drawn.randrange(-(2**31), 2**31),
        "date": lambda: dt.date(1990, 1, 1) + dt.timedelta(days=drawn.randrange(20_000)),
        "timestamp": lambda: None,
        "int64": lambda: None,
    }
    return made[kind]()


def _spelled(value: Any, column: DrawnColumn, form: str) -> Any:  # noqa: ANN401 - as the format takes it
    if column.role == "time":
        return dt.datetime.fromtimestamp(value // TICKS_PER_SECOND, dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.") + (
            f"{value % TICKS_PER_SECOND:06}Z"
        )
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, bool) and form == "csv":
        return "true" if value else "false"
    return value


def csv_line(values: Iterable[Any]) -> str:
    """Spell values as a record of CSV, without its end."""
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerow(values)
    return written.getvalue().removesuffix("\n")
