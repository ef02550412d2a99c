"""Flows in a git repository, in a team's own Airflow, into which Pulseline is installed as a package."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import zipfile
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from dags.local.database import start_database, stop_database
from dags.local.doorway import SILENCE, Doorway
from dags.local.drill import FLOW, SETTINGS, write_trips
from dags.local.place import Place
from dags.local.processes import members
from dags.local.settings import write_settings
from pipelines.engine.commits.readers import log_state, read_stream
from tests.dags.conftest import CHECKOUT, OVER, PATIENCE, until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

GUIDE = CHECKOUT / "docs" / "how-to" / "airflow.md"
SOURCES = ("pyproject.toml", "LICENSE", "pipelines", "expectations", "dags")
PARTS = ("scheduler", "dag-processor", "api-server")
KINDS = ("backfill", "maintain", "promises", "quality", "replay", "stream")
MISSPELT = "flow: broken\nsuorces: {}\n"
TOLD = "unknown key `suorces`"
PROGRAM = """\
import json, os, sys
from airflow.dag_processing.bundles.manager import DagBundlesManager
from airflow.dag_processing.dagbag import DagBag

named, version = sys.argv[1], sys.argv[2] or None
bundle = DagBundlesManager().get_bundle(named, version)
bundle.initialize()
bag = DagBag(dag_folder=bundle.path)
found = {
    "version": bundle.get_current_version().version,
    "checkout": str(bundle.config),
    "dags": sorted(bag.dags),
    "errors": {Path(name).name: error for name, error in bag.import_errors.items()},
    "configs": sorted({getattr(task, "config", None) or "" for dag in bag.dags.values() for task in dag.tasks}),
}
print("found", json.dumps(found))
"""


@dataclass(frozen=True)
class Team:
    """A team's repository, its Airflow, and where the tables lie."""

    folder: Path

    @property
    def work(self) -> Path:
        """A clone in which somebody changes flows."""
        return self.folder / "clone"

    @property
    def flows(self) -> Path:
        """The flows in it."""
        return self.work / "config" / "flows"

    @property
    def home(self) -> Path:
        """Where the tables lie."""
        return self.folder / "home"

    @property
    def place(self) -> Place:
        """Where Airflow lies."""
        return Place(self.folder / "airflow")

    def git(self, *words: str) -> str:
        """Call git in the clone."""
        known = ("-c", "user.name=Ann", "-c", "user.email=ann@team.example")
        done = subprocess.run(["git", *known, *words], cwd=self.work, capture_output=True, text=True, check=True)  # noqa: S607 - whichever git there is
        return done.stdout.strip()

    def push(self, told: str) -> str:
        """Commit all that was changed, push it, and give the commit."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", told)
        self.git("push", "--quiet", "origin", "HEAD:main")
        return self.git("rev-parse", "HEAD")

    def environment(self, site: Path) -> dict[str, str]:
        """Give the environment of the team's Airflow, into whose packages ours was installed."""
        kept = {name: value for name, value in self.place.environment.items() if not name.startswith("PULSELINE_")}
        return kept | {
            "PYTHONPATH": str(site),
            "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": bundles(),
            "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_STORAGE_PATH": str(self.folder / "bundles"),
            "AIRFLOW__DAG_PROCESSOR__BUNDLE_REFRESH_CHECK_INTERVAL": "1",
            "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "5",
            "AIRFLOW__CORE__DAGBAG_IMPORT_ERROR_TRACEBACKS": "False",
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW_CONN_FLOWS": json.dumps({"conn_type": "git", "host": str(self.folder / "flows.git")}),
        }


def bundles() -> str:
    """Give the bundles as the guide has them, asked again more often."""
    found = re.search(r"^dag_bundle_config_list = (\[.*?\]\n)", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    assert found is not None
    told = json.loads(found[1])
    told[0]["kwargs"]["refresh_interval"] = 2
    return json.dumps(told)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder of packages with the wheel in it."""
    made = tmp_path_factory.mktemp("wheel")
    for name in SOURCES:
        path, to = CHECKOUT / name, made / "source" / name
        to.parent.mkdir(exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, to, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, to)
    build = f"from setuptools import build_meta; build_meta.build_wheel({str(made)!r})"
    done = subprocess.run(
        [sys.executable, "-c", build], cwd=made / "source", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    [wheel] = made.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(made / "site")
    return made / "site"


@pytest.fixture
def team(tmp_path: Path) -> Team:
    """Give a team with one good flow and one that is misspelt."""
    team = Team(tmp_path)
    subprocess.run(["git", "init", "--quiet", "--bare", "-b", "main", tmp_path / "flows.git"], check=True)  # noqa: S607 - as above
    subprocess.run(["git", "clone", "--quiet", tmp_path / "flows.git", team.work], check=True, capture_output=True)  # noqa: S607 - as above
    team.flows.mkdir(parents=True)
    write_trips(tmp_path / "trips.csv", 2)
    (team.flows.parent / "production.yaml").write_text(SETTINGS)
    (team.flows / "trips.yaml").write_text(FLOW.replace("trips.csv", str(tmp_path / "trips.csv")))
    (team.flows / "broken.yaml").write_text(MISSPELT)
    return team


def read(team: Team, site: Path, version: str = "") -> dict[str, Any]:
    """Read the DAG files as a part of Airflow does, in a process of its own."""
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, "flows", version],
        cwd=team.folder,
        env=team.environment(site),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    lines = [line for line in run.stdout.splitlines() if line.startswith("found ")]
    assert lines, run.stdout + run.stderr
    found: dict[str, Any] = json.loads(lines[-1].removeprefix("found "))
    return found


def dags(*flows: str) -> list[str]:
    return [f"{kind}_{flow}" for kind in KINDS for flow in flows]


def test_the_wheel_has_all_that_lies_beside_the_code(site: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "pipelines", "expectations", "dags"],  # noqa: S607 - as above
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert [name for name in listed.stdout.splitlines() if not (site / name).is_file()] == []


def test_each_version_has_its_own_flows_and_a_broken_one_takes_no_other_with_it(team: Team, site: Path) -> None:
    first = team.push("Trips")
    before = read(team, site)
    assert (before["version"], before["dags"], list(before["errors"])) == (first, dags("trips"), ["broken.py"])
    assert TOLD in before["errors"]["broken.py"]
    assert "Traceback" not in before["errors"]["broken.py"]
    assert before["configs"][-1] == before["checkout"]

    (team.flows / "broken.yaml").unlink()
    (team.flows / "late.yaml").write_text((team.flows / "trips.yaml").read_text().replace("flow: trips", "flow: late"))
    second = team.push("Late trips")
    now = read(team, site)
    assert (now["version"], now["dags"], now["errors"]) == (second, dags("late", "trips"), {})
    assert now["checkout"] == before["checkout"]

    pinned = read(team, site, first)
    assert (pinned["version"], pinned["dags"], list(pinned["errors"])) == (first, dags("trips"), ["broken.py"])
    assert pinned["configs"][-1] == pinned["checkout"]
    assert first in pinned["checkout"]
    assert read(team, site, first) == pinned, "it lies there already"


def test_a_repository_without_flows_is_told(team: Team, site: Path) -> None:
    shutil.rmtree(team.flows)
    team.push("No flows")
    with pytest.raises(AssertionError, match=r"must have the folder `flows` in config and has none: `subdir`"):
        read(team, site)


@contextmanager
def parts(environment: Mapping[str, str], folder: Path) -> Iterator[None]:
    """Run Airflow's parts, each in a session of its own; nothing of them is left."""
    with (folder / "parts.log").open("w") as log:
        started = [
            subprocess.Popen(
                [sys.executable, "-m", "airflow", part],
                cwd=folder,
                env=dict(environment),
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            for part in PARTS
        ]
        try:
            yield
        finally:
            for part in started:
                part.terminate()
            for part in started:
                try:
                    part.wait(20)
                except subprocess.TimeoutExpired:
                    part.kill()
                    part.wait()
                for left in members(part.pid):
                    left.send_signal(signal.SIGKILL)


@pytest.fixture
def door(team: Team, site: Path, databases: Path) -> Iterator[Doorway]:  # noqa: ARG001 - where root's server lies
    """Start the team's Airflow over the first commit."""
    place = team.place
    team.push("Trips")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    write_settings(place, port, start_database(place.database))
    where = team.environment(site)
    try:
        migrate = [sys.executable, "-m", "airflow", "db", "migrate"]
        done = subprocess.run(migrate, cwd=team.folder, env=where, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        with parts(where, team.folder):
            yield Doorway(place, port)
    finally:
        stop_database(place.database)


def asked(door: Doorway, path: str) -> dict[str, Any]:
    """Ask for something that may not be there yet."""
    try:
        return door.ask("GET", path)
    except SILENCE:
        return {}


def shown(door: Doorway) -> list[str]:
    return sorted(dag["dag_id"] for dag in asked(door, "/api/v2/dags?limit=100").get("dags", ()))


def overview(door: Doorway) -> str:
    """Give the page of all flows, as a browser gets it."""
    asking = http.client.HTTPConnection("127.0.0.1", door.port, timeout=60)
    asking.request("GET", "/pulseline/overview", headers={"Cookie": f"_token={door._token}"})
    with closing(asking):
        return asking.getresponse().read().decode()


def day(door: Doorway, start: str) -> str | None:
    """Run a day, as the form does, and give the commit of the repository that it ran with."""
    at = "/api/v2/dags/backfill_trips"
    door.ask("PATCH", at, {"is_paused": False})
    form = {"start": start, "engine": "core"}
    run = door.ask("POST", f"{at}/dagRuns", {"logical_date": None, "conf": form})["dag_run_id"]
    path = f"{at}/dagRuns/{run}"
    until(lambda: door.ask("GET", path)["state"] in OVER)
    tasks = {task["task_id"]: task["state"] for task in door.ask("GET", f"{path}/taskInstances")["task_instances"]}
    assert door.ask("GET", path)["state"] == "success", tasks
    assert tasks["publish"] == "success"
    version: str | None = door.ask("GET", path)["bundle_version"]
    return version


def test_a_day_goes_from_a_click_to_rows_and_the_next_by_the_newest_commit(team: Team, door: Doorway) -> None:
    until(lambda: shown(door) == sorted(dags("trips")))
    errors = until(lambda: asked(door, "/api/v2/importErrors").get("import_errors"))
    assert [(error["filename"], TOLD in error["stack_trace"]) for error in errors] == [("broken.py", True)]
    assert door.ask("GET", "/api/v2/plugins/importErrors")["total_entries"] == 0
    for key, value in (("pulseline_home", str(team.home)), ("pulseline_environment", "production")):
        door.ask("POST", "/api/v2/variables", {"key": key, "value": value})
    assert day(door, "2013-01-01") == team.git("rev-parse", "HEAD")
    root = team.home / "trips" / "main"
    assert read_stream(root, "punctual").num_rows

    text = (team.flows / "trips.yaml").read_text()
    (team.flows / "trips.yaml").write_text(f"# Said in other words.\n{text}")
    (team.flows / "late.yaml").write_text(text.replace("flow: trips", "flow: late"))
    second = team.push("Words, and late trips")
    until(lambda: shown(door) == sorted(dags("late", "trips")))
    until(lambda: door.ask("GET", "/api/v2/dags/backfill_trips")["bundle_version"] == second)
    assert day(door, "2013-01-02") == second
    assert len(log_state(root).published) == 2
    assert second in json.loads((root / "flow_file.json").read_text())
    assert "late" in overview(door), "the pages read the newest commit"
