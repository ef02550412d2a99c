"""A stream of tiny epochs that keeps house every ten commits, in a process of its own, for tests that kill it.

housekeeping_process.py ROOT LAST [DIE_AT]   # epochs up to LAST; DIE_AT: a point of the first housekeeping
"""

from __future__ import annotations

import datetime as dt
import functools
import importlib.util
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.engine.commits import housekeeping, settling
from pipelines.engine.commits.driver import CommitLog, open_driver
from pipelines.engine.commits.settling import Tables

if TYPE_CHECKING:
    from collections.abc import Callable

POINTS: dict[str, tuple[object, str, bool]] = {
    "merged": (settling, "write_together", True),
    "noted": (Tables, "rewrite", True),
    "compacted": (Tables, "compact", True),
    "carried": (Tables, "compact_carry", True),
    "swept": (housekeeping, "sweep", True),
    "log": (CommitLog, "compact", True),
    "vacuumed": (housekeeping, "checkpoint", False),
    "checkpointed": (housekeeping, "clean_log", False),
}
"""Where a kill comes: after or before a function."""


def deadly(function: Callable[..., object], *, after: bool) -> Callable[..., object]:
    """Make a function the last that this process does."""

    @functools.wraps(function)
    def killed(*arguments: object, **named: object) -> object:
        if after:
            function(*arguments, **named)
        os.kill(os.getpid(), signal.SIGKILL)
        return None

    return killed


def main() -> None:
    """Run epochs; the carry of key n % 3 is n."""
    spec = importlib.util.spec_from_file_location("epochs", Path(__file__).with_name("test_housekeeping.py"))
    assert spec
    assert spec.loader
    epochs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(epochs)
    root, last, *point = sys.argv[1:]
    with open_driver(Path(root), flow="f") as driver:
        for number in range(driver.next_number(), int(last) + 1):
            epochs.epoch(driver, [("set", number % 3, number)])
            if point and number == 10:
                where, name, after = POINTS[point[0]]
                setattr(where, name, deadly(getattr(where, name), after=after))
            driver.keep_house(every=10, keep=dt.timedelta(0))
        driver.keep_house(every=1, keep=dt.timedelta(0))


if __name__ == "__main__":
    main()
