"""Drills `errno` and `clock` over processes with a bug in them: what a drill that cannot fail would not find.

planted_drills.py BUG BASE SEEDS   # prints a line a seed, up to the first that finds it; needs the drills' library
"""

from __future__ import annotations

import errno
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.engine.columnar.clock import WallClock, wall_now
from pipelines.engine.commits import delta_log, lease
from pipelines.engine.commits.driver import Driver
from pipelines.engine.commits.history import settled_text
from pipelines.engine.commits.lease import HolderStanding, look
from pipelines.jobs.drill import commanded, failing, stepped
from pipelines.jobs.drill.acts import asked_second
from pipelines.jobs.drill.failing import FailingCall, Fault, How

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection

    from pipelines.engine.commits.entry import Entry
    from pipelines.engine.commits.lease import Holder
    from pipelines.jobs.drill.loops import Here
    from pipelines.jobs.drill.stepped import SteppedClock
    from pipelines.jobs.drill.telling import Drilled

LOOKS, STARTS = 5, 5
"""Calls apart that starts fail at, and how many starts."""
SHORTENING = "housekeeping"
"""The loop that shortens the tables' logs: what it left of one cannot be read without its checkpoint."""
PATIENCE = 20.0
"""Seconds: a clock that nobody guards stands still for years."""


def unread(pipe: Connection, kind: str, here: Here, fault: Fault | None) -> None:
    """Take what cannot be read of a log for torn, and remove it."""

    def or_torn(judge: Callable[[Path], bool]) -> Callable[[Path], bool]:
        def judged(file: Path) -> bool:
            with suppress(OSError):
                return judge(file)
            return False

        return judged

    delta_log._is_version = or_torn(delta_log._is_version)  # type: ignore[assignment]
    delta_log._is_readable = or_torn(delta_log._is_readable)  # type: ignore[assignment]
    failing.working(pipe, kind, here, fault)


def careless(pipe: Connection, kind: str, here: Here, fault: Fault | None) -> None:
    """Say that the tables follow, whatever comes of it."""
    settle = Driver._settle

    def settled(driver: Driver, number: int) -> None:
        with suppress(OSError):
            settle(driver, number)
        driver._settled = settled_text(number, driver.tables.versions(), 0)

    Driver._settle = settled  # type: ignore[assignment,method-assign]
    failing.working(pipe, kind, here, fault)


def unguarded(pipe: Connection, kind: str, here: Here, of: SteppedClock) -> None:
    """Believe every clock that goes on."""
    WallClock.read = lambda clock, last: max(clock.wall(), last)  # type: ignore[assignment,method-assign]
    stepped.listening(pipe, kind, here, of)


def by_the_wall(root: Path, flow: str) -> str:
    """Judge a lease by one's own wall clock."""

    def is_held(root: Path, row: Entry, seen_from: Holder, _: Callable[[str], Any]) -> bool:
        return look(root, row, seen_from).standing(wall_now()) is HolderStanding.HELD

    lease.is_held = is_held  # type: ignore[assignment]
    lease.Sight.renews = False  # type: ignore[assignment,method-assign]
    return asked_second(root, flow)


def drilled(bug: str, base: Path, seeds: range) -> Iterator[Drilled]:
    """Drill a bug; two seeds at the same time."""
    here = sys.modules["tests.jobs.drill.planted_drills"]
    if bug in FAILING:
        work, calls = getattr(here, bug), FAILING[bug]
        failed = [failing.FailingSeed(number, base, work=work, only=calls) for number in seeds]
        if bug == "unread":
            failed = [begun_again(seed) for seed in failed if seed.kind == SHORTENING]
        yield from failing.failed(failed, 2)
    elif bug == "unguarded":
        commanded.PATIENCE = PATIENCE
        odd = [number for number in seeds if number % 2]
        yield from stepped.shifted([stepped.SteppedSeed(number, base, work=getattr(here, bug)) for number in odd], 2)
    else:
        yield from stepped.shifted([stepped.SteppedSeed(number, base, ask=getattr(here, bug)) for number in seeds], 2)


class AtTables(Fault):
    """A call that fails below the folder of the streams' tables alone."""

    def arm(self, home: Path) -> None:
        """Have it come there."""
        super().arm(home / "drilled" / "main" / "streams")


def begun_again(seed: failing.FailingSeed) -> failing.FailingSeed:
    """Have calls fail in starts behind told commits, one further on in each: there a start looks for what is torn."""
    skipped = range(seed.number % LOOKS, LOOKS * STARTS, LOOKS)
    seed.faults = [seed.faults[0], *(AtTables(FailingCall.OPEN, each, errno.EIO, How.REFUSED, 0) for each in skipped)]
    return seed


FAILING = {"unread": (FailingCall.OPEN, FailingCall.READ), "careless": (FailingCall.CREATE, FailingCall.NAME)}


def main() -> None:
    """Do what the arguments say."""
    import tests.jobs.drill.planted_drills  # noqa: F401 - by this name processes know its functions

    for done in drilled(sys.argv[1], Path(sys.argv[2]), range(1, int(sys.argv[3]) + 1)):
        print(json.dumps({"seed": done.seed, "found": done.differences, "told": done.told}), flush=True)  # noqa: T201
        if done.differences:
            break


if __name__ == "__main__":
    main()
