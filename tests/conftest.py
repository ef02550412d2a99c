"""What the whole test run shares: one Spark session, started when the first test asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipelines.engine.batch import SparkEngine
from pipelines.jobs import conform, demo, engines, parity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pipelines.engine.stages import Engine
    from pipelines.engine.tasks import Done, Task


class LentSpark:
    """The test run's Spark as an engine: whoever closes it only gives it back.

    Args:
        engine: the one that was started.
    """

    name = "batch"

    def __init__(self, engine: SparkEngine) -> None:
        """Lend it."""
        self._engine = engine
        self.tasks = 0
        """Tasks handed out so far."""

    def run(self, tasks: Sequence[Task]) -> list[Done]:
        """Run tasks on Spark's workers."""
        self.tasks += len(tasks)
        return self._engine.run(tasks)

    def close(self) -> None:
        """Leave it running for the next test."""


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LentSpark]:
    """Give Spark on two threads of this machine, one session for all tests."""
    engine = SparkEngine("local[2]", tmp_path_factory.mktemp("spark") / "spark.log")
    yield LentSpark(engine)
    engine.close()


@pytest.fixture
def lent_to_jobs(spark: LentSpark, monkeypatch: pytest.MonkeyPatch) -> LentSpark:
    """Let jobs that start an engine by its name find the shared Spark."""

    def found(name: str, master: str = "local[2]", log: Path | None = None) -> Engine:
        return spark if name == "batch" else engines.engine_named(name, master, log)

    for job in (conform, demo, parity):
        monkeypatch.setattr(job, "engine_named", found)
    return spark
