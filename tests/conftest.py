"""What the whole test run shares: one Spark session, started when the first test asks for it."""

from __future__ import annotations

import gc
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from hypothesis import settings

from pipelines.engine.files.stored import StorePath
from pipelines.engine.tasks import stages
from pipelines.engine.tasks.spark import SparkEngine
from pipelines.jobs.environment.quick_start import SELDOM
from pipelines.jobs.proofs.emulator import BUCKET, access_to, emulator
from tests import slow
from tests.engine.sources.broker import Broker, BrokerEndedError, broker_jars

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipelines.engine.tasks.stages import Engine
    from pipelines.engine.tasks.task import Done, Task


# Spark's process lives for minutes here, and many do beside each other: compiling its code well is not worth the while.
os.environ["PYSPARK_SUBMIT_ARGS"] = "--driver-java-options '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC' pyspark-shell"

# As a command does: looking for circles among all that is loaded takes a tenth of the time.
gc.set_threshold(SELDOM)

# Told as the interpreter ends, when pytest's streams are closed: a stack behind the closing line.
logging.getLogger("py4j.clientserver").setLevel(logging.WARNING)

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


TESTS = Path(__file__).parent
CUT_INTO_TASKS = ("engine/", "laws/", "jobs/bench/test_bench_store.py")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is too slow to run each time, before pytest chooses by marks."""
    slow.mark(items)


class LentSpark(SparkEngine):
    """The test run's Spark: whoever closes it only gives it back."""

    tasks = 0
    """Handed out so far."""

    def run(self, tasks: Sequence[Task]) -> list[Done]:
        """Run tasks on Spark's workers."""
        self.tasks += len(tasks)
        return super().run(tasks)

    def close(self) -> None:
        """Leave it running for the next test."""

    def end(self) -> None:
        """Stop it."""
        super().close()


@pytest.fixture(scope="module", autouse=True)
def several_tasks(request: pytest.FixtureRequest) -> Iterator[None]:
    """Have a stage take a task for each bucket, however few its rows are, where tests are about that."""
    with pytest.MonkeyPatch.context() as patch:
        if request.path.relative_to(TESTS).as_posix().startswith(CUT_INTO_TASKS):
            patch.setattr(stages, "FEW", -1)
        yield


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LentSpark]:
    """Give Spark on two threads of this machine, one session for all tests."""
    engine = LentSpark("local[2]", tmp_path_factory.mktemp("spark") / "spark.log")
    yield engine
    engine.end()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Give a broker of Kafka, one for all tests; where its jars cannot be had, its tests are skipped."""
    jars = broker_jars()
    if isinstance(jars, str):
        pytest.skip(f"the jars of a broker of Kafka cannot be had: {jars}")
    made = Broker(jars, tmp_path_factory.mktemp("kafka"))
    try:
        made.start()
    except BrokerEndedError:
        # A port that was free may be taken before the broker listens to it.
        made = Broker(jars, tmp_path_factory.mktemp("kafka"))
        made.start()
    yield made
    made.stop()


@pytest.fixture(scope="session")
def bucket() -> Iterator[Mapping[str, str]]:
    """Give the variables that lead to a store of this machine, one for all tests."""
    with emulator() as port:
        yield access_to(port)


@pytest.fixture
def store(bucket: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> StorePath:
    """Give an empty place in a store."""
    for name, value in bucket.items():
        monkeypatch.setenv(name, value)
    return StorePath(f"s3://{BUCKET}/{uuid4().hex}")


@pytest.fixture
def lent(spark: LentSpark, monkeypatch: pytest.MonkeyPatch) -> LentSpark:
    """Let jobs that start Spark themselves find the shared one."""
    from pipelines.jobs.commands import conform, demo
    from pipelines.jobs.environment import engines
    from pipelines.jobs.proofs import parity

    def found(name: str, *more: Any) -> Engine:  # noqa: ANN401 - as `engine_named` takes them
        return spark if name == "batch" else engines.engine_named(name, *more)

    for job in (conform, parity):
        monkeypatch.setattr(job, "engine_named", found)
    monkeypatch.setattr(demo, "SparkEngine", lambda *_: spark)
    return spark


@pytest.fixture
def preloading(tmp_path: Path) -> None:
    """See that the drill's library can be made here; tests over it are skipped elsewhere."""
    from pipelines.jobs.drill.preloaded import NotHereError, made

    try:
        made(tmp_path)
    except NotHereError as why:
        pytest.skip(str(why))
