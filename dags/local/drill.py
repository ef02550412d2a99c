"""`pulseline drill airflow`: Airflow's processes are killed under a stream, a backfill and what runs on complete days.

A week is backfilled, streamed, and told day by day to a DAG that counts a day's rows, while one process after the other
is killed as the seed draws it: schedulers, triggerers, tasks, drivers, the JVM, the keeper of all. Then the rows must
be those of a calm run, each commit begun by one driver, each complete day heard of once and with all its rows, and no
process left.
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import psutil
import pyarrow.compute as pc

from dags.local.doorway import SILENCE, Doorway
from dags.local.place import CHECKOUT, Place
from dags.local.processes import members
from dags.local.servant import CHOSEN
from pipelines.engine.columnar.columns import NOT_HASHED
from pipelines.engine.columnar.content import content_hash
from pipelines.engine.commits.history import State
from pipelines.engine.commits.readers import log_state, read_ledger, read_stream
from pipelines.jobs.drill.telling import Drilled, Telling, Undone, drilling

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

SETTINGS = "home: elsewhere\nengine: core\nmaster: local[2]\n"
FLOW = """\
flow: trips
about: A week of two stations.
timezone: America/New_York
starts: 2013-01-01
ends: 2013-01-08
buckets: 2
sources:
  trips:
    feed: {csv: trips.csv, types: {planned: timestamp, went: timestamp}}
    key: station
    time: planned
    arrival: went
streams:
  beating: {heartbeat: trips, interval: 6h, slack: 90s}
  punctual: {advance_time: beating, every: {events: 1}, delay: 4h, late: drop}
"""
HEARING = '''\
"""Hears of complete days: each is counted as it stands when it is announced."""

import datetime as dt
import json
import os
from pathlib import Path

from airflow.sdk import DAG, Asset, PartitionedAssetTimetable, task

DAYS = Asset(name="trips, complete days", uri="pulseline://trips/days", group="pulseline")
AGAIN = {"retries": 50, "retry_delay": dt.timedelta(seconds=5)}
with DAG("hears", schedule=PartitionedAssetTimetable(assets=DAYS), is_paused_upon_creation=False, default_args=AGAIN):

    @task
    def count(dag_run=None, triggering_asset_events=None):
        from dags.local.drill import rows_of

        [[event]] = triggering_asset_events.values()
        day, run = dag_run.partition_key, event.extra["run"]
        rows = rows_of(Path(os.environ["PULSELINE_HOME"]) / "trips" / run, day)
        with (Path(os.environ["PULSELINE_CONFIG"]) / "heard.jsonl").open("a") as file:
            file.write(json.dumps({"day": day, "run": run, "rows": rows}) + "\\n")

    count()
'''
TABLES = ("beating", "punctual")
RUNS = ("main", "live")
ZONE = dt.timezone(dt.timedelta(hours=-5))
"""Of the flow, in a winter's week."""
FIRST = dt.datetime(2013, 1, 1, tzinfo=ZONE)
DAYS = 7
STARTS, ENDS = "2013-01-01", "2013-01-08"
SPEED = 3_000
"""A week in some three minutes, so that the stream is under way for most of the kills."""
PAUSE = (5.0, 20.0)
"""Seconds between two kills: a scheduler that is started again takes five until it schedules."""
PATIENCE = 600.0
"""Seconds behind the kills in which something must happen, until all has come to its end."""
LOOK = 5.0
STREAM, BACKFILL, PROMISES, HEARS = "stream_trips", "backfill_trips", "promises_trips", "hears"
PARTS = ("scheduler", "triggerer", "dag-processor", "api-server")
OFTEN = {
    "scheduler": 5,
    "triggerer": 4,
    "dag-processor": 1,
    "api-server": 1,
    "task": 3,
    "guard": 2,
    "driver": 3,
    "JVM": 2,
    "keeper": 1,
}
"""How often each kind of process is drawn, beside the others."""


def write_trips(file: Path, days: int) -> None:
    """Write an hourly trip, alternately of two stations; each seventh is three hours late."""
    with file.open("w", newline="") as opened:
        rows = csv.writer(opened)
        rows.writerow(["station", "planned", "went"])
        for hour in range(24 * days):
            planned = FIRST + dt.timedelta(hours=hour)
            went = planned + dt.timedelta(hours=3 if hour % 7 == 6 else 0, minutes=1)  # noqa: PLR2004 - each seventh
            rows.writerow([("north", "south")[hour % 2], planned.isoformat(), went.isoformat()])


@dataclass(frozen=True)
class TripsWeek:
    """A home, settings, a flow and its feed, and a DAG that hears of complete days."""

    folder: Path

    @property
    def home(self) -> Path:
        """Where tables and Airflow lie."""
        return self.folder / "home"

    @property
    def heard(self) -> Path:
        """Where each hearing writes a line."""
        return self.folder / "config" / "heard.jsonl"

    def lay(self) -> None:
        """Write it all."""
        flows, own = self.folder / "config" / "flows", self.folder / "config" / "dags"
        flows.mkdir(parents=True)
        own.mkdir()
        (flows.parent / "local.yaml").write_text(SETTINGS)
        (flows / "trips.yaml").write_text(FLOW)
        (own / "hears.py").write_text(HEARING)
        write_trips(flows / "trips.csv", DAYS)

    def call(self, *words: str) -> str:
        """Call a module as a user does.

        Raises:
            Undone: it failed, with what it said.
        """
        own = {"PULSELINE_HOME": str(self.home), "PULSELINE_CONFIG": str(self.folder / "config")}
        own |= {"PYTHONPATH": str(CHECKOUT), CHOSEN: str(self.folder / "databases")}
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW_", "PULSELINE_"))}
        done = subprocess.run(  # noqa: S603 - our own modules
            [sys.executable, "-m", *words],
            cwd=CHECKOUT,
            env=clean | own,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        if done.returncode:
            raise Undone(f"{' '.join(words)} ended with {done.returncode}: {done.stdout}{done.stderr}".strip())
        return done.stdout

    def hashes(self, run: str) -> dict[str, str]:
        """Hash all tables of a run, as its content goes."""
        root = self.home / "trips" / run
        found = {name: read_stream(root, name) for name in TABLES} | {"ledger": read_ledger(root)}
        return {name: content_hash(table, leave_out=NOT_HASHED).text for name, table in found.items()}


@dataclass
class DisturbedWeek:
    """A week that one seed disturbs."""

    ground: TripsWeek
    done: Drilled
    kills: int
    sessions: set[int] = field(default_factory=set)
    """Of all keepers that were started."""

    def __post_init__(self) -> None:
        """Draw by its seed."""
        self.draw = random.Random(self.done.seed)  # noqa: S311 - what a seed draws
        self.place = Place(self.ground.home / "airflow")

    def run(self) -> None:
        """Disturb it until it has come to its end, and note what is not as it should be."""
        self.ground.lay()
        calm = ("run", "trips", "--run", "calm", "--start", STARTS, "--end", ENDS, "--no-check")
        self.ground.call("pipelines.cli", *calm)
        self._up()
        self._begin()
        for _ in range(self.kills):
            time.sleep(self.draw.uniform(*PAUSE))
            self._kill()
        self._await_the_end()
        keys = [run["partition_key"] for run in self._runs(HEARS)]
        self.ground.call("dags.local", "down")
        self.done.differences += judged(self.ground, keys)
        left = [process.pid for session in self.sessions for process in members(session)]
        self.done.differences += [f"{len(left)} processes are left"] if left else []

    def end(self) -> None:
        """Leave no process behind."""
        if self.place.kept() is not None:
            with suppress(Undone, subprocess.TimeoutExpired):
                self.ground.call("dags.local", "down")

    def _up(self) -> None:
        self.ground.call("dags.local", "up")
        keeper = self.place.kept()
        if keeper is None:
            raise Undone("Airflow is up, and nobody keeps it")
        self.sessions.add(keeper.pid)
        self.door = Doorway(self.place, keeper.port)

    def _begin(self) -> None:
        """Unpause what hears of days, and begin stream and backfill, as a person does."""
        self._patiently(lambda: self._runs(HEARS))
        for dag in (PROMISES, HEARS):
            self._patiently(lambda dag=dag: self.door.ask("PATCH", f"/api/v2/dags/{dag}", {"is_paused": False}))  # type: ignore[misc]
        conf = {"start": STARTS, "end": ENDS, "speed": SPEED, "until": "caught up"}
        now = dt.datetime.now(dt.UTC).isoformat()
        self.door.ask("POST", f"/api/v2/dags/{STREAM}/dagRuns", {"logical_date": now, "conf": conf})
        last = (FIRST + dt.timedelta(days=DAYS - 1)).isoformat()
        span = ("--dag-id", BACKFILL, "--from-date", FIRST.isoformat(), "--to-date", last)
        self.ground.call("dags.local", "airflow", "backfill", "create", *span)

    def _kill(self) -> None:
        """Kill one of the processes that there are by now."""
        keeper = self.place.kept()
        if keeper is None:
            return
        there: dict[str, list[int]] = {"keeper": [keeper.pid]}
        for process in members(keeper.pid):
            with suppress(psutil.Error):
                if process.pid != keeper.pid and (kind := _kind(process)) in OFTEN:
                    there.setdefault(kind, []).append(process.pid)
        kind = self.draw.choices(list(there), [OFTEN[each] for each in there])[0]
        with suppress(ProcessLookupError):
            os.kill(self.draw.choice(there[kind]), signal.SIGKILL)
            self.done.faults[kind] += 1
        if kind == "keeper":
            # Nobody starts anything again by now, but a person.
            self._up()

    def _await_the_end(self) -> None:
        """Wait while something happens still.

        Raises:
            Undone: nothing does any more.
        """
        told, until = "", time.monotonic() + PATIENCE
        while not self._is_over():
            now = self._told()
            if now != told:
                told, until = now, time.monotonic() + PATIENCE
            if time.monotonic() > until:
                raise Undone(f"nothing more happened for {PATIENCE:.0f} s: {told}")
            time.sleep(LOOK)

    def _is_over(self) -> bool:
        """Say whether all runs are over and every complete day was heard of; what failed is cleared, by a person."""
        try:
            runs = {dag: self._runs(dag) for dag in (STREAM, BACKFILL, HEARS)}
            for dag, found in runs.items():
                for run in (each for each in found if each["state"] == "failed"):
                    self._clear(dag, run["dag_run_id"])
        except SILENCE:
            return False
        over = all(run["state"] == "success" for found in runs.values() for run in found)
        return over and {run["partition_key"] for run in runs[HEARS]} >= set(complete(self.ground))

    def _clear(self, dag: str, run: str) -> None:
        """Clear what failed and what stands behind it, as Airflow's page offers to."""
        self.done.faults["cleared by a person"] += 1
        failed = [task["task_id"] for task in self._tasks(dag, run) if task["state"] == "failed"]
        asked = {"dry_run": False, "dag_run_id": run, "task_ids": failed, "only_failed": False}
        self.door.ask("POST", f"/api/v2/dags/{dag}/clearTaskInstances", asked | {"include_downstream": True})

    def _runs(self, dag: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.door.ask("GET", f"/api/v2/dags/{dag}/dagRuns?limit=100")["dag_runs"]
        return found

    def _told(self) -> str:
        """Say how all stands, for whoever looks why."""
        try:
            return "; ".join(
                f"{run['dag_run_id']} of {dag} {run['state']} ({self._states(dag, run['dag_run_id'])})"
                for dag in (STREAM, BACKFILL, HEARS)
                for run in self._runs(dag)
                if run["state"] != "success"
            )
        except SILENCE as error:
            return f"Airflow does not answer ({error})"

    def _tasks(self, dag: str, run: str) -> list[dict[str, Any]]:
        path = f"/api/v2/dags/{dag}/dagRuns/{quote(run, safe='')}/taskInstances"
        found: list[dict[str, Any]] = self.door.ask("GET", path)["task_instances"]
        return found

    def _states(self, dag: str, run: str) -> str:
        return ", ".join(
            f"{task['task_id']} {task['state']}, try {task['try_number']}" for task in self._tasks(dag, run)
        )

    def _patiently(self, ask: Callable[[], object]) -> None:
        """Ask until it is answered: DAGs are there some seconds after Airflow."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                ask()
            except SILENCE:
                if time.monotonic() > until:
                    raise Undone("Airflow does not answer") from None
                time.sleep(LOOK)
            else:
                return


def _kind(process: psutil.Process) -> str:
    """Say what a process is: a part of Airflow, or of a task what it is there."""
    words = process.cmdline()
    line = " ".join(words)
    if words and words[0].endswith("java"):
        return "JVM"
    if "guard.py" in line:
        return "guard"
    if "-m pipelines." in line:
        return "driver"
    if line.startswith("airflow worker"):
        return "idle" if "<idle>" in line else "task"
    return next((part for part in PARTS if f"airflow {part}" in line.replace("_", "-")), "other")


def rows_of(root: Path, day: str) -> int:
    """Count the events of a day in the flow's last stream, as they are published right now.

    Args:
        root: the run's folder.
        day: its date, in the flow's timezone.
    """
    begin = dt.datetime.fromisoformat(day).replace(tzinfo=ZONE)
    times = pc.field("event_time")
    within = (times >= begin) & (times < begin + dt.timedelta(days=1)) & (pc.field("kind") == "data")
    return int(read_stream(root, "punctual").filter(within).num_rows)


def complete(ground: TripsWeek) -> list[str]:
    """Name the days that the promises of one of the runs have passed."""
    passed = []
    for run in RUNS:
        with suppress(OSError, ValueError):
            table = read_stream(ground.home / "trips" / run, "punctual")
            passed.append(pc.max(table.filter(pc.field("kind") == "cti")["event_time"]).as_py())
    ends = [FIRST + dt.timedelta(days=number + 1) for number in range(DAYS)]
    until = max((instant for instant in passed if instant is not None), default=FIRST)
    return [f"{end - dt.timedelta(days=1):%Y-%m-%d}" for end in ends if end <= until]


def judged(ground: TripsWeek, keys: Iterable[str]) -> list[str]:
    """Say what is not as it should be behind all kills.

    Args:
        ground: where it ran.
        keys: the day of each run of the DAG that hears of days.
    """
    calm = ground.hashes("calm")
    found = [f"{name} of {run}" for run in RUNS for name, own in ground.hashes(run).items() if own != calm[name]]
    found += [f"two drivers of {run}" for run in RUNS if not one_at_a_time(ground.home / "trips" / run)]
    told, wanted = Counter(keys), complete(ground)
    found += [f"{day} is a run {count} times" for day, count in told.items() if count > 1]
    found += [f"{day} was told of and is not complete" for day in told if day not in wanted]
    found += [f"{day} was not told of" for day in wanted if day not in told]
    return found + early(ground, heard(ground))


def heard(ground: TripsWeek) -> list[Mapping[str, Any]]:
    """Give what was heard, a line a hearing."""
    lines = ground.heard.read_text().splitlines() if ground.heard.exists() else []
    return [json.loads(line) for line in lines]


def early(ground: TripsWeek, lines: Iterable[Mapping[str, Any]]) -> list[str]:
    """Say which days did not have all their rows when they were heard of."""
    return [
        f"{line['day']} of {line['run']} had {line['rows']} rows when it was told of, and has {now}"
        for line in lines
        if line["rows"] != (now := rows_of(ground.home / "trips" / line["run"], line["day"]))
    ]


def one_at_a_time(root: Path) -> bool:
    """Say whether drivers came one after the other, and none began a commit that another had begun."""
    entries = log_state(root).entries
    leases = [entry.token for entry in entries if entry.state is State.LEASE]
    begun = [entry.commit for entry in entries if entry.state is State.INTENT]
    return leases == sorted(set(leases)) and begun == sorted(set(begun))


def drill(seeds: Iterable[int], keep: Path | None, kills: int, echo: Callable[[str], None], *, as_json: bool) -> int:
    """Disturb a week by each seed, one after the other.

    Args:
        seeds: each draws what is killed and when.
        keep: the folder of what ran; None for one that goes.
        kills: of each seed.
        echo: prints a line.
        as_json: a JSON object a seed instead of words.

    Returns:
        0, or 1 where a seed differs or did not end.
    """
    telling = Telling("airflow", as_json, echo)
    with drilling(keep) as base:
        telling.begin(f"{kills} kills a seed under a stream, a backfill and complete days: some ten minutes each")
        return telling.through(_one(base, seed, kills) for seed in seeds)


def _one(base: Path, seed: int, kills: int) -> Drilled:
    begun, done = time.monotonic(), Drilled(seed)
    base.mkdir(parents=True, exist_ok=True)
    ground = TripsWeek(Path(tempfile.mkdtemp(prefix=f"seed-{seed}-", dir=base)))
    for folder in (base, ground.folder):
        # Root's database runs as somebody else, who must pass through.
        folder.chmod(0o755)
    disturbed = DisturbedWeek(ground, done, kills)
    try:
        disturbed.run()
    except (Undone, subprocess.TimeoutExpired) as problem:
        done.differences, done.told = [*done.differences, "not done"], str(problem)
    finally:
        disturbed.end()
        shutil.rmtree(ground.folder / "databases", ignore_errors=True)
    done.seconds = time.monotonic() - begun
    return done


def main(argv: list[str] | None = None) -> int:
    """Run the drill and give its exit code."""
    parser = argparse.ArgumentParser(prog="pulseline drill airflow", description=__doc__)
    parser.add_argument("seeds", nargs="+", type=int)
    parser.add_argument("--kills", type=int, required=True)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(argv)
    return drill(chosen.seeds, chosen.keep, chosen.kills, partial(print, flush=True), as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
