"""Flows in a git repository, in a team's own Airflow, into which Pulseline is installed as a package."""

from __future__ import annotations

import http.client
import json
import re
import shlex
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
from pipelines.jobs.runs.replaced import own_file
from tests.dags.conftest import CHECKOUT, OVER, until

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
import json, sys
from pathlib import Path
from airflow.dag_processing.bundles.manager import DagBundlesManager
from airflow.dag_processing.dagbag import DagBag

def found(version):
    for _ in range(2):  # the second finds it there
        bundle = DagBundlesManager().get_bundle("flows", version)
        bundle.initialize()
    bag = DagBag(dag_folder=bundle.path)
    return {
        "version": bundle.get_current_version().version,
        "checkout": str(bundle.config),
        "dags": sorted(bag.dags),
        "pinned": all(not dag.disable_bundle_versioning for dag in bag.dags.values()),
        "errors": {Path(name).name: error for name, error in bag.import_errors.items()},
        "configs": sorted({getattr(task, "config", None) or "" for dag in bag.dags.values() for task in dag.tasks}),
    }

for line in sys.stdin:
    try:
        said = found(line.strip() or None)
    except Exception as error:
        said = {"refused": str(error)}
    print("found", json.dumps(said), flush=True)
"""
PARSED = """\
import json, os, sys
from airflow.cli.cli_parser import get_parser
from airflow.providers.git.hooks.git import GitHook

found = []
for words in json.loads(sys.argv[1]):
    asked = get_parser().parse_args(words)
    if words[0] == "connections":
        said = {"conn_type": asked.conn_type, "host": asked.conn_host, "login": asked.conn_login}
        extra = json.loads(asked.conn_extra or "{}")
        os.environ["AIRFLOW_CONN_TOLD"] = json.dumps(said | {"password": asked.conn_password, "extra": extra})
        hook = GitHook("told")
        found.append([hook.repo_url, hook.user_name, hook.auth_token, hook.key_file, hook.known_hosts_file])
print(json.dumps(found))
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
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(self.place.folder / "plugins"),
            "AIRFLOW__DAG_PROCESSOR__DISABLE_BUNDLE_VERSIONING": "True",
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


class Reader:
    """Reads DAG files as a part of Airflow does, in one process, which pays for Airflow once."""

    def __init__(self, team: Team, site: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            cwd=team.folder,
            env=team.environment(site),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def read(self, version: str = "") -> dict[str, Any]:
        """Read those of a commit; of the newest unless one is given."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{version}\n")
        self.process.stdin.flush()
        said = []
        for line in self.process.stdout:
            if line.startswith("found "):
                found: dict[str, Any] = json.loads(line.removeprefix("found "))
                return found
            said.append(line)
        pytest.fail("".join(said))


@pytest.fixture
def reader(team: Team, site: Path) -> Iterator[Reader]:
    """Give a reader of the team's repository, which ends with the test."""
    reader = Reader(team, site)
    with reader.process:
        yield reader


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


def test_each_commit_has_its_own_flows_and_a_broken_one_takes_no_other_with_it(team: Team, reader: Reader) -> None:
    first = team.push("Trips")
    before = reader.read()
    assert (before["version"], before["dags"], list(before["errors"])) == (first, dags("trips"), ["broken.py"])
    assert TOLD in before["errors"]["broken.py"]
    assert "Traceback" not in before["errors"]["broken.py"]
    assert before["configs"][-1] == before["checkout"]
    assert before["pinned"], "whatever the team's Airflow says of all others"

    (team.flows / "broken.yaml").unlink()
    (team.flows / "late.yaml").write_text((team.flows / "trips.yaml").read_text().replace("flow: trips", "flow: late"))
    second = team.push("Late trips")
    now = reader.read()
    assert (now["version"], now["dags"], now["errors"]) == (second, dags("late", "trips"), {})
    assert now["checkout"] == before["checkout"]

    pinned = reader.read(first)
    assert (pinned["version"], pinned["dags"], list(pinned["errors"])) == (first, dags("trips"), ["broken.py"])
    assert pinned["configs"][-1] == pinned["checkout"]
    assert first in pinned["checkout"]

    shutil.rmtree(team.flows)
    team.push("No flows")
    told = "must have the folder `flows` in config and has none: `subdir` of the bundle"
    assert told in reader.read()["refused"]


def test_the_commands_of_the_guide_are_airflows_and_its_connections_the_providers(team: Team, site: Path) -> None:
    section = GUIDE.read_text().partition("## Deploy into")[2].partition("\n## ")[0]
    commands = re.findall(r"airflow ((?:[a-z]+ ){2}.*?)(?:`|(?<!\\)\n)", section, re.DOTALL)
    words = [shlex.split(each.replace("\\\n", "")) for each in commands]
    assert [each[:2] for each in words] == [["connections", "add"], ["connections", "add"], ["pools", "set"]]
    run = subprocess.run(
        [sys.executable, "-c", PARSED, json.dumps(words)],
        cwd=team.folder,
        env=team.environment(site),
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    by_token, by_key = json.loads(run.stdout.splitlines()[-1])
    assert by_token[:3] == ["https://git.example/team/flows.git", "deploy", "TOKEN"]
    host, keys = "git@git.example:team/flows.git", ["/etc/airflow/deploy_key", "/etc/airflow/known_hosts"]
    assert by_key == [host, "user", None, *keys]


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
    [plugin] = re.findall(r"```python\n(from dags\.plugins.*?)```", GUIDE.read_text(), re.DOTALL)
    (place.folder / "plugins").mkdir()
    (place.folder / "plugins" / "pulseline.py").write_text(plugin)
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
    assert second in str(own_file(root))
    assert "late" in overview(door), "the pages read the newest commit"
