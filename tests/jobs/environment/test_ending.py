"""Whatever is raised becomes an exit code and one line that says what to do."""

from __future__ import annotations

import errno
import gc
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JNetworkError

from pipelines.engine.commits.errors import LeaseHeldError, MissingPredecessorError
from pipelines.engine.commits.paths import ConcurrentAddError
from pipelines.engine.landing.errors import ColumnMissingError, FeedChangedError
from pipelines.engine.tasks.spark import NoMasterError
from pipelines.flows.errors import DefinitionError, FlowError, GridError
from pipelines.jobs.environment import exits as ending
from pipelines.jobs.environment.errors import JobError, WrongUse
from pipelines.jobs.environment.exits import exit_code_of, java_version, named
from pipelines.operators.merge import MergeFull
from pipelines.operators.rows import PolicyError


@pytest.fixture(autouse=True)
def _no_debugging(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PULSELINE_DEBUG", raising=False)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (WrongUse("no flow"), 2),
        (JobError("it failed"), 3),
        (FlowError("f.yaml", 3, "`x`", "an operator"), 2),
        (GridError("start 5", "a date"), 2),
        (PolicyError("interval", "more than zero", 0), 2),
        (ColumnMissingError("s", "key", "a", ("b",), None), 2),
        (FeedChangedError("s"), 3),
        (DefinitionError("KeyError: 'x'"), 3),
        (LeaseHeldError("f", "process 1 on here", 0), 3),
        (MissingPredecessorError(0, 1, 2), 3),
        (ConcurrentAddError("t", 1, "why"), 3),
        (MergeFull(5, 3), 3),
    ],
)
def test_errors_of_ours_say_all_themselves(error: Exception, code: int) -> None:
    assert exit_code_of(error) == (code, str(error))


def test_of_a_long_line_the_end_stays_which_says_what_to_do() -> None:
    _, line = exit_code_of(JobError(f"it {'really ' * 400}failed: type this"))
    assert len(line) == ending.LONGEST
    assert line.startswith("it really")
    assert line.endswith("really failed: type this")


@pytest.mark.parametrize(
    ("error", "where"),
    [
        pytest.param(OSError(errno.EIO, os.strerror(errno.EIO), "a/file"), "a/file", id="Python"),
        pytest.param(OSError(errno.ESTALE, os.strerror(errno.ESTALE)), ".pulseline", id="a call that names no file"),
        pytest.param(OSError("Error reading bytes. Detail: [errno 5] Input/output error"), ".pulseline", id="Arrow"),
        pytest.param(OSError("error stat()ing file"), ".pulseline", id="Arrow, without a reason"),
        pytest.param(OSError("Unable to open file a: Permission denied (os error 13)"), ".pulseline", id="no errno"),
        pytest.param(ValueError("LocalFileSystem error: Input/output error (os error 5)"), ".pulseline", id="delta-rs"),
    ],
)
def test_a_disk_that_fails_is_told_in_a_sentence(error: Exception, where: str) -> None:
    code, line = exit_code_of(error)

    assert code == 3
    assert where in line
    assert "the same command goes on from here" in line
    assert "traceback" not in line


def test_what_nobody_expected_is_named_with_the_way_to_its_traceback() -> None:
    assert exit_code_of(ZeroDivisionError("division\nby zero")) == (
        3,
        "ZeroDivisionError: division by zero (set PULSELINE_DEBUG=1 for the traceback)",
    )
    assert "no message" in exit_code_of(ValueError())[1]


def test_the_traceback_is_printed_when_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PULSELINE_DEBUG", "1")
    assert exit_code_of(WrongUse("no flow")) == (2, "no flow")
    told = capsys.readouterr().err
    assert told.endswith("WrongUse: no flow\n")
    assert "PULSELINE_DEBUG" not in exit_code_of(ValueError("x"))[1]


def test_an_interruption_says_how_to_go_on() -> None:
    code, line = exit_code_of(KeyboardInterrupt())
    assert code == 130
    assert "the same command goes on from here" in line
    late = RuntimeError("the gateway is gone")
    late.__context__ = KeyboardInterrupt()
    assert exit_code_of(late)[0] == 130


def test_a_full_disk_is_recognised_wherever_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULSELINE_HOME", "elsewhere")
    plain = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    told = RuntimeError("Generic LocalFileSystem error: No space left on device (os error 28)")
    caused = JobError("could not")
    caused.__cause__ = plain
    for error in (plain, told, caused):
        code, line = exit_code_of(error)
        assert code == 3
        assert "no space left on the disk of" in line
        assert "elsewhere" in line
        assert "PULSELINE_HOME" in line


def test_a_full_disk_beside_a_home_in_a_store_is_that_of_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULSELINE_HOME", "s3://bucket/prefix")
    monkeypatch.setenv("XDG_CACHE_HOME", "/kept")
    code, line = exit_code_of(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    assert code == 3
    assert line.startswith("no space left on the disk of /kept/pulseline/homes/s3/bucket/prefix: make room")
    assert "set XDG_CACHE_HOME to it" in line


def test_a_cause_that_was_put_away_is_not_looked_at() -> None:
    error = FlowError("f.yaml", 1, "no readable file", "a flow")
    error.__context__ = PermissionError(errno.EACCES, "denied", "f.yaml")
    error.__suppress_context__ = True
    assert exit_code_of(error) == (2, str(error))


def test_a_file_where_a_folder_must_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "streams").write_text("mine")
    with pytest.raises(NotADirectoryError) as hit:
        (tmp_path / "streams" / "beating" / "_delta_log").mkdir()

    assert exit_code_of(hit.value)[1].startswith(f"{tmp_path / 'streams'} must be a folder, and a file lies there")


@pytest.mark.parametrize("home", ["", "s3://bucket/team a/"])
def test_a_file_of_a_run_that_is_gone_leads_to_the_doctor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    monkeypatch.setenv("PULSELINE_HOME", home or str(tmp_path))
    place = (home or str(tmp_path)).rstrip("/")
    gone = FileNotFoundError(f"{place}/f/main/streams/s/_written/c00000001-0.parquet")

    assert exit_code_of(gone) == (
        3,
        f"a file of a run is gone ({gone}): pulseline doctor FLOW says what can be had again",
    )


@pytest.mark.parametrize(
    "said",
    [
        "java.io.IOException: Stream closed at org.apache.spark.api.python.PythonWorkerFactory.$anonfun$stopWorker$1(",
        "SparkException: EOFException occurred while reading the port number from pyspark.daemon's stdout and ended",
    ],
)
def test_python_workers_that_are_killed_while_spark_starts_are_named(said: str) -> None:
    code, line = exit_code_of(RuntimeError(said))
    assert code == 3
    assert line.startswith("a Python worker of Spark's must run as long as its task; one has ended, killed or out of")


def test_missing_permission_package_memory_and_network_are_recognised() -> None:
    assert "no permission for x" in exit_code_of(PermissionError(errno.EACCES, "denied", "x"))[1]
    assert "read-only" in exit_code_of(OSError(errno.EROFS, "read-only", "x"))[1]
    assert "ulimit -n 4096" in exit_code_of(OSError(errno.EMFILE, "Too many open files", "x"))[1]
    grown = exit_code_of(OSError(errno.EFBIG, "File too large", "/h/c.parquet"))[1]
    assert grown.startswith("/h/c.parquet must grow beyond what this process may write: ulimit -f unlimited")
    said = "Generic LocalFileSystem error \x1b[31m↳\x1b[0m Unable to copy data to file File too large (os error 27)"
    assert "ulimit -f unlimited" in exit_code_of(OSError(said))[1]
    assert "\x1b" not in exit_code_of(OSError(said.partition(" Unable")[0]))[1]
    arrow = OSError(errno.EROFS, "Failed to open local file '/h/c.parquet'. Detail: [errno 30] Read-only file system")
    assert exit_code_of(arrow)[1].startswith("/h/c.parquet is on a read-only disk: mount it so that it can be written")
    line = exit_code_of(ModuleNotFoundError("No module named 'numba.core'", name="numba.core"))[1]
    assert line.startswith("the package numba is not installed")
    assert line.endswith("`make setup`")
    assert "buckets" in exit_code_of(MemoryError())[1]
    assert "no network" in exit_code_of(OSError("Temporary failure in name resolution"))[1]


class PySparkRuntimeError(RuntimeError):
    """As Spark names it."""


GATEWAY = PySparkRuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.")


def java(folder: Path, version: str) -> None:
    (folder / "bin").mkdir()
    script = folder / "bin" / "java"
    script.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2020-01-01' >&2\n")
    script.chmod(0o755)


def test_no_java_and_the_wrong_java_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    code, line = exit_code_of(GATEWAY)
    assert code == 3
    assert "Spark needs Java 17, and there is no" in line
    assert "--engine core" in line
    java(tmp_path, "11.0.2")
    assert "is Java 11: install it" in exit_code_of(GATEWAY)[1]


@pytest.mark.parametrize(("version", "number"), [("1.8.0_292", 8), ("17.0.15", 17), ("21", 21)])
def test_versions_of_java_are_read(tmp_path: Path, version: str, number: int) -> None:
    java(tmp_path, version)
    assert java_version(str(tmp_path / "bin" / "java")) == number
    assert java_version(str(tmp_path / "none")) is None


def test_a_jvm_that_died_for_another_reason_says_where_to_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java(tmp_path, "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PULSELINE_HOME", str(tmp_path))
    assert "see what it wrote above" in exit_code_of(GATEWAY)[1]
    why = "Exception in thread main java.lang.Exception: HADOOP_CONF_DIR must be set"
    (tmp_path / "spark.log").write_text(f"INFO begins\n{why}\n\tat a.Error(A.java:1)\n")
    said = exit_code_of(GATEWAY)[1]
    assert said.startswith(
        "Spark's JVM ended before it began: Exception in thread main java.lang.Exception: HADOOP_CONF"
    )
    assert f"({tmp_path}/spark.log has what it wrote" in said


WORKER = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "worker.py", line 3622, in main
    process()
{last}
\tat org.apache.spark.api.python.BasePythonRunner.compute(PythonRunner.scala:1)
Caused by: java.lang.Exception: no
"""


def from_worker(last: str) -> Exception:
    kind = type("PythonException", (Exception,), {"__module__": "pyspark.errors"})
    error: Exception = kind(WORKER.format(last=last))
    return error


def test_what_was_raised_in_a_task_is_judged_as_if_it_were_here() -> None:
    assert exit_code_of(from_worker("pipelines.operators.merge.MergeFull: the merge holds 5 rows")) == (
        3,
        "the merge holds 5 rows",
    )
    assert exit_code_of(from_worker("pipelines.engine.landing.errors.ColumnMissingError: no column"))[0] == 2
    assert exit_code_of(from_worker("KeyError: 'x'")) == (
        3,
        "in a task: KeyError: 'x' (set PULSELINE_DEBUG=1 for the traceback)",
    )
    assert "no space left" in exit_code_of(from_worker("OSError: [Errno 28] No space left on device"))[1]


@pytest.mark.parametrize(
    ("cause", "told"),
    [
        ("java.io.IOException: Input/output error", "failed (Input/output error): see what the system says"),
        ("java.lang.IllegalStateException: batch 3 is gone", "Spark ended a query: java.lang.IllegalStateException: b"),
    ],
)
def test_a_query_that_spark_ended_is_told_by_its_cause(cause: str, told: str) -> None:
    buried = (
        f"[STREAM_FAILED] Query\n=== Streaming Query ===\nIdentifier: landing-main [id = 1]\n\nJVM stacktrace:\n{cause}"
    )
    kind = type("StreamingQueryException", (Exception,), {"__module__": "pyspark.errors"})
    code, line = exit_code_of(kind(f"{buried}\n\tat org.apache.spark.A\nCaused by: {cause}\n\tat org.apache.spark.B"))
    assert (code, told in line) == (3, True), line


def test_an_output_that_is_full_is_not_told_as_a_full_home() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "pipelines.cli", "flows", "list"], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 3
    assert done.stderr.decode().startswith("no space left where the output of this command goes: have it written")


def test_an_error_of_ours_that_names_a_host_is_no_lack_of_network() -> None:
    code, line = exit_code_of(NoMasterError("spark://nowhere:1", "nowhere:1: Name or service not known"))
    assert (code, line.startswith("`spark://nowhere:1` must be a Spark master that answers")) == (3, True)


def test_a_reader_that_goes_away_ends_a_command_quietly() -> None:
    root = Path(__file__).parents[3]
    program = (
        "import sys\n"
        "from pipelines.jobs.environment.exits import exit_code_of\n"
        "try:\n"
        "    while True: print('x' * 9999, flush=True)\n"
        "except BrokenPipeError as error:\n"
        "    code, line = exit_code_of(error)\n"
        "    sys.exit(code)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(root)}
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == ending.PIPE_CLOSED


def test_judging_an_error_imports_nothing_heavy() -> None:
    heavy = "{'numpy', 'pyarrow', 'pyspark'}"
    program = f"import sys; import pipelines.jobs.environment.exits; assert not {heavy} & set(sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


@pytest.mark.parametrize(
    ("flow", "run", "told"),
    [
        ("flights", "live", "give it up: pulseline abandon flights --run live --commit 3"),
        ("flights", "main", "give it up: pulseline abandon flights --commit 3"),
        (None, None, "give it up: pulseline abandon FLOW --commit 3"),
    ],
)
def test_what_to_type_next_names_the_flow_and_the_run(flow: str | None, run: str | None, told: str) -> None:
    assert named("give it up: pulseline abandon FLOW --commit 3", flow, run) == told


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_jvm_that_is_gone_in_the_middle_of_a_start_is_told_in_a_sentence() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        nobody = taken.getsockname()[1]
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=nobody))
    with pytest.raises((Py4JNetworkError, ConnectionError)) as raised:
        gateway.jvm.java.lang.System.currentTimeMillis()
    code, line = exit_code_of(raised.value)
    assert code == 3
    assert line.startswith("Spark's process must run as long as the command does; it has ended")
    cause = raised.value.__cause__ or raised.value.__context__
    assert isinstance(cause, ConnectionError)
    assert exit_code_of(cause) == (code, line)
    assert "Spark" not in exit_code_of(ConnectionRefusedError("elsewhere"))[1]
    # Py4J leaves the socket that nobody answered to whoever collects it: here, and not in another test.
    del raised, cause, gateway
    gc.collect()
