"""Delta tables that somebody else writes, for tests: by delta-rs, and landings that follow them."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import write_deltalake

from pipelines.engine.landing.index import Landing
from pipelines.engine.sources.delta.live import CommitsFeed
from pipelines.engine.sources.opening import Loss
from pipelines.flows.feeds.delta import CommitsSpec, DeltaSpec, TableSpec
from pipelines.flows.model import Flow, Source
from tests.engine.sources.folders import rows_of

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.engine.landing.sequence import LandedSequence

DAY = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


def rows(*values: int, **others: list[Any]) -> pa.Table:
    """Give rows of one key, one minute apart by value; each arrives a second after its time."""
    times = [DAY + dt.timedelta(minutes=value) for value in values]
    columns = {
        "k": pa.array(["k"] * len(values)),
        "t": pa.array(times, pa.timestamp("us", "UTC")),
        "came": pa.array([time + dt.timedelta(seconds=1) for time in times], pa.timestamp("us", "UTC")),
        "v": pa.array(values, pa.int64()),
    }
    return pa.table(columns | {name: pa.array(each) for name, each in others.items()})


def source_of(arrival: str = "", table: TableSpec | None = None, **feed: Any) -> Source:  # noqa: ANN401 - of a feed
    """Give a source over the table `t`: recorded where rows say when they arrived, else its commits."""
    kind = DeltaSpec if arrival else CommitsSpec
    spec = kind(paths=("t",), table=TableSpec() if table is None else table, **feed)
    return Source(name="rows", feed=spec, key=("k",), time="t", arrival=arrival)


@dataclass
class Following:
    """A landing of a table's commits; `reading` is ten ticks later each time, and the wall clock is told, not read."""

    base: Path
    source: Source = field(default_factory=source_of)
    loss: Loss = Loss.STOP
    reading: int = 0
    now: int = 0
    told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.start()

    @property
    def path(self) -> Path:
        """Give the table's folder."""
        return self.base / "t"

    def write(self, *values: int, **others: Any) -> None:  # noqa: ANN401 - columns
        """Append rows as somebody else would."""
        write_deltalake(str(self.path), rows(*values, **others), mode="append", schema_mode="merge")

    def start(self) -> None:
        """Start anew, as another process would; a table of one row is made where there is none."""
        if not self.path.exists():
            self.write(0)
        self.landing = Landing(self.base / "landing")
        payload = self.landing.payload("rows")
        self.flow = Flow(name="f", sources={"rows": self.source}, streams={}, buckets=3)
        self.feed = CommitsFeed(
            self.source, self.base, self.base, payload, self.told.append, self.loss, now=lambda: self.now
        )

    def land(self, limit_rows: int | None = None) -> LandedSequence:
        """Land one reading."""
        self.reading += 10
        before = self.reading - 10
        sequence, self.waiting = self.landing.land(
            self.flow, before, self.reading, {"rows": self.feed}, limit_rows=limit_rows
        )
        assert sequence is not None, "nothing rests here"
        return sequence

    def landed(self, limit_rows: int | None = None) -> list[int]:
        """Land one reading, and give its values."""
        return [row["v"] for row in rows_of(self.land(limit_rows))]


def position(sequence: LandedSequence) -> tuple[int, int]:
    """Give the versions [start, end) that a sequence dealt with."""
    ((_, start, end),) = sequence.sources["rows"].positions
    return start, end
