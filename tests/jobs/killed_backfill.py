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

from pipelines.engine import manifests
from pipelines.engine.commits import Driver
from pipelines.flows.reading import read_flow
from pipelines.jobs.backfill import run_backfill
from pipelines.jobs.engines import engine_named
from tests.jobs.trials import SPANS, Trial

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipelines.engine.stages import Engine
    from pipelines.engine.tasks import Done, Task

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


def between_tables(add: Function, skip: int) -> Function:
    """Die when the second table of a commit has its files, in the first commit whose number is above `skip`."""
    added: list[int] = []

    def dies(driver: Driver, number: int, *rest: Any) -> Any:  # noqa: ANN401 - whatever the function takes
        given = add(driver, number, *rest)
        if given and number > skip:
            added.append(number)
        if added.count(number) == 2:
            die()
        return given

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
    elif point == "adding":
        Driver.add_files = between_tables(Driver.add_files, skip)  # type: ignore[method-assign]
    elif point == "added":
        Driver.written = before(Driver.written, skip)  # type: ignore[method-assign]
    elif point == "written":
        Driver.written = after(Driver.written, skip)  # type: ignore[method-assign]
    elif point == "published":
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
