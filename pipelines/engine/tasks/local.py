"""The engine `core`: tasks run in the calling process, one after the other; no Spark, the same bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.engine.tasks.task import run_task

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.engine.tasks.task import Done, Task


class CoreEngine:
    """Run tasks right here."""

    name = "core"

    def run(self, tasks: Sequence[Task]) -> list[Done]:
        """Run tasks one after the other."""
        return [run_task(task) for task in tasks]

    def cores(self) -> int:
        """Run one at a time."""
        return 1

    def close(self) -> None:
        """Hold nothing, release nothing."""
