"""A live flow whose columns do not stand in the order of the alphabet, killed and started again: it comes up."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest

from pipelines.engine.commits.entry import State
from pipelines.engine.commits.readers import log_state, read_stream
from pipelines.engine.tasks.local import CoreEngine
from tests.forked import ended
from tests.laws.killed_live import live

if TYPE_CHECKING:
    from pathlib import Path

TYPES = ("zone: string", "t: timestamp", "b: int64", "a: int64")
STREAMS = {
    "all columns leave": "beating: {heartbeat: rows, interval: 1h}",
    "no column leaves": "times: {project: rows, columns: {twice: b}}",
}
FLOW = """\
flow: rows
sources:
  rows:
    feed: {{folder: in, format: json, types: {{{types}}}}}
    key: zone
    time: t
    rename: {{a: alpha}}
streams:
  {streams}
"""
ROWS = 40


def placed(base: Path, streams: str, types: tuple[str, ...] = TYPES) -> None:
    """Write the flow and one file of rows."""
    (base / "flow.yaml").write_text(FLOW.format(types=", ".join(types), streams=streams))
    (base / "in").mkdir(exist_ok=True)
    rows = ({"zone": "z", "t": "2013-01-01T06:00:00Z", "b": number, "a": -number} for number in range(ROWS))
    (base / "in" / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def killed(base: Path, *points: str) -> None:
    """Run the flow in a process that dies at its first intent."""
    code, said = ended("tests.laws.killed_live", str(base), "main", "intent", "0", *points)
    assert code == -signal.SIGKILL, said
    pending = log_state(base / "runs" / "main").pending
    assert pending is not None
    assert pending.state is State.INTENT


def started_again(base: Path) -> list[object]:
    """Start the flow again in a process of its own, which ends when it has caught up; give what it published."""
    turns = iter(range(4))
    live(base, "main", CoreEngine(), lambda: next(turns, None) is None)
    root = base / "runs" / "main"
    assert log_state(root).pending is None
    name = "beating" if (root / "streams" / "beating").exists() else "times"
    rows = read_stream(root, name)
    return [row.get("b", row.get("twice")) for row in rows.to_pylist() if row["kind"] == "data"]


@pytest.mark.parametrize("streams", STREAMS.values(), ids=STREAMS)
def test_a_stream_killed_at_intent_comes_up_whatever_the_order_of_its_columns(tmp_path: Path, streams: str) -> None:
    placed(tmp_path, streams)
    killed(tmp_path)
    assert sorted(started_again(tmp_path)) == list(range(ROWS))  # type: ignore[type-var]


@pytest.mark.parametrize("streams", STREAMS.values(), ids=STREAMS)
def test_a_home_whose_plan_has_sorted_keys_comes_up(tmp_path: Path, streams: str) -> None:
    placed(tmp_path, streams)
    killed(tmp_path, "sorted")
    (pending,) = [row for row in log_state(tmp_path / "runs" / "main").commits.values() if row.plan]
    plan = str(pending.plan)
    assert plan.index('"a":') < plan.index('"zone":'), "as it was written before the order was part of it"
    assert sorted(started_again(tmp_path)) == list(range(ROWS))  # type: ignore[type-var]
