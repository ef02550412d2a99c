"""Run a flow in legs over readings that are known beforehand: every leg in a thread of its own, and no Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.engine.commits.driver import open_driver
from pipelines.engine.live.legs import open_legs
from pipelines.jobs.runs.readings import land_readings, runner_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipelines.jobs.runs.backfill import Backfill


def run_in_legs(  # noqa: PLR0913 - what is run, over what
    wanted: Backfill,
    start: int,
    readings: Sequence[int],
    *,
    final: int | None = None,
    most: int = 1,
    tell: Callable[[str], object] = lambda _: None,
) -> None:
    """Land a sequence a reading and run every leg over them, until all have taken all; go on where it was.

    Args:
        wanted: root, engine, and flow with its legs.
        start: the reading before the first, in ticks.
        readings: closing readings, ascending, in ticks.
        final: arrival of the final punctuation, in the last sequence; None where the feed goes on.
        most: sequences in one epoch at most.
        tell: told what an earlier driver had left to do.

    Raises:
        BaseException: what ended a leg.
    """
    with open_driver(wanted.root, flow=wanted.flow.name, claim=wanted.claim) as driver:
        last = land_readings(wanted, start, readings, final).last_id
        runner = runner_of(wanted, driver, wanted.engine)
        with open_legs(runner, wanted.root, lambda _: wanted.engine) as legs:
            legs.begin(tell)
            with legs.under_way(most):
                while runner.upto < last:
                    legs.advance_main(runner.upto, min(runner.upto + most, last))
                legs.await_all()
