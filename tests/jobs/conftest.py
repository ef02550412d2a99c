"""A tiny flow over a Parquet feed, its settings, and runs of it by the core engine."""

from __future__ import annotations

import datetime as dt
import shutil
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.engine.tasks.local import CoreEngine
from pipelines.flows.grid import intervals
from pipelines.jobs.environment.settings import load_flow, read_settings
from pipelines.jobs.runs.backfill import Backfill, run_backfill
from pipelines.jobs.runs.gate import Gate, publish_at_once
from tests.jobs.regional import taken

if TYPE_CHECKING:
    from pathlib import Path

# Loaded here, so that the quick commands have nothing left to keep away from other tests of this process.
assert pd.__version__

SETTINGS = "home: elsewhere\nengine: core\nmaster: local[1]\n"
FLOW = """\
flow: tiny
about: Trips of two stations.
timezone: America/New_York
buckets: 2
sources:
  trips: {feed: {parquet: trips.parquet}, key: [station, line], time: planned, arrival: went}
streams:
  beating: {heartbeat: trips, interval: 6h, slack: 90s}
  ordered: {merge: beating, ports_by: {station: [north, south]}}
  punctual: {advance_time: ordered, every: {events: 2}, delay: 1h, late: divert}
"""
FIRST = dt.datetime(2013, 1, 1, 5, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)
TRICKY = 'a "quoted", one\nof two lines'


def trips() -> pa.Table:
    """Give three New York days of trips, one each two hours, alternately north and south.

    Number 5 is five hours late, number 7 never went, number 9 stands at a station that no port is declared for; number
    2 has a text that needs quotes, number 4 an empty one.
    """
    numbers = list(range(36))
    planned = [FIRST + 2 * HOUR * number for number in numbers]
    went: list[dt.datetime | None] = [instant + dt.timedelta(minutes=1) for instant in planned]
    went[5] = planned[5] + 5 * HOUR
    went[7] = None
    stations = ["west" if number == 9 else ("north", "south")[number % 2] for number in numbers]
    notes = [{2: TRICKY, 4: ""}.get(number) for number in numbers]
    columns = {
        "number": pa.array(numbers, pa.int64()),
        "station": pa.array(stations),
        "line": pa.array([1] * len(numbers), pa.int32()),
        "planned": pa.array(planned, pa.timestamp("us", "UTC")),
        "went": pa.array(went, pa.timestamp("us", "UTC")),
        "note": pa.array(notes, pa.string()),
        "weight": pa.array([0.1 * number if number != 6 else float("nan") for number in numbers]),
    }
    return pa.table(columns)


@dataclass
class House:
    """A home and a configuration of their own, and what commands print."""

    config: Path
    home: Path
    printed: list[str] = field(default_factory=list)

    def tell(self, text: str) -> None:
        """Keep what a command prints."""
        self.printed.append(text)

    @property
    def text(self) -> str:
        """Give all that was printed since the last look."""
        text = "\n".join(self.printed)
        self.printed.clear()
        return text

    @property
    def root(self) -> Path:
        """Give the root of the run `main`."""
        return self.home / "tiny" / "main"

    def backfill(self, start: str, end: str, run: str = "main", gate: Gate = publish_at_once) -> None:
        """Run days of the flow."""
        settings = read_settings()
        flow = load_flow(settings, "tiny")
        base = settings.feeds_base(flow)
        wanted = Backfill(flow=flow, root=settings.root("tiny", run), base=base, engine=CoreEngine(), gate=gate)
        run_backfill(wanted, intervals(flow, start, end))


def build(folder: Path) -> House:
    """Write settings, flow and feed."""
    flows = folder / "config" / "flows"
    flows.mkdir(parents=True)
    (folder / "config" / "local.yaml").write_text(SETTINGS)
    (flows / "tiny.yaml").write_text(FLOW)
    pq.write_table(trips(), flows / "trips.parquet")
    return House(folder / "config", folder / "home")


def live_in(house: House, patch: pytest.MonkeyPatch) -> None:
    """Let commands find the house."""
    patch.setenv("PULSELINE_CONFIG", str(house.config))
    patch.setenv("PULSELINE_HOME", str(house.home))
    for name in ("PULSELINE_ENVIRONMENT", "COLUMNS", "PULSELINE_DEBUG"):
        patch.delenv(name, raising=False)


def copied(house: House, folder: Path, patch: pytest.MonkeyPatch) -> House:
    """Copy a house, and let commands find the copy."""
    shutil.copytree(house.config.parent, folder)
    copy = replace(house, config=folder / "config", home=folder / "home", printed=[])
    live_in(copy, patch)
    return copy


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    """Give a house in which nothing was run."""
    made = build(tmp_path)
    live_in(made, monkeypatch)
    return made


@pytest.fixture(scope="session")
def _lived_in(tmp_path_factory: pytest.TempPathFactory) -> House:
    made = build(tmp_path_factory.mktemp("house"))
    with pytest.MonkeyPatch.context() as patch:
        live_in(made, patch)
        # A day is several row groups, though it is short.
        patch.setattr("pipelines.engine.files.writing.MANY", 8)
        made.backfill("2013-01-01", "2013-01-04")
    return made


@pytest.fixture
def ran(_lived_in: House, monkeypatch: pytest.MonkeyPatch) -> House:
    """Give a house in which three days were run; tests only look at it."""
    live_in(_lived_in, monkeypatch)
    _lived_in.printed.clear()
    return _lived_in


@pytest.fixture(scope="session")
def _in_legs(tmp_path_factory: pytest.TempPathFactory) -> House:
    made = build(tmp_path_factory.mktemp("legs") / "house")
    with pytest.MonkeyPatch.context() as patch:
        live_in(made, patch)
        taken(made, 3, 3, 3)
    return made


@pytest.fixture
def regional(_in_legs: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    """Give a house of a test's own whose run `main` went live in three legs, which took all three days."""
    return copied(_in_legs, tmp_path / "house", monkeypatch)
