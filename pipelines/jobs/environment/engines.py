"""Which engines there are, by the word a user calls them."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from pipelines.engine.tasks.local import CoreEngine
from pipelines.engine.tasks.spark import SparkEngine
from pipelines.jobs.environment.errors import WrongUse

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pipelines.engine.tasks.stages import Engine


CORE, BATCH = "core", "batch"


def engine_named(
    name: str, master: str = "local[2]", log: Path | None = None, spark: Mapping[str, str] = MappingProxyType({})
) -> Engine:
    """Give the engine that runs tasks.

    Args:
        name: `core` or `batch`.
        master: of Spark, for `batch`.
        log: file that takes what Spark's own process writes; None leaves it on standard error.
        spark: settings of Spark's that go before ours.

    Raises:
        WrongUse: there is no such engine.
    """
    if name == CORE:
        return CoreEngine()
    if name == BATCH:
        return SparkEngine(master, log, spark)
    raise WrongUse(f"engine must be core or batch; it is {name!r}")
