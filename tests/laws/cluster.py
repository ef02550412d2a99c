"""A standalone cluster of Spark on one machine: each host a network namespace with an address of its own.

Hosts share this machine's file system unless a worker is told not to see a folder, or has none of the driver's at all.
That needs root and `ip`; where they are not to be had, `why_not` says so.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

from pipelines.jobs.environment.settings import CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PORT = 7077
SPARK = Path(pyspark.__file__).parent
PATIENCE = 60.0
IP, UNSHARE, NSENTER = (shutil.which(name) or "" for name in ("ip", "unshare", "nsenter"))
OWN = Path("/srv")
"""Where a worker whose file system is its own has Spark, its work and its local disk."""
DRIVERS = (CHECKOUT, Path.home(), Path(tempfile.gettempdir()))
"""What is the driver's: this project with its packages, the home of who runs it, and all that tests write."""
ALONE = f"""
set -e
mount -t tmpfs -o size="$1" none {OWN}
shift
mkdir {OWN}/spark {OWN}/work {OWN}/local
mount --bind {SPARK} {OWN}/spark
for folder in {" ".join(map(str, DRIVERS))}; do
  if [ -d "$folder" ]; then mount -t tmpfs none "$folder"; fi
done
cd {OWN}/work
exec "$@"
"""
"""Give a host a file system of its own, with a disk of some size, and run a command there."""
PLENTY = "1400m"
"""Twice what the packages of tasks take, packed and unpacked."""


def why_not() -> str:
    """Say why there can be no such cluster here; nothing where there can be one."""
    if os.geteuid() or not IP or not UNSHARE:
        return "network namespaces need root, ip and unshare"
    tried = subprocess.run([UNSHARE, "--net", "--mount", "true"], check=False, capture_output=True, text=True)
    return "" if tried.returncode == 0 else f"network namespaces are not allowed: {tried.stderr.strip()}"


def ip(*words: str) -> None:
    """Change how hosts are connected."""
    subprocess.run([IP, *words], check=True, capture_output=True)


def _role(name: str, address: str) -> list[str]:
    """Give the words that start a master or a worker."""
    share = ["--cores", "1", "--memory", "1g"] if name.startswith("worker") else []
    return [f"org.apache.spark.deploy.{name}", "--host", address, *share]


@dataclass
class Cluster:
    """A master and workers, each on a host of its own; this machine is the bridge between them, and the driver's."""

    folder: Path
    net: int = field(default_factory=lambda: os.getpid() % 250 + 2)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    hosts: list[str] = field(default_factory=list)
    begun: int = 0
    """Workers so far."""

    @property
    def bridge(self) -> str:
        """Name the bridge."""
        return f"plb{self.net}"

    @property
    def master(self) -> str:
        """Give the address that drivers are told."""
        return f"spark://{self.address(0)}:{PORT}"

    def address(self, number: int) -> str:
        """Give the address of a host: 0 is the master's."""
        return f"10.213.{self.net}.{number + 10}"

    def connect(self) -> None:
        """Lay the bridge."""
        ip("link", "add", self.bridge, "type", "bridge")
        ip("addr", "add", f"10.213.{self.net}.1/24", "dev", self.bridge)
        ip("link", "set", self.bridge, "up")

    def host(self, number: int) -> str:
        """Make a host, and connect it."""
        name, inside, outside = f"pln{self.net}-{number}", f"pli{self.net}-{number}", f"plo{self.net}-{number}"
        ip("netns", "add", name)
        self.hosts.append(name)
        ip("link", "add", outside, "type", "veth", "peer", "name", inside)
        ip("link", "set", outside, "master", self.bridge, "up")
        ip("link", "set", inside, "netns", name)
        ip("-n", name, "addr", "add", f"{self.address(number)}/24", "dev", inside)
        ip("-n", name, "link", "set", inside, "up")
        ip("-n", name, "link", "set", "lo", "up")
        return name

    def within(self, number: int) -> list[str]:
        """Give what a command begins with that runs on a host."""
        return [IP, "netns", "exec", f"pln{self.net}-{number}"]

    def start_alone(self, *numbers: int, disk: str = PLENTY) -> None:
        """Start workers that share nothing with the driver but the network, and wait for them.

        Args:
            numbers: of their hosts; what ran there is killed.
            disk: how large the disk of each is, on which Spark works.
        """
        for number in numbers:
            self.kill(number)
            address = self.address(number)
            command = [UNSHARE, "--mount", "sh", "-c", ALONE, "sh", disk, f"{OWN}/spark/bin/spark-class"]
            settings = {
                "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
                "SPARK_HOME": f"{OWN}/spark",
                "SPARK_LOCAL_DIRS": f"{OWN}/local",
                "SPARK_WORKER_DIR": f"{OWN}/work",
            }
            self._run(number, [*command, *_role("worker.Worker", address), self.master], settings)
        self.wait_for("Registering worker", times=self.begun)

    def fill(self, number: int) -> None:
        """Have no room left on a host's own disk."""
        inside = [NSENTER, "--mount", "--target", str(self.processes[f"pln{self.net}-{number}"].pid)]
        filled = subprocess.run(
            [*inside, "sh", "-c", f"cat /dev/zero > {OWN}/local/filled"], check=False, capture_output=True, text=True
        )
        assert "No space left" in filled.stderr, filled.stderr

    def sees(self, number: int, path: Path) -> bool:
        """Say whether a host's process finds something at a path."""
        inside = [NSENTER, "--mount", "--target", str(self.processes[f"pln{self.net}-{number}"].pid)]
        return subprocess.run([*inside, "test", "-e", str(path)], check=False).returncode == 0

    def start(self, number: int, *, hidden: Path | None = None) -> None:
        """Start the master (0) or a worker on its host; one that does not see a folder finds an empty one there."""
        address = self.address(number)
        role = "master.Master" if number == 0 else "worker.Worker"
        words = [*_role(role, address), *(["--port", str(PORT)] if number == 0 else [self.master])]
        command = []
        if hidden is not None:
            command += [UNSHARE, "--mount", "sh", "-c", f'mount -t tmpfs none {hidden} && exec "$@"', "sh"]
        settings = {"SPARK_HOME": str(SPARK), "SPARK_WORKER_DIR": str(self.folder / f"host-{number}")}
        self._run(number, [*command, str(SPARK / "bin" / "spark-class"), *words], {**os.environ, **settings})

    def _run(self, number: int, command: list[str], settings: Mapping[str, str]) -> None:
        settings = {**settings, "SPARK_LOCAL_IP": self.address(number), "SPARK_DAEMON_MEMORY": "256m"}
        self.begun += number > 0
        with self.log(number).open("ab") as log:
            self.processes[f"pln{self.net}-{number}"] = subprocess.Popen(
                [*self.within(number), *command], env=settings, stdout=log, stderr=log, start_new_session=True
            )

    def log(self, number: int) -> Path:
        """Give the file that a host writes into."""
        return self.folder / f"host-{number}.log"

    def wait_for(self, text: str, times: int = 1) -> None:
        """Wait until the master has said something so often."""
        end = time.monotonic() + PATIENCE
        while self.log(0).read_text(errors="replace").count(text) < times:
            assert time.monotonic() < end, f"the master must say {text!r} {times} times"
            time.sleep(0.2)

    def kill(self, number: int) -> None:
        """Kill all of a host's processes at once, where it has any."""
        process = self.processes.pop(f"pln{self.net}-{number}", None)
        if process is None:
            return
        found = subprocess.run(
            [IP, "netns", "pids", f"pln{self.net}-{number}"], check=False, capture_output=True, text=True
        )
        for each in found.stdout.split():
            os.kill(int(each), signal.SIGKILL)
        process.wait()

    def close(self) -> None:
        """Take everything down."""
        for name in list(self.processes):
            self.kill(int(name.rpartition("-")[2]))
        for name in self.hosts:
            subprocess.run([IP, "netns", "del", name], check=False, capture_output=True)
        subprocess.run([IP, "link", "del", self.bridge], check=False, capture_output=True)


@contextmanager
def cluster(folder: Path, workers: int) -> Iterator[Cluster]:
    """Give a cluster whose master runs and whose workers' hosts stand; they are started one by one."""
    made = Cluster(folder)
    try:
        made.connect()
        for number in range(workers + 1):
            made.host(number)
        made.start(0)
        made.log(0).touch()
        made.wait_for("I have been elected leader")
        yield made
    finally:
        made.close()


def pulseline(config: Path, *words: str, patience: float = PATIENCE) -> subprocess.Popen[str]:
    """Begin a command as a driver of its own; one with less patience gives a cluster up sooner than a user's."""
    code = (
        "import sys; from pipelines.engine.tasks import spark; spark.MOST_PATIENCE = float(sys.argv.pop(1)); "
        "from pipelines.cli import main; sys.exit(main())"
    )
    program = ["-m", "pipelines.cli"] if patience == PATIENCE else ["-c", code, str(patience)]
    return subprocess.Popen(
        [sys.executable, *program, *words],
        env={**os.environ, "PULSELINE_CONFIG": str(config)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
