"""The engine `batch`: Spark hands the tasks out; no row goes through the JVM, nothing is shuffled.

A task's worker must see the root's files and read its whole input iterator, or Spark throws the worker away and the
next one pays for its imports again.
"""

from __future__ import annotations

import atexit
import gc
import logging
import os
import re
import shlex
import shutil
import socket
import sys
import sysconfig
import tempfile
import time
import uuid
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Event, Thread
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from pipelines.engine.commits.lease import say
from pipelines.engine.commits.paths import commits_path
from pipelines.engine.files.stored import StoreFailedError, path_of, without_user
from pipelines.engine.tasks.class_archive import shared_classes
from pipelines.engine.tasks.task import run_task
from pipelines.errors import PulselineError
from pipelines.operators.registry import warm_up

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from pipelines.engine.tasks.task import Done, Task


LOGGER = logging.getLogger(__name__)
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    "spark.log.level": "ERROR",
    "spark.sql.streaming.stopTimeout": "60s",
    "spark.sql.streaming.metricsEnabled": "false",
    # Workers keep the memory of their blocks between two of them (glibc): asking for it anew costs a fifth of a task.
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": str(64 << 20),
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": str(256 << 20),
}


GATEWAY_MODULES = frozenset({"java_gateway", "clientserver"})
GATEWAY_LOGGERS = ("root", "py4j.java_gateway", "py4j.clientserver")
"""Where py4j logs that a call broke."""
LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
"""Where everything runs in processes of this machine: nobody else is let in. Workers elsewhere must find the driver."""
QUICK_START = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""A stream's own: no row goes through the JVM, so compiling its code for speed costs more than all that it plans."""
WORKER = "PULSELINE_WORKER"
"""Variable that a worker of a cluster has, and no process of the driver's machine."""
ELSEWHERE = {
    f"spark.executorEnv.{WORKER}": "1",
    "spark.excludeOnFailure.taskAndStage.enabled": "true",
    "spark.scheduler.excludeOnFailure.unschedulableTaskSetTimeout": "20s",
}
"""On a cluster a task that failed on a worker is run again on another: one without the home fails every time."""
OWN_PACKAGES = Path(__file__).with_name("python_of_spark.sh")
"""Starts Python with the packages that are installed, not with the archives that Spark puts in front of them."""
UNSPOKEN = re.compile(r"^spark\.executorEnv\.|secret|password|token|credential|key", re.IGNORECASE)
"""Names of a user's settings of which the values may open something, and are told to no command line."""
MASTERS = re.compile(r"local(\[(\d+|\*)(,\d+)?\]|-cluster\[\d+,\d+,\d+\])?$|spark://[^@]*$|k8s://|yarn$")
"""How masters are spelt."""
STANDALONE = re.compile(r"spark://(?P<host>[^:,]+):(?P<port>[0-9]+)")
MOST_PATIENCE = 60.0
"""Seconds within which a cluster must have begun a task."""
MASTER_ANSWERS = 10.0
"""Seconds within which a master must take a connection."""
MASTER_SPEAKS = 3.0
"""Seconds within which what is no master, but a web server, says so."""
STREAM_REQUEST = b"\x06"
"""How Spark's own protocol asks for a file; a master has none, and logs nothing of it."""
LOOK_EVERY = 0.5
SAY_EVERY = 10.0
"""Seconds between two lines that say how far a cluster is with its tasks."""


@dataclass(eq=False)
class NoWorkersError(PulselineError):
    """A cluster took no task."""

    master: str
    host: str
    executors: int
    is_of_work = False
    says = (
        "{master} must begin a task within 60 s; none runs, and {executors} executors are with the driver at "
        "{host}: see that the cluster has workers with free cores, memory and room on their disks, that they reach "
        "this host by that name (else set `spark.driver.host` under `spark:` in the environment's settings, and open "
        "spark.driver.port and spark.blockManager.port), and what the executors' own logs say; what is published stands"
    )


@dataclass(eq=False)
class NoMasterError(PulselineError):
    """Nothing answers where the master of a cluster should."""

    master: str
    why: str
    says = (
        "`{master}` must be a Spark master that answers; {why}: start it, or mend `master:` in the environment's "
        "settings; nothing was begun"
    )


@dataclass(eq=False)
class HomeUnseenError(PulselineError, OSError):
    """A worker does not see the home that the driver writes into."""

    host: str
    root: str
    says = (
        "worker {host} must see the home under the name that it has for the driver; there is no run in {root}: mount "
        "one file system there on every machine, or name another `home:` in the environment's settings"
    )


@dataclass(eq=False)
class StoreUnseenError(StoreFailedError):
    """A worker cannot reach the object store that the home lies in."""

    host: str = ""
    says = (
        "worker {host} must have {path} from its object store, and it does not answer there as it should ({reason}): "
        "give workers what opens it, by `spark.executorEnv.AWS_ACCESS_KEY_ID` and so on under `spark:` of the "
        "environment's settings or by a role of their machines, and see to their network; the driver's own variables "
        "are not handed on"
    )

    def __str__(self) -> str:
        """Name the worker."""
        return self.says.format(host=self.host, path=self.path, reason=self.reason)


@dataclass(eq=False)
class SparkEndedError(PulselineError):
    """Spark's own process ended while it was needed."""

    log: str
    is_of_work = False
    says = (
        "Spark's process must run as long as the command does; it has ended, killed or out of memory ({log} may say "
        "more): what is published stands, and the same command goes on from here"
    )


def is_local(master: str) -> bool:
    """Say whether tasks run in processes of this machine."""
    return master.startswith("local")


def settings_of(master: str) -> dict[str, str]:
    """Give what a master needs beside SETTINGS: where workers find the driver, and how they stand in for each other.

    The driver is found by this machine's address on the way to a standalone master.

    Other masters say it themselves, and Spark's own guess, the first address of the machine, stands where nothing is on
    the way.
    """
    if is_local(master):
        return LOOPBACK
    standalone = STANDALONE.match(master)
    if standalone is None:
        return ELSEWHERE
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
        # Nothing is sent: the system only says which of its addresses it would send from.
        way.connect((standalone["host"], int(standalone["port"])))
        return {**ELSEWHERE, "spark.driver.host": str(way.getsockname()[0])}
    return ELSEWHERE


def python_of(master: str, settings: Mapping[str, str]) -> str:
    """Give the Python that workers start: on a cluster it lies where it lies here, unless something says where.

    A setting goes before the environment, which PySpark alone would go by.

    Args:
        master: where tasks run.
        settings: of Spark, that go before ours.
    """
    if is_local(master):
        return _python_of_here()
    given = os.environ.get("PYSPARK_PYTHON")
    return settings.get("spark.pyspark.python") or (given if given != str(OWN_PACKAGES) else None) or sys.executable


def _python_of_here() -> str:
    """Give the Python of this machine: where it has PySpark from its own packages, through what lets it find those."""
    import pyspark

    installed = Path(sysconfig.get_path("purelib")) / "pyspark" / "__init__.py"
    is_installed = Path(pyspark.__file__ or "").resolve() == installed.resolve()
    if not is_installed or "SPARK_HOME" in os.environ or not os.access(OWN_PACKAGES, os.X_OK):
        return sys.executable
    os.environ["PULSELINE_PYTHON"] = sys.executable
    return str(OWN_PACKAGES)


def spark_session(
    master: str = "local[2]", log: Path | None = None, settings: Mapping[str, str] = MappingProxyType({})
) -> SparkSession:
    """Give the process's Spark session, started on first use; times are UTC.

    A session that somebody else has started, such as a notebook's, is used: ours shares its context, not its settings.

    Args:
        master: where tasks run; `local[2]` is two threads of this machine.
        log: file that takes what Spark's own process writes; None leaves it on standard error.
        settings: of Spark, that go before ours.
    """
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        shared = active.newSession()
        shared.conf.set("spark.sql.session.timeZone", SETTINGS["spark.sql.session.timeZone"])
        return shared
    if is_local(master):
        # Spark asks for this machine's address even where it then takes another, and ends where the name has none.
        os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK["spark.driver.host"])
    os.environ["PYSPARK_PYTHON"] = python_of(master, settings)
    # Processes that plan a stream's sources are the driver's.
    os.environ["PYSPARK_DRIVER_PYTHON"] = _python_of_here()
    _answer_to(os.environ["PYSPARK_PYTHON"])
    see_master(master)
    builder = SparkSession.builder.appName("pulseline").master(master)
    wanted = {**SETTINGS, **settings_of(master), **settings}
    for name, value in wanted.items():
        builder = builder.config(name, value)
    with _standard_error_into(log), shared_classes():
        if hidden := {name for name in settings if UNSPOKEN.search(name)}:
            _launch(master, {name: value for name, value in wanted.items() if name not in hidden})
        spark = _begun(builder, master, log)
    _log_what_ends(spark.sparkContext)
    return spark


def _begun(builder: SparkSession.Builder, master: str, log: Path | None) -> SparkSession:
    """Give the session of a master.

    Raises:
        NoMasterError: Spark gave up: who took the connection is no master, or one that does not take this program.
    """
    from py4j.protocol import Py4JJavaError

    try:
        return builder.getOrCreate()
    except Py4JJavaError as error:
        if is_local(master) or "stopped SparkContext" not in str(error):
            raise
        more = f" ({log} says more)" if log else ""
        raise NoMasterError(without_user(master), f"it took a connection, and Spark gave up on it{more}") from error


def _launch(master: str, settings: Mapping[str, str]) -> None:
    """Start Spark's process with some settings, before it is told the others: a list of processes shows these alone."""
    from pyspark import SparkConf, SparkContext

    conf = SparkConf().setMaster(master).setAppName("pulseline")
    for name, value in settings.items():
        conf.set(name, value)
    SparkContext._ensure_initialized(conf=conf)  # noqa: SLF001 - Python's API has no word for it


def see_master(master: str) -> None:
    """See that the master of a standalone cluster answers: Spark itself tries for a minute, and says something else.

    Raises:
        NoMasterError: none of those that are named does.
    """
    if not MASTERS.match(master):
        why = "no master is spelt so: local[N], spark://HOST:PORT, yarn and k8s://HOST:PORT are"
        raise NoMasterError(without_user(master), why)
    named = master.removeprefix("spark://")
    if named == master:
        return
    problems = []
    for place in named.split(","):
        host, _, port = place.strip("/").rpartition(":")
        if not host or not port.isdecimal():
            raise NoMasterError(master, f"`{place}` has no host or no port")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), timeout=MASTER_ANSWERS) as there:
                why = _other_than_spark(there)
        except (OSError, OverflowError) as problem:
            why = str(problem)
        if not why:
            return
        problems.append(f"{place}: {why}")
    raise NoMasterError(master, "; ".join(problems))


def _other_than_spark(there: socket.socket) -> str:
    """Say what answers in place of a master, which says of a file that it was not found; silence proves nothing."""
    name = b"/files/none"
    asked = STREAM_REQUEST + len(name).to_bytes(4, "big") + name
    there.settimeout(MASTER_SPEAKS)
    try:
        # The ends of lines have a web server answer; to Spark they are the beginning of a frame that never comes.
        there.sendall((8 + len(asked)).to_bytes(8, "big") + asked + b"\r\n\r\n")
        answer = there.recv(4096)
        there.shutdown(socket.SHUT_WR)
    except OSError:
        return ""
    is_web = answer.startswith((b"HTTP/", b"<"))
    return "a web server answers there (a master's own page has another port; 7077 is usual)" if is_web else ""


def _log_that_it_broke(*_: object) -> None:
    LOGGER.info("a connection to Spark broke: %s", sys.exc_info()[1])


def _log_what_ends(context: SparkContext) -> None:
    """Have a connection that breaks when Spark is ended from outside stand in the log, not as a traceback of Python's.

    Python listens to the JVM for sums of tasks, none of which we use; one that comes in the moment in which a signal
    ends both says nothing to a user.
    """
    server = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = _log_that_it_broke
    for name in GATEWAY_LOGGERS:
        logging.getLogger(name).addFilter(_not_of_the_gateway)


def _not_of_the_gateway(record: logging.LogRecord) -> bool:
    """Pass what is logged, but for the traceback of a call between Python and the JVM that the end of one cut short.

    The gateway raises an error as well, and whoever called says what became of it. It logs on Python's root logger
    too, past all names, which gives that one a handler that prints what other loggers have kept to themselves.
    """
    if record.levelno < logging.ERROR or record.module not in GATEWAY_MODULES:
        return True
    LOGGER.info("a call between Python and Spark broke: %s", record.exc_info and record.exc_info[1])
    return False


def _answer_to(name: str) -> None:
    """Have Python on the driver answer to the bare name that it has on workers: a stream's sources plan here, too."""
    if "/" in name or shutil.which(name):
        return
    folder = Path(tempfile.mkdtemp(prefix="pulseline-python-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    program = folder / name
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    program.chmod(0o700)
    os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}"


@contextmanager
def _standard_error_into(log: Path | None) -> Iterator[None]:
    """Have processes that are started meanwhile write their standard error into a file."""
    if log is None:
        yield
        return
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    kept = os.dup(2)
    with log.open("a") as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def run_in_worker(task: Task) -> Done:
    """Run one task in a worker of Spark's, which collects its garbage behind every task.

    What the first task loaded stays as long as the worker, and is left out of that: it would cost a tenth of a second.

    Raises:
        HomeUnseenError: the run is not there, where this worker is.
        StoreUnseenError: the store that it lies in does not answer this worker.
    """
    try:
        seen = commits_path(path_of(task.root)).is_dir()
    except StoreFailedError as error:
        if WORKER not in os.environ:
            raise
        raise StoreUnseenError(error.path, error.reason, socket.gethostname()) from error
    if not seen:
        raise HomeUnseenError(socket.gethostname(), task.root)
    done = run_task(task)
    leave_out_of_collection()
    return done


@cache
def leave_out_of_collection() -> None:
    """Take what is loaded by now, once a process, out of all garbage collection to come."""
    gc.collect()
    gc.freeze()


class SparkEngine:
    """Let Spark hand tasks out, one partition a task.

    Args:
        master: where tasks run.
        log: file that takes what Spark's own process writes; None leaves it on standard error.
        settings: of Spark, that go before ours.
    """

    name = "batch"

    def __init__(
        self, master: str = "local[2]", log: Path | None = None, settings: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._master, self.log, self._settings = master, log, settings
        self._spark: SparkSession | None = None
        self._is_ours = False
        self._has_worked = False
        """Whether the cluster has ended a job of ours: from then on it is only busy."""

    def run(self, tasks: Sequence[Task]) -> list[Done]:
        """Run tasks on Spark's workers.

        Raises:
            NoWorkersError: a cluster began none within 60 s.
            SparkEndedError: Spark's process ended meanwhile.
        """
        if not tasks:
            return []
        context = self.session().sparkContext
        LOGGER.debug("%d tasks to %s", len(tasks), context.master)
        with self._job():
            # Not through a DataFrame: for small tasks `mapInArrow` costs well over a tenth more.
            return context.parallelize(list(tasks), len(tasks)).map(run_in_worker).collect()

    def cores(self) -> int:
        """Say how many tasks Spark runs at once, once a cluster has begun one.

        Raises:
            NoWorkersError: a cluster began none within 60 s.
            SparkEndedError: Spark's process ended meanwhile.
        """
        context = self.session().sparkContext
        if not is_local(str(context.master)):
            with self._job():
                context.parallelize([0], 1).map(int).collect()
        return int(context.defaultParallelism)

    @contextmanager
    def _alive(self) -> Iterator[None]:
        """Say in words that Spark's process has ended, where whatever speaks to it would say that nobody answers."""
        try:
            yield
        except Exception:
            if self.has_ended:
                raise SparkEndedError(str(self.log)) from None
            raise

    @contextmanager
    def _job(self) -> Iterator[None]:
        """Run a job of ours, watched under a name of its own."""
        with self.watched(f"pulseline-{uuid.uuid4().hex}"), self._alive():
            yield

    @contextmanager
    def watched(self, group: str | None = None) -> Iterator[None]:
        """Have a job given up that no worker of a cluster takes; tell how far it is, and of tasks that ran again.

        Args:
            group: name to give the job; None for one that has a name, such as a streaming query's, whose stop needs
                it: all that runs is watched then.

        Raises:
            NoWorkersError: a cluster began none within 60 s.
        """
        context = self.session().sparkContext
        if is_local(str(context.master)):
            yield
            return
        over, given_up = Event(), Event()
        if group is not None:
            context.setJobGroup(group, "pulseline", interruptOnCancel=False)

        watcher = Thread(target=self._watch, args=(context, group, over, given_up), daemon=True)
        watcher.start()
        try:
            yield
        except Exception as error:
            if given_up.is_set():
                host, executors = context.getConf().get("spark.driver.host") or "", _executors(context)
                raise NoWorkersError(str(context.master), host, executors) from error
            raise
        finally:
            over.set()
            watcher.join()
        self._has_worked = True
        # Of all that runs each job of ours tells its own.
        failed = 0 if group is None else _tasks(context, group).failed
        if failed:
            say(f"{failed} tasks failed on a worker and were run again elsewhere; executors' logs say why")

    def _watch(self, context: SparkContext, group: str | None, over: Event, given_up: Event) -> None:
        # Once a job of ours has ended here, a cluster that begins nothing is only busy, while it has anybody at all.
        begun, start = self._has_worked, time.monotonic()
        say_at = start + SAY_EVERY
        offered_at = left_at = None
        while not over.wait(LOOK_EVERY):
            now = time.monotonic()
            if begun and now < say_at:
                continue
            if not self.is_running:
                return
            tasks = _tasks(context, group)
            begun = begun or tasks.begun > 0
            if begun and now >= say_at:
                say(f"{tasks.done} of {tasks.all} tasks done, {tasks.running} running")
                say_at = now + SAY_EVERY
                alone = tasks.done < tasks.all and not tasks.running and not _executors(context)
                left_at = (left_at or now) if alone else None
            if offered_at is None and tasks.all:
                # Until then the driver plans, and nobody could have taken anything.
                offered_at = now
            waits_since = left_at if begun else offered_at
            if waits_since is not None and now > waits_since + MOST_PATIENCE:
                given_up.set()
                if group is None:
                    context.cancelAllJobs()
                else:
                    context.cancelJobGroup(group)
                return

    def session(self) -> SparkSession:
        """Give the session, started on first use."""
        if self._spark is None:
            from pyspark.sql import SparkSession

            # Workers that start together would each compile every scan: one does it for all, while the JVM starts.
            compiling = Thread(target=warm_up)
            compiling.start()
            self._is_ours = SparkSession.getActiveSession() is None
            self._spark = spark_session(self._master, self.log, self._settings)
            compiling.join()
        return self._spark

    @property
    def has_ended(self) -> bool:
        """Say whether Spark was started and runs no more."""
        return self._spark is not None and not self.is_running

    @property
    def is_running(self) -> bool:
        """Say whether Spark runs: it may be ended by others, as where a signal goes to every process of a service."""
        if self._spark is None:
            return False
        try:
            return not self._spark.sparkContext._jsc.sc().isStopped()  # noqa: SLF001 - Python's API has no word for it
        except Exception:  # noqa: BLE001 - whatever py4j makes of a JVM that is gone
            return False

    def close(self) -> None:
        """Stop Spark, where it was started here and still runs."""
        if self._spark is not None and self._is_ours and self.is_running:
            self._spark.stop()
        self._spark = None


class _Tasks(NamedTuple):
    all: int
    done: int
    running: int
    failed: int

    @property
    def begun(self) -> int:
        return self.done + self.running + self.failed


def _tasks(context: SparkContext, group: str | None) -> _Tasks:
    """Count the tasks of a group of jobs, or of all that run; one that failed and runs again counts for both."""
    tracker = context.statusTracker()
    numbers = tracker.getActiveJobsIds() if group is None else tracker.getJobIdsForGroup(group)
    jobs = filter(None, map(tracker.getJobInfo, numbers))
    stages = list(filter(None, (tracker.getStageInfo(stage) for job in jobs for stage in job.stageIds)))
    counts = ((each.numTasks, each.numCompletedTasks, each.numActiveTasks, each.numFailedTasks) for each in stages)
    return _Tasks(*map(sum, zip(*counts, strict=True))) if stages else _Tasks(0, 0, 0, 0)


def _executors(context: SparkContext) -> int:
    """Count the executors that the driver knows, itself left out."""
    return int(context._jsc.sc().getExecutorMemoryStatus().size()) - 1  # noqa: SLF001 - Python's API has no word for it
