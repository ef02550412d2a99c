"""Where Spark's workers find the driver, whose session is used, and what is left running."""

from __future__ import annotations

import logging
import re
import socket
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Event, Thread
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from py4j.java_gateway import GatewayClient, GatewayParameters

from pipelines.engine.files.stored import StoreFailedError
from pipelines.engine.tasks import spark as engine
from pipelines.engine.tasks.spark import (
    ELSEWHERE,
    LOOPBACK,
    OWN_PACKAGES,
    NoMasterError,
    SparkEngine,
    StoreUnseenError,
    python_of,
    see_master,
    settings_of,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import LentSpark


@pytest.mark.parametrize(
    ("master", "host"),
    [
        ("local[2]", LOOPBACK),
        ("local-cluster[2,1,512]", LOOPBACK),
        ("spark://127.0.0.1:7077", {**ELSEWHERE, "spark.driver.host": "127.0.0.1"}),
        ("yarn", ELSEWHERE),
        ("spark://nobody.invalid:7077", ELSEWHERE),
    ],
)
def test_the_driver_gives_the_address_from_which_it_reaches_the_master(master: str, host: dict[str, str]) -> None:
    assert settings_of(master) == host


@pytest.mark.parametrize(
    ("master", "settings", "environment", "python"),
    [
        ("yarn", {"spark.pyspark.python": "pulseline-python"}, "/opt/other/python", "pulseline-python"),
        ("yarn", {"spark.pyspark.python": "pulseline-python"}, None, "pulseline-python"),
        ("yarn", {}, "/opt/other/python", "/opt/other/python"),
        ("yarn", {}, None, sys.executable),
        ("yarn", {}, str(OWN_PACKAGES), sys.executable),
        ("local[2]", {"spark.pyspark.python": "pulseline-python"}, "/opt/other/python", str(OWN_PACKAGES)),
    ],
)
def test_what_the_settings_say_of_the_workers_python_goes_before_the_environment(
    monkeypatch: pytest.MonkeyPatch, master: str, settings: dict[str, str], environment: str | None, python: str
) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    if environment is not None:
        monkeypatch.setenv("PYSPARK_PYTHON", environment)
    assert python_of(master, settings) == python


def test_workers_of_this_machine_take_what_is_installed_and_compile_nothing(spark: LentSpark) -> None:
    def told(_: int) -> tuple[str, str, list[str]]:
        import pyspark

        return pyspark.__file__, sys.executable, [each for each in sys.path if each.endswith((".zip", ".jar"))]

    found, python, archives = spark.session().sparkContext.parallelize([0], 1).map(told).first()
    import pyspark

    assert (found, python) == (pyspark.__file__, sys.executable)
    assert not [each for each in archives if "python311" not in each]


def test_what_a_user_puts_on_the_path_of_workers_stays(tmp_path: Path) -> None:
    path = "/s/pyspark.zip:/s/py4j-0.10.9.9-src.zip:/own *:/s/jars/spark-core_2.13-4.2.0.jar:/b"
    told = subprocess.run(
        [str(OWN_PACKAGES), "-c", "import os, sys; print(os.environ['PYTHONPATH'], *sys.argv[1:])", "a b", "*"],
        env={"PYTHONPATH": path, "PULSELINE_PYTHON": sys.executable},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout == "/own *:/b a b *\n"


def test_where_spark_is_anothers_its_own_packages_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    assert python_of("local[2]", {}) == sys.executable
    monkeypatch.delenv("SPARK_HOME")
    monkeypatch.setattr("pyspark.__file__", "/opt/spark/python/pyspark/__init__.py")
    assert python_of("local[2]", {}) == sys.executable


def test_a_cluster_that_takes_long_says_how_far_it_is(
    spark: LentSpark, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(engine, "is_local", lambda _: False)
    monkeypatch.setattr(engine, "run_in_worker", time.sleep)
    monkeypatch.setattr(engine, "LOOK_EVERY", 0.05)
    monkeypatch.setattr(engine, "SAY_EVERY", 0.1)
    SparkEngine.run(spark, [0.7] * 5)  # type: ignore[list-item]
    said = capsys.readouterr().err.splitlines()
    assert said
    assert all(re.fullmatch(r"[0-5] of 5 tasks done, [0-5] running", line) for line in said), said
    assert sorted(said, key=lambda line: line[0]) == said, "what is done stays done"


def test_a_call_that_the_end_of_spark_cuts_short_leaves_no_traceback(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        Thread(target=_hang_up, args=(gone,), daemon=True).start()
        client = GatewayClient(gateway_parameters=GatewayParameters(port=gone.getsockname()[1]))
        for name in engine.GATEWAY_LOGGERS:
            logging.getLogger(name).removeFilter(engine._not_of_the_gateway)
        client.send_command("c\n")
        assert [each.module for each in caplog.records if each.exc_info] == ["java_gateway"]
        caplog.clear()
        _broken_proxy()
        assert [each.module for each in caplog.records] == ["clientserver"]
        caplog.clear()
        engine._log_what_ends(SimpleNamespace())  # type: ignore[arg-type]
        client.send_command("c\n")
        _broken_proxy()
        logging.getLogger().error("of others")
    assert [each.getMessage() for each in caplog.records if each.levelno > logging.INFO] == ["of others"]


def _broken_proxy() -> None:
    """Log what py4j logs where a call of the JVM's into Python fails, from its own module."""
    logger = logging.getLogger("py4j.clientserver")
    logger.handle(logger.makeRecord(logger.name, logging.ERROR, "py4j/clientserver.py", 648, "broke", (), None))


def _hang_up(server: socket.socket) -> None:
    while True:
        try:
            caller, _ = server.accept()
        except OSError:
            return
        caller.recv(100)
        caller.close()


def test_cores_are_those_that_spark_has_once_it_has_begun_a_task(
    spark: LentSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert spark.cores() == 2
    monkeypatch.setattr(engine, "is_local", lambda _: False)
    assert spark.cores() == 2


def test_a_session_that_is_there_is_used_and_left_running(spark: LentSpark) -> None:
    theirs = spark.session()
    theirs.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        engine = SparkEngine("local[1]")
        ours = engine.session()
        assert ours.sparkContext is theirs.sparkContext
        assert ours.conf.get("spark.sql.session.timeZone") == "UTC"
        assert engine.is_running
        engine.close()
        assert theirs.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo", "their settings are theirs"
        assert theirs.range(3).count() == 3
    finally:
        theirs.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.parametrize(
    ("master", "why"),
    [
        ("spark://127.0.0.1:{free}", "127.0.0.1:{free}: .*refused"),
        ("spark://127.0.0.1:{free},127.0.0.1:{free}", "refused.*; 127.0.0.1:{free}: .*refused"),
        ("spark://nowhere.invalid:7077", "nowhere.invalid:7077: "),
        ("spark://127.0.0.1", "has no host or no port"),
        ("spark://", "has no host or no port"),
        ("spark://127.0.0.1:70000", "70000"),
        ("127.0.0.1:7077", "no master is spelt so"),
        ("Yarn", "no master is spelt so"),
        ("local[x]", "no master is spelt so"),
        ("spark://me:hush@here:7077", "^`spark://…@here:7077` must be"),
    ],
)
def test_a_master_that_is_not_there_is_told_before_spark_starts(master: str, why: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        free = taken.getsockname()[1]
    with pytest.raises(NoMasterError, match=why.format(free=free)):
        see_master(master.format(free=free))


def test_the_page_of_a_master_is_told_from_the_master() -> None:
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as page:
        answering = Thread(target=page.handle_request)
        answering.start()
        with pytest.raises(NoMasterError, match="a web server answers there"):
            see_master(f"spark://127.0.0.1:{page.server_port}")
        answering.join()


def test_one_of_several_masters_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as there, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        see_master(f"spark://127.0.0.1:{taken.getsockname()[1]},127.0.0.1:{there.getsockname()[1]}")
    see_master("local[2]")
    see_master("yarn")


class Lonely(SparkEngine):
    """A cluster that runs, with whatever workers there are."""

    is_running = True


@pytest.mark.parametrize("executors", [0, 1])
def test_a_cluster_whose_workers_are_all_gone_in_the_middle_is_given_up_and_a_busy_one_is_not(
    monkeypatch: pytest.MonkeyPatch, executors: int
) -> None:
    for name, value in {"LOOK_EVERY": 0.01, "SAY_EVERY": 0.02, "MOST_PATIENCE": 0.2}.items():
        monkeypatch.setattr(engine, name, value)
    counts = iter([(1, 0, 1, 0)] * 3)
    monkeypatch.setattr(engine, "_tasks", lambda *_: engine._Tasks(*next(counts, (1, 0, 0, 1))))
    monkeypatch.setattr(engine, "_executors", lambda _: executors)
    over, given_up = Event(), Event()
    cancelled: list[str] = []
    context: Any = SimpleNamespace(cancelJobGroup=cancelled.append)
    watcher = Thread(target=Lonely("spark://here:7077")._watch, args=(context, "ours", over, given_up))
    watcher.start()
    watcher.join(2)
    over.set()
    watcher.join()
    assert (given_up.is_set(), cancelled) == ((True, ["ours"]) if not executors else (False, []))


SPEAKING = """
import subprocess
from pipelines.engine.tasks.spark import spark_session
opens, secret = "spark.executorEnv.AWS_SECRET_ACCESS_KEY", "S3" + "CR3T"
spark = spark_session("local[1]", settings={opens: secret, "spark.driver.memory": "600m"})
words = subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, text=True).stdout
known = dict(spark.sparkContext.getConf().getAll())
print("found", known[opens], known["spark.driver.memory"], secret in words, "-Xmx600m" in words)
spark.stop()
"""


def test_what_opens_something_stands_in_no_list_of_processes() -> None:
    done = subprocess.run([sys.executable, "-c", SPEAKING], capture_output=True, text=True, timeout=120, check=False)
    assert "found S3CR3T 600m False True" in done.stdout, done.stderr[-2000:]


@pytest.mark.parametrize("on_a_cluster", [True, False])
def test_a_worker_that_cannot_reach_the_store_says_so_by_its_name(
    monkeypatch: pytest.MonkeyPatch, *, on_a_cluster: bool
) -> None:
    def fails(_: object) -> object:
        raise StoreFailedError("s3://bucket/flow/main/commits", "403")

    monkeypatch.setattr(engine, "commits_path", fails)
    if on_a_cluster:
        monkeypatch.setenv(engine.WORKER, "1")
    with pytest.raises(StoreFailedError) as refused:
        engine.run_in_worker(SimpleNamespace(root="s3://bucket/flow/main"))  # type: ignore[arg-type]
    assert isinstance(refused.value, StoreUnseenError) == on_a_cluster
    assert (f"worker {socket.gethostname()} must have s3://" in str(refused.value)) == on_a_cluster
    assert ("spark.executorEnv." in str(refused.value)) == on_a_cluster
