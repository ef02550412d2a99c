"""`dag.test()`: a real day, a replay, and a form that makes no sense, task by task and without a scheduler."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from pipelines.engine.tasks.local import CoreEngine
from pipelines.flows.grid import intervals
from pipelines.flows.reading import read_flow
from pipelines.jobs.runs.announced import Announced
from pipelines.jobs.runs.backfill import Backfill, run_backfill
from tests.dags.conftest import CHECKOUT, PATIENCE, TRIPS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.dags.conftest import Ground

TRANSPORT = "OPENLINEAGE__TRANSPORT__"
KINDS = ("backfill", "maintain", "promises", "quality", "replay", "stream")
FLOWS = ("flights", "trips")

PROGRAM = """\
import json, sys, tempfile
from pathlib import Path
from airflow.dag_processing.dagbag import DagBag
from airflow.models.asset import AssetDagRunQueue, AssetEvent, AssetModel
from airflow.utils.session import create_session
from sqlalchemy import select
from dags.bundle import write_files
from pipelines.jobs.environment.offered import flow_names

folder = Path(tempfile.mkdtemp())
write_files(folder, flow_names())
bag = DagBag(dag_folder=folder)
errors = {Path(name).name: error for name, error in bag.import_errors.items()}
found = {"errors": errors, "dags": sorted(bag.dags)}
for dag_id, conf in json.loads(sys.argv[1]):
    run = bag.dags[dag_id].test(run_conf=conf)
    found[json.dumps(conf)] = {task.task_id: str(task.state) for task in run.get_task_instances()}
with create_session() as session:
    found["due"] = sorted(session.scalars(select(AssetDagRunQueue.target_dag_id)))
    events = session.execute(select(AssetModel.name, AssetEvent.partition_key, AssetEvent.extra).join(AssetEvent.asset))
    found["events"] = sorted([name, key or "", extra.get("day", "")] for name, key, extra in events)
print("found", json.dumps(found))
"""


def outcome_of(
    ground: Ground, *asked: tuple[str, dict[str, object]], told: Path | None = None
) -> tuple[dict[str, Any], str]:
    """Test runs in a process of their own; give what came of each, and all that was said.

    Args:
        ground: where Airflow and the home are.
        asked: each DAG with its form.
        told: file that takes what a catalogue is told; nobody is unless given.
    """
    catalogue = {} if told is None else {f"{TRANSPORT}{name}": value for name, value in catalogue_of(told).items()}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(asked)],
        cwd=CHECKOUT,
        env=ground.environment | catalogue,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    said = run.stdout + run.stderr
    lines = [line for line in run.stdout.splitlines() if line.startswith("found ")]
    assert lines, said
    found: dict[str, Any] = json.loads(lines[-1].removeprefix("found "))
    return found, said


def catalogue_of(file: Path) -> dict[str, str]:
    """Have OpenLineage's client write into a file."""
    return {"TYPE": "file", "LOG_FILE_PATH": str(file), "APPEND": "true"}


def told_in(file: Path) -> list[dict[str, Any]]:
    """Give the events that a catalogue was told."""
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_real_day_and_a_bad_form(database: Ground, tmp_path: Path) -> None:
    day: dict[str, object] = {"start": "2013-01-01", "end": None, "engine": "core", "force": False}
    bad: dict[str, object] = {"strat": "2013-01-01"}
    broken = database.folder / "config" / "flows" / "broken.yaml"
    broken.write_text("flow: broken\nsuorces: {}\n")
    try:
        asked: tuple[tuple[str, dict[str, object]], ...] = (
            ("backfill_flights", day),
            ("backfill_flights", bad),
            ("maintain_flights", {}),
        )
        found, said = outcome_of(database, *asked, told=tmp_path / "told")
    finally:
        broken.unlink()
    [(file, error)] = found["errors"].items()
    assert (file, "suorces" in error, "did you mean `sources`?" in error) == ("broken.py", True, True)
    assert "Traceback" not in error
    assert found["dags"] == [f"{kind}_{flow}" for kind in KINDS for flow in FLOWS]
    done = dict.fromkeys(("request", "run", "check", "publish", "report"), "success")
    assert found[json.dumps(day)] == done | {"approve": "skipped"}, said
    assert found["{}"] == {"maintain": "success"}, said
    bad_states = found[json.dumps(bad)]
    assert (bad_states["request"], bad_states["run"], bad_states["publish"]) == ("failed", *["upstream_failed"] * 2)
    assert bad_states["report"] == "skipped", "there is nothing to report"
    assert "unknown key `strat` in the form" in said
    assert "did you mean `start`?" in said
    assert (database.home / "reports" / "flights" / "main" / "2013-01-01.html").is_file()
    events = told_in(tmp_path / "told")
    named = {event["run"]["runId"]: event["job"]["name"] for event in events}
    begun = [event for event in events if event["job"]["namespace"] == "pulseline" and event["eventType"] == "START"]
    parents = [(event["job"]["name"], named[event["run"]["facets"]["parent"]["run"]["runId"]]) for event in begun]
    assert parents == [
        ("flights.main.run", "backfill_flights.run"),
        ("flights.main.check", "backfill_flights.check"),
        ("flights.main.publish", "backfill_flights.publish"),
        ("flights.main.check", "flights.main.publish"),
    ]


def record(ground: Ground, run: str, text: str, name: str = "trips") -> None:
    """Run two days of the trips, by a flow of this text."""
    file, base = ground.folder / f"{run}.yaml", ground.folder / "config" / "flows"
    file.write_text(text)
    flow = read_flow(file)
    wanted = Backfill(flow=flow, root=ground.home / name / run, base=base, engine=CoreEngine())
    run_backfill(wanted, intervals(flow, "2013-01-01", "2013-01-03"))


def test_a_recording_is_replayed_and_is_red_where_rows_differ(database: Ground) -> None:
    record(database, "as_now", TRIPS)
    record(database, "as_before", TRIPS.replace("interval: 6h", "interval: 4h"))
    part: dict[str, object] = {"run": "as_now", "from": "2013-01-02", "to": None, "into": "again", "speed": None}
    other: dict[str, object] = {"run": "as_before", "into": "other"}
    found, said = outcome_of(database, *(("replay_trips", conf) for conf in (part, other)))
    assert found[json.dumps(part)] == dict.fromkeys(("request", "replay", "report"), "success"), said
    assert found[json.dumps(other)] == {"request": "success", "replay": "failed", "report": "success"}, said
    assert "same: both runs have the same rows of every table, byte for byte" in said
    assert "because the flow has changed (interval 4h → 6h)" in said
    assert "DIFFERENT: see above; to look at the rows: pulseline show trips STREAM --run other" in said
    pages = database.home / "reports" / "trips"
    assert sorted(page.parent.name for page in pages.glob("*/index.html")) == ["again", "other"]


def test_a_complete_day_is_a_partition_once(database: Ground) -> None:
    text = TRIPS.replace("flow: trips", "flow: steady")
    record(database, "main", text, "steady")
    own = database.folder / "config" / "flows" / "steady.yaml"
    own.write_text(text)
    minutes: list[dict[str, object]] = [{"minute": 1}, {"minute": 2}]
    try:
        found, said = outcome_of(database, *(("promises_steady", minute) for minute in minutes))
    finally:
        own.unlink()
    assert found[json.dumps(minutes[0])] == {"look": "success", "announce": "success"}, said
    assert found[json.dumps(minutes[1])] == {"look": "success", "announce": "skipped"}, said
    # No gate has judged it, so the DAG that checks is told of it, once, without a partition.
    day = "2013-01-01"
    told = [event for event in found["events"] if event[0].startswith("steady")]
    assert told == [["steady, complete days", day, day], ["steady, days to check", "", day]], said
    assert "quality_steady" in found["due"], said
    # What Airflow has as a partition of the asset is what the second look wrote down.
    assert Announced(database.home / "steady" / "main").told == {"2013-01-01"}, said
