"""A real Airflow with a database of its own, shared by all tests that need one; started when the first asks for it.

`ground` has settings, flows and feeds; `database` prepares Airflow's tables; `stack` is what `make up` starts.
"""

from __future__ import annotations

import datetime as dt
import http.server
import json
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

import psutil
import pytest

from dags.local.database import postmaster, start_database, stop_database
from dags.local.doorway import Doorway
from dags.local.drill import FLOW, SETTINGS, write_trips
from dags.local.place import Place
from dags.local.processes import members
from dags.local.servant import lodging
from dags.local.settings import write_settings
from pipelines.engine.commits.readers import log_state
from pipelines.flows.grid import intervals
from pipelines.flows.reading import read_flow
from pipelines.jobs.proofs.parity import table_hashes

if TYPE_CHECKING:
    import socketserver
    from collections.abc import Callable, Iterator, Mapping

    from pipelines.engine.columnar.content import ContentHash

CHECKOUT = Path(__file__).parents[2]
TRIPS = FLOW.replace("A week", "Five days").replace("ends: 2013-01-08", "ends: 2013-01-06")
READING = 5.0
"""Seconds before an answer. Where one comes in the same second, Airflow may take the task for lost: it has not seen yet
that the process which asked has ended. It then begins the task again, which asks again."""
PATIENCE = 300.0
NOTHING_MORE: Mapping[str, str] = MappingProxyType({})
WEBHOOK = "airflow.providers.http.notifications.HttpNotifier"
TELLING = [{"classpath": WEBHOOK, "kwargs": {"http_conn_id": "alerts", "json": {"text": "{{ exception }}"}}}]
OVER = ("success", "failed", "skipped", "upstream_failed", "removed")
SETTLED = (*OVER, "awaiting_input")


class Hook(http.server.BaseHTTPRequestHandler):
    """Where a webhook points: it keeps what is posted."""

    got: ClassVar[list[tuple[str, Any]]] = []

    def do_POST(self) -> None:
        """Take one message."""
        self.got.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def listening(server: socketserver.BaseServer) -> Iterator[int]:
    """Serve while it lasts, and give the port."""
    with server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield int(server.server_address[1])  # type: ignore[index]
        server.shutdown()


@dataclass(frozen=True)
class Ground:
    """Settings, flows and feeds in a folder, and the environment under which everything finds them."""

    folder: Path

    @property
    def home(self) -> Path:
        """Where tables, pages and Airflow lie."""
        return self.folder / "home"

    @property
    def place(self) -> Place:
        """Where Airflow lies."""
        return Place(self.home / "airflow")

    @property
    def environment(self) -> dict[str, str]:
        """What commands and Airflow itself are called with."""
        own = {"PULSELINE_HOME": str(self.home), "PULSELINE_CONFIG": str(self.folder / "config")}
        return self.place.environment | own | {"PYTHONPATH": str(CHECKOUT)}

    def hashes(self, run: str) -> dict[str, ContentHash]:
        """Give the content hashes of all tables of a run of the trips."""
        flow = read_flow(self.folder / "config" / "flows" / "trips.yaml")
        spans = intervals(flow, "2013-01-01", "2013-01-06")
        return table_hashes(self.home / "trips" / run, flow, spans[0][0], spans[-1][1])

    def commits(self, run: str) -> int:
        """Count the published commits of a run of the trips."""
        return len(log_state(self.home / "trips" / run).published)

    def call(
        self, *words: str, without: tuple[str, ...] = (), more: Mapping[str, str] = NOTHING_MORE
    ) -> subprocess.CompletedProcess[str]:
        """Call a module of this checkout, in the environment that a user has, `without` some of what tests add."""
        command = [sys.executable, "-m", *words]
        where = {name: value for name, value in self.environment.items() if name not in without} | dict(more)
        return subprocess.run(
            command, cwd=CHECKOUT, env=where, capture_output=True, text=True, check=False, timeout=PATIENCE
        )


@dataclass
class Stack:
    """What `make up` started, and what a person would do with it."""

    ground: Ground
    said: str
    doorway: Doorway = field(init=False)

    def __post_init__(self) -> None:
        """Find the door."""
        self.doorway = Doorway(self.ground.place, self.port)

    @property
    def port(self) -> int:
        """Where it serves."""
        keeper = self.ground.place.kept()
        assert keeper is not None
        return keeper.port

    @property
    def session(self) -> int:
        """Which session its processes are in."""
        keeper = self.ground.place.kept()
        assert keeper is not None
        return keeper.pid

    def processes(self, *words: str) -> list[int]:
        """List its processes whose command line has all the words."""
        return [pid for pid, line in command_lines(self.session) if all(word in line for word in words)]

    def trigger(self, dag: str, conf: dict[str, object]) -> str:
        """Trigger a run by hand, as the form does."""
        now = dt.datetime.now(dt.UTC).isoformat()
        made = self.doorway.ask("POST", f"/api/v2/dags/{dag}/dagRuns", {"logical_date": now, "conf": conf})
        return str(made["dag_run_id"])

    def runs(self, dag: str) -> list[dict[str, Any]]:
        """List the runs of a DAG, oldest start first."""
        found: list[dict[str, Any]] = self.doorway.ask("GET", f"/api/v2/dags/{dag}/dagRuns?order_by=id")["dag_runs"]
        return found

    def tasks(self, dag: str, run: str) -> dict[str, dict[str, Any]]:
        """Give the tasks of a run by name."""
        found = self.doorway.ask("GET", f"{_path(dag, run)}/taskInstances")["task_instances"]
        return {task["task_id"]: task for task in found}

    def log(self, dag: str, run: str, task: str, attempt: int = 1) -> str:
        """Give what a task's log says."""
        path = f"{_path(dag, run)}/taskInstances/{task}/logs/{attempt}?full_content=true"
        return "\n".join(str(line) for line in self.doorway.ask("GET", path)["content"])

    def result(self, dag: str, run: str, task: str) -> dict[str, Any]:
        """Give a task's result."""
        path = f"{_path(dag, run)}/taskInstances/{task}/xcomEntries/return_value?deserialize=true"
        value = self.doorway.ask("GET", path)["value"]
        found: dict[str, Any] = json.loads(value) if isinstance(value, str) else value
        return found

    def asked(self, dag: str, run: str, task: str) -> dict[str, Any]:
        """Wait until a task waits for a person, and give what it asks."""
        until(lambda: self.tasks(dag, run)[task]["state"] == "awaiting_input", told=lambda: self.told(dag, run))
        found: dict[str, Any] = self.doorway.ask("GET", f"{_path(dag, run)}/taskInstances/{task}/-1/hitlDetails")
        return found

    def answer(self, dag: str, run: str, task: str, option: str, reason: str) -> None:
        """Answer what a task asks through Airflow's interface."""
        answer = {"chosen_options": [option], "params_input": {"reason": reason}}
        at = f"{_path(dag, run)}/taskInstances/{task}/-1/hitlDetails"
        self.answered(dag, run, task, lambda: self.doorway.ask("PATCH", at, answer))

    def answered(self, dag: str, run: str, task: str, answer: Callable[[], object]) -> None:
        """Answer what a task asks, as a person does, who reads it first, and again where Airflow lost the answer."""
        tries = self.tasks(dag, run)[task]["try_number"]
        time.sleep(READING)
        answer()
        until(lambda: self.tasks(dag, run)[task]["state"] in SETTLED, told=lambda: self.told(dag, run))
        if self.tasks(dag, run)[task]["try_number"] > tries:
            self.answered(dag, run, task, answer)

    def ended(self, dag: str, run: str, seconds: float = PATIENCE) -> str:
        """Wait until a run is over, and give its state."""
        return str(until(lambda: self._over(dag, run), seconds, lambda: self.told(dag, run)))

    def told(self, dag: str, run: str) -> str:
        """Say how the tasks of a run stand, for an assertion that fails."""
        return ", ".join(
            f"{name} {task['state']} ({task['try_number']})" for name, task in self.tasks(dag, run).items()
        )

    def _over(self, dag: str, run: str) -> str | None:
        state = self.doorway.ask("GET", _path(dag, run))["state"]
        return state if state in OVER else None


def until(found: Callable[[], Any], seconds: float = PATIENCE, told: Callable[[], str] = lambda: "") -> Any:  # noqa: ANN401 - whatever is waited for
    """Wait for something to be found, and give it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := found():
            return value
        time.sleep(0.5)
    pytest.fail(f"nothing after {seconds:.0f} s: {told()}")


def command_lines(session: int) -> list[tuple[int, str]]:
    """List the living processes of a session with their command lines."""
    found = []
    for process in members(session):
        with suppress(psutil.NoSuchProcess):
            found.append((process.pid, " ".join(process.cmdline())))
    return found


def _path(dag: str, run: str) -> str:
    return f"/api/v2/dags/{dag}/dagRuns/{quote(run, safe='')}"


@pytest.fixture(scope="package")
def databases() -> Iterator[Path]:
    """Give the folder of root's databases: not in pytest's own, which the account that serves them cannot enter."""
    with tempfile.TemporaryDirectory(prefix="pulseline-") as name, pytest.MonkeyPatch.context() as patch:
        Path(name).chmod(0o755)
        patch.setenv("PULSELINE_DATABASES", name)
        yield Path(name)


@pytest.fixture(scope="package")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    """Give a folder with two flows."""
    folder = tmp_path_factory.mktemp("ground")
    flows = folder / "config" / "flows"
    flows.mkdir(parents=True)
    (flows.parent / "local.yaml").write_text(SETTINGS)
    (flows / "trips.yaml").write_text(TRIPS)
    write_trips(flows / "trips.csv", 5)
    shutil.copy(CHECKOUT / "config" / "flows" / "flights.yaml", flows)
    return Ground(folder)


@pytest.fixture(scope="package")
def database(ground: Ground, databases: Path) -> Iterator[Ground]:  # noqa: ARG001 - where root's server lies
    """Prepare Airflow's database, which runs until the tests are over."""
    place = ground.place
    write_settings(place, 8080, start_database(place.database))
    try:
        done = ground.call("airflow", "db", "migrate")
        assert done.returncode == 0, done.stdout + done.stderr
        yield ground
    finally:
        stop_database(place.database)


@pytest.fixture(scope="package")
def hook() -> Iterator[str]:
    """Listen where a webhook points, and give the address."""
    Hook.got.clear()
    with listening(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="package")
def stack(database: Ground, hook: str) -> Iterator[Stack]:
    """Start what `make up` starts, with a webhook to tell, and see at the end that nothing of it is left."""
    told = {"conn_type": "http", "host": f"{hook}/stack"}
    more = {"AIRFLOW__PULSELINE__ALERTS": json.dumps(TELLING), "AIRFLOW_CONN_ALERTS": json.dumps(told)}
    up = database.call("dags.local", "up", more=more)
    assert up.returncode == 0, up.stdout + up.stderr
    started = Stack(database, up.stdout)
    session = started.session
    try:
        yield started
    finally:
        down = database.call("dags.local", "down")
        left = command_lines(session)
        assert (down.returncode, left) == (0, []), down.stdout + down.stderr
        assert postmaster(lodging(database.place.database).data) is None
