"""A flow over a Delta table that somebody else writes: live through kills, replayed, backfilled to the same bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from pipelines.engine.commits.readers import read_ledger, read_stream
from pipelines.engine.sources.delta.errors import DeltaTableMissingError
from pipelines.engine.tasks.local import CoreEngine
from pipelines.flows.grid import intervals
from pipelines.jobs.commands.flows import show_flow, validate_flow
from pipelines.jobs.commands.replay import ReplayRequest, replay_flow
from pipelines.jobs.environment.settings import load_flow, read_settings
from pipelines.jobs.runs.backfill import Backfill, run_backfill
from pipelines.jobs.words.live import _state_text
from tests.engine.sources.tables import rows
from tests.jobs.commands.test_live_sources import killed, published
from tests.jobs.conftest import SETTINGS, House, live_in
from tests.laws.killed_live import live
from tests.laws.test_kills import assert_nothing_twice

if TYPE_CHECKING:
    from pathlib import Path


FLOW = """\
flow: runs
sources:
  lines: {feed: {delta: %s/t%s}, key: k, time: t%s}
streams:
  beating: {heartbeat: lines, interval: 1h}
"""


def housed(base: Path, patch: pytest.MonkeyPatch, more: str = "", arrival: str = "") -> House:
    """Give a house whose flow reads the table `t`."""
    flows = base / "config" / "flows"
    flows.mkdir(parents=True)
    (base / "config" / "local.yaml").write_text(SETTINGS)
    for file in (flows / "runs.yaml", base / "flow.yaml"):
        file.write_text(FLOW % (base, more, arrival))
    house = House(base / "config", base)
    live_in(house, patch)
    return house


def write(base: Path, *values: int) -> None:
    write_deltalake(str(base / "t"), rows(*values), mode="append")


def turns(base: Path, count: int) -> None:
    """Land and publish a few readings in this process."""
    left = iter(range(count))
    live(base, "main", CoreEngine(), lambda: next(left, None) is None)


def test_commits_are_published_once_through_kills_and_their_recording_gives_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = housed(tmp_path, monkeypatch)
    write(tmp_path, *range(50))
    killed(tmp_path, "tasks", 0)
    write(tmp_path, *range(50, 100))
    DeltaTable(str(tmp_path / "t")).optimize.compact()
    write(tmp_path, *range(100, 150))
    killed(tmp_path, "unpublished", 0)
    turns(tmp_path, 4)
    write(tmp_path, *range(150, 200))
    turns(tmp_path, 4)
    root = tmp_path / "runs" / "main"
    assert published(root) == list(range(200))
    assert read_ledger(root).num_rows == 0
    assert_nothing_twice(root)
    assert replay_flow(ReplayRequest(flow="runs", into="again"), house.tell) == 0, house.text


def test_two_backfills_of_a_table_give_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    housed(tmp_path, monkeypatch, ", versions: [0, 2], committed: seen", ", arrival: came")
    for value in (0, 20, 90, 1500):
        write(tmp_path, value, value + 1)
    settings = read_settings()
    flow = load_flow(settings, "runs")
    found, landed = [], list[Any]()
    for run in ("one", "two"):
        wanted = Backfill(flow=flow, root=settings.root("runs", run), base=tmp_path, engine=CoreEngine())
        run_backfill(wanted, intervals(flow, "2024-01-01", "2024-01-03"))
        landed = sorted((wanted.root / "landed").rglob("*.parquet"))
        found.append(([file.read_bytes() for file in landed], read_stream(wanted.root, "beating")))
    assert found[0] == found[1]
    assert [row["v"] for row in found[0][1].to_pylist() if row["kind"] == "data"] == [0, 1, 20, 21, 90, 91]
    assert pq.read_schema(landed[0]).names[-1] == "seen"


def test_a_flow_over_a_table_is_drawn_and_judged_before_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = housed(tmp_path, monkeypatch, ", committed: seen")
    with pytest.raises(DeltaTableMissingError):
        validate_flow("runs", house.tell)
    write(tmp_path, 1)
    validate_flow("runs", house.tell)
    assert "source lines: k string (key), t timestamp[us, tz=UTC] (time)" in house.text
    drawings = {
        (
            ", committed: seen",
            "",
        ): "the commits, as they come, of the Delta table ../t; `seen` is when a row was committed",
        ("", ", arrival: came"): "the newest version of the Delta table",
        (", version: 0", ", arrival: came"): "version 0 of the Delta table",
        (", versions: [0, 2]", ", arrival: came"): "the commits from version 0 to 2 of the Delta table",
        (", versions: [0]", ", arrival: came"): "the commits from version 0 on of",
    }
    for (more, arrival), words in drawings.items():
        (house.config / "flows" / "runs.yaml").write_text(FLOW % ("..", more, arrival))
        show_flow("runs", house.tell)
        assert words in " ".join(house.text.replace("│", " ").split())


def test_status_says_how_a_table_is() -> None:
    state = {"address": "t", "state": "there", "why": "", "since_at": 0, "waiting_commits": 2}
    assert _state_text("rows", state, 1) == "rows: t there; 2 commits wait to be landed"
