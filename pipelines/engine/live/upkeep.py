"""Keep a run's tables and its history small between commits, in one go: what `Driver.keep_house` and `Retention` do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.engine.commits.housekeeping import EVERY, KEEP, KEEP_CARRY
from pipelines.engine.commits.leg_roots import covered_by_all
from pipelines.engine.commits.paths import landed_path, lands_elsewhere, run_root
from pipelines.engine.landing.retention import Retention

if TYPE_CHECKING:
    import datetime as dt

    from pipelines.engine.commits.driver import Driver


class Upkeep:
    """What a driver of a stream does between commits, once every so many of them.

    Killed anywhere, tables and history read the same, and the next call goes on.

    Args:
        driver: of the run.
    """

    def __init__(self, driver: Driver) -> None:
        """Do nothing yet."""
        self._driver, self._keeper = driver, Retention(landed_path(driver.root), driver.state)

    def keep(self, *, every: int = EVERY, keep: dt.timedelta = KEEP, rows: int | None = None) -> bool:
        """Put tables and history in order, where that is due.

        Args:
            every: commits from one time to the next.
            keep: how long versions of tables stay readable, with all files that they name.
            rows: how long landed rows stay, in ticks; None for ever.

        Returns:
            Whether it was done now.

        Raises:
            LeaseLostError: another driver has taken the lease.
        """
        if not self._driver.keep_house(every=every, keep=keep):
            return False
        # What landed is the run's: no leg but the first has a landing, and a replay only reads that of another run.
        if run_root(self._driver.root) != self._driver.root or lands_elsewhere(self._driver.root):
            return True
        tip = self._driver.state().tip
        upto = covered_by_all(self._driver.root, tip.upto if tip else 0)
        self._keeper.keep(upto, min(keep, KEEP_CARRY), rows)
        return True
