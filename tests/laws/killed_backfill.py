"""A backfill of the parcels in a process of its own, for tests that kill it, or hold it up while it works.

killed_backfill.py BASE RUN POINT SKIP [ENGINE]   # run all hours, come past a point SKIP times, then die at it
killed_backfill.py BASE RUN hold                  # say `working` when the first hour lands, go on when a line comes in
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.engine.commits.delta_log import SETTLED
from pipelines.engine.commits.driver import Driver
from pipelines.engine.commits.settling import Tables
from pipelines.engine.commits.table_log import TableLog
from pipelines.engine.landing import manifest as manifests
from pipelines.flows.reading import read_flow
from pipelines.jobs.environment.engines import engine_named
from pipelines.jobs.runs.backfill import run_backfill
from tests.laws.trials import SPANS, Trial

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pipelines.engine.commits.table_log import TableChange
    from pipelines.engine.tasks.stages import Engine
    from pipelines.engine.tasks.task import Done, Task

    Function = Callable[..., Any]


def die() -> None:
    """End as a power cut would."""
    os.kill(os.getpid(), signal.SIGKILL)


def before(function: Function, skip: int) -> Function:
    """Die when `function` is called, after `skip` calls that do their work."""
    left = [skip]

    def dies(*args: Any, **named: Any) -> Any:  # noqa: ANN401 - whatever the function takes
        if not left[0]:
            die()
        left[0] -= 1
        return function(*args, **named)

    return dies


def after(function: Function, skip: int) -> Function:
    """Die when `function` has done its work, after `skip` calls that go on."""
    left = [skip]

    def dies(*args: Any, **named: Any) -> Any:  # noqa: ANN401 - whatever the function takes
        given = function(*args, **named)
        if not left[0]:
            die()
        left[0] -= 1
        return given

    return dies


def between_tables(commit: Function, skip: int) -> Function:
    """Die when the second table of a commit has followed it, in the first commit whose number is above `skip`."""
    followed: list[int] = []

    def dies(log: TableLog, change: TableChange, numbers: Mapping[str, int]) -> int:
        version: int = commit(log, change, numbers)
        if numbers.get(SETTLED, 0) > skip:
            followed.append(numbers[SETTLED])
        if followed and followed.count(followed[-1]) == 2:
            die()
        return version

    return dies


def before_table(commit: Function, skip: int) -> Function:
    """Die when a table has been looked at and is about to follow, in the first commit whose number is above `skip`."""

    def dies(log: TableLog, change: TableChange, numbers: Mapping[str, int]) -> int:
        if numbers.get(SETTLED, 0) > skip:
            die()
        version: int = commit(log, change, numbers)
        return version

    return dies


class DyingEngine:
    """Dies when half of a stage's tasks have written their files.

    Args:
        engine: runs them.
        skip: stages that are run first.
    """

    def __init__(self, engine: Engine, skip: int) -> None:
        """Wait."""
        self.name, self._engine, self._left = engine.name, engine, skip

    def run(self, tasks: Sequence[Task]) -> list[Done]:
        """Run tasks, or half of them."""
        if not self._left:
            self._engine.run(tasks[: (len(tasks) + 1) // 2])
            die()
        self._left -= 1
        return self._engine.run(tasks)

    def cores(self) -> int:
        """Say how many tasks run at once."""
        return self._engine.cores()

    def close(self) -> None:
        """Give back what running took."""
        self._engine.close()


def lay_in_wait(point: str, skip: int, name: str = "core") -> Engine:
    """Make this process die at a point, and give the engine to run with."""
    engine = engine_named(name)
    if point == "landing":
        manifests.name_once = before(manifests.name_once, skip)
    elif point == "intent":
        Driver.intent = after(Driver.intent, skip)  # type: ignore[method-assign]
    elif point == "listed":
        Driver.written = before(Driver.written, skip)  # type: ignore[method-assign]
    elif point == "written":
        Driver.written = after(Driver.written, skip)  # type: ignore[method-assign]
    elif point == "published":
        Tables.settle = before(Tables.settle, skip)  # type: ignore[method-assign]
    elif point == "looked":
        TableLog.commit = before_table(TableLog.commit, skip)  # type: ignore[method-assign]
    elif point == "settling":
        TableLog.commit = between_tables(TableLog.commit, skip)  # type: ignore[method-assign]
    elif point == "settled":
        Driver.publish = after(Driver.publish, skip)  # type: ignore[method-assign]
    return DyingEngine(engine, skip) if point == "tasks" else engine


def wait_once() -> Callable[[str], None]:
    """Give what waits for a line the first time it is told something."""
    waited: list[str] = []

    def wait(text: str) -> None:
        if not waited:
            sys.stdout.write("working\n")
            sys.stdout.flush()
            sys.stdin.readline()
        waited.append(text)

    return wait


def main() -> None:
    """Do what the arguments say."""
    base, run, point, *rest = sys.argv[1:]
    here = Trial(flow=read_flow(Path(base) / "flow.yaml", {}), base=Path(base))
    engine = lay_in_wait(point, int(rest[0]) if rest else 0, *rest[1:])
    run_backfill(here.wanted(run, engine), SPANS, wait_once() if point == "hold" else lambda _: None)


if __name__ == "__main__":
    main()
